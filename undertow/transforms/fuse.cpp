// SPDX-License-Identifier: Apache-2.0
#include "undertow/transforms/fuse.h"

#include <algorithm>
#include <map>

#include "undertow/base/check.h"
#include "undertow/ir/op_set.h"
#include "undertow/transforms/fuse_groups.h"
#include "undertow/transforms/regions.h"

namespace undertow::transforms {
namespace {

using namespace detail;
using ir::Access;
using ir::Graph;
using ir::LoopNest;
using ir::Node;
using ir::NodeId;
using ir::Scalar;
using ir::ValueId;

const ir::OpDef& fused_op() {
  static const ir::OpDef* def = [] {
    if (const ir::OpDef* known = ir::op_set().find("fused")) return known;
    ir::OpDef d;
    d.name = "fused";
    d.num_inputs = -1;
    d.doc = "a loop nest";
    d.infer = [](std::span<const ir::TensorType>, const ir::Attrs&) -> std::vector<ir::TensorType> {
      throw TypeError("a fused node is made by the fuse pass only");
    };
    return &ir::op_set().add(std::move(d));
  }();
  return *def;
}

/// Writes one group as a LoopNest.
class NestWriter {
 public:
  NestWriter(const Graph& g, const Grouping& groups, int index)
      : g_(g), groups_(groups), index_(index), group_(groups.groups[static_cast<std::size_t>(index)]) {
    std::vector<int> position(group_.domain.size());
    int p = 0;
    for (const bool inner : {false, true})
      for (std::size_t d = 0; d < group_.domain.size(); ++d)
        if (((group_.reduced >> d) & 1u) == (inner ? 1u : 0u)) {
          position[d] = p++;
          nest_.extents.push_back(group_.domain[d]);
          nest_.num_outer += !inner;
        }
    position_ = position;
    for (const NodeId n : group_.members) level_of(n);
  }

  /// `stores`: the group's values that are read outside, in order.
  Node write(const std::vector<ValueId>& stores, std::vector<ir::TensorType>* types) {
    int last = 0;
    for (const NodeId n : group_.members) last = std::max(last, level_[n]);
    for (int level = 0; level <= last; ++level) write_stage(level, stores);
    for (const auto v : stores) types->push_back(g_.type(v));
    nest_.num_inputs = static_cast<int>(inputs_.size());
    nest_.num_outputs = static_cast<int>(stores.size());
    Node node;
    node.op = &fused_op();
    node.inputs = inputs_;
    node.scope = g_.nodes[group_.members.front()].scope;
    node.phase = group_.phase;
    std::string ops;
    for (const NodeId n : group_.members) {
      if (g_.nodes[n].op->view) continue;
      if (ops.size() > 60) {
        ops += "...";
        break;
      }
      ops += (ops.empty() ? "" : "_") + g_.nodes[n].op->name;
    }
    node.attrs.set("ops", ops);
    node.nest = std::make_shared<const LoopNest>(std::move(nest_));
    return node;
  }

 private:
  bool member(ValueId v) const { return groups_.group_of_value(g_, v) == index_; }
  NodeId producer(ValueId v) const { return g_.values[v].producer; }
  bool reduced(ValueId v) const { return groups_.is_reduced[producer(v)] != 0; }

  /// Even: computed in a pass over the row; odd: once per outer point. A reduction over pass 2k is known at 2k + 1.
  int level_of(NodeId n) {
    if (const auto it = level_.find(n); it != level_.end()) return it->second;
    const Node& node = g_.nodes[n];
    int level = 0;
    for (const auto v : node.inputs) {
      if (!member(v)) continue;
      const int l = level_of(producer(v));
      level = std::max(level, groups_.is_reduced[n] ? l : (reduced(v) ? l + 1 : l));
    }
    if (groups_.is_reduced[n] && level % 2 == 0) ++level;  // a reduction, or a reduced node of outside values only
    return level_[n] = level;
  }

  struct StageState {
    ir::Stage stage;
    ir::ExprBuilder builder;
    int level = 0;
    std::map<ValueId, Scalar> known;
    std::vector<Access> loads;
    std::vector<DType> types;                        // by expression input, loads and locals mixed
    std::vector<int> load_of_input, local_of_input;  // -1: the other kind
  };

