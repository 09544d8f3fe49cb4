/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* CUDA memory on the element's pads, on a real GPU with GStreamer's own decoder: the same pixels
 * as the CPU path in every combination of memories, shared contexts, nothing left behind, and
 * clear errors.  Pipelines run side by side and are compared frame by frame.  Makes its own H.264
 * files. */
#include <glib/gstdio.h>
#include <string.h>

#include "branch.h"
#include "engine/cuda_dl.h"

#define SKIPPED 77
#define CUDA_CAPS "video/x-raw(memory:CUDAMemory)"
#define X "cudastreamfilter name=x fps-update-interval=0 "
#define MAX_BRANCHES 5
/* Of the files; a second of them is cut off in the middle of one. */
#define FILE_FRAMES 150
#define NOISE_FRAMES 5
#define CYCLES 50
/* The driver gives memory back in pieces of 2 MiB, and keeps some for the next context. */
#define DRIVER_SLACK ((gint64) 4 << 20)

static const gchar *const kernels[] = { "copy", "sobel", "gaussianblur", NULL };
static const gchar *const formats[] = { "NV12", "I420", "YUY2", "UYVY", "P010_10LE", "RGB", "BGR",
  "RGBx", "BGRx", "RGBA", "BGRA", NULL };

static guint n_good, n_failed, n_refused;
static gchar *folder;

/* Takes the problem; NULL is success. */
static void
report (const gchar * title, gchar * problem)
{
  if (problem == NULL) {
    n_good++;
    g_print ("ok      %s\n", title);
  } else {
    n_failed++;
    g_print ("FAILED  %s: %s\n", title, problem);
  }
  g_free (problem);
}

/* ---- what the decoder gives ---------------------------------------------------------------- */

static const struct
{
  gint width, height;
} file_sizes[] = { {1920, 1080}, {1918, 1078} };

static gchar *
file_path (guint i)
{
  return g_strdup_printf ("%s/%dx%d.h264", folder, file_sizes[i].width, file_sizes[i].height);
}

static gchar *
play_to_end (GstElement * pipeline)
{
  GstBus *bus = gst_element_get_bus (pipeline);
  GstMessage *message;
  gchar *problem = NULL;

  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  message = gst_bus_timed_pop_filtered (bus, 4 * BRANCH_WAIT, GST_MESSAGE_EOS);
  if (message == NULL)
    problem = branch_take_error (pipeline, "no end");
  g_clear_pointer (&message, gst_message_unref);
  gst_object_unref (bus);
  return problem;
}

/* Moving bars with a patch of noise. */
static gchar *
make_file (guint i)
{
  GstElementFactory *x264 = gst_element_factory_find ("x264enc");
  gchar *path = file_path (i);
  gchar *line = g_strdup_printf ("videotestsrc num-buffers=%d pattern=smpte horizontal-speed=7 ! "
      "video/x-raw,format=I420,width=%d,height=%d,framerate=30/1 ! %s ! video/x-h264,"
      "stream-format=byte-stream,alignment=au ! filesink location=%s", FILE_FRAMES,
      file_sizes[i].width, file_sizes[i].height, x264 != NULL ?
      "x264enc speed-preset=ultrafast bitrate=8000 key-int-max=30" :
      "openh264enc bitrate=8000000 gop-size=30 ! h264parse", path);
  GError *error = NULL;
  GstElement *pipeline = gst_parse_launch (line, &error);
  gchar *problem;

  if (error != NULL) {
    problem = g_strdup (error->message);
    g_error_free (error);
  } else {
    problem = play_to_end (pipeline);
  }
  if (pipeline != NULL) {
    gst_element_set_state (pipeline, GST_STATE_NULL);
    gst_object_unref (pipeline);
  }
  gst_clear_object (&x264);
  g_free (line);
  g_free (path);
  return problem;
}

