// SPDX-License-Identifier: Apache-2.0
// transforms/pipeline.h: the compiler's order, on one screen.
#pragma once

#include "undertow/ir/graph.h"

namespace undertow::transforms {

/// What the device can do, as far as passes care.
struct Target {
  bool fuse = false;
  std::int64_t channel_block = 0;  // activations of convolutions lie in blocks of so many channels; 0: they stay NCHW
};

/// Turns a traced step (forward, backward, optimizer) into the graph that kernels are made for. UNDERTOW_DUMP=<pass>
/// or =all writes the graph after that pass to standard error.
void optimize(ir::Graph& graph, const Target& target);

}  // namespace undertow::transforms
