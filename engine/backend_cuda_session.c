/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The CUDA backend's work on frames: one non-blocking stream a slot, on which upload, kernel and download
 * of a frame follow one another.  Knows no pixels. */
#include <assert.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backend_cuda_session.h"
#include "clock.h"

#define FIRST_REGIONS 64u

/* A frame of 1080p is through in less: looking again at once costs less than the 60 us and more that a
 * sleeping thread needs to come back, so that the next frame starts in time. */
#define POLL_NS 250000u
/* After that a sleep is a part of the wait so far, so that the end is seen late by no more than that part. */
#define SLEEP_PART 10u
#define LAST_SLEEP_NS 400000u

/* ---- session ----------------------------------------------------------------------------------- */

static void
free_slot (const cuda_driver *cu, cuda_slot *slot)
{
  if (slot->stream != NULL)
    cu->StreamDestroy (slot->stream);
  if (slot->done != NULL)
    cu->EventDestroy (slot->done);
  if (slot->fence != NULL)
    cu->EventDestroy (slot->fence);
  for (int m = 0; m < N_MARKS; m++)
    if (slot->marks[m] != NULL)
      cu->EventDestroy (slot->marks[m]);
  if (slot->kernel_done != NULL)
    cu->EventDestroy (slot->kernel_done);
  cuda_records_close_slot (cu, slot);
  if (slot->in != 0)
    cu->MemFree (slot->in);
  if (slot->workspace != 0)
    cu->MemFree (slot->workspace);
  if (slot->regions != 0)
    cu->MemFree (slot->regions);
  if (slot->out != 0)
    cu->MemFree (slot->out);
}

void
cuda_session_close (csf_session *base)
{
  cuda_session *session = (cuda_session *) base;
  const cuda_driver *cu = session->device->cu;

  /* A dead context refuses to be entered, and has nothing left to free. */
  if (cuda_enter (session->device, NULL, CSF_STAGE_CLOSE, CSF_NO_FRAME) == CSF_OK) {
    for (unsigned i = 0; i < session->n_slots; i++)
      free_slot (cu, &session->slots[i]);
    cuda_records_close (session);
    for (int i = 0; i < 2; i++)
      if (session->run_base[i] != NULL)
        cu->EventDestroy (session->run_base[i]);
    if (session->is_open && session->kernel->close != NULL)
      session->kernel->close (session->instance);
    if (session->state != 0)
      cu->MemFree (session->state);
    if (session->module != NULL)
      cu->ModuleUnload (session->module);
    cuda_leave (session->device);
  }
  csf_hostblock_unref (session->host_counts);
  pthread_mutex_destroy (&session->lock);
  free (session);
}

static csf_status
load_module (cuda_session *session, csf_error *error)
{
  const csfk_kernel *kernel = session->kernel;
  char origin[96];

  if (kernel->device_code == NULL)
    return CSF_OK;
  if (kernel->device_code->size == 0)
    return csf_error_set (error, CSF_ERROR_UNSUPPORTED, CSF_STAGE_OPEN, CSF_NO_FRAME, 0,
        "this build has no GPU code for kernel \"%s\"; build with nvcc on the PATH, or use the CPU",
        kernel->name);
  snprintf (origin, sizeof origin, "kernel \"%s\"", kernel->name);
  return cuda_module_load (session->device, kernel->device_code, origin, &session->module, error);
}

/* What the kernel itself has beyond its code. */
static csf_status
open_kernel (cuda_session *session, csf_error *error)
{
  const csfk_kernel *kernel = session->kernel;
  char reason[256] = "";

  if (kernel->enqueue == NULL)
    return csf_error_set (error, CSF_ERROR_UNSUPPORTED, CSF_STAGE_OPEN, CSF_NO_FRAME, 0,
        "kernel \"%s\" has no CUDA function; run it with backend=cpu", kernel->name);
  if (kernel->open == NULL)
    return CSF_OK;
  if (kernel->open (kernel, &session->in.image, &session->out.image, &session->instance, reason,
          sizeof reason) != 0)
    return csf_error_set (error, CSF_ERROR_UNSUPPORTED, CSF_STAGE_OPEN, CSF_NO_FRAME, 0,
        "kernel \"%s\" could not be opened: %s", kernel->name, csf_reason (reason, sizeof reason));
  session->is_open = true;
  return CSF_OK;
}

