// SPDX-License-Identifier: Apache-2.0
// transforms/casts.h: the tensors that a program writes only to change their type. Mixed precision should leave none
// but those at its edges: all others are done by the loads and stores of kernels that compute.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "undertow/ir/graph.h"

namespace undertow::transforms {

struct Cast {
  enum Edge : std::uint8_t { kInput, kWeight, kOutput, kInside };
  Edge edge = kInside;
  DType from = DType::kFloat32, to = DType::kFloat32;
  std::int64_t bytes = 0;  // written at each step
  std::string cell;        // where it stands in the network: "net.fc"
};

/// Of a graph that passes have finished with, its regions included: casts from or to a half type, in the order they
/// run.
std::vector<Cast> find_casts(const ir::Graph& graph);
/// "input", "weight", "output" or "inside".
std::string_view name_of(Cast::Edge edge);

}  // namespace undertow::transforms
