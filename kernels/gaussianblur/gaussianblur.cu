/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* gaussianblur on the GPU: one launch, blockIdx.z a plane (of YUY2 and UYVY: a component).  A block
 * brings a tile with its halo into shared memory, sums rows, sums columns, and writes the tile;
 * device memory is read and written once.  gaussianblur.c says what is computed.  Knows kernel.h
 * only.
 *
 * Both passes make eight neighbouring results a thread from steps of eight inputs, so that an
 * input and a weight fetched once serve eight multiplications. */
#include "gaussianblur.h"

#define TILE_X CSFK_GAUSSIANBLUR_TILE_X
#define TILE_Y CSFK_GAUSSIANBLUR_TILE_Y
#define THREADS CSFK_GAUSSIANBLUR_THREADS
#define WEIGHT_BITS CSFK_GAUSSIANBLUR_WEIGHT_BITS
#define MAX_RADIUS CSFK_GAUSSIANBLUR_MAX_RADIUS
#define MAX_HALO CSFK_GAUSSIANBLUR_HALO (MAX_RADIUS)

/* The eight weights before, and the eight after, each step's first input; zero outside the
 * filter. */
#define N_WEIGHTS (2 * MAX_HALO + 16)

/* What one block's threads share about their samples: `step` bytes from one unit to the next, the
 * unit's channels side by side. */
struct samples
{
  const unsigned char *in;
  unsigned char *out;
  int in_stride, out_stride;
  int step;
  int width, out_width, rows;   /* units that may be read, units written, rows */
};

static __device__ __forceinline__ int
clamp (int value, int low, int high)
{
  return min (max (value, low), high);
}

template <int BYTES> struct result { typedef unsigned char type; };
template <> struct result<2> { typedef unsigned short type; };

template <int BYTES>
static __device__ __forceinline__ unsigned
load_sample (const unsigned char *from)
{
  return BYTES == 2 ? (from[0] | from[1] << 8) >> 6 : from[0];
}

template <int BYTES>
static __device__ __forceinline__ void
store_sample (unsigned char *to, unsigned value)
{
  if constexpr (BYTES == 2) {
    to[0] = (unsigned char) (value << 6);
    to[1] = (unsigned char) (value >> 2);
  } else {
    to[0] = (unsigned char) value;
  }
}

static __device__ void
spread_weights (const csfk_gaussianblur_filter &filter, int halo, int *weights)
{
  for (int i = threadIdx.x; i < 2 * halo + 16; i += THREADS) {
    int distance = abs (i - halo - 8);

    weights[i] = distance <= filter.radius ? filter.weight[distance] : 0;
  }
}

/* Adds the products of eight inputs with the weights that reach from them to the eight results.
 * weights: of distance -8 .. 7 from the first result to the first input. */
static __device__ __forceinline__ void
add_step (const unsigned *inputs, const int *weights, unsigned *sums)
{
  int w[16];

#pragma unroll
  for (int i = 0; i < 16; i += 4) {
    int4 four = *(const int4 *) (weights + i);

    w[i] = four.x, w[i + 1] = four.y, w[i + 2] = four.z, w[i + 3] = four.w;
  }
#pragma unroll
  for (int i = 0; i < 8; i++)
#pragma unroll
    for (int o = 0; o < 8; o++)
      sums[o] += inputs[i] * (unsigned) w[8 + i - o];
}

