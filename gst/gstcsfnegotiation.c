/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What happens at caps: choosing the device and opening the engine for a frame layout; and the kernel, from
 * its loading to its change.  Makes no driver calls. */
#include "gstcudastreamfilter.h"

#include "config.h"
#include "gstcsfparams.h"
#include "kernels/format.h"

GST_DEBUG_CATEGORY_EXTERN (gst_cuda_stream_filter_debug);
#define GST_CAT_DEFAULT gst_cuda_stream_filter_debug

/* A device that has not finished by then never will. */
#define STOP_TIMEOUT_NS (3 * GST_SECOND)

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
        error->status == CSF_ERROR_DEVICE ? "; the process must be restarted, since a GPU fault "
        "leaves its CUDA context unusable" : "");
  gst_element_message_full (GST_ELEMENT (self), GST_MESSAGE_ERROR, GST_RESOURCE_ERROR,
      resource_code (error->status), text,
      g_strdup_printf ("stage %s, driver code %d", csf_stage_name (error->stage),
          error->driver_code), __FILE__, GST_FUNCTION, __LINE__);
#if CSF_DEBUG_ABORT
  g_error ("debug-abort: %s", error->text);
#endif
}

static csf_status
fill_error (csf_error * error, csf_status status, const gchar * text)
{
  *error = (csf_error) {.status = status,.stage = CSF_STAGE_OPEN,.frame = CSF_NO_FRAME };
  g_strlcpy (error->text, text, sizeof error->text);
  return status;
}

/* ---- start and stop ---------------------------------------------------------------------------- */

static void
set_kernel (GstCudaStreamFilter * self, GstCsfKernel * loaded)
{
  GstCsfKernel *old;

  GST_OBJECT_LOCK (self);
  old = self->loaded;
  self->loaded = loaded;
  self->kernel = loaded == NULL ? NULL : gst_csf_kernel_get (loaded);
  GST_OBJECT_UNLOCK (self);
  gst_csf_kernel_unref (old);
}

/* A CUDA device to look into a kernel-file: that of a context we were given, or the one of the settings. */
static csf_status
open_loader_device (GstCudaStreamFilter * self, csf_error * error)
{
  GstCsfCudaContext *context;
  csf_status status;

  if (self->run.backend == GST_CSF_BACKEND_CPU)
    return fill_error (error, CSF_ERROR_ARGUMENT, "backend=cpu cannot run device code; use backend=cuda");
  context = gst_csf_get_context (self);
  status = context != NULL ? gst_csf_cuda_open_device (context, &self->loader_device, error) :
      csf_device_open (CSF_BACKEND_CUDA, self->run.cuda_device_id, &self->loader_device, error);
  g_clear_object (&context);
  return status;
}

static void
post_kernel_error (GstCudaStreamFilter * self, GstCsfKernelError * error, const csf_error * no_device)
{
  /* What is wrong with the code comes first: it can be mended anywhere. */
  if (error->text == NULL)
    error->text = g_strdup_printf ("kernel-file %s runs on a GPU only: %s", self->run.kernel_file,
        no_device->text);
  gst_element_message_full (GST_ELEMENT (self), GST_MESSAGE_ERROR, GST_RESOURCE_ERROR,
      GST_RESOURCE_ERROR_SETTINGS, g_strdup (error->text), g_strdup (error->log), __FILE__,
      GST_FUNCTION, __LINE__);
  gst_csf_kernel_error_clear (error);
}

static gboolean
load_kernel (GstCudaStreamFilter * self)
{
  GstCsfKernelError error = { NULL, NULL, NULL };
  csf_error no_device = { 0 };
  GstCsfKernel *loaded;

  if (gst_csf_kernel_is_file (&self->run) && open_loader_device (self, &no_device) != CSF_OK)
    self->loader_device = NULL;
  loaded = gst_csf_kernel_load (&self->run, self->loader_device, &error);
  if (loaded == NULL) {
    post_kernel_error (self, &error, &no_device);
    return FALSE;
  }
  set_kernel (self, loaded);
  return TRUE;
}

static void
unload_kernel (GstCudaStreamFilter * self)
{
  g_clear_pointer (&self->reload, gst_csf_reload_free);
  g_clear_pointer (&self->new_kernel, gst_csf_kernel_unref);
  set_kernel (self, NULL);
  csf_device_unref (self->loader_device);
  self->loader_device = NULL;
}

