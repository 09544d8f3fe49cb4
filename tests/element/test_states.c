/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* States and seeks of whole pipelines: up, down and again at any moment, with frames in flight,
 * without hanging and without leaving anything behind. */
#include "element.h"

#define SOURCE "videotestsrc ! video/x-raw,format=NV12,width=64,height=48 "

/* Trials edgeai #47, gstreamer-imx #194: hang going to NULL. */
START_TEST (null_at_a_random_moment_never_hangs)
{
  for (guint n = 0; n < 200; n++) {
    gchar *line = g_strdup_printf (SOURCE "! X name=x num-streams=%u ! fakesink name=sink",
        1 + test_random (4));
    GstElement *pipeline = pipeline_new (line);
    Counter *counter = counter_new (pipeline, "sink", "sink");
    guint moment = test_random (8);

    pipeline_play (pipeline);
    if (moment > 0)
      counter_wait (counter, moment * moment);
    ck_assert_int_eq (gst_element_set_state (pipeline, GST_STATE_NULL), GST_STATE_CHANGE_SUCCESS);
    pipeline_free (pipeline);
    counter_free (counter);
    g_free (line);
  }
}

END_TEST

START_TEST (ready_after_eos_and_again)
{
  GstElement *pipeline = pipeline_new ("videotestsrc num-buffers=10 "
      "! video/x-raw,width=64,height=48 ! X name=x num-streams=3 ! fakesink name=sink");
  Counter *counter = counter_new (pipeline, "sink", "sink");

  for (guint run = 1; run <= 4; run++) {
    pipeline_run (pipeline);
    ck_assert_uint_eq (counter_get (counter), 10 * run);
    ck_assert_uint_eq (stats_uint64 (pipeline_get (pipeline, "x"), "processed"), 10);
    pipeline_set_state (pipeline, GST_STATE_READY);
  }
  pipeline_free (pipeline);
  counter_free (counter);
}

END_TEST

/* Trial gst-wayland-display PR 42: memory, streams and contexts grow with every session. */
START_TEST (fifty_sessions_leave_nothing_behind)
{
  GstElement *pipeline = pipeline_new (SOURCE "! X name=x num-streams=3 ! fakesink name=sink");
  Counter *counter = counter_new (pipeline, "sink", "sink");
  fake_cuda_counters before = fake_counters (), after;

  for (guint n = 0; n < 50; n++) {
    guint target = counter_get (counter) + 5;

    pipeline_play (pipeline);
    counter_wait (counter, target);
    pipeline_set_state (pipeline, GST_STATE_NULL);
    after = fake_counters ();
    ck_assert_uint_eq (after.device_bytes, before.device_bytes);
    ck_assert_uint_eq (after.pinned_bytes, before.pinned_bytes);
    ck_assert_uint_eq (after.streams, before.streams);
    ck_assert_uint_eq (after.events, before.events);
    ck_assert_uint_eq (after.modules, before.modules);
    ck_assert_uint_eq (after.primary_references, before.primary_references);
    ck_assert_uint_eq (stats_uint64 (pipeline_get (pipeline, "x"), "pinned-bytes"), 0);
  }
  pipeline_free (pipeline);
  counter_free (counter);
}

END_TEST

START_TEST (pause_and_play_lose_no_frame)
{
  GstElement *pipeline = pipeline_new ("videotestsrc num-buffers=300 "
      "! video/x-raw,width=64,height=48 ! X name=x num-streams=3 ! fakesink name=sink");
  Counter *counter = counter_new (pipeline, "sink", "sink");

  for (guint n = 1; n <= 20; n++) {
    pipeline_play (pipeline);
    counter_wait (counter, n * 5);
    /* A sink that has EOS already prerolls no more, so this is no wait for a state. */
    gst_element_set_state (pipeline, GST_STATE_PAUSED);
  }
  pipeline_run (pipeline);
  ck_assert_uint_eq (counter_get (counter), 300);
  pipeline_free (pipeline);
  counter_free (counter);
}

END_TEST

static void
seek (GstElement * pipeline, guint seconds)
{
  ck_assert (gst_element_seek_simple (pipeline, GST_FORMAT_TIME, GST_SEEK_FLAG_FLUSH,
          seconds * GST_SECOND));
}

/* Trial WebKit PR 16603: flush while paused deadlocks on the ALLOCATION query. */
START_TEST (flushing_seek_while_paused)
{
  for (guint n = 0; n < 30; n++) {
    GstElement *pipeline = pipeline_new (SOURCE "! X name=x num-streams=3 ! fakesink name=sink");

    pipeline_set_state (pipeline, GST_STATE_PAUSED);
    for (guint s = 1; s <= 3; s++) {
      seek (pipeline, s);
      pipeline_set_state (pipeline, GST_STATE_PAUSED);
    }
    pipeline_free (pipeline);
  }
}

END_TEST

