/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What gaussianblur's host and device code share: the parameter structure, the argument and the
 * launch shape.  Valid as C and as CUDA C++. */
#ifndef CSFK_GAUSSIANBLUR_H
#define CSFK_GAUSSIANBLUR_H

#include "../kernel.h"

/* ceil (3 * sigma) of the largest sigma, 10. */
#define CSFK_GAUSSIANBLUR_MAX_RADIUS 30
/* The weights of one filter add up to 1 << CSFK_GAUSSIANBLUR_WEIGHT_BITS. */
#define CSFK_GAUSSIANBLUR_WEIGHT_BITS 14

/* weight[0] is the centre's, weight[k] that of both samples at distance k; zero beyond radius. */
typedef struct csfk_gaussianblur_filter
{
  int radius;
  unsigned short weight[CSFK_GAUSSIANBLUR_MAX_RADIUS + 2];
} csfk_gaussianblur_filter;

typedef struct csfk_gaussianblur_params
{
  float sigma;                  /* standard deviation, in pixels */
  /* Derived.  [0]: at full resolution; [1]: where samples lie two pixels apart. */
  csfk_gaussianblur_filter filter[2];
} csfk_gaussianblur_params;

typedef struct csfk_gaussianblur_args
{
  csfk_frame frame;
  csfk_gaussianblur_params params;
} csfk_gaussianblur_args;

/* A block makes a tile of so many samples of each channel, one sample in eight a thread. */
enum
{
  CSFK_GAUSSIANBLUR_TILE_X = 64,
  CSFK_GAUSSIANBLUR_TILE_Y = 32,
  CSFK_GAUSSIANBLUR_THREADS = CSFK_GAUSSIANBLUR_TILE_X * CSFK_GAUSSIANBLUR_TILE_Y / 8
};

/* Samples round a tile that are loaded as well: the radius rounded up to whole steps of eight. */
#define CSFK_GAUSSIANBLUR_HALO(radius) (((radius) + 7) & ~7)

#endif
