/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The plugin's descriptor.  Registers the element whether or not there is a GPU. */
#include "gstcudastreamfilter.h"

#include "config.h"

#define PACKAGE "cudastreamfilter"

static gboolean
plugin_init (GstPlugin * plugin)
{
  return gst_element_register (plugin, "cudastreamfilter", GST_RANK_NONE,
      GST_TYPE_CUDA_STREAM_FILTER);
}

GST_PLUGIN_DEFINE (GST_VERSION_MAJOR, GST_VERSION_MINOR, cudastream,
    "Video filter on CUDA streams with overlapped copies", plugin_init, PACKAGE_VERSION, "LGPL",
    "cudastreamfilter", "https://gstreamer.freedesktop.org/")
