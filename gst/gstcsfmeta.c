/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Metas from input to output buffers, and regions of interest as the kernels read them.  Knows no
 * devices. */
#include "gstcsfmeta.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gstcsfanalytics.h"

/* GstAnalyticsRelationMeta grows with the square of what it holds. */
#define MOST_OBJECTS 256

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

    if (g_quark_to_string (roi->roi_type) != NULL)
      set_label (&region, g_quark_to_string (roi->roi_type));
    for (GList * item = roi->params; item != NULL; item = item->next)
      read_param (&region, item->data);
    g_array_append_val (regions, region);
  }
}

/* ---- records ----------------------------------------------------------------------------------- */

void
gst_csf_meta_register (void)
{
  static const gchar *tags[] = { NULL };

  if (gst_meta_get_info (GST_CSF_RECORDS_META) == NULL)
    gst_meta_register_custom (GST_CSF_RECORDS_META, tags, NULL, NULL, NULL);
}

static gboolean
is_number (const csfk_object * object)
{
  return isfinite (object->x) && isfinite (object->y) && isfinite (object->width)
      && isfinite (object->height) && isfinite (object->confidence) && isfinite (object->score);
}

/* What lies inside stays as it is, to the last bit.  TRUE: it was cut. */
static gboolean
clip_side (gfloat * from, gfloat * size, gfloat most)
{
  gboolean cut = FALSE;

  if (*from < 0) {
    *size += *from;
    *from = 0;
    cut = TRUE;
  }
  if (*from + *size > most) {
    *size = most - *from;
    cut = TRUE;
  }
  return cut;
}

/* FALSE: nothing of it lies inside the picture.  *changed: it was cut, or surer than sure. */
static gboolean
clip (csfk_object * object, const GstVideoInfo * info, gboolean * changed)
{
  if (!is_number (object))
    return FALSE;
  *changed = clip_side (&object->x, &object->width, GST_VIDEO_INFO_WIDTH (info));
  *changed |= clip_side (&object->y, &object->height, GST_VIDEO_INFO_HEIGHT (info));
  *changed |= object->confidence > 1;
  object->confidence = MIN (object->confidence, 1);
  return object->width > 0 && object->height > 0;
}

static gint
compare_objects (gconstpointer a, gconstpointer b)
{
  const csfk_object *x = a, *y = b;

  if (x->y != y->y)
    return x->y < y->y ? -1 : 1;
  if (x->x != y->x)
    return x->x < y->x ? -1 : 1;
  return memcmp (x, y, sizeof *x);
}

/* In place; returns how many objects are left. */
static guint
tidy_objects (csfk_object * objects, guint n, const GstVideoInfo * info, guint * faulty)
{
  guint kept = 0;

  for (guint i = 0; i < n; i++) {
    csfk_object object = objects[i];
    gboolean changed = FALSE, inside = clip (&object, info, &changed);

    if (!inside || changed)
      (*faulty)++;
    if (inside)
      objects[kept++] = object;
  }
  /* Without any there may be no memory either. */
  if (kept > 1)
    qsort (objects, kept, sizeof *objects, compare_objects);
  return kept;
}

static void
scale_places (const GstCsfRecords * records, gpointer data, guint n)
{
  gfloat x = (gfloat) GST_VIDEO_INFO_WIDTH (records->output_info)
      / GST_VIDEO_INFO_WIDTH (records->input_info);
  gfloat y = (gfloat) GST_VIDEO_INFO_HEIGHT (records->output_info)
      / GST_VIDEO_INFO_HEIGHT (records->input_info);

  if (x == 1 && y == 1)
    return;
  for (guint i = 0; i < n && records->kernel->record_kind == CSFK_RECORD_OBJECT; i++) {
    csfk_object *object = (csfk_object *) data + i;

    object->x *= x;
    object->width *= x;
    object->y *= y;
    object->height *= y;
  }
  for (guint i = 0; i < n && records->kernel->record_kind == CSFK_RECORD_POINT; i++) {
    csfk_point *point = (csfk_point *) data + i;

    point->x *= x;
    point->y *= y;
  }
}

static const gchar *
label_of (const csfk_kernel * kernel, gint label)
{
  if (label < 0 || kernel->labels == NULL)
    return kernel->record_name;
  for (gint i = 0; kernel->labels[i] != NULL; i++)
    if (i == label)
      return kernel->labels[i];
  return kernel->record_name;
}

