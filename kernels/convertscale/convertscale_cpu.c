/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* convertscale on the CPU.  The output is made in strips a few hundred pixels wide, from top to bottom, so
 * that the rows under way need no more than the stack and stay in the cache; convertscale_rows.c has the
 * loops over a row.  convertscale.h says what is computed.  Knows kernel.h, format.h, its own folder and libc. */
#include "convertscale_cpu.h"

#include <stddef.h>
#include <string.h>

#include "../format.h"
#include "../simd.h"

enum
{
  STRIP = CSFK_CONVERTSCALE_STRIP,
  UNITS = CSFK_CONVERTSCALE_UNITS,
  VALUES = CSFK_CONVERTSCALE_VALUES,
  PLACES = CSFK_CONVERTSCALE_PLACES
};

/* Samples that lie side by side in a plane, scaled to a strip of output rows.  The filtered input rows that
 * are at hand are kept: row r in ring[r % 4]. */
typedef struct sampler
{
  const unsigned char *data;
  ptrdiff_t stride;
  const csfk_convertscale_columns *columns;
  const csfk_convertscale_axis *y;
  int held[4];
  int16_t ring[4][VALUES];
} sampler;

static int
clamp (int value, int low, int high)
{
  return value < low ? low : value > high ? high : value;
}

static void
sampler_init (sampler *s, const csfk_plane *plane, const csfk_convertscale_columns *columns,
    const csfk_convertscale_axis *y)
{
  s->data = plane->data;
  s->stride = plane->stride;
  s->columns = columns;
  s->y = y;
  for (int i = 0; i < 4; i++)
    s->held[i] = -1;
}

/* The filtered rows of output row y, and their weights. */
static void
sampler_filter (sampler *s, int y, const int16_t **rows, int *weights)
{
  const int cut = CSFK_CONVERTSCALE_POSITION_BITS - CSFK_CONVERTSCALE_FRACTION_BITS;
  const long long position = (s->y->start + y * s->y->step) >> cut;
  const int taps = s->columns->taps;
  const int first = (int) (position >> CSFK_CONVERTSCALE_FRACTION_BITS) - (taps == 4);

  csfk_convertscale_weigh (taps, (int) (position & 255), weights);
  for (int k = 0; k < taps; k++) {
    /* A tap that weighs nothing need not be made. */
    const int at = clamp (first + (weights[k] == 0 ? taps / 2 - 1 : k), 0, s->y->last);
    const int slot = at % 4;

    if (s->held[slot] != at) {
      csfk_convertscale_across (s->data + at * s->stride, s->columns, s->ring[slot]);
      s->held[slot] = at;
    }
    rows[k] = s->ring[slot];
  }
}

static void
sampler_get (sampler *s, int y, unsigned char *results)
{
  const int16_t *rows[4];
  int weights[4];

  sampler_filter (s, y, rows, weights);
  csfk_convertscale_down (rows, weights, s->columns->taps, s->columns->n * s->columns->channels,
      results);
}

static void
sampler_get_places (sampler *s, int y, int16_t *results)
{
  const int16_t *rows[4];
  int weights[4];

  sampler_filter (s, y, rows, weights);
  csfk_convertscale_down_places (rows, weights, s->columns->taps,
      s->columns->n * s->columns->channels, results);
}

static unsigned char *
row_of (const csfk_plane *plane, int y)
{
  return plane->data + (ptrdiff_t) y * plane->stride;
}

/* Four bytes as a word whose lowest is the first. */
static CSFK_ALWAYS_INLINE uint32_t
load_word (const unsigned char *from)
{
  uint32_t word;

  memcpy (&word, from, sizeof word);
  return word;
}

static CSFK_ALWAYS_INLINE void
store_word (unsigned char *to, uint32_t word)
{
  memcpy (to, &word, sizeof word);
}

_Static_assert (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "words are not their bytes in order");

static int
taps_of (const csfk_convertscale_plan *plan)
{
  return plan->method == CSFK_CONVERTSCALE_BICUBIC ? 4 : 2;
}

static int
is_same_size (const csfk_frame *frame)
{
  return frame->in.width == frame->out.width && frame->in.height == frame->out.height;
}

