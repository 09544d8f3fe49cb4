/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Pinned host memory: anonymous mappings registered with the driver, so that memory which somebody
 * still holds survives a dead driver, and registrations of other people's memory.  Knows no frames. */
#include "hostpool.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backend.h"

struct csf_hostpool
{
  atomic_uint refs;             /* users and blocks */
  csf_device *device;
  uint64_t limit;
  atomic_uint_fast64_t allocations, pageable;
};

typedef enum block_type
{
  BLOCK_PAGEABLE,               /* our mapping, not pinned */
  BLOCK_MAPPED,                 /* our mapping, registered with the driver */
  BLOCK_DRIVER,                 /* the driver's own allocation */
  BLOCK_FOREIGN                 /* someone else's memory, registered */
} block_type;

/* Written once, before the block is handed out. */
struct csf_hostblock
{
  atomic_uint refs;
  csf_hostpool *pool;
  block_type type;
  void *data;
  size_t size;
};

/* Of the whole process: what pinned memory takes away is taken from all. */
static atomic_uint_fast64_t pinned_bytes;

csf_status
csf_hostpool_create (csf_device *device, uint64_t limit, csf_hostpool **pool, csf_error *error)
{
  csf_hostpool *self = calloc (1, sizeof *self);

  *pool = self;
  if (self == NULL)
    return csf_error_set (error, CSF_ERROR_MEMORY, CSF_STAGE_OPEN, CSF_NO_FRAME, 0,
        "no memory left for the buffer pool");
  atomic_init (&self->refs, 1);
  self->device = csf_device_ref (device);
  self->limit = limit != 0 ? limit : csf_hostpool_default_limit ();
  return CSF_OK;
}

csf_hostpool *
csf_hostpool_ref (csf_hostpool *pool)
{
  atomic_fetch_add_explicit (&pool->refs, 1, memory_order_relaxed);
  return pool;
}

void
csf_hostpool_unref (csf_hostpool *pool)
{
  if (pool == NULL || atomic_fetch_sub_explicit (&pool->refs, 1, memory_order_acq_rel) != 1)
    return;
  csf_device_unref (pool->device);
  free (pool);
}

static bool
reserve_pinned (csf_hostpool *pool, size_t size)
{
  uint_fast64_t before = atomic_load (&pinned_bytes);

  do {
    if (size > pool->limit || before > pool->limit - size)
      return false;
  } while (!atomic_compare_exchange_weak (&pinned_bytes, &before, before + size));
  return true;
}

static void
release_pinned (size_t size)
{
  atomic_fetch_sub (&pinned_bytes, size);
}

/* Takes the memory's pinned bytes as reserved. */
static csf_hostblock *
block_new (csf_hostpool *pool, block_type type, void *data, size_t size)
{
  csf_hostblock *block = calloc (1, sizeof *block);

  if (block == NULL)
    return NULL;
  atomic_init (&block->refs, 1);
  block->pool = csf_hostpool_ref (pool);
  block->type = type;
  block->data = data;
  block->size = size;
  atomic_fetch_add (&pool->allocations, 1);
  return block;
}

static void
release_memory (csf_hostpool *pool, block_type type, void *data, size_t size)
{
  switch (type) {
    case BLOCK_DRIVER:
      csf_backend_free_pinned (pool->device, data);
      break;
    case BLOCK_MAPPED:
      csf_backend_unpin (pool->device, data);
      munmap (data, size);
      break;
    case BLOCK_PAGEABLE:
      munmap (data, size);
      break;
    case BLOCK_FOREIGN:
      csf_backend_unpin (pool->device, data);
      break;
  }
  if (type != BLOCK_PAGEABLE)
    release_pinned (size);
}

static size_t
whole_pages (size_t size)
{
  size_t page = (size_t) sysconf (_SC_PAGESIZE);

  return (size + page - 1) / page * page;
}

