/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Turns counts and times into what a user reads: throughput, overlap, what bounds it.  Knows no pads
 * and makes no driver calls. */
#include "gstcsfstats.h"

#include "gstcsfproperties.h"

/* Latency histogram: bucket i holds frames of i to i+1 ms, the last one all longer. */
#define LATENCY_BUCKETS 2048
#define LATENCY_IGNORED_MS 10
/* The first frames pay for loading code and are no sample; fewer than a hundred have no 99th
 * percentile. */
#define LATENCY_WARM_UP 8
#define LATENCY_LEAST_FRAMES 100

typedef struct
{
  gdouble fps, avg_fps, overlap, efficiency;
  const gchar *bound_by;
  csf_engine_stats engine;
} Window;

struct _GstCsfStats
{
  GMutex lock;
  /* all below under the lock */
  gchar *backend, *device, *kernel;
  csf_hostpool *pool;
  csf_hostpool_stats pool_stats;
  gboolean parallel_cpu;
  guint num_streams;

  guint64 processed, dropped;
  guint64 allocations_at_start;
  gboolean started;             /* a frame was submitted since the engine was set */
  guint64 growths_before;       /* of engines that are gone */
  guint64 host_copies_before;   /* likewise */
  guint64 records_before, clipped;      /* likewise; records clipped or left out */

  guint64 first_ns, window_ns;  /* when the run (pauses left out) and the window began */
  guint64 paused_ns;            /* when the last pause began, 0: not paused */
  guint64 window_processed, idle_ns, push_ns, push_total_ns;
  Window window;

  guint32 latency[LATENCY_BUCKETS];
  guint64 latency_frames;
  guint latency_ms;             /* answered, 0 none */
};

static guint64
now_ns (void)
{
  return gst_util_get_timestamp ();
}

GstCsfStats *
gst_csf_stats_new (void)
{
  GstCsfStats *stats = g_new0 (GstCsfStats, 1);

  g_mutex_init (&stats->lock);
  gst_csf_stats_reset (stats);
  return stats;
}

void
gst_csf_stats_free (GstCsfStats * stats)
{
  gst_csf_stats_reset (stats);
  g_free (stats->backend);
  g_free (stats->device);
  g_free (stats->kernel);
  g_mutex_clear (&stats->lock);
  g_free (stats);
}

static guint64
growths_locked (GstCsfStats * stats)
{
  if (stats->pool != NULL)
    csf_hostpool_get_stats (stats->pool, &stats->pool_stats);
  if (stats->pool == NULL || !stats->started)
    return stats->growths_before;
  return stats->growths_before + stats->pool_stats.allocations - stats->allocations_at_start;
}

static void
set_pool_locked (GstCsfStats * stats, csf_hostpool * pool)
{
  stats->growths_before = growths_locked (stats);
  stats->started = FALSE;
  csf_hostpool_unref (stats->pool);
  stats->pool = pool != NULL ? csf_hostpool_ref (pool) : NULL;
  if (pool == NULL)
    stats->pool_stats.pinned_bytes = 0;
}

void
gst_csf_stats_reset (GstCsfStats * stats)
{
  g_mutex_lock (&stats->lock);
  set_pool_locked (stats, NULL);
  stats->processed = stats->dropped = stats->growths_before = 0;
  stats->first_ns = stats->window_ns = stats->window_processed = stats->paused_ns = 0;
  stats->idle_ns = stats->push_ns = stats->push_total_ns = 0;
  memset (&stats->window, 0, sizeof stats->window);
  stats->host_copies_before = stats->records_before = stats->clipped = 0;
  stats->window.bound_by = "upstream";
  memset (stats->latency, 0, sizeof stats->latency);
  stats->latency_frames = 0;
  stats->latency_ms = 0;
  g_mutex_unlock (&stats->lock);
}

void
gst_csf_stats_set_engine (GstCsfStats * stats, csf_device * device, csf_hostpool * pool,
    const gchar * kernel, guint num_streams)
{
  const csf_device_info *info = csf_device_get_info (device);

  g_mutex_lock (&stats->lock);
  set_pool_locked (stats, pool);
  g_free (stats->backend);
  g_free (stats->device);
  g_free (stats->kernel);
  stats->backend = g_strdup (info->backend_name);
  stats->device = g_strdup (info->name);
  stats->kernel = g_strdup (kernel);
  stats->parallel_cpu = info->backend == CSF_BACKEND_CPU;
  stats->num_streams = num_streams;
  g_mutex_unlock (&stats->lock);
}

void
gst_csf_stats_unset_engine (GstCsfStats * stats, csf_engine * engine)
{
  csf_engine_stats last;

  csf_engine_get_stats (engine, &last, FALSE);
  g_mutex_lock (&stats->lock);
  stats->host_copies_before += last.host_copies;
  stats->records_before += last.records;
  set_pool_locked (stats, NULL);
  stats->growths_before += last.growths;
  g_mutex_unlock (&stats->lock);
}

