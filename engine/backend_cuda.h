/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the two files of the CUDA backend share: the device, entering its context, and turning driver
 * results into errors.  backend_cuda.c has devices, backend_cuda_module.c device code, backend_cuda_session.c the
 * work on frames; no other file makes driver calls. */
#ifndef CSF_BACKEND_CUDA_H
#define CSF_BACKEND_CUDA_H

#include "backend.h"
#include "cuda_dl.h"

typedef struct cuda_device
{
  csf_device base;
  const cuda_driver *cu;
  cu_device device;
  cu_context context;           /* the primary one, unless someone else's */
  void (*release) (void *owner);        /* of someone else's context, NULL for the primary one */
  void *owner;
  bool can_register;
  bool managed_at_once;         /* the host may read managed memory while the device works */
  bool has_managed;
} cuda_device;

/* What a driver result means. */
csf_status cuda_status (cu_result code);

/* Fills *error with the driver's words and returns the status. */
csf_status cuda_error (const cuda_driver * cu, csf_error * error, csf_stage stage, uint64_t frame,
    cu_result code, const char *call);

/* In a function with `cu`, `error`, `status` and a label `fail`: a failing call sets status and jumps. */
#define CU(stage, frame, name, ...) \
  do { \
    cu_result cu_code = cu->name (__VA_ARGS__); \
    if (cu_code != CU_SUCCESS) { \
      status = cuda_error (cu, error, stage, frame, cu_code, "cu" #name); \
      goto fail; \
    } \
  } while (0)

/* Makes the device's context current for this thread, until cuda_leave. */
csf_status cuda_enter (cuda_device * device, csf_error * error, csf_stage stage, uint64_t frame);
void cuda_leave (cuda_device * device);

/* In the device's context: loads code, with an error that says what is wrong with it. */
csf_status cuda_module_load (cuda_device * device, const csfk_blob * code, const char *origin,
    cu_module * module, csf_error * error);

/* Parts of the table. */
csf_status cuda_inspect (csf_device * device, const csfk_blob * code, const char *origin,
    const char *name, csf_function * function, csf_error * error);

csf_status cuda_session_open (csf_device * device, const csf_config * config, csf_session ** session,
    csf_error * error);
void cuda_session_close (csf_session * session);
csf_status cuda_start (csf_session * session, unsigned slot, const csf_job * job,
    const csf_record_buffer * records, csf_run run, csf_error * error);
csf_status cuda_wait (csf_session * session, unsigned slot, uint64_t timeout_ns, csf_error * error);
void cuda_get_times (csf_session * session, unsigned slot, csf_times * times);
uint64_t cuda_get_device_bytes (csf_session * session);
csf_status cuda_record_alloc (csf_session * session, unsigned capacity, csf_record_buffer * buffer,
    csf_error * error);
void cuda_record_free (csf_session * session, csf_record_buffer * buffer);
unsigned cuda_record_count (csf_session * session, unsigned slot);
csf_status cuda_emit (csf_session * session, unsigned slot, const csf_record_buffer * buffer,
    csf_error * error);
csf_status cuda_record_fetch (csf_session * session, unsigned slot, unsigned n, csf_error * error);
const void *cuda_record_data (csf_session * session, unsigned slot);

#endif
