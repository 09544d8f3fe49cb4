/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the pool of host memory promises: a bound for the whole process, pageable memory beyond it,
 * blocks that outlive everything, and how much memory there is to begin with.  Knows hostpool.h. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fixture.h"

#define PAGE 4096

static csf_hostpool *
open_pool (csf_device *device, uint64_t limit)
{
  csf_hostpool *pool;
  csf_error error = { 0 };

  if (csf_hostpool_create (device, limit, &pool, &error) != CSF_OK)
    check_failed (__FILE__, __LINE__, "pool: %s", error.text);
  return pool;
}

static csf_hostpool_stats
stats_of (csf_hostpool *pool)
{
  csf_hostpool_stats stats;

  csf_hostpool_get_stats (pool, &stats);
  return stats;
}

static csf_hostblock *
get_block (csf_hostpool *pool, size_t size, bool pinned)
{
  csf_hostblock *block = csf_hostpool_alloc (pool, size);

  CHECK (block != NULL);
  CHECK (csf_hostblock_size (block) >= size);
  CHECK (csf_hostblock_data (block) != NULL);
  CHECK_INT ((uintptr_t) csf_hostblock_data (block) % PAGE, 0);
  CHECK_INT (csf_hostblock_is_pinned (block), fake != NULL && pinned);
  memset (csf_hostblock_data (block), 0x5a, size);
  return block;
}

static void
blocks_are_pinned_up_to_the_bound_and_pageable_beyond (void)
{
  csf_device *device = open_device ();
  csf_hostpool *pool = open_pool (device, 4 * PAGE);
  csf_hostblock *blocks[4];

  CHECK_INT (stats_of (pool).limit, 4 * PAGE);
  blocks[0] = get_block (pool, 1, true);
  blocks[1] = get_block (pool, 2 * PAGE, true);
  blocks[2] = get_block (pool, PAGE + 1, false);
  blocks[3] = get_block (pool, PAGE, true);
  CHECK_INT (stats_of (pool).allocations, 4);
  CHECK_INT (stats_of (pool).pageable, fake != NULL ? 1 : 0);
  CHECK_INT (stats_of (pool).pinned_bytes, fake != NULL ? 4 * PAGE : 0);
  CHECK_INT (fake_counters ().pinned_bytes, fake != NULL ? 4 * PAGE : 0);
  /* What is given back may be pinned again. */
  csf_hostblock_unref (blocks[1]);
  csf_hostblock_unref (blocks[2]);
  blocks[1] = get_block (pool, 2 * PAGE, true);
  CHECK_INT (stats_of (pool).pageable, fake != NULL ? 1 : 0);
  csf_hostblock_unref (blocks[0]);
  csf_hostblock_unref (blocks[1]);
  csf_hostblock_unref (blocks[3]);
  CHECK_INT (stats_of (pool).pinned_bytes, 0);
  csf_hostpool_unref (pool);
  csf_device_unref (device);
}

static void
the_bound_is_the_whole_processs (void)
{
  csf_device *device;
  csf_hostpool *pools[2];
  csf_hostblock *blocks[2];

  REQUIRE_FAKE ();
  device = open_device ();
  pools[0] = open_pool (device, 3 * PAGE);
  pools[1] = open_pool (device, 3 * PAGE);
  blocks[0] = get_block (pools[0], 2 * PAGE, true);
  blocks[1] = get_block (pools[1], 2 * PAGE, false);
  CHECK_INT (stats_of (pools[0]).pageable, 0);
  CHECK_INT (stats_of (pools[1]).pageable, 1);
  CHECK_INT (stats_of (pools[1]).pinned_bytes, 2 * PAGE);
  csf_hostblock_unref (blocks[0]);
  csf_hostblock_unref (blocks[1]);
  csf_hostpool_unref (pools[0]);
  csf_hostpool_unref (pools[1]);
  csf_device_unref (device);
}

static void
memory_the_driver_refuses_to_pin_is_pageable (void)
{
  csf_device *device;
  csf_hostpool *pool;
  csf_hostblock *block;

  REQUIRE_FAKE ();
  device = open_device ();
  pool = open_pool (device, 1 << 20);
  fake_setting ("PINNED_MEMORY", PAGE);
  block = get_block (pool, 2 * PAGE, false);
  CHECK_INT (stats_of (pool).pageable, 1);
  CHECK_INT (stats_of (pool).pinned_bytes, 0);
  csf_hostblock_unref (block);
  csf_hostpool_unref (pool);
  csf_device_unref (device);
}

