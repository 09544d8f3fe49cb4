/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Checks every kernel: the C path against a naive model and, with --cuda, the GPU against the C path,
 * over formats, sizes, strides, alignments, parameters and random content; --bench times both.  Knows
 * the kernels' contract; a new kernel needs a model_NAME.c and nothing here. */
#include "check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum
{
  SKIPPED = 77,
  /* Pictures of more pixels are large: of sequences of them there are few, for a model takes long. */
  LARGE = 50000
};

typedef struct dimensions
{
  int width, height;
} dimensions;

/* --most-pixels: larger pictures are left out; 0: none. */
static int most_pixels;
/* --every: only each so-and-so-many-th trial is run. */
static int every = 1;
static uint64_t seed;

/* From one pixel, over every remainder of the vector widths, to more than a strip, a block, a
 * tile. */
static const dimensions sizes[] = {
  {1, 1}, {1, 2}, {2, 1}, {2, 2}, {3, 3}, {7, 5}, {8, 8}, {15, 17}, {16, 9}, {33, 31}, {64, 33},
  {65, 34}, {129, 66}, {1, 130}, {515, 3}, {1025, 6}, {321, 241}, {642, 481}, {1920, 8}, {512, 4},
};

/* ---- parameters ------------------------------------------------------------------------------ */

static void
set_number (const csfk_kernel *kernel, void *params, const csfk_param *param, double value)
{
  if (csfk_params_set (kernel, params, param->name, value, NULL) != CSFK_PARAM_OK)
    check_fail ("%s: %s=%.17g was refused", kernel->name, param->name, value);
}

static void
set_text (const csfk_kernel *kernel, void *params, const csfk_param *param, const char *text)
{
  if (csfk_params_set_text (kernel, params, param->name, text, NULL) != CSFK_PARAM_OK)
    check_fail ("%s: %s='%s' was refused", kernel->name, param->name, text);
}

typedef enum param_place
{
  PLACE_DEFAULT = 0,
  PLACE_LOW,
  PLACE_HIGH,
  PLACE_BETWEEN
} param_place;

static void
choose_text (const csfk_kernel *kernel, void *params, const csfk_param *param, param_place place)
{
  char longest[CSFK_MAX_PARAMS];

  memset (longest, 'x', (size_t) param->maximum - 1);
  longest[(size_t) param->maximum - 1] = '\0';
  set_text (kernel, params, param, place == PLACE_HIGH ? longest
      : place == PLACE_BETWEEN && param->maximum > 4 ? "face" : "");
}

static void
choose_number (const csfk_kernel *kernel, void *params, const csfk_param *param,
    param_place place)
{
  double part = place == PLACE_LOW ? 0 : place == PLACE_HIGH ? 1 : check_random () / 4294967295.0;
  double minimum = param->minimum, maximum = param->maximum, value;

  if (param->type == CSFK_TYPE_ENUM) {
    minimum = 0;
    for (maximum = 0; param->values[(int) maximum + 1]; maximum++)
      continue;
  }
  value = minimum + part * (maximum - minimum);
  /* Each whole number as often as any other. */
  if (param->type != CSFK_TYPE_FLOAT)
    value = fmin (maximum, floor (minimum + part * (maximum - minimum + 1)));
  set_number (kernel, params, param, value);
}

/* 0: the defaults; 1 and 2: the ends of all ranges; then one or the other for each parameter.  Every
 * name of an ENUM is as likely as any other, so over the trials of a format each has its turn. */
static void
choose_params (const csfk_kernel *kernel, int choice, void *params)
{
  csfk_params_init (kernel, params);
  for (unsigned i = 0; i < kernel->n_params; i++) {
    const csfk_param *param = &kernel->params[i];
    int chance = check_random_in (0, 9);
    param_place place = choice == 0 ? PLACE_DEFAULT : choice == 1 ? PLACE_LOW
        : choice == 2 ? PLACE_HIGH : chance < 2 ? PLACE_DEFAULT : chance == 2 ? PLACE_LOW
        : chance == 3 ? PLACE_HIGH : PLACE_BETWEEN;

    if (place == PLACE_DEFAULT)
      continue;
    if (param->type == CSFK_TYPE_STRING)
      choose_text (kernel, params, param, place);
    else
      choose_number (kernel, params, param, place);
  }
  if (kernel->resolve)
    kernel->resolve (params);
}

