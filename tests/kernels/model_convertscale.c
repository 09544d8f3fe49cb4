/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The model of convertscale: one sample of the output at a time, from the definition in the kernel's
 * header; and what that definition promises: that it is the ideal picture to a few steps.  Knows check.h
 * and the kernel's parameter structure. */
#include "check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels/convertscale/convertscale.h"

static int
limit (int value, int low, int high)
{
  return value < low ? low : value > high ? high : value;
}

/* Right shifts of negative numbers are not everywhere the same. */
static int64_t
floor_divide (int64_t value, int64_t by)
{
  return value >= 0 ? value / by : -((-value + by - 1) / by);
}

static bool
is_rgb (const csfk_image *image)
{
  return csfk_format_get_info (image->format)->is_rgb != 0;
}

static bool
is_grey (const csfk_image *image)
{
  return image->format == CSFK_FORMAT_GRAY8;
}

static const channel *
find_component (const csfk_image *image, component_kind kind, int index)
{
  const channel *components;
  int n = model_get_components (image->format, &components);

  for (int i = 0; i < n; i++)
    if (components[i].kind == kind && index-- == 0)
      return &components[i];
  return NULL;
}

/* The components whose colours are converted: 0, 1, 2. */
static const channel *
get_component (const csfk_image *image, int index)
{
  if (is_rgb (image))
    return find_component (image, (component_kind) (COMPONENT_RED + index), 0);
  return index == 0 ? find_component (image, COMPONENT_LUMA, 0) :
      find_component (image, COMPONENT_CHROMA, index - 1);
}

/* ---- positions and taps ---------------------------------------------------------------------- */

/* In 1/256 of a sample.  half: 0: of the plane itself; 1, 2: of one with half the samples, between two of
 * this one's or on every second. */
static int
get_position (int o, int in_size, int out_size, int half)
{
  const int64_t one = (int64_t) 1 << 32;
  int64_t step = (in_size * one + out_size / 2) / out_size, start = step / 2 - one / 2;

  if (half == 1)
    start -= one / 2;
  if (half > 0) {
    start = floor_divide (start, 2);
    step /= 2;
  }
  return (int) floor_divide (start + o * step + (1 << 23), 1 << 24);
}

static void
get_weights (int f, int weights[4])
{
  const int64_t one = 256, third = one * one * one;
  const int64_t t = f, scaled[4] = {
    -t * t * t + 2 * one * t * t - one * one * t,
    0,
    -3 * t * t * t + 4 * one * t * t + one * one * t,
    t * t * t - one * t * t
  };

  for (int k = 0; k < 4; k++)
    weights[k] = (int) floor_divide (scaled[k] * 1024 + third, 2 * third);
  weights[1] = 1024 - weights[0] - weights[2] - weights[3];
}

/* The sample at a position of a component's plane, rounded to so many binary places, in 0..255. */
static int
interpolate (const csfk_image *image, const channel *component, bool cubic, int px, int py,
    int places)
{
  const int ix = (int) floor_divide (px, 256), iy = (int) floor_divide (py, 256);
  const int fx = px - 256 * ix, fy = py - 256 * iy, one = 1 << places;
  int across[4], down[4];
  int64_t sum = 0;

  if (!cubic) {
    const int a = model_get_sample (image, component, ix, iy);
    const int b = model_get_sample (image, component, ix + 1, iy);
    const int c = model_get_sample (image, component, ix, iy + 1);
    const int d = model_get_sample (image, component, ix + 1, iy + 1);

    sum = (a * (256 - fx) + b * fx) * (256 - fy) + (c * (256 - fx) + d * fx) * fy;
    return (int) ((sum * one + 32768) / 65536);
  }
  get_weights (fx, across);
  get_weights (fy, down);
  for (int y = 0; y < 4; y++) {
    int64_t row = 0;

    for (int x = 0; x < 4; x++)
      row += across[x] * model_get_sample (image, component, ix - 1 + x, iy - 1 + y);
    sum += down[y] * floor_divide (row + 16, 32);
  }
  return limit ((int) floor_divide (sum * one + 16384, 32768), 0, 255 * one);
}

/* ---- colours --------------------------------------------------------------------------------- */

static int
get_matrix (const csfk_image *image, const csfk_image *other)
{
  int matrix = is_grey (image) && !is_grey (other) && !is_rgb (other) ? other->matrix :
      image->matrix;

  return matrix == CSFK_MATRIX_RGB ? CSFK_MATRIX_BT601 : matrix;
}