static gboolean
make_files (void)
{
  static gboolean made;

  for (guint i = 0; !made && i < G_N_ELEMENTS (file_sizes); i++) {
    gchar *problem = make_file (i);

    if (problem != NULL) {
      report ("making an H.264 file", problem);
      return FALSE;
    }
  }
  made = TRUE;
  return TRUE;
}

static void
compare_decoded (guint i, const gchar * kernel)
{
  static const struct
  {
    const gchar *name, *memories, *line;
  } ways[] = {
    {"CPU path", "ss", CUDA_CAPS " ! cudadownload ! " X "backend=cpu kernel=%s ! video/x-raw"},
    {"CUDA to CUDA", "cc", X "backend=cuda kernel=%s ! cudadownload ! video/x-raw"},
    {"CUDA to system", "cs", X "backend=cuda kernel=%s ! video/x-raw"},
  };
  Branch branches[G_N_ELEMENTS (ways)] = { {0} };
  gchar *path = file_path (i), *problem = NULL;
  gchar *title = g_strdup_printf ("decoder %dx%d %s", file_sizes[i].width, file_sizes[i].height,
      kernel);

  for (guint b = 0; b < G_N_ELEMENTS (ways) && problem == NULL; b++) {
    gchar **parts = g_strsplit (ways[b].line, "%s", 2);
    gchar *line = g_strdup_printf ("filesrc location=%s ! h264parse ! nvh264dec ! %s%s%s ! "
        "appsink name=sink", path, parts[0], kernel, parts[1]);

    problem = branch_open (&branches[b], ways[b].name, ways[b].memories, NULL, line);
    g_free (line);
    g_strfreev (parts);
  }
  if (problem == NULL)
    problem = branches_compare (branches, G_N_ELEMENTS (ways), FILE_FRAMES);
  for (guint b = 0; b < G_N_ELEMENTS (ways); b++)
    branch_close (&branches[b]);
  report (title, problem);
  g_free (title);
  g_free (path);
}

static void
check_decoder (void)
{
  if (!make_files ())
    return;
  for (guint i = 0; i < G_N_ELEMENTS (file_sizes); i++)
    for (guint k = 0; kernels[k] != NULL; k++)
      compare_decoded (i, kernels[k]);
}

/* ---- every format, every combination ------------------------------------------------------- */

/* The noise frames of one format and size in both memories. */
typedef struct
{
  CudaContext *context;
  GstVideoInfo info;
  GstCaps *caps[2];             /* system, CUDA */
  GstBufferPool *pool;
  GstBuffer *frames[2][NOISE_FRAMES];
} Noise;

static void
noise_close (Noise * noise)
{
  for (guint n = 0; n < NOISE_FRAMES; n++) {
    gst_clear_buffer (&noise->frames[0][n]);
    gst_clear_buffer (&noise->frames[1][n]);
  }
  gst_clear_caps (&noise->caps[0]);
  gst_clear_caps (&noise->caps[1]);
  g_clear_pointer (&noise->pool, cuda_pool_free);
}

/* FALSE: libgstcuda has no memory of that format. */
static gboolean
noise_open (Noise * noise, CudaContext * context, const gchar * format, gint width, gint height)
{
  gboolean good = TRUE;

  *noise = (Noise) {.context = context };
  for (guint m = 0; m < 2; m++)
    noise->caps[m] = gst_caps_new_simple ("video/x-raw", "format", G_TYPE_STRING, format, "width",
        G_TYPE_INT, width, "height", G_TYPE_INT, height, "framerate", GST_TYPE_FRACTION, 30, 1,
        NULL);
  gst_caps_set_features_simple (noise->caps[1], gst_caps_features_new ("memory:CUDAMemory", NULL));
  gst_video_info_from_caps (&noise->info, noise->caps[0]);
  noise->pool = cuda_pool_new (context, noise->caps[1], &noise->info);
  if (noise->pool == NULL)
    return FALSE;
  for (guint n = 0; n < NOISE_FRAMES; n++) {
    noise->frames[0][n] = noise_frame_new (&noise->info, n);
    noise->frames[1][n] = cuda_frame_new (noise->pool, context, &noise->info, noise->frames[0][n]);
    good &= noise->frames[1][n] != NULL;
  }
  return good;
}

