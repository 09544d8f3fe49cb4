/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* videobalance on the GPU: one launch, blockIdx.z 0 for luma or whole pixels, 1 for chroma.  A
 * thread works on a few words of some rows: it loads those of two rows at once, balances them in
 * registers, and stores them.  videobalance.h says what is computed.  Knows kernel.h only.
 *
 * A byte permute makes the float 2^23 + sample of a sample.  What the balance makes of it is
 * kept as a part of 256 (of 10 bits: of 1024), so that saturating to 0 .. 1, which costs
 * nothing, is nearly the limit; adding 2^23 rounds and leaves the number in the low bits, and a
 * minimum takes off the one value that is too many.  All numbers are exact until that rounding,
 * so contracting them changes nothing. */
#include "videobalance.h"

#define MAGIC 0x4b000000u       /* 2^23 as a float: its low bits count ones */
#define MAGIC_FLOAT 8388608.0f
#define ROWS CSFK_VIDEOBALANCE_ROWS
#define BLOCK_X CSFK_VIDEOBALANCE_BLOCK_X
#define BLOCK_Y CSFK_VIDEOBALANCE_BLOCK_Y

/* The factors for samples of a picture, as floats that give parts of one. */
struct setup
{
  float contrast, offset, cosine, sine;
  const unsigned *gamma;        /* in shared memory: the table's bytes, or for 10 bits halves */
  bool red_first;
};

/* ---- one sample ------------------------------------------------------------------------------ */

static __device__ __forceinline__ float
get_byte (unsigned word, int byte)
{
  return __uint_as_float (__byte_perm (word, MAGIC, 0x7650 + byte));
}

/* The upper or lower half of a word without P010's empty bits: 64 times the sample. */
static __device__ __forceinline__ float
get_half (unsigned word, int half)
{
  return __uint_as_float (__byte_perm (word & 0xffc0ffc0u, MAGIC, half ? 0x7632 : 0x7610));
}

/* The four low bytes. */
static __device__ __forceinline__ unsigned
pack (unsigned a, unsigned b, unsigned c, unsigned d)
{
  return __byte_perm (__byte_perm (a, b, 0x0040), __byte_perm (c, d, 0x0040), 0x5410);
}

/* Of a part of 1 << BITS: 2^23 plus its number, rounded. */
template <int BITS>
static __device__ __forceinline__ float
round_part (float part)
{
  const float one = (float) (1 << BITS);

  return fminf (fmaf (part, one, MAGIC_FLOAT), MAGIC_FLOAT + one - 1.0f);
}

/* The low bits of the result are y". */
template <int BITS, bool GAMMA>
static __device__ __forceinline__ unsigned
balance_luma (const setup &s, float y)
{
  const float part = __saturatef (fmaf (y - MAGIC_FLOAT, s.contrast, s.offset));
  const unsigned number = __float_as_uint (round_part<BITS> (part));

  if constexpr (!GAMMA)
    return number;
  else if constexpr (BITS == 8)
    return ((const unsigned char *) s.gamma)[number & 255];
  else
    return ((const unsigned short *) s.gamma)[number & 1023];
}

/* u and v: distances from grey.  own: the one that is wanted, sine: negative for v. */
template <int BITS>
static __device__ __forceinline__ float
balance_chroma (const setup &s, float own, float other, float sine)
{
  return round_part<BITS> (__saturatef (fmaf (own, s.cosine, fmaf (other, sine, 0.5f))));
}

/* Grey in the words' own steps: 128 bytes, or 512 times 64. */
#define GREY_8 (MAGIC_FLOAT + 128.0f)
#define GREY_10 (MAGIC_FLOAT + 32768.0f)

/* ---- one pixel ------------------------------------------------------------------------------- */

/* The sum of four bytes times four signed or unsigned weights. */
static __device__ __forceinline__ unsigned
weigh (unsigned bytes, unsigned weights, bool is_signed, unsigned more)
{
#if __CUDA_ARCH__ >= 610
  unsigned sum;

  if (!is_signed)
    return __dp4a (bytes, weights, more);
  asm ("dp4a.u32.s32 %0, %1, %2, %3;" : "=r" (sum) : "r" (bytes), "r" (weights), "r" (more));
  return sum;
#else
#pragma unroll
  for (int i = 0; i < 3; i++) {
    const int weight = (int) (weights >> 8 * i & 255);

    more += (bytes >> 8 * i & 255) * (unsigned) (is_signed && weight > 127 ? weight - 256 : weight);
  }
  return more;
#endif
}

