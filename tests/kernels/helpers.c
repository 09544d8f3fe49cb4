/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The promises of format.h: facts of the formats, layout, the table, and parameters.  Knows the
 * table's contract, and gaussianblur's parameter structure as an example of one. */
#include "check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/gaussianblur/gaussianblur.h"

#define EXPECT(condition) \
  do { \
    if (!(condition)) \
      check_fail ("%s:%d: %s", __FILE__, __LINE__, #condition); \
  } while (0)

static void
check_formats (void)
{
  EXPECT (!csfk_format_get_info (CSFK_FORMAT_NONE));
  EXPECT (!csfk_format_get_info (CSFK_N_FORMATS));
  EXPECT (!csfk_format_get_info (-1));
  EXPECT (csfk_format_from_name ("NV21") == CSFK_FORMAT_NONE);
  EXPECT (csfk_format_from_name ("") == CSFK_FORMAT_NONE);
  for (int format = 1; format < CSFK_N_FORMATS; format++) {
    const csfk_format_info *info = csfk_format_get_info (format);

    EXPECT (info && info->name);
    EXPECT ((int) csfk_format_from_name (info->name) == format);
    EXPECT (info->n_planes >= 1 && info->n_planes <= CSFK_MAX_PLANES);
  }
}

typedef struct expected_plane
{
  int format, width, height, plane, row_bytes, rows;
} expected_plane;

/* Odd sizes, as GStreamer's video-format.c rounds them. */
static const expected_plane expected_planes[] = {
  {CSFK_FORMAT_GRAY8, 3, 5, 0, 3, 5},
  {CSFK_FORMAT_NV12, 3, 5, 0, 3, 5},
  {CSFK_FORMAT_NV12, 3, 5, 1, 4, 3},
  {CSFK_FORMAT_NV12, 1, 1, 1, 2, 1},
  {CSFK_FORMAT_I420, 3, 5, 1, 2, 3},
  {CSFK_FORMAT_I420, 4, 4, 2, 2, 2},
  {CSFK_FORMAT_YUY2, 3, 5, 0, 8, 5},
  {CSFK_FORMAT_UYVY, 1, 1, 0, 4, 1},
  {CSFK_FORMAT_P010_10LE, 3, 5, 0, 6, 5},
  {CSFK_FORMAT_P010_10LE, 3, 5, 1, 8, 3},
  {CSFK_FORMAT_RGB, 3, 5, 0, 9, 5},
  {CSFK_FORMAT_BGRA, 3, 5, 0, 12, 5},
};

static void
check_layout (void)
{
  unsigned char base[4096];
  csfk_image image;

  for (unsigned i = 0; i < sizeof expected_planes / sizeof expected_planes[0]; i++) {
    const expected_plane *expected = &expected_planes[i];

    csfk_image_init (&image, expected->format, expected->width, expected->height);
    EXPECT (image.plane[expected->plane].row_bytes == expected->row_bytes);
    EXPECT (image.plane[expected->plane].rows == expected->rows);
    EXPECT (!image.plane[expected->plane].data && image.plane[expected->plane].stride == 0);
  }

  csfk_image_init (&image, CSFK_FORMAT_RGB, 4, 4);
  EXPECT (image.range == CSFK_RANGE_FULL && image.matrix == CSFK_MATRIX_RGB);
  csfk_image_init (&image, CSFK_FORMAT_I420, 5, 3);
  EXPECT (image.range == CSFK_RANGE_LIMITED && image.matrix == CSFK_MATRIX_BT601);
  EXPECT (csfk_image_place (&image, NULL, 16) == 16 * 3 + 16 * 2 + 16 * 2);
  EXPECT (!image.plane[0].data && image.plane[0].stride == 16);
  EXPECT (csfk_image_place (&image, base, 1) == 5 * 3 + 3 * 2 + 3 * 2);
  EXPECT (image.plane[0].data == base && image.plane[1].data == base + 15);
  EXPECT (image.plane[2].data == base + 21 && image.plane[2].stride == 3);
}

static const csfk_param example_params[] = {
  {"count", CSFK_TYPE_INT, 0, -4, 9, 3, "", "an int"},
  {"ratio", CSFK_TYPE_FLOAT, 4, 0.5, 2, 1.5, "", "a float"},
  {"flag", CSFK_TYPE_BOOL, 8, 0, 1, 1, "", "a bool"},
};

typedef struct example_values
{
  int count;
  float ratio;
  int flag;
} example_values;

static void
check_params (void)
{
  const csfk_kernel example = {
    .params = example_params, .n_params = 3, .params_size = sizeof (example_values)
  };
  const csfk_param *param;
  example_values values;

  csfk_params_init (&example, &values);
  EXPECT (values.count == 3 && values.ratio == 1.5f && values.flag == 1);
  EXPECT (csfk_params_set (&example, &values, "count", -4, &param) == 0 && values.count == -4);
  EXPECT (param == &example_params[0]);
  EXPECT (csfk_params_set (&example, &values, "ratio", 0.75, NULL) == 0 && values.ratio == 0.75f);
  EXPECT (csfk_params_set (&example, &values, "flag", 0, &param) == 0 && values.flag == 0);
  EXPECT (csfk_params_set (&example, &values, "none", 0, &param) == 1 && !param);
  EXPECT (csfk_params_set (&example, &values, "count", 10, &param) == 2);
  EXPECT (param == &example_params[0]);
  EXPECT (csfk_params_set (&example, &values, "ratio", 0.25, &param) == 2);
  EXPECT (csfk_params_set (&example, &values, "ratio", NAN, &param) == 2);
  EXPECT (csfk_params_set (&example, &values, "flag", 2, &param) == 2);
  EXPECT (csfk_params_set (&example, &values, "count", 2.5, &param) == 3);
  EXPECT (values.count == -4 && values.ratio == 0.75f && values.flag == 0);
}

static void
check_table (void)
{
  EXPECT (csfk_kernels[0] && strcmp (csfk_kernels[0]->name, "copy") == 0);
  EXPECT (!csfk_kernel_find ("none"));
  for (unsigned i = 0; csfk_kernels[i]; i++) {
    const csfk_kernel *kernel = csfk_kernels[i];
    unsigned char params[CSFK_MAX_PARAMS];

    EXPECT (csfk_kernel_find (kernel->name) == kernel);
    EXPECT (kernel->abi == CSFK_ABI && kernel->description && kernel->process && kernel->enqueue);
    EXPECT (kernel->device_code && kernel->params_size <= CSFK_MAX_PARAMS);
    EXPECT (kernel->formats[0] != CSFK_FORMAT_NONE);
    EXPECT (model_find (kernel->name));
    for (unsigned p = 0; p < kernel->n_params; p++) {
      const csfk_param *param = &kernel->params[p];

      EXPECT (param->minimum <= param->default_value && param->default_value <= param->maximum);
      EXPECT (param->offset + 4 <= kernel->params_size && param->unit && param->description);
      csfk_params_init (kernel, params);
      EXPECT (csfk_params_set (kernel, params, param->name, param->minimum, NULL) == 0);
      EXPECT (csfk_params_set (kernel, params, param->name, param->maximum, NULL) == 0);
    }
  }
}

static void
check_filter (const csfk_gaussianblur_filter *filter, double sigma)
{
  double total = 1.0;
  int sum = filter->weight[0];

  EXPECT (filter->radius == (int) ceil (3 * sigma));
  EXPECT (filter->radius <= CSFK_GAUSSIANBLUR_MAX_RADIUS);
  for (int k = 1; k <= filter->radius; k++) {
    sum += 2 * filter->weight[k];
    total += 2 * exp (-k * k / (2 * sigma * sigma));
  }
  EXPECT (sum == 1 << CSFK_GAUSSIANBLUR_WEIGHT_BITS);
  for (int k = 0; k <= filter->radius; k++)
    EXPECT (fabs (filter->weight[k] - sum * exp (-k * k / (2 * sigma * sigma)) / total) <= 1.0001);
  for (int k = filter->radius + 1; k < CSFK_GAUSSIANBLUR_MAX_RADIUS + 2; k++)
    EXPECT (filter->weight[k] == 0);
}

static void
check_weights (void)
{
  const csfk_kernel *kernel = csfk_kernel_find ("gaussianblur");
  csfk_gaussianblur_params params;

  csfk_params_init (kernel, &params);
  EXPECT (params.sigma == 2.0f);
  for (double sigma = 0.1; sigma <= 10.0; sigma += 0.05) {
    EXPECT (csfk_params_set (kernel, &params, "sigma", sigma, NULL) == 0);
    kernel->resolve (&params);
    check_filter (&params.filter[0], params.sigma);
    check_filter (&params.filter[1], params.sigma / 2.0);
  }
}

void
check_helpers (void)
{
  check_formats ();
  check_layout ();
  check_params ();
  check_table ();
  check_weights ();
}
