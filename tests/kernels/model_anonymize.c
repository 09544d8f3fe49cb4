/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The model of anonymize: for each sample the last region that covers it is found, and its
 * cell's mean taken sample by sample.  Shares nothing with the kernel but the parameter
 * structure and the documented bounds; knows check.h and libc only. */
#include "check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/anonymize/anonymize.h"

/* A region whose cells begin at (left, top): `across` by `down` squares of `cell` pixels.  With
 * cell 0 it is filled, across and down are then pixels. */
typedef struct mosaic
{
  bool shows;
  double left, top;
  long cell, across, down;
} mosaic;

/* Means once worked out, -1 before: of a region, a cell and a component. */
typedef struct model_memory
{
  mosaic *mosaics;
  int *means;
} model_memory;

enum
{
  MAX_SIDE = CSFK_ANONYMIZE_MAX_BLOCKS,
  MEANS = MAX_SIDE * MAX_SIDE * 4
};

static double
limit (double value, double low, double high)
{
  return value < low ? low : value > high ? high : value;
}

static double
even_below (double value)
{
  return 2 * floor (value / 2);
}

/* Doubles hold all of these whole numbers exactly. */
static mosaic
find_mosaic (const csfk_image *in, const csfk_region *region, const csfk_anonymize_params *params,
    bool fill, int blocks)
{
  const double far = CSFK_ANONYMIZE_LIMIT, share = params->padding_65536 / 65536.0;
  const double pad_x = ceil (region->width * share), pad_y = ceil (region->height * share);
  double left = limit (region->x - pad_x, -far, far), top = limit (region->y - pad_y, -far, far);
  double right = limit ((double) region->x + region->width + pad_x, -far, far);
  double bottom = limit ((double) region->y + region->height + pad_y, -far, far);
  mosaic found = { .shows = region->width > 0 && region->height > 0 && left < in->width
        && top < in->height && right > 0 && bottom > 0 };
  double width, height;

  if (params->label[0] && strcmp (params->label, region->label) != 0)
    found.shows = false;
  left = even_below (left);
  top = even_below (top);
  width = -even_below (-right) - left;
  height = -even_below (-bottom) - top;
  found.across = (long) width;
  found.down = (long) height;
  if (!fill) {
    double cell = -even_below (-ceil ((width > height ? width : height) / blocks));

    found.cell = cell < CSFK_ANONYMIZE_MIN_CELL ? CSFK_ANONYMIZE_MIN_CELL : (long) cell;
    found.across = (long) ceil (width / (double) found.cell);
    found.down = (long) ceil (height / (double) found.cell);
    left -= even_below ((double) (found.across * found.cell) / 2 - width / 2);
    top -= even_below ((double) (found.down * found.cell) / 2 - height / 2);
  }
  found.left = left;
  found.top = top;
  return found;
}

static void
prepare (const csfk_frame *frame, const void *data, void **memory)
{
  const csfk_anonymize_params *params = data;
  const size_t n = (size_t) frame->n_regions + 1;
  const size_t mosaics_size = n * sizeof (mosaic), means_size = n * MEANS * sizeof (int);
  char *block = realloc (*memory, sizeof (model_memory) + mosaics_size + means_size);
  model_memory *self = (model_memory *) block;
  int blocks = params->blocks;

  if (!block)
    check_fail ("out of memory");
  *memory = block;
  self->mosaics = (mosaic *) (block + sizeof *self);
  self->means = (int *) (block + sizeof *self + mosaics_size);
  memset (self->means, 0xff, means_size);
  while (blocks > 1 && frame->n_regions > CSFK_ANONYMIZE_MAX_CELLS / (blocks * blocks))
    blocks--;
  for (int i = 0; i < frame->n_regions; i++)
    self->mosaics[i] = find_mosaic (&frame->in, &frame->regions[i], params,
        params->mode == CSFK_ANONYMIZE_FILL || frame->n_regions > CSFK_ANONYMIZE_MAX_CELLS, blocks);
}

/* The square's first sample that way, and the sample after its last: it is moved into the
 * picture, made even, and cut where the picture is smaller. */
static void
find_span (double start, long cell, int length, int shift, int *first, int *end)
{
  const int even = length % 2 ? length + 1 : length, samples = shift ? even / 2 : length;

  start = limit (start, 0, even - cell > 0 ? (double) (even - cell) : 0);
  *first = (int) start / (shift + 1);
  *end = (int) limit ((start + (double) cell) / (shift + 1), 0, samples);
}

static int
get_mean (const csfk_image *in, const mosaic *of, const channel *component, long x, long y,
    int *known)
{
  int x0, x1, y0, y1;
  unsigned long sum = 0, n;

  if (*known >= 0)
    return *known;
  find_span (of->left + (double) (x * of->cell), of->cell, in->width, component->shift_x, &x0, &x1);
  find_span (of->top + (double) (y * of->cell), of->cell, in->height, component->shift_y, &y0, &y1);
  for (int row = y0; row < y1; row++)
    for (int column = x0; column < x1; column++)
      sum += (unsigned long) model_get_sample (in, component, column, row);
  n = (unsigned long) (x1 - x0) * (unsigned long) (y1 - y0);
  return *known = (int) ((2 * sum + n) / (2 * n));
}

