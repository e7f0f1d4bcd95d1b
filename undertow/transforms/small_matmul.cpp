// SPDX-License-Identifier: Apache-2.0
#include "undertow/transforms/small_matmul.h"

#include "undertow/ir/op_set.h"
#include "undertow/transforms/regions.h"

namespace undertow::transforms {
namespace {

constexpr std::int64_t kMaxProducts = 2048;

using ir::ValueId;
using Ints = std::vector<std::int64_t>;

ValueId add(ir::Graph& g, std::vector<ir::Node>& out, const char* op, std::vector<ValueId> inputs, ir::Attrs attrs,
            std::uint32_t scope) {
  const ir::NodeId n = g.add_node(ir::op_set().get(op), std::move(inputs), std::move(attrs), scope);
  out.push_back(std::move(g.nodes[n]));
  g.nodes.pop_back();
  return out.back().outputs[0];
}

}  // namespace

void small_matmul(ir::Graph& graph) {
  for_each_region(graph, small_matmul);
  std::vector<ir::Node> nodes = std::move(graph.nodes), out;
  graph.nodes.clear();
  for (auto& node : nodes) {
    const auto& a = node.inputs.empty() ? ir::TensorType{} : graph.type(node.inputs[0]);
    bool small = node.op->name == "matmul" && a.shape.rank() == 2 && a.dtype == DType::kFloat32;
    std::int64_t m = 0, n = 0, k = 0;
    if (small) {
      const Shape& y = graph.type(node.outputs[0]).shape;
      m = y[0];
      n = y[1];
      k = a.shape[node.attrs.flag("transpose_a") ? 0 : 1];
      small = m * n * k <= kMaxProducts && m * n * k > 0;
    }
    if (!small) {
      out.push_back(std::move(node));
      continue;
    }
    ValueId x = node.inputs[0], w = node.inputs[1];
    if (node.attrs.flag("transpose_a")) x = add(graph, out, "transpose", {x}, {{"perm", Ints{1, 0}}}, node.scope);
    if (!node.attrs.flag("transpose_b")) w = add(graph, out, "transpose", {w}, {{"perm", Ints{1, 0}}}, node.scope);
    ValueId y;
    if (k == 1) {
      w = add(graph, out, "reshape", {w}, {{"shape", Ints{1, n}}}, node.scope);
      y = add(graph, out, "mul", {x, w}, {}, node.scope);
    } else {
      x = add(graph, out, "reshape", {x}, {{"shape", Ints{m, 1, k}}}, node.scope);
      w = add(graph, out, "reshape", {w}, {{"shape", Ints{1, n, k}}}, node.scope);
      const ValueId p = add(graph, out, "mul", {x, w}, {}, node.scope);
      y = add(graph, out, "reduce_sum", {p}, {{"axes", Ints{2}}, {"keep_dims", false}}, node.scope);
    }
    // The old output's readers now read the new value: keep the old id by swapping the definitions.
    std::swap(out.back().outputs[0], node.outputs[0]);
    (void)y;
  }
  graph.nodes = std::move(out);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i)
    for (const auto v : graph.nodes[i].outputs) graph.values[v].producer = static_cast<ir::NodeId>(i);
}

}  // namespace undertow::transforms
