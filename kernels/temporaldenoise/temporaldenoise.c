/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* temporaldenoise: averages each sample over time where nothing moves.  The plain C path, the
 * derived parameters and the launch; the device code is in temporaldenoise.cu, written apart from
 * this so that each checks the other.  Knows kernel.h and libc only.
 *
 * Samples s and what was made of them in the frame before, p, are numbers of 16 bits: an 8-bit
 * sample times 256, a 10-bit one times 64.  The binary places of p are what lets a recursive mean
 * settle on the true value: with p of 8 bits, differences below half a step over the share would
 * never be made up.  They cost 6 bytes a sample instead of 4 in memory traffic.
 *
 * With e = |s - p|, of R'G'B' the sum over the three components, motion is the sum of e over 3 x 3
 * samples weighted 1 2 1, 2 4 2, 1 2 1; borders replicated (the last visible pixel in a padded
 * YUY2 or UYVY pair).  Y'CbCr components each go by their own motion, at their own resolution.
 * Then, all in whole numbers,
 *
 *   share = motion * slope / 65536, rounded down, - offset, limited to lowest .. 256
 *   p' = p + (s - p) * share / 256, rounded down
 *
 * so that share is `lowest` while the weighted mean of |s - p| is below half the threshold, rises
 * from there, and is 256 (the new sample) from the threshold on.  p' rounded to the nearest step
 * is the output.  `lowest` follows from the strength, but is at least 256 / n in the n-th frame:
 * the first is taken as it is, and those after it average evenly.  Alpha and the unused byte are
 * carried over; the empty bits of P010 are not read, and zero in the output. */
#include "temporaldenoise.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "../simd.h"

extern const csfk_blob csfk_blob_temporaldenoise;

enum
{
  ONE = CSFK_TEMPORALDENOISE_ONE,
  /* Samples worked on at a time: three rows of them and of their past stay in the L1 cache. */
  STRIP = 512
};

/* Components that share one motion, side by side in plane `plane`: `offset` bytes before the first
 * sample of a row, `pitch` bytes from one sample of a component to its next. */
typedef struct component_group
{
  int plane, n_components, offset, pitch;
  int shift_x;                  /* samples lie 1 << shift_x pixels apart */
} component_group;

typedef struct format_groups
{
  int n_groups;
  component_group group[3];
} format_groups;

static const format_groups gray_groups = { 1, {{0, 1, 0, 1, 0}} };
static const format_groups nv12_groups =
    { 3, {{0, 1, 0, 1, 0}, {1, 1, 0, 2, 1}, {1, 1, 1, 2, 1}} };
static const format_groups i420_groups =
    { 3, {{0, 1, 0, 1, 0}, {1, 1, 0, 1, 1}, {2, 1, 0, 1, 1}} };
static const format_groups p010_groups =
    { 3, {{0, 1, 0, 2, 0}, {1, 1, 0, 4, 1}, {1, 1, 2, 4, 1}} };
static const format_groups yuy2_groups =
    { 3, {{0, 1, 0, 2, 0}, {0, 1, 1, 4, 1}, {0, 1, 3, 4, 1}} };
static const format_groups uyvy_groups =
    { 3, {{0, 1, 1, 2, 0}, {0, 1, 0, 4, 1}, {0, 1, 2, 4, 1}} };
static const format_groups rgb_groups = { 1, {{0, 3, 0, 3, 0}} };
static const format_groups rgba_groups = { 1, {{0, 3, 0, 4, 0}} };

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

/* Samples of a row and their rows, padding included. */
static int
get_columns (const csfk_image *image, const component_group *group)
{
  return image->plane[group->plane].row_bytes / group->pitch;
}

static int
get_visible (const csfk_image *image, const component_group *group)
{
  return group->shift_x ? image->width / 2 + image->width % 2 : image->width;
}

static size_t
get_component_bytes (const csfk_image *image, const component_group *group)
{
  return (size_t) CSFK_TEMPORALDENOISE_STATE_STRIDE (get_columns (image, group)) *
      (size_t) image->plane[group->plane].rows;
}

/* Of one of the two copies. */
static size_t
get_copy_bytes (const csfk_image *image)
{
  const format_groups *groups = groups_of[image->format];
  size_t bytes = 0;

  for (int i = 0; i < groups->n_groups; i++)
    bytes += get_component_bytes (image, &groups->group[i]) *
        (size_t) groups->group[i].n_components;
  return bytes;
}

static unsigned long
state_size (const csfk_kernel *kernel, const csfk_image *in, const csfk_image *out)
{
  return 2 * get_copy_bytes (in);
}

