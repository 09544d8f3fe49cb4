/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* temporaldenoise on the GPU: one launch for all planes (blockIdx.z).  A thread loads a patch of
 * the picture and of its past, a few samples wide and a few rows high, with all loads in flight at
 * once, then goes down it row by row; what lies left and right of the patch comes from the
 * neighbour lanes, so the first and the last lane of a warp store nothing.  temporaldenoise.c says
 * what is computed.  Knows kernel.h and words.cuh only.
 *
 * Numbers of 16 bits are worked on as the float 2^23 + number, which a byte permute makes in one
 * instruction.  All sums and products are whole numbers, or multiples of 2^-16, small enough to be
 * exact, and fused multiply-adds that round towards zero beside 2^23 round down. */
#include "../kernel.h"
#include "temporaldenoise.h"

#include "../words.cuh"

#define MAGIC 0x4b000000u       /* 2^23 as a float: its low bits count ones */
#define MAGIC_FLOAT 8388608.0f
#define ALL_LANES 0xffffffffu

static __device__ __forceinline__ int
clamp (int value, int low, int high)
{
  return min (max (value, low), high);
}

/* Byte `byte` of the words, times 256, beside 2^23. */
static __device__ __forceinline__ float
get_byte (const unsigned *words, int byte)
{
  return __uint_as_float (__byte_perm (words[byte / 4], MAGIC, 0x7404 | byte % 4 << 4));
}

/* The 16 bits at an even byte, beside 2^23. */
static __device__ __forceinline__ float
get_short (const unsigned *words, int byte)
{
  return __uint_as_float (__byte_perm (words[byte / 4], MAGIC, byte % 4 ? 0x7432 : 0x7410));
}

/* Byte 3 of each of four words. */
static __device__ __forceinline__ unsigned
pack_fourth (const unsigned *words)
{
  return __byte_perm (__byte_perm (words[0], words[1], 0x0073),
      __byte_perm (words[2], words[3], 0x0073), 0x5410);
}

static __device__ __forceinline__ float
get_ten (const unsigned *words, int byte)
{
  const unsigned word = words[byte / 4] & 0xffc0ffc0u;

  return get_short (&word, byte % 4);
}

/* ---- layouts --------------------------------------------------------------------------------- */

/* A layout says how a thread's chunk of a row lies in memory: WORDS words of the picture, holding
 * GROUPS groups of JOINT components that share one motion; of each component, SAMPLES neighbours
 * (component 0) or OTHERS (the rest).  get() makes a float of sample i of component c.  write()
 * makes the output's words of the new state, which it gets in pairs of 16 bits, rounded already,
 * and of `carried`, the fourth bytes of four-byte pixels.  get_source() is the byte of a row that
 * byte `byte` of chunk number `chunk` comes from, the last visible sample standing for those right
 * of it. */

static __device__ __forceinline__ int
get_unit_source (int byte, int chunk, int unit_bytes, int units, int columns)
{
  return min (chunk * units + byte / unit_bytes, columns - 1) * unit_bytes + byte % unit_bytes;
}

struct gray
{
  enum { WORDS = 2, GROUPS = 1, JOINT = 1, SAMPLES = 8, OTHERS = 8, TENS = 0 };
  enum { ROWS = CSFK_TEMPORALDENOISE_ROWS (1) };

  static __device__ __forceinline__ float
  get (const unsigned *words, int c, int i)
  {
    return get_byte (words, i);
  }

  static __device__ __forceinline__ void
  write (const unsigned (*pairs)[4], unsigned carried, unsigned *words)
  {
    words[0] = __byte_perm (pairs[0][0], pairs[0][1], 0x7531);
    words[1] = __byte_perm (pairs[0][2], pairs[0][3], 0x7531);
  }

  static __device__ __forceinline__ int
  get_source (int byte, int chunk, int width)
  {
    return get_unit_source (byte, chunk, 1, 8, width);
  }
};

/* NV12's chroma.  width is in samples of this plane. */
struct chroma
{
  enum { WORDS = 2, GROUPS = 2, JOINT = 1, SAMPLES = 4, OTHERS = 4, TENS = 0 };
  enum { ROWS = CSFK_TEMPORALDENOISE_ROWS (1) };

