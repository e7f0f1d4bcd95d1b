// SPDX-License-Identifier: Apache-2.0
// backend/cpu/compute_lock.h: one thread at a time runs library primitives and teams.
//
// oneDNN's primitives are created and executed at one and the same thread count, outside of any parallel region, by one
// thread at a time: backward-weights made for two threads and run where OpenMP grants one waits forever at its barrier.
#pragma once

#include <mutex>

namespace undertow::backend::cpu {

/// Held around the creation and execution of primitives, and by a launch for its whole length. Recursive per thread: an
/// inner one costs a few instructions. A thread with one compute thread runs alone and takes no lock.
class ComputeLock {
 public:
  ComputeLock();
  ~ComputeLock();
  ComputeLock(const ComputeLock&) = delete;

  /// Whether a primitive created for `threads` may be executed here.
  static bool may_run_library(int threads);

 private:
  bool locks_;
};

}  // namespace undertow::backend::cpu
