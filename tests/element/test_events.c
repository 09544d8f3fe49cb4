/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Order: whatever goes in between two frames comes out between them.  Events, caps, queries and
 * flushes at any moment; states are test_states' subject, flow returns test_flow's. */
#include "element.h"
#include "picture.h"

/* ---- order ----------------------------------------------------------------------------------- */

static GstEvent *
new_event (guint choice, guint n)
{
  GstSegment segment;

  switch (choice) {
    case 0:
      return gst_event_new_tag (gst_tag_list_new (GST_TAG_TRACK_NUMBER, n + 1, NULL));
    case 1:
      return gst_event_new_gap (n * GST_MSECOND, GST_MSECOND);
    case 2:
      return gst_event_new_custom (GST_EVENT_CUSTOM_DOWNSTREAM, gst_structure_new_empty ("a"));
    case 3:
      return gst_event_new_custom (GST_EVENT_CUSTOM_DOWNSTREAM_STICKY,
          gst_structure_new_empty ("b"));
    case 4:
      gst_segment_init (&segment, GST_FORMAT_TIME);
      segment.base = n;
      return gst_event_new_segment (&segment);
    default:
      return gst_event_new_segment_done (GST_FORMAT_TIME, n);
  }
}

/* Frames and serialized events at random, then EOS. */
START_TEST (nothing_overtakes_a_frame)
{
  gchar *properties = g_strdup_printf ("num-streams=%d", _i);
  Rig *rig = rig_new (properties);
  GArray *expected = g_array_new (FALSE, FALSE, sizeof (Item));
  guint begin;

  rig_set_caps (rig, "GRAY8", 48, 32);
  rig_wait_event (rig, GST_EVENT_SEGMENT);
  begin = rig_log_length (rig);
  for (guint n = 0; n <= 400; n++) {
    Item item = { 0 };

    if (n < 400 && test_random (2) == 0) {
      GstBuffer *frame = rig_frame (rig, n);

      item.kind = ITEM_BUFFER;
      item.pts = GST_BUFFER_PTS (frame);
      ck_assert_int_eq (rig_push (rig, frame), GST_FLOW_OK);
    } else {
      GstEvent *event = n < 400 ? new_event (test_random (6), n) : gst_event_new_eos ();

      item.kind = ITEM_EVENT;
      item.type = GST_EVENT_TYPE (event);
      item.seqnum = gst_event_get_seqnum (event);
      ck_assert (rig_push_event (rig, event));
    }
    g_array_append_val (expected, item);
  }
  rig_wait_event (rig, GST_EVENT_EOS);
  ck_assert_uint_eq (rig_log_length (rig), begin + expected->len);
  for (guint i = 0; i < expected->len; i++) {
    const Item *in = &g_array_index (expected, Item, i);
    Item out = rig_item (rig, begin + i);

    ck_assert_int_eq (out.kind, in->kind);
    ck_assert_uint_eq (out.type, in->type);
    ck_assert_uint_eq (out.seqnum, in->seqnum);
    ck_assert_uint_eq (out.pts, in->pts);
  }
  g_array_unref (expected);
  rig_free (rig);
  g_free (properties);
}

END_TEST

/* An out-of-band event goes at once, past a frame that downstream holds. */
START_TEST (event_out_of_band_waits_for_nothing)
{
  Rig *rig = rig_new ("num-streams=2");

  rig_set_caps (rig, "GRAY8", 48, 32);
  rig_hold (rig, 0);
  ck_assert_int_eq (rig_feed (rig, 0, 1), GST_FLOW_OK);
  rig_wait_held (rig);
  ck_assert (rig_push_event (rig, gst_event_new_custom (GST_EVENT_CUSTOM_DOWNSTREAM_OOB,
              gst_structure_new_empty ("now"))));
  ck_assert_int_ge (rig_find_event (rig, 0, GST_EVENT_CUSTOM_DOWNSTREAM_OOB), 0);
  rig_release (rig);
  rig_wait_buffers (rig, 1);
  rig_free (rig);
}

END_TEST

