/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Property definitions.  Knows the settings, and of the kernels' table only how to list it; no pads. */
#include "gstcsfproperties.h"

#include "gstcsfparams.h"
#include "kernels/format.h"

#define DEFAULT_KERNEL "copy"
#define DEFAULT_INTERVAL 500
#define MIN_INTERVAL 100

GType
gst_csf_backend_get_type (void)
{
  static gsize type;
  static const GEnumValue values[] = {
    {GST_CSF_BACKEND_AUTO, "CUDA where there is a usable GPU, else the CPU", "auto"},
    {GST_CSF_BACKEND_CUDA, "CUDA, or fail", "cuda"},
    {GST_CSF_BACKEND_CPU, "Worker threads on the CPU", "cpu"},
    {0, NULL, NULL}
  };

  if (g_once_init_enter (&type))
    g_once_init_leave (&type, g_enum_register_static ("GstCsfBackend", values));
  return type;
}

static const GEnumValue metadata_memories[] = {
  {CSF_METADATA_AUTO, "Managed memory where host and device may use it at once, else pinned", "auto"},
  {CSF_METADATA_MANAGED, "Managed memory that stays on the host", "managed"},
  {CSF_METADATA_PINNED, "Pinned host memory, mapped on the device", "pinned"},
  {CSF_METADATA_DEVICE, "Device memory, of which the bytes used are copied", "device"},
  {0, NULL, NULL}
};

GType
gst_csf_metadata_memory_get_type (void)
{
  static gsize type;

  if (g_once_init_enter (&type))
    g_once_init_leave (&type, g_enum_register_static ("GstCsfMetadataMemory", metadata_memories));
  return type;
}

const gchar *
gst_csf_metadata_memory_get_nick (csf_metadata_memory memory)
{
  return metadata_memories[memory].value_nick;
}

void
gst_csf_settings_init (GstCsfSettings * settings)
{
  *settings = (GstCsfSettings) {
    .backend = GST_CSF_BACKEND_AUTO,
    .cuda_device_id = -1,
    .kernel = g_strdup (DEFAULT_KERNEL),
    .max_records = CSF_DEFAULT_MAX_RECORDS,
    .fps_update_interval = DEFAULT_INTERVAL,
  };
}

void
gst_csf_settings_clear (GstCsfSettings * settings)
{
  g_clear_pointer (&settings->kernel, g_free);
  g_clear_pointer (&settings->kernel_file, g_free);
  g_clear_pointer (&settings->kernel_function, g_free);
  g_clear_pointer (&settings->kernel_library, g_free);
  g_clear_pointer (&settings->kernel_params, g_free);
  g_clear_pointer (&settings->trace_location, g_free);
}

GstCsfSettings
gst_csf_settings_copy (const GstCsfSettings * settings)
{
  GstCsfSettings copy = *settings;

  copy.kernel = g_strdup (settings->kernel);
  copy.kernel_file = g_strdup (settings->kernel_file);
  copy.kernel_function = g_strdup (settings->kernel_function);
  copy.kernel_library = g_strdup (settings->kernel_library);
  copy.kernel_params = g_strdup (settings->kernel_params);
  copy.trace_location = g_strdup (settings->trace_location);
  return copy;
}

/* "copy: ...; gaussianblur (sigma=0.1..10 pixel, default 2): ..." for gst-inspect. */
static const gchar *
describe_kernels (void)
{
  GString *text = g_string_new ("Kernel to run on each frame");

  for (const csfk_kernel * const *k = csfk_kernels; *k != NULL; k++) {
    g_string_append_printf (text, "%s\n%24s%s", k == csfk_kernels ? ":" : ";", "", (*k)->name);
    if ((*k)->n_params > 0) {
      gchar *params = gst_csf_describe_params (*k);

      g_string_append_printf (text, " (%s)", params);
      g_free (params);
    }
    g_string_append_printf (text, ": %s", (*k)->description);
  }
  return g_string_free (text, FALSE);
}

