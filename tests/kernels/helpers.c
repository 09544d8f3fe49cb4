/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The promises of format.h: facts of the formats, layout, parameters; and what every entry of the
 * kernels' table must be.  Knows the table's contract only. */
#include "check.h"

#include <math.h>
#include <string.h>

#define EXPECT CHECK_EXPECT

static void
check_formats (void)
{
  EXPECT (!csfk_format_get_info (CSFK_FORMAT_NONE));
  EXPECT (!csfk_format_get_info (CSFK_N_FORMATS));
  EXPECT (!csfk_format_get_info (-1));
  EXPECT (csfk_format_from_name ("NV21") == CSFK_FORMAT_NONE);
  EXPECT (csfk_format_from_name ("") == CSFK_FORMAT_NONE);
  for (int format = 1; format < CSFK_N_FORMATS; format++) {
    const csfk_format_info *info = csfk_format_get_info (format);

    EXPECT (info && info->name);
    EXPECT ((int) csfk_format_from_name (info->name) == format);
    EXPECT (info->n_planes >= 1 && info->n_planes <= CSFK_MAX_PLANES);
  }
}

typedef struct expected_plane
{
  int format, width, height, plane, row_bytes, rows;
} expected_plane;

/* Odd sizes, as GStreamer's video-format.c rounds them. */
static const expected_plane expected_planes[] = {
  {CSFK_FORMAT_GRAY8, 3, 5, 0, 3, 5},
  {CSFK_FORMAT_NV12, 3, 5, 0, 3, 5},
  {CSFK_FORMAT_NV12, 3, 5, 1, 4, 3},
  {CSFK_FORMAT_NV12, 1, 1, 1, 2, 1},
  {CSFK_FORMAT_I420, 3, 5, 1, 2, 3},
  {CSFK_FORMAT_I420, 4, 4, 2, 2, 2},
  {CSFK_FORMAT_YUY2, 3, 5, 0, 8, 5},
  {CSFK_FORMAT_UYVY, 1, 1, 0, 4, 1},
  {CSFK_FORMAT_P010_10LE, 3, 5, 0, 6, 5},
  {CSFK_FORMAT_P010_10LE, 3, 5, 1, 8, 3},
  {CSFK_FORMAT_RGB, 3, 5, 0, 9, 5},
  {CSFK_FORMAT_BGRA, 3, 5, 0, 12, 5},
};

static void
check_layout (void)
{
  unsigned char base[4096];
  csfk_image image;

  for (unsigned i = 0; i < sizeof expected_planes / sizeof expected_planes[0]; i++) {
    const expected_plane *expected = &expected_planes[i];

    csfk_image_init (&image, expected->format, expected->width, expected->height);
    EXPECT (image.plane[expected->plane].row_bytes == expected->row_bytes);
    EXPECT (image.plane[expected->plane].rows == expected->rows);
    EXPECT (!image.plane[expected->plane].data && image.plane[expected->plane].stride == 0);
  }

  csfk_image_init (&image, CSFK_FORMAT_RGB, 4, 4);
  EXPECT (image.range == CSFK_RANGE_FULL && image.matrix == CSFK_MATRIX_RGB);
  csfk_image_init (&image, CSFK_FORMAT_I420, 5, 3);
  EXPECT (image.range == CSFK_RANGE_LIMITED && image.matrix == CSFK_MATRIX_BT601);
  EXPECT (csfk_image_place (&image, NULL, 16) == 16 * 3 + 16 * 2 + 16 * 2);
  EXPECT (!image.plane[0].data && image.plane[0].stride == 16);
  EXPECT (csfk_image_place (&image, base, 1) == 5 * 3 + 3 * 2 + 3 * 2);
  EXPECT (image.plane[0].data == base && image.plane[1].data == base + 15);
  EXPECT (image.plane[2].data == base + 21 && image.plane[2].stride == 3);
}

static const char *const example_names[] = { "low", "middle", "high", NULL };

