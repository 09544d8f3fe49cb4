/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The engine: a ring of slots that one thread fills and one thread empties in the same order.  Knows
 * no particular device and no pixels.
 *
 * A slot's state is derived from two counters: slots from `retired` up to `submitted` are in flight,
 * all others are free.  Only the submit thread advances `submitted`, only the retire thread `retired`;
 * everything in a slot is written before the counter that hands it over. */
#include "csf.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "backend.h"
#include "clock.h"
#include "hostpool.h"
#include "metasink.h"
#include "ranges.h"
#include "trace.h"

/* How long a wait may go without looking whether it was interrupted. */
#define WAIT_SLICE_NS 10000000u
/* A sleeping thread needs some 50 us to come back, much of a frame's time where frames are that fast.  So a wait
 * that may be as short as this is spent awake. */
#define SPIN_NS 250000u
/* Timing costs events on the streams: runs of adjacent frames, about 1 frame in 64, and at low rates
 * often enough that a reader always has fresh figures. */
#define UNTIMED_PER_TIMED 64
/* No frame takes a device so long: it hangs. */
#define HANG_NS 10000000000u
#define RUN_INTERVAL_NS 200000000u
#define FIRST_REGIONS 64
/* Frames of a run when all are timed: what a run's instant is good for. */
#define LONG_RUN (2 * CSF_MAX_STREAMS)

typedef struct slot
{
  uint64_t frame;
  void *user;
  csf_status start_status;      /* not CSF_OK: the device refused part of the job */
  csf_error start_error;
  csf_frame_times times;        /* submit thread: stream and the host's parts */
  csf_hostblock *staging;       /* submit thread */
  csf_hostblock *regions;       /* submit thread: the frame's own copy */
} slot;

struct csf_engine
{
  csf_config config;
  csf_session *session;
  csf_metasink *sink;           /* NULL: the kernel has no records */

  atomic_uint_fast64_t submitted, retired;
  atomic_uint_fast64_t freed_ns;        /* when the last slot came free */
  atomic_uint_fast64_t discard_before;  /* jobs of a lower count were discarded */
  atomic_bool interrupted;
  atomic_uint_fast64_t host_copies;

  pthread_mutex_t lock;
  pthread_cond_t changed;       /* a slot came free, or interrupted was set */
  csf_trace trace;              /* under the lock */
  bool broken;                  /* under the lock: a job failed, so no further one is taken */
  csf_error broken_error;

  /* submit thread: its last wait for a slot, and what it needed to wake up from it */
  uint64_t waited_ns;
  csf_span wake;
  /* submit thread: the timed run */
  uint64_t run, run_started_ns;
  unsigned run_left;            /* frames of the current run still to come */
  uint64_t since_run;           /* frames since the last run ended */

  slot slots[CSF_MAX_STREAMS];
};

static void
free_slots (csf_engine *engine)
{
  for (unsigned i = 0; i < engine->config.num_streams; i++) {
    csf_hostblock_unref (engine->slots[i].staging);
    csf_hostblock_unref (engine->slots[i].regions);
  }
}

/* So that no frame that follows waits for memory. */
static csf_status
alloc_regions (csf_engine *engine, csf_error *error)
{
  if ((engine->config.kernel->flags & CSFK_READS_REGIONS) == 0)
    return CSF_OK;
  for (unsigned i = 0; i < engine->config.num_streams; i++) {
    engine->slots[i].regions =
        csf_hostpool_alloc (engine->config.hostpool, FIRST_REGIONS * sizeof (csfk_region));
    if (engine->slots[i].regions == NULL)
      return csf_error_set (error, CSF_ERROR_MEMORY, CSF_STAGE_OPEN, CSF_NO_FRAME, 0,
          "no memory left for the frames' regions");
  }
  return CSF_OK;
}

