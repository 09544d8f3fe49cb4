/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* copy: the output is the input, byte for byte.  The plain C path and the launch; the device
 * code is in copy.cu.  Knows kernel.h, format.h and libc only. */
#include "copy.h"

#include <stdint.h>

#include "../format.h"

extern const csfk_blob csfk_blob_copy;

static void
process (const csfk_frame *frame, const void *params)
{
  for (int i = 0; i < frame->in.n_planes; i++)
    csfk_plane_copy (&frame->out.plane[i], &frame->in.plane[i]);
}

/* The widest access, 16 bytes at most, that every row of both planes is aligned to. */
static unsigned
access_bytes (const csfk_plane *in, const csfk_plane *out)
{
  uintptr_t bits = (uintptr_t) in->data | (uintptr_t) out->data | (uintptr_t) in->stride |
      (uintptr_t) out->stride | 16;

  return (unsigned) (bits & -bits);
}

static int
enqueue (const csfk_frame *frame, const void *params, csfk_launcher *launcher)
{
  csfk_dim block = { CSFK_COPY_BLOCK_X, CSFK_COPY_BLOCK_Y, 1 };
  csfk_dim grid = { 1, 1, (unsigned) frame->in.n_planes };
  unsigned block_rows = CSFK_COPY_BLOCK_Y * CSFK_COPY_ROWS;

  for (int i = 0; i < frame->in.n_planes; i++) {
    const csfk_plane *in = &frame->in.plane[i];
    unsigned block_bytes = CSFK_COPY_BLOCK_X * access_bytes (in, &frame->out.plane[i]);
    unsigned x = ((unsigned) in->row_bytes + block_bytes - 1) / block_bytes;
    unsigned y = ((unsigned) in->rows + block_rows - 1) / block_rows;

    if (x > grid.x)
      grid.x = x;
    if (y > grid.y)
      grid.y = y;
  }
  return launcher->launch (launcher, "csfk_copy", grid, block, 0, frame, sizeof *frame);
}

const csfk_kernel csfk_copy = {
  .abi = CSFK_ABI,
  .name = "copy",
  .description = "Copies each frame unchanged",
  .formats = {
    CSFK_FORMAT_NV12, CSFK_FORMAT_I420, CSFK_FORMAT_YUY2, CSFK_FORMAT_UYVY, CSFK_FORMAT_P010_10LE,
    CSFK_FORMAT_RGBA, CSFK_FORMAT_BGRA, CSFK_FORMAT_RGBx, CSFK_FORMAT_BGRx, CSFK_FORMAT_RGB,
    CSFK_FORMAT_BGR, CSFK_FORMAT_GRAY8, CSFK_FORMAT_NONE
  },
  .process = process,
  .enqueue = enqueue,
  .device_code = &csfk_blob_copy,
};
