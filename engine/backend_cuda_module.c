/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The CUDA backend's modules: loading device code, ours or a user's, looking into it, and telling what is
 * wrong with it.  Knows no frames. */
#include "backend_cuda.h"
#include "elf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FATBIN_MAGIC 0xba55ed50u
#define LOG_BYTES 4096
#define MOST_FUNCTIONS 64

/* ---- what kind of code it is, and whether all of it is there ----------------------------------- */

typedef enum code_kind
{
  CODE_PTX,
  CODE_CUBIN,
  CODE_FATBIN
} code_kind;

static uint64_t
read_number (const csfk_blob *code, size_t at, unsigned bytes)
{
  uint64_t value = 0;

  for (unsigned i = 0; i < bytes && at + i < code->size; i++)
    value |= (uint64_t) code->data[at + i] << 8 * i;
  return value;
}

static code_kind
get_kind (const csfk_blob *code)
{
  if (csf_elf_is (code->data, code->size))
    return CODE_CUBIN;
  return read_number (code, 0, 4) == FATBIN_MAGIC ? CODE_FATBIN : CODE_PTX;
}

/* The driver takes no size and would read over the end of a file that was cut short. */
static csf_status
check_whole (const csfk_blob *code, const char *origin, csf_error *error)
{
  uint64_t needed = code->size;

  switch (get_kind (code)) {
    case CODE_CUBIN:
      needed = csf_elf_measure (code->data, code->size);
      break;
    case CODE_FATBIN:
      needed = code->size < 16 ? 16 : read_number (code, 6, 2) + read_number (code, 8, 8);
      break;
    case CODE_PTX:
      if (code->data[code->size - 1] != '\0')
        return csf_error_set (error, CSF_ERROR_ARGUMENT, CSF_STAGE_OPEN, CSF_NO_FRAME, 0,
            "%s is not PTX, cubin or fatbin", origin);
      break;
  }
  if (needed > code->size)
    return csf_error_set (error, CSF_ERROR_ARGUMENT, CSF_STAGE_OPEN, CSF_NO_FRAME, 0,
        "%s is cut short: expected at least %llu bytes, got %lu; compile it again", origin,
        (unsigned long long) needed, code->size);
  return CSF_OK;
}

/* The number after ".target sm_" of PTX, or 0. */
static int
get_ptx_target (const csfk_blob *code)
{
  const char *at = get_kind (code) == CODE_PTX ? strstr ((const char *) code->data, ".target") : NULL;

  at = at == NULL ? NULL : strstr (at, "sm_");
  return at == NULL ? 0 : atoi (at + 3);
}

/* ---- loading ----------------------------------------------------------------------------------- */

/* The first line of the driver's own compiler that says what is wrong. */
static void
cut_to_error (char *log)
{
  char *at = strstr (log, "error");

  if (at == NULL)
    at = log;
  while (at > log && at[-1] != '\n')
    at--;
  memmove (log, at, strlen (at) + 1);
  log[strcspn (log, "\n")] = '\0';
}