/* ---- one row --------------------------------------------------------------------------------- */

/* A strip of a row, from the sample left of it to the one right of it.  sample[3]: the bytes of
 * four-byte pixels that are carried over. */
typedef struct strip_row
{
  uint16_t sample[4][STRIP + 2], past[3][STRIP + 2];
  uint32_t change[STRIP + 2];   /* sum of |sample - past| over the components */
} strip_row;

static CSFK_ALWAYS_INLINE void
measure_change (strip_row *strip, int n_components, int n)
{
  uint32_t *change = strip->change;

  for (int c = 0; c < n_components; c++) {
    const uint16_t *sample = strip->sample[c], *past = strip->past[c];

    for (int i = 0; i < n; i++) {
      uint16_t up = (uint16_t) (sample[i] - past[i]), down = (uint16_t) (past[i] - sample[i]);
      uint32_t size = sample[i] > past[i] ? up : down;

      change[i] = c > 0 ? change[i] + size : size;
    }
  }
}

static CSFK_ALWAYS_INLINE void
measure_share (const uint32_t *above, const uint32_t *here, const uint32_t *below, int n,
    const csfk_temporaldenoise_ramp *ramp, int lowest, uint16_t *share)
{
  const int most = ramp->most, slope = ramp->slope, offset = ramp->offset;
  uint32_t down[STRIP + 2];

  for (int i = 0; i < n + 2; i++)
    down[i] = above[i] + 2 * here[i] + below[i];
  for (int i = 0; i < n; i++) {
    int motion = (int) (down[i] + 2 * down[i + 1] + down[i + 2]);
    int part;

    motion = motion > most ? most : motion;
    part = (motion * slope >> 16) - offset;
    part = part < lowest ? lowest : part;
    share[i] = (uint16_t) (part > ONE ? ONE : part);
  }
}

static CSFK_ALWAYS_INLINE void
blend (const uint16_t *sample, const uint16_t *past, const uint16_t *share, int n,
    uint16_t *result)
{
  for (int i = 0; i < n; i++)
    result[i] = (uint16_t) (((uint32_t) past[i] * (uint16_t) (ONE - share[i]) +
            (uint32_t) sample[i] * share[i]) / ONE);
}

/* ---- samples in and out ---------------------------------------------------------------------- */

/* Pitches are constants where these are called, which gives the loops vectors. */

static CSFK_ALWAYS_INLINE void
load_bytes (const unsigned char *restrict from, int pitch, int n, uint16_t *restrict samples)
{
  for (int i = 0; i < n; i++)
    samples[i] = (uint16_t) (from[i * pitch] << 8);
}

/* Two bytes a sample, read and written apart: the row may start at an odd address. */
static CSFK_ALWAYS_INLINE void
load_tens (const unsigned char *restrict from, int pitch, int n, uint16_t *restrict samples)
{
  for (int i = 0; i < n; i++)
    samples[i] = (uint16_t) ((from[i * pitch] & 0xc0) | from[i * pitch + 1] << 8);
}

static CSFK_ALWAYS_INLINE void
load_pixels (const unsigned char *restrict from, int pitch, int n, uint16_t *restrict first,
    uint16_t *restrict second, uint16_t *restrict third, uint16_t *restrict carried)
{
  for (int i = 0; i < n; i++) {
    first[i] = (uint16_t) (from[i * pitch] << 8);
    second[i] = (uint16_t) (from[i * pitch + 1] << 8);
    third[i] = (uint16_t) (from[i * pitch + 2] << 8);
    if (pitch == 4)
      carried[i] = from[i * pitch + 3];
  }
}

static CSFK_ALWAYS_INLINE void
store_bytes (unsigned char *restrict to, int pitch, int n, const uint16_t *restrict results)
{
  for (int i = 0; i < n; i++)
    to[i * pitch] = (unsigned char) ((results[i] + 128) >> 8);
}

static CSFK_ALWAYS_INLINE void
store_tens (unsigned char *restrict to, int pitch, int n, const uint16_t *restrict results)
{
  for (int i = 0; i < n; i++) {
    uint16_t rounded = (uint16_t) (results[i] + 32);

    to[i * pitch] = (unsigned char) (rounded & 0xc0);
    to[i * pitch + 1] = (unsigned char) (rounded >> 8);
  }
}

