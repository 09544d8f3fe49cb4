/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the engine promises while it is being stopped: interrupts, discards, the end with frames in
 * flight, a device that hangs, a device that fails.  Knows the contract, not the implementation. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "engine/queue.h"
#include "fixture.h"

#define SECOND UINT64_C (1000000000)

/* ---- interrupts ------------------------------------------------------------------------------ */

typedef struct waiter
{
  pthread_t thread;
  csf_engine *engine;
  csf_status status;
} waiter;

static void *
wait_free_main (void *data)
{
  waiter *self = data;

  self->status = csf_engine_wait_free (self->engine);
  return NULL;
}

static void *
retire_main (void *data)
{
  waiter *self = data;
  csf_result result;

  self->status = csf_engine_retire (self->engine, &result);
  return NULL;
}

static void
start_waiter (waiter *self, csf_engine *engine, void *(*run) (void *))
{
  self->engine = engine;
  self->status = CSF_EMPTY;
  CHECK (pthread_create (&self->thread, NULL, run, self) == 0);
}

static void
an_interrupt_wakes_both_waits (void)
{
  enum
  { STREAMS = 3 };
  fixture self;
  waiter submitter, retirer;
  csf_result result;

  gate_close ();
  fixture_open (&self, &(options) {.streams = STREAMS,.kernel = &gated_kernel });
  for (unsigned i = 0; i < STREAMS; i++)
    fixture_submit (&self, i);
  gate_wait_for (STREAMS);
  /* Whether a thread already waits or only will, it must come back. */
  for (unsigned round = 0; round < 20; round++) {
    start_waiter (&submitter, self.engine, wait_free_main);
    start_waiter (&retirer, self.engine, retire_main);
    for (unsigned i = 0; i < round * 10; i++)
      sched_yield ();
    csf_engine_set_interrupted (self.engine, true);
    pthread_join (submitter.thread, NULL);
    pthread_join (retirer.thread, NULL);
    CHECK_INT (submitter.status, CSF_INTERRUPTED);
    CHECK_INT (retirer.status, CSF_INTERRUPTED);
    CHECK_INT (csf_engine_get_in_flight (self.engine), STREAMS);
    csf_engine_set_interrupted (self.engine, false);
  }
  csf_engine_set_interrupted (self.engine, true);
  CHECK_INT (csf_engine_wait_free (self.engine), CSF_INTERRUPTED);
  CHECK_INT (csf_engine_retire (self.engine, &result), CSF_INTERRUPTED);
  csf_engine_set_interrupted (self.engine, false);
  gate_open ();
  for (unsigned i = 0; i < STREAMS; i++)
    fixture_expect (&self, i);
  fixture_close (&self);
}

static void
a_slot_that_comes_free_wakes_the_submitter (void)
{
  fixture self;
  waiter submitter;

  for (unsigned round = 0; round < 20; round++) {
    fixture_open (&self, &(options) {.streams = 2 });
    fixture_submit (&self, 0);
    fixture_submit (&self, 1);
    start_waiter (&submitter, self.engine, wait_free_main);
    for (unsigned i = 0; i < round * 10; i++)
      sched_yield ();
    fixture_expect (&self, 0);
    pthread_join (submitter.thread, NULL);
    CHECK_INT (submitter.status, CSF_OK);
    fixture_expect (&self, 1);
    fixture_close (&self);
  }
}

static void
discarded_frames_are_marked_and_no_others (void)
{
  fixture self;
  csf_result result;

  gate_close ();
  fixture_open (&self, &(options) {.streams = 5,.kernel = &gated_kernel });
  for (unsigned i = 0; i < 3; i++)
    fixture_submit (&self, i);
  csf_engine_discard (self.engine);
  CHECK_INT (csf_engine_get_in_flight (self.engine), 3);
  fixture_submit (&self, 3);
  gate_open ();
  for (unsigned i = 0; i < 3; i++) {
    CHECK_INT (csf_engine_retire (self.engine, &result), CSF_OK);
    CHECK_INT (result.frame, i);
    CHECK_INT (result.status, CSF_OK);
    CHECK (result.discarded);
  }
  fixture_expect (&self, 3);
  fixture_stream (&self, 4, 10, 5);
  CHECK_INT (self.n_released, 0);
  fixture_close (&self);
}

