/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Kernels from files: CUDA source, PTX and cubin; what is said when one cannot be used; reload.  On the fake
 * driver a device function of a file copies, whatever its code says: that code runs in tests/gpu. */
#include <gmodule.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "element.h"
#include "picture.h"

static gchar *folder;           /* for files of this run, removed at its end */

static gboolean
on_cuda (void)
{
  return g_str_equal (test_backend (), "cuda");
}

static gchar *
write_file (const gchar * name, const gchar * text)
{
  gchar *path = g_build_filename (folder, name, NULL);
  GError *error = NULL;

  if (!g_file_set_contents (path, text, -1, &error))
    ck_abort_msg ("%s", error->message);
  return path;
}

/* ---- files ----------------------------------------------------------------------------------- */

#define KERNEL(name, body) \
    "#include <cudastreamfilter/kernel.h>\n" \
    "struct " name "_args { csfk_frame frame; int key; };\n" \
    "extern \"C\" __global__ void\n" name " (const " name "_args args)\n{\n" body "\n}\n"

#define DESCRIBE(name, formats) \
    "extern \"C\" __device__ csfk_desc csfk_desc_" name " = { .abi = CSFK_ABI, .formats = { " formats " },\n" \
    "  .params_size = 4, .n_params = 1, .params = { { .name = \"key\", .maximum = 255,\n" \
    "      .default_value = 255, .type = CSFK_TYPE_INT } } };\n"

#define PTX(target) ".version 8.0\n.target sm_" target "\n.address_size 64\n" \
    ".visible .entry copy_ptx(.param .align 8 .b8 p[264])\n{ ret; }\n"

static gboolean
has_nvrtc (void)
{
  static const gchar *const places[] = {
    "libnvrtc.so.13", "libnvrtc.so.12", "/usr/local/cuda/lib64/libnvrtc.so.13",
    "/usr/local/cuda/lib64/libnvrtc.so.12"
  };

  for (guint i = 0; i < G_N_ELEMENTS (places); i++) {
    GModule *library = g_module_open (places[i], G_MODULE_BIND_LOCAL);

    /* It stays open: what it keeps for itself would be lost otherwise. */
    if (library != NULL)
      return TRUE;
  }
  return FALSE;
}

START_TEST (file_needs_a_gpu_and_a_known_ending)
{
  gchar *path = write_file ("a.ptx", PTX ("70"));
  gchar *properties = g_strdup_printf ("kernel-file=%s", path);

  EXPECT_ERROR ("kernel-file=/nowhere/X.cu", "/nowhere/X.cu", "cannot be read");
  EXPECT_ERROR ("kernel-file=/nowhere/X.c", ".cu, .ptx, .cubin or .fatbin");
  if (!on_cuda ())
    EXPECT_ERROR (properties, "runs on a GPU only", "backend=cpu");
  g_free (properties);
  g_free (path);
}

END_TEST

START_TEST (file_without_an_end_is_not_waited_for)
{
  gchar *pipe = g_build_filename (folder, "pipe.cu", NULL), *properties;

  ck_assert_int_eq (mkfifo (pipe, 0600), 0);
  properties = g_strdup_printf ("kernel-file=%s", pipe);
  EXPECT_ERROR (properties, "pipe.cu", "no regular file");
  g_free (properties);
  g_free (pipe);
}

END_TEST

START_TEST (ptx_file_runs)
{
  gchar *path = write_file ("a.ptx", PTX ("70")), *properties = g_strdup_printf ("kernel-file=%s", path);
  GstBuffer *frame, *out;
  Rig *rig;

  if (fake != NULL) {
    rig = rig_new (properties);
    ck_assert (rig_set_caps (rig, "NV12", 50, 20));
    frame = rig_frame (rig, 0);
    ck_assert_int_eq (rig_push (rig, gst_buffer_ref (frame)), GST_FLOW_OK);
    out = rig_pull (rig);
    picture_check_equal (&rig->info, frame, out);
    gst_buffer_unref (frame);
    gst_buffer_unref (out);
    rig_free (rig);
  }
  g_free (properties);
  g_free (path);
}

END_TEST

