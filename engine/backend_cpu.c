/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The CPU backend: one worker thread a slot runs the kernel's C function.  Device memory is host
 * memory, so nothing is copied: kernels read the job's input and write its output where they are. */
#include "backend.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"

#define MEMORY_ALIGN 256        /* what device memory has as well */

typedef struct cpu_slot
{
  /* submit thread writes, worker reads, under the lock until running */
  csf_job job;
  unsigned char params[CSFK_MAX_PARAMS] __attribute__ ((aligned (16)));
  void *workspace;              /* written when the session opens */
  csf_record_buffer records;    /* as job */
  bool collects_only;           /* likewise: the pass that appends runs once more */
  unsigned count;               /* worker writes, retire thread reads when it has run */
  unsigned state_frames;        /* worker: what process() was told, for the pass that appends */
  /* under the lock */
  bool pending, running;
  bool timed;
  uint64_t run, begin_ns, end_ns;
} cpu_slot;

typedef struct cpu_session
{
  csf_session base;
  const csfk_kernel *kernel;
  void *instance;               /* what the kernel's open made */
  bool is_open;
  void *state;                  /* NULL: stateless; else one worker at a time works, and that one has it */
  size_t state_size;
  unsigned state_frames;        /* likewise */
  unsigned n_slots, n_threads;
  pthread_mutex_t lock;
  pthread_cond_t work, done;
  bool stopping;                /* under the lock */
  unsigned next;                /* slot the next worker looks at first, under the lock */
  uint64_t base_ns;
  pthread_t threads[CSF_MAX_STREAMS];
  cpu_slot slots[];
} cpu_session;

static bool
any_runs_locked (const cpu_session *session)
{
  for (unsigned i = 0; i < session->n_slots; i++)
    if (session->slots[i].running)
      return true;
  return false;
}

/* Slots are handed out in turn, so looking from the last one taken on finds the oldest. */
static cpu_slot *
take_pending_locked (cpu_session *session)
{
  /* The state goes from frame to frame. */
  if (session->state != NULL && any_runs_locked (session))
    return NULL;
  for (unsigned i = 0; i < session->n_slots; i++) {
    unsigned index = (session->next + i) % session->n_slots;
    cpu_slot *slot = &session->slots[index];

    if (slot->pending) {
      if (!slot->collects_only)
        session->next = (index + 1) % session->n_slots;
      slot->pending = false;
      slot->running = true;
      return slot;
    }
  }
  return NULL;
}

static void
process (cpu_session *session, cpu_slot *slot)
{
  const csf_job *job = &slot->job;
  csfk_frame frame = {
    .in = job->in,
    .out = job->out,
    .state = session->state,
    .workspace = slot->workspace,
    .regions = job->n_regions > 0 ? job->regions : NULL,
    .n_regions = (int) job->n_regions,
    .records = {
      .data = slot->records.host,
      .count = &slot->count,
      .capacity = slot->records.capacity,
      .record_size = session->kernel->record_size,
    },
    .instance = session->instance,
  };

  if (session->state != NULL && !slot->collects_only) {
    if (job->reset_state)
      session->state_frames = 0;
    if (session->state_frames == 0)
      memset (session->state, 0, session->state_size);
    slot->state_frames = session->state_frames;
    session->state_frames = csf_next_state_frames (session->state_frames);
  }
  frame.state_frames = session->state != NULL ? slot->state_frames : 0;
  if (!slot->collects_only)
    session->kernel->process (&frame, slot->params);
  slot->count = 0;
  if (session->kernel->record_size > 0)
    session->kernel->collect (&frame, slot->params);
}

static void *
work (void *argument)
{
  cpu_session *session = argument;

  pthread_mutex_lock (&session->lock);
  while (!session->stopping) {
    cpu_slot *slot = take_pending_locked (session);
    uint64_t begin, end;

    if (slot == NULL) {
      pthread_cond_wait (&session->work, &session->lock);
      continue;
    }
    pthread_mutex_unlock (&session->lock);
    begin = csf_now_ns ();
    process (session, slot);
    end = csf_now_ns ();
    pthread_mutex_lock (&session->lock);
    slot->begin_ns = begin;
    slot->end_ns = end;
    slot->running = false;
    pthread_cond_broadcast (&session->done);
    if (session->state != NULL)
      pthread_cond_signal (&session->work);
  }
  pthread_mutex_unlock (&session->lock);
  return NULL;
}

static unsigned
count_processors (void)
{
  cpu_set_t set;
  long online = sysconf (_SC_NPROCESSORS_ONLN);

  if (sched_getaffinity (0, sizeof set, &set) == 0 && CPU_COUNT (&set) > 0)
    online = CPU_COUNT (&set);
  if (online < 1)
    return 1;
  return online > CSF_MAX_STREAMS ? CSF_MAX_STREAMS : (unsigned) online;
}

static csf_status
cpu_probe (int id, csf_error *error)
{
  return CSF_OK;
}

