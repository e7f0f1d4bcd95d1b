// SPDX-License-Identifier: Apache-2.0
#include "undertow/backend/cpu/convert.h"

#include <immintrin.h>

#include "undertow/backend/cpu/parallel.h"

namespace undertow::backend::cpu {
namespace {

constexpr double kNsPerElement = 0.25;

void widen_f16(const float16* from, float* to, std::int64_t begin, std::int64_t end) {
  std::int64_t i = begin;
  for (; i + 8 <= end; i += 8)
    _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i))));
  for (; i < end; ++i) to[i] = static_cast<float>(from[i]);
}

void narrow_f16(const float* from, float16* to, std::int64_t begin, std::int64_t end) {
  std::int64_t i = begin;
  for (; i + 8 <= end; i += 8)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  for (; i < end; ++i) to[i] = float16(from[i]);
}

}  // namespace

void widen(DType dtype, const void* from, float* to, std::int64_t count) {
  parallel_for(count, static_cast<double>(count) * kNsPerElement, [&](std::int64_t begin, std::int64_t end) {
    if (dtype == DType::kFloat16) return widen_f16(static_cast<const float16*>(from), to, begin, end);
    const auto* x = static_cast<const bfloat16*>(from);
    for (std::int64_t i = begin; i < end; ++i) to[i] = static_cast<float>(x[i]);
  });
}

void narrow(DType dtype, const float* from, void* to, std::int64_t count) {
  parallel_for(count, static_cast<double>(count) * kNsPerElement, [&](std::int64_t begin, std::int64_t end) {
    if (dtype == DType::kFloat16) return narrow_f16(from, static_cast<float16*>(to), begin, end);
    auto* y = static_cast<bfloat16*>(to);
    for (std::int64_t i = begin; i < end; ++i) y[i] = bfloat16(from[i]);
  });
}

}  // namespace undertow::backend::cpu
