// SPDX-License-Identifier: Apache-2.0
// runtime/lower.h: kernels for a finished graph and the regions in it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "undertow/backend/backend.h"

namespace undertow::runtime {

/// What an error message says of a node: its op, cell and line.
struct Origin {
  std::string op;
  ir::Scope scope;
};

/// A kernel for every node, in order; null for views. The bodies of control flow are planned here, each in memory of
/// its own within the scratch of its node. `origins` gets the graph's nodes first, then those of its regions: a
/// StepError's node is a place in it.
std::vector<std::unique_ptr<backend::Kernel>> lower(const ir::Graph& graph, backend::Backend& device,
                                                    std::vector<Origin>& origins);

}  // namespace undertow::runtime