static CSFK_ALWAYS_INLINE void
store_pixels (unsigned char *restrict to, int pitch, int n, const uint16_t *restrict first,
    const uint16_t *restrict second, const uint16_t *restrict third,
    const uint16_t *restrict carried)
{
  for (int i = 0; i < n; i++) {
    to[i * pitch] = (unsigned char) ((first[i] + 128) >> 8);
    to[i * pitch + 1] = (unsigned char) ((second[i] + 128) >> 8);
    to[i * pitch + 2] = (unsigned char) ((third[i] + 128) >> 8);
    if (pitch == 4)
      to[i * pitch + 3] = (unsigned char) carried[i];
  }
}

static CSFK_ALWAYS_INLINE void
load_samples (const unsigned char *from, const component_group *group, int tens, int n, int skip,
    strip_row *strip)
{
  uint16_t *first = strip->sample[0] + skip, *second = strip->sample[1] + skip;
  uint16_t *third = strip->sample[2] + skip, *carried = strip->sample[3] + skip;

  if (group->n_components == 3 && group->pitch == 4)
    load_pixels (from, 4, n, first, second, third, carried);
  else if (group->n_components == 3)
    load_pixels (from, 3, n, first, second, third, carried);
  else if (tens && group->pitch == 4)
    load_tens (from, 4, n, first);
  else if (tens)
    load_tens (from, 2, n, first);
  else if (group->pitch == 4)
    load_bytes (from, 4, n, first);
  else if (group->pitch == 2)
    load_bytes (from, 2, n, first);
  else
    load_bytes (from, 1, n, first);
}

static CSFK_ALWAYS_INLINE void
store_samples (unsigned char *to, const component_group *group, int tens, int n,
    uint16_t results[3][STRIP], const uint16_t *carried)
{
  if (group->n_components == 3 && group->pitch == 4)
    store_pixels (to, 4, n, results[0], results[1], results[2], carried);
  else if (group->n_components == 3)
    store_pixels (to, 3, n, results[0], results[1], results[2], carried);
  else if (tens && group->pitch == 4)
    store_tens (to, 4, n, results[0]);
  else if (tens)
    store_tens (to, 2, n, results[0]);
  else if (group->pitch == 4)
    store_bytes (to, 4, n, results[0]);
  else if (group->pitch == 2)
    store_bytes (to, 2, n, results[0]);
  else
    store_bytes (to, 1, n, results[0]);
}

/* ---- a group of components ------------------------------------------------------------------- */

/* A group of one frame, with what is needed of it at hand. */
typedef struct group_work
{
  const component_group *group;
  const csfk_plane *in, *out;
  const unsigned char *past;    /* the group's first component in the state's two copies */
  unsigned char *future;
  size_t state_stride, component_bytes;
  int visible, columns, rows;   /* samples of a row without and with padding; rows */
  int tens, lowest;
  const csfk_temporaldenoise_ramp *ramp;
} group_work;

/* Samples x - 1 .. x + n of row y, those outside the visible picture taken from the nearest
 * inside. */
static CSFK_ALWAYS_INLINE void
load_strip (const group_work *work, int x, int n, int y, strip_row *strip)
{
  const component_group *group = work->group;
  const unsigned char *row = work->in->data + (ptrdiff_t) y * work->in->stride + group->offset;
  int first = x > 0 ? x - 1 : 0;
  int last = x + n < work->visible ? x + n : work->visible - 1;
  int skip = first - (x - 1), count = last - first + 1;

  load_samples (row + (ptrdiff_t) first * group->pitch, group, work->tens, count, skip, strip);
  for (int c = 0; c < group->n_components; c++) {
    uint16_t *sample = strip->sample[c], *past = strip->past[c];

    memcpy (past + skip, work->past + work->component_bytes * (size_t) c +
        work->state_stride * (size_t) y + sizeof past[0] * (size_t) first,
        sizeof past[0] * (size_t) count);
    if (skip > 0)
      sample[0] = sample[1], past[0] = past[1];
    for (int i = skip + count; i < n + 2; i++)
      sample[i] = sample[i - 1], past[i] = past[i - 1];
  }
  measure_change (strip, group->n_components, n + 2);
}

