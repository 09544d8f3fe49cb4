/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Stage times against sequences worked out by hand.  A stage of a frame ran from the later of its
 * previous stage's end and the latest earlier end in that stage.  Knows trace.h only. */
#include <string.h>

#include "engine/trace.h"
#include "harness.h"

/* Of a host that asked early and looked late. */
static csf_frame_times
patient_host (void)
{
  return (csf_frame_times) {.retired = 1000000 };
}

static csf_frame_times
add_times (csf_trace *trace, const csf_times *times, unsigned lead)
{
  csf_frame_times frame = patient_host ();

  csf_trace_add (trace, times, lead, &frame);
  return frame;
}

static csf_frame_times
add (csf_trace *trace, uint64_t run, unsigned lead, double start, double upload, double kernel,
    double download)
{
  const csf_times times = {
    .valid = true,
    .run = run,
    .start = start,
    .end = {
      [CSF_PART_UPLOAD] = upload,
      [CSF_PART_KERNEL] = kernel,
      [CSF_PART_RECORDS] = kernel,
      [CSF_PART_DOWNLOAD] = download,
    },
  };

  return add_times (trace, &times, lead);
}

static void
expect (csf_trace *trace, uint64_t frames, uint64_t upload, uint64_t kernel, uint64_t download,
    uint64_t frame)
{
  csf_engine_stats stats = { 0 };

  csf_trace_read (trace, &stats, false);
  CHECK_INT (stats.timed, frames);
  CHECK_INT (stats.part[CSF_PART_UPLOAD].mean_ns, upload);
  CHECK_INT (stats.part[CSF_PART_KERNEL].mean_ns, kernel);
  CHECK_INT (stats.part[CSF_PART_DOWNLOAD].mean_ns, download);
  CHECK_INT (stats.frame_ns, frame);
}

static void
expect_span (csf_span span, uint64_t begin, uint64_t end)
{
  CHECK_INT (span.begin, begin);
  CHECK_INT (span.end, end);
}

static void
nothing_timed_means_zero (void)
{
  csf_trace trace = { 0 };
  csf_times times = {.valid = false,.run = 1 };

  expect (&trace, 0, 0, 0, 0, 0);
  add_times (&trace, &times, 0);
  expect (&trace, 0, 0, 0, 0, 0);
}

static void
frames_one_after_another_are_plain_differences (void)
{
  csf_trace trace = { 0 };

  add (&trace, 1, 0, 0, 100, 130, 190);
  expect (&trace, 1, 100, 30, 60, 190);
  add (&trace, 1, 0, 200, 320, 370, 450);
  /* uploads 100 + 120, kernels 30 + 50, downloads 60 + 80, ends 190 and 450 */
  expect (&trace, 2, 110, 40, 70, 225);
}

/* Upload 100, kernel 20, download 60 of three frames started together: the uploads queue up
 * behind one another, which is not time they ran. */
static void
waiting_for_the_stage_before_is_not_counted (void)
{
  csf_trace trace = { 0 };

  add (&trace, 1, 0, 0, 100, 120, 180);
  add (&trace, 1, 0, 0, 200, 220, 280);
  add (&trace, 1, 0, 0, 300, 320, 380);
  expect (&trace, 3, 100, 20, 60, 126);
}

/* Download is the slow stage: frame 2's kernel ends at 40, its download waits until 110. */
static void
waiting_for_the_stage_itself_is_not_counted (void)
{
  csf_trace trace = { 0 };

  add (&trace, 1, 0, 0, 10, 20, 110);
  add (&trace, 1, 0, 10, 20, 30, 200);
  add (&trace, 1, 0, 20, 30, 40, 290);
  expect (&trace, 3, 10, 10, 90, 96);
}

/* Frame 2's kernel ended before frame 1's: the latest end counts, not the last one. */
static void
ends_out_of_order_never_give_negative_times (void)
{
  csf_trace trace = { 0 };

  add (&trace, 1, 0, 0, 100, 300, 400);
  add (&trace, 1, 0, 0, 150, 200, 420);
  /* kernel of frame 2: 200 - max (150, 300) < 0, counted as 0; download 420 - max (200, 400) */
  expect (&trace, 2, 75, 100, 60, 210);
  add (&trace, 1, 0, 0, 160, 350, 450);
  /* kernel of frame 3: 350 - max (160, 300) = 50 */
  expect (&trace, 3, 53, 83, 50, 150);
}

