/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* histogram: counts how often each value occurs in each channel of a picture, and tells how much that
 * differs from the picture before.  The plain C path and the launches; the device code is in histogram.cu,
 * written apart from this so that each checks the other.  Knows kernel.h, format.h and libc only.
 *
 * Counted are the visible samples of R, G and B, or of luma and chroma; of ten bits the upper eight.
 * Whatever is a share or a mean is rounded to the nearest multiple of 1/65536 or 1/256, halves upwards,
 * and so it is the same on every machine:
 *
 *   mean = (256 * sum of bin * count + samples / 2) / samples / 256
 *   clipped = (65536 * count + samples / 2) / samples / 65536
 *
 * change is the share of samples that would have to move to make one picture's groups of eight bins the
 * other's: half the sum of |now - before| over the groups, by the number of samples.  It is taken of luma,
 * or of R, G and B together, which tell more than their luma.  A cut changes most of it; motion, noise and
 * a slow fade leave the groups much as they were.
 */
#include "histogram.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../format.h"

extern const csfk_blob csfk_blob_histogram;

/* ---- formats --------------------------------------------------------------------------------- */

/* Samples of one channel in a plane's row: every `pitch` bytes, from `offset` on. */
typedef struct series
{
  int plane, channel, offset, pitch;
  int halved;                   /* bit 0: in width, bit 1: in height */
} series;

static const series series_of[CSFK_N_FORMATS][CSFK_HISTOGRAM_CHANNELS] = {
  [CSFK_FORMAT_GRAY8] = {{0, 0, 0, 1, 0}},
  [CSFK_FORMAT_NV12] = {{0, 0, 0, 1, 0}, {1, 1, 0, 2, 3}, {1, 2, 1, 2, 3}},
  [CSFK_FORMAT_I420] = {{0, 0, 0, 1, 0}, {1, 1, 0, 1, 3}, {2, 2, 0, 1, 3}},
  [CSFK_FORMAT_YUY2] = {{0, 0, 0, 2, 0}, {0, 1, 1, 4, 1}, {0, 2, 3, 4, 1}},
  [CSFK_FORMAT_UYVY] = {{0, 0, 1, 2, 0}, {0, 1, 0, 4, 1}, {0, 2, 2, 4, 1}},
  [CSFK_FORMAT_P010_10LE] = {{0, 0, 1, 2, 0}, {1, 1, 1, 4, 3}, {1, 2, 3, 4, 3}},
  [CSFK_FORMAT_RGB] = {{0, 0, 0, 3, 0}, {0, 1, 1, 3, 0}, {0, 2, 2, 3, 0}},
  [CSFK_FORMAT_BGR] = {{0, 0, 2, 3, 0}, {0, 1, 1, 3, 0}, {0, 2, 0, 3, 0}},
  [CSFK_FORMAT_RGBx] = {{0, 0, 0, 4, 0}, {0, 1, 1, 4, 0}, {0, 2, 2, 4, 0}},
  [CSFK_FORMAT_BGRx] = {{0, 0, 2, 4, 0}, {0, 1, 1, 4, 0}, {0, 2, 0, 4, 0}},
  [CSFK_FORMAT_RGBA] = {{0, 0, 0, 4, 0}, {0, 1, 1, 4, 0}, {0, 2, 2, 4, 0}},
  [CSFK_FORMAT_BGRA] = {{0, 0, 2, 4, 0}, {0, 1, 1, 4, 0}, {0, 2, 0, 4, 0}},
};

static int
is_rgb (const csfk_image *image)
{
  return series_of[image->format][0].pitch >= 3;
}

static int
count_channels (const csfk_image *image)
{
  return image->format == CSFK_FORMAT_GRAY8 ? 1 : 3;
}

static int
halve (int size, int halved)
{
  return halved ? (size + 1) / 2 : size;
}

static unsigned
count_samples (const csfk_image *image, int channel)
{
  const series *samples = &series_of[image->format][channel];

  return (unsigned) halve (image->width, samples->halved & 1) *
      (unsigned) halve (image->height, samples->halved & 2);
}

