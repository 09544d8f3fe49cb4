/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The element's type and state, and what its files have of one another: gstcudastreamfilter.c the class,
 * gstcsfstreaming.c the two threads, gstcsfnegotiation.c what happens at caps, gstcsfallocation.c the pools. */
#ifndef GST_CUDA_STREAM_FILTER_H
#define GST_CUDA_STREAM_FILTER_H

#include <gst/gst.h>
#include <gst/video/video.h>

#include "engine/csf.h"
#include "engine/hostpool.h"
#include "engine/queue.h"
#include "engine/timeline.h"
#include "gstcsfframe.h"
#include "gstcsfkernel.h"
#include "gstcsfproperties.h"
#include "gstcsfreload.h"
#include "gstcsfstats.h"
#include "gstcsftrack.h"

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
  gboolean no_cuda;             /* there was no usable GPU when the element left NULL */
  GstCsfKernel *loaded;         /* from READY on; written as `kernel` below is */

  csf_queue *queue;             /* lives as long as the element */
  GstCsfStats *stats;           /* likewise; locks itself */

  /* Under `lock`. */
  GMutex lock;
  GstFlowReturn flow;           /* what the next chain call returns, if not GST_FLOW_OK */
  gboolean flow_reported;       /* upstream has got it, or the application an error message */
  gboolean eos_queued;          /* upstream is done and will not see a flow return any more */
  guint segments_pending;       /* STREAM_START and SEGMENT events in the queue */
  gdouble proportion;           /* QoS */
  GstClockTime earliest_time;   /* QoS: running time before which frames come too late */
  GstClockTime latency;         /* what the last LATENCY answer added */
  gint fps_n, fps_d;
  GstCsfCudaContext *cuda_context;      /* offered last by application or neighbours, or made here */

  /* Written in READY and by the src task while the sink thread waits at a barrier (or is stopped),
   * under `lock` since other threads look; these two threads read without it. */
  GstCsfSettings run;           /* settings this run began with */
  const csfk_kernel *kernel;    /* of `loaded` */
  csf_device *loader_device;    /* a kernel-file was loaded on it, or NULL */
  csf_device *device;
  csf_engine *engine;
  GstBufferPool *pool;
  gboolean pool_on_device;
  guint pool_buffers;           /* it was filled with */
  GstCsfFormat format;
  gboolean output_on_device;
  guint num_streams;

  /* Sink thread. */
  GstSegment segment;
  guint64 frame_count;
  csf_span waited;              /* for the frame at hand, with a stream free for it */
  gboolean discont;             /* a frame was dropped since the last one */
  gboolean reset_state;         /* the next frame does not follow the last one */
  GArray *regions;              /* csfk_region, of the frame at hand */
  GstCsfReload *reload;         /* made when first needed */
  GstCsfKernel *new_kernel;     /* a version of the kernel-file still to be taken, or NULL */
  guint params_serial;          /* of settings.kernel_params in `params` */
  guint8 params[CSFK_MAX_PARAMS] __attribute__ ((aligned (16)));

  /* Src task. */
  gboolean hung;                /* the device did not answer, and this was reported */
  GstCsfTracker *tracker;
  gboolean said_max_records;    /* that a frame had more, in this run */
  csf_timeline *timeline;       /* NULL: none is written */
  gboolean downstream_eos;      /* drop frames until a new stream or segment begins */
};

/* ---- gstcsfnegotiation.c ----------------------------------------------------------------------- */

/* READY to PAUSED: kernel and parameters of the settings; posts the error.  May take seconds. */
gboolean gst_csf_start (GstCudaStreamFilter * self);

/* Pads are inactive: everything but the settings goes. */
void gst_csf_stop (GstCudaStreamFilter * self);

/* Src task, at the CAPS barrier with nothing in flight: device, engine, CAPS downstream, pool.  Posts
 * the error when it returns anything but GST_FLOW_OK, GST_FLOW_FLUSHING and GST_FLOW_NOT_NEGOTIATED. */
GstFlowReturn gst_csf_negotiate (GstCudaStreamFilter * self, GstEvent * caps_event);

/* Src task, with nothing in flight: downstream wants something else, so asks it again for caps (where the
 * kernel leaves a choice) and pool.  Errors as gst_csf_negotiate. */
GstFlowReturn gst_csf_renegotiate (GstCudaStreamFilter * self);

/* Src task, with nothing in flight and the sink thread waiting: takes another version of the kernel (transfer
 * none).  FALSE, with a warning, when that cannot be: the one before stays. */
gboolean gst_csf_swap_kernel (GstCudaStreamFilter * self, GstCsfKernel * loaded);

