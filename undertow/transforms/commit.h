// SPDX-License-Identifier: Apache-2.0
// transforms/commit.h: what may change state waits until the step is known to be good.
#pragma once

#include "undertow/ir/graph.h"

namespace undertow::transforms {

/// Splits the step into its compute phase and its commit phase (compute, guard, commit).
///
/// Elementwise nodes whose results only go to state or to other commit nodes (optimizer updates, counters, moving
/// statistics) become commit nodes and move behind all compute nodes. A state whose new value is computed in the
/// compute phase gets a `copy` node in the commit phase. A state that skipped steps write too (State::always) is
/// computed in the compute phase and copied after the commit. Guarantees: every State::result is the output of a commit
/// node (an always node), no compute node reads one, and no always node reads a state.
void assign_phases(ir::Graph& graph);

}  // namespace undertow::transforms
