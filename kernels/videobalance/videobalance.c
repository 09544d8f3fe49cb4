/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* videobalance: brightness, contrast, saturation, hue and gamma.  The plain C path, the factors
 * and the launch; the device code is in videobalance.cu, written apart from this so that each
 * checks the other.  videobalance.h says what is computed.  Knows kernel.h, format.h and libc only. */
#include "videobalance.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "../format.h"
#include "../simd.h"

extern const csfk_blob csfk_blob_videobalance;

_Static_assert (sizeof (csfk_videobalance_params) <= CSFK_MAX_PARAMS,
    "the parameters do not fit a slot");
_Static_assert (sizeof (csfk_videobalance_args) <= 4096, "the argument does not fit a launch");
_Static_assert (offsetof (csfk_videobalance_args, params.gamma8) % 4 == 0 &&
    offsetof (csfk_videobalance_args, params.gamma10) % 4 == 0, "the device reads them as words");
_Static_assert (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "pixels are read as words");

enum
{
  /* Pixels of R'G'B' whose luma waits in the L1 cache for their chroma. */
  STRIP = 512
};

/* The factors for one frame. */
typedef struct balance
{
  float contrast, offset, cosine, sine;
} balance;

static balance
choose_balance (const csfk_videobalance_params *params, int ten_bits, int range)
{
  const csfk_videobalance_factors *factors = &params->factors[ten_bits];

  return (balance) { factors->contrast, factors->offset[range], factors->cosine, factors->sine };
}

/* ---- one sample ------------------------------------------------------------------------------ */

/* R of videobalance.h.  In floats from 2^23 to 2^24 the last bit counts ones: adding 3 * 2^22
 * rounds as needed and leaves the number in the lower 16 bits.  Limited there, because
 * compilers make no vectors of comparisons that could trap, and SSE2 has these. */
static CSFK_ALWAYS_INLINE uint32_t
round_and_limit (float value, int16_t maximum)
{
  int32_t bits;
  int16_t number;

  value += 12582912.0f;
  memcpy (&bits, &value, sizeof bits);
  number = (int16_t) bits;
  number = number < 0 ? 0 : number;
  return (uint16_t) (number > maximum ? maximum : number);
}

static CSFK_ALWAYS_INLINE uint32_t
luma_of (uint32_t y, balance b, int16_t maximum)
{
  return round_and_limit ((float) (int32_t) y * b.contrast + b.offset, maximum);
}

/* u', or v' when u and v change places and sine changes its sign. */
static CSFK_ALWAYS_INLINE uint32_t
chroma_of (uint32_t own, uint32_t other, float cosine, float sine, int neutral, int16_t maximum)
{
  float x = (float) ((int32_t) own - neutral), y = (float) ((int32_t) other - neutral);

  return round_and_limit ((float) neutral + x * cosine + y * sine, maximum);
}

/* Rows may start at any address. */
static CSFK_ALWAYS_INLINE uint32_t
load_word (const unsigned char *from)
{
  uint32_t word;

  memcpy (&word, from, sizeof word);
  return word;
}

static CSFK_ALWAYS_INLINE void
store_word (unsigned char *to, uint32_t word)
{
  memcpy (to, &word, sizeof word);
}

static CSFK_ALWAYS_INLINE uint32_t
load_half (const unsigned char *from)
{
  uint16_t half;

  memcpy (&half, from, sizeof half);
  return half;
}

static CSFK_ALWAYS_INLINE void
store_half (unsigned char *to, uint32_t value)
{
  uint16_t half = (uint16_t) value;

  memcpy (to, &half, sizeof half);
}

/* ---- one row --------------------------------------------------------------------------------- */

static CSFK_ALWAYS_INLINE void
balance_luma8 (const unsigned char *restrict in, unsigned char *restrict out, int n, balance b)
{
  for (int i = 0; i < n; i++)
    out[i] = (unsigned char) luma_of (in[i], b, 255);
}

