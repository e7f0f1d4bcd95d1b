// SPDX-License-Identifier: Apache-2.0
#include "undertow/train/norm_layers.h"

#include <algorithm>

#include "undertow/base/check.h"
#include "undertow/ops/norm.h"
#include "undertow/ops/ops.h"

namespace undertow::nn {
namespace {

void check_momentum(const char* cls, double momentum) {
  UNDERTOW_CHECK(momentum >= 0 && momentum <= 1, ValueError, "{}: 'momentum' must be from 0 to 1 but is {}", cls,
                 momentum);
}

void check_features(const char* cls, const char* argument, std::int64_t n) {
  UNDERTOW_CHECK(n >= 1, ValueError, "{}: '{}' must be at least 1 but is {}", cls, argument, n);
}

Parameter made(const Init& init, const Shape& shape, DType dtype, const char* name, bool trains = true) {
  return Parameter(common::initializer(init, shape, dtype), name, trains);
}

}  // namespace

// ---- batch normalisation
BatchNormCell::BatchNormCell(const char* cls, std::int64_t num_features, std::vector<int> ranks,
                             const BatchNormOptions& o)
    : features_(num_features), ranks_(std::move(ranks)), options_(o) {
  check_features(cls, "num_features", features_);
  check_momentum(cls, o.momentum);
  UNDERTOW_CHECK(o.data_format == "NCHW", ValueError, "{}: data_format '{}' is not supported; use NCHW", cls,
                 o.data_format);
  const Shape shape{features_};
  insert_param("moving_mean", made(o.moving_mean_init, shape, o.dtype, "mean", false));
  insert_param("moving_variance", made(o.moving_var_init, shape, o.dtype, "variance", false));
  insert_param("gamma", made(o.gamma_init, shape, o.dtype, "gamma", o.affine));
  insert_param("beta", made(o.beta_init, shape, o.dtype, "beta", o.affine));
}

Tensor BatchNormCell::construct(const Tensor& x) {
  const bool fits = std::find(ranks_.begin(), ranks_.end(), x.ndim()) != ranks_.end();
  UNDERTOW_CHECK(
      fits && x.shape(1) == features_, ShapeError,
      "{}: expected an input of {} dimensions with num_features = {} channels, but the input has shape {} and "
      "gamma {}",
      where(), fmt::join(ranks_, " or "), features_, x.shape().str(), get_param("gamma").shape().str());
  const Parameter mean = get_param("moving_mean"), variance = get_param("moving_variance");
  const Tensor gamma = ops::read(get_param("gamma")), beta = ops::read(get_param("beta"));
  if (options_.use_batch_statistics.value_or(training()))
    return ops::batch_norm_training(x, mean, variance, gamma, beta, options_.momentum, options_.eps, where());
  return ops::batch_norm(x, mean, variance, gamma, beta, options_.eps);
}

BatchNorm3dCell::BatchNorm3dCell(std::int64_t num_features, const BatchNormOptions& options) : features_(num_features) {
  check_features("BatchNorm3d", "num_features", num_features);
  insert_child("bn2d", make_ref<BatchNorm2dCell>(num_features, options));
}

Tensor BatchNorm3dCell::construct(const Tensor& x) {
  UNDERTOW_CHECK(x.ndim() == 5, ShapeError, "{}: expected an input of 5 dimensions but its shape is {}", where(),
                 x.shape().str());
  const auto& s = x.shape();
  const Tensor y = (*get_child("bn2d"))(ops::reshape(x, {s[0], s[1], s[2] * s[3], s[4]}));
  return ops::reshape(y, s.to_vector());
}

// ---- over the channels or the features of one sample
LayerNormCell::LayerNormCell(const std::vector<std::int64_t>& normalized_shape, const LayerNormOptions& o)
    : shape_(normalized_shape), options_(o) {
  UNDERTOW_CHECK(!normalized_shape.empty(), ValueError, "LayerNorm: 'normalized_shape' must have at least one number");
  insert_param("gamma", made(o.gamma_init, shape_, o.dtype, "gamma"));
  insert_param("beta", made(o.beta_init, shape_, o.dtype, "beta"));
}

Tensor LayerNormCell::construct(const Tensor& x) {
  const auto axis = [&](std::int64_t a) { return a < 0 ? a + x.ndim() : a; };
  const std::int64_t params = axis(options_.begin_params_axis), norm = axis(options_.begin_norm_axis);
  Shape want;
  for (std::int64_t d = params; d >= 0 && d < x.ndim(); ++d) want.push_back(x.shape(static_cast<int>(d)));
  UNDERTOW_CHECK(norm >= 0 && norm < x.ndim() && !want.empty() && want == shape_, ShapeError,
                 "{}: normalized_shape {} must be the input's dimensions from begin_params_axis = {} on "
                 "(begin_norm_axis = {}), but the input has shape {}",
                 where(), shape_.str(), options_.begin_params_axis, options_.begin_norm_axis, x.shape().str());
  return ops::layer_norm(x, norm, get_param("gamma"), get_param("beta"), options_.epsilon);
}

GroupNormCell::GroupNormCell(std::int64_t num_groups, std::int64_t num_channels, const GroupNormOptions& o)
    : groups_(num_groups), channels_(num_channels), options_(o) {
  check_features("GroupNorm", "num_groups", groups_);
  check_features("GroupNorm", "num_channels", channels_);
  UNDERTOW_CHECK(channels_ % groups_ == 0, ValueError,
                 "GroupNorm: 'num_channels' must be a multiple of 'num_groups', but they are {} and {}", channels_,
                 groups_);
  insert_param("gamma", made(o.gamma_init, Shape{channels_}, o.dtype, "gamma", o.affine));
  insert_param("beta", made(o.beta_init, Shape{channels_}, o.dtype, "beta", o.affine));
}

Tensor GroupNormCell::construct(const Tensor& x) {
  UNDERTOW_CHECK(x.ndim() >= 2 && x.shape(1) == channels_, ShapeError,
                 "{}: expected an input (N, C, ...) with num_channels = {} channels, but its shape is {}", where(),
                 channels_, x.shape().str());
  return ops::group_norm(x, groups_, get_param("gamma"), get_param("beta"), options_.eps);
}

InstanceNormCell::InstanceNormCell(const char* cls, std::int64_t num_features, int rank, const InstanceNormOptions& o)
    : features_(num_features), rank_(rank), options_(o) {
  check_features(cls, "num_features", features_);
  check_momentum(cls, o.momentum);
  const Shape shape{features_};
  insert_param("moving_mean", made("zeros", shape, o.dtype, "mean", false));
  insert_param("moving_variance", made("ones", shape, o.dtype, "variance", false));
  insert_param("gamma", made(o.gamma_init, shape, o.dtype, "gamma", o.affine));
  insert_param("beta", made(o.beta_init, shape, o.dtype, "beta", o.affine));
}

Tensor InstanceNormCell::construct(const Tensor& x) {
  UNDERTOW_CHECK(x.ndim() == rank_ && x.shape(1) == features_, ShapeError,
                 "{}: expected an input of {} dimensions with num_features = {} channels, but its shape is {}", where(),
                 rank_, features_, x.shape().str());
  return ops::group_norm(x, features_, get_param("gamma"), get_param("beta"), options_.eps);
}

namespace fn {

void LRN::check() const {
  UNDERTOW_CHECK(norm_region == "ACROSS_CHANNELS", ValueError,
                 "LRN: 'norm_region' must be 'ACROSS_CHANNELS' but is '{}'", norm_region);
}
Tensor LRN::operator()(const Tensor& x) const { return ops::lrn(x, depth_radius, bias, alpha, beta); }
Tensor Norm::operator()(const Tensor& x) const { return ops::sqrt(ops::reduce_sum(ops::square(x), axis, keep_dims)); }

}  // namespace fn

}  // namespace undertow::nn
