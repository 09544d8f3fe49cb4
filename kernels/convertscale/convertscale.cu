/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* convertscale on the GPU: one launch, in which a thread makes a few neighbouring samples in a few rows.
 * convertscale.h says what is computed; the general way here computes it for any sizes, alignments and
 * formats, and takes what lies beyond a vector in the short cuts of convertscale_fast.cuh and
 * convertscale_two.cuh.  Knows its own folder and kernel.h only.
 *
 * Rows are filtered by dp2a, which multiplies two bytes by two 16-bit weights: taps of a component are first
 * brought side by side by a byte permute. */
#include "convertscale.h"

#define PIXELS CSFK_CONVERTSCALE_PIXELS
#define PLACES CSFK_CONVERTSCALE_PLACES
#define COLOUR_BITS (CSFK_CONVERTSCALE_PLACES + CSFK_CONVERTSCALE_MATRIX_BITS)

typedef csfk_convertscale_plan convert_plan;

static __device__ __forceinline__ int
clamp (int value, int low, int high)
{
  return min (max (value, low), high);
}

/* addend + the lower (upper) two bytes times the two signed halves of `weights`. */
static __device__ __forceinline__ int
dot_low (int weights, unsigned bytes, int addend)
{
#if __CUDA_ARCH__ >= 610
  int sum;

  asm ("dp2a.lo.s32.u32 %0, %1, %2, %3;" : "=r" (sum) : "r" (weights), "r" (bytes), "r" (addend));
  return sum;
#else
  return addend + (short) weights * (int) (bytes & 255) + (weights >> 16) * (int) (bytes >> 8 & 255);
#endif
}

static __device__ __forceinline__ int
dot_high (int weights, unsigned bytes, int addend)
{
#if __CUDA_ARCH__ >= 610
  int sum;

  asm ("dp2a.hi.s32.u32 %0, %1, %2, %3;" : "=r" (sum) : "r" (weights), "r" (bytes), "r" (addend));
  return sum;
#else
  return addend + (short) weights * (int) (bytes >> 16 & 255) + (weights >> 16) * (int) (bytes >> 24);
#endif
}

/* addend + the four bytes times the four bytes of `weights`. */
static __device__ __forceinline__ unsigned
dot_four (unsigned weights, unsigned bytes, unsigned addend)
{
#if __CUDA_ARCH__ >= 610
  return __dp4a (bytes, weights, addend);
#else
  return addend + (weights & 255) * (bytes & 255) + (weights >> 8 & 255) * (bytes >> 8 & 255) +
      (weights >> 16 & 255) * (bytes >> 16 & 255) + (weights >> 24) * (bytes >> 24);
#endif
}

/* ---- taps ------------------------------------------------------------------------------------ */

/* The samples of one direction and their weights, two in a word. */
template <bool CUBIC>
struct taps
{
  int first, last;
  int weights[CUBIC ? 2 : 1];

  /* Moved inside. */
  __device__ __forceinline__ int
  at (int k) const
  {
    return clamp (first + k, 0, last);
  }
};

template <bool CUBIC>
static __device__ __forceinline__ taps<CUBIC>
find_taps (const csfk_convertscale_axis &axis, int o)
{
  const int position = (int) ((axis.start + o * axis.step) >>
      (CSFK_CONVERTSCALE_POSITION_BITS - CSFK_CONVERTSCALE_FRACTION_BITS));
  const int i = position >> CSFK_CONVERTSCALE_FRACTION_BITS, f = position & 255;
  taps<CUBIC> result;

  result.last = axis.last;
  if constexpr (CUBIC) {
    const int f2 = f * f, f3 = f2 * f;
    const int w0 = (-f3 + 512 * f2 - 65536 * f + 16384) >> 15;
    const int w2 = (-3 * f3 + 1024 * f2 + 65536 * f + 16384) >> 15;
    const int w3 = (f3 - 256 * f2 + 16384) >> 15;

    result.first = i - 1;
    result.weights[0] = (w0 & 0xffff) | (1024 - w0 - w2 - w3) * 65536;
    result.weights[1] = (w2 & 0xffff) | w3 * 65536;
  } else {
    result.first = i;
    result.weights[0] = (256 - f) | f << 16;
  }
  return result;
}

