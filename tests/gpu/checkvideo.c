/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A real video through every kernel: decoded on the GPU and filtered there, and filtered on the CPU, must give
 * the same pictures to the byte.  A region follows the face in it.  With a folder as argument it also leaves
 * a picture of each kernel's output there.  Exit status 77: no GPU, no decoder or no video. */
#include <gst/gst.h>
#include <gst/video/video.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/format.h"

#define N_FRAMES 60
/* Shown: by then the background and the noise are known, and the face is where the region says. */
#define SHOWN 40

typedef struct run
{
  GChecksum *sums[N_FRAMES];
  guint n;
} run;

typedef struct work
{
  const gchar *kernel, *params, *caps;
} work;

static const work works[] = {
  {"copy", "", ""},
  {"sobel", "", ""},
  {"gaussianblur", "sigma=3.0", ""},
  {"videobalance", "contrast=1.3,saturation=1.5,hue=0.1,gamma=1.2", ""},
  {"convertscale", "method=bicubic", ",format=RGBA,width=500,height=301"},
  {"convertscale", "", ",width=1280,height=960"},
  {"temporaldenoise", "", ""},
  {"motiondetect", "", ""},
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

static gboolean
compare (const work * self)
{
  gchar *cuda = line_of (self, "cuda", "", "fakesink name=sink");
  gchar *cpu = line_of (self, "cpu", "cudadownload ! video/x-raw !", "fakesink name=sink");
  run on_cuda = { {NULL}, 0 }, on_cpu = { {NULL}, 0 };
  gboolean same = play (cuda, &on_cuda) && play (cpu, &on_cpu) && on_cuda.n == on_cpu.n
      && on_cuda.n >= N_FRAMES - 1;

  for (guint i = 0; i < on_cuda.n && same; i++)
    if (!g_str_equal (g_checksum_get_string (on_cuda.sums[i]), g_checksum_get_string (on_cpu.sums[i]))) {
      g_printerr ("%s %s: frame %u differs\n", self->kernel, self->params, i);
      same = FALSE;
    }
  g_print ("%s %s %s%s: %u and %u frames\n", same ? "ok" : "FAILED", self->kernel, self->params, self->caps,
      on_cuda.n, on_cpu.n);
  for (guint i = 0; i < N_FRAMES; i++) {
    g_clear_pointer (&on_cuda.sums[i], g_checksum_free);
    g_clear_pointer (&on_cpu.sums[i], g_checksum_free);
  }
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