/* ---- each plane for itself ------------------------------------------------------------------- */

static void
scale_plane (const csfk_plane *in, const csfk_plane *out, const csfk_convertscale_axis *x,
    const csfk_convertscale_axis *y, int taps, int channels)
{
  const int width = out->row_bytes / channels;
  csfk_convertscale_columns columns;
  sampler s;

  for (int first = 0; first < width; first += STRIP) {
    const int n = width - first < STRIP ? width - first : STRIP;

    csfk_convertscale_set_columns (&columns, x, taps, channels, first, n, width);
    sampler_init (&s, in, &columns, y);
    for (int row = 0; row < out->rows; row++)
      sampler_get (&s, row, row_of (out, row) + first * channels);
  }
}

static CSFK_ALWAYS_INLINE void
split_pairs (const unsigned char *restrict pairs, int n, unsigned char *restrict a,
    unsigned char *restrict b)
{
  for (int i = 0; i < n; i++) {
    a[i] = pairs[2 * i];
    b[i] = pairs[2 * i + 1];
  }
}

static CSFK_ALWAYS_INLINE void
join_pairs (const unsigned char *restrict a, const unsigned char *restrict b, int n,
    unsigned char *restrict pairs)
{
  for (int i = 0; i < n; i++) {
    pairs[2 * i] = a[i];
    pairs[2 * i + 1] = b[i];
  }
}

/* NV12's chroma to I420's: pairs are scaled and then split. */
static CSFK_ALWAYS_INLINE void
scale_and_split (const csfk_frame *frame, const csfk_convertscale_plan *plan)
{
  const csfk_plane *cb = &frame->out.plane[1], *cr = &frame->out.plane[2];
  csfk_convertscale_columns columns;
  unsigned char pairs[2 * UNITS];
  sampler s;

  for (int first = 0; first < cb->row_bytes; first += STRIP) {
    const int n = cb->row_bytes - first < STRIP ? cb->row_bytes - first : STRIP;

    csfk_convertscale_set_columns (&columns, &plan->chroma_x, taps_of (plan), 2, first, n,
        cb->row_bytes);
    sampler_init (&s, &frame->in.plane[1], &columns, &plan->chroma_y);
    for (int y = 0; y < cb->rows; y++) {
      if (is_same_size (frame)) {
        split_pairs (row_of (&frame->in.plane[1], y) + 2 * first, n, row_of (cb, y) + first,
            row_of (cr, y) + first);
        continue;
      }
      sampler_get (&s, y, pairs);
      split_pairs (pairs, n, row_of (cb, y) + first, row_of (cr, y) + first);
    }
  }
}

/* And the other way. */
static CSFK_ALWAYS_INLINE void
scale_and_join (const csfk_frame *frame, const csfk_convertscale_plan *plan)
{
  const csfk_plane *out = &frame->out.plane[1];
  const int width = out->row_bytes / 2;
  unsigned char cb[UNITS], cr[UNITS];
  csfk_convertscale_columns columns;
  sampler s[2];

  for (int first = 0; first < width; first += STRIP) {
    const int n = width - first < STRIP ? width - first : STRIP;

    csfk_convertscale_set_columns (&columns, &plan->chroma_x, taps_of (plan), 1, first, n, width);
    sampler_init (&s[0], &frame->in.plane[1], &columns, &plan->chroma_y);
    sampler_init (&s[1], &frame->in.plane[2], &columns, &plan->chroma_y);
    for (int y = 0; y < out->rows; y++) {
      if (is_same_size (frame)) {
        join_pairs (row_of (&frame->in.plane[1], y) + first,
            row_of (&frame->in.plane[2], y) + first, n, row_of (out, y) + 2 * first);
        continue;
      }
      sampler_get (&s[0], y, cb);
      sampler_get (&s[1], y, cr);
      join_pairs (cb, cr, n, row_of (out, y) + 2 * first);
    }
  }
}