csf_hostblock *
csf_hostpool_alloc (csf_hostpool *pool, size_t size)
{
  size_t bytes = whole_pages (size > 0 ? size : 1);
  bool pins = csf_backend_pins (pool->device);
  bool reserved = pins && reserve_pinned (pool, bytes);
  block_type type = BLOCK_PAGEABLE;
  csf_hostblock *block;
  void *data;

  if (bytes < size)
    return NULL;
  data = mmap (NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) {
    if (reserved)
      release_pinned (bytes);
    return NULL;
  }
  if (reserved) {
    csf_status status = csf_backend_pin (pool->device, data, bytes, NULL);

    if (status == CSF_OK) {
      type = BLOCK_MAPPED;
    } else if (status == CSF_ERROR_UNSUPPORTED) {
      void *driver_data = csf_backend_alloc_pinned (pool->device, bytes);

      if (driver_data != NULL) {
        munmap (data, bytes);
        data = driver_data;
        type = BLOCK_DRIVER;
      }
    }
    if (type == BLOCK_PAGEABLE)
      release_pinned (bytes);
  }
  block = block_new (pool, type, data, bytes);
  if (block == NULL)
    release_memory (pool, type, data, bytes);
  else if (pins && type == BLOCK_PAGEABLE)
    atomic_fetch_add (&pool->pageable, 1);
  return block;
}

csf_hostblock *
csf_hostpool_register (csf_hostpool *pool, void *data, size_t size)
{
  csf_hostblock *block;

  assert (data != NULL);
  if (size == 0 || !csf_backend_pins (pool->device) || !reserve_pinned (pool, size))
    return NULL;
  if (csf_backend_pin (pool->device, data, size, NULL) != CSF_OK) {
    release_pinned (size);
    return NULL;
  }
  block = block_new (pool, BLOCK_FOREIGN, data, size);
  if (block == NULL)
    release_memory (pool, BLOCK_FOREIGN, data, size);
  return block;
}

csf_hostblock *
csf_hostblock_ref (csf_hostblock *block)
{
  atomic_fetch_add_explicit (&block->refs, 1, memory_order_relaxed);
  return block;
}

void
csf_hostblock_unref (csf_hostblock *block)
{
  csf_hostpool *pool;

  if (block == NULL || atomic_fetch_sub_explicit (&block->refs, 1, memory_order_acq_rel) != 1)
    return;
  pool = block->pool;
  release_memory (pool, block->type, block->data, block->size);
  free (block);
  csf_hostpool_unref (pool);
}

void *
csf_hostblock_data (const csf_hostblock *block)
{
  return block->data;
}

size_t
csf_hostblock_size (const csf_hostblock *block)
{
  return block->size;
}

bool
csf_hostblock_is_pinned (const csf_hostblock *block)
{
  return block->type != BLOCK_PAGEABLE;
}

void
csf_hostpool_get_stats (csf_hostpool *pool, csf_hostpool_stats *stats)
{
  stats->allocations = atomic_load (&pool->allocations);
  stats->pageable = atomic_load (&pool->pageable);
  stats->pinned_bytes = atomic_load (&pinned_bytes);
  stats->limit = pool->limit;
}

/* ---- how much memory there is ------------------------------------------------------------------ */

#define PATH_BYTES 4096
#define NO_LIMIT UINT64_MAX

static uint64_t
least (uint64_t a, uint64_t b)
{
  return a < b ? a : b;
}

/* The number after `key` in a file of "key value" lines; with key "", the file's first word.  NO_LIMIT
 * when there is none ("max", an absent file). */
static uint64_t
read_number (const char *path, const char *key)
{
  FILE *file = fopen (path, "re");
  char line[256];
  uint64_t number = NO_LIMIT;
  size_t length = strlen (key);

  if (file == NULL)
    return NO_LIMIT;
  while (number == NO_LIMIT && fgets (line, sizeof line, file) != NULL) {
    unsigned long long value;

    if (strncmp (line, key, length) == 0 && sscanf (line + length, "%llu", &value) == 1)
      number = value;
    if (length == 0)
      break;
  }
  fclose (file);
  return number;
}

