/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* convertscale's short cuts on the GPU, a part of convertscale.cu: copies, exact halving, bilinear widening,
 * and conversions of the same size, all with loads of several bytes of aligned pictures.  They give what the
 * general way gives, to the bit; what each leaves out of the arithmetic is said with it. */
#ifndef CSFK_CONVERTSCALE_FAST_CUH
#define CSFK_CONVERTSCALE_FAST_CUH

#define FAST_ROWS CSFK_CONVERTSCALE_FAST_ROWS
#define MAGIC 0x4b000000u       /* 2^23 as a float: its low bits count ones */
#define MAGIC_FLOAT 8388608.0f

/* Bytes x .. x + 15 of FAST_ROWS rows. */
static __device__ __forceinline__ void
copy_plane (const csfk_plane &in, const csfk_plane &out, int x, int y0)
{
  const size_t bits = (size_t) in.data | (size_t) out.data | (size_t) in.stride |
      (size_t) out.stride;

  if (x >= out.row_bytes || y0 >= out.rows)
    return;
  if ((bits & 15) == 0 && x + 16 <= out.row_bytes) {
    uint4 words[FAST_ROWS];

#pragma unroll
    for (int r = 0; r < FAST_ROWS; r++)
      if (y0 + r < out.rows)
        words[r] = *(const uint4 *) (in.data + (size_t) (y0 + r) * in.stride + x);
#pragma unroll
    for (int r = 0; r < FAST_ROWS; r++)
      if (y0 + r < out.rows)
        *(uint4 *) (out.data + (size_t) (y0 + r) * out.stride + x) = words[r];
    return;
  }
#pragma unroll 1
  for (int y = y0; y < min (y0 + FAST_ROWS, out.rows); y++)
#pragma unroll 1
    for (int b = x; b < min (x + 16, out.row_bytes); b++)
      out.data[(size_t) y * out.stride + b] = in.data[(size_t) y * in.stride + b];
}

/* ---- halving ----------------------------------------------------------------------------------- */

/* Where all fractions are 1/2, (a + b + c + d + 2) >> 2 is the same as the sums of the general way: 64
 * times that lies in the second byte of a sum, for which the weights are bytes. */
template <int N>
static __device__ __forceinline__ unsigned
halve_words (unsigned a0, unsigned a1, unsigned b0, unsigned b1)
{
  unsigned sums[4];

  if constexpr (N == 1) {
    sums[0] = dot_four (0x00004040u, a0, dot_four (0x00004040u, b0, 128));
    sums[1] = dot_four (0x40400000u, a0, dot_four (0x40400000u, b0, 128));
    sums[2] = dot_four (0x00004040u, a1, dot_four (0x00004040u, b1, 128));
    sums[3] = dot_four (0x40400000u, a1, dot_four (0x40400000u, b1, 128));
  } else if constexpr (N == 2) {
    sums[0] = dot_four (0x00400040u, a0, dot_four (0x00400040u, b0, 128));
    sums[1] = dot_four (0x40004000u, a0, dot_four (0x40004000u, b0, 128));
    sums[2] = dot_four (0x00400040u, a1, dot_four (0x00400040u, b1, 128));
    sums[3] = dot_four (0x40004000u, a1, dot_four (0x40004000u, b1, 128));
  } else {
    const unsigned a_low = __byte_perm (a0, a1, 0x5140), a_high = __byte_perm (a0, a1, 0x7362);
    const unsigned b_low = __byte_perm (b0, b1, 0x5140), b_high = __byte_perm (b0, b1, 0x7362);

    sums[0] = dot_four (0x00004040u, a_low, dot_four (0x00004040u, b_low, 128));
    sums[1] = dot_four (0x40400000u, a_low, dot_four (0x40400000u, b_low, 128));
    sums[2] = dot_four (0x00004040u, a_high, dot_four (0x00004040u, b_high, 128));
    sums[3] = dot_four (0x40400000u, a_high, dot_four (0x40400000u, b_high, 128));
  }
  return __byte_perm (__byte_perm (sums[0], sums[1], 0x0051), __byte_perm (sums[2], sums[3], 0x0051),
      0x5410);
}

