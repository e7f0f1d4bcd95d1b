// SPDX-License-Identifier: Apache-2.0
// Compositions of primitives; fusion makes one kernel of each, forward and backward.
#include "undertow/ops/activations.h"

#include <numbers>

#include "undertow/ops/nn_common.h"

namespace undertow::ops {
namespace {

/// x where it is not positive (or NaN), else 0: keeps exp from overflowing on the side that is not taken, whose
/// gradient would then be 0 * inf.
Tensor not_positive(const Tensor& x) { return select(greater(x, 0.0), 0.0, x); }

Tensor softplus1(const Tensor& t) { return add(maximum(t, 0.0), log1p(exp(neg(abs(t))))); }

}  // namespace

Tensor relu6(const Tensor& x) { return clip(x, 0.0, 6.0); }

Tensor gelu(const Tensor& x, bool approximate) {
  return in_compute_type(x, [&](const Tensor& t) {
    if (!approximate) return mul(mul(t, 0.5), add(erf(mul(t, std::numbers::sqrt2 / 2)), 1.0));
    const double scale = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;  // sqrt(2 / pi)
    const Tensor inner = mul(add(t, mul(mul(mul(t, t), t), 0.044715)), scale);
    return mul(mul(t, 0.5), add(tanh(inner), 1.0));
  });
}

Tensor fast_gelu(const Tensor& x) {
  return in_compute_type(x, [](const Tensor& t) { return mul(t, sigmoid(mul(t, 1.702))); });
}

Tensor silu(const Tensor& x) {
  return in_compute_type(x, [](const Tensor& t) { return mul(t, sigmoid(t)); });
}

Tensor mish(const Tensor& x) {
  return in_compute_type(x, [](const Tensor& t) { return mul(t, tanh(softplus1(t))); });
}

Tensor hardsigmoid(const Tensor& x) {
  return in_compute_type(x, [](const Tensor& t) { return div(relu6(add(t, 3.0)), 6.0); });
}

Tensor hardswish(const Tensor& x) {
  return in_compute_type(x, [](const Tensor& t) { return mul(t, div(relu6(add(t, 3.0)), 6.0)); });
}

Tensor hardtanh(const Tensor& x, double min_val, double max_val) {
  UNDERTOW_CHECK(min_val <= max_val, ValueError, "hardtanh: min_val must be at most max_val, but they are {} and {}",
                 min_val, max_val);
  return clip(x, min_val, max_val);
}

Tensor leaky_relu(const Tensor& x, double alpha) {
  return in_compute_type(x, [&](const Tensor& t) { return select(greater(t, 0.0), t, mul(t, alpha)); });
}

Tensor elu(const Tensor& x, double alpha) {
  return in_compute_type(
      x, [&](const Tensor& t) { return select(greater(t, 0.0), t, mul(expm1(not_positive(t)), alpha)); });
}

Tensor celu(const Tensor& x, double alpha) {
  UNDERTOW_CHECK(alpha != 0, ValueError, "celu: alpha must not be 0");
  return in_compute_type(
      x, [&](const Tensor& t) { return select(greater(t, 0.0), t, mul(expm1(div(not_positive(t), alpha)), alpha)); });
}

Tensor selu(const Tensor& x) {
  constexpr double kScale = 1.0507009873554805, kAlpha = 1.6732632423543772;
  return in_compute_type(x, [](const Tensor& t) { return mul(elu(t, kAlpha), kScale); });
}

Tensor softplus(const Tensor& x, double beta, double threshold) {
  UNDERTOW_CHECK(beta != 0, ValueError, "softplus: beta must not be 0");
  return in_compute_type(x, [&](const Tensor& t) {
    const Tensor scaled = mul(t, beta);
    return select(greater(scaled, threshold), t, div(softplus1(scaled), beta));
  });
}

Tensor softsign(const Tensor& x) {
  return in_compute_type(x, [](const Tensor& t) { return div(t, add(abs(t), 1.0)); });
}

Tensor logsigmoid(const Tensor& x) {
  return in_compute_type(x, [](const Tensor& t) { return neg(softplus1(neg(t))); });
}

Tensor hardshrink(const Tensor& x, double lambd) { return select(less_equal(abs(x), lambd), 0.0, x); }

Tensor softshrink(const Tensor& x, double lambd) {
  UNDERTOW_CHECK(lambd >= 0, ValueError, "softshrink: lambd must not be negative but is {}", lambd);
  // Times 0 in the middle: NaN stays.
  return select(greater(x, lambd), sub(x, lambd), select(less(x, -lambd), add(x, lambd), mul(x, 0.0)));
}

Tensor tanhshrink(const Tensor& x) {
  return in_compute_type(x, [](const Tensor& t) { return sub(t, tanh(t)); });
}

Tensor threshold(const Tensor& x, double thr, double value) {
  return select(less_equal(x, thr), constant(value, x.dtype()), x);
}

Tensor softmin(const Tensor& x, std::int64_t axis) { return softmax(neg(x), axis); }

Tensor glu(const Tensor& x, std::int64_t axis) {
  const int a = normalize_axis(axis, x.ndim(), "glu");
  UNDERTOW_CHECK(x.shape(a) % 2 == 0, ValueError, "glu: axis {} of shape {} must be even", a, x.shape().str());
  const auto halves = split(x, 2, a);
  return mul(halves[0], sigmoid(halves[1]));
}

Tensor prelu(const Tensor& x, const Tensor& weight) {
  const std::int64_t channels = x.ndim() >= 2 ? x.shape(1) : 1;
  UNDERTOW_CHECK(weight.ndim() <= 1 && (weight.size() == 1 || weight.size() == channels), ShapeError,
                 "prelu: the weight must hold one value, or one for each of the {} channels of the input {}, but has "
                 "shape {}",
                 channels, x.shape().str(), weight.shape().str());
  const Tensor w = weight.size() == 1 ? reshape(weight, {}) : per_channel(weight, x);
  return in_compute_type(x, [&](const Tensor& t) { return select(greater(t, 0.0), t, mul(t, cast(w, t.dtype()))); });
}

Tensor rrelu(const Tensor& x, double lower, double upper) {
  UNDERTOW_CHECK(lower <= upper, ValueError, "rrelu: upper must be at least lower, but they are {} and {}", upper,
                 lower);
  return in_compute_type(x, [&](const Tensor& t) {
    const Tensor slope = cast(add(mul(random_uniform(t.shape()), upper - lower), lower), t.dtype());
    return select(greater(t, 0.0), t, mul(t, slope));
  });
}

}  // namespace undertow::ops
