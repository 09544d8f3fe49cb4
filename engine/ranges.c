/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* NVTX ranges.  The only file that includes NVTX, whose header finds the profiler's library at run time and
 * brings no library of its own.  In a build without NVTX there is nothing here. */
#include "ranges.h"

#ifdef CSF_NVTX

#include <nvtx3/nvToolsExt.h>
#include <pthread.h>
#include <stdatomic.h>

static pthread_once_t create_once = PTHREAD_ONCE_INIT;
static nvtxDomainHandle_t domain;       /* NULL: no profiler, and none can come later */

static void
create_domain (void)
{
  domain = nvtxDomainCreateA ("cudastreamfilter");
}

static nvtxStringHandle_t
get_string (csf_range *range)
{
  void *string = atomic_load_explicit (&range->registered, memory_order_acquire);

  /* Two threads at once get the same handle, or two that are as good. */
  if (string == NULL) {
    string = nvtxDomainRegisterStringA (domain, range->name);
    atomic_store_explicit (&range->registered, string, memory_order_release);
  }
  return string;
}

void
csf_range_begin (csf_range *range, uint64_t frame)
{
  nvtxEventAttributes_t attributes = { 0 };

  pthread_once (&create_once, create_domain);
  if (domain == NULL)
    return;
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  attributes.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  attributes.message.registered = get_string (range);
  attributes.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
  attributes.payload.ullValue = frame;
  nvtxDomainRangePushEx (domain, &attributes);
}

void
csf_range_pop (void)
{
  if (domain != NULL)
    nvtxDomainRangePop (domain);
}

#endif
