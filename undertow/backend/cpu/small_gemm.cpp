// SPDX-License-Identifier: Apache-2.0
#include "undertow/backend/cpu/small_gemm.h"

#include <immintrin.h>

#include <algorithm>
#include <array>

// GCC keeps an array of accumulators in registers only if the loops over it are unrolled early.
#define UNROLL _Pragma("GCC unroll 8")

namespace undertow::backend::cpu {
namespace {

__m256i lanes(std::int64_t count) {
  const __m256i index = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count)), index);
}

/// MR x (8 NV) tile of C in registers. The last vector has `last` columns when `Masked`.
template <int MR, int NV, bool Masked>
void tile(const Gemm& g, std::int64_t m, const float* b, std::int64_t b_row, float* c, std::int64_t last) {
  const __m256i mask = lanes(last);
  __m256 acc[MR][NV];
  UNROLL for (int i = 0; i < MR; ++i) UNROLL for (int v = 0; v < NV; ++v) acc[i][v] = _mm256_setzero_ps();
  const std::int64_t a_row = g.a_row, a_col = g.a_col, c_row = g.c_row, k_end = g.k;
  const float* a = g.a + m * a_row;
  for (std::int64_t k = 0; k < k_end; ++k, a += a_col, b += b_row) {
    __m256 row[NV];
    UNROLL for (int v = 0; v < NV; ++v) row[v] =
        Masked && v == NV - 1 ? _mm256_maskload_ps(b + 8 * v, mask) : _mm256_loadu_ps(b + 8 * v);
    UNROLL for (int i = 0; i < MR; ++i) {
      const __m256 x = _mm256_broadcast_ss(a + i * a_row);
      UNROLL for (int v = 0; v < NV; ++v) acc[i][v] = _mm256_fmadd_ps(x, row[v], acc[i][v]);
    }
  }
  UNROLL for (int i = 0; i < MR; ++i) UNROLL for (int v = 0; v < NV; ++v) {
    float* to = c + (m + i) * c_row + 8 * v;
    if (Masked && v == NV - 1) _mm256_maskstore_ps(to, mask, acc[i][v]);
    else _mm256_storeu_ps(to, acc[i][v]);
  }
}

using Tile = void (*)(const Gemm&, std::int64_t, const float*, std::int64_t, float*, std::int64_t);
template <int NV, bool Masked>
constexpr std::array<Tile, kGemmRows> tiles() {
  return {tile<1, NV, Masked>, tile<2, NV, Masked>, tile<3, NV, Masked>,
          tile<4, NV, Masked>, tile<5, NV, Masked>, tile<6, NV, Masked>};
}

/// An 8x8 transpose: column j of the rows at `from` (stride `row`) becomes the row at to + j * to_row.
void transpose8(const float* from, std::int64_t row, float* to, std::int64_t to_row) {
  __m256 r[8], t[8];
  for (int i = 0; i < 8; ++i) r[i] = _mm256_loadu_ps(from + i * row);
  for (int i = 0; i < 8; i += 2) {
    t[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
    t[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
  }
  for (int i = 0; i < 8; i += 4) {
    r[i] = _mm256_shuffle_ps(t[i], t[i + 2], 0x44);
    r[i + 1] = _mm256_shuffle_ps(t[i], t[i + 2], 0xEE);
    r[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44);
    r[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xEE);
  }
  for (int i = 0; i < 4; ++i) {
    _mm256_storeu_ps(to + i * to_row, _mm256_permute2f128_ps(r[i], r[i + 4], 0x20));
    _mm256_storeu_ps(to + (i + 4) * to_row, _mm256_permute2f128_ps(r[i], r[i + 4], 0x31));
  }
}

}  // namespace

void gemm_pack_panel(const Gemm& g, std::int64_t p, float* packed) {
  const std::int64_t n0 = p * kGemmPanel, width = std::min(kGemmPanel, g.n - n0);
  const float* b = g.b + n0 * g.b_col;
  std::int64_t k = 0;
  if (g.b_row == 1 && width == kGemmPanel)
    for (; k + 8 <= g.k; k += 8)
      for (std::int64_t j = 0; j < kGemmPanel; j += 8)
        transpose8(b + j * g.b_col + k, g.b_col, packed + k * kGemmPanel + j, kGemmPanel);
  for (; k < g.k; ++k)
    for (std::int64_t j = 0; j < kGemmPanel; ++j)
      packed[k * kGemmPanel + j] = j < width ? b[k * g.b_row + j * g.b_col] : 0.f;
}

void gemm_panel(const Gemm& g, std::int64_t p, std::int64_t m0, std::int64_t m1, const float* packed) {
  static constexpr auto kTwo = tiles<2, false>(), kTwoMasked = tiles<2, true>(), kOne = tiles<1, false>(),
                        kOneMasked = tiles<1, true>();
  const std::int64_t n0 = p * kGemmPanel, width = std::min(kGemmPanel, g.n - n0);
  const float* b = packed ? packed : g.b + n0;
  const std::int64_t b_row = packed ? kGemmPanel : g.b_row;
  const auto& table = width > 8 ? (width == 16 ? kTwo : kTwoMasked) : (width == 8 ? kOne : kOneMasked);
  const std::int64_t last = width > 8 ? width - 8 : width;
  // Tiles of nearly equal height: a last tile of one row would leave the multipliers idle.
  const std::int64_t rows = m1 - m0, count = (rows + kGemmRows - 1) / kGemmRows;
  for (std::int64_t t = 0; t < count; ++t) {
    const std::int64_t begin = m0 + rows * t / count, end = m0 + rows * (t + 1) / count;
    table[static_cast<std::size_t>(end - begin - 1)](g, begin, b, b_row, g.c + n0, last);
  }
}

}  // namespace undertow::backend::cpu
