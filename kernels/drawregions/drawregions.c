/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* drawregions: the input with each region's box and label drawn over it.  The plain C path, the
 * style and the launch; the device code is in drawregions.cu, written apart from this so that
 * each checks the other.  Knows kernel.h, the formats' facts, the font and libc only.
 *
 * Regions are drawn in their order, each its box and then its label; an empty one, and one
 * outside the picture, not at all.  Where chroma is subsampled, boxes, lines and labels are
 * rounded outwards to even pixels, so that their chroma fits their luma; only letters then cover
 * chroma samples in part.
 *
 * - The box lies inside the region's sides, `thickness` pixels wide.
 * - The label is the region's label, its confidence in percent where known, and # with its track
 *   where it has one, in a rectangle of the box's colour: on the box; inside at its top where
 *   there is no room, and moved into the picture.
 * - A sample c becomes (c * (255 - alpha) + colour * alpha) / 255, rounded; so does alpha
 *   itself, with 255.  Letters are black or white, whichever differs more from the colour, and
 *   always opaque; a sample of which they cover k of n pixels becomes (c * (n - k) + ink * k) /
 *   n, rounded half up. */
#include "drawregions.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "../format.h"
#include "font.h"

extern const csfk_blob csfk_blob_drawregions;

enum
{
  LIMIT = CSFK_DRAWREGIONS_LIMIT,
  MAX_TEXT = CSFK_DRAWREGIONS_MAX_TEXT,
  MAX_THICKNESS = 32
};

static int
smaller (int a, int b)
{
  return a < b ? a : b;
}

static int
larger (int a, int b)
{
  return a > b ? a : b;
}

/* ---- style: colours and sizes for a picture -------------------------------------------------- */

/* Far apart in hue, and bright enough on most pictures. */
static const unsigned automatic_colours[CSFK_DRAWREGIONS_COLOURS] = {
  0x30d030, 0xffd800, 0x4080ff, 0xff4040, 0x00d8d8, 0xff50d0, 0xff9020, 0xa070ff, 0xb0e820,
  0xffa0b0, 0x20b090, 0xe0e0e0
};

/* Luma coefficients in 10000ths, of ITU-R BT.601, BT.709 (also where no matrix is known) and
 * BT.2020. */
static void
get_weights (int matrix, int64_t *red, int64_t *blue)
{
  switch (matrix) {
    case CSFK_MATRIX_BT601:
      *red = 2990, *blue = 1140;
      break;
    case CSFK_MATRIX_BT2020:
      *red = 2627, *blue = 593;
      break;
    default:
      *red = 2126, *blue = 722;
  }
}

/* a / b rounded half up, whatever the sign of a. */
static int64_t
divide (int64_t a, int64_t b)
{
  int64_t twice = 2 * a + b;

  return twice >= 0 ? twice / (2 * b) : -((-twice + 2 * b - 1) / (2 * b));
}

static unsigned short
to_sample (int64_t value, int64_t most)
{
  return (unsigned short) (value < 0 ? 0 : value > most ? most : value);
}

/* 0xRRGGBB as the picture's samples: the formulas of ITU-R BT.601 and BT.709, section "digital
 * representation", with whole numbers. */
