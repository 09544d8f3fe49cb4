/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Names what the calling thread is doing for a profiler: NVTX ranges in the domain "cudastreamfilter",
 * whose payload is the frame's number.  Ranges nest; each push has its pop on the same thread.  Without a
 * profiler at the process both cost a few nanoseconds, in a build without NVTX nothing. */
#ifndef CSF_RANGES_H
#define CSF_RANGES_H

#include <stdint.h>

#ifdef CSF_NVTX

/* One for each place in the code, so that a name is registered once. */
typedef struct csf_range
{
  const char *name;
  _Atomic (void *) registered;  /* NULL at first; any thread */
} csf_range;

void csf_range_begin (csf_range * range, uint64_t frame);
void csf_range_pop (void);

/* text: the name, a literal. */
#define csf_range_push(text, frame) \
  do { \
    static csf_range csf_range_here = { "" text, NULL }; \
    csf_range_begin (&csf_range_here, frame); \
  } while (0)

#else

static inline void
csf_range_push (const char *name, uint64_t frame)
{
}

static inline void
csf_range_pop (void)
{
}

#endif
#endif
