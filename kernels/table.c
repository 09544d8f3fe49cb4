/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The table of built-in kernels: one line each.  Knows that they exist, not what they do. */
#include <string.h>

#include "format.h"

#define KERNELS(X) \
  X (csfk_copy) \
  X (csfk_sobel) \
  X (csfk_gaussianblur) \
  X (csfk_videobalance) \
  X (csfk_convertscale) \
  X (csfk_temporaldenoise) \
  X (csfk_motiondetect) \
  X (csfk_anonymize) \
  X (csfk_drawregions) \
  X (csfk_histogram) \
  X (csfk_cornerdetect)

#define DECLARE(kernel) extern const csfk_kernel kernel;
#define ENTRY(kernel) &kernel,

KERNELS (DECLARE)

const csfk_kernel *const csfk_kernels[] = { KERNELS (ENTRY) NULL };

const csfk_kernel *
csfk_kernel_find (const char *name)
{
  for (unsigned i = 0; csfk_kernels[i]; i++)
    if (strcmp (csfk_kernels[i]->name, name) == 0)
      return csfk_kernels[i];
  return NULL;
}
