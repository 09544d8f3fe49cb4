/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Streams and events of the fake driver: a thread a stream runs its operations in order, late
 * and at its own pace.  Knows nothing of what the operations were made from. */
#include "fake.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

FAKE_EXPORT cu_result cuStreamDestroy (cu_stream stream);
FAKE_EXPORT cu_result cuStreamQuery (cu_stream stream);
FAKE_EXPORT cu_result cuStreamSynchronize (cu_stream stream);
FAKE_EXPORT cu_result cuStreamWaitEvent (cu_stream stream, cu_event event, unsigned flags);
FAKE_EXPORT cu_result cuEventSynchronize (cu_event event);
FAKE_EXPORT cu_result cuLaunchHostFunc (cu_stream stream, void (*function) (void *), void *data);

static uint64_t streams_made;

double
fake_now (void)
{
  struct timespec now;

  clock_gettime (CLOCK_MONOTONIC, &now);
  return (double) now.tv_sec * 1e9 + (double) now.tv_nsec;
}

void
fake_event_release (fake_event *event)
{
  if (--event->references == 0)
    free (event);
}

/* ---- running operations ---------------------------------------------------------------------- */

static bool
is_work (const fake_op *op)
{
  return op->kind == FAKE_OP_COPY || op->kind == FAKE_OP_SET || op->kind == FAKE_OP_KERNEL;
}

/* xorshift64*, Marsaglia 2003 and Vigna 2016. */
static uint64_t
next_random (fake_stream *stream)
{
  stream->random ^= stream->random >> 12;
  stream->random ^= stream->random << 25;
  stream->random ^= stream->random >> 27;
  return stream->random * 0x2545f4914f6cdd1dULL;
}

/* Half of the operations start at once, so that some streams run ahead of others. */
static void
be_late (uint64_t random, long long delay_us)
{
  struct timespec pause = { 0 };

  if (delay_us <= 0)
    return;
  if (random & 1) {
    sched_yield ();
    return;
  }
  pause.tv_nsec = (long) (random / 2 % ((uint64_t) delay_us * 1000 + 1));
  pause.tv_sec = pause.tv_nsec / 1000000000;
  pause.tv_nsec %= 1000000000;
  nanosleep (&pause, NULL);
}

static bool
has_older (const fake_stream *stream, uint64_t sequence)
{
  return stream != NULL && stream->first != NULL && stream->first->sequence < sequence;
}

/* The NULL stream and the blocking streams take turns in the order of the calls. */
static bool
is_ready (const fake_stream *stream, const fake_op *op)
{
  const fake_context *context = stream->context;

  if (op->kind == FAKE_OP_WAIT && op->event->done < op->record)
    return false;
  if (stream != context->null_stream)
    return !stream->blocking || !has_older (context->null_stream, op->sequence);
  for (const fake_stream *other = context->streams; other != NULL; other = other->next)
    if (other != stream && other->blocking && has_older (other, op->sequence))
      return false;
  return true;
}

static void
perform (const fake_op *op)
{
  switch (op->kind) {
    case FAKE_OP_COPY:
      for (size_t y = 0; y < op->height; y++)
        memcpy (op->to + y * op->to_pitch, op->from + y * op->from_pitch, op->width);
      break;
    case FAKE_OP_SET:
      memset (op->to, op->value, op->width);
      break;
    case FAKE_OP_KERNEL:
      if (op->collects)
        op->kernel->collect (&op->frame, op->params);
      else if (!op->does_nothing)
        op->kernel->process (&op->frame, op->params);
      break;
    case FAKE_OP_HOST_FUNCTION:
      op->function (op->data);
      break;
    case FAKE_OP_RECORD:
    case FAKE_OP_WAIT:
    case FAKE_OP_ATTACH:
      break;
  }
}

/* On its engine, which is kept as long as the settings say. */
static void
perform_in_turn (const fake_op *op, long long us)
{
  static pthread_mutex_t turns[FAKE_N_ENGINES] = {
    PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER,
    PTHREAD_MUTEX_INITIALIZER
  };
  const struct timespec time = {.tv_sec = us / 1000000,.tv_nsec = us % 1000000 * 1000 };

  if (us == 0) {
    perform (op);
    return;
  }
  pthread_mutex_lock (&turns[op->engine]);
  perform (op);
  nanosleep (&time, NULL);
  pthread_mutex_unlock (&turns[op->engine]);
}

