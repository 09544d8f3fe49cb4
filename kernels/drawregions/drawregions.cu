/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* drawregions on the GPU: one launch over the planes (blockIdx.z).  A block copies a tile and
 * draws over what it has copied the boxes and labels that reach into it.  drawregions.c says
 * what is drawn.  Knows kernel.h and the font only.
 *
 * A block's threads look at one region each, and text is only written out where its label is
 * near, so what is not near a region costs little more than the copy however many there are. */
#include "drawregions.h"

#include "font.h"

#define TILE_BYTES CSFK_DRAWREGIONS_TILE_BYTES
#define TILE_ROWS CSFK_DRAWREGIONS_TILE_ROWS
#define BLOCK_X CSFK_DRAWREGIONS_BLOCK_X
#define BLOCK_Y CSFK_DRAWREGIONS_BLOCK_Y
#define ROWS CSFK_DRAWREGIONS_ROWS
#define CHUNK CSFK_DRAWREGIONS_CHUNK
#define MAX_TEXT CSFK_DRAWREGIONS_MAX_TEXT

/* Samples of one component in a plane, two bytes each where `wide`: sample x begins offset + x *
 * pitch bytes into its row. */
struct channel
{
  int offset, pitch, shift_x, shift_y, component;
  bool wide;
};

static __device__ __forceinline__ int
count_channels (int format, int plane)
{
  switch (format) {
    case CSFK_FORMAT_GRAY8:
    case CSFK_FORMAT_I420:
      return 1;
    case CSFK_FORMAT_NV12:
    case CSFK_FORMAT_P010_10LE:
      return plane == 0 ? 1 : 2;
    case CSFK_FORMAT_RGBA:
    case CSFK_FORMAT_BGRA:
      return 4;
    default:
      return 3;
  }
}

static __device__ __forceinline__ channel
get_channel (int format, int plane, int i)
{
  const int uyvy = format == CSFK_FORMAT_UYVY;

  switch (format) {
    case CSFK_FORMAT_GRAY8:
    case CSFK_FORMAT_I420:
      return { 0, 1, plane > 0, plane > 0, plane, false };
    case CSFK_FORMAT_NV12:
      return plane == 0 ? channel { 0, 1, 0, 0, 0, false } : channel { i, 2, 1, 1, 1 + i, false };
    case CSFK_FORMAT_P010_10LE:
      return plane == 0 ? channel { 0, 2, 0, 0, 0, true } : channel { 2 * i, 4, 1, 1, 1 + i, true };
    case CSFK_FORMAT_YUY2:
    case CSFK_FORMAT_UYVY:
      return i == 0 ? channel { uyvy, 2, 0, 0, 0, false }
          : channel { 2 * i - 1 - uyvy, 4, 1, 0, i, false };
    case CSFK_FORMAT_RGB:
    case CSFK_FORMAT_BGR:
      return { i, 3, 0, 0, i, false };
    default:
      return { i, 4, 0, 0, i, false };
  }
}

/* The bytes and rows of a plane that a block writes, and the pixels that these stand for. */
struct tile
{
  int byte0, byte1, y0, y1;
};

/* Pixels; x1 and y1 are not inside. */
struct rectangle
{
  int x0, y0, x1, y1;
};

static __device__ __forceinline__ bool
overlap (const rectangle &a, const rectangle &b)
{
  return a.x0 < b.x1 && b.x0 < a.x1 && a.y0 < b.y1 && b.y0 < a.y1;
}

static __device__ __forceinline__ rectangle
get_pixels (const csfk_image &image, const tile &mine)
{
  /* The last channel of a plane: of all its channels, the one whose samples span the most
   * pixels. */
  const channel at = get_channel (image.format, blockIdx.z,
      count_channels (image.format, blockIdx.z) - 1);

  return { mine.byte0 / at.pitch << at.shift_x, mine.y0 << at.shift_y,
    (mine.byte1 / at.pitch + 1) << at.shift_x, mine.y1 << at.shift_y };
}

/* ---- regions --------------------------------------------------------------------------------- */

