/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* sobel on the GPU: one launch, in which a thread loads a patch a few pixels wide and a few rows high
 * with all loads in flight at once, sets the chroma below it to neutral, then slides a 3x3 window down
 * the patch.  sobel.c says what is computed.  Knows kernel.h only.
 *
 * With Q the sum of 2x2 neighbouring samples, and two of them across a pixel's corners subtracted,
 *   A = Q (right below) - Q (left above),  B = Q (right above) - Q (left below),
 * the gradients are gx = A + B and gy = A - B, so that gx^2 + gy^2 = 2 (A^2 + B^2).  A and B are made
 * two pixels at a time in halves of 16 bits, which hold whole numbers up to 2048 exactly: what is
 * larger, and rounded, saturates the result anyway.  For the same reason gx and gy need no limit of
 * their own. */
#include "../kernel.h"
#include "sobel.h"

#define MAGIC_FLOAT 8388608.0f  /* 2^23: the low bits of the sum with a number count ones */

/* ---- pairs of halves ---------------------------------------------------------------------------
 * Pixels k and k + PIXELS / 2 of a patch lie in the lower and the upper 16 bits of a word. */

static __device__ __forceinline__ unsigned
add_pairs (unsigned a, unsigned b)
{
  unsigned sum;

  asm ("add.rn.f16x2 %0, %1, %2;" : "=r" (sum) : "r" (a), "r" (b));
  return sum;
}

static __device__ __forceinline__ unsigned
subtract_pairs (unsigned a, unsigned b)
{
  unsigned difference;

  asm ("sub.rn.f16x2 %0, %1, %2;" : "=r" (difference) : "r" (a), "r" (b));
  return difference;
}

static __device__ __forceinline__ void
to_floats (unsigned pair, float *lower, float *upper)
{
  asm ("{ .reg .f16 a, b; mov.b32 {a, b}, %2; cvt.f32.f16 %0, a; cvt.f32.f16 %1, b; }"
      : "=f" (*lower), "=f" (*upper) : "r" (pair));
}

/* sqrt.approx is off by 2^-23 of its result at most.  The callers add a quarter to the operand, half
 * of the squared magnitude, which keeps it further than that from every whole number. */
static __device__ __forceinline__ float
fast_sqrt (float value)
{
  float root;

  asm ("sqrt.approx.ftz.f32 %0, %1;" : "=f" (root) : "f" (value));
  return root;
}

/* ---- layouts -----------------------------------------------------------------------------------
 * How PIXELS neighbours lie in a row: BYTES each, WORDS words together.  load_edge() loads what
 * join_edges() needs of one pixel; join_edges() and to_pairs() make halves of samples; write() makes
 * the output words of PIXELS results.
 *
 * A sample of 8 bits in 16 is a half as it is, a subnormal one: the sample times 2^-24. */

#define SUBNORMAL_UNIT 0x1p-24f

/* Eight samples: 0, 1, 4, 5 and 2, 3, 6, 7. */
static __device__ __forceinline__ void
bytes_to_pairs (unsigned first, unsigned second, unsigned *pairs)
{
  pairs[0] = first & 0x00ff00ffu;
  pairs[1] = __byte_perm (first, 0, 0x4341);
  pairs[2] = second & 0x00ff00ffu;
  pairs[3] = __byte_perm (second, 0, 0x4341);
}

struct gray
{
  enum { BYTES = 1, PIXELS = CSFK_SOBEL_PIXELS (1), WORDS = 2, MAXIMUM = 255 };
  static constexpr float UNIT = SUBNORMAL_UNIT;

  static __device__ __forceinline__ unsigned
  load_edge (const unsigned char *pixel)
  {
    return *pixel;
  }

  static __device__ __forceinline__ unsigned
  join_edges (unsigned left, unsigned right, bool odd_row)
  {
    return __byte_perm (left, right, 0x5410);
  }

  static __device__ __forceinline__ void
  to_pairs (const unsigned *words, bool odd_row, unsigned *pairs)
  {
    bytes_to_pairs (__byte_perm (words[0], words[1], 0x5410),
        __byte_perm (words[0], words[1], 0x7632), pairs);
  }

  static __device__ __forceinline__ void
  write (const unsigned *result, const unsigned *in, unsigned *words)
  {
#pragma unroll
    for (int i = 0; i < WORDS; i++)
      words[i] = __byte_perm (__byte_perm (result[4 * i], result[4 * i + 1], 0x0040),
          __byte_perm (result[4 * i + 2], result[4 * i + 3], 0x0040), 0x5410);
  }
};

