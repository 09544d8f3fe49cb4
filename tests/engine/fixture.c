/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Engines, frames and kernels for the engine's tests.  Knows which backend is under test only by
 * whether there is a fake driver. */
#include "fixture.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define GUARD 0xee
#define UNWRITTEN 0xcc
#define CLOSE_NS UINT64_C (30000000000)

/* ---- kernels --------------------------------------------------------------------------------- */

static void
xor_process (const csfk_frame *frame, const void *data)
{
  const xor_params *params = data;
  struct timespec pause = {.tv_nsec = (long) params->delay_us * 1000 };

  if (params->delay_us > 0)
    nanosleep (&pause, NULL);
  for (int p = 0; p < frame->in.n_planes; p++)
    for (int y = 0; y < frame->in.plane[p].rows; y++) {
      const unsigned char *from = frame->in.plane[p].data + y * frame->in.plane[p].stride;
      unsigned char *to = frame->out.plane[p].data + y * frame->out.plane[p].stride;

      for (int x = 0; x < frame->in.plane[p].row_bytes; x++)
        to[x] = (unsigned char) (from[x] ^ params->key);
    }
}

typedef struct xor_args
{
  csfk_frame frame;
  xor_params params;
} xor_args;

static int
enqueue_symbol (const csfk_frame *frame, const void *params, csfk_launcher *launcher,
    const char *symbol)
{
  xor_args args = {.frame = *frame };
  int code;

  memcpy (&args.params, params, sizeof args.params);
  code = launcher->launch (launcher, symbol, (csfk_dim) {1, 1, 1}, (csfk_dim) {32, 8, 1}, 0, &args,
      sizeof args);
  /* "copied before the call returns" */
  memset (&args, 0xff, sizeof args);
  return code;
}

static int
xor_enqueue (const csfk_frame *frame, const void *params, csfk_launcher *launcher)
{
  return enqueue_symbol (frame, params, launcher, "csfk_testxor");
}

static int
gated_enqueue (const csfk_frame *frame, const void *params, csfk_launcher *launcher)
{
  return enqueue_symbol (frame, params, launcher, "csfk_testgated");
}

static pthread_mutex_t gate_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t gate_changed = PTHREAD_COND_INITIALIZER;
static bool gate_is_closed;
static unsigned gate_waiting, gate_passed;

void
gate_close (void)
{
  pthread_mutex_lock (&gate_lock);
  gate_is_closed = true;
  gate_passed = 0;
  pthread_mutex_unlock (&gate_lock);
}

void
gate_open (void)
{
  pthread_mutex_lock (&gate_lock);
  gate_is_closed = false;
  pthread_cond_broadcast (&gate_changed);
  pthread_mutex_unlock (&gate_lock);
}

void
gate_wait_for (unsigned n)
{
  pthread_mutex_lock (&gate_lock);
  while (gate_waiting < n)
    pthread_cond_wait (&gate_changed, &gate_lock);
  pthread_mutex_unlock (&gate_lock);
}

void
gate_wait_for_passed (unsigned n)
{
  pthread_mutex_lock (&gate_lock);
  while (gate_passed < n)
    pthread_cond_wait (&gate_changed, &gate_lock);
  pthread_mutex_unlock (&gate_lock);
}

static void
gated_process (const csfk_frame *frame, const void *params)
{
  pthread_mutex_lock (&gate_lock);
  gate_waiting++;
  pthread_cond_broadcast (&gate_changed);
  while (gate_is_closed)
    pthread_cond_wait (&gate_changed, &gate_lock);
  gate_waiting--;
  pthread_mutex_unlock (&gate_lock);
  xor_process (frame, params);
  pthread_mutex_lock (&gate_lock);
  gate_passed++;
  pthread_cond_broadcast (&gate_changed);
  pthread_mutex_unlock (&gate_lock);
}

static const unsigned char no_code[] = "no device code: the fake driver looks kernels up by name";
static const csfk_blob blob = { no_code, sizeof no_code };

#define ANY_FORMAT { CSFK_FORMAT_GRAY8, CSFK_FORMAT_NV12, CSFK_FORMAT_I420, CSFK_FORMAT_RGB }

const csfk_kernel xor_kernel = {
  .abi = CSFK_ABI,
  .name = "testxor",
  .description = "Exclusive or with a key",
  .formats = ANY_FORMAT,
  .params_size = sizeof (xor_params),
  .process = xor_process,
  .enqueue = xor_enqueue,
  .device_code = &blob,
};

const csfk_kernel gated_kernel = {
  .abi = CSFK_ABI,
  .name = "testgated",
  .description = "Exclusive or with a key, once the gate is open",
  .formats = ANY_FORMAT,
  .params_size = sizeof (xor_params),
  .process = gated_process,
  .enqueue = gated_enqueue,
  .device_code = &blob,
};

/* ---- memory ---------------------------------------------------------------------------------- */

static int
aligned (int bytes, int align)
{
  return align <= 1 ? bytes : (bytes + align - 1) / align * align;
}

