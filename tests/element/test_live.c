/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Live sources: the latency answer, sinks that keep time, quality of service.  What is asserted are
 * answers and counts, never how long something took. */
#include <time.h>

#include "element.h"

static void
check_latency (GstElement * pipeline, guint num_streams, GstClockTime frame)
{
  GstPad *pad = gst_element_get_static_pad (pipeline_get (pipeline, "x"), "src");
  GstPad *source = gst_element_get_static_pad (pipeline_get (pipeline, "x"), "sink");
  GstQuery *own = gst_query_new_latency (), *upstream = gst_query_new_latency ();
  GstClockTime min, max, source_min, source_max;
  gboolean live;

  ck_assert (gst_pad_query (pad, own));
  ck_assert (gst_pad_peer_query (source, upstream));
  gst_query_parse_latency (own, &live, &min, &max);
  ck_assert (live);
  gst_query_parse_latency (upstream, &live, &source_min, &source_max);
  /* Processing takes less than sinks allow for anyway, unless the machine is overloaded. */
  ck_assert_uint_ge (min, source_min);
  if (GST_CLOCK_TIME_IS_VALID (source_max))
    ck_assert_uint_eq (max, MAX (source_max + num_streams * frame, min));
  else
    ck_assert (!GST_CLOCK_TIME_IS_VALID (max));
  gst_query_unref (own);
  gst_query_unref (upstream);
  gst_object_unref (pad);
  gst_object_unref (source);
}

static GstPadProbeReturn
note_latency (GstPad * pad, GstPadProbeInfo * info, gpointer user_data)
{
  GstEvent *event = GST_PAD_PROBE_INFO_EVENT (info);
  GstClockTime *latency = user_data;

  if (GST_EVENT_TYPE (event) == GST_EVENT_LATENCY)
    gst_event_parse_latency (event, latency);
  return GST_PAD_PROBE_OK;
}

/* Trials nnstreamer #1146, voctomix #86: without an answer a live sink gets no latency to wait
 * for and drops all.  The sink's own limit is wide, so that a busy machine fails nothing. */
START_TEST (live_sink_drops_nothing)
{
  static const guint rates[] = { 30, 60 };
  GstClockTime frame = GST_SECOND / rates[_i], latency = GST_CLOCK_TIME_NONE;
  gchar *line = g_strdup_printf ("videotestsrc is-live=true num-buffers=20 "
      "! video/x-raw,width=64,height=48,framerate=%u/1 ! X name=x num-streams=3 qos=true "
      "! fakesink name=sink sync=true qos=true max-lateness=5000000000", rates[_i]);
  GstElement *pipeline = pipeline_new (line), *sink = pipeline_get (pipeline, "sink");
  Counter *counter = counter_new (pipeline, "sink", "sink");
  GstPad *pad = gst_element_get_static_pad (sink, "sink");
  GstBus *bus = gst_element_get_bus (pipeline);
  GstStructure *stats = NULL;
  guint64 rendered = 0, dropped = 0;

  gst_pad_add_probe (pad, GST_PAD_PROBE_TYPE_EVENT_UPSTREAM, note_latency, &latency, NULL);
  pipeline_play (pipeline);
  counter_wait (counter, 3);
  check_latency (pipeline, 3, frame);
  ck_assert_int_eq (pipeline_wait (pipeline), GST_MESSAGE_EOS);
  expect_no_trouble (bus);
  /* The pipeline asked and gave out at least the source's frame. */
  ck_assert (GST_CLOCK_TIME_IS_VALID (latency));
  ck_assert_uint_ge (latency, frame);
  g_object_get (sink, "stats", &stats, NULL);
  ck_assert (gst_structure_get_uint64 (stats, "rendered", &rendered));
  ck_assert (gst_structure_get_uint64 (stats, "dropped", &dropped));
  ck_assert_uint_eq (rendered, 20);
  ck_assert_uint_eq (dropped, 0);
  ck_assert_uint_eq (stats_uint64 (pipeline_get (pipeline, "x"), "dropped"), 0);
  gst_structure_free (stats);
  pipeline_free (pipeline);
  gst_object_unref (pad);
  gst_object_unref (bus);
  counter_free (counter);
  g_free (line);
}

END_TEST

