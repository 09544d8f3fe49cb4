/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What enqueue() and emit() give to the driver, seen by a launcher that only looks: names, order, limits, and
 * an argument that begins with the frame and goes on with the parameters.  No memory is behind the frame, so
 * it may have any size.  Knows the kernels' contract only. */
#include "check.h"

#include <string.h>

/* The fake driver runs process() where csfk_NAME is launched, collect() where csfk_NAME_emit is, and nothing
 * where csfk_NAME_part is. */
typedef struct watcher
{
  csfk_launcher launcher;       /* first: watch() finds the rest from it */
  const kernel_trial *trial;
  csfk_frame frame;
  int n_launches, fail_at;      /* the launch that fails, from 1; 0: none */
  bool emits;                   /* emit() is under way, not enqueue() */
  bool finished;                /* the function that comes last was launched */
} watcher;

enum
{
  WATCHER_ERROR = 4242,
  MAX_ARGS = 4096,
  MAX_SHARED = 48 * 1024,
  MAX_GRID_YZ = 65535,
  MAX_BLOCK = 1024,
  MAX_BLOCK_Z = 64,
  MAX_LAUNCHES = 64
};

static void
expect (const watcher *self, bool condition, const char *symbol, const char *what)
{
  const csfk_image *in = &self->frame.in, *out = &self->frame.out;

  if (!condition)
    check_fail ("%s %s %dx%d to %s %dx%d: the launch of %s %s (--seed %llu)",
        self->trial->kernel->name, csfk_format_get_info (in->format)->name, in->width, in->height,
        csfk_format_get_info (out->format)->name, out->width, out->height, symbol, what,
        (unsigned long long) self->trial->seed);
}

static bool
is_same_picture (const csfk_image *a, const csfk_image *b)
{
  bool same = a->format == b->format && a->width == b->width && a->height == b->height
      && a->range == b->range && a->matrix == b->matrix && a->chroma_site == b->chroma_site
      && a->n_planes == b->n_planes;

  for (int i = 0; same && i < a->n_planes; i++)
    same = a->plane[i].data == b->plane[i].data && a->plane[i].stride == b->plane[i].stride
        && a->plane[i].rows == b->plane[i].rows && a->plane[i].row_bytes == b->plane[i].row_bytes;
  return same;
}

static bool
is_same_memory (const csfk_frame *a, const csfk_frame *b)
{
  return a->state == b->state && a->workspace == b->workspace && a->regions == b->regions
      && a->n_regions == b->n_regions && a->state_frames == b->state_frames
      && a->records.data == b->records.data && a->records.count == b->records.count
      && a->records.capacity == b->records.capacity
      && a->records.record_size == b->records.record_size;
}

/* The fields that a user sets; what lies between fields may differ. */
static bool
has_params (const kernel_trial *trial, const unsigned char *params)
{
  const csfk_kernel *kernel = trial->kernel;

  for (unsigned i = 0; i < kernel->n_params; i++) {
    const csfk_param *param = &kernel->params[i];
    const void *expected = (const unsigned char *) trial->params + param->offset;

    if (param->type == CSFK_TYPE_STRING) {
      if (strcmp ((const char *) params + param->offset, expected) != 0)
        return false;
    } else if (memcmp (params + param->offset, expected, sizeof (int)) != 0) {
      return false;
    }
  }
  return true;
}

static int
watch (csfk_launcher *launcher, const char *symbol, csfk_dim grid, csfk_dim block,
    unsigned shared_bytes, const void *args, unsigned args_size)
{
  watcher *self = (watcher *) launcher;
  const csfk_kernel *kernel = self->trial->kernel;
  const csfk_frame *frame = args;
  const size_t length = strlen (kernel->name);
  const bool named = strncmp (symbol, "csfk_", 5) == 0
      && strncmp (symbol + 5, kernel->name, length) == 0;
  const char *end = named ? symbol + 5 + length : "?";
  const char *last = self->emits ? "_emit" : "";

  expect (self, *end == '\0' || *end == '_', symbol, "is of no csfk_ and the kernel's name");
  expect (self, strcmp (end, self->emits ? "" : "_emit") != 0, symbol, "is of the other pass");
  expect (self, !self->finished, symbol, "comes after the function that is the last");
  expect (self, self->fail_at == 0 || self->n_launches < self->fail_at, symbol,
      "comes after one that failed");
  expect (self, ++self->n_launches <= MAX_LAUNCHES, symbol, "is one of too many");
  expect (self, grid.x > 0 && grid.y > 0 && grid.z > 0, symbol, "has an empty grid");
  expect (self, grid.x < 1u << 31 && grid.y <= MAX_GRID_YZ && grid.z <= MAX_GRID_YZ, symbol,
      "has too large a grid");
  expect (self, block.x > 0 && block.y > 0 && block.z > 0, symbol, "has an empty block");
  expect (self, (uint64_t) block.x * block.y * block.z <= MAX_BLOCK && block.z <= MAX_BLOCK_Z,
      symbol, "has too large a block");
  expect (self, shared_bytes <= MAX_SHARED, symbol, "has too much shared memory");
  expect (self, args_size >= sizeof *frame && args_size <= MAX_ARGS, symbol,
      "has an argument without a frame, or of more than 4 KiB");

  if (strcmp (end, last) == 0) {
    self->finished = true;
    expect (self, is_same_picture (&frame->in, &self->frame.in)
        && is_same_picture (&frame->out, &self->frame.out), symbol, "is given other pictures");
    expect (self, is_same_memory (frame, &self->frame), symbol, "is given other memory");
    expect (self, args_size >= sizeof *frame + kernel->params_size, symbol,
        "is not given the parameters");
    expect (self, has_params (self->trial, (const unsigned char *) args + sizeof *frame), symbol,
        "is given other parameters");
  }
  return self->n_launches == self->fail_at ? WATCHER_ERROR : 0;
}