  static __device__ __forceinline__ float
  get (const unsigned *words, int c, int i)
  {
    return get_byte (words, 2 * i + c);
  }

  static __device__ __forceinline__ void
  write (const unsigned (*pairs)[4], unsigned carried, unsigned *words)
  {
    words[0] = __byte_perm (pairs[0][0], pairs[1][0], 0x7351);
    words[1] = __byte_perm (pairs[0][1], pairs[1][1], 0x7351);
  }

  static __device__ __forceinline__ int
  get_source (int byte, int chunk, int width)
  {
    return get_unit_source (byte, chunk, 2, 4, width);
  }
};

struct p010
{
  enum { WORDS = 2, GROUPS = 1, JOINT = 1, SAMPLES = 4, OTHERS = 4, TENS = 1 };
  enum { ROWS = CSFK_TEMPORALDENOISE_ROWS (2) };

  static __device__ __forceinline__ float
  get (const unsigned *words, int c, int i)
  {
    return get_ten (words, 2 * i);
  }

  static __device__ __forceinline__ void
  write (const unsigned (*pairs)[4], unsigned carried, unsigned *words)
  {
#pragma unroll
    for (int i = 0; i < WORDS; i++)
      words[i] = pairs[0][i] & 0xffc0ffc0u;
  }

  static __device__ __forceinline__ int
  get_source (int byte, int chunk, int width)
  {
    return get_unit_source (byte, chunk, 2, 4, width);
  }
};

struct p010_chroma
{
  enum { WORDS = 2, GROUPS = 2, JOINT = 1, SAMPLES = 2, OTHERS = 2, TENS = 1 };
  enum { ROWS = CSFK_TEMPORALDENOISE_ROWS (2) };

  static __device__ __forceinline__ float
  get (const unsigned *words, int c, int i)
  {
    return get_ten (words, 4 * i + 2 * c);
  }

  static __device__ __forceinline__ void
  write (const unsigned (*pairs)[4], unsigned carried, unsigned *words)
  {
#pragma unroll
    for (int i = 0; i < WORDS; i++)
      words[i] = __byte_perm (pairs[0][0], pairs[1][0], i ? 0x7632 : 0x5410) &
          0xffc0ffc0u;
  }

  static __device__ __forceinline__ int
  get_source (int byte, int chunk, int width)
  {
    return get_unit_source (byte, chunk, 4, 2, width);
  }
};

/* YUY2 and UYVY. */
template <int LUMA_BYTE>
struct pairs
{
  enum { WORDS = 2, GROUPS = 3, JOINT = 1, SAMPLES = 4, OTHERS = 2, TENS = 0 };
  enum { ROWS = CSFK_TEMPORALDENOISE_ROWS (2) };

  static __device__ __forceinline__ float
  get (const unsigned *words, int c, int i)
  {
    return get_byte (words, c == 0 ? 2 * i + LUMA_BYTE : 4 * i + 2 * (c - 1) + 1 - LUMA_BYTE);
  }

  static __device__ __forceinline__ void
  write (const unsigned (*pairs)[4], unsigned carried, unsigned *words)
  {
#pragma unroll
    for (int i = 0; i < WORDS; i++) {
      unsigned uv = __byte_perm (pairs[1][0], pairs[2][0], i ? 0x0073 : 0x0051);

      words[i] = __byte_perm (pairs[0][i], uv, LUMA_BYTE == 0 ? 0x5341 : 0x3514);
    }
  }

  static __device__ __forceinline__ int
  get_source (int byte, int chunk, int width)
  {
    return byte % 2 == LUMA_BYTE ? get_unit_source (byte, chunk, 2, 4, width)
        : get_unit_source (byte, chunk, 4, 2, width / 2 + width % 2);
  }
};

struct rgb
{
  enum { WORDS = 3, GROUPS = 1, JOINT = 3, SAMPLES = 4, OTHERS = 4, TENS = 0 };
  enum { ROWS = CSFK_TEMPORALDENOISE_ROWS (3) };

