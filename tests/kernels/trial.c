/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A trial: a kernel on a sequence of random frames, the C path beside the model or the GPU beside the C
 * path, with canaries round all that may be written and garbage in all that is undefined.  Knows the
 * kernels' contract and the device. */
#include "check.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum
{
  MAX_FRAMES = 32,
  /* Up to this many samples of a component are all compared with the model, of more a random
   * choice. */
  ALL_SAMPLES = 2048,
  CHOSEN_SAMPLES = 200,
  N_THREADS = 4,
  THREAD_ROUNDS = 20
};

/* Pairs of input and output alignment. */
static const int alignments[TRIAL_ALIGNMENTS][2] = { {16, 16}, {1, 1}, {8, 16}, {16, 4}, {2, 1} };

/* One frame of a sequence.  What process() wrote is in `out`. */
typedef struct step
{
  canvas in, in_before, out, out_before;
  guarded_block workspace;
  csfk_region *regions, regions_before[CHECK_MAX_REGIONS];
  csfk_frame frame;
} step;

typedef struct sequence
{
  const kernel_trial *trial;
  const csfk_kernel *kernel;
  unsigned char *params;        /* exactly as long as the kernel says, for a checker of addresses */
  guarded_block state;
  int n_steps;
  step steps[MAX_FRAMES];
} sequence;

/* ---- messages -------------------------------------------------------------------------------- */

typedef struct text
{
  char data[2048];
  size_t used;
} text;

static void append (text * to, const char *format, ...) __attribute__ ((format (printf, 2, 3)));

static void
append (text *to, const char *format, ...)
{
  va_list arguments;
  int length;

  va_start (arguments, format);
  length = vsnprintf (to->data + to->used, sizeof to->data - to->used, format, arguments);
  va_end (arguments);
  to->used += (size_t) (length > 0 ? length : 0);
  if (to->used > sizeof to->data - 1)
    to->used = sizeof to->data - 1;
}

static void
append_param (text *to, const csfk_param *param, const unsigned char *field)
{
  float number;
  int whole;
  unsigned natural;

  memcpy (&number, field, sizeof number);
  memcpy (&whole, field, sizeof whole);
  memcpy (&natural, field, sizeof natural);
  append (to, ", %s=", param->name);
  if (param->type == CSFK_TYPE_STRING)
    append (to, "'%s'", (const char *) field);
  else if (param->type == CSFK_TYPE_ENUM)
    append (to, "%s", param->values[whole]);
  else if (param->type == CSFK_TYPE_FLOAT)
    append (to, "%.9g", number);
  else if (param->type == CSFK_TYPE_UINT)
    append (to, "%#x", natural);
  else
    append (to, "%d", whole);
}

static void
append_image (text *to, const csfk_image *image)
{
  append (to, "%s %dx%d (range %d, matrix %d, site %d, address ...%x, stride %d)",
      csfk_format_get_info (image->format)->name, image->width, image->height, image->range,
      image->matrix, image->chroma_site, (unsigned) ((uintptr_t) image->plane[0].data % 256),
      image->plane[0].stride);
}

static void fail (const sequence * self, const step * at, const char *format, ...)
__attribute__ ((noreturn, format (printf, 3, 4)));

static void
fail (const sequence *self, const step *at, const char *format, ...)
{
  char what[512];
  va_list arguments;
  text where = { .used = 0 };

  va_start (arguments, format);
  vsnprintf (what, sizeof what, format, arguments);
  va_end (arguments);
  append (&where, "%s, ", self->kernel->name);
  append_image (&where, &at->frame.in);
  append (&where, " to ");
  append_image (&where, &at->frame.out);
  if (self->n_steps > 1)
    append (&where, ", frame %d of %d", (int) (at - self->steps) + 1, self->n_steps);
  if (self->state.size > 0)
    append (&where, ", state of %u frames", at->frame.state_frames);
  if (self->kernel->flags & CSFK_READS_REGIONS)
    append (&where, ", %d regions", at->frame.n_regions);
  for (unsigned i = 0; i < self->kernel->n_params; i++)
    append_param (&where, &self->kernel->params[i],
        self->params + self->kernel->params[i].offset);
  check_fail ("%s: %s (--seed %llu)", where.data, what, (unsigned long long) self->trial->seed);
}

/* ---- a sequence ------------------------------------------------------------------------------ */