/* A live source that pauses strands no frame: each comes out without another coming in. */
START_TEST (single_frames_are_not_kept_waiting)
{
  Rig *rig = rig_new ("num-streams=8");

  rig_set_caps (rig, "NV12", 48, 32);
  for (guint n = 0; n < 20; n++) {
    GstBuffer *out;

    ck_assert_int_eq (rig_feed (rig, n, 1), GST_FLOW_OK);
    out = rig_pull (rig);
    ck_assert_uint_eq (GST_BUFFER_OFFSET (out), n);
    gst_buffer_unref (out);
  }
  rig_free (rig);
}

END_TEST

/* ---- caps ------------------------------------------------------------------------------------ */

START_TEST (caps_change_at_any_frame)
{
  gchar *properties = g_strdup_printf ("num-streams=%d", _i);
  Rig *rig = rig_new (properties);

  for (guint n = 0; n < 60; n++) {
    guint frames = test_random (4);
    GstBuffer *in[4];

    ck_assert (rig_set_caps (rig, picture_formats[test_random (12)], 1 + (gint) test_random (70),
            1 + (gint) test_random (50)));
    for (guint i = 0; i < frames; i++) {
      in[i] = rig_frame (rig, n * 4 + i);
      ck_assert_int_eq (rig_push (rig, gst_buffer_ref (in[i])), GST_FLOW_OK);
    }
    for (guint i = 0; i < frames; i++) {
      GstBuffer *out = rig_pull (rig);

      ck_assert_uint_eq (GST_BUFFER_OFFSET (out), n * 4 + i);
      picture_check_equal (&rig->info, in[i], out);
      gst_buffer_unref (out);
      gst_buffer_unref (in[i]);
    }
  }
  expect_no_trouble (rig->bus);
  rig_free (rig);
  g_free (properties);
}

END_TEST

/* CAPS comes after every frame of the old caps and before every frame of the new ones. */
START_TEST (frames_in_flight_leave_before_new_caps)
{
  Rig *rig = rig_new ("num-streams=4");
  gint first, second;

  rig_set_caps (rig, "GRAY8", 64, 48);
  ck_assert_int_eq (rig_feed (rig, 0, 4), GST_FLOW_OK);
  ck_assert (rig_set_caps (rig, "GRAY8", 32, 24));
  ck_assert_int_eq (rig_feed (rig, 4, 4), GST_FLOW_OK);
  rig_wait_buffers (rig, 8);
  first = rig_find_event (rig, 0, GST_EVENT_CAPS);
  second = rig_find_event (rig, (guint) first + 1, GST_EVENT_CAPS);
  ck_assert_int_gt (second, first);
  for (guint i = 0, frames = 0; i < rig_log_length (rig); i++) {
    if (i == (guint) second)
      ck_assert_uint_eq (frames, 4);
    frames += rig_item (rig, i).kind == ITEM_BUFFER;
  }
  rig_free (rig);
}

END_TEST

/* Trials edgeai #68, gstreamer-imx #153: memory grows with each caps change. */
START_TEST (alternating_caps_take_no_more_memory)
{
  static const gint heights[] = { 810, 1080, 1440 };
  enum { ROUNDS = 34, FRAMES = 10 };
  Rig *rig = rig_new ("num-streams=2");
  fake_cuda_counters first = { 0 }, last;

  gst_harness_set_drop_buffers (rig->h, TRUE);
  for (guint round = 0; round < ROUNDS; round++) {
    for (guint h = 0; h < G_N_ELEMENTS (heights); h++) {
      GstBuffer *frame;

      rig_set_caps (rig, "GRAY8", heights[h] * 16 / 9, heights[h]);
      frame = gst_buffer_new_allocate (NULL, GST_VIDEO_INFO_SIZE (&rig->info), NULL);
      gst_buffer_memset (frame, 0, (guint8) round, GST_VIDEO_INFO_SIZE (&rig->info));
      for (guint n = 0; n < FRAMES; n++)
        ck_assert_int_eq (rig_push (rig, gst_buffer_ref (frame)), GST_FLOW_OK);
      gst_buffer_unref (frame);
    }
    rig_wait_buffers (rig, (round + 1) * G_N_ELEMENTS (heights) * FRAMES);
    last = fake_counters ();
    if (round == 0)
      first = last;
    ck_assert_uint_le (last.device_bytes, first.device_bytes);
    ck_assert_uint_le (last.streams, first.streams);
    ck_assert_uint_le (last.events, first.events);
    ck_assert_uint_le (last.modules, first.modules);
    /* How many frames were in flight at once differs from round to round. */
    ck_assert_uint_le (last.pinned_bytes, first.pinned_bytes
        + 4 * GST_VIDEO_INFO_SIZE (&rig->info));
  }
  rig_free (rig);
}

