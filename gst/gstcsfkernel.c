/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Loads kernels: built-in ones by name, device code from files (CUDA source by way of NVRTC and a cache on
 * disk), shared libraries.  Makes no driver calls. */
#include "gstcsfkernel.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <gmodule.h>
#include <glib/gstdio.h>

#include "config.h"
#include "engine/elf.h"
#include "engine/nvrtc.h"
#include "kernels/format.h"
#include "kernels/module.h"

GST_DEBUG_CATEGORY_EXTERN (gst_cuda_stream_filter_debug);
#define GST_CAT_DEFAULT gst_cuda_stream_filter_debug

#define LIBRARY_SYMBOL "csfk_library"
/* No device, so none is left out: what every NVRTC of CUDA 12 and 13 knows. */
#define ANY_CAPABILITY 75
/* Includes of includes of a source that takes itself in would have no end. */
#define MOST_SOURCES 256
#define MOST_BYTES 67108864
/* Of a compiler's output: more helps nobody. */
#define MOST_LOG 65536

/* What a kernel was made of, the kernel-file first, and what it would have been made of were it there. */
struct _GstCsfSources
{
  GPtrArray *paths;
  GString *stamp;               /* of each path before it was read */
};

struct _GstCsfKernel
{
  gint refs;
  const csfk_kernel *kernel;
  csfk_kernel *module;          /* owned; NULL unless from a file */
  gint capability;
  GstCsfSources *sources;       /* NULL unless from a file */
};

void
gst_csf_kernel_error_clear (GstCsfKernelError * error)
{
  g_clear_pointer (&error->text, g_free);
  g_clear_pointer (&error->log, g_free);
  g_clear_pointer (&error->sources, gst_csf_sources_free);
}

/* ---- files that a kernel is made of ------------------------------------------------------------ */

static void
append_stamp (GString * stamp, const gchar * path)
{
  GStatBuf file;

  if (g_stat (path, &file) != 0)
    g_string_append (stamp, "-\n");
  else
    g_string_append_printf (stamp, "%" G_GINT64_FORMAT ".%09ld %" G_GINT64_FORMAT " %" G_GUINT64_FORMAT
        "\n", (gint64) file.st_mtim.tv_sec, (glong) file.st_mtim.tv_nsec, (gint64) file.st_size,
        (guint64) file.st_ino);
}

/* A pipe would be waited for, and a device may have no end. */
static gboolean
is_readable (const gchar * path, gchar ** reason)
{
  GStatBuf file;

  *reason = NULL;
  if (g_stat (path, &file) != 0)
    *reason = g_strdup (g_strerror (errno));
  else if (!S_ISREG (file.st_mode))
    *reason = g_strdup ("it is no regular file");
  else if (file.st_size > MOST_BYTES)
    *reason = g_strdup_printf ("it has %" G_GINT64_FORMAT " bytes, more than a kernel's %d",
        (gint64) file.st_size, MOST_BYTES);
  return *reason == NULL;
}

/* Reads a file and notes that the kernel is made of it; NULL: it cannot be read, which *reason says, or it
 * was before. */
static gchar *
read_source (GstCsfSources * sources, const gchar * path, gsize * size, gchar ** reason)
{
  GError *failure = NULL;
  gchar *content = NULL;

  *reason = NULL;
  if (sources->paths->len >= MOST_SOURCES || g_ptr_array_find_with_equal_func (sources->paths, path,
          g_str_equal, NULL))
    return NULL;
  append_stamp (sources->stamp, path);
  g_ptr_array_add (sources->paths, g_strdup (path));
  if (is_readable (path, reason) && !g_file_get_contents (path, &content, size, &failure)) {
    *reason = g_strdup (failure->message);
    g_error_free (failure);
  }
  return content;
}

static GstCsfSources *
sources_new (void)
{
  GstCsfSources *sources = g_new0 (GstCsfSources, 1);

  sources->paths = g_ptr_array_new_with_free_func (g_free);
  sources->stamp = g_string_new (NULL);
  return sources;
}

void
gst_csf_sources_free (GstCsfSources * sources)
{
  g_ptr_array_unref (sources->paths);
  g_string_free (sources->stamp, TRUE);
  g_free (sources);
}

const gchar *
gst_csf_sources_get_stamp (const GstCsfSources * sources)
{
  return sources->stamp->str;
}

const GstCsfSources *
gst_csf_kernel_get_sources (const GstCsfKernel * self)
{
  return self->sources;
}

