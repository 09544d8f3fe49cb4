/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A histogram whose buckets grow with what they hold, so that nanoseconds and seconds have the same
 * relative error. */
#include "distribution.h"

#include <string.h>

#define EXACT 32u               /* below it a bucket is one nanosecond */
#define FIRST_POWER 5u          /* 2^5 = EXACT */
#define STEPS 16u               /* buckets a power of two */
#define STEP_BITS 4u

static unsigned
bucket_of (uint64_t ns)
{
  unsigned power, bucket;

  if (ns < EXACT)
    return (unsigned) ns;
  power = 63 - (unsigned) __builtin_clzll (ns);
  bucket = EXACT + (power - FIRST_POWER) * STEPS
      + (unsigned) (ns >> (power - STEP_BITS) & (STEPS - 1));
  return bucket < CSF_DISTRIBUTION_BUCKETS ? bucket : CSF_DISTRIBUTION_BUCKETS - 1;
}

/* The most that a bucket holds. */
static uint64_t
end_of (unsigned bucket)
{
  unsigned power, step;

  if (bucket < EXACT)
    return bucket;
  power = FIRST_POWER + (bucket - EXACT) / STEPS;
  step = (bucket - EXACT) % STEPS;
  return ((uint64_t) (STEPS + step + 1) << (power - STEP_BITS)) - 1;
}

void
csf_distribution_add (csf_distribution *distribution, uint64_t ns)
{
  distribution->n++;
  distribution->sum += ns;
  if (ns > distribution->max)
    distribution->max = ns;
  distribution->buckets[bucket_of (ns)]++;
}

void
csf_distribution_clear (csf_distribution *distribution)
{
  if (distribution->n > 0)
    memset (distribution, 0, sizeof *distribution);
}

csf_summary
csf_distribution_summarize (const csf_distribution *distribution)
{
  csf_summary summary = {.n = distribution->n };
  uint64_t above = 0, end;
  unsigned bucket = CSF_DISTRIBUTION_BUCKETS;

  if (summary.n == 0)
    return summary;
  summary.mean_ns = distribution->sum / summary.n;
  /* The bucket above which there is no more than one in a hundred. */
  while (bucket > 0 && (above += distribution->buckets[--bucket]) * 100 <= summary.n)
    ;
  end = end_of (bucket);
  summary.p99_ns = bucket == CSF_DISTRIBUTION_BUCKETS - 1 || end > distribution->max
      ? distribution->max : end;
  return summary;
}
