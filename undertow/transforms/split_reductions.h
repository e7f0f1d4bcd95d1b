// SPDX-License-Identifier: Apache-2.0
// transforms/split_reductions.h: large reductions to few values, made so that threads can share them.
#pragma once

#include "undertow/ir/graph.h"

namespace undertow::transforms {

/// Splits a reduction of a large tensor whose results are too few to be shared over threads in two: over all axes but
/// the first, which gives partial results, and then over the first. Where the tensor is read from memory and has no
/// such axis, it is seen as rows. Only shapes decide, so results do not depend on the number of threads. Half types
/// stay as they are: partial results would be rounded.
void split_reductions(ir::Graph& graph);

}  // namespace undertow::transforms
