/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The CUDA driver, opened at run time.  One line per function with its literal exported name; own
 * minimal types, so that no toolkit is needed to build.  Private to the CUDA backend and tests. */
#ifndef CSF_CUDA_DL_H
#define CSF_CUDA_DL_H

#include <stddef.h>

#include "csf.h"

typedef int cu_result;          /* CUresult */
typedef int cu_device;          /* CUdevice */
typedef unsigned long long cu_deviceptr;        /* CUdeviceptr */
typedef struct cu_context_st *cu_context;
typedef struct cu_stream_st *cu_stream;
typedef struct cu_event_st *cu_event;
typedef struct cu_module_st *cu_module;
typedef struct cu_function_st *cu_function;

/* CUDA_MEMCPY2D of cuMemcpy2DAsync_v2 */
typedef struct cu_memcpy_2d
{
  size_t src_x, src_y;
  int src_type;
  const void *src_host;
  cu_deviceptr src_device;
  void *src_array;
  size_t src_pitch;
  size_t dst_x, dst_y;
  int dst_type;
  void *dst_host;
  cu_deviceptr dst_device;
  void *dst_array;
  size_t dst_pitch;
  size_t width_bytes;
  size_t height;
} cu_memcpy_2d;

enum
{
  CU_MEMORYTYPE_HOST = 1,
  CU_MEMORYTYPE_DEVICE = 2,

  CU_STREAM_NON_BLOCKING = 1,
  CU_EVENT_DEFAULT = 0,
  CU_EVENT_DISABLE_TIMING = 2,
  CU_MEMHOSTREGISTER_PORTABLE = 1,
  CU_MEMHOSTALLOC_PORTABLE = 1,
  CU_MEMHOSTALLOC_DEVICEMAP = 2,
  CU_MEM_ATTACH_GLOBAL = 1,
  CU_MEM_ATTACH_HOST = 2,
  CU_MEM_ATTACH_SINGLE = 4,
  CU_MEM_ADVISE_SET_PREFERRED_LOCATION = 3,
  CU_MEM_ADVISE_SET_ACCESSED_BY = 5,
  CU_DEVICE_CPU = -1,

  CU_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
  CU_ATTRIBUTE_INTEGRATED = 18,
  CU_ATTRIBUTE_COMPUTE_MODE = 20,
  CU_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
  CU_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
  CU_ATTRIBUTE_MANAGED_MEMORY = 83,
  CU_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS = 89,
  CU_ATTRIBUTE_HOST_REGISTER_SUPPORTED = 99,

  CU_COMPUTEMODE_PROHIBITED = 2,

  CU_SUCCESS = 0,
  CU_ERROR_INVALID_VALUE = 1,
  CU_ERROR_OUT_OF_MEMORY = 2,
  CU_ERROR_NO_DEVICE = 100,
  CU_ERROR_INVALID_DEVICE = 101,
  CU_ERROR_INVALID_IMAGE = 200,
  CU_ERROR_NO_BINARY_FOR_GPU = 209,
  CU_ERROR_INVALID_PTX = 218,
  CU_ERROR_UNSUPPORTED_PTX_VERSION = 222,
  CU_ERROR_INVALID_SOURCE = 300,
  CU_ERROR_NOT_FOUND = 500,
  CU_ERROR_NOT_READY = 600,
  CU_ERROR_HOST_MEMORY_ALREADY_REGISTERED = 712,
  CU_ERROR_NOT_SUPPORTED = 801,
  CU_ERROR_SYSTEM_DRIVER_MISMATCH = 803
};

