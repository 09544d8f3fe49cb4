/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the two streaming threads do.  The sink pad's thread submits frames to the engine; the source
 * pad's task retires them and pushes them on.  Between the two lies one ordered queue, so that no event
 * or query overtakes a frame.  Makes no driver calls. */
#include "gstcudastreamfilter.h"

#include <stdlib.h>

#include "engine/ranges.h"
#include "gstcsfmeta.h"
#include "gstcsfparams.h"

GST_DEBUG_CATEGORY_EXTERN (gst_cuda_stream_filter_debug);
#define GST_CAT_DEFAULT gst_cuda_stream_filter_debug

/* What the queue's items stand for. */
enum
{
  ITEM_FRAME,                   /* kept; no data: retire the engine's oldest job */
  ITEM_EVENT,                   /* GstEvent, owned */
  ITEM_CAPS,                    /* awaited; GstEvent of the waiter */
  ITEM_QUERY,                   /* awaited; GstQuery of the waiter */
  ITEM_RECONFIGURE,             /* awaited; no data */
  ITEM_KERNEL,                  /* awaited; GstCsfKernel of the waiter */
};

static void source_loop (gpointer user_data);

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
 * looks at no flow return any more.  reported: there is an error message of this. */
static gboolean
close_flow (GstCudaStreamFilter * self, GstFlowReturn flow, gboolean reported, gboolean * orphaned)
{
  gboolean first;

  g_mutex_lock (&self->lock);
  first = self->flow == GST_FLOW_OK || self->flow == GST_FLOW_EOS;
  if (first || flow == GST_FLOW_FLUSHING) {
    self->flow = flow;
    self->flow_reported = reported;
  }
  if (orphaned != NULL)
    *orphaned = self->eos_queued;
  if (self->engine != NULL)
    csf_engine_set_interrupted (self->engine, TRUE);
  csf_queue_set_flushing (self->queue, TRUE);
  g_mutex_unlock (&self->lock);
  return first;
}

static void
drop_item (void *context, csf_item item)
{
  gst_event_unref (item.data);
}

/* A flush ends segment and stream, but what is said of the stream stays true. */
static void
flush_item (void *context, csf_item item)
{
  GstCudaStreamFilter *self = context;
  GstEvent *event = item.data;

  if (GST_EVENT_IS_STICKY (event) && GST_EVENT_TYPE (event) != GST_EVENT_SEGMENT
      && GST_EVENT_TYPE (event) != GST_EVENT_EOS)
    gst_pad_store_sticky_event (self->srcpad, event);
  gst_event_unref (event);
}

/* Both threads stand still: what a flush drops goes, frames in flight stay to be retired unseen. */
static void
open_flow (GstCudaStreamFilter * self)
{
  csf_queue_flush (self->queue, flush_item, self);
  g_mutex_lock (&self->lock);
  self->flow = GST_FLOW_OK;
  self->eos_queued = FALSE;
  self->segments_pending = 0;
  self->earliest_time = GST_CLOCK_TIME_NONE;
  if (self->engine != NULL) {
    csf_engine_discard (self->engine);
    csf_engine_set_interrupted (self->engine, FALSE);
  }
  csf_queue_set_flushing (self->queue, FALSE);
  g_mutex_unlock (&self->lock);
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

  if (!close_flow (self, flow, FALSE, &orphaned))
    return;
  GST_DEBUG_OBJECT (self, "stopping with %s", gst_flow_get_name (flow));
  if (!is_fatal (flow))
    return;
  if (orphaned)
    GST_ELEMENT_FLOW_ERROR (self, flow);
  /* What is not linked may be again, and would find the EOS. */
  if (flow != GST_FLOW_NOT_LINKED)
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
  if (!close_flow (self, GST_FLOW_ERROR, TRUE, NULL))
    return;
  if (error != NULL)
    gst_csf_post_error (self, error);
  gst_pad_push_event (self->srcpad, gst_event_new_eos ());
}

