/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the engine promises while nothing goes wrong: order, content, memory that stays constant,
 * and who owns what.  Knows the contract, not the implementation. */
#include <stdlib.h>
#include <string.h>

#include "fixture.h"

/* ---- order and content ----------------------------------------------------------------------- */

/* The frames' own pauses and the fake's delays make later frames finish before earlier ones. */
static void
stream_shuffled (unsigned streams, unsigned depth, unsigned count)
{
  fixture self;
  test_random random;
  uint64_t retired = 0;

  test_random_init (&random, streams * 100 + depth);
  fixture_open (&self, &(options) {.streams = streams });
  for (uint64_t number = 0; number < count; number++) {
    test_frame *f;
    csf_job job;

    while (number - retired >= depth)
      fixture_expect (&self, retired++);
    CHECK_INT (csf_engine_wait_free (self.engine), CSF_OK);
    f = fixture_fill (&self, number);
    f->params.delay_us = (int) test_random_below (&random, 400);
    job = fixture_job (&self, f);
    CHECK_INT (csf_engine_submit (self.engine, &job, NULL, NULL), CSF_OK);
    CHECK_INT (csf_engine_get_in_flight (self.engine), number + 1 - retired);
  }
  while (retired < count)
    fixture_expect (&self, retired++);
  CHECK_INT (self.n_released, 0);
  fixture_close (&self);
}

static void
frames_leave_in_order_however_they_finish (void)
{
  static const unsigned streams[] = { 1, 2, 3, 4, 5, 6, 7, 8, 16, 64 };

  fake_setting ("DELAY_US", 300);
  for (unsigned i = 0; i < sizeof streams / sizeof streams[0]; i++) {
    stream_shuffled (streams[i], streams[i], 3 * streams[i] + 5);
    stream_shuffled (streams[i], (streams[i] + 1) / 2, 2 * streams[i] + 3);
  }
}

static void
as_many_frames_leave_as_came (void)
{
  enum
  { STREAMS = 5 };

  for (unsigned count = 1; count <= 2 * STREAMS; count++) {
    fixture self;
    csf_result result;

    fixture_open (&self, &(options) {.streams = STREAMS });
    fixture_stream (&self, 0, count, STREAMS);
    CHECK_INT (csf_engine_retire (self.engine, &result), CSF_EMPTY);
    CHECK_INT (csf_engine_get_in_flight (self.engine), 0);
    fixture_close (&self);
  }
}

static void
run_kernel (const csfk_kernel *kernel, int format, unsigned streams, unsigned count,
    uint64_t *hashes)
{
  unsigned char params[CSFK_MAX_PARAMS] __attribute__ ((aligned (16))) = { 0 };
  uint64_t retired = 0;
  fixture self;

  csfk_params_init (kernel, params);
  fixture_open (&self, &(options) {.kernel = kernel,.params = params,.format = format,.width = 65,
        .height = 37,.streams = streams,.device_align = 32 });
  while (retired < count) {
    csf_result result;

    while (csf_engine_get_in_flight (self.engine) < streams
        && retired + csf_engine_get_in_flight (self.engine) < count)
      fixture_submit (&self, retired + csf_engine_get_in_flight (self.engine));
    CHECK_INT (csf_engine_retire (self.engine, &result), CSF_OK);
    CHECK_INT (result.status, CSF_OK);
    hashes[retired++] = frame_hash (result.user);
    free (result.records);
  }
  fixture_close (&self);
}

static void
many_streams_give_what_one_gives (void)
{
  enum
  { COUNT = 12 };

  for (unsigned k = 0; csfk_kernels[k] != NULL; k++) {
    uint64_t one[COUNT], many[COUNT];
    int format = csfk_kernels[k]->formats[0];

    run_kernel (csfk_kernels[k], format, 1, COUNT, one);
    run_kernel (csfk_kernels[k], format, 5, COUNT, many);
    CHECK (memcmp (one, many, sizeof one) == 0);
    CHECK (one[0] != one[1]);
  }
}

static void
parameters_are_those_of_the_submit (void)
{
  fixture self;
  csf_job job;
  csf_result result;
  xor_params params;
  test_frame *f;

  gate_close ();
  fixture_open (&self, &(options) {.kernel = &gated_kernel });
  f = fixture_fill (&self, 0);
  params = f->params;
  job = fixture_job (&self, f);
  job.params = &params;
  CHECK_INT (csf_engine_submit (self.engine, &job, NULL, NULL), CSF_OK);
  params.key ^= 0x55;
  gate_open ();
  CHECK_INT (csf_engine_retire (self.engine, &result), CSF_OK);
  frame_check (&self, f);
  fixture_close (&self);
}

/* ---- layouts --------------------------------------------------------------------------------- */