START_TEST (file_that_is_no_code_is_one_error)
{
  gchar *path, *properties;

  if (!on_cuda ())
    return;
  path = write_file ("b.ptx", "dear driver");
  properties = g_strdup_printf ("kernel-file=%s", path);
  EXPECT_ERROR (properties, "b.ptx", "not PTX, cubin or fatbin");
  g_free (properties);
  g_free (path);
  path = write_file ("c.ptx", PTX ("999"));
  properties = g_strdup_printf ("kernel-file=%s", path);
  EXPECT_ERROR (properties, "c.ptx", "capability 99.9");
  g_free (properties);
  g_free (path);
  path = write_file ("d.ptx", "");
  properties = g_strdup_printf ("kernel-file=%s", path);
  EXPECT_ERROR (properties, "d.ptx is empty");
  g_free (properties);
  g_free (path);
  path = write_file ("e.cubin", "\177ELF");
  properties = g_strdup_printf ("kernel-file=%s", path);
  EXPECT_ERROR (properties, "e.cubin is cut short");
  g_free (properties);
  g_free (path);
}

END_TEST

START_TEST (source_is_compiled_and_described)
{
  gchar *path = write_file ("a.cu", KERNEL ("a", "") DESCRIBE ("a", "CSFK_FORMAT_GRAY8"));
  gchar *properties = g_strdup_printf ("kernel-file=%s kernel-params=key=3", path);
  Rig *rig;

  if (has_nvrtc () && fake != NULL) {
    GstCaps *caps, *other = gst_caps_from_string ("video/x-raw,format=NV12");

    rig = rig_new (properties);
    ck_assert (rig_set_caps (rig, "GRAY8", 50, 20));
    caps = gst_pad_peer_query_caps (rig->h->srcpad, NULL);
    ck_assert (!gst_caps_can_intersect (caps, other));
    gst_caps_unref (caps);
    gst_caps_unref (other);
    ck_assert_int_eq (rig_feed (rig, 0, 3), GST_FLOW_OK);
    rig_wait_buffers (rig, 3);
    g_object_set (rig->x, "kernel-params", "kez=3", NULL);
    ck_assert_int_eq (rig_feed (rig, 3, 1), GST_FLOW_OK);
    expect_one_warning (rig->bus, rig->x, "kernel a has no parameter kez", "key=0..255", NULL);
    rig_free (rig);
  }
  g_free (properties);
  g_free (path);
}

END_TEST

/* On any machine, with or without a GPU. */
START_TEST (error_in_source_is_said_with_file_and_line)
{
  gchar *path = write_file ("bad.cu", KERNEL ("bad", "  int x = nothing;"));
  gchar *properties = g_strdup_printf ("kernel-file=%s", path);

  if (has_nvrtc ())
    EXPECT_ERROR (properties, "bad.cu(6): error", "nothing");
  g_free (properties);
  g_free (path);
}

END_TEST

/* Built-in kernels do without it. */
START_TEST (missing_nvrtc_is_one_error_of_source_alone)
{
  gchar *path = write_file ("n.cu", KERNEL ("n", ""));
  gchar *properties = g_strdup_printf ("kernel-file=%s", path);
  GstElement *pipeline;

  g_setenv ("CSF_NVRTC", "/nowhere/libnvrtc.so", TRUE);
  EXPECT_ERROR (properties, "n.cu", "NVRTC", "install it", "CSF_NVRTC");
  pipeline = pipeline_new ("videotestsrc num-buffers=3 ! X kernel=sobel ! fakesink");
  pipeline_run (pipeline);
  pipeline_free (pipeline);
  g_unsetenv ("CSF_NVRTC");
  g_free (properties);
  g_free (path);
}

END_TEST

START_TEST (function_is_named_where_there_are_several)
{
  gchar *path = write_file ("two.cu", KERNEL ("one", "") "extern \"C\" __global__ void two (csfk_frame f) { }");
  gchar *properties = g_strdup_printf ("kernel-file=%s", path);
  GstElement *pipeline;
  gchar *line;

  if (has_nvrtc () && fake != NULL) {
    EXPECT_ERROR (properties, "one", "two", "kernel-function");
    g_free (properties);
    properties = g_strdup_printf ("kernel-file=%s kernel-function=three", path);
    EXPECT_ERROR (properties, "no function \"three\"");
    line = g_strdup_printf ("videotestsrc num-buffers=3 ! X kernel-file=%s kernel-function=two ! fakesink",
        path);
    pipeline = pipeline_new (line);
    pipeline_run (pipeline);
    pipeline_free (pipeline);
    g_free (line);
  }
  g_free (properties);
  g_free (path);
}

