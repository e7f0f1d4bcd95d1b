// SPDX-License-Identifier: Apache-2.0
// undertow.ops: elementwise functions, with MindSpore's argument names.
#include "python/src/ops_bind.h"
#include "undertow/ops/math.h"
#include "undertow/ops/statistics.h"

namespace undertow::python {
namespace {

struct Unary {
  const char* name;
  Tensor (*f)(const Tensor&);
  const char* doc;
};
constexpr Unary kUnary[] = {
    {"neg", &ops::neg, "-x"},
    {"negative", &ops::neg, "-x"},
    {"abs", &ops::abs, "|x|"},
    {"absolute", &ops::abs, "|x|"},
    {"exp", &ops::exp, "e^x; integers become float32."},
    {"expm1", &ops::expm1, "e^x - 1; integers become float32."},
    {"log", &ops::log, "Natural logarithm; integers become float32."},
    {"log1p", &ops::log1p, "log(1 + x); integers become float32."},
    {"sqrt", &ops::sqrt, "Square root; integers become float32."},
    {"rsqrt", &ops::rsqrt, "1 / sqrt(x); integers become float32."},
    {"square", &ops::square, "x * x"},
    {"reciprocal", &ops::reciprocal, "1 / x; integers become float32."},
    {"sin", &ops::sin, "Sine; integers become float32."},
    {"cos", &ops::cos, "Cosine; integers become float32."},
    {"tanh", &ops::tanh, "Hyperbolic tangent; integers become float32."},
    {"erf", &ops::erf, "Error function; integers become float32."},
    {"sigmoid", &ops::sigmoid, "1 / (1 + e^-x); integers become float32."},
    {"relu", &ops::relu, "max(x, 0); NaN stays NaN."},
    {"floor", &ops::floor, "Largest integer not above x, in x's dtype."},
    {"ceil", &ops::ceil, "Smallest integer not below x, in x's dtype."},
    {"round", &ops::round, "Nearest integer, half to even, in x's dtype."},
    {"trunc", &ops::trunc, "Toward zero, in x's dtype."},
    {"sign", &ops::sign, "-1, 0 or 1; NaN stays NaN."},
    {"logical_not", &ops::logical_not, "x == 0, as bool."},
    {"isnan", &ops::isnan, "Whether each element is NaN, as bool."},
    {"isinf", &ops::isinf, "Whether each element is infinite, as bool."},
    {"isfinite", &ops::isfinite, "Whether each element is neither infinite nor NaN, as bool."},
    {"copy", &ops::copy, "A tensor with the same values."},
    {"deepcopy", &ops::copy, "A tensor with the same values."},
    {"identity", &ops::copy, "A tensor with the same values."},
    {"stop_gradient", &ops::stop_gradient, "x, through which no gradient flows."},
    {"tan", &ops::tan, "Tangent; integers become float32."},
    {"sinh", &ops::sinh, "Hyperbolic sine; integers become float32."},
    {"cosh", &ops::cosh, "Hyperbolic cosine; integers become float32."},
    {"asin", &ops::asin, "Inverse sine; integers become float32."},
    {"arcsin", &ops::asin, "Inverse sine; integers become float32."},
    {"acos", &ops::acos, "Inverse cosine; integers become float32."},
    {"arccos", &ops::acos, "Inverse cosine; integers become float32."},
    {"atan", &ops::atan, "Inverse tangent; integers become float32."},
    {"arctan", &ops::atan, "Inverse tangent; integers become float32."},
    {"asinh", &ops::asinh, "Inverse hyperbolic sine; integers become float32."},
    {"arcsinh", &ops::asinh, "Inverse hyperbolic sine; integers become float32."},
    {"acosh", &ops::acosh, "Inverse hyperbolic cosine; integers become float32."},
    {"arccosh", &ops::acosh, "Inverse hyperbolic cosine; integers become float32."},
    {"atanh", &ops::atanh, "Inverse hyperbolic tangent; integers become float32."},
    {"arctanh", &ops::atanh, "Inverse hyperbolic tangent; integers become float32."},
    {"erfc", &ops::erfc, "1 - erf(x) without cancellation; integers become float32."},
    {"erfinv", &ops::erfinv, "Inverse of erf; integers become float32."},
    {"lgamma", &ops::lgamma, "log |gamma(x)|; integers become float32."},
    {"digamma", &ops::digamma, "Derivative of lgamma; integers become float32."},
    {"exp2", &ops::exp2, "2^x; integers become float32."},
    {"log2", &ops::log2, "Logarithm to the base 2; integers become float32."},
    {"log10", &ops::log10, "Logarithm to the base 10; integers become float32."},
    {"frac", &ops::frac, "x - trunc(x)"},
    {"deg2rad", &ops::deg2rad, "Degrees as radians."},
    {"rad2deg", &ops::rad2deg, "Radians as degrees."},
    {"sinc", &ops::sinc, "sin(pi x) / (pi x), 1 at 0."},
    {"signbit", &ops::signbit, "Whether the sign is negative, that of -0 too, as bool."},
    {"isposinf", &ops::isposinf, "Whether each element is +inf, as bool."},
    {"isneginf", &ops::isneginf, "Whether each element is -inf, as bool."},
    {"bitwise_not", &ops::bitwise_not, "All bits of integers or bools inverted."},
    {"invert", &ops::bitwise_not, "All bits of integers or bools inverted."},
    {"inv", &ops::reciprocal, "1 / x; integers become float32."},
    {"positive", &ops::copy, "A tensor with the same values."},
    {"sgn", &ops::sign, "-1, 0 or 1; NaN stays NaN."},
    {"tensor_exp", &ops::exp, "e^x; integers become float32."},
    {"tensor_expm1", &ops::expm1, "e^x - 1; integers become float32."},
    {"clone", &ops::copy, "A tensor with the same values."},
    {"l2_loss", &ops::l2_loss, "sum(x^2) / 2"},
    {"_cbrt", &ops::cbrt, "Cube root."},
};

struct Binary {
  const char* name;
  Tensor (*f)(const Operand&, const Operand&);
  const char* doc;
};
constexpr const char* kCompare = "Elementwise comparison with broadcasting, as bool.";
constexpr const char* kLogical = "Elementwise on truth values with broadcasting, as bool.";
constexpr const char* kBits = "Bits of integers or bools, with broadcasting.";
constexpr Binary kBinary[] = {
    {"add", &ops::add, "x + y with broadcasting and promotion."},
    {"sub", &ops::sub, "x - y with broadcasting and promotion."},
    {"subtract", &ops::sub, "x - y with broadcasting and promotion."},
    {"mul", &ops::mul, "x * y with broadcasting and promotion."},
    {"multiply", &ops::mul, "x * y with broadcasting and promotion."},
    {"true_divide", &ops::div, "x / y; integers become float32."},
    {"floor_div", &ops::floor_div, "floor(x / y)"},
    {"floor_divide", &ops::floor_div, "floor(x / y)"},
    {"floor_mod", &ops::floor_mod, "x - floor(x / y) * y: the sign of the divisor."},
    {"remainder", &ops::floor_mod, "x - floor(x / y) * y: the sign of the divisor."},
    {"pow", &ops::pow, "x to the power of y."},
    {"maximum", &ops::maximum, "The larger; NaN wins."},
    {"minimum", &ops::minimum, "The smaller; NaN wins."},
    {"atan2", &ops::atan2, "The angle whose tangent is input / other, by quadrant."},
    {"equal", &ops::equal, kCompare},
    {"eq", &ops::equal, kCompare},
    {"not_equal", &ops::not_equal, kCompare},
    {"ne", &ops::not_equal, kCompare},
    {"less", &ops::less, kCompare},
    {"lt", &ops::less, kCompare},
    {"less_equal", &ops::less_equal, kCompare},
    {"le", &ops::less_equal, kCompare},
    {"greater", &ops::greater, kCompare},
    {"gt", &ops::greater, kCompare},
    {"greater_equal", &ops::greater_equal, kCompare},
    {"ge", &ops::greater_equal, kCompare},
    {"logical_and", &ops::logical_and, kLogical},
    {"logical_or", &ops::logical_or, kLogical},
    {"logical_xor", &ops::logical_xor, kLogical},
    {"tensor_add", &ops::add, "x + y with broadcasting and promotion."},
    {"tensor_sub", &ops::sub, "x - y with broadcasting and promotion."},
    {"tensor_mul", &ops::mul, "x * y with broadcasting and promotion."},
    {"tensor_pow", &ops::pow, "x to the power of y."},
    {"tensor_div", &ops::div, "x / y; integers become float32."},
    {"tensor_floordiv", &ops::floor_div, "floor(x / y)"},
    {"floordiv", &ops::floor_div, "floor(x / y)"},
    {"tensor_mod", &ops::floor_mod, "x - floor(x / y) * y: the sign of the divisor."},
    {"floormod", &ops::floor_mod, "x - floor(x / y) * y: the sign of the divisor."},
    {"arctan2", &ops::atan2, "The angle whose tangent is input / other, by quadrant."},
    {"tensor_lt", &ops::less, kCompare},
    {"tensor_le", &ops::less_equal, kCompare},
    {"tensor_gt", &ops::greater, kCompare},
    {"tensor_ge", &ops::greater_equal, kCompare},
    {"fmod", &ops::fmod, "The remainder of division with the sign of x."},
    {"truncate_mod", &ops::fmod, "The remainder of division with the sign of x."},
    {"bitwise_and", &ops::bitwise_and, kBits},
    {"bitwise_or", &ops::bitwise_or, kBits},
    {"bitwise_xor", &ops::bitwise_xor, kBits},
    {"bitwise_left_shift", &ops::bitwise_left_shift, kBits},
    {"bitwise_right_shift", &ops::bitwise_right_shift, kBits},
    {"xlogy", &ops::xlogy, "x log(y), 0 where x is 0; integers become float32."},
    {"xdivy", &ops::xdivy, "x / y, 0 where x is 0; integers become float32."},
    {"div_no_nan", &ops::div_no_nan, "x / y, 0 where y is 0; integers become float32."},
    {"hypot", &ops::hypot, "sqrt(x^2 + y^2) without overflow; integers become float32."},
    {"logaddexp", &ops::logaddexp, "log(e^x + e^y) without overflow."},
    {"logaddexp2", &ops::logaddexp2, "log2(2^x + 2^y) without overflow."},
    {"copysign", &ops::copysign, "|x| with the sign of y."},
    {"heaviside", &ops::heaviside, "0, other, 1 for x < 0, x == 0, x > 0."},
    {"fmax", &ops::fmax, "The larger; NaN only where both are."},
    {"fmin", &ops::fmin, "The smaller; NaN only where both are."},
    {"float_power", &ops::float_power, "x to the power of y in float64."},
    {"ldexp", &ops::ldexp, "x 2^y"},
    {"_squared_difference", &ops::squared_difference, "(x - y)^2"},
};

/// A condition as bools, whatever it is made of.
Tensor as_mask(const Tensor& c) { return c.dtype() == DType::kBool ? c : ops::not_equal(c, 0); }

/// One tensor, or each of a tuple or list.
template <typename F>
nb::object each(nb::handle x, F f) {
  if (const Tensor* t = unwrap(x)) return wrap(f(*t));
  std::vector<Tensor> out;
  for (const Tensor& t : tensors(x, "clip")) out.push_back(f(t));
  return as_tuple(out);
}

}  // namespace

void bind_elementwise(nb::module_& m) {
  for (const Unary& u : kUnary) m.def(u.name, u.f, input_, u.doc);
  for (const Binary& b : kBinary) m.def(b.name, b.f, input_, "other"_a, b.doc);
  for (const char* n : {"div", "divide"})
    m.def(
        n,
        [](const Operand& x, const Operand& y, const std::optional<std::string>& mode) {
          return ops::div(x, y, mode.value_or(""));
        },
        input_, "other"_a, nb::kw_only(), none_arg("rounding_mode"),
        "x / y: true division (integers become float32), or rounded by 'floor' or 'trunc'.");
  m.def(
      "truncate_div", [](const Operand& x, const Operand& y) { return ops::div(x, y, "trunc"); }, "x"_a, "y"_a,
      "x / y toward zero.");
  // Names that MindSpore gives the arguments of a few functions beside the usual.
  m.def("round", &ops::round_to, input_, nb::kw_only(), "decimals"_a = 0, "Nearest number of so many decimals.");
  m.def("pow", &ops::pow, input_, "exponent"_a);
  m.def("floor_div", &ops::floor_div, "x"_a, "y"_a);
  m.def("floor_mod", &ops::floor_mod, "x"_a, "y"_a);
  m.def("sqrt", &ops::sqrt, "x"_a);
  m.def("stop_gradient", &ops::stop_gradient, "value"_a);
  m.def("ldexp", &ops::ldexp, "x"_a, "other"_a);
  m.def("xdivy", &ops::xdivy, "x"_a, "y"_a);
  m.def(
      "add", [](const Operand& x, const Operand& y, const Operand& a) { return ops::add(x, ops::mul(y, a)); }, input_,
      "other"_a, nb::kw_only(), "alpha"_a, "x + alpha y");
  for (const char* n : {"sub", "subtract"})
    m.def(
        n, [](const Operand& x, const Operand& y, const Operand& a) { return ops::sub(x, ops::mul(y, a)); }, input_,
        "other"_a, nb::kw_only(), "alpha"_a, "x - alpha y");

  for (const char* n : {"where", "select"})
    m.def(
        n, [](const Tensor& c, const Operand& x, const Operand& y) { return ops::select(as_mask(c), x, y); },
        "condition"_a, input_, "other"_a, "condition ? input : other, with broadcasting.");
  m.def("cast", &ops::cast, input_, "dtype"_a, "In another dtype; float to integer truncates.");
  m.def(
      "type_as", [](const Tensor& x, const Tensor& y) { return ops::cast(x, y.dtype()); }, input_, "other"_a,
      "In the other's dtype.");
  using Limit = std::optional<Operand>;
  for (const char* n : {"clip", "clamp"})
    m.def(
        n,
        [](nb::handle x, const Limit& low, const Limit& high) {
          return each(x, [&](const Tensor& t) { return ops::clamp(t, low, high); });
        },
        input_, none_arg("min"), none_arg("max"), "Limited to [min, max]; NaN stays.");
  m.def(
      "clip_by_value",
      [](nb::handle x, const Limit& low, const Limit& high) {
        return each(x, [&](const Tensor& t) { return ops::clamp(t, low, high); });
      },
      "x"_a, none_arg("clip_value_min"), none_arg("clip_value_max"), "Limited to [min, max]; NaN stays.");
  m.def(
      "clip_by_global_norm",
      [](nb::handle x, nb::handle clip, nb::handle use) {
        const Tensor* norm = unwrap(use);
        UNDERTOW_CHECK(norm || use.is_none(), TypeError, "clip_by_global_norm: use_norm must be a Tensor or None");
        return as_tuple(ops::clip_by_global_norm(tensors(x, "clip_by_global_norm"),
                                                 number_of(clip, "clip_by_global_norm: clip_norm"),
                                                 norm ? *norm : Tensor()));
      },
      "x"_a, "clip_norm"_a = 1.0, none_arg("use_norm"),
      "Tensors scaled by clip_norm / max(norm of all of them, clip_norm).");
  m.def(
      "clip_by_norm",
      [](nb::handle x, nb::handle max_norm, double p, bool error) -> nb::object {
        UNDERTOW_CHECK(!error, ValueError, "clip_by_norm: error_if_nonfinite=True is not supported");
        const double limit = number_of(max_norm, "clip_by_norm: max_norm");
        if (const Tensor* t = unwrap(x)) return wrap(ops::clip_by_norm({*t}, limit, p)[0]);
        return as_tuple(ops::clip_by_norm(tensors(x, "clip_by_norm"), limit, p));
      },
      "x"_a, "max_norm"_a, "norm_type"_a = 2.0, "error_if_nonfinite"_a = false,
      "One tensor, or several together, scaled down to a norm of at most max_norm.");
  m.def(
      "masked_fill",
      [](const Tensor& x, const Tensor& mask, const Operand& v) {
        return ops::select(as_mask(mask), v.as(x.dtype()), x);
      },
      "input_x"_a, "mask"_a, "value"_a, "`value` where the mask is true.");
  m.def("lerp", &ops::lerp, input_, "end"_a, "weight"_a, "input + (end - input) weight");
  m.def("addcmul", &ops::addcmul, input_, "tensor1"_a, "tensor2"_a, "value"_a = 1, "input + value tensor1 tensor2");
  m.def("addcdiv", &ops::addcdiv, input_, "tensor1"_a, "tensor2"_a, "value"_a = 1, "input + value tensor1 / tensor2");
  m.def("isclose", &ops::isclose, input_, "other"_a, "rtol"_a = 1e-5, "atol"_a = 1e-8, "equal_nan"_a = false,
        "|input - other| <= atol + rtol |other|, as bool.");
  m.def(
      "allclose",
      [](const Tensor& x, const Tensor& y, double rtol, double atol, bool nan) {
        return ops::reduce_all(ops::isclose(x, y, rtol, atol, nan));
      },
      input_, "other"_a, "rtol"_a = 1e-5, "atol"_a = 1e-8, "equal_nan"_a = false);
  m.def(
      "approximate_equal",
      [](const Tensor& x, const Tensor& y, double tolerance) { return ops::less(ops::abs(ops::sub(x, y)), tolerance); },
      "x"_a, "y"_a, "tolerance"_a = 1e-5, "|x - y| < tolerance, as bool.");
  m.def("nan_to_num", &ops::nan_to_num, input_, none_arg("nan"), none_arg("posinf"), none_arg("neginf"),
        "NaN becomes nan (0), infinities the given numbers (the dtype's extremes).");
  m.def("logit", &ops::logit, input_, none_arg("eps"), "log(x / (1 - x)), x limited to [eps, 1 - eps].");
  m.def(
      "polygamma",
      [](nb::handle n, const Tensor& x) {
        const std::int64_t order = integer_of(n, "polygamma: n");
        UNDERTOW_CHECK(order == 0 || order == 1, ValueError, "polygamma: n must be 0 or 1, got {}", order);
        return order == 0 ? ops::digamma(x) : ops::trigamma(x);
      },
      "n"_a, input_, "The derivative of digamma for n = 1.");
  for (const char* n : {"addn", "accumulate_n"})
    m.def(
        n,
        [](nb::handle x) {
          const Tensor* t = unwrap(x);
          return t ? *t : ops::add_n(tensors(x, "addn"));
        },
        "x"_a, "The sum of tensors of one shape.");
}

}  // namespace undertow::python
