/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a kernel finds in a video, from C: one line of JSON a frame, and on request a copy of the video with
 * boxes drawn.  An example of cudastreamfilter inside an application; detections.py is the same in Python, to
 * the byte.  Knows GStreamer and the structures of cudastreamfilter/kernel.h, nothing else of this project. */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <glib-unix.h>
#include <glib/gstdio.h>
#include <gst/gst.h>
#include <gst/video/video.h>

#include <cudastreamfilter/kernel.h>

#define RECORDS "cudastreamfilter-records"
/* Objects beyond that have no region of interest. */
/* H.264 encoders want even sizes; this changes a picture only where it is odd. */
#define EVEN "videoscale ! video/x-raw,format=I420,width=[2,16384,2],height=[2,16384,2] ! "

static const struct
{
  const gchar *element, *words;
} encoders[] = {
  {"x264enc", EVEN "x264enc speed-preset=veryfast"},
  {"openh264enc", EVEN "openh264enc bitrate=4000000 ! h264parse"},
  {"jpegenc", "jpegenc"},
};

typedef struct
{
  gchar *kernel, *params, *library, *function, *draw, *backend, *frames_text, **inputs;
  gint frames;                  /* 0: all */
} Options;

typedef struct
{
  const Options *options;
  GstElement *pipeline;
  GMainLoop *loop;
  gint frame;                   /* how many came; atomic */
  /* Of the thread that brings the frames. */
  /* Of the main loop. */
  GHashTable *told;             /* warnings */
  gchar *problem;               /* the first one, or NULL */
  gboolean interrupted, killed;
} App;

/* ---- lines of JSON ------------------------------------------------------------------------------- */

/* A number of so many digits: 7, as many as the samples have, so that it reads 0.9 and not 0.8999999762. */
static void
append_number (GString * line, gdouble value, const gchar * format)
{
  gchar text[G_ASCII_DTOSTR_BUF_SIZE];

  if (!isfinite (value)) {
    g_string_append (line, "null");
    return;
  }
  value = g_ascii_strtod (g_ascii_formatd (text, sizeof text, format, value), NULL);
  if (value == floor (value))
    g_string_append_printf (line, "%.0f", value + 0.0);
  else
    g_string_append (line, text);
}

static void
append_field (GString * line, const gchar * name, gdouble value)
{
  g_string_append_printf (line, "\"%s\": ", name);
  append_number (line, value, "%.7g");
  g_string_append (line, ", ");
}

static void
append_text (GString * line, const gchar * text)
{
  static const gchar plain[] = "\"\\\n\r\t\b\f", escaped[] = "\"\\nrtbf";

  g_string_append_c (line, '"');
  for (; *text != 0; text++) {
    const gchar *special = strchr (plain, *text);

    if (special != NULL)
      g_string_append_printf (line, "\\%c", escaped[special - plain]);
    else if ((guchar) * text < 0x20)
      g_string_append_printf (line, "\\u%04x", (guint) (guchar) * text);
    else
      g_string_append_c (line, *text);
  }
  g_string_append_c (line, '"');
}

/* ---- what is on a frame -------------------------------------------------------------------------- */

/* What a record's label counts, or the records' name. */
static const gchar *
label_of (const GstStructure * fields, gint label)
{
  const GValue *value = gst_structure_get_value (fields, "labels");
  const gchar *const *labels = value != NULL ? g_value_get_boxed (value) : NULL;

  for (gint i = 0; label >= 0 && labels != NULL && labels[i] != NULL; i++)
    if (i == label)
      return labels[i];
  return gst_structure_get_string (fields, "name");
}

static void
append_object (GString * line, const GstStructure * fields, const csfk_object * object)
{
  append_field (line, "x", object->x);
  append_field (line, "y", object->y);
  append_field (line, "width", object->width);
  append_field (line, "height", object->height);
  g_string_append (line, "\"label\": ");
  append_text (line, label_of (fields, object->label));
  g_string_append (line, ", ");
  if (object->confidence >= 0)
    append_field (line, "confidence", object->confidence);
  if (object->track_id >= 0)
    append_field (line, "track_id", object->track_id);
  append_field (line, "score", object->score);
}

static void
append_point (GString * line, const csfk_point * point)
{
  append_field (line, "x", point->x);
  append_field (line, "y", point->y);
  append_field (line, "score", point->score);
  append_field (line, "level", point->level);
}

