/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the engine promises when the device never comes back: an end in bounded time that frees
 * nothing the device may still write.  A program of its own, for it leaves engines behind on
 * purpose. */
#include <string.h>

#include "fixture.h"

#define SECOND UINT64_C (1000000000)

/* Kept in sight of the leak checker: the engine gave it up on purpose. */
static csf_engine *abandoned[4];
static unsigned n_abandoned;

/* The first frame finishes, the rest hang. */
static void
a_hung_device_is_left_alone_within_the_time_given (void)
{
  fixture self;
  csf_error error = { 0 };
  fake_cuda_counters before, after;
  csf_hostpool_stats pool_before, pool_after;
  uint64_t begin, took;

  fixture_open (&self, &(options) {.streams = 3,.pageable_in = true,.kernel = &gated_kernel });
  fixture_submit (&self, 0);
  fixture_expect (&self, 0);
  gate_close ();
  for (unsigned i = 1; i <= 3; i++)
    fixture_submit (&self, i);
  gate_wait_for (3);
  before = fake_counters ();
  csf_hostpool_get_stats (self.pool, &pool_before);
  begin = test_now_ns ();
  CHECK_INT (csf_engine_destroy (self.engine, SECOND / 5, &error), CSF_ERROR_TIMEOUT);
  took = test_now_ns () - begin;
  abandoned[n_abandoned++] = self.engine;
  CHECK (took >= SECOND / 5);
  CHECK (took < 5 * SECOND);
  CHECK_INT (error.status, CSF_ERROR_TIMEOUT);
  CHECK_CONTAINS (error.text, "3 frames");
  CHECK_INT (error.frame, 1);
  CHECK_INT (self.n_released, 0);
  after = fake_counters ();
  csf_hostpool_get_stats (self.pool, &pool_after);
  CHECK_INT (after.device_bytes, before.device_bytes);
  CHECK_INT (after.pinned_bytes, before.pinned_bytes);
  CHECK_INT (after.streams, before.streams);
  CHECK_INT (pool_after.pinned_bytes, pool_before.pinned_bytes);
  /* What was leaked must still be there for the device to write. */
  gate_open ();
  gate_wait_for_passed (3);
  if (fake != NULL)
    fake->wait_idle ();
  for (unsigned i = 1; i <= 3; i++)
    frame_check (&self, &self.frames[i % self.options.n_frames]);
  fixture_finish (&self);
  expect_leak ();
}

static void
a_hung_copy_is_left_alone_as_well (void)
{
  fixture self;
  csf_error error = { 0 };

  REQUIRE_FAKE ();
  fixture_open (&self, &(options) {.streams = 2 });
  fake_setting ("HANG_AT", 4);
  fixture_submit (&self, 0);
  fixture_submit (&self, 1);
  CHECK_INT (csf_engine_destroy (self.engine, SECOND / 10, &error), CSF_ERROR_TIMEOUT);
  abandoned[n_abandoned++] = self.engine;
  CHECK (error.text[0] != '\0');
  fake->release_hang ();
  fake->wait_idle ();
  fixture_finish (&self);
  expect_leak ();
}

int
main (int argc, char **argv)
{
  static const test tests[] = {
    {"a_hung_device_is_left_alone_within_the_time_given",
        a_hung_device_is_left_alone_within_the_time_given},
    {"a_hung_copy_is_left_alone_as_well", a_hung_copy_is_left_alone_as_well},
    {NULL}
  };

  return run_tests (argc, argv, tests);
}
