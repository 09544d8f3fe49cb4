/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Sharing a CUDA context with neighbours and application, by GStreamer's own protocol: a query along
 * the pads, then a message to the application, then one of our own for everybody. */
#include "gstcudastreamfilter.h"

GST_DEBUG_CATEGORY_EXTERN (gst_cuda_stream_filter_debug);
#define GST_CAT_DEFAULT gst_cuda_stream_filter_debug

GstCsfCudaContext *
gst_csf_get_context (GstCudaStreamFilter * self)
{
  GstCsfCudaContext *context;

  g_mutex_lock (&self->lock);
  context = self->cuda_context != NULL ? gst_object_ref (self->cuda_context) : NULL;
  g_mutex_unlock (&self->lock);
  return context;
}

/* Takes the reference. */
static void
keep_context (GstCudaStreamFilter * self, GstCsfCudaContext * context)
{
  GstCsfCudaContext *old;

  g_mutex_lock (&self->lock);
  old = self->cuda_context;
  self->cuda_context = context;
  g_mutex_unlock (&self->lock);
  g_clear_object (&old);
}

void
gst_csf_set_context (GstCudaStreamFilter * self, GstContext * context)
{
  GstCsfCudaContext *found;
  gint id;

  if (context == NULL || !gst_context_has_context_type (context, GST_CSF_CUDA_CONTEXT_TYPE))
    return;
  GST_OBJECT_LOCK (self);
  id = self->settings.cuda_device_id;
  GST_OBJECT_UNLOCK (self);
  found = gst_csf_cuda_context_from (GST_ELEMENT (self), context, id);
  if (found == NULL) {
    GST_INFO_OBJECT (self, "a CUDA context of another device than %d was offered, not taken", id);
    return;
  }
  keep_context (self, found);
}

static gboolean
has_context (GstCudaStreamFilter * self)
{
  gboolean has;

  g_mutex_lock (&self->lock);
  has = self->cuda_context != NULL;
  g_mutex_unlock (&self->lock);
  return has;
}

static void
ask_peer (GstCudaStreamFilter * self, GstPad * pad)
{
  GstQuery *query;
  GstContext *context;

  if (has_context (self))
    return;
  query = gst_query_new_context (GST_CSF_CUDA_CONTEXT_TYPE);
  if (gst_pad_peer_query (pad, query)) {
    gst_query_parse_context (query, &context);
    /* Through the element, which keeps it for the next start. */
    gst_element_set_context (GST_ELEMENT (self), context);
  }
  gst_query_unref (query);
}

void
gst_csf_find_context (GstCudaStreamFilter * self)
{
  GstContext *kept = gst_element_get_context (GST_ELEMENT (self), GST_CSF_CUDA_CONTEXT_TYPE);

  if (!has_context (self) && kept != NULL)
    gst_csf_set_context (self, kept);
  g_clear_pointer (&kept, gst_context_unref);
  ask_peer (self, self->srcpad);
  ask_peer (self, self->sinkpad);
  if (!has_context (self))
    gst_element_post_message (GST_ELEMENT (self),
        gst_message_new_need_context (GST_OBJECT (self), GST_CSF_CUDA_CONTEXT_TYPE));
}

void
gst_csf_offer_context (GstCudaStreamFilter * self, csf_device * device)
{
  GstCsfCudaContext *context = gst_csf_cuda_context_wrap (device);

  if (context == NULL) {
    GST_WARNING_OBJECT (self, "libgstcuda cannot wrap the device's context");
    return;
  }
  keep_context (self, gst_object_ref (context));
  gst_element_post_message (GST_ELEMENT (self), gst_message_new_have_context (GST_OBJECT (self),
          gst_csf_cuda_context_to (context)));
  gst_object_unref (context);
}
