// SPDX-License-Identifier: Apache-2.0
// runtime/compute_thread.h: the one thread (with its OpenMP team) that runs commands.
#pragma once

#include <chrono>
#include <functional>

namespace undertow::runtime {

/// Runs `job` on the compute thread and waits for it. While it runs, `tick` is called on this thread every `period`,
/// and what steps print is written: all of it, before this returns. An exception of `job` is rethrown here. One job at
/// a time; a second caller waits its turn. After a fork the child gets a compute thread of its own.
void run_on_compute_thread(const std::function<void()>& job, const std::function<void()>& tick,
                           std::chrono::milliseconds period);

}  // namespace undertow::runtime