gchar *
gst_csf_sources_look (const GstCsfSources * sources)
{
  GString *stamp;

  if (!g_file_test (g_ptr_array_index (sources->paths, 0), G_FILE_TEST_EXISTS))
    return NULL;
  stamp = g_string_new (NULL);
  for (guint i = 0; i < sources->paths->len; i++)
    append_stamp (stamp, g_ptr_array_index (sources->paths, i));
  return g_string_free (stamp, FALSE);
}

/* ---- kernels ----------------------------------------------------------------------------------- */

static GstCsfKernel *
new_kernel (const csfk_kernel * kernel)
{
  GstCsfKernel *self = g_new0 (GstCsfKernel, 1);

  self->refs = 1;
  self->kernel = kernel;
  return self;
}

GstCsfKernel *
gst_csf_kernel_ref (GstCsfKernel * self)
{
  g_atomic_int_inc (&self->refs);
  return self;
}

void
gst_csf_kernel_unref (GstCsfKernel * self)
{
  if (self == NULL || !g_atomic_int_dec_and_test (&self->refs))
    return;
  csfk_module_destroy (self->module);
  g_clear_pointer (&self->sources, gst_csf_sources_free);
  g_free (self);
}

const csfk_kernel *
gst_csf_kernel_get (const GstCsfKernel * self)
{
  return self->kernel;
}

gint
gst_csf_kernel_get_capability (const GstCsfKernel * self)
{
  return self->capability;
}

/* ---- built-in ---------------------------------------------------------------------------------- */

static gchar *
list_names (const csfk_kernel * const *kernels)
{
  GString *names = g_string_new (NULL);

  for (const csfk_kernel * const *k = kernels; *k != NULL; k++)
    g_string_append_printf (names, "%s%s", k == kernels ? "" : ", ", (*k)->name);
  return g_string_free (names, FALSE);
}

static GstCsfKernel *
load_built_in (const gchar * name, GstCsfKernelError * error)
{
  const csfk_kernel *kernel = csfk_kernel_find (name);
  gchar *names;

  if (kernel != NULL)
    return new_kernel (kernel);
  names = list_names (csfk_kernels);
  error->text = g_strdup_printf ("kernel=%s: there is no kernel of that name; expected one of %s", name,
      names);
  g_free (names);
  return NULL;
}

/* ---- shared library ---------------------------------------------------------------------------- */

static const csfk_kernel *
choose_from_library (const csfk_library_table * table, const GstCsfSettings * settings,
    GstCsfKernelError * error)
{
  const gchar *path = settings->kernel_library, *name = settings->kernel_function;
  gchar *names;

  if (table->kernels == NULL || table->kernels[0] == NULL) {
    error->text = g_strdup_printf ("kernel-library %s: its table has no kernels", path);
    return NULL;
  }
  for (const csfk_kernel * const *k = table->kernels; *k != NULL; k++)
    if ((*k)->name == NULL || (*k)->description == NULL) {
      error->text = g_strdup_printf ("kernel-library %s: a kernel of its table has no name or description",
          path);
      return NULL;
    }
  if (name == NULL && table->kernels[1] == NULL)
    return table->kernels[0];
  for (const csfk_kernel * const *k = table->kernels; name != NULL && *k != NULL; k++)
    if (g_str_equal ((*k)->name, name))
      return *k;
  names = list_names (table->kernels);
  error->text = name == NULL ?
      g_strdup_printf ("kernel-library %s has several kernels: %s; name one with kernel-function", path,
      names) :
      g_strdup_printf ("kernel-library %s has no kernel %s; expected one of %s", path, name, names);
  g_free (names);
  return NULL;
}

static gboolean
param_is_sound (const csfk_kernel * kernel, const csfk_param * param)
{
  const guint size = param->type == CSFK_TYPE_STRING ? (guint) CLAMP (param->maximum, 0, 4096) : 4;
  guint n_values = 0;

  if (param->name == NULL || param->unit == NULL || param->type < CSFK_TYPE_INT
      || param->type > CSFK_TYPE_STRING)
    return FALSE;
  if (size == 0 || param->offset % (param->type == CSFK_TYPE_STRING ? 1 : 4) != 0
      || param->offset > kernel->params_size || size > kernel->params_size - param->offset)
    return FALSE;
  if (param->type == CSFK_TYPE_STRING)
    return TRUE;
  if (param->type != CSFK_TYPE_ENUM)
    return param->minimum <= param->default_value && param->default_value <= param->maximum;
  while (param->values != NULL && param->values[n_values] != NULL)
    n_values++;
  return param->default_value >= 0 && param->default_value < n_values;
}

