// SPDX-License-Identifier: Apache-2.0
// transforms/small_matmul.h: matrix products too small for a library call become loops that fuse with what surrounds
// them.
#pragma once

#include "undertow/ir/graph.h"

namespace undertow::transforms {

/// a [m, k] times b [k, n] with m*n*k small: reduce_sum(a [m, 1, k] * b [1, n, k], axis 2), or a plain product when k
/// is
/// 1. A library call costs about a microsecond; these cost nanoseconds inside a fused kernel.
void small_matmul(ir::Graph& graph);

}  // namespace undertow::transforms
