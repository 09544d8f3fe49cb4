/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What checkkernels' files share: pictures with canaries, the naive models, trials of a kernel, and the
 * device.  Knows the kernels' contract and, through cuda_dl.h, the driver; nothing of GStreamer. */
#ifndef CHECK_H
#define CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/cuda_dl.h"
#include "kernels/format.h"

/* ---- random numbers: the same sequence from the same seed everywhere ------------------------- */

void check_seed (uint64_t seed);
uint32_t check_random (void);
/* low .. high, both included */
int check_random_in (int low, int high);
double check_now (void);        /* seconds */

#define CHECK_COUNT(array) ((int) (sizeof (array) / sizeof (array)[0]))

/* Prints and ends the program with 1. */
void check_fail (const char *format, ...) __attribute__ ((noreturn, format (printf, 1, 2)));

#define CHECK_EXPECT(condition) \
  do { \
    if (!(condition)) \
      check_fail ("%s:%d: %s", __FILE__, __LINE__, #condition); \
  } while (0)

/* ---- pictures -------------------------------------------------------------------------------- */

/* A picture whose rows lie apart in one block of random bytes, so that a byte written beside a row
 * shows. */
typedef struct canvas
{
  csfk_image image;
  unsigned char *memory;
  size_t size;
} canvas;

/* align: 1, 2, 4, 8 or 16: what every data pointer and stride is a multiple of, and of no more.  The
 * colorimetry is random, among what the format can have. */
void picture_init (canvas * picture, int format, int width, int height, int align);
/* With the format, size and colorimetry of `like`. */
void picture_init_like (canvas * picture, const csfk_image * like, int align);
/* Makes it what a camera might give after `previous`, which has the same format and size: the same with
 * a little noise, with parts that have changed, or quite the same. */
void picture_follow (canvas * picture, const canvas * previous);
/* Changes every byte of the rows. */
void picture_invert (canvas * picture);
void picture_copy (canvas * to, const canvas * from);
void picture_finish (canvas * picture);
/* The pictures have the same layout.  True when all bytes outside the rows are the same. */
bool picture_same_outside (const canvas * a, const canvas * b);

/* Its format, size and colorimetry alone, as state_size() and the like are given it. */
csfk_image image_strip (const csfk_image * image);
/* What the kernel asks for, 0 where it asks for none. */
size_t get_state_size (const csfk_kernel * kernel, const csfk_image * in, const csfk_image * out);
size_t get_workspace_size (const csfk_kernel * kernel, const csfk_image * in, const csfk_image * out);

/* Memory with canaries before and after, and more than 16 bytes of alignment nowhere.  Its data are
 * NULL when its size is 0. */
typedef struct guarded_block
{
  unsigned char *data;          /* size bytes, GUARD_BYTES into memory */
  size_t size;
  unsigned char *memory;
  size_t memory_size;
  void *allocated;
} guarded_block;

enum
{
  GUARD_BYTES = 256
};

void block_init (guarded_block * block, size_t size);   /* of random bytes */
void block_randomise (guarded_block * block);
void block_finish (guarded_block * block);
/* Of the block's memory, or of what became of a copy of it. */
bool block_is_intact (const guarded_block * block, const unsigned char *memory);

/* ---- records ------------------------------------------------------------------------------- */

/* Memory that a pass appends to, of random bytes and with canaries round it. */
typedef struct record_room
{
  guarded_block block;          /* of `capacity` records, of one that must stay what it is when that is 0 */
  unsigned char *before;        /* the block's data */
  unsigned capacity, record_size;
} record_room;

void room_init (record_room * room, const csfk_kernel * kernel, unsigned capacity);
void room_finish (record_room * room);
/* What a pass did wrong that counted `count` records and should have counted `expected`, or NULL.  memory:
 * the block's, or a copy of what became of it. */
const char *room_check (const record_room * room, const unsigned char *memory, unsigned count,
    unsigned expected);

/* Some records in the order of their bytes. */
typedef struct record_set
{
  unsigned char *data;
  unsigned n, record_size;
} record_set;

/* Copies n records; record_size and n may be 0. */
void records_init (record_set * set, unsigned record_size, const unsigned char *data, unsigned n);
/* After something was written to its data. */
void records_sort (record_set * set);
void records_finish (record_set * set);
/* Each of `some` is in `all`, one that is there twice, twice.  why: text about the first that is not. */
bool records_are_among (const record_set * some, const record_set * all, char *why, size_t why_size);
bool records_are_same (const record_set * got, const record_set * expected, char *why,
    size_t why_size);

/* ---- models ---------------------------------------------------------------------------------- */

typedef enum component_kind
{
  COMPONENT_LUMA = 0,
  COMPONENT_CHROMA,
  COMPONENT_RED,
  COMPONENT_GREEN,
  COMPONENT_BLUE,
  COMPONENT_ALPHA,
  COMPONENT_UNUSED
} component_kind;

/* Where the samples of one component lie. */
typedef struct channel
{
  component_kind kind;
  int plane, offset, pitch;
  int shift_x, shift_y;
} channel;

int model_get_components (int format, const channel ** components);
/* Samples in a row and rows of the output, padding included. */
int model_get_columns (const csfk_image * image, const channel * component);
int model_get_rows (const csfk_image * image, const channel * component);
/* The bytes of a sample as a number; P010: all 16 bits. */
int model_get_raw (const csfk_image * image, const channel * component, int x, int y);

/* What checkkernels knows of a kernel, in model_NAME.c: how to try it, and what it must give.  A model
 * works everything out from the kernel's definition, one sample at a time, and shares nothing with
 * kernels/ but the parameter structure. */
#define CHECK_MAX_REGIONS 12
#define CHECK_MAX_OUTPUTS 256

typedef struct kernel_model
{
  const char *kernel;
  int model_tolerance;          /* steps of a sample that the C path may be off from the model */
  int device_tolerance;         /* and the GPU from the C path */
  int n_frames;                 /* of a sequence with one state; 0: 1 */

  /* Optional: the output for this input; each `choice` from 0 on is tried, until it returns false.
   * Without it the output is what the input is. */
  bool (*choose_output) (const csfk_image * in, int choice, csfk_image * out);

  /* Optional: fills regions for this picture and returns their number, up to CHECK_MAX_REGIONS. */
  int (*choose_regions) (const csfk_image * in, csfk_region * regions);

  /* Optional: called for each frame of a sequence in its order before its samples are asked for.
   * *memory is NULL at the sequence's first frame, and freed with free() after its last. */
  void (*prepare) (const csfk_frame * frame, const void *params, void **memory);

  /* What the kernel must write at a place of the output, as model_get_raw would read it. */
  int (*sample) (const csfk_frame * frame, const void *params, void *memory,
      const channel * component, int x, int y);

  /* For a kernel with records: writes those it must append for this frame, in any order and at most `room`,
   * and returns how many there are.  Compared as a set, byte for byte. */
  unsigned (*records) (const csfk_frame * frame, const void *params, void *memory, void *records,
      unsigned room);
} kernel_model;

extern const kernel_model *const kernel_models[];       /* ended by NULL */
/* NULL when there is none. */
const kernel_model *model_find (const char *kernel);

/* The output that the model chooses, without memory, checked against what the kernel says of itself. */
csfk_image model_choose_output (const csfk_kernel * kernel, const kernel_model * model,
    const csfk_image * in, int choice);
/* From 1 to CHECK_MAX_OUTPUTS. */
int model_count_outputs (const kernel_model * model, const csfk_image * in);
/* For a frame of this kernel; regions: CHECK_MAX_REGIONS of them.  Sometimes none. */
int model_choose_regions (const csfk_kernel * kernel, const kernel_model * model,
    const csfk_image * in, csfk_region * regions);

/* For models: a sample's value, P010's without its empty bits, its place moved inside the visible
 * picture; and the raw form of such a value. */
int model_get_sample (const csfk_image * image, const channel * component, int x, int y);
int model_to_raw (const csfk_image * image, int value);

/* ---- trials ---------------------------------------------------------------------------------- */

/* A kernel on a sequence of frames. */
typedef struct kernel_trial
{
  const csfk_kernel *kernel;
  const kernel_model *model;
  int format, width, height;    /* of the input */
  int out_choice;               /* for choose_output */
  int alignment;                /* of the first frame, from 0 to TRIAL_ALIGNMENTS - 1 */
  unsigned char params[CSFK_MAX_PARAMS] __attribute__ ((aligned (8)));  /* resolved */
  uint64_t seed;                /* for messages */
} kernel_trial;

enum
{
  TRIAL_ALIGNMENTS = 5
};

typedef struct tally
{
  unsigned frames, samples, device_frames, records;
} tally;

typedef struct gpu gpu;

/* Without a device: the C path against the model.  With: the device against the C path. */
void trial_run (gpu * device, const kernel_trial * trial, tally * totals);
/* process() is called from several threads at once, on different frames. */
void trial_run_threads (const kernel_trial * trial);
/* What enqueue() launches, by a launcher that only looks. */
void trial_check_launches (const kernel_trial * trial);

/* ---- device ---------------------------------------------------------------------------------- */

enum
{
  DEVICE_STREAMS = 3
};

/* NULL when there is no driver or GPU; why: what is missing. */
gpu *device_open (char *why, size_t why_size);
void device_close (gpu * device);
const char *device_get_name (const gpu * device);
int device_get_driver_version (const gpu * device);

/* False: the driver takes none of this build's device code (built without nvcc). */
bool device_load (gpu * device, const csfk_kernel * kernel);
cu_deviceptr device_alloc (gpu * device, size_t size);
void device_free (gpu * device, cu_deviceptr memory);

/* Which of the DEVICE_STREAMS the calls below use; 0 at first. */
void device_use_stream (gpu * device, int stream);
/* The stream in use goes on when what was given to `stream` so far is done. */
void device_wait_for (gpu * device, int stream);
/* Blocks until all streams have run dry. */
void device_finish (gpu * device);

/* Both of these block. */
void device_upload (gpu * device, cu_deviceptr to, const void *from, size_t size);
void device_download (gpu * device, void *to, cu_deviceptr from, size_t size);
/* None of these does; `from` of the first stays until device_finish(). */
void device_send (gpu * device, cu_deviceptr to, const void *from, size_t size);
void device_copy (gpu * device, cu_deviceptr to, cu_deviceptr from, size_t size);
void device_clear (gpu * device, cu_deviceptr memory, size_t size);
/* The loaded kernel, on a frame whose pointers are the device's; regions: the same in host memory. */
void device_enqueue (gpu * device, const csfk_kernel * kernel, const csfk_frame * frame,
    const void *params, const csfk_region * regions);
/* The pass that appends its records, on a frame that was enqueued; clears the counter first. */
void device_emit (gpu * device, const csfk_kernel * kernel, const csfk_frame * frame,
    const void *params, const csfk_region * regions);

/* Milliseconds of device time from stream 0's place now until all streams have done what `work`, called
 * once, gives them; none begins before. */
double device_time (gpu * device, void (*work) (void *data), void *data);

/* ---- parts ----------------------------------------------------------------------------------- */

void check_helpers (void);
/* More that gaussianblur alone promises. */
void check_gaussian (void);
/* convertscale against the same. */
void check_convertscale (void);
/* Proves on a kernel made for it that faults are found, of the C path or, with the fake driver, of what is
 * behind a launch.  run: checks a kernel, on a device unless that is NULL. */
typedef void (*harness_run) (gpu * device, const csfk_kernel * kernel, const kernel_model * model);
void check_harness (bool on_device, harness_run run);
void bench_run (gpu * device, const csfk_kernel * only, const char *json_path);

#endif
