/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What checkkernels' files share: pictures with canaries, the naive models, and the device.
 * Knows the kernels' contracts and, through cuda_dl.h, the driver; nothing of GStreamer. */
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

/* Prints and ends the program with 1. */
void check_fail (const char *format, ...) __attribute__ ((noreturn, format (printf, 1, 2)));

/* ---- pictures -------------------------------------------------------------------------------- */

/* A picture whose rows lie apart in one block of random bytes, so that a byte written beside a row
 * shows. */
typedef struct canvas
{
  csfk_image image;
  unsigned char *memory;
  size_t size;
} canvas;

/* align: 1, 2, 4, 8 or 16: what every data pointer and stride is a multiple of, and of no more. */
void picture_init (canvas * picture, int format, int width, int height, int align);
void picture_copy (canvas * to, const canvas * from);
void picture_finish (canvas * picture);
/* Both have the same layout: true when all bytes outside the rows are the same. */
bool picture_same_outside (const canvas * a, const canvas * b);

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

/* What the kernel must write at a place, raw, worked out for that place alone from the
 * definition. */
typedef int (*model_function) (const csfk_frame * frame, const channel * component, int x, int y);
model_function model_find (const char *kernel);
/* gaussianblur in double precision, with weights straight from the bell curve; not rounded. */
double model_ideal_blur (const csfk_frame * frame, double sigma, const channel * component, int x,
    int y);

/* ---- device ---------------------------------------------------------------------------------- */

typedef struct gpu gpu;

/* NULL when there is no driver or GPU; why: what is missing. */
gpu *device_open (char *why, size_t why_size);
void device_close (gpu * device);
const char *device_get_name (const gpu * device);
int device_get_driver_version (const gpu * device);

/* False: the driver takes none of this build's device code (built without nvcc). */
bool device_load (gpu * device, const csfk_kernel * kernel);
cu_deviceptr device_alloc (gpu * device, size_t size);
void device_free (gpu * device, cu_deviceptr memory);
void device_upload (gpu * device, cu_deviceptr to, const void *from, size_t size);
void device_download (gpu * device, void *to, cu_deviceptr from, size_t size);
void device_copy (gpu * device, cu_deviceptr to, cu_deviceptr from, size_t size);
/* The loaded kernel, on images that point to device memory. */
void device_enqueue (gpu * device, const csfk_kernel * kernel, const csfk_frame * frame);
void device_finish (gpu * device);
/* Milliseconds of device time that `work` takes, called once. */
double device_time (gpu * device, void (*work) (void *data), void *data);

/* ---- parts ----------------------------------------------------------------------------------- */

void check_helpers (void);
void bench_run (gpu * device, const csfk_kernel * only, const char *json_path);

#endif
