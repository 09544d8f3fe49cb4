/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What happens at caps: choosing the device, opening the engine for a frame layout, and the pools on
 * both sides.  Makes no driver calls. */
#include "gstcudastreamfilter.h"

#include "config.h"
#include "gstcsfpool.h"
#include "kernels/format.h"

GST_DEBUG_CATEGORY_EXTERN (gst_cuda_stream_filter_debug);
#define GST_CAT_DEFAULT gst_cuda_stream_filter_debug

/* A device that has not finished by then never will. */
#define STOP_TIMEOUT_NS (3 * GST_SECOND)
/* Buffers that downstream holds beside the frames in flight: one shown, one as last sample, one on its
 * way. */
#define DOWNSTREAM_BUFFERS 3

static void
append_format (GValue * list, int format)
{
  GValue name = G_VALUE_INIT;

  g_value_init (&name, G_TYPE_STRING);
  g_value_set_static_string (&name, csfk_format_get_info (format)->name);
  gst_value_list_append_and_take_value (list, &name);
}

GstCaps *
gst_csf_kernel_caps (const csfk_kernel * kernel)
{
  GValue formats = G_VALUE_INIT;
  GstCaps *caps;

  g_value_init (&formats, GST_TYPE_LIST);
  if (kernel == NULL)
    for (int f = CSFK_FORMAT_NONE + 1; f < CSFK_N_FORMATS; f++)
      append_format (&formats, f);
  else
    for (int i = 0; i < CSFK_MAX_FORMATS && kernel->formats[i] != CSFK_FORMAT_NONE; i++)
      append_format (&formats, kernel->formats[i]);
  caps = gst_caps_new_simple ("video/x-raw", "width", GST_TYPE_INT_RANGE, 1, G_MAXINT,
      "height", GST_TYPE_INT_RANGE, 1, G_MAXINT, "framerate", GST_TYPE_FRACTION_RANGE, 0, 1,
      G_MAXINT, 1, NULL);
  gst_caps_set_value (caps, "format", &formats);
  g_value_unset (&formats);
  return caps;
}

GstCaps *
gst_csf_template_caps (void)
{
  return gst_csf_kernel_caps (NULL);
}

/* ---- errors ------------------------------------------------------------------------------------ */

static gint
resource_code (csf_status status)
{
  switch (status) {
    case CSF_ERROR_ARGUMENT:
      return GST_RESOURCE_ERROR_SETTINGS;
    case CSF_ERROR_NO_DEVICE:
    case CSF_ERROR_DRIVER:
      return GST_RESOURCE_ERROR_NOT_FOUND;
    case CSF_ERROR_MEMORY:
      return GST_RESOURCE_ERROR_NO_SPACE_LEFT;
    case CSF_ERROR_TIMEOUT:
      return GST_RESOURCE_ERROR_CLOSE;
    default:
      return GST_RESOURCE_ERROR_FAILED;
  }
}

void
gst_csf_post_error (GstCudaStreamFilter * self, const csf_error * error)
{
  gchar *text;

  if (error->frame == CSF_NO_FRAME)
    text = g_strdup (error->text);
  else
    text = g_strdup_printf ("kernel \"%s\", frame %" G_GUINT64_FORMAT ", %s: %s%s",
        self->kernel->name, error->frame, csf_stage_name (error->stage), error->text,
        error->status == CSF_ERROR_DEVICE ? "; if a restart of the pipeline fails as well, the "
        "device's state is lost to this process and the process must be restarted" : "");
  gst_element_message_full (GST_ELEMENT (self), GST_MESSAGE_ERROR, GST_RESOURCE_ERROR,
      resource_code (error->status), text,
      g_strdup_printf ("stage %s, driver code %d", csf_stage_name (error->stage),
          error->driver_code), __FILE__, GST_FUNCTION, __LINE__);
#if CSF_DEBUG_ABORT
  g_error ("debug-abort: %s", error->text);
#endif
}