/* ---- counting -------------------------------------------------------------------------------- */

/* Four tables, for one count must not wait for the one before it where a value comes again and again. */
static void
count_row (const unsigned char *from, int pitch, int n, unsigned (*tables)[CSFK_HISTOGRAM_BINS])
{
  int i = 0;

  for (; i + 4 <= n; i += 4, from += 4 * (ptrdiff_t) pitch) {
    tables[0][from[0]]++;
    tables[1][from[pitch]]++;
    tables[2][from[2 * pitch]]++;
    tables[3][from[3 * pitch]]++;
  }
  for (; i < n; i++, from += pitch)
    tables[0][from[0]]++;
}

static void
count_channel (const csfk_image *in, const series *samples, unsigned *bins)
{
  const csfk_plane *plane = &in->plane[samples->plane];
  const int n = halve (in->width, samples->halved & 1);
  unsigned tables[4][CSFK_HISTOGRAM_BINS];

  memset (tables, 0, sizeof tables);
  for (int y = 0; y < plane->rows; y++)
    count_row (plane->data + (ptrdiff_t) y * plane->stride + samples->offset, samples->pitch, n,
        tables);
  for (int b = 0; b < CSFK_HISTOGRAM_BINS; b++)
    bins[b] = tables[0][b] + tables[1][b] + tables[2][b] + tables[3][b];
}

static void
process (const csfk_frame *frame, const void *params)
{
  const unsigned n = frame->state_frames % CSFK_HISTOGRAM_STATES;
  csfk_histogram_counts *states = frame->state;
  csfk_histogram_work *work = frame->workspace;

  for (int i = 0; i < frame->in.n_planes; i++)
    csfk_plane_copy (&frame->out.plane[i], &frame->in.plane[i]);
  memset (&work->now, 0, sizeof work->now);
  for (int c = 0; c < count_channels (&frame->in); c++)
    count_channel (&frame->in, &series_of[frame->in.format][c], work->now.bins[c]);
  work->before = states[(n + CSFK_HISTOGRAM_STATES - 1) % CSFK_HISTOGRAM_STATES];
  states[n] = work->now;
}

/* ---- the record ------------------------------------------------------------------------------ */

/* `count` of `samples` as a share; both times `one`, rounded. */
static unsigned
divide (uint64_t count, unsigned samples, unsigned one)
{
  return (unsigned) ((count * one + samples / 2) / samples);
}

static float
get_share (unsigned count, unsigned samples)
{
  return (float) divide (count, samples, 65536) / 65536.0f;
}

static void
describe_channel (const csfk_image *in, const unsigned *bins, int channel,
    csfk_histogram_record *record)
{
  const unsigned samples = count_samples (in, channel);
  const int limited = in->range == CSFK_RANGE_LIMITED;
  const int is_chroma = channel > 0 && !is_rgb (in);
  const int low = limited ? 16 : 0, high = !limited ? 255 : is_chroma ? 240 : 235;
  unsigned n_low = 0, n_high = 0;
  uint64_t sum = 0;

  for (int b = 0; b < CSFK_HISTOGRAM_BINS; b++) {
    sum += (uint64_t) b *bins[b];

    n_low += b <= low ? bins[b] : 0;
    n_high += b >= high ? bins[b] : 0;
  }
  record->samples[channel] = samples;
  record->mean[channel] = (float) divide (sum, samples, 256) / 256.0f;
  record->clipped_low[channel] = get_share (n_low, samples);
  record->clipped_high[channel] = get_share (n_high, samples);
  memcpy (record->bins[channel], bins, sizeof record->bins[channel]);
}

/* Twice the samples that have left their groups. */
static uint64_t
compare_channel (const unsigned *now, const unsigned *before)
{
  uint64_t sum = 0;

  for (int b = 0; b < CSFK_HISTOGRAM_BINS; b += CSFK_HISTOGRAM_GROUP) {
    int64_t difference = 0;

    for (int i = b; i < b + CSFK_HISTOGRAM_GROUP; i++)
      difference += (int64_t) now[i] - (int64_t) before[i];
    sum += (uint64_t) llabs (difference);
  }
  return sum;
}