template <int CHANNELS, int BYTES>
static __device__ void
blur (const samples &s, const csfk_gaussianblur_filter &across,
    const csfk_gaussianblur_filter &down, int kept_channels, int *across_weights, int *down_weights)
{
  extern __shared__ uint4 shared[];
  typedef typename result<BYTES>::type result_type;
  const int places = BYTES == 2 ? 6 : 8;
  const int x0 = blockIdx.x * TILE_X, y0 = blockIdx.y * TILE_Y;

  if (x0 >= s.out_width || y0 >= s.rows)
    return;

  const int halo_x = CSFK_GAUSSIANBLUR_HALO (across.radius);
  const int halo_y = CSFK_GAUSSIANBLUR_HALO (down.radius);
  const int in_x = TILE_X + 2 * halo_x, in_y = TILE_Y + 2 * halo_y;
  unsigned short *tile = (unsigned short *) shared;
  unsigned short *row_sums = tile + in_x * in_y;
  result_type *results = (result_type *) (row_sums + TILE_X * in_y);

  spread_weights (across, halo_x, across_weights);
  spread_weights (down, halo_y, down_weights);

  for (int channel = 0; channel < kept_channels; channel++) {
    /* Half a warp or more runs along a row, so that its loads share sectors. */
    const int lane = threadIdx.x % 32;

    for (int y = threadIdx.x / 32; y < in_y; y += THREADS / 32) {
      const int in_row = clamp (y0 + y - halo_y, 0, s.rows - 1);
      const unsigned char *row = s.in + (size_t) in_row * s.in_stride + channel * BYTES;

      for (int x = lane; x < in_x; x += 32)
        tile[y * in_x + x] = (unsigned short) load_sample<BYTES> (row +
            (size_t) clamp (x0 + x - halo_x, 0, s.width - 1) * s.step);
    }
    __syncthreads ();

    for (int i = threadIdx.x; i < in_y * (TILE_X / 8); i += THREADS) {
      const int x = i % (TILE_X / 8) * 8, y = i / (TILE_X / 8);
      const unsigned short *from = tile + y * in_x + x;
      unsigned sums[8];

#pragma unroll
      for (int o = 0; o < 8; o++)
        sums[o] = 1u << (WEIGHT_BITS - places) >> 1;
      for (int step = 0; step <= 2 * halo_x; step += 8) {
        const uint4 words = *(const uint4 *) (from + step);
        const unsigned inputs[8] = {
          words.x & 0xffff, words.x >> 16, words.y & 0xffff, words.y >> 16,
          words.z & 0xffff, words.z >> 16, words.w & 0xffff, words.w >> 16
        };

        add_step (inputs, across_weights + step, sums);
      }
#pragma unroll
      for (int o = 0; o < 8; o++)
        sums[o] >>= WEIGHT_BITS - places;
      *(uint4 *) (row_sums + y * TILE_X + x) = make_uint4 (sums[0] | sums[1] << 16,
          sums[2] | sums[3] << 16, sums[4] | sums[5] << 16, sums[6] | sums[7] << 16);
    }
    __syncthreads ();

    {
      const int x = threadIdx.x % TILE_X, y = threadIdx.x / TILE_X * 8;
      const unsigned short *from = row_sums + y * TILE_X + x;
      unsigned sums[8];

#pragma unroll
      for (int o = 0; o < 8; o++)
        sums[o] = 1u << (WEIGHT_BITS + places) >> 1;
      for (int step = 0; step <= 2 * halo_y; step += 8) {
        unsigned inputs[8];

#pragma unroll
        for (int i = 0; i < 8; i++)
          inputs[i] = from[(step + i) * TILE_X];
        add_step (inputs, down_weights + step, sums);
      }
#pragma unroll
      for (int o = 0; o < 8; o++)
        results[((y + o) * TILE_X + x) * CHANNELS + channel] =
            (result_type) (sums[o] >> (WEIGHT_BITS + places));
    }
    /* The next channel's loads overwrite only the tile, which the barrier above released. */
  }
  __syncthreads ();

  const int n_units = min (TILE_X, s.out_width - x0);

  for (int y = threadIdx.x / 32; y < min (TILE_Y, s.rows - y0); y += THREADS / 32) {
    unsigned char *to = s.out + (size_t) (y0 + y) * s.out_stride + (size_t) x0 * s.step;
    const unsigned char *from = s.in + (size_t) (y0 + y) * s.in_stride + (size_t) x0 * s.step;

    for (int i = threadIdx.x % 32; i < n_units * CHANNELS; i += 32) {
      const int at = i / CHANNELS * s.step + i % CHANNELS * BYTES;

      if (i % CHANNELS < kept_channels)
        store_sample<BYTES> (to + at, results[y * TILE_X * CHANNELS + i]);
      else
        to[at] = from[at];
    }
  }
}

/* A component of packed 4:2:2: a byte in every `step`. */
static __device__ __forceinline__ samples
component_of (const csfk_frame &frame, int offset, int step)
{
  const csfk_plane &in = frame.in.plane[0];
  const csfk_plane &out = frame.out.plane[0];

  return { in.data + offset, out.data + offset, in.stride, out.stride, step,
    (frame.in.width * 2 + step - 1) / step, in.row_bytes / step, in.rows };
}

static __device__ __forceinline__ samples
plane_of (const csfk_frame &frame, int index, int step)
{
  const csfk_plane &in = frame.in.plane[index];
  const csfk_plane &out = frame.out.plane[index];
  const int width = in.row_bytes / step;

  return { in.data, out.data, in.stride, out.stride, step, width, width, in.rows };
}

extern "C" __global__ void __launch_bounds__ (THREADS)
csfk_gaussianblur (const csfk_gaussianblur_args args)
{
  __shared__ int4 weights[2][N_WEIGHTS / 4];
  int *across = (int *) weights[0], *down = (int *) weights[1];
  const csfk_frame &frame = args.frame;
  const csfk_gaussianblur_filter &full = args.params.filter[0];
  const csfk_gaussianblur_filter &half = args.params.filter[1];
  const int index = blockIdx.z;

  switch (frame.in.format) {
    case CSFK_FORMAT_GRAY8:
      blur<1, 1> (plane_of (frame, 0, 1), full, full, 1, across, down);
      break;
    case CSFK_FORMAT_I420:{
      const csfk_gaussianblur_filter &filter = index == 0 ? full : half;

      blur<1, 1> (plane_of (frame, index, 1), filter, filter, 1, across, down);
      break;
    }
    case CSFK_FORMAT_NV12:
      if (index == 0)
        blur<1, 1> (plane_of (frame, 0, 1), full, full, 1, across, down);
      else
        blur<2, 1> (plane_of (frame, 1, 2), half, half, 2, across, down);
      break;
    case CSFK_FORMAT_YUY2:
    case CSFK_FORMAT_UYVY:{
      const int luma_at = frame.in.format == CSFK_FORMAT_UYVY;

      if (index == 0)
        blur<1, 1> (component_of (frame, luma_at, 2), full, full, 1, across, down);
      else
        blur<1, 1> (component_of (frame, 2 * index - 1 - luma_at, 4), half, full, 1, across, down);
      break;
    }
    case CSFK_FORMAT_P010_10LE:
      if (index == 0)
        blur<1, 2> (plane_of (frame, 0, 2), full, full, 1, across, down);
      else
        blur<2, 2> (plane_of (frame, 1, 4), half, half, 2, across, down);
      break;
    case CSFK_FORMAT_RGB:
    case CSFK_FORMAT_BGR:
      blur<3, 1> (plane_of (frame, 0, 3), full, full, 3, across, down);
      break;
    case CSFK_FORMAT_RGBx:
    case CSFK_FORMAT_BGRx:
      blur<4, 1> (plane_of (frame, 0, 4), full, full, 3, across, down);
      break;
    case CSFK_FORMAT_RGBA:
    case CSFK_FORMAT_BGRA:
      blur<4, 1> (plane_of (frame, 0, 4), full, full, 4, across, down);
      break;
  }
}
