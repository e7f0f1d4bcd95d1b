// SPDX-License-Identifier: Apache-2.0
// Matrix products by oneDNN: one product, or a batch without broadcasting. Transposes are strides.
#include "undertow/backend/cpu/compute_lock.h"
#include "undertow/backend/cpu/kernel_list.h"
#include "undertow/backend/cpu/matmul_geometry.h"
#include "undertow/backend/cpu/onednn_common.h"
#include "undertow/base/check.h"

namespace undertow::backend::cpu {
namespace {

bool evenly_spaced(const std::vector<std::int64_t>& offsets, std::int64_t step) {
  for (std::size_t i = 0; i < offsets.size(); ++i)
    if (offsets[i] != static_cast<std::int64_t>(i) * step) return false;
  return true;
}

}  // namespace

Choice dnnl_matmul(const NodeView& node) {
  const DType dtype = node.in[0].dtype;
  if (!dnnl_native(dtype)) return Choice::decline(fmt::format("no native {}", name_of(dtype)));
  if (node.in[1].dtype != dtype) return Choice::decline("mixed dtypes");
  const MatmulGeometry g = matmul_geometry(node);
  if (!evenly_spaced(g.a_offset, g.m * g.k) || !evenly_spaced(g.b_offset, g.k * g.n))
    return Choice::decline("broadcast batch");
  const ComputeLock lock;
  const bool one = g.batch() == 1;
  const auto describe = [&](std::int64_t rows, std::int64_t cols, std::int64_t row, std::int64_t col, DType type) {
    const std::int64_t dims[] = {g.batch(), rows, cols}, strides[] = {rows * cols, row, col};
    const auto skip = one ? std::size_t{1} : std::size_t{0};
    return dnnl_strided(std::span(dims).subspan(skip), type, std::span(strides).subspan(skip));
  };
  const auto a = describe(g.m, g.k, g.a_row, g.a_col, dtype), b = describe(g.k, g.n, g.b_row, g.b_col, dtype),
             c = describe(g.m, g.n, g.n, 1, node.out[0].dtype);
  dnnl_matmul_desc_t d;
  dnnl_check(dnnl_matmul_desc_init(&d, &a, &b, nullptr, &c), "describe a matrix product");
  const auto pd = DnnlBuilder::describe(&d);
  if (!pd) return Choice::decline("oneDNN has no fast implementation");
  DnnlBuilder builder(node);
  builder.add(pd, {{DNNL_ARG_SRC, a, {0}}, {DNNL_ARG_WEIGHTS, b, {1}}, {DNNL_ARG_DST, c, {2}}});
  return builder.take(
      fmt::format("onednn:matmul {} {}x{}x{}x{}", DnnlBuilder::impl_name(pd), g.batch(), g.m, g.n, g.k));
}

}  // namespace undertow::backend::cpu
