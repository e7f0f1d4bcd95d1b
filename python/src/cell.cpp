// SPDX-License-Identifier: Apache-2.0
// nn.Cell: attributes that register themselves, calls, garbage collection, and the tree of names.
#include <algorithm>
#include <cstring>

#include "python/src/cells.h"
#include "python/src/control.h"
#include "undertow/base/check.h"
#include "undertow/runtime/trace.h"

namespace undertow::python {
namespace {

using nn::Cell;
using nn::Value;

PyTypeObject* native_method = nullptr;  // the type of nanobind's methods
PyObject* construct_name = nullptr;

Cell* cell_of(PyObject* self) { return nb::inst_ready(self) ? nb::inst_ptr<Cell>(self) : nullptr; }

// ---- Attribute writes during a trace that fails are undone.

struct AttributeWrite {
  nb::object cell, name, before;  // before: null where there was none
};
struct AttributeLog {
  int depth = 0;
  std::vector<AttributeWrite> writes;
};
thread_local AttributeLog attribute_log;

/// Around every call of a Python `construct`; the outermost one undoes the writes when it is left by an error.
class ConstructScope {
 public:
  explicit ConstructScope(const Cell& cell)
      : name_(cell.attribute_name().empty() ? cell.cls_name() : cell.attribute_name()) {
    ++attribute_log.depth;
  }
  ~ConstructScope() {
    if (--attribute_log.depth == 0) attribute_log.writes.clear();
  }
  void failed() {
    if (attribute_log.depth != 1 || attribute_log.writes.empty()) return;
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    auto writes = std::move(attribute_log.writes);
    attribute_log.writes.clear();
    for (auto w = writes.rbegin(); w != writes.rend(); ++w)
      if (PyObject_GenericSetAttr(w->cell.ptr(), w->name.ptr(), w->before.ptr()) != 0) PyErr_Clear();
    PyErr_Restore(type, value, traceback);
  }

