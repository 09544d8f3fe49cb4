/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The fake driver's own structures.  One lock covers everything; operations run without it.
 * Knows the engine's table of driver symbols (so that both agree on every signature) and the
 * kernel table, nothing else of the project. */
#ifndef FAKE_H
#define FAKE_H

#include <pthread.h>
#include <stdbool.h>

#include "engine/cuda_dl.h"
#include "fake_cuda.h"

#define FAKE_EXPORT __attribute__ ((visibility ("default")))
#define FAKE_MAX_DEVICES 8
#define FAKE_MAX_ATTRIBUTES 192

enum
{
  FAKE_ERROR_NOT_INITIALIZED = 3,
  FAKE_ERROR_DEINITIALIZED = 4,
  FAKE_ERROR_INVALID_CONTEXT = 201,
  FAKE_ERROR_INVALID_HANDLE = 400,
  FAKE_ERROR_ILLEGAL_ADDRESS = 700,
  FAKE_ERROR_CONTEXT_IS_DESTROYED = 709,
  FAKE_ERROR_HOST_MEMORY_NOT_REGISTERED = 713,
  FAKE_MEMORYTYPE_UNIFIED = 4
};

/* ---- objects: handles are numbers that are never used twice ---------------------------------- */

typedef enum fake_kind
{
  FAKE_CONTEXT,
  FAKE_STREAM,
  FAKE_EVENT,
  FAKE_MODULE,
  FAKE_FUNCTION
} fake_kind;

typedef struct fake_context fake_context;

typedef struct fake_object
{
  fake_kind kind;
  void *handle;
  fake_context *context;        /* itself for a context */
} fake_object;

void fake_object_add (fake_object * object, fake_kind kind, fake_context * context);
void fake_object_remove (fake_object * object);
/* NULL: never given out, already destroyed, or of another kind. */
void *fake_object_find (const void *handle, fake_kind kind);
unsigned fake_object_count (fake_kind kind, const fake_context * context);      /* NULL: of all */
/* All functions that were asked of this module. */
void fake_functions_drop (const void *module);
/* The oldest of its kind in this context, or NULL. */
void *fake_object_first (fake_kind kind, const fake_context * context);

/* ---- memory ---------------------------------------------------------------------------------- */

typedef enum fake_range_type
{
  FAKE_RANGE_DEVICE,
  FAKE_RANGE_MANAGED,
  FAKE_RANGE_HOST,              /* allocated by the driver */
  FAKE_RANGE_REGISTERED
} fake_range_type;

typedef struct fake_op fake_op;
typedef struct fake_stream fake_stream;

typedef struct fake_range
{
  struct fake_range *next;
  fake_range_type type;
  unsigned char *data;          /* the host's */
  unsigned char *reached;       /* the same bytes as the device reaches them */
  size_t size;
  fake_context *context;
  unsigned pending;             /* operations that read or write it */
  /* Managed memory of a device without concurrentManagedAccess: whose it is, and whether the host is kept
   * from it just now. */
  bool guarded, hidden;
  unsigned attached, attached_at_first; /* CU_MEM_ATTACH_ flags */
  fake_stream *owner;           /* when attached to one stream */
} fake_range;

extern fake_range *fake_ranges;

/* Set in a device pointer, so that the host cannot use it by mistake. */
#define FAKE_DEVICE_TAG (1ULL << 62)

/* What the device reaches at `pointer` for `size` bytes, or NULL. */
unsigned char *fake_device_memory (cu_deviceptr pointer, size_t size, fake_range ** range);

typedef enum fake_pinning
{
  FAKE_PAGEABLE,
  FAKE_PINNED,
  FAKE_STRADDLES                /* begins or ends outside a pinned range */
} fake_pinning;

/* Device memory of the driver's own, such as a module's variables. */
fake_range *fake_memory_add (fake_context * context, size_t size);
void fake_memory_remove (fake_range * range);
fake_pinning fake_host_memory (const void *data, size_t size, fake_range ** range);
void fake_memory_drop_context (fake_context * context);
/* Hides managed memory from the host, or shows it, according to what the streams now do. */
void fake_memory_guard (void);
void fake_memory_attach (fake_range * range, unsigned flags, fake_stream * stream);
/* Of a stream that ends: its memory is again whose it was when allocated. */
void fake_memory_detach (const fake_stream * stream);
/* False: managed memory that work of this stream must not touch. */
bool fake_memory_is_for (const fake_range * range, const fake_stream * stream);

/* ---- contexts, streams, events --------------------------------------------------------------- */

struct fake_stream
{
  fake_object object;
  fake_stream *next;            /* of the context, destroyed ones included */
  fake_context *context;
  pthread_t thread;
  pthread_cond_t work;
  bool blocking;                /* takes turns with the NULL stream */
  bool dying;                   /* destroyed: runs dry, then its thread ends */
  bool finished;                /* its thread is about to end */
  bool executing;
  fake_op *first, **end;
  uint64_t random;
};

struct fake_context
{
  fake_object object;
  fake_context *next;           /* of all contexts */
  int device;
  bool primary;
  fake_stream *streams;
  fake_stream *null_stream;     /* made when first used */
  uint64_t sequence;            /* of operations, over all its streams */
  bool stopped;                 /* no operation begins any more */
  cu_result error;              /* sticky */
};

extern fake_context *fake_contexts;

typedef struct fake_event
{
  fake_object object;
  unsigned references;          /* the handle and each operation */
  unsigned flags;
  uint64_t issued, done;        /* records of this event */
  double time;                  /* of the last one done, ns */
} fake_event;

