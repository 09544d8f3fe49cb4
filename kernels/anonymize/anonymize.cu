/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* anonymize on the GPU.  Up to two small passes leave the means of all cells of all regions in
 * the workspace; then one launch over the planes (blockIdx.z) copies the picture, each block a
 * tile, and paints over what it has copied what regions cover.  anonymize.c says what is
 * computed.  Knows kernel.h only.
 *
 * A block's threads look at one region each, so what is not near a region costs little more than
 * the copy however many there are. */
#include "anonymize.h"

#define TILE_BYTES CSFK_ANONYMIZE_TILE_BYTES
#define TILE_ROWS CSFK_ANONYMIZE_TILE_ROWS
#define BLOCK_X CSFK_ANONYMIZE_BLOCK_X
#define BLOCK_Y CSFK_ANONYMIZE_BLOCK_Y
#define ROWS CSFK_ANONYMIZE_ROWS
#define CHUNK CSFK_ANONYMIZE_CHUNK
#define SUM_WARPS (CSFK_ANONYMIZE_SUM_THREADS / 32)

/* Samples of one component in a plane, two bytes each where `wide`: sample x begins offset + x *
 * pitch bytes into its row. */
struct channel
{
  int offset, pitch, shift_x, shift_y, component;
  bool wide;
};

static __device__ __forceinline__ int
count_channels (int format, int plane)
{
  switch (format) {
    case CSFK_FORMAT_GRAY8:
    case CSFK_FORMAT_I420:
      return 1;
    case CSFK_FORMAT_NV12:
    case CSFK_FORMAT_P010_10LE:
      return plane == 0 ? 1 : 2;
    default:
      return 3;
  }
}

static __device__ __forceinline__ channel
get_channel (int format, int plane, int i)
{
  const int uyvy = format == CSFK_FORMAT_UYVY;

  switch (format) {
    case CSFK_FORMAT_GRAY8:
    case CSFK_FORMAT_I420:
      return { 0, 1, plane > 0, plane > 0, plane, false };
    case CSFK_FORMAT_NV12:
      return plane == 0 ? channel { 0, 1, 0, 0, 0, false } : channel { i, 2, 1, 1, 1 + i, false };
    case CSFK_FORMAT_P010_10LE:
      return plane == 0 ? channel { 0, 2, 0, 0, 0, true } : channel { 2 * i, 4, 1, 1, 1 + i, true };
    case CSFK_FORMAT_YUY2:
    case CSFK_FORMAT_UYVY:
      return i == 0 ? channel { uyvy, 2, 0, 0, 0, false }
          : channel { 2 * i - 1 - uyvy, 4, 1, 0, i, false };
    case CSFK_FORMAT_RGB:
    case CSFK_FORMAT_BGR:
      return { i, 3, 0, 0, i, false };
    default:
      return { i, 4, 0, 0, i, false };
  }
}

/* ---- regions --------------------------------------------------------------------------------- */

/* Even sides of what is covered; size: of a cell, 0 when filled; the cells that show; the
 * region's first means. */
struct cells
{
  int x0, y0, x1, y1;
  int size;
  int first_x, last_x, first_y, last_y;
  int means;
};

static __device__ __forceinline__ int
move_near (long long place)
{
  const long long limit = CSFK_ANONYMIZE_LIMIT;

  return (int) min (max (place, -limit), limit);
}

static __device__ __forceinline__ bool
has_label (const csfk_region &region, const char *label)
{
#pragma unroll 1
  for (int i = 0; label[0] != 0 && i < CSFK_LABEL_BYTES; i++) {
    if (region.label[i] != label[i])
      return false;
    if (label[i] == 0)
      break;
  }
  return true;
}

static __device__ __forceinline__ void
grow (int &start, int &end, int size)
{
  const int across = ((unsigned) (end - start) + size - 1) / size;

  start -= (across * size - (end - start)) / 4 * 2;
  end = start + across * size;
}

