/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Frames for checkcudamemory, see cudaframe.h.  Every copy is finished when its function
 * returns. */
#include "cudaframe.h"

#define GST_USE_UNSTABLE_API
#include <gst/cuda/gstcudabufferpool.h>
#include <gst/cuda/gstcudacontext.h>
#include <gst/cuda/gstcudaloader.h>
#include <gst/cuda/gstcudamemory.h>
#include <gst/cuda/gstcudautils.h>

#include "kernels/format.h"

#define READ_ON_DEVICE ((GstMapFlags) (GST_MAP_READ | GST_MAP_CUDA))
#define WRITE_ON_DEVICE ((GstMapFlags) (GST_MAP_WRITE | GST_MAP_CUDA))

gboolean
cuda_frame_init (void)
{
  if (!gst_cuda_load_library () || CuInit (0) != CUDA_SUCCESS)
    return FALSE;
  gst_cuda_memory_init_once ();
  return TRUE;
}

CudaContext *
cuda_context_new (void)
{
  GstCudaContext *context = gst_cuda_context_new (0);

  return context == NULL ? NULL : GST_OBJECT_CAST (context);
}

GstContext *
cuda_context_to (CudaContext * context)
{
  return gst_context_new_cuda_context (GST_CUDA_CONTEXT (context));
}

GstBuffer *
noise_frame_new (const GstVideoInfo * info, guint n)
{
  GstBuffer *buffer = gst_buffer_new_allocate (NULL, GST_VIDEO_INFO_SIZE (info), NULL);
  guint64 state = 0x9e3779b97f4a7c15u * (n + 1);
  GstMapInfo map;

  gst_buffer_map (buffer, &map, GST_MAP_WRITE);
  for (gsize i = 0; i < map.size; i++) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    map.data[i] = (guint8) (state >> 32);
  }
  gst_buffer_unmap (buffer, &map);
  GST_BUFFER_PTS (buffer) = gst_util_uint64_scale (n, GST_SECOND, 30);
  GST_BUFFER_DURATION (buffer) = GST_SECOND / 30;
  return buffer;
}

GstBufferPool *
cuda_pool_new (CudaContext * context, GstCaps * caps, const GstVideoInfo * info)
{
  GstBufferPool *pool = gst_cuda_buffer_pool_new (GST_CUDA_CONTEXT (context));
  GstStructure *config = gst_buffer_pool_get_config (pool);

  gst_buffer_pool_config_set_params (config, caps, GST_VIDEO_INFO_SIZE (info), 2, 0);
  gst_buffer_pool_config_add_option (config, GST_BUFFER_POOL_OPTION_VIDEO_META);
  if (!gst_buffer_pool_set_config (pool, config) || !gst_buffer_pool_set_active (pool, TRUE))
    gst_clear_object (&pool);
  return pool;
}

void
cuda_pool_free (GstBufferPool * pool)
{
  gst_buffer_pool_set_active (pool, FALSE);
  gst_object_unref (pool);
}

/* ---- copies -------------------------------------------------------------------------------- */

static csfk_image
image_of (const GstVideoInfo * info)
{
  csfk_image image;

  csfk_image_init (&image, csfk_format_from_name (GST_VIDEO_INFO_NAME (info)),
      GST_VIDEO_INFO_WIDTH (info), GST_VIDEO_INFO_HEIGHT (info));
  return image;
}

/* A copy from pageable memory may return before its end. */
static gboolean
copy_plane (const csfk_plane * plane, guint8 * host, gint host_stride, guint8 * device,
    gint device_stride, gboolean to_device)
{
  CUDA_MEMCPY2D copy = {
    .srcMemoryType = to_device ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE,
    .srcHost = host,
    .srcDevice = (CUdeviceptr) (guintptr) device,
    .srcPitch = to_device ? host_stride : device_stride,
    .dstMemoryType = to_device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST,
    .dstHost = host,
    .dstDevice = (CUdeviceptr) (guintptr) device,
    .dstPitch = to_device ? device_stride : host_stride,
    .WidthInBytes = plane->row_bytes,
    .Height = plane->rows,
  };

  return CuMemcpy2D (&copy) == CUDA_SUCCESS && CuStreamSynchronize (NULL) == CUDA_SUCCESS;
}