static void
the_lead_of_each_run_only_sets_the_ends (void)
{
  csf_trace trace = { 0 };

  add (&trace, 5, 1, 0, 100, 120, 180);
  expect (&trace, 0, 0, 0, 0, 0);
  add (&trace, 5, 1, 0, 200, 220, 280);
  expect (&trace, 1, 100, 20, 60, 100);
  /* Another run has another instant: its clock starts again, and so does its lead. */
  add (&trace, 6, 1, 0, 50, 60, 70);
  expect (&trace, 1, 100, 20, 60, 100);
  add (&trace, 6, 1, 50, 100, 110, 120);
  expect (&trace, 2, 75, 15, 35, 75);
}

static void
a_window_that_was_taken_starts_afresh (void)
{
  csf_trace trace = { 0 };
  csf_engine_stats stats = { 0 };

  add (&trace, 1, 0, 0, 100, 120, 180);
  csf_trace_read (&trace, &stats, true);
  CHECK_INT (stats.timed, 1);
  expect (&trace, 0, 0, 0, 0, 0);
  /* The run goes on: its ends are still known. */
  add (&trace, 1, 0, 0, 150, 190, 240);
  expect (&trace, 1, 50, 40, 50, 60);
}

/* CPU threads do not take turns: each frame's stage ran for itself. */
static void
parallel_stages_do_not_wait_for_each_other (void)
{
  csf_trace trace = { 0 };
  csf_times times = {.valid = true,.parallel = true,.run = 1 };

  for (unsigned i = 0; i < 2; i++) {
    times.start = times.end[CSF_PART_UPLOAD] = 10 * i;
    times.end[CSF_PART_KERNEL] = times.end[CSF_PART_DOWNLOAD] = 100 + 10 * i;
    times.end[CSF_PART_RECORDS] = times.end[CSF_PART_KERNEL];
    add_times (&trace, &times, 0);
  }
  /* both kernels ran 100; ends at 100 and 110 */
  expect (&trace, 2, 0, 100, 0, 55);
}

/* What a viewer draws: each part from when it could begin, on the host's clock. */
static void
spans_are_on_the_clock_of_the_host (void)
{
  csf_trace trace = {.epoch = 500 };
  csf_times times = {
    .valid = true,
    .run = 1,
    .instant_ns = 700,
    .start = 10,
    .end = {
      [CSF_PART_UPLOAD] = 110,
      [CSF_PART_KERNEL] = 140,
      [CSF_PART_RECORDS] = 190,
      [CSF_PART_DOWNLOAD] = 200,
    },
  };
  csf_frame_times frame = add_times (&trace, &times, 3);

  /* The engine's first frame: nothing ran before. */
  CHECK (frame.timed);
  expect_span (frame.span[CSF_PART_UPLOAD], 710, 810);
  expect_span (frame.span[CSF_PART_KERNEL], 810, 840);
  expect_span (frame.span[CSF_PART_RECORDS], 840, 890);
  expect_span (frame.span[CSF_PART_DOWNLOAD], 840, 900);
  for (unsigned p = CSF_PART_UPLOAD; p < CSF_N_PARTS; p++)
    times.end[p] += 60;
  frame = add_times (&trace, &times, 3);
  expect_span (frame.span[CSF_PART_UPLOAD], 810, 870);
  expect_span (frame.span[CSF_PART_KERNEL], 870, 900);
  /* Passes that append do not take turns. */
  expect_span (frame.span[CSF_PART_RECORDS], 900, 950);
  expect_span (frame.span[CSF_PART_DOWNLOAD], 900, 960);
}

/* A run whose instant is measured from that of the one before goes on where that ended. */
static void
runs_that_follow_are_on_one_axis (void)
{
  csf_trace trace = { 0 };
  csf_times times = {
    .valid = true,
    .run = 2,
    .instant_ns = 99999,        /* not looked at */
    .since_run = 150,
    .end = {[CSF_PART_UPLOAD] = 50,[CSF_PART_KERNEL] = 60,[CSF_PART_RECORDS] = 60,
        [CSF_PART_DOWNLOAD] = 100},
  };
  csf_frame_times frame;

  add (&trace, 1, 2, 0, 170, 180, 190);
  frame = add_times (&trace, &times, 2);
  CHECK (frame.timed);
  /* The upload before ended at 170, so this one began there. */
  expect_span (frame.span[CSF_PART_UPLOAD], 170, 200);
  expect_span (frame.span[CSF_PART_DOWNLOAD], 210, 250);
}