static bool
same_colours (const csfk_image *in, const csfk_image *out)
{
  if (is_rgb (in) || is_rgb (out))
    return is_rgb (in) && is_rgb (out);
  if (is_grey (in) || is_grey (out))
    return is_grey (in) && is_grey (out) && in->range == out->range;
  return in->range == out->range && get_matrix (in, out) == get_matrix (out, in) &&
      in->chroma_site == out->chroma_site;
}

/* R'G'B' in 0..255 of a picture's components, and back, as the recommendations write them. */
static void
to_rgb (const csfk_image *image, int matrix, const double from[3], double rgb[3])
{
  static const double red[] = { 0, 0.299, 0.2126, 0.2627 }, blue[] = { 0, 0.114, 0.0722, 0.0593 };
  const bool full = image->range == CSFK_RANGE_FULL;
  const double kr = red[matrix], kb = blue[matrix];
  const double y = full ? from[0] : (from[0] - 16) * 255 / 219;
  const double cb = (from[1] - 128) * (full ? 1 : 255.0 / 224), cr = (from[2] - 128) *
      (full ? 1 : 255.0 / 224);

  rgb[0] = y + cr * 2 * (1 - kr);
  rgb[2] = y + cb * 2 * (1 - kb);
  rgb[1] = (y - kr * rgb[0] - kb * rgb[2]) / (1 - kr - kb);
}

static void
from_rgb (const csfk_image *image, int matrix, const double rgb[3], double to[3])
{
  static const double red[] = { 0, 0.299, 0.2126, 0.2627 }, blue[] = { 0, 0.114, 0.0722, 0.0593 };
  const bool full = image->range == CSFK_RANGE_FULL;
  const double kr = red[matrix], kb = blue[matrix];
  const double y = kr * rgb[0] + (1 - kr - kb) * rgb[1] + kb * rgb[2];

  to[0] = full ? y : 16 + y * 219 / 255;
  to[1] = 128 + (rgb[2] - y) / (2 * (1 - kb)) * (full ? 1 : 224.0 / 255);
  to[2] = 128 + (rgb[0] - y) / (2 * (1 - kr)) * (full ? 1 : 224.0 / 255);
}

static void
convert (const csfk_image *in, const csfk_image *out, const double from[3], double to[3])
{
  double rgb[3] = { from[0], from[1], from[2] };

  if (!is_rgb (in))
    to_rgb (in, get_matrix (in, out), from, rgb);
  if (is_rgb (out))
    for (int i = 0; i < 3; i++)
      to[i] = rgb[i];
  else
    from_rgb (out, get_matrix (out, in), rgb, to);
}

static int
get_offset (const csfk_image *image, int index)
{
  return is_rgb (image) ? 0 : index > 0 ? 128 : image->range == CSFK_RANGE_LIMITED ? 16 : 0;
}

/* A result from components with four binary places.  The weights are what convert() makes of a step of one
 * component, in 1/1024. */
static int
apply_matrix (const csfk_image *in, const csfk_image *out, int index, const int c[3])
{
  double zero[3] = { 0, 0, 0 }, base[3], total = 0;
  int weights[3], sum = (get_offset (out, index) << 14) + (1 << 13);

  convert (in, out, zero, base);
  for (int i = 0; i < 3; i++) {
    double unit[3] = { i == 0, i == 1, i == 2 }, moved[3];

    convert (in, out, unit, moved);
    weights[i] = (int) floor ((moved[index] - base[index]) * 1024 + 0.5);
    total += moved[index] - base[index];
  }
  if (is_rgb (in))
    weights[1] = (int) floor (total * 1024 + 0.5) - weights[0] - weights[2];
  for (int i = 0; i < 3; i++)
    sum += weights[i] * (c[i] - 16 * get_offset (in, i));
  return limit ((int) floor_divide (sum, 1 << 14), 0, 255);
}

/* The three components at an output pixel, which is first moved inside the picture. */
static void
get_components (const csfk_frame *frame, bool cubic, int x, int y, int c[3])
{
  const csfk_image *in = &frame->in, *out = &frame->out;
  const int half_x = in->chroma_site == CSFK_CHROMA_SITE_CENTER ? 1 : 2;
  const int half_y = in->chroma_site == CSFK_CHROMA_SITE_TOP_LEFT ? 2 : 1;

  x = limit (x, 0, out->width - 1);
  y = limit (y, 0, out->height - 1);
  for (int i = 0; i < 3; i++) {
    const channel *component = get_component (in, i);

    if (component == NULL)
      c[i] = 128 * 16;
    else if (component->kind == COMPONENT_CHROMA)
      c[i] = interpolate (in, component, false, get_position (x, in->width, out->width, half_x),
          get_position (y, in->height, out->height, half_y), 4);
    else
      c[i] = interpolate (in, component, cubic, get_position (x, in->width, out->width, 0),
          get_position (y, in->height, out->height, 0), 4);
  }
}