struct colours
{
  unsigned red, green, blue;    /* in the low bytes */
};

/* The whole 256ths in a number of 65536ths, given as a part of 65536 and half of one more.
 * That half is more than the factor, a little below 256, takes away, so that only 1 becomes
 * less by a whole one: 255. */
static __device__ __forceinline__ unsigned
limit_colour (float part)
{
  return __float_as_uint (__fmaf_rd (__saturatef (part), 256.0f - 1.0f / 1024.0f, MAGIC_FLOAT));
}

/* The fourth byte of a pixel has no weight. */
template <bool GAMMA>
static __device__ __forceinline__ colours
balance_pixel (const setup &s, unsigned pixel)
{
  const float part = 1.0f / 65536.0f;
  /* Bytes from the lowest: 66, 129, 25; -38, -74, 112; 112, -94, -18. */
  const unsigned to_y = weigh (pixel, s.red_first ? 0x00198142u : 0x00428119u, false, 4096);
  const unsigned to_u = weigh (pixel, s.red_first ? 0x0070b6dau : 0x00dab670u, true, 32768);
  const unsigned to_v = weigh (pixel, s.red_first ? 0x00eea270u : 0x0070a2eeu, true, 32768);
  const float u_in = get_byte (to_u, 1) - GREY_8, v_in = get_byte (to_v, 1) - GREY_8;
  const unsigned number = balance_luma<8, GAMMA> (s, get_byte (to_y, 1));
  const float y = __uint_as_float (GAMMA ? number | MAGIC : number) - MAGIC_FLOAT;
  const float u = balance_chroma<8> (s, u_in, v_in, s.sine) - MAGIC_FLOAT;
  const float v = balance_chroma<8> (s, v_in, u_in, -s.sine) - MAGIC_FLOAT;

  return {
    limit_colour (fmaf (y, 298.0f * part, fmaf (v, 409.0f * part, -57067.5f * part))),
    limit_colour (fmaf (y, 298.0f * part, fmaf (u, -100.0f * part,
                fmaf (v, -208.0f * part, 34707.5f * part)))),
    limit_colour (fmaf (y, 298.0f * part, fmaf (u, 516.0f * part, -70869.5f * part)))
  };
}

/* ---- the words of a thread ------------------------------------------------------------------- */

/* A layout says which planes it works on together, how many words of 4 bytes a thread has of a
 * row of each, and how many make a group that apply() can work on alone; a second plane's come
 * after. */

template <bool GAMMA>
struct luma8
{
  enum { PLANE = 0, N_PLANES = 1, WORDS = 4, GROUP = 1 };

  static __device__ __forceinline__ void
  apply (const setup &s, unsigned *word)
  {
    unsigned y[4];

#pragma unroll
    for (int b = 0; b < 4; b++)
      y[b] = balance_luma<8, GAMMA> (s, get_byte (*word, b));
    *word = pack (y[0], y[1], y[2], y[3]);
  }
};

template <bool GAMMA>
struct luma10
{
  enum { PLANE = 0, N_PLANES = 1, WORDS = 4, GROUP = 1 };

  static __device__ __forceinline__ void
  apply (const setup &s, unsigned *word)
  {
    *word = __byte_perm (balance_luma<10, GAMMA> (s, get_half (*word, 0)),
        balance_luma<10, GAMMA> (s, get_half (*word, 1)), 0x5410) << 6;
  }
};

struct chroma8
{
  enum { PLANE = 1, N_PLANES = 1, WORDS = 4, GROUP = 1 };

  static __device__ __forceinline__ void
  apply (const setup &s, unsigned *word)
  {
    unsigned result[4];

#pragma unroll
    for (int b = 0; b < 4; b += 2) {
      const float u = get_byte (*word, b) - GREY_8, v = get_byte (*word, b + 1) - GREY_8;

      result[b] = __float_as_uint (balance_chroma<8> (s, u, v, s.sine));
      result[b + 1] = __float_as_uint (balance_chroma<8> (s, v, u, -s.sine));
    }
    *word = pack (result[0], result[1], result[2], result[3]);
  }
};

