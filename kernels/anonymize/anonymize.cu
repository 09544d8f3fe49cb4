/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* anonymize on the GPU.  Up to two small passes leave the means of all cells of all regions in
 * the workspace; then one launch over the planes (blockIdx.z) copies the picture, each block a
 * tile, and covers in it what regions cover.  anonymize.c says what is computed.  Knows kernel.h
 * and tiles.cuh only.
 *
 * A thread has its words of the tile in registers while the block's threads look at one region
 * each: most blocks then have nothing to cover and store them.  In the others the words go
 * through shared memory, and each thread changes its own: a mosaic is a few patterns laid over a
 * word, not work for each sample. */
#include "anonymize.h"

#include "../tiles.cuh"
#include "cells.cuh"

#define TILE_BYTES CSFK_ANONYMIZE_TILE_BYTES
#define TILE_ROWS CSFK_ANONYMIZE_TILE_ROWS
#define BLOCK_X CSFK_ANONYMIZE_BLOCK_X
#define BLOCK_Y CSFK_ANONYMIZE_BLOCK_Y
#define ROWS CSFK_ANONYMIZE_ROWS
#define CHUNK CSFK_ANONYMIZE_CHUNK
#define SUM_THREADS CSFK_ANONYMIZE_SUM_THREADS
#define SUM_WARPS (CSFK_ANONYMIZE_SUM_THREADS / 32)

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

/* Whether the picture shows anything of the cell that begins there, and the region has it. */
static __device__ __forceinline__ bool
shows (const csfk_image &in, const cells &grid, int x, int y)
{
  return x < min (grid.x1, in.width) && y < min (grid.y1, in.height) && x + grid.size > 0
      && y + grid.size > 0;
}

static __device__ __forceinline__ unsigned long long
count_samples (window across, window down)
{
  return (unsigned long long) (across.end - across.first) * (down.end - down.first);
}

static __device__ __forceinline__ unsigned short
divide (unsigned long long sum, unsigned long long n)
{
  sum += n / 2;
  /* Many times faster, and enough for all but the largest cells. */
  if (((sum | n) >> 32) == 0)
    return (unsigned short) ((unsigned) sum / (unsigned) n);
  return (unsigned short) (sum / n);
}

/* What a block sums up: bytes byte0 .. byte1 - 1 of rows y0 .. y1 - 1, of the first channel only
 * those before luma1: the padding of an odd YUY2 row is no pixel, but its chroma is. */
struct area
{
  const unsigned char *data;
  int stride, row_bytes;
  int byte0, byte1, luma1, y0, y1;
};

/* Which bytes of four belong to a channel, 1 each, as dot() wants it.  R'G'B' of three bytes
 * changes its place from word to word; see add_word(). */
struct selectors
{
  unsigned channel[3];
  bool wide, rotates, packed;
};

static __device__ __forceinline__ selectors
get_selectors (int format, int plane)
{
  switch (format) {
    case CSFK_FORMAT_GRAY8:
    case CSFK_FORMAT_I420:
      return { {0x01010101, 0, 0}, false, false, false };
    case CSFK_FORMAT_NV12:
      return plane == 0 ? selectors { {0x01010101, 0, 0}, false, false, false }
          : selectors { {0x00010001, 0x01000100, 0}, false, false, false };
    case CSFK_FORMAT_P010_10LE:
      return { {0, 0, 0}, true, false, false };
    case CSFK_FORMAT_YUY2:
      return { {0x00010001, 0x00000100, 0x01000000}, false, false, true };
    case CSFK_FORMAT_UYVY:
      return { {0x01000100, 0x00000001, 0x00010000}, false, false, true };
    case CSFK_FORMAT_RGB:
    case CSFK_FORMAT_BGR:
      return { {0x01000001, 0x00000100, 0x00010000}, false, true, false };
    default:
      return { {0x00000001, 0x00000100, 0x00010000}, false, false, false };
  }
}

/* sum + the bytes of a that b selects. */
static __device__ __forceinline__ unsigned
dot (unsigned a, unsigned b, unsigned sum)
{
#if __CUDA_ARCH__ >= 610
  return __dp4a (a, b, sum);
#else
  for (int i = 0; i < 32; i += 8)
    sum += (a >> i & 255) * (b >> i & 255);
  return sum;
#endif
}

