/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Checks every kernel: the C path against a naive model and, with --cuda, the GPU against the C
 * path, over formats, sizes, strides, alignments, parameters and random content; --bench times
 * both.  Knows the kernels' contract; a new kernel needs a model in model.c and nothing here. */
#include "check.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum
{
  SKIPPED = 77,
  /* Up to this many samples of a component are all compared with the model, of more a random
   * choice. */
  ALL_SAMPLES = 2048,
  CHOSEN_SAMPLES = 200,
  N_THREADS = 4
};

typedef struct dimensions
{
  int width, height;
} dimensions;

/* --most-pixels: larger pictures are left out; 0: none. */
static int most_pixels;
/* --every: only each so-and-so-many-th frame is checked. */
static int every = 1;

/* From one pixel, over every remainder of the vector widths, to more than a strip, a block, a
 * tile. */
static const dimensions sizes[] = {
  {1, 1}, {1, 2}, {2, 1}, {2, 2}, {3, 3}, {7, 5}, {8, 8}, {15, 17}, {16, 9}, {33, 31}, {64, 33},
  {65, 34}, {129, 66}, {1, 130}, {515, 3}, {1025, 6}, {321, 241}, {642, 481}, {1920, 8}, {512, 4},
};

/* Pairs of input and output alignment. */
static const int alignments[][2] = { {16, 16}, {1, 1}, {8, 16}, {16, 4}, {2, 1} };

#define COUNT(array) ((int) (sizeof (array) / sizeof (array)[0]))

typedef struct tally
{
  unsigned frames, samples, device_frames;
} tally;

static uint64_t seed;

static void
describe (char *text, size_t text_size, const csfk_kernel *kernel, const csfk_frame *frame)
{
  int used = snprintf (text, text_size, "%s %s %dx%d, input %p stride %d, output %p stride %d, %s",
      kernel->name, csfk_format_get_info (frame->in.format)->name, frame->in.width,
      frame->in.height, (void *) frame->in.plane[0].data, frame->in.plane[0].stride,
      (void *) frame->out.plane[0].data, frame->out.plane[0].stride,
      frame->in.range == CSFK_RANGE_FULL ? "full" : "limited");

  for (unsigned i = 0; i < kernel->n_params && used > 0 && (size_t) used < text_size; i++) {
    const csfk_param *param = &kernel->params[i];
    const unsigned char *field = (const unsigned char *) frame->params + param->offset;
    double value;

    if (param->type == CSFK_TYPE_FLOAT) {
      float number;

      memcpy (&number, field, sizeof number);
      value = number;
    } else {
      int number;

      memcpy (&number, field, sizeof number);
      value = number;
    }
    used += snprintf (text + used, text_size - (size_t) used, ", %s=%g", param->name, value);
  }
}

/* ---- against the model ----------------------------------------------------------------------- */

static void
compare_sample (const csfk_kernel *kernel, const csfk_frame *frame, const channel *component,
    int x, int y, tally *totals)
{
  int expected = model_find (kernel->name) (frame, component, x, y);
  int got = model_get_raw (&frame->out, component, x, y);
  char text[512];

  totals->samples++;
  if (got == expected)
    return;
  describe (text, sizeof text, kernel, frame);
  check_fail ("%s: plane %d offset %d at %d,%d is %d, the model says %d (--seed %llu)", text,
      component->plane, component->offset, x, y, got, expected, (unsigned long long) seed);
}

static void
compare_with_model (const csfk_kernel *kernel, const csfk_frame *frame, tally *totals)
{
  const channel *components;
  int n = model_get_components (frame->in.format, &components);

  for (int i = 0; i < n; i++) {
    const channel *component = &components[i];
    int columns = model_get_columns (&frame->out, component);
    int rows = model_get_rows (&frame->out, component);

    if (columns * rows <= ALL_SAMPLES) {
      for (int y = 0; y < rows; y++)
        for (int x = 0; x < columns; x++)
          compare_sample (kernel, frame, component, x, y, totals);
      continue;
    }
    compare_sample (kernel, frame, component, 0, 0, totals);
    compare_sample (kernel, frame, component, columns - 1, 0, totals);
    compare_sample (kernel, frame, component, 0, rows - 1, totals);
    compare_sample (kernel, frame, component, columns - 1, rows - 1, totals);
    for (int chosen = 0; chosen < CHOSEN_SAMPLES; chosen++)
      compare_sample (kernel, frame, component, check_random_in (0, columns - 1),
          check_random_in (0, rows - 1), totals);
  }
}

