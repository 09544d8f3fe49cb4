/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* CUDA memory on either side of the element: pixels, metas, and which memory is chosen.  Pools and
 * fences are test_cudabuffers' subject, whose context it is test_cudacontext's. */
#include "cudarig.h"

#define FRAME (GST_SECOND / 30)

typedef struct
{
  gint width, height;
} Size;

/* Trials edgeai #27 (I420 322x242, NV12 of odd width) and gstreamer MR 6903 (I420 320x241). */
static const Size sizes[] = {
  {1, 1}, {2, 2}, {3, 5}, {16, 1}, {1, 17}, {31, 33}, {322, 242}, {320, 241}, {321, 241}, {64, 64},
};

static const gchar *const kernels[] = { "copy", "sobel", "gaussianblur" };

/* ---- pixels ---------------------------------------------------------------------------------- */

START_TEST (every_format_and_size_in_every_memory)
{
  const Sides *side = &cuda_sides[_i % 4];
  const gchar *kernel = kernels[_i / 4];
  gchar *properties = g_strdup_printf ("num-streams=3 kernel=%s", kernel);
  GstCudaContext *context = cuda_context_new (0);
  Rig *rig = cuda_rig_new (context, properties, side->out ? CUDA_CAPS : SYSTEM_CAPS);
  guint frames = 0;

  for (guint f = 0; cuda_formats[f] != NULL; f++)
    for (guint s = 0; s < G_N_ELEMENTS (sizes); s++) {
      GstBufferPool *pool = NULL;

      ck_assert (rig_take_caps (rig, cuda_caps_new (side->in, cuda_formats[f], sizes[s].width,
                  sizes[s].height)));
      if (side->in)
        pool = cuda_pool_new (context, &rig->info, 0);
      for (guint n = 0; n < 4; n++, frames++)
        cuda_check_frame (rig, pool, kernel);
      ck_assert_int_eq (rig_output_is_cuda (rig), side->out);
      cuda_pool_free (pool);
    }
  ck_assert_uint_gt (frames, 0);
  /* No copy beside the device's own. */
  if (side->in)
    ck_assert_uint_eq (stats_uint64 (rig->x, "host-copies"), 0);
  expect_no_trouble (rig->bus);
  rig_free (rig);
  gst_object_unref (context);
  g_free (properties);
}

END_TEST

/* Many at once on a device that is late at its own pace: what leaves is finished, or others are
 * made to wait for it. */
START_TEST (frames_in_flight_do_not_mix)
{
  const Sides *side = &cuda_sides[_i];
  GstCudaContext *context = cuda_context_new (0);
  Rig *rig = cuda_rig_new (context, "num-streams=4 kernel=sobel", side->out ? CUDA_CAPS :
      SYSTEM_CAPS);
  GstBufferPool *pool;
  GstBuffer *in[32], *out;

  if (fake != NULL)
    fake_setting ("DELAY_US", 2000);
  ck_assert (rig_take_caps (rig, cuda_caps_new (side->in, "NV12", 98, 66)));
  pool = cuda_pool_new (context, &rig->info, 0);
  for (guint n = 0; n < 32; n++) {
    in[n] = side->in ? cuda_pool_take (pool) : rig_frame (rig, n);
    GST_BUFFER_PTS (in[n]) = n * FRAME;
    ck_assert_int_eq (rig_push (rig, gst_buffer_ref (in[n])), GST_FLOW_OK);
  }
  for (guint n = 0; n < 32; n++) {
    out = rig_pull (rig);
    ck_assert_uint_eq (GST_BUFFER_PTS (out), n * FRAME);
    cuda_check (&rig->info, "sobel", in[n], out);
    gst_buffer_unref (out);
    gst_buffer_unref (in[n]);
  }
  cuda_pool_free (pool);
  rig_free (rig);
  gst_object_unref (context);
}

END_TEST

