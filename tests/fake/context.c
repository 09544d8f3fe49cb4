/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Devices, contexts, modules and error names of the fake driver, and the table of handles.  Knows
 * nothing of memory or streams beyond ending those of a context. */
#include "fake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DEPTH 32
#define FIRST_HANDLE 0x1000
#define HANDLE_STEP 16

bool fake_initialized;
fake_context *fake_contexts;

static fake_object **objects;
static size_t n_objects, max_objects;

static struct
{
  fake_context *context;
  unsigned references;
} primary[FAKE_MAX_DEVICES];

/* Handles, not pointers: a context may be gone while a thread still has it on its stack. */
static __thread void *stack[MAX_DEPTH];
static __thread unsigned depth;

FAKE_EXPORT cu_result cuCtxCreate_v2 (cu_context * context, unsigned flags, cu_device device);
FAKE_EXPORT cu_result cuCtxDestroy_v2 (cu_context context);
FAKE_EXPORT cu_result cuCtxGetCurrent (cu_context * context);
FAKE_EXPORT cu_result cuCtxSetCurrent (cu_context context);
FAKE_EXPORT cu_result cuCtxGetDevice (cu_device * device);
FAKE_EXPORT cu_result cuCtxSynchronize (void);
FAKE_EXPORT cu_result cuCtxEnablePeerAccess (cu_context context, unsigned flags);
FAKE_EXPORT cu_result cuCtxDisablePeerAccess (cu_context context);
FAKE_EXPORT cu_result cuDeviceCanAccessPeer (int *can, cu_device device, cu_device peer);
FAKE_EXPORT cu_result cuDeviceTotalMem_v2 (size_t * bytes, cu_device device);
FAKE_EXPORT cu_result cuDeviceGetUuid (unsigned char *uuid, cu_device device);
FAKE_EXPORT cu_result cuDevicePrimaryCtxGetState (cu_device device, unsigned *flags, int *active);

/* ---- handles --------------------------------------------------------------------------------- */

void
fake_object_add (fake_object *object, fake_kind kind, fake_context *context)
{
  if (n_objects == max_objects) {
    max_objects = max_objects == 0 ? 256 : 2 * max_objects;
    objects = realloc (objects, max_objects * sizeof *objects);
    if (objects == NULL)
      abort ();
  }
  objects[n_objects] = object;
  object->kind = kind;
  object->context = context;
  object->handle = (void *) (uintptr_t) (FIRST_HANDLE + n_objects * HANDLE_STEP);
  n_objects++;
}

void
fake_object_remove (fake_object *object)
{
  objects[((uintptr_t) object->handle - FIRST_HANDLE) / HANDLE_STEP] = NULL;
}

void *
fake_object_find (const void *handle, fake_kind kind)
{
  uintptr_t number = (uintptr_t) handle;
  size_t i = (number - FIRST_HANDLE) / HANDLE_STEP;

  if (number < FIRST_HANDLE || number % HANDLE_STEP != 0 || i >= n_objects || objects[i] == NULL)
    return NULL;
  return objects[i]->kind == kind ? objects[i] : NULL;
}

unsigned
fake_object_count (fake_kind kind, const fake_context *context)
{
  unsigned count = 0;

  for (size_t i = 0; i < n_objects; i++)
    if (objects[i] != NULL && objects[i]->kind == kind
        && (context == NULL || objects[i]->context == context))
      count++;
  return count;
}

void *
fake_object_first (fake_kind kind, const fake_context *context)
{
  for (size_t i = 0; i < n_objects; i++)
    if (objects[i] != NULL && objects[i]->kind == kind && objects[i]->context == context)
      return objects[i];
  return NULL;
}

void
fake_functions_drop (const void *module)
{
  for (size_t i = 0; i < n_objects; i++) {
    fake_object *object = objects[i];

    if (object != NULL && object->kind == FAKE_FUNCTION
        && ((fake_function *) object)->module == module) {
      fake_object_remove (object);
      free (object);
    }
  }
}

/* ---- errors ---------------------------------------------------------------------------------- */

