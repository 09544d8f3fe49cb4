/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The model of copy: the input's samples.  Knows check.h only. */
#include "check.h"

static int
sample (const csfk_frame *frame, const void *params, void *memory, const channel *component, int x,
    int y)
{
  return model_get_raw (&frame->in, component, x, y);
}

const kernel_model model_copy = {
  .kernel = "copy",
  .sample = sample,
};
