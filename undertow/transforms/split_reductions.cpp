// SPDX-License-Identifier: Apache-2.0
#include "undertow/transforms/split_reductions.h"

#include <algorithm>

#include "undertow/ir/op_set.h"
#include "undertow/transforms/regions.h"

namespace undertow::transforms {
namespace {

using ir::ValueId;
using Ints = std::vector<std::int64_t>;

constexpr std::int64_t kLarge = std::int64_t{1} << 17;  // elements: below, one thread is as fast
// Results that give enough units of work: rows of the tensor each; results that lie side by side in memory share
// vectors.
constexpr std::int64_t kEnoughRows = 8, kEnoughColumns = 512;
constexpr std::int64_t kLeastParts = 8, kMostRows = 64;

bool enough_results(const Shape& x, const Ints& axes) {
  std::int64_t kept = 1;
  bool columns = false;
  for (int d = 0; d < x.rank(); ++d) {
    if (std::count(axes.begin(), axes.end(), d)) continue;
    kept *= x[d];
    if (x[d] > 1) columns = d == x.rank() - 1;
  }
  return kept >= (columns ? kEnoughColumns : kEnoughRows);
}

class Splitter {
 public:
  explicit Splitter(ir::Graph& g) : g_(g) {}

  void run() {
    std::vector<ir::Node> nodes = std::move(g_.nodes);
    g_.nodes.clear();
    for (const auto& n : nodes)
      for (const auto v : n.outputs)
        computed_.resize(std::max<std::size_t>(computed_.size(), v + 1), false),
            computed_[v] = n.op->elementwise || n.op->reduce;
    for (auto& n : nodes)
      if (!split(n)) out_.push_back(std::move(n));
    g_.nodes = std::move(out_);
    for (std::size_t n = 0; n < g_.nodes.size(); ++n)
      for (const auto v : g_.nodes[n].outputs) g_.values[v].producer = static_cast<ir::NodeId>(n);
  }

 private:
  bool split(const ir::Node& n) {
    if (!n.op->reduce) return false;
    const ir::TensorType x = g_.type(n.inputs[0]);
    const ir::TensorType y = g_.type(n.outputs[0]);
    Ints axes = n.attrs.ints("axes");
    if (x.shape.numel() < kLarge || is_half(x.dtype) || x.dtype != y.dtype || enough_results(x.shape, axes))
      return false;
    const bool first = !axes.empty() && axes[0] == 0 && x.shape[0] >= kLeastParts && axes.size() > 1;
    if (first) {
      axes.erase(axes.begin());
      const ValueId parts = add(*n.op, n.inputs[0], {{"axes", axes}, {"keep_dims", n.attrs.flag("keep_dims")}}, n);
      last(*n.op, parts, {{"axes", Ints{0}}, {"keep_dims", n.attrs.flag("keep_dims")}}, n);
      return true;
    }
    // All of a tensor that lies in memory: as rows. (What a nest computes on its way would have to be stored for it.)
    const bool in_memory = n.inputs[0] >= computed_.size() || !computed_[n.inputs[0]];
    if (y.shape.numel() != 1 || !in_memory) return false;
    std::int64_t rows = kMostRows;
    while (rows > 1 && x.shape.numel() % rows) --rows;
    if (rows < kLeastParts) return false;
    const ir::OpDef& reshape = ir::op_set().get("reshape");
    const ValueId table = add(reshape, n.inputs[0], {{"shape", Ints{rows, x.shape.numel() / rows}}}, n);
    const ValueId parts = add(*n.op, table, {{"axes", Ints{1}}, {"keep_dims", false}}, n);
    const ValueId all = add(*n.op, parts, {{"axes", Ints{0}}, {"keep_dims", false}}, n);
    last(reshape, all, {{"shape", y.shape.to_vector()}}, n);
    return true;
  }

  ValueId add(const ir::OpDef& op, ValueId x, ir::Attrs attrs, const ir::Node& like) {
    const ir::NodeId n = g_.add_node(op, {x}, std::move(attrs), like.scope);
    g_.nodes[n].phase = like.phase;
    out_.push_back(std::move(g_.nodes[n]));
    g_.nodes.pop_back();
    return out_.back().outputs[0];
  }
  /// The node that takes the place of `like`.
  void last(const ir::OpDef& op, ValueId x, ir::Attrs attrs, const ir::Node& like) {
    add(op, x, std::move(attrs), like);
    out_.back().outputs = like.outputs;
  }

  ir::Graph& g_;
  std::vector<ir::Node> out_;
  std::vector<bool> computed_;  // by value: within a loop nest, not for memory's sake
};

}  // namespace

void split_reductions(ir::Graph& graph) {
  for_each_region(graph, split_reductions);
  Splitter(graph).run();
}

}  // namespace undertow::transforms