typedef struct example_values
{
  int count;
  float ratio;
  int flag, level;
  unsigned colour;
  char label[6];
  char behind;                  /* must stay what it is */
} example_values;

static const csfk_param example_params[] = {
  {"count", CSFK_TYPE_INT, offsetof (example_values, count), -4, 9, 3, "", "an int", NULL},
  {"ratio", CSFK_TYPE_FLOAT, offsetof (example_values, ratio), 0.5, 2, 1.5, "", "a float", NULL},
  {"flag", CSFK_TYPE_BOOL, offsetof (example_values, flag), 0, 1, 1, "", "a bool", NULL},
  {"level", CSFK_TYPE_ENUM, offsetof (example_values, level), 0, 0, 1, "", "a choice",
      example_names},
  {"colour", CSFK_TYPE_UINT, offsetof (example_values, colour), 0, 4294967295.0, 0xff00ff80, "",
      "a colour", NULL},
  {"label", CSFK_TYPE_STRING, offsetof (example_values, label), 0, 6, 0, "", "a text", NULL},
};

static int n_resolved;

static void
count_resolved (void *params)
{
  n_resolved++;
}

static const csfk_kernel example = {
  .params = example_params,.n_params = CHECK_COUNT (example_params),
  .params_size = sizeof (example_values),.resolve = count_resolved
};

static void
check_numbers (void)
{
  const csfk_param *param;
  example_values values, before;

  memset (&values, 0x55, sizeof values);
  n_resolved = 0;
  csfk_params_init (&example, &values);
  EXPECT (n_resolved == 1);
  EXPECT (values.count == 3 && values.ratio == 1.5f && values.flag == 1 && values.level == 1);
  EXPECT (values.colour == 0xff00ff80 && values.label[0] == '\0' && values.behind == '\0');

  EXPECT (csfk_params_set (&example, &values, "count", -4, &param) == CSFK_PARAM_OK);
  EXPECT (values.count == -4 && param == &example_params[0]);
  EXPECT (csfk_params_set (&example, &values, "ratio", 0.75, NULL) == CSFK_PARAM_OK);
  EXPECT (csfk_params_set (&example, &values, "flag", 0, &param) == CSFK_PARAM_OK);
  EXPECT (csfk_params_set (&example, &values, "level", 2, &param) == CSFK_PARAM_OK);
  EXPECT (csfk_params_set (&example, &values, "colour", 4294967295.0, NULL) == CSFK_PARAM_OK);
  EXPECT (values.ratio == 0.75f && values.flag == 0 && values.level == 2);
  EXPECT (values.colour == 0xffffffffu);

  before = values;
  EXPECT (csfk_params_set (&example, &values, "none", 0, &param) == CSFK_PARAM_UNKNOWN && !param);
  EXPECT (csfk_params_set (&example, &values, "count", 10, &param) == CSFK_PARAM_OUT_OF_RANGE);
  EXPECT (param == &example_params[0]);
  EXPECT (csfk_params_set (&example, &values, "ratio", 0.25, NULL) == CSFK_PARAM_OUT_OF_RANGE);
  EXPECT (csfk_params_set (&example, &values, "ratio", NAN, NULL) == CSFK_PARAM_OUT_OF_RANGE);
  EXPECT (csfk_params_set (&example, &values, "count", NAN, NULL) == CSFK_PARAM_OUT_OF_RANGE);
  EXPECT (csfk_params_set (&example, &values, "flag", 2, NULL) == CSFK_PARAM_OUT_OF_RANGE);
  EXPECT (csfk_params_set (&example, &values, "level", 3, NULL) == CSFK_PARAM_OUT_OF_RANGE);
  EXPECT (csfk_params_set (&example, &values, "level", -1, NULL) == CSFK_PARAM_OUT_OF_RANGE);
  EXPECT (csfk_params_set (&example, &values, "colour", -1, NULL) == CSFK_PARAM_OUT_OF_RANGE);
  EXPECT (csfk_params_set (&example, &values, "count", 2.5, NULL) == CSFK_PARAM_NOT_WHOLE);
  EXPECT (csfk_params_set (&example, &values, "level", 0.5, NULL) == CSFK_PARAM_NOT_WHOLE);
  EXPECT (csfk_params_set (&example, &values, "label", 1, &param) == CSFK_PARAM_NOT_A_NUMBER);
  EXPECT (param == &example_params[5]);
  EXPECT (memcmp (&before, &values, sizeof values) == 0 && n_resolved == 1);
}