static __device__ bool
find_cells (const csfk_anonymize_args &args, int index, cells &found)
{
  const csfk_region &region = args.frame.regions[index];
  const int width = args.frame.in.width, height = args.frame.in.height;
  const long long share = args.params.padding_65536;

  if (region.width <= 0 || region.height <= 0)
    return false;

  const long long pad_x = (region.width * share + 65535) / 65536;
  const long long pad_y = (region.height * share + 65535) / 65536;
  int x0 = move_near (region.x - pad_x), x1 = move_near (region.x + pad_x + region.width);
  int y0 = move_near (region.y - pad_y), y1 = move_near (region.y + pad_y + region.height);

  if (x0 >= width || y0 >= height || x1 <= 0 || y1 <= 0 || !has_label (region, args.params.label))
    return false;

  x0 &= ~1, y0 &= ~1;
  x1 += x1 & 1, y1 += y1 & 1;
  if (args.mode != CSFK_ANONYMIZE_FILL) {
    int size = ((unsigned) max (x1 - x0, y1 - y0) + args.blocks - 1) / (unsigned) args.blocks;

    size = max (size + (size & 1), (int) CSFK_ANONYMIZE_MIN_CELL);
    grow (x0, x1, size);
    grow (y0, y1, size);
    found.first_x = (unsigned) max (0, -x0) / size;
    found.first_y = (unsigned) max (0, -y0) / size;
    found.last_x = (unsigned) (min (x1, width) - 1 - x0) / size;
    found.last_y = (unsigned) (min (y1, height) - 1 - y0) / size;
    found.size = size;
    found.means = index * args.blocks * args.blocks;
  }
  found.x0 = x0, found.x1 = x1;
  found.y0 = y0, found.y1 = y1;
  return true;
}

/* ---- means ----------------------------------------------------------------------------------- */

/* Samples first .. end - 1 along a side that a cell's mean is taken over. */
struct window
{
  int first, end;
};

static __device__ __forceinline__ window
find_window (int start, int size, int length, int shift)
{
  const int last = length + (length & 1) - size;
  const int from = max (min (start, last), 0);

  return { from >> shift, min ((from + size) >> shift, (length + shift) >> shift) };
}

static __device__ __forceinline__ unsigned
load_sample (const unsigned char *at, bool wide)
{
  return wide ? (unsigned) (at[0] | at[1] << 8) >> 6 : at[0];
}

static __device__ __forceinline__ unsigned long long
count_samples (window across, window down)
{
  return (unsigned long long) (across.end - across.first) * (down.end - down.first);
}

static __device__ __forceinline__ unsigned short
divide (unsigned long long sum, unsigned long long n)
{
  return (unsigned short) ((sum + n / 2) / n);
}

/* This thread's share of rows y0 .. y1 - 1: a warp in turn takes rows, its lanes samples of a
 * row.  Several loads are in flight at once. */
static __device__ unsigned long long
sum_rows (const csfk_plane &plane, const channel &at, window across, int y0, int y1)
{
  const int AHEAD = 8;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  unsigned long long sum = 0;

  for (int x = across.first + lane; x < across.end; x += 32) {
    const unsigned char *from = plane.data + at.offset + (size_t) x * at.pitch;

    for (int y = y0 + warp; y < y1; y += AHEAD * SUM_WARPS) {
      unsigned samples[AHEAD], few = 0;

#pragma unroll
      for (int i = 0; i < AHEAD; i++) {
        const int row = y + i * SUM_WARPS;

        samples[i] = row < y1 ? load_sample (from + (size_t) row * plane.stride, at.wide) : 0;
      }
#pragma unroll
      for (int i = 0; i < AHEAD; i++)
        few += samples[i];
      sum += few;
    }
  }
  return sum;
}

/* Into thread 0's. */
static __device__ unsigned long long
sum_block (unsigned long long sum)
{
  __shared__ unsigned long long sums[SUM_WARPS];

#pragma unroll
  for (int step = 16; step > 0; step /= 2)
    sum += __shfl_down_sync (0xffffffffu, sum, step);
  if (threadIdx.x % 32 == 0)
    sums[threadIdx.x / 32] = sum;
  __syncthreads ();
  if (threadIdx.x == 0)
    for (int i = 1; i < SUM_WARPS; i++)
      sum += sums[i];
  /* The next sum may not be written before this one is read. */
  __syncthreads ();
  return sum;
}

