/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Whose CUDA context the element works in, that nothing of it stays, and what happens when the
 * device fails with CUDA memory about.  Pictures are test_cudamemory's subject. */
#include <string.h>

#include "cudarig.h"

#define BETWEEN "! X name=a num-streams=2 ! " CUDA_CAPS " ! X name=b num-streams=2 " \
  "! " SYSTEM_CAPS " ! fakesink name=sink"
#define SOURCE "videotestsrc num-buffers=5 ! video/x-raw,format=NV12,width=64,height=48 "

/* As many messages of the context protocol as there are. */
static guint
count_context_messages (Rig * rig)
{
  return rig_count_messages (rig, GST_MESSAGE_NEED_CONTEXT | GST_MESSAGE_HAVE_CONTEXT);
}

static void
check_works_in (Rig * rig, GstCudaContext * context)
{
  GstBufferPool *pool;
  GstBuffer *out;

  ck_assert (rig_take_caps (rig, cuda_caps_new (TRUE, "NV12", 64, 48)));
  pool = cuda_pool_new (context, &rig->info, 0);
  for (guint n = 0; n < 4; n++)
    cuda_check_frame (rig, pool, "copy");
  ck_assert_int_eq (rig_push (rig, cuda_pool_take (pool)), GST_FLOW_OK);
  out = rig_pull (rig);
  ck_assert (((GstCudaMemory *) gst_buffer_peek_memory (out, 0))->context == context);
  gst_buffer_unref (out);
  ck_assert_uint_eq (stats_uint64 (rig->x, "host-copies"), 0);
  if (fake != NULL) {
    ck_assert_uint_eq (fake_counters ().contexts, 1);
    ck_assert_uint_eq (fake_counters ().primary_references, 0);
  }
  cuda_pool_free (pool);
}

/* ---- where it comes from --------------------------------------------------------------------- */

START_TEST (the_application_gives_it_beforehand)
{
  GstCudaContext *context = cuda_context_new (0);
  Rig *rig = rig_new ("num-streams=2");

  cuda_context_give (rig->x, context);
  check_works_in (rig, context);
  ck_assert_uint_eq (count_context_messages (rig), 0);
  /* It stays the element's for the next start. */
  gst_element_set_state (rig->x, GST_STATE_READY);
  rig_free (rig);
  ASSERT_OBJECT_REFCOUNT (context, "context", 1);
  gst_object_unref (context);
}

END_TEST

static GstBusSyncReply
answer_need (GstBus * bus, GstMessage * message, gpointer user_data)
{
  const gchar *type;

  if (GST_MESSAGE_TYPE (message) != GST_MESSAGE_NEED_CONTEXT)
    return GST_BUS_PASS;
  gst_message_parse_context_type (message, &type);
  if (g_strcmp0 (type, GST_CUDA_CONTEXT_TYPE) == 0)
    cuda_context_give (GST_ELEMENT (GST_MESSAGE_SRC (message)), user_data);
  return GST_BUS_PASS;
}

START_TEST (the_application_gives_it_when_asked)
{
  GstCudaContext *context = cuda_context_new (0);
  Rig *rig = rig_new ("num-streams=2");

  gst_bus_set_sync_handler (rig->bus, answer_need, context, NULL);
  check_works_in (rig, context);
  ck_assert_uint_eq (rig_count_messages (rig, GST_MESSAGE_NEED_CONTEXT), 1);
  ck_assert_uint_eq (rig_count_messages (rig, GST_MESSAGE_HAVE_CONTEXT), 0);
  rig_free (rig);
  ASSERT_OBJECT_REFCOUNT (context, "context", 1);
  gst_object_unref (context);
}

END_TEST

static GstPadProbeReturn
answer_query (GstPad * pad, GstPadProbeInfo * info, gpointer user_data)
{
  GstQuery *query = GST_PAD_PROBE_INFO_QUERY (info);
  const gchar *type;
  GstContext *carrier;

  if (GST_QUERY_TYPE (query) != GST_QUERY_CONTEXT)
    return GST_PAD_PROBE_OK;
  gst_query_parse_context_type (query, &type);
  if (g_strcmp0 (type, GST_CUDA_CONTEXT_TYPE) != 0)
    return GST_PAD_PROBE_OK;
  carrier = gst_context_new_cuda_context (user_data);
  gst_query_set_context (query, carrier);
  gst_context_unref (carrier);
  return GST_PAD_PROBE_HANDLED;
}

