// SPDX-License-Identifier: Apache-2.0
// backend/cpu/matmul_geometry.h: a matmul node as a list of equally shaped matrix products over strided matrices.
#pragma once

#include <cstdint>
#include <vector>

#include "undertow/backend/cpu/kernel.h"

namespace undertow::backend::cpu {

struct MatmulGeometry {
  std::int64_t m, n, k;
  std::int64_t a_row, a_col, b_row, b_col;       // strides in elements; one of each pair is 1
  std::vector<std::int64_t> a_offset, b_offset;  // per product, in elements; the results lie one after another

  std::int64_t batch() const { return static_cast<std::int64_t>(a_offset.size()); }
  double flops() const {
    return 2.0 * static_cast<double>(batch()) * static_cast<double>(m * n) * static_cast<double>(k);
  }
};

/// Batch dimensions that only a has are folded into m where a is not transposed.
MatmulGeometry matmul_geometry(const NodeView& node);

}  // namespace undertow::backend::cpu
