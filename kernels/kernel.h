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
#define CSFK_ABI 3

#define CSFK_MAX_PLANES 3
#define CSFK_MAX_FORMATS 16
/* Bytes a kernel's parameter structure may have: the engine keeps a copy of it in every slot, and with
 * the frame before it it must fit into the 4 KiB that a launch can carry. */
#define CSFK_MAX_PARAMS 3072
#define CSFK_LABEL_BYTES 32

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

/* Where the chroma samples of a subsampled format lie, from the caps' chroma-site. */
typedef enum csfk_chroma_site
{
  CSFK_CHROMA_SITE_CENTER = 0,  /* between the luma samples both ways (JPEG, MPEG-1) */
  CSFK_CHROMA_SITE_LEFT,        /* on the left column, between the rows (MPEG-2, H.264) */
  CSFK_CHROMA_SITE_TOP_LEFT     /* on the top left sample */
} csfk_chroma_site;

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
  int chroma_site;              /* csfk_chroma_site */
} csfk_image;

/* A part of the input picture that someone upstream has marked: a face, a number plate. */
typedef struct csfk_region
{
  int x, y, width, height;      /* pixels; may reach beyond the picture, may be empty */
  float confidence;             /* 0 to 1, below 0: not known */
  int id, parent_id, track_id;  /* below 0: none */
  char label[CSFK_LABEL_BYTES]; /* UTF-8, ended by 0, "" where there is none */
} csfk_region;

/* ---- records: what a kernel finds ---------------------------------------------------------------- */

typedef enum csfk_record_kind
{
  CSFK_RECORD_OTHER = 0,        /* a structure of the kernel's own */
  CSFK_RECORD_OBJECT,           /* csfk_object */
  CSFK_RECORD_POINT             /* csfk_point */
} csfk_record_kind;

/* Something with a place: places are pixels of the input. */
typedef struct csfk_object
{
  float x, y, width, height;
  float confidence;             /* 0 to 1, below 0: not known */
  int label;                    /* index of the kernel's labels, below 0: none */
  int track_id;                 /* below 0: none */
  float score;                  /* of the kernel's own scale, such as an area */
} csfk_object;

typedef struct csfk_point
{
  float x, y;                   /* pixels of the input */
  float score;
  int level;                    /* of a pyramid, 0: the picture itself */
} csfk_point;

/* Where a frame's records go: append with csfk_append only. */
typedef struct csfk_records
{
  unsigned char *data;          /* room for `capacity` of them; NULL where the kernel has no records */
  unsigned *count;              /* how many were appended, and how many more found no room */
  unsigned capacity;
  unsigned record_size;         /* bytes, a multiple of 4 */
} csfk_records;

/* The place of one more record, or NULL when there is no room: the count tells, and the pass that appends
 * is run once more with room for all.  On the device any thread may call it; the order is by chance. */
#if defined (__CUDACC__) || defined (__CUDACC_RTC__)
__device__ __forceinline__ void *
csfk_append (const csfk_records *records)
{
  unsigned at = atomicAdd (records->count, 1u);

  return at < records->capacity ? records->data + (unsigned long long) at * records->record_size : 0;
}
#elif !defined (__cplusplus)
static inline void *
csfk_append (const csfk_records *records)
{
  unsigned at = (*records->count)++;

  return at < records->capacity ? records->data + (unsigned long long) at * records->record_size : 0;
}
#endif

/* What a kernel works on.  `in` is never written.  All pointers are device addresses where enqueue() or
 * a device function reads them, and host addresses in process(). */
typedef struct csfk_frame
{
  csfk_image in;
  csfk_image out;
  void *state;                  /* state_size() bytes that go from frame to frame; NULL: stateless */
  void *workspace;              /* workspace_size() bytes for this frame alone, content undefined, or NULL */
  const csfk_region *regions;   /* n_regions of them, in the order upstream attached them */
  int n_regions;                /* 0 without CSFK_READS_REGIONS */
  unsigned state_frames;        /* frames the state has seen; 0: it is new, and all zero */
  csfk_records records;
  void *instance;               /* what open() made, for host code only; NULL without open() */
} csfk_frame;

