/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Objects as GStreamer's analytics library has them, from 1.24 on; built without it, nothing. */
#ifndef GST_CSF_ANALYTICS_H
#define GST_CSF_ANALYTICS_H

#include <gst/gst.h>
#include <gst/video/video.h>

#include "config.h"
#include "kernels/kernel.h"

G_BEGIN_DECLS

#if CSF_ANALYTICS
/* Adds each object, with its track, to the buffer's GstAnalyticsRelationMeta.  info: of that buffer's picture. */
void gst_csf_analytics_attach (GstBuffer * buffer, const csfk_kernel * kernel, const GstVideoInfo * info,
    const csfk_object * objects, guint n);
#else
#define gst_csf_analytics_attach(buffer, kernel, info, objects, n) ((void) 0)
#endif

G_END_DECLS
#endif
