/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Turns counts and times into what a user reads: throughput, overlap, what bounds it.  Knows no pads
 * and makes no driver calls. */
#include "gstcsfstats.h"

#include "engine/gpuload.h"
#include "gstcsfproperties.h"

#define LATENCY_IGNORED_MS 10
#define LATENCY_INTERVAL_NS (500 * GST_MSECOND)
/* The first frames pay for loading code and are no sample; fewer than a hundred have no 99th
 * percentile. */
#define LATENCY_WARM_UP 8
#define LATENCY_LEAST_FRAMES 100

/* Nanoseconds for which each party was at work. */
typedef struct
{
  gdouble time;                 /* that passed */
  gdouble idle;                 /* with nothing in flight */
  gdouble frames;
  gdouble upstream, downstream;
  gdouble part[CSF_N_PARTS];
} Work;

/* What stands until the next window is closed. */
typedef struct
{
  gdouble fps, avg_fps, overlap, efficiency;
  const gchar *bound_by;
  guint64 frame_ns;
  csf_summary upstream, downstream, latency;
  csf_engine_stats engine;
  csf_gpuload_sample load;
} Window;

struct _GstCsfStats
{
  GMutex lock;
  /* all below under the lock */
  gchar *backend, *device, *kernel;
  csf_gpuload *load;            /* NULL: none is to be had */
  gchar *load_of;               /* PCI bus id */
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

  guint64 first_ns, window_ns;  /* when the run and the window began, moved on by each pause since */
  guint64 first_processed;      /* frames that had come out at first_ns */
  guint64 paused_ns;            /* when the last pause began, 0: not paused */
  guint64 resumed_ns;           /* when the last one ended */
  guint64 left_ns;              /* when the sink thread went upstream, 0: it has not */
  guint64 freed_ns;             /* when a stream came free while all were busy */
  guint64 push_total_ns;
  guint64 pushing_ns;           /* when the push under way began, 0: there is none */
  Work now, run;                /* of the open window, but for `part`; of all closed ones */
  csf_distribution upstream, downstream, latency;       /* of the open window */
  Window window;

