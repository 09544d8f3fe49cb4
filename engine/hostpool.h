/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Host memory that a device can copy from and to without an intermediate copy: pinned blocks of our
 * own, and memory of others that is registered with the driver.  A block holds the pool and the device,
 * so it may outlive the engine and the element.  Thread-safe throughout. */
#ifndef CSF_HOSTPOOL_H
#define CSF_HOSTPOOL_H

#include "csf.h"

typedef struct csf_hostblock csf_hostblock;

/* limit: bytes of pinned memory the whole process may have, 0 = csf_hostpool_default_limit().
 * Takes its own reference to the device. */
csf_status csf_hostpool_create (csf_device * device, uint64_t limit, csf_hostpool ** pool,
    csf_error * error);
csf_hostpool *csf_hostpool_ref (csf_hostpool * pool);
void csf_hostpool_unref (csf_hostpool * pool);  /* NULL is allowed */

/* A block of at least `size` bytes, page aligned.  Pinned where the device pins and the limit allows;
 * otherwise pageable, which is counted and no failure.  NULL only when host memory is exhausted. */
csf_hostblock *csf_hostpool_alloc (csf_hostpool * pool, size_t size);

/* Pins memory of someone else in place.  The caller unrefs the block before that memory goes away, and
 * after the last use by a device.  NULL when the driver refuses or the limit is reached. */
csf_hostblock *csf_hostpool_register (csf_hostpool * pool, void *data, size_t size);

csf_hostblock *csf_hostblock_ref (csf_hostblock * block);
void csf_hostblock_unref (csf_hostblock * block);       /* NULL is allowed */
void *csf_hostblock_data (const csf_hostblock * block);
size_t csf_hostblock_size (const csf_hostblock * block);
/* True when every device of this process copies from and to it without staging. */
bool csf_hostblock_is_pinned (const csf_hostblock * block);

typedef struct csf_hostpool_stats
{
  uint64_t allocations;         /* blocks this pool ever handed out or registered */
  uint64_t pageable;            /* of these, wanted pinned and not */
  uint64_t pinned_bytes;        /* now, by the whole process */
  uint64_t limit;
} csf_hostpool_stats;

void csf_hostpool_get_stats (csf_hostpool * pool, csf_hostpool_stats * stats);

/* A quarter of the memory this process may use: the least of MemTotal, MemAvailable and what the
 * cgroup (v1 or v2, every level up to the root) leaves. */
uint64_t csf_hostpool_default_limit (void);

/* The same for files below `root` ("" for the real ones), so that a test can bring its own. */
uint64_t csf_hostpool_usable_memory (const char *root);

#endif
