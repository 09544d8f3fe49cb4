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
  self->discont = FALSE;
  self->hung = FALSE;
  self->downstream_eos = FALSE;
  GST_OBJECT_LOCK (self);
  g_clear_pointer (&self->last_message, g_free);
  GST_OBJECT_UNLOCK (self);
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
  if (csf_engine_destroy (engine, STOP_TIMEOUT_NS, &error) != CSF_OK && !self->hung)
    gst_csf_post_error (self, &error);
}

/* Takes the reference. */
static void
use_context (GstCudaStreamFilter * self, GstCsfCudaContext * context)
{
  GstCsfCudaContext *old;

  g_mutex_lock (&self->lock);
  old = self->format.context;
  self->format.context = context;
  g_mutex_unlock (&self->lock);
  g_clear_object (&old);
}

static void
close_device (GstCudaStreamFilter * self)
{
  csf_hostpool *hostpool;

  close_engine (self);
  use_context (self, NULL);
  g_mutex_lock (&self->lock);
  hostpool = self->format.hostpool;
  self->format.hostpool = NULL;
  g_mutex_unlock (&self->lock);
  csf_hostpool_unref (hostpool);
  csf_device_unref (self->device);
  self->device = NULL;
}

void
gst_csf_stop (GstCudaStreamFilter * self)
{
  GstCsfCudaContext *context;

  close_device (self);
  GST_OBJECT_LOCK (self);
  self->kernel = NULL;
  GST_OBJECT_UNLOCK (self);
  /* What others offered is kept by GstElement; our own goes. */
  g_mutex_lock (&self->lock);
  context = self->cuda_context;
  self->cuda_context = NULL;
  g_mutex_unlock (&self->lock);
  g_clear_object (&context);
}

/* ---- device and engine ------------------------------------------------------------------------- */

static csf_status
fill_error (csf_error * error, csf_status status, const gchar * text)
{
  *error = (csf_error) {.status = status,.stage = CSF_STAGE_OPEN,.frame = CSF_NO_FRAME };
  g_strlcpy (error->text, text, sizeof error->text);
  return status;
}

static csf_status
open_cuda_device (GstCudaStreamFilter * self, gboolean cuda_caps, csf_error * error)
{
  GstCsfCudaContext *context;
  csf_status status;

  if (cuda_caps)
    gst_csf_find_context (self);
  context = gst_csf_get_context (self);
  if (context != NULL) {
    status = gst_csf_cuda_open_device (context, &self->device, error);
  } else {
    status = csf_device_open (CSF_BACKEND_CUDA, self->run.cuda_device_id, &self->device, error);
    if (status == CSF_OK && cuda_caps) {
      gst_csf_offer_context (self, self->device);
      context = gst_csf_get_context (self);
      if (context == NULL)
        status = fill_error (error, CSF_ERROR_UNSUPPORTED, "libgstcuda cannot work in the device's "
            "context; leave out memory:CUDAMemory");
    }
  }
  if (status == CSF_OK)
    use_context (self, context);
  else
    g_clear_object (&context);
  return status;
}

static csf_status
open_device (GstCudaStreamFilter * self, csf_backend_type backend, gboolean cuda_caps,
    csf_error * error)
{
  csf_hostpool *hostpool;
  csf_status status;

  if (backend == CSF_BACKEND_CUDA)
    status = open_cuda_device (self, cuda_caps, error);
  else
    status = csf_device_open (CSF_BACKEND_CPU, -1, &self->device, error);
  if (status == CSF_OK)
    status = csf_hostpool_create (self->device, self->run.max_pinned_memory, &hostpool, error);
  if (status != CSF_OK) {
    close_device (self);
    return status;
  }
  g_mutex_lock (&self->lock);
  self->format.hostpool = hostpool;
  self->format.pins = csf_device_get_info (self->device)->pins;
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
    .hostpool = self->format.hostpool,
    .kernel = self->kernel,
    .in = self->format.input_layout,
    .out = self->format.output_layout,
    .out_on_device = self->output_on_device,
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
  gst_csf_stats_set_engine (self->stats, self->device, self->format.hostpool, self->kernel->name,
      self->num_streams);
  g_mutex_lock (&self->lock);
  self->engine = engine;
  csf_engine_set_interrupted (engine, self->flow != GST_FLOW_OK && self->flow != GST_FLOW_EOS);
  g_mutex_unlock (&self->lock);
  return CSF_OK;
}

static gboolean
same_layout (const csf_layout * a, const csf_layout * b)
{
  return memcmp (a, b, sizeof *a) == 0;
}

/* What the frames look like from here on; an engine that does not fit is closed. */
static void
set_format (GstCudaStreamFilter * self, const GstVideoInfo * input, const GstVideoInfo * output,
    gboolean output_on_device)
{
  csf_layout input_layout, output_layout;

  gst_csf_layout_from_info (&input_layout, input);
  gst_csf_layout_from_info (&output_layout, output);
  if (!same_layout (&input_layout, &self->format.input_layout)
      || !same_layout (&output_layout, &self->format.output_layout)
      || output_on_device != self->output_on_device)
    close_engine (self);
  g_mutex_lock (&self->lock);
  self->format.input_info = *input;
  self->format.output_info = *output;
  self->format.input_layout = input_layout;
  self->format.output_layout = output_layout;
  self->output_on_device = output_on_device;
  self->fps_n = GST_VIDEO_INFO_FPS_N (input);
  self->fps_d = GST_VIDEO_INFO_FPS_D (input);
  g_mutex_unlock (&self->lock);
}