static CSFK_ALWAYS_INLINE void
balance_luma10 (const unsigned char *restrict in, unsigned char *restrict out, int n, balance b)
{
  for (int i = 0; i < n; i++)
    store_half (out + 2 * (ptrdiff_t) i,
        luma_of (load_half (in + 2 * (ptrdiff_t) i) >> 6, b, 1023) << 6);
}

/* n pairs of u and v, side by side. */
static CSFK_ALWAYS_INLINE void
balance_chroma8 (const unsigned char *restrict in, unsigned char *restrict out, int n, balance b)
{
  for (int i = 0; i < n; i++) {
    uint32_t pair = load_half (in + 2 * (ptrdiff_t) i), u = pair & 255, v = pair >> 8;

    store_half (out + 2 * (ptrdiff_t) i, chroma_of (u, v, b.cosine, b.sine, 128, 255)
        | chroma_of (v, u, b.cosine, -b.sine, 128, 255) << 8);
  }
}

static CSFK_ALWAYS_INLINE void
balance_chroma10 (const unsigned char *restrict in, unsigned char *restrict out, int n, balance b)
{
  for (int i = 0; i < n; i++) {
    uint32_t pair = load_word (in + 4 * (ptrdiff_t) i);
    uint32_t u = pair >> 6 & 1023, v = pair >> 22;

    store_word (out + 4 * (ptrdiff_t) i, chroma_of (u, v, b.cosine, b.sine, 512, 1023) << 6
        | chroma_of (v, u, b.cosine, -b.sine, 512, 1023) << 22);
  }
}

static CSFK_ALWAYS_INLINE void
balance_planar (const unsigned char *restrict in_u, const unsigned char *restrict in_v,
    unsigned char *restrict out_u, unsigned char *restrict out_v, int n, balance b)
{
  for (int i = 0; i < n; i++) {
    uint32_t u = in_u[i], v = in_v[i];

    out_u[i] = (unsigned char) chroma_of (u, v, b.cosine, b.sine, 128, 255);
    out_v[i] = (unsigned char) chroma_of (v, u, b.cosine, -b.sine, 128, 255);
  }
}

/* n words of two pixels; luma_bit: where the first luma begins, 0 (YUY2) or 8 (UYVY). */
static CSFK_ALWAYS_INLINE void
balance_pairs (const unsigned char *restrict in, unsigned char *restrict out, int n, int luma_bit,
    balance b)
{
  const int chroma_bit = 8 - luma_bit;

  for (int i = 0; i < n; i++) {
    uint32_t word = load_word (in + 4 * (ptrdiff_t) i);
    uint32_t luma = word >> luma_bit, chroma = word >> chroma_bit;
    uint32_t u = chroma & 255, v = chroma >> 16 & 255;
    uint32_t lumas = luma_of (luma & 255, b, 255) | luma_of (luma >> 16 & 255, b, 255) << 16;
    uint32_t chromas = chroma_of (u, v, b.cosine, b.sine, 128, 255)
        | chroma_of (v, u, b.cosine, -b.sine, 128, 255) << 16;

    store_word (out + 4 * (ptrdiff_t) i, lumas << luma_bit | chromas << chroma_bit);
  }
}

/* The colours of a strip, each for itself, in the order of the pixels' bytes. */
typedef struct strip
{
  unsigned char colour[3][STRIP];
} strip;

/* The same in Y'CbCr. */
typedef struct luma_strip
{
  unsigned char y[STRIP], u[STRIP], v[STRIP];
} luma_strip;

/* red: which of the colours that is, 0 or 2.  Every sum is below 2^16 and not negative, so that
 * 16 bits do. */
static CSFK_ALWAYS_INLINE void
to_ycc (const strip *restrict from, int red, luma_strip *restrict to, int n)
{
  for (int i = 0; i < n; i++) {
    uint16_t r = from->colour[red][i], g = from->colour[1][i], b = from->colour[2 - red][i];

    to->y[i] = (uint16_t) (66 * r + 129 * g + 25 * b + 4096) >> 8;
    to->u[i] = (uint16_t) (-38 * r - 74 * g + 112 * b + 32768) >> 8;
    to->v[i] = (uint16_t) (112 * r - 94 * g - 18 * b + 32768) >> 8;
  }
}