static gboolean
copy_to_device (const GstVideoInfo * info, GstBuffer * from, GstBuffer * to)
{
  csfk_image image = image_of (info);
  GstVideoFrame host, device;
  gboolean good = TRUE;

  if (!gst_video_frame_map (&host, info, from, GST_MAP_READ))
    return FALSE;
  if (!gst_video_frame_map (&device, info, to, WRITE_ON_DEVICE)) {
    gst_video_frame_unmap (&host);
    return FALSE;
  }
  for (gint p = 0; p < image.n_planes; p++)
    good &= copy_plane (&image.plane[p], GST_VIDEO_FRAME_PLANE_DATA (&host, p),
        GST_VIDEO_FRAME_PLANE_STRIDE (&host, p), GST_VIDEO_FRAME_PLANE_DATA (&device, p),
        GST_VIDEO_FRAME_PLANE_STRIDE (&device, p), TRUE);
  gst_video_frame_unmap (&device);
  gst_video_frame_unmap (&host);
  return good;
}

GstBuffer *
cuda_frame_new (GstBufferPool * pool, CudaContext * context, const GstVideoInfo * info,
    GstBuffer * frame)
{
  GstBuffer *buffer = NULL;

  if (gst_buffer_pool_acquire_buffer (pool, &buffer, NULL) != GST_FLOW_OK)
    return NULL;
  GST_BUFFER_PTS (buffer) = GST_BUFFER_PTS (frame);
  GST_BUFFER_DURATION (buffer) = GST_BUFFER_DURATION (frame);
  gst_cuda_context_push (GST_CUDA_CONTEXT (context));
  if (!copy_to_device (info, frame, buffer))
    gst_clear_buffer (&buffer);
  gst_cuda_context_pop (NULL);
  return buffer;
}

static gboolean
read_planes (csfk_image * image, GstVideoFrame * frame, gboolean on_device)
{
  gboolean good = TRUE;

  for (gint p = 0; p < image->n_planes; p++) {
    csfk_plane *plane = &image->plane[p];
    guint8 *from = GST_VIDEO_FRAME_PLANE_DATA (frame, p);
    gint stride = GST_VIDEO_FRAME_PLANE_STRIDE (frame, p);

    if (on_device)
      good &= copy_plane (plane, plane->data, plane->stride, from, stride, FALSE);
    else
      for (gint row = 0; row < plane->rows; row++)
        memcpy (plane->data + row * plane->stride, from + row * stride, plane->row_bytes);
  }
  return good;
}

guint8 *
frame_read (const GstVideoInfo * info, GstBuffer * buffer, gsize * size, gboolean * on_device)
{
  GstMemory *memory = gst_buffer_peek_memory (buffer, 0);
  GstCudaContext *context = NULL;
  csfk_image image = image_of (info);
  GstVideoFrame frame;
  guint8 *samples;

  *on_device = gst_is_cuda_memory (memory);
  if (*on_device) {
    context = GST_CUDA_MEMORY_CAST (memory)->context;
#if GST_CHECK_VERSION (1, 24, 0)
    gst_cuda_memory_sync (GST_CUDA_MEMORY_CAST (memory));
#endif
  }
  if (!gst_video_frame_map (&frame, info, buffer, *on_device ? READ_ON_DEVICE : GST_MAP_READ))
    return NULL;
  *size = csfk_image_place (&image, NULL, 1);
  samples = g_malloc (*size);
  csfk_image_place (&image, samples, 1);
  if (*on_device)
    gst_cuda_context_push (context);
  if (!read_planes (&image, &frame, *on_device))
    g_clear_pointer (&samples, g_free);
  if (*on_device)
    gst_cuda_context_pop (NULL);
  gst_video_frame_unmap (&frame);
  return samples;
}

gchar *
frame_describe_place (const GstVideoInfo * info, gsize at)
{
  csfk_image image = image_of (info);

  csfk_image_place (&image, NULL, 1);
  for (gint p = 0; p < image.n_planes; p++) {
    const csfk_plane *plane = &image.plane[p];
    gsize bytes = (gsize) plane->row_bytes * plane->rows;

    if (at < bytes)
      return g_strdup_printf ("plane %d, row %" G_GSIZE_FORMAT " of %d, byte %" G_GSIZE_FORMAT
          " of %d", p, at / plane->row_bytes, plane->rows, at % plane->row_bytes,
          plane->row_bytes);
    at -= bytes;
  }
  return g_strdup ("nowhere");
}
