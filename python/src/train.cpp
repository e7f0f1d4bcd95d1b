// SPDX-License-Identifier: Apache-2.0
// Model. A run releases the GIL as a whole; hooks and cells that are written in Python take it.
#include <nanobind/stl/array.h>
#include <nanobind/stl/map.h>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <list>
#include <mutex>

#include "python/src/cells.h"
#include "python/src/control.h"
#include "python/src/run_context.h"
#include "undertow/base/check.h"
#include "undertow/train/functional.h"
#include "undertow/train/model.h"

namespace undertow::python {
namespace {

using nn::Metric;

// ---- Model

/// The runs in progress: a thread that trains must be out of the pipeline before the interpreter ends.
struct Runs {
  std::mutex mutex;
  std::condition_variable ended;
  std::list<std::function<void()>> stops;  // how each one is asked to stop
  std::atomic<int> count{0};
};
Runs& runs() {
  static auto* r = new Runs;
  return *r;
}

thread_local int runs_of_this_thread = 0;

/// Counted from before the GIL is given up until it is back: who waits for the run then finds its thread in Python.
class CountedRun {
 public:
  explicit CountedRun(std::function<void()> request_stop) {
    const std::lock_guard lock(runs().mutex);
    place_ = runs().stops.insert(runs().stops.end(), std::move(request_stop));
    ++runs().count;
    ++runs_of_this_thread;
  }
  ~CountedRun() {
    const std::lock_guard lock(runs().mutex);
    runs().stops.erase(place_);
    --runs().count;
    --runs_of_this_thread;
    runs().ended.notify_all();
  }
  CountedRun(const CountedRun&) = delete;

 private:
  std::list<std::function<void()>>::iterator place_;
};

struct RunScope {
  template <typename Runner>
  explicit RunScope(Runner& r) : counted([&r] { r.request_stop(); }) {}
  CountedRun counted;
  nb::gil_scoped_release release;
};

/// Asks every run to stop at its next step border, and waits for that.
void stop_runs() {
  nb::gil_scoped_release release;
  std::unique_lock lock(runs().mutex);
  for (int i = 0; i < 100 && !runs().stops.empty(); ++i) {
    for (const auto& stop : runs().stops) stop();
    runs().ended.wait_for(lock, std::chrono::milliseconds(50));
  }
}

/// Signals are handled by Python's main thread only; elsewhere there is nothing to ask.
PollHook signal_poll() {
  return [] {
    nb::gil_scoped_acquire gil;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  };
}

void print_python_line(std::string_view line) {
  nb::gil_scoped_acquire gil;
  PyObject* out = PySys_GetObject("stdout");  // borrowed
  if (!out || out == Py_None) return;
  const nb::handle file(out);
  file.attr("write")(nb::str((std::string(line) + "\n").c_str()));
  file.attr("flush")();
}

/// What a manager said, which may be written in Python.
class GivenScale final : public LossScaleManagerImpl {
 public:
  GivenScale(double scale, Ref<nn::Cell> update) : scale_(scale), update_(std::move(update)) {}
  double get_loss_scale() const override { return scale_; }
  void update_loss_scale(bool) override {}
  Ref<nn::Cell> get_update_cell() const override { return update_; }

 private:
  double scale_;
  Ref<nn::Cell> update_;
};

/// A callback or a cell may hold its model: then both go together.
int model_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (!nb::inst_ready(self)) return 0;
  const Model& m = *nb::inst_ptr<Model>(self);
  if (m.network()) Py_VISIT(static_cast<PyObject*>(m.network()->self_py()));
  if (m.loss_fn()) Py_VISIT(static_cast<PyObject*>(m.loss_fn()->self_py()));
  if (m.optimizer()) Py_VISIT(static_cast<PyObject*>(m.optimizer()->self_py()));
  if (m.loss_scale_update()) Py_VISIT(static_cast<PyObject*>(m.loss_scale_update()->self_py()));
  for (const nn::NamedMetric& named : m.metrics()) Py_VISIT(static_cast<PyObject*>(named.metric->self_py()));
  return 0;
}
PyType_Slot model_slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(model_traverse)}, {0, nullptr}};