extern "C" __global__ void __launch_bounds__ (CSFK_ANONYMIZE_SUM_THREADS, 5)
csfk_anonymize_sums (const csfk_anonymize_args args)
{
  const csfk_image &in = args.frame.in;
  csfk_anonymize_workspace *workspace = (csfk_anonymize_workspace *) args.frame.workspace;
  const int cells_of_region = args.blocks * args.blocks;
  const int cell_x = blockIdx.x % cells_of_region % args.blocks;
  const int cell_y = blockIdx.x % cells_of_region / args.blocks;
  const int part = blockIdx.y;
  cells grid;

  if (!find_cells (args, blockIdx.x / cells_of_region, grid))
    return;
  if (cell_x < grid.first_x || cell_x > grid.last_x || cell_y < grid.first_y
      || cell_y > grid.last_y)
    return;

#pragma unroll 1
  for (int plane = 0; plane < in.n_planes; plane++)
#pragma unroll 1
    for (int i = 0; i < count_channels (in.format, plane); i++) {
      const channel at = get_channel (in.format, plane, i);
      const window across =
          find_window (grid.x0 + cell_x * grid.size, grid.size, in.width, at.shift_x);
      const window down =
          find_window (grid.y0 + cell_y * grid.size, grid.size, in.height, at.shift_y);
      const int rows = down.end - down.first;
      const int y0 = down.first + (int) ((long long) rows * part / args.parts);
      const int y1 = down.first + (int) ((long long) rows * (part + 1) / args.parts);
      const unsigned long long sum = sum_block (sum_rows (in.plane[plane], at, across, y0, y1));

      if (threadIdx.x > 0)
        continue;
      if (args.parts == 1)
        workspace->means[blockIdx.x].component[at.component] =
            divide (sum, count_samples (across, down));
      else
        workspace->sums[blockIdx.x * args.parts + part].component[at.component] = sum;
    }
}

extern "C" __global__ void __launch_bounds__ (CSFK_ANONYMIZE_MEANS_THREADS)
csfk_anonymize_means (const csfk_anonymize_args args)
{
  const csfk_image &in = args.frame.in;
  csfk_anonymize_workspace *workspace = (csfk_anonymize_workspace *) args.frame.workspace;
  const int cells_of_region = args.blocks * args.blocks;
  const int cell = blockIdx.x * CSFK_ANONYMIZE_MEANS_THREADS + threadIdx.x;
  const int cell_x = cell % cells_of_region % args.blocks;
  const int cell_y = cell % cells_of_region / args.blocks;
  cells grid;

  if (cell >= args.frame.n_regions * cells_of_region
      || !find_cells (args, cell / cells_of_region, grid))
    return;
  if (cell_x < grid.first_x || cell_x > grid.last_x || cell_y < grid.first_y
      || cell_y > grid.last_y)
    return;

#pragma unroll 1
  for (int plane = 0; plane < in.n_planes; plane++)
#pragma unroll 1
    for (int i = 0; i < count_channels (in.format, plane); i++) {
      const channel at = get_channel (in.format, plane, i);
      const window across =
          find_window (grid.x0 + cell_x * grid.size, grid.size, in.width, at.shift_x);
      const window down =
          find_window (grid.y0 + cell_y * grid.size, grid.size, in.height, at.shift_y);
      const csfk_anonymize_cell_sums *sums = workspace->sums + cell * args.parts;
      unsigned long long sum = 0;

#pragma unroll 8
      for (int part = 0; part < args.parts; part++)
        sum += sums[part].component[at.component];
      workspace->means[cell].component[at.component] = divide (sum, count_samples (across, down));
    }
}

/* ---- painting -------------------------------------------------------------------------------- */

/* The bytes and rows of a plane that a block writes. */
struct tile
{
  int byte0, byte1, y0, y1;
};

static __device__ __forceinline__ void
store_sample (unsigned char *at, unsigned value, bool wide)
{
  if (wide) {
    at[0] = (unsigned char) (value << 6);
    at[1] = (unsigned char) (value >> 2);
  } else {
    at[0] = (unsigned char) value;
  }
}

/* Between the centres of two cells along a side: which, and the weight of the second in 256ths. */
struct between
{
  int before, after, weight;
};

static __device__ __forceinline__ between
find_between (int place, int size, int first, int last)
{
  const unsigned halves = 2 * place + 1 + size, step = 2 * size;
  const unsigned cell = halves / step, rest = halves - cell * step;

  return { min (max ((int) cell - 1, first), last), min (max ((int) cell, first), last),
    (int) (rest * 128 / size) };
}

static __device__ __forceinline__ unsigned
get_black (const csfk_image &image, int component)
{
  const int scale = image.format == CSFK_FORMAT_P010_10LE ? 4 : 1;

  if (component > 0 && image.n_planes > 1)
    return 128 * scale;
  if (component > 0 && (image.format == CSFK_FORMAT_YUY2 || image.format == CSFK_FORMAT_UYVY))
    return 128;
  return image.range == CSFK_RANGE_LIMITED ? 16 * scale : 0;
}

