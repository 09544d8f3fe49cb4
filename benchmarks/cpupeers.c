/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The C path beside GStreamer's own element for the same job: a core against a core.  Both work in this one
 * thread, frame about, and what is compared is this thread's processor time.  No GPU is used. */
#include <gst/check/gstharness.h>
#include <gst/video/video.h>
#include <time.h>

#include "bench.h"
#include "kernels/format.h"

typedef struct job
{
  const char *kernel, *params;  /* "name=value" with ';' between, or NULL */
  const char *element;          /* as gst-launch has it */
  const char *format, *peer_format;     /* of ours and theirs: they do not always have the same */
  const char *out_format;       /* NULL: as the input */
  int width, height, out_width, out_height;     /* out 0: as the input */
  bool in_place;                /* the element writes into its input */
} job;

#define SIZE 1920, 1080
#define BALANCE "brightness=0.05;contrast=1.2;saturation=1.3;hue=0.1"
#define THEIR_BALANCE "videobalance brightness=0.05 contrast=1.2 saturation=1.3 hue=0.1"
#define BALANCE_JOB(format) {"videobalance", BALANCE, THEIR_BALANCE, format, format, NULL, SIZE, 0, 0, true}
#define SCALE_JOB(format, width, height, out_width, out_height) \
  {"convertscale", "method=bilinear", "videoscale method=bilinear add-borders=false n-threads=1", format, \
    format, NULL, width, height, out_width, out_height, false}, \
  {"convertscale", "method=bicubic", "videoscale method=catrom add-borders=false n-threads=1", format, \
    format, NULL, width, height, out_width, out_height, false}
#define CONVERT_JOB(format, out) \
  {"convertscale", NULL, "videoconvert n-threads=1", format, format, out, SIZE, 0, 0, false}

static const job jobs[] = {
  BALANCE_JOB ("NV12"), BALANCE_JOB ("I420"), BALANCE_JOB ("YUY2"), BALANCE_JOB ("RGBA"), BALANCE_JOB ("RGB"),
  SCALE_JOB ("NV12", 1920, 1080, 1280, 720),
  SCALE_JOB ("I420", 1920, 1080, 1280, 720),
  SCALE_JOB ("RGBA", 1920, 1080, 1280, 720),
  SCALE_JOB ("NV12", 1280, 720, 1920, 1080),
  SCALE_JOB ("RGBA", 1280, 720, 1920, 1080),
  CONVERT_JOB ("NV12", "RGBA"), CONVERT_JOB ("I420", "RGBA"), CONVERT_JOB ("RGBA", "NV12"),
  CONVERT_JOB ("RGBA", "I420"),
  /* Theirs takes AYUV alone, and blurs its luma; ours blurs all there is. */
  {"gaussianblur", "sigma=2", "gaussianblur sigma=2", "GRAY8", "AYUV", NULL, SIZE, 0, 0, false},
  {"gaussianblur", "sigma=2", "gaussianblur sigma=2", "NV12", "AYUV", NULL, SIZE, 0, 0, false},
  {"gaussianblur", "sigma=2", "gaussianblur sigma=2", "RGBA", "AYUV", NULL, SIZE, 0, 0, false},
};

static double
thread_ms (void)
{
  struct timespec now;

  clock_gettime (CLOCK_THREAD_CPUTIME_ID, &now);
  return (double) now.tv_sec * 1e3 + (double) now.tv_nsec / 1e6;
}

static GstCaps *
caps_of (const char *format, int width, int height)
{
  return gst_caps_new_simple ("video/x-raw", "format", G_TYPE_STRING, format, "width", G_TYPE_INT, width,
      "height", G_TYPE_INT, height, "framerate", GST_TYPE_FRACTION, 30, 1, "pixel-aspect-ratio",
      GST_TYPE_FRACTION, 1, 1, "colorimetry", G_TYPE_STRING,
      g_str_has_prefix (format, "RGB") ? "sRGB" : "bt709", NULL);
}

/* ---- theirs -------------------------------------------------------------------------------- */

typedef struct theirs
{
  GstHarness *harness;
  GstBuffer *input;
} theirs;

static bool
open_theirs (theirs *self, const job *work)
{
  gchar **words = g_strsplit (work->element, " ", 2);
  GstElementFactory *factory = gst_element_factory_find (words[0]);
  GstVideoInfo info;
  GstCaps *caps;

  g_strfreev (words);
  if (factory == NULL)
    return false;
  gst_object_unref (factory);
  caps = caps_of (work->peer_format, work->width, work->height);
  gst_video_info_from_caps (&info, caps);
  self->harness = gst_harness_new_parse (work->element);
  gst_harness_set_caps (self->harness, caps, caps_of (work->out_format != NULL ? work->out_format :
          work->peer_format, work->out_width > 0 ? work->out_width : work->width,
          work->out_height > 0 ? work->out_height : work->height));
  self->input = gst_buffer_new_allocate (NULL, info.size, NULL);
  {
    GstMapInfo map;

    gst_buffer_map (self->input, &map, GST_MAP_WRITE);
    bench_fill (map.data, map.size);
    gst_buffer_unmap (self->input, &map);
  }
  return true;
}

static double
time_theirs (theirs *self, const job *work)
{
  GstBuffer *frame = work->in_place ? gst_buffer_copy_deep (self->input) :
      gst_buffer_ref (self->input);
  double begin = thread_ms (), took;

  if (gst_harness_push (self->harness, frame) != GST_FLOW_OK)
    g_error ("%s does not take a frame", work->element);
  took = thread_ms () - begin;
  gst_buffer_unref (gst_harness_pull (self->harness));
  return took;
}

