/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Metadata of frames: what travels from input to output, and the regions of interest that kernels read.
 * Knows GstMeta and the kernel contract's regions, nothing of devices. */
#ifndef GST_CSF_META_H
#define GST_CSF_META_H

#include <gst/gst.h>
#include <gst/video/video.h>

#include "kernels/kernel.h"

G_BEGIN_DECLS

/* Flags, timestamps and metas of input go to output: all but what describes the input's own memory.
 * Where the pictures differ, what has places in it is scaled, and what is of the old colours is left
 * out. */
void gst_csf_meta_copy (GstBuffer * output, GstBuffer * input, const GstVideoInfo * output_info,
    const GstVideoInfo * input_info);

/* Appends a csfk_region for every GstVideoRegionOfInterestMeta of the buffer, in their order. */
void gst_csf_meta_get_regions (GstBuffer * buffer, GArray * regions);

G_END_DECLS
#endif
