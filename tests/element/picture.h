/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Pictures: input buffers laid out in unusual ways, and the comparison of what came out with
 * what the kernel's C function makes of the input.  Knows the kernels' table, no element. */
#ifndef PICTURE_H
#define PICTURE_H

#include "element.h"
#include "kernels/format.h"

/* The 12 formats, ended by NULL. */
extern const gchar *const picture_formats[];

/* Random content everywhere, padding included. */
void picture_fill (GstBuffer * buffer);

/* An input buffer with GstVideoMeta: it begins at `offset`, its rows are `pad` bytes longer than
 * need be and each plane has `rows` more of them (1080 in 1088). */
GstBuffer *picture_new_padded (const GstVideoInfo * info, guint offset, guint pad, guint rows);

/* An input buffer with each plane in a memory of its own, with GstVideoMeta when that is wanted;
 * without it, the memories one after another are the caps' plain layout.  Each begins on a page. */
GstBuffer *picture_new_planes (const GstVideoInfo * info, gboolean video_meta);

/* The output is what `kernel` with `params` ("sigma=3" or NULL) makes of the input.  Planes are
 * found by GstVideoMeta where the buffer has one. */
void picture_check (const GstVideoInfo * info, const gchar * kernel, const gchar * params,
    GstBuffer * input, GstBuffer * output);

/* As picture_check for copy, without any code of the kernels: the samples are the same. */
void picture_check_equal (const GstVideoInfo * info, GstBuffer * input, GstBuffer * output);

#endif