  void write_stage(int level, const std::vector<ValueId>& stores) {
    StageState s;
    s.level = level;
    const bool has_rows = group_.reduced != 0;
    s.stage.inner = has_rows && level % 2 == 0;
    const bool outer_stage = has_rows && level % 2 == 1;
    std::vector<ValueId> reduce_here;
    if (s.stage.inner)
      for (const NodeId n : group_.members)
        if (groups_.kinds[n] == Kind::kReduce && level_[n] == level + 1) reduce_here.push_back(g_.nodes[n].outputs[0]);
    for (const auto r : reduce_here) {
      const Node& node = g_.nodes[producer(r)];
      const Scalar x = emit(s, node.inputs[0], g_.type(node.inputs[0]).shape, false);
      s.builder.result(x);
      s.stage.results.push_back(ir::ReduceResult{*node.op->reduce, local(r)});
    }
    for (std::size_t i = 0; i < stores.size(); ++i) {
      const ValueId v = stores[i];
      if (level_[producer(v)] != level) continue;
      const Scalar x = emit(s, v, g_.type(v).shape, outer_stage);
      s.builder.result(x);
      Access a = access_of(contiguous_strides(g_.type(v).shape), g_.type(v).shape, reduced(v));
      a.buffer = static_cast<int>(i);
      s.stage.results.push_back(ir::StoreResult{a, g_.type(v).dtype});
    }
    if (outer_stage)  // reduced values that a later pass over the row reads
      for (const NodeId n : group_.members) {
        const ValueId v = g_.nodes[n].outputs[0];
        if (level_[n] != level || groups_.kinds[n] == Kind::kReduce || !read_later(v, level)) continue;
        s.builder.result(emit(s, v, g_.type(v).shape, true));
        s.stage.results.push_back(ir::LocalResult{local(v)});
      }
    if (s.stage.results.empty()) return;
    finish(s);
  }

  bool read_later(ValueId v, int level) const {
    for (const NodeId n : group_.members) {
      const auto& in = g_.nodes[n].inputs;
      if (level_.at(n) > level && std::find(in.begin(), in.end(), v) != in.end()) return true;
    }
    return false;
  }

  int local(ValueId v) {
    const auto [it, fresh] = locals_.try_emplace(v, nest_.num_locals);
    nest_.num_locals += fresh;
    return it->second;
  }

  /// The value of `v` at the current point. `shape`: the reader's shape, against which `v` broadcasts;
  /// `reader_reduced`: that shape is the space without the reduced axes.
  Scalar emit(StageState& s, ValueId v, const Shape& shape, bool reader_reduced) {
    const NodeId p = producer(v);
    if (p != ir::kNoId && groups_.kinds[p] == Kind::kConstant) return constant(s, v);
    if (!member(v)) return load(s, v, shape, reader_reduced);
    if (const auto it = s.known.find(v); it != s.known.end()) return it->second;
    const Node& node = g_.nodes[p];
    Scalar x;
    if (reduced(v) && (groups_.kinds[p] == Kind::kReduce || level_[p] < s.level)) {
      x = read_local(s, v);
    } else if (node.op->view) {
      x = emit(s, node.inputs[0], g_.type(node.inputs[0]).shape, reduced(v));
    } else {
      std::vector<Scalar> in;
      for (const auto u : node.inputs) in.push_back(emit(s, u, g_.type(v).shape, reduced(v)));
      x = round(s, node.op->expr(s.builder, in, node.attrs), g_.type(v).dtype);
    }
    s.known[v] = x;
    return x;
  }

  /// Every value that crosses an op border in a half type is rounded there.
  static Scalar round(StageState& s, Scalar x, DType dtype) { return is_half(dtype) ? s.builder.cast(x, dtype) : x; }

  Scalar constant(StageState& s, ValueId v) {
    const Node& node = g_.nodes[producer(v)];
    if (node.op->access) return constant(s, node.inputs[0]);
    std::vector<Scalar> in;
    for (const auto u : node.inputs) in.push_back(constant(s, u));
    return round(s, node.op->expr(s.builder, in, node.attrs), g_.type(v).dtype);
  }