struct drawing
{
  rectangle box, label;         /* the label is empty without text, and where it is not near */
  int colour;                   /* of the style's */
  int n_glyphs;
  unsigned char glyph[MAX_TEXT];
};

static __device__ __forceinline__ int
move_near (long long place)
{
  const long long limit = CSFK_DRAWREGIONS_LIMIT;

  return (int) min (max (place, -limit), limit);
}

static __device__ __forceinline__ bool
continues_sequence (unsigned char byte)
{
  return byte >> 6 == 2;
}

static __device__ __forceinline__ int
count_digits (int number)
{
  int n = 1;

#pragma unroll 1
  for (; number > 9; number /= 10)
    n++;
  return n;
}

static __device__ __forceinline__ int
get_percent (float confidence)
{
  /* The product is rounded once, and nothing is added to it as a float. */
  return confidence < 1.0f ? ((int) __fmul_rn (confidence, 200.0f) + 1) / 2 : 100;
}

static __device__ int
count_glyphs (const csfk_region &region)
{
  int n = 0;

#pragma unroll 1
  for (int i = 0; i < CSFK_LABEL_BYTES - 1 && region.label[i] != 0; i++)
    n += !continues_sequence (region.label[i]);
  /* A gap where something comes before, the number, and its sign. */
  if (region.confidence >= 0.0f)
    n += (n > 0) + count_digits (get_percent (region.confidence)) + 1;
  if (region.track_id >= 0)
    n += (n > 0) + 1 + count_digits (region.track_id);
  return n;
}

static __device__ __forceinline__ unsigned char
get_glyph (unsigned char character)
{
  const unsigned index = character - (unsigned) CSFK_FONT_FIRST;

  return index < CSFK_FONT_UNKNOWN ? index : CSFK_FONT_UNKNOWN;
}

/* Writes the digits of a number from its last one, which is glyphs[end - 1], and returns where
 * they begin. */
static __device__ __forceinline__ int
write_number (unsigned char *glyphs, int end, int number)
{
#pragma unroll 1
  do {
    glyphs[--end] = get_glyph ('0' + number % 10);
    number /= 10;
  } while (number > 0);
  return end;
}

/* From the end, whose place is known. */
static __device__ void
write_text (const csfk_region &region, drawing &to)
{
  int end = to.n_glyphs, n = 0;

  if (region.track_id >= 0) {
    end = write_number (to.glyph, end, region.track_id);
    to.glyph[--end] = get_glyph ('#');
    if (end > 0)
      to.glyph[--end] = get_glyph (' ');
  }
  if (region.confidence >= 0.0f) {
    to.glyph[--end] = get_glyph ('%');
    end = write_number (to.glyph, end, get_percent (region.confidence));
    if (end > 0)
      to.glyph[--end] = get_glyph (' ');
  }
#pragma unroll 1
  for (int i = 0; n < end; i++)
    if (!continues_sequence (region.label[i]))
      to.glyph[n++] = get_glyph (region.label[i]);
}

static __device__ int
choose_colour (const csfk_drawregions_style &style, const char *label)
{
  unsigned hash = 2166136261u;

  if (style.n_colours == 1)
    return 0;
#pragma unroll 1
  for (int i = 0; i < CSFK_LABEL_BYTES && label[i] != 0; i++)
    hash = (hash ^ (unsigned char) label[i]) * 16777619u;
  return hash % (unsigned) style.n_colours;
}

/* Where the label of n_glyphs lies.  A longer one begins no further right, and is as high. */
static __device__ __forceinline__ rectangle
place_label (const csfk_drawregions_args &args, const rectangle &box, int n_glyphs)
{
  const csfk_drawregions_style &style = args.style;
  int width = (CSFK_DRAWREGIONS_ADVANCE * n_glyphs + CSFK_DRAWREGIONS_ENDS) * style.scale;
  int height = CSFK_DRAWREGIONS_LABEL_ROWS * style.scale;

  width += width & style.even;
  height += height & style.even;

  const int right = max (args.frame.in.width - width, 0) & ~style.even;
  const int lowest = max (args.frame.in.height - height, 0) & ~style.even;
  const int x = min (max (box.x0, 0), right);
  const int y = box.y0 >= height ? box.y0 - height : min (max (box.y0, 0), lowest);

  return { x, y, x + width, y + height };
}