  static __device__ __forceinline__ float
  get (const unsigned *words, int c, int i)
  {
    return get_byte (words, 3 * i + c);
  }

  static __device__ __forceinline__ void
  write (const unsigned (*pairs)[4], unsigned carried, unsigned *words)
  {
    words[0] = __byte_perm (__byte_perm (pairs[0][0], pairs[1][0], 0x3051), pairs[2][0], 0x3510);
    words[1] = __byte_perm (__byte_perm (pairs[1][0], pairs[2][0], 0x0073),
        __byte_perm (pairs[0][1], pairs[1][1], 0x0051), 0x5410);
    words[2] = __byte_perm (__byte_perm (pairs[0][1], pairs[1][1], 0x0073), pairs[2][1], 0x7105);
  }

  static __device__ __forceinline__ int
  get_source (int byte, int chunk, int width)
  {
    return get_unit_source (byte, chunk, 3, 4, width);
  }
};

struct rgba
{
  enum { WORDS = 4, GROUPS = 1, JOINT = 3, SAMPLES = 4, OTHERS = 4, TENS = 0 };
  enum { ROWS = CSFK_TEMPORALDENOISE_ROWS (4) };

  static __device__ __forceinline__ float
  get (const unsigned *words, int c, int i)
  {
    return get_byte (words, 4 * i + c);
  }

  static __device__ __forceinline__ void
  write (const unsigned (*pairs)[4], unsigned carried, unsigned *words)
  {
#pragma unroll
    for (int i = 0; i < WORDS; i++) {
      unsigned first = __byte_perm (pairs[0][i / 2], pairs[1][i / 2], i % 2 ? 0x0073 : 0x0051);
      unsigned last = __byte_perm (pairs[2][i / 2], carried, i % 2 * 2 + 1 + (4 + i) * 16);

      words[i] = __byte_perm (first, last, 0x5410);
    }
  }

  static __device__ __forceinline__ int
  get_source (int byte, int chunk, int width)
  {
    return get_unit_source (byte, chunk, 4, 4, width);
  }
};

/* ---- memory ---------------------------------------------------------------------------------- */

/* The same words as load_words, where the row is not aligned or ends before the last of them.  They
 * are passed down from the last place, since indexing them in a loop would put them into memory. */
template <class Layout>
static __device__ __forceinline__ void
gather_words (const unsigned char *row, int chunk, int width, unsigned *words)
{
#pragma unroll 1
  for (int byte = 0; byte < Layout::WORDS * 4; byte += 4) {
    unsigned word = 0;

#pragma unroll
    for (int b = 0; b < 4; b++)
      word |= (unsigned) row[Layout::get_source (byte + b, chunk, width)] << 8 * b;
#pragma unroll
    for (int i = 0; i < Layout::WORDS - 1; i++)
      words[i] = words[i + 1];
    words[Layout::WORDS - 1] = word;
  }
}

template <int WORDS>
static __device__ __forceinline__ void
gather_past (const unsigned char *row, int x0, int columns, unsigned *words)
{
  const unsigned short *past = (const unsigned short *) row;

#pragma unroll
  for (int w = 0; w < WORDS; w++)
    words[w] = past[min (x0 + 2 * w, columns - 1)] |
        (unsigned) past[min (x0 + 2 * w + 1, columns - 1)] << 16;
}

/* At most WORDS words, used up. */
template <int WORDS>
static __device__ __forceinline__ void
scatter_words (unsigned char *to, unsigned *words, int bytes)
{
#pragma unroll 1
  for (int byte = 0; byte < bytes; byte++) {
    to[byte] = (unsigned char) words[0];
#pragma unroll
    for (int i = 0; i < WORDS - 1; i++)
      words[i] = __byte_perm (words[i], words[i + 1], 0x4321);
    words[WORDS - 1] >>= 8;
  }
}

typedef csfk_temporaldenoise_component component;

/* ---- a patch --------------------------------------------------------------------------------- */

/* Where a thread works: chunk number `chunk` of a row, rows y0 on. */
struct place
{
  int chunk, y0, rows;
  bool present;                 /* there is such a chunk */
  bool last;                    /* it ends its row */
  bool whole;                   /* its samples are all visible */
  bool wide;                    /* and their bytes are aligned */
  bool storing;                 /* it is this thread's to store */
};

