// SPDX-License-Identifier: Apache-2.0
#include "undertow/runtime/trace.h"

#include <algorithm>
#include <atomic>

#include "undertow/base/check.h"
#include "undertow/ops/dispatch.h"
#include "undertow/ops/ops.h"
#include "undertow/ops/precision.h"
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

std::string here() {
  const std::string cell = current_cell_path(), line = user_line();
  return (cell.empty() ? "" : "cell " + cell) + (cell.empty() || line.empty() ? "" : ", ") +
         (line.empty() ? "" : "at " + line);
}

/// SplitMix64's finalizer: numbers for draws that do not meet those of other functions.
std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}
constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15ull;
std::uint64_t function_key(std::uint64_t key, int which) {
  return mix(key + kGolden * static_cast<std::uint64_t>(which + 1)) | 1;
}
/// What one trip of a function's loop adds to the step that keys its draws.
std::uint64_t trip_step(std::uint64_t frame_key) { return mix(frame_key) | 1; }

/// Infers, and tells where an error comes from only when there is one.
std::vector<ir::TensorType> infer_here(const ir::OpDef& op, const std::vector<Tensor>& inputs, const ir::Attrs& attrs) {
  try {
    return ir::infer(op, types_of(inputs), attrs, {});
  } catch (const Error& e) {
    const std::string where = here();
    if (where.empty()) throw;
    e.rethrow_with(where);
    throw;  // not reached: says so to the compiler
  }
}

class RuntimeDispatcher : public ops::Dispatcher {
 public:
  std::vector<Tensor> apply(const ir::OpDef& op, std::vector<Tensor> inputs, ir::Attrs attrs,
                            std::vector<ir::RegionPtr> regions) override {
    if (trace_here) return trace_here->apply(op, inputs, std::move(attrs), std::move(regions));
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
  bool compiling() const override { return trace_here && trace_here->mode() == Trace::Mode::kCompile; }
  std::uint64_t control_key() override { return trace_here ? trace_here->control_key() : 0; }
  void enter(std::uint64_t key, int which, std::int64_t trip) override {
    if (trace_here) trace_here->enter(key, which, trip);
  }
  void leave() override {
    if (trace_here) trace_here->leave();
  }
  ops::RecordedRegion record(const std::vector<ir::TensorType>& inputs, const Function& function, std::uint64_t key,
                             int which, int trip) override {
    UNDERTOW_ASSERT(compiling());
    return trace_here->record(inputs, function, key, which, trip);
  }
  std::vector<Tensor> gradients(const std::vector<Tensor>& values, const std::vector<Tensor>& seeds,
                                const std::vector<Tensor>& wrt) override {
    UNDERTOW_ASSERT(trace_here);
    return trace_here->gradients(values, seeds, wrt);
  }
  std::vector<ir::TensorType> abstract(const std::vector<ir::TensorType>& inputs, const Function& function) override {
    Trace trace(Trace::Mode::kCompile);
    const TraceScope scope(&trace);
    std::vector<Tensor> args;
    for (const auto& t : inputs) args.push_back(trace.symbolic_input("x", t.dtype, t.shape));
    return types_of(function(args));
  }
  std::string where() override { return here(); }
};

RuntimeDispatcher& runtime_dispatcher() {
  static auto* d = new RuntimeDispatcher;
  return *d;
}
[[maybe_unused]] const bool installed = (ops::set_dispatcher(&runtime_dispatcher()), true);

}  // namespace

Trace::Trace(Mode mode) : mode_(mode), frames_(1) {}
Trace::Trace(Trace& outer) : mode_(Mode::kCompile), outer_(&outer) {}
Trace::~Trace() = default;

Tensor Trace::tensor_of(ir::ValueId value) {
  if (value >= tensors_.size()) tensors_.resize(graph_.values.size());
  // A gradient rule may have given a node more outputs.
  if (!tensors_.at(value).defined() && mode_ == Mode::kCompile) add_tensor(value);
  return tensors_[value];
}

/// The trace's tensor for a value: symbolic, or `concrete` where ops run at once.
Tensor Trace::add_tensor(ir::ValueId value, Tensor concrete) {
  tensors_.resize(graph_.values.size());
  const ir::TensorType& t = graph_.type(value);
  return tensors_[value] = concrete.defined() ? concrete : Tensor::symbolic(t.dtype, t.shape, {graph_.id(), value});
}

Tensor Trace::symbolic_input(const std::string& name, DType dtype, const Shape& shape) {
  return add_tensor(graph_.add_input({.name = name, .kind = ir::Input::kBatch}, {dtype, shape}));
}

Tensor Trace::input(const std::string& name, const Tensor& sample) {
  if (mode_ == Mode::kCompile) return symbolic_input(name, sample.dtype(), sample.shape());
  const ir::ValueId v = graph_.add_input({.name = name, .kind = ir::Input::kBatch}, {sample.dtype(), sample.shape()});
  Tensor t = sample.view(sample.shape());  // a handle of its own: the sample itself stays unmarked
  t.impl()->symbol = {graph_.id(), v};
  return add_tensor(v, t);
}

