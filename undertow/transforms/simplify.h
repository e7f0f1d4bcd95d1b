// SPDX-License-Identifier: Apache-2.0
// transforms/simplify.h: removes what need not be computed. Values keep their bits.
#pragma once

#include "undertow/ir/graph.h"

namespace undertow::transforms {

/// Drops nodes whose results nobody reads, and what nobody reads of control flow. Nodes with an effect stay.
void remove_dead(ir::Graph& graph);

/// Identities (copy, x * 1, reshape of reshape), transposes into a matmul's flags, reductions over axes of extent 1,
/// common subexpressions, then dead nodes. Random draws are merged only with themselves.
void simplify(ir::Graph& graph);

}  // namespace undertow::transforms