/* Frames of one memory into the appsrc, under the caps of the same or of the other. */
static void
noise_feed (Noise * noise, Branch * branch, guint memory, guint caps)
{
  GstElement *src = gst_bin_get_by_name (GST_BIN (branch->pipeline), "src");

  gst_app_src_set_caps (GST_APP_SRC (src), noise->caps[caps]);
  g_object_set (src, "format", GST_FORMAT_TIME, "max-bytes", G_GUINT64_CONSTANT (0), NULL);
  for (guint n = 0; n < NOISE_FRAMES; n++)
    gst_app_src_push_buffer (GST_APP_SRC (src), gst_buffer_ref (noise->frames[memory][n]));
  gst_app_src_end_of_stream (GST_APP_SRC (src));
  gst_object_unref (src);
}

static gchar *
noise_branch (Noise * noise, Branch * branch, const gchar * name, const gchar * memories,
    const gchar * backend, const gchar * kernel)
{
  gchar *line = g_strdup_printf ("appsrc name=src ! " X "backend=%s kernel=%s num-streams=3 ! %s ! "
      "appsink name=sink", backend, kernel, memories[1] == 'c' ? CUDA_CAPS : "video/x-raw");
  gchar *problem = branch_open (branch, name, memories, noise->context, line);

  if (problem == NULL)
    noise_feed (noise, branch, memories[0] == 'c', memories[0] == 'c');
  g_free (line);
  return problem;
}

static gchar *
compare_combinations (Noise * noise, const gchar * kernel)
{
  Branch branches[MAX_BRANCHES] = { {0} };
  gchar *problem = noise_branch (noise, &branches[0], "CPU path", "ss", "cpu", kernel);

  if (problem == NULL)
    problem = noise_branch (noise, &branches[1], "system to system", "ss", "cuda", kernel);
  if (problem == NULL)
    problem = noise_branch (noise, &branches[2], "system to CUDA", "sc", "cuda", kernel);
  if (problem == NULL)
    problem = noise_branch (noise, &branches[3], "CUDA to system", "cs", "cuda", kernel);
  if (problem == NULL)
    problem = noise_branch (noise, &branches[4], "CUDA to CUDA", "cc", "cuda", kernel);
  if (problem == NULL)
    problem = branches_compare (branches, MAX_BRANCHES, NOISE_FRAMES);
  for (guint i = 0; i < MAX_BRANCHES; i++)
    branch_close (&branches[i]);
  return problem;
}

static void
refuse (const gchar * who, const gchar * format)
{
  n_refused++;
  g_print ("refused %s by %s\n", format, who);
}

static CudaContext *
make_context (void)
{
  CudaContext *context = cuda_context_new ();

  if (context == NULL)
    report ("a context of the application", g_strdup ("gst_cuda_context_new () failed"));
  return context;
}

static void
check_formats (void)
{
  static const gint sizes[][2] = { {640, 360}, {322, 242}, {321, 241} };
  CudaContext *context = make_context ();

  for (guint f = 0; context != NULL && formats[f] != NULL; f++)
    for (guint s = 0; s < G_N_ELEMENTS (sizes); s++) {
      Noise noise;

      if (!noise_open (&noise, context, formats[f], sizes[s][0], sizes[s][1])) {
        refuse ("libgstcuda's pool", formats[f]);
      } else {
        for (guint k = 0; kernels[k] != NULL; k++) {
          gchar *title = g_strdup_printf ("formats %s %dx%d %s", formats[f], sizes[s][0],
              sizes[s][1], kernels[k]);

          report (title, compare_combinations (&noise, kernels[k]));
          g_free (title);
        }
      }
      noise_close (&noise);
    }
  gst_clear_object (&context);
}

/* ---- GStreamer's own elements around it ---------------------------------------------------- */