csf_status
csf_engine_create (const csf_config *config, csf_engine **result, csf_error *error)
{
  csf_engine *engine;
  csf_status status;

  assert (config->release != NULL && config->device != NULL && config->hostpool != NULL);
  *result = NULL;
  engine = calloc (1, sizeof *engine);
  if (engine == NULL)
    return csf_error_set (error, CSF_ERROR_MEMORY, CSF_STAGE_OPEN, CSF_NO_FRAME, 0,
        "no memory left");
  engine->config = *config;
  status = csf_backend_session_open (config->device, config, &engine->session, error);
  if (status != CSF_OK) {
    free (engine);
    return status;
  }
  status = alloc_regions (engine, error);
  if (status == CSF_OK)
    status = csf_metasink_create (engine->session, config, &engine->sink, error);
  if (status != CSF_OK) {
    csf_backend_session_close (engine->session);
    free_slots (engine);
    free (engine);
    return status;
  }
  csf_device_ref (config->device);
  csf_hostpool_ref (config->hostpool);
  pthread_mutex_init (&engine->lock, NULL);
  pthread_cond_init (&engine->changed, NULL);
  engine->since_run = UINT64_MAX;
  engine->trace.epoch = csf_now_ns ();
  *result = engine;
  return CSF_OK;
}

unsigned
csf_engine_get_in_flight (csf_engine *engine)
{
  uint64_t retired, submitted;

  /* Another thread may move both on between two looks. */
  do {
    retired = atomic_load (&engine->retired);
    submitted = atomic_load (&engine->submitted);
  } while (retired != atomic_load (&engine->retired));
  return (unsigned) (submitted - retired);
}

static void
free_slot (csf_engine *engine)
{
  pthread_mutex_lock (&engine->lock);
  atomic_fetch_add (&engine->retired, 1);
  pthread_cond_broadcast (&engine->changed);
  pthread_mutex_unlock (&engine->lock);
}

csf_status
csf_engine_destroy (csf_engine *engine, uint64_t timeout_ns, csf_error *error)
{
  uint64_t deadline = csf_now_ns () + timeout_ns;

  if (engine == NULL)
    return CSF_OK;
  while (csf_engine_get_in_flight (engine) > 0) {
    unsigned index = (unsigned) (atomic_load (&engine->retired) % engine->config.num_streams);
    uint64_t now = csf_now_ns ();
    uint64_t left = deadline > now ? deadline - now : 0;

    if (csf_backend_wait (engine->session, index, left, NULL) != CSF_AGAIN) {
      engine->config.release (engine->config.context, engine->slots[index].user);
      free_slot (engine);
    } else if (left == 0) {
      return csf_error_set (error, CSF_ERROR_TIMEOUT, CSF_STAGE_CLOSE,
          engine->slots[index].frame, 0, "%u frames did not finish within %.1f s; their memory is "
          "kept, since the device may still write it; restart the process",
          csf_engine_get_in_flight (engine), (double) timeout_ns / 1e9);
    }
  }
  csf_metasink_destroy (engine->sink);
  csf_backend_session_close (engine->session);
  free_slots (engine);
  pthread_cond_destroy (&engine->changed);
  pthread_mutex_destroy (&engine->lock);
  csf_hostpool_unref (engine->config.hostpool);
  csf_device_unref (engine->config.device);
  free (engine);
  return CSF_OK;
}

/* ---- submit ------------------------------------------------------------------------------------ */

static bool
has_free_slot (csf_engine *engine)
{
  return csf_engine_get_in_flight (engine) < engine->config.num_streams;
}

static void
spin (csf_engine *engine, uint64_t until)
{
  while (!has_free_slot (engine) && !atomic_load (&engine->interrupted) && csf_now_ns () < until)
    ;
}

static csf_status
sleep_until_free (csf_engine *engine)
{
  csf_status status = CSF_OK;

  pthread_mutex_lock (&engine->lock);
  while (!has_free_slot (engine) && !atomic_load (&engine->interrupted))
    pthread_cond_wait (&engine->changed, &engine->lock);
  if (atomic_load (&engine->interrupted))
    status = CSF_INTERRUPTED;
  pthread_mutex_unlock (&engine->lock);
  return status;
}

