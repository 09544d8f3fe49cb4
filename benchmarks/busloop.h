/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the bus and the GPU allow, measured with plain driver calls: each direction alone, both at
 * once, the kernel, and the plain loop that a programmer would write by hand.  Knows the driver's
 * table, no engine and no GStreamer. */
#ifndef BUSLOOP_H
#define BUSLOOP_H

#include "bench.h"

typedef struct busloop busloop;

/* Opens the first CUDA device.  NULL: text says why. */
busloop *busloop_open (char text[256]);
void busloop_close (busloop * bus);     /* NULL is allowed */

/* Fills device, driver and cuda of the report. */
void busloop_describe (busloop * bus, bench_report * report);

/* All in frames a second. */
typedef struct busloop_limits
{
  double upload, download;      /* one direction alone */
  double upload_both, download_both;    /* each, started together with the other */
  double both;                  /* one frame up and one down, until the slower direction is done */
  double kernel;
  double limit;                 /* the least of all: no pipeline of the stages is faster */
  const char *limited_by;
} busloop_limits;

/* False: text says why. */
bool busloop_measure_limits (busloop * bus, const csf_layout * layout, const csfk_kernel * kernel,
    bool quick, busloop_limits * limits, char text[256]);

/* The kernel alone on the device, without a pause between two frames, on one stream or in turns on
 * several.  params: of the kernel, resolved; NULL: its defaults.  *fps. */
bool busloop_measure_kernel (busloop * bus, const csf_layout * layout, const csfk_kernel * kernel,
    const void *params, unsigned streams, bool quick, double *fps, char text[256]);

/* One thread, `streams` streams, each with its pinned buffers: upload, kernel, download, event; the
 * thread waits by asking for the event again and again, which is the fastest way.  *fps. */
bool busloop_measure_loop (busloop * bus, const csf_layout * layout, const csfk_kernel * kernel,
    unsigned streams, bool quick, double *fps, char text[256]);

#endif