static csf_status
load_error (const cuda_device *device, const csfk_blob *code, const char *origin, cu_result result,
    char *log, csf_error *error)
{
  const int target = get_ptx_target (code), capability = device->base.info.capability;
  const char *name = device->base.info.name;

  cut_to_error (log);
  if (code->toolkit / 1000 > device->base.info.driver_version / 1000)
    return csf_error_set (error, CSF_ERROR_DRIVER, CSF_STAGE_OPEN, CSF_NO_FRAME, result,
        "expected a driver for CUDA %d, since CUDA %d.%d compiled the kernels, this one runs up to "
        "%d.%d; install NVIDIA driver %s or newer, or build with CUDA %d", code->toolkit / 1000,
        code->toolkit / 1000, code->toolkit % 1000 / 10, device->base.info.driver_version / 1000,
        device->base.info.driver_version % 1000 / 10, code->toolkit >= 13000 ? "R580" : "R525",
        device->base.info.driver_version / 1000);
  if (target > capability)
    return csf_error_set (error, CSF_ERROR_UNSUPPORTED, CSF_STAGE_OPEN, CSF_NO_FRAME, result,
        "%s is PTX for compute capability %d.%d or newer, \"%s\" has %d.%d; compile it with "
        "-arch=compute_%d", origin, target / 10, target % 10, name, capability / 10,
        capability % 10, capability);
  switch (result) {
    case CU_ERROR_NO_BINARY_FOR_GPU:
      return csf_error_set (error, CSF_ERROR_UNSUPPORTED, CSF_STAGE_OPEN, CSF_NO_FRAME, result,
          "%s has no code for compute capability %d.%d of \"%s\"; build with -%s%d", origin,
          capability / 10, capability % 10, name, code->toolkit != 0 ? "Dcuda-arch=" : "arch=sm_",
          capability);
    case CU_ERROR_UNSUPPORTED_PTX_VERSION:
      return csf_error_set (error, CSF_ERROR_UNSUPPORTED, CSF_STAGE_OPEN, CSF_NO_FRAME, result,
          "%s was written by a newer CUDA than this driver's (%d.%d) compiler reads; compile it with "
          "CUDA %d.%d, or for sm_%d", origin, device->base.info.driver_version / 1000,
          device->base.info.driver_version % 1000 / 10, device->base.info.driver_version / 1000,
          device->base.info.driver_version % 1000 / 10, capability);
    case CU_ERROR_INVALID_IMAGE:
    case CU_ERROR_INVALID_SOURCE:
    case CU_ERROR_INVALID_PTX:
      return csf_error_set (error, CSF_ERROR_ARGUMENT, CSF_STAGE_OPEN, CSF_NO_FRAME, result,
          "%s is not PTX, cubin or fatbin that the driver can read%s%s", origin,
          log[0] != '\0' ? ": " : "", log);
    default:
      return cuda_error (device->cu, error, CSF_STAGE_OPEN, CSF_NO_FRAME, result,
          "cuModuleLoadDataEx");
  }
}

csf_status
cuda_module_load (cuda_device *device, const csfk_blob *code, const char *origin, cu_module *module,
    csf_error *error)
{
  enum
  { ERROR_LOG = 5, ERROR_LOG_BYTES = 6 };
  int options[] = { ERROR_LOG, ERROR_LOG_BYTES };
  char log[LOG_BYTES] = "";
  void *values[] = { log, (void *) (uintptr_t) (sizeof log - 1) };
  csf_status status = check_whole (code, origin, error);
  cu_result result;

  if (status != CSF_OK)
    return status;
  /* Said before trying: a driver's own words for it help nobody. */
  if (code->toolkit / 1000 > device->base.info.driver_version / 1000)
    return load_error (device, code, origin, CU_ERROR_NOT_SUPPORTED, log, error);
  result = device->cu->ModuleLoadDataEx (module, code->data, 2, options, values);
  log[sizeof log - 1] = '\0';
  return result == CU_SUCCESS ? CSF_OK : load_error (device, code, origin, result, log, error);
}

/* ---- looking into it --------------------------------------------------------------------------- */

/* X_emit is no function of its own where there is an X: it appends the records of X. */
static bool
is_emit_of_another (const char *const *names, unsigned n, const char *name)
{
  const size_t length = strlen (name), tail = strlen ("_emit");

  if (length <= tail || strcmp (name + length - tail, "_emit") != 0)
    return false;
  for (unsigned i = 0; i < n; i++)
    if (strlen (names[i]) == length - tail && strncmp (names[i], name, length - tail) == 0)
      return true;
  return false;
}

/* "a, b, c" of the module's functions.  Returns how many; less than 0: this driver cannot tell. */
static int
list_functions (const cuda_driver *cu, cu_module module, char *text, size_t size, char *first,
    size_t first_size)
{
  cu_function functions[MOST_FUNCTIONS];
  const char *names[MOST_FUNCTIONS] = { NULL };
  unsigned n = 0, listed = 0;
  size_t used = 0;

  text[0] = '\0';
  if (cu->ModuleGetFunctionCount == NULL || cu->ModuleEnumerateFunctions == NULL
      || cu->FuncGetName == NULL || cu->ModuleGetFunctionCount (&n, module) != CU_SUCCESS)
    return -1;
  if (n > MOST_FUNCTIONS)
    n = MOST_FUNCTIONS;
  if (n > 0 && cu->ModuleEnumerateFunctions (functions, n, module) != CU_SUCCESS)
    return -1;
  for (unsigned i = 0; i < n; i++)
    if (cu->FuncGetName (&names[i], functions[i]) != CU_SUCCESS || names[i] == NULL)
      return -1;
  for (unsigned i = 0; i < n; i++) {
    if (is_emit_of_another (names, n, names[i]))
      continue;
    if (listed++ == 0)
      snprintf (first, first_size, "%s", names[i]);
    if (used < size)
      used += (size_t) snprintf (text + used, size - used, "%s%s", used == 0 ? "" : ", ", names[i]);
  }
  return (int) listed;
}

