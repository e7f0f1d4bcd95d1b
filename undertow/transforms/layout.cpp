// SPDX-License-Identifier: Apache-2.0
#include "undertow/transforms/layout.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "undertow/base/check.h"
#include "undertow/ir/op_set.h"
#include "undertow/transforms/fuse_groups.h"
#include "undertow/transforms/simplify.h"

namespace undertow::transforms {
namespace {

using ir::Attrs;
using ir::kNoId;
using ir::Node;
using ir::ValueId;
using Ints = std::vector<std::int64_t>;

constexpr std::int64_t kFewChannels = 4;  // of an input image: read as it is by the library's first-layer kernels
constexpr std::int64_t kFewWeights = 1 << 14;

/// A tensor's shape with four dimensions, as broadcasting aligns it.
std::optional<Shape> four(const Shape& s) {
  if (s.rank() > 4) return std::nullopt;
  Ints d(static_cast<std::size_t>(4 - s.rank()), 1);
  for (const auto n : s) d.push_back(n);
  return Shape(d);
}

class Blocker {
 public:
  Blocker(ir::Graph& g, std::int64_t block) : g_(g), b_(block) {}

  void run() {
    nodes_ = std::move(g_.nodes);
    g_.nodes.clear();
    const std::size_t values = g_.values.size();
    plain_.assign(values, kNoId), blocked_.assign(values, kNoId), lazy_.assign(values, nullptr);
    for (const auto& i : g_.inputs) plain_[i.value] = i.value;
    for (const auto& s : g_.states)
      if (s.value != kNoId) plain_[s.value] = s.value;
    for (const Node& n : nodes_) {
      if (can_wait(n)) lazy_[n.outputs[0]] = &n;
      else if (!in_blocks(n)) as_it_is(n);
    }
    for (auto& v : g_.outputs) v = plain(v);
    for (auto& s : g_.states)
      if (s.result != kNoId) s.result = plain(s.result);
    g_.nodes = std::move(out_);
    for (std::size_t n = 0; n < g_.nodes.size(); ++n)
      for (const auto v : g_.nodes[n].outputs) g_.values[v].producer = static_cast<ir::NodeId>(n);
    remove_dead(g_);
  }

 private:
  const Shape& shape(ValueId v) const { return g_.type(v).shape; }
  bool fits(const Shape& s) const { return s.rank() == 4 && s.numel() > 0 && s[1] % b_ == 0; }
  Ints blocks(const Shape& s) const { return {s[0], s[1] / b_, s[2], s[3], b_}; }
  static bool one_pixel(const Shape& s) { return s[2] == 1 && s[3] == 1; }
  bool is_blocked(ValueId v) const { return blocked_[v] != kNoId; }

  ValueId add(const ir::OpDef& op, std::vector<ValueId> inputs, Attrs attrs, const Node& like) {
    const ir::NodeId n = g_.add_node(op, std::move(inputs), std::move(attrs), like.scope);
    out_.push_back(std::move(g_.nodes[n]));
    g_.nodes.pop_back();
    return out_.back().outputs[0];
  }
  ValueId add(const char* op, std::vector<ValueId> inputs, Attrs attrs, const Node& like) {
    return add(ir::op_set().get(op), std::move(inputs), std::move(attrs), like);
  }
  ValueId reshape(ValueId v, Ints to, const Node& like) {
    return shape(v).to_vector() == to ? v : add("reshape", {v}, {{"shape", std::move(to)}}, like);
  }

  void as_it_is(const Node& n) {
    Node copy = n;
    for (auto& v : copy.inputs) v = plain(v);
    for (const auto v : n.outputs) plain_[v] = v;
    out_.push_back(std::move(copy));
  }

  ValueId plain(ValueId v) {
    if (plain_[v] != kNoId) return plain_[v];
    if (const Node* n = std::exchange(lazy_[v], nullptr); n && !is_blocked(v)) {
      as_it_is(*n);
      return v;
    }
    const Shape s = shape(v);
    static const Node like;
    ValueId p = blocked_[v];
    UNDERTOW_ASSERT(p != kNoId);
    if (!one_pixel(s)) p = add("transpose", {p}, {{"perm", Ints{0, 1, 4, 2, 3}}}, like);
    return plain_[v] = reshape(p, s.to_vector(), like);
  }

