/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Turns the end times of the stages of adjacent frames into how long each stage really ran.  Knows
 * nothing of devices. */
#include "trace.h"

static double
latest (double a, double b)
{
  return a > b ? a : b;
}

static double
not_negative (double a)
{
  return a > 0 ? a : 0;
}

/* A stage begins when the frame's previous stage has ended and, where frames take turns on one engine
 * (the copy engine, the multiprocessors), the frame before has left it. */
void
csf_trace_add (csf_trace *trace, const csf_times *times, unsigned lead)
{
  double previous_end;

  if (!times->valid)
    return;
  if (trace->run != times->run) {
    trace->run = times->run;
    trace->position = 0;
    trace->upload_end = trace->kernel_end = trace->download_end = times->start;
  }
  previous_end = trace->download_end;
  if (trace->position++ >= lead) {
    double upload_free = times->parallel ? times->start : trace->upload_end;
    double kernel_free = times->parallel ? times->start : trace->kernel_end;
    double download_free = times->parallel ? times->start : trace->download_end;

    trace->upload += not_negative (times->upload - latest (times->start, upload_free));
    trace->kernel += not_negative (times->kernel - latest (times->upload, kernel_free));
    trace->download += not_negative (times->download - latest (times->kernel, download_free));
    trace->frame += not_negative (times->download - previous_end);
    trace->frames++;
  }
  trace->upload_end = latest (trace->upload_end, times->upload);
  trace->kernel_end = latest (trace->kernel_end, times->kernel);
  trace->download_end = latest (trace->download_end, times->download);
}

void
csf_trace_read (csf_trace *trace, csf_engine_stats *stats, bool clear)
{
  double frames = trace->frames > 0 ? (double) trace->frames : 1;

  stats->timed = trace->frames;
  stats->upload_ns = (uint64_t) (trace->upload / frames);
  stats->kernel_ns = (uint64_t) (trace->kernel / frames);
  stats->download_ns = (uint64_t) (trace->download / frames);
  stats->frame_ns = (uint64_t) (trace->frame / frames);
  if (clear) {
    trace->frames = 0;
    trace->upload = trace->kernel = trace->download = trace->frame = 0;
  }
}
