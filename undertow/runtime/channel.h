// SPDX-License-Identifier: Apache-2.0
// runtime/channel.h: the data channel between the pipeline's workers and the compute thread: a ring of slots.
//
// Workers write rows straight into slot memory; the compute thread pops a slot and runs on it without a copy. Batch s
// uses slot s mod K, so batches come out in sequence order whatever order they are finished in. Every slot is tagged
// with its shapes, so that full and short batches travel in one command. The hot path is two atomics per batch; a mutex
// is taken only to sleep and to wake a sleeper.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "undertow/tensor/tensor.h"

namespace undertow::runtime {

struct ColumnType {
  std::string name;
  DType dtype;
  Shape shape;
  friend bool operator==(const ColumnType&, const ColumnType&) = default;
};

struct alignas(64) ChannelSlot {
  int index = 0;
  std::vector<std::byte*> columns;
  int shapes = 0;  // Channel::shape_set
  bool last_of_epoch = false;
  std::int64_t sequence = -1;               // batch it holds
  std::atomic<std::int64_t> free_for{0};    // the batch that may be written next
  std::atomic<std::int64_t> ready_for{-1};  // the batch that is complete
  std::uint64_t memory_generation = 0;      // of the channel when `columns` was made
};

class Channel {
 public:
  /// `columns`: types of a full batch; slots are sized for it. The number of slots follows from the batch's bytes: at
  /// least 3, at most 128, about 8 MiB together for small batches.
  explicit Channel(std::vector<ColumnType> columns);

  // ---- workers
  /// Memory for batch `sequence` of the given types; blocks while its slot is taken. Several threads may ask, each for
  /// batches of its own. Throws Stopped after close().
  ChannelSlot* acquire(std::int64_t sequence, std::span<const ColumnType> types);
  void publish(ChannelSlot* slot);
  /// Batch `sequence` cannot be made: the reader gets `error` when it comes to it.
  void fail(std::int64_t sequence, std::exception_ptr error);
  /// No batch at or after `sequence`.
  void end(std::int64_t sequence);

  // ---- the reader (one thread at a time)
  /// The next batch if it is there already, else null.
  ChannelSlot* try_peek() {
    const std::int64_t sequence = next_read_.load(std::memory_order_relaxed);
    ChannelSlot& s = slots_[static_cast<std::size_t>(sequence % num_slots())];
    return ready(s, sequence) ? &s : nullptr;
  }
  /// The next batch, without taking it. Null: end of data, failure, close, `stop` was set or `timeout` passed.
  ChannelSlot* peek(const std::atomic<bool>* stop, std::chrono::milliseconds timeout = std::chrono::hours(24 * 365));
  /// Gives back the batch that peek returned; the next peek looks at the one after it.
  void release(ChannelSlot* slot);
  /// Nothing will come any more (end or failure reached). `error`, if any, is what ended it.
  bool finished() const;
  /// finished, or closed.
  bool over() const { return closed_.load(std::memory_order_acquire) || finished(); }
  std::exception_ptr error() const;

  /// Wakes everybody; later acquire() throws Stopped and peek() gives null.
  void close();

  /// Rises whenever a slot gets new memory; unlike that of any other channel.
  std::uint64_t memory_generation() const { return generation_.load(std::memory_order_acquire); }
  /// Column pointers of all slots, one slot after the other, and the generation they are of.
  std::uint64_t snapshot(std::vector<std::byte*>& columns) const;

  int num_slots() const { return static_cast<int>(slots_.size()); }
  ChannelSlot& slot(int i) { return slots_[static_cast<std::size_t>(i)]; }
  /// Types by ChannelSlot::shapes; entries never change. Entry 0 is the full batch.
  const std::vector<ColumnType>& shape_set(int i) const;

  struct Stopped {};

 private:
  bool ready(const ChannelSlot& s, std::int64_t sequence) const {
    return s.ready_for.load(std::memory_order_acquire) == sequence;
  }
  int find_shapes(std::span<const ColumnType> types);
  void allocate(ChannelSlot& slot, std::span<const ColumnType> types);
  void wake(std::atomic<int>& waiting, std::condition_variable& cv);

  std::atomic<std::uint64_t> generation_{0};
  std::deque<ChannelSlot> slots_;
  std::vector<Ref<Storage>> memory_;                // by slot
  std::vector<std::vector<std::size_t>> capacity_;  // by slot, bytes per column
  mutable std::mutex mutex_;
  std::condition_variable writer_cv_, reader_cv_;
  std::deque<std::vector<ColumnType>> shape_sets_;
  std::atomic<int> num_shape_sets_{0};
  std::atomic<std::int64_t> next_read_{0};
  std::atomic<std::int64_t> stop_at_{INT64_MAX};  // first batch that will not come
  std::atomic<bool> closed_{false};
  std::atomic<int> reader_waiting_{0}, writers_waiting_{0};
  std::int64_t error_at_ = INT64_MAX;
  std::exception_ptr error_;
};

}  // namespace undertow::runtime