/* Downstream was linked again: what stands in the queue goes on.  All under the lock, so that neither
 * thread sees half of it, and so that the task does not pause after it was started. */
void
gst_csf_reopen_if_not_linked (GstCudaStreamFilter * self)
{
  g_mutex_lock (&self->lock);
  if (self->flow == GST_FLOW_NOT_LINKED) {
    csf_queue_set_flushing (self->queue, FALSE);
    if (self->engine != NULL)
      csf_engine_set_interrupted (self->engine, FALSE);
    self->flow = GST_FLOW_OK;
    gst_pad_start_task (self->srcpad, source_loop, self, NULL);
  }
  g_mutex_unlock (&self->lock);
}

/* ---- source task ------------------------------------------------------------------------------- */

/* Whether downstream refuses a frame because it wants other ones by now, which the next frame can be. */
static gboolean
wants_other_frames (GstCudaStreamFilter * self)
{
  GstCaps *input, *current, *wanted;
  gboolean other;

  if (!gst_csf_kernel_converts (self->kernel))
    return FALSE;
  input = gst_pad_get_current_caps (self->sinkpad);
  current = gst_pad_get_current_caps (self->srcpad);
  wanted = input == NULL ? NULL :
      gst_csf_choose_output_caps (self, input, gst_csf_caps_are_cuda (current));
  other = wanted != NULL && !gst_caps_is_equal (wanted, current);
  gst_clear_caps (&input);
  gst_clear_caps (&current);
  gst_clear_caps (&wanted);
  return other;
}

static void
push_frame (GstCudaStreamFilter * self, const csf_result * result)
{
  GstCsfFrame *frame = result->user;
  csf_timeline_frame line = gst_csf_report_begin (frame, result);
  guint64 now = gst_util_get_timestamp ();
  GstFlowReturn flow;

  gst_csf_stats_retired (self->stats, frame->submit_time, frame->push_time_before, &result->times,
      csf_engine_get_in_flight (self->engine));
  csf_range_push ("push", result->frame);
  flow = gst_pad_push (self->srcpad, gst_csf_frame_finish (frame));
  csf_range_pop ();
  line.downstream = (csf_span) {.begin = now,.end = gst_util_get_timestamp () };
  gst_csf_stats_add_push (self->stats, line.downstream.end - now);
  gst_csf_report_frame (self, &line);
  gst_csf_report_stats (self, FALSE);
  if (flow == GST_FLOW_NOT_NEGOTIATED && wants_other_frames (self)) {
    guint64 processed, dropped;

    GST_INFO_OBJECT (self, "downstream takes this frame no more; the next is what it wants");
    gst_csf_stats_dropped (self->stats, &processed, &dropped);
    gst_pad_mark_reconfigure (self->srcpad);
  } else if (flow == GST_FLOW_EOS) {
    /* Events still go on, a new segment may begin; frames do not. */
    self->downstream_eos = TRUE;
    g_mutex_lock (&self->lock);
    if (self->flow == GST_FLOW_OK && self->segments_pending == 0)
      self->flow = GST_FLOW_EOS;
    g_mutex_unlock (&self->lock);
  } else if (flow < GST_FLOW_OK) {
    fail_downstream (self, flow);
  }
}

/* What the kernel found goes with the frame. */
static void
attach_records (GstCudaStreamFilter * self, const csf_result * result)
{
  GstCsfFrame *frame = result->user;
  const GstCsfRecords records = {
    .kernel = self->kernel,
    .records = result->records,
    .n = result->n_records,
    .wanted = result->records_wanted,
    .input_info = &self->format.input_info,
    .output_info = &self->format.output_info,
    .tracker = self->tracker,
  };

  if (self->kernel->record_size == 0)
    return;
  if (frame->begins_anew)
    gst_csf_tracker_reset (self->tracker);
  gst_csf_stats_add_clipped (self->stats, gst_csf_meta_attach_records (frame->output, &records));
  if (result->records_wanted <= result->n_records || self->said_max_records)
    return;
  self->said_max_records = TRUE;
  GST_ELEMENT_WARNING (self, RESOURCE, SETTINGS, ("kernel %s found %u in frame %" G_GUINT64_FORMAT
          ", and max-records is %u: the others are left out, here and in later frames",
          self->kernel->name, result->records_wanted, result->frame, result->n_records), (NULL));
}

