/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* cornerdetect on the GPU.  csfk_cornerdetect copies the picture.  csfk_cornerdetect_emit looks for corners,
 * a tile for each block: luma into shared memory; four pixels a thread through a quick test, which lists the
 * few that may be corners; their scores; and of these the ones to append.  cornerdetect.c says what is
 * computed.  Knows kernel.h only.
 *
 * Numbers of 16 bits go in pairs through the same instructions: two pixels, or a difference and its
 * opposite.  256 is added to each, so that none is negative and no pair needs a carry. */
#include "../kernel.h"
#include "cornerdetect.h"

enum
{
  RADIUS = CSFK_CORNERDETECT_RADIUS,
  THREADS = CSFK_CORNERDETECT_THREADS,
  TILE_X = CSFK_CORNERDETECT_TILE_X,
  TILE_Y = CSFK_CORNERDETECT_TILE_Y,
  /* Scores are those of four columns and one row more than the tile on every side. */
  SCORE_MARGIN_X = 4,
  SCORE_MARGIN_Y = 1,
  SCORE_X = TILE_X + 2 * SCORE_MARGIN_X,
  SCORE_Y = TILE_Y + 2 * SCORE_MARGIN_Y,
  /* Luma likewise: four columns and three rows more than the scores. */
  LUMA_MARGIN_X = SCORE_MARGIN_X + 4,
  LUMA_MARGIN_Y = SCORE_MARGIN_Y + RADIUS,
  LUMA_X = TILE_X + 2 * LUMA_MARGIN_X,
  LUMA_Y = TILE_Y + 2 * LUMA_MARGIN_Y,
  /* Pixels that a thread loads at a time. */
  LOAD = 8,
  N_CIRCLE = 16,
  BIAS = 256
};

static_assert (SCORE_X == 4 * 32 && TILE_X % LOAD == 0 && LUMA_MARGIN_X % LOAD == 0,
    "a warp's lanes have four pixels each, and loads are aligned");

/* ---- the copy -------------------------------------------------------------------------------- */

template <typename Word>
static __device__ __forceinline__ void
copy_plane (const csfk_plane &in, const csfk_plane &out)
{
  constexpr int BYTES = (int) sizeof (Word), ROWS = CSFK_CORNERDETECT_COPY_ROWS;
  const int x = (int) (blockIdx.x * CSFK_CORNERDETECT_COPY_X + threadIdx.x) * BYTES;
  const int y0 = (int) (blockIdx.y * CSFK_CORNERDETECT_COPY_Y * ROWS + threadIdx.y);
  const int end = min (x + BYTES, in.row_bytes);
  Word words[ROWS];

  if (x >= in.row_bytes)
    return;
#pragma unroll
  for (int i = 0; i < ROWS; i++) {
    const int y = y0 + i * CSFK_CORNERDETECT_COPY_Y;

    if (y < in.rows && end == x + BYTES)
      words[i] = *(const Word *) (in.data + (size_t) y * in.stride + x);
  }
#pragma unroll
  for (int i = 0; i < ROWS; i++) {
    const int y = y0 + i * CSFK_CORNERDETECT_COPY_Y;

    if (y < in.rows && end == x + BYTES)
      *(Word *) (out.data + (size_t) y * out.stride + x) = words[i];
    else if (y < in.rows)
#pragma unroll 1
      for (int b = x; b < end; b++)
        out.data[(size_t) y * out.stride + b] = in.data[(size_t) y * in.stride + b];
  }
}

extern "C" __global__ void
__launch_bounds__ (CSFK_CORNERDETECT_COPY_X *CSFK_CORNERDETECT_COPY_Y)
csfk_cornerdetect (const csfk_cornerdetect_args args)
{
  const csfk_plane &in = args.frame.in.plane[blockIdx.z], &out = args.frame.out.plane[blockIdx.z];
  const size_t bits = (size_t) in.data | (size_t) out.data | (size_t) in.stride |
      (size_t) out.stride;

  if ((bits & 15) == 0)
    copy_plane<uint4> (in, out);
  else if ((bits & 7) == 0)
    copy_plane<uint2> (in, out);
  else if ((bits & 3) == 0)
    copy_plane<unsigned> (in, out);
  else if ((bits & 1) == 0)
    copy_plane<unsigned short> (in, out);
  else
    copy_plane<unsigned char> (in, out);
}

/* ---- luma ------------------------------------------------------------------------------------ */

/* Red, green and blue, or the other way round, are the lowest bytes of the word. */
static __device__ __forceinline__ unsigned
weigh (unsigned pixel, bool red_first)
{
#if __CUDA_ARCH__ >= 610
  return __dp4a (pixel, red_first ? 0x0013b736u : 0x0036b713u, 128u) >> 8;
#else
  unsigned first = pixel & 255, last = pixel >> 16 & 255;

  return ((pixel >> 8 & 255) * 183 + (red_first ? first : last) * 54 +
      (red_first ? last : first) * 19 + 128) >> 8;
#endif
}