/* ---- start and stop ---------------------------------------------------------------------------- */

gboolean
gst_csf_start (GstCudaStreamFilter * self)
{
  gchar *reason = NULL;
  guint8 params[CSFK_MAX_PARAMS] __attribute__ ((aligned (16)));

  gst_csf_settings_clear (&self->run);
  GST_OBJECT_LOCK (self);
  self->run = gst_csf_settings_copy (&self->settings);
  GST_OBJECT_UNLOCK (self);
  self->kernel = gst_csf_find_kernel (self->run.kernel, &reason);
  if (self->kernel == NULL
      || !gst_csf_parse_params (self->kernel, self->run.kernel_params, params, &reason)) {
    GST_ELEMENT_ERROR (self, RESOURCE, SETTINGS, ("%s", reason), (NULL));
    g_free (reason);
    return FALSE;
  }
  memcpy (self->params, params, self->kernel->params_size);
  self->params_serial = self->run.params_serial;
  self->frame_count = 0;
  self->downstream_eos = FALSE;
  gst_segment_init (&self->segment, GST_FORMAT_UNDEFINED);
  gst_csf_stats_reset (self->stats);
  g_mutex_lock (&self->lock);
  self->eos_queued = FALSE;
  self->earliest_time = GST_CLOCK_TIME_NONE;
  self->latency = 0;
  g_mutex_unlock (&self->lock);
  return TRUE;
}

static void
set_pool (GstCudaStreamFilter * self, GstBufferPool * pool)
{
  if (self->pool != NULL) {
    gst_buffer_pool_set_active (self->pool, FALSE);
    gst_object_unref (self->pool);
  }
  self->pool = pool;
}

/* Nothing is in flight but what a flush or stop left behind. */
static void
close_engine (GstCudaStreamFilter * self)
{
  csf_engine *engine;
  csf_error error;

  set_pool (self, NULL);
  if (self->engine == NULL)
    return;
  gst_csf_stats_unset_engine (self->stats, self->engine);
  g_mutex_lock (&self->lock);
  engine = self->engine;
  self->engine = NULL;
  g_mutex_unlock (&self->lock);
  if (csf_engine_destroy (engine, STOP_TIMEOUT_NS, &error) != CSF_OK)
    gst_csf_post_error (self, &error);
}

static void
close_device (GstCudaStreamFilter * self)
{
  csf_hostpool *hostpool;

  g_mutex_lock (&self->lock);
  hostpool = self->hostpool;
  self->hostpool = NULL;
  g_mutex_unlock (&self->lock);
  csf_hostpool_unref (hostpool);
  csf_device_unref (self->device);
  self->device = NULL;
}

void
gst_csf_stop (GstCudaStreamFilter * self)
{
  close_engine (self);
  close_device (self);
}

/* ---- device and engine ------------------------------------------------------------------------- */

static csf_status
open_device (GstCudaStreamFilter * self, csf_backend_type backend, csf_error * error)
{
  csf_hostpool *hostpool;
  csf_status status =
      csf_device_open (backend, self->run.cuda_device_id, &self->device, error);

  if (status != CSF_OK)
    return status;
  status = csf_hostpool_create (self->device, self->run.max_pinned_memory, &hostpool, error);
  if (status != CSF_OK) {
    csf_device_unref (self->device);
    self->device = NULL;
    return status;
  }
  g_mutex_lock (&self->lock);
  self->hostpool = hostpool;
  g_mutex_unlock (&self->lock);
  return CSF_OK;
}

/* A frame that left without being handed out: flushed, or the element stopped. */
static void
release_frame (void *context, void *user)
{
  gst_csf_frame_free (user);
}

