/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The fake driver behaves as the real one is documented to: late copies, order within a stream
 * only, the NULL stream's turns, staging of pageable memory, sticky errors, and misuse that
 * shows.  Calls the driver's functions by name, as any program does. */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/cuda_dl.h"
#include "tests/engine/harness.h"

#define BYTES 4096

typedef cu_result (*wait_event_function) (cu_stream stream, cu_event event, unsigned flags);
typedef cu_result (*synchronize_function) (cu_stream stream);
typedef cu_result (*host_function_launch) (cu_stream stream, void (*run) (void *), void *data);
typedef cu_result (*managed_function) (cu_deviceptr * pointer, size_t bytes, unsigned flags);

static const cuda_driver *cu;
static wait_event_function stream_wait_event;
static synchronize_function stream_synchronize;
static host_function_launch launch_host_function;
static managed_function alloc_managed;

#define CU(call) CHECK_INT (cu->call, CU_SUCCESS)

static void
find_functions (void)
{
  void *library = dlopen ("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);

  cu = cuda_driver_get (NULL);
  CHECK (library != NULL && cu != NULL);
  *(void **) &stream_wait_event = dlsym (library, "cuStreamWaitEvent");
  *(void **) &stream_synchronize = dlsym (library, "cuStreamSynchronize");
  *(void **) &launch_host_function = dlsym (library, "cuLaunchHostFunc");
  *(void **) &alloc_managed = dlsym (library, "cuMemAllocManaged");
  CHECK (stream_wait_event && stream_synchronize && launch_host_function && alloc_managed);
}

/* A context, two streams, device and pinned memory. */
typedef struct scene
{
  cu_stream streams[2];
  cu_deviceptr device;
  unsigned char *from, *to;     /* pinned */
} scene;

static void
scene_open (scene *self, unsigned stream_flags)
{
  cu_context context;

  find_functions ();
  CU (Init (0));
  CU (DevicePrimaryCtxRetain (&context, 0));
  CU (CtxPushCurrent (context));
  for (unsigned i = 0; i < 2; i++)
    CU (StreamCreate (&self->streams[i], stream_flags));
  CU (MemAlloc (&self->device, BYTES));
  CU (MemHostAlloc ((void **) &self->from, BYTES, 0));
  CU (MemHostAlloc ((void **) &self->to, BYTES, 0));
  memset (self->from, 1, BYTES);
  memset (self->to, 0, BYTES);
}

static void
scene_close (scene *self)
{
  cu_context context;

  for (unsigned i = 0; i < 2; i++)
    cu->StreamDestroy (self->streams[i]);
  cu->MemFree (self->device);
  cu->MemFreeHost (self->from);
  cu->MemFreeHost (self->to);
  CU (CtxPopCurrent (&context));
  CU (DevicePrimaryCtxRelease (0));
}

/* Work given to the stream waits until open_way. */
static pthread_mutex_t way_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t way_opened = PTHREAD_COND_INITIALIZER;
static bool way_is_open;

static void
wait_for_way (void *data)
{
  pthread_mutex_lock (&way_lock);
  while (!way_is_open)
    pthread_cond_wait (&way_opened, &way_lock);
  pthread_mutex_unlock (&way_lock);
}

static void
open_way (void)
{
  pthread_mutex_lock (&way_lock);
  way_is_open = true;
  pthread_cond_broadcast (&way_opened);
  pthread_mutex_unlock (&way_lock);
}

static void
block_stream (cu_stream stream)
{
  way_is_open = false;
  CHECK_INT (launch_host_function (stream, wait_for_way, NULL), CU_SUCCESS);
}

static void
a_copy_takes_what_is_there_when_it_runs (void)
{
  scene self;

  scene_open (&self, CU_STREAM_NON_BLOCKING);
  block_stream (self.streams[0]);
  CU (MemcpyHtoDAsync (self.device, self.from, BYTES, self.streams[0]));
  CU (MemcpyDtoHAsync (self.to, self.device, BYTES, self.streams[0]));
  memset (self.from, 9, BYTES);
  CHECK_INT (self.to[0], 0);
  open_way ();
  CHECK_INT (stream_synchronize (self.streams[0]), CU_SUCCESS);
  CHECK_INT (self.to[BYTES - 1], 9);
  scene_close (&self);
}

static void
pageable_input_is_taken_at_the_call (void)
{
  scene self;
  unsigned char *pageable = malloc (BYTES);

  CHECK (pageable != NULL);
  memset (pageable, 5, BYTES);
  scene_open (&self, CU_STREAM_NON_BLOCKING);
  block_stream (self.streams[0]);
  CU (MemcpyHtoDAsync (self.device, pageable, BYTES, self.streams[0]));
  memset (pageable, 6, BYTES);
  open_way ();
  CU (MemcpyDtoHAsync (pageable, self.device, BYTES, self.streams[0]));
  CHECK_INT (pageable[BYTES - 1], 5);
  CHECK_INT (fake_counters ().pageable_copies, 2);
  free (pageable);
  scene_close (&self);
}

static void
an_event_is_done_when_its_record_is (void)
{
  scene self;
  cu_event start, end;
  float milliseconds = -1;

  scene_open (&self, CU_STREAM_NON_BLOCKING);
  CU (EventCreate (&start, CU_EVENT_DEFAULT));
  CU (EventCreate (&end, CU_EVENT_DEFAULT));
  CU (EventQuery (end));
  CU (EventRecord (start, self.streams[0]));
  block_stream (self.streams[0]);
  CU (EventRecord (end, self.streams[0]));
  CHECK_INT (cu->EventQuery (end), CU_ERROR_NOT_READY);
  CHECK_INT (cu->StreamQuery (self.streams[0]), CU_ERROR_NOT_READY);
  CHECK_INT (cu->EventElapsedTime (&milliseconds, start, end), CU_ERROR_NOT_READY);
  CU (StreamQuery (self.streams[1]));
  open_way ();
  CHECK_INT (stream_synchronize (self.streams[0]), CU_SUCCESS);
  CU (EventQuery (end));
  CU (EventElapsedTime (&milliseconds, start, end));
  CHECK (milliseconds >= 0);
  CU (EventDestroy (start));
  CU (EventDestroy (end));
  scene_close (&self);
}

static void
a_stream_waits_for_another_ones_event (void)
{
  scene self;
  cu_event event;

  scene_open (&self, CU_STREAM_NON_BLOCKING);
  CU (EventCreate (&event, CU_EVENT_DISABLE_TIMING));
  block_stream (self.streams[0]);
  CU (MemcpyHtoDAsync (self.device, self.from, BYTES, self.streams[0]));
  CU (EventRecord (event, self.streams[0]));
  CHECK_INT (stream_wait_event (self.streams[1], event, 0), CU_SUCCESS);
  CU (MemcpyDtoHAsync (self.to, self.device, BYTES, self.streams[1]));
  CU (EventDestroy (event));
  CHECK_INT (cu->StreamQuery (self.streams[1]), CU_ERROR_NOT_READY);
  open_way ();
  CHECK_INT (stream_synchronize (self.streams[1]), CU_SUCCESS);
  CHECK_INT (self.to[0], 1);
  scene_close (&self);
}

static void
the_null_stream_takes_turns_with_blocking_streams_only (void)
{
  scene self;

  scene_open (&self, 0);
  block_stream (self.streams[0]);
  CU (MemcpyHtoDAsync (self.device, self.from, BYTES, self.streams[0]));
  CU (MemcpyDtoHAsync (self.to, self.device, BYTES, NULL));
  CHECK_INT (cu->StreamQuery (NULL), CU_ERROR_NOT_READY);
  open_way ();
  CHECK_INT (stream_synchronize (NULL), CU_SUCCESS);
  CHECK_INT (self.to[0], 1);
  scene_close (&self);

  scene_open (&self, CU_STREAM_NON_BLOCKING);
  block_stream (self.streams[0]);
  CU (MemcpyHtoDAsync (self.device, self.from, BYTES, NULL));
  CHECK_INT (stream_synchronize (NULL), CU_SUCCESS);
  CHECK_INT (cu->StreamQuery (self.streams[0]), CU_ERROR_NOT_READY);
  open_way ();
  scene_close (&self);
}

static void
a_failed_operation_breaks_everything_after_it (void)
{
  scene self;
  cu_deviceptr more;

  scene_open (&self, CU_STREAM_NON_BLOCKING);
  fake_setting ("ASYNC_FAIL_AT", 2);
  fake_setting ("ASYNC_FAIL_CODE", 719);
  CU (MemcpyHtoDAsync (self.device, self.from, BYTES, self.streams[0]));
  CU (MemcpyDtoHAsync (self.to, self.device, BYTES, self.streams[0]));
  CHECK_INT (stream_synchronize (self.streams[0]), 719);
  CHECK_INT (self.to[0], 0);
  CHECK_INT (cu->MemAlloc (&more, BYTES), 719);
  CHECK_INT (cu->StreamQuery (self.streams[1]), 719);
  scene_close (&self);
  /* A new context works again. */
  scene_open (&self, CU_STREAM_NON_BLOCKING);
  CU (StreamQuery (self.streams[1]));
  scene_close (&self);
}

static void
a_chosen_call_fails_when_chosen (void)
{
  scene self;
  cu_event event;

  scene_open (&self, CU_STREAM_NON_BLOCKING);
  fake_setting ("FAIL_CODE", 2);
  fake->set_fail_call ("cuEventCreate");
  fake_setting ("FAIL_AT", 2);
  fake_setting ("FAIL_COUNT", 2);
  CU (EventCreate (&event, 0));
  CU (EventDestroy (event));
  CHECK_INT (cu->EventCreate (&event, 0), 2);
  CHECK_INT (cu->EventCreate (&event, 0), 2);
  CU (EventCreate (&event, 0));
  CU (EventDestroy (event));
  CHECK_INT (fake_counters ().injected, 2);
  CHECK (strcmp (fake_counters ().failed_call, "cuEventCreate") == 0);
  scene_close (&self);
}

static void
calls_without_a_context_are_refused (void)
{
  cu_deviceptr device;
  cu_context context;
  cu_event event;

  find_functions ();
  CU (Init (0));
  CHECK_INT (cu->MemAlloc (&device, BYTES), 201);
  CHECK_INT (cu->EventCreate (&event, 0), 201);
  CU (DevicePrimaryCtxRetain (&context, 0));
  CHECK_INT (cu->MemAlloc (&device, BYTES), 201);
  CU (DevicePrimaryCtxRelease (0));
}

static void
what_is_left_in_a_context_is_counted (void)
{
  scene self;
  cu_event event;
  cu_context context;

  scene_open (&self, CU_STREAM_NON_BLOCKING);
  CU (EventCreate (&event, 0));
  CHECK_INT (fake_counters ().device_bytes, BYTES);
  CHECK_INT (fake_counters ().pinned_bytes, 2 * BYTES);
  CHECK_INT (fake_counters ().streams, 2);
  CHECK_INT (fake_counters ().events, 1);
  CU (CtxPopCurrent (&context));
  CU (DevicePrimaryCtxRelease (0));
  /* two streams, one event, one piece of device and two of pinned memory */
  CHECK_INT (fake_counters ().orphans, 6);
  CHECK_INT (fake_counters ().pinned_bytes, 0);
  expect_leak ();
}

static void
misuse_shows (void)
{
  scene self;
  unsigned char *foreign = aligned_alloc (4096, 2 * BYTES);

  CHECK (foreign != NULL);
  scene_open (&self, CU_STREAM_NON_BLOCKING);
  fake_setting ("ABORT", 0);
  /* over the end, after the end, of a neighbour */
  CHECK_INT (cu->MemcpyHtoDAsync (self.device + 1, self.from, BYTES, self.streams[0]), 1);
  CHECK_INT (fake_counters ().misuse, 1);
  CHECK_INT (cu->StreamDestroy ((cu_stream) (uintptr_t) 0x9990), 400);
  CHECK_INT (fake_counters ().misuse, 2);
  CU (MemHostRegister (foreign, BYTES, 0));
  CHECK_INT (cu->MemHostRegister (foreign + BYTES / 2, BYTES, 0), 712);
  CHECK_INT (cu->MemHostUnregister (foreign + BYTES), 713);
  CHECK_INT (cu->MemcpyHtoDAsync (self.device, foreign + BYTES / 2, BYTES, self.streams[0]), 1);
  CHECK_INT (fake_counters ().misuse, 3);
  block_stream (self.streams[0]);
  CU (MemcpyHtoDAsync (self.device, foreign, BYTES, self.streams[0]));
  CHECK_INT (cu->MemHostUnregister (foreign), 1);
  CHECK_INT (fake_counters ().misuse, 4);
  open_way ();
  fake->wait_idle ();
  CU (MemHostUnregister (foreign));
  scene_close (&self);
  fake->reset ();
  free (foreign);
}

static void
managed_memory_is_the_hosts_and_the_devices (void)
{
  scene self;
  cu_deviceptr managed;

  scene_open (&self, CU_STREAM_NON_BLOCKING);
  CHECK_INT (alloc_managed (&managed, BYTES, 1), CU_SUCCESS);
  memset ((void *) (uintptr_t) managed, 8, BYTES);
  CHECK_INT (fake_counters ().managed_bytes, BYTES);
  CU (MemFree (managed));
  fake_setting ("ATTRIBUTE_83", 0);
  CHECK_INT (alloc_managed (&managed, BYTES, 1), CU_ERROR_NOT_SUPPORTED);
  scene_close (&self);
}

/* In a child, which the signal ends where the memory is not the host's now. */
static bool
host_can_read (cu_deviceptr memory)
{
  int status;
  pid_t child = fork ();

  CHECK (child >= 0);
  if (child == 0) {
    const struct rlimit no_core = { 0, 0 };

    signal (SIGSEGV, SIG_DFL);
    setrlimit (RLIMIT_CORE, &no_core);
    for (unsigned i = 0; i < BYTES; i++)
      (void) ((const volatile unsigned char *) (uintptr_t) memory)[i];
    _exit (0);
  }
  CHECK_INT (waitpid (child, &status, 0), child);
  if (WIFEXITED (status) && WEXITSTATUS (status) == 0)
    return true;
  CHECK (WIFSIGNALED (status) && WTERMSIG (status) == SIGSEGV);
  return false;
}

static void
managed_memory_is_kept_from_the_host_while_the_device_works (void)
{
  for (int concurrent = 0; concurrent < 2; concurrent++) {
    cu_deviceptr managed;
    scene self;

    fake_setting ("ATTRIBUTE_89", concurrent);
    scene_open (&self, CU_STREAM_NON_BLOCKING);
    CHECK_INT (alloc_managed (&managed, BYTES, CU_MEM_ATTACH_GLOBAL), CU_SUCCESS);
    CHECK (host_can_read (managed));
    /* Work that has nothing to do with it. */
    block_stream (self.streams[1]);
    CHECK_INT (host_can_read (managed), concurrent);
    CU (MemsetD8Async (managed, 7, BYTES, self.streams[0]));
    CHECK_INT (stream_synchronize (self.streams[0]), CU_SUCCESS);
    CHECK_INT (host_can_read (managed), concurrent);
    open_way ();
    CHECK_INT (stream_synchronize (self.streams[1]), CU_SUCCESS);
    CHECK (host_can_read (managed));
    CHECK_INT (((unsigned char *) (uintptr_t) managed)[BYTES - 1], 7);
    CU (MemFree (managed));
    CHECK (!host_can_read (managed));
    scene_close (&self);
  }
}

static void
managed_memory_of_one_stream_waits_for_that_stream (void)
{
  cu_deviceptr managed;
  scene self;

  fake_setting ("ATTRIBUTE_89", 0);
  scene_open (&self, CU_STREAM_NON_BLOCKING);
  CHECK_INT (alloc_managed (&managed, BYTES, CU_MEM_ATTACH_HOST), CU_SUCCESS);
  block_stream (self.streams[1]);
  CHECK (host_can_read (managed));
  CHECK_INT (cu->StreamAttachMemAsync (NULL, managed, 0, CU_MEM_ATTACH_SINGLE),
      CU_ERROR_INVALID_VALUE);
  CU (StreamAttachMemAsync (self.streams[0], managed, 0, CU_MEM_ATTACH_SINGLE));
  CU (MemsetD8Async (managed, 7, BYTES, self.streams[0]));
  CHECK_INT (stream_synchronize (self.streams[0]), CU_SUCCESS);
  CHECK (host_can_read (managed));
  CHECK_INT (((unsigned char *) (uintptr_t) managed)[BYTES - 1], 7);
  open_way ();
  CHECK_INT (stream_synchronize (self.streams[1]), CU_SUCCESS);
  block_stream (self.streams[0]);
  CHECK (!host_can_read (managed));
  /* A stream that ends leaves it to whom it was first. */
  CU (StreamDestroy (self.streams[0]));
  CHECK (!host_can_read (managed));
  open_way ();
  fake->wait_idle ();
  CU (StreamCreate (&self.streams[0], CU_STREAM_NON_BLOCKING));
  block_stream (self.streams[0]);
  CHECK (host_can_read (managed));
  open_way ();
  CU (MemFree (managed));
  scene_close (&self);
}

static void
work_on_managed_memory_of_others_fails (void)
{
  for (int attached = 0; attached < 2; attached++) {
    cu_deviceptr managed;
    scene self;

    fake_setting ("ATTRIBUTE_89", 0);
    scene_open (&self, CU_STREAM_NON_BLOCKING);
    fake_setting ("ABORT", 0);
    CHECK_INT (alloc_managed (&managed, BYTES, CU_MEM_ATTACH_HOST), CU_SUCCESS);
    if (attached) {
      CU (StreamAttachMemAsync (self.streams[1], managed, 0, CU_MEM_ATTACH_SINGLE));
      CHECK_INT (stream_synchronize (self.streams[1]), CU_SUCCESS);
    }
    CU (MemsetD8Async (managed, 7, BYTES, self.streams[0]));
    CHECK_INT (stream_synchronize (self.streams[0]), 700);
    CHECK_INT (fake_counters ().misuse, 1);
    cu->MemFree (managed);
    scene_close (&self);
    fake->reset ();
  }
}

int
main (int argc, char **argv)
{
  static const test tests[] = {
    {"a_copy_takes_what_is_there_when_it_runs", a_copy_takes_what_is_there_when_it_runs},
    {"pageable_input_is_taken_at_the_call", pageable_input_is_taken_at_the_call},
    {"an_event_is_done_when_its_record_is", an_event_is_done_when_its_record_is},
    {"a_stream_waits_for_another_ones_event", a_stream_waits_for_another_ones_event},
    {"the_null_stream_takes_turns_with_blocking_streams_only",
        the_null_stream_takes_turns_with_blocking_streams_only},
    {"a_failed_operation_breaks_everything_after_it",
        a_failed_operation_breaks_everything_after_it},
    {"a_chosen_call_fails_when_chosen", a_chosen_call_fails_when_chosen},
    {"calls_without_a_context_are_refused", calls_without_a_context_are_refused},
    {"what_is_left_in_a_context_is_counted", what_is_left_in_a_context_is_counted},
    {"misuse_shows", misuse_shows},
    {"managed_memory_is_the_hosts_and_the_devices", managed_memory_is_the_hosts_and_the_devices},
    {"managed_memory_is_kept_from_the_host_while_the_device_works",
        managed_memory_is_kept_from_the_host_while_the_device_works},
    {"managed_memory_of_one_stream_waits_for_that_stream",
        managed_memory_of_one_stream_waits_for_that_stream},
    {"work_on_managed_memory_of_others_fails", work_on_managed_memory_of_others_fails},
    {NULL}
  };

  return run_tests (argc, argv, tests);
}
