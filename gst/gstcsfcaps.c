/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Caps: what the kernels take and give, and how system and CUDA memory on the two pads go together.  Any
 * combination of the two works, since a frame can be copied on either side. */
#include "gstcudastreamfilter.h"

#include "kernels/format.h"

/* libgstcuda knows all our formats but this one. */
#define NOT_IN_CUDA_MEMORY CSFK_FORMAT_GRAY8

static const int all_formats[] = {
  CSFK_FORMAT_GRAY8, CSFK_FORMAT_NV12, CSFK_FORMAT_I420, CSFK_FORMAT_YUY2, CSFK_FORMAT_UYVY,
  CSFK_FORMAT_P010_10LE, CSFK_FORMAT_RGB, CSFK_FORMAT_BGR, CSFK_FORMAT_RGBx, CSFK_FORMAT_BGRx,
  CSFK_FORMAT_RGBA, CSFK_FORMAT_BGRA, CSFK_FORMAT_NONE
};

/* ---- what a kernel takes and gives ------------------------------------------------------------- */

/* The formats on that side, ended by NONE or full. */
static const int *
formats_of (const csfk_kernel * kernel, GstPadDirection side)
{
  if (kernel == NULL)
    return all_formats;
  return side == GST_PAD_SRC && kernel->out_formats[0] != CSFK_FORMAT_NONE ?
      kernel->out_formats : kernel->formats;
}

/* A kernel that is not known yet may do anything. */
static gboolean
resizes (const csfk_kernel * kernel)
{
  return kernel == NULL || (kernel->flags & CSFK_RESIZES) != 0;
}

static gboolean
changes_format (const csfk_kernel * kernel)
{
  return kernel == NULL || kernel->out_formats[0] != CSFK_FORMAT_NONE;
}

gboolean
gst_csf_kernel_converts (const csfk_kernel * kernel)
{
  return resizes (kernel) || changes_format (kernel);
}

static void
set_formats (GstCaps * caps, const int *formats, gboolean cuda)
{
  GValue list = G_VALUE_INIT;

  g_value_init (&list, GST_TYPE_LIST);
  for (gint i = 0; i < CSFK_MAX_FORMATS && formats[i] != CSFK_FORMAT_NONE; i++) {
    GValue name = G_VALUE_INIT;

    if (cuda && formats[i] == NOT_IN_CUDA_MEMORY)
      continue;
    g_value_init (&name, G_TYPE_STRING);
    g_value_set_static_string (&name, csfk_format_get_info (formats[i])->name);
    gst_value_list_append_and_take_value (&list, &name);
  }
  gst_caps_set_value (caps, "format", &list);
  g_value_unset (&list);
}

static GstCapsFeatures *
features_of (gboolean cuda)
{
  return gst_caps_features_new (cuda ? GST_CSF_CUDA_FEATURE :
      GST_CAPS_FEATURE_MEMORY_SYSTEM_MEMORY, NULL);
}

static GstCaps *
memory_caps (const csfk_kernel * kernel, GstPadDirection side, gboolean cuda)
{
  GstCaps *caps = gst_caps_new_simple ("video/x-raw", "width", GST_TYPE_INT_RANGE, 1, G_MAXINT,
      "height", GST_TYPE_INT_RANGE, 1, G_MAXINT, "framerate", GST_TYPE_FRACTION_RANGE, 0, 1,
      G_MAXINT, 1, NULL);

  set_formats (caps, formats_of (kernel, side), cuda);
  if (cuda)
    gst_caps_set_features_simple (caps, features_of (TRUE));
  return caps;
}

GstCaps *
gst_csf_kernel_caps (const csfk_kernel * kernel, GstPadDirection side, gboolean cuda)
{
  GstCaps *caps = memory_caps (kernel, side, FALSE);

  if (cuda)
    gst_caps_append (caps, memory_caps (kernel, side, TRUE));
  return caps;
}

/* ---- from one pad to the other ----------------------------------------------------------------- */

/* What the kernel can make of, or from, pictures like these: their other side. */
static GstStructure *
convert_structure (const csfk_kernel * kernel, const GstStructure * structure)
{
  GstStructure *result = gst_structure_copy (structure);

  if (resizes (kernel)) {
    gst_structure_set (result, "width", GST_TYPE_INT_RANGE, 1, G_MAXINT, "height",
        GST_TYPE_INT_RANGE, 1, G_MAXINT, NULL);
    gst_structure_remove_field (result, "pixel-aspect-ratio");
  }
  if (changes_format (kernel))
    gst_structure_remove_fields (result, "format", "colorimetry", "chroma-site", NULL);
  return result;
}

