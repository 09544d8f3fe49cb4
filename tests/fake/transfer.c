/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Copies, sets and launches of the fake driver: every argument is checked here, when the call is
 * made, and becomes one operation of a stream.  Knows nothing of when that runs. */
#include "fake.h"

#include <stdlib.h>
#include <string.h>

FAKE_EXPORT cu_result cuMemcpyHtoD_v2 (cu_deviceptr to, const void *from, size_t bytes);
FAKE_EXPORT cu_result cuMemcpyDtoH_v2 (void *to, cu_deviceptr from, size_t bytes);
FAKE_EXPORT cu_result cuMemcpyDtoDAsync_v2 (cu_deviceptr to, cu_deviceptr from, size_t bytes,
    cu_stream stream);
FAKE_EXPORT cu_result cuMemcpy2D_v2 (const cu_memcpy_2d * copy);
FAKE_EXPORT cu_result cuMemsetD8Async (cu_deviceptr to, unsigned char value, size_t bytes,
    cu_stream stream);
FAKE_EXPORT cu_result cuMemPrefetchAsync (cu_deviceptr pointer, size_t bytes, cu_device device,
    cu_stream stream);

/* One side of a copy. */
typedef struct place
{
  bool on_host;
  const void *host;
  cu_deviceptr device;
  size_t offset, pitch;
} place;

/* Where the side's bytes lie and whether the device reaches them by itself. */
static cu_result
resolve (const place *side, size_t width, size_t height, unsigned char **data, fake_range **range,
    bool *pageable)
{
  size_t extent = (height - 1) * side->pitch + width;

  *range = NULL;
  *pageable = false;
  if (!side->on_host) {
    *data = fake_device_memory (side->device + side->offset, extent, range);
    return *data != NULL ? CU_SUCCESS : fake_misuse (CU_ERROR_INVALID_VALUE,
        "copy of %zu bytes at device address 0x%llx, which no allocation holds", extent,
        (unsigned long long) (side->device + side->offset));
  }
  *data = (unsigned char *) (uintptr_t) side->host + side->offset;
  if (side->host == NULL)
    return CU_ERROR_INVALID_VALUE;
  switch (fake_host_memory (*data, extent, range)) {
    case FAKE_PINNED:
      *data = (*range)->reached + (*data - (*range)->data);
      return CU_SUCCESS;
    case FAKE_PAGEABLE:
      *pageable = true;
      return CU_SUCCESS;
    case FAKE_STRADDLES:
      break;
  }
  return fake_misuse (CU_ERROR_INVALID_VALUE,
      "copy of %zu bytes of host memory of which a part is pinned", extent);
}

/* Pageable input is copied before the call returns, pageable output is there when it returns; so
 * says the driver's documentation on synchronization behaviour. */
static cu_result
copy_locked (fake_context *context, fake_stream *stream, const place *to, const place *from,
    size_t width, size_t height, bool wait)
{
  fake_op *op;
  bool to_pageable, from_pageable;
  cu_result result;

  if (width == 0 || height == 0)
    return CU_SUCCESS;
  if (height > 1 && (to->pitch < width || from->pitch < width))
    return fake_misuse (CU_ERROR_INVALID_VALUE, "copy whose rows are longer than their pitch");
  op = calloc (1, sizeof *op);
  if (op == NULL)
    return CU_ERROR_OUT_OF_MEMORY;
  op->kind = FAKE_OP_COPY;
  op->engine = from->on_host ? FAKE_ENGINE_UPLOAD : to->on_host ? FAKE_ENGINE_DOWNLOAD : FAKE_ENGINE_NONE;
  op->width = width;
  op->height = height;
  op->to_pitch = to->pitch;
  op->from_pitch = from->pitch;
  result = resolve (to, width, height, &op->to, &op->ranges[0], &to_pageable);
  if (result == CU_SUCCESS) {
    unsigned char *data = NULL;

    result = resolve (from, width, height, &data, &op->ranges[1], &from_pageable);
    op->from = data;
  }
  if (result != CU_SUCCESS) {
    free (op);
    return result;
  }
  if (to_pageable || from_pageable)
    fake_counts.pageable_copies++;
  if (height > 1)
    fake_counts.two_dimensional++;
  if (from_pageable && !wait) {
    size_t extent = (height - 1) * from->pitch + width;

    op->staged = malloc (extent);
    if (op->staged == NULL)
      abort ();
    memcpy (op->staged, op->from, extent);
    op->from = op->staged;
  }
  fake_stream_enqueue (stream, op);
  if (!wait && !to_pageable)
    return CU_SUCCESS;
  fake_stream_drain (stream);
  return context->error;
}

