/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A real video through every kernel: decoded on the GPU and filtered there, and filtered on the CPU, must give
 * the same pictures to the byte and the same records.  A region follows the face in it.  With a folder as
 * argument it also leaves a picture of each kernel's output there.  Exit status 77: no GPU, no decoder or no
 * video. */
#include <gst/gst.h>
#include <gst/video/video.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/format.h"

#define N_FRAMES 60
/* Shown: by then the background and the noise are known, and the face is where the region says. */
#define SHOWN 40
#define RECORDS "cudastreamfilter-records"

typedef struct run
{
  GChecksum *sums[N_FRAMES];
  GArray *records[N_FRAMES];    /* in the order of their bytes; NULL: the frame has no such meta */
  guint n, n_records;
} run;

typedef struct work
{
  const gchar *kernel, *params, *caps;
  gboolean finds;               /* something in this video */
} work;

static const work works[] = {
  {"copy", "", ""},
  {"sobel", "", ""},
  {"gaussianblur", "sigma=3.0", ""},
  {"videobalance", "contrast=1.3,saturation=1.5,hue=0.1,gamma=1.2", ""},
  {"convertscale", "method=bicubic", ",format=RGBA,width=500,height=301"},
  {"convertscale", "", ",width=1280,height=960"},
  {"temporaldenoise", "", ""},
  {"motiondetect", "", "", TRUE},
  {"cornerdetect", "", "", TRUE},
  {"histogram", "", "", TRUE},
  {"anonymize", "padding=0.1", ""},
  {"anonymize", "mode=blur,padding=0.1", ""},
  {"drawregions", "color=0", ""},
};

static const gchar *
video_path (void)
{
  static gchar *path;
  const gchar *media = g_getenv ("CSF_TEST_MEDIA");

  if (path == NULL)
    path = g_build_filename (media != NULL ? media : "../shared/media", "video", "book.mkv", NULL);
  return path;
}

/* The face of this video's first two seconds. */
static GstPadProbeReturn
mark_face (GstPad * pad, GstPadProbeInfo * info, gpointer user_data)
{
  GstBuffer *buffer = gst_buffer_make_writable (GST_PAD_PROBE_INFO_BUFFER (info));
  GstVideoRegionOfInterestMeta *roi =
      gst_buffer_add_video_region_of_interest_meta (buffer, "face", 274, 90, 66, 88);

  gst_video_region_of_interest_meta_add_param (roi, gst_structure_new ("detection", "confidence",
          G_TYPE_DOUBLE, 0.93, NULL));
  GST_PAD_PROBE_INFO_DATA (info) = buffer;
  return GST_PAD_PROBE_OK;
}

static gint
compare_bytes (gconstpointer a, gconstpointer b, gpointer size)
{
  return memcmp (a, b, GPOINTER_TO_UINT (size));
}

/* On the GPU the order in which records come is up to chance. */
static GArray *
get_records (GstBuffer * buffer)
{
  GstCustomMeta *meta = gst_buffer_get_custom_meta (buffer, RECORDS);
  const GstStructure *fields;
  GArray *records;
  gconstpointer data;
  gsize n_bytes;
  guint size;

  if (meta == NULL)
    return NULL;
  fields = gst_custom_meta_get_structure (meta);
  if (!gst_structure_get_uint (fields, "record-size", &size))
    return NULL;
  data = g_bytes_get_data (g_value_get_boxed (gst_structure_get_value (fields, "data")), &n_bytes);
  records = g_array_new (FALSE, FALSE, size);
  if (n_bytes > 0)
    g_array_append_vals (records, data, n_bytes / size);
  g_array_sort_with_data (records, compare_bytes, GUINT_TO_POINTER (size));
  return records;
}

static gboolean
are_same_records (GArray * a, GArray * b)
{
  if (a == NULL || b == NULL)
    return a == b;
  return g_array_get_element_size (a) == g_array_get_element_size (b) && a->len == b->len
      && (a->len == 0 || memcmp (a->data, b->data, (gsize) a->len * g_array_get_element_size (a)) == 0);
}

