/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Watches the files that a kernel was made of, and loads it anew in a thread of its own when they change.
 * Belongs to the sink thread; never blocks but in gst_csf_reload_free. */
#ifndef GST_CSF_RELOAD_H
#define GST_CSF_RELOAD_H

#include "gstcsfkernel.h"

G_BEGIN_DECLS

typedef struct _GstCsfReload GstCsfReload;

/* The settings are copied, the others referenced. */
GstCsfReload *gst_csf_reload_new (const GstCsfSettings * settings, GstCsfKernel * kernel,
    csf_device * device);

/* Waits for a compiler under way.  NULL is allowed. */
void gst_csf_reload_free (GstCsfReload * self);

/* TRUE, once for each change: *kernel is the new version (transfer full), or NULL with *error (transfer
 * full) when it cannot be used. */
gboolean gst_csf_reload_poll (GstCsfReload * self, GstCsfKernel ** kernel, GstCsfKernelError * error);

G_END_DECLS
#endif
