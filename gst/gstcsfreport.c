/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the element tells while it runs: last-message, stats messages, latency, and the timeline of
 * trace-location.  Makes no driver calls. */
#include "gstcudastreamfilter.h"

/* No PTS is the same in both. */
G_STATIC_ASSERT (CSF_NO_PTS == GST_CLOCK_TIME_NONE);

/* ---- statistics -------------------------------------------------------------------------------- */

/* A bin's deep-notify loses one of two notifications that come at once, so elements take turns.  A turn
 * is not waited for but at the end, since a handler may be waiting for the other element. */
static void
notify_last_message (GstCudaStreamFilter * self, gboolean last)
{
  static GMutex turn;

  if (last)
    g_mutex_lock (&turn);
  else if (!g_mutex_trylock (&turn))
    return;
  g_object_notify (G_OBJECT (self), "last-message");
  g_mutex_unlock (&turn);
}

static void
publish_stats (GstCudaStreamFilter * self, gboolean last)
{
  guint64 interval;
  gboolean silent;

  GST_OBJECT_LOCK (self);
  interval = self->settings.fps_update_interval * GST_MSECOND;
  silent = self->settings.silent;
  GST_OBJECT_UNLOCK (self);
  if (!gst_csf_stats_update (self->stats, interval, last && interval != 0, self->engine))
    return;
  if (!silent) {
    gchar *line = gst_csf_stats_to_line (self->stats, last);

    GST_OBJECT_LOCK (self);
    g_free (self->last_message);
    self->last_message = line;
    GST_OBJECT_UNLOCK (self);
    notify_last_message (self, last);
  }
  gst_element_post_message (GST_ELEMENT (self), gst_message_new_element (GST_OBJECT (self),
          gst_csf_stats_to_structure (self->stats, self->engine)));
}

static void
check_latency (GstCudaStreamFilter * self)
{
  GstClockTime latency = gst_csf_stats_get_latency (self->stats);
  gboolean changed;

  g_mutex_lock (&self->lock);
  changed = latency != self->latency;
  self->latency = latency;
  g_mutex_unlock (&self->lock);
  if (changed)
    gst_element_post_message (GST_ELEMENT (self), gst_message_new_latency (GST_OBJECT (self)));
}

/* A timeline is worth no pipeline. */
static void
warn_of_timeline (GstCudaStreamFilter * self, const csf_error * error)
{
  gchar *text = g_utf8_make_valid (error->text, -1);    /* a path may be anything */

  GST_ELEMENT_WARNING (self, RESOURCE, WRITE, ("going on without a trace: %s", text), (NULL));
  g_free (text);
}

static void
finish_timeline (GstCudaStreamFilter * self)
{
  csf_error error;

  if (self->timeline != NULL && csf_timeline_finish (self->timeline, &error) != CSF_OK)
    warn_of_timeline (self, &error);
}

void
gst_csf_report_stats (GstCudaStreamFilter * self, gboolean last)
{
  publish_stats (self, last);
  check_latency (self);
  if (last)
    finish_timeline (self);
}

/* ---- timeline ---------------------------------------------------------------------------------- */

void
gst_csf_report_start (GstCudaStreamFilter * self)
{
  csf_error error;

  if (self->run.trace_location != NULL && csf_timeline_open (self->run.trace_location,
          GST_OBJECT_NAME (self), &self->timeline, &error) != CSF_OK)
    warn_of_timeline (self, &error);
}

void
gst_csf_report_stop (GstCudaStreamFilter * self)
{
  gst_csf_stats_stop (self->stats);
  finish_timeline (self);
  g_clear_pointer (&self->timeline, csf_timeline_close);
}

csf_timeline_frame
gst_csf_report_begin (const GstCsfFrame * frame, const csf_result * result)
{
  return (csf_timeline_frame) {
    .frame = result->frame,
    .pts = GST_BUFFER_PTS (frame->output),
    .times = result->times,
    .upstream = frame->waited,
  };
}

void
gst_csf_report_frame (GstCudaStreamFilter * self, const csf_timeline_frame * frame)
{
  csf_error error;

  if (self->timeline != NULL && csf_timeline_add (self->timeline, frame, &error) != CSF_OK)
    warn_of_timeline (self, &error);
}
