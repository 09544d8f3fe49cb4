/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The moving regions of motiondetect on the GPU, a part of motiondetect.cu, in two passes.
 * csfk_motiondetect_cells makes cells of the bits that csfk_motiondetect left in the workspace;
 * csfk_motiondetect_emit joins those that touch and appends what comes of it.  The latter is a
 * union-find in the shared memory of one block: the grid of cells is small enough for that, and a
 * launch more would take longer than other SMs could save.  Sums and limits are of integers, so
 * that the threads' order shows in nothing but the order of the records.  motiondetect.c says what
 * a region is.  Knows kernel.h only. */
#ifndef CSFK_MOTIONDETECT_REGIONS_CUH
#define CSFK_MOTIONDETECT_REGIONS_CUH

#include "motiondetect.h"

#define ALL_LANES 0xffffffffu
/* A label, of a cell that does not move. */
#define STILL 0xffffffffu

/* ---- cells ----------------------------------------------------------------------------------- */

/* Moving pixels and the box round them; that of none is inside out. */
struct patch
{
  unsigned area, left, top, right, bottom;
};

struct patch_arrays
{
  unsigned *area, *left, *top, *right, *bottom;
};

static __device__ __forceinline__ patch_arrays
find_cells (const csfk_motiondetect_args &args)
{
  const csfk_image &in = args.frame.in;
  const unsigned n = args.columns * args.rows;
  patch_arrays cells;

  cells.area = (unsigned *) ((unsigned char *) args.frame.workspace +
      CSFK_MOTIONDETECT_BITS_BYTES (in.width, in.height));
  cells.left = cells.area + n;
  cells.top = cells.left + n;
  cells.right = cells.top + n;
  cells.bottom = cells.right + n;
  return cells;
}

/* The lanes of a group of `lanes`, a power of 2, all get what they have together. */
static __device__ __forceinline__ void
join_lanes (patch &mine, unsigned lanes)
{
  for (unsigned step = lanes / 2; step > 0; step /= 2) {
    mine.area += __shfl_xor_sync (ALL_LANES, mine.area, step);
    mine.left = min (mine.left, __shfl_xor_sync (ALL_LANES, mine.left, step));
    mine.top = min (mine.top, __shfl_xor_sync (ALL_LANES, mine.top, step));
    mine.right = max (mine.right, __shfl_xor_sync (ALL_LANES, mine.right, step));
    mine.bottom = max (mine.bottom, __shfl_xor_sync (ALL_LANES, mine.bottom, step));
  }
}

/* Adds 8 x 4 pixels, a byte a row. */
static __device__ __forceinline__ void
add_word (patch &to, unsigned word, unsigned x, unsigned y)
{
  const unsigned columns = (word | word >> 8 | word >> 16 | word >> 24) & 255;

  if (word == 0)
    return;
  to.area += __popc (word);
  to.left = min (to.left, x + __ffs (columns) - 1);
  to.right = max (to.right, x + 32 - __clz (columns));
  to.top = min (to.top, y + (__ffs (word) - 1) / 8);
  to.bottom = max (to.bottom, y + (39 - __clz (word)) / 8);
}

/* Cells from bits.  A lane goes down one column of words, or several where a cell is more than
 * 32 wide. */
extern "C" __global__ void
__launch_bounds__ (32 * CSFK_MOTIONDETECT_CELLS_Y)
csfk_motiondetect_cells (const csfk_motiondetect_args args)
{
  const csfk_image &in = args.frame.in;
  const unsigned *bits = (const unsigned *) args.frame.workspace;
  const unsigned words_x = (in.width + 7) / 8, words_y = (in.height + 3) / 4;
  const unsigned side_x = 1u << args.cell_shift >> 3, side_y = side_x * 2;
  const unsigned lanes = min (side_x, 32u);
  const unsigned column = blockIdx.x * (32 / lanes) + threadIdx.x / lanes;
  const unsigned row = blockIdx.y * CSFK_MOTIONDETECT_CELLS_Y + threadIdx.y;
  const unsigned y1 = min ((row + 1) * side_y, words_y);
  const unsigned at = row * args.columns + column;
  patch mine = { 0, ~0u, ~0u, 0, 0 };

  if (row >= args.rows)
    return;
  for (unsigned i = threadIdx.x % lanes; i < side_x; i += lanes) {
    const unsigned x = column * side_x + i;

    if (x < words_x)
#pragma unroll 4
      for (unsigned y = row * side_y; y < y1; y++)
        add_word (mine, bits[(size_t) y * words_x + x], x * 8, y * 4);
  }
  join_lanes (mine, lanes);
  if (threadIdx.x % lanes == 0 && column < args.columns) {
    const patch_arrays cells = find_cells (args);

    cells.area[at] = mine.area < CSFK_MOTIONDETECT_CELL_LEAST (args.cell_shift) ? 0 : mine.area;
    cells.left[at] = mine.left;
    cells.top[at] = mine.top;
    cells.right[at] = mine.right;
    cells.bottom[at] = mine.bottom;
  }
}

/* ---- regions --------------------------------------------------------------------------------- */

/* labels: of a moving cell its own number, which makes it a root, or a lower one of its region. */

/* Shortens the way for those who come after: a cell that is no root never is one again, and whichever of
 * several threads writes its label last, it is an ancestor's. */
static __device__ __forceinline__ unsigned
find_root (unsigned *labels, unsigned cell)
{
  unsigned label = labels[cell];

  while (label != cell) {
    const unsigned above = labels[label];

    if (above != label)
      atomicMin (&labels[cell], above);
    cell = label;
    label = above;
  }
  return cell;
}

