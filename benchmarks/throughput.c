/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The program throughput: frames a second of cudastreamfilter between a source and a fakesink,
 * beside what the bus allows, the plain loop, the engine alone and the elements a user has without
 * it, all in one run and from one source. */
#include <glib/gstdio.h>
#include <gst/gst.h>
#include <stdio.h>

#include "benchpipeline.h"
#include "busloop.h"
#include "engineloop.h"
#include "gstbenchsrc.h"
#include "kernels/format.h"

/* The plain loop a programmer would write has three streams: up, kernel, down. */
#define PLAIN_STREAMS 3

typedef struct
{
  const bench_options *options;
  bench_report report;
  csf_device *device;
  busloop *bus;                 /* NULL on the CPU */
  gboolean failed;
} Run;

static void
complain (Run * run, const gchar * what, const gchar * text)
{
  fflush (stdout);
  fprintf (stderr, "throughput: %s: %s\n", what, text);
  run->failed = TRUE;
}

/* ---- one pipeline -------------------------------------------------------------------------- */

/* SRC ! description ! fakesink, with system memory into the sink: cudadownload does nothing
 * where it may. NULL when an element is missing or they do not link. */
static GstElement *
build_pipeline (const bench_size * size, const gchar * description, guint source_buffers,
    GError ** error)
{
  GstElement *pipeline = gst_pipeline_new (NULL);
  GstElement *src = gst_bench_src_new (size->format, size->width, size->height, NULL,
      source_buffers);
  GstElement *sink = gst_element_factory_make ("fakesink", "sink");
  GstElement *middle =
      gst_parse_bin_from_description_full (description, TRUE, NULL, GST_PARSE_FLAG_FATAL_ERRORS,
      error);
  GstCaps *caps;
  gboolean linked;

  if (middle == NULL || sink == NULL) {
    gst_object_unref (gst_object_ref_sink (src));
    gst_clear_object (&sink);
    gst_clear_object (&middle);
    gst_object_unref (pipeline);
    return NULL;
  }
  gst_bin_add_many (GST_BIN (pipeline), src, middle, sink, NULL);
  caps = gst_caps_new_empty_simple ("video/x-raw");
  linked = gst_element_link (src, middle) && gst_element_link_filtered (middle, sink, caps);
  gst_caps_unref (caps);
  if (!linked) {
    g_set_error (error, GST_CORE_ERROR, GST_CORE_ERROR_NEGOTIATION, "the elements do not link");
    gst_object_unref (pipeline);
    return NULL;
  }
  return pipeline;
}

/* FALSE: *problem says why; the caller frees it. */
static gboolean
measure_pipeline (const bench_size * size, const gchar * description,
    const bench_options * options, BenchMeasured * measured, gchar ** problem)
{
  GError *error = NULL;
  GstElement *pipeline;
  bench_meter meter;

  memset (measured, 0, sizeof *measured);
  bench_meter_init (&meter, options->quick);
  /* Not before every buffer was filled, which is slower than what is measured. */
  meter.warm_frames += 2 * options->source_buffers;
  pipeline = build_pipeline (size, description, options->source_buffers, &error);
  if (pipeline == NULL) {
    *problem = g_strdup (error != NULL ? error->message : "an element is missing");
    g_clear_error (&error);
    return FALSE;
  }
  return bench_pipeline_measure (pipeline, &meter, measured, problem);
}

/* ---- a frame size's common figures --------------------------------------------------------- */

typedef struct
{
  busloop_limits limits;
  gdouble plain;
  gdouble upload_download, upload_queue_download;       /* 0: not measured */
} Common;

static gdouble
measure_peer (Run * run, const bench_size * size, const gchar * name, const gchar * description)
{
  BenchMeasured measured;
  gchar *problem = NULL;

  if (!measure_pipeline (size, description, run->options, &measured, &problem)) {
    complain (run, name, problem);
    g_free (problem);
  }
  return measured.fps;
}

