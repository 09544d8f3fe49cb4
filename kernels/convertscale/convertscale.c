/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* convertscale: another size and another format.  The table entry, the plan of a frame (positions, colour
 * matrix, which way it goes) and the launch; convertscale.h says what is computed, convertscale_cpu.c
 * computes it in C, convertscale.cu on the GPU, each apart from the other.  Knows kernel.h, format.h and
 * libc only. */
#include "convertscale.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "../format.h"
#include "convertscale_cpu.h"

extern const csfk_blob csfk_blob_convertscale;

/* ---- positions ------------------------------------------------------------------------------- */

static csfk_convertscale_axis
make_axis (int in_size, int out_size)
{
  const long long one = 1LL << CSFK_CONVERTSCALE_POSITION_BITS;
  csfk_convertscale_axis axis;

  axis.step = (in_size * one + out_size / 2) / out_size;
  axis.start = (axis.step >> 1) - one / 2 + (one >> CSFK_CONVERTSCALE_FRACTION_BITS >> 1);
  axis.last = in_size - 1;
  return axis;
}

/* The places of output pixels in a plane with half the samples.  Chroma sample k is at luma's 2k where it is
 * cosited, else at 2k + 1/2. */
static csfk_convertscale_axis
make_chroma_axis (int in_size, int out_size, int cosited)
{
  const long long one = 1LL << CSFK_CONVERTSCALE_POSITION_BITS;
  const long long half_unit = one >> CSFK_CONVERTSCALE_FRACTION_BITS >> 1;
  csfk_convertscale_axis axis = make_axis (in_size, out_size);
  long long start = axis.start - half_unit;

  axis.start = ((cosited ? start : start - one / 2) >> 1) + half_unit;
  axis.step >>= 1;
  axis.last = (in_size + 1) / 2 - 1;
  return axis;
}

/* ---- colours --------------------------------------------------------------------------------- */

/* An affine map of three components: linear * (component - before) + after. */
typedef struct colour_map
{
  double linear[3][3];
  int before[3], after[3];
} colour_map;

static int
is_rgb (const csfk_image *image)
{
  return csfk_format_get_info (image->format)->is_rgb;
}

static int
has_chroma (const csfk_image *image)
{
  return image->format == CSFK_FORMAT_NV12 || image->format == CSFK_FORMAT_I420;
}

/* Of a Y'CbCr or grey picture.  Grey has the other side's matrix, which then does not matter. */
static int
get_matrix (const csfk_image *image, const csfk_image *other)
{
  if (image->format == CSFK_FORMAT_GRAY8 && has_chroma (other))
    image = other;
  return image->matrix == CSFK_MATRIX_RGB ? CSFK_MATRIX_BT601 : image->matrix;
}

/* Luma weights of red and blue: ITU-R BT.601, BT.709, BT.2020 (non-constant luminance). */
static const double red_weights[] = {
  [CSFK_MATRIX_BT601] = 0.299, [CSFK_MATRIX_BT709] = 0.2126, [CSFK_MATRIX_BT2020] = 0.2627
};

static const double blue_weights[] = {
  [CSFK_MATRIX_BT601] = 0.114, [CSFK_MATRIX_BT709] = 0.0722, [CSFK_MATRIX_BT2020] = 0.0593
};

/* linear: to R'G'B' from Y'CbCr without its offsets, all of them 0..255 wide. */
static void
make_to_rgb (int matrix, int range, double linear[3][3])
{
  const double kr = red_weights[matrix], kb = blue_weights[matrix], kg = 1.0 - kr - kb;
  const double luma = range == CSFK_RANGE_LIMITED ? 255.0 / 219.0 : 1.0;
  const double chroma = range == CSFK_RANGE_LIMITED ? 255.0 / 224.0 : 1.0;
  const double cr = 2.0 * (1.0 - kr) * chroma, cb = 2.0 * (1.0 - kb) * chroma;
  const double rows[3][3] = {
    {luma, 0.0, cr}, {luma, -cb * kb / kg, -cr * kr / kg}, {luma, cb, 0.0}
  };

  memcpy (linear, rows, sizeof rows);
}

