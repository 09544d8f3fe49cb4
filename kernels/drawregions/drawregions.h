/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What drawregions' host and device code share: the parameter structure, the argument, what was
 * worked out for a picture, and the launch shape.  Valid as C and as CUDA C++.  drawregions.c
 * says what is drawn. */
#ifndef CSFK_DRAWREGIONS_H
#define CSFK_DRAWREGIONS_H

#include "../kernel.h"

enum
{
  CSFK_DRAWREGIONS_COLOURS = 12,        /* that labels are given by themselves */
  CSFK_DRAWREGIONS_COMPONENTS = 4,
  /* Characters of a text: a label, and the longest " 100%" and " #2147483647". */
  CSFK_DRAWREGIONS_MAX_TEXT = CSFK_LABEL_BYTES - 1 + 5 + 12,
  /* A label's shape in columns and rows of its font, which are `scale` pixels each: a character
   * with the gap after it, the background before and after all of them, above and below. */
  CSFK_DRAWREGIONS_ADVANCE = 6,
  CSFK_DRAWREGIONS_MARGIN = 2,
  CSFK_DRAWREGIONS_ENDS = 3,            /* both margins, less the last character's gap */
  CSFK_DRAWREGIONS_LABEL_ROWS = 11,
  /* A region's sides are first moved to within so many pixels of the origin, beyond any picture. */
  CSFK_DRAWREGIONS_LIMIT = 1 << 21
};

typedef struct csfk_drawregions_params
{
  unsigned color;               /* 0xAARRGGBB; 0: one of the label's own */
  int thickness;                /* pixels; 0: by the picture's height */
  int labels;                   /* 1: draw them */
  int font_size;                /* pixels; 0: by the picture's height */
} csfk_drawregions_params;

/* Samples of a colour: Y Cb Cr, or the bytes of a pixel in their order in memory. */
typedef struct csfk_drawregions_colour
{
  unsigned short component[CSFK_DRAWREGIONS_COMPONENTS];
  unsigned short ink[CSFK_DRAWREGIONS_COMPONENTS];      /* of text on it: black or white */
} csfk_drawregions_colour;

/* What the parameters mean for pictures of one format, size and colorimetry. */
typedef struct csfk_drawregions_style
{
  int alpha;                    /* of lines and backgrounds, 0 to 255 */
  int thickness;
  int scale;                    /* pixels of a column or a row of the font; 0: no labels */
  int even;                     /* 1: boxes and labels begin and end at even places */
  int n_colours;
  csfk_drawregions_colour colour[CSFK_DRAWREGIONS_COLOURS];
} csfk_drawregions_style;

typedef struct csfk_drawregions_args
{
  csfk_frame frame;
  csfk_drawregions_params params;       /* what style was made of */
  csfk_drawregions_style style;
} csfk_drawregions_args;

/* A block makes a tile of one plane. */
enum
{
  CSFK_DRAWREGIONS_BLOCK_X = 32,
  CSFK_DRAWREGIONS_BLOCK_Y = 4,
  /* Rows a thread copies, CSFK_DRAWREGIONS_BLOCK_Y apart. */
  CSFK_DRAWREGIONS_ROWS = 2,
  CSFK_DRAWREGIONS_TILE_BYTES = CSFK_DRAWREGIONS_BLOCK_X * 16,
  CSFK_DRAWREGIONS_TILE_ROWS = CSFK_DRAWREGIONS_BLOCK_Y * CSFK_DRAWREGIONS_ROWS,
  /* Regions that a block looks at together. */
  CSFK_DRAWREGIONS_CHUNK = 64
};

#endif
