/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* motiondetect: a background of the luma that learns, and a mask of what differs from it.  The
 * plain C path, the derived parameters and the launch; the device code is in motiondetect.cu,
 * written apart from this so that each checks the other.  Knows kernel.h, format.h and libc only.
 *
 * Luma l and background b are numbers of 16 bits: 8-bit luma times 256, 10-bit luma times 64, of
 * R'G'B' 54 R + 183 G + 19 B, which is BT.709's in 256ths.  The first frame becomes the background.
 * After that, with the background of the frame before,
 *
 *   a pixel seems to move where |l - b - light| > 256 * threshold
 *   it moves where most (5) of the 3 x 3 pixels round it seem to; borders replicated (the last
 *     visible pixel in a padded YUY2 or UYVY pair)
 *   b' = b + (l - b) * (2 * half_rate + 1) / 131072, rounded to nearest
 *   light' = light + mean of (l - b - light), each limited to +- 256 * threshold, rounded down
 *
 * `light` follows what the whole picture has become brighter or darker by, as when a camera's
 * exposure gives way to a white car: within a few frames, while the background needs many.  Things
 * that move hardly touch it, however much they differ, because each pixel's part is limited.  Its
 * mean is of four rows in every 32.
 *
 * half_rate is `learning` for a pixel that does not seem to move and a 128th of it for one that
 * does: what stops for a while leaves no trace in the background, yet what stays, a parked car or a
 * lamp switched on, becomes background in the end: D steps off, after
 * 128 * ln (D / threshold) / learning frames.  In the first 1 / learning frames all pixels are
 * averaged evenly, so that what happened to be there at first is not kept for long; with learning 0
 * the first frame stays the background.
 * The odd number of 131072ths and |l - b| < 65536 exclude halves, so rounding to nearest has one
 * meaning, and a rate that tends to 1 gives b' = l.
 *
 * The mask is white where something moves and black elsewhere, chroma neutral, alpha and the unused
 * byte carried over.
 *
 * The records are the moving regions.  A grid of square cells lies on the picture from its top left
 * corner; motiondetect.h says how large they are.  A cell moves when at least a 16th of its pixels
 * do, those outside the picture counted as still.  A region is all moving cells that hang together,
 * by a corner at least, and its moving pixels are theirs: their number is its area and its score,
 * the smallest box round them its place, and area / (width * height of the box) its confidence.
 * Regions of less than the least area are left out.  Cells make one region of a person whose belt
 * or hair looks like what is behind, and leave out single pixels between.
 */
#include "motiondetect.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "../format.h"
#include "../simd.h"

extern const csfk_blob csfk_blob_motiondetect;

enum
{
  /* Pixels worked on at a time: their rows stay in the L1 cache. */
  STRIP = 512
};

static unsigned long
get_background_bytes (const csfk_image *image)
{
  return (unsigned long) CSFK_MOTIONDETECT_STATE_STRIDE (image->width) *
      (unsigned long) image->height;
}

static unsigned long
state_size (const csfk_kernel *kernel, const csfk_image *in, const csfk_image *out)
{
  return CSFK_MOTIONDETECT_LIGHT_BYTES + 2 * get_background_bytes (in);
}

/* The C path's workspace begins with a byte for each 8 pixels of a column, the topmost in the
 * lowest bit.  They lie side by side, so that 8 of them are a square; this many in a row. */
static size_t
get_bits_stride (const csfk_image *image)
{
  return ((size_t) image->width + 7) / 8 * 8;
}

static unsigned
count_along (int length, unsigned cell_shift)
{
  return (unsigned) (((long) length + (1l << cell_shift) - 1) >> cell_shift);
}

static unsigned
choose_cell_shift (const csfk_image *image)
{
  unsigned shift = CSFK_MOTIONDETECT_SMALLEST_SHIFT;

  while ((unsigned long) count_along (image->width, shift) * count_along (image->height, shift) >
      CSFK_MOTIONDETECT_MOST_CELLS)
    shift++;
  return shift;
}