static void
convert (const csfk_image *image, unsigned rgb, unsigned short *samples)
{
  const csfk_format_info *info = csfk_format_get_info (image->format);
  const int64_t red = rgb >> 16 & 255, green = rgb >> 8 & 255, blue = rgb & 255;
  const int64_t step = 1 << (info->depth - 8), most = 256 * step - 1;
  const int limited = image->range == CSFK_RANGE_LIMITED;
  const int64_t black = limited ? 16 * step : 0, luma_range = limited ? 219 * step : most;
  const int64_t chroma_range = limited ? 224 * step : most;
  int64_t red_weight, blue_weight, luma;

  if (info->is_rgb) {
    const int red_first = image->format == CSFK_FORMAT_RGB || image->format == CSFK_FORMAT_RGBx
        || image->format == CSFK_FORMAT_RGBA;

    samples[red_first ? 0 : 2] = (unsigned short) (black + divide (luma_range * red, 255));
    samples[1] = (unsigned short) (black + divide (luma_range * green, 255));
    samples[red_first ? 2 : 0] = (unsigned short) (black + divide (luma_range * blue, 255));
    samples[3] = 255;
    return;
  }
  get_weights (image->matrix, &red_weight, &blue_weight);
  luma = red_weight * red + (10000 - red_weight - blue_weight) * green + blue_weight * blue;
  samples[0] = (unsigned short) (black + divide (luma_range * luma, 255 * 10000));
  samples[1] = to_sample (128 * step + divide (chroma_range * (10000 * blue - luma),
          2 * 255 * (10000 - blue_weight)), most);
  samples[2] = to_sample (128 * step + divide (chroma_range * (10000 * red - luma),
          2 * 255 * (10000 - red_weight)), most);
  samples[3] = 0;
}

static csfk_drawregions_colour
make_colour (const csfk_image *image, unsigned rgb)
{
  const unsigned luma = 2126 * (rgb >> 16 & 255) + 7152 * (rgb >> 8 & 255) + 722 * (rgb & 255);
  csfk_drawregions_colour made;

  convert (image, rgb, made.component);
  convert (image, luma >= 1275000 ? 0x000000 : 0xffffff, made.ink);
  return made;
}

static csfk_drawregions_style
make_style (const csfk_image *image, const csfk_drawregions_params *params)
{
  const csfk_channel_list *list = csfk_format_get_channels (image->format);
  csfk_drawregions_style style = {
    .alpha = params->color == 0 ? 255 : (int) (params->color >> 24),
    .thickness = params->thickness,
    .even = list->n > 1 && list->channel[1].shift_x,
  };

  if (style.thickness == 0)
    style.thickness = larger (2, smaller (image->height / 360, MAX_THICKNESS));
  style.thickness += style.even & style.thickness;
  if (params->labels && params->font_size > 0)
    style.scale = larger ((params->font_size + CSFK_FONT_ROWS / 2) / CSFK_FONT_ROWS, 1);
  else if (params->labels)
    style.scale = larger ((image->height + 240) / 480, 1);

  if (params->color != 0) {
    style.n_colours = 1;
    style.colour[0] = make_colour (image, params->color & 0xffffff);
    return style;
  }
  style.n_colours = CSFK_DRAWREGIONS_COLOURS;
  for (int i = 0; i < style.n_colours; i++)
    style.colour[i] = make_colour (image, automatic_colours[i]);
  return style;
}

/* The same for the same label everywhere: the FNV-1a hash, 32 bits. */
static int
choose_colour (const csfk_drawregions_style *style, const char *label)
{
  uint32_t hash = 2166136261u;

  for (int i = 0; i < CSFK_LABEL_BYTES && label[i]; i++)
    hash = (hash ^ (unsigned char) label[i]) * 16777619u;
  return (int) (hash % (uint32_t) style->n_colours);
}

/* ---- regions --------------------------------------------------------------------------------- */

typedef struct rectangle
{
  int x0, y0, x1, y1;           /* pixels, x1 and y1 not inside */
} rectangle;

/* What is drawn of one region. */
typedef struct drawing
{
  rectangle box;
  rectangle label;              /* empty without text */
  int n_glyphs;
  unsigned char glyph[MAX_TEXT];        /* indices of csfk_font */
} drawing;

static int
move_near (int64_t place)
{
  return place < -LIMIT ? -LIMIT : place > LIMIT ? LIMIT : (int) place;
}

static void
add_character (drawing *to, unsigned char character)
{
  /* What follows the first byte of a longer UTF-8 sequence is no character of its own. */
  if ((character & 0xc0) == 0x80)
    return;
  to->glyph[to->n_glyphs++] = character >= CSFK_FONT_FIRST
      && character < CSFK_FONT_FIRST + CSFK_FONT_UNKNOWN
      ? (unsigned char) (character - CSFK_FONT_FIRST) : CSFK_FONT_UNKNOWN;
}

