/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * SECTION:element-cudastreamfilter
 * @title: cudastreamfilter
 *
 * Runs a kernel on each video frame.  Several CUDA streams and a pool of pinned buffers keep the
 * upload, the kernel and the download of consecutive frames running at the same time.  Without a
 * usable GPU the same kernels run on the CPU.
 *
 * ## Example
 * |[
 * gst-launch-1.0 -v videotestsrc ! cudastreamfilter kernel=sobel ! videoconvert ! autovideosink
 * ]|
 */
/* This file: the class, properties, queries and state changes.  What the two streaming threads do is in
 * gstcsfstreaming.c.  Makes no driver calls. */
#include "gstcudastreamfilter.h"

#include "gstcsfmeta.h"

GST_DEBUG_CATEGORY (gst_cuda_stream_filter_debug);
#define GST_CAT_DEFAULT gst_cuda_stream_filter_debug

static GParamSpec *specs[GST_CSF_N_PROPS];

G_DEFINE_TYPE (GstCudaStreamFilter, gst_cuda_stream_filter, GST_TYPE_ELEMENT)

/* ---- source pad -------------------------------------------------------------------------------- */

static gboolean
gst_cuda_stream_filter_src_event (GstPad * pad, GstObject * parent, GstEvent * event)
{
  GstCudaStreamFilter *self = GST_CUDA_STREAM_FILTER (parent);

  if (GST_EVENT_TYPE (event) == GST_EVENT_QOS) {
    GstClockTimeDiff diff;
    GstClockTime timestamp;
    gdouble proportion;

    gst_event_parse_qos (event, NULL, &proportion, &diff, &timestamp);
    g_mutex_lock (&self->lock);
    self->proportion = proportion;
    if (!GST_CLOCK_TIME_IS_VALID (timestamp))
      self->earliest_time = GST_CLOCK_TIME_NONE;
    else
      self->earliest_time = diff > 0 || -diff < (GstClockTimeDiff) timestamp ? timestamp + diff : 0;
    g_mutex_unlock (&self->lock);
  } else if (GST_EVENT_TYPE (event) == GST_EVENT_RECONFIGURE) {
    gst_csf_reopen_if_not_linked (self);
  }
  return gst_pad_event_default (pad, parent, event);
}

/* ---- queries ----------------------------------------------------------------------------------- */

static gboolean
answer_context (GstCudaStreamFilter * self, GstQuery * query)
{
  GstCsfCudaContext *context = gst_csf_get_context (self);
  gboolean answered = gst_csf_cuda_answer_query (GST_ELEMENT (self), query, context);

  g_clear_object (&context);
  return answered;
}

static gboolean
gst_cuda_stream_filter_query (GstPad * pad, GstObject * parent, GstQuery * query)
{
  GstCudaStreamFilter *self = GST_CUDA_STREAM_FILTER (parent);

  switch (GST_QUERY_TYPE (query)) {
    case GST_QUERY_CAPS:
      return gst_csf_query_caps (self, pad, query);
    case GST_QUERY_ACCEPT_CAPS:
      return gst_csf_query_accept_caps (self, pad, query);
    case GST_QUERY_LATENCY:
      if (GST_PAD_IS_SRC (pad))
        return gst_csf_query_latency (self, query);
      break;
    case GST_QUERY_CONTEXT:
      if (answer_context (self, query))
        return TRUE;
      break;
    case GST_QUERY_ALLOCATION:
      if (GST_PAD_IS_SINK (pad))
        return gst_csf_propose_allocation (self, query);
      break;
    default:
      break;
  }
  if (!GST_PAD_IS_SINK (pad) || !GST_QUERY_IS_SERIALIZED (query))
    return gst_pad_query_default (pad, parent, query);
  return gst_csf_await_query (self, query);
}

/* ---- element ----------------------------------------------------------------------------------- */

/* Learns whether there is a GPU, without making a context on it. */
static gboolean
probe (GstCudaStreamFilter * self)
{
  csf_error error;
  GstCsfBackend backend;
  gboolean found;
  gint id;

  GST_OBJECT_LOCK (self);
  backend = self->settings.backend;
  id = self->settings.cuda_device_id;
  GST_OBJECT_UNLOCK (self);
  found = backend == GST_CSF_BACKEND_CPU
      || csf_device_probe (CSF_BACKEND_CUDA, id, &error) == CSF_OK;
  GST_OBJECT_LOCK (self);
  self->no_cuda = !found;
  GST_OBJECT_UNLOCK (self);
  if (found || backend == GST_CSF_BACKEND_AUTO)
    return TRUE;
  gst_csf_post_error (self, &error);
  return FALSE;
}

static GstStateChangeReturn
gst_cuda_stream_filter_change_state (GstElement * element, GstStateChange transition)
{
  GstCudaStreamFilter *self = GST_CUDA_STREAM_FILTER (element);
  GstStateChangeReturn result;

  if (transition == GST_STATE_CHANGE_NULL_TO_READY && !probe (self))
    return GST_STATE_CHANGE_FAILURE;
  if (transition == GST_STATE_CHANGE_READY_TO_PAUSED && !gst_csf_start (self))
    return GST_STATE_CHANGE_FAILURE;
  if (transition == GST_STATE_CHANGE_PAUSED_TO_PLAYING)
    gst_csf_stats_resume (self->stats);
  if (transition == GST_STATE_CHANGE_PLAYING_TO_PAUSED)
    gst_csf_stats_pause (self->stats);
  result = GST_ELEMENT_CLASS (gst_cuda_stream_filter_parent_class)->change_state (element, transition);
  /* A failed way up leaves the pads inactive and comes here no more. */
  if (transition == GST_STATE_CHANGE_PAUSED_TO_READY
      || (transition == GST_STATE_CHANGE_READY_TO_PAUSED && result == GST_STATE_CHANGE_FAILURE)) {
    gst_csf_stop (self);
    gst_csf_empty_queue (self);
  }
  return result;
}

