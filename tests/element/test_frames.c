/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A frame's company: as many frames out as in, in order, each with its own timestamps, flags and
 * metas, and inputs that others hold stay as they were.  Pixels are test_pixels' subject. */
#include <gst/video/gstvideometa.h>

#include "element.h"
#include "picture.h"

static const guint stream_counts[] = { 1, 2, 3, 8 };

static Rig *
rig_with_streams (guint num_streams)
{
  gchar *properties = g_strdup_printf ("num-streams=%u", num_streams);
  Rig *rig = rig_new (properties);

  g_free (properties);
  return rig;
}

/* Trial dlstreamer #361: frames missing at the end. */
START_TEST (every_frame_comes_out_in_order)
{
  guint num_streams = stream_counts[_i];

  for (guint count = 1; count <= 2 * num_streams; count++) {
    Rig *rig = rig_with_streams (num_streams);

    rig_set_caps (rig, "NV12", 34, 22);
    ck_assert_int_eq (rig_feed (rig, 0, count), GST_FLOW_OK);
    ck_assert (rig_push_event (rig, gst_event_new_eos ()));
    rig_wait_event (rig, GST_EVENT_EOS);
    for (guint n = 0; n < count; n++) {
      GstBuffer *out = rig_pull (rig);

      ck_assert_uint_eq (GST_BUFFER_OFFSET (out), n);
      gst_buffer_unref (out);
    }
    ck_assert (gst_harness_try_pull (rig->h) == NULL);
    ck_assert_uint_eq (stats_uint64 (rig->x, "processed"), count);
    rig_free (rig);
  }
}

END_TEST

START_TEST (pipeline_of_n_buffers_gives_n_buffers)
{
  guint num_streams = stream_counts[_i];

  for (guint count = 1; count <= 2 * num_streams; count++) {
    gchar *line = g_strdup_printf ("videotestsrc num-buffers=%u ! video/x-raw,width=48,height=32 "
        "! X name=x num-streams=%u ! fakesink name=sink", count, num_streams);
    GstElement *pipeline = pipeline_new (line);
    Counter *counter = counter_new (pipeline, "sink", "sink");

    pipeline_run (pipeline);
    ck_assert_uint_eq (counter_get (counter), count);
    pipeline_free (pipeline);
    counter_free (counter);
    g_free (line);
  }
}

END_TEST

START_TEST (timestamps_and_flags_leave_with_their_frame)
{
  static const GstBufferFlags flags[] = {
    0, GST_BUFFER_FLAG_DISCONT, GST_BUFFER_FLAG_MARKER, GST_BUFFER_FLAG_CORRUPTED,
    GST_BUFFER_FLAG_DELTA_UNIT | GST_BUFFER_FLAG_DROPPABLE,
    (GstBufferFlags) (GST_VIDEO_BUFFER_FLAG_INTERLACED | GST_VIDEO_BUFFER_FLAG_TFF),
  };
  Rig *rig = rig_with_streams (3);

  rig_set_caps (rig, "I420", 32, 24);
  for (guint n = 0; n < 24; n++) {
    GstBuffer *in = rig_frame (rig, n);

    GST_BUFFER_DTS (in) = n * 7 + 1;
    GST_BUFFER_PTS (in) = n % 5 == 4 ? GST_CLOCK_TIME_NONE : n * 1000 + 3;
    GST_BUFFER_DURATION (in) = n % 3 == 2 ? GST_CLOCK_TIME_NONE : n + 11;
    GST_BUFFER_FLAG_SET (in, flags[n % G_N_ELEMENTS (flags)]);
    ck_assert_int_eq (rig_push (rig, in), GST_FLOW_OK);
  }
  for (guint n = 0; n < 24; n++) {
    GstBuffer *out = rig_pull (rig);

    ck_assert_uint_eq (GST_BUFFER_DTS (out), n * 7 + 1);
    ck_assert_uint_eq (GST_BUFFER_PTS (out), n % 5 == 4 ? GST_CLOCK_TIME_NONE : n * 1000 + 3);
    ck_assert_uint_eq (GST_BUFFER_DURATION (out), n % 3 == 2 ? GST_CLOCK_TIME_NONE : n + 11);
    ck_assert_uint_eq (GST_BUFFER_OFFSET (out), n);
    ck_assert_uint_eq (GST_BUFFER_OFFSET_END (out), n + 1);
    ck_assert_uint_eq (GST_BUFFER_FLAGS (out) & ~(guint) GST_BUFFER_FLAG_TAG_MEMORY,
        flags[n % G_N_ELEMENTS (flags)]);
    gst_buffer_unref (out);
  }
  rig_free (rig);
}

END_TEST