static csf_status
open_engine (GstCudaStreamFilter * self, csf_error * error)
{
  csf_config config = {
    .device = self->device,
    .hostpool = self->hostpool,
    .kernel = self->kernel,
    .in = self->input_layout,
    .out = self->output_layout,
    .release = release_frame,
    .context = self,
  };
  csf_engine *engine;
  csf_status status;

  self->num_streams = config.num_streams = self->run.num_streams != 0 ?
      self->run.num_streams : csf_device_get_info (self->device)->default_streams;
  status = csf_engine_create (&config, &engine, error);
  if (status != CSF_OK)
    return status;
  gst_csf_stats_set_engine (self->stats, self->device, self->hostpool, self->kernel->name,
      self->num_streams);
  g_mutex_lock (&self->lock);
  self->engine = engine;
  csf_engine_set_interrupted (engine, self->flow != GST_FLOW_OK && self->flow != GST_FLOW_EOS);
  g_mutex_unlock (&self->lock);
  return CSF_OK;
}

static csf_status
open_backend (GstCudaStreamFilter * self, csf_backend_type backend, csf_error * error)
{
  csf_status status = self->device != NULL ? CSF_OK : open_device (self, backend, error);

  if (status == CSF_OK)
    status = open_engine (self, error);
  if (status != CSF_OK)
    close_device (self);
  return status;
}

static gboolean
open_any (GstCudaStreamFilter * self)
{
  gboolean automatic = self->run.backend == GST_CSF_BACKEND_AUTO && self->device == NULL;
  csf_backend_type backend =
      self->run.backend == GST_CSF_BACKEND_CPU ? CSF_BACKEND_CPU : CSF_BACKEND_CUDA;
  csf_error error = { 0 };

  if (open_backend (self, backend, &error) == CSF_OK)
    return TRUE;
  if (automatic) {
    GST_ELEMENT_WARNING (self, RESOURCE, NOT_FOUND, ("Running on the CPU: %s", error.text),
        ("backend=cuda makes this an error, backend=cpu makes it silent"));
    if (open_backend (self, CSF_BACKEND_CPU, &error) == CSF_OK)
      return TRUE;
  }
  error.frame = CSF_NO_FRAME;
  gst_csf_post_error (self, &error);
  return FALSE;
}

static gboolean
same_layout (const csf_layout * a, const csf_layout * b)
{
  return memcmp (a, b, sizeof *a) == 0;
}

static gboolean
set_layouts (GstCudaStreamFilter * self, GstCaps * caps)
{
  GstVideoInfo info;
  csf_layout layout;

  if (!gst_video_info_from_caps (&info, caps) || !gst_csf_layout_from_info (&layout, &info)) {
    gchar *came = gst_caps_to_string (caps), *expected;
    GstCaps *own = gst_csf_kernel_caps (self->kernel);

    expected = gst_caps_to_string (own);
    GST_ELEMENT_ERROR (self, STREAM, FORMAT, ("kernel %s cannot take these caps: expected %s, got %s; "
            "put a videoconvert before the element", self->kernel->name, expected, came), (NULL));
    gst_caps_unref (own);
    g_free (expected);
    g_free (came);
    return FALSE;
  }
  if (self->engine != NULL && !same_layout (&layout, &self->input_layout))
    close_engine (self);
  g_mutex_lock (&self->lock);
  self->input_info = self->output_info = info;
  self->input_layout = self->output_layout = layout;
  self->fps_n = GST_VIDEO_INFO_FPS_N (&info);
  self->fps_d = GST_VIDEO_INFO_FPS_D (&info);
  g_mutex_unlock (&self->lock);
  return TRUE;
}

GstFlowReturn
gst_csf_negotiate (GstCudaStreamFilter * self, GstEvent * caps_event)
{
  GstCaps *caps;

  gst_event_parse_caps (caps_event, &caps);
  if (!set_layouts (self, caps))
    return GST_FLOW_ERROR;
  if (self->engine == NULL && !open_any (self))
    return GST_FLOW_ERROR;
  if (!gst_pad_push_event (self->srcpad, gst_event_ref (caps_event)))
    return GST_PAD_IS_FLUSHING (self->srcpad) ? GST_FLOW_FLUSHING : GST_FLOW_NOT_NEGOTIATED;
  gst_pad_check_reconfigure (self->srcpad);
  return gst_csf_decide_allocation (self) ? GST_FLOW_OK : GST_FLOW_ERROR;
}

