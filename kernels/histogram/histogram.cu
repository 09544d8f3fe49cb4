/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* histogram on the GPU.  One launch copies the picture and counts on the way; each block works on one plane
 * and keeps its counts in shared memory, with a counter for every lane of a warp, so that lanes never wait
 * for each other whatever the picture.  What the blocks counted is added into the state for the next frame,
 * and left in the workspace, where the two small launches of emit() find it: the next frame need not wait
 * for them.  histogram.c says what is computed.  Knows kernel.h only. */
#include "../kernel.h"
#include "histogram.h"

#define ALL_LANES 0xffffffffu
/* Blocks of a multiprocessor that there must be registers for; the 75's has 1024 threads at most. */
#if defined (__CUDA_ARCH__) && __CUDA_ARCH__ == 750
#define RESIDENT 2
#else
#define RESIDENT 3
#endif

enum
{
  CHANNELS = CSFK_HISTOGRAM_CHANNELS,
  BINS = CSFK_HISTOGRAM_BINS,
  THREADS = CSFK_HISTOGRAM_THREADS,
  UNIT = CSFK_HISTOGRAM_UNIT,
  CHANNEL_WORDS = CSFK_HISTOGRAM_CHANNEL_WORDS,
  /* Loads in flight. */
  BATCH = 4
};

/* ---- counters -------------------------------------------------------------------------------- */

/* Counters of one word: bins 2 i and 2 i + 1 of one lane, in its lower and its upper half.  Words of a lane
 * lie 128 bytes apart, those of a channel CHANNEL_WORDS * 4. */

/* Counts byte BYTE of a word.  base: the channel's first byte and the lane's, added. */
template <int BYTE>
static __device__ __forceinline__ void
count_byte (unsigned char *counters, unsigned base, unsigned word)
{
  const unsigned bits = BYTE == 0 ? word << 6 : word >> (BYTE * 8 + 1 - 7);
  unsigned *counter = (unsigned *) (counters + ((bits & 0x3f80) | base));

  atomicAdd (counter, (word & 1u << BYTE * 8) != 0 ? 0x10000u : 1u);
}

static __device__ __forceinline__ unsigned
get_base (int slot)
{
  return (unsigned) slot * (CHANNEL_WORDS * 4) | (threadIdx.x & 31) * 4;
}

/* ---- layouts --------------------------------------------------------------------------------- */

/* A layout says which of its plane's channels byte i of a unit belongs to: a slot, or -1 for none. */

struct single
{
  static __device__ constexpr int slot (int i) { return 0; }
};

struct interleaved
{
  static __device__ constexpr int slot (int i) { return i % 2; }
};

struct yuy2
{
  static __device__ constexpr int slot (int i) { return i % 2 == 0 ? 0 : 1 + i / 2 % 2; }
};

struct uyvy
{
  static __device__ constexpr int slot (int i) { return i % 2 == 1 ? 0 : 1 + i / 2 % 2; }
};

struct single_tens
{
  static __device__ constexpr int slot (int i) { return i % 2 == 1 ? 0 : -1; }
};

struct interleaved_tens
{
  static __device__ constexpr int slot (int i) { return i % 2 == 1 ? i / 2 % 2 : -1; }
};

template <bool RED_FIRST>
struct fours
{
  static __device__ constexpr int slot (int i)
  {
    return i % 4 == 3 ? -1 : RED_FIRST ? i % 4 : 2 - i % 4;
  }
};

/* A unit may begin with any of the three. */
template <bool RED_FIRST>
struct threes
{
  static __device__ constexpr int slot (int i) { return RED_FIRST ? i % 3 : 2 - i % 3; }
};

template <class Layout>
struct is_threes
{
  enum { VALUE = 0 };
};

template <bool RED_FIRST>
struct is_threes<threes<RED_FIRST> >
{
  enum { VALUE = 1 };
};

