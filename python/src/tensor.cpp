// SPDX-License-Identifier: Apache-2.0
// Tensor and Parameter: objects, identity, conversion to Python values, indexing.
#include <nanobind/ndarray.h>

#include <unordered_map>

#include "python/src/common.h"
#include "python/src/tensor_index.h"
#include "undertow/base/check.h"
#include "undertow/runtime/branches.h"

namespace undertow::python {
namespace {

// Both are guarded by the GIL.
std::unordered_map<const TensorImpl*, PyObject*>& objects() {
  static auto* table = new std::unordered_map<const TensorImpl*, PyObject*>();  // outlives the interpreter's objects
  return *table;
}
PyTypeObject *tensor_type = nullptr, *parameter_type = nullptr;
PyObject* package_folder = nullptr;

}  // namespace

void set_parameter_type(PyTypeObject* type) { parameter_type = type; }

TensorObject::TensorObject(Tensor t, PyObject* object) : tensor(std::move(t)), self(object) {
  objects()[tensor.impl().get()] = self;
}

TensorObject::~TensorObject() {
  auto& table = objects();
  const auto it = table.find(tensor.impl().get());
  if (it != table.end() && it->second == self) table.erase(it);
}

nb::object wrap(const Tensor& tensor) {
  if (!tensor.defined()) return nb::none();
  const auto it = objects().find(tensor.impl().get());
  // An object whose count is 0 is about to die (a weak reference's callback got here first).
  if (it != objects().end() && Py_REFCNT(it->second) > 0) return nb::borrow(it->second);
  nb::object o = nb::inst_alloc(reinterpret_cast<PyObject*>(tensor.is_parameter() ? parameter_type : tensor_type));
  new (nb::inst_ptr<void>(o)) TensorObject(tensor, o.ptr());
  nb::inst_mark_ready(o);
  return o;
}

void rewrap(nb::handle object, const Tensor& tensor) {
  auto* held = nb::inst_ptr<TensorObject>(object);
  auto& table = objects();
  if (const auto it = table.find(held->tensor.impl().get()); it != table.end() && it->second == held->self)
    table.erase(it);
  held->tensor = tensor;
  table[tensor.impl().get()] = held->self;
}

const Tensor* unwrap(nb::handle object) noexcept {
  PyTypeObject* type = Py_TYPE(object.ptr());
  if (type != tensor_type && type != parameter_type && !PyType_IsSubtype(type, tensor_type)) return nullptr;
  return nb::inst_ready(object) ? &nb::inst_ptr<TensorObject>(object)->tensor : nullptr;
}

std::string user_line() {
  if (!package_folder) return {};
  std::optional<nb::gil_scoped_acquire> gil;
  if (!PyGILState_Check()) {
    if (!PyGILState_GetThisThreadState()) return {};  // no Python on this thread
    gil.emplace();
  }
  PyFrameObject* frame = PyEval_GetFrame();
  Py_XINCREF(frame);
  std::string line;
  while (frame) {
    PyCodeObject* code = PyFrame_GetCode(frame);
    PyObject* file = code->co_filename;
    const bool ours = PyUnicode_Tailmatch(file, package_folder, 0, PY_SSIZE_T_MAX, -1) == 1;
    if (!ours) {
      Py_ssize_t size = 0;
      if (const char* s = PyUnicode_AsUTF8AndSize(file, &size)) {
        const std::string_view path(s, static_cast<std::size_t>(size));
        line = std::string(path.substr(path.rfind('/') + 1)) + ":" + std::to_string(PyFrame_GetLineNumber(frame));
      }
      PyErr_Clear();
    }
    Py_DECREF(code);
    PyFrameObject* back = ours ? PyFrame_GetBack(frame) : nullptr;
    Py_DECREF(frame);
    frame = back;
  }
  return line;
}

void need_value(const Tensor& tensor, const char* what, const char* instead) {
  if (tensor.is_concrete()) return;
  const std::string line = user_line(), cell = runtime::current_cell_path();
  throw TraceError(fmt::format(
      "{}{}{}: {} needs a value, but this {} tensor of shape {} is traced: the step is compiled once, before there are "
      "values. {}, or run without compiling (PYNATIVE_MODE and dataset_sink_mode=False)",
      line, line.empty() || cell.empty() ? "" : ", in ", cell, what, name_of(tensor.dtype()), tensor.shape().str(),
      instead));
}

namespace {

nb::object strides_of(const Tensor& t) {
  const auto dense = contiguous_strides(t.shape());
  nb::list out;
  for (const std::int64_t s : dense) out.append(s * static_cast<std::int64_t>(size_of(t.dtype())));
  return nb::tuple(out);
}

nb::object format(const char* function, const Tensor& t) {
  return nb::module_::import_("undertow._format").attr(function)(wrap(t));
}

nb::object dlpack(const Tensor& t, const nb::kwargs& kwargs) {
  const Tensor source = t.is_parameter() ? t.clone() : t;
  nb::dlpack::dtype d{};
  d.bits = static_cast<std::uint8_t>(size_of(t.dtype()) * 8);
  d.lanes = 1;
  const auto code = t.dtype() == DType::kBool       ? nb::dlpack::dtype_code::Bool
                    : t.dtype() == DType::kBFloat16 ? nb::dlpack::dtype_code::Bfloat
                    : is_floating(t.dtype())        ? nb::dlpack::dtype_code::Float
                    : is_signed(t.dtype())          ? nb::dlpack::dtype_code::Int
                                                    : nb::dlpack::dtype_code::UInt;
  d.code = static_cast<std::uint8_t>(code);
  need_value(t, "__dlpack__", "Use ops on the tensor");
  std::vector<std::size_t> shape(t.shape().begin(), t.shape().end());
  auto* keep = new Tensor(source);
  const nb::capsule owner(keep, [](void* p) noexcept { delete static_cast<Tensor*>(p); });
  const nb::object array = nb::cast(nb::ndarray<nb::array_api>(source.data(), shape.size(), shape.data(), owner,
                                                               nullptr, d, nb::device::cpu::value, 0));
  return array.attr("__dlpack__")(**kwargs);
}

Tensor from_dlpack(nb::handle o) {
  nb::ndarray<nb::ro> a;
  if (!nb::try_cast(o, a)) throw TypeError(fmt::format("{} offers no DLPack tensor in host memory", type_name_of(o)));
  UNDERTOW_CHECK(a.device_type() == nb::device::cpu::value, DeviceError,
                 "from_dlpack takes tensors in host memory, this one is on another device");
  const auto d = a.dtype();
  DType dtype = DType::kFloat32;
  const std::string bits = std::to_string(d.bits);
  switch (static_cast<nb::dlpack::dtype_code>(d.code)) {
    case nb::dlpack::dtype_code::Float: dtype = dtype_from_name("float" + bits); break;
    case nb::dlpack::dtype_code::Int: dtype = dtype_from_name("int" + bits); break;
    case nb::dlpack::dtype_code::UInt: dtype = dtype_from_name("uint" + bits); break;
    case nb::dlpack::dtype_code::Bool: dtype = DType::kBool; break;
    case nb::dlpack::dtype_code::Bfloat: dtype = DType::kBFloat16; break;
    default: throw TypeError("from_dlpack: the elements are of a type that Undertow does not have");
  }
  Shape shape;
  std::vector<std::int64_t> strides;
  for (std::size_t i = 0; i < a.ndim(); ++i) {
    shape.push_back(static_cast<std::int64_t>(a.shape(i)));
    strides.push_back(a.stride(i) * static_cast<std::int64_t>(size_of(dtype)));
  }
  return Tensor::from_strided(a.data(), dtype, shape, strides);
}

nb::object array_protocol(const Tensor& t, nb::handle dtype, nb::handle copy) {
  if (copy.ptr() == Py_False)
    throw ValueError("a Tensor's values are always copied into an array; __array__(copy=False) cannot be served");
  nb::object a = to_numpy(t);
  return dtype.is_none() ? a : a.attr("astype")(dtype);
}

template <typename T>
void construct(nb::pointer_and_handle<TensorObject> self, Tensor t) {
  new (self.p) T(std::move(t), self.h.ptr());
}

std::optional<DType> optional_dtype(nb::handle o) {
  return o.is_none() ? std::nullopt : std::optional<DType>(to_dtype(o));
}

}  // namespace

void bind_tensor(nb::module_& m) {
  auto tensor = nb::class_<TensorObject>(
      m, "Tensor", nb::pooled(512),
      "Tensor(input_data, dtype=None)\n\nAn array of numbers or bools of up to 8 dimensions, row-major. `input_data` "
      "may "
      "be an array in any memory order, a number, nested lists or a Tensor, and is copied. Without `dtype` it keeps "
      "its "
      "own, except that Python floats become float32. Raises TypeError for other data, ShapeError for ragged lists.");
  tensor.def(
      "__init__",
      [](nb::pointer_and_handle<TensorObject> self, nb::handle data, nb::handle dtype, nb::handle shape,
         nb::handle init) {
        if (!init.is_none()) {
          construct<TensorObject>(
              self, nb::cast<Tensor>(
                        nb::module_::import_("undertow.common.initializer").attr("initializer")(init, shape, dtype)));
          return;
        }
        if (data.is_none()) throw TypeError("Tensor() needs input_data, or init and shape");
        construct<TensorObject>(self, to_tensor(data, optional_dtype(dtype)));
      },
      "input_data"_a.none() = nb::none(), "dtype"_a.none() = nb::none(), "shape"_a.none() = nb::none(),
      "init"_a.none() = nb::none());
  tensor_type = reinterpret_cast<PyTypeObject*>(tensor.ptr());
  tensor.attr("__array_priority__") = 1000;

  tensor.def_prop_ro("shape", [](const TensorObject& t) { return t.tensor.shape(); })
      .def_prop_ro("dtype", [](const TensorObject& t) { return t.tensor.dtype(); })
      .def_prop_ro("ndim", [](const TensorObject& t) { return t.tensor.ndim(); })
      .def_prop_ro("size", [](const TensorObject& t) { return t.tensor.size(); })
      .def_prop_ro("itemsize", [](const TensorObject& t) { return size_of(t.tensor.dtype()); })
      .def_prop_ro("nbytes", [](const TensorObject& t) { return t.tensor.nbytes(); })
      .def_prop_ro("strides", [](const TensorObject& t) { return strides_of(t.tensor); })
      .def_prop_ro("_has_value", [](const TensorObject& t) { return t.tensor.is_concrete(); })
      .def_prop_ro("has_init", [](const TensorObject&) { return false; })
      .def("init_data", [](nb::handle self, const nb::args&, const nb::kwargs&) { return nb::borrow(self); })
      .def("dim", [](const TensorObject& t) { return t.tensor.ndim(); })
      .def("numel", [](const TensorObject& t) { return t.tensor.size(); })
      .def(
          "asnumpy", [](const Tensor& t) { return to_numpy(t); }, "A NumPy array of its own with the values.")
      .def(
          "numpy", [](const Tensor& t) { return to_numpy(t); }, "A NumPy array of its own with the values.")
      .def("__array__", &array_protocol, "dtype"_a.none() = nb::none(), "copy"_a.none() = nb::none())
      .def("__dlpack__", &dlpack, "kwargs"_a, "The tensor's memory (a Parameter's: a copy) as a DLPack capsule.")
      .def("__dlpack_device__", [](const Tensor&) { return nb::make_tuple(1, 0); })
      .def(
          "item", [](const Tensor& t) { return item(t, "item()"); }, "The only element as a Python number.")
      .def("itemset", &item_set, "args"_a, "Writes the only element, or the one at a (flat or full) position.")
      .def("tolist", [](const Tensor& t) { return to_numpy(t).attr("tolist")(); })
      .def("__getitem__", &get_item, "key"_a.none())
      .def("__setitem__", &set_item, "key"_a.none(), "value"_a)
      .def("__len__",
           [](const Tensor& t) {
             UNDERTOW_CHECK(t.ndim() > 0, TypeError, "a tensor of no dimensions has no len()");
             return t.shape(0);
           })
      .def("__iter__",
           [](const Tensor& t) {
             UNDERTOW_CHECK(t.ndim() > 0, TypeError, "a tensor of no dimensions cannot be iterated");
             nb::list rows;
             for (std::int64_t i = 0; i < t.shape(0); ++i) {
               ops::Index index{};
               index.kind = ops::Index::kInteger;
               index.value = i;
               rows.append(wrap(ops::index(t, {index})));
             }
             return nb::iter(rows);
           })
      .def("__bool__",
           [](const Tensor& t) {
             if (const std::optional<bool> way = runtime::decide(t)) return *way;
             need_value(
                 t, "a condition (if, while, and, or, not, bool())",
                 "Choose between tensors with ops.where(condition, x, y), between functions with ops.cond, and loop "
                 "with ops.while_loop or ops.scan");
             UNDERTOW_CHECK(t.size() == 1, ValueError,
                            "the truth of a tensor of shape {} is ambiguous; use ops.any(x) or ops.all(x)",
                            t.shape().str());
             return t.item_as_double() != 0;
           })
      .def("__float__", [](const Tensor& t) { return nb::float_(item(t, "float()")); })
      .def("__int__", [](const Tensor& t) { return nb::int_(item(t, "int()")); })
      .def("__index__",
           [](const Tensor& t) {
             UNDERTOW_CHECK(is_integral(t.dtype()), TypeError, "only an integer tensor can be an index, this is {}",
                            name_of(t.dtype()));
             return item(t, "an index");
           })
      .def("__str__", [](const Tensor& t) { return format("tensor_str", t); })
      .def("__repr__", [](const Tensor& t) { return format("tensor_repr", t); })
      .def("__format__",
           [](const Tensor& t, const nb::str& spec) -> nb::object {
             if (nb::len(spec) == 0 || !t.is_concrete() || t.size() != 1)
               return nb::str(nb::handle(wrap(t))).attr("__format__")(spec);
             return item(t, "format()").attr("__format__")(spec);
           })
      .def("__hash__",
           [](nb::handle self) { return static_cast<Py_hash_t>(reinterpret_cast<std::intptr_t>(self.ptr()) >> 4); })
      .def("__copy__", [](const Tensor& t) { return ops::copy(t); })
      .def(
          "__deepcopy__", [](const Tensor& t, nb::handle) { return t.clone(); }, "memo"_a)
      .def("__reduce__",
           [](nb::handle self) { return nb::make_tuple(self.type(), nb::make_tuple(to_numpy(*unwrap(self)))); });
  m.def("from_dlpack", &from_dlpack, "external"_a, "A Tensor with a copy of any DLPack tensor in host memory.");
  m.def("from_numpy", [](nb::handle a) { return to_tensor(a); }, "array"_a, "A Tensor with a copy of the array.");

  m.def("_set_package_folder", [](nb::handle folder) {
    package_folder = nb::borrow(folder).release().ptr();
    runtime::set_line_provider(&user_line);
  });
}

}  // namespace undertow::python