END_TEST

static guint
count_cached (void)
{
  gchar *cache = g_build_filename (g_get_user_cache_dir (), "cudastreamfilter", NULL);
  GDir *dir = g_dir_open (cache, 0, NULL);
  guint n = 0;

  while (dir != NULL && g_dir_read_name (dir) != NULL)
    n++;
  if (dir != NULL)
    g_dir_close (dir);
  g_free (cache);
  return n;
}

static void
spoil_cache (void)
{
  gchar *cache = g_build_filename (g_get_user_cache_dir (), "cudastreamfilter", NULL);
  GDir *dir = g_dir_open (cache, 0, NULL);
  const gchar *name;

  while ((name = g_dir_read_name (dir)) != NULL) {
    gchar *file = g_build_filename (cache, name, NULL);

    ck_assert (g_file_set_contents (file, "\177ELF", 4, NULL));
    g_free (file);
  }
  g_dir_close (dir);
  g_free (cache);
}

START_TEST (compiled_code_is_kept_by_all_it_was_made_of)
{
  gchar *header = write_file ("part.h", "#define KEY 1\n");
  gchar *path = write_file ("cached.cu", "#include \"part.h\"\n" KERNEL ("cached", "  (void) KEY;"));
  gchar *line = g_strdup_printf ("videotestsrc num-buffers=2 ! X kernel-file=%s ! fakesink", path);
  guint before = count_cached ();
  GstElement *pipeline;

  if (has_nvrtc () && fake != NULL) {
    for (guint run = 0; run < 5; run++) {
      if (run == 2)
        g_free (write_file ("part.h", "#define KEY 22\n"));
      if (run == 4)
        spoil_cache ();
      pipeline = pipeline_new (line);
      pipeline_run (pipeline);
      pipeline_free (pipeline);
      ck_assert_uint_eq (count_cached (), before + (run < 2 ? 1 : 2));
    }
  }
  g_free (line);
  g_free (path);
  g_free (header);
}

END_TEST

/* ---- reload ---------------------------------------------------------------------------------- */

static gchar *
kernel_name (GstElement * x)
{
  return stats_string (x, "kernel");
}

/* Frames flow until the kernel in use has that name. */
static void
feed_until (Rig * rig, const gchar * name, guint * n)
{
  gboolean found = FALSE;

  while (!found) {
    gchar *now;

    ck_assert_int_eq (rig_feed (rig, (*n)++, 1), GST_FLOW_OK);
    gst_buffer_unref (rig_pull (rig));
    now = kernel_name (rig->x);
    found = g_strcmp0 (now, name) == 0;
    g_free (now);
  }
}

/* Frames flow until there is a warning, with these words. */
static void
feed_until_warning (Rig * rig, guint * n, const gchar * words)
{
  GstMessage *message = NULL;
  GError *warning;

  while (message == NULL) {
    ck_assert_int_eq (rig_feed (rig, (*n)++, 1), GST_FLOW_OK);
    gst_buffer_unref (rig_pull (rig));
    message = gst_bus_pop_filtered (rig->bus, GST_MESSAGE_WARNING);
  }
  gst_message_parse_warning (message, &warning, NULL);
  ck_assert_msg (strstr (warning->message, words) != NULL, "\"%s\" does not contain \"%s\"",
      warning->message, words);
  ck_assert (strstr (warning->message, "goes on") != NULL);
  g_error_free (warning);
  gst_message_unref (message);
}

START_TEST (changed_file_is_taken_at_a_frame)
{
  gchar *path = write_file ("r.cu", KERNEL ("first", "")), *again;
  gchar *properties = g_strdup_printf ("kernel-file=%s reload=true num-streams=3", path);
  guint n = 0;
  Rig *rig;

  if (has_nvrtc () && fake != NULL) {
    rig = rig_new (properties);
    ck_assert (rig_set_caps (rig, "GRAY8", 64, 48));
    feed_until (rig, "first", &n);
    again = write_file ("r.cu", KERNEL ("second", ""));
    g_free (again);
    feed_until (rig, "second", &n);
    expect_no_trouble (rig->bus);
    /* One that does not compile is said, and the one before goes on. */
    g_free (write_file ("r.cu", KERNEL ("third", "  x = 1;")));
    feed_until_warning (rig, &n, "r.cu(6): error");
    feed_until (rig, "second", &n);
    /* So is one that does not take these pictures, or these parameters. */
    g_free (write_file ("r.cu", KERNEL ("fourth", "") DESCRIBE ("fourth", "CSFK_FORMAT_NV12")));
    feed_until_warning (rig, &n, "does not take GRAY8");
    g_free (write_file ("r.cu", KERNEL ("fifth", "") DESCRIBE ("fifth", "CSFK_FORMAT_GRAY8")));
    feed_until (rig, "fifth", &n);
    expect_no_trouble (rig->bus);
    rig_free (rig);
  }
  g_free (properties);
  g_free (path);
}