/* The last bytes of a row, which are fewer than a thread's. */
static __device__ __forceinline__ void
halve_bytes (const csfk_plane &in, const csfk_plane &out, int n, unsigned selector, int x, int y)
{
#pragma unroll 1
  for (int b = x; b < out.row_bytes; b++) {
    const int from = selector >> b % n * 4 & 15;
    const unsigned char *at = in.data + (size_t) (2 * y) * in.stride + b / n * n * 2 + from;
    const unsigned char *below = at + in.stride;

    out.data[(size_t) y * out.stride + b] =
        from == 4 ? 255 : (unsigned char) ((at[0] + at[n] + below[0] + below[n] + 2) >> 2);
  }
}

/* Output bytes x .. x + 7 of CSFK_CONVERTSCALE_ROWS rows.  selector: a pixel's bytes in their order. */
template <int N>
static __device__ __forceinline__ void
halve (const csfk_plane &in, const csfk_plane &out, unsigned selector, int x, int y0)
{
  const int rows = CSFK_CONVERTSCALE_ROWS;

  if (x >= out.row_bytes || y0 >= out.rows)
    return;
  if (x + 8 <= out.row_bytes) {
    uint4 words[2 * rows];

#pragma unroll
    for (int r = 0; r < 2 * rows; r++)
      words[r] = *(const uint4 *) (in.data + (size_t) min (2 * y0 + r, in.rows - 1) * in.stride +
          2 * (size_t) x);
#pragma unroll
    for (int r = 0; r < rows; r++) {
      const uint4 &a = words[2 * r], &b = words[2 * r + 1];
      unsigned low = halve_words<N> (a.x, a.y, b.x, b.y), high = halve_words<N> (a.z, a.w, b.z, b.w);

      if (N == 4) {
        low = __byte_perm (low, 255, selector);
        high = __byte_perm (high, 255, selector);
      }
      if (y0 + r < out.rows)
        *(uint2 *) (out.data + (size_t) (y0 + r) * out.stride + x) = make_uint2 (low, high);
    }
    return;
  }
#pragma unroll 1
  for (int y = y0; y < min (y0 + rows, out.rows); y++)
    halve_bytes (in, out, N, selector, x, y);
}

static __device__ __forceinline__ void
halve_plane (const csfk_frame &frame, const convert_plan &plan, int x, int y0)
{
  const csfk_plane &in = frame.in.plane[blockIdx.z];
  const csfk_plane &out = frame.out.plane[blockIdx.z];
  const int *order = plan.order;

  if (plan.task == CSFK_CONVERTSCALE_PACKED)
    halve<4> (in, out, order[0] | order[1] << 4 | order[2] << 8 | order[3] << 12, x, y0);
  else if (frame.in.format == CSFK_FORMAT_NV12 && blockIdx.z == 1)
    halve<2> (in, out, 0x10, x, y0);
  else
    halve<1> (in, out, 0, x, y0);
}

/* ---- wider, bilinear --------------------------------------------------------------------------- */

/* Where the output is no narrower than the input, four neighbouring bytes of it are made of two neighbouring
 * words of each of two rows: with no more than three samples' way from the first to the last, both of its taps,
 * and three bytes before the first in its word, that is 8 bytes.  Of R'G'B' the words are two pixels.  Rows are
 * whole words. */
template <int N>
struct widened_columns
{
  int first, second;            /* where the two words are, bytes */
  unsigned selectors[2];        /* bring both taps of two bytes side by side */
  int weights[4];               /* of a byte's taps */

  __device__ __forceinline__
  widened_columns (const csfk_convertscale_axis &axis, int row_bytes, int x)
  {
    const int o = x / N, last_word = row_bytes - 4;
    unsigned nibbles = 0;

    first = find_taps<false> (axis, o).at (0) * N & ~3;
    second = min (first + 4, last_word);
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const taps<false> across = find_taps<false> (axis, o + i / N);

      weights[i] = across.weights[0];
      nibbles = (across.at (0) * N + i % N - first) | (across.at (1) * N + i % N - first) << 4;
      selectors[i / 2] = i % 2 == 0 ? nibbles : selectors[i / 2] | nibbles << 8;
    }
    if (N == 4) {
      second = find_taps<false> (axis, o).at (1) * 4;
      selectors[0] = 0x5140;
      selectors[1] = 0x7362;
    }
  }
};

