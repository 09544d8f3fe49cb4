/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* kernel=convertscale against GStreamer's own videoscale and videoconvert, on the same frames.
 *
 * The bounds are what was measured with GStreamer 1.22.  Scaled pictures that change slowly differ by 2 at
 * most, for videoscale rounds to 8 bits after each direction and its weights to fewer.  Noise differs little
 * more only where videoscale filters the way it says, as it does with RGB; with one and four bytes a sample
 * it takes a quicker way that moves the picture by up to half a sample.  Its catrom is like ours when
 * pictures grow; when they shrink it takes more taps.  To R'G'B' videoconvert differs by up to 7: of
 * pictures of one colour it is off by up to 6.05 from what the matrix gives in exact numbers, and ours by
 * 0.58.  From R'G'B' they differ by 2.  The byte x of RGBx becomes its alpha, where ours is 255: that is not
 * compared. */
#include "element.h"
#include "picture.h"

#include <math.h>
#include <stdlib.h>

typedef struct
{
  gint width, height, out_width, out_height;
} Sizes;

/* What may differ: a sample at most, and all of them on average. */
typedef struct
{
  gint most;
  gdouble mean;
} Bound;

typedef struct
{
  gint most;
  gdouble sum;
  guint64 samples;
} Difference;

static gboolean have_peers;

static const Sizes grown[] = {
  {320, 180, 480, 270}, {320, 180, 650, 555}, {321, 181, 325, 183}, {160, 120, 640, 480}
};

static const Sizes shrunk[] = {
  {480, 270, 320, 180}, {640, 360, 320, 180}, {321, 181, 200, 90}, {640, 480, 200, 150}
};

static const gchar *const scaled_formats[] = {
  "NV12", "I420", "RGB", "BGR", "RGBx", "BGRx", "RGBA", "BGRA", "GRAY8"
};

/* ---- pictures -------------------------------------------------------------------------------- */

/* Waves of a few periods across the picture; of chroma and luma weaker ones that stay within R'G'B'. */
static guint8
wave (const csfk_image * image, gint plane, gint x, gint y, gint component)
{
  const csfk_plane *p = &image->plane[plane];
  const gboolean luma = plane == 0 && !csfk_format_get_info (image->format)->is_rgb;
  const gdouble units = (gdouble) p->row_bytes / (plane > 0 && image->n_planes == 2 ? 2 : 1);
  const gdouble across = 6.0 * x / units, down = 5.0 * y / p->rows;
  const gdouble amplitude = plane > 0 ? 40 : luma ? 70 : 100;

  return (guint8) (128 + amplitude * sin (across + component) * cos (down * 0.7 + 2 * component));
}

static GstBuffer *
new_input (Rig * rig, gboolean smooth)
{
  GstBuffer *buffer = gst_buffer_new_allocate (NULL, GST_VIDEO_INFO_SIZE (&rig->info), NULL);
  GstVideoFrame frame;
  csfk_image image;

  picture_fill (buffer);
  if (!smooth)
    return buffer;
  csfk_image_init (&image, csfk_format_from_name (GST_VIDEO_INFO_NAME (&rig->info)),
      rig->info.width, rig->info.height);
  ck_assert (gst_video_frame_map (&frame, &rig->info, buffer, GST_MAP_WRITE));
  for (gint p = 0; p < image.n_planes; p++) {
    const gint pitch = p > 0 && image.n_planes == 2 ? 2 : p > 0 ? 1 :
        csfk_format_get_info (image.format)->pixel_bytes;

    for (gint y = 0; y < image.plane[p].rows; y++)
      for (gint b = 0; b < image.plane[p].row_bytes; b++)
        ((guint8 *) GST_VIDEO_FRAME_PLANE_DATA (&frame, p))
            [(gssize) y * GST_VIDEO_FRAME_PLANE_STRIDE (&frame, p) + b] =
            wave (&image, p, b / pitch, y, b % pitch + p);
  }
  gst_video_frame_unmap (&frame);
  return buffer;
}

