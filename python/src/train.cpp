// SPDX-License-Identifier: Apache-2.0
// Model, callbacks and metrics. A run releases the GIL as a whole; hooks and cells that are written in Python take it.
#include <nanobind/stl/array.h>
#include <nanobind/stl/map.h>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <set>

#include "python/src/cells.h"
#include "python/src/run_context.h"
#include "undertow/base/check.h"
#include "undertow/train/model.h"

namespace undertow::python {
namespace {

using nn::Metric;

// ---- Callbacks

constexpr std::array kHooks = {"on_train_begin",
                               "on_train_epoch_begin",
                               "on_train_step_begin",
                               "on_train_step_end",
                               "on_train_epoch_end",
                               "on_train_end",
                               "on_eval_begin",
                               "on_eval_epoch_begin",
                               "on_eval_step_begin",
                               "on_eval_step_end",
                               "on_eval_epoch_end",
                               "on_eval_end",
                               "begin",
                               "epoch_begin",
                               "step_begin",
                               "step_end",
                               "epoch_end",
                               "end",
                               "__enter__",
                               "__exit__"};
/// A C++ callback class that Python has derived from. Which hooks Python overrides is found out once per run, so that
/// the others cost no GIL.
template <typename Base>
class PyCallback : public Base {
 public:
  using Base::Base;
#define UNDERTOW_HOOK(index, name)                     \
  void name(RunContext& c) override {                  \
    if (!this->template call<index>(c)) Base::name(c); \
  }
  UNDERTOW_HOOK(0, on_train_begin)
  UNDERTOW_HOOK(1, on_train_epoch_begin)
  UNDERTOW_HOOK(2, on_train_step_begin)
  UNDERTOW_HOOK(3, on_train_step_end)
  UNDERTOW_HOOK(4, on_train_epoch_end)
  UNDERTOW_HOOK(5, on_train_end)
  UNDERTOW_HOOK(6, on_eval_begin)
  UNDERTOW_HOOK(7, on_eval_epoch_begin)
  UNDERTOW_HOOK(8, on_eval_step_begin)
  UNDERTOW_HOOK(9, on_eval_step_end)
  UNDERTOW_HOOK(10, on_eval_epoch_end)
  UNDERTOW_HOOK(11, on_eval_end)
  UNDERTOW_HOOK(12, begin)
  UNDERTOW_HOOK(13, epoch_begin)
  UNDERTOW_HOOK(14, step_begin)
  UNDERTOW_HOOK(15, step_end)
  UNDERTOW_HOOK(16, epoch_end)
  UNDERTOW_HOOK(17, end)
#undef UNDERTOW_HOOK

  void enter() override {
    PyObject* self = object();
    if (!self) return Base::enter();
    nb::gil_scoped_acquire gil;
    overridden_ = 0;
    for (std::size_t i = 0; i < kHooks.size(); ++i)
      if (override_of(self, kHooks[i])) overridden_ |= 1u << i;
    if (overridden_ & (1u << 18)) nb::handle(self).attr("__enter__")();
    else Base::enter();
  }
  void exit() override {
    PyObject* self = object();
    if (!self) return Base::exit();
    nb::gil_scoped_acquire gil;
    context_.end();
    if (overridden_ & (1u << 19)) nb::handle(self).attr("__exit__")(nb::none(), nb::none(), nb::none());
    else Base::exit();
  }
  std::string cls_name() const override {
    PyObject* self = object();
    if (!self) return Base::cls_name();
    nb::gil_scoped_acquire gil;
    return python_class_name(self);
  }

