/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A library of kernels whose records are points, and structures of their own: for the case detections-agree.
 * Knows the installed header only. */
#include <stddef.h>

#include "kernels/kernel.h"

static void
keep (const csfk_frame *frame, const void *params)
{
  const csfk_plane *in = &frame->in.plane[0], *out = &frame->out.plane[0];

  (void) params;
  for (int y = 0; y < in->rows; y++)
    for (int x = 0; x < in->row_bytes; x++)
      out->data[y * out->stride + x] = in->data[y * in->stride + x];
}

/* Numbers that are hard to print: they must read the same in every language. */
static void
collect_points (const csfk_frame *frame, const void *params)
{
  static const float numbers[] = { 0.1f, 0.9f, -0.0f, 1e-7f, 1e30f, 1.0f / 3, 1234567.5f, 16777216,
    __builtin_inff (), -2.5f
  };
  const int n = sizeof numbers / sizeof numbers[0];

  (void) params;
  for (int i = 0; i < n; i++) {
    csfk_point *point = csfk_append (&frame->records);

    if (point != NULL)
      *point = (csfk_point) { numbers[i], numbers[(i + 1) % n], numbers[(i + 2) % n], i };
  }
}

static void
collect_bytes (const csfk_frame *frame, const void *params)
{
  const unsigned char *head = frame->in.plane[0].data;

  (void) params;
  for (int i = 0; i < head[0]; i++) {
    unsigned char *record = csfk_append (&frame->records);

    for (int at = 0; record != NULL && at < 8; at++)
      record[at] = (unsigned char) (head[0] * 31 + i * 8 + at);
  }
}

static const csfk_kernel points = {
  .abi = CSFK_ABI,
  .name = "points",
  .description = "The same points on every frame",
  .formats = { CSFK_FORMAT_GRAY8 },
  .process = keep,
  .record_size = sizeof (csfk_point),
  .record_kind = CSFK_RECORD_POINT,
  .record_name = "spot",
  .collect = collect_points,
};

static const csfk_kernel bytes = {
  .abi = CSFK_ABI,
  .name = "bytes",
  .description = "As many records as the first pixel says",
  .formats = { CSFK_FORMAT_GRAY8 },
  .process = keep,
  .record_size = 8,
  .record_name = "a \"name\" \\ with\ttabs and \xc3\xa9",
  .collect = collect_bytes,
};

static const csfk_kernel *const kernels[] = { &points, &bytes, NULL };

__attribute__ ((visibility ("default")))
extern const csfk_library_table csfk_library;
const csfk_library_table csfk_library = { CSFK_ABI, kernels };
