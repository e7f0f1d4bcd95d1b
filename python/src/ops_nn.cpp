// SPDX-License-Identifier: Apache-2.0
// undertow.ops: linear algebra, softmax, dropout, parameter writes; calls the families of neural network functions.
#include "python/src/ops_nn.h"

#include "undertow/base/check.h"
#include "undertow/ops/nn_misc.h"
#include "undertow/runtime/trace.h"

namespace undertow::python {
namespace {

using ops::Operand;

Parameter parameter(nb::handle o, const char* op) {
  const Tensor* t = unwrap(o);
  UNDERTOW_CHECK(t && t->is_parameter(), TypeError, "{}: the first argument must be a Parameter, got {}", op,
                 type_name_of(o));
  return Parameter::of(*t);
}

template <typename F>
auto assigning(const char* op, F f) {
  return [op, f](nb::handle variable, const Operand& value) {
    const Parameter p = parameter(variable, op);
    const Tensor v = f(p, value);
    ops::assign(p, ops::cast(v, p.dtype()));
    return nb::borrow(variable);
  };
}

}  // namespace

void bind_ops_nn(nb::module_& m) {
  bind_ops_activations(m);
  bind_ops_window(m);
  bind_ops_losses(m);
  bind_ops_image(m);
  bind_ops_norm(m);
  m.def(
      "matmul", [](const Tensor& a, const Tensor& b) { return ops::matmul(a, b); }, "input"_a, "other"_a,
      "Matrix product (..., m, k) x (..., k, n), batch dimensions broadcast.");
  for (const char* n : {"bmm", "mm"})
    m.def(
        n, [](const Tensor& a, const Tensor& b) { return ops::matmul(a, b); }, "input"_a, "mat2"_a, "Matrix product.");
  m.def("_matmul", &ops::matmul, "a"_a, "b"_a, "transpose_a"_a, "transpose_b"_a);
  m.def(
      "dense",
      [](const Tensor& x, const Tensor& w, const std::optional<Tensor>& b) {
        const Tensor y = ops::matmul(x, w, false, true);
        return b ? ops::add(y, *b) : y;
      },
      "input"_a, "weight"_a, "bias"_a.none() = nb::none(), "input weight^T + bias, with weight (out, in).");
  m.def(
      "softmax",
      [](const Tensor& x, std::int64_t axis, std::optional<DType> d) {
        return ops::softmax(d ? ops::cast(x, *d) : x, axis);
      },
      "input"_a, "axis"_a = -1, nb::kw_only(), "dtype"_a.none() = nb::none(), "exp(x) / sum(exp(x)) along an axis.");
  m.def(
      "log_softmax", [](const Tensor& x, std::int64_t axis) { return ops::log_softmax(x, axis); }, "logits"_a,
      "axis"_a = -1, "log(softmax(x)), without overflow.");
  m.def(
      "dropout",
      [](const Tensor& x, double p, bool training, nb::handle seed) {
        UNDERTOW_CHECK(seed.is_none(), ValueError, "dropout: a seed of its own is not supported; use set_seed");
        UNDERTOW_CHECK(p >= 0 && p < 1, ValueError, "dropout: p must be in [0, 1), got {}", p);
        return training ? ops::dropout(x, p) : x;
      },
      "input"_a, "p"_a = 0.5, "training"_a = true, "seed"_a.none() = nb::none(),
      "Zeroes each element with probability p and scales the rest by 1 / (1 - p).");
  m.def("_softmax_cross_entropy", [](const Tensor& x, const Tensor& y) { return ops::cross_entropy_dense(x, y); });
  m.def("_sparse_softmax_cross_entropy",
        [](const Tensor& x, const Tensor& y) { return ops::reduce_mean(ops::cross_entropy_sparse(x, y)); });
  for (const int n : {1, 2, 3})
    m.def(
        fmt::format("dropout{}d", n).c_str(),
        [n](const Tensor& x, double p, bool training) {
          return training ? ops::dropout_slices(x, p, n == 1 && x.ndim() == 2 ? 1 : 2) : x;
        },
        "input"_a, "p"_a = 0.5, "training"_a = true, "Zeroes whole channels with probability p and scales the rest.");
  m.def("assign",
        assigning("assign",
                  [](const Tensor&, const Operand& v) { return v.is_tensor() ? v.tensor() : v.as(DType::kFloat32); }),
        "variable"_a, "value"_a, "The Parameter has this value for every later read.");
  m.def("assign_add", assigning("assign_add", [](const Tensor& p, const Operand& v) { return ops::add(p, v); }),
        "variable"_a, "value"_a, "variable += value");
  m.def("assign_sub", assigning("assign_sub", [](const Tensor& p, const Operand& v) { return ops::sub(p, v); }),
        "variable"_a, "value"_a, "variable -= value");
  m.def(
      "depend", [](nb::handle value, nb::handle) { return nb::borrow(value); }, "value"_a.none(), "expr"_a.none(),
      "`value`: parameter writes keep the order of the program by themselves.");
  m.def("_tracing", [] { return runtime::current_trace() != nullptr; });
}

}  // namespace undertow::python
