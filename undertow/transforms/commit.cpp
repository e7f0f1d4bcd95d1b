// SPDX-License-Identifier: Apache-2.0
#include "undertow/transforms/commit.h"

#include <algorithm>

#include "undertow/ir/op_set.h"
#include "undertow/transforms/views.h"

namespace undertow::transforms {

namespace {

using ir::Phase;
using ir::ValueId;

/// A skipped step writes such a state without its commit: what it is then must not lie in another state's memory.
void copy_leaves_of_always(ir::Graph& graph) {
  for (auto& s : graph.states) {
    if (!s.always || s.result == ir::kNoId || s.result == s.value) continue;
    if (graph.values[viewed(graph, s.result)].producer != ir::kNoId) continue;
    s.result = graph.nodes[graph.add_node(ir::op_set().get("copy"), {s.result}, {})].outputs[0];
  }
}

}  // namespace

void assign_phases(ir::Graph& graph) {
  copy_leaves_of_always(graph);
  std::vector<bool> needed(graph.values.size(), false);  // by a compute node, the caller or an always node
  for (const auto v : graph.outputs) needed[v] = true;
  for (const auto& s : graph.states)
    if (s.always && s.result != ir::kNoId) needed[s.result] = true;
  for (std::size_t n = graph.nodes.size(); n-- > 0;) {
    auto& node = graph.nodes[n];
    bool commit = node.op->elementwise || node.op->view;
    for (const auto v : node.outputs) commit = commit && !needed[v];
    // Constants take no part: they are read in place by every phase.
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
  for (const bool always : {false, true}) {  // in the order of the phases
    for (auto& s : graph.states) {
      if (s.always != always || s.result == ir::kNoId) continue;
      if (s.result == s.value) {  // written with its own value
        s.result = ir::kNoId;
        continue;
      }
      const auto producer = graph.values[s.result].producer;
      const bool own = !always && producer != ir::kNoId && graph.nodes[producer].phase == Phase::kCommit &&
                       graph.nodes[producer].op->elementwise && !taken[s.result];
      if (!own) {
        const ir::NodeId n = graph.add_node(copy, {s.result}, {});
        graph.nodes[n].phase = always ? Phase::kAlways : Phase::kCommit;
        s.result = graph.nodes[n].outputs[0];
        taken.resize(graph.values.size(), false);
      }
      taken[s.result] = true;
    }
  }
}

}  // namespace undertow::transforms
