/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Settings, failures to come and counters of the fake driver, and its end at process exit.  Knows
 * nothing of how operations run. */
#include "fake.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/format.h"

extern char **environ;

pthread_mutex_t fake_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t fake_changed = PTHREAD_COND_INITIALIZER;
fake_cuda_counters fake_counts;
fake_settings fake_set;
bool fake_exiting;
uint64_t fake_hang_epoch;

static bool configured;
static uint64_t counted_calls;  /* of those FAIL_CALL names */
static long long fail_from, async_fail_from, hang_from; /* absolute; 0 never */
static char fail_call[64];
static const char *count_file;
static const csfk_kernel *added[16];
static unsigned n_added;

typedef struct attribute_value
{
  bool set;
  int value;
} attribute_value;

static attribute_value attributes[FAKE_MAX_DEVICES][FAKE_MAX_ATTRIBUTES];

static const struct
{
  const char *name;
  size_t offset;
  long long initial;
} settings[] = {
  {"DEVICES", offsetof (fake_settings, devices), 1},
  {"DRIVER_VERSION", offsetof (fake_settings, driver_version), 13000},
  {"MEMORY", offsetof (fake_settings, memory), 1LL << 30},
  {"PINNED_MEMORY", offsetof (fake_settings, pinned_memory), INT64_MAX},
  {"DELAY_US", offsetof (fake_settings, delay_us), 100},
  {"SEED", offsetof (fake_settings, seed), 1},
  {"FAIL_AT", offsetof (fake_settings, fail_at), 0},
  {"FAIL_COUNT", offsetof (fake_settings, fail_count), 1},
  {"FAIL_CODE", offsetof (fake_settings, fail_code), 999},
  {"FAIL_STICKY", offsetof (fake_settings, fail_sticky), 0},
  {"ASYNC_FAIL_AT", offsetof (fake_settings, async_fail_at), 0},
  {"ASYNC_FAIL_CODE", offsetof (fake_settings, async_fail_code), FAKE_ERROR_ILLEGAL_ADDRESS},
  {"HANG_AT", offsetof (fake_settings, hang_at), 0},
  {"UPLOAD_US", offsetof (fake_settings, upload_us), 0},
  {"KERNEL_US", offsetof (fake_settings, kernel_us), 0},
  {"DOWNLOAD_US", offsetof (fake_settings, download_us), 0},
  {"ABORT", offsetof (fake_settings, abort_on_misuse), 1},
};

static const struct
{
  int attribute, value;
} usual_attributes[] = {
  {1, 1024}, {2, 1024}, {3, 1024}, {4, 64}, {5, 0x7fffffff}, {6, 65535}, {7, 65535}, {8, 49152},
  {10, 32}, {11, 0x7fffffff}, {12, 65536}, {13, 1500000}, {14, 512}, {15, 1},
  {CU_ATTRIBUTE_MULTIPROCESSOR_COUNT, 4}, {19, 1}, {31, 1}, {33, 1}, {36, 7000000}, {37, 256},
  {39, 2048}, {40, 2}, {41, 1}, {CU_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 8},
  {CU_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 6}, {83, 1}, {88, 1}, {89, 1}, {91, 1},
  {CU_ATTRIBUTE_HOST_REGISTER_SUPPORTED, 1},
};

int
fake_attribute (int device, int attribute)
{
  if (attributes[device][attribute].set)
    return attributes[device][attribute].value;
  for (size_t i = 0; i < sizeof usual_attributes / sizeof usual_attributes[0]; i++)
    if (usual_attributes[i].attribute == attribute)
      return usual_attributes[i].value;
  return 0;
}

static bool
set_attribute (const char *name, long long value)
{
  unsigned device, attribute, first = 0, last = FAKE_MAX_DEVICES - 1;

  if (sscanf (name, "DEVICE_%u_ATTRIBUTE_%u", &device, &attribute) == 2)
    first = last = device;
  else if (sscanf (name, "ATTRIBUTE_%u", &attribute) != 1)
    return false;
  if (last >= FAKE_MAX_DEVICES || attribute >= FAKE_MAX_ATTRIBUTES)
    return false;
  for (unsigned d = first; d <= last; d++) {
    attributes[d][attribute].set = true;
    attributes[d][attribute].value = (int) value;
  }
  return true;
}

/* Relative settings count from the moment they are made. */
static bool
set_locked (const char *name, long long value)
{
  for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
    if (strcmp (settings[i].name, name) != 0)
      continue;
    *(long long *) ((char *) &fake_set + settings[i].offset) = value;
    if (strcmp (name, "FAIL_AT") == 0)
      fail_from = value == 0 ? 0 : (long long) counted_calls + value;
    else if (strcmp (name, "ASYNC_FAIL_AT") == 0)
      async_fail_from = value == 0 ? 0 : (long long) fake_counts.operations + value;
    else if (strcmp (name, "HANG_AT") == 0)
      hang_from = value == 0 ? 0 : (long long) fake_counts.operations + value;
    else if (strcmp (name, "DEVICES") == 0 && value > FAKE_MAX_DEVICES)
      fake_set.devices = FAKE_MAX_DEVICES;
    return true;
  }
  return set_attribute (name, value);
}

