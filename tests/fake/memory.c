/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Device, managed and pinned memory of the fake driver.  Device memory is ordinary memory whose
 * address the host cannot use.  Knows nothing of operations beyond whether one still uses a
 * range. */
#include "fake.h"

#include <stdlib.h>
#include <string.h>

#define PAGE 4096
#define PITCH_ALIGNMENT 512
/* Fresh device memory holds this, so that a frame never uploaded does not look black by luck. */
#define FRESH 0xa5

fake_range *fake_ranges;

FAKE_EXPORT cu_result cuMemAllocPitch_v2 (cu_deviceptr * pointer, size_t * pitch, size_t width,
    size_t height, unsigned element);
FAKE_EXPORT cu_result cuMemAllocManaged (cu_deviceptr * pointer, size_t bytes, unsigned flags);
FAKE_EXPORT cu_result cuMemAllocHost_v2 (void **pointer, size_t bytes);
FAKE_EXPORT cu_result cuMemHostGetDevicePointer_v2 (cu_deviceptr * pointer, void *data,
    unsigned flags);
FAKE_EXPORT cu_result cuMemAdvise (cu_deviceptr pointer, size_t bytes, int advice,
    cu_device device);
FAKE_EXPORT cu_result cuPointerGetAttribute (void *value, int attribute, cu_deviceptr pointer);

static bool
holds (const fake_range *range, const unsigned char *data, size_t size)
{
  return data >= range->data && size <= range->size
      && (size_t) (data - range->data) <= range->size - size;
}

unsigned char *
fake_device_memory (cu_deviceptr pointer, size_t size, fake_range **range)
{
  unsigned char *data = (unsigned char *) (uintptr_t) (pointer & ~FAKE_DEVICE_TAG);
  bool tagged = (pointer & FAKE_DEVICE_TAG) != 0;

  for (fake_range *r = fake_ranges; r != NULL; r = r->next)
    if ((r->type == FAKE_RANGE_DEVICE) == tagged && holds (r, data, size)) {
      *range = r;
      return data;
    }
  return NULL;
}

static bool
overlaps (const fake_range *range, const unsigned char *data, size_t size)
{
  return data < range->data + range->size && range->data < data + size;
}

fake_pinning
fake_host_memory (const void *data, size_t size, fake_range **range)
{
  for (fake_range *r = fake_ranges; r != NULL; r = r->next) {
    if (r->type == FAKE_RANGE_DEVICE || !overlaps (r, data, size))
      continue;
    if (!holds (r, data, size))
      return FAKE_STRADDLES;
    *range = r;
    return FAKE_PINNED;
  }
  return FAKE_PAGEABLE;
}

static uint64_t
bytes_of (fake_range_type type, int device)
{
  uint64_t bytes = 0;

  for (fake_range *r = fake_ranges; r != NULL; r = r->next)
    if (r->type == type && (device < 0 || r->context->device == device))
      bytes += r->size;
  return bytes;
}

static fake_range *
range_add (fake_range_type type, fake_context *context, void *data, size_t size)
{
  fake_range *range = calloc (1, sizeof *range);

  if (range == NULL)
    abort ();
  range->type = type;
  range->data = data;
  range->size = size;
  range->context = context;
  range->next = fake_ranges;
  fake_ranges = range;
  fake_counts.allocations++;
  return range;
}

static void
range_remove (fake_range *range)
{
  fake_range **link = &fake_ranges;

  while (*link != range)
    link = &(*link)->next;
  *link = range->next;
  if (range->type != FAKE_RANGE_REGISTERED)
    free (range->data);
  free (range);
}

fake_range *
fake_memory_add (fake_context *context, size_t size)
{
  unsigned char *data = malloc (size);

  if (data == NULL)
    abort ();
  return range_add (FAKE_RANGE_DEVICE, context, data, size);
}

void
fake_memory_remove (fake_range *range)
{
  range_remove (range);
}

