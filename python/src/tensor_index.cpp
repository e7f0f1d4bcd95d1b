// SPDX-License-Identifier: Apache-2.0
#include "python/src/tensor_index.h"

#include "undertow/base/check.h"
#include "undertow/ops/indexing.h"
#include "undertow/runtime/trace.h"

namespace undertow::python {

nb::object item(const Tensor& t, const char* what) {
  need_value(t, what, "Use ops on the tensor");
  UNDERTOW_CHECK(t.size() == 1, ValueError, "{} needs a tensor of one element, this one has shape {}", what,
                 t.shape().str());
  if (t.dtype() == DType::kBool) return nb::bool_(t.item_as_int() != 0);
  if (is_floating(t.dtype())) return nb::float_(t.item_as_double());
  if (t.dtype() == DType::kUInt64) return nb::int_(static_cast<std::uint64_t>(t.item_as_int()));
  return nb::int_(t.item_as_int());
}

namespace {

std::optional<std::int64_t> optional_int(PyObject* o) {
  if (o == Py_None) return std::nullopt;
  if (const Tensor* t = unwrap(o)) return nb::cast<std::int64_t>(item(*t, "a slice bound"));
  PyObject* index = PyNumber_Index(o);
  if (!index) throw nb::python_error();
  const std::int64_t v = PyLong_AsLongLong(index);
  Py_DECREF(index);
  if (v == -1 && PyErr_Occurred()) throw nb::python_error();
  return v;
}

ops::Index index_item(nb::handle o) {
  ops::Index out{};
  PyObject* p = o.ptr();
  if (p == Py_None) {
    out.kind = ops::Index::kNewAxis;
  } else if (p == Py_Ellipsis) {
    out.kind = ops::Index::kEllipsis;
  } else if (PyBool_Check(p)) {
    // NumPy's mask of no dimensions: a new axis with one element, or with none.
    UNDERTOW_CHECK(p == Py_True, IndexError, "False as an index picks nothing; use x[None][:0]");
    out.kind = ops::Index::kNewAxis;
  } else if (PySlice_Check(p)) {
    auto* s = reinterpret_cast<PySliceObject*>(p);
    out.kind = ops::Index::kSlice;
    out.begin = optional_int(s->start);
    out.end = optional_int(s->stop);
    out.step = optional_int(s->step);
  } else if (const Tensor* t = unwrap(o)) {
    out.kind = ops::Index::kTensor;
    out.tensor = *t;
  } else if (PyIndex_Check(p) && !PySequence_Check(p)) {  // an array has __index__ too
    out.kind = ops::Index::kInteger;
    out.value = *optional_int(p);
  } else {
    UNDERTOW_CHECK(
        PyList_Check(p) || PyTuple_Check(p) || nb::hasattr(o, "__array__") || PyObject_CheckBuffer(p), TypeError,
        "an index must be an integer, a slice, None, ..., or a Tensor, array or list of integers or bools; got "
        "{} {}",
        type_name_of(o), repr_of(o));
    bool traced = false;  // a list that holds tensors
    if (PyList_Check(p))
      for (nb::handle k : nb::borrow<nb::list>(o)) traced = traced || unwrap(k);
    if (traced) {
      std::vector<Tensor> parts;
      for (nb::handle k : nb::borrow<nb::list>(o)) {
        const Tensor* part = unwrap(k);
        parts.push_back(ops::cast(part ? *part : to_tensor(k), DType::kInt64));
      }
      out.tensor = ops::stack(parts);
    } else {
      out.tensor = to_tensor(o);
      if (out.tensor.size() == 0 && PyList_Check(p)) out.tensor = out.tensor.to(DType::kInt64);
    }
    out.kind = ops::Index::kTensor;
  }
  return out;
}

std::vector<ops::Index> index_items(nb::handle key) {
  std::vector<ops::Index> items;
  if (PyTuple_Check(key.ptr()))
    for (nb::handle k : nb::borrow<nb::tuple>(key)) items.push_back(index_item(k));
  else items.push_back(index_item(key));
  return items;
}

/// Errors of indexing name the user's line where a trace would not.
template <typename F>
auto with_line(F f) {
  try {
    return f();
  } catch (const TraceError& e) {
    const std::string line = user_line();
    if (line.empty()) throw;
    throw TraceError(line + ": " + e.what());
  }
}

ops::Operand value_of(nb::handle value) {
  ops::Operand out(std::int64_t{0});
  if (!nb::try_cast(value, out)) out = to_tensor(value);
  return out;
}

}  // namespace

void write(nb::handle self, const Tensor& y) {
  const Tensor x = *unwrap(self);
  if (x.is_parameter()) ops::assign(Parameter::of(x), y);
  else if (runtime::current_trace() || !x.is_concrete()) rewrap(self, y);
  else x.assign(y);
}

Tensor get_item(const Tensor& x, nb::handle key) {
  return with_line([&] { return ops::index(x, index_items(key)); });
}

namespace {

/// Whether the tensor's memory is not to be written: something is recorded, or there is no memory.
bool is_recorded(const Tensor& x) { return x.is_parameter() || runtime::current_trace() || !x.is_concrete(); }

void write_at(nb::handle self, const std::vector<ops::Index>& items, const ops::Operand& value) {
  const Tensor x = *unwrap(self);
  if (is_recorded(x)) write(self, ops::set_index(x, items, value));
  else ops::write_index(x, items, value);
}

}  // namespace

void set_item(nb::handle self, nb::handle key, nb::handle value) {
  with_line([&] { write_at(self, index_items(key), value_of(value)); });
}

nb::object item_set(nb::handle self, const nb::args& args) {
  const Tensor x = *unwrap(self);
  UNDERTOW_CHECK(args.size() == 1 || args.size() == 2, TypeError, "itemset takes (value) or (position, value)");
  ops::Index at{ops::Index::kInteger};
  std::vector<ops::Index> items;
  if (args.size() == 1 || !PyTuple_Check(nb::handle(args[0]).ptr())) {
    std::int64_t flat = args.size() == 1 ? 0 : nb::cast<std::int64_t>(args[0]);
    UNDERTOW_CHECK(args.size() == 2 || x.size() == 1, ValueError, "itemset(value) needs a tensor of one element");
    UNDERTOW_CHECK(flat >= -x.size() && flat < x.size(), IndexError, "itemset: {} is out of range for {} elements",
                   flat, x.size());
    if (flat < 0) flat += x.size();
    for (const std::int64_t s : contiguous_strides(x.shape())) {
      at.value = flat / s;
      flat %= s;
      items.push_back(at);
    }
  } else {
    items = index_items(args[0]);
    UNDERTOW_CHECK(static_cast<int>(items.size()) == x.ndim(), IndexError, "itemset: {} indices for {} dimensions",
                   items.size(), x.ndim());
  }
  write_at(self, items, value_of(args[args.size() - 1]));
  return nb::borrow(self);
}

}  // namespace undertow::python