static int
convert_chroma (const csfk_frame *frame, bool cubic, int index, int x, int y)
{
  static const int between[] = { 0, 2, 2 }, on[] = { 1, 2, 1 };
  const int *across = frame->out.chroma_site == CSFK_CHROMA_SITE_CENTER ? between : on;
  const int *down = frame->out.chroma_site == CSFK_CHROMA_SITE_TOP_LEFT ? on : between;
  int sums[3] = { 8, 8, 8 }, c[3];

  for (int dy = -1; dy <= 1; dy++)
    for (int dx = -1; dx <= 1; dx++) {
      get_components (frame, cubic, 2 * x + dx, 2 * y + dy, c);
      for (int i = 0; i < 3; i++)
        sums[i] += across[dx + 1] * down[dy + 1] * c[i];
    }
  for (int i = 0; i < 3; i++)
    c[i] = sums[i] / 16;
  return apply_matrix (&frame->in, &frame->out, index, c);
}

/* ---- one sample ------------------------------------------------------------------------------ */

/* 0, 1, 2 as get_component; -1: none of them. */
static int
get_index (const csfk_image *image, const channel *component)
{
  for (int i = 0; i < 3; i++)
    if (get_component (image, i) == component)
      return i;
  return -1;
}

static int
scale_alone (const csfk_frame *frame, bool cubic, const channel *from, int x, int y)
{
  const csfk_image *in = &frame->in, *out = &frame->out;
  const int halves = 1 << from->shift_x;

  return interpolate (in, from, cubic,
      get_position (x, (in->width + halves - 1) / halves, (out->width + halves - 1) / halves, 0),
      get_position (y, (in->height + halves - 1) / halves, (out->height + halves - 1) / halves, 0),
      0);
}

static int
sample (const csfk_frame *frame, const void *data, void *memory, const channel *component, int x,
    int y)
{
  const csfk_convertscale_params *params = data;
  const bool cubic = params->method == CSFK_CONVERTSCALE_BICUBIC;
  const csfk_image *in = &frame->in, *out = &frame->out;
  const int index = get_index (out, component);
  int c[3];

  if (in->format == out->format && in->width == out->width && in->height == out->height &&
      same_colours (in, out))
    return model_get_raw (in, component, x, y);
  if (index < 0) {
    const channel *alpha = find_component (in, COMPONENT_ALPHA, 0);

    return component->kind == COMPONENT_ALPHA && alpha != NULL ?
        scale_alone (frame, cubic, alpha, x, y) : 255;
  }
  if (same_colours (in, out))
    return scale_alone (frame, cubic, get_component (in, index), x, y);
  if (component->kind == COMPONENT_CHROMA)
    return convert_chroma (frame, cubic, index, x, y);
  get_components (frame, cubic, x, y, c);
  return apply_matrix (in, out, index, c);
}

/* ---- what is tried --------------------------------------------------------------------------- */

static const int formats[] = {
  CSFK_FORMAT_NV12, CSFK_FORMAT_I420, CSFK_FORMAT_RGBA, CSFK_FORMAT_BGRA, CSFK_FORMAT_RGBx,
  CSFK_FORMAT_BGRx, CSFK_FORMAT_RGB, CSFK_FORMAT_BGR, CSFK_FORMAT_GRAY8
};

/* The same size and exactly half, which have ways of their own, other sizes on both sides, and the
 * smallest. */
static void
choose_size (const csfk_image *in, int *width, int *height)
{
  static const int ratios[][2] = {
    {1, 1}, {1, 1}, {1, 1}, {1, 2}, {1, 2}, {1, 2}, {2, 1}, {2, 1}, {2, 1}, {3, 2}, {3, 2}, {2, 3}, {1, 3},
    {5, 7}, {7, 4}
  };
  const int n_ratios = CHECK_COUNT (ratios), kind = check_random_in (0, n_ratios + 4);

  *width = in->width;
  *height = in->height;
  if (kind < n_ratios) {
    *width = *width * ratios[kind][0] / ratios[kind][1];
    *height = *height * ratios[kind][0] / ratios[kind][1];
  } else if (kind < n_ratios + 3) {
    *width = check_random_in (1, 2 * in->width + 40);
    *height = check_random_in (1, 2 * in->height + 40);
  } else if (kind == n_ratios + 3) {
    *width = *height = 1;
  } else {
    *width = check_random_in (1, 3) * in->width;
  }
  *width = limit (*width, 1, 2048);
  *height = limit (*height, 1, 1024);
}

