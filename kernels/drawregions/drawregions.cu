/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* drawregions on the GPU: one launch over the planes (blockIdx.z), each block a tile.
 * drawregions.c says what is drawn.  Knows kernel.h, tiles.cuh and the font only.
 *
 * A thread has its words of the tile in registers while the block's threads look at one region
 * each: most blocks then have nothing to draw and store them.  In the others the words go through
 * shared memory.  There each warp writes out the text of one region, and each thread draws on its
 * own words: what lines, label and letters cover of a word are bits, one a byte, found by
 * intervals; only bytes that are drawn on are then looked at. */
#include "drawregions.h"

#include "../tiles.cuh"
#include "font.h"

#define TILE_BYTES CSFK_DRAWREGIONS_TILE_BYTES
#define TILE_ROWS CSFK_DRAWREGIONS_TILE_ROWS
#define BLOCK_X CSFK_DRAWREGIONS_BLOCK_X
#define BLOCK_Y CSFK_DRAWREGIONS_BLOCK_Y
#define ROWS CSFK_DRAWREGIONS_ROWS
#define CHUNK CSFK_DRAWREGIONS_CHUNK
#define MAX_TEXT CSFK_DRAWREGIONS_MAX_TEXT
#define ALL_LANES 0xffffffffu

/* ---- where samples lie ----------------------------------------------------------------------- */

/* A plane's row is a row of groups: `pitch` bytes that stand for 1 << shift_x by 1 << shift_y
 * pixels, such as Cb and Cr of NV12, or the two pixels of YUY2.  Boxes and labels begin and end
 * between groups.  Samples of 10 bits (`wide`) take two bytes. */
struct layout
{
  int pitch, shift_x, shift_y;
  bool wide;
};

static __device__ __forceinline__ layout
get_layout (int format, int plane)
{
  const int chroma = plane > 0;

  switch (format) {
    case CSFK_FORMAT_GRAY8:
    case CSFK_FORMAT_I420:
      return { 1, chroma, chroma, false };
    case CSFK_FORMAT_NV12:
      return { 1 + chroma, chroma, chroma, false };
    case CSFK_FORMAT_P010_10LE:
      return { 2 + 2 * chroma, chroma, chroma, true };
    case CSFK_FORMAT_YUY2:
    case CSFK_FORMAT_UYVY:
      return { 4, 1, 0, false };
    case CSFK_FORMAT_RGB:
    case CSFK_FORMAT_BGR:
      return { 3, 0, 0, false };
    default:
      return { 4, 0, 0, false };
  }
}

/* Which group a byte of a row belongs to. */
static __device__ __forceinline__ int
find_group (const layout &groups, int byte)
{
  return groups.pitch == 3 ? (int) ((unsigned) byte / 3) : byte >> groups.pitch / 2;
}

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

/* The pixels that its groups stand for. */
static __device__ __forceinline__ rectangle
get_pixels (const tile &mine, const layout &groups)
{
  return { find_group (groups, mine.byte0) << groups.shift_x, mine.y0 << groups.shift_y,
    (find_group (groups, mine.byte1 - 1) + 1) << groups.shift_x, mine.y1 << groups.shift_y };
}

/* Four bytes of a plane in one colour; of three bytes a pixel, from the phase-th byte of one on. */
static __device__ __forceinline__ unsigned
get_pattern (int format, int plane, const unsigned short colour[4], int phase)
{
  const unsigned a = colour[0], b = colour[1], c = colour[2], d = colour[3];

  switch (format) {
    case CSFK_FORMAT_GRAY8:
      return a * 0x01010101u;
    case CSFK_FORMAT_I420:
      return (plane == 0 ? a : plane == 1 ? b : c) * 0x01010101u;
    case CSFK_FORMAT_NV12:
      return plane == 0 ? a * 0x01010101u : (b | c << 8) * 0x00010001u;
    case CSFK_FORMAT_P010_10LE:
      return plane == 0 ? a * 0x00400040u : b << 6 | c << 22;
    case CSFK_FORMAT_YUY2:
      return a * 0x00010001u | b << 8 | c << 24;
    case CSFK_FORMAT_UYVY:
      return a * 0x01000100u | b | c << 16;
    case CSFK_FORMAT_RGB:
    case CSFK_FORMAT_BGR:
      return phase == 0 ? a | b << 8 | c << 16 | a << 24
          : phase == 1 ? b | c << 8 | a << 16 | b << 24 : c | a << 8 | b << 16 | c << 24;
    default:
      return a | b << 8 | c << 16 | d << 24;
  }
}