  Scalar read_local(StageState& s, ValueId v) {
    const DType t = g_.type(v).dtype;
    const auto input = static_cast<int>(s.types.size());
    s.types.push_back(compute_type(t));
    s.load_of_input.push_back(-1);
    s.local_of_input.push_back(local(v));
    Scalar x = s.builder.input(input, compute_type(t));
    // A reduction's result is held in the compute type; as an op's output it is rounded.
    return groups_.kinds[producer(v)] == Kind::kReduce ? round(s, x, t) : x;
  }

  /// Strides over the nest's dims of a dense tensor with `strides` per axis of `shape`.
  Access access_of(const std::vector<std::int64_t>& strides, const Shape& shape, bool reader_reduced) const {
    Access a;
    a.strides.assign(nest_.extents.size(), 0);
    std::vector<std::size_t> dims;  // squeezed axes of the reader -> domain dims
    for (std::size_t d = 0; d < group_.domain.size(); ++d)
      if (!reader_reduced || !((group_.reduced >> d) & 1u)) dims.push_back(d);
    std::size_t q = 0;
    for (int d = 0; d < shape.rank(); ++d) {
      if (shape[d] == 1) continue;
      UNDERTOW_ASSERT(q < dims.size());
      a.strides[static_cast<std::size_t>(position_[dims[q++]])] = strides[static_cast<std::size_t>(d)];
    }
    return a;
  }

  Scalar load(StageState& s, ValueId v, const Shape& shape, bool reader_reduced) {
    // Strides of `v` against the reader's axes (0 where it broadcasts), then through the movement nodes to memory.
    std::vector<std::int64_t> strides(shape.size(), 0);
    std::int64_t offset = 0;
    v = unwidened(g_, groups_, v);
    {
      const Shape& own = g_.type(v).shape;
      // A matrix per axis of v: which reader axis steps it. Broadcasting aligns to the right.
      std::vector<std::vector<std::int64_t>> step(own.size(), std::vector<std::int64_t>(shape.size(), 0));
      std::vector<std::int64_t> base(own.size(), 0);
      for (int d = 0; d < own.rank(); ++d) {
        const int r = d + shape.rank() - own.rank();
        if (own[d] != 1) step[static_cast<std::size_t>(d)][static_cast<std::size_t>(r)] = 1;
      }
      // Index of v along axis d = base[d] + sum_r step[d][r] * i_r. A movement node turns it into a flat offset of its
      // dense input, so from there on one row of strides is enough.
      std::vector<std::int64_t> flat(shape.size(), 0);
      const auto flatten = [&](const std::vector<std::int64_t>& weights) {
        std::fill(flat.begin(), flat.end(), 0);
        for (std::size_t d = 0; d < weights.size(); ++d)
          for (std::size_t r = 0; r < flat.size(); ++r) flat[r] += weights[d] * step[d][r];
      };
      ValueId source = v;
      std::vector<std::int64_t> weights = contiguous_strides(own);
      const NodeId p = producer(v);
      if (p != ir::kNoId && groups_.kinds[p] == Kind::kMovement) {
        const auto chain = read_through(g_, groups_, v, &source);
        weights = chain.strides;
        offset = chain.offset;
      }
      flatten(weights);
      strides = flat;
      v = source;
    }
    Access a = access_of(strides, shape, reader_reduced);
    a.offset = offset;
    const auto [input, fresh] = input_of_.try_emplace(v, static_cast<int>(inputs_.size()));
    if (fresh) inputs_.push_back(v);
    a.buffer = input->second;
    for (std::size_t i = 0; i < s.loads.size(); ++i)
      if (s.loads[i].buffer == a.buffer && s.loads[i].offset == a.offset && s.loads[i].strides == a.strides)
        return s.builder.input(input_index_of_load(s, static_cast<int>(i)), g_.type(v).dtype);
    const auto expr_input = static_cast<int>(s.types.size());
    s.types.push_back(g_.type(v).dtype);
    s.load_of_input.push_back(static_cast<int>(s.loads.size()));
    s.local_of_input.push_back(-1);
    s.loads.push_back(a);
    return s.builder.input(expr_input, g_.type(v).dtype);
  }

