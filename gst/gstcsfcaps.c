/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Caps: what the kernels take, and how system and CUDA memory on the two pads go together.  Any
 * combination of the two works, since a frame can be copied on either side. */
#include "gstcudastreamfilter.h"

#include "kernels/format.h"

/* libgstcuda knows all our formats but this one. */
#define NOT_IN_CUDA_MEMORY CSFK_FORMAT_GRAY8

static void
append_format (GValue * list, int format, gboolean cuda)
{
  GValue name = G_VALUE_INIT;

  if (cuda && format == NOT_IN_CUDA_MEMORY)
    return;
  g_value_init (&name, G_TYPE_STRING);
  g_value_set_static_string (&name, csfk_format_get_info (format)->name);
  gst_value_list_append_and_take_value (list, &name);
}

static GstCaps *
memory_caps (const csfk_kernel * kernel, gboolean cuda)
{
  GValue formats = G_VALUE_INIT;
  GstCaps *caps;

  g_value_init (&formats, GST_TYPE_LIST);
  if (kernel == NULL)
    for (int f = CSFK_FORMAT_NONE + 1; f < CSFK_N_FORMATS; f++)
      append_format (&formats, f, cuda);
  else
    for (int i = 0; i < CSFK_MAX_FORMATS && kernel->formats[i] != CSFK_FORMAT_NONE; i++)
      append_format (&formats, kernel->formats[i], cuda);
  caps = gst_caps_new_simple ("video/x-raw", "width", GST_TYPE_INT_RANGE, 1, G_MAXINT,
      "height", GST_TYPE_INT_RANGE, 1, G_MAXINT, "framerate", GST_TYPE_FRACTION_RANGE, 0, 1,
      G_MAXINT, 1, NULL);
  gst_caps_set_value (caps, "format", &formats);
  if (cuda)
    gst_caps_set_features_simple (caps, gst_caps_features_new (GST_CSF_CUDA_FEATURE, NULL));
  g_value_unset (&formats);
  return caps;
}

GstCaps *
gst_csf_kernel_caps (const csfk_kernel * kernel, gboolean cuda)
{
  GstCaps *caps = memory_caps (kernel, FALSE);

  if (cuda)
    gst_caps_append (caps, memory_caps (kernel, TRUE));
  return caps;
}

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

  gst_caps_set_features_simple (result, cuda ? gst_caps_features_new (GST_CSF_CUDA_FEATURE, NULL)
      : gst_caps_features_new (GST_CAPS_FEATURE_MEMORY_SYSTEM_MEMORY, NULL));
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

GstCaps *
gst_csf_choose_output_caps (GstCudaStreamFilter * self, GstCaps * input_caps, gboolean cuda)
{
  GstVideoInfo info;
  GstCaps *peer, *system, *device, *first, *second, *chosen;
  gboolean prefer_cuda;

  system = in_memory (input_caps, FALSE);
  if (!cuda || !gst_video_info_from_caps (&info, input_caps)
      || csfk_format_from_name (GST_VIDEO_INFO_NAME (&info)) == NOT_IN_CUDA_MEMORY)
    return system;
  device = in_memory (input_caps, TRUE);
  peer = gst_pad_peer_query_caps (self->srcpad, NULL);
  prefer_cuda = gst_csf_caps_are_cuda (input_caps) || peer_asks_for_cuda (peer);
  first = prefer_cuda ? device : system;
  second = prefer_cuda ? system : device;
  chosen = gst_caps_can_intersect (peer, first) || !gst_caps_can_intersect (peer, second) ?
      first : second;
  gst_caps_ref (chosen);
  gst_caps_unref (system);
  gst_caps_unref (device);
  gst_caps_unref (peer);
  return chosen;
}
