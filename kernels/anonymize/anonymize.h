/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What anonymize's host and device code share: the parameter structure, the arguments, the
 * bounds and the launch shapes.  Valid as C and as CUDA C++.  anonymize.c says what is computed. */
#ifndef CSFK_ANONYMIZE_H
#define CSFK_ANONYMIZE_H

#include "../kernel.h"

typedef enum csfk_anonymize_mode
{
  CSFK_ANONYMIZE_PIXELATE = 0,
  CSFK_ANONYMIZE_BLUR,
  CSFK_ANONYMIZE_FILL
} csfk_anonymize_mode;

enum
{
  /* Cells of one side of a region, at most. */
  CSFK_ANONYMIZE_MAX_BLOCKS = 32,
  /* Pixels of a cell's side, at least: no sample of the input may stand alone. */
  CSFK_ANONYMIZE_MIN_CELL = 4,
  /* Cells that a frame has room for: 1024 regions of the default 8 x 8. */
  CSFK_ANONYMIZE_MAX_CELLS = 65536,
  /* Parts that the sums are made in, each by one block; of all cells together. */
  CSFK_ANONYMIZE_MAX_PARTS = 16384,
  /* A region's sides are first moved to within so many pixels of the origin, beyond any picture,
   * so that 32 bits hold all that follows. */
  CSFK_ANONYMIZE_LIMIT = 1 << 21,
  CSFK_ANONYMIZE_COMPONENTS = 4
};

typedef struct csfk_anonymize_params
{
  int mode;                     /* csfk_anonymize_mode */
  int blocks;                   /* cells along the longer side of a region */
  float padding;                /* share of its size that a region grows by on every side */
  char label[CSFK_LABEL_BYTES]; /* only regions with this label; "": all */
  int padding_65536;            /* derived: padding in 65536ths, rounded up */
} csfk_anonymize_params;

/* The means of one cell: Y Cb Cr, or the bytes of an R'G'B' pixel in their order in memory. */
typedef struct csfk_anonymize_cell
{
  unsigned short component[CSFK_ANONYMIZE_COMPONENTS];
} csfk_anonymize_cell;

typedef struct csfk_anonymize_cell_sums
{
  unsigned long long component[CSFK_ANONYMIZE_COMPONENTS];
} csfk_anonymize_cell_sums;

/* The workspace.  Cell (x, y) of region i has its means at i * blocks * blocks + y * blocks + x,
 * and its part p of the sums at that times parts + p. */
typedef struct csfk_anonymize_workspace
{
  csfk_anonymize_cell_sums sums[CSFK_ANONYMIZE_MAX_PARTS];
  csfk_anonymize_cell means[CSFK_ANONYMIZE_MAX_CELLS];
} csfk_anonymize_workspace;

typedef struct csfk_anonymize_args
{
  csfk_frame frame;
  csfk_anonymize_params params;
  /* What of mode and blocks is left when there are very many regions. */
  int mode, blocks;
  int parts;                    /* bands of rows that each cell is summed up in */
} csfk_anonymize_args;

/* csfk_anonymize: a block makes a tile of one plane. */
enum
{
  CSFK_ANONYMIZE_BLOCK_X = 32,
  CSFK_ANONYMIZE_BLOCK_Y = 4,
  /* Rows a thread copies, CSFK_ANONYMIZE_BLOCK_Y apart. */
  CSFK_ANONYMIZE_ROWS = 4,
  CSFK_ANONYMIZE_TILE_BYTES = CSFK_ANONYMIZE_BLOCK_X * 16,
  CSFK_ANONYMIZE_TILE_ROWS = CSFK_ANONYMIZE_BLOCK_Y * CSFK_ANONYMIZE_ROWS,
  /* Regions that a block looks at together. */
  CSFK_ANONYMIZE_CHUNK = 64
};

/* csfk_anonymize_sums: a block sums one part of one cell (blockIdx.y) of one region (blockIdx.x) in
 * one plane; blockIdx.z is plane * parts + part.
 * csfk_anonymize_means: a thread makes one cell's means; not launched when there is one part,
 * which is then divided at once. */
enum
{
  CSFK_ANONYMIZE_SUM_THREADS = 64,
  CSFK_ANONYMIZE_MEANS_THREADS = 128
};

#endif
