/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Metas from input to output buffers, and regions of interest as the kernels read them.  Knows no
 * devices. */
#include "gstcsfmeta.h"

#include <math.h>
#include <string.h>

typedef struct
{
  GstBuffer *output;
  GstVideoMetaTransform scale;
  gboolean resized, recoloured;
} CopyContext;

static gboolean
has_tag (const GstMetaInfo * info, const gchar * tag)
{
  return gst_meta_api_type_has_tag (info->api, g_quark_from_string (tag));
}

/* GStreamer's own scaling takes a place left of the picture for one far right of it, and leaves a region's
 * parameters behind.  Rounded outwards: what a region covers stays covered. */
static void
scale_region (const GstVideoRegionOfInterestMeta * from, const CopyContext * context)
{
  gint64 in_width = GST_VIDEO_INFO_WIDTH (context->scale.in_info);
  gint64 in_height = GST_VIDEO_INFO_HEIGHT (context->scale.in_info);
  gint64 out_width = GST_VIDEO_INFO_WIDTH (context->scale.out_info);
  gint64 out_height = GST_VIDEO_INFO_HEIGHT (context->scale.out_info);
  gdouble left = (gdouble) (gint) from->x * out_width / in_width;
  gdouble top = (gdouble) (gint) from->y * out_height / in_height;
  gdouble right = ((gdouble) (gint) from->x + from->w) * out_width / in_width;
  gdouble bottom = ((gdouble) (gint) from->y + from->h) * out_height / in_height;
  gint x = (gint) CLAMP (floor (left), G_MININT, G_MAXINT);
  gint y = (gint) CLAMP (floor (top), G_MININT, G_MAXINT);
  GstVideoRegionOfInterestMeta *to = gst_buffer_add_video_region_of_interest_meta_id (context->output,
      from->roi_type, (guint) x, (guint) y, (guint) CLAMP (ceil (right) - x, 0, G_MAXINT),
      (guint) CLAMP (ceil (bottom) - y, 0, G_MAXINT));

  to->id = from->id;
  to->parent_id = from->parent_id;
  for (GList * item = from->params; item != NULL; item = item->next)
    gst_video_region_of_interest_meta_add_param (to, gst_structure_copy (item->data));
}

static gboolean
copy_meta (GstBuffer * input, GstMeta ** meta, gpointer user_data)
{
  const GstMetaInfo *info = (*meta)->info;
  CopyContext *context = user_data;
  GstMetaTransformCopy whole = { FALSE, 0, -1 };

  if (info->api == GST_PARENT_BUFFER_META_API_TYPE || info->transform_func == NULL
      || has_tag (info, GST_META_TAG_MEMORY_STR))
    return TRUE;
  if (context->recoloured && has_tag (info, GST_META_TAG_VIDEO_COLORSPACE_STR))
    return TRUE;
  if (context->resized && info->api == GST_VIDEO_REGION_OF_INTEREST_META_API_TYPE)
    scale_region ((const GstVideoRegionOfInterestMeta *) *meta, context);
  else if (context->resized && has_tag (info, GST_META_TAG_VIDEO_SIZE_STR))
    info->transform_func (context->output, *meta, input, gst_video_meta_transform_scale_get_quark (),
        &context->scale);
  else
    info->transform_func (context->output, *meta, input, g_quark_from_static_string ("gst-copy"),
        &whole);
  return TRUE;
}

void
gst_csf_meta_copy (GstBuffer * output, GstBuffer * input, const GstVideoInfo * output_info,
    const GstVideoInfo * input_info)
{
  CopyContext context = {
    .output = output,
    .scale = {(GstVideoInfo *) input_info, (GstVideoInfo *) output_info},
    .resized = GST_VIDEO_INFO_WIDTH (input_info) != GST_VIDEO_INFO_WIDTH (output_info)
        || GST_VIDEO_INFO_HEIGHT (input_info) != GST_VIDEO_INFO_HEIGHT (output_info),
    .recoloured = GST_VIDEO_INFO_FORMAT (input_info) != GST_VIDEO_INFO_FORMAT (output_info),
  };

  gst_buffer_copy_into (output, input, GST_BUFFER_COPY_FLAGS | GST_BUFFER_COPY_TIMESTAMPS, 0, -1);
  gst_buffer_foreach_meta (input, copy_meta, &context);
}

/* ---- regions ----------------------------------------------------------------------------------- */

/* As much of the text as fits, and no half of a character. */
static void
set_label (csfk_region * region, const gchar * text)
{
  gsize size = strlen (text);

  if (size >= CSFK_LABEL_BYTES) {
    size = CSFK_LABEL_BYTES - 1;
    while (size > 0 && ((guchar) text[size] & 0xc0) == 0x80)
      size--;
  }
  memcpy (region->label, text, size);
}

/* Detectors name it so; each may hang its own structure on the meta. */
static void
read_param (csfk_region * region, const GstStructure * param)
{
  gdouble confidence;
  gint id;

  if (gst_structure_get_double (param, "confidence", &confidence))
    region->confidence = (gfloat) CLAMP (confidence, 0.0, 1.0);
  if (gst_structure_get_int (param, "track-id", &id))
    region->track_id = id;
}

void
gst_csf_meta_get_regions (GstBuffer * buffer, GArray * regions)
{
  gpointer state = NULL;
  GstMeta *meta;

  while ((meta = gst_buffer_iterate_meta_filtered (buffer, &state,
              GST_VIDEO_REGION_OF_INTEREST_META_API_TYPE)) != NULL) {
    const GstVideoRegionOfInterestMeta *roi = (const GstVideoRegionOfInterestMeta *) meta;
    csfk_region region = {
      /* A place left of the picture or above it comes as a huge number. */
      .x = (gint) roi->x,
      .y = (gint) roi->y,
      .width = (gint) MIN (roi->w, G_MAXINT),
      .height = (gint) MIN (roi->h, G_MAXINT),
      .confidence = -1,
      .id = roi->id,
      .parent_id = roi->parent_id,
      .track_id = -1,
    };

    if (roi->roi_type != 0)
      set_label (&region, g_quark_to_string (roi->roi_type));
    for (GList * item = roi->params; item != NULL; item = item->next)
      read_param (&region, item->data);
    g_array_append_val (regions, region);
  }
}
