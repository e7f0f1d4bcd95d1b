// SPDX-License-Identifier: Apache-2.0
// data/stream_batch.cpp: the streams that put items together to batches.
#include <algorithm>
#include <deque>
#include <utility>

#include "undertow/base/check.h"
#include "undertow/data/evaluate.h"
#include "undertow/data/stream.h"

namespace undertow::data {
namespace {

class BatchStream : public LookAheadStream {
 public:
  BatchStream(std::unique_ptr<Stream> in, const Node& node, std::int32_t leaf)
      : in_(std::move(in)), node_(node), leaf_(leaf) {}
  void reset(std::int64_t epoch) override {
    in_->reset(epoch);
    epoch_ = epoch;
    number_ = 0;
    forget();
  }
  bool done() override {
    if (has_ahead()) return false;
    const std::int64_t r = node_.batch_size ? -1 : in_->remaining();
    if (r >= 0) return node_.drop_remainder ? r < node_.count : r == 0;
    return node_.drop_remainder ? !look_ahead() : in_->done();
  }
  std::int64_t remaining() override {
    const std::int64_t r = in_->remaining();
    if (r < 0 || has_ahead() || node_.batch_size) return -1;
    return node_.drop_remainder ? r / node_.count : (r + node_.count - 1) / node_.count;
  }

 private:
  bool make(Item& out) override {
    auto& items = out.own().items;
    const auto size = static_cast<std::size_t>(batch_size_of(node_, number_, epoch_));
    // A batch size beyond what there is must not cost memory, so grow as rows come.
    std::size_t got = 0;
    while (got < size) {
      const std::size_t want = std::min<std::size_t>(size - got, 4096);
      if (items.size() < got + want) items.resize(got + want);
      const std::size_t n = in_->next(&items[got], want);
      got += n;
      if (n < want) break;
    }
    UNDERTOW_CHECK(
        !node_.drop_remainder || got == 0 || got == size || number_ > 0, DataError,
        "0 batches: batch size {} with drop_remainder is more than the {} rows. Use a smaller batch_size, or "
        "drop_remainder=False",
        size, got);
    if (got == 0 || (node_.drop_remainder && got < size)) return false;
    items.resize(got);
    out.leaf = leaf_;
    out.row = number_++;
    out.epoch = epoch_;
    return true;
  }
  std::unique_ptr<Stream> in_;
  const Node& node_;
  std::int32_t leaf_;
  std::int64_t epoch_ = 0, number_ = 0;
};

/// Collects the rows of each bucket; `leaf` is that of the first bucket's batches, the others' follow.
class BucketStream : public LookAheadStream {
 public:
  BucketStream(std::unique_ptr<Stream> in, const Node& node, std::int32_t leaf)
      : in_(std::move(in)), node_(node), leaf_(leaf), waiting_(node.buckets.size()) {}
  void reset(std::int64_t epoch) override {
    in_->reset(epoch);
    epoch_ = epoch;
    number_ = 0;
    forget();
    next_left_ = 0;
    for (auto& w : waiting_) w.clear();
  }
  bool done() override { return !look_ahead(); }

 private:
  bool make(Item& out) override {
    // What comes in holds its row (an ordered stream makes it), which tells the bucket.
    Item item;
    while (in_->next(&item, 1) == 1) {
      const std::size_t b = bucket_of(node_, item.payload->row);
      waiting_[b].push_back(std::move(item));
      item = Item();
      if (static_cast<std::int64_t>(waiting_[b].size()) == node_.buckets[b]->count) return give(b, out);
    }
    for (; next_left_ < waiting_.size() && !node_.drop_remainder; ++next_left_)
      if (!waiting_[next_left_].empty()) return give(next_left_, out);
    return false;
  }
  bool give(std::size_t bucket, Item& out) {
    out.own().items = std::exchange(waiting_[bucket], {});
    out.leaf = leaf_ + static_cast<std::int32_t>(bucket);
    out.row = number_++;
    out.epoch = epoch_;
    return true;
  }

  std::unique_ptr<Stream> in_;
  const Node& node_;
  std::int32_t leaf_;
  std::int64_t epoch_ = 0, number_ = 0;
  std::vector<std::vector<Item>> waiting_;
  std::size_t next_left_ = 0;
};

}  // namespace

std::unique_ptr<Stream> batch_stream(std::unique_ptr<Stream> in, const Node& node, std::int32_t leaf) {
  return std::make_unique<BatchStream>(std::move(in), node, leaf);
}
std::unique_ptr<Stream> bucket_stream(std::unique_ptr<Stream> in, const Node& node, std::int32_t leaf) {
  return std::make_unique<BucketStream>(std::move(in), node, leaf);
}

}  // namespace undertow::data