/* ---- on the device --------------------------------------------------------------------------- */

static void
move_to_device (csfk_image *image, const canvas *picture, cu_deviceptr memory)
{
  for (int i = 0; i < image->n_planes; i++)
    image->plane[i].data = (unsigned char *) (uintptr_t) memory +
        (image->plane[i].data - picture->memory);
}

/* Uploads both pictures whole, runs, downloads both whole: the output must be the C path's to
 * the byte, canaries included, and the input untouched. */
static void
compare_with_device (gpu *device, const csfk_kernel *kernel, const csfk_frame *frame,
    const canvas *in, const canvas *before, const canvas *expected)
{
  cu_deviceptr in_memory = device_alloc (device, in->size);
  cu_deviceptr out_memory = device_alloc (device, before->size);
  csfk_frame moved = *frame;
  canvas in_after, out_after;
  char text[512];

  move_to_device (&moved.in, in, in_memory);
  move_to_device (&moved.out, expected, out_memory);
  device_upload (device, in_memory, in->memory, in->size);
  device_upload (device, out_memory, before->memory, before->size);
  device_enqueue (device, kernel, &moved);

  picture_copy (&in_after, in);
  picture_copy (&out_after, before);
  device_download (device, in_after.memory, in_memory, in->size);
  device_download (device, out_after.memory, out_memory, before->size);
  describe (text, sizeof text, kernel, frame);
  if (memcmp (in_after.memory, in->memory, in->size) != 0)
    check_fail ("%s: the GPU wrote to its input (--seed %llu)", text, (unsigned long long) seed);
  if (!picture_same_outside (before, &out_after))
    check_fail ("%s: the GPU wrote beside a row (--seed %llu)", text, (unsigned long long) seed);
  for (size_t i = 0; i < expected->size; i++)
    if (out_after.memory[i] != expected->memory[i])
      check_fail ("%s: the GPU's byte %zu (plane 0 is at %zu) is %d, the CPU's %d (--seed %llu)",
          text, i, (size_t) (expected->image.plane[0].data - expected->memory),
          out_after.memory[i], expected->memory[i], (unsigned long long) seed);

  picture_finish (&in_after);
  picture_finish (&out_after);
  device_free (device, in_memory);
  device_free (device, out_memory);
}

/* ---- one frame ------------------------------------------------------------------------------- */

static void
check_frame (gpu *device, const csfk_kernel *kernel, int format, dimensions size,
    const int align[2], const void *params, tally *totals)
{
  canvas in, in_before, out, out_before;
  csfk_frame frame;
  char text[512];

  picture_init (&in, format, size.width, size.height, align[0]);
  picture_init (&out, format, size.width, size.height, align[1]);
  picture_copy (&in_before, &in);
  picture_copy (&out_before, &out);
  out.image.range = in.image.range;
  frame = (csfk_frame) { in.image, out.image, params };

  kernel->process (&frame);
  describe (text, sizeof text, kernel, &frame);
  if (memcmp (in.memory, in_before.memory, in.size) != 0)
    check_fail ("%s: wrote to its input (--seed %llu)", text, (unsigned long long) seed);
  if (!picture_same_outside (&out_before, &out))
    check_fail ("%s: wrote beside a row (--seed %llu)", text, (unsigned long long) seed);
  totals->frames++;
  if (device) {
    compare_with_device (device, kernel, &frame, &in, &out_before, &out);
    totals->device_frames++;
  } else {
    compare_with_model (kernel, &frame, totals);
  }

  picture_finish (&in);
  picture_finish (&in_before);
  picture_finish (&out);
  picture_finish (&out_before);
}

/* The default, both ends, and values between; each parameter in turn. */
static void
choose_params (const csfk_kernel *kernel, int choice, void *params)
{
  csfk_params_init (kernel, params);
  for (unsigned i = 0; i < kernel->n_params; i++) {
    const csfk_param *param = &kernel->params[i];
    double part = choice == 1 ? 0.0 : choice == 2 ? 1.0 : check_random_in (0, 1000) / 1000.0;
    double value = param->minimum + part * (param->maximum - param->minimum);

    if (choice == 0)
      continue;
    if (param->type != CSFK_TYPE_FLOAT)
      value = floor (value);
    if (csfk_params_set (kernel, params, param->name, value, NULL) != 0)
      check_fail ("%s: %s=%g was refused", kernel->name, param->name, value);
  }
  if (kernel->resolve)
    kernel->resolve (params);
}

