// SPDX-License-Identifier: Apache-2.0
// nn: losses, optimizers and initializers, with MindSpore's argument names and defaults.
#include "python/src/layer_args.h"
#include "undertow/base/check.h"
#include "undertow/train/loss.h"
#include "undertow/train/optimizer.h"

namespace undertow::python {
namespace {

using common::Init;
using nn::Cell;
template <typename T>
using Self = nb::pointer_and_handle<T>;

std::vector<Parameter> parameters(nb::handle params, const char* optimizer) {
  UNDERTOW_CHECK(!unwrap(params), TypeError, "{}: params must be a list of Parameters, got one Tensor", optimizer);
  std::vector<Parameter> out;
  for (nb::handle h : nb::borrow<nb::object>(params)) {
    UNDERTOW_CHECK(!PyDict_Check(h.ptr()), ValueError, "{}: parameter groups are not supported yet; pass one list",
                   optimizer);
    const Tensor* t = unwrap(h);
    UNDERTOW_CHECK(t && t->is_parameter(), TypeError, "{}: params[{}] is not a Parameter but {}", optimizer, out.size(),
                   type_name_of(h));
    out.push_back(Parameter::of(*t));
  }
  return out;
}

double number(nb::handle o, const char* optimizer, const char* what) {
  if (const Tensor* t = unwrap(o); t && t->is_concrete() && t->size() == 1) return t->item_as_double();
  UNDERTOW_CHECK(!PyBool_Check(o.ptr()) && (PyFloat_Check(o.ptr()) || PyLong_Check(o.ptr()) || nb::hasattr(o, "item")),
                 TypeError, "{}: {} must be a number, got {}; lists and schedules are not supported yet", optimizer,
                 what, type_name_of(o));
  return nb::cast<double>(nb::float_(o));
}

void bind_sgd(nb::module_& m) {
  cell_class<nn::SGDCell, nn::OptimizerCell>(m, "SGD", "v = momentum v + (1 - dampening) g; w -= learning_rate v.")
      .def(
          "__init__",
          [](Self<nn::SGDCell> self, nb::handle params, nb::handle lr, double momentum, double dampening,
             double weight_decay, bool nesterov, double loss_scale) {
            construct_cell(self, parameters(params, "SGD"),
                           nn::SGDOptions{number(lr, "SGD", "learning_rate"), momentum, dampening, weight_decay,
                                          nesterov, loss_scale});
          },
          "params"_a, "learning_rate"_a = 0.1, "momentum"_a = 0.0, "dampening"_a = 0.0, "weight_decay"_a = 0.0,
          "nesterov"_a = false, "loss_scale"_a = 1.0);
}

void bind_momentum(nb::module_& m) {
  cell_class<nn::MomentumCell, nn::OptimizerCell>(m, "Momentum", "v = momentum v + g; w -= learning_rate v.")
      .def(
          "__init__",
          [](Self<nn::MomentumCell> self, nb::handle params, nb::handle lr, double momentum, double weight_decay,
             double loss_scale, bool nesterov) {
            construct_cell(self, parameters(params, "Momentum"), number(lr, "Momentum", "learning_rate"), momentum,
                           nn::MomentumOptions{weight_decay, loss_scale, nesterov});
          },
          "params"_a, "learning_rate"_a, "momentum"_a, "weight_decay"_a = 0.0, "loss_scale"_a = 1.0,
          "use_nesterov"_a = false);
}

void bind_adam(nb::module_& m) {
  cell_class<nn::AdamCell, nn::OptimizerCell>(
      m, "Adam",
      "m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g^2; w -= lr sqrt(1 - beta2^t) / (1 - beta1^t) m "
      "/ (sqrt(v) + eps).")
      .def(
          "__init__",
          [](Self<nn::AdamCell> self, nb::handle params, nb::handle lr, double beta1, double beta2, double eps,
             bool locking, bool nesterov, double weight_decay, double loss_scale, bool amsgrad,
             const nb::kwargs& more) {
            for (auto [key, value] : more) {
              const auto name = nb::cast<std::string>(key);
              UNDERTOW_CHECK(name == "use_lazy" || name == "use_offload", TypeError, "Adam: unknown argument '{}'",
                             name);
              UNDERTOW_CHECK(!nb::cast<bool>(value), ValueError, "Adam: {}=True is not supported", name);
            }
            construct_cell(self, parameters(params, "Adam"),
                           nn::AdamOptions{number(lr, "Adam", "learning_rate"), beta1, beta2, eps, locking, nesterov,
                                           weight_decay, loss_scale, amsgrad});
          },
          "params"_a, "learning_rate"_a = 1e-3, "beta1"_a = 0.9, "beta2"_a = 0.999, "eps"_a = 1e-8,
          "use_locking"_a = false, "use_nesterov"_a = false, "weight_decay"_a = 0.0, "loss_scale"_a = 1.0,
          "use_amsgrad"_a = false, "kwargs"_a);
}

Init init_call(const std::string& name, double a, double b, double c, double d) {
  if (name == "Normal") return common::Normal(a, b);
  if (name == "TruncatedNormal") return common::TruncatedNormal(a, b, c, d);
  if (name == "Uniform") return common::Uniform(a);
  if (name == "Constant") return common::Constant(a);
  if (name == "XavierUniform") return common::XavierUniform(a);
  if (name == "XavierNormal") return common::XavierNormal(a);
  if (name == "Zero") return common::Zero();
  if (name == "One") return common::One();
  if (name == "Identity") return common::Identity();
  throw ValueError(fmt::format("unknown initializer '{}'", name));
}

}  // namespace

InitArg to_init(nb::handle o) {
  if (o.is_none()) return {};
  if (nb::isinstance<Init>(o)) return {*nb::inst_ptr<Init>(o)};
  if (const Tensor* t = unwrap(o)) return {Init(*t)};
  if (nb::isinstance<nb::str>(o)) return {Init(nb::cast<std::string>(o))};
  if (PyFloat_Check(o.ptr()) || (PyLong_Check(o.ptr()) && !PyBool_Check(o.ptr())))
    return {Init(nb::cast<double>(nb::float_(o)))};
  if (nb::hasattr(o, "_recipe")) return to_init(o.attr("_recipe"));
  if (PyObject_CheckBuffer(o.ptr())) return {Init(to_tensor(o))};
  throw TypeError(
      fmt::format("an initializer is a name, a number, a Tensor or an Initializer, not {}", type_name_of(o)));
}

ActivationArg to_activation(nb::handle o) {
  if (o.is_none()) return {};
  if (nb::isinstance<nb::str>(o)) return {nn::Activation(nb::cast<std::string>(o))};
  if (nb::isinstance<Cell>(o)) return {nn::Activation(Ref<Cell>(nb::inst_ptr<Cell>(o)))};
  throw TypeError(fmt::format("an activation is a name or a Cell, not {}", type_name_of(o)));
}

void bind_losses(nb::module_& m, nb::module_& layers) {
  [[maybe_unused]] const nb::class_<Init> recipe(m, "Init");
  m.def("_init", &init_call, "name"_a, "a"_a = 0.0, "b"_a = 0.0, "c"_a = 0.0, "d"_a = 0.0);
  m.def("_init_he", [](bool normal, double slope, const std::string& mode, const std::string& nonlinearity) {
    return normal ? common::HeNormal(slope, mode, nonlinearity) : common::HeUniform(slope, mode, nonlinearity);
  });
  m.def(
      "_initializer",
      [](const InitArg& init, const Shape& shape, DType dtype) { return common::initializer(init.init, shape, dtype); },
      "init"_a, "shape"_a, "dtype"_a);

  auto base = cell_class<nn::LossBase, Cell>(layers, "LossBase", "Base of losses: get_loss() applies the reduction.");
  base.def(
      "__init__", [](Self<nn::LossBase> self, const std::string& r) { construct_cell(self, r); },
      "reduction"_a = "mean");
  base.def(
      "get_loss",
      [](const nn::LossBase& self, const Tensor& x, const ops::Operand& weights) {
        return self.get_loss(weights.is_tensor() ? ops::mul(x, weights) : x);
      },
      "x"_a, "weights"_a = 1.0);
  base.def_prop_ro("reduction", &nn::LossBase::reduction);
  cell_class<nn::MSELossCell, nn::LossBase>(layers, "MSELoss", "(logits - labels)^2, reduced.")
      .def(
          "__init__",
          [](Self<nn::MSELossCell> self, const std::string& r) { construct_cell(self, nn::LossOptions{r}); },
          "reduction"_a = "mean");
  cell_class<nn::L1LossCell, nn::LossBase>(layers, "L1Loss", "|logits - labels|, reduced.")
      .def(
          "__init__", [](Self<nn::L1LossCell> self, const std::string& r) { construct_cell(self, nn::LossOptions{r}); },
          "reduction"_a = "mean");
  cell_class<nn::SoftmaxCrossEntropyWithLogitsCell, nn::LossBase>(
      layers, "SoftmaxCrossEntropyWithLogits",
      "Cross entropy of logits (N, C): with class ids (N,) if `sparse`, else probabilities (N, C). The reduction is "
      "'none' "
      "unless told, and training then follows the gradient of the sum.")
      .def(
          "__init__",
          [](Self<nn::SoftmaxCrossEntropyWithLogitsCell> self, bool sparse, const std::string& r) {
            construct_cell(self, nn::SoftmaxCrossEntropyOptions{sparse, r});
          },
          "sparse"_a = false, "reduction"_a = "none");
}

void bind_optimizers(nb::module_& m) {
  nb::class_<nn::OptimizerCell, Cell> c(m, "Optimizer",
                                        "Base of optimizers: called with the gradients, in the order of "
                                        "`parameters`, it applies one update.");
  c.def_prop_ro("parameters",
                [](const nn::OptimizerCell& o) {
                  return nb::module_::import_("undertow.common").attr("ParameterTuple")(nb::cast(o.parameters()));
                })
      .def_prop_ro("global_step", [](const nn::OptimizerCell& o) { return o.global_step_param(); })
      .def_prop_ro("learning_rate", [](const nn::OptimizerCell& o) { return o.learning_rate(); })
      .def("get_lr", [](const nn::OptimizerCell& o) { return ops::copy(o.learning_rate()); })
      .def("set_lr", &nn::OptimizerCell::set_lr, "value"_a);
  bind_sgd(m);
  bind_momentum(m);
  bind_adam(m);
}

}  // namespace undertow::python
