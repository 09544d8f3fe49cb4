/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The benchmark's source element.  Knows nothing of what it feeds. */
#include "gstbenchsrc.h"

#include <gst/video/video.h>

#include "bench.h"

#define FRAMES_PER_SECOND 30

struct _GstBenchSrc
{
  GstPushSrc parent;
  GstCaps *caps;
  guint least_buffers;          /* as many take turns at least */
  guint64 frame;                /* streaming thread */
};

G_DEFINE_TYPE (GstBenchSrc, gst_bench_src, GST_TYPE_PUSH_SRC)

static GstStaticPadTemplate src_template = GST_STATIC_PAD_TEMPLATE ("src", GST_PAD_SRC,
    GST_PAD_ALWAYS, GST_STATIC_CAPS ("video/x-raw(ANY)"));

static GQuark
filled_quark (void)
{
  return g_quark_from_static_string ("GstBenchSrcFilled");
}

static void
fill_once (GstMemory * memory)
{
  GstMiniObject *object = GST_MINI_OBJECT_CAST (memory);
  GstMapInfo map;

  if (gst_mini_object_get_qdata (object, filled_quark ()) != NULL)
    return;
  if (!gst_memory_map (memory, &map, GST_MAP_WRITE))
    return;
  bench_fill (map.data, map.size);
  gst_memory_unmap (memory, &map);
  gst_mini_object_set_qdata (object, filled_quark (), GINT_TO_POINTER (TRUE), NULL);
}

static GstFlowReturn
gst_bench_src_fill (GstPushSrc * src, GstBuffer * buffer)
{
  GstBenchSrc *self = GST_BENCH_SRC (src);
  guint n = gst_buffer_n_memory (buffer);

  for (guint i = 0; i < n; i++)
    fill_once (gst_buffer_peek_memory (buffer, i));
  GST_BUFFER_PTS (buffer) =
      gst_util_uint64_scale_int (self->frame, GST_SECOND, FRAMES_PER_SECOND);
  GST_BUFFER_DURATION (buffer) = GST_SECOND / FRAMES_PER_SECOND;
  GST_BUFFER_OFFSET (buffer) = self->frame++;
  return GST_FLOW_OK;
}

/* Downstream proposes nothing: a pool all the same, since new memory for each frame costs page
 * faults. */
static gboolean
add_pool (GstQuery * query)
{
  GstBufferPool *pool;
  GstStructure *config;
  GstVideoInfo info;
  GstCaps *caps;
  gboolean good;

  gst_query_parse_allocation (query, &caps, NULL);
  if (caps == NULL || !gst_video_info_from_caps (&info, caps)
      || !gst_caps_features_is_equal (gst_caps_get_features (caps, 0),
          GST_CAPS_FEATURES_MEMORY_SYSTEM_MEMORY))
    return FALSE;
  pool = gst_video_buffer_pool_new ();
  config = gst_buffer_pool_get_config (pool);
  gst_buffer_pool_config_set_params (config, caps, GST_VIDEO_INFO_SIZE (&info), 4, 0);
  good = gst_buffer_pool_set_config (pool, config);
  if (good)
    gst_query_add_allocation_pool (query, pool, GST_VIDEO_INFO_SIZE (&info), 4, 0);
  gst_object_unref (pool);
  return good;
}

static gboolean
gst_bench_src_decide_allocation (GstBaseSrc * src, GstQuery * query)
{
  GstBufferPool *pool;
  guint size, min, max;

  if (gst_query_get_n_allocation_pools (query) == 0 && !add_pool (query))
    return FALSE;
  gst_query_parse_nth_allocation_pool (query, 0, &pool, &size, &min, &max);
  min = MAX (min, GST_BENCH_SRC (src)->least_buffers);
  gst_query_set_nth_allocation_pool (query, 0, pool, size, min, max == 0 ? 0 : MAX (min, max));
  gst_clear_object (&pool);
  return GST_BASE_SRC_CLASS (gst_bench_src_parent_class)->decide_allocation (src, query);
}

static GstCaps *
gst_bench_src_get_caps (GstBaseSrc * src, GstCaps * filter)
{
  GstCaps *caps = GST_BENCH_SRC (src)->caps;

  return filter != NULL ? gst_caps_intersect (caps, filter) : gst_caps_ref (caps);
}

static gboolean
gst_bench_src_start (GstBaseSrc * src)
{
  GST_BENCH_SRC (src)->frame = 0;
  return TRUE;
}

static void
gst_bench_src_finalize (GObject * object)
{
  gst_caps_unref (GST_BENCH_SRC (object)->caps);
  G_OBJECT_CLASS (gst_bench_src_parent_class)->finalize (object);
}

static void
gst_bench_src_class_init (GstBenchSrcClass * klass)
{
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);
  GstBaseSrcClass *base_src_class = GST_BASE_SRC_CLASS (klass);

  G_OBJECT_CLASS (klass)->finalize = gst_bench_src_finalize;
  base_src_class->get_caps = gst_bench_src_get_caps;
  base_src_class->start = gst_bench_src_start;
  base_src_class->decide_allocation = gst_bench_src_decide_allocation;
  GST_PUSH_SRC_CLASS (klass)->fill = gst_bench_src_fill;
  gst_element_class_add_static_pad_template (element_class, &src_template);
  gst_element_class_set_static_metadata (element_class, "Benchmark source", "Source/Video",
      "Pushes frames of noise as fast as possible", "cudastreamfilter");
}

static void
gst_bench_src_init (GstBenchSrc * self)
{
  gst_base_src_set_format (GST_BASE_SRC (self), GST_FORMAT_TIME);
}

GstElement *
gst_bench_src_new (const gchar * format, gint width, gint height, const gchar * feature,
    guint least_buffers)
{
  GstBenchSrc *self = g_object_new (GST_TYPE_BENCH_SRC, NULL);

  self->least_buffers = least_buffers;
  self->caps = gst_caps_new_simple ("video/x-raw", "format", G_TYPE_STRING, format, "width",
      G_TYPE_INT, width, "height", G_TYPE_INT, height, "framerate", GST_TYPE_FRACTION,
      FRAMES_PER_SECOND, 1, NULL);
  if (feature != NULL)
    gst_caps_set_features_simple (self->caps, gst_caps_features_new (feature, NULL));
  return GST_ELEMENT (self);
}