void
gst_csf_stats_submitted (GstCsfStats * stats)
{
  g_mutex_lock (&stats->lock);
  if (!stats->started && stats->pool != NULL) {
    csf_hostpool_get_stats (stats->pool, &stats->pool_stats);
    stats->allocations_at_start = stats->pool_stats.allocations;
    stats->started = TRUE;
  }
  g_mutex_unlock (&stats->lock);
}

void
gst_csf_stats_add_clipped (GstCsfStats * stats, guint n)
{
  g_mutex_lock (&stats->lock);
  stats->clipped += n;
  g_mutex_unlock (&stats->lock);
}

void
gst_csf_stats_dropped (GstCsfStats * stats, guint64 * processed, guint64 * dropped)
{
  g_mutex_lock (&stats->lock);
  *processed = stats->processed;
  *dropped = ++stats->dropped;
  g_mutex_unlock (&stats->lock);
}

static void
begin_window_locked (GstCsfStats * stats, guint64 now)
{
  stats->window_ns = now;
  stats->window_processed = 0;
  stats->idle_ns = stats->push_ns = 0;
}

void
gst_csf_stats_pause (GstCsfStats * stats)
{
  g_mutex_lock (&stats->lock);
  stats->paused_ns = now_ns ();
  g_mutex_unlock (&stats->lock);
}

void
gst_csf_stats_resume (GstCsfStats * stats)
{
  guint64 now = now_ns ();

  g_mutex_lock (&stats->lock);
  if (stats->first_ns != 0) {
    /* Before the first PLAYING only the preroll frame came out. */
    stats->first_ns = stats->paused_ns != 0 ? stats->first_ns + now - stats->paused_ns : now;
    begin_window_locked (stats, now);
  }
  stats->paused_ns = 0;
  g_mutex_unlock (&stats->lock);
}

void
gst_csf_stats_retired (GstCsfStats * stats, guint64 latency_ns)
{
  guint64 bucket = latency_ns / GST_MSECOND;

  g_mutex_lock (&stats->lock);
  if (stats->first_ns == 0)
    stats->first_ns = stats->window_ns = now_ns ();
  stats->processed++;
  stats->window_processed++;
  if (stats->processed > LATENCY_WARM_UP) {
    stats->latency[MIN (bucket, LATENCY_BUCKETS - 1)]++;
    stats->latency_frames++;
  }
  g_mutex_unlock (&stats->lock);
}

void
gst_csf_stats_add_idle (GstCsfStats * stats, guint64 ns)
{
  g_mutex_lock (&stats->lock);
  stats->idle_ns += ns;
  g_mutex_unlock (&stats->lock);
}

void
gst_csf_stats_add_push (GstCsfStats * stats, guint64 ns)
{
  g_mutex_lock (&stats->lock);
  stats->push_ns += ns;
  stats->push_total_ns += ns;
  g_mutex_unlock (&stats->lock);
}

guint64
gst_csf_stats_get_push_time (GstCsfStats * stats)
{
  guint64 ns;

  g_mutex_lock (&stats->lock);
  ns = stats->push_total_ns;
  g_mutex_unlock (&stats->lock);
  return ns;
}

static const gchar *
verdict (gdouble window, gdouble idle, gdouble push, const csf_engine_stats * engine)
{
  guint64 longest = MAX (MAX (engine->upload_ns, engine->kernel_ns), engine->download_ns);

  if (push > window / 2)
    return "downstream";
  if (idle > window / 2 || longest == 0)
    return "upstream";
  if (longest == engine->kernel_ns)
    return "kernel";
  return longest == engine->upload_ns ? "upload" : "download";
}

/* The last window may be empty: the figures before it stand then. */
static void
close_window_locked (GstCsfStats * stats, guint64 now, gboolean last, csf_engine * engine)
{
  Window *w = &stats->window;
  gdouble window = (gdouble) (now - stats->window_ns);
  gdouble frames = (gdouble) stats->window_processed;
  gdouble idle = MIN ((gdouble) stats->idle_ns, window), push = (gdouble) stats->push_ns;
  csf_engine_stats latest = w->engine;
  gdouble sum, longest;

  if (engine != NULL) {
    csf_engine_get_stats (engine, &latest, TRUE);
    /* No timed run fell into this window: the last known times stand. */
    if (latest.timed == 0) {
      latest.upload_ns = w->engine.upload_ns;
      latest.kernel_ns = w->engine.kernel_ns;
      latest.download_ns = w->engine.download_ns;
    }
    w->engine = latest;
  }
  sum = (gdouble) latest.upload_ns + (gdouble) latest.kernel_ns + (gdouble) latest.download_ns;
  longest = MAX (MAX (latest.upload_ns, latest.kernel_ns), latest.download_ns);
  if (stats->parallel_cpu)
    longest /= stats->num_streams;
  if (window > 0 && frames > 0) {
    w->fps = frames * 1e9 / window;
    w->overlap = sum * frames / window;
    w->efficiency = MIN (longest * frames / MAX (window - idle, 1), 1.0);
  } else if (!last) {
    w->fps = w->overlap = w->efficiency = 0;
  }
  if (now > stats->first_ns && stats->processed > 1)
    w->avg_fps = (gdouble) (stats->processed - 1) * 1e9 / (gdouble) (now - stats->first_ns);
  if (frames > 0 || !last)
    w->bound_by = verdict (window, idle, push, &latest);
  begin_window_locked (stats, now);
}

