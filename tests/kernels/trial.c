/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A trial: a kernel on a sequence of random frames, the C path beside the model, with canaries round all
 * that may be written and garbage in all that is undefined.  Knows the kernels' contract. */
#include "trial.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum
{
  /* Up to this many samples of a component are all compared with the model, of more a random
   * choice. */
  ALL_SAMPLES = 2048,
  CHOSEN_SAMPLES = 200,
  N_THREADS = 4,
  THREAD_ROUNDS = 20
};

/* Pairs of input and output alignment. */
static const int alignments[TRIAL_ALIGNMENTS][2] = { {16, 16}, {1, 1}, {8, 16}, {16, 4}, {2, 1} };

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

void
trial_fail (const sequence *self, const step *at, const char *format, ...)
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
    records_finish (&at->records);
    free (at->regions);
  }
  block_finish (&self->state);
  free (self->params);
}

void *
trial_open_kernel (const sequence *self)
{
  const csfk_image in = image_strip (&self->steps[0].frame.in);
  const csfk_image out = image_strip (&self->steps[0].frame.out);
  char reason[256] = "";
  void *instance = NULL;

  if (self->kernel->open
      && self->kernel->open (self->kernel, &in, &out, &instance, reason, sizeof reason) != 0)
    trial_fail (self, &self->steps[0], "open() failed: %s", reason);
  return instance;
}

void
trial_close_kernel (const sequence *self, void *instance)
{
  if (self->kernel->close)
    self->kernel->close (instance);
}

/* ---- against the model ----------------------------------------------------------------------- */

bool
trial_is_near (const csfk_image *image, int got, int expected, int tolerance)
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

  if (!trial_is_near (&at->out.image, got, expected, model->model_tolerance))
    trial_fail (self, at, "plane %d offset %d at %d,%d is %d, the model says %d, give or take %d",
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

void
trial_check_untouched (const sequence *self, const step *at, const char *who, const canvas *in,
    const canvas *out)
{
  if (memcmp (in->memory, at->in_before.memory, in->size) != 0)
    trial_fail (self, at, "%s wrote to its input", who);
  if (!picture_same_outside (&at->out_before, out))
    trial_fail (self, at, "%s wrote beside a row of its output", who);
}

static void
run_process (const sequence *self, const step *at, const csfk_frame *frame)
{
  size_t regions_size = (size_t) frame->n_regions * sizeof *frame->regions;

  self->kernel->process (frame, self->params);
  if (regions_size > 0 && memcmp (frame->regions, at->regions_before, regions_size) != 0)
    trial_fail (self, at, "the C path wrote to its regions");
  if (self->kernel->params_size > 0
      && memcmp (self->params, self->trial->params, self->kernel->params_size) != 0)
    trial_fail (self, at, "the C path wrote to its parameters");
  if (!block_is_intact (&self->state, self->state.memory))
    trial_fail (self, at, "the C path wrote beside its state");
  if (!block_is_intact (&at->workspace, at->workspace.memory))
    trial_fail (self, at, "the C path wrote beside its workspace");
}

/* One pass that appends, into room for `capacity`; its state is anybody's.  expected: how many there must be,
 * or NULL.  Returns what was stored. */
static record_set
collect_once (const sequence *self, const step *at, const csfk_frame *frame, unsigned capacity,
    const unsigned *expected)
{
  guarded_block state;
  record_room room;
  record_set stored;
  csfk_frame shown = *frame;
  unsigned count = 0;
  const char *fault;

  block_init (&state, self->state.size);
  room_init (&room, self->kernel, capacity);
  shown.state = state.data;
  shown.records = (csfk_records) {
    .data = room.block.data,.count = &count,.capacity = capacity,
    .record_size = self->kernel->record_size
  };
  self->kernel->collect (&shown, self->params);
  fault = room_check (&room, room.block.memory, count, expected ? *expected : count);
  if (fault)
    trial_fail (self, at, "with room for %u records the C path %s (%u)", capacity, fault, count);
  records_init (&stored, self->kernel->record_size, room.block.data,
      count < capacity ? count : capacity);
  if (!expected && count > capacity) {
    records_finish (&stored);
    stored = collect_once (self, at, frame, count, &count);
  }
  room_finish (&room);
  block_finish (&state);
  return stored;
}

/* The pass that appends, with little room and with enough, into `all`.  out: the frame's output. */
static void
run_collect (const sequence *self, const step *at, const csfk_frame *frame, const canvas *out,
    record_set *all)
{
  record_set some;
  canvas out_before;
  char why[256];

  *all = (record_set) {.data = NULL };
  if (self->kernel->record_size == 0)
    return;
  picture_copy (&out_before, out);
  *all = collect_once (self, at, frame, (unsigned) check_random_in (0, 2), NULL);
  /* Too little for all. */
  if (all->n > 0) {
    some = collect_once (self, at, frame, (unsigned) check_random_in (0, (int) all->n - 1), &all->n);
    if (!records_are_among (&some, all, why, sizeof why))
      trial_fail (self, at, "with little room the C path has a record that is none:%s", why);
    records_finish (&some);
  }
  some = collect_once (self, at, frame, all->n + (unsigned) check_random_in (0, 3), &all->n);
  if (!records_are_same (&some, all, why, sizeof why))
    trial_fail (self, at, "when it appends once more, the C path has %s", why);
  records_finish (&some);
  if (memcmp (out_before.memory, out->memory, out->size) != 0)
    trial_fail (self, at, "the pass that appends wrote to the output");
  picture_finish (&out_before);
}

static void
compare_records_with_model (const sequence *self, const step *at, void *memory, tally *totals)
{
  const kernel_model *model = self->trial->model;
  const unsigned size = self->kernel->record_size;
  csfk_frame shown = at->frame;
  record_set expected;
  unsigned char *room;
  unsigned n, again;
  char why[256];

  if (size == 0)
    return;
  shown.out = image_strip (&shown.out);
  shown.state = shown.workspace = NULL;
  n = at->records.n;
  for (;;) {
    room = malloc ((size_t) n * size + 1);
    if (!room)
      check_fail ("out of memory");
    again = model->records (&shown, self->params, memory, room, n);
    if (again <= n)
      break;
    free (room);
    n = again;
  }
  records_init (&expected, size, room, again);
  if (!records_are_same (&at->records, &expected, why, sizeof why))
    trial_fail (self, at, "the C path has %s", why);
  totals->records += at->records.n;
  records_finish (&expected);
  free (room);
}

/* The same frame with the same state again, and other garbage where there may be garbage: what is
 * undefined comes out different.  The state is left as the first run made it. */
static void
check_defined (sequence *self, step *at, void *state_before)
{
  csfk_frame frame = at->frame;
  void *state_after = NULL;
  record_set records;
  canvas again;
  char why[256];

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
        trial_fail (self, at, "row %d of plane %d depends on what was in the output or the workspace", y,
            i);
  }
  run_collect (self, at, &frame, &again, &records);
  if (!records_are_same (&records, &at->records, why, sizeof why))
    trial_fail (self, at, "the records depend on what was in memory: %s", why);
  records_finish (&records);
  picture_finish (&again);
  if (self->state.size > 0)
    memcpy (self->state.data, state_after, self->state.size);
  free (state_after);
}

