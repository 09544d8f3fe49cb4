/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Where a kernel comes from: the table of built-in ones, a file of device code, or a shared library.
 * Knows files and the cache of compiled code; makes no driver calls. */
#ifndef GST_CSF_KERNEL_H
#define GST_CSF_KERNEL_H

#include <gst/gst.h>

#include "engine/csf.h"
#include "gstcsfproperties.h"

G_BEGIN_DECLS

/* A kernel that can be run, counted by references.  Never changes; any thread. */
typedef struct _GstCsfKernel GstCsfKernel;

/* The files that a kernel was made of. */
typedef struct _GstCsfSources GstCsfSources;
void gst_csf_sources_free (GstCsfSources * sources);

/* A text that tells the versions of these files apart, as they are now; NULL while the kernel-file is not
 * there. */
gchar *gst_csf_sources_look (const GstCsfSources * sources);

/* The same text from before they were read. */
const gchar *gst_csf_sources_get_stamp (const GstCsfSources * sources);

typedef struct
{
  gchar *text;                  /* what was expected, what came, what to do */
  gchar *log;                   /* a compiler's output, or NULL */
  GstCsfSources *sources;       /* what could not be used; NULL unless from a file */
} GstCsfKernelError;

void gst_csf_kernel_error_clear (GstCsfKernelError * error);

/* Whether these settings name device code, which needs a CUDA device to be looked into. */
gboolean gst_csf_kernel_is_file (const GstCsfSettings * settings);

/* The kernel that the settings name; NULL with *error.  device: a CUDA device, for a kernel-file.
 * Without one, CUDA source is compiled all the same, to say what is wrong with it, and NULL is
 * returned with no text when nothing is.  May take seconds. */
GstCsfKernel *gst_csf_kernel_load (const GstCsfSettings * settings, csf_device * device,
    GstCsfKernelError * error);

GstCsfKernel *gst_csf_kernel_ref (GstCsfKernel * self);
void gst_csf_kernel_unref (GstCsfKernel * self);        /* NULL is allowed */

const csfk_kernel *gst_csf_kernel_get (const GstCsfKernel * self);

/* Compute capability that a kernel-file was loaded for; 0 for other kernels. */
gint gst_csf_kernel_get_capability (const GstCsfKernel * self);

/* What a kernel-file was made of; NULL for other kernels. */
const GstCsfSources *gst_csf_kernel_get_sources (const GstCsfKernel * self);

G_END_DECLS
#endif
