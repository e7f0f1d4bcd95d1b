// SPDX-License-Identifier: Apache-2.0
// Elementwise functions beyond those of elementwise.cpp. What has a formula of its own is a primitive, the rest is
// composed; fusion makes one kernel of either.
#include "undertow/ops/math.h"

#include <cmath>
#include <limits>
#include <numbers>

#include "undertow/base/check.h"
#include "undertow/ops/dispatch.h"
#include "undertow/ops/register.h"

namespace undertow::ops {

using namespace detail;
using ir::GradContext;
using ir::Opcode;
using ir::Scalar;
using Grads = std::vector<Tensor>;

namespace {

constexpr double kPi = std::numbers::pi, kLn2 = std::numbers::ln2, kInf = std::numeric_limits<double>::infinity();
constexpr double kTwoOverSqrtPi = 2 * std::numbers::inv_sqrtpi;

Scalar op1(Opcode o, Scalar x) { return x.builder->unary(o, x); }
Scalar log(Scalar x) { return op1(Opcode::kLog, x); }
Scalar exp(Scalar x) { return op1(Opcode::kExp, x); }
Scalar sqrt(Scalar x) { return op1(Opcode::kSqrt, x); }
Scalar abs(Scalar x) { return op1(Opcode::kAbs, x); }
Scalar atan2(Scalar y, Scalar x) { return y.builder->binary(Opcode::kAtan2, y, x); }
Scalar number(Scalar like, double v) { return like.builder->constant(v, like.dtype); }
Scalar with_sign_of(Scalar magnitude, Scalar x) { return select(x < 0, -magnitude, magnitude); }

/// f in float64, whatever x is: for formulas whose terms cancel.
std::function<Scalar(Scalar)> wide(Scalar (*f)(Scalar)) {
  return [f](Scalar x) { return x.builder->cast(f(x.builder->cast(x, DType::kFloat64)), x.dtype); };
}

Scalar sinh_expr(Scalar x) {
  const Scalar a = abs(x), e = op1(Opcode::kExpm1, a), half = exp(a * 0.5);
  return with_sign_of(select(a < 20, (e + e / (e + 1)) * 0.5, half * 0.5 * half), x);
}

Scalar cosh_expr(Scalar x) {
  const Scalar a = abs(x), e = exp(a), half = exp(a * 0.5);
  return select(a < 20, (e + 1.0 / e) * 0.5, half * 0.5 * half);
}

Scalar asinh_expr(Scalar x) {
  const Scalar a = abs(x), small = op1(Opcode::kLog1p, a + a * a / (1.0 + sqrt(a * a + 1)));
  return with_sign_of(select(a < 1e8, small, log(a) + kLn2), x);
}

Scalar acosh_expr(Scalar x) {
  const Scalar t = x - 1, small = op1(Opcode::kLog1p, t + sqrt(t * 2 + t * t));
  const Scalar y = select(x > 1e8, log(x) + kLn2, small);
  return select(x < 1, number(x, std::numeric_limits<double>::quiet_NaN()), y);
}

/// sqrt(1 - x^2) without cancellation near 1.
Scalar leg(Scalar x) { return sqrt((1.0 - x) * (1.0 + x)); }

/// erfc(a) for a >= 0 in float64: exp(-a^2) t P(t), t = 2 / (2 + a), P a Chebyshev series that was fitted to 1e-16.
Scalar erfc_positive(Scalar a) {
  constexpr double k[] = {
      0.5770337386164697,      0.3554369212704985,      0.06509515882878653,     0.003671142395836639,
      -0.0011128447433526325,  -0.0001607582991537808,  3.278031574173137e-05,   5.442441645505016e-06,
      -1.5154665553171482e-06, -1.4297608181169865e-07, 8.234608827419493e-08,   -1.2962846852306563e-09,
      -4.154721631015199e-09,  6.347058278362811e-10,   1.4320822712256225e-10,  -6.160390105204585e-11,
      2.0612138554721605e-12,  3.5714931488476723e-12,  -8.586422843249738e-13,  -6.145600213835461e-14,
      7.418725748559844e-14,   -1.289504274921721e-14,  -2.3587264034065966e-15, 1.5729349439263244e-15,
      -2.2782950119024244e-16, -6.312395269062635e-17};
  const Scalar t = 2.0 / (2.0 + a), u = t * 2 - 1, u2 = u * 2;
  Scalar b1 = number(a, 0), b2 = b1;
  for (std::size_t i = std::size(k) - 1; i > 0; --i) {
    const Scalar b0 = u2 * b1 - b2 + k[i];
    b2 = b1, b1 = b0;
  }
  return exp(-(a * a)) * t * (u * b1 - b2 + k[0]);
}

Scalar erfc_expr(Scalar x) {
  const Scalar near = 1.0 - op1(Opcode::kErf, x), a = abs(x), far = erfc_positive(a);
  return select(a < 0.5, near, select(x < 0, 2.0 - far, far));
}

/// Giles, "Approximating the erfinv function" (2010) for a first value, then two steps of Halley's method.
Scalar erfinv_expr(Scalar y) {
  constexpr double kNear[] = {2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087,
                              -0.00125372503, -0.00417768164, 0.246640727,    1.50140941};
  constexpr double kFar[] = {-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773,
                             -0.0076224613,   0.00943887047,  1.00167406,    2.83297682};
  const auto poly = [](Scalar w, const double(&k)[9]) {
    Scalar p = number(w, k[0]);
    for (int i = 1; i < 9; ++i) p = p * w + k[i];
    return p;
  };
  const Scalar a = abs(y), q = 1.0 - a, w = -log(q * (1.0 + a));
  Scalar x = select(w < 5, poly(w - 2.5, kNear), poly(sqrt(w) - 3, kFar)) * a;
  for (int i = 0; i < 2; ++i) {
    const Scalar off = select(a < 0.5, op1(Opcode::kErf, x) - a, q - erfc_positive(x));
    const Scalar u = off / (exp(-(x * x)) * kTwoOverSqrtPi);
    x = x - u / (u * x + 1);
  }
  return with_sign_of(select(a >= 1, select(a > 1, number(y, std::nan("")), number(y, kInf)), x), y);
}

/// x is an integer <= 0: a pole of gamma.
Scalar at_pole(Scalar x) { return x.builder->binary(Opcode::kAnd, x <= 0, equal(op1(Opcode::kFloor, x), x)); }

/// sin and cos of pi x, exact at multiples of 1/2.
Scalar sin_pi(Scalar x) { return op1(Opcode::kSin, (x - op1(Opcode::kRound, x)) * kPi); }

/// log |gamma(x)| by Lanczos' series (g = 7, nine terms), reflected below 1/2.
Scalar lgamma_expr(Scalar x) {
  constexpr double k[] = {0.99999999999980993,  676.5203681218851,     -1259.1392167224028,
                          771.32342877765313,   -176.61502916214059,   12.507343278686905,
                          -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7};
  const Scalar low = x < 0.5, z = select(low, -x, x - 1);
  Scalar sum = number(x, k[0]);
  for (int i = 1; i < 9; ++i) sum = sum + k[i] / (z + i);
  const Scalar t = z + 7.5, y = 0.5 * std::log(2 * kPi) + (z + 0.5) * log(t) - t + log(sum);
  const Scalar r = select(low, log(kPi / abs(sin_pi(x))) - y, y);
  const Scalar infinite = x.builder->binary(Opcode::kOr, at_pole(x), equal(abs(x), number(x, kInf)));
  return select(infinite, number(x, kInf), r);
}

/// The derivative of lgamma: ten steps of the recurrence, then the asymptotic series; reflected below 0.
Scalar digamma_expr(Scalar x) {
  const Scalar low = x < 0;
  Scalar z = select(low, 1.0 - x, x), shift = number(x, 0);
  for (int i = 0; i < 10; ++i) shift = shift + 1.0 / (z + i);
  z = z + 10;
  const Scalar r = 1.0 / (z * z);
  const Scalar tail = r * (1.0 / 12 - r * (1.0 / 120 - r * (1.0 / 252 - r * (1.0 / 240 - r * (1.0 / 132)))));
  const Scalar y = log(z) - 0.5 / z - tail - shift;
  const Scalar f = (x - op1(Opcode::kRound, x)) * kPi;
  const Scalar reflected = y - kPi * op1(Opcode::kCos, f) / op1(Opcode::kSin, f);
  const Scalar pole = select(equal(x, number(x, 0)), number(x, -kInf), number(x, std::nan("")));
  return select(at_pole(x), pole, select(low, reflected, y));
}

/// The derivative of digamma, in the same way.
Scalar trigamma_expr(Scalar x) {
  const Scalar low = x < 0;
  Scalar z = select(low, 1.0 - x, x), shift = number(x, 0);
  for (int i = 0; i < 10; ++i) shift = shift + 1.0 / ((z + i) * (z + i));
  z = z + 10;
  const Scalar r = 1.0 / (z * z);
  const Scalar tail = r / z * (1.0 / 6 - r * (1.0 / 30 - r * (1.0 / 42 - r * (1.0 / 30 - r * (5.0 / 66)))));
  const Scalar y = 1.0 / z + r * 0.5 + tail + shift, s = sin_pi(x);
  return select(at_pole(x), number(x, kInf), select(low, kPi * kPi / (s * s) - y, y));
}

GradFn refuse_gradient(const char* op) {
  return [op](const GradContext&) -> Grads { throw ValueError(fmt::format("{} has no gradient here", op)); };
}

Tensor one_minus_square(const Tensor& x) { return mul(sub(1.0, x), add(x, 1.0)); }
const Tensor& g(const GradContext& c) { return c.grads[0]; }
const Tensor& in(const GradContext& c) { return c.inputs[0]; }
const Tensor& out(const GradContext& c) { return c.outputs[0]; }

ir::OpDef bitwise(std::string name, std::string doc, Opcode o) {
  auto def = binary(std::move(name), std::move(doc), [o](Scalar x, Scalar y) { return x.builder->binary(o, x, y); });
  def.infer = [base = def.infer](std::span<const ir::TensorType> types, const ir::Attrs& a) {
    UNDERTOW_CHECK(!is_floating(types[0].dtype), TypeError, "needs integers or bools, got {}", name_of(types[0].dtype));
    return base(types, a);
  };
  return def;
}

}  // namespace

void register_math(ir::OpSet& set) {
  using C = const GradContext&;
  set.add(in_float32(unary(
      "tan", "tangent", [](Scalar x) { return op1(Opcode::kSin, x) / op1(Opcode::kCos, x); },
      [](C c) { return mul(g(c), add(square(out(c)), 1.0)); })));
  set.add(in_float32(unary("sinh", "hyperbolic sine", sinh_expr, [](C c) { return mul(g(c), cosh(in(c))); })));
  set.add(in_float32(unary("cosh", "hyperbolic cosine", cosh_expr, [](C c) { return mul(g(c), sinh(in(c))); })));
  set.add(in_float32(unary(
      "asin", "inverse sine", [](Scalar x) { return atan2(x, leg(x)); },
      [](C c) { return mul(g(c), rsqrt(one_minus_square(in(c)))); })));
  set.add(in_float32(unary(
      "acos", "inverse cosine", [](Scalar x) { return atan2(leg(x), x); },
      [](C c) { return neg(mul(g(c), rsqrt(one_minus_square(in(c))))); })));
  set.add(unary(
      "atan", "inverse tangent", [](Scalar x) { return atan2(x, number(x, 1)); },
      [](C c) { return div(g(c), add(square(in(c)), 1.0)); }));
  set.add(unary("asinh", "inverse hyperbolic sine", asinh_expr,
                [](C c) { return mul(g(c), rsqrt(add(square(in(c)), 1.0))); }));
  set.add(unary("acosh", "inverse hyperbolic cosine", acosh_expr,
                [](C c) { return mul(g(c), rsqrt(mul(sub(in(c), 1.0), add(in(c), 1.0)))); }));
  set.add(unary(
      "atanh", "inverse hyperbolic tangent",
      [](Scalar x) { return (op1(Opcode::kLog1p, x) - op1(Opcode::kLog1p, -x)) * 0.5; },
      [](C c) { return div(g(c), one_minus_square(in(c))); }));
  set.add(unary("erfc", "1 - erf(x), without cancellation", wide(erfc_expr),
                [](C c) { return mul(mul(g(c), -kTwoOverSqrtPi), exp(neg(square(in(c))))); }));
  set.add(in_float32(unary("erfinv", "inverse of erf (Giles 2010, refined)", wide(erfinv_expr),
                           [](C c) { return mul(mul(g(c), 1 / kTwoOverSqrtPi), exp(square(out(c)))); })));
  set.add(
      unary("lgamma", "log |gamma(x)| (Lanczos)", wide(lgamma_expr), [](C c) { return mul(g(c), digamma(in(c))); }));
  set.add(unary("digamma", "derivative of lgamma", wide(digamma_expr), [](C c) { return mul(g(c), trigamma(in(c))); }));
  auto trigamma_def = unary("trigamma", "derivative of digamma", wide(trigamma_expr));
  trigamma_def.grad = refuse_gradient("trigamma");
  set.add(std::move(trigamma_def));
  set.add(unary(
      "exp2", "2^x", [](Scalar x) { return x.builder->binary(Opcode::kPow, number(x, 2), x); },
      [](C c) { return mul(mul(g(c), kLn2), out(c)); }));
  set.add(binary(
      "fmod", "remainder with the sign of x", [](Scalar x, Scalar y) { return x.builder->binary(Opcode::kRem, x, y); },
      [](C c) { return Grads{g(c), c.needs[1] ? neg(mul(g(c), trunc(div(in(c), c.inputs[1])))) : Tensor()}; }));
  set.add(bitwise("bitwise_and", "bits of both", Opcode::kAnd));
  set.add(bitwise("bitwise_or", "bits of either", Opcode::kOr));
  set.add(bitwise("bitwise_xor", "bits of one of both", Opcode::kXor));
  set.add(bitwise("bitwise_left_shift", "x << y; 0 from the type's width on", Opcode::kShl));
  set.add(bitwise("bitwise_right_shift", "x >> y, with the sign", Opcode::kShr));
  auto invert_def = unary("bitwise_not", "all bits of the other value", [](Scalar x) { return op1(Opcode::kNot, x); });
  invert_def.infer = [base = invert_def.infer](std::span<const ir::TensorType> types, const ir::Attrs& a) {
    UNDERTOW_CHECK(!is_floating(types[0].dtype), TypeError, "needs integers or bools, got {}", name_of(types[0].dtype));
    return base(types, a);
  };
  set.add(std::move(invert_def));
}

namespace {

Tensor as_float(const Tensor& x) { return is_floating(x.dtype()) ? x : cast(x, DType::kFloat32); }

/// Both in their common dtype, as tensors.
std::pair<Tensor, Tensor> pair_of(const Operand& x, const Operand& y) {
  const DType other = x.is_tensor() ? x.tensor().dtype() : x.dtype_beside(DType::kBool);
  const DType t = y.dtype_beside(other);
  const DType common = x.is_tensor() ? t : x.dtype_beside(y.is_tensor() ? y.tensor().dtype() : t);
  return {x.as(common), y.as(common)};
}
std::pair<Tensor, Tensor> float_pair(const Operand& x, const Operand& y) {
  const auto [a, b] = pair_of(x, y);
  return {as_float(a), as_float(b)};
}

}  // namespace

#define UNDERTOW_FLOAT(name) \
  Tensor name(const Tensor& x) { return call(#name, {as_float(x)}); }
UNDERTOW_FLOAT(tan)
UNDERTOW_FLOAT(sinh)
UNDERTOW_FLOAT(cosh)
UNDERTOW_FLOAT(asin)
UNDERTOW_FLOAT(acos)
UNDERTOW_FLOAT(atan)
UNDERTOW_FLOAT(asinh)
UNDERTOW_FLOAT(acosh)
UNDERTOW_FLOAT(atanh)
UNDERTOW_FLOAT(erfc)
UNDERTOW_FLOAT(erfinv)
UNDERTOW_FLOAT(lgamma)
UNDERTOW_FLOAT(digamma)
UNDERTOW_FLOAT(trigamma)
UNDERTOW_FLOAT(exp2)
#undef UNDERTOW_FLOAT

#define UNDERTOW_BITS(name)                         \
  Tensor name(const Operand& x, const Operand& y) { \
    const auto [a, b] = pair_of(x, y);              \
    return call(#name, {a, b});                     \
  }
UNDERTOW_BITS(fmod)
UNDERTOW_BITS(bitwise_and)
UNDERTOW_BITS(bitwise_or)
UNDERTOW_BITS(bitwise_xor)
UNDERTOW_BITS(bitwise_left_shift)
UNDERTOW_BITS(bitwise_right_shift)
#undef UNDERTOW_BITS
Tensor bitwise_not(const Tensor& x) { return call("bitwise_not", {x}); }

Tensor log2(const Tensor& x) { return mul(log(x), 1 / kLn2); }
Tensor log10(const Tensor& x) { return mul(log(x), std::numbers::log10e); }
Tensor logit(const Tensor& x, std::optional<double> eps) {
  const Tensor t = eps ? clip(as_float(x), *eps, 1 - *eps) : as_float(x);
  return log(div(t, sub(1.0, t)));
}
Tensor frac(const Tensor& x) { return sub(x, trunc(x)); }
Tensor deg2rad(const Tensor& x) { return mul(as_float(x), kPi / 180); }
Tensor rad2deg(const Tensor& x) { return mul(as_float(x), 180 / kPi); }
Tensor cbrt(const Tensor& x) {
  const Tensor t = as_float(x);
  return mul(sign(t), pow(abs(t), 1.0 / 3));
}
Tensor sinc(const Tensor& x) {
  const Tensor t = mul(as_float(x), kPi), zero = equal(t, 0.0), safe = select(zero, 1.0, t);
  return select(zero, 1.0, div(sin(safe), safe));
}
Tensor round_to(const Tensor& x, std::int64_t decimals) {
  if (decimals == 0 || !is_floating(x.dtype())) return round(x);
  const double scale = std::pow(10.0, static_cast<double>(decimals));
  return div(round(mul(x, scale)), scale);
}
Tensor signbit(const Tensor& x) {
  if (!is_floating(x.dtype())) return less(x, 0);
  return logical_or(less(x, 0.0), logical_and(equal(x, 0.0), less(div(1.0, x), 0.0)));
}
Tensor isposinf(const Tensor& x) { return logical_and(isinf(x), greater(x, 0)); }
Tensor isneginf(const Tensor& x) { return logical_and(isinf(x), less(x, 0)); }

Tensor div(const Operand& x, const Operand& y, const std::string& rounding_mode) {
  if (rounding_mode.empty()) return div(x, y);
  if (rounding_mode == "floor") return floor_div(x, y);
  UNDERTOW_CHECK(rounding_mode == "trunc", ValueError, "div: rounding_mode must be None, 'floor' or 'trunc', got '{}'",
                 rounding_mode);
  const auto [a, b] = pair_of(x, y);
  if (is_floating(a.dtype())) return trunc(div(a, b));
  return div_trunc(a, b);
}
Tensor div_trunc(const Tensor& x, const Tensor& y) {  // (x - x rem y) / y is exact
  const Tensor exact = sub(x, fmod(x, y));
  return floor_div(exact, y);
}
Tensor div_no_nan(const Operand& x, const Operand& y) {
  const auto [a, b] = float_pair(x, y);
  const Tensor zero = equal(b, 0.0);
  return select(zero, 0.0, div(a, select(zero, 1.0, b)));
}
Tensor xlogy(const Operand& x, const Operand& y) {
  const auto [a, b] = float_pair(x, y);
  const Tensor skip = logical_and(equal(a, 0.0), logical_not(isnan(b)));
  return select(skip, 0.0, mul(a, log(select(skip, 1.0, b))));
}
Tensor xdivy(const Operand& x, const Operand& y) {
  const auto [a, b] = float_pair(x, y);
  const Tensor skip = logical_and(equal(a, 0.0), logical_not(isnan(b)));
  return select(skip, 0.0, div(a, select(skip, 1.0, b)));
}
Tensor hypot(const Operand& x, const Operand& y) {
  const auto [a, b] = float_pair(x, y);
  const Tensor top = stop_gradient(maximum(abs(a), abs(b)));
  const Tensor scale = select(logical_or(equal(top, 0.0), isinf(top)), 1.0, top);  // no overflow in the squares
  return mul(scale, sqrt(add(square(div(a, scale)), square(div(b, scale)))));
}
Tensor logaddexp(const Operand& x, const Operand& y) {
  const auto [a, b] = float_pair(x, y);
  const Tensor top = maximum(a, b), gap = abs(sub(a, b));
  return add(top, log1p(exp(neg(select(equal(a, b), 0.0, gap)))));  // inf - inf is no gap
}
Tensor logaddexp2(const Operand& x, const Operand& y) {
  const auto [a, b] = float_pair(x, y);
  return mul(logaddexp(mul(a, kLn2), mul(b, kLn2)), 1 / kLn2);
}
Tensor copysign(const Operand& x, const Operand& y) {
  const auto [a, b] = float_pair(x, y);
  return select(logical_xor(signbit(a), signbit(b)), neg(a), a);
}
Tensor heaviside(const Operand& x, const Operand& values) {
  const auto [a, b] = pair_of(x, values);
  return select(equal(a, 0), b, select(isnan(a), a, cast(greater(a, 0), a.dtype())));
}
Tensor fmax(const Operand& x, const Operand& y) {
  const auto [a, b] = pair_of(x, y);
  return select(isnan(a), b, select(isnan(b), a, maximum(a, b)));
}
Tensor fmin(const Operand& x, const Operand& y) {
  const auto [a, b] = pair_of(x, y);
  return select(isnan(a), b, select(isnan(b), a, minimum(a, b)));
}
Tensor float_power(const Operand& x, const Operand& y) { return pow(x.as(DType::kFloat64), y.as(DType::kFloat64)); }
Tensor ldexp(const Operand& x, const Operand& y) {
  const auto [a, b] = float_pair(x, y);
  return mul(a, exp2(b));
}
Tensor squared_difference(const Operand& x, const Operand& y) { return square(sub(x, y)); }

Tensor lerp(const Tensor& start, const Tensor& end, const Operand& weight) {
  return add(start, mul(sub(end, start), weight));
}
Tensor addcmul(const Tensor& x, const Tensor& a, const Tensor& b, const Operand& value) {
  return add(x, mul(mul(a, b), value));
}
Tensor addcdiv(const Tensor& x, const Tensor& a, const Tensor& b, const Operand& value) {
  return add(x, mul(div(a, b), value));
}

Tensor isclose(const Tensor& x, const Tensor& y, double rtol, double atol, bool equal_nan) {
  const auto [a, b] = float_pair(x, y);
  const Tensor near = less_equal(abs(sub(a, b)), add(mul(abs(b), rtol), atol));
  Tensor close = logical_or(equal(a, b), logical_and(near, isfinite(b)));
  if (equal_nan) close = logical_or(close, logical_and(isnan(a), isnan(b)));
  return close;
}

Tensor nan_to_num(const Tensor& x, std::optional<double> nan, std::optional<double> posinf,
                  std::optional<double> neginf) {
  if (!is_floating(x.dtype())) return x;
  const double top = x.dtype() == DType::kFloat16    ? 65504.0
                     : x.dtype() == DType::kBFloat16 ? 0x1.FEp127
                     : x.dtype() == DType::kFloat32  ? std::numeric_limits<float>::max()
                                                     : std::numeric_limits<double>::max();
  const Tensor a = select(isnan(x), nan.value_or(0), x);
  return select(isposinf(x), posinf.value_or(top), select(isneginf(x), neginf.value_or(-top), a));
}

Tensor clamp(const Tensor& x, const std::optional<Operand>& low, const std::optional<Operand>& high) {
  UNDERTOW_CHECK(low || high, ValueError, "clip: at least one of min and max is needed, both are None");
  Tensor y = x;
  if (low) y = maximum(y, *low);
  if (high) y = minimum(y, *high);
  return y;
}

Tensor add_n(const std::vector<Tensor>& xs) {
  UNDERTOW_CHECK(!xs.empty(), ValueError, "addn: no tensors given");
  Tensor sum = xs[0];
  for (std::size_t i = 1; i < xs.size(); ++i) {
    UNDERTOW_CHECK(xs[i].shape() == sum.shape(), ShapeError, "addn: shapes {} and {} differ", sum.shape().str(),
                   xs[i].shape().str());
    sum = add(sum, xs[i]);
  }
  return sum;
}

}  // namespace undertow::ops
