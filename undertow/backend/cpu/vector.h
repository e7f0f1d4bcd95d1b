// SPDX-License-Identifier: Apache-2.0
// backend/cpu/vector.h: eight or four floats (AVX2) with the few operations the direct kernels need.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace undertow::backend::cpu {

struct V8 {
  using F = __m256;
  using I = __m256i;
  static F zero() { return _mm256_setzero_ps(); }
  static I set(std::int32_t v) { return _mm256_set1_epi32(v); }
  static F add(F a, F b) { return _mm256_add_ps(a, b); }
  static F times(F a, float b) { return _mm256_mul_ps(a, _mm256_set1_ps(b)); }
  static void store(float* p, F v) { _mm256_storeu_ps(p, v); }
  static void store(std::int32_t* p, I v) { _mm256_storeu_si256(reinterpret_cast<I*>(p), v); }

  /// p[0], p[stride], ... ; touches nothing beyond the last of them. `Stride`: 1, 2, or 0 for any.
  template <int Stride>
  static F load(const float* p, std::int64_t stride) {
    if constexpr (Stride == 1) return _mm256_loadu_ps(p);
    if constexpr (Stride == 2) {
      const F v = _mm256_shuffle_ps(_mm256_loadu_ps(p), _mm256_loadu_ps(p + 7), 0xD8);
      return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(v), 0xD8));
    }
    const I lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_i32gather_ps(p, _mm256_mullo_epi32(lane, set(static_cast<std::int32_t>(stride))), 4);
  }
  /// v replaces best where it is greater, or the first NaN.
  static void take_max(F v, I offset, F& best, I& where) {
    const F take = _mm256_and_ps(_mm256_cmp_ps(v, best, _CMP_NLE_UQ), _mm256_cmp_ps(best, best, _CMP_ORD_Q));
    best = _mm256_blendv_ps(best, v, take);
    where = _mm256_castps_si256(_mm256_blendv_ps(_mm256_castsi256_ps(where), _mm256_castsi256_ps(offset), take));
  }
  /// The maxima of 2x2 squares side by side in two rows, and their positions (0 .. 3).
  static void max_squares(const float* top, const float* bottom, float* y, std::int32_t* index) {
    F best;
    I where = set(0);
    F odd;
    split(top, best, odd);
    take_max(odd, set(1), best, where);
    F even;
    split(bottom, even, odd);
    take_max(even, set(2), best, where);
    take_max(odd, set(3), best, where);
    store(y, best);
    store(index, where);
  }
  /// Sixteen floats into those at even and those at odd places.
  static void split(const float* p, F& even, F& odd) {
    const F a = _mm256_loadu_ps(p), b = _mm256_loadu_ps(p + 8);
    const auto order = [](F v) { return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(v), 0xD8)); };
    even = order(_mm256_shuffle_ps(a, b, 0x88));
    odd = order(_mm256_shuffle_ps(a, b, 0xDD));
  }
  /// v[i] goes to position index[i] (0 .. 3) of the i-th 2x2 square of two rows; the other three become 0.
  static void spread(const float* values, const std::int32_t* index, float* top, float* bottom) {
    const F v = _mm256_loadu_ps(values);
    const I at = _mm256_loadu_si256(reinterpret_cast<const I*>(index));
    const auto only = [&](int i) { return _mm256_and_ps(v, _mm256_castsi256_ps(_mm256_cmpeq_epi32(at, set(i)))); };
    const auto write = [](float* p, F even, F odd) {
      const F low = _mm256_unpacklo_ps(even, odd), high = _mm256_unpackhi_ps(even, odd);
      _mm256_storeu_ps(p, _mm256_permute2f128_ps(low, high, 0x20));
      _mm256_storeu_ps(p + 8, _mm256_permute2f128_ps(low, high, 0x31));
    };
    write(top, only(0), only(1));
    write(bottom, only(2), only(3));
  }
};

struct V4 {
  using F = __m128;
  using I = __m128i;
  static F zero() { return _mm_setzero_ps(); }
  static I set(std::int32_t v) { return _mm_set1_epi32(v); }
  static F add(F a, F b) { return _mm_add_ps(a, b); }
  static F times(F a, float b) { return _mm_mul_ps(a, _mm_set1_ps(b)); }
  static void store(float* p, F v) { _mm_storeu_ps(p, v); }
  static void store(std::int32_t* p, I v) { _mm_storeu_si128(reinterpret_cast<I*>(p), v); }
  template <int Stride>
  static F load(const float* p, std::int64_t stride) {
    if constexpr (Stride == 1) return _mm_loadu_ps(p);
    if constexpr (Stride == 2) return _mm_shuffle_ps(_mm_loadu_ps(p), _mm_loadu_ps(p + 3), 0xD8);
    return _mm_i32gather_ps(p, _mm_mullo_epi32(_mm_setr_epi32(0, 1, 2, 3), set(static_cast<std::int32_t>(stride))), 4);
  }
  static void take_max(F v, I offset, F& best, I& where) {
    const F take = _mm_and_ps(_mm_cmp_ps(v, best, _CMP_NLE_UQ), _mm_cmp_ps(best, best, _CMP_ORD_Q));
    best = _mm_blendv_ps(best, v, take);
    where = _mm_castps_si128(_mm_blendv_ps(_mm_castsi128_ps(where), _mm_castsi128_ps(offset), take));
  }
  static void max_squares(const float* top, const float* bottom, float* y, std::int32_t* index) {
    const auto even = [](const float* p) { return _mm_shuffle_ps(_mm_loadu_ps(p), _mm_loadu_ps(p + 4), 0x88); };
    const auto odd = [](const float* p) { return _mm_shuffle_ps(_mm_loadu_ps(p), _mm_loadu_ps(p + 4), 0xDD); };
    F best = even(top);
    I where = set(0);
    take_max(odd(top), set(1), best, where);
    take_max(even(bottom), set(2), best, where);
    take_max(odd(bottom), set(3), best, where);
    store(y, best);
    store(index, where);
  }
  static void spread(const float* values, const std::int32_t* index, float* top, float* bottom) {
    const F v = _mm_loadu_ps(values);
    const I at = _mm_loadu_si128(reinterpret_cast<const I*>(index));
    const auto only = [&](int i) { return _mm_and_ps(v, _mm_castsi128_ps(_mm_cmpeq_epi32(at, set(i)))); };
    const auto write = [](float* p, F even, F odd) {
      _mm_storeu_ps(p, _mm_unpacklo_ps(even, odd));
      _mm_storeu_ps(p + 4, _mm_unpackhi_ps(even, odd));
    };
    write(top, only(0), only(1));
    write(bottom, only(2), only(3));
  }
};

}  // namespace undertow::backend::cpu
