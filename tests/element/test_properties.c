/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a user sets and reads: properties and their defaults, parameters that change while playing,
 * statistics, the last message and the element message. */
#include <string.h>

#include "element.h"
#include "picture.h"

/* ---- the list -------------------------------------------------------------------------------- */

START_TEST (properties_have_their_documented_defaults)
{
  GstElement *x = gst_element_factory_make ("cudastreamfilter", NULL);
  gint backend, device;
  guint num_streams, interval;
  guint64 pinned;
  gchar *kernel, *params;
  gboolean qos, silent;

  gst_object_ref_sink (x);
  g_object_get (x, "backend", &backend, "cuda-device-id", &device, "num-streams", &num_streams,
      "kernel", &kernel, "kernel-params", &params, "max-pinned-memory", &pinned, "qos", &qos,
      "silent", &silent, "fps-update-interval", &interval, NULL);
  ck_assert_int_eq (backend, 0);
  ck_assert_int_eq (device, -1);
  ck_assert_uint_eq (num_streams, 0);
  ck_assert_str_eq (kernel, "copy");
  ck_assert (params == NULL || *params == '\0');
  ck_assert_uint_eq (pinned, 0);
  ck_assert (!qos && !silent);
  ck_assert_uint_eq (interval, 500);
  g_free (kernel);
  g_free (params);
  gst_object_unref (x);
}

END_TEST

START_TEST (structural_properties_change_in_ready_only)
{
  static const gchar *const ready[] = {
    "backend", "cuda-device-id", "num-streams", "kernel", "max-pinned-memory", NULL
  };
  static const gchar *const playing[] = {
    "kernel-params", "qos", "silent", "fps-update-interval", NULL
  };
  GstElement *x = gst_element_factory_make ("cudastreamfilter", NULL);
  GObjectClass *klass = G_OBJECT_GET_CLASS (x);

  gst_object_ref_sink (x);
  for (guint i = 0; ready[i] != NULL; i++)
    ck_assert (g_object_class_find_property (klass, ready[i])->flags & GST_PARAM_MUTABLE_READY);
  for (guint i = 0; playing[i] != NULL; i++)
    ck_assert (g_object_class_find_property (klass, playing[i])->flags & GST_PARAM_MUTABLE_PLAYING);
  ck_assert (g_object_class_find_property (klass, "kernel-params")->flags
      & GST_PARAM_CONTROLLABLE);
  ck_assert (strstr (g_param_spec_get_blurb (g_object_class_find_property (klass, "kernel")),
          "gaussianblur (sigma=") != NULL);
  gst_object_unref (x);
}

END_TEST

START_TEST (num_streams_zero_fits_the_backend)
{
  Rig *rig = rig_new ("num-streams=0");
  GstStructure *stats = NULL;
  gdouble in_flight = -1;

  rig_set_caps (rig, "NV12", 64, 48);
  ck_assert_int_eq (rig_feed (rig, 0, 20), GST_FLOW_OK);
  rig_wait_buffers (rig, 20);
  g_object_get (rig->x, "stats", &stats, NULL);
  ck_assert (gst_structure_get_double (stats, "in-flight", &in_flight));
  ck_assert (in_flight >= 0);
  if (fake != NULL)
    ck_assert_uint_eq (stats_uint64 (rig->x, "device-bytes"),
        3 * 2 * GST_VIDEO_INFO_SIZE (&rig->info));
  gst_structure_free (stats);
  rig_free (rig);
}

END_TEST

/* ---- parameters while playing ---------------------------------------------------------------- */

static void
check_next (Rig * rig, guint n, const gchar * params)
{
  GstBuffer *in = rig_frame (rig, n), *out;

  ck_assert_int_eq (rig_push (rig, gst_buffer_ref (in)), GST_FLOW_OK);
  out = rig_pull (rig);
  picture_check (&rig->info, "gaussianblur", params, in, out);
  gst_buffer_unref (in);
  gst_buffer_unref (out);
}

