/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Records: every one that a kernel appends arrives, on its own frame, whatever their number.  Runs on both
 * backends; on CUDA with each kind of memory. */
#include <stdlib.h>
#include <string.h>

#include "fixture.h"

#define CU_OUT_OF_MEMORY 2

/* ---- a kernel whose records are known --------------------------------------------------------- */

typedef struct record
{
  unsigned frame, index, check;
} record;

/* The first bytes of the picture say which frame it is and how many records it has. */
typedef struct head
{
  unsigned frame, n;
} head;

static unsigned
check_of (unsigned frame, unsigned index)
{
  return (frame * 2654435761u) ^ (index * 40503u);
}

static void
process (const csfk_frame *frame, const void *params)
{
  for (int y = 0; y < frame->in.plane[0].rows; y++)
    memcpy (frame->out.plane[0].data + y * frame->out.plane[0].stride,
        frame->in.plane[0].data + y * frame->in.plane[0].stride, (size_t) frame->in.plane[0].row_bytes);
}

static void
collect (const csfk_frame *frame, const void *params)
{
  head about;

  memcpy (&about, frame->in.plane[0].data, sizeof about);
  for (unsigned i = 0; i < about.n; i++) {
    record *one = csfk_append (&frame->records);

    if (one != NULL)
      *one = (record) { about.frame, i, check_of (about.frame, i) };
  }
}

/* Of every other frame it says that there were far more than it appended. */
static void
collect_wildly (const csfk_frame *frame, const void *params)
{
  head about;

  collect (frame, params);
  memcpy (&about, frame->in.plane[0].data, sizeof about);
  if (about.frame % 2 == 1)
    *frame->records.count = 0xffffffffu;
}

/* Says nothing of the first frame, as what compares with the frame before. */
static void
collect_late (const csfk_frame *frame, const void *params)
{
  if (frame->state_frames > 0)
    collect (frame, params);
}

static unsigned long
state_size (const csfk_kernel *kernel, const csfk_image *in, const csfk_image *out)
{
  return 16;
}

static int
enqueue (const csfk_frame *frame, const void *params, csfk_launcher *launcher)
{
  return launcher->launch (launcher, "csfk_testrecords", (csfk_dim) {1, 1, 1}, (csfk_dim) {32, 1, 1}, 0,
      frame, sizeof *frame);
}

static int
emit (const csfk_frame *frame, const void *params, csfk_launcher *launcher)
{
  CHECK (frame->records.data != NULL && frame->records.count != NULL);
  return launcher->launch (launcher, "csfk_testrecords_emit", (csfk_dim) {1, 1, 1},
      (csfk_dim) {32, 1, 1}, 0, frame, sizeof *frame);
}

static int
enqueue_late (const csfk_frame *frame, const void *params, csfk_launcher *launcher)
{
  return launcher->launch (launcher, "csfk_testlate", (csfk_dim) {1, 1, 1}, (csfk_dim) {32, 1, 1}, 0,
      frame, sizeof *frame);
}

static int
emit_late (const csfk_frame *frame, const void *params, csfk_launcher *launcher)
{
  return launcher->launch (launcher, "csfk_testlate_emit", (csfk_dim) {1, 1, 1}, (csfk_dim) {32, 1, 1}, 0,
      frame, sizeof *frame);
}

static int
emit_wildly (const csfk_frame *frame, const void *params, csfk_launcher *launcher)
{
  return launcher->launch (launcher, "csfk_testwild_emit", (csfk_dim) {1, 1, 1},
      (csfk_dim) {32, 1, 1}, 0, frame, sizeof *frame);
}

static const unsigned char no_code[] = "no device code: the fake driver looks kernels up by name";
static const csfk_blob blob = { no_code, sizeof no_code, 0 };

static const csfk_kernel records_kernel = {
  .abi = CSFK_ABI,
  .name = "testrecords",
  .description = "As many records as the frame says",
  .formats = {CSFK_FORMAT_GRAY8},
  .process = process,
  .enqueue = enqueue,
  .record_size = sizeof (record),
  .record_name = "test",
  .collect = collect,
  .emit = emit,
  .device_code = &blob,
};

static csfk_kernel wild_kernel, late_kernel;

/* ---- frames ----------------------------------------------------------------------------------- */