static void
op_free (fake_op *op)
{
  for (size_t i = 0; i < sizeof op->ranges / sizeof op->ranges[0]; i++)
    if (op->ranges[i] != NULL)
      op->ranges[i]->pending--;
  if (op->event != NULL)
    fake_event_release (op->event);
  free (op->staged);
  free (op->params);
  free (op);
}

static bool
is_stopped (const fake_stream *stream)
{
  return stream->context->stopped || fake_exiting;
}

static bool
memory_is_for (const fake_op *op, const fake_stream *stream)
{
  for (size_t i = 0; i < sizeof op->ranges / sizeof op->ranges[0]; i++)
    if (op->ranges[i] != NULL && !fake_memory_is_for (op->ranges[i], stream))
      return false;
  return true;
}

/* An operation of a context that breaks meanwhile is dropped. */
static void
run_locked (fake_stream *stream, fake_op *op)
{
  fake_context *context = stream->context;
  const long long takes_us[FAKE_N_ENGINES] = {
    [FAKE_ENGINE_UPLOAD] = fake_set.upload_us,
    [FAKE_ENGINE_KERNEL] = fake_set.kernel_us,
    [FAKE_ENGINE_DOWNLOAD] = fake_set.download_us
  };
  uint64_t epoch = fake_hang_epoch;
  long long us;
  int fate;

  while (!is_stopped (stream) && !is_ready (stream, op))
    pthread_cond_wait (&fake_changed, &fake_lock);
  if (is_stopped (stream))
    return;
  fate = is_work (op) ? fake_next_operation () : 0;
  if (op->kind == FAKE_OP_KERNEL)
    fake_counts.kernels++;
  if (fate == 1 || (op->kind == FAKE_OP_KERNEL && op->kernel == NULL)) {
    fake_context_break (context, fate == 1 ? (cu_result) fake_set.async_fail_code
        : FAKE_ERROR_ILLEGAL_ADDRESS);
    return;
  }
  if (is_work (op) && !memory_is_for (op, stream)) {
    fake_misuse (FAKE_ERROR_ILLEGAL_ADDRESS,
        "work on managed memory that is attached to the host or to another stream");
    fake_context_break (context, FAKE_ERROR_ILLEGAL_ADDRESS);
    return;
  }
  while (fate == 2 && epoch == fake_hang_epoch && !is_stopped (stream))
    pthread_cond_wait (&fake_changed, &fake_lock);
  if (is_stopped (stream))
    return;
  stream->executing = true;
  us = takes_us[op->engine];
  pthread_mutex_unlock (&fake_lock);
  perform_in_turn (op, us);
  pthread_mutex_lock (&fake_lock);
  stream->executing = false;
  if (op->kind == FAKE_OP_RECORD && op->record > op->event->done) {
    op->event->done = op->record;
    op->event->time = fake_now ();
  }
  if (op->kind == FAKE_OP_ATTACH)
    fake_memory_attach (op->ranges[0], op->attach_flags, stream);
}

static void *
stream_main (void *data)
{
  fake_stream *stream = data;

  pthread_mutex_lock (&fake_lock);
  for (;;) {
    fake_op *op;
    uint64_t random;
    long long delay_us;

    while (stream->first == NULL && !stream->dying)
      pthread_cond_wait (&stream->work, &fake_lock);
    if (stream->first == NULL)
      break;
    op = stream->first;
    random = next_random (stream);
    delay_us = is_stopped (stream) || !is_work (op) ? 0 : fake_set.delay_us;
    pthread_mutex_unlock (&fake_lock);
    be_late (random, delay_us);
    pthread_mutex_lock (&fake_lock);
    run_locked (stream, op);
    stream->first = op->next;
    if (stream->first == NULL)
      stream->end = &stream->first;
    op_free (op);
    fake_memory_guard ();
    pthread_cond_broadcast (&fake_changed);
  }
  stream->finished = true;
  pthread_mutex_unlock (&fake_lock);
  return NULL;
}

/* ---- streams --------------------------------------------------------------------------------- */

fake_stream *
fake_stream_new (fake_context *context, unsigned flags)
{
  fake_stream *stream = calloc (1, sizeof *stream);

  if (stream == NULL)
    return NULL;
  stream->context = context;
  stream->blocking = (flags & CU_STREAM_NON_BLOCKING) == 0;
  stream->end = &stream->first;
  stream->random = ((uint64_t) fake_set.seed << 32 ^ ++streams_made) * 0x9e3779b97f4a7c15ULL | 1;
  pthread_cond_init (&stream->work, NULL);
  if (pthread_create (&stream->thread, NULL, stream_main, stream) != 0) {
    pthread_cond_destroy (&stream->work);
    free (stream);
    return NULL;
  }
  stream->next = context->streams;
  context->streams = stream;
  return stream;
}