static gboolean
params_are_sound (const csfk_kernel * kernel)
{
  if (kernel->params_size > CSFK_MAX_PARAMS || (kernel->n_params > 0 && kernel->params == NULL))
    return FALSE;
  for (guint i = 0; i < kernel->n_params; i++)
    if (!param_is_sound (kernel, &kernel->params[i]))
      return FALSE;
  return TRUE;
}

/* They become strings of metas. */
static gboolean
record_texts_are_utf8 (const csfk_kernel * kernel)
{
  if (kernel->record_name != NULL && !g_utf8_validate (kernel->record_name, -1, NULL))
    return FALSE;
  for (gint i = 0; kernel->labels != NULL && kernel->labels[i] != NULL; i++)
    if (!g_utf8_validate (kernel->labels[i], -1, NULL))
      return FALSE;
  return TRUE;
}

/* What the engine and the caps rely on. */
static gboolean
table_entry_is_sound (const csfk_kernel * kernel, const gchar * path, GstCsfKernelError * error)
{
  const gchar *fault = NULL;

  if (kernel->abi != CSFK_ABI)
    fault = "is of another contract than its library";
  else if (kernel->process == NULL && kernel->enqueue == NULL)
    fault = "has neither a process nor an enqueue function";
  else if (kernel->formats[0] == CSFK_FORMAT_NONE)
    fault = "has no formats";
  else if (!params_are_sound (kernel))
    fault = "has a parameter without name or unit, outside its structure, or with a default outside its range";
  else if ((kernel->flags & ~(guint) (CSFK_READS_REGIONS | CSFK_RESIZES)) != 0)
    fault = "has flags that do not exist";
  else if (!record_texts_are_utf8 (kernel))
    fault = "has a record_name or label that is not UTF-8";
  for (gint i = 0; i < CSFK_MAX_FORMATS && fault == NULL; i++)
    if (kernel->formats[i] < 0 || kernel->formats[i] >= CSFK_N_FORMATS
        || kernel->out_formats[i] < 0 || kernel->out_formats[i] >= CSFK_N_FORMATS)
      fault = "names a format that does not exist";
  if (fault != NULL)
    error->text = g_strdup_printf ("kernel-library %s: its kernel %s %s", path, kernel->name, fault);
  return fault == NULL;
}

/* The loader trusts an ELF file's tables, and a file that was cut short ends the process. */
static gboolean
is_cut_short (const gchar * path, GstCsfKernelError * error)
{
  GMappedFile *file = g_mapped_file_new (path, FALSE, NULL);
  const guchar *data;
  gsize size;

  if (file == NULL)
    return FALSE;
  data = (const guchar *) g_mapped_file_get_contents (file);
  size = g_mapped_file_get_length (file);
  if (data != NULL && csf_elf_is (data, size) && csf_elf_measure (data, size) > size)
    error->text = g_strdup_printf ("kernel-library %s is cut short: expected at least %" G_GUINT64_FORMAT
        " bytes, got %" G_GSIZE_FORMAT "; build it again", path, csf_elf_measure (data, size), size);
  g_mapped_file_unref (file);
  return error->text != NULL;
}

static GstCsfKernel *
load_library (const GstCsfSettings * settings, GstCsfKernelError * error)
{
  const gchar *path = settings->kernel_library;
  const csfk_library_table *table = NULL;
  const csfk_kernel *kernel;
  GModule *library;

  /* The loader looks into its own folders for a name without a slash: a file here comes first. */
  gchar *place = strchr (path, G_DIR_SEPARATOR) == NULL && g_file_test (path, G_FILE_TEST_EXISTS) ?
      g_build_filename (".", path, NULL) : g_strdup (path);

  if (is_cut_short (place, error)) {
    g_free (place);
    return NULL;
  }
  library = g_module_open (place, G_MODULE_BIND_LOCAL);
  g_free (place);
  if (library == NULL) {
    error->text = g_strdup_printf ("kernel-library %s cannot be loaded: %s", path, g_module_error ());
    return NULL;
  }
  if (!g_module_symbol (library, LIBRARY_SYMBOL, (gpointer *) & table) || table == NULL) {
    error->text = g_strdup_printf ("kernel-library %s exports no " LIBRARY_SYMBOL "; define one "
        "csfk_library_table of that name, see cudastreamfilter/kernel.h", path);
    g_module_close (library);
    return NULL;
  }
  if (table->abi != CSFK_ABI) {
    error->text = g_strdup_printf ("kernel-library %s was compiled for kernel contract %u, this plugin "
        "speaks %d; compile it with this version's cudastreamfilter/kernel.h", path, table->abi,
        CSFK_ABI);
    g_module_close (library);
    return NULL;
  }
  kernel = choose_from_library (table, settings, error);
  if (kernel == NULL || !table_entry_is_sound (kernel, path, error)) {
    g_module_close (library);
    return NULL;
  }
  /* Its code may be running when nobody asks any more, and it may have threads of its own. */
  g_module_make_resident (library);
  return new_kernel (kernel);
}