/* ---- sources: up to four bytes that lie at a place, in a word ----------------------------------- */

struct byte_source
{
  const unsigned char *data;
  int stride;

  __device__ __forceinline__ unsigned
  load (int x, int y) const
  {
    return data[(size_t) y * stride + x];
  }

  /* Four neighbours from x on lie in two whole words of the row. */
  __device__ __forceinline__ bool
  has_words (int x, int last) const
  {
    return (((size_t) data | stride) & 3) == 0 && x >= 0 && ((x + 3) | 3) <= last;
  }

  __device__ __forceinline__ unsigned
  load_words (int x, int y) const
  {
    const unsigned char *row = data + (size_t) y * stride;
    const unsigned low = *(const unsigned *) (row + (x & ~3));
    const unsigned high = *(const unsigned *) (row + ((x + 3) & ~3));

    return __byte_perm (low, high, 0x3210 + (x & 3) * 0x1111);
  }
};

/* Chroma of NV12 or I420. */
struct pair_source
{
  const unsigned char *cb, *cr;
  int cb_stride, cr_stride;
  int step;

  __device__ __forceinline__ unsigned
  load (int x, int y) const
  {
    return cb[(size_t) y * cb_stride + x * step] | cr[(size_t) y * cr_stride + x * step] << 8;
  }
};

struct word_source
{
  const unsigned char *data;
  int stride;

  __device__ __forceinline__ unsigned
  load (int x, int y) const
  {
    return *(const unsigned *) (data + (size_t) y * stride + 4 * x);
  }
};

/* Pixels of three bytes, or of four that are not aligned; FOURTH: of which the fourth is wanted. */
template <bool FOURTH>
struct pixel_source
{
  const unsigned char *data;
  int stride;
  int bytes;

  __device__ __forceinline__ unsigned
  load (int x, int y) const
  {
    const unsigned char *from = data + (size_t) y * stride + x * bytes;

    return from[0] | from[1] << 8 | from[2] << 16 | (FOURTH && bytes == 4 ? (unsigned) from[3] << 24 : 0u);
  }
};

static __device__ __forceinline__ pair_source
pair_source_of (const csfk_image &image)
{
  const csfk_plane &cb = image.plane[1];

  if (image.format == CSFK_FORMAT_NV12)
    return { cb.data, cb.data + 1, cb.stride, cb.stride, 2 };
  return { cb.data, image.plane[2].data, cb.stride, image.plane[2].stride, 1 };
}

/* ---- interpolation --------------------------------------------------------------------------- */

/* Of N components, rounded to so many places. */
template <int N, int TO_PLACES, class Source>
static __device__ __forceinline__ void
interpolate (const Source &source, const taps<false> &x, const taps<false> &y, int *results)
{
  const int shift = 2 * CSFK_CONVERTSCALE_FRACTION_BITS - TO_PLACES;
  const int upper = y.weights[0] & 0xffff, lower = y.weights[0] >> 16;
  const unsigned a = source.load (x.at (0), y.at (0)), b = source.load (x.at (1), y.at (0));
  const unsigned c = source.load (x.at (0), y.at (1)), d = source.load (x.at (1), y.at (1));

#pragma unroll
  for (int n = 0; n < N; n += 2) {
    const unsigned ab = __byte_perm (a, b, n == 0 ? 0x5140 : 0x7362);
    const unsigned cd = __byte_perm (c, d, n == 0 ? 0x5140 : 0x7362);

    results[n] = (dot_low (x.weights[0], ab, 0) * upper +
        (dot_low (x.weights[0], cd, 0) * lower + (1 << shift >> 1))) >> shift;
    if (n + 1 < N)
      results[n + 1] = (dot_high (x.weights[0], ab, 0) * upper +
          (dot_high (x.weights[0], cd, 0) * lower + (1 << shift >> 1))) >> shift;
  }
}

