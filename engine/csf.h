/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The stream engine's contract: frames go in, run through upload, kernel and download on N streams at
 * once, and come out in the order they went in.  Knows no GLib, no GStreamer and no pixel maths.
 *
 * Threads: one thread submits, one retires (they may be the same); a device is used from any thread.
 * Errors: every fallible function returns a csf_status; the first failure fills *error (which may be
 * NULL) where it happens. */
#ifndef CSF_H
#define CSF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "distribution.h"
#include "kernels/kernel.h"

#define CSF_MAX_STREAMS 64

typedef enum csf_status
{
  CSF_OK = 0,
  CSF_AGAIN,                    /* not finished yet; nothing is wrong */
  CSF_EMPTY,                    /* nothing to retire */
  CSF_INTERRUPTED,              /* woken by csf_engine_set_interrupted or a queue that flushes */
  /* failures */
  CSF_ERROR_ARGUMENT,           /* a value the user gave cannot be used */
  CSF_ERROR_NO_DEVICE,          /* no usable GPU, or no device of that number */
  CSF_ERROR_DRIVER,             /* driver absent, too old, or without a function we need */
  CSF_ERROR_UNSUPPORTED,        /* this build or device cannot do it */
  CSF_ERROR_MEMORY,             /* host or device memory is short */
  CSF_ERROR_DEVICE,             /* a copy or kernel failed, or the context is lost */
  CSF_ERROR_TIMEOUT             /* the device did not finish within the time given */
} csf_status;

typedef enum csf_stage
{
  CSF_STAGE_OPEN = 0,           /* device, module, memory */
  CSF_STAGE_UPLOAD,
  CSF_STAGE_KERNEL,
  CSF_STAGE_DOWNLOAD,
  CSF_STAGE_WAIT,               /* found while waiting: the stage is not known */
  CSF_STAGE_CLOSE
} csf_stage;

typedef struct csf_error
{
  csf_status status;
  csf_stage stage;
  uint64_t frame;               /* the job's number, or CSF_NO_FRAME */
  int driver_code;              /* CUresult, 0 when the driver did not say */
  char text[384];               /* what was expected, what came, what to do */
} csf_error;

#define CSF_NO_FRAME UINT64_MAX

const char *csf_stage_name (csf_stage stage);

/* True for the values that are failures: CSF_AGAIN, CSF_EMPTY and CSF_INTERRUPTED are not. */
static inline bool
csf_failed (csf_status status)
{
  return status >= CSF_ERROR_ARGUMENT;
}

/* ---- device ------------------------------------------------------------------------------------ */

typedef struct csf_device csf_device;

typedef enum csf_backend_type
{
  CSF_BACKEND_CPU = 0,
  CSF_BACKEND_CUDA
} csf_backend_type;

typedef struct csf_device_info
{
  csf_backend_type backend;
  const char *backend_name;     /* "cpu", "cuda" */
  int id;                       /* CUDA device number; 0 on the CPU */
  char name[128];
  char pci_bus_id[32];          /* "0000:01:00.0"; "" on the CPU and where the driver does not say */
  bool pins;                    /* host memory must be pinned for copies to overlap */
  unsigned default_streams;     /* what num_streams = 0 means here */
  int capability;               /* CUDA compute capability, 90 for 9.0; 0 on the CPU */
  int driver_version;           /* CUDA version of the driver, 13000 for 13.0; 0 on the CPU */
} csf_device_info;

/* Opens a device: id -1 takes the first usable one.  CUDA: loads the driver, retains the primary
 * context; several opens of one device share it.  May take seconds.  *device gets one reference. */
csf_status csf_device_open (csf_backend_type backend, int id, csf_device ** device, csf_error * error);

/* Opens the device that a CUcontext of someone else belongs to; that context is used as it is.
 * release (owner) is called when the device no longer needs it, also when this fails. */
csf_status csf_device_open_context (void *context, void (*release) (void *owner), void *owner,
    csf_device ** device, csf_error * error);

/* The CUcontext the device works in; NULL on the CPU.  Valid as long as the device. */
void *csf_device_get_context (const csf_device * device);

/* Tells whether csf_device_open would find its device, without creating a context on it. */
csf_status csf_device_probe (csf_backend_type backend, int id, csf_error * error);

csf_device *csf_device_ref (csf_device * device);
void csf_device_unref (csf_device * device);    /* NULL is allowed */
const csf_device_info *csf_device_get_info (const csf_device * device);

