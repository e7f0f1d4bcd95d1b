// SPDX-License-Identifier: Apache-2.0
// runtime/counters.h: where the counts behind runtime/stats.h are kept.
#pragma once

#include <atomic>
#include <cstdint>

namespace undertow::runtime {

struct Counters {
  std::atomic<std::int64_t> commands{0}, steps{0}, compiles{0}, allocations{0}, program_hits{0};
  std::atomic<std::int64_t> edge_casts{0}, inside_casts{0}, cast_bytes{0};
};
Counters& counters();

/// Heap allocations that Undertow's own code has made on this thread.
std::int64_t thread_allocations();

}  // namespace undertow::runtime
