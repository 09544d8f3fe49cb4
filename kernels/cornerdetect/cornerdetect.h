/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What cornerdetect's host and device code share: the parameter structure, the argument and the launch
 * shapes.  Valid as C and as CUDA C++. */
#ifndef CSFK_CORNERDETECT_H
#define CSFK_CORNERDETECT_H

#include "../kernel.h"

/* Of the circle that is tested: pixels nearer to an edge of the picture are no corners. */
#define CSFK_CORNERDETECT_RADIUS 3

typedef struct csfk_cornerdetect_params
{
  int threshold;                /* steps of 8-bit luma */
  int suppress;
} csfk_cornerdetect_params;

typedef struct csfk_cornerdetect_args
{
  csfk_frame frame;
  csfk_cornerdetect_params params;
} csfk_cornerdetect_args;

enum
{
  /* The pass that copies: threads across and down, and rows of a thread. */
  CSFK_CORNERDETECT_COPY_X = 32,
  CSFK_CORNERDETECT_COPY_Y = 8,
  CSFK_CORNERDETECT_COPY_ROWS = 4,
  /* The pass that appends: threads of a block, and pixels of its tile.  With four columns more on either
   * side and one row more above and below, a warp's threads have four pixels each. */
  CSFK_CORNERDETECT_THREADS = 256,
  CSFK_CORNERDETECT_TILE_X = 120,
  CSFK_CORNERDETECT_TILE_Y = 30
};

#endif
