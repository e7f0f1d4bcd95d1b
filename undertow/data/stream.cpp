// SPDX-License-Identifier: Apache-2.0
#include "undertow/data/stream.h"

#include <algorithm>
#include <utility>

#include "undertow/base/check.h"
#include "undertow/base/log.h"
#include "undertow/data/evaluate.h"

namespace undertow::data {
namespace {

class SourceStream : public Stream {
 public:
  SourceStream(const Node& node, std::int32_t leaf, std::uint64_t seed) : node_(node), leaf_(leaf), seed_(seed) {}
  void reset(std::int64_t epoch) override {
    epoch_ = epoch;
    at_ = 0;
    order_.clear();
    const std::int64_t rows = node_.source->size();
    node_.sampler->order(rows, seed_, epoch, order_);
    bool inside = true;
    for (const std::int64_t i : order_) inside &= static_cast<std::uint64_t>(i) < static_cast<std::uint64_t>(rows);
    if (inside) return;
    for (const std::int64_t i : order_)
      UNDERTOW_CHECK(i >= 0 && i < rows, IndexError, "the sampler of {} gave row {}, but there are {} rows",
                     node_.source->name(), i, rows);
  }
  std::size_t next(Item* out, std::size_t n) override {
    n = std::min(n, order_.size() - at_);
    const std::int64_t* order = order_.data() + at_;
    for (std::size_t i = 0; i < n; ++i) {
      out[i].leaf = leaf_;
      out[i].row = order[i];
      out[i].epoch = epoch_;
    }
    at_ += n;
    return n;
  }
  bool done() override { return at_ == order_.size(); }
  std::int64_t remaining() override { return static_cast<std::int64_t>(order_.size() - at_); }

 private:
  const Node& node_;
  std::int32_t leaf_;
  std::uint64_t seed_;
  std::int64_t epoch_ = 0;
  std::vector<std::int64_t> order_;
  std::size_t at_ = 0;
};

class SequentialStream : public Stream {
 public:
  SequentialStream(const Node& node, std::int32_t leaf, const Plan& plan) : node_(node), leaf_(leaf), plan_(plan) {}
  void reset(std::int64_t epoch) override {
    cursor_.reset();  // ends the old pass before the new one starts
    cursor_ = open_pass(node_, epoch);
    epoch_ = epoch;
    given_ = pulled_ = 0;
    ended_ = has_ahead_ = false;
    first_rows_.clear();
  }
  std::size_t next(Item* out, std::size_t n) override {
    for (std::size_t i = 0; i < n; ++i) {
      Row& row = out[i].own().row;
      if (has_ahead_) {
        row = std::move(ahead_);
        has_ahead_ = false;
      } else if (!pull(row)) {
        return i;
      }
      out[i].leaf = leaf_;
      out[i].row = given_++;
      out[i].epoch = epoch_;
    }
    return n;
  }
  bool done() override {
    if (!has_ahead_) has_ahead_ = pull(ahead_);
    return !has_ahead_;
  }

 private:
  bool read(Row& row) {
    if (plan_.stop && plan_.stop->load(std::memory_order_relaxed)) throw Stopped();
    row.clear();
    if (!cursor_->next(row)) return false;
    check_columns(node_, row);
    ++pulled_;
    return true;
  }
  /// The next row of this shard. Every shard gets ceil(rows / num_shards), the last ones wrapping round to the first
  /// rows.
  bool read_shard(Row& row) {
    if (node_.num_shards == 1) return read(row);
    bool mine = false;
    Row r;
    for (int k = 0; k < node_.num_shards; ++k) {
      if (!read(r)) {
        ended_ = true;
        if (k == 0) return false;
        if (!mine) row = first_rows_[static_cast<std::size_t>(node_.shard_id - k) % first_rows_.size()];
        return true;
      }
      if (static_cast<int>(first_rows_.size()) < node_.num_shards) first_rows_.push_back(r);
      if (k != node_.shard_id) continue;
      row = std::move(r);
      mine = true;
    }
    return true;
  }
  bool pull(Row& row) {
    if (ended_ || (node_.limit > 0 && given_ >= node_.limit)) return false;
    bool got = false;
    try {
      Stopwatch watch;
      got = read_shard(row);
      if (got) watch.lap(plan_.leaves[static_cast<std::size_t>(leaf_)].clock, 1);
    } catch (const Error& e) {
      ended_ = true;
      e.rethrow_with(fmt::format("at row {} of epoch {} of {}", pulled_, epoch_ + 1, node_.source->name()));
    }
    ended_ |= !got;
    UNDERTOW_CHECK(
        pulled_ > 0 || !had_rows_, DataError,
        "{} gave no rows in epoch {}, although it did in an earlier one: what it iterates over was used up and "
        "does not start again. Pass a function that makes a new iterator, or a source with random access",
        node_.source->name(), epoch_ + 1);
    had_rows_ |= pulled_ > 0;
    return got;
  }

