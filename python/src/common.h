// SPDX-License-Identifier: Apache-2.0
// python/src/common.h: what every bind file needs: how tensors, dtypes, numbers and shapes cross the border.
//
// A Python Tensor holds a C++ handle, and there is one Python object for one TensorImpl (a table from the one to the
// other, guarded by the GIL). The core's own counts stay plain numbers, so that its threads never need the GIL to copy
// or drop a tensor. Cells are different: a Python subclass *is* its C++ cell, through RefCounted's hooks.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "undertow/ops/ops.h"
#include "undertow/tensor/tensor.h"

namespace nb = nanobind;

namespace undertow::python {

using namespace nb::literals;

/// The C++ side of Python's Tensor.
struct TensorObject {
  Tensor tensor;
  PyObject* self = nullptr;  // set once it is in the table
  TensorObject(Tensor t, PyObject* self);
  TensorObject(const TensorObject&) = delete;
  ~TensorObject();
};
struct ParameterObject : TensorObject {
  using TensorObject::TensorObject;
};

void set_parameter_type(PyTypeObject* type);

/// The Python object of a tensor (new reference); None for an undefined one.
nb::object wrap(const Tensor& tensor);
/// The tensor in a Python Tensor or Parameter, or null.
const Tensor* unwrap(nb::handle object) noexcept;

/// A new tensor from a Tensor, an array (any strides, either byte order), a number, or nested lists. Without `dtype`,
/// Python floats and lists of them give float32. Throws TypeError naming what it cannot take.
Tensor to_tensor(nb::handle object, std::optional<DType> dtype = std::nullopt);
/// A NumPy array of its own with the tensor's values; bfloat16 needs ml_dtypes, else it becomes float32.
nb::object to_numpy(const Tensor& tensor);
/// A NumPy array over the tensor's memory, which it keeps alive.
nb::object numpy_view(const Tensor& tensor);

/// Accepts Undertow's dtypes, NumPy's, names and Python's bool, int, float; false without an error set.
bool load_dtype(nb::handle object, DType& out) noexcept;
nb::object dtype_object(DType dtype);
DType to_dtype(nb::handle object);  ///< throws TypeError

/// "file:line" of the innermost Python frame outside of the package; "" without one, or without the GIL.
std::string user_line();
/// Raises TraceError unless the tensor has a value: `what` ("bool") and what to do instead.
void need_value(const Tensor& tensor, const char* what, const char* instead);

/// Whether a Model.train or Model.eval is on its way on another thread.
bool other_thread_runs();

/// In a catch block of a slot function: sets the Python error that stands for the C++ exception in flight.
void raise_current() noexcept;

/// The class of an object, for messages.
std::string type_name_of(nb::handle object);
/// Its repr(), shortened, for messages.
std::string repr_of(nb::handle object);

/// One integer or a sequence of them.
struct Ints {
  std::vector<std::int64_t> values;
  bool single = false;
};
/// None, one integer or a sequence: which axes.
struct AxesArg {
  ops::Axes values;
};

template <typename T>
using Optional = std::optional<T>;

}  // namespace undertow::python

namespace nanobind::detail {

template <>
struct type_caster<undertow::Tensor> {
  NB_TYPE_CASTER(undertow::Tensor, const_name("Tensor"))
  bool from_python(handle src, uint32_t, cleanup_list*) noexcept {
    const undertow::Tensor* t = undertow::python::unwrap(src);
    if (!t) return false;
    value = *t;
    return true;
  }
  static handle from_cpp(const undertow::Tensor& t, rv_policy, cleanup_list*) noexcept {
    return undertow::python::wrap(t).release();
  }
};

template <>
struct type_caster<undertow::Parameter> {
  NB_TYPE_CASTER(undertow::Parameter, const_name("Parameter"))
  bool from_python(handle src, uint32_t, cleanup_list*) noexcept {
    const undertow::Tensor* t = undertow::python::unwrap(src);
    if (!t || !t->is_parameter()) return false;
    value = undertow::Parameter::of(*t);
    return true;
  }
  static handle from_cpp(const undertow::Tensor& t, rv_policy, cleanup_list*) noexcept {
    return undertow::python::wrap(t).release();
  }
};

template <>
struct type_caster<undertow::DType> {
  NB_TYPE_CASTER(undertow::DType, const_name("dtype"))
  bool from_python(handle src, uint32_t, cleanup_list*) noexcept { return undertow::python::load_dtype(src, value); }
  static handle from_cpp(undertow::DType d, rv_policy, cleanup_list*) noexcept {
    return undertow::python::dtype_object(d).release();
  }
};

template <>
struct type_caster<undertow::Shape> {
  NB_TYPE_CASTER(undertow::Shape, const_name("tuple[int, ...]"))
  bool from_python(handle src, uint32_t flags, cleanup_list* cleanup) noexcept;
  static handle from_cpp(const undertow::Shape& s, rv_policy, cleanup_list*) noexcept {
    PyObject* t = PyTuple_New(s.rank());
    for (int i = 0; t && i < s.rank(); ++i) PyTuple_SET_ITEM(t, i, PyLong_FromLongLong(s[i]));
    return t;
  }
};

/// A Tensor, an array or a number beside a tensor.
template <>
struct type_caster<undertow::ops::Operand> {
  using Value = undertow::ops::Operand;
  static constexpr auto Name = const_name("Tensor | number");
  template <typename T_>
  using Cast = movable_cast_t<T_>;
  template <typename T_>
  static constexpr bool can_cast() {
    return true;
  }
  explicit operator Value*() { return &value; }
  explicit operator Value&() { return value; }
  explicit operator Value&&() { return static_cast<Value&&>(value); }
  bool from_python(handle src, uint32_t, cleanup_list*) noexcept;
  Value value{std::int64_t{0}};
};

template <>
struct type_caster<undertow::python::Ints> {
  NB_TYPE_CASTER(undertow::python::Ints, const_name("int | Sequence[int]"))
  bool from_python(handle src, uint32_t, cleanup_list*) noexcept;
};

template <>
struct type_caster<undertow::python::AxesArg> {
  NB_TYPE_CASTER(undertow::python::AxesArg, const_name("int | Sequence[int] | None"))
  bool from_python(handle src, uint32_t, cleanup_list*) noexcept;
};

}  // namespace nanobind::detail

namespace undertow::python {

// One function a file; module.cpp calls them in this order.
void bind_errors(nb::module_& m);
void bind_dtypes(nb::module_& m);
void bind_tensor(nb::module_& m);
void bind_tensor_methods(nb::module_& m);
void bind_parameter(nb::module_& m);
void bind_ops(nb::module_& m);
void bind_ops_nn(nb::module_& m);
void bind_runtime(nb::module_& m);
void bind_data(nb::module_& m);
void bind_train(nb::module_& m, nb::module_& layers);

}  // namespace undertow::python
