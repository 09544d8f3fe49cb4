/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What records cost a frame: the engine without any, and with so many bytes of them in each kind of memory; and
 * beside that what managed memory costs a plain loop when it is left to move by itself.  The kernel is compiled
 * here, by NVRTC. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/cuda_dl.h"
#include "engine/nvrtc.h"
#include "engineloop.h"
#include "kernels/format.h"
#include "kernels/module.h"

#define RECORD_BYTES 16u
#define STREAMS 3

static const char source_text[] =
    "#include <cudastreamfilter/kernel.h>\n"
    "struct args { csfk_frame frame; unsigned n; };\n"
    "extern \"C\" __global__ void csfk_find (const args a) { }\n"
    "extern \"C\" __global__ void csfk_find_emit (const args a)\n"
    "{\n"
    "  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  if (i < a.n) {\n"
    "    uint4 *record = (uint4 *) csfk_append (&a.frame.records);\n"
    "    if (record) *record = make_uint4 (i, a.n, i * 3, i ^ a.n);\n"
    "  }\n"
    "}\n";

typedef struct find_args
{
  csfk_frame frame;
  unsigned n;
} find_args;

static int
launch (const csfk_frame *frame, const void *params, csfk_launcher *launcher, const char *symbol)
{
  find_args args = { .frame = *frame };

  memcpy (&args.n, params, sizeof args.n);
  return launcher->launch (launcher, symbol, (csfk_dim) {(args.n + 255) / 256 + (args.n == 0), 1, 1},
      (csfk_dim) {256, 1, 1}, 0, &args, sizeof args);
}

static int
enqueue (const csfk_frame *frame, const void *params, csfk_launcher *launcher)
{
  return launch (frame, params, launcher, "csfk_find");
}

static int
emit (const csfk_frame *frame, const void *params, csfk_launcher *launcher)
{
  return launch (frame, params, launcher, "csfk_find_emit");
}

static void
process (const csfk_frame *frame, const void *params)
{
}

static const csfk_kernel with_records = {
  .abi = CSFK_ABI,
  .name = "find",
  .description = "Appends records and does nothing else",
  .formats = {CSFK_FORMAT_NV12},
  .params_size = sizeof (unsigned),
  .process = process,
  .enqueue = enqueue,
  .record_size = RECORD_BYTES,
  .record_name = "test",
  .emit = emit,
};

/* ---- the engine -------------------------------------------------------------------------------- */

static bool
compile (const csf_device_info *info, csfk_blob *code)
{
  const csf_nvrtc_header header = { "cudastreamfilter/kernel.h", (const char *) csfk_blob_contract.data };
  const csf_nvrtc_source source = { "find.cu", source_text, &header, 1, NULL, 0 };
  char target[CSF_NVRTC_TARGET_BYTES];
  unsigned char *bytes;
  csf_error error;
  size_t size;

  if (csf_nvrtc_get_target (info->capability, info->driver_version, target, &error) != CSF_OK
      || csf_nvrtc_compile (&source, target, &bytes, &size, NULL, &error) != CSF_OK) {
    fprintf (stderr, "metadata: %s\n", error.text);
    return false;
  }
  code->data = bytes;
  code->size = size;
  return true;
}

/* Microseconds a frame, or less than 0. */
static double
measure (csf_device *device, const csfk_kernel *kernel, const csf_layout *layout, unsigned n,
    csf_metadata_memory memory, bool quick, engineloop_result *result)
{
  const engineloop_setup setup = {
    .device = device,
    .layout = layout,
    .kernel = kernel,
    .params = &n,
    .streams = STREAMS,
    .metadata_memory = memory,
    .quick = quick,
  };
  csf_error error;

  if (engineloop_measure (&setup, result, &error) == CSF_OK)
    return 1e6 / result->fps;
  fprintf (stderr, "metadata: %s\n", error.text);
  return -1;
}

/* ---- managed memory that moves when it is touched ----------------------------------------------- */

typedef enum placement
{
  ON_DEMAND,                    /* no advice: to and fro with each frame */
  PLACED                        /* as the engine has it */
} placement;

