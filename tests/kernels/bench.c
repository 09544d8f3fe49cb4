/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Times every kernel: on the GPU in bytes moved a second beside a device-to-device copy of the
 * same run, on the CPU in nanoseconds a pixel of one thread.  Knows the kernels' contract and
 * the device. */
#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum
{
  RUNS = 11,                    /* the median is reported */
  MAX_FRAMES = 512,
  CPU_RUNS = 5                  /* the best is reported */
};

/* Frames are used in turn, in and out together this many bytes, so that the last use of one has
 * left every cache. */
static const size_t rotation_bytes = (size_t) 1 << 30;

typedef struct bench_size
{
  int width, height;
} bench_size;

static const bench_size bench_sizes[] = { {1920, 1080}, {3840, 2160} };

typedef struct frame_ring
{
  gpu *device;
  const csfk_kernel *kernel;
  csfk_frame frames[MAX_FRAMES];
  int n_frames;
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
time_median (gpu *device, void (*work) (void *data), void *data)
{
  double times[RUNS];

  work (data);
  work (data);
  device_finish (device);
  for (int i = 0; i < RUNS; i++)
    times[i] = device_time (device, work, data);
  qsort (times, RUNS, sizeof times[0], compare_doubles);
  return times[RUNS / 2];
}

static void
run_rotation (void *data)
{
  frame_ring *rotation = data;

  for (int i = 0; i < rotation->n_frames; i++)
    device_enqueue (rotation->device, rotation->kernel, &rotation->frames[i]);
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
  size_t block = (size_t) 16 << 20;
  unsigned char *random = malloc (block);

  if (!random)
    check_fail ("out of memory");
  for (size_t i = 0; i < block; i += 4) {
    uint32_t word = check_random ();

    memcpy (random + i, &word, 4);
  }
  for (size_t at = 0; at < size; at += block)
    device_upload (device, memory + at, random, size - at < block ? size - at : block);
  free (random);
}

static double
measure_copy (gpu *device, cu_deviceptr memory)
{
  big_copy copy = { device, memory, memory + rotation_bytes / 2, rotation_bytes / 2 };
  double milliseconds = time_median (device, run_big_copy, &copy);

  return 2.0 * (double) copy.size / milliseconds / 1e6;
}

/* The fewest bytes the kernel can move: what it needs of the input, read once, and the output. */
static double
get_useful_bytes (const csfk_kernel *kernel, const csfk_image *image)
{
  double in = 0, out = 0;

  for (int i = 0; i < image->n_planes; i++) {
    double bytes = (double) image->plane[i].row_bytes * image->plane[i].rows;

    out += bytes;
    /* Sobel has no use for chroma. */
    if (i == 0 || strcmp (kernel->name, "sobel") != 0)
      in += bytes;
  }
  return in + out;
}

static double
measure_kernel (gpu *device, const csfk_kernel *kernel, int format, bench_size size,
    cu_deviceptr memory, const void *params)
{
  static frame_ring rotation;
  csfk_image image;
  double bytes;
  size_t frame_size;

  csfk_image_init (&image, format, size.width, size.height);
  bytes = get_useful_bytes (kernel, &image);
  frame_size = (csfk_image_place (&image, NULL, 256) + 255) / 256 * 256;
  rotation.device = device;
  rotation.kernel = kernel;
  rotation.n_frames = (int) (rotation_bytes / (2 * frame_size));
  if (rotation.n_frames > MAX_FRAMES)
    rotation.n_frames = MAX_FRAMES;
  for (int i = 0; i < rotation.n_frames; i++) {
    csfk_frame *frame = &rotation.frames[i];
    unsigned char *at = (unsigned char *) (uintptr_t) memory + 2 * frame_size * (size_t) i;

    frame->in = frame->out = image;
    frame->params = params;
    csfk_image_place (&frame->in, at, 256);
    csfk_image_place (&frame->out, at + frame_size, 256);
  }
  return bytes * rotation.n_frames / time_median (device, run_rotation, &rotation) / 1e6;
}

static double
measure_cpu (const csfk_kernel *kernel, int format, bench_size size, const void *params)
{
  canvas in, out;
  csfk_frame frame;
  double best = 1e9;

  picture_init (&in, format, size.width, size.height, 16);
  picture_init (&out, format, size.width, size.height, 16);
  frame = (csfk_frame) { in.image, out.image, params };
  for (int i = 0; i < CPU_RUNS; i++) {
    double start = check_now (), took;

    kernel->process (&frame);
    took = check_now () - start;
    if (took < best)
      best = took;
  }
  picture_finish (&in);
  picture_finish (&out);
  return best * 1e9 / size.width / size.height;
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

static void
bench_device (gpu *device, const csfk_kernel *only, FILE *json)
{
  unsigned char params[CSFK_MAX_PARAMS] __attribute__ ((aligned (8)));
  cu_deviceptr memory = device_alloc (device, rotation_bytes);
  double limit;

  fill_device (device, memory, rotation_bytes);
  limit = measure_copy (device, memory);
  printf ("%-48s %8.0f GB/s\n", "device-to-device copy", limit);
  json_row (json, "kernel/device-copy", limit, "GB/s", 0);
  for (int k = 0; csfk_kernels[k]; k++)
    for (int s = 0; s < 2; s++)
      for (int f = 0; csfk_kernels[k]->formats[f] != CSFK_FORMAT_NONE; f++) {
        const csfk_kernel *kernel = csfk_kernels[k];
        char name[96];
        double rate;

        if (only && kernel != only)
          continue;
        csfk_params_init (kernel, params);
        rate = measure_kernel (device, kernel, kernel->formats[f], bench_sizes[s], memory, params);
        snprintf (name, sizeof name, "kernel/%s/%dx%d/%s", kernel->name, bench_sizes[s].width,
            bench_sizes[s].height, csfk_format_get_info (kernel->formats[f])->name);
        printf ("%-48s %8.0f GB/s  %5.1f %% of the copy\n", name, rate, 100 * rate / limit);
        json_row (json, name, rate, "GB/s", limit);
      }
  printf ("%-48s %8.0f GB/s\n", "device-to-device copy, again", measure_copy (device, memory));
  device_free (device, memory);
}

static void
bench_cpu (const csfk_kernel *only, FILE *json)
{
  unsigned char params[CSFK_MAX_PARAMS] __attribute__ ((aligned (8)));

  for (int k = 0; csfk_kernels[k]; k++)
    for (int f = 0; csfk_kernels[k]->formats[f] != CSFK_FORMAT_NONE; f++) {
      const csfk_kernel *kernel = csfk_kernels[k];
      char name[96];
      double nanoseconds;

      if (only && kernel != only)
        continue;
      csfk_params_init (kernel, params);
      nanoseconds = measure_cpu (kernel, kernel->formats[f], bench_sizes[0], params);
      snprintf (name, sizeof name, "kernel-cpu/%s/%dx%d/%s", kernel->name, bench_sizes[0].width,
          bench_sizes[0].height, csfk_format_get_info (kernel->formats[f])->name);
      printf ("%-48s %8.2f ns/pixel\n", name, nanoseconds);
      json_row (json, name, nanoseconds, "ns/pixel", 0);
    }
}

void
bench_run (gpu *device, const csfk_kernel *only, const char *json_path)
{
  FILE *json = json_path ? json_begin (json_path, device) : NULL;

  bench_cpu (only, json);
  if (device)
    bench_device (device, only, json);
  if (!json)
    return;
  fputs ("\n]}\n", json);
  if (fclose (json) != 0)
    check_fail ("%s could not be written", json_path);
}
