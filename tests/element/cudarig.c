/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* CUDA memory in tests: made, filled and looked at by libgstcuda, as any neighbour of the element
 * would. */
#include "cudarig.h"

const gchar *const cuda_formats[] = {
  "NV12", "I420", "YUY2", "UYVY", "P010_10LE", "RGB", "BGR", "RGBx", "BGRx", "RGBA", "BGRA", NULL
};

const Sides cuda_sides[4] = { {FALSE, TRUE}, {TRUE, TRUE}, {TRUE, FALSE}, {FALSE, FALSE} };

static void
check_contexts (void)
{
  if (fake != NULL)
    ck_assert_uint_eq (fake_counters ().contexts, 0);
}

TCase *
cuda_test_case (Suite * suite, const gchar * name)
{
  TCase *tests = test_case (suite, name);

  tcase_add_checked_fixture (tests, NULL, check_contexts);
  return tests;
}

GstCudaContext *
cuda_context_new (guint device)
{
  GstCudaContext *context;

  ck_assert (gst_cuda_load_library ());
  gst_cuda_memory_init_once ();
  context = gst_cuda_context_new (device);
  ck_assert (context != NULL);
  return context;
}

void
cuda_context_give (GstElement * x, GstCudaContext * context)
{
  GstContext *carrier = gst_context_new_cuda_context (context);

  gst_element_set_context (x, carrier);
  gst_context_unref (carrier);
}

GstCaps *
cuda_caps_new (gboolean cuda, const gchar * format, gint width, gint height)
{
  GstCaps *caps = gst_caps_new_simple ("video/x-raw", "format", G_TYPE_STRING, format,
      "width", G_TYPE_INT, width, "height", G_TYPE_INT, height, "framerate",
      GST_TYPE_FRACTION, 30, 1, NULL);

  if (cuda)
    gst_caps_set_features_simple (caps,
        gst_caps_features_new (GST_CAPS_FEATURE_MEMORY_CUDA_MEMORY, NULL));
  return caps;
}

GstBufferPool *
cuda_pool_new (GstCudaContext * context, const GstVideoInfo * info, guint max)
{
  GstBufferPool *pool = gst_cuda_buffer_pool_new (context);
  GstStructure *config = gst_buffer_pool_get_config (pool);
  GstCaps *caps = gst_video_info_to_caps ((GstVideoInfo *) info);

  gst_caps_set_features_simple (caps,
      gst_caps_features_new (GST_CAPS_FEATURE_MEMORY_CUDA_MEMORY, NULL));
  gst_buffer_pool_config_set_params (config, caps, (guint) GST_VIDEO_INFO_SIZE (info), 0, max);
  gst_buffer_pool_config_add_option (config, GST_BUFFER_POOL_OPTION_VIDEO_META);
  ck_assert (gst_buffer_pool_set_config (pool, config));
  ck_assert (gst_buffer_pool_set_active (pool, TRUE));
  gst_caps_unref (caps);
  return pool;
}

void
cuda_pool_free (GstBufferPool * pool)
{
  if (pool == NULL)
    return;
  ck_assert (gst_buffer_pool_set_active (pool, FALSE));
  gst_object_unref (pool);
}

/* All of the memory between the device and a block of the host's, before this returns. */
static void
transfer (GstBuffer * buffer, guint8 * host, gboolean upload)
{
  GstCudaContext *context = ((GstCudaMemory *) gst_buffer_peek_memory (buffer, 0))->context;
  CUDA_MEMCPY2D copy = {.Height = 1 };
  GstMapInfo map;

  ck_assert (gst_buffer_map (buffer, &map,
          (GstMapFlags) (GST_MAP_CUDA | (upload ? GST_MAP_WRITE : GST_MAP_READ))));
  copy.WidthInBytes = copy.srcPitch = copy.dstPitch = map.size;
  copy.srcMemoryType = upload ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
  copy.dstMemoryType = upload ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
  if (upload) {
    copy.srcHost = host;
    copy.dstDevice = (CUdeviceptr) (guintptr) map.data;
  } else {
    copy.srcDevice = (CUdeviceptr) (guintptr) map.data;
    copy.dstHost = host;
  }
  ck_assert (gst_cuda_context_push (context));
  ck_assert_int_eq (CuMemcpy2D (&copy), CUDA_SUCCESS);
  ck_assert (gst_cuda_context_pop (NULL));
  gst_buffer_unmap (buffer, &map);
}

