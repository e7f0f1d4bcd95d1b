// SPDX-License-Identifier: Apache-2.0
// undertow.ops: reading and writing at positions that tensors hold. Names and argument orders are MindSpore's.
#include "python/src/ops_bind.h"
#include "undertow/ops/arrange.h"
#include "undertow/ops/scatter.h"

namespace undertow::python {
namespace {

struct Mode {
  const char* name;
  const char* mode;
};
constexpr Mode kModes[] = {{"update", "update"}, {"add", "add"}, {"sub", "sub"}, {"mul", "mul"},
                           {"div", "div"},       {"max", "max"}, {"min", "min"}};

/// A Parameter is written; of a Tensor the result is a new one.
nb::object written(nb::handle self, const Tensor& x, const Tensor& y) {
  if (!x.is_parameter()) return wrap(y);
  ops::assign(Parameter::of(x), y);
  return nb::borrow(self);
}

const Tensor& tensor_of(nb::handle o, const char* what) {
  const Tensor* t = unwrap(o);
  UNDERTOW_CHECK(t, TypeError, "{} must be a Tensor, got {}", what, type_name_of(o));
  return *t;
}

Tensor source_of(nb::handle src, const Tensor& x, const Tensor& index) {
  if (const Tensor* t = unwrap(src)) {
    if (t->ndim() != index.ndim()) return *t;
    // As much of the source as the index has.
    Tensor y = *t;
    for (int d = 0; d < index.ndim(); ++d)
      if (y.shape(d) > index.shape(d)) y = ops::narrow(y, d, 0, index.shape(d));
    return y;
  }
  return ops::constant(number_of(src, "scatter: src"), x.dtype());
}

void bind_scatter(nb::module_& m) {
  for (const Mode& s : kModes) {
    const std::string_view mode = s.mode;
    // Positions in the last dimension of indices; a new tensor.
    m.def((std::string("tensor_scatter_") + s.name).c_str(),
          [mode](const Tensor& x, const Tensor& i, const Tensor& u) { return ops::scatter_nd(x, i, u, mode); },
          "input_x"_a, "indices"_a, "updates"_a,
          "input_x met by updates at positions that indices' last dimension holds.");
    m.def((std::string("scatter_nd_") + s.name).c_str(),
          [mode](nb::handle self, const Tensor& i, const Tensor& u, bool) {
            const Tensor x = tensor_of(self, "scatter_nd: input_x");
            return written(self, x, ops::scatter_nd(x, i, u, mode));
          },
          "input_x"_a, "indices"_a, "updates"_a, "use_locking"_a = false, "As tensor_scatter; a Parameter is written.");
    m.def((std::string("scatter_") + s.name).c_str(),
          [mode](nb::handle self, const Tensor& i, const Tensor& u) {
            const Tensor x = tensor_of(self, "scatter: input_x");
            return written(self, x, ops::scatter(x, i, u, 0, mode));
          },
          "input_x"_a, "indices"_a, "updates"_a, "Rows of input_x met by updates; a Parameter is written.");
  }
  m.def(
      "scatter_nd",
      [](const Tensor& i, const Tensor& u, const Shape& s) {
        return ops::scatter_nd(ops::full(s, 0, u.dtype()), i, u, "add");
      },
      "indices"_a, "updates"_a, "shape"_a, "Updates added to zeros at positions that indices' last dimension holds.");
  for (const char* axis : {"axis", "dim"})
    m.def(
        "scatter",
        [](const Tensor& x, std::int64_t a, const Tensor& i, nb::handle src) {
          return ops::scatter_elements(x, i, source_of(src, x, i), a, "update");
        },
        input_, nb::arg(axis), "index"_a, "src"_a, "input with elements along an axis replaced.");
  m.def(
      "_scatter_add_elements",
      [](const Tensor& x, std::int64_t a, const Tensor& i, const Tensor& src) {
        return ops::scatter_elements(x, i, source_of(wrap(src), x, i), a, "add");
      },
      input_, "dim"_a, "index"_a, "src"_a);
  m.def(
      "tensor_scatter_elements",
      [](const Tensor& x, const Tensor& i, const Tensor& u, std::int64_t a, const std::string& r) {
        UNDERTOW_CHECK(r == "none" || r == "add", ValueError,
                       "tensor_scatter_elements: reduction must be 'none' or 'add', got '{}'", r);
        return ops::scatter_elements(x, i, u, a, r == "add" ? "add" : "update");
      },
      "input_x"_a, "indices"_a, "updates"_a, "axis"_a = 0, "reduction"_a = "none",
      "input_x with elements along an axis replaced, or added to.");
  m.def(
      "index_add",
      [](nb::handle self, const Tensor& i, const Tensor& y, std::int64_t axis, bool, bool) {
        const Tensor x = tensor_of(self, "index_add: x");
        return written(self, x, ops::scatter(x, i, y, axis, "add"));
      },
      "x"_a, "indices"_a, "y"_a, "axis"_a, "use_lock"_a = true, "check_index_bound"_a = true,
      "Slices of x along an axis added to; a Parameter is written.");
  m.def(
      "_index_add",
      [](const Tensor& x, std::int64_t axis, const Tensor& i, const Tensor& y, const Operand& alpha) {
        return ops::scatter(x, i, ops::mul(y, alpha), axis, "add");
      },
      input_, "dim"_a, "index"_a, "source"_a, nb::kw_only(), "alpha"_a = 1);
  m.def(
      "index_fill",
      [](const Tensor& x, std::int64_t axis, const Tensor& i, const Operand& v) {
        const int a = normalize_axis(axis, x.ndim(), "index_fill");
        Shape s = x.shape();
        s[a] = i.size();
        return ops::scatter(x, ops::reshape(i, {-1}), ops::broadcast_to(v.as(x.dtype()), s), a);
      },
      "x"_a, "axis"_a, "index"_a, "value"_a, "Slices of x along an axis set to a value.");
  const std::tuple<const char*, const char*> inplace[] = {
      {"inplace_update", "update"}, {"inplace_add", "add"}, {"inplace_sub", "sub"}};
  for (const auto& [name, mode] : inplace)
    m.def(
        name,
        [mode = std::string_view(mode)](const Tensor& x, const Tensor& v, nb::handle indices) {
          const Tensor i = ops::reshape(to_tensor(indices), {-1});
          return ops::scatter(x, i, v, 0, mode);
        },
        "x"_a, "v"_a, "indices"_a, "Rows of x met by v; x itself stays.");
  const std::tuple<const char*, const char*, const char*> segments[] = {{"unsorted_segment_sum", "add", "input_x"},
                                                                        {"unsorted_segment_prod", "mul", "x"},
                                                                        {"unsorted_segment_max", "max", "x"},
                                                                        {"unsorted_segment_min", "min", "x"}};
  for (const auto& [name, mode, argument] : segments)
    m.def(
        name,
        [mode = std::string_view(mode)](const Tensor& x, const Tensor& ids, nb::handle n) {
          return ops::segment_reduce(x, ids, integer_of(n, "num_segments"), mode);
        },
        nb::arg(argument), "segment_ids"_a, "num_segments"_a, "Rows reduced by segment; a negative id drops its row.");
  for (const char* axis : {"axis", "dim"})
    m.def(
        "select_scatter",
        [](const Tensor& x, const Tensor& src, std::int64_t axis, std::int64_t index) {
          const int a = normalize_axis(axis, x.ndim(), "select_scatter");
          std::vector<std::int64_t> begin(x.shape().size(), 0);
          begin[static_cast<std::size_t>(a)] = index < 0 ? index + x.shape(a) : index;
          UNDERTOW_CHECK(begin[static_cast<std::size_t>(a)] >= 0 && begin[static_cast<std::size_t>(a)] < x.shape(a),
                         IndexError, "select_scatter: index {} is out of range for {}", index, x.shape().str());
          return ops::slice_update(x, ops::expand_dims(src, a), begin, std::vector<std::int64_t>(begin.size(), 1));
        },
        input_, "src"_a, nb::arg(axis), "index"_a, "input with one slice of an axis replaced.");
}

}  // namespace

void bind_indexing(nb::module_& m) {
  m.def(
      "gather",
      [](const Tensor& x, const Tensor& i, nb::handle axis, std::int64_t batch_dims) {
        const std::int64_t a = integer_of(axis, "gather: axis");
        if (batch_dims == 0) return ops::gather(x, i, a);
        // The leading dimensions of both are the same batch: positions in the joined dimensions.
        const int b = normalize_axis(batch_dims, x.ndim(), "gather: batch_dims");
        UNDERTOW_CHECK(b <= i.ndim() && normalize_axis(a, x.ndim(), "gather") == b, ValueError,
                       "gather: with batch_dims {} the axis must be {} too, got {}", batch_dims, b, a);
        std::int64_t batch = 1;
        for (int d = 0; d < b; ++d) {
          UNDERTOW_CHECK(x.shape(d) == i.shape(d), ShapeError, "gather: batch dimensions of {} and {} differ",
                         x.shape().str(), i.shape().str());
          batch *= x.shape(d);
        }
        const std::int64_t n = x.shape(b), rest = batch ? x.size() / std::max<std::int64_t>(1, batch * n) : 0;
        const Tensor flat = ops::reshape(x, {batch, n, rest});
        const Tensor index = ops::reshape(ops::cast(i, DType::kInt64), {batch, batch ? i.size() / batch : 0, 1});
        std::vector<std::int64_t> shape = i.shape().to_vector();
        for (int d = b + 1; d < x.ndim(); ++d) shape.push_back(x.shape(d));
        const Shape wide{batch, index.shape(1), rest};
        return ops::reshape(ops::gather_elements(flat, ops::broadcast_to(index, wide), 1), shape);
      },
      "input_params"_a, "input_indices"_a, "axis"_a, "batch_dims"_a = 0,
      "Slices of input_params at the indices along an axis; out of range raises IndexError in every mode.");
  for (const char* axis : {"axis", "dim"})
    m.def(
        "index_select", [](const Tensor& x, std::int64_t a, const Tensor& i) { return ops::gather(x, i, a); }, input_,
        nb::arg(axis), "index"_a, "Slices of an axis at the indices.");
  const auto elements = [](const Tensor& x, std::int64_t dim, const Tensor& i) {
    return ops::gather_elements(x, i, dim);
  };
  m.def("gather_elements", elements, input_, "dim"_a, "index"_a, "Elements along an axis, a position for each.");
  m.def("gather_d", elements, "x"_a, "dim"_a, "index"_a, "Elements along an axis, a position for each.");
  m.def("gather_nd", &ops::gather_nd, "input_x"_a, "indices"_a,
        "Slices at positions that indices' last dimension holds.");
  m.def(
      "take",
      [](const Tensor& x, const Tensor& i, std::optional<std::int64_t> axis) {
        return axis ? ops::gather(x, i, *axis) : ops::gather(ops::reshape(x, {-1}), i, 0);
      },
      input_, "index"_a, none_arg("axis"), "Elements of the flattened tensor, or slices of an axis.");
  m.def(
      "take_along_axis",
      [](const Tensor& x, const Tensor& i, std::optional<std::int64_t> axis) {
        if (!axis) return ops::gather(ops::reshape(x, {-1}), ops::reshape(i, {-1}), 0);
        return ops::gather_elements(x, i, *axis);
      },
      "arr"_a, "indices"_a, "axis"_a.none(), "As gather_elements; without an axis, of the flattened tensor.");
  m.def("_select_at", &ops::select_at, input_, "axis"_a, "index"_a, "One slice of an axis, without it.");
  bind_scatter(m);
}

}  // namespace undertow::python
