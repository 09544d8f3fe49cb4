/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The only caller of the backend tables: devices are opened and counted here, and what every backend
 * may rely on is checked here once.  Knows no particular backend beyond its table. */
#include "backend.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const csf_backend_ops *const backends[] = {
  [CSF_BACKEND_CPU] = &csf_backend_cpu,
  [CSF_BACKEND_CUDA] = &csf_backend_cuda,
};

const char *
csf_stage_name (csf_stage stage)
{
  static const char *const names[] = { "open", "upload", "kernel", "download", "wait", "close" };

  assert ((unsigned) stage < sizeof names / sizeof names[0]);
  return names[stage];
}

/* A text that was cut ends with a whole character of UTF-8. */
static void
cut_character (char *text)
{
  size_t length = strlen (text);

  while (length > 0 && ((unsigned char) text[length - 1] & 0xc0) == 0x80)
    length--;
  if (length > 0 && (unsigned char) text[length - 1] >= 0xc0)
    length--;
  text[length] = '\0';
}

csf_status
csf_error_set (csf_error *error, csf_status status, csf_stage stage, uint64_t frame,
    int driver_code, const char *format, ...)
{
  va_list args;
  int n;

  if (error == NULL)
    return status;
  error->status = status;
  error->stage = stage;
  error->frame = frame;
  error->driver_code = driver_code;
  va_start (args, format);
  n = vsnprintf (error->text, sizeof error->text, format, args);
  va_end (args);
  if (n >= (int) sizeof error->text)
    cut_character (error->text);
  return status;
}

csf_status
csf_device_probe (csf_backend_type backend, int id, csf_error *error)
{
  assert ((unsigned) backend < sizeof backends / sizeof backends[0]);
  return backends[backend]->probe (id, error);
}

static void
device_init (csf_device *device, const csf_backend_ops *ops)
{
  device->ops = ops;
  device->info.backend = ops->type;
  device->info.backend_name = ops->name;
  device->info.pins = ops->pin != NULL;
  atomic_init (&device->refs, 1);
}

csf_status
csf_device_open (csf_backend_type backend, int id, csf_device **device, csf_error *error)
{
  const csf_backend_ops *ops;
  csf_status status;

  assert ((unsigned) backend < sizeof backends / sizeof backends[0]);
  ops = backends[backend];
  *device = NULL;
  status = ops->open (id, device, error);
  if (status == CSF_OK)
    device_init (*device, ops);
  return status;
}

csf_status
csf_device_open_context (void *context, void (*release) (void *owner), void *owner,
    csf_device **device, csf_error *error)
{
  csf_status status;

  assert (context != NULL);
  *device = NULL;
  status = csf_backend_cuda.open_context (context, release, owner, device, error);
  if (status == CSF_OK)
    device_init (*device, &csf_backend_cuda);
  return status;
}

void *
csf_device_get_context (const csf_device *device)
{
  return device->ops->get_context == NULL ? NULL : device->ops->get_context (device);
}

csf_device *
csf_device_ref (csf_device *device)
{
  atomic_fetch_add_explicit (&device->refs, 1, memory_order_relaxed);
  return device;
}

void
csf_device_unref (csf_device *device)
{
  if (device != NULL && atomic_fetch_sub_explicit (&device->refs, 1, memory_order_acq_rel) == 1)
    device->ops->close (device);
}

const csf_device_info *
csf_device_get_info (const csf_device *device)
{
  return &device->info;
}

csf_status
csf_device_inspect (csf_device *device, const csfk_blob *code, const char *origin, const char *name,
    csf_function *function, csf_error *error)
{
  assert (code != NULL && code->size > 0 && origin != NULL);
  memset (function, 0, sizeof *function);
  if (device->ops->inspect == NULL)
    return csf_error_set (error, CSF_ERROR_UNSUPPORTED, CSF_STAGE_OPEN, CSF_NO_FRAME, 0,
        "%s is code for a GPU; the %s backend cannot run it", origin, device->info.backend_name);
  return device->ops->inspect (device, code, origin, name, function, error);
}

bool
csf_backend_pins (const csf_device *device)
{
  return device->ops->pin != NULL;
}

csf_status
csf_backend_pin (csf_device *device, void *data, size_t size, csf_error *error)
{
  assert (data != NULL && size > 0);
  return device->ops->pin (device, data, size, error);
}

void
csf_backend_unpin (csf_device *device, void *data)
{
  assert (data != NULL);
  device->ops->unpin (device, data);
}

void *
csf_backend_alloc_pinned (csf_device *device, size_t size)
{
  return device->ops->alloc_pinned == NULL ? NULL : device->ops->alloc_pinned (device, size);
}

void
csf_backend_free_pinned (csf_device *device, void *data)
{
  assert (device->ops->free_pinned != NULL && data != NULL);
  device->ops->free_pinned (device, data);
}

static bool
layout_is_sound (const csf_layout *layout)
{
  const csfk_image *image = &layout->image;

  if (image->n_planes < 1 || image->n_planes > CSFK_MAX_PLANES)
    return false;
  for (int p = 0; p < image->n_planes; p++) {
    const csfk_plane *plane = &image->plane[p];

    if (plane->rows < 1 || plane->row_bytes < 1 || plane->stride < plane->row_bytes)
      return false;
    if (layout->offset[p] + (size_t) (plane->rows - 1) * (size_t) plane->stride
        + (size_t) plane->row_bytes > layout->size)
      return false;
  }
  return true;
}

const char *
csf_reason (char *reason, size_t size)
{
  reason[size - 1] = '\0';
  return reason[0] != '\0' ? reason : "it gives no reason";
}

size_t
csf_session_state_size (const csf_config *config)
{
  const csfk_kernel *kernel = config->kernel;

  return kernel->state_size == NULL ? 0 :
      kernel->state_size (kernel, &config->in.image, &config->out.image);
}

