/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The program cudamemory: frames a second of cudastreamfilter where frames come and go in CUDA
 * memory, beside the kernel alone on the device, and behind NVDEC beside the decoder alone.
 * What is compared is measured in turns, several times, in one run. */
#include <glib/gstdio.h>
#include <stdio.h>
#include <string.h>

#include "benchpipeline.h"
#include "busloop.h"
#include "gstbenchsrc.h"
#include "kernels/format.h"

#define NOT_HERE 77
#define MAX_ROUNDS 5
#define KERNEL_ROUNDS 3
#define MAX_STREAMS BENCH_MAX_LIST
/* The kernel alone is measured on one stream and on as many as the element has by default. */
#define KERNEL_STREAMS 3
/* A kernel with a sigma gets the least one with which a frame takes so long. */
#define LEAST_KERNEL_US 200
/* The file: a short one, many times over, so that no decoder comes to its end while it is
 * measured. */
#define FILE_FRAMES 240
#define FILE_COPIES 24

typedef struct
{
  const bench_options *options;
  bench_report report;
  busloop *bus;
  guint rounds;
  gboolean failed;
} Run;

/* What the rounds of one pipeline or kernel showed. */
typedef struct
{
  gdouble rates[MAX_ROUNDS], cpu_us[MAX_ROUNDS];
  guint n;
  gdouble copies, growths;      /* of the last round, -1: not told */
  gchar bound_by[24];
} Series;

static void
complain (Run * run, const gchar * what, const gchar * text)
{
  fflush (stdout);
  fprintf (stderr, "cudamemory: %s: %s\n", what, text);
  run->failed = TRUE;
}

/* The median; sorts. */
static gdouble
series_rate (Series * series)
{
  return bench_median (series->rates, series->n);
}

static void
add_series (bench_row * row, Series * series)
{
  /* Sorted by now. */
  bench_row_add_extra (row, "least", series->rates[0]);
  bench_row_add_extra (row, "most", series->rates[series->n - 1]);
  bench_row_add_extra (row, "cpu-us", bench_median (series->cpu_us, series->n));
  if (series->copies >= 0) {
    bench_row_add_extra (row, "host-copies", series->copies);
    bench_row_add_extra (row, "pool-growths", series->growths);
  }
  g_strlcpy (row->bound_by, series->bound_by, sizeof row->bound_by);
}

/* Plays the pipeline once and adds what it showed.  Takes the pipeline. */
static gboolean
measure_once (Run * run, const gchar * what, GstElement * pipeline, guint warm_frames,
    Series * series)
{
  BenchMeasured measured;
  gchar *problem = NULL;
  bench_meter meter;

  bench_meter_init (&meter, run->options->quick);
  meter.warm_frames += warm_frames;
  meter.stretches = MIN (meter.stretches, 4);
  if (!bench_pipeline_measure (pipeline, &meter, &measured, &problem)) {
    complain (run, what, problem);
    g_free (problem);
    return FALSE;
  }
  series->rates[series->n] = measured.fps;
  series->cpu_us[series->n++] = measured.cpu_us;
  series->copies = series->growths = -1;
  if (measured.stats != NULL) {
    const gchar *bound_by = gst_structure_get_string (measured.stats, "bound-by");

    series->copies = bench_stat (measured.stats, "host-copies");
    series->growths = bench_stat (measured.stats, "pool-growths");
    g_strlcpy (series->bound_by, bound_by != NULL ? bound_by : "", sizeof series->bound_by);
    gst_structure_free (measured.stats);
  }
  return TRUE;
}

static GstElement *
parse_pipeline (Run * run, const gchar * what, const gchar * line)
{
  GError *error = NULL;
  GstElement *pipeline = gst_parse_launch_full (line, NULL, GST_PARSE_FLAG_FATAL_ERRORS, &error);

  if (error != NULL) {
    complain (run, what, error->message);
    g_error_free (error);
  }
  return pipeline;
}

/* ---- CUDA memory in and out ---------------------------------------------------------------- */

/* A kernel with the parameters it is measured with. */
typedef struct
{
  const csfk_kernel *kernel;
  const bench_size *size;
  csf_layout layout;
  guint8 params[CSFK_MAX_PARAMS] __attribute__ ((aligned (16)));
  gdouble sigma;                /* 0: it has none */
} Work;