static csf_status
cpu_open (int id, csf_device **device, csf_error *error)
{
  *device = calloc (1, sizeof **device);
  if (*device == NULL)
    return csf_error_set (error, CSF_ERROR_MEMORY, CSF_STAGE_OPEN, CSF_NO_FRAME, 0,
        "no memory left");
  strcpy ((*device)->info.name, "CPU");
  (*device)->info.default_streams = count_processors ();
  return CSF_OK;
}

static void
cpu_close (csf_device *device)
{
  free (device);
}

static void
cpu_session_close (csf_session *base)
{
  cpu_session *session = (cpu_session *) base;

  pthread_mutex_lock (&session->lock);
  session->stopping = true;
  pthread_cond_broadcast (&session->work);
  pthread_mutex_unlock (&session->lock);
  for (unsigned i = 0; i < session->n_threads; i++)
    pthread_join (session->threads[i], NULL);
  pthread_cond_destroy (&session->done);
  pthread_cond_destroy (&session->work);
  pthread_mutex_destroy (&session->lock);
  if (session->is_open && session->kernel->close != NULL)
    session->kernel->close (session->instance);
  for (unsigned i = 0; i < session->n_slots; i++)
    free (session->slots[i].workspace);
  free (session->state);
  free (session);
}

/* What the kernel has beside its frames. */
static csf_status
open_kernel (cpu_session *session, const csf_config *config, csf_error *error)
{
  const csfk_kernel *kernel = session->kernel;
  const size_t workspace_size = csf_session_workspace_size (config);
  char reason[256] = "";
  bool have_all = true;

  if (kernel->process == NULL)
    return csf_error_set (error, CSF_ERROR_UNSUPPORTED, CSF_STAGE_OPEN, CSF_NO_FRAME, 0,
        "kernel \"%s\" runs on a GPU only: it has no C function", kernel->name);
  if (kernel->record_size > 0 && kernel->collect == NULL)
    return csf_error_set (error, CSF_ERROR_UNSUPPORTED, CSF_STAGE_OPEN, CSF_NO_FRAME, 0,
        "kernel \"%s\" has records and no C function that appends them; run it with backend=cuda",
        kernel->name);
  session->state_size = csf_session_state_size (config);
  if (session->state_size > 0)
    have_all = posix_memalign (&session->state, MEMORY_ALIGN, session->state_size) == 0;
  for (unsigned i = 0; i < session->n_slots && workspace_size > 0 && have_all; i++)
    have_all = posix_memalign (&session->slots[i].workspace, MEMORY_ALIGN, workspace_size) == 0;
  if (!have_all)
    return csf_error_set (error, CSF_ERROR_MEMORY, CSF_STAGE_OPEN, CSF_NO_FRAME, 0,
        "no memory left for kernel \"%s\": it wants %zu bytes, and %zu for each of %u frames in "
        "flight; lower num-streams", kernel->name, session->state_size, workspace_size,
        session->n_slots);
  if (kernel->open != NULL && kernel->open (kernel, &config->in.image, &config->out.image,
          &session->instance, reason, sizeof reason) != 0)
    return csf_error_set (error, CSF_ERROR_UNSUPPORTED, CSF_STAGE_OPEN, CSF_NO_FRAME, 0,
        "kernel \"%s\" could not be opened: %s", kernel->name, csf_reason (reason, sizeof reason));
  session->is_open = true;
  return CSF_OK;
}

static csf_status
cpu_session_open (csf_device *device, const csf_config *config, csf_session **result,
    csf_error *error)
{
  cpu_session *session = calloc (1, sizeof *session + config->num_streams * sizeof (cpu_slot));
  pthread_condattr_t monotonic;
  csf_status status;

  if (session == NULL)
    return csf_error_set (error, CSF_ERROR_MEMORY, CSF_STAGE_OPEN, CSF_NO_FRAME, 0,
        "no memory left for %u worker threads", config->num_streams);
  session->kernel = config->kernel;
  session->n_slots = config->num_streams;
  session->base_ns = csf_now_ns ();
  pthread_mutex_init (&session->lock, NULL);
  pthread_condattr_init (&monotonic);
  pthread_condattr_setclock (&monotonic, CLOCK_MONOTONIC);
  pthread_cond_init (&session->work, NULL);
  pthread_cond_init (&session->done, &monotonic);
  pthread_condattr_destroy (&monotonic);
  status = open_kernel (session, config, error);
  if (status != CSF_OK) {
    cpu_session_close (&session->base);
    return status;
  }
  for (; session->n_threads < config->num_streams; session->n_threads++) {
    int code = pthread_create (&session->threads[session->n_threads], NULL, work, session);

    if (code != 0) {
      csf_error_set (error, CSF_ERROR_MEMORY, CSF_STAGE_OPEN, CSF_NO_FRAME, code,
          "could start only %u of %u worker threads (%s); lower num-streams", session->n_threads,
          config->num_streams, strerror (code));
      cpu_session_close (&session->base);
      return CSF_ERROR_MEMORY;
    }
  }
  *result = &session->base;
  return CSF_OK;
}

