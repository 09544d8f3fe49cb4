/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Gives objects of consecutive frames that are the same thing the same number, by how much their boxes
 * overlap.  Knows no buffers.  One thread. */
#ifndef GST_CSF_TRACK_H
#define GST_CSF_TRACK_H

#include <gst/gst.h>

#include "kernels/kernel.h"

G_BEGIN_DECLS

typedef struct _GstCsfTracker GstCsfTracker;

GstCsfTracker *gst_csf_tracker_new (void);
void gst_csf_tracker_free (GstCsfTracker * tracker);    /* NULL is allowed */

/* Forgets everything: the frames that follow are of something else.  Numbers go on counting. */
void gst_csf_tracker_reset (GstCsfTracker * tracker);

/* Sets track_id of each object that has none: that of the object it overlaps most in one of the last frames
 * (intersection over union of 0.3 at least), or the next number. */
void gst_csf_tracker_update (GstCsfTracker * tracker, csfk_object * objects, guint n);

G_END_DECLS
#endif