START_TEST (a_neighbour_has_it)
{
  GstCudaContext *context = cuda_context_new (0);
  Rig *rig = rig_new ("num-streams=2");

  gst_pad_add_probe (_i == 0 ? rig->h->srcpad : rig->h->sinkpad,
      GST_PAD_PROBE_TYPE_QUERY_BOTH | GST_PAD_PROBE_TYPE_PUSH, answer_query, context, NULL);
  check_works_in (rig, context);
  ck_assert_uint_eq (count_context_messages (rig), 0);
  rig_free (rig);
  ASSERT_OBJECT_REFCOUNT (context, "context", 1);
  gst_object_unref (context);
}

END_TEST

static GstCudaContext *
context_of_message (GstMessage * message, Rig * rig)
{
  GstElement *taker = gst_element_factory_make ("identity", NULL);
  GstCudaContext *found = NULL;
  GstContext *carrier;

  gst_message_parse_have_context (message, &carrier);
  ck_assert (gst_cuda_handle_set_context (taker, carrier, -1, &found));
  ck_assert (found != NULL);
  gst_context_unref (carrier);
  gst_object_unref (taker);
  return found;
}

/* Nobody has one: the device's primary context, which code of the runtime API in this process has
 * as well, and everybody is told. */
START_TEST (nobody_has_it_so_the_primary_one_is_offered)
{
  Rig *rig = rig_new ("num-streams=2");
  GstCudaContext *context;
  GstBufferPool *pool;
  GstMessage *message;
  GstQuery *query = gst_query_new_context (GST_CUDA_CONTEXT_TYPE);

  ck_assert (gst_cuda_load_library ());
  ck_assert (!gst_pad_peer_query (rig->h->srcpad, query));
  ck_assert (rig_take_caps (rig, cuda_caps_new (TRUE, "NV12", 64, 48)));
  message = gst_bus_pop_filtered (rig->bus, GST_MESSAGE_HAVE_CONTEXT);
  ck_assert (message != NULL);
  context = context_of_message (message, rig);
  gst_message_unref (message);
  if (fake != NULL) {
    ck_assert_uint_ge (fake_counters ().primary_references, 1);
    ck_assert_uint_eq (fake_counters ().contexts, 1);
  }
  /* Neighbours that ask get the same. */
  ck_assert (gst_pad_peer_query (rig->h->srcpad, query));
  ck_assert (gst_pad_peer_query (rig->h->sinkpad, query));
  pool = cuda_pool_new (context, &rig->info, 0);
  for (guint n = 0; n < 4; n++)
    cuda_check_frame (rig, pool, "copy");
  ck_assert_uint_eq (stats_uint64 (rig->x, "host-copies"), 0);
  cuda_pool_free (pool);
  gst_query_unref (query);
  gst_object_unref (context);
  rig_free (rig);
}

END_TEST

/* It lives as long as anybody has a use for it. */
START_TEST (the_primary_one_outlives_the_element)
{
  Rig *rig = rig_new ("num-streams=2");
  GstCudaContext *context;
  GstBufferPool *pool;
  GstVideoInfo info;
  GstMessage *message;

  ck_assert (rig_take_caps (rig, cuda_caps_new (TRUE, "NV12", 64, 48)));
  info = rig->info;
  message = gst_bus_pop_filtered (rig->bus, GST_MESSAGE_HAVE_CONTEXT);
  context = context_of_message (message, rig);
  gst_message_unref (message);
  rig_free (rig);
  pool = cuda_pool_new (context, &info, 0);
  gst_buffer_unref (cuda_pool_take (pool));
  if (fake != NULL)
    ck_assert_uint_eq (fake_counters ().contexts, 1);
  cuda_pool_free (pool);
  gst_object_unref (context);
}

END_TEST

START_TEST (system_memory_alone_asks_for_none)
{
  Rig *rig = rig_new ("num-streams=2");

  rig_set_caps (rig, "NV12", 64, 48);
  cuda_check_frame (rig, NULL, "copy");
  gst_element_set_state (rig->x, GST_STATE_NULL);
  ck_assert_uint_eq (count_context_messages (rig), 0);
  rig_free (rig);
}