/* Opens what is missing for these caps.  *output_caps: what goes downstream. */
static csf_status
open_backend (GstCudaStreamFilter * self, csf_backend_type backend, GstCaps * input_caps,
    const GstVideoInfo * input, GstCaps ** output_caps, csf_error * error)
{
  gboolean cuda = backend == CSF_BACKEND_CUDA && gst_csf_cuda_is_available ();
  gboolean output_cuda;
  GstVideoInfo output;
  csf_status status = CSF_OK;

  *output_caps = gst_csf_choose_output_caps (self, input_caps, cuda);
  output_cuda = gst_csf_caps_are_cuda (*output_caps);
  gst_video_info_from_caps (&output, *output_caps);
  /* An engine in a context that nobody shares is of no use for CUDA memory. */
  if (self->device != NULL && cuda && self->format.context == NULL
      && (output_cuda || gst_csf_caps_are_cuda (input_caps)))
    close_device (self);
  set_format (self, input, &output, output_cuda);
  if (self->device == NULL)
    status = open_device (self, backend, output_cuda || gst_csf_caps_are_cuda (input_caps), error);
  if (status == CSF_OK && self->engine == NULL)
    status = open_engine (self, error);
  if (status != CSF_OK) {
    close_device (self);
    gst_clear_caps (output_caps);
  }
  return status;
}

/* The caps to send downstream, or NULL when an error was posted. */
static GstCaps *
open_any (GstCudaStreamFilter * self, GstCaps * input_caps, const GstVideoInfo * input)
{
  gboolean automatic = self->run.backend == GST_CSF_BACKEND_AUTO && self->device == NULL;
  csf_backend_type backend =
      self->run.backend == GST_CSF_BACKEND_CPU ? CSF_BACKEND_CPU : CSF_BACKEND_CUDA;
  csf_error error = { 0 };
  GstCaps *output_caps;

  if (self->device != NULL)
    backend = csf_device_get_info (self->device)->backend;
  if (open_backend (self, backend, input_caps, input, &output_caps, &error) == CSF_OK)
    return output_caps;
  if (automatic) {
    GST_ELEMENT_WARNING (self, RESOURCE, NOT_FOUND, ("Running on the CPU: %s", error.text),
        ("backend=cuda makes this an error, backend=cpu makes it silent"));
    if (open_backend (self, CSF_BACKEND_CPU, input_caps, input, &output_caps, &error) == CSF_OK)
      return output_caps;
  }
  error.frame = CSF_NO_FRAME;
  gst_csf_post_error (self, &error);
  return NULL;
}

static void
refuse_caps (GstCudaStreamFilter * self, GstCaps * caps)
{
  GstCaps *own = gst_csf_kernel_caps (self->kernel, gst_csf_cuda_is_available ());
  gchar *came = gst_caps_to_string (caps), *expected = gst_caps_to_string (own);

  if (gst_caps_can_intersect (caps, own))
    GST_ELEMENT_ERROR (self, STREAM, FORMAT, ("frames of these caps are larger than GStreamer can "
            "describe (2 GiB): %s; make them smaller before the element", came), (NULL));
  else
    GST_ELEMENT_ERROR (self, STREAM, FORMAT, ("kernel %s cannot take these caps: expected %s, got %s; "
            "put a videoconvert before the element", self->kernel->name, expected, came), (NULL));
  gst_caps_unref (own);
  g_free (expected);
  g_free (came);
}

GstFlowReturn
gst_csf_negotiate (GstCudaStreamFilter * self, GstEvent * caps_event)
{
  GstCaps *caps, *output_caps;
  GstVideoInfo info;
  gboolean pushed;

  gst_event_parse_caps (caps_event, &caps);
  if (!gst_video_info_from_caps (&info, caps)
      || csfk_format_from_name (GST_VIDEO_INFO_NAME (&info)) == CSFK_FORMAT_NONE) {
    refuse_caps (self, caps);
    return GST_FLOW_ERROR;
  }
  output_caps = open_any (self, caps, &info);
  if (output_caps == NULL)
    return GST_FLOW_ERROR;
  pushed = gst_pad_push_event (self->srcpad, gst_event_new_caps (output_caps));
  gst_caps_unref (output_caps);
  if (!pushed)
    return GST_PAD_IS_FLUSHING (self->srcpad) ? GST_FLOW_FLUSHING : GST_FLOW_NOT_NEGOTIATED;
  gst_pad_check_reconfigure (self->srcpad);
  return gst_csf_decide_allocation (self) ? GST_FLOW_OK : GST_FLOW_ERROR;
}

/* ---- pools ------------------------------------------------------------------------------------- */

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
  set_pool (self, pool);
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
