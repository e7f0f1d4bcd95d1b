// SPDX-License-Identifier: Apache-2.0
#include "undertow/transforms/simplify.h"

#include <algorithm>
#include <unordered_map>

#include "undertow/ir/op_set.h"
#include "undertow/transforms/regions.h"

namespace undertow::transforms {
namespace {

using ir::Graph;
using ir::Node;
using ir::ValueId;

class Simplifier {
 public:
  explicit Simplifier(Graph& g) : g_(g), replacement_(g.values.size()) {
    for (std::size_t i = 0; i < replacement_.size(); ++i) replacement_[i] = static_cast<ValueId>(i);
  }

  void run() {
    for (auto& node : g_.nodes) {
      for (auto& v : node.inputs) v = find(v);
      if (const ValueId same = identity(node); same != ir::kNoId) {
        replacement_[node.outputs[0]] = same;
        continue;
      }
      absorb_transposes(node);
      merge(node);
    }
    for (auto& v : g_.outputs) v = find(v);
    for (auto& s : g_.states)
      if (s.result != ir::kNoId) s.result = find(s.result);
  }

 private:
  ValueId find(ValueId v) const { return replacement_[v]; }  // replacements are final when they are made

  const Node* producer(ValueId v) const {
    const auto n = g_.values[v].producer;
    return n == ir::kNoId ? nullptr : &g_.nodes[n];
  }

  bool is_one(ValueId v) const {
    const Node* n = producer(v);
    while (n && n->op->access) n = producer(n->inputs[0]);
    if (!n || n->op->name != "constant") return false;
    const auto& value = n->attrs.at("value");
    if (const auto* i = std::get_if<std::int64_t>(&value)) return *i == 1;
    return std::get<double>(value) == 1.0;
  }

  bool same_type(ValueId a, ValueId b) const { return g_.type(a) == g_.type(b); }

  /// The input that this node's only output equals, or kNoId.
  ValueId identity(Node& n) {
    if (n.outputs.size() != 1 || n.inputs.empty()) return ir::kNoId;
    const ValueId out = n.outputs[0];
    const std::string& name = n.op->name;
    if ((name == "copy" || name == "stop_gradient") && n.attrs.empty()) return n.inputs[0];
    if (name == "cast") {  // half values widened and narrowed again
      const Node* p = producer(n.inputs[0]);
      const DType between = g_.type(n.inputs[0]).dtype;
      if (p && p->op == n.op && is_half(g_.type(out).dtype) && is_floating(between) && !is_half(between) &&
          same_type(p->inputs[0], out))
        return p->inputs[0];
    }
    if (name == "mul" || name == "div") {
      if (is_one(n.inputs[1]) && same_type(n.inputs[0], out)) return n.inputs[0];
      if (name == "mul" && is_one(n.inputs[0]) && same_type(n.inputs[1], out)) return n.inputs[1];
    }
    if (n.op->view) {
      if (const Node* p = producer(n.inputs[0]); p && p->op == n.op) n.inputs[0] = p->inputs[0];
      if (same_type(n.inputs[0], out)) return n.inputs[0];
    }
    if (n.op->reduce) {
      bool trivial = true;
      for (const auto a : n.attrs.ints("axes")) trivial &= g_.type(n.inputs[0]).shape[static_cast<int>(a)] == 1;
      if (trivial && same_type(n.inputs[0], out)) return n.inputs[0];
      if (trivial) {  // only the shape changes
        n.op = &ir::op_set().get("reshape");
        n.attrs = {{"shape", g_.type(out).shape.to_vector()}};
      }
    }
    return ir::kNoId;
  }

  void absorb_transposes(Node& n) {
    if (n.op->name != "matmul") return;
    for (int side = 0; side < 2; ++side) {
      const auto i = static_cast<std::size_t>(side);
      const Node* p = producer(n.inputs[i]);
      if (!p || p->op->name != "transpose") continue;
      auto perm = p->attrs.ints("perm");
      if (perm.size() < 2) continue;
      std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
      if (!std::is_sorted(perm.begin(), perm.end())) continue;
      const char* flag = side == 0 ? "transpose_a" : "transpose_b";
      n.attrs.set(flag, !n.attrs.flag(flag));
      n.inputs[i] = p->inputs[0];
    }
  }

  void merge(Node& n) {
    if (n.outputs.empty() || ir::has_effect(n)) return;
    Hasher h;
    h.add(std::string_view(n.op->name)).add_range(n.inputs).add(n.phase);
    n.attrs.hash(h);
    for (const auto& r : n.regions) {
      const Digest d = r->hash();
      h.add(d.a).add(d.b);
    }
    auto& bucket = seen_[h.digest()];
    for (const Node* other : bucket)
      if (other->op == n.op && other->inputs == n.inputs && other->attrs == n.attrs && other->phase == n.phase &&
          same_regions(*other, n)) {
        for (std::size_t i = 0; i < n.outputs.size(); ++i) replacement_[n.outputs[i]] = other->outputs[i];
        return;
      }
    bucket.push_back(&n);
  }

  static bool same_regions(const Node& a, const Node& b) {
    return std::equal(a.regions.begin(), a.regions.end(), b.regions.begin(), b.regions.end(),
                      [](const auto& x, const auto& y) { return x->hash() == y->hash(); });
  }

  Graph& g_;
  std::vector<ValueId> replacement_;
  std::unordered_map<Digest, std::vector<const Node*>, DigestHash> seen_;
};

}  // namespace

void remove_dead(Graph& graph) {
  std::vector<bool> live(graph.values.size(), false);
  for (const auto v : graph.outputs) live[v] = true;
  for (const auto& s : graph.states)
    if (s.result != ir::kNoId) live[s.result] = true;
  std::vector<bool> keep(graph.nodes.size(), false);
  for (std::size_t n = graph.nodes.size(); n-- > 0;) {
    const Node& node = graph.nodes[n];
    keep[n] = ir::has_effect(node);
    for (const auto v : node.outputs) keep[n] = keep[n] || live[v];
    if (!keep[n]) continue;
    if (!node.regions.empty()) prune_regions(graph.nodes[n], live);
    for (const auto v : node.inputs) live[v] = true;
  }
  std::vector<Node> nodes;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    if (!keep[n]) continue;
    for (const auto v : graph.nodes[n].outputs) graph.values[v].producer = static_cast<ir::NodeId>(nodes.size());
    nodes.push_back(std::move(graph.nodes[n]));
  }
  graph.nodes = std::move(nodes);
}

void simplify(Graph& graph) {
  for_each_region(graph, simplify);
  Simplifier(graph).run();
  remove_dead(graph);
}

}  // namespace undertow::transforms