/* False when nothing of it is drawn on these pixels.  The text is not written yet. */
static __device__ bool
find_drawing (const csfk_drawregions_args &args, int index, const rectangle &pixels, drawing &found)
{
  const csfk_region &region = args.frame.regions[index];
  const csfk_drawregions_style &style = args.style;
  const int even = style.even, thickness = style.thickness;
  rectangle box = {
    move_near (region.x), move_near (region.y), move_near ((long long) region.x + region.width),
    move_near ((long long) region.y + region.height)
  };

  if (region.width <= 0 || region.height <= 0 || box.x0 >= args.frame.in.width
      || box.y0 >= args.frame.in.height || box.x1 <= 0 || box.y1 <= 0)
    return false;
  box = { box.x0 - (box.x0 & even), box.y0 - (box.y0 & even), box.x1 + (box.x1 & even),
    box.y1 + (box.y1 & even) };

  const bool inside = pixels.x0 >= box.x0 + thickness && pixels.x1 <= box.x1 - thickness
      && pixels.y0 >= box.y0 + thickness && pixels.y1 <= box.y1 - thickness;
  bool near = overlap (box, pixels) && !inside;

  found.box = box;
  found.label = { 0, 0, 0, 0 };
  found.n_glyphs = 0;
  if (style.scale > 0) {
    /* As far as the longest text may reach, wherever it begins. */
    rectangle label = place_label (args, box, MAX_TEXT);

    label.x1 += max (box.x0, 0) - label.x0;
    if (overlap (label, pixels)) {
      const int n_glyphs = count_glyphs (region);

      label = place_label (args, box, n_glyphs);
      if (n_glyphs > 0 && overlap (label, pixels)) {
        found.label = label;
        found.n_glyphs = n_glyphs;
        near = true;
      }
    }
  }
  if (near)
    found.colour = choose_colour (style, region.label);
  return near;
}

/* ---- drawing --------------------------------------------------------------------------------- */

static __device__ __forceinline__ unsigned
load_sample (const unsigned char *at, int wide)
{
  return wide ? (unsigned) (at[0] | at[1] << 8) >> 6 : at[0];
}

static __device__ __forceinline__ void
store_sample (unsigned char *at, unsigned value, int wide)
{
  if (wide) {
    at[0] = (unsigned char) (value << 6);
    at[1] = (unsigned char) (value >> 2);
  } else {
    at[0] = (unsigned char) value;
  }
}

/* What is drawn with on one channel of a tile, worked out by one thread for its block and kept
 * in shared memory: in registers it would keep blocks that only copy off the multiprocessor. */
struct pen
{
  unsigned char *data;          /* sample 0 of row 0 */
  int stride, pitch;
  int wide, shift_x, shift_y;
  int x0, y0, x1, y1;           /* samples and rows of the tile */
  unsigned colour, alpha, ink;
};

static __device__ __forceinline__ void
make_pen (const csfk_drawregions_args &args, const tile &mine, int colour, int index, pen &made)
{
  const csfk_image &out = args.frame.out;
  const csfk_plane &plane = out.plane[blockIdx.z];
  const channel at = get_channel (out.format, blockIdx.z, index);

  made.data = plane.data + at.offset;
  made.stride = plane.stride;
  made.pitch = at.pitch;
  made.wide = at.wide;
  made.shift_x = at.shift_x;
  made.shift_y = at.shift_y;
  /* Only the samples that begin among this block's bytes. */
  made.x0 = (mine.byte0 - at.offset + at.pitch - 1) / at.pitch;
  made.x1 = (mine.byte1 - at.offset + at.pitch - 1) / at.pitch;
  made.y0 = mine.y0;
  made.y1 = mine.y1;
  made.colour = args.style.colour[colour].component[at.component];
  made.ink = args.style.colour[colour].ink[at.component];
  made.alpha = args.style.alpha;
}

