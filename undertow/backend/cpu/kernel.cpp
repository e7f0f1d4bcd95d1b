// SPDX-License-Identifier: Apache-2.0
#include "undertow/backend/cpu/kernel.h"

#include "undertow/backend/cpu/parallel.h"
#include "undertow/base/check.h"

namespace undertow::backend::cpu {

NodeView::NodeView(const ir::Graph& graph, ir::NodeId node) : id(static_cast<std::int32_t>(node)) {
  const ir::Node& n = graph.nodes[node];
  op = n.op;
  attrs = &n.attrs;
  for (const auto v : n.inputs) in.push_back(graph.type(v));
  for (const auto v : n.outputs) out.push_back(graph.type(v));
}

const ir::AttrValue& NodeView::attr(std::string_view name) const {
  if (const auto* v = attrs->find(name)) return *v;
  if (const auto* v = op->defaults.find(name)) return *v;
  throw KeyError(fmt::format("{}: no attribute '{}'", op->name, name));
}

double NodeView::number(std::string_view name) const {
  const ir::AttrValue& v = attr(name);
  if (const auto* d = std::get_if<double>(&v)) return *d;
  if (const auto* i = std::get_if<std::int64_t>(&v)) return static_cast<double>(*i);
  return std::get<bool>(v) ? 1 : 0;
}

FunctionKernel::FunctionKernel(std::string description, std::size_t scratch, RunFn run)
    : description_(std::move(description)), scratch_(scratch), run_(std::move(run)), threads_(compute_threads()) {}

Instr FunctionKernel::bind(std::span<void* const> args) {
  Bound& b = bound_.next();
  b.kernel = this;
  b.args.assign(args.begin(), args.end());
  return {[](void* context, ir::StepError* error) {
            const auto& bound = *static_cast<const Bound*>(context);
            const FunctionKernel& k = *bound.kernel;
            if (compute_threads() <= k.threads_) return k.run_(bound.args.data(), error);
            const ScopedThreads fewer(k.threads_);
            k.run_(bound.args.data(), error);
          },
          &b};
}

void report(ir::StepError* error, const ir::StepError& found) {
  if (error && error->code == ir::StepError::kNone) *error = found;
}

}  // namespace undertow::backend::cpu
