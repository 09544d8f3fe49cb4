/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What convertscale's host and device code share: the definition of what is computed, the parameter
 * structure, the plan that the host makes of a frame's two pictures, and the launch shape.  Valid as C
 * and as CUDA C++. */
#ifndef CSFK_CONVERTSCALE_H
#define CSFK_CONVERTSCALE_H

#include "../kernel.h"

/* The definition.  All arithmetic is on integers, so that every path gives the same bytes; >> rounds
 * towards minus infinity.
 *
 * Position.  Output sample o of a row or column takes its taps round the position p of the input, centres
 * aligned, p = (o + 0.5) * in_size / out_size - 0.5, which is kept in 1/2^32 of a sample as
 * start + o * step.  Rounded to 1/256 it is a sample i = p >> 8 and a fraction f = p & 255.  Taps beyond
 * the edges are the edge's sample.
 *
 * Bilinear.  Taps i and i + 1.  A row gives h = a * (256 - f) + b * f, exact in 16 bits; two rows
 * v = h0 * (256 - g) + h1 * g, exact, with 16 binary places.
 * Bicubic (Catmull-Rom: a = -0.5).  Taps i - 1 .. i + 2, weights in 1/1024 from a cubic of f.  A row gives
 * h = (sum of taps * weights + 16) >> 5, five binary places; four rows v = sum of h * weights, with 15.
 *
 * Same colours (R'G'B' to R'G'B'; Y'CbCr to Y'CbCr of one matrix, range and chroma site): each plane or
 * component for itself, v rounded half up and limited to 0..255.  Chroma planes are scaled as pictures of
 * their own size, whatever their site.
 *
 * Other colours.  The picture is scaled as it lies and converted then: a matrix and an interpolation may
 * change places, and so chroma is interpolated once, not first to luma's places and then to the output's.
 * At each output pixel there are three components with four binary places: v of luma or of
 * R'G'B', and v of chroma at the place where its plane has the pixel's centre (by the input's chroma site;
 * chroma is always bilinear), rounded half up and limited to 0 .. 255 * 16.  GRAY8 has neutral chroma.
 * A result is (m0 * c0 + m1 * c1 + m2 * c2 + m3) >> 14 with the weights in 1/1024, limited to 0..255.
 * Chroma that is written with half the samples comes from the components' means: of the two pixels of a
 * direction where chroma lies between them, and with weights 1, 2, 1 round the pixel on which it lies; so
 * (sum of the nine or fewer * weights of 16 + 8) >> 4.  Pixels beyond the edges are the edge's.
 *
 * Alpha is kept and scaled where both sides have it, 255 where the input has none; the byte x is 255.
 * Pictures of the same format, size and colours are copied as they are, x included. */

enum
{
  CSFK_CONVERTSCALE_BILINEAR = 0,
  CSFK_CONVERTSCALE_BICUBIC
};

enum
{
  CSFK_CONVERTSCALE_POSITION_BITS = 32, /* binary places of start and step */
  CSFK_CONVERTSCALE_FRACTION_BITS = 8,  /* of the rounded position; and of bilinear weights */
  CSFK_CONVERTSCALE_CUBIC_BITS = 10,    /* of bicubic weights */
  CSFK_CONVERTSCALE_ROW_BITS = 5,       /* of a bicubic row's result */
  CSFK_CONVERTSCALE_PLACES = 4, /* of a component that is to change its colour */
  CSFK_CONVERTSCALE_MATRIX_BITS = 10    /* of the colour matrix */
};

typedef struct csfk_convertscale_params
{
  int method;                   /* CSFK_CONVERTSCALE_BILINEAR or _BICUBIC */
} csfk_convertscale_params;

/* One direction.  start has half of 1/256 added, so that start + o * step only needs cutting off. */
typedef struct csfk_convertscale_axis
{
  long long start, step;
  int last;                     /* the input's last sample */
} csfk_convertscale_axis;