static gboolean
set_sigma (Work * work, gdouble sigma)
{
  const csfk_param *param;

  csfk_params_init (work->kernel, work->params);
  if (csfk_params_set (work->kernel, work->params, "sigma", sigma, &param) != 0)
    return FALSE;
  if (work->kernel->resolve != NULL)
    work->kernel->resolve (work->params);
  work->sigma = sigma;
  return TRUE;
}

static gboolean
measure_kernel (Run * run, const Work * work, guint streams, gdouble * fps)
{
  gchar text[256] = "";

  if (busloop_measure_kernel (run->bus, &work->layout, work->kernel, work->params, streams,
          run->options->quick, fps, text))
    return TRUE;
  complain (run, work->kernel->name, text);
  return FALSE;
}

static gboolean
choose_sigma (Run * run, Work * work)
{
  gdouble fps = 0;

  for (gdouble sigma = 2; sigma <= 10 && set_sigma (work, sigma); sigma++) {
    if (!measure_kernel (run, work, 1, &fps))
      return FALSE;
    if (1e6 / fps >= LEAST_KERNEL_US)
      return TRUE;
  }
  if (work->sigma > 0)
    printf ("%s takes %.0f us at most\n", work->kernel->name, 1e6 / fps);
  return TRUE;
}

static gboolean
measure_element (Run * run, const Work * work, guint streams, Series * series)
{
  guint buffers = run->options->source_buffers;
  gchar *params = work->sigma > 0 ? g_strdup_printf ("kernel-params=sigma=%.1f", work->sigma) :
      g_strdup ("");
  gchar *line = g_strdup_printf ("cudastreamfilter name=filter backend=cuda kernel=%s %s "
      "num-streams=%u fps-update-interval=500 ! " BENCH_IN_CUDA_MEMORY " ! fakesink name=sink",
      work->kernel->name, params, streams);
  GstElement *pipeline = parse_pipeline (run, "cudastreamfilter", line), *src, *filter;
  gboolean linked;

  g_free (params);
  g_free (line);
  if (pipeline == NULL)
    return FALSE;
  src = gst_bench_src_new (work->size->format, work->size->width, work->size->height,
      BENCH_CUDA_FEATURE, buffers);
  filter = gst_bin_get_by_name (GST_BIN (pipeline), "filter");
  gst_bin_add (GST_BIN (pipeline), src);
  linked = gst_element_link (src, filter);
  gst_object_unref (filter);
  if (!linked) {
    complain (run, "cudastreamfilter", "does not take CUDA memory");
    gst_object_unref (pipeline);
    return FALSE;
  }
  return measure_once (run, "cudastreamfilter", pipeline, 2 * buffers, series);
}

static void
report_element (Run * run, const Work * work, guint streams, Series * series, gdouble one,
    gdouble several)
{
  gdouble fps = series_rate (series), limit = MAX (one, several);
  bench_row row;

  bench_row_init (&row, fps, limit, "throughput/cuda/%s/%dx%d/%s/streams=%u", work->kernel->name,
      work->size->width, work->size->height, work->size->format, streams);
  bench_row_add_extra (&row, "frame-us", 1e6 / fps);
  bench_row_add_extra (&row, "kernel-us", 1e6 / limit);
  bench_row_add_extra (&row, "cost-us", 1e6 / fps - 1e6 / limit);
  bench_row_add_extra (&row, "kernel-1-stream-fps", one);
  bench_row_add_extra (&row, "kernel-3-streams-fps", several);
  if (work->sigma > 0)
    bench_row_add_extra (&row, "sigma", work->sigma);
  add_series (&row, series);
  bench_report_add (&run->report, &row);
  if (run->options->check && (series->copies != 0 || series->growths != 0))
    complain (run, row.name, "expected no host copy and no pool growth");
}

static gboolean
wants_streams (Run * run, const Work * work, guint streams)
{
  return bench_wants (run->options, "throughput/cuda/%s/%dx%d/%s/streams=%u", work->kernel->name,
      work->size->width, work->size->height, work->size->format, streams);
}