/* A buffer that comes back to the pool must not keep what a frame before it brought. */
START_TEST (frames_without_metas_and_flags_stay_without)
{
  Rig *rig = rig_with_streams (1);

  rig_set_caps (rig, "GRAY8", 32, 24);
  for (guint n = 0; n < 20; n++) {
    GstBuffer *in = rig_frame (rig, n), *out;

    if (n < 8) {
      GST_BUFFER_FLAG_SET (in, GST_BUFFER_FLAG_DISCONT | GST_BUFFER_FLAG_GAP);
      gst_buffer_add_video_region_of_interest_meta (in, "face", n, 2, 3, 4);
    }
    ck_assert_int_eq (rig_push (rig, in), GST_FLOW_OK);
    out = rig_pull (rig);
    ck_assert_int_eq (GST_BUFFER_FLAG_IS_SET (out, GST_BUFFER_FLAG_GAP), n < 8);
    ck_assert_uint_eq (gst_buffer_get_n_meta (out,
            GST_VIDEO_REGION_OF_INTEREST_META_API_TYPE), n < 8 ? 1 : 0);
    gst_buffer_unref (out);
  }
  rig_free (rig);
}

END_TEST

static void
add_metas (GstBuffer * buffer, guint n)
{
  static const gchar *tags[] = { NULL };
  GstCustomMeta *custom;
  GstCaps *reference = gst_caps_new_empty_simple ("timestamp/x-unix");

  if (gst_meta_get_info ("csf-test-meta") == NULL)
    gst_meta_register_custom ("csf-test-meta", tags, NULL, NULL, NULL);
  gst_buffer_add_video_region_of_interest_meta (buffer, "face", n, 2, 3, 4);
  gst_buffer_add_video_region_of_interest_meta (buffer, "hand", 5, n, 6, 7);
  gst_buffer_add_video_time_code_meta_full (buffer, 30, 1, NULL, GST_VIDEO_TIME_CODE_FLAGS_NONE,
      1, 2, 3, n % 30, 0);
  gst_buffer_add_reference_timestamp_meta (buffer, reference, n * 5, GST_CLOCK_TIME_NONE);
  gst_buffer_add_video_crop_meta (buffer)->x = n;
  custom = gst_buffer_add_custom_meta (buffer, "csf-test-meta");
  gst_structure_set (gst_custom_meta_get_structure (custom), "number", G_TYPE_UINT, n, NULL);
  gst_caps_unref (reference);
}

static void
check_metas (GstBuffer * buffer, guint n)
{
  GstVideoRegionOfInterestMeta *region;
  GstCustomMeta *custom = gst_buffer_get_custom_meta (buffer, "csf-test-meta");
  guint number = 0, found = 0;
  gpointer state = NULL;
  GstMeta *meta;

  ck_assert (custom != NULL);
  gst_structure_get_uint (gst_custom_meta_get_structure (custom), "number", &number);
  ck_assert_uint_eq (number, n);
  ck_assert_uint_eq (gst_buffer_get_video_time_code_meta (buffer)->tc.frames, n % 30);
  ck_assert_uint_eq (gst_buffer_get_reference_timestamp_meta (buffer, NULL)->timestamp, n * 5);
  ck_assert_uint_eq (gst_buffer_get_video_crop_meta (buffer)->x, n);
  while ((meta = gst_buffer_iterate_meta_filtered (buffer, &state,
              GST_VIDEO_REGION_OF_INTEREST_META_API_TYPE)) != NULL) {
    region = (GstVideoRegionOfInterestMeta *) meta;
    found++;
    if (region->roi_type == g_quark_from_static_string ("face"))
      ck_assert_uint_eq (region->x, n);
    else
      ck_assert_uint_eq (region->y, n);
  }
  ck_assert_uint_eq (found, 2);
}

/* Trial basler pylon #126: custom metas wiped. */
START_TEST (metas_leave_with_their_frame)
{
  Rig *rig = rig_with_streams (3);

  rig_set_caps (rig, "NV12", 64, 48);
  for (guint n = 0; n < 20; n++) {
    GstBuffer *in = rig_frame (rig, n);

    add_metas (in, n);
    ck_assert_int_eq (rig_push (rig, in), GST_FLOW_OK);
  }
  for (guint n = 0; n < 20; n++) {
    GstBuffer *out = rig_pull (rig);

    check_metas (out, n);
    gst_buffer_unref (out);
  }
  rig_free (rig);
}

END_TEST

static void
note_gone (gpointer data, GstMiniObject * object)
{
  g_atomic_int_inc ((gint *) data);
}