/* What one channel of one region in one tile is painted with, worked out by one thread for its
 * block and kept in shared memory: in registers it would keep blocks that only copy off the
 * multiprocessor. */
struct brush
{
  const unsigned short *means;  /* of the region's first cell */
  unsigned char *data;          /* sample 0 of row 0 */
  int stride, pitch;
  int wide;
  int x0, y0, x1, y1;           /* samples and rows to paint */
  int left, top;                /* the first cell's */
  int across, down;             /* samples and rows of a cell */
  int first_x, last_x, first_y, last_y;
  unsigned black;               /* of CSFK_ANONYMIZE_FILL, which has no cells */
};

static __device__ __forceinline__ void
make_brush (const csfk_anonymize_args &args, const tile &mine, const cells &grid, int index,
    brush &made)
{
  const csfk_image &out = args.frame.out;
  const csfk_plane &plane = out.plane[blockIdx.z];
  const channel at = get_channel (out.format, blockIdx.z, index);
  const csfk_anonymize_workspace *workspace =
      (const csfk_anonymize_workspace *) args.frame.workspace;

  made.data = plane.data + at.offset;
  made.stride = plane.stride;
  made.pitch = at.pitch;
  made.wide = at.wide;
  /* Only the samples that begin among this block's bytes. */
  made.x0 = max (grid.x0 >> at.shift_x, (mine.byte0 - at.offset + at.pitch - 1) / at.pitch);
  made.x1 = min (grid.x1 >> at.shift_x, (mine.byte1 - at.offset + at.pitch - 1) / at.pitch);
  made.y0 = max (grid.y0 >> at.shift_y, mine.y0);
  made.y1 = min (grid.y1 >> at.shift_y, mine.y1);
  made.black = get_black (out, at.component);
  if (args.mode == CSFK_ANONYMIZE_FILL)
    return;
  made.means = workspace->means[grid.means].component + at.component;
  made.left = grid.x0 >> at.shift_x;
  made.top = grid.y0 >> at.shift_y;
  made.across = grid.size >> at.shift_x;
  made.down = grid.size >> at.shift_y;
  made.first_x = grid.first_x, made.last_x = grid.last_x;
  made.first_y = grid.first_y, made.last_y = grid.last_y;
}

static __device__ __forceinline__ unsigned
get_mean (const volatile brush &with, int cell)
{
  return with.means[cell * CSFK_ANONYMIZE_COMPONENTS];
}

static __device__ __forceinline__ unsigned
get_blurred (const volatile brush &with, int blocks, int x, int y)
{
  const between v = find_between (y - with.top, with.down, with.first_y, with.last_y);
  const between h = find_between (x - with.left, with.across, with.first_x, with.last_x);
  const unsigned upper = get_mean (with, v.before * blocks + h.before) * (256 - h.weight) +
      get_mean (with, v.before * blocks + h.after) * h.weight;
  const unsigned lower = get_mean (with, v.after * blocks + h.before) * (256 - h.weight) +
      get_mean (with, v.after * blocks + h.after) * h.weight;

  return (upper * (256 - v.weight) + lower * v.weight + 32768) >> 16;
}

static __device__ __forceinline__ void
paint (const volatile brush &with, int mode, int blocks)
{
#pragma unroll 1
  for (int y = with.y0 + (int) threadIdx.y; y < with.y1; y += BLOCK_Y)
#pragma unroll 1
    for (int x = with.x0 + (int) threadIdx.x; x < with.x1; x += BLOCK_X) {
      unsigned value = with.black;

      if (mode == CSFK_ANONYMIZE_PIXELATE)
        value = get_mean (with, (unsigned) (y - with.top) / with.down * blocks +
            (unsigned) (x - with.left) / with.across);
      else if (mode == CSFK_ANONYMIZE_BLUR)
        value = get_blurred (with, blocks, x, y);
      store_sample (with.data + (size_t) y * with.stride + (size_t) x * with.pitch, value,
          with.wide);
    }
}

/* Whether any pixel that the tile's samples stand for is covered. */
static __device__ __forceinline__ bool
touches (const csfk_image &image, const tile &mine, const cells &grid)
{
  const int n = count_channels (image.format, blockIdx.z);
  /* The last channel of a plane: of all its channels, the one whose samples span the most
   * pixels. */
  const channel at = get_channel (image.format, blockIdx.z, n - 1);
  const int x0 = mine.byte0 / at.pitch << at.shift_x;
  const int x1 = (mine.byte1 / at.pitch + 1) << at.shift_x;

  return x0 < grid.x1 && x1 > grid.x0 && mine.y0 << at.shift_y < grid.y1
      && mine.y1 << at.shift_y > grid.y0;
}

