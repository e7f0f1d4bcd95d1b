// SPDX-License-Identifier: Apache-2.0
// Values across the border: arrays, lists and numbers to tensors and back; dtypes, shapes and axes.
#include <nanobind/ndarray.h>

#include <cstring>

#include "python/src/common.h"
#include "undertow/base/check.h"

namespace undertow::python {
namespace {

std::string text_of(const nb::object& o) { return nb::cast<std::string>(nb::str(nb::handle(o))); }

nb::object numpy(const char* name) { return nb::module_::import_("numpy").attr(name); }

/// The dtype of a buffer's format with native byte order; false for what has none here.
bool dtype_of_format(const char* format, Py_ssize_t itemsize, DType& out) {
  if (!format) return out = DType::kUInt8, true;
  if (*format == '@' || *format == '=' || *format == '<') ++format;
  if (format[0] == 0 || format[1] != 0) return false;
  const auto integer = [&](bool is_signed) {
    switch (itemsize) {
      case 1: return out = is_signed ? DType::kInt8 : DType::kUInt8, true;
      case 2: return out = is_signed ? DType::kInt16 : DType::kUInt16, true;
      case 4: return out = is_signed ? DType::kInt32 : DType::kUInt32, true;
      case 8: return out = is_signed ? DType::kInt64 : DType::kUInt64, true;
      default: return false;
    }
  };
  switch (*format) {
    case '?': return out = DType::kBool, true;
    case 'b':
    case 'h':
    case 'i':
    case 'l':
    case 'q':
    case 'n': return integer(true);
    case 'B':
    case 'H':
    case 'I':
    case 'L':
    case 'Q':
    case 'N': return integer(false);
    case 'e': return out = DType::kFloat16, true;
    case 'f': return out = DType::kFloat32, true;
    case 'd': return out = DType::kFloat64, true;
    default: return false;
  }
}

struct Buffer {
  Py_buffer view{};
  bool held = false;
  ~Buffer() {
    if (held) PyBuffer_Release(&view);
  }
};

[[noreturn]] void refuse(nb::handle object, const char* why) {
  throw TypeError(fmt::format("cannot make a Tensor of {} {}: {}", type_name_of(object), repr_of(object), why));
}

}  // namespace

std::string type_name_of(nb::handle o) {
  const std::string name = Py_TYPE(o.ptr())->tp_name;
  return name.substr(name.rfind('.') + 1);
}

std::string repr_of(nb::handle o) {
  std::string text = nb::cast<std::string>(nb::repr(o));
  if (text.size() > 80) text.replace(77, std::string::npos, "...");
  return text;
}

namespace {

/// From an object with the buffer protocol: NumPy arrays and scalars, array.array, memoryview.
Tensor from_array(nb::handle object) {
  Buffer b;
  if (PyObject_GetBuffer(object.ptr(), &b.view, PyBUF_RECORDS_RO) != 0) {
    PyErr_Clear();
    if (nb::hasattr(object, "dtype") && text_of(object.attr("dtype")) == "bfloat16") {
      const Tensor bits = from_array(numpy("ascontiguousarray")(object).attr("view")("uint16"));
      Tensor out(DType::kBFloat16, bits.shape());
      if (out.nbytes()) std::memcpy(out.data(), bits.data(), out.nbytes());
      return out;
    }
    refuse(object, "its elements are neither numbers nor bools");
  }
  b.held = true;
  const char* format = b.view.format;
  if (format && (*format == '>' || *format == '!')) {
    const nb::object array = numpy("asarray")(object);
    return from_array(array.attr("astype")(array.attr("dtype").attr("newbyteorder")("=")));
  }
  DType dtype;
  if (!dtype_of_format(format, b.view.itemsize, dtype))
    throw TypeError(
        fmt::format("cannot make a Tensor of {} with elements of type '{}'; it takes bool, (u)int8 to "
                    "(u)int64, float16, bfloat16, float32 and float64",
                    type_name_of(object), nb::hasattr(object, "dtype") ? text_of(object.attr("dtype")) : format));
  Shape shape;
  std::vector<std::int64_t> strides;
  UNDERTOW_CHECK(b.view.ndim <= Shape::kMaxRank, ShapeError, "a tensor has at most {} dimensions, the array has {}",
                 Shape::kMaxRank, b.view.ndim);
  for (int i = 0; i < b.view.ndim; ++i) {
    shape.push_back(b.view.shape[i]);
    strides.push_back(b.view.strides[i]);
  }
  return Tensor::from_strided(b.view.buf, dtype, shape, strides);
}

}  // namespace

Tensor to_tensor(nb::handle o, std::optional<DType> dtype) {
  if (const Tensor* t = unwrap(o)) {
    if (!t->is_concrete()) return ops::cast(*t, dtype.value_or(t->dtype()));
    return dtype && *dtype != t->dtype() ? t->to(*dtype) : t->clone();
  }
  PyObject* p = o.ptr();
  Tensor t;
  if (PyBool_Check(p)) {
    t = Tensor::scalar(p == Py_True);
  } else if (PyFloat_Check(p)) {
    const double v = PyFloat_AS_DOUBLE(p);
    if (dtype == DType::kFloat64) return Tensor::scalar(v);
    t = Tensor::scalar(static_cast<float>(v));
  } else if (PyLong_Check(p)) {
    int overflow = 0;
    const long long v = PyLong_AsLongLongAndOverflow(p, &overflow);
    if (overflow > 0) {
      const unsigned long long u = PyLong_AsUnsignedLongLong(p);
      if (PyErr_Occurred()) PyErr_Clear(), refuse(o, "it does not fit into 64 bits");
      t = Tensor::scalar(static_cast<std::uint64_t>(u));
    } else {
      if (overflow < 0) refuse(o, "it does not fit into 64 bits");
      t = Tensor::scalar(static_cast<std::int64_t>(v));
    }
  } else if (PyUnicode_Check(p) || o.is_none() || PyComplex_Check(p) || PyDict_Check(p)) {
    refuse(o, "it takes arrays, numbers, bools and nested lists of them");
  } else if (PyList_Check(p) || PyTuple_Check(p)) {
    // Numbers go the straight way to the dtype asked for, so that int64 values above 2^53 survive.
    t = from_array(numpy("asarray")(o));
    if (!dtype && t.dtype() == DType::kFloat64) dtype = DType::kFloat32;
  } else if (PyObject_CheckBuffer(p)) {
    t = from_array(o);
  } else {
    t = from_array(numpy("asarray")(o));
  }
  return dtype && *dtype != t.dtype() ? t.to(*dtype) : t;
}

nb::object to_numpy(const Tensor& tensor) {
  need_value(tensor, "asnumpy()", "print it with ops, or return it");
  if (tensor.dtype() == DType::kBFloat16) {
    try {
      const nb::object bf16 = nb::module_::import_("ml_dtypes").attr("bfloat16");
      Tensor bits(DType::kUInt16, tensor.shape());
      if (bits.nbytes()) std::memcpy(bits.data(), tensor.data(), bits.nbytes());
      return to_numpy(bits).attr("view")(bf16);
    } catch (nb::python_error& e) {
      if (!e.matches(PyExc_ImportError)) throw;
      return to_numpy(tensor.to(DType::kFloat32));
    }
  }
  static PyObject* const empty = nb::object(numpy("empty")).release().ptr();
  const auto name = numpy_name_of(tensor.dtype());
  nb::object array = nb::handle(empty)(tensor.shape(), nb::str(name.data(), name.size()));
  if (tensor.nbytes()) {
    Buffer b;
    if (PyObject_GetBuffer(array.ptr(), &b.view, PyBUF_WRITABLE) != 0) throw nb::python_error();
    b.held = true;
    std::memcpy(b.view.buf, tensor.data(), tensor.nbytes());
  }
  return array;
}

nb::object numpy_view(const Tensor& tensor) {
  need_value(tensor, "its memory", "use ops on it");
  nb::dlpack::dtype d{};
  d.bits = static_cast<std::uint8_t>(size_of(tensor.dtype()) * 8);
  d.lanes = 1;
  const auto code = tensor.dtype() == DType::kBool ? nb::dlpack::dtype_code::Bool
                    : is_floating(tensor.dtype())  ? nb::dlpack::dtype_code::Float
                    : is_signed(tensor.dtype())    ? nb::dlpack::dtype_code::Int
                                                   : nb::dlpack::dtype_code::UInt;
  d.code = static_cast<std::uint8_t>(tensor.dtype() == DType::kBFloat16 ? nb::dlpack::dtype_code::UInt : code);
  std::vector<std::size_t> shape(tensor.shape().begin(), tensor.shape().end());
  auto* keep = new Tensor(tensor);
  const nb::capsule owner(keep, [](void* p) noexcept { delete static_cast<Tensor*>(p); });
  return nb::cast(nb::ndarray<nb::numpy>(tensor.data(), shape.size(), shape.data(), owner, nullptr, d));
}

bool load_dtype(nb::handle o, DType& out) noexcept {
  try {
    out = to_dtype(o);
    return true;
  } catch (...) {
    return false;
  }
}

namespace {

struct DTypeObject {
  DType value;
};
PyObject* dtype_objects[kNumDTypes] = {};  // borrowed from the module

std::optional<DType> find_dtype(nb::handle o) {
  if (nb::isinstance<DTypeObject>(o)) return nb::inst_ptr<DTypeObject>(o)->value;
  if (o.is(reinterpret_cast<PyObject*>(&PyBool_Type))) return DType::kBool;
  if (o.is(reinterpret_cast<PyObject*>(&PyLong_Type))) return DType::kInt64;
  if (o.is(reinterpret_cast<PyObject*>(&PyFloat_Type))) return DType::kFloat32;
  std::string name;
  if (nb::isinstance<nb::str>(o)) {
    name = nb::cast<std::string>(o);
  } else if (nb::hasattr(o, "newbyteorder")) {  // a NumPy dtype
    name = text_of(o.attr("name"));
  } else if (PyType_Check(o.ptr())) {  // np.float32 and the like
    name = text_of(o.attr("__name__"));
    if (name == "bool_") name = "bool";
  } else {
    return std::nullopt;
  }
  try {
    return dtype_from_name(name);
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace

DType to_dtype(nb::handle o) {
  if (const auto d = find_dtype(o)) return *d;
  throw TypeError(
      fmt::format("{} is not a dtype; it may be one of Undertow's (undertow.float32), NumPy's, or a name", repr_of(o)));
}

nb::object dtype_object(DType dtype) { return nb::borrow(dtype_objects[static_cast<int>(dtype)]); }

void bind_dtypes(nb::module_& m) {
  nb::class_<DTypeObject>(m, "dtype", "Element type of tensors. Equal to NumPy's dtype of the same name.")
      .def_prop_ro("name", [](const DTypeObject& d) { return std::string(numpy_name_of(d.value)); })
      .def_prop_ro("itemsize", [](const DTypeObject& d) { return size_of(d.value); })
      .def(
          "__eq__",
          [](const DTypeObject& d, nb::handle other) {
            const auto o = find_dtype(other);
            return o && *o == d.value;
          },
          nb::arg().none())
      .def("__hash__", [](const DTypeObject& d) { return static_cast<int>(d.value); })
      .def("__str__", [](const DTypeObject& d) { return std::string(name_of(d.value)); })
      .def("__repr__", [](const DTypeObject& d) { return "undertow." + std::string(numpy_name_of(d.value)); })
      .def("__reduce__", [](const DTypeObject& d) {  // a name in this module
        return d.value == DType::kBool ? std::string("bool_") : std::string(numpy_name_of(d.value));
      });
  m.def(
      "dtype_of", [](nb::handle o) { return dtype_object(to_dtype(o)); }, nb::arg("dtype").none(),
      "The dtype that a NumPy dtype, a name or a Python type stands for. Raises TypeError.");
  for (int i = 0; i < kNumDTypes; ++i) {
    const auto name = std::string(numpy_name_of(static_cast<DType>(i)));
    const nb::object object = nb::cast(DTypeObject{static_cast<DType>(i)});
    m.attr(name == "bool" ? "bool_" : name.c_str()) = object;
    dtype_objects[i] = object.ptr();
  }
}

}  // namespace undertow::python

namespace nanobind::detail {

namespace {

bool load_integer(handle o, std::int64_t& out) noexcept {
  PyObject* index = PyBool_Check(o.ptr()) ? nullptr : PyNumber_Index(o.ptr());
  if (!index) return PyErr_Clear(), false;
  out = PyLong_AsLongLong(index);
  Py_DECREF(index);
  if (out == -1 && PyErr_Occurred()) return PyErr_Clear(), false;
  return true;
}

bool load_integers(handle src, std::vector<std::int64_t>& out) noexcept {
  if (const undertow::Tensor* t = undertow::python::unwrap(src)) {  // a shape as a tensor
    if (!t->is_concrete() || t->ndim() != 1 || !undertow::is_integral(t->dtype())) return false;
    const undertow::Tensor wide = t->to(undertow::DType::kInt64);
    const auto* p = static_cast<const std::int64_t*>(wide.data());
    out.assign(p, p + wide.size());
    return true;
  }
  if (PyUnicode_Check(src.ptr()) || !PySequence_Check(src.ptr())) return false;
  PyObject* items = PySequence_Fast(src.ptr(), "");
  if (!items) return PyErr_Clear(), false;
  const Py_ssize_t n = PySequence_Fast_GET_SIZE(items);
  out.resize(static_cast<std::size_t>(n));
  bool good = true;
  for (Py_ssize_t i = 0; i < n && good; ++i)
    good = load_integer(PySequence_Fast_GET_ITEM(items, i), out[static_cast<std::size_t>(i)]);
  Py_DECREF(items);
  return good;
}

}  // namespace

bool type_caster<undertow::Shape>::from_python(handle src, uint32_t, cleanup_list*) noexcept {
  std::vector<std::int64_t> dims(1);
  if (!load_integer(src, dims[0]) && !load_integers(src, dims)) return false;
  try {
    value = undertow::Shape(dims);
    return true;
  } catch (...) {
    return false;
  }
}

bool type_caster<undertow::python::Ints>::from_python(handle src, uint32_t, cleanup_list*) noexcept {
  value.values.resize(1);
  value.single = load_integer(src, value.values[0]);
  return value.single || load_integers(src, value.values);
}

bool type_caster<undertow::python::AxesArg>::from_python(handle src, uint32_t, cleanup_list*) noexcept {
  value.values.clear();
  if (src.is_none()) return true;
  value.values.resize(1);
  return load_integer(src, value.values[0]) || load_integers(src, value.values);
}

bool type_caster<undertow::ops::Operand>::from_python(handle src, uint32_t, cleanup_list*) noexcept {
  PyObject* p = src.ptr();
  if (const undertow::Tensor* t = undertow::python::unwrap(src)) {
    value = *t;
    return true;
  }
  if (PyBool_Check(p)) return value = undertow::ops::Operand(p == Py_True), true;
  if (PyFloat_CheckExact(p)) return value = undertow::ops::Operand(PyFloat_AS_DOUBLE(p)), true;
  if (PyLong_CheckExact(p)) {
    const long long v = PyLong_AsLongLong(p);
    if (v == -1 && PyErr_Occurred()) return PyErr_Clear(), false;
    value = undertow::ops::Operand(static_cast<std::int64_t>(v));
    return true;
  }
  if (src.is_none() || PyUnicode_Check(p) || PyDict_Check(p)) return false;
  try {
    // NumPy scalars keep their dtype, arrays and lists become tensors.
    if (!PyObject_CheckBuffer(p) && !PyList_Check(p) && !PyTuple_Check(p) && !hasattr(src, "__array__")) return false;
    if (PyBytes_Check(p) || PyByteArray_Check(p)) return false;
    value = undertow::python::to_tensor(src);
    return true;
  } catch (...) {
    PyErr_Clear();
    return false;
  }
}

}  // namespace nanobind::detail
