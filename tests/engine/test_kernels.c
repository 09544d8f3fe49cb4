/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a kernel may have beside its frames: state, memory of a frame's own, regions, an instance, an output
 * of another size, and code that comes from outside.  Runs on both backends. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fixture.h"

/* ---- a kernel that uses everything ----------------------------------------------------------- */

typedef struct memory
{
  unsigned sum;                 /* of all frames before, in their order */
  unsigned frames;
} memory;

static unsigned n_open;
static bool open_fails;

static unsigned long
state_size (const csfk_kernel *kernel, const csfk_image *in, const csfk_image *out)
{
  CHECK (strcmp (kernel->name, "testmemory") == 0 || strcmp (kernel->name, "testworkspace") == 0);
  return sizeof (memory);
}

static unsigned long
workspace_size (const csfk_kernel *kernel, const csfk_image *in, const csfk_image *out)
{
  return (unsigned long) in->plane[0].row_bytes * (unsigned long) in->plane[0].rows;
}

static int
open_kernel (const csfk_kernel *kernel, const csfk_image *in, const csfk_image *out, void **instance,
    char *reason, unsigned reason_size)
{
  if (open_fails) {
    snprintf (reason, reason_size, "the model does not take %dx%d", in->width, in->height);
    return 1;
  }
  n_open++;
  *instance = &n_open;
  return 0;
}

static void
close_kernel (void *instance)
{
  CHECK (instance == &n_open);
  n_open--;
}

static unsigned
add_up (unsigned sum, unsigned first, const csfk_region *regions, int n)
{
  sum = sum * 31 + first;
  for (int i = 0; i < n; i++)
    sum = sum * 31 + (unsigned) regions[i].x + (unsigned char) regions[i].label[0];
  return sum;
}

/* Every second pixel of every second row, xored with what all frames so far add up to.  The picture goes
 * through the workspace, with a pause in between in which another frame could spoil it. */
static void
process (const csfk_frame *frame, const void *params)
{
  const csfk_plane *in = &frame->in.plane[0], *out = &frame->out.plane[0];
  struct timespec pause = {.tv_nsec = 200000 };
  unsigned char *own = frame->workspace;
  memory *state = frame->state;
  unsigned key = 0;

  for (int y = 0; y < in->rows; y++)
    memcpy (own + y * in->row_bytes, in->data + y * in->stride, (size_t) in->row_bytes);
  nanosleep (&pause, NULL);
  if (state != NULL) {
    CHECK_INT (state->frames, frame->state_frames);
    state->sum = add_up (state->sum, in->data[0], frame->regions, frame->n_regions);
    state->frames++;
    key = state->sum;
  }
  for (int y = 0; y < out->rows; y++)
    for (int x = 0; x < out->row_bytes; x++)
      out->data[y * out->stride + x] = (unsigned char) (own[2 * y * in->row_bytes + 2 * x] ^ key);
}

static const csfk_region *host_regions;

static int
enqueue (const csfk_frame *frame, const void *params, csfk_launcher *launcher)
{
  int code;

  CHECK (launcher->stream != NULL);
  CHECK (frame->instance == &n_open);
  if (frame->n_regions > 0)
    CHECK (memcmp (launcher->regions, host_regions, (size_t) frame->n_regions * sizeof (csfk_region))
        == 0);
  code = launcher->launch (launcher, "csfk_testmemory_part", (csfk_dim) {1, 1, 1},
      (csfk_dim) {32, 1, 1}, 0, frame, sizeof *frame);
  return code != 0 ? code : launcher->launch (launcher, "csfk_testmemory", (csfk_dim) {1, 1, 1},
      (csfk_dim) {32, 1, 1}, 0, frame, sizeof *frame);
}

static const unsigned char no_code[] = "no device code: the fake driver looks kernels up by name";
static const csfk_blob blob = { no_code, sizeof no_code };

static const csfk_kernel memory_kernel = {
  .abi = CSFK_ABI,
  .flags = CSFK_READS_REGIONS | CSFK_RESIZES,
  .name = "testmemory",
  .description = "Every second pixel, changed by all frames before",
  .formats = {CSFK_FORMAT_GRAY8},
  .state_size = state_size,
  .workspace_size = workspace_size,
  .open = open_kernel,
  .close = close_kernel,
  .process = process,
  .enqueue = enqueue,
  .device_code = &blob,
};

/* ---- frames through it ----------------------------------------------------------------------- */