END_TEST

START_TEST (the_same_caps_again_cost_nothing)
{
  Rig *rig = rig_new ("num-streams=2");
  guint64 allocations;

  rig_set_caps (rig, "NV12", 64, 48);
  ck_assert_int_eq (rig_feed (rig, 0, 4), GST_FLOW_OK);
  rig_wait_buffers (rig, 4);
  allocations = stats_uint64 (rig->x, "device-bytes");
  ck_assert (rig_set_caps (rig, "NV12", 64, 48));
  ck_assert_int_eq (rig_feed (rig, 4, 4), GST_FLOW_OK);
  rig_wait_buffers (rig, 8);
  ck_assert_uint_eq (stats_uint64 (rig->x, "device-bytes"), allocations);
  rig_free (rig);
}

END_TEST

/* Downstream that wants other buffers is asked again, between two frames. */
START_TEST (reconfigure_asks_downstream_again)
{
  Rig *rig = rig_new ("num-streams=3");
  guint asked;

  rig_set_caps (rig, "RGBA", 64, 48);
  ck_assert_int_eq (rig_feed (rig, 0, 6), GST_FLOW_OK);
  rig_wait_buffers (rig, 6);
  asked = rig->allocations;
  ck_assert_uint_ge (asked, 1);
  for (guint n = 0; n < 10; n++) {
    ck_assert (gst_harness_push_upstream_event (rig->h, gst_event_new_reconfigure ()));
    ck_assert_int_eq (rig_feed (rig, 6 + 2 * n, 2), GST_FLOW_OK);
  }
  rig_wait_buffers (rig, 26);
  ck_assert_uint_eq (rig->allocations, asked + 10);
  for (guint n = 0; n < 26; n++) {
    GstBuffer *out = rig_pull (rig);

    ck_assert_uint_eq (GST_BUFFER_OFFSET (out), n);
    gst_buffer_unref (out);
  }
  expect_no_trouble (rig->bus);
  rig_free (rig);
}

END_TEST

START_TEST (format_that_no_kernel_takes_is_refused)
{
  Rig *rig = rig_new ("num-streams=2");
  GstCaps *caps = gst_caps_from_string ("video/x-raw,format=AYUV64,width=64,height=48"), *allowed;

  ck_assert (!gst_pad_peer_query_accept_caps (rig->h->srcpad, caps));
  allowed = gst_pad_peer_query_caps (rig->h->srcpad, NULL);
  ck_assert (!gst_caps_can_intersect (allowed, caps));
  for (guint f = 0; picture_formats[f] != NULL; f++) {
    gst_caps_set_simple (caps, "format", G_TYPE_STRING, picture_formats[f], NULL);
    ck_assert (gst_caps_can_intersect (allowed, caps));
  }
  gst_caps_unref (allowed);
  gst_caps_unref (caps);
  rig_free (rig);
}

END_TEST

/* ---- queries --------------------------------------------------------------------------------- */

START_TEST (drain_is_answered_after_the_frames_before_it)
{
  Rig *rig = rig_new ("num-streams=8");

  rig_set_caps (rig, "NV12", 320, 240);
  for (guint n = 0; n < 10; n++) {
    GstQuery *query = gst_query_new_drain ();

    ck_assert_int_eq (rig_feed (rig, 5 * n, 5), GST_FLOW_OK);
    gst_pad_peer_query (rig->h->srcpad, query);
    gst_query_unref (query);
    ck_assert_uint_eq (rig->buffers, 5 * (n + 1));
    ck_assert_int_eq (rig_item (rig, rig_log_length (rig) - 1).kind, ITEM_QUERY);
  }
  rig_free (rig);
}

END_TEST

static gpointer
ask_drain (gpointer data)
{
  Rig *rig = data;
  GstQuery *query = gst_query_new_drain ();

  gst_pad_peer_query (rig->h->srcpad, query);
  gst_query_unref (query);
  return NULL;
}

