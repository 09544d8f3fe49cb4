/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* sobel on the GPU: one launch for all planes (blockIdx.z), plane 0 filtered, chroma set to
 * neutral.  A thread loads a patch a few pixels wide and a few rows high with all loads in flight
 * at once, then slides a 3x3 window down it.  sobel.c says what is computed.  Knows kernel.h only.
 *
 * Samples are worked on as the float 2^23 + sample, which a byte permute makes in one
 * instruction: only differences of samples occur, in which 2^23 cancels, and they are whole
 * numbers small enough to be exact.  Limiting gx and gy first is left out: one beyond the range
 * saturates the result anyway. */
#include "../kernel.h"
#include "sobel.h"

#define MAGIC 0x4b000000u       /* 2^23 as a float: its low bits count ones */
#define MAGIC_FLOAT 8388608.0f

static __device__ __forceinline__ int
clamp (int value, int low, int high)
{
  return min (max (value, low), high);
}

/* sqrt.approx is off by 2^-23 of its result at most.  The callers add half a step to the operand,
 * which keeps it further than that from every whole number. */
static __device__ __forceinline__ float
fast_sqrt (float value)
{
  float root;

  asm ("sqrt.approx.ftz.f32 %0, %1;" : "=f" (root) : "f" (value));
  return root;
}

/* Red, green and blue are bytes 0, 1, 2 of the word, or 2, 1, 0. */
static __device__ __forceinline__ float
rgb_to_luma (unsigned pixel, bool red_first)
{
#if __CUDA_ARCH__ >= 610
  unsigned sum = __dp4a (pixel, red_first ? 0x0013b736u : 0x0036b713u, 128u);
#else
  unsigned first = pixel & 255, last = pixel >> 16 & 255;
  unsigned sum = (pixel >> 8 & 255) * 183 + (red_first ? first : last) * 54 +
      (red_first ? last : first) * 19 + 128;
#endif
  return __uint_as_float (__byte_perm (sum, MAGIC, 0x7651));
}

/* A layout says how PIXELS neighbours lie in a row: BYTES each, WORDS words together.  sample()
 * makes a float of the i-th, write() the output words of PIXELS results; SCALE is one step of a
 * sample. */

struct gray
{
  enum { BYTES = 1, PIXELS = CSFK_SOBEL_PIXELS (1), WORDS = 2, SCALE = 1, MAXIMUM = 255 };