static void
gst_cuda_stream_filter_set_context (GstElement * element, GstContext * context)
{
  gst_csf_set_context (GST_CUDA_STREAM_FILTER (element), context);
  GST_ELEMENT_CLASS (gst_cuda_stream_filter_parent_class)->set_context (element, context);
}

static void
gst_cuda_stream_filter_set_property (GObject * object, guint id, const GValue * value,
    GParamSpec * spec)
{
  GstCudaStreamFilter *self = GST_CUDA_STREAM_FILTER (object);
  gboolean known;

  GST_OBJECT_LOCK (self);
  known = gst_csf_settings_set (&self->settings, id, value);
  GST_OBJECT_UNLOCK (self);
  if (!known)
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, spec);
}

static void
gst_cuda_stream_filter_get_property (GObject * object, guint id, GValue * value, GParamSpec * spec)
{
  GstCudaStreamFilter *self = GST_CUDA_STREAM_FILTER (object);
  gboolean known = TRUE;

  if (id == GST_CSF_PROP_STATS) {
    g_mutex_lock (&self->lock);
    g_value_take_boxed (value, gst_csf_stats_to_structure (self->stats, self->engine));
    g_mutex_unlock (&self->lock);
    return;
  }
  GST_OBJECT_LOCK (self);
  if (id == GST_CSF_PROP_LAST_MESSAGE)
    g_value_set_string (value, self->last_message);
  else
    known = gst_csf_settings_get (&self->settings, id, value);
  GST_OBJECT_UNLOCK (self);
  if (!known)
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, spec);
}

static void
gst_cuda_stream_filter_finalize (GObject * object)
{
  GstCudaStreamFilter *self = GST_CUDA_STREAM_FILTER (object);

  csf_queue_destroy (self->queue);
  gst_csf_stats_free (self->stats);
  g_array_unref (self->regions);
  gst_csf_tracker_free (self->tracker);
  gst_csf_settings_clear (&self->settings);
  gst_csf_settings_clear (&self->run);
  g_free (self->last_message);
  g_mutex_clear (&self->lock);
  G_OBJECT_CLASS (gst_cuda_stream_filter_parent_class)->finalize (object);
}

static void
add_pad_template (GstElementClass * klass, const gchar * name, GstPadDirection direction,
    GstCaps * caps)
{
  gst_element_class_add_pad_template (klass,
      gst_pad_template_new (name, direction, GST_PAD_ALWAYS, caps));
}

static void
gst_cuda_stream_filter_class_init (GstCudaStreamFilterClass * klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);
  GstCaps *caps = gst_csf_kernel_caps (NULL, GST_PAD_SINK, gst_csf_cuda_is_built ());

  GST_DEBUG_CATEGORY_INIT (gst_cuda_stream_filter_debug, "cudastreamfilter", 0,
      "frames through CUDA streams");
  object_class->set_property = gst_cuda_stream_filter_set_property;
  object_class->get_property = gst_cuda_stream_filter_get_property;
  object_class->finalize = gst_cuda_stream_filter_finalize;
  gst_csf_properties_install (object_class, specs);
  element_class->set_context = gst_cuda_stream_filter_set_context;
  element_class->change_state = gst_cuda_stream_filter_change_state;
  add_pad_template (element_class, "sink", GST_PAD_SINK, caps);
  add_pad_template (element_class, "src", GST_PAD_SRC, caps);
  gst_caps_unref (caps);
  gst_element_class_set_static_metadata (element_class, "CUDA stream filter",
      "Filter/Effect/Video/Hardware",
      "Runs a kernel on video frames, overlapping upload, kernel and download on CUDA streams",
      "The cudastreamfilter developers");
  gst_type_mark_as_plugin_api (GST_TYPE_CSF_BACKEND, 0);
  gst_type_mark_as_plugin_api (GST_TYPE_CSF_METADATA_MEMORY, 0);
  gst_csf_meta_register ();
}

static GstPad *
add_pad (GstCudaStreamFilter * self, const gchar * name)
{
  GstPad *pad = gst_pad_new_from_template (gst_element_class_get_pad_template
      (GST_ELEMENT_GET_CLASS (self), name), name);

  gst_pad_set_query_function (pad, gst_cuda_stream_filter_query);
  gst_pad_set_activatemode_function (pad, gst_csf_activate);
  gst_element_add_pad (GST_ELEMENT (self), pad);
  return pad;
}

static void
gst_cuda_stream_filter_init (GstCudaStreamFilter * self)
{
  gst_csf_settings_init (&self->settings);
  g_mutex_init (&self->lock);
  self->queue = csf_queue_create ();
  self->stats = gst_csf_stats_new ();
  self->tracker = gst_csf_tracker_new ();
  self->regions = g_array_new (FALSE, FALSE, sizeof (csfk_region));
  self->flow = GST_FLOW_FLUSHING;
  csf_queue_set_flushing (self->queue, TRUE);
  gst_video_info_init (&self->format.input_info);
  gst_video_info_init (&self->format.output_info);

  self->sinkpad = add_pad (self, "sink");
  gst_pad_set_chain_function (self->sinkpad, gst_csf_chain);
  gst_pad_set_event_full_function (self->sinkpad, gst_csf_sink_event);
  self->srcpad = add_pad (self, "src");
  gst_pad_set_event_function (self->srcpad, gst_cuda_stream_filter_src_event);
}
