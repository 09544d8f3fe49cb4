/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a kernel finds arrives on its frame, all of it, as metas that applications know.  The kernel is of the
 * test's own library: a picture's first bytes say what there is to find. */
#include <glib/gstdio.h>
#include <gmodule.h>

#include "element.h"
#include "kernels/kernel.h"

#define RECORDS "cudastreamfilter-records"

/* The same kernel as the library's, for a real device, which cannot run a library's code for the host. */
static const gchar find_source[] =
    "#include <cudastreamfilter/kernel.h>\n"
    "__device__ void append (const csfk_frame &frame, int i, int kind, int left)\n"
    "{\n"
    "  csfk_object *object = (csfk_object *) csfk_append (&frame.records);\n"
    "  if (!object)\n"
    "    return;\n"
    "  *object = { float (i % 500 * 8 + left), float (i / 500 * 8), 4, 4, 0.25f, i % 3, -1, float (i) };\n"
    "  if (kind == 1 && i == 0) object->x = __int_as_float (0x7fffffff);\n"
    "  if (kind == 1 && i == 1) object->x = -2;\n"
    "  if (kind == 1 && i == 2) object->y = 1e9f;\n"
    "  if (kind == 2) { object->x = 100.1f; object->y = 50.3f; object->height = 9.9f; }\n"
    "  if (kind == 1 && i == 3) object->width = __int_as_float (0x7f800000);\n"
    "}\n"
    "extern \"C\" __global__ void find (csfk_frame frame) { }\n"
    "extern \"C\" __global__ void find_emit (csfk_frame frame)\n"
    "{\n"
    "  const unsigned char *head = frame.in.plane[0].data;\n"
    "  int n = head[0] + 256 * head[1];\n"
    "  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;\n"
    "  int i = x < frame.out.width && y < frame.out.height ? y * frame.out.width + x : n;\n"
    "  if (n > 10 && i < n)\n"
    "    append (frame, i, head[2], head[3]);\n"
    "  /* A few are in order: one thread appends them. */\n"
    "  for (int k = 0; n <= 10 && i == 0 && k < n; k++)\n"
    "    append (frame, k, head[2], head[3]);\n"
    "}\n"
    "extern \"C\" __device__ csfk_desc csfk_desc_find = {\n"
    "  .abi = CSFK_ABI, .formats = { CSFK_FORMAT_GRAY8 }, .record_size = sizeof (csfk_object),\n"
    "  .record_kind = CSFK_RECORD_OBJECT, .record_name = \"animal\", .labels = { \"cat\", \"dog\" } };\n";

/* Removed at the end: the element reads them when frames come. */
static GSList *find_files;

static gboolean
is_real_device (void)
{
  return fake == NULL && g_str_equal (test_backend (), "cuda");
}

static Rig *
new_rig (const gchar * more)
{
  gchar *file = NULL, *properties;
  Rig *rig;

  if (is_real_device ()) {
    gint fd = g_file_open_tmp ("csf-XXXXXX.cu", &file, NULL);

    ck_assert (fd >= 0);
    g_close (fd, NULL);
    ck_assert (g_file_set_contents (file, find_source, -1, NULL));
    properties = g_strdup_printf ("kernel-file=%s %s", file, more);
  } else {
    properties = g_strdup_printf ("kernel-library=%s kernel-function=find %s", test_library (""), more);
  }
  rig = rig_new (properties);
  g_free (properties);
  if (file != NULL)
    find_files = g_slist_prepend (find_files, file);
  return rig;
}

/* A frame in which there are so many to find; kind 1: with some that cannot be; the row begins at x. */
static GstBuffer *
new_frame (Rig * rig, guint number, guint n, guint kind, guint x)
{
  GstBuffer *frame = gst_buffer_make_writable (rig_frame (rig, number));
  guint8 head[] = { n & 255, n >> 8, kind, x };

  gst_buffer_fill (frame, 0, head, sizeof head);
  return frame;
}

static const csfk_object *
get_records (GstBuffer * buffer, guint * n)
{
  GstCustomMeta *meta = gst_buffer_get_custom_meta (buffer, RECORDS);
  const GstStructure *structure;
  const GValue *data;
  guint size;
  gsize bytes;
  gconstpointer records;

  ck_assert (meta != NULL);
  structure = gst_custom_meta_get_structure (meta);
  ck_assert_str_eq (gst_structure_get_string (structure, "name"), "animal");
  ck_assert_str_eq (gst_structure_get_string (structure, "kind"), "object");
  ck_assert (gst_structure_has_field_typed (structure, "labels", G_TYPE_STRV));
  ck_assert (gst_structure_get_uint (structure, "count", n));
  ck_assert (gst_structure_get_uint (structure, "record-size", &size));
  ck_assert_uint_eq (size, sizeof (csfk_object));
  data = gst_structure_get_value (structure, "data");
  ck_assert (data != NULL && G_VALUE_HOLDS (data, G_TYPE_BYTES));
  records = g_bytes_get_data (g_value_get_boxed (data), &bytes);
  ck_assert_uint_eq (bytes, (gsize) *n * size);
  return records;
}