 private:
  PyObject* object() const { return static_cast<PyObject*>(this->self_py()); }
  template <std::size_t I>
  bool call(RunContext& c) {
    if (!(overridden_ & (1u << I))) return false;
    nb::gil_scoped_acquire gil;
    nb::handle(object()).attr(kHooks[I])(context_.object_for(c));
    return true;
  }
  std::uint32_t overridden_ = 0;
  ContextHolder context_;
};

template <typename T, typename... Args>
void construct_callback(const nb::pointer_and_handle<T>& self, Args&&... args) {
  if (nb::inst_python_derived(self.h)) new (self.p) PyCallback<T>(std::forward<Args>(args)...);
  else new (self.p) T(std::forward<Args>(args)...);
}

void bind_callbacks(nb::module_& m) {
  nb::class_<Callback, PyCallback<Callback>> c(
      m, "Callback", nb::intrusive_ptr<Callback>([](Callback* cb, PyObject* self) noexcept { cb->set_self_py(self); }),
      nb::dynamic_attr(), nb::is_weak_referenceable(),
      "What runs on the host around epochs and steps: derive from it and override on_train_begin, "
      "on_train_epoch_begin, "
      "on_train_step_begin, on_train_step_end, on_train_epoch_end, on_train_end, or the same with on_eval_. Each gets "
      "a "
      "RunContext. With the sink on, step hooks run once a command.");
  c.def("__init__", [](nb::pointer_and_handle<Callback> self) { construct_callback(self); });
  // The base hooks call the older names, which a Python class may have overridden: they are virtual from there on.
  const auto base = [&c](const char* name, const char* legacy) {
    c.def(
        name,
        [legacy](nb::handle self, nb::handle context) {
          if (override_of(self.ptr(), legacy)) self.attr(legacy)(context);
        },
        "run_context"_a);
  };
  base("on_train_begin", "begin"), base("on_eval_begin", "begin");
  base("on_train_epoch_begin", "epoch_begin"), base("on_eval_epoch_begin", "epoch_begin");
  base("on_train_step_begin", "step_begin"), base("on_eval_step_begin", "step_begin");
  base("on_train_step_end", "step_end"), base("on_eval_step_end", "step_end");
  base("on_train_epoch_end", "epoch_end"), base("on_eval_epoch_end", "epoch_end");
  base("on_train_end", "end"), base("on_eval_end", "end");
  for (const char* name : {"begin", "epoch_begin", "step_begin", "step_end", "epoch_end", "end"})
    c.def(name, [](nb::handle, nb::handle) {}, "run_context"_a);
  c.def("__enter__", [](nb::handle self) { return nb::borrow(self); });
  c.def("__exit__", [](nb::handle, const nb::args&) {});

  nb::class_<LossMonitorImpl, Callback, PyCallback<LossMonitorImpl>> loss(
      m, "LossMonitor",
      "Prints `epoch: E step: S, loss is L` every per_print_times steps (0: never), and ends the run "
      "with a ValueError at a loss that is not finite.");
  loss.def(
      "__init__",
      [](nb::pointer_and_handle<LossMonitorImpl> self, std::int64_t every) { construct_callback(self, every); },
      "per_print_times"_a = 1);
  loss.def(
      "on_train_begin",
      [](LossMonitorImpl& self, const ContextObject& c) { self.LossMonitorImpl::on_train_begin(c.get()); },
      "run_context"_a);
  loss.def(
      "on_train_step_end",
      [](LossMonitorImpl& self, const ContextObject& c) { self.LossMonitorImpl::on_train_step_end(c.get()); },
      "run_context"_a);
  nb::class_<TimeMonitorImpl, Callback, PyCallback<TimeMonitorImpl>> time(
      m, "TimeMonitor", "Prints `Train epoch time: T ms, per step time: S ms` after each epoch.");
  time.def(
      "__init__",
      [](nb::pointer_and_handle<TimeMonitorImpl> self, std::optional<std::int64_t> size, bool data_time) {
        construct_callback(self, size, data_time);
      },
      "data_size"_a.none() = nb::none(), "data_time"_a = false);
  time.def(
      "epoch_begin", [](TimeMonitorImpl& self, const ContextObject& c) { self.TimeMonitorImpl::epoch_begin(c.get()); },
      "run_context"_a);
  time.def(
      "epoch_end", [](TimeMonitorImpl& self, const ContextObject& c) { self.TimeMonitorImpl::epoch_end(c.get()); },
      "run_context"_a);
}

// ---- Metrics

/// A metric written in Python: update(*outputs), eval(), clear().
class PyMetric : public Metric {
 public:
  void clear() override { call("clear"); }
  void update(const nn::EvalBatch& batch) override {
    nb::gil_scoped_acquire gil;
    const nb::handle self = object();
    const nb::object indexes = nb::getattr(self, "_indexes", nb::none());
    nb::list args;
    if (!indexes.is_none()) {
      for (nb::handle i : indexes) args.append(wrap(batch.all.at(nb::cast<std::size_t>(i))));
    } else {
      args.append(wrap(batch.output));
      args.append(wrap(batch.label));
    }
    self.attr("update")(*args);
  }
  double eval() override {
    nb::gil_scoped_acquire gil;
    const nb::object value = object().attr("eval")();
    nb::setattr(object(), "_result", value);
    double number = 0;
    return nb::try_cast(value, number) ? number : 0;  // Model.eval takes _result
  }
  std::string cls_name() const override {
    nb::gil_scoped_acquire gil;
    return python_class_name(object().ptr());
  }