/* Strides and plane starts in one block.  Returns its size. */
static size_t
lay_out (csfk_image *image, size_t *offset, int align)
{
  size_t size = 0;

  for (int p = 0; p < image->n_planes; p++) {
    image->plane[p].stride = aligned (image->plane[p].row_bytes, align);
    offset[p] = size;
    size += (size_t) image->plane[p].stride * (size_t) image->plane[p].rows;
  }
  return size;
}

static void
make_layout (csf_layout *layout, const options *wanted)
{
  csfk_image_init (&layout->image, wanted->format, wanted->width, wanted->height);
  layout->size = lay_out (&layout->image, layout->offset, wanted->device_align);
}

static unsigned char *
get_memory (fixture *self, size_t bytes, bool pageable, csf_hostblock **block)
{
  unsigned char *memory;

  if (pageable) {
    *block = NULL;
    memory = malloc (bytes);
  } else {
    *block = csf_hostpool_alloc (self->pool, bytes);
    CHECK (*block != NULL);
    CHECK (fake == NULL || csf_hostblock_is_pinned (*block));
    memory = csf_hostblock_data (*block);
  }
  CHECK (memory != NULL);
  return memory;
}

static void
place (csfk_image *image, const options *wanted, int align, unsigned char *memory)
{
  size_t offset[CSFK_MAX_PLANES];

  csfk_image_init (image, wanted->format, wanted->width, wanted->height);
  lay_out (image, offset, align);
  for (int p = 0; p < image->n_planes; p++)
    image->plane[p].data = memory + offset[p];
}

static size_t
bytes_for (const options *wanted, int align)
{
  csfk_image image;
  size_t offset[CSFK_MAX_PLANES];

  csfk_image_init (&image, wanted->format, wanted->width, wanted->height);
  return lay_out (&image, offset, align);
}

/* ---- fixture --------------------------------------------------------------------------------- */

csf_device *
open_device (void)
{
  csf_error error = { 0 };
  csf_device *device = NULL;
  csf_status status =
      csf_device_open (fake != NULL ? CSF_BACKEND_CUDA : CSF_BACKEND_CPU, -1, &device, &error);

  if (status != CSF_OK)
    check_failed (__FILE__, __LINE__, "device: %s", error.text);
  return device;
}

static void
release (void *context, void *user)
{
  fixture *self = context;
  const test_frame *sent = user;

  CHECK (self->n_released < sizeof self->released / sizeof self->released[0]);
  self->released[self->n_released++] = sent->number;
}

static void
set_defaults (options *wanted)
{
  wanted->format = wanted->format ? wanted->format : CSFK_FORMAT_GRAY8;
  wanted->width = wanted->width ? wanted->width : 64;
  wanted->height = wanted->height ? wanted->height : 48;
  wanted->streams = wanted->streams ? wanted->streams : 3;
  wanted->n_frames = wanted->n_frames ? wanted->n_frames : wanted->streams + 1;
  wanted->kernel = wanted->kernel ? wanted->kernel : &xor_kernel;
  wanted->pinned_limit = wanted->pinned_limit ? wanted->pinned_limit : UINT64_C (1) << 30;
}

void
fixture_prepare (fixture *self, const options *wanted)
{
  static bool added;
  csf_error error = { 0 };

  if (fake != NULL && !added) {
    fake->add_kernel (&xor_kernel);
    fake->add_kernel (&gated_kernel);
    added = true;
  }
  memset (self, 0, sizeof *self);
  self->options = *wanted;
  set_defaults (&self->options);
  self->device = open_device ();
  CHECK_INT (csf_hostpool_create (self->device, self->options.pinned_limit, &self->pool, &error),
      CSF_OK);
  self->frames = calloc (self->options.n_frames, sizeof *self->frames);
  CHECK (self->frames != NULL);
  for (unsigned i = 0; i < self->options.n_frames; i++) {
    test_frame *f = &self->frames[i];

    f->in_bytes = bytes_for (&self->options, self->options.in_align);
    f->out_bytes = bytes_for (&self->options, self->options.out_align);
    f->in_memory = get_memory (self, f->in_bytes, self->options.pageable_in, &f->in_block);
    f->out_memory = get_memory (self, f->out_bytes, self->options.pageable_out, &f->out_block);
    place (&f->in, &self->options, self->options.in_align, f->in_memory);
    place (&f->out, &self->options, self->options.out_align, f->out_memory);
  }
  self->config.device = self->device;
  self->config.hostpool = self->pool;
  self->config.kernel = self->options.kernel;
  self->config.num_streams = self->options.streams;
  make_layout (&self->config.in, &self->options);
  make_layout (&self->config.out, &self->options);
  self->config.release = release;
  self->config.context = self;
}

void
fixture_open (fixture *self, const options *wanted)
{
  csf_error error = { 0 };

  fixture_prepare (self, wanted);
  if (csf_engine_create (&self->config, &self->engine, &error) != CSF_OK)
    check_failed (__FILE__, __LINE__, "engine: %s", error.text);
}

