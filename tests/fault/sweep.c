/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A short session in which the k-th driver call fails, for every k there is, and one in which
 * the k-th operation of the device fails.  Each must end by itself, say what was wrong, and give
 * everything back.  Knows the engine's contract and the fake driver. */
#include <stdio.h>
#include <string.h>

#include "tests/engine/fixture.h"

#define SECOND UINT64_C (1000000000)
/* The session polls, so how many calls it makes differs from run to run. */
#define MAX_CALLS 5000

enum
{ STREAMS = 3, FRAMES = 20 };

/* Which memory the frames have decides which calls are made. */
typedef struct variant
{
  const char *name;
  bool pageable_in, pageable_out;
  int align;                    /* more than 1: copies row by row */
  bool cannot_register;
} variant;

static const variant variants[] = {
  {"pinned", false, false, 1, false},
  {"staged", true, false, 1, false},
  {"pageable output, rows", true, true, 64, false},
  {"driver's own memory", false, false, 1, true},
};

typedef struct outcome
{
  bool failed;
  csf_error error;
  unsigned good;                /* frames that came out right */
} outcome;

static bool
note (outcome *self, csf_status status, const csf_error *error)
{
  if (!csf_failed (status))
    return false;
  CHECK_INT (error->status, status);
  CHECK (error->text[0] != '\0');
  if (!self->failed)
    self->error = *error;
  self->failed = true;
  return true;
}

/* Buffers are ordinary memory where pinning is what fails: they outlive the engine either way. */
typedef struct buffers
{
  csf_hostblock *blocks[2 * (STREAMS + 1)];
  unsigned char *memory[2 * (STREAMS + 1)];
} buffers;

static unsigned char pageable[2 * (STREAMS + 1)][64 * 48];

static csfk_image
picture (unsigned char *memory, int align)
{
  csfk_image image;

  csfk_image_init (&image, CSFK_FORMAT_GRAY8, 40, 30);
  image.plane[0].stride = align > 1 ? 64 : image.plane[0].row_bytes;
  image.plane[0].data = memory;
  return image;
}

static void
count_release (void *context, void *user)
{
  (*(unsigned *) context)++;
}

static bool
came_out_right (const csfk_image *out, unsigned frame)
{
  for (int y = 0; y < out->plane[0].rows; y++)
    for (int x = 0; x < out->plane[0].row_bytes; x++)
      if (out->plane[0].data[y * out->plane[0].stride + x] != ((unsigned char) (frame * 7) ^ 0x3c))
        return false;
  return true;
}

static void
retire_one (csf_engine *engine, const buffers *set, int align, unsigned expected, outcome *seen)
{
  csf_result result;

  CHECK_INT (csf_engine_retire (engine, &result), CSF_OK);
  CHECK_INT (result.frame, expected);
  if (note (seen, result.status, &result.error)) {
    CHECK_INT (result.error.frame, expected);
  } else {
    csfk_image out = picture (set->memory[expected % (STREAMS + 1) * 2 + 1], align);

    CHECK (came_out_right (&out, expected));
    seen->good++;
  }
}

static void
stream_frames (csf_engine *engine, const buffers *set, const variant *which, outcome *seen)
{
  unsigned retired = 0, submitted = 0;

  while (submitted < FRAMES) {
    unsigned i = submitted % (STREAMS + 1) * 2;
    xor_params params = {.key = 0x3c };
    csf_error error = { 0 };
    csf_job job = {
      .frame = submitted,
      .in = picture (set->memory[i], which->align),
      .out = picture (set->memory[i + 1], which->align),
      .in_pinned = set->blocks[i] != NULL && csf_hostblock_is_pinned (set->blocks[i]),
      .out_pinned = set->blocks[i + 1] != NULL && csf_hostblock_is_pinned (set->blocks[i + 1]),
      .params = &params,
    };

    if (submitted - retired == STREAMS)
      retire_one (engine, set, which->align, retired++, seen);
    CHECK_INT (csf_engine_wait_free (engine), CSF_OK);
    memset (job.in.plane[0].data, (int) (submitted * 7), sizeof pageable[0]);
    if (note (seen, csf_engine_submit (engine, &job, NULL, &error), &error))
      break;
    submitted++;
  }
  /* Some are left for destroy to wait for. */
  while (submitted - retired > 1)
    retire_one (engine, set, which->align, retired++, seen);
}

static void
get_buffers (csf_hostpool *pool, const variant *which, buffers *set)
{
  memset (set, 0, sizeof *set);
  for (unsigned i = 0; i < 2 * (STREAMS + 1); i++) {
    bool ordinary = i % 2 == 0 ? which->pageable_in : which->pageable_out;

    set->memory[i] = pageable[i];
    if (ordinary)
      continue;
    set->blocks[i] = csf_hostpool_alloc (pool, sizeof pageable[i]);
    CHECK (set->blocks[i] != NULL);
    set->memory[i] = csf_hostblock_data (set->blocks[i]);
  }
}