static void
a_device_that_cannot_register_brings_its_own_memory (void)
{
  csf_device *device;
  csf_hostpool *pool;
  csf_hostblock *block;
  unsigned char *foreign = aligned_alloc (PAGE, PAGE);

  CHECK (foreign != NULL);
  fake_setting ("ATTRIBUTE_99", 0);
  device = open_device ();
  pool = open_pool (device, 1 << 20);
  block = get_block (pool, 3 * PAGE, true);
  CHECK_INT (stats_of (pool).pageable, 0);
  CHECK_INT (fake_counters ().pinned_bytes, fake != NULL ? 3 * PAGE : 0);
  CHECK (csf_hostpool_register (pool, foreign, PAGE) == NULL);
  csf_hostblock_unref (block);
  CHECK_INT (fake_counters ().pinned_bytes, 0);
  CHECK_INT (stats_of (pool).pinned_bytes, 0);
  csf_hostpool_unref (pool);
  csf_device_unref (device);
  free (foreign);
}

static void
a_block_outlives_pool_and_device (void)
{
  csf_device *device = open_device ();
  csf_hostpool *pool = open_pool (device, 1 << 20);
  csf_hostblock *block = get_block (pool, PAGE, true);

  csf_hostblock_ref (block);
  csf_hostpool_unref (pool);
  csf_device_unref (device);
  CHECK_INT (fake_counters ().pinned_bytes, fake != NULL ? PAGE : 0);
  memset (csf_hostblock_data (block), 1, PAGE);
  csf_hostblock_unref (block);
  memset (csf_hostblock_data (block), 2, PAGE);
  CHECK_INT (fake_counters ().contexts, fake != NULL ? 1 : 0);
  csf_hostblock_unref (block);
  CHECK_INT (fake_counters ().contexts, 0);
}

static void
foreign_memory_is_pinned_in_place_once (void)
{
  csf_device *device = open_device ();
  csf_hostpool *pool = open_pool (device, 1 << 20);
  unsigned char *data = aligned_alloc (PAGE, 4 * PAGE);
  csf_hostblock *block, *other;

  CHECK (data != NULL);
  memset (data, 3, 4 * PAGE);
  block = csf_hostpool_register (pool, data, 2 * PAGE);
  if (fake == NULL) {
    CHECK (block == NULL);
  } else {
    CHECK (block != NULL);
    CHECK (csf_hostblock_data (block) == data);
    CHECK_INT (csf_hostblock_size (block), 2 * PAGE);
    CHECK (csf_hostblock_is_pinned (block));
    CHECK_INT (stats_of (pool).pinned_bytes, 2 * PAGE);
    /* Overlapping memory is refused and nothing is counted for it. */
    CHECK (csf_hostpool_register (pool, data + PAGE, 2 * PAGE) == NULL);
    CHECK_INT (stats_of (pool).pinned_bytes, 2 * PAGE);
    other = csf_hostpool_register (pool, data + 2 * PAGE, 2 * PAGE);
    CHECK (other != NULL);
    csf_hostblock_unref (other);
  }
  csf_hostblock_unref (block);
  CHECK_INT (fake_counters ().pinned_bytes, 0);
  CHECK_INT (stats_of (pool).pinned_bytes, 0);
  CHECK_INT (data[0], 3);
  block = csf_hostpool_register (pool, data, 4 * PAGE);
  CHECK ((block != NULL) == (fake != NULL));
  csf_hostblock_unref (block);
  csf_hostpool_unref (pool);
  csf_device_unref (device);
  free (data);
}

static void
registering_counts_against_the_bound (void)
{
  csf_device *device = open_device ();
  csf_hostpool *pool = open_pool (device, 2 * PAGE);
  unsigned char *data = aligned_alloc (PAGE, 4 * PAGE);

  CHECK (data != NULL);
  CHECK (csf_hostpool_register (pool, data, 3 * PAGE) == NULL);
  CHECK_INT (fake_counters ().pinned_bytes, 0);
  CHECK_INT (stats_of (pool).pinned_bytes, 0);
  csf_hostpool_unref (pool);
  csf_device_unref (device);
  free (data);
}