static unsigned long
workspace_size (const csfk_kernel *kernel, const csfk_image *in, const csfk_image *out)
{
  const unsigned shift = choose_cell_shift (in);

  return CSFK_MOTIONDETECT_BITS_BYTES (in->width, in->height) +
      (unsigned long) count_along (in->width, shift) * count_along (in->height, shift) *
      CSFK_MOTIONDETECT_CELL_BYTES;
}

/* ---- luma in, mask out ----------------------------------------------------------------------- */

static CSFK_ALWAYS_INLINE void
load_bytes (const unsigned char *restrict from, int pitch, int n, uint16_t *restrict luma)
{
  for (int i = 0; i < n; i++)
    luma[i] = (uint16_t) (from[i * pitch] << 8);
}

/* Two bytes a sample, read apart: the row may start at an odd address. */
static CSFK_ALWAYS_INLINE void
load_tens (const unsigned char *restrict from, int n, uint16_t *restrict luma)
{
  for (int i = 0; i < n; i++)
    luma[i] = (uint16_t) ((from[2 * i] & 0xc0) | from[2 * i + 1] << 8);
}

static CSFK_ALWAYS_INLINE void
load_pixels (const unsigned char *restrict from, int pitch, int red, int blue, int n,
    uint16_t *restrict luma)
{
  for (int i = 0; i < n; i++)
    luma[i] = (uint16_t) (54 * from[i * pitch + red] + 183 * from[i * pitch + 1] +
        19 * from[i * pitch + blue]);
}

static CSFK_ALWAYS_INLINE void
load_luma (const unsigned char *row, int format, int x, int n, uint16_t *luma)
{
  switch (format) {
    case CSFK_FORMAT_YUY2:
      load_bytes (row + 2 * (ptrdiff_t) x, 2, n, luma);
      break;
    case CSFK_FORMAT_UYVY:
      load_bytes (row + 2 * (ptrdiff_t) x + 1, 2, n, luma);
      break;
    case CSFK_FORMAT_P010_10LE:
      load_tens (row + 2 * (ptrdiff_t) x, n, luma);
      break;
    case CSFK_FORMAT_RGB:
      load_pixels (row + 3 * (ptrdiff_t) x, 3, 0, 2, n, luma);
      break;
    case CSFK_FORMAT_BGR:
      load_pixels (row + 3 * (ptrdiff_t) x, 3, 2, 0, n, luma);
      break;
    case CSFK_FORMAT_RGBx:
    case CSFK_FORMAT_RGBA:
      load_pixels (row + 4 * (ptrdiff_t) x, 4, 0, 2, n, luma);
      break;
    case CSFK_FORMAT_BGRx:
    case CSFK_FORMAT_BGRA:
      load_pixels (row + 4 * (ptrdiff_t) x, 4, 2, 0, n, luma);
      break;
    default:
      load_bytes (row + x, 1, n, luma);
  }
}

/* Y'CbCr in pairs, and 10-bit luma: two bytes a pixel, one of which tells what moves. */
static CSFK_ALWAYS_INLINE void
store_twos (unsigned char *restrict to, int first, int n, const uint8_t *restrict luma,
    uint8_t other)
{
  for (int i = 0; i < n; i++) {
    to[2 * i] = first ? luma[i] : other;
    to[2 * i + 1] = first ? other : luma[i];
  }
}

static CSFK_ALWAYS_INLINE void
store_tens (unsigned char *restrict to, int n, const uint8_t *restrict luma)
{
  for (int i = 0; i < n; i++) {
    /* Full range: 1023 has its lowest bits set as well. */
    to[2 * i] = luma[i] == 255 ? 0xc0 : 0;
    to[2 * i + 1] = luma[i];
  }
}

static CSFK_ALWAYS_INLINE void
store_threes (unsigned char *restrict to, int n, const uint8_t *restrict luma)
{
  for (int i = 0; i < n; i++)
    to[3 * i] = to[3 * i + 1] = to[3 * i + 2] = luma[i];
}

