/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What tests with CUDA memory share: libgstcuda's contexts, pools and buffers, and rigs whose two
 * sides are of either memory.  Knows libgstcuda's versions, so that the tests need not. */
#ifndef CUDARIG_H
#define CUDARIG_H

#include "element.h"
#include "picture.h"

#define GST_USE_UNSTABLE_API
#include <gst/cuda/gstcudabufferpool.h>
#include <gst/cuda/gstcudacontext.h>
#include <gst/cuda/gstcudaloader.h>
#include <gst/cuda/gstcudamemory.h>
#include <gst/cuda/gstcudautils.h>

#define CUDA_CAPS "video/x-raw(memory:CUDAMemory)"
#define SYSTEM_CAPS "video/x-raw"

/* The formats that GstCudaMemory knows, ended by NULL. */
extern const gchar *const cuda_formats[];

/* As test_case (element.h), and no context is left either. */
TCase *cuda_test_case (Suite * suite, const gchar * name);

/* A context of its own on that device. */
GstCudaContext *cuda_context_new (guint device);
/* Makes it the element's, as an application does. */
void cuda_context_give (GstElement * x, GstCudaContext * context);

/* Caps of either memory, 30 frames a second. */
GstCaps *cuda_caps_new (gboolean cuda, const gchar * format, gint width, gint height);

/* An active pool of frames like `info`; max 0: no limit. */
GstBufferPool *cuda_pool_new (GstCudaContext * context, const GstVideoInfo * info, guint max);
void cuda_pool_free (GstBufferPool * pool);
/* Random content, on the device when this returns.  NULL: the pool has none left. */
GstBuffer *cuda_pool_take (GstBufferPool * pool);

gboolean cuda_is_device (GstBuffer * buffer);
/* The same picture in system memory, copied from the device by the driver alone: libgstcuda 1.22
 * leaves out the V plane of I420 of odd height when it maps for the host.  Transfer full; a buffer
 * of system memory is returned itself. */
GstBuffer *cuda_to_system (GstBuffer * buffer);
/* picture_check of buffers in either memory. */
void cuda_check (const GstVideoInfo * info, const gchar * kernel, GstBuffer * in, GstBuffer * out);
/* A rig that works in that context; peer: the caps that downstream takes, NULL anything. */
Rig *cuda_rig_new (GstCudaContext * context, const gchar * properties, const gchar * peer);

/* Which sides are of CUDA memory: the first three are all combinations that have one. */
typedef struct
{
  gboolean in, out;
} Sides;

extern const Sides cuda_sides[4];

/* Whether the caps that left the element are of CUDA memory. */
gboolean rig_output_is_cuda (Rig * rig);

/* The next frame of the rig's caps in either memory (pool NULL: system memory) goes in, and what
 * comes out is what `kernel` makes of it. */
void cuda_check_frame (Rig * rig, GstBufferPool * pool, const gchar * kernel);

/* Messages of this type from the element, taken from the bus. */
guint rig_count_messages (Rig * rig, GstMessageType type);

#endif