static const struct
{
  cu_result code;
  const char *name, *text;
} errors[] = {
  {CU_SUCCESS, "CUDA_SUCCESS", "no error"},
  {CU_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
  {CU_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
  {FAKE_ERROR_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
  {FAKE_ERROR_DEINITIALIZED, "CUDA_ERROR_DEINITIALIZED", "driver shutting down"},
  {CU_ERROR_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
  {CU_ERROR_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
  {CU_ERROR_INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
  {FAKE_ERROR_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
  {CU_ERROR_NO_BINARY_FOR_GPU, "CUDA_ERROR_NO_BINARY_FOR_GPU",
      "no kernel image is available for execution on the device"},
  {CU_ERROR_UNSUPPORTED_PTX_VERSION, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
      "the provided PTX was compiled with an unsupported toolchain."},
  {FAKE_ERROR_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
  {CU_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
  {CU_ERROR_NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready"},
  {FAKE_ERROR_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS",
      "an illegal memory access was encountered"},
  {FAKE_ERROR_CONTEXT_IS_DESTROYED, "CUDA_ERROR_CONTEXT_IS_DESTROYED", "context is destroyed"},
  {CU_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED",
      "part or all of the requested memory range is already mapped"},
  {FAKE_ERROR_HOST_MEMORY_NOT_REGISTERED, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED",
      "pointer does not correspond to a registered memory region"},
  {CU_ERROR_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
  {CU_ERROR_SYSTEM_DRIVER_MISMATCH, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
      "system has unsupported display driver / cuda driver combination"},
  {999, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

FAKE_EXPORT cu_result
cuGetErrorName (cu_result error, const char **text)
{
  for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++)
    if (errors[i].code == error) {
      *text = errors[i].name;
      return CU_SUCCESS;
    }
  *text = NULL;
  return CU_ERROR_INVALID_VALUE;
}

FAKE_EXPORT cu_result
cuGetErrorString (cu_result error, const char **text)
{
  for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++)
    if (errors[i].code == error) {
      *text = errors[i].text;
      return CU_SUCCESS;
    }
  *text = NULL;
  return CU_ERROR_INVALID_VALUE;
}

/* ---- devices --------------------------------------------------------------------------------- */

FAKE_EXPORT cu_result
cuInit (unsigned flags)
{
  fake_call call;

  if (!fake_call_begin (&call, __func__, 0))
    return call.result;
  if (flags != 0)
    return fake_call_end (&call, CU_ERROR_INVALID_VALUE);
  if (fake_set.devices == 0)
    return fake_call_end (&call, CU_ERROR_NO_DEVICE);
  fake_initialized = true;
  return fake_call_end (&call, CU_SUCCESS);
}

FAKE_EXPORT cu_result
cuDriverGetVersion (int *version)
{
  fake_call call;

  if (!fake_call_begin (&call, __func__, 0))
    return call.result;
  *version = (int) fake_set.driver_version;
  return fake_call_end (&call, CU_SUCCESS);
}

FAKE_EXPORT cu_result
cuDeviceGetCount (int *count)
{
  fake_call call;

  if (!fake_call_begin (&call, __func__, FAKE_NEEDS_INIT))
    return call.result;
  *count = (int) fake_set.devices;
  return fake_call_end (&call, CU_SUCCESS);
}

/* As fake_call_begin, for a call about a device. */
static bool
begin_for_device (fake_call *call, const char *name, cu_device device, unsigned needs)
{
  if (!fake_call_begin (call, name, FAKE_NEEDS_INIT | needs))
    return false;
  if (device >= 0 && device < (int) fake_set.devices)
    return true;
  call->result = fake_call_end (call, CU_ERROR_INVALID_DEVICE);
  return false;
}

FAKE_EXPORT cu_result
cuDeviceGet (cu_device *device, int ordinal)
{
  fake_call call;

  if (!begin_for_device (&call, __func__, ordinal, 0))
    return call.result;
  *device = ordinal;
  return fake_call_end (&call, CU_SUCCESS);
}

FAKE_EXPORT cu_result
cuDeviceGetName (char *name, int length, cu_device device)
{
  fake_call call;

  if (!begin_for_device (&call, __func__, device, 0))
    return call.result;
  snprintf (name, (size_t) length, "Fake GPU %d", device);
  return fake_call_end (&call, CU_SUCCESS);
}

FAKE_EXPORT cu_result
cuDeviceGetAttribute (int *value, int attribute, cu_device device)
{
  fake_call call;

  if (!begin_for_device (&call, __func__, device, 0))
    return call.result;
  if (attribute < 1 || attribute >= FAKE_MAX_ATTRIBUTES)
    return fake_call_end (&call, CU_ERROR_INVALID_VALUE);
  *value = fake_attribute (device, attribute);
  return fake_call_end (&call, CU_SUCCESS);
}

FAKE_EXPORT cu_result
cuDeviceTotalMem_v2 (size_t *bytes, cu_device device)
{
  fake_call call;

  if (!begin_for_device (&call, __func__, device, 0))
    return call.result;
  *bytes = (size_t) fake_set.memory;
  return fake_call_end (&call, CU_SUCCESS);
}

FAKE_EXPORT cu_result
cuDeviceGetUuid (unsigned char *uuid, cu_device device)
{
  fake_call call;

  if (!begin_for_device (&call, __func__, device, 0))
    return call.result;
  memset (uuid, 0, 16);
  uuid[15] = (unsigned char) (device + 1);
  return fake_call_end (&call, CU_SUCCESS);
}

FAKE_EXPORT cu_result
cuDeviceGetPCIBusId (char *id, int length, cu_device device)
{
  fake_call call;

  if (!begin_for_device (&call, __func__, device, 0))
    return call.result;
  snprintf (id, (size_t) length, "0000:%02x:00.0", device + 1);
  return fake_call_end (&call, CU_SUCCESS);
}

FAKE_EXPORT cu_result
cuDeviceCanAccessPeer (int *can, cu_device device, cu_device peer)
{
  fake_call call;

  if (!begin_for_device (&call, __func__, device, 0))
    return call.result;
  *can = device != peer && peer >= 0 && peer < (int) fake_set.devices;
  return fake_call_end (&call, CU_SUCCESS);
}

/* ---- contexts -------------------------------------------------------------------------------- */

fake_context *
fake_context_current (void)
{
  return depth == 0 ? NULL : fake_object_find (stack[depth - 1], FAKE_CONTEXT);
}

static fake_context *
context_new (int device)
{
  fake_context *context = calloc (1, sizeof *context);

  if (context == NULL)
    abort ();
  context->device = device;
  fake_object_add (&context->object, FAKE_CONTEXT, context);
  context->next = fake_contexts;
  fake_contexts = context;
  return context;
}

/* What is left goes with the context, as in the real driver, but is counted: a program that
 * tidies up leaves nothing. */
static void
context_free (fake_context *context)
{
  fake_object *object;
  fake_context **link = &fake_contexts;

  fake_counts.orphans += fake_object_count (FAKE_STREAM, context)
      + fake_object_count (FAKE_EVENT, context) + fake_object_count (FAKE_MODULE, context);
  fake_object_remove (&context->object);
  fake_context_end_streams (context);
  while ((object = fake_object_first (FAKE_EVENT, context)) != NULL) {
    fake_object_remove (object);
    fake_event_release ((fake_event *) object);
  }
  for (int kind = FAKE_MODULE; kind <= FAKE_FUNCTION; kind++)
    while ((object = fake_object_first ((fake_kind) kind, context)) != NULL) {
      fake_object_remove (object);
      free (object);
    }
  fake_memory_drop_context (context);
  while (*link != context)
    link = &(*link)->next;
  *link = context->next;
  free (context);
}

FAKE_EXPORT cu_result
cuDevicePrimaryCtxRetain (cu_context *context, cu_device device)
{
  fake_call call;

  if (!begin_for_device (&call, __func__, device, 0))
    return call.result;
  if (fake_attribute (device, CU_ATTRIBUTE_COMPUTE_MODE) == CU_COMPUTEMODE_PROHIBITED)
    return fake_call_end (&call, 46);
  if (primary[device].references++ == 0) {
    primary[device].context = context_new (device);
    primary[device].context->primary = true;
  }
  fake_counts.primary_references++;
  *context = primary[device].context->object.handle;
  return fake_call_end (&call, CU_SUCCESS);
}

FAKE_EXPORT cu_result
cuDevicePrimaryCtxRelease_v2 (cu_device device)
{
  fake_call call;

  if (!begin_for_device (&call, __func__, device, FAKE_GIVES_BACK))
    return call.result;
  if (primary[device].references == 0)
    return fake_call_end (&call, fake_misuse (FAKE_ERROR_INVALID_CONTEXT,
            "primary context of device %d released once too often", device));
  fake_counts.primary_references--;
  if (--primary[device].references == 0) {
    fake_context *context = primary[device].context;

    primary[device].context = NULL;
    context_free (context);
  }
  return fake_call_end (&call, CU_SUCCESS);
}

FAKE_EXPORT cu_result
cuDevicePrimaryCtxGetState (cu_device device, unsigned *flags, int *active)
{
  fake_call call;

  if (!begin_for_device (&call, __func__, device, 0))
    return call.result;
  *flags = 0;
  *active = primary[device].references > 0;
  return fake_call_end (&call, CU_SUCCESS);
}

static cu_result
push (void *handle)
{
  if (depth == MAX_DEPTH)
    return fake_misuse (FAKE_ERROR_INVALID_CONTEXT, "contexts pushed and never popped");
  stack[depth++] = handle;
  return CU_SUCCESS;
}

FAKE_EXPORT cu_result
cuCtxCreate_v2 (cu_context *context, unsigned flags, cu_device device)
{
  fake_call call;

  if (!begin_for_device (&call, __func__, device, 0))
    return call.result;
  *context = context_new (device)->object.handle;
  return fake_call_end (&call, push (*context));
}

FAKE_EXPORT cu_result
cuCtxDestroy_v2 (cu_context handle)
{
  fake_context *context;
  fake_call call;

  if (!fake_call_begin (&call, __func__, FAKE_NEEDS_INIT | FAKE_GIVES_BACK))
    return call.result;
  context = fake_object_find (handle, FAKE_CONTEXT);
  if (context == NULL || context->primary)
    return fake_call_end (&call, fake_misuse (FAKE_ERROR_INVALID_CONTEXT,
            "cuCtxDestroy of what is no context of one's own"));
  if (depth > 0 && stack[depth - 1] == (void *) handle)
    depth--;
  context_free (context);
  return fake_call_end (&call, CU_SUCCESS);
}

FAKE_EXPORT cu_result
cuCtxPushCurrent_v2 (cu_context handle)
{
  fake_context *context;
  fake_call call;

  if (!fake_call_begin (&call, __func__, FAKE_NEEDS_INIT | FAKE_ENTERS))
    return call.result;
  context = fake_object_find (handle, FAKE_CONTEXT);
  if (context == NULL)
    return fake_call_end (&call, fake_misuse (FAKE_ERROR_INVALID_CONTEXT,
            "a context is pushed that does not exist"));
  if (call.result != CU_SUCCESS) {
    fake_context_break (context, call.result);
    return fake_call_end (&call, call.result);
  }
  return fake_call_end (&call, push (handle));
}

FAKE_EXPORT cu_result
cuCtxPopCurrent_v2 (cu_context *context)
{
  fake_call call;

  if (!fake_call_begin (&call, __func__, FAKE_NEEDS_INIT | FAKE_GIVES_BACK))
    return call.result;
  if (depth == 0)
    return fake_call_end (&call, fake_misuse (FAKE_ERROR_INVALID_CONTEXT,
            "a context is popped where none was pushed"));
  depth--;
  if (context != NULL)
    *context = stack[depth];
  return fake_call_end (&call, CU_SUCCESS);
}

FAKE_EXPORT cu_result
cuCtxGetCurrent (cu_context *context)
{
  fake_call call;

  if (!fake_call_begin (&call, __func__, FAKE_NEEDS_INIT))
    return call.result;
  *context = call.context == NULL ? NULL : call.context->object.handle;
  return fake_call_end (&call, CU_SUCCESS);
}

FAKE_EXPORT cu_result
cuCtxSetCurrent (cu_context context)
{
  fake_call call;

  if (!fake_call_begin (&call, __func__, FAKE_NEEDS_INIT))
    return call.result;
  if (context != NULL && fake_object_find (context, FAKE_CONTEXT) == NULL)
    return fake_call_end (&call, FAKE_ERROR_INVALID_CONTEXT);
  if (depth > 0)
    depth--;
  return fake_call_end (&call, context == NULL ? CU_SUCCESS : push (context));
}

FAKE_EXPORT cu_result
cuCtxGetDevice (cu_device *device)
{
  fake_call call;

  if (!fake_call_begin (&call, __func__, FAKE_NEEDS_CONTEXT))
    return call.result;
  *device = call.context->device;
  return fake_call_end (&call, CU_SUCCESS);
}

FAKE_EXPORT cu_result
cuCtxSynchronize (void)
{
  fake_call call;

  if (!fake_call_begin (&call, __func__, FAKE_NEEDS_CONTEXT | FAKE_ASKS))
    return call.result;
  fake_context_drain (call.context);
  return fake_call_end (&call, call.context->error);
}

FAKE_EXPORT cu_result
cuCtxEnablePeerAccess (cu_context context, unsigned flags)
{
  fake_call call;

  if (!fake_call_begin (&call, __func__, FAKE_NEEDS_CONTEXT))
    return call.result;
  return fake_call_end (&call, fake_object_find (context, FAKE_CONTEXT) == NULL
      ? FAKE_ERROR_INVALID_CONTEXT : CU_SUCCESS);
}

FAKE_EXPORT cu_result
cuCtxDisablePeerAccess (cu_context context)
{
  return cuCtxEnablePeerAccess (context, 0);
}

/* ---- what libgstcuda wants to find and we do not have ---------------------------------------- */

#define UNSUPPORTED(name) \
  FAKE_EXPORT cu_result name (void); \
  FAKE_EXPORT cu_result name (void) { return CU_ERROR_NOT_SUPPORTED; }

UNSUPPORTED (cuGLGetDevices_v2)
UNSUPPORTED (cuGraphicsGLRegisterBuffer)
UNSUPPORTED (cuGraphicsGLRegisterImage)
UNSUPPORTED (cuGraphicsMapResources)
UNSUPPORTED (cuGraphicsResourceGetMappedPointer_v2)
UNSUPPORTED (cuGraphicsResourceSetMapFlags_v2)
UNSUPPORTED (cuGraphicsSubResourceGetMappedArray)
UNSUPPORTED (cuGraphicsUnmapResources)
UNSUPPORTED (cuGraphicsUnregisterResource)
UNSUPPORTED (cuTexObjectCreate)
UNSUPPORTED (cuTexObjectDestroy)
/* From GStreamer 1.24 on. */
UNSUPPORTED (cuCtxGetLimit)
UNSUPPORTED (cuCtxSetLimit)
UNSUPPORTED (cuMemcpyDtoD_v2)
UNSUPPORTED (cuMemsetD2D8_v2)
UNSUPPORTED (cuMemsetD2D8Async)
UNSUPPORTED (cuMemsetD2D16_v2)
UNSUPPORTED (cuMemsetD2D16Async)
UNSUPPORTED (cuMemsetD2D32_v2)
UNSUPPORTED (cuMemsetD2D32Async)
UNSUPPORTED (cuIpcGetEventHandle)
UNSUPPORTED (cuIpcOpenEventHandle)
UNSUPPORTED (cuIpcGetMemHandle)
UNSUPPORTED (cuIpcOpenMemHandle_v2)
UNSUPPORTED (cuIpcOpenMemHandle)
UNSUPPORTED (cuIpcCloseMemHandle)
