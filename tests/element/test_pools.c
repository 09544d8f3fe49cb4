/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Who copies what: pinned buffers offered to both sides, upstream's own memory that is
 * registered once it comes back, the bound on pinned memory, and buffers that downstream keeps.
 * What only a device that pins can show is asked of the cuda backend alone. */
#include "element.h"
#include "picture.h"

/* ---- zero copy ------------------------------------------------------------------------------- */

START_TEST (upstream_that_takes_the_pool_costs_no_host_copy)
{
  GstElement *pipeline = pipeline_new ("videotestsrc num-buffers=100 "
      "! video/x-raw,format=NV12,width=64,height=48 ! X name=x num-streams=3 ! fakesink");
  GstElement *x = pipeline_get (pipeline, "x");

  pipeline_run (pipeline);
  ck_assert_uint_eq (stats_uint64 (x, "processed"), 100);
  ck_assert_uint_eq (stats_uint64 (x, "host-copies"), 0);
  ck_assert_uint_eq (stats_uint64 (x, "pool-growths"), 0);
  ck_assert_uint_eq (fake_counters ().pageable_copies, 0);
  pipeline_free (pipeline);
}

END_TEST

START_TEST (two_elements_in_a_row_cost_no_host_copy)
{
  GstElement *pipeline = pipeline_new ("videotestsrc num-buffers=60 "
      "! video/x-raw,format=RGBA,width=64,height=48 ! X name=a kernel=sobel ! X name=b ! fakesink");

  pipeline_run (pipeline);
  ck_assert_uint_eq (stats_uint64 (pipeline_get (pipeline, "a"), "host-copies"), 0);
  ck_assert_uint_eq (stats_uint64 (pipeline_get (pipeline, "b"), "host-copies"), 0);
  pipeline_free (pipeline);
}

END_TEST

/* Memories that share a page cannot be registered each for itself, so these do not: they begin
 * on a page, and callers choose sizes of whole pages. */
/* Upstream's memory is staged so often before the element takes it for memory that comes back. */
#define STAGINGS 3

static GstBufferPool *
system_pool (Rig * rig, guint number)
{
  const GstAllocationParams whole_pages = {.align = 4095 };

  GstBufferPool *pool = gst_buffer_pool_new ();
  GstStructure *config = gst_buffer_pool_get_config (pool);
  GstCaps *caps = gst_video_info_to_caps (&rig->info);

  gst_buffer_pool_config_set_params (config, caps, (guint) GST_VIDEO_INFO_SIZE (&rig->info), number,
      number);
  gst_buffer_pool_config_set_allocator (config, NULL, &whole_pages);
  ck_assert (gst_buffer_pool_set_config (pool, config));
  ck_assert (gst_buffer_pool_set_active (pool, TRUE));
  gst_caps_unref (caps);
  return pool;
}

static void
feed_from_pool (Rig * rig, GstBufferPool * pool, guint count)
{
  for (guint n = 0; n < count; n++) {
    GstBuffer *input = NULL, *output;

    ck_assert_int_eq (gst_buffer_pool_acquire_buffer (pool, &input, NULL), GST_FLOW_OK);
    picture_fill (input);
    ck_assert_int_eq (rig_push (rig, gst_buffer_ref (input)), GST_FLOW_OK);
    output = rig_pull (rig);
    picture_check_equal (&rig->info, input, output);
    gst_buffer_unref (output);
    gst_buffer_unref (input);
  }
}

START_TEST (memory_that_comes_back_is_registered_and_freed_with_its_owner)
{
  Rig *rig = rig_new ("num-streams=2");
  GstBufferPool *pool;
  guint ranges;

  rig_set_caps (rig, "NV12", 128, 128);
  pool = system_pool (rig, 4);
  ranges = fake_counters ().pinned_ranges;
  feed_from_pool (rig, pool, 40);
  /* Each of the four is staged when seen for the first three times, and never again. */
  ck_assert_uint_le (stats_uint64 (rig->x, "host-copies"), test_backend_pins ()? 4 * STAGINGS : 0);
  if (fake != NULL)
    ck_assert_uint_gt (fake_counters ().pinned_ranges, ranges);
  feed_from_pool (rig, pool, 40);
  ck_assert_uint_le (stats_uint64 (rig->x, "host-copies"), test_backend_pins ()? 4 * STAGINGS : 0);
  ck_assert_uint_eq (fake_counters ().pageable_copies, 0);
  ck_assert (gst_buffer_pool_set_active (pool, FALSE));
  gst_object_unref (pool);
  /* What stays is the element's own: its buffers and, of first sight, its staging. */
  ck_assert_uint_le (fake_counters ().pinned_ranges, ranges + 2);
  rig_free (rig);
}

