/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The CUDA backend's records: memory that the device appends to and the host reads, the counter, and the
 * pass that appends.  Knows no kernel's records, only their size.
 *
 * The counter lies in device memory, reset by a memset and fetched by a copy of 4 bytes: an atomic on memory
 * of the host costs several times the whole frame. */
#include <stdlib.h>
#include <string.h>

#include "backend_cuda_session.h"

/* Counters that share no cache line. */
#define COUNT_STRIDE 256u
/* Copied along without being asked, until more was seen. */
#define FIRST_GUESS_BYTES 4096u

/* ---- counters ---------------------------------------------------------------------------------- */

csf_status
cuda_records_open (cuda_session *session, csf_hostpool *hostpool, csf_error *error)
{
  const cuda_driver *cu = session->device->cu;
  csf_status status = CSF_OK;

  if (session->kernel->emit == NULL)
    return csf_error_set (error, CSF_ERROR_UNSUPPORTED, CSF_STAGE_OPEN, CSF_NO_FRAME, 0,
        "kernel \"%s\" has records and no CUDA function that appends them; run it with backend=cpu",
        session->kernel->name);
  session->host_counts = csf_hostpool_alloc (hostpool, session->n_slots * COUNT_STRIDE);
  if (session->host_counts == NULL)
    return csf_error_set (error, CSF_ERROR_MEMORY, CSF_STAGE_OPEN, CSF_NO_FRAME, 0, "no memory left");
  CU (CSF_STAGE_OPEN, CSF_NO_FRAME, MemAlloc, &session->counts, session->n_slots * COUNT_STRIDE);
  atomic_fetch_add (&session->device_bytes, session->n_slots * COUNT_STRIDE);
  atomic_store (&session->guess, FIRST_GUESS_BYTES / session->kernel->record_size);
  for (unsigned i = 0; i < session->n_slots; i++) {
    session->slots[i].count = session->counts + i * COUNT_STRIDE;
    session->slots[i].host_count =
        (unsigned *) ((char *) csf_hostblock_data (session->host_counts) + i * COUNT_STRIDE);
  }
fail:
  return status;
}

csf_status
cuda_records_open_slot (cuda_session *session, cuda_slot *slot, csf_error *error)
{
  const cuda_driver *cu = session->device->cu;
  csf_status status = CSF_OK;

  CU (CSF_STAGE_OPEN, CSF_NO_FRAME, StreamCreate, &slot->records_stream, CU_STREAM_NON_BLOCKING);
  CU (CSF_STAGE_OPEN, CSF_NO_FRAME, EventCreate, &slot->records_begin, CU_EVENT_DISABLE_TIMING);
  CU (CSF_STAGE_OPEN, CSF_NO_FRAME, EventCreate, &slot->records_done, CU_EVENT_DISABLE_TIMING);
fail:
  return status;
}

void
cuda_records_close_slot (const cuda_driver *cu, cuda_slot *slot)
{
  if (slot->records_stream != NULL)
    cu->StreamDestroy (slot->records_stream);
  if (slot->records_begin != NULL)
    cu->EventDestroy (slot->records_begin);
  if (slot->records_done != NULL)
    cu->EventDestroy (slot->records_done);
}

void
cuda_records_close (cuda_session *session)
{
  if (session->counts != 0)
    session->device->cu->MemFree (session->counts);
  session->counts = 0;
}

/* ---- memory ------------------------------------------------------------------------------------ */

static csf_metadata_memory
choose_memory (const cuda_session *session)
{
  const cuda_device *device = session->device;

  if (session->metadata_memory != CSF_METADATA_AUTO)
    return session->metadata_memory;
  /* A host that reads managed memory while the device works crashes where the device is not made for it. */
  return device->has_managed && device->managed_at_once ? CSF_METADATA_MANAGED : CSF_METADATA_PINNED;
}