static gboolean
element_takes (const gchar * element, const gchar * format)
{
  GstElementFactory *factory = gst_element_factory_find (element);
  GstCaps *caps = gst_caps_new_simple ("video/x-raw", "format", G_TYPE_STRING, format, NULL);
  gboolean takes = factory != NULL && gst_element_factory_can_sink_any_caps (factory, caps);

  gst_caps_unref (caps);
  gst_clear_object (&factory);
  return takes;
}

/* Without a context from the application: they find each other's.  cudaupload does nothing where it
 * may.  Of even sizes, since the copies of
 * GStreamer 1.22 leave out samples of some odd ones. */
static void
check_elements (void)
{
  static const struct
  {
    const gchar *name, *memories, *line;
  } ways[] = {
    {"CPU path", "ss", X "backend=cpu kernel=gaussianblur"},
    {"system to cudadownload", "sc", X "backend=cuda kernel=gaussianblur ! " CUDA_CAPS
          " ! cudadownload ! video/x-raw"},
    {"cudaupload to system", "cs", "cudaupload ! " CUDA_CAPS " ! " X "backend=cuda "
          "kernel=gaussianblur ! video/x-raw"},
    {"cudaupload to cudadownload", "cc", "cudaupload ! " CUDA_CAPS " ! " X "backend=cuda "
          "kernel=gaussianblur ! cudadownload ! video/x-raw"},
  };

  for (guint f = 0; formats[f] != NULL; f++) {
    Branch branches[G_N_ELEMENTS (ways)] = { {0} };
    gchar *title, *problem = NULL;

    if (!element_takes ("cudaupload", formats[f])) {
      refuse ("cudaupload", formats[f]);
      continue;
    }
    for (guint b = 0; b < G_N_ELEMENTS (ways) && problem == NULL; b++) {
      gchar *line = g_strdup_printf ("videotestsrc num-buffers=%d pattern=smpte "
          "horizontal-speed=5 ! video/x-raw,format=%s,width=322,height=242 ! %s ! "
          "appsink name=sink",
          NOISE_FRAMES, formats[f], ways[b].line);

      problem = branch_open (&branches[b], ways[b].name, ways[b].memories, NULL, line);
      g_free (line);
    }
    if (problem == NULL)
      problem = branches_compare (branches, G_N_ELEMENTS (ways), NOISE_FRAMES);
    for (guint b = 0; b < G_N_ELEMENTS (ways); b++)
      branch_close (&branches[b]);
    title = g_strdup_printf ("elements %s", formats[f]);
    report (title, problem);
    g_free (title);
  }
}

/* ---- memory of others ---------------------------------------------------------------------- */

/* Frames of another context than the pipeline's, and CUDA memory that the caps do not tell of. */
static void
check_strangers (void)
{
  CudaContext *ours = make_context (), *theirs = make_context ();
  const gchar *names[] = { "strangers: another context", "strangers: behind system caps" };
  Noise noise;

  for (guint i = 0; ours != NULL && theirs != NULL && i < 2; i++) {
    gboolean foreign = i == 0;
    Branch branches[2] = { {0} };
    gchar *problem = NULL;

    if (!noise_open (&noise, foreign ? theirs : ours, "NV12", 322, 242))
      problem = g_strdup ("no memory");
    noise.context = ours;
    if (problem == NULL)
      problem = noise_branch (&noise, &branches[0], "CPU path", "ss", "cpu", "sobel");
    if (problem == NULL)
      problem = branch_open (&branches[1], names[i], foreign ? "cs" : "ss", ours,
          "appsrc name=src ! " X "backend=cuda kernel=sobel ! video/x-raw ! appsink name=sink");
    if (problem == NULL) {
      noise_feed (&noise, &branches[1], 1, foreign);
      problem = branches_compare (branches, 2, NOISE_FRAMES);
    }
    branch_close (&branches[0]);
    branch_close (&branches[1]);
    noise_close (&noise);
    report (names[i], problem);
  }
  gst_clear_object (&ours);
  gst_clear_object (&theirs);
}