  static int input_index_of_load(const StageState& s, int load) {
    for (std::size_t i = 0; i < s.load_of_input.size(); ++i)
      if (s.load_of_input[i] == load) return static_cast<int>(i);
    return -1;
  }

  void finish(StageState& s) {
    ir::Expr e = s.builder.take();
    // Loads first, then locals, as the nest's contract wants them.
    std::vector<int> order(s.types.size());
    std::vector<DType> types;
    int next = 0;
    for (std::size_t i = 0; i < order.size(); ++i)
      if (s.load_of_input[i] >= 0) {
        order[i] = next++;
        types.push_back(s.types[i]);
        s.stage.loads.push_back(s.loads[static_cast<std::size_t>(s.load_of_input[i])]);
      }
    for (std::size_t i = 0; i < order.size(); ++i)
      if (s.load_of_input[i] < 0) {
        order[i] = next++;
        types.push_back(s.types[i]);
        s.stage.locals.push_back(s.local_of_input[i]);
      }
    for (auto& inst : e.insts)
      if (inst.op == ir::Opcode::kInput) inst.imm = order[static_cast<std::size_t>(inst.imm)];
    e.inputs = types;
    s.stage.expr = std::move(e);
    nest_.stages.push_back(std::move(s.stage));
  }

  const Graph& g_;
  const Grouping& groups_;
  int index_;
  const Group& group_;
  std::vector<int> position_;  // domain dim -> nest dim
  LoopNest nest_;
  std::map<NodeId, int> level_;
  std::map<ValueId, int> locals_, input_of_;
  std::vector<ValueId> inputs_;
};

/// A nest that writes one value: a constant, or a movement that an opaque node reads.
Group lone_group(const Graph& g, NodeId n) {
  Group group;
  group.nest = true;
  group.members = {n};
  group.domain = squeeze(g.type(g.nodes[n].outputs[0]).shape);
  group.phase = g.nodes[n].phase;
  return group;
}

class Fuser {
 public:
  explicit Fuser(Graph& g) : g_(g), groups_(make_groups(g)) {}

  void run() {
    find_needed();
    std::vector<Node> out;
    ir::Graph& g = g_;
    // Constants that somebody reads from memory come first in their phase.
    for (const auto phase : {ir::Phase::kCompute, ir::Phase::kCommit, ir::Phase::kAlways}) {
      for (NodeId n = 0; n < g.nodes.size(); ++n)
        if (groups_.kinds[n] == Kind::kConstant && g.nodes[n].phase == phase && needed_[g.nodes[n].outputs[0]])
          write_constant(n, &out);
      for (const int gi : groups_.order) {
        const Group& group = groups_.groups[static_cast<std::size_t>(gi)];
        if (group.phase != phase) continue;
        if (group.nest) write_group(gi, &out);
        else write_single(group.members[0], &out);
      }
    }
    for (std::size_t n = 0; n < out.size(); ++n)
      for (const auto v : out[n].outputs) g.values[v].producer = static_cast<NodeId>(n);
    g.nodes = std::move(out);
  }

 private:
  Kind kind_of(ValueId v) const {
    const auto p = g_.values[v].producer;
    return p == ir::kNoId ? Kind::kOpaque : groups_.kinds[p];
  }

  /// Marks a value as read from memory, and what a view of it reads.
  void need(ValueId v) {
    if (needed_[v]) return;
    needed_[v] = true;
    const auto p = g_.values[v].producer;
    if (p == ir::kNoId) return;
    const Node& node = g_.nodes[p];
    if (node.op->view && groups_.kinds[p] != Kind::kConstant) need(node.inputs[0]);
    else if (groups_.kinds[p] == Kind::kMovement) need_source(node.inputs[0]);
  }
  /// What a nest that reads `v` finally loads.
  void need_source(ValueId v) {
    v = unwidened(g_, groups_, v);
    const Kind kind = kind_of(v);
    if (kind == Kind::kConstant) return;
    if (kind == Kind::kMovement) read_through(g_, groups_, v, &v);
    need(v);
  }

