/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Measures with plain driver calls what the bus and the GPU allow, and the plain loop.  Knows the
 * driver's table and the kernel contract, no engine and no GStreamer. */
#include "busloop.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/cuda_dl.h"
#include "kernels/format.h"

/* Enough that successive copies touch different memory. */
#define LIMIT_SLOTS 4
#define MAX_ROUNDS 9
/* Room for the records of a frame; what finds none is counted all the same. */
#define RECORD_BYTES 65536u

typedef struct slot
{
  void *host_in, *host_out;
  cu_deviceptr in, out;
  cu_deviceptr state, workspace;        /* 0 where the kernel wants none; a state for each slot: only time counts */
  cu_deviceptr records, count;  /* where the kernel has any: on the device, and not read */
  cu_stream stream;
  cu_event done;
} slot;

struct busloop
{
  const cuda_driver *cu;
  cu_device device;
  cu_context context;
  char *text;                   /* where the running call reports */

  /* of the running measurement */
  csf_layout layout;
  const csfk_kernel *kernel;
  unsigned char params[CSFK_MAX_PARAMS] __attribute__ ((aligned (16)));
  cu_module module;
  cu_function function;
  const char *symbol;           /* of `function` */
  slot slots[CSF_MAX_STREAMS];
  unsigned n_slots;
};

static bool
succeeded (busloop *bus, cu_result code, const char *call)
{
  const char *name = NULL;

  if (code == CU_SUCCESS)
    return true;
  bus->cu->GetErrorName (code, &name);
  snprintf (bus->text, 256, "%s failed with %s", call, name != NULL ? name : "an unknown error");
  return false;
}