/* ---- pools ------------------------------------------------------------------------------------- */

gboolean
gst_csf_decide_allocation (GstCudaStreamFilter * self)
{
  GstCaps *caps = gst_pad_get_current_caps (self->srcpad);
  GstQuery *query;
  GstAllocator *allocator;
  GstBufferPool *pool;
  gboolean video_meta = FALSE;
  guint held = 0;

  if (caps == NULL)
    return TRUE;
  query = gst_query_new_allocation (caps, TRUE);
  if (gst_pad_peer_query (self->srcpad, query)) {
    video_meta = gst_query_find_allocation_meta (query, GST_VIDEO_META_API_TYPE, NULL);
    if (gst_query_get_n_allocation_pools (query) > 0)
      gst_query_parse_nth_allocation_pool (query, 0, NULL, NULL, &held, NULL);
  }
  gst_query_unref (query);

  /* Downstream's pool is not taken, only how many buffers it holds: our memory is what the device
   * copies to without a detour. */
  allocator = gst_csf_allocator_new (self->hostpool);
  pool = gst_csf_pool_new (allocator, caps, GST_VIDEO_INFO_SIZE (&self->output_info),
      self->num_streams + DOWNSTREAM_BUFFERS + MIN (held, 64), video_meta);
  gst_object_unref (allocator);
  gst_caps_unref (caps);
  if (pool == NULL || !gst_buffer_pool_set_active (pool, TRUE)) {
    gst_clear_object (&pool);
    GST_ELEMENT_ERROR (self, RESOURCE, NO_SPACE_LEFT, ("no memory for %u frames of %"
            G_GSIZE_FORMAT " bytes; lower num-streams or the frame size", self->num_streams +
            DOWNSTREAM_BUFFERS, GST_VIDEO_INFO_SIZE (&self->output_info)), (NULL));
    return FALSE;
  }
  set_pool (self, pool);
  return TRUE;
}

gboolean
gst_csf_propose_allocation (GstCudaStreamFilter * self, GstQuery * query)
{
  csf_hostpool *hostpool = NULL;
  guint min_buffers = 0;
  gboolean need_pool;
  GstVideoInfo info;
  GstCaps *caps;

  gst_query_parse_allocation (query, &caps, &need_pool);
  if (caps == NULL || !gst_video_info_from_caps (&info, caps))
    return FALSE;
  g_mutex_lock (&self->lock);
  /* The CPU works on any memory: upstream's own is as good. */
  if (self->hostpool != NULL && self->engine != NULL
      && csf_device_get_info (self->device)->pins) {
    hostpool = csf_hostpool_ref (self->hostpool);
    /* All in flight, one retired and not yet released, one being filled. */
    min_buffers = self->num_streams + 2;
  }
  g_mutex_unlock (&self->lock);

  if (hostpool != NULL) {
    GstAllocator *allocator = gst_csf_allocator_new (hostpool);

    if (need_pool) {
      GstBufferPool *pool = gst_csf_pool_new (allocator, caps, GST_VIDEO_INFO_SIZE (&info),
          min_buffers, TRUE);

      if (pool != NULL) {
        gst_query_add_allocation_pool (query, pool, GST_VIDEO_INFO_SIZE (&info), min_buffers, 0);
        gst_object_unref (pool);
      }
    }
    gst_query_add_allocation_param (query, allocator, NULL);
    gst_object_unref (allocator);
    csf_hostpool_unref (hostpool);
  }
  gst_query_add_allocation_meta (query, GST_VIDEO_META_API_TYPE, NULL);
  return TRUE;
}