 private:
  nb::handle object() const { return static_cast<PyObject*>(self_py()); }
  void call(const char* name) {
    nb::gil_scoped_acquire gil;
    object().attr(name)();
  }
};

void bind_metrics(nb::module_& m) {
  const auto abstract = [](const char* what) {
    return [what](nb::handle self, const nb::args&) {
      throw TypeError(fmt::format("{} must define {}()", type_name_of(self), what));
    };
  };
  nb::class_<Metric, PyMetric> c(
      m, "Metric", nb::intrusive_ptr<Metric>([](Metric* o, PyObject* self) noexcept { o->set_self_py(self); }),
      nb::dynamic_attr(), "Base of metrics: derive from it and define clear(), update(output, label) and eval().");
  c.def(nb::init<>());
  c.def("clear", abstract("clear")).def("update", abstract("update")).def("eval", abstract("eval"));
  c.def(
      "set_indexes",
      [](nb::handle self, nb::handle indexes) {
        nb::setattr(self, "_indexes", nb::list(indexes));
        return nb::borrow(self);
      },
      "indexes"_a, "Which of (loss, output, label) update() gets.");
  const auto convert = [](nb::handle o) { return unwrap(o) ? *unwrap(o) : to_tensor(o); };
  nb::class_<nn::AccuracyImpl, Metric> accuracy(m, "Accuracy", "Share of rows whose largest output is at the label.");
  accuracy.def(nb::init<const std::string&>(), "eval_type"_a = "classification")
      .def("clear", &nn::AccuracyImpl::clear)
      .def("eval", &nn::AccuracyImpl::eval)
      .def("update", [convert](nn::AccuracyImpl& self, nb::handle output, nb::handle label) {
        nn::EvalBatch b;
        b.output = convert(output);
        b.label = convert(label);
        b.rows = b.label.ndim() ? b.label.shape(0) : 1;
        self.update(b);
      });
  nb::class_<nn::LossImpl, Metric> loss(m, "Loss", "Mean loss over rows.");
  loss.def(nb::init<>())
      .def("clear", &nn::LossImpl::clear)
      .def("eval", &nn::LossImpl::eval)
      .def("update", [convert](nn::LossImpl& self, nb::handle value) {
        nn::EvalBatch b;
        b.loss = convert(value);
        b.rows = b.loss.ndim() ? b.loss.shape(0) : 1;
        self.update(b);
      });
  m.def("get_metric", &nn::get_metric);
}

// ---- Model

/// The runs in progress: a thread that trains must be out of the pipeline before the interpreter ends.
struct Runs {
  std::mutex mutex;
  std::condition_variable ended;
  std::multiset<Model*> models;
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
  explicit CountedRun(Model& m) : model_(&m) {
    const std::lock_guard lock(runs().mutex);
    runs().models.insert(model_);
    ++runs().count;
    ++runs_of_this_thread;
  }
  ~CountedRun() {
    const std::lock_guard lock(runs().mutex);
    runs().models.erase(runs().models.find(model_));
    --runs().count;
    --runs_of_this_thread;
    runs().ended.notify_all();
  }
  CountedRun(const CountedRun&) = delete;

 private:
  Model* model_;
};

struct RunScope {
  explicit RunScope(Model& m) : counted(m) {}
  CountedRun counted;
  nb::gil_scoped_release release;
};

/// Asks every run to stop at its next step border, and waits for that.
void stop_runs() {
  nb::gil_scoped_release release;
  std::unique_lock lock(runs().mutex);
  for (int i = 0; i < 100 && !runs().models.empty(); ++i) {
    for (Model* m : runs().models) m->request_stop();
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

/// A callback or a cell may hold its model: then both go together.
int model_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (!nb::inst_ready(self)) return 0;
  const Model& m = *nb::inst_ptr<Model>(self);
  if (m.network()) Py_VISIT(static_cast<PyObject*>(m.network()->self_py()));
  if (m.loss_fn()) Py_VISIT(static_cast<PyObject*>(m.loss_fn()->self_py()));
  if (m.optimizer()) Py_VISIT(static_cast<PyObject*>(m.optimizer()->self_py()));
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
             std::array<int, 3> indexes, std::string amp_level) {
            ModelOptions o;
            for (const auto& [name, metric] : metrics) o.metrics.emplace_back(name, metric);
            o.eval_network = std::move(eval_network);
            o.eval_indexes = indexes;
            o.amp_level = std::move(amp_level);
            new (self) Model(std::move(network), std::move(loss), std::move(optimizer), std::move(o));
          },
          nb::arg(), nb::arg().none(), nb::arg().none(), nb::arg(), nb::arg().none(), nb::arg(), nb::arg())
      .def("train",
           [](Model& self, std::int64_t epoch, const data::Dataset& dataset, std::vector<Ref<Callback>> callbacks,
              bool sink, std::int64_t sink_size, std::int64_t initial_epoch) {
             const RunScope run(self);
             self.train(epoch, dataset, {std::move(callbacks), sink, sink_size, initial_epoch, signal_poll()});
           })
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

}  // namespace

bool other_thread_runs() { return runs().count.load(std::memory_order_relaxed) > runs_of_this_thread; }

void bind_train(nb::module_& m, nb::module_& layers) {
  bind_run_context(m);
  bind_callbacks(m);
  bind_metrics(layers);
  bind_model(m);
}

}  // namespace undertow::python
