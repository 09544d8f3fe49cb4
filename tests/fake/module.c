/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Modules of the fake driver.  Device code is not run, but a cubin and PTX are looked into far enough to
 * know their functions and to read a cubin's variables, as a program asks a driver for them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake.h"
#include "kernels/format.h"

#define FATBIN_MAGIC 0xba55ed50u
#define MOST_FUNCTIONS 64

/* ---- cubin: ELF64 (System V ABI, figures 4-3, 4-8 and 4-15) ------------------------------------- */

typedef struct section
{
  uint32_t name, type;
  uint64_t offset, size;
  uint32_t link;
} section;

static uint64_t
number (const unsigned char *at, unsigned bytes)
{
  uint64_t value = 0;

  for (unsigned i = 0; i < bytes; i++)
    value |= (uint64_t) at[i] << 8 * i;
  return value;
}

static unsigned
count_sections (const unsigned char *elf)
{
  return (unsigned) number (elf + 60, 2);
}

static section
get_section (const unsigned char *elf, unsigned index)
{
  const unsigned char *at = elf + number (elf + 40, 8) + index * number (elf + 58, 2);

  return (section) {
    .name = (uint32_t) number (at, 4),
    .type = (uint32_t) number (at + 4, 4),
    .offset = number (at + 24, 8),
    .size = number (at + 32, 8),
    .link = (uint32_t) number (at + 40, 4),
  };
}

static size_t
measure_elf (const unsigned char *elf)
{
  size_t end = number (elf + 40, 8) + count_sections (elf) * number (elf + 58, 2);

  for (unsigned i = 0; i < count_sections (elf); i++) {
    section s = get_section (elf, i);

    if (s.type != 8 && s.offset + s.size > end)
      end = s.offset + s.size;
  }
  return end;
}

/* A kernel's code lies in a section of its own, .text.NAME. */
static unsigned
list_elf (const fake_module *module, char names[][128], unsigned most)
{
  const unsigned char *elf = module->image;
  section strings = get_section (elf, (unsigned) number (elf + 62, 2));
  unsigned n = 0;

  for (unsigned i = 0; i < count_sections (elf) && n < most; i++) {
    const char *name = (const char *) elf + strings.offset + get_section (elf, i).name;

    if (strncmp (name, ".text.", 6) == 0)
      snprintf (names[n++], 128, "%.127s", name + 6);
  }
  return n;
}

/* A variable's bytes, NULL for one that begins as zeros; *size 0: there is none of that name. */
static const unsigned char *
find_variable (const fake_module *module, const char *wanted, size_t *size)
{
  const unsigned char *elf = module->image;

  *size = 0;
  for (unsigned i = 0; i < count_sections (elf); i++) {
    section table = get_section (elf, i), strings;

    if (table.type != 2)
      continue;
    strings = get_section (elf, table.link);
    for (uint64_t at = table.offset; at < table.offset + table.size; at += 24) {
      const char *name = (const char *) elf + strings.offset + number (elf + at, 4);
      section home;

      if (strcmp (name, wanted) != 0)
        continue;
      home = get_section (elf, (unsigned) number (elf + at + 6, 2));
      *size = number (elf + at + 16, 8);
      return home.type == 8 ? NULL : elf + home.offset + number (elf + at + 8, 8);
    }
  }
  return NULL;
}

/* ---- PTX --------------------------------------------------------------------------------------- */

static unsigned
list_ptx (const fake_module *module, char names[][128], unsigned most)
{
  const char *at = (const char *) module->image;
  unsigned n = 0;

  while (n < most && (at = strstr (at, ".entry")) != NULL) {
    at += 6;
    at += strspn (at, " \t");
    snprintf (names[n++], 128, "%.*s", (int) strcspn (at, "( \t\n"), at);
  }
  return n;
}

static cu_result
check_ptx (const char *ptx, fake_context *context)
{
  const char *target = strstr (ptx, ".target sm_");
  int capability = fake_attribute (context->device, CU_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) * 10
      + fake_attribute (context->device, CU_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);

  if (strstr (ptx, ".version") == NULL || target == NULL)
    return CU_ERROR_INVALID_PTX;
  return atoi (target + 11) > capability ? CU_ERROR_INVALID_PTX : CU_SUCCESS;
}

/* ---- calls ------------------------------------------------------------------------------------- */

static unsigned
list_functions (const fake_module *module, char names[][128], unsigned most)
{
  if (module->size == 0)
    return 0;
  return module->is_ptx ? list_ptx (module, names, most) : list_elf (module, names, most);
}