void
gst_csf_properties_install (GObjectClass * klass, GParamSpec ** specs)
{
  const GParamFlags ready = G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_READY;
  const GParamFlags playing =
      G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_PLAYING;
  const GParamFlags readable = G_PARAM_READABLE | G_PARAM_STATIC_STRINGS;

  specs[GST_CSF_PROP_BACKEND] = g_param_spec_enum ("backend", "Backend",
      "Where kernels run", GST_TYPE_CSF_BACKEND, GST_CSF_BACKEND_AUTO, ready);
  specs[GST_CSF_PROP_CUDA_DEVICE_ID] = g_param_spec_int ("cuda-device-id", "CUDA device ID",
      "Number of the CUDA device (-1: the first usable one)", -1, G_MAXINT, -1, ready);
  specs[GST_CSF_PROP_NUM_STREAMS] = g_param_spec_uint ("num-streams", "Number of streams",
      "CUDA streams, which is the number of frames in flight (0: 3 on a GPU, one a processor on the "
      "CPU)", 0, CSF_MAX_STREAMS, 0, ready);
  specs[GST_CSF_PROP_KERNEL] = g_param_spec_string ("kernel", "Kernel", describe_kernels (),
      DEFAULT_KERNEL, ready);
  specs[GST_CSF_PROP_KERNEL_PARAMS] = g_param_spec_string ("kernel-params", "Kernel parameters",
      "Parameters of the kernel as a structure string such as sigma=2.0 (a GstStructure value is "
      "taken as well); effective from the next frame on", NULL, playing | GST_PARAM_CONTROLLABLE);
  specs[GST_CSF_PROP_KERNEL_FILE] = g_param_spec_string ("kernel-file", "Kernel file",
      "A kernel of your own, instead of kernel: CUDA source (.cu, compiled by NVRTC), .ptx, .cubin or "
      ".fatbin", NULL, ready);
  specs[GST_CSF_PROP_KERNEL_FUNCTION] = g_param_spec_string ("kernel-function", "Kernel function",
      "Which function of kernel-file or kernel of kernel-library, where there are several", NULL, ready);
  specs[GST_CSF_PROP_KERNEL_LIBRARY] = g_param_spec_string ("kernel-library", "Kernel library",
      "A shared library of kernels of your own, instead of kernel: it exports csfk_library, see "
      "cudastreamfilter/kernel.h", NULL, ready);
  specs[GST_CSF_PROP_RELOAD] = g_param_spec_boolean ("reload", "Reload",
      "Take a kernel-file anew when it changes on disk; a version that cannot be used is reported and "
      "the old one goes on", FALSE, playing);
  specs[GST_CSF_PROP_METADATA_MEMORY] = g_param_spec_enum ("metadata-memory", "Metadata memory",
      "Where the device puts what a kernel finds, for the host to read", GST_TYPE_CSF_METADATA_MEMORY,
      CSF_METADATA_AUTO, ready);
  specs[GST_CSF_PROP_MAX_RECORDS] = g_param_spec_uint ("max-records", "Maximum records",
      "Records a frame may have; what is beyond is left out, and a warning says how many were wanted", 1,
      16777216, CSF_DEFAULT_MAX_RECORDS, ready);
  specs[GST_CSF_PROP_MAX_PINNED_MEMORY] = g_param_spec_uint64 ("max-pinned-memory",
      "Maximum pinned memory", "Bytes of pinned host memory the whole process may have (0: a quarter "
      "of what it may use); beyond it buffers are pageable", 0, G_MAXUINT64, 0, ready);
  specs[GST_CSF_PROP_QOS] = g_param_spec_boolean ("qos", "QoS",
      "Drop frames before upload that downstream reports as too late", FALSE, playing);
  specs[GST_CSF_PROP_SILENT] = g_param_spec_boolean ("silent", "Silent",
      "Do not produce last-message notifications", FALSE, playing);
  specs[GST_CSF_PROP_FPS_UPDATE_INTERVAL] = g_param_spec_uint ("fps-update-interval",
      "FPS update interval", "Milliseconds between two updates of last-message and stats (0: off, "
      "least 100)", 0, G_MAXUINT, DEFAULT_INTERVAL, playing);
  specs[GST_CSF_PROP_LAST_MESSAGE] = g_param_spec_string ("last-message", "Last message",
      "Throughput and stage times of the last interval, as one line", NULL, readable);
  specs[GST_CSF_PROP_STATS] = g_param_spec_boxed ("stats", "Statistics",
      "Structure cudastreamfilter-stats, as posted on the bus every interval", GST_TYPE_STRUCTURE,
      readable);
  specs[GST_CSF_PROP_TRACE_LOCATION] = g_param_spec_string ("trace-location", "Trace location",
      "File for a timeline of every frame, for Perfetto (ui.perfetto.dev), chrome://tracing or "
      "tools/plot-trace; timing every frame costs throughput", NULL, ready);
  g_object_class_install_properties (klass, GST_CSF_N_PROPS, specs);
}

/* An empty text is none. */
static void
set_text (gchar ** text, const GValue * value)
{
  const gchar *given = g_value_get_string (value);

  g_free (*text);
  *text = given == NULL || *given == '\0' ? NULL : g_strdup (given);
}

