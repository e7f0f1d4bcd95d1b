// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <immintrin.h>
#include <omp.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include "undertow/backend/cpu/compute_lock.h"
#include "undertow/backend/cpu/parallel.h"

namespace undertow::backend::cpu {
namespace {

TEST(CpuParallel, RangesCoverAllUnitsOnce) {
  for (const int threads : {1, 2, 3})
    for (const std::int64_t units : {0, 1, 2, 5, 1000}) {
      const ScopedThreads scoped(threads);
      std::vector<int> seen(static_cast<std::size_t>(units));
      parallel_for(units, 1e9, [&](std::int64_t begin, std::int64_t end, int thread) {
        EXPECT_LT(thread, threads);
        for (std::int64_t i = begin; i < end; ++i) ++seen[static_cast<std::size_t>(i)];
      });
      for (const int n : seen) EXPECT_EQ(n, 1);
    }
}

TEST(CpuParallel, LittleWorkStaysOnTheCaller) {
  const ScopedThreads two(2);
  int calls = 0;
  parallel_for(1000, 1e3, [&](std::int64_t begin, std::int64_t end) {
    ++calls;
    EXPECT_EQ(begin, 0);
    EXPECT_EQ(end, 1000);
  });
  EXPECT_EQ(calls, 1);
}

TEST(CpuParallel, AnInnerLoopIsSerial) {
  const ScopedThreads two(2);
  parallel_for(2, 1e9, [&](std::int64_t, std::int64_t) {
    int calls = 0;
    parallel_for(100, 1e9, [&](std::int64_t, std::int64_t) { ++calls; });
    EXPECT_EQ(calls, 1);
  });
}

TEST(CpuParallel, OverridesEndWithTheirScope) {
  const int before = compute_threads();
  {
    const ScopedSingleThread one;
    EXPECT_EQ(compute_threads(), 1);
    EXPECT_EQ(omp_get_max_threads(), 1);
    std::thread([before] { EXPECT_EQ(compute_threads(), before); }).join();
  }
  EXPECT_EQ(compute_threads(), before);
}

TEST(CpuParallel, AForkedChildHasOneThread) {
  const ScopedThreads two(2);
  parallel_for(2, 1e9, [](std::int64_t, std::int64_t) {});  // a team exists
  const pid_t child = fork();
  if (child == 0) {
    int calls = 0;
    parallel_for(100, 1e9, [&](std::int64_t, std::int64_t) { ++calls; });
    _exit(compute_threads() == 1 && calls == 1 && omp_get_max_threads() == 1 ? 0 : 1);
  }
  int status = 1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

bool flushes() { return (_mm_getcsr() & 0x8040) == 0x8040; }

TEST(CpuParallel, FlushToZeroEndsWithItsScope) {
  const bool before = flushes();
  {
    const ScopedFlushToZero flush;
    EXPECT_TRUE(flushes());
  }
  EXPECT_EQ(flushes(), before);
}

TEST(CpuParallel, FlushToZeroReachesTheTeam) {
  std::thread([] {  // which keeps the setting
    const ScopedThreads two(2);
    if (compute_threads() < 2) GTEST_SKIP() << "one thread a process";
    flush_team_to_zero();
    int count = 0;
#pragma omp parallel num_threads(2) reduction(+ : count)
    count += flushes();
    EXPECT_EQ(count, 2);
  })
      .join();
  EXPECT_FALSE(flushes());
}

TEST(CpuParallel, TheComputeLockIsRecursiveAndExclusive) {
  const ScopedThreads two(2);
  if (compute_threads() < 2) GTEST_SKIP() << "one thread a process: nothing is locked";
  int inside = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&inside] {
      const ScopedThreads two_here(2);
      for (int i = 0; i < 1000; ++i) {
        const ComputeLock outer, inner;
        EXPECT_EQ(++inside, 1);
        --inside;
      }
    });
  for (auto& t : threads) t.join();
  EXPECT_TRUE(ComputeLock::may_run_library(2));
  EXPECT_FALSE(ComputeLock::may_run_library(1));
}

}  // namespace
}  // namespace undertow::backend::cpu
