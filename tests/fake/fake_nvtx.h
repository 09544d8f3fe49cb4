/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What tests may ask of the fake profiler, a library that NVTX loads where NVTX_INJECTION64_PATH names it.
 * Knows nothing of the engine. */
#ifndef FAKE_NVTX_H
#define FAKE_NVTX_H

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#define FAKE_NVTX_MAX_RANGES 16

typedef struct fake_nvtx_range
{
  char name[32];
  uint64_t pushes, pops;
  uint64_t payload;             /* of the last push */
} fake_nvtx_range;

/* Since the process began or the last reset.  Of ranges on all threads. */
typedef struct fake_nvtx_counters
{
  unsigned domains;             /* created; not reset */
  char domain[64];              /* the last one's name; not reset */
  unsigned strings;             /* registered; not reset */
  uint64_t misuse;              /* calls a correct program never makes */
  unsigned n_ranges;
  fake_nvtx_range ranges[FAKE_NVTX_MAX_RANGES]; /* by name */
} fake_nvtx_counters;

typedef struct fake_nvtx
{
  void (*get_counters) (fake_nvtx_counters * counters);
  void (*reset) (void);
} fake_nvtx;

const fake_nvtx *fake_nvtx_get (void);

/* NULL where the environment names no fake profiler. */
static inline const fake_nvtx *
fake_nvtx_find (void)
{
  const char *path = getenv ("NVTX_INJECTION64_PATH");
  void *library = path == NULL ? NULL : dlopen (path, RTLD_NOW | RTLD_LOCAL);
  const fake_nvtx *(*get) (void) = NULL;

  if (library != NULL)
    *(void **) &get = dlsym (library, "fake_nvtx_get");
  return get == NULL ? NULL : get ();
}

#endif