static csf_status
alloc_managed (cuda_session *session, size_t bytes, csf_record_buffer *buffer, csf_error *error)
{
  const cuda_device *device = session->device;
  const cuda_driver *cu = device->cu;
  csf_status status = CSF_OK;
  cu_deviceptr memory = 0;

  if (!device->has_managed)
    return csf_error_set (error, CSF_ERROR_UNSUPPORTED, CSF_STAGE_OPEN, CSF_NO_FRAME, 0,
        "\"%s\" has no managed memory; set metadata-memory to auto", device->base.info.name);
  CU (CSF_STAGE_OPEN, CSF_NO_FRAME, MemAllocManaged, &memory, bytes,
      device->managed_at_once ? CU_MEM_ATTACH_GLOBAL : CU_MEM_ATTACH_HOST);
  buffer->device = memory;
  buffer->host = (void *) (uintptr_t) memory;
  /* It stays where the host reads it, and the device writes there: left to move, it would go to and fro. */
  if (device->managed_at_once) {
    CU (CSF_STAGE_OPEN, CSF_NO_FRAME, MemAdvise, memory, bytes,
        CU_MEM_ADVISE_SET_PREFERRED_LOCATION, CU_DEVICE_CPU);
    CU (CSF_STAGE_OPEN, CSF_NO_FRAME, MemAdvise, memory, bytes, CU_MEM_ADVISE_SET_ACCESSED_BY,
        device->device);
  }
fail:
  if (status != CSF_OK && memory != 0)
    cu->MemFree (memory);
  return status;
}

