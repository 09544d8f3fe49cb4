/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* When the parts of each frame's way ran, from what a backend measured, and the window's statistics of
 * them.  Not thread-safe: the engine's lock covers it. */
#ifndef CSF_TRACE_H
#define CSF_TRACE_H

#include "backend.h"
#include "distribution.h"

/* All 0 at first but `epoch`. */
typedef struct csf_trace
{
  uint64_t epoch;               /* CLOCK_MONOTONIC, ns: what all below counts from */
  uint64_t run;                 /* run of the last timed frame, 0 at first */
  unsigned position;            /* frames since the stages' ends were unknown */
  double origin;                /* the run's instant, ns since epoch */
  double end[CSF_N_PARTS];      /* latest end of a frame so far, of each part, ns since epoch */
  double last_end;              /* of the frame before */
  csf_distribution part[CSF_N_PARTS];   /* the window's */
  uint64_t n_frames;            /* the window's frames with a time from end to end */
  double frame;                 /* and the sum of those, ns */
} csf_trace;

/* Adds one frame, in the order of retiring.  times: what the backend measured, times->valid or not.
 * frame: the host's parts are there already, and so is `retired`; the device's parts are filled in, when they
 * are known: the first `lead` frames of a run only set the latest ends, unless that run follows at once on
 * the one before. */
void csf_trace_add (csf_trace * trace, const csf_times * times, unsigned lead,
    csf_frame_times * frame);

/* The window's figures into *stats (part, timed, frame_ns); clear starts a new window. */
void csf_trace_read (csf_trace * trace, csf_engine_stats * stats, bool clear);

#endif
