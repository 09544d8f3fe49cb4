/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The naive model of temporaldenoise: every sample from the definition at the top of the kernel's C
 * file, its past kept as plain numbers.  Shares only the parameter structure with it. */
#include "check.h"

#include <stdlib.h>

#include "kernels/temporaldenoise/temporaldenoise.h"

enum
{
  MAX_COMPONENTS = 4
};

/* Values times 256 (64 for 10 bits), of all components one after another, visible samples only. */
typedef struct history
{
  size_t n_values;
  int copy;                     /* which half of values is the frame's past; the rest its result */
  int values[];
} history;

static int
limit (int value, int low, int high)
{
  return value < low ? low : value > high ? high : value;
}

static int
get_columns (const csfk_image *image, const channel *component)
{
  return component->shift_x ? (image->width + 1) / 2 : image->width;
}

static int
get_rows (const csfk_image *image, const channel *component)
{
  return component->shift_y ? (image->height + 1) / 2 : image->height;
}

static size_t
get_place (const csfk_image *image, const channel *component, int x, int y)
{
  const channel *components;
  size_t place = 0;

  model_get_components (image->format, &components);
  for (; components != component; components++)
    place += (size_t) get_columns (image, components) * (size_t) get_rows (image, components);
  return place + (size_t) y * (size_t) get_columns (image, component) + (size_t) x;
}

static bool
is_carried (const channel *component)
{
  return component->kind == COMPONENT_ALPHA || component->kind == COMPONENT_UNUSED;
}

static int
get_current (const csfk_frame *frame, const channel *component, int x, int y)
{
  int sample = model_get_sample (&frame->in, component, x, y);

  return frame->in.format == CSFK_FORMAT_P010_10LE ? sample * 64 : sample * 256;
}

static int
get_past (const csfk_frame *frame, const history *past, const channel *component, int x, int y)
{
  x = limit (x, 0, get_columns (&frame->in, component) - 1);
  y = limit (y, 0, get_rows (&frame->in, component) - 1);
  return past->values[past->copy * past->n_values + get_place (&frame->in, component, x, y)];
}

static int
get_change (const csfk_frame *frame, const history *past, const channel *component, int x, int y)
{
  const channel *components;
  int n = model_get_components (frame->in.format, &components), sum = 0;

  for (int i = 0; i < n; i++)
    if (&components[i] == component ||
        (component->kind >= COMPONENT_RED && !is_carried (&components[i])))
      sum += abs (get_current (frame, &components[i], x, y) -
          get_past (frame, past, &components[i], x, y));
  return sum;
}

/* p' of the definition. */
static int
filter (const csfk_frame *frame, const csfk_temporaldenoise_params *params, const history *past,
    const channel *component, int x, int y)
{
  static const int weights[3] = { 1, 2, 1 };
  const csfk_temporaldenoise_ramp *ramp = &params->ramp[component->kind >= COMPONENT_RED];
  int columns = get_columns (&frame->in, component), rows = get_rows (&frame->in, component);
  int lowest = params->lowest;
  long motion = 0, share, product;

  for (int dy = -1; dy <= 1; dy++)
    for (int dx = -1; dx <= 1; dx++)
      motion += weights[dx + 1] * weights[dy + 1] * get_change (frame, past, component,
          limit (x + dx, 0, columns - 1), limit (y + dy, 0, rows - 1));
  if ((long) lowest * (frame->state_frames + 1L) < 256)
    lowest = (int) (256 / (frame->state_frames + 1L));
  share = motion * ramp->slope / 65536 - ramp->offset;
  share = share < lowest ? lowest : share > 256 ? 256 : share;
  x = limit (x, 0, columns - 1);
  product = share * (get_current (frame, component, x, y) -
      get_past (frame, past, component, x, y));
  return get_past (frame, past, component, x, y) +
      (int) (product >= 0 ? product / 256 : -((-product + 255) / 256));
}

static void
prepare (const csfk_frame *frame, const void *params, void **memory)
{
  const channel *components;
  int n = model_get_components (frame->in.format, &components);
  history *past = *memory;

  if (!past) {
    size_t n_values = 0;

    for (int i = 0; i < n; i++)
      n_values += (size_t) get_columns (&frame->in, &components[i]) *
          (size_t) get_rows (&frame->in, &components[i]);
    past = calloc (1, sizeof *past + 2 * n_values * sizeof past->values[0]);
    if (!past)
      check_fail ("out of memory");
    past->n_values = n_values;
    past->copy = 1;
    *memory = past;
  }
  past->copy = !past->copy;
  for (int i = 0; i < n; i++)
    for (int y = 0; y < get_rows (&frame->in, &components[i]) && !is_carried (&components[i]); y++)
      for (int x = 0; x < get_columns (&frame->in, &components[i]); x++)
        past->values[!past->copy * past->n_values +
            get_place (&frame->in, &components[i], x, y)] =
            filter (frame, params, past, &components[i], x, y);
}

static int
sample (const csfk_frame *frame, const void *params, void *memory, const channel *component, int x,
    int y)
{
  const int step = frame->in.format == CSFK_FORMAT_P010_10LE ? 64 : 256;

  if (is_carried (component))
    return model_get_raw (&frame->in, component, x, y);
  return model_to_raw (&frame->in, (filter (frame, params, memory, component, x, y) + step / 2) /
      step);
}

const kernel_model model_temporaldenoise = {
  .kernel = "temporaldenoise",
  .n_frames = 5,
  .prepare = prepare,
  .sample = sample,
};
