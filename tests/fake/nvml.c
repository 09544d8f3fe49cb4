/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The fake libnvidia-ml.so.1: says of each device of the fake driver what a test has set.  Its signatures
 * are those of NVML's documentation, not the engine's.  Thread-safe, as NVML is. */
#include "fake_nvml.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define EXPORT __attribute__ ((visibility ("default")))
#define MAX_DEVICES 8

extern char **environ;

typedef int nvmlReturn_t;
typedef struct nvmlDevice_st *nvmlDevice_t;

typedef struct nvmlUtilization_t
{
  unsigned int gpu, memory;
} nvmlUtilization_t;

typedef struct nvmlMemory_t
{
  unsigned long long total, free, used;
} nvmlMemory_t;

enum
{
  NVML_SUCCESS = 0,
  NVML_ERROR_UNINITIALIZED = 1,
  NVML_ERROR_INVALID_ARGUMENT = 2,
  NVML_ERROR_NOT_FOUND = 6
};

EXPORT nvmlReturn_t nvmlInit_v2 (void);
EXPORT nvmlReturn_t nvmlShutdown (void);
EXPORT nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2 (const char *id, nvmlDevice_t * device);
EXPORT nvmlReturn_t nvmlDeviceGetUtilizationRates (nvmlDevice_t device,
    nvmlUtilization_t * utilization);
EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo (nvmlDevice_t device, nvmlMemory_t * memory);
EXPORT nvmlReturn_t nvmlDeviceGetClockInfo (nvmlDevice_t device, int type, unsigned int *mhz);
EXPORT const fake_nvml *fake_nvml_get (void);

typedef enum setting
{
  UTILIZATION,
  MEMORY_USED,
  MEMORY_TOTAL,
  CLOCK,
  MEMORY_CLOCK,
  INIT_CODE,
  DEVICE_CODE,
  UTILIZATION_CODE,
  MEMORY_CODE,
  CLOCK_CODE,
  MEMORY_CLOCK_CODE,
  DELAY_MS,
  HOLD,
  N_SETTINGS
} setting;

static const struct
{
  const char *name;
  long long initial;
} settings[N_SETTINGS] = {
  [UTILIZATION] = {"UTILIZATION", 37},
  [MEMORY_USED] = {"MEMORY_USED", 3LL << 30},
  [MEMORY_TOTAL] = {"MEMORY_TOTAL", 8LL << 30},
  [CLOCK] = {"CLOCK", 1500},
  [MEMORY_CLOCK] = {"MEMORY_CLOCK", 7000},
  [INIT_CODE] = {"INIT_CODE", 0},
  [DEVICE_CODE] = {"DEVICE_CODE", 0},
  [UTILIZATION_CODE] = {"UTILIZATION_CODE", 0},
  [MEMORY_CODE] = {"MEMORY_CODE", 0},
  [CLOCK_CODE] = {"CLOCK_CODE", 0},
  [MEMORY_CLOCK_CODE] = {"MEMORY_CLOCK_CODE", 0},
  [DELAY_MS] = {"DELAY_MS", 0},
  [HOLD] = {"HOLD", 0},
};

/* All under the lock. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static long long values[N_SETTINGS];
static bool configured;
static fake_nvml_counters counts;

static struct nvmlDevice_st
{
  int number;
} devices[MAX_DEVICES];

/* ---- settings ---------------------------------------------------------------------------------- */

static bool
set_locked (const char *name, long long value)
{
  for (int i = 0; i < N_SETTINGS; i++)
    if (strcmp (settings[i].name, name) == 0) {
      values[i] = value;
      pthread_cond_broadcast (&changed);
      return true;
    }
  return false;
}

static void
read_environment_locked (void)
{
  static const char prefix[] = "FAKE_NVML_";

  for (int i = 0; i < N_SETTINGS; i++)
    values[i] = settings[i].initial;
  for (char **entry = environ; entry != NULL && *entry != NULL; entry++) {
    const char *equals = strchr (*entry, '=');
    char name[64];

    if (strncmp (*entry, prefix, sizeof prefix - 1) != 0 || equals == NULL)
      continue;
    snprintf (name, sizeof name, "%.*s", (int) (equals - *entry) - (int) (sizeof prefix - 1),
        *entry + sizeof prefix - 1);
    if (!set_locked (name, strtoll (equals + 1, NULL, 0))) {
      fprintf (stderr, "fake libnvidia-ml: there is no setting %s\n", name);
      abort ();
    }
  }
}

static void
enter (void)
{
  pthread_mutex_lock (&lock);
  if (!configured)
    read_environment_locked ();
  configured = true;
}

static nvmlReturn_t
leave (nvmlReturn_t result)
{
  pthread_mutex_unlock (&lock);
  return result;
}

static nvmlReturn_t
misuse_locked (nvmlReturn_t result, const char *what)
{
  counts.misuse++;
  fprintf (stderr, "fake libnvidia-ml: %s\n", what);
  return result;
}

/* ---- the library's functions ------------------------------------------------------------------- */

