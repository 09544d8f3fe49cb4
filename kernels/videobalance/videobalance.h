/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* videobalance: brightness, contrast, saturation, hue and gamma.  What it computes, and what its
 * host and device code share: the parameter structure, the argument and the launch shape.  Valid
 * as C and as CUDA C++.
 *
 * The parameters mean what those of GStreamer's elements videobalance and gamma mean.  With the
 * depth d in bits (10 for P010, else 8), k = 2^(d-8), m = 2^d - 1, black = 16 k in a picture of
 * limited range and 0 in one of full range (GStreamer's videobalance takes 16 for black in both):
 *
 *   y' = R ((y - black) * contrast + black + 255 k * brightness)
 *   u' = R (128 k + (u - 128 k) * c + (v - 128 k) * s)       c = saturation * cos (pi * hue)
 *   v' = R (128 k + (v - 128 k) * c - (u - 128 k) * s)       s = saturation * sin (pi * hue)
 *   y" = floor (m * (y' / m) ^ (1 / gamma) + 1/2)
 *
 * R limits to 0 .. m and rounds to the nearest whole number, halves to the even one.  contrast, c,
 * s and the sum of the terms without a sample are first rounded so themselves, to the binary
 * places below, so that every product and sum is exact in a float of 24 bits in whatever order it
 * is made.
 *
 * R'G'B' goes through 8-bit Y'CbCr of ITU-R BT.601, limited range, in 256ths as in those elements,
 * each line rounded down:
 *
 *   y = (66 r + 129 g + 25 b + 4096) / 256           r' = (298 y" + 409 v' - 57068) / 256
 *   u = (-38 r - 74 g + 112 b + 32768) / 256         g' = (298 y" - 100 u' - 208 v' + 34707) / 256
 *   v = (112 r - 94 g - 18 b + 32768) / 256          b' = (298 y" + 516 u' - 70870) / 256
 *
 * with the result limited to 0 .. 255.  The fourth byte is carried over.  With every parameter
 * at its default a picture of any format passes unchanged. */
#ifndef CSFK_VIDEOBALANCE_H
#define CSFK_VIDEOBALANCE_H

#include "../kernel.h"

enum
{
  /* Binary places of the rounded factors and sums, for 8 bits; of 10 bits two fewer. */
  CSFK_VIDEOBALANCE_LUMA_PLACES = 14,
  CSFK_VIDEOBALANCE_CHROMA_PLACES = 15
};

/* The factors for samples of one depth, rounded as above. */
typedef struct csfk_videobalance_factors
{
  float contrast;
  float offset[2];              /* y' is y * contrast + this; by csfk_range */
  float cosine, sine;           /* c and s above */
} csfk_videobalance_factors;

typedef struct csfk_videobalance_params
{
  float brightness, contrast, saturation, hue, gamma;
  /* Derived. */
  int is_neutral;               /* all of them have their defaults */
  int has_gamma;                /* gamma is not 1; without, the tables are not filled */
  csfk_videobalance_factors factors[2]; /* [0]: 8 bits, [1]: 10 bits */
  unsigned char gamma8[256];    /* y" of y' */
  unsigned short gamma10[1024];
} csfk_videobalance_params;

typedef struct csfk_videobalance_args
{
  csfk_frame frame;
  csfk_videobalance_params params;
} csfk_videobalance_args;

/* A thread works on CSFK_VIDEOBALANCE_WORDS words of 4 bytes (packed R'G'B' of 3 bytes: three
 * times as many) in each of CSFK_VIDEOBALANCE_ROWS rows, CSFK_VIDEOBALANCE_BLOCK_Y apart. */
enum
{
  CSFK_VIDEOBALANCE_BLOCK_X = 32,
  CSFK_VIDEOBALANCE_BLOCK_Y = 8,
  CSFK_VIDEOBALANCE_WORDS = 4,
  CSFK_VIDEOBALANCE_ROWS = 4,
  /* Dynamic shared memory for packed R'G'B': a row's bytes of a warp, for each warp. */
  CSFK_VIDEOBALANCE_STAGE_BYTES = CSFK_VIDEOBALANCE_BLOCK_Y * CSFK_VIDEOBALANCE_BLOCK_X *
      CSFK_VIDEOBALANCE_WORDS * 3 * 4
};

#endif
