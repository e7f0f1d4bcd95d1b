// SPDX-License-Identifier: Apache-2.0
// undertow.ops: reductions and statistics.
#include <limits>

#include "python/src/ops_bind.h"
#include "undertow/ops/statistics.h"

namespace undertow::python {
namespace {

using Extremum = Tensor (*)(const Tensor&, ops::Axes, bool);
using Position = Tensor (*)(const Tensor&, std::int64_t, bool);
using Axis = std::optional<std::int64_t>;

/// Values and positions along an axis; without one, over everything.
nb::object with_positions(Extremum value, Position position, const Tensor& x, Axis axis, bool keep) {
  if (!axis) return nb::make_tuple(value(x, {}, false), position(ops::reshape(x, {-1}), 0, false));
  return nb::make_tuple(value(x, {*axis}, keep), position(x, *axis, keep));
}

/// x with what `where` leaves out replaced by `initial`, which also takes part.
Tensor limited(const Tensor& x, nb::handle initial, nb::handle where, bool max, const char* op) {
  if (initial.is_none() && where.is_none()) return x;
  UNDERTOW_CHECK(!initial.is_none(), ValueError, "{}: 'where' needs 'initial'", op);
  Operand start(std::int64_t{0});
  UNDERTOW_CHECK(nb::try_cast(initial, start), TypeError, "{}: 'initial' must be a number, got {}", op,
                 type_name_of(initial));
  Tensor y = x;
  if (const Tensor* mask = unwrap(where)) y = ops::select(*mask, y, start);
  else
    UNDERTOW_CHECK(where.is_none() || where.is(Py_True), TypeError, "{}: 'where' must be a Tensor, got {}", op,
                   type_name_of(where));
  return max ? ops::maximum(y, start) : ops::minimum(y, start);
}

/// Integers and bools are summed in int64, as MindSpore's sum and prod.
Tensor wide(const Tensor& x, std::optional<DType> d) {
  if (d) return ops::cast(x, *d);
  return is_floating(x.dtype()) ? x : ops::cast(x, DType::kInt64);
}

double order_of(nb::handle ord) {
  if (ord.is_none()) return 2;
  if (nb::isinstance<nb::str>(ord)) {
    const auto name = nb::cast<std::string>(ord);
    UNDERTOW_CHECK(name == "fro", ValueError, "norm: order '{}' is not supported; use 'fro' or a number", name);
    return 2;
  }
  return number_of(ord, "norm: ord");
}

Tensor norm(const Tensor& x, nb::handle ord, const AxesArg& dim, bool keep, std::optional<DType> d) {
  const Tensor t = d ? ops::cast(x, *d) : x;
  const bool matrix = dim.values.size() == 2 || (dim.values.empty() && x.ndim() == 2);
  if (ord.is_none() || !matrix || nb::isinstance<nb::str>(ord))
    return ops::vector_norm(t, order_of(ord), dim.values, keep);
  const double p = order_of(ord);
  UNDERTOW_CHECK(p != 2 && p != -2, ValueError,
                 "norm: order {} of a matrix is its largest (smallest) singular value, which is not supported; "
                 "vector_norm is the norm of the elements",
                 p);
  return ops::matrix_norm(t, p, dim.values.empty() ? ops::Axes{0, 1} : dim.values, keep);
}

template <typename F>
void bind_sums(nb::module_& m, const char* name, F f, const char* doc) {
  using D = std::optional<DType>;
  m.def(
      name, [f](const Tensor& x, const AxesArg& a, bool k, D d) { return f(wide(x, d), a, k); }, input_,
      none_arg("dim"), "keepdim"_a = false, none_arg("dtype"), doc);
  for (const char* keep : {"keep_dims", "keepdims"})
    m.def(
        name, [f](const Tensor& x, const AxesArg& a, bool k, D d) { return f(wide(x, d), a, k); }, input_,
        none_arg("axis"), nb::arg(keep) = false, none_arg("dtype"));
  m.def(
      name,
      [f](const Tensor& x, const AxesArg& axis, D d, nb::handle out, bool keep) {
        UNDERTOW_CHECK(out.is_none(), TypeError, "a Tensor's method takes no 'out'");
        return f(wide(x, d), axis, keep);
      },
      input_, none_arg("axis"), none_arg("dtype"), none_arg("out"), "keepdims"_a = false);
}

void bind_extrema(nb::module_& m, bool max) {
  const Extremum value = max ? Extremum(&ops::reduce_max) : &ops::reduce_min;
  const Position position = max ? &ops::argmax : &ops::argmin;
  const auto f = [value](const Tensor& x, const AxesArg& a, bool k) { return value(x, a.values, k); };
  const char* doc = "The extreme elements. Raises ValueError over none.";
  const char* name = max ? "amax" : "amin";
  for (const char* n : {name, max ? "reduce_max" : "reduce_min"}) reduction(m, n, f, doc);
  m.def(
      name,
      [=](const Tensor& x, const AxesArg& a, bool k, nb::handle initial, nb::handle where) {
        return value(limited(x, initial, where, max, name), a.values, k);
      },
      input_, none_arg("axis"), "keepdims"_a = false, nb::kw_only(), none_arg("initial"), none_arg("where"));
  m.def(
      max ? "max" : "min",
      [=](const Tensor& x, Axis a, bool k, nb::handle initial, nb::handle where) {
        return with_positions(value, position, limited(x, initial, where, max, max ? "max" : "min"), a, k);
      },
      input_, none_arg("axis"), "keepdims"_a = false, nb::kw_only(), none_arg("initial"), none_arg("where"),
      "(values, positions) of the extreme elements along an axis.");
  m.def(
      max ? "_argmax_with_value" : "_argmin_with_value",
      [=](const Tensor& x, std::int64_t axis, bool k) {
        return nb::make_tuple(position(x, axis, k), value(x, {axis}, k));
      },
      "x"_a, "axis"_a = 0, "keep_dims"_a = false);
  // int32 is argmin's dtype in MindSpore; argmax has int64.
  const auto arg = [=](const Tensor& x, Axis a, bool k) {
    const Tensor at = a ? position(x, *a, k) : position(ops::reshape(x, {-1}), 0, false);
    return max ? at : ops::cast(at, DType::kInt32);
  };
  const char* arg_name = max ? "argmax" : "argmin";
  m.def(arg_name, arg, input_, none_arg("dim"), "keepdim"_a = false,
        "Position of the extreme element along an axis (of the flattened tensor without one); NaN wins. argmax gives "
        "int64, argmin int32.");
  m.def(arg_name, arg, input_, none_arg("axis"), "keepdims"_a = false);
  m.def(
      arg_name,
      [arg](const Tensor& x, Axis a, nb::handle out) {
        UNDERTOW_CHECK(out.is_none(), TypeError, "a Tensor's method takes no 'out'");
        return arg(x, a, false);
      },
      input_, none_arg("axis"), none_arg("out"));
}

}  // namespace

void bind_reductions(nb::module_& m) {
  bind_sums(
      m, "sum", [](const Tensor& x, const AxesArg& a, bool k) { return ops::reduce_sum(x, a.values, k); },
      "Sum over the given axes (all of them without any); of integers and bools in int64.");
  bind_sums(
      m, "prod", [](const Tensor& x, const AxesArg& a, bool k) { return ops::reduce_prod(x, a.values, k); },
      "Product over the given axes; of integers and bools in int64.");
  bind_sums(
      m, "nansum", [](const Tensor& x, const AxesArg& a, bool k) { return ops::nansum(x, a.values, k); },
      "Sum of what is not NaN.");
  const std::pair<const char*, Extremum> plain[] = {
      {"reduce_sum", &ops::reduce_sum}, {"reduce_prod", &ops::reduce_prod}, {"reduce_mean", &ops::reduce_mean},
      {"mean", &ops::reduce_mean},      {"all", &ops::reduce_all},          {"any", &ops::reduce_any},
      {"nanmean", &ops::nanmean},       {"logsumexp", &ops::logsumexp}};
  for (const auto& [name, f] : plain)
    reduction(
        m, name, [f = f](const Tensor& x, const AxesArg& a, bool k) { return f(x, a.values, k); },
        "Over the given axes (all of them without any).");
  bind_extrema(m, true);
  bind_extrema(m, false);

  const auto var = [](const Tensor& x, const AxesArg& a, int ddof, bool k) {
    return ops::reduce_var(x, a.values, k, ddof);
  };
  const auto deviation = [](const Tensor& x, const AxesArg& a, int ddof, bool k) {
    return ops::std_dev(x, a.values, k, ddof);
  };
  const auto both = [](auto f) {
    return [f](const Tensor& x, const AxesArg& a, int ddof, bool k) {
      return nb::make_tuple(f(x, a, ddof, k), ops::reduce_mean(x, a.values, k));
    };
  };
  const auto spread = [&m](const char* name, auto f, const char* doc) {
    m.def(name, f, input_, none_arg("axis"), "ddof"_a = 0, "keepdims"_a = false, doc);
    m.def(name, f, input_, none_arg("dim"), nb::kw_only(), "correction"_a = 1, "keepdim"_a = false);
  };
  spread("var", var, "Variance with n - ddof.");
  spread("std", deviation, "Standard deviation with n - ddof.");
  spread("var_mean", both(var), "(variance with n - ddof, mean).");
  spread("std_mean", both(deviation), "(standard deviation with n - ddof, mean).");

  for (const char* axis : {"axis", "dim"})
    m.def(
        "count_nonzero",
        [](const Tensor& x, const AxesArg& a, bool k, DType d) { return ops::count_nonzero(x, a.values, k, d); },
        axis[0] == 'a' ? "x"_a : input_, none_arg(axis), "keep_dims"_a = false, "dtype"_a = DType::kInt32,
        "How many elements are not 0; int32 unless told.");
  m.def("norm", &norm, "A"_a, none_arg("ord"), none_arg("dim"), "keepdim"_a = false, nb::kw_only(), none_arg("dtype"),
        "Norm of all elements, of vectors along an axis (any order), or of matrices over two ('fro', 1, -1, inf, "
        "-inf).");
  m.def(
      "vector_norm",
      [](const Tensor& x, double p, const AxesArg& a, bool k, std::optional<DType> d) {
        return ops::vector_norm(d ? ops::cast(x, *d) : x, p, a.values, k);
      },
      "x"_a, "ord"_a = 2.0, none_arg("axis"), "keepdims"_a = false, nb::kw_only(), none_arg("dtype"),
      "(sum |x|^ord)^(1 / ord) over axes.");
  m.def(
      "matrix_norm",
      [](const Tensor& x, nb::handle ord, const Ints& axis, bool k, std::optional<DType> d) {
        const Tensor t = d ? ops::cast(x, *d) : x;
        if (nb::isinstance<nb::str>(ord)) return ops::vector_norm(t, order_of(ord), axis.values, k);
        return ops::matrix_norm(t, order_of(ord), axis.values, k);
      },
      "A"_a, "ord"_a = "fro", "axis"_a = nb::make_tuple(-2, -1), "keepdims"_a = false, nb::kw_only(), none_arg("dtype"),
      "Norm of matrices: 'fro', 1, -1, inf or -inf.");
  m.def(
      "dist", [](const Tensor& x, const Tensor& y, double p) { return ops::vector_norm(ops::sub(x, y), p); }, input_,
      "other"_a, "p"_a = 2.0, "p-norm of the difference.");
  m.def("cosine_similarity", &ops::cosine_similarity, "x1"_a, "x2"_a, "dim"_a = 1, "eps"_a = 1e-8,
        "x1 . x2 / max(|x1| |x2|, eps) over a dimension.");
  m.def("renorm", &ops::renorm, input_, "p"_a, "axis"_a, "maxnorm"_a,
        "Sub-tensors along an axis scaled down to a p-norm of at most maxnorm.");
  m.def(
      "histc", [](const Tensor& x, std::int64_t n, double a, double b) { return ops::histc(x, n, a, b); }, input_,
      "bins"_a = 100, "min"_a = 0.0, "max"_a = 0.0, "How many elements fall into each of equal parts of [min, max].");
  m.def("isin", &ops::isin, input_, "test_elements"_a, "invert"_a = false, "Whether elements are among the others.");
  m.def("intopk", &ops::in_top_k, "x1"_a, "x2"_a, "k"_a, "Whether class x2[i] is among the k largest of row x1[i].");
  const auto aminmax = [](const Tensor& x, Axis a, bool k) {
    const ops::Axes axes = a ? ops::Axes{*a} : ops::Axes{};
    return nb::make_tuple(ops::reduce_min(x, axes, k), ops::reduce_max(x, axes, k));
  };
  m.def("aminmax", aminmax, input_, nb::kw_only(), "axis"_a.none() = 0, "keepdims"_a = false,
        "(smallest, largest) along an axis.");
  reduction(
      m, "ptp",
      [](const Tensor& x, const AxesArg& a, bool k) {
        return ops::sub(ops::reduce_max(x, a.values, k), ops::reduce_min(x, a.values, k));
      },
      "Largest less smallest element.");
}

}  // namespace undertow::python