template <int SAMPLES, bool WIDE>
static __device__ __forceinline__ void
load_past (const unsigned char *row, const place &where, int columns, unsigned *past)
{
  if (WIDE || where.whole)
    load_words<SAMPLES / 2> (row + where.chunk * (SAMPLES * 2), past);
  else
    gather_past<SAMPLES / 2> (row, where.chunk * SAMPLES, columns, past);
}

template <class Layout, bool WIDE>
static __device__ __forceinline__ void
load_row (const csfk_plane &in, const component *state, const place &where, int y, unsigned *words,
    unsigned (*past)[4])
{
  const unsigned char *row = in.data + (size_t) y * in.stride;

  if (WIDE)
    load_words<Layout::WORDS> (row + where.chunk * (Layout::WORDS * 4), words);
  else
    gather_words<Layout> (row, where.chunk, state[0].columns, words);
#pragma unroll
  for (int c = 0; c < Layout::GROUPS * Layout::JOINT; c++) {
    const unsigned char *past_row = state[c].past + (size_t) y * state[c].stride;

    if (c == 0)
      load_past<Layout::SAMPLES, WIDE> (past_row, where, state[c].columns, past[c]);
    else
      load_past<Layout::OTHERS, WIDE> (past_row, where, state[c].columns, past[c]);
  }
}

template <class Layout, bool WIDE>
static __device__ __forceinline__ void
load_patch (const csfk_plane &in, const component *state, const place &where,
    unsigned (*words)[Layout::WORDS], unsigned (*past)[Layout::GROUPS * Layout::JOINT][4])
{
#pragma unroll
  for (int r = 0; r < Layout::ROWS + 2; r++)
    load_row<Layout, WIDE> (in, state, where, clamp (where.y0 + r - 1, 0, where.rows - 1),
        words[r], past[r]);
}

/* Neighbour lanes' words lie 12 bytes apart: storing them directly would write every sector three
 * times in parts.  Pass them through shared memory instead.  Storing lanes begin with lane 1. */
static __device__ __forceinline__ void
store_warp (unsigned char *to, const unsigned *words, bool storing)
{
  __shared__ unsigned stage[CSFK_TEMPORALDENOISE_BLOCK_Y][CSFK_TEMPORALDENOISE_LANES * 3];
  unsigned *mine = stage[threadIdx.y];
  const int lane = threadIdx.x, n_words = __popc (__ballot_sync (ALL_LANES, storing)) * 3;
  unsigned *warp_to = (unsigned *) (to - (lane - 1) * 12);

  if (storing)
#pragma unroll
    for (int i = 0; i < 3; i++)
      mine[(lane - 1) * 3 + i] = words[i];
  __syncwarp ();
#pragma unroll
  for (int i = 0; i < 3; i++)
    if (i * 32 + lane < n_words)
      warp_to[i * 32 + lane] = mine[i * 32 + lane];
  __syncwarp ();
}

template <class Layout>
static __device__ __forceinline__ void
store_row (const csfk_plane &out, const component *state, const place &where, bool staged, int y,
    const unsigned (*future)[4], unsigned carried)
{
  constexpr int WORDS = Layout::WORDS, COMPONENTS = Layout::GROUPS * Layout::JOINT;
  const unsigned half = Layout::TENS ? 0x00200020u : 0x00800080u;
  unsigned char *to = out.data + (size_t) y * out.stride + where.chunk * (WORDS * 4);
  unsigned rounded[COMPONENTS][4], words[WORDS];

#pragma unroll
  for (int c = 0; c < COMPONENTS; c++)
#pragma unroll
    for (int i = 0; i < (c == 0 ? Layout::SAMPLES : Layout::OTHERS) / 2; i++)
      rounded[c][i] = future[c][i] + half;
  Layout::write (rounded, carried, words);
  if (staged)
    store_warp (to, words, where.storing);
  if (!where.storing)
    return;
#pragma unroll
  for (int c = 0; c < COMPONENTS; c++) {
    unsigned char *future_row = state[c].future + (size_t) y * state[c].stride;

    if (c == 0)
      store_words<Layout::SAMPLES / 2> (future_row + where.chunk * (Layout::SAMPLES * 2),
          future[c]);
    else
      store_words<Layout::OTHERS / 2> (future_row + where.chunk * (Layout::OTHERS * 2),
          future[c]);
  }
  if (staged)
    return;
  if (where.wide)
    store_words<WORDS> (to, words);
  else
    scatter_words<WORDS> (to, words, min (WORDS * 4, out.row_bytes - where.chunk * WORDS * 4));
}