template <int N, int TO_PLACES, class Source>
static __device__ __forceinline__ void
interpolate (const Source &source, const taps<true> &x, const taps<true> &y, int *results)
{
  const int row_shift = CSFK_CONVERTSCALE_CUBIC_BITS - CSFK_CONVERTSCALE_ROW_BITS;
  const int row_half = 1 << row_shift >> 1;
  const int shift = CSFK_CONVERTSCALE_CUBIC_BITS + CSFK_CONVERTSCALE_ROW_BITS - TO_PLACES;
  int sums[N];

#pragma unroll
  for (int n = 0; n < N; n++)
    sums[n] = 1 << shift >> 1;
#pragma unroll
  for (int k = 0; k < 4; k++) {
    const int weight = k % 2 == 0 ? (short) y.weights[k / 2] : y.weights[k / 2] >> 16;
    const unsigned a = source.load (x.at (0), y.at (k)), b = source.load (x.at (1), y.at (k));
    const unsigned c = source.load (x.at (2), y.at (k)), d = source.load (x.at (3), y.at (k));

#pragma unroll
    for (int n = 0; n < N; n += 2) {
      const unsigned ab = __byte_perm (a, b, n == 0 ? 0x5140 : 0x7362);
      const unsigned cd = __byte_perm (c, d, n == 0 ? 0x5140 : 0x7362);

      sums[n] += (dot_low (x.weights[0], ab, dot_low (x.weights[1], cd, row_half)) >> row_shift) *
          weight;
      if (n + 1 < N)
        sums[n + 1] += (dot_high (x.weights[0], ab,
                dot_high (x.weights[1], cd, row_half)) >> row_shift) * weight;
    }
  }
#pragma unroll
  for (int n = 0; n < N; n++)
    results[n] = clamp (sums[n] >> shift, 0, 255 << TO_PLACES);
}

/* Four bytes that lie side by side are fetched together where they can be. */
template <int TO_PLACES>
static __device__ __forceinline__ void
interpolate_luma (const byte_source &source, const taps<false> &x, const taps<false> &y, int *result)
{
  interpolate<1, TO_PLACES> (source, x, y, result);
}

template <int TO_PLACES>
static __device__ __forceinline__ void
interpolate_luma (const byte_source &source, const taps<true> &x, const taps<true> &y, int *result)
{
  const int row_shift = CSFK_CONVERTSCALE_CUBIC_BITS - CSFK_CONVERTSCALE_ROW_BITS;
  const int shift = CSFK_CONVERTSCALE_CUBIC_BITS + CSFK_CONVERTSCALE_ROW_BITS - TO_PLACES;
  int sum = 1 << shift >> 1;

  if (!source.has_words (x.first, x.last)) {
    interpolate<1, TO_PLACES> (source, x, y, result);
    return;
  }
#pragma unroll
  for (int k = 0; k < 4; k++) {
    const int weight = k % 2 == 0 ? (short) y.weights[k / 2] : y.weights[k / 2] >> 16;
    const unsigned bytes = source.load_words (x.first, y.at (k));

    sum += (dot_low (x.weights[0], bytes,
            dot_high (x.weights[1], bytes, 1 << row_shift >> 1)) >> row_shift) * weight;
  }
  *result = clamp (sum >> shift, 0, 255 << TO_PLACES);
}

/* ---- results out ----------------------------------------------------------------------------- */

/* The lowest bytes of four numbers. */
static __device__ __forceinline__ unsigned
join_bytes (unsigned a, unsigned b, unsigned c, unsigned d)
{
  return __byte_perm (__byte_perm (a, b, 0x0040), __byte_perm (c, d, 0x0040), 0x5410);
}

/* The first n bytes of a word. */
static __device__ __forceinline__ void
store_bytes (unsigned char *to, unsigned word, int n)
{
  if (n >= 4 && ((size_t) to & 3) == 0) {
    *(unsigned *) to = word;
    return;
  }
#pragma unroll
  for (int b = 0; b < 4; b++)
    if (b < n)
      to[b] = (unsigned char) (word >> 8 * b);
}

/* PIXELS pixels, each in a word. */
struct pixel_words
{
  unsigned at[PIXELS];

