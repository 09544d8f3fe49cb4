/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* NVML, opened at run time: one line per function with its literal exported name and own minimal types.
 * Its calls can take milliseconds, so a thread of each csf_gpuload makes them.  Knows PCI bus ids,
 * nothing of CUDA. */
#include "gpuload.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

typedef int nvml_result;        /* nvmlReturn_t */
typedef struct nvml_device_st *nvml_device;

/* nvmlUtilization_t */
typedef struct nvml_utilization
{
  unsigned gpu, memory;         /* percent */
} nvml_utilization;

/* nvmlMemory_t */
typedef struct nvml_memory
{
  unsigned long long total, free, used; /* bytes */
} nvml_memory;

enum
{
  NVML_SUCCESS = 0,

  NVML_CLOCK_SM = 1,
  NVML_CLOCK_MEM = 2
};

/* X (field, exported name, parameters) */
#define SYMBOLS(X) \
  X (Init, nvmlInit_v2, (void)) \
  X (Shutdown, nvmlShutdown, (void)) \
  X (DeviceGetHandleByPciBusId, nvmlDeviceGetHandleByPciBusId_v2, (const char *id, \
          nvml_device * device))

/* NULL where a library has them not. */
#define OPTIONAL_SYMBOLS(X) \
  X (DeviceGetUtilizationRates, nvmlDeviceGetUtilizationRates, (nvml_device device, \
          nvml_utilization * utilization)) \
  X (DeviceGetMemoryInfo, nvmlDeviceGetMemoryInfo, (nvml_device device, nvml_memory * memory)) \
  X (DeviceGetClockInfo, nvmlDeviceGetClockInfo, (nvml_device device, int type, unsigned *mhz))

/* Opened once a process and never closed. */
static struct
{
#define FIELD(field, symbol, parameters) nvml_result (*field) parameters;
  SYMBOLS (FIELD)
  OPTIONAL_SYMBOLS (FIELD)
#undef FIELD
  bool usable;
} nvml;

static pthread_once_t load_once = PTHREAD_ONCE_INIT;
static pthread_mutex_t users_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned n_users;        /* under the lock: between nvmlInit and nvmlShutdown unless 0 */

struct csf_gpuload
{
  nvml_device device;
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t changed;       /* wanted or ending were set */
  bool wanted, ending;          /* under the lock */
  csf_gpuload_sample sample;    /* under the lock: the thread writes, any reads */
};

/* ---- the library ------------------------------------------------------------------------------- */

static void
load_library (void)
{
  void *library = dlopen ("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);

  if (library == NULL) {
    dlerror ();                 /* nobody asks for its text */
    return;
  }
#define FIND(field, symbol, parameters) *(void **) &nvml.field = dlsym (library, #symbol);
  SYMBOLS (FIND)
  OPTIONAL_SYMBOLS (FIND)
#undef FIND
  nvml.usable = nvml.Init != NULL && nvml.Shutdown != NULL
      && nvml.DeviceGetHandleByPciBusId != NULL;
  if (!nvml.usable)
    dlclose (library);
}

static bool
add_user (void)
{
  bool added;

  pthread_once (&load_once, load_library);
  if (!nvml.usable)
    return false;
  pthread_mutex_lock (&users_lock);
  added = n_users > 0 || nvml.Init () == NVML_SUCCESS;
  if (added)
    n_users++;
  pthread_mutex_unlock (&users_lock);
  return added;
}

static void
remove_user (void)
{
  pthread_mutex_lock (&users_lock);
  if (--n_users == 0)
    nvml.Shutdown ();
  pthread_mutex_unlock (&users_lock);
}

/* ---- sampling ---------------------------------------------------------------------------------- */

static bool
get_clock (nvml_device device, int type, unsigned *mhz)
{
  return nvml.DeviceGetClockInfo != NULL
      && nvml.DeviceGetClockInfo (device, type, mhz) == NVML_SUCCESS;
}

static csf_gpuload_sample
take_sample (nvml_device device)
{
  csf_gpuload_sample sample = { 0 };
  nvml_utilization utilization;
  nvml_memory memory;

  if (nvml.DeviceGetUtilizationRates != NULL
      && nvml.DeviceGetUtilizationRates (device, &utilization) == NVML_SUCCESS) {
    sample.has_utilization = true;
    sample.utilization = utilization.gpu;
  }
  if (nvml.DeviceGetMemoryInfo != NULL
      && nvml.DeviceGetMemoryInfo (device, &memory) == NVML_SUCCESS) {
    sample.has_memory = true;
    sample.memory_used = memory.used;
    sample.memory_total = memory.total;
  }
  sample.has_clock = get_clock (device, NVML_CLOCK_SM, &sample.clock);
  sample.has_memory_clock = get_clock (device, NVML_CLOCK_MEM, &sample.memory_clock);
  return sample;
}

static void *
sampler_run (void *argument)
{
  csf_gpuload *load = argument;

  pthread_mutex_lock (&load->lock);
  while (!load->ending) {
    csf_gpuload_sample sample;

    if (!load->wanted) {
      pthread_cond_wait (&load->changed, &load->lock);
      continue;
    }
    load->wanted = false;
    pthread_mutex_unlock (&load->lock);
    sample = take_sample (load->device);
    pthread_mutex_lock (&load->lock);
    load->sample = sample;
  }
  pthread_mutex_unlock (&load->lock);
  return NULL;
}

csf_gpuload *
csf_gpuload_create (const csf_device *device)
{
  const char *bus_id = csf_device_get_info (device)->pci_bus_id;
  csf_gpuload *load;

  if (bus_id[0] == '\0' || !add_user ())
    return NULL;
  load = calloc (1, sizeof *load);
  if (load == NULL || nvml.DeviceGetHandleByPciBusId (bus_id, &load->device) != NVML_SUCCESS) {
    free (load);
    remove_user ();
    return NULL;
  }
  pthread_mutex_init (&load->lock, NULL);
  pthread_cond_init (&load->changed, NULL);
  load->wanted = true;
  if (pthread_create (&load->thread, NULL, sampler_run, load) != 0) {
    pthread_cond_destroy (&load->changed);
    pthread_mutex_destroy (&load->lock);
    free (load);
    remove_user ();
    return NULL;
  }
  return load;
}

bool
csf_gpuload_get (csf_gpuload *load, csf_gpuload_sample *sample)
{
  pthread_mutex_lock (&load->lock);
  *sample = load->sample;
  load->wanted = true;
  pthread_cond_signal (&load->changed);
  pthread_mutex_unlock (&load->lock);
  return sample->has_utilization || sample->has_memory || sample->has_clock
      || sample->has_memory_clock;
}

void
csf_gpuload_destroy (csf_gpuload *load)
{
  if (load == NULL)
    return;
  pthread_mutex_lock (&load->lock);
  load->ending = true;
  pthread_cond_signal (&load->changed);
  pthread_mutex_unlock (&load->lock);
  pthread_join (load->thread, NULL);
  pthread_cond_destroy (&load->changed);
  pthread_mutex_destroy (&load->lock);
  free (load);
  remove_user ();
}
