// SPDX-License-Identifier: Apache-2.0
// ops/register.h: how op families enter the set, and the helpers that make a record short.
#pragma once

#include "undertow/ir/op_set.h"

namespace undertow::ops {

/// Adds all families to ir::op_set(); idempotent, thread-safe. Called by everything that looks an op up.
void register_all();

void register_elementwise(ir::OpSet& set);
void register_math(ir::OpSet& set);
void register_create(ir::OpSet& set);
void register_reduce(ir::OpSet& set);
void register_shape(ir::OpSet& set);
void register_index(ir::OpSet& set);
void register_cumulative(ir::OpSet& set);
void register_sort(ir::OpSet& set);
void register_scatter(ir::OpSet& set);
void register_matmul(ir::OpSet& set);
void register_conv(ir::OpSet& set);
void register_pool(ir::OpSet& set);
void register_control(ir::OpSet& set);
void register_print(ir::OpSet& set);

namespace detail {

using InferFn = decltype(ir::OpDef::infer);
using GradFn = decltype(ir::OpDef::grad);
using ExprFn = decltype(ir::OpDef::expr);

/// Output: the broadcast shape, in the inputs' (common) dtype, or in `fixed` when given.
InferFn infer_broadcast();
InferFn infer_broadcast_as(DType fixed);
/// The shape kept, dtype of input 0.
inline const ir::TensorType& same(std::span<const ir::TensorType> in) { return in[0]; }

/// The record of an elementwise op, complete but for what differs.
ir::OpDef elementwise(std::string name, std::vector<std::string> inputs, std::string doc, ExprFn expr, GradFn grad,
                      InferFn infer = infer_broadcast());
/// Elementwise ops of one or two inputs by their scalar functions; without `grad` gradients stop there.
ir::OpDef unary(std::string name, std::string doc, std::function<ir::Scalar(ir::Scalar)> f,
                std::function<Tensor(const ir::GradContext&)> grad = nullptr);
ir::OpDef unary_to_bool(std::string name, std::string doc, std::function<ir::Scalar(ir::Scalar)> f);
ir::OpDef binary(std::string name, std::string doc, std::function<ir::Scalar(ir::Scalar, ir::Scalar)> f,
                 GradFn grad = nullptr);
/// The definition, of an op that level "auto" of mixed precision computes in float32.
inline ir::OpDef in_float32(ir::OpDef def) {
  def.amp = ir::AmpClass::kHigh;
  return def;
}
ir::OpDef compare(std::string name, std::string doc, std::function<ir::Scalar(ir::Scalar, ir::Scalar)> f);

}  // namespace detail

}  // namespace undertow::ops
