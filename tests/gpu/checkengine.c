/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the stream engine promises, on a real GPU with the kernels that users run: order, the same
 * pixels with any number of streams, foreign memory, and nothing left behind.  The suites in
 * tests/engine need the fake driver for what a real one cannot be made to do; this needs none. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "engine/cuda_dl.h"
#include "engine/hostpool.h"
#include "kernels/format.h"

#define SKIPPED 77
#define CANARY 0xc5
#define WAIT_NS UINT64_C (10000000000)
#define MAX_BUFFERS (CSF_MAX_STREAMS + 1)
/* Lives in the driver's caches after the first use and is no leak. */
#define DRIVER_SLACK ((size_t) 64 << 20)

static csf_device *device;
static uint64_t seed;
static const char *running = "start";

#define CHECK(condition, ...) \
  do { \
    if (!(condition)) \
      fail (__LINE__, #condition, __VA_ARGS__); \
  } while (0)

static void fail (int line, const char *condition, const char *format, ...)
    __attribute__ ((noreturn, format (printf, 3, 4)));

static void
fail (int line, const char *condition, const char *format, ...)
{
  va_list args;

  fprintf (stderr, "checkengine.c:%d: %s: expected %s: ", line, running, condition);
  va_start (args, format);
  vfprintf (stderr, format, args);
  va_end (args);
  fprintf (stderr, " (seed %llu)\n", (unsigned long long) seed);
  exit (1);
}

/* Noise that depends on the seed, the frame's number and the place alone. */
static unsigned char
noise (uint64_t frame, uint64_t place)
{
  uint64_t x = (seed + frame * 0x9e3779b97f4a7c15u) ^ (place + 1) * 0xbf58476d1ce4e5b9u;

  x ^= x >> 31;
  x *= 0x94d049bb133111ebu;
  return (unsigned char) (x >> 56);
}

/* ---- an engine with its frames ------------------------------------------------------------- */

typedef enum memory_kind
{
  PINNED,
  PAGEABLE,
  REGISTERED
} memory_kind;

typedef struct setup
{
  const char *kernel, *format;
  int width, height, align;     /* align: of strides in host memory, bytes */
  unsigned streams;
  memory_kind memory;
  uint64_t pinned_limit;        /* 0: 1 GiB */
} setup;

typedef struct buffer
{
  csf_hostblock *block;
  void *mapped;                 /* or NULL */
  unsigned char *data;
  csfk_image image;
} buffer;

typedef struct fixture
{
  setup wanted;
  csf_config config;
  csf_engine *engine;
  csfk_image shape;             /* host image, data from NULL */
  size_t size;
  buffer in[MAX_BUFFERS], out[MAX_BUFFERS];
  unsigned n_buffers, released;
  unsigned char params[CSFK_MAX_PARAMS] __attribute__ ((aligned (16)));
} fixture;

static void
count_release (void *context, void *user)
{
  ((fixture *) context)->released++;
}

static void
open_buffer (fixture *self, buffer *b)
{
  if (self->wanted.memory == PINNED) {
    b->block = csf_hostpool_alloc (self->config.hostpool, self->size);
    CHECK (b->block != NULL, "no memory");
    b->data = csf_hostblock_data (b->block);
  } else {
    b->mapped = mmap (NULL, self->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK (b->mapped != MAP_FAILED, "no memory");
    b->data = b->mapped;
    if (self->wanted.memory == REGISTERED) {
      b->block = csf_hostpool_register (self->config.hostpool, b->mapped, self->size);
      CHECK (b->block != NULL, "the driver does not register memory in place");
    }
  }
  b->image = self->shape;
  csfk_image_place (&b->image, b->data, self->wanted.align);
}

static void
close_buffer (fixture *self, buffer *b)
{
  csf_hostblock_unref (b->block);
  if (b->mapped != NULL)
    munmap (b->mapped, self->size);
}

/* Device memory as tight as it gets, whatever the host's strides are. */
static void
set_layout (fixture *self)
{
  csf_layout *layout = &self->config.in;

  layout->image = self->shape;
  for (int p = 0; p < layout->image.n_planes; p++) {
    csfk_plane *plane = &layout->image.plane[p];

    plane->stride = (plane->row_bytes + 3) & ~3;
    layout->offset[p] = layout->size;
    layout->size += (size_t) plane->stride * (size_t) plane->rows;
  }
  self->config.out = *layout;
}

static fixture *
open_fixture (const setup *wanted)
{
  fixture *self = calloc (1, sizeof *self);
  csfk_image placed;
  csf_error error;
  uint64_t limit = wanted->pinned_limit != 0 ? wanted->pinned_limit : (uint64_t) 1 << 30;

  CHECK (self != NULL, "no memory");
  self->wanted = *wanted;
  if (self->wanted.align == 0)
    self->wanted.align = 4;
  csfk_image_init (&self->shape, csfk_format_from_name (wanted->format), wanted->width,
      wanted->height);
  placed = self->shape;
  self->size = csfk_image_place (&placed, NULL, self->wanted.align);
  self->config.device = device;
  self->config.kernel = csfk_kernel_find (wanted->kernel);
  self->config.num_streams = wanted->streams;
  self->config.release = count_release;
  self->config.context = self;
  set_layout (self);
  csfk_params_init (self->config.kernel, self->params);
  CHECK (csf_hostpool_create (device, limit, &self->config.hostpool, &error) == CSF_OK, "%s",
      error.text);
  CHECK (csf_engine_create (&self->config, &self->engine, &error) == CSF_OK, "%s", error.text);
  self->n_buffers = wanted->streams + 1;
  for (unsigned i = 0; i < self->n_buffers; i++) {
    open_buffer (self, &self->in[i]);
    open_buffer (self, &self->out[i]);
  }
  return self;
}

static void
close_fixture (fixture *self)
{
  csf_error error;

  CHECK (csf_engine_destroy (self->engine, WAIT_NS, &error) == CSF_OK, "%s", error.text);
  for (unsigned i = 0; i < self->n_buffers; i++) {
    close_buffer (self, &self->in[i]);
    close_buffer (self, &self->out[i]);
  }
  csf_hostpool_unref (self->config.hostpool);
  free (self);
}

/* ---- frames -------------------------------------------------------------------------------- */

static bool
is_pinned (const buffer *b)
{
  return b->block != NULL && csf_hostblock_is_pinned (b->block);
}

static void
submit (fixture *self, uint64_t number)
{
  buffer *in = &self->in[number % self->n_buffers], *out = &self->out[number % self->n_buffers];
  /* For the kernels that read them. */
  const csfk_region regions[2] = {
    {.x = (int) (number % 40),.y = 5,.width = 50,.height = 40,.confidence = 0.5f,.label = "face"},
    {.x = 60,.y = (int) (number % 30),.width = 70,.height = 33,.confidence = -1,.track_id = 7},
  };
  csf_job job = {
    .frame = number,
    .in = in->image,
    .out = out->image,
    .in_pinned = is_pinned (in),
    .out_pinned = is_pinned (out),
    .regions = regions,
    .n_regions = (unsigned) (number % 3),
    .params = self->params,
    .user = out,
  };
  csf_error error;

  for (size_t i = 0; i < self->size; i++)
    in->data[i] = noise (number, i);
  memset (out->data, CANARY, self->size);
  CHECK (csf_engine_wait_free (self->engine) == CSF_OK, "frame %llu", (unsigned long long) number);
  CHECK (csf_engine_submit (self->engine, &job, NULL, &error) == CSF_OK, "%s", error.text);
}

static buffer *
retire (fixture *self, uint64_t number)
{
  csf_result result;

  CHECK (csf_engine_retire (self->engine, &result) == CSF_OK, "frame %llu",
      (unsigned long long) number);
  CHECK (result.status == CSF_OK, "%s", result.error.text);
  CHECK (result.frame == number, "frame %llu came, not %llu", (unsigned long long) result.frame,
      (unsigned long long) number);
  free (result.records);
  return result.user;
}

/* FNV-1a of the samples; the bytes between the rows must be as they were. */
static uint64_t
hash_output (const fixture *self, const buffer *b)
{
  uint64_t hash = 0xcbf29ce484222325u;

  for (int p = 0; p < b->image.n_planes; p++) {
    const csfk_plane *plane = &b->image.plane[p];

    for (int y = 0; y < plane->rows; y++) {
      const unsigned char *row = plane->data + (size_t) y * (size_t) plane->stride;

      for (int x = 0; x < plane->row_bytes; x++)
        hash = (hash ^ row[x]) * 0x100000001b3u;
      for (int x = plane->row_bytes; x < plane->stride; x++)
        CHECK (row[x] == CANARY, "plane %d row %d byte %d beside the row was written", p, y, x);
    }
  }
  return hash;
}

/* `count` frames, as many in flight as there are streams; hashes may be NULL. */
static void
stream (fixture *self, unsigned count, uint64_t *hashes)
{
  for (unsigned i = 0; i < count + self->wanted.streams; i++) {
    if (i >= self->wanted.streams) {
      unsigned number = i - self->wanted.streams;
      uint64_t hash = hash_output (self, retire (self, number));

      if (hashes != NULL)
        hashes[number] = hash;
    }
    if (i < count)
      submit (self, i);
  }
}

/* Hashes of what the kernel's C function makes of the same frames. */
static void
stream_on_host (fixture *self, unsigned count, uint64_t *hashes)
{
  buffer *in = &self->in[0], *out = &self->out[0];
  csfk_frame frame = {.in = in->image,.out = out->image };

  for (unsigned number = 0; number < count; number++) {
    for (size_t i = 0; i < self->size; i++)
      in->data[i] = noise (number, i);
    memset (out->data, CANARY, self->size);
    self->config.kernel->process (&frame, self->params);
    hashes[number] = hash_output (self, out);
  }
}

/* ---- tests --------------------------------------------------------------------------------- */

#define N_FRAMES 24u

static void
expect_same (const uint64_t *a, const uint64_t *b, unsigned n, const char *what)
{
  for (unsigned i = 0; i < n; i++)
    CHECK (a[i] == b[i], "%s: frame %u differs", what, i);
}

static bool
takes_format (const csfk_kernel *kernel, const char *name)
{
  csfk_format format = csfk_format_from_name (name);

  for (int i = 0; i < CSFK_MAX_FORMATS && kernel->formats[i] != CSFK_FORMAT_NONE; i++)
    if (kernel->formats[i] == (int) format)
      return true;
  return false;
}

static void
n_streams_give_what_one_gives (void)
{
  static const char *const formats[] = { "NV12", "I420", "RGBA", "RGB", "GRAY8", NULL };

  for (const csfk_kernel *const *kernel = csfk_kernels; *kernel != NULL; kernel++)
    for (const char *const *format = formats; *format != NULL; format++) {
      uint64_t one[N_FRAMES], many[N_FRAMES];
      setup wanted = {.kernel = (*kernel)->name,.format = *format,.width = 161,.height = 91 };

      if (!takes_format (*kernel, *format))
        continue;
      for (unsigned streams = 1; streams <= 8; streams += streams < 3 ? 1 : 5) {
        fixture *self;

        wanted.streams = streams;
        self = open_fixture (&wanted);
        stream (self, N_FRAMES, streams == 1 ? one : many);
        if (streams > 1)
          expect_same (one, many, N_FRAMES, *format);
        close_fixture (self);
      }
    }
}

/* copy is exact on every device, so any wrong byte is the transfer's. */
static void
transfers_change_nothing (void)
{
  static const setup setups[] = {
    {.format = "NV12",.width = 1920,.height = 1080,.streams = 3},
    {.format = "NV12",.width = 321,.height = 241,.align = 64,.streams = 3},
    {.format = "I420",.width = 322,.height = 243,.align = 32,.streams = 2},
    {.format = "RGB",.width = 641,.height = 7,.align = 256,.streams = 4},
    {.format = "RGBA",.width = 1,.height = 1,.streams = 3},
    {.format = "P010_10LE",.width = 127,.height = 65,.align = 16,.streams = 3},
    {.format = "NV12",.width = 640,.height = 360,.streams = 3,.memory = PAGEABLE},
    {.format = "I420",.width = 321,.height = 241,.align = 64,.streams = 3,.memory = PAGEABLE},
    {.format = "NV12",.width = 640,.height = 360,.streams = 3,.memory = REGISTERED},
    {.format = "RGBA",.width = 64,.height = 64,.streams = CSF_MAX_STREAMS},
    {.format = "NV12",.width = 640,.height = 360,.streams = 3,.pinned_limit = 4096},
  };

  for (size_t i = 0; i < sizeof setups / sizeof setups[0]; i++) {
    uint64_t expected[2 * CSF_MAX_STREAMS], came[2 * CSF_MAX_STREAMS];
    setup wanted = setups[i];
    unsigned count = 2 * wanted.streams;
    csf_engine_stats stats;
    fixture *self;

    wanted.kernel = "copy";
    self = open_fixture (&wanted);
    stream_on_host (self, count, expected);
    stream (self, count, came);
    expect_same (expected, came, count, wanted.format);
    csf_engine_get_stats (self->engine, &stats, false);
    /* Each frame is staged in and left to the driver on the way out, unless memory is pinned. */
    CHECK (stats.host_copies == (is_pinned (&self->in[0]) ? 0 : 2 * count), "setup %zu: %llu",
        i, (unsigned long long) stats.host_copies);
    close_fixture (self);
  }
}

static void
discarded_frames_say_so (void)
{
  setup wanted = {.kernel = "copy",.format = "NV12",.width = 640,.height = 360,.streams = 3 };
  fixture *self = open_fixture (&wanted);
  csf_result result;

  for (unsigned i = 0; i < 3; i++)
    submit (self, i);
  csf_engine_discard (self->engine);
  for (unsigned i = 0; i < 3; i++) {
    CHECK (csf_engine_retire (self->engine, &result) == CSF_OK, "frame %u", i);
    CHECK (result.status == CSF_OK && result.discarded && result.frame == i, "frame %u", i);
  }
  CHECK (csf_engine_retire (self->engine, &result) == CSF_EMPTY, "something is left");
  submit (self, 3);
  retire (self, 3);
  close_fixture (self);
}

static void
interrupted_waits_come_back (void)
{
  setup wanted = {.kernel = "copy",.format = "NV12",.width = 1920,.height = 1080,.streams = 1 };
  fixture *self = open_fixture (&wanted);
  csf_result result;

  submit (self, 0);
  csf_engine_set_interrupted (self->engine, true);
  CHECK (csf_engine_wait_free (self->engine) == CSF_INTERRUPTED, "wait_free");
  CHECK (csf_engine_retire (self->engine, &result) == CSF_INTERRUPTED, "retire");
  csf_engine_set_interrupted (self->engine, false);
  retire (self, 0);
  close_fixture (self);
}

static void
frames_in_flight_are_released (void)
{
  setup wanted = {.kernel = "gaussianblur",.format = "RGBA",.width = 1920,.height = 1080,
    .streams = 8
  };
  fixture *self = open_fixture (&wanted);
  csf_error error;

  for (unsigned i = 0; i < 8; i++)
    submit (self, i);
  CHECK (csf_engine_destroy (self->engine, WAIT_NS, &error) == CSF_OK, "%s", error.text);
  self->engine = NULL;
  CHECK (self->released == 8, "%u of 8 released", self->released);
  close_fixture (self);
}

/* The margin allows for timer steps of half a microsecond. */
static void
stage_times_are_real (void)
{
  setup wanted = {.kernel = "copy",.format = "NV12",.width = 1920,.height = 1080,.streams = 3 };
  fixture *self = open_fixture (&wanted);
  csf_engine_stats stats;
  uint64_t upload, kernel, download, longest;

  stream (self, 64, NULL);
  csf_engine_get_stats (self->engine, &stats, true);
  CHECK (stats.timed > 0, "no frame was timed");
  upload = stats.part[CSF_PART_UPLOAD].mean_ns;
  kernel = stats.part[CSF_PART_KERNEL].mean_ns;
  download = stats.part[CSF_PART_DOWNLOAD].mean_ns;
  CHECK (upload > 0 && kernel > 0 && download > 0, "%llu, %llu, %llu ns",
      (unsigned long long) upload, (unsigned long long) kernel, (unsigned long long) download);
  longest = upload > download ? upload : download;
  CHECK (longest <= stats.frame_ns + stats.frame_ns / 10 + 2000,
      "a stage of %llu ns in a frame of %llu ns", (unsigned long long) longest,
      (unsigned long long) stats.frame_ns);
  close_fixture (self);
}

static size_t
free_device_memory (void)
{
  const cuda_driver *cu = cuda_driver_get (NULL);
  cu_context context, ignored;
  size_t bytes = 0, total = 0;
  cu_device number;

  CHECK (cu->DeviceGet (&number, 0) == CU_SUCCESS, "device 0");
  CHECK (cu->DevicePrimaryCtxRetain (&context, number) == CU_SUCCESS, "primary context");
  cu->CtxPushCurrent (context);
  cu->MemGetInfo (&bytes, &total);
  cu->CtxPopCurrent (&ignored);
  cu->DevicePrimaryCtxRelease (number);
  return bytes;
}

static void
opening_again_and_again_leaves_nothing (void)
{
  setup wanted = {.kernel = "sobel",.format = "RGBA",.width = 1920,.height = 1080,.streams = 3 };
  csf_hostpool_stats stats;
  size_t before = 0, after;

  for (unsigned i = 0; i < 24; i++) {
    fixture *self = open_fixture (&wanted);
    csf_hostpool *pool = csf_hostpool_ref (self->config.hostpool);

    submit (self, 0);
    retire (self, 0);
    close_fixture (self);
    csf_hostpool_get_stats (pool, &stats);
    CHECK (stats.pinned_bytes == 0, "%llu bytes pinned", (unsigned long long) stats.pinned_bytes);
    csf_hostpool_unref (pool);
    if (i == 3)
      before = free_device_memory ();
  }
  after = free_device_memory ();
  CHECK (after + DRIVER_SLACK >= before, "%zu bytes of device memory are gone", before - after);
}

static void
host_memory_outlives_its_makers (void)
{
  setup wanted = {.kernel = "copy",.format = "NV12",.width = 640,.height = 360,.streams = 2 };
  fixture *self = open_fixture (&wanted);
  csf_hostblock *block = csf_hostblock_ref (self->out[0].block);
  size_t size = csf_hostblock_size (block);

  stream (self, 4, NULL);
  close_fixture (self);
  memset (csf_hostblock_data (block), 1, size);
  csf_hostblock_unref (block);
}

static void
wrong_device_number_is_refused (void)
{
  csf_device *none = NULL;
  csf_error error;

  CHECK (csf_device_open (CSF_BACKEND_CUDA, 4096, &none, &error) == CSF_ERROR_NO_DEVICE,
      "device 4096 opened");
  CHECK (strstr (error.text, "4096") != NULL, "%s", error.text);
}

/* ---- the program --------------------------------------------------------------------------- */

static const struct
{
  const char *name;
  void (*run) (void);
} tests[] = {
#define TEST(name) { #name, name }
  TEST (transfers_change_nothing),
  TEST (n_streams_give_what_one_gives),
  TEST (discarded_frames_say_so),
  TEST (interrupted_waits_come_back),
  TEST (frames_in_flight_are_released),
  TEST (stage_times_are_real),
  TEST (opening_again_and_again_leaves_nothing),
  TEST (host_memory_outlives_its_makers),
  TEST (wrong_device_number_is_refused),
#undef TEST
};

/* Arguments: names of the tests to run; none: all. */
int
main (int argc, char **argv)
{
  const char *wanted_seed = getenv ("CSF_TEST_SEED");
  csf_error error;

  seed = wanted_seed != NULL ? strtoull (wanted_seed, NULL, 0) : (uint64_t) time (NULL);
  printf ("seed %llu\n", (unsigned long long) seed);
  if (csf_device_open (CSF_BACKEND_CUDA, -1, &device, &error) != CSF_OK) {
    printf ("skipped: %s\n", error.text);
    return SKIPPED;
  }
  printf ("on %s\n", csf_device_get_info (device)->name);
  for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++) {
    bool wanted = argc < 2;

    for (int a = 1; a < argc; a++)
      wanted |= strcmp (argv[a], tests[i].name) == 0;
    if (!wanted)
      continue;
    running = tests[i].name;
    printf ("%s\n", running);
    fflush (stdout);
    alarm (300);
    tests[i].run ();
    alarm (0);
  }
  csf_device_unref (device);
  return 0;
}
