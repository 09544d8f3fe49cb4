/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What downstream answers reaches upstream, and what goes wrong is told exactly once: by the
 * flow return while upstream still looks at it, by a message from us when it does not. */
#include "element.h"
#include "picture.h"

static const GstFlowReturn failures[] = {
  GST_FLOW_ERROR, GST_FLOW_NOT_LINKED, GST_FLOW_NOT_NEGOTIATED, GST_FLOW_CUSTOM_ERROR,
  GST_FLOW_FLUSHING, GST_FLOW_EOS,
};
/* Of these, how many are failures that someone has to tell the application. */
#define N_TOLD 4

static Rig *
rig_with_streams (guint num_streams)
{
  gchar *properties = g_strdup_printf ("num-streams=%u", num_streams);
  Rig *rig = rig_new (properties);

  g_free (properties);
  rig_set_caps (rig, "GRAY8", 64, 48);
  return rig;
}

/* Only frames in flight, and what a waiting thread has in hand, are taken after the refused one. */
START_TEST (downstream_return_reaches_upstream)
{
  for (guint num_streams = 1; num_streams <= 4; num_streams += 3) {
    Rig *rig = rig_with_streams (num_streams);
    GstFlowReturn flow = GST_FLOW_OK;
    guint n;

    rig_fail_downstream (rig, 3, failures[_i]);
    for (n = 0; n < 100 && flow == GST_FLOW_OK; n++)
      flow = rig_push (rig, rig_frame (rig, n));
    ck_assert_int_eq (flow, failures[_i]);
    ck_assert_uint_le (n, 3 + num_streams + 3);
    ck_assert_int_eq (rig_push (rig, rig_frame (rig, n)), failures[_i]);
    ck_assert_uint_eq (rig->buffers, 3);
    /* Upstream has been told; the message is its part. */
    expect_no_trouble (rig->bus);
    rig_free (rig);
  }
}

END_TEST

START_TEST (downstream_return_wakes_a_waiting_upstream)
{
  Rig *rig = rig_with_streams (2);
  Feeder feeder;

  rig_hold (rig, 1);
  rig_fail_downstream (rig, 1, failures[_i]);
  feeder_start (&feeder, rig, 0, 1000);
  rig_wait_held (rig);
  rig_release (rig);
  ck_assert_int_eq (feeder_join (&feeder), failures[_i]);
  rig_free (rig);
}

END_TEST

START_TEST (downstream_eos_ends_with_a_new_segment)
{
  Rig *rig = rig_with_streams (3);

  for (guint round = 0; round < 5; round++) {
    GstFlowReturn flow = GST_FLOW_OK;
    GstSegment segment;

    rig_fail_downstream (rig, 2, GST_FLOW_EOS);
    for (guint n = 0; n < 100 && flow == GST_FLOW_OK; n++)
      flow = rig_push (rig, rig_frame (rig, n));
    ck_assert_int_eq (flow, GST_FLOW_EOS);
    rig_fail_downstream (rig, 0, GST_FLOW_OK);
    gst_segment_init (&segment, GST_FORMAT_TIME);
    if (round % 2 == 0)
      ck_assert (rig_push_event (rig, gst_event_new_segment (&segment)));
    else
      ck_assert (rig_push_event (rig, gst_event_new_stream_start ("again"))
          && rig_push_event (rig, gst_event_new_segment (&segment)));
    ck_assert_int_eq (rig_feed (rig, 0, 3), GST_FLOW_OK);
    rig_wait_buffers (rig, (round + 1) * 5);
  }
  expect_no_trouble (rig->bus);
  rig_free (rig);
}

END_TEST

/* After EOS was sent upstream looks at no return any more. */
START_TEST (downstream_error_after_eos_is_our_message)
{
  Rig *rig = rig_with_streams (3);
  GstFlowReturn flow = failures[_i];
  GstMessage *message;

  rig_hold (rig, 1);
  rig_fail_downstream (rig, 1, flow);
  ck_assert_int_eq (rig_feed (rig, 0, 3), GST_FLOW_OK);
  rig_wait_held (rig);
  ck_assert (rig_push_event (rig, gst_event_new_eos ()));
  rig_release (rig);
  if (flow == GST_FLOW_EOS) {
    rig_wait_event (rig, GST_EVENT_EOS);
    expect_no_trouble (rig->bus);
  } else if (flow == GST_FLOW_FLUSHING) {
    gst_element_set_state (rig->x, GST_STATE_NULL);
    expect_no_trouble (rig->bus);
  } else {
    message = gst_bus_timed_pop_filtered (rig->bus, GST_CLOCK_TIME_NONE, GST_MESSAGE_ERROR);
    ck_assert (GST_MESSAGE_SRC (message) == GST_OBJECT (rig->x));
    gst_message_unref (message);
    gst_element_set_state (rig->x, GST_STATE_NULL);
    expect_no_trouble (rig->bus);
  }
  rig_free (rig);
}

END_TEST

/* Upstream may send EOS without pushing again, so that nobody has looked at the return.  Whoever
 * returns GST_FLOW_ERROR has told its reason itself. */
START_TEST (eos_after_an_unseen_failure_is_our_message)
{
  Rig *rig = rig_with_streams (3);
  GstFlowReturn flow = failures[_i];
  GstMessage *message;

  rig_fail_downstream (rig, 1, flow);
  ck_assert_int_eq (rig_feed (rig, 0, 2), GST_FLOW_OK);
  /* Events are refused from the failure on. */
  while (rig_push_event (rig, gst_event_new_gap (0, 1)))
    g_thread_yield ();
  ck_assert (!rig_push_event (rig, gst_event_new_eos ()));
  message = gst_bus_timed_pop_filtered (rig->bus, 0, GST_MESSAGE_ERROR);
  ck_assert_msg (message != NULL, "no message for %s", gst_flow_get_name (flow));
  ck_assert (GST_MESSAGE_SRC (message) == GST_OBJECT (rig->x));
  gst_message_unref (message);
  rig_free (rig);
}

