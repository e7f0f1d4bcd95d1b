// SPDX-License-Identifier: Apache-2.0
// backend/cpu/nests.h: the loop nest of a single op, for nodes that fusion has left alone (eager execution above all).
#pragma once

#include <optional>

#include "undertow/backend/cpu/kernel.h"
#include "undertow/ir/loop_nest.h"

namespace undertow::backend::cpu {

/// Of an op with a scalar expression, or a reduction. None for other ops, and where a loop would have no points.
std::optional<ir::LoopNest> single_op_nest(const NodeView& node);

/// Whether output `output` of a nest may lie over its input `input`: they have one access, everywhere the same.
bool nest_in_place(const ir::LoopNest& nest, int output, int input);

}  // namespace undertow::backend::cpu