static gboolean
has_peers (Run * run)
{
  gboolean found = bench_has_element ("cudaupload") && bench_has_element ("cudadownload");

  if (run->options->no_peers || run->bus == NULL)
    return FALSE;
  if (!found)
    complain (run, "peers", "there is no cudaupload and cudadownload here (GStreamer's nvcodec "
        "plugin, with a GPU that it accepts); --no-peers leaves them out");
  return found;
}

static gboolean
measure_common (Run * run, const bench_size * size, const csfk_kernel * kernel, Common * common)
{
  gchar text[256] = "";
  csf_layout layout;
  gboolean quick = run->options->quick;

  if (run->bus == NULL)
    return TRUE;
  bench_layout (size, &layout);
  if (!busloop_measure_limits (run->bus, &layout, kernel, quick, &common->limits, text)
      || !busloop_measure_loop (run->bus, &layout, kernel, PLAIN_STREAMS, quick, &common->plain,
          text)) {
    complain (run, "limits", text);
    return FALSE;
  }
  return TRUE;
}

static void
measure_peers (Run * run, const bench_size * size, Common * common)
{
  if (!has_peers (run))
    return;
  common->upload_download = measure_peer (run, size, "cudaupload ! cudadownload",
      "cudaupload ! " BENCH_IN_CUDA_MEMORY " ! cudadownload");
  common->upload_queue_download = measure_peer (run, size,
      "cudaupload ! queue ! cudadownload",
      "cudaupload ! " BENCH_IN_CUDA_MEMORY " ! queue max-size-buffers=3 max-size-bytes=0 "
      "max-size-time=0 ! cudadownload");
}

/* What source and sink could do alone: far more than any row below, or those mean nothing. */
static void
report_source (Run * run, const bench_size * size)
{
  BenchMeasured measured;
  gchar *problem = NULL;
  bench_row row;

  if (!measure_pipeline (size, "identity silent=true", run->options, &measured, &problem)) {
    complain (run, "source", problem);
    g_free (problem);
    return;
  }
  bench_row_init (&row, measured.fps, 0, "source/%dx%d/%s", size->width, size->height,
      size->format);
  bench_row_add_extra (&row, "cpu-us", measured.cpu_us);
  bench_report_add (&run->report, &row);
}

static void
report_limits (Run * run, const bench_size * size, const gchar * kernel, const Common * common)
{
  bench_row row;

  if (run->bus == NULL)
    return;
  bench_row_init (&row, common->limits.limit, common->limits.limit, "bus/%s/%dx%d/%s", kernel,
      size->width, size->height, size->format);
  bench_row_add_peer (&row, "plain loop", common->plain);
  bench_row_add_extra (&row, "upload-fps", common->limits.upload);
  bench_row_add_extra (&row, "download-fps", common->limits.download);
  bench_row_add_extra (&row, "upload-both-fps", common->limits.upload_both);
  bench_row_add_extra (&row, "download-both-fps", common->limits.download_both);
  bench_row_add_extra (&row, "both-fps", common->limits.both);
  bench_row_add_extra (&row, "kernel-fps", common->limits.kernel);
  g_strlcpy (row.bound_by, common->limits.limited_by, sizeof row.bound_by);
  bench_report_add (&run->report, &row);
}

/* ---- the element --------------------------------------------------------------------------- */

