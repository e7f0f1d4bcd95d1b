// SPDX-License-Identifier: Apache-2.0
#include "undertow/runtime/channel.h"

#include <gtest/gtest.h>

#include <thread>

namespace undertow::runtime {
namespace {

std::vector<ColumnType> types(std::int64_t n) { return {{"x", DType::kInt32, Shape{n}}}; }

void write(Channel& c, std::int64_t sequence, std::int64_t n) {
  ChannelSlot* s = c.acquire(sequence, types(n));
  for (std::int64_t i = 0; i < n; ++i) reinterpret_cast<std::int32_t*>(s->columns[0])[i] = static_cast<int>(sequence);
  c.publish(s);
}

TEST(Channel, BatchesComeInSequenceOrderFromTwoWriters) {
  Channel c(types(4));
  constexpr std::int64_t kBatches = 20000;
  std::atomic<std::int64_t> next{0};
  std::vector<std::thread> writers;
  for (int w = 0; w < 2; ++w)
    writers.emplace_back([&] {
      for (std::int64_t s = next++; s < kBatches; s = next++) write(c, s, s % 10 == 9 ? 3 : 4);
    });
  for (std::int64_t s = 0; s < kBatches; ++s) {
    ChannelSlot* slot = c.peek(nullptr);
    ASSERT_NE(slot, nullptr);
    EXPECT_EQ(slot->sequence, s);
    EXPECT_EQ(reinterpret_cast<std::int32_t*>(slot->columns[0])[2], s);
    EXPECT_EQ(c.shape_set(slot->shapes)[0].shape, (Shape{s % 10 == 9 ? 3 : 4}));
    c.release(slot);
  }
  for (auto& w : writers) w.join();
}

TEST(Channel, EndAndFailureComeAfterTheBatchesBeforeThem) {
  Channel c(types(4));
  write(c, 0, 4);
  c.fail(1, std::make_exception_ptr(std::runtime_error("row 7")));
  ChannelSlot* s = c.peek(nullptr);
  ASSERT_NE(s, nullptr);
  EXPECT_FALSE(c.finished());
  EXPECT_EQ(c.error(), nullptr);
  c.release(s);
  EXPECT_EQ(c.peek(nullptr), nullptr);
  EXPECT_TRUE(c.finished());
  EXPECT_THROW(std::rethrow_exception(c.error()), std::runtime_error);
}

TEST(Channel, CloseWakesABlockedWriterAndReader) {
  Channel c(types(4));
  std::thread writer([&] { EXPECT_THROW(for (std::int64_t s = 0;; ++s) write(c, s, 4), Channel::Stopped); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  c.close();
  writer.join();
}

TEST(Channel, LargerBatchesGetNewMemory) {
  Channel c(types(4));
  const std::uint64_t before = c.memory_generation();
  write(c, 0, 100);
  EXPECT_GT(c.memory_generation(), before);
  ChannelSlot* s = c.peek(nullptr);
  EXPECT_EQ(reinterpret_cast<std::int32_t*>(s->columns[0])[99], 0);
}

TEST(Channel, StopEndsAWait) {
  Channel c(types(4));
  std::atomic<bool> stop{false};
  std::thread t([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    stop = true;
  });
  EXPECT_EQ(c.peek(&stop), nullptr);
  t.join();
}

}  // namespace
}  // namespace undertow::runtime