  const Node& node_;
  std::int32_t leaf_;
  const Plan& plan_;
  std::unique_ptr<Cursor> cursor_;
  std::int64_t epoch_ = 0, given_ = 0, pulled_ = 0;
  bool ended_ = false, had_rows_ = false, has_ahead_ = false;
  Row ahead_;
  std::vector<Row> first_rows_;
};

class ShuffleStream : public Stream {
 public:
  ShuffleStream(std::unique_ptr<Stream> in, const Node& node, std::uint64_t seed)
      : in_(std::move(in)),
        size_(static_cast<std::size_t>(node.count)),
        most_bytes_(static_cast<std::size_t>(node.most_bytes)),
        seed_(seed),
        random_(seed, 0) {}
  void reset(std::int64_t epoch) override {
    in_->reset(epoch);
    random_ = PhiloxStream(seed_, static_cast<std::uint64_t>(epoch));
    live_ = 0;
    filled_ = false;
  }
  std::size_t next(Item* out, std::size_t n) override {
    fill();
    for (std::size_t i = 0; i < n; ++i) {
      if (live_ == 0) return i;
      const std::size_t k = random_.below(live_);
      std::swap(out[i], buffer_[k]);
      if (in_->next(&buffer_[k], 1) == 0 && k != --live_) std::swap(buffer_[k], buffer_[live_]);
    }
    return n;
  }
  bool done() override {
    fill();
    return live_ == 0;
  }

 private:
  void fill() {
    if (filled_) return;
    filled_ = true;
    std::size_t bytes = 0;
    const std::size_t step = most_bytes_ ? 1 : 256;
    while (live_ < size_) {
      const std::size_t want = std::min(step, size_ - live_);
      if (buffer_.size() < live_ + want) buffer_.resize(live_ + want);
      const std::size_t got = in_->next(&buffer_[live_], want);
      live_ += got;
      if (got < want) break;
      if (most_bytes_ == 0 || !buffer_[live_ - 1].payload) continue;
      for (const Tensor& t : buffer_[live_ - 1].payload->row) bytes += t.nbytes();
      if (bytes < most_bytes_ || live_ < 2) continue;
      if (!std::exchange(noted_, true))
        log_warning(
            fmt::format("shuffling without random access: {} rows fill the buffer's {} MB, less than its {} rows",
                        live_, most_bytes_ >> 20, size_));
      break;
    }
  }
  std::unique_ptr<Stream> in_;
  std::size_t size_, most_bytes_, live_ = 0;
  std::uint64_t seed_;
  PhiloxStream random_;
  bool filled_ = false, noted_ = false;
  std::vector<Item> buffer_;  // the first live_ are waiting; the others keep their payloads
};

class RepeatStream : public Stream {
 public:
  RepeatStream(std::unique_ptr<Stream> in, const Node& node) : in_(std::move(in)), node_(node) {}
  void reset(std::int64_t epoch) override {
    first_ = node_.count < 0 ? epoch : epoch * node_.count;
    pass_ = 0;
    in_->reset(first_);
  }
  std::size_t next(Item* out, std::size_t n) override {
    std::size_t got = 0;
    while (got < n && advance()) got += in_->next(out + got, n - got);
    return got;
  }
  bool done() override { return !advance(); }