END_TEST

/* ---- balance --------------------------------------------------------------------------------- */

static void
check_as_before (const fake_cuda_counters * before)
{
  fake_cuda_counters after = fake_counters ();

  ck_assert_uint_eq (after.device_bytes, before->device_bytes);
  ck_assert_uint_eq (after.pinned_bytes, before->pinned_bytes);
  ck_assert_uint_eq (after.contexts, before->contexts);
  ck_assert_uint_eq (after.streams, before->streams);
  ck_assert_uint_eq (after.events, before->events);
  ck_assert_uint_eq (after.modules, before->modules);
  ck_assert_uint_eq (after.primary_references, before->primary_references);
  ck_assert_uint_eq (after.orphans, 0);
}

static void
run_to_null (GstElement * pipeline, Counter * counter)
{
  guint before = counter_get (counter);

  pipeline_run (pipeline);
  ck_assert_uint_eq (counter_get (counter) - before, 5);
  pipeline_set_state (pipeline, GST_STATE_NULL);
}

/* Trial gst-wayland-display PR 42.  A context that was offered is kept by the bin for the next
 * start, as GStreamer has it, so the first session sets the mark. */
START_TEST (fifty_sessions_leave_nothing_behind)
{
  GstElement *pipeline = pipeline_new (SOURCE BETWEEN);
  Counter *counter = counter_new (pipeline, "sink", "sink");
  GstCudaContext *context = _i == 0 ? NULL : cuda_context_new (0);
  fake_cuda_counters before;

  if (context != NULL)
    cuda_context_give (pipeline, context);
  run_to_null (pipeline, counter);
  before = fake_counters ();
  ck_assert_uint_eq (before.device_bytes, 0);
  ck_assert_uint_eq (before.streams, 0);
  ck_assert_uint_le (before.contexts, 1);
  for (guint n = 0; n < 50; n++) {
    run_to_null (pipeline, counter);
    check_as_before (&before);
  }
  pipeline_free (pipeline);
  counter_free (counter);
  if (context != NULL) {
    ASSERT_OBJECT_REFCOUNT (context, "context", 1);
    gst_object_unref (context);
  }
}

END_TEST

START_TEST (null_at_a_random_moment_leaves_nothing_behind)
{
  GstElement *pipeline = pipeline_new ("videotestsrc "
      "! video/x-raw,format=NV12,width=64,height=48 " BETWEEN);
  Counter *counter = counter_new (pipeline, "sink", "sink");
  fake_cuda_counters before;

  pipeline_play (pipeline);
  counter_wait (counter, 1);
  pipeline_set_state (pipeline, GST_STATE_NULL);
  before = fake_counters ();
  for (guint n = 0; n < 50; n++) {
    guint moment = counter_get (counter) + test_random (8);

    pipeline_play (pipeline);
    counter_wait (counter, moment);
    pipeline_set_state (pipeline, GST_STATE_NULL);
    check_as_before (&before);
  }
  pipeline_free (pipeline);
  counter_free (counter);
}

END_TEST

START_TEST (pipelines_one_after_another_share_one_context)
{
  GstCudaContext *context = cuda_context_new (0);
  fake_cuda_counters before = fake_counters ();

  for (guint n = 0; n < 3; n++) {
    GstElement *pipeline = pipeline_new (SOURCE BETWEEN);
    Counter *counter = counter_new (pipeline, "sink", "sink");

    cuda_context_give (pipeline, context);
    run_to_null (pipeline, counter);
    ck_assert_uint_eq (fake_counters ().primary_references, 0);
    pipeline_free (pipeline);
    counter_free (counter);
    ASSERT_OBJECT_REFCOUNT (context, "context", 1);
    check_as_before (&before);
  }
  gst_object_unref (context);
}

END_TEST

