/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The fake profiler: takes part in NVTX's start as a real one does, and counts the ranges of every domain
 * by name.  Thread-safe. */
#include "fake_nvtx.h"

#include <nvtx3/nvToolsExt.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define EXPORT __attribute__ ((visibility ("default")))
#define MAX_DOMAINS 4
#define MAX_STRINGS 64
#define MAX_DEPTH 16

EXPORT int InitializeInjectionNvtx2 (NvtxGetExportTableFunc_t get_table);
EXPORT const fake_nvtx *fake_nvtx_get (void);

/* All under the lock.  Handles are addresses of these. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static fake_nvtx_counters counts;
static char domains[MAX_DOMAINS];
static char strings[MAX_STRINGS][32];

/* Open ranges: which of counts.ranges. */
static __thread unsigned stack[MAX_DEPTH];
static __thread unsigned depth;

static void
misuse_locked (const char *what)
{
  counts.misuse++;
  fprintf (stderr, "fake profiler: %s\n", what);
}

static bool
knows_locked (const void *handle, const char *first, size_t size, unsigned n)
{
  const char *at = handle;

  return at >= first && at < first + n * size && (size_t) (at - first) % size == 0;
}

static nvtxDomainHandle_t
create_domain (const char *name)
{
  void *handle = NULL;

  pthread_mutex_lock (&lock);
  if (counts.domains == MAX_DOMAINS) {
    misuse_locked ("more domains than anybody needs");
  } else {
    handle = &domains[counts.domains++];
    snprintf (counts.domain, sizeof counts.domain, "%s", name);
  }
  pthread_mutex_unlock (&lock);
  return handle;
}

static nvtxStringHandle_t
register_string (nvtxDomainHandle_t domain, const char *text)
{
  void *handle = NULL;

  pthread_mutex_lock (&lock);
  if (!knows_locked (domain, domains, 1, counts.domains))
    misuse_locked ("a string for a domain that was not created");
  else if (counts.strings == MAX_STRINGS)
    misuse_locked ("more strings than there are places");
  else
    handle = strcpy (strings[counts.strings++], strlen (text) < 32 ? text : "too long");
  pthread_mutex_unlock (&lock);
  return handle;
}

static unsigned
find_range_locked (const char *name)
{
  for (unsigned i = 0; i < counts.n_ranges; i++)
    if (strcmp (counts.ranges[i].name, name) == 0)
      return i;
  if (counts.n_ranges == FAKE_NVTX_MAX_RANGES) {
    misuse_locked ("more names than ranges are counted");
    return 0;
  }
  strcpy (counts.ranges[counts.n_ranges].name, name);
  return counts.n_ranges++;
}

static int
push_range (nvtxDomainHandle_t domain, const nvtxEventAttributes_t *attributes)
{
  pthread_mutex_lock (&lock);
  if (!knows_locked (domain, domains, 1, counts.domains)) {
    misuse_locked ("a range in a domain that was not created");
  } else if (attributes->version != NVTX_VERSION || attributes->size != sizeof *attributes
      || attributes->messageType != NVTX_MESSAGE_TYPE_REGISTERED
      || !knows_locked (attributes->message.registered, strings[0], sizeof strings[0],
          counts.strings)
      || attributes->payloadType != NVTX_PAYLOAD_TYPE_UNSIGNED_INT64) {
    misuse_locked ("a range without a registered name and a number");
  } else if (depth == MAX_DEPTH) {
    misuse_locked ("ranges pushed and never popped");
  } else {
    unsigned range = find_range_locked ((const char *) attributes->message.registered);

    counts.ranges[range].pushes++;
    counts.ranges[range].payload = attributes->payload.ullValue;
    stack[depth++] = range;
  }
  pthread_mutex_unlock (&lock);
  return (int) depth - 1;
}

static int
pop_range (nvtxDomainHandle_t domain)
{
  pthread_mutex_lock (&lock);
  if (!knows_locked (domain, domains, 1, counts.domains))
    misuse_locked ("a pop in a domain that was not created");
  else if (depth == 0)
    misuse_locked ("a pop where nothing was pushed");
  else
    counts.ranges[stack[--depth]].pops++;
  pthread_mutex_unlock (&lock);
  return (int) depth;
}

EXPORT int
InitializeInjectionNvtx2 (NvtxGetExportTableFunc_t get_table)
{
  const NvtxExportTableCallbacks *callbacks = get_table (NVTX_ETID_CALLBACKS);
  NvtxFunctionTable table = NULL;
  unsigned size = 0;

  if (callbacks == NULL || callbacks->struct_size < sizeof *callbacks
      || !callbacks->GetModuleFunctionTable (NVTX_CB_MODULE_CORE2, &table, &size)
      || size <= NVTX_CBID_CORE2_DomainCreateA)
    return 0;
  *table[NVTX_CBID_CORE2_DomainCreateA] = (NvtxFunctionPointer) create_domain;
  *table[NVTX_CBID_CORE2_DomainRegisterStringA] = (NvtxFunctionPointer) register_string;
  *table[NVTX_CBID_CORE2_DomainRangePushEx] = (NvtxFunctionPointer) push_range;
  *table[NVTX_CBID_CORE2_DomainRangePop] = (NvtxFunctionPointer) pop_range;
  return 1;
}

static void
api_get_counters (fake_nvtx_counters *result)
{
  pthread_mutex_lock (&lock);
  *result = counts;
  pthread_mutex_unlock (&lock);
}

/* Ranges that are open stay known. */
static void
api_reset (void)
{
  pthread_mutex_lock (&lock);
  counts.misuse = 0;
  for (unsigned i = 0; i < counts.n_ranges; i++)
    counts.ranges[i].pushes = counts.ranges[i].pops = counts.ranges[i].payload = 0;
  pthread_mutex_unlock (&lock);
}

EXPORT const fake_nvtx *
fake_nvtx_get (void)
{
  static const fake_nvtx api = {
    .get_counters = api_get_counters,
    .reset = api_reset,
  };

  return &api;
}
