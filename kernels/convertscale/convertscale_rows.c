/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* convertscale's loops over a row of samples, where the CPU path spends its time: each for the compiler's
 * baseline and again with AVX2.  convertscale.h says what they compute.  Knows its own folder, simd.h and
 * libc. */
#include "convertscale_cpu.h"

#include <string.h>

#include "../simd.h"

#if CSFK_TWO_TARGETS || defined (__AVX2__)
#include <immintrin.h>
#define HAVE_AVX2_CODE 1
#else
#define HAVE_AVX2_CODE 0
#endif

#if CSFK_TWO_TARGETS
#define USE_AVX2() csfk_has_avx2 ()
#else
#define USE_AVX2() HAVE_AVX2_CODE
#endif

enum
{
  FRACTION_BITS = CSFK_CONVERTSCALE_FRACTION_BITS,
  CUBIC_BITS = CSFK_CONVERTSCALE_CUBIC_BITS,
  ROW_BITS = CSFK_CONVERTSCALE_ROW_BITS,
  PLACES = CSFK_CONVERTSCALE_PLACES,
  COLOUR_BITS = CSFK_CONVERTSCALE_PLACES + CSFK_CONVERTSCALE_MATRIX_BITS,
  /* Binary places of the sums that down() makes. */
  LINEAR_SUM_BITS = 2 * FRACTION_BITS,
  CUBIC_SUM_BITS = ROW_BITS + CUBIC_BITS
};

static CSFK_ALWAYS_INLINE int
limit (int value, int low, int high)
{
  return value < low ? low : value > high ? high : value;
}

/* ---- weights and places ---------------------------------------------------------------------- */

/* Keys' cubic (IEEE Trans. ASSP 29, 1981) with a = -0.5.  Its polynomials for t = f / 256 are the numerators
 * here over 2^25, in 1/1024 over 2^15.  The second weight takes the rest. */
void
csfk_convertscale_weigh (int taps, int fraction, int *weights)
{
  const int f = fraction, f2 = f * f, f3 = f2 * f;
  const int shift = 3 * FRACTION_BITS + 1 - CUBIC_BITS, half = 1 << shift >> 1;

  if (taps == 2) {
    weights[0] = (1 << FRACTION_BITS) - f;
    weights[1] = f;
    return;
  }
  weights[0] = (-f3 + 2 * 256 * f2 - 256 * 256 * f + half) >> shift;
  weights[2] = (-3 * f3 + 4 * 256 * f2 + 256 * 256 * f + half) >> shift;
  weights[3] = (f3 - 256 * f2 + half) >> shift;
  weights[1] = (1 << CUBIC_BITS) - weights[0] - weights[2] - weights[3];
}

/* The unit and channel of a value; of one behind the last, the last's. */
static CSFK_ALWAYS_INLINE void
find_value (const csfk_convertscale_columns *columns, int value, int *unit, int *channel)
{
  const int last = columns->n * columns->channels - 1;

  value = value < last ? value : last;
  *unit = value / columns->channels;
  *channel = value % columns->channels;
}

/* Where 16 bytes begin that hold the taps of n values, or -1. */
static int
find_base (const csfk_convertscale_columns *columns, int first, int n, int row_bytes)
{
  int low = row_bytes, high = 0, unit, channel;

  for (int i = 0; i < n; i++) {
    find_value (columns, first + i, &unit, &channel);
    for (int k = 0; k < columns->taps; k++) {
      const int at = columns->offset[k][unit] + channel;

      low = at < low ? at : low;
      high = at > high ? at : high;
    }
  }
  low = limit (low, 0, row_bytes - 16);
  return high - low < 16 ? low : -1;
}

static int
set_eights (csfk_convertscale_columns *columns, int row_bytes)
{
  const int n = (columns->n * columns->channels + 15) / 16;

  for (int e = 0; e < n; e++)
    for (int i = 0; i < 16; i++) {
      uint8_t *pair = columns->vectors.eights[e].pairs + 2 * i;
      int *base = &columns->vectors.eights[e].base[i / 8], unit, channel;

      if (i % 8 == 0)
        *base = find_base (columns, e * 16 + i, 8, row_bytes);
      if (*base < 0)
        return 0;
      find_value (columns, e * 16 + i, &unit, &channel);
      pair[0] = (uint8_t) (columns->offset[0][unit] + channel - *base);
      pair[1] = (uint8_t) (columns->offset[1][unit] + channel - *base);
      columns->vectors.eights[e].fractions[i] = (uint16_t) columns->weight[1][unit];
    }
  return n;
}

