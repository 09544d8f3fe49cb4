/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The naive model of cornerdetect: every pixel's score found by trying, from the definition at the top of
 * the kernel's C file.  Shares only the parameter structure with it. */
#include "check.h"

#include <math.h>
#include <stdlib.h>

#include "kernels/cornerdetect/cornerdetect.h"

/* What records() looks at again and again. */
typedef struct scene
{
  int width, height;
  int *luma, *scores;
  int circle[16][2];
} scene;

static int
get_luma (const csfk_image *image, int x, int y)
{
  const channel *components;
  int n = model_get_components (image->format, &components), sum = 0;

  for (int i = 0; i < n; i++) {
    int raw = model_get_raw (image, &components[i], x, y);

    switch (components[i].kind) {
      case COMPONENT_LUMA:
        return image->format == CSFK_FORMAT_P010_10LE ? raw / 256 : raw;
      case COMPONENT_RED:
        sum += 54 * raw;
        break;
      case COMPONENT_GREEN:
        sum += 183 * raw;
        break;
      case COMPONENT_BLUE:
        sum += 19 * raw;
        break;
      default:
        break;
    }
  }
  return (sum + 128) / 256;
}

static int
at (const scene *self, const int *values, int x, int y)
{
  return x < 0 || y < 0 || x >= self->width || y >= self->height ? 0 : values[y * self->width + x];
}

static void
draw_circle (scene *self)
{
  for (int k = 0; k < 16; k++) {
    self->circle[k][0] = (int) rint (3.1 * sin (k * 3.14159265358979 / 8));
    self->circle[k][1] = (int) rint (-3.1 * cos (k * 3.14159265358979 / 8));
  }
}

/* Whether nine in a row are at least s brighter, or at least s darker. */
static bool
passes (const scene *self, int x, int y, int s)
{
  int bright = 0, dark = 0;

  for (int k = 0; k < 16 + 8; k++) {
    const int *place = self->circle[k % 16];
    int difference = at (self, self->luma, x + place[0], y + place[1]) -
        at (self, self->luma, x, y);

    bright = difference >= s ? bright + 1 : 0;
    dark = -difference >= s ? dark + 1 : 0;
    if (bright == 9 || dark == 9)
      return true;
  }
  return false;
}

/* 0: no corner. */
static int
find_score (const scene *self, int x, int y, int threshold)
{
  int low = threshold, high = 256;

  if (x < 3 || y < 3 || x >= self->width - 3 || y >= self->height - 3
      || !passes (self, x, y, threshold + 1))
    return 0;
  while (high - low > 1) {
    int middle = (low + high) / 2;

    if (passes (self, x, y, middle))
      low = middle;
    else
      high = middle;
  }
  return low;
}

static bool
is_kept (const scene *self, int x, int y)
{
  const int score = at (self, self->scores, x, y);

  for (int dy = -1; dy <= 1; dy++)
    for (int dx = -1; dx <= 1; dx++) {
      int other = at (self, self->scores, x + dx, y + dy);
      bool earlier = dy < 0 || (dy == 0 && dx < 0);

      if (other > score || (other == score && earlier))
        return false;
    }
  return true;
}

static unsigned
records (const csfk_frame *frame, const void *data, void *memory, void *to, unsigned room)
{
  const csfk_cornerdetect_params *params = data;
  const csfk_image *in = &frame->in;
  const size_t n_pixels = (size_t) in->width * (size_t) in->height;
  scene self = { in->width, in->height, malloc (n_pixels * sizeof (int)),
    malloc (n_pixels * sizeof (int)), {{0}}
  };
  csfk_point *points = to;
  unsigned n = 0;

  if (!self.luma || !self.scores)
    check_fail ("out of memory");
  draw_circle (&self);
  for (size_t i = 0; i < n_pixels; i++)
    self.luma[i] = get_luma (in, (int) (i % (size_t) in->width), (int) (i / (size_t) in->width));
  for (size_t i = 0; i < n_pixels; i++)
    self.scores[i] = find_score (&self, (int) (i % (size_t) in->width),
        (int) (i / (size_t) in->width), params->threshold);
  for (int y = 0; y < in->height; y++)
    for (int x = 0; x < in->width; x++) {
      int score = at (&self, self.scores, x, y);

      if (score == 0 || (params->suppress && !is_kept (&self, x, y)))
        continue;
      if (n < room)
        points[n] = (csfk_point) { (float) x, (float) y, (float) score, 0 };
      n++;
    }
  free (self.luma);
  free (self.scores);
  return n;
}

static int
sample (const csfk_frame *frame, const void *params, void *memory, const channel *component, int x,
    int y)
{
  return model_get_raw (&frame->in, component, x, y);
}

const kernel_model model_cornerdetect = {
  .kernel = "cornerdetect",
  /* It takes long: fewer of the larger pictures. */
  .n_frames = 2,
  .sample = sample,
  .records = records,
};
