// SPDX-License-Identifier: Apache-2.0
// transforms/fuse_groups.h: which nodes are fused together (internal to fuse.cpp).
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "undertow/ir/graph.h"

namespace undertow::transforms::detail {

enum class Kind : std::uint8_t {
  kOpaque,       // runs as a kernel of its own
  kConstant,     // a scalar expression of constants, repeated where it is used
  kMovement,     // read through by nests; materialised only for opaque readers
  kElementwise,  // result has the shape of the iteration space, or of its outer part
  kReduce,
};

/// Extents other than 1, in order: what decides whether two nodes can share a loop.
std::vector<std::int64_t> squeeze(const Shape& shape);

struct Group {
  std::vector<ir::NodeId> members;   // in graph order
  bool nest = false;                 // becomes a fused node
  std::vector<std::int64_t> domain;  // squeezed iteration space
  std::uint32_t reduced = 0;         // bit d: domain[d] is reduced; 0: no reduction yet
  bool uses_index = false;
  ir::Phase phase = ir::Phase::kCompute;
};

struct Grouping {
  std::vector<Kind> kinds;       // by node
  std::vector<int> group_of;     // by node; -1 for constants
  std::vector<char> is_reduced;  // by node: a reduced member of its group
  std::vector<Group> groups;     // empty ones were merged away
  std::vector<int> order;        // groups in execution order

  int group_of_value(const ir::Graph& g, ir::ValueId v) const {
    const auto n = g.values[v].producer;
    return n == ir::kNoId ? -1 : group_of[n];
  }
};

/// Whether the expression of an elementwise node reads the number of the element.
bool expr_uses_index(const ir::Graph& graph, const ir::Node& node);

Grouping make_groups(const ir::Graph& graph);

/// Composes the movement nodes above `v`: offset and strides of v's axes in the memory of `*source`, the deepest value
/// that an affine access reaches.
ir::Access read_through(const ir::Graph& graph, const Grouping& groups, ir::ValueId v, ir::ValueId* source);

/// What a nest reads in place of `v`, a value from outside of it: where that is only half values widened, those. A load
/// widens as it reads, and half as many bytes are written for it.
ir::ValueId unwidened(const ir::Graph& graph, const Grouping& groups, ir::ValueId v);

/// The bits of the squeezed domain of `shape` that `axes` (of the unsqueezed shape) cover.
std::uint32_t squeezed_axes(const Shape& shape, const std::vector<std::int64_t>& axes);
/// Extents of `domain` whose bit is not set.
std::vector<std::int64_t> outer_extents(const std::vector<std::int64_t>& domain, std::uint32_t reduced);

}  // namespace undertow::transforms::detail
