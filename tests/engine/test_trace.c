/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Stage times against sequences worked out by hand.  A stage of a frame ran from the later of its
 * previous stage's end and the latest earlier end in that stage.  Knows trace.h only. */
#include <string.h>

#include "engine/trace.h"
#include "harness.h"

static void
add (csf_trace *trace, uint64_t run, unsigned lead, double start, double upload, double kernel,
    double download)
{
  csf_times times = {.valid = true,.run = run,.start = start,.upload = upload,.kernel = kernel,
    .download = download
  };

  csf_trace_add (trace, &times, lead);
}

static void
expect (csf_trace *trace, uint64_t frames, uint64_t upload, uint64_t kernel, uint64_t download,
    uint64_t frame)
{
  csf_engine_stats stats = { 0 };

  csf_trace_read (trace, &stats, false);
  CHECK_INT (stats.timed, frames);
  CHECK_INT (stats.upload_ns, upload);
  CHECK_INT (stats.kernel_ns, kernel);
  CHECK_INT (stats.download_ns, download);
  CHECK_INT (stats.frame_ns, frame);
}

static void
nothing_timed_means_zero (void)
{
  csf_trace trace = { 0 };
  csf_times times = {.valid = false,.run = 1,.download = 1000 };

  expect (&trace, 0, 0, 0, 0, 0);
  csf_trace_add (&trace, &times, 0);
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
    times.start = times.upload = 10 * i;
    times.kernel = times.download = 100 + 10 * i;
    csf_trace_add (&trace, &times, 0);
  }
  /* both kernels ran 100; ends at 100 and 110 */
  expect (&trace, 2, 0, 100, 0, 55);
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
    {NULL}
  };

  return run_tests (argc, argv, tests);
}