static void
update_latency_locked (GstCsfStats * stats)
{
  guint64 above = 0;
  guint ms;

  if (stats->latency_frames < LATENCY_LEAST_FRAMES)
    return;
  for (ms = LATENCY_BUCKETS; ms > 0; ms--) {
    above += stats->latency[ms - 1];
    if (above * 100 > stats->latency_frames)
      break;
  }
  if (ms > LATENCY_IGNORED_MS && ms > stats->latency_ms)
    stats->latency_ms = ms;
}

gboolean
gst_csf_stats_update (GstCsfStats * stats, guint64 interval_ns, gboolean always,
    csf_engine * engine)
{
  guint64 now = now_ns ();
  gboolean due;

  g_mutex_lock (&stats->lock);
  due = always || (interval_ns != 0 && stats->window_ns != 0
      && now - stats->window_ns >= interval_ns);
  if (due) {
    close_window_locked (stats, now, always, engine);
    update_latency_locked (stats);
  }
  g_mutex_unlock (&stats->lock);
  return due;
}

GstClockTime
gst_csf_stats_get_latency (GstCsfStats * stats)
{
  GstClockTime latency;

  g_mutex_lock (&stats->lock);
  latency = stats->latency_ms * GST_MSECOND;
  g_mutex_unlock (&stats->lock);
  return latency;
}

GstStructure *
gst_csf_stats_to_structure (GstCsfStats * stats, csf_engine * engine)
{
  csf_engine_stats latest = { 0 };
  guint in_flight = 0;
  GstStructure *structure;
  const Window *w = &stats->window;

  if (engine != NULL) {
    in_flight = csf_engine_get_in_flight (engine);
    csf_engine_get_stats (engine, &latest, FALSE);
  }
  g_mutex_lock (&stats->lock);
  latest.host_copies += stats->host_copies_before;
  latest.records += stats->records_before;
  structure = gst_structure_new (GST_CSF_STATS_NAME,
      "backend", G_TYPE_STRING, stats->backend != NULL ? stats->backend : "none",
      "device", G_TYPE_STRING, stats->device != NULL ? stats->device : "none",
      "kernel", G_TYPE_STRING, stats->kernel != NULL ? stats->kernel : "none",
      "processed", G_TYPE_UINT64, stats->processed,
      "dropped", G_TYPE_UINT64, stats->dropped,
      "records", G_TYPE_UINT64, latest.records,
      "clipped-records", G_TYPE_UINT64, stats->clipped,
      "metadata-memory", G_TYPE_STRING, latest.metadata_memory == CSF_METADATA_AUTO ? "none" :
      gst_csf_metadata_memory_get_nick (latest.metadata_memory),
      "pool-growths", G_TYPE_UINT64, growths_locked (stats) + latest.growths,
      "host-copies", G_TYPE_UINT64, latest.host_copies,
      "pinned-bytes", G_TYPE_UINT64, stats->pool_stats.pinned_bytes,
      "device-bytes", G_TYPE_UINT64, latest.device_bytes,
      "upload-time", G_TYPE_UINT64, w->engine.upload_ns,
      "kernel-time", G_TYPE_UINT64, w->engine.kernel_ns,
      "download-time", G_TYPE_UINT64, w->engine.download_ns,
      "fps", G_TYPE_DOUBLE, w->fps,
      "avg-fps", G_TYPE_DOUBLE, w->avg_fps,
      "in-flight", G_TYPE_DOUBLE, (gdouble) in_flight,
      "overlap", G_TYPE_DOUBLE, w->overlap,
      "efficiency", G_TYPE_DOUBLE, w->efficiency,
      "bound-by", G_TYPE_STRING, w->bound_by, NULL);
  g_mutex_unlock (&stats->lock);
  return structure;
}

gchar *
gst_csf_stats_to_line (GstCsfStats * stats)
{
  const Window *w = &stats->window;
  gchar *line;

  g_mutex_lock (&stats->lock);
  line = g_strdup_printf ("processed: %" G_GUINT64_FORMAT ", dropped: %" G_GUINT64_FORMAT
      ", fps: %.2f, avg-fps: %.2f, upload: %.1f us, kernel: %.1f us, download: %.1f us, "
      "overlap: %.2f, backend: %s, bound-by: %s", stats->processed, stats->dropped, w->fps,
      w->avg_fps, w->engine.upload_ns / 1e3, w->engine.kernel_ns / 1e3,
      w->engine.download_ns / 1e3, w->overlap, stats->backend != NULL ? stats->backend : "none",
      w->bound_by);
  g_mutex_unlock (&stats->lock);
  return line;
}