static void
stream_layout (int format, int width, int height, int in_align, int out_align, int device_align)
{
  fixture self;

  fixture_open (&self, &(options) {.format = format,.width = width,.height = height,
        .in_align = in_align,.out_align = out_align,.device_align = device_align });
  fixture_stream (&self, 0, 7, 3);
  fixture_close (&self);
}

static void
padding_is_never_written (void)
{
  static const int formats[] = {
    CSFK_FORMAT_GRAY8, CSFK_FORMAT_NV12, CSFK_FORMAT_I420, CSFK_FORMAT_RGB
  };
  static const int aligns[] = { 1, 4, 64, 256 };
  static const int sizes[][2] = { {1, 1}, {64, 32}, {37, 23}, {320, 241} };

  fake_setting ("DELAY_US", 20);
  for (unsigned f = 0; f < 4; f++)
    for (unsigned s = 0; s < 4; s++)
      for (unsigned a = 0; a < 16; a++)
        stream_layout (formats[f], sizes[s][0], sizes[s][1], aligns[a % 4], aligns[a / 4],
            aligns[(a + s + f) % 4]);
}

static void
a_frame_that_lies_as_the_device_wants_it_is_one_copy (void)
{
  REQUIRE_FAKE ();
  stream_layout (CSFK_FORMAT_NV12, 64, 32, 1, 1, 1);
  CHECK_INT (fake_counters ().two_dimensional, 0);
  CHECK_INT (fake_counters ().operations, 7 * 3);
  stream_layout (CSFK_FORMAT_NV12, 60, 32, 64, 64, 1);
  CHECK_INT (fake_counters ().two_dimensional, 7 * 4);
}

static void
pinned_frames_are_never_copied_as_pageable_ones (void)
{
  fixture self;
  csf_engine_stats stats;

  fixture_open (&self, &(options) {.format = CSFK_FORMAT_NV12,.width = 37,.height = 23 });
  fixture_stream (&self, 0, 12, 3);
  csf_engine_get_stats (self.engine, &stats, false);
  CHECK_INT (stats.host_copies, 0);
  CHECK_INT (fake_counters ().pageable_copies, 0);
  fixture_close (&self);
}

/* ---- memory that is not pinned --------------------------------------------------------------- */

static void
stream_staged (const options *wanted)
{
  fixture self;
  csf_engine_stats stats;
  bool pins;
  uint64_t retired = 0;

  fixture_open (&self, wanted);
  pins = csf_device_get_info (self.device)->pins;
  for (uint64_t number = 0; number < 20; number++) {
    bool staged;
    csf_job job;
    test_frame *f;

    if (number - retired >= self.options.streams)
      fixture_expect (&self, retired++);
    CHECK_INT (csf_engine_wait_free (self.engine), CSF_OK);
    f = fixture_fill (&self, number);
    job = fixture_job (&self, f);
    CHECK (!job.in_pinned);
    CHECK_INT (csf_engine_submit (self.engine, &job, &staged, NULL), CSF_OK);
    CHECK_INT (staged, pins);
    if (staged)
      memset (f->in_memory, 0x77, f->in_bytes);
  }
  while (retired < 20)
    fixture_expect (&self, retired++);
  csf_engine_get_stats (self.engine, &stats, false);
  /* One copy to stage each, one more where the output is the driver's to copy. */
  CHECK_INT (stats.host_copies, !pins ? 0 : wanted->pageable_out ? 40 : 20);
  fixture_close (&self);
}

static void
a_staged_input_is_the_callers_at_once (void)
{
  stream_staged (&(options) {.pageable_in = true,.format = CSFK_FORMAT_NV12,.width = 70,
        .height = 35,.in_align = 64,.device_align = 16 });
  CHECK_INT (fake_counters ().pageable_copies, 0);
  stream_staged (&(options) {.pageable_in = true,.streams = 16 });
  CHECK_INT (fake_counters ().pageable_copies, 0);
}

static void
staging_works_at_the_pinned_bound (void)
{
  REQUIRE_FAKE ();
  stream_staged (&(options) {.pageable_in = true,.pageable_out = true,.pinned_limit = 1 });
  CHECK (fake_counters ().pageable_copies >= 20);
}

static void
an_output_that_is_not_pinned_comes_out_right (void)
{
  fixture self;
  csf_engine_stats stats;

  fixture_open (&self, &(options) {.pageable_out = true,.out_align = 128 });
  fixture_stream (&self, 0, 20, 3);
  csf_engine_get_stats (self.engine, &stats, false);
  CHECK_INT (stats.host_copies, csf_device_get_info (self.device)->pins ? 20 : 0);
  CHECK_INT (fake_counters ().pageable_copies, fake != NULL ? 20 : 0);
  fixture_close (&self);
}