static csf_status
cpu_start (csf_session *base, unsigned index, const csf_job *job, const csf_record_buffer *records,
    csf_run run, csf_error *error)
{
  cpu_session *session = (cpu_session *) base;
  cpu_slot *slot = &session->slots[index];

  pthread_mutex_lock (&session->lock);
  slot->job = *job;
  slot->collects_only = false;
  if (records != NULL)
    slot->records = *records;
  if (session->kernel->params_size > 0)
    memcpy (slot->params, job->params, session->kernel->params_size);
  slot->timed = run.number != 0;
  slot->run = run.number;
  slot->pending = true;
  pthread_cond_signal (&session->work);
  pthread_mutex_unlock (&session->lock);
  return CSF_OK;
}

static csf_status
cpu_wait (csf_session *base, unsigned index, uint64_t timeout_ns, csf_error *error)
{
  cpu_session *session = (cpu_session *) base;
  cpu_slot *slot = &session->slots[index];
  uint64_t until = csf_now_ns () + timeout_ns;
  struct timespec deadline = {
    .tv_sec = (time_t) (until / 1000000000u),
    .tv_nsec = (long) (until % 1000000000u),
  };
  bool busy;

  pthread_mutex_lock (&session->lock);
  while ((busy = slot->pending || slot->running) && timeout_ns > 0)
    if (pthread_cond_timedwait (&session->done, &session->lock, &deadline) != 0)
      timeout_ns = 0;
  pthread_mutex_unlock (&session->lock);
  return busy ? CSF_AGAIN : CSF_OK;
}

static void
cpu_get_times (csf_session *base, unsigned index, csf_times *times)
{
  cpu_session *session = (cpu_session *) base;
  cpu_slot *slot = &session->slots[index];

  pthread_mutex_lock (&session->lock);
  times->valid = slot->timed;
  times->parallel = true;
  times->run = slot->run;
  times->instant_ns = session->base_ns;
  times->start = times->end[CSF_PART_UPLOAD] = (double) (slot->begin_ns - session->base_ns);
  times->end[CSF_PART_KERNEL] = times->end[CSF_PART_RECORDS] = times->end[CSF_PART_DOWNLOAD] =
      (double) (slot->end_ns - session->base_ns);
  pthread_mutex_unlock (&session->lock);
}

/* ---- records ----------------------------------------------------------------------------------- */

static csf_status
cpu_record_alloc (csf_session *base, unsigned capacity, csf_record_buffer *buffer, csf_error *error)
{
  const size_t bytes = (size_t) capacity * ((cpu_session *) base)->kernel->record_size;

  buffer->memory = CSF_METADATA_AUTO;   /* the host's own */
  buffer->host = calloc (1, bytes);     /* a kernel may count more than it wrote */
  if (buffer->host == NULL)
    return csf_error_set (error, CSF_ERROR_MEMORY, CSF_STAGE_KERNEL, CSF_NO_FRAME, 0,
        "no memory left for %u records of %u bytes; lower max-records", capacity,
        ((cpu_session *) base)->kernel->record_size);
  return CSF_OK;
}

static void
cpu_record_free (csf_session *base, csf_record_buffer *buffer)
{
  free (buffer->host);
}

static unsigned
cpu_record_count (csf_session *base, unsigned index)
{
  return ((cpu_session *) base)->slots[index].count;
}

static csf_status
cpu_emit (csf_session *base, unsigned index, const csf_record_buffer *buffer, csf_error *error)
{
  cpu_session *session = (cpu_session *) base;
  cpu_slot *slot = &session->slots[index];

  pthread_mutex_lock (&session->lock);
  slot->records = *buffer;
  slot->collects_only = true;
  slot->timed = false;
  slot->pending = true;
  pthread_cond_signal (&session->work);
  pthread_mutex_unlock (&session->lock);
  return CSF_OK;
}

static csf_status
cpu_record_fetch (csf_session *base, unsigned index, unsigned n, csf_error *error)
{
  return CSF_OK;
}

static const void *
cpu_record_data (csf_session *base, unsigned index)
{
  return ((cpu_session *) base)->slots[index].records.host;
}

static uint64_t
cpu_get_device_bytes (csf_session *base)
{
  return 0;
}

const csf_backend_ops csf_backend_cpu = {
  .type = CSF_BACKEND_CPU,
  .name = "cpu",
  .probe = cpu_probe,
  .open = cpu_open,
  .close = cpu_close,
  .session_open = cpu_session_open,
  .session_close = cpu_session_close,
  .start = cpu_start,
  .wait = cpu_wait,
  .get_times = cpu_get_times,
  .record_alloc = cpu_record_alloc,
  .record_free = cpu_record_free,
  .record_count = cpu_record_count,
  .emit = cpu_emit,
  .record_fetch = cpu_record_fetch,
  .record_data = cpu_record_data,
  .get_device_bytes = cpu_get_device_bytes,
};