static int
set_quads (csfk_convertscale_columns *columns, int row_bytes)
{
  /* Whole vectors of 16 values are made. */
  const int n = (columns->n * columns->channels + 15) / 16 * 4;

  for (int q = 0; q < n; q++) {
    const int base = find_base (columns, q * 4, 4, row_bytes);

    if (base < 0)
      return 0;
    columns->vectors.quads[q].base = base;
    for (int i = 0; i < 16; i++) {
      const int tap = i / 8 * 2 + i % 2;
      int unit, channel;

      find_value (columns, q * 4 + i % 8 / 2, &unit, &channel);
      columns->vectors.quads[q].pairs[i] = (uint8_t) (tap >= columns->taps ? 0 :
          columns->offset[tap][unit] + channel - base);
      columns->vectors.quads[q].weights[i] = tap >= columns->taps ? 0 :
          columns->weight[tap][unit];
    }
  }
  return n;
}

static void
set_vectors (csfk_convertscale_columns *columns, int row_bytes)
{
  columns->n_eights = columns->n_quads = 0;
  if (row_bytes < 16 || !USE_AVX2 ())
    return;
  if (columns->taps == 2)
    columns->n_eights = set_eights (columns, row_bytes);
  if (columns->n_eights == 0)
    columns->n_quads = set_quads (columns, row_bytes);
}

void
csfk_convertscale_set_columns (csfk_convertscale_columns *columns,
    const csfk_convertscale_axis *axis, int taps, int channels, int first, int n, int out_size)
{
  const int cut = CSFK_CONVERTSCALE_POSITION_BITS - FRACTION_BITS;

  columns->n = n;
  columns->channels = channels;
  columns->taps = taps;
  for (int i = 0; i < n; i++) {
    const long long o = limit (first + i, 0, out_size - 1);
    const long long position = (axis->start + o * axis->step) >> cut;
    const int at = (int) (position >> FRACTION_BITS) - (taps == 4);
    int weights[4];

    csfk_convertscale_weigh (taps, (int) (position & 255), weights);
    for (int k = 0; k < taps; k++) {
      columns->offset[k][i] = limit (at + k, 0, axis->last) * channels;
      columns->weight[k][i] = (int16_t) weights[k];
    }
  }
  set_vectors (columns, (axis->last + 1) * channels);
}

/* ---- across ---------------------------------------------------------------------------------- */

static CSFK_ALWAYS_INLINE void
across_linear (const unsigned char *row, const csfk_convertscale_columns *columns, int channels,
    int16_t *sums)
{
  for (int i = 0; i < columns->n; i++) {
    const unsigned char *a = row + columns->offset[0][i], *b = row + columns->offset[1][i];
    const int fraction = columns->weight[1][i];

    for (int c = 0; c < channels; c++)
      sums[i * channels + c] = (int16_t) (uint16_t) (a[c] * 256 + (b[c] - a[c]) * fraction);
  }
}

static CSFK_ALWAYS_INLINE void
across_cubic (const unsigned char *row, const csfk_convertscale_columns *columns, int channels,
    int16_t *sums)
{
  const int shift = CUBIC_BITS - ROW_BITS, half = 1 << shift >> 1;

  for (int i = 0; i < columns->n; i++) {
    const unsigned char *a = row + columns->offset[0][i], *b = row + columns->offset[1][i];
    const unsigned char *c = row + columns->offset[2][i], *d = row + columns->offset[3][i];
    const int wa = columns->weight[0][i], wb = columns->weight[1][i];
    const int wc = columns->weight[2][i], wd = columns->weight[3][i];

    for (int v = 0; v < channels; v++)
      sums[i * channels + v] =
          (int16_t) ((a[v] * wa + b[v] * wb + c[v] * wc + d[v] * wd + half) >> shift);
  }
}