static CSFK_ALWAYS_INLINE unsigned char
limit_byte (int16_t value)
{
  value = value < 0 ? 0 : value;
  return (unsigned char) (value > 255 ? 255 : value);
}

/* In 16 bits as well: whole multiples of 256 are taken out of every factor and added after the
 * shift, so that 298 y + 409 v - 57068, say, becomes 256 (y + v - 223) and the 42 y + 153 v +
 * 20 that is left, below 2^16 and not negative as in the other sums. */
static CSFK_ALWAYS_INLINE void
to_rgb (const luma_strip *restrict from, int red, strip *restrict to, int n)
{
  for (int i = 0; i < n; i++) {
    uint16_t y = from->y[i], u = from->u[i], v = from->v[i];
    uint16_t r = (uint16_t) (42 * y + 153 * v + 20) >> 8;
    uint16_t g = (uint16_t) (42 * y + 156 * u + 48 * v + 147) >> 8;
    uint16_t b = (uint16_t) (42 * y + 4 * u + 42) >> 8;

    to->colour[red][i] = limit_byte ((int16_t) (r + y + v - 223));
    to->colour[1][i] = limit_byte ((int16_t) (g + y - u - v + 135));
    to->colour[2 - red][i] = limit_byte ((int16_t) (b + y + 2 * u - 277));
  }
}

static CSFK_ALWAYS_INLINE void
split (const unsigned char *restrict in, int pixel_bytes, strip *restrict to, int n)
{
  for (int i = 0; i < n; i++) {
    to->colour[0][i] = in[(ptrdiff_t) i * pixel_bytes];
    to->colour[1][i] = in[(ptrdiff_t) i * pixel_bytes + 1];
    to->colour[2][i] = in[(ptrdiff_t) i * pixel_bytes + 2];
  }
}

/* in: for the fourth byte. */
static CSFK_ALWAYS_INLINE void
merge (const strip *restrict from, const unsigned char *restrict in, int pixel_bytes,
    unsigned char *restrict out, int n)
{
  for (int i = 0; i < n; i++) {
    out[(ptrdiff_t) i * pixel_bytes] = from->colour[0][i];
    out[(ptrdiff_t) i * pixel_bytes + 1] = from->colour[1][i];
    out[(ptrdiff_t) i * pixel_bytes + 2] = from->colour[2][i];
    if (pixel_bytes == 4)
      out[(ptrdiff_t) i * 4 + 3] = in[(ptrdiff_t) i * 4 + 3];
  }
}

/* ---- planes ---------------------------------------------------------------------------------- */

static CSFK_ALWAYS_INLINE const unsigned char *
in_row (const csfk_frame *frame, int plane, int y)
{
  return frame->in.plane[plane].data + (ptrdiff_t) y * frame->in.plane[plane].stride;
}

static CSFK_ALWAYS_INLINE unsigned char *
out_row (const csfk_frame *frame, int plane, int y)
{
  return frame->out.plane[plane].data + (ptrdiff_t) y * frame->out.plane[plane].stride;
}

/* With gamma, y" of every y: one look-up is all that is left to do. */
static CSFK_ALWAYS_INLINE void
make_table8 (const csfk_videobalance_params *params, balance b, unsigned char *table)
{
  for (uint32_t y = 0; params->has_gamma && y < 256; y++)
    table[y] = params->gamma8[luma_of (y, b, 255)];
}

static CSFK_ALWAYS_INLINE void
make_table10 (const csfk_videobalance_params *params, balance b, uint16_t *table)
{
  for (uint32_t y = 0; params->has_gamma && y < 1024; y++)
    table[y] = params->gamma10[luma_of (y, b, 1023)];
}

/* n bytes, `step` apart. */
static CSFK_ALWAYS_INLINE void
look_up8 (const unsigned char *restrict in, unsigned char *restrict out, int n, int step,
    const unsigned char *restrict table)
{
  for (int i = 0; i < n; i++)
    out[(ptrdiff_t) i * step] = table[in[(ptrdiff_t) i * step]];
}