START_TEST (parameters_count_from_the_next_frame)
{
  Rig *rig = rig_new ("kernel=gaussianblur num-streams=3");

  rig_set_caps (rig, "RGBA", 40, 30);
  check_next (rig, 0, NULL);
  for (guint n = 0; n < 20; n++) {
    gchar *params = g_strdup_printf ("sigma=%u.5", 1 + n % 7);

    g_object_set (rig->x, "kernel-params", params, NULL);
    check_next (rig, n + 1, params);
    g_free (params);
  }
  g_object_set (rig->x, "kernel-params", NULL, NULL);
  check_next (rig, 21, NULL);
  expect_no_trouble (rig->bus);
  rig_free (rig);
}

END_TEST

/* Frames in flight keep what they were submitted with. */
START_TEST (parameters_of_frames_in_flight_stay)
{
  enum { FRAMES = 8 };
  Rig *rig = rig_new ("kernel=gaussianblur num-streams=4 kernel-params=sigma=1");
  GstBuffer *in[FRAMES];

  rig_set_caps (rig, "GRAY8", 64, 48);
  for (guint n = 0; n < FRAMES; n++) {
    gchar *params = g_strdup_printf ("sigma=%u", n + 1);

    in[n] = rig_frame (rig, n);
    g_object_set (rig->x, "kernel-params", params, NULL);
    ck_assert_int_eq (rig_push (rig, gst_buffer_ref (in[n])), GST_FLOW_OK);
    g_free (params);
  }
  for (guint n = 0; n < FRAMES; n++) {
    gchar *params = g_strdup_printf ("sigma=%u", n + 1);
    GstBuffer *out = rig_pull (rig);

    picture_check (&rig->info, "gaussianblur", params, in[n], out);
    gst_buffer_unref (out);
    gst_buffer_unref (in[n]);
    g_free (params);
  }
  rig_free (rig);
}

END_TEST

START_TEST (structure_value_is_taken)
{
  Rig *rig = rig_new ("kernel=gaussianblur");
  GstStructure *structure = gst_structure_new ("any-name", "sigma", G_TYPE_DOUBLE, 3.5, NULL);
  GValue value = G_VALUE_INIT;

  rig_set_caps (rig, "GRAY8", 64, 48);
  g_value_init (&value, GST_TYPE_STRUCTURE);
  gst_value_set_structure (&value, structure);
  g_object_set_property (G_OBJECT (rig->x), "kernel-params", &value);
  check_next (rig, 0, "sigma=3.5");
  gst_structure_set (structure, "sigma", G_TYPE_INT, 2, NULL);
  gst_value_set_structure (&value, structure);
  g_object_set_property (G_OBJECT (rig->x), "kernel-params", &value);
  check_next (rig, 1, "sigma=2");
  expect_no_trouble (rig->bus);
  g_value_unset (&value);
  gst_structure_free (structure);
  rig_free (rig);
}

END_TEST

START_TEST (unusable_parameters_while_playing_are_one_warning)
{
  static const struct
  {
    const gchar *params, *says[3];
  } cases[] = {
    {"sigma=1000", {"sigma", "10", "1000"}},
    {"sigma=-1", {"sigma", "-1", "gaussianblur"}},
    {"sigam=2", {"sigam", "sigma", "gaussianblur"}},
    {"sigma=nan", {"sigma", "nan", "gaussianblur"}},
    {"sigma=wide", {"number", "sigma", "wide"}},
    {"nonsense", {"name=value", "sigma", "nonsense"}},
    {"sigma=2,sigma2=3", {"sigma2", "sigma", "gaussianblur"}},
  };
  Rig *rig = rig_new ("kernel=gaussianblur kernel-params=sigma=3");

  rig_set_caps (rig, "GRAY8", 40, 30);
  check_next (rig, 0, "sigma=3");
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_object_set (rig->x, "kernel-params", cases[i].params, NULL);
    check_next (rig, i + 1, "sigma=3");
    check_next (rig, i + 1, "sigma=3");
    expect_one_warning (rig->bus, rig->x, cases[i].says[0], cases[i].says[1], cases[i].says[2],
        NULL);
  }
  g_object_set (rig->x, "kernel-params", "sigma=4", NULL);
  check_next (rig, 9, "sigma=4");
  expect_no_trouble (rig->bus);
  rig_free (rig);
}

END_TEST

/* ---- statistics ------------------------------------------------------------------------------ */

typedef struct
{
  const gchar *name;
  GType type;
} Field;