static CSFK_ALWAYS_INLINE void
store_fours (unsigned char *restrict to, const unsigned char *restrict in, int n,
    const uint8_t *restrict luma)
{
  for (int i = 0; i < n; i++) {
    to[4 * i] = to[4 * i + 1] = to[4 * i + 2] = luma[i];
    to[4 * i + 3] = in[4 * i + 3];
  }
}

/* luma: 8-bit black or white.  in: the same row's input, for what is carried over. */
static CSFK_ALWAYS_INLINE void
store_mask (unsigned char *row, const unsigned char *in, int format, int x, int n,
    const uint8_t *luma)
{
  switch (format) {
    case CSFK_FORMAT_YUY2:
      store_twos (row + 2 * (ptrdiff_t) x, 1, n, luma, 128);
      break;
    case CSFK_FORMAT_UYVY:
      store_twos (row + 2 * (ptrdiff_t) x, 0, n, luma, 128);
      break;
    case CSFK_FORMAT_P010_10LE:
      store_tens (row + 2 * (ptrdiff_t) x, n, luma);
      break;
    case CSFK_FORMAT_RGB:
    case CSFK_FORMAT_BGR:
      store_threes (row + 3 * (ptrdiff_t) x, n, luma);
      break;
    case CSFK_FORMAT_RGBx:
    case CSFK_FORMAT_RGBA:
    case CSFK_FORMAT_BGRx:
    case CSFK_FORMAT_BGRA:
      store_fours (row + 4 * (ptrdiff_t) x, in + 4 * (ptrdiff_t) x, n, luma);
      break;
    default:
      memcpy (row + x, luma, (size_t) n);
  }
}

/* ---- one row --------------------------------------------------------------------------------- */

/* What seems to move, 1 or 0, and the background that follows. */
static CSFK_ALWAYS_INLINE void
learn_row (const uint16_t *restrict luma, const uint16_t *restrict background, int n,
    const csfk_motiondetect_params *params, int light, uint8_t *restrict moving,
    uint16_t *restrict learnt)
{
  const int threshold = params->threshold * 256;
  const uint16_t still_rate = (uint16_t) params->half_rate[0];
  const uint16_t moving_rate = (uint16_t) params->half_rate[1];

  for (int i = 0; i < n; i++) {
    uint16_t up = (uint16_t) (luma[i] - background[i]);
    uint16_t down = (uint16_t) (background[i] - luma[i]);
    uint16_t difference = luma[i] > background[i] ? up : down;
    int change = luma[i] - background[i] - light;
    int moves = (change < 0 ? -change : change) > threshold;
    uint16_t rate = moves ? moving_rate : still_rate;
    /* Twice the rate plus one, the half that rounds, and the division by 131072, all halved so
     * that 32 bits hold them. */
    uint32_t product = (uint32_t) difference * rate + ((difference + 65536u) >> 1);
    uint16_t step = (uint16_t) (product >> 16);

    moving[i] = (uint8_t) moves;
    learnt[i] = (uint16_t) (luma[i] > background[i] ? background[i] + step
        : background[i] - step);
  }
}

static CSFK_ALWAYS_INLINE int
sum_changes (const uint16_t *restrict luma, const uint16_t *restrict background, int n,
    int threshold, int light)
{
  int sum = 0;

  for (int i = 0; i < n; i++) {
    int change = luma[i] - background[i] - light;

    change = change > threshold ? threshold : change;
    sum += change < -threshold ? -threshold : change;
  }
  return sum;
}

/* What moves, 255 or 0.  The rows begin one pixel left of the first result. */
static CSFK_ALWAYS_INLINE void
vote_row (const uint8_t *restrict above, const uint8_t *restrict here,
    const uint8_t *restrict below, int n, uint8_t *restrict moves)
{
  uint8_t down[STRIP + 2];

  for (int i = 0; i < n + 2; i++)
    down[i] = (uint8_t) (above[i] + here[i] + below[i]);
  for (int i = 0; i < n; i++)
    moves[i] = (uint8_t) (down[i] + down[i + 1] + down[i + 2]) >= 5 ? 255 : 0;
}