size_t
csf_session_workspace_size (const csf_config *config)
{
  const csfk_kernel *kernel = config->kernel;

  return kernel->workspace_size == NULL ? 0
      : kernel->workspace_size (kernel, &config->in.image, &config->out.image);
}

static csf_status
check_records (const csfk_kernel *kernel, csf_error *error)
{
  const unsigned size = kernel->record_size;
  const char *name = kernel->name;

  if (size == 0 && kernel->emit == NULL && kernel->collect == NULL)
    return CSF_OK;
  if (size == 0 || size % 4 != 0)
    return csf_error_set (error, CSF_ERROR_ARGUMENT, CSF_STAGE_OPEN, CSF_NO_FRAME, 0,
        "kernel \"%s\" has records of %u bytes; expected a multiple of 4, and more than 0", name, size);
  if (kernel->record_name == NULL)
    return csf_error_set (error, CSF_ERROR_ARGUMENT, CSF_STAGE_OPEN, CSF_NO_FRAME, 0,
        "kernel \"%s\" has records without a record_name", name);
  if (kernel->record_kind == CSFK_RECORD_OBJECT && size != sizeof (csfk_object))
    return csf_error_set (error, CSF_ERROR_ARGUMENT, CSF_STAGE_OPEN, CSF_NO_FRAME, 0,
        "kernel \"%s\" has objects of %u bytes; expected the %zu of csfk_object", name, size,
        sizeof (csfk_object));
  if (kernel->record_kind == CSFK_RECORD_POINT && size != sizeof (csfk_point))
    return csf_error_set (error, CSF_ERROR_ARGUMENT, CSF_STAGE_OPEN, CSF_NO_FRAME, 0,
        "kernel \"%s\" has points of %u bytes; expected the %zu of csfk_point", name, size,
        sizeof (csfk_point));
  if (kernel->record_kind < CSFK_RECORD_OTHER || kernel->record_kind > CSFK_RECORD_POINT)
    return csf_error_set (error, CSF_ERROR_ARGUMENT, CSF_STAGE_OPEN, CSF_NO_FRAME, 0,
        "kernel \"%s\" has records of kind %d, which does not exist", name, kernel->record_kind);
  return CSF_OK;
}

csf_status
csf_backend_session_open (csf_device *device, const csf_config *config, csf_session **session,
    csf_error *error)
{
  csf_status status;

  *session = NULL;
  if (config->num_streams < 1 || config->num_streams > CSF_MAX_STREAMS)
    return csf_error_set (error, CSF_ERROR_ARGUMENT, CSF_STAGE_OPEN, CSF_NO_FRAME, 0,
        "expected 1 to %d streams, got %u", CSF_MAX_STREAMS, config->num_streams);
  if (config->kernel->abi != CSFK_ABI || config->kernel->params_size > CSFK_MAX_PARAMS)
    return csf_error_set (error, CSF_ERROR_ARGUMENT, CSF_STAGE_OPEN, CSF_NO_FRAME, 0,
        "kernel \"%s\" was built for contract %u, this engine speaks %d", config->kernel->name,
        config->kernel->abi, CSFK_ABI);
  if (!layout_is_sound (&config->in) || !layout_is_sound (&config->out))
    return csf_error_set (error, CSF_ERROR_ARGUMENT, CSF_STAGE_OPEN, CSF_NO_FRAME, 0,
        "a plane of the %dx%d frame layout does not fit its memory", config->in.image.width,
        config->in.image.height);
  status = check_records (config->kernel, error);
  if (status != CSF_OK)
    return status;
  status = device->ops->session_open (device, config, session, error);
  if (status == CSF_OK)
    (*session)->device = device;
  return status;
}

void
csf_backend_session_close (csf_session *session)
{
  if (session != NULL)
    session->device->ops->session_close (session);
}

csf_status
csf_backend_start (csf_session *session, unsigned slot, const csf_job *job,
    const csf_record_buffer *records, csf_run run, csf_error *error)
{
  return session->device->ops->start (session, slot, job, records, run, error);
}

csf_status
csf_backend_record_alloc (csf_session *session, unsigned capacity, csf_record_buffer *buffer,
    csf_error *error)
{
  assert (capacity > 0);
  return session->device->ops->record_alloc (session, capacity, buffer, error);
}

void
csf_backend_record_free (csf_session *session, csf_record_buffer *buffer)
{
  session->device->ops->record_free (session, buffer);
}

unsigned
csf_backend_record_count (csf_session *session, unsigned slot)
{
  return session->device->ops->record_count (session, slot);
}

csf_status
csf_backend_emit (csf_session *session, unsigned slot, const csf_record_buffer *buffer,
    csf_error *error)
{
  return session->device->ops->emit (session, slot, buffer, error);
}

csf_status
csf_backend_record_fetch (csf_session *session, unsigned slot, unsigned n, csf_error *error)
{
  return session->device->ops->record_fetch (session, slot, n, error);
}

const void *
csf_backend_record_data (csf_session *session, unsigned slot)
{
  return session->device->ops->record_data (session, slot);
}

csf_status
csf_backend_wait (csf_session *session, unsigned slot, uint64_t timeout_ns, csf_error *error)
{
  return session->device->ops->wait (session, slot, timeout_ns, error);
}

void
csf_backend_get_times (csf_session *session, unsigned slot, csf_times *times)
{
  memset (times, 0, sizeof *times);
  session->device->ops->get_times (session, slot, times);
}

uint64_t
csf_backend_get_growths (csf_session *session)
{
  return atomic_load (&session->growths);
}

uint64_t
csf_backend_get_device_bytes (csf_session *session)
{
  return session->device->ops->get_device_bytes (session);
}
