/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A video source that costs nearly nothing: it takes buffers of the pool that downstream proposes,
 * fills each memory with noise the first time it sees it, and pushes as fast as it is let. */
#ifndef GST_BENCH_SRC_H
#define GST_BENCH_SRC_H

#include <gst/base/gstpushsrc.h>

G_BEGIN_DECLS

#define GST_TYPE_BENCH_SRC (gst_bench_src_get_type ())
G_DECLARE_FINAL_TYPE (GstBenchSrc, gst_bench_src, GST, BENCH_SRC, GstPushSrc)

/* Frames of that format and size at a nominal 30 a second, without end, in at least so many
 * buffers taken in turn.  feature: "memory:CUDAMemory", of a pool that downstream must propose
 * then; NULL: system memory.  Returns a floating element. */
GstElement *gst_bench_src_new (const gchar * format, gint width, gint height,
    const gchar * feature, guint least_buffers);

G_END_DECLS
#endif
