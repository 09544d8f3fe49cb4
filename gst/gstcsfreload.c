/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Loads a kernel anew when its files change.  Looks at them a few times a second, and waits until they
 * stay the same between two looks, so that a file half written is left alone.  Knows no pads. */
#include "gstcsfreload.h"

#define LOOK_INTERVAL_US (100 * G_TIME_SPAN_MILLISECOND)

struct _GstCsfReload
{
  GstCsfSettings settings;
  csf_device *device;
  /* What is looked at: the files of the version loaded last, or of one that could not be. */
  GstCsfKernel *kernel;
  GstCsfSources *refused;
  gchar *tried, *seen;          /* stamps: of the version loaded last, and at the last look */
  gint64 next_look;

  GThread *loader;              /* NULL: nothing is under way */
  gint finished;                /* atomic, set by the loader at its end; then it is done with these */
  GstCsfKernel *loaded;
  GstCsfKernelError error;
};

/* Looks at these files from now on; one of the two is NULL.  Takes both. */
static void
watch (GstCsfReload * self, GstCsfKernel * kernel, GstCsfSources * refused)
{
  const GstCsfSources *sources = kernel != NULL ? gst_csf_kernel_get_sources (kernel) : refused;

  if (sources == NULL)
    return;
  gst_csf_kernel_unref (self->kernel);
  g_clear_pointer (&self->refused, gst_csf_sources_free);
  self->kernel = kernel;
  self->refused = refused;
  g_free (self->tried);
  self->tried = g_strdup (gst_csf_sources_get_stamp (sources));
}

GstCsfReload *
gst_csf_reload_new (const GstCsfSettings * settings, GstCsfKernel * kernel, csf_device * device)
{
  GstCsfReload *self = g_new0 (GstCsfReload, 1);

  self->settings = gst_csf_settings_copy (settings);
  self->device = csf_device_ref (device);
  watch (self, gst_csf_kernel_ref (kernel), NULL);
  return self;
}

void
gst_csf_reload_free (GstCsfReload * self)
{
  if (self == NULL)
    return;
  if (self->loader != NULL)
    g_thread_join (self->loader);
  gst_csf_kernel_unref (self->loaded);
  gst_csf_kernel_error_clear (&self->error);
  gst_csf_kernel_unref (self->kernel);
  g_clear_pointer (&self->refused, gst_csf_sources_free);
  csf_device_unref (self->device);
  gst_csf_settings_clear (&self->settings);
  g_free (self->tried);
  g_free (self->seen);
  g_free (self);
}

static gpointer
load (gpointer user_data)
{
  GstCsfReload *self = user_data;

  self->loaded = gst_csf_kernel_load (&self->settings, self->device, &self->error);
  g_atomic_int_set (&self->finished, TRUE);
  return NULL;
}

/* Starts the loader when there is a new version that seems complete. */
static void
look (GstCsfReload * self)
{
  gchar *stamp = gst_csf_sources_look (self->kernel != NULL ?
      gst_csf_kernel_get_sources (self->kernel) : self->refused);
  gboolean steady = g_strcmp0 (stamp, self->seen) == 0;

  g_free (self->seen);
  self->seen = stamp;
  if (stamp == NULL || !steady || g_strcmp0 (stamp, self->tried) == 0)
    return;
  g_free (self->tried);
  self->tried = g_strdup (stamp);
  self->finished = FALSE;
  self->loader = g_thread_try_new ("csf-kernel-file", load, self, NULL);
}

gboolean
gst_csf_reload_poll (GstCsfReload * self, GstCsfKernel ** kernel, GstCsfKernelError * error)
{
  gint64 now;

  if (self->loader != NULL) {
    if (!g_atomic_int_get (&self->finished))
      return FALSE;
    g_thread_join (self->loader);
    self->loader = NULL;
    *kernel = self->loaded;
    *error = self->error;
    self->loaded = NULL;
    self->error = (GstCsfKernelError) { NULL, NULL, NULL };
    watch (self, *kernel == NULL ? NULL : gst_csf_kernel_ref (*kernel), error->sources);
    error->sources = NULL;
    return TRUE;
  }
  now = g_get_monotonic_time ();
  if (now < self->next_look)
    return FALSE;
  self->next_look = now + LOOK_INTERVAL_US;
  look (self);
  return FALSE;
}
