/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Compiling CUDA source at run time, with the NVRTC of this machine; skipped where there is none.  The
 * fake driver looks into what was compiled. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/nvrtc.h"
#include "fixture.h"
#include "kernels/module.h"

static const csf_nvrtc_header headers[] = {
  {"cudastreamfilter/kernel.h", NULL},
};

static csf_status
compile (const char *text, const char *target, unsigned char **code, size_t *size, char **log,
    csf_error *error)
{
  csf_nvrtc_header header = { headers[0].name, (const char *) csfk_blob_contract.data };
  csf_nvrtc_source source = { "X.cu", text, &header, 1, NULL, 0 };

  return csf_nvrtc_compile (&source, target, code, size, log, error);
}

static const char described[] =
    "#include <cudastreamfilter/kernel.h>\n"
    "struct args { csfk_frame frame; int key; };\n"
    "extern \"C\" __global__ void invert (const args a)\n"
    "{\n"
    "  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;\n"
    "  const csfk_plane &in = a.frame.in.plane[0], &out = a.frame.out.plane[0];\n"
    "  if (x < in.row_bytes && y < in.rows)\n"
    "    out.data[y * out.stride + x] = in.data[y * in.stride + x] ^ a.key;\n"
    "}\n"
    "extern \"C\" __device__ csfk_desc csfk_desc_invert = {\n"
    "  .abi = CSFK_ABI, .description = \"Inverts\", .formats = { CSFK_FORMAT_GRAY8 },\n"
    "  .block_x = 32, .block_y = 8, .params_size = 4, .n_params = 1,\n"
    "  .params = { { .name = \"key\", .minimum = 0, .maximum = 255, .default_value = 255,\n"
    "      .type = CSFK_TYPE_INT } } };\n";

static void
a_cubin_is_made_for_a_device_that_nvrtc_knows (void)
{
  char target[CSF_NVRTC_TARGET_BYTES];
  csf_error error = { 0 };
  unsigned char *code;
  size_t size;
  char *log;

  CHECK_INT (csf_nvrtc_get_target (90, 0, target, &error), CSF_OK);
  CHECK (strncmp (target, "sm_90 nvrtc ", 12) == 0);
  if (compile (described, target, &code, &size, &log, &error) != CSF_OK)
    check_failed (__FILE__, __LINE__, "%s\n%s", error.text, log);
  CHECK (memcmp (code, "\177ELF", 4) == 0);
  free (code);
  free (log);
}

static void
ptx_is_made_for_a_newer_device (void)
{
  char target[CSF_NVRTC_TARGET_BYTES];
  csf_error error = { 0 };
  unsigned char *code;
  size_t size;

  CHECK_INT (csf_nvrtc_get_target (990, 0, target, &error), CSF_OK);
  CHECK (strncmp (target, "compute_", 8) == 0);
  CHECK_INT (compile (described, target, &code, &size, NULL, &error), CSF_OK);
  CHECK_INT (code[size - 1], 0);
  CHECK_CONTAINS ((const char *) code, ".entry invert");
  free (code);
}

static void
a_device_too_old_for_nvrtc_is_said (void)
{
  char target[CSF_NVRTC_TARGET_BYTES];
  csf_error error = { 0 };

  CHECK_INT (csf_nvrtc_get_target (20, 0, target, &error), CSF_ERROR_UNSUPPORTED);
  CHECK_CONTAINS (error.text, "2.0");
}

static void
an_error_has_file_line_and_the_compilers_words (void)
{
  char target[CSF_NVRTC_TARGET_BYTES];
  csf_error error = { 0 };
  unsigned char *code;
  size_t size;
  char *log;

  CHECK_INT (csf_nvrtc_get_target (90, 0, target, &error), CSF_OK);
  CHECK_INT (compile ("// a comment\nextern \"C\" __global__ void f ()\n{\n  int x = y;\n  z = 1;\n}\n",
          target, &code, &size, &log, &error), CSF_ERROR_ARGUMENT);
  CHECK_CONTAINS (error.text, "X.cu(4): error");
  CHECK_CONTAINS (error.text, "\"y\" is undefined");
  CHECK_CONTAINS (error.text, "1 more error");
  CHECK_CONTAINS (log, "X.cu(5)");
  CHECK (code == NULL);
  free (log);
}