static CSFK_ALWAYS_INLINE void
look_up10 (const unsigned char *restrict in, unsigned char *restrict out, int n,
    const uint16_t *restrict table)
{
  for (int i = 0; i < n; i++)
    store_half (out + 2 * (ptrdiff_t) i,
        (uint32_t) table[load_half (in + 2 * (ptrdiff_t) i) >> 6] << 6);
}

static CSFK_ALWAYS_INLINE void
process_yuv (const csfk_frame *frame, const csfk_videobalance_params *params)
{
  const csfk_image *in = &frame->in;
  const balance b = choose_balance (params, 0, in->range);
  const int n = in->plane[0].row_bytes;
  unsigned char table[256];

  make_table8 (params, b, table);
  for (int y = 0; y < in->plane[0].rows; y++)
    if (params->has_gamma)
      look_up8 (in_row (frame, 0, y), out_row (frame, 0, y), n, 1, table);
    else
      balance_luma8 (in_row (frame, 0, y), out_row (frame, 0, y), n, b);
  for (int y = 0; y < in->plane[1].rows; y++)
    if (in->n_planes == 3)
      balance_planar (in_row (frame, 1, y), in_row (frame, 2, y), out_row (frame, 1, y),
          out_row (frame, 2, y), in->plane[1].row_bytes, b);
    else
      balance_chroma8 (in_row (frame, 1, y), out_row (frame, 1, y), in->plane[1].row_bytes / 2, b);
}

static CSFK_ALWAYS_INLINE void
process_p010 (const csfk_frame *frame, const csfk_videobalance_params *params)
{
  const csfk_image *in = &frame->in;
  const balance b = choose_balance (params, 1, in->range);
  const int n = in->plane[0].row_bytes / 2;
  uint16_t table[1024];

  make_table10 (params, b, table);
  for (int y = 0; y < in->plane[0].rows; y++)
    if (params->has_gamma)
      look_up10 (in_row (frame, 0, y), out_row (frame, 0, y), n, table);
    else
      balance_luma10 (in_row (frame, 0, y), out_row (frame, 0, y), n, b);
  for (int y = 0; y < in->plane[1].rows; y++)
    balance_chroma10 (in_row (frame, 1, y), out_row (frame, 1, y), in->plane[1].row_bytes / 4, b);
}

/* luma_at: the byte of the first luma, 0 (YUY2) or 1 (UYVY). */
static CSFK_ALWAYS_INLINE void
process_pairs (const csfk_frame *frame, const csfk_videobalance_params *params, int luma_at)
{
  const csfk_plane *in = &frame->in.plane[0];
  const balance b = choose_balance (params, 0, frame->in.range);
  unsigned char table[256];

  make_table8 (params, b, table);
  for (int y = 0; y < in->rows; y++) {
    const unsigned char *from = in_row (frame, 0, y);
    unsigned char *to = out_row (frame, 0, y);

    balance_pairs (from, to, in->row_bytes / 4, 8 * luma_at, b);
    if (params->has_gamma)
      look_up8 (from + luma_at, to + luma_at, in->row_bytes / 2, 2, table);
  }
}

/* red: the byte of a pixel that is red, 0 or 2. */
static CSFK_ALWAYS_INLINE void
process_rgb (const csfk_frame *frame, const csfk_videobalance_params *params, int pixel_bytes,
    int red)
{
  const balance b = choose_balance (params, 0, CSFK_RANGE_LIMITED);
  unsigned char table[256];
  luma_strip before, after;
  strip colours;

  make_table8 (params, b, table);
  for (int y = 0; y < frame->in.height; y++)
    for (int x = 0; x < frame->in.width; x += STRIP) {
      const unsigned char *in = in_row (frame, 0, y) + (ptrdiff_t) x * pixel_bytes;
      unsigned char *out = out_row (frame, 0, y) + (ptrdiff_t) x * pixel_bytes;
      int n = frame->in.width - x < STRIP ? frame->in.width - x : STRIP;

      split (in, pixel_bytes, &colours, n);
      to_ycc (&colours, red, &before, n);
      if (params->has_gamma)
        look_up8 (before.y, after.y, n, 1, table);
      else
        balance_luma8 (before.y, after.y, n, b);
      balance_planar (before.u, before.v, after.u, after.v, n, b);
      to_rgb (&after, red, &colours, n);
      merge (&colours, in, pixel_bytes, out, n);
    }
}