/* System-memory caps may carry CUDA memory: it is used where it is. */
START_TEST (cuda_memory_behind_system_caps_is_recognised)
{
  GstCudaContext *context = cuda_context_new (0);
  Rig *rig = cuda_rig_new (context, "num-streams=2 kernel=sobel",
      _i == 0 ? SYSTEM_CAPS : CUDA_CAPS);
  GstBufferPool *pool;

  for (guint f = 0; cuda_formats[f] != NULL; f++) {
    guint64 copies;

    rig_set_caps (rig, cuda_formats[f], 66, 51);
    pool = cuda_pool_new (context, &rig->info, 0);
    copies = stats_uint64 (rig->x, "host-copies");
    for (guint n = 0; n < 5; n++)
      cuda_check_frame (rig, pool, "sobel");
    ck_assert_uint_eq (stats_uint64 (rig->x, "host-copies"), copies);
    /* One after the other in one stream. */
    for (guint n = 0; n < 6; n++)
      cuda_check_frame (rig, n % 2 == 0 ? pool : NULL, "sobel");
    ck_assert_uint_le (stats_uint64 (rig->x, "host-copies"), copies + 3);
    cuda_pool_free (pool);
  }
  expect_no_trouble (rig->bus);
  rig_free (rig);
  gst_object_unref (context);
}

END_TEST

/* Nobody told the element of this context, or it runs on the CPU: mapped as any other memory. */
START_TEST (cuda_memory_of_a_stranger_is_right_as_well)
{
  static const gchar *const properties[] = { "num-streams=2", "num-streams=2 backend=cpu" };
  GstCudaContext *context = cuda_context_new (0);
  Rig *rig = rig_new (properties[_i]);
  GstBufferPool *pool;

  for (guint f = 0; cuda_formats[f] != NULL; f++) {
    /* Of even height: see cuda_to_system. */
    rig_set_caps (rig, cuda_formats[f], 67, 50);
    pool = cuda_pool_new (context, &rig->info, 0);
    for (guint n = 0; n < 5; n++)
      cuda_check_frame (rig, pool, "copy");
    cuda_pool_free (pool);
  }
  expect_no_trouble (rig->bus);
  rig_free (rig);
  gst_object_unref (context);
}

END_TEST

/* A buffer of two branches is read by both and written by none. */
START_TEST (shared_device_input_is_never_written)
{
  GstCudaContext *context = cuda_context_new (0);
  Rig *rig = cuda_rig_new (context, "num-streams=3 kernel=sobel", CUDA_CAPS);
  GstBufferPool *pool;
  GstBuffer *in, *before, *out;

  rig_take_caps (rig, cuda_caps_new (TRUE, "RGBA", 40, 30));
  pool = cuda_pool_new (context, &rig->info, 0);
  in = cuda_pool_take (pool);
  before = gst_buffer_new_allocate (NULL, gst_buffer_get_size (in), NULL);
  {
    GstMapInfo map;

    ck_assert (gst_buffer_map (in, &map, GST_MAP_READ));
    gst_buffer_fill (before, 0, map.data, map.size);
    gst_buffer_unmap (in, &map);
  }
  for (guint n = 0; n < 5; n++) {
    ck_assert_int_eq (rig_push (rig, gst_buffer_ref (in)), GST_FLOW_OK);
    out = rig_pull (rig);
    ck_assert (gst_buffer_peek_memory (out, 0) != gst_buffer_peek_memory (in, 0));
    cuda_check (&rig->info, "sobel", in, out);
    gst_buffer_unref (out);
  }
  {
    GstMapInfo map;

    ck_assert (gst_buffer_map (before, &map, GST_MAP_READ));
    ck_assert_int_eq (gst_buffer_memcmp (in, 0, map.data, map.size), 0);
    gst_buffer_unmap (before, &map);
  }
  gst_buffer_unref (before);
  gst_buffer_unref (in);
  cuda_pool_free (pool);
  rig_free (rig);
  gst_object_unref (context);
}