fake_stream *
fake_stream_find (cu_stream handle, fake_context *context)
{
  fake_stream *stream;

  if ((uintptr_t) handle <= 2) {
    if (context->null_stream == NULL)
      context->null_stream = fake_stream_new (context, 0);
    return context->null_stream;
  }
  stream = fake_object_find (handle, FAKE_STREAM);
  return stream == NULL || stream->context != context ? NULL : stream;
}

void
fake_stream_enqueue (fake_stream *stream, fake_op *op)
{
  for (size_t i = 0; i < sizeof op->ranges / sizeof op->ranges[0]; i++)
    if (op->ranges[i] != NULL)
      op->ranges[i]->pending++;
  op->sequence = ++stream->context->sequence;
  op->next = NULL;
  *stream->end = op;
  stream->end = &op->next;
  fake_memory_guard ();
  pthread_cond_signal (&stream->work);
}

/* Not merely stopped: an operation may still be under way then. */
static bool
is_broken (const fake_context *context)
{
  return context->error != CU_SUCCESS || fake_exiting;
}

void
fake_stream_drain (fake_stream *stream)
{
  while (stream->first != NULL && !is_broken (stream->context))
    pthread_cond_wait (&fake_changed, &fake_lock);
}

static bool
context_has_older (const fake_context *context, uint64_t sequence)
{
  for (const fake_stream *stream = context->streams; stream != NULL; stream = stream->next)
    if (has_older (stream, sequence))
      return true;
  return false;
}

/* Streams come and go while this waits, and other threads may go on giving them work. */
void
fake_context_drain (fake_context *context)
{
  uint64_t sequence = context->sequence + 1;

  while (context_has_older (context, sequence) && !is_broken (context))
    pthread_cond_wait (&fake_changed, &fake_lock);
}

static bool
is_executing (const fake_context *context)
{
  for (const fake_stream *stream = context->streams; stream != NULL; stream = stream->next)
    if (stream->executing)
      return true;
  return false;
}

void
fake_context_break (fake_context *context, cu_result error)
{
  context->stopped = true;
  pthread_cond_broadcast (&fake_changed);
  while (is_executing (context))
    pthread_cond_wait (&fake_changed, &fake_lock);
  if (context->error == CU_SUCCESS)
    context->error = error;
  pthread_cond_broadcast (&fake_changed);
}

static void
join_and_free (fake_stream *stream)
{
  pthread_mutex_unlock (&fake_lock);
  pthread_join (stream->thread, NULL);
  pthread_mutex_lock (&fake_lock);
  fake_memory_detach (stream);
  pthread_cond_destroy (&stream->work);
  free (stream);
}

/* Takes a stream out of its context whose thread has ended or will at once. */
static void
unlink_stream (fake_stream *stream)
{
  fake_stream **link = &stream->context->streams;

  while (*link != stream)
    link = &(*link)->next;
  *link = stream->next;
}

void
fake_context_end_streams (fake_context *context)
{
  fake_stream *stream;

  fake_context_break (context, FAKE_ERROR_CONTEXT_IS_DESTROYED);
  context->null_stream = NULL;
  while ((stream = context->streams) != NULL) {
    context->streams = stream->next;
    if (!stream->dying && stream->object.handle != NULL)
      fake_object_remove (&stream->object);
    stream->dying = true;
    pthread_cond_signal (&stream->work);
    join_and_free (stream);
  }
}

static fake_stream *
find_finished (void)
{
  for (fake_context *context = fake_contexts; context != NULL; context = context->next)
    for (fake_stream *stream = context->streams; stream != NULL; stream = stream->next)
      if (stream->finished)
        return stream;
  return NULL;
}

void
fake_streams_reap (void)
{
  fake_stream *stream;

  while ((stream = find_finished ()) != NULL) {
    unlink_stream (stream);
    join_and_free (stream);
  }
}

