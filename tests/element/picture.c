/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Pictures in memory: building odd ones and comparing rows of samples.  Bytes that are no
 * samples are never compared. */
#include "picture.h"

#include <stdlib.h>
#include <string.h>

/* Where kernels on a real GPU may differ from the C function; the fake driver runs that
 * function. */
#define GPU_TOLERANCE 1

const gchar *const picture_formats[] = {
  "GRAY8", "NV12", "I420", "YUY2", "UYVY", "P010_10LE", "RGB", "BGR", "RGBx", "BGRx", "RGBA",
  "BGRA", NULL
};

void
picture_fill (GstBuffer * buffer)
{
  GstMapInfo map;
  guint32 state = test_random (G_MAXINT32);

  ck_assert (gst_buffer_map (buffer, &map, GST_MAP_WRITE));
  for (gsize i = 0; i < map.size; i++) {
    state = state * 1664525 + 1013904223;
    map.data[i] = (guint8) (state >> 24);
  }
  gst_buffer_unmap (buffer, &map);
}

GstBuffer *
picture_new_padded (const GstVideoInfo * info, guint offset, guint pad, guint rows)
{
  gsize offsets[GST_VIDEO_MAX_PLANES] = { 0 }, size = offset;
  gint strides[GST_VIDEO_MAX_PLANES] = { 0 };
  csfk_image image;
  GstBuffer *buffer;

  csfk_image_init (&image, csfk_format_from_name (GST_VIDEO_INFO_NAME (info)), info->width,
      info->height);
  for (gint p = 0; p < image.n_planes; p++) {
    strides[p] = image.plane[p].row_bytes + (gint) pad;
    offsets[p] = size;
    size += (gsize) strides[p] * ((gsize) image.plane[p].rows + rows);
  }
  buffer = gst_buffer_new_allocate (NULL, size, NULL);
  picture_fill (buffer);
  gst_buffer_add_video_meta_full (buffer, GST_VIDEO_FRAME_FLAG_NONE, GST_VIDEO_INFO_FORMAT (info),
      (guint) info->width, (guint) info->height, (guint) image.n_planes, offsets, strides);
  return buffer;
}

static gsize
plane_end (const GstVideoInfo * info, guint plane)
{
  return plane + 1 < GST_VIDEO_INFO_N_PLANES (info) ?
      GST_VIDEO_INFO_PLANE_OFFSET (info, plane + 1) : GST_VIDEO_INFO_SIZE (info);
}

GstBuffer *
picture_new_planes (const GstVideoInfo * info, gboolean video_meta)
{
  GstAllocationParams whole_pages = {.align = 4095 };
  GstBuffer *buffer = gst_buffer_new ();

  for (guint p = 0; p < GST_VIDEO_INFO_N_PLANES (info); p++) {
    gsize size = plane_end (info, p) - GST_VIDEO_INFO_PLANE_OFFSET (info, p);
    GstBuffer *plane = gst_buffer_new_allocate (NULL, size, &whole_pages);

    picture_fill (plane);
    gst_buffer_append_memory (buffer, gst_buffer_get_memory (plane, 0));
    gst_buffer_unref (plane);
  }
  if (video_meta)
    gst_buffer_add_video_meta_full (buffer, GST_VIDEO_FRAME_FLAG_NONE,
        GST_VIDEO_INFO_FORMAT (info), (guint) info->width, (guint) info->height,
        GST_VIDEO_INFO_N_PLANES (info), (gsize *) info->offset, (gint *) info->stride);
  return buffer;
}

/* ---- comparing ------------------------------------------------------------------------------- */