typedef enum fake_op_kind
{
  FAKE_OP_COPY,
  FAKE_OP_SET,
  FAKE_OP_KERNEL,
  FAKE_OP_RECORD,
  FAKE_OP_WAIT,
  FAKE_OP_ATTACH,
  FAKE_OP_HOST_FUNCTION
} fake_op_kind;

/* What of a device does the work; each does one piece at a time when its work takes time. */
typedef enum fake_engine
{
  FAKE_ENGINE_NONE,
  FAKE_ENGINE_UPLOAD,
  FAKE_ENGINE_KERNEL,
  FAKE_ENGINE_DOWNLOAD,
  FAKE_N_ENGINES
} fake_engine;

struct fake_op
{
  fake_op *next;
  fake_op_kind kind;
  fake_engine engine;
  uint64_t sequence;
  fake_range *ranges[2 * CSFK_MAX_PLANES + 5];  /* held pending; NULL where unused */

  unsigned char *to;
  const unsigned char *from;
  size_t to_pitch, from_pitch, width, height;
  unsigned char value;          /* of a set */
  unsigned attach_flags;
  void *staged;                 /* pageable input, copied when the call was made */

  const csfk_kernel *kernel;    /* NULL: the launch named memory that is not there */
  bool does_nothing;            /* a part of a kernel */
  bool collects;                /* the pass that appends records */
  const void *module;           /* of the kernel: compared, never followed */
  csfk_frame frame;
  unsigned char *params;

  fake_event *event;
  uint64_t record;

  void (*function) (void *data);
  void *data;
};

/* Device code is not run: what is read of it are its functions' names and its descriptions. */
typedef struct fake_module
{
  fake_object object;
  const unsigned char *image;   /* the caller's, read while it is loaded */
  size_t size;                  /* of an ELF file or PTX; 0: a fatbin or a dummy, which hides its names */
  bool is_ptx;
  fake_range *globals[4];
  unsigned n_globals;
} fake_module;

typedef struct fake_function
{
  fake_object object;
  fake_module *module;
  char name[128];
  const csfk_kernel *kernel;    /* whose C function stands in for it */
  bool is_part;                 /* another function does the kernel's whole work: this one does nothing */
  bool collects;                /* csfk_NAME_emit: the kernel's collect() stands in for it */
} fake_function;

fake_stream *fake_stream_new (fake_context * context, unsigned flags);
/* NULL and the two special handles are the context's NULL stream. */
fake_stream *fake_stream_find (cu_stream handle, fake_context * context);
/* Takes the operation over. */
void fake_stream_enqueue (fake_stream * stream, fake_op * op);
/* Returns at once when the context breaks. */
void fake_stream_drain (fake_stream * stream);
void fake_context_drain (fake_context * context);
/* No operation runs or begins when this returns. */
void fake_context_break (fake_context * context, cu_result error);
/* Ends all its streams; the threads are gone when this returns. */
void fake_context_end_streams (fake_context * context);
void fake_streams_reap (void);
void fake_event_release (fake_event * event);
double fake_now (void);

/* ---- calls ----------------------------------------------------------------------------------- */

extern pthread_mutex_t fake_lock;
extern pthread_cond_t fake_changed;     /* an operation ended, a context broke, a hang ends */
extern bool fake_exiting;
extern fake_cuda_counters fake_counts;

enum
{
  FAKE_NEEDS_INIT = 1,
  FAKE_NEEDS_CONTEXT = 2 | FAKE_NEEDS_INIT,
  FAKE_GIVES_BACK = 4,
  FAKE_ASKS = 8,                /* whether work is done */
  FAKE_ENTERS = 16              /* a context, which it breaks itself when it is to fail */
};

typedef struct fake_call
{
  cu_result result;             /* of a call that does not go on, or only to give back */
  fake_context *context;        /* current one */
} fake_call;

/* True: go on, with the lock held, to fake_call_end.  False: return call->result. */
bool fake_call_begin (fake_call * call, const char *name, unsigned needs);
cu_result fake_call_end (fake_call * call, cu_result result);

/* Prints, counts, and aborts unless told not to.  Returns `result`. */
cu_result fake_misuse (cu_result result, const char *format, ...)
    __attribute__ ((format (printf, 2, 3)));

fake_context *fake_context_current (void);
extern bool fake_initialized;

/* ---- settings -------------------------------------------------------------------------------- */

typedef struct fake_settings
{
  long long devices, driver_version, memory, pinned_memory, delay_us, seed;
  long long fail_at, fail_count, fail_code, fail_sticky;
  long long async_fail_at, async_fail_code, hang_at, abort_on_misuse;
  long long upload_us, kernel_us, download_us;
} fake_settings;

extern fake_settings fake_set;
int fake_attribute (int device, int attribute);
void fake_configure (void);     /* once; later calls do nothing */
/* What is to become of the operation about to run: 0 runs, 1 fails, 2 hangs. */
int fake_next_operation (void);
extern uint64_t fake_hang_epoch;        /* raised by release_hang */
/* The kernel whose C function stands in for this device function; NULL: none. */
const csfk_kernel *fake_kernel_find (const char *symbol, bool *is_part);

/* Signatures of what the engine uses come from its own table. */
#define FAKE_DECLARE(field, symbol, parameters) FAKE_EXPORT cu_result symbol parameters;
CSF_CUDA_SYMBOLS (FAKE_DECLARE)
CSF_CUDA_OPTIONAL_SYMBOLS (FAKE_DECLARE)
#undef FAKE_DECLARE

#endif
