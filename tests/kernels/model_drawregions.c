/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The model of drawregions: each sample goes through all regions in their order, and each of its
 * pixels is looked up in the region's box and in the text printed for it.  Shares nothing with
 * the kernel but the parameter structure and the font; knows check.h and libc only. */
#include "check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/drawregions/drawregions.h"
#include "kernels/drawregions/font.h"

enum
{
  MAX_COLOURS = 12,
  TEXT = 128
};

static const unsigned palette[MAX_COLOURS] = {
  0xff30d030, 0xffffd800, 0xff4080ff, 0xffff4040, 0xff00d8d8, 0xffff50d0, 0xffff9020, 0xffa070ff,
  0xffb0e820, 0xffffa0b0, 0xff20b090, 0xffe0e0e0
};

/* A region as it appears; sides in pixels. */
typedef struct sign
{
  bool shows;
  double x0, y0, x1, y1;
  double label_x, label_y, label_width, label_height;   /* width 0: no label */
  unsigned colour;
  char text[TEXT];              /* a character each; 127: one that the font has not */
} sign;

typedef struct model_memory
{
  int thickness, scale;
  sign signs[];
} model_memory;

static bool
is_subsampled (int format)
{
  return format >= CSFK_FORMAT_NV12 && format <= CSFK_FORMAT_P010_10LE;
}

static double
round_to (double value, double step, bool up)
{
  return step * (up ? ceil (value / step) : floor (value / step));
}

/* Prints what the label says, one byte a character. */
static void
print_text (const csfk_region *region, char *text)
{
  char *end = text;

  for (int i = 0; i < CSFK_LABEL_BYTES - 1 && region->label[i]; i++) {
    unsigned char byte = (unsigned char) region->label[i];

    if (byte < 0x80 || byte > 0xbf)
      *end++ = byte >= 32 && byte < 127 ? (char) byte : 127;
  }
  *end = 0;
  if (region->confidence >= 0) {
    /* Half percents, of a product rounded once to a float, and then rounded half up. */
    double halves = floor ((float) ((double) region->confidence * 200.0));
    double percent = floor ((halves + 1) / 2);

    end += sprintf (end, "%s%.0f%%", end > text ? " " : "",
        region->confidence >= 1 ? 100 : percent);
  }
  if (region->track_id >= 0)
    sprintf (end, "%s#%d", end > text ? " " : "", region->track_id);
}

static sign
make_sign (const csfk_image *in, const csfk_drawregions_params *params, const csfk_region *region,
    int scale)
{
  const double step = is_subsampled (in->format) ? 2 : 1;
  const double x1 = (double) region->x + region->width, y1 = (double) region->y + region->height;
  unsigned hash = 2166136261u;
  sign made = { .shows = region->width > 0 && region->height > 0 && x1 > 0 && y1 > 0
        && region->x < in->width && region->y < in->height };

  made.x0 = round_to (region->x, step, false);
  made.y0 = round_to (region->y, step, false);
  made.x1 = round_to (x1, step, true);
  made.y1 = round_to (y1, step, true);
  for (const char *c = region->label; *c; c++)
    hash = (hash ^ (unsigned char) *c) * 16777619u;
  made.colour = params->color ? params->color : palette[hash % MAX_COLOURS];
  print_text (region, made.text);
  if (scale == 0 || made.text[0] == 0)
    return made;

  made.label_width = round_to ((6.0 * (double) strlen (made.text) + 3) * scale, step, true);
  made.label_height = round_to (11.0 * scale, step, true);
  made.label_x = fmax (made.x0, 0);
  made.label_x = fmin (made.label_x,
      fmax (0, round_to (in->width - made.label_width, step, false)));
  made.label_y = made.y0 - made.label_height;
  if (made.label_y < 0)
    made.label_y = fmin (fmax (made.y0, 0), fmax (0, round_to (in->height - made.label_height, step,
                false)));
  return made;
}