/* One frame after another: append, wait, read.  Microseconds, or less than 0. */
static double
time_managed (const csf_device_info *info, const csfk_blob *code, unsigned n, placement how)
{
  const cuda_driver *cu = cuda_driver_get (NULL);
  const size_t bytes = (size_t) n * RECORD_BYTES;
  const unsigned rounds = n > 65536 ? 40 : 200;
  unsigned char *copy = malloc (bytes);
  cu_deviceptr memory = 0, count = 0;
  cu_stream stream = NULL;
  cu_module module = NULL;
  cu_function function;
  uint64_t begin = 0;
  bool ok;

  ok = copy != NULL && cu->ModuleLoadDataEx (&module, code->data, 0, NULL, NULL) == CU_SUCCESS
      && cu->ModuleGetFunction (&function, module, "csfk_find_emit") == CU_SUCCESS
      && cu->MemAllocManaged (&memory, bytes, CU_MEM_ATTACH_GLOBAL) == CU_SUCCESS
      && cu->MemAlloc (&count, sizeof (unsigned)) == CU_SUCCESS
      && cu->StreamCreate (&stream, CU_STREAM_NON_BLOCKING) == CU_SUCCESS;
  if (ok && how == PLACED)
    ok = cu->MemAdvise (memory, bytes, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, CU_DEVICE_CPU) == CU_SUCCESS
        && cu->MemAdvise (memory, bytes, CU_MEM_ADVISE_SET_ACCESSED_BY, info->id) == CU_SUCCESS;
  for (unsigned i = 0; ok && i < rounds + 10; i++) {
    find_args args = {
      .frame.records = {(unsigned char *) (uintptr_t) memory, (unsigned *) (uintptr_t) count, n,
          RECORD_BYTES},
      .n = n,
    };
    void *params[] = { &args };

    if (i == 10)
      begin = bench_now_ns ();
    ok = cu->MemsetD8Async (count, 0, sizeof (unsigned), stream) == CU_SUCCESS
        && cu->LaunchKernel (function, (n + 255) / 256, 1, 1, 256, 1, 1, 0, stream, params, NULL)
        == CU_SUCCESS;
    while (ok && cu->StreamQuery (stream) == CU_ERROR_NOT_READY)
      ;
    memcpy (copy, (void *) (uintptr_t) memory, bytes);
  }
  if (stream != NULL)
    cu->StreamDestroy (stream);
  if (memory != 0)
    cu->MemFree (memory);
  if (count != 0)
    cu->MemFree (count);
  if (module != NULL)
    cu->ModuleUnload (module);
  free (copy);
  return ok ? (double) (bench_now_ns () - begin) / 1e3 / rounds : -1;
}

/* ---- all --------------------------------------------------------------------------------------- */

static void
report_size (csf_device *device, const csfk_kernel *kernel, const csf_layout *layout, double none,
    unsigned kilobytes, const bench_options *options, bench_report *report)
{
  static const struct
  {
    const char *name;
    csf_metadata_memory memory;
  } kinds[] = {
    {"auto", CSF_METADATA_AUTO}, {"managed", CSF_METADATA_MANAGED}, {"pinned", CSF_METADATA_PINNED},
    {"device", CSF_METADATA_DEVICE}
  };
  const unsigned n = kilobytes * 1024 / RECORD_BYTES;
  const cuda_driver *cu = cuda_driver_get (NULL);
  const csf_device_info *info = csf_device_get_info (device);
  cu_context ignored;
  bench_row row;

  for (unsigned k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
    engineloop_result result;
    double us = measure (device, kernel, layout, n, kinds[k].memory, options->quick, &result);

    if (us < 0)
      continue;
    bench_row_init (&row, us, none, "metadata/%uKB/%s", kilobytes, kinds[k].name);
    row.unit = "us a frame";
    bench_row_add_extra (&row, "more-than-none", us - none);
    bench_row_add_extra (&row, "growths", (double) result.stats.growths);
    bench_row_add_extra (&row, "memory", (double) result.stats.metadata_memory);
    bench_report_add (report, &row);
  }
  cu->CtxPushCurrent (csf_device_get_context (device));
  for (int how = ON_DEMAND; how <= PLACED; how++) {
    double us = time_managed (info, kernel->device_code, n, (placement) how);

    bench_row_init (&row, us, 0, "metadata-alone/%uKB/%s", kilobytes,
        how == ON_DEMAND ? "on-demand" : "placed");
    row.unit = "us a frame";
    if (us >= 0)
      bench_report_add (report, &row);
  }
  cu->CtxPopCurrent (&ignored);
}

int
main (int argc, char **argv)
{
  const bench_size size = { "NV12", 640, 360 };
  bench_options options;
  bench_report report = { 0 };
  csfk_kernel kernel = with_records, plain;
  csfk_blob code = { 0 };
  csf_device *device;
  engineloop_result result;
  csf_layout layout;
  csf_error error;
  double none;
  bench_row row;

  bench_options_parse (&options, argc, argv, "times what a kernel's records cost a frame, by their bytes "
      "and the memory they are in");
  if (csf_device_open (CSF_BACKEND_CUDA, -1, &device, &error) != CSF_OK) {
    fprintf (stderr, "metadata: %s\n", error.text);
    return 77;
  }
  snprintf (report.device, sizeof report.device, "%s", csf_device_get_info (device)->name);
  snprintf (report.driver, sizeof report.driver, "%s", options.driver != NULL ? options.driver : "");
  snprintf (report.cuda, sizeof report.cuda, "%d.%d", csf_device_get_info (device)->driver_version / 1000,
      csf_device_get_info (device)->driver_version % 1000 / 10);
  if (!compile (csf_device_get_info (device), &code))
    return 1;
  kernel.device_code = &code;
  plain = kernel;
  plain.record_size = 0;
  plain.emit = NULL;
  bench_layout (&size, &layout);
  none = measure (device, &plain, &layout, 0, CSF_METADATA_AUTO, options.quick, &result);
  bench_row_init (&row, none, 0, "metadata/none");
  row.unit = "us a frame";
  bench_report_add (&report, &row);
  for (unsigned kilobytes = 1; kilobytes <= 4096; kilobytes *= 4)
    report_size (device, &kernel, &layout, none, kilobytes, &options, &report);
  free ((void *) code.data);
  csf_device_unref (device);
  return bench_report_finish (&report, &options) ? 0 : 1;
}
