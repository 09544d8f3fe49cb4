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
/* This file: pads, events, queries and the code of the two streaming threads.  The sink pad's thread
 * submits frames to the engine; the source pad's task retires them and pushes them on.  Between the two
 * lies one ordered queue, so that no event or query overtakes a frame.  Makes no driver calls. */
#include "gstcudastreamfilter.h"

#include "gstcsfpool.h"

GST_DEBUG_CATEGORY (gst_cuda_stream_filter_debug);
#define GST_CAT_DEFAULT gst_cuda_stream_filter_debug

/* What the queue's items stand for. */
enum
{
  ITEM_FRAME,                   /* kept; no data: retire the engine's oldest job */
  ITEM_EVENT,                   /* GstEvent, owned */
  ITEM_CAPS,                    /* awaited; GstEvent of the waiter */
  ITEM_QUERY,                   /* awaited; GstQuery of the waiter */
  ITEM_RECONFIGURE,             /* awaited; no data */
};

static GParamSpec *specs[GST_CSF_N_PROPS];

G_DEFINE_TYPE (GstCudaStreamFilter, gst_cuda_stream_filter, GST_TYPE_ELEMENT)

/* ---- flow -------------------------------------------------------------------------------------- */

/* What the chain function returns now. */
static GstFlowReturn
get_flow (GstCudaStreamFilter * self)
{
  GstFlowReturn flow;

  g_mutex_lock (&self->lock);
  flow = self->flow;
  self->flow_reported = flow != GST_FLOW_OK;
  g_mutex_unlock (&self->lock);
  return flow;
}

/* Stops both threads: every wait returns, until open_flow.  FALSE: they were stopped before, so what
 * made the caller stop them was reported already.  *orphaned (may be NULL): upstream has sent EOS and
 * looks at no flow return any more. */
static gboolean
close_flow (GstCudaStreamFilter * self, GstFlowReturn flow, gboolean * orphaned)
{
  gboolean first;

  g_mutex_lock (&self->lock);
  first = self->flow == GST_FLOW_OK || self->flow == GST_FLOW_EOS;
  if (first || flow == GST_FLOW_FLUSHING) {
    self->flow = flow;
    self->flow_reported = FALSE;
  }
  if (orphaned != NULL)
    *orphaned = self->eos_queued;
  if (self->engine != NULL)
    csf_engine_set_interrupted (self->engine, TRUE);
  g_mutex_unlock (&self->lock);
  csf_queue_set_flushing (self->queue, TRUE);
  return first;
}

static void
drop_item (void *context, csf_item item)
{
  gst_event_unref (item.data);
}

/* Both threads stand still: what a flush drops goes, frames in flight stay to be retired unseen. */
static void
open_flow (GstCudaStreamFilter * self)
{
  csf_queue_flush (self->queue, drop_item, NULL);
  g_mutex_lock (&self->lock);
  self->flow = GST_FLOW_OK;
  self->eos_queued = FALSE;
  self->earliest_time = GST_CLOCK_TIME_NONE;
  if (self->engine != NULL) {
    csf_engine_discard (self->engine);
    csf_engine_set_interrupted (self->engine, FALSE);
  }
  g_mutex_unlock (&self->lock);
  csf_queue_set_flushing (self->queue, FALSE);
}

static gboolean
is_fatal (GstFlowReturn flow)
{
  return flow == GST_FLOW_NOT_LINKED || flow < GST_FLOW_EOS;
}

/* Src task: downstream takes no more.  Branches that still can get to finish what they have: upstream's
 * own EOS will not pass us any more. */
static void
fail_downstream (GstCudaStreamFilter * self, GstFlowReturn flow)
{
  gboolean orphaned;

  if (!close_flow (self, flow, &orphaned))
    return;
  GST_DEBUG_OBJECT (self, "stopping with %s", gst_flow_get_name (flow));
  if (!is_fatal (flow))
    return;
  if (orphaned)
    GST_ELEMENT_FLOW_ERROR (self, flow);
  gst_pad_push_event (self->srcpad, gst_event_new_eos ());
}

/* The frame at hand cannot go in: nothing more is taken, while what is in flight still goes out.  FALSE:
 * an earlier failure was reported already. */
