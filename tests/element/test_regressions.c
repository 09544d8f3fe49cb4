/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Faults that someone found in the element and that are mended: each test would fail on the version
 * before.  They have nothing else in common, so each says what went wrong. */
#include <unistd.h>

#include "element.h"
#include "picture.h"

/* ---- states ---------------------------------------------------------------------------------- */

/* A frame that came while the pads went down was told as a failure. */
START_TEST (going_down_and_up_quickly_is_no_error)
{
  /* No capsfilter: that one takes what lost its caps to a flush for a failure. */
  GstElement *pipeline = pipeline_new ("videotestsrc ! X name=x num-streams=3 "
      "! fakesink async=false");
  GstBus *bus = gst_element_get_bus (pipeline);

  for (guint n = 0; n < 100; n++) {
    pipeline_play (pipeline);
    if (n % 2 != 0)
      g_usleep (test_random (3000));
    ck_assert_int_ne (gst_element_set_state (pipeline, GST_STATE_READY), GST_STATE_CHANGE_FAILURE);
    expect_no_trouble (bus);
  }
  pipeline_free (pipeline);
  gst_object_unref (bus);
}

END_TEST

static gdouble
avg_fps (GstElement * x)
{
  GstStructure *stats = NULL;
  gdouble value = 0.0;

  g_object_get (x, "stats", &stats, NULL);
  ck_assert (gst_structure_get_double (stats, "avg-fps", &value));
  gst_structure_free (stats);
  return value;
}

/* The time in PAUSED counted as time to work.  The bound holds however slow the machine is, since
 * what came before the pause and after is within the time that is taken here. */
START_TEST (a_pause_is_no_time_to_work)
{
  const gint64 pause = G_USEC_PER_SEC;
  Rig *rig = rig_new ("num-streams=2");
  gint64 begin = g_get_monotonic_time ();
  gdouble least;

  rig_set_caps (rig, "GRAY8", 32, 24);
  ck_assert_int_eq (rig_feed (rig, 0, 10), GST_FLOW_OK);
  rig_wait_buffers (rig, 10);
  ck_assert_int_ne (gst_element_set_state (rig->x, GST_STATE_PAUSED), GST_STATE_CHANGE_FAILURE);
  g_usleep ((gulong) pause);
  ck_assert_int_ne (gst_element_set_state (rig->x, GST_STATE_PLAYING), GST_STATE_CHANGE_FAILURE);
  ck_assert_int_eq (rig_feed (rig, 10, 10), GST_FLOW_OK);
  ck_assert (rig_push_event (rig, gst_event_new_eos ()));
  rig_wait_event (rig, GST_EVENT_EOS);
  least = 19.0 * G_USEC_PER_SEC / (gdouble) (g_get_monotonic_time () - begin - pause);
  ck_assert (avg_fps (rig->x) >= least);
  rig_free (rig);
}

END_TEST

/* The figures of one run were shown as the next one's. */
START_TEST (a_new_start_has_no_last_message)
{
  Rig *rig = rig_new ("num-streams=2");
  gchar *line = NULL;

  rig_set_caps (rig, "GRAY8", 32, 24);
  ck_assert_int_eq (rig_feed (rig, 0, 3), GST_FLOW_OK);
  ck_assert (rig_push_event (rig, gst_event_new_eos ()));
  rig_wait_event (rig, GST_EVENT_EOS);
  g_object_get (rig->x, "last-message", &line, NULL);
  ck_assert (line != NULL);
  g_clear_pointer (&line, g_free);
  gst_element_set_state (rig->x, GST_STATE_READY);
  gst_element_set_state (rig->x, GST_STATE_PAUSED);
  g_object_get (rig->x, "last-message", &line, NULL);
  ck_assert (line == NULL);
  rig_free (rig);
}

END_TEST

/* ---- links ----------------------------------------------------------------------------------- */

typedef struct
{
  GMutex lock;
  GCond changed;
  gboolean done;
} Unlinking;

static GstPadProbeReturn
unlink_idle_pad (GstPad * pad, GstPadProbeInfo * info, gpointer user_data)
{
  Unlinking *unlinking = user_data;
  GstPad *peer = gst_pad_get_peer (pad);

  ck_assert (gst_pad_unlink (pad, peer));
  gst_object_unref (peer);
  g_mutex_lock (&unlinking->lock);
  unlinking->done = TRUE;
  g_cond_signal (&unlinking->changed);
  g_mutex_unlock (&unlinking->lock);
  return GST_PAD_PROBE_REMOVE;
}

