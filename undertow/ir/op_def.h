// SPDX-License-Identifier: Apache-2.0
// ir/op_def.h: an operator is a record of rules. Transforms read its fields; none of them lists operators by name.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "undertow/ir/attrs.h"
#include "undertow/ir/expr.h"
#include "undertow/ir/loop_nest.h"
#include "undertow/tensor/tensor.h"

namespace undertow::ir {

class Graph;
/// A sub-graph of a node (ir/graph.h). Shared by copies of the graph, so never changed in place.
using RegionPtr = std::shared_ptr<const Graph>;

struct TensorType {
  DType dtype = DType::kFloat32;
  Shape shape;
  friend bool operator==(const TensorType&, const TensorType&) = default;
};

/// How mixed precision treats an op (amp levels "auto" and O1).
enum class AmpClass : std::uint8_t { kFollow, kLow, kHigh, kNever };

/// Dense row-major host memory, as reference kernels see it.
struct HostArray {
  void* data = nullptr;
  DType dtype = DType::kFloat32;
  Shape shape;
  template <typename T>
  T* as() const {
    return static_cast<T*>(data);
  }
};

/// The first device-side error of a step (compute, guard, commit: a failed step changes no state). `code` is an
/// ErrorCode below; the numbers explain it. Plain data: a device writes it without allocating.
struct StepError {
  enum Code : std::int32_t { kNone = 0, kIndexOutOfRange = 1, kNonFinite = 2, kStopped = 3 /* the host asked to */ };
  std::int32_t code = kNone;
  std::int32_t node = -1;  // Graph node that found it
  std::int64_t row = 0, value = 0, low = 0, high = 0;
};

/// What a gradient rule sees. All tensors belong to the trace in progress.
struct GradContext {
  std::span<const Tensor> inputs;
  std::span<const Tensor> outputs;
  std::span<const Tensor> grads;  // d loss / d output; undefined where no gradient flows
  const Attrs& attrs;
  std::span<const bool> needs;  // per input
  std::span<const RegionPtr> regions;
  /// Puts `regions` in place of the node's own: equal ones that give more, whose types are `outputs`. The node gets
  /// these outputs after those that it has. For rules that read what the forward loop held in between.
  std::function<std::vector<Tensor>(std::vector<RegionPtr> regions, std::span<const TensorType> outputs)> extend;
};

struct OpDef {
  std::string name;
  int num_inputs = 1;               // -1: any number
  std::vector<std::string> inputs;  // names, for messages and docs
  Attrs defaults;                   // every attribute with its default
  std::string doc;                  // one line: formula and source

  /// Output types. Throws ShapeError or TypeError (the caller adds op, shapes, cell path and line).
  std::function<std::vector<TensorType>(std::span<const TensorType>, const Attrs&)> infer;
  /// One gradient per input (undefined: none). Absent: not differentiable, gradients stop here.
  std::function<std::vector<Tensor>(const GradContext&)> grad;
  /// Elementwise ops: the result at one element, from the (broadcast) inputs in compute types.
  std::function<Scalar(ExprBuilder&, std::span<const Scalar>, const Attrs&)> expr;
  /// Reductions: how elements combine; attributes `axes` and `keep_dims` say over what.
  std::optional<ReduceOp> reduce;
  /// Ops that only re-read their input: where the element of each output index stands in the (dense) input, if that is
  /// affine. Fusion reads through them instead of moving memory.
  std::function<std::optional<Access>(const Attrs&, const Shape& in, const Shape& out)> access;
  /// All other ops: plain loops, the oracle of tests and the fallback of a new device.
  std::function<void(std::span<const HostArray> in, std::span<const HostArray> out, const Attrs&, StepError*)>
      reference;

  int num_regions = 0;
  /// Nodes with regions, in place of `infer`: output types; throws Error where inputs and regions do not fit together.
  std::function<std::vector<TensorType>(std::span<const TensorType>, const Attrs&, std::span<const RegionPtr>)>
      infer_regions;

  AmpClass amp = AmpClass::kFollow;
  // Traits.
  bool elementwise = false;  // has expr; inputs broadcast
  bool view = false;         // output is the input's memory seen through another shape or strides
  bool effect = false;       // may raise a StepError; never removed, runs before the guard
  bool ordered = false;      // an effect that the user sees (print): keeps its place among the others
  bool random = false;       // reads the generator's step counter: never merged with an equal node
};

}  // namespace undertow::ir
