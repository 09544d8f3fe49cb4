/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The pixel formats' facts, the layout of a picture in memory, and typed access to a kernel's
 * parameter structure.  Knows kernel.h and libc only. */
#include "format.h"

#include <assert.h>
#include <string.h>

/* Bytes of a unit: the smallest group of pixels a plane stores whole. */
typedef struct plane_shape
{
  int unit_bytes;
  int pixels_across, pixels_down;       /* of the picture that one unit spans */
} plane_shape;

typedef struct format_entry
{
  csfk_format_info info;
  plane_shape plane[CSFK_MAX_PLANES];
} format_entry;

static const format_entry formats[CSFK_N_FORMATS] = {
  [CSFK_FORMAT_GRAY8] = {{"GRAY8", 1, 8, 1, 0}, {{1, 1, 1}}},
  [CSFK_FORMAT_NV12] = {{"NV12", 2, 8, 1, 0}, {{1, 1, 1}, {2, 2, 2}}},
  [CSFK_FORMAT_I420] = {{"I420", 3, 8, 1, 0}, {{1, 1, 1}, {1, 2, 2}, {1, 2, 2}}},
  [CSFK_FORMAT_YUY2] = {{"YUY2", 1, 8, 2, 0}, {{4, 2, 1}}},
  [CSFK_FORMAT_UYVY] = {{"UYVY", 1, 8, 2, 0}, {{4, 2, 1}}},
  [CSFK_FORMAT_P010_10LE] = {{"P010_10LE", 2, 10, 2, 0}, {{2, 1, 1}, {4, 2, 2}}},
  [CSFK_FORMAT_RGB] = {{"RGB", 1, 8, 3, 1}, {{3, 1, 1}}},
  [CSFK_FORMAT_BGR] = {{"BGR", 1, 8, 3, 1}, {{3, 1, 1}}},
  [CSFK_FORMAT_RGBx] = {{"RGBx", 1, 8, 4, 1}, {{4, 1, 1}}},
  [CSFK_FORMAT_BGRx] = {{"BGRx", 1, 8, 4, 1}, {{4, 1, 1}}},
  [CSFK_FORMAT_RGBA] = {{"RGBA", 1, 8, 4, 1}, {{4, 1, 1}}},
  [CSFK_FORMAT_BGRA] = {{"BGRA", 1, 8, 4, 1}, {{4, 1, 1}}},
};

/* ---- where samples lie --------------------------------------------------------------------------- */

static const csfk_channel_list gray_channels = { 1, {{0, 0, 1, 0, 0}} };
static const csfk_channel_list nv12_channels =
    { 3, {{0, 0, 1, 0, 0}, {1, 0, 2, 1, 1}, {1, 1, 2, 1, 1}} };
static const csfk_channel_list i420_channels =
    { 3, {{0, 0, 1, 0, 0}, {1, 0, 1, 1, 1}, {2, 0, 1, 1, 1}} };
static const csfk_channel_list yuy2_channels =
    { 3, {{0, 0, 2, 0, 0}, {0, 1, 4, 1, 0}, {0, 3, 4, 1, 0}} };
static const csfk_channel_list uyvy_channels =
    { 3, {{0, 1, 2, 0, 0}, {0, 0, 4, 1, 0}, {0, 2, 4, 1, 0}} };
static const csfk_channel_list p010_channels =
    { 3, {{0, 0, 2, 0, 0}, {1, 0, 4, 1, 1}, {1, 2, 4, 1, 1}} };
static const csfk_channel_list rgb_channels =
    { 3, {{0, 0, 3, 0, 0}, {0, 1, 3, 0, 0}, {0, 2, 3, 0, 0}} };
static const csfk_channel_list rgbx_channels =
    { 3, {{0, 0, 4, 0, 0}, {0, 1, 4, 0, 0}, {0, 2, 4, 0, 0}} };
static const csfk_channel_list rgba_channels =
    { 4, {{0, 0, 4, 0, 0}, {0, 1, 4, 0, 0}, {0, 2, 4, 0, 0}, {0, 3, 4, 0, 0}} };

static const csfk_channel_list *const channels_of[CSFK_N_FORMATS] = {
  [CSFK_FORMAT_GRAY8] = &gray_channels,
  [CSFK_FORMAT_NV12] = &nv12_channels,
  [CSFK_FORMAT_I420] = &i420_channels,
  [CSFK_FORMAT_YUY2] = &yuy2_channels,
  [CSFK_FORMAT_UYVY] = &uyvy_channels,
  [CSFK_FORMAT_P010_10LE] = &p010_channels,
  [CSFK_FORMAT_RGB] = &rgb_channels,
  [CSFK_FORMAT_BGR] = &rgb_channels,
  [CSFK_FORMAT_RGBx] = &rgbx_channels,
  [CSFK_FORMAT_BGRx] = &rgbx_channels,
  [CSFK_FORMAT_RGBA] = &rgba_channels,
  [CSFK_FORMAT_BGRA] = &rgba_channels,
};

/* ---- facts --------------------------------------------------------------------------------------- */

static int
divide_up (int value, int by)
{
  return value / by + (value % by != 0);
}

static size_t
round_up (size_t value, size_t to)
{
  return (value + to - 1) & ~(to - 1);
}

const csfk_format_info *
csfk_format_get_info (int format)
{
  if (format <= CSFK_FORMAT_NONE || format >= CSFK_N_FORMATS)
    return NULL;
  return &formats[format].info;
}

const csfk_channel_list *
csfk_format_get_channels (int format)
{
  return format <= CSFK_FORMAT_NONE || format >= CSFK_N_FORMATS ? NULL : channels_of[format];
}

