/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What tests may ask of the fake libnvidia-ml.so.1 beyond what the real one has.  Knows nothing of the
 * engine. */
#ifndef FAKE_NVML_H
#define FAKE_NVML_H

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

typedef struct fake_nvml_counters
{
  unsigned references;          /* nvmlInit_v2 calls that nvmlShutdown has not undone */
  uint64_t inits;               /* that succeeded */
  uint64_t begun, ended;        /* queries of a device */
  uint64_t misuse;              /* calls a correct program never makes */
} fake_nvml_counters;

/* Settings; the environment has each as FAKE_NVML_NAME, read at the first call.  The devices are those of
 * the fake driver.
 *   UTILIZATION 37 percent, MEMORY_USED 3 GiB, MEMORY_TOTAL 8 GiB, CLOCK 1500 MHz, MEMORY_CLOCK 7000 MHz
 *   INIT_CODE, DEVICE_CODE, UTILIZATION_CODE, MEMORY_CODE, CLOCK_CODE, MEMORY_CLOCK_CODE 0: what
 *     nvmlInit_v2, the search for the device and the queries return; 3 is "not supported"
 *   DELAY_MS 0: how long each query takes
 *   HOLD 0: queries do not return while it is 1 */
typedef struct fake_nvml
{
  int (*set) (const char *name, long long value);       /* 0: no such setting */
  void (*get_counters) (fake_nvml_counters * counters);
  void (*wait_begun) (uint64_t n);      /* until so many queries have begun */
  void (*reset) (void);         /* settings as the environment has them, counts but references zero */
} fake_nvml;

const fake_nvml *fake_nvml_get (void);

/* NULL when libnvidia-ml.so.1 is not the fake, or not there. */
static inline const fake_nvml *
fake_nvml_find (void)
{
  void *library = dlopen ("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  const fake_nvml *(*get) (void) = NULL;

  if (library != NULL)
    *(void **) &get = dlsym (library, "fake_nvml_get");
  return get == NULL ? NULL : get ();
}

#endif