/* ---- nothing is left behind ---------------------------------------------------------------- */

static const cuda_driver *driver;
static cu_context primary;

static gint64
free_bytes (void)
{
  gsize available = 0, total = 0;
  cu_context ignored;

  driver->CtxPushCurrent (primary);
  driver->MemGetInfo (&available, &total);
  driver->CtxPopCurrent (&ignored);
  return (gint64) available;
}

static gchar *
play_a_little (Branch * branch)
{
  gchar *problem = NULL;

  gst_element_set_state (branch->pipeline, GST_STATE_PLAYING);
  for (guint frame = 0; frame < 3 && problem == NULL; frame++) {
    GstSample *sample = gst_app_sink_try_pull_sample (branch->sink, BRANCH_WAIT);

    if (sample == NULL)
      problem = branch_take_error (branch->pipeline, "no frame within 30 s");
    else
      gst_sample_unref (sample);
  }
  gst_element_set_state (branch->pipeline, GST_STATE_NULL);
  return problem;
}

/* One pipeline after the other, again and again.  lost[i]: bytes that pipeline i did not give
 * back. */
static gchar *
play_in_turns (guint cycles, gint64 * lost)
{
  static const gchar *const middles[] = {
    "h264parse ! nvh264dec ! " X "backend=cuda kernel=gaussianblur ! cudadownload ! video/x-raw",
    X "backend=cuda kernel=sobel ! " CUDA_CAPS " ! cudadownload ! video/x-raw",
    "cudaupload ! " CUDA_CAPS " ! " X "backend=cuda kernel=copy ! video/x-raw",
  };
  CudaContext *context = cuda_context_new ();
  Branch branches[G_N_ELEMENTS (middles)] = { {0} };
  gchar *path = file_path (0), *problem = NULL;

  if (context == NULL)
    problem = g_strdup ("no context");
  for (guint i = 0; i < G_N_ELEMENTS (middles) && problem == NULL; i++) {
    gchar *line = g_strdup_printf ("%s%s ! %s ! appsink name=sink", i == 0 ? "filesrc location=" :
        "videotestsrc ! video/x-raw,format=NV12,width=1280,height=720", i == 0 ? path : "",
        middles[i]);

    problem = branch_open (&branches[i], middles[i], NULL, context, line);
    g_free (line);
  }
  for (guint cycle = 0; cycle < cycles && problem == NULL; cycle++)
    for (guint i = 0; i < G_N_ELEMENTS (middles) && problem == NULL; i++) {
      gint64 before = free_bytes ();

      problem = play_a_little (&branches[i]);
      /* The first time the context takes what it keeps. */
      if (cycle > 0)
        lost[i] += before - free_bytes ();
    }
  for (guint i = 0; i < G_N_ELEMENTS (middles); i++)
    branch_close (&branches[i]);
  gst_clear_object (&context);
  g_free (path);
  return problem;
}

static void
check_memory (void)
{
  gint64 start, end, lost[3] = { 0 };
  gchar *problem;

  if (!make_files ())
    return;
  /* What the driver takes once for the process. */
  problem = play_in_turns (2, lost);
  start = free_bytes ();
  memset (lost, 0, sizeof lost);
  if (problem == NULL)
    problem = play_in_turns (CYCLES, lost);
  end = free_bytes ();
  g_print ("        device memory: %" G_GINT64_FORMAT " KiB less than at the start; while the "
      "context lived, lost by decoder, download, upload: %" G_GINT64_FORMAT ", "
      "%" G_GINT64_FORMAT ", %" G_GINT64_FORMAT " KiB\n", (start - end) / 1024, lost[0] / 1024,
      lost[1] / 1024, lost[2] / 1024);
  if (problem == NULL && start - end > DRIVER_SLACK)
    problem = g_strdup_printf ("%" G_GINT64_FORMAT " KiB not given back", (start - end) / 1024);
  for (guint i = 0; i < 3 && problem == NULL; i++)
    if (lost[i] > DRIVER_SLACK)
      problem = g_strdup_printf ("pipeline %u lost %" G_GINT64_FORMAT " KiB in %d cycles", i,
          lost[i] / 1024, CYCLES);
  report ("memory: 50 times PLAYING to NULL, three pipelines in one context", problem);
}

