// SPDX-License-Identifier: Apache-2.0
// ops/sort.h: order along an axis. Sorting is stable; NaN counts as the largest value. Positions are int64.
#pragma once

#include <utility>

#include "undertow/ops/ops.h"

namespace undertow::ops {

/// The first `count` (-1: all) elements in ascending or descending order, and where they stood.
std::pair<Tensor, Tensor> sort(const Tensor& x, std::int64_t axis = -1, bool descending = false,
                               std::int64_t count = -1);
/// The k largest (smallest) along an axis, best first, and where they stood.
std::pair<Tensor, Tensor> topk(const Tensor& x, std::int64_t k, std::int64_t axis = -1, bool largest = true);
/// The k-th smallest (k from 1) and its position.
std::pair<Tensor, Tensor> kthvalue(const Tensor& x, std::int64_t k, std::int64_t axis = -1, bool keep_dims = false);
/// The middle value (the lower of two) along an axis and its position; NaN where the row has one.
std::pair<Tensor, Tensor> median(const Tensor& x, std::int64_t axis = -1, bool keep_dims = false);
/// The q-quantiles (q in [0, 1], linear between neighbours) over an axis, or over everything.
Tensor quantile(const Tensor& x, double q, std::optional<std::int64_t> axis = {}, bool keep_dims = false,
                bool ignore_nan = false);
/// Where `values` would be inserted to keep `sorted` (ascending; 1-d, or as many rows as values has) in order.
Tensor searchsorted(const Tensor& sorted, const Tensor& values, bool right = false);

}  // namespace undertow::ops