template <class Layout, int I>
static __device__ __forceinline__ void
count_word (unsigned char *counters, const unsigned *bases, unsigned word)
{
  if constexpr (is_threes<Layout>::VALUE) {
    count_byte<0> (counters, bases[I % 3], word);
    count_byte<1> (counters, bases[(I + 1) % 3], word);
    count_byte<2> (counters, bases[(I + 2) % 3], word);
    count_byte<3> (counters, bases[I % 3], word);
  } else {
    if constexpr (Layout::slot (I) >= 0)
      count_byte<0> (counters, bases[Layout::slot (I)], word);
    if constexpr (Layout::slot (I + 1) >= 0)
      count_byte<1> (counters, bases[Layout::slot (I + 1)], word);
    if constexpr (Layout::slot (I + 2) >= 0)
      count_byte<2> (counters, bases[Layout::slot (I + 2)], word);
    if constexpr (Layout::slot (I + 3) >= 0)
      count_byte<3> (counters, bases[Layout::slot (I + 3)], word);
  }
}

/* bases: of each slot; of threes: of the unit's first, second and third byte. */
template <class Layout>
static __device__ __forceinline__ void
count_unit (unsigned char *counters, const unsigned *bases, uint4 words)
{
  count_word<Layout, 0> (counters, bases, words.x);
  count_word<Layout, 4> (counters, bases, words.y);
  count_word<Layout, 8> (counters, bases, words.z);
  count_word<Layout, 12> (counters, bases, words.w);
}

/* ---- a plane --------------------------------------------------------------------------------- */

/* Where a unit lies. */
struct place
{
  unsigned x, y;                /* units, rows */
};

static __device__ __forceinline__ place
find_unit (unsigned unit, unsigned row_units, unsigned reciprocal)
{
  place where;

  /* At most one too small. */
  where.y = __umulhi (unit, reciprocal);
  where.x = unit - where.y * row_units;
  if (where.x >= row_units) {
    where.x -= row_units;
    where.y++;
  }
  return where;
}

/* What is not aligned, and the ends of rows: byte by byte, neighbours side by side. */
template <class Layout>
static __device__ __forceinline__ void
count_rest (const csfk_histogram_args &args, int plane, unsigned first, unsigned step,
    unsigned char *counters)
{
  const csfk_plane &in = args.frame.in.plane[plane], &out = args.frame.out.plane[plane];
  const unsigned whole = args.whole_units[plane] * UNIT, rest = (unsigned) in.row_bytes - whole;
  /* The last pair of an odd row has luma that nobody sees. */
  const unsigned hidden = (args.frame.in.format == CSFK_FORMAT_YUY2
      || args.frame.in.format == CSFK_FORMAT_UYVY) ? (unsigned) args.frame.in.width * 2 : ~0u;

  if (rest == 0)
    return;
  for (unsigned u = first; u < rest * (unsigned) in.rows; u += step) {
    const unsigned y = u / rest, x = whole + u % rest;
    const unsigned value = in.data[(size_t) y * in.stride + x];
    /* Any layout repeats after twelve bytes. */
    const int slot = Layout::slot ((int) (x % 12));

    out.data[(size_t) y * out.stride + x] = (unsigned char) value;
    if (slot > 0 || (slot == 0 && x < hidden))
      atomicAdd ((unsigned *) (counters + ((value >> 1) * 128 | get_base (slot))),
          value & 1 ? 0x10000u : 1u);
  }
}

