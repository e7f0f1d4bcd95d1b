// SPDX-License-Identifier: Apache-2.0
// ops/nn_common.h: what the neural network functions share. Internal.
#pragma once

#include <utility>

#include "undertow/base/check.h"
#include "undertow/ops/ops.h"
#include "undertow/ops/precision.h"

namespace undertow::ops {

using Ints = std::vector<std::int64_t>;

/// The result type of functions that are only defined on floats: integers and bools give float32.
inline DType float_type(DType dtype) { return is_floating(dtype) ? dtype : DType::kFloat32; }

/// f of x in its compute type (half types in float32), rounded once to x's type at the end. No mixed precision within.
template <typename F>
Tensor in_compute_type(const Tensor& x, F&& f) {
  const DType out = float_type(x.dtype());
  const PrecisionScope off;
  return cast(std::forward<F>(f)(cast(x, compute_type(out))), out);
}

/// `values` for each of `rank` dimensions: none stand for `missing`, one stands for all. Throws ValueError.
Ints spread(const Ints& values, int rank, std::int64_t missing, const char* what);
/// Paddings low and high of each of `rank` dimensions, from none, one number, one a dimension, or two a dimension.
Ints spread_pads(const Ints& values, int rank, const char* what);

/// A parameter of one value a channel, ready to broadcast against x (N, C, ...).
Tensor per_channel(const Tensor& t, const Tensor& x);

}  // namespace undertow::ops