static void
run_on_cpu (sequence *self, bool with_model, tally *totals)
{
  void *instance = trial_open_kernel (self), *memory = NULL, *state_before = NULL;

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
    run_collect (self, at, &at->frame, &at->out, &at->records);
    trial_check_untouched (self, at, "the C path", &at->in, &at->out);
    if (!block_is_intact (&at->workspace, at->workspace.memory))
      trial_fail (self, at, "the pass that appends wrote beside its workspace");
    if (with_model) {
      check_defined (self, at, state_before);
      compare_with_model (self, at, &memory, totals);
      compare_records_with_model (self, at, memory, totals);
    }
    totals->frames++;
  }
  free (memory);
  free (state_before);
  trial_close_kernel (self, instance);
}

void
trial_run (gpu *device, const kernel_trial *trial, tally *totals)
{
  static sequence self;

  sequence_init (&self, trial);
  run_on_cpu (&self, !device, totals);
  if (device)
    trial_run_on_device (device, &self, totals);
  sequence_finish (&self);
}

/* ---- several threads ------------------------------------------------------------------------- */

typedef struct thread_work
{
  const csfk_kernel *kernel;
  const void *params;
  csfk_frame frame;
  record_room room;
  unsigned count;
} thread_work;

static void *
process_often (void *data)
{
  thread_work *work = data;

  for (int i = 0; i < THREAD_ROUNDS; i++) {
    work->kernel->process (&work->frame, work->params);
    work->count = 0;
    if (work->kernel->record_size > 0)
      work->kernel->collect (&work->frame, work->params);
  }
  return NULL;
}

static void
check_thread_records (const sequence *self, const step *at, thread_work *work)
{
  record_set got;
  char why[256];

  if (self->kernel->record_size == 0)
    return;
  records_init (&got, work->room.record_size, work->room.block.data,
      work->count < work->room.capacity ? work->count : work->room.capacity);
  if (!records_are_same (&got, &at->records, why, sizeof why))
    trial_fail (self, at, "among other threads it has %s", why);
  records_finish (&got);
  room_finish (&work->room);
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
  tally unused = { 0, 0, 0, 0 };
  void *instance;

  /* As many frames as threads, of which a kernel without state sees each for itself. */
  model.n_frames = N_THREADS;
  many.model = &model;
  sequence_init (&self, &many);
  run_on_cpu (&self, false, &unused);
  instance = trial_open_kernel (&self);
  for (int i = 0; i < N_THREADS; i++) {
    picture_copy (&again[i], &self.steps[i].out_before);
    work[i] = (thread_work) {.kernel = self.kernel,.params = self.params,
      .frame = self.steps[i].frame };
    work[i].frame.out = again[i].image;
    work[i].frame.instance = instance;
    if (self.kernel->record_size > 0) {
      room_init (&work[i].room, self.kernel, self.steps[i].records.n);
      work[i].frame.records = (csfk_records) {
        .data = work[i].room.block.data,.count = &work[i].count,
        .capacity = work[i].room.capacity,.record_size = self.kernel->record_size
      };
    }
  }
  for (int i = 0; i < N_THREADS; i++)
    if (pthread_create (&threads[i], NULL, process_often, &work[i]) != 0)
      check_fail ("no thread");
  for (int i = 0; i < N_THREADS; i++)
    pthread_join (threads[i], NULL);
  for (int i = 0; i < N_THREADS; i++) {
    if (memcmp (again[i].memory, self.steps[i].out.memory, again[i].size) != 0)
      trial_fail (&self, &self.steps[i], "another result among other threads");
    check_thread_records (&self, &self.steps[i], &work[i]);
    picture_finish (&again[i]);
  }
  trial_close_kernel (&self, instance);
  sequence_finish (&self);
}