static void
prepare (fixture *self, const csfk_kernel *kernel, unsigned streams, csf_metadata_memory memory)
{
  static bool added;

  if (!added) {
    wild_kernel = records_kernel;
    wild_kernel.name = "testwild";
    wild_kernel.collect = collect_wildly;
    wild_kernel.emit = emit_wildly;
    late_kernel = records_kernel;
    late_kernel.name = "testlate";
    late_kernel.state_size = state_size;
    late_kernel.enqueue = enqueue_late;
    late_kernel.collect = collect_late;
    late_kernel.emit = emit_late;
    if (fake != NULL) {
      fake->add_kernel (&records_kernel);
      fake->add_kernel (&late_kernel);
      fake->add_kernel (&wild_kernel);
    }
    added = true;
  }
  fixture_prepare (self, &(options) {.streams = streams,.kernel = kernel,.n_frames = streams + 1 });
  self->config.metadata_memory = memory;
}

static void
open_engine (fixture *self)
{
  csf_error error = { 0 };

  if (csf_engine_create (&self->config, &self->engine, &error) != CSF_OK)
    check_failed (__FILE__, __LINE__, "engine: %s", error.text);
}

static void
submit (fixture *self, unsigned number, unsigned n)
{
  test_frame *sent = fixture_fill (self, number);
  csf_job job = fixture_job (self, sent);
  csf_error error = { 0 };

  memcpy (sent->in_memory, &(head) {number, n}, sizeof (head));
  CHECK_INT (csf_engine_wait_free (self->engine), CSF_OK);
  if (csf_engine_submit (self->engine, &job, NULL, &error) != CSF_OK)
    check_failed (__FILE__, __LINE__, "submit: %s", error.text);
}

/* All n records of the frame, in any order, each once. */
static void
check_records (const csf_result *result, unsigned number, unsigned n)
{
  const record *records = result->records;
  unsigned char *seen = calloc (n + 1, 1);

  CHECK_INT (result->n_records, n);
  for (unsigned i = 0; i < n; i++) {
    CHECK_INT (records[i].frame, number);
    CHECK (records[i].index < n && !seen[records[i].index]);
    CHECK_INT (records[i].check, check_of (number, records[i].index));
    seen[records[i].index] = 1;
  }
  free (seen);
  free (result->records);
}

static void
expect (fixture *self, unsigned number, unsigned n)
{
  csf_result result;

  CHECK_INT (csf_engine_retire (self->engine, &result), CSF_OK);
  if (result.status != CSF_OK)
    check_failed (__FILE__, __LINE__, "frame %u: %s", number, result.error.text);
  CHECK_INT (result.frame, number);
  CHECK_INT (result.records_wanted, n);
  check_records (&result, number, n);
}

/* ---- tests ------------------------------------------------------------------------------------ */

static const csf_metadata_memory memories[] = {
  CSF_METADATA_AUTO, CSF_METADATA_MANAGED, CSF_METADATA_PINNED, CSF_METADATA_DEVICE
};

/* CSF_TEST_FRAMES: more of them than a test suite has time for. */
static unsigned
count_frames (unsigned usual)
{
  const char *text = getenv ("CSF_TEST_FRAMES");

  return text == NULL ? usual : (unsigned) atoi (text);
}

static void
all_arrive (csf_metadata_memory memory, unsigned n_frames)
{
  const unsigned streams = 3;
  unsigned counts[8], done = 0;
  uint64_t total = 0, at_largest = 0;
  csf_engine_stats stats;
  test_random random;
  fixture self;

  test_random_init (&random, memory);
  prepare (&self, &records_kernel, streams, memory);
  open_engine (&self);
  for (unsigned i = 0; done < n_frames; i++) {
    if (i >= n_frames || i - done == streams) {
      expect (&self, done, counts[done % 8]);
      /* The largest there will be. */
      if (done == 20) {
        csf_engine_get_stats (self.engine, &stats, false);
        at_largest = stats.growths;
      }
      done++;
      if (i >= n_frames)
        continue;
    }
    counts[i % 8] = i == 20 ? 100000 : test_random_below (&random, 4) == 0 ?
        test_random_below (&random, 100001) : test_random_below (&random, 50);
    total += counts[i % 8];
    submit (&self, i, counts[i % 8]);
  }
  csf_engine_get_stats (self.engine, &stats, false);
  CHECK_INT (stats.records, total);
  CHECK (stats.growths > 0);
  CHECK_INT (stats.growths, at_largest);
  fixture_close (&self);
}

