/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Plays one pipeline and measures it, see benchpipeline.h. */
#include "benchpipeline.h"

#include <string.h>

/* A pipeline from which nothing came for so long is stuck. */
#define STUCK_NS (30 * GST_SECOND)

typedef struct
{
  bench_meter *meter;           /* streaming thread, read after the pipeline has stopped */
  GstElement *pipeline;
  gboolean reported;            /* streaming thread */
} Probe;

static GstPadProbeReturn
count_buffer (GstPad * pad, GstPadProbeInfo * info, gpointer user_data)
{
  Probe *probe = user_data;

  if (bench_meter_tick (probe->meter) && !probe->reported) {
    probe->reported = TRUE;
    gst_element_post_message (probe->pipeline, gst_message_new_application
        (GST_OBJECT (probe->pipeline), gst_structure_new_empty ("measured")));
  }
  return GST_PAD_PROBE_OK;
}

static void
add_probe (GstElement * pipeline, Probe * probe)
{
  GstElement *sink = gst_bin_get_by_name (GST_BIN (pipeline), "sink");
  GstPad *pad = gst_element_get_static_pad (sink, "sink");

  gst_pad_add_probe (pad, GST_PAD_PROBE_TYPE_BUFFER, count_buffer, probe, NULL);
  gst_object_unref (pad);
  gst_object_unref (sink);
}

static gboolean
wait_measured (GstElement * pipeline, gchar ** problem)
{
  GstBus *bus = gst_element_get_bus (pipeline);
  GstMessage *message = gst_bus_timed_pop_filtered (bus, STUCK_NS,
      GST_MESSAGE_ERROR | GST_MESSAGE_APPLICATION | GST_MESSAGE_EOS);
  gboolean good = FALSE;

  if (message == NULL) {
    *problem = g_strdup ("no result within 30 s");
  } else if (GST_MESSAGE_TYPE (message) == GST_MESSAGE_ERROR) {
    GError *error = NULL;

    gst_message_parse_error (message, &error, NULL);
    *problem = g_strdup (error->message);
    g_error_free (error);
  } else if (GST_MESSAGE_TYPE (message) == GST_MESSAGE_EOS) {
    *problem = g_strdup ("the stream ended");
  } else {
    good = TRUE;
  }
  g_clear_pointer (&message, gst_message_unref);
  gst_object_unref (bus);
  return good;
}

static GstStructure *
get_stats (GstElement * pipeline)
{
  GstElement *filter = gst_bin_get_by_name (GST_BIN (pipeline), "filter");
  GstStructure *stats = NULL;

  if (filter != NULL) {
    g_object_get (filter, "stats", &stats, NULL);
    gst_object_unref (filter);
  }
  return stats;
}

gboolean
bench_pipeline_measure (GstElement * pipeline, bench_meter * meter, BenchMeasured * measured,
    gchar ** problem)
{
  Probe probe = {.meter = meter,.pipeline = pipeline };
  gboolean good;

  memset (measured, 0, sizeof *measured);
  add_probe (pipeline, &probe);
  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  good = wait_measured (pipeline, problem);
  if (good)
    measured->stats = get_stats (pipeline);
  gst_element_set_state (pipeline, GST_STATE_NULL);
  gst_object_unref (pipeline);
  if (good) {
    measured->fps = bench_meter_rate (meter, &measured->least, &measured->most);
    measured->cpu_us = bench_meter_cpu_us (meter);
  }
  return good;
}

gdouble
bench_stat (const GstStructure * stats, const gchar * name)
{
  guint64 whole;
  gdouble number;

  if (gst_structure_get_uint64 (stats, name, &whole))
    return (gdouble) whole;
  return gst_structure_get_double (stats, name, &number) ? number : -1;
}

gboolean
bench_has_element (const gchar * name)
{
  GstElementFactory *factory = gst_element_factory_find (name);
  gboolean has = factory != NULL;

  gst_clear_object (&factory);
  return has;
}
