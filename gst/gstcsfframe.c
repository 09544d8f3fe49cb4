/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* From GStreamer buffers to the engine's images and back.  Knows video frames and metas, nothing of
 * devices. */
#include "gstcsfframe.h"

#include "gstcsfmeta.h"
#include "gstcsfpool.h"
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
gst_csf_info_from_caps (GstVideoInfo * info, GstCaps * caps)
{
  const gchar *site;

  if (!gst_video_info_from_caps (info, caps))
    return FALSE;
  site = gst_structure_get_string (gst_caps_get_structure (caps, 0), "chroma-site");
  if (site != NULL && gst_video_chroma_from_string (site) != GST_VIDEO_CHROMA_SITE_UNKNOWN)
    info->chroma_site = gst_video_chroma_from_string (site);
  return TRUE;
}

gboolean
gst_csf_colour_is_strange (const GstVideoInfo * info)
{
  const GstVideoColorimetry *colour = &info->colorimetry;

  if (GST_VIDEO_FORMAT_INFO_IS_GRAY (info->finfo))
    return FALSE;
  if (GST_VIDEO_INFO_IS_RGB (info))
    return colour->range == GST_VIDEO_COLOR_RANGE_16_235;
  return colour->matrix == GST_VIDEO_COLOR_MATRIX_SMPTE240M || colour->matrix == GST_VIDEO_COLOR_MATRIX_FCC;
}

static csfk_chroma_site
chroma_site_of (const GstVideoInfo * info)
{
  if ((info->chroma_site & GST_VIDEO_CHROMA_SITE_H_COSITED) == 0)
    return CSFK_CHROMA_SITE_CENTER;
  return (info->chroma_site & GST_VIDEO_CHROMA_SITE_V_COSITED) != 0 ?
      CSFK_CHROMA_SITE_TOP_LEFT : CSFK_CHROMA_SITE_LEFT;
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
  layout->image.chroma_site = chroma_site_of (info);
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

static gchar *
map_failure (const gchar * which, GstBuffer * buffer, const GstVideoInfo * info)
{
  return g_strdup_printf ("expected an %s buffer of %" G_GSIZE_FORMAT " bytes for %dx%d %s, got one of "
      "%" G_GSIZE_FORMAT " bytes in %u memories that cannot be mapped so; check what fills it", which,
      GST_VIDEO_INFO_SIZE (info), GST_VIDEO_INFO_WIDTH (info), GST_VIDEO_INFO_HEIGHT (info),
      GST_VIDEO_INFO_NAME (info), gst_buffer_get_size (buffer), gst_buffer_n_memory (buffer));
}

/* Device memory is used where it is, after what its stream has still to do. */
static gboolean
map_frame (const GstCsfFormat * format, GstVideoFrame * frame, const GstVideoInfo * info,
    GstBuffer * buffer, GstMapFlags flags, csf_job * job, csf_memory * memory)
{
  gpointer stream = NULL;

  *memory = CSF_MEMORY_HOST;
  if (gst_csf_cuda_is_device_buffer (buffer, format->context, &stream)) {
    *memory = CSF_MEMORY_DEVICE;
    flags |= gst_csf_cuda_map_flags ();
    if (job->n_fences == 0 || job->fences[0] != stream)
      job->fences[job->n_fences++] = stream;
  }
  if (gst_video_frame_map (frame, info, buffer, flags | GST_VIDEO_FRAME_MAP_FLAG_NO_REF))
    return TRUE;
  frame->buffer = NULL;
  return FALSE;
}

GstCsfFrame *
gst_csf_frame_new (const GstCsfFormat * format, GstBuffer * input, GstBuffer * output,
    csf_job * job, gchar ** reason)
{
  GstCsfFrame *frame = g_new0 (GstCsfFrame, 1);

  frame->input = input;
  frame->output = output;
  gst_csf_meta_copy (output, input, &format->output_info, &format->input_info);
  if (!map_frame (format, &frame->input_frame, &format->input_info, input, GST_MAP_READ, job,
          &job->in_memory)
      || !fill_image (&job->in, &frame->input_frame, &format->input_layout)) {
    *reason = map_failure ("input", input, &format->input_info);
  } else if (!map_frame (format, &frame->output_frame, &format->output_info, output, GST_MAP_WRITE,
          job, &job->out_memory)
      || !fill_image (&job->out, &frame->output_frame, &format->output_layout)) {
    *reason = map_failure ("output", output, &format->output_info);
  } else {
    job->in_pinned = format->pins && job->in_memory == CSF_MEMORY_HOST
        && gst_csf_video_frame_is_pinned (&frame->input_frame, format->hostpool);
    job->out_pinned = format->pins && job->out_memory == CSF_MEMORY_HOST
        && gst_csf_video_frame_is_pinned (&frame->output_frame, format->hostpool);
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