/* ---- the steady state ------------------------------------------------------------------------ */

static void
nothing_is_allocated_while_frames_flow (void)
{
  fixture self;
  fake_cuda_counters before, after;
  csf_hostpool_stats pool_before, pool_after;
  csf_engine_stats stats_before, stats_after;

  fake_setting ("DELAY_US", 10);
  fixture_open (&self, &(options) {.streams = 4,.pageable_in = true });
  fixture_stream (&self, 0, 12, 4);
  before = fake_counters ();
  csf_hostpool_get_stats (self.pool, &pool_before);
  csf_engine_get_stats (self.engine, &stats_before, false);
  fixture_stream (&self, 12, 500, 4);
  after = fake_counters ();
  csf_hostpool_get_stats (self.pool, &pool_after);
  csf_engine_get_stats (self.engine, &stats_after, false);
  CHECK_INT (after.allocations, before.allocations);
  CHECK_INT (after.streams, before.streams);
  CHECK_INT (after.events, before.events);
  CHECK_INT (after.device_bytes, before.device_bytes);
  CHECK_INT (after.pinned_bytes, before.pinned_bytes);
  CHECK_INT (pool_after.allocations, pool_before.allocations);
  CHECK_INT (pool_after.pinned_bytes, pool_before.pinned_bytes);
  CHECK_INT (stats_after.device_bytes, stats_before.device_bytes);
  fixture_close (&self);
}

static void
sessions_leave_nothing_behind (void)
{
  csf_device *device = open_device ();
  fake_cuda_counters before = fake_counters ();

  for (unsigned i = 0; i < 50; i++) {
    fixture self;
    fake_cuda_counters after;

    fixture_open (&self, &(options) {.streams = 1 + i % 8,.pageable_in = i % 2 == 1 });
    fixture_stream (&self, 0, 3, 1 + i % 8);
    fixture_close (&self);
    after = fake_counters ();
    CHECK_INT (after.device_bytes, before.device_bytes);
    CHECK_INT (after.pinned_bytes, before.pinned_bytes);
    CHECK_INT (after.streams, before.streams);
    CHECK_INT (after.events, before.events);
    CHECK_INT (after.modules, before.modules);
    CHECK_INT (after.primary_references, before.primary_references);
  }
  csf_device_unref (device);
}

/* Frames that left are counted, and stages of a few of them are timed. */
static void
statistics_tell_what_happened (void)
{
  fixture self;
  csf_engine_stats stats;

  fixture_open (&self, &(options) {.streams = 2 });
  fixture_stream (&self, 0, 300, 2);
  csf_engine_get_stats (self.engine, &stats, true);
  CHECK_INT (stats.submitted, 300);
  CHECK_INT (stats.retired, 300);
  CHECK (stats.timed > 0 && stats.timed < 150);
  CHECK (stats.frame_ns > 0);
  CHECK (stats.part[CSF_PART_KERNEL].mean_ns > 0);
  if (fake != NULL) {
    CHECK (stats.part[CSF_PART_UPLOAD].mean_ns > 0 && stats.part[CSF_PART_DOWNLOAD].mean_ns > 0);
    CHECK_INT (stats.device_bytes, 2 * (self.config.in.size + self.config.out.size));
  }
  csf_engine_get_stats (self.engine, &stats, false);
  CHECK_INT (stats.timed, 0);
  CHECK_INT (stats.retired, 300);
  fixture_close (&self);
}

/* ---- what cannot be -------------------------------------------------------------------------- */

static void
a_job_of_another_size_is_refused_and_stays_the_callers (void)
{
  fixture self;
  csf_error error = { 0 };
  csf_job job;
  bool staged = true;

  fixture_open (&self, &(options) { 0 });
  job = fixture_job (&self, fixture_fill (&self, 0));
  job.frame = 77;
  job.in.plane[0].rows--;
  CHECK_INT (csf_engine_submit (self.engine, &job, &staged, &error), CSF_ERROR_ARGUMENT);
  CHECK_INT (error.status, CSF_ERROR_ARGUMENT);
  CHECK_INT (error.frame, 77);
  CHECK (error.text[0] != '\0');
  CHECK (!staged);
  CHECK_INT (csf_engine_get_in_flight (self.engine), 0);
  CHECK_INT (self.n_released, 0);
  fixture_stream (&self, 0, 5, 3);
  fixture_close (&self);
}

static void
refuse_configuration (fixture *self, csf_status expected)
{
  csf_error error = { 0 };
  csf_engine *engine = (csf_engine *) self;

  CHECK_INT (csf_engine_create (&self->config, &engine, &error), expected);
  CHECK_INT (error.status, expected);
  CHECK (error.text[0] != '\0');
  CHECK (engine == NULL);
}

