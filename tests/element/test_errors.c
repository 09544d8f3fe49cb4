/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Bad settings, unsuitable devices and devices that fail: one error that says what was expected
 * and what came, nothing hangs, and the element starts again once the cause is gone. */
#include <string.h>
#include <unistd.h>

#include "element.h"
#include "picture.h"

/* CUdevice_attribute and its values. */
#define ATTRIBUTE_COMPUTE_MODE "ATTRIBUTE_20"
#define COMPUTE_MODE_PROHIBITED 2

#define LINE "videotestsrc num-buffers=8 ! video/x-raw,format=NV12,width=64,height=48 " \
  "! X name=x num-streams=2 "

/* ---- settings -------------------------------------------------------------------------------- */

typedef struct
{
  const gchar *kernel, *params, *says[4];
} BadSetting;

static const BadSetting bad_settings[] = {
  {"sobell", NULL, {"sobell", "copy", "sobel", "gaussianblur"}},
  {"", NULL, {"copy", "sobel", "gaussianblur", NULL}},
  {"gaussianblur", "sigam=2", {"sigam", "sigma", "gaussianblur", NULL}},
  {"gaussianblur", "sigma=1000", {"sigma", "10", "1000", NULL}},
  {"gaussianblur", "sigma=-2", {"sigma", "-2", NULL}},
  {"gaussianblur", "sigma=nan", {"sigma", "nan", NULL}},
  {"gaussianblur", "sigma=inf", {"sigma", "inf", NULL}},
  {"gaussianblur", "sigma=wide", {"sigma", "number", "wide", NULL}},
  {"gaussianblur", "sigma", {"name=value", "sigma", NULL}},
  {"gaussianblur", "=,;", {"name=value", NULL}},
  {"gaussianblur", "sigma=1;;foo", {"name=value", NULL}},
  {"copy", "sigma=2", {"sigma", "copy", "no parameter", NULL}},
};

START_TEST (unusable_setting_is_one_error_and_can_be_put_right)
{
  const BadSetting *bad = &bad_settings[_i];
  GstElement *pipeline = pipeline_new (LINE "! fakesink name=sink");
  GstElement *x = pipeline_get (pipeline, "x");
  Counter *counter = counter_new (pipeline, "sink", "sink");

  g_object_set (x, "kernel", bad->kernel, "kernel-params", bad->params, NULL);
  for (guint again = 0; again < 2; again++)
    pipeline_expect_error (pipeline, bad->says[0], bad->says[1], bad->says[2], bad->says[3], NULL);
  ck_assert_uint_eq (counter_get (counter), 0);
  g_object_set (x, "kernel", "gaussianblur", "kernel-params", "sigma=1.5", NULL);
  pipeline_run (pipeline);
  ck_assert_uint_eq (counter_get (counter), 8);
  pipeline_free (pipeline);
  counter_free (counter);
}

END_TEST

/* The source says so: it is the first to know. */
START_TEST (format_of_no_kernel_ends_the_pipeline)
{
  GstElement *pipeline = pipeline_new ("videotestsrc num-buffers=8 ! capsfilter name=f "
      "! X name=x ! fakesink");
  GstBus *bus = gst_element_get_bus (pipeline);
  GstCaps *caps = gst_caps_from_string ("video/x-raw,format=AYUV,width=64,height=48");

  g_object_set (pipeline_get (pipeline, "f"), "caps", caps, NULL);
  gst_caps_unref (caps);
  if (gst_element_set_state (pipeline, GST_STATE_PLAYING) != GST_STATE_CHANGE_FAILURE)
    ck_assert_int_eq (pipeline_wait (pipeline), GST_MESSAGE_ERROR);
  gst_element_set_state (pipeline, GST_STATE_NULL);
  caps = gst_caps_from_string ("video/x-raw,format=RGBA,width=64,height=48");
  g_object_set (pipeline_get (pipeline, "f"), "caps", caps, NULL);
  gst_caps_unref (caps);
  pipeline_run (pipeline);
  pipeline_free (pipeline);
  gst_object_unref (bus);
}

END_TEST

/* ---- devices --------------------------------------------------------------------------------- */

