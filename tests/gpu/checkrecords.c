/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Records on a real GPU: frames of which each has any number of them up to 100,000, appended by as many threads,
 * in each kind of memory.  Every record arrives, once, on its own frame, and after the largest number was seen
 * nothing grows.  The kernel is compiled here, by NVRTC.  usage: checkrecords [FRAMES] */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/hostpool.h"
#include "engine/nvrtc.h"
#include "kernels/format.h"
#include "kernels/module.h"

#define SKIPPED 77
#define STREAMS 3
#define MOST 100000u
/* The frame with the most; after the one that follows it nothing may grow. */
#define LARGEST 20
#define WAIT_NS UINT64_C (10000000000)

typedef struct record
{
  unsigned frame, index, check;
} record;

/* What the first bytes of a picture say. */
typedef struct head
{
  unsigned frame, n;
} head;

static const char source_text[] =
    "#include <cudastreamfilter/kernel.h>\n"
    "struct record { unsigned frame, index, check; };\n"
    "extern \"C\" __global__ void csfk_find (const csfk_frame frame)\n"
    "{\n"
    "  const csfk_plane &in = frame.in.plane[0], &out = frame.out.plane[0];\n"
    "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  if (i < in.stride * in.rows) out.data[i] = in.data[i];\n"
    "}\n"
    "extern \"C\" __global__ void csfk_find_emit (const csfk_frame frame)\n"
    "{\n"
    "  const unsigned *head = (const unsigned *) frame.out.plane[0].data;\n"
    "  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  if (i >= head[1]) return;\n"
    "  record *one = (record *) csfk_append (&frame.records);\n"
    "  if (one) *one = { head[0], i, head[0] * 2654435761u ^ i * 40503u };\n"
    "}\n";

static csf_device *device;
static csfk_blob code;

static void fail (const char *format, ...) __attribute__ ((noreturn, format (printf, 1, 2)));

static void
fail (const char *format, ...)
{
  va_list args;

  va_start (args, format);
  fputs ("FAILED: ", stderr);
  vfprintf (stderr, format, args);
  fputs ("\n", stderr);
  va_end (args);
  exit (1);
}

/* ---- the kernel ------------------------------------------------------------------------------ */

static int
launch (const csfk_frame *frame, csfk_launcher *launcher, const char *symbol, unsigned threads)
{
  return launcher->launch (launcher, symbol, (csfk_dim) {(threads + 255) / 256, 1, 1},
      (csfk_dim) {256, 1, 1}, 0, frame, sizeof *frame);
}

static int
enqueue (const csfk_frame *frame, const void *params, csfk_launcher *launcher)
{
  const csfk_plane *plane = &frame->in.plane[0];

  return launch (frame, launcher, "csfk_find", (unsigned) (plane->stride * plane->rows));
}

static int
emit (const csfk_frame *frame, const void *params, csfk_launcher *launcher)
{
  return launch (frame, launcher, "csfk_find_emit", MOST);
}

static const csfk_kernel kernel = {
  .abi = CSFK_ABI,
  .name = "find",
  .description = "As many records as the picture says",
  .formats = {CSFK_FORMAT_GRAY8},
  .enqueue = enqueue,
  .record_size = sizeof (record),
  .record_name = "test",
  .emit = emit,
  .device_code = &code,
};

static void
compile (void)
{
  const csf_device_info *info = csf_device_get_info (device);
  const csf_nvrtc_header header = { "cudastreamfilter/kernel.h", (const char *) csfk_blob_contract.data };
  const csf_nvrtc_source source = { "find.cu", source_text, &header, 1, NULL, 0 };
  char target[CSF_NVRTC_TARGET_BYTES], *log = NULL;
  unsigned char *bytes;
  csf_error error;
  size_t size;

  if (csf_nvrtc_get_target (info->capability, info->driver_version, target, &error) != CSF_OK
      || csf_nvrtc_compile (&source, target, &bytes, &size, &log, &error) != CSF_OK)
    fail ("%s\n%s", error.text, log != NULL ? log : "");
  free (log);
  code.data = bytes;
  code.size = size;
}

/* ---- frames ------------------------------------------------------------------------------------ */

typedef struct fixture
{
  csf_config config;
  csf_engine *engine;
  csfk_image shape;
  csf_hostblock *in[STREAMS + 1], *out[STREAMS + 1];
} fixture;

static void
ignore (void *context, void *user)
{
}

static void
open_fixture (fixture *self, csf_metadata_memory memory)
{
  csf_layout *layout = &self->config.in;
  csf_error error;

  memset (self, 0, sizeof *self);
  csfk_image_init (&self->shape, CSFK_FORMAT_GRAY8, 64, 64);
  layout->image = self->shape;
  layout->image.plane[0].stride = 64;
  layout->size = 64 * 64;
  self->config.out = *layout;
  self->config.device = device;
  self->config.kernel = &kernel;
  self->config.num_streams = STREAMS;
  self->config.metadata_memory = memory;
  self->config.release = ignore;
  if (csf_hostpool_create (device, 0, &self->config.hostpool, &error) != CSF_OK
      || csf_engine_create (&self->config, &self->engine, &error) != CSF_OK)
    fail ("%s", error.text);
  for (unsigned i = 0; i <= STREAMS; i++) {
    self->in[i] = csf_hostpool_alloc (self->config.hostpool, layout->size);
    self->out[i] = csf_hostpool_alloc (self->config.hostpool, layout->size);
    if (self->in[i] == NULL || self->out[i] == NULL)
      fail ("no memory left");
    memset (csf_hostblock_data (self->in[i]), 0xa5, layout->size);
  }
}