/* The other half of those trials: an aggregator that waits for its slowest input. */
START_TEST (live_into_a_compositor_goes_on)
{
  GstElement *pipeline = pipeline_new ("videotestsrc is-live=true num-buffers=15 "
      "! video/x-raw,format=I420,width=64,height=48,framerate=30/1 ! X name=x ! compositor name=c "
      "! video/x-raw,framerate=30/1 ! fakesink name=sink sync=true "
      "videotestsrc is-live=true num-buffers=15 "
      "! video/x-raw,format=I420,width=32,height=24,framerate=30/1 ! X name=y ! c.");
  Counter *counter = counter_new (pipeline, "sink", "sink");

  pipeline_run (pipeline);
  ck_assert_uint_gt (counter_get (counter), 0);
  ck_assert_uint_eq (stats_uint64 (pipeline_get (pipeline, "x"), "processed"), 15);
  ck_assert_uint_eq (stats_uint64 (pipeline_get (pipeline, "y"), "processed"), 15);
  pipeline_free (pipeline);
  counter_free (counter);
}

END_TEST

static guint64
clock_ns (clockid_t id)
{
  struct timespec now;

  ck_assert_int_eq (clock_gettime (id, &now), 0);
  return (guint64) now.tv_sec * GST_SECOND + (guint64) now.tv_nsec;
}

/* Trial llama.cpp PR 26487: waiting spins a core at 100 %.  One thread that does takes as much
 * CPU time as time passes; on a busy machine it would get less, so a failure is always one. */
START_TEST (waiting_for_frames_takes_no_cpu_time)
{
  GstElement *pipeline = pipeline_new ("videotestsrc is-live=true num-buffers=40 pattern=black "
      "! video/x-raw,width=32,height=32,framerate=30/1 ! X name=x num-streams=3 "
      "! fakesink name=sink sync=true");
  Counter *counter = counter_new (pipeline, "sink", "sink");
  guint64 wall, cpu;

  pipeline_play (pipeline);
  counter_wait (counter, 5);
  wall = clock_ns (CLOCK_MONOTONIC);
  cpu = clock_ns (CLOCK_PROCESS_CPUTIME_ID);
  ck_assert_int_eq (pipeline_wait (pipeline), GST_MESSAGE_EOS);
  wall = clock_ns (CLOCK_MONOTONIC) - wall;
  cpu = clock_ns (CLOCK_PROCESS_CPUTIME_ID) - cpu;
  ck_assert_uint_lt (cpu, wall / 2);
  pipeline_free (pipeline);
  counter_free (counter);
}

END_TEST

/* A rig answers the query as its source would. */
START_TEST (latency_adds_nothing_to_min_and_n_frames_to_max)
{
  Rig *rig = rig_new ("num-streams=4");
  GstQuery *query = gst_query_new_latency ();
  GstClockTime min, max;
  gboolean live;

  gst_harness_set_upstream_latency (rig->h, 20 * GST_MSECOND);
  rig_set_caps (rig, "GRAY8", 64, 48);
  ck_assert (gst_pad_peer_query (rig->h->sinkpad, query));
  gst_query_parse_latency (query, &live, &min, &max);
  ck_assert (live);
  ck_assert_uint_eq (min, 20 * GST_MSECOND);
  /* The harness' source says: as much as there may be. */
  if (GST_CLOCK_TIME_IS_VALID (max))
    ck_assert_uint_eq (max, 20 * GST_MSECOND + 4 * (GST_SECOND / 30));
  gst_query_unref (query);
  rig_free (rig);
}

END_TEST

/* ---- quality of service ---------------------------------------------------------------------- */

static void
tell_late (Rig * rig, GstClockTimeDiff diff, GstClockTime timestamp)
{
  ck_assert (gst_harness_push_upstream_event (rig->h, gst_event_new_qos (diff > 0 ?
              GST_QOS_TYPE_UNDERFLOW : GST_QOS_TYPE_OVERFLOW, 1.0, diff, timestamp)));
}

START_TEST (late_frames_are_dropped_before_upload_and_counted)
{
  Rig *rig = rig_new ("num-streams=2 qos=true");
  GstMessage *message;
  guint messages = 0;
  guint64 operations;

  rig_set_caps (rig, "GRAY8", 64, 48);
  ck_assert_int_eq (rig_feed (rig, 0, 2), GST_FLOW_OK);
  rig_wait_buffers (rig, 2);
  /* The frame of 1/30 s came 3 s late: what is due before 1/30 + 6 s comes too late as well. */
  tell_late (rig, 3 * GST_SECOND, GST_SECOND / 30);
  operations = fake_counters ().operations;
  ck_assert_int_eq (rig_feed (rig, 2, 10), GST_FLOW_OK);
  ck_assert_uint_eq (fake_counters ().operations, operations);
  ck_assert_uint_eq (stats_uint64 (rig->x, "dropped"), 10);
  ck_assert_int_eq (rig_feed (rig, 200, 3), GST_FLOW_OK);
  rig_wait_buffers (rig, 5);
  ck_assert_uint_eq (stats_uint64 (rig->x, "dropped"), 10);
  ck_assert_uint_eq (stats_uint64 (rig->x, "processed"), 5);
  while ((message = gst_bus_pop_filtered (rig->bus, GST_MESSAGE_QOS)) != NULL) {
    ck_assert (GST_MESSAGE_SRC (message) == GST_OBJECT (rig->x));
    gst_message_unref (message);
    messages++;
  }
  ck_assert_uint_eq (messages, 10);
  rig_free (rig);
}

