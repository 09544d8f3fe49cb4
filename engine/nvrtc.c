/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* NVRTC, opened at run time: one line per function with its literal exported name.  Knows compiler options
 * and logs, nothing of what is compiled. */
#include "nvrtc.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend.h"

typedef int nvrtc_result;       /* nvrtcResult */
typedef struct nvrtc_program_st *nvrtc_program;

enum
{
  NVRTC_SUCCESS = 0,
  NVRTC_ERROR_COMPILATION = 6
};

#define MAX_HEADERS 8
#define MAX_FOLDERS 8
#define MAX_ARCHS 64
#define OPTION_BYTES 4096

/* X (field, exported name, what it returns, parameters) */
#define SYMBOLS(X) \
  X (Version, nvrtcVersion, nvrtc_result, (int *major, int *minor)) \
  X (GetErrorString, nvrtcGetErrorString, const char *, (nvrtc_result result)) \
  X (GetNumSupportedArchs, nvrtcGetNumSupportedArchs, nvrtc_result, (int *n)) \
  X (GetSupportedArchs, nvrtcGetSupportedArchs, nvrtc_result, (int *archs)) \
  X (CreateProgram, nvrtcCreateProgram, nvrtc_result, (nvrtc_program * program, const char *text, \
          const char *name, int n_headers, const char *const *headers, const char *const *names)) \
  X (DestroyProgram, nvrtcDestroyProgram, nvrtc_result, (nvrtc_program * program)) \
  X (CompileProgram, nvrtcCompileProgram, nvrtc_result, (nvrtc_program program, int n_options, \
          const char *const *options)) \
  X (GetPTXSize, nvrtcGetPTXSize, nvrtc_result, (nvrtc_program program, size_t *size)) \
  X (GetPTX, nvrtcGetPTX, nvrtc_result, (nvrtc_program program, char *ptx)) \
  X (GetCUBINSize, nvrtcGetCUBINSize, nvrtc_result, (nvrtc_program program, size_t *size)) \
  X (GetCUBIN, nvrtcGetCUBIN, nvrtc_result, (nvrtc_program program, char *cubin)) \
  X (GetProgramLogSize, nvrtcGetProgramLogSize, nvrtc_result, (nvrtc_program program, size_t *size)) \
  X (GetProgramLog, nvrtcGetProgramLog, nvrtc_result, (nvrtc_program program, char *log))

typedef struct nvrtc
{
#define FIELD(field, symbol, returns, parameters) returns (*field) parameters;
  SYMBOLS (FIELD)
#undef FIELD
  void *library;
  int major, minor;
} nvrtc;

/* One a process, opened once: a program keeps to the NVRTC it began with. */
static pthread_mutex_t load_lock = PTHREAD_MUTEX_INITIALIZER;
static nvrtc loaded;

/* ---- loading ----------------------------------------------------------------------------------- */

static bool
find_symbols (nvrtc *self, const char **missing)
{
  static const struct
  {
    const char *name;
    size_t offset;
  } symbols[] = {
#define ENTRY(field, symbol, returns, parameters) { #symbol, offsetof (nvrtc, field) },
    SYMBOLS (ENTRY)
#undef ENTRY
  };

  for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++) {
    void *address = dlsym (self->library, symbols[i].name);

    *missing = symbols[i].name;
    if (address == NULL)
      return false;
    *(void **) ((char *) self + symbols[i].offset) = address;
  }
  return true;
}

/* The toolkit's own folder is not on the loader's path everywhere.  CSF_NVRTC names one library, and no
 * other is looked for. */
static void *
open_library (int major)
{
  static const char *const places[] = {
    "libnvrtc.so.%d", "/usr/local/cuda/lib64/libnvrtc.so.%d", "/usr/local/cuda-%d/lib64/libnvrtc.so.%d"
  };
  const char *home = getenv ("CUDA_HOME"), *only = getenv ("CSF_NVRTC");
  char path[OPTION_BYTES];

  if (only != NULL)
    return dlopen (only, RTLD_NOW | RTLD_LOCAL);
  if (home != NULL) {
    void *library;

    snprintf (path, sizeof path, "%s/lib64/libnvrtc.so.%d", home, major);
    library = dlopen (path, RTLD_NOW | RTLD_LOCAL);
    if (library != NULL)
      return library;
  }
  for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
    void *library;

    snprintf (path, sizeof path, places[i], major, major);
    library = dlopen (path, RTLD_NOW | RTLD_LOCAL);
    if (library != NULL)
      return library;
  }
  return NULL;
}

/* NVRTC opens a second library by its name alone.  Where the first was found by its path, only one that is
 * there already answers to that name. */
