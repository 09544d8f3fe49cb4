/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Drives the stream engine with one thread that submits and one that retires, with the ordered
 * queue between them.  Knows csf.h, hostpool.h and queue.h, no GStreamer. */
#include "engineloop.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "engine/hostpool.h"
#include "engine/queue.h"
#include "kernels/format.h"

/* As many as the element's pool holds for downstream. */
#define MORE_BUFFERS 3
#define CLOSE_NS UINT64_C (5000000000)

typedef struct buffer
{
  csf_hostblock *in, *out;
} buffer;

typedef struct loop
{
  csf_config config;
  csf_engine *engine;
  csf_queue *queue;
  buffer buffers[CSF_MAX_STREAMS + MORE_BUFFERS];
  unsigned n_buffers;
  unsigned char params[CSFK_MAX_PARAMS] __attribute__ ((aligned (16)));
  atomic_bool ended;            /* retire thread: measured enough, or failed */
  bench_meter meter;            /* retire thread */
  csf_status status;            /* retire thread, read after it was joined */
  csf_error error;              /* likewise */
} loop;

static void
release (void *context, void *user)
{
}

static void *
retire_frames (void *user)
{
  loop *self = user;
  csf_item item;
  csf_result result;

  while (csf_queue_take (self->queue, &item) == CSF_OK && item.data == NULL) {
    csf_engine_retire (self->engine, &result);
    free (result.records);
    csf_queue_finish (self->queue, 0);
    if (result.status != CSF_OK && self->status == CSF_OK) {
      self->status = result.status;
      self->error = result.error;
    }
    if (bench_meter_tick (&self->meter) || self->status != CSF_OK)
      atomic_store (&self->ended, true);
  }
  csf_queue_finish (self->queue, 0);
  return NULL;
}

static csf_status
submit_frames (loop *self, csf_error *error)
{
  const csf_layout *layout = &self->config.in;
  csf_status status = CSF_OK;

  for (uint64_t i = 0; status == CSF_OK && !atomic_load (&self->ended); i++) {
    const buffer *memory = &self->buffers[i % self->n_buffers];
    csf_job job = {
      .frame = i,
      .in = bench_image (layout, csf_hostblock_data (memory->in)),
      .out = bench_image (layout, csf_hostblock_data (memory->out)),
      .in_pinned = csf_hostblock_is_pinned (memory->in),
      .out_pinned = csf_hostblock_is_pinned (memory->out),
      .params = self->params,
    };

    status = csf_engine_wait_free (self->engine);
    if (status == CSF_OK)
      status = csf_engine_submit (self->engine, &job, NULL, error);
    if (status == CSF_OK)
      status = csf_queue_push_kept (self->queue, 0, NULL);
  }
  return status;
}

static csf_status
run (loop *self, csf_error *error)
{
  pthread_t thread;
  csf_status status;

  if (pthread_create (&thread, NULL, retire_frames, self) != 0)
    return CSF_ERROR_MEMORY;
  status = submit_frames (self, error);
  /* An item with data is the end. */
  csf_queue_push_kept (self->queue, 0, self);
  pthread_join (thread, NULL);
  if (status == CSF_OK && self->status != CSF_OK) {
    status = self->status;
    *error = self->error;
  }
  return status;
}

static csf_status
open_loop (loop *self, csf_error *error)
{
  csf_status status = csf_hostpool_create (self->config.device, 0, &self->config.hostpool, error);

  if (status == CSF_OK)
    status = csf_engine_create (&self->config, &self->engine, error);
  if (status != CSF_OK)
    return status;
  self->queue = csf_queue_create ();
  for (unsigned i = 0; i < self->n_buffers; i++) {
    buffer *memory = &self->buffers[i];

    memory->in = csf_hostpool_alloc (self->config.hostpool, self->config.in.size);
    memory->out = csf_hostpool_alloc (self->config.hostpool, self->config.out.size);
    if (memory->in == NULL || memory->out == NULL)
      return CSF_ERROR_MEMORY;
    bench_fill (csf_hostblock_data (memory->in), self->config.in.size);
    memset (csf_hostblock_data (memory->out), 0xa5, self->config.out.size);
  }
  return CSF_OK;
}

static csf_status
close_loop (loop *self, csf_error *error)
{
  csf_status status = csf_engine_destroy (self->engine, CLOSE_NS, error);

  /* What the device may still write is not ours to free. */
  if (status != CSF_OK)
    return status;
  csf_queue_destroy (self->queue);
  for (unsigned i = 0; i < self->n_buffers; i++) {
    csf_hostblock_unref (self->buffers[i].in);
    csf_hostblock_unref (self->buffers[i].out);
  }
  csf_hostpool_unref (self->config.hostpool);
  free (self);
  return CSF_OK;
}

csf_status
engineloop_measure (const engineloop_setup *setup, engineloop_result *result, csf_error *error)
{
  loop *self = calloc (1, sizeof *self);
  csf_status status, closed;
  csf_error close_error;

  if (self == NULL)
    abort ();
  memset (result, 0, sizeof *result);
  memset (error, 0, sizeof *error);
  self->config.device = setup->device;
  self->config.kernel = setup->kernel;
  self->config.num_streams = setup->streams;
  self->config.in = self->config.out = *setup->layout;
  self->config.metadata_memory = setup->metadata_memory;
  self->config.max_records = 1u << 20;
  self->config.release = release;
  self->n_buffers = setup->streams + MORE_BUFFERS;
  csfk_params_init (setup->kernel, self->params);
  if (setup->params != NULL)
    memcpy (self->params, setup->params, setup->kernel->params_size);
  bench_meter_init (&self->meter, setup->quick);

  status = open_loop (self, error);
  if (status == CSF_OK)
    status = run (self, error);
  if (status == CSF_OK) {
    result->fps = bench_meter_rate (&self->meter, &result->least_fps, &result->most_fps);
    result->cpu_us = bench_meter_cpu_us (&self->meter);
    csf_engine_get_stats (self->engine, &result->stats, true);
  }
  closed = close_loop (self, &close_error);
  if (status == CSF_OK && closed != CSF_OK) {
    status = closed;
    *error = close_error;
  }
  return status;
}