/* Trial gst-wayland-display PR 36: the element re-enters set_context, double unref. */
START_TEST (context_may_be_set_at_any_time_and_again)
{
  GstCudaContext *context = cuda_context_new (0), *other = cuda_context_new (0);
  Rig *rig = rig_new ("num-streams=2");
  GstContext *stranger = gst_context_new ("some.other.context", FALSE);

  gst_bus_set_sync_handler (rig->bus, answer_need, context, NULL);
  for (guint n = 0; n < 20; n++) {
    GstBufferPool *pool;

    gst_element_set_state (rig->x, GST_STATE_NULL);
    cuda_context_give (rig->x, n % 2 == 0 ? context : other);
    gst_element_set_context (rig->x, stranger);
    gst_element_set_state (rig->x, GST_STATE_PLAYING);
    cuda_context_give (rig->x, n % 3 == 0 ? context : other);
    /* A rig's harness sends again what begins a stream. */
    ck_assert (rig_push_event (rig, gst_event_new_stream_start ("again")));
    ck_assert (rig_take_caps (rig, cuda_caps_new (TRUE, "RGBA", 32, 24)));
    {
      GstSegment segment;

      gst_segment_init (&segment, GST_FORMAT_TIME);
      ck_assert (rig_push_event (rig, gst_event_new_segment (&segment)));
    }
    pool = cuda_pool_new (n % 3 == 0 ? context : other, &rig->info, 0);
    cuda_check_frame (rig, pool, "copy");
    /* Too late for this start: nothing changes under the frames. */
    cuda_context_give (rig->x, context);
    cuda_check_frame (rig, pool, "copy");
    cuda_pool_free (pool);
  }
  gst_context_unref (stranger);
  rig_free (rig);
  ASSERT_OBJECT_REFCOUNT (context, "context", 1);
  ASSERT_OBJECT_REFCOUNT (other, "other", 1);
  gst_object_unref (context);
  gst_object_unref (other);
}

END_TEST

/* ---- two devices ----------------------------------------------------------------------------- */

/* The element is told device 1, everybody else is on device 0.  Either is fine: the right pixels,
 * or one error. */
START_TEST (a_context_of_another_device_is_an_error_or_bridged)
{
  GstCudaContext *context;
  Rig *rig;
  GstBufferPool *pool;
  GstBuffer *in, *out;
  GstFlowReturn flow;

  fake_setting ("DEVICES", 2);
  context = cuda_context_new (0);
  rig = rig_new ("num-streams=2 cuda-device-id=1 kernel=sobel");
  gst_harness_set_sink_caps_str (rig->h, _i == 0 ? CUDA_CAPS : SYSTEM_CAPS);
  cuda_context_give (rig->x, context);
  rig_take_caps (rig, cuda_caps_new (TRUE, "NV12", 64, 48));
  pool = cuda_pool_new (context, &rig->info, 0);
  for (guint n = 0; n < 10; n++) {
    in = cuda_pool_take (pool);
    flow = rig_push (rig, gst_buffer_ref (in));
    if (flow != GST_FLOW_OK) {
      gst_buffer_unref (in);
      expect_one_error (rig->bus, rig->x, "device", NULL);
      break;
    }
    out = rig_pull (rig);
    cuda_check (&rig->info, "sobel", in, out);
    gst_buffer_unref (out);
    gst_buffer_unref (in);
  }
  cuda_pool_free (pool);
  rig_free (rig);
  ASSERT_OBJECT_REFCOUNT (context, "context", 1);
  gst_object_unref (context);
}

END_TEST

START_TEST (the_context_of_the_right_device_is_taken)
{
  GstCudaContext *contexts[2];
  Rig *rig;
  GstBufferPool *pool;
  GstStructure *stats = NULL;

  fake_setting ("DEVICES", 2);
  for (guint d = 0; d < 2; d++)
    contexts[d] = cuda_context_new (d);
  rig = rig_new ("num-streams=2 cuda-device-id=1");
  cuda_context_give (rig->x, contexts[0]);
  cuda_context_give (rig->x, contexts[1]);
  rig_take_caps (rig, cuda_caps_new (TRUE, "NV12", 64, 48));
  pool = cuda_pool_new (contexts[1], &rig->info, 0);
  cuda_check_frame (rig, pool, "copy");
  ck_assert_uint_eq (stats_uint64 (rig->x, "host-copies"), 0);
  ck_assert_uint_eq (fake_counters ().primary_references, 0);
  cuda_pool_free (pool);
  g_object_get (rig->x, "stats", &stats, NULL);
  ck_assert (strstr (gst_structure_get_string (stats, "device"), "1") != NULL);
  gst_structure_free (stats);
  rig_free (rig);
  for (guint d = 0; d < 2; d++)
    gst_object_unref (contexts[d]);
}

