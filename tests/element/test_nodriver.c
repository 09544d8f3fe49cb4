/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Machines whose driver is missing, broken or too old: the plugin loads there all the same,
 * backend=cuda says what is wrong, and backend=auto says it and goes on.  CSF_TEST_DRIVER names
 * the machine; which driver is found is the environment's work. */
#include "element.h"

#define LINE "videotestsrc num-buffers=8 ! video/x-raw,format=NV12,width=64,height=48 " \
  "! cudastreamfilter name=x backend=%s ! fakesink"

static const gchar *
reason (void)
{
  return g_strcmp0 (g_getenv ("CSF_TEST_DRIVER"), "old") == 0 ? "older than CUDA 12" :
      "libcuda.so.1";
}

static GstElement *
new_pipeline (const gchar * backend)
{
  gchar *line = g_strdup_printf (LINE, backend);
  GstElement *pipeline = pipeline_new (line);

  g_free (line);
  return pipeline;
}

START_TEST (backend_cuda_says_what_is_missing)
{
  GstElement *pipeline = new_pipeline ("cuda");

  for (guint n = 0; n < 3; n++)
    pipeline_expect_error (pipeline, reason (), "NVIDIA driver", NULL);
  gst_util_set_object_arg (G_OBJECT (pipeline_get (pipeline, "x")), "backend", "cpu");
  pipeline_run (pipeline);
  pipeline_free (pipeline);
}

END_TEST

START_TEST (backend_auto_goes_on_with_a_warning)
{
  GstElement *pipeline = new_pipeline ("auto");
  GstBus *bus = gst_element_get_bus (pipeline);

  for (guint n = 0; n < 3; n++) {
    gchar *backend;

    pipeline_play (pipeline);
    ck_assert_int_eq (pipeline_wait (pipeline), GST_MESSAGE_EOS);
    expect_one_warning (bus, pipeline_get (pipeline, "x"), "CPU", reason (), NULL);
    backend = stats_string (pipeline_get (pipeline, "x"), "backend");
    ck_assert_str_eq (backend, "cpu");
    g_free (backend);
    ck_assert_uint_eq (stats_uint64 (pipeline_get (pipeline, "x"), "processed"), 8);
    gst_element_set_state (pipeline, GST_STATE_NULL);
  }
  gst_object_unref (bus);
  pipeline_free (pipeline);
}

END_TEST

START_TEST (backend_cpu_is_silent)
{
  GstElement *pipeline = new_pipeline ("cpu");

  pipeline_run (pipeline);
  pipeline_free (pipeline);
}

END_TEST

static Suite *
nodriver_suite (void)
{
  Suite *suite = suite_create ("nodriver");
  TCase *tests = test_case (suite, "nodriver");

  tcase_add_test (tests, backend_cuda_says_what_is_missing);
  tcase_add_test (tests, backend_auto_goes_on_with_a_warning);
  tcase_add_test (tests, backend_cpu_is_silent);
  return suite;
}

int
main (int argc, char **argv)
{
  return test_main (argc, argv, nodriver_suite);
}
