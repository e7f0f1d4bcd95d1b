// SPDX-License-Identifier: Apache-2.0
// data/stream.h: a dataset's tree compiled into streams of items, which say what is to be made, in which order.
//
// An item is a small expression: a row number of a source, a row already pulled, or a batch of items. Streams are
// pulled by one thread at a time; the items are evaluated later by any thread (evaluate.h).
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "undertow/data/node.h"
#include "undertow/data/stage_clock.h"

namespace undertow::data {

struct Payload;
/// Streams write items in place and reuse the payload that an item already has, so that a steady state allocates
/// nothing.
struct Item {
  std::int32_t leaf = -1;  // index into Plan::leaves
  std::int64_t row = 0;    // row number, or number of the batch in its epoch
  std::int64_t epoch = 0;
  std::unique_ptr<Payload> payload;

  Payload& own();
};
struct Payload {
  Row row;                  // leaf kinds kValue
  std::vector<Item> items;  // kBatch, kZip
};
inline Payload& Item::own() {
  if (!payload) payload = std::make_unique<Payload>();
  return *payload;
}

/// Lets at most `limit` threads through; none waits where the pool is no larger.
class Gate {
 public:
  explicit Gate(int limit) : limit_(limit), free_(limit) {}
  int limit() {
    const std::lock_guard l(mutex_);
    return limit_;
  }
  void set_limit(int limit) {
    {
      const std::lock_guard l(mutex_);
      free_ += limit - std::exchange(limit_, limit);
    }
    changed_.notify_all();
  }
  void lock() {
    std::unique_lock l(mutex_);
    changed_.wait(l, [&] { return free_ > 0; });
    --free_;
  }
  void unlock() {
    {
      const std::lock_guard l(mutex_);
      ++free_;
    }
    changed_.notify_one();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int limit_, free_;
};

/// A map or a projection to be applied to an item.
struct Step {
  const Node* node;
  std::uint32_t op;      // number of the node
  Gate* gate = nullptr;  // null: no limit
  StageClock* clock = nullptr;
};
/// Where items of one kind come from, and what is then done to each of them.
struct Leaf {
  enum class Kind { kSource, kValue, kBatch, kZip };
  Kind kind;
  const Node* node;
  std::uint32_t op = 0;
  Gate* gate = nullptr;  // kSource: limits fetch
  StageClock* clock = nullptr;
  std::vector<int> select;  // kSource: columns to keep, in order; empty: all
  bool bulk = false;        // kSource: whole batches are gathered; every row has the shapes that are announced
  std::vector<Step> steps;
};

class Stream {
 public:
  virtual ~Stream() = default;
  /// Starts an epoch.
  virtual void reset(std::int64_t epoch) = 0;
  /// Writes up to n >= 1 items; fewer only at the end of the epoch.
  virtual std::size_t next(Item* out, std::size_t n) = 0;
  /// No more items in this epoch. May pull one to find out, which next() then gives.
  virtual bool done() = 0;
  /// Items left in this epoch; -1 where not known.
  virtual std::int64_t remaining() { return -1; }
};

/// A stream that makes its items one at a time, and may make one ahead to find out whether there is another.
class LookAheadStream : public Stream {
 public:
  std::size_t next(Item* out, std::size_t n) final {
    for (std::size_t i = 0; i < n; ++i) {
      if (std::exchange(has_ahead_, false)) std::swap(out[i], ahead_);
      else if (!make(out[i])) return i;
    }
    return n;
  }

 protected:
  /// Writes the next item; false at the end of the epoch.
  virtual bool make(Item& out) = 0;
  /// Whether there is a next item, which is made now unless it has been.
  bool look_ahead() {
    if (!has_ahead_) has_ahead_ = make(ahead_);
    return has_ahead_;
  }
  bool has_ahead() const { return has_ahead_; }
  void forget() { has_ahead_ = false; }  ///< for reset()

 private:
  bool has_ahead_ = false;
  Item ahead_;
};

struct Plan {
  std::vector<Leaf> leaves;
  std::vector<std::unique_ptr<Gate>> gates;
  std::vector<std::unique_ptr<StageClock>> clocks;  // in the order of the data
  std::unique_ptr<Stream> stream;
  std::vector<std::pair<Stage*, int>> stages;  // each once, with the threads that call it
  int workers = 1;
  int nice = 19;
  bool autotune = false;
  bool reads_ahead = false;  // pulling items makes rows, so that few are pulled before there is room
  bool one_by_one = false;   // and none: others wait for what was pulled
  bool fuse = true;          // see lazy.h
  std::uint64_t seed = 0;
  const std::atomic<bool>* stop = nullptr;  // checked between rows; Stopped is thrown
};

// The streams; `leaf` is the number that their items carry, `in` what they pull from.
std::unique_ptr<Stream> source_stream(const Node& node, std::int32_t leaf, std::uint64_t seed);
std::unique_ptr<Stream> sequential_stream(const Node& node, std::int32_t leaf, const Plan& plan);
std::unique_ptr<Stream> shuffle_stream(std::unique_ptr<Stream> in, const Node& node, std::uint64_t seed);
std::unique_ptr<Stream> repeat_stream(std::unique_ptr<Stream> in, const Node& node);
std::unique_ptr<Stream> take_stream(std::unique_ptr<Stream> in, std::int64_t count);
std::unique_ptr<Stream> skip_stream(std::unique_ptr<Stream> in, std::int64_t count);
std::unique_ptr<Stream> batch_stream(std::unique_ptr<Stream> in, const Node& node, std::int32_t leaf);
/// Items of `in` hold their rows; batches of bucket k carry the leaf `leaf` + k.
std::unique_ptr<Stream> bucket_stream(std::unique_ptr<Stream> in, const Node& node, std::int32_t leaf);
std::unique_ptr<Stream> zip_stream(std::vector<std::unique_ptr<Stream>> in, std::int32_t leaf);
std::unique_ptr<Stream> concat_stream(std::vector<std::unique_ptr<Stream>> in);
/// Makes the items while pulling, one at a time and in order; with a filter node, drops those it refuses.
std::unique_ptr<Stream> ordered_stream(std::unique_ptr<Stream> in, const Plan& plan, std::int32_t leaf,
                                       const Node* filter);
/// Makes the items as ordered_stream does, and tells the callbacks of the map node.
std::unique_ptr<Stream> observed_stream(std::unique_ptr<Stream> in, const Plan& plan, std::int32_t leaf,
                                        const Node& map);
std::unique_ptr<Stream> held_stream(std::unique_ptr<Stream> in, const Plan& plan, SyncPoint& point);
/// The order of epoch 0 in every epoch.
std::unique_ptr<Stream> freeze_stream(std::unique_ptr<Stream> in);

/// Compiles the tree. The plan holds pointers into it.
std::unique_ptr<Plan> make_plan(const Node& node, std::uint64_t seed);

/// Shuffles in place, as a function of (seed, epoch).
void permute(std::vector<std::int64_t>& values, std::uint64_t seed, std::int64_t epoch);

}  // namespace undertow::data