static void
retire_frame (GstCudaStreamFilter * self)
{
  csf_result result;
  csf_status status = csf_engine_retire (self->engine, &result);

  if (status != CSF_OK)
    csf_queue_put_back (self->queue);
  if (status == CSF_ERROR_TIMEOUT) {
    self->hung = TRUE;
    fail_here (self, &result.error);
  }
  if (status == CSF_INTERRUPTED || status == CSF_ERROR_TIMEOUT)
    return;
  g_assert (status == CSF_OK);
  csf_queue_finish (self->queue, TRUE);
  if (result.discarded || self->downstream_eos || result.status != CSF_OK) {
    const csf_timeline_frame line = gst_csf_report_begin (result.user, &result);

    gst_csf_report_frame (self, &line);
    free (result.records);
    gst_csf_frame_free (result.user);
    if (!result.discarded && !self->downstream_eos)
      fail_here (self, &result.error);
  } else {
    attach_records (self, &result);
    push_frame (self, &result);
  }
}

static gboolean
begins_anew (GstEvent * event)
{
  return GST_EVENT_TYPE (event) == GST_EVENT_STREAM_START
      || GST_EVENT_TYPE (event) == GST_EVENT_SEGMENT;
}

static void
push_event (GstCudaStreamFilter * self, GstEvent * event)
{
  if (begins_anew (event)) {
    self->downstream_eos = FALSE;
    g_mutex_lock (&self->lock);
    if (self->segments_pending > 0)
      self->segments_pending--;
    g_mutex_unlock (&self->lock);
  }
  if (GST_EVENT_TYPE (event) == GST_EVENT_EOS)
    gst_csf_report_stats (self, TRUE);
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
    g_mutex_lock (&self->lock);
    if (self->flow != GST_FLOW_OK && self->flow != GST_FLOW_EOS)
      gst_pad_pause_task (self->srcpad);
    g_mutex_unlock (&self->lock);
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
      flow = gst_csf_renegotiate (self);
      if (flow == GST_FLOW_ERROR)
        fail_here (self, NULL);
      else if (flow == GST_FLOW_NOT_NEGOTIATED)
        fail_downstream (self, flow);
      csf_queue_finish (self->queue, flow == GST_FLOW_OK);
      break;
    case ITEM_KERNEL:
      csf_queue_finish (self->queue, gst_csf_swap_kernel (self, item.data));
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
  GstClockTime time = GST_CLOCK_TIME_NONE;

  if (self->segment.format == GST_FORMAT_TIME)
    time = gst_segment_to_stream_time (&self->segment, GST_FORMAT_TIME, self->segment.position);
  if (GST_CLOCK_TIME_IS_VALID (time))
    gst_object_sync_values (GST_OBJECT (self), time);
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

/* Another version of the kernel-file counts from the next frame on; one that cannot be used is reported
 * and the one before stays. */
static void
update_kernel (GstCudaStreamFilter * self)
{
  GstCsfKernelError error = { NULL, NULL, NULL };
  gboolean reload;

  GST_OBJECT_LOCK (self);
  reload = self->settings.reload;
  GST_OBJECT_UNLOCK (self);
  if (!reload || !gst_csf_kernel_is_file (&self->run))
    return;
  if (self->reload == NULL)
    self->reload = gst_csf_reload_new (&self->run, self->loaded, self->loader_device);
  if (self->new_kernel == NULL
      && gst_csf_reload_poll (self->reload, &self->new_kernel, &error) && self->new_kernel == NULL) {
    gst_element_message_full (GST_ELEMENT (self), GST_MESSAGE_WARNING, GST_RESOURCE_ERROR,
        GST_RESOURCE_ERROR_SETTINGS, g_strconcat (error.text, "; the version before goes on", NULL),
        g_strdup (error.log), __FILE__, GST_FUNCTION, __LINE__);
    gst_csf_kernel_error_clear (&error);
  }
  /* A flush may come between: then it is taken with the frame after. */
  if (self->new_kernel == NULL
      || csf_queue_push_wait (self->queue, ITEM_KERNEL, self->new_kernel, NULL) != CSF_OK)
    return;
  g_clear_pointer (&self->new_kernel, gst_csf_kernel_unref);
}

/* Drops a frame that would come too late, and says so as other elements do. */
static gboolean
drop_if_late (GstCudaStreamFilter * self, GstBuffer * buffer)
{
  GstClockTime time = GST_BUFFER_PTS (buffer), running, earliest;
  guint64 processed, dropped;
  GstMessage *message;
  gdouble proportion;
  gboolean qos;

  GST_OBJECT_LOCK (self);
  qos = self->settings.qos;
  GST_OBJECT_UNLOCK (self);
  if (!qos || !GST_CLOCK_TIME_IS_VALID (time) || self->segment.format != GST_FORMAT_TIME)
    return FALSE;
  g_mutex_lock (&self->lock);
  earliest = self->earliest_time;
  proportion = self->proportion;
  g_mutex_unlock (&self->lock);
  running = gst_segment_to_running_time (&self->segment, GST_FORMAT_TIME, time);
  if (!GST_CLOCK_TIME_IS_VALID (earliest) || !GST_CLOCK_TIME_IS_VALID (running)
      || running >= earliest)
    return FALSE;
  self->discont = TRUE;
  gst_csf_stats_dropped (self->stats, &processed, &dropped);
  message = gst_message_new_qos (GST_OBJECT (self), FALSE, running,
      gst_segment_to_stream_time (&self->segment, GST_FORMAT_TIME, time), time,
      GST_BUFFER_DURATION (buffer));
  gst_message_set_qos_values (message, GST_CLOCK_DIFF (running, earliest), proportion, 1000000);
  gst_message_set_qos_stats (message, GST_FORMAT_BUFFERS, processed, dropped);
  gst_element_post_message (GST_ELEMENT (self), message);
  return TRUE;
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
    .reset_state = self->reset_state || GST_BUFFER_IS_DISCONT (input),
  };
  gchar *reason = NULL;
  GstCsfFrame *frame = gst_csf_frame_new (&self->format, input, output, &job, &reason);
  csf_error error;
  csf_status status;
  bool staged;

  if (frame == NULL) {
    if (refuse_input (self))
      GST_ELEMENT_ERROR (self, STREAM, FORMAT, ("frame %" G_GUINT64_FORMAT ": %s", job.frame, reason),
          (NULL));
    g_free (reason);
    return get_flow (self);
  }
  if ((self->kernel->flags & CSFK_READS_REGIONS) != 0) {
    g_array_set_size (self->regions, 0);
    gst_csf_meta_get_regions (input, self->regions);
    job.regions = (const csfk_region *) (gpointer) self->regions->data;
    job.n_regions = self->regions->len;
  }
  if (self->discont)
    GST_BUFFER_FLAG_SET (output, GST_BUFFER_FLAG_DISCONT);
  self->discont = FALSE;
  frame->begins_anew = job.reset_state;
  frame->waited = self->waited;
  frame->submit_time = gst_util_get_timestamp ();
  frame->push_time_before = gst_csf_stats_get_push_time (self->stats);
  gst_csf_stats_submitted (self->stats);
  status = csf_engine_submit (self->engine, &job, &staged, &error);
  if (status != CSF_OK) {
    gst_csf_frame_free (frame);
    if (refuse_input (self))
      gst_csf_post_error (self, &error);
    return get_flow (self);
  }
  if (staged)
    gst_csf_frame_release_input (frame);
  self->reset_state = FALSE;
  self->frame_count++;
  csf_queue_push_kept (self->queue, ITEM_FRAME, NULL);
  return GST_FLOW_OK;
}