/* The argument of every device function of this project, by value, is a structure that begins with the
 * csfk_frame and goes on with the kernel's parameter structure, if it has one. */

typedef struct csfk_dim
{
  unsigned x, y, z;
} csfk_dim;

/* Given to enqueue().  launch: launches `symbol` of the kernel's device code on the frame's stream.
 * args: one structure, copied before the call returns.  shared_bytes: dynamic shared memory.
 * Returns 0, or nonzero when the launch failed; enqueue() then returns that value at once. */
typedef struct csfk_launcher csfk_launcher;
struct csfk_launcher
{
  int (*launch) (csfk_launcher * launcher, const char *symbol, csfk_dim grid, csfk_dim block,
      unsigned shared_bytes, const void *args, unsigned args_size);
  void *stream;                 /* CUstream of the frame, for code that launches by itself; its context is
                                 * current.  Such code must not wait for it. */
  const csfk_region *regions;   /* the frame's regions in host memory, until enqueue() returns */
};

typedef enum csfk_type
{
  CSFK_TYPE_INT = 0,            /* int */
  CSFK_TYPE_FLOAT,              /* float */
  CSFK_TYPE_BOOL,               /* int, 0 or 1 */
  CSFK_TYPE_UINT,               /* unsigned, such as a colour 0xAARRGGBB */
  CSFK_TYPE_ENUM,               /* int, the index of a name in `values` */
  CSFK_TYPE_STRING              /* char[maximum], ended by 0 */
} csfk_type;

/* A typed parameter: a field of the kernel's parameter structure that a user sets by name. */
typedef struct csfk_param
{
  const char *name;
  int type;                     /* csfk_type */
  unsigned offset;              /* of the field in the parameter structure, bytes */
  double minimum, maximum, default_value;       /* not of ENUM; STRING: only maximum; it begins empty */
  const char *unit;             /* "" where there is none */
  const char *description;
  const char *const *values;    /* ENUM: names of 0, 1 and so on, ended by NULL */
} csfk_param;

/* Device code (fatbin, cubin or PTX, the last ended by 0); size 0 in a build without nvcc. */
typedef struct csfk_blob
{
  const unsigned char *data;
  unsigned long size;
  int toolkit;                  /* CUDA version that compiled it, 13000 for 13.0; 0: not known */
} csfk_blob;

enum
{
  CSFK_READS_REGIONS = 1,       /* frames come with the regions that upstream attached */
  CSFK_RESIZES = 2              /* the output may have any size, whatever the input has */
};

typedef struct csfk_kernel csfk_kernel;

/* A kernel: one entry of the table.  What is optional is 0. */
struct csfk_kernel
{
  unsigned abi;                 /* CSFK_ABI */
  unsigned flags;
  const char *name;
  const char *description;      /* one line */
  int formats[CSFK_MAX_FORMATS];        /* csfk_format, ended by CSFK_FORMAT_NONE unless full */
  /* What the output may be, whichever of `formats` the input is; empty: what the input is. */
  int out_formats[CSFK_MAX_FORMATS];
  const csfk_param *params;     /* n_params of them; may be NULL when 0 */
  unsigned n_params;
  unsigned params_size;         /* of the parameter structure, at most CSFK_MAX_PARAMS, may be 0 */

  /* Optional: bytes of state that go from one frame to the next, and of memory that a frame has for
   * itself; of pictures of these formats and sizes, whatever their strides.  Both are aligned to 16 bytes.
   * A kernel with state sees the frames one after another in their order, and its state is zeroed at a
   * flush, a discontinuity and new caps. */
  unsigned long (*state_size) (const csfk_kernel * kernel, const csfk_image * in,
      const csfk_image * out);
  unsigned long (*workspace_size) (const csfk_kernel * kernel, const csfk_image * in,
      const csfk_image * out);

  /* Optional: makes what lasts longer than a frame, such as a library's handle or a loaded model, for
   * frames like these.  On CUDA the device's context is current.  Returns 0; or not, with a reason for
   * the user, ended by 0, within reason_size bytes. */
  int (*open) (const csfk_kernel * kernel, const csfk_image * in, const csfk_image * out, void **instance,
      char *reason, unsigned reason_size);
  void (*close) (void *instance);       /* no frame is under way any more */

