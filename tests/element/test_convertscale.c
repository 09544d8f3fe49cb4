/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Caps of kernel=convertscale: which format and size are chosen, what the output says of its colours, and what
 * is refused.  Pixels are test_peers_convertscale's subject. */
#include "element.h"

/* What leaves the element for these caps on either side; transfer full. */
static gchar *
output_caps (const gchar * input, const gchar * filter)
{
  gchar *line = g_strdup_printf ("videotestsrc num-buffers=2 ! video/x-raw,%s ! X name=x "
      "kernel=convertscale ! video/x-raw,%s ! fakesink name=sink enable-last-sample=true", input, filter);
  GstElement *pipeline = pipeline_new (line), *sink = pipeline_get (pipeline, "sink");
  GstSample *sample;
  gchar *caps;

  pipeline_run (pipeline);
  g_object_get (sink, "last-sample", &sample, NULL);
  caps = gst_caps_to_string (gst_sample_get_caps (sample));
  gst_sample_unref (sample);
  pipeline_free (pipeline);
  g_free (line);
  return caps;
}

static const struct
{
  const gchar *input, *filter, *expected;
} outputs[] = {
  /* The same where that is possible, else what loses least. */
  {"format=NV12,width=64,height=48", "format={GRAY8,NV12,RGB}", "format=(string)NV12"},
  {"format=RGBA,width=64,height=48", "format={GRAY8,NV12,RGB}", "format=(string)RGB"},
  {"format=RGBA,width=64,height=48", "format={RGB,BGRA}", "format=(string)BGRA"},
  {"format=I420,width=64,height=48", "format={GRAY8,RGB}", "format=(string)RGB"},
  {"format=I420,width=64,height=48", "format={RGB,NV12}", "format=(string)NV12"},
  /* A side that may not follow is followed. */
  {"format=NV12,width=320,height=240", "width=[1,100]", "height=(int)75"},
  {"format=NV12,width=320,height=240", "height=[1,100]", "width=(int)133"},
  {"format=NV12,width=320,height=240", "width=[1,100],height=[1,30]", "width=(int)40"},
  /* Colours are those of the samples. */
  {"format=NV12,width=1920,height=1080", "width=320", "colorimetry=(string)bt709"},
  {"format=NV12,width=64,height=48", "width=1920", "colorimetry=(string)bt601"},
  {"format=NV12,width=64,height=48,colorimetry=smpte240m", "width=32", "colorimetry=(string)smpte240m"},
  {"format=NV12,width=64,height=48,chroma-site=mpeg2", "width=32", "chroma-site=(string)mpeg2"},
  {"format=RGBA,width=64,height=48,colorimetry=2:1:7:1", "format=BGRA,width=32", "colorimetry=(string)2:1:7:1"},
  {"format=NV12,width=64,height=48,colorimetry=bt2020", "format=RGBA", "colorimetry=(string)1:1:11:7"},
  {"format=NV12,width=64,height=48,colorimetry=bt601", "format=NV12,colorimetry=bt709",
      "colorimetry=(string)bt709"},
};

START_TEST (output_is_the_least_loss_and_says_its_colours)
{
  gchar *caps = output_caps (outputs[_i].input, outputs[_i].filter);

  if (strstr (caps, outputs[_i].expected) == NULL)
    ck_abort_msg ("%s to %s: %s does not contain %s", outputs[_i].input, outputs[_i].filter, caps,
        outputs[_i].expected);
  g_free (caps);
}

END_TEST

static const struct
{
  const gchar *input, *filter, *words;
} refusals[] = {
  {"format=NV12,width=64,height=48,interlace-mode=interleaved", "height=24", "deinterlace"},
  {"format=NV12,width=64,height=48,colorimetry=smpte240m", "format=RGBA", "videoconvert"},
  {"format=RGBA,width=64,height=48,colorimetry=2:1:7:1", "format=NV12", "full range"},
  {"format=NV12,width=64,height=48", "format=RGBA,width=40000,height=40000", "2 GiB"},
};

START_TEST (what_cannot_be_converted_is_one_error)
{
  gchar *line = g_strdup_printf ("videotestsrc num-buffers=2 ! video/x-raw,%s ! X name=x "
      "kernel=convertscale ! video/x-raw,%s ! fakesink", refusals[_i].input, refusals[_i].filter);
  GstElement *pipeline = pipeline_new (line);

  pipeline_expect_error (pipeline, "convertscale", refusals[_i].words, NULL);
  pipeline_free (pipeline);
  g_free (line);
}

END_TEST

START_TEST (interlaced_frames_pass_as_they_are)
{
  gchar *caps = output_caps ("format=NV12,width=64,height=48,interlace-mode=interleaved", "width=64");

  ck_assert (strstr (caps, "interleaved") != NULL);
  g_free (caps);
}

END_TEST

/* Downstream asks for another size again and again, between our question and our answer too. */
START_TEST (downstream_may_change_its_mind_at_any_moment)
{
  GstElement *pipeline = pipeline_new ("videotestsrc ! video/x-raw,format=NV12,width=64,height=48 ! X "
      "name=x kernel=convertscale ! capsfilter name=filter caps=video/x-raw,width=32 ! fakesink");
  GstElement *filter = pipeline_get (pipeline, "filter");
  GstBus *bus = gst_element_get_bus (pipeline);

  pipeline_play (pipeline);
  for (guint i = 0; i < 150; i++) {
    GstCaps *caps = gst_caps_new_simple ("video/x-raw", "width", G_TYPE_INT, 16 + (gint) test_random (64),
        NULL);

    g_object_set (filter, "caps", caps, NULL);
    gst_caps_unref (caps);
    if (test_random (2))
      g_usleep (test_random (2000));
  }
  expect_no_trouble (bus);
  gst_object_unref (bus);
  pipeline_free (pipeline);
}

END_TEST

static Suite *
make_suite (void)
{
  Suite *suite = suite_create ("element-convertscale");
  TCase *tests = test_case (suite, "caps");

  tcase_add_loop_test (tests, output_is_the_least_loss_and_says_its_colours, 0,
      G_N_ELEMENTS (outputs));
  tcase_add_loop_test (tests, what_cannot_be_converted_is_one_error, 0, G_N_ELEMENTS (refusals));
  tcase_add_test (tests, interlaced_frames_pass_as_they_are);
  tcase_add_test (tests, downstream_may_change_its_mind_at_any_moment);
  return suite;
}

int
main (int argc, char **argv)
{
  return test_main (argc, argv, make_suite);
}
