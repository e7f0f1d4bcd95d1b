// SPDX-License-Identifier: Apache-2.0
// nn: the wrappers around networks (WithLossCell, TrainOneStepCell, ...), and loss scaling.
#include "python/src/optim_args.h"
#include "undertow/base/check.h"
#include "undertow/train/loss_scale.h"
#include "undertow/train/wrap.h"

namespace undertow::python {
namespace {

using Py = nb::handle;
template <typename T>
using Self = nb::pointer_and_handle<T>;

/// A Cell, or TypeError naming the argument.
Ref<nn::Cell> cell_arg(Py o, const char* cls, const char* argument) {
  UNDERTOW_CHECK(nb::isinstance<nn::Cell>(o), TypeError, "{}: '{}' must be a Cell, got {}", cls, argument,
                 type_name_of(o));
  return Ref<nn::Cell>(nb::inst_ptr<nn::Cell>(o));
}

Ref<nn::OptimizerCell> optimizer_arg(Py o, const char* cls) {
  UNDERTOW_CHECK(nb::isinstance<nn::OptimizerCell>(o), TypeError, "{}: 'optimizer' must be an Optimizer, got {}", cls,
                 type_name_of(o));
  return Ref<nn::OptimizerCell>(nb::inst_ptr<nn::OptimizerCell>(o));
}

void describe(Py self, const nn::TrainOneStepCellImpl& cell, bool has_sens) {
  nb::module_::import_("undertow.nn._training")
      .attr("_describe_step")(self, cell.sens(), has_sens, cell.returns_grad());
}
void describe(Py self, const nn::TrainOneStepWithLossScaleCellImpl& cell) {
  nb::module_::import_("undertow.nn._training").attr("_describe_scaled_step")(self, bool(cell.update_cell()));
}

void bind_wrappers(nb::module_& m) {
  auto with_loss = cell_class<nn::WithLossCellImpl, nn::Cell>(
      m, "WithLossCell", "WithLossCell(backbone, loss_fn): loss_fn(backbone(data), label).");
  with_loss.def(
      "__init__",
      [](Self<nn::WithLossCellImpl> self, Py backbone, Py loss) {
        construct_plain(self, cell_arg(backbone, "WithLossCell", "backbone"),
                        cell_arg(loss, "WithLossCell", "loss_fn"));
      },
      "backbone"_a, "loss_fn"_a);
  with_loss.def_prop_ro("backbone_network", [](const nn::WithLossCellImpl& c) { return c.backbone_network(); });
  cell_class<nn::WithEvalCellImpl, nn::Cell>(
      m, "WithEvalCell", "WithEvalCell(network, loss_fn, add_cast_fp32=False): (loss, network(data), label).")
      .def(
          "__init__",
          [](Self<nn::WithEvalCellImpl> self, Py network, Py loss, Py cast) {
            construct_plain(self, cell_arg(network, "WithEvalCell", "network"),
                            cell_arg(loss, "WithEvalCell", "loss_fn"), to_bool(cast, "WithEvalCell", "add_cast_fp32"));
          },
          "network"_a, "loss_fn"_a, "add_cast_fp32"_a = false);
  auto step = cell_class<nn::TrainOneStepCellImpl, nn::Cell>(
      m, "TrainOneStepCell",
      "TrainOneStepCell(network, optimizer, sens=None, return_grad=False): runs a network that returns the loss, and "
      "updates. Gives what the network gave; with return_grad also {parameter name: gradient}.");
  step.def(
      "__init__",
      [](Self<nn::TrainOneStepCellImpl> self, Py network, Py optimizer, Py sens, bool return_grad) {
        nn::TrainOneStepOptions o;
        o.return_grad = return_grad;
        if (const Tensor* t = unwrap(sens)) o.sens = t->item_as_double();
        else if (!sens.is_none()) o.sens = to_number(sens, "TrainOneStepCell", "sens");
        construct_plain(self, cell_arg(network, "TrainOneStepCell", "network"),
                        optimizer_arg(optimizer, "TrainOneStepCell"), o);
        nb::inst_mark_ready(self.h);
        describe(self.h, *self.p, !sens.is_none());
      },
      "network"_a, "optimizer"_a, "sens"_a.none() = nb::none(), "return_grad"_a = false);
}

void bind_update_cells(nb::module_& m) {
  cell_class<nn::FixedLossScaleUpdateCellImpl, nn::Cell>(
      m, "FixedLossScaleUpdateCell",
      "FixedLossScaleUpdateCell(loss_scale_value): called with (loss_scale, overflow), gives overflow.")
      .def(
          "__init__",
          [](Self<nn::FixedLossScaleUpdateCellImpl> self, Py value) {
            construct_cell(self, to_number(value, "FixedLossScaleUpdateCell", "loss_scale_value"));
          },
          "loss_scale_value"_a)
      .def("get_loss_scale", &nn::FixedLossScaleUpdateCellImpl::get_loss_scale);
  cell_class<nn::DynamicLossScaleUpdateCellImpl, nn::Cell>(
      m, "DynamicLossScaleUpdateCell",
      "DynamicLossScaleUpdateCell(loss_scale_value, scale_factor, scale_window): called with (loss_scale: Parameter, "
      "overflow), assigns the next scale and gives overflow. An overflow divides the scale by scale_factor, down to 1; "
      "scale_window steps without one multiply it.")
      .def(
          "__init__",
          [](Self<nn::DynamicLossScaleUpdateCellImpl> self, Py value, Py factor, Py window) {
            constexpr const char* kName = "DynamicLossScaleUpdateCell";
            construct_cell(self, to_number(value, kName, "loss_scale_value"), to_number(factor, kName, "scale_factor"),
                           to_int(window, kName, "scale_window"));
          },
          "loss_scale_value"_a, "scale_factor"_a, "scale_window"_a)
      .def("get_loss_scale", &nn::DynamicLossScaleUpdateCellImpl::get_loss_scale);
}

/// Tensors of a tree, whatever stands between them.
std::vector<Tensor> tensors_of(Py tree) { return to_value(tree).tensors(); }

void bind_scaled_step(nb::module_& m) {
  using Cell = nn::TrainOneStepWithLossScaleCellImpl;
  auto c = cell_class<Cell, nn::Cell>(
      m, "TrainOneStepWithLossScaleCell",
      "TrainOneStepWithLossScaleCell(network, optimizer, scale_sense): trains a network that returns the loss, on the "
      "loss times a scale; the update is left out where a gradient is not finite. Gives (loss, overflow, scale). "
      "scale_sense: a Tensor of one element, or a cell such as DynamicLossScaleUpdateCell.");
  c.def(
      "__init__",
      [](Self<Cell> self, Py network, Py optimizer, Py sense) {
        constexpr const char* kName = "TrainOneStepWithLossScaleCell";
        const Ref<nn::Cell> net = cell_arg(network, kName, "network");
        const Ref<nn::OptimizerCell> opt = optimizer_arg(optimizer, kName);
        if (const Tensor* t = unwrap(sense)) {
          construct_plain(self, net, opt, *t);
        } else {
          UNDERTOW_CHECK(nb::isinstance<nn::Cell>(sense) && nb::hasattr(sense, "get_loss_scale"), TypeError,
                         "{}: 'scale_sense' must be a Tensor of one element or a Cell with get_loss_scale, such as "
                         "nn.DynamicLossScaleUpdateCell, got {}",
                         kName, type_name_of(sense));
          const double start = to_number(nb::object(sense.attr("get_loss_scale")()), kName, "scale_sense");
          construct_plain(self, net, opt, Ref<nn::Cell>(nb::inst_ptr<nn::Cell>(sense)),
                          nn::scale_sense(start, std::string(kName) + ": 'scale_sense'"));
        }
        nb::inst_mark_ready(self.h);
        describe(self.h, *self.p);
      },
      "network"_a, "optimizer"_a, "scale_sense"_a.none());
  c.def(
      "set_sense_scale", [](Cell& self, const Tensor& sens) { self.set_sense_scale(sens); }, "sens"_a,
      "Assigns the scale: a Tensor of one element.");
  c.def(
      "start_overflow_check",
      [](Cell&, Py pre_cond, Py compute_input) { return nb::make_tuple(pre_cond, compute_input); }, "pre_cond"_a,
      "compute_input"_a, "For steps that are written by users: gives (status, compute_input).");
  c.def(
      "get_overflow_status", [](Cell&, Py, Py output) { return ops::logical_not(amp::all_finite(tensors_of(output))); },
      "status"_a.none(), "compute_output"_a,
      "Whether a tensor of compute_output (gradients) is not finite: a bool scalar.");
  c.def(
      "process_loss_scale",
      [](Cell& self, const Tensor& overflow) {
        if (!self.update_cell()) return overflow;
        return self.update_cell()->call({Tensor(self.scale()), overflow}).tensor();
      },
      "overflow"_a, "Updates the scale; gives whether the update of the weights is to be left out.");
}

void bind_managers(nb::module_& m) {
  nb::class_<FixedLossScaleManagerImpl>(
      m, "FixedLossScaleManager",
      "FixedLossScaleManager(loss_scale=128.0, drop_overflow_update=True): one scale for the whole run; a step whose "
      "gradients are not finite is skipped, unless drop_overflow_update is False.")
      .def(
          "__init__",
          [](FixedLossScaleManagerImpl* self, Py scale, Py drop) {
            constexpr const char* kName = "FixedLossScaleManager";
            new (self) FixedLossScaleManagerImpl(to_number(scale, kName, "loss_scale"),
                                                 to_bool(drop, kName, "drop_overflow_update"));
          },
          "loss_scale"_a = 128.0, "drop_overflow_update"_a = true)
      .def("get_loss_scale", &FixedLossScaleManagerImpl::get_loss_scale)
      .def("get_drop_overflow_update", &FixedLossScaleManagerImpl::get_drop_overflow_update)
      .def("update_loss_scale", &FixedLossScaleManagerImpl::update_loss_scale, "overflow"_a)
      .def("get_update_cell", &FixedLossScaleManagerImpl::get_update_cell);
  nb::class_<DynamicLossScaleManagerImpl>(
      m, "DynamicLossScaleManager",
      "DynamicLossScaleManager(init_loss_scale=2**24, scale_factor=2, scale_window=2000): a step whose gradients are "
      "not finite is skipped and divides the scale by scale_factor, down to 1; scale_window good steps multiply it.")
      .def(
          "__init__",
          [](DynamicLossScaleManagerImpl* self, Py scale, Py factor, Py window) {
            constexpr const char* kName = "DynamicLossScaleManager";
            new (self) DynamicLossScaleManagerImpl(to_number(scale, kName, "init_loss_scale"),
                                                   to_number(factor, kName, "scale_factor"),
                                                   to_int(window, kName, "scale_window"));
          },
          "init_loss_scale"_a = 16777216, "scale_factor"_a = 2, "scale_window"_a = 2000)
      .def("get_loss_scale", &DynamicLossScaleManagerImpl::get_loss_scale)
      .def("get_drop_overflow_update", [](const DynamicLossScaleManagerImpl&) { return true; })
      .def("update_loss_scale", &DynamicLossScaleManagerImpl::update_loss_scale, "overflow"_a)
      .def("get_update_cell", &DynamicLossScaleManagerImpl::get_update_cell);
}

/// `f` on a Tensor, or on each one of a tuple or list, which give a tuple.
template <typename F>
nb::object each(Py inputs, const char* what, F f) {
  if (const Tensor* t = unwrap(inputs)) return wrap(f(std::vector<Tensor>{*t})[0]);
  UNDERTOW_CHECK(PyTuple_Check(inputs.ptr()) || PyList_Check(inputs.ptr()), TypeError,
                 "{} takes a Tensor or a tuple of them, got {}", what, type_name_of(inputs));
  std::vector<Tensor> tensors;
  for (nb::handle item : nb::borrow<nb::object>(inputs)) {
    const Tensor* t = unwrap(item);
    UNDERTOW_CHECK(t, TypeError, "{}: item {} is no Tensor but {}", what, tensors.size(), type_name_of(item));
    tensors.push_back(*t);
  }
  nb::list out;
  for (const Tensor& t : f(tensors)) out.append(wrap(t));
  return nb::tuple(out);
}

void bind_scalers(nb::module_& m) {
  nb::class_<amp::LossScaler>(m, "LossScaler", "Base of the loss scalers.")
      .def(
          "scale",
          [](const amp::LossScaler& self, Py inputs) {
            return each(inputs, "LossScaler.scale", [&](const std::vector<Tensor>& t) { return self.scale(t); });
          },
          "inputs"_a, "inputs * scale_value")
      .def(
          "unscale",
          [](const amp::LossScaler& self, Py inputs) {
            return each(inputs, "LossScaler.unscale", [&](const std::vector<Tensor>& t) { return self.unscale(t); });
          },
          "inputs"_a, "inputs / scale_value")
      .def("adjust", &amp::LossScaler::adjust, "grads_finite"_a,
           "After a step, with whether its gradients were finite (a bool Tensor). False where the scale never changes.")
      .def_prop_ro("scale_value", &amp::LossScaler::scale_value);
  nb::class_<amp::StaticLossScalerImpl, amp::LossScaler>(m, "StaticLossScaler",
                                                         "StaticLossScaler(scale_value): one scale.")
      .def(
          "__init__",
          [](amp::StaticLossScalerImpl* self, Py scale) {
            new (self) amp::StaticLossScalerImpl(to_number(scale, "StaticLossScaler", "scale_value"));
          },
          "scale_value"_a);
  nb::class_<amp::DynamicLossScalerImpl, amp::LossScaler>(
      m, "DynamicLossScaler",
      "DynamicLossScaler(scale_value, scale_factor, scale_window): a step whose gradients are not finite divides the "
      "scale by scale_factor, down to 1; scale_window good steps multiply it.")
      .def(
          "__init__",
          [](amp::DynamicLossScalerImpl* self, Py scale, Py factor, Py window) {
            constexpr const char* kName = "DynamicLossScaler";
            new (self) amp::DynamicLossScalerImpl(to_number(scale, kName, "scale_value"),
                                                  to_number(factor, kName, "scale_factor"),
                                                  to_int(window, kName, "scale_window"));
          },
          "scale_value"_a, "scale_factor"_a, "scale_window"_a)
      .def_prop_ro("counter", &amp::DynamicLossScalerImpl::counter)
      .def_prop_ro("scale_factor", &amp::DynamicLossScalerImpl::scale_factor)
      .def_prop_ro("scale_window", &amp::DynamicLossScalerImpl::scale_window);
  m.def("all_finite", [](const std::vector<Tensor>& inputs) { return amp::all_finite(inputs); }, "inputs"_a);
}

}  // namespace

nb::object described(const Ref<nn::Cell>& cell) {
  const nb::object self = nb::cast(cell);
  if (const auto* plain = dynamic_cast<const nn::TrainOneStepCellImpl*>(cell.get()))
    describe(self, *plain, plain->sens() != 1);
  else if (const auto* scaled = dynamic_cast<const nn::TrainOneStepWithLossScaleCellImpl*>(cell.get()))
    describe(self, *scaled);
  return self;
}

void bind_wrapped(nb::module_& m, nb::module_& layers) {
  bind_wrappers(layers);
  bind_update_cells(layers);
  bind_scaled_step(layers);
  bind_managers(m);
  bind_scalers(m);
}

}  // namespace undertow::python
