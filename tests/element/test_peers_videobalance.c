/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* kernel=videobalance against GStreamer's own elements videobalance and gamma, on the same frames.
 *
 * Gamma alone is the same to the bit, for numbers that a float holds as their double does.  Of
 * the balance, videobalance.h rounds the factors to 14 or 15 binary places, so that a sample
 * whose exact value lies within 2^-7 of the middle between two whole numbers may be rounded the
 * other way: luma and chroma differ by 1 at most.  R'G'B' is made of such luma and chroma with
 * the factors 298, 409, 516 and less in 256ths: a colour differs by 4 at most, for (298 + 516) /
 * 256 is less than 4.  Parameters that these places hold exactly give equal frames.  With both
 * at once R'G'B' is not comparable: their pipeline goes back to R'G'B' between the two. */
#include "element.h"
#include "picture.h"

#include <stdlib.h>

#define WIDTH 198
#define HEIGHT 66
/* Samples of a run that may differ at all, in percent; measured 0.02 to 0.6. */
#define MOST_DIFFERENT 5.0
/* Steps of the random parameters to one. */
#define STEPS 10000

typedef struct
{
  gdouble brightness, contrast, saturation, hue, gamma;
} Settings;

/* The rig's frames by way of GStreamer's elements. */
typedef struct
{
  GstHarness *h;
  GstElement *balance, *gamma;  /* either may be NULL */
} Peer;

typedef struct
{
  gint most;
  guint64 samples, different;
} Difference;

static gboolean have_peers;

static const gchar *const formats[] = {
  "NV12", "I420", "YUY2", "UYVY", "RGB", "BGR", "RGBx", "BGRx", "RGBA", "BGRA"
};

/* The first so many of them are Y'CbCr. */
#define N_YUV 4

static Peer
peer_new (Rig * rig, const gchar * line)
{
  Peer peer = {.h = gst_harness_new_parse (line) };

  ck_assert (peer.h != NULL);
  peer.balance = gst_harness_find_element (peer.h, "videobalance");
  peer.gamma = gst_harness_find_element (peer.h, "gamma");
  gst_harness_set_src_caps (peer.h, gst_video_info_to_caps (&rig->info));
  return peer;
}

static void
peer_free (Peer * peer)
{
  g_clear_object (&peer->balance);
  g_clear_object (&peer->gamma);
  gst_harness_teardown (peer->h);
}

static void
apply_settings (Rig * rig, Peer * peer, const Settings * s)
{
  const gdouble values[] = { s->brightness, s->contrast, s->saturation, s->hue, s->gamma };
  gchar text[G_N_ELEMENTS (values)][G_ASCII_DTOSTR_BUF_SIZE], *params;

  for (guint i = 0; i < G_N_ELEMENTS (values); i++)
    g_ascii_formatd (text[i], G_ASCII_DTOSTR_BUF_SIZE, "%.6f", values[i]);
  params = g_strdup_printf ("brightness=%s,contrast=%s,saturation=%s,hue=%s,gamma=%s", text[0],
      text[1], text[2], text[3], text[4]);
  g_object_set (rig->x, "kernel-params", params, NULL);
  g_free (params);
  if (peer->balance != NULL)
    g_object_set (peer->balance, "brightness", s->brightness, "contrast", s->contrast,
        "saturation", s->saturation, "hue", s->hue, NULL);
  if (peer->gamma != NULL)
    g_object_set (peer->gamma, "gamma", s->gamma, NULL);
}

static GstBuffer *
new_input (Rig * rig, gboolean smooth)
{
  GstBuffer *buffer = gst_buffer_new_allocate (NULL, GST_VIDEO_INFO_SIZE (&rig->info), NULL);
  GstMapInfo map;

  if (!smooth) {
    picture_fill (buffer);
    return buffer;
  }
  /* Slopes of whatever the bytes are, every 4th of one kind for most formats. */
  gst_buffer_map (buffer, &map, GST_MAP_WRITE);
  for (gsize i = 0; i < map.size; i++)
    map.data[i] = (guint8) (i / 4 / (1 + i % 4) + i % 4 * 50);
  gst_buffer_unmap (buffer, &map);
  return buffer;
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
        gint difference = abs (rows[0][x] - rows[1][x]);

        total->samples++;
        total->different += difference != 0;
        total->most = MAX (total->most, difference);
      }
    }
  gst_video_frame_unmap (&frames[1]);
  gst_video_frame_unmap (&frames[0]);
}

/* One frame through both. */
static void
compare_frame (Rig * rig, Peer * peer, const Settings * settings, gboolean smooth,
    Difference * total)
{
  GstBuffer *input = new_input (rig, smooth), *ours, *theirs;

  apply_settings (rig, peer, settings);
  ck_assert_int_eq (gst_harness_push (peer->h, gst_buffer_copy_deep (input)), GST_FLOW_OK);
  theirs = gst_harness_pull (peer->h);
  ck_assert_int_eq (rig_push (rig, input), GST_FLOW_OK);
  ours = rig_pull (rig);
  add_difference (total, &rig->info, theirs, ours);
  gst_buffer_unref (theirs);
  gst_buffer_unref (ours);
}

static gdouble
random_between (gint low, gint high)
{
  return low + (gdouble) test_random ((guint) (high - low) * STEPS + 1) / STEPS;
}