END_TEST

START_TEST (timestamps_flags_and_metas_leave_with_their_frame)
{
  const Sides *side = &cuda_sides[_i];
  GstCudaContext *context = cuda_context_new (0);
  Rig *rig = cuda_rig_new (context, "num-streams=3", side->out ? CUDA_CAPS : SYSTEM_CAPS);
  GstBufferPool *pool;

  rig_take_caps (rig, cuda_caps_new (side->in, "I420", 32, 24));
  pool = cuda_pool_new (context, &rig->info, 0);
  for (guint n = 0; n < 24; n++) {
    GstBuffer *in = side->in ? cuda_pool_take (pool) : rig_frame (rig, n);

    GST_BUFFER_PTS (in) = n * FRAME;
    GST_BUFFER_DTS (in) = n * FRAME + 1;
    GST_BUFFER_DURATION (in) = n % 3 == 2 ? GST_CLOCK_TIME_NONE : FRAME;
    GST_BUFFER_OFFSET (in) = n;
    if (n % 4 == 0) {
      GST_BUFFER_FLAG_SET (in, GST_BUFFER_FLAG_MARKER);
      gst_buffer_add_video_region_of_interest_meta (in, "face", n, 2, 3, 4);
      gst_buffer_add_video_time_code_meta_full (in, 30, 1, NULL, GST_VIDEO_TIME_CODE_FLAGS_NONE, 1,
          2, 3, n, 0);
    }
    ck_assert_int_eq (rig_push (rig, in), GST_FLOW_OK);
  }
  for (guint n = 0; n < 24; n++) {
    GstBuffer *out = rig_pull (rig);
    GstVideoRegionOfInterestMeta *region = (GstVideoRegionOfInterestMeta *)
        gst_buffer_get_meta (out, GST_VIDEO_REGION_OF_INTEREST_META_API_TYPE);

    ck_assert_uint_eq (GST_BUFFER_PTS (out), n * FRAME);
    ck_assert_uint_eq (GST_BUFFER_DTS (out), n * FRAME + 1);
    ck_assert_uint_eq (GST_BUFFER_DURATION (out), n % 3 == 2 ? GST_CLOCK_TIME_NONE : FRAME);
    ck_assert_uint_eq (GST_BUFFER_OFFSET (out), n);
    ck_assert_int_eq (GST_BUFFER_FLAG_IS_SET (out, GST_BUFFER_FLAG_MARKER), n % 4 == 0);
    ck_assert_int_eq (region != NULL, n % 4 == 0);
    ck_assert_int_eq (gst_buffer_get_video_time_code_meta (out) != NULL, n % 4 == 0);
    ck_assert_uint_le (gst_buffer_get_n_meta (out, GST_VIDEO_META_API_TYPE), 1);
    if (region != NULL)
      ck_assert_uint_eq (region->x, n);
    gst_buffer_unref (out);
  }
  cuda_pool_free (pool);
  rig_free (rig);
  gst_object_unref (context);
}

END_TEST

/* ---- which memory ---------------------------------------------------------------------------- */

static const struct
{
  gboolean in;
  const gchar *peer;            /* NULL: anything */
  gboolean out;
} choices[] = {
  {FALSE, CUDA_CAPS "; " SYSTEM_CAPS, TRUE},
  {FALSE, SYSTEM_CAPS "; " CUDA_CAPS, FALSE},
  {FALSE, NULL, FALSE},
  {FALSE, SYSTEM_CAPS, FALSE},
  {FALSE, CUDA_CAPS, TRUE},
  {TRUE, CUDA_CAPS "; " SYSTEM_CAPS, TRUE},
  {TRUE, SYSTEM_CAPS "; " CUDA_CAPS, TRUE},
  {TRUE, NULL, TRUE},
  {TRUE, SYSTEM_CAPS, FALSE},
  {TRUE, CUDA_CAPS, TRUE},
  {FALSE, "video/x-raw(ANY)", FALSE},
  {TRUE, "video/x-raw(ANY)", TRUE},
  {FALSE, CUDA_CAPS ",format=RGBA; " SYSTEM_CAPS, FALSE},
  {TRUE, CUDA_CAPS ",format=RGBA; " SYSTEM_CAPS, FALSE},
};

