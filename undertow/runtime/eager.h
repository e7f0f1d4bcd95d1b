// SPDX-License-Identifier: Apache-2.0
// runtime/eager.h: one op at once, by the same kernels that programs are made of.
#pragma once

#include <vector>

#include "undertow/ir/graph.h"

namespace undertow::runtime {

/// Runs `op` on concrete tensors with the current device; kernels are cached by op, attributes and types. `outputs` are
/// the inferred types. A StepError raises at once. `scope` is for its message.
std::vector<Tensor> run_op(const ir::OpDef& op, const std::vector<Tensor>& inputs, const ir::Attrs& attrs,
                           const std::vector<ir::TensorType>& outputs, const ir::Scope& scope);

/// Turns a device-side error into the exception users see.
[[noreturn]] void raise_step_error(const ir::StepError& error, const std::string& op, const ir::Scope& scope);

}  // namespace undertow::runtime
