/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* convertscale's short cuts on the GPU for twice the width and height, and for bicubic halves: a part of
 * convertscale.cu.  There the weights are the same few numbers everywhere, small enough for bytes and for two
 * samples in a word; what each leaves out of the arithmetic is said with it.
 *
 * A thread makes 8 bytes in a few rows.  N: bytes of a pixel, 1 luma, grey or I420's chroma, 2 NV12's chroma,
 * 4 R'G'B'.  Rows are whole numbers of those 8 bytes, so there are none beside. */
#ifndef CSFK_CONVERTSCALE_TWO_CUH
#define CSFK_CONVERTSCALE_TWO_CUH

/* addend + the four bytes times the four signed bytes of `weights`. */
static __device__ __forceinline__ int
dot_signed (unsigned bytes, int weights, int addend)
{
#if __CUDA_ARCH__ >= 610
  int sum;

  asm ("dp4a.u32.s32 %0, %1, %2, %3;" : "=r" (sum) : "r" (bytes), "r" (weights), "r" (addend));
  return sum;
#else
  return addend + (signed char) weights * (int) (bytes & 255) +
      (signed char) (weights >> 8) * (int) (bytes >> 8 & 255) +
      (signed char) (weights >> 16) * (int) (bytes >> 16 & 255) + (weights >> 24) * (int) (bytes >> 24);
#endif
}

/* addend + the four signed halves of `first` and `second` times the four signed bytes of `weights`. */
static __device__ __forceinline__ int
dot_halves (int first, int second, int weights, int addend)
{
#if __CUDA_ARCH__ >= 610
  return __dp2a_lo (first, weights, __dp2a_hi (second, weights, addend));
#else
  return addend + (short) first * (signed char) weights + (first >> 16) * (signed char) (weights >> 8) +
      (short) second * (signed char) (weights >> 16) + (second >> 16) * (weights >> 24);
#endif
}

/* Four sums, each >> SHIFT and limited to 0..255, as bytes.  SHIFT is 8..12; a sum >> 8 fits 16 bits. */
template <int SHIFT>
static __device__ __forceinline__ unsigned
limit_to_bytes (const int *sums)
{
#if __CUDA_ARCH__ >= 900
  /* Two at a time; what is left to be shifted is shifted after they are limited. */
  const unsigned most = (256u << (SHIFT - 8)) - 1;
  const unsigned low = __vimin_s16x2_relu (__byte_perm (sums[0], sums[1], 0x6521), most * 0x10001u);
  const unsigned high = __vimin_s16x2_relu (__byte_perm (sums[2], sums[3], 0x6521), most * 0x10001u);

  return __byte_perm (low >> (SHIFT - 8), high >> (SHIFT - 8), 0x6420);
#elif __CUDA_ARCH__ >= 720
  unsigned high, word;

  asm ("cvt.pack.sat.u8.s32.b32 %0, %1, %2, %3;" : "=r" (high) : "r" (sums[3] >> SHIFT),
      "r" (sums[2] >> SHIFT), "r" (0));
  asm ("cvt.pack.sat.u8.s32.b32 %0, %1, %2, %3;" : "=r" (word) : "r" (sums[1] >> SHIFT),
      "r" (sums[0] >> SHIFT), "r" (high));
  return word;
#else
  return join_bytes (clamp (sums[0] >> SHIFT, 0, 255), clamp (sums[1] >> SHIFT, 0, 255),
      clamp (sums[2] >> SHIFT, 0, 255), clamp (sums[3] >> SHIFT, 0, 255));
#endif
}

/* Eight bytes, which as a number are sure to be stored at once. */
static __device__ __forceinline__ unsigned long long
join_words (unsigned low, unsigned high)
{
  return low | (unsigned long long) high << 32;
}

/* A thread's bytes of a row; y is moved inside. */
static __device__ __forceinline__ const unsigned char *
row_at (const csfk_plane &plane, int x, int y)
{
  return plane.data + (size_t) clamp (y, 0, plane.rows - 1) * plane.stride + x;
}

/* What lies beside a thread's bytes: where to find it from there.  Beyond the edges it is the edge's pixel,
 * fetched again: so nothing waits for a load before all of a thread's rows are loaded. */
template <int N>
struct neighbours
{
  int left, right;

  /* bytes: the thread's; x: of the first of them. */
  __device__ __forceinline__
  neighbours (const csfk_plane &in, int x, int bytes)
  {
    left = x > 0 ? -N : 0;
    right = x + bytes < in.row_bytes ? bytes : bytes - N;
  }