template <class Layout>
static __device__ __forceinline__ void
count_plane (const csfk_histogram_args &args, int plane, unsigned char *counters)
{
  const csfk_plane &in = args.frame.in.plane[plane], &out = args.frame.out.plane[plane];
  const unsigned row_units = args.whole_units[plane], reciprocal = args.reciprocal[plane];
  const unsigned n = row_units * (unsigned) in.rows;
  const unsigned step = (args.first_block[plane + 1] - args.first_block[plane]) * THREADS;
  const unsigned first = (blockIdx.x - args.first_block[plane]) * THREADS + threadIdx.x;
  unsigned bases[3];

#pragma unroll
  for (int i = 0; i < 3; i++)
    bases[i] = get_base (i);
#pragma unroll 1
  for (unsigned u = first; u < n; u += BATCH * step) {
    uint4 words[BATCH];

#pragma unroll
    for (int k = 0; k < BATCH; k++) {
      const place where = find_unit (u + k * step, row_units, reciprocal);

      if (u + k * step < n)
        words[k] = *(const uint4 *) (in.data + (size_t) where.y * in.stride + where.x * UNIT);
    }
#pragma unroll
    for (int k = 0; k < BATCH; k++) {
      const place where = find_unit (u + k * step, row_units, reciprocal);

      if (u + k * step >= n)
        continue;
      *(uint4 *) (out.data + (size_t) where.y * out.stride + where.x * UNIT) = words[k];
      if constexpr (is_threes<Layout>::VALUE) {
        /* 16 is 1 more than a multiple of three. */
        const unsigned phase = where.x % 3;

#pragma unroll
        for (int i = 0; i < 3; i++)
          bases[i] = get_base (Layout::slot ((int) ((phase + i) % 3)));
      }
      count_unit<Layout> (counters, bases, words[k]);
    }
  }
  count_rest<Layout> (args, plane, first, step, counters);
}

static __device__ __forceinline__ void
count_any (const csfk_histogram_args &args, int plane, unsigned char *counters)
{
  switch (args.frame.in.format) {
    case CSFK_FORMAT_NV12:
      if (plane == 0)
        count_plane<single> (args, plane, counters);
      else
        count_plane<interleaved> (args, plane, counters);
      break;
    case CSFK_FORMAT_GRAY8:
    case CSFK_FORMAT_I420:
      count_plane<single> (args, plane, counters);
      break;
    case CSFK_FORMAT_YUY2:
      count_plane<yuy2> (args, plane, counters);
      break;
    case CSFK_FORMAT_UYVY:
      count_plane<uyvy> (args, plane, counters);
      break;
    case CSFK_FORMAT_P010_10LE:
      if (plane == 0)
        count_plane<single_tens> (args, plane, counters);
      else
        count_plane<interleaved_tens> (args, plane, counters);
      break;
    case CSFK_FORMAT_RGB:
      count_plane<threes<true> > (args, plane, counters);
      break;
    case CSFK_FORMAT_BGR:
      count_plane<threes<false> > (args, plane, counters);
      break;
    case CSFK_FORMAT_RGBx:
    case CSFK_FORMAT_RGBA:
      count_plane<fours<true> > (args, plane, counters);
      break;
    case CSFK_FORMAT_BGRx:
    case CSFK_FORMAT_BGRA:
      count_plane<fours<false> > (args, plane, counters);
      break;
  }
}

/* ---- what goes on -------------------------------------------------------------------------- */

static __device__ __forceinline__ csfk_histogram_counts *
get_state (const csfk_frame &frame, unsigned number)
{
  return (csfk_histogram_counts *) frame.state + number % CSFK_HISTOGRAM_STATES;
}

/* The blocks' counts. */
static __device__ __forceinline__ csfk_histogram_counts *
get_parts (const csfk_frame &frame)
{
  return (csfk_histogram_counts *) ((csfk_histogram_work *) frame.workspace + 1);
}

/* One block keeps what the last frame left, and makes room for the next. */
static __device__ __forceinline__ void
turn_states (const csfk_frame &frame)
{
  const unsigned number = frame.state_frames % CSFK_HISTOGRAM_STATES;
  const csfk_histogram_counts *last = get_state (frame, number + 2);
  csfk_histogram_counts *before = &((csfk_histogram_work *) frame.workspace)->before;
  csfk_histogram_counts *next = get_state (frame, number + 1);

  for (int i = threadIdx.x; i < CHANNELS * BINS; i += THREADS) {
    before->bins[i / BINS][i % BINS] = last->bins[i / BINS][i % BINS];
    next->bins[i / BINS][i % BINS] = 0;
  }
}

