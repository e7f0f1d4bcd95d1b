// SPDX-License-Identifier: Apache-2.0
// ops/apply_precision.h: the part of mixed precision that every op call goes through. Internal.
#pragma once

#include <vector>

#include "undertow/ir/op_def.h"

namespace undertow::ops::detail {

/// Casts `inputs` as the thread's Precision asks for this op. True: half results become float32 again.
bool adapt_inputs(const ir::OpDef& op, std::vector<Tensor>& inputs);

}  // namespace undertow::ops::detail
