/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reads the tables of an ELF file.  Knows nothing of what is in its sections. */
#include "elf.h"

#include <string.h>

#define HEADER_BYTES 64
#define SECTION_BYTES 64
#define SEGMENT_BYTES 56
#define NO_BITS 8               /* a section without content in the file */

bool
csf_elf_is (const unsigned char *data, size_t size)
{
  return size >= 4 && memcmp (data, "\177ELF", 4) == 0;
}

/* Little endian, as all machines of this project are; 0 beyond the end. */
static uint64_t
number (const unsigned char *data, size_t size, uint64_t at, unsigned bytes)
{
  uint64_t value = 0;

  for (unsigned i = 0; i < bytes && at + i < size; i++)
    value |= (uint64_t) data[at + i] << 8 * i;
  return value;
}

static uint64_t
larger (uint64_t a, uint64_t b)
{
  return a > b ? a : b;
}

uint64_t
csf_elf_measure (const unsigned char *data, size_t size)
{
  const uint64_t segments = number (data, size, 32, 8), sections = number (data, size, 40, 8);
  const uint64_t segment_bytes = number (data, size, 54, 2), n_segments = number (data, size, 56, 2);
  const uint64_t section_bytes = number (data, size, 58, 2), n_sections = number (data, size, 60, 2);
  uint64_t end = HEADER_BYTES;

  end = larger (end, n_segments == 0 ? 0 : segments + segment_bytes * n_segments);
  end = larger (end, n_sections == 0 ? 0 : sections + section_bytes * n_sections);
  if (end > size)
    return end;
  for (uint64_t i = 0; i < n_segments && segment_bytes >= SEGMENT_BYTES; i++) {
    uint64_t at = segments + segment_bytes * i;

    end = larger (end, number (data, size, at + 8, 8) + number (data, size, at + 32, 8));
  }
  for (uint64_t i = 0; i < n_sections && section_bytes >= SECTION_BYTES; i++) {
    uint64_t at = sections + section_bytes * i;

    if (number (data, size, at + 4, 4) != NO_BITS)
      end = larger (end, number (data, size, at + 24, 8) + number (data, size, at + 32, 8));
  }
  return end;
}