static void
append_other (GString * line, const gchar * name, const guchar * data, guint size)
{
  g_autofree gchar *bytes = g_base64_encode (data, size);

  g_string_append (line, "\"name\": ");
  append_text (line, name);
  g_string_append_printf (line, ", \"record_size\": %u, \"bytes\": \"%s\", ", size, bytes);
}

/* The records of a frame; nothing where the kernel finds nothing. */
static void
append_records (GString * line, GstBuffer * buffer)
{
  GstCustomMeta *meta = gst_buffer_get_custom_meta (buffer, RECORDS);
  const GstStructure *fields;
  const gchar *kind, *name;
  const guchar *data;
  guint size = 0;
  gsize total;

  if (meta == NULL)
    return;
  fields = gst_custom_meta_get_structure (meta);
  kind = gst_structure_get_string (fields, "kind");
  name = gst_structure_get_string (fields, "name");
  gst_structure_get_uint (fields, "record-size", &size);
  data = g_bytes_get_data (g_value_get_boxed (gst_structure_get_value (fields, "data")), &total);
  for (gsize at = 0; at < total; at += size) {
    g_string_append (line, at > 0 ? ", {" : "{");
    if (g_str_equal (kind, "object"))
      append_object (line, fields, (const csfk_object *) (data + at));
    else if (g_str_equal (kind, "point"))
      append_point (line, (const csfk_point *) (data + at));
    else
      append_other (line, name, data + at, size);
    /* The comma after the last field. */
    g_string_truncate (line, line->len - 2);
    g_string_append_c (line, '}');
  }
}

/* ---- the pipeline's callbacks -------------------------------------------------------------------- */

/* From any thread: ends the run. */
static void G_GNUC_PRINTF (2, 0)
fail (App * app, const gchar * text, const gchar * more)
{
  g_autofree gchar *raw = g_strdup_printf (text, more);
  /* A file's name may be of any bytes, a message's text not. */
  g_autofree gchar *problem = g_utf8_make_valid (raw, -1);
  GstStructure *what = gst_structure_new ("failed", "text", G_TYPE_STRING, problem, NULL);

  gst_element_post_message (app->pipeline, gst_message_new_application (GST_OBJECT (app->pipeline), what));
}

/* By the thread that brings the frames, as each leaves the filter. */
static GstPadProbeReturn
on_frame (GstPad * pad, GstPadProbeInfo * info, gpointer user_data)
{
  GstBuffer *buffer = GST_PAD_PROBE_INFO_BUFFER (info);
  App *app = user_data;
  gint frame = g_atomic_int_get (&app->frame);
  g_autoptr (GString) line = g_string_new (NULL);

  if (app->options->frames != 0 && frame == app->options->frames) {
    gst_pad_push_event (pad, gst_event_new_eos ());
    return GST_PAD_PROBE_DROP;
  }
  g_string_append_printf (line, "{\"frame\": %d, \"pts\": ", frame);
  append_number (line, GST_BUFFER_PTS_IS_VALID (buffer) ? (gdouble) GST_BUFFER_PTS (buffer) / GST_SECOND
      : (gdouble) NAN, "%.15g");
  g_string_append (line, ", \"records\": [");
  append_records (line, buffer);
  g_string_append (line, "]}\n");
  g_atomic_int_inc (&app->frame);
  if (fputs (line->str, stdout) == EOF || fflush (stdout) == EOF)
    fail (app, "cannot write a line: %s", g_strerror (errno));
  return GST_PAD_PROBE_OK;
}

static GstPad *
get_pad (App * app, const gchar * element, const gchar * pad)
{
  g_autoptr (GstElement) owner = gst_bin_get_by_name (GST_BIN (app->pipeline), element);

  return gst_element_get_static_pad (owner, pad);
}

static void
on_pad (GstElement * source, GstPad * pad, gpointer user_data)
{
  g_autoptr (GstPad) sink = get_pad (user_data, "convert", "sink");
  g_autoptr (GstCaps) caps = gst_pad_query_caps (pad, NULL);

  if (gst_caps_get_size (caps) > 0 && !gst_pad_is_linked (sink)
      && g_str_has_prefix (gst_structure_get_name (gst_caps_get_structure (caps, 0)), "video/"))
    gst_pad_link (pad, sink);
}

static void
on_last_pad (GstElement * source, gpointer user_data)
{
  App *app = user_data;
  g_autoptr (GstPad) sink = get_pad (app, "convert", "sink");

  if (!gst_pad_is_linked (sink))
    fail (app, "there is no video in '%s'", app->options->inputs[0]);
}

