/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Kernels that a user brings: a shared library, CUDA source, PTX and cubin; what they may ask of the
 * element (state, regions, another size), and what is said when one cannot be used.  On the fake driver a
 * device function of a file copies, whatever its code says: that code runs in tests/gpu. */
#include <gmodule.h>
#include <stdlib.h>

#include "element.h"
#include "picture.h"

static gchar *folder;           /* for files of this run, removed at its end */

static gboolean
on_cuda (void)
{
  return g_str_equal (test_backend (), "cuda");
}

/* Kernels of the test library have no code for a real device. */
static gboolean
has_library (void)
{
  return fake != NULL || !on_cuda ();
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

static Rig *
library_rig (const gchar * kernel, const gchar * more)
{
  gchar *properties = g_strdup_printf ("kernel-library=%s kernel-function=%s %s",
      g_getenv ("CSF_TEST_LIBRARY"), kernel, more);
  Rig *rig = rig_new (properties);

  g_free (properties);
  return rig;
}

/* The one value that all pixels of a GRAY8 buffer have. */
static gint
value_of (GstBuffer * buffer, const GstVideoInfo * info)
{
  GstVideoFrame frame;
  gint value;

  ck_assert (gst_video_frame_map (&frame, info, buffer, GST_MAP_READ));
  value = *(guint8 *) GST_VIDEO_FRAME_PLANE_DATA (&frame, 0);
  for (gint y = 0; y < GST_VIDEO_FRAME_HEIGHT (&frame); y++)
    for (gint x = 0; x < GST_VIDEO_FRAME_WIDTH (&frame); x++)
      ck_assert_int_eq (((guint8 *) GST_VIDEO_FRAME_PLANE_DATA (&frame, 0))
          [y * GST_VIDEO_FRAME_PLANE_STRIDE (&frame, 0) + x], value);
  gst_video_frame_unmap (&frame);
  return value;
}

static gint
next_value (Rig * rig, guint n)
{
  GstBuffer *out;
  gint value;

  ck_assert_int_eq (rig_feed (rig, n, 1), GST_FLOW_OK);
  out = rig_pull (rig);
  value = value_of (out, &rig->info);
  gst_buffer_unref (out);
  return value;
}

static GstElement *
failing_pipeline (const gchar * properties)
{
  gchar *line = g_strdup_printf ("videotestsrc num-buffers=3 ! video/x-raw,format=GRAY8 ! X name=x %s ! "
      "fakesink", properties);
  GstElement *pipeline = pipeline_new (line);

  g_free (line);
  return pipeline;
}

/* An element with these properties fails with these words. */
#define EXPECT_ERROR(properties, ...) \
  do { \
    GstElement *failing = failing_pipeline (properties); \
    pipeline_expect_error (failing, __VA_ARGS__, NULL); \
    pipeline_free (failing); \
  } while (0)

/* ---- library --------------------------------------------------------------------------------- */

START_TEST (library_kernel_runs_with_its_parameters)
{
  Rig *rig;

  if (!has_library ())
    return;
  rig = library_rig ("fill", "kernel-params=value=42");
  ck_assert (rig_set_caps (rig, "GRAY8", 50, 20));
  ck_assert_int_eq (next_value (rig, 0), 42);
  g_object_set (rig->x, "kernel-params", "value=43", NULL);
  ck_assert_int_eq (next_value (rig, 1), 43);
  g_object_set (rig->x, "kernel-params", "value=300", NULL);
  ck_assert_int_eq (next_value (rig, 2), 43);
  expect_one_warning (rig->bus, rig->x, "fill", "value=0..255", "300", NULL);
  g_object_set (rig->x, "kernel-params", "", NULL);
  ck_assert_int_eq (next_value (rig, 3), 7);
  rig_free (rig);
}

END_TEST

START_TEST (unusable_library_is_one_error)
{
  const gchar *library = g_getenv ("CSF_TEST_LIBRARY");
  gchar *properties;

  EXPECT_ERROR ("kernel-library=/nowhere/X.so", "kernel-library /nowhere/X.so", "cannot be loaded");
  properties = g_strdup_printf ("kernel-library=%s", library);
  EXPECT_ERROR (properties, "several kernels", "fill, count, boxes", "kernel-function");
  g_free (properties);
  properties = g_strdup_printf ("kernel-library=%s kernel-function=none", library);
  EXPECT_ERROR (properties, "no kernel none", "fill, count");
  g_free (properties);
  properties = g_strdup_printf ("kernel-library=%s kernel-function=unsound", library);
  EXPECT_ERROR (properties, "unsound", "format");
  g_free (properties);
  properties = g_strdup_printf ("kernel-library=%s", g_getenv ("CSF_TEST_LIBRARY_OLD"));
  EXPECT_ERROR (properties, "contract 1", "compile it with");
  g_free (properties);
  properties = g_strdup_printf ("kernel-library=%s", g_getenv ("CSF_TEST_LIBRARY_NONE"));
  EXPECT_ERROR (properties, "exports no csfk_library");
  g_free (properties);
  properties = g_strdup_printf ("kernel-library=%s kernel-file=X.cu", library);
  EXPECT_ERROR (properties, "got both");
  g_free (properties);
}

END_TEST

START_TEST (kernel_of_the_other_side_is_one_error)
{
  gchar *properties = g_strdup_printf ("kernel-library=%s kernel-function=%s",
      g_getenv ("CSF_TEST_LIBRARY"), on_cuda () ? "cpuonly" : "gpuonly");

  EXPECT_ERROR (properties, on_cuda () ? "no CUDA function" : "no C function");
  g_free (properties);
}

END_TEST

START_TEST (kernel_that_cannot_be_opened_is_one_error)
{
  gchar *properties = g_strdup_printf ("kernel-library=%s kernel-function=closed",
      g_getenv ("CSF_TEST_LIBRARY"));

  EXPECT_ERROR (properties, "closed", "the model file is not there");
  g_free (properties);
}

END_TEST

/* ---- state ----------------------------------------------------------------------------------- */

START_TEST (state_is_of_the_frames_before_on_any_number_of_streams)
{
  gchar *streams = g_strdup_printf ("num-streams=%d", _i);
  Rig *rig;

  if (has_library ()) {
    rig = library_rig ("count", streams);
    ck_assert (rig_set_caps (rig, "GRAY8", 33, 17));
    ck_assert_int_eq (rig_feed (rig, 0, 100), GST_FLOW_OK);
    for (gint n = 0; n < 100; n++) {
      GstBuffer *out = rig_pull (rig);

      ck_assert_int_eq (value_of (out, &rig->info), n);
      gst_buffer_unref (out);
    }
    rig_free (rig);
  }
  g_free (streams);
}

END_TEST

START_TEST (state_begins_anew_at_flush_discont_and_caps)
{
  GstBuffer *frame, *out;
  Rig *rig;

  if (!has_library ())
    return;
  rig = library_rig ("count", "num-streams=3");
  ck_assert (rig_set_caps (rig, "GRAY8", 33, 17));
  for (gint n = 0; n < 4; n++)
    ck_assert_int_eq (next_value (rig, n), n);

  frame = rig_frame (rig, 4);
  GST_BUFFER_FLAG_SET (frame, GST_BUFFER_FLAG_DISCONT);
  ck_assert_int_eq (rig_push (rig, frame), GST_FLOW_OK);
  out = rig_pull (rig);
  ck_assert_int_eq (value_of (out, &rig->info), 0);
  gst_buffer_unref (out);
  ck_assert_int_eq (next_value (rig, 5), 1);

  /* Other caps with the same pictures. */
  ck_assert (rig_take_caps (rig, gst_caps_from_string ("video/x-raw,format=GRAY8,width=33,height=17,"
              "framerate=25/1")));
  ck_assert_int_eq (next_value (rig, 6), 0);
  ck_assert_int_eq (next_value (rig, 7), 1);

  ck_assert (rig_push_event (rig, gst_event_new_flush_start ()));
  ck_assert (rig_push_event (rig, gst_event_new_flush_stop (TRUE)));
  {
    GstSegment segment;

    gst_segment_init (&segment, GST_FORMAT_TIME);
    ck_assert (rig_push_event (rig, gst_event_new_segment (&segment)));
  }
  ck_assert_int_eq (next_value (rig, 8), 0);
  ck_assert_int_eq (next_value (rig, 9), 1);
  rig_free (rig);
}

END_TEST

/* ---- regions --------------------------------------------------------------------------------- */

static guint8
pixel (GstBuffer * buffer, gint stride, gint x, gint y)
{
  guint8 value;

  ck_assert (gst_buffer_extract (buffer, y * stride + x, &value, 1) == 1);
  return value;
}

START_TEST (kernel_gets_the_frames_own_regions)
{
  Rig *rig;

  if (!has_library ())
    return;
  rig = library_rig ("boxes", "num-streams=4");
  ck_assert (rig_set_caps (rig, "GRAY8", 64, 48));
  for (guint n = 0; n < 40; n++) {
    GstBuffer *frame = rig_frame (rig, n);

    for (guint i = 0; i < n % 4; i++) {
      GstVideoRegionOfInterestMeta *roi = gst_buffer_add_video_region_of_interest_meta (frame,
          i == 0 ? "face" : "a label of more than thirty-one bytes: \303\244", 10 * i, n, 5, 5);

      if (i == 0)
        gst_video_region_of_interest_meta_add_param (roi, gst_structure_new ("detection",
                "confidence", G_TYPE_DOUBLE, 0.5, NULL));
    }
    ck_assert_int_eq (rig_push (rig, frame), GST_FLOW_OK);
  }
  for (guint n = 0; n < 40; n++) {
    GstBuffer *out = rig_pull (rig);

    ck_assert_int_eq (pixel (out, 64, 63, 47), n % 4);
    if (n % 4 > 0) {
      ck_assert_int_eq (pixel (out, 64, 0, n), 50);
      ck_assert_int_eq (pixel (out, 64, 1, n), 'f');
    }
    if (n % 4 > 1)
      ck_assert_int_eq (pixel (out, 64, 10, n), 'a');
    /* They go on downstream. */
    ck_assert_uint_eq (gst_buffer_get_n_meta (out,
            GST_VIDEO_REGION_OF_INTEREST_META_API_TYPE), n % 4);
    gst_buffer_unref (out);
  }
  rig_free (rig);
}

END_TEST

/* ---- another size ---------------------------------------------------------------------------- */

static void
expect_output (const gchar * filter, const gchar * field, const gchar * expected)
{
  gchar *line = g_strdup_printf ("videotestsrc num-buffers=4 ! video/x-raw,format=NV12,width=64,height=48,"
      "pixel-aspect-ratio=1/1 ! X name=x kernel-library=%s kernel-function=size ! %s ! "
      "fakesink name=sink enable-last-sample=true", g_getenv ("CSF_TEST_LIBRARY"), filter);
  GstElement *pipeline = pipeline_new (line), *sink = pipeline_get (pipeline, "sink");
  GstSample *sample;
  GstVideoInfo info;
  gchar *caps;

  pipeline_run (pipeline);
  g_object_get (sink, "last-sample", &sample, NULL);
  ck_assert (gst_video_info_from_caps (&info, gst_sample_get_caps (sample)));
  caps = gst_caps_to_string (gst_sample_get_caps (sample));
  if (strstr (caps, expected) == NULL)
    ck_abort_msg ("%s: %s does not contain %s", filter, caps, expected);
  ck_assert_int_eq (value_of (gst_sample_get_buffer (sample), &info),
      GST_VIDEO_INFO_WIDTH (&info) & 255);
  gst_sample_unref (sample);
  g_free (caps);
  pipeline_free (pipeline);
  g_free (line);
}

START_TEST (output_is_what_downstream_asks_for)
{
  if (!has_library ())
    return;
  expect_output ("video/x-raw,width=32,height=16", "size", "width=(int)32, height=(int)16");
  /* One side given: the picture keeps its shape. */
  expect_output ("video/x-raw,width=128", "size", "height=(int)96");
  expect_output ("video/x-raw,height=24", "size", "width=(int)32");
  expect_output ("video/x-raw,width=[1,40]", "size", "width=(int)40");
  /* Nothing asked: the same size. */
  expect_output ("identity", "size", "width=(int)64, height=(int)48");
  /* Both given: the pixels' shape makes up for it, if it may. */
  expect_output ("video/x-raw,width=32,height=48", "shape", "pixel-aspect-ratio=(fraction)2/1");
  expect_output ("video/x-raw,width=32,height=48,pixel-aspect-ratio=1/1", "shape",
      "pixel-aspect-ratio=(fraction)1/1");
  expect_output ("video/x-raw,width=40,pixel-aspect-ratio=2/1", "shape", "height=(int)60");
}

END_TEST

START_TEST (output_follows_downstream_while_playing)
{
  gchar *line = g_strdup_printf ("videotestsrc is-live=false ! video/x-raw,format=NV12,width=64,height=48 ! "
      "X name=x kernel-library=%s kernel-function=size ! capsfilter name=filter "
      "caps=video/x-raw,width=32,height=32 ! fakesink name=sink", g_getenv ("CSF_TEST_LIBRARY"));
  GstElement *pipeline, *filter, *sink;
  GstPad *pad;

  if (!has_library ()) {
    g_free (line);
    return;
  }
  pipeline = pipeline_new (line);
  filter = pipeline_get (pipeline, "filter");
  sink = pipeline_get (pipeline, "sink");
  pad = gst_element_get_static_pad (sink, "sink");
  pipeline_play (pipeline);
  for (gint width = 16; width < 80; width += 16) {
    GstCaps *caps = gst_caps_new_simple ("video/x-raw", "width", G_TYPE_INT, width, "height",
        G_TYPE_INT, 32, NULL);
    gint now = 0;

    g_object_set (filter, "caps", caps, NULL);
    gst_caps_unref (caps);
    while (now != width) {
      GstCaps *current = gst_pad_get_current_caps (pad);

      if (current != NULL)
        gst_structure_get_int (gst_caps_get_structure (current, 0), "width", &now);
      gst_clear_caps (&current);
      g_thread_yield ();
    }
  }
  gst_object_unref (pad);
  pipeline_free (pipeline);
  g_free (line);
}

END_TEST

START_TEST (regions_are_scaled_with_the_picture)
{
  Rig *rig;
  GstBuffer *frame, *out;
  GstVideoRegionOfInterestMeta *roi;

  if (!has_library ())
    return;
  rig = library_rig ("size", "");
  gst_harness_set_sink_caps_str (rig->h, "video/x-raw,width=32,height=24");
  ck_assert (rig_set_caps (rig, "GRAY8", 64, 48));
  frame = rig_frame (rig, 0);
  gst_buffer_add_video_region_of_interest_meta (frame, "face", 20, 10, 8, 6);
  ck_assert_int_eq (rig_push (rig, frame), GST_FLOW_OK);
  out = rig_pull (rig);
  roi = gst_buffer_get_video_region_of_interest_meta_id (out, 0);
  ck_assert (roi != NULL);
  ck_assert_uint_eq (roi->x, 10);
  ck_assert_uint_eq (roi->y, 5);
  ck_assert_uint_eq (roi->w, 4);
  ck_assert_uint_eq (roi->h, 3);
  gst_buffer_unref (out);
  rig_free (rig);
}

END_TEST

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

    if (library != NULL) {
      g_module_close (library);
      return TRUE;
    }
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

/* The fake driver runs C functions in place of device code. */
static void
teach_fake (void)
{
  GModule *library = g_module_open (g_getenv ("CSF_TEST_LIBRARY"), G_MODULE_BIND_LOCAL);
  const csfk_library_table *table = NULL;

  if (library == NULL || !g_module_symbol (library, "csfk_library", (gpointer *) & table))
    g_error ("%s", g_module_error ());
  for (const csfk_kernel * const *k = table->kernels; *k != NULL; k++)
    if ((*k)->process != NULL)
      fake->add_kernel (*k);
}

static Suite *
make_suite (void)
{
  Suite *suite = suite_create ("element-userkernels");
  TCase *library = test_case (suite, "library"), *asks = test_case (suite, "asks");
  TCase *files = test_case (suite, "files"), *reload = test_case (suite, "reload");

  if (fake != NULL)
    teach_fake ();
  tcase_add_test (library, library_kernel_runs_with_its_parameters);
  tcase_add_test (library, unusable_library_is_one_error);
  tcase_add_test (library, kernel_of_the_other_side_is_one_error);
  tcase_add_test (library, kernel_that_cannot_be_opened_is_one_error);
  tcase_add_loop_test (asks, state_is_of_the_frames_before_on_any_number_of_streams, 1, 6);
  tcase_add_test (asks, state_begins_anew_at_flush_discont_and_caps);
  tcase_add_test (asks, kernel_gets_the_frames_own_regions);
  tcase_add_test (asks, output_is_what_downstream_asks_for);
  tcase_add_test (asks, output_follows_downstream_while_playing);
  tcase_add_test (asks, regions_are_scaled_with_the_picture);
  tcase_add_test (files, file_needs_a_gpu_and_a_known_ending);
  tcase_add_test (files, ptx_file_runs);
  tcase_add_test (files, file_that_is_no_code_is_one_error);
  tcase_add_test (files, source_is_compiled_and_described);
  tcase_add_test (files, error_in_source_is_said_with_file_and_line);
  tcase_add_test (files, missing_nvrtc_is_one_error_of_source_alone);
  tcase_add_test (files, function_is_named_where_there_are_several);
  tcase_add_test (files, compiled_code_is_kept_by_all_it_was_made_of);
  tcase_add_test (reload, changed_file_is_taken_at_a_frame);
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