static void
append_in_memories (GstCaps * caps, const GstStructure * structure, gboolean cuda)
{
  gst_caps_append_structure_full (caps, gst_structure_copy (structure), features_of (FALSE));
  if (cuda)
    gst_caps_append_structure_full (caps, gst_structure_copy (structure), features_of (TRUE));
}

GstCaps *
gst_csf_transform_caps (const csfk_kernel * kernel, GstPadDirection side, GstCaps * caps,
    gboolean cuda)
{
  GstCaps *result = gst_caps_copy (caps), *own, *both;

  /* Unchanged, in either memory, is what anyone prefers. */
  for (guint i = 0; i < gst_caps_get_size (caps); i++)
    append_in_memories (result, gst_caps_get_structure (caps, i), cuda);
  for (guint i = 0; gst_csf_kernel_converts (kernel) && i < gst_caps_get_size (caps); i++) {
    GstStructure *converted = convert_structure (kernel, gst_caps_get_structure (caps, i));

    append_in_memories (result, converted, cuda);
    gst_structure_free (converted);
  }
  own = gst_csf_kernel_caps (kernel, side == GST_PAD_SRC ? GST_PAD_SINK : GST_PAD_SRC, cuda);
  both = gst_caps_intersect_full (result, own, GST_CAPS_INTERSECT_FIRST);
  gst_caps_unref (result);
  gst_caps_unref (own);
  return both;
}

/* ---- choosing ---------------------------------------------------------------------------------- */

static gboolean
is_cuda (GstCaps * caps, guint i)
{
  GstCapsFeatures *features = gst_caps_get_features (caps, i);

  return features != NULL && !gst_caps_features_is_any (features)
      && gst_caps_features_contains (features, GST_CSF_CUDA_FEATURE);
}

gboolean
gst_csf_caps_are_cuda (GstCaps * caps)
{
  return is_cuda (caps, 0);
}

/* The same pictures in the other memory. */
static GstCaps *
in_memory (GstCaps * caps, gboolean cuda)
{
  GstCaps *result = gst_caps_copy (caps);

  gst_caps_set_features_simple (result, features_of (cuda));
  return result;
}

/* Whether the peer names CUDA memory before system memory; something that takes anything does not. */
static gboolean
peer_asks_for_cuda (GstCaps * peer)
{
  for (guint i = 0; i < gst_caps_get_size (peer); i++) {
    GstCapsFeatures *features = gst_caps_get_features (peer, i);

    if (is_cuda (peer, i))
      return TRUE;
    if (features == NULL || gst_caps_features_is_any (features)
        || gst_caps_features_is_equal (features, GST_CAPS_FEATURES_MEMORY_SYSTEM_MEMORY))
      return FALSE;
  }
  return FALSE;
}

/* What a picture loses by becoming one of that format: colour above all, then alpha, then chroma's detail. */
static guint
get_loss (const GstVideoInfo * input, const gchar * name)
{
  const GstVideoFormatInfo *in = input->finfo;
  const GstVideoFormatInfo *out = gst_video_format_get_info (gst_video_format_from_string (name));
  guint loss = 0;

  if (GST_VIDEO_FORMAT_INFO_IS_GRAY (out) && !GST_VIDEO_FORMAT_INFO_IS_GRAY (in))
    loss += 8;
  if (GST_VIDEO_FORMAT_INFO_HAS_ALPHA (in) && !GST_VIDEO_FORMAT_INFO_HAS_ALPHA (out))
    loss += 4;
  if (GST_VIDEO_FORMAT_INFO_IS_RGB (in) && GST_VIDEO_FORMAT_INFO_IS_YUV (out))
    loss += 2;
  if (GST_VIDEO_FORMAT_INFO_IS_YUV (in) != GST_VIDEO_FORMAT_INFO_IS_YUV (out))
    loss += 1;
  return loss;
}