GstBuffer *
cuda_pool_take (GstBufferPool * pool)
{
  GstBufferPoolAcquireParams params = {.flags = GST_BUFFER_POOL_ACQUIRE_FLAG_DONTWAIT };
  GstBuffer *buffer = NULL, *host;
  GstMapInfo map;

  if (gst_buffer_pool_acquire_buffer (pool, &buffer, &params) != GST_FLOW_OK)
    return NULL;
  host = gst_buffer_new_allocate (NULL, gst_buffer_get_size (buffer), NULL);
  picture_fill (host);
  ck_assert (gst_buffer_map (host, &map, GST_MAP_READ));
  transfer (buffer, map.data, TRUE);
  gst_buffer_unmap (host, &map);
  gst_buffer_unref (host);
  return buffer;
}

GstBuffer *
cuda_to_system (GstBuffer * buffer)
{
  const GstVideoMeta *meta = gst_buffer_get_video_meta (buffer);
  GstBuffer *host;
  GstMapInfo map;

  if (!cuda_is_device (buffer))
    return gst_buffer_ref (buffer);
  host = gst_buffer_new_allocate (NULL, gst_buffer_get_size (buffer), NULL);
  ck_assert (gst_buffer_map (host, &map, GST_MAP_WRITE));
  transfer (buffer, map.data, FALSE);
  gst_buffer_unmap (host, &map);
  ck_assert (meta != NULL);
  gst_buffer_add_video_meta_full (host, GST_VIDEO_FRAME_FLAG_NONE, meta->format, meta->width,
      meta->height, meta->n_planes, (gsize *) meta->offset, (gint *) meta->stride);
  return host;
}

void
cuda_check (const GstVideoInfo * info, const gchar * kernel, GstBuffer * in, GstBuffer * out)
{
  GstBuffer *system_in = cuda_to_system (in), *system_out = cuda_to_system (out);

  picture_check (info, kernel, NULL, system_in, system_out);
  gst_buffer_unref (system_out);
  gst_buffer_unref (system_in);
}

gboolean
cuda_is_device (GstBuffer * buffer)
{
  return gst_buffer_n_memory (buffer) == 1
      && gst_is_cuda_memory (gst_buffer_peek_memory (buffer, 0));
}

Rig *
cuda_rig_new (GstCudaContext * context, const gchar * properties, const gchar * peer)
{
  Rig *rig = rig_new (properties);

  if (peer != NULL)
    gst_harness_set_sink_caps_str (rig->h, peer);
  gst_harness_add_propose_allocation_meta (rig->h, GST_VIDEO_META_API_TYPE, NULL);
  cuda_context_give (rig->x, context);
  return rig;
}

gboolean
rig_output_is_cuda (Rig * rig)
{
  GstCaps *caps = gst_pad_get_current_caps (rig->h->sinkpad);
  gboolean cuda;

  ck_assert (caps != NULL);
  cuda = gst_caps_features_contains (gst_caps_get_features (caps, 0),
      GST_CAPS_FEATURE_MEMORY_CUDA_MEMORY);
  gst_caps_unref (caps);
  return cuda;
}

void
cuda_check_frame (Rig * rig, GstBufferPool * pool, const gchar * kernel)
{
  GstBuffer *in = pool != NULL ? cuda_pool_take (pool) : rig_frame (rig, 0), *out;

  ck_assert (in != NULL);
  ck_assert_int_eq (rig_push (rig, gst_buffer_ref (in)), GST_FLOW_OK);
  out = rig_pull (rig);
  ck_assert_int_eq (cuda_is_device (out), rig_output_is_cuda (rig));
  cuda_check (&rig->info, kernel, in, out);
  gst_buffer_unref (out);
  gst_buffer_unref (in);
}

guint
rig_count_messages (Rig * rig, GstMessageType type)
{
  GstMessage *message;
  guint count = 0;

  while ((message = gst_bus_pop_filtered (rig->bus, type)) != NULL) {
    count += GST_MESSAGE_SRC (message) == GST_OBJECT (rig->x);
    gst_message_unref (message);
  }
  return count;
}
