/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The programs' frame: plugins are loaded by name, so that nothing is scanned and no registry is
 * written, each test runs in a process of its own and leaves the fake driver balanced.  Rigs are in
 * rig.c. */
#include "element.h"

#include <stdlib.h>
#include <string.h>

/* A test that takes longer hangs; tests run many times slower with sanitizers on a busy machine. */
#define TEST_TIMEOUT_S 120
#define WAIT_TIMEOUT (100 * GST_SECOND)

const fake_cuda *fake;
static guint32 seed;
static GRand *generator;

/* ---- programs -------------------------------------------------------------------------------- */

const gchar *
test_backend (void)
{
  const gchar *backend = g_getenv ("CSF_TEST_BACKEND");

  return backend != NULL ? backend : "cpu";
}

gboolean
test_backend_pins (void)
{
  return g_strcmp0 (test_backend (), "cuda") == 0;
}

gchar *
test_find_plugin (const gchar * name)
{
  static const gchar *const variables[] = {
    "GST_PLUGIN_PATH_1_0", "GST_PLUGIN_PATH", "CSF_TEST_SYSTEM_PATH", NULL
  };
  gchar *file = g_strdup_printf ("libgst%s.so", name), *path = NULL;
  GString *folders = g_string_new (NULL);
  gchar **split;

  for (guint i = 0; variables[i] != NULL; i++)
    if (g_getenv (variables[i]) != NULL)
      g_string_append_printf (folders, "%s:", g_getenv (variables[i]));
  g_string_append (folders, GST_PLUGINS_DIR);
  split = g_strsplit (folders->str, ":", -1);
  for (guint i = 0; split[i] != NULL && path == NULL; i++) {
    path = g_build_filename (split[i], file, NULL);
    if (!g_file_test (path, G_FILE_TEST_EXISTS))
      g_clear_pointer (&path, g_free);
  }
  g_strfreev (split);
  g_string_free (folders, TRUE);
  g_free (file);
  return path;
}

static void
load_plugin (const gchar * name)
{
  gchar *path = test_find_plugin (name);
  GError *error = NULL;
  GstPlugin *plugin;

  if (path == NULL)
    g_error ("no libgst%s.so in GST_PLUGIN_PATH, GST_PLUGIN_SYSTEM_PATH and %s", name,
        GST_PLUGINS_DIR);
  plugin = gst_plugin_load_file (path, &error);
  if (plugin == NULL)
    g_error ("%s: %s", path, error->message);
  gst_object_unref (plugin);
  g_free (path);
}

/* Keeps what it says of system plugins for test_find_plugin and makes GStreamer scan nothing. */
static void
forbid_scan (void)
{
  const gchar *system = g_getenv ("GST_PLUGIN_SYSTEM_PATH_1_0");

  if (system == NULL)
    system = g_getenv ("GST_PLUGIN_SYSTEM_PATH");
  if (system != NULL)
    g_setenv ("CSF_TEST_SYSTEM_PATH", system, TRUE);
  g_setenv ("GST_PLUGIN_SYSTEM_PATH_1_0", "", TRUE);
  g_setenv ("GST_REGISTRY_DISABLE", "yes", TRUE);
  g_setenv ("GST_REGISTRY_FORK", "no", TRUE);
}

static void
init_random (void)
{
  const gchar *text = g_getenv ("CSF_TEST_SEED");

  seed = text != NULL ? (guint32) strtoul (text, NULL, 0) : g_random_int ();
  generator = g_rand_new_with_seed (seed);
  g_printerr ("CSF_TEST_SEED=%u CSF_TEST_BACKEND=%s\n", seed, test_backend ());
}

static gchar *program_folder;

const gchar *
test_library (const gchar * which)
{
  gchar *name = g_strdup_printf ("libcsf-test-kernels%s.so", which);
  gchar *path = g_build_filename (program_folder, name, NULL);
  const gchar *kept = g_intern_string (path);

  g_free (path);
  g_free (name);
  return kept;
}