struct chroma10
{
  enum { PLANE = 1, N_PLANES = 1, WORDS = 4, GROUP = 1 };

  static __device__ __forceinline__ void
  apply (const setup &s, unsigned *word)
  {
    const float u = get_half (*word, 0) - GREY_10, v = get_half (*word, 1) - GREY_10;

    *word = __byte_perm (__float_as_uint (balance_chroma<10> (s, u, v, s.sine)),
        __float_as_uint (balance_chroma<10> (s, v, u, -s.sine)), 0x5410) << 6;
  }
};

struct planar
{
  enum { PLANE = 1, N_PLANES = 2, WORDS = 4, GROUP = 1 };

  static __device__ __forceinline__ void
  apply (const setup &s, unsigned *words)
  {
    unsigned us[4], vs[4];

#pragma unroll
    for (int b = 0; b < 4; b++) {
      const float u = get_byte (words[0], b) - GREY_8, v = get_byte (words[1], b) - GREY_8;

      us[b] = __float_as_uint (balance_chroma<8> (s, u, v, s.sine));
      vs[b] = __float_as_uint (balance_chroma<8> (s, v, u, -s.sine));
    }
    words[0] = pack (us[0], us[1], us[2], us[3]);
    words[1] = pack (vs[0], vs[1], vs[2], vs[3]);
  }
};

/* A word holds two pixels; LUMA: the byte of the first luma. */
template <int LUMA, bool GAMMA>
struct pairs
{
  enum { PLANE = 0, N_PLANES = 1, WORDS = 4, GROUP = 1 };

  static __device__ __forceinline__ void
  apply (const setup &s, unsigned *word)
  {
    const float u = get_byte (*word, 1 - LUMA) - GREY_8, v = get_byte (*word, 3 - LUMA) - GREY_8;
    unsigned result[4];

    result[LUMA] = balance_luma<8, GAMMA> (s, get_byte (*word, LUMA));
    result[2 + LUMA] = balance_luma<8, GAMMA> (s, get_byte (*word, 2 + LUMA));
    result[1 - LUMA] = __float_as_uint (balance_chroma<8> (s, u, v, s.sine));
    result[3 - LUMA] = __float_as_uint (balance_chroma<8> (s, v, u, -s.sine));
    *word = pack (result[0], result[1], result[2], result[3]);
  }
};

template <bool GAMMA>
struct rgba
{
  enum { PLANE = 0, N_PLANES = 1, WORDS = 4, GROUP = 1 };

  static __device__ __forceinline__ void
  apply (const setup &s, unsigned *word)
  {
    const colours c = balance_pixel<GAMMA> (s, *word);

    *word = __byte_perm (__byte_perm (c.red, c.green, 0x0040), __byte_perm (c.blue, *word, 0x0070),
        s.red_first ? 0x5410 : 0x5014);
  }
};

/* Three words hold four pixels. */
template <bool GAMMA>
struct rgb
{
  enum { PLANE = 0, N_PLANES = 1, WORDS = 12, GROUP = 3 };

  static __device__ __forceinline__ unsigned
  apply_to_one (const setup &s, unsigned pixel)
  {
    const colours c = balance_pixel<GAMMA> (s, pixel);

    return __byte_perm (__byte_perm (c.red, c.green, 0x0040), c.blue,
        s.red_first ? 0x0410 : 0x0014);
  }

  static __device__ __forceinline__ void
  apply (const setup &s, unsigned *words)
  {
    const unsigned first = apply_to_one (s, words[0]);
    const unsigned second = apply_to_one (s, __byte_perm (words[0], words[1], 0x6543));
    const unsigned third = apply_to_one (s, __byte_perm (words[1], words[2], 0x5432));
    const unsigned fourth = apply_to_one (s, words[2] >> 8);

    words[0] = __byte_perm (first, second, 0x4210);
    words[1] = __byte_perm (second, third, 0x5421);
    words[2] = __byte_perm (third, fourth, 0x6542);
  }
};

/* ---- rows ------------------------------------------------------------------------------------ */