/* ---- the end --------------------------------------------------------------------------------- */

static void
destroy_waits_for_the_frames_in_flight_and_releases_them (void)
{
  for (unsigned in_flight = 1; in_flight <= 4; in_flight++) {
    fixture self;
    csf_error error = { 0 };

    fake_setting ("DELAY_US", 2000);
    fixture_open (&self, &(options) {.streams = 4 });
    for (unsigned i = 0; i < in_flight; i++)
      fixture_submit (&self, i);
    CHECK_INT (csf_engine_destroy (self.engine, 30 * SECOND, &error), CSF_OK);
    CHECK_INT (self.n_released, in_flight);
    for (unsigned i = 0; i < in_flight; i++) {
      CHECK_INT (self.released[i], i);
      frame_check (&self, &self.frames[i]);
    }
    fixture_finish (&self);
  }
}

static void
an_interrupted_engine_can_be_destroyed (void)
{
  fixture self;

  fixture_open (&self, &(options) { 0 });
  fixture_submit (&self, 0);
  csf_engine_set_interrupted (self.engine, true);
  fixture_close (&self);
  CHECK_INT (self.n_released, 1);
}

static void
destroying_nothing_is_allowed (void)
{
  CHECK_INT (csf_engine_destroy (NULL, 0, NULL), CSF_OK);
  csf_device_unref (NULL);
  csf_hostpool_unref (NULL);
  csf_hostblock_unref (NULL);
}

static void
a_hung_device_can_be_interrupted (void)
{
  fixture self;
  waiter retirer;

  REQUIRE_FAKE ();
  fixture_open (&self, &(options) {.streams = 2 });
  fake_setting ("HANG_AT", 1);
  fixture_submit (&self, 0);
  start_waiter (&retirer, self.engine, retire_main);
  csf_engine_set_interrupted (self.engine, true);
  pthread_join (retirer.thread, NULL);
  CHECK_INT (retirer.status, CSF_INTERRUPTED);
  csf_engine_set_interrupted (self.engine, false);
  fake->release_hang ();
  fixture_expect (&self, 0);
  fixture_close (&self);
}

/* ---- failures -------------------------------------------------------------------------------- */

/* One stream runs upload, kernel and download of each frame in turn, so the operation tells the
 * frame. */
static void
a_failing_operation_is_reported_for_its_frame (void)
{
  REQUIRE_FAKE ();
  for (unsigned failing = 0; failing < 4; failing++)
    for (unsigned operation = 1; operation <= 3; operation++) {
      fixture self;
      csf_result result;
      csf_error error = { 0 };
      csf_job job;

      fixture_open (&self, &(options) {.streams = 1 });
      fake_setting ("ASYNC_FAIL_AT", failing * 3 + operation);
      for (unsigned i = 0; i < failing; i++) {
        fixture_submit (&self, i);
        fixture_expect (&self, i);
      }
      fixture_submit (&self, failing);
      CHECK_INT (csf_engine_retire (self.engine, &result), CSF_OK);
      CHECK_INT (result.status, CSF_ERROR_DEVICE);
      CHECK_INT (result.frame, failing);
      CHECK (result.user == &self.frames[failing % self.options.n_frames]);
      CHECK_INT (result.error.status, CSF_ERROR_DEVICE);
      CHECK_INT (result.error.frame, failing);
      CHECK_INT (result.error.driver_code, 700);
      CHECK_CONTAINS (result.error.text, "700");
      /* From then on no job is taken, and each says what was wrong. */
      CHECK_INT (csf_engine_wait_free (self.engine), CSF_OK);
      job = fixture_job (&self, fixture_fill (&self, failing + 1));
      CHECK_INT (csf_engine_submit (self.engine, &job, NULL, &error), CSF_ERROR_DEVICE);
      CHECK_INT (error.driver_code, 700);
      CHECK_INT (csf_engine_get_in_flight (self.engine), 0);
      fixture_close (&self);
    }
}

