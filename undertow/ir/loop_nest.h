// SPDX-License-Identifier: Apache-2.0
// ir/loop_nest.h: what one fused kernel computes: a nest of loops over dense buffers. It says nothing about the
// schedule (which dimension is vectorised, how the work is split over threads); that is code generation's choice by
// fixed rules.
//
//   for every point of the outer dims:            one row of a softmax, one channel of a BatchNorm, one element
//     stage 0: for every point of the inner dims  e.g. reduce max
//     stage 1: once                               e.g. scale a sum
//     stage 2: for every point of the inner dims  e.g. store exp(x - max)
//
// An elementwise kernel has one stage and no inner dims. A reduction has two: reduce inside, store outside.
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "undertow/ir/expr.h"

namespace undertow::ir {

/// Address of a loop point in a buffer, in elements: offset + sum of strides[d] * i[d] over all dims (outer and inner).
/// Strides may be 0 (broadcast) or negative (flip).
struct Access {
  int buffer = 0;  // loads: which kernel input; stores: which kernel output
  std::int64_t offset = 0;
  std::vector<std::int64_t> strides;
};

enum class ReduceOp : std::uint8_t { kSum, kProd, kMax, kMin };  // max and min keep NaN

/// Where a stage's expression result goes.
struct StoreResult {
  Access access;
  DType dtype;  // of the buffer; half types are rounded from float32
};
struct ReduceResult {  // inner stages only
  ReduceOp op;
  int local;  // accumulated in the expression's (compute) type
};
struct LocalResult {  // outer stages only
  int local;
};
using StageResult = std::variant<StoreResult, ReduceResult, LocalResult>;

struct Stage {
  bool inner = false;
  std::vector<Access> loads;  // expression inputs 0 .. loads.size()-1, dtypes in expr.inputs
  std::vector<int> locals;    // the following expression inputs: values of earlier stages at this outer point
  Expr expr;  // kIndex is the row-major index over all dims (outer, then inner; outer stages: inner = 0)
  std::vector<StageResult> results;  // one per expr.results
};

struct LoopNest {
  std::vector<std::int64_t> extents;  // outer dims first, then inner dims; none may be 0
  int num_outer = 0;
  int num_locals = 0;
  int num_inputs = 0, num_outputs = 0;
  std::vector<Stage> stages;

  int rank() const { return static_cast<int>(extents.size()); }
  std::int64_t outer_points() const;
  std::int64_t inner_points() const;
  Digest hash() const;
};

}  // namespace undertow::ir
