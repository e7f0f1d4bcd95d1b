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
};
Stats stats();
void reset_stats();

}  // namespace undertow::runtime
