/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* gaussianblur: a separable Gaussian in fixed point.  The plain C path, the weights and the launch;
 * the device code is in gaussianblur.cu, written apart from this so that each checks the other.
 * Knows kernel.h and libc only.
 *
 * Rows first, then columns, borders replicated (the last visible pixel in a padded YUY2 or UYVY
 * pair).  With d the depth, a row sum is kept as 16 bits with 16 - d binary places, rounded half
 * up; so is the result.  Chroma with half the samples of a direction uses half of sigma there,
 * so that it blurs by the same angle as luma.  The unused byte of RGBx and BGRx is carried over. */
#include "gaussianblur.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "../simd.h"

extern const csfk_blob csfk_blob_gaussianblur;

enum
{
  MAX_RADIUS = CSFK_GAUSSIANBLUR_MAX_RADIUS,
  WEIGHT_BITS = CSFK_GAUSSIANBLUR_WEIGHT_BITS,
  /* Samples across a strip.  Its row sums stay in the L1 cache for usual radii, and on the
   * stack, so that a frame needs no allocation that could fail. */
  STRIP = 512,
  MAX_CHANNELS = 4,
  /* Samples whose sums are held in registers at once. */
  LANES = 32
};

/* Channels that lie side by side and are filtered alike: a plane, or one component of YUY2. */
typedef struct channel_group
{
  int plane;
  int offset;                   /* of the first sample of a row, bytes */
  int channels;                 /* samples of a unit, side by side */
  int pitch;                    /* bytes from one unit to the next */
  int shift_x, shift_y;         /* units lie 1 << shift pixels apart */
} channel_group;

typedef struct format_groups
{
  int n_groups;
  int sample_bytes;
  channel_group group[3];
} format_groups;

static const format_groups gray_groups = { 1, 1, {{0, 0, 1, 1, 0, 0}} };
static const format_groups nv12_groups = { 2, 1, {{0, 0, 1, 1, 0, 0}, {1, 0, 2, 2, 1, 1}} };
static const format_groups p010_groups = { 2, 2, {{0, 0, 1, 2, 0, 0}, {1, 0, 2, 4, 1, 1}} };
static const format_groups i420_groups =
    { 3, 1, {{0, 0, 1, 1, 0, 0}, {1, 0, 1, 1, 1, 1}, {2, 0, 1, 1, 1, 1}} };
static const format_groups yuy2_groups =
    { 3, 1, {{0, 0, 1, 2, 0, 0}, {0, 1, 1, 4, 1, 0}, {0, 3, 1, 4, 1, 0}} };
static const format_groups uyvy_groups =
    { 3, 1, {{0, 1, 1, 2, 0, 0}, {0, 0, 1, 4, 1, 0}, {0, 2, 1, 4, 1, 0}} };
static const format_groups rgb_groups = { 1, 1, {{0, 0, 3, 3, 0, 0}} };
static const format_groups rgba_groups = { 1, 1, {{0, 0, 4, 4, 0, 0}} };

static const format_groups *const groups_of[CSFK_N_FORMATS] = {
  [CSFK_FORMAT_GRAY8] = &gray_groups,
  [CSFK_FORMAT_NV12] = &nv12_groups,
  [CSFK_FORMAT_I420] = &i420_groups,
  [CSFK_FORMAT_YUY2] = &yuy2_groups,
  [CSFK_FORMAT_UYVY] = &uyvy_groups,
  [CSFK_FORMAT_P010_10LE] = &p010_groups,
  [CSFK_FORMAT_RGB] = &rgb_groups,
  [CSFK_FORMAT_BGR] = &rgb_groups,
  [CSFK_FORMAT_RGBx] = &rgba_groups,
  [CSFK_FORMAT_BGRx] = &rgba_groups,
  [CSFK_FORMAT_RGBA] = &rgba_groups,
  [CSFK_FORMAT_BGRA] = &rgba_groups,
};

/* A group of one frame, with what process() needs of it at hand. */
typedef struct group_work
{
  const unsigned char *in;
  unsigned char *out;
  ptrdiff_t in_stride, out_stride;
  int channels, pitch, sample_bytes;
  int width;                    /* units that may be read: the visible ones */
  int out_width;                /* units of an output row, padding included */
  int rows;
  int places;                   /* binary places of a row sum */
  const csfk_gaussianblur_filter *across, *down;
} group_work;

/* ---- one row --------------------------------------------------------------------------------- */

/* Row sums of `n` samples; `samples` begins with the sample radius units left of the first
 * result. */