int
test_main (int argc, char **argv, Suite * (*make) (void))
{
  static const gchar *const names[] = {
    "coreelements", "videotestsrc", "compositor", "cudastream"
  };
  const gchar *program = g_path_get_basename (argv[0]);
  gchar *plugin_path = g_strdup (g_getenv ("GST_PLUGIN_PATH"));
  int failed;

  program_folder = g_path_get_dirname (argv[0]);
  forbid_scan ();
  g_unsetenv ("GST_PLUGIN_PATH");
  gst_check_init (&argc, &argv);
  if (plugin_path != NULL)
    g_setenv ("GST_PLUGIN_PATH", plugin_path, TRUE);
  for (guint i = 0; i < G_N_ELEMENTS (names); i++)
    load_plugin (names[i]);
  if (test_backend_pins ())
    fake = fake_cuda_find ();
  init_random ();
  failed = gst_check_run_suite (make (), program, __FILE__);
  g_rand_free (generator);
  g_free (plugin_path);
  g_free ((gchar *) program);
  g_free (program_folder);
  return failed;
}

fake_cuda_counters
fake_counters (void)
{
  fake_cuda_counters counters;

  memset (&counters, 0, sizeof counters);
  if (fake != NULL)
    fake->get_counters (&counters);
  return counters;
}

void
fake_setting (const gchar * name, gint64 value)
{
  ck_assert (fake != NULL);
  ck_assert_msg (fake->set (name, value) != 0, "the fake driver has no setting %s", name);
}

void
fake_reset (void)
{
  ck_assert (fake != NULL);
  fake->reset ();
}

/* A flushed frame may be with the device for a moment after all else is gone; nothing else is. */
static void
check_balance (void)
{
  fake_cuda_counters left;

  if (fake == NULL)
    return;
  left = fake_counters ();
  ck_assert_int_eq (left.misuse, 0);
  ck_assert_int_eq (left.orphans, 0);
  ck_assert_int_eq (left.running, 0);
  ck_assert_int_eq (left.device_bytes, 0);
  ck_assert_int_eq (left.managed_bytes, 0);
  ck_assert_int_eq (left.pinned_ranges, 0);
  ck_assert_int_eq (left.streams, 0);
  ck_assert_int_eq (left.events, 0);
  ck_assert_int_eq (left.modules, 0);
  ck_assert_int_eq (left.primary_references, 0);
}

TCase *
test_case (Suite * suite, const gchar * name)
{
  TCase *tests = tcase_create (name);

  tcase_set_timeout (tests, TEST_TIMEOUT_S);
  tcase_add_checked_fixture (tests, NULL, check_balance);
  suite_add_tcase (suite, tests);
  return tests;
}

guint
test_random (guint limit)
{
  return (guint) g_rand_int_range (generator, 0, (gint32) limit);
}

/* ---- statistics and messages ----------------------------------------------------------------- */

guint64
stats_uint64 (GstElement * x, const gchar * field)
{
  GstStructure *stats = NULL;
  guint64 value = 0;

  g_object_get (x, "stats", &stats, NULL);
  ck_assert_msg (gst_structure_get_uint64 (stats, field, &value), "no %s in stats", field);
  gst_structure_free (stats);
  return value;
}

gchar *
stats_string (GstElement * x, const gchar * field)
{
  GstStructure *stats = NULL;
  gchar *value;

  g_object_get (x, "stats", &stats, NULL);
  value = g_strdup (gst_structure_get_string (stats, field));
  ck_assert_msg (value != NULL, "no %s in stats", field);
  gst_structure_free (stats);
  return value;
}

static gchar *
message_text (GstMessage * message)
{
  GError *error = NULL;
  gchar *debug = NULL, *text;

  if (GST_MESSAGE_TYPE (message) == GST_MESSAGE_ERROR)
    gst_message_parse_error (message, &error, &debug);
  else
    gst_message_parse_warning (message, &error, &debug);
  text = g_strdup (error->message);
  g_error_free (error);
  g_free (debug);
  return text;
}