/* What differs between formats is given as constants, which vectors need. */
static CSFK_ALWAYS_INLINE void
process_body (const csfk_frame *frame, const csfk_videobalance_params *params)
{
  switch (frame->in.format) {
    case CSFK_FORMAT_GRAY8:
    case CSFK_FORMAT_NV12:
    case CSFK_FORMAT_I420:
      process_yuv (frame, params);
      break;
    case CSFK_FORMAT_P010_10LE:
      process_p010 (frame, params);
      break;
    case CSFK_FORMAT_YUY2:
      process_pairs (frame, params, 0);
      break;
    case CSFK_FORMAT_UYVY:
      process_pairs (frame, params, 1);
      break;
    case CSFK_FORMAT_RGB:
      process_rgb (frame, params, 3, 0);
      break;
    case CSFK_FORMAT_BGR:
      process_rgb (frame, params, 3, 2);
      break;
    case CSFK_FORMAT_RGBx:
    case CSFK_FORMAT_RGBA:
      process_rgb (frame, params, 4, 0);
      break;
    default:
      process_rgb (frame, params, 4, 2);
      break;
  }
}

static void
process_plain (const csfk_frame *frame, const csfk_videobalance_params *params)
{
  process_body (frame, params);
}

#if CSFK_TWO_TARGETS
CSFK_TARGET_AVX2 static void
process_avx2 (const csfk_frame *frame, const csfk_videobalance_params *params)
{
  process_body (frame, params);
}
#else
#define process_avx2 process_plain
#endif

static void
process (const csfk_frame *frame, const void *data)
{
  const csfk_videobalance_params *params = data;

  if (params->is_neutral)
    for (int i = 0; i < frame->in.n_planes; i++)
      csfk_plane_copy (&frame->out.plane[i], &frame->in.plane[i]);
  else
    (csfk_has_avx2 () ? process_avx2 : process_plain) (frame, params);
}

/* ---- parameters and launch ------------------------------------------------------------------- */

static float
round_to_places (double value, int places)
{
  return (float) (rint (ldexp (value, places)) / ldexp (1.0, places));
}

/* extra_bits: 0 for 8 bits, 2 for 10. */
static void
make_factors (const csfk_videobalance_params *params, int extra_bits,
    csfk_videobalance_factors *factors)
{
  const double pi = 3.14159265358979323846;
  const int luma_places = CSFK_VIDEOBALANCE_LUMA_PLACES - extra_bits;
  const int chroma_places = CSFK_VIDEOBALANCE_CHROMA_PLACES - extra_bits;
  const int steps = 1 << extra_bits;

  factors->contrast = round_to_places (params->contrast, luma_places);
  for (int range = CSFK_RANGE_FULL; range <= CSFK_RANGE_LIMITED; range++) {
    double black = range == CSFK_RANGE_LIMITED ? 16 * steps : 0;

    factors->offset[range] = round_to_places (black - black * factors->contrast +
        255.0 * steps * params->brightness, luma_places);
  }
  factors->cosine = round_to_places (params->saturation * cos (pi * params->hue), chroma_places);
  factors->sine = round_to_places (params->saturation * sin (pi * params->hue), chroma_places);
}

static double
apply_power (int value, int maximum, double gamma)
{
  return floor (maximum * pow ((double) value / maximum, 1.0 / gamma) + 0.5);
}