/* Bytes that are no samples of either side are left out. */
static gboolean
is_unused (const GstVideoInfo * info, gint byte)
{
  return (GST_VIDEO_INFO_FORMAT (info) == GST_VIDEO_FORMAT_RGBx ||
      GST_VIDEO_INFO_FORMAT (info) == GST_VIDEO_FORMAT_BGRx) && byte % 4 == 3;
}

static void
add_difference (Difference * total, const GstVideoInfo * info, GstBuffer * a, GstBuffer * b)
{
  GstVideoFrame frames[2];
  csfk_image image;

  csfk_image_init (&image, csfk_format_from_name (GST_VIDEO_INFO_NAME (info)), info->width,
      info->height);
  ck_assert (gst_video_frame_map (&frames[0], info, a, GST_MAP_READ));
  ck_assert (gst_video_frame_map (&frames[1], info, b, GST_MAP_READ));
  for (gint p = 0; p < image.n_planes; p++)
    for (gint y = 0; y < image.plane[p].rows; y++) {
      const guint8 *rows[2];

      for (guint i = 0; i < 2; i++)
        rows[i] = (const guint8 *) GST_VIDEO_FRAME_PLANE_DATA (&frames[i], p) +
            (gssize) y * GST_VIDEO_FRAME_PLANE_STRIDE (&frames[i], p);
      for (gint x = 0; x < image.plane[p].row_bytes; x++) {
        gint difference = is_unused (info, x) ? 0 : abs (rows[0][x] - rows[1][x]);

        total->samples++;
        total->sum += difference;
        total->most = MAX (total->most, difference);
      }
    }
  gst_video_frame_unmap (&frames[1]);
  gst_video_frame_unmap (&frames[0]);
}

/* ---- one comparison -------------------------------------------------------------------------- */

/* colours: more fields of the caps of Y'CbCr, or "". */
static GstCaps *
new_caps (const gchar * format, gint width, gint height, const gchar * colours)
{
  const gboolean ycbcr = g_str_equal (format, "NV12") || g_str_equal (format, "I420");
  gchar *text = g_strdup_printf ("video/x-raw,format=%s,width=%d,height=%d,framerate=30/1%s", format,
      width, height, ycbcr ? colours : "");
  GstCaps *caps = gst_caps_from_string (text);

  ck_assert_msg (caps != NULL, "%s", text);
  g_free (text);
  return caps;
}

/* One frame through the element and through `line`. */
static void
compare (const gchar * line, const gchar * method, const gchar * from, const gchar * to,
    const Sizes * sizes, const gchar * colours, gboolean smooth, const Bound * bound)
{
  gchar *properties = g_strdup_printf ("num-streams=2 kernel=convertscale kernel-params=method=%s",
      method);
  Rig *rig = rig_new (properties);
  GstHarness *peer = gst_harness_new_parse (line);
  Difference total = { 0 };
  GstBuffer *input, *ours, *theirs;
  GstVideoInfo info;
  GstCaps *caps;

  ck_assert (peer != NULL);
  gst_harness_set_sink_caps (rig->h, new_caps (to, sizes->out_width, sizes->out_height, colours));
  gst_harness_set_sink_caps (peer, new_caps (to, sizes->out_width, sizes->out_height, colours));
  ck_assert (rig_take_caps (rig, new_caps (from, sizes->width, sizes->height, colours)));
  gst_harness_set_src_caps (peer, new_caps (from, sizes->width, sizes->height, colours));

  input = new_input (rig, smooth);
  ck_assert_int_eq (gst_harness_push (peer, gst_buffer_copy_deep (input)), GST_FLOW_OK);
  theirs = gst_harness_pull (peer);
  ck_assert_int_eq (rig_push (rig, input), GST_FLOW_OK);
  ours = rig_pull (rig);
  caps = gst_pad_get_current_caps (rig->h->sinkpad);
  ck_assert (gst_video_info_from_caps (&info, caps));
  gst_caps_unref (caps);
  ck_assert_int_eq (info.width, sizes->out_width);
  ck_assert_int_eq (info.height, sizes->out_height);
  ck_assert_str_eq (GST_VIDEO_INFO_NAME (&info), to);
  add_difference (&total, &info, theirs, ours);
  if (g_getenv ("CSF_TEST_PRINT") != NULL)
    g_printerr ("%s %s %dx%d to %s %dx%d %s%s: %d, %.3f\n", line, from, sizes->width, sizes->height,
        to, sizes->out_width, sizes->out_height, smooth ? "" : "noise", colours, total.most,
        total.sum / (gdouble) total.samples);
  ck_assert_msg (total.most <= bound->most && total.sum <= bound->mean * (gdouble) total.samples,
      "%s, %s %dx%d to %s %dx%d%s: a sample differs by %d, all by %.3f", line, from, sizes->width,
      sizes->height, to, sizes->out_width, sizes->out_height, colours, total.most,
      total.sum / (gdouble) total.samples);

  expect_no_trouble (rig->bus);
  gst_buffer_unref (theirs);
  gst_buffer_unref (ours);
  gst_harness_teardown (peer);
  rig_free (rig);
  g_free (properties);
}