template <int LUMA_BYTE>
struct packed_yuv
{
  enum { BYTES = 2, PIXELS = CSFK_SOBEL_PIXELS (2), WORDS = 4, MAXIMUM = 255 };
  static constexpr float UNIT = SUBNORMAL_UNIT;

  static __device__ __forceinline__ unsigned
  load_edge (const unsigned char *pixel)
  {
    return pixel[LUMA_BYTE];
  }

  static __device__ __forceinline__ unsigned
  join_edges (unsigned left, unsigned right, bool odd_row)
  {
    return __byte_perm (left, right, 0x5410);
  }

  static __device__ __forceinline__ void
  to_pairs (const unsigned *words, bool odd_row, unsigned *pairs)
  {
    const unsigned select = LUMA_BYTE == 0 ? 0x6420 : 0x7531;

    bytes_to_pairs (__byte_perm (words[0], words[2], select),
        __byte_perm (words[1], words[3], select), pairs);
  }

  static __device__ __forceinline__ void
  write (const unsigned *result, const unsigned *in, unsigned *words)
  {
#pragma unroll
    for (int i = 0; i < WORDS; i++) {
      unsigned luma = __byte_perm (result[2 * i], result[2 * i + 1], 0x0040);

      words[i] = __byte_perm (luma, 0x80, LUMA_BYTE == 0 ? 0x4140 : 0x1404);
    }
  }
};

/* Ten bits: a sum of four of them would be too large for a half.  So in even rows samples are taken as
 * 1024 + sample, in odd rows as sample - 2047, which each are a mask and an exclusive or, and the sum
 * of two rows lies about zero.  In A and B what was added cancels. */
struct p010
{
  enum { BYTES = 2, PIXELS = CSFK_SOBEL_PIXELS (2), WORDS = 4, MAXIMUM = 1023 };
  static constexpr float UNIT = 1;

  static __device__ __forceinline__ unsigned
  load_edge (const unsigned char *pixel)
  {
    return *(const unsigned short *) pixel;
  }

  static __device__ __forceinline__ unsigned
  to_pair (unsigned samples, bool odd_row)
  {
    return (samples >> 6 & 0x03ff03ffu) ^ (odd_row ? 0xe7ffe7ffu : 0x64006400u);
  }

  static __device__ __forceinline__ unsigned
  join_edges (unsigned left, unsigned right, bool odd_row)
  {
    return to_pair (__byte_perm (left, right, 0x5410), odd_row);
  }

  static __device__ __forceinline__ void
  to_pairs (const unsigned *words, bool odd_row, unsigned *pairs)
  {
#pragma unroll
    for (int i = 0; i < WORDS; i++)
      pairs[i] = to_pair (__byte_perm (words[i / 2], words[i / 2 + 2], i % 2 ? 0x7632 : 0x5410),
          odd_row);
  }

  static __device__ __forceinline__ void
  write (const unsigned *result, const unsigned *in, unsigned *words)
  {
#pragma unroll
    for (int i = 0; i < WORDS; i++)
      words[i] = __byte_perm (result[2 * i], result[2 * i + 1], 0x5410) << 6;
  }
};

/* 256 times the luma of a pixel, plus 128: what is left of it is byte 1.  Red, green and blue are bytes
 * 0, 1, 2 of the word, or 2, 1, 0; byte 3 is not looked at. */
static __device__ __forceinline__ unsigned
weigh_rgb (unsigned pixel, bool red_first)
{
#if __CUDA_ARCH__ >= 610
  return __dp4a (pixel, red_first ? 0x0013b736u : 0x0036b713u, 128u);
#else
  unsigned first = pixel & 255, last = pixel >> 16 & 255;

  return (pixel >> 8 & 255) * 183 + (red_first ? first : last) * 54 +
      (red_first ? last : first) * 19 + 128;
#endif
}

static __device__ __forceinline__ unsigned
join_weighed (unsigned lower, unsigned upper)
{
  return __byte_perm (lower, upper, 0x6521);
}

template <bool RED_FIRST>
struct rgb
{
  enum { BYTES = 3, PIXELS = CSFK_SOBEL_PIXELS (3), WORDS = 6, MAXIMUM = 255 };
  static constexpr float UNIT = SUBNORMAL_UNIT;

