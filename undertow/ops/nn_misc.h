// SPDX-License-Identifier: Apache-2.0
// ops/nn_misc.h: functions of neural networks that belong to no larger family.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "undertow/tensor/tensor.h"

namespace undertow::ops {

/// x + bias with one value a channel (axis 1, or the last of the given layout).
Tensor bias_add(const Tensor& x, const Tensor& bias, bool channels_last = false);
/// Zeroes whole slices of the first `axes` dimensions, each with probability p in [0, 1]; scales the rest by 1/(1-p).
Tensor dropout_slices(const Tensor& x, double p, int axes = 2);
/// Rows of `weight` (vocabulary, features) by ids of any shape. padding_idx: that row gets no gradient. max_norm: rows
/// are scaled down to that norm_type-norm where they are larger. An id out of range is an error in every mode.
Tensor embedding(const Tensor& ids, const Tensor& weight, std::optional<std::int64_t> padding_idx = std::nullopt,
                 std::optional<double> max_norm = std::nullopt, double norm_type = 2);
/// sum over i, j of x1[.., i] weight[o, i, j] x2[.., j] + bias[o]
Tensor bidense(const Tensor& x1, const Tensor& x2, const Tensor& weight, const Tensor& bias = {});
/// x scaled down to a norm of at most max_norm, over all elements or the given axes.
Tensor clip_to_norm(const Tensor& x, const Tensor& max_norm, const std::vector<std::int64_t>& axes = {});
/// x where column - row <= k (tril), or >= k (triu), of the last two dimensions, else 0.
Tensor triangle(const Tensor& x, std::int64_t k, bool lower);
/// log(sum(exp(x))) over the axes, without overflow.
Tensor log_sum_exp(const Tensor& x, const std::vector<std::int64_t>& axes, bool keep_dims = false);

}  // namespace undertow::ops
