/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Record buffers: one in use for each slot, and after a growth one to come.  Knows counts and sizes, no
 * device. */
#include "metasink.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_BYTES 65536u

typedef struct sink_slot
{
  csf_record_buffer used;       /* submit thread while the slot is free, else the retire thread */
  csf_record_buffer next;       /* under the lock; capacity 0: there is none */
} sink_slot;

struct csf_metasink
{
  csf_session *session;
  unsigned record_size, max_records, n_slots;
  atomic_uint_fast64_t records, growths;
  pthread_mutex_t lock;
  sink_slot slots[];
};

static csf_status
get_buffer (csf_metasink *self, unsigned capacity, csf_record_buffer *buffer, csf_error *error)
{
  buffer->capacity = capacity;
  return csf_backend_record_alloc (self->session, capacity, buffer, error);
}

static void
free_buffer (csf_metasink *self, csf_record_buffer *buffer)
{
  if (buffer->capacity > 0)
    csf_backend_record_free (self->session, buffer);
  memset (buffer, 0, sizeof *buffer);
}

csf_status
csf_metasink_create (csf_session *session, const csf_config *config, csf_metasink **sink,
    csf_error *error)
{
  const csfk_kernel *kernel = config->kernel;
  csf_status status = CSF_OK;
  csf_metasink *self;
  unsigned first;

  *sink = NULL;
  if (kernel->record_size == 0)
    return CSF_OK;
  self = calloc (1, sizeof *self + config->num_streams * sizeof (sink_slot));
  if (self == NULL)
    return csf_error_set (error, CSF_ERROR_MEMORY, CSF_STAGE_OPEN, CSF_NO_FRAME, 0, "no memory left");
  pthread_mutex_init (&self->lock, NULL);
  self->session = session;
  self->record_size = kernel->record_size;
  self->max_records = config->max_records != 0 ? config->max_records : CSF_DEFAULT_MAX_RECORDS;
  self->n_slots = config->num_streams;
  first = FIRST_BYTES / self->record_size;
  first = first < 1 ? 1 : first > self->max_records ? self->max_records : first;
  for (unsigned i = 0; i < self->n_slots && status == CSF_OK; i++)
    status = get_buffer (self, first, &self->slots[i].used, error);
  if (status != CSF_OK) {
    csf_metasink_destroy (self);
    return status;
  }
  *sink = self;
  return CSF_OK;
}

void
csf_metasink_destroy (csf_metasink *self)
{
  if (self == NULL)
    return;
  for (unsigned i = 0; i < self->n_slots; i++) {
    free_buffer (self, &self->slots[i].used);
    free_buffer (self, &self->slots[i].next);
  }
  pthread_mutex_destroy (&self->lock);
  free (self);
}

/* The slot is free, or its work is done. */
static void
use_next (csf_metasink *self, sink_slot *slot)
{
  csf_record_buffer old = { 0 };

  pthread_mutex_lock (&self->lock);
  if (slot->next.capacity > 0) {
    old = slot->used;
    slot->used = slot->next;
    memset (&slot->next, 0, sizeof slot->next);
  }
  pthread_mutex_unlock (&self->lock);
  free_buffer (self, &old);
}

const csf_record_buffer *
csf_metasink_take (csf_metasink *self, unsigned index)
{
  use_next (self, &self->slots[index]);
  return &self->slots[index].used;
}

/* Room for `wanted` and a quarter more in every slot, all got at once: those under way get theirs when they
 * are free. */
static csf_status
grow (csf_metasink *self, unsigned wanted, csf_error *error)
{
  uint64_t capacity = (uint64_t) wanted + wanted / 4;

  if (capacity > self->max_records)
    capacity = self->max_records;
  for (unsigned i = 0; i < self->n_slots; i++) {
    sink_slot *slot = &self->slots[i];
    csf_record_buffer fresh = { 0 }, old = { 0 };
    csf_status status = get_buffer (self, (unsigned) capacity, &fresh, error);

    if (status != CSF_OK)
      return status;
    atomic_fetch_add (&self->growths, 1);
    pthread_mutex_lock (&self->lock);
    old = slot->next;
    slot->next = fresh;
    pthread_mutex_unlock (&self->lock);
    free_buffer (self, &old);
  }
  return CSF_OK;
}

static csf_status
hand_out (csf_metasink *self, unsigned index, unsigned n, csf_result *result, csf_error *error)
{
  const size_t bytes = (size_t) n * self->record_size;

  if (n > 0) {
    result->records = malloc (bytes);
    if (result->records == NULL)
      return csf_error_set (error, CSF_ERROR_MEMORY, CSF_STAGE_WAIT, result->frame, 0,
          "no memory left for the %u records of this frame; lower max-records", n);
    memcpy (result->records, csf_backend_record_data (self->session, index), bytes);
  }
  atomic_fetch_add (&self->records, n);
  result->n_records = n;
  return CSF_OK;
}

static unsigned
next_capacity (csf_metasink *self, sink_slot *slot)
{
  unsigned capacity;

  pthread_mutex_lock (&self->lock);
  capacity = slot->next.capacity;
  pthread_mutex_unlock (&self->lock);
  return capacity;
}

csf_status
csf_metasink_collect (csf_metasink *self, unsigned index, csf_result *result, csf_error *error)
{
  sink_slot *slot = &self->slots[index];
  const unsigned wanted = csf_backend_record_count (self->session, index);
  unsigned n = wanted;
  csf_status status;

  if (wanted > slot->used.capacity && slot->used.capacity < self->max_records) {
    const unsigned needed = wanted < self->max_records ? wanted : self->max_records;

    /* Another frame may have asked for as much while this one was under way. */
    status = next_capacity (self, slot) < needed ? grow (self, needed, error) : CSF_OK;
    if (status != CSF_OK)
      return status;
    use_next (self, slot);
    status = csf_backend_emit (self->session, index, &slot->used, error);
    return status == CSF_OK ? CSF_AGAIN : status;
  }
  if (n > slot->used.capacity)
    n = slot->used.capacity;
  status = csf_backend_record_fetch (self->session, index, n, error);
  if (status != CSF_OK)
    return status;
  result->records_wanted = wanted;
  return hand_out (self, index, n, result, error);
}

void
csf_metasink_get_stats (csf_metasink *self, csf_engine_stats *stats)
{
  if (self == NULL)
    return;
  stats->records = atomic_load (&self->records);
  stats->growths += atomic_load (&self->growths);
  pthread_mutex_lock (&self->lock);
  stats->metadata_memory = self->slots[0].used.memory;
  pthread_mutex_unlock (&self->lock);
}