static void
expect_one (GstBus * bus, GstElement * x, GstMessageType type, va_list parts)
{
  gchar *text = NULL;
  const gchar *part;
  GstMessage *message;

  /* A flow return may be seen before the message that goes with it. */
  while ((message = gst_bus_timed_pop_filtered (bus, text == NULL ? WAIT_TIMEOUT : 0,
              type)) != NULL) {
    if (GST_MESSAGE_SRC (message) == GST_OBJECT (x)) {
      gchar *found = message_text (message);

      ck_assert_msg (text == NULL, "a second %s: \"%s\" after \"%s\"",
          gst_message_type_get_name (type), found, text);
      text = found;
    }
    gst_message_unref (message);
  }
  ck_assert_msg (text != NULL, "no %s from the element", gst_message_type_get_name (type));
  while ((part = va_arg (parts, const gchar *)) != NULL)
    ck_assert_msg (strstr (text, part) != NULL, "\"%s\" does not contain \"%s\"", text, part);
  g_free (text);
}

void
expect_one_error (GstBus * bus, GstElement * x, ...)
{
  va_list parts;

  va_start (parts, x);
  expect_one (bus, x, GST_MESSAGE_ERROR, parts);
  va_end (parts);
}

void
expect_one_warning (GstBus * bus, GstElement * x, ...)
{
  va_list parts;

  va_start (parts, x);
  expect_one (bus, x, GST_MESSAGE_WARNING, parts);
  va_end (parts);
}

void
expect_no_trouble (GstBus * bus)
{
  GstMessage *message = gst_bus_pop_filtered (bus, GST_MESSAGE_ERROR | GST_MESSAGE_WARNING);

  if (message != NULL)
    ck_abort_msg ("%s: %s", GST_MESSAGE_TYPE_NAME (message), message_text (message));
}

/* ---- pipelines ------------------------------------------------------------------------------- */

GstElement *
pipeline_new (const gchar * line)
{
  gchar *own = g_strdup_printf ("! cudastreamfilter backend=%s", test_backend ());
  gchar **parts = g_strsplit (line, "! X", -1);
  gchar *whole = g_strjoinv (own, parts);
  GError *error = NULL;
  GstElement *pipeline = gst_parse_launch (whole, &error);

  ck_assert_msg (error == NULL, "%s: %s", whole, error != NULL ? error->message : "");
  g_free (whole);
  g_strfreev (parts);
  g_free (own);
  return pipeline;
}

static void
note_gone (gpointer gone)
{
  g_atomic_int_set ((gint *) gone, TRUE);
}

/* Until it is gone with all that it kept, CUDA contexts among them: a change to PLAYING that GStreamer
 * continues in a thread of its own holds the bin for a moment after a change to NULL overtook it. */
void
pipeline_free (GstElement * pipeline)
{
  static gint gone;

  gst_element_set_state (pipeline, GST_STATE_NULL);
  g_atomic_int_set (&gone, FALSE);
  /* Let go in GObject's finalize, the last of all. */
  g_object_set_data_full (G_OBJECT (pipeline), "test-gone", &gone, note_gone);
  gst_object_unref (pipeline);
  for (guint n = 0; n < 10000 && !g_atomic_int_get (&gone); n++)
    g_usleep (1000);
  ck_assert_msg (g_atomic_int_get (&gone), "somebody still holds the pipeline");
}

/* The pipeline outlives every use of it, so no reference is given. */
GstElement *
pipeline_get (GstElement * pipeline, const gchar * name)
{
  GstElement *element = gst_bin_get_by_name (GST_BIN (pipeline), name);

  ck_assert_msg (element != NULL, "no element %s", name);
  gst_object_unref (element);
  return element;
}

void
pipeline_play (GstElement * pipeline)
{
  ck_assert_int_ne (gst_element_set_state (pipeline, GST_STATE_PLAYING), GST_STATE_CHANGE_FAILURE);
}

void
pipeline_set_state (GstElement * pipeline, GstState state)
{
  GstStateChangeReturn result = gst_element_set_state (pipeline, state);

  if (result == GST_STATE_CHANGE_ASYNC)
    result = gst_element_get_state (pipeline, NULL, NULL, WAIT_TIMEOUT);
  ck_assert_msg (result == GST_STATE_CHANGE_SUCCESS || result == GST_STATE_CHANGE_NO_PREROLL,
      "change to %s: %s", gst_element_state_get_name (state),
      gst_element_state_change_return_get_name (result));
}