END_TEST

START_TEST (registered_memory_may_outlive_the_element)
{
  Rig *rig = rig_new ("num-streams=2");
  GstBufferPool *pool;

  rig_set_caps (rig, "NV12", 128, 128);
  pool = system_pool (rig, 2);
  feed_from_pool (rig, pool, 10);
  rig_free (rig);

  rig = rig_new ("num-streams=1");
  rig_set_caps (rig, "NV12", 128, 128);
  feed_from_pool (rig, pool, 10);
  if (fake != NULL)
    ck_assert_uint_eq (stats_uint64 (rig->x, "host-copies"), 0);
  rig_free (rig);
  ck_assert (gst_buffer_pool_set_active (pool, FALSE));
  gst_object_unref (pool);
}

END_TEST

START_TEST (memory_that_never_comes_back_is_staged_each_time)
{
  Rig *rig = rig_new ("num-streams=2");
  guint64 allocations;

  rig_set_caps (rig, "I420", 64, 48);
  for (guint n = 0; n < 4; n++) {
    ck_assert_int_eq (rig_feed (rig, n, 1), GST_FLOW_OK);
    gst_buffer_unref (rig_pull (rig));
  }
  allocations = fake_counters ().allocations;
  for (guint n = 4; n < 30; n++) {
    ck_assert_int_eq (rig_feed (rig, n, 1), GST_FLOW_OK);
    gst_buffer_unref (rig_pull (rig));
  }
  ck_assert_uint_eq (stats_uint64 (rig->x, "host-copies"), test_backend_pins ()? 30 : 0);
  /* In the steady state nothing is allocated or registered. */
  ck_assert_uint_eq (fake_counters ().allocations, allocations);
  ck_assert_uint_eq (fake_counters ().pageable_copies, 0);
  rig_free (rig);
}

END_TEST

START_TEST (refused_registration_is_staged_and_not_asked_again)
{
  Rig *rig = rig_new ("num-streams=1");
  GstBufferPool *pool;
  guint64 injected;

  rig_set_caps (rig, "NV12", 128, 128);
  pool = system_pool (rig, 1);
  feed_from_pool (rig, pool, STAGINGS);
  fake_setting ("FAIL_COUNT", 0);
  fake->set_fail_call ("cuMemHostRegister_v2");
  feed_from_pool (rig, pool, 1);
  injected = fake_counters ().injected;
  ck_assert_uint_ge (injected, 1);
  feed_from_pool (rig, pool, 10);
  ck_assert_uint_eq (fake_counters ().injected, injected);
  ck_assert_uint_eq (stats_uint64 (rig->x, "host-copies"), STAGINGS + 11);
  expect_no_trouble (rig->bus);
  fake_setting ("FAIL_AT", 0);
  ck_assert (gst_buffer_pool_set_active (pool, FALSE));
  gst_object_unref (pool);
  rig_free (rig);
}

END_TEST

/* Read-only memory of someone who never gave it to be written or locked, such as a mapped file. */
START_TEST (wrapped_read_only_memory_passes)
{
  Rig *rig = rig_new ("num-streams=2");
  gsize size;
  guint8 *data;

  rig_set_caps (rig, "GRAY8", 64, 48);
  size = GST_VIDEO_INFO_SIZE (&rig->info);
  data = g_malloc (size + 64);
  for (gsize i = 0; i < size + 64; i++)
    data[i] = (guint8) (i * 7);
  for (guint n = 0; n < 10; n++) {
    GstBuffer *input = gst_buffer_new_wrapped_full (GST_MEMORY_FLAG_READONLY, data, size + 64, n,
        size, NULL, NULL), *output;

    ck_assert_int_eq (rig_push (rig, gst_buffer_ref (input)), GST_FLOW_OK);
    output = rig_pull (rig);
    picture_check_equal (&rig->info, input, output);
    gst_buffer_unref (output);
    gst_buffer_unref (input);
  }
  ck_assert_uint_eq (stats_uint64 (rig->x, "host-copies"), test_backend_pins ()? 10 : 0);
  rig_free (rig);
  g_free (data);
}

END_TEST

/* A buffer of several memories that GStreamer has to merge to map is not the memory that was
 * pinned. */
