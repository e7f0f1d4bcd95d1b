// SPDX-License-Identifier: Apache-2.0
// data/stage_clock.h: measures the stages of a pipeline while it runs.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "undertow/data/profile.h"

namespace undertow::data {

struct Node;
class Gate;

/// What one stage has taken. Written by all workers.
struct alignas(64) StageClock {
  const Node* node = nullptr;
  int workers = 1;       // that were asked for
  Gate* gate = nullptr;  // limits them; null: nothing does
  bool tunable = false;
  std::atomic<std::int64_t> samples{0}, ns{0};
  std::int64_t ns_seen = 0;  // by the tuner

  void add(std::int64_t more_samples, std::chrono::nanoseconds time) {
    samples.fetch_add(more_samples, std::memory_order_relaxed);
    ns.fetch_add(time.count(), std::memory_order_relaxed);
  }
};

/// Gives the time since the last lap to one stage after the other.
class Stopwatch {
 public:
  void lap(StageClock* clock, std::int64_t samples) {
    const auto now = std::chrono::steady_clock::now();
    if (clock) clock->add(samples, now - last_);
    last_ = now;
  }
  /// What has passed is nobody's.
  void restart() { last_ = std::chrono::steady_clock::now(); }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

struct Plan;
/// The figures of the plan's stages, and which of them holds up the others.
void fill_stages(const Plan& plan, Profile& profile);
/// Under autotune: gives each stage its share of the cores, by the time that it has taken since the last call.
void tune(Plan& plan);

}  // namespace undertow::data