csf_status
csf_engine_wait_free (csf_engine *engine)
{
  const uint64_t begin = csf_now_ns ();
  const bool waits = !has_free_slot (engine);
  uint64_t end, freed;
  csf_status status = CSF_OK;

  if (waits && csf_backend_pins (engine->config.device) && engine->waited_ns < SPIN_NS)
    spin (engine, begin + SPIN_NS);
  if (!has_free_slot (engine) || atomic_load (&engine->interrupted))
    status = sleep_until_free (engine);
  end = csf_now_ns ();
  freed = atomic_load (&engine->freed_ns);
  engine->waited_ns = end - begin;
  engine->wake.begin = !waits || freed > end ? end : freed > begin ? freed : begin;
  engine->wake.end = end;
  return status;
}

static bool
fits_layout (const csfk_image *image, const csf_layout *layout)
{
  if (image->n_planes != layout->image.n_planes || image->format != layout->image.format)
    return false;
  for (int p = 0; p < image->n_planes; p++) {
    const csfk_plane *plane = &image->plane[p], *expected = &layout->image.plane[p];

    if (plane->data == NULL || plane->rows != expected->rows
        || plane->row_bytes != expected->row_bytes || plane->stride < plane->row_bytes)
      return false;
  }
  return true;
}

/* Device memory needs a device; host memory needs a place on the device to copy it to. */
static bool
memory_is_usable (const csf_engine *engine, csf_memory memory, bool on_device)
{
  return memory == CSF_MEMORY_DEVICE ? csf_device_get_context (engine->config.device) != NULL
      : !on_device;
}

static void
copy_plane (unsigned char *to, int to_stride, const csfk_plane *from)
{
  if (to_stride == from->stride && to_stride == from->row_bytes) {
    memcpy (to, from->data, (size_t) from->stride * (size_t) from->rows);
    return;
  }
  for (int y = 0; y < from->rows; y++)
    memcpy (to + (size_t) y * (size_t) to_stride, from->data + (size_t) y * (size_t) from->stride,
        (size_t) from->row_bytes);
}

/* Copies the input into the slot's pinned memory, laid out as on the device. */
static csf_status
stage (csf_engine *engine, slot *target, csf_job *job, csf_error *error)
{
  const csf_layout *layout = &engine->config.in;
  unsigned char *data;

  if (target->staging == NULL)
    target->staging = csf_hostpool_alloc (engine->config.hostpool, layout->size);
  if (target->staging == NULL)
    return csf_error_set (error, CSF_ERROR_MEMORY, CSF_STAGE_UPLOAD, job->frame, 0,
        "no memory left to stage a frame of %zu bytes; lower num-streams or free memory",
        layout->size);
  csf_range_push ("stage", job->frame);
  data = csf_hostblock_data (target->staging);
  for (int p = 0; p < job->in.n_planes; p++) {
    csfk_plane *plane = &job->in.plane[p];

    copy_plane (data + layout->offset[p], layout->image.plane[p].stride, plane);
    plane->data = data + layout->offset[p];
    plane->stride = layout->image.plane[p].stride;
  }
  csf_range_pop ();
  return CSF_OK;
}

/* Copies the frame's regions into the slot, whose room grows to the most that ever came. */
static csf_status
keep_regions (csf_engine *engine, slot *target, csf_job *job, csf_error *error)
{
  const size_t bytes = job->n_regions * sizeof (csfk_region);

  if ((engine->config.kernel->flags & CSFK_READS_REGIONS) == 0)
    job->n_regions = 0;
  if (job->n_regions == 0)
    return CSF_OK;
  if (bytes > csf_hostblock_size (target->regions)) {
    csf_hostblock *larger = csf_hostpool_alloc (engine->config.hostpool, 2 * bytes);

    if (larger == NULL)
      return csf_error_set (error, CSF_ERROR_MEMORY, CSF_STAGE_UPLOAD, job->frame, 0,
          "no memory left for the %u regions of this frame", job->n_regions);
    csf_hostblock_unref (target->regions);
    target->regions = larger;
  }
  memcpy (csf_hostblock_data (target->regions), job->regions, bytes);
  job->regions = csf_hostblock_data (target->regions);
  return CSF_OK;
}

static bool
run_is_due (csf_engine *engine, uint64_t now)
{
  unsigned lead = engine->config.num_streams;

  if (engine->config.time_all)
    return true;
  /* Seldom enough to cost nothing. */
  return engine->since_run > lead
      && (engine->since_run >= (uint64_t) UNTIMED_PER_TIMED * (lead + 2)
      || now - engine->run_started_ns >= RUN_INTERVAL_NS);
}