static __device__ __forceinline__ unsigned
pack (unsigned a, unsigned b, unsigned c, unsigned d)
{
  return __byte_perm (__byte_perm (a, b, 0x0040), __byte_perm (c, d, 0x0040), 0x5410);
}

/* A layout says how pixels lie in a row: BYTES each, aligned to ALIGN where eight may be loaded at once. */

struct gray
{
  enum { BYTES = 1, ALIGN = 8 };

  static __device__ __forceinline__ unsigned get (const unsigned char *at) { return at[0]; }

  static __device__ __forceinline__ uint2 get_eight (const unsigned char *at)
  {
    return *(const uint2 *) at;
  }
};

/* Luma is every other byte; of ten bits the upper eight are. */
template <int LUMA_BYTE>
struct pairs
{
  enum { BYTES = 2, ALIGN = 16 };

  static __device__ __forceinline__ unsigned get (const unsigned char *at) { return at[LUMA_BYTE]; }

  static __device__ __forceinline__ uint2 get_eight (const unsigned char *at)
  {
    const uint4 words = *(const uint4 *) at;
    const unsigned which = LUMA_BYTE == 0 ? 0x6420 : 0x7531;

    return make_uint2 (__byte_perm (words.x, words.y, which),
        __byte_perm (words.z, words.w, which));
  }
};

template <bool RED_FIRST>
struct rgb
{
  enum { BYTES = 3, ALIGN = 8 };

  static __device__ __forceinline__ unsigned get (const unsigned char *at)
  {
    return weigh (at[0] | at[1] << 8 | at[2] << 16, RED_FIRST);
  }

  /* Four of three words; the fourth byte is the next pixel's: its weight is zero. */
  static __device__ __forceinline__ unsigned get_four (unsigned a, unsigned b, unsigned c)
  {
    return pack (weigh (a, RED_FIRST), weigh (__byte_perm (a, b, 0x6543), RED_FIRST),
        weigh (__byte_perm (b, c, 0x5432), RED_FIRST), weigh (c >> 8, RED_FIRST));
  }

  static __device__ __forceinline__ uint2 get_eight (const unsigned char *at)
  {
    const uint2 *words = (const uint2 *) at;
    const uint2 a = words[0], b = words[1], c = words[2];

    return make_uint2 (get_four (a.x, a.y, b.x), get_four (b.y, c.x, c.y));
  }
};

template <bool RED_FIRST>
struct rgba
{
  enum { BYTES = 4, ALIGN = 16 };

  static __device__ __forceinline__ unsigned get (const unsigned char *at)
  {
    return weigh (at[0] | at[1] << 8 | at[2] << 16, RED_FIRST);
  }

  static __device__ __forceinline__ unsigned get_four (uint4 words)
  {
    return pack (weigh (words.x, RED_FIRST), weigh (words.y, RED_FIRST),
        weigh (words.z, RED_FIRST), weigh (words.w, RED_FIRST));
  }

  static __device__ __forceinline__ uint2 get_eight (const unsigned char *at)
  {
    const uint4 *words = (const uint4 *) at;
    const uint4 a = words[0], b = words[1];

    return make_uint2 (get_four (a), get_four (b));
  }
};

/* Luma of eight pixels from x on, some of which the picture may not have: any will do for these. */
template <class Layout>
static __device__ __forceinline__ uint2
gather_eight (const unsigned char *row, int x, int width)
{
  unsigned words[2] = { 0, 0 };

#pragma unroll 1
  for (int i = 0; i < 8; i++) {
    const int nearest = min (max (x + i, 0), width - 1);

    words[0] = __byte_perm (words[0], words[1], 0x4321);
    words[1] = words[1] >> 8 | Layout::get (row + nearest * Layout::BYTES) << 24;
  }
  return make_uint2 (words[0], words[1]);
}

template <class Layout>
static __device__ __forceinline__ void
load_tile (const csfk_image &in, int x0, int y0, unsigned char *luma)
{
  const csfk_plane &plane = in.plane[0];
  const bool aligned = (((size_t) plane.data | (size_t) plane.stride) & (Layout::ALIGN - 1)) == 0;

  for (int i = threadIdx.x; i < LUMA_X / LOAD * LUMA_Y; i += THREADS) {
    const int row = i / (LUMA_X / LOAD), column = i % (LUMA_X / LOAD) * LOAD;
    const int x = x0 - LUMA_MARGIN_X + column, y = y0 - LUMA_MARGIN_Y + row;
    const unsigned char *from = plane.data +
        (size_t) min (max (y, 0), in.height - 1) * plane.stride;

    *(uint2 *) (luma + row * LUMA_X + column) = aligned && x >= 0 && x + LOAD <= in.width
        ? Layout::get_eight (from + x * Layout::BYTES) : gather_eight<Layout> (from, x, in.width);
  }
}