START_TEST (merged_memories_are_counted_as_the_copies_they_are)
{
  Rig *rig = rig_new ("num-streams=2");
  GstBuffer *input;

  rig_set_caps (rig, "I420", 128, 128);
  input = picture_new_planes (&rig->info, FALSE);
  /* Mapping a writable buffer would merge its memories for good. */
  gst_buffer_ref (input);
  for (guint n = 0; n < 10; n++) {
    GstBuffer *output;

    ck_assert_int_eq (rig_push (rig, gst_buffer_ref (input)), GST_FLOW_OK);
    output = rig_pull (rig);
    picture_check_equal (&rig->info, input, output);
    gst_buffer_unref (output);
  }
  ck_assert_uint_eq (fake_counters ().pageable_copies, 0);
  ck_assert_uint_eq (stats_uint64 (rig->x, "host-copies"), test_backend_pins ()? 10 : 0);
  gst_buffer_unref (input);
  gst_buffer_unref (input);
  rig_free (rig);
}

END_TEST

START_TEST (planes_that_come_back_are_used_in_place)
{
  Rig *rig = rig_new ("num-streams=2");
  GstBuffer *input;

  rig_set_caps (rig, "I420", 128, 128);
  input = picture_new_planes (&rig->info, TRUE);
  for (guint n = 0; n < 10; n++) {
    ck_assert_int_eq (rig_push (rig, gst_buffer_ref (input)), GST_FLOW_OK);
    gst_buffer_unref (rig_pull (rig));
  }
  ck_assert_uint_eq (stats_uint64 (rig->x, "host-copies"), test_backend_pins ()? STAGINGS : 0);
  ck_assert_uint_eq (fake_counters ().pageable_copies, 0);
  gst_buffer_unref (input);
  rig_free (rig);
}

END_TEST

/* ---- bounds ---------------------------------------------------------------------------------- */

START_TEST (at_the_pinned_bound_memory_is_pageable_and_counted)
{
  GstElement *pipeline = pipeline_new ("videotestsrc num-buffers=40 "
      "! video/x-raw,format=NV12,width=64,height=48 "
      "! X name=x num-streams=3 max-pinned-memory=1 ! fakesink name=sink");
  GstElement *x = pipeline_get (pipeline, "x");
  Counter *counter = counter_new (pipeline, "sink", "sink");

  pipeline_run (pipeline);
  ck_assert_uint_eq (counter_get (counter), 40);
  ck_assert_uint_eq (stats_uint64 (x, "pinned-bytes"), 0);
  if (test_backend_pins ())
    ck_assert_uint_ge (stats_uint64 (x, "host-copies"), 40);
  pipeline_free (pipeline);
  counter_free (counter);
}

END_TEST

START_TEST (a_bound_reached_midway_costs_copies_not_frames)
{
  Rig *rig = rig_new ("num-streams=2 max-pinned-memory=65536");

  rig_set_caps (rig, "GRAY8", 128, 96);
  for (guint n = 0; n < 40; n++) {
    ck_assert_int_eq (rig_feed (rig, n, 1), GST_FLOW_OK);
    ck_assert_uint_le (stats_uint64 (rig->x, "pinned-bytes"), 65536);
    if (fake != NULL)
      ck_assert_uint_le (fake_counters ().pinned_bytes, 65536);
  }
  /* The harness keeps all forty. */
  rig_wait_buffers (rig, 40);
  expect_no_trouble (rig->bus);
  rig_free (rig);
}

END_TEST

/* ---- buffers that stay downstream ------------------------------------------------------------ */

START_TEST (downstream_may_keep_every_buffer)
{
  Rig *rig = rig_new ("num-streams=8");

  rig_set_caps (rig, "GRAY8", 32, 24);
  ck_assert_int_eq (rig_feed (rig, 0, 200), GST_FLOW_OK);
  rig_wait_buffers (rig, 200);
  if (fake != NULL)
    ck_assert_uint_gt (stats_uint64 (rig->x, "pool-growths"), 0);
  for (guint n = 0; n < 200; n++) {
    GstBuffer *out = rig_pull (rig);

    ck_assert_uint_eq (GST_BUFFER_OFFSET (out), n);
    gst_buffer_unref (out);
  }
  rig_free (rig);
}

END_TEST

typedef struct
{
  Counter *fast;
  guint until;
} Slow;

static GstPadProbeReturn
wait_for_fast (GstPad * pad, GstPadProbeInfo * info, gpointer user_data)
{
  Slow *slow = user_data;

  counter_wait (slow->fast, slow->until);
  return GST_PAD_PROBE_OK;
}

