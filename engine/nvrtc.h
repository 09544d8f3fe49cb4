/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Compiles CUDA source at run time with NVRTC, which is opened when it is first needed and never linked.
 * Needs no GPU and no driver.  Knows nothing of kernels and frames.  Any thread. */
#ifndef CSF_NVRTC_H
#define CSF_NVRTC_H

#include "csf.h"

typedef struct csf_nvrtc_header
{
  const char *name;             /* as an #include says it */
  const char *text;
} csf_nvrtc_header;

typedef struct csf_nvrtc_source
{
  const char *name;             /* of the file, for messages */
  const char *text;
  const csf_nvrtc_header *headers;      /* found by name before any file */
  unsigned n_headers;
  const char *const *folders;   /* where other #includes are looked for */
  unsigned n_folders;
} csf_nvrtc_source;

#define CSF_NVRTC_TARGET_BYTES 48

/* What source is compiled to for devices of this capability (90 for 9.0), and by which NVRTC: "sm_90 nvrtc
 * 13.0" makes a cubin; "compute_90 ..." PTX, where this NVRTC does not know the device.  driver_version:
 * NVRTC of that CUDA major version is looked for first; 0: any.  The text is the same as long as the
 * result is.  CSF_ERROR_UNSUPPORTED: NVRTC is not installed. */
csf_status csf_nvrtc_get_target (int capability, int driver_version,
    char target[CSF_NVRTC_TARGET_BYTES], csf_error * error);

/* Compiles for a target that csf_nvrtc_get_target named.  *code: PTX (ended by 0) or a cubin, in memory
 * for free().  *log (may be NULL): the compiler's whole output, for free(), or NULL when it said nothing;
 * also on failure, where error has its first error.  May take seconds. */
csf_status csf_nvrtc_compile (const csf_nvrtc_source * source, const char *target,
    unsigned char **code, size_t *size, char **log, csf_error * error);

#endif