static void
make_step (sequence *self, int i, const csfk_image *in, const csfk_image *out)
{
  const csfk_kernel *kernel = self->kernel;
  const int *align = alignments[(self->trial->alignment + i) % TRIAL_ALIGNMENTS];
  csfk_region regions[CHECK_MAX_REGIONS];
  step *at = &self->steps[i];
  int n_regions = model_choose_regions (kernel, self->trial->model, in, regions);
  size_t regions_size = (size_t) n_regions * sizeof *regions;

  picture_init_like (&at->in, in, align[0]);
  if (i > 0)
    picture_follow (&at->in, &self->steps[i - 1].in);
  picture_init_like (&at->out, out, align[1]);
  picture_copy (&at->in_before, &at->in);
  picture_copy (&at->out_before, &at->out);
  block_init (&at->workspace, get_workspace_size (kernel, in, out));
  /* Not one more than there are. */
  at->regions = n_regions > 0 ? malloc (regions_size) : NULL;
  if (n_regions > 0) {
    if (!at->regions)
      check_fail ("out of memory");
    memcpy (at->regions, regions, regions_size);
    memcpy (at->regions_before, regions, regions_size);
  }
  at->frame = (csfk_frame) {
    .in = at->in.image,.out = at->out.image,.state = self->state.data,
    .workspace = at->workspace.data,.regions = at->regions,.n_regions = n_regions
  };
  /* In the middle the state starts anew, as after a flush. */
  if (self->state.size > 0 && i != self->n_steps / 2)
    at->frame.state_frames = i > 0 ? self->steps[i - 1].frame.state_frames + 1 : 0;
}

static void
sequence_init (sequence *self, const kernel_trial *trial)
{
  const csfk_kernel *kernel = trial->kernel;
  csfk_image in, out;
  canvas sample;

  *self = (sequence) {.trial = trial,.kernel = kernel };
  picture_init (&sample, trial->format, trial->width, trial->height, 1);
  in = image_strip (&sample.image);
  picture_finish (&sample);
  out = model_choose_output (kernel, trial->model, &in,
      trial->out_choice % model_count_outputs (trial->model, &in));
  self->params = malloc (kernel->params_size + 1);
  if (!self->params)
    check_fail ("out of memory");
  if (kernel->params_size > 0) {
    self->params = realloc (self->params, kernel->params_size);
    memcpy (self->params, trial->params, kernel->params_size);
  }
  block_init (&self->state, get_state_size (kernel, &in, &out));
  self->n_steps = trial->model->n_frames > 1 ? trial->model->n_frames : 1;
  if (self->n_steps > MAX_FRAMES || (self->state.size > 0 && self->n_steps < 3))
    check_fail ("%s: the model's n_frames is %d: of a kernel with state from 3 to %d", kernel->name,
        trial->model->n_frames, MAX_FRAMES);
  for (int i = 0; i < self->n_steps; i++)
    make_step (self, i, &in, &out);
}

static void
sequence_finish (sequence *self)
{
  for (int i = 0; i < self->n_steps; i++) {
    step *at = &self->steps[i];

    picture_finish (&at->in);
    picture_finish (&at->in_before);
    picture_finish (&at->out);
    picture_finish (&at->out_before);
    block_finish (&at->workspace);
    free (at->regions);
  }
  block_finish (&self->state);
  free (self->params);
}

/* What lasts longer than a frame, made for the CPU or, where its context is current, for the device. */
static void *
open_kernel (const sequence *self)
{
  const csfk_image in = image_strip (&self->steps[0].frame.in);
  const csfk_image out = image_strip (&self->steps[0].frame.out);
  char reason[256] = "";
  void *instance = NULL;

  if (self->kernel->open
      && self->kernel->open (self->kernel, &in, &out, &instance, reason, sizeof reason) != 0)
    fail (self, &self->steps[0], "open() failed: %s", reason);
  return instance;
}

static void
close_kernel (const sequence *self, void *instance)
{
  if (self->kernel->close)
    self->kernel->close (instance);
}

/* ---- against the model ----------------------------------------------------------------------- */

static bool
is_near (const csfk_image *image, int got, int expected, int tolerance)
{
  /* Of the 16 bits of a P010 sample the upper ten count. */
  int one = image->format == CSFK_FORMAT_P010_10LE ? 64 : 1;

  return abs (got - expected) <= tolerance * one;
}

static void
compare_sample (const sequence *self, const step *at, const csfk_frame *shown, void *memory,
    const channel *component, int x, int y)
{
  const kernel_model *model = self->trial->model;
  int expected = model->sample (shown, self->params, memory, component, x, y);
  int got = model_get_raw (&at->out.image, component, x, y);

  if (!is_near (&at->out.image, got, expected, model->model_tolerance))
    fail (self, at, "plane %d offset %d at %d,%d is %d, the model says %d, give or take %d",
        component->plane, component->offset, x, y, got, expected, model->model_tolerance);
}

