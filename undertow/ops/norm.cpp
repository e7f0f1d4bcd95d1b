// SPDX-License-Identifier: Apache-2.0
// Compositions of primitives; fusion makes a few kernels of each.
#include "undertow/ops/norm.h"

#include "undertow/ops/dispatch.h"
#include "undertow/ops/nn_common.h"
#include "undertow/ops/precision.h"

namespace undertow::ops {
namespace {

Tensor scale_and_shift(Tensor y, const Tensor& gamma, const Tensor& beta) {
  if (gamma.defined()) y = mul(y, cast(gamma, y.dtype()));
  return beta.defined() ? add(y, cast(beta, y.dtype())) : y;
}

Tensor normalised(const Tensor& t, const Axes& axes, double eps) {
  const Tensor centred = sub(t, reduce_mean(t, axes, true));
  return mul(centred, rsqrt(add(reduce_mean(square(centred), axes, true), eps)));
}

Tensor spread_channels(const Tensor& t, const Tensor& x) {
  return !t.defined() || x.ndim() <= 2 ? t : per_channel(t, x);
}

void need_channels(const Tensor& x, const char* what) {
  UNDERTOW_CHECK(x.ndim() >= 2, ShapeError, "{}: the input must be (N, C, ...), but its shape is {}", what,
                 x.shape().str());
}

}  // namespace

Tensor layer_norm(const Tensor& given, std::int64_t begin_axis, const Tensor& gamma, const Tensor& beta, double eps) {
  const Tensor x = high(given);
  const int first = normalize_axis(begin_axis, x.ndim(), "layer_norm: begin_norm_axis");
  Axes axes;
  for (int d = first; d < x.ndim(); ++d) axes.push_back(d);
  return in_compute_type(x, [&](const Tensor& t) { return scale_and_shift(normalised(t, axes, eps), gamma, beta); });
}

Tensor rms_norm(const Tensor& x, const Tensor& gamma, double eps) {
  return in_compute_type(x, [&](const Tensor& t) {
    return scale_and_shift(mul(t, rsqrt(add(reduce_mean(square(t), {-1}, true), eps))), gamma, {});
  });
}

Tensor group_norm(const Tensor& given, std::int64_t groups, const Tensor& gamma, const Tensor& beta, double eps) {
  const Tensor x = high(given);
  need_channels(x, "group_norm");
  const std::int64_t n = x.shape(0), c = x.shape(1);
  UNDERTOW_CHECK(groups > 0 && c % groups == 0, ValueError,
                 "group_norm: num_groups must divide the {} channels of the input {}, but is {}", c, x.shape().str(),
                 groups);
  std::int64_t rest = 1;
  for (int d = 2; d < x.ndim(); ++d) rest *= x.shape(d);
  return in_compute_type(x, [&](const Tensor& t) {
    const Tensor y = normalised(reshape(t, {n, groups, c / groups * rest}), {2}, eps);
    return scale_and_shift(reshape(y, x.shape().to_vector()), spread_channels(gamma, x), spread_channels(beta, x));
  });
}

Tensor batch_norm(const Tensor& given, const Tensor& mean, const Tensor& variance, const Tensor& gamma,
                  const Tensor& beta, double eps) {
  const Tensor x = high(given);
  need_channels(x, "batch_norm");
  return in_compute_type(x, [&](const Tensor& t) {
    const auto as = [&](const Tensor& s) { return cast(s, t.dtype()); };
    Tensor scale = rsqrt(add(as(variance), eps));
    if (gamma.defined()) scale = mul(as(gamma), scale);
    const Tensor y = mul(sub(t, spread_channels(as(mean), x)), spread_channels(scale, x));
    return beta.defined() ? add(y, spread_channels(as(beta), x)) : y;
  });
}

Tensor batch_norm_training(const Tensor& given, const Parameter& moving_mean, const Parameter& moving_variance,
                           const Tensor& gamma, const Tensor& beta, double keep, double eps, const std::string& what) {
  const Tensor x = high(given);
  need_channels(x, what.c_str());
  const std::int64_t n = x.shape(1) == 0 ? 0 : x.size() / x.shape(1);
  UNDERTOW_CHECK(n > 1, ValueError,
                 "{}: training needs more than one value per channel, but the input of shape {} has {}; use larger "
                 "batches, or drop_remainder=True where the last batch of a dataset is short",
                 what, x.shape().str(), n);
  Axes axes{0};
  for (int d = 2; d < x.ndim(); ++d) axes.push_back(d);
  return in_compute_type(x, [&](const Tensor& t) {
    const Tensor mean = reduce_mean(t, axes), centred = sub(t, spread_channels(mean, x));
    const Tensor variance = reduce_mean(square(centred), axes);
    const double unbias = static_cast<double>(n) / static_cast<double>(n - 1);
    if (moving_mean.defined()) assign(moving_mean, moving_mean * keep + mean * (1.0 - keep));
    if (moving_variance.defined()) assign(moving_variance, moving_variance * keep + variance * ((1.0 - keep) * unbias));
    Tensor scale = rsqrt(add(variance, eps));
    if (gamma.defined()) scale = mul(cast(gamma, t.dtype()), scale);
    const Tensor y = mul(centred, spread_channels(scale, x));
    return beta.defined() ? add(y, spread_channels(cast(beta, t.dtype()), x)) : y;
  });
}

Tensor l2_normalize(const Tensor& x, Axes axes, double eps) {
  return in_compute_type(
      x, [&](const Tensor& t) { return mul(t, rsqrt(maximum(reduce_sum(square(t), axes, true), eps))); });
}

Tensor lrn(const Tensor& x, std::int64_t depth_radius, double bias, double alpha, double beta) {
  UNDERTOW_CHECK(x.ndim() == 4, ShapeError, "lrn: the input must be (N, C, H, W), but its shape is {}",
                 x.shape().str());
  UNDERTOW_CHECK(depth_radius >= 0, ValueError, "lrn: depth_radius must not be negative, got {}", depth_radius);
  return in_compute_type(x, [&](const Tensor& t) {
    const std::int64_t n = x.shape(0), c = x.shape(1), plane = x.shape(2) * x.shape(3), width = 2 * depth_radius + 1;
    // The sum over neighbouring channels: an average window over the channels, times its size.
    const Tensor mean = call("avg_pool2d", {reshape(square(t), {n, 1, c, plane})},
                             {{"kernel", Ints{width, 1}},
                              {"strides", Ints{1, 1}},
                              {"pads", Ints{depth_radius, depth_radius, 0, 0}},
                              {"count_include_pad", true}});
    const Tensor base = add(mul(reshape(mean, x.shape().to_vector()), alpha * static_cast<double>(width)), bias);
    return mul(t, pow(base, -beta));
  });
}

}  // namespace undertow::ops