/* ---- scaling --------------------------------------------------------------------------------- */

START_TEST (slow_pictures_are_scaled_alike)
{
  static const Bound bound = { 2, 0.5 };

  for (guint s = 0; s < G_N_ELEMENTS (grown); s++) {
    compare ("videoscale method=bilinear", "bilinear", scaled_formats[_i], scaled_formats[_i],
        &grown[s], "", TRUE, &bound);
    compare ("videoscale method=catrom", "bicubic", scaled_formats[_i], scaled_formats[_i],
        &grown[s], "", TRUE, &bound);
  }
  for (guint s = 0; s < G_N_ELEMENTS (shrunk); s++)
    compare ("videoscale method=bilinear", "bilinear", scaled_formats[_i], scaled_formats[_i],
        &shrunk[s], "", TRUE, &bound);
}

END_TEST

START_TEST (noise_is_scaled_alike)
{
  static const Bound bound = { 3, 0.5 };
  static const gchar *const formats[] = { "RGB", "BGR" };

  for (guint f = 0; f < G_N_ELEMENTS (formats); f++)
    for (guint s = 0; s < G_N_ELEMENTS (grown); s++) {
      compare ("videoscale method=bilinear", "bilinear", formats[f], formats[f], &grown[s], "",
          FALSE, &bound);
      compare ("videoscale method=bilinear", "bilinear", formats[f], formats[f], &shrunk[s], "",
          FALSE, &bound);
    }
}

END_TEST

/* ---- converting ------------------------------------------------------------------------------ */

static const gchar *const sites[] = { "mpeg2", "jpeg", "cosited" };
static const gchar *const colorimetries[] = { "bt601", "bt709", "bt2020", "1:4:0:0" };

static void
compare_colours (const gchar * line, const gchar * from, const gchar * to, const Sizes * sizes,
    const Bound * bound)
{
  for (guint s = 0; s < G_N_ELEMENTS (sites); s++)
    for (guint c = 0; c < G_N_ELEMENTS (colorimetries); c++) {
      gchar *colours = g_strdup_printf (",chroma-site=%s,colorimetry=%s", sites[s],
          colorimetries[c]);

      compare (line, "bilinear", from, to, sizes, colours, TRUE, bound);
      g_free (colours);
    }
}