static void
add_number (drawing *to, const char *before, int number, const char *after)
{
  char digits[10];
  int n = 0;

  if (to->n_glyphs > 0)
    add_character (to, ' ');
  if (*before)
    add_character (to, (unsigned char) *before);
  do
    digits[n++] = (char) ('0' + number % 10);
  while ((number /= 10) > 0);
  while (n > 0)
    add_character (to, (unsigned char) digits[--n]);
  if (*after)
    add_character (to, (unsigned char) *after);
}

static void
write_text (const csfk_region *region, drawing *to)
{
  to->n_glyphs = 0;
  for (int i = 0; i < CSFK_LABEL_BYTES - 1 && region->label[i]; i++)
    add_character (to, (unsigned char) region->label[i]);
  /* One rounded product: the same everywhere.  Not a number is not known. */
  if (region->confidence >= 0.0f)
    add_number (to, "", region->confidence < 1.0f
        ? ((int) (region->confidence * 200.0f) + 1) / 2 : 100, "%");
  if (region->track_id >= 0)
    add_number (to, "#", region->track_id, "");
}

static rectangle
place_label (const csfk_image *image, const csfk_drawregions_style *style, const rectangle *box,
    int n_glyphs)
{
  int width = (CSFK_DRAWREGIONS_ADVANCE * n_glyphs + CSFK_DRAWREGIONS_ENDS) * style->scale;
  int height = CSFK_DRAWREGIONS_LABEL_ROWS * style->scale;
  int x, y;

  width += width & style->even;
  height += height & style->even;
  x = smaller (larger (box->x0, 0), larger (image->width - width, 0) & ~style->even);
  y = box->y0 - height >= 0 ? box->y0 - height
      : smaller (larger (box->y0, 0), larger (image->height - height, 0) & ~style->even);
  return (rectangle) { x, y, x + width, y + height };
}

/* 0 when nothing is drawn. */
static int
find_drawing (const csfk_image *image, const csfk_drawregions_style *style,
    const csfk_region *region, drawing *found)
{
  const rectangle box = {
    move_near (region->x), move_near (region->y), move_near ((int64_t) region->x + region->width),
    move_near ((int64_t) region->y + region->height)
  };

  if (region->width <= 0 || region->height <= 0)
    return 0;
  if (box.x0 >= image->width || box.y0 >= image->height || box.x1 <= 0 || box.y1 <= 0)
    return 0;
  found->box = (rectangle) {
    box.x0 & ~style->even, box.y0 & ~style->even,
    (box.x1 + style->even) & ~style->even, (box.y1 + style->even) & ~style->even
  };
  found->label = (rectangle) { 0 };
  found->n_glyphs = 0;
  if (style->scale > 0)
    write_text (region, found);
  if (found->n_glyphs > 0)
    found->label = place_label (image, style, &found->box, found->n_glyphs);
  return 1;
}

/* ---- drawing --------------------------------------------------------------------------------- */

/* A channel of the output and the samples to draw with. */
typedef struct surface
{
  unsigned char *data;          /* sample 0 of row 0 */
  ptrdiff_t stride;
  int pitch, shift_x, shift_y, p010;
  int columns, rows;
  int colour, alpha, ink;
} surface;

static surface
get_surface (const csfk_image *out, const csfk_channel *at, int alpha, int colour, int ink)
{
  const csfk_plane *plane = &out->plane[at->plane];

  return (surface) {
    .data = plane->data + at->offset,
    .stride = plane->stride,
    .pitch = at->pitch,
    .shift_x = at->shift_x,
    .shift_y = at->shift_y,
    .p010 = out->format == CSFK_FORMAT_P010_10LE,
    .columns = plane->row_bytes / at->pitch,
    .rows = plane->rows,
    .colour = colour,
    .alpha = alpha,
    .ink = ink,
  };
}

/* Two bytes of a sample are read and written apart: a row may start at an odd address. */
static int
load_sample (const surface *on, const unsigned char *at)
{
  return on->p010 ? (at[0] | at[1] << 8) >> 6 : at[0];
}