START_TEST (balance_differs_by_its_bound_at_most)
{
  static const Settings corners[] = {
    {-1, 0, 0, -1, 1}, {1, 2, 2, 1, 1}, {0, 2, 2, 0.5, 1}, {0, 0.5, 0.5, -0.5, 1},
    {0.25, 1.5, 1.5, 1, 1}, {0, 1, 2, 0.25, 1}, {-0.5, 2, 0.1, -0.75, 1}, {0, 1, 1, 0.001, 1},
  };
  const gint bound = _i < N_YUV ? 1 : 4;
  Difference total = { 0 };
  Rig *rig = rig_new ("num-streams=2 kernel=videobalance");
  Peer peer;

  rig_set_caps (rig, formats[_i], WIDTH, HEIGHT);
  peer = peer_new (rig, "videobalance");
  for (guint n = 0; n < 40; n++) {
    Settings settings = { random_between (-1, 1), random_between (0, 2), random_between (0, 2),
      random_between (-1, 1), 1
    };

    compare_frame (rig, &peer, n < G_N_ELEMENTS (corners) ? &corners[n] : &settings, n % 4 == 3,
        &total);
    ck_assert_msg (total.most <= bound, "%s: a sample differs by %d", formats[_i], total.most);
  }
  ck_assert_msg (100.0 * (gdouble) total.different < MOST_DIFFERENT * (gdouble) total.samples,
      "%s: %" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT " samples differ", formats[_i],
      total.different, total.samples);
  expect_no_trouble (rig->bus);
  peer_free (&peer);
  rig_free (rig);
}

END_TEST

static void
expect_equal (const gchar * format, const gchar * line, const Settings * settings, guint n)
{
  Difference total = { 0 };
  Rig *rig = rig_new ("num-streams=2 kernel=videobalance");
  Peer peer;

  rig_set_caps (rig, format, WIDTH, HEIGHT);
  peer = peer_new (rig, line);
  for (guint i = 0; i < n; i++) {
    compare_frame (rig, &peer, &settings[i], i % 2 != 0, &total);
    ck_assert_msg (total.most == 0, "%s: setting %u: a sample differs by %d", format, i,
        total.most);
  }
  expect_no_trouble (rig->bus);
  peer_free (&peer);
  rig_free (rig);
}

START_TEST (balance_of_exact_factors_is_the_same)
{
  static const Settings settings[] = {
    {0, 1, 1, 0, 1}, {0.2, 1.25, 1.5, 0, 1}, {-0.2, 0.75, 0.25, 0, 1}, {0, 0.5, 2, 0, 1},
    {0, 1.5, 1, 0, 1}, {0.125, 2, 0, 0, 1}, {1, 0, 1, 0, 1}, {-1, 2, 2, 0, 1}, {0, 1, 1, 0, 1},
  };

  expect_equal (formats[_i], "videobalance", settings, G_N_ELEMENTS (settings));
}

END_TEST

START_TEST (gamma_is_the_same)
{
  static const Settings settings[] = {
    {0, 1, 1, 0, 1}, {0, 1, 1, 0, 2.25}, {0, 1, 1, 0, 0.5}, {0, 1, 1, 0, 0.03125},
    {0, 1, 1, 0, 10}, {0, 1, 1, 0, 1.5}, {0, 1, 1, 0, 0.75}, {0, 1, 1, 0, 3},
  };

  expect_equal (formats[_i], "gamma", settings, G_N_ELEMENTS (settings));
}

END_TEST

START_TEST (gamma_comes_after_the_balance)
{
  static const Settings settings[] = {
    {0.2, 1.25, 1.5, 0, 2.25}, {-0.2, 0.75, 0.25, 0, 0.5}, {0, 2, 2, 0, 0.25}, {0, 0.5, 1, 0, 4},
  };

  expect_equal (formats[_i], "videobalance ! gamma", settings, G_N_ELEMENTS (settings));
}

END_TEST

/* False, with the reason, when there is no such element. */
static gboolean
load_peers (void)
{
  gchar *path = test_find_plugin ("videofilter");
  GstPlugin *plugin = path != NULL ? gst_plugin_load_file (path, NULL) : NULL;

  g_free (path);
  if (plugin == NULL) {
    g_printerr ("skipped: no videobalance and gamma (gst-plugins-good)\n");
    return FALSE;
  }
  gst_object_unref (plugin);
  return TRUE;
}

static Suite *
peers_suite (void)
{
  Suite *suite = suite_create ("peers-videobalance");
  TCase *tests = test_case (suite, "peers-videobalance");

  have_peers = load_peers ();
  if (!have_peers)
    return suite;
  tcase_add_loop_test (tests, balance_differs_by_its_bound_at_most, 0, G_N_ELEMENTS (formats));
  tcase_add_loop_test (tests, balance_of_exact_factors_is_the_same, 0, G_N_ELEMENTS (formats));
  tcase_add_loop_test (tests, gamma_is_the_same, 0, G_N_ELEMENTS (formats));
  tcase_add_loop_test (tests, gamma_comes_after_the_balance, 0, N_YUV);
  return suite;
}

int
main (int argc, char **argv)
{
  int failed = test_main (argc, argv, peers_suite);

  return have_peers ? failed : 77;
}