static GstElement *
pipeline_with (const gchar * properties)
{
  gchar *line = g_strdup_printf (LINE "%s ! fakesink", properties);
  GstElement *pipeline = pipeline_new (line);

  g_free (line);
  return pipeline;
}

START_TEST (no_device_is_an_error_for_cuda)
{
  GstElement *pipeline = pipeline_with ("");

  fake_setting ("DEVICES", 0);
  pipeline_expect_error (pipeline, "CUDA device", "CUDA_VISIBLE_DEVICES", NULL);
  fake_setting ("DEVICES", 1);
  pipeline_run (pipeline);
  pipeline_free (pipeline);
}

END_TEST

static void
expect_cpu_with_warning (GstElement * pipeline, const gchar * reason)
{
  GstBus *bus = gst_element_get_bus (pipeline);
  gchar *backend;

  pipeline_play (pipeline);
  ck_assert_int_eq (pipeline_wait (pipeline), GST_MESSAGE_EOS);
  expect_one_warning (bus, pipeline_get (pipeline, "x"), "CPU", reason, NULL);
  backend = stats_string (pipeline_get (pipeline, "x"), "backend");
  ck_assert_str_eq (backend, "cpu");
  ck_assert_uint_eq (stats_uint64 (pipeline_get (pipeline, "x"), "processed"), 8);
  g_free (backend);
  gst_object_unref (bus);
  gst_element_set_state (pipeline, GST_STATE_NULL);
}

START_TEST (auto_without_a_device_runs_on_the_cpu_and_says_why)
{
  GstElement *pipeline = pipeline_with ("backend=auto");
  gchar *backend;

  fake_setting ("DEVICES", 0);
  expect_cpu_with_warning (pipeline, "CUDA device");
  expect_cpu_with_warning (pipeline, "CUDA device");
  fake_setting ("DEVICES", 1);
  fake_setting ("DRIVER_VERSION", 11080);
  expect_cpu_with_warning (pipeline, "11.8");
  fake_setting ("DRIVER_VERSION", 13000);
  pipeline_run (pipeline);
  backend = stats_string (pipeline_get (pipeline, "x"), "backend");
  ck_assert_str_eq (backend, "cuda");
  g_free (backend);
  pipeline_free (pipeline);
}

END_TEST

/* Caps that change do not ask for the GPU, or warn, again. */
START_TEST (auto_warns_once_a_run)
{
  Rig *rig;

  fake_setting ("DEVICES", 0);
  rig = rig_new ("backend=auto");
  rig_set_caps (rig, "NV12", 64, 48);
  ck_assert_int_eq (rig_feed (rig, 0, 3), GST_FLOW_OK);
  rig_set_caps (rig, "NV12", 32, 24);
  ck_assert_int_eq (rig_feed (rig, 3, 3), GST_FLOW_OK);
  rig_wait_buffers (rig, 6);
  expect_one_warning (rig->bus, rig->x, "CPU", NULL);
  rig_free (rig);
}

END_TEST

/* Trial wolf #298: always GPU 0. */
START_TEST (device_id_chooses_the_device)
{
  GstElement *pipeline = pipeline_with ("");
  GstElement *x = pipeline_get (pipeline, "x");
  static const struct
  {
    gint id;
    const gchar *name;
  } cases[] = { {1, "Fake GPU 1"}, {0, "Fake GPU 0"}, {-1, "Fake GPU 0"} };

  fake_setting ("DEVICES", 2);
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    gchar *name;

    g_object_set (x, "cuda-device-id", cases[i].id, NULL);
    pipeline_run (pipeline);
    name = stats_string (x, "device");
    ck_assert_str_eq (name, cases[i].name);
    g_free (name);
    gst_element_set_state (pipeline, GST_STATE_NULL);
  }
  g_object_set (x, "cuda-device-id", 7, NULL);
  pipeline_expect_error (pipeline, "0 to 1", "7", "2 devices", NULL);
  g_object_set (x, "cuda-device-id", 1, NULL);
  pipeline_run (pipeline);
  pipeline_free (pipeline);
}

END_TEST

