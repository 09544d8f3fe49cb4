/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The CUDA backend's devices: choosing one, its primary context, pinning host memory for it.  Knows no
 * frames. */
#include "backend_cuda.h"

#include <stdlib.h>

#define MIN_DRIVER_VERSION 12000

csf_status
cuda_status (cu_result code)
{
  switch (code) {
    case CU_SUCCESS:
      return CSF_OK;
    case CU_ERROR_OUT_OF_MEMORY:
      return CSF_ERROR_MEMORY;
    case CU_ERROR_NO_DEVICE:
    case CU_ERROR_INVALID_DEVICE:
      return CSF_ERROR_NO_DEVICE;
    case CU_ERROR_SYSTEM_DRIVER_MISMATCH:
      return CSF_ERROR_DRIVER;
    case CU_ERROR_NOT_SUPPORTED:
      return CSF_ERROR_UNSUPPORTED;
    default:
      return CSF_ERROR_DEVICE;
  }
}

csf_status
cuda_error (const cuda_driver *cu, csf_error *error, csf_stage stage, uint64_t frame,
    cu_result code, const char *call)
{
  const char *name = NULL, *text = NULL;

  cu->GetErrorName (code, &name);
  cu->GetErrorString (code, &text);
  return csf_error_set (error, cuda_status (code), stage, frame, code, "%s failed with %s (%d): %s",
      call, name != NULL ? name : "an unknown error", code, text != NULL ? text : "no text");
}

csf_status
cuda_enter (cuda_device *device, csf_error *error, csf_stage stage, uint64_t frame)
{
  cu_result code = device->cu->CtxPushCurrent (device->context);

  if (code != CU_SUCCESS)
    return cuda_error (device->cu, error, stage, frame, code, "cuCtxPushCurrent");
  return CSF_OK;
}

void
cuda_leave (cuda_device *device)
{
  cu_context ignored;

  device->cu->CtxPopCurrent (&ignored);
}

/* ---- device ------------------------------------------------------------------------------------ */

static csf_status
no_device (csf_error *error, int driver_code)
{
  return csf_error_set (error, CSF_ERROR_NO_DEVICE, CSF_STAGE_OPEN, CSF_NO_FRAME, driver_code,
      "expected a CUDA device, the driver sees none; in a container start it with the GPU, and look "
      "at CUDA_VISIBLE_DEVICES");
}

static csf_status
init_driver (const cuda_driver **driver, int *version, csf_error *error)
{
  const cuda_driver *cu = cuda_driver_get (error);
  csf_status status = CSF_OK;
  cu_result code;

  *driver = cu;
  if (cu == NULL)
    return CSF_ERROR_DRIVER;
  code = cu->Init (0);
  if (code == CU_ERROR_NO_DEVICE)
    return no_device (error, code);
  if (code != CU_SUCCESS)
    return cuda_error (cu, error, CSF_STAGE_OPEN, CSF_NO_FRAME, code, "cuInit");
  CU (CSF_STAGE_OPEN, CSF_NO_FRAME, DriverGetVersion, version);
  if (*version < MIN_DRIVER_VERSION)
    return csf_error_set (error, CSF_ERROR_DRIVER, CSF_STAGE_OPEN, CSF_NO_FRAME, 0,
        "expected a driver for CUDA 12.0 or newer, this one runs up to %d.%d; install NVIDIA "
        "driver R525 or newer", *version / 1000, *version % 1000 / 10);
fail:
  return status;
}

static csf_status
device_is_usable (const cuda_driver *cu, int id, cu_device *device, csf_error *error)
{
  csf_status status = CSF_OK;
  int mode;

  CU (CSF_STAGE_OPEN, CSF_NO_FRAME, DeviceGet, device, id);
  CU (CSF_STAGE_OPEN, CSF_NO_FRAME, DeviceGetAttribute, &mode, CU_ATTRIBUTE_COMPUTE_MODE, *device);
  if (mode == CU_COMPUTEMODE_PROHIBITED)
    return csf_error_set (error, CSF_ERROR_NO_DEVICE, CSF_STAGE_OPEN, CSF_NO_FRAME, 0,
        "CUDA device %d is in prohibited compute mode; choose another, or ask its administrator to "
        "set the default mode", id);
fail:
  return status;
}

