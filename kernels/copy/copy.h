/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What copy's host and device code share: the launch shape.  It has no parameters, so its device
 * function takes the csfk_frame alone. */
#ifndef CSFK_COPY_H
#define CSFK_COPY_H

#include "../kernel.h"

enum
{
  CSFK_COPY_BLOCK_X = 32,
  CSFK_COPY_BLOCK_Y = 8,
  /* Rows a thread copies, CSFK_COPY_BLOCK_Y apart: that many loads are in flight at once. */
  CSFK_COPY_ROWS = 4
};

#endif
