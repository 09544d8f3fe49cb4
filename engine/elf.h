/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Whether all of an ELF file is there: loaders and drivers read over the end of one that was cut short. */
#ifndef CSF_ELF_H
#define CSF_ELF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether these bytes begin as a 64-bit ELF file does. */
bool csf_elf_is (const unsigned char *data, size_t size);

/* Where its tables, segments and sections end, at least: more than `size` when it was cut short.
 * Source: System V ABI, ELF-64, figures 4-3 (header), 4-8 (section header) and 5-1 (program header). */
uint64_t csf_elf_measure (const unsigned char *data, size_t size);

#endif