gboolean
gst_csf_start (GstCudaStreamFilter * self)
{
  gchar *reason = NULL;

  gst_csf_settings_clear (&self->run);
  GST_OBJECT_LOCK (self);
  self->run = gst_csf_settings_copy (&self->settings);
  GST_OBJECT_UNLOCK (self);
  if (!load_kernel (self)) {
    unload_kernel (self);
    return FALSE;
  }
  if (!gst_csf_parse_params (self->kernel, self->run.kernel_params, self->params, &reason)) {
    GST_ELEMENT_ERROR (self, RESOURCE, SETTINGS, ("%s", reason), (NULL));
    g_free (reason);
    unload_kernel (self);
    return FALSE;
  }
  self->params_serial = self->run.params_serial;
  self->frame_count = 0;
  self->discont = FALSE;
  self->reset_state = TRUE;
  self->hung = FALSE;
  self->said_max_records = FALSE;
  gst_csf_tracker_reset (self->tracker);
  self->downstream_eos = FALSE;
  GST_OBJECT_LOCK (self);
  g_clear_pointer (&self->last_message, g_free);
  GST_OBJECT_UNLOCK (self);
  gst_segment_init (&self->segment, GST_FORMAT_UNDEFINED);
  gst_csf_stats_reset (self->stats);
  gst_csf_report_start (self);
  g_mutex_lock (&self->lock);
  self->eos_queued = FALSE;
  self->earliest_time = GST_CLOCK_TIME_NONE;
  self->latency = 0;
  g_mutex_unlock (&self->lock);
  return TRUE;
}

/* Nothing is in flight but what a flush or stop left behind. */
static void
drop_engine (GstCudaStreamFilter * self)
{
  csf_engine *engine;
  csf_error error;

  if (self->engine == NULL)
    return;
  g_mutex_lock (&self->lock);
  engine = self->engine;
  /* Whoever reads the figures finds its counts either there or here. */
  gst_csf_stats_unset_engine (self->stats, engine);
  self->engine = NULL;
  g_mutex_unlock (&self->lock);
  if (csf_engine_destroy (engine, STOP_TIMEOUT_NS, &error) == CSF_OK)
    return;
  /* What still runs may need its kernel as well. */
  gst_csf_kernel_ref (self->loaded);
  if (!self->hung)
    gst_csf_post_error (self, &error);
}

static void
close_engine (GstCudaStreamFilter * self)
{
  gst_csf_set_pool (self, NULL);
  drop_engine (self);
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
  unload_kernel (self);
  gst_csf_report_stop (self);
  /* What others offered is kept by GstElement; our own goes. */
  g_mutex_lock (&self->lock);
  context = self->cuda_context;
  self->cuda_context = NULL;
  g_mutex_unlock (&self->lock);
  g_clear_object (&context);
}

/* ---- device and engine ------------------------------------------------------------------------- */

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

/* Whether a kernel-file was made for this device. */
static csf_status
check_capability (GstCudaStreamFilter * self, csf_error * error)
{
  gint made_for = gst_csf_kernel_get_capability (self->loaded);
  const csf_device_info *info = csf_device_get_info (self->device);
  gchar *text;

  if (made_for == 0 || made_for == info->capability)
    return CSF_OK;
  text = g_strdup_printf ("kernel-file %s was loaded for compute capability %d.%d, the pipeline's device "
      "\"%s\" has %d.%d; set cuda-device-id to %d", self->run.kernel_file, made_for / 10, made_for % 10,
      info->name, info->capability / 10, info->capability % 10, info->id);
  fill_error (error, CSF_ERROR_ARGUMENT, text);
  g_free (text);
  return CSF_ERROR_ARGUMENT;
}

/* An engine for this kernel and the present format. */
static csf_status
create_engine (GstCudaStreamFilter * self, const csfk_kernel * kernel, csf_engine ** engine,
    csf_error * error)
{
  csf_config config = {
    .device = self->device,
    .hostpool = self->format.hostpool,
    .kernel = kernel,
    .in = self->format.input_layout,
    .out = self->format.output_layout,
    .out_on_device = self->output_on_device,
    .metadata_memory = self->run.metadata_memory,
    .max_records = self->run.max_records,
    .time_all = self->timeline != NULL,
    .release = release_frame,
    .context = self,
  };

  self->num_streams = config.num_streams = self->run.num_streams != 0 ?
      self->run.num_streams : csf_device_get_info (self->device)->default_streams;
  return csf_engine_create (&config, engine, error);
}

