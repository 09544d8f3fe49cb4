/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What bounds the throughput, in situations made so that one party is far slower than all others; and the
 * figures of a device whose times are known.  Ratios of one run, with an order of magnitude between what is
 * slow and what is not. */
#include <gst/check/gsttestclock.h>

#include "element.h"

#define SLOW_US 5000
#define LINE "videotestsrc name=source pattern=black num-buffers=60 " \
  "! video/x-raw,format=NV12,width=64,height=48,framerate=30/1 "

static GstPadProbeReturn
dawdle (GstPad * pad, GstPadProbeInfo * info, gpointer data)
{
  g_usleep (SLOW_US);
  return GST_PAD_PROBE_OK;
}

/* Each buffer of that pad takes its time. */
static void
slow_down (GstElement * pipeline, const gchar * element, const gchar * name)
{
  GstPad *pad = gst_element_get_static_pad (pipeline_get (pipeline, element), name);

  gst_pad_add_probe (pad, GST_PAD_PROBE_TYPE_BUFFER, dawdle, NULL, NULL);
  gst_object_unref (pad);
}

static void
expect_bound (GstElement * pipeline, const gchar * expected)
{
  gchar *bound, *line;

  /* One window, so that the last one has all frames. */
  g_object_set (pipeline_get (pipeline, "x"), "fps-update-interval", 86400000, NULL);
  pipeline_run (pipeline);
  bound = stats_string (pipeline_get (pipeline, "x"), "bound-by");
  g_object_get (pipeline_get (pipeline, "x"), "last-message", &line, NULL);
  ck_assert_msg (g_strcmp0 (bound, expected) == 0, "expected %s, got %s", expected, line);
  ck_assert (g_str_has_suffix (line, bound));
  g_free (bound);
  g_free (line);
}

static gdouble
get_double (GstElement * x, const gchar * field)
{
  GstStructure *stats;
  gdouble value = -1;

  g_object_get (x, "stats", &stats, NULL);
  ck_assert (gst_structure_get_double (stats, field, &value));
  gst_structure_free (stats);
  return value;
}

static const struct
{
  const gchar *line, *element, *pad, *bound;
} neighbours[] = {
  {LINE "! X name=x num-streams=3 ! fakesink", "source", "src", "upstream"},
  /* The source is done at once then, and what waits for it is not the filter. */
  {LINE "! queue ! X name=x num-streams=3 ! queue ! fakesink", "source", "src", "upstream"},
  {LINE "! X name=x num-streams=3 ! fakesink name=sink", "sink", "sink", "downstream"},
};

START_TEST (a_slow_neighbour_bounds)
{
  GstElement *pipeline = pipeline_new (neighbours[_i].line);

  slow_down (pipeline, neighbours[_i].element, neighbours[_i].pad);
  expect_bound (pipeline, neighbours[_i].bound);
  pipeline_free (pipeline);
}

END_TEST

static const struct
{
  const gchar *setting, *stage;
} stages[] = { {"UPLOAD_US", "upload"}, {"KERNEL_US", "kernel"}, {"DOWNLOAD_US", "download"} };

START_TEST (a_slow_stage_bounds)
{
  static const guint streams[] = { 3, 1 };

  for (guint i = 0; i < G_N_ELEMENTS (streams); i++) {
    gchar *line = g_strdup_printf (LINE "! X name=x num-streams=%u ! fakesink", streams[i]);
    GstElement *pipeline = pipeline_new (line);

    fake_setting (stages[_i].setting, SLOW_US);
    expect_bound (pipeline, stages[_i].stage);
    pipeline_free (pipeline);
    fake_setting (stages[_i].setting, 0);
    g_free (line);
  }
}

END_TEST

/* The pass that appends records takes as long as the kernel, and the picture is down long before. */
START_TEST (waiting_for_records_is_no_download)
{
  GstElement *pipeline = pipeline_new (LINE "! X name=x num-streams=1 kernel=histogram ! fakesink"), *x;

  fake_setting ("KERNEL_US", SLOW_US);
  expect_bound (pipeline, "kernel");
  x = pipeline_get (pipeline, "x");
  ck_assert_uint_ge (stats_uint64 (x, "records-time"), SLOW_US * 700);
  ck_assert_uint_lt (stats_uint64 (x, "download-time"), stats_uint64 (x, "records-time") / 2);
  fake_setting ("KERNEL_US", 0);
  pipeline_free (pipeline);
}

END_TEST

START_TEST (a_run_without_frames_took_no_time)
{
  GstElement *pipeline = pipeline_new ("videotestsrc num-buffers=0 "
      "! video/x-raw,format=NV12,width=64,height=48 ! X name=x ! fakesink");
  gchar *line;

  pipeline_run (pipeline);
  g_object_get (pipeline_get (pipeline, "x"), "last-message", &line, NULL);
  ck_assert_msg (strstr (line, "processed: 0,") != NULL && strstr (line, "time: 0.00 s") != NULL,
      "%s", line);
  g_free (line);
  pipeline_free (pipeline);
}

