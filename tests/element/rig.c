/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A rig: the element in a GstHarness, with a probe on its source pad that writes down what
 * leaves in which order and can hold a frame or refuse it, as a sink would. */
#include "element.h"

#include <string.h>

#define FRAME_DURATION (GST_SECOND / 30)

/* ---- what leaves the element ----------------------------------------------------------------- */

static void
log_item (Rig * rig, Item item)
{
  g_array_append_val (rig->log, item);
  g_cond_broadcast (&rig->changed);
}

static GstPadProbeReturn
pass_buffer (Rig * rig, GstPadProbeInfo * info)
{
  GstPadProbeReturn result = GST_PAD_PROBE_OK;
  gint count;

  g_mutex_lock (&rig->lock);
  count = (gint) rig->buffers;
  if (rig->hold_at == count) {
    rig->held = TRUE;
    g_cond_broadcast (&rig->changed);
    while (rig->held && !rig->flushing)
      g_cond_wait (&rig->changed, &rig->lock);
    rig->held = FALSE;
    rig->hold_at = -1;
  }
  if (!rig->flushing && rig->fail_at >= 0 && count >= rig->fail_at) {
    GST_PAD_PROBE_INFO_FLOW_RETURN (info) = rig->fail_with;
    gst_buffer_unref (GST_PAD_PROBE_INFO_BUFFER (info));
    result = GST_PAD_PROBE_HANDLED;
  } else {
    Item item = {.kind = ITEM_BUFFER,.pts = GST_BUFFER_PTS (GST_PAD_PROBE_INFO_BUFFER (info)) };

    rig->buffers++;
    log_item (rig, item);
  }
  g_mutex_unlock (&rig->lock);
  return result;
}

static GstPadProbeReturn
watch (GstPad * pad, GstPadProbeInfo * info, gpointer user_data)
{
  Rig *rig = user_data;

  if (info->type & GST_PAD_PROBE_TYPE_BUFFER)
    return pass_buffer (rig, info);
  g_mutex_lock (&rig->lock);
  if (info->type & GST_PAD_PROBE_TYPE_QUERY_DOWNSTREAM) {
    GstQuery *query = GST_PAD_PROBE_INFO_QUERY (info);
    Item item = {.kind = ITEM_QUERY,.type = GST_QUERY_TYPE (query) };

    if (GST_QUERY_TYPE (query) == GST_QUERY_ALLOCATION)
      rig->allocations += (info->type & GST_PAD_PROBE_TYPE_PUSH) != 0;
    else if (GST_QUERY_IS_SERIALIZED (query) && (info->type & GST_PAD_PROBE_TYPE_PUSH))
      log_item (rig, item);
  } else {
    GstEvent *event = GST_PAD_PROBE_INFO_EVENT (info);
    Item item = {.kind = ITEM_EVENT,.type = GST_EVENT_TYPE (event),
      .seqnum = gst_event_get_seqnum (event)
    };

    if (GST_EVENT_TYPE (event) == GST_EVENT_FLUSH_START)
      rig->flushing = TRUE;
    else if (GST_EVENT_TYPE (event) == GST_EVENT_FLUSH_STOP)
      rig->flushing = FALSE;
    log_item (rig, item);
  }
  g_mutex_unlock (&rig->lock);
  return GST_PAD_PROBE_OK;
}

/* ---- life ------------------------------------------------------------------------------------ */