/* Between two frames: one that is on its way would come back as flushing. */
static void
unlink_and_remove (GstElement * pipeline, GstElement * x, GstElement * sink)
{
  Unlinking unlinking = { 0 };
  GstPad *pad = gst_element_get_static_pad (x, "src");

  g_mutex_init (&unlinking.lock);
  g_cond_init (&unlinking.changed);
  gst_pad_add_probe (pad, GST_PAD_PROBE_TYPE_IDLE, unlink_idle_pad, &unlinking, NULL);
  g_mutex_lock (&unlinking.lock);
  while (!unlinking.done)
    g_cond_wait (&unlinking.changed, &unlinking.lock);
  g_mutex_unlock (&unlinking.lock);
  g_cond_clear (&unlinking.changed);
  g_mutex_clear (&unlinking.lock);
  gst_object_unref (pad);
  gst_element_set_state (sink, GST_STATE_NULL);
  gst_bin_remove (GST_BIN (pipeline), sink);
}

/* An element that nothing was linked to yet never played again: upstream goes on behind a tee, and
 * linking later is what applications do. */
START_TEST (frames_flow_when_the_source_pad_is_linked_later)
{
  GstElement *pipeline = pipeline_new ("videotestsrc is-live=true "
      "! video/x-raw,format=NV12,width=64,height=48,framerate=100/1 "
      "! tee name=t allow-not-linked=true ! X name=x num-streams=2 "
      "t. ! fakesink name=other async=false sync=false");
  GstElement *x = pipeline_get (pipeline, "x");
  Counter *other = counter_new (pipeline, "other", "sink");
  GstBus *bus = gst_element_get_bus (pipeline);

  pipeline_play (pipeline);
  for (guint n = 0; n < 20; n++) {
    GstElement *sink = gst_object_ref_sink (gst_element_factory_make ("fakesink", "sink"));
    Counter *counter;

    /* Several frames are refused, or none yet. */
    counter_wait (other, counter_get (other) + test_random (4));
    g_object_set (sink, "async", FALSE, "sync", FALSE, NULL);
    gst_bin_add (GST_BIN (pipeline), sink);
    counter = counter_new (pipeline, "sink", "sink");
    ck_assert (gst_element_sync_state_with_parent (sink));
    ck_assert (gst_element_link (x, sink));
    counter_wait (counter, 3);
    expect_no_trouble (bus);
    unlink_and_remove (pipeline, x, sink);
    gst_object_unref (sink);
    counter_free (counter);
  }
  pipeline_free (pipeline);
  counter_free (other);
  gst_object_unref (bus);
}

END_TEST

START_TEST (reconfigure_ends_not_linked)
{
  Rig *rig = rig_new ("num-streams=3");
  guint before = 0;

  rig_set_caps (rig, "NV12", 64, 48);
  for (guint round = 0; round < 10; round++) {
    GstFlowReturn flow = GST_FLOW_OK;

    rig_fail_downstream (rig, 1, GST_FLOW_NOT_LINKED);
    for (guint n = 0; n < 100 && flow == GST_FLOW_OK; n++)
      flow = rig_push (rig, rig_frame (rig, n));
    ck_assert_int_eq (flow, GST_FLOW_NOT_LINKED);
    rig_fail_downstream (rig, 0, GST_FLOW_OK);
    ck_assert (gst_harness_push_upstream_event (rig->h, gst_event_new_reconfigure ()));
    before = rig->buffers;
    ck_assert_int_eq (rig_feed (rig, 1000, 5), GST_FLOW_OK);
    rig_wait_buffers (rig, before + 5);
  }
  expect_no_trouble (rig->bus);
  rig_free (rig);
}

END_TEST

/* ---- segments -------------------------------------------------------------------------------- */

/* A position before the segment's start was a GStreamer-CRITICAL for each frame. */
START_TEST (frames_outside_the_segment_pass_without_a_critical)
{
  Rig *rig = rig_new (_i == 0 ? "num-streams=2" : "num-streams=2 qos=true");
  GLogLevelFlags fatal = g_log_set_always_fatal (G_LOG_FATAL_MASK | G_LOG_LEVEL_CRITICAL
      | G_LOG_LEVEL_WARNING);
  GstSegment segment;

  rig_set_caps (rig, "GRAY8", 32, 24);
  gst_segment_init (&segment, GST_FORMAT_TIME);
  segment.start = segment.time = 10 * GST_SECOND;
  segment.stop = 20 * GST_SECOND;
  ck_assert (rig_push_event (rig, gst_event_new_segment (&segment)));
  gst_harness_push_upstream_event (rig->h, gst_event_new_qos (GST_QOS_TYPE_OVERFLOW, 1.0, 0,
          0));
  /* Before, in and after it, at 30 frames a second. */
  for (guint n = 0; n < 5; n++)
    ck_assert_int_eq (rig_feed (rig, n * 200, 2), GST_FLOW_OK);
  rig_wait_buffers (rig, 10);
  expect_no_trouble (rig->bus);
  g_log_set_always_fatal (fatal);
  rig_free (rig);
}

