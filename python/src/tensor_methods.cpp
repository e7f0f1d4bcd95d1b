// SPDX-License-Identifier: Apache-2.0
// Operators and methods of Tensor: each is the function of the same name in undertow.ops.
#include "python/src/common.h"
#include "undertow/base/check.h"

namespace undertow::python {
namespace {

using ops::Operand;
using Class = nb::class_<TensorObject>;

template <typename F>
void binary(Class& c, const char* op, const char* reflected, F f) {
  c.def(op, [f](const Tensor& x, const Operand& y) { return f(x, y); }, nb::is_operator());
  if (reflected) c.def(reflected, [f](const Tensor& x, const Operand& y) { return f(y, x); }, nb::is_operator());
}

/// MindSpore spells these arguments in several ways.
template <typename F>
void reduction(Class& c, const char* name, F f) {
  c.def(name, f, "axis"_a.none() = nb::none(), "keep_dims"_a = false);
  c.def(name, f, "axis"_a.none() = nb::none(), "keepdims"_a = false);
  c.def(name, f, "dim"_a.none() = nb::none(), "keepdim"_a = false);
  // As NumPy's functions call it (np.mean(tensor)).
  c.def(
      name,
      [f](const Tensor& x, const AxesArg& axis, std::optional<DType> dtype, nb::handle out, bool keep) {
        UNDERTOW_CHECK(out.is_none(), TypeError, "a Tensor's method takes no 'out'");
        return f(dtype ? ops::cast(x, *dtype) : x, axis, keep);
      },
      "axis"_a.none() = nb::none(), "dtype"_a.none() = nb::none(), "out"_a.none() = nb::none(), "keepdims"_a = false);
}

/// x.f(a, b) and x.f((a, b)).
std::vector<std::int64_t> flat_ints(const nb::args& args) {
  if (args.size() == 1 && !PyIndex_Check(nb::handle(args[0]).ptr())) return nb::cast<Ints>(args[0]).values;
  if (args.size() == 1 && unwrap(args[0]) && unwrap(args[0])->ndim() == 1) return nb::cast<Ints>(args[0]).values;
  return nb::cast<Ints>(nb::handle(args)).values;
}

Tensor sum(const Tensor& x, const AxesArg& axis, bool keep) { return ops::reduce_sum(x, axis.values, keep); }

std::int64_t flat_axis(const std::optional<std::int64_t>& axis) { return axis.value_or(0); }
Tensor arg_reduce(Tensor (*f)(const Tensor&, std::int64_t, bool), const Tensor& x, std::optional<std::int64_t> axis,
                  bool keep) {
  return axis ? f(x, *axis, keep) : f(ops::reshape(x, {-1}), flat_axis(axis), false);
}

}  // namespace

void bind_tensor_methods(nb::module_& m) {
  auto c = nb::borrow<Class>(m.attr("Tensor"));
  binary(c, "__add__", "__radd__", &ops::add);
  binary(c, "__sub__", "__rsub__", &ops::sub);
  binary(c, "__mul__", "__rmul__", &ops::mul);
  binary(c, "__truediv__", "__rtruediv__", &ops::div);
  binary(c, "__floordiv__", "__rfloordiv__", &ops::floor_div);
  binary(c, "__mod__", "__rmod__", &ops::floor_mod);
  binary(c, "__pow__", "__rpow__", &ops::pow);
  binary(c, "__eq__", nullptr, &ops::equal);
  binary(c, "__ne__", nullptr, &ops::not_equal);
  binary(c, "__lt__", nullptr, &ops::less);
  binary(c, "__le__", nullptr, &ops::less_equal);
  binary(c, "__gt__", nullptr, &ops::greater);
  binary(c, "__ge__", nullptr, &ops::greater_equal);
  binary(c, "__and__", "__rand__", &ops::logical_and);
  binary(c, "__or__", "__ror__", &ops::logical_or);
  binary(c, "__xor__", "__rxor__", &ops::logical_xor);
  const auto matmul = [](const Operand& x, const Operand& y) {
    UNDERTOW_CHECK(x.is_tensor() && y.is_tensor(), TypeError, "@ needs two tensors");
    return ops::matmul(x.tensor(), y.tensor());
  };
  binary(c, "__matmul__", "__rmatmul__", matmul);
  c.def("__neg__", &ops::neg).def("__pos__", [](nb::handle self) { return nb::borrow(self); });
  c.def("__abs__", &ops::abs);
  c.def("__invert__", &ops::logical_not);

  const std::pair<const char*, Tensor (*)(const Tensor&)> unary[] = {
      {"abs", &ops::abs},           {"exp", &ops::exp},
      {"expm1", &ops::expm1},       {"log", &ops::log},
      {"log1p", &ops::log1p},       {"sqrt", &ops::sqrt},
      {"rsqrt", &ops::rsqrt},       {"square", &ops::square},
      {"sin", &ops::sin},           {"cos", &ops::cos},
      {"tanh", &ops::tanh},         {"erf", &ops::erf},
      {"sigmoid", &ops::sigmoid},   {"relu", &ops::relu},
      {"floor", &ops::floor},       {"ceil", &ops::ceil},
      {"round", &ops::round},       {"trunc", &ops::trunc},
      {"sign", &ops::sign},         {"neg", &ops::neg},
      {"negative", &ops::neg},      {"reciprocal", &ops::reciprocal},
      {"isnan", &ops::isnan},       {"isinf", &ops::isinf},
      {"isfinite", &ops::isfinite}, {"logical_not", &ops::logical_not},
      {"copy", &ops::copy},         {"clone", &ops::copy},
  };
  for (const auto& [name, f] : unary) c.def(name, [f = f](const Tensor& x) { return f(x); });

  const std::pair<const char*, Tensor (*)(const Operand&, const Operand&)> binaries[] = {
      {"add", &ops::add},
      {"sub", &ops::sub},
      {"subtract", &ops::sub},
      {"mul", &ops::mul},
      {"multiply", &ops::mul},
      {"div", &ops::div},
      {"divide", &ops::div},
      {"true_divide", &ops::div},
      {"pow", &ops::pow},
      {"maximum", &ops::maximum},
      {"minimum", &ops::minimum},
      {"floor_divide", &ops::floor_div},
      {"remainder", &ops::floor_mod},
      {"atan2", &ops::atan2},
      {"equal", &ops::equal},
      {"eq", &ops::equal},
      {"not_equal", &ops::not_equal},
      {"ne", &ops::not_equal},
      {"less", &ops::less},
      {"lt", &ops::less},
      {"less_equal", &ops::less_equal},
      {"le", &ops::less_equal},
      {"greater", &ops::greater},
      {"gt", &ops::greater},
      {"greater_equal", &ops::greater_equal},
      {"ge", &ops::greater_equal},
      {"logical_and", &ops::logical_and},
      {"logical_or", &ops::logical_or},
      {"logical_xor", &ops::logical_xor},
  };
  for (const auto& [name, f] : binaries)
    c.def(name, [f = f](const Tensor& x, const Operand& y) { return f(x, y); }, "other"_a);

  reduction(c, "sum", &sum);
  reduction(c, "mean",
            [](const Tensor& x, const AxesArg& a, bool keep) { return ops::reduce_mean(x, a.values, keep); });
  reduction(c, "prod",
            [](const Tensor& x, const AxesArg& a, bool keep) { return ops::reduce_prod(x, a.values, keep); });
  reduction(c, "max", [](const Tensor& x, const AxesArg& a, bool keep) { return ops::reduce_max(x, a.values, keep); });
  reduction(c, "min", [](const Tensor& x, const AxesArg& a, bool keep) { return ops::reduce_min(x, a.values, keep); });
  reduction(c, "amax", [](const Tensor& x, const AxesArg& a, bool keep) { return ops::reduce_max(x, a.values, keep); });
  reduction(c, "amin", [](const Tensor& x, const AxesArg& a, bool keep) { return ops::reduce_min(x, a.values, keep); });
  reduction(c, "all", [](const Tensor& x, const AxesArg& a, bool keep) { return ops::reduce_all(x, a.values, keep); });
  reduction(c, "any", [](const Tensor& x, const AxesArg& a, bool keep) { return ops::reduce_any(x, a.values, keep); });
  const auto var = [](const Tensor& x, const AxesArg& a, int ddof, bool keep) {
    return ops::reduce_var(x, a.values, keep, ddof);
  };
  const auto std_dev = [](const Tensor& x, const AxesArg& a, int ddof, bool keep) {
    return ops::sqrt(ops::reduce_var(x, a.values, keep, ddof));
  };
  c.def("var", var, "axis"_a.none() = nb::none(), "ddof"_a = 0, "keepdims"_a = false);
  c.def("std", std_dev, "axis"_a.none() = nb::none(), "ddof"_a = 0, "keepdims"_a = false);
  c.def(
      "argmax",
      [](const Tensor& x, std::optional<std::int64_t> a, bool k) { return arg_reduce(&ops::argmax, x, a, k); },
      "axis"_a.none() = nb::none(), "keepdims"_a = false);
  c.def(
      "argmin",
      [](const Tensor& x, std::optional<std::int64_t> a, bool k) { return arg_reduce(&ops::argmin, x, a, k); },
      "axis"_a.none() = nb::none(), "keepdims"_a = false);

  c.def_prop_ro("T", [](const Tensor& x) { return ops::transpose(x); });
  c.def("reshape", [](const Tensor& x, const nb::args& shape) { return ops::reshape(x, flat_ints(shape)); }, "shape"_a);
  c.def("view", [](const Tensor& x, const nb::args& shape) { return ops::reshape(x, flat_ints(shape)); }, "shape"_a);
  c.def(
      "transpose",
      [](const Tensor& x, const nb::args& axes) {
        const bool reversed = PyTuple_GET_SIZE(axes.ptr()) == 0 || nb::handle(axes[0]).is_none();
        return ops::transpose(x, reversed ? std::vector<std::int64_t>{} : flat_ints(axes));
      },
      "axes"_a);
  c.def("permute", [](const Tensor& x, const nb::args& axes) { return ops::transpose(x, flat_ints(axes)); }, "axes"_a);
  c.def("swapaxes", &ops::swapaxes, "axis0"_a, "axis1"_a);
  c.def(
      "flatten",
      [](const Tensor& x, const std::string& order, std::int64_t start, std::int64_t end) {
        UNDERTOW_CHECK(order == "C", ValueError, "flatten: order must be 'C', got '{}'", order);
        return x.ndim() == 0 ? ops::reshape(x, {1}) : ops::flatten(x, start, end);
      },
      "order"_a = "C", "start_dim"_a = 0, "end_dim"_a = -1);
  c.def("ravel", [](const Tensor& x) { return ops::reshape(x, {-1}); });
  c.def(
      "squeeze", [](const Tensor& x, const AxesArg& a) { return ops::squeeze(x, a.values); },
      "axis"_a.none() = nb::none());
  c.def("expand_dims", &ops::expand_dims, "axis"_a);
  c.def("unsqueeze", &ops::expand_dims, "dim"_a);
  c.def(
      "broadcast_to", [](const Tensor& x, const Ints& s) { return ops::broadcast_to(x, Shape(s.values)); }, "shape"_a);
  c.def("expand_as", [](const Tensor& x, const Tensor& y) { return ops::broadcast_to(x, y.shape()); }, "other"_a);
  c.def(
      "split",
      [](const Tensor& x, std::int64_t n, std::int64_t axis) {
        // MindSpore's split takes the size of a piece.
        const std::int64_t rank_axis = normalize_axis(axis, x.ndim(), "split: axis");
        UNDERTOW_CHECK(n > 0, ValueError, "split: the size of a piece must be positive, got {}", n);
        UNDERTOW_CHECK(x.shape(static_cast<int>(rank_axis)) % n == 0, ValueError,
                       "split: dimension {} of shape {} is not a multiple of {}", rank_axis, x.shape().str(), n);
        return nb::tuple(nb::cast(ops::split(x, x.shape(static_cast<int>(rank_axis)) / n, axis)));
      },
      "split_size_or_sections"_a, "axis"_a = 0);

  c.def("astype", [](const Tensor& x, DType d, bool) { return ops::cast(x, d); }, "dtype"_a, "copy"_a = true);
  c.def("to", [](const Tensor& x, DType d) { return ops::cast(x, d); }, "dtype"_a);
  const std::pair<const char*, DType> casts[] = {
      {"float", DType::kFloat32}, {"half", DType::kFloat16},      {"int", DType::kInt32},     {"long", DType::kInt64},
      {"bool", DType::kBool},     {"bfloat16", DType::kBFloat16}, {"double", DType::kFloat64}};
  for (const auto& [name, d] : casts) c.def(name, [d = d](const Tensor& x) { return ops::cast(x, d); });

  c.def("matmul", [](const Tensor& x, const Tensor& y) { return ops::matmul(x, y); }, "tensor2"_a);
  c.def("clip", &ops::clip, "min"_a.none() = nb::none(), "max"_a.none() = nb::none());
  c.def("clamp", &ops::clip, "min"_a.none() = nb::none(), "max"_a.none() = nb::none());
  c.def("softmax", [](const Tensor& x, std::int64_t a) { return ops::softmax(x, a); }, "axis"_a = -1);
  c.def("log_softmax", [](const Tensor& x, std::int64_t a) { return ops::log_softmax(x, a); }, "axis"_a = -1);
  c.def(
      "gather", [](const Tensor& x, const Tensor& i, std::int64_t a) { return ops::gather(x, i, a); },
      "input_indices"_a, "axis"_a = 0);
  c.def(
      "masked_fill",
      [](const Tensor& x, const Tensor& mask, const Operand& v) { return ops::select(mask, v.as(x.dtype()), x); },
      "mask"_a, "value"_a);
  c.def(
      "where", [](const Tensor& x, const Tensor& cond, const Operand& y) { return ops::select(cond, x, y); },
      "condition"_a, "y"_a);

  const auto assign = [](auto f) {
    return [f](nb::handle self, const Operand& y) {
      const Tensor x = *unwrap(self);
      const Tensor sum = f(x, y);
      if (!x.is_parameter()) return wrap(sum);
      ops::assign(Parameter::of(x), ops::cast(sum, x.dtype()));
      return nb::borrow(self);
    };
  };
  auto p = nb::borrow<nb::class_<ParameterObject, TensorObject>>(m.attr("Parameter"));
  p.def("__iadd__", assign(&ops::add), nb::is_operator());
  p.def("__isub__", assign(&ops::sub), nb::is_operator());
  p.def("__imul__", assign(&ops::mul), nb::is_operator());
  p.def("__itruediv__", assign(&ops::div), nb::is_operator());
  c.def(
      "assign_value",
      [](nb::handle self, const Tensor& v) {
        const Tensor x = *unwrap(self);
        if (x.is_parameter()) ops::assign(Parameter::of(x), v);
        else x.assign(v);
        return nb::borrow(self);
      },
      "value"_a);
}

}  // namespace undertow::python