  __device__ __forceinline__ void
  push (unsigned pixel)
  {
#pragma unroll
    for (int i = 0; i + 1 < PIXELS; i++)
      at[i] = at[i + 1];
    at[PIXELS - 1] = pixel;
  }
};

/* The first n of them. */
static __device__ __forceinline__ void
store_pixels (unsigned char *to, const pixel_words &words, int n, int bytes)
{
  const unsigned *pixels = words.at;

  if (bytes == 3) {
    store_bytes (to, __byte_perm (pixels[0], pixels[1], 0x4210), 3 * n);
    store_bytes (to + 4, __byte_perm (pixels[1], pixels[2], 0x5421), 3 * n - 4);
    store_bytes (to + 8, __byte_perm (pixels[2], pixels[3], 0x6542), 3 * n - 8);
  } else if (n == PIXELS && ((size_t) to & 15) == 0) {
    *(uint4 *) to = make_uint4 (pixels[0], pixels[1], pixels[2], pixels[3]);
  } else {
#pragma unroll
    for (int i = 0; i < PIXELS; i++)
      store_bytes (to + 4 * i, pixels[i], 4 * (n - i));
  }
}

/* The first n of four pairs of chroma. */
static __device__ __forceinline__ void
store_pairs (const csfk_image &out, int x, int y, unsigned cb, unsigned cr, int n)
{
  const csfk_plane &first = out.plane[1], &second = out.plane[2];
  unsigned char *to = first.data + (size_t) y * first.stride;

  if (out.format == CSFK_FORMAT_NV12) {
    store_bytes (to + 2 * x, __byte_perm (cb, cr, 0x5140), 2 * n);
    store_bytes (to + 2 * x + 4, __byte_perm (cb, cr, 0x7362), 2 * n - 4);
  } else {
    store_bytes (to + x, cb, n);
    store_bytes (second.data + (size_t) y * second.stride + x, cr, n);
  }
}

/* ---- the general way: each plane or component for itself -------------------------------------- */

/* A thread's samples are made in loops, each pushed into words behind those before it: loops that would be
 * laid out flat take more registers than there are, but for the lightest. */

template <bool CUBIC>
static __device__ __forceinline__ void
scale_luma (const csfk_frame &frame, const convert_plan &plan, int x0, int y0)
{
  const byte_source source = { frame.in.plane[0].data, frame.in.plane[0].stride };
  const csfk_plane &out = frame.out.plane[0];
  const bool same = frame.in.width == frame.out.width && frame.in.height == frame.out.height;

  if (x0 >= frame.out.width)
    return;
#pragma unroll (CUBIC ? 1 : CSFK_CONVERTSCALE_ROWS)
  for (int r = 0; r < CSFK_CONVERTSCALE_ROWS; r++) {
    const taps<CUBIC> down = find_taps<CUBIC> (plan.y, y0 + r);
    unsigned word = 0;

    if (y0 + r >= frame.out.height)
      return;
    /* Between NV12 and I420 of the same size. */
    if (same && source.has_words (x0, plan.x.last)) {
      store_bytes (out.data + (size_t) (y0 + r) * out.stride + x0, source.load_words (x0, y0 + r), 4);
      continue;
    }
#pragma unroll (CUBIC ? 1 : CSFK_CONVERTSCALE_PIXELS)
    for (int i = 0; i < PIXELS; i++) {
      int result;

      interpolate_luma<0> (source, find_taps<CUBIC> (plan.x, x0 + i), down, &result);
      word = __byte_perm (word, result, 0x4321);
    }
    store_bytes (out.data + (size_t) (y0 + r) * out.stride + x0, word, frame.out.width - x0);
  }
}