#if HAVE_AVX2_CODE
/* A pair of taps becomes a * 256 + (b - a) * fraction, which modulo 2^16 is the sum itself. */
CSFK_TARGET_AVX2 static void
across_eights (const unsigned char *row, const csfk_convertscale_columns *columns, int16_t *sums)
{
  const __m256i low = _mm256_set1_epi16 (255);

  for (int e = 0; e < columns->n_eights; e++) {
    const int *base = columns->vectors.eights[e].base;
    const __m128i first = _mm_loadu_si128 ((const __m128i *) (row + base[0]));
    const __m128i second = _mm_loadu_si128 ((const __m128i *) (row + base[1]));
    const __m256i bytes = _mm256_inserti128_si256 (_mm256_castsi128_si256 (first), second, 1);
    const __m256i pairs = _mm256_shuffle_epi8 (bytes,
        _mm256_loadu_si256 ((const __m256i *) columns->vectors.eights[e].pairs));
    const __m256i fractions =
        _mm256_loadu_si256 ((const __m256i *) columns->vectors.eights[e].fractions);
    const __m256i a = _mm256_and_si256 (pairs, low), b = _mm256_srli_epi16 (pairs, 8);
    const __m256i change = _mm256_mullo_epi16 (_mm256_sub_epi16 (b, a), fractions);

    _mm256_storeu_si256 ((__m256i *) (sums + e * 16),
        _mm256_add_epi16 (_mm256_slli_epi16 (a, 8), change));
  }
}

/* Four sums, of products of the first two taps and of the others. */
CSFK_TARGET_AVX2 static inline __m128i
sum_quad (const unsigned char *row, const csfk_convertscale_columns *columns, int q)
{
  const __m128i bytes =
      _mm_loadu_si128 ((const __m128i *) (row + columns->vectors.quads[q].base));
  const __m128i pairs = _mm_shuffle_epi8 (bytes,
      _mm_loadu_si128 ((const __m128i *) columns->vectors.quads[q].pairs));
  const __m256i products = _mm256_madd_epi16 (_mm256_cvtepu8_epi16 (pairs),
      _mm256_loadu_si256 ((const __m256i *) columns->vectors.quads[q].weights));

  return _mm_add_epi32 (_mm256_castsi256_si128 (products),
      _mm256_extracti128_si256 (products, 1));
}

CSFK_TARGET_AVX2 static void
across_quads (const unsigned char *row, const csfk_convertscale_columns *columns, int16_t *sums)
{
  const __m128i half = _mm_set1_epi32 (1 << (CUBIC_BITS - ROW_BITS) >> 1);

  for (int q = 0; q < columns->n_quads; q += 2) {
    __m128i first = sum_quad (row, columns, q), second = sum_quad (row, columns, q + 1);

    if (columns->taps == 4) {
      first = _mm_srai_epi32 (_mm_add_epi32 (first, half), CUBIC_BITS - ROW_BITS);
      second = _mm_srai_epi32 (_mm_add_epi32 (second, half), CUBIC_BITS - ROW_BITS);
      first = _mm_packs_epi32 (first, second);
    } else {
      first = _mm_packus_epi32 (first, second);
    }
    _mm_storeu_si128 ((__m128i *) (sums + q * 4), first);
  }
}
#endif

void
csfk_convertscale_across (const unsigned char *row, const csfk_convertscale_columns *columns,
    int16_t *sums)
{
#if HAVE_AVX2_CODE
  if (columns->n_eights > 0) {
    across_eights (row, columns, sums);
    return;
  }
  if (columns->n_quads > 0) {
    across_quads (row, columns, sums);
    return;
  }
#endif
  switch (columns->channels + (columns->taps == 4 ? 4 : 0)) {
    case 1:
      across_linear (row, columns, 1, sums);
      break;
    case 2:
      across_linear (row, columns, 2, sums);
      break;
    case 3:
      across_linear (row, columns, 3, sums);
      break;
    case 4:
      across_linear (row, columns, 4, sums);
      break;
    case 5:
      across_cubic (row, columns, 1, sums);
      break;
    case 6:
      across_cubic (row, columns, 2, sums);
      break;
    case 7:
      across_cubic (row, columns, 3, sums);
      break;
    case 8:
      across_cubic (row, columns, 4, sums);
      break;
  }
}

/* ---- down ------------------------------------------------------------------------------------ */

