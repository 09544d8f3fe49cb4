/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Metadata of frames: what travels from input to output, and the regions of interest that kernels read.
 * Knows GstMeta and the kernel contract's regions, nothing of devices. */
#ifndef GST_CSF_META_H
#define GST_CSF_META_H

#include <gst/gst.h>
#include <gst/video/video.h>

#include "gstcsftrack.h"
#include "kernels/kernel.h"

G_BEGIN_DECLS

/* Flags, timestamps and metas of input go to output: all but what describes the input's own memory.
 * Where the pictures differ, what has places in it is scaled, and what is of the old colours is left
 * out. */
void gst_csf_meta_copy (GstBuffer * output, GstBuffer * input, const GstVideoInfo * output_info,
    const GstVideoInfo * input_info);

/* Appends a csfk_region for every GstVideoRegionOfInterestMeta of the buffer, in their order. */
void gst_csf_meta_get_regions (GstBuffer * buffer, GArray * regions);

/* A kernel's records on their way to a buffer. */
typedef struct
{
  const csfk_kernel *kernel;
  gpointer records;             /* n of kernel->record_size bytes, for free(); NULL for none */
  guint n, wanted;              /* wanted: more than n where max-records was hit */
  const GstVideoInfo *input_info, *output_info;
  GstCsfTracker *tracker;
} GstCsfRecords;

/* Registers what gst_csf_meta_attach_records attaches.  Once a process, before the first buffer. */
void gst_csf_meta_register (void);

/* Attaches the records, and takes their memory over: all of them as one GstCustomMeta "cudastreamfilter-records" (fields name, kind,
 * record-size, count, wanted, data: GBytes, and labels where the kernel has any), and the first 256 objects as GstVideoRegionOfInterestMeta and,
 * with GStreamer 1.24, in the GstAnalyticsRelationMeta.  Objects are put in order (top to bottom, left to
 * right), clipped to the picture, numbered by the tracker, and scaled as the picture was.  Returns how many
 * had to be clipped or, outside the picture or no numbers at all, left out. */
guint gst_csf_meta_attach_records (GstBuffer * output, const GstCsfRecords * records);

/* The box of an object that touches the picture, in whole pixels of it, rounded outwards, within it. */
void gst_csf_meta_round_box (const csfk_object * object, const GstVideoInfo * info, GstVideoRectangle * box);

#define GST_CSF_RECORDS_META "cudastreamfilter-records"

G_END_DECLS
#endif