static void
check_texts (void)
{
  const csfk_param *param;
  example_values values, before;

  csfk_params_init (&example, &values);
  values.behind = '!';
  n_resolved = 0;
  EXPECT (csfk_params_set_text (&example, &values, "level", "high", &param) == CSFK_PARAM_OK);
  EXPECT (values.level == 2 && param == &example_params[3]);
  EXPECT (csfk_params_set_text (&example, &values, "level", "low", NULL) == CSFK_PARAM_OK);
  EXPECT (values.level == 0);
  EXPECT (csfk_params_set_text (&example, &values, "label", "12345", &param) == CSFK_PARAM_OK);
  EXPECT (strcmp (values.label, "12345") == 0 && param == &example_params[5]);
  EXPECT (csfk_params_set_text (&example, &values, "label", "", NULL) == CSFK_PARAM_OK);
  EXPECT (values.label[0] == '\0');
  EXPECT (csfk_params_set_text (&example, &values, "label", "face", NULL) == CSFK_PARAM_OK);

  before = values;
  EXPECT (csfk_params_set_text (&example, &values, "none", "", &param) == CSFK_PARAM_UNKNOWN);
  EXPECT (!param);
  EXPECT (csfk_params_set_text (&example, &values, "label", "123456", &param)
      == CSFK_PARAM_OUT_OF_RANGE);
  EXPECT (param == &example_params[5]);
  EXPECT (csfk_params_set_text (&example, &values, "level", "", NULL) == CSFK_PARAM_OUT_OF_RANGE);
  EXPECT (csfk_params_set_text (&example, &values, "level", "lo", NULL) == CSFK_PARAM_OUT_OF_RANGE);
  EXPECT (csfk_params_set_text (&example, &values, "count", "3", &param) == CSFK_PARAM_NOT_A_TEXT);
  EXPECT (param == &example_params[0]);
  EXPECT (csfk_params_set_text (&example, &values, "ratio", "1", NULL) == CSFK_PARAM_NOT_A_TEXT);
  EXPECT (csfk_params_set_text (&example, &values, "flag", "1", NULL) == CSFK_PARAM_NOT_A_TEXT);
  EXPECT (csfk_params_set_text (&example, &values, "colour", "1", NULL) == CSFK_PARAM_NOT_A_TEXT);
  EXPECT (memcmp (&before, &values, sizeof values) == 0 && n_resolved == 0);
}

/* ---- the table ------------------------------------------------------------------------------- */

/* Says of which kernel. */
static void
expect (const csfk_kernel *kernel, bool condition, const char *what)
{
  if (!condition)
    check_fail ("%s, in its table entry: %s", kernel->name, what);
}

static void
check_format_list (const csfk_kernel *kernel, const int *formats)
{
  for (int i = 0; i < CSFK_MAX_FORMATS && formats[i] != CSFK_FORMAT_NONE; i++) {
    expect (kernel, formats[i] > 0 && formats[i] < CSFK_N_FORMATS, "there is no such format");
    for (int k = 0; k < i; k++)
      expect (kernel, formats[k] != formats[i], "the same format twice");
  }
}