template <bool CUBIC>
static __device__ __forceinline__ void
scale_pairs (const csfk_frame &frame, const convert_plan &plan, int x0, int y0)
{
  const pair_source source = pair_source_of (frame.in);
  const int width = (frame.out.width + 1) / 2, rows = frame.out.plane[1].rows;

  if (x0 >= width)
    return;
#pragma unroll 1
  for (int y = y0; y < min (y0 + CSFK_CONVERTSCALE_ROWS, rows); y++) {
    const taps<CUBIC> down = find_taps<CUBIC> (plan.chroma_y, y);
    unsigned cb = 0, cr = 0;

#pragma unroll (CUBIC ? 1 : CSFK_CONVERTSCALE_PIXELS)
    for (int i = 0; i < PIXELS; i++) {
      int pair[2];

      interpolate<2, 0> (source, find_taps<CUBIC> (plan.chroma_x, x0 + i), down, pair);
      cb = __byte_perm (cb, pair[0], 0x4321);
      cr = __byte_perm (cr, pair[1], 0x4321);
    }
    store_pairs (frame.out, x0, y, cb, cr, width - x0);
  }
}

template <bool CUBIC, class Source>
static __device__ __forceinline__ void
scale_pixels (const Source &source, const csfk_frame &frame, const convert_plan &plan, int x0,
    int y0, int rows)
{
  const csfk_plane &out = frame.out.plane[0];
  const int *order = plan.order;
  const unsigned selector = order[0] | order[1] << 4 | order[2] << 8 | order[3] << 12;

  if (x0 >= frame.out.width)
    return;
#pragma unroll 1
  for (int y = y0; y < min (y0 + rows, frame.out.height); y++) {
    const taps<CUBIC> down = find_taps<CUBIC> (plan.y, y);
    pixel_words pixels;

#pragma unroll (CUBIC ? 1 : CSFK_CONVERTSCALE_PIXELS)
    for (int i = 0; i < PIXELS; i++) {
      int c[4];

      interpolate<4, 0> (source, find_taps<CUBIC> (plan.x, x0 + i), down, c);
      pixels.push (__byte_perm (join_bytes (c[0], c[1], c[2], c[3]), 255, selector));
    }
    store_pixels (out.data + (size_t) y * out.stride + x0 * plan.out_bytes, pixels,
        min (PIXELS, frame.out.width - x0), plan.out_bytes);
  }
}

/* ---- the general way: other colours ------------------------------------------------------------ */

static __device__ __forceinline__ int
apply_row (const int *matrix, const int *c)
{
  return clamp ((matrix[0] * c[0] + matrix[1] * c[1] + matrix[2] * c[2] + matrix[3]) >> COLOUR_BITS,
      0, 255);
}

/* A number of which the compiler must not know that it stays the same round a loop: what is cheap to make
 * again is not to be kept in registers that are needed. */
static __device__ __forceinline__ int
make_opaque (int value)
{
  asm volatile ("" : "+r" (value));
  return value;
}

/* The components at an output pixel of R'G'B'. */
template <bool CUBIC, class Source>
struct rgb_components
{
  Source source;

  __device__ __forceinline__ void
  get (const convert_plan &plan, int x, int y, int *c) const
  {
    const int row = CUBIC ? make_opaque (y) : y;

    interpolate<3, PLACES> (source, find_taps<CUBIC> (plan.x, x), find_taps<CUBIC> (plan.y, row), c);
  }
};

template <bool CUBIC>
struct ycbcr_components
{
  byte_source luma;
  pair_source chroma;
  bool grey;

  __device__ __forceinline__ void
  get (const convert_plan &plan, int x, int y, int *c) const
  {
    const int row = CUBIC ? make_opaque (y) : y;

    interpolate_luma<PLACES> (luma, find_taps<CUBIC> (plan.x, x), find_taps<CUBIC> (plan.y, row), c);
    c[1] = c[2] = 128 << PLACES;
    if (!grey)
      interpolate<2, PLACES> (chroma, find_taps<false> (plan.chroma_x, x),
          find_taps<false> (plan.chroma_y, row), c + 1);
  }
};