Rig *
rig_new (const gchar * properties)
{
  Rig *rig = g_new0 (Rig, 1);
  gchar *line = g_strdup_printf ("cudastreamfilter backend=%s %s", test_backend (), properties);
  GError *error = NULL;
  GstPad *pad;

  g_mutex_init (&rig->lock);
  g_cond_init (&rig->changed);
  rig->log = g_array_new (FALSE, FALSE, sizeof (Item));
  rig->hold_at = rig->fail_at = -1;
  rig->bus = gst_bus_new ();
  rig->x = gst_parse_launch (line, &error);
  ck_assert_msg (error == NULL, "%s: %s", line, error != NULL ? error->message : "");
  g_free (line);
  gst_object_ref_sink (rig->x);
  gst_element_set_bus (rig->x, rig->bus);
  pad = gst_element_get_static_pad (rig->x, "src");
  gst_pad_add_probe (pad, GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM
      | GST_PAD_PROBE_TYPE_EVENT_FLUSH | GST_PAD_PROBE_TYPE_QUERY_DOWNSTREAM, watch, rig, NULL);
  gst_object_unref (pad);
  rig->h = gst_harness_new_with_element (rig->x, "sink", "src");
  return rig;
}

void
rig_free (Rig * rig)
{
  rig_release (rig);
  gst_element_set_state (rig->x, GST_STATE_NULL);
  /* Errors that a test expects it has taken. */
  ck_assert_msg (gst_bus_pop_filtered (rig->bus, GST_MESSAGE_ERROR) == NULL, "an unexpected error");
  gst_element_set_bus (rig->x, NULL);
  gst_harness_teardown (rig->h);
  gst_object_unref (rig->x);
  gst_object_unref (rig->bus);
  g_array_unref (rig->log);
  g_cond_clear (&rig->changed);
  g_mutex_clear (&rig->lock);
  g_free (rig);
}

/* ---- feeding --------------------------------------------------------------------------------- */

gboolean
rig_take_caps (Rig * rig, GstCaps * caps)
{
  GstEvent *event = NULL;

  ck_assert (gst_video_info_from_caps (&rig->info, caps));
  /* The harness' own way of setting caps asserts that they are taken, and begins the stream. */
  if ((event = gst_pad_get_sticky_event (rig->h->srcpad, GST_EVENT_CAPS, 0)) == NULL) {
    gst_harness_set_src_caps (rig->h, caps);
    return TRUE;
  }
  gst_event_unref (event);
  event = gst_event_new_caps (caps);
  gst_caps_unref (caps);
  return rig_push_event (rig, event);
}

gboolean
rig_set_caps (Rig * rig, const gchar * format, gint width, gint height)
{
  return rig_take_caps (rig, gst_caps_new_simple ("video/x-raw", "format", G_TYPE_STRING, format,
          "width", G_TYPE_INT, width, "height", G_TYPE_INT, height, "framerate",
          GST_TYPE_FRACTION, 30, 1, NULL));
}

gboolean
rig_push_event (Rig * rig, GstEvent * event)
{
  return gst_harness_push_event (rig->h, event);
}

GstFlowReturn
rig_push (Rig * rig, GstBuffer * buffer)
{
  return gst_harness_push (rig->h, buffer);
}

GstBuffer *
rig_frame (Rig * rig, guint n)
{
  GstBuffer *buffer = gst_buffer_new_allocate (NULL, GST_VIDEO_INFO_SIZE (&rig->info), NULL);
  GstMapInfo map;
  guint32 state = test_random (G_MAXINT32);

  gst_buffer_map (buffer, &map, GST_MAP_WRITE);
  for (gsize i = 0; i < map.size; i++) {
    state = state * 1664525 + 1013904223;
    map.data[i] = (guint8) (state >> 24);
  }
  gst_buffer_unmap (buffer, &map);
  GST_BUFFER_PTS (buffer) = n * FRAME_DURATION;
  GST_BUFFER_DURATION (buffer) = FRAME_DURATION;
  GST_BUFFER_OFFSET (buffer) = n;
  GST_BUFFER_OFFSET_END (buffer) = n + 1;
  return buffer;
}

GstFlowReturn
rig_feed (Rig * rig, guint first, guint count)
{
  GstFlowReturn flow = GST_FLOW_OK;

  for (guint n = first; n < first + count && flow == GST_FLOW_OK; n++)
    flow = rig_push (rig, rig_frame (rig, n));
  return flow;
}