void
fixture_finish (fixture *self)
{
  for (unsigned i = 0; i < self->options.n_frames; i++) {
    test_frame *f = &self->frames[i];

    if (f->in_block == NULL)
      free (f->in_memory);
    if (f->out_block == NULL)
      free (f->out_memory);
    csf_hostblock_unref (f->in_block);
    csf_hostblock_unref (f->out_block);
  }
  free (self->frames);
  csf_hostpool_unref (self->pool);
  csf_device_unref (self->device);
}

void
fixture_close (fixture *self)
{
  csf_error error = { 0 };

  if (csf_engine_destroy (self->engine, CLOSE_NS, &error) != CSF_OK)
    check_failed (__FILE__, __LINE__, "destroy: %s", error.text);
  fixture_finish (self);
}

/* ---- frames ---------------------------------------------------------------------------------- */

static unsigned char
pattern (uint64_t number, int p, int y, int x)
{
  return (unsigned char) (number * 37 + (uint64_t) (p * 101 + y * 13 + x * 3 + (x * y >> 3)));
}

test_frame *
fixture_fill (fixture *self, uint64_t number)
{
  test_frame *f = &self->frames[number % self->options.n_frames];

  f->number = number;
  f->params.key = (int) (number * 73 & 0xff);
  f->params.delay_us = 0;
  memset (f->in_memory, GUARD, f->in_bytes);
  memset (f->out_memory, UNWRITTEN, f->out_bytes);
  for (int p = 0; p < f->in.n_planes; p++)
    for (int y = 0; y < f->in.plane[p].rows; y++)
      for (int x = 0; x < f->in.plane[p].row_bytes; x++)
        f->in.plane[p].data[y * f->in.plane[p].stride + x] = pattern (number, p, y, x);
  return f;
}

csf_job
fixture_job (const fixture *self, const test_frame *sent)
{
  csf_job job = {
    .frame = sent->number,
    .in = sent->in,
    .out = sent->out,
    .in_pinned = sent->in_block != NULL && csf_hostblock_is_pinned (sent->in_block),
    .out_pinned = sent->out_block != NULL && csf_hostblock_is_pinned (sent->out_block),
    .params = self->options.params != NULL ? self->options.params : &sent->params,
    .user = (void *) sent,
  };

  return job;
}

test_frame *
fixture_submit (fixture *self, uint64_t number)
{
  csf_error error = { 0 };
  csf_job job;
  test_frame *f;

  CHECK_INT (csf_engine_wait_free (self->engine), CSF_OK);
  f = fixture_fill (self, number);
  job = fixture_job (self, f);
  if (csf_engine_submit (self->engine, &job, NULL, &error) != CSF_OK)
    check_failed (__FILE__, __LINE__, "submit %llu: %s", (unsigned long long) number, error.text);
  return f;
}

void
frame_check (const fixture *self, const test_frame *received)
{
  for (int p = 0; p < received->out.n_planes; p++) {
    const csfk_plane *plane = &received->out.plane[p];

    for (int y = 0; y < plane->rows; y++)
      for (int x = 0; x < plane->stride; x++) {
        int actual = plane->data[y * plane->stride + x];
        int expected = x >= plane->row_bytes ? UNWRITTEN
            : pattern (received->number, p, y, x) ^ received->params.key;

        if (actual != expected)
          check_failed (__FILE__, __LINE__, "frame %llu, plane %d, row %d, byte %d of %d: "
              "0x%02x, expected 0x%02x", (unsigned long long) received->number, p, y, x,
              plane->row_bytes, actual, expected);
      }
  }
}

uint64_t
frame_hash (const test_frame *received)
{
  uint64_t hash = 0xcbf29ce484222325ULL;

  for (int p = 0; p < received->out.n_planes; p++)
    for (int y = 0; y < received->out.plane[p].rows; y++)
      for (int x = 0; x < received->out.plane[p].row_bytes; x++) {
        hash ^= received->out.plane[p].data[y * received->out.plane[p].stride + x];
        hash *= 0x100000001b3ULL;
      }
  return hash;
}

void
fixture_expect (fixture *self, uint64_t number)
{
  csf_result result;

  CHECK_INT (csf_engine_retire (self->engine, &result), CSF_OK);
  if (result.status != CSF_OK)
    check_failed (__FILE__, __LINE__, "frame %llu: %s", (unsigned long long) result.frame,
        result.error.text);
  CHECK_INT (result.frame, number);
  CHECK (result.user == &self->frames[number % self->options.n_frames]);
  CHECK (!result.discarded);
  frame_check (self, result.user);
}

void
fixture_stream (fixture *self, uint64_t first, unsigned count, unsigned depth)
{
  uint64_t retired = first;

  for (uint64_t number = first; number < first + count; number++) {
    while (number - retired >= depth)
      fixture_expect (self, retired++);
    fixture_submit (self, number);
  }
  while (retired < first + count)
    fixture_expect (self, retired++);
}