static void
store_sample (const surface *on, unsigned char *at, int value)
{
  if (on->p010) {
    at[0] = (unsigned char) (value << 6);
    at[1] = (unsigned char) (value >> 2);
  } else {
    at[0] = (unsigned char) value;
  }
}

static int
blend (const surface *on, int sample)
{
  return (sample * (255 - on->alpha) + on->colour * on->alpha + 127) / 255;
}

/* A rectangle's samples that the picture has. */
static rectangle
get_samples (const surface *on, rectangle pixels)
{
  return (rectangle) {
    larger (pixels.x0 >> on->shift_x, 0), larger (pixels.y0 >> on->shift_y, 0),
    smaller (pixels.x1 >> on->shift_x, on->columns), smaller (pixels.y1 >> on->shift_y, on->rows)
  };
}

static void
draw_rectangle (const surface *on, rectangle pixels)
{
  const rectangle samples = get_samples (on, pixels);

  for (int y = samples.y0; y < samples.y1; y++) {
    unsigned char *row = on->data + y * on->stride;

    for (int x = samples.x0; x < samples.x1; x++) {
      unsigned char *at = row + (ptrdiff_t) x * on->pitch;

      store_sample (on, at, blend (on, load_sample (on, at)));
    }
  }
}

/* No sample belongs to two of the four sides. */
static void
draw_box (const surface *on, const rectangle *box, int thickness)
{
  const int left = smaller (box->x0 + thickness, box->x1);
  const int right = larger (box->x1 - thickness, left);
  const int top = smaller (box->y0 + thickness, box->y1);
  const int bottom = larger (box->y1 - thickness, top);

  draw_rectangle (on, (rectangle) { box->x0, box->y0, box->x1, top });
  draw_rectangle (on, (rectangle) { box->x0, bottom, box->x1, box->y1 });
  draw_rectangle (on, (rectangle) { box->x0, top, left, bottom });
  draw_rectangle (on, (rectangle) { right, top, box->x1, bottom });
}

/* x, y: pixels from the label's corner. */
static int
is_ink (const drawing *of, int scale, int x, int y)
{
  const int column = x / scale - CSFK_DRAWREGIONS_MARGIN, row = y / scale - CSFK_DRAWREGIONS_MARGIN;
  const int glyph = column / CSFK_DRAWREGIONS_ADVANCE, in_glyph = column % CSFK_DRAWREGIONS_ADVANCE;

  if (column < 0 || row < 0 || row >= CSFK_FONT_ROWS || glyph >= of->n_glyphs
      || in_glyph >= CSFK_FONT_COLUMNS)
    return 0;
  return csfk_font[of->glyph[glyph]][row] >> (CSFK_FONT_COLUMNS - 1 - in_glyph) & 1;
}

static void
draw_label (const surface *on, const drawing *of, int scale)
{
  const rectangle samples = get_samples (on, of->label);
  const int across = 1 << on->shift_x, down = 1 << on->shift_y, n = across * down;

  for (int y = samples.y0; y < samples.y1; y++)
    for (int x = samples.x0; x < samples.x1; x++) {
      unsigned char *at = on->data + y * on->stride + (ptrdiff_t) x * on->pitch;
      const int background = blend (on, load_sample (on, at));
      int covered = 0;

      for (int i = 0; i < n; i++)
        covered += is_ink (of, scale, x * across + i % across - of->label.x0,
            y * down + i / across - of->label.y0);
      store_sample (on, at, (background * (n - covered) + on->ink * covered + n / 2) / n);
    }
}

static void
draw_region (const csfk_frame *frame, const csfk_drawregions_style *style,
    const csfk_region *region, const drawing *of)
{
  const csfk_channel_list *list = csfk_format_get_channels (frame->out.format);
  const csfk_drawregions_colour *colour = &style->colour[choose_colour (style, region->label)];

  for (int i = 0; i < list->n; i++) {
    const surface on = get_surface (&frame->out, &list->channel[i], style->alpha,
        colour->component[i], colour->ink[i]);

    draw_box (&on, &of->box, style->thickness);
    draw_label (&on, of, style->scale);
  }
}

