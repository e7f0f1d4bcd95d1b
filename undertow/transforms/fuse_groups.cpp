// SPDX-License-Identifier: Apache-2.0
#include "undertow/transforms/fuse_groups.h"

#include <algorithm>
#include <queue>
#include <set>

namespace undertow::transforms::detail {

using ir::Graph;
using ir::Node;
using ir::NodeId;
using ir::ValueId;

namespace {

// Limits that keep a fused kernel's registers and buffers few enough to stay fast.
constexpr std::size_t kMaxMembers = 96;
// Rows longer than this are not walked a second time within a kernel: they have left the cache.
constexpr std::int64_t kMaxRow = std::int64_t{1} << 18;
// A kernel with fewer outer points than this cannot be split over threads, unless it is small anyway.
constexpr std::int64_t kMinOuter = 4, kSmallSpace = std::int64_t{1} << 15;

std::int64_t product(const std::vector<std::int64_t>& v) {
  std::int64_t n = 1;
  for (const auto e : v) n *= e;
  return n;
}

class Builder {
 public:
  explicit Builder(const Graph& g) : g_(g) {}

  Grouping run() {
    out_.kinds.resize(g_.nodes.size());
    out_.group_of.assign(g_.nodes.size(), -1);
    out_.is_reduced.assign(g_.nodes.size(), 0);
    for (NodeId n = 0; n < g_.nodes.size(); ++n) {
      out_.kinds[n] = classify(n);
      if (out_.kinds[n] == Kind::kConstant) continue;
      if (out_.kinds[n] == Kind::kElementwise || out_.kinds[n] == Kind::kReduce) join(n);
      else if (!join_as_alias(n)) singleton(n);
    }
    sort();
    return std::move(out_);
  }

 private:
  Kind classify(NodeId n) const {
    const Node& node = g_.nodes[n];
    if (node.outputs.size() != 1) return Kind::kOpaque;
    const Shape& shape = g_.type(node.outputs[0]).shape;
    const auto constant = [&](ValueId v) {
      const auto p = g_.values[v].producer;
      return p != ir::kNoId && out_.kinds[p] == Kind::kConstant;
    };
    const bool all_constant = std::all_of(node.inputs.begin(), node.inputs.end(), constant);
    bool empty = shape.numel() == 0;
    for (const auto v : node.inputs) empty |= g_.type(v).shape.numel() == 0;
    if (empty) return Kind::kOpaque;
    if (node.op->access) {
      if (all_constant) return Kind::kConstant;
      return node.op->access(node.attrs, g_.type(node.inputs[0]).shape, shape) ? Kind::kMovement : Kind::kOpaque;
    }
    if (node.op->reduce) return Kind::kReduce;
    if (!node.op->elementwise) return Kind::kOpaque;
    if (all_constant && !expr_uses_index(g_, node)) return Kind::kConstant;
    return Kind::kElementwise;
  }

  int new_group(Group g) {
    out_.groups.push_back(std::move(g));
    edges_.emplace_back();
    return static_cast<int>(out_.groups.size()) - 1;
  }

  void place(NodeId n, int group, bool reduced) {
    out_.group_of[n] = group;
    out_.is_reduced[n] = reduced;
    out_.groups[static_cast<std::size_t>(group)].members.push_back(n);
    for (const int p : producers(n))
      if (p != group) edges_[static_cast<std::size_t>(p)].insert(group);
  }

  void singleton(NodeId n) {
    Group g;
    g.phase = g_.nodes[n].phase;
    const int group = new_group(std::move(g));
    place(n, group, false);
    if (!ir::is_ordered(g_.nodes[n])) return;
    if (last_ordered_ >= 0) edges_[static_cast<std::size_t>(last_ordered_)].insert(group);
    last_ordered_ = group;
  }

  /// Groups this node depends on, reading through movement nodes (whose sources are what a nest reads) as well.
  std::set<int> producers(NodeId n) const {
    std::set<int> result;
    for (ValueId v : g_.nodes[n].inputs) {
      for (auto p = g_.values[v].producer; p != ir::kNoId; p = g_.values[v].producer) {
        if (out_.group_of[p] >= 0) result.insert(out_.group_of[p]);
        if (out_.kinds[p] != Kind::kMovement) break;
        v = g_.nodes[p].inputs[0];
      }
    }
    return result;
  }

  bool reaches(int from, int to, int ignore_direct_from) const {
    // Is there a path from -> ... -> to that passes through at least one other group?
    std::vector<int> stack;
    std::set<int> seen;
    for (const int e : edges_[static_cast<std::size_t>(from)])
      if (e != to || from != ignore_direct_from) stack.push_back(e);
    while (!stack.empty()) {
      const int g = stack.back();
      stack.pop_back();
      if (g == to) return true;
      if (!seen.insert(g).second) continue;
      for (const int e : edges_[static_cast<std::size_t>(g)]) stack.push_back(e);
    }
    return false;
  }

