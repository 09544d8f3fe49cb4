/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Pinned memory as GStreamer memory: an allocator over the engine's host pool, for ordinary video
 * buffer pools, and the registration of other people's memory that keeps coming back. */
#ifndef GST_CSF_POOL_H
#define GST_CSF_POOL_H

#include <gst/gst.h>
#include <gst/video/video.h>

#include "engine/hostpool.h"

G_BEGIN_DECLS

/* An allocator whose memory is system memory, pinned as far as the pool's limit allows.  Takes its own
 * reference to the pool; each memory holds it too. */
GstAllocator *gst_csf_allocator_new (csf_hostpool * hostpool);

/* A configured, inactive video buffer pool without an upper limit, or NULL with a GST_WARNING when the
 * caps and size do not go together.  allocator: none taken.  video_meta: add GstVideoMeta. */
GstBufferPool *gst_csf_pool_new (GstAllocator * allocator, GstCaps * caps, guint size, guint min_buffers,
    gboolean video_meta);

/* Whether the device reads and writes every memory that the frame has mapped directly: those of the
 * buffer, or what GStreamer merged them into.  Memory of plain system allocators that one element
 * sees for the fourth time is registered with the driver here (1 to 2 ms, once) and unregistered when it
 * dies; a refusal is remembered.  Any thread. */
gboolean gst_csf_video_frame_is_pinned (const GstVideoFrame * frame, csf_hostpool * hostpool);

G_END_DECLS
#endif