START_TEST (two_elements_may_have_a_device_each)
{
  GstElement *pipeline;

  fake_setting ("DEVICES", 2);
  pipeline = pipeline_new ("videotestsrc num-buffers=60 ! video/x-raw,width=64,height=48 "
      "! X name=a cuda-device-id=0 ! X name=b cuda-device-id=1 kernel=sobel ! fakesink");
  pipeline_run (pipeline);
  ck_assert_uint_eq (stats_uint64 (pipeline_get (pipeline, "b"), "processed"), 60);
  ck_assert_uint_eq (stats_uint64 (pipeline_get (pipeline, "b"), "host-copies"), 0);
  pipeline_free (pipeline);
}

END_TEST

START_TEST (prohibited_device_is_an_error)
{
  GstElement *pipeline = pipeline_with ("");

  fake_setting (ATTRIBUTE_COMPUTE_MODE, COMPUTE_MODE_PROHIBITED);
  pipeline_expect_error (pipeline, "prohibited", NULL);
  fake_reset ();
  pipeline_run (pipeline);
  pipeline_free (pipeline);
}

END_TEST

START_TEST (old_driver_is_an_error)
{
  GstElement *pipeline = pipeline_with ("");

  fake_setting ("DRIVER_VERSION", 11080);
  pipeline_expect_error (pipeline, "12.0", "11.8", "driver", NULL);
  fake_setting ("DRIVER_VERSION", 13000);
  pipeline_run (pipeline);
  pipeline_free (pipeline);
}

END_TEST

START_TEST (too_little_device_memory_is_an_error)
{
  GstElement *pipeline = pipeline_new ("videotestsrc num-buffers=8 "
      "! video/x-raw,format=RGBA,width=640,height=480 ! X name=x num-streams=4 ! fakesink");

  fake_setting ("MEMORY", 3 << 20);
  pipeline_expect_error (pipeline, "MiB", "4 streams", "num-streams", NULL);
  ck_assert_uint_eq (fake_counters ().device_bytes, 0);
  g_object_set (pipeline_get (pipeline, "x"), "num-streams", 1, NULL);
  pipeline_run (pipeline);
  pipeline_free (pipeline);
}

END_TEST

/* Pinned memory that the driver refuses is no failure: frames pass through pageable memory. */
START_TEST (no_pinned_memory_is_no_error)
{
  GstElement *pipeline = pipeline_with ("");

  fake_setting ("PINNED_MEMORY", 4096);
  pipeline_run (pipeline);
  ck_assert_uint_eq (stats_uint64 (pipeline_get (pipeline, "x"), "processed"), 8);
  ck_assert_uint_ge (stats_uint64 (pipeline_get (pipeline, "x"), "host-copies"), 8);
  pipeline_free (pipeline);
}

END_TEST

/* ---- a device that fails --------------------------------------------------------------------- */

/* With one stream operations come in order: GRAY8 has three a frame, upload, kernel and
 * download. */
START_TEST (device_failure_comes_after_the_frames_before)
{
  guint failing = 3 * 4 + (guint) _i;   /* of frame 4: 1 upload, 2 kernel, 3 download */
  Rig *rig = rig_new ("num-streams=1 kernel=sobel");
  GstFlowReturn flow = GST_FLOW_OK;

  rig_set_caps (rig, "GRAY8", 64, 48);
  fake_setting ("ASYNC_FAIL_AT", failing);
  for (guint n = 0; n < 20 && flow == GST_FLOW_OK; n++)
    flow = rig_push (rig, rig_frame (rig, n));
  ck_assert_int_eq (flow, GST_FLOW_ERROR);
  ck_assert_uint_eq (rig->buffers, 4);
  expect_one_error (rig->bus, rig->x, "sobel", "frame 4", "restart", NULL);
  rig_free (rig);
}

END_TEST