END_TEST

/* What a refused version includes is looked at as well. */
START_TEST (mended_header_is_taken)
{
  gchar *path = write_file ("h.cu", KERNEL ("before", ""));
  gchar *properties = g_strdup_printf ("kernel-file=%s reload=true", path);
  guint n = 0;
  Rig *rig;

  if (has_nvrtc () && fake != NULL) {
    rig = rig_new (properties);
    ck_assert (rig_set_caps (rig, "GRAY8", 64, 48));
    feed_until (rig, "before", &n);
    g_free (write_file ("h.cu", "#include \"later.h\"\n" KERNEL ("after", "  int x = LATER; (void) x;")));
    feed_until_warning (rig, &n, "h.cu");
    g_free (write_file ("later.h", "#define LATER y\n"));
    feed_until_warning (rig, &n, "h.cu");
    g_free (write_file ("later.h", "#define LATER 1\n"));
    feed_until (rig, "after", &n);
    rig_free (rig);
  }
  g_free (properties);
  g_free (path);
}

END_TEST

START_TEST (stopping_while_a_version_compiles_is_clean)
{
  gchar *path = write_file ("s.cu", KERNEL ("s", ""));
  gchar *properties = g_strdup_printf ("kernel-file=%s reload=true", path);

  for (guint run = 0; run < 6 && has_nvrtc () && fake != NULL; run++) {
    gint64 until = g_get_monotonic_time () + 150000 + run * 20000;
    gchar *text = g_strdup_printf ("%s// %u\n", KERNEL ("s", ""), run);
    Rig *rig = rig_new (properties);
    guint n = 0;

    ck_assert (rig_set_caps (rig, "GRAY8", 64, 48));
    feed_until (rig, "s", &n);
    g_free (write_file ("s.cu", text));
    while (g_get_monotonic_time () < until) {
      ck_assert_int_eq (rig_feed (rig, n++, 1), GST_FLOW_OK);
      gst_buffer_unref (rig_pull (rig));
    }
    rig_free (rig);
    g_free (text);
  }
  g_free (properties);
  g_free (path);
}

END_TEST

/* ---------------------------------------------------------------------------------------------- */

static Suite *
make_suite (void)
{
  Suite *suite = suite_create ("element-kernelfiles");
  TCase *files = test_case (suite, "files"), *reload = test_case (suite, "reload");

  tcase_add_test (files, file_needs_a_gpu_and_a_known_ending);
  tcase_add_test (files, file_without_an_end_is_not_waited_for);
  tcase_add_test (files, ptx_file_runs);
  tcase_add_test (files, file_that_is_no_code_is_one_error);
  tcase_add_test (files, source_is_compiled_and_described);
  tcase_add_test (files, error_in_source_is_said_with_file_and_line);
  tcase_add_test (files, missing_nvrtc_is_one_error_of_source_alone);
  tcase_add_test (files, function_is_named_where_there_are_several);
  tcase_add_test (files, compiled_code_is_kept_by_all_it_was_made_of);
  tcase_add_test (reload, changed_file_is_taken_at_a_frame);
  tcase_add_test (reload, mended_header_is_taken);
  tcase_add_test (reload, stopping_while_a_version_compiles_is_clean);
  return suite;
}

int
main (int argc, char **argv)
{
  gchar *command;
  int result;

  g_unsetenv ("CSF_NVRTC");
  folder = g_dir_make_tmp ("csf-test-XXXXXX", NULL);
  g_setenv ("XDG_CACHE_HOME", folder, TRUE);
  result = test_main (argc, argv, make_suite);
  command = g_strdup_printf ("rm -rf '%s'", folder);
  if (system (command) != 0)
    g_printerr ("%s stays\n", folder);
  g_free (command);
  g_free (folder);
  return result;
}