 private:
  runtime::ScopeName name_;
  PrintScope prints_;
};

bool compiling() {
  const runtime::Trace* trace = runtime::current_trace();
  return trace && trace->mode() == runtime::Trace::Mode::kCompile;
}

std::uint64_t attribute_writes = 0;  // guarded by the GIL

int set_plain(PyObject* self, PyObject* name, PyObject* value) {
  PyObject** have = _PyObject_GetDictPtr(self);
  PyObject* old = have && *have ? PyDict_GetItemWithError(*have, name) : nullptr;
  if (old != value) ++attribute_writes;
  if (attribute_log.depth > 0 && compiling()) {
    attribute_log.writes.push_back({nb::borrow(self), nb::borrow(name), old ? nb::borrow(old) : nb::object()});
  }
  return PyObject_GenericSetAttr(self, name, value);
}

bool holds_cell(PyObject* value) {
  if (PyList_CheckExact(value) || PyTuple_CheckExact(value)) {
    for (nb::handle item : nb::borrow<nb::object>(value))
      if (nb::isinstance<Cell>(item)) return true;
  } else if (PyDict_CheckExact(value)) {
    PyObject *key, *item;
    for (Py_ssize_t at = 0; PyDict_Next(value, &at, &key, &item);)
      if (nb::isinstance<Cell>(item)) return true;
  }
  return false;
}

PyTypeObject* parameter_tuple_type() {
  static PyTypeObject* type = reinterpret_cast<PyTypeObject*>(
      nb::object(nb::module_::import_("undertow.common.parameter").attr("ParameterTuple")).release().ptr());
  return type;
}

/// The items of a ParameterTuple stand in the cell under their own names; those without one are numbered.
void register_parameters(Cell& cell, nb::handle tuple) {
  int number = 1;
  for (nb::handle item : nb::borrow<nb::tuple>(tuple)) {
    const Parameter p = Parameter::of(*unwrap(item));
    if (p.name().empty() || p.name().starts_with(nn::kGeneratedName)) p.set_name(fmt::format("Parameter${}", number++));
    cell.insert_param(p.name(), p);
  }
}

void register_attribute(Cell& cell, PyObject* self, const std::string& name, PyObject* value) {
  const Tensor* tensor = value ? unwrap(value) : nullptr;
  if (tensor && tensor->is_parameter()) {
    const Parameter before = cell.get_param(name);
    if (!before.defined() || before.impl() != tensor->impl()) cell.insert_param(name, Parameter::of(*tensor));
    return;
  }
  if (value && PyTuple_Check(value) && Py_TYPE(value) == parameter_tuple_type()) {
    register_parameters(cell, value);
    return;
  }
  if (value && nb::isinstance<Cell>(value)) {
    Ref<Cell> child(nb::inst_ptr<Cell>(value));
    if (!(cell.get_child(name) == child)) cell.insert_child(name, std::move(child));
    return;
  }
  cell.remove(name);
  if (value && holds_cell(value)) {
    const std::string text = fmt::format(
        "{}.{} is a plain {} that holds cells: their parameters are not registered and will not be trained. Use "
        "nn.CellList or nn.SequentialCell",
        python_class_name(self), name, Py_TYPE(value)->tp_name);
    if (PyErr_WarnEx(PyExc_UserWarning, text.c_str(), 1) != 0) throw nb::python_error();
  }
}

int cell_setattro(PyObject* self, PyObject* name, PyObject* value) {
  PyObject* descriptor = _PyType_Lookup(Py_TYPE(self), name);
  if (descriptor && Py_TYPE(descriptor)->tp_descr_set) return PyObject_GenericSetAttr(self, name, value);
  Cell* cell = cell_of(self);
  try {
    const std::string text = nb::cast<std::string>(nb::handle(name));
    const Tensor* tensor = value ? unwrap(value) : nullptr;
    if (!cell) {
      if ((tensor && tensor->is_parameter()) || (value && nb::isinstance<Cell>(value))) {
        PyErr_Format(PyExc_AttributeError, "%s.__init__ must call super().__init__() before it assigns '%U'",
                     Py_TYPE(self)->tp_name, name);
        return -1;
      }
      return PyObject_GenericSetAttr(self, name, value);
    }
    if (value && value != Py_None && !(tensor && tensor->is_parameter())) {
      // A value for a Parameter is a write of it.
      if (const Parameter p = cell->get_param(text); p.defined()) {
        if (!tensor) {
          PyErr_Format(PyExc_TypeError,
                       "%s.%U is a Parameter; it can be set to a Tensor or another Parameter, not to %s",
                       Py_TYPE(self)->tp_name, name, Py_TYPE(value)->tp_name);
          return -1;
        }
        ops::assign(p, *tensor);
        return 0;
      }
    }
    const bool was_registered = cell->get_param(text).defined() || cell->get_child(text);
    register_attribute(*cell, self, text, value);
    if (!value && was_registered) {  // it may stand in the registry only (a cell that C++ built)
      PyObject** dict = _PyObject_GetDictPtr(self);
      if (!dict || !*dict || !PyDict_Contains(*dict, name)) return 0;
    }
    return set_plain(self, name, value);
  } catch (...) {
    raise_current();
  }
  return -1;
}

PyObject* cell_getattro(PyObject* self, PyObject* name) {
  PyObject* found = PyObject_GenericGetAttr(self, name);
  if (found || !PyErr_ExceptionMatches(PyExc_AttributeError)) return found;
  Cell* cell = cell_of(self);
  if (!cell) return nullptr;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  if (const char* text = PyUnicode_AsUTF8(name)) {
    if (const Parameter p = cell->get_param(text); p.defined()) found = wrap(p).release().ptr();
    else if (const Ref<Cell> c = cell->get_child(text)) found = nb::cast(c).release().ptr();
  }
  if (found) {
    Py_XDECREF(type), Py_XDECREF(value), Py_XDECREF(traceback);
  } else {
    PyErr_Restore(type, value, traceback);
  }
  return found;
}

/// A gradient of the user's own would be passed over in silence.
void refuse_bprop(PyObject* self) {
  static PyObject* name = PyUnicode_InternFromString("bprop");
  if (!_PyType_Lookup(Py_TYPE(self), name)) return;
  PyErr_Format(
      PyExc_NotImplementedError,
      "%s defines bprop, but gradients written by users are not supported yet: gradients follow from construct",
      Py_TYPE(self)->tp_name);
  throw nb::python_error();
}

/// Tensors in a tuple, list or dict of Python's become tensors of another float type; whatever else there is stays.
nb::object cast_floats(nb::handle o, DType dtype) {
  if (const Tensor* t = unwrap(o))
    return ops::is_amp_type(t->dtype()) && t->dtype() != dtype ? wrap(ops::cast(*t, dtype)) : nb::borrow(o);
  if (PyTuple_CheckExact(o.ptr()) || PyList_CheckExact(o.ptr())) {
    nb::list items;
    for (nb::handle item : nb::borrow<nb::object>(o)) items.append(cast_floats(item, dtype));
    return PyTuple_CheckExact(o.ptr()) ? nb::object(nb::tuple(items)) : nb::object(items);
  }
  if (!PyDict_CheckExact(o.ptr())) return nb::borrow(o);
  nb::dict items;
  for (auto [key, item] : nb::borrow<nb::dict>(o)) items[key] = cast_floats(item, dtype);
  return items;
}

/// Inputs of a C++ cell by position and by name; those left out in between are None.
std::vector<Value> inputs_of(const Cell& cell, PyObject* args, PyObject* kwargs) {
  std::vector<Value> values;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i) values.push_back(to_value(PyTuple_GET_ITEM(args, i)));
  if (!kwargs || !PyDict_GET_SIZE(kwargs)) return values;
  const std::vector<std::string> names = cell.input_names();
  const std::size_t by_position = values.size();
  for (auto [key, item] : nb::borrow<nb::dict>(kwargs)) {
    const auto name = nb::cast<std::string>(key);
    const auto at = static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin());
    if (at == names.size())
      throw TypeError(
          names.empty() ? fmt::format("{} takes its inputs by position, got '{}'", cell.where(), name)
                        : fmt::format("{} has no input '{}'; it takes {}", cell.where(), name, fmt::join(names, ", ")));
    UNDERTOW_CHECK(at >= by_position, TypeError, "{} got its input '{}' twice", cell.where(), name);
    if (values.size() <= at) values.resize(at + 1);
    values[at] = to_value(item);
  }
  return values;
}