static GstPadProbeReturn
take_frame (GstPad * pad, GstPadProbeInfo * info, gpointer user_data)
{
  GstCaps *caps = gst_pad_get_current_caps (pad);
  run *self = user_data;
  GstVideoFrame frame;
  GstVideoInfo video;
  GChecksum *sum = g_checksum_new (G_CHECKSUM_SHA256);

  gst_video_info_from_caps (&video, caps);
  gst_caps_unref (caps);
  if (self->n < N_FRAMES && gst_video_frame_map (&frame, &video, GST_PAD_PROBE_INFO_BUFFER (info),
          GST_MAP_READ)) {
    csfk_image image;

    csfk_image_init (&image, csfk_format_from_name (GST_VIDEO_INFO_NAME (&video)),
        GST_VIDEO_INFO_WIDTH (&video), GST_VIDEO_INFO_HEIGHT (&video));
    for (gint p = 0; p < image.n_planes; p++)
      for (gint y = 0; y < image.plane[p].rows; y++)
        g_checksum_update (sum, (const guchar *) GST_VIDEO_FRAME_PLANE_DATA (&frame, p)
            + (gssize) y * GST_VIDEO_FRAME_PLANE_STRIDE (&frame, p), image.plane[p].row_bytes);
    gst_video_frame_unmap (&frame);
    self->records[self->n] = get_records (GST_PAD_PROBE_INFO_BUFFER (info));
    if (self->records[self->n] != NULL)
      self->n_records += self->records[self->n]->len;
    self->sums[self->n++] = sum;
  } else {
    g_checksum_free (sum);
  }
  return GST_PAD_PROBE_OK;
}

static void
add_probe (GstElement * pipeline, const gchar * element, const gchar * name, GstPadProbeCallback callback,
    gpointer data)
{
  GstElement *x = gst_bin_get_by_name (GST_BIN (pipeline), element);
  GstPad *pad = gst_element_get_static_pad (x, name);

  gst_pad_add_probe (pad, GST_PAD_PROBE_TYPE_BUFFER, callback, data, NULL);
  gst_object_unref (pad);
  gst_object_unref (x);
}

/* FALSE: it did not come to its end, and why was printed. */
static gboolean
play (const gchar * line, run * self)
{
  GError *error = NULL;
  GstElement *pipeline = gst_parse_launch (line, &error);
  GstMessage *message;
  GstBus *bus;
  gboolean ended;

  if (pipeline == NULL) {
    g_printerr ("%s: %s\n", line, error->message);
    g_clear_error (&error);
    return FALSE;
  }
  add_probe (pipeline, "x", "sink", mark_face, NULL);
  if (self != NULL)
    add_probe (pipeline, "sink", "sink", take_frame, self);
  bus = gst_element_get_bus (pipeline);
  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  message = gst_bus_timed_pop_filtered (bus, 60 * GST_SECOND, GST_MESSAGE_ERROR | GST_MESSAGE_EOS);
  ended = message != NULL && GST_MESSAGE_TYPE (message) == GST_MESSAGE_EOS;
  if (message != NULL && !ended) {
    gst_message_parse_error (message, &error, NULL);
    g_printerr ("%s: %s\n", line, error->message);
    g_clear_error (&error);
  }
  if (message != NULL)
    gst_message_unref (message);
  gst_element_set_state (pipeline, GST_STATE_NULL);
  gst_object_unref (bus);
  gst_object_unref (pipeline);
  return ended;
}

static gchar *
line_of (const work * self, const gchar * backend, const gchar * before, const gchar * after)
{
  return g_strdup_printf ("filesrc location=\"%s\" ! matroskademux ! h264parse ! nvh264dec ! "
      "identity eos-after=%d ! %s cudastreamfilter name=x backend=%s kernel=%s kernel-params=\"%s\" ! "
      "video/x-raw%s ! %s", video_path (), N_FRAMES, before, backend, self->kernel, self->params,
      self->caps, after);
}

