/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What all of anonymize's device functions know: where a format's samples lie, and which cells a
 * region has.  Included by anonymize.cu only. */
#ifndef CSFK_ANONYMIZE_CELLS_CUH
#define CSFK_ANONYMIZE_CELLS_CUH

#include "anonymize.h"

/* ---- where samples lie ----------------------------------------------------------------------- */

/* A plane's row is a row of groups: `pitch` bytes that stand for 1 << shift_x by 1 << shift_y
 * pixels, such as Cb and Cr of NV12, or the two pixels of YUY2.  What is covered begins and ends
 * between groups.  Its channels, at most three, are of components plane, plane + 1 and so on. */
struct layout
{
  int pitch, shift_x, shift_y, n_channels;
};

static __device__ __forceinline__ layout
get_layout (int format, int plane)
{
  const int chroma = plane > 0;

  switch (format) {
    case CSFK_FORMAT_GRAY8:
    case CSFK_FORMAT_I420:
      return { 1, chroma, chroma, 1 };
    case CSFK_FORMAT_NV12:
      return { 1 + chroma, chroma, chroma, 1 + chroma };
    case CSFK_FORMAT_P010_10LE:
      return { 2 + 2 * chroma, chroma, chroma, 1 + chroma };
    case CSFK_FORMAT_YUY2:
    case CSFK_FORMAT_UYVY:
      return { 4, 1, 0, 3 };
    case CSFK_FORMAT_RGB:
    case CSFK_FORMAT_BGR:
      return { 3, 0, 0, 3 };
    default:
      return { 4, 0, 0, 3 };
  }
}

/* Which group a byte of a row belongs to. */
static __device__ __forceinline__ int
find_group (const layout &groups, int byte)
{
  return groups.pitch == 3 ? (int) ((unsigned) byte / 3) : byte >> groups.pitch / 2;
}

static __device__ __forceinline__ bool
is_packed (int format)
{
  return format == CSFK_FORMAT_YUY2 || format == CSFK_FORMAT_UYVY;
}

/* Samples of one component in a plane, two bytes each where `wide`: sample x begins offset + x *
 * pitch bytes into its row. */
struct channel
{
  int offset, pitch, shift_x, shift_y;
  bool wide;
};

static __device__ __forceinline__ channel
get_channel (int format, int plane, int i)
{
  const layout groups = get_layout (format, plane);
  const int uyvy = format == CSFK_FORMAT_UYVY;

  if (is_packed (format))
    return i == 0 ? channel { uyvy, 2, 0, 0, false } : channel { 2 * i - 1 - uyvy, 4, 1, 0, false };
  if (format == CSFK_FORMAT_P010_10LE)
    return { 2 * i, groups.pitch, groups.shift_x, groups.shift_y, true };
  return { i, groups.pitch, groups.shift_x, groups.shift_y, false };
}

/* Ones in the first n of four bytes. */
static __device__ __forceinline__ unsigned
first_bytes (int n)
{
  return n >= 4 ? 0xffffffffu : (1u << 8 * max (n, 0)) - 1;
}

/* ---- regions --------------------------------------------------------------------------------- */

/* Even sides of what is covered; size: of a cell, 0 when filled; the region's first means; and of
 * what is blurred the cells that the picture shows. */
struct cells
{
  int x0, y0, x1, y1;
  int size, means;
  int first_x, last_x, first_y, last_y;
};

static __device__ __forceinline__ int
move_near (long long place)
{
  const long long limit = CSFK_ANONYMIZE_LIMIT;

  return (int) min (max (place, -limit), limit);
}

static __device__ __forceinline__ bool
has_label (const csfk_region &region, const char *label)
{
#pragma unroll 1
  for (int i = 0; label[0] != 0 && i < CSFK_LABEL_BYTES; i++) {
    if (region.label[i] != label[i])
      return false;
    if (label[i] == 0)
      break;
  }
  return true;
}

static __device__ __forceinline__ void
grow (int &start, int &end, int size)
{
  const int across = ((unsigned) (end - start) + size - 1) / size;

  start -= (across * size - (end - start)) / 4 * 2;
  end = start + across * size;
}

/* Pixels; x1 and y1 are not inside. */
struct rectangle
{
  int x0, y0, x1, y1;
};

/* Where a region is said to be.  Loaded before all else that takes time. */
struct place
{
  int x, y, width, height;
};

static __device__ __forceinline__ place
load_place (const csfk_region &region)
{
  return { region.x, region.y, region.width, region.height };
}

/* All but the cells that show.  False when the region covers nothing; and when it covers nothing
 * of `near`, but not always. */
static __device__ __forceinline__ bool
find_cells (const csfk_anonymize_args &args, int index, const place &at, const rectangle &near,
    cells &found)
{
  const csfk_region &region = args.frame.regions[index];
  const int width = args.frame.in.width, height = args.frame.in.height;
  const unsigned long long share = args.params.padding_65536;
  long long pad_x = 0, pad_y = 0;

  if (share > 0) {
    pad_x = (at.width * share + 65535) >> 16;
    pad_y = (at.height * share + 65535) >> 16;
  }

  int x0 = move_near (at.x - pad_x), x1 = move_near (at.x + pad_x + at.width);
  int y0 = move_near (at.y - pad_y), y1 = move_near (at.y + pad_y + at.height);
  const int longer = max (x1 - x0, y1 - y0);
  /* Beyond what it may grow by to whole cells, on each side; those are not known yet. */
  const int more = longer / 2 + (int) CSFK_ANONYMIZE_MIN_CELL;

  if (at.width <= 0 || at.height <= 0 || x0 >= width || y0 >= height || x1 <= 0 || y1 <= 0
      || x0 - more >= near.x1 || y0 - more >= near.y1 || x1 + more <= near.x0
      || y1 + more <= near.y0 || !has_label (region, args.params.label))
    return false;

  x0 &= ~1, y0 &= ~1;
  x1 += x1 & 1, y1 += y1 & 1;
  found.size = 0;
  if (args.mode != CSFK_ANONYMIZE_FILL) {
    int size = ((unsigned) max (x1 - x0, y1 - y0) + args.blocks - 1) / (unsigned) args.blocks;

    size = max (size + (size & 1), (int) CSFK_ANONYMIZE_MIN_CELL);
    grow (x0, x1, size);
    grow (y0, y1, size);
    found.size = size;
    found.means = index * args.blocks * args.blocks;
  }
  found.x0 = x0, found.x1 = x1;
  found.y0 = y0, found.y1 = y1;
  return true;
}

static __device__ __forceinline__ void
find_shown (const csfk_image &image, cells &of)
{
  const unsigned size = of.size;

  of.first_x = max (0, -of.x0) / size;
  of.first_y = max (0, -of.y0) / size;
  of.last_x = (min (of.x1, image.width) - 1 - of.x0) / size;
  of.last_y = (min (of.y1, image.height) - 1 - of.y0) / size;
}

#endif