/* ---- the outputs of a format ----------------------------------------------------------------- */

/* Choices in a random order, again in another when all were taken. */
typedef struct deck
{
  int cards[CHECK_MAX_OUTPUTS];
  int n, next, rounds;
} deck;

static void
deck_init (deck *self, int n)
{
  *self = (deck) {.n = n,.next = n,.rounds = -1 };
  for (int i = 0; i < n; i++)
    self->cards[i] = i;
}

static int
deck_take (deck *self)
{
  if (self->next == self->n) {
    for (int i = self->n - 1; i > 0; i--) {
      int other = check_random_in (0, i), card = self->cards[i];

      self->cards[i] = self->cards[other];
      self->cards[other] = card;
    }
    self->next = 0;
    self->rounds++;
  }
  return self->cards[self->next++];
}

static int
count_outputs (const kernel_model *model, int format)
{
  csfk_image in;

  csfk_image_init (&in, format, 64, 48);
  return model_count_outputs (model, &in);
}

/* ---- one kernel ------------------------------------------------------------------------------ */

/* Every size meets every alignment and every choice of parameters, not every pair of these.  Sequences
 * change their alignment from one frame to the next, and a model takes long over them: they meet fewer,
 * and without a device large ones in some formats only. */
static bool
is_left_out (const kernel_trial *trial, int size, int choice, int n_choices, bool on_device)
{
  const bool large = sizes[size].width * sizes[size].height > LARGE;
  const int turn = (size + trial->alignment) % TRIAL_ALIGNMENTS;

  if (trial->model->n_frames <= 1)
    return trial->alignment > 0 && choice != (size + trial->alignment) % n_choices;
  if (choice != (size + trial->alignment) % n_choices)
    return true;
  if (large)
    return turn > 0 || (!on_device && (trial->format + size) % 3 != 0);
  return !on_device && turn > 2;
}

static void
check_size (gpu *device, kernel_trial *trial, deck *outputs, int size, int n_choices,
    tally *totals)
{
  static int n_seen;

  trial->width = sizes[size].width;
  trial->height = sizes[size].height;
  if (most_pixels > 0 && trial->width * trial->height > most_pixels)
    return;
  for (trial->alignment = 0; trial->alignment < TRIAL_ALIGNMENTS; trial->alignment++)
    for (int choice = 0; choice < n_choices; choice++) {
      if (is_left_out (trial, size, choice, n_choices, device != NULL) || n_seen++ % every != 0)
        continue;
      trial->out_choice = deck_take (outputs);
      choose_params (trial->kernel, choice, trial->params);
      trial_run (device, trial, totals);
    }
}

static void
check_format (gpu *device, kernel_trial *trial, tally *totals)
{
  const int n_choices = trial->kernel->n_params > 0 ? 5 : 1;
  deck outputs;

  deck_init (&outputs, count_outputs (trial->model, trial->format));
  do
    for (int s = 0; s < CHECK_COUNT (sizes); s++)
      check_size (device, trial, &outputs, s, n_choices, totals);
  /* Once more through the sizes where that was too little for all outputs. */
  while (every == 1 && most_pixels == 0 && outputs.rounds < 1 && outputs.next < outputs.n);
}

static void
check_launches (kernel_trial *trial)
{
  static const dimensions more[] = { {1920, 1080}, {3840, 2160}, {7680, 4320}, {8192, 8192} };
  const int n_outputs = count_outputs (trial->model, trial->format);

  for (int s = 0; s < CHECK_COUNT (sizes) + CHECK_COUNT (more); s++) {
    dimensions size = s < CHECK_COUNT (sizes) ? sizes[s] : more[s - CHECK_COUNT (sizes)];

    trial->width = size.width;
    trial->height = size.height;
    for (trial->out_choice = 0; trial->out_choice < n_outputs; trial->out_choice++) {
      choose_params (trial->kernel, check_random_in (0, 5), trial->params);
      trial_check_launches (trial);
    }
  }
}

static void
check_threads (kernel_trial *trial)
{

  trial->width = 151;
  trial->height = 40;
  trial->alignment = 1;
  for (int choice = 0; choice < 3; choice++) {
    trial->out_choice = check_random_in (0, count_outputs (trial->model, trial->format) - 1);
    choose_params (trial->kernel, choice == 0 ? 0 : 3, trial->params);
    trial_run_threads (trial);
  }
}