static void
set_fail_call_locked (const char *name)
{
  snprintf (fail_call, sizeof fail_call, "%s", name == NULL ? "" : name);
  if (name != NULL && fake_set.fail_at == 0)
    set_locked ("FAIL_AT", 1);
}

static void
read_environment_locked (void)
{
  static const char prefix[] = "FAKE_CUDA_";
  const char *call = getenv ("FAKE_CUDA_FAIL_CALL");

  memset (attributes, 0, sizeof attributes);
  for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++)
    set_locked (settings[i].name, settings[i].initial);
  for (char **entry = environ; entry != NULL && *entry != NULL; entry++) {
    const char *equals = strchr (*entry, '=');
    char name[64];

    if (strncmp (*entry, prefix, sizeof prefix - 1) != 0 || equals == NULL)
      continue;
    snprintf (name, sizeof name, "%.*s", (int) (equals - *entry) - (int) (sizeof prefix - 1),
        *entry + sizeof prefix - 1);
    if (strcmp (name, "FAIL_CALL") == 0 || strcmp (name, "COUNT_FILE") == 0)
      continue;
    if (!set_locked (name, strtoll (equals + 1, NULL, 0))) {
      fprintf (stderr, "fake libcuda: there is no setting %s\n", name);
      abort ();
    }
  }
  set_fail_call_locked (call);
}

static void
write_counts (void)
{
  FILE *file = count_file == NULL ? NULL : fopen (count_file, "w");

  if (file == NULL)
    return;
  fprintf (file, "calls %llu\noperations %llu\nkernels %llu\ninjected %llu\nmisuse %llu\n"
      "orphans %llu\npageable_copies %llu\nallocations %llu\n",
      (unsigned long long) fake_counts.calls, (unsigned long long) fake_counts.operations,
      (unsigned long long) fake_counts.kernels, (unsigned long long) fake_counts.injected,
      (unsigned long long) fake_counts.misuse, (unsigned long long) fake_counts.orphans,
      (unsigned long long) fake_counts.pageable_copies,
      (unsigned long long) fake_counts.allocations);
  fclose (file);
}

/* As with the real driver, calls made by later exit handlers are refused. */
static void
at_exit (void)
{
  pthread_mutex_lock (&fake_lock);
  fake_exiting = true;
  pthread_cond_broadcast (&fake_changed);
  for (fake_context *context = fake_contexts; context != NULL; context = context->next)
    fake_context_end_streams (context);
  write_counts ();
  pthread_mutex_unlock (&fake_lock);
}

void
fake_configure (void)
{
  if (configured)
    return;
  configured = true;
  count_file = getenv ("FAKE_CUDA_COUNT_FILE");
  read_environment_locked ();
  atexit (at_exit);
}

cu_result
fake_misuse (cu_result result, const char *format, ...)
{
  va_list args;

  fake_counts.misuse++;
  fputs ("fake libcuda: ", stderr);
  va_start (args, format);
  vfprintf (stderr, format, args);
  va_end (args);
  fputc ('\n', stderr);
  if (fake_set.abort_on_misuse)
    abort ();
  return result;
}

static bool
next_call_fails (const char *name)
{
  fake_counts.calls++;
  if (fail_call[0] != '\0' && strcmp (fail_call, name) != 0)
    return false;
  counted_calls++;
  if (fail_from == 0 || (long long) counted_calls < fail_from)
    return false;
  return fake_set.fail_count == 0 || (long long) counted_calls < fail_from + fake_set.fail_count;
}

bool
fake_call_begin (fake_call *call, const char *name, unsigned needs)
{
  bool fails;

  pthread_mutex_lock (&fake_lock);
  fake_configure ();
  call->result = CU_SUCCESS;
  call->context = fake_context_current ();
  fails = next_call_fails (name);
  if (fake_exiting) {
    call->result = FAKE_ERROR_DEINITIALIZED;
  } else if ((needs & FAKE_NEEDS_INIT) && !fake_initialized) {
    call->result = FAKE_ERROR_NOT_INITIALIZED;
  } else if ((needs & FAKE_NEEDS_CONTEXT) == FAKE_NEEDS_CONTEXT && call->context == NULL) {
    call->result = FAKE_ERROR_INVALID_CONTEXT;
  } else if (fails) {
    fake_counts.injected++;
    fake_counts.failed_call = name;
    if (call->context != NULL && ((needs & FAKE_ASKS) || fake_set.fail_sticky))
      fake_context_break (call->context, (cu_result) fake_set.fail_code);
    call->result = (cu_result) fake_set.fail_code;
    if (needs & (FAKE_GIVES_BACK | FAKE_ENTERS))
      return true;
  } else {
    if ((needs & FAKE_NEEDS_CONTEXT) == FAKE_NEEDS_CONTEXT)
      call->result = call->context->error;
    if (call->result == CU_SUCCESS || (needs & FAKE_GIVES_BACK))
      return true;
  }
  pthread_mutex_unlock (&fake_lock);
  return false;
}

