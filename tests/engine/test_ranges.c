/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a profiler sees of the engine: a named range for each part of a frame's way on the host, with the
 * frame's number, and every push with its pop.  Runs with the fake profiler; skipped in a build without
 * NVTX. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "engine/ranges.h"
#include "fixture.h"
#include "tests/fake/fake_nvtx.h"

static const fake_nvtx *profiler;

/* Zeros for one that was never pushed. */
static fake_nvtx_range
get_range (const char *name)
{
  fake_nvtx_counters counters;
  fake_nvtx_range none = { "", 0, 0, 0 };

  profiler->get_counters (&counters);
  for (unsigned i = 0; i < counters.n_ranges; i++)
    if (strcmp (counters.ranges[i].name, name) == 0)
      return counters.ranges[i];
  return none;
}

static void
check_range (const char *name, uint64_t times, uint64_t last)
{
  fake_nvtx_range range = get_range (name);

  CHECK_INT (range.pushes, times);
  CHECK_INT (range.pops, times);
  if (times > 0)
    CHECK_INT (range.payload, last);
}

static void
finish (void)
{
  fake_nvtx_counters counters;

  profiler->get_counters (&counters);
  CHECK_INT (counters.misuse, 0);
  for (unsigned i = 0; i < counters.n_ranges; i++)
    CHECK_INT (counters.ranges[i].pushes, counters.ranges[i].pops);
  profiler->reset ();
}

static void
each_part_of_a_frames_way_is_a_range (void)
{
  fake_nvtx_counters counters;
  fixture self;

  fixture_open (&self, &(options) {.streams = 3 });
  fixture_stream (&self, 100, 20, 3);
  fixture_close (&self);
  check_range ("submit", 20, 119);
  check_range ("wait", 20, 119);
  check_range ("stage", 0, 0);
  profiler->get_counters (&counters);
  CHECK_INT (counters.domains, 1);
  CHECK (strcmp (counters.domain, "cudastreamfilter") == 0);
  finish ();
}

static void
staging_is_a_range_of_its_own (void)
{
  fixture self;

  fixture_open (&self, &(options) {.streams = 2,.pageable_in = true });
  fixture_stream (&self, 0, 10, 2);
  fixture_close (&self);
  check_range ("stage", fake != NULL ? 10 : 0, 9);
  check_range ("submit", 10, 9);
  finish ();
}

static void *
retire_interrupted (void *argument)
{
  fixture *self = argument;
  csf_result result;

  CHECK_INT (csf_engine_retire (self->engine, &result), CSF_INTERRUPTED);
  return NULL;
}

static void
a_wait_that_is_interrupted_ends_its_range (void)
{
  pthread_t thread;
  fixture self;

  gate_close ();
  fixture_open (&self, &(options) {.kernel = &gated_kernel });
  fixture_submit (&self, 7);
  CHECK_INT (pthread_create (&thread, NULL, retire_interrupted, &self), 0);
  while (get_range ("wait").pushes == 0)
    ;
  csf_engine_set_interrupted (self.engine, true);
  pthread_join (thread, NULL);
  check_range ("wait", 1, 7);
  csf_engine_set_interrupted (self.engine, false);
  gate_open ();
  fixture_expect (&self, 7);
  check_range ("wait", 2, 7);
  fixture_close (&self);
  finish ();
}

static void
a_job_that_is_refused_leaves_no_range_open (void)
{
  csf_error error;
  csf_job job;
  fixture self;

  fixture_open (&self, &(options) {.pageable_in = true });
  job = fixture_job (&self, fixture_fill (&self, 0));
  job.in.plane[0].rows--;
  CHECK_INT (csf_engine_submit (self.engine, &job, NULL, &error), CSF_ERROR_ARGUMENT);
  fixture_close (&self);
  check_range ("submit", 0, 0);
  finish ();
}

static void
a_frame_that_fails_leaves_no_range_open (void)
{
  csf_result result;
  fixture self;

  REQUIRE_FAKE ();
  fixture_open (&self, &(options) {.pageable_in = true });
  fake_setting ("FAIL_AT", 1);
  fake->set_fail_call ("cuLaunchKernel");
  fixture_submit (&self, 3);
  CHECK_INT (csf_engine_retire (self.engine, &result), CSF_OK);
  CHECK_INT (result.status, CSF_ERROR_DEVICE);
  fixture_close (&self);
  check_range ("stage", 1, 3);
  check_range ("submit", 1, 3);
  check_range ("wait", 1, 3);
  finish ();
}

#define PUSHES 2000u

static void *
push_many (void *argument)
{
  for (uint64_t i = 0; i < PUSHES; i++) {
    csf_range_push ("outer", i);
    csf_range_push ("inner", i);
    csf_range_pop ();
    csf_range_pop ();
  }
  return NULL;
}

static void
threads_have_ranges_of_their_own (void)
{
  fake_nvtx_counters before, after;
  pthread_t threads[4];

  profiler->get_counters (&before);
  for (unsigned i = 0; i < 4; i++)
    CHECK_INT (pthread_create (&threads[i], NULL, push_many, NULL), 0);
  for (unsigned i = 0; i < 4; i++)
    pthread_join (threads[i], NULL);
  check_range ("outer", 4 * PUSHES, PUSHES - 1);
  check_range ("inner", 4 * PUSHES, PUSHES - 1);
  profiler->get_counters (&after);
  /* Once a name, or once a thread that came at the same time. */
  CHECK (after.strings - before.strings >= 2 && after.strings - before.strings <= 8);
  finish ();
}

int
main (int argc, char **argv)
{
  static const test tests[] = {
    {"each_part_of_a_frames_way_is_a_range", each_part_of_a_frames_way_is_a_range},
    {"staging_is_a_range_of_its_own", staging_is_a_range_of_its_own},
    {"a_wait_that_is_interrupted_ends_its_range", a_wait_that_is_interrupted_ends_its_range},
    {"a_job_that_is_refused_leaves_no_range_open", a_job_that_is_refused_leaves_no_range_open},
    {"a_frame_that_fails_leaves_no_range_open", a_frame_that_fails_leaves_no_range_open},
    {"threads_have_ranges_of_their_own", threads_have_ranges_of_their_own},
    {NULL, NULL}
  };

#ifndef CSF_NVTX
  printf ("skipped: this build is without NVTX\n");
  return 77;
#endif
  profiler = fake_nvtx_find ();
  if (profiler == NULL) {
    fprintf (stderr, "NVTX_INJECTION64_PATH does not name the fake profiler\n");
    return 1;
  }
  return run_tests (argc, argv, tests);
}
