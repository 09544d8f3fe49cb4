/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Property definitions and the reading of kernel parameters.  Knows the kernels' table, no pads. */
#include "gstcsfproperties.h"

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

void
gst_csf_settings_init (GstCsfSettings * settings)
{
  *settings = (GstCsfSettings) {
    .backend = GST_CSF_BACKEND_AUTO,
    .cuda_device_id = -1,
    .kernel = g_strdup (DEFAULT_KERNEL),
    .fps_update_interval = DEFAULT_INTERVAL,
  };
}

void
gst_csf_settings_clear (GstCsfSettings * settings)
{
  g_clear_pointer (&settings->kernel, g_free);
  g_clear_pointer (&settings->kernel_params, g_free);
}

GstCsfSettings
gst_csf_settings_copy (const GstCsfSettings * settings)
{
  GstCsfSettings copy = *settings;

  copy.kernel = g_strdup (settings->kernel);
  copy.kernel_params = g_strdup (settings->kernel_params);
  return copy;
}

/* "copy: ...; gaussianblur (sigma=0.1..10, default 2): ..." for gst-inspect. */
static const gchar *
describe_kernels (void)
{
  GString *text = g_string_new ("Kernel to run on each frame");

  for (const csfk_kernel * const *k = csfk_kernels; *k != NULL; k++) {
    g_string_append_printf (text, "%s\n%24s%s", k == csfk_kernels ? ":" : ";", "", (*k)->name);
    for (guint i = 0; i < (*k)->n_params; i++) {
      const csfk_param *param = &(*k)->params[i];

      g_string_append_printf (text, "%s%s=%g..%g%s%s, default %g%s", i == 0 ? " (" : "; ",
          param->name, param->minimum, param->maximum, *param->unit != '\0' ? " " : "",
          param->unit, param->default_value, i + 1 == (*k)->n_params ? ")" : "");
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
  g_object_class_install_properties (klass, GST_CSF_N_PROPS, specs);
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
    default:
      return FALSE;
  }
}

/* ---- kernels and their parameters -------------------------------------------------------------- */

const csfk_kernel *
gst_csf_find_kernel (const gchar * name, gchar ** reason)
{
  const csfk_kernel *kernel = csfk_kernel_find (name);
  GString *names;

  if (kernel != NULL)
    return kernel;
  names = g_string_new (NULL);
  for (const csfk_kernel * const *k = csfk_kernels; *k != NULL; k++)
    g_string_append_printf (names, "%s%s", k == csfk_kernels ? "" : ", ", (*k)->name);
  *reason = g_strdup_printf ("kernel=%s: there is no kernel of that name; expected one of %s", name,
      names->str);
  g_string_free (names, TRUE);
  return NULL;
}

static gchar *
describe_params (const csfk_kernel * kernel)
{
  GString *text = g_string_new (NULL);

  if (kernel->n_params == 0)
    g_string_append (text, "no parameters");
  for (guint i = 0; i < kernel->n_params; i++)
    g_string_append_printf (text, "%s%s (%g to %g)", i == 0 ? "" : ", ", kernel->params[i].name,
        kernel->params[i].minimum, kernel->params[i].maximum);
  return g_string_free (text, FALSE);
}

static gboolean
number_of (const GValue * value, gdouble * number)
{
  GValue as_double = G_VALUE_INIT;
  gboolean ok;

  if (G_VALUE_HOLDS_BOOLEAN (value)) {
    *number = g_value_get_boolean (value);
    return TRUE;
  }
  if (!G_VALUE_HOLDS_INT (value) && !G_VALUE_HOLDS_UINT (value) && !G_VALUE_HOLDS_INT64 (value)
      && !G_VALUE_HOLDS_UINT64 (value) && !G_VALUE_HOLDS_DOUBLE (value)
      && !G_VALUE_HOLDS_FLOAT (value))
    return FALSE;
  g_value_init (&as_double, G_TYPE_DOUBLE);
  ok = g_value_transform (value, &as_double);
  if (ok)
    *number = g_value_get_double (&as_double);
  g_value_unset (&as_double);
  return ok;
}

typedef struct
{
  const csfk_kernel *kernel;
  void *params;
  gchar **reason;
} ParseContext;

static gboolean
set_param (GQuark field, const GValue * value, gpointer user_data)
{
  ParseContext *context = user_data;
  const csfk_kernel *kernel = context->kernel;
  const gchar *name = g_quark_to_string (field);
  const csfk_param *param = NULL;
  gdouble number = 0;
  gchar *came;
  gint code;

  came = gst_value_serialize (value);
  if (!number_of (value, &number)) {
    *context->reason = g_strdup_printf ("kernel-params: expected a number for %s of kernel %s, got %s",
        name, kernel->name, came != NULL ? came : G_VALUE_TYPE_NAME (value));
    g_free (came);
    return FALSE;
  }
  code = csfk_params_set (kernel, context->params, name, number, &param);
  if (code == 1) {
    gchar *known = describe_params (kernel);

    *context->reason = g_strdup_printf ("kernel-params: kernel %s has no parameter %s; it has %s",
        kernel->name, name, known);
    g_free (known);
  } else if (code == 2) {
    *context->reason = g_strdup_printf ("kernel-params: %s of kernel %s must be from %g to %g%s%s, "
        "got %s", name, kernel->name, param->minimum, param->maximum,
        *param->unit != '\0' ? " " : "", param->unit, came);
  } else if (code != 0) {
    *context->reason = g_strdup_printf ("kernel-params: %s of kernel %s must be a whole number, got %s",
        name, kernel->name, came);
  }
  g_free (came);
  return code == 0;
}

/* A structure's serialised form begins with its name; what a person types has none. */
static GstStructure *
structure_from_text (const gchar * text)
{
  const gchar *name_end = text + strcspn (text, ",;=");
  GstStructure *structure;
  gchar *named, *end = NULL;

  /* A lone word would pass as the name of a structure without fields; a serialised one ends so. */
  if (*name_end == '\0')
    return NULL;
  named = *name_end == '=' ? g_strconcat ("kernel-params,", text, NULL) : g_strdup (text);
  structure = gst_structure_from_string (named, &end);
  if (structure != NULL && end != NULL && end[strspn (end, "; ")] != '\0')
    g_clear_pointer (&structure, gst_structure_free);
  g_free (named);
  return structure;
}

gboolean
gst_csf_parse_params (const csfk_kernel * kernel, const gchar * text, void *params,
    gchar ** reason)
{
  guint8 fresh[CSFK_MAX_PARAMS] __attribute__ ((aligned (16))) = { 0 };
  ParseContext context = { kernel, fresh, reason };
  gboolean ok = TRUE;

  csfk_params_init (kernel, fresh);
  if (text != NULL && text[strspn (text, " ")] != '\0') {
    GstStructure *structure = structure_from_text (text);

    if (structure == NULL) {
      *reason = g_strdup_printf ("kernel-params: expected name=value pairs such as \"sigma=2.0\", got "
          "\"%s\"", text);
      return FALSE;
    }
    ok = gst_structure_foreach (structure, set_param, &context);
    gst_structure_free (structure);
  }
  if (!ok)
    return FALSE;
  if (kernel->resolve != NULL)
    kernel->resolve (fresh);
  memcpy (params, fresh, kernel->params_size);
  return TRUE;
}