void bind_model(nb::module_& m) {
  set_line_printer(&print_python_line);
  nb::class_<Model>(m, "Model", nb::type_slots(model_slots))
      .def(
          "__init__",
          [](Model* self, Ref<nn::Cell> network, Ref<nn::Cell> loss, Ref<nn::OptimizerCell> optimizer,
             const std::vector<std::pair<std::string, Ref<Metric>>>& metrics, Ref<nn::Cell> eval_network,
             std::array<int, 3> indexes, std::string amp_level, std::optional<bool> keep_batchnorm_fp32,
             bool scale_by_level, std::optional<double> loss_scale, Ref<nn::Cell> update) {
            ModelOptions o;
            if (loss_scale) o.loss_scale_manager = make_ref<GivenScale>(*loss_scale, std::move(update));
            else if (!scale_by_level) o.loss_scale_manager = Ref<LossScaleManagerImpl>();
            for (const auto& [name, metric] : metrics) o.metrics.emplace_back(name, metric);
            o.eval_network = std::move(eval_network);
            o.eval_indexes = indexes;
            o.amp_level = std::move(amp_level);
            o.keep_batchnorm_fp32 = keep_batchnorm_fp32;
            new (self) Model(std::move(network), std::move(loss), std::move(optimizer), std::move(o));
          },
          nb::arg(), nb::arg().none(), nb::arg().none(), nb::arg(), nb::arg().none(), nb::arg(), nb::arg(),
          nb::arg().none(), nb::arg(), nb::arg().none(), nb::arg().none())
      .def("train_network", [](const Model& self) { return described(self.train_network()); })
      .def("train",
           [](Model& self, std::int64_t epoch, const data::Dataset& dataset, std::vector<Ref<Callback>> callbacks,
              bool sink, std::int64_t sink_size, std::int64_t initial_epoch) {
             const RunScope run(self);
             self.train(epoch, dataset, {std::move(callbacks), sink, sink_size, initial_epoch, signal_poll()});
           })
      .def("fit",
           [](Model& self, std::int64_t epoch, const data::Dataset& dataset, const data::Dataset& valid,
              std::vector<Ref<Callback>> callbacks, bool sink, bool valid_sink, std::int64_t sink_size,
              std::int64_t initial_epoch, std::int64_t frequency, std::vector<std::int64_t> epochs) {
             const RunScope run(self);
             self.fit(epoch, dataset, valid,
                      {std::move(callbacks), sink, sink_size, initial_epoch, signal_poll(), frequency,
                       std::move(epochs), valid_sink});
           })
      .def(
          "build",
          [](Model& self, const std::optional<data::Dataset>& dataset, const std::optional<data::Dataset>& valid) {
            const RunScope run(self);
            self.build(dataset ? &*dataset : nullptr, valid ? &*valid : nullptr);
          },
          nb::arg().none(), nb::arg().none())
      .def("eval",
           [](Model& self, const data::Dataset& dataset, std::vector<Ref<Callback>> callbacks, bool sink) {
             const RunScope run(self);
             return self.eval(dataset, {std::move(callbacks), sink, signal_poll()});
           })
      .def("predict",
           [](Model& self, const std::vector<Tensor>& inputs) {
             std::vector<Tensor> out;
             {
               nb::gil_scoped_release release;
               out = self.predict(inputs);
             }
             return out;
           })
      .def("request_stop", &Model::request_stop);
  m.def("_stop_runs", &stop_runs);
}

/// A user's step: `build(columns) -> tensors` is Python, and runs while tracing.
class SunkFunction {
 public:
  SunkFunction(nb::callable build, const data::Dataset& dataset, std::int64_t sink_size)
      : build_(std::move(build)),
        sink_(
            [this](const std::vector<Tensor>& columns) {
              nb::gil_scoped_acquire gil;
              const PrintScope prints;
              return nb::cast<std::vector<Tensor>>(build_(columns));
            },
            dataset, sink_size) {}
  std::vector<Tensor> run() {
    const RunScope run(sink_);
    const std::uint64_t changes = nn::Cell::changes();
    if (changes != changes_) sink_.retrace();
    changes_ = changes;
    return sink_(signal_poll());
  }
  void retrace() { sink_.retrace(); }

  static int traverse(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    if (nb::inst_ready(self)) Py_VISIT(nb::inst_ptr<SunkFunction>(self)->build_.ptr());
    return 0;
  }
  static int clear(PyObject* self) {
    nb::inst_ptr<SunkFunction>(self)->build_.reset();
    return 0;
  }

 private:
  nb::object build_;
  DataSink sink_;
  std::uint64_t changes_ = 0;
};

PyType_Slot sunk_slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(SunkFunction::traverse)},
                            {Py_tp_clear, reinterpret_cast<void*>(SunkFunction::clear)},
                            {0, nullptr}};

}  // namespace

bool other_thread_runs() { return runs().count.load(std::memory_order_relaxed) > runs_of_this_thread; }

void bind_train(nb::module_& m, nb::module_& layers) {
  bind_run_context(m);
  bind_callbacks(m);
  bind_metrics(layers);
  bind_model(m);
  nb::class_<SunkFunction>(m, "DataSink", nb::type_slots(sunk_slots))
      .def(nb::init<nb::callable, const data::Dataset&, std::int64_t>())
      .def("run", &SunkFunction::run)
      .def("retrace", &SunkFunction::retrace);
}

}  // namespace undertow::python
