/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* An engine with a set of frames to send through it.  Frames carry a pattern of their own, and
 * whatever must not be written is guarded, so that one call tells whether a frame came through
 * right.  Knows csf.h, hostpool.h and the kernel contract. */
#ifndef FIXTURE_H
#define FIXTURE_H

#include "engine/csf.h"
#include "engine/hostpool.h"
#include "harness.h"
#include "kernels/format.h"

/* Parameters of the test kernel: out = in xor key, after a pause. */
typedef struct xor_params
{
  int key;
  int delay_us;
} xor_params;

extern const csfk_kernel xor_kernel;
/* As xor_kernel, but waits for the gate. */
extern const csfk_kernel gated_kernel;

void gate_close (void);
void gate_open (void);
/* Returns once `n` frames wait at the closed gate. */
void gate_wait_for (unsigned n);
/* Returns once `n` frames have been worked on since the last gate_close. */
void gate_wait_for_passed (unsigned n);

typedef struct test_frame
{
  uint64_t number;
  csfk_image in, out;
  csf_hostblock *in_block, *out_block;  /* NULL: ordinary memory */
  unsigned char *in_memory, *out_memory;
  size_t in_bytes, out_bytes;
  xor_params params;
} test_frame;

/* Zero means the usual: GRAY8, 64x48, 3 streams, all strides equal to the rows, pinned both
 * ways. */
typedef struct options
{
  int format, width, height;
  unsigned streams;
  unsigned n_frames;            /* buffers; at least streams + 1 */
  int in_align, out_align, device_align;        /* of strides, bytes */
  bool pageable_in, pageable_out;
  const csfk_kernel *kernel;    /* of the test kernels' parameters, or of none; NULL: xor_kernel */
  const void *params;           /* of another kernel */
  uint64_t pinned_limit;        /* 0: 1 GiB, so that the machine does not decide */
} options;

typedef struct fixture
{
  options options;
  csf_device *device;
  csf_hostpool *pool;
  csf_engine *engine;
  test_frame *frames;
  csf_config config;
  uint64_t released[256];       /* frames handed to release, in order */
  unsigned n_released;
} fixture;

/* The device alone, for tests of what comes before an engine. */
csf_device *open_device (void);

/* Everything but the engine; fills config. */
void fixture_prepare (fixture * self, const options * wanted);
void fixture_open (fixture * self, const options * wanted);
/* Destroys the engine and the rest; the engine must have come to rest within 30 s. */
void fixture_close (fixture * self);
/* All but the engine, which is NULL or leaked. */
void fixture_finish (fixture * self);

/* Buffer number % n_frames made ready as frame `number`: new pattern, output guarded. */
test_frame *fixture_fill (fixture * self, uint64_t number);
csf_job fixture_job (const fixture * self, const test_frame * sent);
/* Waits for a slot and submits; both must succeed. */
test_frame *fixture_submit (fixture * self, uint64_t number);
/* Retires one, which must be OK, of this number, and right. */
void fixture_expect (fixture * self, uint64_t number);
/* The picture is what the kernel makes of the pattern, and nothing beside it was written. */
void frame_check (const fixture * self, const test_frame * received);
/* FNV-1a of the output's samples. */
uint64_t frame_hash (const test_frame * received);
/* `count` frames through, `depth` in flight at most. */
void fixture_stream (fixture * self, uint64_t first, unsigned count, unsigned depth);

#endif