START_TEST (device_failure_among_streams_is_one_error)
{
  for (guint k = 1; k <= 24; k += 1 + test_random (3)) {
    Rig *rig = rig_new ("num-streams=3 kernel=copy");
    GstFlowReturn flow = GST_FLOW_OK;
    gchar *frame;

    rig_set_caps (rig, "GRAY8", 64, 48);
    fake_setting ("ASYNC_FAIL_AT", k);
    for (guint n = 0; n < 40 && flow == GST_FLOW_OK; n++)
      flow = rig_push (rig, rig_frame (rig, n));
    ck_assert_int_eq (flow, GST_FLOW_ERROR);
    frame = g_strdup_printf ("frame %u", rig->buffers);
    expect_one_error (rig->bus, rig->x, "copy", frame, NULL);
    for (guint n = 0; n < rig->buffers; n++) {
      GstBuffer *out = rig_pull (rig);

      ck_assert_uint_eq (GST_BUFFER_OFFSET (out), n);
      gst_buffer_unref (out);
    }
    g_free (frame);
    rig_free (rig);
  }
}

END_TEST

/* A device that fails while upstream has already sent EOS: the error comes, EOS does not stand
 * for it. */
START_TEST (device_failure_after_eos_is_told)
{
  Rig *rig = rig_new ("num-streams=3");
  GstMessage *message;

  rig_set_caps (rig, "GRAY8", 64, 48);
  fake_setting ("ASYNC_FAIL_AT", 9);
  rig_feed (rig, 0, 3);
  rig_push_event (rig, gst_event_new_eos ());
  message = gst_bus_timed_pop_filtered (rig->bus, GST_CLOCK_TIME_NONE, GST_MESSAGE_ERROR);
  ck_assert (GST_MESSAGE_SRC (message) == GST_OBJECT (rig->x));
  gst_message_unref (message);
  rig_free (rig);
}

END_TEST

START_TEST (a_pipeline_plays_again_after_a_device_failure)
{
  GstElement *pipeline = pipeline_with ("");

  for (guint n = 0; n < 5; n++) {
    fake_setting ("ASYNC_FAIL_AT", 5);
    pipeline_expect_error (pipeline, "copy", "frame", NULL);
    /* With the last reference the broken context goes. */
    pipeline_run (pipeline);
    gst_element_set_state (pipeline, GST_STATE_NULL);
  }
  pipeline_free (pipeline);
}

END_TEST

/* Plays with the k-th driver call failing.  TRUE: it ended in an error. */
static gboolean
run_with_failure (GstElement * pipeline, guint k)
{
  GstBus *bus = gst_element_get_bus (pipeline);
  gboolean failed;

  fake_setting ("FAIL_AT", k);
  failed = gst_element_set_state (pipeline, GST_STATE_PLAYING) == GST_STATE_CHANGE_FAILURE
      || pipeline_wait (pipeline) == GST_MESSAGE_ERROR;
  gst_element_set_state (pipeline, GST_STATE_NULL);
  fake_setting ("FAIL_AT", 0);
  gst_bus_set_flushing (bus, TRUE);
  gst_bus_set_flushing (bus, FALSE);
  gst_object_unref (bus);
  ck_assert_uint_eq (fake_counters ().running, 0);
  ck_assert_uint_eq (fake_counters ().primary_references, 0);
  ck_assert_uint_eq (fake_counters ().device_bytes, 0);
  ck_assert_uint_eq (fake_counters ().pinned_ranges, 0);
  return failed;
}

/* Every driver call of a short run fails once, the context lost with it or not: an error or
 * success, never a crash or a hang, nothing left, and a run without failures succeeds
 * afterwards. */
START_TEST (any_driver_call_may_fail)
{
  GstElement *pipeline = pipeline_new ("videotestsrc num-buffers=4 "
      "! video/x-raw,format=NV12,width=32,height=24 ! X name=x num-streams=2 ! fakesink");
  guint64 injected;
  guint k = 0, errors = 0;

  fake_setting ("DELAY_US", 0);
  if (_i == 1) {
    fake_setting ("FAIL_STICKY", 1);
    fake_setting ("FAIL_CODE", 700);
  }
  do {
    injected = fake_counters ().injected;
    errors += run_with_failure (pipeline, ++k);
  } while (fake_counters ().injected > injected && k < 2000);
  ck_assert_uint_gt (k, 50);
  ck_assert_uint_gt (errors, 20);
  pipeline_run (pipeline);
  pipeline_free (pipeline);
}