/* N shares of the new sample from changes summed down three rows.  All lanes take part. */
template <int N>
static __device__ __forceinline__ void
measure_shares (const float *down, const place &where, const csfk_temporaldenoise_args &args,
    float *shares)
{
  float left = __shfl_up_sync (ALL_LANES, down[N - 1], 1);
  float right = __shfl_down_sync (ALL_LANES, down[0], 1);
  float across[N + 1];

  across[0] = (where.chunk == 0 ? down[0] : left) + down[0];
#pragma unroll
  for (int i = 1; i < N; i++)
    across[i] = down[i - 1] + down[i];
  across[N] = down[N - 1] + (where.last ? down[N - 1] : right);
#pragma unroll
  for (int i = 0; i < N; i++) {
    float part = __fmaf_rz (across[i] + across[i + 1], args.slope, args.start);

    part = fminf (fmaxf (part, args.lowest), MAGIC_FLOAT + CSFK_TEMPORALDENOISE_ONE);
    shares[i] = fmaf (part, 1.0f / CSFK_TEMPORALDENOISE_ONE,
        -MAGIC_FLOAT / CSFK_TEMPORALDENOISE_ONE);
  }
}

template <class Layout>
static __device__ __forceinline__ void
filter (const csfk_temporaldenoise_args &args, const place &where)
{
  const csfk_plane &in = args.frame.in.plane[blockIdx.z];
  const csfk_plane &out = args.frame.out.plane[blockIdx.z];
  const component *state = &args.component[blockIdx.z];
  constexpr int ROWS = Layout::ROWS, JOINT = Layout::JOINT, GROUPS = Layout::GROUPS;
  constexpr int COMPONENTS = GROUPS * JOINT, SAMPLES = Layout::SAMPLES;
  const bool staged = Layout::WORDS == 3 &&
      __all_sync (ALL_LANES, !where.storing || where.wide);
  unsigned words[ROWS + 2][Layout::WORDS], past[ROWS + 2][COMPONENTS][4];
  unsigned carried[2];
  float delta[2][COMPONENTS][SAMPLES], change[2][GROUPS][SAMPLES], sum[2][GROUPS][SAMPLES];

  if (where.present && where.wide)
    load_patch<Layout, true> (in, state, where, words, past);
  else if (where.present)
    load_patch<Layout, false> (in, state, where, words, past);
#pragma unroll
  for (int r = 0; r < ROWS + 2; r++) {
    const int now = r % 2, before = (r + 1) % 2;
    unsigned future[COMPONENTS][4];

    carried[now] = 0;
    if constexpr (Layout::WORDS == 4)
      carried[now] = pack_fourth (words[r]);
#pragma unroll
    for (int g = 0; g < GROUPS; g++)
#pragma unroll
      for (int i = 0; i < (g == 0 ? SAMPLES : Layout::OTHERS); i++) {
#pragma unroll
        for (int c = g * JOINT; c < (g + 1) * JOINT; c++) {
          float size;

          delta[now][c][i] = Layout::get (words[r], c, i) - get_short (past[r][c], 2 * i);
          size = fabsf (delta[now][c][i]);
          change[now][g][i] = c > g * JOINT ? change[now][g][i] + size : size;
        }
        sum[now][g][i] = change[before][g][i] + change[now][g][i];
      }
    if (r < 2)
      continue;
#pragma unroll
    for (int g = 0; g < GROUPS; g++) {
      const int n = g == 0 ? SAMPLES : Layout::OTHERS;
      float down[SAMPLES], shares[SAMPLES];

#pragma unroll
      for (int i = 0; i < n; i++)
        down[i] = sum[before][g][i] + sum[now][g][i];
      if (g == 0)
        measure_shares<SAMPLES> (down, where, args, shares);
      else
        measure_shares<Layout::OTHERS> (down, where, args, shares);
#pragma unroll
      for (int c = g * JOINT; c < (g + 1) * JOINT; c++)
#pragma unroll
        for (int i = 0; i < n; i += 2) {
          float even = __fmaf_rz (shares[i], delta[before][c][i],
              get_short (past[r - 1][c], 2 * i));
          float odd = __fmaf_rz (shares[i + 1], delta[before][c][i + 1],
              get_short (past[r - 1][c], 2 * i + 2));

          future[c][i / 2] = __byte_perm (__float_as_uint (even), __float_as_uint (odd), 0x5410);
        }
    }
    if (where.y0 + r - 2 < where.rows)
      store_row<Layout> (out, state, where, staged, where.y0 + r - 2, future, carried[before]);
  }
}

