/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* motiondetect on the GPU: one launch for all planes (blockIdx.z), luma looked at, chroma filled or
 * copied.  A thread loads a patch of the picture and of the background, a few pixels wide and a
 * few rows high, with all loads in flight at once, and keeps what seems to move as one bit a pixel;
 * the vote is then a sum of bits for the whole patch at once.  What lies left and right of the
 * patch comes from the neighbour lanes, so the first and the last lane of a warp store nothing.
 * What moves is left in the workspace too, for the passes of motiondetect_regions.cuh.
 * motiondetect.c says what is computed.  Knows kernel.h and words.cuh only.
 *
 * Numbers of 16 bits are worked on as the float 2^23 + number, which a byte permute makes in one
 * instruction; their differences are exact.
 */
#include "../kernel.h"
#include "motiondetect.h"

#include "../words.cuh"
#include "motiondetect_regions.cuh"

#define MAGIC 0x4b000000u       /* 2^23 as a float: its low bits count ones */

enum
{
  ROWS = CSFK_MOTIONDETECT_ROWS
};

/* Red, green and blue, or the other way round, are the lowest bytes of the word. */
static __device__ __forceinline__ float
weigh (unsigned pixel, bool red_first)
{
#if __CUDA_ARCH__ >= 610
  return __uint_as_float (__dp4a (pixel, red_first ? 0x0013b736u : 0x0036b713u, MAGIC));
#else
  unsigned first = pixel & 255, last = pixel >> 16 & 255;

  return __uint_as_float (MAGIC + (pixel >> 8 & 255) * 183 + (red_first ? first : last) * 54 +
      (red_first ? last : first) * 19);
#endif
}

/* ---- layouts --------------------------------------------------------------------------------- */

/* A layout says how PIXELS neighbours lie in a row: BYTES each, WORDS words together.  get() makes
 * a float of the i-th one's luma, fill() the words of the mask out of one byte a pixel, white or
 * black, and the input's words. */

struct gray
{
  enum { BYTES = 1, PIXELS = CSFK_MOTIONDETECT_PIXELS (1), WORDS = 2 };

  static __device__ __forceinline__ float
  get (const unsigned *words, int i)
  {
    return __uint_as_float (__byte_perm (words[i / 4], MAGIC, 0x7404 | i % 4 << 4));
  }

  static __device__ __forceinline__ void
  fill (const unsigned *levels, const unsigned *in, bool limited, unsigned *words)
  {
    words[0] = levels[0], words[1] = levels[1];
  }
};

/* YUY2 and UYVY. */
template <int LUMA_BYTE>
struct pairs
{
  enum { BYTES = 2, PIXELS = CSFK_MOTIONDETECT_PIXELS (2), WORDS = 2 };

  static __device__ __forceinline__ float
  get (const unsigned *words, int i)
  {
    return __uint_as_float (__byte_perm (words[i / 2], MAGIC,
            0x7404 | (i % 2 * 2 + LUMA_BYTE) << 4));
  }

  static __device__ __forceinline__ void
  fill (const unsigned *levels, const unsigned *in, bool limited, unsigned *words)
  {
    words[0] = __byte_perm (levels[0], 0x80u, LUMA_BYTE == 0 ? 0x4140 : 0x1404);
    words[1] = __byte_perm (levels[0], 0x80u, LUMA_BYTE == 0 ? 0x4342 : 0x3424);
  }
};

struct p010
{
  enum { BYTES = 2, PIXELS = CSFK_MOTIONDETECT_PIXELS (2), WORDS = 2 };

  static __device__ __forceinline__ float
  get (const unsigned *words, int i)
  {
    return __uint_as_float (__byte_perm (words[i / 2] & 0xffc0ffc0u, MAGIC,
            i % 2 ? 0x7432 : 0x7410));
  }

  /* Full range: 1023 has its lowest bits set as well. */
  static __device__ __forceinline__ void
  fill (const unsigned *levels, const unsigned *in, bool limited, unsigned *words)
  {
    const unsigned low = limited ? 0 : 0x00c000c0u;

    words[0] = __byte_perm (levels[0], 0, 0x1404);
    words[1] = __byte_perm (levels[0], 0, 0x3424);
    words[0] |= words[0] >> 8 & low;
    words[1] |= words[1] >> 8 & low;
  }
};

