// SPDX-License-Identifier: Apache-2.0
// backend/cpu/small_gemm.h: float32 matrix product for matrices that fit the caches.
//
// Every element of C is one chain of fused multiply-adds over k in order, whatever the tiling: the bits do not depend
// on the number of threads or on where in a tile the element falls. A is read in place with any strides; B must be
// contiguous along n, and is packed into panels first where it is not.
#pragma once

#include <cstddef>
#include <cstdint>

namespace undertow::backend::cpu {

struct Gemm {
  std::int64_t m, n, k;
  const float* a;
  std::int64_t a_row, a_col;
  const float* b;
  std::int64_t b_row, b_col;
  float* c;
  std::int64_t c_row;  // columns are contiguous
};

inline constexpr std::int64_t kGemmRows = 6, kGemmPanel = 16;

/// Floats of one packed panel of B: k rows of kGemmPanel.
inline std::int64_t gemm_panel_floats(std::int64_t k) { return k * kGemmPanel; }
inline std::int64_t gemm_panels(std::int64_t n) { return (n + kGemmPanel - 1) / kGemmPanel; }
inline bool gemm_packs(std::int64_t b_col) { return b_col != 1; }

/// Packs panel `p` of B (any strides); columns beyond n are zero.
void gemm_pack_panel(const Gemm& g, std::int64_t p, float* packed);
/// Rows [m0, m1) of C's columns in panel `p`. `packed` is the panel, or null to read B in place (b_col == 1).
void gemm_panel(const Gemm& g, std::int64_t p, std::int64_t m0, std::int64_t m1, const float* packed);

}  // namespace undertow::backend::cpu