/* Takes note of what moves among the visible pixels, and makes the mask's luma of it. */
static CSFK_ALWAYS_INLINE void
note_row (uint8_t *restrict moves, int n, int n_visible, uint8_t bit, uint8_t black, uint8_t white,
    uint8_t *restrict bits)
{
  for (int i = 0; i < n_visible; i++)
    bits[i] = (uint8_t) (bits[i] | (moves[i] & bit));
  for (int i = 0; i < n; i++)
    moves[i] = moves[i] ? white : black;
}

/* ---- a frame --------------------------------------------------------------------------------- */

/* What a frame is compared with. */
typedef struct frame_work
{
  const csfk_frame *frame;
  csfk_motiondetect_params params;      /* with the rates of this frame */
  const unsigned char *background;
  unsigned char *learnt;
  uint8_t *bits;
  int light;
} frame_work;

/* Pixels x - 1 .. x + n of row y: what seems to move, those outside the picture taken from the
 * nearest inside.  Those inside the strip learn; their changes' sum is returned. */
static CSFK_ALWAYS_INLINE int
look_at_row (const frame_work *work, int x, int n, int y, uint8_t *moving)
{
  const csfk_image *in = &work->frame->in;
  const size_t row = (size_t) CSFK_MOTIONDETECT_STATE_STRIDE (in->width) * (size_t) y;
  int first = x > 0 ? x - 1 : 0;
  int end = x + n + 1 < in->width ? x + n + 1 : in->width;
  int skip = first - (x - 1), count = end - first, inside = x - first;
  int n_visible = x + n < in->width ? n : in->width - x;
  uint16_t luma[STRIP + 2], background[STRIP + 2], learnt[STRIP + 2];

  load_luma (in->plane[0].data + (ptrdiff_t) y * in->plane[0].stride, in->format, first, count,
      luma);
  if (work->frame->state_frames > 0)
    memcpy (background, work->background + row + sizeof luma[0] * (size_t) first,
        sizeof luma[0] * (size_t) count);
  else
    memcpy (background, luma, sizeof luma[0] * (size_t) count);
  learn_row (luma, background, count, &work->params, work->light, moving + skip, learnt);
  memcpy (work->learnt + row + sizeof luma[0] * (size_t) x, learnt + inside,
      sizeof luma[0] * (size_t) n_visible);
  if (skip > 0)
    moving[0] = moving[1];
  for (int i = skip + count; i < n + 2; i++)
    moving[i] = moving[i - 1];
  if (y / CSFK_MOTIONDETECT_LIGHT_ROWS % CSFK_MOTIONDETECT_LIGHT_EVERY != 0)
    return 0;
  return sum_changes (luma + inside, background + inside, n_visible, work->params.threshold * 256,
      work->light);
}