ir::ValueId Trace::value_of(const Tensor& t) {
  if (t.is_symbolic() && t.impl()->symbol.graph == graph_.id()) return t.impl()->symbol.value;
  UNDERTOW_CHECK(t.is_concrete() || std::count(regions_.begin(), regions_.end(), t.impl()->symbol.graph) == 0,
                 TraceError,
                 "a tensor of shape {} that was computed within a function of ops.cond, ops.while_loop or ops.scan is "
                 "used outside of it{}. Return it from that function",
                 t.shape().str(), current_cell_path().empty() ? "" : ", cell " + current_cell_path());
  if (outer_) return capture(t);
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
    add_tensor(v, mode_ == Mode::kEager ? t : Tensor());
    return v;
  }
  if (const auto it = captures_.find(key); it != captures_.end()) return it->second;
  const ir::ValueId v =
      graph_.add_input({.name = "captured", .kind = ir::Input::kCapture, .captured = t}, {t.dtype(), t.shape()});
  captures_[key] = v;
  add_tensor(v, mode_ == Mode::kEager ? t : Tensor());
  return v;
}

/// What a region reads of the trace around it becomes its input: once a value, once a parameter (two parameters may
/// share a value, and be written apart).
ir::ValueId Trace::capture(const Tensor& t) {
  if (t.is_parameter())
    if (const auto it = states_.find(t.impl().get()); it != states_.end()) return it->second.current;
  const ir::ValueId outer = outer_->value_of(t);
  if (!t.is_parameter())
    if (const auto it = captured_values_.find(outer); it != captured_values_.end()) return it->second;
  const Parameter parameter = t.is_parameter() ? Parameter::of(t) : Parameter();
  const ir::ValueId v =
      graph_.add_input({.name = parameter.defined() ? parameter.name() : "captured", .kind = ir::Input::kArgument},
                       {t.dtype(), t.shape()});
  if (parameter.defined()) states_[t.impl().get()] = {captured_.size(), v};
  else captured_values_[outer] = v;
  captured_.push_back({outer_->tensor_of(outer), parameter, v});
  add_tensor(v);
  return v;
}

ops::RecordedRegion Trace::record(const std::vector<ir::TensorType>& inputs, const ops::Dispatcher::Function& function,
                                  std::uint64_t key, int which, int trip) {
  Trace region(*this);
  region.frames_.push_back({.key = function_key(key, which)});
  std::vector<Tensor> args;
  for (const auto& t : inputs)
    args.push_back(region.add_tensor(region.graph_.add_input({.name = "x", .kind = ir::Input::kArgument}, t)));
  if (trip >= 0) region.trip_ = args[static_cast<std::size_t>(trip)];
  {
    const TraceScope scope(&region);
    for (const auto& t : function(args)) region.graph_.outputs.push_back(region.value_of(t));
  }
  regions_.push_back(region.graph_.id());
  regions_.insert(regions_.end(), region.regions_.begin(), region.regions_.end());
  ops::RecordedRegion result;
  for (const auto& c : region.captured_) {
    if (!c.parameter.defined()) continue;
    const ir::ValueId now = region.states_.at(c.parameter.impl().get()).current;
    if (now != c.value) result.written.emplace_back(c.parameter, now);
  }
  result.captured = std::move(region.captured_);
  result.graph = std::make_shared<ir::Graph>(std::move(region.graph_));
  return result;
}