static void
close_fixture (fixture *self)
{
  csf_error error;

  if (csf_engine_destroy (self->engine, WAIT_NS, &error) != CSF_OK)
    fail ("%s", error.text);
  for (unsigned i = 0; i <= STREAMS; i++) {
    csf_hostblock_unref (self->in[i]);
    csf_hostblock_unref (self->out[i]);
  }
  csf_hostpool_unref (self->config.hostpool);
}

static void
submit (fixture *self, unsigned number, unsigned n)
{
  csf_hostblock *in = self->in[number % (STREAMS + 1)], *out = self->out[number % (STREAMS + 1)];
  csf_job job = {
    .frame = number,
    .in = self->shape,
    .out = self->shape,
    .in_pinned = csf_hostblock_is_pinned (in),
    .out_pinned = csf_hostblock_is_pinned (out),
  };
  csf_error error;

  memcpy (csf_hostblock_data (in), &(head) {number, n}, sizeof (head));
  csfk_image_place (&job.in, csf_hostblock_data (in), 64);
  csfk_image_place (&job.out, csf_hostblock_data (out), 64);
  if (csf_engine_wait_free (self->engine) != CSF_OK
      || csf_engine_submit (self->engine, &job, NULL, &error) != CSF_OK)
    fail ("frame %u: %s", number, error.text);
}

static void
expect (fixture *self, unsigned number, unsigned n)
{
  static unsigned char seen[MOST];
  const record *records;
  csf_result result;

  if (csf_engine_retire (self->engine, &result) != CSF_OK || result.status != CSF_OK)
    fail ("frame %u: %s", number, result.error.text);
  if (result.frame != number || result.n_records != n || result.records_wanted != n)
    fail ("expected frame %u with %u records, got frame %llu with %u of %u", number, n,
        (unsigned long long) result.frame, result.n_records, result.records_wanted);
  memset (seen, 0, n);
  records = result.records;
  for (unsigned i = 0; i < n; i++) {
    const record *one = &records[i];

    if (one->frame != number || one->index >= n || seen[one->index]
        || one->check != (number * 2654435761u ^ one->index * 40503u))
      fail ("frame %u: record %u is number %u of frame %u, or came twice", number, i, one->index, one->frame);
    seen[one->index] = 1;
  }
  free (result.records);
}

static unsigned
next_random (unsigned *random)
{
  *random = *random * 1664525u + 1013904223u;
  return *random >> 8;
}

static void
check_memory (csf_metadata_memory memory, const char *name, unsigned n_frames)
{
  unsigned counts[STREAMS], random = memory + 1, submitted = 0;
  uint64_t total = 0, growths = 0;
  csf_engine_stats stats;
  fixture self;

  open_fixture (&self, memory);
  for (unsigned done = 0; done < n_frames; done++) {
    while (submitted < n_frames && submitted < done + STREAMS) {
      unsigned n = submitted == LARGEST ? MOST : next_random (&random) % 4 != 0 ?
          next_random (&random) % 50 : next_random (&random) % (MOST + 1);

      counts[submitted % STREAMS] = n;
      total += n;
      submit (&self, submitted++, n);
    }
    expect (&self, done, counts[done % STREAMS]);
    csf_engine_get_stats (self.engine, &stats, false);
    if (done <= LARGEST + 1)
      growths = stats.growths;
    else if (stats.growths != growths)
      fail ("%s: it grew again at frame %u", name, done);
  }
  if (stats.records != total || growths == 0)
    fail ("%s: %llu records of %llu, %llu growths", name, (unsigned long long) stats.records,
        (unsigned long long) total, (unsigned long long) growths);
  printf ("ok %-7s %u frames, %llu records, %llu growths\n", name, n_frames, (unsigned long long) total,
      (unsigned long long) growths);
  fflush (stdout);
  close_fixture (&self);
}

int
main (int argc, char **argv)
{
  const unsigned n_frames = argc > 1 ? (unsigned) atoi (argv[1]) : 2000;
  csf_error error;

  if (n_frames <= LARGEST + 2)
    fail ("expected more than %d frames, got \"%s\"", LARGEST + 2, argv[1]);
  if (csf_device_open (CSF_BACKEND_CUDA, -1, &device, &error) != CSF_OK) {
    printf ("skipped: %s\n", error.text);
    return SKIPPED;
  }
  compile ();
  check_memory (CSF_METADATA_AUTO, "auto", n_frames);
  check_memory (CSF_METADATA_MANAGED, "managed", n_frames);
  check_memory (CSF_METADATA_PINNED, "pinned", n_frames);
  check_memory (CSF_METADATA_DEVICE, "device", n_frames);
  free ((void *) code.data);
  csf_device_unref (device);
  return 0;
}