static void
the_description_arrives_with_the_cubin (void)
{
  char target[CSF_NVRTC_TARGET_BYTES], reason[256];
  csf_device *device = open_device ();
  csf_error error = { 0 };
  csf_function function;
  csfk_kernel *kernel;
  unsigned char *code;
  csfk_blob blob = { 0 };
  size_t size;

  CHECK_INT (csf_nvrtc_get_target (csf_device_get_info (device)->capability, 0, target, &error),
      CSF_OK);
  CHECK_INT (compile (described, target, &code, &size, NULL, &error), CSF_OK);
  blob.data = code;
  blob.size = size;
  if (csf_device_inspect (device, &blob, "X.cu", NULL, &function, &error) != CSF_OK)
    check_failed (__FILE__, __LINE__, "%s", error.text);
  CHECK (strcmp (function.name, "invert") == 0);
  CHECK (function.described);
  kernel = csfk_module_create (function.name, &function.desc, code, size, reason, sizeof reason);
  CHECK (kernel != NULL);
  CHECK (strcmp (kernel->description, "Inverts") == 0);
  CHECK_INT (kernel->n_params, 1);
  CHECK (strcmp (kernel->params[0].name, "key") == 0);
  CHECK_INT (kernel->formats[0], CSFK_FORMAT_GRAY8);
  CHECK_INT (kernel->formats[1], CSFK_FORMAT_NONE);
  csfk_module_destroy (kernel);
  csf_device_unref (device);
}

#define FINDER(more) "#include <cudastreamfilter/kernel.h>\n" \
    "extern \"C\" __global__ void find (csfk_frame frame) { }\n" more \
    "extern \"C\" __device__ csfk_desc csfk_desc_find = {\n" \
    "  .abi = CSFK_ABI, .record_size = sizeof (csfk_object), .record_kind = CSFK_RECORD_OBJECT,\n" \
    "  .record_name = \"animal\", .labels = { \"cat\", \"dog\" } };\n"

static void
a_described_function_has_records (void)
{
  static const char sound[] =
      FINDER ("extern \"C\" __global__ void find_emit (csfk_frame frame) { csfk_append (&frame.records); }\n");
  static const char lacking[] = FINDER ("");
  char target[CSF_NVRTC_TARGET_BYTES], reason[256];
  csf_device *device = open_device ();
  csf_error error = { 0 };
  csf_function function;
  csfk_kernel *kernel;
  csfk_blob blob = { 0 };
  unsigned char *code;
  size_t size;

  CHECK_INT (csf_nvrtc_get_target (csf_device_get_info (device)->capability, 0, target, &error),
      CSF_OK);
  CHECK_INT (compile (lacking, target, &code, &size, NULL, &error), CSF_OK);
  blob = (csfk_blob) { code, size, 0 };
  CHECK_INT (csf_device_inspect (device, &blob, "X.cu", NULL, &function, &error), CSF_ERROR_ARGUMENT);
  CHECK_CONTAINS (error.text, "no function \"find_emit\"");
  free (code);
  CHECK_INT (compile (sound, target, &code, &size, NULL, &error), CSF_OK);
  blob = (csfk_blob) { code, size, 0 };
  /* Of the two functions one is of its own. */
  if (csf_device_inspect (device, &blob, "X.cu", NULL, &function, &error) != CSF_OK)
    check_failed (__FILE__, __LINE__, "%s", error.text);
  CHECK (strcmp (function.name, "find") == 0);
  kernel = csfk_module_create (function.name, &function.desc, code, size, reason, sizeof reason);
  CHECK (kernel != NULL && kernel->emit != NULL);
  CHECK_INT (kernel->record_size, sizeof (csfk_object));
  CHECK (strcmp (kernel->record_name, "animal") == 0);
  CHECK (strcmp (kernel->labels[1], "dog") == 0 && kernel->labels[2] == NULL);
  csfk_module_destroy (kernel);
  csf_device_unref (device);
}