static void
every_record_arrives_on_its_own_frame (void)
{
  for (unsigned m = 0; m < sizeof memories / sizeof memories[0]; m++)
    all_arrive (memories[m], count_frames (300));
}

/* The fake driver keeps the host from memory that the device may be writing. */
static void
managed_memory_is_read_when_its_stream_has_come_to_rest (void)
{
  REQUIRE_FAKE ();
  fake_setting ("ATTRIBUTE_89", 0);
  fake_setting ("DELAY_US", 500);
  all_arrive (CSF_METADATA_MANAGED, count_frames (150));
}

static void
more_than_max_records_is_said (void)
{
  fixture self;
  csf_result result;

  prepare (&self, &records_kernel, 2, CSF_METADATA_AUTO);
  self.config.max_records = 7000;
  open_engine (&self);
  submit (&self, 0, 7000);
  expect (&self, 0, 7000);
  submit (&self, 1, 7001);
  CHECK_INT (csf_engine_retire (self.engine, &result), CSF_OK);
  CHECK_INT (result.status, CSF_OK);
  CHECK_INT (result.n_records, 7000);
  CHECK_INT (result.records_wanted, 7001);
  free (result.records);
  submit (&self, 2, 5);
  expect (&self, 2, 5);
  fixture_close (&self);
}

static void
expect_wild (fixture *self, unsigned number, unsigned n)
{
  const record *records;
  csf_result result;

  CHECK_INT (csf_engine_retire (self->engine, &result), CSF_OK);
  CHECK_INT (result.status, CSF_OK);
  CHECK_INT (result.frame, number);
  CHECK_INT (result.n_records, self->config.max_records);
  CHECK_INT (result.records_wanted, 0xffffffffu);
  records = result.records;
  for (unsigned i = 0; i < n; i++)
    CHECK_INT (records[i].check, check_of (number, i));
  free (result.records);
}

static void
a_wild_count_is_bounded (void)
{
  for (unsigned m = 0; m < sizeof memories / sizeof memories[0]; m++) {
    const unsigned streams = 3;
    fixture self;

    prepare (&self, &wild_kernel, streams, memories[m]);
    self.config.max_records = 9000;
    open_engine (&self);
    for (unsigned i = 0; i < 20; i++) {
      unsigned number = i - streams;

      if (i >= streams && number % 2 == 1)
        expect_wild (&self, number, 10 + number);
      else if (i >= streams)
        expect (&self, number, 10 + number);
      if (i < 20 - streams)
        submit (&self, i, 10 + i);
    }
    fixture_close (&self);
  }
}

static void
memory_is_chosen_by_what_the_device_can (void)
{
  csf_engine_stats stats;
  fixture self;

  REQUIRE_FAKE ();
  for (int concurrent = 0; concurrent < 2; concurrent++) {
    fake_setting ("ATTRIBUTE_89", concurrent);
    prepare (&self, &records_kernel, 2, CSF_METADATA_AUTO);
    open_engine (&self);
    csf_engine_get_stats (self.engine, &stats, false);
    CHECK_INT (stats.metadata_memory, concurrent ? CSF_METADATA_MANAGED : CSF_METADATA_PINNED);
    CHECK ((fake_counters ().managed_bytes > 0) == (concurrent == 1));
    fixture_close (&self);
  }
  /* Asked for outright it works there too, a stream at a time. */
  fake_setting ("ATTRIBUTE_89", 0);
  prepare (&self, &records_kernel, 2, CSF_METADATA_MANAGED);
  open_engine (&self);
  for (unsigned i = 0; i < 6; i++) {
    submit (&self, i, 100 * i);
    expect (&self, i, 100 * i);
  }
  fixture_close (&self);
  fake_setting ("ATTRIBUTE_83", 0);
  prepare (&self, &records_kernel, 2, CSF_METADATA_MANAGED);
  {
    csf_error error = { 0 };

    CHECK_INT (csf_engine_create (&self.config, &self.engine, &error), CSF_ERROR_UNSUPPORTED);
    CHECK_CONTAINS (error.text, "metadata-memory");
  }
  fixture_finish (&self);
}