static csf_status
alloc_device (cuda_session *session, cu_deviceptr *memory, size_t size, csf_error *error)
{
  const cuda_driver *cu = session->device->cu;
  cu_result code = cu->MemAlloc (memory, size);

  if (code == CU_ERROR_OUT_OF_MEMORY) {
    size_t free_bytes = 0, total = 0;

    cu->MemGetInfo (&free_bytes, &total);
    return csf_error_set (error, CSF_ERROR_MEMORY, CSF_STAGE_OPEN, CSF_NO_FRAME, code,
        "expected %.1f MiB of GPU memory for %u streams, %.1f MiB were free on \"%s\"; lower "
        "num-streams or free memory",
        ((double) session->slot_bytes * session->n_slots + (double) session->state_size) / 1048576.0,
        session->n_slots, (double) free_bytes / 1048576.0, session->device->base.info.name);
  }
  if (code != CU_SUCCESS)
    return cuda_error (cu, error, CSF_STAGE_OPEN, CSF_NO_FRAME, code, "cuMemAlloc");
  atomic_fetch_add (&session->device_bytes, size);
  return CSF_OK;
}

static csf_status
open_slot (cuda_session *session, cuda_slot *slot, const csf_config *config, csf_error *error)
{
  const cuda_driver *cu = session->device->cu;
  csf_status status = CSF_OK;

  if (!config->in_on_device)
    status = alloc_device (session, &slot->in, session->in.size, error);
  if (status == CSF_OK && !config->out_on_device)
    status = alloc_device (session, &slot->out, session->out.size, error);
  if (status == CSF_OK && session->workspace_size > 0)
    status = alloc_device (session, &slot->workspace, session->workspace_size, error);
  if (status == CSF_OK && (session->kernel->flags & CSFK_READS_REGIONS) != 0) {
    slot->region_room = FIRST_REGIONS;
    status = alloc_device (session, &slot->regions, FIRST_REGIONS * sizeof (csfk_region), error);
  }
  if (status != CSF_OK)
    return status;
  CU (CSF_STAGE_OPEN, CSF_NO_FRAME, StreamCreate, &slot->stream, CU_STREAM_NON_BLOCKING);
  CU (CSF_STAGE_OPEN, CSF_NO_FRAME, EventCreate, &slot->done, CU_EVENT_DISABLE_TIMING);
  CU (CSF_STAGE_OPEN, CSF_NO_FRAME, EventCreate, &slot->fence, CU_EVENT_DISABLE_TIMING);
  if (session->state_size > 0)
    CU (CSF_STAGE_OPEN, CSF_NO_FRAME, EventCreate, &slot->kernel_done, CU_EVENT_DISABLE_TIMING);
  for (int m = 0; m < N_MARKS; m++)
    CU (CSF_STAGE_OPEN, CSF_NO_FRAME, EventCreate, &slot->marks[m], CU_EVENT_DEFAULT);
  if (session->counts != 0)
    status = cuda_records_open_slot (session, slot, error);
fail:
  return status;
}

