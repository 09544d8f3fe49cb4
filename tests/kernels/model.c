/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the models have in common: where a format's samples lie, their table, and what is chosen for a
 * kernel to work on.  Knows the kernels' contract; of a kernel nothing but its model. */
#include "check.h"

#include <stdio.h>
#include <string.h>

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

int
model_get_sample (const csfk_image *image, const channel *component, int x, int y)
{
  int columns = component->shift_x ? (image->width + 1) / 2 : image->width;
  int rows = component->shift_y ? (image->height + 1) / 2 : image->height;
  int raw = model_get_raw (image, component, limit (x, 0, columns - 1), limit (y, 0, rows - 1));

  return image->format == CSFK_FORMAT_P010_10LE ? raw / 64 : raw;
}

int
model_to_raw (const csfk_image *image, int value)
{
  return image->format == CSFK_FORMAT_P010_10LE ? value * 64 : value;
}

/* ---- the table ------------------------------------------------------------------------------- */

/* The build names them: X (copy) X (sobel) and so on. */
#define X(name) extern const kernel_model model_##name;
CHECK_MODELS
#undef X

#define X(name) &model_##name,
const kernel_model *const kernel_models[] = { CHECK_MODELS NULL };
#undef X

const kernel_model *
model_find (const char *kernel)
{
  for (int i = 0; kernel_models[i]; i++)
    if (strcmp (kernel_models[i]->kernel, kernel) == 0)
      return kernel_models[i];
  return NULL;
}

/* ---- choices --------------------------------------------------------------------------------- */

static bool
has_format (const int *formats, int format)
{
  for (int i = 0; i < CSFK_MAX_FORMATS && formats[i] != CSFK_FORMAT_NONE; i++)
    if (formats[i] == format)
      return true;
  return false;
}

csfk_image
model_choose_output (const csfk_kernel *kernel, const kernel_model *model, const csfk_image *in,
    int choice)
{
  csfk_image chosen = image_strip (in);

  if (!model->choose_output)
    return chosen;
  if (!model->choose_output (in, choice, &chosen))
    check_fail ("%s: the model has no output %d", kernel->name, choice);
  if (chosen.format != in->format && !has_format (kernel->out_formats, chosen.format))
    check_fail ("%s: the model chose a format that the kernel does not make", kernel->name);
  if (!(kernel->flags & CSFK_RESIZES) && (chosen.width != in->width || chosen.height != in->height))
    check_fail ("%s: the model chose another size, and the kernel does not resize", kernel->name);
  /* Whatever the model left in the planes. */
  return image_strip (&chosen);
}

int
model_count_outputs (const kernel_model *model, const csfk_image *in)
{
  int n = 0;

  if (!model->choose_output)
    return 1;
  for (;;) {
    csfk_image out = image_strip (in);

    if (!model->choose_output (in, n, &out))
      break;
    if (++n > CHECK_MAX_OUTPUTS)
      check_fail ("%s: the model chooses among more than %d outputs", model->kernel,
          CHECK_MAX_OUTPUTS);
  }
  if (n == 0)
    check_fail ("%s: the model chooses no output for %dx%d", model->kernel, in->width, in->height);
  return n;
}

/* Inside the picture, across its edges, beside it, and empty ones. */
static csfk_region
make_region (const csfk_image *in)
{
  static const char *const labels[] = { "", "face", "person", "a label of thirty-one characters" };
  csfk_region region = {
    .x = check_random_in (-in->width / 4, in->width + in->width / 4),
    .y = check_random_in (-in->height / 4, in->height + in->height / 4),
    .width = check_random_in (0, in->width),
    .height = check_random_in (0, in->height),
    .confidence = (float) check_random_in (-1, 10) / 10,
    .id = check_random_in (-1, 20),
    .parent_id = check_random_in (-1, 20),
    .track_id = check_random_in (-1, 20)
  };

  snprintf (region.label, sizeof region.label, "%s",
      labels[check_random_in (0, CHECK_COUNT (labels) - 1)]);
  return region;
}

int
model_choose_regions (const csfk_kernel *kernel, const kernel_model *model, const csfk_image *in,
    csfk_region *regions)
{
  int n;

  if (!(kernel->flags & CSFK_READS_REGIONS) || check_random_in (0, 7) == 0)
    return 0;
  if (!model->choose_regions) {
    for (int i = 0; i < CHECK_MAX_REGIONS; i++)
      regions[i] = make_region (in);
    return check_random_in (0, CHECK_MAX_REGIONS);
  }
  for (int i = 0; i < CHECK_MAX_REGIONS; i++)
    regions[i] = (csfk_region) {.confidence = -1,.id = -1,.parent_id = -1,.track_id = -1 };
  n = model->choose_regions (in, regions);
  if (n < 0 || n > CHECK_MAX_REGIONS)
    check_fail ("%s: the model chose %d regions", kernel->name, n);
  return n;
}
