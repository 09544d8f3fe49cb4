/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* gstcsfcuda.h for a build without libgstcuda: there is no CUDA memory. */
#include "gstcsfcuda.h"

gboolean
gst_csf_cuda_is_built (void)
{
  return FALSE;
}

gboolean
gst_csf_cuda_is_available (void)
{
  return FALSE;
}

GstCsfCudaContext *
gst_csf_cuda_context_from (GstElement * element, GstContext * context, gint device_id)
{
  return NULL;
}

GstCsfCudaContext *
gst_csf_cuda_context_wrap (csf_device * device)
{
  return NULL;
}

GstContext *
gst_csf_cuda_context_to (GstCsfCudaContext * context)
{
  return NULL;
}

csf_status
gst_csf_cuda_open_device (GstCsfCudaContext * context, csf_device ** device, csf_error * error)
{
  return CSF_ERROR_UNSUPPORTED;
}

gboolean
gst_csf_cuda_answer_query (GstElement * element, GstQuery * query, GstCsfCudaContext * context)
{
  return FALSE;
}

GstBufferPool *
gst_csf_cuda_pool_new (GstCsfCudaContext * context)
{
  return NULL;
}

GstBufferPool *
gst_csf_cuda_pool_configure (GstBufferPool * pool, GstCaps * caps, guint size, guint min_buffers)
{
  return NULL;
}

gboolean
gst_csf_cuda_pool_fits (GstBufferPool * pool, GstCsfCudaContext * context)
{
  return FALSE;
}

gboolean
gst_csf_cuda_is_device_buffer (GstBuffer * buffer, GstCsfCudaContext * context, gpointer * stream)
{
  return FALSE;
}

GstMapFlags
gst_csf_cuda_map_flags (void)
{
  return 0;
}
