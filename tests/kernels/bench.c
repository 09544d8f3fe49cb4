/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Times every kernel, with the pass that appends its records: on the GPU in bytes moved a second beside a
 * device-to-device copy of the same run, on the CPU in nanoseconds an output pixel of one thread.  Knows the
 * kernels' contract, the device, and of some kernels which parameters and sizes are worth a figure. */
#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum
{
  RUNS = 11,                    /* the median is reported */
  MAX_FRAMES = 512,
  CPU_RUNS = 5,                 /* the best is reported */
  N_REGIONS = 4,
  REGION_SIDE = 200,
  MAX_SETTINGS = 5,
  GATE_COPIES = 32,
  /* Pictures made for a number of corners have a bright dot in some of their squares of this size. */
  DOT_SQUARE = 8
};

/* Frames are used in turn, in and out together this many bytes, so that the last use of one has
 * left every cache. */
static const size_t rotation_bytes = (size_t) 1 << 30;
/* A copy of so many bytes holds the streams back until all launches are queued: what is timed is the GPU,
 * not the thread that launches. */
static const size_t gate_bytes = (size_t) 128 << 20;

/* ---- what is timed --------------------------------------------------------------------------- */

typedef struct setting
{
  const char *name;
  const char *text;             /* NULL: a number */
  double number;
} setting;

/* A variant of a kernel.  Without one a kernel is timed with its defaults in all its formats. */
typedef struct bench_variant
{
  const char *kernel;
  const char *suffix;           /* of the case's name, "" for none */
  setting settings[MAX_SETTINGS];
  /* 0: all formats, the two sizes, the output like the input. */
  int in_format, in_width, in_height;
  int out_format, out_width, out_height;
  unsigned n_records;           /* of a picture made for it; 0: random content */
} bench_variant;

#define BALANCE {"brightness", NULL, 0.1}, {"contrast", NULL, 1.2}, {"saturation", NULL, 1.3}, \
    {"hue", NULL, 0.1}
