/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What every element test program is made of: the choice of backend, one element between two
 * pads that a test controls (a rig), whole pipelines, and what came over the bus.  Knows the
 * element by its name and its promises only, none of its sources. */
#ifndef ELEMENT_H
#define ELEMENT_H

#include <gst/check/gstcheck.h>
#include <gst/check/gstharness.h>
#include <gst/video/video.h>

#include "tests/fake/fake_cuda.h"

/* ---- programs -------------------------------------------------------------------------------- */

/* The fake driver where the element runs on it; NULL on the CPU and on a real driver. */
extern const fake_cuda *fake;

/* "cpu" or "cuda": CSF_TEST_BACKEND. */
const gchar *test_backend (void);
gboolean test_backend_pins (void);

/* A program's main.  make: called once `fake` is known. */
int test_main (int argc, char **argv, Suite * (*make) (void));

/* A test case whose tests leave nothing behind in the fake driver. */
TCase *test_case (Suite * suite, const gchar * name);

fake_cuda_counters fake_counters (void);
void fake_setting (const gchar * name, gint64 value);
/* Of the names' setting afterwards: what the environment says. */
void fake_reset (void);

/* Below `limit`; a failing run's seed is printed, CSF_TEST_SEED repeats it. */
guint test_random (guint limit);

/* A library of kernels that lies beside the program: "" the sound one, "-old" and "-none". */
const gchar *test_library (const gchar * which);

/* A plugin file, looked for where GStreamer would; NULL when there is none. */
gchar *test_find_plugin (const gchar * name);

/* ---- a rig: pad of ours ! element ! pad of ours ---------------------------------------------- */

typedef enum
{
  ITEM_BUFFER,
  ITEM_EVENT,
  ITEM_QUERY,
} ItemKind;

/* Something that left the element's source pad. */
typedef struct
{
  ItemKind kind;
  guint type;                   /* GstEventType, GstQueryType */
  guint32 seqnum;               /* of an event */
  GstClockTime pts;             /* of a buffer */
} Item;

typedef struct
{
  GstHarness *h;
  GstElement *x;
  GstBus *bus;
  GstVideoInfo info;            /* of the last caps */

  GMutex lock;
  GCond changed;
  /* all below under the lock */
  GArray *log;                  /* Item: buffers, events, serialized queries but ALLOCATION */
  guint buffers, allocations;   /* counts of the log; of ALLOCATION queries */
  gint hold_at;                 /* the buffer of that count waits before it leaves; -1 none */
  gboolean held, flushing;
  gint fail_at;                 /* from that buffer on downstream returns fail_with; -1 none */
  GstFlowReturn fail_with;
} Rig;

/* properties: as gst-launch has them, without the backend, which is the program's.  Playing. */
Rig *rig_new (const gchar * properties);
void rig_free (Rig * rig);

/* framerate 30/1.  TRUE: the element took them. */
gboolean rig_set_caps (Rig * rig, const gchar * format, gint width, gint height);
/* The same with any video caps; takes the reference. */
gboolean rig_take_caps (Rig * rig, GstCaps * caps);
gboolean rig_push_event (Rig * rig, GstEvent * event);
GstFlowReturn rig_push (Rig * rig, GstBuffer * buffer);

/* Frame n with random content and the timestamps of its number; rig_feed pushes `count` of them. */
GstBuffer *rig_frame (Rig * rig, guint n);
GstFlowReturn rig_feed (Rig * rig, guint first, guint count);

/* Waits for the next frame; never NULL. */
GstBuffer *rig_pull (Rig * rig);

/* The n-th buffer from now (0 the next) waits in the element's hands until rig_release or a
 * flush. */
void rig_hold (Rig * rig, guint n);
void rig_wait_held (Rig * rig);
void rig_release (Rig * rig);
void rig_fail_downstream (Rig * rig, guint n, GstFlowReturn flow);

/* Wait for what leaves the element: so many buffers in all, an event of that type. */
void rig_wait_buffers (Rig * rig, guint count);
void rig_wait_event (Rig * rig, GstEventType type);

/* The log's index of an event from `from` on, or -1. */
gint rig_find_event (Rig * rig, guint from, GstEventType type);
Item rig_item (Rig * rig, guint index);
guint rig_log_length (Rig * rig);

/* Feeds frames from a thread until one is refused or there are no more. */
typedef struct
{
  Rig *rig;
  guint first, count;
  GThread *thread;
} Feeder;

void feeder_start (Feeder * feeder, Rig * rig, guint first, guint count);
GstFlowReturn feeder_join (Feeder * feeder);

/* ---- statistics and messages ----------------------------------------------------------------- */

guint64 stats_uint64 (GstElement * x, const gchar * field);
gchar *stats_string (GstElement * x, const gchar * field);

/* Waits for an error (or warning) from `x`.  It is the only one of its kind on the bus, and its
 * text holds every one of the strings that follow, up to NULL.  The bus is empty afterwards. */
void expect_one_error (GstBus * bus, GstElement * x, ...) G_GNUC_NULL_TERMINATED;
void expect_one_warning (GstBus * bus, GstElement * x, ...) G_GNUC_NULL_TERMINATED;
void expect_no_trouble (GstBus * bus);

/* ---- pipelines ------------------------------------------------------------------------------- */

/* A gst-launch line in which "! X" stands for the element on the backend under test. */
GstElement *pipeline_new (const gchar * line);
/* Stops it first, and returns when it is gone: nobody else may hold it. */
void pipeline_free (GstElement * pipeline);
GstElement *pipeline_get (GstElement * pipeline, const gchar * name);
void pipeline_play (GstElement * pipeline);
void pipeline_set_state (GstElement * pipeline, GstState state);

/* What comes first, EOS or ERROR.  Errors and warnings stay on the bus.  Fails the test after
 * minutes. */
GstMessageType pipeline_wait (GstElement * pipeline);
/* Plays to the end; nothing goes wrong. */
void pipeline_run (GstElement * pipeline);
/* Fails to start or to run: one error from x, whose text holds all the strings; ends in NULL
 * state. */
void pipeline_expect_error (GstElement * pipeline, ...) G_GNUC_NULL_TERMINATED;

/* A pipeline of a few GRAY8 frames through one element with these properties, and that it fails with these
 * words. */
GstElement *pipeline_of (const gchar * properties);
#define EXPECT_ERROR(properties, ...) \
  do { \
    GstElement *failing = pipeline_of (properties); \
    pipeline_expect_error (failing, __VA_ARGS__, NULL); \
    pipeline_free (failing); \
  } while (0)

/* Counts the buffers that enter or leave an element's pad. */
typedef struct
{
  GMutex lock;
  GCond changed;
  guint count;
} Counter;

Counter *counter_new (GstElement * pipeline, const gchar * element, const gchar * pad);
void counter_wait (Counter * counter, guint count);
guint counter_get (Counter * counter);
void counter_free (Counter * counter);

#endif