START_TEST (the_memory_is_what_the_neighbours_want)
{
  GstCudaContext *context = cuda_context_new (0);
  Rig *rig = cuda_rig_new (context, "num-streams=2", choices[_i].peer);
  GstBufferPool *pool;

  ck_assert (rig_take_caps (rig, cuda_caps_new (choices[_i].in, "NV12", 64, 48)));
  ck_assert_int_eq (rig_output_is_cuda (rig), choices[_i].out);
  pool = choices[_i].in ? cuda_pool_new (context, &rig->info, 0) : NULL;
  for (guint n = 0; n < 4; n++)
    cuda_check_frame (rig, pool, "copy");
  cuda_pool_free (pool);
  rig_free (rig);
  gst_object_unref (context);
}

END_TEST

/* Whether the pad says that it takes these caps, by both queries. */
static gboolean
pad_takes (GstElement * x, const gchar * pad_name, const gchar * text)
{
  GstPad *pad = gst_element_get_static_pad (x, pad_name);
  GstCaps *caps = gst_caps_from_string (text), *all = gst_pad_query_caps (pad, NULL);
  gboolean takes = gst_caps_can_intersect (all, caps);

  ck_assert_int_eq (gst_pad_query_accept_caps (pad, caps), takes);
  gst_caps_unref (all);
  gst_caps_unref (caps);
  gst_object_unref (pad);
  return takes;
}

START_TEST (pads_say_which_memory_they_take)
{
  static const gchar *const properties[] = { "", "backend=cpu", "backend=auto" };
  static const gchar *const pads[] = { "sink", "src" };
  Rig *rig = rig_new (properties[_i]);

  for (guint p = 0; p < 2; p++) {
    for (guint f = 0; cuda_formats[f] != NULL; f++) {
      gchar *text = g_strdup_printf (CUDA_CAPS ",format=%s,width=64,height=48,framerate=30/1",
          cuda_formats[f]);

      ck_assert_int_eq (pad_takes (rig->x, pads[p], text), _i != 1);
      g_free (text);
    }
    /* libgstcuda knows no grey. */
    ck_assert (!pad_takes (rig->x, pads[p],
            CUDA_CAPS ",format=GRAY8,width=64,height=48,framerate=30/1"));
    ck_assert (pad_takes (rig->x, pads[p],
            SYSTEM_CAPS ",format=GRAY8,width=64,height=48,framerate=30/1"));
    /* Jetson's other memory. */
    ck_assert (!pad_takes (rig->x, pads[p],
            "video/x-raw(memory:NVMM),format=NV12,width=64,height=48,framerate=30/1"));
  }
  rig_free (rig);
}

END_TEST

/* Without a GPU nothing of it is promised. */
START_TEST (no_device_no_cuda_memory)
{
  Rig *rig;

  fake_setting ("DEVICES", 0);
  rig = rig_new ("backend=auto");
  ck_assert (!pad_takes (rig->x, "sink",
          CUDA_CAPS ",format=NV12,width=64,height=48,framerate=30/1"));
  gst_harness_set_sink_caps_str (rig->h, CUDA_CAPS "; " SYSTEM_CAPS);
  rig_set_caps (rig, "NV12", 64, 48);
  ck_assert (!rig_output_is_cuda (rig));
  cuda_check_frame (rig, NULL, "copy");
  rig_free (rig);
}

END_TEST