/* Device memory that a host cannot read, aligned to 1, 2, 4 and so on up to 256. */
static uintptr_t
get_nowhere (void)
{
  static uintptr_t next = (uintptr_t) 1 << 62;

  next += (uintptr_t) 1 << 32;
  return next + ((uintptr_t) 1 << check_random_in (0, 8));
}

static csfk_image
place_nowhere (const csfk_image *like)
{
  csfk_image image = *like;

  csfk_image_place (&image, NULL, 1 << check_random_in (0, 8));
  for (int i = 0; i < image.n_planes; i++)
    image.plane[i].data = (unsigned char *) get_nowhere ();
  return image;
}

static void
make_frame (watcher *self, csfk_region *regions)
{
  const kernel_trial *trial = self->trial;
  const csfk_kernel *kernel = trial->kernel;
  csfk_frame *frame = &self->frame;
  csfk_image in, out;

  csfk_image_init (&in, trial->format, trial->width, trial->height);
  out = model_choose_output (kernel, trial->model, &in,
      trial->out_choice % model_count_outputs (trial->model, &in));
  frame->in = place_nowhere (&in);
  frame->out = place_nowhere (&out);
  /* As the driver aligns it. */
  if (get_state_size (kernel, &in, &out) > 0)
    frame->state = (void *) (get_nowhere () & ~(uintptr_t) 255);
  if (get_workspace_size (kernel, &in, &out) > 0)
    frame->workspace = (void *) (get_nowhere () & ~(uintptr_t) 255);
  frame->state_frames = frame->state ? (unsigned) check_random_in (0, 2) : 0;
  frame->n_regions = model_choose_regions (kernel, trial->model, &in, regions);
  if (frame->n_regions > 0)
    frame->regions = (const csfk_region *) (get_nowhere () & ~(uintptr_t) 255);
  if (kernel->record_size > 0)
    frame->records = (csfk_records) {
      .data = (unsigned char *) (get_nowhere () & ~(uintptr_t) 255),
      .count = (unsigned *) (get_nowhere () & ~(uintptr_t) 255),
      .capacity = (unsigned) check_random_in (1, 1000),.record_size = kernel->record_size
    };
}

/* enqueue() or emit(), and again with each of its launches failing. */
static void
check_pass (watcher *self, int (*pass) (const csfk_frame *, const void *, csfk_launcher *),
    bool emits)
{
  const kernel_trial *trial = self->trial;
  const char *name = emits ? "the last of emit()" : "itself";
  int n_launches;

  self->emits = emits;
  self->n_launches = self->fail_at = 0;
  self->finished = false;
  expect (self, pass (&self->frame, trial->params, &self->launcher) == 0 && self->finished, name,
      "did not happen");
  n_launches = self->n_launches;
  for (self->fail_at = 1; self->fail_at <= n_launches; self->fail_at++) {
    self->n_launches = 0;
    self->finished = false;
    expect (self, pass (&self->frame, trial->params, &self->launcher) == WATCHER_ERROR, name,
        "failed, and that was not returned");
  }
}

void
trial_check_launches (const kernel_trial *trial)
{
  const csfk_kernel *kernel = trial->kernel;
  csfk_region regions[CHECK_MAX_REGIONS];
  char reason[256] = "";
  watcher self = { .trial = trial };

  make_frame (&self, regions);
  self.launcher.launch = watch;
  self.launcher.regions = regions;
  if (kernel->open) {
    csfk_image in = image_strip (&self.frame.in), out = image_strip (&self.frame.out);

    if (kernel->open (kernel, &in, &out, &self.frame.instance, reason, sizeof reason) != 0)
      check_fail ("%s: open() failed: %s", kernel->name, reason);
  }
  check_pass (&self, kernel->enqueue, false);
  if (kernel->record_size > 0)
    check_pass (&self, kernel->emit, true);
  if (kernel->close)
    kernel->close (self.frame.instance);
}