static CSFK_ALWAYS_INLINE void
scale_planes (const csfk_frame *frame, const csfk_convertscale_plan *plan)
{
  const csfk_plane *in = frame->in.plane, *out = frame->out.plane;
  const int taps = taps_of (plan);

  if (is_same_size (frame))
    csfk_plane_copy (&out[0], &in[0]);
  else
    scale_plane (&in[0], &out[0], &plan->x, &plan->y, taps, 1);
  if (frame->in.format != frame->out.format) {
    if (frame->in.format == CSFK_FORMAT_NV12)
      scale_and_split (frame, plan);
    else
      scale_and_join (frame, plan);
    return;
  }
  for (int i = 1; i < frame->out.n_planes; i++)
    scale_plane (&in[i], &out[i], &plan->chroma_x, &plan->chroma_y, taps,
        frame->in.format == CSFK_FORMAT_NV12 ? 2 : 1);
}

/* ---- packed pixels --------------------------------------------------------------------------- */

/* in_bytes and out_bytes are constants where this is called, so that the loop is one of vectors. */
static CSFK_ALWAYS_INLINE void
reorder_pixels (const unsigned char *restrict from, int in_bytes, int crossed, uint32_t opaque,
    int n, unsigned char *restrict to, int out_bytes)
{
  const int first = crossed ? 2 : 0, third = crossed ? 0 : 2;

  if (out_bytes == 3) {
    for (int i = 0; i < n; i++) {
      to[i * 3] = from[i * in_bytes + first];
      to[i * 3 + 1] = from[i * in_bytes + 1];
      to[i * 3 + 2] = from[i * in_bytes + third];
    }
  } else if (in_bytes == 3) {
    for (int i = 0; i < n; i++)
      store_word (to + 4 * i, from[i * 3 + first] | (uint32_t) from[i * 3 + 1] << 8 |
          (uint32_t) from[i * 3 + third] << 16 | 0xff000000u);
  } else if (crossed) {
    for (int i = 0; i < n; i++) {
      const uint32_t word = load_word (from + 4 * i);

      store_word (to + 4 * i, (word & 0xff00ff00u) | (word >> 16 & 255) | (word & 255) << 16 |
          opaque);
    }
  } else {
    for (int i = 0; i < n; i++)
      store_word (to + 4 * i, load_word (from + 4 * i) | opaque);
  }
}

static CSFK_ALWAYS_INLINE void
reorder (const unsigned char *from, int in_bytes, const int *order, int n, unsigned char *to,
    int out_bytes)
{
  const int crossed = order[0] != 0;
  const uint32_t opaque = order[3] == 4 ? 0xff000000u : 0;

  if (in_bytes == 3 && out_bytes == 3)
    reorder_pixels (from, 3, crossed, opaque, n, to, 3);
  else if (in_bytes == 3)
    reorder_pixels (from, 3, crossed, opaque, n, to, 4);
  else if (out_bytes == 3)
    reorder_pixels (from, 4, crossed, opaque, n, to, 3);
  else
    reorder_pixels (from, 4, crossed, opaque, n, to, 4);
}

/* The bytes of a pixel stay where they are. */
static int
keeps_order (const csfk_convertscale_plan *plan)
{
  return plan->in_bytes == plan->out_bytes && plan->order[0] == 0 &&
      (plan->out_bytes == 3 || plan->order[3] == 3);
}

static CSFK_ALWAYS_INLINE void
scale_packed (const csfk_frame *frame, const csfk_convertscale_plan *plan)
{
  const csfk_plane *in = &frame->in.plane[0], *out = &frame->out.plane[0];
  const int in_bytes = plan->in_bytes, out_bytes = plan->out_bytes, width = frame->out.width;
  csfk_convertscale_columns columns;
  unsigned char pixels[VALUES];
  sampler s;

  for (int first = 0; first < width; first += STRIP) {
    const int n = width - first < STRIP ? width - first : STRIP;

    csfk_convertscale_set_columns (&columns, &plan->x, taps_of (plan), in_bytes, first, n, width);
    sampler_init (&s, in, &columns, &plan->y);
    for (int y = 0; y < out->rows; y++) {
      unsigned char *to = row_of (out, y) + first * out_bytes;

      if (keeps_order (plan)) {
        sampler_get (&s, y, to);
      } else if (is_same_size (frame)) {
        reorder (row_of (in, y) + first * in_bytes, in_bytes, plan->order, n, to, out_bytes);
      } else {
        sampler_get (&s, y, pixels);
        reorder (pixels, in_bytes, plan->order, n, to, out_bytes);
      }
    }
  }
}