static void
process (const csfk_frame *frame, const void *params)
{
  const csfk_drawregions_style style = make_style (&frame->in, params);
  drawing found;

  for (int i = 0; i < frame->in.n_planes; i++)
    csfk_plane_copy (&frame->out.plane[i], &frame->in.plane[i]);
  for (int i = 0; i < frame->n_regions && style.alpha > 0; i++)
    if (find_drawing (&frame->in, &style, &frame->regions[i], &found))
      draw_region (frame, &style, &frame->regions[i], &found);
}

/* ---- parameters and launch ------------------------------------------------------------------- */

static unsigned
divide_up (unsigned value, unsigned by)
{
  return (value + by - 1) / by;
}

static int
enqueue (const csfk_frame *frame, const void *params, csfk_launcher *launcher)
{
  csfk_drawregions_args args = {.frame = *frame,.style = make_style (&frame->in, params) };
  csfk_dim block = { CSFK_DRAWREGIONS_BLOCK_X, CSFK_DRAWREGIONS_BLOCK_Y, 1 };
  csfk_dim grid = { 1, 1, (unsigned) frame->in.n_planes };

  memcpy (&args.params, params, sizeof args.params);
  for (int i = 0; i < frame->in.n_planes; i++) {
    const csfk_plane *plane = &frame->in.plane[i];
    unsigned x = divide_up ((unsigned) plane->row_bytes, CSFK_DRAWREGIONS_TILE_BYTES);
    unsigned y = divide_up ((unsigned) plane->rows, CSFK_DRAWREGIONS_TILE_ROWS);

    grid.x = x > grid.x ? x : grid.x;
    grid.y = y > grid.y ? y : grid.y;
  }
  return launcher->launch (launcher, "csfk_drawregions", grid, block, 0, &args, sizeof args);
}

static const csfk_param params_of[] = {
  {
    "color", CSFK_TYPE_UINT, offsetof (csfk_drawregions_params, color), 0, 4294967295.0,
    4278255360.0, "0xAARRGGBB", "Colour of boxes and labels' backgrounds; 0: each label has its own", NULL
  },
  {
    "thickness", CSFK_TYPE_INT, offsetof (csfk_drawregions_params, thickness), 0, MAX_THICKNESS, 0,
    "pixel", "Width of a box's lines; 0: by the picture's height", NULL
  },
  {
    "labels", CSFK_TYPE_BOOL, offsetof (csfk_drawregions_params, labels), 0, 1, 1, "",
    "Also draw label, confidence and track", NULL
  },
  {
    "font-size", CSFK_TYPE_INT, offsetof (csfk_drawregions_params, font_size), 0, 256, 0, "pixel",
    "Height of a label's letters, in steps of 8; 0: by the picture's height", NULL
  },
};

const csfk_kernel csfk_drawregions = {
  .abi = CSFK_ABI,
  .flags = CSFK_READS_REGIONS,
  .name = "drawregions",
  .description = "Draws the box and the label of each marked region",
  .formats = {
    CSFK_FORMAT_NV12, CSFK_FORMAT_I420, CSFK_FORMAT_YUY2, CSFK_FORMAT_UYVY, CSFK_FORMAT_P010_10LE,
    CSFK_FORMAT_RGBA, CSFK_FORMAT_BGRA, CSFK_FORMAT_RGBx, CSFK_FORMAT_BGRx, CSFK_FORMAT_RGB,
    CSFK_FORMAT_BGR, CSFK_FORMAT_GRAY8, CSFK_FORMAT_NONE
  },
  .params = params_of,
  .n_params = sizeof params_of / sizeof params_of[0],
  .params_size = sizeof (csfk_drawregions_params),
  .process = process,
  .enqueue = enqueue,
  .device_code = &csfk_blob_drawregions,
};

_Static_assert (sizeof (csfk_drawregions_args) < 4096, "the argument does not fit a launch");