/* The `at`-th allocation of a growth fails, while a frame before it and one after it are under way. */
static void
grow_beyond_memory (csf_metadata_memory memory, const char *call, unsigned at)
{
  csf_error error = { 0 };
  csf_result result;
  test_frame *sent;
  csf_job job;
  fixture self;

  fake->reset ();
  prepare (&self, &records_kernel, 4, memory);
  open_engine (&self);
  submit (&self, 0, 50);
  expect (&self, 0, 50);
  submit (&self, 1, 5000);
  submit (&self, 2, 70);
  submit (&self, 3, 90000);
  submit (&self, 4, 1);
  fake_setting ("FAIL_CODE", CU_OUT_OF_MEMORY);
  fake_setting ("FAIL_AT", at);
  fake->set_fail_call (call);
  expect (&self, 1, 5000);
  expect (&self, 2, 70);
  CHECK_INT (csf_engine_retire (self.engine, &result), CSF_OK);
  CHECK_INT (result.status, CSF_ERROR_MEMORY);
  CHECK_INT (result.frame, 3);
  CHECK_INT (result.error.frame, 3);
  CHECK_INT (result.n_records, 0);
  CHECK_CONTAINS (result.error.text, "max-records");
  expect (&self, 4, 1);
  sent = fixture_fill (&self, 5);
  job = fixture_job (&self, sent);
  CHECK_INT (csf_engine_submit (self.engine, &job, NULL, &error), CSF_ERROR_MEMORY);
  CHECK_INT (error.frame, 3);
  CHECK_INT (fake_counters ().injected, 1);
  fixture_close (&self);
}

static void
growth_beyond_memory_is_an_error_after_the_good_frames (void)
{
  REQUIRE_FAKE ();
  for (unsigned at = 1; at <= 4; at++) {
    grow_beyond_memory (CSF_METADATA_MANAGED, "cuMemAllocManaged", at);
    grow_beyond_memory (CSF_METADATA_PINNED, "cuMemHostAlloc", at);
    grow_beyond_memory (CSF_METADATA_DEVICE, "cuMemAlloc_v2", at);
    grow_beyond_memory (CSF_METADATA_DEVICE, "cuMemHostAlloc", at);
  }
  fake->reset ();
}

static void
refuse (const csfk_kernel *kernel, csf_status status, const char *text)
{
  csf_error error = { 0 };
  fixture self;

  prepare (&self, kernel, 2, CSF_METADATA_AUTO);
  CHECK_INT (csf_engine_create (&self.config, &self.engine, &error), status);
  CHECK_CONTAINS (error.text, "testrecords");
  CHECK_CONTAINS (error.text, text);
  fixture_finish (&self);
}

static void
records_of_an_odd_size_are_refused (void)
{
  csfk_kernel kernel = records_kernel;

  for (kernel.record_size = 1; kernel.record_size < 12; kernel.record_size++)
    if (kernel.record_size % 4 != 0)
      refuse (&kernel, CSF_ERROR_ARGUMENT, "multiple of 4");
  kernel.record_size = 0;
  refuse (&kernel, CSF_ERROR_ARGUMENT, "more than 0");
  kernel.emit = NULL;
  refuse (&kernel, CSF_ERROR_ARGUMENT, "more than 0");
}

static void
records_that_are_not_what_they_say_are_refused (void)
{
  csfk_kernel kernel = records_kernel;

  kernel.record_size = 64;
  kernel.record_kind = CSFK_RECORD_OBJECT;
  refuse (&kernel, CSF_ERROR_ARGUMENT, "csfk_object");
  kernel.record_kind = CSFK_RECORD_POINT;
  refuse (&kernel, CSF_ERROR_ARGUMENT, "csfk_point");
  kernel.record_kind = 1000;
  refuse (&kernel, CSF_ERROR_ARGUMENT, "1000");
  kernel = records_kernel;
  kernel.record_name = NULL;
  refuse (&kernel, CSF_ERROR_ARGUMENT, "record_name");
}

static void
records_that_nothing_appends_are_refused (void)
{
  csfk_kernel kernel = records_kernel;

  if (fake == NULL)
    kernel.collect = NULL;
  else
    kernel.emit = NULL;
  refuse (&kernel, CSF_ERROR_UNSUPPORTED, fake == NULL ? "backend=cuda" : "backend=cpu");
}