  /* Optional.  Derives the fields that are not user parameters (such as filter weights) from those that
   * are.  Called on the host whenever a parameter was set, never while a frame uses this copy. */
  void (*resolve) (void *params);

  /* The CPU path and the reference.  Called from several threads at once, on different frames, unless
   * there is state.  NULL: there is none. */
  void (*process) (const csfk_frame * frame, const void *params);

  /* The CUDA path: launches device functions.  Must not block or allocate.  params is a host pointer.
   * Returns 0 or what launch() returned.  NULL: there is none. */
  int (*enqueue) (const csfk_frame * frame, const void *params, csfk_launcher * launcher);

  /* Optional: the records this kernel appends.  The pass that appends comes after process() or enqueue(),
   * and once more, with the count at 0, when there was no room for all.  So it reads only what belongs to
   * the frame: in, out, workspace, regions and parameters, not the state; it writes the workspace and
   * nothing else, since `out` is on its way to the host meanwhile.  collect() is the C path's, emit()
   * launches on the device as enqueue() does. */
  unsigned record_size;         /* bytes, a multiple of 4; 0: no records */
  int record_kind;              /* csfk_record_kind */
  const char *record_name;      /* such as "moving-region" */
  const char *const *labels;    /* what csfk_object.label counts, ended by NULL; or NULL */
  void (*collect) (const csfk_frame * frame, const void *params);
  int (*emit) (const csfk_frame * frame, const void *params, csfk_launcher * launcher);

  const csfk_blob *device_code; /* what launch() finds its symbols in; NULL for code that needs none */
};

/* ---- kernels from outside ---------------------------------------------------------------------- */

/* A shared library of kernels exports one of these, named csfk_library. */
typedef struct csfk_library_table
{
  unsigned abi;                 /* CSFK_ABI that the library was compiled with: read before all else */
  const csfk_kernel *const *kernels;    /* ended by NULL */
} csfk_library_table;

/* What a device module says of its function NAME, in a variable csfk_desc_NAME:
 *
 *   extern "C" __device__ csfk_desc csfk_desc_NAME = { CSFK_ABI, ... };
 *
 * Without one, NAME takes all formats, has no parameters, and runs once for every pixel of the output in
 * blocks of 16 x 16.  A function whose structure argument has parameters after the frame declares them
 * here; they lie at their offsets from the first byte after the frame. */
#define CSFK_MAX_DESC_PARAMS 16
#define CSFK_MAX_DESC_LABELS 16

typedef struct csfk_desc_param
{
  char name[CSFK_LABEL_BYTES];
  char unit[16];
  char description[80];
  double minimum, maximum, default_value;
  int type;                     /* csfk_type, but ENUM and STRING */
  unsigned offset;              /* bytes after the frame */
} csfk_desc_param;

typedef struct csfk_desc
{
  unsigned abi;                 /* CSFK_ABI */
  unsigned flags;
  char description[128];
  int formats[CSFK_MAX_FORMATS];        /* empty: all */
  int out_formats[CSFK_MAX_FORMATS];
  unsigned block_x, block_y;    /* threads of a block; 0: 16 */
  unsigned pixels_x, pixels_y;  /* of the output that one thread makes; 0: 1 */
  unsigned state_bytes_per_pixel;       /* of the input; the state is that times width times height */
  unsigned params_size;         /* bytes after the frame */
  unsigned n_params;
  csfk_desc_param params[CSFK_MAX_DESC_PARAMS];
  /* Records: the function NAME_emit appends them.  It is launched after NAME, over the same pixels and with
   * the same structure, and once more when there was no room for all.  It must not write `out`, which is on
   * its way to the host meanwhile. */
  unsigned record_size;         /* bytes, a multiple of 4; 0: no records and no NAME_emit */
  int record_kind;              /* csfk_record_kind */
  char record_name[CSFK_LABEL_BYTES];   /* "": NAME */
  char labels[CSFK_MAX_DESC_LABELS][CSFK_LABEL_BYTES];  /* what csfk_object.label counts, up to the first "" */
} csfk_desc;

#ifdef __cplusplus
}
#endif
#endif