/* As fake_call_begin, with the stream found. */
static bool
begin (fake_call *call, const char *name, cu_stream handle, fake_stream **stream)
{
  if (!fake_call_begin (call, name, FAKE_NEEDS_CONTEXT))
    return false;
  *stream = fake_stream_find (handle, call->context);
  if (*stream != NULL)
    return true;
  call->result = fake_call_end (call, fake_misuse (FAKE_ERROR_INVALID_HANDLE,
          "%s on what is no stream of the current context", name));
  return false;
}

FAKE_EXPORT cu_result
cuMemcpyHtoDAsync_v2 (cu_deviceptr to, const void *from, size_t bytes, cu_stream handle)
{
  fake_stream *stream;
  fake_call call;

  if (!begin (&call, __func__, handle, &stream))
    return call.result;
  return fake_call_end (&call, copy_locked (call.context, stream, &(place) {.device = to},
          &(place) {.on_host = true,.host = from}, bytes, 1, false));
}

FAKE_EXPORT cu_result
cuMemcpyDtoHAsync_v2 (void *to, cu_deviceptr from, size_t bytes, cu_stream handle)
{
  fake_stream *stream;
  fake_call call;

  if (!begin (&call, __func__, handle, &stream))
    return call.result;
  return fake_call_end (&call, copy_locked (call.context, stream,
          &(place) {.on_host = true,.host = to}, &(place) {.device = from}, bytes, 1, false));
}

FAKE_EXPORT cu_result
cuMemcpyDtoDAsync_v2 (cu_deviceptr to, cu_deviceptr from, size_t bytes, cu_stream handle)
{
  fake_stream *stream;
  fake_call call;

  if (!begin (&call, __func__, handle, &stream))
    return call.result;
  return fake_call_end (&call, copy_locked (call.context, stream, &(place) {.device = to},
          &(place) {.device = from}, bytes, 1, false));
}

FAKE_EXPORT cu_result
cuMemcpyHtoD_v2 (cu_deviceptr to, const void *from, size_t bytes)
{
  fake_stream *stream;
  fake_call call;

  if (!begin (&call, __func__, NULL, &stream))
    return call.result;
  return fake_call_end (&call, copy_locked (call.context, stream, &(place) {.device = to},
          &(place) {.on_host = true,.host = from}, bytes, 1, true));
}

FAKE_EXPORT cu_result
cuMemcpyDtoH_v2 (void *to, cu_deviceptr from, size_t bytes)
{
  fake_stream *stream;
  fake_call call;

  if (!begin (&call, __func__, NULL, &stream))
    return call.result;
  return fake_call_end (&call, copy_locked (call.context, stream,
          &(place) {.on_host = true,.host = to}, &(place) {.device = from}, bytes, 1, true));
}

static bool
side_of (int type, const void *host, cu_deviceptr device, size_t x, size_t y, size_t pitch,
    place *side)
{
  side->on_host = type == CU_MEMORYTYPE_HOST;
  side->host = host;
  side->device = device;
  side->offset = y * pitch + x;
  side->pitch = pitch;
  return side->on_host || type == CU_MEMORYTYPE_DEVICE || type == FAKE_MEMORYTYPE_UNIFIED;
}