static void
make_from_rgb (int matrix, int range, double linear[3][3])
{
  const double kr = red_weights[matrix], kb = blue_weights[matrix], kg = 1.0 - kr - kb;
  const double luma = range == CSFK_RANGE_LIMITED ? 219.0 / 255.0 : 1.0;
  const double chroma = range == CSFK_RANGE_LIMITED ? 224.0 / 255.0 : 1.0;
  const double cr = 0.5 / (1.0 - kr) * chroma, cb = 0.5 / (1.0 - kb) * chroma;
  const double rows[3][3] = {
    {kr * luma, kg * luma, kb * luma},
    {-kr * cb, -kg * cb, (1.0 - kb) * cb},
    {(1.0 - kr) * cr, -kg * cr, -kb * cr}
  };

  memcpy (linear, rows, sizeof rows);
}

static void
set_offsets (const csfk_image *image, int offsets[3])
{
  offsets[0] = image->range == CSFK_RANGE_LIMITED ? 16 : 0;
  offsets[1] = offsets[2] = 128;
}

/* Components in the order red, green, blue or Y', Cb, Cr. */
static void
make_map (const csfk_image *in, const csfk_image *out, colour_map *map)
{
  double to_rgb[3][3] = { {1, 0, 0}, {0, 1, 0}, {0, 0, 1} };
  double from_rgb[3][3] = { {1, 0, 0}, {0, 1, 0}, {0, 0, 1} };

  memset (map, 0, sizeof *map);
  if (!is_rgb (in)) {
    make_to_rgb (get_matrix (in, out), in->range, to_rgb);
    set_offsets (in, map->before);
  }
  if (!is_rgb (out)) {
    make_from_rgb (get_matrix (out, in), out->range, from_rgb);
    set_offsets (out, map->after);
  }
  for (int r = 0; r < 3; r++)
    for (int c = 0; c < 3; c++)
      for (int k = 0; k < 3; k++)
        map->linear[r][c] += from_rgb[r][k] * to_rgb[k][c];
}

static int
quantise (double weight)
{
  return (int) floor (weight * (1 << CSFK_CONVERTSCALE_MATRIX_BITS) + 0.5);
}

static int
is_blue_first (const csfk_image *image)
{
  return image->format == CSFK_FORMAT_BGR || image->format == CSFK_FORMAT_BGRx ||
      image->format == CSFK_FORMAT_BGRA;
}

/* Where red, green and blue lie in a pixel; Y'CbCr's components stay in their order. */
static void
set_component_places (const csfk_image *image, int places[3])
{
  places[0] = is_blue_first (image) ? 2 : 0;
  places[1] = 1;
  places[2] = 2 - places[0];
}

/* Rounded so that grey stays grey: the addend follows from the rounded weights, and of R'G'B' the green
 * weight takes what rounding left of the row's sum. */
static void
make_matrix (const csfk_image *in, const csfk_image *out, int matrix[3][4])
{
  const int bits = CSFK_CONVERTSCALE_PLACES + CSFK_CONVERTSCALE_MATRIX_BITS;
  int row_places[3], column_places[3];
  colour_map map;

  make_map (in, out, &map);
  set_component_places (out, row_places);
  set_component_places (in, column_places);
  for (int r = 0; r < 3; r++) {
    const double *exact = map.linear[r];
    int weights[3] = { quantise (exact[0]), quantise (exact[1]), quantise (exact[2]) };
    int *row = matrix[row_places[r]];

    if (is_rgb (in))
      weights[1] = quantise (exact[0] + exact[1] + exact[2]) - weights[0] - weights[2];
    row[3] = (map.after[r] << bits) + (1 << bits >> 1);
    for (int c = 0; c < 3; c++) {
      row[column_places[c]] = weights[c];
      row[3] -= weights[c] * map.before[c] * (1 << CSFK_CONVERTSCALE_PLACES);
    }
  }
}

