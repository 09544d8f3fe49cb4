/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What convertscale's C files share: the CPU path as a whole, and the loops over a row that it is made of.
 * Nothing of it is known outside this folder. */
#ifndef CSFK_CONVERTSCALE_CPU_H
#define CSFK_CONVERTSCALE_CPU_H

#include <stdint.h>

#include "convertscale.h"

/* Makes the whole output, as the plan of these two pictures says.  Needs no memory but its stack, about
 * 100 KiB. */
void csfk_convertscale_run (const csfk_frame * frame, const csfk_convertscale_plan * plan);

enum
{
  /* Output pixels across a strip, an even number: what is kept of its rows stays in the nearest caches. */
  CSFK_CONVERTSCALE_STRIP = 256,
  /* A strip with a pixel more on each side, in whole vectors. */
  CSFK_CONVERTSCALE_UNITS = CSFK_CONVERTSCALE_STRIP + 32,
  CSFK_CONVERTSCALE_VALUES = 4 * CSFK_CONVERTSCALE_UNITS
};

/* Where the taps of a strip's columns lie, and their weights.  A unit is `channels` values side by side. */
typedef struct csfk_convertscale_columns
{
  int n;                        /* units */
  int channels;                 /* 1 to 4, in the input as in the result */
  int taps;                     /* 2 or 4 */
  int offset[4][CSFK_CONVERTSCALE_UNITS];       /* bytes from the row's first to a tap's first value */
  /* Bicubic: of each tap; bilinear: [1] alone, the fraction. */
  int16_t weight[4][CSFK_CONVERTSCALE_UNITS];

  /* For vectors, where the taps of neighbouring values lie within 16 bytes. */
  int n_eights, n_quads;        /* 0: they do not; one of them at most is not 0 */
  union
  {
    /* Bilinear, 16 values: where the bytes of either eight begin, which of them are taps, in pairs, and
     * the fractions. */
    struct
    {
      int base[2];
      uint8_t pairs[32];
      uint16_t fractions[16];
    } eights[CSFK_CONVERTSCALE_VALUES / 16];
    /* 4 values: the first two taps of each in pairs, then the others; and their weights. */
    struct
    {
      int base;
      uint8_t pairs[16];
      int16_t weights[16];
    } quads[CSFK_CONVERTSCALE_VALUES / 4];
  } vectors;
} csfk_convertscale_columns;

/* Bilinear or bicubic weights of a fraction, 0..255.  weights: 2 or 4. */
void csfk_convertscale_weigh (int taps, int fraction, int *weights);

/* Of the output's units first .. first + n - 1, those outside 0 .. out_size - 1 as the nearest inside. */
void csfk_convertscale_set_columns (csfk_convertscale_columns * columns,
    const csfk_convertscale_axis * axis, int taps, int channels, int first, int n, int out_size);

/* Filters a row: 8 binary places without a sign, or bicubic, 5 with one.  Writes up to 16
 * values more. */
void csfk_convertscale_across (const unsigned char *row, const csfk_convertscale_columns * columns,
    int16_t * sums);

/* Filters 2 or 4 such rows; n values. */
void csfk_convertscale_down (const int16_t * const *rows, const int *weights, int taps, int n,
    unsigned char *results);
/* The same, with CSFK_CONVERTSCALE_PLACES binary places. */
void csfk_convertscale_down_places (const int16_t * const *rows, const int *weights, int taps,
    int n, int16_t * results);

/* One row of the matrix on n places of three components. */
void csfk_convertscale_apply (const int16_t * const *components, const int *matrix, int n,
    unsigned char *results);

#endif