void
fake_memory_drop_context (fake_context *context)
{
  fake_range *next;

  for (fake_range *r = fake_ranges; r != NULL; r = next) {
    next = r->next;
    if (r->context == context) {
      fake_counts.orphans++;
      range_remove (r);
    }
  }
}

/* Whatever still uses the range is done, or thrown away with a broken context. */
static void
range_drain (fake_range *range)
{
  fake_context_drain (range->context);
  while (range->pending > 0 && range->context->error != CU_SUCCESS)
    pthread_cond_wait (&fake_changed, &fake_lock);
}

/* The range of one of these types that begins exactly there. */
static fake_range *
range_find (const void *data, unsigned types)
{
  for (fake_range *r = fake_ranges; r != NULL; r = r->next)
    if (r->data == data && (types & (1u << r->type)))
      return r;
  return NULL;
}

static cu_result
allocate (fake_range_type type, fake_context *context, size_t bytes, unsigned char **data)
{
  size_t rounded = (bytes + PAGE - 1) / PAGE * PAGE;
  uint64_t used = bytes_of (FAKE_RANGE_DEVICE, context->device);
  uint64_t pinned = bytes_of (FAKE_RANGE_HOST, -1) + bytes_of (FAKE_RANGE_REGISTERED, -1);

  if (bytes == 0)
    return CU_ERROR_INVALID_VALUE;
  if (type == FAKE_RANGE_DEVICE && used + bytes > (uint64_t) fake_set.memory)
    return CU_ERROR_OUT_OF_MEMORY;
  if (type == FAKE_RANGE_HOST && pinned + bytes > (uint64_t) fake_set.pinned_memory)
    return CU_ERROR_OUT_OF_MEMORY;
  /* Exact, so that a sanitizer sees a kernel run over the end; pages where the host shares them. */
  *data = type == FAKE_RANGE_DEVICE ? malloc (bytes) : aligned_alloc (PAGE, rounded);
  if (*data == NULL)
    return CU_ERROR_OUT_OF_MEMORY;
  memset (*data, FRESH, bytes);
  range_add (type, context, *data, bytes);
  return CU_SUCCESS;
}

FAKE_EXPORT cu_result
cuMemAlloc_v2 (cu_deviceptr *pointer, size_t bytes)
{
  unsigned char *data;
  cu_result result;
  fake_call call;

  if (!fake_call_begin (&call, __func__, FAKE_NEEDS_CONTEXT))
    return call.result;
  result = allocate (FAKE_RANGE_DEVICE, call.context, bytes, &data);
  if (result == CU_SUCCESS)
    *pointer = (cu_deviceptr) (uintptr_t) data | FAKE_DEVICE_TAG;
  return fake_call_end (&call, result);
}

FAKE_EXPORT cu_result
cuMemAllocPitch_v2 (cu_deviceptr *pointer, size_t *pitch, size_t width, size_t height,
    unsigned element)
{
  *pitch = (width + PITCH_ALIGNMENT - 1) / PITCH_ALIGNMENT * PITCH_ALIGNMENT;
  return cuMemAlloc_v2 (pointer, *pitch * height);
}

FAKE_EXPORT cu_result
cuMemAllocManaged (cu_deviceptr *pointer, size_t bytes, unsigned flags)
{
  unsigned char *data;
  cu_result result;
  fake_call call;

  if (!fake_call_begin (&call, __func__, FAKE_NEEDS_CONTEXT))
    return call.result;
  if (fake_attribute (call.context->device, 83) == 0)
    return fake_call_end (&call, CU_ERROR_NOT_SUPPORTED);
  result = allocate (FAKE_RANGE_MANAGED, call.context, bytes, &data);
  if (result == CU_SUCCESS)
    *pointer = (cu_deviceptr) (uintptr_t) data;
  return fake_call_end (&call, result);
}