static csf_status
choose_function (cuda_device *device, cu_module module, const char *origin, const char *name,
    csf_function *function, csf_error *error)
{
  const cuda_driver *cu = device->cu;
  char list[192], only[sizeof function->name];
  cu_function found;
  int n = list_functions (cu, module, list, sizeof list, only, sizeof only);

  if (n == 0)
    return csf_error_set (error, CSF_ERROR_ARGUMENT, CSF_STAGE_OPEN, CSF_NO_FRAME, 0,
        "%s has no functions; expected one that is extern \"C\" __global__", origin);
  if (name == NULL && n == 1)
    name = only;
  if (name == NULL)
    return csf_error_set (error, CSF_ERROR_ARGUMENT, CSF_STAGE_OPEN, CSF_NO_FRAME, 0,
        "%s has %s functions%s%s; name one with kernel-function", origin, n < 0 ? "one or more" :
        "several", n < 0 ? "" : ": ", list);
  if (strlen (name) >= sizeof function->name
      || cu->ModuleGetFunction (&found, module, name) != CU_SUCCESS)
    return csf_error_set (error, CSF_ERROR_ARGUMENT, CSF_STAGE_OPEN, CSF_NO_FRAME, 0,
        "%s has no function \"%s\"%s%s; it must be extern \"C\" __global__", origin, name,
        n < 0 ? "" : ", it has ", list);
  snprintf (function->name, sizeof function->name, "%s", name);
  return CSF_OK;
}

static csf_status
find_emit (cuda_device *device, cu_module module, const char *origin, const csf_function *function,
    csf_error *error)
{
  char symbol[sizeof function->name + 16];
  cu_function found;

  snprintf (symbol, sizeof symbol, "%s_emit", function->name);
  if (device->cu->ModuleGetFunction (&found, module, symbol) == CU_SUCCESS)
    return CSF_OK;
  return csf_error_set (error, CSF_ERROR_ARGUMENT, CSF_STAGE_OPEN, CSF_NO_FRAME, 0,
      "%s has no function \"%s\", which appends the records that csfk_desc_%s speaks of; it must be "
      "extern \"C\" __global__", origin, symbol, function->name);
}

static csf_status
read_description (cuda_device *device, cu_module module, const char *origin, csf_function *function,
    csf_error *error)
{
  const cuda_driver *cu = device->cu;
  char symbol[sizeof function->name + 16];
  csf_status status = CSF_OK;
  cu_deviceptr at;
  size_t bytes = 0;
  unsigned abi = 0;

  snprintf (symbol, sizeof symbol, "csfk_desc_%s", function->name);
  if (cu->ModuleGetGlobal (&at, &bytes, module, symbol) != CU_SUCCESS)
    return CSF_OK;
  if (bytes >= sizeof abi)
    CU (CSF_STAGE_OPEN, CSF_NO_FRAME, MemcpyDtoH, &abi, at, sizeof abi);
  if (abi != CSFK_ABI || bytes != sizeof function->desc)
    return csf_error_set (error, CSF_ERROR_ARGUMENT, CSF_STAGE_OPEN, CSF_NO_FRAME, 0,
        "%s in %s is of contract %u and has %zu bytes, expected contract %d and %zu bytes; compile it "
        "with this version's cudastreamfilter/kernel.h", symbol, origin, abi, bytes, CSFK_ABI,
        sizeof function->desc);
  CU (CSF_STAGE_OPEN, CSF_NO_FRAME, MemcpyDtoH, &function->desc, at, bytes);
  function->described = true;
  return function->desc.record_size == 0 ? CSF_OK : find_emit (device, module, origin, function, error);
fail:
  return status;
}

csf_status
cuda_inspect (csf_device *base, const csfk_blob *code, const char *origin, const char *name,
    csf_function *function, csf_error *error)
{
  cuda_device *device = (cuda_device *) base;
  cu_module module = NULL;
  csf_status status = cuda_enter (device, error, CSF_STAGE_OPEN, CSF_NO_FRAME);

  if (status != CSF_OK)
    return status;
  status = cuda_module_load (device, code, origin, &module, error);
  if (status == CSF_OK)
    status = choose_function (device, module, origin, name, function, error);
  if (status == CSF_OK)
    status = read_description (device, module, origin, function, error);
  if (module != NULL)
    device->cu->ModuleUnload (module);
  cuda_leave (device);
  return status;
}