/* ---- CUDA source ------------------------------------------------------------------------------- */

/* Notes the files beside `path` that `text` includes, and theirs, in `sources`; all contents go into the sum.
 * What lies elsewhere belongs to the toolkit. */
static void
follow_includes (const gchar * path, const gchar * text, GstCsfSources * sources, GChecksum * sum)
{
  gchar *folder = g_path_get_dirname (path);
  GRegex *include = g_regex_new ("^[ \\t]*#[ \\t]*include[ \\t]*[<\"]([^>\"\\n]+)[>\"]",
      G_REGEX_MULTILINE, 0, NULL);
  GMatchInfo *match;

  g_regex_match (include, text, 0, &match);
  for (; g_match_info_matches (match); g_match_info_next (match, NULL)) {
    gchar *name = g_match_info_fetch (match, 1);
    gchar *file = g_path_is_absolute (name) ? g_strdup (name) : g_build_filename (folder, name, NULL);
    gsize size;
    gchar *reason, *content = read_source (sources, file, &size, &reason);

    if (content != NULL) {
      g_checksum_update (sum, (const guchar *) content, size);
      follow_includes (file, content, sources, sum);
    }
    g_free (reason);
    g_free (content);
    g_free (file);
    g_free (name);
  }
  g_match_info_free (match);
  g_regex_unref (include);
  g_free (folder);
}

/* $XDG_CACHE_HOME/cudastreamfilter/SUM: code for this text, these includes, this compiler and device. */
static gchar *
get_cache_path (const gchar * path, const gchar * text, const gchar * target, GstCsfSources * sources)
{
  GChecksum *sum = g_checksum_new (G_CHECKSUM_SHA256);
  gchar *cached;

  g_checksum_update (sum, (const guchar *) PACKAGE_VERSION, -1);
  g_checksum_update (sum, csfk_blob_contract.data, csfk_blob_contract.size);
  g_checksum_update (sum, (const guchar *) target, -1);
  g_checksum_update (sum, (const guchar *) path, -1);
  g_checksum_update (sum, (const guchar *) text, -1);
  follow_includes (path, text, sources, sum);
  cached = g_build_filename (g_get_user_cache_dir (), "cudastreamfilter", g_checksum_get_string (sum),
      NULL);
  g_checksum_free (sum);
  return cached;
}

/* A cache that cannot be written costs time, nothing else. */
static void
write_cache (const gchar * cached, const guchar * code, gsize size)
{
  gchar *folder = g_path_get_dirname (cached);
  GError *failure = NULL;

  if (g_mkdir_with_parents (folder, 0700) != 0
      || !g_file_set_contents (cached, (const gchar *) code, size, &failure))
    GST_INFO ("compiled code is not kept in %s: %s", folder,
        failure != NULL ? failure->message : g_strerror (errno));
  g_clear_error (&failure);
  g_free (folder);
}

/* In memory that csfk_module_create frees, with a zero byte after it. */
static guchar *
copy_code (const gchar * from, gsize size)
{
  guchar *copy = malloc (size + 1);

  if (copy != NULL) {
    memcpy (copy, from, size);
    copy[size] = '\0';
  }
  return copy;
}