/* The output is half the input both ways. */
static void
prepare (fixture *self, const csfk_kernel *kernel, unsigned streams)
{
  static bool added;

  if (fake != NULL && !added) {
    fake->add_kernel (&memory_kernel);
    added = true;
  }
  fixture_prepare (self, &(options) {.streams = streams,.kernel = kernel,.n_frames = streams + 1 });
  csfk_image_init (&self->config.out.image, CSFK_FORMAT_GRAY8, 32, 24);
  self->config.out.image.plane[0].stride = 32;
  self->config.out.size = 32 * 24;
}

static void
open_engine (fixture *self)
{
  csf_error error = { 0 };

  if (csf_engine_create (&self->config, &self->engine, &error) != CSF_OK)
    check_failed (__FILE__, __LINE__, "engine: %s", error.text);
}

static unsigned
regions_of (uint64_t number, csfk_region *regions, unsigned most)
{
  unsigned n = (unsigned) (number * 977 % (most + 1));

  memset (regions, 0, most * sizeof *regions);
  for (unsigned i = 0; i < n; i++)
    regions[i] = (csfk_region) {.x = (int) (number + i),.label = {(char) ('a' + i % 26)} };
  return n;
}

static void
submit (fixture *self, uint64_t number, unsigned most_regions, bool reset)
{
  csfk_region *regions = calloc (most_regions + 1, sizeof *regions);
  test_frame *sent = fixture_fill (self, number);
  csf_job job = fixture_job (self, sent);
  csf_error error = { 0 };

  CHECK_INT (csf_engine_wait_free (self->engine), CSF_OK);
  csfk_image_init (&sent->out, CSFK_FORMAT_GRAY8, 32, 24);
  sent->out.plane[0].stride = 40;
  sent->out.plane[0].data = sent->out_memory;
  job.out = sent->out;
  job.n_regions = regions_of (number, regions, most_regions);
  job.regions = host_regions = regions;
  job.reset_state = reset;
  if (csf_engine_submit (self->engine, &job, NULL, &error) != CSF_OK)
    check_failed (__FILE__, __LINE__, "submit: %s", error.text);
  /* The engine has its own copy. */
  memset (regions, 0xee, (most_regions + 1) * sizeof *regions);
  free (regions);
}

/* Retires frame `number` and compares; *sum: of all before it. */
static void
expect (fixture *self, uint64_t number, unsigned most_regions, unsigned *sum)
{
  csfk_region *regions = calloc (most_regions + 1, sizeof *regions);
  unsigned n = regions_of (number, regions, most_regions);
  const test_frame *received;
  csf_result result;

  CHECK_INT (csf_engine_retire (self->engine, &result), CSF_OK);
  if (result.status != CSF_OK)
    check_failed (__FILE__, __LINE__, "frame: %s", result.error.text);
  CHECK_INT (result.frame, number);
  received = result.user;
  *sum = add_up (*sum, received->in_memory[0], regions, (int) n);
  for (int y = 0; y < 24; y++)
    for (int x = 0; x < 32; x++)
      CHECK_INT (received->out_memory[y * 40 + x],
          (unsigned char) (received->in_memory[2 * y * 64 + 2 * x] ^ *sum));
  free (regions);
}

static void
close_engine (fixture *self)
{
  fixture_close (self);
  CHECK_INT (n_open, 0);
}

static void
state_goes_from_frame_to_frame_on_any_number_of_streams (void)
{
  static const unsigned streams[] = { 1, 2, 3, 8 };
  const unsigned n_frames = 60;

  for (unsigned s = 0; s < sizeof streams / sizeof streams[0]; s++) {
    fixture self;
    unsigned sum = 0, done = 0;

    fake_setting ("DELAY_US", 2000);
    prepare (&self, &memory_kernel, streams[s]);
    open_engine (&self);
    for (unsigned i = 0; i < n_frames; i++) {
      if (i - done == streams[s])
        expect (&self, done++, 5, &sum);
      submit (&self, i, 5, false);
    }
    while (done < n_frames)
      expect (&self, done++, 5, &sum);
    close_engine (&self);
  }
}

static void
state_begins_anew_when_told_to (void)
{
  fixture self;
  unsigned sum = 0;

  prepare (&self, &memory_kernel, 3);
  open_engine (&self);
  for (unsigned i = 0; i < 12; i++) {
    submit (&self, i, 2, i % 5 == 0);
    if (i % 5 == 0)
      sum = 0;
    expect (&self, i, 2, &sum);
  }
  close_engine (&self);
}

