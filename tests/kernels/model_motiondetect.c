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

static bool
moves (const csfk_image *image, const csfk_motiondetect_params *params, const history *past, int x,
    int y)
{
  int votes = 0;

  for (int dy = -1; dy <= 1; dy++)
    for (int dx = -1; dx <= 1; dx++)
      votes += seems_to_move (image, params, past, x + dx, y + dy);
  return votes >= 5;
}

static int
sample (const csfk_frame *frame, const void *data, void *memory, const channel *component, int x,
    int y)
{
  const csfk_motiondetect_params *params = data;
  const csfk_image *in = &frame->in;
  const int step = in->format == CSFK_FORMAT_P010_10LE ? 4 : 1;
  bool white;

  if (params->show == CSFK_MOTIONDETECT_FRAME || component->kind == COMPONENT_ALPHA ||
      component->kind == COMPONENT_UNUSED)
    return model_get_raw (in, component, x, y);
  if (component->kind == COMPONENT_CHROMA)
    return model_to_raw (in, 128 * step);
  white = moves (in, params, memory, x, y);
  if (in->range == CSFK_RANGE_LIMITED)
    return model_to_raw (in, (white ? 235 : 16) * step);
  return model_to_raw (in, white ? 256 * step - 1 : 0);
}

/* ---- regions --------------------------------------------------------------------------------- */

/* The cells of a picture, by the number of the region that they are found to be of, 0 for those
 * that are still; and which of the picture's pixels move. */
typedef struct region_map
{
  int side, columns, rows;
  int *regions;
  bool *moving;
} region_map;

static int
get_region (const region_map *map, int column, int row)
{
  if (column < 0 || row < 0 || column >= map->columns || row >= map->rows)
    return 0;
  return map->regions[row * map->columns + column];
}

static bool
cell_moves (const region_map *map, const csfk_image *in, int column, int row)
{
  int moving = 0;

  for (int y = row * map->side; y < (row + 1) * map->side && y < in->height; y++)
    for (int x = column * map->side; x < (column + 1) * map->side && x < in->width; x++)
      moving += map->moving[(size_t) y * (size_t) in->width + (size_t) x];
  return moving * 16 >= map->side * map->side;
}

/* Every moving cell takes the highest number round it, until nothing changes. */
static void
spread_numbers (region_map *map)
{
  for (bool changed = true; changed;) {
    changed = false;
    for (int i = 0; i < map->columns * map->rows; i++)
      for (int k = 0; k < 9 && map->regions[i] > 0; k++) {
        int other = get_region (map, i % map->columns + k % 3 - 1, i / map->columns + k / 3 - 1);

        if (other <= map->regions[i])
          continue;
        map->regions[i] = other;
        changed = true;
      }
  }
}

static region_map
make_map (const csfk_image *in, const csfk_motiondetect_params *params, const history *past)
{
  region_map map = { .side = 8 };

  while ((in->width + map.side - 1) / map.side * ((in->height + map.side - 1) / map.side) > 12288)
    map.side *= 2;
  map.columns = (in->width + map.side - 1) / map.side;
  map.rows = (in->height + map.side - 1) / map.side;
  map.regions = calloc ((size_t) map.columns * (size_t) map.rows, sizeof map.regions[0]);
  map.moving = calloc ((size_t) in->width * (size_t) in->height, sizeof map.moving[0]);
  if (!map.regions || !map.moving)
    check_fail ("out of memory");
  for (int y = 0; y < in->height; y++)
    for (int x = 0; x < in->width; x++)
      map.moving[(size_t) y * (size_t) in->width + (size_t) x] = moves (in, params, past, x, y);
  for (int i = 0; i < map.columns * map.rows; i++)
    if (cell_moves (&map, in, i % map.columns, i / map.columns))
      map.regions[i] = i + 1;
  spread_numbers (&map);
  return map;
}

/* The region of this number; false: too small, or there is none. */
static bool
measure (const region_map *map, const csfk_image *in, int number, int least, csfk_object *object)
{
  int left = in->width, top = in->height, right = -1, bottom = -1, area = 0;

  for (int y = 0; y < in->height; y++)
    for (int x = 0; x < in->width; x++) {
      if (!map->moving[(size_t) y * (size_t) in->width + (size_t) x] ||
          get_region (map, x / map->side, y / map->side) != number)
        continue;
      left = x < left ? x : left;
      right = x > right ? x : right;
      top = y < top ? y : top;
      bottom = y;
      area++;
    }
  if (area == 0 || area < least)
    return false;
  *object = (csfk_object) {
    .x = (float) left, .y = (float) top,
    .width = (float) (right - left + 1), .height = (float) (bottom - top + 1),
    .track_id = -1, .score = (float) area,
  };
  object->confidence = object->score / (object->width * object->height);
  return true;
}

static unsigned
records (const csfk_frame *frame, const void *data, void *memory, void *room_for, unsigned room)
{
  const csfk_motiondetect_params *params = data;
  const csfk_image *in = &frame->in;
  region_map map = make_map (in, params, memory);
  const int least = params->min_area > 0 ? params->min_area
      : (int) ((long) in->width * in->height / 400);
  csfk_object *objects = room_for;
  unsigned n = 0;

  for (int i = 0; i < map.columns * map.rows; i++) {
    csfk_object object;

    /* The cell that had the number at first has it still. */
    if (map.regions[i] != i + 1 || !measure (&map, in, i + 1, least, &object))
      continue;
    if (n < room)
      objects[n] = object;
    n++;
  }
  free (map.regions);
  free (map.moving);
  return n;
}

const kernel_model model_motiondetect = {
  .kernel = "motiondetect",
  .n_frames = 5,
  .prepare = prepare,
  .sample = sample,
  .records = records,
};