FAKE_EXPORT cu_result
cuStreamCreate (cu_stream *handle, unsigned flags)
{
  fake_stream *stream;
  fake_call call;

  if (!fake_call_begin (&call, __func__, FAKE_NEEDS_CONTEXT))
    return call.result;
  if (flags > CU_STREAM_NON_BLOCKING)
    return fake_call_end (&call, CU_ERROR_INVALID_VALUE);
  fake_streams_reap ();
  stream = fake_stream_new (call.context, flags);
  if (stream == NULL)
    return fake_call_end (&call, CU_ERROR_OUT_OF_MEMORY);
  fake_object_add (&stream->object, FAKE_STREAM, call.context);
  *handle = stream->object.handle;
  return fake_call_end (&call, CU_SUCCESS);
}

/* Returns at once, as the real one does: what was given to the stream still runs. */
FAKE_EXPORT cu_result
cuStreamDestroy_v2 (cu_stream handle)
{
  fake_stream *stream;
  fake_call call;
  bool idle;

  if (!fake_call_begin (&call, __func__, FAKE_NEEDS_CONTEXT | FAKE_GIVES_BACK))
    return call.result;
  stream = fake_object_find (handle, FAKE_STREAM);
  if (stream == NULL)
    return fake_call_end (&call, fake_misuse (FAKE_ERROR_INVALID_HANDLE,
            "cuStreamDestroy of what is no stream"));
  fake_object_remove (&stream->object);
  stream->dying = true;
  pthread_cond_signal (&stream->work);
  idle = stream->first == NULL || is_stopped (stream);
  if (idle) {
    unlink_stream (stream);
    join_and_free (stream);
  }
  return fake_call_end (&call, CU_SUCCESS);
}

FAKE_EXPORT cu_result
cuStreamDestroy (cu_stream handle)
{
  return cuStreamDestroy_v2 (handle);
}

/* As fake_call_begin, with the stream found. */
static bool
begin_for_stream (fake_call *call, const char *name, unsigned needs, cu_stream handle,
    fake_stream **stream)
{
  if (!fake_call_begin (call, name, FAKE_NEEDS_CONTEXT | needs))
    return false;
  *stream = fake_stream_find (handle, call->context);
  if (*stream != NULL)
    return true;
  call->result = fake_call_end (call, fake_misuse (FAKE_ERROR_INVALID_HANDLE,
          "%s of what is no stream of the current context", name));
  return false;
}

FAKE_EXPORT cu_result
cuStreamQuery (cu_stream handle)
{
  fake_stream *stream;
  fake_call call;

  if (!begin_for_stream (&call, __func__, FAKE_ASKS, handle, &stream))
    return call.result;
  return fake_call_end (&call, stream->first == NULL ? CU_SUCCESS : CU_ERROR_NOT_READY);
}

FAKE_EXPORT cu_result
cuStreamSynchronize (cu_stream handle)
{
  fake_stream *stream;
  fake_call call;

  if (!begin_for_stream (&call, __func__, FAKE_ASKS, handle, &stream))
    return call.result;
  fake_stream_drain (stream);
  return fake_call_end (&call, call.context->error);
}

static fake_op *
op_for_event (fake_op_kind kind, fake_event *event)
{
  fake_op *op = calloc (1, sizeof *op);

  if (op == NULL)
    abort ();
  op->kind = kind;
  op->event = event;
  op->record = event->issued;
  event->references++;
  return op;
}

FAKE_EXPORT cu_result
cuStreamWaitEvent (cu_stream handle, cu_event event_handle, unsigned flags)
{
  fake_event *event;
  fake_stream *stream;
  fake_call call;

  if (!begin_for_stream (&call, __func__, 0, handle, &stream))
    return call.result;
  event = fake_object_find (event_handle, FAKE_EVENT);
  if (event == NULL)
    return fake_call_end (&call, fake_misuse (FAKE_ERROR_INVALID_HANDLE,
            "cuStreamWaitEvent for what is no event"));
  fake_stream_enqueue (stream, op_for_event (FAKE_OP_WAIT, event));
  return fake_call_end (&call, CU_SUCCESS);
}

FAKE_EXPORT cu_result
cuLaunchHostFunc (cu_stream handle, void (*function) (void *), void *data)
{
  fake_stream *stream;
  fake_call call;
  fake_op *op;

  if (!begin_for_stream (&call, __func__, 0, handle, &stream))
    return call.result;
  op = calloc (1, sizeof *op);
  if (op == NULL)
    return fake_call_end (&call, CU_ERROR_OUT_OF_MEMORY);
  op->kind = FAKE_OP_HOST_FUNCTION;
  op->function = function;
  op->data = data;
  fake_stream_enqueue (stream, op);
  return fake_call_end (&call, CU_SUCCESS);
}