/* As the last test, with the frames before still under way. */
static void
a_new_state_leaves_frames_before_it_alone (void)
{
  fixture self;
  unsigned sum = 0;

  fake_setting ("DELAY_US", 3000);
  prepare (&self, &memory_kernel, 3);
  open_engine (&self);
  for (unsigned round = 0; round < 10; round++) {
    for (unsigned i = 0; i < 3; i++)
      submit (&self, 3 * round + i, 1, i == 2);
    for (unsigned i = 0; i < 3; i++) {
      if (i == 2)
        sum = 0;
      expect (&self, 3 * round + i, 1, &sum);
    }
  }
  close_engine (&self);
}

static void
a_stateless_kernel_works_on_frames_at_once (void)
{
  csfk_kernel kernel = memory_kernel;
  fixture self;
  csf_result result;

  kernel.state_size = NULL;
  fake_setting ("DELAY_US", 2000);
  prepare (&self, &kernel, 4);
  open_engine (&self);
  for (unsigned round = 0; round < 8; round++) {
    for (unsigned i = 0; i < 4; i++)
      submit (&self, 4 * round + i, 0, false);
    for (unsigned i = 0; i < 4; i++) {
      const test_frame *received;

      CHECK_INT (csf_engine_retire (self.engine, &result), CSF_OK);
      CHECK_INT (result.status, CSF_OK);
      received = result.user;
      for (int x = 0; x < 32; x++)
        CHECK_INT (received->out_memory[x], received->in_memory[2 * x]);
    }
  }
  close_engine (&self);
}

static void
any_number_of_regions_arrives_and_growth_is_counted (void)
{
  fixture self;
  csf_engine_stats before, after;
  unsigned sum = 0;

  prepare (&self, &memory_kernel, 2);
  open_engine (&self);
  csf_engine_get_stats (self.engine, &before, false);
  CHECK_INT (before.growths, 0);
  for (unsigned i = 0; i < 8; i++) {
    submit (&self, i, 60, false);
    expect (&self, i, 60, &sum);
  }
  csf_engine_get_stats (self.engine, &after, false);
  CHECK_INT (after.growths, 0);
  for (unsigned i = 8; i < 20; i++) {
    submit (&self, i, 1500, false);
    expect (&self, i, 1500, &sum);
  }
  csf_engine_get_stats (self.engine, &after, false);
  if (fake != NULL) {
    CHECK (after.growths > 0);
    CHECK (after.growths <= 2 * 6);
    CHECK (after.device_bytes > before.device_bytes);
  }
  before = after;
  for (unsigned i = 20; i < 40; i++) {
    submit (&self, i, 700, false);
    expect (&self, i, 700, &sum);
  }
  csf_engine_get_stats (self.engine, &after, false);
  CHECK_INT (after.growths, before.growths);
  close_engine (&self);
}

static void
a_kernel_that_reads_no_regions_gets_none (void)
{
  csfk_kernel kernel = memory_kernel;
  fixture self;
  unsigned sum = 0;

  kernel.flags = CSFK_RESIZES;
  prepare (&self, &kernel, 2);
  open_engine (&self);
  for (unsigned i = 0; i < 6; i++) {
    csf_result result;

    submit (&self, i, 3, false);
    CHECK_INT (csf_engine_retire (self.engine, &result), CSF_OK);
    CHECK_INT (result.status, CSF_OK);
    sum = add_up (sum, ((const test_frame *) result.user)->in_memory[0], NULL, 0);
    CHECK_INT (((const test_frame *) result.user)->out_memory[0],
        (unsigned char) (((const test_frame *) result.user)->in_memory[0] ^ sum));
  }
  close_engine (&self);
}

static void
a_kernel_that_cannot_be_opened_says_why (void)
{
  fixture self;
  csf_error error = { 0 };

  prepare (&self, &memory_kernel, 2);
  open_fails = true;
  CHECK_INT (csf_engine_create (&self.config, &self.engine, &error), CSF_ERROR_UNSUPPORTED);
  open_fails = false;
  CHECK_CONTAINS (error.text, "testmemory");
  CHECK_CONTAINS (error.text, "the model does not take 64x48");
  CHECK_INT (n_open, 0);
  fixture_finish (&self);
}

static void
a_kernel_for_the_other_backend_is_refused (void)
{
  csfk_kernel kernel = memory_kernel;
  fixture self;
  csf_error error = { 0 };

  if (fake != NULL)
    kernel.enqueue = NULL;
  else
    kernel.process = NULL;
  prepare (&self, &kernel, 2);
  CHECK_INT (csf_engine_create (&self.config, &self.engine, &error), CSF_ERROR_UNSUPPORTED);
  CHECK_CONTAINS (error.text, fake != NULL ? "no CUDA function" : "no C function");
  fixture_finish (&self);
}

