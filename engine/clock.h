/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The engine's clock.  Private to engine/. */
#ifndef CSF_CLOCK_H
#define CSF_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Nanoseconds of a clock that never jumps. */
static inline uint64_t
csf_now_ns (void)
{
  struct timespec now;

  clock_gettime (CLOCK_MONOTONIC, &now);
  return (uint64_t) now.tv_sec * 1000000000u + (uint64_t) now.tv_nsec;
}

#endif
