/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How a kernel-params string becomes a kernel's parameter structure.  Knows GstStructure and the kernels'
 * parameter tables. */
#ifndef GST_CSF_PARAMS_H
#define GST_CSF_PARAMS_H

#include <gst/gst.h>

#include "kernels/kernel.h"

G_BEGIN_DECLS

/* "sigma=0.1..10 pixel, default 2; ..." or "no parameters". */
gchar *gst_csf_describe_params (const csfk_kernel * kernel);

/* Fills params (kernel->params_size bytes) from a structure string such as "sigma=2.0,mode=blur", with
 * or without a structure's name before it; NULL or "" gives the defaults.  FALSE with *reason saying
 * what was expected and what came; params is then untouched. */
gboolean gst_csf_parse_params (const csfk_kernel * kernel, const gchar * text, void *params,
    gchar ** reason);

G_END_DECLS
#endif