/* The best of what downstream takes: the same format, else its first that loses least. */
static void
fixate_format (GstStructure * structure, const GstVideoInfo * input)
{
  const GValue *list = gst_structure_get_value (structure, "format");
  const gchar *chosen = NULL;
  guint least = G_MAXUINT;

  if (list == NULL || !GST_VALUE_HOLDS_LIST (list))
    return;
  for (guint i = 0; i < gst_value_list_get_size (list); i++) {
    const gchar *name = g_value_get_string (gst_value_list_get_value (list, i));
    guint loss = g_str_equal (name, GST_VIDEO_INFO_NAME (input)) ? 0 : 1 + get_loss (input, name);

    if (loss < least) {
      least = loss;
      chosen = name;
    }
  }
  gst_structure_set (structure, "format", G_TYPE_STRING, chosen, NULL);
}

static gint
scale_length (gint length, gint num_a, gint denom_a, gint num_b, gint denom_b)
{
  gdouble scaled = (gdouble) length * num_a / denom_a * num_b / denom_b;

  return (gint) CLAMP (scaled + 0.5, 1.0, (gdouble) G_MAXINT);
}

/* Sets one side that leaves the picture's shape as it was; TRUE if that could be, to the nearest pixel. */
static gboolean
fixate_side (GstStructure * structure, const gchar * side, gint wanted)
{
  gint got = 0;

  gst_structure_fixate_field_nearest_int (structure, side, wanted);
  return gst_structure_get_int (structure, side, &got) && got == wanted;
}

/* A size near the input's, or of the input's shape where one side is given.  TRUE: its pixels may have the
 * shape that the input's have. */
static gboolean
fixate_sides (GstStructure * structure, const GstVideoInfo * input, gint out_n, gint out_d)
{
  gint in_width = GST_VIDEO_INFO_WIDTH (input), in_height = GST_VIDEO_INFO_HEIGHT (input);
  gint in_n = GST_VIDEO_INFO_PAR_N (input), in_d = GST_VIDEO_INFO_PAR_D (input);
  gint width, height;

  if (gst_structure_get_int (structure, "width", &width))
    return !gst_structure_get_int (structure, "height", &height)
        && fixate_side (structure, "height", scale_length (width, in_height, in_width, out_n * in_d,
            out_d * in_n));
  if (!gst_structure_get_int (structure, "height", &height)) {
    GstStructure *trial = gst_structure_copy (structure);
    gboolean fits;

    gst_structure_fixate_field_nearest_int (trial, "height", in_height);
    fits = gst_structure_get_int (trial, "height", &height) && fixate_side (trial, "width",
        scale_length (height, in_width, in_height, in_n * out_d, in_d * out_n));
    gst_structure_get_int (trial, "width", &width);
    gst_structure_free (trial);
    /* Where the width cannot follow the height, the height follows the width. */
    gst_structure_fixate_field_nearest_int (structure, fits ? "height" : "width", fits ? height : width);
    if (!fits)
      return fixate_side (structure, "height", scale_length (width, in_height, in_width, out_n * in_d,
              out_d * in_n));
  }
  return fixate_side (structure, "width", scale_length (height, in_width, in_height, in_n * out_d,
          in_d * out_n));
}

static void
fixate_size (GstStructure * structure, const GstVideoInfo * input)
{
  gint n = GST_VIDEO_INFO_PAR_N (input), d = GST_VIDEO_INFO_PAR_D (input), width, height;
  gint out_n = n, out_d = d;
  gboolean par_given = gst_structure_get_fraction (structure, "pixel-aspect-ratio", &out_n, &out_d);
  gboolean same_shape = fixate_sides (structure, input, out_n, out_d);

  if (par_given || !gst_structure_get_int (structure, "width", &width)
      || !gst_structure_get_int (structure, "height", &height))
    return;
  /* Otherwise pixels take the shape that leaves the picture's as it was. */
  if (!same_shape && (!gst_util_fraction_multiply (n, d, GST_VIDEO_INFO_WIDTH (input),
              GST_VIDEO_INFO_HEIGHT (input), &n, &d)
          || !gst_util_fraction_multiply (n, d, height, width, &n, &d)))
    return;
  if (gst_structure_has_field (structure, "pixel-aspect-ratio"))
    gst_structure_fixate_field_nearest_fraction (structure, "pixel-aspect-ratio", n, d);
  else
    gst_structure_set (structure, "pixel-aspect-ratio", GST_TYPE_FRACTION, n, d, NULL);
}

/* What samples mean does not change with the picture's size, though a default would; with the format only
 * what the conversion changes: matrix and range. */
