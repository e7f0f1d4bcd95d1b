// SPDX-License-Identifier: Apache-2.0
// runtime/stats.h: counters that show what the host did and what the device did.
#pragma once

#include <cstdint>

namespace undertow::runtime {

struct Stats {
  std::int64_t commands = 0;      ///< host commands given to the compute thread
  std::int64_t steps = 0;         ///< steps the compute thread ran
  std::int64_t compiles = 0;      ///< programs compiled (one per distinct graph)
  std::int64_t allocations = 0;   ///< heap allocations on the compute thread inside commands
  std::int64_t program_hits = 0;  ///< programs found by graph hash instead of compiled
  /// Of the programs compiled: tensors that a step writes only to change them between float32 and a half type, at the
  /// edges (inputs, weights, outputs) and inside, where there should be none; and the bytes of both.
  std::int64_t edge_casts = 0, inside_casts = 0, cast_bytes = 0;
};
Stats stats();
void reset_stats();

}  // namespace undertow::runtime