static void
measure_work (Run * run, Work * work)
{
  const bench_options *options = run->options;
  Series one = { {0} }, several = { {0} }, element[MAX_STREAMS] = { {{0}} };
  gboolean wanted = FALSE;

  for (guint i = 0; i < options->n_streams; i++)
    wanted |= wants_streams (run, work, options->streams[i]);
  csfk_params_init (work->kernel, work->params);
  if (!wanted || !choose_sigma (run, work))
    return;
  for (guint round = 0; round < MIN (run->rounds, KERNEL_ROUNDS); round++) {
    if (!measure_kernel (run, work, 1, &one.rates[one.n++])
        || !measure_kernel (run, work, KERNEL_STREAMS, &several.rates[several.n++]))
      return;
    for (guint i = 0; i < options->n_streams; i++)
      if (wants_streams (run, work, options->streams[i])
          && !measure_element (run, work, options->streams[i], &element[i]))
        return;
  }
  for (guint i = 0; i < options->n_streams; i++)
    if (element[i].n > 0)
      report_element (run, work, options->streams[i], &element[i], series_rate (&one),
          series_rate (&several));
}

static void
measure_kernels (Run * run)
{
  for (const bench_size * size = bench_sizes; size->format != NULL; size++) {
    if (size->width != 3840 || strcmp (size->format, "RGBA") != 0)
      continue;
    for (guint k = 0; k < run->options->n_kernels; k++) {
      Work work = {.kernel = csfk_kernel_find (run->options->kernels[k]),.size = size };

      bench_layout (size, &work.layout);
      measure_work (run, &work);
    }
  }
}

/* ---- behind the decoder -------------------------------------------------------------------- */

#define DECODE_CASE "decode/h264/1920x1080/gaussianblur"
#define FILTER "cudastreamfilter name=filter backend=cuda kernel=gaussianblur ! "

enum
{
  DECODER_ALONE,
  DECODER_DOWNLOAD,
  FILTER_DOWNLOAD,
  FILTER_SYSTEM,
  N_WAYS
};

static const struct
{
  const gchar *name, *line;
} ways[N_WAYS] = {
  [DECODER_ALONE] = {"nvh264dec", BENCH_IN_CUDA_MEMORY},
  [DECODER_DOWNLOAD] = {"nvh264dec ! cudadownload", BENCH_IN_CUDA_MEMORY " ! cudadownload ! "
        "video/x-raw"},
  [FILTER_DOWNLOAD] = {"nvh264dec ! cudastreamfilter ! cudadownload", FILTER "cudadownload ! "
        "video/x-raw"},
  [FILTER_SYSTEM] = {"nvh264dec ! cudastreamfilter", FILTER "video/x-raw"},
};

static gboolean
encode (Run * run, const gchar * path)
{
  gchar *line = g_strdup_printf ("videotestsrc num-buffers=%d pattern=ball ! video/x-raw,"
      "format=I420,width=1920,height=1080,framerate=30/1 ! %s ! "
      "video/x-h264,stream-format=byte-stream,alignment=au ! filesink location=%s",
      FILE_FRAMES, bench_has_element ("x264enc") ?
      "x264enc speed-preset=ultrafast bitrate=4000 key-int-max=240" :
      "openh264enc bitrate=4000000 gop-size=240 ! h264parse", path);
  GstElement *pipeline = parse_pipeline (run, "encoder", line);
  GstMessage *message;
  gboolean good;
  GstBus *bus;

  g_free (line);
  if (pipeline == NULL)
    return FALSE;
  bus = gst_element_get_bus (pipeline);
  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  message = gst_bus_timed_pop_filtered (bus, 60 * GST_SECOND, GST_MESSAGE_EOS | GST_MESSAGE_ERROR);
  good = message != NULL && GST_MESSAGE_TYPE (message) == GST_MESSAGE_EOS;
  if (!good)
    complain (run, "encoder", "the H.264 file was not made");
  g_clear_pointer (&message, gst_message_unref);
  gst_object_unref (bus);
  gst_element_set_state (pipeline, GST_STATE_NULL);
  gst_object_unref (pipeline);
  return good;
}

/* Each copy begins with all that a decoder needs. */
static gboolean
repeat_file (Run * run, const gchar * path)
{
  gchar *data = NULL;
  gsize size = 0;
  FILE *file;
  gboolean good;

  if (!g_file_get_contents (path, &data, &size, NULL))
    return FALSE;
  file = g_fopen (path, "ab");
  good = file != NULL;
  for (guint i = 1; i < FILE_COPIES && good; i++)
    good = fwrite (data, size, 1, file) == 1;
  if (file != NULL)
    good &= fclose (file) == 0;
  if (!good)
    complain (run, path, "cannot be written");
  g_free (data);
  return good;
}