/* Clocks that run apart are brought together again, and durations stay as measured. */
static void
no_frame_begins_before_it_was_asked_for_or_ends_after_it_was_seen (void)
{
  csf_trace trace = { 0 };
  const csf_times times = {
    .valid = true,
    .run = 1,
    .start = 100,
    .end = {[CSF_PART_UPLOAD] = 150,[CSF_PART_KERNEL] = 160,[CSF_PART_RECORDS] = 160,
        [CSF_PART_DOWNLOAD] = 200},
  };
  csf_frame_times frame = {.retired = 180 };

  csf_trace_add (&trace, &times, 1, &frame);
  expect_span (frame.span[CSF_PART_UPLOAD], 80, 130);
  expect_span (frame.span[CSF_PART_DOWNLOAD], 140, 180);
  frame = (csf_frame_times) {.retired = 1000 };
  frame.span[CSF_PART_SUBMIT].begin = frame.span[CSF_PART_SUBMIT].end = 130;
  csf_trace_add (&trace, &times, 1, &frame);
  /* 130 instead of 80: everything is 50 later, ends of before included. */
  expect_span (frame.span[CSF_PART_DOWNLOAD], 230, 230);
  expect (&trace, 2, 25, 5, 20, 50);
}

static void
a_distribution_has_mean_and_percentile (void)
{
  static csf_distribution all;
  csf_summary summary = csf_distribution_summarize (&all);

  CHECK_INT (summary.n, 0);
  CHECK_INT (summary.p99_ns, 0);
  for (unsigned i = 1; i <= 100; i++)
    csf_distribution_add (&all, i * 1000);
  summary = csf_distribution_summarize (&all);
  CHECK_INT (summary.mean_ns, 50500);
  CHECK (summary.p99_ns >= 99000 && summary.p99_ns <= 100000);
  /* One in a thousand is not the 99th percentile; two in a hundred are. */
  csf_distribution_clear (&all);
  for (unsigned i = 0; i < 999; i++)
    csf_distribution_add (&all, 7);
  csf_distribution_add (&all, 1000000);
  CHECK_INT (csf_distribution_summarize (&all).p99_ns, 7);
  for (unsigned i = 0; i < 20; i++)
    csf_distribution_add (&all, 1000000);
  CHECK_INT (csf_distribution_summarize (&all).p99_ns, 1000000);
}

static void
a_distribution_takes_any_time (void)
{
  static csf_distribution one;

  for (unsigned bit = 0; bit < 64; bit++) {
    uint64_t ns = (uint64_t) 1 << bit;

    for (unsigned i = 0; i < 3; i++, ns += ns / 3) {
      csf_distribution_clear (&one);
      csf_distribution_add (&one, ns);
      csf_distribution_add (&one, ns / 2);
      CHECK_INT (csf_distribution_summarize (&one).p99_ns, ns);
      csf_distribution_clear (&one);
      for (unsigned n = 0; n < 200; n++)
        csf_distribution_add (&one, ns);
      csf_distribution_add (&one, UINT64_MAX / 1000);
      if (ns < (uint64_t) 1 << 41)
        CHECK (csf_distribution_summarize (&one).p99_ns >= ns
            && csf_distribution_summarize (&one).p99_ns <= ns + ns / 16);
    }
  }
}

int
main (int argc, char **argv)
{
  static const test tests[] = {
    {"nothing_timed_means_zero", nothing_timed_means_zero},
    {"frames_one_after_another_are_plain_differences",
        frames_one_after_another_are_plain_differences},
    {"waiting_for_the_stage_before_is_not_counted", waiting_for_the_stage_before_is_not_counted},
    {"waiting_for_the_stage_itself_is_not_counted", waiting_for_the_stage_itself_is_not_counted},
    {"ends_out_of_order_never_give_negative_times", ends_out_of_order_never_give_negative_times},
    {"the_lead_of_each_run_only_sets_the_ends", the_lead_of_each_run_only_sets_the_ends},
    {"a_window_that_was_taken_starts_afresh", a_window_that_was_taken_starts_afresh},
    {"parallel_stages_do_not_wait_for_each_other", parallel_stages_do_not_wait_for_each_other},
    {"spans_are_on_the_clock_of_the_host", spans_are_on_the_clock_of_the_host},
    {"runs_that_follow_are_on_one_axis", runs_that_follow_are_on_one_axis},
    {"no_frame_begins_before_it_was_asked_for_or_ends_after_it_was_seen",
        no_frame_begins_before_it_was_asked_for_or_ends_after_it_was_seen},
    {"a_distribution_has_mean_and_percentile", a_distribution_has_mean_and_percentile},
    {"a_distribution_takes_any_time", a_distribution_takes_any_time},
    {NULL}
  };

  return run_tests (argc, argv, tests);
}
