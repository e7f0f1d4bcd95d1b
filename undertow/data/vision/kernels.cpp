// SPDX-License-Identifier: Apache-2.0
#include "undertow/data/vision/kernels.h"

#ifdef __AVX2__
#include <immintrin.h>
#endif

namespace undertow::data::vision {

void linear_rgb(const std::uint8_t* in, std::int64_t width, const int* at, const std::uint32_t* w, std::int64_t n,
                std::int16_t* out) {
  std::int64_t x = 0;
  const auto one = [&](std::int64_t i) {
    const std::uint8_t* p = in + 3 * std::int64_t{at[i]};
    const int a = static_cast<int>(w[i] & 0xffff), b = static_cast<int>(w[i] >> 16);
    for (int k = 0; k < 3; ++k) out[3 * i + k] = static_cast<std::int16_t>((p[k] * a + p[k + 3] * b) >> 4);
  };
#ifdef __AVX2__
  // Eight bytes are read for the six of two pixels; at the end of the row there may be none after them.
  const std::int64_t last = (3 * width - 8) / 3;
  constexpr char z = -1;
  const __m256i pairs = _mm256_broadcastsi128_si256(_mm_setr_epi8(0, z, 3, z, 1, z, 4, z, 2, z, 5, z, z, z, z, z));
  const __m128i six = _mm_setr_epi8(0, 1, 2, 3, 4, 5, 8, 9, 10, 11, 12, 13, z, z, z, z);
  for (; x + 2 <= n; x += 2) {
    if (width < 3 || at[x] > last || at[x + 1] > last) {
      one(x);
      one(x + 1);
      continue;
    }
    const __m128i p = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(in + 3 * std::int64_t{at[x]}));
    const __m128i q = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(in + 3 * std::int64_t{at[x + 1]}));
    const __m256i values = _mm256_shuffle_epi8(_mm256_inserti128_si256(_mm256_castsi128_si256(p), q, 1), pairs);
    const __m256i weights = _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_set1_epi32(static_cast<int>(w[x]))),
                                                    _mm_set1_epi32(static_cast<int>(w[x + 1])), 1);
    const __m256i sums = _mm256_srai_epi32(_mm256_madd_epi16(values, weights), 4);
    const __m128i packed = _mm_packs_epi32(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + 3 * x), _mm_shuffle_epi8(packed, six));
  }
#else
  (void)width;
#endif
  for (; x < n; ++x) one(x);
}

void blend_rows(const std::int16_t* a, const std::int16_t* b, int wa, int wb, std::int64_t n, std::uint8_t* out) {
  std::int64_t i = 0;
#ifdef __AVX2__
  const __m256i va = _mm256_set1_epi16(static_cast<short>(wa)), vb = _mm256_set1_epi16(static_cast<short>(wb)),
                two = _mm256_set1_epi16(2);
  const auto sum = [&](std::int64_t at) {
    const __m256i p = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(a + at));
    const __m256i q = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(b + at));
    const __m256i s = _mm256_add_epi16(_mm256_mulhi_epi16(p, va), _mm256_mulhi_epi16(q, vb));
    return _mm256_srai_epi16(_mm256_add_epi16(s, two), 2);
  };
  for (; i + 32 <= n; i += 32) {
    const __m256i packed = _mm256_packus_epi16(sum(i), sum(i + 16));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i), _mm256_permute4x64_epi64(packed, 0xd8));
  }
#endif
  for (; i < n; ++i) out[i] = static_cast<std::uint8_t>((((wa * a[i]) >> 16) + ((wb * b[i]) >> 16) + 2) >> 2);
}

void split_rgb(const std::uint8_t* in, std::int64_t n, std::uint8_t* r, std::uint8_t* g, std::uint8_t* b) {
  std::int64_t i = 0;
#ifdef __AVX2__
  constexpr char z = -1;
  // Byte 3 i + k of 48 lies in one of three vectors; the places of channel k in each of them.
  const __m128i pick[3][3] = {{_mm_setr_epi8(0, 3, 6, 9, 12, 15, z, z, z, z, z, z, z, z, z, z),
                               _mm_setr_epi8(z, z, z, z, z, z, 2, 5, 8, 11, 14, z, z, z, z, z),
                               _mm_setr_epi8(z, z, z, z, z, z, z, z, z, z, z, 1, 4, 7, 10, 13)},
                              {_mm_setr_epi8(1, 4, 7, 10, 13, z, z, z, z, z, z, z, z, z, z, z),
                               _mm_setr_epi8(z, z, z, z, z, 0, 3, 6, 9, 12, 15, z, z, z, z, z),
                               _mm_setr_epi8(z, z, z, z, z, z, z, z, z, z, z, 2, 5, 8, 11, 14)},
                              {_mm_setr_epi8(2, 5, 8, 11, 14, z, z, z, z, z, z, z, z, z, z, z),
                               _mm_setr_epi8(z, z, z, z, z, 1, 4, 7, 10, 13, z, z, z, z, z, z),
                               _mm_setr_epi8(z, z, z, z, z, z, z, z, z, z, 0, 3, 6, 9, 12, 15)}};
  std::uint8_t* const rows[3] = {r, g, b};
  for (; i + 16 <= n; i += 16) {
    __m128i v[3];
    for (int k = 0; k < 3; ++k) v[k] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(in + 3 * i + 16 * k));
    for (int k = 0; k < 3; ++k) {
      const __m128i all =
          _mm_or_si128(_mm_or_si128(_mm_shuffle_epi8(v[0], pick[k][0]), _mm_shuffle_epi8(v[1], pick[k][1])),
                       _mm_shuffle_epi8(v[2], pick[k][2]));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(rows[k] + i), all);
    }
  }
#endif
  for (; i < n; ++i) {
    r[i] = in[3 * i];
    g[i] = in[3 * i + 1];
    b[i] = in[3 * i + 2];
  }
}

}  // namespace undertow::data::vision
