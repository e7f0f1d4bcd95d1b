// SPDX-License-Identifier: Apache-2.0
// Parameter: a Tensor that is state of a Cell.
#include <atomic>

#include "python/src/cells.h"
#include "undertow/base/check.h"

namespace undertow::python {
namespace {

nb::object initialized(nb::handle init, const Parameter& like) {
  return nb::module_::import_("undertow.common.initializer")
      .attr("initializer")(init, like.shape(), dtype_object(like.dtype()));
}

bool flag(nb::handle o, const char* argument) {
  UNDERTOW_CHECK(PyBool_Check(o.ptr()), TypeError, "Parameter: '{}' must be a bool, got {}", argument, repr_of(o));
  return o.ptr() == Py_True;
}

std::string name_arg(nb::handle o) {
  if (o.is_none()) return "";
  UNDERTOW_CHECK(nb::isinstance<nb::str>(o), ValueError, "Parameter: 'name' must be a str, got {}", repr_of(o));
  const std::string name = nb::cast<std::string>(o);
  UNDERTOW_CHECK(name.size() <= 1024, ValueError, "Parameter: the name has {} characters; at most 1024 are allowed",
                 name.size());
  return name;
}

/// Parameters without a name get one that is unlike any other when it is first asked for; an attribute's name replaces
/// it.
std::string name_of_parameter(const Parameter& p) {
  static std::atomic<int> counter{0};
  if (p.name().empty()) p.set_name(fmt::format("{}{}", nn::kGeneratedName, counter++));
  return p.name();
}

/// set_data's values: a number or a Tensor of any dtype that does not lose its kind.
nb::object set_data(nb::handle self, nb::handle data, bool slice_shape) {
  const Parameter p = Parameter::of(*unwrap(self));
  const Tensor* given = unwrap(data);
  const Tensor t = given ? *given : to_tensor(data);
  UNDERTOW_CHECK(!is_floating(t.dtype()) || is_floating(p.dtype()), TypeError,
                 "Parameter '{}' is {} and cannot take {} values", p.name(), name_of(p.dtype()), name_of(t.dtype()));
  UNDERTOW_CHECK(t.shape() == p.shape(), ShapeError, "Parameter '{}' has shape {}, the data has {}{}", p.name(),
                 p.shape().str(), t.shape().str(),
                 slice_shape ? "; a Parameter keeps its shape, also with slice_shape=True" : "");
  ops::assign(p, t);
  return nb::borrow(self);
}

Tensor clone(const Parameter& p, nb::handle init) {
  if (init.is_none() || (nb::isinstance<nb::str>(init) && nb::cast<std::string>(init) == "same"))
    return Parameter(p, p.name(), p.requires_grad());
  return Parameter(nb::cast<Tensor>(initialized(init, p)), p.name(), p.requires_grad());
}

template <typename C>
void noted(C& c, const char* name, bool initial) {
  c.def_prop_rw(
      name,
      [name, initial](nb::handle self) {
        return nb::borrow<nb::dict>(self.attr("__dict__")).attr("get")(name, initial);
      },
      [name](nb::handle self, nb::handle value) { self.attr("__dict__")[name] = flag(value, name); });
}

}  // namespace

void bind_parameter(nb::module_& m) {
  auto c = nb::class_<ParameterObject, TensorObject>(
      m, "Parameter", nb::dynamic_attr(), nb::is_weak_referenceable(),
      "Parameter(default_input, name=None, requires_grad=True, layerwise_parallel=False)\n\nA Tensor that is state of "
      "a Cell: trained when `requires_grad`, written by assignment. Without a name it takes the attribute's.");
  c.def(
      "__init__",
      [](nb::pointer_and_handle<ParameterObject> self, nb::handle data, nb::handle name, nb::handle requires_grad,
         nb::handle layerwise, bool, nb::handle, nb::handle) {
        const Tensor* t = unwrap(data);
        UNDERTOW_CHECK(!t || t->is_concrete(), TraceError,
                       "a Parameter cannot be made of a traced tensor; create it in __init__");
        UNDERTOW_CHECK(!PyBool_Check(data.ptr()), ValueError,
                       "Parameter: 'default_input' must be a Tensor, an array or "
                       "a number, got {}",
                       repr_of(data));
        const bool trained = flag(requires_grad, "requires_grad");
        const bool parallel = flag(layerwise, "layerwise_parallel");
        new (self.p) ParameterObject(Parameter(t ? *t : to_tensor(data), name_arg(name), trained), self.h.ptr());
        if (parallel) self.h.attr("__dict__")["layerwise_parallel"] = true;
      },
      "default_input"_a, "name"_a.none() = nb::none(), "requires_grad"_a.none() = true,
      "layerwise_parallel"_a.none() = false, "parallel_optimizer"_a = true, "storage_format"_a.none() = nb::none(),
      "device"_a.none() = nb::none());
  set_parameter_type(reinterpret_cast<PyTypeObject*>(c.ptr()));
  c.def_prop_rw(
       "name", &name_of_parameter, [](const Parameter& p, nb::handle name) { p.set_name(name_arg(name)); },
       nb::for_setter(nb::arg("name").none()))
      .def_prop_rw(
          "requires_grad", [](const Parameter& p) { return p.requires_grad(); },
          [](const Parameter& p, nb::handle value) { p.set_requires_grad(flag(value, "requires_grad")); })
      .def_prop_ro("data", [](nb::handle self) { return nb::borrow(self); })
      .def_prop_ro("inited_param", [](nb::handle) { return nb::none(); })
      .def(
          "value", [](const Parameter& p) { return ops::copy(p); }, "The current value as a plain Tensor.")
      .def("set_data", &set_data, "data"_a, "slice_shape"_a = false,
           "Takes the values of `data`, which must have the same shape, and may be floating only if the Parameter is.")
      .def("clone", &clone, "init"_a = "same", "A Parameter of the same name with the same or other values.")
      .def(
          "copy", [](const Parameter& p) { return clone(p, nb::none()); }, "As clone().")
      .def("__copy__", [](const Parameter& p) { return clone(p, nb::none()); })
      .def(
          "__deepcopy__", [](const Parameter& p, nb::handle) { return clone(p, nb::none()); }, "memo"_a)
      .def("__repr__",
           [](const Tensor& t) { return nb::module_::import_("undertow._format").attr("parameter_repr")(wrap(t)); })
      .def("__reduce__", [](nb::handle self) {
        const Parameter p = Parameter::of(*unwrap(self));
        return nb::make_tuple(self.type(), nb::make_tuple(to_numpy(p), p.name(), p.requires_grad()));
      });
  noted(c, "layerwise_parallel", false);
  noted(c, "parallel_optimizer", true);
  noted(c, "unique", false);
}

}  // namespace undertow::python