static void
a_configuration_that_cannot_work_is_refused (void)
{
  fixture self;
  csfk_kernel kernel = xor_kernel;
  csf_layout in;

  fixture_prepare (&self, &(options) { 0 });
  in = self.config.in;
  self.config.num_streams = 0;
  refuse_configuration (&self, CSF_ERROR_ARGUMENT);
  self.config.num_streams = CSF_MAX_STREAMS + 1;
  refuse_configuration (&self, CSF_ERROR_ARGUMENT);
  self.config.num_streams = 3;
  self.config.in.size--;
  refuse_configuration (&self, CSF_ERROR_ARGUMENT);
  self.config.in = in;
  kernel.abi = CSFK_ABI + 1;
  self.config.kernel = &kernel;
  refuse_configuration (&self, CSF_ERROR_ARGUMENT);
  fixture_finish (&self);
}

static void
too_little_device_memory_is_said_with_numbers (void)
{
  fixture self;
  csf_error error = { 0 };

  REQUIRE_FAKE ();
  fixture_prepare (&self, &(options) {.streams = 8 });
  fake_setting ("MEMORY", (long long) (5 * self.config.in.size));
  CHECK_INT (csf_engine_create (&self.config, &self.engine, &error), CSF_ERROR_MEMORY);
  CHECK_CONTAINS (error.text, "8 streams");
  CHECK_CONTAINS (error.text, "num-streams");
  CHECK_INT (fake_counters ().device_bytes, 0);
  fixture_finish (&self);
}

static void
an_engine_without_device_code_says_so (void)
{
  fixture self;
  csf_error error = { 0 };
  csfk_kernel kernel = xor_kernel;
  const csfk_blob empty = { NULL, 0 };

  REQUIRE_FAKE ();
  kernel.device_code = &empty;
  fixture_prepare (&self, &(options) { 0 });
  self.config.kernel = &kernel;
  CHECK_INT (csf_engine_create (&self.config, &self.engine, &error), CSF_ERROR_UNSUPPORTED);
  CHECK_CONTAINS (error.text, "testxor");
  fixture_finish (&self);
}

static void
device_code_for_other_gpus_says_which_is_missing (void)
{
  fixture self;
  csf_error error = { 0 };

  REQUIRE_FAKE ();
  fake_setting ("ATTRIBUTE_75", 5);
  fake_setting ("ATTRIBUTE_76", 3);
  fixture_prepare (&self, &(options) { 0 });
  fake_setting ("FAIL_CODE", 209);
  fake->set_fail_call ("cuModuleLoadDataEx");
  CHECK_INT (csf_engine_create (&self.config, &self.engine, &error), CSF_ERROR_UNSUPPORTED);
  CHECK_CONTAINS (error.text, "5.3");
  CHECK_INT (error.driver_code, 209);
  fixture_finish (&self);
}

int
main (int argc, char **argv)
{
  static const test tests[] = {
    {"frames_leave_in_order_however_they_finish", frames_leave_in_order_however_they_finish},
    {"as_many_frames_leave_as_came", as_many_frames_leave_as_came},
    {"many_streams_give_what_one_gives", many_streams_give_what_one_gives},
    {"parameters_are_those_of_the_submit", parameters_are_those_of_the_submit},
    {"padding_is_never_written", padding_is_never_written},
    {"a_frame_that_lies_as_the_device_wants_it_is_one_copy",
        a_frame_that_lies_as_the_device_wants_it_is_one_copy},
    {"pinned_frames_are_never_copied_as_pageable_ones",
        pinned_frames_are_never_copied_as_pageable_ones},
    {"a_staged_input_is_the_callers_at_once", a_staged_input_is_the_callers_at_once},
    {"staging_works_at_the_pinned_bound", staging_works_at_the_pinned_bound},
    {"an_output_that_is_not_pinned_comes_out_right",
        an_output_that_is_not_pinned_comes_out_right},
    {"nothing_is_allocated_while_frames_flow", nothing_is_allocated_while_frames_flow},
    {"sessions_leave_nothing_behind", sessions_leave_nothing_behind},
    {"statistics_tell_what_happened", statistics_tell_what_happened},
    {"a_job_of_another_size_is_refused_and_stays_the_callers",
        a_job_of_another_size_is_refused_and_stays_the_callers},
    {"a_configuration_that_cannot_work_is_refused", a_configuration_that_cannot_work_is_refused},
    {"too_little_device_memory_is_said_with_numbers",
        too_little_device_memory_is_said_with_numbers},
    {"an_engine_without_device_code_says_so", an_engine_without_device_code_says_so},
    {"device_code_for_other_gpus_says_which_is_missing",
        device_code_for_other_gpus_says_which_is_missing},
    {NULL}
  };

  return run_tests (argc, argv, tests);
}