/* Takes the engine over. */
static void
use_engine (GstCudaStreamFilter * self, csf_engine * engine, const csfk_kernel * kernel)
{
  gst_csf_stats_set_engine (self->stats, self->device, self->format.hostpool, kernel->name,
      self->num_streams);
  if (self->timeline != NULL)
    csf_timeline_set_engine (self->timeline, csf_device_get_info (self->device), kernel,
        self->num_streams);
  g_mutex_lock (&self->lock);
  self->engine = engine;
  csf_engine_set_interrupted (engine, self->flow != GST_FLOW_OK && self->flow != GST_FLOW_EOS);
  g_mutex_unlock (&self->lock);
}

static csf_status
open_engine (GstCudaStreamFilter * self, csf_error * error)
{
  csf_engine *engine;
  csf_status status = check_capability (self, error);

  if (status == CSF_OK)
    status = create_engine (self, self->kernel, &engine, error);
  if (status == CSF_OK)
    use_engine (self, engine, self->kernel);
  return status;
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

/* Whether the kernel can make those pictures of these; fills *output. */
static csf_status
check_conversion (GstCudaStreamFilter * self, const GstVideoInfo * input, GstCaps * output_caps,
    GstVideoInfo * output, csf_error * error)
{
  const gchar *fault = NULL;
  csf_status status = CSF_OK;
  gchar *text, *caps;

  if (!gst_csf_info_from_caps (output, output_caps))
    fault = "are larger than GStreamer can describe (2 GiB); ask for smaller ones after the element";
  else if (gst_csf_kernel_converts (self->kernel) && GST_VIDEO_INFO_IS_INTERLACED (input)
      && (GST_VIDEO_INFO_FORMAT (input) != GST_VIDEO_INFO_FORMAT (output)
          || GST_VIDEO_INFO_WIDTH (input) != GST_VIDEO_INFO_WIDTH (output)
          || GST_VIDEO_INFO_HEIGHT (input) != GST_VIDEO_INFO_HEIGHT (output)))
    fault = "would blend the fields of interlaced frames; put a deinterlace before the element";
  else if (GST_VIDEO_INFO_FORMAT (input) != GST_VIDEO_INFO_FORMAT (output)
      && !(GST_VIDEO_INFO_IS_RGB (input) && GST_VIDEO_INFO_IS_RGB (output))
      && (gst_csf_colour_is_strange (input) || gst_csf_colour_is_strange (output)))
    fault = "have colours that kernels do not convert: expected R'G'B' of full range, and Y'CbCr of "
        "BT.601, BT.709 or BT.2020; put a videoconvert before or after the element";
  if (fault == NULL)
    return CSF_OK;
  caps = gst_caps_to_string (output_caps);
  text = g_strdup_printf ("kernel %s: frames of %s %s", self->kernel->name, caps, fault);
  status = fill_error (error, CSF_ERROR_ARGUMENT, text);
  g_free (text);
  g_free (caps);
  return status;
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
  status = check_conversion (self, input, *output_caps, &output, error);
  if (status != CSF_OK) {
    gst_clear_caps (output_caps);
    return status;
  }
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
  /* What cannot be asked for cannot be had on the CPU either. */
  if (automatic && error.status != CSF_ERROR_ARGUMENT) {
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
  GstCaps *own = gst_csf_kernel_caps (self->kernel, GST_PAD_SINK, gst_csf_cuda_is_available ());
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

/* Device, engine, CAPS downstream unless it has them, and pool, for these input caps. */
static GstFlowReturn
negotiate (GstCudaStreamFilter * self, GstCaps * caps)
{
  GstCaps *output_caps, *current, *refused = NULL;
  gboolean pushed, still_wanted;
  GstVideoInfo info;

  if (!gst_csf_info_from_caps (&info, caps)
      || csfk_format_from_name (GST_VIDEO_INFO_NAME (&info)) == CSFK_FORMAT_NONE) {
    refuse_caps (self, caps);
    return GST_FLOW_ERROR;
  }
  /* Downstream may change its mind at any moment after it was asked, and refuse what it wanted before: then
   * it is asked again, until it refuses what it still wants. */
  do {
    gst_pad_check_reconfigure (self->srcpad);
    output_caps = open_any (self, caps, &info);
    if (output_caps == NULL) {
      gst_clear_caps (&refused);
      return GST_FLOW_ERROR;
    }
    still_wanted = refused != NULL && gst_caps_is_strictly_equal (refused, output_caps);
    gst_clear_caps (&refused);
    current = gst_pad_get_current_caps (self->srcpad);
    pushed = (current != NULL && gst_caps_is_strictly_equal (current, output_caps))
        || gst_pad_push_event (self->srcpad, gst_event_new_caps (output_caps));
    gst_clear_caps (&current);
    refused = output_caps;
  } while (!pushed && !GST_PAD_IS_FLUSHING (self->srcpad)
      && (!still_wanted || gst_pad_needs_reconfigure (self->srcpad)));
  gst_clear_caps (&refused);
  if (!pushed)
    return GST_PAD_IS_FLUSHING (self->srcpad) ? GST_FLOW_FLUSHING : GST_FLOW_NOT_NEGOTIATED;
  return gst_csf_decide_allocation (self) ? GST_FLOW_OK : GST_FLOW_ERROR;
}

GstFlowReturn
gst_csf_negotiate (GstCudaStreamFilter * self, GstEvent * caps_event)
{
  GstCaps *caps;

  gst_event_parse_caps (caps_event, &caps);
  return negotiate (self, caps);
}

GstFlowReturn
gst_csf_renegotiate (GstCudaStreamFilter * self)
{
  GstCaps *caps;
  GstFlowReturn flow;

  if (!gst_csf_kernel_converts (self->kernel))
    return gst_csf_decide_allocation (self) ? GST_FLOW_OK : GST_FLOW_ERROR;
  caps = gst_pad_get_current_caps (self->sinkpad);
  if (caps == NULL)
    return GST_FLOW_OK;
  flow = negotiate (self, caps);
  gst_caps_unref (caps);
  return flow;
}

/* ---- another version of the kernel ------------------------------------------------------------- */

static gboolean
takes_format (const int *formats, const GstVideoInfo * info)
{
  csfk_format format = csfk_format_from_name (GST_VIDEO_INFO_NAME (info));

  for (gint i = 0; i < CSFK_MAX_FORMATS && formats[i] != CSFK_FORMAT_NONE; i++)
    if (formats[i] == (gint) format)
      return TRUE;
  return FALSE;
}

/* Whether it can go on with the pictures that are negotiated. */
static gboolean
fits_format (const csfk_kernel * kernel, const GstCsfFormat * format)
{
  const GstVideoInfo *in = &format->input_info, *out = &format->output_info;
  gboolean same_size = GST_VIDEO_INFO_WIDTH (in) == GST_VIDEO_INFO_WIDTH (out)
      && GST_VIDEO_INFO_HEIGHT (in) == GST_VIDEO_INFO_HEIGHT (out);

  if (!takes_format (kernel->formats, in)
      || ((kernel->flags & CSFK_RESIZES) == 0 && !same_size))
    return FALSE;
  return kernel->out_formats[0] != CSFK_FORMAT_NONE ? takes_format (kernel->out_formats, out) :
      GST_VIDEO_INFO_FORMAT (in) == GST_VIDEO_INFO_FORMAT (out);
}

gboolean
gst_csf_swap_kernel (GstCudaStreamFilter * self, GstCsfKernel * loaded)
{
  const csfk_kernel *kernel = gst_csf_kernel_get (loaded);
  guint8 params[CSFK_MAX_PARAMS] __attribute__ ((aligned (16)));
  gchar *text, *reason = NULL;
  csf_engine *engine = NULL;
  csf_error error;

  GST_OBJECT_LOCK (self);
  text = g_strdup (self->settings.kernel_params);
  GST_OBJECT_UNLOCK (self);
  if (!gst_csf_parse_params (kernel, text, params, &reason)) {
    /* reason says it */
  } else if (self->engine != NULL && !fits_format (kernel, &self->format)) {
    reason = g_strdup_printf ("it does not take %s", GST_VIDEO_INFO_NAME (&self->format.input_info));
  } else if (self->engine != NULL && create_engine (self, kernel, &engine, &error) != CSF_OK) {
    reason = g_strdup (error.text);
  }
  g_free (text);
  if (reason != NULL) {
    GST_ELEMENT_WARNING (self, RESOURCE, SETTINGS, ("the new version of kernel-file %s cannot be used: "
            "%s; the one before goes on", self->run.kernel_file, reason), (NULL));
    g_free (reason);
    return FALSE;
  }
  if (engine != NULL) {
    drop_engine (self);
    use_engine (self, engine, kernel);
  }
  set_kernel (self, gst_csf_kernel_ref (loaded));
  memcpy (self->params, params, kernel->params_size);
  GST_INFO_OBJECT (self, "kernel-file %s was taken anew", self->run.kernel_file);
  return TRUE;
}