/* In a function that returns whether it succeeded. */
#define TRY(call, ...) \
  do { \
    if (!succeeded (bus, bus->cu->call (__VA_ARGS__), "cu" #call)) \
      return false; \
  } while (0)

static bool
open_device (busloop *bus)
{
  TRY (Init, 0);
  TRY (DeviceGet, &bus->device, 0);
  TRY (DevicePrimaryCtxRetain, &bus->context, bus->device);
  return true;
}

busloop *
busloop_open (char text[256])
{
  csf_error error;
  busloop *bus = calloc (1, sizeof *bus);

  if (bus == NULL)
    abort ();
  bus->text = text;
  bus->cu = cuda_driver_get (&error);
  if (bus->cu == NULL) {
    snprintf (text, 256, "%.255s", error.text);
    free (bus);
    return NULL;
  }
  if (!open_device (bus)) {
    free (bus);
    return NULL;
  }
  return bus;
}

void
busloop_close (busloop *bus)
{
  if (bus == NULL)
    return;
  bus->cu->DevicePrimaryCtxRelease (bus->device);
  free (bus);
}

/* Of the kernel module's line: the first word that looks like a version. */
static void
read_driver_release (char *text, size_t size)
{
  FILE *file = fopen ("/proc/driver/nvidia/version", "r");
  char word[64];
  unsigned major, minor;

  snprintf (text, size, "unknown");
  if (file == NULL)
    return;
  while (fscanf (file, "%63s", word) == 1)
    if (sscanf (word, "%u.%u", &major, &minor) == 2) {
      snprintf (text, size, "%s", word);
      break;
    }
  fclose (file);
}

void
busloop_describe (busloop *bus, bench_report *report)
{
  int version = 0;

  bus->cu->DeviceGetName (report->device, sizeof report->device, bus->device);
  bus->cu->DriverGetVersion (&version);
  snprintf (report->cuda, sizeof report->cuda, "%d.%d", version / 1000, version % 1000 / 10);
  read_driver_release (report->driver, sizeof report->driver);
}

/* ---- a measurement's memory ---------------------------------------------------------------- */

static bool
open_kernel_memory (busloop *bus, slot *s)
{
  const csfk_kernel *kernel = bus->kernel;
  const csfk_image *image = &bus->layout.image;
  const size_t state = kernel->state_size == NULL ? 0 : kernel->state_size (kernel, image, image);
  const size_t workspace =
      kernel->workspace_size == NULL ? 0 : kernel->workspace_size (kernel, image, image);

  if (state > 0) {
    TRY (MemAlloc, &s->state, state);
    TRY (MemsetD8Async, s->state, 0, state, NULL);
  }
  if (workspace > 0)
    TRY (MemAlloc, &s->workspace, workspace);
  if (kernel->record_size > 0) {
    TRY (MemAlloc, &s->records, RECORD_BYTES);
    TRY (MemAlloc, &s->count, sizeof (unsigned));
  }
  return true;
}

static bool
open_device_half (busloop *bus, slot *s)
{
  TRY (MemAlloc, &s->in, bus->layout.size);
  TRY (MemAlloc, &s->out, bus->layout.size);
  if (!open_kernel_memory (bus, s))
    return false;
  TRY (StreamCreate, &s->stream, CU_STREAM_NON_BLOCKING);
  TRY (EventCreate, &s->done, CU_EVENT_DISABLE_TIMING);
  return true;
}

static bool
open_slot (busloop *bus, slot *s)
{
  size_t bytes = bus->layout.size;

  TRY (MemHostAlloc, &s->host_in, bytes, CU_MEMHOSTALLOC_PORTABLE);
  TRY (MemHostAlloc, &s->host_out, bytes, CU_MEMHOSTALLOC_PORTABLE);
  if (!open_device_half (bus, s))
    return false;
  bench_fill (s->host_in, bytes);
  memset (s->host_out, 0xa5, bytes);
  /* Noise in device memory as well, for the download alone. */
  TRY (MemcpyHtoDAsync, s->in, s->host_in, bytes, s->stream);
  TRY (MemcpyHtoDAsync, s->out, s->host_in, bytes, s->stream);
  return true;
}

static bool
wait_idle (busloop *bus)
{
  for (unsigned i = 0; i < bus->n_slots; i++) {
    cu_result code;

    do {
      code = bus->cu->StreamQuery (bus->slots[i].stream);
    } while (code == CU_ERROR_NOT_READY);
    if (!succeeded (bus, code, "cuStreamQuery"))
      return false;
  }
  return true;
}

static void
close_slots (busloop *bus)
{
  const cuda_driver *cu = bus->cu;

  for (unsigned i = 0; i < bus->n_slots; i++) {
    slot *s = &bus->slots[i];

    if (s->done != NULL)
      cu->EventDestroy (s->done);
    if (s->stream != NULL)
      cu->StreamDestroy (s->stream);
    if (s->in != 0)
      cu->MemFree (s->in);
    if (s->out != 0)
      cu->MemFree (s->out);
    if (s->state != 0)
      cu->MemFree (s->state);
    if (s->workspace != 0)
      cu->MemFree (s->workspace);
    if (s->records != 0)
      cu->MemFree (s->records);
    if (s->count != 0)
      cu->MemFree (s->count);
    if (s->host_in != NULL)
      cu->MemFreeHost (s->host_in);
    if (s->host_out != NULL)
      cu->MemFreeHost (s->host_out);
  }
  if (bus->module != NULL)
    cu->ModuleUnload (bus->module);
  bus->module = NULL;
  bus->function = NULL;
  bus->symbol = NULL;
  memset (bus->slots, 0, sizeof bus->slots);
  bus->n_slots = 0;
}

static bool
open_module (busloop *bus)
{
  const csfk_blob *code = bus->kernel->device_code;

  if (code == NULL || code->size == 0) {
    snprintf (bus->text, 256, "this build has no GPU code for kernel \"%s\"", bus->kernel->name);
    return false;
  }
  TRY (ModuleLoadDataEx, &bus->module, code->data, 0, NULL, NULL);
  csfk_params_init (bus->kernel, bus->params);
  return true;
}

static bool
open_slots (busloop *bus, unsigned n)
{
  if (!open_module (bus))
    return false;
  for (unsigned i = 0; i < n; i++) {
    bus->n_slots = i + 1;
    if (!open_slot (bus, &bus->slots[i]))
      return false;
  }
  return wait_idle (bus);
}

/* Slots without host memory; `noise` is what their inputs hold. */
static bool
open_device_slots (busloop *bus, unsigned n, const void *noise)
{
  if (!open_module (bus))
    return false;
  for (unsigned i = 0; i < n; i++) {
    slot *s = &bus->slots[i];

    bus->n_slots = i + 1;
    if (!open_device_half (bus, s))
      return false;
    TRY (MemcpyHtoDAsync, s->in, noise, bus->layout.size, s->stream);
  }
  return wait_idle (bus);
}

/* ---- the stages ---------------------------------------------------------------------------- */

typedef struct launcher
{
  csfk_launcher base;
  busloop *bus;
  cu_stream stream;
} launcher;

static int
launch (csfk_launcher *base, const char *symbol, csfk_dim grid, csfk_dim block,
    unsigned shared_bytes, const void *args, unsigned args_size)
{
  launcher *self = (launcher *) base;
  busloop *bus = self->bus;
  void *params[] = { (void *) args };

  /* Remembers one function; a kernel of several launches looks the others up: that is cheap. */
  if (bus->symbol == NULL || strcmp (bus->symbol, symbol) != 0) {
    cu_result code = bus->cu->ModuleGetFunction (&bus->function, bus->module, symbol);

    if (code != CU_SUCCESS)
      return code;
    bus->symbol = symbol;
  }
  return bus->cu->LaunchKernel (bus->function, grid.x, grid.y, grid.z, block.x, block.y, block.z,
      shared_bytes, self->stream, params, NULL);
}

static bool
upload (busloop *bus, slot *s, cu_stream stream)
{
  TRY (MemcpyHtoDAsync, s->in, s->host_in, bus->layout.size, stream);
  return true;
}

static bool
download (busloop *bus, slot *s, cu_stream stream)
{
  TRY (MemcpyDtoHAsync, s->host_out, s->out, bus->layout.size, stream);
  return true;
}

static bool
run_kernel (busloop *bus, slot *s, cu_stream stream)
{
  launcher self = {.base.launch = launch,.bus = bus,.stream = stream };
  csfk_frame frame = {
    .in = bench_image (&bus->layout, (void *) (uintptr_t) s->in),
    .out = bench_image (&bus->layout, (void *) (uintptr_t) s->out),
    .state = (void *) (uintptr_t) s->state,
    .workspace = (void *) (uintptr_t) s->workspace,
    .state_frames = 1,
    .records = {(unsigned char *) (uintptr_t) s->records, (unsigned *) (uintptr_t) s->count,
        bus->kernel->record_size > 0 ? RECORD_BYTES / bus->kernel->record_size : 0,
        bus->kernel->record_size},
  };

  if (!succeeded (bus, bus->kernel->enqueue (&frame, bus->params, &self.base), "the kernel's launch"))
    return false;
  if (bus->kernel->record_size == 0)
    return true;
  TRY (MemsetD8Async, s->count, 0, sizeof (unsigned), stream);
  return succeeded (bus, bus->kernel->emit (&frame, bus->params, &self.base), "the launch that appends");
}

/* ---- limits -------------------------------------------------------------------------------- */

typedef bool (*stage_function) (busloop *, slot *, cu_stream);

/* Runs `count` of each stage, stage k on stream k, and tells how long each took from the common
 * start, in seconds. */
static bool
time_stages (busloop *bus, const stage_function *stages, unsigned n, unsigned count,
    double *seconds)
{
  bool running[2] = { true, true };
  unsigned left = n;
  uint64_t begin;

  if (!wait_idle (bus))
    return false;
  begin = bench_now_ns ();
  for (unsigned i = 0; i < count; i++)
    for (unsigned k = 0; k < n; k++)
      if (!stages[k] (bus, &bus->slots[i % bus->n_slots], bus->slots[k].stream))
        return false;
  for (unsigned k = 0; k < n; k++)
    TRY (EventRecord, bus->slots[k].done, bus->slots[k].stream);
  while (left > 0)
    for (unsigned k = 0; k < n; k++) {
      cu_result code;

      if (!running[k])
        continue;
      code = bus->cu->EventQuery (bus->slots[k].done);
      if (code == CU_ERROR_NOT_READY)
        continue;
      if (!succeeded (bus, code, "cuEventQuery"))
        return false;
      seconds[k] = (double) (bench_now_ns () - begin) / 1e9;
      running[k] = false;
      left--;
    }
  return true;
}

/* rates[k]: frames a second of stage k; *together: until all are done. */
static bool
measure_stages (busloop *bus, const stage_function *stages, unsigned n, bool quick, double *rates,
    double *together)
{
  unsigned rounds = quick ? 3 : MAX_ROUNDS;
  double wanted = quick ? 0.05 : 0.1;
  double each[2][MAX_ROUNDS], all[MAX_ROUNDS], seconds[2] = { 0, 0 };
  unsigned count = 32;

  /* The first touches everything, the second says how many fill the time. */
  for (int i = 0; i < 2; i++)
    if (!time_stages (bus, stages, n, count, seconds))
      return false;
  count = (unsigned) (count * wanted / (seconds[0] > seconds[1] ? seconds[0] : seconds[1])) + 16;
  for (unsigned r = 0; r < rounds; r++) {
    if (!time_stages (bus, stages, n, count, seconds))
      return false;
    for (unsigned k = 0; k < n; k++)
      each[k][r] = count / seconds[k];
    all[r] = count / (n > 1 && seconds[1] > seconds[0] ? seconds[1] : seconds[0]);
  }
  for (unsigned k = 0; k < n; k++)
    rates[k] = bench_median (each[k], rounds);
  *together = bench_median (all, rounds);
  return true;
}

static bool
measure_limits (busloop *bus, bool quick, busloop_limits *limits)
{
  static const stage_function up[] = { upload }, down[] = { download }, kernel[] = { run_kernel };
  static const stage_function both[] = { upload, download };
  double rates[2], ignored;

  if (!open_slots (bus, LIMIT_SLOTS)
      || !measure_stages (bus, up, 1, quick, &limits->upload, &ignored)
      || !measure_stages (bus, down, 1, quick, &limits->download, &ignored)
      || !measure_stages (bus, both, 2, quick, rates, &limits->both)
      || !measure_stages (bus, kernel, 1, quick, &limits->kernel, &ignored))
    return false;
  limits->upload_both = rates[0];
  limits->download_both = rates[1];
  return true;
}

static void
take_least (busloop_limits *limits)
{
  const struct
  {
    double fps;
    const char *name;
  } all[] = {
    {limits->upload, "upload"}, {limits->download, "download"}, {limits->both, "both ways"},
    {limits->kernel, "kernel"}
  };

  limits->limit = all[0].fps;
  limits->limited_by = all[0].name;
  for (unsigned i = 1; i < sizeof all / sizeof all[0]; i++)
    if (all[i].fps < limits->limit) {
      limits->limit = all[i].fps;
      limits->limited_by = all[i].name;
    }
}

/* Makes the context current and sets what the measurement is about. */
static bool
enter (busloop *bus, const csf_layout *layout, const csfk_kernel *kernel, char *text)
{
  bus->text = text;
  bus->layout = *layout;
  bus->kernel = kernel;
  TRY (CtxPushCurrent, bus->context);
  return true;
}

static void
leave (busloop *bus)
{
  cu_context ignored;

  wait_idle (bus);
  close_slots (bus);
  bus->cu->CtxPopCurrent (&ignored);
}

bool
busloop_measure_limits (busloop *bus, const csf_layout *layout, const csfk_kernel *kernel,
    bool quick, busloop_limits *limits, char text[256])
{
  bool good;

  memset (limits, 0, sizeof *limits);
  if (!enter (bus, layout, kernel, text))
    return false;
  good = measure_limits (bus, quick, limits);
  leave (bus);
  if (good)
    take_least (limits);
  return good;
}

/* ---- the kernel alone ---------------------------------------------------------------------- */

static bool
time_kernels (busloop *bus, unsigned streams, unsigned count, double *seconds)
{
  uint64_t begin;

  if (!wait_idle (bus))
    return false;
  begin = bench_now_ns ();
  for (unsigned i = 0; i < count; i++)
    if (!run_kernel (bus, &bus->slots[i % bus->n_slots], bus->slots[i % streams].stream))
      return false;
  if (!wait_idle (bus))
    return false;
  *seconds = (double) (bench_now_ns () - begin) / 1e9;
  return true;
}

static bool
measure_kernel (busloop *bus, unsigned streams, bool quick, double *fps)
{
  const double wanted = quick ? 0.05 : 0.1;
  double rates[3], seconds = 0;
  unsigned count = 32;

  for (int i = 0; i < 2; i++)
    if (!time_kernels (bus, streams, count, &seconds))
      return false;
  count = (unsigned) (count * wanted / seconds) + 16;
  for (int r = 0; r < 3; r++) {
    if (!time_kernels (bus, streams, count, &seconds))
      return false;
    rates[r] = count / seconds;
  }
  *fps = bench_median (rates, 3);
  return true;
}

bool
busloop_measure_kernel (busloop *bus, const csf_layout *layout, const csfk_kernel *kernel,
    const void *params, unsigned streams, bool quick, double *fps, char text[256])
{
  /* As many for each stream, so that no two write the same frame at once. */
  unsigned n = streams * (streams < LIMIT_SLOTS ? LIMIT_SLOTS : 1);
  void *noise = malloc (layout->size);
  bool good;

  *fps = 0;
  if (noise == NULL)
    abort ();
  bench_fill (noise, layout->size);
  if (!enter (bus, layout, kernel, text)) {
    free (noise);
    return false;
  }
  good = open_device_slots (bus, n, noise);
  if (good && params != NULL)
    memcpy (bus->params, params, kernel->params_size);
  good = good && measure_kernel (bus, streams, quick, fps);
  leave (bus);
  free (noise);
  return good;
}

/* ---- the plain loop ------------------------------------------------------------------------ */

static bool
start_frame (busloop *bus, slot *s)
{
  if (!upload (bus, s, s->stream) || !run_kernel (bus, s, s->stream)
      || !download (bus, s, s->stream))
    return false;
  TRY (EventRecord, s->done, s->stream);
  return true;
}

static bool
run_loop (busloop *bus, unsigned streams, bench_meter *meter)
{
  if (!open_slots (bus, streams))
    return false;
  for (unsigned i = 0; i < streams; i++)
    if (!start_frame (bus, &bus->slots[i]))
      return false;
  for (unsigned i = 0;; i = (i + 1) % streams) {
    slot *s = &bus->slots[i];
    cu_result code;

    do {
      code = bus->cu->EventQuery (s->done);
    } while (code == CU_ERROR_NOT_READY);
    if (!succeeded (bus, code, "cuEventQuery"))
      return false;
    if (bench_meter_tick (meter))
      return true;
    if (!start_frame (bus, s))
      return false;
  }
}

bool
busloop_measure_loop (busloop *bus, const csf_layout *layout, const csfk_kernel *kernel,
    unsigned streams, bool quick, double *fps, char text[256])
{
  bench_meter meter;
  bool good;

  if (!enter (bus, layout, kernel, text))
    return false;
  bench_meter_init (&meter, quick);
  good = run_loop (bus, streams, &meter);
  leave (bus);
  *fps = good ? bench_meter_rate (&meter, NULL, NULL) : 0;
  return good;
}
