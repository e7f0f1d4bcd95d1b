// SPDX-License-Identifier: Apache-2.0
// ops/dynamic.h: functions whose result's shape depends on values. They run eagerly only: within a compiled function
// they raise TraceError, which names what to use instead (a tensor that has its value already may be used there). What
// they pick out differentiates.
#pragma once

#include "undertow/ops/ops.h"

namespace undertow::ops {

/// [n, rank] int64: where x is not zero, in row-major order. `what` asks for it, in messages.
Tensor nonzero(const Tensor& x, const char* what = "nonzero");
/// x's elements where the mask is true (both broadcast), as a vector.
Tensor masked_select(const Tensor& x, const Tensor& mask);
struct Unique {
  Tensor values;   ///< in order of appearance, or sorted
  Tensor inverse;  ///< of x's shape: where each element stands in values (int64)
  Tensor counts;   ///< how often each value appears (int64)
};
Unique unique(const Tensor& x, bool sorted);
/// As unique, for runs of equal neighbours in the flattened tensor.
Unique unique_consecutive(const Tensor& x);
/// The number of every value of a vector of non-negative integers (float32), or the sum of its weights.
Tensor bincount(const Tensor& x, const Tensor& weights, std::int64_t minlength);
/// The largest element as a number of the host: for results whose size is a value.
std::int64_t largest(const Tensor& x, const char* op, const char* instead);

}  // namespace undertow::ops