static void
make_floats (const int (*matrix)[4], int blue_first, csfk_convertscale_floats *floats)
{
  const int bits = CSFK_CONVERTSCALE_PLACES + CSFK_CONVERTSCALE_MATRIX_BITS;
  const float one = 1.0f / (1 << (bits + 8));
  const int first = blue_first ? 1 : 2, third = 3 - first;

  floats->luma = (float) (matrix[0][0] * (1 << CSFK_CONVERTSCALE_PLACES)) * one;
  floats->first = (float) matrix[0][first] * one;
  floats->second_first = (float) matrix[1][first] * one;
  floats->second_third = (float) matrix[1][third] * one;
  floats->third = (float) matrix[2][third] * one;
  for (int i = 0; i < 3; i++)
    floats->addends[i] = ((float) matrix[i][3] + 0.5f) * one;
}

/* ---- the plan -------------------------------------------------------------------------------- */

static int
same_colours (const csfk_image *in, const csfk_image *out)
{
  if (is_rgb (in) || is_rgb (out))
    return is_rgb (in) && is_rgb (out);
  if (has_chroma (in) != has_chroma (out) || in->range != out->range)
    return 0;
  return !has_chroma (in) || (get_matrix (in, out) == get_matrix (out, in) &&
      in->chroma_site == out->chroma_site);
}

static int
has_alpha (int format)
{
  return format == CSFK_FORMAT_RGBA || format == CSFK_FORMAT_BGRA;
}

static void
set_order (const csfk_image *in, const csfk_image *out, int order[4])
{
  int in_places[3], out_places[3];

  set_component_places (in, in_places);
  set_component_places (out, out_places);
  for (int c = 0; c < 3; c++)
    order[out_places[c]] = in_places[c];
  order[3] = has_alpha (in->format) && has_alpha (out->format) ? 3 : 4;
}

/* All planes' rows are aligned to so many bytes, a power of two. */
static int
is_aligned (const csfk_image *image, int first_plane, unsigned bytes)
{
  uintptr_t bits = 0;

  for (int i = first_plane; i < image->n_planes; i++)
    bits |= (uintptr_t) image->plane[i].data | (uintptr_t) image->plane[i].stride;
  return (bits & (bytes - 1)) == 0;
}

/* Y'CbCr of four luma samples: a word, and a word of NV12's chroma or half a word of I420's. */
static int
is_aligned_for_four (const csfk_image *image)
{
  const uintptr_t luma = (uintptr_t) image->plane[0].data | (uintptr_t) image->plane[0].stride;

  return has_chroma (image) && (luma & 3) == 0 &&
      is_aligned (image, 1, image->format == CSFK_FORMAT_NV12 ? 4 : 2);
}

/* All planes' rows are whole numbers of so many bytes. */
static int
has_whole_rows (const csfk_image *image, int bytes)
{
  for (int i = 0; i < image->n_planes; i++)
    if (image->plane[i].row_bytes % bytes != 0)
      return 0;
  return 1;
}

/* Of pictures of the same colours: each plane is another size of its own. */
static int
choose_scaling (const csfk_image *in, const csfk_image *out, const csfk_convertscale_plan *plan)
{
  const int cubic = plan->method == CSFK_CONVERTSCALE_BICUBIC;
  const int half = in->width == 2 * out->width && in->height == 2 * out->height;
  const int twice = out->width == 2 * in->width && out->height == 2 * in->height;
  const csfk_image *smaller = half ? out : in;
  /* Chroma is half or twice its size too. */
  const int two = (half || twice) && (!has_chroma (smaller) ||
      (smaller->width % 2 == 0 && smaller->height % 2 == 0));

  if (plan->task == CSFK_CONVERTSCALE_PACKED ? plan->in_bytes != 4 || plan->out_bytes != 4 :
      in->format != out->format)
    return CSFK_CONVERTSCALE_GENERAL;
  if (two && half && is_aligned (in, 0, 16) && is_aligned (out, 0, 8)) {
    if (!cubic)
      return CSFK_CONVERTSCALE_HALVING;
    if (has_whole_rows (out, 8))
      return CSFK_CONVERTSCALE_BY_TWO;
  }
  if (two && twice && is_aligned (in, 0, 4) && is_aligned (out, 0, 8) && has_whole_rows (out, 8))
    return CSFK_CONVERTSCALE_BY_TWO;
  if (!cubic && in->width <= out->width && is_aligned (in, 0, 4) && is_aligned (out, 0, 4) &&
      has_whole_rows (in, 4) && has_whole_rows (out, 4))
    return CSFK_CONVERTSCALE_WIDENING;
  return CSFK_CONVERTSCALE_GENERAL;
}