static cu_result
copy_2d (const char *name, const cu_memcpy_2d *copy, cu_stream handle, bool wait)
{
  place to, from;
  fake_stream *stream;
  fake_call call;

  if (!begin (&call, name, handle, &stream))
    return call.result;
  if (!side_of (copy->dst_type, copy->dst_host, copy->dst_device, copy->dst_x, copy->dst_y,
          copy->dst_pitch, &to)
      || !side_of (copy->src_type, copy->src_host, copy->src_device, copy->src_x, copy->src_y,
          copy->src_pitch, &from))
    return fake_call_end (&call, CU_ERROR_INVALID_VALUE);
  return fake_call_end (&call, copy_locked (call.context, stream, &to, &from, copy->width_bytes,
          copy->height, wait));
}

FAKE_EXPORT cu_result
cuMemcpy2DAsync_v2 (const cu_memcpy_2d *copy, cu_stream stream)
{
  return copy_2d (__func__, copy, stream, false);
}

FAKE_EXPORT cu_result
cuMemcpy2D_v2 (const cu_memcpy_2d *copy)
{
  return copy_2d (__func__, copy, NULL, true);
}

FAKE_EXPORT cu_result
cuMemsetD8Async (cu_deviceptr to, unsigned char value, size_t bytes, cu_stream handle)
{
  fake_stream *stream;
  fake_range *range;
  unsigned char *data;
  fake_call call;
  fake_op *op;

  if (!begin (&call, __func__, handle, &stream))
    return call.result;
  data = fake_device_memory (to, bytes, &range);
  if (data == NULL)
    return fake_call_end (&call, fake_misuse (CU_ERROR_INVALID_VALUE,
            "set of %zu bytes at device address 0x%llx, which no allocation holds", bytes,
            (unsigned long long) to));
  op = calloc (1, sizeof *op);
  if (op == NULL)
    return fake_call_end (&call, CU_ERROR_OUT_OF_MEMORY);
  op->kind = FAKE_OP_SET;
  op->ranges[0] = range;
  op->to = data;
  op->value = value;
  op->width = bytes;
  fake_stream_enqueue (stream, op);
  return fake_call_end (&call, CU_SUCCESS);
}

FAKE_EXPORT cu_result
cuMemPrefetchAsync (cu_deviceptr pointer, size_t bytes, cu_device device, cu_stream handle)
{
  fake_stream *stream;
  fake_range *range;
  fake_call call;

  if (!begin (&call, __func__, handle, &stream))
    return call.result;
  if (fake_device_memory (pointer, bytes, &range) == NULL || range->type != FAKE_RANGE_MANAGED)
    return fake_call_end (&call, CU_ERROR_INVALID_VALUE);
  return fake_call_end (&call, CU_SUCCESS);
}

/* ---- launches -------------------------------------------------------------------------------- */

/* Turns the planes' device addresses into ours.  A picture that memory does not hold is found by
 * the device when the kernel runs, not by the call. */
static bool
map_image (csfk_image *image, fake_range **ranges)
{
  if (image->n_planes < 1 || image->n_planes > CSFK_MAX_PLANES)
    return false;
  for (int p = 0; p < image->n_planes; p++) {
    csfk_plane *plane = &image->plane[p];
    size_t extent;

    if (plane->rows < 1 || plane->row_bytes < 1 || plane->stride < plane->row_bytes)
      return false;
    extent = (size_t) (plane->rows - 1) * (size_t) plane->stride + (size_t) plane->row_bytes;
    plane->data = fake_device_memory ((cu_deviceptr) (uintptr_t) plane->data, extent, &ranges[p]);
    if (plane->data == NULL)
      return false;
  }
  return true;
}

/* The same for what else the frame points to; the table entry that a test gave may be without it. */
static bool
map_memory (void **at, size_t size, fake_range **range)
{
  if (size == 0 || *at == NULL)
    return true;
  *at = fake_device_memory ((cu_deviceptr) (uintptr_t) *at, size, range);
  return *at != NULL;
}

