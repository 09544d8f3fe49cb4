/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* anonymize: makes what the regions mark unrecognisable.  The plain C path and the launches; the
 * device code is in anonymize.cu, written apart from this so that each checks the other.  Knows
 * kernel.h, the formats' facts and libc only.
 *
 * Places are pixels of the picture; a region may lie anywhere.
 *
 * 1. The region grows by padding * width on the left and on the right, by padding * height above
 *    and below, both rounded up.  An empty one, one with another label, and one that then lies
 *    outside the picture do nothing.  Its sides are rounded outwards to even places, so that no
 *    chroma sample is shared with what is not covered.
 * 2. Its cells are squares of ceil (longer side / blocks) pixels, made even and at least
 *    MIN_CELL.  The fewest that cover the region are used, and the region grows to whole cells
 *    on both sides: the place of the picture's edge changes nothing of the cells inside.
 * 3. A cell's mean, of each component, is taken over the cell's own pixels; where the picture
 *    cuts it, over as large a square moved inside the picture.  It is rounded half up.  So no
 *    sample is made of fewer than MIN_CELL by MIN_CELL, unless the picture is smaller than that.
 * 4. pixelate: every sample of a cell is its mean.  blur: between the centres of four cells a
 *    sample is the bilinear mean of theirs, in 256ths each way, so it holds no more than the
 *    mosaic does.  fill: black, and only what step 1 leaves is covered.
 * 5. A later region covers an earlier one.  All means are of the input.  Alpha and unused bytes
 *    are kept.
 *
 * A frame has room for MAX_CELLS cells.  With so many regions that each cannot have blocks *
 * blocks, all of them get fewer and larger cells; with more regions than cells, all are filled. */
#include "anonymize.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "../format.h"
#include "../simd.h"

extern const csfk_blob csfk_blob_anonymize;

