/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Makes a kernel of a user's device function: checks what its description says, and launches it over the
 * pixels of the output.  Knows no particular function. */
#include "module.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format.h"

#define DEFAULT_BLOCK 16
#define MOST_THREADS 1024
#define MOST_STATE_PER_PIXEL 256

typedef struct module_kernel
{
  csfk_kernel kernel;           /* first: a kernel is its module */
  csfk_desc desc;
  char name[128], emit_name[sizeof "_emit" + 127];
  csfk_blob code;
  csfk_param params[CSFK_MAX_DESC_PARAMS];
  const char *labels[CSFK_MAX_DESC_LABELS + 1];
} module_kernel;

/* ---- running ----------------------------------------------------------------------------------- */

static unsigned long
state_size (const csfk_kernel *kernel, const csfk_image *in, const csfk_image *out)
{
  const module_kernel *self = (const module_kernel *) kernel;

  (void) out;
  return (unsigned long) in->width * (unsigned long) in->height * self->desc.state_bytes_per_pixel;
}

/* The instance is the module itself, for enqueue, which is told no kernel. */
static int
open_module (const csfk_kernel *kernel, const csfk_image *in, const csfk_image *out, void **instance,
    char *reason, unsigned reason_size)
{
  (void) in, (void) out, (void) reason, (void) reason_size;
  *instance = (void *) kernel;
  return 0;
}

static unsigned
divide_up (unsigned value, unsigned divisor)
{
  return (value + divisor - 1) / divisor;
}

/* Over the pixels of the output. */
static int
launch (const csfk_frame *frame, const void *params, csfk_launcher *launcher, const char *symbol)
{
  const module_kernel *self = frame->instance;
  const csfk_desc *desc = &self->desc;
  csfk_dim block = { desc->block_x, desc->block_y, 1 };
  csfk_dim grid = {
    divide_up ((unsigned) frame->out.width, desc->block_x * desc->pixels_x),
    divide_up ((unsigned) frame->out.height, desc->block_y * desc->pixels_y),
    1
  };
  struct
  {
    csfk_frame frame;
    unsigned char params[CSFK_MAX_PARAMS];
  } args;

  args.frame = *frame;
  args.frame.instance = NULL;
  if (desc->params_size > 0)
    memcpy (args.params, params, desc->params_size);
  return launcher->launch (launcher, symbol, grid, block, 0, &args,
      (unsigned) sizeof (csfk_frame) + desc->params_size);
}

static int
enqueue (const csfk_frame *frame, const void *params, csfk_launcher *launcher)
{
  const module_kernel *self = frame->instance;

  return launch (frame, params, launcher, self->name);
}

static int
emit (const csfk_frame *frame, const void *params, csfk_launcher *launcher)
{
  const module_kernel *self = frame->instance;

  return launch (frame, params, launcher, self->emit_name);
}

/* ---- checking ---------------------------------------------------------------------------------- */

static bool
refuse (char *reason, unsigned reason_size, const char *format, ...)
    __attribute__ ((format (printf, 3, 4)));

static bool
refuse (char *reason, unsigned reason_size, const char *format, ...)
{
  va_list args;

  va_start (args, format);
  vsnprintf (reason, reason_size, format, args);
  va_end (args);
  return false;
}

static bool
is_ended (const char *text, size_t size)
{
  return memchr (text, '\0', size) != NULL;
}

static bool
formats_are_known (const int *formats)
{
  for (int i = 0; i < CSFK_MAX_FORMATS && formats[i] != CSFK_FORMAT_NONE; i++)
    if (formats[i] < 0 || formats[i] >= CSFK_N_FORMATS)
      return false;
  return true;
}

static bool
param_is_sound (const csfk_desc *desc, unsigned index, char *reason, unsigned reason_size)
{
  const csfk_desc_param *param = &desc->params[index];

  if (!is_ended (param->name, sizeof param->name) || param->name[0] == '\0'
      || !is_ended (param->unit, sizeof param->unit)
      || !is_ended (param->description, sizeof param->description))
    return refuse (reason, reason_size, "the texts of parameter %u are not ended by 0, or it has no name",
        index);
  if (param->type != CSFK_TYPE_INT && param->type != CSFK_TYPE_FLOAT && param->type != CSFK_TYPE_BOOL
      && param->type != CSFK_TYPE_UINT)
    return refuse (reason, reason_size, "parameter %s is of type %d; expected CSFK_TYPE_INT, UINT, FLOAT "
        "or BOOL", param->name, param->type);
  if (param->offset % 4 != 0 || desc->params_size < 4 || param->offset > desc->params_size - 4)
    return refuse (reason, reason_size, "parameter %s lies at byte %u of %u; expected a multiple of 4 "
        "within params_size", param->name, param->offset, desc->params_size);
  if (!(param->minimum <= param->default_value && param->default_value <= param->maximum))
    return refuse (reason, reason_size, "parameter %s has default %g, which is not from %g to %g",
        param->name, param->default_value, param->minimum, param->maximum);
  return true;
}

static bool
records_are_sound (const csfk_desc *desc, char *reason, unsigned reason_size)
{
  if (!is_ended (desc->record_name, sizeof desc->record_name))
    return refuse (reason, reason_size, "the name of its records is not ended by 0");
  for (unsigned i = 0; i < CSFK_MAX_DESC_LABELS; i++)
    if (!is_ended (desc->labels[i], sizeof desc->labels[i]))
      return refuse (reason, reason_size, "label %u is not ended by 0", i);
  return true;
}