template <class Components>
static __device__ __forceinline__ void
convert_to_pixels (const Components &components, const csfk_frame &frame, const convert_plan &plan,
    int x0, int y0, int rows)
{
  const csfk_plane &out = frame.out.plane[0];

  if (x0 >= frame.out.width)
    return;
#pragma unroll 1
  for (int y = y0; y < min (y0 + rows, frame.out.height); y++) {
    pixel_words pixels;

#pragma unroll 1
    for (int i = 0; i < PIXELS; i++) {
      int c[3];

      components.get (plan, x0 + i, y, c);
      pixels.push (join_bytes (apply_row (plan.matrix[0], c), apply_row (plan.matrix[1], c),
              apply_row (plan.matrix[2], c), 255));
    }
    store_pixels (out.data + (size_t) y * out.stride + x0 * plan.out_bytes, pixels,
        min (PIXELS, frame.out.width - x0), plan.out_bytes);
  }
}

/* Two rows of luma and the row of chroma that goes with them.  Each row's components are weighed into two
 * chroma samples' sums as they come, from a column left of the first on. */
template <class Components>
static __device__ __forceinline__ void
convert_to_planes (const Components &components, const csfk_frame &frame, const convert_plan &plan,
    int x0, int y0)
{
  const csfk_plane &luma = frame.out.plane[0];
  const int width = frame.out.width, height = frame.out.height;
  const int left = plan.cosited_x ? 1 : 0, right = 2 - left;
  int sums[2][3] = { {8, 8, 8}, {8, 8, 8} };

  if (x0 >= width || y0 >= height)
    return;
#pragma unroll 1
  for (int r = plan.cosited_y ? -1 : 0; r < 2; r++) {
    const int y = clamp (y0 + r, 0, height - 1), down = plan.cosited_y && r != 0 ? 1 : 2;
    unsigned word = 0;

#pragma unroll 1
    for (int i = plan.cosited_x ? -1 : 0; i < PIXELS; i++) {
      /* Of the first sample, and of the second. */
      const int first = i < 0 ? left : i == 0 ? 2 : i == 1 ? right : 0;
      const int second = i < 1 ? 0 : i == 1 ? left : i == 2 ? 2 : right;
      int c[3];

      components.get (plan, clamp (x0 + i, 0, width - 1), y, c);
      word = __byte_perm (word, apply_row (plan.matrix[0], c), 0x4321);
#pragma unroll
      for (int n = 0; n < 3; n++) {
        sums[0][n] += down * first * c[n];
        sums[1][n] += down * second * c[n];
      }
    }
    if (r >= 0 && y0 + r < height)
      store_bytes (luma.data + (size_t) y * luma.stride + x0, word, width - x0);
  }
  if (frame.out.n_planes > 1) {
    unsigned cb[2], cr[2];

#pragma unroll
    for (int k = 0; k < 2; k++) {
#pragma unroll
      for (int n = 0; n < 3; n++)
        sums[k][n] >>= PLACES;
      cb[k] = (unsigned) apply_row (plan.matrix[1], sums[k]);
      cr[k] = (unsigned) apply_row (plan.matrix[2], sums[k]);
    }
    store_pairs (frame.out, x0 / 2, y0 / 2, cb[0] | cb[1] << 8, cr[0] | cr[1] << 8,
        min (2, (width + 1) / 2 - x0 / 2));
  }
}

#include "convertscale_fast.cuh"
#include "convertscale_two.cuh"

/* ---- which way --------------------------------------------------------------------------------- */

template <bool CUBIC>
static __device__ __forceinline__ void
scale_packed (const csfk_frame &frame, const convert_plan &plan, int x0, int y0, int rows)
{
  const csfk_plane &in = frame.in.plane[0];

  if (plan.in_bytes == 4 && (((size_t) in.data | in.stride) & 3) == 0)
    scale_pixels<CUBIC> (word_source { in.data, in.stride }, frame, plan, x0, y0, rows);
  else
    scale_pixels<CUBIC> (pixel_source<true> { in.data, in.stride, plan.in_bytes }, frame, plan, x0, y0,
        rows);
}