static int
choose_short_cut (const csfk_image *in, const csfk_image *out, const csfk_convertscale_plan *plan)
{
  const int same_size = in->width == out->width && in->height == out->height;
  const int in_words = plan->in_bytes == 4 && is_aligned (in, 0, 16);
  const int out_words = plan->out_bytes == 4 && is_aligned (out, 0, 16);

  if (plan->task == CSFK_CONVERTSCALE_COLOUR && same_size) {
    if ((in_words && is_aligned_for_four (out) && !plan->cosited_y) ||
        (out_words && is_aligned_for_four (in)))
      return CSFK_CONVERTSCALE_SAME_SIZE;
  } else if (plan->task == CSFK_CONVERTSCALE_PACKED && same_size) {
    if (in_words && out_words)
      return CSFK_CONVERTSCALE_SAME_SIZE;
  } else if (plan->task == CSFK_CONVERTSCALE_PACKED || plan->task == CSFK_CONVERTSCALE_PLANES) {
    return choose_scaling (in, out, plan);
  }
  return CSFK_CONVERTSCALE_GENERAL;
}

static void
make_plan (const csfk_image *in, const csfk_image *out, int method, csfk_convertscale_plan *plan)
{
  const int in_rgb = is_rgb (in), out_rgb = is_rgb (out);

  memset (plan, 0, sizeof *plan);
  plan->method = method;
  plan->in_bytes = in_rgb ? csfk_format_get_info (in->format)->pixel_bytes : 0;
  plan->out_bytes = out_rgb ? csfk_format_get_info (out->format)->pixel_bytes : 0;
  plan->x = make_axis (in->width, out->width);
  plan->y = make_axis (in->height, out->height);
  if (!same_colours (in, out)) {
    plan->task = CSFK_CONVERTSCALE_COLOUR;
    plan->chroma_x = make_chroma_axis (in->width, out->width,
        in->chroma_site != CSFK_CHROMA_SITE_CENTER);
    plan->chroma_y = make_chroma_axis (in->height, out->height,
        in->chroma_site == CSFK_CHROMA_SITE_TOP_LEFT);
    plan->cosited_x = out->chroma_site != CSFK_CHROMA_SITE_CENTER;
    plan->cosited_y = out->chroma_site == CSFK_CHROMA_SITE_TOP_LEFT;
    make_matrix (in, out, plan->matrix);
    if (out_rgb)
      make_floats ((const int (*)[4]) plan->matrix, is_blue_first (out), &plan->floats);
  } else if (in->format == out->format && in->width == out->width && in->height == out->height) {
    plan->task = CSFK_CONVERTSCALE_COPY;
  } else if (in_rgb) {
    plan->task = CSFK_CONVERTSCALE_PACKED;
    set_order (in, out, plan->order);
  } else {
    plan->task = CSFK_CONVERTSCALE_PLANES;
    plan->chroma_x = make_axis ((in->width + 1) / 2, (out->width + 1) / 2);
    plan->chroma_y = make_axis ((in->height + 1) / 2, (out->height + 1) / 2);
  }
  plan->fast = choose_short_cut (in, out, plan);
}

/* ---- the table entry ------------------------------------------------------------------------- */

static void
process (const csfk_frame *frame, const void *data)
{
  const csfk_convertscale_params *params = data;
  csfk_convertscale_plan plan;

  make_plan (&frame->in, &frame->out, params->method, &plan);
  csfk_convertscale_run (frame, &plan);
}

static unsigned
divide_up (unsigned value, unsigned by)
{
  return (value + by - 1) / by;
}

