/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Kernels made of a user's device code: a table entry as the built-in ones have it, from the function's
 * name and its csfk_desc.  Host side only; knows kernel.h and libc. */
#ifndef CSFK_MODULE_H
#define CSFK_MODULE_H

#include "kernel.h"

/* Takes `code` (memory for free()) over, also on failure.  desc NULL: a function without a description.
 * NULL when the description cannot be used, with a reason of at most reason_size bytes. */
csfk_kernel *csfk_module_create (const char *function, const csfk_desc * desc, unsigned char *code,
    unsigned long size, char *reason, unsigned reason_size);

/* Nothing uses the kernel any more.  NULL is allowed. */
void csfk_module_destroy (csfk_kernel * kernel);

/* The text of kernel.h, ended by 0: for compilers at run time. */
extern const csfk_blob csfk_blob_contract;

#endif
