/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The right samples at the right place: every format, odd sizes, and memory laid out as decoders
 * and others lay it out, on both sides of the element. */
#include "element.h"
#include "picture.h"

typedef struct
{
  gint width, height;
} Size;

/* Smallest, odd in either direction, not a multiple of 4, 16 or 64, and some of trials.md. */
static const Size sizes[] = {
  {1, 1}, {2, 2}, {3, 5}, {16, 1}, {1, 17}, {31, 33}, {322, 242}, {320, 241}, {321, 240}, {64, 64},
};

static void
check_frame (Rig * rig, const gchar * kernel, const gchar * params, GstBuffer * input)
{
  GstBuffer *output;

  ck_assert_int_eq (rig_push (rig, gst_buffer_ref (input)), GST_FLOW_OK);
  output = rig_pull (rig);
  if (params == NULL && g_strcmp0 (kernel, "copy") == 0)
    picture_check_equal (&rig->info, input, output);
  else
    picture_check (&rig->info, kernel, params, input, output);
  gst_buffer_unref (output);
  gst_buffer_unref (input);
}

static GstBuffer *
plain_input (Rig * rig)
{
  GstBuffer *buffer = gst_buffer_new_allocate (NULL, GST_VIDEO_INFO_SIZE (&rig->info), NULL);

  picture_fill (buffer);
  return buffer;
}

/* Caps change at every size: trials edgeai #27 (I420 322x242, NV12 with odd width), gstreamer MR
 * 6903 (I420 320x241). */
START_TEST (copy_keeps_every_sample_of_every_format_and_size)
{
  Rig *rig = rig_new ("num-streams=2 kernel=copy");

  if (_i == 1)
    gst_harness_add_propose_allocation_meta (rig->h, GST_VIDEO_META_API_TYPE, NULL);
  for (guint f = 0; picture_formats[f] != NULL; f++)
    for (guint s = 0; s < G_N_ELEMENTS (sizes); s++) {
      ck_assert (rig_set_caps (rig, picture_formats[f], sizes[s].width, sizes[s].height));
      check_frame (rig, "copy", NULL, plain_input (rig));
      check_frame (rig, "copy", NULL, plain_input (rig));
    }
  expect_no_trouble (rig->bus);
  rig_free (rig);
}

END_TEST

START_TEST (full_hd_of_odd_width_is_copied)
{
  Rig *rig = rig_new ("num-streams=2 kernel=copy");

  rig_set_caps (rig, "RGB", 1921, 1080);
  for (guint n = 0; n < 3; n++)
    check_frame (rig, "copy", NULL, plain_input (rig));
  rig_free (rig);
}

END_TEST

/* Trial opencv #19630: GstVideoMeta ignored (1080 in 1088): green strip. */
START_TEST (padded_strides_and_offsets_are_honoured)
{
  static const gchar *const kernels[] = { "copy", "sobel", "gaussianblur" };
  gchar *properties = g_strdup_printf ("num-streams=2 kernel=%s", kernels[_i]);
  Rig *rig = rig_new (properties);

  for (guint f = 0; picture_formats[f] != NULL; f++) {
    rig_set_caps (rig, picture_formats[f], 54, 46);
    check_frame (rig, kernels[_i], NULL, picture_new_padded (&rig->info, 0, 10, 0));
    check_frame (rig, kernels[_i], NULL, picture_new_padded (&rig->info, 64, 128, 2));
    check_frame (rig, kernels[_i], NULL, picture_new_padded (&rig->info, 7, 3, 8));
    check_frame (rig, kernels[_i], NULL, plain_input (rig));
  }
  rig_set_caps (rig, "NV12", 1920, 1080);
  check_frame (rig, kernels[_i], NULL, picture_new_padded (&rig->info, 0, 0, 8));
  rig_free (rig);
  g_free (properties);
}

END_TEST

