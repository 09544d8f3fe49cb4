/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Frames in system and in CUDA memory for checkcudamemory: made of noise, copied from one to the
 * other, and read back sample by sample.  The copies are plain driver calls, since libgstcuda's
 * own leave out samples of some odd sizes.  Knows libgstcuda, no element. */
#ifndef CUDAFRAME_H
#define CUDAFRAME_H

#include <gst/gst.h>
#include <gst/video/video.h>

/* A GstCudaContext; the type's own header does not go together with engine/cuda_dl.h. */
typedef GstObject CudaContext;

/* FALSE: libgstcuda does not find the driver. */
gboolean cuda_frame_init (void);

/* A context of its own on the first device, as an application may make it, or NULL; and how
 * pipelines are told of it. */
CudaContext *cuda_context_new (void);
GstContext *cuda_context_to (CudaContext * context);

/* Frame n in system memory with timestamp and noise that depends on n alone, padding included. */
GstBuffer *noise_frame_new (const GstVideoInfo * info, guint n);

/* A pool of CUDA memory, active; NULL when libgstcuda refuses the format. */
GstBufferPool *cuda_pool_new (CudaContext * context, GstCaps * caps, const GstVideoInfo * info);
void cuda_pool_free (GstBufferPool * pool);

/* The same frame in a buffer of the pool; its timestamp as well.  NULL: no memory or a failed
 * copy. */
GstBuffer *cuda_frame_new (GstBufferPool * pool, CudaContext * context, const GstVideoInfo * info,
    GstBuffer * frame);

/* The samples of a frame in any memory, plane after plane without gaps; g_free() them.  *on_device:
 * whether it was CUDA memory.  NULL: it cannot be read. */
guint8 *frame_read (const GstVideoInfo * info, GstBuffer * buffer, gsize * size,
    gboolean * on_device);

/* Where in the picture byte `at` of what frame_read() gave lies; g_free() it. */
gchar *frame_describe_place (const GstVideoInfo * info, gsize at);

#endif
