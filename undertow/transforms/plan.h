// SPDX-License-Identifier: Apache-2.0
// transforms/plan.h: where every value of a step lives.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "undertow/ir/graph.h"

namespace undertow::transforms {

/// Home of a value.
struct Place {
  enum Kind : std::uint8_t {
    kNone,   // no memory: nobody reads it
    kInput,  // Graph::inputs[index]
    kState,  // Graph::states[index], in place
    kArena,  // `offset` bytes into the work arena
  };
  Kind kind = kNone;
  std::uint32_t index = 0;
  std::size_t offset = 0;
};

struct Plan {
  std::vector<Place> places;  // by ValueId
  std::size_t arena_bytes = 0;
  std::size_t scratch_offset = 0;  // one region that kernels share
  /// State writes that could not be done in place: after the last node, copy the value to its state.
  std::vector<std::pair<ir::ValueId, std::uint32_t>> copies;
};

struct PlanInput {
  std::vector<std::size_t> scratch_bytes;                           // by node
  std::function<bool(ir::NodeId, int output, int input)> in_place;  // may output overwrite input?
};

/// Liveness over the fixed order, best fit by offset, 64-byte alignment. A commit node writes its state in place when
/// nobody reads the old value afterwards and the kernel allows it; otherwise into the arena, copied at the end.
Plan plan(const ir::Graph& graph, const PlanInput& input);

}  // namespace undertow::transforms