PyObject* cell_call(PyObject* self, PyObject* args, PyObject* kwargs) {
  Cell* cell = cell_of(self);
  if (!cell) {
    PyErr_Format(PyExc_RuntimeError, "%s.__init__ has not called super().__init__()", Py_TYPE(self)->tp_name);
    return nullptr;
  }
  try {
    ConstructScope scope(*cell);
    const std::shared_ptr<const nn::CellPrecision> precise = cell->precision();
    const ops::PrecisionScope precision(precise ? precise->ops : ops::precision());
    nb::object cast_args, cast_kwargs;  // own what `args` and `kwargs` point to
    if (precise && precise->ops.mode == ops::Precision::kRegion) {
      cast_args = cast_floats(args, precise->ops.dtype);
      args = cast_args.ptr();
      if (kwargs) {
        cast_kwargs = cast_floats(kwargs, precise->ops.dtype);
        kwargs = cast_kwargs.ptr();
      }
    }
    PyObject* result = nullptr;
    if (cell->has_hooks()) {
      std::vector<Value> values;
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i) values.push_back(to_value(PyTuple_GET_ITEM(args, i)));
      const nb::handle named(kwargs);
      result = from_value(cell->call_hooked(std::move(values),
                                            [&](const std::vector<Value>& given) {
                                              if (!override_of(self, "construct")) return cell->construct_values(given);
                                              nb::list items;
                                              for (const Value& v : given) items.append(from_value(v));
                                              const nb::object method =
                                                  nb::steal(PyObject_GetAttr(self, construct_name));
                                              if (!method.is_valid()) throw nb::python_error();
                                              const nb::object out = nb::steal(
                                                  PyObject_Call(method.ptr(), nb::tuple(items).ptr(), named.ptr()));
                                              if (!out.is_valid()) throw nb::python_error();
                                              return to_value(out);
                                            }))
                   .release()
                   .ptr();
    } else if (override_of(self, "construct")) {
      refuse_bprop(self);
      const nb::object method = nb::steal(PyObject_GetAttr(self, construct_name));
      if (method.is_valid()) result = PyObject_Call(method.ptr(), args, kwargs);
    } else {
      try {
        result = from_value(cell->construct_values(inputs_of(*cell, args, kwargs))).release().ptr();
      } catch (const Error& e) {
        const std::string line = user_line();
        if (line.empty() || std::string_view(e.what()).find(line) != std::string_view::npos) throw;
        e.rethrow_with("at " + line);
      }
    }
    if (!result) scope.failed();
    if (!result || !precise || !precise->output) return result;
    const ops::PrecisionScope off;
    return cast_floats(nb::steal(result), *precise->output).release().ptr();
  } catch (...) {
    raise_current();
  }
  return nullptr;
}

