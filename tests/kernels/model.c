/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The naive models: each works out one sample straight from the kernel's definition, reading
 * pixels one at a time.  Slow on purpose, and shares nothing with kernels/ but the parameter
 * structure. */
#include "check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/gaussianblur/gaussianblur.h"

typedef struct component_list
{
  int n;
  channel component[4];
} component_list;

static const component_list lists[CSFK_N_FORMATS] = {
  [CSFK_FORMAT_GRAY8] = {1, {{COMPONENT_LUMA, 0, 0, 1, 0, 0}}},
  [CSFK_FORMAT_NV12] = {3, {{COMPONENT_LUMA, 0, 0, 1, 0, 0}, {COMPONENT_CHROMA, 1, 0, 2, 1, 1},
          {COMPONENT_CHROMA, 1, 1, 2, 1, 1}}},
  [CSFK_FORMAT_I420] = {3, {{COMPONENT_LUMA, 0, 0, 1, 0, 0}, {COMPONENT_CHROMA, 1, 0, 1, 1, 1},
          {COMPONENT_CHROMA, 2, 0, 1, 1, 1}}},
  [CSFK_FORMAT_YUY2] = {3, {{COMPONENT_LUMA, 0, 0, 2, 0, 0}, {COMPONENT_CHROMA, 0, 1, 4, 1, 0},
          {COMPONENT_CHROMA, 0, 3, 4, 1, 0}}},
  [CSFK_FORMAT_UYVY] = {3, {{COMPONENT_LUMA, 0, 1, 2, 0, 0}, {COMPONENT_CHROMA, 0, 0, 4, 1, 0},
          {COMPONENT_CHROMA, 0, 2, 4, 1, 0}}},
  [CSFK_FORMAT_P010_10LE] = {3, {{COMPONENT_LUMA, 0, 0, 2, 0, 0}, {COMPONENT_CHROMA, 1, 0, 4, 1, 1},
          {COMPONENT_CHROMA, 1, 2, 4, 1, 1}}},
  [CSFK_FORMAT_RGB] = {3, {{COMPONENT_RED, 0, 0, 3, 0, 0}, {COMPONENT_GREEN, 0, 1, 3, 0, 0},
          {COMPONENT_BLUE, 0, 2, 3, 0, 0}}},
  [CSFK_FORMAT_BGR] = {3, {{COMPONENT_BLUE, 0, 0, 3, 0, 0}, {COMPONENT_GREEN, 0, 1, 3, 0, 0},
          {COMPONENT_RED, 0, 2, 3, 0, 0}}},
  [CSFK_FORMAT_RGBx] = {4, {{COMPONENT_RED, 0, 0, 4, 0, 0}, {COMPONENT_GREEN, 0, 1, 4, 0, 0},
          {COMPONENT_BLUE, 0, 2, 4, 0, 0}, {COMPONENT_UNUSED, 0, 3, 4, 0, 0}}},
  [CSFK_FORMAT_BGRx] = {4, {{COMPONENT_BLUE, 0, 0, 4, 0, 0}, {COMPONENT_GREEN, 0, 1, 4, 0, 0},
          {COMPONENT_RED, 0, 2, 4, 0, 0}, {COMPONENT_UNUSED, 0, 3, 4, 0, 0}}},
  [CSFK_FORMAT_RGBA] = {4, {{COMPONENT_RED, 0, 0, 4, 0, 0}, {COMPONENT_GREEN, 0, 1, 4, 0, 0},
          {COMPONENT_BLUE, 0, 2, 4, 0, 0}, {COMPONENT_ALPHA, 0, 3, 4, 0, 0}}},
  [CSFK_FORMAT_BGRA] = {4, {{COMPONENT_BLUE, 0, 0, 4, 0, 0}, {COMPONENT_GREEN, 0, 1, 4, 0, 0},
          {COMPONENT_RED, 0, 2, 4, 0, 0}, {COMPONENT_ALPHA, 0, 3, 4, 0, 0}}},
};

int
model_get_components (int format, const channel **components)
{
  *components = lists[format].component;
  return lists[format].n;
}

int
model_get_columns (const csfk_image *image, const channel *component)
{
  return image->plane[component->plane].row_bytes / component->pitch;
}

int
model_get_rows (const csfk_image *image, const channel *component)
{
  return image->plane[component->plane].rows;
}

int
model_get_raw (const csfk_image *image, const channel *component, int x, int y)
{
  const csfk_plane *plane = &image->plane[component->plane];
  const unsigned char *at = plane->data + (ptrdiff_t) y * plane->stride + component->offset +
      (ptrdiff_t) x * component->pitch;

  return image->format == CSFK_FORMAT_P010_10LE ? at[0] + 256 * at[1] : at[0];
}

static int
limit (int value, int low, int high)
{
  return value < low ? low : value > high ? high : value;
}