static gpointer
feed (gpointer data)
{
  Feeder *feeder = data;
  GstFlowReturn flow = GST_FLOW_OK;

  for (guint n = feeder->first; n < feeder->first + feeder->count && flow == GST_FLOW_OK; n++) {
    GstBuffer *buffer =
        gst_buffer_new_allocate (NULL, GST_VIDEO_INFO_SIZE (&feeder->rig->info), NULL);

    gst_buffer_memset (buffer, 0, (guint8) n, gst_buffer_get_size (buffer));
    GST_BUFFER_PTS (buffer) = n * FRAME_DURATION;
    flow = gst_pad_push (feeder->rig->h->srcpad, buffer);
  }
  return GINT_TO_POINTER (flow);
}

void
feeder_start (Feeder * feeder, Rig * rig, guint first, guint count)
{
  feeder->rig = rig;
  feeder->first = first;
  feeder->count = count;
  feeder->thread = g_thread_new ("feeder", feed, feeder);
}

GstFlowReturn
feeder_join (Feeder * feeder)
{
  return GPOINTER_TO_INT (g_thread_join (feeder->thread));
}

/* ---- holding, waiting, looking --------------------------------------------------------------- */

GstBuffer *
rig_pull (Rig * rig)
{
  GstBuffer *buffer = gst_harness_pull (rig->h);

  ck_assert_msg (buffer != NULL, "no frame came");
  return buffer;
}

void
rig_hold (Rig * rig, guint n)
{
  g_mutex_lock (&rig->lock);
  rig->hold_at = (gint) (rig->buffers + n);
  g_mutex_unlock (&rig->lock);
}

void
rig_wait_held (Rig * rig)
{
  g_mutex_lock (&rig->lock);
  while (!rig->held)
    g_cond_wait (&rig->changed, &rig->lock);
  g_mutex_unlock (&rig->lock);
}

void
rig_release (Rig * rig)
{
  g_mutex_lock (&rig->lock);
  rig->held = FALSE;
  rig->hold_at = -1;
  g_cond_broadcast (&rig->changed);
  g_mutex_unlock (&rig->lock);
}

void
rig_fail_downstream (Rig * rig, guint n, GstFlowReturn flow)
{
  g_mutex_lock (&rig->lock);
  rig->fail_at = flow == GST_FLOW_OK ? -1 : (gint) (rig->buffers + n);
  rig->fail_with = flow;
  g_mutex_unlock (&rig->lock);
}

void
rig_wait_buffers (Rig * rig, guint count)
{
  g_mutex_lock (&rig->lock);
  while (rig->buffers < count)
    g_cond_wait (&rig->changed, &rig->lock);
  g_mutex_unlock (&rig->lock);
}

static gint
find_event_locked (Rig * rig, guint from, GstEventType type)
{
  for (guint i = from; i < rig->log->len; i++) {
    const Item *item = &g_array_index (rig->log, Item, i);

    if (item->kind == ITEM_EVENT && item->type == type)
      return (gint) i;
  }
  return -1;
}

void
rig_wait_event (Rig * rig, GstEventType type)
{
  g_mutex_lock (&rig->lock);
  while (find_event_locked (rig, 0, type) < 0)
    g_cond_wait (&rig->changed, &rig->lock);
  g_mutex_unlock (&rig->lock);
}

gint
rig_find_event (Rig * rig, guint from, GstEventType type)
{
  gint index;

  g_mutex_lock (&rig->lock);
  index = find_event_locked (rig, from, type);
  g_mutex_unlock (&rig->lock);
  return index;
}

Item
rig_item (Rig * rig, guint index)
{
  Item item;

  g_mutex_lock (&rig->lock);
  ck_assert_uint_lt (index, rig->log->len);
  item = g_array_index (rig->log, Item, index);
  g_mutex_unlock (&rig->lock);
  return item;
}

guint
rig_log_length (Rig * rig)
{
  guint length;

  g_mutex_lock (&rig->lock);
  length = rig->log->len;
  g_mutex_unlock (&rig->lock);
  return length;
}
