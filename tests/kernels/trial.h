/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the two halves of a trial share: a sequence of frames, and what is checked of either path. */
#ifndef TRIAL_H
#define TRIAL_H

#include "check.h"

enum
{
  MAX_FRAMES = 32
};

/* One frame of a sequence.  What process() wrote is in `out`. */
typedef struct step
{
  canvas in, in_before, out, out_before;
  guarded_block workspace;
  csfk_region *regions, regions_before[CHECK_MAX_REGIONS];
  csfk_frame frame;
  record_set records;           /* that collect() appended */
} step;

typedef struct sequence
{
  const kernel_trial *trial;
  const csfk_kernel *kernel;
  unsigned char *params;        /* exactly as long as the kernel says, for a checker of addresses */
  guarded_block state;
  int n_steps;
  step steps[MAX_FRAMES];
} sequence;

/* Prints all of the trial and of this frame, and ends the program with 1. */
void trial_fail (const sequence * self, const step * at, const char *format, ...)
    __attribute__ ((noreturn, format (printf, 3, 4)));

/* What lasts longer than a frame, made for the CPU or, where its context is current, for the device. */
void *trial_open_kernel (const sequence * self);
void trial_close_kernel (const sequence * self, void *instance);

bool trial_is_near (const csfk_image * image, int got, int expected, int tolerance);
/* Neither the input was written nor anything beside the output's rows.  who: who may have. */
void trial_check_untouched (const sequence * self, const step * at, const char *who, const canvas * in,
    const canvas * out);

/* After the C path has run. */
void trial_run_on_device (gpu * device, sequence * self, tally * totals);

#endif
