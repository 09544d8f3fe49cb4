/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Kernels of a user's shared library: what they may ask of the element (state, regions, another size), and
 * what is said when one cannot be used. */
#include <gmodule.h>
#include <glib/gstdio.h>

#include "element.h"
#include "picture.h"

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

static Rig *
library_rig (const gchar * kernel, const gchar * more)
{
  gchar *properties = g_strdup_printf ("kernel-library=%s kernel-function=%s %s",
      test_library (""), kernel, more);
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
  const gchar *library = test_library ("");
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
  properties = g_strdup_printf ("kernel-library=%s", test_library ("-old"));
  EXPECT_ERROR (properties, "contract 1", "compile it with");
  g_free (properties);
  properties = g_strdup_printf ("kernel-library=%s", test_library ("-none"));
  EXPECT_ERROR (properties, "exports no csfk_library");
  g_free (properties);
  properties = g_strdup_printf ("kernel-library=%s kernel-file=X.cu", library);
  EXPECT_ERROR (properties, "got both");
  g_free (properties);
}

END_TEST

/* The loader would end the process. */
START_TEST (library_cut_short_is_one_error)
{
  gchar *content, *folder = g_dir_make_tmp ("csf-test-XXXXXX", NULL);
  gchar *path = g_build_filename (folder, "short.so", NULL);
  gchar *properties = g_strdup_printf ("kernel-library=%s kernel-function=fill", path);
  gsize size;

  ck_assert (g_file_get_contents (test_library (""), &content, &size, NULL));
  for (gsize cut = 4; cut < size; cut += size / 13) {
    ck_assert (g_file_set_contents (path, content, cut, NULL));
    EXPECT_ERROR (properties, "short.so is cut short");
  }
  g_remove (path);
  g_rmdir (folder);
  g_free (content);
  g_free (properties);
  g_free (path);
  g_free (folder);
}

END_TEST

START_TEST (kernel_of_the_other_side_is_one_error)
{
  gchar *properties = g_strdup_printf ("kernel-library=%s kernel-function=%s",
      test_library (""), on_cuda () ? "cpuonly" : "gpuonly");

  EXPECT_ERROR (properties, on_cuda () ? "no CUDA function" : "no C function");
  g_free (properties);
}

END_TEST

START_TEST (kernel_that_cannot_be_opened_is_one_error)
{
  gchar *properties = g_strdup_printf ("kernel-library=%s kernel-function=closed",
      test_library (""));

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
      "fakesink name=sink enable-last-sample=true", test_library (""), filter);
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
  /* To the nearest pixel, which is no reason for pixels that are not square. */
  expect_output ("video/x-raw,width=101", "size", "height=(int)76");
  expect_output ("video/x-raw,width=101", "shape", "pixel-aspect-ratio=(fraction)1/1");
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
      "caps=video/x-raw,width=32,height=32 ! fakesink name=sink", test_library (""));
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
  gst_video_region_of_interest_meta_add_param (gst_buffer_add_video_region_of_interest_meta (frame, "face",
          20, 10, 8, 6), gst_structure_new ("detection", "confidence", G_TYPE_DOUBLE, 0.5, NULL));
  /* Left of the picture. */
  gst_buffer_add_video_region_of_interest_meta (frame, "face", (guint) -10, 10, 20, 6)->id = 1;
  ck_assert_int_eq (rig_push (rig, frame), GST_FLOW_OK);
  out = rig_pull (rig);
  roi = gst_buffer_get_video_region_of_interest_meta_id (out, 0);
  ck_assert (roi != NULL);
  ck_assert_uint_eq (roi->x, 10);
  ck_assert_uint_eq (roi->y, 5);
  ck_assert_uint_eq (roi->w, 4);
  ck_assert_uint_eq (roi->h, 3);
  ck_assert (gst_video_region_of_interest_meta_get_param (roi, "detection") != NULL);
  roi = gst_buffer_get_video_region_of_interest_meta_id (out, 1);
  ck_assert (roi != NULL);
  ck_assert_int_eq ((gint) roi->x, -5);
  ck_assert_uint_eq (roi->w, 10);
  gst_buffer_unref (out);
  rig_free (rig);
}

END_TEST

/* ---------------------------------------------------------------------------------------------- */

/* The fake driver runs C functions in place of device code. */
static void
teach_fake (void)
{
  GModule *library = g_module_open (test_library (""), G_MODULE_BIND_LOCAL);
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

  if (fake != NULL)
    teach_fake ();
  tcase_add_test (library, library_kernel_runs_with_its_parameters);
  tcase_add_test (library, unusable_library_is_one_error);
  tcase_add_test (library, library_cut_short_is_one_error);
  tcase_add_test (library, kernel_of_the_other_side_is_one_error);
  tcase_add_test (library, kernel_that_cannot_be_opened_is_one_error);
  tcase_add_loop_test (asks, state_is_of_the_frames_before_on_any_number_of_streams, 1, 6);
  tcase_add_test (asks, state_begins_anew_at_flush_discont_and_caps);
  tcase_add_test (asks, kernel_gets_the_frames_own_regions);
  tcase_add_test (asks, output_is_what_downstream_asks_for);
  tcase_add_test (asks, output_follows_downstream_while_playing);
  tcase_add_test (asks, regions_are_scaled_with_the_picture);
  return suite;
}

int
main (int argc, char **argv)
{
  return test_main (argc, argv, make_suite);
}