/* Returns the sum of the changes that tell of the light. */
static CSFK_ALWAYS_INLINE int64_t
process_luma_body (const frame_work *work)
{
  const csfk_image *image = &work->frame->in;
  const csfk_plane *in = &image->plane[0], *out = &work->frame->out.plane[0];
  const int pairs = image->format == CSFK_FORMAT_YUY2 || image->format == CSFK_FORMAT_UYVY;
  const int columns = pairs ? out->row_bytes / 2 : image->width;
  const int limited = image->range == CSFK_RANGE_LIMITED;
  const size_t bits_stride = get_bits_stride (image);
  uint8_t moving[3][STRIP + 2], luma[STRIP];
  int64_t sum = 0;

  memset (work->bits, 0, CSFK_MOTIONDETECT_BITS_BYTES (image->width, image->height));
  for (int x = 0; x < columns; x += STRIP) {
    int n = columns - x < STRIP ? columns - x : STRIP;
    int n_visible = x + n < image->width ? n : image->width - x;

    for (int y = -1; y < in->rows; y++) {
      const uint8_t *here = moving[(y + 3) % 3];
      const uint8_t *above = y > 0 ? moving[(y + 2) % 3] : here;
      const uint8_t *below = y + 1 < in->rows ? moving[(y + 1) % 3] : here;

      if (y + 1 < in->rows)
        sum += look_at_row (work, x, n, y + 1, moving[(y + 1) % 3]);
      if (y < 0)
        continue;
      vote_row (above, here, below, n, luma);
      note_row (luma, n, n_visible, (uint8_t) (1 << y % 8), limited ? 16 : 0, limited ? 235 : 255,
          work->bits + (size_t) (y / 8) * bits_stride + (size_t) x);
      if (work->params.show == CSFK_MOTIONDETECT_MASK)
        store_mask (out->data + (ptrdiff_t) y * out->stride,
            in->data + (ptrdiff_t) y * in->stride, image->format, x, n, luma);
    }
  }
  return sum;
}

static int64_t
process_luma (const frame_work *work)
{
  return process_luma_body (work);
}

#if CSFK_TWO_TARGETS
CSFK_TARGET_AVX2 static int64_t
process_luma_avx2 (const frame_work *work)
{
  return process_luma_body (work);
}
#else
#define process_luma_avx2 process_luma
#endif

static void
fill_neutral (const csfk_plane *out, int tens)
{
  for (int y = 0; y < out->rows; y++) {
    unsigned char *row = out->data + (ptrdiff_t) y * out->stride;

    memset (row, 128, (size_t) out->row_bytes);
    for (int b = 0; tens && b < out->row_bytes; b += 2)
      row[b] = 0;
  }
}

/* The rates of this frame. */
static void
choose_rates (const csfk_frame *frame, csfk_motiondetect_params *params)
{
  unsigned even = frame->state_frames < 65536 ? 65536 / (frame->state_frames + 1) : 0;

  if (params->half_rate[0] > 0 && even > params->half_rate[0])
    params->half_rate[0] = params->half_rate[1] = even < 65535 ? even : 65535;
}

static float
get_light_share (const csfk_image *in)
{
  const int rows = CSFK_MOTIONDETECT_LIGHT_ROWS, all = rows * CSFK_MOTIONDETECT_LIGHT_EVERY;
  int more = in->height % all < rows ? in->height % all : rows;

  return 1.0f / ((float) (in->height / all * rows + more) * (float) in->width);
}

static int
follow_light (const csfk_motiondetect_light *before, float share)
{
  int light = before->light + (int) floorf ((float) before->sum * share);

  if (light < -CSFK_MOTIONDETECT_MOST_LIGHT)
    return -CSFK_MOTIONDETECT_MOST_LIGHT;
  return light > CSFK_MOTIONDETECT_MOST_LIGHT ? CSFK_MOTIONDETECT_MOST_LIGHT : light;
}

static void
process (const csfk_frame *frame, const void *data)
{
  const csfk_motiondetect_params *params = data;
  const int mask = params->show == CSFK_MOTIONDETECT_MASK;
  const unsigned n = frame->state_frames;
  const size_t background_bytes = get_background_bytes (&frame->in);
  csfk_motiondetect_light *lights = frame->state;
  unsigned char *backgrounds = (unsigned char *) frame->state + CSFK_MOTIONDETECT_LIGHT_BYTES;
  frame_work work = {
    .frame = frame,
    .params = *params,
    .background = backgrounds + (n & 1 ? 0 : background_bytes),
    .learnt = backgrounds + (n & 1 ? background_bytes : 0),
    .bits = frame->workspace,
    .light = follow_light (&lights[(n + 3) & 3], get_light_share (&frame->in)),
  };

  choose_rates (frame, &work.params);
  lights[n & 3].light = work.light;
  lights[n & 3].sum = (csfk_has_avx2 () ? process_luma_avx2 : process_luma) (&work);
  for (int i = mask ? 1 : 0; i < frame->out.n_planes; i++) {
    if (mask)
      fill_neutral (&frame->out.plane[i], frame->in.format == CSFK_FORMAT_P010_10LE);
    else
      csfk_plane_copy (&frame->out.plane[i], &frame->in.plane[i]);
  }
}