END_TEST

/* ---- a device that never finishes ------------------------------------------------------------ */

START_TEST (flush_does_not_wait_for_a_device_that_hangs)
{
  Rig *rig = rig_new ("num-streams=2");
  GstSegment segment;

  rig_set_caps (rig, "GRAY8", 64, 48);
  fake_setting ("HANG_AT", 1);
  ck_assert_int_eq (rig_feed (rig, 0, 1), GST_FLOW_OK);
  ck_assert (rig_push_event (rig, gst_event_new_flush_start ()));
  ck_assert (rig_push_event (rig, gst_event_new_flush_stop (TRUE)));
  gst_segment_init (&segment, GST_FORMAT_TIME);
  ck_assert (rig_push_event (rig, gst_event_new_segment (&segment)));
  fake->release_hang ();
  ck_assert_int_eq (rig_feed (rig, 10, 3), GST_FLOW_OK);
  rig_wait_buffers (rig, 3);
  ck_assert_uint_eq (GST_BUFFER_OFFSET (rig_pull (rig)), 10);
  _exit (0);
}

END_TEST

/* What the device may still write is kept, so this test's process ends without a look for leaks. */
START_TEST (stop_gives_up_on_a_device_that_hangs)
{
  Rig *rig = rig_new ("num-streams=2");

  rig_set_caps (rig, "GRAY8", 64, 48);
  fake_setting ("HANG_AT", 1);
  ck_assert_int_eq (rig_feed (rig, 0, 2), GST_FLOW_OK);
  gst_element_set_state (rig->x, GST_STATE_NULL);
  expect_one_error (rig->bus, rig->x, "did not finish", NULL);
  _exit (0);
}

END_TEST

/* Lost contexts take their objects with them, so only what cannot be excused is looked at. */
static void
check_misuse (void)
{
  ck_assert_uint_eq (fake_counters ().misuse, 0);
  ck_assert_uint_eq (fake_counters ().running, 0);
  ck_assert_uint_eq (fake_counters ().primary_references, 0);
}

static void
add_device_tests (Suite * suite)
{
  TCase *tests = test_case (suite, "devices");
  TCase *faults = tcase_create ("faults");

  tcase_add_test (tests, no_device_is_an_error_for_cuda);
  tcase_add_test (tests, auto_without_a_device_runs_on_the_cpu_and_says_why);
  tcase_add_test (tests, auto_warns_once_a_run);
  tcase_add_test (tests, device_id_chooses_the_device);
  tcase_add_test (tests, two_elements_may_have_a_device_each);
  tcase_add_test (tests, prohibited_device_is_an_error);
  tcase_add_test (tests, old_driver_is_an_error);
  tcase_add_test (tests, too_little_device_memory_is_an_error);
  tcase_add_test (tests, no_pinned_memory_is_no_error);

  tcase_set_timeout (faults, 200);
  tcase_add_checked_fixture (faults, NULL, check_misuse);
  suite_add_tcase (suite, faults);
  tcase_add_loop_test (faults, device_failure_comes_after_the_frames_before, 1, 4);
  tcase_add_test (faults, device_failure_among_streams_is_one_error);
  tcase_add_test (faults, device_failure_after_eos_is_told);
  tcase_add_test (faults, a_pipeline_plays_again_after_a_device_failure);
  tcase_add_loop_test (faults, any_driver_call_may_fail, 0, 2);
  tcase_add_test (faults, flush_does_not_wait_for_a_device_that_hangs);
  tcase_add_test (faults, stop_gives_up_on_a_device_that_hangs);
}

static Suite *
errors_suite (void)
{
  Suite *suite = suite_create ("errors");
  TCase *tests = test_case (suite, "settings");

  tcase_add_loop_test (tests, unusable_setting_is_one_error_and_can_be_put_right, 0,
      G_N_ELEMENTS (bad_settings));
  tcase_add_test (tests, format_of_no_kernel_ends_the_pipeline);
  if (fake != NULL)
    add_device_tests (suite);
  return suite;
}

int
main (int argc, char **argv)
{
  return test_main (argc, argv, errors_suite);
}
