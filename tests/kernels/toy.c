/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A kernel that uses all of the contract at once and can be made to break each of its rules, its model,
 * and the proof that every such fault is found.  Knows the kernels' contract only. */
#include "check.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/fake/fake_cuda.h"

typedef enum toy_fault
{
  FAULT_NONE = 0,
  FAULT_LAST_SAMPLE,
  FAULT_ONE_CHOICE,
  FAULT_ONE_LABEL,
  FAULT_COLOUR_BIT,
  FAULT_ONE_OUTPUT,
  FAULT_BESIDE_ROW,
  FAULT_BEFORE_FIRST_ROW,
  FAULT_INPUT,
  FAULT_REGIONS,
  FAULT_BESIDE_STATE,
  FAULT_BESIDE_WORKSPACE,
  FAULT_UNDEFINED_BYTE,
  FAULT_OLD_WORKSPACE,
  FAULT_OWN_STATE,
  FAULT_NO_RESET,
  FAULT_LAST_REGION,
  FAULT_LAUNCH_LIMIT,
  FAULT_LAUNCH_ORDER,
  FAULT_LAUNCH_RESULT,
  FAULT_LAUNCH_PARAMS,
  FAULT_NO_INSTANCE,
  FAULT_THREADS,
  FAULT_WRONG_RECORD,
  FAULT_MISSING_RECORD,
  FAULT_RECORD_TWICE,
  FAULT_RECORD_BYTES,
  FAULT_BEYOND_CAPACITY,
  FAULT_NOT_COUNTED,
  FAULT_COUNTS_ROOM,
  FAULT_RECORDS_OF_STATE,
  FAULT_RECORDS_ONCE,
  FAULT_EMIT_WRITES,
  FAULT_EMIT_ORDER,
  FAULT_EMIT_RESULT,
  N_FAULTS
} toy_fault;

typedef struct fault_entry
{
  const char *name;
  bool on_device;               /* what the GPU may do wrong as well */
} fault_entry;

static const fault_entry faults[N_FAULTS] = {
  [FAULT_NONE] = {"none", true},
  [FAULT_LAST_SAMPLE] = {"one sample of many", true},
  [FAULT_ONE_CHOICE] = {"one choice of an enum", true},
  [FAULT_ONE_LABEL] = {"the longest text", true},
  [FAULT_COLOUR_BIT] = {"the top bit of a colour", true},
  [FAULT_ONE_OUTPUT] = {"one output format at one size", true},
  [FAULT_BESIDE_ROW] = {"a byte beside a row", true},
  [FAULT_BEFORE_FIRST_ROW] = {"a byte before the first row", true},
  [FAULT_INPUT] = {"a write to the input", true},
  [FAULT_REGIONS] = {"a write to the regions", true},
  [FAULT_BESIDE_STATE] = {"a byte beside the state", true},
  [FAULT_BESIDE_WORKSPACE] = {"a byte beside the workspace", true},
  [FAULT_UNDEFINED_BYTE] = {"an undefined byte", true},
  [FAULT_OLD_WORKSPACE] = {"old content of the workspace", true},
  [FAULT_OWN_STATE] = {"state of its own", true},
  [FAULT_NO_RESET] = {"state that outlives a reset", true},
  [FAULT_LAST_REGION] = {"the last region", true},
  [FAULT_LAUNCH_LIMIT] = {"too many threads", false},
  [FAULT_LAUNCH_ORDER] = {"a launch after the last", false},
  [FAULT_LAUNCH_RESULT] = {"a lost launch failure", false},
  [FAULT_LAUNCH_PARAMS] = {"lost parameters", false},
  [FAULT_NO_INSTANCE] = {"no instance", false},
  [FAULT_THREADS] = {"several threads", false},
  [FAULT_WRONG_RECORD] = {"a wrong record", true},
  [FAULT_MISSING_RECORD] = {"a missing record", true},
  [FAULT_RECORD_TWICE] = {"a record twice", true},
  [FAULT_RECORD_BYTES] = {"undefined bytes of a record", true},
  [FAULT_BEYOND_CAPACITY] = {"a record beyond the capacity", true},
  [FAULT_NOT_COUNTED] = {"a record that is not counted", true},
  [FAULT_COUNTS_ROOM] = {"a count of what there was room for", true},
  [FAULT_RECORDS_OF_STATE] = {"records that are read from the state", true},
  [FAULT_RECORDS_ONCE] = {"records that can be appended only once", true},
  [FAULT_EMIT_WRITES] = {"a write to the output with the records", true},
  [FAULT_EMIT_ORDER] = {"a launch after the last of the records'", false},
  [FAULT_EMIT_RESULT] = {"a lost launch failure of the records'", false},
};