static void
say (const gchar * kind, const gchar * text)
{
  g_autofree gchar *line = g_strdelimit (g_strdup (text), "\r\n\t", ' ');

  fprintf (stderr, "detections: %s: %s\n", kind, line);
}

/* Takes the text. */
static void
stop (App * app, gchar * problem)
{
  if (app->problem == NULL)
    app->problem = problem;
  else
    g_free (problem);
  g_main_loop_quit (app->loop);
}

static void
on_error (App * app, GstMessage * message)
{
  g_autoptr (GError) error = NULL;
  g_autofree gchar *debug = NULL;
  const gchar *reason;

  gst_message_parse_error (message, &error, &debug);
  /* "Internal data stream error" says little: its reason is the last line of what is for debugging. */
  reason = debug == NULL ? "" : strrchr (debug, '\n') != NULL ? strrchr (debug, '\n') + 1 : debug;
  if (strstr (reason, "reason") != NULL)
    stop (app, g_strdup_printf ("%s: %s (%s)", GST_MESSAGE_SRC_NAME (message), error->message, reason));
  else
    stop (app, g_strdup_printf ("%s: %s", GST_MESSAGE_SRC_NAME (message), error->message));
}

static void
on_warning (App * app, GstMessage * message)
{
  g_autoptr (GError) error = NULL;

  gst_message_parse_warning (message, &error, NULL);
  if (g_hash_table_add (app->told, g_strdup (error->message)))
    say ("warning", error->message);
}

static gboolean
on_message (GstBus * bus, GstMessage * message, gpointer user_data)
{
  App *app = user_data;

  switch (GST_MESSAGE_TYPE (message)) {
    case GST_MESSAGE_ERROR: on_error (app, message); break;
    case GST_MESSAGE_WARNING: on_warning (app, message); break;
    case GST_MESSAGE_EOS: stop (app, NULL); break;
    case GST_MESSAGE_APPLICATION:
      stop (app, g_strdup (gst_structure_get_string (gst_message_get_structure (message), "text")));
      break;
    default: break;
  }
  return G_SOURCE_CONTINUE;
}

/* Ctrl-C: the video ends here and in good order; the second time, and before it has begun, there is no
 * waiting for that. */
static gboolean
on_interrupt (gpointer user_data)
{
  App *app = user_data;

  if (app->interrupted || g_atomic_int_get (&app->frame) == 0) {
    app->killed = TRUE;
    g_main_loop_quit (app->loop);
  } else {
    app->interrupted = TRUE;
    gst_element_send_event (app->pipeline, gst_event_new_eos ());
  }
  return G_SOURCE_CONTINUE;
}

/* ---- the pipeline -------------------------------------------------------------------------------- */

static gboolean
have (const gchar * element)
{
  g_autoptr (GstElementFactory) factory = gst_element_factory_find (element);

  return factory != NULL;
}

static const gchar *
muxer_of (const gchar * path)
{
  return g_str_has_suffix (path, ".mkv") ? "matroskamux" : g_str_has_suffix (path, ".mp4") ? "mp4mux"
      : g_str_has_suffix (path, ".avi") ? "avimux" : NULL;
}

/* The end of the pipeline that draws, encodes and writes a file, or NULL without an encoder. */
static gchar *
drawing (const Options * options)
{
  for (guint i = 0; i < G_N_ELEMENTS (encoders); i++)
    if (have (encoders[i].element))
      return g_strdup_printf ("cudastreamfilter backend=%s kernel=drawregions kernel-params=color=0 ! "
          "videoconvert ! %s ! %s ! filesink name=file", options->backend, encoders[i].words,
          muxer_of (options->draw));
  return NULL;
}

/* What is wrong with a file that is to be read, or NULL. */
static gchar *
check_input (const gchar * text)
{
  GStatBuf about;

  if (g_stat (text, &about) != 0)
    return g_strdup_printf ("there is no file '%s'", text);
  if (!S_ISREG (about.st_mode))
    return g_strdup_printf ("'%s' is not a file", text);
  if (g_access (text, R_OK) != 0)
    return g_strdup_printf ("no permission to read '%s'", text);
  if (about.st_size == 0)
    return g_strdup_printf ("'%s' is empty", text);
  return NULL;
}