/* X (field, exported name, parameters) */
#define CSF_CUDA_SYMBOLS(X) \
  X (Init, cuInit, (unsigned flags)) \
  X (DriverGetVersion, cuDriverGetVersion, (int *version)) \
  X (GetErrorName, cuGetErrorName, (cu_result error, const char **text)) \
  X (GetErrorString, cuGetErrorString, (cu_result error, const char **text)) \
  X (DeviceGetCount, cuDeviceGetCount, (int *count)) \
  X (DeviceGet, cuDeviceGet, (cu_device * device, int ordinal)) \
  X (DeviceGetName, cuDeviceGetName, (char *name, int length, cu_device device)) \
  X (DeviceGetAttribute, cuDeviceGetAttribute, (int *value, int attribute, cu_device device)) \
  X (DevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, (cu_context * context, cu_device device)) \
  X (DevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2, (cu_device device)) \
  X (CtxPushCurrent, cuCtxPushCurrent_v2, (cu_context context)) \
  X (CtxGetDevice, cuCtxGetDevice, (cu_device * device)) \
  X (CtxPopCurrent, cuCtxPopCurrent_v2, (cu_context * context)) \
  X (MemGetInfo, cuMemGetInfo_v2, (size_t *free, size_t *total)) \
  X (MemAlloc, cuMemAlloc_v2, (cu_deviceptr * pointer, size_t bytes)) \
  X (MemFree, cuMemFree_v2, (cu_deviceptr pointer)) \
  X (MemAllocManaged, cuMemAllocManaged, (cu_deviceptr * pointer, size_t bytes, unsigned flags)) \
  X (MemAdvise, cuMemAdvise, (cu_deviceptr pointer, size_t bytes, int advice, cu_device device)) \
  X (StreamAttachMemAsync, cuStreamAttachMemAsync, (cu_stream stream, cu_deviceptr pointer, \
          size_t bytes, unsigned flags)) \
  X (MemHostGetDevicePointer, cuMemHostGetDevicePointer_v2, (cu_deviceptr * pointer, void *data, \
          unsigned flags)) \
  X (MemHostAlloc, cuMemHostAlloc, (void **pointer, size_t bytes, unsigned flags)) \
  X (MemFreeHost, cuMemFreeHost, (void *pointer)) \
  X (MemHostRegister, cuMemHostRegister_v2, (void *pointer, size_t bytes, unsigned flags)) \
  X (MemHostUnregister, cuMemHostUnregister, (void *pointer)) \
  X (MemcpyHtoDAsync, cuMemcpyHtoDAsync_v2, (cu_deviceptr to, const void *from, size_t bytes, \
          cu_stream stream)) \
  X (MemcpyDtoHAsync, cuMemcpyDtoHAsync_v2, (void *to, cu_deviceptr from, size_t bytes, \
          cu_stream stream)) \
  X (MemcpyDtoH, cuMemcpyDtoH_v2, (void *to, cu_deviceptr from, size_t bytes)) \
  X (MemsetD8Async, cuMemsetD8Async, (cu_deviceptr to, unsigned char value, size_t bytes, \
          cu_stream stream)) \
  X (Memcpy2DAsync, cuMemcpy2DAsync_v2, (const cu_memcpy_2d * copy, cu_stream stream)) \
  X (StreamCreate, cuStreamCreate, (cu_stream * stream, unsigned flags)) \
  X (StreamDestroy, cuStreamDestroy_v2, (cu_stream stream)) \
  X (StreamWaitEvent, cuStreamWaitEvent, (cu_stream stream, cu_event event, unsigned flags)) \
  X (StreamQuery, cuStreamQuery, (cu_stream stream)) \
  X (EventCreate, cuEventCreate, (cu_event * event, unsigned flags)) \
  X (EventDestroy, cuEventDestroy_v2, (cu_event event)) \
  X (EventRecord, cuEventRecord, (cu_event event, cu_stream stream)) \
  X (EventQuery, cuEventQuery, (cu_event event)) \
  X (EventElapsedTime, cuEventElapsedTime, (float *milliseconds, cu_event start, cu_event end)) \
  X (ModuleLoadDataEx, cuModuleLoadDataEx, (cu_module * module, const void *image, \
          unsigned n_options, int *options, void **values)) \
  X (ModuleUnload, cuModuleUnload, (cu_module module)) \
  X (ModuleGetFunction, cuModuleGetFunction, (cu_function * function, cu_module module, \
          const char *name)) \
  X (ModuleGetGlobal, cuModuleGetGlobal_v2, (cu_deviceptr * pointer, size_t * bytes, \
          cu_module module, const char *name)) \
  X (LaunchKernel, cuLaunchKernel, (cu_function function, unsigned grid_x, unsigned grid_y, \
          unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z, \
          unsigned shared_bytes, cu_stream stream, void **params, void **extra))

/* NULL where a driver has them not: the last three are of CUDA 12.3 and 12.4. */
#define CSF_CUDA_OPTIONAL_SYMBOLS(X) \
  X (DeviceGetPCIBusId, cuDeviceGetPCIBusId, (char *id, int length, cu_device device)) \
  X (FuncGetName, cuFuncGetName, (const char **name, cu_function function)) \
  X (ModuleGetFunctionCount, cuModuleGetFunctionCount, (unsigned *count, cu_module module)) \
  X (ModuleEnumerateFunctions, cuModuleEnumerateFunctions, (cu_function * functions, \
          unsigned count, cu_module module))

typedef struct cuda_driver
{
#define CSF_CUDA_FIELD(field, symbol, parameters) cu_result (*field) parameters;
  CSF_CUDA_SYMBOLS (CSF_CUDA_FIELD)
  CSF_CUDA_OPTIONAL_SYMBOLS (CSF_CUDA_FIELD)
#undef CSF_CUDA_FIELD
} cuda_driver;

/* Opens the driver once a process and never closes it (its own threads may run until exit).  Any
 * thread.  NULL: error says which library or function is missing. */
const cuda_driver *cuda_driver_get (csf_error * error);

#endif
