/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The element under gst-launch-1.0, as a user types it: exit codes, what is printed and what is
 * not. Each line runs in a process of its own with the plugins it needs and no others. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "element.h"

typedef struct
{
  int status;                   /* of waitpid */
  gchar *out, *err;
} Outcome;

/* A test that times out takes its gst-launch along. */
static void
die_with_parent (gpointer data)
{
  prctl (PR_SET_PDEATHSIG, SIGKILL);
}

static Outcome
launch (const gchar * options, const gchar * source, const gchar * properties,
    const gchar * environment)
{
  static const gchar *const names[] = { "coreelements", "videotestsrc", "cudastream" };
  GString *plugins = g_string_new (NULL);
  gchar *line, **argv, **envp = g_get_environ ();
  GError *error = NULL;
  Outcome outcome = { 0 };

  for (guint i = 0; i < G_N_ELEMENTS (names); i++) {
    gchar *path = test_find_plugin (names[i]);

    g_string_append_printf (plugins, "%s%s", i == 0 ? "" : ",", path);
    g_free (path);
  }
  envp = g_environ_unsetenv (envp, "GST_PLUGIN_PATH");
  if (environment != NULL) {
    gchar **pair = g_strsplit (environment, "=", 2);

    envp = g_environ_setenv (envp, pair[0], pair[1], TRUE);
    g_strfreev (pair);
  }
  line = g_strdup_printf ("gst-launch-1.0 --gst-plugin-load=%s %s %s "
      "! cudastreamfilter backend=%s %s ! fakesink", plugins->str, options, source, test_backend (),
      properties);
  ck_assert (g_shell_parse_argv (line, NULL, &argv, &error));
  ck_assert_msg (g_spawn_sync (NULL, argv, envp, G_SPAWN_SEARCH_PATH, die_with_parent, NULL,
          &outcome.out, &outcome.err, &outcome.status, &error), "%s: %s", line,
      error != NULL ? error->message : "");
  g_strfreev (argv);
  g_strfreev (envp);
  g_free (line);
  g_string_free (plugins, TRUE);
  return outcome;
}

static void
outcome_clear (Outcome * outcome)
{
  g_free (outcome->out);
  g_free (outcome->err);
}

static void
check_success (const Outcome * outcome)
{
  ck_assert_msg (WIFEXITED (outcome->status) && WEXITSTATUS (outcome->status) == 0,
      "status %d\n%s\n%s", outcome->status, outcome->out, outcome->err);
}

/* It ended by itself, with a code that tells. */
static void
check_failure (const Outcome * outcome, const gchar * says)
{
  ck_assert_msg (WIFEXITED (outcome->status) && WEXITSTATUS (outcome->status) != 0,
      "status %d\n%s\n%s", outcome->status, outcome->out, outcome->err);
  ck_assert_msg (strstr (outcome->err, says) != NULL, "no \"%s\" in\n%s", says, outcome->err);
}

#define SOURCE "videotestsrc num-buffers=30 ! video/x-raw,width=64,height=48"
#define ENDLESS "videotestsrc ! video/x-raw,width=64,height=48"

START_TEST (nothing_is_written_to_stdout)
{
  Outcome outcome = launch ("-q", SOURCE, "kernel=sobel", NULL);

  check_success (&outcome);
  ck_assert_str_eq (outcome.out, "");
  outcome_clear (&outcome);
}

END_TEST

START_TEST (verbose_shows_the_throughput)
{
  Outcome outcome = launch ("-v", SOURCE, "kernel=sobel", NULL);

  check_success (&outcome);
  ck_assert_msg (strstr (outcome.out, "last-message = processed: 30,") != NULL, "%s", outcome.out);
  outcome_clear (&outcome);
}

END_TEST

START_TEST (silent_shows_none)
{
  Outcome outcome = launch ("-v", SOURCE, "silent=true", NULL);

  check_success (&outcome);
  ck_assert (strstr (outcome.out, "last-message") == NULL);
  outcome_clear (&outcome);
}

END_TEST

/* Trial edgeai #182: -e waits for EOS forever after an error. */
START_TEST (setting_error_ends_with_a_code)
{
  Outcome outcome = launch ("-e", ENDLESS, "kernel=sobell", NULL);

  check_failure (&outcome, "sobell");
  outcome_clear (&outcome);
  outcome = launch ("-e", ENDLESS, "kernel=gaussianblur kernel-params=sigma=99", NULL);
  check_failure (&outcome, "sigma");
  outcome_clear (&outcome);
}

END_TEST

START_TEST (input_error_ends_with_a_code)
{
  Outcome outcome = launch ("-e", "fakesrc sizetype=fixed sizemax=100 "
      "! video/x-raw,format=GRAY8,width=64,height=48,framerate=30/1", "", NULL);

  check_failure (&outcome, "100 bytes");
  outcome_clear (&outcome);
}

END_TEST

START_TEST (device_failure_ends_with_a_code)
{
  Outcome outcome = launch ("-e", ENDLESS, "kernel=sobel", "FAKE_CUDA_ASYNC_FAIL_AT=100");

  check_failure (&outcome, "sobel");
  outcome_clear (&outcome);
}

END_TEST

START_TEST (no_device_ends_with_a_code)
{
  Outcome outcome = launch ("-e", ENDLESS, "", "FAKE_CUDA_DEVICES=0");

  check_failure (&outcome, "CUDA device");
  outcome_clear (&outcome);
}

END_TEST

static Suite *
launch_suite (void)
{
  Suite *suite = suite_create ("launch");
  TCase *tests = test_case (suite, "launch");

  tcase_add_test (tests, nothing_is_written_to_stdout);
  tcase_add_test (tests, verbose_shows_the_throughput);
  tcase_add_test (tests, silent_shows_none);
  tcase_add_test (tests, setting_error_ends_with_a_code);
  tcase_add_test (tests, input_error_ends_with_a_code);
  if (fake != NULL) {
    tcase_add_test (tests, device_failure_ends_with_a_code);
    tcase_add_test (tests, no_device_ends_with_a_code);
  }
  return suite;
}

int
main (int argc, char **argv)
{
  return test_main (argc, argv, launch_suite);
}