/* ---- moving regions -------------------------------------------------------------------------- */

/* A cell, or what was found so far of a region: its moving pixels and the box round them, right and
 * bottom not in it. */
typedef struct patch
{
  unsigned area;
  int left, top, right, bottom;
} patch;

typedef struct cell_grid
{
  unsigned columns, rows;
  patch *cells;                 /* area 0: it does not move, or not any more */
  unsigned *waiting;            /* room for all cells' numbers */
} cell_grid;

_Static_assert (sizeof (patch) + sizeof (unsigned) <= CSFK_MOTIONDETECT_CELL_BYTES,
    "a cell has its place in the workspace");

static void
add_patch (patch *to, const patch *more)
{
  to->left = more->left < to->left ? more->left : to->left;
  to->top = more->top < to->top ? more->top : to->top;
  to->right = more->right > to->right ? more->right : to->right;
  to->bottom = more->bottom > to->bottom ? more->bottom : to->bottom;
  to->area += more->area;
}

/* Adds 8 columns of 8 pixels, not all still. */
static void
add_square (patch *to, const uint8_t *bits, int x, int y)
{
  for (int i = 0; i < 8; i++) {
    const unsigned column = bits[i];
    patch more = { (unsigned) __builtin_popcount (column), x + i, y, x + i + 1, y };

    if (column == 0)
      continue;
    more.top += __builtin_ctz (column);
    more.bottom += 32 - __builtin_clz (column);
    add_patch (to, &more);
  }
}

static cell_grid
make_grid (const csfk_frame *frame)
{
  const csfk_image *in = &frame->in;
  const uint8_t *bits = frame->workspace;
  const unsigned shift = choose_cell_shift (in);
  const patch empty = { 0, in->width, in->height, 0, 0 };
  cell_grid made = {
    .columns = count_along (in->width, shift),
    .rows = count_along (in->height, shift),
    .cells = (patch *) (void *) ((uint8_t *) frame->workspace +
        CSFK_MOTIONDETECT_BITS_BYTES (in->width, in->height)),
  };
  const size_t n = (size_t) made.columns * made.rows;

  made.waiting = (unsigned *) (made.cells + n);
  for (size_t i = 0; i < n; i++)
    made.cells[i] = empty;
  for (int y = 0; y < in->height; y += 8) {
    patch *row = made.cells + ((size_t) y >> shift) * made.columns;

    for (int x = 0; x < in->width; x += 8, bits += 8) {
      uint64_t square;

      memcpy (&square, bits, sizeof square);
      if (square != 0)
        add_square (&row[(unsigned) x >> shift], bits, x, y);
    }
  }
  for (size_t i = 0; i < n; i++)
    if (made.cells[i].area < CSFK_MOTIONDETECT_CELL_LEAST (shift))
      made.cells[i].area = 0;
  return made;
}

/* What hangs together with this moving cell; none of it moves then any more. */
static patch
take_region (cell_grid *grid, unsigned first)
{
  patch found = grid->cells[first];
  size_t n_waiting = 0;

  grid->cells[first].area = 0;
  grid->waiting[n_waiting++] = first;
  while (n_waiting > 0) {
    const unsigned at = grid->waiting[--n_waiting];
    const unsigned column = at % grid->columns, row = at / grid->columns;

    for (unsigned y = row > 0 ? row - 1 : 0; y <= row + 1 && y < grid->rows; y++)
      for (unsigned x = column > 0 ? column - 1 : 0; x <= column + 1 && x < grid->columns; x++) {
        patch *cell = &grid->cells[y * grid->columns + x];

        if (cell->area == 0)
          continue;
        add_patch (&found, cell);
        cell->area = 0;
        grid->waiting[n_waiting++] = y * grid->columns + x;
      }
  }
  return found;
}