static toy_fault chosen;
/* The fake driver runs process() in threads of its own: only there is the fault made. */
static bool device_only;
static pthread_t host_thread;

static bool
has (toy_fault fault)
{
  return chosen == fault && !(device_only && pthread_equal (pthread_self (), host_thread));
}

typedef struct toy_params
{
  int level;                    /* enum */
  unsigned colour;
  float scale;
  int flag, count;
  char label[CSFK_LABEL_BYTES];
  int doubled;                  /* derived: 2 * count */
} toy_params;

static const char *const level_names[] = { "low", "middle", "high", NULL };

static const csfk_param toy_param_list[] = {
  {"level", CSFK_TYPE_ENUM, offsetof (toy_params, level), 0, 0, 1, "", "a choice", level_names},
  {"colour", CSFK_TYPE_UINT, offsetof (toy_params, colour), 0, 4294967295.0, 5, "", "a colour", NULL},
  {"scale", CSFK_TYPE_FLOAT, offsetof (toy_params, scale), 0, 2, 1, "", "a factor", NULL},
  {"flag", CSFK_TYPE_BOOL, offsetof (toy_params, flag), 0, 1, 0, "", "a flag", NULL},
  {"count", CSFK_TYPE_INT, offsetof (toy_params, count), -9, 9, 2, "", "a number", NULL},
  {"label", CSFK_TYPE_STRING, offsetof (toy_params, label), 0, CSFK_LABEL_BYTES, 0, "", "a text",
      NULL},
};

static void
resolve (void *params)
{
  ((toy_params *) params)->doubled = 2 * ((toy_params *) params)->count;
}

/* ---- the kernel ------------------------------------------------------------------------------ */

/* A byte of state for each output sample: the value the sample had before. */
static unsigned long
state_size (const csfk_kernel *kernel, const csfk_image *in, const csfk_image *out)
{
  return (unsigned long) out->width * (unsigned long) out->height;
}

/* A row, and behind it an int for each row of the output: its record's sum. */
static unsigned long
get_sums_offset (const csfk_image *out)
{
  return ((unsigned long) out->width + 3) / 4 * 4;
}

static unsigned long
workspace_size (const csfk_kernel *kernel, const csfk_image *in, const csfk_image *out)
{
  return get_sums_offset (out) + sizeof (int) * (unsigned long) out->height;
}

static int *
get_sums (const csfk_frame *frame)
{
  return (int *) ((unsigned char *) frame->workspace + get_sums_offset (&frame->out));
}

static int
open_toy (const csfk_kernel *kernel, const csfk_image *in, const csfk_image *out, void **instance,
    char *reason, unsigned reason_size)
{
  *instance = has (FAULT_NO_INSTANCE) ? NULL : malloc (16);
  snprintf (reason, reason_size, "out of memory");
  return *instance ? 0 : -1;
}

static int
get_offset (const csfk_frame *frame, const toy_params *params, int x, int y)
{
  int sum = params->level * (has (FAULT_ONE_CHOICE) && params->level == 2 ? 6 : 7) +
      (int) (params->colour >> (has (FAULT_COLOUR_BIT) ? 25 : 24)) + params->flag +
      params->doubled + (int) (params->scale * 8);
  int n_regions = frame->n_regions - (has (FAULT_LAST_REGION) && frame->n_regions > 0);

  for (int i = 0; i < n_regions; i++) {
    const csfk_region *region = &frame->regions[i];
    bool same = strcmp (region->label, params->label) == 0;

    if (has (FAULT_ONE_LABEL) && strlen (params->label) == CSFK_LABEL_BYTES - 1)
      same = true;
    if (same && x >= region->x && y >= region->y && x < region->x + region->width
        && y < region->y + region->height)
      sum += 3;
  }
  return sum;
}

