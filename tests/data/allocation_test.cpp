// SPDX-License-Identifier: Apache-2.0
// Calls of the system allocator must not grow with the number of batches.
#include <malloc.h>

#include <cstdlib>
#include <new>

#include "tests/data/common.h"
#include "tests/data/sinks.h"

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

namespace {
std::atomic<long> allocations{0};
}

extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
void* malloc(std::size_t n) {
  ++allocations;
  return __libc_malloc(n);
}
void* aligned_alloc(std::size_t a, std::size_t n) {
  ++allocations;
  return __libc_memalign(a, n);
}
}

namespace undertow::data {
namespace {

/// Allocations during `batches` further batches, after a warm-up.
long count(const Dataset& d, int batches) {
  Pipeline p(d, {.num_epochs = -1});
  RingSink sink(256, p.specs());
  p.start(sink);
  for (int i = 0; i < 5000; ++i) sink.take(), sink.release();
  long least = 1L << 40;  // of three times: runs may still become longer in the first
  for (int k = 0; k < 3; ++k) {
    const long before = allocations;
    for (int i = 0; i < batches; ++i) sink.take(), sink.release();
    least = std::min(least, allocations - before);
  }
  p.stop();
  return least;
}

TEST(Allocations, NoneForArrays) {
  std::vector<float> x(1600), y(1600);
  const auto d = NumpySlicesDataset({Tensor(x), Tensor(y)}, {"data", "label"});
  EXPECT_LE(count(d.batch(16), 20000), 5);
  EXPECT_LE(count(d.batch(48).repeat(3), 20000), 5);
  EXPECT_LE(count(d.shuffle(100).batch(16).shuffle(10), 20000), 5);
}

TEST(Allocations, NoneForFunctions) {
  std::vector<float> x(1600), y(1600);
  const auto row = [&](std::int64_t i) {
    return Row{Tensor({x[static_cast<std::size_t>(i)]}), Tensor({y[static_cast<std::size_t>(i)]})};
  };
  const auto d = GeneratorDataset(row, 1600, {"data", "label"});
  EXPECT_LE(count(d.batch(16), 20000), 20);
  const auto twice = [](const Tensor& t) { return Tensor({t.data_as<float>()[0] * 2}); };
  EXPECT_LE(count(d.map(twice, {.num_parallel_workers = 2}).batch(16), 20000), 60);
}

}  // namespace
}  // namespace undertow::data

#endif