static CSFK_ALWAYS_INLINE void
filter_across_body (const uint16_t *samples, int channels, const csfk_gaussianblur_filter *filter,
    int places, int n, uint16_t *sums)
{
  const int shift = WEIGHT_BITS - places;
  const int radius = filter->radius;

  for (int i = 0; i < n; i += LANES) {
    const uint16_t *centre = samples + i + radius * channels;
    uint32_t sum[LANES];

    for (int j = 0; j < LANES; j++)
      sum[j] = (1u << shift >> 1) + (uint32_t) centre[j] * filter->weight[0];
    for (int k = 1; k <= radius; k++) {
      const uint16_t *left = centre - k * channels, *right = centre + k * channels;
      const uint16_t weight = filter->weight[k];

      for (int j = 0; j < LANES; j++)
        sum[j] += (uint32_t) (uint16_t) (left[j] + right[j]) * weight;
    }
    for (int j = 0; j < LANES; j++)
      sums[i + j] = (uint16_t) (sum[j] >> shift);
  }
}

/* rows[radius] is the centre's; all 2 * radius + 1 are given. */
static CSFK_ALWAYS_INLINE void
filter_down_body (const uint16_t *const *rows, const csfk_gaussianblur_filter *filter, int places,
    int n, uint16_t *results)
{
  const int shift = WEIGHT_BITS + places;
  const int radius = filter->radius;

  for (int i = 0; i < n; i += LANES) {
    const uint16_t *centre = rows[radius] + i;
    uint32_t sum[LANES];

    for (int j = 0; j < LANES; j++)
      sum[j] = (1u << shift >> 1) + (uint32_t) centre[j] * filter->weight[0];
    for (int k = 1; k <= radius; k++) {
      const uint16_t *above = rows[radius - k] + i, *below = rows[radius + k] + i;
      const uint16_t weight = filter->weight[k];

      for (int j = 0; j < LANES; j++)
        sum[j] += (uint32_t) above[j] * weight + (uint32_t) below[j] * weight;
    }
    for (int j = 0; j < LANES; j++)
      results[i + j] = (uint16_t) (sum[j] >> shift);
  }
}

static void
filter_across (const uint16_t *samples, int channels, const csfk_gaussianblur_filter *filter,
    int places, int n, uint16_t *sums)
{
  filter_across_body (samples, channels, filter, places, n, sums);
}

static void
filter_down (const uint16_t *const *rows, const csfk_gaussianblur_filter *filter, int places, int n,
    uint16_t *results)
{
  filter_down_body (rows, filter, places, n, results);
}

#if CSFK_TWO_TARGETS
CSFK_TARGET_AVX2 static void
filter_across_avx2 (const uint16_t *samples, int channels, const csfk_gaussianblur_filter *filter,
    int places, int n, uint16_t *sums)
{
  filter_across_body (samples, channels, filter, places, n, sums);
}

CSFK_TARGET_AVX2 static void
filter_down_avx2 (const uint16_t *const *rows, const csfk_gaussianblur_filter *filter, int places,
    int n, uint16_t *results)
{
  filter_down_body (rows, filter, places, n, results);
}
#else
#define filter_across_avx2 filter_across
#define filter_down_avx2 filter_down
#endif

/* ---- samples in and out ---------------------------------------------------------------------- */

/* Two bytes a sample are read and written apart: a row may start at an odd address. */
static uint16_t
load_p010 (const unsigned char *from)
{
  return (uint16_t) ((from[0] | from[1] << 8) >> 6);
}

static void
load_units (const group_work *work, const unsigned char *row, int x, int n, uint16_t *samples)
{
  const unsigned char *from = row + (ptrdiff_t) x * work->pitch;

  if (work->sample_bytes == 2) {
    for (int i = 0; i < n * work->channels; i++)
      samples[i] = load_p010 (from + 2 * i);
  } else if (work->channels == work->pitch) {
    for (int i = 0; i < n * work->channels; i++)
      samples[i] = from[i];
  } else {
    for (int i = 0; i < n; i++)
      samples[i] = from[i * work->pitch];
  }
}

/* Loads units x .. x + n - 1, those outside 0 .. width - 1 taken from the nearest inside. */
static void
load_clamped (const group_work *work, const unsigned char *row, int x, int n, uint16_t *samples)
{
  const int channels = work->channels;
  int first = x > 0 ? x : 0;
  int last = x + n < work->width ? x + n - 1 : work->width - 1;

  /* A strip of padding alone has nothing inside. */
  if (first > work->width - 1)
    first = work->width - 1;
  if (last < first)
    last = first;
  if (first > x) {
    load_units (work, row, first, 1, samples);
    for (int i = channels; i < (first - x) * channels; i++)
      samples[i] = samples[i - channels];
    samples += (first - x) * channels;
    n -= first - x;
  }
  load_units (work, row, first, last - first + 1, samples);
  for (int i = (last - first + 1) * channels; i < n * channels; i++)
    samples[i] = samples[i - channels];
}

