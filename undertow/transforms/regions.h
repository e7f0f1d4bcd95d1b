// SPDX-License-Identifier: Apache-2.0
// transforms/regions.h: how passes reach the regions of control-flow nodes.
#pragma once

#include "undertow/ir/graph.h"

namespace undertow::transforms {

/// Runs a pass on the regions of every node. Regions are shared by copies of a graph, so each is copied first.
void for_each_region(ir::Graph& graph, void (*pass)(ir::Graph&));

/// Drops what nobody reads from control-flow nodes: results of the node, and what its regions neither use nor hand on.
/// Dead code within the regions goes with it. Run by remove_dead, from the last node to the first.
/// `live`: by value of the node's graph, whether a later node or the caller reads it.
void prune_regions(ir::Node& node, const std::vector<bool>& live);

}  // namespace undertow::transforms