/* Takes the buffer. */
static GstFlowReturn
take_frame (GstCudaStreamFilter * self, GstBuffer * buffer)
{
  GstFlowReturn flow = GST_FLOW_OK;
  GstBuffer *output = NULL;
  gint done = FALSE;

  if (GST_BUFFER_PTS_IS_VALID (buffer))
    self->segment.position = GST_BUFFER_PTS (buffer);
  if (drop_if_late (self, buffer)) {
    gst_buffer_unref (buffer);
    return GST_FLOW_OK;
  }
  update_kernel (self);
  update_params (self);
  if (gst_pad_check_reconfigure (self->srcpad)
      && (csf_queue_push_wait (self->queue, ITEM_RECONFIGURE, NULL, &done) != CSF_OK || !done)) {
    gst_pad_mark_reconfigure (self->srcpad);
    flow = interrupted_flow (self);
  }
  if (flow == GST_FLOW_OK && csf_engine_wait_free (self->engine) != CSF_OK)
    flow = interrupted_flow (self);
  if (flow == GST_FLOW_OK) {
    flow = gst_buffer_pool_acquire_buffer (self->pool, &output, NULL);
    if (flow == GST_FLOW_ERROR && refuse_input (self))
      GST_ELEMENT_ERROR (self, RESOURCE, NO_SPACE_LEFT, ("no memory for another frame of %"
              G_GSIZE_FORMAT " bytes; lower num-streams, or let downstream hold fewer",
              GST_VIDEO_INFO_SIZE (&self->format.output_info)), (NULL));
  }
  if (flow != GST_FLOW_OK) {
    gst_buffer_unref (buffer);
    return flow;
  }
  return submit (self, buffer, output);
}

