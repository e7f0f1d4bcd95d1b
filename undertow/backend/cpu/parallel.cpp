// SPDX-License-Identifier: Apache-2.0
#include "undertow/backend/cpu/parallel.h"

#include <immintrin.h>
#include <omp.h>
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <string>

#include "undertow/backend/cpu/compute_lock.h"

namespace undertow::backend::cpu {
namespace {

constexpr unsigned kFlush = 0x8040;  // FTZ | DAZ

/// Cores' worth of time the control group grants; 0: no limit known.
int cgroup_cores() {
  const auto cores = [](double quota, double period) {
    return quota > 0 && period > 0 ? std::max(1, static_cast<int>(std::ceil(quota / period))) : 0;
  };
  std::string quota;
  double period = 0;
  if (std::ifstream v2("/sys/fs/cgroup/cpu.max"); v2 >> quota >> period)
    return quota == "max" ? 0 : cores(std::strtod(quota.c_str(), nullptr), period);
  double limit = 0;
  if (std::ifstream q("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"); !(q >> limit)) return 0;
  std::ifstream p("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
  return p >> period ? cores(limit, period) : 0;
}

int detect_threads() {
  int n = 1;
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) n = std::max(1, CPU_COUNT(&set));
  if (const int cores = cgroup_cores()) n = std::min(n, cores);
  if (const char* env = std::getenv("OMP_NUM_THREADS"))
    if (const int asked = std::atoi(env); asked > 0) n = std::min(n, asked);
  return n;
}

std::atomic<int>& process_threads() {
  static std::atomic<int> n = detect_threads();
  return n;
}

// OpenMP's worker threads do not exist in a forked child, and a team opened there would wait for them forever.
[[maybe_unused]] const int fork_handler = pthread_atfork(nullptr, nullptr, [] {
  process_threads() = 1;
  omp_set_num_threads(1);
});

thread_local int thread_override = 0;

std::mutex& lock_mutex() {
  static auto* m = new std::mutex;  // never destroyed: a detached thread may still run kernels at exit
  return *m;
}
thread_local int lock_depth = 0;

}  // namespace

int compute_threads() {
  const int n = process_threads().load(std::memory_order_relaxed);
  // A child that was forked inside a ScopedThreads keeps its one thread.
  return thread_override > 0 && n > 1 ? thread_override : (n > 1 ? n : 1);
}

ScopedThreads::ScopedThreads(int threads) : old_override_(thread_override), old_omp_(omp_get_max_threads()) {
  thread_override = std::max(1, threads);
  omp_set_num_threads(compute_threads());
}

ScopedThreads::~ScopedThreads() {
  thread_override = old_override_;
  omp_set_num_threads(process_threads() > 1 ? old_omp_ : 1);
}

ScopedFlushToZero::ScopedFlushToZero() : old_(_mm_getcsr()) { _mm_setcsr(old_ | kFlush); }

ScopedFlushToZero::~ScopedFlushToZero() { _mm_setcsr((_mm_getcsr() & ~kFlush) | (old_ & kFlush)); }

void flush_team_to_zero() {
  _mm_setcsr(_mm_getcsr() | kFlush);
  if (compute_threads() > 1) detail::run_team(compute_threads(), [](void*, int) {}, nullptr);
}

namespace detail {

int team_for(std::int64_t units, double cost_ns) {
  if (units < 2 || cost_ns < kSerialBelowNs) return 1;
  const int n = compute_threads();
  return n > 1 && !omp_in_parallel() ? n : 1;
}

void run_team(int threads, void (*fn)(void*, int), void* context) {
  const unsigned csr = _mm_getcsr() & kFlush;
#pragma omp parallel num_threads(threads)
  {
    if (const unsigned mine = _mm_getcsr(); (mine & kFlush) != csr) _mm_setcsr((mine & ~kFlush) | csr);
    for (int t = omp_get_thread_num(); t < threads; t += omp_get_num_threads()) fn(context, t);
  }
}

}  // namespace detail

ComputeLock::ComputeLock() {
  const int threads = compute_threads();
  locks_ = threads > 1;
  if (locks_ && lock_depth++ == 0) {
    lock_mutex().lock();
    omp_set_num_threads(threads);
  }
}

ComputeLock::~ComputeLock() {
  if (locks_ && --lock_depth == 0) lock_mutex().unlock();
}

bool ComputeLock::may_run_library(int threads) { return threads == compute_threads() && !omp_in_parallel(); }

}  // namespace undertow::backend::cpu