static gboolean
compile (const gchar * path, const gchar * text, const gchar * target, guchar ** code, gsize * size,
    GstCsfKernelError * error)
{
  const gchar *contract = (const gchar *) csfk_blob_contract.data;
  const csf_nvrtc_header headers[] = {
    {"cudastreamfilter/kernel.h", contract},
    {"kernel.h", contract},
  };
  gchar *folder = g_path_get_dirname (path);
  const gchar *folders[] = { folder, "/usr/local/cuda/include" };
  /* The compiler takes a name that begins so for an option, and a quote in it ends a string of its PTX. */
  gchar *name = g_strdelimit (g_strconcat (*path == '-' ? "./" : "", path, NULL), "\"\\", '_');
  const csf_nvrtc_source source = {
    .name = name,
    /* A mark of the byte order, as some editors put it, is no token. */
    .text = g_str_has_prefix (text, "\357\273\277") ? text + 3 : text,
    .headers = headers,
    .n_headers = G_N_ELEMENTS (headers),
    .folders = folders,
    .n_folders = G_N_ELEMENTS (folders),
  };
  csf_error failure;
  char *log = NULL;
  csf_status status = csf_nvrtc_compile (&source, target, code, size, &log, &failure);

  if (status != CSF_OK) {
    gchar *cut = log == NULL ? NULL : g_strndup (log, MOST_LOG);
    gchar *valid = g_utf8_make_valid (failure.text, -1);

    error->text = g_strdup_printf ("kernel-file: %s", valid);
    error->log = cut == NULL ? NULL : g_utf8_make_valid (cut, -1);
    g_free (cut);
    g_free (valid);
  } else if (log != NULL) {
    GST_INFO ("%s: %s", path, log);
  }
  free (log);
  g_free (name);
  g_free (folder);
  return status == CSF_OK;
}

/* Code for the target: from the cache, if *from_cache allows and it is there, or from the compiler. */
static gboolean
get_compiled (const gchar * path, const gchar * text, const gchar * target, const gchar * cached,
    gboolean * from_cache, guchar ** code, gsize * size, GstCsfKernelError * error)
{
  gchar *content = NULL;
  gboolean done = TRUE;

  if (*from_cache && g_file_get_contents (cached, &content, size, NULL) && *size > 0) {
    GST_DEBUG ("%s: compiled before, %s", path, cached);
    /* PTX keeps the zero byte at its end in its size. */
    *code = copy_code (content, *size);
  } else {
    *from_cache = FALSE;
    done = compile (path, text, target, code, size, error);
    if (done)
      write_cache (cached, *code, *size);
  }
  g_free (content);
  return done;
}

/* ---- files ------------------------------------------------------------------------------------- */

typedef enum
{
  FILE_UNKNOWN,
  FILE_SOURCE,
  FILE_CODE,
} FileKind;

static FileKind
kind_of (const gchar * path)
{
  static const gchar *const code[] = { ".ptx", ".cubin", ".fatbin" };

  if (g_str_has_suffix (path, ".cu"))
    return FILE_SOURCE;
  for (guint i = 0; i < G_N_ELEMENTS (code); i++)
    if (g_str_has_suffix (path, code[i]))
      return FILE_CODE;
  return FILE_UNKNOWN;
}

/* Takes the code over. */
static csfk_kernel *
make_module (const GstCsfSettings * settings, csf_device * device, guchar * code, gsize size,
    GstCsfKernelError * error)
{
  const csfk_blob blob = {.data = code,.size = size };
  gchar reason[256];
  csf_function function;
  csf_error failure;
  csfk_kernel *module;

  if (code == NULL) {
    error->text = g_strdup_printf ("no memory left for the code of %s", settings->kernel_file);
    return NULL;
  }
  if (csf_device_inspect (device, &blob, settings->kernel_file, settings->kernel_function, &function,
          &failure) != CSF_OK) {
    error->text = g_strdup_printf ("kernel-file: %s", failure.text);
    free (code);
    return NULL;
  }
  module = csfk_module_create (function.name, function.described ? &function.desc : NULL, code, size,
      reason, sizeof reason);
  if (module == NULL)
    error->text = g_strdup_printf ("kernel-file: csfk_desc_%s of %s cannot be used: %s", function.name,
        settings->kernel_file, reason);
  else if (!record_texts_are_utf8 (module)) {
    error->text = g_strdup_printf ("kernel-file: csfk_desc_%s of %s cannot be used: its record_name or a label "
        "is not UTF-8", function.name, settings->kernel_file);
    csfk_module_destroy (module);
    module = NULL;
  }
  return module;
}