static void
run_session (const variant *which, outcome *seen)
{
  csf_error error = { 0 };
  csf_device *device;
  csf_hostpool *pool;
  csf_engine *engine;
  csf_config config = { 0 };
  buffers set;
  unsigned released = 0;

  memset (seen, 0, sizeof *seen);
  if (note (seen, csf_device_open (CSF_BACKEND_CUDA, -1, &device, &error), &error))
    return;
  CHECK_INT (csf_hostpool_create (device, 1 << 26, &pool, NULL), CSF_OK);
  get_buffers (pool, which, &set);
  config.device = device;
  config.hostpool = pool;
  config.kernel = &xor_kernel;
  config.num_streams = STREAMS;
  config.in.image = config.out.image = picture (NULL, 1);
  config.in.size = config.out.size = 40 * 30;
  config.release = count_release;
  config.context = &released;
  if (!note (seen, csf_engine_create (&config, &engine, &error), &error)) {
    unsigned left;

    stream_frames (engine, &set, which, seen);
    left = csf_engine_get_in_flight (engine);
    note (seen, csf_engine_destroy (engine, 20 * SECOND, &error), &error);
    CHECK_INT (released, left);
  } else {
    CHECK (engine == NULL);
  }
  for (unsigned i = 0; i < 2 * (STREAMS + 1); i++)
    csf_hostblock_unref (set.blocks[i]);
  csf_hostpool_unref (pool);
  csf_device_unref (device);
}

static void
start_over (const variant *which)
{
  fake->reset ();
  fake_setting ("DELAY_US", 20);
  if (which->cannot_register)
    fake_setting ("ATTRIBUTE_99", 0);
}

/* Nothing of the session is alive.  What its context took along was left only because the
 * failing call was to enter that very context. */
static void
check_given_back (const char *call, long long k)
{
  fake_cuda_counters now = fake_counters ();

  if (now.misuse != 0 || now.streams != 0 || now.events != 0 || now.modules != 0
      || now.contexts != 0 || now.device_bytes != 0 || now.pinned_bytes != 0)
    check_failed (__FILE__, __LINE__, "call %lld: left %u streams, %u events, %u modules, %u "
        "contexts, %llu device bytes, %llu pinned bytes", k, now.streams, now.events, now.modules,
        now.contexts, (unsigned long long) now.device_bytes, (unsigned long long) now.pinned_bytes);
  if (now.orphans != 0 && strcmp (call, "cuCtxPushCurrent_v2") != 0)
    check_failed (__FILE__, __LINE__, "call %lld, %s: its context went away with %llu objects", k,
        call, (unsigned long long) now.orphans);
}

/* Without an error all frames are there: the call was not needed. */
static void
check_outcome (const outcome *seen, const char *call, long long k)
{
  if (!seen->failed && seen->good != FRAMES - 1)
    check_failed (__FILE__, __LINE__, "call %lld, %s: no error, %u frames of %u", k, call,
        seen->good, FRAMES - 1);
}

static void
every_call_may_fail_once (void)
{
  fake->add_kernel (&xor_kernel);
  for (unsigned v = 0; v < sizeof variants / sizeof variants[0]; v++) {
    long long k, failures = 0;

    for (k = 1; k < MAX_CALLS; k++) {
      fake_cuda_counters now;
      outcome seen;

      start_over (&variants[v]);
      fake_setting ("FAIL_AT", k);
      run_session (&variants[v], &seen);
      now = fake_counters ();
      if (now.injected == 0)
        break;
      check_outcome (&seen, now.failed_call, k);
      check_given_back (now.failed_call, k);
      failures += seen.failed;
    }
    CHECK (k > 100 && k < MAX_CALLS);
    /* No frame goes without its two copies, its launch and its event. */
    CHECK (failures >= 4 * FRAMES);
    printf ("  %s: %lld calls, %lld of them fatal\n", variants[v].name, k - 1, failures);
  }
}

static void
every_operation_may_fail (void)
{
  for (unsigned v = 0; v < sizeof variants / sizeof variants[0]; v++)
    for (long long k = 1;; k++) {
      outcome seen;

      start_over (&variants[v]);
      fake_setting ("ASYNC_FAIL_AT", k);
      run_session (&variants[v], &seen);
      check_given_back ("", k);
      if (fake_counters ().injected == 0) {
        CHECK (!seen.failed);
        CHECK (k > 3 * FRAMES);
        break;
      }
      /* The last frame is destroy's, which only waits for it. */
      CHECK (seen.failed || seen.good == FRAMES - 1);
      if (seen.failed)
        CHECK_INT (seen.error.driver_code, 700);
    }
}

int
main (int argc, char **argv)
{
  static const test tests[] = {
    {"every_call_may_fail_once", every_call_may_fail_once},
    {"every_operation_may_fail", every_operation_may_fail},
    {NULL}
  };

  return run_tests (argc, argv, tests);
}