static bool
map_frame (csfk_frame *frame, const csfk_kernel *kernel, fake_range **ranges)
{
  size_t state, workspace, regions = (size_t) frame->n_regions * sizeof (csfk_region);
  const csfk_image in = frame->in, out = frame->out;

  if (!map_image (&frame->in, ranges) || !map_image (&frame->out, ranges + CSFK_MAX_PLANES))
    return false;
  state = kernel->state_size == NULL ? 0 : kernel->state_size (kernel, &in, &out);
  workspace = kernel->workspace_size == NULL ? 0 : kernel->workspace_size (kernel, &in, &out);
  ranges += 2 * CSFK_MAX_PLANES;
  return map_memory (&frame->state, state, &ranges[0])
      && map_memory (&frame->workspace, workspace, &ranges[1])
      && map_memory ((void **) &frame->regions, regions, &ranges[2])
      && map_memory ((void **) &frame->records.data,
          (size_t) frame->records.capacity * frame->records.record_size, &ranges[3])
      && map_memory ((void **) &frame->records.count, frame->records.data == NULL ? 0 :
          sizeof (unsigned), &ranges[4]);
}

/* The argument buffer, however it was given; NULL when it cannot be found or is too short. */
static const unsigned char *
find_arguments (void **params, void **extra, size_t needed)
{
  enum
  { END = 0, POINTER = 1, SIZE = 2 };
  const unsigned char *buffer = NULL;
  size_t size = 0;

  if (params != NULL)
    return params[0];
  for (; extra != NULL && (uintptr_t) extra[0] != END; extra += 2) {
    if ((uintptr_t) extra[0] == POINTER)
      buffer = extra[1];
    else if ((uintptr_t) extra[0] == SIZE)
      size = *(size_t *) extra[1];
  }
  return size < needed ? NULL : buffer;
}

FAKE_EXPORT cu_result
cuLaunchKernel (cu_function handle, unsigned grid_x, unsigned grid_y, unsigned grid_z,
    unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
    cu_stream stream_handle, void **params, void **extra)
{
  const unsigned char *arguments;
  fake_function *function;
  fake_stream *stream;
  size_t params_size;
  fake_call call;
  fake_op *op;

  if (!begin (&call, __func__, stream_handle, &stream))
    return call.result;
  function = fake_object_find (handle, FAKE_FUNCTION);
  if (function == NULL || function->object.context != call.context)
    return fake_call_end (&call, fake_misuse (FAKE_ERROR_INVALID_HANDLE,
            "launch of what is no function of the current context"));
  if (grid_x == 0 || grid_y == 0 || grid_z == 0 || grid_y > 65535 || grid_z > 65535
      || block_x == 0 || block_y == 0 || block_z == 0 || block_z > 64
      || (uint64_t) block_x * block_y * block_z > 1024 || shared_bytes > 49152)
    return fake_call_end (&call, fake_misuse (CU_ERROR_INVALID_VALUE,
            "launch of %ux%ux%u blocks of %ux%ux%u threads with %u bytes", grid_x, grid_y, grid_z,
            block_x, block_y, block_z, shared_bytes));
  params_size = function->is_part && !function->collects ? 0 : function->kernel->params_size;
  arguments = find_arguments (params, extra, sizeof (csfk_frame) + params_size);
  if (arguments == NULL)
    return fake_call_end (&call, fake_misuse (CU_ERROR_INVALID_VALUE,
            "launch of %s without its arguments", function->name));
  op = calloc (1, sizeof *op);
  if (op == NULL)
    return fake_call_end (&call, CU_ERROR_OUT_OF_MEMORY);
  memcpy (&op->frame, arguments, sizeof op->frame);
  op->kind = FAKE_OP_KERNEL;
  op->engine = FAKE_ENGINE_KERNEL;
  op->kernel = function->kernel;
  op->module = function->module;
  op->does_nothing = function->is_part;
  op->collects = function->collects;
  if (!map_frame (&op->frame, op->kernel, op->ranges)) {
    fake_misuse (FAKE_ERROR_ILLEGAL_ADDRESS,
        "launch of %s on what is not in device memory", function->name);
    op->kernel = NULL;
  }
  if (params_size > 0) {
    op->params = malloc (params_size);
    if (op->params == NULL)
      abort ();
    memcpy (op->params, arguments + sizeof (csfk_frame), params_size);
  }
  fake_stream_enqueue (stream, op);
  return fake_call_end (&call, CU_SUCCESS);
}
