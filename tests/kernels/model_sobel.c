/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The model of sobel: the gradient of the luma, from nine samples of it.  Knows check.h only. */
#include "check.h"

#include <math.h>
#include <stdlib.h>

static int
get_luma (const csfk_image *image, int x, int y)
{
  const channel *components;
  int n = model_get_components (image->format, &components), sum = 128;

  for (int i = 0; i < n; i++) {
    int sample = model_get_sample (image, &components[i], x, y);

    switch (components[i].kind) {
      case COMPONENT_LUMA:
        return sample;
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
  return sum / 256;
}

static int
at_most (int value, int maximum)
{
  return value < maximum ? value : maximum;
}

static int
sample (const csfk_frame *frame, const void *params, void *memory, const channel *component, int x,
    int y)
{
  static const int weights[3][3] = { {-1, 0, 1}, {-2, 0, 2}, {-1, 0, 1} };
  const csfk_image *in = &frame->in;
  const int step = in->format == CSFK_FORMAT_P010_10LE ? 4 : 1;
  const int maximum = 256 * step - 1;
  const int black = in->range == CSFK_RANGE_LIMITED ? 16 * step : 0;
  const int white = in->range == CSFK_RANGE_LIMITED ? 235 * step : maximum;
  int gx = 0, gy = 0;

  if (component->kind == COMPONENT_CHROMA)
    return model_to_raw (in, 128 * step);
  if (component->kind == COMPONENT_ALPHA || component->kind == COMPONENT_UNUSED)
    return model_get_raw (in, component, x, y);

  for (int dy = -1; dy <= 1; dy++)
    for (int dx = -1; dx <= 1; dx++) {
      gx += weights[dy + 1][dx + 1] * get_luma (in, x + dx, y + dy);
      gy += weights[dx + 1][dy + 1] * get_luma (in, x + dx, y + dy);
    }
  gx = at_most (abs (gx), maximum);
  gy = at_most (abs (gy), maximum);
  return model_to_raw (in, black + at_most ((int) floor (sqrt ((double) (gx * gx + gy * gy))),
          white - black));
}

const kernel_model model_sobel = {
  .kernel = "sobel",
  .sample = sample,
};
