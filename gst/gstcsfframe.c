/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* From GStreamer buffers to the engine's images and back.  Knows video frames and metas, nothing of
 * devices. */
#include "gstcsfframe.h"

#include "kernels/format.h"

static csfk_range
range_of (const GstVideoInfo * info)
{
  return info->colorimetry.range == GST_VIDEO_COLOR_RANGE_16_235 ?
      CSFK_RANGE_LIMITED : CSFK_RANGE_FULL;
}

static csfk_matrix
matrix_of (const GstVideoInfo * info)
{
  switch (info->colorimetry.matrix) {
    case GST_VIDEO_COLOR_MATRIX_BT709:
      return CSFK_MATRIX_BT709;
    case GST_VIDEO_COLOR_MATRIX_BT2020:
      return CSFK_MATRIX_BT2020;
    case GST_VIDEO_COLOR_MATRIX_RGB:
      return CSFK_MATRIX_RGB;
    default:
      return CSFK_MATRIX_BT601;
  }
}

gboolean
gst_csf_layout_from_info (csf_layout * layout, const GstVideoInfo * info)
{
  csfk_format format = csfk_format_from_name (GST_VIDEO_INFO_NAME (info));

  memset (layout, 0, sizeof *layout);
  if (format == CSFK_FORMAT_NONE)
    return FALSE;
  csfk_image_init (&layout->image, format, GST_VIDEO_INFO_WIDTH (info),
      GST_VIDEO_INFO_HEIGHT (info));
  layout->image.range = range_of (info);
  layout->image.matrix = matrix_of (info);
  layout->size = GST_VIDEO_INFO_SIZE (info);
  for (int p = 0; p < layout->image.n_planes; p++) {
    layout->image.plane[p].stride = GST_VIDEO_INFO_PLANE_STRIDE (info, p);
    layout->offset[p] = GST_VIDEO_INFO_PLANE_OFFSET (info, p);
  }
  return TRUE;
}

/* A GstVideoMeta may claim more than the memory holds, and mapping does not look. */
static gboolean
plane_is_inside (const csfk_plane * plane, const GstMapInfo * map)
{
  gsize offset = plane->data - map->data;
  gsize needed = (gsize) (plane->rows - 1) * plane->stride + plane->row_bytes;

  return plane->data >= map->data && offset <= map->size && needed <= map->size - offset;
}

static gboolean
fill_image (csfk_image * image, const GstVideoFrame * frame, const csf_layout * layout)
{
  *image = layout->image;
  for (int p = 0; p < image->n_planes; p++) {
    csfk_plane *plane = &image->plane[p];

    plane->data = GST_VIDEO_FRAME_PLANE_DATA (frame, p);
    plane->stride = GST_VIDEO_FRAME_PLANE_STRIDE (frame, p);
    if (plane->stride < plane->row_bytes
        || !plane_is_inside (plane, &frame->map[frame->meta != NULL ? p : 0]))
      return FALSE;
  }
  return TRUE;
}

/* Everything travels but what describes the input's own memory. */
static gboolean
copy_meta (GstBuffer * input, GstMeta ** meta, gpointer user_data)
{
  GstBuffer *output = user_data;
  const GstMetaInfo *info = (*meta)->info;
  GstMetaTransformCopy whole = { FALSE, 0, -1 };

  if (info->api == GST_PARENT_BUFFER_META_API_TYPE || info->transform_func == NULL
      || gst_meta_api_type_has_tag (info->api, g_quark_from_static_string (GST_META_TAG_MEMORY_STR)))
    return TRUE;
  info->transform_func (output, *meta, input, g_quark_from_static_string ("gst-copy"), &whole);
  return TRUE;
}

static gchar *
map_failure (const gchar * which, GstBuffer * buffer, const GstVideoInfo * info)
{
  return g_strdup_printf ("expected an %s buffer of %" G_GSIZE_FORMAT " bytes for %dx%d %s, got one of "
      "%" G_GSIZE_FORMAT " bytes in %u memories that cannot be mapped so; check what fills it", which,
      GST_VIDEO_INFO_SIZE (info), GST_VIDEO_INFO_WIDTH (info), GST_VIDEO_INFO_HEIGHT (info),
      GST_VIDEO_INFO_NAME (info), gst_buffer_get_size (buffer), gst_buffer_n_memory (buffer));
}

GstCsfFrame *
gst_csf_frame_new (GstBuffer * input, const GstVideoInfo * input_info, GstBuffer * output,
    const GstVideoInfo * output_info, const csf_layout * input_layout,
    const csf_layout * output_layout, csf_job * job, gchar ** reason)
{
  GstCsfFrame *frame = g_new0 (GstCsfFrame, 1);

  frame->input = input;
  frame->output = output;
  gst_buffer_copy_into (output, input, GST_BUFFER_COPY_FLAGS | GST_BUFFER_COPY_TIMESTAMPS, 0, -1);
  gst_buffer_foreach_meta (input, copy_meta, output);
  if (!gst_video_frame_map (&frame->input_frame, input_info, input,
          GST_MAP_READ | GST_VIDEO_FRAME_MAP_FLAG_NO_REF)) {
    frame->input_frame.buffer = NULL;
    *reason = map_failure ("input", input, input_info);
  } else if (!gst_video_frame_map (&frame->output_frame, output_info, output,
          GST_MAP_WRITE | GST_VIDEO_FRAME_MAP_FLAG_NO_REF)) {
    frame->output_frame.buffer = NULL;
    *reason = map_failure ("output", output, output_info);
  } else if (!fill_image (&job->in, &frame->input_frame, input_layout)) {
    *reason = map_failure ("input", input, input_info);
  } else if (!fill_image (&job->out, &frame->output_frame, output_layout)) {
    *reason = map_failure ("output", output, output_info);
  } else {
    job->user = frame;
    return frame;
  }
  gst_csf_frame_free (frame);
  return NULL;
}

void
gst_csf_frame_release_input (GstCsfFrame * frame)
{
  if (frame->input_frame.buffer != NULL)
    gst_video_frame_unmap (&frame->input_frame);
  frame->input_frame.buffer = NULL;
  gst_clear_buffer (&frame->input);
}

GstBuffer *
gst_csf_frame_finish (GstCsfFrame * frame)
{
  GstBuffer *output = frame->output;

  gst_csf_frame_release_input (frame);
  if (frame->output_frame.buffer != NULL)
    gst_video_frame_unmap (&frame->output_frame);
  g_free (frame);
  return output;
}

void
gst_csf_frame_free (GstCsfFrame * frame)
{
  gst_buffer_unref (gst_csf_frame_finish (frame));
}