FAKE_EXPORT cu_result
cuMemFree_v2 (cu_deviceptr pointer)
{
  fake_range *range;
  fake_call call;

  if (!fake_call_begin (&call, __func__, FAKE_NEEDS_CONTEXT | FAKE_GIVES_BACK))
    return call.result;
  range = (pointer & FAKE_DEVICE_TAG)
      ? range_find ((void *) (uintptr_t) (pointer & ~FAKE_DEVICE_TAG), 1u << FAKE_RANGE_DEVICE)
      : range_find ((void *) (uintptr_t) pointer, 1u << FAKE_RANGE_MANAGED);
  if (range == NULL)
    return fake_call_end (&call, pointer == 0 ? CU_ERROR_INVALID_VALUE
        : fake_misuse (CU_ERROR_INVALID_VALUE, "cuMemFree of what was not allocated"));
  range_drain (range);
  range_remove (range);
  return fake_call_end (&call, CU_SUCCESS);
}

FAKE_EXPORT cu_result
cuMemGetInfo_v2 (size_t *free_bytes, size_t *total)
{
  fake_call call;

  if (!fake_call_begin (&call, __func__, FAKE_NEEDS_CONTEXT))
    return call.result;
  *total = (size_t) fake_set.memory;
  *free_bytes = *total - (size_t) bytes_of (FAKE_RANGE_DEVICE, call.context->device);
  return fake_call_end (&call, CU_SUCCESS);
}

FAKE_EXPORT cu_result
cuMemHostAlloc (void **pointer, size_t bytes, unsigned flags)
{
  unsigned char *data;
  cu_result result;
  fake_call call;

  if (!fake_call_begin (&call, __func__, FAKE_NEEDS_CONTEXT))
    return call.result;
  result = allocate (FAKE_RANGE_HOST, call.context, bytes, &data);
  if (result == CU_SUCCESS)
    *pointer = data;
  return fake_call_end (&call, result);
}

FAKE_EXPORT cu_result
cuMemAllocHost_v2 (void **pointer, size_t bytes)
{
  return cuMemHostAlloc (pointer, bytes, 0);
}

FAKE_EXPORT cu_result
cuMemFreeHost (void *pointer)
{
  fake_range *range;
  fake_call call;

  if (!fake_call_begin (&call, __func__, FAKE_NEEDS_CONTEXT | FAKE_GIVES_BACK))
    return call.result;
  range = range_find (pointer, 1u << FAKE_RANGE_HOST);
  if (range == NULL)
    return fake_call_end (&call, fake_misuse (CU_ERROR_INVALID_VALUE,
            "cuMemFreeHost of what was not allocated"));
  range_drain (range);
  range_remove (range);
  return fake_call_end (&call, CU_SUCCESS);
}