END_TEST

/* The kernel takes most, and three frames are in flight: what it takes is the time of a frame, and the copies
 * come on top of it in the overlap. */
START_TEST (known_times_give_known_shares)
{
  GstElement *pipeline = pipeline_new (LINE "! X name=x num-streams=3 ! fakesink"), *x;
  gdouble frame, sum, overlap;

  fake_setting ("UPLOAD_US", SLOW_US);
  fake_setting ("KERNEL_US", 2 * SLOW_US);
  fake_setting ("DOWNLOAD_US", SLOW_US);
  expect_bound (pipeline, "kernel");
  x = pipeline_get (pipeline, "x");
  ck_assert_uint_ge (stats_uint64 (x, "upload-time"), SLOW_US * 700);
  ck_assert_uint_ge (stats_uint64 (x, "kernel-time"), 2 * SLOW_US * 700);
  ck_assert_uint_ge (stats_uint64 (x, "download-time"), SLOW_US * 700);
  /* Both follow from the three and the time of a frame, whatever this machine made of them. */
  frame = (gdouble) stats_uint64 (x, "frame-time");
  sum = (gdouble) (stats_uint64 (x, "upload-time") + stats_uint64 (x, "kernel-time")
      + stats_uint64 (x, "download-time"));
  overlap = get_double (x, "overlap");
  ck_assert (overlap > 1.2 && overlap >= 0.95 * sum / frame && overlap <= 1.05 * sum / frame);
  ck_assert (get_double (x, "efficiency") >=
      0.95 * (gdouble) stats_uint64 (x, "kernel-time") / frame);
  fake_setting ("UPLOAD_US", 0);
  fake_setting ("KERNEL_US", 0);
  fake_setting ("DOWNLOAD_US", 0);
  pipeline_free (pipeline);
}

END_TEST

/* The CPU copies nothing, so it is the kernel where the source is quick. */
START_TEST (the_cpu_is_bound_by_its_kernel)
{
  GstElement *pipeline = pipeline_new ("videotestsrc pattern=black num-buffers=40 "
      "! video/x-raw,format=RGBA,width=640,height=480,framerate=30/1 "
      "! X name=x kernel=gaussianblur kernel-params=sigma=8 ! fakesink");

  expect_bound (pipeline, "kernel");
  ck_assert_uint_eq (stats_uint64 (pipeline_get (pipeline, "x"), "upload-time"), 0);
  ck_assert_uint_eq (stats_uint64 (pipeline_get (pipeline, "x"), "download-time"), 0);
  ck_assert_uint_gt (stats_uint64 (pipeline_get (pipeline, "x"), "kernel-time-p99"), 0);
  pipeline_free (pipeline);
}

END_TEST

static GstPadProbeReturn
jump (GstPad * pad, GstPadProbeInfo * info, gpointer clock)
{
  gst_test_clock_advance_time (clock, 3600 * GST_SECOND);
  return GST_PAD_PROBE_OK;
}

/* The pipeline's clock says when frames are shown, not how long they take. */
START_TEST (a_clock_that_jumps_changes_no_figure)
{
  static const gchar *const times[] = {
    "frame-time", "upstream-time-p99", "submit-time-p99", "kernel-time-p99", "latency-p99"
  };
  GstElement *pipeline = pipeline_new (LINE "! X name=x ! fakesink sync=false"), *x;
  GstClock *clock = gst_test_clock_new ();
  GstPad *pad = gst_element_get_static_pad (pipeline_get (pipeline, "source"), "src");

  gst_pipeline_use_clock (GST_PIPELINE (pipeline), clock);
  gst_pad_add_probe (pad, GST_PAD_PROBE_TYPE_BUFFER, jump, clock, NULL);
  gst_object_unref (pad);
  pipeline_run (pipeline);
  x = pipeline_get (pipeline, "x");
  ck_assert (get_double (x, "avg-fps") > 0.1);
  for (guint i = 0; i < G_N_ELEMENTS (times); i++)
    ck_assert_uint_lt (stats_uint64 (x, times[i]), 600 * GST_SECOND);
  pipeline_free (pipeline);
  gst_object_unref (clock);
}

END_TEST

/* A frame's way through the element is no shorter than its stages. */
START_TEST (latency_is_told)
{
  GstElement *pipeline = pipeline_new (LINE "! X name=x num-streams=2 ! fakesink"), *x;

  pipeline_run (pipeline);
  x = pipeline_get (pipeline, "x");
  ck_assert_uint_ge (stats_uint64 (x, "latency-p99"), stats_uint64 (x, "latency"));
  ck_assert_uint_ge (stats_uint64 (x, "latency"), stats_uint64 (x, "kernel-time"));
  pipeline_free (pipeline);
}