/* ---- other colours --------------------------------------------------------------------------- */

/* A strip's three components of one output row. */
typedef struct components
{
  int16_t c[3][UNITS];
} components;

/* What makes them.  n columns begin at output column `first`, which may be -1. */
typedef struct component_source
{
  const csfk_image *in;
  int first, n;
  int in_bytes;
  int same_size;                /* luma and R'G'B' are the input's */
  csfk_convertscale_columns columns, chroma_columns;
  sampler luma, chroma[2];
} component_source;

static void
source_init (component_source *source, const csfk_frame *frame, const csfk_convertscale_plan *plan,
    int first, int n)
{
  const csfk_image *in = &frame->in;
  const int width = frame->out.width;
  const int chroma_channels = in->format == CSFK_FORMAT_NV12 ? 2 : 1;

  source->in = in;
  source->first = first;
  source->n = n;
  source->same_size = is_same_size (frame);
  source->in_bytes = plan->in_bytes;
  csfk_convertscale_set_columns (&source->columns, &plan->x, taps_of (plan),
      plan->in_bytes > 0 ? plan->in_bytes : 1, first, n, width);
  sampler_init (&source->luma, &in->plane[0], &source->columns, &plan->y);
  if (in->n_planes == 1)
    return;
  csfk_convertscale_set_columns (&source->chroma_columns, &plan->chroma_x, 2, chroma_channels,
      first, n, width);
  for (int i = 1; i < in->n_planes; i++)
    sampler_init (&source->chroma[i - 1], &in->plane[i], &source->chroma_columns,
        &plan->chroma_y);
}

/* Constant steps let the compiler make vectors of each. */
static CSFK_ALWAYS_INLINE void
split_components (const int16_t *restrict from, int step, int n, int16_t *restrict a,
    int16_t *restrict b, int16_t *restrict c)
{
  if (step == 4) {
    for (int i = 0; i < n; i++) {
      a[i] = from[4 * i];
      b[i] = from[4 * i + 1];
      c[i] = from[4 * i + 2];
    }
  } else if (step == 3) {
    for (int i = 0; i < n; i++) {
      a[i] = from[3 * i];
      b[i] = from[3 * i + 1];
      c[i] = from[3 * i + 2];
    }
  } else {
    for (int i = 0; i < n; i++) {
      b[i] = from[2 * i];
      c[i] = from[2 * i + 1];
    }
  }
}

/* Three components, or with step 1 luma, of pixels as they are. */
static CSFK_ALWAYS_INLINE void
widen (const unsigned char *restrict from, int step, int n, int16_t *restrict a,
    int16_t *restrict b, int16_t *restrict c)
{
  if (step == 4) {
    for (int i = 0; i < n; i++) {
      const uint32_t word = load_word (from + 4 * i);

      a[i] = (int16_t) ((word & 255) << PLACES);
      b[i] = (int16_t) ((word >> 8 & 255) << PLACES);
      c[i] = (int16_t) ((word >> 16 & 255) << PLACES);
    }
  } else if (step == 3) {
    for (int i = 0; i < n; i++) {
      a[i] = (int16_t) (from[3 * i] << PLACES);
      b[i] = (int16_t) (from[3 * i + 1] << PLACES);
      c[i] = (int16_t) (from[3 * i + 2] << PLACES);
    }
  } else {
    for (int i = 0; i < n; i++)
      a[i] = (int16_t) (from[i] << PLACES);
  }
}

/* A column more on either side is the edge's pixel again. */
static CSFK_ALWAYS_INLINE void
source_get_same (const component_source *source, int y, components *row)
{
  const int step = source->in_bytes > 0 ? source->in_bytes : 1;
  const int skip = source->first < 0, end = source->in->width - source->first;
  const int n = (source->n < end ? source->n : end) - skip;
  const unsigned char *from = row_of (&source->in->plane[0], y) + (source->first + skip) * step;

  widen (from, step, n, row->c[0] + skip, row->c[1] + skip, row->c[2] + skip);
  for (int i = 0; i < (step > 1 ? 3 : 1); i++) {
    if (skip)
      row->c[i][0] = row->c[i][1];
    for (int x = skip + n; x < source->n; x++)
      row->c[i][x] = row->c[i][x - 1];
  }
}