/* Whether this frame is timed.  The instant of a run is needed until its frames have left, and serves for the
 * next run but one: so a run has more frames than there can be in flight. */
static csf_run
choose_run (csf_engine *engine, uint64_t now)
{
  unsigned lead = engine->config.num_streams;
  csf_run run = { 0 };

  if (engine->run_left > 0) {
    if (--engine->run_left == 0)
      engine->since_run = 0;
    run.number = engine->run;
    return run;
  }
  if (engine->since_run < UINT64_MAX)
    engine->since_run++;
  if (!run_is_due (engine, now))
    return run;
  engine->run_started_ns = now;
  engine->run++;
  engine->run_left = engine->config.time_all ? LONG_RUN : 2 * lead + 1;
  run.number = engine->run;
  run.first = true;
  run.follows = engine->config.time_all && engine->run > 1;
  return run;
}

static csf_status
check_not_broken (csf_engine *engine, csf_error *error)
{
  csf_status status = CSF_OK;

  pthread_mutex_lock (&engine->lock);
  if (engine->broken) {
    status = engine->broken_error.status;
    if (error != NULL)
      *error = engine->broken_error;
  }
  pthread_mutex_unlock (&engine->lock);
  return status;
}

csf_status
csf_engine_submit (csf_engine *engine, const csf_job *job, bool *staged, csf_error *error)
{
  uint64_t count = atomic_load (&engine->submitted);
  unsigned index = (unsigned) (count % engine->config.num_streams);
  slot *target = &engine->slots[index];
  csf_job own = *job;
  bool pins = csf_backend_pins (engine->config.device);
  bool stages = pins && job->in_memory == CSF_MEMORY_HOST && !job->in_pinned;
  bool copies_out = pins && job->out_memory == CSF_MEMORY_HOST && !job->out_pinned;
  csf_frame_times times = {.stream = index };
  uint64_t begin = csf_now_ns ();
  csf_status status;

  assert (has_free_slot (engine));
  if (staged != NULL)
    *staged = false;
  if (!fits_layout (&job->in, &engine->config.in) || !fits_layout (&job->out, &engine->config.out))
    return csf_error_set (error, CSF_ERROR_ARGUMENT, CSF_STAGE_UPLOAD, job->frame, 0,
        "expected a %dx%d frame laid out as negotiated, got one of %dx%d with other planes",
        engine->config.in.image.width, engine->config.in.image.height, job->in.width,
        job->in.height);
  if (!memory_is_usable (engine, job->in_memory, engine->config.in_on_device)
      || !memory_is_usable (engine, job->out_memory, engine->config.out_on_device))
    return csf_error_set (error, CSF_ERROR_ARGUMENT, CSF_STAGE_UPLOAD, job->frame, 0,
        "the frame's memory is %s; the engine was opened for the other kind",
        job->in_memory == CSF_MEMORY_DEVICE ? "on a device" : "on the host");
  status = check_not_broken (engine, error);
  times.span[CSF_PART_WAKE] = engine->wake;
  times.span[CSF_PART_STAGING].begin = times.span[CSF_PART_STAGING].end = begin;
  if (status == CSF_OK && stages) {
    status = stage (engine, target, &own, error);
    times.span[CSF_PART_STAGING].end = csf_now_ns ();
  }
  if (status == CSF_OK)
    status = keep_regions (engine, target, &own, error);
  if (status != CSF_OK)
    return status;

  csf_range_push ("submit", job->frame);
  target->frame = job->frame;
  target->user = job->user;
  target->start_status = csf_backend_start (engine->session, index, &own,
      engine->sink == NULL ? NULL : csf_metasink_take (engine->sink, index), choose_run (engine, begin),
      &target->start_error);
  times.span[CSF_PART_SUBMIT].begin = times.span[CSF_PART_STAGING].end;
  times.span[CSF_PART_SUBMIT].end = csf_now_ns ();
  target->times = times;
  atomic_fetch_add (&engine->host_copies, (unsigned) stages + (unsigned) copies_out);
  atomic_fetch_add (&engine->submitted, 1);
  csf_range_pop ();
  if (staged != NULL)
    *staged = stages;
  return CSF_OK;
}