template <int WORDS>
static __device__ __forceinline__ void
load_vectors (const uint4 *from, int step, unsigned *words)
{
#pragma unroll
  for (int i = 0; i < WORDS / 4; i++) {
    const uint4 v = from[i * step];

    words[4 * i] = v.x, words[4 * i + 1] = v.y, words[4 * i + 2] = v.z, words[4 * i + 3] = v.w;
  }
}

template <int WORDS>
static __device__ __forceinline__ void
store_vectors (uint4 *to, int step, const unsigned *words)
{
#pragma unroll
  for (int i = 0; i < WORDS / 4; i++)
    to[i * step] = make_uint4 (words[4 * i], words[4 * i + 1], words[4 * i + 2], words[4 * i + 3]);
}

/* The same of words that are not aligned to vectors or end before the thread's last.  `bytes`
 * are left of the row; those beyond are read as its last. */
static __device__ __forceinline__ unsigned
load_slowly (const unsigned char *from, int bytes, bool aligned)
{
  unsigned word;

  if (aligned && bytes >= 4)
    return *(const unsigned *) from;
  word = from[0];
#pragma unroll
  for (int b = 1; b < 4; b++)
    word |= (unsigned) from[max (min (b, bytes - 1), 0)] << 8 * b;
  return word;
}

static __device__ __forceinline__ void
store_slowly (unsigned char *to, int bytes, bool aligned, unsigned word)
{
  if (aligned && bytes >= 4) {
    *(unsigned *) to = word;
    return;
  }
#pragma unroll
  for (int b = 0; b < 4; b++)
    if (b < bytes)
      to[b] = (unsigned char) (word >> 8 * b);
}

/* A warp's lanes lie side by side, 16 pixels of 3 bytes each.  Accessing these directly would
 * touch every sector three times in parts: whole vectors of the warp are exchanged through
 * shared memory instead.  `words` are as they lie for the warp before, and as its lanes own them
 * after; or the other way. */
static __device__ __forceinline__ void
exchange (unsigned *words, bool to_own)
{
  extern __shared__ uint4 stage[];
  uint4 *warps = stage + threadIdx.y * (BLOCK_X * 3) + threadIdx.x, *own = warps + threadIdx.x * 2;

  __syncwarp ();
  store_vectors<12> (to_own ? warps : own, to_own ? BLOCK_X : 1, words);
  __syncwarp ();
  load_vectors<12> (to_own ? own : warps, to_own ? 1 : BLOCK_X, words);
}

template <class Layout>
static __device__ __forceinline__ void
apply_to_row (const setup &s, unsigned *words)
{
  constexpr int WORDS = Layout::WORDS, GROUP = Layout::GROUP, N_PLANES = Layout::N_PLANES;

#pragma unroll
  for (int i = 0; i < WORDS; i += GROUP) {
    unsigned group[GROUP * N_PLANES];

#pragma unroll
    for (int k = 0; k < GROUP * N_PLANES; k++)
      group[k] = words[k / GROUP * WORDS + i + k % GROUP];
    Layout::apply (s, group);
#pragma unroll
    for (int k = 0; k < GROUP * N_PLANES; k++)
      words[k / GROUP * WORDS + i + k % GROUP] = group[k];
  }
}

/* Rows y0, y0 + BLOCK_Y and so on of the thread's words, that begin at byte x.  WARP: by
 * vectors of the warp, otherwise of the thread. */