static void
compare_with_model (const sequence *self, const step *at, void **memory, tally *totals)
{
  const kernel_model *model = self->trial->model;
  csfk_frame shown = at->frame;
  const channel *components;
  int n = model_get_components (shown.out.format, &components);

  /* A model has no use for what the kernel made. */
  shown.out = image_strip (&shown.out);
  shown.state = shown.workspace = NULL;
  if (shown.state_frames == 0) {
    free (*memory);
    *memory = NULL;
  }
  if (model->prepare)
    model->prepare (&shown, self->params, memory);

  for (int i = 0; i < n; i++) {
    const channel *component = &components[i];
    int columns = model_get_columns (&shown.out, component);
    int rows = model_get_rows (&shown.out, component);
    bool all = columns * rows <= ALL_SAMPLES;
    int n_samples = all ? columns * rows : CHOSEN_SAMPLES;

    for (int s = 0; s < n_samples; s++) {
      int x = all ? s % columns : check_random_in (0, columns - 1);
      int y = all ? s / columns : check_random_in (0, rows - 1);

      /* The corners always, and edges more often than chance would have it. */
      if (!all && (s < 4 || s % 8 == 4))
        x = s % 2 ? columns - 1 : 0;
      if (!all && (s < 4 || s % 8 == 5))
        y = s & 2 ? rows - 1 : 0;
      compare_sample (self, at, &shown, *memory, component, x, y);
    }
    totals->samples += (unsigned) n_samples;
  }
}

/* ---- the C path ------------------------------------------------------------------------------ */

static void
check_untouched (const sequence *self, const step *at, const char *who, const canvas *in,
    const canvas *out)
{
  if (memcmp (in->memory, at->in_before.memory, in->size) != 0)
    fail (self, at, "%s wrote to its input", who);
  if (!picture_same_outside (&at->out_before, out))
    fail (self, at, "%s wrote beside a row of its output", who);
}

static void
run_process (const sequence *self, const step *at, const csfk_frame *frame)
{
  size_t regions_size = (size_t) frame->n_regions * sizeof *frame->regions;

  self->kernel->process (frame, self->params);
  if (regions_size > 0 && memcmp (frame->regions, at->regions_before, regions_size) != 0)
    fail (self, at, "the C path wrote to its regions");
  if (self->kernel->params_size > 0
      && memcmp (self->params, self->trial->params, self->kernel->params_size) != 0)
    fail (self, at, "the C path wrote to its parameters");
  if (!block_is_intact (&self->state, self->state.memory))
    fail (self, at, "the C path wrote beside its state");
  if (!block_is_intact (&at->workspace, at->workspace.memory))
    fail (self, at, "the C path wrote beside its workspace");
}

/* The same frame with the same state again, and other garbage where there may be garbage: what is
 * undefined comes out different.  The state is left as the first run made it. */
static void
check_defined (sequence *self, step *at, void *state_before)
{
  csfk_frame frame = at->frame;
  void *state_after = NULL;
  canvas again;

  if (self->state.size > 0) {
    state_after = malloc (self->state.size);
    if (!state_after)
      check_fail ("out of memory");
    memcpy (state_after, self->state.data, self->state.size);
    memcpy (self->state.data, state_before, self->state.size);
  }
  picture_copy (&again, &at->out_before);
  picture_invert (&again);
  block_randomise (&at->workspace);
  frame.out = again.image;
  run_process (self, at, &frame);
  for (int i = 0; i < again.image.n_planes; i++) {
    const csfk_plane *a = &at->out.image.plane[i], *b = &again.image.plane[i];

    for (int y = 0; y < a->rows; y++)
      if (memcmp (a->data + (size_t) y * (size_t) a->stride,
              b->data + (size_t) y * (size_t) b->stride, (size_t) a->row_bytes) != 0)
        fail (self, at, "row %d of plane %d depends on what was in the output or the workspace", y,
            i);
  }
  picture_finish (&again);
  if (self->state.size > 0)
    memcpy (self->state.data, state_after, self->state.size);
  free (state_after);
}