/* FALSE: they differ, and in what was printed. */
static gboolean
compare_frame (const work * self, const run * on_cuda, const run * on_cpu, guint i)
{
  GArray *cuda = on_cuda->records[i], *cpu = on_cpu->records[i];

  if (!g_str_equal (g_checksum_get_string (on_cuda->sums[i]), g_checksum_get_string (on_cpu->sums[i]))) {
    g_printerr ("%s %s: frame %u differs\n", self->kernel, self->params, i);
    return FALSE;
  }
  if (!are_same_records (cuda, cpu)) {
    g_printerr ("%s %s: frame %u's records differ, %d on the GPU and %d on the CPU\n", self->kernel,
        self->params, i, cuda != NULL ? (gint) cuda->len : -1, cpu != NULL ? (gint) cpu->len : -1);
    return FALSE;
  }
  return TRUE;
}

static void
clear_run (run * self)
{
  for (guint i = 0; i < self->n; i++) {
    g_clear_pointer (&self->sums[i], g_checksum_free);
    g_clear_pointer (&self->records[i], g_array_unref);
  }
}

static gboolean
compare (const work * self)
{
  gchar *cuda = line_of (self, "cuda", "", "fakesink name=sink");
  gchar *cpu = line_of (self, "cpu", "cudadownload ! video/x-raw !", "fakesink name=sink");
  run on_cuda = { {NULL} }, on_cpu = { {NULL} };
  gboolean same = play (cuda, &on_cuda) && play (cpu, &on_cpu) && on_cuda.n == on_cpu.n
      && on_cuda.n >= N_FRAMES - 1;

  for (guint i = 0; i < on_cuda.n && same; i++)
    same = compare_frame (self, &on_cuda, &on_cpu, i);
  if (same && self->finds != (on_cuda.n_records > 0)) {
    g_printerr ("%s %s: %s\n", self->kernel, self->params, self->finds ? "found nothing" : "found something");
    same = FALSE;
  }
  g_print ("%s %s %s%s: %u and %u frames, %u and %u records\n", same ? "ok" : "FAILED", self->kernel, self->params,
      self->caps, on_cuda.n, on_cpu.n, on_cuda.n_records, on_cpu.n_records);
  clear_run (&on_cuda);
  clear_run (&on_cpu);
  g_free (cuda);
  g_free (cpu);
  return same;
}

/* Frame SHOWN as the GPU made it. */
static gboolean
draw (const work * self, const gchar * folder, guint number)
{
  gchar *after = g_strdup_printf ("videoconvert ! pngenc ! multifilesink location=%s/%02u-%s.png",
      folder, number, self->kernel);
  gchar *line = line_of (self, "cuda", "", after), *found = strstr (line, "eos-after=");
  gboolean drawn;

  /* A file is written anew with each frame: the last one stays. */
  found[10] = '0' + SHOWN / 10;
  found[11] = '0' + SHOWN % 10;
  drawn = play (line, NULL);
  g_free (line);
  g_free (after);
  return drawn;
}

static gboolean
is_there (const gchar * element)
{
  GstElementFactory *factory = gst_element_factory_find (element);

  if (factory == NULL) {
    g_print ("skipped: there is no %s\n", element);
    return FALSE;
  }
  gst_object_unref (factory);
  return TRUE;
}

int
main (int argc, char **argv)
{
  gboolean ok = TRUE;

  gst_init (&argc, &argv);
  if (!is_there ("cudastreamfilter") || !is_there ("nvh264dec") || !is_there ("cudadownload"))
    return 77;
  if (!g_file_test (video_path (), G_FILE_TEST_EXISTS)) {
    g_print ("skipped: no %s (CSF_TEST_MEDIA names the folder with video/ in it)\n", video_path ());
    return 77;
  }
  for (guint i = 0; i < G_N_ELEMENTS (works); i++) {
    ok &= compare (&works[i]);
    if (argc > 1)
      ok &= draw (&works[i], argv[1], i);
  }
  return ok ? 0 : 1;
}