GstFlowReturn
gst_csf_chain (GstPad * pad, GstObject * parent, GstBuffer * buffer)
{
  GstCudaStreamFilter *self = GST_CUDA_STREAM_FILTER (parent);
  GstFlowReturn flow = get_flow (self);

  if (flow == GST_FLOW_OK && (self->engine == NULL || self->pool == NULL))
    flow = GST_FLOW_NOT_NEGOTIATED;
  if (flow != GST_FLOW_OK) {
    gst_buffer_unref (buffer);
    return flow;
  }
  self->waited = gst_csf_stats_enter (self->stats,
      csf_engine_get_in_flight (self->engine) < self->num_streams);
  flow = take_frame (self, buffer);
  gst_csf_stats_leave (self->stats);
  return flow;
}

static GstFlowReturn
queue_event (GstCudaStreamFilter * self, GstEvent * event)
{
  gboolean unseen;
  GstFlowReturn flow;

  if (csf_queue_push (self->queue, ITEM_EVENT, event) == CSF_OK)
    return GST_FLOW_OK;
  g_mutex_lock (&self->lock);
  unseen = !self->flow_reported;
  flow = self->flow == GST_FLOW_OK ? GST_FLOW_FLUSHING : self->flow;
  g_mutex_unlock (&self->lock);
  /* Upstream may end without having seen that downstream failed it: what an event returns is no flow
   * that elements look at. */
  if (GST_EVENT_TYPE (event) == GST_EVENT_EOS && unseen && is_fatal (flow))
    GST_ELEMENT_FLOW_ERROR (self, flow);
  gst_event_unref (event);
  return flow;
}

static GstFlowReturn
queue_caps (GstCudaStreamFilter * self, GstEvent * event)
{
  gint result = FALSE;
  csf_status status = csf_queue_push_wait (self->queue, ITEM_CAPS, event, &result);
  GstFlowReturn flow = GST_FLOW_OK;

  gst_event_unref (event);
  self->reset_state = TRUE;
  if (status != CSF_OK)
    return interrupted_flow (self);
  if (!result)
    flow = get_flow (self);
  return !result && flow == GST_FLOW_OK ? GST_FLOW_NOT_NEGOTIATED : flow;
}