/* A sample's value, its place moved inside the visible picture. */
static int
get_sample (const csfk_image *image, const channel *component, int x, int y)
{
  int columns = component->shift_x ? (image->width + 1) / 2 : image->width;
  int rows = component->shift_y ? (image->height + 1) / 2 : image->height;
  int raw = model_get_raw (image, component, limit (x, 0, columns - 1), limit (y, 0, rows - 1));

  return image->format == CSFK_FORMAT_P010_10LE ? raw / 64 : raw;
}

static int
to_raw (const csfk_image *image, int value)
{
  return image->format == CSFK_FORMAT_P010_10LE ? value * 64 : value;
}

/* ---- copy ------------------------------------------------------------------------------------ */

static int
model_copy (const csfk_frame *frame, const channel *component, int x, int y)
{
  return model_get_raw (&frame->in, component, x, y);
}

/* ---- sobel ----------------------------------------------------------------------------------- */

static int
get_luma (const csfk_image *image, int x, int y)
{
  const channel *components;
  int n = model_get_components (image->format, &components), sum = 128;

  for (int i = 0; i < n; i++) {
    int sample = get_sample (image, &components[i], x, y);

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
model_sobel (const csfk_frame *frame, const channel *component, int x, int y)
{
  static const int weights[3][3] = { {-1, 0, 1}, {-2, 0, 2}, {-1, 0, 1} };
  const csfk_image *in = &frame->in;
  const int step = in->format == CSFK_FORMAT_P010_10LE ? 4 : 1;
  const int maximum = 256 * step - 1;
  const int black = in->range == CSFK_RANGE_LIMITED ? 16 * step : 0;
  const int white = in->range == CSFK_RANGE_LIMITED ? 235 * step : maximum;
  int gx = 0, gy = 0;

  if (component->kind == COMPONENT_CHROMA)
    return to_raw (in, 128 * step);
  if (component->kind == COMPONENT_ALPHA || component->kind == COMPONENT_UNUSED)
    return model_get_raw (in, component, x, y);

  for (int dy = -1; dy <= 1; dy++)
    for (int dx = -1; dx <= 1; dx++) {
      gx += weights[dy + 1][dx + 1] * get_luma (in, x + dx, y + dy);
      gy += weights[dx + 1][dy + 1] * get_luma (in, x + dx, y + dy);
    }
  gx = limit (abs (gx), 0, maximum);
  gy = limit (abs (gy), 0, maximum);
  return to_raw (in, black + limit ((int) floor (sqrt ((double) (gx * gx + gy * gy))), 0,
          white - black));
}

/* ---- gaussianblur ---------------------------------------------------------------------------- */

static long
row_sum (const csfk_image *image, const channel *component,
    const csfk_gaussianblur_filter *filter, int places, int x, int y)
{
  long sum = 0, step = 1L << (CSFK_GAUSSIANBLUR_WEIGHT_BITS - places);

  for (int k = -filter->radius; k <= filter->radius; k++)
    sum += (long) filter->weight[abs (k)] * get_sample (image, component, x + k, y);
  return (sum + step / 2) / step;
}

static int
model_gaussianblur (const csfk_frame *frame, const channel *component, int x, int y)
{
  const csfk_gaussianblur_params *params = frame->params;
  const csfk_gaussianblur_filter *across = &params->filter[component->shift_x];
  const csfk_gaussianblur_filter *down = &params->filter[component->shift_y];
  const int places = frame->in.format == CSFK_FORMAT_P010_10LE ? 6 : 8;
  const int rows = model_get_rows (&frame->in, component);
  const long step = 1L << (CSFK_GAUSSIANBLUR_WEIGHT_BITS + places);
  long sum = 0;

  if (component->kind == COMPONENT_UNUSED)
    return model_get_raw (&frame->in, component, x, y);
  for (int k = -down->radius; k <= down->radius; k++)
    sum += down->weight[abs (k)] * row_sum (&frame->in, component, across, places, x,
        limit (y + k, 0, rows - 1));
  return to_raw (&frame->in, (int) ((sum + step / 2) / step));
}

double
model_ideal_blur (const csfk_frame *frame, double sigma, const channel *component, int x, int y)
{
  double sigma_x = component->shift_x ? sigma / 2 : sigma;
  double sigma_y = component->shift_y ? sigma / 2 : sigma;
  int radius_x = (int) ceil (3 * sigma_x), radius_y = (int) ceil (3 * sigma_y);
  double sum = 0, total = 0;

  for (int dy = -radius_y; dy <= radius_y; dy++)
    for (int dx = -radius_x; dx <= radius_x; dx++) {
      double weight = exp (-dx * dx / (2 * sigma_x * sigma_x) - dy * dy / (2 * sigma_y * sigma_y));

      sum += weight * get_sample (&frame->in, component, x + dx, y + dy);
      total += weight;
    }
  return sum / total;
}

model_function
model_find (const char *kernel)
{
  static const struct
  {
    const char *name;
    model_function function;
  } models[] = {
    {"copy", model_copy},
    {"sobel", model_sobel},
    {"gaussianblur", model_gaussianblur},
  };

  for (unsigned i = 0; i < sizeof models / sizeof models[0]; i++)
    if (strcmp (models[i].name, kernel) == 0)
      return models[i].function;
  return NULL;
}