END_TEST

/* A sink that waits for the clock keeps the thread that would see the frame's end. */
START_TEST (latency_is_true_behind_a_sink_that_waits)
{
  GstElement *pipeline = pipeline_new ("videotestsrc is-live=true num-buffers=40 "
      "! video/x-raw,format=NV12,width=64,height=48,framerate=30/1 ! X name=x num-streams=3 "
      "! fakesink sync=true"), *x;

  fake_setting ("KERNEL_US", 4 * SLOW_US);
  pipeline_run (pipeline);
  x = pipeline_get (pipeline, "x");
  ck_assert_uint_ge (stats_uint64 (x, "latency"), 4 * SLOW_US * 700);
  fake_setting ("KERNEL_US", 0);
  pipeline_free (pipeline);
}

END_TEST

/* Neither in the rate, nor for the sink, which keeps a frame all the while. */
START_TEST (a_pause_counts_for_nothing)
{
  const gint64 pause = 600000;
  GstElement *pipeline = pipeline_new ("videotestsrc name=source pattern=black num-buffers=160 "
      "! video/x-raw,format=NV12,width=64,height=48,framerate=30/1 "
      "! X name=x num-streams=3 fps-update-interval=86400000 ! fakesink name=sink"), *x;
  Counter *counter = counter_new (pipeline, "sink", "sink");
  gint64 begin;
  gchar *line;

  slow_down (pipeline, "source", "src");
  begin = g_get_monotonic_time ();
  pipeline_play (pipeline);
  counter_wait (counter, 80);
  pipeline_set_state (pipeline, GST_STATE_PAUSED);
  g_usleep (pause);
  pipeline_play (pipeline);
  ck_assert_int_eq (pipeline_wait (pipeline), GST_MESSAGE_EOS);
  x = pipeline_get (pipeline, "x");
  /* The run as a whole: what came before the pause is in it. */
  ck_assert (get_double (x, "avg-fps") >=
      0.95 * 159e6 / (gdouble) (g_get_monotonic_time () - begin - pause));
  g_object_get (x, "last-message", &line, NULL);
  ck_assert_msg (g_str_has_suffix (line, "bound-by: upstream"), "%s", line);
  ck_assert_msg (g_ascii_strtod (strstr (line, "time: ") + 6, NULL) > 0.7, "%s", line);
  g_free (line);
  counter_free (counter);
  pipeline_free (pipeline);
}

END_TEST

/* Where there is NVML the load is told, and where there is none it is not there. */
START_TEST (load_is_told_where_it_is_known)
{
  GstElement *pipeline = pipeline_new (LINE "! X name=x ! fakesink");
  GstStructure *stats;

  pipeline_run (pipeline);
  g_object_get (pipeline_get (pipeline, "x"), "stats", &stats, NULL);
  if (fake == NULL && g_str_equal (test_backend (), "cpu"))
    ck_assert (!gst_structure_has_field (stats, "gpu-utilization"));
  else if (fake != NULL) {
    ck_assert (gst_structure_has_field_typed (stats, "gpu-utilization", G_TYPE_DOUBLE));
    ck_assert (gst_structure_has_field_typed (stats, "gpu-memory-total", G_TYPE_UINT64));
    ck_assert (gst_structure_has_field_typed (stats, "gpu-clock", G_TYPE_UINT));
  }
  gst_structure_free (stats);
  pipeline_free (pipeline);
}

END_TEST

static Suite *
stats_suite (void)
{
  Suite *suite = suite_create ("stats");
  TCase *tests = test_case (suite, "stats");

  tcase_add_loop_test (tests, a_slow_neighbour_bounds, 0, G_N_ELEMENTS (neighbours));
  if (fake != NULL) {
    tcase_add_loop_test (tests, a_slow_stage_bounds, 0, G_N_ELEMENTS (stages));
    tcase_add_test (tests, known_times_give_known_shares);
    tcase_add_test (tests, waiting_for_records_is_no_download);
    tcase_add_test (tests, latency_is_true_behind_a_sink_that_waits);
  }
  if (g_str_equal (test_backend (), "cpu"))
    tcase_add_test (tests, the_cpu_is_bound_by_its_kernel);
  tcase_add_test (tests, a_clock_that_jumps_changes_no_figure);
  tcase_add_test (tests, a_run_without_frames_took_no_time);
  tcase_add_test (tests, a_pause_counts_for_nothing);
  tcase_add_test (tests, latency_is_told);
  tcase_add_test (tests, load_is_told_where_it_is_known);
  return suite;
}

int
main (int argc, char **argv)
{
  return test_main (argc, argv, stats_suite);
}