/* The last bytes of a row, or one that is not aligned: n of them, 0 for the others. */
static __device__ __forceinline__ uint4
load_bytes (const unsigned char *at, int n)
{
  uint4 word = { 0, 0, 0, 0 };

#pragma unroll 1
  for (int i = n - 1; i >= 0; i--) {
    word.w = word.w << 8 | word.z >> 24;
    word.z = word.z << 8 | word.y >> 24;
    word.y = word.y << 8 | word.x >> 24;
    word.x = word.x << 8 | at[i];
  }
  return word;
}

/* Adds what of the word at byte x of its row lies in the area. */
static __device__ __forceinline__ void
add_word (const uint4 &word, int x, const area &of, const selectors &select, unsigned sums[3])
{
  const unsigned parts[] = { word.x, word.y, word.z, word.w };
  const int phase = select.rotates ? (x >> 4) % 3 : 0;
  /* Where four bytes begin with the n-th byte of a pixel, channel c is selected by what selects
   * channel (c - n) % 3 where they begin with the first. */
  const unsigned first = select.channel[0], second = select.channel[1], third = select.channel[2];
  const unsigned a = phase == 0 ? first : phase == 1 ? third : second;
  const unsigned b = phase == 0 ? second : phase == 1 ? first : third;
  const unsigned c = phase == 0 ? third : phase == 1 ? second : first;

#pragma unroll
  for (int i = 0; i < 4; i++) {
    const int at = x + 4 * i;
    const unsigned from = ~first_bytes (of.byte0 - at);
    const unsigned all = parts[i] & from & first_bytes (of.byte1 - at);

    if (select.wide) {
      sums[0] += all >> 6 & 0x3ff;
      sums[1] += all >> 22;
    } else if (select.rotates) {
      sums[0] = dot (all, i % 3 == 0 ? a : i == 1 ? c : b, sums[0]);
      sums[1] = dot (all, i % 3 == 0 ? b : i == 1 ? a : c, sums[1]);
      sums[2] = dot (all, i % 3 == 0 ? c : i == 1 ? b : a, sums[2]);
    } else {
      sums[0] = dot (select.packed ? parts[i] & from & first_bytes (of.luma1 - at) : all, a,
          sums[0]);
      sums[1] = dot (all, b, sums[1]);
      sums[2] = dot (all, c, sums[2]);
    }
  }
}

/* This thread's share: the block's threads take the area's words in their order. */
template <bool aligned>
static __device__ __forceinline__ void
sum_words (const area &of, const selectors &select, int across, unsigned long long sums[3])
{
  const int AHEAD = aligned ? 4 : 1;
  const int start = of.byte0 & -TILE_WORD;
  const int step_y = SUM_THREADS / (unsigned) across, step_x = SUM_THREADS - step_y * across;
  int y = threadIdx.x / (unsigned) across, x = (int) threadIdx.x - y * across;

#pragma unroll 1
  for (y += of.y0; y < of.y1;) {
    uint4 words[AHEAD];
    int at[AHEAD];
    unsigned few[] = { 0, 0, 0 };

#pragma unroll
    for (int i = 0; i < AHEAD; i++) {
      const unsigned char *from = of.data + (size_t) y * of.stride + start + x * TILE_WORD;

      at[i] = y < of.y1 ? start + x * TILE_WORD : -1;
      if (at[i] >= 0)
        words[i] = aligned ? *(const uint4 *) from
            : load_bytes (from, min ((int) TILE_WORD, of.row_bytes - at[i]));
      x += step_x;
      y += step_y + (x >= across);
      x -= x >= across ? across : 0;
    }
#pragma unroll
    for (int i = 0; i < AHEAD; i++)
      if (at[i] >= 0)
        add_word (words[i], at[i], of, select, few);
#pragma unroll
    for (int i = 0; i < 3; i++)
      sums[i] += few[i];
  }
}

static __device__ __forceinline__ void
sum_area (const area &of, const selectors &select, unsigned long long sums[3])
{
  const int start = of.byte0 & -TILE_WORD, across = (of.byte1 - start + TILE_WORD - 1) / TILE_WORD;

  if ((((size_t) of.data | (size_t) of.stride) & (TILE_WORD - 1)) == 0
      && start + across * TILE_WORD <= of.row_bytes)
    sum_words<true> (of, select, across, sums);
  else
    sum_words<false> (of, select, across, sums);
}

