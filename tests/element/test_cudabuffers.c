/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* CUDA buffers between the element and its neighbours: whose pool they are from, and when one may
 * be read, written and used again.  What is in them is test_cudamemory's subject. */
#include <string.h>

#include "cudarig.h"

/* ---- pools ----------------------------------------------------------------------------------- */

START_TEST (upstream_is_offered_a_pool_of_our_context)
{
  GstCudaContext *context = cuda_context_new (0);
  Rig *rig = cuda_rig_new (context, "num-streams=2", CUDA_CAPS);
  GstCaps *caps = cuda_caps_new (TRUE, "NV12", 64, 48);
  GstQuery *query = gst_query_new_allocation (caps, TRUE);
  GstBufferPool *pool = NULL;
  GstStructure *config;
  guint size = 0, min = 0, max = 1;

  rig_take_caps (rig, gst_caps_ref (caps));
  ck_assert (gst_pad_peer_query (rig->h->srcpad, query));
  ck_assert (gst_query_find_allocation_meta (query, GST_VIDEO_META_API_TYPE, NULL));
  ck_assert_uint_eq (gst_query_get_n_allocation_pools (query), 1);
  gst_query_parse_nth_allocation_pool (query, 0, &pool, &size, &min, &max);
  ck_assert (GST_IS_CUDA_BUFFER_POOL (pool));
  ck_assert (GST_CUDA_BUFFER_POOL (pool)->context == context);
  ck_assert_uint_eq (max, 0);
  config = gst_buffer_pool_get_config (pool);
  gst_buffer_pool_config_set_params (config, caps, size, min, 0);
  ck_assert (gst_buffer_pool_set_config (pool, config));
  ck_assert (gst_buffer_pool_set_active (pool, TRUE));
  for (guint n = 0; n < 20; n++)
    cuda_check_frame (rig, pool, "copy");
  ck_assert_uint_eq (stats_uint64 (rig->x, "host-copies"), 0);
  cuda_pool_free (pool);
  gst_query_unref (query);
  gst_caps_unref (caps);
  rig_free (rig);
  gst_object_unref (context);
}

END_TEST

typedef struct
{
  GstBufferPool *pool;
  guint max;
} Offer;

static GstPadProbeReturn
offer_pool (GstPad * pad, GstPadProbeInfo * info, gpointer user_data)
{
  GstQuery *query = GST_PAD_PROBE_INFO_QUERY (info);
  Offer *offer = user_data;

  if (GST_QUERY_TYPE (query) != GST_QUERY_ALLOCATION || !(info->type & GST_PAD_PROBE_TYPE_PUSH))
    return GST_PAD_PROBE_OK;
  gst_query_add_allocation_pool (query, offer->pool, 64 * 48 * 4, 2, offer->max);
  gst_query_add_allocation_meta (query, GST_VIDEO_META_API_TYPE, NULL);
  return GST_PAD_PROBE_HANDLED;
}

/* Downstream's pool serves when it has no limit and is of our context; else it is no reason to
 * wait: downstream keeps every frame here. */
START_TEST (downstream_may_offer_any_pool)
{
  GstCudaContext *context = cuda_context_new (0), *other = cuda_context_new (0);
  Offer offer = { gst_cuda_buffer_pool_new (_i == 2 ? other : context), _i == 1 ? 2 : 0 };
  Rig *rig = cuda_rig_new (context, "num-streams=2", CUDA_CAPS);
  GstBufferPool *pool;

  gst_pad_add_probe (rig->h->sinkpad, GST_PAD_PROBE_TYPE_QUERY_DOWNSTREAM, offer_pool, &offer,
      NULL);
  rig_take_caps (rig, cuda_caps_new (TRUE, "RGBA", 64, 48));
  pool = cuda_pool_new (context, &rig->info, 0);
  for (guint n = 0; n < 30; n++)
    ck_assert_int_eq (rig_push (rig, cuda_pool_take (pool)), GST_FLOW_OK);
  rig_wait_buffers (rig, 30);
  for (guint n = 0; n < 30; n++) {
    GstBuffer *out = rig_pull (rig);

    ck_assert (cuda_is_device (out));
    ck_assert (((GstCudaMemory *) gst_buffer_peek_memory (out, 0))->context == context);
    gst_buffer_unref (out);
  }
  cuda_pool_free (pool);
  expect_no_trouble (rig->bus);
  rig_free (rig);
  gst_object_unref (offer.pool);
  gst_object_unref (other);
  gst_object_unref (context);
}