static CSFK_ALWAYS_INLINE void
process_group_body (const group_work *work)
{
  const component_group *group = work->group;
  strip_row strips[3];
  uint16_t share[STRIP], results[3][STRIP];

  for (int x = 0; x < work->columns; x += STRIP) {
    int n = work->columns - x < STRIP ? work->columns - x : STRIP;

    for (int y = -1; y < work->rows; y++) {
      const strip_row *here = &strips[(y + 3) % 3];
      const strip_row *above = y > 0 ? &strips[(y + 2) % 3] : here;
      const strip_row *below = y + 1 < work->rows ? &strips[(y + 1) % 3] : here;

      if (y + 1 < work->rows)
        load_strip (work, x, n, y + 1, &strips[(y + 1) % 3]);
      if (y < 0)
        continue;
      measure_share (above->change, here->change, below->change, n, work->ramp, work->lowest,
          share);
      for (int c = 0; c < group->n_components; c++) {
        blend (here->sample[c] + 1, here->past[c] + 1, share, n, results[c]);
        memcpy (work->future + work->component_bytes * (size_t) c +
            work->state_stride * (size_t) y + sizeof results[c][0] * (size_t) x, results[c],
            sizeof results[c][0] * (size_t) n);
      }
      store_samples (work->out->data + (ptrdiff_t) y * work->out->stride + group->offset +
          (ptrdiff_t) x * group->pitch, group, work->tens, n, results, here->sample[3] + 1);
    }
  }
}

static void
process_group (const group_work *work)
{
  process_group_body (work);
}

#if CSFK_TWO_TARGETS
CSFK_TARGET_AVX2 static void
process_group_avx2 (const group_work *work)
{
  process_group_body (work);
}
#else
#define process_group_avx2 process_group
#endif

static int
get_lowest (const csfk_frame *frame, const csfk_temporaldenoise_params *params)
{
  int even = frame->state_frames < ONE ? ONE / (int) (frame->state_frames + 1) : 0;

  return even > params->lowest ? even : params->lowest;
}

static void
process (const csfk_frame *frame, const void *data)
{
  const csfk_temporaldenoise_params *params = data;
  const csfk_image *in = &frame->in;
  const format_groups *groups = groups_of[in->format];
  const size_t copy_bytes = get_copy_bytes (in);
  const unsigned odd = frame->state_frames & 1;
  unsigned char *future = (unsigned char *) frame->state + (odd ? copy_bytes : 0);
  unsigned char *past = (unsigned char *) frame->state + (odd ? 0 : copy_bytes);

  for (int i = 0; i < groups->n_groups; i++) {
    const component_group *group = &groups->group[i];
    group_work work = {
      .group = group,
      .in = &in->plane[group->plane],
      .out = &frame->out.plane[group->plane],
      .past = past,
      .future = future,
      .state_stride = (size_t) CSFK_TEMPORALDENOISE_STATE_STRIDE (get_columns (in, group)),
      .component_bytes = get_component_bytes (in, group),
      .visible = get_visible (in, group),
      .columns = get_columns (in, group),
      .rows = in->plane[group->plane].rows,
      .tens = in->format == CSFK_FORMAT_P010_10LE,
      .lowest = get_lowest (frame, params),
      .ramp = &params->ramp[group->n_components == 3],
    };

    (csfk_has_avx2 () ? process_group_avx2 : process_group) (&work);
    past += work.component_bytes * (size_t) group->n_components;
    future += work.component_bytes * (size_t) group->n_components;
  }
}

/* ---- parameters and launch ------------------------------------------------------------------- */

/* `lowest` halves with each quarter of strength, from all at 0 to a sixteenth at 1: the noise power
 * that a recursive mean leaves is share / (2 - share).  The slope is rounded up, and the offset so
 * chosen, that the share reaches all of the new sample at `most` and not after. */
static void
resolve (void *data)
{
  csfk_temporaldenoise_params *params = data;

  params->lowest = (int) lrint (ONE * pow (2.0, -4.0 * (double) params->strength));
  for (int i = 0; i < 2; i++) {
    csfk_temporaldenoise_ramp *ramp = &params->ramp[i];
    const int n_components = i ? 3 : 1;
    /* 256 to a step, weights that add up to 16; the ramp is the upper half. */
    const int half = params->threshold * n_components * 256 * 16 / 2;

    ramp->most = 2 * half;
    ramp->slope = ((ONE - params->lowest) * 65536 + half - 1) / half;
    ramp->offset = (int) ((int64_t) ramp->most * ramp->slope >> 16) - ONE;
  }
}

static unsigned
divide_up (unsigned value, unsigned by)
{
  return (value + by - 1) / by;
}

