// SPDX-License-Identifier: Apache-2.0
// undertow.ops: shapes: reordering, repeating, cutting, joining, diagonals.
#include "python/src/ops_bind.h"
#include "undertow/ops/arrange.h"
#include "undertow/ops/diagonal.h"

namespace undertow::python {

std::vector<Tensor> tensors(nb::handle items, const char* what) {
  std::vector<Tensor> out;
  UNDERTOW_CHECK(!unwrap(items) && PySequence_Check(items.ptr()), TypeError,
                 "{}: needs a tuple or list of Tensors, got {}", what, type_name_of(items));
  for (nb::handle h : items) {
    const Tensor* t = unwrap(h);
    UNDERTOW_CHECK(t, TypeError, "{}: item {} is not a Tensor but {}", what, out.size(), type_name_of(h));
    out.push_back(*t);
  }
  return out;
}

namespace {

nb::object split(const Tensor& x, const Ints& size, std::int64_t axis) {
  return as_tuple(size.single ? ops::split_size(x, size.values[0], axis) : ops::split_sizes(x, size.values, axis));
}

nb::object tensor_split(const Tensor& x, const Ints& where, std::int64_t axis) {
  return as_tuple(where.single ? ops::tensor_split(x, where.values[0], axis)
                               : ops::tensor_split(x, where.values, axis));
}

/// Functions of one Tensor, or of each of a tuple.
template <typename F>
auto one_or_each(F f, const char* what) {
  return [f, what](nb::handle x) -> nb::object {
    if (const Tensor* t = unwrap(x)) return wrap(f(*t));
    std::vector<Tensor> out;
    for (const Tensor& t : tensors(x, what)) out.push_back(f(t));
    return as_tuple(out);
  };
}

void bind_reordering(nb::module_& m) {
  m.def(
      "reshape", [](const Tensor& x, const Ints& s) { return ops::reshape(x, s.values); }, input_, "shape"_a,
      "The elements in another shape; one extent may be -1.");
  for (const char* n : {"reshape_as", "view_as"})
    m.def(
        n, [](const Tensor& x, const Tensor& y) { return ops::reshape(x, y.shape().to_vector()); }, input_, "other"_a,
        "The elements in the other's shape.");
  m.def(
      "flatten",
      [](const Tensor& x, const std::string& order, std::int64_t start, std::int64_t end) {
        UNDERTOW_CHECK(order == "C" || order == "F", ValueError, "flatten: order must be 'C' or 'F', got '{}'", order);
        return ops::flatten(order == "F" ? ops::transpose(x) : x, start, end);
      },
      input_, "order"_a = "C", nb::kw_only(), "start_dim"_a = 1, "end_dim"_a = -1,
      "Joins dimensions start_dim to end_dim.");
  m.def("ravel", [](const Tensor& x) { return ops::reshape(x, {-1}); }, input_, "As a vector.");
  for (const char* argument : {"input_perm", "dims"})
    m.def(
        "transpose", [](const Tensor& x, const Ints& p) { return ops::transpose(x, p.values); }, input_,
        nb::arg(argument), "Dimensions in another order.");
  m.def("permute", [](const Tensor& x, const Ints& p) { return ops::transpose(x, p.values); }, input_, "axis"_a);
  m.def(
      "t",
      [](const Tensor& x) {
        UNDERTOW_CHECK(x.ndim() <= 2, ShapeError, "t: takes at most 2 dimensions, got shape {}", x.shape().str());
        return ops::transpose(x);
      },
      input_, "The transposed matrix.");
  m.def("swapaxes", &ops::swapaxes, input_, "axis0"_a, "axis1"_a, "Exchanges two dimensions.");
  m.def("swapdims", &ops::swapaxes, input_, "dim0"_a, "dim1"_a, "Exchanges two dimensions.");
  for (const char* n : {"moveaxis", "movedim"})
    m.def(
        n, [](const Tensor& x, const Ints& s, const Ints& d) { return ops::moveaxis(x, s.values, d.values); }, "x"_a,
        "source"_a, "destination"_a, "Moves dimensions to other places.");
  m.def("expand_dims", &ops::expand_dims, "input_x"_a, "axis"_a, "A new dimension of extent 1 before `axis`.");
  m.def("unsqueeze", &ops::expand_dims, input_, "dim"_a, "A new dimension of extent 1 before `dim`.");
  m.def(
      "squeeze", [](const Tensor& x, const AxesArg& a) { return ops::squeeze(x, a.values); }, input_, none_arg("axis"),
      "Without the given dimensions of extent 1 (all of them without any).");
  const auto expand = [](const Tensor& x, const Ints& s) { return ops::expand(x, s.values); };
  m.def("broadcast_to", expand, input_, "shape"_a, "Repeats along dimensions of extent 1; -1 keeps an extent.");
  m.def("expand", expand, "input_x"_a, "size"_a, "Repeats along dimensions of extent 1; -1 keeps an extent.");
  m.def(
      "expand_as", [](const Tensor& x, const Tensor& y) { return ops::broadcast_to(x, y.shape()); }, input_, "other"_a,
      "Broadcast to the other's shape.");
  const char* names[] = {"atleast_1d", "atleast_2d", "atleast_3d"};
  for (int d = 0; d < 3; ++d)
    m.def(names[d], one_or_each([d](const Tensor& x) { return ops::at_least(x, d + 1); }, names[d]), "inputs"_a,
          "Tensors with at least that many dimensions.");
  for (const char* argument : {"dims", "axis"})
    m.def(
        argument[0] == 'd' ? "flip" : "reverse", [](const Tensor& x, const Ints& a) { return ops::flip(x, a.values); },
        argument[0] == 'd' ? input_ : "x"_a, nb::arg(argument), "Reversed along the given dimensions.");
  m.def("fliplr", [](const Tensor& x) { return ops::flip(x, {1}); }, input_, "Reversed along dimension 1.");
  m.def("flipud", [](const Tensor& x) { return ops::flip(x, {0}); }, input_, "Reversed along dimension 0.");
  m.def(
      "roll", [](const Tensor& x, const Ints& s, const AxesArg& a) { return ops::roll(x, s.values, a.values); }, input_,
      "shifts"_a, none_arg("dims"), "Shifted cyclically along dimensions (without any: as a vector).");
  m.def(
      "rot90", [](const Tensor& x, std::int64_t k, const Ints& d) { return ops::rot90(x, k, d.values); }, input_, "k"_a,
      "dims"_a, "Turned k times by 90 degrees from the first dimension to the second.");
  m.def("reverse_sequence", &ops::reverse_sequence, "x"_a, "seq_lengths"_a, "seq_dim"_a, "batch_dim"_a = 0,
        "The first seq_lengths[i] elements of row i reversed.");
}

void bind_pieces(nb::module_& m) {
  for (const char* n : {"concat", "cat"})
    for (const char* axis : {"axis", "dim"})
      m.def(
          n, [](nb::handle xs, std::int64_t a) { return ops::concat(tensors(xs, "concat"), a); }, "tensors"_a,
          nb::arg(axis) = 0, "One after the other along an axis.");
  for (const char* axis : {"axis", "dim"}) {
    m.def(
        "stack", [](nb::handle xs, std::int64_t a) { return ops::stack(tensors(xs, "stack"), a); }, "tensors"_a,
        nb::arg(axis) = 0, "Side by side along a new axis.");
    m.def("split", &split, "tensor"_a, "split_size_or_sections"_a, nb::arg(axis) = 0,
          "Pieces of the given size (the last may be smaller), or of the given sizes.");
    m.def(
        "chunk", [](const Tensor& x, std::int64_t n, std::int64_t a) { return as_tuple(ops::chunk(x, n, a)); }, input_,
        "chunks"_a, nb::arg(axis) = 0, "At most that many pieces of equal size (the last may be smaller).");
    m.def("narrow", &ops::narrow, input_, nb::arg(axis), "start"_a, "length"_a, "Part of an axis.");
  }
  m.def("tensor_split", &tensor_split, input_, "indices_or_sections"_a, "axis"_a = 0,
        "Sections of nearly equal size, or cut before each index.");
  const std::tuple<const char*, std::int64_t> axes[] = {{"vsplit", 0}, {"hsplit", 1}, {"dsplit", 2}};
  for (const auto& [name, axis] : axes)
    m.def(
        name, [a = axis](const Tensor& x, const Ints& where) { return tensor_split(x, where, x.ndim() == 1 ? 0 : a); },
        input_, "indices_or_sections"_a, "tensor_split along one dimension.");
  m.def(
      "unstack", [](const Tensor& x, std::int64_t a) { return as_tuple(ops::unstack(x, a)); }, "input_x"_a,
      "axis"_a = 0, "The slices along an axis, without it.");
  m.def(
      "unbind", [](const Tensor& x, std::int64_t a) { return as_tuple(ops::unstack(x, a)); }, input_, "dim"_a = 0,
      "The slices along an axis, without it.");
  using Joint = Tensor (*)(const std::vector<Tensor>&);
  const std::pair<const char*, Joint> joints[] = {{"hstack", &ops::hstack},
                                                  {"vstack", &ops::vstack},
                                                  {"row_stack", &ops::vstack},
                                                  {"dstack", &ops::dstack},
                                                  {"column_stack", &ops::column_stack}};
  for (const auto& [name, f] : joints)
    m.def(
        name, [f = f, name = name](nb::handle xs) { return f(tensors(xs, name)); }, "tensors"_a,
        "Tensors joined along one dimension, as NumPy.");
  const std::pair<const char*, Joint> of_args[] = {{"block_diag", &ops::block_diag},
                                                   {"cartesian_prod", &ops::cartesian_prod}};
  for (const auto& [name, f] : of_args)
    m.def(
        name, [f = f, name = name](const nb::args& xs) { return f(tensors(xs, name)); }, "inputs"_a,
        "Tensors as blocks of a matrix; combinations of elements of vectors.");
  m.def(
      "meshgrid",
      [](const nb::args& xs, const std::string& indexing) {
        return as_tuple(ops::meshgrid(tensors(xs, "meshgrid"), indexing));
      },
      "inputs"_a, "indexing"_a = "xy", "One axis a tensor; 'xy' exchanges the first two.");
  m.def(
      "broadcast_arrays", [](const nb::args& xs) { return as_tuple(ops::broadcast_tensors(tensors(xs, "broadcast"))); },
      "args"_a, "The tensors in their common shape.");
  m.def(
      "tile", [](const Tensor& x, const Ints& d) { return ops::tile(x, d.values); }, input_, "dims"_a,
      "The tensor repeated dims[i] times along each dimension.");
  m.def(
      "repeat_interleave",
      [](const Tensor& x, const Ints& r, std::optional<std::int64_t> axis) {
        if (r.single) return ops::repeat_interleave(x, r.values[0], axis);
        return axis ? ops::repeat_interleave(x, r.values, *axis)
                    : ops::repeat_interleave(ops::reshape(x, {-1}), r.values, 0);
      },
      input_, "repeats"_a, none_arg("axis"), "Each element several times in a row.");
  m.def(
      "repeat_elements",
      [](const Tensor& x, std::int64_t rep, std::int64_t axis) { return ops::repeat_interleave(x, rep, axis); }, "x"_a,
      "rep"_a, "axis"_a = 0, "Each slice of an axis `rep` times in a row.");
  m.def(
      "diff",
      [](const Tensor& x, std::int64_t n, std::int64_t axis, const std::optional<Tensor>& before,
         const std::optional<Tensor>& after) {
        std::vector<Tensor> parts;
        if (before) parts.push_back(*before);
        parts.push_back(x);
        if (after) parts.push_back(*after);
        return ops::diff(parts.size() == 1 ? x : ops::concat(parts, axis), n, axis);
      },
      "x"_a, "n"_a = 1, "axis"_a = -1, none_arg("prepend"), none_arg("append"), "Differences of neighbours.");
  m.def(
      "strided_slice",
      [](const Tensor& x, const Ints& begin, const Ints& end, const Ints& strides, std::int64_t begin_mask,
         std::int64_t end_mask, std::int64_t ellipsis, std::int64_t new_axis, std::int64_t shrink) {
        return ops::strided_slice(x, begin.values, end.values, strides.values,
                                  {begin_mask, end_mask, ellipsis, new_axis, shrink});
      },
      "input_x"_a, "begin"_a, "end"_a, "strides"_a, "begin_mask"_a = 0, "end_mask"_a = 0, "ellipsis_mask"_a = 0,
      "new_axis_mask"_a = 0, "shrink_axis_mask"_a = 0, "x[begin:end:strides]; bit i of a mask is about entry i.");
  for (const char* n : {"slice", "tensor_slice"})
    m.def(
        n,
        [](const Tensor& x, const Ints& begin, const Ints& size) {
          const auto rank = static_cast<std::size_t>(x.ndim());
          UNDERTOW_CHECK(begin.values.size() == rank && size.values.size() == rank, ValueError,
                         "slice: {} begins and {} sizes for shape {}", begin.values.size(), size.values.size(),
                         x.shape().str());
          Tensor y = x;
          for (int d = 0; d < x.ndim(); ++d) {
            const auto i = static_cast<std::size_t>(d);
            const std::int64_t n = size.values[i] == -1 ? x.shape(d) - begin.values[i] : size.values[i];
            y = ops::narrow(y, d, begin.values[i], n);
          }
          return y;
        },
        "input_x"_a, "begin"_a, "size"_a, "A box of the tensor; size -1 reaches to the end.");
}

void bind_diagonals(nb::module_& m) {
  for (const char* n : {"tril", "triu"})
    m.def(n, n[3] == 'l' ? &ops::tril : &ops::triu, input_, "diagonal"_a = 0,
          "A triangle of matrices, zeros elsewhere.");
  m.def("matrix_band_part", &ops::band_part, "x"_a, "lower"_a, "upper"_a, "Some diagonals, zeros elsewhere.");
  m.def("diagonal", &ops::diagonal, input_, "offset"_a = 0, "dim1"_a = 0, "dim2"_a = 1, "Diagonals of matrices.");
  m.def("diagonal", &ops::diagonal, input_, "offset"_a = 0, "axis1"_a = 0, "axis2"_a = 1);
  m.def("diag_embed", &ops::diag_embed, input_, "offset"_a = 0, "dim1"_a = -2, "dim2"_a = -1,
        "Matrices with the last dimension on a diagonal.");
  m.def(
      "diag",
      [](const Tensor& x) {
        const Tensor flat = ops::diag_embed(ops::reshape(x, {-1}));
        std::vector<std::int64_t> s = x.shape().to_vector();
        s.insert(s.end(), x.shape().begin(), x.shape().end());
        return ops::reshape(flat, s);
      },
      input_, "The tensor on the diagonal of one with twice its dimensions.");
  m.def(
      "diagflat", [](const Tensor& x, std::int64_t offset) { return ops::diag_embed(ops::reshape(x, {-1}), offset); },
      input_, "offset"_a = 0, "A matrix with the flattened tensor on a diagonal.");
  m.def(
      "_diag_matrix",
      [](const Tensor& x, std::int64_t k) { return x.ndim() == 1 ? ops::diag_embed(x, k) : ops::diagonal(x, k); },
      "v"_a, "k"_a = 0);
  m.def("fill_diagonal", &ops::fill_diagonal, input_, "fill_value"_a, "wrap"_a = false,
        "The value on the main diagonal.");
  m.def("trace", [](const Tensor& x) { return ops::trace(x); }, input_, "Sum of a matrix's diagonal.");
  m.def(
      "trace",
      [](const Tensor& x, std::int64_t offset, std::int64_t a, std::int64_t b, std::optional<DType> d) {
        return ops::trace(d ? ops::cast(x, *d) : x, offset, a, b);
      },
      input_, "offset"_a = 0, "axis1"_a = 0, "axis2"_a = 1, none_arg("dtype"));
}

}  // namespace

void bind_shapes(nb::module_& m) {
  bind_reordering(m);
  bind_pieces(m);
  bind_diagonals(m);
}

}  // namespace undertow::python