/* Whole pixels round so much of a side, at least one of them, and none beyond the picture. */
static void
round_side (gfloat from, gfloat size, gint most, gint * start, gint * pixels)
{
  *start = MIN ((gint) from, most - 1);
  *pixels = MAX (MIN ((gint) ceilf (from + size), most) - *start, 1);
}

void
gst_csf_meta_round_box (const csfk_object * object, const GstVideoInfo * info, GstVideoRectangle * box)
{
  round_side (object->x, object->width, GST_VIDEO_INFO_WIDTH (info), &box->x, &box->w);
  round_side (object->y, object->height, GST_VIDEO_INFO_HEIGHT (info), &box->y, &box->h);
}

static void
attach_region (GstBuffer * output, const csfk_kernel * kernel, const csfk_object * object,
    const GstVideoRectangle * box, gint id)
{
  GstVideoRegionOfInterestMeta *roi = gst_buffer_add_video_region_of_interest_meta (output,
      label_of (kernel, object->label), (guint) box->x, (guint) box->y, (guint) box->w, (guint) box->h);
  GstStructure *params = gst_structure_new ("detection", "label", G_TYPE_STRING,
      label_of (kernel, object->label), "score", G_TYPE_DOUBLE, (gdouble) object->score, NULL);

  if (object->confidence >= 0)
    gst_structure_set (params, "confidence", G_TYPE_DOUBLE, (gdouble) object->confidence, NULL);
  if (object->track_id >= 0)
    gst_structure_set (params, "track-id", G_TYPE_INT, object->track_id, NULL);
  roi->id = id;
  gst_video_region_of_interest_meta_add_param (roi, params);
}

/* The first id that upstream's regions leave free. */
static gint
next_region_id (GstBuffer * buffer)
{
  gpointer state = NULL;
  gint next = 0;
  GstMeta *meta;

  while ((meta = gst_buffer_iterate_meta_filtered (buffer, &state,
              GST_VIDEO_REGION_OF_INTEREST_META_API_TYPE)) != NULL) {
    gint id = ((GstVideoRegionOfInterestMeta *) meta)->id;

    if (id >= next && id < G_MAXINT - MOST_OBJECTS)
      next = id + 1;
  }
  return next;
}

static void
attach_objects (GstBuffer * output, const GstCsfRecords * records, const csfk_object * objects, guint n)
{
  gint first = next_region_id (output);

  n = MIN (n, MOST_OBJECTS);
  for (guint i = 0; i < n; i++) {
    GstVideoRectangle box;

    gst_csf_meta_round_box (&objects[i], records->output_info, &box);
    attach_region (output, records->kernel, &objects[i], &box, first + (gint) i);
  }
  if (n > 0)
    gst_csf_analytics_attach (output, records->kernel, records->output_info, objects, n);
}

/* Takes the data. */
static void
attach_custom (GstBuffer * output, const GstCsfRecords * records, gpointer data, guint n)
{
  static const gchar *const kinds[] = { "other", "object", "point" };
  const csfk_kernel *kernel = records->kernel;
  GstCustomMeta *meta = gst_buffer_add_custom_meta (output, GST_CSF_RECORDS_META);
  GBytes *bytes = g_bytes_new_with_free_func (data, (gsize) n * kernel->record_size, free, data);

  gst_structure_set (gst_custom_meta_get_structure (meta),
      "name", G_TYPE_STRING, kernel->record_name,
      "kind", G_TYPE_STRING, kinds[CLAMP (kernel->record_kind, 0, 2)],
      "record-size", G_TYPE_UINT, kernel->record_size,
      "count", G_TYPE_UINT, n,
      "wanted", G_TYPE_UINT, records->wanted, "data", G_TYPE_BYTES, bytes, NULL);
  if (kernel->labels != NULL)
    gst_structure_set (gst_custom_meta_get_structure (meta), "labels", G_TYPE_STRV, kernel->labels, NULL);
  g_bytes_unref (bytes);
}

guint
gst_csf_meta_attach_records (GstBuffer * output, const GstCsfRecords * records)
{
  gpointer data = records->records;
  guint n = records->n, faulty = 0;

  if (records->kernel->record_kind == CSFK_RECORD_OBJECT) {
    n = tidy_objects (data, n, records->input_info, &faulty);
    gst_csf_tracker_update (records->tracker, data, n);
  }
  scale_places (records, data, n);
  if (records->kernel->record_kind == CSFK_RECORD_OBJECT)
    attach_objects (output, records, data, n);
  attach_custom (output, records, data, n);
  return faulty;
}