/* Rounded half up, `shift` places fewer.  Of 16-bit factors, which vectors of them can multiply. */
static CSFK_ALWAYS_INLINE unsigned
sum_linear (int16_t upper, int16_t lower, uint16_t upper_weight, uint16_t lower_weight, int shift)
{
  return ((uint32_t) (uint16_t) upper * (uint32_t) upper_weight +
      (uint32_t) (uint16_t) lower * (uint32_t) lower_weight + (1u << shift >> 1)) >> shift;
}

/* And limited to 0 .. maximum. */
static CSFK_ALWAYS_INLINE int
sum_cubic (const int16_t *const *rows, const int *weights, int i, int shift, int maximum)
{
  const int sum = rows[0][i] * (int16_t) weights[0] + rows[1][i] * (int16_t) weights[1] +
      rows[2][i] * (int16_t) weights[2] + rows[3][i] * (int16_t) weights[3];

  return limit ((sum + (1 << shift >> 1)) >> shift, 0, maximum);
}

static CSFK_ALWAYS_INLINE void
down_body (const int16_t *const *rows, const int *weights, int taps, int n,
    unsigned char *restrict results)
{
  if (taps == 2) {
    const int16_t *restrict upper = rows[0], *restrict lower = rows[1];
    const uint16_t upper_weight = (uint16_t) weights[0], lower_weight = (uint16_t) weights[1];

    for (int i = 0; i < n; i++)
      results[i] = (unsigned char) sum_linear (upper[i], lower[i], upper_weight, lower_weight,
          LINEAR_SUM_BITS);
  } else {
    const int16_t *const four[4] = { rows[0], rows[1], rows[2], rows[3] };
    const int own[4] = { weights[0], weights[1], weights[2], weights[3] };

    for (int i = 0; i < n; i++)
      results[i] = (unsigned char) sum_cubic (four, own, i, CUBIC_SUM_BITS, 255);
  }
}

static CSFK_ALWAYS_INLINE void
down_places_body (const int16_t *const *rows, const int *weights, int taps, int n,
    int16_t *restrict results)
{
  if (taps == 2) {
    const int16_t *restrict upper = rows[0], *restrict lower = rows[1];
    const uint16_t upper_weight = (uint16_t) weights[0], lower_weight = (uint16_t) weights[1];

    for (int i = 0; i < n; i++)
      results[i] = (int16_t) sum_linear (upper[i], lower[i], upper_weight, lower_weight,
          LINEAR_SUM_BITS - PLACES);
  } else {
    const int16_t *const four[4] = { rows[0], rows[1], rows[2], rows[3] };
    const int own[4] = { weights[0], weights[1], weights[2], weights[3] };

    for (int i = 0; i < n; i++)
      results[i] = (int16_t) sum_cubic (four, own, i, CUBIC_SUM_BITS - PLACES, 255 << PLACES);
  }
}

#if HAVE_AVX2_CODE
/* 16 sums of two rows, 256 * 2^15 lower so that they can be made of numbers with a sign. */
#define BIAS (1 << (15 + FRACTION_BITS))

CSFK_TARGET_AVX2 static inline void
sum_rows (const int16_t *upper, const int16_t *lower, __m256i weights, __m256i *low, __m256i *high)
{
  const __m256i bias = _mm256_set1_epi16 (-32768);
  const __m256i a = _mm256_xor_si256 (_mm256_loadu_si256 ((const __m256i *) upper), bias);
  const __m256i b = _mm256_xor_si256 (_mm256_loadu_si256 ((const __m256i *) lower), bias);

  *low = _mm256_madd_epi16 (_mm256_unpacklo_epi16 (a, b), weights);
  *high = _mm256_madd_epi16 (_mm256_unpackhi_epi16 (a, b), weights);
}

