/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A kernel's records as checkkernels sees them: room with canaries for a pass that appends, what must hold
 * of it afterwards whether there was room for all or not, and sets of records compared byte for byte.
 * Knows the kernels' contract only. */
#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void
room_init (record_room *self, const csfk_kernel *kernel, unsigned capacity)
{
  const size_t most = capacity > 0 ? capacity : 1;

  self->capacity = capacity;
  self->record_size = kernel->record_size;
  /* With none allowed, something is there that must not be written. */
  block_init (&self->block, most * kernel->record_size);
  self->before = malloc (self->block.size);
  if (!self->before)
    check_fail ("out of memory");
  memcpy (self->before, self->block.data, self->block.size);
}

void
room_finish (record_room *self)
{
  free (self->before);
  block_finish (&self->block);
}

const char *
room_check (const record_room *self, const unsigned char *memory, unsigned count, unsigned expected)
{
  const unsigned stored = count < self->capacity ? count : self->capacity;
  const size_t used = (size_t) stored * self->record_size;

  if (!block_is_intact (&self->block, memory))
    return "wrote beside the room for its records";
  if (memcmp (memory + GUARD_BYTES + used, self->before + used, self->block.size - used) != 0)
    return "wrote a record that it did not count";
  if (count != expected)
    return "counted other records with less room";
  return NULL;
}

/* ---- sets ------------------------------------------------------------------------------------ */

/* qsort() has no argument for it. */
static size_t compared_bytes;

static int
compare_records (const void *a, const void *b)
{
  return memcmp (a, b, compared_bytes);
}

void
records_init (record_set *self, unsigned record_size, const unsigned char *data, unsigned n)
{
  *self = (record_set) {.n = n,.record_size = record_size };
  self->data = malloc ((size_t) n * record_size + 1);
  if (!self->data)
    check_fail ("out of memory");
  if (n > 0)
    memcpy (self->data, data, (size_t) n * record_size);
  records_sort (self);
}

void
records_sort (record_set *self)
{
  compared_bytes = self->record_size;
  qsort (self->data, self->n, self->record_size, compare_records);
}

void
records_finish (record_set *self)
{
  free (self->data);
  *self = (record_set) {.data = NULL };
}

static void
describe (const unsigned char *record, unsigned record_size, const char *what, char *why,
    size_t why_size)
{
  size_t used = (size_t) snprintf (why, why_size, "%s", what);

  for (unsigned i = 0; i < record_size && i < 40 && used < why_size; i += 4) {
    float number;
    int whole;

    memcpy (&number, record + i, 4);
    memcpy (&whole, record + i, 4);
    /* Whichever of the two it is. */
    used += (size_t) (abs (whole) < 1 << 22 ? snprintf (why + used, why_size - used, " %d", whole)
        : snprintf (why + used, why_size - used, " %.9g", number));
  }
}

bool
records_are_among (const record_set *some, const record_set *all, char *why, size_t why_size)
{
  const size_t size = all->record_size;
  unsigned at = 0;

  for (unsigned i = 0; i < some->n; i++) {
    const unsigned char *wanted = some->data + i * size;

    while (at < all->n && memcmp (all->data + at * size, wanted, size) < 0)
      at++;
    if (at == all->n || memcmp (all->data + at * size, wanted, size) != 0) {
      describe (wanted, all->record_size, "", why, why_size);
      return false;
    }
    /* Each stands for one. */
    at++;
  }
  return true;
}

bool
records_are_same (const record_set *got, const record_set *expected, char *why, size_t why_size)
{
  char record[256];

  if (!records_are_among (got, expected, record, sizeof record))
    snprintf (why, why_size, "%u records instead of %u, one too many:%s", got->n, expected->n, record);
  else if (!records_are_among (expected, got, record, sizeof record))
    snprintf (why, why_size, "%u records instead of %u, missing:%s", got->n, expected->n, record);
  else
    return true;
  return false;
}