static cu_result
read_image (fake_module *module, const unsigned char *image, fake_context *context)
{
  module->image = image;
  if (memcmp (image, "\177ELF", 4) == 0) {
    module->size = measure_elf (image);
    return CU_SUCCESS;
  }
  if (number (image, 4) == FATBIN_MAGIC || strncmp ((const char *) image, "no device code", 14) == 0)
    return CU_SUCCESS;
  module->is_ptx = true;
  module->size = strlen ((const char *) image);
  return check_ptx ((const char *) image, context);
}

FAKE_EXPORT cu_result
cuModuleLoadDataEx (cu_module *module, const void *image, unsigned n, int *options, void **values)
{
  fake_module *made;
  fake_call call;
  cu_result result;

  if (!fake_call_begin (&call, __func__, FAKE_NEEDS_CONTEXT))
    return call.result;
  if (image == NULL)
    return fake_call_end (&call, CU_ERROR_INVALID_VALUE);
  made = calloc (1, sizeof *made);
  if (made == NULL)
    return fake_call_end (&call, CU_ERROR_OUT_OF_MEMORY);
  result = read_image (made, image, call.context);
  if (result != CU_SUCCESS) {
    free (made);
    return fake_call_end (&call, result);
  }
  fake_object_add (&made->object, FAKE_MODULE, call.context);
  *module = made->object.handle;
  return fake_call_end (&call, CU_SUCCESS);
}

FAKE_EXPORT cu_result cuModuleLoadData (cu_module *module, const void *image);

FAKE_EXPORT cu_result
cuModuleLoadData (cu_module *module, const void *image)
{
  return cuModuleLoadDataEx (module, image, 0, NULL, NULL);
}

static bool
module_is_used (const fake_context *context, const fake_module *module)
{
  for (const fake_stream *stream = context->streams; stream != NULL; stream = stream->next)
    for (const fake_op *op = stream->first; op != NULL; op = op->next)
      if (op->kind == FAKE_OP_KERNEL && op->module == module)
        return true;
  return false;
}

/* The module of a handle in the current context, or NULL. */
static fake_module *
find_module (const fake_call *call, cu_module handle)
{
  fake_module *module = fake_object_find (handle, FAKE_MODULE);

  return module == NULL || module->object.context != call->context ? NULL : module;
}

FAKE_EXPORT cu_result
cuModuleUnload (cu_module handle)
{
  fake_module *module;
  fake_call call;

  if (!fake_call_begin (&call, __func__, FAKE_NEEDS_CONTEXT | FAKE_GIVES_BACK))
    return call.result;
  module = find_module (&call, handle);
  if (module == NULL)
    return fake_call_end (&call, fake_misuse (FAKE_ERROR_INVALID_HANDLE,
            "cuModuleUnload of what is no module of the current context"));
  /* What a broken context had still to do is being thrown away. */
  while (module_is_used (call.context, module) && call.context->error != CU_SUCCESS)
    pthread_cond_wait (&fake_changed, &fake_lock);
  if (module_is_used (call.context, module))
    return fake_call_end (&call, fake_misuse (CU_ERROR_INVALID_VALUE,
            "cuModuleUnload while a kernel of it runs or waits to"));
  fake_functions_drop (module);
  for (unsigned i = 0; i < module->n_globals; i++)
    fake_memory_remove (module->globals[i]);
  fake_object_remove (&module->object);
  free (module);
  return fake_call_end (&call, CU_SUCCESS);
}

static fake_function *
add_function (fake_module *module, const char *name, fake_context *context)
{
  fake_function *made = calloc (1, sizeof *made);

  if (made == NULL)
    abort ();
  made->module = module;
  snprintf (made->name, sizeof made->name, "%.127s", name);
  made->kernel = fake_kernel_find (name, &made->is_part);
  made->collects = made->is_part && made->kernel != NULL && made->kernel->collect != NULL
      && strlen (name) > 5
      && strcmp (name + strlen (name) - 5, "_emit") == 0;
  /* A user's function of which nothing is known here copies. */
  if (made->kernel == NULL)
    made->kernel = csfk_kernel_find ("copy");
  fake_object_add (&made->object, FAKE_FUNCTION, context);
  return made;
}

static bool
has_function (const fake_module *module, const char *name)
{
  char names[MOST_FUNCTIONS][128];
  unsigned n = list_functions (module, names, MOST_FUNCTIONS);
  bool is_part;

  if (module->size == 0)
    return fake_kernel_find (name, &is_part) != NULL;
  for (unsigned i = 0; i < n; i++)
    if (strcmp (names[i], name) == 0)
      return true;
  return false;
}