START_TEST (queued_query_ends_with_the_element)
{
  Rig *rig = rig_new ("num-streams=2");
  GThread *thread;

  rig_set_caps (rig, "NV12", 64, 48);
  rig_hold (rig, 0);
  ck_assert_int_eq (rig_feed (rig, 0, 1), GST_FLOW_OK);
  rig_wait_held (rig);
  thread = g_thread_new ("drain", ask_drain, rig);
  if (_i == 0) {
    rig_push_event (rig, gst_event_new_flush_start ());
  } else {
    /* A sink that goes down lets go of what it holds. */
    gst_pad_set_active (rig->h->sinkpad, FALSE);
    rig_release (rig);
    gst_element_set_state (rig->x, GST_STATE_READY);
  }
  g_thread_join (thread);
  rig_free (rig);
}

END_TEST

static void
check_allocation_answer (Rig * rig)
{
  GstCaps *caps = gst_video_info_to_caps (&rig->info);
  GstQuery *query = gst_query_new_allocation (caps, TRUE);

  ck_assert (gst_pad_peer_query (rig->h->srcpad, query));
  ck_assert (gst_query_find_allocation_meta (query, GST_VIDEO_META_API_TYPE, NULL));
  if (test_backend_pins ()) {
    GstBufferPool *pool = NULL;
    guint min_buffers;

    ck_assert_uint_ge (gst_query_get_n_allocation_pools (query), 1);
    gst_query_parse_nth_allocation_pool (query, 0, &pool, NULL, &min_buffers, NULL);
    ck_assert (pool != NULL);
    ck_assert_uint_gt (min_buffers, 0);
    gst_object_unref (pool);
  }
  gst_query_unref (query);
  gst_caps_unref (caps);
}

/* Trial WebKit PR 16603: the ALLOCATION query is answered while a frame is stuck downstream. */
START_TEST (allocation_is_answered_while_downstream_holds_a_frame)
{
  Rig *rig = rig_new ("num-streams=2");

  rig_set_caps (rig, "NV12", 64, 48);
  rig_hold (rig, 0);
  ck_assert_int_eq (rig_feed (rig, 0, 2), GST_FLOW_OK);
  rig_wait_held (rig);
  check_allocation_answer (rig);
  rig_release (rig);
  rig_wait_buffers (rig, 2);
  rig_free (rig);
}

END_TEST

/* ---- flushes --------------------------------------------------------------------------------- */

static void
push_flush_stop_and_segment (Rig * rig)
{
  GstSegment segment;

  gst_segment_init (&segment, GST_FORMAT_TIME);
  ck_assert (rig_push_event (rig, gst_event_new_flush_stop (TRUE)));
  ck_assert (rig_push_event (rig, gst_event_new_segment (&segment)));
}

/* After the n-th FLUSH_STOP only frames numbered from n * 1000 come. */
static void
check_epochs (Rig * rig)
{
  GstClockTime floor = 0;

  for (guint i = 0, epoch = 0; i < rig_log_length (rig); i++) {
    Item item = rig_item (rig, i);

    if (item.kind == ITEM_EVENT && item.type == GST_EVENT_FLUSH_STOP)
      floor = ++epoch * 1000 * (GST_SECOND / 30);
    else if (item.kind == ITEM_BUFFER)
      ck_assert_uint_ge (item.pts, floor);
  }
}

START_TEST (flush_wakes_everything_and_leaves_no_old_frame)
{
  Rig *rig = rig_new ("num-streams=3");
  Feeder feeder;

  rig_set_caps (rig, "NV12", 64, 48);
  gst_harness_set_drop_buffers (rig->h, TRUE);
  for (guint epoch = 0; epoch < 30; epoch++) {
    /* Downstream stands, as a paused sink does, and the slots fill up. */
    rig_hold (rig, epoch % 4);
    feeder_start (&feeder, rig, epoch * 1000, 900);
    rig_wait_held (rig);
    ck_assert (rig_push_event (rig, gst_event_new_flush_start ()));
    ck_assert_int_eq (feeder_join (&feeder), GST_FLOW_FLUSHING);
    push_flush_stop_and_segment (rig);
  }
  ck_assert_int_eq (rig_feed (rig, 30 * 1000, 5), GST_FLOW_OK);
  ck_assert (rig_push_event (rig, gst_event_new_eos ()));
  rig_wait_event (rig, GST_EVENT_EOS);
  check_epochs (rig);
  expect_no_trouble (rig->bus);
  rig_free (rig);
}

