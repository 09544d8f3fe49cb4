/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How long something took, many times: mean and 99th percentile in fixed memory.  Not thread-safe. */
#ifndef CSF_DISTRIBUTION_H
#define CSF_DISTRIBUTION_H

#include <stdint.h>

/* Buckets of one nanosecond up to 32, then 16 to each power of two, up to 2^42 ns, more than an hour. */
#define CSF_DISTRIBUTION_BUCKETS (32 + (42 - 5) * 16)

/* All 0 at first. */
typedef struct csf_distribution
{
  uint64_t n, sum, max;         /* ns */
  uint32_t buckets[CSF_DISTRIBUTION_BUCKETS];
} csf_distribution;

typedef struct csf_summary
{
  uint64_t n;
  uint64_t mean_ns;
  uint64_t p99_ns;              /* 99 of 100 took no longer; up to 1/16 more than exact, never more than max */
} csf_summary;

void csf_distribution_add (csf_distribution * distribution, uint64_t ns);
void csf_distribution_clear (csf_distribution * distribution);
csf_summary csf_distribution_summarize (const csf_distribution * distribution);

#endif