  /// Of a value whose shape fits.
  ValueId blocked(ValueId v, const Node& like) {
    if (is_blocked(v)) return blocked_[v];
    const Shape s = shape(v);
    if (lazy_[v] && plain_[v] == kNoId) {
      const Node& n = *lazy_[v];
      const bool done = in_blocks(n, true);
      UNDERTOW_ASSERT(done && is_blocked(v));
      return blocked_[v];
    }
    return blocked_[v] = block(plain(v), s, like);
  }
  ValueId block(ValueId p, const Shape& s, const Node& like) {
    if (one_pixel(s)) return reshape(p, blocks(s), like);
    p = reshape(p, {s[0], s[1] / b_, b_, s[2], s[3]}, like);
    return add("transpose", {p}, {{"perm", Ints{0, 1, 3, 4, 2}}}, like);
  }

  /// A reader's input that broadcasts against a blocked tensor with `channels` channels.
  ValueId operand(ValueId v, std::int64_t channels, const Node& like) {
    const Shape own = shape(v);
    if (own.numel() == 1) return plain(v);
    const Shape s = *four(own);
    if (s[1] == 1) return reshape(plain(v), {s[0], 1, s[2], s[3], 1}, like);
    UNDERTOW_ASSERT(s[1] == channels);
    if (own.rank() == 4) return blocked(v, like);
    return block(reshape(plain(v), s.to_vector(), like), s, like);
  }

  /// Cheap to make, and in the layout of whoever asks: what is spread from fewer elements.
  bool can_wait(const Node& n) const {
    if (n.outputs.size() != 1 || !fits(shape(n.outputs[0])) || n.inputs.empty()) return false;
    const Shape& s = shape(n.outputs[0]);
    if (n.op->name == "broadcast_to") return four(shape(n.inputs[0])).has_value();
    const bool spread = n.op->name == "avg_pool2d_grad" && is_nchw(n);
    if (!spread && !pointwise(n)) return false;
    return std::all_of(n.inputs.begin(), n.inputs.end(), [&](ValueId v) {
      if (is_blocked(v)) return false;
      return lazy_[v] || (spread ? one_pixel(shape(v)) : shape(v) != s && four(shape(v)));
    });
  }
  static bool is_nchw(const Node& n) {
    const ir::AttrValue* layout = n.attrs.find("layout");
    return !layout || std::get<std::string>(*layout) == "NCHW";
  }
  bool pointwise(const Node& n) const { return n.op->elementwise && !n.op->random && !detail::expr_uses_index(g_, n); }

  /// Writes `n` for blocked tensors if that can be and pays. `asked`: it pays.
  bool in_blocks(const Node& n, bool asked = false) {
    const std::string& name = n.op->name;
    if (name == "conv2d") return convolution(n, n.inputs[0], n.inputs[1], n.outputs[0]);
    if (name == "conv2d_grad_input") return convolution(n, n.outputs[0], n.inputs[1], n.inputs[0]);
    if (name == "conv2d_grad_weight") return convolution(n, n.inputs[0], n.outputs[0], n.inputs[1]);
    if (n.inputs.empty() || n.outputs.empty()) return false;
    if (!asked && std::none_of(n.inputs.begin(), n.inputs.end(), [&](ValueId v) { return is_blocked(v); }))
      return false;
    if (n.op->reduce) return reduction(n);
    const Shape s = shape(n.outputs[0]);
    if (!fits(s)) return false;
    if (name.find("_pool2d") != std::string::npos) return pooling(n);
    std::vector<ValueId> in;
    Attrs attrs = n.attrs;
    if (pointwise(n)) {
      for (const auto v : n.inputs)
        if (!four(shape(v))) return false;
    } else if (name == "broadcast_to") {
      if (!four(shape(n.inputs[0]))) return false;
      attrs.set("shape", blocks(s));
    } else {
      for (const auto v : n.inputs)
        if (!fits(shape(v))) return false;
      if (name == "slice") {
        Ints begin = n.attrs.ints("begin"), steps = n.attrs.ints("steps");
        if (begin[1] % b_ != 0 || steps[1] != 1) return false;
        begin[1] /= b_;
        begin.push_back(0), steps.push_back(1);
        attrs.set("begin", begin), attrs.set("steps", steps), attrs.set("shape", blocks(s));
      } else if (name == "pad") {
        for (const char* side : {"low", "high", "interior"}) {
          Ints p = n.attrs.ints(side);
          if (p[1] % b_ != 0 || (side[0] == 'i' && p[1] != 0)) return false;
          p[1] /= b_;
          p.push_back(0);
          attrs.set(side, p);
        }
      } else if (name != "concat") {
        return false;
      }
    }
    const bool broadcasts = n.op->elementwise || name == "broadcast_to";
    for (const auto v : n.inputs) in.push_back(broadcasts ? operand(v, s[1], n) : blocked(v, n));
    blocked_[n.outputs[0]] = add(*n.op, std::move(in), std::move(attrs), n);
    UNDERTOW_ASSERT(shape(blocked_[n.outputs[0]]).to_vector() == blocks(s));
    return true;
  }

