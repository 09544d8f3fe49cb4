/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The element's settings: what a user can set. */
#ifndef GST_CSF_PROPERTIES_H
#define GST_CSF_PROPERTIES_H

#include <gst/gst.h>

#include "engine/csf.h"

G_BEGIN_DECLS

typedef enum
{
  GST_CSF_BACKEND_AUTO,
  GST_CSF_BACKEND_CUDA,
  GST_CSF_BACKEND_CPU,
} GstCsfBackend;

#define GST_TYPE_CSF_BACKEND (gst_csf_backend_get_type ())
GType gst_csf_backend_get_type (void);

#define GST_TYPE_CSF_METADATA_MEMORY (gst_csf_metadata_memory_get_type ())
GType gst_csf_metadata_memory_get_type (void);

/* "managed", "pinned", "device" or "auto". */
const gchar *gst_csf_metadata_memory_get_nick (csf_metadata_memory memory);

/* Property ids. */
enum
{
  GST_CSF_PROP_0,
  GST_CSF_PROP_BACKEND,
  GST_CSF_PROP_CUDA_DEVICE_ID,
  GST_CSF_PROP_NUM_STREAMS,
  GST_CSF_PROP_KERNEL,
  GST_CSF_PROP_KERNEL_PARAMS,
  GST_CSF_PROP_KERNEL_FILE,
  GST_CSF_PROP_KERNEL_FUNCTION,
  GST_CSF_PROP_KERNEL_LIBRARY,
  GST_CSF_PROP_RELOAD,
  GST_CSF_PROP_METADATA_MEMORY,
  GST_CSF_PROP_MAX_RECORDS,
  GST_CSF_PROP_MAX_PINNED_MEMORY,
  GST_CSF_PROP_QOS,
  GST_CSF_PROP_SILENT,
  GST_CSF_PROP_FPS_UPDATE_INTERVAL,
  GST_CSF_PROP_LAST_MESSAGE,
  GST_CSF_PROP_STATS,
  GST_CSF_PROP_TRACE_LOCATION,
  GST_CSF_N_PROPS
};

/* What the user set.  The element keeps one under its object lock. */
typedef struct
{
  GstCsfBackend backend;
  gint cuda_device_id;
  guint num_streams;
  gchar *kernel;
  gchar *kernel_params;         /* NULL: all defaults */
  guint params_serial;          /* counts settings of kernel_params */
  gchar *kernel_file, *kernel_function, *kernel_library;        /* NULL: none */
  gboolean reload;
  csf_metadata_memory metadata_memory;
  guint max_records;
  guint64 max_pinned_memory;
  gboolean qos, silent;
  guint fps_update_interval;    /* ms, 0 off */
  gchar *trace_location;        /* NULL: none */
} GstCsfSettings;

void gst_csf_settings_init (GstCsfSettings * settings);
void gst_csf_settings_clear (GstCsfSettings * settings);
GstCsfSettings gst_csf_settings_copy (const GstCsfSettings * settings);

void gst_csf_properties_install (GObjectClass * klass, GParamSpec ** specs);

/* FALSE: not one of the settings. */
gboolean gst_csf_settings_set (GstCsfSettings * settings, guint id, const GValue * value);
gboolean gst_csf_settings_get (const GstCsfSettings * settings, guint id, GValue * value);

G_END_DECLS
#endif
