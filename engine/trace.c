/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Turns the end times of the stages of adjacent frames into when each stage really ran, on the host's clock.
 * Knows nothing of devices. */
#include "trace.h"

static double
latest (double a, double b)
{
  return a > b ? a : b;
}

/* When the device was done with the frame. */
static double
device_end (const csf_times *times)
{
  return latest (times->end[CSF_PART_DOWNLOAD], times->end[CSF_PART_RECORDS]);
}

static double
since_epoch (const csf_trace *trace, uint64_t ns)
{
  return (double) (int64_t) (ns - trace->epoch);
}

static uint64_t
host_time (const csf_trace *trace, double ns)
{
  return trace->epoch + (uint64_t) (int64_t) (ns + 0.5);
}

/* A new run has a new instant.  Where the device says how long after the last one it was, both are on one
 * axis, and what ran before is known. */
static void
begin_run (csf_trace *trace, const csf_times *times, unsigned lead)
{
  if (times->since_run > 0 && trace->run != 0) {
    trace->origin += times->since_run;
  } else {
    trace->origin = since_epoch (trace, times->instant_ns);
    trace->position = times->run == 1 ? lead : 0;  /* nothing ran before the first */
    for (int p = 0; p < CSF_N_PARTS; p++)
      trace->end[p] = trace->origin + times->start;
    trace->last_end = trace->origin + times->start;
  }
  trace->run = times->run;
}

/* The two clocks need not run alike: nothing began before the host asked for it, and nothing ended after the
 * host saw it finished. */
static void
align (csf_trace *trace, const csf_times *times, const csf_frame_times *frame)
{
  double early = since_epoch (trace, frame->span[CSF_PART_SUBMIT].begin)
      - (trace->origin + times->start);
  double late = trace->origin + device_end (times) - since_epoch (trace, frame->retired);
  double shift = early > 0 ? early : late > 0 ? -late : 0;

  trace->origin += shift;
  for (int p = 0; p < CSF_N_PARTS; p++)
    trace->end[p] += shift;
  trace->last_end += shift;
}

/* A stage begins when the frame's stage before it has ended and, where frames take turns on one engine
 * (the copy engine, the multiprocessors), the frame before has left it. */
static void
add_part (csf_trace *trace, const csf_times *times, csf_part part, bool takes_turns, double ready,
    bool counts, csf_frame_times *frame)
{
  const double end = trace->origin + times->end[part];
  double begin = takes_turns ? latest (ready, trace->end[part]) : ready;
  const bool overtook = begin > end;

  if (overtook)
    begin = end;
  if (counts) {
    /* What it took of an engine that was another frame's until later nobody knows; that it ran is seen. */
    frame->span[part].begin = host_time (trace, overtook && ready < end ? ready : begin);
    frame->span[part].end = host_time (trace, end);
    csf_distribution_add (&trace->part[part], (uint64_t) (end - begin + 0.5));
  }
  trace->end[part] = latest (trace->end[part], end);
}

static void
add_device (csf_trace *trace, const csf_times *times, unsigned lead, csf_frame_times *frame)
{
  const bool turns = !times->parallel;
  double previous_end, end;
  bool follows, counts;

  if (trace->run != times->run)
    begin_run (trace, times, lead);
  align (trace, times, frame);
  previous_end = trace->last_end;
  follows = trace->position >= lead;
  if (!follows)
    trace->position++;
  /* Where frames take no turns, it does not matter what ran before. */
  counts = follows || times->parallel;
  frame->timed = counts;
  add_part (trace, times, CSF_PART_UPLOAD, turns, trace->origin + times->start, counts, frame);
  add_part (trace, times, CSF_PART_KERNEL, turns, trace->origin + times->end[CSF_PART_UPLOAD], counts,
      frame);
  add_part (trace, times, CSF_PART_RECORDS, false, trace->origin + times->end[CSF_PART_KERNEL], counts,
      frame);
  add_part (trace, times, CSF_PART_DOWNLOAD, turns, trace->origin + times->end[CSF_PART_KERNEL], counts,
      frame);
  end = trace->origin + device_end (times);
  if (counts) {
    csf_span *finish = &frame->span[CSF_PART_FINISH];

    finish->begin = host_time (trace, end);
    finish->end = frame->retired > finish->begin ? frame->retired : finish->begin;
    csf_distribution_add (&trace->part[CSF_PART_FINISH], finish->end - finish->begin);
  }
  if (follows) {
    trace->n_frames++;
    trace->frame += latest (end - previous_end, 0);
  }
  trace->last_end = latest (previous_end, end);
}

void
csf_trace_add (csf_trace *trace, const csf_times *times, unsigned lead, csf_frame_times *frame)
{
  for (csf_part part = CSF_PART_WAKE; part <= CSF_PART_SUBMIT; part++)
    csf_distribution_add (&trace->part[part], frame->span[part].end - frame->span[part].begin);
  frame->timed = false;
  if (times->valid)
    add_device (trace, times, lead, frame);
}

void
csf_trace_read (csf_trace *trace, csf_engine_stats *stats, bool clear)
{
  for (int p = 0; p < CSF_N_PARTS; p++)
    stats->part[p] = csf_distribution_summarize (&trace->part[p]);
  stats->timed = trace->n_frames;
  stats->frame_ns = trace->n_frames == 0 ? 0 : (uint64_t) (trace->frame / (double) trace->n_frames);
  if (!clear)
    return;
  for (int p = 0; p < CSF_N_PARTS; p++)
    csf_distribution_clear (&trace->part[p]);
  trace->n_frames = 0;
  trace->frame = 0;
}
