/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The element's type and state.  gstcudastreamfilter.c holds pads, events, queries and the two threads'
 * code; gstcsfnegotiation.c what happens at caps: device, engine, pools. */
#ifndef GST_CUDA_STREAM_FILTER_H
#define GST_CUDA_STREAM_FILTER_H

#include <gst/gst.h>
#include <gst/video/video.h>

#include "engine/csf.h"
#include "engine/hostpool.h"
#include "engine/queue.h"
#include "gstcsfframe.h"
#include "gstcsfproperties.h"
#include "gstcsfstats.h"

G_BEGIN_DECLS

#define GST_TYPE_CUDA_STREAM_FILTER (gst_cuda_stream_filter_get_type ())
G_DECLARE_FINAL_TYPE (GstCudaStreamFilter, gst_cuda_stream_filter, GST, CUDA_STREAM_FILTER, GstElement)

struct _GstCudaStreamFilter
{
  GstElement parent;
  GstPad *sinkpad, *srcpad;

  /* Under the object lock. */
  GstCsfSettings settings;
  gchar *last_message;

  csf_queue *queue;             /* lives as long as the element */
  GstCsfStats *stats;           /* likewise; locks itself */

  /* Under `lock`. */
  GMutex lock;
  GstFlowReturn flow;           /* what the next chain call returns, if not GST_FLOW_OK */
  gboolean flow_reported;       /* upstream has got it, or the application an error message */
  gboolean eos_queued;          /* upstream is done and will not see a flow return any more */
  GstClockTime earliest_time;   /* QoS: running time before which frames come too late */
  GstClockTime latency;         /* what the last LATENCY answer added */
  gint fps_n, fps_d;

  /* Written in READY and by the src task while the sink thread waits at a barrier (or is stopped),
   * under `lock` since other threads look; these two threads read without it. */
  GstCsfSettings run;           /* settings this run began with */
  const csfk_kernel *kernel;
  csf_device *device;
  csf_hostpool *hostpool;
  csf_engine *engine;
  GstBufferPool *pool;
  GstVideoInfo input_info, output_info;
  csf_layout input_layout, output_layout;
  guint num_streams;

  /* Sink thread. */
  GstSegment segment;
  guint64 frame_count;
  guint params_serial;          /* of settings.kernel_params in `params` */
  guint8 params[CSFK_MAX_PARAMS] __attribute__ ((aligned (16)));

  /* Src task. */
  gboolean downstream_eos;      /* drop frames until a new stream or segment begins */
};

/* ---- gstcsfnegotiation.c ----------------------------------------------------------------------- */

/* The pad template's caps, and those of one kernel (NULL: of all). */
GstCaps *gst_csf_template_caps (void);
GstCaps *gst_csf_kernel_caps (const csfk_kernel * kernel);

/* READY to PAUSED: kernel and parameters of the settings; posts the error. */
gboolean gst_csf_start (GstCudaStreamFilter * self);

/* Pads are inactive: everything but the settings goes. */
void gst_csf_stop (GstCudaStreamFilter * self);

/* Src task, at the CAPS barrier with nothing in flight: device, engine, CAPS downstream, pool.  Posts
 * the error when it returns anything but GST_FLOW_OK, GST_FLOW_FLUSHING and GST_FLOW_NOT_NEGOTIATED. */
GstFlowReturn gst_csf_negotiate (GstCudaStreamFilter * self, GstEvent * caps_event);

/* Src task, with nothing in flight: asks downstream and sets the output pool. */
gboolean gst_csf_decide_allocation (GstCudaStreamFilter * self);

/* Sink pad's ALLOCATION query; any thread. */
gboolean gst_csf_propose_allocation (GstCudaStreamFilter * self, GstQuery * query);

/* Posts one error for a failure of the engine. */
void gst_csf_post_error (GstCudaStreamFilter * self, const csf_error * error);

/* ---- gstcsfquery.c; any thread ----------------------------------------------------------------- */

gboolean gst_csf_query_caps (GstCudaStreamFilter * self, GstPad * pad, GstQuery * query);
gboolean gst_csf_query_accept_caps (GstCudaStreamFilter * self, GstPad * pad, GstQuery * query);
gboolean gst_csf_query_latency (GstCudaStreamFilter * self, GstQuery * query);

G_END_DECLS
#endif
