// SPDX-License-Identifier: Apache-2.0
// Matrix products by our own loops.
#include <algorithm>

#include "undertow/backend/cpu/kernel_list.h"
#include "undertow/backend/cpu/matmul_geometry.h"
#include "undertow/backend/cpu/parallel.h"
#include "undertow/backend/cpu/small_gemm.h"
#include "undertow/base/check.h"

namespace undertow::backend::cpu {
namespace {

/// Up to here (per product) our loops are at least as fast as the library's (measured on AVX2: equal at 64^3 .. 192^3),
/// and their bits do not depend on the number of threads.
constexpr double kSmallFlops = 8e6;
constexpr double kNsPerFlop = 1.0 / 40;

RunFn gemm_runner(MatmulGeometry g) {
  // One column: as the row of the transposed product, so that the vectors run along the result.
  const bool swap = g.n == 1 && g.m > 1;
  if (swap) {
    std::swap(g.m, g.n);
    std::swap(g.a_row, g.b_col);
    std::swap(g.a_col, g.b_row);
    std::swap(g.a_offset, g.b_offset);
  }
  const double cost = g.flops() * kNsPerFlop + static_cast<double>(g.batch()) * 50;
  return [g = std::move(g), swap, cost](void* const* args, ir::StepError*) {
    const auto *a = static_cast<const float*>(args[swap ? 1 : 0]), *b = static_cast<const float*>(args[swap ? 0 : 1]);
    auto* c = static_cast<float*>(args[2]);
    auto* scratch = static_cast<float*>(args[3]);
    const auto product = [&](std::int64_t i) {
      return Gemm{g.m,
                  g.n,
                  g.k,
                  a + g.a_offset[static_cast<std::size_t>(i)],
                  g.a_row,
                  g.a_col,
                  b + g.b_offset[static_cast<std::size_t>(i)],
                  g.b_row,
                  g.b_col,
                  c + i * g.m * g.n,
                  g.n};
    };
    const std::int64_t panels = gemm_panels(g.n), panel_floats = gemm_panel_floats(g.k);
    if (gemm_packs(g.b_col) && g.m <= kGemmRows) {  // each panel is used once: packed and used by the same thread
      parallel_for(g.batch() * panels, cost, [&](std::int64_t begin, std::int64_t end, int thread) {
        float* packed = scratch + thread * panel_floats;
        for (std::int64_t u = begin; u < end; ++u) {
          const Gemm p = product(u / panels);
          gemm_pack_panel(p, u % panels, packed);
          gemm_panel(p, u % panels, 0, g.m, packed);
        }
      });
      return;
    }
    // Panels are cut into blocks of rows where there are too few of them for all threads.
    const std::int64_t threads = compute_threads();
    const std::int64_t blocks =
        g.batch() * panels >= 4 * threads ? 1 : std::clamp(g.m / kGemmRows, std::int64_t{1}, 4 * threads);
    const auto block = [&](const Gemm& p, std::int64_t u, const float* packed) {
      const std::int64_t r = u % blocks;
      gemm_panel(p, u / blocks % panels, g.m * r / blocks, g.m * (r + 1) / blocks, packed);
    };
    if (!gemm_packs(g.b_col)) {
      parallel_for(g.batch() * panels * blocks, cost, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t u = begin; u < end; ++u) block(product(u / (panels * blocks)), u, nullptr);
      });
      return;
    }
    for (std::int64_t i = 0; i < g.batch(); ++i) {
      const Gemm p = product(i);
      const double share = cost / static_cast<double>(g.batch());
      if (blocks == 1 || share < kSerialBelowNs) {
        parallel_for(panels, share, [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t u = begin; u < end; ++u) {
            gemm_pack_panel(p, u, scratch + u * panel_floats);
            gemm_panel(p, u, 0, g.m, scratch + u * panel_floats);
          }
        });
        continue;
      }
      parallel_for(panels, share / 8, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t u = begin; u < end; ++u) gemm_pack_panel(p, u, scratch + u * panel_floats);
      });
      parallel_for(panels * blocks, share, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t u = begin; u < end; ++u) block(p, u, scratch + u / blocks * panel_floats);
      });
    }
  };
}

Choice make(const NodeView& node, MatmulGeometry g) {
  const bool swap = g.n == 1 && g.m > 1;
  const std::int64_t n = swap ? g.m : g.n, packed_col = swap ? g.a_row : g.b_col;
  std::size_t scratch = 0;
  if (gemm_packs(packed_col))
    scratch =
        static_cast<std::size_t>(gemm_panel_floats(g.k) * std::max<std::int64_t>(gemm_panels(n), compute_threads())) *
        sizeof(float);
  auto name = fmt::format("gemm:{} {}x{}x{}x{}", node.op->name, g.batch(), g.m, g.n, g.k);
  return Choice::run(std::move(name), gemm_runner(std::move(g)), scratch);
}

}  // namespace

MatmulGeometry matmul_geometry(const NodeView& node) {
  const Shape &a = node.in[0].shape, &b = node.in[1].shape, &c = node.out[0].shape;
  const bool ta = node.flag("transpose_a"), tb = node.flag("transpose_b");
  const auto last = [](const Shape& s, int back) { return s[s.rank() - back]; };
  MatmulGeometry g{};
  g.m = last(c, 2), g.n = last(c, 1), g.k = last(a, ta ? 2 : 1);
  g.a_row = ta ? 1 : g.k, g.a_col = ta ? g.m : 1;
  g.b_row = tb ? 1 : g.n, g.b_col = tb ? g.k : 1;
  const int batch_rank = c.rank() - 2;
  std::int64_t batch = 1, b_batch = 1, a_batch = 1;
  for (int d = 0; d < batch_rank; ++d) batch *= c[d];
  for (int d = 0; d + 2 < b.rank(); ++d) b_batch *= b[d];
  for (int d = 0; d + 2 < a.rank(); ++d) a_batch *= a[d];
  if (b_batch == 1 && a_batch == batch && !ta) {
    g.m *= batch;
    g.a_offset = g.b_offset = {0};
    return g;
  }
  const auto offset = [&](const Shape& s, std::int64_t index, std::int64_t matrix) {
    std::int64_t at = 0, stride = matrix;
    for (int d = batch_rank - 1, e = s.rank() - 3; d >= 0; --d, --e) {
      const std::int64_t i = index % c[d];
      index /= c[d];
      if (e < 0) continue;
      if (s[e] != 1) at += i * stride;
      stride *= s[e];
    }
    return at;
  };
  for (std::int64_t i = 0; i < batch; ++i) {
    g.a_offset.push_back(offset(a, i, g.m * g.k));
    g.b_offset.push_back(offset(b, i, g.k * g.n));
  }
  return g;
}

Choice own_matmul(const NodeView& node) {
  if (node.in[0].dtype != DType::kFloat32 || node.in[1].dtype != DType::kFloat32)
    return Choice::decline("float32 only");
  return make(node, matmul_geometry(node));
}

Choice small_matmul(const NodeView& node) {
  if (node.in[0].dtype != DType::kFloat32 || node.in[1].dtype != DType::kFloat32)
    return Choice::decline("float32 only");
  MatmulGeometry g = matmul_geometry(node);
  const double flops = g.flops() / static_cast<double>(g.batch());
  if (flops > kSmallFlops) return Choice::decline(fmt::format("{:.0f} flops per product are not small", flops));
  return make(node, std::move(g));
}

}  // namespace undertow::backend::cpu
