/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a test may ask of the fake driver beyond the driver's own functions: settings, failures
 * to come, and what is alive.  Knows libc, dl and the kernel contract; a test never links the
 * fake, it finds it where the program under test finds it. */
#ifndef FAKE_CUDA_H
#define FAKE_CUDA_H

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/kernel.h"

/* Now alive, and counts since the process began or the last reset. */
typedef struct fake_cuda_counters
{
  /* alive */
  uint64_t device_bytes;        /* of cuMemAlloc and its relatives, all devices */
  uint64_t managed_bytes;
  uint64_t pinned_bytes;        /* allocated or registered host memory */
  unsigned pinned_ranges;
  unsigned streams, events, modules, contexts;  /* a retained primary context is one */
  uint64_t primary_references;  /* of all devices together */
  unsigned running;             /* operations given to a stream and not finished */

  /* counts */
  uint64_t calls;               /* driver calls that may fail */
  uint64_t operations;          /* copies, sets and kernels begun on a device */
  uint64_t kernels;             /* of these */
  uint64_t injected;            /* failures and hangs that a test asked for and got */
  uint64_t misuse;              /* calls a correct program never makes */
  uint64_t orphans;             /* objects still alive when their context went away */
  uint64_t pageable_copies;     /* copies of host memory that is not pinned */
  uint64_t two_dimensional;     /* copies of more than one row */
  uint64_t allocations;         /* device, managed and pinned, registrations included */
  const char *failed_call;      /* the last that a test made fail, "" */
} fake_cuda_counters;

/* Settings; the environment has each as FAKE_CUDA_NAME, read at the first driver call.
 *   DEVICES 1, DRIVER_VERSION 13000
 *   MEMORY bytes of a device (1 GiB), PINNED_MEMORY bytes (no limit)
 *   DELAY_US 100: an operation starts up to so much late; SEED 1: of these delays
 *   UPLOAD_US, KERNEL_US, DOWNLOAD_US 0: what each such operation takes; they take turns, on three engines
 *   FAIL_AT k: the k-th call from now that may fail does so, 0 never; FAIL_COUNT n: and the n-1
 *     after it (0: all); FAIL_CODE 999; FAIL_CALL name: only calls of this function are counted
 *     (with it FAIL_AT is 1 unless set); FAIL_STICKY 1: it breaks the current context as well
 *   ASYNC_FAIL_AT k: the k-th operation from now fails; ASYNC_FAIL_CODE 700; its context is broken
 *   HANG_AT k: the k-th operation from now does not finish until release_hang
 *   ABORT 1: misuse aborts, with a message
 *   ATTRIBUTE_n value: of every device; DEVICE_d_ATTRIBUTE_n value: of one
 * Environment only: COUNT_FILE path, written at exit with the counters.
 *
 * An injected failure of a call that creates or starts something does nothing else; of one that
 * gives something back, it is given back all the same; of one that enters a context or asks
 * whether work is done, the context is broken, for that is how a driver comes to fail there. */
typedef struct fake_cuda
{
  int (*set) (const char *name, long long value);       /* 0: no such setting */
  void (*set_fail_call) (const char *name);     /* NULL: any call */
  void (*add_kernel) (const csfk_kernel * kernel);      /* found before the built-in ones */
  void (*get_counters) (fake_cuda_counters * counters);
  void (*release_hang) (void);  /* of one that hangs, or of the one to come */
  void (*wait_idle) (void);     /* until every stream has run dry, hung ones excepted */
  void (*reset) (void);         /* settings as the environment has them, counts zero */
} fake_cuda;

const fake_cuda *fake_cuda_get (void);

/* NULL when libcuda.so.1 is not the fake, or not there. */
static inline const fake_cuda *
fake_cuda_find (void)
{
  void *library = dlopen ("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  const fake_cuda *(*get) (void) = NULL;

  if (library != NULL)
    *(void **) &get = dlsym (library, "fake_cuda_get");
  return get == NULL ? NULL : get ();
}

#endif