EXPORT nvmlReturn_t
nvmlInit_v2 (void)
{
  enter ();
  if (values[INIT_CODE] != 0)
    return leave ((nvmlReturn_t) values[INIT_CODE]);
  counts.references++;
  counts.inits++;
  return leave (NVML_SUCCESS);
}

EXPORT nvmlReturn_t
nvmlShutdown (void)
{
  enter ();
  if (counts.references == 0)
    return leave (misuse_locked (NVML_ERROR_UNINITIALIZED, "nvmlShutdown once too often"));
  if (counts.begun != counts.ended)
    misuse_locked (NVML_SUCCESS, "nvmlShutdown during a query");
  counts.references--;
  return leave (NVML_SUCCESS);
}

EXPORT nvmlReturn_t
nvmlDeviceGetHandleByPciBusId_v2 (const char *id, nvmlDevice_t *device)
{
  unsigned number;
  char rest;

  enter ();
  if (counts.references == 0)
    return leave (misuse_locked (NVML_ERROR_UNINITIALIZED, "a device is asked for before nvmlInit"));
  if (values[DEVICE_CODE] != 0)
    return leave ((nvmlReturn_t) values[DEVICE_CODE]);
  if (sscanf (id, "0000:%2x:00.0%c", &number, &rest) != 1 || number < 1 || number > MAX_DEVICES)
    return leave (NVML_ERROR_NOT_FOUND);
  *device = &devices[number - 1];
  return leave (NVML_SUCCESS);
}

/* Begins a query; the lock is held when it returns, but not while the query takes its time. */
static nvmlReturn_t
begin_query (nvmlDevice_t device, setting code)
{
  struct timespec delay;

  enter ();
  if (counts.references == 0)
    return misuse_locked (NVML_ERROR_UNINITIALIZED, "a query without nvmlInit");
  if (device < devices || device >= devices + MAX_DEVICES)
    return misuse_locked (NVML_ERROR_INVALID_ARGUMENT, "a query of no device");
  counts.begun++;
  pthread_cond_broadcast (&changed);
  while (values[HOLD] != 0)
    pthread_cond_wait (&changed, &lock);
  delay.tv_sec = values[DELAY_MS] / 1000;
  delay.tv_nsec = values[DELAY_MS] % 1000 * 1000000;
  pthread_mutex_unlock (&lock);
  nanosleep (&delay, NULL);
  pthread_mutex_lock (&lock);
  counts.ended++;
  return (nvmlReturn_t) values[code];
}

EXPORT nvmlReturn_t
nvmlDeviceGetUtilizationRates (nvmlDevice_t device, nvmlUtilization_t *utilization)
{
  nvmlReturn_t result = begin_query (device, UTILIZATION_CODE);

  if (result == NVML_SUCCESS) {
    utilization->gpu = (unsigned) values[UTILIZATION];
    utilization->memory = 1;
  }
  return leave (result);
}

EXPORT nvmlReturn_t
nvmlDeviceGetMemoryInfo (nvmlDevice_t device, nvmlMemory_t *memory)
{
  nvmlReturn_t result = begin_query (device, MEMORY_CODE);

  if (result == NVML_SUCCESS) {
    memory->total = (unsigned long long) values[MEMORY_TOTAL];
    memory->used = (unsigned long long) values[MEMORY_USED];
    memory->free = memory->total - memory->used;
  }
  return leave (result);
}

EXPORT nvmlReturn_t
nvmlDeviceGetClockInfo (nvmlDevice_t device, int type, unsigned int *mhz)
{
  const bool of_memory = type == 2;
  nvmlReturn_t result = begin_query (device, of_memory ? MEMORY_CLOCK_CODE : CLOCK_CODE);

  if (result == NVML_SUCCESS && !of_memory && type != 1)
    result = misuse_locked (NVML_ERROR_INVALID_ARGUMENT, "neither NVML_CLOCK_SM nor NVML_CLOCK_MEM");
  if (result == NVML_SUCCESS)
    *mhz = (unsigned) values[of_memory ? MEMORY_CLOCK : CLOCK];
  return leave (result);
}

/* ---- for tests --------------------------------------------------------------------------------- */

static int
api_set (const char *name, long long value)
{
  bool known;

  enter ();
  known = set_locked (name, value);
  leave (NVML_SUCCESS);
  return known;
}

static void
api_get_counters (fake_nvml_counters *result)
{
  enter ();
  *result = counts;
  leave (NVML_SUCCESS);
}

static void
api_wait_begun (uint64_t n)
{
  enter ();
  while (counts.begun < n)
    pthread_cond_wait (&changed, &lock);
  leave (NVML_SUCCESS);
}

static void
api_reset (void)
{
  enter ();
  read_environment_locked ();
  counts = (fake_nvml_counters) {.references = counts.references };
  pthread_cond_broadcast (&changed);
  leave (NVML_SUCCESS);
}

EXPORT const fake_nvml *
fake_nvml_get (void)
{
  static const fake_nvml api = {
    .set = api_set,
    .get_counters = api_get_counters,
    .wait_begun = api_wait_begun,
    .reset = api_reset,
  };

  return &api;
}
