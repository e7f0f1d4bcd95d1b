// SPDX-License-Identifier: Apache-2.0
#include "undertow/backend/cpu/nests.h"

#include <algorithm>
#include <ranges>

namespace undertow::backend::cpu {
namespace {

using Strides = std::vector<std::int64_t>;

/// Strides of x as the dims of `shape` see it (numpy's rule).
Strides broadcast_strides(const Shape& x, const Shape& shape) {
  const Strides dense = contiguous_strides(x);
  Strides s(shape.size(), 0);
  for (int d = x.rank() - 1, o = shape.rank() - 1; d >= 0; --d, --o)
    if (x[d] != 1) s[static_cast<std::size_t>(o)] = dense[static_cast<std::size_t>(d)];
  return s;
}

/// Dims [begin, end) without extents of 1, neighbours merged where they are one run in every access. Row-major indices
/// stay what they were.
void merge_dims(const Strides& extents, const std::vector<Strides>& accesses, std::size_t begin, std::size_t end,
                Strides& merged, std::vector<Strides>& strides) {
  const std::size_t first = merged.size();
  for (std::size_t d = begin; d < end; ++d) {
    if (extents[d] == 1) continue;
    const bool joins = merged.size() > first &&
                       std::ranges::all_of(std::views::iota(std::size_t{0}, accesses.size()), [&](std::size_t a) {
                         return strides[a].back() == extents[d] * accesses[a][d];
                       });
    if (joins) merged.back() *= extents[d];
    else merged.push_back(extents[d]);
    for (std::size_t a = 0; a < accesses.size(); ++a) {
      if (joins) strides[a].back() = accesses[a][d];
      else strides[a].push_back(accesses[a][d]);
    }
  }
}

ir::LoopNest elementwise_nest(const NodeView& node) {
  const Shape& shape = node.out[0].shape;
  std::vector<Strides> accesses, strides(node.in.size() + 1);
  for (const auto& t : node.in) accesses.push_back(broadcast_strides(t.shape, shape));
  accesses.push_back(contiguous_strides(shape));
  ir::LoopNest nest;
  merge_dims(shape.to_vector(), accesses, 0, shape.size(), nest.extents, strides);
  if (nest.extents.empty()) {
    nest.extents = {1};
    for (auto& s : strides) s = {0};
  }
  nest.num_outer = nest.rank();
  nest.num_inputs = static_cast<int>(node.in.size());
  nest.num_outputs = 1;
  ir::ExprBuilder builder;
  std::vector<ir::Scalar> inputs;
  ir::Stage stage;
  for (std::size_t i = 0; i < node.in.size(); ++i) {
    inputs.push_back(builder.input(static_cast<int>(i), node.in[i].dtype));
    stage.loads.push_back({static_cast<int>(i), 0, strides[i]});
  }
  const DType dtype = node.out[0].dtype;
  builder.result(builder.cast(node.op->expr(builder, inputs, *node.attrs), compute_type(dtype)));
  stage.expr = builder.take();
  stage.results.push_back(ir::StoreResult{{0, 0, strides.back()}, dtype});
  nest.stages.push_back(std::move(stage));
  return nest;
}

/// Two stages: reduce inside, store outside.
ir::LoopNest reduction_nest(const NodeView& node, ir::ReduceOp op) {
  const Shape& x = node.in[0].shape;
  const auto& axes = node.ints("axes");
  const Strides dense = contiguous_strides(x);
  Strides extents;
  std::vector<Strides> accesses(2), strides(2);  // x, y
  std::size_t kept = 0;
  for (const bool inner : {false, true})
    for (int d = 0; d < x.rank(); ++d) {
      if (std::ranges::count(axes, d) != inner) continue;
      extents.push_back(x[d]);
      accesses[0].push_back(dense[static_cast<std::size_t>(d)]);
      accesses[1].push_back(0);
      kept += !inner;
    }
  std::int64_t run = 1;
  for (std::size_t d = kept; d-- > 0; run *= extents[d]) accesses[1][d] = run;
  ir::LoopNest nest;
  merge_dims(extents, accesses, 0, kept, nest.extents, strides);
  if (nest.extents.empty()) {
    nest.extents = {1};
    for (auto& s : strides) s = {0};
  }
  nest.num_outer = nest.rank();
  merge_dims(extents, accesses, kept, extents.size(), nest.extents, strides);
  if (nest.rank() == nest.num_outer) {
    nest.extents.push_back(1);
    for (auto& s : strides) s.push_back(0);
  }
  nest.num_locals = nest.num_inputs = nest.num_outputs = 1;
  const DType dtype = node.in[0].dtype;
  ir::ExprBuilder load;
  load.result(load.input(0, dtype));
  ir::Stage reduce{.inner = true, .loads = {{0, 0, strides[0]}}, .locals = {}, .expr = load.take(), .results = {}};
  reduce.results.push_back(ir::ReduceResult{op, 0});
  ir::ExprBuilder result;
  result.result(result.input(0, compute_type(dtype)));
  ir::Stage store{.inner = false, .loads = {}, .locals = {0}, .expr = result.take(), .results = {}};
  store.results.push_back(ir::StoreResult{{0, 0, strides[1]}, node.out[0].dtype});
  nest.stages = {std::move(reduce), std::move(store)};
  return nest;
}

}  // namespace

std::optional<ir::LoopNest> single_op_nest(const NodeView& node) {
  if (node.out.size() != 1 || node.out[0].shape.numel() == 0) return std::nullopt;
  if (node.op->expr) return elementwise_nest(node);
  static constexpr std::pair<std::string_view, ir::ReduceOp> kReductions[] = {{"reduce_sum", ir::ReduceOp::kSum},
                                                                              {"reduce_prod", ir::ReduceOp::kProd},
                                                                              {"reduce_max", ir::ReduceOp::kMax},
                                                                              {"reduce_min", ir::ReduceOp::kMin}};
  for (const auto& [name, op] : kReductions)
    if (node.op->name == name) {
      // Booleans and half sums of mixed types are rare: their reference does.
      if (node.in[0].shape.numel() == 0 || node.in[0].dtype == DType::kBool || node.in[0].dtype != node.out[0].dtype)
        return std::nullopt;
      return reduction_nest(node, op);
    }
  return std::nullopt;
}

bool nest_in_place(const ir::LoopNest& nest, int output, int input) {
  const ir::Access* store = nullptr;
  for (const auto& stage : nest.stages)
    for (const auto& r : stage.results)
      if (const auto* s = std::get_if<ir::StoreResult>(&r); s && s->access.buffer == output) {
        if (store) return false;
        store = &s->access;
      }
  if (!store) return false;
  for (const auto& stage : nest.stages)
    for (const auto& load : stage.loads)
      if (load.buffer == input && (load.offset != store->offset || load.strides != store->strides)) return false;
  return true;
}

}  // namespace undertow::backend::cpu