csf_status
cuda_session_open (csf_device *base, const csf_config *config, csf_session **result,
    csf_error *error)
{
  cuda_device *device = (cuda_device *) base;
  const cuda_driver *cu = device->cu;
  cuda_session *session =
      calloc (1, sizeof *session + config->num_streams * sizeof (cuda_slot));
  csf_status status;

  if (session == NULL)
    return csf_error_set (error, CSF_ERROR_MEMORY, CSF_STAGE_OPEN, CSF_NO_FRAME, 0,
        "no memory left");
  session->device = device;
  session->kernel = config->kernel;
  session->metadata_memory = config->metadata_memory;
  pthread_mutex_init (&session->lock, NULL);
  session->in = config->in;
  session->out = config->out;
  session->n_slots = config->num_streams;
  session->state_size = csf_session_state_size (config);
  session->workspace_size = csf_session_workspace_size (config);
  session->slot_bytes = session->workspace_size + (config->in_on_device ? 0 : config->in.size)
      + (config->out_on_device ? 0 : config->out.size);
  status = cuda_enter (device, error, CSF_STAGE_OPEN, CSF_NO_FRAME);
  if (status != CSF_OK) {
    pthread_mutex_destroy (&session->lock);
    free (session);
    return status;
  }
  status = open_kernel (session, error);
  if (status == CSF_OK)
    status = load_module (session, error);
  if (status == CSF_OK && session->state_size > 0)
    status = alloc_device (session, &session->state, session->state_size, error);
  if (status == CSF_OK && session->kernel->record_size > 0)
    status = cuda_records_open (session, config->hostpool, error);
  if (status != CSF_OK)
    goto fail;
  for (int i = 0; i < 2; i++)
    CU (CSF_STAGE_OPEN, CSF_NO_FRAME, EventCreate, &session->run_base[i], CU_EVENT_DEFAULT);
  for (unsigned i = 0; i < session->n_slots; i++) {
    status = open_slot (session, &session->slots[i], config, error);
    if (status != CSF_OK)
      goto fail;
  }
  cuda_leave (device);
  *result = &session->base;
  return CSF_OK;

fail:
  cuda_leave (device);
  cuda_session_close (&session->base);
  return status;
}

/* ---- a frame ----------------------------------------------------------------------------------- */

typedef enum direction
{
  TO_DEVICE,
  TO_HOST
} direction;

/* True when the host picture lies as the device memory does, so that one copy moves all planes.  What
 * lies between the rows is read on the way up, and never written on the way down. */
static bool
is_one_block (const csfk_image *host, const csf_layout *layout, direction way)
{
  for (int p = 0; p < host->n_planes; p++) {
    const csfk_plane *plane = &host->plane[p];
    const csfk_plane *device = &layout->image.plane[p];

    if (plane->stride != device->stride
        || (size_t) (plane->data - host->plane[0].data) != layout->offset[p] - layout->offset[0])
      return false;
    if (way == TO_HOST && plane->stride != plane->row_bytes)
      return false;
    if (p > 0) {
      size_t end = layout->offset[p - 1]
          + (size_t) layout->image.plane[p - 1].stride * (size_t) layout->image.plane[p - 1].rows;

      if (layout->offset[p] != end)
        return false;
    }
  }
  return true;
}

static csf_status
copy_planes (cuda_session *session, cuda_slot *slot, const csfk_image *host,
    const csf_layout *layout, cu_deviceptr memory, direction way, csf_error *error)
{
  const cuda_driver *cu = session->device->cu;
  csf_stage stage = way == TO_DEVICE ? CSF_STAGE_UPLOAD : CSF_STAGE_DOWNLOAD;
  csf_status status = CSF_OK;

  if (is_one_block (host, layout, way)) {
    int last = host->n_planes - 1;
    const csfk_plane *plane = &layout->image.plane[last];
    size_t bytes = layout->offset[last] - layout->offset[0]
        + (size_t) (plane->rows - 1) * (size_t) plane->stride + (size_t) plane->row_bytes;

    if (way == TO_DEVICE)
      CU (stage, slot->frame, MemcpyHtoDAsync, memory + layout->offset[0], host->plane[0].data,
          bytes, slot->stream);
    else
      CU (stage, slot->frame, MemcpyDtoHAsync, host->plane[0].data, memory + layout->offset[0],
          bytes, slot->stream);
    return CSF_OK;
  }
  for (int p = 0; p < host->n_planes; p++) {
    const csfk_plane *plane = &host->plane[p];
    cu_memcpy_2d copy = {
      .width_bytes = (size_t) plane->row_bytes,
      .height = (size_t) plane->rows,
    };

    if (way == TO_DEVICE) {
      copy.src_type = CU_MEMORYTYPE_HOST;
      copy.src_host = plane->data;
      copy.src_pitch = (size_t) plane->stride;
      copy.dst_type = CU_MEMORYTYPE_DEVICE;
      copy.dst_device = memory + layout->offset[p];
      copy.dst_pitch = (size_t) layout->image.plane[p].stride;
    } else {
      copy.src_type = CU_MEMORYTYPE_DEVICE;
      copy.src_device = memory + layout->offset[p];
      copy.src_pitch = (size_t) layout->image.plane[p].stride;
      copy.dst_type = CU_MEMORYTYPE_HOST;
      copy.dst_host = plane->data;
      copy.dst_pitch = (size_t) plane->stride;
    }
    CU (stage, slot->frame, Memcpy2DAsync, &copy, slot->stream);
  }
fail:
  return status;
}