  /// Whether input `v` (aligned to the right of `shape`, as broadcasting does) may be read from inside the group: a
  /// full member as it stands, a reduced member with 1 exactly at the reduced axes.
  bool edge_fits(ValueId v, const Shape& shape, const Group& g, bool consumer_reduced) const {
    const auto p = g_.values[v].producer;
    const bool producer_reduced = out_.is_reduced[p] != 0;
    const Shape& in = g_.type(v).shape;
    if (consumer_reduced) return producer_reduced && squeeze(in) == squeeze(shape);
    std::size_t q = 0;
    for (int d = 0; d < shape.rank(); ++d) {
      if (shape[d] == 1) continue;
      const int i = d - (shape.rank() - in.rank());
      const std::int64_t extent = i < 0 ? 1 : in[i];
      const bool is_reduced_axis = (g.reduced >> q) & 1u;
      ++q;
      if (producer_reduced && is_reduced_axis ? extent != 1 : extent != shape[d]) return false;
    }
    return true;
  }

  /// Can `n` become a member of group `gi`, and in which role?
  bool fits(NodeId n, int gi, bool* reduced) const {
    const Group& g = out_.groups[static_cast<std::size_t>(gi)];
    const Node& node = g_.nodes[n];
    if (!g.nest || g.phase != node.phase || g.members.size() >= kMaxMembers) return false;
    if (out_.kinds[n] == Kind::kReduce) {
      const Shape& in = g_.type(node.inputs[0]).shape;
      const std::uint32_t axes = squeezed_axes(in, node.attrs.ints("axes"));
      if (squeeze(in) != g.domain || axes == 0 || (g.reduced && g.reduced != axes)) return false;
      if (g.uses_index && !trailing(axes, g.domain.size())) return false;
      Group with = g;
      with.reduced = axes;
      for (const auto v : node.inputs) {
        if (out_.group_of_value(g_, v) == gi ? !edge_fits(v, in, with, false) : !reads_outside(v, gi)) return false;
      }
      for (const auto v : node.inputs)
        if (out_.group_of_value(g_, v) == gi && out_.is_reduced[g_.values[v].producer]) return walks_twice_ok(with);
      *reduced = true;
      return level_zero(node.inputs[0], gi) || walks_twice_ok(with);
    }
    const Shape& shape = g_.type(node.outputs[0]).shape;
    const auto s = squeeze(shape);
    const bool full = s == g.domain;
    if (!full && !(g.reduced && s == outer_extents(g.domain, g.reduced))) return false;
    *reduced = !full;
    if (index_node(n) && (!full || (g.reduced && !trailing(g.reduced, g.domain.size())))) return false;
    bool after_reduction = false;
    for (const auto v : node.inputs) {
      if (out_.group_of_value(g_, v) != gi) {
        if (!reads_outside(v, gi)) return false;
        continue;
      }
      if (!edge_fits(v, shape, g, !full)) return false;
      after_reduction |= full && out_.is_reduced[g_.values[v].producer];
    }
    return !after_reduction || walks_twice_ok(g);
  }

  /// A value that is not a member but is read through movement nodes from one cannot be read inside the group.
  bool reads_outside(ValueId v, int gi) const {
    for (auto p = g_.values[v].producer; p != ir::kNoId; p = g_.values[v].producer) {
      if (out_.group_of[p] == gi) return false;
      if (out_.kinds[p] != Kind::kMovement) return true;
      v = g_.nodes[p].inputs[0];
    }
    return true;
  }

  bool level_zero(ValueId v, int gi) const {
    const auto p = g_.values[v].producer;
    if (p == ir::kNoId || out_.group_of[p] != gi) return true;
    if (out_.is_reduced[p]) return false;
    for (const auto u : g_.nodes[p].inputs)
      if (!level_zero(u, gi)) return false;
    return true;
  }

  static bool trailing(std::uint32_t axes, std::size_t rank) {
    bool seen = false;
    for (std::size_t d = 0; d < rank; ++d) {
      if ((axes >> d) & 1u) seen = true;
      else if (seen) return false;
    }
    return true;
  }

  static bool walks_twice_ok(const Group& g) {
    const std::int64_t total = product(g.domain), outer = product(outer_extents(g.domain, g.reduced));
    return total <= kSmallSpace || (outer >= kMinOuter && total / outer <= kMaxRow);
  }

  bool index_node(NodeId n) const { return out_.kinds[n] == Kind::kElementwise && expr_uses_index(g_, g_.nodes[n]); }