static void
check_param_limits (const csfk_kernel *kernel, const csfk_param *param)
{
  unsigned size = param->type == CSFK_TYPE_STRING ? (unsigned) param->maximum : 4;
  int n_values = 0;

  expect (kernel, param->type >= CSFK_TYPE_INT && param->type <= CSFK_TYPE_STRING,
      "a parameter's type");
  expect (kernel, param->unit && param->description && param->description[0],
      "a parameter without unit or description");
  expect (kernel, param->offset + size <= kernel->params_size,
      "a parameter outside the structure");
  if (param->type != CSFK_TYPE_STRING)
    expect (kernel, param->offset % 4 == 0, "a parameter's alignment");
  if (param->type == CSFK_TYPE_STRING) {
    expect (kernel, param->maximum >= 2, "a text has room for its end alone");
  } else if (param->type == CSFK_TYPE_ENUM) {
    expect (kernel, param->values && param->values[0], "an enum without values");
    while (param->values[n_values]) {
      expect (kernel, param->values[n_values][0] != '\0', "an enum's empty name");
      for (int i = 0; i < n_values; i++)
        expect (kernel, strcmp (param->values[i], param->values[n_values]) != 0,
            "an enum's name twice");
      n_values++;
    }
    expect (kernel, param->default_value >= 0 && param->default_value < n_values
        && param->default_value == floor (param->default_value), "an enum's default");
  } else {
    expect (kernel, !param->values, "values of what is no enum");
    expect (kernel, param->minimum <= param->default_value
        && param->default_value <= param->maximum, "a default outside its range");
  }
}

/* Both ends can be set, and come out as they went in. */
static void
check_param_ends (const csfk_kernel *kernel, const csfk_param *param)
{
  unsigned char params[CSFK_MAX_PARAMS] __attribute__ ((aligned (8)));
  char longest[CSFK_MAX_PARAMS];

  csfk_params_init (kernel, params);
  if (param->type == CSFK_TYPE_STRING) {
    memset (longest, 'x', (size_t) param->maximum - 1);
    longest[(size_t) param->maximum - 1] = '\0';
    EXPECT (csfk_params_set_text (kernel, params, param->name, longest, NULL) == CSFK_PARAM_OK);
  } else if (param->type == CSFK_TYPE_ENUM) {
    for (int i = 0; param->values[i]; i++) {
      int index;

      EXPECT (csfk_params_set_text (kernel, params, param->name, param->values[i], NULL)
          == CSFK_PARAM_OK);
      memcpy (&index, params + param->offset, sizeof index);
      EXPECT (index == i);
    }
  } else {
    EXPECT (csfk_params_set (kernel, params, param->name, param->minimum, NULL) == CSFK_PARAM_OK);
    EXPECT (csfk_params_set (kernel, params, param->name, param->maximum, NULL) == CSFK_PARAM_OK);
  }
  if (kernel->resolve)
    kernel->resolve (params);
}

static void
check_params_of (const csfk_kernel *kernel)
{
  expect (kernel, kernel->params_size <= CSFK_MAX_PARAMS, "too large a parameter structure");
  expect (kernel, sizeof (csfk_frame) + kernel->params_size <= 4096,
      "an argument that no launch can carry");
  expect (kernel, kernel->n_params == 0 || kernel->params, "parameters that are nowhere");
  for (unsigned i = 0; i < kernel->n_params; i++) {
    for (unsigned k = 0; k < i; k++)
      expect (kernel, strcmp (kernel->params[i].name, kernel->params[k].name) != 0,
          "a parameter's name twice");
    check_param_limits (kernel, &kernel->params[i]);
    check_param_ends (kernel, &kernel->params[i]);
  }
}

static void
check_memory_size (const csfk_kernel *kernel, size_t size, size_t strided_size)
{
  expect (kernel, size == strided_size, "a size of its memory depends on strides");
  expect (kernel, size < (size_t) 1 << 31, "its memory has gigabytes");
}