/* With id -1 the first usable device, else exactly that one; *id is its number afterwards. */
static csf_status
choose_device (const cuda_driver *cu, int *id, cu_device *device, csf_error *error)
{
  csf_status status = CSF_OK;
  int count = 0;

  CU (CSF_STAGE_OPEN, CSF_NO_FRAME, DeviceGetCount, &count);
  if (count < 1)
    return no_device (error, 0);
  if (*id >= count || *id < -1)
    return csf_error_set (error, CSF_ERROR_NO_DEVICE, CSF_STAGE_OPEN, CSF_NO_FRAME, 0,
        "expected a CUDA device number from 0 to %d, got %d; this process sees %d device%s",
        count - 1, *id, count, count == 1 ? "" : "s");
  if (*id >= 0)
    return device_is_usable (cu, *id, device, error);
  for (*id = 0; *id < count; (*id)++) {
    status = device_is_usable (cu, *id, device, error);
    if (status == CSF_OK)
      return CSF_OK;
  }
fail:
  return status;
}

static csf_status
cuda_probe (int id, csf_error *error)
{
  const cuda_driver *cu;
  cu_device device;
  int version;
  csf_status status = init_driver (&cu, &version, error);

  return status != CSF_OK ? status : choose_device (cu, &id, &device, error);
}

/* What there is to know of self->device. */
static csf_status
read_device (cuda_device *self, csf_error *error)
{
  const cuda_driver *cu = self->cu;
  int major, minor, can_register, managed, concurrent;
  csf_status status = CSF_OK;

  CU (CSF_STAGE_OPEN, CSF_NO_FRAME, DeviceGetName, self->base.info.name,
      sizeof self->base.info.name, self->device);
  CU (CSF_STAGE_OPEN, CSF_NO_FRAME, DeviceGetAttribute, &major,
      CU_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, self->device);
  CU (CSF_STAGE_OPEN, CSF_NO_FRAME, DeviceGetAttribute, &minor,
      CU_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, self->device);
  CU (CSF_STAGE_OPEN, CSF_NO_FRAME, DeviceGetAttribute, &can_register,
      CU_ATTRIBUTE_HOST_REGISTER_SUPPORTED, self->device);
  self->base.info.capability = major * 10 + minor;
  CU (CSF_STAGE_OPEN, CSF_NO_FRAME, DeviceGetAttribute, &managed, CU_ATTRIBUTE_MANAGED_MEMORY,
      self->device);
  CU (CSF_STAGE_OPEN, CSF_NO_FRAME, DeviceGetAttribute, &concurrent,
      CU_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, self->device);
  self->can_register = can_register != 0;
  self->has_managed = managed != 0;
  self->managed_at_once = concurrent != 0;
  /* Nothing that frames need depends on it. */
  if (cu->DeviceGetPCIBusId == NULL || cu->DeviceGetPCIBusId (self->base.info.pci_bus_id,
          sizeof self->base.info.pci_bus_id, self->device) != CU_SUCCESS)
    self->base.info.pci_bus_id[0] = '\0';
fail:
  return status;
}

/* A device structure without a device yet. */
static csf_status
new_device (cuda_device **self, csf_error *error)
{
  const cuda_driver *cu;
  int version;
  csf_status status = init_driver (&cu, &version, error);

  if (status != CSF_OK)
    return status;
  *self = calloc (1, sizeof **self);
  if (*self == NULL)
    return csf_error_set (error, CSF_ERROR_MEMORY, CSF_STAGE_OPEN, CSF_NO_FRAME, 0,
        "no memory left");
  (*self)->cu = cu;
  (*self)->base.info.driver_version = version;
  (*self)->base.info.default_streams = 3;
  return CSF_OK;
}

static csf_status
cuda_open (int id, csf_device **result, csf_error *error)
{
  cuda_device *self;
  const cuda_driver *cu;
  csf_status status = new_device (&self, error);

  if (status != CSF_OK)
    return status;
  cu = self->cu;
  status = choose_device (cu, &id, &self->device, error);
  if (status == CSF_OK)
    status = read_device (self, error);
  if (status != CSF_OK)
    goto fail;
  self->base.info.id = id;
  CU (CSF_STAGE_OPEN, CSF_NO_FRAME, DevicePrimaryCtxRetain, &self->context, self->device);
  *result = &self->base;
  return CSF_OK;

fail:
  free (self);
  return status;
}