/* Trial gstreamer MR 1939: pool exhaustion behind a tee. */
START_TEST (slow_branch_behind_a_tee_takes_no_deadlock)
{
  GstElement *pipeline = pipeline_new ("videotestsrc num-buffers=80 "
      "! video/x-raw,width=64,height=48 ! X name=x num-streams=8 ! tee name=t "
      "t. ! queue max-size-buffers=30 max-size-bytes=0 max-size-time=0 "
      "! fakesink name=slow async=false "
      "t. ! queue max-size-buffers=1 ! fakesink name=fast async=false");
  Slow slow = { counter_new (pipeline, "fast", "sink"), 25 };
  Counter *counter = counter_new (pipeline, "slow", "sink");
  GstPad *pad = gst_element_get_static_pad (pipeline_get (pipeline, "slow"), "sink");

  gst_pad_add_probe (pad, GST_PAD_PROBE_TYPE_BUFFER, wait_for_fast, &slow, NULL);
  gst_object_unref (pad);
  pipeline_run (pipeline);
  ck_assert_uint_eq (counter_get (counter), 80);
  ck_assert_uint_eq (counter_get (slow.fast), 80);
  pipeline_free (pipeline);
  counter_free (counter);
  counter_free (slow.fast);
}

END_TEST

START_TEST (buffers_outlive_the_element)
{
  Rig *rig = rig_new ("num-streams=3");
  GstVideoInfo info;
  GstBuffer *in[8], *out[8];

  rig_set_caps (rig, "RGB", 33, 21);
  info = rig->info;
  for (guint n = 0; n < 8; n++) {
    in[n] = rig_frame (rig, n);
    ck_assert_int_eq (rig_push (rig, gst_buffer_ref (in[n])), GST_FLOW_OK);
  }
  for (guint n = 0; n < 8; n++)
    out[n] = rig_pull (rig);
  rig_free (rig);
  for (guint n = 0; n < 8; n++) {
    picture_check_equal (&info, in[n], out[n]);
    gst_buffer_unref (in[n]);
    gst_buffer_unref (out[n]);
  }
}

END_TEST

/* Trial nnstreamer #735: a leak only when the width is no multiple of 4. */
START_TEST (ten_thousand_frames_of_odd_width_take_no_more_memory)
{
  GstElement *pipeline = pipeline_new ("videotestsrc num-buffers=10000 pattern=black "
      "! video/x-raw,format=RGB,width=1921,height=2 ! X name=x num-streams=3 ! fakesink name=sink");
  Counter *counter = counter_new (pipeline, "sink", "sink");
  fake_cuda_counters early;

  pipeline_play (pipeline);
  counter_wait (counter, 100);
  early = fake_counters ();
  ck_assert_int_eq (pipeline_wait (pipeline), GST_MESSAGE_EOS);
  ck_assert_uint_eq (counter_get (counter), 10000);
  ck_assert_uint_eq (fake_counters ().allocations, early.allocations);
  ck_assert_uint_eq (fake_counters ().device_bytes, early.device_bytes);
  ck_assert_uint_eq (stats_uint64 (pipeline_get (pipeline, "x"), "pool-growths"), 0);
  pipeline_free (pipeline);
  counter_free (counter);
}

END_TEST

static Suite *
pools_suite (void)
{
  Suite *suite = suite_create ("pools");
  TCase *tests = test_case (suite, "pools");

  tcase_add_test (tests, upstream_that_takes_the_pool_costs_no_host_copy);
  tcase_add_test (tests, two_elements_in_a_row_cost_no_host_copy);
  tcase_add_test (tests, memory_that_comes_back_is_registered_and_freed_with_its_owner);
  tcase_add_test (tests, registered_memory_may_outlive_the_element);
  tcase_add_test (tests, memory_that_never_comes_back_is_staged_each_time);
  if (fake != NULL)
    tcase_add_test (tests, refused_registration_is_staged_and_not_asked_again);
  tcase_add_test (tests, wrapped_read_only_memory_passes);
  tcase_add_test (tests, merged_memories_are_counted_as_the_copies_they_are);
  tcase_add_test (tests, planes_that_come_back_are_used_in_place);
  tcase_add_test (tests, at_the_pinned_bound_memory_is_pageable_and_counted);
  tcase_add_test (tests, a_bound_reached_midway_costs_copies_not_frames);
  tcase_add_test (tests, downstream_may_keep_every_buffer);
  tcase_add_test (tests, slow_branch_behind_a_tee_takes_no_deadlock);
  tcase_add_test (tests, buffers_outlive_the_element);
  tcase_add_test (tests, ten_thousand_frames_of_odd_width_take_no_more_memory);
  return suite;
}

int
main (int argc, char **argv)
{
  return test_main (argc, argv, pools_suite);
}
