/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the two files of a CUDA session share: backend_cuda_session.c runs frames, backend_cuda_records.c brings
 * their records back. */
#ifndef CSF_BACKEND_CUDA_SESSION_H
#define CSF_BACKEND_CUDA_SESSION_H

#include <pthread.h>

#include "backend_cuda.h"
#include "hostpool.h"

#define MAX_FUNCTIONS 16

enum
{
  MARK_START,
  MARK_UPLOAD,
  MARK_KERNEL,
  MARK_RECORDS,                 /* on records_stream; not recorded for kernels without records */
  MARK_PICTURE,                 /* the picture is down; not recorded for kernels without records */
  MARK_DOWNLOAD,                /* and so are the records, if any */
  N_MARKS
};

/* Written by the submit thread while the slot is free or starting, read by the retire thread after. */
typedef struct cuda_slot
{
  cu_stream stream;
  cu_event done;                /* of frames that are not timed */
  cu_event marks[N_MARKS];
  cu_event fence;
  cu_event kernel_done;         /* of stateful kernels: the next frame's kernel waits for it */
  cu_deviceptr in, out;         /* 0 where jobs bring device memory */
  cu_deviceptr workspace;       /* 0 where the kernel wants none */
  cu_deviceptr regions;         /* room for region_room of them */
  unsigned region_room;
  /* For kernels with records.  The pass that appends has a stream to itself, so that the picture's download
   * need not wait for it; it begins after records_begin, which marks `stream`. */
  cu_stream records_stream;
  cu_event records_begin, records_done;
  /* What that pass needs to run once more. */
  csf_record_buffer records;
  csfk_frame work;
  const csfk_region *host_regions;
  unsigned char params[CSFK_MAX_PARAMS] __attribute__ ((aligned (16)));
  cu_deviceptr count;           /* in device memory */
  unsigned *host_count;         /* its copy, after `done` */
  unsigned copied;              /* records of device memory that are on the host after `done` */
  cu_deviceptr attached;        /* managed memory that is records_stream's alone */
  uint64_t frame;
  cu_event end;                 /* marks this job's end, when recorded; otherwise ask the stream */
  bool recorded;
  csf_run run;
} cuda_slot;

typedef struct cached_function
{
  const char *symbol;
  cu_function function;
} cached_function;

typedef struct cuda_session
{
  csf_session base;
  cuda_device *device;
  const csfk_kernel *kernel;
  csf_layout in, out;
  cu_module module;             /* NULL: the kernel brings no device code */
  void *instance;               /* what the kernel's open made */
  bool is_open;
  cu_deviceptr state;           /* 0: stateless */
  size_t state_size, workspace_size;
  unsigned state_frames;        /* submit thread: frames that the state has seen */
  cu_event last_kernel;         /* submit thread: of the frame before, NULL at first */
  /* Of a run and the one before it in turn, by the run's number. */
  cu_event run_base[2];
  uint64_t run_instant_ns[2];
  uint64_t slot_bytes;          /* of a slot */
  atomic_uint_fast64_t device_bytes;    /* of all, so far */
  pthread_mutex_t lock;
  cached_function functions[MAX_FUNCTIONS];     /* under the lock */
  unsigned n_functions;                         /* likewise */
  csf_metadata_memory metadata_memory;          /* as configured */
  cu_deviceptr counts;                          /* a cache line for each slot, or 0 */
  csf_hostblock *host_counts;
  atomic_uint guess;                            /* records to copy without being asked */
  unsigned n_slots;
  cuda_slot slots[];
} cuda_session;

typedef struct launcher
{
  csfk_launcher base;
  cuda_session *session;
  cuda_slot *slot;
  csf_error *error;
  bool failed;                  /* error is filled */
} launcher;

/* A launcher for the frame on this slot, on this stream. */
launcher cuda_launcher (cuda_session * session, cuda_slot * slot, cu_stream stream,
    const csfk_region * regions, csf_error * error);

/* What an enqueue or emit function returned, as a status. */
csf_status cuda_launched (launcher * self, int code);

/* ---- backend_cuda_records.c; all in the device's context ---------------------------------------- */

/* Counters of a kernel with records, and what a slot has for the pass that appends. */
csf_status cuda_records_open (cuda_session * session, csf_hostpool * hostpool, csf_error * error);
csf_status cuda_records_open_slot (cuda_session * session, cuda_slot * slot, csf_error * error);
void cuda_records_close_slot (const cuda_driver * cu, cuda_slot * slot);
void cuda_records_close (cuda_session * session);

/* A frame's four steps.  clear: at its begin, since the counter needs nothing of the frame.  append: what
 * slot->stream was given so far is followed by the pass, on records_stream.  await: what slot->stream is given
 * from now on follows the pass.  bring: what the host needs, on this stream. */
csf_status cuda_records_clear (cuda_session * session, cuda_slot * slot, csf_error * error);
csf_status cuda_records_append (cuda_session * session, cuda_slot * slot, csf_error * error);
csf_status cuda_records_await (cuda_session * session, cuda_slot * slot, csf_error * error);
csf_status cuda_records_bring (cuda_session * session, cuda_slot * slot, cu_stream stream,
    csf_error * error);

#endif
