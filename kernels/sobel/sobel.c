/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* sobel: the magnitude of the luma gradient.  The plain C path and the launch; the device code is
 * in sobel.cu, written apart from this so that each checks the other.  Knows kernel.h and libc
 * only.
 *
 * With p the luma of a pixel, borders replicated (the last visible pixel in a padded YUY2 or
 * UYVY pair): gx and gy are the 3x3 Sobel sums, limited to the sample range in absolute value,
 * and the result is floor (sqrt (gx^2 + gy^2)) limited to white minus black, plus black. */
#include "sobel.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "../kernel.h"
#include "../simd.h"

extern const csfk_blob csfk_blob_sobel;

enum
{
  /* Pixels worked on at a time: three rows of them stay in the L1 cache. */
  STRIP = 512
};

/* Where luma lies in a row, and how it is read and written. */
typedef struct luma_access
{
  void (*load) (const unsigned char *row, int x, int n, uint16_t *luma);
  /* in: the same pixels' input bytes, for what is carried over. */
  void (*store) (unsigned char *row, const unsigned char *in, int x, int n, const uint16_t *luma);
} luma_access;

static void
load_gray (const unsigned char *row, int x, int n, uint16_t *luma)
{
  for (int i = 0; i < n; i++)
    luma[i] = row[x + i];
}

static void
store_gray (unsigned char *row, const unsigned char *in, int x, int n, const uint16_t *luma)
{
  for (int i = 0; i < n; i++)
    row[x + i] = (unsigned char) luma[i];
}

static void
load_yuy2 (const unsigned char *row, int x, int n, uint16_t *luma)
{
  for (int i = 0; i < n; i++)
    luma[i] = row[2 * (x + i)];
}

static void
store_yuy2 (unsigned char *row, const unsigned char *in, int x, int n, const uint16_t *luma)
{
  for (int i = 0; i < n; i++) {
    row[2 * (x + i)] = (unsigned char) luma[i];
    row[2 * (x + i) + 1] = 128;
  }
}

static void
load_uyvy (const unsigned char *row, int x, int n, uint16_t *luma)
{
  load_yuy2 (row + 1, x, n, luma);
}

static void
store_uyvy (unsigned char *row, const unsigned char *in, int x, int n, const uint16_t *luma)
{
  for (int i = 0; i < n; i++) {
    row[2 * (x + i)] = 128;
    row[2 * (x + i) + 1] = (unsigned char) luma[i];
  }
}

/* Two bytes a sample, read and written apart: the row may start at an odd address. */
static void
load_p010 (const unsigned char *row, int x, int n, uint16_t *luma)
{
  for (int i = 0; i < n; i++)
    luma[i] = (uint16_t) ((row[2 * (x + i)] | row[2 * (x + i) + 1] << 8) >> 6);
}

static void
store_p010 (unsigned char *row, const unsigned char *in, int x, int n, const uint16_t *luma)
{
  for (int i = 0; i < n; i++) {
    row[2 * (x + i)] = (unsigned char) (luma[i] << 6);
    row[2 * (x + i) + 1] = (unsigned char) (luma[i] >> 2);
  }
}

/* BT.709 luma of R'G'B', in 256ths: their sum is 256, so that 16 bits hold every product sum. */
static CSFK_ALWAYS_INLINE void
load_packed (const unsigned char *row, int pixel_bytes, int red, int blue, int x, int n,
    uint16_t *luma)
{
  const unsigned char *p = row + (ptrdiff_t) x * pixel_bytes;

  for (int i = 0; i < n; i++, p += pixel_bytes)
    luma[i] = (uint16_t) ((54 * p[red] + 183 * p[1] + 19 * p[blue] + 128) >> 8);
}

static void
load_rgb (const unsigned char *row, int x, int n, uint16_t *luma)
{
  load_packed (row, 3, 0, 2, x, n, luma);
}

static void
load_bgr (const unsigned char *row, int x, int n, uint16_t *luma)
{
  load_packed (row, 3, 2, 0, x, n, luma);
}

static void
load_rgba (const unsigned char *row, int x, int n, uint16_t *luma)
{
  load_packed (row, 4, 0, 2, x, n, luma);
}

static void
load_bgra (const unsigned char *row, int x, int n, uint16_t *luma)
{
  load_packed (row, 4, 2, 0, x, n, luma);
}

static void
store_rgb (unsigned char *row, const unsigned char *in, int x, int n, const uint16_t *luma)
{
  unsigned char *p = row + 3 * (ptrdiff_t) x;

  for (int i = 0; i < n; i++)
    p[3 * i] = p[3 * i + 1] = p[3 * i + 2] = (unsigned char) luma[i];
}

