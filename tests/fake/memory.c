/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Device, managed and pinned memory of the fake driver.  Device memory is ordinary memory whose
 * address the host cannot use.  Managed memory is mapped twice, for the device and for the host, so
 * that an access of the host that comes too early crashes where a real one would.  Knows nothing of
 * operations beyond whether one still uses a range. */
#include "fake.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

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
      return r->reached + (data - r->data);
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
  range->data = range->reached = data;
  range->size = size;
  range->context = context;
  range->next = fake_ranges;
  fake_ranges = range;
  fake_counts.allocations++;
  return range;
}

/* ---- managed memory ---------------------------------------------------------------------------- */

/* The page that follows belongs to nobody. */
static size_t
mapped_size (size_t bytes)
{
  const size_t page = (size_t) sysconf (_SC_PAGESIZE);

  return (bytes + page - 1) / page * page + page;
}

static size_t
usable_size (size_t bytes)
{
  return mapped_size (bytes) - (size_t) sysconf (_SC_PAGESIZE);
}

static unsigned char *
map_once (int file, size_t bytes)
{
  const size_t mapped = mapped_size (bytes), usable = usable_size (bytes);
  unsigned char *data = mmap (NULL, mapped, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);

  if (data == MAP_FAILED || mprotect (data + usable, mapped - usable, PROT_NONE) != 0)
    abort ();
  return data;
}

/* Bytes that appear at two addresses. */
static bool
map_twice (size_t bytes, unsigned char **host, unsigned char **device)
{
  int file = memfd_create ("fake-managed", MFD_CLOEXEC);

  if (file < 0)
    return false;
  if (ftruncate (file, (off_t) mapped_size (bytes)) != 0) {
    close (file);
    return false;
  }
  *host = map_once (file, bytes);
  *device = map_once (file, bytes);
  close (file);
  return true;
}

static bool
device_works (int device)
{
  for (const fake_context *context = fake_contexts; context != NULL; context = context->next)
    for (const fake_stream *s = context->streams; s != NULL; s = s->next)
      if (context->device == device && s->first != NULL)
        return true;
  return false;
}

static bool
is_for_host (const fake_range *range)
{
  if (range->pending > 0)
    return false;
  if (range->attached == CU_MEM_ATTACH_SINGLE)
    return range->owner->first == NULL;
  return range->attached == CU_MEM_ATTACH_HOST || !device_works (range->context->device);
}

void
fake_memory_guard (void)
{
  for (fake_range *r = fake_ranges; r != NULL; r = r->next)
    if (r->guarded && r->hidden == is_for_host (r)) {
      r->hidden = !r->hidden;
      if (mprotect (r->data, usable_size (r->size),
              r->hidden ? PROT_NONE : PROT_READ | PROT_WRITE) != 0)
        abort ();
    }
}

void
fake_memory_attach (fake_range *range, unsigned flags, fake_stream *stream)
{
  range->attached = flags;
  range->owner = flags == CU_MEM_ATTACH_SINGLE ? stream : NULL;
}

void
fake_memory_detach (const fake_stream *stream)
{
  for (fake_range *r = fake_ranges; r != NULL; r = r->next)
    if (r->owner == stream)
      fake_memory_attach (r, r->attached_at_first, NULL);
  fake_memory_guard ();
}

bool
fake_memory_is_for (const fake_range *range, const fake_stream *stream)
{
  return !range->guarded || range->attached == CU_MEM_ATTACH_GLOBAL || range->owner == stream;
}

/* ---- ranges ------------------------------------------------------------------------------------ */

static void
range_remove (fake_range *range)
{
  fake_range **link = &fake_ranges;

  while (*link != range)
    link = &(*link)->next;
  *link = range->next;
  if (range->type == FAKE_RANGE_MANAGED) {
    munmap (range->data, mapped_size (range->size));
    munmap (range->reached, mapped_size (range->size));
  } else if (range->type != FAKE_RANGE_REGISTERED) {
    free (range->data);
  }
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
  unsigned char *host, *device;
  fake_range *range;
  fake_call call;

  if (!fake_call_begin (&call, __func__, FAKE_NEEDS_CONTEXT))
    return call.result;
  if (fake_attribute (call.context->device, 83) == 0)
    return fake_call_end (&call, CU_ERROR_NOT_SUPPORTED);
  if (bytes == 0 || (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST))
    return fake_call_end (&call, CU_ERROR_INVALID_VALUE);
  if (!map_twice (bytes, &host, &device))
    return fake_call_end (&call, CU_ERROR_OUT_OF_MEMORY);
  memset (device, FRESH, bytes);
  range = range_add (FAKE_RANGE_MANAGED, call.context, host, bytes);
  range->reached = device;
  range->guarded =
      fake_attribute (call.context->device, CU_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS) == 0;
  range->attached = range->attached_at_first = flags;
  fake_memory_guard ();
  *pointer = (cu_deviceptr) (uintptr_t) host;
  return fake_call_end (&call, CU_SUCCESS);
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

FAKE_EXPORT cu_result
cuStreamAttachMemAsync (cu_stream handle, cu_deviceptr pointer, size_t bytes, unsigned flags)
{
  fake_stream *stream;
  fake_range *range;
  fake_call call;
  fake_op *op;

  if (!fake_call_begin (&call, __func__, FAKE_NEEDS_CONTEXT))
    return call.result;
  range = range_find ((void *) (uintptr_t) pointer, 1u << FAKE_RANGE_MANAGED);
  stream = fake_stream_find (handle, call.context);
  /* All of an allocation, and never to the NULL stream alone. */
  if (stream == NULL || range == NULL || (bytes != 0 && bytes != range->size)
      || (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST
          && (flags != CU_MEM_ATTACH_SINGLE || stream == call.context->null_stream)))
    return fake_call_end (&call, CU_ERROR_INVALID_VALUE);
  op = calloc (1, sizeof *op);
  if (op == NULL)
    return fake_call_end (&call, CU_ERROR_OUT_OF_MEMORY);
  op->kind = FAKE_OP_ATTACH;
  op->ranges[0] = range;
  op->attach_flags = flags;
  fake_stream_enqueue (stream, op);
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
