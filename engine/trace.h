/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Stage times of timed frames into window statistics.  Not thread-safe: the engine's lock covers it. */
#ifndef CSF_TRACE_H
#define CSF_TRACE_H

#include "backend.h"

/* Sums since csf_trace_take, and the state of the run being read. */
typedef struct csf_trace
{
  uint64_t run;                 /* run of the last frame added, 0 at first */
  unsigned position;            /* frames of that run seen */
  double upload_end, kernel_end, download_end;  /* latest so far in that run, ns */
  uint64_t frames;              /* counted */
  double upload, kernel, download, frame;       /* sums, ns */
} csf_trace;

/* Adds one frame, in the order of retiring.  The first `lead` frames of a run only set the latest ends
 * and are not counted, since what ran before them is unknown. */
void csf_trace_add (csf_trace * trace, const csf_times * times, unsigned lead);

/* Means since the last take into *stats (timed, *_ns); clear starts a new window. */
void csf_trace_read (csf_trace * trace, csf_engine_stats * stats, bool clear);

#endif
