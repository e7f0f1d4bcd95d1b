// SPDX-License-Identifier: Apache-2.0
// Context, seed, counters, gradients and compiled functions.
#include "python/src/cells.h"
#include "python/src/control.h"
#include "undertow/base/check.h"
#include "undertow/ops/dispatch.h"
#include "undertow/runtime/context.h"
#include "undertow/runtime/session.h"
#include "undertow/runtime/stats.h"

namespace undertow::python {
namespace {

/// Lets the GIL go where an op may take long or wait: a run on another thread may hold the device, and may need the GIL
/// for its data before it gives it up. Small ops keep it, since giving it up costs as much as they do.
class GilDispatcher final : public ops::Dispatcher {
 public:
  explicit GilDispatcher(ops::Dispatcher& runtime) : runtime_(runtime) {}
  std::vector<Tensor> apply(const ir::OpDef& op, std::vector<Tensor> inputs, ir::Attrs attrs,
                            std::vector<ir::RegionPtr> regions) override {
    if (!waits(inputs)) return runtime_.apply(op, std::move(inputs), std::move(attrs), std::move(regions));
    nb::gil_scoped_release release;
    return runtime_.apply(op, std::move(inputs), std::move(attrs), std::move(regions));
  }
  void assign(const Parameter& parameter, const Tensor& value) override { runtime_.assign(parameter, value); }
  RandomKey random_key() override { return runtime_.random_key(); }
  bool compiling() const override { return runtime_.compiling(); }
  std::uint64_t control_key() override { return runtime_.control_key(); }
  void enter(std::uint64_t key, int which, std::int64_t trip) override { runtime_.enter(key, which, trip); }
  void leave() override { runtime_.leave(); }
  ops::RecordedRegion record(const std::vector<ir::TensorType>& inputs, const Function& function, std::uint64_t key,
                             int which, int trip) override {
    return runtime_.record(inputs, function, key, which, trip);
  }
  std::vector<Tensor> gradients(const std::vector<Tensor>& values, const std::vector<Tensor>& seeds,
                                const std::vector<Tensor>& wrt) override {
    return runtime_.gradients(values, seeds, wrt);
  }
  std::vector<ir::TensorType> abstract(const std::vector<ir::TensorType>& inputs, const Function& function) override {
    return runtime_.abstract(inputs, function);
  }
  std::string where() override { return runtime_.where(); }

 private:
  static bool waits(const std::vector<Tensor>& inputs) {
    constexpr std::int64_t kSmall = std::int64_t{1} << 16;
    const runtime::Trace* trace = runtime::current_trace();
    if (trace && trace->mode() == runtime::Trace::Mode::kCompile) return false;
    bool large = other_thread_runs();
    for (const Tensor& t : inputs) large = large || t.size() > kSmall;
    return large && PyGILState_Check();
  }
  ops::Dispatcher& runtime_;
};

void flatten(nb::handle o, std::vector<Tensor>& out) {
  if (const Tensor* t = unwrap(o)) {
    out.push_back(*t);
  } else if (PyTuple_Check(o.ptr()) || PyList_Check(o.ptr())) {
    for (nb::handle item : nb::borrow<nb::object>(o)) flatten(item, out);
  } else if (PyDict_Check(o.ptr())) {
    for (auto [_, item] : nb::borrow<nb::dict>(o)) flatten(item, out);
  }
}

/// What is differentiated: the first output (has_aux), or the sum of everything floating.
Tensor target_of(const std::vector<Tensor>& outputs, bool has_aux) {
  UNDERTOW_CHECK(!outputs.empty(), TypeError, "the function returned no Tensor to differentiate");
  if (has_aux || outputs.size() == 1) {
    UNDERTOW_CHECK(is_floating(outputs[0].dtype()), TypeError,
                   "the {}output to differentiate must be floating, got {} of shape {}", has_aux ? "first " : "",
                   name_of(outputs[0].dtype()), outputs[0].shape().str());
    return outputs[0];
  }
  Tensor sum;
  for (const Tensor& t : outputs) {
    if (!is_floating(t.dtype())) continue;
    const Tensor s = ops::reduce_sum(ops::cast(t, DType::kFloat32));
    sum = sum.defined() ? ops::add(sum, s) : s;
  }
  UNDERTOW_CHECK(sum.defined(), TypeError, "the function returned no floating Tensor to differentiate");
  return sum;
}

/// (what fn returned, gradients by position, gradients by weight).
nb::tuple value_and_grad(const nb::callable& fn, const nb::tuple& args, const nb::dict& kwargs,
                         const std::vector<std::int64_t>& positions, const std::vector<Parameter>& weights,
                         bool has_aux) {
  runtime::Trace* outer = runtime::current_trace();
  std::vector<Tensor> wrt;
  nb::list call_args(args);
  for (const std::int64_t p : positions) {
    UNDERTOW_CHECK(p >= 0 && p < static_cast<std::int64_t>(args.size()), ValueError,
                   "grad_position {} is out of range: the function was called with {} arguments", p, args.size());
    const Tensor* t = unwrap(args[static_cast<std::size_t>(p)]);
    UNDERTOW_CHECK(t, TypeError, "argument {} is differentiated and must be a Tensor, got {}", p,
                   type_name_of(args[static_cast<std::size_t>(p)]));
    // A handle of its own: the same tensor given twice has two gradients.
    wrt.push_back(outer ? ops::copy(*t) : t->view(t->shape()));
    call_args[static_cast<std::size_t>(p)] = wrt.back();
  }
  for (const Parameter& w : weights) wrt.push_back(w);
  nb::object result;
  const auto f = [&] {
    result = fn(*call_args, **kwargs);
    std::vector<Tensor> outputs;
    flatten(result, outputs);
    return std::vector<Tensor>{target_of(outputs, has_aux)};
  };
  const std::vector<Tensor> grads = outer ? outer->gradients(f()[0], wrt) : runtime::eager_value_and_grad(f, wrt).grads;
  nb::list by_position, by_weight;
  for (std::size_t i = 0; i < grads.size(); ++i)
    (i < positions.size() ? by_position : by_weight).append(wrap(grads[i]));
  return nb::make_tuple(result, nb::tuple(by_position), nb::tuple(by_weight));
}

/// A function's compiled form for one kind of arguments: `build(tensors) -> tensors` is Python, and runs while tracing.
class CompiledFunction {
 public:
  CompiledFunction(std::string name, nb::callable build)
      : build_(std::move(build)),
        step_(
            std::move(name),
            [this](runtime::Trace&, const std::vector<Tensor>& inputs) {
              nb::gil_scoped_acquire gil;
              const PrintScope prints;
              return nb::cast<std::vector<Tensor>>(build_(inputs));
            },
            runtime::StepOutputs::kPlain) {}
  std::vector<Tensor> run(const std::vector<Tensor>& inputs) {
    nb::gil_scoped_release release;
    const std::uint64_t changes = nn::Cell::changes();
    if (changes != changes_) step_.retrace();
    changes_ = changes;
    return runtime::run_once(step_, inputs);
  }
  /// Traces and compiles for these inputs, and runs nothing.
  void compile(const std::vector<Tensor>& inputs) {
    nb::gil_scoped_release release;
    std::vector<runtime::ColumnType> types;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      types.push_back({"arg" + std::to_string(i), inputs[i].dtype(), inputs[i].shape()});
    step_.retrace();
    step_.compile(types);
  }
  void retrace() { step_.retrace(); }