static void
image_of (csfk_image * image, const GstVideoInfo * info, GstVideoFrame * frame)
{
  static const csfk_matrix matrices[] = {
    [GST_VIDEO_COLOR_MATRIX_RGB] = CSFK_MATRIX_RGB,
    [GST_VIDEO_COLOR_MATRIX_BT601] = CSFK_MATRIX_BT601,
    [GST_VIDEO_COLOR_MATRIX_BT709] = CSFK_MATRIX_BT709,
    [GST_VIDEO_COLOR_MATRIX_BT2020] = CSFK_MATRIX_BT2020,
  };

  csfk_image_init (image, csfk_format_from_name (GST_VIDEO_INFO_NAME (info)), info->width,
      info->height);
  image->range = info->colorimetry.range == GST_VIDEO_COLOR_RANGE_16_235 ?
      CSFK_RANGE_LIMITED : CSFK_RANGE_FULL;
  image->matrix = (int) matrices[info->colorimetry.matrix];
  for (gint p = 0; p < image->n_planes; p++) {
    image->plane[p].data = GST_VIDEO_FRAME_PLANE_DATA (frame, p);
    image->plane[p].stride = GST_VIDEO_FRAME_PLANE_STRIDE (frame, p);
  }
}

static gboolean
rows_differ (const guint8 * a, const guint8 * b, gsize bytes, gint tolerance)
{
  if (memcmp (a, b, bytes) == 0)
    return FALSE;
  for (gsize i = 0; i < bytes; i++)
    if (abs ((gint) a[i] - (gint) b[i]) > tolerance)
      return TRUE;
  return FALSE;
}

static void
compare (const csfk_image * expected, const csfk_image * came, gint tolerance)
{
  for (gint p = 0; p < expected->n_planes; p++)
    for (gint y = 0; y < expected->plane[p].rows; y++)
      ck_assert_msg (!rows_differ (expected->plane[p].data
              + (gssize) y * expected->plane[p].stride,
              came->plane[p].data + (gssize) y * came->plane[p].stride,
              (gsize) expected->plane[p].row_bytes, tolerance),
          "%s %dx%d: plane %d row %d differs", csfk_format_get_info (expected->format)->name,
          expected->width, expected->height, p, y);
}

typedef struct
{
  GstVideoFrame input, output;
  csfk_image in, out;
} Mapped;

static void
map_both (Mapped * mapped, const GstVideoInfo * info, GstBuffer * input, GstBuffer * output)
{
  ck_assert (gst_video_frame_map (&mapped->input, info, input, GST_MAP_READ));
  ck_assert (gst_video_frame_map (&mapped->output, info, output, GST_MAP_READ));
  image_of (&mapped->in, info, &mapped->input);
  image_of (&mapped->out, info, &mapped->output);
}

static void
unmap_both (Mapped * mapped)
{
  gst_video_frame_unmap (&mapped->output);
  gst_video_frame_unmap (&mapped->input);
}

void
picture_check_equal (const GstVideoInfo * info, GstBuffer * input, GstBuffer * output)
{
  Mapped mapped;

  map_both (&mapped, info, input, output);
  compare (&mapped.in, &mapped.out, 0);
  unmap_both (&mapped);
}

static void
set_params (const csfk_kernel * kernel, const gchar * text, guint8 * params)
{
  csfk_params_init (kernel, params);
  if (text != NULL) {
    gchar **pair = g_strsplit (text, "=", 2);
    const csfk_param *param;

    ck_assert_int_eq (csfk_params_set (kernel, params, pair[0], g_ascii_strtod (pair[1], NULL),
            &param), 0);
    g_strfreev (pair);
  }
  if (kernel->resolve != NULL)
    kernel->resolve (params);
}

void
picture_check (const GstVideoInfo * info, const gchar * kernel_name, const gchar * params_text,
    GstBuffer * input, GstBuffer * output)
{
  const csfk_kernel *kernel = csfk_kernel_find (kernel_name);
  guint8 params[CSFK_MAX_PARAMS] __attribute__ ((aligned (16))) = { 0 };
  csfk_image expected;
  csfk_frame frame = { 0 };
  Mapped mapped;
  gsize size;
  guint8 *memory;

  ck_assert (kernel != NULL);
  set_params (kernel, params_text, params);
  map_both (&mapped, info, input, output);
  expected = mapped.out;
  size = csfk_image_place (&expected, NULL, 1);
  memory = g_malloc (size);
  csfk_image_place (&expected, memory, 1);
  frame.in = mapped.in;
  frame.out = expected;
  kernel->process (&frame, params);
  compare (&expected, &mapped.out, test_backend_pins () && fake == NULL ? GPU_TOLERANCE : 0);
  g_free (memory);
  unmap_both (&mapped);
}