/* Output bytes x .. x + 3 of FAST_ROWS rows. */
template <int N>
static __device__ __forceinline__ void
widen (const csfk_plane &in, const csfk_plane &out, const csfk_convertscale_axis &x_axis,
    const csfk_convertscale_axis &y_axis, unsigned selector, int x, int y0)
{
  unsigned words[FAST_ROWS][2][2];
  int down[FAST_ROWS];
  unsigned char *to = out.data + (size_t) y0 * out.stride + x;

  if (x >= out.row_bytes || y0 >= out.rows)
    return;

  const widened_columns<N> columns (x_axis, in.row_bytes, x);

#pragma unroll
  for (int r = 0; r < FAST_ROWS; r++) {
    const taps<false> rows = find_taps<false> (y_axis, y0 + r);

    down[r] = rows.weights[0];
#pragma unroll
    for (int k = 0; k < 2; k++) {
      const unsigned char *row = in.data + (size_t) rows.at (k) * in.stride;

      words[r][k][0] = __ldg ((const unsigned *) (row + columns.first));
      words[r][k][1] = __ldg ((const unsigned *) (row + columns.second));
    }
  }
#pragma unroll
  for (int r = 0; r < FAST_ROWS; r++) {
    unsigned sums[4] = { 32768, 32768, 32768, 32768 };

#pragma unroll
    for (int k = 0; k < 2; k++) {
      const unsigned *two = words[r][k], weight = down[r] >> 16 * k & 0xffff;
      const unsigned low = __byte_perm (two[0], two[1], columns.selectors[0]);
      const unsigned high = __byte_perm (two[0], two[1], columns.selectors[1]);

      sums[0] += dot_low (columns.weights[0], low, 0) * weight;
      sums[1] += dot_high (columns.weights[1], low, 0) * weight;
      sums[2] += dot_low (columns.weights[2], high, 0) * weight;
      sums[3] += dot_high (columns.weights[3], high, 0) * weight;
    }
    /* The results are the sums' third bytes. */
    const unsigned word = __byte_perm (__byte_perm (sums[0], sums[1], 0x0062),
        __byte_perm (sums[2], sums[3], 0x0062), 0x5410);

    if (y0 + r < out.rows)
      *(unsigned *) to = __byte_perm (word, 255, selector);
    to += out.stride;
  }
}

static __device__ __forceinline__ void
widen_plane (const csfk_frame &frame, const convert_plan &plan, int x, int y0)
{
  const csfk_plane &in = frame.in.plane[blockIdx.z];
  const csfk_plane &out = frame.out.plane[blockIdx.z];
  const int *order = plan.order;

  if (plan.task == CSFK_CONVERTSCALE_PACKED)
    widen<4> (in, out, plan.x, plan.y, order[0] | order[1] << 4 | order[2] << 8 | order[3] << 12, x, y0);
  else if (blockIdx.z == 0)
    widen<1> (in, out, plan.x, plan.y, 0x3210, x, y0);
  else if (frame.in.format == CSFK_FORMAT_NV12)
    widen<2> (in, out, plan.chroma_x, plan.chroma_y, 0x3210, x, y0);
  else
    widen<1> (in, out, plan.chroma_x, plan.chroma_y, 0x3210, x, y0);
}

/* ---- the same size ----------------------------------------------------------------------------- */

static __device__ __forceinline__ void
reorder_pixels (const csfk_frame &frame, const convert_plan &plan, int x0, int y0)
{
  const csfk_plane &in = frame.in.plane[0], &out = frame.out.plane[0];
  const int *order = plan.order;
  const unsigned selector = order[0] | order[1] << 4 | order[2] << 8 | order[3] << 12;
  uint4 words[FAST_ROWS];

#pragma unroll
  for (int r = 0; r < FAST_ROWS; r++)
    if (y0 + r < out.rows)
      words[r] = *(const uint4 *) (in.data + (size_t) (y0 + r) * in.stride + 4 * (size_t) x0);
#pragma unroll
  for (int r = 0; r < FAST_ROWS; r++)
    if (y0 + r < out.rows)
      *(uint4 *) (out.data + (size_t) (y0 + r) * out.stride + 4 * (size_t) x0) =
          make_uint4 (__byte_perm (words[r].x, 255, selector), __byte_perm (words[r].y, 255,
              selector), __byte_perm (words[r].z, 255, selector), __byte_perm (words[r].w, 255,
              selector));
}

/* What is loaded of a row of chroma: its samples k and k + 1, k even, the one behind them, and with LEFT the
 * one before them.  NV12: pairs; I420: of the component of the output's first byte, then of that of its third.
 * Loads only, with nothing to wait for between them: what is beyond the edges is fetched at the edge. */
template <bool NV12, bool LEFT>
struct chroma_row
{
  unsigned before[NV12 ? 1 : 2], own[NV12 ? 1 : 2], after[NV12 ? 1 : 2];

