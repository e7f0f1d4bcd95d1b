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

/// Runs `job` here, while no other job runs. For commands that are over before another thread would have woken up; such
/// a job opens no team, prints nothing, and looks after signals itself where it waits.
void run_in_its_place(const std::function<void()>& job);

}  // namespace undertow::runtime
