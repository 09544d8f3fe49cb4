/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* cornerdetect: finds corners of the luma and passes the picture on unchanged.  The plain C path and the
 * launches; the device code is in cornerdetect.cu, written apart from this so that each checks the other.
 * Knows kernel.h, format.h and libc only.
 *
 * The segment test with nine of sixteen pixels (FAST-9; Rosten and Drummond, "Machine learning for
 * high-speed corner detection", 2006): round a pixel lies a circle of sixteen, three pixels away.  The
 * score of a pixel is the highest s for which nine neighbours on the circle are all brighter than it by at
 * least s, or all darker:
 *
 *   s = max over the 16 runs of nine of max (min (circle) - pixel, pixel - max (circle))
 *
 * and it is a corner where s > threshold.  With `suppress` only where no other of the 3 x 3 pixels round it
 * has a higher score, nor the same score and an earlier place, row by row.
 *
 * Luma has eight bits: of ten the upper eight, of R'G'B' (54 R + 183 G + 19 B + 128) / 256 rounded down,
 * which is BT.709's.  So all is whole numbers.
 */
#include "cornerdetect.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "../format.h"
#include "../simd.h"

extern const csfk_blob csfk_blob_cornerdetect;

enum
{
  RADIUS = CSFK_CORNERDETECT_RADIUS,
  /* Pixels worked on at a time: their rows stay in the L1 cache. */
  STRIP = 512,
  /* Pixels whose scores are worked out together, unless none of them can be a corner. */
  CHUNK = 32,
  /* Of a strip's row of luma: from x - 4 on, and what a chunk may read beyond. */
  LUMA_ROW = STRIP + 8 + CHUNK,
  SCORE_ROW = STRIP + 2 + CHUNK,
  N_CIRCLE = 16,
  ARC = 9
};

/* ---- luma ------------------------------------------------------------------------------------ */

static CSFK_ALWAYS_INLINE void
load_bytes (const unsigned char *restrict from, int pitch, int n, uint8_t *restrict luma)
{
  for (int i = 0; i < n; i++)
    luma[i] = from[i * pitch];
}

static CSFK_ALWAYS_INLINE void
load_pixels (const unsigned char *restrict from, int pitch, int red, int blue, int n,
    uint8_t *restrict luma)
{
  for (int i = 0; i < n; i++)
    luma[i] = (uint8_t) ((54 * from[i * pitch + red] + 183 * from[i * pitch + 1] +
            19 * from[i * pitch + blue] + 128) >> 8);
}

static CSFK_ALWAYS_INLINE void
load_luma (const unsigned char *row, int format, int x, int n, uint8_t *luma)
{
  switch (format) {
    case CSFK_FORMAT_YUY2:
      load_bytes (row + 2 * (ptrdiff_t) x, 2, n, luma);
      break;
    case CSFK_FORMAT_UYVY:
    case CSFK_FORMAT_P010_10LE:
      load_bytes (row + 2 * (ptrdiff_t) x + 1, 2, n, luma);
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
      memcpy (luma, row + x, (size_t) n);
  }
}

/* ---- scores ---------------------------------------------------------------------------------- */

static CSFK_ALWAYS_INLINE uint8_t
lower (uint8_t a, uint8_t b)
{
  return a < b ? a : b;
}

static CSFK_ALWAYS_INLINE uint8_t
higher (uint8_t a, uint8_t b)
{
  return a > b ? a : b;
}

/* to[i] from a[i] and b[i]; `to` may be one of them. */
static CSFK_ALWAYS_INLINE void
lower_chunk (const uint8_t *a, const uint8_t *b, uint8_t *to)
{
  for (int i = 0; i < CHUNK; i++)
    to[i] = lower (a[i], b[i]);
}

static CSFK_ALWAYS_INLINE void
higher_chunk (const uint8_t *a, const uint8_t *b, uint8_t *to)
{
  for (int i = 0; i < CHUNK; i++)
    to[i] = higher (a[i], b[i]);
}

/* A run of nine has one at least of any two pixels that lie opposite each other. */
static CSFK_ALWAYS_INLINE int
may_have_corner (const uint8_t *up, const uint8_t *here, const uint8_t *down, int threshold)
{
  uint8_t any = 0;

  for (int i = 0; i < CHUNK; i++) {
    uint8_t left = here[i - RADIUS], right = here[i + RADIUS];
    uint8_t bright = lower (higher (up[i], down[i]), higher (left, right));
    uint8_t dark = higher (lower (up[i], down[i]), lower (left, right));
    uint8_t above = (uint8_t) (higher (bright, here[i]) - here[i]);
    uint8_t below = (uint8_t) (here[i] - lower (dark, here[i]));

    any = higher (any, higher (above, below));
  }
  return any > threshold;
}

/* rows[3]: that of the pixels; the circle's places count from it. */
static CSFK_ALWAYS_INLINE void
score_chunk (const uint8_t *const *rows, int threshold, uint8_t *scores)
{
  static const signed char circle[N_CIRCLE][2] = {
    {0, -3}, {1, -3}, {2, -2}, {3, -1}, {3, 0}, {3, 1}, {2, 2}, {1, 3}, {0, 3}, {-1, 3}, {-2, 2},
    {-3, 1}, {-3, 0}, {-3, -1}, {-2, -2}, {-1, -3}
  };
  uint8_t low[2][N_CIRCLE][CHUNK], high[2][N_CIRCLE][CHUNK], bright[CHUNK], dark[CHUNK];
  const uint8_t *at[N_CIRCLE];

  for (int k = 0; k < N_CIRCLE; k++)
    at[k] = rows[RADIUS + circle[k][1]] + circle[k][0];
  /* Of runs of two, of four, of eight. */
  for (int k = 0; k < N_CIRCLE; k++) {
    lower_chunk (at[k], at[(k + 1) % N_CIRCLE], low[0][k]);
    higher_chunk (at[k], at[(k + 1) % N_CIRCLE], high[0][k]);
  }
  for (int k = 0; k < N_CIRCLE; k++) {
    lower_chunk (low[0][k], low[0][(k + 2) % N_CIRCLE], low[1][k]);
    higher_chunk (high[0][k], high[0][(k + 2) % N_CIRCLE], high[1][k]);
  }
  for (int k = 0; k < N_CIRCLE; k++) {
    lower_chunk (low[1][k], low[1][(k + 4) % N_CIRCLE], low[0][k]);
    higher_chunk (high[1][k], high[1][(k + 4) % N_CIRCLE], high[0][k]);
  }
  memset (bright, 0, sizeof bright);
  memset (dark, 255, sizeof dark);
  for (int k = 0; k < N_CIRCLE; k++) {
    lower_chunk (low[0][k], at[(k + ARC - 1) % N_CIRCLE], low[1][k]);
    higher_chunk (bright, low[1][k], bright);
    higher_chunk (high[0][k], at[(k + ARC - 1) % N_CIRCLE], high[1][k]);
    lower_chunk (dark, high[1][k], dark);
  }
  for (int i = 0; i < CHUNK; i++) {
    uint8_t pixel = rows[RADIUS][i];
    uint8_t score = higher ((uint8_t) (higher (bright[i], pixel) - pixel),
        (uint8_t) (pixel - lower (dark[i], pixel)));

    scores[i] = score > threshold ? score : 0;
  }
}

/* ---- a strip --------------------------------------------------------------------------------- */

/* Columns x to x + n - 1. */
typedef struct strip
{
  const csfk_frame *frame;
  const csfk_cornerdetect_params *params;
  int x, n;
  uint8_t luma[8][LUMA_ROW];    /* of row y in y % 8; its first is that of column x - 4 */
  uint8_t scores[4][SCORE_ROW]; /* of row y in y % 4; its first is that of column x - 1 */
} strip;

static CSFK_ALWAYS_INLINE void
load_row (strip *self, int y)
{
  const csfk_image *in = &self->frame->in;
  const int first = self->x > 4 ? self->x - 4 : 0;
  const int end = self->x + self->n + 4 < in->width ? self->x + self->n + 4 : in->width;

  load_luma (in->plane[0].data + (ptrdiff_t) y * in->plane[0].stride, in->format, first, end - first,
      self->luma[y % 8] + (first - (self->x - 4)));
}

static CSFK_ALWAYS_INLINE void
score_row (strip *self, int y)
{
  const int first = self->x - 1 > RADIUS ? self->x - 1 : RADIUS;
  const int most = self->frame->in.width - RADIUS;
  const int end = self->x + self->n + 1 < most ? self->x + self->n + 1 : most;
  uint8_t *scores = self->scores[y % 4];

  memset (scores, 0, sizeof self->scores[0]);
  for (int x = first; x < end; x += CHUNK) {
    const uint8_t *rows[2 * RADIUS + 1];
    uint8_t *to = scores + (x - (self->x - 1));

    for (int i = 0; i <= 2 * RADIUS; i++)
      rows[i] = self->luma[(y + i - RADIUS) % 8] + (x - (self->x - 4));
    if (!may_have_corner (rows[0], rows[RADIUS], rows[2 * RADIUS], self->params->threshold))
      continue;
    score_chunk (rows, self->params->threshold, to);
    if (x + CHUNK > end)
      memset (to + (end - x), 0, (size_t) (x + CHUNK - end));
  }
}

/* Are these three all lower, or at most the same where ties are won? */
static int
beats (uint8_t score, const uint8_t *three, int wins_ties)
{
  uint8_t most = higher (higher (three[-1], three[0]), three[1]);

  return score > most || (wins_ties && score == most);
}

static void
append_corner (const strip *self, int x, int y, uint8_t score)
{
  csfk_point *point = csfk_append (&self->frame->records);

  if (point)
    *point = (csfk_point) {.x = (float) x,.y = (float) y,.score = score };
}

static void
append_row (const strip *self, int y)
{
  const uint8_t *above = self->scores[(y + 3) % 4] + 1, *here = self->scores[y % 4] + 1;
  const uint8_t *below = self->scores[(y + 1) % 4] + 1;

  for (int i = 0; i < self->n; i++) {
    uint64_t eight;

    memcpy (&eight, here + i, sizeof eight);
    /* Mostly there is nothing. */
    if (eight == 0) {
      i += 7;
      continue;
    }
    if (here[i] > 0 && (!self->params->suppress || (beats (here[i], above + i, 0)
                && here[i] > here[i - 1] && here[i] >= here[i + 1]
                && beats (here[i], below + i, 1))))
      append_corner (self, self->x + i, y, here[i]);
  }
}

static CSFK_ALWAYS_INLINE void
collect_strip (strip *self)
{
  const int height = self->frame->in.height;

  if (self->frame->in.width <= 2 * RADIUS || height <= 2 * RADIUS)
    return;
  memset (self->luma, 0, sizeof self->luma);
  memset (self->scores, 0, sizeof self->scores);
  for (int y = 0; y < 2 * RADIUS; y++)
    load_row (self, y);
  for (int y = RADIUS; y < height - RADIUS; y++) {
    load_row (self, y + RADIUS);
    score_row (self, y);
    if (y > RADIUS)
      append_row (self, y - 1);
  }
  memset (self->scores[(height - RADIUS) % 4], 0, sizeof self->scores[0]);
  append_row (self, height - RADIUS - 1);
}

static void
collect_strip_baseline (strip *self)
{
  collect_strip (self);
}

#if CSFK_TWO_TARGETS
CSFK_TARGET_AVX2 static void
collect_strip_avx2 (strip *self)
{
  collect_strip (self);
}
#else
#define collect_strip_avx2 collect_strip_baseline
#endif

static void
collect (const csfk_frame *frame, const void *params)
{
  strip self = { .frame = frame,.params = params };
  const int width = frame->in.width;

  for (int x = 0; x < width; x += STRIP) {
    self.x = x;
    self.n = width - x < STRIP ? width - x : STRIP;
    (csfk_has_avx2 () ? collect_strip_avx2 : collect_strip_baseline) (&self);
  }
}

static void
process (const csfk_frame *frame, const void *params)
{
  for (int i = 0; i < frame->in.n_planes; i++)
    csfk_plane_copy (&frame->out.plane[i], &frame->in.plane[i]);
}

/* ---- parameters and launches ----------------------------------------------------------------- */

static unsigned
divide_up (unsigned value, unsigned by)
{
  return (value + by - 1) / by;
}

/* The widest access, 16 bytes at most, that every row of both planes is aligned to. */
static unsigned
get_access_bytes (const csfk_plane *in, const csfk_plane *out)
{
  uintptr_t bits = (uintptr_t) in->data | (uintptr_t) out->data | (uintptr_t) in->stride |
      (uintptr_t) out->stride | 16;

  return (unsigned) (bits & -bits);
}

static csfk_cornerdetect_args
make_args (const csfk_frame *frame, const void *params)
{
  csfk_cornerdetect_args args = { .frame = *frame };

  memcpy (&args.params, params, sizeof args.params);
  return args;
}

static int
enqueue (const csfk_frame *frame, const void *params, csfk_launcher *launcher)
{
  csfk_cornerdetect_args args = make_args (frame, params);
  csfk_dim block = { CSFK_CORNERDETECT_COPY_X, CSFK_CORNERDETECT_COPY_Y, 1 };
  csfk_dim grid = { 1, 1, (unsigned) frame->in.n_planes };

  for (int i = 0; i < frame->in.n_planes; i++) {
    const csfk_plane *in = &frame->in.plane[i];
    unsigned x = divide_up ((unsigned) in->row_bytes,
        CSFK_CORNERDETECT_COPY_X * get_access_bytes (in, &frame->out.plane[i]));
    unsigned y = divide_up ((unsigned) in->rows,
        CSFK_CORNERDETECT_COPY_Y * CSFK_CORNERDETECT_COPY_ROWS);

    grid.x = x > grid.x ? x : grid.x;
    grid.y = y > grid.y ? y : grid.y;
  }
  return launcher->launch (launcher, "csfk_cornerdetect", grid, block, 0, &args, sizeof args);
}

static int
emit (const csfk_frame *frame, const void *params, csfk_launcher *launcher)
{
  csfk_cornerdetect_args args = make_args (frame, params);
  csfk_dim block = { CSFK_CORNERDETECT_THREADS, 1, 1 };
  csfk_dim grid = {
    divide_up ((unsigned) frame->in.width, CSFK_CORNERDETECT_TILE_X),
    divide_up ((unsigned) frame->in.height, CSFK_CORNERDETECT_TILE_Y), 1
  };

  return launcher->launch (launcher, "csfk_cornerdetect_emit", grid, block, 0, &args, sizeof args);
}

static const csfk_param params_of[] = {
  {
    "threshold", CSFK_TYPE_INT, offsetof (csfk_cornerdetect_params, threshold), 1, 255, 20,
    "8-bit steps", "Difference of luma from its surroundings that a corner must exceed"
  },
  {
    "suppress", CSFK_TYPE_BOOL, offsetof (csfk_cornerdetect_params, suppress), 0, 1, 1, "",
    "Of neighbouring corners keep the strongest alone"
  },
};

const csfk_kernel csfk_cornerdetect = {
  .abi = CSFK_ABI,
  .name = "cornerdetect",
  .description = "Finds corners (FAST-9) and passes frames on unchanged",
  .formats = {
    CSFK_FORMAT_NV12, CSFK_FORMAT_I420, CSFK_FORMAT_YUY2, CSFK_FORMAT_UYVY, CSFK_FORMAT_P010_10LE,
    CSFK_FORMAT_RGBA, CSFK_FORMAT_BGRA, CSFK_FORMAT_RGBx, CSFK_FORMAT_BGRx, CSFK_FORMAT_RGB,
    CSFK_FORMAT_BGR, CSFK_FORMAT_GRAY8, CSFK_FORMAT_NONE
  },
  .params = params_of,
  .n_params = sizeof params_of / sizeof params_of[0],
  .params_size = sizeof (csfk_cornerdetect_params),
  .process = process,
  .enqueue = enqueue,
  .record_size = sizeof (csfk_point),
  .record_kind = CSFK_RECORD_POINT,
  .record_name = "corner",
  .collect = collect,
  .emit = emit,
  .device_code = &csfk_blob_cornerdetect,
};