static CSFK_ALWAYS_INLINE void
source_get (component_source *source, int y, components *row)
{
  int16_t side_by_side[VALUES];
  const int n = source->n;

  if (source->same_size) {
    source_get_same (source, y, row);
    if (source->in_bytes > 0)
      return;
  } else if (source->in_bytes > 0) {
    sampler_get_places (&source->luma, y, side_by_side);
    split_components (side_by_side, source->in_bytes, n, row->c[0], row->c[1], row->c[2]);
    return;
  } else {
    sampler_get_places (&source->luma, y, row->c[0]);
  }
  if (source->in->n_planes == 1) {
    for (int i = 0; i < n; i++)
      row->c[1][i] = row->c[2][i] = 128 << PLACES;
  } else if (source->in->n_planes == 2) {
    sampler_get_places (&source->chroma[0], y, side_by_side);
    split_components (side_by_side, 2, n, NULL, row->c[1], row->c[2]);
  } else {
    sampler_get_places (&source->chroma[0], y, row->c[1]);
    sampler_get_places (&source->chroma[1], y, row->c[2]);
  }
}

static CSFK_ALWAYS_INLINE void
join_components (const unsigned char *restrict a, const unsigned char *restrict b,
    const unsigned char *restrict c, int n, unsigned char *restrict to, int step)
{
  if (step == 3) {
    for (int i = 0; i < n; i++) {
      to[3 * i] = a[i];
      to[3 * i + 1] = b[i];
      to[3 * i + 2] = c[i];
    }
  } else {
    for (int i = 0; i < n; i++)
      store_word (to + 4 * i, a[i] | (uint32_t) b[i] << 8 | (uint32_t) c[i] << 16 | 0xff000000u);
  }
}

/* The matrix' row `index` on a row of components from its column `skip` on. */
static CSFK_ALWAYS_INLINE void
apply (const components *row, int skip, const csfk_convertscale_plan *plan, int index, int n,
    unsigned char *results)
{
  const int16_t *from[3] = { row->c[0] + skip, row->c[1] + skip, row->c[2] + skip };

  csfk_convertscale_apply (from, plan->matrix[index], n, results);
}

static CSFK_ALWAYS_INLINE void
colour_strip_to_rgb (const csfk_frame *frame, const csfk_convertscale_plan *plan,
    component_source *source, int first)
{
  const csfk_plane *out = &frame->out.plane[0];
  unsigned char results[3][UNITS];
  components row;

  for (int y = 0; y < out->rows; y++) {
    source_get (source, y, &row);
    for (int i = 0; i < 3; i++)
      apply (&row, 0, plan, i, source->n, results[i]);
    join_components (results[0], results[1], results[2], source->n,
        row_of (out, y) + first * plan->out_bytes, plan->out_bytes);
  }
}

/* Weighted sums of three rows, the outer ones' weight being 0 or 1, times 4; n values. */
static CSFK_ALWAYS_INLINE void
add_rows (const int16_t *restrict above, const int16_t *restrict at, const int16_t *restrict below,
    int cosited, int n, int16_t *restrict sums)
{
  if (cosited)
    for (int i = 0; i < n; i++)
      sums[i] = (int16_t) (above[i] + 2 * at[i] + below[i]);
  else
    for (int i = 0; i < n; i++)
      sums[i] = (int16_t) (2 * (at[i] + below[i]));
}

/* Means of neighbouring columns; sums begin with the column left of the first chroma sample. */
static CSFK_ALWAYS_INLINE void
mean_columns (const int16_t *restrict sums, int cosited, int n, int16_t *restrict means)
{
  const int half = 1 << PLACES >> 1;

  if (cosited)
    for (int k = 0; k < n; k++)
      means[k] = (int16_t) ((sums[2 * k] + 2 * sums[2 * k + 1] + sums[2 * k + 2] + half) >> PLACES);
  else
    for (int k = 0; k < n; k++)
      means[k] = (int16_t) ((2 * sums[2 * k + 1] + 2 * sums[2 * k + 2] + half) >> PLACES);
}