/* The sizes of state and workspace follow from formats and sizes alone. */
static void
check_memory_of (const csfk_kernel *kernel, const kernel_model *model)
{
  static const int sizes[][2] = { {1, 1}, {3, 5}, {64, 33}, {1920, 1080}, {7680, 4320} };

  for (int f = 0; f < CSFK_MAX_FORMATS && kernel->formats[f] != CSFK_FORMAT_NONE; f++)
    for (int s = 0; s < CHECK_COUNT (sizes); s++) {
      csfk_image in, strided;

      csfk_image_init (&in, kernel->formats[f], sizes[s][0], sizes[s][1]);
      strided = in;
      csfk_image_place (&strided, NULL, 256);
      for (int choice = 0, n = model_count_outputs (model, &in); choice < n; choice++) {
        csfk_image out = model_choose_output (kernel, model, &in, choice), strided_out = out;

        csfk_image_place (&strided_out, NULL, 128);
        check_memory_size (kernel, get_state_size (kernel, &in, &out),
            get_state_size (kernel, &strided, &strided_out));
        check_memory_size (kernel, get_workspace_size (kernel, &in, &out),
            get_workspace_size (kernel, &strided, &strided_out));
        expect (kernel, !kernel->state_size || get_state_size (kernel, &in, &out) > 0,
            "a state of no bytes");
      }
    }
}

static void
check_records_of (const csfk_kernel *kernel, const kernel_model *model)
{
  const bool has = kernel->record_size > 0;

  expect (kernel, !kernel->collect == !has && !kernel->emit == !has && !model->records == !has,
      "records without a pass that appends them or without a model of them, or such of none");
  expect (kernel, !has || (kernel->record_name && kernel->record_name[0]), "records without a name");
  expect (kernel, kernel->record_size % 4 == 0, "the size of a record");
  expect (kernel, kernel->record_kind >= CSFK_RECORD_OTHER && kernel->record_kind <= CSFK_RECORD_POINT
      && (kernel->record_kind != CSFK_RECORD_OBJECT || kernel->record_size == sizeof (csfk_object))
      && (kernel->record_kind != CSFK_RECORD_POINT || kernel->record_size == sizeof (csfk_point)),
      "the kind of its records");
  expect (kernel, !kernel->labels || kernel->record_kind == CSFK_RECORD_OBJECT,
      "labels of what is no object");
}

static void
check_entry (const csfk_kernel *kernel)
{
  const kernel_model *model = model_find (kernel->name);

  expect (kernel, kernel->abi == CSFK_ABI, "the version of its contract");
  expect (kernel, kernel->description && kernel->description[0], "no description");
  expect (kernel, kernel->process && kernel->enqueue, "no CPU or no CUDA path");
  expect (kernel, kernel->device_code != NULL, "no device code");
  expect (kernel, (kernel->flags & ~(unsigned) (CSFK_READS_REGIONS | CSFK_RESIZES)) == 0,
      "unknown flags");
  expect (kernel, kernel->formats[0] != CSFK_FORMAT_NONE, "no format");
  expect (kernel, !kernel->open == !kernel->close, "open() or close() without the other");
  check_format_list (kernel, kernel->formats);
  check_format_list (kernel, kernel->out_formats);
  expect (kernel, model != NULL, "it has no model in tests/kernels");
  check_params_of (kernel);
  check_memory_of (kernel, model);
  check_records_of (kernel, model);
}

static void
check_table (void)
{
  EXPECT (csfk_kernels[0] && strcmp (csfk_kernels[0]->name, "copy") == 0);
  EXPECT (!csfk_kernel_find ("none") && !csfk_kernel_find (""));
  EXPECT (sizeof (csfk_frame) + CSFK_MAX_PARAMS <= 4096);
  EXPECT (sizeof (csfk_frame) % 8 == 0);
  for (int i = 0; csfk_kernels[i]; i++) {
    /* Fails for the second of a name. */
    EXPECT (csfk_kernel_find (csfk_kernels[i]->name) == csfk_kernels[i]);
    check_entry (csfk_kernels[i]);
  }
  for (int i = 0; kernel_models[i]; i++) {
    if (!csfk_kernel_find (kernel_models[i]->kernel))
      check_fail ("the model of %s has no kernel", kernel_models[i]->kernel);
    EXPECT (model_find (kernel_models[i]->kernel) == kernel_models[i]);
  }
}

void
check_helpers (void)
{
  check_formats ();
  check_layout ();
  check_numbers ();
  check_texts ();
  check_table ();
}