static GstBuffer *
run_frame (Rig * rig, GstBuffer * frame)
{
  ck_assert_int_eq (rig_push (rig, frame), GST_FLOW_OK);
  return rig_pull (rig);
}

/* Frames that are pushed before the first is looked at: no more than the pool has. */
#define IN_FLIGHT 3

static void
check_frame (Rig * rig, guint expected)
{
  GstBuffer *out = rig_pull (rig);
  const csfk_object *objects;
  gboolean *seen;
  guint n;

  objects = get_records (out, &n);
  ck_assert_uint_eq (n, expected);
  /* In an order that is the device's. */
  seen = g_new0 (gboolean, n + 1);
  for (guint o = 0; o < n; o++) {
    guint number = (guint) objects[o].score;

    ck_assert (number < n && !seen[number]);
    seen[number] = TRUE;
  }
  g_free (seen);
  ck_assert_uint_eq (gst_buffer_get_n_meta (out, GST_VIDEO_REGION_OF_INTEREST_META_API_TYPE),
      MIN (n, 256));
  gst_buffer_unref (out);
}

START_TEST (every_record_arrives_on_its_frame)
{
  static const gchar *const memories[] = { "auto", "managed", "pinned", "device" };
  gchar *more = g_strdup_printf ("num-streams=3 metadata-memory=%s", memories[_i]);
  guint counts[120];
  guint64 total = 0, growths = 0;
  Rig *rig;

  rig = new_rig (more);
  ck_assert (rig_set_caps (rig, "GRAY8", 4096, 64));
  for (guint i = 0; i < G_N_ELEMENTS (counts) + IN_FLIGHT; i++) {
    if (i >= IN_FLIGHT)
      check_frame (rig, counts[i - IN_FLIGHT]);
    /* The most there will be came early; after it nothing grows. */
    if (i == 20)
      growths = stats_uint64 (rig->x, "pool-growths");
    if (i >= G_N_ELEMENTS (counts))
      continue;
    counts[i] = i == 5 ? 2000 : test_random (2) ? test_random (2001) : test_random (10);
    total += counts[i];
    ck_assert_int_eq (rig_push (rig, new_frame (rig, i, counts[i], 0, 0)), GST_FLOW_OK);
  }
  ck_assert_uint_eq (stats_uint64 (rig->x, "records"), total);
  ck_assert_uint_eq (stats_uint64 (rig->x, "pool-growths"), growths);
  ck_assert_uint_eq (stats_uint64 (rig->x, "clipped-records"), 0);
  rig_free (rig);
  g_free (more);
}

END_TEST

START_TEST (objects_are_regions_of_interest)
{
  Rig *rig;
  GstBuffer *frame, *out;

  rig = new_rig ("");
  ck_assert (rig_set_caps (rig, "GRAY8", 320, 64));
  frame = new_frame (rig, 0, 3, 0, 5);
  /* One of upstream's stays, and keeps its number. */
  gst_buffer_add_video_region_of_interest_meta (frame, "zone", 1, 2, 3, 4)->id = 6;
  out = run_frame (rig, frame);
  ck_assert_uint_eq (gst_buffer_get_n_meta (out, GST_VIDEO_REGION_OF_INTEREST_META_API_TYPE), 4);
  for (gint i = 0; i < 3; i++) {
    static const gchar *const labels[] = { "cat", "dog", "animal" };
    GstVideoRegionOfInterestMeta *roi = gst_buffer_get_video_region_of_interest_meta_id (out, 7 + i);
    GstStructure *params;
    gdouble confidence;
    gint track;

    ck_assert (roi != NULL);
    ck_assert_str_eq (g_quark_to_string (roi->roi_type), labels[i]);
    ck_assert_uint_eq (roi->x, 5 + 8 * i);
    ck_assert_uint_eq (roi->y, 0);
    ck_assert_uint_eq (roi->w, 4);
    ck_assert_uint_eq (roi->h, 4);
    params = gst_video_region_of_interest_meta_get_param (roi, "detection");
    ck_assert (params != NULL);
    ck_assert (gst_structure_get_double (params, "confidence", &confidence));
    ck_assert (confidence == 0.25);
    ck_assert (gst_structure_get_int (params, "track-id", &track));
    ck_assert_int_eq (track, i);
    ck_assert_str_eq (gst_structure_get_string (params, "label"), labels[i]);
  }
  gst_buffer_unref (out);
  rig_free (rig);
}

END_TEST

START_TEST (boxes_that_cannot_be_are_clipped_or_left_out)
{
  Rig *rig;
  GstBuffer *out;
  const csfk_object *objects;
  guint n;

  rig = new_rig ("");
  ck_assert (rig_set_caps (rig, "GRAY8", 320, 64));
  out = run_frame (rig, new_frame (rig, 0, 6, 1, 0));
  objects = get_records (out, &n);
  /* No number, below the picture, endlessly wide: three are gone, one is cut. */
  ck_assert_uint_eq (n, 3);
  ck_assert_int_eq ((gint) objects[0].score, 1);
  ck_assert (objects[0].x == 0 && objects[0].width == 2);
  ck_assert_int_eq ((gint) objects[1].score, 4);
  ck_assert_uint_eq (stats_uint64 (rig->x, "clipped-records"), 4);
  gst_buffer_unref (out);
  rig_free (rig);
}