static bool
is_wanted (dimensions size)
{
  return most_pixels == 0 || size.width * size.height <= most_pixels;
}

static void
check_kernel (gpu *device, const csfk_kernel *kernel, tally *totals)
{
  const int n_choices = kernel->n_params > 0 ? 5 : 1;
  int n_seen = 0;
  unsigned char params[CSFK_MAX_PARAMS] __attribute__ ((aligned (8)));

  for (int f = 0; kernel->formats[f] != CSFK_FORMAT_NONE; f++)
    for (int s = 0; s < COUNT (sizes); s++)
      for (int a = 0; a < COUNT (alignments) && is_wanted (sizes[s]); a++)
        for (int choice = 0; choice < n_choices; choice++) {
          /* Every size meets every alignment and every choice, not every pair of these. */
          if (n_choices > 1 && a > 0 && choice != (s + a) % n_choices)
            continue;
          if (n_seen++ % every != 0)
            continue;
          choose_params (kernel, choice, params);
          check_frame (device, kernel, kernel->formats[f], sizes[s], alignments[a], params, totals);
        }
}

/* ---- more that only the C path promises ------------------------------------------------------ */

/* The fixed-point blur is the Gaussian, to one step of the samples. */
static void
check_ideal_blur (void)
{
  const csfk_kernel *kernel = csfk_kernel_find ("gaussianblur");
  unsigned char params[CSFK_MAX_PARAMS] __attribute__ ((aligned (8)));
  static const double sigmas[] = { 0.1, 0.5, 1.0, 2.0, 4.3, 10.0 };

  for (int f = 0; kernel->formats[f] != CSFK_FORMAT_NONE; f++)
    for (int s = 0; s < COUNT (sigmas); s++) {
      const channel *components;
      int n = model_get_components (kernel->formats[f], &components);
      canvas in, out;
      csfk_frame frame;

      csfk_params_init (kernel, params);
      csfk_params_set (kernel, params, "sigma", sigmas[s], NULL);
      kernel->resolve (params);
      picture_init (&in, kernel->formats[f], 45, 37, 1);
      picture_init (&out, kernel->formats[f], 45, 37, 1);
      frame = (csfk_frame) { in.image, out.image, params };
      kernel->process (&frame);
      for (int i = 0; i < n; i++)
        for (int chosen = 0; chosen < 20 && components[i].kind != COMPONENT_UNUSED; chosen++) {
          int x = check_random_in (0, model_get_columns (&out.image, &components[i]) - 1);
          int y = check_random_in (0, model_get_rows (&out.image, &components[i]) - 1);
          double ideal = model_ideal_blur (&frame, sigmas[s], &components[i], x, y);
          double got = model_get_raw (&out.image, &components[i], x, y);

          if (in.image.format == CSFK_FORMAT_P010_10LE)
            got /= 64;
          if (fabs (got - ideal) > 1.0)
            check_fail ("gaussianblur %s sigma=%g: %g where the Gaussian is %g (--seed %llu)",
                csfk_format_get_info (in.image.format)->name, sigmas[s], got, ideal,
                (unsigned long long) seed);
        }
      picture_finish (&in);
      picture_finish (&out);
    }
}

typedef struct thread_work
{
  const csfk_kernel *kernel;
  csfk_frame frame;
} thread_work;

static void *
process_often (void *data)
{
  thread_work *work = data;

  for (int i = 0; i < 20; i++)
    work->kernel->process (&work->frame);
  return NULL;
}

/* process() is called from several threads at once, on different frames. */
static void
check_threads (const csfk_kernel *kernel)
{
  unsigned char params[CSFK_MAX_PARAMS] __attribute__ ((aligned (8)));
  static const int align[2] = { 1, 1 };
  canvas in[N_THREADS], out[N_THREADS], alone[N_THREADS];
  thread_work work[N_THREADS];
  pthread_t threads[N_THREADS];

  csfk_params_init (kernel, params);
  for (int i = 0; i < N_THREADS; i++) {
    csfk_frame frame;

    picture_init (&in[i], kernel->formats[0], 150 + i, 40, align[0]);
    picture_init (&out[i], kernel->formats[0], 150 + i, 40, align[1]);
    picture_copy (&alone[i], &out[i]);
    frame = (csfk_frame) { in[i].image, alone[i].image, params };
    kernel->process (&frame);
    work[i] = (thread_work) { kernel, {in[i].image, out[i].image, params} };
  }
  for (int i = 0; i < N_THREADS; i++)
    if (pthread_create (&threads[i], NULL, process_often, &work[i]) != 0)
      check_fail ("no thread");
  for (int i = 0; i < N_THREADS; i++)
    pthread_join (threads[i], NULL);
  for (int i = 0; i < N_THREADS; i++) {
    if (memcmp (out[i].memory, alone[i].memory, out[i].size) != 0)
      check_fail ("%s: another result among other threads (--seed %llu)", kernel->name,
          (unsigned long long) seed);
    picture_finish (&in[i]);
    picture_finish (&out[i]);
    picture_finish (&alone[i]);
  }
}