END_TEST

START_TEST (flush_after_a_failure_plays_again)
{
  Rig *rig = rig_with_streams (3);
  GstFlowReturn flow = GST_FLOW_OK;
  GstSegment segment;

  rig_fail_downstream (rig, 2, failures[_i]);
  for (guint n = 0; n < 100 && flow == GST_FLOW_OK; n++)
    flow = rig_push (rig, rig_frame (rig, n));
  ck_assert_int_eq (flow, failures[_i]);
  rig_fail_downstream (rig, 0, GST_FLOW_OK);
  rig_push_event (rig, gst_event_new_flush_start ());
  rig_push_event (rig, gst_event_new_flush_stop (TRUE));
  gst_segment_init (&segment, GST_FORMAT_TIME);
  ck_assert (rig_push_event (rig, gst_event_new_segment (&segment)));
  ck_assert_int_eq (rig_feed (rig, 0, 5), GST_FLOW_OK);
  rig_wait_buffers (rig, 7);
  rig_free (rig);
}

END_TEST

/* ---- input that cannot be used --------------------------------------------------------------- */

START_TEST (too_small_buffer_is_one_error_after_the_frames_before)
{
  Rig *rig = rig_with_streams (3);
  GstFlowReturn flow;

  ck_assert_int_eq (rig_feed (rig, 0, 4), GST_FLOW_OK);
  flow = rig_push (rig, gst_buffer_new_allocate (NULL, 100, NULL));
  ck_assert_int_eq (flow, GST_FLOW_ERROR);
  ck_assert_int_eq (rig_push (rig, rig_frame (rig, 5)), GST_FLOW_ERROR);
  rig_wait_buffers (rig, 4);
  expect_one_error (rig->bus, rig->x, "frame 4", "3072 bytes", "64x48 GRAY8", "100 bytes", NULL);
  ck_assert_uint_eq (rig->buffers, 4);
  rig_free (rig);
}

END_TEST

START_TEST (empty_buffer_is_an_error)
{
  Rig *rig = rig_with_streams (2);

  ck_assert_int_eq (rig_push (rig, gst_buffer_new ()), GST_FLOW_ERROR);
  expect_one_error (rig->bus, rig->x, "frame 0", "0 bytes", NULL);
  rig_free (rig);
}

END_TEST

/* A GstVideoMeta that is not the caps' picture: no memory outside the buffer is touched. */
START_TEST (video_meta_that_lies_is_an_error)
{
  Rig *rig = rig_with_streams (2);
  GstBuffer *buffer = rig_frame (rig, 0);
  gsize offsets[GST_VIDEO_MAX_PLANES] = { 0 };
  gint strides[GST_VIDEO_MAX_PLANES] = { 64 };

  if (_i == 0)
    strides[0] = 640;
  else if (_i == 1)
    offsets[0] = 3000;
  else
    strides[0] = 32;
  gst_buffer_add_video_meta_full (buffer, GST_VIDEO_FRAME_FLAG_NONE, GST_VIDEO_FORMAT_GRAY8, 64, 48,
      1, offsets, strides);
  ck_assert_int_eq (rig_push (rig, buffer), GST_FLOW_ERROR);
  expect_one_error (rig->bus, rig->x, "frame 0", NULL);
  rig_free (rig);
}

END_TEST

START_TEST (an_oversized_buffer_is_no_error)
{
  Rig *rig = rig_with_streams (2);
  GstBuffer *in = gst_buffer_new_allocate (NULL, 64 * 48 + 1000, NULL), *out;

  picture_fill (in);
  ck_assert_int_eq (rig_push (rig, gst_buffer_ref (in)), GST_FLOW_OK);
  out = rig_pull (rig);
  picture_check_equal (&rig->info, in, out);
  gst_buffer_unref (in);
  gst_buffer_unref (out);
  rig_free (rig);
}

END_TEST

static Suite *
flow_suite (void)
{
  Suite *suite = suite_create ("flow");
  TCase *tests = test_case (suite, "flow");

  tcase_add_loop_test (tests, downstream_return_reaches_upstream, 0, G_N_ELEMENTS (failures));
  tcase_add_loop_test (tests, downstream_return_wakes_a_waiting_upstream, 0,
      G_N_ELEMENTS (failures));
  tcase_add_test (tests, downstream_eos_ends_with_a_new_segment);
  tcase_add_loop_test (tests, downstream_error_after_eos_is_our_message, 0,
      G_N_ELEMENTS (failures));
  tcase_add_loop_test (tests, eos_after_an_unseen_failure_is_our_message, 1, N_TOLD);
  tcase_add_loop_test (tests, flush_after_a_failure_plays_again, 0, G_N_ELEMENTS (failures));
  tcase_add_test (tests, too_small_buffer_is_one_error_after_the_frames_before);
  tcase_add_test (tests, empty_buffer_is_an_error);
  tcase_add_loop_test (tests, video_meta_that_lies_is_an_error, 0, 3);
  tcase_add_test (tests, an_oversized_buffer_is_no_error);
  return suite;
}

int
main (int argc, char **argv)
{
  return test_main (argc, argv, flow_suite);
}
