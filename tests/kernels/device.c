/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The GPU as checkkernels uses it: a few streams, the kernels' modules, and every driver result read.
 * Knows the driver through cuda_dl.h only, so it runs over a fake driver as well. */
#include "check.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum
{
  MAX_MODULES = 32,
  MAX_FUNCTIONS = 16
};

typedef struct loaded_function
{
  char symbol[64];
  cu_function function;
} loaded_function;

typedef struct loaded_module
{
  const csfk_kernel *kernel;
  cu_module module;             /* NULL: the kernel needs no device code */
  /* Those launched so far: looking one up each time would cost as much as a launch. */
  loaded_function functions[MAX_FUNCTIONS];
  int n_functions;
} loaded_module;

struct gpu
{
  csfk_launcher launcher;       /* first: launch() finds the device from it */
  const cuda_driver *cu;
  cu_device ordinal;
  cu_context context;
  cu_stream streams[DEVICE_STREAMS];
  int in_use;                   /* index of a stream */
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

static cu_stream
get_stream (const gpu *self)
{
  return self->streams[self->in_use];
}

static cu_function
find_function (gpu *self, const char *symbol)
{
  loaded_module *loaded = self->current;
  loaded_function *made;

  for (int i = 0; i < loaded->n_functions; i++)
    if (strcmp (loaded->functions[i].symbol, symbol) == 0)
      return loaded->functions[i].function;
  if (!loaded->module || loaded->n_functions == MAX_FUNCTIONS
      || strlen (symbol) >= sizeof made->symbol)
    check_fail ("%s: no device code, or too many functions, or too long a name", symbol);
  made = &loaded->functions[loaded->n_functions++];
  strcpy (made->symbol, symbol);
  require (self, self->cu->ModuleGetFunction (&made->function, loaded->module, symbol), symbol);
  return made->function;
}

static int
launch (csfk_launcher *launcher, const char *symbol, csfk_dim grid, csfk_dim block,
    unsigned shared_bytes, const void *args, unsigned args_size)
{
  gpu *self = (gpu *) launcher;
  cu_function function = find_function (self, symbol);
  void *params[] = { (void *) args };

  (void) args_size;
  return self->cu->LaunchKernel (function, grid.x, grid.y, grid.z, block.x, block.y, block.z,
      shared_bytes, get_stream (self), params, NULL);
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
  for (int i = 0; i < DEVICE_STREAMS; i++)
    require (self, cu->StreamCreate (&self->streams[i], CU_STREAM_NON_BLOCKING), "cuStreamCreate");
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
    if (self->modules[i].module)
      require (self, self->cu->ModuleUnload (self->modules[i].module), "cuModuleUnload");
  for (int i = 0; i < DEVICE_STREAMS; i++)
    require (self, self->cu->StreamDestroy (self->streams[i]), "cuStreamDestroy");
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
  if (self->n_modules == MAX_MODULES || (kernel->device_code && kernel->device_code->size == 0))
    check_fail ("%s: no device code, or too many kernels", kernel->name);
  loaded = &self->modules[self->n_modules];
  if (!kernel->device_code) {
    loaded->kernel = kernel;
    self->n_modules++;
    return true;
  }
  result = self->cu->ModuleLoadDataEx (&loaded->module, kernel->device_code->data, 0, NULL, NULL);
#ifdef DUMMY_DEVICE_CODE
  if (result == CU_ERROR_INVALID_IMAGE)
    return false;
#endif
  require (self, result, "cuModuleLoadDataEx");
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
device_use_stream (gpu *self, int stream)
{
  self->in_use = stream;
}

void
device_wait_for (gpu *self, int stream)
{
  cu_event done;

  require (self, self->cu->EventCreate (&done, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
  require (self, self->cu->EventRecord (done, self->streams[stream]), "cuEventRecord");
  require (self, self->cu->StreamWaitEvent (get_stream (self), done, 0), "cuStreamWaitEvent");
  /* Its memory lives on until it is done. */
  require (self, self->cu->EventDestroy (done), "cuEventDestroy");
}

static void
finish_stream (gpu *self, cu_stream stream)
{
  cu_event done;
  cu_result result;

  require (self, self->cu->EventCreate (&done, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
  require (self, self->cu->EventRecord (done, stream), "cuEventRecord");
  while ((result = self->cu->EventQuery (done)) == CU_ERROR_NOT_READY)
    continue;
  require (self, result, "a kernel or copy");
  require (self, self->cu->EventDestroy (done), "cuEventDestroy");
}

void
device_finish (gpu *self)
{
  for (int i = 0; i < DEVICE_STREAMS; i++)
    finish_stream (self, self->streams[i]);
}

void
device_send (gpu *self, cu_deviceptr to, const void *from, size_t size)
{
  require (self, self->cu->MemcpyHtoDAsync (to, from, size, get_stream (self)),
      "cuMemcpyHtoDAsync");
}

void
device_upload (gpu *self, cu_deviceptr to, const void *from, size_t size)
{
  device_send (self, to, from, size);
  finish_stream (self, get_stream (self));
}

void
device_download (gpu *self, void *to, cu_deviceptr from, size_t size)
{
  require (self, self->cu->MemcpyDtoHAsync (to, from, size, get_stream (self)),
      "cuMemcpyDtoHAsync");
  finish_stream (self, get_stream (self));
}

void
device_copy (gpu *self, cu_deviceptr to, cu_deviceptr from, size_t size)
{
  require (self, self->copy (to, from, size, get_stream (self)), "cuMemcpyDtoDAsync");
}

void
device_clear (gpu *self, cu_deviceptr memory, size_t size)
{
  require (self, self->cu->MemsetD8Async (memory, 0, size, get_stream (self)), "cuMemsetD8Async");
}

/* The kernel and the stream that the launcher works for. */
static csfk_launcher *
prepare_launcher (gpu *self, const csfk_kernel *kernel, const csfk_region *regions)
{
  self->current = NULL;
  for (int i = 0; i < self->n_modules; i++)
    if (self->modules[i].kernel == kernel)
      self->current = &self->modules[i];
  if (!self->current)
    check_fail ("%s was not loaded", kernel->name);
  self->launcher.stream = get_stream (self);
  self->launcher.regions = regions;
  return &self->launcher;
}

void
device_enqueue (gpu *self, const csfk_kernel *kernel, const csfk_frame *frame, const void *params,
    const csfk_region *regions)
{
  require (self, kernel->enqueue (frame, params, prepare_launcher (self, kernel, regions)),
      kernel->name);
}

void
device_emit (gpu *self, const csfk_kernel *kernel, const csfk_frame *frame, const void *params,
    const csfk_region *regions)
{
  device_clear (self, (cu_deviceptr) (uintptr_t) frame->records.count, sizeof (unsigned));
  require (self, kernel->emit (frame, params, prepare_launcher (self, kernel, regions)),
      kernel->name);
}

double
device_time (gpu *self, void (*work) (void *data), void *data)
{
  cu_event start, end;
  float milliseconds = 0;

  require (self, self->cu->EventCreate (&start, CU_EVENT_DEFAULT), "cuEventCreate");
  require (self, self->cu->EventCreate (&end, CU_EVENT_DEFAULT), "cuEventCreate");
  require (self, self->cu->EventRecord (start, self->streams[0]), "cuEventRecord");
  for (int i = 1; i < DEVICE_STREAMS; i++)
    require (self, self->cu->StreamWaitEvent (self->streams[i], start, 0), "cuStreamWaitEvent");
  work (data);
  device_use_stream (self, 0);
  for (int i = 1; i < DEVICE_STREAMS; i++)
    device_wait_for (self, i);
  require (self, self->cu->EventRecord (end, self->streams[0]), "cuEventRecord");
  device_finish (self);
  require (self, self->cu->EventElapsedTime (&milliseconds, start, end), "cuEventElapsedTime");
  require (self, self->cu->EventDestroy (start), "cuEventDestroy");
  require (self, self->cu->EventDestroy (end), "cuEventDestroy");
  return milliseconds;
}