static void
check_kernel (gpu *device, const csfk_kernel *kernel, const kernel_model *model, tally *totals)
{
  kernel_trial trial = { .kernel = kernel,.model = model,.seed = seed };
  uint64_t of_name = 0;

  if (!model)
    check_fail ("%s has no model in tests/kernels", kernel->name);
  /* So that --kernel shows what a run of all shows. */
  for (const char *letter = kernel->name; *letter; letter++)
    of_name = of_name * 31 + (unsigned char) *letter;
  check_seed (seed + (of_name << 32));
  for (int f = 0; f < CSFK_MAX_FORMATS && kernel->formats[f] != CSFK_FORMAT_NONE; f++) {
    trial.format = kernel->formats[f];
    check_format (device, &trial, totals);
    if (!device)
      check_launches (&trial);
  }
  trial.format = kernel->formats[0];
  if (!device && !kernel->state_size)
    check_threads (&trial);
}

static void
check_toy (gpu *device, const csfk_kernel *kernel, const kernel_model *model)
{
  tally totals = { 0, 0, 0, 0 };

  check_kernel (device, kernel, model, &totals);
}

/* ---- the program ----------------------------------------------------------------------------- */

static void
usage (void)
{
  puts ("usage: checkkernels [--cuda] [--bench] [--json FILE] [--kernel NAME] [--seed N]\n"
      "                    [--most-pixels N] [--every N] [--self]\n"
      "\n"
      "  (none)         check the C path of every kernel against naive models\n"
      "  --cuda         check the GPU against the C path; 77 without a GPU\n"
      "  --bench        time the C path and, where there is one, the GPU\n"
      "  --self         check that this program finds faults; with --cuda needs the fake driver\n"
      "  --json FILE    with --bench: write the figures there\n"
      "  --kernel NAME  this kernel only\n"
      "  --seed N       the random content of an earlier run\n"
      "  --most-pixels N  pictures of at most so many pixels, for slow checkers\n"
      "  --every N      only each Nth of the trials, likewise");
}

typedef struct settings
{
  bool cuda, bench, self;
  const char *json, *kernel;
} settings;

static settings
parse_options (int argc, char **argv)
{
  settings options = { false, false, false, NULL, NULL };

  for (int i = 1; i < argc; i++) {
    const char *value = i + 1 < argc ? argv[i + 1] : NULL;

    if (strcmp (argv[i], "--cuda") == 0) {
      options.cuda = true;
    } else if (strcmp (argv[i], "--bench") == 0) {
      options.bench = true;
    } else if (strcmp (argv[i], "--self") == 0) {
      options.self = true;
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

static void
check_all (gpu *device, const settings *options)
{
  tally totals = { 0, 0, 0, 0 };

  if (!device)
    check_helpers ();
  for (int i = 0; csfk_kernels[i]; i++) {
    const csfk_kernel *kernel = csfk_kernels[i];
    double start = check_now ();

    if (options->kernel && strcmp (options->kernel, kernel->name) != 0)
      continue;
    check_kernel (device, kernel, model_find (kernel->name), &totals);
    printf ("%-16s %6.1f s\n", kernel->name, check_now () - start);
  }
  if (!device && (!options->kernel || strcmp (options->kernel, "gaussianblur") == 0)) {
    check_seed (seed);
    check_gaussian ();
  }
  if (!device && (!options->kernel || strcmp (options->kernel, "convertscale") == 0)) {
    check_seed (seed);
    check_convertscale ();
  }
  if (device)
    printf ("ok: %u frames on the GPU equal the CPU's\n", totals.device_frames);
  else
    printf ("ok: %u frames, %u samples and %u records compared with the models\n", totals.frames,
        totals.samples, totals.records);
}

int
main (int argc, char **argv)
{
  settings options;
  char why[512] = "";
  gpu *device = NULL;

  seed = (uint64_t) time (NULL);
  options = parse_options (argc, argv);
  check_seed (seed);
  setvbuf (stdout, NULL, _IOLBF, 0);
  printf ("checkkernels: seed %llu\n", (unsigned long long) seed);

  if (options.self) {
    check_harness (options.cuda, check_toy);
    return 0;
  }
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

  if (options.bench)
    bench_run (device, options.kernel ? csfk_kernel_find (options.kernel) : NULL, options.json);
  else
    check_all (device, &options);
  device_close (device);
  return 0;
}
