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
#define CSFK_MOTIONDETECT_SLOWER 128

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
  int min_area;                 /* moving pixels that a region has; 0: a share of the picture's */
  /* Derived: the share of the new frame in the background is (2 * half_rate + 1) / 131072.
   * [0]: where nothing moves; [1]: where something does. */
  unsigned half_rate[2];
} csfk_motiondetect_params;

typedef struct csfk_motiondetect_args
{
  csfk_frame frame;
  csfk_motiondetect_params params;      /* half_rate is that of this frame */
  float light_share;            /* 1 / pixels that are looked at for the light */
  /* For the moving regions: the grid of cells, 1 << cell_shift pixels a side, and the moving pixels
   * that a region has at least. */
  unsigned cell_shift, columns, rows, least_area;
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

/* Moving regions are found on a grid of cells, squares of 8, 16, 32 and so on pixels a side, the
 * smallest with which there are no more of them than this: a label each fits into a block's shared
 * memory.  Cells at the right and at the bottom may reach beyond the picture. */
#define CSFK_MOTIONDETECT_SMALLEST_SHIFT 3
#define CSFK_MOTIONDETECT_MOST_CELLS 12288
/* A cell of side 1 << shift moves when so many of its pixels do: a 16th. */
#define CSFK_MOTIONDETECT_CELL_LEAST(shift) (1u << (2 * (shift) - 4))
/* Without min_area a region has at least this share of the picture's pixels: a 400th. */
#define CSFK_MOTIONDETECT_AREA_SHARE 400

/* The workspace begins with one bit a pixel, 1 where it moves, in words of 8 x 4 pixels on the
 * device and of 8 x 8 on the host: this many bytes. */
#define CSFK_MOTIONDETECT_BITS_BYTES(width, height) \
  ((unsigned long) (((width) + 7) / 8) * (unsigned long) (((height) + 7) / 8) * 8)
/* On the device five arrays follow with an unsigned for each cell: the number of its moving pixels,
 * 0 for a cell that does not move, and left, top, right and bottom of the box round them, right and
 * bottom not in it.  On the host, the same as structures and then a list of cells. */
#define CSFK_MOTIONDETECT_CELL_BYTES 24

/* A warp's lanes work side by side; its first and last only look at what borders on the others'. */
enum
{
  CSFK_MOTIONDETECT_BLOCK_X = 32,
  CSFK_MOTIONDETECT_BLOCK_Y = CSFK_MOTIONDETECT_LIGHT_EVERY,
  CSFK_MOTIONDETECT_LANES = CSFK_MOTIONDETECT_BLOCK_X - 2,
  /* Rows a thread makes; with a block's rows, what LIGHT_ROWS and LIGHT_EVERY say. */
  CSFK_MOTIONDETECT_ROWS = CSFK_MOTIONDETECT_LIGHT_ROWS,
  /* Cells: a warp makes a row of them, each with as many lanes as it is words wide, at most 32. */
  CSFK_MOTIONDETECT_CELLS_Y = 4,
  /* Regions: one block. */
  CSFK_MOTIONDETECT_REGION_THREADS = 1024
};

/* Pixels across that a thread makes, by the bytes of a pixel in plane 0. */
#define CSFK_MOTIONDETECT_PIXELS(pixel_bytes) ((pixel_bytes) == 1 ? 8 : 4)

#endif