static void
store_rgba (unsigned char *row, const unsigned char *in, int x, int n, const uint16_t *luma)
{
  unsigned char *p = row + 4 * (ptrdiff_t) x;
  const unsigned char *alpha = in + 4 * (ptrdiff_t) x + 3;

  for (int i = 0; i < n; i++) {
    p[4 * i] = p[4 * i + 1] = p[4 * i + 2] = (unsigned char) luma[i];
    p[4 * i + 3] = alpha[4 * i];
  }
}

static const luma_access accesses[CSFK_N_FORMATS] = {
  [CSFK_FORMAT_GRAY8] = {load_gray, store_gray},
  [CSFK_FORMAT_NV12] = {load_gray, store_gray},
  [CSFK_FORMAT_I420] = {load_gray, store_gray},
  [CSFK_FORMAT_YUY2] = {load_yuy2, store_yuy2},
  [CSFK_FORMAT_UYVY] = {load_uyvy, store_uyvy},
  [CSFK_FORMAT_P010_10LE] = {load_p010, store_p010},
  [CSFK_FORMAT_RGB] = {load_rgb, store_rgb},
  [CSFK_FORMAT_BGR] = {load_bgr, store_rgb},
  [CSFK_FORMAT_RGBx] = {load_rgba, store_rgba},
  [CSFK_FORMAT_BGRx] = {load_bgra, store_rgba},
  [CSFK_FORMAT_RGBA] = {load_rgba, store_rgba},
  [CSFK_FORMAT_BGRA] = {load_bgra, store_rgba},
};

/* The three rows begin one pixel left of the first result.  The root is exact: the operand is a
 * whole number below 2^24 and sqrtf rounds correctly, so it never reaches the next whole number
 * early. */
static CSFK_ALWAYS_INLINE void
sobel_row_body (const uint16_t *above, const uint16_t *here, const uint16_t *below, int n,
    int black, int white, int range, uint16_t *result)
{
  const int limit = white - black;

  for (int i = 0; i < n; i++) {
    int gx = (above[i + 2] + 2 * here[i + 2] + below[i + 2])
        - (above[i] + 2 * here[i] + below[i]);
    int gy = (below[i] + 2 * below[i + 1] + below[i + 2])
        - (above[i] + 2 * above[i + 1] + above[i + 2]);

    gx = gx < 0 ? -gx : gx;
    gy = gy < 0 ? -gy : gy;
    gx = gx > range ? range : gx;
    gy = gy > range ? range : gy;

    int magnitude = (int) sqrtf ((float) (gx * gx + gy * gy));

    result[i] = (uint16_t) (black + (magnitude > limit ? limit : magnitude));
  }
}

static void
sobel_row (const uint16_t *above, const uint16_t *here, const uint16_t *below, int n, int black,
    int white, int range, uint16_t *result)
{
  sobel_row_body (above, here, below, n, black, white, range, result);
}

#if CSFK_TWO_TARGETS
CSFK_TARGET_AVX2 static void
sobel_row_avx2 (const uint16_t *above, const uint16_t *here, const uint16_t *below, int n,
    int black, int white, int range, uint16_t *result)
{
  sobel_row_body (above, here, below, n, black, white, range, result);
}
#else
#define sobel_row_avx2 sobel_row
#endif

/* Loads pixels x - 1 .. x + n of a row, those outside 0 .. width - 1 taken from the nearest
 * inside. */
static void
load_strip (const luma_access *access, const unsigned char *row, int width, int x, int n,
    uint16_t *luma)
{
  int first = x > 0 ? x - 1 : 0;
  int last = x + n < width ? x + n : width - 1;
  uint16_t *inside = luma + (first - (x - 1));

  access->load (row, first, last - first + 1, inside);
  if (x == 0)
    luma[0] = luma[1];
  for (int i = last + 1; i <= x + n; i++)
    luma[i - (x - 1)] = luma[last - (x - 1)];
}

