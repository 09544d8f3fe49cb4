/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Finds the CUDA driver at run time.  Knows the driver's file and function names, nothing of what is
 * done with them. */
#include "cuda_dl.h"

#include <dlfcn.h>
#include <pthread.h>

#include "backend.h"

static pthread_once_t load_once = PTHREAD_ONCE_INIT;
static cuda_driver driver;
static csf_error load_error;
static bool loaded;

static void
load_driver (void)
{
  static const struct
  {
    const char *name;
    size_t offset;
    bool required;
  } symbols[] = {
#define CSF_CUDA_ENTRY(field, symbol, parameters) { #symbol, offsetof (cuda_driver, field), true },
    CSF_CUDA_SYMBOLS (CSF_CUDA_ENTRY)
#undef CSF_CUDA_ENTRY
#define CSF_CUDA_ENTRY(field, symbol, parameters) { #symbol, offsetof (cuda_driver, field), false },
    CSF_CUDA_OPTIONAL_SYMBOLS (CSF_CUDA_ENTRY)
#undef CSF_CUDA_ENTRY
  };
  void *library = dlopen ("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);

  if (library == NULL) {
    csf_error_set (&load_error, CSF_ERROR_DRIVER, CSF_STAGE_OPEN, CSF_NO_FRAME, 0,
        "the NVIDIA driver's libcuda.so.1 cannot be loaded (%s); install the NVIDIA driver, or in a "
        "container start it with the GPU", dlerror ());
    dlerror ();                 /* the second call frees the text of the first */
    return;
  }
  for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++) {
    void *address = dlsym (library, symbols[i].name);

    if (address == NULL && symbols[i].required) {
      csf_error_set (&load_error, CSF_ERROR_DRIVER, CSF_STAGE_OPEN, CSF_NO_FRAME, 0,
          "the NVIDIA driver has no %s; it is older than CUDA 12, update it", symbols[i].name);
      dlclose (library);
      return;
    }
    *(void **) ((char *) &driver + symbols[i].offset) = address;
  }
  loaded = true;
}

const cuda_driver *
cuda_driver_get (csf_error *error)
{
  pthread_once (&load_once, load_driver);
  if (loaded)
    return &driver;
  if (error != NULL)
    *error = load_error;
  return NULL;
}