static bool
desc_is_sound (const csfk_desc *desc, char *reason, unsigned reason_size)
{
  if (!is_ended (desc->description, sizeof desc->description))
    return refuse (reason, reason_size, "its text is not ended by 0");
  if (!formats_are_known (desc->formats) || !formats_are_known (desc->out_formats))
    return refuse (reason, reason_size, "it names a format that does not exist");
  if (desc->block_x > MOST_THREADS || desc->block_y > MOST_THREADS
      || desc->block_x * desc->block_y > MOST_THREADS)
    return refuse (reason, reason_size, "blocks of %u x %u threads are more than the %d a GPU has",
        desc->block_x, desc->block_y, MOST_THREADS);
  if (desc->pixels_x > 4096 || desc->pixels_y > 4096)
    return refuse (reason, reason_size, "%u x %u pixels a thread are too many", desc->pixels_x,
        desc->pixels_y);
  if (desc->state_bytes_per_pixel > MOST_STATE_PER_PIXEL)
    return refuse (reason, reason_size, "%u bytes of state a pixel are more than %d",
        desc->state_bytes_per_pixel, MOST_STATE_PER_PIXEL);
  if ((desc->flags & ~(unsigned) (CSFK_READS_REGIONS | CSFK_RESIZES)) != 0)
    return refuse (reason, reason_size, "it has flags 0x%x that do not exist", desc->flags);
  if (desc->params_size > CSFK_MAX_PARAMS || desc->n_params > CSFK_MAX_DESC_PARAMS)
    return refuse (reason, reason_size, "%u parameters of %u bytes are more than %d of %d",
        desc->n_params, desc->params_size, CSFK_MAX_DESC_PARAMS, CSFK_MAX_PARAMS);
  for (unsigned i = 0; i < desc->n_params; i++)
    if (!param_is_sound (desc, i, reason, reason_size))
      return false;
  return records_are_sound (desc, reason, reason_size);
}

/* ---- making ------------------------------------------------------------------------------------ */

static void
copy_formats (int *to, const int *from, bool empty_is_all)
{
  memcpy (to, from, CSFK_MAX_FORMATS * sizeof *to);
  for (int f = 0; empty_is_all && from[0] == CSFK_FORMAT_NONE && f < CSFK_N_FORMATS - 1; f++)
    to[f] = f + 1;
}

/* What the engine checks, sizes and kinds, is left to it. */
static void
fill_records (module_kernel *self)
{
  const csfk_desc *desc = &self->desc;
  csfk_kernel *kernel = &self->kernel;

  if (desc->record_size == 0 && desc->record_kind == CSFK_RECORD_OTHER && desc->record_name[0] == '\0')
    return;
  kernel->record_size = desc->record_size;
  kernel->record_kind = desc->record_kind;
  kernel->record_name = desc->record_name[0] != '\0' ? desc->record_name : self->name;
  for (unsigned i = 0; i < CSFK_MAX_DESC_LABELS && desc->labels[i][0] != '\0'; i++)
    self->labels[i] = desc->labels[i];
  kernel->labels = self->labels;
  kernel->emit = emit;
}

static void
fill_kernel (module_kernel *self)
{
  csfk_desc *desc = &self->desc;
  csfk_kernel *kernel = &self->kernel;

  desc->block_x = desc->block_x != 0 ? desc->block_x : DEFAULT_BLOCK;
  desc->block_y = desc->block_y != 0 ? desc->block_y : DEFAULT_BLOCK;
  desc->pixels_x = desc->pixels_x != 0 ? desc->pixels_x : 1;
  desc->pixels_y = desc->pixels_y != 0 ? desc->pixels_y : 1;
  for (unsigned i = 0; i < desc->n_params; i++) {
    const csfk_desc_param *param = &desc->params[i];

    self->params[i] = (csfk_param) {
      .name = param->name,
      .type = param->type,
      .offset = param->offset,
      .minimum = param->minimum,
      .maximum = param->maximum,
      .default_value = param->default_value,
      .unit = param->unit,
      .description = param->description,
    };
  }
  kernel->abi = CSFK_ABI;
  kernel->flags = desc->flags;
  kernel->name = self->name;
  kernel->description = desc->description;
  copy_formats (kernel->formats, desc->formats, true);
  copy_formats (kernel->out_formats, desc->out_formats, false);
  kernel->params = self->params;
  kernel->n_params = desc->n_params;
  kernel->params_size = desc->params_size;
  if (desc->state_bytes_per_pixel > 0)
    kernel->state_size = state_size;
  kernel->open = open_module;
  kernel->enqueue = enqueue;
  kernel->device_code = &self->code;
  fill_records (self);
}

csfk_kernel *
csfk_module_create (const char *function, const csfk_desc *desc, unsigned char *code,
    unsigned long size, char *reason, unsigned reason_size)
{
  module_kernel *self;

  if (desc != NULL && !desc_is_sound (desc, reason, reason_size)) {
    free (code);
    return NULL;
  }
  self = calloc (1, sizeof *self);
  if (self == NULL) {
    snprintf (reason, reason_size, "no memory left");
    free (code);
    return NULL;
  }
  if (desc != NULL)
    self->desc = *desc;
  self->code.data = code;
  self->code.size = size;
  snprintf (self->name, sizeof self->name, "%s", function);
  snprintf (self->emit_name, sizeof self->emit_name, "%s_emit", self->name);
  fill_kernel (self);
  return &self->kernel;
}

void
csfk_module_destroy (csfk_kernel *kernel)
{
  module_kernel *self = (module_kernel *) kernel;

  if (kernel == NULL)
    return;
  free ((void *) self->code.data);
  free (self);
}