gboolean
gst_csf_settings_set (GstCsfSettings * settings, guint id, const GValue * value)
{
  switch (id) {
    case GST_CSF_PROP_BACKEND:
      settings->backend = g_value_get_enum (value);
      return TRUE;
    case GST_CSF_PROP_CUDA_DEVICE_ID:
      settings->cuda_device_id = g_value_get_int (value);
      return TRUE;
    case GST_CSF_PROP_NUM_STREAMS:
      settings->num_streams = g_value_get_uint (value);
      return TRUE;
    case GST_CSF_PROP_KERNEL:
      g_free (settings->kernel);
      settings->kernel = g_value_dup_string (value);
      if (settings->kernel == NULL)
        settings->kernel = g_strdup (DEFAULT_KERNEL);
      return TRUE;
    case GST_CSF_PROP_KERNEL_PARAMS:
      g_free (settings->kernel_params);
      settings->kernel_params = g_value_dup_string (value);
      settings->params_serial++;
      return TRUE;
    case GST_CSF_PROP_KERNEL_FILE:
      set_text (&settings->kernel_file, value);
      return TRUE;
    case GST_CSF_PROP_KERNEL_FUNCTION:
      set_text (&settings->kernel_function, value);
      return TRUE;
    case GST_CSF_PROP_KERNEL_LIBRARY:
      set_text (&settings->kernel_library, value);
      return TRUE;
    case GST_CSF_PROP_RELOAD:
      settings->reload = g_value_get_boolean (value);
      return TRUE;
    case GST_CSF_PROP_METADATA_MEMORY:
      settings->metadata_memory = g_value_get_enum (value);
      return TRUE;
    case GST_CSF_PROP_MAX_RECORDS:
      settings->max_records = g_value_get_uint (value);
      return TRUE;
    case GST_CSF_PROP_MAX_PINNED_MEMORY:
      settings->max_pinned_memory = g_value_get_uint64 (value);
      return TRUE;
    case GST_CSF_PROP_QOS:
      settings->qos = g_value_get_boolean (value);
      return TRUE;
    case GST_CSF_PROP_SILENT:
      settings->silent = g_value_get_boolean (value);
      return TRUE;
    case GST_CSF_PROP_FPS_UPDATE_INTERVAL:
      settings->fps_update_interval = g_value_get_uint (value);
      if (settings->fps_update_interval != 0)
        settings->fps_update_interval = MAX (settings->fps_update_interval, MIN_INTERVAL);
      return TRUE;
    case GST_CSF_PROP_TRACE_LOCATION:
      set_text (&settings->trace_location, value);
      return TRUE;
    default:
      return FALSE;
  }
}

gboolean
gst_csf_settings_get (const GstCsfSettings * settings, guint id, GValue * value)
{
  switch (id) {
    case GST_CSF_PROP_BACKEND:
      g_value_set_enum (value, settings->backend);
      return TRUE;
    case GST_CSF_PROP_CUDA_DEVICE_ID:
      g_value_set_int (value, settings->cuda_device_id);
      return TRUE;
    case GST_CSF_PROP_NUM_STREAMS:
      g_value_set_uint (value, settings->num_streams);
      return TRUE;
    case GST_CSF_PROP_KERNEL:
      g_value_set_string (value, settings->kernel);
      return TRUE;
    case GST_CSF_PROP_KERNEL_PARAMS:
      g_value_set_string (value, settings->kernel_params);
      return TRUE;
    case GST_CSF_PROP_KERNEL_FILE:
      g_value_set_string (value, settings->kernel_file);
      return TRUE;
    case GST_CSF_PROP_KERNEL_FUNCTION:
      g_value_set_string (value, settings->kernel_function);
      return TRUE;
    case GST_CSF_PROP_KERNEL_LIBRARY:
      g_value_set_string (value, settings->kernel_library);
      return TRUE;
    case GST_CSF_PROP_RELOAD:
      g_value_set_boolean (value, settings->reload);
      return TRUE;
    case GST_CSF_PROP_METADATA_MEMORY:
      g_value_set_enum (value, settings->metadata_memory);
      return TRUE;
    case GST_CSF_PROP_MAX_RECORDS:
      g_value_set_uint (value, settings->max_records);
      return TRUE;
    case GST_CSF_PROP_MAX_PINNED_MEMORY:
      g_value_set_uint64 (value, settings->max_pinned_memory);
      return TRUE;
    case GST_CSF_PROP_QOS:
      g_value_set_boolean (value, settings->qos);
      return TRUE;
    case GST_CSF_PROP_SILENT:
      g_value_set_boolean (value, settings->silent);
      return TRUE;
    case GST_CSF_PROP_FPS_UPDATE_INTERVAL:
      g_value_set_uint (value, settings->fps_update_interval);
      return TRUE;
    case GST_CSF_PROP_TRACE_LOCATION:
      g_value_set_string (value, settings->trace_location);
      return TRUE;
    default:
      return FALSE;
  }
}