static gboolean
are_same_file (const gchar * a, const gchar * b)
{
  GStatBuf x, y;

  return g_stat (a, &x) == 0 && g_stat (b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* Values are set, not written into the description: there they would need quoting. */
static void
set_property (App * app, const gchar * element, const gchar * name, const gchar * value)
{
  g_autoptr (GstElement) owner = gst_bin_get_by_name (GST_BIN (app->pipeline), element);

  if (owner != NULL && value != NULL)
    g_object_set (owner, name, value, NULL);
}

static void
set_properties (App * app, const gchar * uri)
{
  const Options *options = app->options;

  set_property (app, "source", "uri", uri);
  set_property (app, "filter", "kernel", options->kernel);
  set_property (app, "filter", "kernel-library", options->library);
  set_property (app, "filter", "kernel-function", options->function);
  set_property (app, "filter", "kernel-params", options->params);
  set_property (app, "file", "location", options->draw);
}

static void
connect_pipeline (App * app)
{
  g_autoptr (GstElement) source = gst_bin_get_by_name (GST_BIN (app->pipeline), "source");
  g_autoptr (GstPad) pad = get_pad (app, "filter", "src");
  g_autoptr (GstBus) bus = gst_element_get_bus (app->pipeline);

  g_signal_connect (source, "pad-added", G_CALLBACK (on_pad), app);
  g_signal_connect (source, "no-more-pads", G_CALLBACK (on_last_pad), app);
  gst_pad_add_probe (pad, GST_PAD_PROBE_TYPE_BUFFER, on_frame, app, NULL);
  gst_bus_add_watch (bus, on_message, app);
}

/* Returns what is wrong, or NULL. */
static gchar *
make_pipeline (App * app)
{
  const gchar *input = app->options->inputs[0], *draw = app->options->draw;
  gboolean is_uri = !g_file_test (input, G_FILE_TEST_EXISTS) && strstr (input, "://") != NULL;
  g_autofree gchar *words = NULL, *end = NULL, *uri = NULL;
  g_autoptr (GError) error = NULL;
  gchar *wrong = is_uri ? NULL : check_input (input);

  if (wrong != NULL)
    return wrong;
  if (!have ("cudastreamfilter"))
    return g_strdup ("GStreamer has no cudastreamfilter: GST_PLUGIN_PATH must name the folder of "
        "libgstcudastream.so, such as build/gst");
  if (draw != NULL && are_same_file (draw, input))
    return g_strdup_printf ("'%s' is the input: --draw needs another name", draw);
  end = draw != NULL ? drawing (app->options) : g_strdup ("fakesink sync=false enable-last-sample=false");
  if (end == NULL)
    return g_strdup ("no video encoder: GStreamer has neither x264enc nor openh264enc nor jpegenc");
  uri = is_uri ? g_strdup (input) : gst_filename_to_uri (input, &error);
  if (uri == NULL)
    return g_strdup (error->message);
  words = g_strdup_printf ("uridecodebin name=source videoconvert name=convert ! "
      "cudastreamfilter name=filter backend=%s ! %s", app->options->backend, end);
  app->pipeline = gst_parse_launch_full (words, NULL, GST_PARSE_FLAG_FATAL_ERRORS, &error);
  if (app->pipeline == NULL)
    return g_strdup (error->message);
  set_properties (app, uri);
  connect_pipeline (app);
  return NULL;
}

/* Until the end of the video, a failure or Ctrl-C. */
static void
play (App * app)
{
  guint interrupt = g_unix_signal_add (SIGINT, on_interrupt, app);
  g_autoptr (GstBus) bus = gst_element_get_bus (app->pipeline);

  gst_element_set_state (app->pipeline, GST_STATE_PLAYING);
  g_main_loop_run (app->loop);
  gst_element_set_state (app->pipeline, GST_STATE_NULL);
  gst_bus_remove_watch (bus);
  g_source_remove (interrupt);
}

/* Returns the exit status. */
static int
run (const Options * options)
{
  g_autoptr (GHashTable) told = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  g_autoptr (GMainLoop) loop = g_main_loop_new (NULL, FALSE);
  App app = { .options = options, .loop = loop, .told = told };
  g_autofree gchar *problem = NULL;

  app.problem = make_pipeline (&app);
  if (app.problem == NULL)
    play (&app);
  gst_clear_object (&app.pipeline);
  problem = app.problem;
  if (problem != NULL)
    say ("error", problem);
  return app.killed ? 130 : problem != NULL ? 1 : 0;
}

/* ---- the command line ---------------------------------------------------------------------------- */

/* Returns what is wrong, or NULL. */
static gchar *
check_options (Options * options)
{
  const gchar *frames = options->frames_text;
  guint64 n = 0;
  static const gchar *const backends[] = { "auto", "cuda", "cpu", NULL };

  if (options->inputs == NULL || options->inputs[1] != NULL)
    return g_strdup_printf ("expected one FILE or URI, got %u", options->inputs == NULL ? 0
        : g_strv_length (options->inputs));
  if (!g_strv_contains (backends, options->backend))
    return g_strdup_printf ("--backend: expected auto, cuda or cpu, got '%s'", options->backend);
  if (options->draw != NULL && muxer_of (options->draw) == NULL)
    return g_strdup_printf ("--draw: '%s' must end in .mkv, .mp4 or .avi", options->draw);
  if (frames != NULL && !g_ascii_string_to_unsigned (frames, 10, 1, 999999999, &n, NULL))
    return g_strdup_printf ("--frames: '%s' is not a number of frames", frames);
  options->frames = (gint) n;
  if ((options->kernel != NULL && *options->kernel == 0) || (options->library != NULL && *options->library == 0))
    return g_strdup ("--kernel and --kernel-library: expected a name, got an empty text");
  if (options->library != NULL && options->kernel != NULL)
    return g_strdup ("--kernel or --kernel-library, not both");
  if (options->function != NULL && options->library == NULL)
    return g_strdup ("--kernel-function is for --kernel-library");
  return NULL;
}

/* Returns what is wrong, or NULL. */
static gchar *
parse_options (Options * options, int argc, char **argv)
{
  /* All of type FILENAME: the bytes as they were typed. */
  const GOptionEntry entries[] = {
    {"kernel", 0, 0, G_OPTION_ARG_FILENAME, &options->kernel,
        "what looks at each frame (default: motiondetect)", "NAME"},
    {"kernel-params", 0, 0, G_OPTION_ARG_FILENAME, &options->params,
        "its parameters (default, of motiondetect: show=frame)", "TEXT"},
    {"kernel-library", 0, 0, G_OPTION_ARG_FILENAME, &options->library,
        "a library of kernels of your own, instead of --kernel", "PATH"},
    {"kernel-function", 0, 0, G_OPTION_ARG_FILENAME, &options->function, "which of its kernels", "NAME"},
    {"draw", 0, 0, G_OPTION_ARG_FILENAME, &options->draw,
        "write the video with boxes drawn (.mkv, .mp4, .avi), over what is there", "OUT"},
    {"backend", 0, 0, G_OPTION_ARG_FILENAME, &options->backend, "where kernels run", "auto|cuda|cpu"},
    {"frames", 0, 0, G_OPTION_ARG_FILENAME, &options->frames_text, "end after so many frames", "N"},
    {G_OPTION_REMAINING, 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &options->inputs, NULL, NULL},
    {NULL}
  };
  g_autoptr (GOptionContext) context = g_option_context_new ("FILE|URI");
  g_autoptr (GError) error = NULL;

  g_option_context_set_summary (context, "Prints what a kernel of cudastreamfilter finds in a video, one line "
      "of JSON a frame.\nCtrl-C ends it in good order, a second one at once.");
  g_option_context_add_main_entries (context, entries, NULL);
  if (!g_option_context_parse (context, &argc, &argv, &error))
    return g_strdup (error->message);
  if (options->backend == NULL)
    options->backend = g_strdup ("auto");
  if (options->kernel == NULL && options->library == NULL)
    options->kernel = g_strdup ("motiondetect");
  /* Its picture is a mask unless told otherwise. */
  if (g_strcmp0 (options->kernel, "motiondetect") == 0 && options->params == NULL)
    options->params = g_strdup ("show=frame");
  return check_options (options);
}

int
main (int argc, char **argv)
{
  Options options = { NULL };
  g_autofree gchar *wrong = parse_options (&options, argc, argv);
  int status = 2;

  if (wrong != NULL)
    fprintf (stderr, "detections: error: %s; --help tells how it is used\n", wrong);
  else {
    gst_init (NULL, NULL);
    status = run (&options);
  }
  g_free (options.kernel);
  g_free (options.params);
  g_free (options.library);
  g_free (options.function);
  g_free (options.draw);
  g_free (options.backend);
  g_free (options.frames_text);
  g_strfreev (options.inputs);
  return status;
}