template <bool CUBIC>
static __device__ __forceinline__ void
convert_colours (const csfk_frame &frame, const convert_plan &plan, int x0, int y0, int rows)
{
  const csfk_plane &in = frame.in.plane[0];

  if (plan.out_bytes > 0) {
    const ycbcr_components<CUBIC> components = {
      { in.data, in.stride }, pair_source_of (frame.in), frame.in.n_planes == 1
    };

    convert_to_pixels (components, frame, plan, x0, y0, rows);
    return;
  }
  for (int y = y0; y < y0 + rows; y += 2) {
    if (plan.in_bytes == 0) {
      const ycbcr_components<CUBIC> components = {
        { in.data, in.stride }, pair_source_of (frame.in), frame.in.n_planes == 1
      };

      convert_to_planes (components, frame, plan, x0, y);
    } else if (plan.in_bytes == 4 && (((size_t) in.data | in.stride) & 3) == 0) {
      convert_to_planes (rgb_components<CUBIC, word_source> { { in.data, in.stride } }, frame, plan,
          x0, y);
    } else {
      convert_to_planes (rgb_components<CUBIC, pixel_source<false> > { { in.data, in.stride,
              plan.in_bytes } }, frame, plan, x0, y);
    }
  }
}

static __device__ __forceinline__ void
go_the_general_way (const csfk_convertscale_args &args, int x0, int y0, int rows)
{
  const csfk_frame &frame = args.frame;
  const convert_plan &plan = args.plan;
  const bool cubic = plan.method == CSFK_CONVERTSCALE_BICUBIC;

  if (plan.task == CSFK_CONVERTSCALE_PLANES && blockIdx.z == 0) {
    if (cubic)
      scale_luma<true> (frame, plan, x0, y0);
    else
      scale_luma<false> (frame, plan, x0, y0);
  } else if (plan.task == CSFK_CONVERTSCALE_PLANES) {
    if (cubic)
      scale_pairs<true> (frame, plan, x0, y0);
    else
      scale_pairs<false> (frame, plan, x0, y0);
  } else if (plan.task == CSFK_CONVERTSCALE_PACKED) {
    if (cubic)
      scale_packed<true> (frame, plan, x0, y0, rows);
    else
      scale_packed<false> (frame, plan, x0, y0, rows);
  } else {
    if (cubic)
      convert_colours<true> (frame, plan, x0, y0, rows);
    else
      convert_colours<false> (frame, plan, x0, y0, rows);
  }
}

extern "C" __global__ void
__launch_bounds__ (CSFK_CONVERTSCALE_BLOCK_X *CSFK_CONVERTSCALE_BLOCK_Y, 4)
csfk_convertscale (const csfk_convertscale_args args)
{
  const csfk_frame &frame = args.frame;
  const convert_plan &plan = args.plan;
  const int x = (int) (blockIdx.x * CSFK_CONVERTSCALE_BLOCK_X + threadIdx.x);
  const int y = (int) (blockIdx.y * CSFK_CONVERTSCALE_BLOCK_Y + threadIdx.y);

  if (plan.task == CSFK_CONVERTSCALE_COPY) {
    copy_plane (frame.in.plane[blockIdx.z], frame.out.plane[blockIdx.z], x * 16, y *
        CSFK_CONVERTSCALE_FAST_ROWS);
  } else if (plan.fast == CSFK_CONVERTSCALE_BY_TWO) {
    scale_plane_by_two (frame, plan, x * 8, (int) (blockIdx.y * CSFK_CONVERTSCALE_SMALL_BLOCK_Y +
            threadIdx.y));
  } else if (plan.fast == CSFK_CONVERTSCALE_HALVING) {
    halve_plane (frame, plan, x * 8, y * CSFK_CONVERTSCALE_ROWS);
  } else if (plan.fast == CSFK_CONVERTSCALE_WIDENING) {
    widen_plane (frame, plan, x * 4, y * CSFK_CONVERTSCALE_FAST_ROWS);
  } else if (plan.fast == CSFK_CONVERTSCALE_SAME_SIZE && (x + 1) * PIXELS <= frame.out.width) {
    go_the_same_size (frame, plan, x * PIXELS, y * CSFK_CONVERTSCALE_FAST_ROWS);
  } else {
    const int rows = plan.fast == CSFK_CONVERTSCALE_SAME_SIZE ? CSFK_CONVERTSCALE_FAST_ROWS :
        CSFK_CONVERTSCALE_ROWS;

    go_the_general_way (args, x * PIXELS, y * rows, rows);
  }
}