  __device__ __forceinline__ void
  load (const csfk_image &in, bool blue_first, int row, int k)
  {
    const bool has_left = k > 0, has_right = k + 2 <= (in.width + 1) / 2 - 1;

    if constexpr (NV12) {
      const unsigned char *at = in.plane[1].data + (size_t) row * in.plane[1].stride + 2 * k;

      own[0] = __ldg ((const unsigned *) at);
      after[0] = __ldg ((const unsigned short *) (at + (has_right ? 4 : 2)));
      if (LEFT)
        before[0] = __ldg ((const unsigned short *) (at - (has_left ? 2 : 0)));
    } else {
#pragma unroll
      for (int i = 0; i < 2; i++) {
        const csfk_plane &plane = in.plane[blue_first == (i == 0) ? 1 : 2];
        const unsigned char *at = plane.data + (size_t) row * plane.stride + k;

        own[i] = __ldg ((const unsigned short *) at);
        after[i] = __ldg (at + (has_right ? 2 : 1));
        if (LEFT)
          before[i] = __ldg (at - (has_left ? 1 : 0));
      }
    }
  }

  /* Samples k - 1 .. k + 2, the component of the first byte in a word's lower half. */
  __device__ __forceinline__ void
  get (bool blue_first, unsigned *pairs) const
  {
    if constexpr (NV12) {
      const unsigned selector = blue_first ? 0x4140 : 0x4041;

      if (LEFT)
        pairs[0] = __byte_perm (before[0], 0, selector);
      pairs[1] = __byte_perm (own[0], 0, selector);
      pairs[2] = __byte_perm (own[0], 0, blue_first ? 0x4342 : 0x4243);
      pairs[3] = __byte_perm (after[0], 0, selector);
    } else {
      if (LEFT)
        pairs[0] = before[0] | before[1] << 16;
      pairs[1] = __byte_perm (own[0], own[1], 0x3430);
      pairs[2] = __byte_perm (own[0], own[1], 0x3531);
      pairs[3] = after[0] | after[1] << 16;
    }
  }
};

/* The float 2^23 + the lower (upper) half of a word, without the 2^23. */
static __device__ __forceinline__ float
low_half (unsigned word)
{
  return __uint_as_float (__byte_perm (word, MAGIC, 0x7610)) - MAGIC_FLOAT;
}

static __device__ __forceinline__ float
high_half (unsigned word)
{
  return __uint_as_float (__byte_perm (word, MAGIC, 0x7632)) - MAGIC_FLOAT;
}

/* Luma of 0..255, chroma with PLACES places.  Limited to 1 and then multiplied by a little less than 256 a sum
 * is cut off where the integers cut it off: see csfk_convertscale_floats. */
static __device__ __forceinline__ unsigned
make_pixel (const csfk_convertscale_floats &matrix, float luma, float first, float third)
{
  const float below_256 = 255.9999847412109375f;
  const float sums[3] = {
    fmaf (matrix.first, first, fmaf (matrix.luma, luma, matrix.addends[0])),
    fmaf (matrix.second_third, third, fmaf (matrix.second_first, first, fmaf (matrix.luma, luma,
                matrix.addends[1]))),
    fmaf (matrix.third, third, fmaf (matrix.luma, luma, matrix.addends[2]))
  };
  unsigned bytes[3];

#pragma unroll
  for (int r = 0; r < 3; r++) {
    /* The third one's second byte becomes alpha, 255. */
    const float base = r == 2 ? MAGIC_FLOAT + 65280.0f : MAGIC_FLOAT;

    bytes[r] = __float_as_uint (__fmaf_rz (__saturatef (sums[r]), below_256, base));
  }
  return __byte_perm (__byte_perm (bytes[0], bytes[1], 0x0040), bytes[2], 0x5410);
}

/* Where the sizes are the same, chroma is a quarter or a half of the way from one sample to the next: sums
 * with weights of 4 in each direction have the PLACES places as they are.  y0 is even, so is FAST_ROWS. */
