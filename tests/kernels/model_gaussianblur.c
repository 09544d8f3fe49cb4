/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The model of gaussianblur: two sums of weighted samples, rounded where the kernel's definition rounds
 * them; and what only this kernel promises: that these weights are a Gaussian's.  Knows check.h and the
 * kernel's parameter structure. */
#include "check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/gaussianblur/gaussianblur.h"

static int
sum_row (const csfk_image *image, const channel *component,
    const csfk_gaussianblur_filter *filter, int x, int y)
{
  const int places = image->format == CSFK_FORMAT_P010_10LE ? 6 : 8;
  long sum = 0, step = 1L << (CSFK_GAUSSIANBLUR_WEIGHT_BITS - places);

  for (int k = -filter->radius; k <= filter->radius; k++)
    sum += (long) filter->weight[abs (k)] * model_get_sample (image, component, x + k, y);
  return (int) ((sum + step / 2) / step);
}

/* Room for the row sums of every sample of a frame, -1 until one is asked for: without it most of them
 * would be worked out sixty times. */
static void
prepare (const csfk_frame *frame, const void *params, void **memory)
{
  const channel *components;
  int n = model_get_components (frame->in.format, &components);
  size_t n_sums = 0;

  for (int i = 0; i < n; i++)
    n_sums += (size_t) (model_get_columns (&frame->in, &components[i])
        * model_get_rows (&frame->in, &components[i]));
  free (*memory);
  *memory = malloc (n_sums * sizeof (int));
  if (!*memory)
    check_fail ("out of memory");
  memset (*memory, 0xff, n_sums * sizeof (int));
}

static int *
get_sums (const csfk_frame *frame, void *memory, const channel *component)
{
  const channel *components;
  int *sums = memory;

  model_get_components (frame->in.format, &components);
  for (; components != component; components++)
    sums += model_get_columns (&frame->in, components) * model_get_rows (&frame->in, components);
  return sums;
}

static int
sample (const csfk_frame *frame, const void *data, void *memory, const channel *component, int x,
    int y)
{
  const csfk_gaussianblur_params *params = data;
  const csfk_gaussianblur_filter *across = &params->filter[component->shift_x];
  const csfk_gaussianblur_filter *down = &params->filter[component->shift_y];
  const int places = frame->in.format == CSFK_FORMAT_P010_10LE ? 6 : 8;
  const int columns = model_get_columns (&frame->in, component);
  const int rows = model_get_rows (&frame->in, component);
  const long step = 1L << (CSFK_GAUSSIANBLUR_WEIGHT_BITS + places);
  int *sums = get_sums (frame, memory, component);
  long sum = 0;

  if (component->kind == COMPONENT_UNUSED)
    return model_get_raw (&frame->in, component, x, y);
  for (int k = -down->radius; k <= down->radius; k++) {
    int row = y + k < 0 ? 0 : y + k >= rows ? rows - 1 : y + k;
    int *here = &sums[row * columns + x];

    if (*here < 0)
      *here = sum_row (&frame->in, component, across, x, row);
    sum += (long) down->weight[abs (k)] * *here;
  }
  return model_to_raw (&frame->in, (int) ((sum + step / 2) / step));
}

const kernel_model model_gaussianblur = {
  .kernel = "gaussianblur",
  .prepare = prepare,
  .sample = sample,
};

/* ---- its own promises ------------------------------------------------------------------------ */

static void
check_filter (const csfk_gaussianblur_filter *filter, double sigma)
{
  double total = 1.0;
  int sum = filter->weight[0];

  CHECK_EXPECT (filter->radius == (int) ceil (3 * sigma));
  CHECK_EXPECT (filter->radius <= CSFK_GAUSSIANBLUR_MAX_RADIUS);
  for (int k = 1; k <= filter->radius; k++) {
    sum += 2 * filter->weight[k];
    total += 2 * exp (-k * k / (2 * sigma * sigma));
  }
  CHECK_EXPECT (sum == 1 << CSFK_GAUSSIANBLUR_WEIGHT_BITS);
  for (int k = 0; k <= filter->radius; k++) {
    double exact = sum * exp (-k * k / (2 * sigma * sigma)) / total;

    CHECK_EXPECT (fabs (filter->weight[k] - exact) <= 1.0001);
  }
  for (int k = filter->radius + 1; k < CSFK_GAUSSIANBLUR_MAX_RADIUS + 2; k++)
    CHECK_EXPECT (filter->weight[k] == 0);
}

