/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The backend vtable: how a device runs a slot's work.  backend.c is its only caller; it checks
 * arguments and states once for all backends.  Private to engine/. */
#ifndef CSF_BACKEND_H
#define CSF_BACKEND_H

#include <limits.h>
#include <stdatomic.h>

#include "csf.h"

typedef struct csf_session csf_session;
typedef struct csf_backend_ops csf_backend_ops;

/* A backend's device structure begins with this. */
struct csf_device
{
  const csf_backend_ops *ops;
  atomic_uint refs;
  csf_device_info info;
};

/* A backend's per-engine structure (memory, streams, threads of N slots) begins with this. */
struct csf_session
{
  csf_device *device;
  atomic_uint_fast64_t growths; /* allocations after it was opened */
};

/* When the stages of one timed frame ended, in nanoseconds since an instant common to the run it
 * belongs to; start is when its first stage could begin. */
typedef struct csf_times
{
  bool valid;
  bool parallel;                /* stages of one kind run at once (CPU threads), not one by one */
  uint64_t run;                 /* frames of one number share the instant */
  uint64_t instant_ns;          /* the instant on CLOCK_MONOTONIC, about */
  double since_run;             /* from the instant of the run before to this one's; 0: not known */
  double start, end[CSF_N_PARTS];       /* the device's parts only */
} csf_times;

/* Whether a frame is timed, and with which others. */
typedef struct csf_run
{
  uint64_t number;              /* from 1 on; 0: not timed */
  bool first;                   /* the run's instant is this frame's start */
  bool follows;                 /* with first: the frame before belonged to the run before */
} csf_run;

/* A slot's room for records.  Filled by record_alloc but for capacity; belongs to the metasink. */
typedef struct csf_record_buffer
{
  unsigned capacity;            /* records */
  csf_metadata_memory memory;   /* what it is */
  uint64_t device;              /* where kernels append */
  void *host;                   /* where the host reads, after record_fetch */
} csf_record_buffer;

struct csf_backend_ops
{
  csf_backend_type type;
  const char *name;

  /* required: see csf_device_probe. */
  csf_status (*probe) (int id, csf_error * error);

  /* required: fills info; see csf_device_open.  close: last reference gone. */
  csf_status (*open) (int id, csf_device ** device, csf_error * error);
  void (*close) (csf_device * device);

  /* optional: see csf_device_inspect. */
  csf_status (*inspect) (csf_device * device, const csfk_blob * code, const char *origin,
      const char *name, csf_function * function, csf_error * error);

  /* optional, both or none: see csf_device_open_context and csf_device_get_context. */
  csf_status (*open_context) (void *context, void (*release) (void *owner), void *owner,
      csf_device ** device, csf_error * error);
  void *(*get_context) (const csf_device * device);

  /* optional (a device that does not pin has neither); any thread.  Pins or unpins a range in place. */
  csf_status (*pin) (csf_device * device, void *data, size_t size, csf_error * error);
  void (*unpin) (csf_device * device, void *data);

  /* optional: pinned memory from the driver itself, for devices where pin cannot work. */
  void *(*alloc_pinned) (csf_device * device, size_t size);
  void (*free_pinned) (csf_device * device, void *data);

  /* required: a session of config->num_streams slots.  close only when no slot runs. */
  csf_status (*session_open) (csf_device * device, const csf_config * config, csf_session ** session,
      csf_error * error);
  void (*session_close) (csf_session * session);

  /* required, submit thread: starts the job on the slot and returns.  run: whether to time it.  On failure the
   * slot may have work in flight: the caller waits for it with wait, as after a success. */
  csf_status (*start) (csf_session * session, unsigned slot, const csf_job * job,
      const csf_record_buffer * records, csf_run run, csf_error * error);

  /* required, any one thread at a time a slot: CSF_OK when the slot's work is done, CSF_AGAIN when it
   * is not after about timeout_ns (0: only look), or the failure of that work. */
  csf_status (*wait) (csf_session * session, unsigned slot, uint64_t timeout_ns, csf_error * error);

  /* required, after wait returned CSF_OK. */
  void (*get_times) (csf_session * session, unsigned slot, csf_times * times);

  /* required, all of them; for kernels with records.  alloc and free: any thread.  The others: retire thread,
   * after wait returned CSF_OK.  count: what the slot's pass appended or would have.  emit: starts that pass
   * again with this buffer; fetch: sees to it that n records are where the host reads them, CSF_AGAIN: after
   * the next wait; data: where that is. */
  csf_status (*record_alloc) (csf_session * session, unsigned capacity, csf_record_buffer * buffer,
      csf_error * error);
  void (*record_free) (csf_session * session, csf_record_buffer * buffer);
  unsigned (*record_count) (csf_session * session, unsigned slot);
  csf_status (*emit) (csf_session * session, unsigned slot, const csf_record_buffer * buffer,
      csf_error * error);
  csf_status (*record_fetch) (csf_session * session, unsigned slot, unsigned n, csf_error * error);
  const void *(*record_data) (csf_session * session, unsigned slot);

  /* required */
  uint64_t (*get_device_bytes) (csf_session * session);
};

extern const csf_backend_ops csf_backend_cpu;
extern const csf_backend_ops csf_backend_cuda;

/* The only callers of the table. */
bool csf_backend_pins (const csf_device * device);
csf_status csf_backend_pin (csf_device * device, void *data, size_t size, csf_error * error);
void csf_backend_unpin (csf_device * device, void *data);
void *csf_backend_alloc_pinned (csf_device * device, size_t size);     /* NULL: cannot */
void csf_backend_free_pinned (csf_device * device, void *data);
csf_status csf_backend_session_open (csf_device * device, const csf_config * config,
    csf_session ** session, csf_error * error);
void csf_backend_session_close (csf_session * session);
csf_status csf_backend_start (csf_session * session, unsigned slot, const csf_job * job,
    const csf_record_buffer * records, csf_run run, csf_error * error);
csf_status csf_backend_record_alloc (csf_session * session, unsigned capacity,
    csf_record_buffer * buffer, csf_error * error);
void csf_backend_record_free (csf_session * session, csf_record_buffer * buffer);
unsigned csf_backend_record_count (csf_session * session, unsigned slot);
csf_status csf_backend_emit (csf_session * session, unsigned slot, const csf_record_buffer * buffer,
    csf_error * error);
csf_status csf_backend_record_fetch (csf_session * session, unsigned slot, unsigned n,
    csf_error * error);
const void *csf_backend_record_data (csf_session * session, unsigned slot);
csf_status csf_backend_wait (csf_session * session, unsigned slot, uint64_t timeout_ns,
    csf_error * error);
void csf_backend_get_times (csf_session * session, unsigned slot, csf_times * times);
uint64_t csf_backend_get_device_bytes (csf_session * session);
uint64_t csf_backend_get_growths (csf_session * session);

/* The count after this one; it never comes back to 0, and stays even or odd in turn. */
static inline unsigned
csf_next_state_frames (unsigned state_frames)
{
  return state_frames == UINT_MAX ? 2 : state_frames + 1;
}

/* What a kernel's open() gave as its reason, ended by 0 whatever it did. */
const char *csf_reason (char *reason, size_t size);

/* Bytes that the kernel wants for frames of these layouts. */
size_t csf_session_state_size (const csf_config * config);
size_t csf_session_workspace_size (const csf_config * config);

/* Fills *error unless it is NULL, and returns status. */
csf_status csf_error_set (csf_error * error, csf_status status, csf_stage stage, uint64_t frame,
    int driver_code, const char *format, ...) __attribute__ ((format (printf, 6, 7)));

#endif