static void
store_units (const group_work *work, unsigned char *row, int x, int n, const uint16_t *samples)
{
  unsigned char *to = row + (ptrdiff_t) x * work->pitch;

  if (work->sample_bytes == 2) {
    for (int i = 0; i < n * work->channels; i++) {
      to[2 * i] = (unsigned char) (samples[i] << 6);
      to[2 * i + 1] = (unsigned char) (samples[i] >> 2);
    }
  } else if (work->channels == work->pitch) {
    for (int i = 0; i < n * work->channels; i++)
      to[i] = (unsigned char) samples[i];
  } else {
    for (int i = 0; i < n; i++)
      to[i * work->pitch] = (unsigned char) samples[i];
  }
}

/* ---- one group ------------------------------------------------------------------------------- */

static int
clamp_row (int y, int rows)
{
  return y < 0 ? 0 : y >= rows ? rows - 1 : y;
}

/* One strip, top to bottom.  The row sums of the rows a result needs are kept in a ring. */
static void
blur_strip (const group_work *work, int x, int n)
{
  uint16_t samples[STRIP + LANES + 2 * MAX_RADIUS * MAX_CHANNELS];
  uint16_t ring[2 * MAX_RADIUS + 1][STRIP], results[STRIP];
  const uint16_t *rows[2 * MAX_RADIUS + 1];
  const int radius = work->down->radius, reach = work->across->radius;
  const int depth = 2 * radius + 1;
  const int n_samples = n * work->channels;
  const int avx2 = csfk_has_avx2 ();
  int summed = 0;               /* rows whose sums were made */

  /* The last LANES are worked on whole: what lies beyond the strip must be defined, not right. */
  memset (samples, 0, sizeof samples);
  for (int y = 0; y < work->rows; y++) {
    for (; summed < work->rows && summed <= y + radius; summed++) {
      load_clamped (work, work->in + summed * work->in_stride, x - reach, n + 2 * reach, samples);
      (avx2 ? filter_across_avx2 : filter_across) (samples, work->channels, work->across,
          work->places, n_samples, ring[summed % depth]);
    }
    for (int k = 0; k < depth; k++)
      rows[k] = ring[clamp_row (y - radius + k, work->rows) % depth];
    (avx2 ? filter_down_avx2 : filter_down) (rows, work->down, work->places, n_samples, results);
    store_units (work, work->out + y * work->out_stride, x, n, results);
  }
}

static int
divide_up_shift (int value, int shift)
{
  return (value + (1 << shift) - 1) >> shift;
}

static void
blur_group (const csfk_frame *frame, const csfk_gaussianblur_params *params,
    const format_groups *groups, const channel_group *group)
{
  const csfk_plane *in = &frame->in.plane[group->plane];
  const csfk_plane *out = &frame->out.plane[group->plane];
  const group_work work = {
    .in = in->data + group->offset,
    .out = out->data + group->offset,
    .in_stride = in->stride,
    .out_stride = out->stride,
    .channels = group->channels,
    .pitch = group->pitch,
    .sample_bytes = groups->sample_bytes,
    .width = divide_up_shift (frame->in.width, group->shift_x),
    .out_width = in->row_bytes / group->pitch,
    .rows = in->rows,
    .places = groups->sample_bytes == 2 ? 6 : 8,
    .across = &params->filter[group->shift_x],
    .down = &params->filter[group->shift_y],
  };
  const int strip = STRIP / group->channels;

  for (int x = 0; x < work.out_width; x += strip)
    blur_strip (&work, x, work.out_width - x < strip ? work.out_width - x : strip);
}

static void
process (const csfk_frame *frame, const void *params)
{
  const format_groups *groups = groups_of[frame->in.format];
  const csfk_plane *in = &frame->in.plane[0], *out = &frame->out.plane[0];

  for (int i = 0; i < groups->n_groups; i++)
    blur_group (frame, params, groups, &groups->group[i]);

  if (frame->in.format == CSFK_FORMAT_RGBx || frame->in.format == CSFK_FORMAT_BGRx)
    for (int y = 0; y < in->rows; y++)
      for (int b = 3; b < in->row_bytes; b += 4)
        out->data[(ptrdiff_t) y * out->stride + b] = in->data[(ptrdiff_t) y * in->stride + b];
}

/* ---- parameters and launch ------------------------------------------------------------------- */

/* What rounding leaves of one weight is carried to the next, from the edge inwards, so that the
 * centre, which takes the rest, is off by no more than the others. */
