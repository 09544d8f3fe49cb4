/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The rate of a GStreamer pipeline, counted where frames enter its sink, and the statistics of the
 * element in it.  Knows the element's stats by their names, nothing else of it. */
#ifndef BENCH_PIPELINE_H
#define BENCH_PIPELINE_H

#include <gst/gst.h>

#include "bench.h"

G_BEGIN_DECLS

#define BENCH_CUDA_FEATURE "memory:CUDAMemory"
#define BENCH_IN_CUDA_MEMORY "video/x-raw(" BENCH_CUDA_FEATURE ")"

/* What one pipeline showed. */
typedef struct
{
  gdouble fps, least, most, cpu_us;
  GstStructure *stats;          /* of the element named "filter", or NULL; the caller's */
} BenchMeasured;

/* Plays a pipeline whose last element is named "sink" until the meter, which the caller has set
 * up, has what it wants.  Takes the pipeline.  FALSE: *problem says why; the caller frees it. */
gboolean bench_pipeline_measure (GstElement * pipeline, bench_meter * meter,
    BenchMeasured * measured, gchar ** problem);

/* A number of the stats, whatever its type; -1: the element has none of that name. */
gdouble bench_stat (const GstStructure * stats, const gchar * name);

/* Whether there is an element of that name here. */
gboolean bench_has_element (const gchar * name);

G_END_DECLS
#endif