  void join(NodeId n) {
    const Node& node = g_.nodes[n];
    int target = -1;
    bool reduced = false;
    for (const auto v : node.inputs) {
      const int gi = out_.group_of_value(g_, v);
      if (gi < 0 || gi == target) continue;
      if (target < 0) {
        if (fits(n, gi, &reduced) && !makes_cycle(n, gi)) target = gi;
      } else {
        merge(target, gi);
      }
    }
    if (target >= 0 && (!fits(n, target, &reduced) || makes_cycle(n, target))) target = -1;
    if (target < 0) {
      Group g;
      g.nest = true;
      g.phase = node.phase;
      if (out_.kinds[n] == Kind::kReduce) {
        const Shape& in = g_.type(node.inputs[0]).shape;
        g.domain = squeeze(in);
        g.reduced = squeezed_axes(in, node.attrs.ints("axes"));
        reduced = g.reduced != 0;
      } else {
        g.domain = squeeze(g_.type(node.outputs[0]).shape);
        reduced = false;
      }
      target = new_group(std::move(g));
    } else if (out_.kinds[n] == Kind::kReduce) {
      const Shape& in = g_.type(node.inputs[0]).shape;
      out_.groups[static_cast<std::size_t>(target)].reduced = squeezed_axes(in, node.attrs.ints("axes"));
    }
    out_.groups[static_cast<std::size_t>(target)].uses_index |= index_node(n);
    place(n, target, reduced);
  }

  /// A reshape that only adds or drops axes of extent 1 follows its source into a nest, so that what reads it can too.
  bool join_as_alias(NodeId n) {
    const Node& node = g_.nodes[n];
    if (out_.kinds[n] != Kind::kMovement || !node.op->view) return false;
    const int gi = out_.group_of_value(g_, node.inputs[0]);
    if (gi < 0) return false;
    const Group& g = out_.groups[static_cast<std::size_t>(gi)];
    if (!g.nest || g.phase != node.phase || g.members.size() >= kMaxMembers) return false;
    out_.kinds[n] = Kind::kElementwise;
    place(n, gi, out_.is_reduced[g_.values[node.inputs[0]].producer] != 0);
    return true;
  }

  bool makes_cycle(NodeId n, int gi) const {
    for (const int p : producers(n))
      if (p != gi && reaches(gi, p, -1)) return true;
    return false;
  }

  /// Joins group `b` into `a` when both fit one loop.
  void merge(int a, int b) {
    Group &x = out_.groups[static_cast<std::size_t>(a)], &y = out_.groups[static_cast<std::size_t>(b)];
    if (!y.nest || x.domain != y.domain || x.phase != y.phase) return;
    if (x.reduced && y.reduced && x.reduced != y.reduced) return;
    const std::uint32_t both = x.reduced | y.reduced;
    if ((x.uses_index || y.uses_index) && both && !trailing(both, x.domain.size())) return;
    if (x.members.size() + y.members.size() >= kMaxMembers) return;
    if (reaches(a, b, a) || reaches(b, a, b)) return;
    // Direct edges between the two become edges inside: each must be readable there.
    Group together = x;
    together.reduced = both;
    for (const auto& [from, to] : {std::pair{a, b}, std::pair{b, a}})
      for (const NodeId m : out_.groups[static_cast<std::size_t>(to)].members) {
        const Node& node = g_.nodes[m];
        const Shape& shape =
            out_.kinds[m] == Kind::kReduce ? g_.type(node.inputs[0]).shape : g_.type(node.outputs[0]).shape;
        for (const auto v : node.inputs) {
          if (out_.group_of_value(g_, v) == from) {
            if (!edge_fits(v, shape, together, out_.is_reduced[m] && out_.kinds[m] != Kind::kReduce)) return;
            if (!walks_twice_ok(together) && out_.is_reduced[g_.values[v].producer]) return;
          } else if (!reads_outside(v, from)) {
            return;
          }
        }
      }
    for (const NodeId m : y.members) {
      out_.group_of[m] = a;
      x.members.push_back(m);
    }
    std::sort(x.members.begin(), x.members.end());
    x.reduced = both;
    x.uses_index |= y.uses_index;
    y.members.clear();
    for (const int e : edges_[static_cast<std::size_t>(b)])
      if (e != a) edges_[static_cast<std::size_t>(a)].insert(e);
    edges_[static_cast<std::size_t>(b)].clear();
    for (auto& e : edges_)
      if (e.erase(b)) e.insert(a);
    edges_[static_cast<std::size_t>(a)].erase(a);
  }

