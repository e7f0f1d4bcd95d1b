// SPDX-License-Identifier: Apache-2.0
// transforms/layout.h: activations of convolutional networks in the layout that the device's convolutions want.
//
//   x ─► conv ─► batch norm ─► relu ─► conv ─► mean     NCHW at the borders,
//   x ─► [block] ─► conv ... conv ─► mean (a view)      [N, C/b, H, W, b] inside
#pragma once

#include <cstdint>

#include "undertow/ir/graph.h"

namespace undertow::transforms {

/// Rewrites 2-D convolutions (forward and both gradients) whose channels come in whole blocks, and what stands between
/// them, so that activations of shape [N, C, H, W] lie as [N, C/block, H, W, block]: dense tensors of five dimensions,
/// of which every later pass and kernel knows all there is to know. Pooling, pointwise chains, reductions, concat,
/// slice and pad follow; where a plain tensor is wanted (or comes in), a reshape and a transpose stand in the graph,
/// one for each value. Draws of random numbers count elements and therefore stay plain. Requires: gradients are in the
/// graph. Guarantees: types of inputs, states and outputs unchanged; values equal, but for the order in which
/// reductions over the channels add up.
void layout(ir::Graph& graph, std::int64_t block);

}  // namespace undertow::transforms