static __device__ __forceinline__ void
load_any (const csfk_image &in, int x0, int y0, unsigned char *luma)
{
  switch (in.format) {
    case CSFK_FORMAT_YUY2:
      load_tile<pairs<0> > (in, x0, y0, luma);
      break;
    case CSFK_FORMAT_UYVY:
    case CSFK_FORMAT_P010_10LE:
      load_tile<pairs<1> > (in, x0, y0, luma);
      break;
    case CSFK_FORMAT_RGB:
      load_tile<rgb<true> > (in, x0, y0, luma);
      break;
    case CSFK_FORMAT_BGR:
      load_tile<rgb<false> > (in, x0, y0, luma);
      break;
    case CSFK_FORMAT_RGBx:
    case CSFK_FORMAT_RGBA:
      load_tile<rgba<true> > (in, x0, y0, luma);
      break;
    case CSFK_FORMAT_BGRx:
    case CSFK_FORMAT_BGRA:
      load_tile<rgba<false> > (in, x0, y0, luma);
      break;
    default:
      load_tile<gray> (in, x0, y0, luma);
  }
}

/* ---- the quick test -------------------------------------------------------------------------- */

/* Of two pixels: bit 15 and bit 31 tell whether they may be corners.  A run of nine has one at least of any
 * two pixels that lie opposite each other.  limit: for each, what brings more than the threshold there. */
static __device__ __forceinline__ unsigned
test_two (unsigned up, unsigned down, unsigned left, unsigned right, unsigned here, unsigned limit)
{
  const unsigned bright = __vminu2 (__vmaxu2 (up, down), __vmaxu2 (left, right));
  const unsigned dark = __vmaxu2 (__vminu2 (up, down), __vminu2 (left, right));
  const unsigned bias = BIAS * 0x10001u;

  return (__vmaxu2 (bright + bias - here, here + bias - dark) + limit) & 0x80008000u;
}

/* Of four pixels; bit i is that of pixel i.  at: their luma. */
static __device__ __forceinline__ unsigned
test_four (const unsigned char *at, unsigned limit)
{
  const unsigned *row = (const unsigned *) at;
  const unsigned here = row[0], up = *(const unsigned *) (at - RADIUS * LUMA_X);
  const unsigned down = *(const unsigned *) (at + RADIUS * LUMA_X);
  /* The four that are three further left, and right. */
  const unsigned left = __byte_perm (row[-1], here, 0x4321);
  const unsigned right = __byte_perm (here, row[1], 0x6543);
  unsigned first = test_two (__byte_perm (up, 0, 0x4140), __byte_perm (down, 0, 0x4140),
      __byte_perm (left, 0, 0x4140), __byte_perm (right, 0, 0x4140),
      __byte_perm (here, 0, 0x4140), limit);
  unsigned last = test_two (__byte_perm (up, 0, 0x4342), __byte_perm (down, 0, 0x4342),
      __byte_perm (left, 0, 0x4342), __byte_perm (right, 0, 0x4342),
      __byte_perm (here, 0, 0x4342), limit);

  return first >> 15 & 1 | first >> 30 & 2 | last >> 13 & 4 | last >> 28 & 8;
}

/* ---- scores ---------------------------------------------------------------------------------- */

/* The place of the k-th pixel of the circle, counted from its middle. */
static __device__ constexpr int
get_offset (int k)
{
  /* Clockwise from the top: x, and a quarter later y. */
  constexpr int wave[N_CIRCLE] = { 0, 1, 2, 3, 3, 3, 2, 1, 0, -1, -2, -3, -3, -3, -2, -1 };

  return wave[k % N_CIRCLE] + wave[(k + 12) % N_CIRCLE] * LUMA_X;
}

/* The highest s for which nine neighbours of the circle are at least s brighter, or darker.  Pairs are how
 * much brighter, and how much darker, both with the bias. */