/* Takes module and sources over. */
static GstCsfKernel *
wrap_module (csfk_kernel * module, csf_device * device, GstCsfSources * sources)
{
  GstCsfKernel *self = new_kernel (module);

  self->module = module;
  self->capability = csf_device_get_info (device)->capability;
  self->sources = sources;
  return self;
}

static GstCsfKernel *
load_source (const GstCsfSettings * settings, csf_device * device, const gchar * text,
    GstCsfSources * sources, GstCsfKernelError * error)
{
  const csf_device_info *info = device == NULL ? NULL : csf_device_get_info (device);
  gchar target[CSF_NVRTC_TARGET_BYTES];
  csfk_kernel *module = NULL;
  gboolean from_cache = FALSE;
  gchar *cached;
  csf_error failure;

  if (csf_nvrtc_get_target (info != NULL ? info->capability : ANY_CAPABILITY,
          info != NULL ? info->driver_version : 0, target, &failure) != CSF_OK) {
    error->text = g_strdup_printf ("kernel-file %s: %s", settings->kernel_file, failure.text);
    return NULL;
  }
  cached = get_cache_path (settings->kernel_file, text, target, sources);
  /* A cached file that was cut short is made again. */
  for (gint attempt = 0; module == NULL && (attempt == 0 || from_cache); attempt++) {
    guchar *code = NULL;
    gsize size = 0;

    from_cache = attempt == 0;
    gst_csf_kernel_error_clear (error);
    if (!get_compiled (settings->kernel_file, text, target, cached, &from_cache, &code, &size, error))
      break;
    if (device == NULL) {
      free (code);
      break;
    }
    module = make_module (settings, device, code, size, error);
  }
  g_free (cached);
  return module == NULL ? NULL : wrap_module (module, device, sources);
}

static GstCsfKernel *
load_code (const GstCsfSettings * settings, csf_device * device, const gchar * content, gsize size,
    GstCsfSources * sources, GstCsfKernelError * error)
{
  csfk_kernel *module;

  if (device == NULL)
    return NULL;
  if (size == 0) {
    error->text = g_strdup_printf ("kernel-file %s is empty", settings->kernel_file);
    return NULL;
  }
  /* With a zero byte at its end, which PTX needs and the others do not mind. */
  module = make_module (settings, device, copy_code (content, size), size
      + (g_str_has_suffix (settings->kernel_file, ".ptx") ? 1 : 0), error);
  return module == NULL ? NULL : wrap_module (module, device, sources);
}

static GstCsfKernel *
load_file (const GstCsfSettings * settings, csf_device * device, GstCsfKernelError * error)
{
  const gchar *path = settings->kernel_file;
  FileKind kind = kind_of (path);
  GstCsfKernel *self;
  GstCsfSources *sources;
  gchar *content, *reason;
  gsize size;

  if (kind == FILE_UNKNOWN) {
    error->text = g_strdup_printf ("kernel-file %s: expected a name ending in .cu, .ptx, .cubin or "
        ".fatbin", path);
    return NULL;
  }
  sources = sources_new ();
  content = read_source (sources, path, &size, &reason);
  if (content == NULL) {
    error->text = g_strdup_printf ("kernel-file %s cannot be read: %s", path, reason);
    g_free (reason);
    error->sources = sources;
    return NULL;
  }
  self = kind == FILE_SOURCE ? load_source (settings, device, content, sources, error) :
      load_code (settings, device, content, size, sources, error);
  g_free (content);
  if (self == NULL)
    error->sources = sources;
  return self;
}

/* ---- any --------------------------------------------------------------------------------------- */

gboolean
gst_csf_kernel_is_file (const GstCsfSettings * settings)
{
  return settings->kernel_file != NULL && settings->kernel_library == NULL;
}

GstCsfKernel *
gst_csf_kernel_load (const GstCsfSettings * settings, csf_device * device, GstCsfKernelError * error)
{
  if (settings->kernel_file != NULL && settings->kernel_library != NULL) {
    error->text = g_strdup ("expected kernel-file or kernel-library, got both; unset one");
    return NULL;
  }
  if (settings->kernel_library != NULL)
    return load_library (settings, error);
  if (settings->kernel_file != NULL)
    return load_file (settings, device, error);
  if (settings->kernel_function != NULL) {
    error->text = g_strdup_printf ("kernel-function=%s names a function of kernel-file or kernel-library, "
        "and neither is set", settings->kernel_function);
    return NULL;
  }
  return load_built_in (settings->kernel, error);
}
