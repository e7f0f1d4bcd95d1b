// SPDX-License-Identifier: Apache-2.0
// nn.Optimizer: the base of all optimizers, and what they take.
#include "python/src/optim_args.h"
#include "undertow/base/check.h"
#include "undertow/ops/ops.h"

namespace undertow::python {
namespace {

using nn::Cell;
using nn::OptimizerCell;
using nn::ParamGroup;
using nn::Rate;

bool is_number(nb::handle o) {
  if (PyBool_Check(o.ptr())) return false;
  return PyFloat_Check(o.ptr()) || PyLong_Check(o.ptr()) ||
         nb::isinstance(o, nb::module_::import_("numpy").attr("number"));
}

/// The items of something iterable that is neither text nor one Tensor.
std::optional<std::vector<nb::object>> items_of(nb::handle o) {
  if (unwrap(o) || PyUnicode_Check(o.ptr()) || PyDict_Check(o.ptr())) return std::nullopt;
  const nb::object it = nb::steal(PyObject_GetIter(o.ptr()));
  if (!it.is_valid()) {
    PyErr_Clear();
    return std::nullopt;
  }
  std::vector<nb::object> items;
  while (PyObject* item = PyIter_Next(it.ptr())) items.push_back(nb::steal(item));
  if (PyErr_Occurred()) throw nb::python_error();
  return items;
}

std::vector<Parameter> parameter_list(nb::handle o, const std::string& optimizer, const char* what) {
  const auto items = items_of(o);
  UNDERTOW_CHECK(items, TypeError, "{}: '{}' must be a list of Parameters, got {}", optimizer, what, type_name_of(o));
  UNDERTOW_CHECK(!items->empty(), ValueError, "{}: '{}' is empty; give it e.g. net.trainable_params()", optimizer,
                 what);
  std::vector<Parameter> out;
  for (const nb::object& item : *items) {
    const Tensor* t = unwrap(item);
    UNDERTOW_CHECK(t && t->is_parameter(), TypeError, "{}: {}[{}] must be a Parameter, got {}", optimizer, what,
                   out.size(), type_name_of(item));
    out.push_back(Parameter::of(*t));
  }
  return out;
}

ParamGroup to_group(nb::handle o, const std::string& optimizer, std::size_t number) {
  ParamGroup group;
  bool has_params = false;
  const nb::dict dict = nb::borrow<nb::dict>(o);
  for (auto [key, value] : dict) {
    const std::string name = nb::cast<std::string>(nb::str(key));
    if (name == "params") {
      group.params = parameter_list(value, optimizer, "params");
      has_params = true;
    } else if (name == "lr") {
      group.lr = to_rate(value, optimizer, "lr");
    } else if (name == "weight_decay") {
      group.weight_decay = to_rate(value, optimizer, "weight_decay");
    } else if (name == "grad_centralization") {
      group.grad_centralization = to_bool(value, optimizer.c_str(), "grad_centralization");
    } else if (name == "order_params") {
      UNDERTOW_CHECK(dict.size() == 1, ValueError,
                     "{}: group {} has 'order_params' and must hold nothing else, but holds {} keys", optimizer, number,
                     dict.size());
      group.order_params = parameter_list(value, optimizer, "order_params");
      return group;
    } else {
      throw KeyError(fmt::format(
          "{}: group {} has the key '{}'; known are params, lr, weight_decay, grad_centralization and order_params",
          optimizer, number, name));
    }
  }
  UNDERTOW_CHECK(has_params, KeyError, "{}: group {} has no 'params'", optimizer, number);
  return group;
}

nb::tuple by_parameter(const OptimizerCell& o, const std::function<nb::object(std::size_t)>& f) {
  nb::list out;
  for (std::size_t i = 0; i < o.parameters().size(); ++i) out.append(f(i));
  return nb::tuple(out);
}

nb::tuple as_tuple(const std::vector<Tensor>& tensors) { return nb::tuple(nb::cast(tensors)); }

/// A rate as users see it: its Parameter, or the cell that computes it.
nb::object rate_object(const OptimizerCell& o, std::size_t i) {
  const Ref<Cell> schedule = o.rate_schedule(i);
  return schedule ? nb::cast(schedule) : wrap(o.rate_param(i));
}

nb::object decay_object(const OptimizerCell& o, std::size_t i) {
  if (const Ref<Cell> schedule = o.decay_schedule(i)) return nb::cast(schedule);
  return wrap(Tensor::scalar(static_cast<float>(o.decay_value(i) * o.loss_scale())));
}

/// What get_lr_parameter gives: the Parameter also where it stands in a cell of ours.
nb::object rate_parameter(const OptimizerCell& o, const Parameter& p) {
  const std::size_t i = o.position(p);
  if (const Ref<Cell> schedule = o.rate_schedule(i))
    if (const Parameter inner = schedule->get_param("learning_rate"); inner.defined()) return wrap(inner);
  return rate_object(o, i);
}

nb::object get_lr(OptimizerCell& o) {
  if (o.grouped_lr()) return by_parameter(o, [&o](std::size_t i) { return wrap(o.lr(i)); });
  return wrap(o.dynamic_lr() ? o.lr(0) : ops::copy(o.lr(0)));
}

/// The decay whether or not it applies: the flags say where it does.
nb::object get_weight_decay(nb::handle self) {
  OptimizerCell& o = *nb::inst_ptr<OptimizerCell>(self);
  const auto value = [&o](std::size_t i) {
    return o.decay_schedule(i) && o.decays(i) ? wrap(o.weight_decay(i)) : decay_object(o, i);
  };
  return o.grouped() ? nb::object(by_parameter(o, value)) : value(0);
}

}  // namespace

double to_number(nb::handle o, const char* function, const char* argument) {
  UNDERTOW_CHECK(is_number(o), TypeError, "{}: '{}' must be a number, got {}", function, argument, repr_of(o));
  return nb::cast<double>(nb::float_(o));
}

double to_float(nb::handle o, const char* function, const char* argument) {
  const bool whole = PyLong_Check(o.ptr()) || nb::isinstance(o, nb::module_::import_("numpy").attr("integer"));
  UNDERTOW_CHECK(is_number(o) && !whole, TypeError, "{}: '{}' must be a float, got {}", function, argument, repr_of(o));
  return nb::cast<double>(nb::float_(o));
}

std::int64_t to_int(nb::handle o, const char* function, const char* argument) {
  UNDERTOW_CHECK(PyIndex_Check(o.ptr()) && !PyBool_Check(o.ptr()), TypeError, "{}: '{}' must be an integer, got {}",
                 function, argument, repr_of(o));
  return nb::cast<std::int64_t>(nb::int_(o));
}

bool to_bool(nb::handle o, const char* function, const char* argument) {
  UNDERTOW_CHECK(PyBool_Check(o.ptr()), TypeError, "{}: '{}' must be a bool, got {}", function, argument, repr_of(o));
  return o.ptr() == Py_True;
}

Rate to_rate(nb::handle o, const std::string& optimizer, const char* what) {
  if (is_number(o)) return Rate(nb::cast<double>(nb::float_(o)));
  if (nb::isinstance<Cell>(o)) return Rate(Ref<Cell>(nb::inst_ptr<Cell>(o)));
  if (const Tensor* t = unwrap(o)) {
    UNDERTOW_CHECK(t->is_concrete() && t->ndim() <= 1, ValueError,
                   "{}: '{}' may be a Tensor of rank 0 or 1, this one has rank {}", optimizer, what, t->ndim());
    const Tensor values = t->to(DType::kFloat32);
    if (t->ndim() == 0) return Rate(values.item_as_double());
    return Rate(std::vector<float>(values.data_as<float>(), values.data_as<float>() + values.size()));
  }
  const auto items = items_of(o);
  UNDERTOW_CHECK(items && std::string_view(what) != "weight_decay", TypeError,
                 "{}: '{}' must be a number{} or a {}, got {}", optimizer, what,
                 std::string_view(what) == "weight_decay" ? "" : ", a list of numbers, a Tensor",
                 std::string_view(what) == "weight_decay" ? "Cell" : "LearningRateSchedule", type_name_of(o));
  std::vector<float> values;
  for (const nb::object& item : *items) {
    UNDERTOW_CHECK(is_number(item), TypeError, "{}: {}[{}] must be a number, got {}", optimizer, what, values.size(),
                   repr_of(item));
    values.push_back(static_cast<float>(nb::cast<double>(nb::float_(item))));
  }
  return Rate(std::move(values));
}

nn::Params to_params(nb::handle o, const std::string& optimizer) {
  UNDERTOW_CHECK(!o.is_none(), ValueError, "{}: the parameters are None; give it e.g. net.trainable_params()",
                 optimizer);
  const auto items = items_of(o);
  UNDERTOW_CHECK(items, TypeError, "{}: the parameters must be an iterable of Parameters or of dicts, got {}",
                 optimizer, unwrap(o) ? "one Tensor" : type_name_of(o));
  if (items->empty() || !PyDict_Check(items->front().ptr())) {
    nb::list all;
    for (const nb::object& item : *items) all.append(item);
    return parameter_list(all, optimizer, "params");
  }
  std::vector<ParamGroup> groups;
  for (const nb::object& item : *items) {
    UNDERTOW_CHECK(PyDict_Check(item.ptr()), TypeError,
                   "{}: the parameters must be all Parameters or all dicts, but item {} is {}", optimizer,
                   groups.size(), type_name_of(item));
    groups.push_back(to_group(item, optimizer, groups.size()));
  }
  return groups;
}

void describe_optimizer(nb::handle self) {
  const OptimizerCell& o = *nb::inst_ptr<OptimizerCell>(self);
  const auto flags = [&o](bool (OptimizerCell::*f)(std::size_t) const) {
    return by_parameter(o, [&, f](std::size_t i) { return nb::object(nb::bool_((o.*f)(i))); });
  };
  bool dynamic_decay = false, any_decay = false;
  for (std::size_t i = 0; i < o.parameters().size(); ++i) {
    dynamic_decay = dynamic_decay || o.decay_schedule(i);
    any_decay = any_decay || o.decays(i);
  }
  const auto dynamic = [&o](std::size_t i) { return nb::object(nb::bool_(bool(o.decay_schedule(i)))); };
  nb::dict d = nb::borrow<nb::dict>(self.attr("__dict__"));
  d["parameters"] = nb::module_::import_("undertow.common").attr("ParameterTuple")(nb::cast(o.parameters()));
  d["_parameters"] = d["parameters"];
  d["param_length"] = o.parameters().size();
  d["is_group"] = o.grouped();
  d["is_group_lr"] = o.grouped_lr();
  d["is_group_params_ordered"] = o.ordered();
  d["dynamic_lr"] = o.dynamic_lr();
  d["dynamic_weight_decay"] = dynamic_decay;
  d["decay_flags"] = flags(&OptimizerCell::decays);
  d["dynamic_decay_flags"] = o.grouped() ? nb::object(by_parameter(o, dynamic)) : dynamic(0);
  d["exec_weight_decay"] = any_decay;
  d["weight_decay"] = o.grouped() ? nb::object(by_parameter(o, [&o](std::size_t i) { return decay_object(o, i); }))
                                  : decay_object(o, 0);
  d["grad_centralization_flags"] = flags(&OptimizerCell::centralizes);
  if (o.grouped_lr()) d["learning_rate"] = by_parameter(o, [&o](std::size_t i) { return rate_object(o, i); });
  d["loss_scale"] = o.loss_scale();
  d["need_scale"] = o.loss_scale() != 1;
  d["reciprocal_scale"] = wrap(Tensor::scalar(static_cast<float>(1 / o.loss_scale())));
  d["global_step_increase_tensor"] = wrap(Tensor::full(Shape{1}, 1, DType::kInt32));
  d["optim_filter"] = by_parameter(o, [](std::size_t) { return nb::object(nb::bool_(true)); });
  d["use_parallel"] = false;
  d["unique"] = true;
  nb::module_::import_("undertow.nn._training").attr("_describe_optimizer")(d);
}

void bind_optimizers(nb::module_& m) {
  nb::class_<OptimizerCell, Cell, PyCell<OptimizerCell>> c(
      m, "Optimizer",
      "Optimizer(learning_rate, parameters, weight_decay=0.0, loss_scale=1.0)\n\nBase of optimizers: called with the "
      "gradients, in the order of `parameters`, it applies one update. One written in Python overrides "
      "construct(gradients), which updates self.parameters and counts with self.assignadd(self.global_step, "
      "self.global_step_increase_tensor).");
  c.def(
      "__init__",
      [](nb::pointer_and_handle<OptimizerCell> self, nb::handle lr, nb::handle parameters, nb::handle weight_decay,
         nb::handle loss_scale) {
        const std::string cls = type_name_of(self.h);
        construct_optimizer(self, [&] {
          construct_plain(self, cls, to_params(parameters, cls), to_rate(lr, cls, "learning_rate"),
                          to_rate(weight_decay, cls, "weight_decay"), to_number(loss_scale, cls.c_str(), "loss_scale"));
        });
      },
      "learning_rate"_a, "parameters"_a.none(), "weight_decay"_a = 0.0, "loss_scale"_a = 1.0);
  c.def("construct", [](const OptimizerCell& self, const nb::args&) {
    PyErr_Format(PyExc_NotImplementedError, "%s has no update rule: define construct(self, gradients)",
                 self.cls_name().c_str());
    throw nb::python_error();
  });
  c.def("get_lr", &get_lr, "The learning rate of this step: a Tensor, or one for each parameter where groups differ.")
      .def("get_weight_decay", &get_weight_decay,
           "The weight decay of this step, times loss_scale; with groups, one "
           "for each parameter.")
      .def("set_lr", &OptimizerCell::set_lr, "value"_a)
      .def_prop_rw(
          "target", [](const OptimizerCell&) { return "CPU"; }, [](OptimizerCell&, const std::string&) {},
          "Where parameters are updated: always in the step, whatever it is set to.")
      .def(
          "get_lr_parameter",
          [](const OptimizerCell& o, nb::handle param) -> nb::object {
            if (const Tensor* t = unwrap(param); t && t->is_parameter()) return rate_parameter(o, Parameter::of(*t));
            UNDERTOW_CHECK(PyList_Check(param.ptr()), TypeError,
                           "get_lr_parameter: 'param' must be a Parameter or a list of them, got {}",
                           type_name_of(param));
            nb::list out;
            for (const Parameter& p : parameter_list(param, "get_lr_parameter", "param"))
              out.append(rate_parameter(o, p));
            return out;
          },
          "param"_a, "The learning rate (its Parameter or schedule) of a parameter, or of a list of them.")
      .def(
          "decay_weight",
          [](OptimizerCell& o, std::vector<Tensor> g) { return as_tuple(o.decay_weight(std::move(g))); }, "gradients"_a)
      .def(
          "gradients_centralization",
          [](const OptimizerCell& o, std::vector<Tensor> g) { return as_tuple(o.centralize(std::move(g))); },
          "gradients"_a)
      .def(
          "scale_grad",
          [](const OptimizerCell& o, std::vector<Tensor> g) { return as_tuple(o.scale_grad(std::move(g))); },
          "gradients"_a)
      .def(
          "flatten_gradients", [](const OptimizerCell&, nb::object g) { return g; }, "gradients"_a)
      .def(
          "_grad_sparse_indices_deduplicate", [](const OptimizerCell&, nb::object g) { return g; }, "gradients"_a)
      .def("_is_dynamic_lr_or_weight_decay", [](nb::handle self) {
        return nb::cast<bool>(self.attr("dynamic_lr")) || nb::cast<bool>(self.attr("dynamic_weight_decay"));
      });
  bind_optimizer_classes(m);
}

}  // namespace undertow::python
