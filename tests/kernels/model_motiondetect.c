/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The naive model of motiondetect: every pixel from the definition at the top of the kernel's C
 * file, its background kept as plain numbers.  Shares only the parameter structure with it. */
#include "check.h"

#include <math.h>
#include <stdlib.h>

#include "kernels/motiondetect/motiondetect.h"

/* Of visible pixels: the background of the frame before and of this one, in 256ths (64ths for ten
 * bits) of a step; `light` goes with the first. */
typedef struct history
{
  size_t n_pixels;
  int light, light_change;
  int now;                      /* which half of values is this frame's to compare with */
  int values[];
} history;

static int
limit (int value, int low, int high)
{
  return value < low ? low : value > high ? high : value;
}

static int
get_luma (const csfk_image *image, int x, int y)
{
  const channel *components;
  int n = model_get_components (image->format, &components), sum = 0;

  for (int i = 0; i < n; i++) {
    int sample = model_get_sample (image, &components[i], x, y);

    switch (components[i].kind) {
      case COMPONENT_LUMA:
        return image->format == CSFK_FORMAT_P010_10LE ? 64 * sample : 256 * sample;
      case COMPONENT_RED:
        sum += 54 * sample;
        break;
      case COMPONENT_GREEN:
        sum += 183 * sample;
        break;
      case COMPONENT_BLUE:
        sum += 19 * sample;
        break;
      default:
        break;
    }
  }
  return sum;
}

static int
get_change (const csfk_image *image, const history *past, int x, int y)
{
  x = limit (x, 0, image->width - 1);
  y = limit (y, 0, image->height - 1);
  return get_luma (image, x, y) - past->light -
      past->values[past->now * past->n_pixels + (size_t) y * (size_t) image->width + (size_t) x];
}

static bool
seems_to_move (const csfk_image *image, const csfk_motiondetect_params *params,
    const history *past, int x, int y)
{
  return abs (get_change (image, past, x, y)) > params->threshold * 256;
}

/* Numerator of 131072ths. */
static long
get_rate (const csfk_frame *frame, const csfk_motiondetect_params *params, bool moving)
{
  double share = (double) params->learning, even = 1.0 / (frame->state_frames + 1.0);
  double half = floor (65536 * share), half_even = floor (65536 * even);

  if (half > 0 && half_even > fmin (half, 65535))
    half = half_even;
  else if (moving)
    half = floor (65536 * share / CSFK_MOTIONDETECT_SLOWER);
  return 2 * (long) fmin (half, 65535) + 1;
}

static void
learn (const csfk_frame *frame, const csfk_motiondetect_params *params, history *past)
{
  const csfk_image *in = &frame->in;
  const size_t next = !past->now * past->n_pixels;
  long long sum = 0, n = 0;

  for (int y = 0; y < in->height; y++)
    for (int x = 0; x < in->width; x++) {
      size_t place = (size_t) y * (size_t) in->width + (size_t) x;
      int background = past->values[past->now * past->n_pixels + place];
      double rate = (double) get_rate (frame, params, seems_to_move (in, params, past, x, y));

      past->values[next + place] = background +
          (int) rint ((get_luma (in, x, y) - background) * rate / 131072);
      if (y / 4 % 8 == 0) {
        sum += limit (get_change (in, past, x, y), -params->threshold * 256,
            params->threshold * 256);
        n++;
      }
    }
  /* In floats, as the kernel says. */
  past->light_change = (int) floorf ((float) sum * (1.0f / (float) n));
}

static void
prepare (const csfk_frame *frame, const void *params, void **memory)
{
  const size_t n_pixels = (size_t) frame->in.width * (size_t) frame->in.height;
  history *past = *memory;

  if (!past) {
    past = calloc (1, sizeof *past + 2 * n_pixels * sizeof past->values[0]);
    if (!past)
      check_fail ("out of memory");
    past->n_pixels = n_pixels;
    for (size_t i = 0; i < n_pixels; i++)
      past->values[i] = get_luma (&frame->in, (int) (i % (size_t) frame->in.width),
          (int) (i / (size_t) frame->in.width));
    *memory = past;
  } else {
    past->now = !past->now;
    past->light = limit (past->light + past->light_change, -32768, 32768);
  }
  learn (frame, params, past);
}

static int
sample (const csfk_frame *frame, const void *data, void *memory, const channel *component, int x,
    int y)
{
  const csfk_motiondetect_params *params = data;
  const csfk_image *in = &frame->in;
  const int step = in->format == CSFK_FORMAT_P010_10LE ? 4 : 1;
  int votes = 0;

  if (params->show == CSFK_MOTIONDETECT_FRAME || component->kind == COMPONENT_ALPHA ||
      component->kind == COMPONENT_UNUSED)
    return model_get_raw (in, component, x, y);
  if (component->kind == COMPONENT_CHROMA)
    return model_to_raw (in, 128 * step);
  for (int dy = -1; dy <= 1; dy++)
    for (int dx = -1; dx <= 1; dx++)
      votes += seems_to_move (in, params, memory, x + dx, y + dy);
  if (in->range == CSFK_RANGE_LIMITED)
    return model_to_raw (in, (votes >= 5 ? 235 : 16) * step);
  return model_to_raw (in, votes >= 5 ? 256 * step - 1 : 0);
}

const kernel_model model_motiondetect = {
  .kernel = "motiondetect",
  .n_frames = 5,
  .prepare = prepare,
  .sample = sample,
};