static void
open_builtins (const nvrtc *self)
{
  char path[OPTION_BYTES];
  const char *end;
  Dl_info info;

  if (dladdr (*(void **) &self->Version, &info) == 0 || info.dli_fname == NULL)
    return;
  end = strrchr (info.dli_fname, '/');
  if (end == NULL)
    return;
  snprintf (path, sizeof path, "%.*s/libnvrtc-builtins.so.%d.%d", (int) (end - info.dli_fname),
      info.dli_fname, self->major, self->minor);
  if (dlopen (path, RTLD_NOW | RTLD_LOCAL) == NULL)
    dlerror ();
}

static csf_status
load_locked (int driver_version, csf_error *error)
{
  const int preferred = driver_version / 1000;
  const int majors[] = { preferred, 13, 12 };
  const char *missing = NULL;
  nvrtc self = { 0 };

  for (size_t i = 0; i < sizeof majors / sizeof majors[0] && self.library == NULL; i++) {
    /* A driver runs code of its own CUDA version and of those before it. */
    if (majors[i] < 12 || (preferred != 0 && majors[i] > preferred))
      continue;
    self.library = open_library (majors[i]);
  }
  if (self.library == NULL && getenv ("CSF_NVRTC") != NULL)
    return csf_error_set (error, CSF_ERROR_UNSUPPORTED, CSF_STAGE_OPEN, CSF_NO_FRAME, 0,
        "CUDA source is compiled by NVRTC, and what CSF_NVRTC names, \"%s\", cannot be loaded; name an "
        "NVRTC library or unset CSF_NVRTC, install it if it is not there", getenv ("CSF_NVRTC"));
  if (self.library == NULL)
    return csf_error_set (error, CSF_ERROR_UNSUPPORTED, CSF_STAGE_OPEN, CSF_NO_FRAME, 0,
        "CUDA source is compiled by NVRTC, and libnvrtc.so.%d cannot be loaded; install it (package "
        "cuda-nvrtc, in PyPI nvidia-cuda-nvrtc, with its path in CSF_NVRTC), or compile the "
        "file with nvcc -cubin", preferred >= 12 ? preferred : 13);
  if (!find_symbols (&self, &missing)) {
    dlclose (self.library);
    return csf_error_set (error, CSF_ERROR_UNSUPPORTED, CSF_STAGE_OPEN, CSF_NO_FRAME, 0,
        "the NVRTC library has no %s; it is none, or older than CUDA 12: update it", missing);
  }
  self.Version (&self.major, &self.minor);
  open_builtins (&self);
  loaded = self;
  return CSF_OK;
}

/* The NVRTC of this process; NULL with the reason. */
static const nvrtc *
get_nvrtc (int driver_version, csf_error *error)
{
  csf_status status = CSF_OK;

  pthread_mutex_lock (&load_lock);
  if (loaded.library == NULL)
    status = load_locked (driver_version, error);
  pthread_mutex_unlock (&load_lock);
  return status == CSF_OK ? &loaded : NULL;
}

csf_status
csf_nvrtc_get_target (int capability, int driver_version, char target[CSF_NVRTC_TARGET_BYTES],
    csf_error *error)
{
  const nvrtc *self = get_nvrtc (driver_version, error);
  int archs[MAX_ARCHS], n = 0, best = 0;

  if (self == NULL)
    return CSF_ERROR_UNSUPPORTED;
  if (self->GetNumSupportedArchs (&n) != NVRTC_SUCCESS || n > MAX_ARCHS
      || self->GetSupportedArchs (archs) != NVRTC_SUCCESS)
    return csf_error_set (error, CSF_ERROR_UNSUPPORTED, CSF_STAGE_OPEN, CSF_NO_FRAME, 0,
        "NVRTC %d.%d does not say which devices it compiles for", self->major, self->minor);
  for (int i = 0; i < n; i++)
    if (archs[i] <= capability && archs[i] > best)
      best = archs[i];
  if (best == 0)
    return csf_error_set (error, CSF_ERROR_UNSUPPORTED, CSF_STAGE_OPEN, CSF_NO_FRAME, 0,
        "NVRTC %d.%d compiles for compute capability %d.%d and newer, the device has %d.%d; install "
        "an older NVRTC", self->major, self->minor, n > 0 ? archs[0] / 10 : 0,
        n > 0 ? archs[0] % 10 : 0, capability / 10, capability % 10);
  snprintf (target, CSF_NVRTC_TARGET_BYTES, "%s_%d nvrtc %d.%d", best == capability ? "sm" : "compute",
      best, self->major, self->minor);
  return CSF_OK;
}

/* ---- compiling --------------------------------------------------------------------------------- */

static char *
get_log (const nvrtc *self, nvrtc_program program)
{
  size_t size = 0;
  char *log;

  if (self->GetProgramLogSize (program, &size) != NVRTC_SUCCESS || size <= 1)
    return NULL;
  log = calloc (1, size + 1);
  if (log != NULL && self->GetProgramLog (program, log) != NVRTC_SUCCESS) {
    free (log);
    log = NULL;
  }
  return log;
}