  static __device__ __forceinline__ unsigned
  load_edge (const unsigned char *pixel)
  {
    return pixel[0] | pixel[1] << 8 | pixel[2] << 16;
  }

  static __device__ __forceinline__ unsigned
  join_edges (unsigned left, unsigned right, bool odd_row)
  {
    return join_weighed (weigh_rgb (left, RED_FIRST), weigh_rgb (right, RED_FIRST));
  }

  static __device__ __forceinline__ unsigned
  weigh (const unsigned *words, int i)
  {
    int byte = 3 * i, word = byte / 4;
    unsigned next = word + 1 < WORDS ? words[word + 1] : 0;

    return weigh_rgb (byte % 4 == 0 ? words[word]
        : __byte_perm (words[word], next, 0x3210 + byte % 4 * 0x1111), RED_FIRST);
  }

  static __device__ __forceinline__ void
  to_pairs (const unsigned *words, bool odd_row, unsigned *pairs)
  {
#pragma unroll
    for (int k = 0; k < PIXELS / 2; k++)
      pairs[k] = join_weighed (weigh (words, k), weigh (words, k + PIXELS / 2));
  }

  static __device__ __forceinline__ void
  write (const unsigned *result, const unsigned *in, unsigned *words)
  {
#pragma unroll
    for (int i = 0; i < PIXELS / 4; i++) {
      const unsigned *four = result + 4 * i;

      words[3 * i] = __byte_perm (four[0], four[1], 0x4000);
      words[3 * i + 1] = __byte_perm (four[1], four[2], 0x4400);
      words[3 * i + 2] = __byte_perm (four[2], four[3], 0x4440);
    }
  }
};

template <bool RED_FIRST>
struct rgba
{
  enum { BYTES = 4, PIXELS = CSFK_SOBEL_PIXELS (4), WORDS = 4, MAXIMUM = 255 };
  static constexpr float UNIT = SUBNORMAL_UNIT;

  static __device__ __forceinline__ unsigned
  load_edge (const unsigned char *pixel)
  {
    return *(const unsigned *) pixel;
  }

  static __device__ __forceinline__ unsigned
  join_edges (unsigned left, unsigned right, bool odd_row)
  {
    return join_weighed (weigh_rgb (left, RED_FIRST), weigh_rgb (right, RED_FIRST));
  }

  static __device__ __forceinline__ void
  to_pairs (const unsigned *words, bool odd_row, unsigned *pairs)
  {
#pragma unroll
    for (int k = 0; k < PIXELS / 2; k++)
      pairs[k] = join_weighed (weigh_rgb (words[k], RED_FIRST),
          weigh_rgb (words[k + PIXELS / 2], RED_FIRST));
  }

  static __device__ __forceinline__ void
  write (const unsigned *result, const unsigned *in, unsigned *words)
  {
#pragma unroll
    for (int i = 0; i < WORDS; i++)
      words[i] = __byte_perm (result[i], in[i], 0x7000);
  }
};

/* ---- memory ------------------------------------------------------------------------------------ */

template <int WORDS>
static __device__ __forceinline__ void
load_words (const unsigned char *from, unsigned *words)
{
  if constexpr (WORDS == 4) {
    uint4 v = *(const uint4 *) from;

    words[0] = v.x, words[1] = v.y, words[2] = v.z, words[3] = v.w;
  } else {
#pragma unroll
    for (int i = 0; i < WORDS; i += 2) {
      uint2 v = ((const uint2 *) from)[i / 2];

      words[i] = v.x, words[i + 1] = v.y;
    }
  }
}

template <int WORDS>
static __device__ __forceinline__ void
store_words (unsigned char *to, const unsigned *words)
{
  if constexpr (WORDS == 1) {
    *(unsigned *) to = words[0];
  } else if constexpr (WORDS == 4) {
    *(uint4 *) to = make_uint4 (words[0], words[1], words[2], words[3]);
  } else {
#pragma unroll
    for (int i = 0; i < WORDS; i += 2)
      ((uint2 *) to)[i / 2] = make_uint2 (words[i], words[i + 1]);
  }
}

/* A warp's lanes lie side by side.  Where each lane's share is not a power of two bytes, storing it
 * directly would write every sector three times in parts: pass it through shared memory instead. */
