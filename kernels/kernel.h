/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The kernel contract: what runs on a frame and what it is given.  Valid as C11 and as CUDA C++ (also
 * under NVRTC, so no header is included and only built-in types are used).  Knows no GStreamer, no
 * driver and no engine. */
#ifndef CSFK_KERNEL_H
#define CSFK_KERNEL_H

#ifdef __cplusplus
extern "C" {
#endif

/* Raised whenever a structure below changes its layout or meaning. */
#define CSFK_ABI 1

#define CSFK_MAX_PLANES 3
#define CSFK_MAX_FORMATS 16
/* Bytes a kernel's parameter structure may have: the engine keeps a copy of it in every slot. */
#define CSFK_MAX_PARAMS 512

/* Pixel formats.  Names and memory layouts are those of GStreamer's GstVideoFormat. */
typedef enum csfk_format
{
  CSFK_FORMAT_NONE = 0,
  CSFK_FORMAT_GRAY8,
  CSFK_FORMAT_NV12,
  CSFK_FORMAT_I420,
  CSFK_FORMAT_YUY2,
  CSFK_FORMAT_UYVY,
  CSFK_FORMAT_P010_10LE,
  CSFK_FORMAT_RGB,
  CSFK_FORMAT_BGR,
  CSFK_FORMAT_RGBx,
  CSFK_FORMAT_BGRx,
  CSFK_FORMAT_RGBA,
  CSFK_FORMAT_BGRA,
  CSFK_N_FORMATS
} csfk_format;

/* Nominal range of the samples, from the caps' colorimetry. */
typedef enum csfk_range
{
  CSFK_RANGE_FULL = 0,          /* 0..255 */
  CSFK_RANGE_LIMITED            /* luma 16..235, chroma 16..240; scaled by 4 for 10 bits */
} csfk_range;

/* Luma coefficients of the Y'CbCr formats, from the caps' colorimetry. */
typedef enum csfk_matrix
{
  CSFK_MATRIX_RGB = 0,          /* the samples are R'G'B' (or grey) */
  CSFK_MATRIX_BT601,
  CSFK_MATRIX_BT709,
  CSFK_MATRIX_BT2020
} csfk_matrix;

/* One plane.  Bytes between row_bytes and stride belong to whoever owns the buffer: never written. */
typedef struct csfk_plane
{
  unsigned char *data;          /* first byte of the first row */
  int stride;                   /* bytes from one row to the next, at least row_bytes */
  int row_bytes;                /* bytes of a row that hold samples */
  int rows;
} csfk_plane;

/* One picture, in host or in device memory.  Chroma planes of odd-sized pictures are rounded up, as
 * GStreamer does; YUY2 and UYVY rows hold whole pairs of pixels. */
typedef struct csfk_image
{
  csfk_plane plane[CSFK_MAX_PLANES];
  int n_planes;
  int format;                   /* csfk_format */
  int width, height;            /* pixels */
  int range;                    /* csfk_range */
  int matrix;                   /* csfk_matrix */
} csfk_image;

/* What a kernel works on.  `in` is never written.  All pointers are device pointers for enqueue() and
 * host pointers for process().  `params` is always a host pointer to params_size bytes, resolved. */
typedef struct csfk_frame
{
  csfk_image in;
  csfk_image out;
  const void *params;
} csfk_frame;

/* The argument every device function of this project takes, by value, is a structure that begins with
 * these two images and goes on with the kernel's parameter structure. */
typedef struct csfk_images
{
  csfk_image in;
  csfk_image out;
} csfk_images;

typedef struct csfk_dim
{
  unsigned x, y, z;
} csfk_dim;

/* Given to enqueue(): launches `symbol` of the kernel's device code on the frame's stream.
 * args: one structure, copied before the call returns.  shared_bytes: dynamic shared memory.
 * Returns 0, or nonzero when the launch failed; enqueue() then returns that value at once. */
typedef struct csfk_launcher csfk_launcher;
struct csfk_launcher
{
  int (*launch) (csfk_launcher * launcher, const char *symbol, csfk_dim grid, csfk_dim block,
      unsigned shared_bytes, const void *args, unsigned args_size);
};

typedef enum csfk_type
{
  CSFK_TYPE_INT = 0,            /* int */
  CSFK_TYPE_FLOAT,              /* float */
  CSFK_TYPE_BOOL                /* int, 0 or 1 */
} csfk_type;

/* A typed parameter: a field of the kernel's parameter structure that a user sets by name. */
typedef struct csfk_param
{
  const char *name;
  int type;                     /* csfk_type */
  unsigned offset;              /* of the field in the parameter structure, bytes */
  double minimum, maximum, default_value;
  const char *unit;             /* "" where there is none */
  const char *description;
} csfk_param;

/* Device code as nvcc wrote it (fatbin); size 0 in a build without nvcc. */
typedef struct csfk_blob
{
  const unsigned char *data;
  unsigned long size;
} csfk_blob;

/* A kernel: one entry of the table. */
typedef struct csfk_kernel
{
  unsigned abi;                 /* CSFK_ABI */
  const char *name;
  const char *description;      /* one line */
  int formats[CSFK_MAX_FORMATS];        /* csfk_format, ended by CSFK_FORMAT_NONE */
  const csfk_param *params;     /* n_params of them; may be NULL when 0 */
  unsigned n_params;
  unsigned params_size;         /* of the parameter structure, at most CSFK_MAX_PARAMS, may be 0 */

  /* Derives the fields that are not user parameters (such as filter weights) from those that are.
   * Called on the host whenever a parameter was set, never while a frame uses this copy.  Optional. */
  void (*resolve) (void *params);

  /* The CPU path and the reference.  Called from several threads at once, on different frames. */
  void (*process) (const csfk_frame * frame);

  /* The CUDA path: launches device functions.  Must not block or allocate.  Returns 0 or what
   * launch() returned. */
  int (*enqueue) (const csfk_frame * frame, csfk_launcher * launcher);
  const csfk_blob *device_code;
} csfk_kernel;

#ifdef __cplusplus
}
#endif
#endif