#define SCALE(suffix, from, from_width, from_height, to, to_width, to_height) \
  {"convertscale", suffix "/method=bilinear", {{"method", "bilinear", 0}}, CSFK_FORMAT_##from, \
      from_width, from_height, CSFK_FORMAT_##to, to_width, to_height, 0}, \
  {"convertscale", suffix "/method=bicubic", {{"method", "bicubic", 0}}, CSFK_FORMAT_##from, \
      from_width, from_height, CSFK_FORMAT_##to, to_width, to_height, 0}

static const bench_variant variants[] = {
  /* With nothing but gamma away from its default there would be less to do. */
  {"videobalance", "/gamma=1", {BALANCE, {"gamma", NULL, 1}}, 0, 0, 0, 0, 0, 0, 0},
  {"videobalance", "/gamma=1.2", {BALANCE, {"gamma", NULL, 1.2}}, 0, 0, 0, 0, 0, 0, 0},
  SCALE ("/to=RGBA", NV12, 3840, 2160, RGBA, 3840, 2160),
  SCALE ("/to=NV12", RGBA, 3840, 2160, NV12, 3840, 2160),
  SCALE ("/to=1920x1080", NV12, 3840, 2160, NV12, 1920, 1080),
  SCALE ("/to=1920x1080", RGBA, 3840, 2160, RGBA, 1920, 1080),
  SCALE ("/to=3840x2160", NV12, 1920, 1080, NV12, 3840, 2160),
  /* Noise is full of corners, which no camera's picture is. */
  {"cornerdetect", "/records=5000", {{0}}, 0, 0, 0, 0, 0, 0, 5000},
  {"cornerdetect", "/records=100000", {{0}}, CSFK_FORMAT_NV12, 3840, 2160, CSFK_FORMAT_NV12, 3840, 2160,
      100000},
};

typedef struct bench_size
{
  int width, height;
} bench_size;

static const bench_size bench_sizes[] = { {1920, 1080}, {3840, 2160} };

typedef struct bench_case
{
  const csfk_kernel *kernel;
  char name[96];                /* kernel, size, format and so on, with slashes between */
  csfk_image in, out;           /* without memory */
  unsigned char params[CSFK_MAX_PARAMS] __attribute__ ((aligned (8)));
  csfk_region regions[N_REGIONS];
  int n_regions;
  unsigned n_records;           /* see bench_variant */
} bench_case;

static void
choose_settings (const csfk_kernel *kernel, const bench_variant *variant, void *params)
{
  csfk_params_init (kernel, params);
  for (int i = 0; i < MAX_SETTINGS && variant->settings[i].name; i++) {
    const setting *chosen = &variant->settings[i];
    csfk_param_result result = chosen->text
        ? csfk_params_set_text (kernel, params, chosen->name, chosen->text, NULL)
        : csfk_params_set (kernel, params, chosen->name, chosen->number, NULL);

    if (result != CSFK_PARAM_OK)
      check_fail ("%s: %s was refused", kernel->name, chosen->name);
  }
  if (kernel->resolve)
    kernel->resolve (params);
}

/* Squares that lie apart, inside the picture. */
static int
place_regions (const csfk_kernel *kernel, const csfk_image *in, csfk_region *regions)
{
  if (!(kernel->flags & CSFK_READS_REGIONS))
    return 0;
  for (int i = 0; i < N_REGIONS; i++) {
    regions[i] = (csfk_region) {
      .x = in->width / 8 + i % 2 * (in->width / 2) + 3,
      .y = in->height / 8 + i / 2 * (in->height / 2) + 5,
      .width = REGION_SIDE,.height = REGION_SIDE,
      .confidence = 0.9f,.id = i,.parent_id = -1,.track_id = i
    };
    strcpy (regions[i].label, "face");
  }
  return N_REGIONS;
}

static void
make_case (bench_case *self, const csfk_kernel *kernel, const bench_variant *variant, int format,
    bench_size size)
{
  const bool fixed = variant->in_format != CSFK_FORMAT_NONE;
  const int in_format = fixed ? variant->in_format : format;

  self->kernel = kernel;
  csfk_image_init (&self->in, in_format, fixed ? variant->in_width : size.width,
      fixed ? variant->in_height : size.height);
  self->out = self->in;
  if (fixed)
    csfk_image_init (&self->out, variant->out_format, variant->out_width, variant->out_height);
  choose_settings (kernel, variant, self->params);
  self->n_regions = place_regions (kernel, &self->in, self->regions);
  self->n_records = variant->n_records;
  snprintf (self->name, sizeof self->name, "%s/%dx%d/%s%s", kernel->name, self->in.width,
      self->in.height, csfk_format_get_info (in_format)->name, variant->suffix);
}

/* n dots on a grey ground with a little noise, each of which is a corner and nothing else is. */
static void
paint_dots (const csfk_image *image, unsigned n)
{
  const csfk_plane *plane = &image->plane[0];
  const size_t pixel_bytes = (size_t) csfk_format_get_info (image->format)->pixel_bytes;
  const size_t columns = (size_t) image->width / DOT_SQUARE;
  const size_t n_squares = columns * ((size_t) image->height / DOT_SQUARE);

  for (int y = 0; y < plane->rows; y++)
    for (int x = 0; x < plane->row_bytes; x++)
      plane->data[(size_t) y * (size_t) plane->stride + (size_t) x] =
          (unsigned char) (64 + check_random () % 16);
  for (size_t i = 0; i < n; i++) {
    size_t square = i * n_squares / n;
    size_t x = square % columns * DOT_SQUARE + DOT_SQUARE / 2;
    size_t y = square / columns * DOT_SQUARE + DOT_SQUARE / 2;

    memset (plane->data + y * (size_t) plane->stride + x * pixel_bytes, 200, pixel_bytes);
  }
}

static void
check_count (const bench_case *one, unsigned count)
{
  if (one->n_records > 0 && count != one->n_records)
    check_fail ("%s has %u records", one->name, count);
}

typedef void (*case_function) (void *data, const bench_case * one);

static void
for_formats (const csfk_kernel *kernel, const bench_variant *variant, bench_size size,
    case_function function, void *data)
{
  static bench_case one;

  for (int f = 0; f < CSFK_MAX_FORMATS && kernel->formats[f] != CSFK_FORMAT_NONE; f++) {
    make_case (&one, kernel, variant, kernel->formats[f], size);
    function (data, &one);
    if (variant->in_format != CSFK_FORMAT_NONE)
      return;
  }
}

/* Every variant of every kernel, or of one; in n_sizes of the sizes unless it has its own. */
static void
for_cases (const csfk_kernel *only, int n_sizes, case_function function, void *data)
{
  for (int k = 0; csfk_kernels[k]; k++) {
    const csfk_kernel *kernel = csfk_kernels[k];
    const bench_variant plain = { .kernel = kernel->name,.suffix = "" };
    bool has_variants = false;

    if (only && kernel != only)
      continue;
    for (int v = 0; v < CHECK_COUNT (variants); v++)
      if (strcmp (variants[v].kernel, kernel->name) == 0) {
        has_variants = true;
        for (int s = 0; s < (variants[v].in_format != CSFK_FORMAT_NONE ? 1 : n_sizes); s++)
          for_formats (kernel, &variants[v], bench_sizes[s], function, data);
      }
    for (int s = 0; s < n_sizes && !has_variants; s++)
      for_formats (kernel, &plain, bench_sizes[s], function, data);
  }
}

/* ---- the GPU --------------------------------------------------------------------------------- */

typedef struct frame_ring
{
  gpu *device;
  const bench_case *one;
  csfk_frame frames[MAX_FRAMES];
  int n_frames, n_streams;
  unsigned state_frames;
  cu_deviceptr workspace[DEVICE_STREAMS];
  /* Each stream's, and its counter behind them. */
  cu_deviceptr records[DEVICE_STREAMS];
  unsigned capacity;
} frame_ring;

typedef struct big_copy
{
  gpu *device;
  cu_deviceptr from, to;
  size_t size;
} big_copy;

static int
compare_doubles (const void *a, const void *b)
{
  double x = *(const double *) a, y = *(const double *) b;

  return x < y ? -1 : x > y;
}

static double
time_median (gpu *device, const big_copy *gate, void (*work) (void *data), void *data)
{
  double times[RUNS];

  work (data);
  work (data);
  device_use_stream (device, 0);
  device_finish (device);
  for (int i = 0; i < RUNS; i++) {
    for (int k = 0; gate && k < GATE_COPIES; k++)
      device_copy (device, gate->to, gate->from, gate->size);
    times[i] = device_time (device, work, data);
  }
  qsort (times, RUNS, sizeof times[0], compare_doubles);
  return times[RUNS / 2];
}

static csfk_records
get_records (const frame_ring *self, int stream)
{
  const unsigned size = self->one->kernel->record_size;
  const cu_deviceptr memory = self->records[stream];

  return (csfk_records) {
    .data = (unsigned char *) (uintptr_t) memory,.capacity = self->capacity,.record_size = size,
    .count = (unsigned *) (uintptr_t) (memory + (size_t) self->capacity * size)
  };
}

/* The streams take the frames in turn, as the element's do; with state and without records there is one
 * stream, for its frames follow one another whatever their streams.  With both, what appends the records may
 * meet the next frame. */
static void
run_rotation (void *data)
{
  const csfk_kernel *kernel = ((frame_ring *) data)->one->kernel;
  frame_ring *self = data;

  for (int i = 0; i < self->n_frames; i++) {
    csfk_frame frame = self->frames[i];
    int stream = i % self->n_streams;

    if (frame.state)
      frame.state_frames = self->state_frames++;
    frame.workspace = (void *) (uintptr_t) self->workspace[stream];
    device_use_stream (self->device, stream);
    device_enqueue (self->device, kernel, &frame, self->one->params,
        self->one->n_regions > 0 ? self->one->regions : NULL);
    if (kernel->record_size == 0)
      continue;
    if (frame.state) {
      device_use_stream (self->device, (i + 1) % self->n_streams);
      device_wait_for (self->device, stream);
      device_use_stream (self->device, stream);
    }
    frame.records = get_records (self, stream);
    device_emit (self->device, kernel, &frame, self->one->params,
        self->one->n_regions > 0 ? self->one->regions : NULL);
  }
}

static void
run_big_copy (void *data)
{
  big_copy *copy = data;

  device_copy (copy->device, copy->to, copy->from, copy->size);
}

/* Random content: hardware runs faster on zeros than on what a camera sees. */
static void
fill_device (gpu *device, cu_deviceptr memory, size_t size)
{
  size_t chunk = (size_t) 16 << 20;
  unsigned char *random = malloc (chunk);

  if (!random)
    check_fail ("out of memory");
  for (size_t i = 0; i < chunk; i += 4) {
    uint32_t word = check_random ();

    memcpy (random + i, &word, 4);
  }
  for (size_t at = 0; at < size; at += chunk)
    device_upload (device, memory + at, random, size - at < chunk ? size - at : chunk);
  free (random);
}

static double
measure_copy (gpu *device, cu_deviceptr memory)
{
  big_copy copy = { device, memory, memory + rotation_bytes / 2, rotation_bytes / 2 };
  double milliseconds = time_median (device, NULL, run_big_copy, &copy);

  return 2.0 * (double) copy.size / milliseconds / 1e6;
}

static double
get_bytes (const csfk_image *image)
{
  double bytes = 0;

  for (int i = 0; i < image->n_planes; i++)
    bytes += (double) image->plane[i].row_bytes * image->plane[i].rows;
  return bytes;
}

/* The fewest bytes the kernel can move: what it needs of the input, read once, the output, and its state
 * both ways. */
static double
get_useful_bytes (const bench_case *one)
{
  const csfk_kernel *kernel = one->kernel;
  double bytes = get_bytes (&one->in) + get_bytes (&one->out);

  /* Sobel has no use for chroma. */
  if (strcmp (kernel->name, "sobel") == 0)
    bytes -= get_bytes (&one->in) - (double) one->in.plane[0].row_bytes * one->in.plane[0].rows;
  return bytes + 2.0 * (double) get_state_size (kernel, &one->in, &one->out);
}

/* Memory for it all, zeroed; 0 where there is none to have. */
static cu_deviceptr
alloc_zeroed (gpu *device, size_t size)
{
  cu_deviceptr memory;
  void *zeros;

  if (size == 0)
    return 0;
  zeros = calloc (1, size);
  if (!zeros)
    check_fail ("out of memory");
  memory = device_alloc (device, size);
  device_upload (device, memory, zeros, size);
  free (zeros);
  return memory;
}

static size_t
get_placed_size (const csfk_image *image)
{
  csfk_image placed = *image;

  return (csfk_image_place (&placed, NULL, 256) + 255) / 256 * 256;
}

static void *
open_case (const bench_case *one)
{
  char reason[256] = "";
  void *instance = NULL;

  if (one->kernel->open
      && one->kernel->open (one->kernel, &one->in, &one->out, &instance, reason, sizeof reason) != 0)
    check_fail ("%s: open() failed: %s", one->name, reason);
  return instance;
}

/* Makes room for as many records as the first frame has, and some more. */
static void
make_record_room (frame_ring *ring)
{
  const csfk_kernel *kernel = ring->one->kernel;
  const int n_frames = ring->n_frames;
  unsigned count = 0;

  if (kernel->record_size == 0)
    return;
  ring->records[0] = alloc_zeroed (ring->device, sizeof (unsigned));
  ring->n_frames = 1;
  run_rotation (ring);
  device_use_stream (ring->device, 0);
  device_finish (ring->device);
  device_download (ring->device, &count, ring->records[0], sizeof count);
  device_free (ring->device, ring->records[0]);
  check_count (ring->one, count);
  ring->n_frames = n_frames;
  ring->capacity = count + count / 4 + 1;
  for (int i = 0; i < ring->n_streams; i++)
    ring->records[i] = alloc_zeroed (ring->device,
        (size_t) ring->capacity * kernel->record_size + sizeof count);
}

static void
upload_dots (const frame_ring *ring)
{
  for (int i = 0; i < ring->n_frames; i++) {
    const csfk_image *to = &ring->frames[i].in;
    csfk_image image = *to;
    const size_t size = csfk_image_place (&image, NULL, 256);
    unsigned char *memory = malloc (size);

    if (!memory)
      check_fail ("out of memory");
    memset (memory, 128, size);
    csfk_image_place (&image, memory, 256);
    paint_dots (&image, ring->one->n_records);
    device_upload (ring->device, (cu_deviceptr) (uintptr_t) to->plane[0].data, memory, size);
    free (memory);
  }
}

/* GB/s of the useful bytes. */
static double
measure_kernel (gpu *device, const bench_case *one, cu_deviceptr memory, const big_copy *gate)
{
  static frame_ring ring;
  const csfk_kernel *kernel = one->kernel;
  const size_t in_size = get_placed_size (&one->in), out_size = get_placed_size (&one->out);
  const size_t workspace_size = get_workspace_size (kernel, &one->in, &one->out);
  cu_deviceptr state = alloc_zeroed (device, get_state_size (kernel, &one->in, &one->out));
  cu_deviceptr regions = alloc_zeroed (device, sizeof one->regions);
  void *instance = open_case (one);
  double rate;

  ring = (frame_ring) {.device = device,.one = one };
  ring.n_streams = state && kernel->record_size == 0 ? 1 : DEVICE_STREAMS;
  ring.n_frames = (int) (rotation_bytes / (in_size + out_size));
  if (ring.n_frames > MAX_FRAMES)
    ring.n_frames = MAX_FRAMES;
  for (int i = 0; i < ring.n_streams; i++)
    ring.workspace[i] = alloc_zeroed (device, workspace_size);
  device_upload (device, regions, one->regions, sizeof one->regions);
  for (int i = 0; i < ring.n_frames; i++) {
    csfk_frame *frame = &ring.frames[i];
    unsigned char *at = (unsigned char *) (uintptr_t) memory + (in_size + out_size) * (size_t) i;

    frame->in = one->in;
    frame->out = one->out;
    csfk_image_place (&frame->in, at, 256);
    csfk_image_place (&frame->out, at + in_size, 256);
    frame->state = (void *) (uintptr_t) state;
    frame->regions = one->n_regions > 0 ? (const csfk_region *) (uintptr_t) regions : NULL;
    frame->n_regions = one->n_regions;
    frame->instance = instance;
  }
  if (one->n_records > 0)
    upload_dots (&ring);
  make_record_room (&ring);
  rate = get_useful_bytes (one) * ring.n_frames / time_median (device, gate, run_rotation, &ring)
      / 1e6;

  for (int i = 0; i < ring.n_streams && workspace_size > 0; i++)
    device_free (device, ring.workspace[i]);
  for (int i = 0; i < ring.n_streams && kernel->record_size > 0; i++)
    device_free (device, ring.records[i]);
  /* The next case has random content again. */
  if (one->n_records > 0)
    fill_device (device, memory, rotation_bytes);
  if (state)
    device_free (device, state);
  device_free (device, regions);
  if (kernel->close)
    kernel->close (instance);
  return rate;
}

/* ---- the CPU --------------------------------------------------------------------------------- */

/* One frame with its records, for which there is room from the second on. */
static void
run_cpu (const bench_case *one, csfk_frame *frame)
{
  const csfk_kernel *kernel = one->kernel;
  unsigned count = 0;

  kernel->process (frame, one->params);
  if (kernel->record_size == 0)
    return;
  frame->records.count = &count;
  kernel->collect (frame, one->params);
  if (frame->records.capacity >= count)
    return;
  check_count (one, count);
  frame->records.data = realloc (frame->records.data, (size_t) count * kernel->record_size);
  frame->records.capacity = count;
  if (!frame->records.data)
    check_fail ("out of memory");
}

/* Nanoseconds of one thread for an output pixel. */
static double
measure_cpu (const bench_case *one)
{
  const csfk_kernel *kernel = one->kernel;
  canvas in, out;
  guarded_block state, workspace;
  csfk_frame frame = { .n_regions = one->n_regions,.regions = one->regions };
  double best = 1e9;

  picture_init_like (&in, &one->in, 16);
  picture_init_like (&out, &one->out, 16);
  block_init (&state, get_state_size (kernel, &one->in, &one->out));
  block_init (&workspace, get_workspace_size (kernel, &one->in, &one->out));
  if (state.size > 0)
    memset (state.data, 0, state.size);
  if (one->n_records > 0)
    paint_dots (&in.image, one->n_records);
  frame.in = in.image;
  frame.out = out.image;
  frame.records.record_size = kernel->record_size;
  frame.state = state.data;
  frame.workspace = workspace.data;
  frame.instance = open_case (one);
  for (int i = 0; i < CPU_RUNS; i++) {
    double start = check_now (), took;

    run_cpu (one, &frame);
    took = check_now () - start;
    if (took < best)
      best = took;
    frame.state_frames += state.size > 0;
  }
  if (kernel->close)
    kernel->close (frame.instance);
  free (frame.records.data);
  block_finish (&workspace);
  block_finish (&state);
  picture_finish (&in);
  picture_finish (&out);
  return best * 1e9 / one->out.width / one->out.height;
}

/* ---- the results file ------------------------------------------------------------------------ */

static void
read_line (const char *path, char *line, size_t line_size)
{
  FILE *file = fopen (path, "r");

  line[0] = '\0';
  if (!file)
    return;
  if (fgets (line, (int) line_size, file))
    line[strcspn (line, "\n")] = '\0';
  fclose (file);
}

static FILE *
json_begin (const char *path, gpu *device)
{
  FILE *file = fopen (path, "w");
  const char *commit = getenv ("CSF_COMMIT");
  char driver[64], date[16];
  time_t now = time (NULL);
  int version = device ? device_get_driver_version (device) : 0;

  if (!file)
    check_fail ("%s cannot be written", path);
  read_line ("/sys/module/nvidia/version", driver, sizeof driver);
  strftime (date, sizeof date, "%Y-%m-%d", gmtime (&now));
  fprintf (file, "{\"device\": \"%s\", \"driver\": \"%s\", \"cuda\": \"%d.%d\",\n"
      " \"gstreamer\": \"\", \"date\": \"%s\", \"commit\": \"%s\", \"rows\": [",
      device ? device_get_name (device) : "CPU", driver, version / 1000, version % 1000 / 10, date,
      commit ? commit : "");
  return file;
}

/* limit 0: there is none. */
static void
json_row (FILE *file, const char *name, double value, const char *unit, double limit)
{
  static const char *separator = "\n";

  if (!file)
    return;
  fprintf (file, "%s  {\"case\": \"%s\", \"value\": %.4g, \"unit\": \"%s\", ", separator, name,
      value, unit);
  if (limit > 0)
    fprintf (file, "\"limit\": %.4g, \"ratio\": %.3f, \"peers\": {}}", limit, value / limit);
  else
    fputs ("\"limit\": null, \"ratio\": null, \"peers\": {}}", file);
  separator = ",\n";
}

/* ---- all of it ------------------------------------------------------------------------------- */

typedef struct bench
{
  gpu *device;
  FILE *json;
  cu_deviceptr memory;
  big_copy gate;
  double limit;                 /* GB/s of a copy */
} bench;

static void
bench_device_case (void *data, const bench_case *one)
{
  const bench *self = data;
  double rate = measure_kernel (self->device, one, self->memory, &self->gate);
  char name[128];

  snprintf (name, sizeof name, "kernel/%s", one->name);
  printf ("%-68s %8.0f GB/s  %5.1f %% of the copy\n", name, rate, 100 * rate / self->limit);
  json_row (self->json, name, rate, "GB/s", self->limit);
}

static void
bench_cpu_case (void *data, const bench_case *one)
{
  const bench *self = data;
  double nanoseconds = measure_cpu (one);
  char name[128];

  snprintf (name, sizeof name, "kernel-cpu/%s", one->name);
  printf ("%-68s %8.2f ns/pixel\n", name, nanoseconds);
  json_row (self->json, name, nanoseconds, "ns/pixel", 0);
}

static void
bench_device (bench *self, const csfk_kernel *only)
{
  gpu *device = self->device;

  self->memory = device_alloc (device, rotation_bytes);
  self->gate = (big_copy) {
    .device = device,.from = device_alloc (device, 2 * gate_bytes),.size = gate_bytes
  };
  self->gate.to = self->gate.from + gate_bytes;
  fill_device (device, self->memory, rotation_bytes);
  fill_device (device, self->gate.from, 2 * gate_bytes);
  self->limit = measure_copy (device, self->memory);
  printf ("%-68s %8.0f GB/s\n", "device-to-device copy", self->limit);
  json_row (self->json, "kernel/device-copy", self->limit, "GB/s", 0);
  for_cases (only, CHECK_COUNT (bench_sizes), bench_device_case, self);
  printf ("%-68s %8.0f GB/s\n", "device-to-device copy, again",
      measure_copy (device, self->memory));
  device_free (device, self->gate.from);
  device_free (device, self->memory);
}

void
bench_run (gpu *device, const csfk_kernel *only, const char *json_path)
{
  bench self = { .device = device };

  self.json = json_path ? json_begin (json_path, device) : NULL;
  for_cases (only, 1, bench_cpu_case, &self);
  if (device)
    bench_device (&self, only);
  if (!self.json)
    return;
  fputs ("\n]}\n", self.json);
  if (fclose (self.json) != 0)
    check_fail ("%s could not be written", json_path);
}