  void find_needed() {
    needed_.assign(g_.values.size(), false);
    for (const auto v : g_.outputs) need(v);
    for (const auto& s : g_.states)
      if (s.result != ir::kNoId) need(s.result);
    for (NodeId n = 0; n < g_.nodes.size(); ++n) {
      const Kind kind = groups_.kinds[n];
      if (kind == Kind::kConstant || kind == Kind::kMovement) continue;
      for (const auto v : g_.nodes[n].inputs) {
        if (kind == Kind::kOpaque) need(v);
        else if (groups_.group_of_value(g_, v) != groups_.group_of[n]) need_source(v);
      }
    }
  }

  void write_constant(NodeId n, std::vector<Node>* out) {
    const auto index = static_cast<int>(groups_.groups.size());
    groups_.groups.push_back(lone_group(g_, n));
    groups_.group_of[n] = index;
    append(NestWriter(g_, groups_, index), {g_.nodes[n].outputs[0]}, out);
    groups_.group_of[n] = -1;
    groups_.groups.pop_back();
  }

  void write_single(NodeId n, std::vector<Node>* out) {
    const Node& node = g_.nodes[n];
    if (groups_.kinds[n] != Kind::kMovement || node.op->view) {
      bool wanted = node.op->effect || groups_.kinds[n] == Kind::kOpaque;
      for (const auto v : node.outputs) wanted |= needed_[v];
      if (wanted) out->push_back(node);
      return;
    }
    if (!needed_[node.outputs[0]]) return;
    // As an elementwise copy that reads its input through the movement.
    const int gi = groups_.group_of[n];
    groups_.groups[static_cast<std::size_t>(gi)] = lone_group(g_, n);
    groups_.group_of[n] = -1;  // the value is a load here, not a member
    append_copy(gi, node.outputs[0], out);
    groups_.group_of[n] = gi;
  }

  /// Materialises `v` by a nest of its own: a graph node `copy` is put in its place while the nest is written.
  void append_copy(int gi, ValueId v, std::vector<Node>* out) {
    Node copy;
    copy.op = &ir::op_set().get("copy");
    copy.inputs = {v};
    const ir::TensorType type = g_.type(v);
    copy.phase = groups_.groups[static_cast<std::size_t>(gi)].phase;
    const NodeId c = g_.add_node_typed(std::move(copy), std::span(&type, 1));
    groups_.kinds.push_back(Kind::kElementwise);
    groups_.group_of.push_back(gi);
    groups_.is_reduced.push_back(0);
    needed_.resize(g_.values.size(), false);
    Group& group = groups_.groups[static_cast<std::size_t>(gi)];
    group.members = {c};
    std::vector<ir::TensorType> types;
    Node fused = NestWriter(g_, groups_, gi).write({g_.nodes[c].outputs[0]}, &types);
    fused.outputs = {v};
    out->push_back(std::move(fused));
    // The placeholder stays in g_.nodes, which run() replaces.
  }

  void write_group(int gi, std::vector<Node>* out) {
    const Group& group = groups_.groups[static_cast<std::size_t>(gi)];
    std::vector<ValueId> stores;
    std::vector<NodeId> views;
    for (const NodeId n : group.members) {
      const ValueId v = g_.nodes[n].outputs[0];
      if (!needed_[v]) continue;
      if (g_.nodes[n].op->view) views.push_back(n);
      else stores.push_back(v);
    }
    if (stores.empty()) return;  // all members were read by nobody
    append(NestWriter(g_, groups_, gi), stores, out);
    for (const NodeId n : views) out->push_back(g_.nodes[n]);
  }

  void append(NestWriter writer, const std::vector<ValueId>& stores, std::vector<Node>* out) {
    std::vector<ir::TensorType> types;
    Node node = writer.write(stores, &types);
    node.outputs = stores;
    out->push_back(std::move(node));
  }

  Graph& g_;
  Grouping groups_;
  std::vector<bool> needed_;
};

}  // namespace

void fuse(Graph& graph) {
  for_each_region(graph, fuse);
  Fuser(graph).run();
}

}  // namespace undertow::transforms