static void
make_row (const csfk_frame *frame, const toy_params *params, int y, unsigned char *results,
    unsigned char *state)
{
  static unsigned char own_state;
  static int own_frames;
  const csfk_image *in = &frame->in, *out = &frame->out;

  for (int x = 0; x < out->width; x++) {
    int from_x = x * in->width / out->width, from_y = y * in->height / out->height;
    int sum = in->plane[0].data[from_y * in->plane[0].stride + from_x] +
        get_offset (frame, params, from_x, from_y);

    if (state)
      sum += has (FAULT_OWN_STATE) ? own_state : state[x];
    sum += has (FAULT_NO_RESET) ? own_frames : (int) frame->state_frames;
    if (has (FAULT_LAST_SAMPLE) && x > 0 && x % 64 == 63)
      sum++;
    if (has (FAULT_ONE_OUTPUT) && out->format == CSFK_FORMAT_GRAY8 && out->width > in->width)
      sum++;
    /* In state and workspace, so that a fault in one shows in the output. */
    if (has (FAULT_OLD_WORKSPACE) && x == 0)
      sum += results[0];
    results[x] = (unsigned char) sum;
    if (state)
      state[x] = results[x];
    own_state = results[x];
  }
  own_frames = (int) frame->state_frames + (y == frame->out.height - 1);
}

static void
break_rules (const csfk_frame *frame)
{
  const csfk_plane *out = &frame->out.plane[0];

  if (has (FAULT_BESIDE_ROW) && out->stride > out->row_bytes)
    out->data[out->row_bytes] ^= 1;
  if (has (FAULT_BEFORE_FIRST_ROW))
    out->data[-1] ^= 1;
  if (has (FAULT_INPUT))
    frame->in.plane[0].data[0] ^= 1;
  if (has (FAULT_REGIONS) && frame->n_regions > 0)
    ((csfk_region *) frame->regions)[0].x++;
  if (has (FAULT_BESIDE_STATE) && frame->state)
    ((unsigned char *) frame->state)[frame->out.width * frame->out.height] ^= 1;
  if (has (FAULT_BESIDE_WORKSPACE))
    ((unsigned char *) frame->workspace)[-1] ^= 1;
}

static void
process (const csfk_frame *frame, const void *params)
{
  static unsigned char common[1 << 16];
  const csfk_plane *out = &frame->out.plane[0];
  const int pitch = frame->out.format == CSFK_FORMAT_GRAY8 ? 1 : 4;

  break_rules (frame);
  for (int y = 0; y < out->rows; y++) {
    unsigned char *results = has (FAULT_THREADS) ? common : frame->workspace;
    unsigned char *row = out->data + (size_t) y * (size_t) out->stride;

    make_row (frame, params, y, results, frame->state
        ? (unsigned char *) frame->state + (size_t) y * (size_t) frame->out.width : NULL);
    get_sums (frame)[y] = 0;
    for (int x = 0; x < frame->out.width; x++)
      get_sums (frame)[y] += results[x];
    /* Now another thread has its chance, on one processor too. */
    if (has (FAULT_THREADS))
      sched_yield ();
    for (int x = 0; x < frame->out.width; x++)
      for (int c = 0; c < pitch; c++)
        if (!has (FAULT_UNDEFINED_BYTE) || c < 3)
          row[x * pitch + c] = (unsigned char) (results[x] + c);
  }
}

/* A record for each row whose sum is odd. */
typedef struct toy_record
{
  int y, sum, state_frames;
} toy_record;

static void
append_record (const csfk_frame *frame, toy_record content)
{
  const csfk_records *records = &frame->records;
  toy_record *record;

  if (has (FAULT_NOT_COUNTED) && content.y % 4 == 2) {
    if (*records->count < records->capacity)
      memcpy (records->data + *records->count * sizeof content, &content, sizeof content);
    return;
  }
  if (has (FAULT_COUNTS_ROOM) && *records->count == records->capacity)
    return;
  record = csfk_append (records);
  if (record)
    memcpy (record, &content, has (FAULT_RECORD_BYTES) ? 8 : sizeof content);
  else if (has (FAULT_BEYOND_CAPACITY))
    memcpy (records->data + records->capacity * sizeof content, &content, sizeof content);
}

static void
collect (const csfk_frame *frame, const void *params)
{
  int *sums = get_sums (frame);

  for (int y = 0; y < frame->out.height; y++) {
    toy_record content = { y, sums[y], (int) frame->state_frames };

    if (sums[y] % 2 == 0 || (has (FAULT_MISSING_RECORD) && y == frame->out.height - 1))
      continue;
    if (has (FAULT_WRONG_RECORD) && y == 2)
      content.sum += 2;
    if (has (FAULT_RECORDS_OF_STATE) && frame->state)
      content.sum += ((const unsigned char *) frame->state)[0] - ((unsigned char *)
          frame->out.plane[0].data)[0];
    append_record (frame, content);
    if (has (FAULT_RECORD_TWICE) && y == 1)
      append_record (frame, content);
    if (has (FAULT_RECORDS_ONCE))
      sums[y] = 0;
  }
  if (has (FAULT_EMIT_WRITES))
    frame->out.plane[0].data[0]++;
}