template <class Layout, bool WARP>
static __device__ __forceinline__ void
balance_vectors (const csfk_frame &frame, const setup &s, bool neutral, int x, int y0)
{
  constexpr int WORDS = Layout::WORDS, N_PLANES = Layout::N_PLANES;
  /* Twelve words fill enough registers and keep the memory busy. */
  constexpr int AT_ONCE = WORDS == 12 ? 1 : 2;
  const csfk_plane *in = frame.in.plane + Layout::PLANE, *out = frame.out.plane + Layout::PLANE;
  const int rows = in[0].rows;
  const int warp_x = WARP ? x - (int) threadIdx.x * (4 * WORDS - 16) : x;
  const int step = WARP ? BLOCK_X : 1;

#pragma unroll 1
  for (int first = 0; first < ROWS; first += AT_ONCE) {
    unsigned words[AT_ONCE][WORDS * N_PLANES];

#pragma unroll
    for (int r = 0; r < AT_ONCE; r++) {
      const int y = y0 + (first + r) * BLOCK_Y;

      if (y < rows)
#pragma unroll
        for (int p = 0; p < N_PLANES; p++)
          load_vectors<WORDS> ((const uint4 *) (in[p].data + (size_t) y * in[p].stride + warp_x),
              step, words[r] + p * WORDS);
    }
#pragma unroll
    for (int r = 0; r < AT_ONCE; r++) {
      const int y = y0 + (first + r) * BLOCK_Y;

      if (y >= rows)
        return;
      if (!neutral) {
        if constexpr (WARP)
          exchange (words[r], true);
        apply_to_row<Layout> (s, words[r]);
        if constexpr (WARP)
          exchange (words[r], false);
      }
#pragma unroll
      for (int p = 0; p < N_PLANES; p++)
        store_vectors<WORDS> ((uint4 *) (out[p].data + (size_t) y * out[p].stride + warp_x), step,
            words[r] + p * WORDS);
    }
  }
}

/* A group of words at a time. */
template <class Layout>
static __device__ __forceinline__ void
balance_slowly (const csfk_frame &frame, const setup &s, bool neutral, int x, int y0, bool aligned)
{
  constexpr int WORDS = Layout::WORDS, GROUP = Layout::GROUP, N_PLANES = Layout::N_PLANES;
  const csfk_plane *in = frame.in.plane + Layout::PLANE, *out = frame.out.plane + Layout::PLANE;
  const int end = min (in[0].row_bytes, x + 4 * WORDS);

#pragma unroll 1
  for (int y = y0; y < min (in[0].rows, y0 + ROWS * BLOCK_Y); y += BLOCK_Y)
#pragma unroll 1
    for (int at = x; at < end; at += 4 * GROUP) {
      unsigned group[GROUP * N_PLANES];

#pragma unroll
      for (int k = 0; k < GROUP * N_PLANES; k++) {
        const int byte = min (at + k % GROUP * 4, end - 1);

        group[k] = load_slowly (in[k / GROUP].data + (size_t) y * in[k / GROUP].stride + byte,
            end - byte, aligned);
      }
      if (!neutral)
        Layout::apply (s, group);
#pragma unroll
      for (int k = 0; k < GROUP * N_PLANES; k++) {
        const int byte = at + k % GROUP * 4;

        store_slowly (out[k / GROUP].data + (size_t) y * out[k / GROUP].stride + byte, end - byte,
            aligned, group[k]);
      }
    }
}

template <class Layout>
static __device__ __forceinline__ void
balance_rows (const csfk_frame &frame, const setup &s, bool neutral)
{
  constexpr int THREAD_BYTES = 4 * Layout::WORDS;
  const csfk_plane *in = frame.in.plane + Layout::PLANE, *out = frame.out.plane + Layout::PLANE;
  const int warp_x = (int) blockIdx.x * (BLOCK_X * THREAD_BYTES);
  const int x = warp_x + (int) threadIdx.x * THREAD_BYTES;
  const int y0 = (int) (blockIdx.y * BLOCK_Y * ROWS + threadIdx.y);
  const int bytes = in[0].row_bytes - x;
  size_t bits = 0;

  if (bytes <= 0 || y0 >= in[0].rows)
    return;
#pragma unroll
  for (int p = 0; p < Layout::N_PLANES; p++)
    bits |= (size_t) in[p].data | (size_t) out[p].data | (size_t) in[p].stride |
        (size_t) out[p].stride;

  if (Layout::WORDS == 12 && (bits & 15) == 0 && warp_x + BLOCK_X * THREAD_BYTES <= in[0].row_bytes)
    balance_vectors<Layout, Layout::WORDS == 12> (frame, s, neutral, x, y0);
  else if (Layout::WORDS == 4 && (bits & 15) == 0 && bytes >= THREAD_BYTES)
    balance_vectors<Layout, false> (frame, s, neutral, x, y0);
  else
    balance_slowly<Layout> (frame, s, neutral, x, y0, (bits & 3) == 0);
}

/* ---- the kernel ------------------------------------------------------------------------------ */