static cu_function
find_function_locked (cuda_session *session, const char *symbol, cu_result *code)
{
  cu_function function = NULL;

  for (unsigned i = 0; i < session->n_functions; i++)
    if (strcmp (session->functions[i].symbol, symbol) == 0)
      return session->functions[i].function;
  *code = session->device->cu->ModuleGetFunction (&function, session->module, symbol);
  if (*code == CU_SUCCESS && session->n_functions < MAX_FUNCTIONS) {
    session->functions[session->n_functions].symbol = symbol;
    session->functions[session->n_functions].function = function;
    session->n_functions++;
  }
  return function;
}

static int
launch (csfk_launcher *base, const char *symbol, csfk_dim grid, csfk_dim block,
    unsigned shared_bytes, const void *args, unsigned args_size)
{
  launcher *self = (launcher *) base;
  const cuda_driver *cu = self->session->device->cu;
  void *params[] = { (void *) args };
  cu_result code = CU_SUCCESS;
  cu_function function = NULL;

  if (self->session->module == NULL) {
    self->failed = true;
    csf_error_set (self->error, CSF_ERROR_ARGUMENT, CSF_STAGE_KERNEL, self->slot->frame, 0,
        "kernel \"%s\" launches %s, but its table entry has no device_code",
        self->session->kernel->name, symbol);
    return CU_ERROR_NOT_FOUND;
  }
  pthread_mutex_lock (&self->session->lock);
  function = find_function_locked (self->session, symbol, &code);
  pthread_mutex_unlock (&self->session->lock);
  if (code != CU_SUCCESS) {
    self->failed = true;
    cuda_error (cu, self->error, CSF_STAGE_KERNEL, self->slot->frame, code,
        "cuModuleGetFunction");
    return code;
  }
  code = cu->LaunchKernel (function, grid.x, grid.y, grid.z, block.x, block.y, block.z,
      shared_bytes, self->base.stream, params, NULL);
  if (code != CU_SUCCESS) {
    self->failed = true;
    cuda_error (cu, self->error, CSF_STAGE_KERNEL, self->slot->frame, code, "cuLaunchKernel");
  }
  return code;
}

/* The picture as the kernel sees it: in the slot's memory, or where the job has it. */
static csfk_image
on_device (const csf_layout *layout, cu_deviceptr memory, const csfk_image *job,
    csf_memory where)
{
  csfk_image image = layout->image;

  if (where == CSF_MEMORY_DEVICE)
    return *job;
  image.range = job->range;
  image.matrix = job->matrix;

  for (int p = 0; p < image.n_planes; p++)
    image.plane[p].data = (unsigned char *) (uintptr_t) (memory + layout->offset[p]);
  return image;
}

launcher
cuda_launcher (cuda_session *session, cuda_slot *slot, cu_stream stream, const csfk_region *regions,
    csf_error *error)
{
  return (launcher) {
    .base = {
      .launch = launch,
      .stream = stream,
      .regions = regions,
    },
    .session = session,
    .slot = slot,
    .error = error,
  };
}

