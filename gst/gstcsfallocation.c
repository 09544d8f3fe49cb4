/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The buffer pools on both sides: what downstream's answer makes of ours, and what upstream is offered.
 * Makes no driver calls. */
#include "gstcudastreamfilter.h"

#include "gstcsfpool.h"

/* Buffers that downstream holds beside the frames in flight: one shown, one as last sample, one on its
 * way. */
#define DOWNSTREAM_BUFFERS 3

void
gst_csf_set_pool (GstCudaStreamFilter * self, GstBufferPool * pool)
{
  if (self->pool != NULL) {
    gst_buffer_pool_set_active (self->pool, FALSE);
    gst_object_unref (self->pool);
  }
  self->pool = pool;
}

/* What the output pool must be like. */
typedef struct
{
  GstCaps *caps;
  guint size, min_buffers;
  gboolean video_meta;
  GstBufferPool *offered;       /* downstream's, of CUDA memory that we can write; or NULL */
} PoolNeeds;

static void
look_at_pool (GstCudaStreamFilter * self, GstQuery * query, PoolNeeds * needs, guint * held)
{
  GstBufferPool *pool;
  guint max;

  if (gst_query_get_n_allocation_pools (query) == 0)
    return;
  gst_query_parse_nth_allocation_pool (query, 0, &pool, NULL, held, &max);
  /* One with an upper limit would wait for itself. */
  if (pool != NULL && self->output_on_device && max == 0
      && gst_csf_cuda_pool_fits (pool, self->format.context))
    needs->offered = pool;
  else
    g_clear_object (&pool);
}

static void
ask_downstream (GstCudaStreamFilter * self, PoolNeeds * needs)
{
  GstQuery *query = gst_query_new_allocation (needs->caps, TRUE);
  guint held = 0;

  needs->video_meta = FALSE;
  if (gst_pad_peer_query (self->srcpad, query)) {
    needs->video_meta = gst_query_find_allocation_meta (query, GST_VIDEO_META_API_TYPE, NULL);
    look_at_pool (self, query, needs, &held);
  }
  gst_query_unref (query);
  needs->size = GST_VIDEO_INFO_SIZE (&self->format.output_info);
  needs->min_buffers = self->num_streams + DOWNSTREAM_BUFFERS + MIN (held, 64);
}

/* Whether the present pool's buffers serve as well: taking new ones costs milliseconds each. */
static gboolean
pool_still_fits (GstCudaStreamFilter * self, const PoolNeeds * needs)
{
  GstStructure *config;
  guint size = 0;
  gboolean video_meta, fits;

  if (self->pool == NULL || self->output_on_device != self->pool_on_device)
    return FALSE;
  config = gst_buffer_pool_get_config (self->pool);
  video_meta = gst_buffer_pool_config_has_option (config, GST_BUFFER_POOL_OPTION_VIDEO_META);
  fits = gst_buffer_pool_config_get_params (config, NULL, &size, NULL, NULL)
      && (self->pool_on_device || size == needs->size)
      && self->pool_buffers == needs->min_buffers
      && (self->pool_on_device || video_meta == needs->video_meta);
  gst_structure_free (config);
  return fits;
}

/* Activates a pool and makes it allocate its buffers now.  Its own way to do so, a minimum in the config,
 * loses those it has when a later one fails. */
static gboolean
fill_pool (GstBufferPool * pool, guint n_buffers)
{
  GstBuffer **buffers = g_new0 (GstBuffer *, n_buffers);
  gboolean filled = gst_buffer_pool_set_active (pool, TRUE);
  guint n = 0;

  while (filled && n < n_buffers) {
    filled = gst_buffer_pool_acquire_buffer (pool, &buffers[n], NULL) == GST_FLOW_OK;
    if (filled)
      n++;
  }
  while (n > 0)
    gst_buffer_unref (buffers[--n]);
  g_free (buffers);
  if (!filled)
    gst_buffer_pool_set_active (pool, FALSE);
  return filled;
}

