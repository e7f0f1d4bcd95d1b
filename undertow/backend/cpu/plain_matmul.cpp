// SPDX-License-Identifier: Apache-2.0
// Matrix products in float64 and integers: four rows of the result at a time, over rows of B that lie in order.
//
// Every element is one chain of additions over k in order, so the bits do not depend on the number of threads.
#include <algorithm>

#include "undertow/backend/cpu/kernel_list.h"
#include "undertow/backend/cpu/matmul_geometry.h"
#include "undertow/backend/cpu/parallel.h"
#include "undertow/base/check.h"

namespace undertow::backend::cpu {
namespace {

constexpr std::int64_t kRows = 4, kColumns = 128;

/// What sums of T are built in: integers wrap without undefined behaviour.
template <typename T>
struct Arithmetic {
  using type = std::make_unsigned_t<T>;
};
template <>
struct Arithmetic<double> {
  using type = double;
};

template <typename U>
struct Problem {
  std::int64_t m, n, k;
  const U* a;
  std::int64_t a_row, a_col;
  const U* b;  // rows of n
  U* c;
};

template <typename U, int kCount>
void rows_of(const Problem<U>& p, std::int64_t row) {
  // Narrow types would be multiplied as (signed) int, which may overflow; the low bits are the same in uint32.
  using P = std::conditional_t<sizeof(U) < 4, std::uint32_t, U>;
  for (std::int64_t j0 = 0; j0 < p.n; j0 += kColumns) {
    const std::int64_t width = std::min(kColumns, p.n - j0);
    P acc[kCount][kColumns] = {};
    for (std::int64_t k = 0; k < p.k; ++k) {
      const U* b = p.b + k * p.n + j0;
      for (int r = 0; r < kCount; ++r) {
        const P a = p.a[(row + r) * p.a_row + k * p.a_col];
        for (std::int64_t j = 0; j < width; ++j) acc[r][j] += a * P{b[j]};
      }
    }
    for (int r = 0; r < kCount; ++r)
      for (std::int64_t j = 0; j < width; ++j) p.c[(row + r) * p.n + j0 + j] = static_cast<U>(acc[r][j]);
  }
}

template <typename T>
Choice make(const NodeView& node) {
  using U = typename Arithmetic<T>::type;
  const MatmulGeometry g = matmul_geometry(node);
  const bool packs = g.b_col != 1;
  const std::size_t scratch = packs ? static_cast<std::size_t>(g.k * g.n) * sizeof(U) : 0;
  const double cost = g.flops() * (sizeof(U) == 8 ? 0.15 : 0.08) / static_cast<double>(g.batch());
  const auto run = [g, packs, cost](void* const* args, ir::StepError*) {
    auto* packed = static_cast<U*>(args[3]);
    for (std::int64_t i = 0; i < g.batch(); ++i) {
      const auto at = static_cast<std::size_t>(i);
      const U* b = static_cast<const U*>(args[1]) + g.b_offset[at];
      if (packs) {
        parallel_for(g.k, static_cast<double>(g.k * g.n), [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t k = begin; k < end; ++k)
            for (std::int64_t j = 0; j < g.n; ++j) packed[k * g.n + j] = b[k * g.b_row + j * g.b_col];
        });
        b = packed;
      }
      const Problem<U> p{g.m,     g.n,     g.k, static_cast<const U*>(args[0]) + g.a_offset[at],
                         g.a_row, g.a_col, b,   static_cast<U*>(args[2]) + i * g.m * g.n};
      parallel_for((g.m + kRows - 1) / kRows, cost, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t u = begin; u < end; ++u) {
          if (u * kRows + kRows <= g.m) rows_of<U, kRows>(p, u * kRows);
          else
            for (std::int64_t row = u * kRows; row < g.m; ++row) rows_of<U, 1>(p, row);
        }
      });
    }
  };
  return Choice::run(fmt::format("plain:matmul {}x{}x{}x{}", g.batch(), g.m, g.n, g.k), run, scratch);
}

}  // namespace

Choice plain_matmul(const NodeView& node) {
  const DType t = node.in[0].dtype;
  if (node.in[1].dtype != t || node.out[0].dtype != t) return Choice::decline("one dtype only");
  switch (t) {
    case DType::kFloat64: return make<double>(node);
    case DType::kInt8: return make<std::int8_t>(node);
    case DType::kUInt8: return make<std::uint8_t>(node);
    case DType::kInt16: return make<std::int16_t>(node);
    case DType::kUInt16: return make<std::uint16_t>(node);
    case DType::kInt32: return make<std::int32_t>(node);
    case DType::kUInt32: return make<std::uint32_t>(node);
    case DType::kInt64: return make<std::int64_t>(node);
    case DType::kUInt64: return make<std::uint64_t>(node);
    default: return Choice::decline("float64 and integers only");
  }
}

}  // namespace undertow::backend::cpu