 private:
  /// Goes on to the next pass where this one is over; false at the end.
  bool advance() {
    if (!in_->done()) return true;
    if (node_.count >= 0 && pass_ + 1 >= node_.count) return false;
    in_->reset(first_ + ++pass_);
    UNDERTOW_CHECK(!in_->done(), DataError, "{} (pass {} of repeat)", why_empty(*node_.inputs[0]), pass_ + 1);
    return true;
  }
  std::unique_ptr<Stream> in_;
  const Node& node_;
  std::int64_t first_ = 0, pass_ = 0;
};

class TakeStream : public Stream {
 public:
  TakeStream(std::unique_ptr<Stream> in, std::int64_t count) : in_(std::move(in)), count_(count) {}
  void reset(std::int64_t epoch) override {
    in_->reset(epoch);
    left_ = count_;
  }
  std::size_t next(Item* out, std::size_t n) override {
    n = std::min(n, static_cast<std::size_t>(left_));
    if (n == 0) return 0;
    const std::size_t got = in_->next(out, n);
    left_ -= static_cast<std::int64_t>(got);
    return got;
  }
  bool done() override { return left_ == 0 || in_->done(); }
  std::int64_t remaining() override {
    const std::int64_t r = in_->remaining();
    return r < 0 ? r : std::min(r, left_);
  }

 private:
  std::unique_ptr<Stream> in_;
  std::int64_t count_, left_ = 0;
};

class SkipStream : public Stream {
 public:
  SkipStream(std::unique_ptr<Stream> in, std::int64_t count) : in_(std::move(in)), count_(count) {}
  void reset(std::int64_t epoch) override {
    in_->reset(epoch);
    left_ = count_;
  }
  std::size_t next(Item* out, std::size_t n) override {
    drop();
    return in_->next(out, n);
  }
  bool done() override {
    drop();
    return in_->done();
  }
  std::int64_t remaining() override {
    const std::int64_t r = in_->remaining();
    return r < 0 ? r : std::max<std::int64_t>(r - left_, 0);
  }

 private:
  void drop() {
    while (left_ > 0 && in_->next(&dropped_, 1) == 1) --left_;
    left_ = 0;
  }
  std::unique_ptr<Stream> in_;
  std::int64_t count_, left_ = 0;
  Item dropped_;
};

class ZipStream : public Stream {
 public:
  ZipStream(std::vector<std::unique_ptr<Stream>> in, std::int32_t leaf) : in_(std::move(in)), leaf_(leaf) {}
  void reset(std::int64_t epoch) override {
    for (auto& s : in_) s->reset(epoch);
    epoch_ = epoch;
    number_ = 0;
  }
  std::size_t next(Item* out, std::size_t n) override {
    for (std::size_t i = 0; i < n; ++i) {
      if (done()) return i;
      auto& items = out[i].own().items;
      items.resize(in_.size());
      for (std::size_t k = 0; k < in_.size(); ++k) in_[k]->next(&items[k], 1);
      out[i].leaf = leaf_;
      out[i].row = number_++;
      out[i].epoch = epoch_;
    }
    return n;
  }
  bool done() override {
    return std::any_of(in_.begin(), in_.end(), [](auto& s) { return s->done(); });
  }

 private:
  std::vector<std::unique_ptr<Stream>> in_;
  std::int32_t leaf_;
  std::int64_t epoch_ = 0, number_ = 0;
};

class ConcatStream : public Stream {
 public:
  explicit ConcatStream(std::vector<std::unique_ptr<Stream>> in) : in_(std::move(in)) {}
  void reset(std::int64_t epoch) override {
    for (auto& s : in_) s->reset(epoch);
    at_ = 0;
  }
  std::size_t next(Item* out, std::size_t n) override {
    std::size_t got = 0;
    for (; at_ < in_.size(); ++at_) {
      got += in_[at_]->next(out + got, n - got);
      if (got == n) break;
    }
    return got;
  }
  bool done() override {
    while (at_ < in_.size() && in_[at_]->done()) ++at_;
    return at_ == in_.size();
  }