/* 16 sums of four rows, rounded and scaled; they may be below 0 and above the maximum. */
CSFK_TARGET_AVX2 static inline __m256i
sum_four_rows (const int16_t *const *rows, const int *weights, int i, int shift)
{
  const __m256i half = _mm256_set1_epi32 (1 << shift >> 1);
  const __m256i first = _mm256_set1_epi32 ((weights[0] & 0xffff) | weights[1] * 65536);
  const __m256i last = _mm256_set1_epi32 ((weights[2] & 0xffff) | weights[3] * 65536);
  const __m256i a = _mm256_loadu_si256 ((const __m256i *) (rows[0] + i));
  const __m256i b = _mm256_loadu_si256 ((const __m256i *) (rows[1] + i));
  const __m256i c = _mm256_loadu_si256 ((const __m256i *) (rows[2] + i));
  const __m256i d = _mm256_loadu_si256 ((const __m256i *) (rows[3] + i));
  const __m256i low = _mm256_add_epi32 (_mm256_madd_epi16 (_mm256_unpacklo_epi16 (a, b), first),
      _mm256_madd_epi16 (_mm256_unpacklo_epi16 (c, d), last));
  const __m256i high = _mm256_add_epi32 (_mm256_madd_epi16 (_mm256_unpackhi_epi16 (a, b), first),
      _mm256_madd_epi16 (_mm256_unpackhi_epi16 (c, d), last));

  return _mm256_packs_epi32 (_mm256_srai_epi32 (_mm256_add_epi32 (low, half), shift),
      _mm256_srai_epi32 (_mm256_add_epi32 (high, half), shift));
}

CSFK_TARGET_AVX2 static inline __m256i
scale_sums (__m256i low, __m256i high, int shift)
{
  const __m256i half = _mm256_set1_epi32 (BIAS + (1 << shift >> 1));

  low = _mm256_srli_epi32 (_mm256_add_epi32 (low, half), shift);
  high = _mm256_srli_epi32 (_mm256_add_epi32 (high, half), shift);
  return _mm256_packus_epi32 (low, high);
}

CSFK_TARGET_AVX2 static void
down_avx2 (const int16_t *const *rows, const int *weights, int taps, int n,
    unsigned char *restrict results)
{
  const __m256i both = _mm256_set1_epi32 (weights[0] | weights[1] << 16);
  int i = 0;

  if (taps == 4) {
    for (; i + 32 <= n; i += 32)
      _mm256_storeu_si256 ((__m256i *) (results + i), _mm256_permute4x64_epi64 (
              _mm256_packus_epi16 (sum_four_rows (rows, weights, i, CUBIC_SUM_BITS),
                  sum_four_rows (rows, weights, i + 16, CUBIC_SUM_BITS)), 0xd8));
    for (; i < n; i++)
      results[i] = (unsigned char) sum_cubic (rows, weights, i, CUBIC_SUM_BITS, 255);
    return;
  }
  for (; i + 32 <= n; i += 32) {
    __m256i low, high, first, second;

    sum_rows (rows[0] + i, rows[1] + i, both, &low, &high);
    first = scale_sums (low, high, LINEAR_SUM_BITS);
    sum_rows (rows[0] + i + 16, rows[1] + i + 16, both, &low, &high);
    second = scale_sums (low, high, LINEAR_SUM_BITS);
    _mm256_storeu_si256 ((__m256i *) (results + i),
        _mm256_permute4x64_epi64 (_mm256_packus_epi16 (first, second), 0xd8));
  }
  for (; i < n; i++)
    results[i] = (unsigned char) sum_linear (rows[0][i], rows[1][i], (uint16_t) weights[0],
        (uint16_t) weights[1], LINEAR_SUM_BITS);
}

CSFK_TARGET_AVX2 static void
down_places_avx2 (const int16_t *const *rows, const int *weights, int taps, int n,
    int16_t *restrict results)
{
  const __m256i both = _mm256_set1_epi32 (weights[0] | weights[1] << 16);
  int i = 0;

  if (taps == 4) {
    const __m256i zero = _mm256_setzero_si256 (), most = _mm256_set1_epi16 (255 << PLACES);

    for (; i + 16 <= n; i += 16)
      _mm256_storeu_si256 ((__m256i *) (results + i), _mm256_max_epi16 (zero,
              _mm256_min_epi16 (most, sum_four_rows (rows, weights, i,
                      CUBIC_SUM_BITS - PLACES))));
    for (; i < n; i++)
      results[i] = (int16_t) sum_cubic (rows, weights, i, CUBIC_SUM_BITS - PLACES, 255 << PLACES);
    return;
  }
  for (; i + 16 <= n; i += 16) {
    __m256i low, high;

    sum_rows (rows[0] + i, rows[1] + i, both, &low, &high);
    _mm256_storeu_si256 ((__m256i *) (results + i),
        scale_sums (low, high, LINEAR_SUM_BITS - PLACES));
  }
  for (; i < n; i++)
    results[i] = (int16_t) sum_linear (rows[0][i], rows[1][i], (uint16_t) weights[0],
        (uint16_t) weights[1], LINEAR_SUM_BITS - PLACES);
}
#endif

