// SPDX-License-Identifier: Apache-2.0
// transforms/grad.h: reverse-mode differentiation over a recorded graph.
#pragma once

#include <functional>
#include <vector>

#include "undertow/ir/graph.h"

namespace undertow::transforms {

/// Gradients of sum(seeds[i] * values[i]) with respect to `wrt`.
///
/// Walks the nodes of `graph` backwards from `values` and calls each op's gradient rule. The rules call ops, which the
/// current trace appends to the same graph (and runs, when it executes): one differentiation for both modes.
/// `tensor_of` gives the trace's tensor for a value. Entries of the result are undefined where no gradient flows.
/// Control flow differentiates like any op: its rule (ops/control_grad.cpp) makes nodes with regions.
/// Requires: `graph` is the graph of the current trace; `seeds` have the shapes of `values`.
std::vector<Tensor> grad(ir::Graph& graph, const std::function<Tensor(ir::ValueId)>& tensor_of,
                         const std::vector<ir::ValueId>& values, const std::vector<Tensor>& seeds,
                         const std::vector<ir::ValueId>& wrt);

}  // namespace undertow::transforms