/* ---- device code that users bring --------------------------------------------------------------- */

/* What a module has under one name. */
typedef struct csf_function
{
  char name[128];
  bool described;               /* the module has a csfk_desc of it */
  csfk_desc desc;
} csf_function;

/* Loads device code for a look at it: finds `name`, or with NULL the only function there is, and reads
 * its description.  origin: what messages call the code, such as a file's name.  CUDA devices only. */
csf_status csf_device_inspect (csf_device * device, const csfk_blob * code, const char *origin,
    const char *name, csf_function * function, csf_error * error);

/* ---- engine ------------------------------------------------------------------------------------ */

typedef struct csf_engine csf_engine;
typedef struct csf_hostpool csf_hostpool;

/* A picture's place in one block of memory: image.plane[].data is not used, offset[] is. */
typedef struct csf_layout
{
  csfk_image image;
  size_t offset[CSFK_MAX_PLANES];       /* bytes from the block's start */
  size_t size;                          /* bytes of the block */
} csf_layout;

/* Where a picture lies.  Device memory belongs to the engine's device and context: its planes' data are
 * device addresses, and nothing is copied on that side. */
typedef enum csf_memory
{
  CSF_MEMORY_HOST = 0,
  CSF_MEMORY_DEVICE
} csf_memory;

#define CSF_MAX_FENCES 2

/* Where the device appends a kernel's records, for the host to read. */
typedef enum csf_metadata_memory
{
  CSF_METADATA_AUTO = 0,        /* what is best on the device, for as many bytes as there are */
  CSF_METADATA_MANAGED,         /* managed memory that stays on the host and is mapped on the device */
  CSF_METADATA_PINNED,          /* pinned memory, mapped on the device */
  CSF_METADATA_DEVICE           /* device memory, of which the bytes used are copied */
} csf_metadata_memory;

#define CSF_DEFAULT_MAX_RECORDS 131072u

/* One frame's work.  `in` and `out` describe memory that stays valid and untouched until the job was
 * retired or released; their size and format equal the engine's layouts, their strides may differ. */
typedef struct csf_job
{
  uint64_t frame;               /* the caller's number, for errors */
  csfk_image in, out;
  csf_memory in_memory, out_memory;
  /* CUDA streams (CUstream; NULL is the legacy default stream) of the engine's context: the job begins
   * after all work that they were given before csf_engine_submit. */
  unsigned n_fences;
  void *fences[CSF_MAX_FENCES];
  /* Whether the device copies from and to that host memory directly.  Only devices that pin look: an input
   * that is not pinned is staged in pinned memory of the slot, an output that is not is left to the
   * driver, which makes submit wait for it. */
  bool in_pinned, out_pinned;
  const csfk_region *regions;   /* n_regions, copied; for kernels that read regions */
  unsigned n_regions;
  bool reset_state;             /* the kernel's state begins anew with this frame */
  const void *params;           /* kernel->params_size bytes, copied */
  void *user;
} csf_job;

typedef struct csf_config
{
  csf_device *device;           /* the engine takes its own reference */
  csf_hostpool *hostpool;       /* staging memory comes from here; own reference */
  const csfk_kernel *kernel;
  unsigned num_streams;         /* 1..CSF_MAX_STREAMS */
  csf_layout in, out;           /* how frames lie in the engine's device memory */
  /* Jobs bring device memory on that side, so the engine keeps none; host memory is an error then. */
  bool in_on_device, out_on_device;
  /* For kernels with records. */
  csf_metadata_memory metadata_memory;
  unsigned max_records;         /* of a frame; 0: CSF_DEFAULT_MAX_RECORDS */
  /* Every frame's device stages are timed, not a sample of them; costs events on the streams. */
  bool time_all;

  /* Called once for each job that is not handed out by csf_engine_retire: nothing uses its memory any
   * more.  From the thread that retires, drains or destroys.  Never NULL. */
  void (*release) (void *context, void *user);
  void *context;
} csf_config;

/* The parts of a frame's way, in the order of their begin. */
typedef enum csf_part
{
  CSF_PART_WAKE = 0,            /* host: a stream came free, until the submit thread that waited goes on */
  CSF_PART_STAGING,             /* host: copying a pageable input into pinned memory */
  CSF_PART_SUBMIT,              /* host: handing the work to the device */
  CSF_PART_UPLOAD,
  CSF_PART_KERNEL,
  CSF_PART_RECORDS,             /* the pass that appends records, beside the download */
  CSF_PART_DOWNLOAD,
  CSF_PART_FINISH,              /* host: the device is done, until the retire thread has seen it */
  CSF_N_PARTS
} csf_part;