  static __device__ __forceinline__ unsigned
  load (const unsigned char *at)
  {
    if constexpr (N == 1)
      return __ldg (at);
    else if constexpr (N == 2)
      return __ldg ((const unsigned short *) at);
    else
      return __ldg ((const unsigned *) at);
  }
};

/* ---- twice, bilinear ----------------------------------------------------------------------------- */

/* All fractions are 1/4 and 3/4: a row gives 3 * a + b, two rows (3 * h + g + 8) >> 4, the same as the general
 * way's.  Two of these lie in a word's halves; 16 times the sum has the result in its second byte. */

struct narrow_row
{
  unsigned left, own, right;
};

/* 3 * a + b of the 8 bytes made of the four of a row.  Halves: N = 1: outputs 0 and 2, 1 and 3, 4 and 6, 5
 * and 7; N = 2: a pair of chroma each; N = 4: of a pixel the bytes 0 and 2, then 1 and 3. */
template <int N>
static __device__ __forceinline__ void
widen_row (const narrow_row &row, unsigned *h)
{
  const unsigned left = row.left, own = row.own, right = row.right;

  if constexpr (N == 1) {
    const unsigned first = __byte_perm (own, 0, 0x4140) * 3, second = __byte_perm (own, 0, 0x4342) * 3;
    const unsigned middle = __byte_perm (own, 0, 0x4241);

    h[0] = first + __byte_perm (left, own, 0x1410);
    h[1] = first + middle;
    h[2] = second + middle;
    h[3] = second + __byte_perm (right, own, 0x1017);
  } else if constexpr (N == 2) {
    const unsigned first = __byte_perm (own, 0, 0x4140), second = __byte_perm (own, 0, 0x4342);

    h[0] = first * 3 + __byte_perm (left, 0, 0x4140);
    h[1] = first * 3 + second;
    h[2] = second * 3 + first;
    h[3] = second * 3 + __byte_perm (right, 0, 0x4140);
  } else {
    const unsigned even = (own & 0x00ff00ff) * 3, odd = __byte_perm (own, 0, 0x4341) * 3;

    h[0] = even + (left & 0x00ff00ff);
    h[1] = odd + __byte_perm (left, 0, 0x4341);
    h[2] = even + (right & 0x00ff00ff);
    h[3] = odd + __byte_perm (right, 0, 0x4341);
  }
}

/* The row 3/4 of the way from a row to the one whose h is `near`; far: 16 * h + 128 of the other. */
static __device__ __forceinline__ unsigned long long
mix_rows (const unsigned *near, const unsigned *far, unsigned selector, unsigned opaque)
{
  unsigned sums[4];

#pragma unroll
  for (int i = 0; i < 4; i++)
    sums[i] = near[i] * 48 + far[i];
  return join_words (__byte_perm (sums[0], sums[1], selector) | opaque,
      __byte_perm (sums[2], sums[3], selector) | opaque);
}

/* x: of the output, bytes.  The output rows 2 * k + 1 and 2 * k + 2 lie between the input's k and k + 1. */
template <int N>
static __device__ __forceinline__ void
double_linear (const csfk_plane &in, const csfk_plane &out, unsigned selector, unsigned opaque, int x,
    int k0)
{
  constexpr int gaps = CSFK_CONVERTSCALE_LINEAR_GAPS;
  const neighbours<N> beside (in, x / 2, 4);
  narrow_row rows[gaps + 1];
  unsigned h[gaps + 1][4], far[gaps + 1][4];
  unsigned char *to = out.data + (long long) (2 * k0 + 1) * out.stride + x;

#pragma unroll
  for (int k = 0; k <= gaps; k++) {
    const unsigned char *at = row_at (in, x / 2, k0 + k);

    rows[k] = { beside.load (at + beside.left), __ldg ((const unsigned *) at),
      beside.load (at + beside.right) };
  }
#pragma unroll
  for (int k = 0; k <= gaps; k++) {
    widen_row<N> (rows[k], h[k]);
#pragma unroll
    for (int i = 0; i < 4; i++)
      far[k][i] = h[k][i] * 16 + 0x00800080u;
  }
#pragma unroll
  for (int k = 0; k < gaps; k++) {
    const int y = 2 * (k0 + k) + 1;

    if (y >= 0 && y < out.rows)
      *(unsigned long long *) to = mix_rows (h[k], far[k + 1], selector, opaque);
    to += out.stride;
    if (y + 1 < out.rows)
      *(unsigned long long *) to = mix_rows (h[k + 1], far[k], selector, opaque);
    to += out.stride;
  }
}