static void
check_weights (const csfk_kernel *kernel)
{
  csfk_gaussianblur_params params;

  csfk_params_init (kernel, &params);
  CHECK_EXPECT (params.sigma == 2.0f);
  for (double sigma = 0.1; sigma <= 10.0; sigma += 0.05) {
    CHECK_EXPECT (csfk_params_set (kernel, &params, "sigma", sigma, NULL) == CSFK_PARAM_OK);
    kernel->resolve (&params);
    check_filter (&params.filter[0], params.sigma);
    check_filter (&params.filter[1], params.sigma / 2.0);
  }
}

static double
get_ideal (const csfk_image *image, double sigma, const channel *component, int x, int y)
{
  double sigma_x = component->shift_x ? sigma / 2 : sigma;
  double sigma_y = component->shift_y ? sigma / 2 : sigma;
  int radius_x = (int) ceil (3 * sigma_x), radius_y = (int) ceil (3 * sigma_y);
  double sum = 0, total = 0;

  for (int dy = -radius_y; dy <= radius_y; dy++)
    for (int dx = -radius_x; dx <= radius_x; dx++) {
      double weight = exp (-dx * dx / (2 * sigma_x * sigma_x) - dy * dy / (2 * sigma_y * sigma_y));

      sum += weight * model_get_sample (image, component, x + dx, y + dy);
      total += weight;
    }
  return sum / total;
}

/* The fixed-point blur is the Gaussian, to one step of the samples. */
static void
check_ideal (const csfk_kernel *kernel, int format, double sigma)
{
  const channel *components;
  int n = model_get_components (format, &components);
  csfk_gaussianblur_params params;
  canvas in, out;
  csfk_frame frame = { .n_regions = 0 };

  csfk_params_init (kernel, &params);
  csfk_params_set (kernel, &params, "sigma", sigma, NULL);
  kernel->resolve (&params);
  picture_init (&in, format, 45, 37, 1);
  picture_init_like (&out, &in.image, 1);
  frame.in = in.image;
  frame.out = out.image;
  kernel->process (&frame, &params);
  for (int i = 0; i < n; i++)
    for (int chosen = 0; chosen < 20 && components[i].kind != COMPONENT_UNUSED; chosen++) {
      int x = check_random_in (0, model_get_columns (&out.image, &components[i]) - 1);
      int y = check_random_in (0, model_get_rows (&out.image, &components[i]) - 1);
      double ideal = get_ideal (&in.image, sigma, &components[i], x, y);
      double got = model_get_raw (&out.image, &components[i], x, y);

      if (format == CSFK_FORMAT_P010_10LE)
        got /= 64;
      if (fabs (got - ideal) > 1.0)
        check_fail ("gaussianblur %s sigma=%g: %g where the Gaussian is %g",
            csfk_format_get_info (format)->name, sigma, got, ideal);
    }
  picture_finish (&in);
  picture_finish (&out);
}

void
check_gaussian (void)
{
  static const double sigmas[] = { 0.1, 0.5, 1.0, 2.0, 4.3, 10.0 };
  const csfk_kernel *kernel = csfk_kernel_find ("gaussianblur");

  check_weights (kernel);
  for (int f = 0; f < CSFK_MAX_FORMATS && kernel->formats[f] != CSFK_FORMAT_NONE; f++)
    for (int s = 0; s < CHECK_COUNT (sigmas); s++)
      check_ideal (kernel, kernel->formats[f], sigmas[s]);
}