int cell_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (PyObject** dict = _PyObject_GetDictPtr(self)) Py_VISIT(*dict);
  if (const Cell* cell = cell_of(self))
    for (const auto& [_, child] : cell->children()) Py_VISIT(static_cast<PyObject*>(child->self_py()));
  return 0;
}

int cell_clear(PyObject* self) {
  if (PyObject** dict = _PyObject_GetDictPtr(self)) Py_CLEAR(*dict);
  if (Cell* cell = cell_of(self)) {
    std::vector<std::string> names;
    for (const auto& [name, _] : cell->children()) names.push_back(name);
    for (const auto& name : names) cell->remove(name);
  }
  return 0;
}

PyType_Slot cell_slots[] = {
    {Py_tp_setattro, reinterpret_cast<void*>(cell_setattro)}, {Py_tp_getattro, reinterpret_cast<void*>(cell_getattro)},
    {Py_tp_call, reinterpret_cast<void*>(cell_call)},         {Py_tp_traverse, reinterpret_cast<void*>(cell_traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(cell_clear)},       {0, nullptr}};

}  // namespace

std::uint64_t attribute_changes() { return attribute_writes; }

Value to_value(nb::handle o) {
  PyObject* p = o.ptr();
  if (const Tensor* t = unwrap(o)) return Value(*t);
  if (p == Py_None) return Value();
  if (PyBool_Check(p)) return Value(p == Py_True);
  if (PyLong_Check(p)) return Value(nb::cast<std::int64_t>(o));
  if (PyFloat_Check(p)) return Value(PyFloat_AS_DOUBLE(p));
  if (PyUnicode_Check(p)) return Value(nb::cast<std::string>(o));
  if (PyTuple_Check(p) || PyList_Check(p)) {
    Value::List items;
    for (nb::handle item : nb::borrow<nb::object>(o)) items.push_back(to_value(item));
    return Value(std::move(items), PyTuple_Check(p));
  }
  if (PyDict_Check(p)) {
    Value::Dict items;
    for (auto [key, item] : nb::borrow<nb::dict>(o))
      items.emplace_back(nb::cast<std::string>(nb::str(key)), to_value(item));
    return Value(std::move(items));
  }
  if (PyObject_CheckBuffer(p)) return Value(to_tensor(o));
  throw TypeError(
      fmt::format("a cell takes and returns tensors, numbers, strings, None, and tuples, lists and dicts of "
                  "them; this is {}",
                  type_name_of(o)));
}

