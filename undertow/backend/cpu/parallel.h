// SPDX-License-Identifier: Apache-2.0
// backend/cpu/parallel.h: the compute threads. One OpenMP team, asked for in one place.
//
// The number of compute threads is min(cores of the affinity mask, cgroup quota, OMP_NUM_THREADS). A thread that must
// not open a team (pipeline threads, forked children) sees 1. Work is split statically into contiguous ranges, so that
// which thread computes what follows from the shape and the thread count alone.
#pragma once

#include <cstdint>
#include <type_traits>

namespace undertow::backend::cpu {

/// Below this much work (estimated, one core) opening a team costs more than it gains.
inline constexpr double kSerialBelowNs = 120e3;

/// Threads that a kernel called from this thread may use; at least 1. A forked child has one for good.
int compute_threads();

/// Overrides the number of compute threads for the calling thread, OpenMP's own setting included.
class ScopedThreads {
 public:
  explicit ScopedThreads(int threads);
  ~ScopedThreads();
  ScopedThreads(const ScopedThreads&) = delete;

 private:
  int old_override_, old_omp_;
};

/// What a pipeline thread holds around its calls of kernels.
class ScopedSingleThread : public ScopedThreads {
 public:
  ScopedSingleThread() : ScopedThreads(1) {}
};

/// Flushes denormals to zero on the calling thread while it lives.
class ScopedFlushToZero {
 public:
  ScopedFlushToZero();
  ~ScopedFlushToZero();
  ScopedFlushToZero(const ScopedFlushToZero&) = delete;

 private:
  unsigned old_;
};
/// The same for good, and for the calling thread's team as well: teams opened by `parallel_for` inherit the caller's
/// setting in any case; this also reaches the regions that a library opens.
void flush_team_to_zero();

namespace detail {
/// Calls fn(context, t) for t in [0, threads) on the team.
void run_team(int threads, void (*fn)(void* context, int thread), void* context);
/// 1 or compute_threads().
int team_for(std::int64_t units, double cost_ns);
}  // namespace detail

/// Calls f(begin, end) or f(begin, end, thread) on contiguous ranges that cover [0, units) in order; `cost_ns` is the
/// estimate for all units on one core. f must not throw. Nothing is called when units is 0.
template <typename F>
void parallel_for(std::int64_t units, double cost_ns, F&& f) {
  if (units <= 0) return;
  const auto call = [&f](std::int64_t begin, std::int64_t end, int thread) {
    if constexpr (std::is_invocable_v<F&, std::int64_t, std::int64_t, int>) f(begin, end, thread);
    else f(begin, end);
  };
  const int threads = detail::team_for(units, cost_ns);
  if (threads <= 1) {
    call(0, units, 0);
    return;
  }
  struct Context {
    decltype(call)& run;
    std::int64_t units;
    int threads;
  } context{call, units, threads};
  detail::run_team(
      threads,
      [](void* p, int t) {
        const auto& c = *static_cast<Context*>(p);
        const std::int64_t begin = c.units * t / c.threads, end = c.units * (t + 1) / c.threads;
        if (begin < end) c.run(begin, end, t);
      },
      &context);
}

}  // namespace undertow::backend::cpu