/* The block's sums, from its threads'; all threads get here. */
static __device__ __forceinline__ void
share_sums (unsigned long long sums[3], int n_channels, unsigned long long shared[SUM_WARPS][3])
{
#pragma unroll
  for (int i = 0; i < 3; i++) {
    if (i >= n_channels)
      break;
#pragma unroll
    for (int step = 16; step > 0; step /= 2)
      sums[i] += __shfl_down_sync (0xffffffffu, sums[i], step);
    if (threadIdx.x % 32 == 0)
      shared[threadIdx.x / 32][i] = sums[i];
  }
  __syncthreads ();
}

extern "C" __global__ void __launch_bounds__ (SUM_THREADS)
csfk_anonymize_sums (const csfk_anonymize_args args)
{
  __shared__ unsigned long long shared[SUM_WARPS][3];
  const csfk_image &in = args.frame.in;
  csfk_anonymize_workspace *workspace = (csfk_anonymize_workspace *) args.frame.workspace;
  const place at = load_place (args.frame.regions[blockIdx.x]);
  const int cell = blockIdx.x * args.blocks * args.blocks + blockIdx.y;
  const int cell_y = blockIdx.y / (unsigned) args.blocks;
  const int cell_x = blockIdx.y - cell_y * args.blocks;
  const int number = blockIdx.z / (unsigned) args.parts, part = blockIdx.z - number * args.parts;
  const csfk_plane &plane = in.plane[number];
  const int format = in.format;
  cells grid;

  if (!find_cells (args, blockIdx.x, at, { 0, 0, in.width, in.height }, grid))
    return;

  const layout groups = get_layout (format, number);
  const int x = grid.x0 + cell_x * grid.size, y = grid.y0 + cell_y * grid.size;

  if (!shows (in, grid, x, y))
    return;

  const window across = find_window (x, grid.size, in.width, groups.shift_x);
  const window luma = find_window (x, grid.size, in.width, 0);
  const window down = find_window (y, grid.size, in.height, groups.shift_y);
  const bool packed = is_packed (format);
  const int rows = down.end - down.first;
  const area of = {
    plane.data, plane.stride, plane.row_bytes, across.first * groups.pitch,
    across.end * groups.pitch, packed ? luma.end * 2 : across.end * groups.pitch,
    down.first + rows * part / args.parts, down.first + rows * (part + 1) / args.parts
  };
  unsigned long long sums[] = { 0, 0, 0 };

  sum_area (of, get_selectors (format, number), sums);
  /* Two samples of luma of 10 bits are in four bytes. */
  if (groups.n_channels == 1)
    sums[0] += sums[1];
  share_sums (sums, groups.n_channels, shared);

  if (threadIdx.x < groups.n_channels) {
    const int component = number + threadIdx.x;
    const window columns = packed && threadIdx.x == 0 ? luma : across;
    unsigned long long sum = 0;

#pragma unroll
    for (int i = 0; i < SUM_WARPS; i++)
      sum += shared[i][threadIdx.x];
    if (args.parts == 1)
      workspace->means[cell].component[component] =
          divide (sum, count_samples (columns, down));
    else
      workspace->sums[cell * args.parts + part].component[component] = sum;
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

  if (cell >= args.frame.n_regions * cells_of_region)
    return;

  const int index = cell / cells_of_region;

  if (!find_cells (args, index, load_place (args.frame.regions[index]),
          { 0, 0, in.width, in.height }, grid)
      || !shows (in, grid, grid.x0 + cell_x * grid.size, grid.y0 + cell_y * grid.size))
    return;

#pragma unroll 1
  for (int plane = 0; plane < in.n_planes; plane++)
#pragma unroll 1
    for (int i = 0; i < get_layout (in.format, plane).n_channels; i++) {
      const channel at = get_channel (in.format, plane, i);
      const window across =
          find_window (grid.x0 + cell_x * grid.size, grid.size, in.width, at.shift_x);
      const window down =
          find_window (grid.y0 + cell_y * grid.size, grid.size, in.height, at.shift_y);
      const csfk_anonymize_cell_sums *sums = workspace->sums + cell * args.parts;
      unsigned long long sum = 0;

#pragma unroll 8
      for (int part = 0; part < args.parts; part++)
        sum += sums[part].component[plane + i];
      workspace->means[cell].component[plane + i] = divide (sum, count_samples (across, down));
    }
}

/* ---- covering -------------------------------------------------------------------------------- */

/* The pixels that its groups stand for. */
static __device__ __forceinline__ rectangle
get_pixels (const tile &mine, const layout &groups)
{
  return { find_group (groups, mine.byte0) << groups.shift_x, mine.y0 << groups.shift_y,
    (find_group (groups, mine.byte1 - 1) + 1) << groups.shift_x, mine.y1 << groups.shift_y };
}

static __device__ __forceinline__ unsigned
get_black (const csfk_image &image, int component)
{
  const int scale = image.format == CSFK_FORMAT_P010_10LE ? 4 : 1;

  if (component > 0 && (image.n_planes > 1 || is_packed (image.format)))
    return 128 * scale;
  return image.range == CSFK_RANGE_LIMITED ? 16 * scale : 0;
}

/* Bytes of a plane in one colour, four and four; they are the same again after twelve. */
struct pattern
{
  unsigned part[3];
};

/* a, b, c: the plane's channels.  `phase`: which of the three comes first. */
static __device__ __forceinline__ pattern
make_pattern (int format, int plane, int phase, unsigned a, unsigned b, unsigned c)
{
  unsigned four = a | b << 8 | c << 16;

  switch (format) {
    case CSFK_FORMAT_GRAY8:
    case CSFK_FORMAT_I420:
      four = a * 0x01010101u;
      break;
    case CSFK_FORMAT_NV12:
      four = plane == 0 ? a * 0x01010101u : (a | b << 8) * 0x00010001u;
      break;
    case CSFK_FORMAT_P010_10LE:
      four = plane == 0 ? a * 0x00400040u : a << 6 | b << 22;
      break;
    case CSFK_FORMAT_YUY2:
      four = a * 0x00010001u | b << 8 | c << 24;
      break;
    case CSFK_FORMAT_UYVY:
      four = a * 0x01000100u | b | c << 16;
      break;
    case CSFK_FORMAT_RGB:
    case CSFK_FORMAT_BGR:
      {
        /* From the first, the second and the third byte of a pixel on. */
        const unsigned of[] = { four | four << 24, four >> 8 | four << 16, four >> 16 | four << 8 };

        return { {phase == 0 ? of[0] : phase == 1 ? of[1] : of[2],
              phase == 0 ? of[1] : phase == 1 ? of[2] : of[0],
              phase == 0 ? of[2] : phase == 1 ? of[0] : of[1]} };
      }
  }
  return { {four, four, four} };
}

/* Lays bytes first .. end - 1 of the pattern over those of a word.  `keep`: of each four bytes,
 * what stays. */
static __device__ __forceinline__ void
cover_bytes (uint4 &word, int first, int end, const pattern &with, unsigned keep)
{
  unsigned *const parts[] = { &word.x, &word.y, &word.z, &word.w };

#pragma unroll
  for (int i = 0; i < 4; i++) {
    const unsigned over = first_bytes (end - 4 * i) & ~first_bytes (first - 4 * i) & ~keep;

    *parts[i] = (*parts[i] & ~over) | (with.part[i % 3] & over);
  }
}

/* Between two rows of cells, or two columns: the first, and the weight of the second in 256ths. */
struct between
{
  int cell;
  unsigned weight;
};

/* `place`: samples from the first cell's side; size: samples of a cell. */
static __device__ __forceinline__ between
find_between (int place, int size)
{
  /* From the centre before the first cell's, in halves of a sample. */
  const unsigned far = 2 * place + 1 + size, cell = far / (2 * size);

  return { (int) cell - 1, (far - cell * 2 * size) * 128 / size };
}

/* The mean of one component in a column of cells between two rows of them, in 256ths.  volatile:
 * what is seldom read is not to be kept in registers. */
static __device__ __forceinline__ unsigned
get_column (const csfk_anonymize_args &args, const volatile cells &grid, const between &row,
    int cell, int component)
{
  const csfk_anonymize_cell *means =
      ((const csfk_anonymize_workspace *) args.frame.workspace)->means;
  const int column = grid.means + min (max (cell, grid.first_x), grid.last_x);
  const int before = min (max (row.cell, grid.first_y), grid.last_y);
  const int after = min (max (row.cell + 1, grid.first_y), grid.last_y);

  return means[column + before * args.blocks].component[component] * (256 - row.weight) +
      means[column + after * args.blocks].component[component] * row.weight;
}

/* One channel of a word at (byte x, row y), of which `bytes` are in shared memory. */
static __device__ __forceinline__ void
blur_channel (const csfk_anonymize_args &args, const cells &grid, const channel &at, int component,
    int x, int y, unsigned char *bytes)
{
  const int across = grid.size >> at.shift_x, left = grid.x0 >> at.shift_x;
  const int first = max (left, (x - at.offset + at.pitch - 1) / at.pitch);
  const int end = min (grid.x1 >> at.shift_x, (x + TILE_WORD - at.offset + at.pitch - 1) / at.pitch);
  const between row = find_between (y - (grid.y0 >> at.shift_y), grid.size >> at.shift_y);
  between column = find_between (first - left, across);
  /* What the weight is rounded down by, in parts of `across`.  A sample further is 256 of them
   * more. */
  unsigned rest = (2 * (first - left) + 1 - across) * 128 -
      (column.cell * 256 + column.weight) * across;
  unsigned old = get_column (args, grid, row, column.cell, component);
  unsigned next = get_column (args, grid, row, column.cell + 1, component);

#pragma unroll 1
  for (int i = first; i < end; i++) {
    const unsigned value = (old * (256 - column.weight) + next * column.weight + 32768) >> 16;
    unsigned char *to = bytes + i * at.pitch + at.offset - x;

    if (at.wide)
      *(unsigned short *) to = (unsigned short) (value << 6);
    else
      *to = (unsigned char) value;
    column.weight += 256u / across;
    rest += 256u % across;
    if (rest >= (unsigned) across) {
      rest -= across;
      column.weight++;
    }
    if (column.weight >= 256) {
      column.weight -= 256;
      column.cell++;
      old = next;
      next = get_column (args, grid, row, column.cell + 1, component);
    }
  }
}

/* The word at (byte x, row y) of the plane, which the region's rows meet. */
static __device__ __forceinline__ void
cover_word (const csfk_anonymize_args &args, const layout &groups, const cells &grid, int x, int y,
    uint4 *at)
{
  const csfk_image &out = args.frame.out;
  const int plane = blockIdx.z, phase = (x >> 4) % 3;
  const unsigned keep = groups.pitch == 4 && groups.n_channels == 3 && groups.shift_x == 0
      ? 0xff000000u : 0;
  const int end = min ((grid.x1 >> groups.shift_x) * groups.pitch - x, (int) TILE_WORD);
  int from = max ((grid.x0 >> groups.shift_x) * groups.pitch - x, 0), to = end, cell = 0;

  if (from >= end)
    return;
  if (args.mode == CSFK_ANONYMIZE_BLUR) {
#pragma unroll 1
    for (int i = 0; i < groups.n_channels; i++)
      blur_channel (args, grid, get_channel (out.format, plane, i), plane + i, x, y,
          (unsigned char *) at);
    return;
  }

  const csfk_anonymize_cell *means =
      ((const csfk_anonymize_workspace *) args.frame.workspace)->means;
  uint4 word = *at;

  if (args.mode == CSFK_ANONYMIZE_PIXELATE) {
    const int cell_y = (unsigned) ((y << groups.shift_y) - grid.y0) / (unsigned) grid.size;
    const int pixel = find_group (groups, x + from) << groups.shift_x;

    cell = (unsigned) (pixel - grid.x0) / (unsigned) grid.size;
    means += grid.means + cell_y * args.blocks + cell;
  }
#pragma unroll 1
  do {
    unsigned colour[3];

    if (args.mode == CSFK_ANONYMIZE_PIXELATE)
      to = min (((grid.x0 + ++cell * grid.size) >> groups.shift_x) * groups.pitch - x, end);
#pragma unroll
    for (int i = 0; i < 3; i++)
      colour[i] = args.mode != CSFK_ANONYMIZE_PIXELATE ? get_black (out, plane + i)
          : i < groups.n_channels ? means->component[plane + i] : 0;
    cover_bytes (word, from, to, make_pattern (out.format, plane, phase, colour[0], colour[1],
            colour[2]), keep);
    from = to;
    means++;
  } while (from < end);
  *at = word;
}

/* ---- tiles ----------------------------------------------------------------------------------- */

/* Whether any of the chunk's regions covers anything of the tile, and which: bits of `masks`.
 * All threads get here. */
static __device__ __forceinline__ bool
look_at_chunk (const csfk_anonymize_args &args, int base, const tile &mine,
    cells grids[CHUNK], unsigned masks[CHUNK / 32])
{
  const int thread = threadIdx.y * BLOCK_X + threadIdx.x;
  bool hit = false;

  if (thread < CHUNK) {
    if (base + thread < args.frame.n_regions) {
      const place at = load_place (args.frame.regions[base + thread]);
      const rectangle pixels =
          get_pixels (mine, get_layout (args.frame.out.format, blockIdx.z));
      cells found;

      hit = find_cells (args, base + thread, at, pixels, found) && found.x0 < pixels.x1
          && found.x1 > pixels.x0 && found.y0 < pixels.y1 && found.y1 > pixels.y0;
      if (hit && args.mode == CSFK_ANONYMIZE_BLUR)
        find_shown (args.frame.in, found);
      if (hit)
        grids[thread] = found;
    }

    const unsigned mask = __ballot_sync (0xffffffffu, hit);

    if (threadIdx.x == 0)
      masks[threadIdx.y] = mask;
  }
  return __syncthreads_or (hit);
}

/* Covers in the block's staged words what these regions cover, in their order. */
static __device__ __forceinline__ void
cover_tile (const csfk_anonymize_args &args, const tile &mine, const cells grids[CHUNK],
    const unsigned masks[CHUNK / 32], uint4 words[ROWS][BLOCK_Y][BLOCK_X])
{
  const layout groups = get_layout (args.frame.out.format, blockIdx.z);
  const int x = mine.byte0 + (int) threadIdx.x * TILE_WORD;

#pragma unroll 1
  for (int group = 0; group < CHUNK / 32; group++)
#pragma unroll 1
    for (unsigned mask = masks[group]; mask != 0; mask &= mask - 1) {
      const cells &grid = grids[group * 32 + __ffs (mask) - 1];

#pragma unroll 1
      for (int i = 0; i < ROWS; i++) {
        const int y = mine.y0 + i * BLOCK_Y + (int) threadIdx.y;

        if (y >= grid.y0 >> groups.shift_y && y < grid.y1 >> groups.shift_y)
          cover_word (args, groups, grid, x, y, &words[i][threadIdx.y][threadIdx.x]);
      }
    }
}

extern "C" __global__ void __launch_bounds__ (BLOCK_X *BLOCK_Y, 8)
csfk_anonymize (const csfk_anonymize_args args)
{
  __shared__ uint4 staged[ROWS][BLOCK_Y][BLOCK_X];
  __shared__ cells grids[CHUNK];
  __shared__ unsigned masks[CHUNK / 32];
  const csfk_plane &in = args.frame.in.plane[blockIdx.z];
  const csfk_plane &out = args.frame.out.plane[blockIdx.z];
  const int n_regions = args.frame.n_regions;
  const int byte0 = blockIdx.x * TILE_BYTES, y0 = blockIdx.y * TILE_ROWS;
  const tile mine = {
    byte0, min (byte0 + TILE_BYTES, in.row_bytes), y0, min (y0 + TILE_ROWS, in.rows)
  };
  const size_t bits = (size_t) in.data | (size_t) out.data | (size_t) in.stride |
      (size_t) out.stride | (size_t) mine.byte1;
  const bool whole = bits % TILE_WORD == 0;
  uint4 words[ROWS];
  bool any = false;

  if (byte0 >= in.row_bytes || y0 >= in.rows)
    return;
  if (whole)
    load_words<BLOCK_Y> (in, mine, words);
  else
    move_tile<false> (in, mine, bits, staged);
  /* While the loads are under way. */
  if (n_regions > 0)
    any = look_at_chunk (args, 0, mine, grids, masks);
  if (whole && !any && n_regions <= CHUNK) {
    store_words<BLOCK_Y> (out, mine, words);
    return;
  }

  if (whole)
#pragma unroll
    for (int i = 0; i < ROWS; i++)
      staged[i][threadIdx.y][threadIdx.x] = words[i];
  __syncwarp ();
#pragma unroll 1
  for (int base = 0;;) {
    if (any)
      cover_tile (args, mine, grids, masks, staged);
    base += CHUNK;
    if (base >= n_regions)
      break;
    /* The next ones take the places of these. */
    __syncthreads ();
    any = look_at_chunk (args, base, mine, grids, masks);
  }
  __syncwarp ();
  if (whole) {
#pragma unroll
    for (int i = 0; i < ROWS; i++)
      words[i] = staged[i][threadIdx.y][threadIdx.x];
    store_words<BLOCK_Y> (out, mine, words);
  } else {
    move_tile<true> (out, mine, bits, staged);
  }
}
