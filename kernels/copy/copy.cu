/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* copy on the GPU: one launch for all planes (blockIdx.z).  Each thread moves one word of up to 16
 * bytes in each of several rows.  Knows kernel.h only. */
#include "copy.h"

template <typename Word>
static __device__ void
copy_plane (const csfk_plane &in, const csfk_plane &out)
{
  const int bytes = (int) sizeof (Word);
  const int x = (int) (blockIdx.x * CSFK_COPY_BLOCK_X + threadIdx.x) * bytes;
  const int y0 = (int) (blockIdx.y * CSFK_COPY_BLOCK_Y * CSFK_COPY_ROWS + threadIdx.y);

  if (x >= in.row_bytes || y0 >= in.rows)
    return;

  const unsigned char *from = in.data + (size_t) y0 * in.stride + x;
  unsigned char *to = out.data + (size_t) y0 * out.stride + x;
  const size_t from_step = (size_t) in.stride * CSFK_COPY_BLOCK_Y;
  const size_t to_step = (size_t) out.stride * CSFK_COPY_BLOCK_Y;

  if (x + bytes <= in.row_bytes) {
    Word words[CSFK_COPY_ROWS];

#pragma unroll
    for (int i = 0; i < CSFK_COPY_ROWS; i++)
      if (y0 + i * CSFK_COPY_BLOCK_Y < in.rows)
        words[i] = *(const Word *) (from + i * from_step);
#pragma unroll
    for (int i = 0; i < CSFK_COPY_ROWS; i++)
      if (y0 + i * CSFK_COPY_BLOCK_Y < in.rows)
        *(Word *) (to + i * to_step) = words[i];
    return;
  }

  /* The row's last bytes do not fill a word, and what follows them is not ours. */
#pragma unroll 1
  for (int i = 0; i < CSFK_COPY_ROWS && y0 + i * CSFK_COPY_BLOCK_Y < in.rows; i++)
#pragma unroll 1
    for (int b = 0; x + b < in.row_bytes; b++)
      to[i * to_step + b] = from[i * from_step + b];
}

extern "C" __global__ void __launch_bounds__ (CSFK_COPY_BLOCK_X *CSFK_COPY_BLOCK_Y)
csfk_copy (const csfk_frame frame)
{
  const csfk_plane &in = frame.in.plane[blockIdx.z];
  const csfk_plane &out = frame.out.plane[blockIdx.z];
  const size_t bits = (size_t) in.data | (size_t) out.data | (size_t) in.stride |
      (size_t) out.stride;

  if ((bits & 15) == 0)
    copy_plane<uint4> (in, out);
  else if ((bits & 7) == 0)
    copy_plane<uint2> (in, out);
  else if ((bits & 3) == 0)
    copy_plane<unsigned> (in, out);
  else if ((bits & 1) == 0)
    copy_plane<unsigned short> (in, out);
  else
    copy_plane<unsigned char> (in, out);
}