/* Hangs the higher root under the lower.  Where another thread was first at the higher one, what it
 * hung that under has to be joined too. */
static __device__ __forceinline__ void
join_cells (unsigned *labels, unsigned a, unsigned b)
{
  for (;;) {
    unsigned before;

    a = find_root (labels, a);
    b = find_root (labels, b);
    if (a == b)
      return;
    if (a < b) {
      const unsigned swapped = a;

      a = b;
      b = swapped;
    }
    before = atomicMin (&labels[a], b);
    if (before == a)
      return;
    a = before;
  }
}

/* Labels each cell with the first of its neighbours in the row that are with the same warp. */
static __device__ __forceinline__ void
label_row (unsigned *labels, unsigned cell, unsigned n, unsigned column, bool moves)
{
  const unsigned lane = threadIdx.x % 32, up_to_me = ALL_LANES >> (31 - lane);
  const unsigned still = __ballot_sync (ALL_LANES, !moves);
  const unsigned begins = __ballot_sync (ALL_LANES, column == 0);
  const unsigned breaks = (still << 1 | begins | 1) & up_to_me;

  if (cell < n)
    labels[cell] = moves ? cell - lane + 31 - __clz (breaks) : STILL;
}

/* Joins a moving cell with those of its neighbours west and north that nothing else joins it with: each
 * pair of runs that touch costs few joins, however long they are. */
static __device__ __forceinline__ void
join_neighbours (unsigned *labels, unsigned cell, unsigned column, unsigned columns)
{
  const bool has_west = column > 0, has_east = column + 1 < columns;
  const bool west = has_west && labels[cell - 1] != STILL;
  const unsigned above = cell - columns;

  if (west && threadIdx.x % 32 == 0)
    join_cells (labels, cell, cell - 1);
  if (cell < columns)
    return;
  if (labels[above] != STILL) {
    if (!west || labels[above - 1] == STILL)
      join_cells (labels, cell, above);
    return;
  }
  if (has_west && !west && labels[above - 1] != STILL)
    join_cells (labels, cell, above - 1);
  if (has_east && labels[cell + 1] == STILL && labels[above + 1] != STILL)
    join_cells (labels, cell, above + 1);
}

/* Adds a cell to its root; a warp with one root, as in a large region, does so once. */
static __device__ __forceinline__ void
add_to_root (const patch_arrays &cells, unsigned cell, unsigned root, bool adds)
{
  const unsigned adding = __ballot_sync (ALL_LANES, adds);
  unsigned first, first_root;
  patch mine = { 0, ~0u, ~0u, 0, 0 };

  if (adding == 0)
    return;
  first = __ffs (adding) - 1;
  first_root = __shfl_sync (ALL_LANES, root, first);
  if (adds) {
    mine.area = cells.area[cell];
    mine.left = cells.left[cell];
    mine.top = cells.top[cell];
    mine.right = cells.right[cell];
    mine.bottom = cells.bottom[cell];
  }
  if (__all_sync (ALL_LANES, !adds || root == first_root)) {
    join_lanes (mine, 32);
    adds = threadIdx.x % 32 == first;
  }
  if (!adds)
    return;
  atomicAdd (&cells.area[root], mine.area);
  atomicMin (&cells.left[root], mine.left);
  atomicMin (&cells.top[root], mine.top);
  atomicMax (&cells.right[root], mine.right);
  atomicMax (&cells.bottom[root], mine.bottom);
}

static __device__ __forceinline__ void
append_region (const csfk_records &records, const patch_arrays &cells, unsigned root)
{
  csfk_object *to = (csfk_object *) csfk_append (&records);
  const float width = (float) (cells.right[root] - cells.left[root]);
  const float height = (float) (cells.bottom[root] - cells.top[root]);

  if (!to)
    return;
  to->x = (float) cells.left[root];
  to->y = (float) cells.top[root];
  to->width = width;
  to->height = height;
  to->confidence = __fdiv_rn ((float) cells.area[root], __fmul_rn (width, height));
  to->label = 0;
  to->track_id = -1;
  to->score = (float) cells.area[root];
}

/* Regions from cells, with a label each in shared memory: one block, whose warps go along the cells
 * together.  The cells of a region end up in its first. */
extern "C" __global__ void
__launch_bounds__ (CSFK_MOTIONDETECT_REGION_THREADS)
csfk_motiondetect_emit (const csfk_motiondetect_args args)
{
  extern __shared__ unsigned labels[];
  const patch_arrays cells = find_cells (args);
  const unsigned columns = args.columns, n = columns * args.rows, n_all = (n + 31) & ~31u;

#pragma unroll 8
  for (unsigned i = threadIdx.x; i < n_all; i += CSFK_MOTIONDETECT_REGION_THREADS)
    label_row (labels, i, n, i % columns, i < n && cells.area[i] != 0);
  __syncthreads ();

  for (unsigned i = threadIdx.x; i < n; i += CSFK_MOTIONDETECT_REGION_THREADS)
    if (labels[i] != STILL)
      join_neighbours (labels, i, i % columns, columns);
  __syncthreads ();

  for (unsigned i = threadIdx.x; i < n_all; i += CSFK_MOTIONDETECT_REGION_THREADS) {
    const bool moves = i < n && labels[i] != STILL;
    const unsigned root = moves ? find_root (labels, i) : 0;

    add_to_root (cells, i, root, moves && root != i);
  }
  __syncthreads ();

  for (unsigned i = threadIdx.x; i < n; i += CSFK_MOTIONDETECT_REGION_THREADS)
    if (labels[i] == i && cells.area[i] >= args.least_area)
      append_region (args.frame.records, cells, i);
}

#endif