/* ---- bicubic ------------------------------------------------------------------------------------- */

/* Half the size: all fractions are 1/2, the weights -1, 9, 9, -1 in 1/16.  With those for h, half of the
 * general way's, and again for the rows, what is (v + 2^14) >> 15 there is (sum + 128) >> 8.
 *
 * Twice the size: fractions of 1/4 and 3/4, the weights -9, 111, 29, -3 in 1/128 and the same turned round.
 * h is (sum + 2) >> 2, the general way's; then (v + 2^14) >> 15 is (sum + 2^11) >> 12. */
#define WEIGHTS(a, b, c, d) \
  ((int) ((unsigned) ((a) & 255) | (unsigned) ((b) & 255) << 8 | (unsigned) ((c) & 255) << 16 | \
          (unsigned) ((d) & 255) << 24))
#define WEIGHTS_HALF WEIGHTS (-1, 9, 9, -1)
#define WEIGHTS_QUARTER WEIGHTS (-9, 111, 29, -3)
#define WEIGHTS_THREE_QUARTERS WEIGHTS (-3, 29, 111, -9)

/* The four bytes of each of the components of four pixels. */
static __device__ __forceinline__ void
turn_pixels (unsigned a, unsigned b, unsigned c, unsigned d, unsigned *words)
{
  const unsigned ab_low = __byte_perm (a, b, 0x5140), ab_high = __byte_perm (a, b, 0x7362);
  const unsigned cd_low = __byte_perm (c, d, 0x5140), cd_high = __byte_perm (c, d, 0x7362);

  words[0] = __byte_perm (ab_low, cd_low, 0x5410);
  words[1] = __byte_perm (ab_low, cd_low, 0x7632);
  words[2] = __byte_perm (ab_high, cd_high, 0x5410);
  words[3] = __byte_perm (ab_high, cd_high, 0x7632);
}

/* What is loaded of an input row for 8 output bytes.  HALVING: left and right are a pixel each; else words, and
 * of R'G'B' two pixels on each side.  own: HALVING all of it, else own.x. */
struct cubic_row
{
  uint4 own;
  unsigned left, right, further_left, further_right;
};

template <int N, bool HALVING>
static __device__ __forceinline__ void
load_row (const csfk_plane &in, int x, int y, cubic_row *row)
{
  if constexpr (HALVING) {
    const neighbours<N> beside (in, 2 * x, 16);
    const unsigned char *at = row_at (in, 2 * x, y);

    row->own = __ldg ((const uint4 *) at);
    row->left = beside.load (at + beside.left);
    row->right = beside.load (at + beside.right);
  } else {
    const neighbours<4> beside (in, x / 2, 4);
    const unsigned char *at = row_at (in, x / 2, y);

    row->own.x = __ldg ((const unsigned *) at);
    row->left = beside.load (at + beside.left);
    row->right = beside.load (at + beside.right);
    if (N == 4) {
      row->further_left = beside.load (at - min (x / 2, 8));
      row->further_right = beside.load (at + min (in.row_bytes - 4 - x / 2, 8));
    }
  }
}

/* For each of 8 output bytes the four bytes in the row that it is made of. */
template <int N>
static __device__ __forceinline__ void
find_halving_words (const cubic_row &row, unsigned *words)
{
  const unsigned left = row.left, right = row.right;
  const uint4 &own = row.own;

  if constexpr (N == 1) {
    words[0] = __byte_perm (left, own.x, 0x6540);
    words[1] = __byte_perm (own.x, own.y, 0x4321);
    words[2] = __byte_perm (own.x, own.y, 0x6543);
    words[3] = __byte_perm (own.y, own.z, 0x4321);
    words[4] = __byte_perm (own.y, own.z, 0x6543);
    words[5] = __byte_perm (own.z, own.w, 0x4321);
    words[6] = __byte_perm (own.z, own.w, 0x6543);
    words[7] = __byte_perm (own.w, right, 0x4321);
  } else if constexpr (N == 2) {
#pragma unroll
    for (int n = 0; n < 2; n++) {
      const unsigned low = __byte_perm (own.x, own.y, 0x6420 + n * 0x1111);
      const unsigned high = __byte_perm (own.z, own.w, 0x6420 + n * 0x1111);

      words[n] = __byte_perm (left, low, 0x6540 + n);
      words[2 + n] = __byte_perm (low, high, 0x4321);
      words[4 + n] = __byte_perm (low, high, 0x6543);
      words[6 + n] = __byte_perm (high, right, 0x4321 + n * 0x1000);
    }
  } else {
    turn_pixels (left, own.x, own.y, own.z, words);
    turn_pixels (own.y, own.z, own.w, right, words + 4);
  }
}

