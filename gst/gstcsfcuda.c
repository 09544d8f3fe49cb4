/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The one file that knows libgstcuda, and what differs between its versions.  Makes no driver calls of
 * its own. */
#include "gstcsfcuda.h"

#define GST_USE_UNSTABLE_API
#include <gst/cuda/gstcudabufferpool.h>
#include <gst/cuda/gstcudacontext.h>
#include <gst/cuda/gstcudaloader.h>
#include <gst/cuda/gstcudamemory.h>
#include <gst/cuda/gstcudautils.h>

GST_DEBUG_CATEGORY_EXTERN (gst_cuda_stream_filter_debug);
#define GST_CAT_DEFAULT gst_cuda_stream_filter_debug

gboolean
gst_csf_cuda_is_built (void)
{
  return TRUE;
}

gboolean
gst_csf_cuda_is_available (void)
{
  static gsize state;

  if (g_once_init_enter (&state)) {
    gboolean loaded = gst_cuda_load_library ();

    if (loaded)
      gst_cuda_memory_init_once ();
    g_once_init_leave (&state, loaded ? 1 : 2);
  }
  return state == 1;
}

GstCsfCudaContext *
gst_csf_cuda_context_from (GstElement * element, GstContext * context, gint device_id)
{
  GstCudaContext *found = NULL;

  if (!gst_csf_cuda_is_available ()
      || !gst_cuda_handle_set_context (element, context, device_id, &found))
    return NULL;
  return found == NULL ? NULL : GST_OBJECT_CAST (found);
}

static void
unref_device (gpointer data)
{
  csf_device_unref (data);
}

GstCsfCudaContext *
gst_csf_cuda_context_wrap (csf_device * device)
{
  CUcontext handle = csf_device_get_context (device);
  GstCudaContext *context;
  CUdevice number;

  if (CuDeviceGet (&number, csf_device_get_info (device)->id) != CUDA_SUCCESS)
    return NULL;
  context = gst_cuda_context_new_wrapped (handle, number);
  if (context == NULL)
    return NULL;
  g_object_set_data_full (G_OBJECT (context), "csf-device", csf_device_ref (device), unref_device);
  return GST_OBJECT_CAST (context);
}

static gboolean
set_field (GQuark field, const GValue * value, gpointer structure)
{
  gst_structure_id_set_value (structure, field, value);
  return TRUE;
}

/* Not persistent, as libgstcuda makes it: after a device failure the context is broken, and must not
 * come back to us when the pipeline starts again. */
GstContext *
gst_csf_cuda_context_to (GstCsfCudaContext * context)
{
  GstContext *persistent = gst_context_new_cuda_context (GST_CUDA_CONTEXT (context));
  GstContext *result = gst_context_new (GST_CSF_CUDA_CONTEXT_TYPE, FALSE);

  gst_structure_foreach (gst_context_get_structure (persistent), set_field,
      gst_context_writable_structure (result));
  gst_context_unref (persistent);
  return result;
}

static void
release_context (void *owner)
{
  gst_object_unref (owner);
}

csf_status
gst_csf_cuda_open_device (GstCsfCudaContext * context, csf_device ** device, csf_error * error)
{
  return csf_device_open_context (gst_cuda_context_get_handle (GST_CUDA_CONTEXT (context)),
      release_context, gst_object_ref (context), device, error);
}

gboolean
gst_csf_cuda_answer_query (GstElement * element, GstQuery * query, GstCsfCudaContext * context)
{
  return context != NULL
      && gst_cuda_handle_context_query (element, query, GST_CUDA_CONTEXT (context));
}

GstBufferPool *
gst_csf_cuda_pool_new (GstCsfCudaContext * context)
{
  return gst_cuda_buffer_pool_new (GST_CUDA_CONTEXT (context));
}

GstBufferPool *
gst_csf_cuda_pool_configure (GstBufferPool * pool, GstCaps * caps, guint size, guint min_buffers)
{
  GstStructure *config = gst_buffer_pool_get_config (pool);

  gst_buffer_pool_config_set_params (config, caps, size, min_buffers, 0);
  gst_buffer_pool_config_add_option (config, GST_BUFFER_POOL_OPTION_VIDEO_META);
  if (!gst_buffer_pool_set_config (pool, config)) {
    GST_WARNING ("no pool of CUDA memory for %" GST_PTR_FORMAT, caps);
    gst_clear_object (&pool);
  }
  return pool;
}

static gboolean
same_context (GstCudaContext * a, GstCsfCudaContext * b)
{
  return a != NULL && b != NULL && gst_cuda_context_get_handle (a) ==
      gst_cuda_context_get_handle (GST_CUDA_CONTEXT (b));
}

gboolean
gst_csf_cuda_pool_fits (GstBufferPool * pool, GstCsfCudaContext * context)
{
  return GST_IS_CUDA_BUFFER_POOL (pool)
      && same_context (GST_CUDA_BUFFER_POOL (pool)->context, context);
}

gboolean
gst_csf_cuda_is_device_buffer (GstBuffer * buffer, GstCsfCudaContext * context, gpointer * stream)
{
  GstMemory *memory;

  if (context == NULL || gst_buffer_n_memory (buffer) != 1)
    return FALSE;
  memory = gst_buffer_peek_memory (buffer, 0);
  if (!gst_is_cuda_memory (memory) || !same_context (GST_CUDA_MEMORY_CAST (memory)->context, context))
    return FALSE;
#if GST_CHECK_VERSION (1, 24, 0)
  {
    GstCudaStream *own = gst_cuda_memory_get_stream (GST_CUDA_MEMORY_CAST (memory));

    *stream = own != NULL ? gst_cuda_stream_get_handle (own) : NULL;
  }
#else
  /* All work of 1.22 goes to the legacy default stream. */
  *stream = NULL;
#endif
  return TRUE;
}

GstMapFlags
gst_csf_cuda_map_flags (void)
{
  return GST_MAP_CUDA;
}