END_TEST

/* Downstream keeps what it gets until the device has no memory for one more frame. */
START_TEST (device_memory_that_runs_out_is_one_error)
{
  GstCudaContext *context = cuda_context_new (0);
  Rig *rig = rig_new ("num-streams=2");
  GstFlowReturn flow = GST_FLOW_OK;
  guint n;

  gst_harness_set_sink_caps_str (rig->h, CUDA_CAPS);
  cuda_context_give (rig->x, context);
  rig_take_caps (rig, cuda_caps_new (FALSE, "NV12", 64, 48));
  fake_setting ("MEMORY", 2 << 20);
  for (n = 0; n < 500 && flow == GST_FLOW_OK; n++)
    flow = rig_push (rig, rig_frame (rig, n));
  ck_assert_int_eq (flow, GST_FLOW_ERROR);
  expect_one_error (rig->bus, rig->x, "memory", NULL);
  /* What came before is whole. */
  gst_element_set_state (rig->x, GST_STATE_NULL);
  fake_setting ("MEMORY", 1 << 30);
  rig_free (rig);
  gst_object_unref (context);
}

END_TEST

/* ---- a device that fails --------------------------------------------------------------------- */

static void
expect_all_gone (guint k)
{
  fake_cuda_counters left = fake_counters ();

  ck_assert_msg (left.contexts == 0 && left.primary_references == 0 && left.running == 0,
      "%u: %u contexts, %u primary references, %u operations are left after %s failed", k,
      left.contexts, (guint) left.primary_references, left.running, left.failed_call);
}

START_TEST (device_failure_is_one_error_and_a_new_pipeline_plays)
{
  for (guint k = 1; k <= 12; k++) {
    GstElement *pipeline = pipeline_new (SOURCE "! X name=x num-streams=2 ! " CUDA_CAPS
        " ! fakesink");

    fake_setting ("ASYNC_FAIL_AT", k);
    /* Five frames are ten operations. */
    if (k <= 10)
      pipeline_expect_error (pipeline, "copy", "frame", NULL);
    else
      pipeline_run (pipeline);
    fake_setting ("ASYNC_FAIL_AT", 0);
    pipeline_free (pipeline);
    expect_all_gone (k);
    pipeline = pipeline_new (SOURCE BETWEEN);
    pipeline_run (pipeline);
    pipeline_free (pipeline);
  }
}

END_TEST

/* Once the device is well again the same pipeline plays, though its bin kept the broken context. */
START_TEST (the_same_pipeline_plays_again_after_a_device_failure)
{
  GstElement *pipeline = pipeline_new (SOURCE "! X name=x num-streams=2 ! " CUDA_CAPS
      " ! fakesink");

  for (guint n = 0; n < 5; n++) {
    fake_setting ("ASYNC_FAIL_AT", 5);
    pipeline_expect_error (pipeline, "copy", "frame", NULL);
    pipeline_run (pipeline);
    gst_element_set_state (pipeline, GST_STATE_NULL);
  }
  pipeline_free (pipeline);
}

END_TEST

/* Two elements share the context that breaks: no hang, an error, and all of it goes. */
START_TEST (device_failure_between_two_elements_ends_the_pipeline)
{
  for (guint k = 1; k <= 20; k += 1 + test_random (3)) {
    GstElement *pipeline = pipeline_new (SOURCE BETWEEN);

    fake_setting ("ASYNC_FAIL_AT", k);
    pipeline_play (pipeline);
    ck_assert_int_eq (pipeline_wait (pipeline), GST_MESSAGE_ERROR);
    fake_setting ("ASYNC_FAIL_AT", 0);
    pipeline_free (pipeline);
    expect_all_gone (k);
  }
}

END_TEST

/* Plays with the k-th driver call failing.  TRUE: it ended in an error. */
static gboolean
run_with_failure (guint k)
{
  GstElement *pipeline = pipeline_new ("videotestsrc num-buffers=3 "
      "! video/x-raw,format=NV12,width=32,height=24 " BETWEEN);
  gboolean failed;

  fake_setting ("FAIL_AT", k);
  failed = gst_element_set_state (pipeline, GST_STATE_PLAYING) == GST_STATE_CHANGE_FAILURE
      || pipeline_wait (pipeline) == GST_MESSAGE_ERROR;
  gst_element_set_state (pipeline, GST_STATE_NULL);
  fake_setting ("FAIL_AT", 0);
  pipeline_free (pipeline);
  expect_all_gone (k);
  return failed;
}

