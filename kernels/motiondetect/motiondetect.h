/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What motiondetect's host and device code share: the parameter structure, the argument, the
 * layout of the state and the launch shape.  Valid as C and as CUDA C++. */
#ifndef CSFK_MOTIONDETECT_H
#define CSFK_MOTIONDETECT_H

#include "../kernel.h"

typedef enum csfk_motiondetect_show
{
  CSFK_MOTIONDETECT_MASK = 0,
  CSFK_MOTIONDETECT_FRAME
} csfk_motiondetect_show;

/* A background that is taken for moving learns so many times more slowly. */
#define CSFK_MOTIONDETECT_SLOWER 32

/* Rows y with y / 4 % 8 == 0 are looked at for the light. */
#define CSFK_MOTIONDETECT_LIGHT_ROWS 4
#define CSFK_MOTIONDETECT_LIGHT_EVERY 8
/* The light is at most this much more or less than the background's, in 256ths of a step. */
#define CSFK_MOTIONDETECT_MOST_LIGHT 32768

typedef struct csfk_motiondetect_params
{
  float learning;
  int threshold;                /* steps of 8-bit luma */
  int show;                     /* csfk_motiondetect_show */
  /* Derived: the share of the new frame in the background is (2 * half_rate + 1) / 131072.
   * [0]: where nothing moves; [1]: where something does. */
  unsigned half_rate[2];
} csfk_motiondetect_params;

typedef struct csfk_motiondetect_args
{
  csfk_frame frame;
  csfk_motiondetect_params params;      /* half_rate is that of this frame */
  float light_share;            /* 1 / pixels that are looked at for the light */
} csfk_motiondetect_args;

/* What a frame leaves for the next about the light. */
typedef struct csfk_motiondetect_light
{
  long long sum;                /* of the limited differences */
  int light;                    /* that this frame went by */
} csfk_motiondetect_light;

/* The state begins with four of these: frame n writes number n & 3 and clears the sum after it. */
#define CSFK_MOTIONDETECT_LIGHT_BYTES 256

/* Then come two backgrounds; frame n reads number (n + 1) & 1 and writes number n & 1.  Each is
 * rows of unsigned 16-bit numbers, luma times 256 (10-bit luma times 64), this many bytes apart. */
#define CSFK_MOTIONDETECT_STATE_STRIDE(width) (((width) * 2 + 127) & ~127)

/* A warp's lanes work side by side; its first and last only look at what borders on the others'. */
enum
{
  CSFK_MOTIONDETECT_BLOCK_X = 32,
  CSFK_MOTIONDETECT_BLOCK_Y = CSFK_MOTIONDETECT_LIGHT_EVERY,
  CSFK_MOTIONDETECT_LANES = CSFK_MOTIONDETECT_BLOCK_X - 2,
  /* Rows a thread makes; with a block's rows, what LIGHT_ROWS and LIGHT_EVERY say. */
  CSFK_MOTIONDETECT_ROWS = CSFK_MOTIONDETECT_LIGHT_ROWS
};

/* Pixels across that a thread makes, by the bytes of a pixel in plane 0. */
#define CSFK_MOTIONDETECT_PIXELS(pixel_bytes) ((pixel_bytes) == 1 ? 8 : 4)

#endif