/* ---- bad input ----------------------------------------------------------------------------- */

static gchar *
cut_file (const gchar * from, const gchar * to)
{
  GError *error = NULL;
  gchar *data = NULL, *problem = NULL;
  gsize size = 0;

  /* An odd place, so within a picture. */
  if (!g_file_get_contents (from, &data, &size, &error)
      || !g_file_set_contents (to, data, (gssize) (size / 2 + 37), &error)) {
    problem = g_strdup (error->message);
    g_error_free (error);
  }
  g_free (data);
  return problem;
}

/* Frames until the end; *problem when that was none. */
static guint
count_frames (Branch * branch, const gchar * path, gchar ** problem)
{
  GstElement *file = gst_bin_get_by_name (GST_BIN (branch->pipeline), "file");
  GstSample *sample;
  guint frames = 0;

  g_object_set (file, "location", path, NULL);
  gst_object_unref (file);
  gst_element_set_state (branch->pipeline, GST_STATE_PLAYING);
  while ((sample = gst_app_sink_try_pull_sample (branch->sink, BRANCH_WAIT)) != NULL) {
    gst_sample_unref (sample);
    frames++;
  }
  if (!gst_app_sink_is_eos (branch->sink))
    *problem = branch_take_error (branch->pipeline, "no end within 30 s");
  gst_element_set_state (branch->pipeline, GST_STATE_NULL);
  return frames;
}

static void
check_truncated (void)
{
  Branch branch = { 0 };
  gchar *whole, *part, *problem;
  guint frames = 0;

  if (!make_files ())
    return;
  whole = file_path (0);
  part = g_strdup_printf ("%s/truncated.h264", folder);
  problem = cut_file (whole, part);
  if (problem == NULL)
    problem = branch_open (&branch, "truncated", "cc", NULL, "filesrc name=file ! h264parse ! "
        "nvh264dec ! " X "backend=cuda kernel=gaussianblur ! cudadownload ! video/x-raw ! "
        "appsink name=sink");
  if (problem == NULL)
    frames = count_frames (&branch, part, &problem);
  if (problem == NULL && (frames == 0 || frames >= FILE_FRAMES))
    problem = g_strdup_printf ("expected some frames, got %u", frames);
  report ("truncated stream: ends", problem);
  problem = NULL;
  if (branch.pipeline != NULL) {
    frames = count_frames (&branch, whole, &problem);
    if (problem == NULL && frames != FILE_FRAMES)
      problem = g_strdup_printf ("expected %d frames, got %u", FILE_FRAMES, frames);
    report ("truncated stream: the same pipeline plays a good file after it", problem);
  }
  branch_close (&branch);
  g_remove (part);
  g_free (part);
  g_free (whole);
}

/* Memory that this element has never heard of is refused where the elements are linked, by name,
 * and where it only comes with the frames. */