static void
prepare (const csfk_frame *frame, const void *data, void **memory)
{
  const csfk_drawregions_params *params = data;
  const int height = frame->in.height;
  model_memory *self = realloc (*memory, sizeof *self + (size_t) frame->n_regions * sizeof (sign));

  if (!self)
    check_fail ("out of memory");
  *memory = self;
  self->thickness = params->thickness;
  if (self->thickness == 0)
    self->thickness = height < 720 ? 2 : height < 32 * 360 ? height / 360 : 32;
  if (is_subsampled (frame->in.format) && self->thickness % 2)
    self->thickness++;
  self->scale = params->font_size > 0 ? (params->font_size + 4) / 8 : (height + 240) / 480;
  if (self->scale == 0)
    self->scale = 1;
  if (!params->labels)
    self->scale = 0;
  for (int i = 0; i < frame->n_regions; i++)
    self->signs[i] = make_sign (&frame->in, params, &frame->regions[i], self->scale);
}

static double
nearest (double value, double most)
{
  /* The exact quotients of the colours' formulas come no nearer to a half than 1e-8, unless they
   * are one. */
  return fmin (fmax (floor (value + 0.5 + 1e-9), 0), most);
}

/* A colour's sample. */
static double
get_colour (const csfk_image *in, const channel *component, unsigned colour)
{
  const double weights[][2] = {
    {0.2126, 0.0722}, {0.299, 0.114}, {0.2126, 0.0722}, {0.2627, 0.0593}
  };
  const double red = (colour >> 16 & 255) / 255.0, green = (colour >> 8 & 255) / 255.0;
  const double blue = (colour & 255) / 255.0;
  const double kr = weights[in->matrix][0], kb = weights[in->matrix][1];
  const double luma = kr * red + (1 - kr - kb) * green + kb * blue;
  const double step = in->format == CSFK_FORMAT_P010_10LE ? 4 : 1, most = 256 * step - 1;
  const bool limited = in->range == CSFK_RANGE_LIMITED;
  const double black = limited ? 16 * step : 0, range = limited ? 219 * step : most;
  const double chroma = limited ? 224 * step : most;
  const bool second = component->plane == 2 || (component->plane == 1 && component->offset > 0)
      || (component->plane == 0 && component->offset >= 2);

  switch (component->kind) {
    case COMPONENT_LUMA:
      return nearest (black + range * luma, most);
    case COMPONENT_CHROMA:
      return nearest (128 * step + chroma * (second ? (red - luma) / (1 - kr) / 2
              : (blue - luma) / (1 - kb) / 2), most);
    case COMPONENT_RED:
      return nearest (black + range * red, most);
    case COMPONENT_GREEN:
      return nearest (black + range * green, most);
    case COMPONENT_BLUE:
      return nearest (black + range * blue, most);
    default:
      return 255;
  }
}

static bool
is_inside (double x, double y, double x0, double y0, double width, double height)
{
  return x >= x0 && x < x0 + width && y >= y0 && y < y0 + height;
}

/* Whether a letter covers a pixel. */
static bool
is_letter (const sign *of, int scale, double x, double y)
{
  const int column = (int) floor ((x - of->label_x) / scale) - 2;
  const int row = (int) floor ((y - of->label_y) / scale) - 2;

  if (column < 0 || row < 0 || row > 7 || column / 6 >= (int) strlen (of->text) || column % 6 == 5)
    return false;
  return csfk_font[of->text[column / 6] - 32][row] & 16 >> column % 6;
}

static int
blend (int value, double colour, unsigned alpha)
{
  return (int) floor ((value * (255.0 - alpha) + colour * alpha + 127) / 255);
}

static int
draw_sign (const csfk_image *in, const model_memory *self, const sign *of, const channel *component,
    int x, int y, int value)
{
  const unsigned alpha = of->colour >> 24;
  const int across = component->shift_x + 1, down = component->shift_y + 1;
  const double luma = 0.2126 * (of->colour >> 16 & 255) + 0.7152 * (of->colour >> 8 & 255) +
      0.0722 * (of->colour & 255);
  const double colour = get_colour (in, component, of->colour);
  const double t = self->thickness, px = x * across, py = y * down;

  if (is_inside (px, py, of->x0, of->y0, of->x1 - of->x0, of->y1 - of->y0)
      && !is_inside (px, py, of->x0 + t, of->y0 + t, of->x1 - of->x0 - 2 * t,
          of->y1 - of->y0 - 2 * t))
    value = blend (value, colour, alpha);
  if (is_inside (px, py, of->label_x, of->label_y, of->label_width, of->label_height)) {
    const double ink = get_colour (in, component, luma > 127.5 - 1e-6 ? 0x000000 : 0xffffff);
    int letters = 0;

    value = blend (value, colour, alpha);
    for (int i = 0; i < across * down; i++)
      letters += is_letter (of, self->scale, px + i % across, py + i / across);
    value = (int) floor ((value * (across * down - letters) + ink * letters) / (across * down) +
        0.5);
  }
  return value;
}