static void
resolve (void *data)
{
  csfk_videobalance_params *params = data;

  params->has_gamma = params->gamma != 1.0f;
  params->is_neutral = params->brightness == 0.0f && params->contrast == 1.0f &&
      params->saturation == 1.0f && params->hue == 0.0f && !params->has_gamma;
  make_factors (params, 0, &params->factors[0]);
  make_factors (params, 2, &params->factors[1]);
  if (!params->has_gamma)
    return;
  for (int i = 0; i < 256; i++)
    params->gamma8[i] = (unsigned char) apply_power (i, 255, params->gamma);
  for (int i = 0; i < 1024; i++)
    params->gamma10[i] = (unsigned short) apply_power (i, 1023, params->gamma);
}

static unsigned
divide_up (unsigned value, unsigned by)
{
  return (value + by - 1) / by;
}

static int
enqueue (const csfk_frame *frame, const void *params, csfk_launcher *launcher)
{
  const int format = frame->in.format;
  const unsigned of_three = format == CSFK_FORMAT_RGB || format == CSFK_FORMAT_BGR;
  const unsigned thread_bytes = CSFK_VIDEOBALANCE_WORDS * 4 * (of_three ? 3 : 1);
  csfk_videobalance_args args = { .frame = *frame };
  csfk_dim block = { CSFK_VIDEOBALANCE_BLOCK_X, CSFK_VIDEOBALANCE_BLOCK_Y, 1 };
  /* Layer 0 is luma or whole pixels, layer 1 all of the chroma planes. */
  csfk_dim grid = {
    divide_up ((unsigned) frame->in.plane[0].row_bytes, CSFK_VIDEOBALANCE_BLOCK_X * thread_bytes),
    divide_up ((unsigned) frame->in.plane[0].rows,
        CSFK_VIDEOBALANCE_BLOCK_Y * CSFK_VIDEOBALANCE_ROWS),
    frame->in.n_planes > 1 ? 2 : 1
  };

  memcpy (&args.params, params, sizeof args.params);
  return launcher->launch (launcher, "csfk_videobalance", grid, block,
      of_three ? CSFK_VIDEOBALANCE_STAGE_BYTES : 0, &args, sizeof args);
}

#define FIELD(name) offsetof (csfk_videobalance_params, name)

static const csfk_param params_of[] = {
  {
    "brightness", CSFK_TYPE_FLOAT, FIELD (brightness), -1.0, 1.0, 0.0, "",
    "Added to luma, 1 for all of its range", NULL
  },
  {
    "contrast", CSFK_TYPE_FLOAT, FIELD (contrast), 0.0, 2.0, 1.0, "",
    "Factor of luma's distance from black", NULL
  },
  {
    "saturation", CSFK_TYPE_FLOAT, FIELD (saturation), 0.0, 2.0, 1.0, "",
    "Factor of the strength of colours", NULL
  },
  {
    "hue", CSFK_TYPE_FLOAT, FIELD (hue), -1.0, 1.0, 0.0, "",
    "Turn of colours round grey, 1 for half a turn", NULL
  },
  {
    "gamma", CSFK_TYPE_FLOAT, FIELD (gamma), 0.01, 10.0, 1.0, "",
    "Applied to luma last: above 1 mid tones become brighter", NULL
  },
};

const csfk_kernel csfk_videobalance = {
  .abi = CSFK_ABI,
  .name = "videobalance",
  .description = "Adjusts brightness, contrast, saturation, hue and gamma",
  .formats = {
    CSFK_FORMAT_NV12, CSFK_FORMAT_I420, CSFK_FORMAT_YUY2, CSFK_FORMAT_UYVY, CSFK_FORMAT_P010_10LE,
    CSFK_FORMAT_RGBA, CSFK_FORMAT_BGRA, CSFK_FORMAT_RGBx, CSFK_FORMAT_BGRx, CSFK_FORMAT_RGB,
    CSFK_FORMAT_BGR, CSFK_FORMAT_GRAY8, CSFK_FORMAT_NONE
  },
  .params = params_of,
  .n_params = sizeof params_of / sizeof params_of[0],
  .params_size = sizeof (csfk_videobalance_params),
  .resolve = resolve,
  .process = process,
  .enqueue = enqueue,
  .device_code = &csfk_blob_videobalance,
};