static void
collect (const csfk_frame *frame, const void *data)
{
  const csfk_histogram_params *params = data;
  const csfk_histogram_work *work = frame->workspace;
  const int n_judged = is_rgb (&frame->in) ? 3 : 1;
  csfk_histogram_record *record = csfk_append (&frame->records);
  uint64_t twice_moved = 0;
  unsigned change = 0;

  if (!record)
    return;
  memset (record, 0, sizeof *record);
  record->n_channels = (unsigned) count_channels (&frame->in);
  for (int c = 0; c < (int) record->n_channels; c++)
    describe_channel (&frame->in, work->now.bins[c], c, record);
  if (frame->state_frames == 0)
    return;
  for (int c = 0; c < n_judged; c++)
    twice_moved += compare_channel (work->now.bins[c], work->before.bins[c]);
  change = divide (twice_moved / 2, (unsigned) n_judged * record->samples[0], 65536);
  record->change = (float) change / 65536.0f;
  record->scene_change = change >= params->threshold;
}

/* ---- parameters and launches ----------------------------------------------------------------- */

static void
resolve (void *data)
{
  csfk_histogram_params *params = data;

  params->threshold = (unsigned) ((double) params->scene_threshold * 65536.0 + 0.5);
}

static unsigned
divide_up (unsigned value, unsigned by)
{
  return (value + by - 1) / by;
}

static uint64_t
count_units (const csfk_image *in, int plane)
{
  if (plane >= in->n_planes)
    return 0;
  return (uint64_t) divide_up ((unsigned) in->plane[plane].row_bytes, CSFK_HISTOGRAM_UNIT) *
      (unsigned) in->plane[plane].rows;
}

/* Gives each plane its part of the blocks; sizes alone count, for the workspace depends on it. */
static void
share_out (const csfk_image *in, csfk_histogram_args *args)
{
  const uint64_t all = count_units (in, 0) + count_units (in, 1) + count_units (in, 2);

  for (int i = 0; i < CSFK_MAX_PLANES; i++) {
    uint64_t units = count_units (in, i);
    /* No more than have something to do, and no fewer than the counters need. */
    uint64_t useful = (units + CSFK_HISTOGRAM_THREADS - 1) / CSFK_HISTOGRAM_THREADS;
    uint64_t needed = (useful + CSFK_HISTOGRAM_MOST_UNITS - 1) / CSFK_HISTOGRAM_MOST_UNITS;
    uint64_t blocks = (CSFK_HISTOGRAM_BLOCKS * units + all / 2) / all;

    blocks = blocks < needed ? needed : blocks > useful ? useful : blocks;
    args->first_block[i + 1] = args->first_block[i] + (unsigned) blocks;
  }
}

static unsigned long
state_size (const csfk_kernel *kernel, const csfk_image *in, const csfk_image *out)
{
  return CSFK_HISTOGRAM_STATES * sizeof (csfk_histogram_counts);
}

static unsigned long
workspace_size (const csfk_kernel *kernel, const csfk_image *in, const csfk_image *out)
{
  csfk_histogram_args args = { .first_block = {0} };

  share_out (in, &args);
  return sizeof (csfk_histogram_work) +
      args.first_block[CSFK_MAX_PLANES] * sizeof (csfk_histogram_counts);
}

static unsigned
count_whole_units (const csfk_frame *frame, int plane)
{
  const csfk_plane *in = &frame->in.plane[plane], *out = &frame->out.plane[plane];
  const uintptr_t bits = (uintptr_t) in->data | (uintptr_t) out->data | (uintptr_t) in->stride |
      (uintptr_t) out->stride;
  const int has_hidden = (frame->in.format == CSFK_FORMAT_YUY2
      || frame->in.format == CSFK_FORMAT_UYVY) && frame->in.width % 2;

  if (bits % CSFK_HISTOGRAM_UNIT != 0)
    return 0;
  return (unsigned) (in->row_bytes - (has_hidden ? 4 : 0)) / CSFK_HISTOGRAM_UNIT;
}

