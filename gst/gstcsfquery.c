/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Answers to the queries that need no frame: caps and latency.  Runs in any thread and never waits for
 * a frame. */
#include "gstcudastreamfilter.h"

GST_DEBUG_CATEGORY_EXTERN (gst_cuda_stream_filter_debug);
#define GST_CAT_DEFAULT gst_cuda_stream_filter_debug

/* What the peer can do with our frames, in either memory: its own order first. */
static GstCaps *
in_both_memories (GstCaps * peer, gboolean cuda)
{
  GstCaps *both = gst_caps_copy (peer);

  for (guint i = 0; i < gst_caps_get_size (peer); i++) {
    GstStructure *structure = gst_caps_get_structure (peer, i);

    gst_caps_append_structure_full (both, gst_structure_copy (structure),
        gst_caps_features_new (GST_CAPS_FEATURE_MEMORY_SYSTEM_MEMORY, NULL));
    if (cuda)
      gst_caps_append_structure_full (both, gst_structure_copy (structure),
          gst_caps_features_new (GST_CSF_CUDA_FEATURE, NULL));
  }
  return both;
}

static GstCaps *
get_caps (GstCudaStreamFilter * self, GstPad * pad, GstCaps * filter)
{
  GstPad *other = pad == self->sinkpad ? self->srcpad : self->sinkpad;
  GstCaps *own, *peer, *both, *caps;
  gchar *reason = NULL;
  gboolean cuda;

  GST_OBJECT_LOCK (self);
  cuda = self->settings.backend != GST_CSF_BACKEND_CPU && gst_csf_cuda_is_available ()
      && !self->no_cuda;
  own = gst_csf_kernel_caps (self->kernel != NULL ? self->kernel :
      gst_csf_find_kernel (self->settings.kernel, &reason), cuda);
  GST_OBJECT_UNLOCK (self);
  g_free (reason);
  if (filter != NULL) {
    caps = gst_caps_intersect_full (filter, own, GST_CAPS_INTERSECT_FIRST);
    gst_caps_unref (own);
    own = caps;
  }
  /* Unfiltered: the filter is of our memory, the peer's may be the other. */
  peer = gst_pad_peer_query_caps (other, NULL);
  if (gst_caps_is_any (peer)) {
    gst_caps_unref (peer);
    return own;
  }
  both = in_both_memories (peer, cuda);
  caps = gst_caps_intersect_full (both, own, GST_CAPS_INTERSECT_FIRST);
  gst_caps_unref (both);
  gst_caps_unref (peer);
  gst_caps_unref (own);
  return caps;
}

gboolean
gst_csf_query_caps (GstCudaStreamFilter * self, GstPad * pad, GstQuery * query)
{
  GstCaps *filter, *caps;

  gst_query_parse_caps (query, &filter);
  caps = get_caps (self, pad, filter);
  gst_query_set_caps_result (query, caps);
  gst_caps_unref (caps);
  return TRUE;
}

gboolean
gst_csf_query_accept_caps (GstCudaStreamFilter * self, GstPad * pad, GstQuery * query)
{
  GstCaps *caps, *allowed;

  gst_query_parse_accept_caps (query, &caps);
  allowed = get_caps (self, pad, NULL);
  gst_query_set_accept_caps_result (query, gst_caps_can_intersect (caps, allowed));
  gst_caps_unref (allowed);
  return TRUE;
}

gboolean
gst_csf_query_latency (GstCudaStreamFilter * self, GstQuery * query)
{
  GstClockTime min, max, own, frame;
  gboolean live;

  if (!gst_pad_peer_query (self->sinkpad, query))
    return FALSE;
  gst_query_parse_latency (query, &live, &min, &max);
  g_mutex_lock (&self->lock);
  own = self->latency;
  frame = self->fps_n > 0 ? gst_util_uint64_scale (GST_SECOND, self->fps_d, self->fps_n) : 0;
  if (GST_CLOCK_TIME_IS_VALID (max))
    max += self->num_streams * frame;
  g_mutex_unlock (&self->lock);
  if (GST_CLOCK_TIME_IS_VALID (min))
    min += own;
  if (GST_CLOCK_TIME_IS_VALID (max) && max < min)
    max = min;
  GST_DEBUG_OBJECT (self, "latency: own %" GST_TIME_FORMAT ", min %" GST_TIME_FORMAT ", max %"
      GST_TIME_FORMAT, GST_TIME_ARGS (own), GST_TIME_ARGS (min), GST_TIME_ARGS (max));
  gst_query_set_latency (query, live, min, max);
  return TRUE;
}