/* The selectors make words beyond the edges of the edge's pixel. */
template <int N>
static __device__ __forceinline__ void
find_doubling_words (const cubic_row &row, unsigned left_selector, unsigned right_selector,
    unsigned *words)
{
  const unsigned left = N < 4 ? __byte_perm (row.left, 0, left_selector) : row.left;
  const unsigned right = N < 4 ? __byte_perm (row.right, 0, right_selector) : row.right;
  const unsigned own = row.own.x;

  if constexpr (N == 1) {
    words[0] = __byte_perm (left, own, 0x5432);
    words[1] = words[2] = __byte_perm (left, own, 0x6543);
    words[3] = words[4] = own;
    words[5] = words[6] = __byte_perm (own, right, 0x4321);
    words[7] = __byte_perm (own, right, 0x5432);
  } else if constexpr (N == 2) {
#pragma unroll
    for (int n = 0; n < 2; n++) {
      words[n] = __byte_perm (left, own, 0x6420 + n * 0x1111);
      words[6 + n] = __byte_perm (own, right, 0x6420 + n * 0x1111);
      words[2 + n] = words[4 + n] = __byte_perm (words[n], words[6 + n], 0x6321);
    }
  } else {
    turn_pixels (row.further_left, left, own, right, words);
#pragma unroll
    for (int n = 0; n < 4; n++)
      words[4 + n] = __byte_perm (words[n], row.further_right, 0x4321 + n * 0x1000);
  }
}

/* Eight sums of a row; x: of the output. */
template <int N, bool HALVING>
static __device__ __forceinline__ void
filter_row (const csfk_plane &in, int x, const cubic_row &row, int *h)
{
  unsigned words[8];

  if constexpr (HALVING) {
    find_halving_words<N> (row, words);
  } else {
    const unsigned left_selector = x > 0 ? 0x3210 : N == 1 ? 0x0000 : 0x1010;
    const unsigned right_selector = x / 2 + 4 < in.row_bytes ? 0x3210 : N == 1 ? 0x3333 : 0x3232;

    find_doubling_words<N> (row, left_selector, right_selector, words);
  }
#pragma unroll
  for (int i = 0; i < 8; i++)
    h[i] = HALVING ? dot_signed (words[i], WEIGHTS_HALF, 0) :
        dot_signed (words[i], i / N % 2 ? WEIGHTS_QUARTER : WEIGHTS_THREE_QUARTERS, 2) >> 2;
}

/* One row of output of four rows, which lie in the halves of `first` and `second`. */
template <int SHIFT>
static __device__ __forceinline__ unsigned long long
filter_columns (const int *first, const int *second, int weights, unsigned selector)
{
  int sums[8];

#pragma unroll
  for (int i = 0; i < 8; i++)
    sums[i] = dot_halves (first[i], second[i], weights, 1 << SHIFT >> 1);
  return join_words (__byte_perm (limit_to_bytes<SHIFT> (sums), 255, selector),
      __byte_perm (limit_to_bytes<SHIFT> (sums + 4), 255, selector));
}

static __device__ __forceinline__ void
join_rows (const int *above, const int *below, int *pairs)
{
#pragma unroll
  for (int i = 0; i < 8; i++)
    pairs[i] = (int) __byte_perm (above[i], below[i], 0x5410);
}

/* Output rows y0 .. y0 + CSFK_CONVERTSCALE_ROWS - 1, of input rows 2 * y - 1 .. 2 * y + 2 each. */
template <int N>
static __device__ __forceinline__ void
halve_cubic (const csfk_plane &in, const csfk_plane &out, unsigned selector, int x, int y0)
{
  constexpr int n = CSFK_CONVERTSCALE_ROWS;
  cubic_row rows[2 * n + 2];
  int pairs[n + 1][8];

#pragma unroll
  for (int r = 0; r < 2 * n + 2; r++)
    load_row<N, true> (in, x, 2 * y0 - 1 + r, &rows[r]);
#pragma unroll
  for (int k = 0; k <= n; k++) {
    int above[8], below[8];

    filter_row<N, true> (in, x, rows[2 * k], above);
    filter_row<N, true> (in, x, rows[2 * k + 1], below);
    join_rows (above, below, pairs[k]);
    if (k > 0 && y0 + k - 1 < out.rows)
      *(unsigned long long *) (out.data + (size_t) (y0 + k - 1) * out.stride + x) =
          filter_columns<8> (pairs[k - 1], pairs[k], WEIGHTS_HALF, selector);
  }
}

