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

typedef struct cpu_slot
{
  /* submit thread writes, worker reads, under the lock until running */
  csf_job job;
  unsigned char params[CSFK_MAX_PARAMS] __attribute__ ((aligned (16)));
  /* under the lock */
  bool pending, running;
  bool timed;
  uint64_t run, begin_ns, end_ns;
} cpu_slot;

typedef struct cpu_session
{
  csf_session base;
  const csfk_kernel *kernel;
  unsigned n_slots, n_threads;
  pthread_mutex_t lock;
  pthread_cond_t work, done;
  bool stopping;                /* under the lock */
  unsigned next;                /* slot the next worker looks at first, under the lock */
  uint64_t base_ns;
  pthread_t threads[CSF_MAX_STREAMS];
  cpu_slot slots[];
} cpu_session;

/* Slots are handed out in turn, so looking from the last one taken on finds the oldest. */
static cpu_slot *
take_pending_locked (cpu_session *session)
{
  for (unsigned i = 0; i < session->n_slots; i++) {
    unsigned index = (session->next + i) % session->n_slots;
    cpu_slot *slot = &session->slots[index];

    if (slot->pending) {
      session->next = (index + 1) % session->n_slots;
      slot->pending = false;
      slot->running = true;
      return slot;
    }
  }
  return NULL;
}

static void *
work (void *argument)
{
  cpu_session *session = argument;

  pthread_mutex_lock (&session->lock);
  while (!session->stopping) {
    cpu_slot *slot = take_pending_locked (session);
    csfk_frame frame;
    uint64_t begin, end;

    if (slot == NULL) {
      pthread_cond_wait (&session->work, &session->lock);
      continue;
    }
    pthread_mutex_unlock (&session->lock);
    frame.in = slot->job.in;
    frame.out = slot->job.out;
    frame.params = slot->params;
    begin = csf_now_ns ();
    session->kernel->process (&frame);
    end = csf_now_ns ();
    pthread_mutex_lock (&session->lock);
    slot->begin_ns = begin;
    slot->end_ns = end;
    slot->running = false;
    pthread_cond_broadcast (&session->done);
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
  free (session);
}

static csf_status
cpu_session_open (csf_device *device, const csf_config *config, csf_session **result,
    csf_error *error)
{
  cpu_session *session = calloc (1, sizeof *session + config->num_streams * sizeof (cpu_slot));
  pthread_condattr_t monotonic;

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
cpu_start (csf_session *base, unsigned index, const csf_job *job, uint64_t run, bool first,
    csf_error *error)
{
  cpu_session *session = (cpu_session *) base;
  cpu_slot *slot = &session->slots[index];

  pthread_mutex_lock (&session->lock);
  slot->job = *job;
  if (session->kernel->params_size > 0)
    memcpy (slot->params, job->params, session->kernel->params_size);
  slot->timed = run != 0;
  slot->run = run;
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
  times->start = times->upload = (double) (slot->begin_ns - session->base_ns);
  times->kernel = times->download = (double) (slot->end_ns - session->base_ns);
  pthread_mutex_unlock (&session->lock);
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
  .get_device_bytes = cpu_get_device_bytes,
};
