/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A library of kernels as a user would write one, for test_userkernels.c: knows the installed header and
 * libc, and the driver by one function. */
#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

#include "kernels/kernel.h"

#ifndef LIBRARY_ABI
#define LIBRARY_ABI CSFK_ABI
#endif

#define GRAY { CSFK_FORMAT_GRAY8 }

static void
fill_rows (const csfk_image *out, int x, int y, int width, int height, int value)
{
  const csfk_plane *plane = &out->plane[0];

  for (int row = y < 0 ? 0 : y; row < y + height && row < plane->rows; row++)
    for (int at = x < 0 ? 0 : x; at < x + width && at < plane->row_bytes; at++)
      plane->data[row * plane->stride + at] = (unsigned char) value;
}

static void
fill (const csfk_frame *frame, int value)
{
  fill_rows (&frame->out, 0, 0, frame->out.width, frame->out.height, value);
}

static int
launch (csfk_launcher *launcher, const char *symbol, const void *args, unsigned size)
{
  return launcher->launch (launcher, symbol, (csfk_dim) {1, 1, 1}, (csfk_dim) {32, 1, 1}, 0, args, size);
}

/* For functions that take the frame and nothing else. */
#define ENQUEUE(name) \
  static int \
  name##_enqueue (const csfk_frame *frame, const void *params, csfk_launcher *launcher) \
  { \
    (void) params; \
    return launch (launcher, "csfk_" #name, frame, sizeof *frame); \
  }

static const unsigned char no_code[] = "no device code: for a fake driver";
static const csfk_blob blob = { no_code, sizeof no_code, 0 };

/* ---- fill: all pixels get a value; on CUDA the driver's own set does it, on the frame's stream ---- */

typedef struct fill_params
{
  int value;
} fill_params;

static const csfk_param fill_params_of[] = {
  {"value", CSFK_TYPE_INT, offsetof (fill_params, value), 0, 255, 7, "", "What each pixel becomes", NULL},
};

static void
fill_process (const csfk_frame *frame, const void *params)
{
  fill (frame, ((const fill_params *) params)->value);
}

static int
fill_enqueue (const csfk_frame *frame, const void *params, csfk_launcher *launcher)
{
  const csfk_plane *out = &frame->out.plane[0];
  int (*set) (unsigned long long, unsigned char, size_t, void *);
  void *driver = dlopen ("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);

  *(void **) &set = driver == NULL ? NULL : dlsym (driver, "cuMemsetD8Async");
  for (int y = 0; set != NULL && y < out->rows; y++) {
    int code = set ((unsigned long long) (size_t) (out->data + y * out->stride),
        (unsigned char) ((const fill_params *) params)->value, (size_t) out->row_bytes,
        launcher->stream);

    if (code != 0)
      return code;
  }
  return set == NULL;
}

static const csfk_kernel fill_kernel = {
  .abi = CSFK_ABI,
  .name = "fill",
  .description = "Every pixel gets one value",
  .formats = GRAY,
  .params = fill_params_of,
  .n_params = 1,
  .params_size = sizeof (fill_params),
  .process = fill_process,
  .enqueue = fill_enqueue,
};

/* ---- count: the number of frames that the state has seen ---------------------------------------- */

static unsigned long
count_state (const csfk_kernel *kernel, const csfk_image *in, const csfk_image *out)
{
  (void) kernel, (void) in, (void) out;
  return sizeof (int);
}

static void
count_process (const csfk_frame *frame, const void *params)
{
  int *count = frame->state;

  (void) params;
  fill (frame, (*count)++);
}

ENQUEUE (count)

static const csfk_kernel count_kernel = {
  .abi = CSFK_ABI,
  .name = "count",
  .description = "Every pixel is the number of frames before",
  .formats = GRAY,
  .state_size = count_state,
  .process = count_process,
  .enqueue = count_enqueue,
  .device_code = &blob,
};

/* ---- boxes: regions filled with their label's first letter -------------------------------------- */

static void
boxes_process (const csfk_frame *frame, const void *params)
{
  (void) params;
  fill (frame, frame->n_regions);
  for (int i = 0; i < frame->n_regions; i++) {
    const csfk_region *region = &frame->regions[i];

    fill_rows (&frame->out, region->x, region->y, region->width, region->height,
        (unsigned char) region->label[0]);
    if (region->confidence >= 0)
      fill_rows (&frame->out, region->x, region->y, 1, 1, (int) (region->confidence * 100 + 0.5f));
  }
}

ENQUEUE (boxes)

static const csfk_kernel boxes_kernel = {
  .abi = CSFK_ABI,
  .flags = CSFK_READS_REGIONS,
  .name = "boxes",
  .description = "Fills regions",
  .formats = GRAY,
  .process = boxes_process,
  .enqueue = boxes_enqueue,
  .device_code = &blob,
};

/* ---- half: any size; every output pixel is the output's width ----------------------------------- */

static void
size_process (const csfk_frame *frame, const void *params)
{
  (void) params;
  fill (frame, frame->out.width);
}

ENQUEUE (size)

static const csfk_kernel size_kernel = {
  .abi = CSFK_ABI,
  .flags = CSFK_RESIZES,
  .name = "size",
  .description = "Every pixel is the picture's width",
  .formats = { CSFK_FORMAT_GRAY8, CSFK_FORMAT_NV12, CSFK_FORMAT_RGB },
  .out_formats = GRAY,
  .process = size_process,
  .enqueue = size_enqueue,
  .device_code = &blob,
};

/* ---- find: as many objects as the picture's first two bytes say, in a row, each 4 x 4 ----------- */

static void
find_process (const csfk_frame *frame, const void *params)
{
  (void) params;
  fill (frame, 0);
}

static void
find_collect (const csfk_frame *frame, const void *params)
{
  const unsigned char *head = frame->in.plane[0].data;
  int n = head[0] + 256 * head[1], kind = head[2];

  (void) params;
  for (int i = 0; i < n; i++) {
    csfk_object *object = csfk_append (&frame->records);

    if (object == NULL)
      continue;
    *object = (csfk_object) {
      .x = (float) (i % 500 * 8 + head[3]),
      .y = (float) (i / 500 * 8),
      .width = 4,
      .height = 4,
      .confidence = 0.25f,
      .label = i % 3,
      .track_id = -1,
      .score = (float) i,
    };
    if (kind == 2) {
      object->x = 100.1f;
      object->y = 50.3f;
      object->height = 9.9f;
    }
    /* Some that cannot be. */
    if (kind == 1 && i == 0)
      object->x = __builtin_nanf ("");
    if (kind == 1 && i == 1)
      object->x = -2;
    if (kind == 1 && i == 2)
      object->y = 1e9f;
    if (kind == 1 && i == 3)
      object->width = __builtin_inff ();
  }
}

static int
find_emit (const csfk_frame *frame, const void *params, csfk_launcher *launcher)
{
  (void) params;
  return launch (launcher, "csfk_find_emit", frame, sizeof *frame);
}

ENQUEUE (find)

static const char *const find_labels[] = { "cat", "dog", NULL };

static const csfk_kernel find_kernel = {
  .abi = CSFK_ABI,
  .name = "find",
  .description = "Finds what the picture says",
  .formats = GRAY,
  .process = find_process,
  .enqueue = find_enqueue,
  .record_size = sizeof (csfk_object),
  .record_kind = CSFK_RECORD_OBJECT,
  .record_name = "animal",
  .labels = find_labels,
  .collect = find_collect,
  .emit = find_emit,
  .device_code = &blob,
};

/* ---- one for each side, and one that cannot be opened ------------------------------------------- */

static const csfk_kernel cpu_kernel = {
  .abi = CSFK_ABI,
  .name = "cpuonly",
  .description = "Has no CUDA function",
  .formats = GRAY,
  .process = size_process,
};

static const csfk_kernel gpu_kernel = {
  .abi = CSFK_ABI,
  .name = "gpuonly",
  .description = "Has no C function",
  .formats = GRAY,
  .enqueue = size_enqueue,
  .device_code = &blob,
};

static int
refuse (const csfk_kernel *kernel, const csfk_image *in, const csfk_image *out, void **instance,
    char *reason, unsigned reason_size)
{
  (void) kernel, (void) in, (void) out, (void) instance;
  strncpy (reason, "the model file is not there", reason_size - 1);
  return 1;
}

static const csfk_kernel closed_kernel = {
  .abi = CSFK_ABI,
  .name = "closed",
  .description = "Cannot be opened",
  .formats = GRAY,
  .open = refuse,
  .process = size_process,
  .enqueue = size_enqueue,
  .device_code = &blob,
};

static const csfk_kernel unsound_kernel = {
  .abi = CSFK_ABI,
  .name = "unsound",
  .description = "Names a format that does not exist",
  .formats = { CSFK_N_FORMATS },
  .process = size_process,
};

static const csfk_kernel *const kernels[] = {
  &fill_kernel, &count_kernel, &boxes_kernel, &size_kernel, &cpu_kernel, &gpu_kernel,
  &closed_kernel, &unsound_kernel, &find_kernel, NULL
};

#ifndef NO_TABLE
__attribute__ ((visibility ("default")))
extern const csfk_library_table csfk_library;
const csfk_library_table csfk_library = { LIBRARY_ABI, kernels };
#else
__attribute__ ((visibility ("default")))
extern const csfk_kernel *const *not_a_table;
const csfk_kernel *const *not_a_table = kernels;
#endif
