/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The second half of a trial: the GPU on the frames that the C path has worked on, and every byte of what it
 * may write beside the C path's.  Knows the kernels' contract and the device. */
#include "trial.h"

#include <stdlib.h>
#include <string.h>

/* A pass that appends: right after the kernel with too little room, and again after all frames of the
 * sequence with enough. */
typedef struct device_pass
{
  record_room room;
  cu_deviceptr memory, count;
} device_pass;

enum
{
  N_PASSES = 2
};

/* A step's memory on the device, each 0 where there is none. */
typedef struct device_step
{
  cu_deviceptr in, out, workspace, regions;
  device_pass passes[N_PASSES];
  csfk_frame frame;             /* as the device is given it */
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
upload_passes (gpu *device, const csfk_kernel *kernel, const step *at, device_step *there)
{
  const unsigned n = at->records.n;

  for (int i = 0; i < N_PASSES && kernel->record_size > 0; i++) {
    device_pass *pass = &there->passes[i];

    room_init (&pass->room, kernel, i > 0 ? n + (unsigned) check_random_in (0, 3)
        : n > 1 ? (unsigned) check_random_in (1, (int) n - 1) : 1);
    pass->memory = upload_new (device, pass->room.block.memory, pass->room.block.memory_size);
    pass->count = device_alloc (device, sizeof (unsigned));
  }
}

/* On the stream in use. */
static void
enqueue_pass (gpu *device, const sequence *self, const step *at, const device_step *there, int number)
{
  const device_pass *pass = &there->passes[number];
  csfk_frame frame = there->frame;

  frame.records = (csfk_records) {
    .data = inside (pass->memory),.count = (unsigned *) (uintptr_t) pass->count,
    .capacity = pass->room.capacity,.record_size = pass->room.record_size
  };
  device_emit (device, self->kernel, &frame, self->params, at->regions);
}

static void
check_device_pass (gpu *device, const sequence *self, const step *at, const device_pass *pass)
{
  const record_room *room = &pass->room;
  unsigned char *after = malloc (room->block.memory_size);
  record_set got;
  unsigned count;
  const char *fault;
  char why[256];

  if (!after)
    check_fail ("out of memory");
  device_download (device, after, pass->memory, room->block.memory_size);
  device_download (device, &count, pass->count, sizeof count);
  fault = room_check (room, after, count, count);
  if (fault)
    trial_fail (self, at, "with room for %u records the GPU %s (%u)", room->capacity, fault, count);
  records_init (&got, room->record_size, after + GUARD_BYTES,
      count < room->capacity ? count : room->capacity);
  if (!records_are_among (&got, &at->records, why, sizeof why))
    trial_fail (self, at, "with room for %u records the GPU has one that the CPU has not:%s",
        room->capacity, why);
  if (count <= room->capacity && !records_are_same (&got, &at->records, why, sizeof why))
    trial_fail (self, at, "the GPU has %s", why);
  if (count != at->records.n)
    trial_fail (self, at, "the GPU counts %u records, the CPU %u", count, at->records.n);
  records_finish (&got);
  free (after);
}

static void
free_passes (gpu *device, device_step *there)
{
  for (int i = 0; i < N_PASSES && there->passes[i].memory; i++) {
    device_free (device, there->passes[i].memory);
    device_free (device, there->passes[i].count);
    room_finish (&there->passes[i].room);
  }
}

static void
upload_step (gpu *device, const csfk_kernel *kernel, step *at, device_step *there)
{
  size_t regions_size = (size_t) at->frame.n_regions * sizeof *at->regions;

  block_randomise (&at->workspace);
  there->in = upload_new (device, at->in.memory, at->in.size);
  there->out = upload_new (device, at->out_before.memory, at->out_before.size);
  there->workspace = upload_new (device, at->workspace.memory,
      at->workspace.size > 0 ? at->workspace.memory_size : 0);
  there->regions = upload_new (device, at->regions, regions_size);
  upload_passes (device, kernel, at, there);
}

/* Gives the frames to the streams in turn, without a wait on the host between them; with state each
 * kernel waits for the one before. */
static void
enqueue_steps (gpu *device, const sequence *self, device_step *there, cu_deviceptr state,
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
    there[i].frame = moved;
    if (self->kernel->record_size > 0)
      enqueue_pass (device, self, at, &there[i], 0);
  }
  device_finish (device);
  for (int i = 0; i < self->n_steps && self->kernel->record_size > 0; i++) {
    device_use_stream (device, i % DEVICE_STREAMS);
    enqueue_pass (device, self, &self->steps[i], &there[i], 1);
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

        if (!trial_is_near (&expected->image, a, b, tolerance))
          trial_fail (self, at, "plane %d offset %d at %d,%d: the GPU's is %d, the CPU's %d, tolerance %d",
              components[i].plane, components[i].offset, x, y, a, b, tolerance);
      }
  if (tolerance == 0)
    trial_fail (self, at, "the GPU's memory is not the CPU's, though every sample is");
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
    trial_fail (self, at, "the GPU wrote beside its %s", name);
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
  trial_check_untouched (self, at, "the GPU", &in_after, &out_after);
  compare_pictures (self, at, &out_after);
  check_device_block (device, self, at, &at->workspace, there->workspace, "workspace");
  for (int i = 0; i < N_PASSES && self->kernel->record_size > 0; i++)
    check_device_pass (device, self, at, &there->passes[i]);
  if (regions_size > 0) {
    device_download (device, regions_after, there->regions, regions_size);
    if (memcmp (regions_after, at->regions_before, regions_size) != 0)
      trial_fail (self, at, "the GPU wrote to its regions");
  }
  picture_finish (&in_after);
  picture_finish (&out_after);
}

void
trial_run_on_device (gpu *device, sequence *self, tally *totals)
{
  void *instance = trial_open_kernel (self);
  void *zeros = self->state.size > 0 ? calloc (1, self->state.size) : NULL;
  static device_step there[MAX_FRAMES];
  cu_deviceptr state = upload_new (device, self->state.memory,
      self->state.size > 0 ? self->state.memory_size : 0);

  memset (there, 0, sizeof there);
  if (self->state.size > 0 && !zeros)
    check_fail ("out of memory");
  for (int i = 0; i < self->n_steps; i++)
    upload_step (device, self->kernel, &self->steps[i], &there[i]);
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
    free_passes (device, &there[i]);
  }
  if (state)
    device_free (device, state);
  free (zeros);
  trial_close_kernel (self, instance);
}
