/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The naive model of histogram: every visible sample of every channel counted one by one, and the record
 * worked out in long double from the definition at the top of the kernel's C file.  Shares the record and
 * the parameter structure with it. */
#include "check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/histogram/histogram.h"

/* Of the frame before and of this one. */
typedef struct history
{
  long long before[CSFK_HISTOGRAM_CHANNELS][CSFK_HISTOGRAM_BINS];
  long long now[CSFK_HISTOGRAM_CHANNELS][CSFK_HISTOGRAM_BINS];
} history;

/* The place of a component among the channels, or -1. */
static int
get_channel (const channel *components, int i)
{
  switch (components[i].kind) {
    case COMPONENT_LUMA:
    case COMPONENT_RED:
      return 0;
    case COMPONENT_GREEN:
      return 1;
    case COMPONENT_BLUE:
      return 2;
    case COMPONENT_CHROMA:
      /* U comes before V everywhere. */
      return i;
    default:
      return -1;
  }
}

static void
prepare (const csfk_frame *frame, const void *params, void **memory)
{
  const csfk_image *in = &frame->in;
  const channel *components;
  int n = model_get_components (in->format, &components);
  history *past = *memory;

  if (!past) {
    *memory = past = calloc (1, sizeof *past);
    if (!past)
      check_fail ("out of memory");
  }
  memcpy (past->before, past->now, sizeof past->before);
  memset (past->now, 0, sizeof past->now);
  for (int i = 0; i < n; i++) {
    int columns = components[i].shift_x ? (in->width + 1) / 2 : in->width;
    int rows = components[i].shift_y ? (in->height + 1) / 2 : in->height;
    int to = get_channel (components, i);

    for (int y = 0; y < rows && to >= 0; y++)
      for (int x = 0; x < columns; x++) {
        int raw = model_get_raw (in, &components[i], x, y);

        past->now[to][in->format == CSFK_FORMAT_P010_10LE ? raw / 256 : raw]++;
      }
  }
}

static float
round_to (long double value, long double steps)
{
  return (float) (floorl (value * steps + 0.5L) / steps);
}

static void
describe (const csfk_image *in, const long long *bins, int c, bool chroma,
    csfk_histogram_record *record)
{
  const int low = in->range == CSFK_RANGE_LIMITED ? 16 : 0;
  const int high = in->range == CSFK_RANGE_FULL ? 255 : chroma ? 240 : 235;
  long double total = 0, sum = 0, n_low = 0, n_high = 0;

  for (int b = 0; b < CSFK_HISTOGRAM_BINS; b++) {
    record->bins[c][b] = (unsigned) bins[b];
    total += bins[b];
    sum += (long double) b *bins[b];

    if (b <= low)
      n_low += bins[b];
    if (b >= high)
      n_high += bins[b];
  }
  record->samples[c] = (unsigned) total;
  record->mean[c] = round_to (sum / total, 256);
  record->clipped_low[c] = round_to (n_low / total, 65536);
  record->clipped_high[c] = round_to (n_high / total, 65536);
}

static unsigned
records (const csfk_frame *frame, const void *data, void *memory, void *to, unsigned room)
{
  const csfk_histogram_params *params = data;
  const history *past = memory;
  const channel *components;
  csfk_histogram_record record;
  long double moved = 0, total = 0;
  bool rgb;

  memset (&record, 0, sizeof record);
  model_get_components (frame->in.format, &components);
  rgb = components[0].kind != COMPONENT_LUMA;
  record.n_channels = frame->in.format == CSFK_FORMAT_GRAY8 ? 1 : 3;
  for (int c = 0; c < (int) record.n_channels; c++)
    describe (&frame->in, past->now[c], c, c > 0 && !rgb, &record);
  for (int c = 0; c < (rgb ? 3 : 1); c++) {
    for (int b = 0; b < CSFK_HISTOGRAM_BINS; b += 8) {
      long double group = 0;

      for (int i = 0; i < 8; i++)
        group += past->now[c][b + i] - past->before[c][b + i];
      moved += fabsl (group) / 2;
    }
    total += record.samples[c];
  }
  if (frame->state_frames > 0) {
    record.change = round_to (moved / total, 65536);
    record.scene_change = record.change >= round_to (params->scene_threshold, 65536);
  }
  if (room > 0)
    memcpy (to, &record, sizeof record);
  return 1;
}

static int
sample (const csfk_frame *frame, const void *params, void *memory, const channel *component, int x,
    int y)
{
  return model_get_raw (&frame->in, component, x, y);
}

const kernel_model model_histogram = {
  .kernel = "histogram",
  .n_frames = 5,
  .prepare = prepare,
  .sample = sample,
  .records = records,
};