static void
check_refused (void)
{
  GstCaps *caps = gst_caps_from_string ("video/x-raw(memory:NVMM),format=NV12,width=322,height=242,"
      "framerate=30/1");
  Branch branch = { 0 };
  GstSample *sample;
  GstElement *src;
  gchar *problem = branch_open (&branch, "NVMM", NULL, NULL, "appsrc ! "
      "video/x-raw(memory:NVMM),format=NV12 ! " X "backend=cuda ! appsink name=sink");

  branch_close (&branch);
  g_print ("        memory:NVMM, linking: %s\n", problem != NULL ? problem : "no error");
  report ("refused: memory:NVMM when linking", problem != NULL && strstr (problem, "NVMM") != NULL ?
      NULL : g_strdup ("expected an error that names it"));
  g_free (problem);

  problem = branch_open (&branch, "NVMM", NULL, NULL, "appsrc name=src ! " X "backend=cuda ! "
      "appsink name=sink");
  if (problem == NULL) {
    src = gst_bin_get_by_name (GST_BIN (branch.pipeline), "src");
    gst_app_src_set_caps (GST_APP_SRC (src), caps);
    gst_app_src_push_buffer (GST_APP_SRC (src), gst_buffer_new_allocate (NULL, 116886, NULL));
    gst_app_src_end_of_stream (GST_APP_SRC (src));
    gst_object_unref (src);
    gst_element_set_state (branch.pipeline, GST_STATE_PLAYING);
    sample = gst_app_sink_try_pull_sample (branch.sink, BRANCH_WAIT);
    problem = branch_take_error (branch.pipeline, sample != NULL ? "a frame came" : "no error");
    g_print ("        memory:NVMM, playing: %s\n", problem);
    if (sample == NULL && strstr (problem, "not-negotiated") != NULL)
      g_clear_pointer (&problem, g_free);
    g_clear_pointer (&sample, gst_sample_unref);
  }
  branch_close (&branch);
  gst_caps_unref (caps);
  report ("refused: memory:NVMM when playing", problem);
}

/* ---- the program --------------------------------------------------------------------------- */

static const struct
{
  const gchar *name;
  void (*run) (void);
} cases[] = {
  {"formats", check_formats},
  {"strangers", check_strangers},
  {"refused", check_refused},
  {"elements", check_elements},
  {"decoder", check_decoder},
  {"truncated", check_truncated},
  {"memory", check_memory},
};

static gboolean
open_driver (const gchar ** reason)
{
  static csf_error error;
  cu_device device;

  driver = cuda_driver_get (&error);
  *reason = error.text;
  if (driver == NULL)
    return FALSE;
  *reason = "no CUDA device, or libgstcuda does not find it";
  return driver->Init (0) == CU_SUCCESS && driver->DeviceGet (&device, 0) == CU_SUCCESS
      && driver->DevicePrimaryCtxRetain (&primary, device) == CU_SUCCESS && cuda_frame_init ();
}

static gboolean
has_element (const gchar * name)
{
  GstElementFactory *factory = gst_element_factory_find (name);
  gboolean has = factory != NULL;

  gst_clear_object (&factory);
  return has;
}

static gboolean
is_wanted (const gchar * name, int argc, char **argv)
{
  for (int i = 1; i < argc; i++)
    if (strcmp (argv[i], name) == 0)
      return TRUE;
  return argc < 2;
}

int
main (int argc, char **argv)
{
  const gchar *reason = "";

  gst_init (NULL, NULL);
  if (!open_driver (&reason)) {
    g_print ("skipped: %s\n", reason);
    return SKIPPED;
  }
  if (argc < 2 && (!has_element ("nvh264dec") || !has_element ("cudadownload"))) {
    g_print ("skipped: no nvh264dec and cudadownload here (GStreamer's plugin nvcodec); names of "
        "cases as arguments run those all the same\n");
    return SKIPPED;
  }
  folder = g_dir_make_tmp ("csf-cudamemory-XXXXXX", NULL);
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    gint64 begin = g_get_monotonic_time ();

    if (!is_wanted (cases[i].name, argc, argv))
      continue;
    cases[i].run ();
    g_print ("        %s: %.1f s\n", cases[i].name,
        (gdouble) (g_get_monotonic_time () - begin) / 1e6);
  }
  for (guint i = 0; i < G_N_ELEMENTS (file_sizes); i++) {
    gchar *path = file_path (i);

    g_remove (path);
    g_free (path);
  }
  g_rmdir (folder);
  g_free (folder);
  g_print ("%u ok, %u failed, %u refused by libgstcuda\n", n_good, n_failed, n_refused);
  gst_deinit ();
  return n_failed == 0 && n_good > 0 ? 0 : 1;
}