template <bool RED_FIRST>
struct rgb
{
  enum { BYTES = 3, PIXELS = CSFK_MOTIONDETECT_PIXELS (3), WORDS = 3 };

  /* The fourth byte is the next pixel's: its weight is zero. */
  static __device__ __forceinline__ float
  get (const unsigned *words, int i)
  {
    return weigh (i == 0 ? words[0] : i == 3 ? words[2] >> 8
        : __byte_perm (words[i - 1], words[i], i == 1 ? 0x6543 : 0x5432), RED_FIRST);
  }

  static __device__ __forceinline__ void
  fill (const unsigned *levels, const unsigned *in, bool limited, unsigned *words)
  {
    words[0] = __byte_perm (levels[0], 0, 0x1000);
    words[1] = __byte_perm (levels[0], 0, 0x2211);
    words[2] = __byte_perm (levels[0], 0, 0x3332);
  }
};

template <bool RED_FIRST>
struct rgba
{
  enum { BYTES = 4, PIXELS = CSFK_MOTIONDETECT_PIXELS (4), WORDS = 4 };

  static __device__ __forceinline__ float
  get (const unsigned *words, int i)
  {
    return weigh (words[i], RED_FIRST);
  }

  static __device__ __forceinline__ void
  fill (const unsigned *levels, const unsigned *in, bool limited, unsigned *words)
  {
#pragma unroll
    for (int i = 0; i < WORDS; i++)
      words[i] = __byte_perm (levels[0], in[i], 0x7000 | i * 0x111);
  }
};

/* ---- memory ---------------------------------------------------------------------------------- */

/* The same words as load_words, where the row is not aligned or ends before the last of them; the
 * last visible pixel stands for those right of it.  Words are passed down from the last place,
 * since indexing them in a loop would put them into memory. */
template <class Layout>
static __device__ __forceinline__ void
gather_words (const unsigned char *row, int x0, int width, unsigned *words)
{
#pragma unroll 1
  for (int byte = 0; byte < Layout::WORDS * 4; byte += 4) {
    unsigned word = 0;

#pragma unroll
    for (int b = 0; b < 4; b++) {
      int x = min (x0 + (byte + b) / Layout::BYTES, width - 1);

      word |= (unsigned) row[x * Layout::BYTES + (byte + b) % Layout::BYTES] << 8 * b;
    }
#pragma unroll
    for (int i = 0; i < Layout::WORDS - 1; i++)
      words[i] = words[i + 1];
    words[Layout::WORDS - 1] = word;
  }
}