static csf_status
alloc_pinned (cuda_session *session, size_t bytes, csf_record_buffer *buffer, csf_error *error)
{
  const cuda_driver *cu = session->device->cu;
  csf_status status = CSF_OK;
  cu_deviceptr mapped;

  buffer->host = NULL;
  CU (CSF_STAGE_OPEN, CSF_NO_FRAME, MemHostAlloc, &buffer->host, bytes,
      CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
  CU (CSF_STAGE_OPEN, CSF_NO_FRAME, MemHostGetDevicePointer, &mapped, buffer->host, 0);
  buffer->device = mapped;
fail:
  if (status != CSF_OK && buffer->host != NULL)
    cu->MemFreeHost (buffer->host);
  return status;
}

static csf_status
alloc_device (cuda_session *session, size_t bytes, csf_record_buffer *buffer, csf_error *error)
{
  const cuda_driver *cu = session->device->cu;
  csf_status status = CSF_OK;
  cu_deviceptr memory = 0;

  buffer->host = NULL;
  CU (CSF_STAGE_OPEN, CSF_NO_FRAME, MemAlloc, &memory, bytes);
  CU (CSF_STAGE_OPEN, CSF_NO_FRAME, MemHostAlloc, &buffer->host, bytes, CU_MEMHOSTALLOC_PORTABLE);
  buffer->device = memory;
  atomic_fetch_add (&session->device_bytes, bytes);
fail:
  if (status != CSF_OK && memory != 0)
    cu->MemFree (memory);
  return status;
}

csf_status
cuda_record_alloc (csf_session *base, unsigned capacity, csf_record_buffer *buffer, csf_error *error)
{
  cuda_session *session = (cuda_session *) base;
  const size_t bytes = (size_t) capacity * session->kernel->record_size;
  csf_status status = cuda_enter (session->device, error, CSF_STAGE_OPEN, CSF_NO_FRAME);

  if (status != CSF_OK)
    return status;
  buffer->memory = choose_memory (session);
  switch (buffer->memory) {
    case CSF_METADATA_MANAGED:
      status = alloc_managed (session, bytes, buffer, error);
      break;
    case CSF_METADATA_PINNED:
      status = alloc_pinned (session, bytes, buffer, error);
      break;
    default:
      status = alloc_device (session, bytes, buffer, error);
  }
  cuda_leave (session->device);
  if (status == CSF_ERROR_MEMORY)
    csf_error_set (error, status, CSF_STAGE_KERNEL, CSF_NO_FRAME, 0,
        "no memory left for %u records of %u bytes; lower max-records or num-streams", capacity,
        session->kernel->record_size);
  if (status != CSF_OK)
    buffer->capacity = 0;
  return status;
}

void
cuda_record_free (csf_session *base, csf_record_buffer *buffer)
{
  cuda_session *session = (cuda_session *) base;
  const cuda_driver *cu = session->device->cu;

  /* A dead context has nothing left to free. */
  if (cuda_enter (session->device, NULL, CSF_STAGE_CLOSE, CSF_NO_FRAME) != CSF_OK)
    return;
  if (buffer->memory != CSF_METADATA_PINNED)
    cu->MemFree (buffer->device);
  if (buffer->memory != CSF_METADATA_MANAGED)
    cu->MemFreeHost (buffer->host);
  if (buffer->memory == CSF_METADATA_DEVICE)
    atomic_fetch_sub (&session->device_bytes,
        (size_t) buffer->capacity * session->kernel->record_size);
  cuda_leave (session->device);
}

/* ---- a frame's records ------------------------------------------------------------------------- */

/* Managed memory of a device that must not share it belongs to the stream that writes it: the host may read it
 * when that stream alone has come to rest. */
static csf_status
attach (cuda_session *session, cuda_slot *slot, csf_error *error)
{
  const cuda_driver *cu = session->device->cu;
  csf_status status = CSF_OK;

  if (slot->records.memory != CSF_METADATA_MANAGED || session->device->managed_at_once
      || slot->attached == slot->records.device)
    return CSF_OK;
  CU (CSF_STAGE_KERNEL, slot->frame, StreamAttachMemAsync, slot->records_stream, slot->records.device, 0,
      CU_MEM_ATTACH_SINGLE);
  slot->attached = slot->records.device;
fail:
  return status;
}

/* Device memory: as many records as there lately were, so that the host need not ask for them. */
static csf_status
copy_records (cuda_session *session, cuda_slot *slot, unsigned n, cu_stream stream, csf_error *error)
{
  const cuda_driver *cu = session->device->cu;
  csf_status status = CSF_OK;

  if (n > slot->records.capacity)
    n = slot->records.capacity;
  slot->copied = 0;
  if (slot->records.memory == CSF_METADATA_DEVICE && n > 0)
    CU (CSF_STAGE_DOWNLOAD, slot->frame, MemcpyDtoHAsync, slot->records.host, slot->records.device,
        (size_t) n * session->kernel->record_size, stream);
  slot->copied = n;
fail:
  return status;
}

csf_status
cuda_records_clear (cuda_session *session, cuda_slot *slot, csf_error *error)
{
  const cuda_driver *cu = session->device->cu;
  csf_status status = attach (session, slot, error);

  if (status == CSF_OK)
    CU (CSF_STAGE_KERNEL, slot->frame, MemsetD8Async, slot->count, 0, sizeof (unsigned),
        slot->records_stream);
fail:
  return status;
}

/* The pass itself. */
static csf_status
launch_emit (cuda_session *session, cuda_slot *slot, csf_error *error)
{
  launcher self =
      cuda_launcher (session, slot, slot->records_stream, slot->host_regions, error);

  slot->work.records = (csfk_records) {
    .data = (unsigned char *) (uintptr_t) slot->records.device,
    .count = (unsigned *) (uintptr_t) slot->count,
    .capacity = slot->records.capacity,
    .record_size = session->kernel->record_size,
  };
  return cuda_launched (&self, session->kernel->emit (&slot->work, slot->params, &self.base));
}

csf_status
cuda_records_append (cuda_session *session, cuda_slot *slot, csf_error *error)
{
  const cuda_driver *cu = session->device->cu;
  csf_status status = CSF_OK;

  CU (CSF_STAGE_KERNEL, slot->frame, EventRecord, slot->records_begin, slot->stream);
  CU (CSF_STAGE_KERNEL, slot->frame, StreamWaitEvent, slot->records_stream, slot->records_begin, 0);
  status = launch_emit (session, slot, error);
  if (status == CSF_OK && slot->run.number != 0)
    CU (CSF_STAGE_KERNEL, slot->frame, EventRecord, slot->marks[MARK_RECORDS], slot->records_stream);
  if (status == CSF_OK)
    CU (CSF_STAGE_KERNEL, slot->frame, EventRecord, slot->records_done, slot->records_stream);
fail:
  return status;
}

csf_status
cuda_records_await (cuda_session *session, cuda_slot *slot, csf_error *error)
{
  const cuda_driver *cu = session->device->cu;
  csf_status status = CSF_OK;

  CU (CSF_STAGE_KERNEL, slot->frame, StreamWaitEvent, slot->stream, slot->records_done, 0);
fail:
  return status;
}

csf_status
cuda_records_bring (cuda_session *session, cuda_slot *slot, cu_stream stream, csf_error *error)
{
  const cuda_driver *cu = session->device->cu;
  csf_status status = CSF_OK;

  CU (CSF_STAGE_DOWNLOAD, slot->frame, MemcpyDtoHAsync, slot->host_count, slot->count,
      sizeof (unsigned), stream);
  status = copy_records (session, slot, atomic_load (&session->guess), stream, error);
fail:
  return status;
}

unsigned
cuda_record_count (csf_session *base, unsigned index)
{
  return *((cuda_session *) base)->slots[index].host_count;
}

csf_status
cuda_emit (csf_session *base, unsigned index, const csf_record_buffer *buffer, csf_error *error)
{
  cuda_session *session = (cuda_session *) base;
  cuda_slot *slot = &session->slots[index];
  const cuda_driver *cu = session->device->cu;
  csf_status status = cuda_enter (session->device, error, CSF_STAGE_KERNEL, slot->frame);

  if (status != CSF_OK)
    return status;
  slot->records = *buffer;
  slot->recorded = false;
  status = cuda_records_clear (session, slot, error);
  if (status == CSF_OK)
    status = launch_emit (session, slot, error);
  if (status == CSF_OK)
    status = cuda_records_bring (session, slot, slot->records_stream, error);
  if (status != CSF_OK)
    goto fail;
  slot->end = slot->done;
  CU (CSF_STAGE_KERNEL, slot->frame, EventRecord, slot->end, slot->records_stream);
  slot->recorded = true;
fail:
  cuda_leave (session->device);
  return status;
}

csf_status
cuda_record_fetch (csf_session *base, unsigned index, unsigned n, csf_error *error)
{
  cuda_session *session = (cuda_session *) base;
  cuda_slot *slot = &session->slots[index];
  const cuda_driver *cu = session->device->cu;
  csf_status status;

  if (slot->records.memory != CSF_METADATA_DEVICE)
    return CSF_OK;
  if (n <= slot->copied) {
    /* Follows what there is: at once upwards, slowly down. */
    unsigned guess = atomic_load (&session->guess);

    if (n + n / 4 < guess)
      atomic_store (&session->guess, guess - (guess - n) / 16);
    return CSF_OK;
  }
  atomic_store (&session->guess, n + n / 4);
  status = cuda_enter (session->device, error, CSF_STAGE_DOWNLOAD, slot->frame);
  if (status != CSF_OK)
    return status;
  slot->recorded = false;
  status = copy_records (session, slot, n, slot->stream, error);
  if (status != CSF_OK)
    goto fail;
  slot->end = slot->done;
  CU (CSF_STAGE_DOWNLOAD, slot->frame, EventRecord, slot->end, slot->stream);
  slot->recorded = true;
fail:
  cuda_leave (session->device);
  return status == CSF_OK ? CSF_AGAIN : status;
}

const void *
cuda_record_data (csf_session *base, unsigned index)
{
  return ((cuda_session *) base)->slots[index].records.host;
}