/* System to CUDA to system, with every driver call failing once: no crash, no hang, nothing left
 * running, and a run without failures succeeds afterwards.  libgstcuda's own calls are among them;
 * it leaves contexts that it could not enter, so misuse is told here but does not abort. */
START_TEST (any_driver_call_may_fail)
{
  GstElement *pipeline;
  guint64 injected;
  guint k = 0, errors = 0;

  /* What libgstcuda does once in a process it does badly when it fails. */
  gst_object_unref (cuda_context_new (0));
  fake_setting ("DELAY_US", 0);
  fake_setting ("ABORT", 0);
  if (_i == 1) {
    fake_setting ("FAIL_STICKY", 1);
    fake_setting ("FAIL_CODE", 700);
  }
  do {
    injected = fake_counters ().injected;
    errors += run_with_failure (++k);
  } while (fake_counters ().injected > injected && k < 3000);
  ck_assert_uint_gt (k, 50);
  ck_assert_uint_gt (errors, 20);
  pipeline = pipeline_new (SOURCE BETWEEN);
  pipeline_run (pipeline);
  pipeline_free (pipeline);
}

END_TEST

/* Lost contexts take their objects with them, so only what cannot be excused is looked at. */
static void
check_contexts (void)
{
  ck_assert_uint_eq (fake_counters ().running, 0);
  ck_assert_uint_eq (fake_counters ().primary_references, 0);
  ck_assert_uint_eq (fake_counters ().contexts, 0);
}

static void
check_misuse (void)
{
  ck_assert_uint_eq (fake_counters ().misuse, 0);
  check_contexts ();
}

static void
add_fault_tests (Suite * suite)
{
  TCase *tests = cuda_test_case (suite, "devices"), *faults = tcase_create ("faults");
  TCase *sweep = tcase_create ("sweep");

  tcase_add_loop_test (tests, a_context_of_another_device_is_an_error_or_bridged, 0, 2);
  tcase_add_test (tests, the_context_of_the_right_device_is_taken);
  tcase_add_test (tests, device_memory_that_runs_out_is_one_error);
  tcase_set_timeout (faults, 200);
  tcase_add_checked_fixture (faults, NULL, check_misuse);
  suite_add_tcase (suite, faults);
  tcase_add_test (faults, device_failure_is_one_error_and_a_new_pipeline_plays);
  tcase_add_test (faults, the_same_pipeline_plays_again_after_a_device_failure);
  tcase_add_test (faults, device_failure_between_two_elements_ends_the_pipeline);
  tcase_set_timeout (sweep, 200);
  tcase_add_checked_fixture (sweep, NULL, check_contexts);
  suite_add_tcase (suite, sweep);
  tcase_add_loop_test (sweep, any_driver_call_may_fail, 0, 2);
}

static Suite *
cudacontext_suite (void)
{
  Suite *suite = suite_create ("cudacontext");
  TCase *tests = cuda_test_case (suite, "cudacontext");

  tcase_add_test (tests, the_application_gives_it_beforehand);
  tcase_add_test (tests, the_application_gives_it_when_asked);
  tcase_add_loop_test (tests, a_neighbour_has_it, 0, 2);
  tcase_add_test (tests, nobody_has_it_so_the_primary_one_is_offered);
  tcase_add_test (tests, the_primary_one_outlives_the_element);
  tcase_add_test (tests, system_memory_alone_asks_for_none);
  tcase_add_loop_test (tests, fifty_sessions_leave_nothing_behind, 0, 2);
  tcase_add_test (tests, null_at_a_random_moment_leaves_nothing_behind);
  tcase_add_test (tests, pipelines_one_after_another_share_one_context);
  tcase_add_test (tests, context_may_be_set_at_any_time_and_again);
  if (fake != NULL)
    add_fault_tests (suite);
  return suite;
}

int
main (int argc, char **argv)
{
  return test_main (argc, argv, cudacontext_suite);
}