  csf_distribution run_latency;
  guint latency_ms;             /* answered, 0 none */
  guint64 latency_ns;           /* when that was last looked at */
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

/* Asks NVML for the device, unless it is the one before.  NVML takes its time, so without the lock. */
static void
set_load (GstCsfStats * stats, const csf_device * device)
{
  const gchar *bus_id = device == NULL ? NULL : csf_device_get_info (device)->pci_bus_id;
  csf_gpuload *load, *old;

  if (g_strcmp0 (stats->load_of, bus_id) == 0)
    return;
  load = device == NULL ? NULL : csf_gpuload_create (device);
  g_mutex_lock (&stats->lock);
  g_free (stats->load_of);
  stats->load_of = g_strdup (bus_id);
  old = stats->load;
  stats->load = load;
  g_mutex_unlock (&stats->lock);
  csf_gpuload_destroy (old);
}

void
gst_csf_stats_stop (GstCsfStats * stats)
{
  set_load (stats, NULL);
}

void
gst_csf_stats_free (GstCsfStats * stats)
{
  gst_csf_stats_reset (stats);
  gst_csf_stats_stop (stats);
  g_free (stats->backend);
  g_free (stats->device);
  g_free (stats->kernel);
  g_mutex_clear (&stats->lock);
  g_free (stats);
}

static void
begin_window_locked (GstCsfStats * stats, guint64 now)
{
  stats->window_ns = now;
  memset (&stats->now, 0, sizeof stats->now);
  csf_distribution_clear (&stats->upstream);
  csf_distribution_clear (&stats->downstream);
  csf_distribution_clear (&stats->latency);
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
  stats->first_ns = stats->window_ns = stats->paused_ns = stats->left_ns = stats->freed_ns = 0;
  stats->resumed_ns = stats->pushing_ns = stats->latency_ns = 0;
  stats->push_total_ns = stats->first_processed = 0;
  begin_window_locked (stats, 0);
  memset (&stats->run, 0, sizeof stats->run);
  memset (&stats->window, 0, sizeof stats->window);
  stats->host_copies_before = stats->records_before = stats->clipped = 0;
  stats->window.bound_by = "upstream";
  csf_distribution_clear (&stats->run_latency);
  stats->latency_ms = 0;
  g_mutex_unlock (&stats->lock);
}

void
gst_csf_stats_set_engine (GstCsfStats * stats, csf_device * device, csf_hostpool * pool,
    const gchar * kernel, guint num_streams)
{
  const csf_device_info *info = csf_device_get_info (device);

  set_load (stats, device);
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
  guint64 now;

  g_mutex_lock (&stats->lock);
  now = now_ns ();
  if (stats->first_ns != 0 && stats->paused_ns != 0) {
    stats->first_ns += now - MAX (stats->paused_ns, stats->first_ns);
    stats->window_ns += now - MAX (stats->paused_ns, stats->window_ns);
  } else if (stats->first_ns != 0) {
    /* What came out before the first PLAYING filled sink and queues. */
    stats->first_ns = now;
    stats->first_processed = stats->processed;
    begin_window_locked (stats, now);
  }
  stats->resumed_ns = now;
  stats->paused_ns = stats->left_ns = 0;
  g_mutex_unlock (&stats->lock);
}

csf_span
gst_csf_stats_enter (GstCsfStats * stats, gboolean waiting)
{
  csf_span wait;

  g_mutex_lock (&stats->lock);
  wait.begin = wait.end = now_ns ();
  if (stats->left_ns != 0) {
    stats->now.upstream += (gdouble) (wait.end - MAX (stats->left_ns, stats->window_ns));
    if (waiting)
      wait.begin = MIN (MAX (stats->left_ns, stats->freed_ns), wait.end);
  }
  csf_distribution_add (&stats->upstream, wait.end - wait.begin);
  g_mutex_unlock (&stats->lock);
  return wait;
}

void
gst_csf_stats_leave (GstCsfStats * stats)
{
  g_mutex_lock (&stats->lock);
  stats->left_ns = now_ns ();
  g_mutex_unlock (&stats->lock);
}

/* From taking the frame until it was ready.  While an earlier one is being pushed nobody sees when that is but
 * by the device's own time, which a sample of frames has; of the others nothing is known then. */
static gboolean
get_latency (guint64 submit_ns, guint64 now, guint64 pushing_ns, const csf_frame_times * times,
    guint64 * latency_ns)
{
  guint64 ready = now;

  if (pushing_ns * 20 > now - submit_ns) {
    if (!times->timed)
      return FALSE;
    ready = MAX (times->span[CSF_PART_DOWNLOAD].end, times->span[CSF_PART_RECORDS].end);
    ready = CLAMP (ready, submit_ns, now);
  }
  *latency_ns = ready - submit_ns;
  return TRUE;
}

void
gst_csf_stats_retired (GstCsfStats * stats, guint64 submit_ns, guint64 push_time_before,
    const csf_frame_times * times, guint in_flight)
{
  guint64 now, latency_ns;

  g_mutex_lock (&stats->lock);
  now = now_ns ();
  stats->processed++;
  if (stats->first_ns == 0) {
    stats->first_ns = now;
    stats->first_processed = stats->processed;
    begin_window_locked (stats, now);
  }
  stats->now.frames++;
  if (in_flight + 1 == stats->num_streams)
    stats->freed_ns = now;
  if (get_latency (submit_ns, now, stats->push_total_ns - push_time_before, times, &latency_ns)) {
    csf_distribution_add (&stats->latency, latency_ns);
    if (stats->processed > LATENCY_WARM_UP)
      csf_distribution_add (&stats->run_latency, latency_ns);
  }
  stats->pushing_ns = now;
  g_mutex_unlock (&stats->lock);
}

/* What of the last `ns` was no pause.  The sink plays before we do, so a push may be over before a pause is. */
static guint64
without_pause_locked (const GstCsfStats * stats, guint64 ns)
{
  const guint64 now = now_ns ();

  ns = MIN (ns, now - stats->resumed_ns);
  return stats->paused_ns == 0 ? ns : ns - MIN (ns, now - stats->paused_ns);
}

void
gst_csf_stats_add_idle (GstCsfStats * stats, guint64 ns)
{
  g_mutex_lock (&stats->lock);
  stats->now.idle += (gdouble) without_pause_locked (stats, ns);
  g_mutex_unlock (&stats->lock);
}

void
gst_csf_stats_add_push (GstCsfStats * stats, guint64 ns)
{
  g_mutex_lock (&stats->lock);
  stats->push_total_ns += ns;
  stats->pushing_ns = 0;
  ns = without_pause_locked (stats, ns);
  stats->now.downstream += (gdouble) ns;
  csf_distribution_add (&stats->downstream, ns);
  g_mutex_unlock (&stats->lock);
}

guint64
gst_csf_stats_get_push_time (GstCsfStats * stats)
{
  guint64 ns;

  g_mutex_lock (&stats->lock);
  ns = stats->push_total_ns;
  if (stats->pushing_ns != 0)
    ns += now_ns () - stats->pushing_ns;
  g_mutex_unlock (&stats->lock);
  return ns;
}

/* Of parties that work side by side, the one that is at work most of the time holds up the others. */
static const gchar *
verdict_locked (const GstCsfStats * stats, const Work * work)
{
  /* Each worker thread of the CPU has a kernel of its own, and so has each pass that appends. */
  const gdouble streams = stats->num_streams;
  const gdouble kernel = work->part[CSF_PART_KERNEL] / (stats->parallel_cpu ? streams : 1);
  const gdouble records = work->part[CSF_PART_RECORDS] / streams;
  const struct
  {
    const gchar *name;
    gdouble busy;
  } parties[] = {
    {"upstream", work->upstream},
    {"kernel", MAX (kernel, records)},
    /* What comes in pageable memory is copied on the host before it can go up. */
    {"upload", MAX (work->part[CSF_PART_UPLOAD], work->part[CSF_PART_STAGING])},
    {"download", work->part[CSF_PART_DOWNLOAD]},
    {"submit", work->part[CSF_PART_SUBMIT]},
    {"downstream", work->downstream},
  };
  guint most = 0;

  for (guint i = 1; i < G_N_ELEMENTS (parties); i++)
    if (parties[i].busy > parties[most].busy)
      most = i;
  return parties[most].name;
}

static gdouble
stages_of (const Work * work)
{
  return work->part[CSF_PART_UPLOAD] + work->part[CSF_PART_KERNEL] + work->part[CSF_PART_DOWNLOAD];
}

/* Share of the time with work waiting in which the longest stage ran. */
static gdouble
efficiency_locked (const GstCsfStats * stats, const Work * work)
{
  gdouble longest = MAX (MAX (work->part[CSF_PART_UPLOAD], work->part[CSF_PART_KERNEL]),
      work->part[CSF_PART_DOWNLOAD]);

  if (stats->parallel_cpu)
    longest /= stats->num_streams;
  return MIN (longest / MAX (work->time - MIN (work->idle, work->time), 1), 1.0);
}

/* The engine's figures of the window.  When no timed run fell into it, the last known times stand. */
static void
read_engine_locked (GstCsfStats * stats, csf_engine * engine)
{
  csf_engine_stats latest;

  if (engine == NULL)
    return;
  csf_engine_get_stats (engine, &latest, TRUE);
  for (csf_part part = CSF_PART_UPLOAD; part < CSF_N_PARTS; part++)
    if (latest.part[part].n == 0)
      latest.part[part] = stats->window.engine.part[part];
  stats->window.engine = latest;
}

static void
add_work (Work * sum, const Work * work)
{
  sum->time += work->time;
  sum->idle += work->idle;
  sum->frames += work->frames;
  sum->upstream += work->upstream;
  sum->downstream += work->downstream;
  for (guint part = 0; part < CSF_N_PARTS; part++)
    sum->part[part] += work->part[part];
}

/* The last window may be empty: the figures before it stand then. */
static void
close_window_locked (GstCsfStats * stats, guint64 now, gboolean last, csf_engine * engine)
{
  Window *w = &stats->window;
  Work work = stats->now;

  read_engine_locked (stats, engine);
  work.time = stats->window_ns == 0 ? 0 : (gdouble) (now - stats->window_ns);
  if (stats->left_ns != 0 && stats->left_ns < now)
    work.upstream += (gdouble) (now - MAX (stats->left_ns, stats->window_ns));
  work.upstream = MIN (work.upstream, work.time);
  for (guint part = 0; part < CSF_N_PARTS; part++)
    work.part[part] = (gdouble) w->engine.part[part].mean_ns * work.frames;
  if (work.time > 0 && work.frames > 0) {
    w->fps = work.frames * 1e9 / work.time;
    w->frame_ns = (guint64) (work.time / work.frames);
    w->overlap = stages_of (&work) / work.time;
    w->efficiency = efficiency_locked (stats, &work);
  } else if (!last) {
    w->fps = w->overlap = w->efficiency = 0;
    w->frame_ns = 0;
  }
  if (now > stats->first_ns && stats->processed > stats->first_processed)
    w->avg_fps = (gdouble) (stats->processed - stats->first_processed) * 1e9
        / (gdouble) (now - stats->first_ns);
  if (work.frames > 0 || !last) {
    w->bound_by = verdict_locked (stats, &work);
    w->upstream = csf_distribution_summarize (&stats->upstream);
    w->downstream = csf_distribution_summarize (&stats->downstream);
    w->latency = csf_distribution_summarize (&stats->latency);
  }
  if (stats->load == NULL || !csf_gpuload_get (stats->load, &w->load))
    memset (&w->load, 0, sizeof w->load);
  add_work (&stats->run, &work);
  begin_window_locked (stats, now);
}

/* Whatever the interval of the figures is: live pipelines depend on it. */
static void
update_latency_locked (GstCsfStats * stats, guint64 now)
{
  csf_summary summary;
  guint ms;

  if (now - stats->latency_ns < LATENCY_INTERVAL_NS)
    return;
  stats->latency_ns = now;
  summary = csf_distribution_summarize (&stats->run_latency);
  ms = (guint) ((summary.p99_ns + GST_MSECOND - 1) / GST_MSECOND);
  if (summary.n >= LATENCY_LEAST_FRAMES && ms > LATENCY_IGNORED_MS && ms > stats->latency_ms)
    stats->latency_ms = ms;
}

gboolean
gst_csf_stats_update (GstCsfStats * stats, guint64 interval_ns, gboolean always,
    csf_engine * engine)
{
  guint64 now;
  gboolean due;

  g_mutex_lock (&stats->lock);
  now = now_ns ();
  /* A pause ends no window, and the end of the run does so as of when the pause began. */
  due = always || (interval_ns != 0 && stats->window_ns != 0 && stats->paused_ns == 0
      && now - stats->window_ns >= interval_ns);
  if (due)
    close_window_locked (stats, stats->paused_ns == 0 ? now : MAX (stats->paused_ns, stats->window_ns),
        always, engine);
  update_latency_locked (stats, now);
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

static void
set_time (GstStructure * structure, const gchar * name, csf_summary summary)
{
  gchar *percentile = g_strconcat (name, "-p99", NULL);

  gst_structure_set (structure, name, G_TYPE_UINT64, summary.mean_ns, percentile, G_TYPE_UINT64,
      summary.p99_ns, NULL);
  g_free (percentile);
}

/* What the GPU does not tell is not there. */
static void
set_load_fields (GstStructure * structure, const csf_gpuload_sample * load)
{
  if (load->has_utilization)
    gst_structure_set (structure, "gpu-utilization", G_TYPE_DOUBLE, load->utilization, NULL);
  if (load->has_memory)
    gst_structure_set (structure, "gpu-memory-used", G_TYPE_UINT64, load->memory_used,
        "gpu-memory-total", G_TYPE_UINT64, load->memory_total, NULL);
  if (load->has_clock)
    gst_structure_set (structure, "gpu-clock", G_TYPE_UINT, load->clock, NULL);
  if (load->has_memory_clock)
    gst_structure_set (structure, "gpu-memory-clock", G_TYPE_UINT, load->memory_clock, NULL);
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
      "num-streams", G_TYPE_UINT, stats->num_streams,
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
      "frame-time", G_TYPE_UINT64, w->frame_ns,
      "fps", G_TYPE_DOUBLE, w->fps,
      "avg-fps", G_TYPE_DOUBLE, w->avg_fps,
      "in-flight", G_TYPE_DOUBLE, (gdouble) in_flight,
      "overlap", G_TYPE_DOUBLE, w->overlap,
      "efficiency", G_TYPE_DOUBLE, w->efficiency,
      "bound-by", G_TYPE_STRING, w->bound_by, NULL);
  set_time (structure, "upstream-time", w->upstream);
  set_time (structure, "wake-time", w->engine.part[CSF_PART_WAKE]);
  set_time (structure, "staging-time", w->engine.part[CSF_PART_STAGING]);
  set_time (structure, "submit-time", w->engine.part[CSF_PART_SUBMIT]);
  set_time (structure, "upload-time", w->engine.part[CSF_PART_UPLOAD]);
  set_time (structure, "kernel-time", w->engine.part[CSF_PART_KERNEL]);
  set_time (structure, "records-time", w->engine.part[CSF_PART_RECORDS]);
  set_time (structure, "download-time", w->engine.part[CSF_PART_DOWNLOAD]);
  set_time (structure, "finish-time", w->engine.part[CSF_PART_FINISH]);
  set_time (structure, "downstream-time", w->downstream);
  set_time (structure, "latency", w->latency);
  set_load_fields (structure, &w->load);
  g_mutex_unlock (&stats->lock);
  return structure;
}

static void
append_stages (GString * line, gdouble upload, gdouble kernel, gdouble download, gdouble overlap,
    const csf_summary * latency)
{
  g_string_append_printf (line, "upload: %.1f us, kernel: %.1f us, download: %.1f us, overlap: %.2f, "
      "latency: %.2f ms (99 %% within %.2f), ", upload / 1e3, kernel / 1e3, download / 1e3, overlap,
      (gdouble) latency->mean_ns / 1e6, (gdouble) latency->p99_ns / 1e6);
}

static void
append_summary_locked (GString * line, const GstCsfStats * stats)
{
  const Work *run = &stats->run;
  const csf_summary latency = csf_distribution_summarize (&stats->run_latency);
  const gdouble frames = MAX (run->frames, 1);

  g_string_append_printf (line, "avg-fps: %.2f, time: %.2f s, ", stats->window.avg_fps,
      run->time / 1e9);
  append_stages (line, run->part[CSF_PART_UPLOAD] / frames, run->part[CSF_PART_KERNEL] / frames,
      run->part[CSF_PART_DOWNLOAD] / frames, stages_of (run) / MAX (run->time, 1), &latency);
}

static void
append_window_locked (GString * line, const GstCsfStats * stats)
{
  const Window *w = &stats->window;

  g_string_append_printf (line, "fps: %.2f, avg-fps: %.2f, ", w->fps, w->avg_fps);
  append_stages (line, (gdouble) w->engine.part[CSF_PART_UPLOAD].mean_ns,
      (gdouble) w->engine.part[CSF_PART_KERNEL].mean_ns,
      (gdouble) w->engine.part[CSF_PART_DOWNLOAD].mean_ns, w->overlap, &w->latency);
  if (w->load.has_utilization)
    g_string_append_printf (line, "gpu: %.0f %%, ", w->load.utilization);
}

gchar *
gst_csf_stats_to_line (GstCsfStats * stats, gboolean summary)
{
  GString *line = g_string_new (NULL);

  g_mutex_lock (&stats->lock);
  g_string_append_printf (line, "processed: %" G_GUINT64_FORMAT ", dropped: %" G_GUINT64_FORMAT ", ",
      stats->processed, stats->dropped);
  if (summary)
    append_summary_locked (line, stats);
  else
    append_window_locked (line, stats);
  g_string_append_printf (line, "backend: %s, bound-by: %s",
      stats->backend != NULL ? stats->backend : "none",
      summary ? verdict_locked (stats, &stats->run) : stats->window.bound_by);
  g_mutex_unlock (&stats->lock);
  return g_string_free (line, FALSE);
}