static void
a_launch_without_device_code_fails_its_frame (void)
{
  csfk_kernel kernel = memory_kernel;
  fixture self;
  csf_result result;

  REQUIRE_FAKE ();
  kernel.device_code = NULL;
  prepare (&self, &kernel, 2);
  open_engine (&self);
  submit (&self, 0, 0, false);
  CHECK_INT (csf_engine_retire (self.engine, &result), CSF_OK);
  CHECK (csf_failed (result.status));
  CHECK_CONTAINS (result.error.text, "no device_code");
  close_engine (&self);
}

/* ---- faults ---------------------------------------------------------------------------------- */

/* A few frames through an engine whose driver may refuse any call; what is left is the caller's to count.
 * Returns whether all frames came out. */
static bool
run_session (void)
{
  fixture self;
  unsigned done = 0, sent = 0;
  csf_result result;

  prepare (&self, &memory_kernel, 2);
  if (csf_engine_create (&self.config, &self.engine, NULL) != CSF_OK) {
    fixture_finish (&self);
    return false;
  }
  while (done < 6) {
    csfk_region regions[200] = { {.x = 1} };
    test_frame *frame = fixture_fill (&self, sent);
    csf_job job = fixture_job (&self, frame);

    csfk_image_init (&frame->out, CSFK_FORMAT_GRAY8, 32, 24);
    frame->out.plane[0].stride = 32;
    frame->out.plane[0].data = frame->out_memory;
    job.out = frame->out;
    job.regions = host_regions = regions;
    job.n_regions = sent == 3 ? 200 : 1;
    job.reset_state = sent == 4;
    if (csf_engine_submit (self.engine, &job, NULL, NULL) != CSF_OK)
      break;
    sent++;
    if (csf_engine_retire (self.engine, &result) != CSF_OK || result.status != CSF_OK)
      break;
    done++;
  }
  fixture_close (&self);
  return done == 6;
}

/* Each call but those that look only; a failure of fixture_prepare's own calls would end the test. */
static void
any_call_for_state_workspace_and_regions_may_fail (void)
{
  static const char *const calls[] = {
    "cuMemAlloc_v2", "cuMemsetD8Async", "cuMemcpyHtoDAsync_v2", "cuMemFree_v2", "cuStreamWaitEvent",
    "cuEventRecord", "cuEventCreate", "cuLaunchKernel", "cuModuleLoadDataEx", "cuModuleGetFunction"
  };

  REQUIRE_FAKE ();
  for (unsigned c = 0; c < sizeof calls / sizeof calls[0]; c++) {
    unsigned failures = 0;

    for (long long k = 1;; k++) {
      fake_cuda_counters now;
      bool all;

      fake->reset ();
      fake_setting ("DELAY_US", 20);
      fake_setting ("FAIL_AT", k);
      fake->set_fail_call (calls[c]);
      all = run_session ();
      now = fake_counters ();
      CHECK_INT (now.misuse, 0);
      CHECK_INT (now.device_bytes + now.streams + now.events + now.modules, 0);
      CHECK_INT (n_open, 0);
      if (now.injected == 0) {
        CHECK (all);
        break;
      }
      failures += !all;
    }
    /* To give memory back is all that may fail and cost no frame. */
    CHECK (failures > 0 || strcmp (calls[c], "cuMemFree_v2") == 0);
  }
  fake->reset ();
}

/* ---- code from outside ----------------------------------------------------------------------- */

static csf_status
inspect (const char *code, size_t size, const char *name, csf_function *function, csf_error *error)
{
  const csfk_blob bytes = { (const unsigned char *) code, size, 0 };
  csf_device *device = open_device ();
  csf_status status = csf_device_inspect (device, &bytes, "X.ptx", name, function, error);

  csf_device_unref (device);
  return status;
}

#define PTX(target, functions) ".version 8.0\n.target sm_" target "\n.address_size 64\n" functions
#define ENTRY(name) ".visible .entry " name "(\n.param .align 8 .b8 " name "_param_0[264]\n)\n{ ret; }\n"