/* Adds the lanes' counters of two bins; neighbour threads begin with neighbour banks. */
static __device__ __forceinline__ uint2
add_lanes (const unsigned *counters, int row)
{
  uint2 sum = make_uint2 (0, 0);

#pragma unroll 8
  for (int i = 0; i < 32; i++) {
    unsigned word = counters[row * 32 + ((i + threadIdx.x) & 31)];

    sum.x += word & 0xffff;
    sum.y += word >> 16;
  }
  return sum;
}

/* The channels of a plane: the plane's number is its first one's. */
static __device__ __forceinline__ int
count_slots (const csfk_image &in, int plane)
{
  if (in.n_planes == 1)
    return in.format == CSFK_FORMAT_GRAY8 ? 1 : 3;
  return in.n_planes == 2 && plane == 1 ? 2 : 1;
}

extern "C" __global__ void
__launch_bounds__ (CSFK_HISTOGRAM_THREADS, RESIDENT)
csfk_histogram (const csfk_histogram_args args)
{
  extern __shared__ uint4 counters[];
  const int plane = blockIdx.x >= args.first_block[2] ? 2 : blockIdx.x >= args.first_block[1];
  const int n_slots = count_slots (args.frame.in, plane), row = threadIdx.x;

  for (int i = threadIdx.x; i < n_slots * (CHANNEL_WORDS / 4); i += THREADS)
    counters[i] = make_uint4 (0, 0, 0, 0);
  if (blockIdx.x == 0)
    turn_states (args.frame);
  __syncthreads ();
  count_any (args, plane, (unsigned char *) counters);
  __syncthreads ();
  if (row < n_slots * (BINS / 2)) {
    const uint2 sum = add_lanes ((const unsigned *) counters, row);
    const int channel = plane + row / (BINS / 2), bin = row % (BINS / 2) * 2;
    unsigned *total = &get_state (args.frame, args.frame.state_frames)->bins[channel][bin];

    *(uint2 *) &get_parts (args.frame)[blockIdx.x].bins[channel][bin] = sum;
    if (sum.x > 0)
      atomicAdd (total, sum.x);
    if (sum.y > 0)
      atomicAdd (total + 1, sum.y);
  }
}

/* ---- the record ------------------------------------------------------------------------------ */

/* Adds up the blocks' counts of CSFK_HISTOGRAM_SUM_X bins of channel blockIdx.y. */
extern "C" __global__ void
__launch_bounds__ (CSFK_HISTOGRAM_SUM_X *CSFK_HISTOGRAM_SUM_Y)
csfk_histogram_sum (const csfk_histogram_args args)
{
  __shared__ unsigned sums[CSFK_HISTOGRAM_SUM_Y][CSFK_HISTOGRAM_SUM_X];
  const int channel = blockIdx.y, bin = (int) (blockIdx.x * CSFK_HISTOGRAM_SUM_X + threadIdx.x);
  const int plane = min (channel, args.frame.in.n_planes - 1);
  const csfk_histogram_counts *parts = get_parts (args.frame);
  unsigned sum = 0;

#pragma unroll 8
  for (unsigned i = args.first_block[plane] + threadIdx.y; i < args.first_block[plane + 1];
      i += CSFK_HISTOGRAM_SUM_Y)
    sum += parts[i].bins[channel][bin];
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads ();
  if (threadIdx.y > 0)
    return;
#pragma unroll
  for (int i = 1; i < CSFK_HISTOGRAM_SUM_Y; i++)
    sum += sums[i][threadIdx.x];
  ((csfk_histogram_work *) args.frame.workspace)->now.bins[channel][bin] = sum;
}

template <typename Number>
static __device__ __forceinline__ Number
add_warp (Number number)
{
#pragma unroll
  for (int step = 16; step > 0; step /= 2)
    number += __shfl_xor_sync (ALL_LANES, number, step);
  return number;
}

/* count / all in parts of 1 / one, to the nearest. */
static __device__ __forceinline__ float
get_ratio (unsigned long long count, unsigned all, unsigned one)
{
  return (float) (unsigned) ((count * one + all / 2) / all) / (float) one;
}

