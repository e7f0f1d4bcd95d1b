// SPDX-License-Identifier: Apache-2.0
#include "undertow/ir/graph.h"

#include <atomic>

#include "undertow/base/check.h"

namespace undertow::ir {

Graph::Graph() {
  static std::atomic<std::uint64_t> next{1};
  id_ = next.fetch_add(1, std::memory_order_relaxed);
  scopes.push_back({});
}

ValueId Graph::new_value(const TensorType& type, NodeId producer) {
  values.push_back({type, producer});
  return static_cast<ValueId>(values.size() - 1);
}

ValueId Graph::add_input(Input input, const TensorType& type) {
  input.value = new_value(type, kNoId);
  inputs.push_back(std::move(input));
  return inputs.back().value;
}

ValueId Graph::add_state(State state, const TensorType& type) {
  state.value = new_value(type, kNoId);
  states.push_back(std::move(state));
  return states.back().value;
}

NodeId Graph::add_node_typed(Node node, std::span<const TensorType> types) {
  const auto id = static_cast<NodeId>(nodes.size());
  node.outputs.clear();
  for (const auto& t : types) node.outputs.push_back(new_value(t, id));
  nodes.push_back(std::move(node));
  return id;
}

std::vector<TensorType> infer(const OpDef& op, std::span<const TensorType> in, const Attrs& attrs, const Scope& scope,
                              std::span<const RegionPtr> regions) {
  UNDERTOW_CHECK(op.num_inputs < 0 || static_cast<int>(in.size()) == op.num_inputs, TypeError,
                 "{} takes {} inputs, got {}", op.name, op.num_inputs, in.size());
  try {
    return op.infer_regions ? op.infer_regions(in, attrs, regions) : op.infer(in, attrs);
  } catch (const Error& e) {
    std::string where = "in " + op.name + "(";
    for (std::size_t i = 0; i < in.size(); ++i)
      where += fmt::format("{}{}{} {}", i ? ", " : "", i < op.inputs.size() ? op.inputs[i] + ": " : "",
                           name_of(in[i].dtype), in[i].shape.str());
    where += ")";
    if (!scope.cell.empty()) where += ", cell " + scope.cell;
    if (!scope.line.empty()) where += ", at " + scope.line;
    e.rethrow_with(where);
    throw;  // not reached: says so to the compiler
  }
}

NodeId Graph::add_node(const OpDef& op, std::vector<ValueId> in, Attrs attrs, std::uint32_t scope,
                       std::vector<RegionPtr> regions) {
  std::vector<TensorType> types;
  for (const auto v : in) types.push_back(type(v));
  const auto out = infer(op, types, attrs, scopes[scope], regions);
  return add_node_typed({.op = &op,
                         .inputs = std::move(in),
                         .outputs = {},
                         .attrs = std::move(attrs),
                         .scope = scope,
                         .nest = nullptr,
                         .regions = std::move(regions)},
                        out);
}

namespace {

template <typename Trait>
bool any_node(const Node& node, Trait trait) {
  if (trait(*node.op)) return true;
  for (const auto& r : node.regions)
    for (const auto& n : r->nodes)
      if (any_node(n, trait)) return true;
  return false;
}

}  // namespace

bool has_effect(const Node& node) {
  return any_node(node, [](const OpDef& op) { return op.effect; });
}
bool is_ordered(const Node& node) {
  return any_node(node, [](const OpDef& op) { return op.ordered; });
}

std::vector<TensorType> input_types(const Graph& region) {
  std::vector<TensorType> types;
  for (const auto& i : region.inputs) types.push_back(region.type(i.value));
  return types;
}
std::vector<TensorType> output_types(const Graph& region) {
  std::vector<TensorType> types;
  for (const auto v : region.outputs) types.push_back(region.type(v));
  return types;
}

std::uint32_t Graph::intern_scope(Scope scope) {
  if (scope.cell == scopes.back().cell && scope.line == scopes.back().line)
    return static_cast<std::uint32_t>(scopes.size() - 1);
  scopes.push_back(std::move(scope));
  return static_cast<std::uint32_t>(scopes.size() - 1);
}

Digest Graph::hash() const {
  Hasher h;
  const auto add_type = [&](const TensorType& t) { h.add(t.dtype).add_range(t.shape); };
  h.add(inputs.size());
  for (const auto& i : inputs) {
    h.add(i.kind).add(i.value);
    add_type(type(i.value));
  }
  h.add(states.size());
  for (const auto& s : states) {
    h.add(s.value).add(s.result).add(s.always);
    add_type(type(s.value));
  }
  h.add(nodes.size());
  for (const auto& n : nodes) {
    h.add(std::string_view(n.op->name)).add_range(n.inputs).add_range(n.outputs).add(n.phase);
    n.attrs.hash(h);
    if (n.nest) {
      const Digest d = n.nest->hash();
      h.add(d.a).add(d.b);
    }
    h.add(n.regions.size());
    for (const auto& r : n.regions) {
      const Digest d = r->hash();
      h.add(d.a).add(d.b);
    }
    for (const auto v : n.outputs) add_type(type(v));
  }
  h.add_range(outputs);
  return h.digest();
}

}  // namespace undertow::ir