/* Along one side: the cells whose centres a sample lies between, and the second's weight. */
static void
find_neighbours (double place, double cell, long first, long last, long *before, long *after,
    long *weight)
{
  double centres = (place + 0.5) / cell - 0.5;

  *before = (long) limit (floor (centres), (double) first, (double) last);
  *after = (long) limit (floor (centres) + 1, (double) first, (double) last);
  /* 256 times what is left, in whole steps: (place + 0.5 - cell / 2 - floor * cell) * 256 /
   * cell. */
  *weight = (long) floor ((256 * place + 128 - 128 * cell - 256 * floor (centres) * cell) / cell);
}

static int
get_covered (const csfk_frame *frame, const csfk_anonymize_params *params, const mosaic *of,
    int *means, const channel *component, int x, int y)
{
  const csfk_image *in = &frame->in;
  /* Another number for each component of a format. */
  const int number = component->plane + component->offset;
  const double cell_x = (double) of->cell / (component->shift_x + 1);
  const double cell_y = (double) of->cell / (component->shift_y + 1);
  const double place_x = x - of->left / (component->shift_x + 1);
  const double place_y = y - of->top / (component->shift_y + 1);
  const long first_x = of->left < 0 ? (long) (-of->left / (double) of->cell) : 0;
  const long first_y = of->top < 0 ? (long) (-of->top / (double) of->cell) : 0;
  const long last_x = (long) limit (floor ((in->width - 1 - of->left) / (double) of->cell), 0,
      (double) of->across - 1);
  const long last_y = (long) limit (floor ((in->height - 1 - of->top) / (double) of->cell), 0,
      (double) of->down - 1);
  long x0, x1, y0, y1, part_x, part_y, sum;

#define MEAN(x, y) \
  get_mean (in, of, component, x, y, &means[(((y) * MAX_SIDE) + (x)) * 4 + number])
  if (params->mode == CSFK_ANONYMIZE_PIXELATE)
    return MEAN ((long) floor (place_x / cell_x), (long) floor (place_y / cell_y));
  find_neighbours (place_x, cell_x, first_x, last_x, &x0, &x1, &part_x);
  find_neighbours (place_y, cell_y, first_y, last_y, &y0, &y1, &part_y);
  sum = MEAN (x0, y0) * (256 - part_x) * (256 - part_y) + MEAN (x1, y0) * part_x * (256 - part_y) +
      MEAN (x0, y1) * (256 - part_x) * part_y + MEAN (x1, y1) * part_x * part_y;
  return (int) ((sum + 32768) / 65536);
#undef MEAN
}

static int
sample (const csfk_frame *frame, const void *data, void *memory, const channel *component, int x,
    int y)
{
  const model_memory *self = memory;
  const int step = frame->in.format == CSFK_FORMAT_P010_10LE ? 4 : 1;
  const int pixel_x = component->shift_x ? 2 * x : x, pixel_y = component->shift_y ? 2 * y : y;

  if (component->kind == COMPONENT_ALPHA || component->kind == COMPONENT_UNUSED)
    return model_get_raw (&frame->in, component, x, y);
  for (int i = frame->n_regions - 1; i >= 0; i--) {
    const mosaic *of = &self->mosaics[i];
    const double side = of->cell ? (double) of->cell : 1;

    if (!of->shows || pixel_x < of->left || pixel_x >= of->left + (double) of->across * side
        || pixel_y < of->top || pixel_y >= of->top + (double) of->down * side)
      continue;
    if (of->cell)
      return model_to_raw (&frame->in, get_covered (frame, data, of, self->means + i * MEANS,
              component, x, y));
    if (component->kind == COMPONENT_CHROMA)
      return model_to_raw (&frame->in, 128 * step);
    return model_to_raw (&frame->in, frame->in.range == CSFK_RANGE_LIMITED ? 16 * step : 0);
  }
  return model_get_raw (&frame->in, component, x, y);
}

/* Faces inside the picture and over its edges, and what no one should send but someone will. */
static int
choose_regions (const csfk_image *in, csfk_region *regions)
{
  static const char *const labels[] = { "", "face", "plate", "faces" };
  static const int extremes[] = { -2147483647 - 1, -2147483647, -1, 0, 1, 2147483647 };
  const int n = check_random_in (0, CHECK_MAX_REGIONS);

  for (int i = 0; i < n; i++) {
    csfk_region *region = &regions[i];
    const int odd_one = check_random_in (0, 7) == 0;

    memset (region, 0, sizeof *region);
    region->x = check_random_in (-in->width / 2 - 8, in->width + 8);
    region->y = check_random_in (-in->height / 2 - 8, in->height + 8);
    region->width = check_random_in (-1,
        check_random_in (0, 3) ? in->width / 3 + 3 : 2 * in->width);
    region->height = check_random_in (-1,
        check_random_in (0, 3) ? in->height / 3 + 3 : 2 * in->height);
    if (odd_one && check_random_in (0, 1))
      region->x = extremes[check_random_in (0, 5)];
    if (odd_one && check_random_in (0, 1))
      region->y = extremes[check_random_in (0, 5)];
    if (odd_one)
      region->width = extremes[check_random_in (0, 5)];
    if (odd_one && check_random_in (0, 1))
      region->height = extremes[check_random_in (0, 5)];
    region->confidence = (float) check_random_in (-1, 100) / 100.0f;
    region->id = region->parent_id = region->track_id = -1;
    strcpy (region->label, labels[check_random_in (0, 3)]);
  }
  return n;
}

const kernel_model model_anonymize = {
  .kernel = "anonymize",
  .choose_regions = choose_regions,
  .prepare = prepare,
  .sample = sample,
};