template <int WORDS>
static __device__ __forceinline__ void
gather_background (const unsigned short *row, int x0, int width, unsigned *words)
{
#pragma unroll
  for (int w = 0; w < WORDS; w++)
    words[w] = row[min (x0 + 2 * w, width - 1)] |
        (unsigned) row[min (x0 + 2 * w + 1, width - 1)] << 16;
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

/* Neighbour lanes' words lie 12 bytes apart: storing them directly would write every sector three
 * times in parts.  Pass them through shared memory instead.  Storing lanes begin with lane 1. */
static __device__ __forceinline__ void
store_warp (unsigned char *to, const unsigned *words, bool storing)
{
  __shared__ unsigned stage[CSFK_MOTIONDETECT_BLOCK_Y][CSFK_MOTIONDETECT_LANES * 3];
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

/* ---- a patch --------------------------------------------------------------------------------- */

/* Where a thread works: chunk number `chunk` of a row, rows y0 on. */
struct place
{
  int chunk, y0;
  bool present;                 /* there is such a chunk */
  bool last;                    /* it ends its row */
  bool whole;                   /* its pixels are all visible */
  bool wide;                    /* and their bytes are aligned */
  bool storing;                 /* it is this thread's to store */
};

static __device__ __forceinline__ unsigned char *
find_background (const csfk_frame &frame, unsigned number)
{
  const size_t bytes = (size_t) CSFK_MOTIONDETECT_STATE_STRIDE (frame.in.width) * frame.in.height;

  return (unsigned char *) frame.state + CSFK_MOTIONDETECT_LIGHT_BYTES +
      (number & 1 ? bytes : 0);
}

template <class Layout, bool WIDE>
static __device__ __forceinline__ void
load_patch (const csfk_frame &frame, const place &where, unsigned (*words)[Layout::WORDS],
    unsigned (*backgrounds)[Layout::PIXELS / 2])
{
  const csfk_plane &in = frame.in.plane[0];
  const int stride = CSFK_MOTIONDETECT_STATE_STRIDE (frame.in.width);
  const int x0 = where.chunk * Layout::PIXELS, width = frame.in.width;
  const unsigned char *background = find_background (frame, frame.state_frames + 1);

#pragma unroll
  for (int r = 0; r < ROWS + 2; r++) {
    const int y = min (max (where.y0 + r - 1, 0), frame.in.height - 1);
    const unsigned char *row = in.data + (size_t) y * in.stride;
    const unsigned char *background_row = background + (size_t) y * stride;

    if (WIDE)
      load_words<Layout::WORDS> (row + x0 * Layout::BYTES, words[r]);
    else
      gather_words<Layout> (row, x0, width, words[r]);
    if (WIDE || where.whole)
      load_words<Layout::PIXELS / 2> (background_row + x0 * 2, backgrounds[r]);
    else
      gather_background<Layout::PIXELS / 2> ((const unsigned short *) background_row, x0, width,
          backgrounds[r]);
  }
}

/* The light that this frame goes by.  One thread notes it and clears the next frame's sum. */
static __device__ __forceinline__ float
follow_light (const csfk_motiondetect_args &args)
{
  csfk_motiondetect_light *lights = (csfk_motiondetect_light *) args.frame.state;
  const unsigned n = args.frame.state_frames;
  const csfk_motiondetect_light before = lights[(n + 3) & 3];
  const int step = (int) floorf ((float) before.sum * args.light_share);
  const int light = min (max (before.light + step, -CSFK_MOTIONDETECT_MOST_LIGHT),
      CSFK_MOTIONDETECT_MOST_LIGHT);

  if ((blockIdx.x | blockIdx.y | threadIdx.x | threadIdx.y) == 0) {
    lights[n & 3].light = light;
    lights[(n + 1) & 3].sum = 0;
  }
  return (float) light;
}

/* Bit r * PIXELS + i of a word tells of pixel i in row r of a patch. */
template <int PIXELS>
struct patch_bits
{
  typedef unsigned word;
};

template <>
struct patch_bits<8>
{
  typedef unsigned long long word;
};

/* Where most of the 3 x 3 bits round each are set; row r of the result is that of row r + 1. */
template <int PIXELS>
static __device__ __forceinline__ typename patch_bits<PIXELS>::word
vote (typename patch_bits<PIXELS>::word here, const place &where)
{
  typedef typename patch_bits<PIXELS>::word word;
  const word firsts = (word) (PIXELS == 8 ? 0x010101010101ull : 0x111111ull);
  const word lasts = firsts << (PIXELS - 1);
  const word before = __shfl_up_sync (ALL_LANES, here, 1);
  const word after = __shfl_down_sync (ALL_LANES, here, 1);
  const word left = (here & ~lasts) << 1 | (where.chunk == 0 ? here & firsts
      : (before & lasts) >> (PIXELS - 1));
  const word right = (here & ~firsts) >> 1 | (where.last ? here & lasts
      : (after & firsts) << (PIXELS - 1));
  /* Of each row's three bits the sum's ones and twos, then of three rows' ones and twos. */
  const word ones = left ^ here ^ right, twos = (left & here) | (right & (left | here));
  const word ones1 = ones >> PIXELS, ones2 = ones1 >> PIXELS;
  const word twos1 = twos >> PIXELS, twos2 = twos1 >> PIXELS;
  const word one = ones ^ ones1 ^ ones2, carried = (ones & ones1) | (ones2 & (ones | ones1));
  const word two = twos ^ twos1 ^ twos2, four = (twos & twos1) | (twos2 & (twos | twos1));

  /* one + 2 (carried + two) + 4 four, with carried of the same weight as two, is 5 or more. */
  return (four & (two | carried | one)) | (two & carried & one);
}

/* Adds the warp's part of the changes that tell of the light. */
template <int PIXELS>
static __device__ __forceinline__ void
sum_changes (const csfk_motiondetect_args &args, const place &where,
    const float (*changes)[PIXELS])
{
  csfk_motiondetect_light *lights = (csfk_motiondetect_light *) args.frame.state;
  const float most = (float) (args.params.threshold * 256);
  const int visible = where.storing ? args.frame.in.width - where.chunk * PIXELS : 0;
  float sum = 0.0f;
  int total;

#pragma unroll
  for (int r = 0; r < ROWS; r++)
#pragma unroll
    for (int i = 0; i < PIXELS; i++)
      if (where.y0 + r < args.frame.in.height && i < visible)
        sum += fminf (fmaxf (changes[r][i], -most), most);
  total = (int) sum;
#pragma unroll
  for (int step = 16; step > 0; step /= 2)
    total += __shfl_xor_sync (ALL_LANES, total, step);
  if (threadIdx.x == 0)
    atomicAdd ((unsigned long long *) &lights[args.frame.state_frames & 3].sum,
        (unsigned long long) (long long) total);
}

template <class Layout>
static __device__ __forceinline__ void
store_output (const csfk_motiondetect_args &args, const place &where, bool staged, int y,
    unsigned moving, const unsigned *in)
{
  constexpr int WORDS = Layout::WORDS, BYTES = WORDS * 4;
  const csfk_plane &out = args.frame.out.plane[0];
  const bool limited = args.frame.out.range == CSFK_RANGE_LIMITED;
  const unsigned black = limited ? 0x10101010u : 0, range = limited ? 219 : 255;
  unsigned char *to = out.data + (size_t) y * out.stride + where.chunk * BYTES;
  unsigned levels[Layout::PIXELS / 4], words[WORDS];

  /* Four bits apart, each a byte's lowest. */
#pragma unroll
  for (int i = 0; i < Layout::PIXELS / 4; i++)
    levels[i] = ((moving >> 4 * i & 15) * 0x00204081u & 0x01010101u) * range + black;
  Layout::fill (levels, in, limited, words);
  if (args.params.show == CSFK_MOTIONDETECT_FRAME)
#pragma unroll
    for (int i = 0; i < WORDS; i++)
      words[i] = in[i];
  if (staged)
    store_warp (to, words, where.storing);
  else if (where.storing && where.wide)
    store_words<WORDS> (to, words);
  else if (where.storing && args.params.show == CSFK_MOTIONDETECT_MASK)
    scatter_words<WORDS> (to, words, min (BYTES, out.row_bytes - where.chunk * BYTES));
}

/* Puts a bit for each visible pixel of the patch into the workspace, where a word is 8 pixels wide
 * and 4 high, a byte a row. */
template <int PIXELS>
static __device__ __forceinline__ void
note_moves (const csfk_frame &frame, const place &where, unsigned moves)
{
  const int columns = min (max (frame.in.width - where.chunk * PIXELS, 0), PIXELS);
  const int rows = min (frame.in.height - where.y0, ROWS);
  unsigned *bits = (unsigned *) frame.workspace + (size_t) (where.y0 / ROWS) *
      ((frame.in.width + 7) / 8);

  if (PIXELS == 4)
    moves = (moves & 0xf) | (moves & 0xf0) << 4 | (moves & 0xf00) << 8 | (moves & 0xf000) << 12;
  moves &= ((1u << columns) - 1) * 0x01010101u & 0xffffffffu >> (ROWS - rows) * 8;
  if (PIXELS == 4) {
    /* Even chunks are with odd lanes. */
    moves |= __shfl_down_sync (ALL_LANES, moves, 1) << 4;
    if (where.storing && where.chunk % 2 == 0)
      bits[where.chunk / 2] = moves;
  } else if (where.storing) {
    bits[where.chunk] = moves;
  }
}

template <class Layout>
static __device__ __forceinline__ void
detect (const csfk_motiondetect_args &args, const place &where)
{
  constexpr int PIXELS = Layout::PIXELS;
  typedef typename patch_bits<PIXELS>::word word;
  const csfk_frame &frame = args.frame;
  const float threshold = (float) (args.params.threshold * 256);
  const float still_rate = (float) (2 * args.params.half_rate[0] + 1) / 131072.0f;
  const float moving_rate = (float) (2 * args.params.half_rate[1] + 1) / 131072.0f;
  const bool staged = Layout::WORDS == 3 && __all_sync (ALL_LANES, !where.storing || where.wide);
  unsigned words[ROWS + 2][Layout::WORDS], backgrounds[ROWS + 2][PIXELS / 2];
  float changes[ROWS][PIXELS];
  word seems = 0, moves;

  if (where.present && where.wide)
    load_patch<Layout, true> (frame, where, words, backgrounds);
  else if (where.present)
    load_patch<Layout, false> (frame, where, words, backgrounds);

  const float light = follow_light (args);

#pragma unroll
  for (int r = 0; r < ROWS + 2; r++) {
    unsigned learnt[PIXELS];

#pragma unroll
    for (int i = 0; i < PIXELS; i++) {
      float luma = Layout::get (words[r], i);
      float background = __uint_as_float (__byte_perm (backgrounds[r][i / 2], MAGIC,
              i % 2 ? 0x7432 : 0x7410));
      float difference, change;
      bool moving;

      if (frame.state_frames == 0)
        background = luma;
      difference = luma - background;
      change = difference - light;
      moving = fabsf (change) > threshold;
      if (moving)
        seems |= (word) 1 << (r * PIXELS + i);
      if (r >= 1 && r <= ROWS)
        changes[r - 1][i] = change;
      learnt[i] = __float_as_uint (fmaf (difference, moving ? moving_rate : still_rate,
              background));
    }
    if (r >= 1 && r <= ROWS && where.storing && where.y0 + r - 1 < frame.in.height) {
      unsigned packed[PIXELS / 2];

#pragma unroll
      for (int i = 0; i < PIXELS / 2; i++)
        packed[i] = __byte_perm (learnt[2 * i], learnt[2 * i + 1], 0x5410);
      store_words<PIXELS / 2> (find_background (frame, frame.state_frames) +
          (size_t) (where.y0 + r - 1) * CSFK_MOTIONDETECT_STATE_STRIDE (frame.in.width) +
          where.chunk * (PIXELS * 2), packed);
    }
  }
  if (threadIdx.y == 0)
    sum_changes<PIXELS> (args, where, changes);

  moves = vote<PIXELS> (seems, where);
  note_moves<PIXELS> (frame, where, (unsigned) moves);
#pragma unroll
  for (int r = 0; r < ROWS; r++)
    if (where.y0 + r < frame.in.height)
      store_output<Layout> (args, where, staged, where.y0 + r,
          (unsigned) (moves >> r * PIXELS) & ((1u << PIXELS) - 1), words[r + 1]);
}

/* ---- planes ---------------------------------------------------------------------------------- */

/* Fills chroma with 128, or 512 in the upper ten of sixteen bits; or copies the plane. */
static __device__ __forceinline__ void
write_plane (const csfk_plane &in, const csfk_plane &out, bool tens, bool copies)
{
  const unsigned word = tens ? 0x80008000u : 0x80808080u;
  const int x = (int) (blockIdx.x * CSFK_MOTIONDETECT_BLOCK_X + threadIdx.x) * 8;
  const int y0 = (int) (blockIdx.y * CSFK_MOTIONDETECT_BLOCK_Y + threadIdx.y) * ROWS;
  const size_t bits = (size_t) out.data | (size_t) out.stride |
      (copies ? (size_t) in.data | (size_t) in.stride : 0);

  if (x >= out.row_bytes)
    return;
#pragma unroll
  for (int r = 0; r < ROWS; r++) {
    const unsigned char *from = in.data + (size_t) (y0 + r) * in.stride + x;
    unsigned char *to = out.data + (size_t) (y0 + r) * out.stride + x;

    if (y0 + r >= out.rows)
      return;
    if ((bits & 7) != 0 || x + 8 > out.row_bytes)
#pragma unroll 1
      for (int b = 0; b < 8 && x + b < out.row_bytes; b++)
        to[b] = copies ? from[b] : (unsigned char) (word >> b % 4 * 8);
    else
      *(uint2 *) to = copies ? *(const uint2 *) from : make_uint2 (word, word);
  }
}

/* What detect() leaves out when it shows the frame: chunks that are not wide. */
static __device__ __forceinline__ void
copy_chunk (const csfk_frame &frame, const place &where, int bytes)
{
  const csfk_plane &in = frame.in.plane[0], &out = frame.out.plane[0];
  const int first = where.chunk * bytes;

  for (int y = where.y0; y < min (where.y0 + ROWS, frame.in.height); y++)
    for (int byte = first; byte < min (first + bytes, out.row_bytes); byte++)
      out.data[(size_t) y * out.stride + byte] = in.data[(size_t) y * in.stride + byte];
}

template <class Layout>
static __device__ __forceinline__ void
detect_luma (const csfk_motiondetect_args &args)
{
  constexpr int BYTES = Layout::WORDS * 4;
  const csfk_plane &in = args.frame.in.plane[0], &out = args.frame.out.plane[0];
  const int lane = threadIdx.x;
  const int n_chunks = (out.row_bytes + BYTES - 1) / BYTES;
  const int align = BYTES == 12 ? 3 : BYTES - 1;
  const size_t bits = (size_t) in.data | (size_t) out.data | (size_t) in.stride |
      (size_t) out.stride;
  place where;

  where.chunk = (int) blockIdx.x * CSFK_MOTIONDETECT_LANES + lane - 1;
  where.y0 = (int) (blockIdx.y * CSFK_MOTIONDETECT_BLOCK_Y + threadIdx.y) * ROWS;
  where.present = where.chunk >= 0 && where.chunk < n_chunks;
  where.last = where.chunk == n_chunks - 1;
  where.whole = (where.chunk + 1) * Layout::PIXELS <= args.frame.in.width;
  where.wide = where.whole && (bits & align) == 0;
  where.storing = where.present && lane > 0 && lane <= CSFK_MOTIONDETECT_LANES;
  /* The same for all lanes of a warp. */
  if (where.y0 >= args.frame.in.height || where.chunk - lane + 1 >= n_chunks)
    return;
  detect<Layout> (args, where);
  if (args.params.show == CSFK_MOTIONDETECT_FRAME && where.storing && !where.wide)
    copy_chunk (args.frame, where, BYTES);
}

extern "C" __global__ void
__launch_bounds__ (CSFK_MOTIONDETECT_BLOCK_X *CSFK_MOTIONDETECT_BLOCK_Y, 3)
csfk_motiondetect (const csfk_motiondetect_args args)
{
  const int format = args.frame.in.format;

  if (blockIdx.z > 0) {
    write_plane (args.frame.in.plane[blockIdx.z], args.frame.out.plane[blockIdx.z],
        format == CSFK_FORMAT_P010_10LE, args.params.show == CSFK_MOTIONDETECT_FRAME);
    return;
  }
  switch (format) {
    case CSFK_FORMAT_GRAY8:
    case CSFK_FORMAT_NV12:
    case CSFK_FORMAT_I420:
      detect_luma<gray> (args);
      break;
    case CSFK_FORMAT_YUY2:
      detect_luma<pairs<0> > (args);
      break;
    case CSFK_FORMAT_UYVY:
      detect_luma<pairs<1> > (args);
      break;
    case CSFK_FORMAT_P010_10LE:
      detect_luma<p010> (args);
      break;
    case CSFK_FORMAT_RGB:
      detect_luma<rgb<true> > (args);
      break;
    case CSFK_FORMAT_BGR:
      detect_luma<rgb<false> > (args);
      break;
    case CSFK_FORMAT_RGBx:
    case CSFK_FORMAT_RGBA:
      detect_luma<rgba<true> > (args);
      break;
    case CSFK_FORMAT_BGRx:
    case CSFK_FORMAT_BGRA:
      detect_luma<rgba<false> > (args);
      break;
  }
}