 private:
  std::vector<std::unique_ptr<Stream>> in_;
  std::size_t at_ = 0;
};

/// Makes rows while pulling, one at a time and in order: for operations that need it, and for filter.
class OrderedStream : public LookAheadStream {
 public:
  OrderedStream(std::unique_ptr<Stream> in, const Plan& plan, std::int32_t leaf, const Node* filter)
      : in_(std::move(in)), plan_(plan), leaf_(leaf), filter_(filter) {}
  void reset(std::int64_t epoch) override {
    in_->reset(epoch);
    forget();
  }
  bool done() override { return filter_ ? !look_ahead() : in_->done(); }
  std::int64_t remaining() override { return filter_ ? -1 : in_->remaining(); }

 private:
  bool make(Item& out) override {
    while (in_->next(&raw_, 1) == 1) {
      Row row = evaluate(plan_, raw_, scratch_);
      if (filter_) {
        Row in(filter_->op_inputs.size());
        for (std::size_t i = 0; i < in.size(); ++i) in[i] = row[static_cast<std::size_t>(filter_->op_inputs[i])];
        if (!filter_->predicate(in)) continue;
      }
      out.own().row = std::move(row);
      out.leaf = leaf_;
      out.row = raw_.row;
      out.epoch = raw_.epoch;
      return true;
    }
    return false;
  }
  std::unique_ptr<Stream> in_;
  const Plan& plan_;
  std::int32_t leaf_;
  const Node* filter_;
  Scratch scratch_;
  Item raw_;
};

/// The order of epoch 0 in every epoch.
class FreezeStream : public Stream {
 public:
  explicit FreezeStream(std::unique_ptr<Stream> in) : in_(std::move(in)) {}
  void reset(std::int64_t epoch) override {
    in_->reset(0);
    epoch_ = epoch;
  }
  std::size_t next(Item* out, std::size_t n) override {
    const std::size_t got = in_->next(out, n);
    for (std::size_t i = 0; i < got; ++i) out[i].epoch = epoch_;
    return got;
  }
  bool done() override { return in_->done(); }
  std::int64_t remaining() override { return in_->remaining(); }

 private:
  std::unique_ptr<Stream> in_;
  std::int64_t epoch_ = 0;
};

}  // namespace

using StreamPtr = std::unique_ptr<Stream>;

StreamPtr source_stream(const Node& node, std::int32_t leaf, std::uint64_t seed) {
  return std::make_unique<SourceStream>(node, leaf, seed);
}
StreamPtr sequential_stream(const Node& node, std::int32_t leaf, const Plan& plan) {
  return std::make_unique<SequentialStream>(node, leaf, plan);
}
StreamPtr shuffle_stream(StreamPtr in, const Node& node, std::uint64_t seed) {
  return std::make_unique<ShuffleStream>(std::move(in), node, seed);
}
StreamPtr repeat_stream(StreamPtr in, const Node& node) { return std::make_unique<RepeatStream>(std::move(in), node); }
StreamPtr take_stream(StreamPtr in, std::int64_t count) { return std::make_unique<TakeStream>(std::move(in), count); }
StreamPtr skip_stream(StreamPtr in, std::int64_t count) { return std::make_unique<SkipStream>(std::move(in), count); }
StreamPtr zip_stream(std::vector<StreamPtr> in, std::int32_t leaf) {
  return std::make_unique<ZipStream>(std::move(in), leaf);
}
StreamPtr concat_stream(std::vector<StreamPtr> in) { return std::make_unique<ConcatStream>(std::move(in)); }
StreamPtr ordered_stream(StreamPtr in, const Plan& plan, std::int32_t leaf, const Node* filter) {
  return std::make_unique<OrderedStream>(std::move(in), plan, leaf, filter);
}
StreamPtr freeze_stream(StreamPtr in) { return std::make_unique<FreezeStream>(std::move(in)); }

}  // namespace undertow::data
