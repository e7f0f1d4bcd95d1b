// SPDX-License-Identifier: Apache-2.0
// transforms/pipeline.h: the compiler's order, on one screen.
#pragma once

#include "undertow/ir/graph.h"

namespace undertow::transforms {

/// What the device can do, as far as passes care.
struct Target {
  bool fuse = false;
};

/// Turns a traced step (forward, backward, optimizer) into the graph that kernels are made for. UNDERTOW_DUMP=<pass>
/// or =all writes the graph after that pass to standard error.
void optimize(ir::Graph& graph, const Target& target);

}  // namespace undertow::transforms
