// SPDX-License-Identifier: Apache-2.0
// undertow.ops: products of tensors.
#include "python/src/ops_bind.h"
#include "undertow/ops/linalg.h"

namespace undertow::python {
namespace {

Tensor tensordot(const Tensor& a, const Tensor& b, nb::handle axes) {
  if (PyLong_Check(axes.ptr())) {
    const auto n = nb::cast<std::int64_t>(axes);
    UNDERTOW_CHECK(n >= 0 && n <= a.ndim() && n <= b.ndim(), ValueError, "tensordot: {} axes of shapes {} and {}", n,
                   a.shape().str(), b.shape().str());
    ops::Axes last, first;
    for (std::int64_t i = 0; i < n; ++i) last.push_back(a.ndim() - n + i), first.push_back(i);
    return ops::tensordot(a, b, last, first);
  }
  UNDERTOW_CHECK(PySequence_Check(axes.ptr()) && nb::len(axes) == 2, TypeError,
                 "tensordot: axes must be an integer or a pair, got {}", type_name_of(axes));
  return ops::tensordot(a, b, nb::cast<Ints>(axes[0]).values, nb::cast<Ints>(axes[1]).values);
}

/// [b, ..., m] x [b, ..., n]: products over one axis of each, batched over the first.
Tensor batch_dot(const Tensor& a, const Tensor& b, nb::handle axes) {
  UNDERTOW_CHECK(a.ndim() >= 2 && b.ndim() >= 2 && a.shape(0) == b.shape(0), ShapeError,
                 "batch_dot: needs equal first dimensions, got {} and {}", a.shape().str(), b.shape().str());
  std::int64_t i = a.ndim() - 1, j = b.ndim() == 2 ? b.ndim() - 1 : b.ndim() - 2;
  if (PyLong_Check(axes.ptr())) {
    i = j = nb::cast<std::int64_t>(axes);
  } else if (!axes.is_none()) {
    i = nb::cast<std::int64_t>(axes[0]);
    j = nb::cast<std::int64_t>(axes[1]);
  }
  i = normalize_axis(i, a.ndim(), "batch_dot");
  j = normalize_axis(j, b.ndim(), "batch_dot");
  UNDERTOW_CHECK(i > 0 && j > 0, ValueError, "batch_dot: axis 0 is the batch");
  std::string left = "a", right = "a", result = "a";
  for (int d = 1; d < a.ndim(); ++d) {
    left += d == i ? 'z' : static_cast<char>('a' + d);
    if (d != i) result += left.back();
  }
  for (int d = 1; d < b.ndim(); ++d) {
    right += d == j ? 'z' : static_cast<char>('A' + d);
    if (d != j) result += right.back();
  }
  return ops::einsum(left + "," + right + "->" + result, {a, b});
}

}  // namespace

void bind_linalg(nb::module_& m) {
  m.def(
      "einsum",
      [](const std::string& equation, const nb::args& xs) {
        nb::object items = nb::borrow(xs);
        if (xs.size() == 1 && !unwrap(nb::handle(xs[0]))) items = nb::borrow(xs[0]);
        return ops::einsum(equation, tensors(items, "einsum"));
      },
      "equation"_a, "operands"_a, "Einstein summation: einsum('bij,bjk->bik', x, y).");
  m.def("tensor_dot", &tensordot, "x1"_a, "x2"_a, "axes"_a, "Sums over pairs of axes.");
  m.def("batch_dot", &batch_dot, "x1"_a, "x2"_a, none_arg("axes"), "Products over one axis of each, per batch.");
  using Product = Tensor (*)(const Tensor&, const Tensor&);
  const std::tuple<const char*, const char*, Product, const char*> products[] = {
      {"dot", "other", &ops::dot, "The last axis of the one with the second to last of the other."},
      {"inner", "other", &ops::inner, "Sum over both last axes."},
      {"outer", "vec2", &ops::outer, "Products of all pairs of elements."},
      {"ger", "vec2", &ops::outer, "Products of all pairs of elements."},
      {"kron", "other", &ops::kron, "Kronecker product."}};
  for (const auto& [name, second, f, doc] : products) m.def(name, f, input_, nb::arg(second), doc);
  m.def(
      "mv",
      [](const Tensor& a, const Tensor& v) {
        UNDERTOW_CHECK(a.ndim() == 2 && v.ndim() == 1, ShapeError, "mv: needs a matrix and a vector, got {} and {}",
                       a.shape().str(), v.shape().str());
        return ops::matmul(a, v);
      },
      "mat"_a, "vec"_a, "Matrix times vector.");
  m.def("vecdot", &ops::vecdot, "x"_a, "y"_a, nb::kw_only(), "axis"_a = -1, "Dot products along an axis.");
  m.def("cross", &ops::cross, input_, "other"_a, none_arg("dim"), "Cross product along a dimension of 3.");
  using Sum = Tensor (*)(const Tensor&, const Tensor&, const Tensor&, const Operand&, const Operand&);
  const std::tuple<const char*, const char*, const char*, const char*, Sum, const char*> sums[] = {
      {"addmm", "input", "mat1", "mat2", &ops::addmm, "beta input + alpha mat1 mat2"},
      {"addmv", "input", "mat", "vec", &ops::addmm, "beta input + alpha mat vec"},
      {"baddbmm", "input", "batch1", "batch2", &ops::addmm, "beta input + alpha batch1 batch2"},
      {"addbmm", "input", "batch1", "batch2", &ops::addbmm, "beta input + alpha sum(batch1 batch2)"},
      {"addr", "x", "vec1", "vec2", &ops::addr, "beta x + alpha vec1 (outer) vec2"}};
  for (const auto& [name, a, b, c, f, doc] : sums)
    m.def(name, f, nb::arg(a), nb::arg(b), nb::arg(c), "beta"_a = 1, "alpha"_a = 1, doc);
  m.def("cdist", &ops::cdist, "x1"_a, "x2"_a, "p"_a = 2.0, "p-norm distances between rows.");
  m.def("matrix_power", &ops::matrix_power, input_, "n"_a, "The n-th power of square matrices, n >= 0.");
}

void bind_ops(nb::module_& m) {
  bind_elementwise(m);
  bind_creation(m);
  bind_reductions(m);
  bind_order(m);
  bind_shapes(m);
  bind_indexing(m);
  bind_linalg(m);
}

}  // namespace undertow::python