template <int SITE, bool NV12>
static __device__ __forceinline__ void
convert_same_rows (const csfk_frame &frame, const convert_plan &plan, int x0, int y0)
{
  constexpr bool cosited_x = SITE != CSFK_CHROMA_SITE_CENTER;
  constexpr bool cosited_y = SITE == CSFK_CHROMA_SITE_TOP_LEFT;
  constexpr int first_row = cosited_y ? 1 : 0;
  const csfk_image &in = frame.in;
  const csfk_plane &luma = in.plane[0], &out = frame.out.plane[0];
  const bool blue_first = frame.out.format == CSFK_FORMAT_BGRA ||
      frame.out.format == CSFK_FORMAT_BGRx;
  chroma_row<NV12, !cosited_x> rows[FAST_ROWS / 2 + 2];
  unsigned words[FAST_ROWS];
  unsigned char *to = out.data + (size_t) y0 * out.stride + 4 * (size_t) x0;

#pragma unroll
  for (int r = first_row; r < FAST_ROWS / 2 + 2; r++)
    rows[r].load (in, blue_first, clamp (y0 / 2 - 1 + r, 0, (in.height + 1) / 2 - 1), x0 / 2);
#pragma unroll
  for (int r = 0; r < FAST_ROWS; r++)
    words[r] = __ldg ((const unsigned *) (luma.data + (size_t) min (y0 + r, in.height - 1) *
            luma.stride + x0));

#pragma unroll
  for (int r = 0; r < FAST_ROWS; r++) {
    unsigned at[4], other[4], sums[4], chroma[PIXELS], pixels[PIXELS];

    rows[r / 2 + 1].get (blue_first, at);
    if (!cosited_y || r % 2 != 0)
      rows[r / 2 + r % 2 * 2].get (blue_first, other);
#pragma unroll
    for (int k = cosited_x ? 1 : 0; k < 4; k++)
      sums[k] = !cosited_y ? at[k] * 3 + other[k] : r % 2 ? (at[k] + other[k]) * 2 : at[k] * 4;
#pragma unroll
    for (int k = 0; k < 2; k++) {
      chroma[2 * k] = cosited_x ? sums[k + 1] * 4 : sums[k + 1] * 3 + sums[k];
      chroma[2 * k + 1] = cosited_x ? (sums[k + 1] + sums[k + 2]) * 2 :
          sums[k + 1] * 3 + sums[k + 2];
    }
#pragma unroll
    for (int i = 0; i < PIXELS; i++)
      pixels[i] = make_pixel (plan.floats,
          __uint_as_float (__byte_perm (words[r], MAGIC, 0x7650 + i)) - MAGIC_FLOAT,
          low_half (chroma[i]), high_half (chroma[i]));
    if (y0 + r < in.height)
      *(uint4 *) to = make_uint4 (pixels[0], pixels[1], pixels[2], pixels[3]);
    to += out.stride;
  }
}

template <int SITE>
static __device__ __forceinline__ void
convert_same_to_pixels (const csfk_frame &frame, const convert_plan &plan, int x0, int y0)
{
  if (y0 >= frame.in.height)
    return;
  if (frame.in.format == CSFK_FORMAT_NV12)
    convert_same_rows<SITE, true> (frame, plan, x0, y0);
  else
    convert_same_rows<SITE, false> (frame, plan, x0, y0);
}

/* Luma of four pixels: weights times 64, so that the results are third bytes of the sums.  They cannot be
 * beyond 0..255. */
static __device__ __forceinline__ unsigned
make_luma (const uint4 &pixels, unsigned first_weights, unsigned last_weight, unsigned addend)
{
  const unsigned words[4] = { pixels.x, pixels.y, pixels.z, pixels.w };
  unsigned sums[4];

#pragma unroll
  for (int i = 0; i < 4; i++) {
#if __CUDA_ARCH__ >= 610
    sums[i] = __dp2a_lo (first_weights, words[i], __dp2a_hi (last_weight, words[i], addend));
#else
    sums[i] = addend + (first_weights & 0xffff) * (words[i] & 255) +
        (first_weights >> 16) * (words[i] >> 8 & 255) + last_weight * (words[i] >> 16 & 255);
#endif
  }
  return __byte_perm (__byte_perm (sums[0], sums[1], 0x0062), __byte_perm (sums[2], sums[3], 0x0062),
      0x5410);
}

/* Means of whole samples with weights of 16 have the PLACES places as they are.  Two rows' sums are kept of
 * bytes 0 and 2, and of byte 1, in halves of words. */