static void
check_stats_fields (const GstStructure * stats)
{
  const Field fields[] = {
    {"backend", G_TYPE_STRING}, {"device", G_TYPE_STRING}, {"kernel", G_TYPE_STRING},
    {"processed", G_TYPE_UINT64}, {"dropped", G_TYPE_UINT64}, {"records", G_TYPE_UINT64},
    {"pool-growths", G_TYPE_UINT64}, {"host-copies", G_TYPE_UINT64},
    {"pinned-bytes", G_TYPE_UINT64}, {"device-bytes", G_TYPE_UINT64},
    {"upload-time", G_TYPE_UINT64}, {"kernel-time", G_TYPE_UINT64},
    {"download-time", G_TYPE_UINT64}, {"fps", G_TYPE_DOUBLE}, {"avg-fps", G_TYPE_DOUBLE},
    {"in-flight", G_TYPE_DOUBLE}, {"overlap", G_TYPE_DOUBLE}, {"efficiency", G_TYPE_DOUBLE},
    {"bound-by", G_TYPE_STRING}, {"num-streams", G_TYPE_UINT}, {"frame-time", G_TYPE_UINT64},
    {"wake-time", G_TYPE_UINT64}, {"wake-time-p99", G_TYPE_UINT64},
    {"finish-time", G_TYPE_UINT64}, {"finish-time-p99", G_TYPE_UINT64},
    {"upstream-time", G_TYPE_UINT64}, {"upstream-time-p99", G_TYPE_UINT64},
    {"staging-time", G_TYPE_UINT64}, {"staging-time-p99", G_TYPE_UINT64},
    {"submit-time", G_TYPE_UINT64}, {"submit-time-p99", G_TYPE_UINT64},
    {"upload-time-p99", G_TYPE_UINT64}, {"kernel-time-p99", G_TYPE_UINT64},
    {"records-time", G_TYPE_UINT64}, {"records-time-p99", G_TYPE_UINT64},
    {"download-time-p99", G_TYPE_UINT64}, {"downstream-time", G_TYPE_UINT64},
    {"downstream-time-p99", G_TYPE_UINT64}, {"latency", G_TYPE_UINT64},
    {"latency-p99", G_TYPE_UINT64},
  };

  ck_assert_str_eq (gst_structure_get_name (stats), "cudastreamfilter-stats");
  for (guint i = 0; i < G_N_ELEMENTS (fields); i++)
    ck_assert_msg (gst_structure_has_field_typed (stats, fields[i].name, fields[i].type),
        "stats without %s of type %s", fields[i].name, g_type_name (fields[i].type));
}

START_TEST (stats_say_what_runs)
{
  static const gchar *const bounds[] = {
    "upstream", "submit", "upload", "kernel", "download", "downstream", NULL
  };
  Rig *rig = rig_new ("kernel=sobel num-streams=2");
  GstStructure *stats = NULL;
  gchar *text;

  g_object_get (rig->x, "stats", &stats, NULL);
  check_stats_fields (stats);
  gst_structure_free (stats);
  rig_set_caps (rig, "NV12", 64, 48);
  ck_assert_int_eq (rig_feed (rig, 0, 50), GST_FLOW_OK);
  rig_wait_buffers (rig, 50);
  ck_assert (rig_push_event (rig, gst_event_new_eos ()));
  rig_wait_event (rig, GST_EVENT_EOS);
  g_object_get (rig->x, "stats", &stats, NULL);
  check_stats_fields (stats);
  ck_assert_str_eq (gst_structure_get_string (stats, "backend"), test_backend ());
  ck_assert_str_eq (gst_structure_get_string (stats, "kernel"), "sobel");
  ck_assert (g_strv_contains (bounds, gst_structure_get_string (stats, "bound-by")));
  ck_assert_uint_eq (stats_uint64 (rig->x, "processed"), 50);
  ck_assert_uint_eq (stats_uint64 (rig->x, "dropped"), 0);
  ck_assert_uint_eq (stats_uint64 (rig->x, "records"), 0);
  if (fake != NULL) {
    text = stats_string (rig->x, "device");
    ck_assert_str_eq (text, "Fake GPU 0");
    g_free (text);
    ck_assert_uint_eq (stats_uint64 (rig->x, "device-bytes"), fake_counters ().device_bytes);
    ck_assert_uint_eq (stats_uint64 (rig->x, "pinned-bytes"), fake_counters ().pinned_bytes);
    ck_assert_uint_gt (stats_uint64 (rig->x, "upload-time"), 0);
    ck_assert_uint_gt (stats_uint64 (rig->x, "download-time"), 0);
  }
  ck_assert_uint_gt (stats_uint64 (rig->x, "kernel-time"), 0);
  gst_structure_free (stats);
  rig_free (rig);
}

