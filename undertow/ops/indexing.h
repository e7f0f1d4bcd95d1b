// SPDX-License-Identifier: Apache-2.0
// ops/indexing.h: NumPy's square brackets beyond ops::index: writing. (ops::index itself, in ops.h, is defined here.)
#pragma once

#include "undertow/ops/ops.h"

namespace undertow::ops {

/// x with x[items] = value (a number, or a tensor that broadcasts to the shape of x[items]). A bool mask whose value
/// does not depend on how many elements it picks is a select, which compiles; otherwise masks need their values.
Tensor set_index(const Tensor& x, const std::vector<Index>& items, const Operand& value);
/// The same in x's own memory, outside of traces: what integers and slices leave out is not touched.
void write_index(const Tensor& x, const std::vector<Index>& items, const Operand& value);

}  // namespace undertow::ops