/* One row of n chroma samples that begins at sample `first`.  The rows of components begin a column
 * further left. */
static CSFK_ALWAYS_INLINE void
write_chroma (const csfk_frame *frame, const csfk_convertscale_plan *plan,
    const components *const *rows, int first, int n, int y)
{
  unsigned char cb[UNITS / 2], cr[UNITS / 2];
  int16_t sums[UNITS];
  components means;

  for (int i = 0; i < 3; i++) {
    add_rows (rows[0]->c[i], rows[1]->c[i], rows[2]->c[i], plan->cosited_y, 2 * n + 1, sums);
    mean_columns (sums, plan->cosited_x, n, means.c[i]);
  }
  if (frame->out.n_planes == 3) {
    apply (&means, 0, plan, 1, n, row_of (&frame->out.plane[1], y) + first);
    apply (&means, 0, plan, 2, n, row_of (&frame->out.plane[2], y) + first);
    return;
  }
  apply (&means, 0, plan, 1, n, cb);
  apply (&means, 0, plan, 2, n, cr);
  join_pairs (cb, cr, n, row_of (&frame->out.plane[1], y) + 2 * first);
}

/* The source has a column more on each side than the n of the strip. */
static CSFK_ALWAYS_INLINE void
colour_strip_to_planes (const csfk_frame *frame, const csfk_convertscale_plan *plan,
    component_source *source, int first, int n)
{
  const csfk_plane *luma = &frame->out.plane[0];
  const int height = frame->out.height;
  components buffers[3], *above = &buffers[0], *even = &buffers[1], *odd = &buffers[2];

  for (int y = 0; y < height; y += 2) {
    components *spare = above;

    /* What was the odd row is now the one above. */
    above = odd;
    odd = spare;
    source_get (source, y, even);
    apply (even, 1, plan, 0, n, row_of (luma, y) + first);
    if (y + 1 < height) {
      source_get (source, y + 1, odd);
      apply (odd, 1, plan, 0, n, row_of (luma, y + 1) + first);
    }
    if (frame->out.n_planes > 1) {
      const components *rows[3] = { y > 0 ? above : even, even, y + 1 < height ? odd : even };

      write_chroma (frame, plan, rows, first / 2, (n + 1) / 2, y / 2);
    }
  }
}

static CSFK_ALWAYS_INLINE void
convert_colours (const csfk_frame *frame, const csfk_convertscale_plan *plan)
{
  const int width = frame->out.width;
  component_source source;

  for (int first = 0; first < width; first += STRIP) {
    const int n = width - first < STRIP ? width - first : STRIP;

    if (plan->out_bytes > 0) {
      source_init (&source, frame, plan, first, n);
      colour_strip_to_rgb (frame, plan, &source, first);
    } else {
      source_init (&source, frame, plan, first - 1, n + 2);
      colour_strip_to_planes (frame, plan, &source, first, n);
    }
  }
}

static CSFK_ALWAYS_INLINE void
run_body (const csfk_frame *frame, const csfk_convertscale_plan *plan)
{
  switch (plan->task) {
    case CSFK_CONVERTSCALE_COPY:
      for (int i = 0; i < frame->out.n_planes; i++)
        csfk_plane_copy (&frame->out.plane[i], &frame->in.plane[i]);
      break;
    case CSFK_CONVERTSCALE_PLANES:
      scale_planes (frame, plan);
      break;
    case CSFK_CONVERTSCALE_PACKED:
      scale_packed (frame, plan);
      break;
    case CSFK_CONVERTSCALE_COLOUR:
      convert_colours (frame, plan);
      break;
  }
}

#if CSFK_TWO_TARGETS
CSFK_TARGET_AVX2 static void
run_avx2 (const csfk_frame *frame, const csfk_convertscale_plan *plan)
{
  run_body (frame, plan);
}
#else
#define run_avx2 run_body
#endif

void
csfk_convertscale_run (const csfk_frame *frame, const csfk_convertscale_plan *plan)
{
  if (csfk_has_avx2 ())
    run_avx2 (frame, plan);
  else
    run_body (frame, plan);
}