template <int WORDS>
static __device__ __forceinline__ void
store_warp (unsigned char *warp_to, const unsigned *words)
{
  __shared__ uint2 stage[CSFK_SOBEL_BLOCK_Y][CSFK_SOBEL_BLOCK_X * WORDS / 2];
  uint2 *mine = stage[threadIdx.y];
  const int lane = threadIdx.x;

#pragma unroll
  for (int i = 0; i < WORDS / 2; i++)
    mine[lane * (WORDS / 2) + i] = make_uint2 (words[2 * i], words[2 * i + 1]);
  __syncwarp ();
#pragma unroll
  for (int i = 0; i < WORDS / 2; i++)
    ((uint2 *) warp_to)[i * 32 + lane] = mine[i * 32 + lane];
  __syncwarp ();
}

/* Rows are counted from 0 and strides are positive: with both unsigned it is one instruction. */
static __device__ __forceinline__ unsigned char *
at_row (unsigned char *column, const csfk_plane &plane, int y)
{
  return column + (size_t) (unsigned) y * (unsigned) plane.stride;
}

/* What the compiler is to keep in registers, instead of making it anew in each row. */
static __device__ __forceinline__ unsigned char *
keep (unsigned char *pointer)
{
  asm ("" : "+l" (pointer));
  __builtin_assume (__isGlobal (pointer));      /* which it cannot see any more */
  return pointer;
}

static __device__ __forceinline__ float
keep (float value)
{
  asm ("" : "+f" (value));
  return value;
}

/* ---- the filter, whole words at a time ---------------------------------------------------------- */

static __device__ __forceinline__ size_t
get_bits (const csfk_plane &plane)
{
  return (size_t) plane.data | (size_t) plane.stride;
}

/* Whether a thread's share of a row is made of whole words that can be loaded and stored. */
template <class Layout>
static __device__ __forceinline__ bool
is_aligned (const csfk_image &in, const csfk_image &out)
{
  size_t bits = get_bits (in.plane[0]) | get_bits (out.plane[0]);

  if (Layout::BYTES <= 2 && out.n_planes == 2)
    bits |= get_bits (out.plane[1]);
  if (Layout::BYTES == 1 && out.n_planes == 3)
    bits |= (get_bits (out.plane[1]) | get_bits (out.plane[2])) * 2;
  return (bits & (Layout::WORDS == 4 ? 15 : 7)) == 0;
}

template <int WORDS, int ROWS>
static __device__ __forceinline__ void
fill_words (const csfk_plane &out, int x, int y0, unsigned word)
{
  const unsigned words[4] = { word, word, word, word };
  unsigned char *column = keep (out.data + x);

#pragma unroll
  for (int i = 0; i < ROWS; i++)
    if (y0 + i < out.rows)
      store_words<WORDS> (at_row (column, out, y0 + i), words);
}

/* Neutral chroma, 128 or 512 in the upper ten of sixteen bits, for the patch at x0, y0. */
template <class Layout>
static __device__ __forceinline__ void
fill_chroma (const csfk_image &out, int x0, int y0)
{
  constexpr int ROWS = CSFK_SOBEL_ROWS (Layout::BYTES) / 2;

  if constexpr (Layout::MAXIMUM > 255) {
    fill_words<4, ROWS> (out.plane[1], 2 * x0, y0 / 2, 0x80008000u);
  } else if constexpr (Layout::BYTES == 1) {
    if (out.n_planes == 2) {
      fill_words<2, ROWS> (out.plane[1], x0, y0 / 2, 0x80808080u);
    } else if (out.n_planes == 3) {
      fill_words<1, ROWS> (out.plane[1], x0 / 2, y0 / 2, 0x80808080u);
      fill_words<1, ROWS> (out.plane[2], x0 / 2, y0 / 2, 0x80808080u);
    }
  }
}

/* The samples of a patch and of one pixel all round it, as they lie in memory. */
template <class Layout>
struct patch
{
  enum { ROWS = CSFK_SOBEL_ROWS (Layout::BYTES) };

  unsigned words[ROWS + 2][Layout::WORDS], left[ROWS + 2], right[ROWS + 2];

  __device__ __forceinline__ void
  load (const csfk_image &image, int x0, int y0)
  {
    constexpr int BYTES = Layout::BYTES;
    const csfk_plane &in = image.plane[0];
    unsigned char *column = keep (in.data + x0 * BYTES);
    unsigned char *left_column = keep (in.data + max (x0 - 1, 0) * BYTES);
    unsigned char *right_column =
        keep (in.data + min (x0 + Layout::PIXELS, image.width - 1) * BYTES);

#pragma unroll
    for (int r = 0; r < ROWS + 2; r++) {
      const int y = min (r == 0 ? max (y0 - 1, 0) : y0 + r - 1, image.height - 1);

      load_words<Layout::WORDS> (at_row (column, in, y), words[r]);
      left[r] = Layout::load_edge (at_row (left_column, in, y));
      right[r] = Layout::load_edge (at_row (right_column, in, y));
    }
  }
};