static unsigned
choose_least_area (const csfk_image *in, const csfk_motiondetect_params *params)
{
  unsigned long share = (unsigned long) in->width * (unsigned long) in->height /
      CSFK_MOTIONDETECT_AREA_SHARE;

  return params->min_area > 0 ? (unsigned) params->min_area : (unsigned) share;
}

static void
collect (const csfk_frame *frame, const void *data)
{
  const unsigned least_area = choose_least_area (&frame->in, data);
  cell_grid grid = make_grid (frame);

  for (unsigned i = 0; i < grid.columns * grid.rows; i++) {
    csfk_object *to;
    patch found;

    if (grid.cells[i].area == 0)
      continue;
    found = take_region (&grid, i);
    if (found.area < least_area || (to = csfk_append (&frame->records)) == NULL)
      continue;
    to->x = (float) found.left;
    to->y = (float) found.top;
    to->width = (float) (found.right - found.left);
    to->height = (float) (found.bottom - found.top);
    to->confidence = (float) found.area / (to->width * to->height);
    to->label = 0;
    to->track_id = -1;
    to->score = (float) found.area;
  }
}

/* ---- parameters and launch ------------------------------------------------------------------- */

static unsigned
get_half_rate (double share)
{
  double half_rate = share * 65536.0;

  return half_rate < 65535.0 ? (unsigned) half_rate : 65535;
}

static void
resolve (void *data)
{
  csfk_motiondetect_params *params = data;

  params->half_rate[0] = get_half_rate ((double) params->learning);
  params->half_rate[1] = get_half_rate ((double) params->learning / CSFK_MOTIONDETECT_SLOWER);
}

static unsigned
divide_up (unsigned value, unsigned by)
{
  return (value + by - 1) / by;
}

static int
enqueue (const csfk_frame *frame, const void *params, csfk_launcher *launcher)
{
  static const unsigned pixel_bytes_of[CSFK_N_FORMATS] = {
    [CSFK_FORMAT_GRAY8] = 1, [CSFK_FORMAT_NV12] = 1, [CSFK_FORMAT_I420] = 1,
    [CSFK_FORMAT_YUY2] = 2, [CSFK_FORMAT_UYVY] = 2, [CSFK_FORMAT_P010_10LE] = 2,
    [CSFK_FORMAT_RGB] = 3, [CSFK_FORMAT_BGR] = 3,
    [CSFK_FORMAT_RGBx] = 4, [CSFK_FORMAT_BGRx] = 4, [CSFK_FORMAT_RGBA] = 4, [CSFK_FORMAT_BGRA] = 4,
  };
  const unsigned pixel_bytes = pixel_bytes_of[frame->in.format];
  const unsigned pixels = divide_up ((unsigned) frame->in.plane[0].row_bytes, pixel_bytes);
  csfk_motiondetect_args args = { .frame = *frame };
  csfk_dim block = { CSFK_MOTIONDETECT_BLOCK_X, CSFK_MOTIONDETECT_BLOCK_Y, 1 };
  csfk_dim grid = {
    divide_up (pixels, CSFK_MOTIONDETECT_LANES * CSFK_MOTIONDETECT_PIXELS (pixel_bytes)),
    divide_up ((unsigned) frame->in.height, CSFK_MOTIONDETECT_BLOCK_Y * CSFK_MOTIONDETECT_ROWS),
    (unsigned) frame->in.n_planes
  };

  memcpy (&args.params, params, sizeof args.params);
  choose_rates (frame, &args.params);
  args.light_share = get_light_share (&frame->in);
  return launcher->launch (launcher, "csfk_motiondetect", grid, block, 0, &args, sizeof args);
}