/* Cut anywhere, it is refused before the driver sees it, or loads for what it is. */
static void
a_cubin_cut_short_is_refused (void)
{
  char target[CSF_NVRTC_TARGET_BYTES];
  csf_device *device = open_device ();
  csf_error error = { 0 };
  csf_function function;
  unsigned char *code;
  size_t size;

  CHECK_INT (csf_nvrtc_get_target (csf_device_get_info (device)->capability, 0, target, &error),
      CSF_OK);
  CHECK_INT (compile (described, target, &code, &size, NULL, &error), CSF_OK);
  for (size_t cut = 4; cut < size; cut += 1 + size / 97) {
    unsigned char *part = malloc (cut);
    csfk_blob blob = { part, cut, 0 };

    CHECK (part != NULL);
    memcpy (part, code, cut);
    CHECK_INT (csf_device_inspect (device, &blob, "X.cubin", NULL, &function, &error),
        CSF_ERROR_ARGUMENT);
    CHECK_CONTAINS (error.text, "cut short");
    free (part);
  }
  free (code);
  csf_device_unref (device);
}

static void
a_description_that_cannot_be_is_refused (void)
{
  csfk_desc desc = {.abi = CSFK_ABI,.n_params = 1,.params_size = 4 };
  char reason[256];

  strcpy (desc.params[0].name, "key");
  desc.params[0].maximum = 1;
  desc.params[0].offset = 4;
  CHECK (csfk_module_create ("f", &desc, NULL, 0, reason, sizeof reason) == NULL);
  CHECK_CONTAINS (reason, "key");
  desc.params[0].offset = 0;
  desc.params[0].default_value = 2;
  CHECK (csfk_module_create ("f", &desc, NULL, 0, reason, sizeof reason) == NULL);
  desc.params[0].default_value = 1;
  desc.block_x = 100;
  desc.block_y = 100;
  CHECK (csfk_module_create ("f", &desc, NULL, 0, reason, sizeof reason) == NULL);
  CHECK_CONTAINS (reason, "100 x 100");
  desc.block_x = desc.block_y = 0;
  desc.formats[0] = 4711;
  CHECK (csfk_module_create ("f", &desc, NULL, 0, reason, sizeof reason) == NULL);
  desc.formats[0] = 0;
  memset (desc.description, 'x', sizeof desc.description);
  CHECK (csfk_module_create ("f", &desc, NULL, 0, reason, sizeof reason) == NULL);
  desc.description[0] = '\0';
  desc.n_params = 17;
  CHECK (csfk_module_create ("f", &desc, NULL, 0, reason, sizeof reason) == NULL);
}

int
main (int argc, char **argv)
{
  static const test tests[] = {
    {"a_cubin_is_made_for_a_device_that_nvrtc_knows",
        a_cubin_is_made_for_a_device_that_nvrtc_knows},
    {"ptx_is_made_for_a_newer_device", ptx_is_made_for_a_newer_device},
    {"a_device_too_old_for_nvrtc_is_said", a_device_too_old_for_nvrtc_is_said},
    {"an_error_has_file_line_and_the_compilers_words",
        an_error_has_file_line_and_the_compilers_words},
    {"the_description_arrives_with_the_cubin", the_description_arrives_with_the_cubin},
    {"a_described_function_has_records", a_described_function_has_records},
    {"a_cubin_cut_short_is_refused", a_cubin_cut_short_is_refused},
    {"a_description_that_cannot_be_is_refused", a_description_that_cannot_be_is_refused},
    {NULL, NULL}
  };
  char target[CSF_NVRTC_TARGET_BYTES];
  csf_error error = { 0 };

  if (csf_nvrtc_get_target (90, 0, target, &error) != CSF_OK) {
    printf ("skipped: %s\n", error.text);
    return 77;
  }
  return run_tests (argc, argv, tests);
}