  static __device__ __forceinline__ float
  sample (const unsigned *words, int i)
  {
    return __uint_as_float (__byte_perm (words[i / 4], MAGIC, 0x7650 + i % 4));
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
struct pairs
{
  enum { BYTES = 2, PIXELS = CSFK_SOBEL_PIXELS (2), WORDS = 4, SCALE = 1, MAXIMUM = 255 };

  static __device__ __forceinline__ float
  sample (const unsigned *words, int i)
  {
    return __uint_as_float (__byte_perm (words[i / 2], MAGIC, 0x7650 + i % 2 * 2 + LUMA_BYTE));
  }

  static __device__ __forceinline__ void
  write (const unsigned *result, const unsigned *in, unsigned *words)
  {
#pragma unroll
    for (int i = 0; i < WORDS; i++) {
      unsigned luma = __byte_perm (result[2 * i], result[2 * i + 1], 0x5410) & 0x00ff00ffu;

      words[i] = LUMA_BYTE == 0 ? luma | 0x80008000u : luma << 8 | 0x00800080u;
    }
  }
};

struct p010
{
  enum { BYTES = 2, PIXELS = CSFK_SOBEL_PIXELS (2), WORDS = 4, SCALE = 64, MAXIMUM = 1023 };

  static __device__ __forceinline__ float
  sample (const unsigned *words, int i)
  {
    return __uint_as_float (__byte_perm (words[i / 2] & 0xffc0ffc0u, MAGIC,
            i % 2 ? 0x7632 : 0x7610));
  }

  static __device__ __forceinline__ void
  write (const unsigned *result, const unsigned *in, unsigned *words)
  {
#pragma unroll
    for (int i = 0; i < WORDS; i++)
      words[i] = __byte_perm (result[2 * i], result[2 * i + 1], 0x5410) << 6;
  }
};

template <bool RED_FIRST>
struct rgb
{
  enum { BYTES = 3, PIXELS = CSFK_SOBEL_PIXELS (3), WORDS = 6, SCALE = 1, MAXIMUM = 255 };

  static __device__ __forceinline__ float
  sample (const unsigned *words, int i)
  {
    int byte = 3 * i, word = byte / 4;
    unsigned next = word + 1 < WORDS ? words[word + 1] : 0;

    /* The fourth byte is the next pixel's: its weight is zero. */
    return rgb_to_luma (byte % 4 == 0 ? words[word]
        : __byte_perm (words[word], next, 0x3210 + byte % 4 * 0x1111), RED_FIRST);
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
  enum { BYTES = 4, PIXELS = CSFK_SOBEL_PIXELS (4), WORDS = 4, SCALE = 1, MAXIMUM = 255 };

  static __device__ __forceinline__ float
  sample (const unsigned *words, int i)
  {
    return rgb_to_luma (words[i], RED_FIRST);
  }

  static __device__ __forceinline__ void
  write (const unsigned *result, const unsigned *in, unsigned *words)
  {
#pragma unroll
    for (int i = 0; i < WORDS; i++)
      words[i] = __byte_perm (result[i], in[i], 0x7000);
  }
};

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
  if constexpr (WORDS == 4) {
    *(uint4 *) to = make_uint4 (words[0], words[1], words[2], words[3]);
  } else {
#pragma unroll
    for (int i = 0; i < WORDS; i += 2)
      ((uint2 *) to)[i / 2] = make_uint2 (words[i], words[i + 1]);
  }
}

/* One pixel, byte by byte, into the low bytes of a word. */
template <int BYTES>
static __device__ __forceinline__ unsigned
load_pixel (const unsigned char *row, int x)
{
  unsigned word = 0;

#pragma unroll
  for (int b = 0; b < BYTES; b++)
    word |= (unsigned) row[x * BYTES + b] << 8 * b;
  return word;
}

/* The slow path's words.  A structure of their own, because the compiler merges equal arrays of
 * inlined functions: one whose address a call takes would drag the fast path's registers into
 * memory. */
template <int WORDS>
struct slow_words
{
  unsigned at[WORDS];
};

/* The same words as load_words, where the row is not aligned or ends before the last of them. */
template <class Layout>
static __device__ __noinline__ slow_words<Layout::WORDS>
gather_words (const unsigned char *row, int x0, int width)
{
  slow_words<Layout::WORDS> words;

#pragma unroll 1
  for (int w = 0; w < Layout::WORDS; w++) {
    words.at[w] = 0;
    for (int b = 0; b < 4; b++) {
      int byte = 4 * w + b;
      int x = min (x0 + byte / Layout::BYTES, width - 1);

      words.at[w] |= (unsigned) row[x * Layout::BYTES + byte % Layout::BYTES] << 8 * b;
    }
  }
  return words;
}

template <class Layout>
static __device__ __noinline__ void
scatter_words (unsigned char *to, slow_words<Layout::WORDS> words, int bytes)
{
#pragma unroll 1
  for (int byte = 0; byte < bytes; byte++)
    to[byte] = (unsigned char) (words.at[byte / 4] >> byte % 4 * 8);
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

template <class Layout, bool WIDE>
static __device__ __forceinline__ void
filter (const csfk_frame &frame, int x0, int y0, int out_width, bool whole_warp)
{
  constexpr int PIXELS = Layout::PIXELS, BYTES = Layout::BYTES, ROWS = CSFK_SOBEL_ROWS (BYTES);
  constexpr int WORDS = Layout::WORDS;
  const csfk_plane &in = frame.in.plane[0];
  const csfk_plane &out = frame.out.plane[0];
  const int width = frame.in.width, height = frame.in.height;
  unsigned words[ROWS + 2][WORDS], left[ROWS + 2], right[ROWS + 2];

#pragma unroll
  for (int r = 0; r < ROWS + 2; r++) {
    const unsigned char *row = in.data + (size_t) clamp (y0 + r - 1, 0, height - 1) * in.stride;

    if constexpr (WIDE) {
      load_words<WORDS> (row + (size_t) x0 * BYTES, words[r]);
    } else {
      const slow_words<WORDS> gathered = gather_words<Layout> (row, x0, width);

#pragma unroll
      for (int i = 0; i < WORDS; i++)
        words[r][i] = gathered.at[i];
    }
    if constexpr (WIDE && BYTES == 4) {
      left[r] = ((const unsigned *) row)[max (x0 - 1, 0)];
      right[r] = ((const unsigned *) row)[min (x0 + PIXELS, width - 1)];
    } else {
      left[r] = load_pixel<BYTES> (row, clamp (x0 - 1, 0, width - 1));
      right[r] = load_pixel<BYTES> (row, min (x0 + PIXELS, width - 1));
    }
  }

  const bool limited = frame.in.range == CSFK_RANGE_LIMITED;
  const int black = limited ? 16 * (Layout::MAXIMUM + 1) / 256 : 0;
  const int limit = limited ? 219 * (Layout::MAXIMUM + 1) / 256 : Layout::MAXIMUM;
  const float square = (float) (Layout::SCALE * Layout::SCALE);
  const float half = square * 0.5f;
  const float most = (float) (limit * limit) * square + half;
  const float to_result = MAGIC_FLOAT + (float) black;
  float p[3][PIXELS + 2], d[3][PIXELS];

#pragma unroll
  for (int r = 0; r < ROWS + 2; r++) {
    float *below = p[r % 3], *above = p[(r + 1) % 3];

    below[0] = Layout::sample (&left[r], 0);
    below[PIXELS + 1] = Layout::sample (&right[r], 0);
#pragma unroll
    for (int i = 0; i < PIXELS; i++)
      below[i + 1] = Layout::sample (words[r], i);
#pragma unroll
    for (int i = 0; i < PIXELS; i++)
      d[r % 3][i] = below[i + 2] - below[i];
    if (r < 2 || y0 + r - 2 >= height)
      continue;

    unsigned result[PIXELS], packed[WORDS];
    float e[PIXELS + 2];

#pragma unroll
    for (int i = 0; i < PIXELS + 2; i++)
      e[i] = below[i] - above[i];
#pragma unroll
    for (int i = 0; i < PIXELS; i++) {
      float gx = fmaf (2.0f, d[(r + 2) % 3][i], d[r % 3][i] + d[(r + 1) % 3][i]);
      float gy = fmaf (2.0f, e[i + 1], e[i] + e[i + 2]);
      float root = fast_sqrt (fminf (fmaf (gx, gx, fmaf (gy, gy, half)), most));

      result[i] = __float_as_uint (__fmaf_rz (root, 1.0f / Layout::SCALE, to_result));
    }
    Layout::write (result, words[r - 1], packed);

    unsigned char *to = out.data + (size_t) (y0 + r - 2) * out.stride + (size_t) x0 * BYTES;

    if constexpr (!WIDE) {
      slow_words<WORDS> scattered;

#pragma unroll
      for (int i = 0; i < WORDS; i++)
        scattered.at[i] = packed[i];
      scatter_words<Layout> (to, scattered, min (PIXELS, out_width - x0) * BYTES);
    } else if (BYTES == 3 && whole_warp) {
      store_warp<WORDS> (to - threadIdx.x * (PIXELS * BYTES), packed);
    } else {
      store_words<WORDS> (to, packed);
    }
  }
}

template <class Layout>
static __device__ __forceinline__ void
filter_luma (const csfk_frame &frame, int out_width)
{
  const csfk_plane &in = frame.in.plane[0];
  const csfk_plane &out = frame.out.plane[0];
  const int x0 = (int) (blockIdx.x * CSFK_SOBEL_BLOCK_X + threadIdx.x) * Layout::PIXELS;
  const int y0 = (int) (blockIdx.y * CSFK_SOBEL_BLOCK_Y + threadIdx.y) *
      CSFK_SOBEL_ROWS (Layout::BYTES);
  const size_t bits = (size_t) in.data | (size_t) out.data | (size_t) in.stride |
      (size_t) out.stride;
  const bool aligned = (bits & (Layout::WORDS == 4 ? 15 : 7)) == 0;
  const bool wide = aligned && x0 + Layout::PIXELS <= frame.in.width;
  const bool whole_warp = Layout::BYTES == 3 && __all_sync (0xffffffffu, wide);

  if (x0 >= out_width || y0 >= frame.in.height)
    return;
  if (wide)
    filter<Layout, true> (frame, x0, y0, out_width, whole_warp);
  else
    filter<Layout, false> (frame, x0, y0, out_width, false);
}

/* Neutral chroma: 128, or 512 in the upper ten of sixteen bits. */
static __device__ __forceinline__ void
fill_neutral (const csfk_plane &out, bool p010_samples)
{
  const int bytes = p010_samples ? 16 : 8;
  const int rows = p010_samples ? CSFK_SOBEL_ROWS (2) : CSFK_SOBEL_ROWS (1);
  const unsigned word = p010_samples ? 0x80008000u : 0x80808080u;
  const int x = (int) (blockIdx.x * CSFK_SOBEL_BLOCK_X + threadIdx.x) * bytes;
  const int y0 = (int) (blockIdx.y * CSFK_SOBEL_BLOCK_Y + threadIdx.y) * rows;
  const size_t bits = (size_t) out.data | (size_t) out.stride;

  if (x >= out.row_bytes)
    return;
  for (int y = y0; y < min (y0 + rows, out.rows); y++) {
    unsigned char *to = out.data + (size_t) y * out.stride + x;

    if ((bits & (bytes - 1)) != 0 || x + bytes > out.row_bytes)
#pragma unroll 1
      for (int b = 0; b < bytes && x + b < out.row_bytes; b++)
        to[b] = (unsigned char) (word >> b % 4 * 8);
    else if (p010_samples)
      *(uint4 *) to = make_uint4 (word, word, word, word);
    else
      *(uint2 *) to = make_uint2 (word, word);
  }
}

extern "C" __global__ void __launch_bounds__ (CSFK_SOBEL_BLOCK_X *CSFK_SOBEL_BLOCK_Y, 3)
csfk_sobel (const csfk_frame frame)
{
  const int width = frame.in.width;

  if (blockIdx.z > 0) {
    fill_neutral (frame.out.plane[blockIdx.z], frame.in.format == CSFK_FORMAT_P010_10LE);
    return;
  }
  switch (frame.in.format) {
    case CSFK_FORMAT_GRAY8:
    case CSFK_FORMAT_NV12:
    case CSFK_FORMAT_I420:
      filter_luma<gray> (frame, width);
      break;
    case CSFK_FORMAT_YUY2:
      filter_luma<pairs<0> > (frame, frame.in.plane[0].row_bytes / 2);
      break;
    case CSFK_FORMAT_UYVY:
      filter_luma<pairs<1> > (frame, frame.in.plane[0].row_bytes / 2);
      break;
    case CSFK_FORMAT_P010_10LE:
      filter_luma<p010> (frame, width);
      break;
    case CSFK_FORMAT_RGB:
      filter_luma<rgb<true> > (frame, width);
      break;
    case CSFK_FORMAT_BGR:
      filter_luma<rgb<false> > (frame, width);
      break;
    case CSFK_FORMAT_RGBx:
    case CSFK_FORMAT_RGBA:
      filter_luma<rgba<true> > (frame, width);
      break;
    case CSFK_FORMAT_BGRx:
    case CSFK_FORMAT_BGRA:
      filter_luma<rgba<false> > (frame, width);
      break;
  }
}