typedef enum csfk_convertscale_task
{
  CSFK_CONVERTSCALE_COPY = 0,
  CSFK_CONVERTSCALE_PLANES,     /* Y'CbCr or grey, each plane for itself; NV12 and I420 mix */
  CSFK_CONVERTSCALE_PACKED,     /* R'G'B' to R'G'B' */
  CSFK_CONVERTSCALE_COLOUR
} csfk_convertscale_task;

/* The matrix from Y'CbCr to R'G'B' in floats, a result of 256 being 1, for luma of 0..255 and chroma with four
 * places.  All that occurs below twice that is a multiple of 2^-23 and so exact: half of the integers'
 * last place is in the addends, with which no result is a whole number.  The first byte has no part of the
 * third byte's component, nor the other way round: of red Cr, of blue Cb. */
typedef struct csfk_convertscale_floats
{
  float luma, first, second_first, second_third, third;
  float addends[3];
} csfk_convertscale_floats;

/* What follows from the two pictures' formats, sizes and colours, and from the method. */
typedef struct csfk_convertscale_plan
{
  int task;                     /* csfk_convertscale_task */
  int method;
  int fast;                     /* a short cut on the GPU that gives the same: CSFK_CONVERTSCALE_... below */
  int in_bytes, out_bytes;      /* of an R'G'B' pixel, 3 or 4; 0: Y'CbCr or grey */
  /* Of luma, grey and R'G'B'; and of the input's chroma: PLANES, for each output chroma sample; COLOUR, for
   * each output pixel. */
  csfk_convertscale_axis x, y, chroma_x, chroma_y;
  /* PACKED: the byte of an input pixel that each byte of an output pixel is; 4: 255. */
  int order[4];
  /* COLOUR: rows are an output pixel's bytes in their order, or Y', Cb, Cr; columns an input pixel's bytes
   * or Y', Cb, Cr; [3] is an addend in 1/2^14 with the rounding. */
  int matrix[3][4];
  csfk_convertscale_floats floats;      /* the same, for SAME_SIZE to R'G'B' */
  int cosited_x, cosited_y;     /* COLOUR: the output's chroma lies on luma samples, in this direction */
} csfk_convertscale_plan;

typedef struct csfk_convertscale_args
{
  csfk_frame frame;
  csfk_convertscale_params params;
  csfk_convertscale_plan plan;
} csfk_convertscale_args;

enum
{
  CSFK_CONVERTSCALE_GENERAL = 0,
  CSFK_CONVERTSCALE_HALVING,    /* bilinear of exactly half the width and height, 16-byte aligned */
  CSFK_CONVERTSCALE_BY_TWO,     /* exactly twice them, or bicubic of half of them, aligned */
  CSFK_CONVERTSCALE_WIDENING,   /* bilinear of the same width or more, whole words */
  CSFK_CONVERTSCALE_SAME_SIZE   /* COLOUR or PACKED of the same size, four bytes a pixel, aligned */
};

/* Launch shape.  A thread makes CSFK_CONVERTSCALE_PIXELS samples of a row (of a chroma plane: pairs) in
 * CSFK_CONVERTSCALE_ROWS rows; HALVING: 8 bytes in as many rows; COPY: 16 bytes; WIDENING: 4; BY_TWO: 8,
 * bicubic of half the size in CSFK_CONVERTSCALE_ROWS rows, else in the two rows of each of so many gaps
 * between rows of the input, the first gap being the one above the picture; in smaller blocks, as a thread
 * has much to do. */
enum
{
  CSFK_CONVERTSCALE_BLOCK_X = 32,
  CSFK_CONVERTSCALE_BLOCK_Y = 8,
  CSFK_CONVERTSCALE_SMALL_BLOCK_Y = 4,
  CSFK_CONVERTSCALE_PIXELS = 4,
  CSFK_CONVERTSCALE_ROWS = 2,
  CSFK_CONVERTSCALE_FAST_ROWS = 4,      /* of SAME_SIZE, COPY and WIDENING */
  CSFK_CONVERTSCALE_LINEAR_GAPS = 4,    /* of BY_TWO */
  CSFK_CONVERTSCALE_CUBIC_GAPS = 4
};

#endif