/* How A and B become a result. */
template <class Layout>
struct scale
{
  static constexpr float SQUARE = Layout::UNIT * Layout::UNIT;
  static constexpr int FULL = Layout::MAXIMUM, LIMITED = 219 * (FULL + 1) / 256;

  float most;                   /* of A^2 + B^2, and a quarter, of a result that is not saturated */
  float to_result;              /* what is added to the root: black, and what makes bits of a float */

  __device__ __forceinline__ scale (bool limited)
  {
    most = keep (((limited ? LIMITED * LIMITED : FULL * FULL) * 0.5f + 0.25f) * SQUARE);
    to_result = keep (limited ? MAGIC_FLOAT + 16 * (FULL + 1) / 256 : MAGIC_FLOAT);
  }
};

/* One row of results from the 2x2 sums above and below it: word k is those left of pixels k and
 * k + N. */
template <class Layout>
static __device__ __forceinline__ void
get_magnitudes (const unsigned *above, const unsigned *below, const scale<Layout> &scale,
    unsigned *result)
{
  constexpr int N = Layout::PIXELS / 2;

#pragma unroll
  for (int k = 0; k < N; k++) {
    float a[2], b[2];

    to_floats (subtract_pairs (below[k + 1], above[k]), &a[0], &a[1]);
    to_floats (subtract_pairs (above[k + 1], below[k]), &b[0], &b[1]);
#pragma unroll
    for (int i = 0; i < 2; i++) {
      float half = fmaf (a[i], a[i], fmaf (b[i], b[i], 0.25f * scale.SQUARE));

      result[k + i * N] = __float_as_uint (__fmaf_rz (fast_sqrt (fminf (half, scale.most)),
              1.41421356f / Layout::UNIT, scale.to_result));
    }
  }
}

template <class Layout>
static __device__ __forceinline__ void
filter_patch (const csfk_frame &frame, int x0, int y0, bool whole_warp)
{
  constexpr int N = Layout::PIXELS / 2, BYTES = Layout::BYTES, WORDS = Layout::WORDS;
  constexpr int ROWS = CSFK_SOBEL_ROWS (BYTES);
  const csfk_plane &out = frame.out.plane[0];
  const scale<Layout> scale (frame.in.range == CSFK_RANGE_LIMITED);
  unsigned char *to = at_row (out.data + x0 * BYTES, out, y0);
  patch<Layout> in;
  /* Words 0 .. N - 1: the samples of a row; word N: those left and right of them. */
  unsigned samples[2][N + 1], sums[2][N + 1];

  fill_chroma<Layout> (frame.out, x0, y0);
  in.load (frame.in, x0, y0);

#pragma unroll
  for (int r = 0; r < ROWS + 2; r++) {
    unsigned *here = samples[r % 2], *below = sums[r % 2], two[N + 1];

    Layout::to_pairs (in.words[r], r % 2, here);
    here[N] = Layout::join_edges (in.left[r], in.right[r], r % 2);
    if (r == 0)
      continue;
#pragma unroll
    for (int k = 0; k <= N; k++)
      two[k] = add_pairs (samples[0][k], samples[1][k]);
    below[0] = add_pairs (__byte_perm (two[N], two[N - 1], 0x5410), two[0]);
#pragma unroll
    for (int k = 1; k < N; k++)
      below[k] = add_pairs (two[k - 1], two[k]);
    below[N] = add_pairs (two[N - 1], __byte_perm (two[0], two[N], 0x7632));
    if (r == 1)
      continue;
    if (y0 + r - 2 >= frame.in.height)
      return;

    unsigned result[Layout::PIXELS], packed[WORDS];

    get_magnitudes<Layout> (sums[(r + 1) % 2], below, scale, result);
    Layout::write (result, in.words[r - 1], packed);
    if (BYTES == 3 && whole_warp)
      store_warp<WORDS> (to - threadIdx.x * (Layout::PIXELS * BYTES), packed);
    else
      store_words<WORDS> (to, packed);
    to += (unsigned) out.stride;
  }
}

