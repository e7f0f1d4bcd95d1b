// SPDX-License-Identifier: Apache-2.0
// ops/reference/reference.h: the primitive operators as plain loops: oracle of the tests, fallback of a new device.
//
// Shapes and dtypes are those that the op's `infer` gave; docs/ops-contract.md says what inputs and attributes mean.
// Floating sums accumulate in float64 and are rounded once; integers wrap. Nothing here is fast on purpose.
#pragma once

#include <span>

#include "undertow/ir/op_def.h"

namespace undertow::ops::reference {

#define UNDERTOW_REFERENCE(name)                                                                     \
  void name(std::span<const ir::HostArray> in, std::span<const ir::HostArray> out, const ir::Attrs&, \
            ir::StepError* error)
UNDERTOW_REFERENCE(matmul);

UNDERTOW_REFERENCE(conv);  // of 2 or 3 spatial dimensions
UNDERTOW_REFERENCE(conv_grad_input);
UNDERTOW_REFERENCE(conv_grad_weight);

UNDERTOW_REFERENCE(max_pool2d);  // index -1 where a window holds padding only
UNDERTOW_REFERENCE(max_pool2d_grad);
UNDERTOW_REFERENCE(avg_pool2d);
UNDERTOW_REFERENCE(avg_pool2d_grad);

UNDERTOW_REFERENCE(reduce_sum);
UNDERTOW_REFERENCE(reduce_prod);
UNDERTOW_REFERENCE(reduce_max);  // of nothing: -inf, or the type's lowest value
UNDERTOW_REFERENCE(reduce_min);
UNDERTOW_REFERENCE(argmax);
UNDERTOW_REFERENCE(argmin);

UNDERTOW_REFERENCE(cumsum);
UNDERTOW_REFERENCE(cumprod);
UNDERTOW_REFERENCE(cummax);
UNDERTOW_REFERENCE(cummin);
UNDERTOW_REFERENCE(sort);

UNDERTOW_REFERENCE(reshape);
UNDERTOW_REFERENCE(transpose);
UNDERTOW_REFERENCE(broadcast_to);
UNDERTOW_REFERENCE(slice);
UNDERTOW_REFERENCE(pad);
UNDERTOW_REFERENCE(concat);
UNDERTOW_REFERENCE(iota);
UNDERTOW_REFERENCE(constant);

// An offending index sets the error unless an earlier one stands there; its row of the result is zero.
UNDERTOW_REFERENCE(gather);
UNDERTOW_REFERENCE(scatter_add);
UNDERTOW_REFERENCE(scatter);
UNDERTOW_REFERENCE(slice_update);
UNDERTOW_REFERENCE(check_index);  // allowed: low <= index < high
#undef UNDERTOW_REFERENCE

}  // namespace undertow::ops::reference
