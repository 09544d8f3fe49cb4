/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Lets a plain C loop be compiled twice on x86, for its baseline and for AVX2, and chosen at run
 * time.  An ifunc (target_clones) would do it alone, but its resolver runs before a sanitizer is
 * up.  For the kernels' C files. */
#ifndef CSFK_SIMD_H
#define CSFK_SIMD_H

#define CSFK_ALWAYS_INLINE inline __attribute__ ((always_inline))

#if defined (__x86_64__) && !defined (__AVX2__)
#define CSFK_TWO_TARGETS 1
#define CSFK_TARGET_AVX2 __attribute__ ((target ("avx2")))
#else
#define CSFK_TWO_TARGETS 0
#define CSFK_TARGET_AVX2
#endif

static inline int
csfk_has_avx2 (void)
{
#if CSFK_TWO_TARGETS
  return __builtin_cpu_supports ("avx2");
#else
  return 0;
#endif
}

#endif