/* Returns whether it has been done. */
template <class Layout>
static __device__ __forceinline__ bool
filter (const csfk_frame &frame, int x0, int y0)
{
  const bool wide = is_aligned<Layout> (frame.in, frame.out)
      && x0 + Layout::PIXELS <= frame.in.width && y0 < frame.in.height;
  const bool whole_warp = Layout::BYTES == 3 && __all_sync (0xffffffffu, wide);

  if (wide)
    filter_patch<Layout> (frame, x0, y0, whole_warp);
  return wide;
}

/* ---- the filter, byte by byte --------------------------------------------------------------------
 * For rows that are not aligned, and for the last pixels of a row. */

static __device__ __forceinline__ int
get_luma (const unsigned char *row, int x, int format)
{
  switch (format) {
    case CSFK_FORMAT_YUY2:
      return row[2 * x];
    case CSFK_FORMAT_UYVY:
      return row[2 * x + 1];
    case CSFK_FORMAT_P010_10LE:
      return (row[2 * x] | row[2 * x + 1] << 8) >> 6;
    case CSFK_FORMAT_RGB:
    case CSFK_FORMAT_BGR:
      row += 3 * x;
      break;
    case CSFK_FORMAT_RGBx:
    case CSFK_FORMAT_BGRx:
    case CSFK_FORMAT_RGBA:
    case CSFK_FORMAT_BGRA:
      row += 4 * x;
      break;
    default:
      return row[x];
  }
  return weigh_rgb (row[0] | row[1] << 8 | row[2] << 16, format == CSFK_FORMAT_RGB
      || format == CSFK_FORMAT_RGBx || format == CSFK_FORMAT_RGBA) >> 8;
}

/* from: the pixel's input bytes. */
static __device__ __forceinline__ void
put_result (unsigned char *pixel, const unsigned char *from, int result, int format,
    int pixel_bytes)
{
  if (format == CSFK_FORMAT_P010_10LE) {
    pixel[0] = (unsigned char) (result << 6);
    pixel[1] = (unsigned char) (result >> 2);
  } else if (pixel_bytes == 2) {
    pixel[0] = (unsigned char) (format == CSFK_FORMAT_YUY2 ? result : 128);
    pixel[1] = (unsigned char) (format == CSFK_FORMAT_YUY2 ? 128 : result);
  } else {
    for (int b = 0; b < pixel_bytes; b++)
      pixel[b] = b == 3 ? from[3] : (unsigned char) result;
  }
}

/* Columns x0 - 1 to x1 of three rows make pixels x0 to x1 - 1 of one. */
static __device__ __forceinline__ void
filter_row (const csfk_frame &frame, int x0, int x1, int y, int pixel_bytes)
{
  const csfk_plane &in = frame.in.plane[0];
  const int format = frame.in.format;
  const int step = format == CSFK_FORMAT_P010_10LE ? 4 : 1;
  const bool limited = frame.in.range == CSFK_RANGE_LIMITED;
  const int black = limited ? 16 * step : 0, limit = limited ? 219 * step : 256 * step - 1;
  const unsigned char *here = at_row (in.data, in, y);
  const unsigned char *above = y > 0 ? here - in.stride : here;
  const unsigned char *below = y + 1 < frame.in.height ? here + in.stride : here;
  unsigned char *to = at_row (frame.out.plane[0].data, frame.out.plane[0], y);
  int smooth[2] = { 0, 0 }, slope[2] = { 0, 0 };        /* of the two columns before */

#pragma unroll 1
  for (int x = x0 - 1; x <= x1; x++) {
    int column = min (max (x, 0), frame.in.width - 1);
    int top = get_luma (above, column, format), bottom = get_luma (below, column, format);
    int sum = top + 2 * get_luma (here, column, format) + bottom;

    if (x > x0) {
      float gx = (float) (sum - smooth[0]);
      float gy = (float) (slope[0] + 2 * slope[1] + bottom - top);
      float half = fmaf (gx, gx, fmaf (gy, gy, 0.5f)) * 0.5f;
      int magnitude = (int) (fast_sqrt (half) * 1.41421356f);
      size_t at = (size_t) (x - 1) * pixel_bytes;

      put_result (to + at, here + at, black + min (magnitude, limit), format, pixel_bytes);
    }
    smooth[0] = smooth[1], smooth[1] = sum;
    slope[0] = slope[1], slope[1] = bottom - top;
  }
}

