// SPDX-License-Identifier: Apache-2.0
// ops/math.h: elementwise functions beyond those of ops.h. All broadcast, differentiate and keep NaN as those do;
// where a function is only defined on floats, integers become float32.
#pragma once

#include "undertow/ops/ops.h"

namespace undertow::ops {

Tensor tan(const Tensor& x);
Tensor sinh(const Tensor& x);
Tensor cosh(const Tensor& x);
Tensor asin(const Tensor& x);
Tensor acos(const Tensor& x);
Tensor atan(const Tensor& x);
Tensor asinh(const Tensor& x);
Tensor acosh(const Tensor& x);
Tensor atanh(const Tensor& x);
Tensor erfc(const Tensor& x);
Tensor erfinv(const Tensor& x);
Tensor lgamma(const Tensor& x);    ///< log |gamma(x)|; inf at 0, -1, -2, ...
Tensor digamma(const Tensor& x);   ///< its derivative; -inf at 0, NaN at negative integers
Tensor trigamma(const Tensor& x);  ///< the derivative of digamma; has no gradient of its own
Tensor exp2(const Tensor& x);
Tensor log2(const Tensor& x);
Tensor log10(const Tensor& x);
Tensor logit(const Tensor& x, std::optional<double> eps = {});  ///< log(x / (1 - x)), x first limited to [eps, 1 - eps]
Tensor frac(const Tensor& x);                                   ///< x - trunc(x)
Tensor deg2rad(const Tensor& x);
Tensor rad2deg(const Tensor& x);
Tensor cbrt(const Tensor& x);
Tensor sinc(const Tensor& x);  ///< sin(pi x) / (pi x)
Tensor round_to(const Tensor& x, std::int64_t decimals);
Tensor signbit(const Tensor& x);
Tensor isposinf(const Tensor& x);
Tensor isneginf(const Tensor& x);

Tensor fmod(const Operand& x, const Operand& y);  ///< sign of the dividend
// Integers and bools only.
Tensor bitwise_and(const Operand& x, const Operand& y);
Tensor bitwise_or(const Operand& x, const Operand& y);
Tensor bitwise_xor(const Operand& x, const Operand& y);
Tensor bitwise_left_shift(const Operand& x, const Operand& y);
Tensor bitwise_right_shift(const Operand& x, const Operand& y);
Tensor bitwise_not(const Tensor& x);

/// rounding_mode "": true division; "floor"; "trunc" (integers stay integers in the last two).
Tensor div(const Operand& x, const Operand& y, const std::string& rounding_mode);
Tensor div_trunc(const Tensor& x, const Tensor& y);
Tensor div_no_nan(const Operand& x, const Operand& y);  ///< 0 where y is 0
Tensor xlogy(const Operand& x, const Operand& y);       ///< x log(y), 0 where x is 0
Tensor xdivy(const Operand& x, const Operand& y);       ///< x / y, 0 where x is 0
Tensor hypot(const Operand& x, const Operand& y);
Tensor logaddexp(const Operand& x, const Operand& y);
Tensor logaddexp2(const Operand& x, const Operand& y);
Tensor copysign(const Operand& x, const Operand& y);
Tensor heaviside(const Operand& x, const Operand& values);  ///< 0, `values`, 1 for x < 0, x == 0, x > 0
Tensor fmax(const Operand& x, const Operand& y);            ///< the larger; NaN only where both are
Tensor fmin(const Operand& x, const Operand& y);
Tensor float_power(const Operand& x, const Operand& y);  ///< in float64
Tensor ldexp(const Operand& x, const Operand& y);        ///< x 2^y
Tensor squared_difference(const Operand& x, const Operand& y);

Tensor lerp(const Tensor& start, const Tensor& end, const Operand& weight);
Tensor addcmul(const Tensor& x, const Tensor& a, const Tensor& b, const Operand& value = 1);  ///< x + value a b
Tensor addcdiv(const Tensor& x, const Tensor& a, const Tensor& b, const Operand& value = 1);  ///< x + value a / b
/// |x - y| <= atol + rtol |y|, as bool.
Tensor isclose(const Tensor& x, const Tensor& y, double rtol = 1e-5, double atol = 1e-8, bool equal_nan = false);
/// NaN becomes `nan` (0), infinities the given numbers (the dtype's largest and lowest).
Tensor nan_to_num(const Tensor& x, std::optional<double> nan = {}, std::optional<double> posinf = {},
                  std::optional<double> neginf = {});
/// Limits that may be tensors. ValueError where both are missing.
Tensor clamp(const Tensor& x, const std::optional<Operand>& low, const std::optional<Operand>& high);
Tensor add_n(const std::vector<Tensor>& xs);  ///< the sum of tensors of one shape

}  // namespace undertow::ops
