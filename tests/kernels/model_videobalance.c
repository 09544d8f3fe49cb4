/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The model of videobalance: videobalance.h's formulas in whole numbers, one sample at a time,
 * from the parameters that a user sets; the derived ones are not read.  Knows check.h and the
 * parameter structure only. */
#include "check.h"

#include <math.h>

#include "kernels/videobalance/videobalance.h"

/* What differs between 8 and 10 bits. */
typedef struct depth
{
  int step;                     /* of 8 bits in those of this depth: 1 or 4 */
  int luma_places, chroma_places;
} depth;

static const depth depth8 = { 1, CSFK_VIDEOBALANCE_LUMA_PLACES, CSFK_VIDEOBALANCE_CHROMA_PLACES };
static const depth depth10 =
    { 4, CSFK_VIDEOBALANCE_LUMA_PLACES - 2, CSFK_VIDEOBALANCE_CHROMA_PLACES - 2 };

static const depth *
depth_of (const csfk_image *image)
{
  return image->format == CSFK_FORMAT_P010_10LE ? &depth10 : &depth8;
}

static int
between (int value, int low, int high)
{
  return value < low ? low : value > high ? high : value;
}

static long
divide_down (long value, long by)
{
  return value / by - (value % by < 0);
}

/* In units of 2^-places; halves to the even one. */
static long
to_fixed (double value, int places)
{
  double scaled = value * (double) (1L << places);
  double below = floor (scaled), rest = scaled - below;

  if (rest > 0.5 || (rest == 0.5 && fmod (below, 2.0) != 0))
    below += 1;
  return (long) below;
}

static int
from_fixed (long value, int places, int maximum)
{
  const long one = 1L << places;
  long below = divide_down (value, one), rest = value - below * one;

  if (2 * rest > one || (2 * rest == one && below % 2 != 0))
    below++;
  return (int) (below < 0 ? 0 : below > maximum ? maximum : below);
}

static int
balance_luma (const csfk_videobalance_params *params, const depth *d, int black, int y)
{
  const int maximum = 256 * d->step - 1;
  const long contrast = to_fixed (params->contrast, d->luma_places);
  const double factor = (double) contrast / (double) (1L << d->luma_places);
  const long rest = to_fixed (black - black * factor + 255.0 * d->step * params->brightness,
      d->luma_places);
  int balanced = from_fixed (y * contrast + rest, d->luma_places, maximum);

  if (params->gamma == 1.0f)
    return balanced;
  return (int) floor (maximum * pow ((double) balanced / maximum, 1.0 / params->gamma) + 0.5);
}

/* u' of u and v, or v' of v and u with -1 for sign. */
static int
balance_chroma (const csfk_videobalance_params *params, const depth *d, int own, int other,
    int sign)
{
  const double angle = 3.14159265358979323846 * params->hue;
  const long cosine = to_fixed (params->saturation * cos (angle), d->chroma_places);
  const long sine = to_fixed (params->saturation * sin (angle), d->chroma_places);
  const int grey = 128 * d->step;

  return from_fixed (((long) grey << d->chroma_places) + (own - grey) * cosine +
      sign * (other - grey) * sine, d->chroma_places, 256 * d->step - 1);
}

static int
get_value (const csfk_image *image, const channel *component, int x, int y)
{
  int raw = model_get_raw (image, component, x, y);

  return image->format == CSFK_FORMAT_P010_10LE ? raw / 64 : raw;
}

static int
sample_chroma (const csfk_frame *frame, const csfk_videobalance_params *params,
    const channel *component, int x, int y)
{
  const csfk_image *in = &frame->in;
  const channel *components;
  int is_v, u, v;

  model_get_components (in->format, &components);
  is_v = component->plane == components[2].plane && component->offset == components[2].offset;
  u = get_value (in, &components[1], x, y);
  v = get_value (in, &components[2], x, y);
  return model_to_raw (in, is_v ? balance_chroma (params, depth_of (in), v, u, -1)
      : balance_chroma (params, depth_of (in), u, v, 1));
}

static int
sample_colour (const csfk_frame *frame, const csfk_videobalance_params *params,
    component_kind kind, int x, int y)
{
  const channel *components;
  int n = model_get_components (frame->in.format, &components);
  long r = 0, g = 0, b = 0;

  for (int i = 0; i < n; i++) {
    int value = get_value (&frame->in, &components[i], x, y);

    if (components[i].kind == COMPONENT_RED)
      r = value;
    else if (components[i].kind == COMPONENT_GREEN)
      g = value;
    else if (components[i].kind == COMPONENT_BLUE)
      b = value;
  }

  int y_in = (int) divide_down (66 * r + 129 * g + 25 * b + 4096, 256);
  int u_in = (int) divide_down (-38 * r - 74 * g + 112 * b + 32768, 256);
  int v_in = (int) divide_down (112 * r - 94 * g - 18 * b + 32768, 256);
  long luma = balance_luma (params, &depth8, 16, y_in);
  long u = balance_chroma (params, &depth8, u_in, v_in, 1);
  long v = balance_chroma (params, &depth8, v_in, u_in, -1);
  long sum = kind == COMPONENT_RED ? 298 * luma + 409 * v - 57068 :
      kind == COMPONENT_GREEN ? 298 * luma - 100 * u - 208 * v + 34707 :
      298 * luma + 516 * u - 70870;

  return between ((int) divide_down (sum, 256), 0, 255);
}

static int
sample (const csfk_frame *frame, const void *data, void *memory, const channel *component, int x,
    int y)
{
  const csfk_videobalance_params *params = data;
  const csfk_image *in = &frame->in;
  const int black = in->range == CSFK_RANGE_LIMITED ? 16 * depth_of (in)->step : 0;

  if (params->brightness == 0 && params->contrast == 1 && params->saturation == 1 &&
      params->hue == 0 && params->gamma == 1)
    return model_get_raw (in, component, x, y);
  switch (component->kind) {
    case COMPONENT_LUMA:
      return model_to_raw (in, balance_luma (params, depth_of (in), black,
              get_value (in, component, x, y)));
    case COMPONENT_CHROMA:
      return sample_chroma (frame, params, component, x, y);
    case COMPONENT_RED:
    case COMPONENT_GREEN:
    case COMPONENT_BLUE:
      return sample_colour (frame, params, component->kind, x, y);
    default:
      return model_get_raw (in, component, x, y);
  }
}

const kernel_model model_videobalance = {
  .kernel = "videobalance",
  .sample = sample,
};