END_TEST

/* Downstream that is done with one segment ended the next, which was already on its way. */
START_TEST (eos_of_a_segment_does_not_end_the_next)
{
  Rig *rig = rig_new ("num-streams=4");

  rig_set_caps (rig, "GRAY8", 32, 24);
  for (guint round = 0; round < 20; round++) {
    guint begin = rig_log_length (rig), frames = rig->buffers;
    GstSegment segment;

    rig_hold (rig, 0);
    ck_assert_int_eq (rig_feed (rig, 0, 1 + round % 3), GST_FLOW_OK);
    rig_wait_held (rig);
    gst_segment_init (&segment, GST_FORMAT_TIME);
    segment.base = (round + 1) * GST_SECOND;
    ck_assert (rig_push_event (rig, gst_event_new_segment (&segment)));
    rig_fail_downstream (rig, 0, GST_FLOW_EOS);
    rig_release (rig);
    while (rig_find_event (rig, begin, GST_EVENT_SEGMENT) < 0)
      g_thread_yield ();
    rig_fail_downstream (rig, 0, GST_FLOW_OK);
    ck_assert_int_eq (rig_feed (rig, 0, 3), GST_FLOW_OK);
    rig_wait_buffers (rig, frames + 3);
  }
  expect_no_trouble (rig->bus);
  rig_free (rig);
}

END_TEST

static void
flush (Rig * rig)
{
  GstSegment segment;

  ck_assert (rig_push_event (rig, gst_event_new_flush_start ()));
  ck_assert (rig_push_event (rig, gst_event_new_flush_stop (TRUE)));
  gst_segment_init (&segment, GST_FORMAT_TIME);
  ck_assert (rig_push_event (rig, gst_event_new_segment (&segment)));
}

/* Upstream sends a sticky event once; a flush that drops it from the queue loses it for good.  As
 * GstQueue has it, it stays; an EOS goes. */
START_TEST (sticky_events_survive_a_flush)
{
  Rig *rig = rig_new ("num-streams=3");
  GstTagList *tags = NULL;
  GstEvent *event;
  guint number = 0, before;

  rig_set_caps (rig, "GRAY8", 32, 24);
  for (guint n = 1; n <= 20; n++) {
    rig_hold (rig, 0);
    ck_assert_int_eq (rig_feed (rig, 0, 2), GST_FLOW_OK);
    rig_wait_held (rig);
    rig_push_event (rig, gst_event_new_tag (gst_tag_list_new (GST_TAG_TRACK_NUMBER, n, NULL)));
    rig_push_event (rig, gst_event_new_custom (GST_EVENT_CUSTOM_DOWNSTREAM_STICKY,
            gst_structure_new ("mark", "n", G_TYPE_UINT, n, NULL)));
    if (n % 2 == 0)
      rig_push_event (rig, gst_event_new_eos ());
    flush (rig);
    before = rig->buffers;
    ck_assert_int_eq (rig_feed (rig, 10, 2), GST_FLOW_OK);
    rig_wait_buffers (rig, before + 2);

    event = gst_pad_get_sticky_event (rig->h->sinkpad, GST_EVENT_TAG, 0);
    ck_assert (event != NULL);
    gst_event_parse_tag (event, &tags);
    ck_assert (gst_tag_list_get_uint (tags, GST_TAG_TRACK_NUMBER, &number));
    ck_assert_uint_eq (number, n);
    gst_event_unref (event);
    event = gst_pad_get_sticky_event (rig->h->sinkpad, GST_EVENT_CUSTOM_DOWNSTREAM_STICKY, 0);
    ck_assert (event != NULL);
    ck_assert (gst_structure_get_uint (gst_event_get_structure (event), "n", &number));
    ck_assert_uint_eq (number, n);
    gst_event_unref (event);
    ck_assert (gst_pad_get_sticky_event (rig->h->sinkpad, GST_EVENT_EOS, 0) == NULL);
  }
  rig_free (rig);
}

END_TEST

/* ---- memory ---------------------------------------------------------------------------------- */

static void
feed_and_drop (Rig * rig, guint count)
{
  for (guint n = 0; n < count; n++) {
    ck_assert_int_eq (rig_feed (rig, n, 1), GST_FLOW_OK);
    gst_buffer_unref (rig_pull (rig));
  }
}

