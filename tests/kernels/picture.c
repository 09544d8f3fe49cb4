/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Random numbers, and pictures laid out with strides, misalignment and canaries of choice.
 * Knows the image contract only. */
#include "check.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static uint64_t state = 1;

void
check_seed (uint64_t seed)
{
  state = seed * 0x9e3779b97f4a7c15u + 1;
  for (int i = 0; i < 8; i++)
    check_random ();
}

uint32_t
check_random (void)
{
  state ^= state >> 12;
  state ^= state << 25;
  state ^= state >> 27;
  return (uint32_t) ((state * 0x2545f4914f6cdd1du) >> 32);
}

int
check_random_in (int low, int high)
{
  return low + (int) (check_random () % (uint32_t) (high - low + 1));
}

double
check_now (void)
{
  struct timespec now;

  clock_gettime (CLOCK_MONOTONIC, &now);
  return (double) now.tv_sec + (double) now.tv_nsec * 1e-9;
}

void
check_fail (const char *format, ...)
{
  va_list arguments;

  va_start (arguments, format);
  fputs ("FAILED: ", stdout);
  vprintf (format, arguments);
  fputc ('\n', stdout);
  va_end (arguments);
  exit (1);
}

static int
odd_multiple (int at_least, int of)
{
  int times = (at_least + of - 1) / of;

  return (times % 2 ? times : times + 1) * of;
}

/* Noise of any strength: strong noise saturates an edge detector everywhere, weak noise nowhere. */
static void
fill_rows (const csfk_image *image)
{
  int bits = image->format == CSFK_FORMAT_P010_10LE ? 16 : 8;
  int amplitude = 1 << check_random_in (1, bits);
  int base = check_random_in (0, (1 << bits) - amplitude);

  for (int i = 0; i < image->n_planes; i++) {
    const csfk_plane *plane = &image->plane[i];

    for (int y = 0; y < plane->rows; y++)
      for (int x = 0; x < plane->row_bytes; x += bits / 8) {
        unsigned value = (unsigned) base + check_random () % (unsigned) amplitude;
        unsigned char *at = plane->data + (size_t) y * (size_t) plane->stride + x;

        at[0] = (unsigned char) value;
        if (bits == 16)
          at[1] = (unsigned char) (value >> 8);
      }
  }
}

void
picture_init (canvas *picture, int format, int width, int height, int align)
{
  size_t offset[CSFK_MAX_PLANES], end = 0;

  csfk_image_init (&picture->image, format, width, height);
  for (int i = 0; i < picture->image.n_planes; i++) {
    csfk_plane *plane = &picture->image.plane[i];

    plane->stride = odd_multiple (plane->row_bytes + check_random_in (0, 2) * align, align);
    /* 64 bytes of canary before the first row and after the last. */
    offset[i] = (size_t) odd_multiple ((int) end + 64, align);
    end = offset[i] + (size_t) plane->stride * (size_t) plane->rows + 64;
  }
  picture->size = (end + 63) / 64 * 64;
  picture->memory = aligned_alloc (64, picture->size);
  if (!picture->memory)
    check_fail ("out of memory");
  for (size_t i = 0; i + 4 <= picture->size; i += 4) {
    uint32_t word = check_random ();

    memcpy (picture->memory + i, &word, 4);
  }
  for (int i = 0; i < picture->image.n_planes; i++)
    picture->image.plane[i].data = picture->memory + offset[i];
  picture->image.range = check_random_in (CSFK_RANGE_FULL, CSFK_RANGE_LIMITED);
  fill_rows (&picture->image);
}

void
picture_copy (canvas *to, const canvas *from)
{
  *to = *from;
  to->memory = aligned_alloc (64, from->size);
  if (!to->memory)
    check_fail ("out of memory");
  memcpy (to->memory, from->memory, from->size);
  for (int i = 0; i < to->image.n_planes; i++)
    to->image.plane[i].data = to->memory + (from->image.plane[i].data - from->memory);
}

void
picture_finish (canvas *picture)
{
  free (picture->memory);
  picture->memory = NULL;
}

bool
picture_same_outside (const canvas *a, const canvas *b)
{
  canvas mixed;
  bool same;

  picture_copy (&mixed, a);
  for (int i = 0; i < a->image.n_planes; i++)
    for (int y = 0; y < a->image.plane[i].rows; y++)
      memcpy (mixed.image.plane[i].data + (size_t) y * (size_t) a->image.plane[i].stride,
          b->image.plane[i].data + (size_t) y * (size_t) a->image.plane[i].stride,
          (size_t) a->image.plane[i].row_bytes);
  same = memcmp (mixed.memory, b->memory, b->size) == 0;
  picture_finish (&mixed);
  return same;
}