static void
run_on_cpu (sequence *self, bool with_model, tally *totals)
{
  void *instance = open_kernel (self), *memory = NULL, *state_before = NULL;

  if (self->state.size > 0 && !(state_before = malloc (self->state.size)))
    check_fail ("out of memory");
  for (int i = 0; i < self->n_steps; i++) {
    step *at = &self->steps[i];

    at->frame.instance = instance;
    if (self->state.size > 0) {
      if (at->frame.state_frames == 0)
        memset (self->state.data, 0, self->state.size);
      memcpy (state_before, self->state.data, self->state.size);
    }
    run_process (self, at, &at->frame);
    check_untouched (self, at, "the C path", &at->in, &at->out);
    if (with_model) {
      check_defined (self, at, state_before);
      compare_with_model (self, at, &memory, totals);
    }
    totals->frames++;
  }
  free (memory);
  free (state_before);
  close_kernel (self, instance);
}

/* ---- the device ------------------------------------------------------------------------------ */

/* A step's memory on the device, each 0 where there is none. */
typedef struct device_step
{
  cu_deviceptr in, out, workspace, regions;
} device_step;

static void
move_to_device (csfk_image *image, const canvas *picture, cu_deviceptr memory)
{
  for (int i = 0; i < image->n_planes; i++)
    image->plane[i].data = (unsigned char *) (uintptr_t) memory +
        (image->plane[i].data - picture->memory);
}

static cu_deviceptr
upload_new (gpu *device, const void *from, size_t size)
{
  cu_deviceptr memory = size > 0 ? device_alloc (device, size) : 0;

  if (size > 0)
    device_upload (device, memory, from, size);
  return memory;
}

static void *
inside (cu_deviceptr memory)
{
  return memory ? (void *) (uintptr_t) (memory + GUARD_BYTES) : NULL;
}

static void
upload_step (gpu *device, step *at, device_step *there)
{
  size_t regions_size = (size_t) at->frame.n_regions * sizeof *at->regions;

  block_randomise (&at->workspace);
  there->in = upload_new (device, at->in.memory, at->in.size);
  there->out = upload_new (device, at->out_before.memory, at->out_before.size);
  there->workspace = upload_new (device, at->workspace.memory,
      at->workspace.size > 0 ? at->workspace.memory_size : 0);
  there->regions = upload_new (device, at->regions, regions_size);
}

/* Gives the frames to the streams in turn, without a wait on the host between them; with state each
 * kernel waits for the one before. */
static void
enqueue_steps (gpu *device, const sequence *self, const device_step *there, cu_deviceptr state,
    void *instance, const void *zeros)
{
  for (int i = 0; i < self->n_steps; i++) {
    const step *at = &self->steps[i];
    csfk_frame moved = at->frame;

    device_use_stream (device, i % DEVICE_STREAMS);
    if (i > 0 && state)
      device_wait_for (device, (i - 1) % DEVICE_STREAMS);
    if (state && moved.state_frames == 0)
      device_send (device, state + GUARD_BYTES, zeros, self->state.size);
    move_to_device (&moved.in, &at->in, there[i].in);
    move_to_device (&moved.out, &at->out, there[i].out);
    moved.state = inside (state);
    moved.workspace = inside (there[i].workspace);
    moved.regions = (const csfk_region *) (uintptr_t) there[i].regions;
    moved.instance = instance;
    device_enqueue (device, self->kernel, &moved, self->params, at->regions);
  }
  device_finish (device);
  device_use_stream (device, 0);
}

/* Tolerance 0: to the byte, canaries included. */
static void
compare_pictures (const sequence *self, const step *at, const canvas *got)
{
  const canvas *expected = &at->out;
  const int tolerance = self->trial->model->device_tolerance;
  const channel *components;
  int n = model_get_components (expected->image.format, &components);

  if (memcmp (got->memory, expected->memory, expected->size) == 0)
    return;
  for (int i = 0; i < n; i++)
    for (int y = 0; y < model_get_rows (&expected->image, &components[i]); y++)
      for (int x = 0; x < model_get_columns (&expected->image, &components[i]); x++) {
        int a = model_get_raw (&got->image, &components[i], x, y);
        int b = model_get_raw (&expected->image, &components[i], x, y);

        if (!is_near (&expected->image, a, b, tolerance))
          fail (self, at, "plane %d offset %d at %d,%d: the GPU's is %d, the CPU's %d, tolerance %d",
              components[i].plane, components[i].offset, x, y, a, b, tolerance);
      }
  if (tolerance == 0)
    fail (self, at, "the GPU's memory is not the CPU's, though every sample is");
}

static void
check_device_block (gpu *device, const sequence *self, const step *at, const guarded_block *block,
    cu_deviceptr memory, const char *name)
{
  unsigned char *after;

  if (block->size == 0)
    return;
  after = malloc (block->memory_size);
  if (!after)
    check_fail ("out of memory");
  device_download (device, after, memory, block->memory_size);
  if (!block_is_intact (block, after))
    fail (self, at, "the GPU wrote beside its %s", name);
  free (after);
}