/* The number under which cuDeviceGet gives this device. */
static int
device_number (const cuda_driver *cu, cu_device device)
{
  cu_device other;

  for (int id = 0; cu->DeviceGet (&other, id) == CU_SUCCESS; id++)
    if (other == device)
      return id;
  return 0;
}

static csf_status
cuda_open_context (void *context, void (*release) (void *owner), void *owner, csf_device **result,
    csf_error *error)
{
  cuda_device *self;
  const cuda_driver *cu;
  csf_status status = new_device (&self, error);

  if (status != CSF_OK) {
    release (owner);
    return status;
  }
  cu = self->cu;
  self->context = context;
  status = cuda_enter (self, error, CSF_STAGE_OPEN, CSF_NO_FRAME);
  if (status != CSF_OK)
    goto out;
  CU (CSF_STAGE_OPEN, CSF_NO_FRAME, CtxGetDevice, &self->device);
  status = read_device (self, error);
fail:
  cuda_leave (self);
out:
  if (status != CSF_OK) {
    free (self);
    release (owner);
    return status;
  }
  self->base.info.id = device_number (cu, self->device);
  self->release = release;
  self->owner = owner;
  *result = &self->base;
  return CSF_OK;
}

static void *
cuda_get_context (const csf_device *device)
{
  return ((const cuda_device *) device)->context;
}

static void
cuda_close (csf_device *device)
{
  cuda_device *self = (cuda_device *) device;

  if (self->release != NULL)
    self->release (self->owner);
  else
    self->cu->DevicePrimaryCtxRelease (self->device);
  free (self);
}

static csf_status
cuda_pin (csf_device *device, void *data, size_t size, csf_error *error)
{
  cuda_device *self = (cuda_device *) device;
  const cuda_driver *cu = self->cu;
  csf_status status;

  if (!self->can_register)
    return csf_error_set (error, CSF_ERROR_UNSUPPORTED, CSF_STAGE_OPEN, CSF_NO_FRAME, 0,
        "this device cannot register host memory");
  status = cuda_enter (self, error, CSF_STAGE_OPEN, CSF_NO_FRAME);
  if (status != CSF_OK)
    return status;
  CU (CSF_STAGE_OPEN, CSF_NO_FRAME, MemHostRegister, data, size, CU_MEMHOSTREGISTER_PORTABLE);
fail:
  cuda_leave (self);
  return status;
}

static void
cuda_unpin (csf_device *device, void *data)
{
  cuda_device *self = (cuda_device *) device;

  if (cuda_enter (self, NULL, CSF_STAGE_CLOSE, CSF_NO_FRAME) != CSF_OK)
    return;
  self->cu->MemHostUnregister (data);
  cuda_leave (self);
}

static void *
cuda_alloc_pinned (csf_device *device, size_t size)
{
  cuda_device *self = (cuda_device *) device;
  void *data = NULL;

  if (cuda_enter (self, NULL, CSF_STAGE_OPEN, CSF_NO_FRAME) != CSF_OK)
    return NULL;
  if (self->cu->MemHostAlloc (&data, size, CU_MEMHOSTALLOC_PORTABLE) != CU_SUCCESS)
    data = NULL;
  cuda_leave (self);
  return data;
}

static void
cuda_free_pinned (csf_device *device, void *data)
{
  cuda_device *self = (cuda_device *) device;

  if (cuda_enter (self, NULL, CSF_STAGE_CLOSE, CSF_NO_FRAME) != CSF_OK)
    return;
  self->cu->MemFreeHost (data);
  cuda_leave (self);
}

const csf_backend_ops csf_backend_cuda = {
  .type = CSF_BACKEND_CUDA,
  .name = "cuda",
  .probe = cuda_probe,
  .open = cuda_open,
  .close = cuda_close,
  .open_context = cuda_open_context,
  .get_context = cuda_get_context,
  .inspect = cuda_inspect,
  .pin = cuda_pin,
  .unpin = cuda_unpin,
  .alloc_pinned = cuda_alloc_pinned,
  .free_pinned = cuda_free_pinned,
  .session_open = cuda_session_open,
  .session_close = cuda_session_close,
  .start = cuda_start,
  .wait = cuda_wait,
  .get_times = cuda_get_times,
  .record_alloc = cuda_record_alloc,
  .record_free = cuda_record_free,
  .record_count = cuda_record_count,
  .emit = cuda_emit,
  .record_fetch = cuda_record_fetch,
  .record_data = cuda_record_data,
  .get_device_bytes = cuda_get_device_bytes,
};
