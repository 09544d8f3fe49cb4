/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* CUDA memory of GStreamer's libgstcuda on our pads: contexts, pools and mapping.  Without that library
 * the same functions say that there is none, so the rest of the element asks and does not care. */
#ifndef GST_CSF_CUDA_H
#define GST_CSF_CUDA_H

#include <gst/gst.h>
#include <gst/video/video.h>

#include "engine/csf.h"

G_BEGIN_DECLS

#define GST_CSF_CUDA_FEATURE "memory:CUDAMemory"
#define GST_CSF_CUDA_CONTEXT_TYPE "gst.cuda.context"

/* A GstCudaContext; the type's own header needs the toolkit's. */
typedef GstObject GstCsfCudaContext;

/* Whether this build knows libgstcuda. */
gboolean gst_csf_cuda_is_built (void);

/* Whether CUDA memory can be on a pad at all: built in, and the library finds the driver. */
gboolean gst_csf_cuda_is_available (void);

/* The context that a GstContext carries, if it fits the device (-1: any); transfer full, or NULL. */
GstCsfCudaContext *gst_csf_cuda_context_from (GstElement * element, GstContext * context,
    gint device_id);

/* A wrapper round the context that the device works in, which keeps the device as long as it lives.
 * Transfer full. */
GstCsfCudaContext *gst_csf_cuda_context_wrap (csf_device * device);

/* Carries the context to others.  Transfer full. */
GstContext *gst_csf_cuda_context_to (GstCsfCudaContext * context);

/* Opens the device that the context is on, to work in that very context. */
csf_status gst_csf_cuda_open_device (GstCsfCudaContext * context, csf_device ** device,
    csf_error * error);

/* Answers a CONTEXT query if it asks for ours. */
gboolean gst_csf_cuda_answer_query (GstElement * element, GstQuery * query,
    GstCsfCudaContext * context);

/* An inactive pool of CUDA memory. */
GstBufferPool *gst_csf_cuda_pool_new (GstCsfCudaContext * context);

/* Configures it, without an upper limit.  Takes the reference and returns it, or NULL with a
 * GST_WARNING when the pool refuses. */
GstBufferPool *gst_csf_cuda_pool_configure (GstBufferPool * pool, GstCaps * caps, guint size,
    guint min_buffers);

/* Whether it is such a pool, and in that context. */
gboolean gst_csf_cuda_pool_fits (GstBufferPool * pool, GstCsfCudaContext * context);

/* Whether the buffer is CUDA memory of that context, so that a map with gst_csf_cuda_map_flags() gives
 * device addresses.  *stream: the CUDA stream (CUstream) with its pending work. */
gboolean gst_csf_cuda_is_device_buffer (GstBuffer * buffer, GstCsfCudaContext * context,
    gpointer * stream);

/* To be added to GST_MAP_READ or GST_MAP_WRITE. */
GstMapFlags gst_csf_cuda_map_flags (void);

G_END_DECLS
#endif
