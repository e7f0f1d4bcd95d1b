// SPDX-License-Identifier: Apache-2.0
#include "undertow/transforms/commit.h"

#include <algorithm>

#include "undertow/ir/op_set.h"

namespace undertow::transforms {

void assign_phases(ir::Graph& graph) {
  using ir::Phase;
  std::vector<bool> needed(graph.values.size(), false);  // by a compute node or the caller
  for (const auto v : graph.outputs) needed[v] = true;
  for (std::size_t n = graph.nodes.size(); n-- > 0;) {
    auto& node = graph.nodes[n];
    bool commit = node.op->elementwise || node.op->view;
    for (const auto v : node.outputs) commit = commit && !needed[v];
    // Constants take no part: they are read in place by both phases.
    if (node.inputs.empty()) commit = false;
    node.phase = commit ? Phase::kCommit : Phase::kCompute;
    if (!commit)
      for (const auto v : node.inputs) needed[v] = true;
  }
  std::stable_partition(graph.nodes.begin(), graph.nodes.end(),
                        [](const ir::Node& n) { return n.phase == Phase::kCompute; });
  for (std::size_t n = 0; n < graph.nodes.size(); ++n)
    for (const auto v : graph.nodes[n].outputs) graph.values[v].producer = static_cast<ir::NodeId>(n);

  const ir::OpDef& copy = ir::op_set().get("copy");
  std::vector<bool> taken(graph.values.size(), false);
  for (auto& s : graph.states) {
    if (s.result == ir::kNoId) continue;
    if (s.result == s.value) {  // written with its own value
      s.result = ir::kNoId;
      continue;
    }
    const auto producer = graph.values[s.result].producer;
    const bool own = producer != ir::kNoId && graph.nodes[producer].phase == Phase::kCommit &&
                     graph.nodes[producer].op->elementwise && !taken[s.result];
    if (!own) {
      const ir::NodeId n = graph.add_node(copy, {s.result}, {});
      graph.nodes[n].phase = Phase::kCommit;
      s.result = graph.nodes[n].outputs[0];
      taken.resize(graph.values.size(), false);
    }
    taken[s.result] = true;
  }
}

}  // namespace undertow::transforms
