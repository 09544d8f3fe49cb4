/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tiles of a plane on their way through a block of BLOCK_X x BLOCK_Y threads, for kernels that copy a picture and
 * change some of it: as 16-byte words in registers, or in shared memory where a block has something to change or the
 * picture is not aligned.  Device code only; knows kernel.h. */
#ifndef CSFK_TILES_CUH
#define CSFK_TILES_CUH

#include "kernel.h"

/* One thread's bytes of a row. */
enum
{
  TILE_WORD = 16
};

/* The bytes and rows of a plane that a block writes. */
struct tile
{
  int byte0, byte1, y0, y1;
};

/* This thread's words of a tile, row after row BLOCK_Y apart. */
template <int BLOCK_Y, int ROWS>
static __device__ __forceinline__ void
load_words (const csfk_plane &in, const tile &mine, uint4 (&words)[ROWS])
{
  const int x = mine.byte0 + (int) threadIdx.x * TILE_WORD, y = mine.y0 + (int) threadIdx.y;
  const unsigned char *from = in.data + (size_t) y * in.stride + x;
  const size_t step = (size_t) in.stride * BLOCK_Y;

#pragma unroll
  for (int i = 0; i < ROWS; i++)
    if (x < mine.byte1 && y + i * BLOCK_Y < mine.y1)
      words[i] = *(const uint4 *) (from + i * step);
}

template <int BLOCK_Y, int ROWS>
static __device__ __forceinline__ void
store_words (const csfk_plane &out, const tile &mine, const uint4 (&words)[ROWS])
{
  const int x = mine.byte0 + (int) threadIdx.x * TILE_WORD, y = mine.y0 + (int) threadIdx.y;
  unsigned char *to = out.data + (size_t) y * out.stride + x;
  const size_t step = (size_t) out.stride * BLOCK_Y;

#pragma unroll
  for (int i = 0; i < ROWS; i++)
    if (x < mine.byte1 && y + i * BLOCK_Y < mine.y1)
      *(uint4 *) (to + i * step) = words[i];
}

/* A warp's rows of a tile between memory and shared memory, in smaller words. */
template <typename Part, bool store, int ROWS, int BLOCK_Y, int BLOCK_X>
static __device__ __forceinline__ void
move_parts (const csfk_plane &plane, const tile &mine,
    uint4 (&words)[ROWS][BLOCK_Y][BLOCK_X])
{
  const int n = (mine.byte1 - mine.byte0) / (int) sizeof (Part);
  const int y = mine.y0 + (int) threadIdx.y;
  const size_t step = (size_t) plane.stride * BLOCK_Y;
  unsigned char *rows = plane.data + (size_t) y * plane.stride + mine.byte0;

#pragma unroll 1
  for (int x = threadIdx.x; x < n; x += BLOCK_X) {
    Part parts[ROWS];

#pragma unroll
    for (int i = 0; i < ROWS; i++)
      if (store)
        parts[i] = ((const Part *) words[i][threadIdx.y])[x];
      else if (y + i * BLOCK_Y < mine.y1)
        parts[i] = ((const Part *) (rows + i * step))[x];
#pragma unroll
    for (int i = 0; i < ROWS; i++)
      if (!store)
        ((Part *) words[i][threadIdx.y])[x] = parts[i];
      else if (y + i * BLOCK_Y < mine.y1)
        ((Part *) (rows + i * step))[x] = parts[i];
  }
}

/* For what is not aligned, and for the end of a row that is no whole word.  `bits`: what all of
 * its places are multiples of. */
template <bool store, int ROWS, int BLOCK_Y, int BLOCK_X>
static __device__ __forceinline__ void
move_tile (const csfk_plane &plane, const tile &mine, size_t bits,
    uint4 (&words)[ROWS][BLOCK_Y][BLOCK_X])
{
  if (bits % sizeof (unsigned) == 0)
    move_parts<unsigned, store> (plane, mine, words);
  else
    move_parts<unsigned char, store> (plane, mine, words);
}

#endif
