// SPDX-License-Identifier: Apache-2.0
// python/src/cells.h: cells across the border: references, value trees, and classes that Python derives from.
#pragma once

#include "python/src/common.h"
#include "undertow/train/cell.h"

namespace nanobind::detail {

/// A reference to an object that C++ and Python share (Cell, Callback, Metric).
template <typename T>
struct type_caster<undertow::Ref<T>> {
  using Caster = make_caster<T>;
  NB_TYPE_CASTER(undertow::Ref<T>, Caster::Name)
  bool from_python(handle src, uint32_t flags, cleanup_list* cleanup) noexcept {
    if (src.is_none()) return value = nullptr, true;
    Caster caster;
    if (!caster.from_python(src, flags & ~static_cast<uint32_t>(cast_flags::convert), cleanup)) return false;
    value = undertow::Ref<T>(caster.operator T*());
    return true;
  }
  static handle from_cpp(const undertow::Ref<T>& ref, rv_policy, cleanup_list* cleanup) noexcept {
    if (!ref) return none().release();
    if (void* object = ref->self_py()) return handle(static_cast<PyObject*>(object)).inc_ref();
    return Caster::from_cpp(ref.get(), rv_policy::take_ownership, cleanup);
  }
};

}  // namespace nanobind::detail

namespace undertow::python {

/// `construct`'s arguments and results. Throws TypeError naming what no tree may hold.
nn::Value to_value(nb::handle object);
nb::object from_value(const nn::Value& value);

/// The Python method of that name where a Python class overrides it, else null (borrowed).
PyObject* override_of(PyObject* self, const char* name);

/// Grows with every plain attribute that a cell gets: keys compiled functions.
std::uint64_t attribute_changes();

/// Calls the Python `construct` of a cell.
nn::Value call_construct(PyObject* self, const std::vector<nn::Value>& args);
std::string python_class_name(PyObject* self);

/// A C++ cell class that Python has derived from.
template <typename Base>
struct PyCell : Base {
  using Base::Base;
  PyObject* object() const { return static_cast<PyObject*>(this->self_py()); }
  nn::Value construct_values(const std::vector<nn::Value>& args) override {
    if (PyObject* self = object()) {
      nb::gil_scoped_acquire gil;
      if (override_of(self, "construct")) return call_construct(self, args);
    }
    return Base::construct_values(args);
  }
  std::string cls_name() const override {
    PyObject* self = object();
    return self ? python_class_name(self) : Base::cls_name();
  }
};

/// Binds a layer: an __init__ from `make(pointer to Base or PyCell<Base>, arguments)` and `construct`, which runs the
/// C++ one even where a Python class overrides it (super().construct(x)).
template <typename T, typename Parent>
nb::class_<T, Parent, PyCell<T>> cell_class(nb::module_& m, const char* name, const char* doc) {
  nb::class_<T, Parent, PyCell<T>> c(m, name, doc);
  c.def("construct", [](T& self, const nb::args& args) {
    std::vector<nn::Value> values;
    for (nb::handle a : args) values.push_back(to_value(a));
    return from_value(self.T::construct_values(values));
  });
  return c;
}

/// Constructs in place: the derivable class for instances of Python classes, else the plain one.
template <typename T, typename... Args>
void construct_plain(const nb::pointer_and_handle<T>& self, Args&&... args) {
  if (nb::inst_python_derived(self.h)) new (self.p) PyCell<T>(std::forward<Args>(args)...);
  else new (self.p) T(std::forward<Args>(args)...);
}

/// The same, of a cell that copy.deepcopy can make anew: for arguments that are values.
template <typename T, typename... Args>
void construct_cell(const nb::pointer_and_handle<T>& self, const Args&... args) {
  nn::Cell::Maker maker = [args...](void* memory, bool derived) {
    if (derived) new (memory) PyCell<T>(args...);
    else new (memory) T(args...);
  };
  maker(self.p, nb::inst_python_derived(self.h));
  self.p->set_maker(std::move(maker));
}

void bind_amp(nb::module_& m);
void bind_cell(nb::module_& m);
void bind_cell_methods(nb::class_<nn::Cell, PyCell<nn::Cell>>& c);
void bind_layers(nb::module_& m);
void bind_losses(nb::module_& m, nb::module_& nn);
void bind_optimizers(nb::module_& m);
void bind_serialization(nb::module_& m);
void bind_schedules(nb::module_& m);
/// The Python object of a cell that C++ made; a training cell has the attributes that classes derived from it read.
nb::object described(const Ref<nn::Cell>& cell);
/// Loss scaling goes into `m`, cells into `layers`.
void bind_wrapped(nb::module_& m, nb::module_& layers);
void bind_callbacks(nb::module_& m);
void bind_metrics(nb::module_& m);

}  // namespace undertow::python