END_TEST

/* A decoder's pool is of fixed size and some of it are reference pictures: it waits for buffers
 * that the element must give back without seeing another frame. */
START_TEST (a_decoder_with_a_fixed_pool_does_not_starve)
{
  enum
  { POOL = 4, REFERENCES = 3 };
  GstCudaContext *context = cuda_context_new (0);
  Rig *rig = cuda_rig_new (context, "num-streams=8 kernel=copy", _i == 0 ? CUDA_CAPS : SYSTEM_CAPS);
  GstBuffer *references[REFERENCES] = { NULL };
  GstBufferPool *pool;

  gst_harness_set_drop_buffers (rig->h, TRUE);
  rig_take_caps (rig, cuda_caps_new (TRUE, "NV12", 64, 48));
  pool = cuda_pool_new (context, &rig->info, POOL);
  for (guint n = 0; n < 60; n++) {
    GstBuffer *buffer = NULL, **oldest = &references[n % REFERENCES];

    ck_assert_int_eq (gst_buffer_pool_acquire_buffer (pool, &buffer, NULL), GST_FLOW_OK);
    ck_assert_int_eq (rig_push (rig, gst_buffer_ref (buffer)), GST_FLOW_OK);
    gst_clear_buffer (oldest);
    *oldest = buffer;
  }
  rig_wait_buffers (rig, 60);
  for (guint n = 0; n < REFERENCES; n++)
    gst_clear_buffer (&references[n]);
  cuda_pool_free (pool);
  rig_free (rig);
  gst_object_unref (context);
}

END_TEST

START_TEST (the_steady_state_allocates_nothing)
{
  const Sides *side = &cuda_sides[_i];
  GstCudaContext *context = cuda_context_new (0);
  Rig *rig = cuda_rig_new (context, "num-streams=3", side->out ? CUDA_CAPS : SYSTEM_CAPS);
  fake_cuda_counters before = { 0 };
  GstBufferPool *pool;

  rig_take_caps (rig, cuda_caps_new (side->in, "NV12", 64, 48));
  pool = cuda_pool_new (context, &rig->info, 2);
  for (guint n = 0; n < 200; n++) {
    GstBuffer *in = NULL;

    if (n == 40)
      before = fake_counters ();
    if (side->in)
      ck_assert_int_eq (gst_buffer_pool_acquire_buffer (pool, &in, NULL), GST_FLOW_OK);
    else
      in = rig_frame (rig, n);
    ck_assert_int_eq (rig_push (rig, in), GST_FLOW_OK);
    gst_buffer_unref (rig_pull (rig));
    if (n % 20 == 19)
      ck_assert (gst_harness_push_upstream_event (rig->h, gst_event_new_reconfigure ()));
    if (n % 20 == 9)
      ck_assert (rig_take_caps (rig, cuda_caps_new (side->in, "NV12", 64, 48)));
  }
  ck_assert_uint_eq (fake_counters ().allocations, before.allocations);
  ck_assert_uint_eq (fake_counters ().device_bytes, before.device_bytes);
  cuda_pool_free (pool);
  rig_free (rig);
  gst_object_unref (context);
}

END_TEST

/* ---- when a buffer is whose ------------------------------------------------------------------ */

