/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Counters and window statistics of one element, and their forms: the stats structure and the
 * last-message line.  Has its own lock: any thread may read.  Times are gst_util_get_timestamp's, which is
 * the engine's clock. */
#ifndef GST_CSF_STATS_H
#define GST_CSF_STATS_H

#include <gst/gst.h>

#include "engine/csf.h"
#include "engine/hostpool.h"

G_BEGIN_DECLS

#define GST_CSF_STATS_NAME "cudastreamfilter-stats"

typedef struct _GstCsfStats GstCsfStats;

GstCsfStats *gst_csf_stats_new (void);
void gst_csf_stats_free (GstCsfStats * stats);

/* Everything back to zero: a new run of the element begins. */
void gst_csf_stats_reset (GstCsfStats * stats);

/* What runs; strings are copied.  pool: allocations count as growth once a frame was submitted. */
void gst_csf_stats_set_engine (GstCsfStats * stats, csf_device * device, csf_hostpool * pool,
    const gchar * kernel, guint num_streams);

/* The engine is about to go: its counters are kept, and the figures stay readable. */
void gst_csf_stats_unset_engine (GstCsfStats * stats, csf_engine * engine);

/* Sink thread: upstream brings a frame, and has got it off its hands again.  waiting: a stream was free for
 * it.  The span is what that stream waited for the frame. */
csf_span gst_csf_stats_enter (GstCsfStats * stats, gboolean waiting);
void gst_csf_stats_leave (GstCsfStats * stats);

/* Pads are inactive: asks the GPU for its load no more.  The figures stay readable. */
void gst_csf_stats_stop (GstCsfStats * stats);

/* A frame was submitted: allocations so far (before the first) are no growth. */
void gst_csf_stats_submitted (GstCsfStats * stats);
/* *processed, *dropped: so far. */
void gst_csf_stats_dropped (GstCsfStats * stats, guint64 * processed, guint64 * dropped);

/* Time between these two is no time of the run. */
void gst_csf_stats_pause (GstCsfStats * stats);
void gst_csf_stats_resume (GstCsfStats * stats);

/* Task: a frame is about to be pushed.  submit_ns: when it was taken; push_time_before: what
 * gst_csf_stats_get_push_time said then; in_flight: frames that still are. */
void gst_csf_stats_retired (GstCsfStats * stats, guint64 submit_ns, guint64 push_time_before,
    const csf_frame_times * times, guint in_flight);

/* Task: so many records had to be clipped or left out. */
void gst_csf_stats_add_clipped (GstCsfStats * stats, guint n);

/* Task: time spent waiting with nothing in flight, and in the push that is over now. */
void gst_csf_stats_add_idle (GstCsfStats * stats, guint64 ns);
void gst_csf_stats_add_push (GstCsfStats * stats, guint64 ns);
/* Any thread: in all, the push under way included. */
guint64 gst_csf_stats_get_push_time (GstCsfStats * stats);

/* Task: closes the window when interval_ns has passed since the last (or `always`): TRUE then, and the
 * forms below are of the new window. */
gboolean gst_csf_stats_update (GstCsfStats * stats, guint64 interval_ns, gboolean always,
    csf_engine * engine);

/* What latency the element adds: 0 while the 99th percentile stays below 10 ms, else the percentile in
 * whole milliseconds, rounded up.  Never shrinks within a run: an answer that moves to and fro would
 * make a live pipeline jump. */
GstClockTime gst_csf_stats_get_latency (GstCsfStats * stats);

/* engine: NULL when none is open.  Transfer full. */
GstStructure *gst_csf_stats_to_structure (GstCsfStats * stats, csf_engine * engine);

/* One line of the last window, or with `summary` of the whole run.  Transfer full. */
gchar *gst_csf_stats_to_line (GstCsfStats * stats, gboolean summary);

G_END_DECLS
#endif