static void
after_a_failing_operation_every_frame_fails_and_none_hangs (void)
{
  enum
  { STREAMS = 4, COUNT = 24 };

  REQUIRE_FAKE ();
  for (unsigned at = 1; at <= 3 * COUNT; at += 5) {
    fixture self;
    unsigned submitted = 0, retired = 0;
    bool failed = false;

    fake->reset ();
    fixture_open (&self, &(options) {.streams = STREAMS });
    fake_setting ("ASYNC_FAIL_AT", at);
    while (retired < submitted || (submitted < COUNT && !failed)) {
      csf_result result;

      while (!failed && submitted < COUNT
          && csf_engine_get_in_flight (self.engine) < STREAMS)
        fixture_submit (&self, submitted++);
      CHECK_INT (csf_engine_retire (self.engine, &result), CSF_OK);
      CHECK_INT (result.frame, retired++);
      CHECK (!failed || result.status != CSF_OK);
      if (result.status == CSF_OK) {
        frame_check (&self, result.user);
      } else {
        CHECK_INT (result.error.driver_code, 700);
        CHECK_INT (result.error.frame, result.frame);
        failed = true;
      }
    }
    CHECK (failed);
    fixture_close (&self);
  }
}

static void
refuse_call (const char *call, csf_stage stage, unsigned streams)
{
  enum
  { GOOD = 2 };
  fixture self;
  csf_result result;
  csf_error error = { 0 };
  csf_job job;

  fake->reset ();
  fixture_open (&self, &(options) {.streams = streams });
  for (unsigned i = 0; i < GOOD; i++)
    fixture_submit (&self, i);
  fake_setting ("FAIL_CODE", 719);
  fake->set_fail_call (call);
  fixture_submit (&self, GOOD);
  for (unsigned i = 0; i < GOOD; i++)
    fixture_expect (&self, i);
  CHECK_INT (csf_engine_retire (self.engine, &result), CSF_OK);
  CHECK_INT (result.frame, GOOD);
  CHECK_INT (result.status, CSF_ERROR_DEVICE);
  CHECK_INT (result.error.stage, stage);
  CHECK_INT (result.error.frame, GOOD);
  CHECK_INT (result.error.driver_code, 719);
  CHECK_CONTAINS (result.error.text, "719");
  job = fixture_job (&self, fixture_fill (&self, GOOD + 1));
  CHECK_INT (csf_engine_submit (self.engine, &job, NULL, &error), CSF_ERROR_DEVICE);
  CHECK_INT (error.frame, GOOD);
  fixture_close (&self);
}

/* "in its turn, after the good frames before it" */
static void
a_refused_call_is_reported_in_its_turn (void)
{
  REQUIRE_FAKE ();
  refuse_call ("cuMemcpyHtoDAsync_v2", CSF_STAGE_UPLOAD, 3);
  refuse_call ("cuLaunchKernel", CSF_STAGE_KERNEL, 3);
  refuse_call ("cuMemcpyDtoHAsync_v2", CSF_STAGE_DOWNLOAD, 3);
  refuse_call ("cuLaunchKernel", CSF_STAGE_KERNEL, 8);
}

/* A frame whose kernel could not be launched still has its upload under way: its memory may not
 * come back before that has ended. */
static void
a_refused_frames_memory_is_not_given_back_while_it_is_read (void)
{
  fixture self;
  csf_result result;
  fake_cuda_counters counters;

  REQUIRE_FAKE ();
  fake_setting ("DELAY_US", 5000);
  for (unsigned round = 0; round < 10; round++) {
    fixture_open (&self, &(options) {.streams = 2 });
    fixture_stream (&self, 0, round % 4, 2);
    fake->set_fail_call ("cuLaunchKernel");
    fake_setting ("FAIL_AT", 1);
    fixture_submit (&self, round % 4);
    CHECK_INT (csf_engine_retire (self.engine, &result), CSF_OK);
    CHECK (csf_failed (result.status));
    counters = fake_counters ();
    CHECK_INT (counters.running, 0);
    fixture_close (&self);
  }
}

/* ---- three threads --------------------------------------------------------------------------- */

enum
{ STRESS_FRAMES = 400, STRESS_STREAMS = 4 };

typedef struct stress
{
  fixture fixture;
  csf_queue *queue;
  atomic_bool finished;
} stress;

static void *
stress_submit (void *data)
{
  stress *self = data;

  for (unsigned i = 0; i < STRESS_FRAMES; i++) {
    csf_error error = { 0 };
    csf_job job;
    test_frame *f;

    while (csf_engine_wait_free (self->fixture.engine) == CSF_INTERRUPTED)
      sched_yield ();
    f = fixture_fill (&self->fixture, i);
    job = fixture_job (&self->fixture, f);
    if (csf_engine_submit (self->fixture.engine, &job, NULL, &error) != CSF_OK)
      check_failed (__FILE__, __LINE__, "submit: %s", error.text);
    CHECK_INT (csf_queue_push_kept (self->queue, 0, f), CSF_OK);
  }
  return NULL;
}

