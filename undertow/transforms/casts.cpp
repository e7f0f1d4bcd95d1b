// SPDX-License-Identifier: Apache-2.0
#include "undertow/transforms/casts.h"

#include <algorithm>
#include <optional>

#include "undertow/transforms/views.h"

namespace undertow::transforms {
namespace {

using ir::Graph;
using ir::Node;
using ir::ValueId;

/// The load whose values a stage's result has, but for its type.
std::optional<std::size_t> loaded(const ir::Stage& stage, std::size_t result) {
  std::int32_t i = stage.expr.results[result];
  while (stage.expr.insts[static_cast<std::size_t>(i)].op == ir::Opcode::kCast)
    i = stage.expr.insts[static_cast<std::size_t>(i)].a;
  const ir::ExprInst& inst = stage.expr.insts[static_cast<std::size_t>(i)];
  const auto input = static_cast<std::size_t>(inst.imm);
  if (inst.op != ir::Opcode::kInput || input >= stage.loads.size()) return std::nullopt;
  return input;
}

class Finder {
 public:
  explicit Finder(const Graph& g) : g_(g) {
    for (const auto v : g.outputs) outputs_.push_back(viewed(g, v));
  }

  std::vector<Cast> run() {
    for (const Node& n : g_.nodes) {
      for (const auto& region : n.regions)
        for (Cast& c : find_casts(*region)) found_.push_back(std::move(c));
      if (n.nest) in_nest(n);
      else if (n.op->name == "cast") add(n, n.inputs[0], n.outputs[0]);
    }
    return std::move(found_);
  }

 private:
  void in_nest(const Node& n) {
    for (const ir::Stage& stage : n.nest->stages)
      for (std::size_t r = 0; r < stage.results.size(); ++r) {
        const auto* store = std::get_if<ir::StoreResult>(&stage.results[r]);
        if (!store) continue;
        if (const auto load = loaded(stage, r))
          add(n, n.inputs[static_cast<std::size_t>(stage.loads[*load].buffer)],
              n.outputs[static_cast<std::size_t>(store->access.buffer)]);
      }
  }

  void add(const Node& n, ValueId from, ValueId to) {
    const ir::TensorType &a = g_.type(from), &b = g_.type(to);
    if (a.dtype == b.dtype || !(is_half(a.dtype) || is_half(b.dtype)) || !is_floating(a.dtype) || !is_floating(b.dtype))
      return;
    found_.push_back({edge(from, to), a.dtype, b.dtype, b.shape.numel() * static_cast<std::int64_t>(size_of(b.dtype)),
                      g_.scopes[n.scope].cell});
  }

  Cast::Edge edge(ValueId from, ValueId to) const {
    from = viewed(g_, from);
    const auto holds = [](const auto& list, ValueId v) {
      return std::any_of(list.begin(), list.end(), [v](const auto& entry) { return entry.value == v; });
    };
    if (holds(g_.states, from)) return Cast::kWeight;
    if (holds(g_.inputs, from)) return Cast::kInput;
    return std::count(outputs_.begin(), outputs_.end(), to) ? Cast::kOutput : Cast::kInside;
  }

  const Graph& g_;
  std::vector<ValueId> outputs_;
  std::vector<Cast> found_;
};

}  // namespace

std::vector<Cast> find_casts(const Graph& graph) { return Finder(graph).run(); }

std::string_view name_of(Cast::Edge edge) {
  constexpr std::string_view kNames[] = {"input", "weight", "output", "inside"};
  return kNames[edge];
}

}  // namespace undertow::transforms