FAKE_EXPORT cu_result
cuModuleGetFunction (cu_function *function, cu_module handle, const char *name)
{
  fake_module *module;
  fake_call call;

  if (!fake_call_begin (&call, __func__, FAKE_NEEDS_CONTEXT))
    return call.result;
  module = find_module (&call, handle);
  if (module == NULL)
    return fake_call_end (&call, fake_misuse (FAKE_ERROR_INVALID_HANDLE,
            "cuModuleGetFunction of what is no module of the current context"));
  if (!has_function (module, name))
    return fake_call_end (&call, CU_ERROR_NOT_FOUND);
  *function = add_function (module, name, call.context)->object.handle;
  return fake_call_end (&call, CU_SUCCESS);
}

FAKE_EXPORT cu_result
cuModuleGetFunctionCount (unsigned *count, cu_module handle)
{
  char names[MOST_FUNCTIONS][128];
  fake_module *module;
  fake_call call;

  if (!fake_call_begin (&call, __func__, FAKE_NEEDS_CONTEXT))
    return call.result;
  module = find_module (&call, handle);
  if (module == NULL)
    return fake_call_end (&call, FAKE_ERROR_INVALID_HANDLE);
  /* What hides its names hides how many there are. */
  if (module->size == 0)
    return fake_call_end (&call, CU_ERROR_NOT_SUPPORTED);
  *count = list_functions (module, names, MOST_FUNCTIONS);
  return fake_call_end (&call, CU_SUCCESS);
}

FAKE_EXPORT cu_result
cuModuleEnumerateFunctions (cu_function *functions, unsigned count, cu_module handle)
{
  char names[MOST_FUNCTIONS][128];
  fake_module *module;
  fake_call call;
  unsigned n;

  if (!fake_call_begin (&call, __func__, FAKE_NEEDS_CONTEXT))
    return call.result;
  module = find_module (&call, handle);
  if (module == NULL)
    return fake_call_end (&call, FAKE_ERROR_INVALID_HANDLE);
  n = list_functions (module, names, MOST_FUNCTIONS);
  for (unsigned i = 0; i < n && i < count; i++)
    functions[i] = add_function (module, names[i], call.context)->object.handle;
  return fake_call_end (&call, CU_SUCCESS);
}

FAKE_EXPORT cu_result
cuFuncGetName (const char **name, cu_function handle)
{
  fake_function *function;
  fake_call call;

  if (!fake_call_begin (&call, __func__, FAKE_NEEDS_CONTEXT))
    return call.result;
  function = fake_object_find (handle, FAKE_FUNCTION);
  if (function == NULL)
    return fake_call_end (&call, FAKE_ERROR_INVALID_HANDLE);
  *name = function->name;
  return fake_call_end (&call, CU_SUCCESS);
}

FAKE_EXPORT cu_result
cuModuleGetGlobal_v2 (cu_deviceptr *pointer, size_t *bytes, cu_module handle, const char *name)
{
  const unsigned char *content;
  fake_module *module;
  fake_range *range;
  fake_call call;
  size_t size;

  if (!fake_call_begin (&call, __func__, FAKE_NEEDS_CONTEXT))
    return call.result;
  module = find_module (&call, handle);
  if (module == NULL || module->is_ptx || module->size == 0
      || module->n_globals == sizeof module->globals / sizeof module->globals[0])
    return fake_call_end (&call, CU_ERROR_NOT_FOUND);
  content = find_variable (module, name, &size);
  if (size == 0)
    return fake_call_end (&call, CU_ERROR_NOT_FOUND);
  range = fake_memory_add (call.context, size);
  if (content != NULL)
    memcpy (range->data, content, size);
  else
    memset (range->data, 0, size);
  module->globals[module->n_globals++] = range;
  *pointer = (cu_deviceptr) (uintptr_t) range->data | FAKE_DEVICE_TAG;
  *bytes = size;
  return fake_call_end (&call, CU_SUCCESS);
}

/* Libraries of the toolkit ask the driver for private tables; what they do without is their affair. */
FAKE_EXPORT cu_result cuGetExportTable (const void **table, const void *id);

FAKE_EXPORT cu_result
cuGetExportTable (const void **table, const void *id)
{
  *table = NULL;
  return CU_ERROR_NOT_SUPPORTED;
}