static void
any_call_for_records_may_fail (void)
{
  static const char *const calls[] = {
    "cuMemAllocManaged", "cuMemAdvise", "cuMemHostAlloc", "cuMemHostGetDevicePointer_v2",
    "cuMemAlloc_v2", "cuMemsetD8Async", "cuMemcpyDtoHAsync_v2", "cuLaunchKernel", "cuEventRecord",
    "cuMemFree_v2", "cuStreamAttachMemAsync"
  };
  static const struct
  {
    csf_metadata_memory memory;
    int concurrent;
  } cases[] = {
    {CSF_METADATA_MANAGED, 0}, {CSF_METADATA_MANAGED, 1}, {CSF_METADATA_PINNED, 1},
    {CSF_METADATA_DEVICE, 1}
  };

  REQUIRE_FAKE ();
  for (unsigned m = 0; m < sizeof cases / sizeof cases[0]; m++)
    for (unsigned c = 0; c < sizeof calls / sizeof calls[0]; c++)
      for (long long k = 1;; k++) {
        fake_cuda_counters now;
        csf_result result;
        fixture self;

        fake->reset ();
        fake_setting ("DELAY_US", 20);
        fake_setting ("ATTRIBUTE_89", cases[m].concurrent);
        fake_setting ("FAIL_AT", k);
        fake->set_fail_call (calls[c]);
        prepare (&self, &records_kernel, 2, cases[m].memory);
        if (csf_engine_create (&self.config, &self.engine, NULL) == CSF_OK) {
          for (unsigned i = 0; i < 4; i++) {
            test_frame *sent = fixture_fill (&self, i);
            csf_job job = fixture_job (&self, sent);

            memcpy (sent->in_memory, &(head) {i, i == 2 ? 20000 : 3}, sizeof (head));
            if (csf_engine_submit (self.engine, &job, NULL, NULL) != CSF_OK
                || csf_engine_retire (self.engine, &result) != CSF_OK || result.status != CSF_OK)
              break;
            check_records (&result, i, i == 2 ? 20000 : 3);
          }
          fixture_close (&self);
        } else {
          fixture_finish (&self);
        }
        now = fake_counters ();
        CHECK_INT (now.misuse, 0);
        CHECK_INT (now.device_bytes + now.managed_bytes + now.streams + now.events + now.modules, 0);
        if (now.injected == 0)
          break;
      }
  fake->reset ();
}

/* Also when the pass that appends runs once more. */
static void
what_is_known_of_the_state_stays_known (void)
{
  const unsigned n = 20000;
  fixture self;

  prepare (&self, &records_kernel, 3, CSF_METADATA_AUTO);
  self.config.kernel = &late_kernel;
  open_engine (&self);
  for (unsigned i = 0; i < 10; i++) {
    submit (&self, i, n);
    if (i >= 2)
      expect (&self, i - 2, i == 2 ? 0 : n);
  }
  expect (&self, 8, n);
  expect (&self, 9, n);
  fixture_close (&self);
}

int
main (int argc, char **argv)
{
  static const test tests[] = {
    {"every_record_arrives_on_its_own_frame", every_record_arrives_on_its_own_frame},
    {"managed_memory_is_read_when_its_stream_has_come_to_rest",
        managed_memory_is_read_when_its_stream_has_come_to_rest},
    {"more_than_max_records_is_said", more_than_max_records_is_said},
    {"what_is_known_of_the_state_stays_known", what_is_known_of_the_state_stays_known},
    {"a_wild_count_is_bounded", a_wild_count_is_bounded},
    {"memory_is_chosen_by_what_the_device_can", memory_is_chosen_by_what_the_device_can},
    {"growth_beyond_memory_is_an_error_after_the_good_frames",
        growth_beyond_memory_is_an_error_after_the_good_frames},
    {"records_of_an_odd_size_are_refused", records_of_an_odd_size_are_refused},
    {"records_that_are_not_what_they_say_are_refused",
        records_that_are_not_what_they_say_are_refused},
    {"records_that_nothing_appends_are_refused", records_that_nothing_appends_are_refused},
    {"any_call_for_records_may_fail", any_call_for_records_may_fail},
    {NULL, NULL}
  };

  return run_tests (argc, argv, tests);
}
