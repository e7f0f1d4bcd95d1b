// SPDX-License-Identifier: Apache-2.0
// ops/norm.h: normalisations. Variances are biased unless said otherwise and take two passes; half types are computed
// in float32. Scale and shift (gamma, beta) may be left undefined.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "undertow/tensor/tensor.h"

namespace undertow::ops {

/// (x - mean) / sqrt(var + eps) * gamma + beta over the dimensions from `begin_axis` on (Ba, Kiros, Hinton, 2016).
/// gamma and beta broadcast against x from the right.
Tensor layer_norm(const Tensor& x, std::int64_t begin_axis, const Tensor& gamma, const Tensor& beta, double eps = 1e-5);
/// x / sqrt(mean(x^2) + eps) * gamma over the last dimension (Zhang, Sennrich, 2019).
Tensor rms_norm(const Tensor& x, const Tensor& gamma, double eps = 1e-6);
/// Over each of `groups` equal parts of the channels of (N, C, ...); gamma and beta (C,) (Wu, He, 2018).
Tensor group_norm(const Tensor& x, std::int64_t groups, const Tensor& gamma, const Tensor& beta, double eps = 1e-5);
/// With given statistics, one a channel of (N, C, ...).
Tensor batch_norm(const Tensor& x, const Tensor& mean, const Tensor& variance, const Tensor& gamma, const Tensor& beta,
                  double eps = 1e-5);
/// By the statistics of the batch, which are moved into `moving_mean` and `moving_variance` (unbiased) where they are
/// defined: moving = keep * moving + (1 - keep) * batch. `what` is for the error when a channel has a single value.
Tensor batch_norm_training(const Tensor& x, const Parameter& moving_mean, const Parameter& moving_variance,
                           const Tensor& gamma, const Tensor& beta, double keep, double eps, const std::string& what);
/// x / sqrt(max(sum(x^2), eps)) over the axes.
Tensor l2_normalize(const Tensor& x, std::vector<std::int64_t> axes, double eps = 1e-4);
/// x / (bias + alpha * sum of x^2 over the channels at most depth_radius away)^beta (Krizhevsky et al., 2012; alpha is
/// not divided by the number of channels).
Tensor lrn(const Tensor& x, std::int64_t depth_radius = 5, double bias = 1, double alpha = 1, double beta = 0.5);

}  // namespace undertow::ops