END_TEST

START_TEST (on_time_again_ends_the_dropping)
{
  Rig *rig = rig_new ("num-streams=2 qos=true");

  rig_set_caps (rig, "GRAY8", 64, 48);
  tell_late (rig, 3 * GST_SECOND, 0);
  ck_assert_int_eq (rig_feed (rig, 1, 3), GST_FLOW_OK);
  ck_assert_uint_eq (stats_uint64 (rig->x, "dropped"), 3);
  tell_late (rig, -(GstClockTimeDiff) GST_SECOND, GST_SECOND);
  ck_assert_int_eq (rig_feed (rig, 4, 3), GST_FLOW_OK);
  rig_wait_buffers (rig, 3);
  ck_assert_uint_eq (stats_uint64 (rig->x, "dropped"), 3);
  rig_free (rig);
}

END_TEST

START_TEST (flush_forgets_lateness)
{
  Rig *rig = rig_new ("num-streams=2 qos=true");
  GstSegment segment;

  rig_set_caps (rig, "GRAY8", 64, 48);
  tell_late (rig, 3 * GST_SECOND, 0);
  rig_push_event (rig, gst_event_new_flush_start ());
  rig_push_event (rig, gst_event_new_flush_stop (TRUE));
  gst_segment_init (&segment, GST_FORMAT_TIME);
  ck_assert (rig_push_event (rig, gst_event_new_segment (&segment)));
  ck_assert_int_eq (rig_feed (rig, 0, 3), GST_FLOW_OK);
  rig_wait_buffers (rig, 3);
  ck_assert_uint_eq (stats_uint64 (rig->x, "dropped"), 0);
  rig_free (rig);
}

END_TEST

START_TEST (without_qos_late_frames_pass)
{
  Rig *rig = rig_new ("num-streams=2");

  rig_set_caps (rig, "GRAY8", 64, 48);
  tell_late (rig, 3 * GST_SECOND, 0);
  ck_assert_int_eq (rig_feed (rig, 0, 5), GST_FLOW_OK);
  rig_wait_buffers (rig, 5);
  ck_assert_uint_eq (stats_uint64 (rig->x, "dropped"), 0);
  rig_free (rig);
}

END_TEST

START_TEST (frames_without_timestamps_are_never_late)
{
  Rig *rig = rig_new ("num-streams=2 qos=true");

  rig_set_caps (rig, "GRAY8", 64, 48);
  tell_late (rig, 3 * GST_SECOND, 0);
  for (guint n = 0; n < 5; n++) {
    GstBuffer *frame = rig_frame (rig, n);

    GST_BUFFER_PTS (frame) = GST_CLOCK_TIME_NONE;
    ck_assert_int_eq (rig_push (rig, frame), GST_FLOW_OK);
  }
  rig_wait_buffers (rig, 5);
  rig_free (rig);
}

END_TEST

static Suite *
live_suite (void)
{
  Suite *suite = suite_create ("live");
  TCase *tests = test_case (suite, "live");

  tcase_add_loop_test (tests, live_sink_drops_nothing, 0, 2);
  tcase_add_test (tests, live_into_a_compositor_goes_on);
  tcase_add_test (tests, waiting_for_frames_takes_no_cpu_time);
  tcase_add_test (tests, latency_adds_nothing_to_min_and_n_frames_to_max);
  tcase_add_test (tests, late_frames_are_dropped_before_upload_and_counted);
  tcase_add_test (tests, on_time_again_ends_the_dropping);
  tcase_add_test (tests, flush_forgets_lateness);
  tcase_add_test (tests, without_qos_late_frames_pass);
  tcase_add_test (tests, frames_without_timestamps_are_never_late);
  return suite;
}

int
main (int argc, char **argv)
{
  return test_main (argc, argv, live_suite);
}