typedef struct churn
{
  csf_hostpool *pool;
  uint64_t stream;
} churn;

static void *
churn_main (void *data)
{
  churn *self = data;
  csf_hostblock *held[4] = { NULL };
  test_random random;

  test_random_init (&random, self->stream);
  for (unsigned i = 0; i < 300; i++) {
    unsigned slot = test_random_below (&random, 4);
    size_t size = 1 + test_random_below (&random, 3 * PAGE);

    csf_hostblock_unref (held[slot]);
    held[slot] = csf_hostpool_alloc (self->pool, size);
    CHECK (held[slot] != NULL);
    memset (csf_hostblock_data (held[slot]), (int) self->stream, size);
    CHECK (stats_of (self->pool).pinned_bytes <= 8 * PAGE);
  }
  for (unsigned i = 0; i < 4; i++)
    csf_hostblock_unref (held[i]);
  return NULL;
}

static void
the_bound_holds_among_threads (void)
{
  csf_device *device = open_device ();
  csf_hostpool *pool = open_pool (device, 8 * PAGE);
  pthread_t threads[3];
  churn churns[3];

  for (unsigned i = 0; i < 3; i++) {
    churns[i] = (churn) {.pool = pool,.stream = i + 1 };
    CHECK (pthread_create (&threads[i], NULL, churn_main, &churns[i]) == 0);
  }
  for (unsigned i = 0; i < 3; i++)
    pthread_join (threads[i], NULL);
  CHECK_INT (stats_of (pool).pinned_bytes, 0);
  csf_hostpool_unref (pool);
  csf_device_unref (device);
}

/* ---- how much memory there is ---------------------------------------------------------------- */

static char root[256];
static char base[300];

static void
make_folders (const char *path)
{
  char part[512];

  for (const char *slash = strchr (path + 1, '/'); slash != NULL; slash = strchr (slash + 1, '/')) {
    snprintf (part, sizeof part, "%.*s", (int) (slash - path), path);
    mkdir (part, 0700);
  }
}

static void
put (const char *path, const char *text)
{
  char full[512];
  FILE *file;

  snprintf (full, sizeof full, "%s%s", base, path);
  make_folders (full);
  file = fopen (full, "w");
  CHECK (file != NULL);
  fputs (text, file);
  fclose (file);
}

static void
new_root (const char *meminfo, const char *cgroup)
{
  static unsigned n;

  snprintf (base, sizeof base, "%s/%u", root, n++);
  if (meminfo != NULL)
    put ("/proc/meminfo", meminfo);
  if (cgroup != NULL)
    put ("/proc/self/cgroup", cgroup);
}

#define MEMINFO "MemTotal:       1000000 kB\nMemFree:   5 kB\nMemAvailable:    600000 kB\n"

static void
the_machines_memory_counts (void)
{
  new_root (MEMINFO, NULL);
  CHECK_INT (csf_hostpool_usable_memory (base), 600000 * 1024LL);
  new_root ("MemTotal:       1000000 kB\n", "0::/\n");
  CHECK_INT (csf_hostpool_usable_memory (base), 1000000 * 1024LL);
  CHECK (csf_hostpool_default_limit () > 0);
  CHECK (csf_hostpool_default_limit () <= csf_hostpool_usable_memory ("") / 4 * 2);
}

static void
every_level_of_a_cgroup_v2_counts (void)
{
  new_root (MEMINFO, "0::/outer/inner\n");
  put ("/sys/fs/cgroup/outer/inner/memory.max", "max\n");
  put ("/sys/fs/cgroup/outer/inner/memory.current", "1000\n");
  CHECK_INT (csf_hostpool_usable_memory (base), 600000 * 1024LL);
  put ("/sys/fs/cgroup/outer/memory.max", "100000000\n");
  put ("/sys/fs/cgroup/outer/memory.current", "30000000\n");
  CHECK_INT (csf_hostpool_usable_memory (base), 70000000);
  /* Files' pages that nobody uses can be had back. */
  put ("/sys/fs/cgroup/outer/memory.stat", "anon 5\ninactive_file 10000000\nactive_file 7\n");
  CHECK_INT (csf_hostpool_usable_memory (base), 80000000);
  put ("/sys/fs/cgroup/outer/inner/memory.max", "50000000\n");
  put ("/sys/fs/cgroup/outer/inner/memory.current", "20000000\n");
  CHECK_INT (csf_hostpool_usable_memory (base), 30000000);
  put ("/sys/fs/cgroup/memory.max", "9000000\n");
  CHECK_INT (csf_hostpool_usable_memory (base), 9000000);
  put ("/sys/fs/cgroup/memory.current", "99000000\n");
  CHECK_INT (csf_hostpool_usable_memory (base), 0);
}

