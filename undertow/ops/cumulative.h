// SPDX-License-Identifier: Apache-2.0
// ops/cumulative.h: running sums, products and extrema along an axis.
#pragma once

#include <utility>

#include "undertow/ops/ops.h"

namespace undertow::ops {

/// exclusive: the element itself is left out (0 first). reverse: from the end.
Tensor cumsum(const Tensor& x, std::int64_t axis, bool exclusive = false, bool reverse = false);
Tensor cumprod(const Tensor& x, std::int64_t axis, bool exclusive = false, bool reverse = false);
/// The largest (smallest) element so far, and its position (int64; the last of equals). NaN wins from where it stands.
std::pair<Tensor, Tensor> cummax(const Tensor& x, std::int64_t axis);
std::pair<Tensor, Tensor> cummin(const Tensor& x, std::int64_t axis);
/// log(cumsum(exp(x))) without overflow.
Tensor logcumsumexp(const Tensor& x, std::int64_t axis);

}  // namespace undertow::ops