static uint64_t
read_cgroup_number (const char *folder, const char *file, const char *key)
{
  char path[PATH_BYTES + 64];

  snprintf (path, sizeof path, "%s/%s", folder, file);
  return read_number (path, key);
}

/* What one cgroup leaves: its limit less what is used and cannot be reclaimed at once. */
static uint64_t
cgroup_left (const char *folder, const char *limit_file, const char *usage_file,
    const char *reclaimable_key)
{
  uint64_t limit = read_cgroup_number (folder, limit_file, "");
  uint64_t usage = read_cgroup_number (folder, usage_file, "");
  uint64_t reclaimable = read_cgroup_number (folder, "memory.stat", reclaimable_key);

  if (limit == NO_LIMIT)
    return NO_LIMIT;
  if (usage == NO_LIMIT)
    return limit;
  if (reclaimable != NO_LIMIT)
    usage -= least (usage, reclaimable);
  return limit - least (limit, usage);
}

/* From the process's own cgroup up to the mount: each level may be the tight one.  Below a namespace
 * the path is not the one that is mounted, and levels that do not exist limit nothing. */
static uint64_t
cgroup_levels_left (const char *root, const char *mount, const char *group, bool v2)
{
  char folder[PATH_BYTES];
  size_t mount_length;
  uint64_t left = NO_LIMIT;

  mount_length = (size_t) snprintf (folder, sizeof folder, "%s%s", root, mount);
  if (mount_length >= sizeof folder || mount_length + strlen (group) >= sizeof folder)
    return NO_LIMIT;
  strcpy (folder + mount_length, group);
  for (;;) {
    char *slash;

    if (v2)
      left = least (left, cgroup_left (folder, "memory.max", "memory.current", "inactive_file "));
    else
      left = least (left, cgroup_left (folder, "memory.limit_in_bytes", "memory.usage_in_bytes",
              "total_inactive_file "));
    slash = strrchr (folder + mount_length, '/');
    if (slash == NULL)
      return left;
    *slash = '\0';
  }
}

static uint64_t
cgroups_left (const char *root)
{
  char path[PATH_BYTES], line[PATH_BYTES];
  uint64_t left = NO_LIMIT;
  FILE *file;

  snprintf (path, sizeof path, "%s/proc/self/cgroup", root);
  file = fopen (path, "re");
  if (file == NULL)
    return NO_LIMIT;
  while (fgets (line, sizeof line, file) != NULL) {
    char *controllers = strchr (line, ':'), *group;

    line[strcspn (line, "\n")] = '\0';
    if (controllers == NULL || (group = strchr (controllers + 1, ':')) == NULL)
      continue;
    controllers++;
    *group++ = '\0';
    if (*controllers == '\0')
      left = least (left, cgroup_levels_left (root, "/sys/fs/cgroup", group, true));
    else if (strstr (controllers, "memory") != NULL)
      left = least (left, cgroup_levels_left (root, "/sys/fs/cgroup/memory", group, false));
  }
  fclose (file);
  return left;
}

uint64_t
csf_hostpool_usable_memory (const char *root)
{
  char path[PATH_BYTES];
  uint64_t kilobytes, left;

  snprintf (path, sizeof path, "%s/proc/meminfo", root);
  kilobytes = least (read_number (path, "MemTotal:"), read_number (path, "MemAvailable:"));
  left = kilobytes == NO_LIMIT ? NO_LIMIT : kilobytes * 1024;
  return least (left, cgroups_left (root));
}

uint64_t
csf_hostpool_default_limit (void)
{
  uint64_t usable = csf_hostpool_usable_memory ("");

  /* Without /proc nothing is known: a size that any machine able to run this has. */
  if (usable == NO_LIMIT)
    return UINT64_C (256) << 20;
  /* What is pinned already is no longer available, and counts against the limit. */
  return (usable + atomic_load (&pinned_bytes)) / 4;
}
