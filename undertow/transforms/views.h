// SPDX-License-Identifier: Apache-2.0
// transforms/views.h: whose memory a value is.
#pragma once

#include "undertow/ir/graph.h"

namespace undertow::transforms {

/// The value whose memory `v` has: `v` itself unless views renamed it. A view that became a loop nest writes its own.
/// `v` must be in use: passes leave producers behind that are no nodes any more where nobody reads a value.
inline ir::ValueId viewed(const ir::Graph& graph, ir::ValueId v) {
  for (auto p = graph.values[v].producer; p != ir::kNoId && graph.nodes[p].op->view && !graph.nodes[p].nest;
       p = graph.values[v].producer)
    v = graph.nodes[p].inputs[0];
  return v;
}

}  // namespace undertow::transforms