/* CLOCK_MONOTONIC, in nanoseconds. */
typedef struct csf_span
{
  uint64_t begin, end;          /* the same: it took no time, or there was none */
} csf_span;

/* When a frame's parts ran.  A device's stage begins when it could: the frame's stage before has ended and the
 * frame before has left the stage.  The host's clock and the device's are aligned to some microseconds. */
typedef struct csf_frame_times
{
  unsigned stream;              /* 0 .. num_streams - 1 */
  bool timed;                   /* the device's spans are there */
  uint64_t retired;             /* the host found it finished */
  csf_span span[CSF_N_PARTS];
} csf_frame_times;

/* What a finished job gives back.  The caller owns `user` again. */
typedef struct csf_result
{
  csf_status status;            /* CSF_OK or a failure */
  csf_error error;              /* filled on failure */
  uint64_t frame;
  void *user;
  bool discarded;               /* was in flight when csf_engine_discard was called */
  /* The frame's records, n_records of the kernel's record_size: the caller's, for free(); NULL for none.
   * records_wanted: more than n_records when max_records was hit. */
  void *records;
  unsigned n_records, records_wanted;
  csf_frame_times times;
} csf_result;

csf_status csf_engine_create (const csf_config * config, csf_engine ** engine, csf_error * error);

/* Waits at most timeout_ns for the jobs in flight and releases them, then frees everything.  NULL is
 * allowed.  CSF_ERROR_TIMEOUT: the device still runs, so what it may write (jobs and buffers) was
 * leaked on purpose. */
csf_status csf_engine_destroy (csf_engine * engine, uint64_t timeout_ns, csf_error * error);

/* Submit thread: blocks until a slot is free.  CSF_INTERRUPTED when woken. */
csf_status csf_engine_wait_free (csf_engine * engine);

/* Submit thread, after csf_engine_wait_free returned CSF_OK: starts the job and does not wait for the
 * device.  *staged (may be NULL): the input was copied, its memory is the caller's again at once.
 * A copy or launch that the device refuses is no failure of this call: the job is in flight and
 * csf_engine_retire reports it in its turn, after the good frames before it.  On failure nothing was
 * started and the job stays the caller's: CSF_ERROR_ARGUMENT (the job does not fit the layouts),
 * CSF_ERROR_MEMORY (no staging memory), or the error that broke the engine before. */
csf_status csf_engine_submit (csf_engine * engine, const csf_job * job, bool *staged, csf_error * error);

/* Retire thread: blocks until the oldest job has finished and hands it back; its slot is free then.
 * CSF_OK with result->status telling how the job went; CSF_EMPTY; CSF_INTERRUPTED and CSF_ERROR_TIMEOUT
 * (a device that hangs; result->error says so): the job is still in flight. */
csf_status csf_engine_retire (csf_engine * engine, csf_result * result);

/* Marks every job in flight: it still runs and is retired, with result.discarded set. */
void csf_engine_discard (csf_engine * engine);

/* Any thread.  While set, the waits above return CSF_INTERRUPTED at once. */
void csf_engine_set_interrupted (csf_engine * engine, bool interrupted);

/* Jobs submitted and not yet retired. */
unsigned csf_engine_get_in_flight (csf_engine * engine);

/* Counters since creation, and the times of the window since the last call that took it. */
typedef struct csf_engine_stats
{
  uint64_t submitted, retired;
  uint64_t host_copies;         /* inputs staged and outputs that were not pinned */
  uint64_t device_bytes;
  uint64_t growths;             /* allocations of device and record memory after the engine was created */
  uint64_t records;             /* handed out */
  csf_metadata_memory metadata_memory;  /* in use; CSF_METADATA_AUTO without records */
  /* This window's; of the device's parts and of CSF_PART_FINISH a sample of frames. */
  csf_summary part[CSF_N_PARTS];
  uint64_t timed;               /* frames in that sample */
  uint64_t frame_ns;            /* mean time from one frame's end to the next's in the sample */
} csf_engine_stats;

/* Any thread.  take_window: the next call's means start afresh. */
void csf_engine_get_stats (csf_engine * engine, csf_engine_stats * stats, bool take_window);

#endif
