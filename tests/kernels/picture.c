/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Random numbers, and pictures and blocks of memory laid out with strides, misalignment and canaries of
 * choice.  Knows the image contract only. */
#include "check.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static uint64_t state = 1;
/* Random bytes that larger memory is filled from. */
static unsigned char pool[1 << 16];

void
check_seed (uint64_t seed)
{
  state = seed * 0x9e3779b97f4a7c15u + 1;
  for (int i = 0; i < 8; i++)
    check_random ();
  for (size_t i = 0; i < sizeof pool; i += 4) {
    uint32_t word = check_random ();

    memcpy (pool + i, &word, 4);
  }
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

/* From a random place of the pool on, again and again. */
static void
fill_random (unsigned char *bytes, size_t size)
{
  size_t from = check_random () % sizeof pool;

  while (size > 0) {
    size_t part = sizeof pool - from < size ? sizeof pool - from : size;

    memcpy (bytes, pool + from, part);
    bytes += part;
    size -= part;
    from = 0;
  }
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
        unsigned value = (unsigned) base + (check_random () & (unsigned) (amplitude - 1));
        unsigned char *at = plane->data + (size_t) y * (size_t) plane->stride + x;

        at[0] = (unsigned char) value;
        if (bits == 16)
          at[1] = (unsigned char) (value >> 8);
      }
  }
}

void
picture_init_like (canvas *picture, const csfk_image *like, int align)
{
  size_t offset[CSFK_MAX_PLANES], end = 0;

  picture->image = image_strip (like);
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
  fill_random (picture->memory, picture->size);
  for (int i = 0; i < picture->image.n_planes; i++)
    picture->image.plane[i].data = picture->memory + offset[i];
  fill_rows (&picture->image);
}

void
picture_init (canvas *picture, int format, int width, int height, int align)
{
  csfk_image like;

  csfk_image_init (&like, format, width, height);
  like.range = check_random_in (CSFK_RANGE_FULL, CSFK_RANGE_LIMITED);
  if (like.matrix != CSFK_MATRIX_RGB) {
    like.matrix = check_random_in (CSFK_MATRIX_BT601, CSFK_MATRIX_BT2020);
    like.chroma_site = check_random_in (CSFK_CHROMA_SITE_CENTER, CSFK_CHROMA_SITE_TOP_LEFT);
  }
  picture_init_like (picture, &like, align);
}

/* ---- sequences ------------------------------------------------------------------------------- */

static void
copy_rows (const csfk_image *to, const csfk_image *from)
{
  for (int i = 0; i < to->n_planes; i++) {
    const csfk_plane *a = &to->plane[i], *b = &from->plane[i];

    for (int y = 0; y < a->rows; y++)
      memcpy (a->data + (size_t) y * (size_t) a->stride,
          b->data + (size_t) y * (size_t) b->stride, (size_t) a->row_bytes);
  }
}

/* Every sample moves by at most 1 << bits, within what it can hold. */
static void
add_noise (const csfk_image *image, int bits)
{
  const int bytes = image->format == CSFK_FORMAT_P010_10LE ? 2 : 1;
  const int maximum = bytes == 2 ? 65535 : 255, most = 1 << bits;

  for (int i = 0; i < image->n_planes; i++) {
    const csfk_plane *plane = &image->plane[i];

    for (int y = 0; y < plane->rows; y++)
      for (int x = 0; x < plane->row_bytes; x += bytes) {
        unsigned char *at = plane->data + (size_t) y * (size_t) plane->stride + x;
        int value = bytes == 2 ? at[0] + 256 * at[1] : at[0];

        value += check_random_in (-most, most);
        value = value < 0 ? 0 : value > maximum ? maximum : value;
        at[0] = (unsigned char) value;
        if (bytes == 2)
          at[1] = (unsigned char) (value >> 8);
      }
  }
}

/* A rectangle of random bytes somewhere in every plane. */
static void
add_change (const csfk_image *image)
{
  for (int i = 0; i < image->n_planes; i++) {
    const csfk_plane *plane = &image->plane[i];
    int x = check_random_in (0, plane->row_bytes - 1), y = check_random_in (0, plane->rows - 1);
    int bytes = check_random_in (1, plane->row_bytes - x), rows = check_random_in (1, plane->rows - y);

    for (int row = y; row < y + rows; row++)
      fill_random (plane->data + (size_t) row * (size_t) plane->stride + x, (size_t) bytes);
  }
}

void
picture_follow (canvas *picture, const canvas *previous)
{
  const int p010_bits = picture->image.format == CSFK_FORMAT_P010_10LE ? 8 : 0;
  const int n_changes = check_random_in (0, 3);

  copy_rows (&picture->image, &previous->image);
  if (check_random_in (0, 7) == 0)
    return;
  add_noise (&picture->image, p010_bits + check_random_in (0, 5));
  for (int i = 0; i < n_changes; i++)
    add_change (&picture->image);
}

void
picture_invert (canvas *picture)
{
  for (int i = 0; i < picture->image.n_planes; i++) {
    const csfk_plane *plane = &picture->image.plane[i];

    for (int y = 0; y < plane->rows; y++)
      for (int x = 0; x < plane->row_bytes; x++)
        plane->data[(size_t) y * (size_t) plane->stride + (size_t) x] ^= 0xff;
  }
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
  copy_rows (&mixed.image, &b->image);
  same = memcmp (mixed.memory, b->memory, b->size) == 0;
  picture_finish (&mixed);
  return same;
}

csfk_image
image_strip (const csfk_image *image)
{
  csfk_image stripped;

  csfk_image_init (&stripped, image->format, image->width, image->height);
  stripped.range = image->range;
  stripped.matrix = image->matrix;
  stripped.chroma_site = image->chroma_site;
  return stripped;
}

size_t
get_state_size (const csfk_kernel *kernel, const csfk_image *in, const csfk_image *out)
{
  return kernel->state_size ? kernel->state_size (kernel, in, out) : 0;
}

size_t
get_workspace_size (const csfk_kernel *kernel, const csfk_image *in, const csfk_image *out)
{
  return kernel->workspace_size ? kernel->workspace_size (kernel, in, out) : 0;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static unsigned char
get_canary (size_t i)
{
  return (unsigned char) (i * 37 + 0x5a);
}

void
block_init (guarded_block *self, size_t size)
{
  *self = (guarded_block) {.size = size,.memory_size = size + 2 * GUARD_BYTES };
  if (size == 0)
    return;
  self->allocated = malloc (self->memory_size + 64);
  if (!self->allocated)
    check_fail ("out of memory");
  /* 16 after a multiple of 32: what malloc() gives, and no more. */
  self->memory = (unsigned char *) self->allocated + (48 - (uintptr_t) self->allocated % 32) % 32;
  self->data = self->memory + GUARD_BYTES;
  for (size_t i = 0; i < self->memory_size; i++)
    self->memory[i] = get_canary (i);
  block_randomise (self);
}

void
block_randomise (guarded_block *self)
{
  if (self->size > 0)
    fill_random (self->data, self->size);
}

void
block_finish (guarded_block *self)
{
  free (self->allocated);
  *self = (guarded_block) {.size = 0 };
}

bool
block_is_intact (const guarded_block *self, const unsigned char *memory)
{
  for (size_t i = 0; self->size > 0 && i < self->memory_size; i++) {
    if (i == GUARD_BYTES)
      i += self->size;
    if (memory[i] != get_canary (i))
      return false;
  }
  return true;
}