static __device__ __forceinline__ int
get_score (const unsigned char *at)
{
  const unsigned here = BIAS * 0x10001u + at[0] * 0xffffu;
  unsigned pixel[N_CIRCLE], two[N_CIRCLE], four[N_CIRCLE], best = 0;

#pragma unroll
  for (int k = 0; k < N_CIRCLE; k++)
    pixel[k] = here - at[get_offset (k)] * 0xffffu;
#pragma unroll
  for (int k = 0; k < N_CIRCLE; k++)
    two[k] = __vminu2 (pixel[k], pixel[(k + 1) % N_CIRCLE]);
#pragma unroll
  for (int k = 0; k < N_CIRCLE; k++)
    four[k] = __vminu2 (two[k], two[(k + 2) % N_CIRCLE]);
#pragma unroll
  for (int k = 0; k < N_CIRCLE; k++) {
    const unsigned eight = __vminu2 (four[k], four[(k + 4) % N_CIRCLE]);

    best = __vmaxu2 (best, __vminu2 (eight, pixel[(k + 8) % N_CIRCLE]));
  }
  return (int) max (best & 0xffff, best >> 16) - BIAS;
}

/* No neighbour has more, nor an earlier one as much. */
static __device__ __forceinline__ bool
is_strongest (const unsigned char *at)
{
  const int score = at[0];
  const int earlier = max (max (at[-SCORE_X - 1], at[-SCORE_X]), max (at[-SCORE_X + 1], at[-1]));
  const int later = max (max (at[1], at[SCORE_X - 1]), max (at[SCORE_X], at[SCORE_X + 1]));

  return score > earlier && score >= later;
}

/* ---- a tile ---------------------------------------------------------------------------------- */

struct tile
{
  uint2 luma[LUMA_X / LOAD * LUMA_Y];
  unsigned scores[SCORE_X / 4 * SCORE_Y];
  unsigned short list[SCORE_X * SCORE_Y];       /* places in `scores` */
  unsigned n_list;
};

/* Lists what may be a corner; everything else has no score. */
static __device__ __forceinline__ void
list_candidates (const csfk_cornerdetect_args &args, int x0, int y0, tile &mine)
{
  const unsigned char *luma = (const unsigned char *) mine.luma;
  const unsigned limit = (unsigned) (32767 - BIAS - args.params.threshold) * 0x10001u;
  const int column = (threadIdx.x & 31) * 4, x = x0 - SCORE_MARGIN_X + column;
  unsigned inside = 0;

  /* Where the circle lies in the picture. */
#pragma unroll
  for (int i = 0; i < 4; i++)
    inside |= x + i >= RADIUS && x + i < args.frame.in.width - RADIUS ? 1u << i : 0;
#pragma unroll
  for (int row = threadIdx.x / 32; row < SCORE_Y; row += THREADS / 32) {
    const int y = y0 - SCORE_MARGIN_Y + row;
    unsigned may = test_four (luma + (row + RADIUS) * LUMA_X + column + 4, limit) & inside;

    mine.scores[row * (SCORE_X / 4) + column / 4] = 0;
    if (y < RADIUS || y >= args.frame.in.height - RADIUS || may == 0)
      continue;
    unsigned place = atomicAdd (&mine.n_list, (unsigned) __popc (may));

    for (; may != 0; may &= may - 1)
      mine.list[place++] = (unsigned short) (row * SCORE_X + column + __ffs (may) - 1);
  }
}

extern "C" __global__ void
__launch_bounds__ (CSFK_CORNERDETECT_THREADS)
csfk_cornerdetect_emit (const csfk_cornerdetect_args args)
{
  __shared__ tile mine;
  const int x0 = (int) blockIdx.x * TILE_X, y0 = (int) blockIdx.y * TILE_Y;
  const unsigned char *luma = (const unsigned char *) mine.luma;
  unsigned char *scores = (unsigned char *) mine.scores;

  if (threadIdx.x == 0)
    mine.n_list = 0;
  load_any (args.frame.in, x0, y0, (unsigned char *) mine.luma);
  __syncthreads ();
  list_candidates (args, x0, y0, mine);
  __syncthreads ();
#pragma unroll 1
  for (unsigned i = threadIdx.x; i < mine.n_list; i += THREADS) {
    const int place = mine.list[i], row = place / SCORE_X, column = place % SCORE_X;
    const int score = get_score (luma + (row + RADIUS) * LUMA_X + column + 4);

    scores[place] = (unsigned char) (score > args.params.threshold ? score : 0);
  }
  __syncthreads ();
#pragma unroll 1
  for (unsigned i = threadIdx.x; i < mine.n_list; i += THREADS) {
    const int place = mine.list[i];
    const int row = place / SCORE_X - SCORE_MARGIN_Y, column = place % SCORE_X - SCORE_MARGIN_X;

    if (scores[place] == 0 || row < 0 || row >= TILE_Y || column < 0 || column >= TILE_X
        || (args.params.suppress && !is_strongest (scores + place)))
      continue;
    csfk_point *point = (csfk_point *) csfk_append (&args.frame.records);

    if (point) {
      point->x = (float) (x0 + column);
      point->y = (float) (y0 + row);
      point->score = (float) scores[place];
      point->level = 0;
    }
  }
}