static void
add_stats (Run * run, bench_row * row, const csfk_kernel * kernel, const GstStructure * stats)
{
  const gchar *bound_by = gst_structure_get_string (stats, "bound-by");
  gdouble copies = bench_stat (stats, "host-copies");
  gdouble growths = bench_stat (stats, "pool-growths");

  bench_row_add_extra (row, "host-copies", copies);
  bench_row_add_extra (row, "pool-growths", growths);
  bench_row_add_extra (row, "overlap", bench_stat (stats, "overlap"));
  bench_row_add_extra (row, "efficiency", bench_stat (stats, "efficiency"));
  bench_row_add_extra (row, "upload-us", bench_stat (stats, "upload-time") / 1e3);
  bench_row_add_extra (row, "kernel-us", bench_stat (stats, "kernel-time") / 1e3);
  bench_row_add_extra (row, "download-us", bench_stat (stats, "download-time") / 1e3);
  bench_row_add_extra (row, "pinned-bytes", bench_stat (stats, "pinned-bytes"));
  bench_row_add_extra (row, "device-bytes", bench_stat (stats, "device-bytes"));
  if (bound_by != NULL)
    g_strlcpy (row->bound_by, bound_by, sizeof row->bound_by);
  /* A kernel's records get more room when more come than ever did. */
  if (run->options->check && (copies != 0 || (growths != 0 && kernel->record_size == 0))) {
    gchar *text = g_strdup_printf ("expected no host copy and no pool growth, got %.0f and %.0f",
        copies, growths);

    complain (run, row->name, text);
    g_free (text);
  }
}

static gdouble
measure_engine (Run * run, const bench_size * size, const csfk_kernel * kernel, guint streams)
{
  engineloop_result result;
  csf_layout layout;
  const engineloop_setup setup = {
    .device = run->device,
    .layout = &layout,
    .kernel = kernel,
    .streams = streams,
    .quick = run->options->quick,
  };
  csf_error error;

  bench_layout (size, &layout);
  if (engineloop_measure (&setup, &result, &error) != CSF_OK)
    complain (run, "engine", error.text);
  return result.fps;
}

/* properties: more of them.  FALSE: it was complained of. */
static gboolean
measure_element (Run * run, const bench_size * size, const csfk_kernel * kernel, guint streams,
    const gchar * properties, BenchMeasured * measured)
{
  gchar *description = g_strdup_printf ("cudastreamfilter name=filter backend=%s kernel=%s "
      "num-streams=%u fps-update-interval=%u %s", run->options->cpu ? "cpu" : "cuda", kernel->name,
      streams, run->options->quick ? 100 : 500, properties);
  gchar *problem = NULL;
  gboolean good = measure_pipeline (size, description, run->options, measured, &problem);

  if (!good)
    complain (run, description, problem);
  g_free (problem);
  g_free (description);
  return good;
}

/* What a trace of every frame costs. */
static void
report_trace (Run * run, const bench_size * size, const csfk_kernel * kernel, guint streams,
    gdouble without)
{
  gchar *location = g_strdup_printf ("%s/csf-bench-%u.json", g_get_tmp_dir (), g_random_int ());
  gchar *property = g_strdup_printf ("trace-location=%s", location);
  BenchMeasured measured;
  bench_row row;

  if (measure_element (run, size, kernel, streams, property, &measured)) {
    bench_row_init (&row, measured.fps, without, "trace/system/%s/%dx%d/%s/streams=%u", kernel->name,
        size->width, size->height, size->format, streams);
    bench_row_add_extra (&row, "cpu-us", measured.cpu_us);
    g_clear_pointer (&measured.stats, gst_structure_free);
    bench_report_add (&run->report, &row);
  }
  g_remove (location);
  g_free (property);
  g_free (location);
}

