// SPDX-License-Identifier: Apache-2.0
#include "undertow/runtime/trace.h"

#include <atomic>

#include "undertow/base/check.h"
#include "undertow/ops/dispatch.h"
#include "undertow/ops/ops.h"
#include "undertow/runtime/eager.h"
#include "undertow/transforms/grad.h"

namespace undertow::runtime {
namespace {

thread_local Trace* trace_here = nullptr;
thread_local std::vector<std::string> cell_names;
std::atomic<std::string (*)()> line_provider{nullptr};

/// The seed as a tensor that programs capture: changing it needs no new program.
Tensor& seed_tensor() {
  static auto* t = new Tensor(Tensor::scalar<std::uint64_t>(0));
  return *t;
}
/// Numbers the draws made outside of any trace.
std::atomic<std::int64_t> loose_draws{0};

std::string user_line() {
  const auto provider = line_provider.load(std::memory_order_relaxed);
  return provider ? provider() : std::string();
}

std::vector<ir::TensorType> types_of(const std::vector<Tensor>& tensors) {
  std::vector<ir::TensorType> types;
  for (const auto& t : tensors) types.push_back({t.dtype(), t.shape()});
  return types;
}

/// Infers, and tells where an error comes from only when there is one.
std::vector<ir::TensorType> infer_here(const ir::OpDef& op, const std::vector<Tensor>& inputs, const ir::Attrs& attrs) {
  try {
    return ir::infer(op, types_of(inputs), attrs, {});
  } catch (const Error& e) {
    const std::string cell = current_cell_path(), line = user_line();
    if (cell.empty() && line.empty()) throw;
    e.rethrow_with((cell.empty() ? "" : "cell " + cell) + (cell.empty() || line.empty() ? "" : ", ") +
                   (line.empty() ? "" : "at " + line));
    throw;  // not reached: says so to the compiler
  }
}

class RuntimeDispatcher : public ops::Dispatcher {
 public:
  std::vector<Tensor> apply(const ir::OpDef& op, std::vector<Tensor> inputs, ir::Attrs attrs) override {
    if (trace_here) return trace_here->apply(op, inputs, std::move(attrs));
    for (const auto& t : inputs)
      UNDERTOW_CHECK(t.is_concrete(), TraceError,
                     "{}: a tensor of shape {} from an earlier trace is used outside of it. A tensor computed in "
                     "`construct` has no value after compilation; return it instead of keeping it in an attribute",
                     op.name, t.shape().str());
    return run_op(op, inputs, attrs, infer_here(op, inputs, attrs), {current_cell_path(), ""});
  }
  void assign(const Parameter& parameter, const Tensor& value) override {
    if (trace_here) trace_here->assign(parameter, value);
    else parameter.Tensor::assign(value);
  }
  RandomKey random_key() override {
    if (trace_here) return {trace_here->seed_input(), trace_here->step_input(), trace_here->next_stream()};
    return {seed_tensor(), Tensor::scalar<std::int64_t>(-1), loose_draws.fetch_add(1)};
  }
};

RuntimeDispatcher& runtime_dispatcher() {
  static auto* d = new RuntimeDispatcher;
  return *d;
}
[[maybe_unused]] const bool installed = (ops::set_dispatcher(&runtime_dispatcher()), true);

}  // namespace

Trace::Trace(Mode mode) : mode_(mode) {}
Trace::~Trace() = default;

Tensor Trace::tensor_of(ir::ValueId value) const { return tensors_.at(value); }

Tensor Trace::symbolic_input(const std::string& name, DType dtype, const Shape& shape) {
  const ir::ValueId v = graph_.add_input({.name = name, .kind = ir::Input::kBatch}, {dtype, shape});
  tensors_.resize(graph_.values.size());
  return tensors_[v] = Tensor::symbolic(dtype, shape, {graph_.id(), v});
}

Tensor Trace::input(const std::string& name, const Tensor& sample) {
  if (mode_ == Mode::kCompile) return symbolic_input(name, sample.dtype(), sample.shape());
  const ir::ValueId v = graph_.add_input({.name = name, .kind = ir::Input::kBatch}, {sample.dtype(), sample.shape()});
  tensors_.resize(graph_.values.size());
  Tensor t = sample.view(sample.shape());  // a handle of its own: the sample itself stays unmarked
  t.impl()->symbol = {graph_.id(), v};
  return tensors_[v] = t;
}

ir::ValueId Trace::value_of(const Tensor& t) {
  if (t.is_symbolic() && t.impl()->symbol.graph == graph_.id()) return t.impl()->symbol.value;
  UNDERTOW_CHECK(
      t.is_concrete(), TraceError,
      "a tensor of shape {} from an earlier trace is used in this one{}. A tensor computed in `construct` has "
      "no value after compilation; return it instead of keeping it in an attribute",
      t.shape().str(), current_cell_path().empty() ? "" : ", cell " + current_cell_path());
  const TensorImpl* key = t.impl().get();
  if (t.is_parameter()) {
    if (const auto it = states_.find(key); it != states_.end()) return it->second.current;
    const ir::ValueId v = graph_.add_state({.name = Parameter::of(t).name(), .parameter = t}, {t.dtype(), t.shape()});
    states_[key] = {graph_.states.size() - 1, v};
    tensors_.resize(graph_.values.size());
    tensors_[v] = mode_ == Mode::kEager ? t : Tensor::symbolic(t.dtype(), t.shape(), {graph_.id(), v});
    return v;
  }
  if (const auto it = captures_.find(key); it != captures_.end()) return it->second;
  const ir::ValueId v =
      graph_.add_input({.name = "captured", .kind = ir::Input::kCapture, .captured = t}, {t.dtype(), t.shape()});
  captures_[key] = v;
  tensors_.resize(graph_.values.size());
  tensors_[v] = mode_ == Mode::kEager ? t : Tensor::symbolic(t.dtype(), t.shape(), {graph_.id(), v});
  return v;
}

std::vector<Tensor> Trace::apply(const ir::OpDef& op, const std::vector<Tensor>& inputs, ir::Attrs attrs) {
  std::vector<ir::ValueId> ids;
  for (const auto& t : inputs) ids.push_back(value_of(t));
  const bool eager = mode_ == Mode::kEager;
  const std::uint32_t scope = graph_.intern_scope({current_cell_path(), eager ? "" : user_line()});
  ir::NodeId n;
  if (eager) {
    const auto types = infer_here(op, inputs, attrs);
    n = graph_.add_node_typed({.op = &op, .inputs = ids, .outputs = {}, .attrs = std::move(attrs), .scope = scope},
                              types);
  } else {
    n = graph_.add_node(op, ids, std::move(attrs), scope);
  }
  const ir::Node& node = graph_.nodes[n];
  tensors_.resize(graph_.values.size());
  std::vector<Tensor> results;
  if (!eager) {
    for (const auto v : node.outputs) {
      const auto& t = graph_.type(v);
      results.push_back(Tensor::symbolic(t.dtype, t.shape, {graph_.id(), v}));
      tensors_[v] = results.back();
    }
    return results;
  }
  std::vector<Tensor> values;
  std::vector<ir::TensorType> types;
  for (const auto v : ids) values.push_back(tensors_[v]);
  for (const auto v : node.outputs) types.push_back(graph_.type(v));
  results = run_op(op, values, node.attrs, types, graph_.scopes[scope]);
  for (std::size_t i = 0; i < results.size(); ++i) {
    results[i].impl()->symbol = {graph_.id(), node.outputs[i]};
    tensors_[node.outputs[i]] = results[i];
  }
  return results;
}

void Trace::assign(const Parameter& parameter, const Tensor& value) {
  value_of(parameter);  // registers it
  states_.at(parameter.impl().get()).current = value_of(value);
}

void Trace::commit() {
  // Values first: one new value may be another parameter's old memory.
  std::vector<std::pair<Tensor, Tensor>> writes;
  for (const auto& [impl, entry] : states_) {
    const ir::State& s = graph_.states[entry.index];
    if (entry.current == s.value) continue;
    Tensor value = tensors_[entry.current];
    if (value.is_parameter()) value = value.clone();
    writes.emplace_back(s.parameter, value);
  }
  for (const auto& [parameter, value] : writes) parameter.assign(value);
}

void Trace::output(const Tensor& value) { graph_.outputs.push_back(value_of(value)); }

void Trace::finish() {
  for (const auto& [impl, entry] : states_) {
    ir::State& s = graph_.states[entry.index];
    if (entry.current != s.value) s.result = entry.current;
  }
}

std::vector<Tensor> Trace::gradients(const Tensor& value, const std::vector<Tensor>& wrt, const Tensor& seed) {
  UNDERTOW_CHECK(is_floating(value.dtype()), TypeError, "gradients need a floating value, got {}",
                 name_of(value.dtype()));
  std::vector<ir::ValueId> ids;
  for (const auto& t : wrt) ids.push_back(value_of(t));
  const Tensor start = seed.defined() ? seed : ops::ones_like(value);
  const ir::ValueId v = value_of(value);
  auto grads = transforms::grad(graph_, [this](ir::ValueId id) { return tensor_of(id); }, v, start, ids);
  for (std::size_t i = 0; i < grads.size(); ++i)
    if (!grads[i].defined()) grads[i] = ops::zeros_like(wrt[i]);
  return grads;
}

Tensor Trace::seed_input() { return tensor_of(value_of(seed_tensor())); }

Tensor Trace::step_input() {
  if (step_value_ == ir::kNoId) {
    step_value_ = graph_.add_input({.name = "step", .kind = ir::Input::kStep}, {DType::kInt64, Shape{}});
    tensors_.resize(graph_.values.size());
    Tensor t = mode_ == Mode::kEager ? Tensor::scalar<std::int64_t>(step_) : Tensor::symbolic(DType::kInt64, {}, {});
    t.impl()->symbol = {graph_.id(), step_value_};
    tensors_[step_value_] = t;
  }
  return tensors_[step_value_];
}

Trace* current_trace() { return trace_here; }

TraceScope::TraceScope(Trace* trace) : before_(trace_here) { trace_here = trace; }
TraceScope::~TraceScope() { trace_here = before_; }

ScopeName::ScopeName(const std::string& name) { cell_names.push_back(name); }
ScopeName::~ScopeName() { cell_names.pop_back(); }

std::string current_cell_path() {
  std::string path;
  for (const auto& n : cell_names) {
    if (n.empty()) continue;
    if (!path.empty()) path += '.';
    path += n;
  }
  return path;
}

void set_line_provider(std::string (*provider)()) { line_provider.store(provider); }

namespace {
std::vector<void (*)(std::uint64_t)>& seed_hooks() {
  static auto* hooks = new std::vector<void (*)(std::uint64_t)>;
  return *hooks;
}
}  // namespace

void set_seed(std::uint64_t seed) {
  *static_cast<std::uint64_t*>(seed_tensor().data()) = seed;
  loose_draws.store(0);
  for (auto* hook : seed_hooks()) hook(seed);
}
void on_set_seed(void (*hook)(std::uint64_t seed)) { seed_hooks().push_back(hook); }
std::uint64_t seed() { return *static_cast<const std::uint64_t*>(seed_tensor().data()); }

}  // namespace undertow::runtime