/* ---- events ---------------------------------------------------------------------------------- */

FAKE_EXPORT cu_result
cuEventCreate (cu_event *handle, unsigned flags)
{
  fake_event *event;
  fake_call call;

  if (!fake_call_begin (&call, __func__, FAKE_NEEDS_CONTEXT))
    return call.result;
  event = calloc (1, sizeof *event);
  if (event == NULL)
    return fake_call_end (&call, CU_ERROR_OUT_OF_MEMORY);
  event->references = 1;
  event->flags = flags;
  fake_object_add (&event->object, FAKE_EVENT, call.context);
  *handle = event->object.handle;
  return fake_call_end (&call, CU_SUCCESS);
}

/* As fake_call_begin, with the event found. */
static bool
begin_for_event (fake_call *call, const char *name, unsigned needs, cu_event handle,
    fake_event **event)
{
  if (!fake_call_begin (call, name, FAKE_NEEDS_CONTEXT | needs))
    return false;
  *event = fake_object_find (handle, FAKE_EVENT);
  if (*event != NULL && (*event)->object.context == call->context)
    return true;
  call->result = fake_call_end (call, fake_misuse (FAKE_ERROR_INVALID_HANDLE,
          "%s of what is no event of the current context", name));
  return false;
}

FAKE_EXPORT cu_result
cuEventDestroy_v2 (cu_event handle)
{
  fake_event *event;
  fake_call call;

  if (!begin_for_event (&call, __func__, FAKE_GIVES_BACK, handle, &event))
    return call.result;
  fake_object_remove (&event->object);
  fake_event_release (event);
  return fake_call_end (&call, CU_SUCCESS);
}

FAKE_EXPORT cu_result
cuEventRecord (cu_event handle, cu_stream stream_handle)
{
  fake_event *event;
  fake_stream *stream;
  fake_call call;

  if (!begin_for_event (&call, __func__, 0, handle, &event))
    return call.result;
  stream = fake_stream_find (stream_handle, call.context);
  if (stream == NULL)
    return fake_call_end (&call, fake_misuse (FAKE_ERROR_INVALID_HANDLE,
            "cuEventRecord on what is no stream of the current context"));
  event->issued++;
  fake_stream_enqueue (stream, op_for_event (FAKE_OP_RECORD, event));
  return fake_call_end (&call, CU_SUCCESS);
}

FAKE_EXPORT cu_result
cuEventQuery (cu_event handle)
{
  fake_event *event;
  fake_call call;

  if (!begin_for_event (&call, __func__, FAKE_ASKS, handle, &event))
    return call.result;
  return fake_call_end (&call, event->done < event->issued ? CU_ERROR_NOT_READY : CU_SUCCESS);
}

FAKE_EXPORT cu_result
cuEventSynchronize (cu_event handle)
{
  fake_event *event;
  fake_call call;
  uint64_t record;

  if (!begin_for_event (&call, __func__, FAKE_ASKS, handle, &event))
    return call.result;
  record = event->issued;
  event->references++;
  while (event->done < record && !is_broken (call.context))
    pthread_cond_wait (&fake_changed, &fake_lock);
  fake_event_release (event);
  return fake_call_end (&call, call.context->error);
}

FAKE_EXPORT cu_result
cuEventElapsedTime (float *milliseconds, cu_event start_handle, cu_event end_handle)
{
  fake_event *start, *end;
  fake_call call;

  if (!begin_for_event (&call, __func__, 0, end_handle, &end))
    return call.result;
  start = fake_object_find (start_handle, FAKE_EVENT);
  if (start == NULL || start->object.context != call.context)
    return fake_call_end (&call, fake_misuse (FAKE_ERROR_INVALID_HANDLE,
            "cuEventElapsedTime from what is no event of the current context"));
  if (((start->flags | end->flags) & CU_EVENT_DISABLE_TIMING) || start->issued == 0
      || end->issued == 0)
    return fake_call_end (&call, FAKE_ERROR_INVALID_HANDLE);
  if (start->done < start->issued || end->done < end->issued)
    return fake_call_end (&call, CU_ERROR_NOT_READY);
  *milliseconds = (float) ((end->time - start->time) / 1e6);
  return fake_call_end (&call, CU_SUCCESS);
}