/* For the device: where each component lies in the state. */
static void
place_components (const csfk_frame *frame, csfk_temporaldenoise_component *component)
{
  const csfk_image *in = &frame->in;
  const format_groups *groups = groups_of[in->format];
  const size_t copy_bytes = get_copy_bytes (in);
  const unsigned odd = frame->state_frames & 1;
  unsigned char *at = frame->state;

  for (int i = 0; i < groups->n_groups; i++)
    for (int c = 0; c < groups->group[i].n_components; c++) {
      const component_group *group = &groups->group[i];

      component->past = at + (odd ? 0 : copy_bytes);
      component->future = at + (odd ? copy_bytes : 0);
      component->stride = CSFK_TEMPORALDENOISE_STATE_STRIDE (get_columns (in, group));
      component->columns = get_visible (in, group);
      at += get_component_bytes (in, group);
      component++;
    }
}

static int
enqueue (const csfk_frame *frame, const void *params, csfk_launcher *launcher)
{
  static const unsigned pixel_bytes_of[CSFK_N_FORMATS] = {
    [CSFK_FORMAT_GRAY8] = 1, [CSFK_FORMAT_NV12] = 1, [CSFK_FORMAT_I420] = 1,
    [CSFK_FORMAT_YUY2] = 2, [CSFK_FORMAT_UYVY] = 2, [CSFK_FORMAT_P010_10LE] = 2,
    [CSFK_FORMAT_RGB] = 3, [CSFK_FORMAT_BGR] = 3,
    [CSFK_FORMAT_RGBx] = 4, [CSFK_FORMAT_BGRx] = 4, [CSFK_FORMAT_RGBA] = 4, [CSFK_FORMAT_BGRA] = 4,
  };
  const unsigned pixel_bytes = pixel_bytes_of[frame->in.format];
  const unsigned pixels = divide_up ((unsigned) frame->in.plane[0].row_bytes, pixel_bytes);
  const int is_joint = groups_of[frame->in.format]->group[0].n_components == 3;
  csfk_temporaldenoise_args args = { .frame = *frame };
  csfk_dim block = { CSFK_TEMPORALDENOISE_BLOCK_X, CSFK_TEMPORALDENOISE_BLOCK_Y, 1 };
  csfk_dim grid = {
    divide_up (pixels, CSFK_TEMPORALDENOISE_LANES * CSFK_TEMPORALDENOISE_PIXELS (pixel_bytes)),
    divide_up ((unsigned) frame->in.height,
        CSFK_TEMPORALDENOISE_BLOCK_Y * CSFK_TEMPORALDENOISE_ROWS (pixel_bytes)),
    (unsigned) frame->in.n_planes
  };

  memcpy (&args.params, params, sizeof args.params);
  place_components (frame, args.component);
  args.slope = (float) args.params.ramp[is_joint].slope / 65536.0f;
  args.start = 8388608.0f - (float) args.params.ramp[is_joint].offset;
  args.lowest = 8388608.0f + (float) get_lowest (frame, &args.params);
  return launcher->launch (launcher, "csfk_temporaldenoise", grid, block, 0, &args, sizeof args);
}

static const csfk_param params_of[] = {
  {
    "strength", CSFK_TYPE_FLOAT, offsetof (csfk_temporaldenoise_params, strength), 0, 1, 0.5, "",
    "How long still parts are averaged, 0: not at all, 1: over some 30 frames"
  },
  {
    "threshold", CSFK_TYPE_INT, offsetof (csfk_temporaldenoise_params, threshold), 1, 64, 12,
    "8-bit steps", "Mean difference of a neighbourhood that counts as motion"
  },
};

const csfk_kernel csfk_temporaldenoise = {
  .abi = CSFK_ABI,
  .name = "temporaldenoise",
  .description = "Averages over time what does not move, against noise",
  .formats = {
    CSFK_FORMAT_NV12, CSFK_FORMAT_I420, CSFK_FORMAT_YUY2, CSFK_FORMAT_UYVY, CSFK_FORMAT_P010_10LE,
    CSFK_FORMAT_RGBA, CSFK_FORMAT_BGRA, CSFK_FORMAT_RGBx, CSFK_FORMAT_BGRx, CSFK_FORMAT_RGB,
    CSFK_FORMAT_BGR, CSFK_FORMAT_GRAY8, CSFK_FORMAT_NONE
  },
  .params = params_of,
  .n_params = sizeof params_of / sizeof params_of[0],
  .params_size = sizeof (csfk_temporaldenoise_params),
  .state_size = state_size,
  .resolve = resolve,
  .process = process,
  .enqueue = enqueue,
  .device_code = &csfk_blob_temporaldenoise,
};

_Static_assert (sizeof (csfk_temporaldenoise_params) <= CSFK_MAX_PARAMS,
    "the parameters do not fit a slot");
