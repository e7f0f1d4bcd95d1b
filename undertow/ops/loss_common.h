// SPDX-License-Identifier: Apache-2.0
// ops/loss_common.h: what the loss functions share. Internal.
#pragma once

#include "undertow/ops/loss.h"
#include "undertow/ops/nn_common.h"

namespace undertow::ops {

/// In the compute type, which is also the loss's.
inline Tensor wide(const Tensor& x) { return cast(x, compute_type(float_type(x.dtype()))); }

/// A label of another shape would broadcast: (16, 1) with (16,) gives 16 x 16 differences and trains on nonsense.
inline void same_shape(const char* what, const Tensor& x, const Tensor& target) {
  UNDERTOW_CHECK(x.shape() == target.shape(), ShapeError,
                 "{}: input and target must have the same shape, but the input has shape {} and the target {}", what,
                 x.shape().str(), target.shape().str());
}

}  // namespace undertow::ops
