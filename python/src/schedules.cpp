// SPDX-License-Identifier: Apache-2.0
// nn: learning rates as cells and as lists.
#include "python/src/optim_args.h"
#include "undertow/base/check.h"
#include "undertow/train/schedule.h"

namespace undertow::python {
namespace {

using Py = nb::handle;
template <typename T>
using Self = nb::pointer_and_handle<T>;

template <typename T>
void bind_decay(nb::module_& m, const char* name, const char* doc) {
  cell_class<T, nn::LearningRateScheduleCell>(m, name, doc)
      .def(
          "__init__",
          [name](Self<T> self, Py lr, Py rate, Py steps, Py stair) {
            construct_cell(self,
                           nn::DecayOptions{to_float(lr, name, "learning_rate"), to_float(rate, name, "decay_rate"),
                                            to_int(steps, name, "decay_steps"), to_bool(stair, name, "is_stair")});
          },
          "learning_rate"_a, "decay_rate"_a, "decay_steps"_a, "is_stair"_a = false);
}

void bind_schedule_cells(nb::module_& m) {
  cell_class<nn::LearningRateScheduleCell, nn::Cell>(
      m, "LearningRateSchedule",
      "Base of schedules: derive from it and define construct(global_step), which gives the learning rate of a step. "
      "It is part of the compiled step; global_step is an int32 Tensor of shape (1,), counted from 0.")
      .def("__init__", [](Self<nn::LearningRateScheduleCell> self) { construct_cell(self); })
      .def("construct", [](const nn::LearningRateScheduleCell& self, const nb::args&) {
        PyErr_Format(PyExc_NotImplementedError, "%s must define construct(self, global_step)", self.cls_name().c_str());
        throw nb::python_error();
      });
  bind_decay<nn::ExponentialDecayLRCell>(m, "ExponentialDecayLR", "learning_rate * decay_rate^(step / decay_steps)");
  bind_decay<nn::NaturalExpDecayLRCell>(m, "NaturalExpDecayLR", "learning_rate * e^(-decay_rate * step)");
  bind_decay<nn::InverseDecayLRCell>(m, "InverseDecayLR", "learning_rate / (1 + decay_rate * step / decay_steps)");
  cell_class<nn::CosineDecayLRCell, nn::LearningRateScheduleCell>(
      m, "CosineDecayLR", "min_lr + (max_lr - min_lr) / 2 * (1 + cos(pi * min(step, decay_steps) / decay_steps))")
      .def(
          "__init__",
          [](Self<nn::CosineDecayLRCell> self, Py min, Py max, Py steps) {
            constexpr const char* kName = "CosineDecayLR";
            construct_cell(self, to_float(min, kName, "min_lr"), to_float(max, kName, "max_lr"),
                           to_int(steps, kName, "decay_steps"));
          },
          "min_lr"_a, "max_lr"_a, "decay_steps"_a);
  cell_class<nn::PolynomialDecayLRCell, nn::LearningRateScheduleCell>(
      m, "PolynomialDecayLR",
      "(learning_rate - end_learning_rate) * (1 - min(step, decay_steps) / decay_steps)^power + end_learning_rate")
      .def(
          "__init__",
          [](Self<nn::PolynomialDecayLRCell> self, Py lr, Py end, Py steps, Py power, Py update) {
            constexpr const char* kName = "PolynomialDecayLR";
            construct_cell(self, to_float(lr, kName, "learning_rate"), to_float(end, kName, "end_learning_rate"),
                           to_int(steps, kName, "decay_steps"), to_float(power, kName, "power"),
                           to_bool(update, kName, "update_decay_steps"));
          },
          "learning_rate"_a, "end_learning_rate"_a, "decay_steps"_a, "power"_a, "update_decay_steps"_a = false);
  cell_class<nn::WarmUpLRCell, nn::LearningRateScheduleCell>(m, "WarmUpLR",
                                                             "learning_rate * min(step, warmup_steps) / warmup_steps")
      .def(
          "__init__",
          [](Self<nn::WarmUpLRCell> self, Py lr, Py steps) {
            construct_cell(self, to_float(lr, "WarmUpLR", "learning_rate"), to_int(steps, "WarmUpLR", "warmup_steps"));
          },
          "learning_rate"_a, "warmup_steps"_a);
}

void bind_epoch_decay(nb::module_& m, const char* name, std::vector<double> (*f)(const nn::EpochDecay&),
                      const char* doc) {
  m.def(
      name,
      [name, f](Py lr, Py rate, Py total, Py per_epoch, Py epochs, Py stair) {
        return f({to_float(lr, name, "learning_rate"), to_float(rate, name, "decay_rate"),
                  to_int(total, name, "total_step"), to_int(per_epoch, name, "step_per_epoch"),
                  to_int(epochs, name, "decay_epoch"), to_bool(stair, name, "is_stair")});
      },
      "learning_rate"_a, "decay_rate"_a, "total_step"_a, "step_per_epoch"_a, "decay_epoch"_a, "is_stair"_a = false,
      doc);
}

std::vector<nb::object> sequence(Py o, const char* argument) {
  UNDERTOW_CHECK(PyList_Check(o.ptr()) || PyTuple_Check(o.ptr()), TypeError,
                 "piecewise_constant_lr: '{}' must be a list or a tuple, got {}", argument, type_name_of(o));
  std::vector<nb::object> out;
  for (Py item : nb::borrow<nb::object>(o)) out.push_back(nb::borrow(item));
  return out;
}

void bind_schedule_lists(nb::module_& m) {
  m.def(
      "piecewise_constant_lr",
      [](Py milestone, Py rates) {
        std::vector<std::int64_t> steps;
        std::vector<double> values;
        for (const nb::object& o : sequence(milestone, "milestone"))
          steps.push_back(to_int(o, "piecewise_constant_lr", "milestone"));
        for (const nb::object& o : sequence(rates, "learning_rates"))
          values.push_back(to_float(o, "piecewise_constant_lr", "learning_rates"));
        return nn::piecewise_constant_lr(steps, values);
      },
      "milestone"_a, "learning_rates"_a, "learning_rates[i] up to step milestone[i], one value a step.");
  bind_epoch_decay(m, "exponential_decay_lr", &nn::exponential_decay_lr,
                   "learning_rate * decay_rate^(epoch / decay_epoch), one value a step.");
  bind_epoch_decay(m, "natural_exp_decay_lr", &nn::natural_exp_decay_lr,
                   "learning_rate * e^(-decay_rate * epoch), one value a step.");
  bind_epoch_decay(m, "inverse_decay_lr", &nn::inverse_decay_lr,
                   "learning_rate / (1 + decay_rate * epoch / decay_epoch), one value a step.");
  m.def(
      "cosine_decay_lr",
      [](Py min, Py max, Py total, Py per_epoch, Py epochs) {
        constexpr const char* kName = "cosine_decay_lr";
        return nn::cosine_decay_lr(to_float(min, kName, "min_lr"), to_float(max, kName, "max_lr"),
                                   to_int(total, kName, "total_step"), to_int(per_epoch, kName, "step_per_epoch"),
                                   to_int(epochs, kName, "decay_epoch"));
      },
      "min_lr"_a, "max_lr"_a, "total_step"_a, "step_per_epoch"_a, "decay_epoch"_a,
      "min_lr + (max_lr - min_lr) / 2 * (1 + cos(pi * min(epoch, decay_epoch) / decay_epoch)), one value a step.");
  m.def(
      "polynomial_decay_lr",
      [](Py lr, Py end, Py total, Py per_epoch, Py epochs, Py power, Py update) {
        constexpr const char* kName = "polynomial_decay_lr";
        return nn::polynomial_decay_lr(to_float(lr, kName, "learning_rate"), to_float(end, kName, "end_learning_rate"),
                                       to_int(total, kName, "total_step"), to_int(per_epoch, kName, "step_per_epoch"),
                                       to_int(epochs, kName, "decay_epoch"), to_float(power, kName, "power"),
                                       to_bool(update, kName, "update_decay_epoch"));
      },
      "learning_rate"_a, "end_learning_rate"_a, "total_step"_a, "step_per_epoch"_a, "decay_epoch"_a, "power"_a,
      "update_decay_epoch"_a = false,
      "(learning_rate - end) * (1 - min(epoch, decay_epoch) / decay_epoch)^power + end, one value a step.");
  m.def(
      "warmup_lr",
      [](Py lr, Py total, Py per_epoch, Py epochs) {
        constexpr const char* kName = "warmup_lr";
        return nn::warmup_lr(to_float(lr, kName, "learning_rate"), to_int(total, kName, "total_step"),
                             to_int(per_epoch, kName, "step_per_epoch"), to_int(epochs, kName, "warmup_epoch"));
      },
      "learning_rate"_a, "total_step"_a, "step_per_epoch"_a, "warmup_epoch"_a,
      "learning_rate * min(epoch, warmup_epoch) / warmup_epoch, one value a step.");
}

}  // namespace

void bind_schedules(nb::module_& m) {
  bind_schedule_cells(m);
  bind_schedule_lists(m);
}

}  // namespace undertow::python