static void
every_level_of_a_cgroup_v1_counts (void)
{
  new_root (MEMINFO, "12:cpu,cpuacct:/a\n4:memory:/docker/abc\n1:name=systemd:/x\n");
  put ("/sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes", "9223372036854771712\n");
  put ("/sys/fs/cgroup/memory/docker/abc/memory.usage_in_bytes", "4096\n");
  CHECK_INT (csf_hostpool_usable_memory (base), 600000 * 1024LL);
  put ("/sys/fs/cgroup/memory/docker/memory.limit_in_bytes", "200000000\n");
  put ("/sys/fs/cgroup/memory/docker/memory.usage_in_bytes", "150000000\n");
  CHECK_INT (csf_hostpool_usable_memory (base), 50000000);
  put ("/sys/fs/cgroup/memory/docker/memory.stat",
      "inactive_file 1\ntotal_inactive_file 20000000\n");
  CHECK_INT (csf_hostpool_usable_memory (base), 70000000);
  put ("/sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes", "60000000\n");
  CHECK_INT (csf_hostpool_usable_memory (base), 60000000 - 4096);
}

/* In a container the path of the group is the host's, but the mount begins at the group itself. */
static void
a_container_sees_its_own_limit_at_the_mount (void)
{
  new_root (MEMINFO, "4:memory:/docker/0123\n0::/system.slice/docker-0123.scope\n");
  put ("/sys/fs/cgroup/memory.max", "40000000\n");
  put ("/sys/fs/cgroup/memory.current", "10000000\n");
  CHECK_INT (csf_hostpool_usable_memory (base), 30000000);
  put ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "20000000\n");
  CHECK_INT (csf_hostpool_usable_memory (base), 20000000);
}

static void
strange_files_limit_nothing (void)
{
  new_root (MEMINFO, "\nnonsense\n0::\n:::\n3:memory\n0::/a\n");
  put ("/sys/fs/cgroup/a/memory.max", "");
  put ("/sys/fs/cgroup/a/memory.current", "junk\n");
  CHECK_INT (csf_hostpool_usable_memory (base), 600000 * 1024LL);
}

int
main (int argc, char **argv)
{
  static const test tests[] = {
    {"blocks_are_pinned_up_to_the_bound_and_pageable_beyond",
        blocks_are_pinned_up_to_the_bound_and_pageable_beyond},
    {"the_bound_is_the_whole_processs", the_bound_is_the_whole_processs},
    {"memory_the_driver_refuses_to_pin_is_pageable",
        memory_the_driver_refuses_to_pin_is_pageable},
    {"a_device_that_cannot_register_brings_its_own_memory",
        a_device_that_cannot_register_brings_its_own_memory},
    {"a_block_outlives_pool_and_device", a_block_outlives_pool_and_device},
    {"foreign_memory_is_pinned_in_place_once", foreign_memory_is_pinned_in_place_once},
    {"registering_counts_against_the_bound", registering_counts_against_the_bound},
    {"the_bound_holds_among_threads", the_bound_holds_among_threads},
    {"the_machines_memory_counts", the_machines_memory_counts},
    {"every_level_of_a_cgroup_v2_counts", every_level_of_a_cgroup_v2_counts},
    {"every_level_of_a_cgroup_v1_counts", every_level_of_a_cgroup_v1_counts},
    {"a_container_sees_its_own_limit_at_the_mount", a_container_sees_its_own_limit_at_the_mount},
    {"strange_files_limit_nothing", strange_files_limit_nothing},
    {NULL}
  };
  const char *temporary = getenv ("TMPDIR");
  char command[300];
  int result;

  snprintf (root, sizeof root, "%s/csf-root-XXXXXX", temporary != NULL ? temporary : "/tmp");
  CHECK (mkdtemp (root) != NULL);
  result = run_tests (argc, argv, tests);
  snprintf (command, sizeof command, "rm -r '%s'", root);
  CHECK (system (command) == 0);
  return result;
}