  /// All three convolution ops; x, w and y are values of their shapes.
  bool convolution(const Node& n, ValueId x, ValueId w, ValueId y) {
    const ir::AttrValue* found = n.attrs.find("groups");
    const std::int64_t groups = found ? std::get<std::int64_t>(*found) : 1;
    if (!is_nchw(n) || shape(x).numel() == 0 || !fits(shape(y))) return false;
    const Shape xs = shape(x), ys = shape(y), ws = shape(w);
    const bool whole = fits(xs) && (groups == 1 || (groups == xs[1] && groups == ys[1]) ||
                                    (ws[1] % b_ == 0 && ys[1] / groups % b_ == 0));
    if (!whole) {  // a first layer; with few weights it has kernels of its own (backend/cpu/small_conv)
      const bool strided = n.attrs.ints("strides") != Ints{1, 1};
      if (groups != 1 || xs[1] > kFewChannels || !(strided || ws.numel() > kFewWeights)) return false;
    }
    Attrs attrs = n.attrs;
    attrs.set("layout", fmt::format("NCHW{}c", b_));
    if (n.attrs.find("input_shape") && whole) attrs.set("input_shape", blocks(xs));
    std::vector<ValueId> in;
    for (const auto v : n.inputs) in.push_back((v == x && whole) || v == y ? blocked(v, n) : plain(v));
    const ValueId result = n.outputs[0], made = add(*n.op, std::move(in), std::move(attrs), n);
    if (result == w || (result == x && !whole)) plain_[result] = made;
    else blocked_[result] = made;
    return true;
  }

  /// Channel blocks are images to a pooling kernel, [N*C/b, H, W, b] channels last.
  bool pooling(const Node& n) {
    if (!is_nchw(n)) return false;
    const auto images = [&](const Shape& s) { return Ints{s[0] * s[1] / b_, s[2], s[3], b_}; };
    std::vector<ValueId> in;
    for (const auto v : n.inputs)
      if (!fits(shape(v))) return false;
    for (const auto v : n.inputs) in.push_back(reshape(blocked(v, n), images(shape(v)), n));
    Attrs attrs = n.attrs;
    attrs.set("layout", std::string("NHWC"));
    if (n.attrs.find("input_shape")) attrs.set("input_shape", images(shape(n.outputs[0])));
    add(*n.op, std::move(in), std::move(attrs), n);
    const std::vector<ValueId> made = out_.back().outputs;
    for (std::size_t i = 0; i < made.size(); ++i)
      blocked_[n.outputs[i]] = reshape(made[i], blocks(shape(n.outputs[i])), n);
    return true;
  }

  bool reduction(const Node& n) {
    const ValueId x = n.inputs[0], y = n.outputs[0];
    const Shape s = shape(x);
    Ints axes = n.attrs.ints("axes");
    const auto over = [&](std::int64_t d) { return std::count(axes.begin(), axes.end(), d) > 0; };
    const bool pixels = (over(2) || s[2] == 1) && (over(3) || s[3] == 1);
    if (!over(1) && !pixels && !(n.attrs.flag("keep_dims") && fits(shape(y)))) return false;
    if (over(1)) axes.push_back(4);
    Attrs attrs = n.attrs;
    attrs.set("axes", axes);
    const ValueId made = add(*n.op, {blocked(x, n)}, std::move(attrs), n);
    if (!over(1) && !pixels) blocked_[y] = made;
    else plain_[y] = reshape(made, shape(y).to_vector(), n);
    return true;
  }

  ir::Graph& g_;
  std::int64_t b_;
  std::vector<Node> nodes_, out_;         // before, after
  std::vector<ValueId> plain_, blocked_;  // by value as it was: where it is now, in either layout
  std::vector<const Node*> lazy_;         // made when somebody asks
};

bool has_convolutions(const ir::Graph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(),
                     [](const Node& n) { return n.op->name.starts_with("conv2d"); });
}

}  // namespace

void layout(ir::Graph& graph, std::int64_t block) {
  for (auto& node : graph.nodes)
    for (auto& region : node.regions) {
      auto copy = std::make_shared<ir::Graph>(*region);
      layout(*copy, block);
      region = std::move(copy);
    }
  if (has_convolutions(graph)) Blocker(graph, block).run();
}

}  // namespace undertow::transforms