void
csfk_convertscale_down (const int16_t *const *rows, const int *weights, int taps, int n,
    unsigned char *results)
{
#if HAVE_AVX2_CODE
  if (USE_AVX2 ()) {
    down_avx2 (rows, weights, taps, n, results);
    return;
  }
#endif
  down_body (rows, weights, taps, n, results);
}

void
csfk_convertscale_down_places (const int16_t *const *rows, const int *weights, int taps, int n,
    int16_t *results)
{
#if HAVE_AVX2_CODE
  if (USE_AVX2 ()) {
    down_places_avx2 (rows, weights, taps, n, results);
    return;
  }
#endif
  down_places_body (rows, weights, taps, n, results);
}

/* ---- colour ---------------------------------------------------------------------------------- */

static CSFK_ALWAYS_INLINE void
apply_body (const int16_t *restrict a, const int16_t *restrict b, const int16_t *restrict c,
    const int *matrix, int n, unsigned char *restrict results)
{
  const int16_t wa = (int16_t) matrix[0], wb = (int16_t) matrix[1], wc = (int16_t) matrix[2];
  const int addend = matrix[3];

  for (int i = 0; i < n; i++)
    results[i] = (unsigned char) limit ((a[i] * wa + b[i] * wb + c[i] * wc + addend) >> COLOUR_BITS,
        0, 255);
}

#if HAVE_AVX2_CODE
CSFK_TARGET_AVX2 static inline __m256i
apply_to_16 (const int16_t *a, const int16_t *b, const int16_t *c, __m256i ab_weights,
    __m256i c_weights, __m256i addend)
{
  const __m256i va = _mm256_loadu_si256 ((const __m256i *) a);
  const __m256i vb = _mm256_loadu_si256 ((const __m256i *) b);
  const __m256i vc = _mm256_loadu_si256 ((const __m256i *) c), zero = _mm256_setzero_si256 ();
  __m256i low = _mm256_madd_epi16 (_mm256_unpacklo_epi16 (va, vb), ab_weights);
  __m256i high = _mm256_madd_epi16 (_mm256_unpackhi_epi16 (va, vb), ab_weights);

  low = _mm256_add_epi32 (low, _mm256_madd_epi16 (_mm256_unpacklo_epi16 (vc, zero), c_weights));
  high = _mm256_add_epi32 (high, _mm256_madd_epi16 (_mm256_unpackhi_epi16 (vc, zero), c_weights));
  low = _mm256_srai_epi32 (_mm256_add_epi32 (low, addend), COLOUR_BITS);
  high = _mm256_srai_epi32 (_mm256_add_epi32 (high, addend), COLOUR_BITS);
  return _mm256_packs_epi32 (low, high);
}

CSFK_TARGET_AVX2 static void
apply_avx2 (const int16_t *restrict a, const int16_t *restrict b, const int16_t *restrict c,
    const int *matrix, int n, unsigned char *restrict results)
{
  const __m256i ab_weights = _mm256_set1_epi32 ((matrix[0] & 0xffff) | matrix[1] * 65536);
  const __m256i c_weights = _mm256_set1_epi32 (matrix[2] & 0xffff);
  const __m256i addend = _mm256_set1_epi32 (matrix[3]);
  int i = 0;

  for (; i + 32 <= n; i += 32) {
    const __m256i first = apply_to_16 (a + i, b + i, c + i, ab_weights, c_weights, addend);
    const __m256i second = apply_to_16 (a + i + 16, b + i + 16, c + i + 16, ab_weights, c_weights,
        addend);

    _mm256_storeu_si256 ((__m256i *) (results + i),
        _mm256_permute4x64_epi64 (_mm256_packus_epi16 (first, second), 0xd8));
  }
  apply_body (a + i, b + i, c + i, matrix, n - i, results + i);
}
#endif

void
csfk_convertscale_apply (const int16_t *const *components, const int *matrix, int n,
    unsigned char *results)
{
#if HAVE_AVX2_CODE
  if (USE_AVX2 ()) {
    apply_avx2 (components[0], components[1], components[2], matrix, n, results);
    return;
  }
#endif
  apply_body (components[0], components[1], components[2], matrix, n, results);
}