/* The producer's only buffer comes back when the device has read it, not before. */
START_TEST (input_is_kept_until_the_device_has_read_it)
{
  GstCudaContext *context = cuda_context_new (0);
  Rig *rig = cuda_rig_new (context, "num-streams=2", _i == 0 ? CUDA_CAPS : SYSTEM_CAPS);
  GstBufferPool *pool;
  GstBuffer *in;

  rig_take_caps (rig, cuda_caps_new (TRUE, "NV12", 64, 48));
  pool = cuda_pool_new (context, &rig->info, 1);
  for (guint n = 0; n < 5; n++) {
    in = cuda_pool_take (pool);
    ck_assert (in != NULL);
    fake_setting ("HANG_AT", 1);
    ck_assert_int_eq (rig_push (rig, in), GST_FLOW_OK);
    g_usleep (5000);
    ck_assert (cuda_pool_take (pool) == NULL);
    fake->release_hang ();
    gst_buffer_unref (rig_pull (rig));
    /* It leaves the element's hands before the output does. */
    in = cuda_pool_take (pool);
    ck_assert (in != NULL);
    gst_buffer_unref (in);
  }
  cuda_pool_free (pool);
  rig_free (rig);
  gst_object_unref (context);
}

END_TEST

/* Overwrites a buffer as soon as it is free again: only what the device had read counts. */
START_TEST (a_producer_may_overwrite_what_came_back)
{
  GstCudaContext *context = cuda_context_new (0);
  Rig *rig = cuda_rig_new (context, "num-streams=4", _i == 0 ? CUDA_CAPS : SYSTEM_CAPS);
  GstBufferPool *pool;

  fake_setting ("DELAY_US", 3000);
  rig_take_caps (rig, cuda_caps_new (TRUE, "RGBx", 32, 24));
  pool = cuda_pool_new (context, &rig->info, 2);
  for (guint n = 0; n < 100; n++) {
    GstBuffer *in = NULL;

    ck_assert_int_eq (gst_buffer_pool_acquire_buffer (pool, &in, NULL), GST_FLOW_OK);
    gst_buffer_memset (in, 0, (guint8) n, gst_buffer_get_size (in));
    ck_assert_int_eq (rig_push (rig, in), GST_FLOW_OK);
  }
  for (guint n = 0; n < 100; n++) {
    GstBuffer *out = rig_pull (rig);
    GstVideoFrame frame;

    ck_assert (gst_video_frame_map (&frame, &rig->info, out, GST_MAP_READ));
    for (gint y = 0; y < 24; y++)
      for (gint x = 0; x < 32 * 4; x++)
        ck_assert_uint_eq (((guint8 *) GST_VIDEO_FRAME_PLANE_DATA (&frame, 0))
            [y * GST_VIDEO_FRAME_PLANE_STRIDE (&frame, 0) + x], (guint8) n);
    gst_video_frame_unmap (&frame);
    gst_buffer_unref (out);
  }
  cuda_pool_free (pool);
  rig_free (rig);
  gst_object_unref (context);
}

END_TEST

/* Writes `value` to all of the buffer by work on the stream, which the device has not begun. */
static void
write_later (GstCudaContext * context, GstBuffer * buffer, guint8 * host, CUstream stream)
{
  CUDA_MEMCPY2D copy = { 0 };
  GstMapInfo map;

  ck_assert (gst_buffer_map (buffer, &map, (GstMapFlags) (GST_MAP_WRITE | GST_MAP_CUDA)));
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = host;
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = (CUdeviceptr) (guintptr) map.data;
  copy.WidthInBytes = copy.srcPitch = copy.dstPitch = map.size;
  copy.Height = 1;
  ck_assert (gst_cuda_context_push (context));
  ck_assert_int_eq (CuMemcpy2DAsync (&copy, stream), CUDA_SUCCESS);
  ck_assert (gst_cuda_context_pop (NULL));
  gst_buffer_unmap (buffer, &map);
}