/* "X.cu(12): error: ..." of a log, and how many errors there are in all. */
static csf_status
compile_error (const char *name, const char *log, csf_error *error)
{
  const char *first = log == NULL ? NULL : strstr (log, "error");
  unsigned more = 0;

  if (first == NULL)
    return csf_error_set (error, CSF_ERROR_ARGUMENT, CSF_STAGE_OPEN, CSF_NO_FRAME, 0,
        "%s does not compile, and the compiler does not say why", name);
  for (const char *at = first + 5; (at = strstr (at, "): error")) != NULL; at += 8)
    more++;
  while (first > log && first[-1] != '\n')
    first--;
  csf_error_set (error, CSF_ERROR_ARGUMENT, CSF_STAGE_OPEN, CSF_NO_FRAME, 0, "%.*s",
      (int) strcspn (first, "\n"), first);
  if (more > 0 && error != NULL) {
    size_t used = strlen (error->text);

    snprintf (error->text + used, sizeof error->text - used, " (and %u more error%s)", more,
        more == 1 ? "" : "s");
  }
  return CSF_ERROR_ARGUMENT;
}

/* log: may be NULL. */
static csf_status
nvrtc_error (const nvrtc *self, const char *name, nvrtc_result result, const char *log,
    csf_error *error)
{
  return csf_error_set (error, CSF_ERROR_UNSUPPORTED, CSF_STAGE_OPEN, CSF_NO_FRAME, 0,
      "NVRTC %d.%d could not compile %s: %s%s%.*s", self->major, self->minor, name,
      self->GetErrorString (result), log == NULL ? "" : ", ",
      log == NULL ? 0 : (int) strcspn (log, "\n"), log == NULL ? "" : log);
}

static csf_status
get_code (const nvrtc *self, nvrtc_program program, const csf_nvrtc_source *source, bool is_cubin,
    unsigned char **code, size_t *size, csf_error *error)
{
  nvrtc_result result = is_cubin ? self->GetCUBINSize (program, size) :
      self->GetPTXSize (program, size);

  if (result != NVRTC_SUCCESS)
    return nvrtc_error (self, source->name, result, NULL, error);
  *code = malloc (*size > 0 ? *size : 1);
  if (*code == NULL)
    return csf_error_set (error, CSF_ERROR_MEMORY, CSF_STAGE_OPEN, CSF_NO_FRAME, 0,
        "no memory left for the code of %s", source->name);
  result = is_cubin ? self->GetCUBIN (program, (char *) *code) :
      self->GetPTX (program, (char *) *code);
  if (result == NVRTC_SUCCESS)
    return CSF_OK;
  free (*code);
  *code = NULL;
  return nvrtc_error (self, source->name, result, NULL, error);
}

static nvrtc_result
compile (const nvrtc *self, nvrtc_program program, const csf_nvrtc_source *source,
    const char *target)
{
  char arch[64], folders[MAX_FOLDERS][OPTION_BYTES];
  const char *options[4 + MAX_FOLDERS] = { arch, "--std=c++20", 
    "--device-as-default-execution-space", "--generate-line-info" };
  int n = 4;

  snprintf (arch, sizeof arch, "--gpu-architecture=%.*s", (int) strcspn (target, " "), target);
  for (unsigned i = 0; i < source->n_folders && i < MAX_FOLDERS; i++) {
    snprintf (folders[i], sizeof folders[i], "--include-path=%s", source->folders[i]);
    options[n++] = folders[i];
  }
  return self->CompileProgram (program, n, options);
}

csf_status
csf_nvrtc_compile (const csf_nvrtc_source *source, const char *target, unsigned char **code,
    size_t *size, char **log, csf_error *error)
{
  const nvrtc *self = get_nvrtc (0, error);
  const char *names[MAX_HEADERS], *texts[MAX_HEADERS];
  unsigned n = source->n_headers < MAX_HEADERS ? source->n_headers : MAX_HEADERS;
  nvrtc_program program = NULL;
  char *own_log;
  nvrtc_result result;
  csf_status status;

  *code = NULL;
  *size = 0;
  if (log != NULL)
    *log = NULL;
  if (self == NULL)
    return CSF_ERROR_UNSUPPORTED;
  for (unsigned i = 0; i < n; i++) {
    names[i] = source->headers[i].name;
    texts[i] = source->headers[i].text;
  }
  result = self->CreateProgram (&program, source->text, source->name, (int) n, texts, names);
  if (result != NVRTC_SUCCESS)
    return nvrtc_error (self, source->name, result, NULL, error);
  result = compile (self, program, source, target);
  own_log = get_log (self, program);
  if (result == NVRTC_ERROR_COMPILATION)
    status = compile_error (source->name, own_log, error);
  else if (result != NVRTC_SUCCESS)
    status = nvrtc_error (self, source->name, result, own_log, error);
  else
    status = get_code (self, program, source, strncmp (target, "sm_", 3) == 0, code, size, error);
  self->DestroyProgram (&program);
  if (log != NULL)
    *log = own_log;
  else
    free (own_log);
  return status;
}