/* The driver pins whole pages: two ranges that share one collide. */
FAKE_EXPORT cu_result
cuMemHostRegister_v2 (void *pointer, size_t bytes, unsigned flags)
{
  uintptr_t first = (uintptr_t) pointer / PAGE * PAGE;
  uintptr_t end = ((uintptr_t) pointer + bytes + PAGE - 1) / PAGE * PAGE;
  uint64_t pinned;
  fake_call call;

  if (!fake_call_begin (&call, __func__, FAKE_NEEDS_CONTEXT))
    return call.result;
  if (fake_attribute (call.context->device, CU_ATTRIBUTE_HOST_REGISTER_SUPPORTED) == 0)
    return fake_call_end (&call, CU_ERROR_NOT_SUPPORTED);
  if (pointer == NULL || bytes == 0)
    return fake_call_end (&call, CU_ERROR_INVALID_VALUE);
  for (fake_range *r = fake_ranges; r != NULL; r = r->next) {
    uintptr_t range_first = (uintptr_t) r->data / PAGE * PAGE;
    uintptr_t range_end = ((uintptr_t) r->data + r->size + PAGE - 1) / PAGE * PAGE;

    if (r->type != FAKE_RANGE_DEVICE && first < range_end && range_first < end)
      return fake_call_end (&call, CU_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  }
  pinned = bytes_of (FAKE_RANGE_HOST, -1) + bytes_of (FAKE_RANGE_REGISTERED, -1);
  if (pinned + bytes > (uint64_t) fake_set.pinned_memory)
    return fake_call_end (&call, CU_ERROR_OUT_OF_MEMORY);
  range_add (FAKE_RANGE_REGISTERED, call.context, pointer, bytes);
  return fake_call_end (&call, CU_SUCCESS);
}

FAKE_EXPORT cu_result
cuMemHostUnregister (void *pointer)
{
  fake_range *range;
  fake_call call;

  if (!fake_call_begin (&call, __func__, FAKE_NEEDS_CONTEXT | FAKE_GIVES_BACK))
    return call.result;
  range = range_find (pointer, 1u << FAKE_RANGE_REGISTERED);
  if (range == NULL)
    return fake_call_end (&call, FAKE_ERROR_HOST_MEMORY_NOT_REGISTERED);
  /* What a broken context had still to do is being thrown away. */
  while (range->pending > 0 && call.context->error != CU_SUCCESS)
    pthread_cond_wait (&fake_changed, &fake_lock);
  if (range->pending > 0)
    return fake_call_end (&call, fake_misuse (CU_ERROR_INVALID_VALUE,
            "cuMemHostUnregister of memory that %u operations still use", range->pending));
  range_remove (range);
  return fake_call_end (&call, CU_SUCCESS);
}

FAKE_EXPORT cu_result
cuMemHostGetDevicePointer_v2 (cu_deviceptr *pointer, void *data, unsigned flags)
{
  fake_range *range;
  fake_call call;

  if (!fake_call_begin (&call, __func__, FAKE_NEEDS_CONTEXT))
    return call.result;
  if (fake_host_memory (data, 1, &range) != FAKE_PINNED)
    return fake_call_end (&call, CU_ERROR_INVALID_VALUE);
  *pointer = (cu_deviceptr) (uintptr_t) data;
  return fake_call_end (&call, CU_SUCCESS);
}

FAKE_EXPORT cu_result
cuMemAdvise (cu_deviceptr pointer, size_t bytes, int advice, cu_device device)
{
  fake_range *range;
  fake_call call;

  if (!fake_call_begin (&call, __func__, FAKE_NEEDS_CONTEXT))
    return call.result;
  if (fake_device_memory (pointer, bytes, &range) == NULL || range->type != FAKE_RANGE_MANAGED)
    return fake_call_end (&call, CU_ERROR_INVALID_VALUE);
  return fake_call_end (&call, CU_SUCCESS);
}

/* CU_POINTER_ATTRIBUTE_MEMORY_TYPE (2), DEVICE_POINTER (3), HOST_POINTER (4), IS_MANAGED (8). */
FAKE_EXPORT cu_result
cuPointerGetAttribute (void *value, int attribute, cu_deviceptr pointer)
{
  fake_range *range;
  fake_call call;
  bool on_device;

  if (!fake_call_begin (&call, __func__, FAKE_NEEDS_CONTEXT))
    return call.result;
  if (fake_device_memory (pointer, 1, &range) == NULL)
    return fake_call_end (&call, CU_ERROR_INVALID_VALUE);
  on_device = range->type == FAKE_RANGE_DEVICE || range->type == FAKE_RANGE_MANAGED;
  if (attribute == 2)
    *(unsigned *) value = on_device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
  else if (attribute == 3)
    *(cu_deviceptr *) value = pointer;
  else if (attribute == 4 && range->type != FAKE_RANGE_DEVICE)
    *(void **) value = (void *) (uintptr_t) pointer;
  else if (attribute == 8)
    *(unsigned *) value = range->type == FAKE_RANGE_MANAGED;
  else
    return fake_call_end (&call, CU_ERROR_INVALID_VALUE);
  return fake_call_end (&call, CU_SUCCESS);
}