static void
report_element (Run * run, const bench_size * size, const csfk_kernel * kernel, guint streams,
    const Common * common)
{
  gdouble engine = measure_engine (run, size, kernel, streams);
  BenchMeasured measured;
  bench_row row;

  if (!measure_element (run, size, kernel, streams, "", &measured))
    return;
  bench_row_init (&row, measured.fps, common->limits.limit,
      "throughput/system/%s/%dx%d/%s/streams=%u", kernel->name, size->width, size->height,
      size->format, streams);
  bench_row_add_peer (&row, "plain loop", common->plain);
  bench_row_add_peer (&row, "engine", engine);
  bench_row_add_peer (&row, "cudaupload ! cudadownload", common->upload_download);
  bench_row_add_peer (&row, "cudaupload ! queue ! cudadownload", common->upload_queue_download);
  bench_row_add_extra (&row, "least", measured.least);
  bench_row_add_extra (&row, "most", measured.most);
  bench_row_add_extra (&row, "cpu-us", measured.cpu_us);
  if (measured.stats != NULL) {
    add_stats (run, &row, kernel, measured.stats);
    gst_structure_free (measured.stats);
  }
  bench_report_add (&run->report, &row);
  if (run->options->trace)
    report_trace (run, size, kernel, streams, measured.fps);
}

static gboolean
wants_streams (Run * run, const bench_size * size, const gchar * kernel, guint streams)
{
  return bench_wants (run->options, "throughput/system/%s/%dx%d/%s/streams=%u", kernel,
      size->width, size->height, size->format, streams);
}

static gboolean
wants_kernel (Run * run, const bench_size * size, const gchar * kernel)
{
  for (guint i = 0; i < run->options->n_streams; i++)
    if (wants_streams (run, size, kernel, run->options->streams[i]))
      return TRUE;
  return FALSE;
}

static void
measure_size (Run * run, const bench_size * size)
{
  const bench_options *options = run->options;
  Common common = { {0} };
  gboolean begun = FALSE;

  for (guint k = 0; k < options->n_kernels; k++) {
    const csfk_kernel *kernel = csfk_kernel_find (options->kernels[k]);

    if (!wants_kernel (run, size, kernel->name))
      continue;
    if (!begun) {
      report_source (run, size);
      measure_peers (run, size, &common);
      begun = TRUE;
    }
    if (!measure_common (run, size, kernel, &common))
      return;
    report_limits (run, size, kernel->name, &common);
    for (guint i = 0; i < options->n_streams; i++)
      if (wants_streams (run, size, kernel->name, options->streams[i]))
        report_element (run, size, kernel, options->streams[i], &common);
  }
}

/* ---- the program --------------------------------------------------------------------------- */

static gboolean
open_run (Run * run)
{
  csf_error error;
  gchar text[256] = "";

  if (csf_device_open (run->options->cpu ? CSF_BACKEND_CPU : CSF_BACKEND_CUDA, -1, &run->device,
          &error) != CSF_OK) {
    complain (run, "device", error.text);
    return FALSE;
  }
  g_strlcpy (run->report.device, csf_device_get_info (run->device)->name,
      sizeof run->report.device);
  if (!run->options->cpu) {
    run->bus = busloop_open (text);
    if (run->bus == NULL) {
      complain (run, "device", text);
      return FALSE;
    }
    busloop_describe (run->bus, &run->report);
  }
  return TRUE;
}

int
main (int argc, char **argv)
{
  bench_options options;
  Run run = {.options = &options };
  guint major, minor, micro, nano;

  bench_options_parse (&options, argc, argv,
      "Measures cudastreamfilter between a source and a fakesink, and its peers.\n"
      "GST_PLUGIN_PATH names the folder of the plugin.");
  gst_init (NULL, NULL);
  gst_version (&major, &minor, &micro, &nano);
  g_snprintf (run.report.gstreamer, sizeof run.report.gstreamer, "%u.%u.%u", major, minor, micro);
  if (open_run (&run)) {
    printf ("%s, driver %s, CUDA %s, GStreamer %s\n", run.report.device,
        options.driver != NULL ? options.driver : run.report.driver, run.report.cuda,
        run.report.gstreamer);
    for (const bench_size * size = bench_sizes; size->format != NULL; size++)
      measure_size (&run, size);
  }
  busloop_close (run.bus);
  csf_device_unref (run.device);
  if (!bench_report_finish (&run.report, &options))
    run.failed = TRUE;
  gst_deinit ();
  return run.failed ? 1 : 0;
}