static int
sample (const csfk_frame *frame, const void *data, void *memory, const channel *component, int x,
    int y)
{
  const csfk_drawregions_params *params = data;
  const model_memory *self = memory;
  const bool wide = frame->in.format == CSFK_FORMAT_P010_10LE;
  const int raw = model_get_raw (&frame->in, component, x, y);
  int value = wide ? raw / 64 : raw;
  bool drawn = false;

  if (component->kind == COMPONENT_UNUSED || (params->color != 0 && params->color >> 24 == 0))
    return raw;
  for (int i = 0; i < frame->n_regions; i++)
    if (self->signs[i].shows) {
      const sign *of = &self->signs[i];
      const double px = x * (component->shift_x + 1), py = y * (component->shift_y + 1);
      const double t = self->thickness;

      drawn |= is_inside (px, py, of->label_x, of->label_y, of->label_width, of->label_height)
          || (is_inside (px, py, of->x0, of->y0, of->x1 - of->x0, of->y1 - of->y0)
          && !is_inside (px, py, of->x0 + t, of->y0 + t, of->x1 - of->x0 - 2 * t,
              of->y1 - of->y0 - 2 * t));
      value = draw_sign (&frame->in, self, of, component, x, y, value);
    }
  /* P010's empty bits are only made 0 where something is drawn. */
  return drawn ? model_to_raw (&frame->in, value) : raw;
}

/* Boxes of all kinds, and texts of all lengths and alphabets. */
static int
choose_regions (const csfk_image *in, csfk_region *regions)
{
  static const char *const labels[] = {
    "", "face", "a label of thirty-one characters", "caf\xc3\xa9 \xe2\x82\xac\xf0\x9f\x98\x80",
    "\x01\x7f\xff", "\x80\x81", "{jQ|y}~_^@g;,", "person"
  };
  static const int extremes[] = { -2147483647 - 1, -2147483647, -1, 0, 1, 2147483647 };
  const int n = check_random_in (0, CHECK_MAX_REGIONS);

  for (int i = 0; i < n; i++) {
    csfk_region *region = &regions[i];

    memset (region, 0, sizeof *region);
    region->x = check_random_in (-in->width / 2 - 8, in->width + 8);
    region->y = check_random_in (-in->height / 2 - 8, in->height + 8);
    region->width = check_random_in (-1, in->width + 20);
    region->height = check_random_in (-1, in->height + 20);
    if (check_random_in (0, 7) == 0) {
      region->x = check_random_in (0, 1) ? extremes[check_random_in (0, 5)] : region->x;
      region->y = check_random_in (0, 1) ? extremes[check_random_in (0, 5)] : region->y;
      region->width = extremes[check_random_in (0, 5)];
      region->height = check_random_in (0, 1) ? extremes[check_random_in (0, 5)] : region->height;
    }
    region->confidence = check_random_in (0, 2)
        ? (float) check_random_in (0, 1000) / 1000.0f : -1.0f;
    if (check_random_in (0, 15) == 0)
      region->confidence = check_random_in (0, 1) ? NAN : INFINITY;
    region->id = region->parent_id = -1;
    region->track_id = check_random_in (0, 2) ? check_random_in (0, 120) - 1
        : extremes[check_random_in (0, 5)];
    snprintf (region->label, sizeof region->label, "%s", labels[check_random_in (0, 7)]);
  }
  return n;
}

const kernel_model model_drawregions = {
  .kernel = "drawregions",
  .choose_regions = choose_regions,
  .prepare = prepare,
  .sample = sample,
};