/* Posts one error for a failure of the engine. */
void gst_csf_post_error (GstCudaStreamFilter * self, const csf_error * error);

/* ---- gstcsfallocation.c ------------------------------------------------------------------------ */

/* Src task, with nothing in flight: asks downstream and sets the output pool. */
gboolean gst_csf_decide_allocation (GstCudaStreamFilter * self);

/* Takes the pool (or NULL) over, and lets the one before go. */
void gst_csf_set_pool (GstCudaStreamFilter * self, GstBufferPool * pool);

/* Sink pad's ALLOCATION query; any thread. */
gboolean gst_csf_propose_allocation (GstCudaStreamFilter * self, GstQuery * query);

/* ---- gstcsfstreaming.c ------------------------------------------------------------------------- */

/* Pad functions. */
GstFlowReturn gst_csf_chain (GstPad * pad, GstObject * parent, GstBuffer * buffer);
GstFlowReturn gst_csf_sink_event (GstPad * pad, GstObject * parent, GstEvent * event);
gboolean gst_csf_activate (GstPad * pad, GstObject * parent, GstPadMode mode, gboolean active);

/* Sink thread: hands a serialized query to downstream after the frames before it. */
gboolean gst_csf_await_query (GstCudaStreamFilter * self, GstQuery * query);

/* Any thread: downstream was linked anew. */
void gst_csf_reopen_if_not_linked (GstCudaStreamFilter * self);

/* Pads are inactive and the engine is gone: forgets what it had still to do. */
void gst_csf_empty_queue (GstCudaStreamFilter * self);

/* ---- gstcsfreport.c ---------------------------------------------------------------------------- */

/* READY to PAUSED, and back with pads inactive. */
void gst_csf_report_start (GstCudaStreamFilter * self);
void gst_csf_report_stop (GstCudaStreamFilter * self);

/* Src task: tells what is due; last: EOS, so everything. */
void gst_csf_report_stats (GstCudaStreamFilter * self, gboolean last);

/* Src task: what a timeline has of a frame before it is pushed; and all of it. */
csf_timeline_frame gst_csf_report_begin (const GstCsfFrame * frame, const csf_result * result);
void gst_csf_report_frame (GstCudaStreamFilter * self, const csf_timeline_frame * frame);

/* ---- gstcsfcaps.c; any thread ------------------------------------------------------------------ */

/* Caps that one kernel (NULL: any, or one not known yet) has on the pad of that direction: in system
 * memory and, with cuda, in CUDA memory after that. */
GstCaps *gst_csf_kernel_caps (const csfk_kernel * kernel, GstPadDirection side, gboolean cuda);

/* Whether the output may differ from the input. */
gboolean gst_csf_kernel_converts (const csfk_kernel * kernel);

/* What the other pad can have when the pad of direction `side` has these caps; unchanged pictures come
 * first. */
GstCaps *gst_csf_transform_caps (const csfk_kernel * kernel, GstPadDirection side, GstCaps * caps,
    gboolean cuda);

/* Whether these fixed caps are of CUDA memory. */
gboolean gst_csf_caps_are_cuda (GstCaps * caps);

/* The caps to send downstream for fixed input caps: the same pictures if downstream takes them, else its
 * first wish; CUDA memory where it came so and can go on so, or where downstream asks for it in as many
 * words before system memory. */
GstCaps *gst_csf_choose_output_caps (GstCudaStreamFilter * self, GstCaps * input_caps,
    gboolean cuda);

/* ---- gstcsfcontext.c --------------------------------------------------------------------------- */

/* Any thread: a context comes from the application, a bin or a neighbour. */
void gst_csf_set_context (GstCudaStreamFilter * self, GstContext * context);

/* Src task: asks element, neighbours and application for a context, if none was offered so far. */
void gst_csf_find_context (GstCudaStreamFilter * self);

/* Src task: the device's own context becomes everybody's. */
void gst_csf_offer_context (GstCudaStreamFilter * self, csf_device * device);

/* Transfer full, or NULL. */
GstCsfCudaContext *gst_csf_get_context (GstCudaStreamFilter * self);

/* ---- gstcsfquery.c; any thread ----------------------------------------------------------------- */

gboolean gst_csf_query_caps (GstCudaStreamFilter * self, GstPad * pad, GstQuery * query);
gboolean gst_csf_query_accept_caps (GstCudaStreamFilter * self, GstPad * pad, GstQuery * query);
gboolean gst_csf_query_latency (GstCudaStreamFilter * self, GstQuery * query);

G_END_DECLS
#endif