/* One choice for each format.  Colours are the input's as often as they are others. */
static bool
choose_output (const csfk_image *in, int choice, csfk_image *out)
{
  int width, height;

  if (choice >= CHECK_COUNT (formats))
    return false;
  choose_size (in, &width, &height);
  csfk_image_init (out, formats[choice], width, height);
  if (check_random_in (0, 1) == 0) {
    out->range = in->range;
    if (!is_rgb (out) && !is_grey (out) && !is_rgb (in) && !is_grey (in)) {
      out->matrix = in->matrix;
      out->chroma_site = in->chroma_site;
    }
    return true;
  }
  out->range = check_random_in (CSFK_RANGE_FULL, CSFK_RANGE_LIMITED);
  if (!is_rgb (out) && !is_grey (out)) {
    out->matrix = check_random_in (CSFK_MATRIX_BT601, CSFK_MATRIX_BT2020);
    out->chroma_site = check_random_in (CSFK_CHROMA_SITE_CENTER, CSFK_CHROMA_SITE_TOP_LEFT);
  }
  return true;
}

const kernel_model model_convertscale = {
  .kernel = "convertscale",
  .choose_output = choose_output,
  .sample = sample,
};

/* ---- against ideal arithmetic ---------------------------------------------------------------- */

/* Steps that a result may be off from the same formulas in double.  Worst cases, of noise: a fraction rounded
 * to 1/256 moves a bilinear sample by 255 / 512 in each direction and a bicubic one by 1.6 times that; the
 * result is rounded by 1/2; the matrix magnifies by up to 2.2 where chroma is worth most.  Measured over some
 * hundred thousand samples of noise: 1.54 and 2.21. */
#define IDEAL_SCALED 2.5
#define IDEAL_CONVERTED 5.0

static double
cubic_weight (double distance)
{
  const double d = fabs (distance), a = -0.5;

  return d <= 1 ? (a + 2) * d * d * d - (a + 3) * d * d + 1 :
      d < 2 ? a * d * d * d - 5 * a * d * d + 8 * a * d - 4 * a : 0;
}

static double
interpolate_ideal (const csfk_image *image, const channel *component, bool cubic, double px,
    double py)
{
  const int reach = cubic ? 2 : 1, ix = (int) floor (px), iy = (int) floor (py);
  double sum = 0;

  for (int y = iy - reach + 1; y <= iy + reach; y++)
    for (int x = ix - reach + 1; x <= ix + reach; x++)
      sum += model_get_sample (image, component, x, y) *
          (cubic ? cubic_weight (x - px) * cubic_weight (y - py) :
          (1 - fabs (x - px)) * (1 - fabs (y - py)));
  return fmin (fmax (sum, 0), 255);
}

static double
get_ideal_position (double o, int in_size, int out_size)
{
  return (o + 0.5) * in_size / out_size - 0.5;
}

static void
get_ideal_components (const csfk_frame *frame, bool cubic, int x, int y, double c[3])
{
  const csfk_image *in = &frame->in, *out = &frame->out;
  double px, py, on_x = in->chroma_site != CSFK_CHROMA_SITE_CENTER ? 0 : 0.5;
  double on_y = in->chroma_site == CSFK_CHROMA_SITE_TOP_LEFT ? 0 : 0.5;

  px = get_ideal_position (limit (x, 0, out->width - 1), in->width, out->width);
  py = get_ideal_position (limit (y, 0, out->height - 1), in->height, out->height);
  for (int i = 0; i < 3; i++) {
    const channel *component = get_component (in, i);

    if (component == NULL)
      c[i] = 128;
    else if (component->kind == COMPONENT_CHROMA)
      c[i] = interpolate_ideal (in, component, false, (px - on_x) / 2, (py - on_y) / 2);
    else
      c[i] = interpolate_ideal (in, component, cubic, px, py);
  }
}