static __device__ __forceinline__ void
make_chroma (const convert_plan &plan, const unsigned (*above)[5], const unsigned (*below)[5],
    unsigned *cb, unsigned *cr)
{
  unsigned even[5], odd[5];

#pragma unroll
  for (int i = 0; i < 5; i++) {
    even[i] = __byte_perm ((*above)[i], 0, 0x4240) + __byte_perm ((*below)[i], 0, 0x4240);
    odd[i] = __byte_perm ((*above)[i], 0, 0x4441) + __byte_perm ((*below)[i], 0, 0x4441);
  }
#pragma unroll
  for (int k = 0; k < 2; k++) {
    const unsigned *e = even + 2 * k, *o = odd + 2 * k;
    const unsigned outer = plan.cosited_x ? e[0] + 2 * e[1] + e[2] : 2 * (e[1] + e[2]);
    const unsigned inner = plan.cosited_x ? o[0] + 2 * o[1] + o[2] : 2 * (o[1] + o[2]);
    const int c[3] = { (int) (2 * outer & 0xffff), (int) (2 * inner), (int) (outer >> 15 & 0x1fffe) };

    cb[k] = (unsigned) apply_row (plan.matrix[1], c);
    cr[k] = (unsigned) apply_row (plan.matrix[2], c);
  }
}

static __device__ __forceinline__ void
convert_same_to_planes (const csfk_frame &frame, const convert_plan &plan, int x0, int y0)
{
  const csfk_plane &in = frame.in.plane[0], &luma = frame.out.plane[0];
  const int *matrix = plan.matrix[0], height = frame.in.height;
  const unsigned first_weights = matrix[0] * 64 | matrix[1] * 64 << 16, last_weight = matrix[2] * 64;
  const unsigned addend = (unsigned) (matrix[3] >> PLACES) * 64;
  /* A column more on the left. */
  uint4 words[FAST_ROWS];
  unsigned left[FAST_ROWS];

  if (y0 >= height)
    return;
#pragma unroll
  for (int r = 0; r < FAST_ROWS; r++) {
    const unsigned char *row = in.data + (size_t) min (y0 + r, height - 1) * in.stride;

    words[r] = *(const uint4 *) (row + 4 * (size_t) x0);
    left[r] = plan.cosited_x ? *(const unsigned *) (row + 4 * (size_t) max (x0 - 1, 0)) : 0;
  }
#pragma unroll
  for (int r = 0; r < FAST_ROWS; r++)
    if (y0 + r < height)
      *(unsigned *) (luma.data + (size_t) (y0 + r) * luma.stride + x0) =
          make_luma (words[r], first_weights, last_weight, addend);
#pragma unroll
  for (int r = 0; r < FAST_ROWS; r += 2) {
    const uint4 &a = words[r], &b = words[r + 1];
    const unsigned above[5] = { left[r], a.x, a.y, a.z, a.w };
    const unsigned below[5] = { left[r + 1], b.x, b.y, b.z, b.w };
    unsigned cb[2], cr[2];

    if (y0 + r >= height)
      return;
    make_chroma (plan, &above, &below, cb, cr);

    const csfk_plane &chroma = frame.out.plane[1];
    unsigned char *to = chroma.data + (size_t) ((y0 + r) / 2) * chroma.stride;

    if (frame.out.format == CSFK_FORMAT_NV12) {
      *(unsigned *) (to + x0) = join_bytes (cb[0], cr[0], cb[1], cr[1]);
    } else {
      const csfk_plane &other = frame.out.plane[2];

      *(unsigned short *) (to + x0 / 2) = (unsigned short) (cb[0] | cb[1] << 8);
      *(unsigned short *) (other.data + (size_t) ((y0 + r) / 2) * other.stride + x0 / 2) =
          (unsigned short) (cr[0] | cr[1] << 8);
    }
  }
}

static __device__ __forceinline__ void
go_the_same_size (const csfk_frame &frame, const convert_plan &plan, int x0, int y0)
{
  if (plan.task == CSFK_CONVERTSCALE_PACKED)
    reorder_pixels (frame, plan, x0, y0);
  else if (plan.out_bytes == 0)
    convert_same_to_planes (frame, plan, x0, y0);
  else if (frame.in.chroma_site == CSFK_CHROMA_SITE_LEFT)
    convert_same_to_pixels<CSFK_CHROMA_SITE_LEFT> (frame, plan, x0, y0);
  else if (frame.in.chroma_site == CSFK_CHROMA_SITE_TOP_LEFT)
    convert_same_to_pixels<CSFK_CHROMA_SITE_TOP_LEFT> (frame, plan, x0, y0);
  else
    convert_same_to_pixels<CSFK_CHROMA_SITE_CENTER> (frame, plan, x0, y0);
}

#endif
