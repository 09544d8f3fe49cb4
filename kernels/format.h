/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The pixel formats' facts and the layout of a picture in memory.  Host side only; knows kernel.h and
 * libc, nothing of GStreamer. */
#ifndef CSFK_FORMAT_H
#define CSFK_FORMAT_H

#include <stddef.h>

#include "kernel.h"

typedef struct csfk_format_info
{
  const char *name;             /* GStreamer's name of the format */
  int n_planes;
  int depth;                    /* significant bits of a sample: 8 or 10 */
  int pixel_bytes;              /* of plane 0: bytes from one pixel to the next (2 for YUY2, UYVY) */
  int is_rgb;                   /* R'G'B' samples (GRAY8 is not) */
} csfk_format_info;

/* Never NULL for 0 < format < CSFK_N_FORMATS; NULL otherwise. */
const csfk_format_info *csfk_format_get_info (int format);

/* CSFK_FORMAT_NONE when no format has that name. */
csfk_format csfk_format_from_name (const char *name);

/* One component of a format: sample (x, y) begins offset + x * pitch bytes into row y of its plane, and stands for
 * 1 << shift_x by 1 << shift_y pixels. */
typedef struct csfk_channel
{
  int plane, offset, pitch, shift_x, shift_y;
} csfk_channel;

/* Y Cb Cr, or the bytes of an R'G'B' pixel in their order in memory; the fourth is alpha, where there is one. */
typedef struct csfk_channel_list
{
  int n;
  csfk_channel channel[4];
} csfk_channel_list;

/* Never NULL for 0 < format < CSFK_N_FORMATS; NULL otherwise. */
const csfk_channel_list *csfk_format_get_channels (int format);

/* Copies what a plane shows: in's rows of row_bytes bytes each. */
void csfk_plane_copy (const csfk_plane * out, const csfk_plane * in);

/* Fills format, size and every plane's row_bytes and rows; data and stride are left zero.
 * width and height: at least 1.  Range and matrix are set to the format's usual ones (RGB and GRAY8
 * full, Y'CbCr limited BT.601 with chroma on the left). */
void csfk_image_init (csfk_image * image, int format, int width, int height);

/* Lays the planes out one after another, strides and plane starts rounded up to `align` bytes (a power
 * of two), data pointing into `base`.  Returns the bytes needed; base may be NULL to learn them. */
size_t csfk_image_place (csfk_image * image, unsigned char *base, int align);

/* All built-in kernels, ended by NULL. */
extern const csfk_kernel *const csfk_kernels[];

/* NULL when there is none of that name. */
const csfk_kernel *csfk_kernel_find (const char *name);

/* Writes every parameter's default and resolves.  params: params_size bytes. */
void csfk_params_init (const csfk_kernel * kernel, void *params);

typedef enum csfk_param_result
{
  CSFK_PARAM_OK = 0,
  CSFK_PARAM_UNKNOWN,           /* the kernel has no parameter of that name */
  CSFK_PARAM_OUT_OF_RANGE,      /* or not one of the names, or longer than maximum - 1 bytes */
  CSFK_PARAM_NOT_WHOLE,
  CSFK_PARAM_NOT_A_NUMBER,      /* text is needed */
  CSFK_PARAM_NOT_A_TEXT         /* a number is needed */
} csfk_param_result;

/* Sets one parameter, an ENUM by its index, and does not resolve.  *param (may be NULL): the parameter
 * found, or NULL.  Nothing is changed unless the result is CSFK_PARAM_OK. */
csfk_param_result csfk_params_set (const csfk_kernel * kernel, void *params, const char *name,
    double value, const csfk_param ** param);

/* The same for an ENUM by its name, and for a STRING. */
csfk_param_result csfk_params_set_text (const csfk_kernel * kernel, void *params, const char *name,
    const char *text, const csfk_param ** param);

#endif