static void
change_nothing (Rig * rig, guint what, guint n)
{
  GstCaps *caps = gst_video_info_to_caps (&rig->info);

  if (what == 0) {
    ck_assert (rig_take_caps (rig, caps));
  } else if (what == 1) {
    gst_caps_set_simple (caps, "framerate", GST_TYPE_FRACTION, (gint) n + 5, 1, NULL);
    ck_assert (rig_take_caps (rig, caps));
  } else {
    gst_caps_unref (caps);
    ck_assert (gst_harness_push_upstream_event (rig->h, gst_event_new_reconfigure ()));
  }
}

/* Each of these opened the engine or the pool anew, which costs milliseconds a buffer. */
START_TEST (caps_that_change_no_frame_cost_no_memory)
{
  Rig *rig = rig_new ("num-streams=3");
  fake_cuda_counters before, after;
  guint64 growths;

  rig_set_caps (rig, "NV12", 66, 50);
  /* The first frames bring each slot its pinned memory for them. */
  feed_and_drop (rig, 6);
  before = fake_counters ();
  growths = stats_uint64 (rig->x, "pool-growths");
  for (guint n = 0; n < 10; n++) {
    change_nothing (rig, (guint) _i, n);
    feed_and_drop (rig, 3);
  }
  after = fake_counters ();
  ck_assert_uint_eq (after.allocations, before.allocations);
  ck_assert_uint_eq (after.pinned_bytes, before.pinned_bytes);
  ck_assert_uint_eq (after.device_bytes, before.device_bytes);
  ck_assert_uint_eq (stats_uint64 (rig->x, "pool-growths"), growths);
  expect_no_trouble (rig->bus);
  rig_free (rig);
}

END_TEST

/* What may be kept is told by the layout, not by the size: these two have the same. */
START_TEST (another_format_of_the_same_size_is_another_picture)
{
  static const gchar *const formats[] = { "NV12", "I420", "YUY2", "UYVY", "RGBx", "BGRA" };
  Rig *rig = rig_new ("num-streams=2 kernel=sobel");

  for (guint n = 0; n < 24; n++) {
    rig_set_caps (rig, formats[n % G_N_ELEMENTS (formats)], 64, 48);
    for (guint i = 0; i < 3; i++) {
      GstBuffer *in = rig_frame (rig, i), *out;

      ck_assert_int_eq (rig_push (rig, gst_buffer_ref (in)), GST_FLOW_OK);
      out = rig_pull (rig);
      picture_check (&rig->info, "sobel", NULL, in, out);
      gst_buffer_unref (out);
      gst_buffer_unref (in);
    }
  }
  rig_free (rig);
}

END_TEST

static void
push_to (Rig * rig, GstBuffer * in)
{
  GstBuffer *out;

  ck_assert_int_eq (rig_push (rig, gst_buffer_ref (in)), GST_FLOW_OK);
  out = rig_pull (rig);
  picture_check_equal (&rig->info, in, out);
  gst_buffer_unref (out);
}

/* Registering costs milliseconds, so a memory must be one that comes back: one that two branches
 * of a tee see, or that is repeated to raise the rate, is not. */
START_TEST (memory_seen_twice_at_once_does_not_come_back)
{
  Rig *rigs[] = { rig_new ("num-streams=2"), rig_new ("num-streams=2") };
  guint branches = _i == 0 ? 2 : 1, times = _i == 0 ? 1 : 2;
  fake_cuda_counters before = { 0 };

  for (guint b = 0; b < 2; b++)
    rig_set_caps (rigs[b], "NV12", 128, 128);
  for (guint n = 0; n < 40; n++) {
    /* Whole pages, so that nothing but the element's wish keeps it from being registered. */
    GstAllocationParams pages = {.align = 4095 };
    GstBuffer *in = gst_buffer_new_allocate (NULL, GST_VIDEO_INFO_SIZE (&rigs[0]->info), &pages);

    picture_fill (in);
    GST_BUFFER_PTS (in) = n * GST_SECOND / 30;
    for (guint b = 0; b < branches; b++)
      for (guint t = 0; t < times; t++)
        push_to (rigs[b], in);
    gst_buffer_unref (in);
    if (n == 5)
      before = fake_counters ();
  }
  ck_assert_uint_eq (fake_counters ().allocations, before.allocations);
  ck_assert_uint_eq (fake_counters ().pinned_ranges, before.pinned_ranges);
  for (guint b = 0; b < branches; b++)
    ck_assert_uint_eq (stats_uint64 (rigs[b]->x, "host-copies"), test_backend_pins ()?
        40 * times : 0);
  for (guint b = 0; b < 2; b++)
    rig_free (rigs[b]);
}