END_TEST

/* No stage is busy longer than the time that passed, nor can the whole. */
START_TEST (shares_are_shares)
{
  GstElement *pipeline = pipeline_new ("videotestsrc num-buffers=400 pattern=black "
      "! video/x-raw,width=64,height=48 ! X name=x num-streams=3 ! fakesink");
  GstStructure *stats = NULL;
  gdouble value = -1;

  pipeline_run (pipeline);
  g_object_get (pipeline_get (pipeline, "x"), "stats", &stats, NULL);
  gst_structure_get_double (stats, "efficiency", &value);
  ck_assert (value >= 0 && value <= 1);
  gst_structure_get_double (stats, "overlap", &value);
  ck_assert (value >= 0);
  gst_structure_get_double (stats, "avg-fps", &value);
  ck_assert (value > 0);
  gst_structure_free (stats);
  pipeline_free (pipeline);
}

END_TEST

/* ---- the last message ------------------------------------------------------------------------ */

static void
count_notify (GObject * object, GParamSpec * spec, gpointer data)
{
  g_atomic_int_inc ((gint *) data);
}

static guint
count_element_messages (GstBus * bus)
{
  GstMessage *message;
  guint count = 0;

  while ((message = gst_bus_pop_filtered (bus, GST_MESSAGE_ELEMENT)) != NULL) {
    check_stats_fields (gst_message_get_structure (message));
    gst_message_unref (message);
    count++;
  }
  return count;
}

static void
play_some (Rig * rig)
{
  rig_set_caps (rig, "NV12", 64, 48);
  ck_assert_int_eq (rig_feed (rig, 0, 10), GST_FLOW_OK);
  ck_assert (rig_push_event (rig, gst_event_new_eos ()));
  rig_wait_event (rig, GST_EVENT_EOS);
}

START_TEST (a_run_ends_with_a_last_message)
{
  Rig *rig = rig_new ("");
  gint notified = 0;
  gchar *line = NULL, *backend = g_strdup_printf ("backend: %s", test_backend ());

  g_signal_connect (rig->x, "notify::last-message", G_CALLBACK (count_notify), &notified);
  play_some (rig);
  ck_assert_int_ge (g_atomic_int_get (&notified), 1);
  ck_assert_uint_ge (count_element_messages (rig->bus), 1);
  g_object_get (rig->x, "last-message", &line, NULL);
  ck_assert (strstr (line, "processed: 10,") != NULL);
  ck_assert (strstr (line, "dropped: 0,") != NULL);
  ck_assert (strstr (line, backend) != NULL);
  g_free (line);
  g_free (backend);
  rig_free (rig);
}

END_TEST

START_TEST (silent_leaves_the_element_message)
{
  Rig *rig = rig_new ("silent=true");
  gint notified = 0;

  g_signal_connect (rig->x, "notify::last-message", G_CALLBACK (count_notify), &notified);
  play_some (rig);
  ck_assert_int_eq (g_atomic_int_get (&notified), 0);
  ck_assert_uint_ge (count_element_messages (rig->bus), 1);
  rig_free (rig);
}

END_TEST

START_TEST (interval_zero_is_off)
{
  Rig *rig = rig_new ("fps-update-interval=0");
  gint notified = 0;

  g_signal_connect (rig->x, "notify::last-message", G_CALLBACK (count_notify), &notified);
  play_some (rig);
  ck_assert_int_eq (g_atomic_int_get (&notified), 0);
  ck_assert_uint_eq (count_element_messages (rig->bus), 0);
  ck_assert_uint_eq (stats_uint64 (rig->x, "processed"), 10);
  rig_free (rig);
}

END_TEST

START_TEST (interval_has_a_least_value)
{
  GstElement *x = gst_element_factory_make ("cudastreamfilter", NULL);
  guint interval;

  gst_object_ref_sink (x);
  g_object_set (x, "fps-update-interval", 1, NULL);
  g_object_get (x, "fps-update-interval", &interval, NULL);
  ck_assert_uint_eq (interval, 100);
  gst_object_unref (x);
}