START_TEST (kernels_give_what_their_c_function_gives)
{
  static const struct
  {
    const gchar *kernel, *params, *properties;
  } cases[] = {
    {"sobel", NULL, "num-streams=3 kernel=sobel"},
    {"gaussianblur", NULL, "num-streams=3 kernel=gaussianblur"},
    {"gaussianblur", "sigma=4.5", "num-streams=3 kernel=gaussianblur kernel-params=sigma=4.5"},
  };
  Rig *rig = rig_new (cases[_i].properties);

  for (guint f = 0; picture_formats[f] != NULL; f++)
    for (guint s = 0; s < G_N_ELEMENTS (sizes); s++) {
      ck_assert (rig_set_caps (rig, picture_formats[f], sizes[s].width, sizes[s].height));
      check_frame (rig, cases[_i].kernel, cases[_i].params, plain_input (rig));
    }
  rig_free (rig);
}

END_TEST

/* The caps' colorimetry reaches the kernel. */
START_TEST (range_and_matrix_are_the_caps)
{
  static const gchar *const colorimetries[] = { "bt601", "bt709", "bt2020", "1:4:0:0", "1:3:5:1" };
  Rig *rig = rig_new ("kernel=sobel");

  rig_set_caps (rig, "NV12", 32, 32);
  for (guint i = 0; i < G_N_ELEMENTS (colorimetries); i++) {
    GstCaps *caps = gst_video_info_to_caps (&rig->info);

    gst_caps_set_simple (caps, "colorimetry", G_TYPE_STRING, colorimetries[i], NULL);
    ck_assert (gst_video_info_from_caps (&rig->info, caps));
    ck_assert (rig_push_event (rig, gst_event_new_caps (caps)));
    check_frame (rig, "sobel", NULL, plain_input (rig));
    gst_caps_unref (caps);
  }
  rig_free (rig);
}

END_TEST

START_TEST (planes_in_memories_of_their_own_are_one_picture)
{
  static const gchar *const formats[] = { "NV12", "I420", "P010_10LE" };
  Rig *rig = rig_new ("num-streams=2");

  for (guint f = 0; f < G_N_ELEMENTS (formats); f++)
    for (guint video_meta = 0; video_meta < 2; video_meta++) {
      GstBuffer *input;

      rig_set_caps (rig, formats[f], 66, 34);
      input = picture_new_planes (&rig->info, video_meta != 0);
      /* Again and again, for memory that keeps coming back is used in place. */
      for (guint n = 0; n < 4; n++)
        check_frame (rig, "copy", NULL, gst_buffer_ref (input));
      gst_buffer_unref (input);
    }
  rig_free (rig);
}

END_TEST

/* Without GstVideoMeta downstream, a frame lies as its caps say and no meta is needed to read
 * it. */
START_TEST (plain_downstream_gets_plain_buffers)
{
  Rig *rig = rig_new ("num-streams=2");

  for (guint f = 0; picture_formats[f] != NULL; f++) {
    GstBuffer *input, *output;
    GstVideoMeta *meta;

    rig_set_caps (rig, picture_formats[f], 37, 23);
    input = picture_new_padded (&rig->info, 32, 20, 3);
    ck_assert_int_eq (rig_push (rig, gst_buffer_ref (input)), GST_FLOW_OK);
    output = gst_buffer_make_writable (rig_pull (rig));
    ck_assert_uint_eq (gst_buffer_get_size (output), GST_VIDEO_INFO_SIZE (&rig->info));
    meta = gst_buffer_get_video_meta (output);
    if (meta != NULL)
      gst_buffer_remove_meta (output, (GstMeta *) meta);
    picture_check_equal (&rig->info, input, output);
    gst_buffer_unref (output);
    gst_buffer_unref (input);
  }
  rig_free (rig);
}

END_TEST

static Suite *
pixels_suite (void)
{
  Suite *suite = suite_create ("pixels");
  TCase *tests = test_case (suite, "pixels");

  tcase_add_loop_test (tests, copy_keeps_every_sample_of_every_format_and_size, 0, 2);
  tcase_add_test (tests, full_hd_of_odd_width_is_copied);
  tcase_add_loop_test (tests, padded_strides_and_offsets_are_honoured, 0, 3);
  tcase_add_loop_test (tests, kernels_give_what_their_c_function_gives, 0, 3);
  tcase_add_test (tests, range_and_matrix_are_the_caps);
  tcase_add_test (tests, planes_in_memories_of_their_own_are_one_picture);
  tcase_add_test (tests, plain_downstream_gets_plain_buffers);
  return suite;
}

int
main (int argc, char **argv)
{
  return test_main (argc, argv, pixels_suite);
}