/* ---- regions --------------------------------------------------------------------------------- */

/* What is drawn of one region, for all threads of a block. */
struct drawing
{
  rectangle box, label;         /* the label is empty without text, and where it is not near */
  int n_glyphs;
  /* In the plane's bytes; see get_pattern(). */
  unsigned colour[3], ink[3];
  /* The glyphs' rows, from the top; bit 4 is a row's left column. */
  uint2 glyph[MAX_TEXT];
};

static __device__ __forceinline__ int
move_near (long long place)
{
  const long long limit = CSFK_DRAWREGIONS_LIMIT;

  return (int) min (max (place, -limit), limit);
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

/* Whether the longest text's label would reach these pixels, wherever it begins. */
static __device__ __forceinline__ bool
may_reach (const csfk_drawregions_args &args, const rectangle &box, const rectangle &pixels)
{
  rectangle label = place_label (args, box, MAX_TEXT);

  label.x1 += max (box.x0, 0) - label.x0;
  return args.style.scale > 0 && overlap (label, pixels);
}

/* False when nothing of it is drawn on the tile, but not always. */
static __device__ __forceinline__ bool
find_box (const csfk_drawregions_args &args, const csfk_region &region, const tile &mine,
    rectangle &box)
{
  /* First, for it takes longest. */
  const int x = region.x, y = region.y, width = region.width, height = region.height;
  const rectangle pixels = get_pixels (mine, get_layout (args.frame.out.format, blockIdx.z));
  const int even = args.style.even, thickness = args.style.thickness;

  box = { move_near (x), move_near (y), move_near ((long long) x + width),
    move_near ((long long) y + height) };
  if (width <= 0 || height <= 0 || box.x0 >= args.frame.in.width
      || box.y0 >= args.frame.in.height || box.x1 <= 0 || box.y1 <= 0)
    return false;
  box = { box.x0 - (box.x0 & even), box.y0 - (box.y0 & even), box.x1 + (box.x1 & even),
    box.y1 + (box.y1 & even) };

  const bool inside = pixels.x0 >= box.x0 + thickness && pixels.x1 <= box.x1 - thickness
      && pixels.y0 >= box.y0 + thickness && pixels.y1 <= box.y1 - thickness;

  return (overlap (box, pixels) && !inside) || may_reach (args, box, pixels);
}

/* ---- text: by all lanes of a warp ------------------------------------------------------------ */

static __device__ __forceinline__ int
get_percent (float confidence)
{
  /* The product is rounded once, and nothing is added to it as a float. */
  return confidence < 1.0f ? ((int) __fmul_rn (confidence, 200.0f) + 1) / 2 : 100;
}

static __device__ __forceinline__ void
put_glyph (drawing &to, int place, unsigned character)
{
  const unsigned index = character - (unsigned) CSFK_FONT_FIRST;

  to.glyph[place] = ((const uint2 *) csfk_font)[index < CSFK_FONT_UNKNOWN ? index
      : CSFK_FONT_UNKNOWN];
}

/* Writes a number after `end` glyphs and a gap, with what is put before and after it, where that
 * is not 0.  Returns the new end. */
static __device__ __forceinline__ int
put_number (drawing &to, int end, unsigned before, unsigned number, unsigned after)
{
  const int lane = threadIdx.x;
  unsigned rest = number;

  /* A lane has a digit, counted from the last one. */
#pragma unroll 1
  for (int i = 0; i < min (lane, 10); i++)
    rest /= 10;

  const int n = max (__popc (__ballot_sync (ALL_LANES, rest != 0)), 1);

  if (end > 0) {
    if (lane == 0)
      put_glyph (to, end, ' ');
    end++;
  }
  if (before != 0) {
    if (lane == 0)
      put_glyph (to, end, before);
    end++;
  }
  if (lane < n)
    put_glyph (to, end + n - 1 - lane, '0' + rest % 10);
  end += n;
  if (after != 0) {
    if (lane == 0)
      put_glyph (to, end, after);
    end++;
  }
  return end;
}

/* Writes what the label says.  Returns the number of its glyphs. */
static __device__ __forceinline__ int
put_text (const csfk_region &region, unsigned byte, drawing &to)
{
  const unsigned lane = 1u << threadIdx.x;
  /* The label's end, which has to be in its last byte at the latest. */
  const unsigned zeros = __ballot_sync (ALL_LANES, byte == 0) | 1u << (CSFK_LABEL_BYTES - 1);
  /* What follows the first byte of a longer UTF-8 sequence is no character of its own. */
  const unsigned starts = __ballot_sync (ALL_LANES, byte >> 6 != 2) & ((zeros & -zeros) - 1);
  int end = __popc (starts);

  if (starts & lane)
    put_glyph (to, __popc (starts & (lane - 1)), byte);
  if (region.confidence >= 0.0f)
    end = put_number (to, end, 0, get_percent (region.confidence), '%');
  if (region.track_id >= 0)
    end = put_number (to, end, '#', region.track_id, 0);
  return end;
}

static __device__ __forceinline__ int
choose_colour (const csfk_drawregions_style &style, unsigned byte)
{
  const unsigned zeros = __ballot_sync (ALL_LANES, byte == 0);
  const int n = zeros != 0 ? __ffs (zeros) - 1 : CSFK_LABEL_BYTES;
  unsigned hash = 2166136261u;

  if (style.n_colours == 1)
    return 0;
#pragma unroll 1
  for (int i = 0; i < n; i++)
    hash = (hash ^ __shfl_sync (ALL_LANES, byte, i)) * 16777619u;
  return hash % (unsigned) style.n_colours;
}

/* All of a region whose box is known. */
static __device__ __forceinline__ void
make_drawing (const csfk_drawregions_args &args, int index, const rectangle &box,
    const rectangle &pixels, drawing &made)
{
  const csfk_region &region = args.frame.regions[index];
  const int format = args.frame.out.format;
  const unsigned byte = (unsigned char) region.label[threadIdx.x];
  const csfk_drawregions_colour &colour = args.style.colour[choose_colour (args.style, byte)];
  rectangle label = { 0, 0, 0, 0 };
  int n_glyphs = 0;

  if (may_reach (args, box, pixels))
    n_glyphs = put_text (region, byte, made);
  if (n_glyphs > 0)
    label = place_label (args, box, n_glyphs);
  if (threadIdx.x < 3) {
    made.colour[threadIdx.x] = get_pattern (format, blockIdx.z, colour.component, threadIdx.x);
    made.ink[threadIdx.x] = get_pattern (format, blockIdx.z, colour.ink, threadIdx.x);
  }
  if (threadIdx.x == 0) {
    made.box = box;
    made.label = label;
    made.n_glyphs = n_glyphs;
  }
}

/* ---- drawing --------------------------------------------------------------------------------- */

/* Bits first .. end - 1 of a word's. */
static __device__ __forceinline__ unsigned
get_bits (int first, int end)
{
  const unsigned up_to = (1u << min (max (end, 0), (int) TILE_WORD)) - 1;
  const unsigned before = (1u << min (max (first, 0), (int) TILE_WORD)) - 1;

  return up_to & ~before;
}

/* The bytes of pixels x0 .. x1 - 1 in the word that begins with byte x of its row. */
static __device__ __forceinline__ unsigned
get_span (const layout &groups, int x, int x0, int x1)
{
  return get_bits ((x0 >> groups.shift_x) * groups.pitch - x,
      (x1 >> groups.shift_x) * groups.pitch - x);
}

/* What of a word is drawn on; a bit is a byte. */
struct coverage
{
  unsigned lines, label;
  /* Letters on the first pixel of each group, the one right of it, and the two below. */
  unsigned letters[4];
};

static __device__ __forceinline__ unsigned
find_lines (const layout &groups, const rectangle &box, int thickness, int x, int y)
{
  if (y < box.y0 || y >= box.y1)
    return 0;
  if (y < box.y0 + thickness || y >= box.y1 - thickness)
    return get_span (groups, x, box.x0, box.x1);
  return get_span (groups, x, box.x0, min (box.x0 + thickness, box.x1)) |
      get_span (groups, x, max (box.x1 - thickness, box.x0), box.x1);
}

/* y: of a group's first pixel, inside the label. */
static __device__ __forceinline__ void
find_letters (const layout &groups, const drawing &of, int scale, int x, int y, coverage &found)
{
  const unsigned size = scale;
  const int left = of.label.x0 + CSFK_DRAWREGIONS_MARGIN * scale;
  const int top = of.label.y0 + CSFK_DRAWREGIONS_MARGIN * scale;
  const int end = left + CSFK_DRAWREGIONS_ADVANCE * of.n_glyphs * scale;
  /* The word's pixels, and the rows of letters that they meet; none is above 7. */
  const int x0 = max (find_group (groups, x) << groups.shift_x, left);
  const int x1 = min ((find_group (groups, x + TILE_WORD - 1) + 1) << groups.shift_x, end);
  const unsigned upper = y < top ? CSFK_FONT_ROWS : (y - top) / size;
  const unsigned lower = y + 1 < top ? CSFK_FONT_ROWS : (y + 1 - top) / size;

  if (x0 >= x1)
    return;

  const unsigned first = (x0 - left) / size;
  unsigned index = first / CSFK_DRAWREGIONS_ADVANCE;
  unsigned column = first - index * CSFK_DRAWREGIONS_ADVANCE;

#pragma unroll 1
  for (int from = left + first * scale; from < x1; from += scale) {
    const unsigned char *rows = (const unsigned char *) &of.glyph[index];
    const int to = from + scale;
    const unsigned bit = 1u << (CSFK_FONT_COLUMNS - 1) >> column;

    /* The gap after a letter is column 5: no bit. */
    if (upper < CSFK_FONT_ROWS && (rows[upper] & bit) != 0) {
      found.letters[0] |= get_span (groups, x, from + groups.shift_x, to + groups.shift_x);
      if (groups.shift_x > 0)
        found.letters[1] |= get_span (groups, x, from, to);
    }
    if (groups.shift_y > 0 && lower < CSFK_FONT_ROWS && (rows[lower] & bit) != 0) {
      found.letters[2] |= get_span (groups, x, from + 1, to + 1);
      found.letters[3] |= get_span (groups, x, from, to);
    }
    if (++column == CSFK_DRAWREGIONS_ADVANCE) {
      column = 0;
      index++;
    }
  }
}

static __device__ __forceinline__ unsigned
blend (unsigned sample, unsigned colour, unsigned alpha)
{
  return (sample * (255 - alpha) + colour * alpha + 127) / 255;
}

/* Four bytes, those of `with` where their bit is set. */
static __device__ __forceinline__ unsigned
choose_bytes (unsigned part, unsigned with, unsigned bits)
{
  const unsigned mask = ((bits & 15) * 0x00204081u & 0x01010101u) * 255;

  return (part & ~mask) | (with & mask);
}

/* For four bytes of samples, get (sample, x): what becomes of a sample x bits up, where the bit of
 * its byte is set. */
template <typename Get>
static __device__ __forceinline__ unsigned
change_samples (unsigned part, bool wide, unsigned bits, Get get)
{
  const unsigned before = part;

  if (wide)
    part = get (before >> 6 & 1023, 6) << 6 | get (before >> 22, 22) << 22;
  else
    part = get (before & 255, 0) | get (before >> 8 & 255, 8) << 8 |
        get (before >> 16 & 255, 16) << 16 | get (before >> 24, 24) << 24;
  return choose_bytes (before, part, bits);
}

/* Four bytes of a word, whose coverage's bits are the lowest four. */
static __device__ __forceinline__ unsigned
draw_part (unsigned part, const layout &groups, unsigned colour, unsigned ink, unsigned alpha,
    const coverage &on)
{
  const unsigned most = groups.wide ? 1023 : 255;
  const int places = groups.shift_x + groups.shift_y;
  const unsigned all = 1u << places;
  const unsigned letters = on.letters[0] | on.letters[1] | on.letters[2] | on.letters[3];

  if (alpha == 255)
    part = choose_bytes (part, colour, on.lines | on.label);
  else
#pragma unroll 1
    for (int i = 0; i < 2; i++)
      part = change_samples (part, groups.wide, i == 0 ? on.lines : on.label,
          [&](unsigned sample, int x) { return blend (sample, colour >> x & most, alpha); });
  if (places == 0)
    return choose_bytes (part, ink, letters);
  if ((letters & 15) == 0)
    return part;
  return change_samples (part, groups.wide, letters, [&](unsigned sample, int x) {
    const int byte = x / 8;
    const unsigned n = (on.letters[0] >> byte & 1) + (on.letters[1] >> byte & 1) +
        (on.letters[2] >> byte & 1) + (on.letters[3] >> byte & 1);

    return (sample * (all - n) + (ink >> x & most) * n + all / 2) >> places;
  });
}

/* Draws on the word that begins with byte x of row y of the plane. */
static __device__ __forceinline__ void
draw_word (const csfk_drawregions_args &args, const layout &groups, const drawing &of, int x, int y,
    unsigned *parts)
{
  const int format = args.frame.out.format, scale = args.style.scale;
  const int pixel_y = y << groups.shift_y;
  /* The unused byte is kept. */
  const unsigned drawn =
      format == CSFK_FORMAT_RGBx || format == CSFK_FORMAT_BGRx ? 0x7777 : 0xffff;
  coverage on = { find_lines (groups, of.box, args.style.thickness, x, pixel_y) & drawn, 0, {} };

  if (pixel_y >= of.label.y0 && pixel_y < of.label.y1)
    on.label = get_span (groups, x, of.label.x0, of.label.x1) & drawn;
  if ((on.lines | on.label) == 0)
    return;
  if (on.label != 0)
    find_letters (groups, of, scale, x, pixel_y, on);
#pragma unroll
  for (int i = 0; i < 4; i++)
    on.letters[i] &= drawn;
  if (format == CSFK_FORMAT_YUY2 || format == CSFK_FORMAT_UYVY) {
    /* Each luma sample has one pixel of the two. */
    const unsigned left = format == CSFK_FORMAT_YUY2 ? 0x1111 : 0x2222, right = left << 2;
    const unsigned first = on.letters[0], second = on.letters[1];

    on.letters[0] = (first & ~right) | (second & right);
    on.letters[1] = (second & ~left) | (first & left);
  }

  int phase = (x >> 4) % 3;

#pragma unroll 1
  for (int i = 0; i < 4; i++) {
    if (((on.lines | on.label) & 15) != 0)
      parts[i] = draw_part (parts[i], groups, of.colour[phase], of.ink[phase], args.style.alpha,
          on);
    phase = phase < 2 ? phase + 1 : 0;
    on.lines >>= 4;
    on.label >>= 4;
#pragma unroll
    for (int k = 0; k < 4; k++)
      on.letters[k] >>= 4;
  }
}

/* ---- tiles ----------------------------------------------------------------------------------- */

/* Which of the chunk's regions may draw something on the tile: bits of `masks`, and their boxes.
 * Whether any does; all threads get here. */
static __device__ __forceinline__ bool
look_at_chunk (const csfk_drawregions_args &args, int base, const tile &mine,
    rectangle boxes[CHUNK], unsigned masks[CHUNK / 32])
{
  const int thread = threadIdx.y * BLOCK_X + threadIdx.x;
  bool hit = false;

  if (thread < CHUNK) {
    if (base + thread < args.frame.n_regions)
      hit = find_box (args, args.frame.regions[base + thread], mine, boxes[thread]);

    const unsigned mask = __ballot_sync (ALL_LANES, hit);

    if (threadIdx.x == 0)
      masks[threadIdx.y] = mask;
  }
  return __syncthreads_or (hit);
}

/* Draws on the block's staged words these regions, in their order.  All threads get here. */
static __device__ __forceinline__ void
draw_chunk (const csfk_drawregions_args &args, int base, const tile &mine,
    const rectangle boxes[CHUNK], const unsigned masks[CHUNK / 32], drawing drawings[BLOCK_Y],
    uint4 words[ROWS][BLOCK_Y][BLOCK_X])
{
  const layout groups = get_layout (args.frame.out.format, blockIdx.z);
  unsigned long long mask = masks[0] | (unsigned long long) masks[1] << 32;

#pragma unroll 1
  while (mask != 0) {
    int n = 0, index = 0;

    /* Each warp makes one of the next drawings. */
#pragma unroll 1
    for (; n < BLOCK_Y && mask != 0; n++) {
      if (n <= threadIdx.y)
        index = __ffsll (mask) - 1;
      mask &= mask - 1;
    }
    if (threadIdx.y < n)
      make_drawing (args, base + index, boxes[index], get_pixels (mine, groups),
          drawings[threadIdx.y]);
    __syncthreads ();
#pragma unroll 1
    for (int k = 0; k < n; k++)
#pragma unroll 1
      for (int i = 0; i < ROWS; i++)
        draw_word (args, groups, drawings[k], mine.byte0 + (int) threadIdx.x * TILE_WORD,
            mine.y0 + i * BLOCK_Y + (int) threadIdx.y,
            (unsigned *) &words[i][threadIdx.y][threadIdx.x]);
    /* The next ones take the places of these. */
    __syncthreads ();
  }
}

extern "C" __global__ void __launch_bounds__ (BLOCK_X *BLOCK_Y, 8)
csfk_drawregions (const csfk_drawregions_args args)
{
  __shared__ uint4 staged[ROWS][BLOCK_Y][BLOCK_X];
  __shared__ drawing drawings[BLOCK_Y];
  __shared__ rectangle boxes[CHUNK];
  __shared__ unsigned masks[CHUNK / 32];
  const csfk_plane &in = args.frame.in.plane[blockIdx.z];
  const csfk_plane &out = args.frame.out.plane[blockIdx.z];
  const int n_regions = args.style.alpha > 0 ? args.frame.n_regions : 0;
  const int byte0 = blockIdx.x * TILE_BYTES, y0 = blockIdx.y * TILE_ROWS;
  const tile mine = {
    byte0, min (byte0 + TILE_BYTES, in.row_bytes), y0, min (y0 + TILE_ROWS, in.rows)
  };
  const size_t bits = (size_t) in.data | (size_t) out.data | (size_t) in.stride |
      (size_t) out.stride | (size_t) mine.byte1;
  const bool whole = bits % TILE_WORD == 0;
  uint4 words[ROWS];
  bool any = false;

  if (byte0 >= in.row_bytes || y0 >= in.rows)
    return;
  if (whole)
    load_words<BLOCK_Y> (in, mine, words);
  else
    move_tile<false> (in, mine, bits, staged);
  /* While the loads are under way. */
  if (n_regions > 0)
    any = look_at_chunk (args, 0, mine, boxes, masks);
  if (whole && !any && n_regions <= CHUNK) {
    store_words<BLOCK_Y> (out, mine, words);
    return;
  }

  if (whole)
#pragma unroll
    for (int i = 0; i < ROWS; i++)
      staged[i][threadIdx.y][threadIdx.x] = words[i];
  __syncwarp ();
#pragma unroll 1
  for (int base = 0;;) {
    if (any)
      draw_chunk (args, base, mine, boxes, masks, drawings, staged);
    base += CHUNK;
    if (base >= n_regions)
      break;
    any = look_at_chunk (args, base, mine, boxes, masks);
  }
  __syncwarp ();
  if (whole) {
#pragma unroll
    for (int i = 0; i < ROWS; i++)
      words[i] = staged[i][threadIdx.y][threadIdx.x];
    store_words<BLOCK_Y> (out, mine, words);
  } else {
    move_tile<true> (out, mine, bits, staged);
  }
}