/* Warp y describes channel y; a lane has eight bins, which are one group. */
static __device__ __forceinline__ unsigned
describe_channel (const csfk_histogram_args &args, bool rgb, csfk_histogram_record *record)
{
  const csfk_histogram_work *work = (const csfk_histogram_work *) args.frame.workspace;
  const int channel = threadIdx.y, lane = threadIdx.x;
  const bool limited = args.frame.in.range == CSFK_RANGE_LIMITED;
  const int low = limited ? 16 : 0;
  const int high = !limited ? 255 : channel == 0 || rgb ? 235 : 240;
  unsigned group = 0, group_before = 0, n_low = 0, n_high = 0, samples;
  unsigned long long weight = 0;

#pragma unroll
  for (int i = 0; i < CSFK_HISTOGRAM_GROUP; i++) {
    const int bin = lane * CSFK_HISTOGRAM_GROUP + i;
    const unsigned count = work->now.bins[channel][bin];

    group += count;
    group_before += work->before.bins[channel][bin];
    weight += (unsigned long long) count * (unsigned) bin;
    n_low += bin <= low ? count : 0;
    n_high += bin >= high ? count : 0;
    if (record)
      record->bins[channel][bin] = count;
  }
  samples = add_warp (group);
  weight = add_warp (weight);
  n_low = add_warp (n_low);
  n_high = add_warp (n_high);
  if (lane == 0 && record) {
    record->samples[channel] = samples;
    record->mean[channel] = get_ratio (weight, samples, 256);
    record->clipped_low[channel] = get_ratio (n_low, samples, 65536);
    record->clipped_high[channel] = get_ratio (n_high, samples, 65536);
  }
  return add_warp (group > group_before ? group - group_before : group_before - group);
}

/* What the format has no channel for. */
static __device__ __forceinline__ void
clear_channel (csfk_histogram_record *record)
{
  const int channel = threadIdx.y;

  for (int bin = threadIdx.x; bin < BINS; bin += CSFK_HISTOGRAM_EMIT_X)
    record->bins[channel][bin] = 0;
  if (threadIdx.x == 0) {
    record->samples[channel] = 0;
    record->mean[channel] = record->clipped_low[channel] = record->clipped_high[channel] = 0.0f;
  }
}

extern "C" __global__ void
__launch_bounds__ (CSFK_HISTOGRAM_EMIT_X *CSFK_HISTOGRAM_CHANNELS)
csfk_histogram_emit (const csfk_histogram_args args)
{
  __shared__ csfk_histogram_record *record;
  __shared__ unsigned differences[CHANNELS];
  const csfk_image &in = args.frame.in;
  const bool rgb = in.n_planes == 1 && in.format != CSFK_FORMAT_GRAY8
      && in.format != CSFK_FORMAT_YUY2 && in.format != CSFK_FORMAT_UYVY;
  const int n_channels = in.format == CSFK_FORMAT_GRAY8 ? 1 : CHANNELS;
  unsigned difference = 0;

  if (threadIdx.x == 0 && threadIdx.y == 0)
    record = (csfk_histogram_record *) csfk_append (&args.frame.records);
  __syncthreads ();
  if ((int) threadIdx.y < n_channels)
    difference = describe_channel (args, rgb, record);
  else if (record)
    clear_channel (record);
  if (threadIdx.x == 0)
    differences[threadIdx.y] = difference;
  __syncthreads ();
  if (threadIdx.x == 0 && threadIdx.y == 0 && record) {
    const unsigned long long twice = rgb
        ? (unsigned long long) differences[0] + differences[1] + differences[2] : differences[0];
    const unsigned all = (unsigned) in.width * (unsigned) in.height * (rgb ? CHANNELS : 1);
    const float change = args.frame.state_frames > 0 ? get_ratio (twice / 2, all, 65536) : 0.0f;

    record->n_channels = (unsigned) n_channels;
    record->change = change;
    record->scene_change = args.frame.state_frames > 0
        && change >= (float) args.params.threshold / 65536.0f;
  }
}
