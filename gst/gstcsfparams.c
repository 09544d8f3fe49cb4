/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reads kernel parameters out of a structure string, and tells what a kernel has.  Knows no pads. */
#include "gstcsfparams.h"

#include <string.h>

#include "kernels/format.h"

/* ---- saying what there is ---------------------------------------------------------------------- */

/* "pixelate|blur" */
static void
append_names (GString * text, const csfk_param * param)
{
  for (guint i = 0; param->values[i] != NULL; i++)
    g_string_append_printf (text, "%s%s", i == 0 ? "" : "|", param->values[i]);
}

static void
append_param (GString * text, const csfk_param * param)
{
  const gchar *space = *param->unit != '\0' ? " " : "";

  g_string_append_printf (text, "%s=", param->name);
  if (param->type == CSFK_TYPE_ENUM) {
    append_names (text, param);
    g_string_append_printf (text, ", default %s", param->values[(guint) param->default_value]);
  } else if (param->type == CSFK_TYPE_STRING) {
    g_string_append_printf (text, "text of at most %g bytes", param->maximum - 1);
  } else if (param->type == CSFK_TYPE_UINT && param->maximum > G_MAXINT) {
    g_string_append_printf (text, "0x%x..0x%x%s%s, default 0x%x", (guint) param->minimum,
        (guint) param->maximum, space, param->unit, (guint) param->default_value);
  } else {
    g_string_append_printf (text, "%g..%g%s%s, default %g", param->minimum, param->maximum, space,
        param->unit, param->default_value);
  }
}

gchar *
gst_csf_describe_params (const csfk_kernel * kernel)
{
  GString *text = g_string_new (NULL);

  if (kernel->n_params == 0)
    g_string_append (text, "no parameters");
  for (guint i = 0; i < kernel->n_params; i++) {
    if (i > 0)
      g_string_append (text, "; ");
    append_param (text, &kernel->params[i]);
  }
  return g_string_free (text, FALSE);
}

/* ---- reading ----------------------------------------------------------------------------------- */

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

/* What was expected of this parameter, and what came. */
static gchar *
refusal (const csfk_kernel * kernel, const gchar * name, const csfk_param * param,
    csfk_param_result result, const gchar * came)
{
  GString *text = g_string_new (NULL);

  switch (result) {
    case CSFK_PARAM_UNKNOWN:{
      gchar *known = gst_csf_describe_params (kernel);

      g_string_printf (text, "kernel-params: kernel %s has no parameter %s; it has %s", kernel->name,
          name, known);
      g_free (known);
      break;
    }
    case CSFK_PARAM_NOT_WHOLE:
      g_string_printf (text, "kernel-params: %s of kernel %s must be a whole number, got %s", name,
          kernel->name, came);
      break;
    default:
      g_string_printf (text, "kernel-params: expected for kernel %s %s", kernel->name,
          result == CSFK_PARAM_NOT_A_TEXT ? "a number, " : "");
      append_param (text, param);
      g_string_append_printf (text, ", got %s=%s", name, came);
  }
  return g_string_free (text, FALSE);
}

static gboolean
set_param (GQuark field, const GValue * value, gpointer user_data)
{
  ParseContext *context = user_data;
  const gchar *name = g_quark_to_string (field);
  const csfk_param *param = NULL;
  csfk_param_result result;
  gdouble number;
  gchar *came;

  came = gst_value_serialize (value);
  if (number_of (value, &number))
    result = csfk_params_set (context->kernel, context->params, name, number, &param);
  else
    result = CSFK_PARAM_NOT_A_NUMBER;
  /* What GStreamer reads as a gint may have been meant as a guint: 0xffff0000. */
  if (result == CSFK_PARAM_OUT_OF_RANGE && param->type == CSFK_TYPE_UINT && number < 0
      && G_VALUE_HOLDS_INT (value))
    result = csfk_params_set (context->kernel, context->params, name, number + 4294967296.0, &param);
  /* A number can be a text as well, such as the label 42. */
  if (result == CSFK_PARAM_NOT_A_NUMBER)
    result = csfk_params_set_text (context->kernel, context->params, name,
        G_VALUE_HOLDS_STRING (value) && g_value_get_string (value) != NULL ?
        g_value_get_string (value) : came != NULL ? came : "", &param);
  if (result != CSFK_PARAM_OK)
    *context->reason = refusal (context->kernel, name, param, result,
        came != NULL ? came : G_VALUE_TYPE_NAME (value));
  g_free (came);
  return result == CSFK_PARAM_OK;
}

/* Texts are what was typed: GStreamer would take yes for a truth, 007 for a number, and an unquoted letter
 * beyond ASCII for a fault. */
static gchar *
quote_texts (const csfk_kernel * kernel, const gchar * text)
{
  gchar *quoted = g_strdup (text);

  for (guint i = 0; i < kernel->n_params; i++) {
    gchar *pattern, *next;
    GRegex *unquoted;

    if (kernel->params[i].type != CSFK_TYPE_STRING && kernel->params[i].type != CSFK_TYPE_ENUM)
      continue;
    pattern = g_strdup_printf ("(^|[,;])(\\s*\\Q%s\\E\\s*=\\s*)(?![\\s(\"])([^,;\"]*)", kernel->params[i].name);
    unquoted = g_regex_new (pattern, 0, 0, NULL);
    next = g_regex_replace (unquoted, quoted, -1, 0, "\\1\\2(string)\"\\3\"", 0, NULL);
    g_regex_unref (unquoted);
    g_free (pattern);
    pattern = g_strdup_printf ("(^|[,;])(\\s*\\Q%s\\E\\s*=\\s*)\"", kernel->params[i].name);
    unquoted = g_regex_new (pattern, 0, 0, NULL);
    g_free (quoted);
    quoted = g_regex_replace (unquoted, next, -1, 0, "\\1\\2(string)\"", 0, NULL);
    g_regex_unref (unquoted);
    g_free (pattern);
    g_free (next);
  }
  return quoted;
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
    gchar *quoted = quote_texts (kernel, text);
    GstStructure *structure = structure_from_text (quoted);

    g_free (quoted);
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