enum
{
  MAX_BLOCKS = CSFK_ANONYMIZE_MAX_BLOCKS,
  LIMIT = CSFK_ANONYMIZE_LIMIT,
  MAX_CHANNELS = 3,
  /* Samples of a row that are blurred at a time. */
  STRIP = 512,
  /* Samples a block of the GPU should have to sum, and bands a cell is cut into at most. */
  SAMPLES_OF_PART = 8192,
  MAX_PARTS_OF_CELL = 64
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

/* ---- regions --------------------------------------------------------------------------------- */

/* What a region covers and its cells; x0 and y0 are the first cell's, all are even. */
typedef struct cells
{
  int x0, y0, x1, y1;
  int size;                     /* of a cell's side; 0: the region is filled */
  int first_x, last_x, first_y, last_y; /* those that the picture shows */
} cells;

static int
move_near (int64_t place)
{
  return place < -LIMIT ? -LIMIT : place > LIMIT ? LIMIT : (int) place;
}

static int
has_label (const csfk_region *region, const char *label)
{
  return label[0] == 0 || strncmp (region->label, label, CSFK_LABEL_BYTES) == 0;
}

/* Of n_regions: 1 when there are too many for even one cell each. */
static int
share_cells (int n_regions, int blocks, int *blocks_left)
{
  while (blocks > 1 && (int64_t) n_regions * blocks * blocks > CSFK_ANONYMIZE_MAX_CELLS)
    blocks--;
  *blocks_left = blocks;
  return n_regions > CSFK_ANONYMIZE_MAX_CELLS;
}

/* 0 when the region covers nothing. */
static int
find_cells (const csfk_image *image, const csfk_region *region,
    const csfk_anonymize_params *params, int mode, int blocks, cells *found)
{
  const int64_t pad_x = ((int64_t) region->width * params->padding_65536 + 65535) >> 16;
  const int64_t pad_y = ((int64_t) region->height * params->padding_65536 + 65535) >> 16;
  const int x0 = move_near (region->x - pad_x), y0 = move_near (region->y - pad_y);
  const int x1 = move_near ((int64_t) region->x + region->width + pad_x);
  const int y1 = move_near ((int64_t) region->y + region->height + pad_y);
  int width, height, across, down;

  if (region->width <= 0 || region->height <= 0 || !has_label (region, params->label))
    return 0;
  if (x0 >= image->width || y0 >= image->height || x1 <= 0 || y1 <= 0)
    return 0;
  *found = (cells) { .x0 = x0 & ~1, .y0 = y0 & ~1, .x1 = (x1 + 1) & ~1, .y1 = (y1 + 1) & ~1 };
  if (mode == CSFK_ANONYMIZE_FILL)
    return 1;

  width = found->x1 - found->x0;
  height = found->y1 - found->y0;
  found->size = (larger (width, height) + blocks - 1) / blocks;
  found->size = larger ((found->size + 1) & ~1, CSFK_ANONYMIZE_MIN_CELL);
  across = (width + found->size - 1) / found->size;
  down = (height + found->size - 1) / found->size;
  found->x0 -= (across * found->size - width) / 2 & ~1;
  found->y0 -= (down * found->size - height) / 2 & ~1;
  found->x1 = found->x0 + across * found->size;
  found->y1 = found->y0 + down * found->size;
  found->first_x = larger (-found->x0, 0) / found->size;
  found->first_y = larger (-found->y0, 0) / found->size;
  found->last_x = smaller ((image->width - 1 - found->x0) / found->size, across - 1);
  found->last_y = smaller ((image->height - 1 - found->y0) / found->size, down - 1);
  return 1;
}

/* Where the square of `size` that begins at `start` has samples of a channel: `length` pixels in
 * the picture that way, `shift` of the channel. */
static void
find_window (int start, int size, int length, int shift, int *first, int *end)
{
  const int even = (length + 1) & ~1;

  start = larger (smaller (start, even - size), 0);
  *first = start >> shift;
  *end = smaller ((start + size) >> shift, (length + shift) >> shift);
}

/* ---- means ----------------------------------------------------------------------------------- */

static CSFK_ALWAYS_INLINE uint32_t
sum_bytes (const unsigned char *row, int pitch, int n)
{
  uint32_t sum = 0;

  for (int i = 0; i < n; i++)
    sum += row[(ptrdiff_t) i * pitch];
  return sum;
}

/* Two bytes a sample, read apart: a row may start at an odd address. */
static CSFK_ALWAYS_INLINE uint32_t
sum_p010 (const unsigned char *row, int pitch, int n)
{
  uint32_t sum = 0;

  for (int i = 0; i < n; i++) {
    const unsigned char *at = row + (ptrdiff_t) i * pitch;

    sum += (uint32_t) (at[0] | at[1] << 8) >> 6;
  }
  return sum;
}

/* The pitch is known in each call, which is what the compiler makes vectors of. */
static uint32_t
sum_row (const unsigned char *row, int pitch, int p010, int n)
{
  if (p010)
    return pitch == 2 ? sum_p010 (row, 2, n) : sum_p010 (row, 4, n);
  switch (pitch) {
    case 1:
      return sum_bytes (row, 1, n);
    case 2:
      return sum_bytes (row, 2, n);
    case 3:
      return sum_bytes (row, 3, n);
    default:
      return sum_bytes (row, 4, n);
  }
}

static int
get_mean (const csfk_image *in, const csfk_channel *at, const cells *grid, int x, int y)
{
  const csfk_plane *plane = &in->plane[at->plane];
  const int p010 = in->format == CSFK_FORMAT_P010_10LE;
  int x0, x1, y0, y1;
  uint64_t sum = 0, n;

  find_window (grid->x0 + x * grid->size, grid->size, in->width, at->shift_x, &x0, &x1);
  find_window (grid->y0 + y * grid->size, grid->size, in->height, at->shift_y, &y0, &y1);
  for (int row = y0; row < y1; row++)
    sum += sum_row (plane->data + (ptrdiff_t) row * plane->stride + at->offset +
        (ptrdiff_t) x0 * at->pitch, at->pitch, p010, x1 - x0);
  n = (uint64_t) (x1 - x0) * (uint64_t) (y1 - y0);
  return (int) ((sum + n / 2) / n);
}

/* ---- painting -------------------------------------------------------------------------------- */

/* A channel of the output inside what a region covers: samples x0 .. x1 - 1 of rows y0 .. y1 -
 * 1. */
typedef struct area
{
  unsigned char *data;          /* sample 0 of row 0 */
  ptrdiff_t stride;
  int pitch, p010;
  int x0, y0, x1, y1;
} area;

static area
get_area (const csfk_image *out, const csfk_channel *at, const cells *grid)
{
  const csfk_plane *plane = &out->plane[at->plane];
  /* Padding included: it is as much a picture of what lies there as the rest. */
  const int columns = plane->row_bytes / at->pitch;

  return (area) {
    .data = plane->data + at->offset,
    .stride = plane->stride,
    .pitch = at->pitch,
    .p010 = out->format == CSFK_FORMAT_P010_10LE,
    .x0 = larger (grid->x0 >> at->shift_x, 0),
    .y0 = larger (grid->y0 >> at->shift_y, 0),
    .x1 = smaller (grid->x1 >> at->shift_x, columns),
    .y1 = smaller (grid->y1 >> at->shift_y, plane->rows),
  };
}

static void
store_sample (const area *to, unsigned char *row, int x, int value)
{
  unsigned char *at = row + (ptrdiff_t) x * to->pitch;

  if (to->p010) {
    at[0] = (unsigned char) (value << 6);
    at[1] = (unsigned char) (value >> 2);
  } else {
    at[0] = (unsigned char) value;
  }
}

static void
paint_flat (const area *to, int x0, int y0, int x1, int y1, int value)
{
  for (int y = y0; y < y1; y++) {
    unsigned char *row = to->data + y * to->stride;

    if (to->pitch == 1)
      memset (row + x0, value, (size_t) (x1 - x0));
    else
      for (int x = x0; x < x1; x++)
        store_sample (to, row, x, value);
  }
}

static void
paint_mosaic (const area *to, const csfk_channel *at, const cells *grid, const int (*means)[MAX_BLOCKS])
{
  const int across = grid->size >> at->shift_x, down = grid->size >> at->shift_y;
  const int left = grid->x0 >> at->shift_x, top = grid->y0 >> at->shift_y;

  for (int y = grid->first_y; y <= grid->last_y; y++)
    for (int x = grid->first_x; x <= grid->last_x; x++)
      paint_flat (to, larger (left + x * across, to->x0), larger (top + y * down, to->y0),
          smaller (left + (x + 1) * across, to->x1), smaller (top + (y + 1) * down, to->y1),
          means[y][x]);
}

/* A place between the centres of two cells: the first one's index, that may be one before the
 * first that there is, and the weight of the second in 256ths. */
typedef struct between
{
  int cell, weight;
} between;

static between
find_between (int place, int size)
{
  /* In half samples, from half a cell before the first cell: the centres lie at 2 * size, 4 *
   * size. */
  const unsigned distance = (unsigned) (2 * place + 1 + size), step = 2u * (unsigned) size;

  return (between) { (int) (distance / step) - 1, (int) (distance % step * 128 / (unsigned) size) };
}

static int
nearest (int cell, int first, int last)
{
  return larger (first, smaller (cell, last));
}

static void
paint_blur (const area *to, const csfk_channel *at, const cells *grid, const int (*means)[MAX_BLOCKS])
{
  const int across = grid->size >> at->shift_x, down = grid->size >> at->shift_y;
  const int left = grid->x0 >> at->shift_x, top = grid->y0 >> at->shift_y;
  /* Columns of cells, each a row's vertical mean in 256ths; one more before and after them. */
  int column[MAX_BLOCKS + 2];
  between place[STRIP];

  for (int x0 = to->x0; x0 < to->x1; x0 += STRIP) {
    const int n = smaller (to->x1 - x0, STRIP);

    for (int i = 0; i < n; i++)
      place[i] = find_between (x0 + i - left, across);
    for (int y = to->y0; y < to->y1; y++) {
      const between row = find_between (y - top, down);
      const int *above = means[nearest (row.cell, grid->first_y, grid->last_y)];
      const int *below = means[nearest (row.cell + 1, grid->first_y, grid->last_y)];
      unsigned char *out = to->data + y * to->stride;

      for (int x = grid->first_x - 1; x <= grid->last_x + 1; x++) {
        const int cell = nearest (x, grid->first_x, grid->last_x);

        column[x + 1] = above[cell] * (256 - row.weight) + below[cell] * row.weight;
      }
      for (int i = 0; i < n; i++) {
        const int *two = &column[place[i].cell + 1];

        store_sample (to, out, x0 + i,
            (two[0] * (256 - place[i].weight) + two[1] * place[i].weight + 32768) >> 16);
      }
    }
  }
}

static int
get_black (const csfk_image *image, int component)
{
  const csfk_format_info *info = csfk_format_get_info (image->format);
  const int step = 1 << (info->depth - 8);

  if (component > 0 && !info->is_rgb)
    return 128 * step;
  return image->range == CSFK_RANGE_LIMITED ? 16 * step : 0;
}

static void
cover (const csfk_frame *frame, const cells *grid, int mode)
{
  const csfk_channel_list *list = csfk_format_get_channels (frame->in.format);
  int means[MAX_BLOCKS][MAX_BLOCKS];

  /* Alpha stays as it is. */
  for (int i = 0; i < smaller (list->n, MAX_CHANNELS); i++) {
    const csfk_channel *at = &list->channel[i];
    const area to = get_area (&frame->out, at, grid);

    if (mode == CSFK_ANONYMIZE_FILL) {
      paint_flat (&to, to.x0, to.y0, to.x1, to.y1, get_black (&frame->in, i));
      continue;
    }
    for (int y = grid->first_y; y <= grid->last_y; y++)
      for (int x = grid->first_x; x <= grid->last_x; x++)
        means[y][x] = get_mean (&frame->in, at, grid, x, y);
    if (mode == CSFK_ANONYMIZE_BLUR)
      paint_blur (&to, at, grid, (const int (*)[MAX_BLOCKS]) means);
    else
      paint_mosaic (&to, at, grid, (const int (*)[MAX_BLOCKS]) means);
  }
}

static void
process (const csfk_frame *frame, const void *data)
{
  const csfk_anonymize_params *params = data;
  int blocks, mode = params->mode;
  cells grid;

  if (share_cells (frame->n_regions, params->blocks, &blocks))
    mode = CSFK_ANONYMIZE_FILL;
  for (int i = 0; i < frame->in.n_planes; i++)
    csfk_plane_copy (&frame->out.plane[i], &frame->in.plane[i]);
  for (int i = 0; i < frame->n_regions; i++)
    if (find_cells (&frame->in, &frame->regions[i], params, mode, blocks, &grid))
      cover (frame, &grid, mode);
}

/* ---- parameters and launch ------------------------------------------------------------------- */

static void
resolve (void *data)
{
  csfk_anonymize_params *params = data;

  params->padding_65536 = (int) ceilf (params->padding * 65536.0f);
}

static unsigned long
workspace_size (const csfk_kernel *kernel, const csfk_image *in, const csfk_image *out)
{
  return sizeof (csfk_anonymize_workspace);
}

static unsigned
divide_up (unsigned value, unsigned by)
{
  return (value + by - 1) / by;
}

/* How many bands of rows to cut cells into, so that a few large ones occupy a whole GPU: as many
 * as the largest cell is worth.  0 when no region covers anything. */
static int
choose_parts (const csfk_frame *frame, const csfk_anonymize_args *args, const csfk_region *regions)
{
  const int n_cells = frame->n_regions * args->blocks * args->blocks;
  int most = 0;
  cells grid;

  for (int i = 0; i < frame->n_regions; i++) {
    if (!find_cells (&frame->in, &regions[i], &args->params, args->mode, args->blocks, &grid))
      continue;

    int64_t samples = (int64_t) smaller (grid.size, frame->in.width) *
        smaller (grid.size, frame->in.height);
    int64_t parts = samples / SAMPLES_OF_PART + 1;

    most = larger (most, parts < MAX_PARTS_OF_CELL ? (int) parts : MAX_PARTS_OF_CELL);
  }
  return smaller (most, larger (CSFK_ANONYMIZE_MAX_PARTS / n_cells, 1));
}

static int
launch_means (const csfk_anonymize_args *args, csfk_launcher *launcher)
{
  const unsigned n_cells =
      (unsigned) (args->frame.n_regions * args->blocks * args->blocks);
  csfk_dim sum_grid = {
    (unsigned) args->frame.n_regions, (unsigned) (args->blocks * args->blocks),
    (unsigned) (args->frame.in.n_planes * args->parts)
  };
  csfk_dim sum_block = { CSFK_ANONYMIZE_SUM_THREADS, 1, 1 };
  csfk_dim means_grid = { divide_up (n_cells, CSFK_ANONYMIZE_MEANS_THREADS), 1, 1 };
  csfk_dim means_block = { CSFK_ANONYMIZE_MEANS_THREADS, 1, 1 };
  int failed = launcher->launch (launcher, "csfk_anonymize_sums", sum_grid, sum_block, 0, args,
      sizeof *args);

  if (failed || args->parts == 1)
    return failed;
  return launcher->launch (launcher, "csfk_anonymize_means", means_grid, means_block, 0, args,
      sizeof *args);
}

static int
enqueue (const csfk_frame *frame, const void *params, csfk_launcher *launcher)
{
  csfk_anonymize_args args = { .frame = *frame };
  csfk_dim block = { CSFK_ANONYMIZE_BLOCK_X, CSFK_ANONYMIZE_BLOCK_Y, 1 };
  csfk_dim grid = { 1, 1, (unsigned) frame->in.n_planes };

  memcpy (&args.params, params, sizeof args.params);
  args.mode = args.params.mode;
  if (share_cells (frame->n_regions, args.params.blocks, &args.blocks))
    args.mode = CSFK_ANONYMIZE_FILL;
  if (frame->n_regions > 0 && args.mode != CSFK_ANONYMIZE_FILL) {
    args.parts = choose_parts (frame, &args, launcher->regions);
    if (args.parts > 0) {
      int failed = launch_means (&args, launcher);

      if (failed)
        return failed;
    }
  }

  for (int i = 0; i < frame->in.n_planes; i++) {
    const csfk_plane *plane = &frame->in.plane[i];
    unsigned x = divide_up ((unsigned) plane->row_bytes, CSFK_ANONYMIZE_TILE_BYTES);
    unsigned y = divide_up ((unsigned) plane->rows, CSFK_ANONYMIZE_TILE_ROWS);

    grid.x = x > grid.x ? x : grid.x;
    grid.y = y > grid.y ? y : grid.y;
  }
  return launcher->launch (launcher, "csfk_anonymize", grid, block, 0, &args, sizeof args);
}

static const char *const modes[] = { "pixelate", "blur", "fill", NULL };

static const csfk_param params_of[] = {
  {
    "mode", CSFK_TYPE_ENUM, offsetof (csfk_anonymize_params, mode), 0, 0, CSFK_ANONYMIZE_PIXELATE,
    "", "What covers a region: a mosaic, a blur as coarse as the mosaic, or black", modes
  },
  {
    "blocks", CSFK_TYPE_INT, offsetof (csfk_anonymize_params, blocks), 2, CSFK_ANONYMIZE_MAX_BLOCKS,
    8, "", "Cells of the mosaic or the blur along a region's longer side; with more than 65536 / "
        "(blocks * blocks) regions, fewer", NULL
  },
  {
    "padding", CSFK_TYPE_FLOAT, offsetof (csfk_anonymize_params, padding), 0, 1, 0, "",
    "Share of its size that a region grows by on every side", NULL
  },
  {
    "label", CSFK_TYPE_STRING, offsetof (csfk_anonymize_params, label), 0, CSFK_LABEL_BYTES, 0, "",
    "Cover only regions with this label; empty: all", NULL
  },
};

const csfk_kernel csfk_anonymize = {
  .abi = CSFK_ABI,
  .flags = CSFK_READS_REGIONS,
  .name = "anonymize",
  .description = "Makes faces and other marked regions unrecognisable",
  .formats = {
    CSFK_FORMAT_NV12, CSFK_FORMAT_I420, CSFK_FORMAT_YUY2, CSFK_FORMAT_UYVY, CSFK_FORMAT_P010_10LE,
    CSFK_FORMAT_RGBA, CSFK_FORMAT_BGRA, CSFK_FORMAT_RGBx, CSFK_FORMAT_BGRx, CSFK_FORMAT_RGB,
    CSFK_FORMAT_BGR, CSFK_FORMAT_GRAY8, CSFK_FORMAT_NONE
  },
  .params = params_of,
  .n_params = sizeof params_of / sizeof params_of[0],
  .params_size = sizeof (csfk_anonymize_params),
  .workspace_size = workspace_size,
  .resolve = resolve,
  .process = process,
  .enqueue = enqueue,
  .device_code = &csfk_blob_anonymize,
};

_Static_assert (sizeof (csfk_anonymize_params) <= CSFK_MAX_PARAMS,
    "the parameters do not fit a slot");