static gboolean
measure_ways (Run * run, const gchar * path, Series * series)
{
  for (guint round = 0; round < run->rounds; round++)
    for (guint w = 0; w < N_WAYS; w++) {
      gchar *line = g_strdup_printf ("filesrc location=%s ! h264parse ! nvh264dec ! %s ! "
          "fakesink name=sink", path, ways[w].line);
      GstElement *pipeline = parse_pipeline (run, ways[w].name, line);

      g_free (line);
      if (pipeline == NULL || !measure_once (run, ways[w].name, pipeline, 0, &series[w]))
        return FALSE;
    }
  return TRUE;
}

static void
report_way (Run * run, Series * series, guint way, const gchar * suffix)
{
  gdouble alone = series_rate (&series[DECODER_ALONE]);
  bench_row row;

  bench_row_init (&row, series_rate (&series[way]), alone, DECODE_CASE "%s", suffix);
  bench_row_add_peer (&row, ways[DECODER_DOWNLOAD].name, series_rate (&series[DECODER_DOWNLOAD]));
  bench_row_add_extra (&row, "frame-us", 1e6 / row.value);
  bench_row_add_extra (&row, "cost-us", 1e6 / row.value - 1e6 / alone);
  bench_row_add_extra (&row, "decoder-least", series[DECODER_ALONE].rates[0]);
  bench_row_add_extra (&row, "decoder-most",
      series[DECODER_ALONE].rates[series[DECODER_ALONE].n - 1]);
  bench_row_add_extra (&row, "decoder-cpu-us", bench_median (series[DECODER_ALONE].cpu_us,
          series[DECODER_ALONE].n));
  add_series (&row, &series[way]);
  bench_report_add (&run->report, &row);
}

static void
measure_decoder (Run * run)
{
  Series series[N_WAYS] = { {{0}} };
  gchar *folder, *path;

  if (!bench_wants (run->options, DECODE_CASE))
    return;
  if (!bench_has_element ("nvh264dec") || !bench_has_element ("cudadownload")) {
    complain (run, "decoder", "there is no nvh264dec and cudadownload here (GStreamer's nvcodec "
        "plugin, with a GPU that it accepts); --case throughput leaves them out");
    return;
  }
  folder = g_dir_make_tmp ("csf-bench-XXXXXX", NULL);
  path = g_strdup_printf ("%s/ball.h264", folder);
  if (encode (run, path) && repeat_file (run, path) && measure_ways (run, path, series)) {
    report_way (run, series, FILTER_DOWNLOAD, "");
    report_way (run, series, FILTER_SYSTEM, "/system");
  }
  g_remove (path);
  g_rmdir (folder);
  g_free (path);
  g_free (folder);
}

/* ---- the program --------------------------------------------------------------------------- */

static gboolean
takes_cuda_memory (void)
{
  GstElementFactory *factory = gst_element_factory_find ("cudastreamfilter");
  GstCaps *caps = gst_caps_from_string (BENCH_IN_CUDA_MEMORY);
  gboolean takes = factory != NULL && gst_element_factory_can_sink_any_caps (factory, caps);

  gst_caps_unref (caps);
  gst_clear_object (&factory);
  return takes;
}

int
main (int argc, char **argv)
{
  bench_options options;
  Run run = {.options = &options };
  guint major, minor, micro, nano;
  gchar text[256] = "";

  bench_options_parse (&options, argc, argv,
      "Measures cudastreamfilter with frames in CUDA memory, and behind a decoder.\n"
      "GST_PLUGIN_PATH names the folder of the plugin.");
  run.rounds = options.quick ? 2 : MAX_ROUNDS;
  gst_init (NULL, NULL);
  if (!takes_cuda_memory ()) {
    fprintf (stderr, "cudamemory: the element here was built without libgstcuda\n");
    return NOT_HERE;
  }
  gst_version (&major, &minor, &micro, &nano);
  g_snprintf (run.report.gstreamer, sizeof run.report.gstreamer, "%u.%u.%u", major, minor, micro);
  run.bus = busloop_open (text);
  if (run.bus == NULL) {
    complain (&run, "device", text);
  } else {
    busloop_describe (run.bus, &run.report);
    printf ("%s, driver %s, CUDA %s, GStreamer %s\n", run.report.device,
        options.driver != NULL ? options.driver : run.report.driver, run.report.cuda,
        run.report.gstreamer);
    measure_kernels (&run);
    measure_decoder (&run);
  }
  busloop_close (run.bus);
  if (!bench_report_finish (&run.report, &options))
    run.failed = TRUE;
  gst_deinit ();
  return run.failed ? 1 : 0;
}
