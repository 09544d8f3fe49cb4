/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What temporaldenoise's host and device code share: the parameter structure, the argument, the
 * layout of the state and the launch shape.  Valid as C and as CUDA C++. */
#ifndef CSFK_TEMPORALDENOISE_H
#define CSFK_TEMPORALDENOISE_H

#include "../kernel.h"

/* Shares of the new frame are counted in so many parts. */
#define CSFK_TEMPORALDENOISE_ONE 256

/* How motion becomes a share, see temporaldenoise.c. */
typedef struct csfk_temporaldenoise_ramp
{
  int most;                     /* motion from which on the new sample is taken as it is */
  int slope;                    /* share per motion, in 65536ths */
  int offset;                   /* share that is taken off */
} csfk_temporaldenoise_ramp;

typedef struct csfk_temporaldenoise_params
{
  float strength;
  int threshold;                /* steps of an 8-bit sample */
  /* Derived. */
  int lowest;                   /* share where nothing moves, but in the first frames */
  csfk_temporaldenoise_ramp ramp[2];    /* [0]: for one component; [1]: for three together */
} csfk_temporaldenoise_params;

/* A component's place in the state: what was made of the frame before, and of this one. */
typedef struct csfk_temporaldenoise_component
{
  const unsigned char *past;
  unsigned char *future;
  int stride;
  int columns;                  /* visible samples of a row */
} csfk_temporaldenoise_component;

typedef struct csfk_temporaldenoise_args
{
  csfk_frame frame;
  csfk_temporaldenoise_params params;
  /* Worked out for the device: the components in the order of the state. */
  csfk_temporaldenoise_component component[3];
  float slope;                  /* of the ramp, a 65536th of the parameters' */
  float start;                  /* 2^23 less its offset */
  float lowest;                 /* 2^23 more than the least share in this frame */
} csfk_temporaldenoise_args;

/* The state is two copies of the filtered picture; frame n reads copy (n + 1) & 1 and writes copy
 * n & 1.  In a copy the components lie one after another, without alpha: Y, U, V, or the bytes of
 * an R'G'B' pixel in their order.  Each is rows of unsigned 16-bit numbers, an 8-bit sample times
 * 256 or a 10-bit one times 64, rows this many bytes apart.  `columns` counts the padding of YUY2
 * and UYVY. */
#define CSFK_TEMPORALDENOISE_STATE_STRIDE(columns) (((columns) * 2 + 127) & ~127)

/* A warp's lanes work side by side; its first and last only look at what borders on the others'. */
enum
{
  CSFK_TEMPORALDENOISE_BLOCK_X = 32,
  CSFK_TEMPORALDENOISE_BLOCK_Y = 8,
  CSFK_TEMPORALDENOISE_LANES = CSFK_TEMPORALDENOISE_BLOCK_X - 2
};

/* Pixels across and rows down that a thread makes, by the bytes of a pixel in plane 0. */
#define CSFK_TEMPORALDENOISE_PIXELS(pixel_bytes) ((pixel_bytes) == 1 ? 8 : 4)
#define CSFK_TEMPORALDENOISE_ROWS(pixel_bytes) ((pixel_bytes) <= 2 ? 4 : 2)

#endif
