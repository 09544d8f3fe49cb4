/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The stream engine between two threads, as the element uses it but without GStreamer: what is lost
 * between this and the element is GStreamer's and the element's.  Knows csf.h alone. */
#ifndef ENGINELOOP_H
#define ENGINELOOP_H

#include "bench.h"

typedef struct engineloop_result
{
  double fps, least_fps, most_fps;
  double cpu_us;                /* a frame */
  csf_engine_stats stats;
} engineloop_result;

typedef struct engineloop_setup
{
  csf_device *device;
  const csf_layout *layout;
  const csfk_kernel *kernel;
  const void *params;           /* NULL: the defaults */
  unsigned streams;
  csf_metadata_memory metadata_memory;
  bool quick;
} engineloop_setup;

csf_status engineloop_measure (const engineloop_setup * setup, engineloop_result * result,
    csf_error * error);

#endif