  static int traverse(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    if (nb::inst_ready(self)) Py_VISIT(nb::inst_ptr<CompiledFunction>(self)->build_.ptr());
    return 0;
  }
  static int clear(PyObject* self) {
    nb::inst_ptr<CompiledFunction>(self)->build_.reset();
    return 0;
  }

 private:
  nb::object build_;
  runtime::StepFunction step_;
  std::uint64_t changes_ = 0;
};

PyType_Slot compiled_slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(CompiledFunction::traverse)},
                                {Py_tp_clear, reinterpret_cast<void*>(CompiledFunction::clear)},
                                {0, nullptr}};

nb::object context_value(const std::string& key) {
  const Context& c = context();
  if (key == "mode") return nb::int_(static_cast<int>(c.mode));
  if (key == "device_target") return nb::cast(c.device_target);
  if (key == "device") return nb::cast(c.device);
  if (key == "strict_device") return nb::bool_(c.strict_device);
  if (key == "half") return nb::cast(c.half);
  return nb::none();
}

}  // namespace

void bind_runtime(nb::module_& m) {
  static GilDispatcher dispatcher(ops::dispatcher());
  ops::set_dispatcher(&dispatcher);
  m.def("_stats", [] {
    const runtime::Stats s = runtime::stats();
    nb::dict d;
    d["commands"] = s.commands;
    d["steps"] = s.steps;
    d["compiles"] = s.compiles;
    d["allocations"] = s.allocations;
    d["program_hits"] = s.program_hits;
    d["edge_casts"] = s.edge_casts;
    d["inside_casts"] = s.inside_casts;
    d["cast_bytes"] = s.cast_bytes;
    return d;
  });
  m.def("_reset_stats", &runtime::reset_stats);
  m.def(
      "_set_context",
      [](std::optional<int> mode, std::optional<std::string> device, std::optional<bool> strict,
         std::optional<std::string> half) {
        ContextOptions o;
        UNDERTOW_CHECK(!mode || *mode == GRAPH_MODE || *mode == PYNATIVE_MODE, ValueError,
                       "set_context: mode must be GRAPH_MODE (0) or PYNATIVE_MODE (1), got {}", *mode);
        if (mode) o.mode = static_cast<Mode>(*mode);
        o.device_target = std::move(device);
        o.strict_device = strict;
        o.half = std::move(half);
        set_context(o);
      },
      "mode"_a.none() = nb::none(), "device_target"_a.none() = nb::none(), "strict_device"_a.none() = nb::none(),
      "half"_a.none() = nb::none());
  m.def("_context", &context_value, "key"_a);
  m.def("_set_seed", [](long long seed) { set_seed(seed); }, "seed"_a);
  m.def("_value_and_grad", &value_and_grad);
  nb::class_<CompiledFunction>(m, "CompiledFunction", nb::type_slots(compiled_slots))
      .def(nb::init<std::string, nb::callable>())
      .def("run", &CompiledFunction::run)
      .def("compile", &CompiledFunction::compile)
      .def("retrace", &CompiledFunction::retrace);
  m.def("_attribute_changes", &attribute_changes);
  bind_control(m);
}

}  // namespace undertow::python
