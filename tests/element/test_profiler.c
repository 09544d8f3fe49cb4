/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a profiler sees of the element: the parts of every frame's way as ranges that carry its number.
 * Runs with the fake profiler. */
#include "element.h"
#include "tests/fake/fake_nvtx.h"

static void
check_range (const gchar * name, guint64 times, guint64 last)
{
  fake_nvtx_range found = { "", 0, 0, 0 };
  fake_nvtx_counters counters;

  fake_nvtx_find ()->get_counters (&counters);
  ck_assert_str_eq (counters.domain, "cudastreamfilter");
  ck_assert_uint_eq (counters.misuse, 0);
  for (guint i = 0; i < counters.n_ranges; i++)
    if (g_str_equal (counters.ranges[i].name, name))
      found = counters.ranges[i];
  ck_assert_msg (found.pushes == times && found.pops == times && found.payload == last,
      "%s: %" G_GUINT64_FORMAT " pushes, %" G_GUINT64_FORMAT " pops, %" G_GUINT64_FORMAT " the last",
      name, found.pushes, found.pops, found.payload);
}

START_TEST (every_frame_is_seen_on_its_way)
{
  GstElement *pipeline;

  ck_assert_msg (fake_nvtx_find () != NULL, "NVTX_INJECTION64_PATH does not name the fake profiler");
  fake_nvtx_find ()->reset ();
  pipeline = pipeline_new ("videotestsrc num-buffers=50 "
      "! video/x-raw,format=NV12,width=64,height=48 ! X num-streams=3 ! fakesink");
  pipeline_run (pipeline);
  pipeline_free (pipeline);
  check_range ("submit", 50, 49);
  check_range ("wait", 50, 49);
  check_range ("push", 50, 49);
  check_range ("stage", 0, 0);
}

END_TEST

START_TEST (staging_is_seen)
{
  const gboolean pins = test_backend_pins ();
  Rig *rig = rig_new ("");

  fake_nvtx_find ()->reset ();
  rig_set_caps (rig, "NV12", 64, 48);
  ck_assert_int_eq (rig_feed (rig, 0, 2), GST_FLOW_OK);
  rig_wait_buffers (rig, 2);
  rig_free (rig);
  check_range ("stage", pins ? 2 : 0, pins ? 1 : 0);
  check_range ("push", 2, 1);
}

END_TEST

static Suite *
profiler_suite (void)
{
  Suite *suite = suite_create ("profiler");
  TCase *tests = test_case (suite, "profiler");

  tcase_add_test (tests, every_frame_is_seen_on_its_way);
  tcase_add_test (tests, staging_is_seen);
  return suite;
}

int
main (int argc, char **argv)
{
  return test_main (argc, argv, profiler_suite);
}
