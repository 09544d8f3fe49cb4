/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The GPU as checkkernels uses it: one stream, the kernels' modules, and every driver result read.
 * Knows the driver through cuda_dl.h only, so it runs over a fake driver as well. */
#include "check.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum
{
  MAX_MODULES = 32
};

typedef struct loaded_module
{
  const csfk_kernel *kernel;
  cu_module module;
  /* The symbol launched last: looking it up each time would cost as much as a launch. */
  const char *symbol;
  cu_function function;
} loaded_module;

struct gpu
{
  csfk_launcher launcher;       /* first: launch() finds the device from it */
  const cuda_driver *cu;
  cu_device ordinal;
  cu_context context;
  cu_stream stream;
  /* Not among the functions that the engine needs. */
  cu_result (*copy) (cu_deviceptr to, cu_deviceptr from, size_t bytes, cu_stream stream);
  char name[128];
  int driver_version;
  loaded_module modules[MAX_MODULES];
  int n_modules;
  loaded_module *current;
};

static void
require (const gpu *device, cu_result result, const char *what)
{
  const char *text = NULL;

  if (result == CU_SUCCESS)
    return;
  device->cu->GetErrorString (result, &text);
  check_fail ("%s: %s (%d)", what, text ? text : "unknown error", result);
}

static int
launch (csfk_launcher *launcher, const char *symbol, csfk_dim grid, csfk_dim block,
    unsigned shared_bytes, const void *args, unsigned args_size)
{
  gpu *self = (gpu *) launcher;
  loaded_module *loaded = self->current;
  void *params[] = { (void *) args };

  (void) args_size;
  if (loaded->symbol != symbol) {
    require (self, self->cu->ModuleGetFunction (&loaded->function, loaded->module, symbol), symbol);
    loaded->symbol = symbol;
  }
  return self->cu->LaunchKernel (loaded->function, grid.x, grid.y, grid.z, block.x, block.y,
      block.z, shared_bytes, self->stream, params, NULL);
}