static GstFlowReturn
begin_anew (GstCudaStreamFilter * self, GstEvent * event)
{
  if (GST_EVENT_TYPE (event) == GST_EVENT_SEGMENT)
    gst_event_copy_segment (event, &self->segment);
  g_mutex_lock (&self->lock);
  if (self->flow == GST_FLOW_EOS)
    self->flow = GST_FLOW_OK;
  self->eos_queued = FALSE;
  self->segments_pending++;
  g_mutex_unlock (&self->lock);
  return queue_event (self, event);
}

static void
flush_stop (GstCudaStreamFilter * self, GstEvent * event)
{
  /* Some send only this one, and nothing may follow it before the next segment. */
  close_flow (self, GST_FLOW_FLUSHING, FALSE, NULL);
  gst_pad_pause_task (self->srcpad);
  gst_pad_push_event (self->srcpad, event);
  gst_segment_init (&self->segment, GST_FORMAT_UNDEFINED);
  self->downstream_eos = FALSE;
  self->reset_state = TRUE;
  open_flow (self);
  if (GST_PAD_MODE (self->srcpad) == GST_PAD_MODE_PUSH)
    gst_pad_start_task (self->srcpad, source_loop, self, NULL);
}

/* Refused events return the flow: a plain FALSE would be an error where there is only a flush. */
GstFlowReturn
gst_csf_sink_event (GstPad * pad, GstObject * parent, GstEvent * event)
{
  GstCudaStreamFilter *self = GST_CUDA_STREAM_FILTER (parent);

  switch (GST_EVENT_TYPE (event)) {
    case GST_EVENT_FLUSH_START:
      gst_pad_push_event (self->srcpad, event);
      close_flow (self, GST_FLOW_FLUSHING, FALSE, NULL);
      gst_pad_pause_task (self->srcpad);
      return GST_FLOW_OK;
    case GST_EVENT_FLUSH_STOP:
      flush_stop (self, event);
      return GST_FLOW_OK;
    case GST_EVENT_CAPS:
      return queue_caps (self, event);
    case GST_EVENT_STREAM_START:
    case GST_EVENT_SEGMENT:
      return begin_anew (self, event);
    case GST_EVENT_EOS:
      g_mutex_lock (&self->lock);
      self->eos_queued = TRUE;
      g_mutex_unlock (&self->lock);
      return queue_event (self, event);
    default:
      if (GST_EVENT_IS_SERIALIZED (event))
        return queue_event (self, event);
      return gst_pad_push_event (self->srcpad, event) ? GST_FLOW_OK : GST_FLOW_ERROR;
  }
}

gboolean
gst_csf_await_query (GstCudaStreamFilter * self, GstQuery * query)
{
  gint result = FALSE;

  return csf_queue_push_wait (self->queue, ITEM_QUERY, query, &result) == CSF_OK && result;
}

/* ---- starting and stopping --------------------------------------------------------------------- */

gboolean
gst_csf_activate (GstPad * pad, GstObject * parent, GstPadMode mode,
    gboolean active)
{
  GstCudaStreamFilter *self = GST_CUDA_STREAM_FILTER (parent);

  if (mode != GST_PAD_MODE_PUSH)
    return FALSE;
  if (GST_PAD_IS_SINK (pad)) {
    if (!active)
      close_flow (self, GST_FLOW_FLUSHING, FALSE, NULL);
    return TRUE;
  }
  if (active) {
    open_flow (self);
    return gst_pad_start_task (pad, source_loop, self, NULL);
  }
  close_flow (self, GST_FLOW_FLUSHING, FALSE, NULL);
  return gst_pad_stop_task (pad);
}

/* After a stop the frames' items outlive the frames. */
void
gst_csf_empty_queue (GstCudaStreamFilter * self)
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