/* Chroma has as many bytes for the patch as luma has, or half of them, in half as many rows. */
static __device__ __forceinline__ void
fill_bytes (const csfk_plane &out, int x, int y0, int bytes, int rows, bool p010)
{
#pragma unroll 1
  for (int y = y0; y < min (y0 + rows, out.rows); y++)
#pragma unroll 1
    for (int b = x; b < min (x + bytes, out.row_bytes); b++)
      at_row (out.data, out, y)[b] = p010 && b % 2 == 0 ? 0 : 128;
}

static __device__ __forceinline__ void
filter_bytes (const csfk_frame &frame, int x0, int y0, int pixel_bytes)
{
  const int pixels = CSFK_SOBEL_PIXELS (pixel_bytes), rows = CSFK_SOBEL_ROWS (pixel_bytes);
  const int width = frame.out.plane[0].row_bytes / pixel_bytes;
  const int planes = frame.in.n_planes;

  if (x0 >= width)
    return;
#pragma unroll 1
  for (int y = y0; y < min (y0 + rows, frame.in.height); y++)
    filter_row (frame, x0, min (x0 + pixels, width), y, pixel_bytes);
  if (planes > 1) {
    const int bytes = pixels * pixel_bytes / (planes - 1), x = x0 * pixel_bytes / (planes - 1);
    const bool p010 = pixel_bytes == 2;

    fill_bytes (frame.out.plane[1], x, y0 / 2, bytes, rows / 2, p010);
    if (planes == 3)
      fill_bytes (frame.out.plane[2], x, y0 / 2, bytes, rows / 2, p010);
  }
}

static __device__ __forceinline__ int
get_pixel_bytes (int format)
{
  switch (format) {
    case CSFK_FORMAT_GRAY8:
    case CSFK_FORMAT_NV12:
    case CSFK_FORMAT_I420:
      return 1;
    case CSFK_FORMAT_YUY2:
    case CSFK_FORMAT_UYVY:
    case CSFK_FORMAT_P010_10LE:
      return 2;
    case CSFK_FORMAT_RGB:
    case CSFK_FORMAT_BGR:
      return 3;
    default:
      return 4;
  }
}

/* Blocks on a multiprocessor, which limits the registers: the most at which none spill. */
#if __CUDA_ARCH__ == 900
#define BLOCKS 9
#elif __CUDA_ARCH__ >= 1200
#define BLOCKS 7
#else
#define BLOCKS 8
#endif

extern "C" __global__ void __launch_bounds__ (CSFK_SOBEL_BLOCK_X *CSFK_SOBEL_BLOCK_Y, BLOCKS)
csfk_sobel (const csfk_frame frame)
{
  const int bytes = get_pixel_bytes (frame.in.format);
  const int x0 = (int) (blockIdx.x * CSFK_SOBEL_BLOCK_X + threadIdx.x) * CSFK_SOBEL_PIXELS (bytes);
  const int y0 = (int) (blockIdx.y * CSFK_SOBEL_BLOCK_Y + threadIdx.y) * CSFK_SOBEL_ROWS (bytes);
  bool done = false;            /* a whole warp comes here, for it stores together */

  switch (frame.in.format) {
    case CSFK_FORMAT_GRAY8:
    case CSFK_FORMAT_NV12:
    case CSFK_FORMAT_I420:
      done = filter<gray> (frame, x0, y0);
      break;
    case CSFK_FORMAT_YUY2:
      done = filter<packed_yuv<0> > (frame, x0, y0);
      break;
    case CSFK_FORMAT_UYVY:
      done = filter<packed_yuv<1> > (frame, x0, y0);
      break;
    case CSFK_FORMAT_P010_10LE:
      done = filter<p010> (frame, x0, y0);
      break;
    case CSFK_FORMAT_RGB:
      done = filter<rgb<true> > (frame, x0, y0);
      break;
    case CSFK_FORMAT_BGR:
      done = filter<rgb<false> > (frame, x0, y0);
      break;
    case CSFK_FORMAT_RGBx:
    case CSFK_FORMAT_RGBA:
      done = filter<rgba<true> > (frame, x0, y0);
      break;
    case CSFK_FORMAT_BGRx:
    case CSFK_FORMAT_BGRA:
      done = filter<rgba<false> > (frame, x0, y0);
      break;
  }
  if (!done)
    filter_bytes (frame, x0, y0, bytes);
}
