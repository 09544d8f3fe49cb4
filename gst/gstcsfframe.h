/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One video frame on its way through the engine: the mapped input and output buffers behind a job. */
#ifndef GST_CSF_FRAME_H
#define GST_CSF_FRAME_H

#include <gst/gst.h>
#include <gst/video/video.h>

#include "engine/csf.h"
#include "engine/hostpool.h"
#include "gstcsfcuda.h"

G_BEGIN_DECLS

typedef struct
{
  GstBuffer *input;             /* NULL once the device no longer needs it */
  GstBuffer *output;
  GstVideoFrame input_frame, output_frame;
  gboolean begins_anew;         /* it does not follow the frame before */
  guint64 submit_time;          /* monotonic, ns */
  csf_span waited;              /* a stream waited for it */
  guint64 push_time_before;     /* the element's total time in pushing when it was submitted, ns */
} GstCsfFrame;

/* The facts of a caps' pictures that the kernels know.  FALSE: not a format of ours. */
gboolean gst_csf_layout_from_info (csf_layout * layout, const GstVideoInfo * info);

/* gst_video_info_from_caps, which where colorimetry is not given forgets a chroma-site that is. */
gboolean gst_csf_info_from_caps (GstVideoInfo * info, GstCaps * caps);

/* Whether these samples mean something that csfk_image cannot say, so that they can only be passed on. */
gboolean gst_csf_colour_is_strange (const GstVideoInfo * info);

/* What frames look like between two CAPS events. */
typedef struct
{
  GstVideoInfo input_info, output_info;
  csf_layout input_layout, output_layout;
  csf_hostpool *hostpool;       /* not owned */
  gboolean pins;                /* the device cares whether host memory is pinned */
  GstCsfCudaContext *context;   /* owned; whose CUDA memory is used where it is, or NULL */
} GstCsfFormat;

/* Maps both buffers, takes both references, copies timestamps, flags and metas from input to output and
 * fills in the job all but its number and parameters.  NULL with *reason when a buffer cannot be mapped
 * as the caps say: both references are dropped then. */
GstCsfFrame *gst_csf_frame_new (const GstCsfFormat * format, GstBuffer * input, GstBuffer * output,
    csf_job * job, gchar ** reason);

/* The device has what it needs of the input. */
void gst_csf_frame_release_input (GstCsfFrame * frame);

/* Unmaps everything, frees the frame and returns the output. */
GstBuffer *gst_csf_frame_finish (GstCsfFrame * frame);

void gst_csf_frame_free (GstCsfFrame * frame);

G_END_DECLS
#endif