/* ---- the kernel ------------------------------------------------------------------------------ */

template <class Layout>
static __device__ __forceinline__ void
filter_plane (const csfk_temporaldenoise_args &args)
{
  constexpr int BYTES = Layout::WORDS * 4;
  const csfk_plane &in = args.frame.in.plane[blockIdx.z];
  const csfk_plane &out = args.frame.out.plane[blockIdx.z];
  const int lane = threadIdx.x;
  const int n_chunks = (out.row_bytes + BYTES - 1) / BYTES;
  const int align = BYTES == 12 ? 3 : BYTES - 1;
  const size_t bits = (size_t) in.data | (size_t) out.data | (size_t) in.stride |
      (size_t) out.stride;
  place where;

  where.chunk = (int) blockIdx.x * CSFK_TEMPORALDENOISE_LANES + lane - 1;
  where.y0 = (int) (blockIdx.y * CSFK_TEMPORALDENOISE_BLOCK_Y + threadIdx.y) * Layout::ROWS;
  where.rows = in.rows;
  where.present = where.chunk >= 0 && where.chunk < n_chunks;
  where.last = where.chunk == n_chunks - 1;
  where.whole = (where.chunk + 1) * Layout::SAMPLES <= args.component[blockIdx.z].columns;
  where.wide = where.whole && (bits & align) == 0;
  where.storing = where.present && lane > 0 && lane <= CSFK_TEMPORALDENOISE_LANES;
  /* The same for all lanes of a warp. */
  if (where.y0 >= where.rows || where.chunk - lane + 1 >= n_chunks)
    return;
  filter<Layout> (args, where);
}

extern "C" __global__ void
__launch_bounds__ (CSFK_TEMPORALDENOISE_BLOCK_X *CSFK_TEMPORALDENOISE_BLOCK_Y, 3)
csfk_temporaldenoise (const csfk_temporaldenoise_args args)
{
  switch (args.frame.in.format) {
    case CSFK_FORMAT_GRAY8:
    case CSFK_FORMAT_NV12:
    case CSFK_FORMAT_I420:
      if (blockIdx.z > 0 && args.frame.in.format == CSFK_FORMAT_NV12)
        filter_plane<chroma> (args);
      else
        filter_plane<gray> (args);
      break;
    case CSFK_FORMAT_YUY2:
      filter_plane<pairs<0> > (args);
      break;
    case CSFK_FORMAT_UYVY:
      filter_plane<pairs<1> > (args);
      break;
    case CSFK_FORMAT_P010_10LE:
      if (blockIdx.z > 0)
        filter_plane<p010_chroma> (args);
      else
        filter_plane<p010> (args);
      break;
    case CSFK_FORMAT_RGB:
    case CSFK_FORMAT_BGR:
      filter_plane<rgb> (args);
      break;
    case CSFK_FORMAT_RGBx:
    case CSFK_FORMAT_BGRx:
    case CSFK_FORMAT_RGBA:
    case CSFK_FORMAT_BGRA:
      filter_plane<rgba> (args);
      break;
  }
}