static void *
stress_retire (void *data)
{
  stress *self = data;

  for (unsigned i = 0; i < STRESS_FRAMES; i++) {
    csf_item item;
    csf_result result;
    csf_status status;

    CHECK_INT (csf_queue_take (self->queue, &item), CSF_OK);
    do
      status = csf_engine_retire (self->fixture.engine, &result);
    while (status == CSF_INTERRUPTED);
    CHECK_INT (status, CSF_OK);
    CHECK_INT (result.status, CSF_OK);
    CHECK_INT (result.frame, i);
    CHECK (result.user == item.data);
    frame_check (&self->fixture, result.user);
    csf_queue_finish (self->queue, 0);
  }
  return NULL;
}

static void *
stress_interrupt (void *data)
{
  stress *self = data;
  test_random random;

  test_random_init (&random, 3);
  while (!atomic_load (&self->finished)) {
    csf_engine_stats stats;

    csf_engine_set_interrupted (self->fixture.engine, true);
    for (unsigned n = test_random_below (&random, 20); n > 0; n--)
      sched_yield ();
    csf_engine_set_interrupted (self->fixture.engine, false);
    csf_engine_get_stats (self->fixture.engine, &stats, true);
    CHECK (stats.retired <= stats.submitted);
    for (unsigned n = test_random_below (&random, 100); n > 0; n--)
      sched_yield ();
  }
  return NULL;
}

/* A slot that comes free tells that the frame before its last one was checked, so two buffers
 * more than slots are enough for none to be filled while it is looked at. */
static void
two_threads_and_interrupts_from_a_third_lose_nothing (void)
{
  stress self = {.finished = false };
  pthread_t submitter, retirer, interrupter;

  fake_setting ("DELAY_US", 50);
  fixture_open (&self.fixture, &(options) {.streams = STRESS_STREAMS,
        .n_frames = STRESS_STREAMS + 2 });
  self.queue = csf_queue_create ();
  CHECK (pthread_create (&retirer, NULL, stress_retire, &self) == 0);
  CHECK (pthread_create (&submitter, NULL, stress_submit, &self) == 0);
  CHECK (pthread_create (&interrupter, NULL, stress_interrupt, &self) == 0);
  pthread_join (submitter, NULL);
  pthread_join (retirer, NULL);
  atomic_store (&self.finished, true);
  pthread_join (interrupter, NULL);
  csf_queue_destroy (self.queue);
  fixture_close (&self.fixture);
}

int
main (int argc, char **argv)
{
  static const test tests[] = {
    {"an_interrupt_wakes_both_waits", an_interrupt_wakes_both_waits},
    {"a_slot_that_comes_free_wakes_the_submitter", a_slot_that_comes_free_wakes_the_submitter},
    {"discarded_frames_are_marked_and_no_others", discarded_frames_are_marked_and_no_others},
    {"destroy_waits_for_the_frames_in_flight_and_releases_them",
        destroy_waits_for_the_frames_in_flight_and_releases_them},
    {"an_interrupted_engine_can_be_destroyed", an_interrupted_engine_can_be_destroyed},
    {"destroying_nothing_is_allowed", destroying_nothing_is_allowed},
    {"a_hung_device_can_be_interrupted", a_hung_device_can_be_interrupted},
    {"a_failing_operation_is_reported_for_its_frame",
        a_failing_operation_is_reported_for_its_frame},
    {"after_a_failing_operation_every_frame_fails_and_none_hangs",
        after_a_failing_operation_every_frame_fails_and_none_hangs},
    {"a_refused_call_is_reported_in_its_turn", a_refused_call_is_reported_in_its_turn},
    {"a_refused_frames_memory_is_not_given_back_while_it_is_read",
        a_refused_frames_memory_is_not_given_back_while_it_is_read},
    {"two_threads_and_interrupts_from_a_third_lose_nothing",
        two_threads_and_interrupts_from_a_third_lose_nothing},
    {NULL}
  };

  return run_tests (argc, argv, tests);
}