typedef struct toy_args
{
  csfk_frame frame;
  toy_params params;
} toy_args;

static int
enqueue (const csfk_frame *frame, const void *params, csfk_launcher *launcher)
{
  csfk_dim block = { has (FAULT_LAUNCH_LIMIT) ? 2048 : 64, 1, 1 };
  csfk_dim grid = { (unsigned) frame->out.width, 1, 1 };
  toy_args args = { *frame, {0} };
  int result;

  if (!has (FAULT_LAUNCH_PARAMS))
    memcpy (&args.params, params, sizeof args.params);
  result = launcher->launch (launcher, "csfk_toy_part", grid, block, 0, &args, sizeof args);
  if (result != 0 && !has (FAULT_LAUNCH_RESULT))
    return result;
  result = launcher->launch (launcher, "csfk_toy", grid, block, 0, &args, sizeof args);
  if (result == 0 && has (FAULT_LAUNCH_ORDER))
    result = launcher->launch (launcher, "csfk_toy_part", grid, block, 0, &args, sizeof args);
  return result;
}

static int
emit (const csfk_frame *frame, const void *params, csfk_launcher *launcher)
{
  const csfk_dim block = { 64, 1, 1 }, grid = { 1, 1, 1 };
  toy_args args = { *frame, {0} };
  int result;

  memcpy (&args.params, params, sizeof args.params);
  result = launcher->launch (launcher, "csfk_toy_count", grid, block, 0, &args, sizeof args);
  if (result != 0 && !has (FAULT_EMIT_RESULT))
    return result;
  result = launcher->launch (launcher, "csfk_toy_emit", grid, block, 0, &args, sizeof args);
  if (result == 0 && has (FAULT_EMIT_ORDER))
    result = launcher->launch (launcher, "csfk_toy_count", grid, block, 0, &args, sizeof args);
  return result;
}

/* For a fake driver, which takes anything. */
static const unsigned char no_code[] = "no device code";
static const csfk_blob no_blob = {.data = no_code,.size = sizeof no_code };

static const csfk_kernel toy = {
  .abi = CSFK_ABI,
  .flags = CSFK_READS_REGIONS | CSFK_RESIZES,
  .name = "toy",
  .description = "Uses all of the contract",
  .formats = { CSFK_FORMAT_GRAY8, CSFK_FORMAT_NV12, CSFK_FORMAT_NONE },
  .out_formats = { CSFK_FORMAT_GRAY8, CSFK_FORMAT_RGBA, CSFK_FORMAT_NONE },
  .params = toy_param_list,
  .n_params = CHECK_COUNT (toy_param_list),
  .params_size = sizeof (toy_params),
  .state_size = state_size,
  .workspace_size = workspace_size,
  .open = open_toy,
  .close = free,
  .resolve = resolve,
  .process = process,
  .enqueue = enqueue,
  .record_size = sizeof (toy_record),
  .record_kind = CSFK_RECORD_OTHER,
  .record_name = "odd-row",
  .collect = collect,
  .emit = emit,
  .device_code = &no_blob,
};

/* ---- its model ------------------------------------------------------------------------------- */

static bool
choose_output (const csfk_image *in, int choice, csfk_image *out)
{
  static const int formats[] = { CSFK_FORMAT_GRAY8, CSFK_FORMAT_RGBA };

  if (choice >= 6)
    return false;
  csfk_image_init (out, formats[choice % 2], choice < 2 ? in->width : choice < 4
      ? (in->width + 1) / 2 : in->width + 3, choice < 4 ? in->height : in->height * 2);
  return true;
}

/* The model's memory: of every output pixel the value of the frame before. */
static int
get_value (const csfk_frame *frame, const toy_params *params, const int *before, int x, int y)
{
  const csfk_image *in = &frame->in, *out = &frame->out;
  const channel *luma;
  int from_x = x * in->width / out->width, from_y = y * in->height / out->height;
  int value = before ? before[y * out->width + x] : 0;

  model_get_components (in->format, &luma);
  value += model_get_raw (in, luma, from_x, from_y) + 7 * params->level;
  value += (int) (params->colour / (1u << 24)) + params->flag + 2 * params->count;
  value += (int) (params->scale * 8) + (int) frame->state_frames;
  for (int i = 0; i < frame->n_regions; i++) {
    const csfk_region *region = &frame->regions[i];

    if (strcmp (region->label, params->label) == 0 && from_x >= region->x && from_y >= region->y
        && from_x - region->x < region->width && from_y - region->y < region->height)
      value += 3;
  }
  return value & 255;
}