static void
process_luma (const csfk_frame *frame, int row_pixels)
{
  const luma_access *access = &accesses[frame->in.format];
  const csfk_plane *in = &frame->in.plane[0];
  const csfk_plane *out = &frame->out.plane[0];
  const int depth_shift = frame->in.format == CSFK_FORMAT_P010_10LE ? 2 : 0;
  const int limited = frame->in.range == CSFK_RANGE_LIMITED;
  const int range = (256 << depth_shift) - 1;
  const int black = limited ? 16 << depth_shift : 0;
  const int white = limited ? 235 << depth_shift : range;
  const int avx2 = csfk_has_avx2 ();
  const int height = in->rows;
  uint16_t rows[3][STRIP + 2], result[STRIP];

  for (int x = 0; x < row_pixels; x += STRIP) {
    int n = row_pixels - x < STRIP ? row_pixels - x : STRIP;

    load_strip (access, in->data, frame->in.width, x, n, rows[0]);
    memcpy (rows[2], rows[0], sizeof rows[0]);
    for (int y = 0; y < height; y++) {
      const unsigned char *in_row = in->data + (ptrdiff_t) y * in->stride;
      unsigned char *out_row = out->data + (ptrdiff_t) y * out->stride;
      uint16_t *above = rows[(y + 2) % 3], *here = rows[y % 3], *below = rows[(y + 1) % 3];

      if (y + 1 < height)
        load_strip (access, in_row + in->stride, frame->in.width, x, n, below);
      else
        memcpy (below, here, sizeof rows[0]);
      (avx2 ? sobel_row_avx2 : sobel_row) (above, here, below, n, black, white, range, result);
      access->store (out_row, in_row, x, n, result);
    }
  }
}

static void
process (const csfk_frame *frame, const void *params)
{
  const int format = frame->in.format;
  const int pairs = format == CSFK_FORMAT_YUY2 || format == CSFK_FORMAT_UYVY;

  process_luma (frame, pairs ? frame->in.plane[0].row_bytes / 2 : frame->in.width);

  for (int i = 1; i < frame->out.n_planes; i++) {
    const csfk_plane *out = &frame->out.plane[i];

    for (int y = 0; y < out->rows; y++) {
      unsigned char *row = out->data + (ptrdiff_t) y * out->stride;

      memset (row, 128, (size_t) out->row_bytes);
      if (format == CSFK_FORMAT_P010_10LE)
        for (int b = 0; b < out->row_bytes; b += 2)
          row[b] = 0;
    }
  }
}

static unsigned
divide_up (unsigned value, unsigned by)
{
  return (value + by - 1) / by;
}

static unsigned
get_pixel_bytes (int format)
{
  switch (format) {
    case CSFK_FORMAT_GRAY8:
    case CSFK_FORMAT_NV12:
    case CSFK_FORMAT_I420:
      return 1;
    case CSFK_FORMAT_YUY2:
    case CSFK_FORMAT_UYVY:
    case CSFK_FORMAT_P010_10LE:
      return 2;
    case CSFK_FORMAT_RGB:
    case CSFK_FORMAT_BGR:
      return 3;
    default:
      return 4;
  }
}

static int
enqueue (const csfk_frame *frame, const void *params, csfk_launcher *launcher)
{
  const unsigned pixel_bytes = get_pixel_bytes (frame->in.format);
  /* In bytes, so that the padding pixel of an odd YUY2 or UYVY row is reached. */
  const unsigned pixels = divide_up ((unsigned) frame->out.plane[0].row_bytes, pixel_bytes);
  csfk_dim block = { CSFK_SOBEL_BLOCK_X, CSFK_SOBEL_BLOCK_Y, 1 };
  csfk_dim grid = {
    divide_up (pixels, CSFK_SOBEL_BLOCK_X * CSFK_SOBEL_PIXELS (pixel_bytes)),
    divide_up ((unsigned) frame->in.height, CSFK_SOBEL_BLOCK_Y * CSFK_SOBEL_ROWS (pixel_bytes)),
    1
  };

  return launcher->launch (launcher, "csfk_sobel", grid, block, 0, frame, sizeof *frame);
}

const csfk_kernel csfk_sobel = {
  .abi = CSFK_ABI,
  .name = "sobel",
  .description = "Finds edges: the Sobel gradient magnitude of the luma",
  .formats = {
    CSFK_FORMAT_NV12, CSFK_FORMAT_I420, CSFK_FORMAT_YUY2, CSFK_FORMAT_UYVY, CSFK_FORMAT_P010_10LE,
    CSFK_FORMAT_RGBA, CSFK_FORMAT_BGRA, CSFK_FORMAT_RGBx, CSFK_FORMAT_BGRx, CSFK_FORMAT_RGB,
    CSFK_FORMAT_BGR, CSFK_FORMAT_GRAY8, CSFK_FORMAT_NONE
  },
  .process = process,
  .enqueue = enqueue,
  .device_code = &csfk_blob_sobel,
};