static void
the_only_function_is_found_and_of_several_one_must_be_named (void)
{
  static const char one[] = PTX ("70", ENTRY ("invert"));
  static const char two[] = PTX ("70", ENTRY ("invert") ENTRY ("darken"));
  csf_function function;
  csf_error error = { 0 };

  REQUIRE_FAKE ();
  CHECK_INT (inspect (one, sizeof one, NULL, &function, &error), CSF_OK);
  CHECK (strcmp (function.name, "invert") == 0);
  CHECK (!function.described);
  CHECK_INT (inspect (two, sizeof two, NULL, &function, &error), CSF_ERROR_ARGUMENT);
  CHECK_CONTAINS (error.text, "invert, darken");
  CHECK_CONTAINS (error.text, "kernel-function");
  CHECK_INT (inspect (two, sizeof two, "darken", &function, &error), CSF_OK);
  CHECK (strcmp (function.name, "darken") == 0);
  CHECK_INT (inspect (two, sizeof two, "lighten", &function, &error), CSF_ERROR_ARGUMENT);
  CHECK_CONTAINS (error.text, "lighten");
  CHECK_CONTAINS (error.text, "invert, darken");
}

static void
code_that_cannot_be_loaded_says_what_is_wrong (void)
{
  static const char newer[] = PTX ("999", ENTRY ("invert"));
  static const char text[] = "this is a letter";
  static const char fatbin[] = "\x50\xed\x55\xba\x01\0\x10\0\xff\xff\0\0\0\0\0\0";
  char elf[128] = "\177ELF\2\1\1";
  csf_function function;
  csf_error error = { 0 };

  REQUIRE_FAKE ();
  CHECK_INT (inspect (newer, sizeof newer, NULL, &function, &error), CSF_ERROR_UNSUPPORTED);
  CHECK_CONTAINS (error.text, "compute capability 99.9");
  CHECK_CONTAINS (error.text, "-arch=compute_");
  CHECK_INT (inspect (text, sizeof text, NULL, &function, &error), CSF_ERROR_ARGUMENT);
  CHECK_CONTAINS (error.text, "not PTX, cubin or fatbin");
  CHECK_INT (inspect (text, sizeof text - 1, NULL, &function, &error), CSF_ERROR_ARGUMENT);
  CHECK_INT (inspect (fatbin, sizeof fatbin, NULL, &function, &error), CSF_ERROR_ARGUMENT);
  CHECK_CONTAINS (error.text, "cut short");
  CHECK_INT (inspect (elf, 20, NULL, &function, &error), CSF_ERROR_ARGUMENT);
  CHECK_CONTAINS (error.text, "cut short");
  /* A section table at byte 100 of ten entries. */
  elf[40] = 100;
  elf[58] = 64;
  elf[60] = 10;
  CHECK_INT (inspect (elf, sizeof elf, NULL, &function, &error), CSF_ERROR_ARGUMENT);
  CHECK_CONTAINS (error.text, "at least 740 bytes");
}

static void
the_cpu_takes_no_device_code (void)
{
  static const char one[] = PTX ("70", ENTRY ("invert"));
  csf_function function;
  csf_error error = { 0 };

  if (fake != NULL)
    return;
  CHECK_INT (inspect (one, sizeof one, NULL, &function, &error), CSF_ERROR_UNSUPPORTED);
  CHECK_CONTAINS (error.text, "X.ptx");
}

int
main (int argc, char **argv)
{
  static const test tests[] = {
    {"state_goes_from_frame_to_frame_on_any_number_of_streams",
        state_goes_from_frame_to_frame_on_any_number_of_streams},
    {"state_begins_anew_when_told_to", state_begins_anew_when_told_to},
    {"a_new_state_leaves_frames_before_it_alone", a_new_state_leaves_frames_before_it_alone},
    {"a_stateless_kernel_works_on_frames_at_once", a_stateless_kernel_works_on_frames_at_once},
    {"any_number_of_regions_arrives_and_growth_is_counted",
        any_number_of_regions_arrives_and_growth_is_counted},
    {"a_kernel_that_reads_no_regions_gets_none", a_kernel_that_reads_no_regions_gets_none},
    {"a_kernel_that_cannot_be_opened_says_why", a_kernel_that_cannot_be_opened_says_why},
    {"a_kernel_for_the_other_backend_is_refused", a_kernel_for_the_other_backend_is_refused},
    {"a_launch_without_device_code_fails_its_frame",
        a_launch_without_device_code_fails_its_frame},
    {"any_call_for_state_workspace_and_regions_may_fail",
        any_call_for_state_workspace_and_regions_may_fail},
    {"the_only_function_is_found_and_of_several_one_must_be_named",
        the_only_function_is_found_and_of_several_one_must_be_named},
    {"code_that_cannot_be_loaded_says_what_is_wrong",
        code_that_cannot_be_loaded_says_what_is_wrong},
    {"the_cpu_takes_no_device_code", the_cpu_takes_no_device_code},
    {NULL, NULL}
  };

  return run_tests (argc, argv, tests);
}