/* Copies N words of the argument, side by side for the lanes.  The constant bank, where the
 * argument lies, would serve a warp's 32 addresses one after another; through a generic address
 * it is read as other memory is, which the compiler must be kept from undoing. */
template <int N>
static __device__ __forceinline__ void
fill_table (const void *from, unsigned *table)
{
#if __CUDA_ARCH__ >= 700
  asm ("" : "+l" (from));
#endif
#pragma unroll
  for (int first = 0; first < N; first += BLOCK_X * BLOCK_Y) {
    const int i = first + (int) (threadIdx.y * BLOCK_X + threadIdx.x);

    if (i < N)
      table[i] = ((const unsigned *) from)[i];
  }
}

template <bool GAMMA>
static __device__ __forceinline__ void
balance_luma_rows (const csfk_frame &frame, const setup &s, bool neutral)
{
  switch (frame.in.format) {
    case CSFK_FORMAT_GRAY8:
    case CSFK_FORMAT_NV12:
    case CSFK_FORMAT_I420:
      balance_rows<luma8<GAMMA> > (frame, s, neutral);
      break;
    case CSFK_FORMAT_YUY2:
      balance_rows<pairs<0, GAMMA> > (frame, s, neutral);
      break;
    case CSFK_FORMAT_UYVY:
      balance_rows<pairs<1, GAMMA> > (frame, s, neutral);
      break;
    case CSFK_FORMAT_P010_10LE:
      balance_rows<luma10<GAMMA> > (frame, s, neutral);
      break;
    case CSFK_FORMAT_RGB:
    case CSFK_FORMAT_BGR:
      balance_rows<rgb<GAMMA> > (frame, s, neutral);
      break;
    default:
      balance_rows<rgba<GAMMA> > (frame, s, neutral);
      break;
  }
}

/* Blocks that are to fit on a multiprocessor: all that they can be without registers going to
 * memory.  Turing's holds 1024 threads. */
#if defined (__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define BLOCKS 6
#else
#define BLOCKS 4
#endif

/* What lets an argument have an address without being copied first. */
#if defined (__CUDA_ARCH__) && __CUDA_ARCH__ >= 700
#define ADDRESSABLE __grid_constant__
#else
#define ADDRESSABLE
#endif

extern "C" __global__ void __launch_bounds__ (BLOCK_X *BLOCK_Y, BLOCKS)
csfk_videobalance (const ADDRESSABLE csfk_videobalance_args args)
{
  __shared__ unsigned table[512];
  const csfk_frame &frame = args.frame;
  const int format = frame.in.format;
  const bool ten_bits = format == CSFK_FORMAT_P010_10LE;
  const bool is_rgb = format >= CSFK_FORMAT_RGB;
  const csfk_videobalance_factors &factors = args.params.factors[ten_bits];
  const bool neutral = args.params.is_neutral != 0;
  const bool limited = is_rgb || frame.in.range == CSFK_RANGE_LIMITED;
  /* P010's words are 64 times the sample. */
  const float part = ten_bits ? 1.0f / 1024.0f : 1.0f / 256.0f;
  const float sample_part = ten_bits ? part / 64.0f : part;
  const setup s = {
    factors.contrast * sample_part, (limited ? factors.offset[CSFK_RANGE_LIMITED]
        : factors.offset[CSFK_RANGE_FULL]) * part,
    factors.cosine * sample_part, factors.sine * sample_part, table,
    format == CSFK_FORMAT_RGB || format == CSFK_FORMAT_RGBx || format == CSFK_FORMAT_RGBA
  };

  if (blockIdx.z == 1) {
    if (ten_bits)
      balance_rows<chroma10> (frame, s, neutral);
    else if (format == CSFK_FORMAT_I420)
      balance_rows<planar> (frame, s, neutral);
    else
      balance_rows<chroma8> (frame, s, neutral);
  } else if (args.params.has_gamma) {
    if (ten_bits)
      fill_table<512> (args.params.gamma10, table);
    else
      fill_table<64> (args.params.gamma8, table);
    __syncthreads ();
    balance_luma_rows<true> (frame, s, neutral);
  } else {
    balance_luma_rows<false> (frame, s, neutral);
  }
}