static double
get_ideal (const csfk_frame *frame, bool cubic, const channel *component, int x, int y)
{
  static const double between[] = { 0, 0.5, 0.5 }, on[] = { 0.25, 0.5, 0.25 };
  const csfk_image *in = &frame->in, *out = &frame->out;
  const double *across = out->chroma_site == CSFK_CHROMA_SITE_CENTER ? between : on;
  const double *down = out->chroma_site == CSFK_CHROMA_SITE_TOP_LEFT ? on : between;
  const int index = get_index (out, component), halves = 1 << component->shift_x;
  double c[3], sums[3] = { 0, 0, 0 }, results[3];

  if (same_colours (in, out))
    return interpolate_ideal (in, get_component (in, index), cubic,
        get_ideal_position (x, (in->width + halves - 1) / halves,
            (out->width + halves - 1) / halves), get_ideal_position (y,
            (in->height + halves - 1) / halves, (out->height + halves - 1) / halves));
  get_ideal_components (frame, cubic, x, y, sums);
  if (component->kind == COMPONENT_CHROMA) {
    sums[0] = sums[1] = sums[2] = 0;
    for (int dy = -1; dy <= 1; dy++)
      for (int dx = -1; dx <= 1; dx++) {
        get_ideal_components (frame, cubic, 2 * x + dx, 2 * y + dy, c);
        for (int i = 0; i < 3; i++)
          sums[i] += across[dx + 1] * down[dy + 1] * c[i];
      }
  }
  convert (in, out, sums, results);
  return fmin (fmax (results[index], 0), 255);
}

static double
check_ideal (const csfk_kernel *kernel, const csfk_image *in_like, const csfk_image *out_like,
    int method, double bound)
{
  const channel *components;
  int n = model_get_components (out_like->format, &components);
  csfk_convertscale_params params = { .method = method };
  csfk_frame frame = { .n_regions = 0 };
  double worst = 0;
  canvas in, out;

  picture_init_like (&in, in_like, 1);
  picture_init_like (&out, out_like, 1);
  frame.in = in.image;
  frame.out = out.image;
  kernel->process (&frame, &params);
  for (int i = 0; i < n; i++)
    for (int chosen = 0; chosen < 60 && get_index (out_like, &components[i]) >= 0; chosen++) {
      int x = check_random_in (0, model_get_columns (&out.image, &components[i]) - 1);
      int y = check_random_in (0, model_get_rows (&out.image, &components[i]) - 1);
      double got = model_get_raw (&out.image, &components[i], x, y);
      double ideal = get_ideal (&frame, method == CSFK_CONVERTSCALE_BICUBIC, &components[i], x, y);

      worst = fmax (worst, fabs (got - ideal));
      if (fabs (got - ideal) > bound)
        check_fail ("convertscale %s %dx%d to %s %dx%d, method %d: %g where the ideal is %g",
            csfk_format_get_info (in_like->format)->name, in_like->width, in_like->height,
            csfk_format_get_info (out_like->format)->name, out_like->width, out_like->height,
            method, got, ideal);
    }
  picture_finish (&in);
  picture_finish (&out);
  return worst;
}

void
check_convertscale (void)
{
  const csfk_kernel *kernel = csfk_kernel_find ("convertscale");
  double worst[2] = { 0, 0 };

  for (int round = 0; round < 20; round++)
    for (int f = 0; f < CHECK_COUNT (formats); f++)
      for (int choice = 0; choice < CHECK_COUNT (formats); choice++) {
        csfk_image in, out;
        bool same;

        csfk_image_init (&in, formats[f], check_random_in (1, 70), check_random_in (1, 50));
        if (!is_rgb (&in) && !is_grey (&in)) {
          in.range = check_random_in (CSFK_RANGE_FULL, CSFK_RANGE_LIMITED);
          in.matrix = check_random_in (CSFK_MATRIX_BT601, CSFK_MATRIX_BT2020);
          in.chroma_site = check_random_in (CSFK_CHROMA_SITE_CENTER, CSFK_CHROMA_SITE_TOP_LEFT);
        }
        choose_output (&in, choice, &out);
        same = same_colours (&in, &out);
        worst[!same] = fmax (worst[!same], check_ideal (kernel, &in, &out, round % 2,
                same ? IDEAL_SCALED : IDEAL_CONVERTED));
      }
  if (getenv ("CHECK_CONVERTSCALE_PRINT"))
    printf ("convertscale: at most %.3f off when scaled, %.3f when converted\n", worst[0],
        worst[1]);
}