END_TEST

/* While it plays, without any end in sight: message after message. */
START_TEST (the_last_message_comes_at_the_interval)
{
  GstElement *pipeline = pipeline_new ("videotestsrc is-live=true "
      "! video/x-raw,width=64,height=48 ! X name=x fps-update-interval=100 ! fakesink");
  GstBus *bus = gst_element_get_bus (pipeline);
  guint64 processed = 0;

  pipeline_play (pipeline);
  for (guint n = 0; n < 3; n++) {
    GstMessage *message =
        gst_bus_timed_pop_filtered (bus, GST_CLOCK_TIME_NONE, GST_MESSAGE_ELEMENT);
    const GstStructure *stats = gst_message_get_structure (message);
    guint64 now = 0;

    check_stats_fields (stats);
    ck_assert (gst_structure_get_uint64 (stats, "processed", &now));
    ck_assert_uint_gt (now, processed);
    processed = now;
    gst_message_unref (message);
  }
  pipeline_free (pipeline);
  gst_object_unref (bus);
}

END_TEST

START_TEST (figures_stay_readable_after_the_end)
{
  Rig *rig = rig_new ("");
  gchar *text;

  play_some (rig);
  gst_element_set_state (rig->x, GST_STATE_NULL);
  ck_assert_uint_eq (stats_uint64 (rig->x, "processed"), 10);
  text = stats_string (rig->x, "backend");
  ck_assert_str_eq (text, test_backend ());
  g_free (text);
  rig_free (rig);
}

END_TEST

/* Texts are what was typed, whatever type GStreamer would see in them, and colours have their alpha. */
static const struct
{
  const gchar *kernel, *params;
} readable[] = {
  {"anonymize", "label=yes"}, {"anonymize", "label=007,mode=fill"}, {"anonymize", "mode=blur,label=1.50"},
  {"anonymize", "label=\"a b\""}, {"anonymize", "label=\303\204"}, {"anonymize", "label=\"\""},
  {"anonymize", "label=(string)max, blocks=4"}, {"drawregions", "color=0xffff0000"},
  {"drawregions", "color=4294901760"}, {"drawregions", "color=0x7fff0000"}, {"drawregions", "color=(uint)0xff00ff00"},
};

START_TEST (texts_and_colours_are_what_was_typed)
{
  gchar *properties = g_strdup_printf ("kernel=%s", readable[_i].kernel);
  Rig *rig = rig_new (properties);

  g_free (properties);
  g_object_set (rig->x, "kernel-params", readable[_i].params, NULL);
  rig_set_caps (rig, "NV12", 64, 48);
  ck_assert_int_eq (rig_feed (rig, 0, 1), GST_FLOW_OK);
  expect_no_trouble (rig->bus);
  rig_free (rig);
}

END_TEST

static Suite *
properties_suite (void)
{
  Suite *suite = suite_create ("properties");
  TCase *tests = test_case (suite, "properties");

  tcase_add_loop_test (tests, texts_and_colours_are_what_was_typed, 0, G_N_ELEMENTS (readable));
  tcase_add_test (tests, properties_have_their_documented_defaults);
  tcase_add_test (tests, structural_properties_change_in_ready_only);
  tcase_add_test (tests, num_streams_zero_fits_the_backend);
  tcase_add_test (tests, parameters_count_from_the_next_frame);
  tcase_add_test (tests, parameters_of_frames_in_flight_stay);
  tcase_add_test (tests, structure_value_is_taken);
  tcase_add_test (tests, unusable_parameters_while_playing_are_one_warning);
  tcase_add_test (tests, stats_say_what_runs);
  tcase_add_test (tests, shares_are_shares);
  tcase_add_test (tests, a_run_ends_with_a_last_message);
  tcase_add_test (tests, silent_leaves_the_element_message);
  tcase_add_test (tests, interval_zero_is_off);
  tcase_add_test (tests, interval_has_a_least_value);
  tcase_add_test (tests, the_last_message_comes_at_the_interval);
  tcase_add_test (tests, figures_stay_readable_after_the_end);
  return suite;
}

int
main (int argc, char **argv)
{
  return test_main (argc, argv, properties_suite);
}