static void
close_theirs (theirs *self)
{
  gst_buffer_unref (self->input);
  gst_harness_teardown (self->harness);
}

/* ---- ours ---------------------------------------------------------------------------------- */

typedef struct ours
{
  const csfk_kernel *kernel;
  csfk_frame frame;
  unsigned char *in, *out;
  unsigned char params[CSFK_MAX_PARAMS] __attribute__ ((aligned (16)));
} ours;

static void
set_params (ours *self, const char *text)
{
  gchar **pairs = g_strsplit (text != NULL ? text : "", ";", -1);

  csfk_params_init (self->kernel, self->params);
  for (gchar **pair = pairs; *pair != NULL; pair++) {
    gchar **parts = g_strsplit (*pair, "=", 2);

    if (csfk_params_set_text (self->kernel, self->params, parts[0], parts[1], NULL) != CSFK_PARAM_OK
        && csfk_params_set (self->kernel, self->params, parts[0], g_ascii_strtod (parts[1], NULL),
            NULL) != CSFK_PARAM_OK)
      g_error ("%s: %s", self->kernel->name, *pair);
    g_strfreev (parts);
  }
  g_strfreev (pairs);
  if (self->kernel->resolve != NULL)
    self->kernel->resolve (self->params);
}

static unsigned char *
place (csfk_image *image, const char *format, int width, int height)
{
  unsigned char *data;
  size_t size;

  csfk_image_init (image, csfk_format_from_name (format), width, height);
  if (!csfk_format_get_info (image->format)->is_rgb)
    image->matrix = CSFK_MATRIX_BT709;
  size = csfk_image_place (image, NULL, 4);
  data = g_malloc (size);
  csfk_image_place (image, data, 4);
  bench_fill (data, size);
  return data;
}

static bool
open_ours (ours *self, const job *work)
{
  self->kernel = csfk_kernel_find (work->kernel);
  if (self->kernel == NULL)
    return false;
  memset (&self->frame, 0, sizeof self->frame);
  set_params (self, work->params);
  self->in = place (&self->frame.in, work->format, work->width, work->height);
  self->out = place (&self->frame.out, work->out_format != NULL ? work->out_format : work->format,
      work->out_width > 0 ? work->out_width : work->width,
      work->out_height > 0 ? work->out_height : work->height);
  return true;
}

static double
time_ours (ours *self)
{
  double begin = thread_ms ();

  self->kernel->process (&self->frame, self->params);
  return thread_ms () - begin;
}

/* ---- both ---------------------------------------------------------------------------------- */

static void
measure (const job *work, const bench_options *options, bench_report *report)
{
  enum
  { MOST = 41 };
  const unsigned n = options->quick ? 5 : MOST;
  double our_times[MOST], their_times[MOST], our_ms, their_ms;
  bench_row row;
  theirs them;
  ours us;

  if (!bench_wants (options, "cpu/%s/%s", work->kernel, work->format) || !open_ours (&us, work))
    return;
  if (!open_theirs (&them, work)) {
    g_printerr ("%s is not installed\n", work->element);
    g_free (us.in);
    g_free (us.out);
    return;
  }
  for (unsigned i = 0; i < 3; i++) {
    time_ours (&us);
    time_theirs (&them, work);
  }
  for (unsigned i = 0; i < n; i++) {
    our_times[i] = time_ours (&us);
    their_times[i] = time_theirs (&them, work);
  }
  our_ms = bench_median (our_times, n);
  their_ms = bench_median (their_times, n);
  bench_row_init (&row, 1e3 / our_ms, 0, "cpu/%s%s%s/%dx%d/%s%s%s%s", work->kernel,
      work->params != NULL && strchr (work->params, ';') == NULL ? "/" : "",
      work->params != NULL && strchr (work->params, ';') == NULL ? work->params : "", work->width,
      work->height, work->format, work->out_width > 0 ? "/to-" : "", work->out_width > 0 ?
      (work->out_width > work->width ? "1920x1080" : "1280x720") : work->out_format != NULL ? "/to-" : "",
      work->out_format != NULL ? work->out_format : "");
  bench_row_add_peer (&row, work->element, 1e3 / their_ms);
  bench_report_add (report, &row);
  g_print ("  %-52s %8.3f ms, %s %8.3f ms: %.2f times as fast\n", row.name, our_ms, work->peer_format,
      their_ms, their_ms / our_ms);
  close_theirs (&them);
  g_free (us.in);
  g_free (us.out);
}

/* The processor's name, where the system tells it. */
static void
describe_processor (char *name, gsize size)
{
  gchar *text = NULL, *at;

  g_strlcpy (name, "CPU", size);
  if (!g_file_get_contents ("/proc/cpuinfo", &text, NULL, NULL))
    return;
  at = strstr (text, "model name");
  at = at == NULL ? NULL : strchr (at, ':');
  if (at != NULL) {
    at[strcspn (at, "\n")] = '\0';
    g_strlcpy (name, g_strstrip (at + 1), size);
  }
  g_free (text);
}

int
main (int argc, char **argv)
{
  bench_options options;
  bench_report report = { 0 };
  gchar *version;

  gst_init (NULL, NULL);
  bench_options_parse (&options, argc, argv, "times the C path and GStreamer's own elements, a core "
      "against a core");
  version = gst_version_string ();
  describe_processor (report.device, sizeof report.device);
  g_strlcpy (report.gstreamer, version, sizeof report.gstreamer);
  for (unsigned i = 0; i < G_N_ELEMENTS (jobs); i++)
    measure (&jobs[i], &options, &report);
  g_free (version);
  return bench_report_finish (&report, &options) ? 0 : 1;
}