END_TEST

START_TEST (flush_at_a_random_moment_is_survived)
{
  Rig *rig = rig_new ("num-streams=4");
  guint target = 0;

  rig_set_caps (rig, "GRAY8", 48, 32);
  gst_harness_set_drop_buffers (rig->h, TRUE);
  for (guint epoch = 0; epoch < 100; epoch++) {
    Feeder feeder;

    target = rig->buffers + test_random (6);
    feeder_start (&feeder, rig, epoch * 1000, 999);
    rig_wait_buffers (rig, target);
    ck_assert (rig_push_event (rig, gst_event_new_flush_start ()));
    feeder_join (&feeder);
    push_flush_stop_and_segment (rig);
  }
  check_epochs (rig);
  ck_assert_int_eq (rig_feed (rig, 100 * 1000, 3), GST_FLOW_OK);
  ck_assert (rig_push_event (rig, gst_event_new_eos ()));
  rig_wait_event (rig, GST_EVENT_EOS);
  expect_no_trouble (rig->bus);
  rig_free (rig);
}

END_TEST

START_TEST (flush_stop_without_start_is_enough)
{
  Rig *rig = rig_new ("num-streams=3");

  rig_set_caps (rig, "NV12", 64, 48);
  gst_harness_set_drop_buffers (rig->h, TRUE);
  for (guint epoch = 0; epoch < 20; epoch++) {
    ck_assert_int_eq (rig_feed (rig, epoch * 1000, 5), GST_FLOW_OK);
    push_flush_stop_and_segment (rig);
  }
  ck_assert_int_eq (rig_feed (rig, 20 * 1000, 5), GST_FLOW_OK);
  ck_assert (rig_push_event (rig, gst_event_new_eos ()));
  rig_wait_event (rig, GST_EVENT_EOS);
  check_epochs (rig);
  rig_free (rig);
}

END_TEST

START_TEST (flush_clears_eos)
{
  Rig *rig = rig_new ("num-streams=3");

  rig_set_caps (rig, "NV12", 64, 48);
  ck_assert_int_eq (rig_feed (rig, 0, 2), GST_FLOW_OK);
  ck_assert (rig_push_event (rig, gst_event_new_eos ()));
  rig_wait_event (rig, GST_EVENT_EOS);
  ck_assert (rig_push_event (rig, gst_event_new_flush_start ()));
  push_flush_stop_and_segment (rig);
  ck_assert_int_eq (rig_feed (rig, 1000, 3), GST_FLOW_OK);
  rig_wait_buffers (rig, 5);
  rig_free (rig);
}

END_TEST

static Suite *
events_suite (void)
{
  Suite *suite = suite_create ("events");
  TCase *tests = test_case (suite, "events");

  tcase_add_loop_test (tests, nothing_overtakes_a_frame, 1, 5);
  tcase_add_test (tests, event_out_of_band_waits_for_nothing);
  tcase_add_test (tests, single_frames_are_not_kept_waiting);
  tcase_add_loop_test (tests, caps_change_at_any_frame, 1, 4);
  tcase_add_test (tests, frames_in_flight_leave_before_new_caps);
  tcase_add_test (tests, alternating_caps_take_no_more_memory);
  tcase_add_test (tests, the_same_caps_again_cost_nothing);
  tcase_add_test (tests, reconfigure_asks_downstream_again);
  tcase_add_test (tests, format_that_no_kernel_takes_is_refused);
  tcase_add_test (tests, drain_is_answered_after_the_frames_before_it);
  tcase_add_loop_test (tests, queued_query_ends_with_the_element, 0, 2);
  tcase_add_test (tests, allocation_is_answered_while_downstream_holds_a_frame);
  tcase_add_test (tests, flush_wakes_everything_and_leaves_no_old_frame);
  tcase_add_test (tests, flush_at_a_random_moment_is_survived);
  tcase_add_test (tests, flush_stop_without_start_is_enough);
  tcase_add_test (tests, flush_clears_eos);
  return suite;
}

int
main (int argc, char **argv)
{
  return test_main (argc, argv, events_suite);
}