static const gchar *const foreign_caps[] = {
  "video/x-raw(memory:NVMM),format=NV12,width=64,height=48,framerate=30/1",
  CUDA_CAPS ",format=GRAY8,width=64,height=48,framerate=30/1",
  "video/x-raw(memory:GLMemory),format=RGBA,width=64,height=48,framerate=30/1",
  CUDA_CAPS ",format=AYUV,width=64,height=48,framerate=30/1",
};

START_TEST (caps_of_foreign_memory_are_refused_and_others_taken_after)
{
  GstCudaContext *context = cuda_context_new (0);
  Rig *rig = cuda_rig_new (context, "num-streams=2", SYSTEM_CAPS);
  GstCaps *caps = gst_caps_from_string (foreign_caps[_i]);

  rig_set_caps (rig, "NV12", 64, 48);
  cuda_check_frame (rig, NULL, "copy");
  ck_assert (!gst_pad_peer_query_accept_caps (rig->h->srcpad, caps));
  rig_push_event (rig, gst_event_new_caps (caps));
  gst_caps_unref (caps);
  ck_assert_int_eq (rig_push (rig, rig_frame (rig, 0)), GST_FLOW_NOT_NEGOTIATED);
  rig_set_caps (rig, "NV12", 64, 48);
  cuda_check_frame (rig, NULL, "copy");
  expect_no_trouble (rig->bus);
  rig_free (rig);
  gst_object_unref (context);
}

END_TEST

/* Caps that move from one memory to the other at any frame. */
START_TEST (memory_may_change_at_any_frame)
{
  GstCudaContext *context = cuda_context_new (0);
  Rig *rig = cuda_rig_new (context, "num-streams=3 kernel=sobel", NULL);

  for (guint n = 0; n < 60; n++) {
    gboolean cuda = test_random (2) != 0;
    GstBufferPool *pool;

    gst_harness_set_sink_caps_str (rig->h, test_random (2) != 0 ? CUDA_CAPS : SYSTEM_CAPS);
    ck_assert (rig_take_caps (rig, cuda_caps_new (cuda, cuda_formats[test_random (11)],
                1 + (gint) test_random (70), 1 + (gint) test_random (50))));
    pool = cuda ? cuda_pool_new (context, &rig->info, 0) : NULL;
    for (guint i = test_random (4); i > 0; i--)
      cuda_check_frame (rig, pool, "sobel");
    cuda_pool_free (pool);
  }
  expect_no_trouble (rig->bus);
  rig_free (rig);
  gst_object_unref (context);
}

END_TEST

static Suite *
cudamemory_suite (void)
{
  Suite *suite = suite_create ("cudamemory");
  TCase *tests = cuda_test_case (suite, "cudamemory");

  tcase_add_loop_test (tests, every_format_and_size_in_every_memory, 0, 12);
  tcase_add_loop_test (tests, frames_in_flight_do_not_mix, 0, 3);
  tcase_add_loop_test (tests, cuda_memory_behind_system_caps_is_recognised, 0, 2);
  tcase_add_loop_test (tests, cuda_memory_of_a_stranger_is_right_as_well, 0, 2);
  tcase_add_test (tests, shared_device_input_is_never_written);
  tcase_add_loop_test (tests, timestamps_flags_and_metas_leave_with_their_frame, 0, 3);
  tcase_add_loop_test (tests, the_memory_is_what_the_neighbours_want, 0,
      G_N_ELEMENTS (choices));
  tcase_add_loop_test (tests, pads_say_which_memory_they_take, 0, 3);
  tcase_add_loop_test (tests, caps_of_foreign_memory_are_refused_and_others_taken_after, 0,
      G_N_ELEMENTS (foreign_caps));
  tcase_add_test (tests, memory_may_change_at_any_frame);
  if (fake != NULL)
    tcase_add_test (tests, no_device_no_cuda_memory);
  return suite;
}

int
main (int argc, char **argv)
{
  return test_main (argc, argv, cudamemory_suite);
}
