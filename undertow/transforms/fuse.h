// SPDX-License-Identifier: Apache-2.0
// transforms/fuse.h: the graph kernel: groups of elementwise ops and reductions become single loop nests.
//
//   x ─► sub ─► exp ─► reduce_sum ─► div ─► y        one nest over rows: max, sum of exp, store
//   reduce_max ┘           exp ───────┘
#pragma once

#include "undertow/ir/graph.h"

namespace undertow::transforms {

/// Replaces groups of nodes by "fused" nodes that carry an ir::LoopNest.
///
/// A group shares one iteration space (extents of 1 do not count). Its members are full (the whole space) or reduced
/// (the space without the reduced axes); all its reductions are over the same axes. Movement ops (transpose, slice,
/// broadcast) are read through. Constants become part of the expressions. Groups stay within one phase and never make a
/// cycle. Everything else (matmul, convolution, ...) stays as it is; tensors without elements are left alone.
/// Requires: assign_phases ran. Guarantees: nodes in a valid order, compute before commit; every value rounded where
/// the unfused program rounds it.
void fuse(ir::Graph& graph);

}  // namespace undertow::transforms