std::vector<Tensor> Trace::apply(const ir::OpDef& op, const std::vector<Tensor>& inputs, ir::Attrs attrs,
                                 std::vector<ir::RegionPtr> regions) {
  std::vector<ir::ValueId> ids;
  for (const auto& t : inputs) ids.push_back(value_of(t));
  const bool eager = mode_ == Mode::kEager;
  const std::uint32_t scope = graph_.intern_scope({current_cell_path(), eager ? "" : user_line()});
  ir::NodeId n;
  if (eager) {
    UNDERTOW_ASSERT(regions.empty());  // functions run at once
    const auto types = infer_here(op, inputs, attrs);
    n = graph_.add_node_typed({.op = &op, .inputs = ids, .outputs = {}, .attrs = std::move(attrs), .scope = scope},
                              types);
  } else {
    n = graph_.add_node(op, ids, std::move(attrs), scope, std::move(regions));
  }
  const ir::Node& node = graph_.nodes[n];
  tensors_.resize(graph_.values.size());
  std::vector<Tensor> results;
  if (!eager) {
    for (const auto v : node.outputs) results.push_back(add_tensor(v));
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
  const ir::ValueId newest = value_of(value);
  StateEntry& entry = states_.at(parameter.impl().get());
  entry.current = newest;
  entry.always = entry.always || always_;
}

void Trace::commit(bool skipped) {
  // Values first: one new value may be another parameter's old memory.
  std::vector<std::pair<Tensor, Tensor>> writes;
  for (const auto& [impl, entry] : states_) {
    const ir::State& s = graph_.states[entry.index];
    if (entry.current == s.value || (skipped && !entry.always)) continue;
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
    if (entry.current == s.value) continue;
    s.result = entry.current;
    s.always = entry.always;
  }
}

std::vector<Tensor> Trace::gradients(const Tensor& value, const std::vector<Tensor>& wrt, const Tensor& seed) {
  UNDERTOW_CHECK(is_floating(value.dtype()), TypeError, "gradients need a floating value, got {}",
                 name_of(value.dtype()));
  auto grads = gradients(std::vector{value}, {seed.defined() ? seed : ops::ones_like(value)}, wrt);
  for (std::size_t i = 0; i < grads.size(); ++i)
    if (!grads[i].defined()) grads[i] = ops::zeros_like(wrt[i]);
  return grads;
}

std::vector<Tensor> Trace::gradients(const std::vector<Tensor>& values, const std::vector<Tensor>& seeds,
                                     const std::vector<Tensor>& wrt) {
  std::vector<ir::ValueId> from, ids;
  for (const auto& t : wrt) ids.push_back(value_of(t));
  for (const auto& t : values) from.push_back(value_of(t));
  if (outer_) refuse_outer_paths(ids);
  const ops::PrecisionScope off;  // rules compute in the types that the recorded ops have
  return transforms::grad(graph_, [this](ir::ValueId id) { return tensor_of(id); }, from, seeds, ids);
}

/// By value of this graph: whether it depends on any of `values`, by way of the traces around too.
std::vector<bool> Trace::dependents(const std::vector<ir::ValueId>& values) const {
  std::vector<bool> marked(graph_.values.size(), false);
  for (const auto v : values) marked[v] = true;
  std::vector<ir::ValueId> outside;
  for (const auto& c : captured_)
    if (marked[c.value]) outside.push_back(c.outer.impl()->symbol.value);
  if (!outside.empty()) {
    const auto around = outer_->dependents(outside);
    for (const auto& c : captured_)
      if (around[c.outer.impl()->symbol.value]) marked[c.value] = true;
  }
  for (const auto& n : graph_.nodes)
    if (std::any_of(n.inputs.begin(), n.inputs.end(), [&](ir::ValueId v) { return marked[v]; }))
      for (const auto v : n.outputs) marked[v] = true;
  return marked;
}

/// A gradient that is taken within a region sees the region's operations only. Where a value from outside depends on
/// what is differentiated, a part of the gradient would be missing.
void Trace::refuse_outer_paths(const std::vector<ir::ValueId>& wrt) const {
  const auto marked = dependents(wrt);
  for (const auto& c : captured_)
    UNDERTOW_CHECK(
        !marked[c.value] || std::count(wrt.begin(), wrt.end(), c.value) > 0, TraceError,
        "a gradient is taken within a function of ops.cond, ops.while_loop or ops.scan, which uses a tensor of "
        "shape {} that was computed outside of it from what is differentiated. Compute it within the function, "
        "or take the gradient outside",
        c.outer.shape().str());
}

std::uint64_t Trace::control_key() {
  Frame& f = frames_.back();
  return mix(f.key + kGolden * static_cast<std::uint64_t>(++f.draws)) | 1;
}

std::int64_t Trace::next_stream() {
  Frame& f = frames_.back();
  const std::int64_t n = f.draws++;
  if (f.key == 0) return n;
  constexpr std::uint64_t kRegions = 0x80000000;  // streams have 32 bits: those of functions have the highest set
  return static_cast<std::int64_t>(kRegions | (mix(f.key + static_cast<std::uint64_t>(n)) & (kRegions - 1)));
}

void Trace::enter(std::uint64_t key, int which, std::int64_t trip) {
  Frame f{.key = function_key(key, which), .fold = frames_.back().fold};
  if (trip >= 0) f.fold += static_cast<std::uint64_t>(trip + 1) * trip_step(f.key);
  frames_.push_back(std::move(f));
}

Tensor Trace::seed_input() { return tensor_of(value_of(seed_tensor())); }

Tensor Trace::step_input() {
  Frame& f = frames_.back();
  if (f.step.defined()) return f.step;
  if (mode_ == Mode::kEager && f.fold != 0)
    return f.step = Tensor::scalar(static_cast<std::int64_t>(static_cast<std::uint64_t>(step_) + f.fold));
  f.step = first_step();
  if (f.fold == 0) return f.step;
  const TraceScope scope(this);
  return f.step = ops::add(f.step, static_cast<std::int64_t>(f.fold));
}

/// The step as the first frame sees it.
Tensor Trace::first_step() {
  if (outer_) {
    Tensor& step = frames_.front().step;
    if (step.defined()) return step;
    step = outer_->step_input();
    if (!trip_.defined()) return step;
    const TraceScope scope(this);
    const auto fold = static_cast<std::int64_t>(trip_step(frames_.front().key));
    return step = ops::add(step, ops::mul(ops::add(trip_, std::int64_t{1}), fold));
  }
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