static void
check_all (Rig * rig, GstBuffer * out, guint8 value)
{
  GstVideoFrame frame;

  ck_assert (gst_video_frame_map (&frame, &rig->info, out, GST_MAP_READ));
  for (gint y = 0; y < 24; y++)
    for (gint x = 0; x < 32 * 4; x++)
      ck_assert_uint_eq (((guint8 *) GST_VIDEO_FRAME_PLANE_DATA (&frame, 0))
          [y * GST_VIDEO_FRAME_PLANE_STRIDE (&frame, 0) + x], value);
  gst_video_frame_unmap (&frame);
}

/* What a producer has still to do on the legacy default stream comes first, though the element's
 * own streams do not wait for that one by themselves. */
START_TEST (work_on_the_null_stream_comes_first)
{
  GstCudaContext *context = cuda_context_new (0);
  Rig *rig = cuda_rig_new (context, "num-streams=2", _i == 0 ? CUDA_CAPS : SYSTEM_CAPS);
  GstBufferPool *pool;
  void *host = NULL;
  gsize size;

  rig_take_caps (rig, cuda_caps_new (TRUE, "RGBx", 32, 24));
  pool = cuda_pool_new (context, &rig->info, 0);
  for (guint n = 0; n < 4; n++) {
    GstBuffer *in = cuda_pool_take (pool), *out;

    size = gst_buffer_get_size (in);
    ck_assert (gst_cuda_context_push (context));
    ck_assert_int_eq (CuMemAllocHost (&host, size), CUDA_SUCCESS);
    ck_assert (gst_cuda_context_pop (NULL));
    memset (host, 0x40 + (gint) n, size);
    fake_setting ("HANG_AT", 1);
    write_later (context, in, host, NULL);
    ck_assert_int_eq (rig_push (rig, in), GST_FLOW_OK);
    /* Time to go wrong; a device that is right still waits then. */
    g_usleep (20000);
    ck_assert_uint_eq (rig->buffers, n);
    fake->release_hang ();
    out = rig_pull (rig);
    check_all (rig, out, (guint8) (0x40 + n));
    gst_buffer_unref (out);
    ck_assert (gst_cuda_context_push (context));
    ck_assert_int_eq (CuMemFreeHost (host), CUDA_SUCCESS);
    ck_assert (gst_cuda_context_pop (NULL));
  }
  cuda_pool_free (pool);
  rig_free (rig);
  gst_object_unref (context);
}

END_TEST

#if GST_CHECK_VERSION (1, 24, 0)
/* From 1.24 on a memory may have a stream of its own. */
START_TEST (work_on_the_memory_s_own_stream_comes_first)
{
  GstCudaContext *context = cuda_context_new (0);
  Rig *rig = cuda_rig_new (context, "num-streams=2", CUDA_CAPS);
  GstCudaStream *stream = gst_cuda_stream_new (context);
  GstBufferPool *pool;
  GstStructure *config;
  GstCaps *caps = cuda_caps_new (TRUE, "RGBx", 32, 24);
  GstBuffer *in, *out;
  void *host = NULL;
  gsize size;

  rig_take_caps (rig, gst_caps_ref (caps));
  pool = gst_cuda_buffer_pool_new (context);
  config = gst_buffer_pool_get_config (pool);
  gst_buffer_pool_config_set_params (config, caps, (guint) GST_VIDEO_INFO_SIZE (&rig->info), 0, 0);
  gst_buffer_pool_config_set_cuda_stream (config, stream);
  ck_assert (gst_buffer_pool_set_config (pool, config));
  ck_assert (gst_buffer_pool_set_active (pool, TRUE));
  in = cuda_pool_take (pool);
  size = gst_buffer_get_size (in);
  ck_assert (gst_cuda_context_push (context));
  ck_assert_int_eq (CuMemAllocHost (&host, size), CUDA_SUCCESS);
  ck_assert (gst_cuda_context_pop (NULL));
  memset (host, 0x55, size);
  fake_setting ("HANG_AT", 1);
  write_later (context, in, host, gst_cuda_stream_get_handle (stream));
  ck_assert_int_eq (rig_push (rig, in), GST_FLOW_OK);
  g_usleep (20000);
  fake->release_hang ();
  out = rig_pull (rig);
  check_all (rig, out, 0x55);
  gst_buffer_unref (out);
  ck_assert (gst_cuda_context_push (context));
  ck_assert_int_eq (CuMemFreeHost (host), CUDA_SUCCESS);
  ck_assert (gst_cuda_context_pop (NULL));
  cuda_pool_free (pool);
  gst_caps_unref (caps);
  rig_free (rig);
  gst_cuda_stream_unref (stream);
  gst_object_unref (context);
}