START_TEST (flushing_seeks_at_random_moments)
{
  GstElement *pipeline = pipeline_new (SOURCE "! X name=x num-streams=4 ! fakesink name=sink");
  GstBus *bus = gst_element_get_bus (pipeline);
  Counter *counter = counter_new (pipeline, "sink", "sink");

  pipeline_play (pipeline);
  counter_wait (counter, 1);
  for (guint n = 0; n < 100; n++) {
    counter_wait (counter, counter_get (counter) + test_random (10));
    seek (pipeline, n);
  }
  counter_wait (counter, counter_get (counter) + 20);
  expect_no_trouble (bus);
  pipeline_free (pipeline);
  counter_free (counter);
  gst_object_unref (bus);
}

END_TEST

START_TEST (seek_after_eos_plays_again)
{
  GstElement *pipeline = pipeline_new (SOURCE "! X name=x ! fakesink name=sink");
  Counter *counter = counter_new (pipeline, "sink", "sink");

  pipeline_set_state (pipeline, GST_STATE_PAUSED);
  for (guint n = 1; n <= 5; n++) {
    guint before;

    ck_assert (gst_element_seek (pipeline, 1.0, GST_FORMAT_TIME, GST_SEEK_FLAG_FLUSH,
            GST_SEEK_TYPE_SET, 0, GST_SEEK_TYPE_SET, GST_SECOND));
    pipeline_set_state (pipeline, GST_STATE_PAUSED);
    before = counter_get (counter);
    pipeline_run (pipeline);
    ck_assert_uint_eq (counter_get (counter) - before, 29);
  }
  pipeline_free (pipeline);
  counter_free (counter);
}

END_TEST

/* An element that never saw caps has nothing to give back. */
START_TEST (states_without_data)
{
  GstElement *x = gst_element_factory_make ("cudastreamfilter", NULL);

  gst_util_set_object_arg (G_OBJECT (x), "backend", test_backend ());
  gst_object_ref_sink (x);
  for (guint n = 0; n < 5; n++) {
    ck_assert_int_eq (gst_element_set_state (x, GST_STATE_PLAYING), GST_STATE_CHANGE_SUCCESS);
    ck_assert_int_eq (gst_element_set_state (x, GST_STATE_NULL), GST_STATE_CHANGE_SUCCESS);
    ck_assert_int_eq (gst_element_set_state (x, GST_STATE_READY), GST_STATE_CHANGE_SUCCESS);
  }
  ck_assert_int_eq (gst_element_set_state (x, GST_STATE_NULL), GST_STATE_CHANGE_SUCCESS);
  gst_object_unref (x);
}

END_TEST

/* NULL to READY only probes: no context is made before there are frames. */
START_TEST (ready_opens_no_device)
{
  GstElement *pipeline = pipeline_new (SOURCE "! X name=x ! fakesink");

  pipeline_set_state (pipeline, GST_STATE_READY);
  ck_assert_uint_eq (fake_counters ().primary_references, 0);
  ck_assert_uint_eq (fake_counters ().device_bytes, 0);
  pipeline_free (pipeline);
}

END_TEST

START_TEST (frames_before_caps_are_not_negotiated)
{
  GstElement *x = gst_element_factory_make ("cudastreamfilter", NULL);
  GstSegment segment;
  GstPad *pad;

  gst_util_set_object_arg (G_OBJECT (x), "backend", test_backend ());
  gst_object_ref_sink (x);
  pad = gst_element_get_static_pad (x, "sink");
  ck_assert_int_eq (gst_element_set_state (x, GST_STATE_PLAYING), GST_STATE_CHANGE_SUCCESS);
  gst_segment_init (&segment, GST_FORMAT_TIME);
  gst_pad_send_event (pad, gst_event_new_stream_start ("test"));
  gst_pad_send_event (pad, gst_event_new_segment (&segment));
  ck_assert_int_eq (gst_pad_chain (pad, gst_buffer_new ()), GST_FLOW_NOT_NEGOTIATED);
  gst_element_set_state (x, GST_STATE_NULL);
  gst_object_unref (pad);
  gst_object_unref (x);
}

END_TEST

static Suite *
states_suite (void)
{
  Suite *suite = suite_create ("states");
  TCase *tests = test_case (suite, "states");

  tcase_add_test (tests, null_at_a_random_moment_never_hangs);
  tcase_add_test (tests, ready_after_eos_and_again);
  tcase_add_test (tests, fifty_sessions_leave_nothing_behind);
  tcase_add_test (tests, pause_and_play_lose_no_frame);
  tcase_add_test (tests, flushing_seek_while_paused);
  tcase_add_test (tests, flushing_seeks_at_random_moments);
  tcase_add_test (tests, seek_after_eos_plays_again);
  tcase_add_test (tests, states_without_data);
  tcase_add_test (tests, ready_opens_no_device);
  tcase_add_test (tests, frames_before_caps_are_not_negotiated);
  return suite;
}

int
main (int argc, char **argv)
{
  return test_main (argc, argv, states_suite);
}