static void
make_filter (double sigma, csfk_gaussianblur_filter *filter)
{
  const double one = 1 << WEIGHT_BITS;
  double bell[MAX_RADIUS + 1], total = 1.0, carried = 0.0;
  int radius = (int) ceil (3.0 * sigma);
  int rest = 1 << WEIGHT_BITS;

  if (radius > MAX_RADIUS)
    radius = MAX_RADIUS;
  memset (filter, 0, sizeof *filter);
  filter->radius = radius;
  for (int k = 1; k <= radius; k++) {
    bell[k] = exp (-0.5 * (k / sigma) * (k / sigma));
    total += 2.0 * bell[k];
  }
  for (int k = radius; k > 0; k--) {
    double exact = one * bell[k] / total + carried;
    double rounded = floor (exact + 0.5);

    carried = exact - rounded;
    filter->weight[k] = (unsigned short) rounded;
    rest -= 2 * filter->weight[k];
  }
  filter->weight[0] = (unsigned short) rest;
}

static void
resolve (void *data)
{
  csfk_gaussianblur_params *params = data;

  make_filter (params->sigma, &params->filter[0]);
  make_filter (params->sigma / 2.0, &params->filter[1]);
}

static unsigned
divide_up (unsigned value, unsigned by)
{
  return (value + by - 1) / by;
}

/* Shared memory of a block: in 16 bits each, the tile with its halo on all sides and the row
 * sums with a halo above and below; then the results of all channels.  As gaussianblur.cu lays
 * it out. */
static unsigned
get_shared_bytes (const csfk_gaussianblur_params *params, const format_groups *groups)
{
  const unsigned tile_x = CSFK_GAUSSIANBLUR_TILE_X, tile_y = CSFK_GAUSSIANBLUR_TILE_Y;
  unsigned most = 0;

  for (int i = 0; i < groups->n_groups; i++) {
    const channel_group *group = &groups->group[i];
    unsigned halo_x = CSFK_GAUSSIANBLUR_HALO ((unsigned) params->filter[group->shift_x].radius);
    unsigned halo_y = CSFK_GAUSSIANBLUR_HALO ((unsigned) params->filter[group->shift_y].radius);
    unsigned rows = tile_y + 2 * halo_y;
    unsigned bytes = 2 * rows * (tile_x + 2 * halo_x) + 2 * rows * tile_x +
        tile_x * tile_y * (unsigned) (group->channels * groups->sample_bytes);

    if (bytes > most)
      most = bytes;
  }
  return most;
}

static int
enqueue (const csfk_frame *frame, const void *params, csfk_launcher *launcher)
{
  const format_groups *groups = groups_of[frame->in.format];
  csfk_gaussianblur_args args = { .frame = *frame };
  csfk_dim block = { CSFK_GAUSSIANBLUR_THREADS, 1, 1 };
  csfk_dim grid = {
    divide_up ((unsigned) frame->in.plane[0].row_bytes / (unsigned) groups->group[0].pitch,
        CSFK_GAUSSIANBLUR_TILE_X),
    divide_up ((unsigned) frame->in.height, CSFK_GAUSSIANBLUR_TILE_Y),
    (unsigned) groups->n_groups
  };

  memcpy (&args.params, params, sizeof args.params);
  return launcher->launch (launcher, "csfk_gaussianblur", grid, block,
      get_shared_bytes (&args.params, groups), &args, sizeof args);
}

static const csfk_param params_of[] = {
  {
    "sigma", CSFK_TYPE_FLOAT, offsetof (csfk_gaussianblur_params, sigma), 0.1, 10.0, 2.0, "pixel",
    "Standard deviation of the Gaussian"
  },
};

const csfk_kernel csfk_gaussianblur = {
  .abi = CSFK_ABI,
  .name = "gaussianblur",
  .description = "Blurs each frame with a Gaussian",
  .formats = {
    CSFK_FORMAT_NV12, CSFK_FORMAT_I420, CSFK_FORMAT_YUY2, CSFK_FORMAT_UYVY, CSFK_FORMAT_P010_10LE,
    CSFK_FORMAT_RGBA, CSFK_FORMAT_BGRA, CSFK_FORMAT_RGBx, CSFK_FORMAT_BGRx, CSFK_FORMAT_RGB,
    CSFK_FORMAT_BGR, CSFK_FORMAT_GRAY8, CSFK_FORMAT_NONE
  },
  .params = params_of,
  .n_params = sizeof params_of / sizeof params_of[0],
  .params_size = sizeof (csfk_gaussianblur_params),
  .resolve = resolve,
  .process = process,
  .enqueue = enqueue,
  .device_code = &csfk_blob_gaussianblur,
};

_Static_assert (sizeof (csfk_gaussianblur_params) <= CSFK_MAX_PARAMS,
    "the parameters do not fit a slot");