END_TEST

/* ---- quality of service ---------------------------------------------------------------------- */

static void
check_qos_message (Rig * rig, guint64 dropped)
{
  GstMessage *message = gst_bus_pop_filtered (rig->bus, GST_MESSAGE_QOS);
  guint64 processed = 0, told = 0;
  GstFormat format;

  ck_assert (message != NULL);
  gst_message_parse_qos_stats (message, &format, &processed, &told);
  ck_assert_int_eq (format, GST_FORMAT_BUFFERS);
  ck_assert_uint_eq (processed, 2);
  ck_assert_uint_eq (told, dropped);
  gst_message_unref (message);
}

/* Decoders and encoders behind the gap were not told of it, and the message counted nothing. */
START_TEST (a_dropped_frame_leaves_a_discont)
{
  Rig *rig = rig_new ("num-streams=2 qos=true");

  rig_set_caps (rig, "GRAY8", 32, 24);
  ck_assert_int_eq (rig_feed (rig, 0, 2), GST_FLOW_OK);
  rig_wait_buffers (rig, 2);
  gst_harness_push_upstream_event (rig->h, gst_event_new_qos (GST_QOS_TYPE_UNDERFLOW, 1.0,
          GST_SECOND, 0));
  ck_assert_int_eq (rig_feed (rig, 2, 3), GST_FLOW_OK);
  ck_assert_int_eq (rig_feed (rig, 100, 2), GST_FLOW_OK);
  for (guint n = 0; n < 4; n++) {
    GstBuffer *out = rig_pull (rig);

    ck_assert_uint_eq (GST_BUFFER_OFFSET (out), n < 2 ? n : 98 + n);
    ck_assert_int_eq (GST_BUFFER_IS_DISCONT (out), n == 2);
    gst_buffer_unref (out);
  }
  for (guint64 n = 1; n <= 3; n++)
    check_qos_message (rig, n);
  ck_assert (gst_bus_pop_filtered (rig->bus, GST_MESSAGE_QOS) == NULL);
  rig_free (rig);
}

END_TEST

/* ---- a device that hangs --------------------------------------------------------------------- */

/* While playing nobody noticed.  Takes the element's own ten seconds, and those it waits when it
 * stops; what the device may still write is kept, so there is no look for leaks. */
START_TEST (a_device_that_hangs_while_playing_is_one_error)
{
  Rig *rig = rig_new ("num-streams=1");

  rig_set_caps (rig, "GRAY8", 64, 48);
  ck_assert_int_eq (rig_feed (rig, 0, 3), GST_FLOW_OK);
  rig_wait_buffers (rig, 3);
  fake_setting ("HANG_AT", 1);
  ck_assert_int_eq (rig_feed (rig, 3, 1), GST_FLOW_OK);
  expect_one_error (rig->bus, rig->x, "has not finished", "frame 3", NULL);
  ck_assert_int_eq (rig_push (rig, rig_frame (rig, 5)), GST_FLOW_ERROR);
  gst_element_set_state (rig->x, GST_STATE_NULL);
  ck_assert (gst_bus_pop_filtered (rig->bus, GST_MESSAGE_ERROR) == NULL);
  _exit (0);
}

END_TEST

static Suite *
regressions_suite (void)
{
  Suite *suite = suite_create ("regressions");
  TCase *tests = test_case (suite, "regressions");

  tcase_add_test (tests, going_down_and_up_quickly_is_no_error);
  tcase_add_test (tests, a_pause_is_no_time_to_work);
  tcase_add_test (tests, a_new_start_has_no_last_message);
  tcase_add_test (tests, frames_flow_when_the_source_pad_is_linked_later);
  tcase_add_test (tests, reconfigure_ends_not_linked);
  tcase_add_loop_test (tests, frames_outside_the_segment_pass_without_a_critical, 0, 2);
  tcase_add_test (tests, eos_of_a_segment_does_not_end_the_next);
  tcase_add_test (tests, sticky_events_survive_a_flush);
  tcase_add_loop_test (tests, caps_that_change_no_frame_cost_no_memory, 0, 3);
  tcase_add_test (tests, another_format_of_the_same_size_is_another_picture);
  tcase_add_loop_test (tests, memory_seen_twice_at_once_does_not_come_back, 0, 2);
  tcase_add_test (tests, a_dropped_frame_leaves_a_discont);
  if (fake != NULL)
    tcase_add_test (tests, a_device_that_hangs_while_playing_is_one_error);
  return suite;
}

int
main (int argc, char **argv)
{
  return test_main (argc, argv, regressions_suite);
}