END_TEST

START_TEST (boxes_within_the_picture_stay_as_they_are)
{
  Rig *rig = new_rig ("");
  GstBuffer *out;
  const csfk_object *objects;
  guint n;

  ck_assert (rig_set_caps (rig, "GRAY8", 320, 64));
  out = run_frame (rig, new_frame (rig, 0, 2, 2, 0));
  objects = get_records (out, &n);
  ck_assert_uint_eq (n, 2);
  ck_assert (objects[0].x == 100.1f && objects[0].y == 50.3f && objects[0].height == 9.9f);
  ck_assert_uint_eq (stats_uint64 (rig->x, "clipped-records"), 0);
  gst_buffer_unref (out);
  rig_free (rig);
}

END_TEST

/* A type that is no text, as of a broken upstream. */
START_TEST (region_of_no_type_is_read)
{
  Rig *rig = rig_new ("kernel=drawregions");
  GstBuffer *frame;

  ck_assert (rig_set_caps (rig, "GRAY8", 320, 64));
  frame = gst_buffer_make_writable (rig_frame (rig, 0));
  gst_buffer_add_video_region_of_interest_meta_id (frame, 0x7ffffff, 8, 8, 16, 16);
  gst_buffer_unref (run_frame (rig, frame));
  rig_free (rig);
}

END_TEST

static gint
track_of (Rig * rig, guint number, guint x, gboolean discont)
{
  GstBuffer *frame = new_frame (rig, number, 1, 0, x), *out;
  const csfk_object *objects;
  gint track;
  guint n;

  if (discont)
    GST_BUFFER_FLAG_SET (frame, GST_BUFFER_FLAG_DISCONT);
  out = run_frame (rig, frame);
  objects = get_records (out, &n);
  ck_assert_uint_eq (n, 1);
  track = objects[0].track_id;
  gst_buffer_unref (out);
  return track;
}

START_TEST (what_moves_a_little_keeps_its_number)
{
  gint first;
  Rig *rig;

  rig = new_rig ("num-streams=3");
  ck_assert (rig_set_caps (rig, "GRAY8", 320, 64));
  first = track_of (rig, 0, 10, FALSE);
  for (guint i = 1; i < 50; i++)
    ck_assert_int_eq (track_of (rig, i, 10 + i, FALSE), first);
  /* Far away it is another, and after a cut as well. */
  ck_assert_int_ne (track_of (rig, 50, 200, FALSE), first);
  first = track_of (rig, 51, 200, FALSE);
  ck_assert_int_ne (track_of (rig, 52, 200, TRUE), first);
  rig_free (rig);
}

END_TEST

START_TEST (more_than_max_records_is_said_once)
{
  Rig *rig;
  GstBuffer *out;
  guint n;

  rig = new_rig ("max-records=100");
  ck_assert (rig_set_caps (rig, "GRAY8", 4096, 64));
  for (guint i = 0; i < 3; i++) {
    out = run_frame (rig, new_frame (rig, i, 150, 0, 0));
    get_records (out, &n);
    ck_assert_uint_eq (n, 100);
    gst_buffer_unref (out);
  }
  expect_one_warning (rig->bus, rig->x, "find", "150", "max-records is 100", NULL);
  rig_free (rig);
}

END_TEST

static Suite *
make_suite (void)
{
  Suite *suite = suite_create ("element-records");
  TCase *tests = test_case (suite, "records");

  if (fake != NULL) {
    GModule *library = g_module_open (test_library (""), G_MODULE_BIND_LOCAL);
    const csfk_library_table *table = NULL;

    if (library == NULL || !g_module_symbol (library, "csfk_library", (gpointer *) & table))
      g_error ("%s", g_module_error ());
    for (const csfk_kernel * const *k = table->kernels; *k != NULL; k++)
      if ((*k)->process != NULL)
        fake->add_kernel (*k);
  }
  tcase_add_loop_test (tests, every_record_arrives_on_its_frame, 0, 4);
  tcase_add_test (tests, objects_are_regions_of_interest);
  tcase_add_test (tests, boxes_that_cannot_be_are_clipped_or_left_out);
  tcase_add_test (tests, boxes_within_the_picture_stay_as_they_are);
  tcase_add_test (tests, region_of_no_type_is_read);
  tcase_add_test (tests, what_moves_a_little_keeps_its_number);
  tcase_add_test (tests, more_than_max_records_is_said_once);
  return suite;
}

int
main (int argc, char **argv)
{
  int status = test_main (argc, argv, make_suite);

  for (GSList * file = find_files; file != NULL; file = file->next)
    g_unlink (file->data);
  g_slist_free_full (find_files, g_free);
  return status;
}