/* ---- tiles ----------------------------------------------------------------------------------- */

/* The rows of a tile, one Word a thread in each step across it. */
template <typename Word>
static __device__ __forceinline__ void
copy_tile (const csfk_plane &in, const csfk_plane &out, const tile &mine)
{
  const int bytes = (int) sizeof (Word);

#pragma unroll 1
  for (int x = mine.byte0 + (int) threadIdx.x * bytes; x < mine.byte1; x += BLOCK_X * bytes) {
    const int y0 = mine.y0 + (int) threadIdx.y;
    const unsigned char *from = in.data + (size_t) y0 * in.stride + x;
    unsigned char *to = out.data + (size_t) y0 * out.stride + x;
    const size_t from_step = (size_t) in.stride * BLOCK_Y, to_step = (size_t) out.stride * BLOCK_Y;

    if (x + bytes <= mine.byte1) {
      Word words[ROWS];

#pragma unroll
      for (int i = 0; i < ROWS; i++)
        if (y0 + i * BLOCK_Y < mine.y1)
          words[i] = *(const Word *) (from + i * from_step);
#pragma unroll
      for (int i = 0; i < ROWS; i++)
        if (y0 + i * BLOCK_Y < mine.y1)
          *(Word *) (to + i * to_step) = words[i];
      continue;
    }

    /* The row's last bytes do not fill a word, and what follows them is not ours. */
#pragma unroll 1
    for (int i = 0; i < ROWS && y0 + i * BLOCK_Y < mine.y1; i++)
#pragma unroll 1
      for (int b = 0; x + b < mine.byte1; b++)
        to[i * to_step + b] = from[i * from_step + b];
  }
}

extern "C" __global__ void __launch_bounds__ (BLOCK_X *BLOCK_Y, 6)
csfk_anonymize (const csfk_anonymize_args args)
{
  __shared__ cells grids[CHUNK];
  __shared__ brush with;
  __shared__ unsigned touching[CHUNK / 32];
  const csfk_plane &in = args.frame.in.plane[blockIdx.z];
  const csfk_plane &out = args.frame.out.plane[blockIdx.z];
  const int thread = threadIdx.y * BLOCK_X + threadIdx.x;
  const size_t bits = (size_t) in.data | (size_t) out.data | (size_t) in.stride |
      (size_t) out.stride;
  const int byte0 = blockIdx.x * TILE_BYTES, y0 = blockIdx.y * TILE_ROWS;
  const tile mine = {
    byte0, min (byte0 + TILE_BYTES, in.row_bytes), y0, min (y0 + TILE_ROWS, in.rows)
  };

  if (byte0 >= in.row_bytes || y0 >= in.rows)
    return;
  if ((bits & 15) == 0)
    copy_tile<uint4> (in, out, mine);
  else if ((bits & 3) == 0)
    copy_tile<unsigned> (in, out, mine);
  else
    copy_tile<unsigned char> (in, out, mine);

  for (int base = 0; base < args.frame.n_regions; base += CHUNK) {
    bool hit = false;

    if (thread < CHUNK) {
      if (base + thread < args.frame.n_regions) {
        cells grid;

        hit = find_cells (args, base + thread, grid) && touches (args.frame.out, mine, grid);
        if (hit)
          grids[thread] = grid;
      }

      const unsigned mask = __ballot_sync (0xffffffffu, hit);

      if (threadIdx.x == 0)
        touching[thread / 32] = mask;
    }
    /* Also: what is painted over is copied. */
    if (!__syncthreads_or (hit))
      continue;
#pragma unroll 1
    for (int group = 0; group < CHUNK / 32; group++)
      for (unsigned mask = touching[group]; mask != 0; mask &= mask - 1) {
        const cells &grid = grids[group * 32 + __ffs (mask) - 1];

        for (int i = 0; i < count_channels (args.frame.out.format, blockIdx.z); i++) {
          if (thread == 0)
            make_brush (args, mine, grid, i, with);
          __syncthreads ();
          paint (with, args.mode, args.blocks);
          /* Before the brush changes, a later region is painted over this one, or the next chunk's
           * take their places. */
          __syncthreads ();
        }
      }
  }
}