gpu *
device_open (char *why, size_t why_size)
{
  csf_error error = { .status = CSF_OK };
  const cuda_driver *cu = cuda_driver_get (&error);
  gpu *self;
  int count = 0;

  if (!cu) {
    snprintf (why, why_size, "%s", error.text);
    return NULL;
  }
  if (cu->Init (0) != CU_SUCCESS || cu->DeviceGetCount (&count) != CU_SUCCESS || count == 0) {
    snprintf (why, why_size, "the driver finds no GPU");
    return NULL;
  }

  self = calloc (1, sizeof *self);
  if (!self)
    check_fail ("out of memory");
  self->cu = cu;
  self->launcher.launch = launch;
  require (self, cu->DriverGetVersion (&self->driver_version), "cuDriverGetVersion");
  require (self, cu->DeviceGet (&self->ordinal, 0), "cuDeviceGet");
  require (self, cu->DeviceGetName (self->name, sizeof self->name, self->ordinal),
      "cuDeviceGetName");
  require (self, cu->DevicePrimaryCtxRetain (&self->context, self->ordinal),
      "cuDevicePrimaryCtxRetain");
  require (self, cu->CtxPushCurrent (self->context), "cuCtxPushCurrent");
  require (self, cu->StreamCreate (&self->stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  *(void **) &self->copy = dlsym (dlopen ("libcuda.so.1", RTLD_NOW), "cuMemcpyDtoDAsync_v2");
  if (!self->copy)
    check_fail ("the driver has no cuMemcpyDtoDAsync_v2");
  return self;
}

void
device_close (gpu *self)
{
  cu_context context;

  if (!self)
    return;
  for (int i = 0; i < self->n_modules; i++)
    require (self, self->cu->ModuleUnload (self->modules[i].module), "cuModuleUnload");
  require (self, self->cu->StreamDestroy (self->stream), "cuStreamDestroy");
  require (self, self->cu->CtxPopCurrent (&context), "cuCtxPopCurrent");
  require (self, self->cu->DevicePrimaryCtxRelease (self->ordinal), "cuDevicePrimaryCtxRelease");
  free (self);
}

const char *
device_get_name (const gpu *self)
{
  return self->name;
}

int
device_get_driver_version (const gpu *self)
{
  return self->driver_version;
}

bool
device_load (gpu *self, const csfk_kernel *kernel)
{
  loaded_module *loaded;
  cu_result result;

  for (int i = 0; i < self->n_modules; i++)
    if (self->modules[i].kernel == kernel)
      return true;
  if (self->n_modules == MAX_MODULES || kernel->device_code->size == 0)
    check_fail ("%s: no device code, or too many kernels", kernel->name);
  loaded = &self->modules[self->n_modules];
  result = self->cu->ModuleLoadData (&loaded->module, kernel->device_code->data);
#ifdef DUMMY_DEVICE_CODE
  if (result == CU_ERROR_INVALID_IMAGE)
    return false;
#endif
  require (self, result, "cuModuleLoadData");
  loaded->kernel = kernel;
  self->n_modules++;
  return true;
}

cu_deviceptr
device_alloc (gpu *self, size_t size)
{
  cu_deviceptr memory = 0;

  require (self, self->cu->MemAlloc (&memory, size), "cuMemAlloc");
  return memory;
}

void
device_free (gpu *self, cu_deviceptr memory)
{
  require (self, self->cu->MemFree (memory), "cuMemFree");
}

void
device_finish (gpu *self)
{
  cu_event done;
  cu_result result;

  require (self, self->cu->EventCreate (&done, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
  require (self, self->cu->EventRecord (done, self->stream), "cuEventRecord");
  while ((result = self->cu->EventQuery (done)) == CU_ERROR_NOT_READY)
    continue;
  require (self, result, "a kernel or copy");
  require (self, self->cu->EventDestroy (done), "cuEventDestroy");
}

void
device_upload (gpu *self, cu_deviceptr to, const void *from, size_t size)
{
  require (self, self->cu->MemcpyHtoDAsync (to, from, size, self->stream), "cuMemcpyHtoDAsync");
  device_finish (self);
}

void
device_download (gpu *self, void *to, cu_deviceptr from, size_t size)
{
  require (self, self->cu->MemcpyDtoHAsync (to, from, size, self->stream), "cuMemcpyDtoHAsync");
  device_finish (self);
}

/* The driver table has no linear copy on the device; a 2D copy without gaps is the same. */
void
device_copy (gpu *self, cu_deviceptr to, cu_deviceptr from, size_t size)
{
  require (self, self->copy (to, from, size, self->stream), "cuMemcpyDtoDAsync");
}

void
device_enqueue (gpu *self, const csfk_kernel *kernel, const csfk_frame *frame)
{
  self->current = NULL;
  for (int i = 0; i < self->n_modules; i++)
    if (self->modules[i].kernel == kernel)
      self->current = &self->modules[i];
  if (!self->current)
    check_fail ("%s was not loaded", kernel->name);
  require (self, kernel->enqueue (frame, &self->launcher), kernel->name);
}

double
device_time (gpu *self, void (*work) (void *data), void *data)
{
  cu_event start, end;
  float milliseconds = 0;

  require (self, self->cu->EventCreate (&start, CU_EVENT_DEFAULT), "cuEventCreate");
  require (self, self->cu->EventCreate (&end, CU_EVENT_DEFAULT), "cuEventCreate");
  require (self, self->cu->EventRecord (start, self->stream), "cuEventRecord");
  work (data);
  require (self, self->cu->EventRecord (end, self->stream), "cuEventRecord");
  device_finish (self);
  require (self, self->cu->EventElapsedTime (&milliseconds, start, end), "cuEventElapsedTime");
  require (self, self->cu->EventDestroy (start), "cuEventDestroy");
  require (self, self->cu->EventDestroy (end), "cuEventDestroy");
  return milliseconds;
}