static gboolean
refuse_input (GstCudaStreamFilter * self)
{
  gboolean first;

  g_mutex_lock (&self->lock);
  first = self->flow == GST_FLOW_OK;
  if (first) {
    self->flow = GST_FLOW_ERROR;
    self->flow_reported = TRUE;
  }
  g_mutex_unlock (&self->lock);
  return first;
}

/* Src task: we failed.  One message (NULL: posted already), and downstream finishes what it has. */
static void
fail_here (GstCudaStreamFilter * self, const csf_error * error)
{
  if (!close_flow (self, GST_FLOW_ERROR, NULL))
    return;
  if (error != NULL)
    gst_csf_post_error (self, error);
  g_mutex_lock (&self->lock);
  self->flow_reported = TRUE;
  g_mutex_unlock (&self->lock);
  gst_pad_push_event (self->srcpad, gst_event_new_eos ());
}

/* ---- statistics -------------------------------------------------------------------------------- */

static void
publish_stats (GstCudaStreamFilter * self, gboolean always)
{
  guint64 interval;
  gboolean silent;

  GST_OBJECT_LOCK (self);
  interval = self->settings.fps_update_interval * GST_MSECOND;
  silent = self->settings.silent;
  GST_OBJECT_UNLOCK (self);
  if (!gst_csf_stats_update (self->stats, interval, always && interval != 0, self->engine))
    return;
  if (!silent) {
    gchar *line = gst_csf_stats_to_line (self->stats);

    GST_OBJECT_LOCK (self);
    g_free (self->last_message);
    self->last_message = line;
    GST_OBJECT_UNLOCK (self);
    g_object_notify_by_pspec (G_OBJECT (self), specs[GST_CSF_PROP_LAST_MESSAGE]);
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

/* ---- source task ------------------------------------------------------------------------------- */

static void
push_frame (GstCudaStreamFilter * self, GstCsfFrame * frame)
{
  guint64 now = gst_util_get_timestamp ();
  guint64 pushing = gst_csf_stats_get_push_time (self->stats) - frame->push_time_before;
  guint64 under_way = now - frame->submit_time;
  GstFlowReturn flow;

  gst_csf_stats_retired (self->stats, under_way > pushing ? under_way - pushing : 0);
  flow = gst_pad_push (self->srcpad, gst_csf_frame_finish (frame));
  gst_csf_stats_add_push (self->stats, gst_util_get_timestamp () - now);
  publish_stats (self, FALSE);
  check_latency (self);
  if (flow == GST_FLOW_EOS) {
    /* Events still go on, a new segment may begin; frames do not. */
    self->downstream_eos = TRUE;
    g_mutex_lock (&self->lock);
    if (self->flow == GST_FLOW_OK)
      self->flow = GST_FLOW_EOS;
    g_mutex_unlock (&self->lock);
  } else if (flow < GST_FLOW_OK) {
    fail_downstream (self, flow);
  }
}

static void
retire_frame (GstCudaStreamFilter * self)
{
  csf_result result;
  csf_status status = csf_engine_retire (self->engine, &result);

  if (status == CSF_INTERRUPTED) {
    csf_queue_put_back (self->queue);
    return;
  }
  g_assert (status == CSF_OK);
  csf_queue_finish (self->queue, TRUE);
  if (result.discarded || self->downstream_eos) {
    gst_csf_frame_free (result.user);
  } else if (result.status != CSF_OK) {
    gst_csf_frame_free (result.user);
    fail_here (self, &result.error);
  } else {
    push_frame (self, result.user);
  }
}

static void
push_event (GstCudaStreamFilter * self, GstEvent * event)
{
  gboolean eos = GST_EVENT_TYPE (event) == GST_EVENT_EOS;

  if (GST_EVENT_TYPE (event) == GST_EVENT_STREAM_START
      || GST_EVENT_TYPE (event) == GST_EVENT_SEGMENT)
    self->downstream_eos = FALSE;
  if (eos)
    publish_stats (self, TRUE);
  gst_pad_push_event (self->srcpad, event);
}

static void
source_loop (gpointer user_data)
{
  GstCudaStreamFilter *self = user_data;
  guint64 begin = gst_util_get_timestamp ();
  GstFlowReturn flow;
  csf_item item;

  if (csf_queue_take (self->queue, &item) != CSF_OK) {
    gst_pad_pause_task (self->srcpad);
    return;
  }
  gst_csf_stats_add_idle (self->stats, gst_util_get_timestamp () - begin);
  switch (item.kind) {
    case ITEM_FRAME:
      retire_frame (self);
      break;
    case ITEM_EVENT:
      push_event (self, item.data);
      csf_queue_finish (self->queue, TRUE);
      break;
    case ITEM_QUERY:
      csf_queue_finish (self->queue, gst_pad_peer_query (self->srcpad, item.data));
      break;
    case ITEM_CAPS:
      flow = gst_csf_negotiate (self, item.data);
      if (flow == GST_FLOW_ERROR)
        fail_here (self, NULL);
      csf_queue_finish (self->queue, flow == GST_FLOW_OK);
      break;
    case ITEM_RECONFIGURE:
      if (!gst_csf_decide_allocation (self))
        fail_here (self, NULL);
      csf_queue_finish (self->queue, TRUE);
      break;
    default:
      g_assert_not_reached ();
  }
}

/* ---- sink thread ------------------------------------------------------------------------------- */

/* Parameters set while playing count from the next frame on; ones that cannot be used are reported and
 * the old ones stay. */
static void
update_params (GstCudaStreamFilter * self)
{
  gchar *text, *reason = NULL;

  if (self->segment.format == GST_FORMAT_TIME)
    gst_object_sync_values (GST_OBJECT (self), gst_segment_to_stream_time (&self->segment,
            GST_FORMAT_TIME, self->segment.position));
  GST_OBJECT_LOCK (self);
  if (self->params_serial == self->settings.params_serial) {
    GST_OBJECT_UNLOCK (self);
    return;
  }
  self->params_serial = self->settings.params_serial;
  text = g_strdup (self->settings.kernel_params);
  GST_OBJECT_UNLOCK (self);
  if (!gst_csf_parse_params (self->kernel, text, self->params, &reason))
    GST_ELEMENT_WARNING (self, RESOURCE, SETTINGS, ("%s; the parameters before stay in use", reason),
        (NULL));
  g_free (reason);
  g_free (text);
}

static gboolean
is_too_late (GstCudaStreamFilter * self, GstBuffer * buffer)
{
  GstClockTime time = GST_BUFFER_PTS (buffer), running, earliest;
  gboolean qos;

  GST_OBJECT_LOCK (self);
  qos = self->settings.qos;
  GST_OBJECT_UNLOCK (self);
  if (!qos || !GST_CLOCK_TIME_IS_VALID (time) || self->segment.format != GST_FORMAT_TIME)
    return FALSE;
  g_mutex_lock (&self->lock);
  earliest = self->earliest_time;
  g_mutex_unlock (&self->lock);
  running = gst_segment_to_running_time (&self->segment, GST_FORMAT_TIME, time);
  return GST_CLOCK_TIME_IS_VALID (earliest) && GST_CLOCK_TIME_IS_VALID (running)
      && running < earliest;
}

static void
report_drop (GstCudaStreamFilter * self, GstBuffer * buffer)
{
  GstClockTime time = GST_BUFFER_PTS (buffer);

  gst_csf_stats_dropped (self->stats);
  gst_element_post_message (GST_ELEMENT (self), gst_message_new_qos (GST_OBJECT (self), FALSE,
          gst_segment_to_running_time (&self->segment, GST_FORMAT_TIME, time),
          gst_segment_to_stream_time (&self->segment, GST_FORMAT_TIME, time), time,
          GST_BUFFER_DURATION (buffer)));
}

/* What a wait that was woken means for the caller. */
static GstFlowReturn
interrupted_flow (GstCudaStreamFilter * self)
{
  GstFlowReturn flow = get_flow (self);

  return flow == GST_FLOW_OK ? GST_FLOW_FLUSHING : flow;
}

static GstFlowReturn
submit (GstCudaStreamFilter * self, GstBuffer * input, GstBuffer * output)
{
  csf_job job = {
    .frame = self->frame_count,
    .params = self->params,
  };
  gchar *reason = NULL;
  GstCsfFrame *frame = gst_csf_frame_new (input, &self->input_info, output, &self->output_info,
      &self->input_layout, &self->output_layout, &job, &reason);
  csf_error error;
  csf_status status;
  bool staged;

  if (frame == NULL) {
    if (refuse_input (self))
      GST_ELEMENT_ERROR (self, STREAM, FORMAT, ("frame %" G_GUINT64_FORMAT ": %s", job.frame, reason),
          (NULL));
    g_free (reason);
    return GST_FLOW_ERROR;
  }
  job.in_pinned = gst_csf_video_frame_is_pinned (&frame->input_frame, self->hostpool);
  job.out_pinned = gst_csf_video_frame_is_pinned (&frame->output_frame, self->hostpool);
  frame->submit_time = gst_util_get_timestamp ();
  frame->push_time_before = gst_csf_stats_get_push_time (self->stats);
  gst_csf_stats_submitted (self->stats);
  status = csf_engine_submit (self->engine, &job, &staged, &error);
  if (status != CSF_OK) {
    gst_csf_frame_free (frame);
    if (refuse_input (self))
      gst_csf_post_error (self, &error);
    return GST_FLOW_ERROR;
  }
  if (staged)
    gst_csf_frame_release_input (frame);
  self->frame_count++;
  csf_queue_push_kept (self->queue, ITEM_FRAME, NULL);
  return GST_FLOW_OK;
}

static GstFlowReturn
gst_cuda_stream_filter_chain (GstPad * pad, GstObject * parent, GstBuffer * buffer)
{
  GstCudaStreamFilter *self = GST_CUDA_STREAM_FILTER (parent);
  GstFlowReturn flow = get_flow (self);
  GstBuffer *output = NULL;

  if (flow == GST_FLOW_OK && (self->engine == NULL || self->pool == NULL))
    flow = GST_FLOW_NOT_NEGOTIATED;
  if (flow != GST_FLOW_OK) {
    gst_buffer_unref (buffer);
    return flow;
  }
  if (GST_BUFFER_PTS_IS_VALID (buffer))
    self->segment.position = GST_BUFFER_PTS (buffer);
  if (is_too_late (self, buffer)) {
    report_drop (self, buffer);
    gst_buffer_unref (buffer);
    return GST_FLOW_OK;
  }
  update_params (self);
  if (gst_pad_check_reconfigure (self->srcpad)
      && csf_queue_push_wait (self->queue, ITEM_RECONFIGURE, NULL, NULL) != CSF_OK) {
    gst_pad_mark_reconfigure (self->srcpad);
    flow = interrupted_flow (self);
  }
  if (flow == GST_FLOW_OK && csf_engine_wait_free (self->engine) != CSF_OK)
    flow = interrupted_flow (self);
  if (flow == GST_FLOW_OK)
    flow = gst_buffer_pool_acquire_buffer (self->pool, &output, NULL);
  if (flow != GST_FLOW_OK) {
    gst_buffer_unref (buffer);
    return flow;
  }
  return submit (self, buffer, output);
}

static gboolean
queue_event (GstCudaStreamFilter * self, GstEvent * event)
{
  GstFlowReturn unseen;

  if (csf_queue_push (self->queue, ITEM_EVENT, event) == CSF_OK)
    return TRUE;
  /* Upstream may end without having seen that downstream failed it. */
  g_mutex_lock (&self->lock);
  unseen = self->flow_reported ? GST_FLOW_OK : self->flow;
  g_mutex_unlock (&self->lock);
  if (GST_EVENT_TYPE (event) == GST_EVENT_EOS && is_fatal (unseen))
    GST_ELEMENT_FLOW_ERROR (self, unseen);
  gst_event_unref (event);
  return FALSE;
}

static gboolean
queue_caps (GstCudaStreamFilter * self, GstEvent * event)
{
  gint result = FALSE;

  if (csf_queue_push_wait (self->queue, ITEM_CAPS, event, &result) != CSF_OK)
    result = FALSE;
  gst_event_unref (event);
  return result;
}

static void
begin_stream (GstCudaStreamFilter * self, GstEvent * event)
{
  if (GST_EVENT_TYPE (event) == GST_EVENT_SEGMENT)
    gst_event_copy_segment (event, &self->segment);
  g_mutex_lock (&self->lock);
  if (self->flow == GST_FLOW_EOS)
    self->flow = GST_FLOW_OK;
  self->eos_queued = FALSE;
  g_mutex_unlock (&self->lock);
}

static gboolean
gst_cuda_stream_filter_sink_event (GstPad * pad, GstObject * parent, GstEvent * event)
{
  GstCudaStreamFilter *self = GST_CUDA_STREAM_FILTER (parent);
  gboolean ok;

  switch (GST_EVENT_TYPE (event)) {
    case GST_EVENT_FLUSH_START:
      ok = gst_pad_push_event (self->srcpad, event);
      close_flow (self, GST_FLOW_FLUSHING, NULL);
      gst_pad_pause_task (self->srcpad);
      return ok;
    case GST_EVENT_FLUSH_STOP:
      /* Some send only this one, and nothing may follow it before the next segment. */
      close_flow (self, GST_FLOW_FLUSHING, NULL);
      gst_pad_pause_task (self->srcpad);
      ok = gst_pad_push_event (self->srcpad, event);
      gst_segment_init (&self->segment, GST_FORMAT_UNDEFINED);
      self->downstream_eos = FALSE;
      open_flow (self);
      if (GST_PAD_MODE (self->srcpad) == GST_PAD_MODE_PUSH)
        gst_pad_start_task (self->srcpad, source_loop, self, NULL);
      return ok;
    case GST_EVENT_CAPS:
      return queue_caps (self, event);
    case GST_EVENT_STREAM_START:
    case GST_EVENT_SEGMENT:
      begin_stream (self, event);
      return queue_event (self, event);
    case GST_EVENT_EOS:
      g_mutex_lock (&self->lock);
      self->eos_queued = TRUE;
      g_mutex_unlock (&self->lock);
      return queue_event (self, event);
    default:
      if (GST_EVENT_IS_SERIALIZED (event))
        return queue_event (self, event);
      return gst_pad_push_event (self->srcpad, event);
  }
}

/* ---- source pad -------------------------------------------------------------------------------- */

static gboolean
gst_cuda_stream_filter_src_event (GstPad * pad, GstObject * parent, GstEvent * event)
{
  GstCudaStreamFilter *self = GST_CUDA_STREAM_FILTER (parent);

  if (GST_EVENT_TYPE (event) == GST_EVENT_QOS) {
    GstClockTimeDiff diff;
    GstClockTime timestamp;

    gst_event_parse_qos (event, NULL, NULL, &diff, &timestamp);
    g_mutex_lock (&self->lock);
    if (!GST_CLOCK_TIME_IS_VALID (timestamp))
      self->earliest_time = GST_CLOCK_TIME_NONE;
    else if (diff > 0)
      /* Late by so much: catch up with as much again. */
      self->earliest_time = timestamp + 2 * diff;
    else
      self->earliest_time = -diff < (GstClockTimeDiff) timestamp ? timestamp + diff : 0;
    g_mutex_unlock (&self->lock);
  }
  return gst_pad_event_default (pad, parent, event);
}

static gboolean
gst_cuda_stream_filter_activate (GstPad * pad, GstObject * parent, GstPadMode mode,
    gboolean active)
{
  GstCudaStreamFilter *self = GST_CUDA_STREAM_FILTER (parent);

  if (mode != GST_PAD_MODE_PUSH)
    return FALSE;
  if (GST_PAD_IS_SINK (pad)) {
    if (!active)
      close_flow (self, GST_FLOW_FLUSHING, NULL);
    return TRUE;
  }
  if (active) {
    open_flow (self);
    return gst_pad_start_task (pad, source_loop, self, NULL);
  }
  close_flow (self, GST_FLOW_FLUSHING, NULL);
  return gst_pad_stop_task (pad);
}

/* ---- queries ----------------------------------------------------------------------------------- */

static gboolean
gst_cuda_stream_filter_query (GstPad * pad, GstObject * parent, GstQuery * query)
{
  GstCudaStreamFilter *self = GST_CUDA_STREAM_FILTER (parent);
  gint result = FALSE;

  switch (GST_QUERY_TYPE (query)) {
    case GST_QUERY_CAPS:
      return gst_csf_query_caps (self, pad, query);
    case GST_QUERY_ACCEPT_CAPS:
      return gst_csf_query_accept_caps (self, pad, query);
    case GST_QUERY_LATENCY:
      if (GST_PAD_IS_SRC (pad))
        return gst_csf_query_latency (self, query);
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
  if (csf_queue_push_wait (self->queue, ITEM_QUERY, query, &result) != CSF_OK)
    return FALSE;
  return result;
}

/* ---- element ----------------------------------------------------------------------------------- */

/* After a stop the frames' items outlive the frames. */
static void
empty_queue (GstCudaStreamFilter * self)
{
  csf_item item;

  csf_queue_flush (self->queue, drop_item, NULL);
  csf_queue_set_flushing (self->queue, FALSE);
  while (csf_queue_get_length (self->queue) > 0) {
    csf_queue_take (self->queue, &item);
    csf_queue_finish (self->queue, FALSE);
  }
  csf_queue_set_flushing (self->queue, TRUE);
}

static gboolean
probe (GstCudaStreamFilter * self)
{
  csf_error error;
  GstCsfBackend backend;
  gint id;

  GST_OBJECT_LOCK (self);
  backend = self->settings.backend;
  id = self->settings.cuda_device_id;
  GST_OBJECT_UNLOCK (self);
  if (backend != GST_CSF_BACKEND_CUDA
      || csf_device_probe (CSF_BACKEND_CUDA, id, &error) == CSF_OK)
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
  result = GST_ELEMENT_CLASS (gst_cuda_stream_filter_parent_class)->change_state (element, transition);
  /* A failed way up leaves the pads inactive and comes here no more. */
  if (transition == GST_STATE_CHANGE_PAUSED_TO_READY
      || (transition == GST_STATE_CHANGE_READY_TO_PAUSED && result == GST_STATE_CHANGE_FAILURE)) {
    gst_csf_stop (self);
    empty_queue (self);
  }
  return result;
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
  GstCaps *caps = gst_csf_template_caps ();

  GST_DEBUG_CATEGORY_INIT (gst_cuda_stream_filter_debug, "cudastreamfilter", 0,
      "frames through CUDA streams");
  object_class->set_property = gst_cuda_stream_filter_set_property;
  object_class->get_property = gst_cuda_stream_filter_get_property;
  object_class->finalize = gst_cuda_stream_filter_finalize;
  gst_csf_properties_install (object_class, specs);
  element_class->change_state = gst_cuda_stream_filter_change_state;
  add_pad_template (element_class, "sink", GST_PAD_SINK, caps);
  add_pad_template (element_class, "src", GST_PAD_SRC, caps);
  gst_caps_unref (caps);
  gst_element_class_set_static_metadata (element_class, "CUDA stream filter",
      "Filter/Effect/Video/Hardware",
      "Runs a kernel on video frames, overlapping upload, kernel and download on CUDA streams",
      "The cudastreamfilter developers");
  gst_type_mark_as_plugin_api (GST_TYPE_CSF_BACKEND, 0);
}

static GstPad *
add_pad (GstCudaStreamFilter * self, const gchar * name)
{
  GstPad *pad = gst_pad_new_from_template (gst_element_class_get_pad_template
      (GST_ELEMENT_GET_CLASS (self), name), name);

  gst_pad_set_query_function (pad, gst_cuda_stream_filter_query);
  gst_pad_set_activatemode_function (pad, gst_cuda_stream_filter_activate);
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
  self->flow = GST_FLOW_FLUSHING;
  csf_queue_set_flushing (self->queue, TRUE);
  gst_video_info_init (&self->input_info);
  gst_video_info_init (&self->output_info);

  self->sinkpad = add_pad (self, "sink");
  gst_pad_set_chain_function (self->sinkpad, gst_cuda_stream_filter_chain);
  gst_pad_set_event_function (self->sinkpad, gst_cuda_stream_filter_sink_event);
  self->srcpad = add_pad (self, "src");
  gst_pad_set_event_function (self->srcpad, gst_cuda_stream_filter_src_event);
}