/* ---- the program ----------------------------------------------------------------------------- */

static void
usage (void)
{
  puts ("usage: checkkernels [--cuda] [--bench] [--json FILE] [--kernel NAME] [--seed N]\n"
      "                    [--most-pixels N] [--every N]\n"
      "\n"
      "  (none)         check the C path of every kernel against naive models\n"
      "  --cuda         check the GPU against the C path; 77 without a GPU\n"
      "  --bench        time the C path and, where there is one, the GPU\n"
      "  --json FILE    with --bench: write the figures there\n"
      "  --kernel NAME  this kernel only\n"
      "  --seed N       the random content of an earlier run\n"
      "  --most-pixels N  pictures of at most so many pixels, for slow checkers\n"
      "  --every N      only each Nth of the frames, likewise");
}

typedef struct settings
{
  bool cuda, bench;
  const char *json, *kernel;
} settings;

static settings
parse_options (int argc, char **argv)
{
  settings options = { false, false, NULL, NULL };

  for (int i = 1; i < argc; i++) {
    const char *value = i + 1 < argc ? argv[i + 1] : NULL;

    if (strcmp (argv[i], "--cuda") == 0) {
      options.cuda = true;
    } else if (strcmp (argv[i], "--bench") == 0) {
      options.bench = true;
    } else if (strcmp (argv[i], "--json") == 0 && value) {
      options.json = argv[++i];
    } else if (strcmp (argv[i], "--kernel") == 0 && value) {
      options.kernel = argv[++i];
    } else if (strcmp (argv[i], "--seed") == 0 && value) {
      seed = strtoull (argv[++i], NULL, 0);
    } else if (strcmp (argv[i], "--every") == 0 && value && atoi (value) > 0) {
      every = atoi (argv[++i]);
    } else if (strcmp (argv[i], "--most-pixels") == 0 && value) {
      most_pixels = atoi (argv[++i]);
    } else {
      usage ();
      exit (strcmp (argv[i], "--help") == 0 ? 0 : 2);
    }
  }
  if (options.kernel && !csfk_kernel_find (options.kernel))
    check_fail ("there is no kernel '%s'", options.kernel);
  return options;
}

int
main (int argc, char **argv)
{
  settings options;
  tally totals = { 0, 0, 0 };
  char why[512] = "";
  gpu *device = NULL;

  seed = (uint64_t) time (NULL);
  options = parse_options (argc, argv);
  check_seed (seed);
  setvbuf (stdout, NULL, _IOLBF, 0);
  printf ("checkkernels: seed %llu\n", (unsigned long long) seed);

  if (options.cuda || options.bench) {
    device = device_open (why, sizeof why);
    if (device)
      printf ("GPU: %s\n", device_get_name (device));
    else
      printf ("no GPU: %s\n", why);
    if (!device && options.cuda)
      return SKIPPED;
  }
  for (int i = 0; device && csfk_kernels[i]; i++)
    if (!device_load (device, csfk_kernels[i])) {
      puts ("no device code: built without nvcc");
      return SKIPPED;
    }

  if (options.bench) {
    bench_run (device, options.kernel ? csfk_kernel_find (options.kernel) : NULL, options.json);
    device_close (device);
    return 0;
  }

  if (!device)
    check_helpers ();
  for (int i = 0; csfk_kernels[i]; i++)
    if (!options.kernel || strcmp (options.kernel, csfk_kernels[i]->name) == 0) {
      check_kernel (device, csfk_kernels[i], &totals);
      if (!device)
        check_threads (csfk_kernels[i]);
    }
  if (!device)
    check_ideal_blur ();
  if (device)
    printf ("ok: %u frames on the GPU equal the CPU's\n", totals.device_frames);
  else
    printf ("ok: %u frames, %u samples compared with the models\n", totals.frames, totals.samples);
  device_close (device);
  return 0;
}