csf_status
cuda_launched (launcher *self, int code)
{
  if (code != 0 && !self->failed)
    return csf_error_set (self->error, CSF_ERROR_DEVICE, CSF_STAGE_KERNEL, self->slot->frame, 0,
        "enqueue of kernel \"%s\" returned %d without a failed launch", self->session->kernel->name,
        code);
  return code == 0 ? CSF_OK : cuda_status (code);
}

static csf_status
run_kernel (cuda_session *session, cuda_slot *slot, const csf_job *job, csf_error *error)
{
  launcher self = cuda_launcher (session, slot, slot->stream, job->regions, error);
  const csfk_frame frame = {
    .in = on_device (&session->in, slot->in, &job->in, job->in_memory),
    .out = on_device (&session->out, slot->out, &job->out, job->out_memory),
    .state = (void *) (uintptr_t) session->state,
    .workspace = (void *) (uintptr_t) slot->workspace,
    .regions = job->n_regions > 0 ? (const csfk_region *) (uintptr_t) slot->regions : NULL,
    .n_regions = (int) job->n_regions,
    .state_frames = session->state_frames,
    .instance = session->instance,
  };
  csf_status status = cuda_launched (&self, session->kernel->enqueue (&frame, job->params,
          &self.base));

  if (status == CSF_OK && session->counts != 0) {
    slot->work = frame;
    slot->host_regions = job->regions;
    if (session->kernel->params_size > 0)
      memcpy (slot->params, job->params, session->kernel->params_size);
  }
  return status;
}

/* Twice the room that the regions need.  The slot is free: nothing reads the old ones any more. */
static csf_status
grow_regions (cuda_session *session, cuda_slot *slot, const csf_job *job, csf_error *error)
{
  const cuda_driver *cu = session->device->cu;
  const cu_deviceptr old = slot->regions;
  csf_status status = CSF_OK;

  atomic_fetch_sub (&session->device_bytes, slot->region_room * sizeof (csfk_region));
  slot->regions = 0;
  slot->region_room = 2 * job->n_regions;
  CU (CSF_STAGE_UPLOAD, job->frame, MemFree, old);
  status = alloc_device (session, &slot->regions, slot->region_room * sizeof (csfk_region), error);
  if (status == CSF_OK)
    atomic_fetch_add (&session->base.growths, 1);
fail:
  return status;
}

/* The frame's regions go up ahead of its picture. */
static csf_status
copy_regions (cuda_session *session, cuda_slot *slot, const csf_job *job, csf_error *error)
{
  const cuda_driver *cu = session->device->cu;
  const size_t bytes = job->n_regions * sizeof (csfk_region);
  csf_status status = CSF_OK;

  if (job->n_regions == 0)
    return CSF_OK;
  if (job->n_regions > slot->region_room)
    status = grow_regions (session, slot, job, error);
  if (status != CSF_OK)
    return status;
  CU (CSF_STAGE_UPLOAD, job->frame, MemcpyHtoDAsync, slot->regions, job->regions, bytes, slot->stream);
fail:
  return status;
}

/* A frame's kernel begins when the one before it has left the state as it found it. */
static csf_status
take_state (cuda_session *session, cuda_slot *slot, const csf_job *job, csf_error *error)
{
  const cuda_driver *cu = session->device->cu;
  csf_status status = CSF_OK;

  if (session->state == 0)
    return CSF_OK;
  if (session->last_kernel != NULL)
    CU (CSF_STAGE_KERNEL, job->frame, StreamWaitEvent, slot->stream, session->last_kernel, 0);
  if (job->reset_state)
    session->state_frames = 0;
  if (session->state_frames == 0)
    CU (CSF_STAGE_KERNEL, job->frame, MemsetD8Async, session->state, 0, session->state_size,
        slot->stream);
fail:
  return status;
}

static csf_status
leave_state (cuda_session *session, cuda_slot *slot, const csf_job *job, csf_error *error)
{
  const cuda_driver *cu = session->device->cu;
  csf_status status = CSF_OK;

  if (session->state == 0)
    return CSF_OK;
  CU (CSF_STAGE_KERNEL, job->frame, EventRecord, slot->kernel_done, slot->stream);
  session->last_kernel = slot->kernel_done;
  session->state_frames = csf_next_state_frames (session->state_frames);
fail:
  return status;
}

