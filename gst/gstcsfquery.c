/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Answers to the queries that need no frame: caps and latency.  Runs in any thread and never waits for
 * a frame. */
#include "gstcudastreamfilter.h"

#include "kernels/format.h"

GST_DEBUG_CATEGORY_EXTERN (gst_cuda_stream_filter_debug);
#define GST_CAT_DEFAULT gst_cuda_stream_filter_debug

static GstCaps *
get_caps (GstCudaStreamFilter * self, GstPad * pad, GstCaps * filter)
{
  GstPad *other = pad == self->sinkpad ? self->srcpad : self->sinkpad;
  GstCaps *own, *peer, *both, *caps;
  const csfk_kernel *kernel;
  GstCsfKernel *loaded;
  gboolean cuda;

  GST_OBJECT_LOCK (self);
  cuda = self->settings.backend != GST_CSF_BACKEND_CPU && gst_csf_cuda_is_available ()
      && !self->no_cuda;
  /* One from outside is not known before READY is left: until then it may take anything. */
  loaded = self->loaded == NULL ? NULL : gst_csf_kernel_ref (self->loaded);
  kernel = loaded != NULL ? gst_csf_kernel_get (loaded) :
      self->settings.kernel_file != NULL || self->settings.kernel_library != NULL ? NULL :
      csfk_kernel_find (self->settings.kernel);
  GST_OBJECT_UNLOCK (self);
  own = gst_csf_kernel_caps (kernel, gst_pad_get_direction (pad), cuda);
  if (filter != NULL) {
    caps = gst_caps_intersect_full (filter, own, GST_CAPS_INTERSECT_FIRST);
    gst_caps_unref (own);
    own = caps;
  }
  /* Unfiltered: the filter is of our memory, the peer's may be the other. */
  peer = gst_pad_peer_query_caps (other, NULL);
  if (gst_caps_is_any (peer)) {
    gst_caps_unref (peer);
    gst_csf_kernel_unref (loaded);
    return own;
  }
  both = gst_csf_transform_caps (kernel, gst_pad_get_direction (other), peer, cuda);
  gst_csf_kernel_unref (loaded);
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