static csfk_histogram_args
make_args (const csfk_frame *frame, const void *params)
{
  csfk_histogram_args args = { .frame = *frame };

  memcpy (&args.params, params, sizeof args.params);
  share_out (&frame->in, &args);
  for (int i = 0; i < frame->in.n_planes; i++) {
    args.whole_units[i] = count_whole_units (frame, i);
    if (args.whole_units[i] > 1)
      args.reciprocal[i] = (unsigned) (((uint64_t) 1 << 32) / args.whole_units[i]);
    else
      args.reciprocal[i] = UINT32_MAX;
  }
  return args;
}

static int
enqueue (const csfk_frame *frame, const void *params, csfk_launcher *launcher)
{
  csfk_histogram_args args = make_args (frame, params);
  csfk_dim block = { CSFK_HISTOGRAM_THREADS, 1, 1 };
  csfk_dim grid = { args.first_block[CSFK_MAX_PLANES], 1, 1 };
  unsigned channels = 1;

  /* The most channels that one plane has. */
  for (int c = 1; c < count_channels (&frame->in); c++) {
    if (series_of[frame->in.format][c].plane == series_of[frame->in.format][c - 1].plane)
      channels++;
  }
  return launcher->launch (launcher, "csfk_histogram", grid, block,
      channels * CSFK_HISTOGRAM_CHANNEL_WORDS * sizeof (unsigned), &args, sizeof args);
}

static int
emit (const csfk_frame *frame, const void *params, csfk_launcher *launcher)
{
  csfk_histogram_args args = make_args (frame, params);
  const unsigned n_channels = (unsigned) count_channels (&frame->in);
  csfk_dim sum_block = { CSFK_HISTOGRAM_SUM_X, CSFK_HISTOGRAM_SUM_Y, 1 };
  csfk_dim sum_grid = { CSFK_HISTOGRAM_BINS / CSFK_HISTOGRAM_SUM_X, n_channels, 1 };
  csfk_dim block = { CSFK_HISTOGRAM_EMIT_X, CSFK_HISTOGRAM_CHANNELS, 1 }, grid = { 1, 1, 1 };
  int result = launcher->launch (launcher, "csfk_histogram_sum", sum_grid, sum_block, 0, &args,
      sizeof args);

  if (result != 0)
    return result;
  return launcher->launch (launcher, "csfk_histogram_emit", grid, block, 0, &args, sizeof args);
}

static const csfk_param params_of[] = {
  {
    "scene-threshold", CSFK_TYPE_FLOAT, offsetof (csfk_histogram_params, scene_threshold), 0, 1, 0.3,
    "", "Change from the last frame, as a share of its samples, that counts as a change of scene"
  },
};

const csfk_kernel csfk_histogram = {
  .abi = CSFK_ABI,
  .name = "histogram",
  .description = "Counts the values of each channel and tells changes of scene; passes frames on unchanged",
  .formats = {
    CSFK_FORMAT_NV12, CSFK_FORMAT_I420, CSFK_FORMAT_YUY2, CSFK_FORMAT_UYVY, CSFK_FORMAT_P010_10LE,
    CSFK_FORMAT_RGBA, CSFK_FORMAT_BGRA, CSFK_FORMAT_RGBx, CSFK_FORMAT_BGRx, CSFK_FORMAT_RGB,
    CSFK_FORMAT_BGR, CSFK_FORMAT_GRAY8, CSFK_FORMAT_NONE
  },
  .params = params_of,
  .n_params = sizeof params_of / sizeof params_of[0],
  .params_size = sizeof (csfk_histogram_params),
  .state_size = state_size,
  .workspace_size = workspace_size,
  .resolve = resolve,
  .process = process,
  .enqueue = enqueue,
  .record_size = sizeof (csfk_histogram_record),
  .record_kind = CSFK_RECORD_OTHER,
  .record_name = "histogram",
  .collect = collect,
  .emit = emit,
  .device_code = &csfk_blob_histogram,
};

_Static_assert (sizeof (csfk_histogram_record) % 4 == 0, "a record is whole words");