  void sort() {
    std::vector<int> waits(out_.groups.size(), 0);
    for (const auto& e : edges_)
      for (const int g : e) ++waits[static_cast<std::size_t>(g)];
    // Ready groups run in the order of their last member: producers stay close to their readers.
    const auto later = [&](int a, int b) { return key(a) > key(b); };
    std::priority_queue<int, std::vector<int>, decltype(later)> ready(later);
    for (std::size_t g = 0; g < out_.groups.size(); ++g)
      if (!out_.groups[g].members.empty() && waits[g] == 0) ready.push(static_cast<int>(g));
    while (!ready.empty()) {
      const int g = ready.top();
      ready.pop();
      out_.order.push_back(g);
      for (const int e : edges_[static_cast<std::size_t>(g)])
        if (--waits[static_cast<std::size_t>(e)] == 0) ready.push(e);
    }
  }
  std::pair<int, NodeId> key(int g) const {
    const Group& group = out_.groups[static_cast<std::size_t>(g)];
    return {static_cast<int>(group.phase), group.members.back()};
  }

  const Graph& g_;
  Grouping out_;
  std::vector<std::set<int>> edges_;  // group -> groups that read it, or must come after it
  int last_ordered_ = -1;             // group of the last node that keeps its place among others
};

}  // namespace

std::vector<std::int64_t> squeeze(const Shape& shape) {
  std::vector<std::int64_t> s;
  for (const auto n : shape)
    if (n != 1) s.push_back(n);
  return s;
}

std::uint32_t squeezed_axes(const Shape& shape, const std::vector<std::int64_t>& axes) {
  std::uint32_t bits = 0;
  int q = 0;
  for (int d = 0; d < shape.rank(); ++d) {
    if (shape[d] == 1) continue;
    if (std::find(axes.begin(), axes.end(), d) != axes.end()) bits |= 1u << q;
    ++q;
  }
  return bits;
}

std::vector<std::int64_t> outer_extents(const std::vector<std::int64_t>& domain, std::uint32_t reduced) {
  std::vector<std::int64_t> s;
  for (std::size_t d = 0; d < domain.size(); ++d)
    if (!((reduced >> d) & 1u)) s.push_back(domain[d]);
  return s;
}

ValueId unwidened(const Graph& g, const Grouping& groups, ValueId v) {
  const NodeId p = g.values[v].producer;
  if (p == ir::kNoId || groups.kinds[p] != Kind::kElementwise || g.nodes[p].op->name != "cast") return v;
  const ValueId u = g.nodes[p].inputs[0];
  return is_half(g.type(u).dtype) && g.type(v).dtype == DType::kFloat32 ? u : v;
}

ir::Access read_through(const Graph& g, const Grouping& groups, ValueId v, ValueId* source) {
  const Node& node = g.nodes[g.values[v].producer];
  const ValueId u = unwidened(g, groups, node.inputs[0]);
  const ir::Access a = *node.op->access(node.attrs, g.type(u).shape, g.type(v).shape);
  const NodeId p = g.values[u].producer;
  *source = u;
  if (p == ir::kNoId || groups.kinds[p] != Kind::kMovement) return a;
  // `a` indexes u as if it were dense, but u is itself a movement of deeper memory. Each stride of `a` is turned back
  // into a step along one axis of u; where that is not possible, u is read from memory of its own.
  const Shape& us = g.type(u).shape;
  const auto dense = contiguous_strides(us);
  ValueId deeper = u;
  const ir::Access b = read_through(g, groups, u, &deeper);
  ir::Access c;
  c.offset = b.offset;
  std::int64_t rest = a.offset;
  for (std::size_t d = 0; d < dense.size(); ++d) {
    const std::int64_t i = rest / dense[d];
    c.offset += i * b.strides[d];
    rest -= i * dense[d];
  }
  for (std::size_t r = 0; r < a.strides.size(); ++r) {
    std::int64_t stride = 0;
    const std::int64_t last = g.type(v).shape[static_cast<int>(r)] - 1;
    bool found = a.strides[r] == 0 || last <= 0;
    for (std::size_t d = 0; d < dense.size() && !found; ++d) {
      if (us[static_cast<int>(d)] == 1 || a.strides[r] % dense[d] != 0) continue;
      if (std::abs(a.strides[r] / dense[d]) * last >= us[static_cast<int>(d)]) continue;
      stride = a.strides[r] / dense[d] * b.strides[d];
      found = true;
    }
    if (!found) return a;
    c.strides.push_back(stride);
  }
  *source = deeper;
  return c;
}

bool expr_uses_index(const Graph& g, const Node& node) {
  if (!node.op->expr) return false;
  ir::ExprBuilder b;
  std::vector<ir::Scalar> in;
  for (std::size_t i = 0; i < node.inputs.size(); ++i)
    in.push_back(b.input(static_cast<int>(i), g.type(node.inputs[i]).dtype));
  b.result(node.op->expr(b, in, node.attrs));
  const ir::Expr e = b.take();
  return std::any_of(e.insts.begin(), e.insts.end(), [](const auto& i) { return i.op == ir::Opcode::kIndex; });
}

Grouping make_groups(const Graph& graph) { return Builder(graph).run(); }

}  // namespace undertow::transforms::detail