nb::object from_value(const Value& value) {
  return std::visit(
      [&](const auto& v) -> nb::object {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, Value::None>) {
          return nb::none();
        } else if constexpr (std::is_same_v<T, Tensor>) {
          return wrap(v);
        } else if constexpr (std::is_same_v<T, Value::List>) {
          nb::list items;
          for (const Value& item : v) items.append(from_value(item));
          return value.is_tuple() ? nb::object(nb::steal(PyList_AsTuple(items.ptr()))) : nb::object(items);
        } else if constexpr (std::is_same_v<T, Value::Dict>) {
          nb::dict items;
          for (const auto& [key, item] : v) items[key.c_str()] = from_value(item);
          return items;
        } else {
          return nb::cast(v);
        }
      },
      value.variant());
}

PyObject* override_of(PyObject* self, const char* name) {
  PyObject* key = construct_name;
  nb::object made;
  if (std::string_view(name) != "construct") {
    made = nb::steal(PyUnicode_InternFromString(name));
    key = made.ptr();
  }
  PyObject* found = _PyType_Lookup(Py_TYPE(self), key);
  return found && Py_TYPE(found) != native_method ? found : nullptr;
}

Value call_construct(PyObject* self, const std::vector<Value>& args) {
  refuse_bprop(self);
  nb::object tuple = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(args.size())));
  for (std::size_t i = 0; i < args.size(); ++i)
    PyTuple_SET_ITEM(tuple.ptr(), static_cast<Py_ssize_t>(i), from_value(args[i]).release().ptr());
  const nb::object method = nb::steal(PyObject_GetAttr(self, construct_name));
  if (!method.is_valid()) throw nb::python_error();
  const PrintScope prints;
  const nb::object result = nb::steal(PyObject_Call(method.ptr(), tuple.ptr(), nullptr));
  if (!result.is_valid()) throw nb::python_error();
  return to_value(result);
}

std::string python_class_name(PyObject* self) {
  const char* name = Py_TYPE(self)->tp_name;
  const char* dot = std::strrchr(name, '.');
  return dot ? dot + 1 : name;
}

void bind_cell(nb::module_& m) {
  RefCounted::set_hooks(
      [](void* o) noexcept {
        if (PyGILState_Check()) return Py_INCREF(static_cast<PyObject*>(o));
        if (!Py_IsInitialized()) return;
        nb::gil_scoped_acquire gil;
        Py_INCREF(static_cast<PyObject*>(o));
      },
      [](void* o) noexcept {
        if (PyGILState_Check()) return Py_DECREF(static_cast<PyObject*>(o));
        if (!Py_IsInitialized()) return;
        nb::gil_scoped_acquire gil;
        Py_DECREF(static_cast<PyObject*>(o));
      });
  construct_name = PyUnicode_InternFromString("construct");

  nb::class_<Cell, PyCell<Cell>> c(
      m, "Cell", nb::intrusive_ptr<Cell>([](Cell* cell, PyObject* self) noexcept { cell->set_self_py(self); }),
      nb::dynamic_attr(), nb::is_weak_referenceable(), nb::type_slots(cell_slots),
      "What networks are built of: derive from it, create parameters and child cells in __init__, and write what it "
      "computes in `construct`. Attributes that are Parameters or Cells register themselves.");
  c.def(
      "__init__",
      // Scripts pass all sorts of things as auto_prefix; what is true counts.
      [](nb::pointer_and_handle<Cell> self, nb::handle auto_prefix, nb::handle) {
        construct_cell<Cell>(self);
        self.p->set_auto_prefix(nb::cast<bool>(nb::bool_(nb::borrow(auto_prefix))));
      },
      "auto_prefix"_a = true, "flags"_a.none() = nb::none());
  c.def("construct", [](const Cell& self, const nb::args&, const nb::kwargs&) {
    throw nb::attribute_error(fmt::format("{} has no construct: define construct(self, ...)", self.cls_name()).c_str());
  });
  native_method = Py_TYPE(_PyType_Lookup(reinterpret_cast<PyTypeObject*>(c.ptr()), construct_name));

  bind_cell_methods(c);
}

}  // namespace undertow::python