static int
emit (const csfk_frame *frame, const void *params, csfk_launcher *launcher)
{
  const unsigned shift = choose_cell_shift (&frame->in);
  const unsigned lanes = 1u << shift < 256 ? 1u << shift >> 3 : 32;
  csfk_motiondetect_args args = {
    .frame = *frame,
    .cell_shift = shift,
    .columns = count_along (frame->in.width, shift),
    .rows = count_along (frame->in.height, shift),
    .least_area = choose_least_area (&frame->in, params),
  };
  const csfk_dim block = { 32, CSFK_MOTIONDETECT_CELLS_Y, 1 }, one = { 1, 1, 1 };
  const csfk_dim grid = {
    divide_up (args.columns, 32 / lanes), divide_up (args.rows, CSFK_MOTIONDETECT_CELLS_Y), 1
  };
  const csfk_dim threads = { CSFK_MOTIONDETECT_REGION_THREADS, 1, 1 };
  int failed;

  memcpy (&args.params, params, sizeof args.params);
  failed = launcher->launch (launcher, "csfk_motiondetect_cells", grid, block, 0, &args,
      sizeof args);
  if (failed)
    return failed;
  return launcher->launch (launcher, "csfk_motiondetect_emit", one, threads,
      args.columns * args.rows * (unsigned) sizeof (unsigned), &args, sizeof args);
}

static const char *const show_values[] = { "mask", "frame", NULL };

static const csfk_param params_of[] = {
  {
    "threshold", CSFK_TYPE_INT, offsetof (csfk_motiondetect_params, threshold), 1, 255, 25,
    "8-bit steps", "Difference of luma from the background that counts as motion"
  },
  {
    "learning", CSFK_TYPE_FLOAT, offsetof (csfk_motiondetect_params, learning), 0, 1, 0.02, "",
    "Share of each new frame in the background; a 128th of it where something moves"
  },
  {
    "show", CSFK_TYPE_ENUM, offsetof (csfk_motiondetect_params, show), 0, 0,
    CSFK_MOTIONDETECT_MASK, "", "The output: a mask of what moves, or the frame unchanged",
    show_values
  },
  {
    "min-area", CSFK_TYPE_INT, offsetof (csfk_motiondetect_params, min_area), 0, 1 << 30, 0,
    "pixels",
    "Leaves out moving regions of fewer moving pixels; 0: of less than a 400th of the picture"
  },
};

static const char *const labels[] = { "motion", NULL };

const csfk_kernel csfk_motiondetect = {
  .abi = CSFK_ABI,
  .name = "motiondetect",
  .description = "Shows what moves: a mask of the luma that differs from a learnt background",
  .formats = {
    CSFK_FORMAT_NV12, CSFK_FORMAT_I420, CSFK_FORMAT_YUY2, CSFK_FORMAT_UYVY, CSFK_FORMAT_P010_10LE,
    CSFK_FORMAT_RGBA, CSFK_FORMAT_BGRA, CSFK_FORMAT_RGBx, CSFK_FORMAT_BGRx, CSFK_FORMAT_RGB,
    CSFK_FORMAT_BGR, CSFK_FORMAT_GRAY8, CSFK_FORMAT_NONE
  },
  .params = params_of,
  .n_params = sizeof params_of / sizeof params_of[0],
  .params_size = sizeof (csfk_motiondetect_params),
  .state_size = state_size,
  .workspace_size = workspace_size,
  .resolve = resolve,
  .process = process,
  .enqueue = enqueue,
  .record_size = sizeof (csfk_object),
  .record_kind = CSFK_RECORD_OBJECT,
  .record_name = "moving-region",
  .labels = labels,
  .collect = collect,
  .emit = emit,
  .device_code = &csfk_blob_motiondetect,
};

_Static_assert (4 * sizeof (csfk_motiondetect_light) <= CSFK_MOTIONDETECT_LIGHT_BYTES,
    "the light has its place in the state");
_Static_assert (sizeof (csfk_motiondetect_params) <= CSFK_MAX_PARAMS,
    "the parameters do not fit a slot");