static __device__ __forceinline__ unsigned char *
get_address (const volatile pen &with, int x, int y)
{
  return with.data + (size_t) y * with.stride + (size_t) x * with.pitch;
}

static __device__ __forceinline__ unsigned
blend (const volatile pen &with, unsigned sample)
{
  return (sample * (255 - with.alpha) + with.colour * with.alpha + 127) / 255;
}

static __device__ __forceinline__ void
draw_box (const volatile pen &with, const volatile rectangle &box, int thickness)
{
  const int x0 = max (box.x0 >> with.shift_x, with.x0), x1 = min (box.x1 >> with.shift_x, with.x1);
  const int y0 = max (box.y0 >> with.shift_y, with.y0), y1 = min (box.y1 >> with.shift_y, with.y1);

#pragma unroll 1
  for (int y = y0 + (int) threadIdx.y; y < y1; y += BLOCK_Y) {
    const bool between = y >= (box.y0 + thickness) >> with.shift_y
        && y < (box.y1 - thickness) >> with.shift_y;

#pragma unroll 1
    for (int x = x0 + (int) threadIdx.x; x < x1; x += BLOCK_X) {
      if (between && x >= (box.x0 + thickness) >> with.shift_x
          && x < (box.x1 - thickness) >> with.shift_x)
        continue;

      unsigned char *at = get_address (with, x, y);

      store_sample (at, blend (with, load_sample (at, with.wide)), with.wide);
    }
  }
}

/* x, y: pixels from the label's corner. */
static __device__ __forceinline__ unsigned
get_ink (const volatile drawing &of, int scale, int x, int y)
{
  const int column = (unsigned) x / (unsigned) scale - CSFK_DRAWREGIONS_MARGIN;
  const int row = (unsigned) y / (unsigned) scale - CSFK_DRAWREGIONS_MARGIN;
  const int index = column / CSFK_DRAWREGIONS_ADVANCE;
  const int bit = CSFK_FONT_COLUMNS - 1 - column % CSFK_DRAWREGIONS_ADVANCE;

  if (column < 0 || row < 0 || row >= CSFK_FONT_ROWS || bit < 0 || index >= of.n_glyphs)
    return 0;
  return csfk_font[of.glyph[index]][row] >> bit & 1;
}

static __device__ __forceinline__ void
draw_label (const volatile pen &with, const volatile drawing &of, int scale)
{
  const int x0 = max (of.label.x0 >> with.shift_x, with.x0);
  const int x1 = min (of.label.x1 >> with.shift_x, with.x1);
  const int y0 = max (of.label.y0 >> with.shift_y, with.y0);
  const int y1 = min (of.label.y1 >> with.shift_y, with.y1);

#pragma unroll 1
  for (int y = y0 + (int) threadIdx.y; y < y1; y += BLOCK_Y)
#pragma unroll 1
    for (int x = x0 + (int) threadIdx.x; x < x1; x += BLOCK_X) {
      const int places = with.shift_x + with.shift_y, n = 1 << places;
      unsigned char *at = get_address (with, x, y);
      unsigned value = blend (with, load_sample (at, with.wide)), covered = 0;

#pragma unroll 1
      for (int i = 0; i < n; i++)
        covered += get_ink (of, scale, (x << with.shift_x) + (i & with.shift_x) - of.label.x0,
            (y << with.shift_y) + (i >> 1) - of.label.y0);
      value = (value * (n - covered) + with.ink * covered + n / 2) >> places;
      store_sample (at, value, with.wide);
    }
}

/* ---- tiles ----------------------------------------------------------------------------------- */

