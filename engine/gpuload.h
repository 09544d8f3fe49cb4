/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How busy a GPU is, how much of its memory is taken and how fast it is clocked: what NVML
 * (libnvidia-ml.so.1) says of the whole device, whoever uses it.  NVML is opened at run time and does
 * without a complaint where it is absent.  Knows nothing of frames. */
#ifndef CSF_GPULOAD_H
#define CSF_GPULOAD_H

#include "csf.h"

typedef struct csf_gpuload csf_gpuload;

/* Each has_ is false where this device or library does not tell: with MIG there is no utilization. */
typedef struct csf_gpuload_sample
{
  bool has_utilization, has_memory, has_clock, has_memory_clock;
  double utilization;           /* percent of NVML's last sampling period in which a kernel ran */
  uint64_t memory_used, memory_total;   /* bytes */
  unsigned clock, memory_clock; /* MHz; clock is that of the multiprocessors */
} csf_gpuload_sample;

/* Begins with a first sample.  Needs the device for its PCI bus id only, during the call.  The first user
 * in the process waits for NVML to come up.  NULL: there is nothing to be had, on the CPU for one. */
csf_gpuload *csf_gpuload_create (const csf_device * device);

/* Any thread; never waits for NVML.  The sample that the call before this one (or create) asked for, and
 * asks for the next: what it says is as old as that call.  False: there is none yet, or one in which the
 * device told nothing. */
bool csf_gpuload_get (csf_gpuload * load, csf_gpuload_sample * sample);

/* Waits for an NVML call under way.  NULL is allowed. */
void csf_gpuload_destroy (csf_gpuload * load);

#endif