static void
check_device_step (gpu *device, const sequence *self, const step *at, const device_step *there)
{
  const size_t regions_size = (size_t) at->frame.n_regions * sizeof *at->regions;
  csfk_region regions_after[CHECK_MAX_REGIONS];
  canvas in_after, out_after;

  picture_copy (&in_after, &at->in);
  picture_copy (&out_after, &at->out_before);
  device_download (device, in_after.memory, there->in, in_after.size);
  device_download (device, out_after.memory, there->out, out_after.size);
  check_untouched (self, at, "the GPU", &in_after, &out_after);
  compare_pictures (self, at, &out_after);
  check_device_block (device, self, at, &at->workspace, there->workspace, "workspace");
  if (regions_size > 0) {
    device_download (device, regions_after, there->regions, regions_size);
    if (memcmp (regions_after, at->regions_before, regions_size) != 0)
      fail (self, at, "the GPU wrote to its regions");
  }
  picture_finish (&in_after);
  picture_finish (&out_after);
}

static void
run_on_device (gpu *device, sequence *self, tally *totals)
{
  void *instance = open_kernel (self);
  void *zeros = self->state.size > 0 ? calloc (1, self->state.size) : NULL;
  device_step there[MAX_FRAMES] = { {0} };
  cu_deviceptr state = upload_new (device, self->state.memory,
      self->state.size > 0 ? self->state.memory_size : 0);

  if (self->state.size > 0 && !zeros)
    check_fail ("out of memory");
  for (int i = 0; i < self->n_steps; i++)
    upload_step (device, &self->steps[i], &there[i]);
  enqueue_steps (device, self, there, state, instance, zeros);
  for (int i = 0; i < self->n_steps; i++)
    check_device_step (device, self, &self->steps[i], &there[i]);
  check_device_block (device, self, &self->steps[self->n_steps - 1], &self->state, state, "state");
  totals->device_frames += (unsigned) self->n_steps;

  for (int i = 0; i < self->n_steps; i++) {
    const cu_deviceptr all[] = { there[i].in, there[i].out, there[i].workspace, there[i].regions };

    for (int k = 0; k < CHECK_COUNT (all); k++)
      if (all[k])
        device_free (device, all[k]);
  }
  if (state)
    device_free (device, state);
  free (zeros);
  close_kernel (self, instance);
}

void
trial_run (gpu *device, const kernel_trial *trial, tally *totals)
{
  static sequence self;

  sequence_init (&self, trial);
  run_on_cpu (&self, !device, totals);
  if (device)
    run_on_device (device, &self, totals);
  sequence_finish (&self);
}

/* ---- several threads ------------------------------------------------------------------------- */

typedef struct thread_work
{
  const csfk_kernel *kernel;
  const void *params;
  csfk_frame frame;
} thread_work;

static void *
process_often (void *data)
{
  thread_work *work = data;

  for (int i = 0; i < THREAD_ROUNDS; i++)
    work->kernel->process (&work->frame, work->params);
  return NULL;
}

void
trial_run_threads (const kernel_trial *trial)
{
  static sequence self;
  canvas again[N_THREADS];
  thread_work work[N_THREADS];
  pthread_t threads[N_THREADS];
  kernel_model model = *trial->model;
  kernel_trial many = *trial;
  tally unused = { 0, 0, 0 };
  void *instance;

  /* As many frames as threads, of which a kernel without state sees each for itself. */
  model.n_frames = N_THREADS;
  many.model = &model;
  sequence_init (&self, &many);
  run_on_cpu (&self, false, &unused);
  instance = open_kernel (&self);
  for (int i = 0; i < N_THREADS; i++) {
    picture_copy (&again[i], &self.steps[i].out_before);
    work[i] = (thread_work) { self.kernel, self.params, self.steps[i].frame };
    work[i].frame.out = again[i].image;
    work[i].frame.instance = instance;
  }
  for (int i = 0; i < N_THREADS; i++)
    if (pthread_create (&threads[i], NULL, process_often, &work[i]) != 0)
      check_fail ("no thread");
  for (int i = 0; i < N_THREADS; i++)
    pthread_join (threads[i], NULL);
  for (int i = 0; i < N_THREADS; i++) {
    if (memcmp (again[i].memory, self.steps[i].out.memory, again[i].size) != 0)
      fail (&self, &self.steps[i], "another result among other threads");
    picture_finish (&again[i]);
  }
  close_kernel (&self, instance);
  sequence_finish (&self);
}