/* It would keep upstream's buffer from going back to its pool. */
START_TEST (parent_buffer_meta_is_not_copied)
{
  Rig *rig = rig_with_streams (2);
  gint gone = 0;
  GstBuffer *parent = gst_buffer_new (), *in, *out;

  rig_set_caps (rig, "GRAY8", 32, 24);
  gst_mini_object_weak_ref (GST_MINI_OBJECT (parent), note_gone, &gone);
  in = rig_frame (rig, 0);
  gst_buffer_add_parent_buffer_meta (in, parent);
  gst_buffer_unref (parent);
  ck_assert_int_eq (rig_push (rig, in), GST_FLOW_OK);
  out = rig_pull (rig);
  ck_assert (gst_buffer_get_parent_buffer_meta (out) == NULL);
  ck_assert_int_eq (g_atomic_int_get (&gone), 1);
  gst_buffer_unref (out);
  rig_free (rig);
}

END_TEST

/* Two branches of a tee hold one buffer. */
START_TEST (shared_input_is_never_written)
{
  static const gchar *const kernels[] = { "copy", "sobel", "gaussianblur" };

  for (guint k = 0; k < G_N_ELEMENTS (kernels); k++) {
    gchar *properties = g_strdup_printf ("num-streams=3 kernel=%s", kernels[k]);
    Rig *rig = rig_new (properties);
    GstBuffer *in, *before, *out;
    GstMapInfo map;

    rig_set_caps (rig, "RGBA", 40, 30);
    in = rig_frame (rig, 0);
    before = gst_buffer_copy_deep (in);
    /* Seen before, its memory is used in place where there is something to be gained. */
    for (guint n = 0; n < 9; n++) {
      ck_assert_int_eq (rig_push (rig, gst_buffer_ref (in)), GST_FLOW_OK);
      out = rig_pull (rig);
      ck_assert (gst_buffer_peek_memory (out, 0) != gst_buffer_peek_memory (in, 0));
      gst_buffer_unref (out);
    }
    ck_assert (gst_buffer_map (before, &map, GST_MAP_READ));
    ck_assert_int_eq (gst_buffer_memcmp (in, 0, map.data, map.size), 0);
    gst_buffer_unmap (before, &map);
    gst_buffer_unref (before);
    ck_assert_int_eq (GST_MINI_OBJECT_REFCOUNT_VALUE (in), 1);
    gst_buffer_unref (in);
    rig_free (rig);
    g_free (properties);
  }
}

END_TEST

START_TEST (n_streams_give_what_one_gives)
{
  enum { FRAMES = 24 };
  static const gchar *const kernels[] = { "copy", "sobel", "gaussianblur kernel-params=sigma=1.5" };
  const gchar *kernel = kernels[_i];
  GstBuffer *inputs[FRAMES], *expected[FRAMES];

  for (guint run = 0; run < G_N_ELEMENTS (stream_counts); run++) {
    gchar *properties = g_strdup_printf ("num-streams=%u kernel=%s", stream_counts[run], kernel);
    Rig *rig = rig_new (properties);

    rig_set_caps (rig, "I420", 61, 43);
    for (guint n = 0; n < FRAMES; n++) {
      if (run == 0)
        inputs[n] = rig_frame (rig, n);
      ck_assert_int_eq (rig_push (rig, gst_buffer_ref (inputs[n])), GST_FLOW_OK);
    }
    for (guint n = 0; n < FRAMES; n++) {
      GstBuffer *out = rig_pull (rig);

      if (run == 0) {
        expected[n] = gst_buffer_copy_deep (out);
      } else {
        ck_assert_uint_eq (GST_BUFFER_PTS (out), GST_BUFFER_PTS (expected[n]));
        picture_check_equal (&rig->info, expected[n], out);
      }
      gst_buffer_unref (out);
    }
    rig_free (rig);
    g_free (properties);
  }
  for (guint n = 0; n < FRAMES; n++) {
    gst_buffer_unref (inputs[n]);
    gst_buffer_unref (expected[n]);
  }
}

END_TEST

static Suite *
frames_suite (void)
{
  Suite *suite = suite_create ("frames");
  TCase *tests = test_case (suite, "frames");

  tcase_add_loop_test (tests, every_frame_comes_out_in_order, 0, G_N_ELEMENTS (stream_counts));
  tcase_add_loop_test (tests, pipeline_of_n_buffers_gives_n_buffers, 0,
      G_N_ELEMENTS (stream_counts));
  tcase_add_test (tests, timestamps_and_flags_leave_with_their_frame);
  tcase_add_test (tests, frames_without_metas_and_flags_stay_without);
  tcase_add_test (tests, metas_leave_with_their_frame);
  tcase_add_test (tests, parent_buffer_meta_is_not_copied);
  tcase_add_test (tests, shared_input_is_never_written);
  tcase_add_loop_test (tests, n_streams_give_what_one_gives, 0, 3);
  return suite;
}

int
main (int argc, char **argv)
{
  return test_main (argc, argv, frames_suite);
}