static csf_status
enqueue (cuda_session *session, cuda_slot *slot, const csf_job *job, csf_error *error)
{
  const cuda_driver *cu = session->device->cu;
  csf_status status = CSF_OK;

  /* One event will do: a stream waits for what it marked when it was told to. */
  for (unsigned i = 0; i < job->n_fences; i++) {
    CU (CSF_STAGE_UPLOAD, job->frame, EventRecord, slot->fence, job->fences[i]);
    CU (CSF_STAGE_UPLOAD, job->frame, StreamWaitEvent, slot->stream, slot->fence, 0);
  }
  if (slot->run.first) {
    CU (CSF_STAGE_UPLOAD, job->frame, EventRecord, session->run_base[slot->run.number % 2],
        slot->stream);
    session->run_instant_ns[slot->run.number % 2] = csf_now_ns ();
  }
  if (slot->run.number != 0)
    CU (CSF_STAGE_UPLOAD, job->frame, EventRecord, slot->marks[MARK_START], slot->stream);
  if (session->counts != 0)
    status = cuda_records_clear (session, slot, error);
  if (status == CSF_OK)
    status = copy_regions (session, slot, job, error);
  if (status == CSF_OK && job->in_memory == CSF_MEMORY_HOST)
    status = copy_planes (session, slot, &job->in, &session->in, slot->in, TO_DEVICE, error);
  if (status != CSF_OK)
    return status;
  if (slot->run.number != 0)
    CU (CSF_STAGE_UPLOAD, job->frame, EventRecord, slot->marks[MARK_UPLOAD], slot->stream);
  status = take_state (session, slot, job, error);
  if (status == CSF_OK)
    status = run_kernel (session, slot, job, error);
  if (status == CSF_OK)
    status = leave_state (session, slot, job, error);
  if (status != CSF_OK)
    return status;
  if (slot->run.number != 0)
    CU (CSF_STAGE_KERNEL, job->frame, EventRecord, slot->marks[MARK_KERNEL], slot->stream);
  if (session->counts != 0)
    status = cuda_records_append (session, slot, error);
  if (status == CSF_OK && job->out_memory == CSF_MEMORY_HOST)
    status = copy_planes (session, slot, &job->out, &session->out, slot->out, TO_HOST, error);
  if (status == CSF_OK && session->counts != 0 && slot->run.number != 0)
    CU (CSF_STAGE_DOWNLOAD, job->frame, EventRecord, slot->marks[MARK_PICTURE], slot->stream);
  if (status == CSF_OK && session->counts != 0)
    status = cuda_records_await (session, slot, error);
  if (status == CSF_OK && session->counts != 0)
    status = cuda_records_bring (session, slot, slot->stream, error);
  if (status != CSF_OK)
    return status;
  slot->end = slot->run.number != 0 ? slot->marks[MARK_DOWNLOAD] : slot->done;
  CU (CSF_STAGE_DOWNLOAD, job->frame, EventRecord, slot->end, slot->stream);
  slot->recorded = true;
fail:
  return status;
}

csf_status
cuda_start (csf_session *base, unsigned index, const csf_job *job, const csf_record_buffer *records,
    csf_run run, csf_error *error)
{
  cuda_session *session = (cuda_session *) base;
  cuda_slot *slot = &session->slots[index];
  csf_status status = cuda_enter (session->device, error, CSF_STAGE_UPLOAD, job->frame);

  slot->frame = job->frame;
  if (records != NULL)
    slot->records = *records;
  slot->recorded = false;
  slot->run = run;
  if (status != CSF_OK)
    return status;
  status = enqueue (session, slot, job, error);
  cuda_leave (session->device);
  return status;
}

static void
pause_briefly (void)
{
#if defined (__x86_64__) || defined (__i386__)
  for (int i = 0; i < 16; i++)
    __builtin_ia32_pause ();
#else
  sched_yield ();
#endif
}

