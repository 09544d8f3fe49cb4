/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What sobel's host and device code share: the launch shape.  It has no parameters, so its device
 * function takes the csfk_frame alone. */
#ifndef CSFK_SOBEL_H
#define CSFK_SOBEL_H

enum
{
  CSFK_SOBEL_BLOCK_X = 32,
  CSFK_SOBEL_BLOCK_Y = 4
};

/* A thread makes a patch of pixels by rows, an even number of each: it sets the chroma of the patch
 * too.  More rows read fewer rows twice and need more registers. */
#define CSFK_SOBEL_PIXELS(pixel_bytes) ((pixel_bytes) == 4 ? 4 : 8)
#define CSFK_SOBEL_ROWS(pixel_bytes) ((pixel_bytes) == 1 ? 6 : 4)

#endif