static void
prepare (const csfk_frame *frame, const void *params, void **memory)
{
  const csfk_image *out = &frame->out;
  int *values = malloc ((size_t) out->width * (size_t) out->height * sizeof (int));

  for (int y = 0; y < out->height; y++)
    for (int x = 0; x < out->width; x++)
      values[y * out->width + x] = get_value (frame, params, *memory, x, y);
  free (*memory);
  *memory = values;
}

static int
sample (const csfk_frame *frame, const void *params, void *memory, const channel *component, int x,
    int y)
{
  return (((int *) memory)[y * frame->out.width + x] + component->offset) & 255;
}

/* values: of the output's pixels, as get_value() has them. */
static unsigned
list_records (const csfk_frame *frame, const int *values, void *records, unsigned room)
{
  unsigned n = 0;

  for (int y = 0; y < frame->out.height; y++) {
    toy_record record = { y, 0, (int) frame->state_frames };

    for (int x = 0; x < frame->out.width; x++)
      record.sum += values[y * frame->out.width + x];
    if (record.sum % 2 == 1 && n++ < room)
      ((toy_record *) records)[n - 1] = record;
  }
  return n;
}

static unsigned
model_records (const csfk_frame *frame, const void *params, void *memory, void *records,
    unsigned room)
{
  return list_records (frame, memory, records, room);
}

static const kernel_model toy_model = {
  .kernel = "toy",
  .n_frames = 5,
  .choose_output = choose_output,
  .prepare = prepare,
  .sample = sample,
  .records = model_records,
};

/* The same without state, which threads need. */
static int
sample_alone (const csfk_frame *frame, const void *params, void *memory, const channel *component,
    int x, int y)
{
  return (get_value (frame, params, NULL, x, y) + component->offset) & 255;
}

static void
prepare_alone (const csfk_frame *frame, const void *params, void **memory)
{
  free (*memory);
  *memory = NULL;
  prepare (frame, params, memory);
}

static const kernel_model toy_model_alone = {
  .kernel = "toy",
  .choose_output = choose_output,
  .prepare = prepare_alone,
  .sample = sample_alone,
  .records = model_records,
};

/* ---- the proof ------------------------------------------------------------------------------- */

static gpu *
open_fake (void)
{
  char why[512];
  gpu *device = device_open (why, sizeof why);
  const fake_cuda *fake = fake_cuda_find ();

  if (!device || !fake)
    check_fail ("this check needs the fake driver");
  fake->add_kernel (&toy);
  if (!device_load (device, &toy))
    check_fail ("the fake driver refused the toy");
  return device;
}

/* In a process of its own, which a failed check ends. */
static int
run_with (toy_fault fault, bool on_device, harness_run run)
{
  int status = 0;
  pid_t child;

  fflush (stdout);
  child = fork ();
  if (child == 0) {
    csfk_kernel alone = toy;
    gpu *device = on_device ? open_fake () : NULL;

    alone.state_size = NULL;
    chosen = fault;
    device_only = on_device;
    host_thread = pthread_self ();
    if (fault != FAULT_THREADS)
      run (device, &toy, &toy_model);
    if (fault == FAULT_THREADS || (fault == FAULT_NONE && !device))
      run (NULL, &alone, &toy_model_alone);
    device_close (device);
    exit (0);
  }
  if (child < 0 || waitpid (child, &status, 0) != child)
    check_fail ("no process");
  return WIFEXITED (status) ? WEXITSTATUS (status) : -1;
}

void
check_harness (bool on_device, harness_run run)
{
  int n_found = 0;

  for (int i = 0; i < N_FAULTS; i++) {
    int expected = i == FAULT_NONE ? 0 : 1, got;

    if (on_device && !faults[i].on_device)
      continue;
    printf ("fault: %s\n", faults[i].name);
    got = run_with ((toy_fault) i, on_device, run);
    if (got != expected)
      check_fail ("fault '%s': the check ended with %d, not %d", faults[i].name, got, expected);
    n_found += expected;
  }
  printf ("ok: %d faults found\n", n_found);
}