static void
fixate_colour (GstStructure * structure, const GstVideoInfo * input)
{
  GstVideoFormat format =
      gst_video_format_from_string (gst_structure_get_string (structure, "format"));
  const GstVideoFormatInfo *info = gst_video_format_get_info (format);
  GstVideoColorimetry colour = input->colorimetry;
  gboolean same_kind = GST_VIDEO_FORMAT_INFO_IS_YUV (info) == GST_VIDEO_INFO_IS_YUV (input)
      && GST_VIDEO_FORMAT_INFO_IS_GRAY (info) == GST_VIDEO_FORMAT_INFO_IS_GRAY (input->finfo);

  if (!gst_structure_has_field (structure, "colorimetry")) {
    gchar *text;

    if (!same_kind) {
      GstVideoInfo usual;

      gst_video_info_set_format (&usual, format, GST_VIDEO_INFO_WIDTH (input),
          GST_VIDEO_INFO_HEIGHT (input));
      colour.matrix = usual.colorimetry.matrix;
      colour.range = usual.colorimetry.range;
    }
    text = gst_video_colorimetry_to_string (&colour);
    if (text != NULL)
      gst_structure_set (structure, "colorimetry", G_TYPE_STRING, text, NULL);
    g_free (text);
  }
  if (same_kind && GST_VIDEO_FORMAT_INFO_IS_YUV (info)
      && !gst_structure_has_field (structure, "chroma-site")
      && input->chroma_site != GST_VIDEO_CHROMA_SITE_UNKNOWN)
    gst_structure_set (structure, "chroma-site", G_TYPE_STRING,
        gst_video_chroma_to_string (input->chroma_site), NULL);
}

/* One picture out of what is possible, downstream's first wish. */
static GstCaps *
fixate (GstCaps * possible, GstCaps * input_caps)
{
  GstCaps *chosen = gst_caps_copy_nth (possible, 0);
  GstStructure *structure = gst_caps_get_structure (chosen, 0);
  GstVideoInfo input;

  if (gst_csf_info_from_caps (&input, input_caps)) {
    fixate_format (structure, &input);
    fixate_size (structure, &input);
    fixate_colour (structure, &input);
  }
  return gst_caps_fixate (chosen);
}

/* What goes downstream of pictures like the input's in this memory, or NULL. */
static GstCaps *
choose_in_memory (const csfk_kernel * kernel, GstCaps * input_caps, GstCaps * peer, gboolean cuda)
{
  GstCaps *same = in_memory (input_caps, cuda), *own, *converted, *possible, *chosen;

  own = memory_caps (kernel, GST_PAD_SRC, cuda);
  if (gst_caps_can_intersect (peer, same) && gst_caps_can_intersect (own, same)) {
    gst_caps_unref (own);
    return same;
  }
  if (!gst_csf_kernel_converts (kernel)) {
    gst_caps_unref (own);
    gst_caps_unref (same);
    return NULL;
  }
  converted = gst_caps_new_empty ();
  gst_caps_append_structure_full (converted, convert_structure (kernel,
          gst_caps_get_structure (input_caps, 0)), features_of (cuda));
  possible = gst_caps_intersect (converted, own);
  gst_caps_unref (converted);
  gst_caps_unref (own);
  converted = possible;
  possible = gst_caps_intersect_full (peer, converted, GST_CAPS_INTERSECT_FIRST);
  chosen = gst_caps_is_empty (possible) ? NULL : fixate (possible, input_caps);
  gst_caps_unref (possible);
  gst_caps_unref (converted);
  gst_caps_unref (same);
  return chosen;
}

GstCaps *
gst_csf_choose_output_caps (GstCudaStreamFilter * self, GstCaps * input_caps, gboolean cuda)
{
  GstCaps *peer = gst_pad_peer_query_caps (self->srcpad, NULL), *chosen = NULL;
  gboolean prefer_cuda = cuda && (gst_csf_caps_are_cuda (input_caps) || peer_asks_for_cuda (peer));

  for (gint attempt = 0; attempt < 2 && chosen == NULL; attempt++) {
    gboolean this_cuda = prefer_cuda == (attempt == 0);

    if (!this_cuda || cuda)
      chosen = choose_in_memory (self->kernel, input_caps, peer, this_cuda);
  }
  /* Downstream takes none of it, and will say so. */
  if (chosen == NULL)
    chosen = gst_caps_ref (input_caps);
  gst_caps_unref (peer);
  return chosen;
}
