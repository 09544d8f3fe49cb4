/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Pipelines side by side, see branch.h. */
#include "branch.h"

#include <string.h>

/* ---- pipelines ----------------------------------------------------------------------------- */

gchar *
branch_take_error (GstElement * pipeline, const gchar * otherwise)
{
  GstBus *bus = gst_element_get_bus (pipeline);
  GstMessage *message = gst_bus_pop_filtered (bus, GST_MESSAGE_ERROR);
  gchar *text = g_strdup (otherwise);

  if (message != NULL) {
    GError *error = NULL;
    gchar *debug = NULL;

    gst_message_parse_error (message, &error, &debug);
    g_free (text);
    text = g_strdup_printf ("%s: %s (%s)", GST_MESSAGE_SRC_NAME (message), error->message,
        debug != NULL ? debug : "");
    g_error_free (error);
    g_free (debug);
    gst_message_unref (message);
  }
  gst_object_unref (bus);
  return text;
}

gchar *
branch_open (Branch * branch, const gchar * name, const gchar * memories, CudaContext * context,
    const gchar * line)
{
  GError *error = NULL;
  gchar *text;

  *branch = (Branch) {.name = name,.memories = memories };
  branch->pipeline = gst_parse_launch_full (line, NULL, GST_PARSE_FLAG_FATAL_ERRORS, &error);
  if (branch->pipeline == NULL) {
    text = g_strdup_printf ("%s: %s", name, error->message);
    g_error_free (error);
    return text;
  }
  branch->sink = GST_APP_SINK (gst_bin_get_by_name (GST_BIN (branch->pipeline), "sink"));
  g_object_set (branch->sink, "sync", FALSE, "max-buffers", 4, NULL);
  if (context != NULL) {
    GstContext *shared = cuda_context_to (context);

    gst_element_set_context (branch->pipeline, shared);
    gst_context_unref (shared);
  }
  return NULL;
}

void
branch_close (Branch * branch)
{
  if (branch->pipeline == NULL)
    return;
  gst_element_set_state (branch->pipeline, GST_STATE_NULL);
  gst_clear_object (&branch->sink);
  gst_clear_object (&branch->pipeline);
}

static gchar
memory_of (GstElement * x, const gchar * pad_name)
{
  GstPad *pad = gst_element_get_static_pad (x, pad_name);
  GstCaps *caps = gst_pad_get_current_caps (pad);
  gchar memory = '-';

  if (caps != NULL) {
    memory = gst_caps_features_contains (gst_caps_get_features (caps, 0), "memory:CUDAMemory") ?
        'c' : 's';
    gst_caps_unref (caps);
  }
  gst_object_unref (pad);
  return memory;
}

/* Whether negotiation picked the memories that it should. */
static gchar *
check_memories (const Branch * branch)
{
  GstElement *x = gst_bin_get_by_name (GST_BIN (branch->pipeline), "x");
  gchar found[] = { memory_of (x, "sink"), memory_of (x, "src"), '\0' };

  gst_object_unref (x);
  if (branch->memories == NULL || strcmp (found, branch->memories) == 0)
    return NULL;
  return g_strdup_printf ("%s: expected memories %s (c: CUDA, s: system) on its pads, got %s",
      branch->name, branch->memories, found);
}

/* ---- comparison ---------------------------------------------------------------------------- */

typedef struct
{
  GstVideoInfo info;
  guint8 *samples;
  gsize size;
  GstClockTime pts;
} Picture;

static gchar *
picture_take (Picture * picture, Branch * branch, GstSample * sample)
{
  GstCaps *caps = gst_sample_get_caps (sample);
  GstBuffer *buffer = gst_sample_get_buffer (sample);
  gboolean on_device = FALSE, wanted;

  if (!gst_video_info_from_caps (&picture->info, caps))
    return g_strdup_printf ("%s: strange caps", branch->name);
  wanted = gst_caps_features_contains (gst_caps_get_features (caps, 0), "memory:CUDAMemory");
  picture->pts = GST_BUFFER_PTS (buffer);
  picture->samples = frame_read (&picture->info, buffer, &picture->size, &on_device);
  if (picture->samples == NULL)
    return g_strdup_printf ("%s: the frame cannot be read", branch->name);
  if (on_device != wanted)
    return g_strdup_printf ("%s: %s memory behind caps of the other", branch->name,
        on_device ? "CUDA" : "system");
  return NULL;
}