/* The rows of a tile, one Word a thread in each step across it. */
template <typename Word>
static __device__ __forceinline__ void
copy_tile (const csfk_plane &in, const csfk_plane &out, const tile &mine)
{
  const int bytes = (int) sizeof (Word);

#pragma unroll 1
  for (int x = mine.byte0 + (int) threadIdx.x * bytes; x < mine.byte1; x += BLOCK_X * bytes) {
    const int y0 = mine.y0 + (int) threadIdx.y;
    const unsigned char *from = in.data + (size_t) y0 * in.stride + x;
    unsigned char *to = out.data + (size_t) y0 * out.stride + x;
    const size_t from_step = (size_t) in.stride * BLOCK_Y, to_step = (size_t) out.stride * BLOCK_Y;

    if (x + bytes <= mine.byte1) {
      Word words[ROWS];

#pragma unroll
      for (int i = 0; i < ROWS; i++)
        if (y0 + i * BLOCK_Y < mine.y1)
          words[i] = *(const Word *) (from + i * from_step);
#pragma unroll
      for (int i = 0; i < ROWS; i++)
        if (y0 + i * BLOCK_Y < mine.y1)
          *(Word *) (to + i * to_step) = words[i];
      continue;
    }

    /* The row's last bytes do not fill a word, and what follows them is not ours. */
#pragma unroll 1
    for (int i = 0; i < ROWS && y0 + i * BLOCK_Y < mine.y1; i++)
#pragma unroll 1
      for (int b = 0; x + b < mine.byte1; b++)
        to[i * to_step + b] = from[i * from_step + b];
  }
}

extern "C" __global__ void __launch_bounds__ (BLOCK_X *BLOCK_Y, 6)
csfk_drawregions (const csfk_drawregions_args args)
{
  __shared__ drawing drawings[CHUNK];
  __shared__ pen with;
  __shared__ unsigned near[CHUNK / 32];
  const csfk_plane &in = args.frame.in.plane[blockIdx.z];
  const csfk_plane &out = args.frame.out.plane[blockIdx.z];
  const int thread = threadIdx.y * BLOCK_X + threadIdx.x;
  const size_t bits = (size_t) in.data | (size_t) out.data | (size_t) in.stride |
      (size_t) out.stride;
  const int byte0 = blockIdx.x * TILE_BYTES, y0 = blockIdx.y * TILE_ROWS;
  const int n_regions = args.style.alpha > 0 ? args.frame.n_regions : 0;
  const tile mine = {
    byte0, min (byte0 + TILE_BYTES, in.row_bytes), y0, min (y0 + TILE_ROWS, in.rows)
  };

  if (byte0 >= in.row_bytes || y0 >= in.rows)
    return;
  if ((bits & 15) == 0)
    copy_tile<uint4> (in, out, mine);
  else if ((bits & 3) == 0)
    copy_tile<unsigned> (in, out, mine);
  else
    copy_tile<unsigned char> (in, out, mine);

#pragma unroll 1
  for (int base = 0; base < n_regions; base += CHUNK) {
    bool hit = false;

    if (thread < CHUNK) {
      if (base + thread < n_regions)
        hit = find_drawing (args, base + thread, get_pixels (args.frame.out, mine),
            drawings[thread]);

      const unsigned mask = __ballot_sync (0xffffffffu, hit);

      if (threadIdx.x == 0)
        near[thread / 32] = mask;
    }
    /* Also: what is drawn on is copied. */
    if (!__syncthreads_or (hit))
      continue;
    /* Read after more barriers. */
    if (hit && drawings[thread].n_glyphs > 0)
      write_text (args.frame.regions[base + thread], drawings[thread]);
#pragma unroll 1
    for (int group = 0; group < CHUNK / 32; group++)
#pragma unroll 1
      for (unsigned mask = near[group]; mask != 0; mask &= mask - 1) {
        const drawing &of = drawings[group * 32 + __ffs (mask) - 1];

#pragma unroll 1
        for (int i = 0; i < count_channels (args.frame.out.format, blockIdx.z); i++) {
          if (thread == 0)
            make_pen (args, mine, of.colour, i, with);
          __syncthreads ();
          draw_box (with, of.box, args.style.thickness);
          /* The label lies on the box, and the next region on this one. */
          __syncthreads ();
          draw_label (with, of, args.style.scale);
          __syncthreads ();
        }
      }
  }
}