void
csfk_plane_copy (const csfk_plane *out, const csfk_plane *in)
{
  const size_t bytes = (size_t) in->row_bytes;

  if (in->stride == in->row_bytes && out->stride == in->row_bytes) {
    memcpy (out->data, in->data, bytes * (size_t) in->rows);
    return;
  }
  for (int y = 0; y < in->rows; y++)
    memcpy (out->data + (ptrdiff_t) y * out->stride, in->data + (ptrdiff_t) y * in->stride, bytes);
}

csfk_format
csfk_format_from_name (const char *name)
{
  for (int format = CSFK_FORMAT_NONE + 1; format < CSFK_N_FORMATS; format++)
    if (strcmp (formats[format].info.name, name) == 0)
      return (csfk_format) format;
  return CSFK_FORMAT_NONE;
}

void
csfk_image_init (csfk_image *image, int format, int width, int height)
{
  const csfk_format_info *info = csfk_format_get_info (format);

  assert (info && width >= 1 && height >= 1);
  memset (image, 0, sizeof *image);
  image->n_planes = info->n_planes;
  image->format = format;
  image->width = width;
  image->height = height;
  if (info->is_rgb || format == CSFK_FORMAT_GRAY8) {
    image->range = CSFK_RANGE_FULL;
    image->matrix = CSFK_MATRIX_RGB;
  } else {
    image->range = CSFK_RANGE_LIMITED;
    image->matrix = CSFK_MATRIX_BT601;
    image->chroma_site = CSFK_CHROMA_SITE_LEFT;
  }

  for (int i = 0; i < info->n_planes; i++) {
    const plane_shape *shape = &formats[format].plane[i];

    image->plane[i].row_bytes = divide_up (width, shape->pixels_across) * shape->unit_bytes;
    image->plane[i].rows = divide_up (height, shape->pixels_down);
  }
}

size_t
csfk_image_place (csfk_image *image, unsigned char *base, int align)
{
  size_t offset = 0;

  assert (align > 0 && (align & (align - 1)) == 0);
  for (int i = 0; i < image->n_planes; i++) {
    csfk_plane *plane = &image->plane[i];
    size_t stride = round_up ((size_t) plane->row_bytes, (size_t) align);

    plane->stride = (int) stride;
    plane->data = base ? base + offset : NULL;
    offset += stride * (size_t) plane->rows;
  }
  return offset;
}

static const csfk_param *
find_param (const csfk_kernel *kernel, const char *name)
{
  for (unsigned i = 0; i < kernel->n_params; i++)
    if (strcmp (kernel->params[i].name, name) == 0)
      return &kernel->params[i];
  return NULL;
}

static void
store_param (const csfk_param *param, void *params, double value)
{
  unsigned char *field = (unsigned char *) params + param->offset;

  if (param->type == CSFK_TYPE_FLOAT) {
    float number = (float) value;

    memcpy (field, &number, sizeof number);
  } else if (param->type == CSFK_TYPE_UINT) {
    unsigned number = (unsigned) value;

    memcpy (field, &number, sizeof number);
  } else {
    int number = (int) value;

    memcpy (field, &number, sizeof number);
  }
}

void
csfk_params_init (const csfk_kernel *kernel, void *params)
{
  if (kernel->params_size > 0)
    memset (params, 0, kernel->params_size);
  for (unsigned i = 0; i < kernel->n_params; i++)
    if (kernel->params[i].type != CSFK_TYPE_STRING)
      store_param (&kernel->params[i], params, kernel->params[i].default_value);
  if (kernel->resolve)
    kernel->resolve (params);
}

static int
count_values (const csfk_param *param)
{
  int n = 0;

  while (param->values[n])
    n++;
  return n;
}

csfk_param_result
csfk_params_set (const csfk_kernel *kernel, void *params, const char *name, double value,
    const csfk_param **param)
{
  const csfk_param *found = find_param (kernel, name);
  double minimum, maximum;

  if (param)
    *param = found;
  if (!found)
    return CSFK_PARAM_UNKNOWN;
  if (found->type == CSFK_TYPE_STRING)
    return CSFK_PARAM_NOT_A_NUMBER;
  minimum = found->type == CSFK_TYPE_ENUM ? 0 : found->minimum;
  maximum = found->type == CSFK_TYPE_ENUM ? count_values (found) - 1 : found->maximum;
  /* Written so that NaN, which compares false with everything, is refused. */
  if (!(value >= minimum && value <= maximum))
    return CSFK_PARAM_OUT_OF_RANGE;
  if (found->type != CSFK_TYPE_FLOAT && value != (double) (long long) value)
    return CSFK_PARAM_NOT_WHOLE;
  store_param (found, params, value);
  return CSFK_PARAM_OK;
}

csfk_param_result
csfk_params_set_text (const csfk_kernel *kernel, void *params, const char *name, const char *text,
    const csfk_param **param)
{
  const csfk_param *found = find_param (kernel, name);

  if (param)
    *param = found;
  if (!found)
    return CSFK_PARAM_UNKNOWN;
  if (found->type == CSFK_TYPE_STRING) {
    if (strlen (text) >= (size_t) found->maximum)
      return CSFK_PARAM_OUT_OF_RANGE;
    strcpy ((char *) params + found->offset, text);
    return CSFK_PARAM_OK;
  }
  if (found->type != CSFK_TYPE_ENUM)
    return CSFK_PARAM_NOT_A_TEXT;
  for (int i = 0; found->values[i]; i++)
    if (strcmp (found->values[i], text) == 0) {
      store_param (found, params, i);
      return CSFK_PARAM_OK;
    }
  return CSFK_PARAM_OUT_OF_RANGE;
}