/* CU_SUCCESS when nothing of the slot's job runs any more. */
static cu_result
ask (const cuda_driver *cu, const cuda_slot *slot)
{
  cu_result code = slot->recorded ? cu->EventQuery (slot->end) : cu->StreamQuery (slot->stream);

  if (code != CU_SUCCESS || slot->recorded || slot->records_stream == NULL)
    return code;
  return cu->StreamQuery (slot->records_stream);
}

/* Waits for nothing that could keep it: the driver's own waits cannot be woken. */
csf_status
cuda_wait (csf_session *base, unsigned index, uint64_t timeout_ns, csf_error *error)
{
  cuda_session *session = (cuda_session *) base;
  cuda_slot *slot = &session->slots[index];
  const cuda_driver *cu = session->device->cu;
  csf_status status = cuda_enter (session->device, error, CSF_STAGE_WAIT, slot->frame);
  uint64_t begin = csf_now_ns ();

  if (status != CSF_OK)
    return status;
  for (;;) {
    cu_result code = ask (cu, slot);
    uint64_t waited;

    if (code == CU_SUCCESS)
      break;
    if (code != CU_ERROR_NOT_READY) {
      status = cuda_error (cu, error, CSF_STAGE_WAIT, slot->frame, code,
          slot->recorded ? "cuEventQuery" : "cuStreamQuery");
      break;
    }
    waited = csf_now_ns () - begin;
    if (waited >= timeout_ns) {
      status = CSF_AGAIN;
      break;
    }
    if (waited < POLL_NS) {
      pause_briefly ();
    } else {
      uint64_t part = waited / SLEEP_PART;
      struct timespec step = {.tv_nsec = (long) (part < LAST_SLEEP_NS ? part : LAST_SLEEP_NS) };

      clock_nanosleep (CLOCK_MONOTONIC, 0, &step, NULL);
    }
  }
  cuda_leave (session->device);
  return status;
}

/* Nanoseconds from one event to another; false when the driver does not say. */
static bool
elapsed (const cuda_driver *cu, cu_event from, cu_event to, double *ns)
{
  float milliseconds = 0;

  if (cu->EventElapsedTime (&milliseconds, from, to) != CU_SUCCESS)
    return false;
  *ns = (double) milliseconds * 1e6;
  return true;
}

void
cuda_get_times (csf_session *base, unsigned index, csf_times *times)
{
  cuda_session *session = (cuda_session *) base;
  cuda_slot *slot = &session->slots[index];
  const cuda_driver *cu = session->device->cu;
  const unsigned turn = slot->run.number % 2;
  const cu_event instant = session->run_base[turn];

  if (slot->run.number == 0
      || cuda_enter (session->device, NULL, CSF_STAGE_WAIT, slot->frame) != CSF_OK)
    return;
  times->run = slot->run.number;
  times->instant_ns = session->run_instant_ns[turn];
  times->valid = elapsed (cu, instant, slot->marks[MARK_START], &times->start)
      && elapsed (cu, instant, slot->marks[MARK_UPLOAD], &times->end[CSF_PART_UPLOAD])
      && elapsed (cu, instant, slot->marks[MARK_KERNEL], &times->end[CSF_PART_KERNEL])
      /* Waiting for the pass that appends is no download. */
      && elapsed (cu, instant, slot->marks[session->counts != 0 ? MARK_PICTURE : MARK_DOWNLOAD],
          &times->end[CSF_PART_DOWNLOAD]);
  times->end[CSF_PART_RECORDS] = times->end[CSF_PART_KERNEL];
  if (session->counts != 0)
    times->valid &= elapsed (cu, instant, slot->marks[MARK_RECORDS], &times->end[CSF_PART_RECORDS]);
  if (slot->run.first && slot->run.follows)
    times->valid &= elapsed (cu, session->run_base[1 - turn], instant, &times->since_run);
  cuda_leave (session->device);
}

uint64_t
cuda_get_device_bytes (csf_session *base)
{
  return atomic_load (&((cuda_session *) base)->device_bytes);
}
