/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A thread's bytes of a row as 32-bit words in registers.  Device code only. */
#ifndef CSFK_WORDS_CUH
#define CSFK_WORDS_CUH

/* Aligned to as many bytes as they are, where that is 8 or 16, and else to 4. */
template <int WORDS>
static __device__ __forceinline__ void
load_words (const unsigned char *from, unsigned *words)
{
  if constexpr (WORDS == 4) {
    uint4 v = *(const uint4 *) from;

    words[0] = v.x, words[1] = v.y, words[2] = v.z, words[3] = v.w;
  } else if constexpr (WORDS == 2) {
    uint2 v = *(const uint2 *) from;

    words[0] = v.x, words[1] = v.y;
  } else {
#pragma unroll
    for (int i = 0; i < WORDS; i++)
      words[i] = ((const unsigned *) from)[i];
  }
}

template <int WORDS>
static __device__ __forceinline__ void
store_words (unsigned char *to, const unsigned *words)
{
  if constexpr (WORDS == 4) {
    *(uint4 *) to = make_uint4 (words[0], words[1], words[2], words[3]);
  } else if constexpr (WORDS == 2) {
    *(uint2 *) to = make_uint2 (words[0], words[1]);
  } else {
#pragma unroll
    for (int i = 0; i < WORDS; i++)
      ((unsigned *) to)[i] = words[i];
  }
}

#endif