/* What one thread makes, and how many of them side by side. */
static csfk_dim
get_grid (const csfk_frame *frame, const csfk_convertscale_plan *plan, csfk_dim block)
{
  unsigned width = (unsigned) frame->out.width, height = (unsigned) frame->out.height;
  unsigned pixels = CSFK_CONVERTSCALE_PIXELS, rows = CSFK_CONVERTSCALE_ROWS, z = 1;

  if (plan->task == CSFK_CONVERTSCALE_COPY) {
    width = (unsigned) frame->out.plane[0].row_bytes;
    pixels = 16;
    rows = CSFK_CONVERTSCALE_FAST_ROWS;
    z = (unsigned) frame->out.n_planes;
  } else if (plan->fast == CSFK_CONVERTSCALE_HALVING || plan->fast == CSFK_CONVERTSCALE_BY_TWO) {
    width = (unsigned) frame->out.plane[0].row_bytes;
    pixels = 8;
    z = (unsigned) frame->out.n_planes;
    if (frame->out.height > frame->in.height) {
      height = (unsigned) frame->in.height + 1;
      rows = plan->method == CSFK_CONVERTSCALE_BICUBIC ? CSFK_CONVERTSCALE_CUBIC_GAPS :
          CSFK_CONVERTSCALE_LINEAR_GAPS;
    }
  } else if (plan->fast == CSFK_CONVERTSCALE_WIDENING) {
    width = (unsigned) frame->out.plane[0].row_bytes;
    rows = CSFK_CONVERTSCALE_FAST_ROWS;
    z = (unsigned) frame->out.n_planes;
  } else if (plan->fast == CSFK_CONVERTSCALE_SAME_SIZE) {
    rows = CSFK_CONVERTSCALE_FAST_ROWS;
  } else if (plan->task == CSFK_CONVERTSCALE_PLANES && has_chroma (&frame->out)) {
    z = 2;
  }
  return (csfk_dim) {
    divide_up (width, block.x * pixels), divide_up (height, block.y * rows), z
  };
}

static int
enqueue (const csfk_frame *frame, const void *params, csfk_launcher *launcher)
{
  csfk_convertscale_args args = { .frame = *frame };
  csfk_dim block = { CSFK_CONVERTSCALE_BLOCK_X, CSFK_CONVERTSCALE_BLOCK_Y, 1 };

  memcpy (&args.params, params, sizeof args.params);
  make_plan (&frame->in, &frame->out, args.params.method, &args.plan);
  if (args.plan.fast == CSFK_CONVERTSCALE_BY_TWO)
    block.y = CSFK_CONVERTSCALE_SMALL_BLOCK_Y;
  return launcher->launch (launcher, "csfk_convertscale", get_grid (frame, &args.plan, block), block,
      0, &args, sizeof args);
}

static const char *const methods[] = {
  [CSFK_CONVERTSCALE_BILINEAR] = "bilinear",
  [CSFK_CONVERTSCALE_BICUBIC] = "bicubic",
  NULL
};

static const csfk_param params_of[] = {
  {
    .name = "method",
    .type = CSFK_TYPE_ENUM,
    .offset = offsetof (csfk_convertscale_params, method),
    .unit = "",
    .description = "Interpolation: of 2 x 2 or of 4 x 4 samples",
    .values = methods
  },
};

#define FORMATS \
  CSFK_FORMAT_NV12, CSFK_FORMAT_I420, CSFK_FORMAT_RGBA, CSFK_FORMAT_BGRA, CSFK_FORMAT_RGBx, \
  CSFK_FORMAT_BGRx, CSFK_FORMAT_RGB, CSFK_FORMAT_BGR, CSFK_FORMAT_GRAY8, CSFK_FORMAT_NONE

const csfk_kernel csfk_convertscale = {
  .abi = CSFK_ABI,
  .flags = CSFK_RESIZES,
  .name = "convertscale",
  .description = "Scales each frame to another size and converts it to another format",
  .formats = { FORMATS },
  .out_formats = { FORMATS },
  .params = params_of,
  .n_params = sizeof params_of / sizeof params_of[0],
  .params_size = sizeof (csfk_convertscale_params),
  .process = process,
  .enqueue = enqueue,
  .device_code = &csfk_blob_convertscale,
};

_Static_assert (sizeof (csfk_convertscale_args) < 4096, "the argument does not fit a launch");