END_TEST
#endif

/* On 1.22 nothing tells the consumer what is still to be done on an output, so nothing is. */
START_TEST (output_is_finished_when_it_leaves)
{
  GstCudaContext *context = cuda_context_new (0);
  Rig *rig = cuda_rig_new (context, "num-streams=1", CUDA_CAPS);
  GstBufferPool *pool;

  fake_setting ("DELAY_US", 5000);
  rig_take_caps (rig, cuda_caps_new (TRUE, "NV12", 64, 48));
  pool = cuda_pool_new (context, &rig->info, 0);
  for (guint n = 0; n < 20; n++) {
    ck_assert_int_eq (rig_push (rig, cuda_pool_take (pool)), GST_FLOW_OK);
    gst_buffer_unref (rig_pull (rig));
    ck_assert_uint_eq (fake_counters ().running, 0);
  }
  cuda_pool_free (pool);
  rig_free (rig);
  gst_object_unref (context);
}

END_TEST

START_TEST (buffers_outlive_the_element)
{
  GstCudaContext *context = cuda_context_new (0);
  Rig *rig = cuda_rig_new (context, "num-streams=3", CUDA_CAPS);
  GstVideoInfo info;
  GstBufferPool *pool;
  GstBuffer *in[8], *out[8];

  rig_take_caps (rig, cuda_caps_new (TRUE, "I420", 33, 21));
  info = rig->info;
  pool = cuda_pool_new (context, &info, 0);
  for (guint n = 0; n < 8; n++) {
    in[n] = cuda_pool_take (pool);
    ck_assert_int_eq (rig_push (rig, gst_buffer_ref (in[n])), GST_FLOW_OK);
  }
  for (guint n = 0; n < 8; n++)
    out[n] = rig_pull (rig);
  rig_free (rig);
  gst_object_unref (context);
  for (guint n = 0; n < 8; n++) {
    cuda_check (&info, "copy", in[n], out[n]);
    gst_buffer_unref (in[n]);
    gst_buffer_unref (out[n]);
  }
  cuda_pool_free (pool);
}

END_TEST

static void
add_fence_tests (Suite * suite)
{
  TCase *tests = cuda_test_case (suite, "fences");

  tcase_add_loop_test (tests, input_is_kept_until_the_device_has_read_it, 0, 2);
  tcase_add_loop_test (tests, a_producer_may_overwrite_what_came_back, 0, 2);
  tcase_add_loop_test (tests, work_on_the_null_stream_comes_first, 0, 2);
#if GST_CHECK_VERSION (1, 24, 0)
  tcase_add_test (tests, work_on_the_memory_s_own_stream_comes_first);
#endif
  tcase_add_test (tests, output_is_finished_when_it_leaves);
}

static Suite *
cudabuffers_suite (void)
{
  Suite *suite = suite_create ("cudabuffers");
  TCase *tests = cuda_test_case (suite, "cudabuffers");

  tcase_add_test (tests, upstream_is_offered_a_pool_of_our_context);
  tcase_add_loop_test (tests, downstream_may_offer_any_pool, 0, 3);
  tcase_add_loop_test (tests, a_decoder_with_a_fixed_pool_does_not_starve, 0, 2);
  tcase_add_loop_test (tests, the_steady_state_allocates_nothing, 0, 3);
  tcase_add_test (tests, buffers_outlive_the_element);
  if (fake != NULL)
    add_fence_tests (suite);
  return suite;
}

int
main (int argc, char **argv)
{
  return test_main (argc, argv, cudabuffers_suite);
}