/* Popping by type would drop the warnings before it. */
GstMessageType
pipeline_wait (GstElement * pipeline)
{
  GstBus *bus = gst_element_get_bus (pipeline);
  GstMessageType type = GST_MESSAGE_UNKNOWN;
  GQueue kept = G_QUEUE_INIT;
  GstMessage *message;

  while (type != GST_MESSAGE_EOS && type != GST_MESSAGE_ERROR) {
    message = gst_bus_timed_pop (bus, WAIT_TIMEOUT);
    ck_assert_msg (message != NULL, "the pipeline hangs");
    type = GST_MESSAGE_TYPE (message);
    if (type & (GST_MESSAGE_ERROR | GST_MESSAGE_WARNING))
      g_queue_push_tail (&kept, message);
    else
      gst_message_unref (message);
  }
  while ((message = g_queue_pop_head (&kept)) != NULL)
    gst_bus_post (bus, message);
  gst_object_unref (bus);
  return type;
}

void
pipeline_run (GstElement * pipeline)
{
  GstBus *bus = gst_element_get_bus (pipeline);

  pipeline_play (pipeline);
  pipeline_wait (pipeline);
  expect_no_trouble (bus);
  gst_object_unref (bus);
}

GstElement *
pipeline_of (const gchar * properties)
{
  gchar *line = g_strdup_printf ("videotestsrc num-buffers=3 ! video/x-raw,format=GRAY8 ! X name=x %s ! "
      "fakesink", properties);
  GstElement *pipeline = pipeline_new (line);

  g_free (line);
  return pipeline;
}

void
pipeline_expect_error (GstElement * pipeline, ...)
{
  GstBus *bus = gst_element_get_bus (pipeline);
  GstElement *x = pipeline_get (pipeline, "x");
  va_list parts;

  if (gst_element_set_state (pipeline, GST_STATE_PLAYING) != GST_STATE_CHANGE_FAILURE)
    ck_assert_int_eq (pipeline_wait (pipeline), GST_MESSAGE_ERROR);
  /* Messages of elements that go down are flushed with the bus, so they are read first. */
  va_start (parts, pipeline);
  expect_one (bus, x, GST_MESSAGE_ERROR, parts);
  va_end (parts);
  gst_element_set_state (pipeline, GST_STATE_NULL);
  gst_object_unref (bus);
}

/* ---- counting -------------------------------------------------------------------------------- */

static GstPadProbeReturn
count_one (GstPad * pad, GstPadProbeInfo * info, gpointer user_data)
{
  Counter *counter = user_data;

  g_mutex_lock (&counter->lock);
  counter->count++;
  g_cond_broadcast (&counter->changed);
  g_mutex_unlock (&counter->lock);
  return GST_PAD_PROBE_OK;
}

Counter *
counter_new (GstElement * pipeline, const gchar * element, const gchar * pad_name)
{
  Counter *counter = g_new0 (Counter, 1);
  GstPad *pad = gst_element_get_static_pad (pipeline_get (pipeline, element), pad_name);

  g_mutex_init (&counter->lock);
  g_cond_init (&counter->changed);
  gst_pad_add_probe (pad, GST_PAD_PROBE_TYPE_BUFFER, count_one, counter, NULL);
  gst_object_unref (pad);
  return counter;
}

void
counter_wait (Counter * counter, guint count)
{
  g_mutex_lock (&counter->lock);
  while (counter->count < count)
    g_cond_wait (&counter->changed, &counter->lock);
  g_mutex_unlock (&counter->lock);
}

guint
counter_get (Counter * counter)
{
  guint count;

  g_mutex_lock (&counter->lock);
  count = counter->count;
  g_mutex_unlock (&counter->lock);
  return count;
}

/* After the pipeline: its probes point here. */
void
counter_free (Counter * counter)
{
  g_mutex_clear (&counter->lock);
  g_cond_clear (&counter->changed);
  g_free (counter);
}
