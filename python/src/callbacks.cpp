// SPDX-License-Identifier: Apache-2.0
// Callbacks: C++ ones, and those that Python derives from them.
#include <array>

#include "python/src/cells.h"
#include "python/src/run_context.h"
#include "undertow/base/check.h"
#include "undertow/train/monitors.h"

namespace undertow::python {
namespace {

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

/// Binds a hook that a C++ class has of its own: it runs the C++ one even where a Python class overrides it.
#define UNDERTOW_OWN_HOOK(type, hook) \
  c.def(#hook, [](type& self, const ContextObject& x) { self.type::hook(x.get()); }, "run_context"_a)

void bind_printing(nb::module_& m) {
  {
    nb::class_<LossMonitorImpl, Callback, PyCallback<LossMonitorImpl>> c(
        m, "LossMonitor",
        "Prints `epoch: E step: S, loss is L` every per_print_times steps (0: never), and ends the run with a "
        "ValueError at a loss that is not finite.");
    c.def(
        "__init__",
        [](nb::pointer_and_handle<LossMonitorImpl> self, std::int64_t every) { construct_callback(self, every); },
        "per_print_times"_a = 1);
    UNDERTOW_OWN_HOOK(LossMonitorImpl, on_train_begin);
    UNDERTOW_OWN_HOOK(LossMonitorImpl, on_train_step_end);
  }
  nb::class_<TimeMonitorImpl, Callback, PyCallback<TimeMonitorImpl>> c(
      m, "TimeMonitor", "Prints `Train epoch time: T ms, per step time: S ms` after each epoch.");
  c.def(
      "__init__",
      [](nb::pointer_and_handle<TimeMonitorImpl> self, std::optional<std::int64_t> size, bool data_time) {
        construct_callback(self, size, data_time);
      },
      "data_size"_a.none() = nb::none(), "data_time"_a = false);
  UNDERTOW_OWN_HOOK(TimeMonitorImpl, epoch_begin);
  UNDERTOW_OWN_HOOK(TimeMonitorImpl, epoch_end);
}

void bind_monitors(nb::module_& m) {
  {
    nb::class_<EarlyStoppingImpl, Callback, PyCallback<EarlyStoppingImpl>> c(
        m, "EarlyStopping",
        "Ends the run when `monitor` (\"loss\", or a result of Model.fit's evaluation) has not improved by min_delta "
        "for `patience` epochs. With `baseline`, only values better than it start the patience anew; with "
        "restore_best_weights the best epoch's weights come back.");
    c.def(
        "__init__",
        [](nb::pointer_and_handle<EarlyStoppingImpl> self, std::string monitor, double delta, std::int64_t patience,
           bool verbose, std::string mode, std::optional<double> baseline, bool restore) {
          construct_callback(self, EarlyStoppingOptions{std::move(monitor), delta, patience, verbose, std::move(mode),
                                                        baseline, restore});
        },
        "monitor"_a = "eval_loss", "min_delta"_a = 0, "patience"_a = 0, "verbose"_a = false, "mode"_a = "auto",
        "baseline"_a.none() = nb::none(), "restore_best_weights"_a = false);
    c.def_prop_ro("stopped_epoch", &EarlyStoppingImpl::stopped_epoch);
    UNDERTOW_OWN_HOOK(EarlyStoppingImpl, on_train_begin);
    UNDERTOW_OWN_HOOK(EarlyStoppingImpl, on_train_epoch_end);
    UNDERTOW_OWN_HOOK(EarlyStoppingImpl, on_train_end);
  }
  {
    nb::class_<ReduceLROnPlateauImpl, Callback, PyCallback<ReduceLROnPlateauImpl>> c(
        m, "ReduceLROnPlateau",
        "Multiplies the learning rate by `factor` (down to min_lr) when `monitor` has not improved by min_delta for "
        "`patience` epochs; `cooldown` epochs after that do not count.");
    c.def(
        "__init__",
        [](nb::pointer_and_handle<ReduceLROnPlateauImpl> self, std::string monitor, double factor,
           std::int64_t patience, bool verbose, std::string mode, double delta, std::int64_t cooldown, double min_lr) {
          construct_callback(self, ReduceLROnPlateauOptions{std::move(monitor), factor, patience, verbose,
                                                            std::move(mode), delta, cooldown, min_lr});
        },
        "monitor"_a = "eval_loss", "factor"_a = 0.1, "patience"_a = 10, "verbose"_a = false, "mode"_a = "auto",
        "min_delta"_a = 1e-4, "cooldown"_a = 0, "min_lr"_a = 0);
    UNDERTOW_OWN_HOOK(ReduceLROnPlateauImpl, on_train_begin);
    UNDERTOW_OWN_HOOK(ReduceLROnPlateauImpl, on_train_epoch_end);
  }
  {
    nb::class_<LearningRateSchedulerImpl, Callback, PyCallback<LearningRateSchedulerImpl>> c(
        m, "LearningRateScheduler",
        "Sets the learning rate to learning_rate_function(rate, cur_step_num) after each step (each command with the "
        "sink on).");
    c.def(
        "__init__",
        [](nb::pointer_and_handle<LearningRateSchedulerImpl> self, nb::object f) {
          UNDERTOW_CHECK(PyCallable_Check(f.ptr()), TypeError,
                         "LearningRateScheduler: 'learning_rate_function' must be a function, got {}", type_name_of(f));
          // Held where Python's collector sees it; C++ only borrows it.
          self.h.attr("__dict__")["learning_rate_function"] = f;
          construct_callback(self, [f = nb::handle(f)](double rate, std::int64_t step) {
            nb::gil_scoped_acquire gil;
            return nb::cast<double>(nb::float_(f(rate, step)));
          });
        },
        "learning_rate_function"_a);
    UNDERTOW_OWN_HOOK(LearningRateSchedulerImpl, step_end);
  }
  nb::class_<HistoryImpl, Callback, PyCallback<HistoryImpl>> c(
      m, "History", "Keeps each epoch's mean output (\"net_output\") and evaluation results in `history`.");
  c.def("__init__", [](nb::pointer_and_handle<HistoryImpl> self) { construct_callback(self); });
  c.def_prop_ro("epoch", [](const HistoryImpl& h) {
    nb::dict d;
    d["epoch"] = nb::cast(h.epoch());
    return d;
  });
  c.def_prop_ro("history", [](const HistoryImpl& h) {
    nb::dict d;
    for (const auto& [name, values] : h.history()) d[name.c_str()] = nb::cast(values);
    return d;
  });
  UNDERTOW_OWN_HOOK(HistoryImpl, begin);
  UNDERTOW_OWN_HOOK(HistoryImpl, epoch_end);
}
#undef UNDERTOW_OWN_HOOK

}  // namespace

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
  // Many scripts derive from Callback without calling its constructor, which has nothing to be told.
  m.def("_begin_callback", [](nb::handle object) {
    if (nb::inst_ready(object)) return;
    if (Py_TYPE(object.ptr())->tp_base != reinterpret_cast<PyTypeObject*>(nb::type<Callback>().ptr()))
      throw RuntimeError(fmt::format("{}.__init__ has not called super().__init__()", type_name_of(object)));
    nb::type<Callback>().attr("__init__")(object);
  });
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
  bind_printing(m);
  bind_monitors(m);
}

}  // namespace undertow::python