static const struct
{
  const gchar *from, *to;
  Bound bound;
} conversions[] = {
  {"NV12", "RGBA", {8, 3}}, {"I420", "RGBA", {8, 3}}, {"I420", "BGRA", {8, 3}},
  {"NV12", "RGB", {8, 3}}, {"I420", "BGRx", {8, 3}}, {"RGBA", "NV12", {2, 1}},
  {"RGBA", "I420", {2, 1}}, {"RGB", "NV12", {2, 1}}, {"BGR", "I420", {2, 1}},
  {"BGRx", "NV12", {2, 1}}, {"RGB", "GRAY8", {1, 0.6}}, {"GRAY8", "RGB", {0, 0}},
  {"GRAY8", "RGBA", {0, 0}},
};

START_TEST (colours_are_converted_alike)
{
  static const Sizes even = { 320, 180, 320, 180 }, odd = { 321, 181, 321, 181 };

  compare_colours ("videoconvert", conversions[_i].from, conversions[_i].to, &even,
      &conversions[_i].bound);
  compare_colours ("videoconvert", conversions[_i].from, conversions[_i].to, &odd,
      &conversions[_i].bound);
}

END_TEST

START_TEST (samples_that_only_move_are_the_same)
{
  static const gchar *const pairs[][2] = {
    {"NV12", "I420"}, {"I420", "NV12"}, {"RGBA", "BGRA"}, {"BGRA", "RGB"}, {"RGB", "BGRA"},
    {"RGB", "BGR"}, {"BGRA", "BGRx"}, {"RGBA", "RGBA"}, {"NV12", "NV12"},
  };
  static const Sizes sizes = { 321, 181, 321, 181 };
  static const Bound none = { 0, 0 };

  for (guint i = 0; i < G_N_ELEMENTS (pairs); i++)
    compare ("videoconvert", "bilinear", pairs[i][0], pairs[i][1], &sizes,
        ",chroma-site=mpeg2,colorimetry=bt709", FALSE, &none);
}

END_TEST

/* Their size changes first and then their colours. */
START_TEST (both_at_once_are_alike)
{
  static const Bound to_rgb = { 11, 4 }, from_rgb = { 3, 1 };

  for (guint s = 0; s < 3; s++) {
    compare_colours ("videoscale method=bilinear ! videoconvert", "NV12", "RGBA", &shrunk[s],
        &to_rgb);
    compare_colours ("videoscale method=bilinear ! videoconvert", "I420", "RGB", &grown[s],
        &to_rgb);
    compare_colours ("videoscale method=bilinear ! videoconvert", "RGBA", "NV12", &shrunk[s],
        &from_rgb);
    compare_colours ("videoscale method=bilinear ! videoconvert", "BGRx", "I420", &grown[s],
        &from_rgb);
  }
}

END_TEST

/* ---- the program ----------------------------------------------------------------------------- */

static gboolean
load_peer (const gchar * name)
{
  gchar *path = test_find_plugin (name);
  GstPlugin *plugin = path != NULL ? gst_plugin_load_file (path, NULL) : NULL;

  g_free (path);
  if (plugin == NULL)
    return FALSE;
  gst_object_unref (plugin);
  return TRUE;
}

static Suite *
peers_suite (void)
{
  Suite *suite = suite_create ("peers-convertscale");
  TCase *tests = test_case (suite, "peers-convertscale");

  /* Before GStreamer 1.22 they are two plugins. */
  have_peers = load_peer ("videoconvertscale") || (load_peer ("videoscale")
      && load_peer ("videoconvert"));
  if (!have_peers) {
    g_printerr ("skipped: no videoscale and videoconvert (gst-plugins-base)\n");
    return suite;
  }
  tcase_add_loop_test (tests, slow_pictures_are_scaled_alike, 0, G_N_ELEMENTS (scaled_formats));
  tcase_add_test (tests, noise_is_scaled_alike);
  tcase_add_loop_test (tests, colours_are_converted_alike, 0, G_N_ELEMENTS (conversions));
  tcase_add_test (tests, samples_that_only_move_are_the_same);
  tcase_add_test (tests, both_at_once_are_alike);
  return suite;
}

int
main (int argc, char **argv)
{
  int failed = test_main (argc, argv, peers_suite);

  return have_peers ? failed : 77;
}