/* ---- retire ------------------------------------------------------------------------------------ */

static void
finish (csf_engine *engine, unsigned index, uint64_t count, csf_result *result)
{
  slot *finished = &engine->slots[index];
  uint64_t now = csf_now_ns ();
  csf_times times = {.valid = false };

  if (finished->start_status != CSF_OK) {
    result->status = finished->start_status;
    result->error = finished->start_error;
  }
  if (result->status == CSF_OK)
    csf_backend_get_times (engine->session, index, &times);
  result->frame = result->error.frame = finished->frame;
  result->user = finished->user;
  result->discarded = count < atomic_load (&engine->discard_before);
  result->times = finished->times;
  result->times.retired = now;
  atomic_store (&engine->freed_ns, result->times.retired);

  pthread_mutex_lock (&engine->lock);
  if (result->status != CSF_OK && !engine->broken) {
    engine->broken = true;
    engine->broken_error = result->error;
  }
  csf_trace_add (&engine->trace, &times, engine->config.num_streams, &result->times);
  pthread_mutex_unlock (&engine->lock);
  free_slot (engine);
}

/* CSF_OK: the oldest job has finished, and result->status says how. */
static csf_status
wait_for_oldest (csf_engine *engine, unsigned index, csf_result *result)
{
  uint64_t begin = csf_now_ns ();

  do {
    if (atomic_load (&engine->interrupted))
      return CSF_INTERRUPTED;
    if (csf_backend_pins (engine->config.device) && csf_now_ns () - begin > HANG_NS)
      return csf_error_set (&result->error, CSF_ERROR_TIMEOUT, CSF_STAGE_WAIT,
          engine->slots[index].frame, 0, "the device has not finished this frame within %u s; it "
          "hangs, or other work keeps it; restart the process", (unsigned) (HANG_NS / 1000000000u));
    result->status =
        csf_backend_wait (engine->session, index, WAIT_SLICE_NS, &result->error);
    if (result->status == CSF_OK && engine->sink != NULL
        && engine->slots[index].start_status == CSF_OK)
      result->status = csf_metasink_collect (engine->sink, index, result, &result->error);
  } while (result->status == CSF_AGAIN);
  return CSF_OK;
}

csf_status
csf_engine_retire (csf_engine *engine, csf_result *result)
{
  uint64_t count = atomic_load (&engine->retired);
  unsigned index = (unsigned) (count % engine->config.num_streams);
  csf_status status;

  if (csf_engine_get_in_flight (engine) == 0)
    return CSF_EMPTY;
  memset (result, 0, sizeof *result);
  csf_range_push ("wait", engine->slots[index].frame);
  status = wait_for_oldest (engine, index, result);
  csf_range_pop ();
  if (status == CSF_OK)
    finish (engine, index, count, result);
  return status;
}

void
csf_engine_discard (csf_engine *engine)
{
  atomic_store (&engine->discard_before, atomic_load (&engine->submitted));
}

void
csf_engine_set_interrupted (csf_engine *engine, bool interrupted)
{
  pthread_mutex_lock (&engine->lock);
  atomic_store (&engine->interrupted, interrupted);
  pthread_cond_broadcast (&engine->changed);
  pthread_mutex_unlock (&engine->lock);
}

void
csf_engine_get_stats (csf_engine *engine, csf_engine_stats *stats, bool take_window)
{
  memset (stats, 0, sizeof *stats);
  stats->retired = atomic_load (&engine->retired);
  stats->submitted = atomic_load (&engine->submitted);
  stats->host_copies = atomic_load (&engine->host_copies);
  stats->growths = csf_backend_get_growths (engine->session);
  csf_metasink_get_stats (engine->sink, stats);
  stats->device_bytes = csf_backend_get_device_bytes (engine->session);
  pthread_mutex_lock (&engine->lock);
  csf_trace_read (&engine->trace, stats, take_window);
  pthread_mutex_unlock (&engine->lock);
}