cu_result
fake_call_end (fake_call *call, cu_result result)
{
  pthread_mutex_unlock (&fake_lock);
  return call->result != CU_SUCCESS ? call->result : result;
}

int
fake_next_operation (void)
{
  long long n = (long long) ++fake_counts.operations;

  if (n == async_fail_from || n == hang_from)
    fake_counts.injected++;
  return n == async_fail_from ? 1 : n == hang_from ? 2 : 0;
}

/* Our own functions are csfk_NAME, which does the kernel's whole work here, and csfk_NAME_part, which does
 * nothing; a user's have the name that a test gave to what stands in for them. */
const csfk_kernel *
fake_kernel_find (const char *symbol, bool *is_part)
{
  char name[128];

  *is_part = false;
  for (unsigned i = 0; i < n_added; i++)
    if (strcmp (added[i]->name, symbol) == 0)
      return added[i];
  if (strncmp (symbol, "csfk_", 5) != 0)
    return NULL;
  snprintf (name, sizeof name, "%s", symbol + 5);
  for (;;) {
    const csfk_kernel *kernel;
    char *end;

    for (unsigned i = 0; i < n_added; i++)
      if (strcmp (added[i]->name, name) == 0)
        return added[i];
    kernel = csfk_kernel_find (name);
    if (kernel != NULL)
      return kernel;
    end = strrchr (name, '_');
    if (end == NULL)
      return NULL;
    *end = '\0';
    *is_part = true;
  }
}

static int
api_set (const char *name, long long value)
{
  bool known;

  pthread_mutex_lock (&fake_lock);
  fake_configure ();
  known = set_locked (name, value);
  pthread_mutex_unlock (&fake_lock);
  return known;
}

static void
api_set_fail_call (const char *name)
{
  pthread_mutex_lock (&fake_lock);
  fake_configure ();
  set_fail_call_locked (name);
  pthread_mutex_unlock (&fake_lock);
}

static void
api_add_kernel (const csfk_kernel *kernel)
{
  pthread_mutex_lock (&fake_lock);
  if (n_added == sizeof added / sizeof added[0])
    fake_misuse (CU_SUCCESS, "no room for one more kernel");
  else
    added[n_added++] = kernel;
  pthread_mutex_unlock (&fake_lock);
}

static unsigned
count_running (void)
{
  unsigned running = 0;

  for (fake_context *context = fake_contexts; context != NULL; context = context->next)
    for (fake_stream *stream = context->streams; stream != NULL; stream = stream->next)
      for (fake_op *op = stream->first; op != NULL; op = op->next)
        running++;
  return running;
}

static void
api_get_counters (fake_cuda_counters *counters)
{
  pthread_mutex_lock (&fake_lock);
  fake_streams_reap ();
  *counters = fake_counts;
  if (counters->failed_call == NULL)
    counters->failed_call = "";
  counters->streams = fake_object_count (FAKE_STREAM, NULL);
  counters->events = fake_object_count (FAKE_EVENT, NULL);
  counters->modules = fake_object_count (FAKE_MODULE, NULL);
  counters->contexts = fake_object_count (FAKE_CONTEXT, NULL);
  counters->running = count_running ();
  for (fake_range *range = fake_ranges; range != NULL; range = range->next) {
    if (range->type == FAKE_RANGE_DEVICE) {
      counters->device_bytes += range->size;
    } else if (range->type == FAKE_RANGE_MANAGED) {
      counters->managed_bytes += range->size;
    } else {
      counters->pinned_bytes += range->size;
      counters->pinned_ranges++;
    }
  }
  pthread_mutex_unlock (&fake_lock);
}

static void
api_release_hang (void)
{
  pthread_mutex_lock (&fake_lock);
  fake_hang_epoch++;
  hang_from = 0;
  pthread_cond_broadcast (&fake_changed);
  pthread_mutex_unlock (&fake_lock);
}

static void
api_wait_idle (void)
{
  pthread_mutex_lock (&fake_lock);
  for (fake_context *context = fake_contexts; context != NULL; context = context->next)
    fake_context_drain (context);
  pthread_mutex_unlock (&fake_lock);
}

static void
api_reset (void)
{
  uint64_t references;

  pthread_mutex_lock (&fake_lock);
  fake_configure ();
  references = fake_counts.primary_references;
  memset (&fake_counts, 0, sizeof fake_counts);
  fake_counts.primary_references = references;
  counted_calls = 0;
  read_environment_locked ();
  pthread_mutex_unlock (&fake_lock);
}

FAKE_EXPORT const fake_cuda *
fake_cuda_get (void)
{
  static const fake_cuda api = {
    .set = api_set,
    .set_fail_call = api_set_fail_call,
    .add_kernel = api_add_kernel,
    .get_counters = api_get_counters,
    .release_hang = api_release_hang,
    .wait_idle = api_wait_idle,
    .reset = api_reset,
  };

  return &api;
}