static gchar *
picture_compare (const Picture * a, const Picture * b)
{
  gsize at = 0;
  gchar *place, *text;

  if (GST_VIDEO_INFO_FORMAT (&a->info) != GST_VIDEO_INFO_FORMAT (&b->info)
      || GST_VIDEO_INFO_WIDTH (&a->info) != GST_VIDEO_INFO_WIDTH (&b->info)
      || GST_VIDEO_INFO_HEIGHT (&a->info) != GST_VIDEO_INFO_HEIGHT (&b->info))
    return g_strdup_printf ("expected %s %dx%d, got %s %dx%d", GST_VIDEO_INFO_NAME (&a->info),
        GST_VIDEO_INFO_WIDTH (&a->info), GST_VIDEO_INFO_HEIGHT (&a->info),
        GST_VIDEO_INFO_NAME (&b->info), GST_VIDEO_INFO_WIDTH (&b->info),
        GST_VIDEO_INFO_HEIGHT (&b->info));
  if (a->pts != b->pts || !GST_CLOCK_TIME_IS_VALID (b->pts))
    return g_strdup_printf ("expected the time %" GST_TIME_FORMAT ", got %" GST_TIME_FORMAT,
        GST_TIME_ARGS (a->pts), GST_TIME_ARGS (b->pts));
  if (memcmp (a->samples, b->samples, a->size) == 0)
    return NULL;
  while (a->samples[at] == b->samples[at])
    at++;
  place = frame_describe_place (&a->info, at);
  text = g_strdup_printf ("expected %d, got %d in %s", a->samples[at], b->samples[at], place);
  g_free (place);
  return text;
}

/* The next frame of every branch against that of the first.  *end: all have ended. */
static gchar *
compare_next (Branch * branches, guint n, guint frame, gboolean * end)
{
  Picture first = { 0 };
  gchar *problem = NULL;
  guint ended = 0;

  for (guint i = 0; i < n && problem == NULL; i++) {
    GstSample *sample = gst_app_sink_try_pull_sample (branches[i].sink, BRANCH_WAIT);
    Picture picture = { 0 };

    if (sample == NULL) {
      if (gst_app_sink_is_eos (branches[i].sink))
        ended++;
      else
        problem = branch_take_error (branches[i].pipeline, "no frame within 30 s");
    } else {
      problem = picture_take (&picture, &branches[i], sample);
      if (problem == NULL && i > 0 && first.samples != NULL)
        problem = picture_compare (&first, &picture);
      gst_sample_unref (sample);
    }
    if (problem != NULL) {
      gchar *text = g_strdup_printf ("%s, frame %u: %s", branches[i].name, frame, problem);

      g_free (problem);
      problem = text;
    }
    if (i == 0)
      first = picture;
    else
      g_free (picture.samples);
  }
  g_free (first.samples);
  *end = ended == n;
  if (problem == NULL && ended > 0 && ended < n)
    problem = g_strdup_printf ("%u of %u branches ended at frame %u", ended, n, frame);
  return problem;
}

gchar *
branches_compare (Branch * branches, guint n, guint frames)
{
  gboolean end = FALSE;
  gchar *problem = NULL;
  guint frame = 0;

  for (guint i = 0; i < n; i++)
    gst_element_set_state (branches[i].pipeline, GST_STATE_PLAYING);
  while (problem == NULL && !end) {
    problem = compare_next (branches, n, frame, &end);
    if (problem == NULL && frame == 0 && !end)
      for (guint i = 0; i < n && problem == NULL; i++)
        problem = check_memories (&branches[i]);
    if (!end)
      frame++;
  }
  if (problem == NULL && frame != frames)
    problem = g_strdup_printf ("expected %u frames, got %u", frames, frame);
  for (guint i = 0; i < n; i++)
    branch_close (&branches[i]);
  return problem;
}