/* Rows as in double_linear; those of a gap are made of the input's k - 1 .. k + 2. */
template <int N>
static __device__ __forceinline__ void
double_cubic (const csfk_plane &in, const csfk_plane &out, unsigned selector, int x, int k0)
{
  constexpr int gaps = CSFK_CONVERTSCALE_CUBIC_GAPS;
  cubic_row rows[gaps + 3];
  int h[gaps + 3][8], pairs[gaps + 2][8];
  unsigned char *to = out.data + (long long) (2 * k0 + 1) * out.stride + x;

#pragma unroll
  for (int r = 0; r < gaps + 3; r++)
    load_row<N, false> (in, x, k0 - 1 + r, &rows[r]);
  filter_row<N, false> (in, x, rows[0], h[0]);
#pragma unroll
  for (int j = 0; j < gaps + 2; j++) {
    const int y = 2 * (k0 + j - 2) + 1;

    filter_row<N, false> (in, x, rows[j + 1], h[j + 1]);
    join_rows (h[j], h[j + 1], pairs[j]);
    if (j < 2)
      continue;
    if (y >= 0 && y < out.rows)
      *(unsigned long long *) to = filter_columns<12> (pairs[j - 2], pairs[j], WEIGHTS_QUARTER, selector);
    to += out.stride;
    if (y + 1 < out.rows)
      *(unsigned long long *) to =
          filter_columns<12> (pairs[j - 2], pairs[j], WEIGHTS_THREE_QUARTERS, selector);
    to += out.stride;
  }
}

/* ---- which ------------------------------------------------------------------------------------- */

template <int N>
static __device__ __forceinline__ void
scale_by_two (const csfk_plane &in, const csfk_plane &out, const convert_plan &plan, int x, int y)
{
  const int *order = plan.order;
  const unsigned cubic_selector = N < 4 ? 0x3210 :
      order[0] | order[1] << 4 | order[2] << 8 | order[3] << 12;

  if (x >= out.row_bytes)
    return;
  if (out.rows < in.rows) {
    if (y * CSFK_CONVERTSCALE_ROWS < out.rows)
      halve_cubic<N> (in, out, cubic_selector, x, y * CSFK_CONVERTSCALE_ROWS);
  } else if (plan.method == CSFK_CONVERTSCALE_BICUBIC) {
    if (y * CSFK_CONVERTSCALE_CUBIC_GAPS <= in.rows)
      double_cubic<N> (in, out, cubic_selector, x, y * CSFK_CONVERTSCALE_CUBIC_GAPS - 1);
  } else if (y * CSFK_CONVERTSCALE_LINEAR_GAPS <= in.rows) {
    /* Of two words of sums: byte 1 of the first, of the second, byte 3 of the first, of the second. */
    const unsigned places = 0x7351, opaque = N == 4 && order[3] == 4 ? 0xff000000u : 0;
    const unsigned selector = N == 1 ? places : N == 2 ? 0x7531 : (places >> order[0] * 4 & 15) |
        (places >> order[1] * 4 & 15) << 4 | (places >> order[2] * 4 & 15) << 8 | 0x7000;

    double_linear<N> (in, out, selector, opaque, x, y * CSFK_CONVERTSCALE_LINEAR_GAPS - 1);
  }
}

static __device__ __forceinline__ void
scale_plane_by_two (const csfk_frame &frame, const convert_plan &plan, int x, int y)
{
  const csfk_plane &in = frame.in.plane[blockIdx.z];
  const csfk_plane &out = frame.out.plane[blockIdx.z];

  if (plan.task == CSFK_CONVERTSCALE_PACKED)
    scale_by_two<4> (in, out, plan, x, y);
  else if (frame.in.format == CSFK_FORMAT_NV12 && blockIdx.z == 1)
    scale_by_two<2> (in, out, plan, x, y);
  else
    scale_by_two<1> (in, out, plan, x, y);
}

#endif
