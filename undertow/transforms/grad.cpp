// SPDX-License-Identifier: Apache-2.0
#include "undertow/transforms/grad.h"

#include "undertow/ops/ops.h"

namespace undertow::transforms {
namespace {

/// Undoes a broadcast: sums over the axes along which `shape` was repeated.
Tensor sum_to(const Tensor& g, const Shape& shape) {
  if (g.shape() == shape) return g;
  const int extra = g.ndim() - shape.rank();
  ops::Axes axes;
  for (int d = 0; d < g.ndim(); ++d)
    if (d < extra || (shape[d - extra] == 1 && g.shape(d) != 1)) axes.push_back(d);
  const Tensor s = axes.empty() ? g : ops::reduce_sum(g, axes, true);
  return ops::reshape(s, shape.to_vector());
}

}  // namespace

std::vector<Tensor> grad(ir::Graph& graph, const std::function<Tensor(ir::ValueId)>& tensor_of,
                         const std::vector<ir::ValueId>& values, const std::vector<Tensor>& seeds,
                         const std::vector<ir::ValueId>& wrt) {
  const std::size_t num_nodes = graph.nodes.size(), num_values = graph.values.size();
  std::vector<bool> depends(num_values, false);  // on any of wrt
  for (const auto v : wrt) depends[v] = true;
  for (std::size_t n = 0; n < num_nodes; ++n) {
    const ir::Node& node = graph.nodes[n];
    if (!node.op->grad) continue;
    bool any = false;
    for (const auto v : node.inputs) any |= depends[v] && is_floating(graph.type(v).dtype);
    if (any)
      for (const auto v : node.outputs) depends[v] = true;
  }

  std::vector<Tensor> grads(num_values);
  const auto accumulate = [&](ir::ValueId v, const Tensor& g) {
    grads[v] = grads[v].defined() ? ops::add(grads[v], g) : g;
  };
  for (std::size_t i = 0; i < values.size(); ++i) accumulate(values[i], seeds[i]);
  for (std::size_t n = num_nodes; n-- > 0;) {
    // Copies: rules append nodes, which moves the graph's arenas.
    const ir::Node node = graph.nodes[n];
    if (!node.op->grad) continue;
    std::vector<Tensor> inputs, outputs, out_grads;
    std::vector<char> needs;
    bool flows = false, wanted = false;
    for (const auto v : node.outputs) {
      flows |= grads[v].defined();
      out_grads.push_back(grads[v]);
      outputs.push_back(tensor_of(v));
    }
    for (const auto v : node.inputs) {
      needs.push_back(depends[v] && is_floating(graph.type(v).dtype));
      wanted |= needs.back() != 0;
      inputs.push_back(tensor_of(v));
    }
    if (!flows || !wanted) continue;
    const auto mask = std::make_unique<bool[]>(needs.size());
    for (std::size_t i = 0; i < needs.size(); ++i) mask[i] = needs[i] != 0;
    const auto extend = [&](std::vector<ir::RegionPtr> regions, std::span<const ir::TensorType> types) {
      graph.nodes[n].regions = std::move(regions);
      std::vector<Tensor> more;
      for (const auto& t : types) {
        const ir::ValueId v = graph.new_value(t, static_cast<ir::NodeId>(n));
        graph.nodes[n].outputs.push_back(v);
        more.push_back(tensor_of(v));
      }
      return more;
    };
    const auto input_grads = node.op->grad({inputs, outputs, out_grads, node.attrs,
                                            std::span<const bool>(mask.get(), needs.size()), node.regions, extend});
    for (std::size_t i = 0; i < input_grads.size(); ++i) {
      const ir::ValueId v = node.inputs[i];
      if (!input_grads[i].defined() || !needs[i]) continue;
      const ir::TensorType t = graph.type(v);
      accumulate(v, ops::cast(sum_to(input_grads[i], t.shape), t.dtype));
    }
  }

  std::vector<Tensor> result;
  for (const auto v : wrt) result.push_back(grads[v]);
  return result;
}

}  // namespace undertow::transforms