static GstBufferPool *
new_pool (GstCudaStreamFilter * self, const PoolNeeds * needs)
{
  GstAllocator *allocator;
  GstBufferPool *pool;

  if (self->output_on_device) {
    pool = needs->offered == NULL ? NULL : gst_csf_cuda_pool_configure
        (gst_object_ref (needs->offered), needs->caps, needs->size, 0);
    if (pool != NULL)
      return pool;
    return gst_csf_cuda_pool_configure (gst_csf_cuda_pool_new (self->format.context), needs->caps,
        needs->size, 0);
  }
  /* Downstream's pool is not taken, only how many buffers it holds: our memory is what the device
   * copies to without a detour. */
  allocator = gst_csf_allocator_new (self->format.hostpool);
  pool = gst_csf_pool_new (allocator, needs->caps, needs->size, 0, needs->video_meta);
  gst_object_unref (allocator);
  return pool;
}

gboolean
gst_csf_decide_allocation (GstCudaStreamFilter * self)
{
  PoolNeeds needs = {.caps = gst_pad_get_current_caps (self->srcpad) };
  GstBufferPool *pool;

  if (needs.caps == NULL)
    return TRUE;
  ask_downstream (self, &needs);
  if (pool_still_fits (self, &needs)) {
    gst_caps_unref (needs.caps);
    g_clear_object (&needs.offered);
    return TRUE;
  }
  pool = new_pool (self, &needs);
  gst_caps_unref (needs.caps);
  g_clear_object (&needs.offered);
  if (pool == NULL || !fill_pool (pool, needs.min_buffers)) {
    gst_clear_object (&pool);
    GST_ELEMENT_ERROR (self, RESOURCE, NO_SPACE_LEFT, ("no memory for %u frames of %u bytes; lower "
            "num-streams or the frame size", needs.min_buffers, needs.size), (NULL));
    return FALSE;
  }
  gst_csf_set_pool (self, pool);
  self->pool_on_device = self->output_on_device;
  self->pool_buffers = needs.min_buffers;
  return TRUE;
}

static void
propose_cuda (GstCsfCudaContext * context, GstQuery * query, GstCaps * caps, guint size, guint min)
{
  GstBufferPool *pool =
      gst_csf_cuda_pool_configure (gst_csf_cuda_pool_new (context), caps, size, min);

  if (pool == NULL)
    return;
  gst_query_add_allocation_pool (query, pool, size, min, 0);
  gst_object_unref (pool);
}

static void
propose_pinned (csf_hostpool * hostpool, GstQuery * query, GstCaps * caps, gboolean need_pool,
    guint size, guint min)
{
  GstAllocator *allocator = gst_csf_allocator_new (hostpool);
  GstBufferPool *pool =
      need_pool ? gst_csf_pool_new (allocator, caps, size, min, TRUE) : NULL;

  if (pool != NULL) {
    gst_query_add_allocation_pool (query, pool, size, min, 0);
    gst_object_unref (pool);
  }
  gst_query_add_allocation_param (query, allocator, NULL);
  gst_object_unref (allocator);
}

gboolean
gst_csf_propose_allocation (GstCudaStreamFilter * self, GstQuery * query)
{
  csf_hostpool *hostpool = NULL;
  GstCsfCudaContext *context = NULL;
  guint min_buffers = 0;
  gboolean need_pool;
  GstVideoInfo info;
  GstCaps *caps;

  gst_query_parse_allocation (query, &caps, &need_pool);
  if (caps == NULL || !gst_video_info_from_caps (&info, caps))
    return FALSE;
  g_mutex_lock (&self->lock);
  /* The CPU works on any memory: upstream's own is as good. */
  if (self->format.hostpool != NULL && self->engine != NULL
      && csf_device_get_info (self->device)->pins) {
    hostpool = csf_hostpool_ref (self->format.hostpool);
    /* All in flight, one retired and not yet released, one being filled. */
    min_buffers = self->num_streams + 2;
    if (self->format.context != NULL)
      context = gst_object_ref (self->format.context);
  }
  g_mutex_unlock (&self->lock);

  if (gst_csf_caps_are_cuda (caps)) {
    if (context != NULL && need_pool)
      propose_cuda (context, query, caps, GST_VIDEO_INFO_SIZE (&info), min_buffers);
  } else if (hostpool != NULL) {
    propose_pinned (hostpool, query, caps, need_pool, GST_VIDEO_INFO_SIZE (&info), min_buffers);
  }
  csf_hostpool_unref (hostpool);
  g_clear_object (&context);
  gst_query_add_allocation_meta (query, GST_VIDEO_META_API_TYPE, NULL);
  return TRUE;
}
