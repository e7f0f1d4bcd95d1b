// SPDX-License-Identifier: Apache-2.0
// data/iterator.cpp: iterators, a Pipeline into memory of their own.
#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>

#include "undertow/base/check.h"
#include "undertow/data/pipeline.h"
#include "undertow/data/strings.h"

namespace undertow::data {
namespace {

constexpr std::size_t kPrefetchBytes = std::size_t{256} << 20;
constexpr std::chrono::milliseconds kPollEvery{50};
constexpr std::size_t kFromPool = 4096;  // up to here the allocator's own pool recycles

/// Large blocks that come back when the last Tensor on them is gone. Outlives the iterator as long as one is held.
class Blocks : public std::enable_shared_from_this<Blocks> {
 public:
  ~Blocks() {
    for (Block* b : free_) destroy(b);
  }
  Tensor tensor(DType dtype, const Shape& shape) {
    const std::size_t bytes = static_cast<std::size_t>(shape.numel()) * size_of(dtype);
    if (bytes <= kFromPool) return Tensor(dtype, shape);
    Block* b = take(size_class(bytes));
    b->owner = shared_from_this();
    auto impl = make_ref<TensorImpl>();
    impl->dtype = dtype;
    impl->shape = shape;
    impl->storage = make_ref<Storage>(b->data, b->bytes, &Blocks::release, b);
    return Tensor(std::move(impl));
  }

 private:
  struct Block {
    void* data;
    std::size_t bytes;
    std::shared_ptr<Blocks> owner;  // while in use
  };
  /// Sizes that differ a little share their blocks: a quarter more than is needed at most.
  static std::size_t size_class(std::size_t bytes) {
    const std::size_t step = std::max<std::size_t>(std::bit_floor(bytes) / 4, kFromPool);
    return (bytes + step - 1) / step * step;
  }
  Block* take(std::size_t bytes) {
    {
      const std::lock_guard lock(mutex_);
      for (std::size_t i = free_.size(); i-- > 0;)
        if (free_[i]->bytes == bytes) {
          Block* b = free_[i];
          free_.erase(free_.begin() + static_cast<std::ptrdiff_t>(i));
          return b;
        }
      if (free_.size() >= kMostFree) {  // sizes vary: the oldest makes room
        destroy(free_.front());
        free_.erase(free_.begin());
      }
    }
    return new Block{allocate(bytes), bytes, nullptr};
  }
  static void release(void* context) {
    auto* b = static_cast<Block*>(context);
    const auto owner = std::move(b->owner);
    const std::lock_guard lock(owner->mutex_);
    owner->free_.push_back(b);
  }
  static void destroy(Block* b) {
    deallocate(b->data, b->bytes);
    delete b;
  }
  static constexpr std::size_t kMostFree = 128;
  std::mutex mutex_;
  std::vector<Block*> free_;
};

class HeapSink : public BatchSink {
 public:
  explicit HeapSink(std::size_t places) : places_(places) {}

  std::size_t acquire(std::int64_t sequence, std::span<const ColumnSpec> specs, std::span<BatchTarget> out) override {
    std::unique_lock lock(mutex_);
    space_.wait(lock, [&] { return cancelled_ || sequence < taken_ + size(); });
    if (cancelled_) throw Stopped();
    const std::size_t n = std::min(out.size(), static_cast<std::size_t>(taken_ + size() - sequence));
    lock.unlock();  // nobody else touches these places before they are published
    for (std::size_t i = 0; i < n; ++i) out[i] = prepare(place(sequence + static_cast<std::int64_t>(i)), specs);
    return n;
  }
  BatchTarget resize(std::int64_t sequence, void*, std::span<const ColumnSpec> specs) override {
    return prepare(place(sequence), specs);
  }
  void publish(std::int64_t sequence, std::span<void* const> tokens, bool last_of_epoch) override {
    {
      const std::lock_guard lock(mutex_);
      for (std::size_t i = 0; i < tokens.size(); ++i) {
        Place& p = place(sequence + static_cast<std::int64_t>(i));
        p.ready = true;
        p.last = last_of_epoch && i + 1 == tokens.size();
      }
    }
    data_.notify_one();
  }
  void fail(std::int64_t sequence, std::exception_ptr error) override {
    {
      const std::lock_guard lock(mutex_);
      if (!error_ || sequence < error_at_) {
        error_ = error;
        error_at_ = sequence;
      }
    }
    data_.notify_one();
  }
  void end(std::int64_t total) override {
    {
      const std::lock_guard lock(mutex_);
      total_ = total;
    }
    data_.notify_one();
  }
  std::int64_t taken() override {
    const std::lock_guard lock(mutex_);
    return taken_;
  }
  std::int64_t places() override { return size(); }
  void cancel() override {
    {
      const std::lock_guard lock(mutex_);
      cancelled_ = true;
    }
    space_.notify_all();
    data_.notify_all();
  }

  /// Nothing more will come: an error was reached.
  bool failed() {
    const std::lock_guard lock(mutex_);
    return error_ && error_at_ == taken_;
  }
  /// What was taken last ended an epoch.
  bool at_epoch_end() {
    const std::lock_guard lock(mutex_);
    return epoch_end_;
  }
  /// There is nothing after what was taken.
  void end_here() { end(taken_); }
  /// For the consumer's thread.
  double wait_seconds() const { return std::chrono::duration<double>(waited_).count(); }

  /// The next row, or nothing at an epoch's end or when cancelled.
  std::optional<Row> next(const std::function<void()>& poll) {
    std::unique_lock lock(mutex_);
    if (epoch_end_) {
      epoch_end_ = false;
      return std::nullopt;
    }
    Place& p = place(taken_);
    const auto failed = [&] { return error_ && error_at_ == taken_; };
    const auto over = [&] { return p.ready || cancelled_ || failed() || taken_ == total_; };
    const auto start = over() ? std::chrono::steady_clock::time_point() : std::chrono::steady_clock::now();
    if (!poll) data_.wait(lock, over);
    while (!data_.wait_for(lock, kPollEvery, over)) {
      lock.unlock();
      poll();
      lock.lock();
    }
    if (start != std::chrono::steady_clock::time_point()) waited_ += std::chrono::steady_clock::now() - start;
    if (failed()) std::rethrow_exception(error_);
    UNDERTOW_CHECK(p.ready || taken_ != total_, RuntimeError,
                   "all epochs of this iterator are over: create a new one, or give a larger num_epochs");
    if (cancelled_) return std::nullopt;
    Row row = std::move(p.row);
    p.ready = false;
    epoch_end_ = p.last;
    ++taken_;
    lock.unlock();
    space_.notify_one();
    return row;
  }

 private:
  struct Place {
    Row row;
    std::vector<std::byte*> columns;
    bool ready = false, last = false;
  };
  std::int64_t size() const { return static_cast<std::int64_t>(places_.size()); }
  Place& place(std::int64_t sequence) { return places_[static_cast<std::size_t>(sequence % size())]; }
  BatchTarget prepare(Place& p, std::span<const ColumnSpec> specs) {
    p.row.clear();
    p.columns.clear();
    for (const ColumnSpec& s : specs) {
      p.row.push_back(s.text ? tensor_for(s) : blocks_->tensor(s.dtype, s.shape));
      p.columns.push_back(static_cast<std::byte*>(p.row[p.row.size() - 1].data()));
    }
    return {p.columns, &p};
  }

  std::shared_ptr<Blocks> blocks_ = std::make_shared<Blocks>();
  std::vector<Place> places_;
  std::mutex mutex_;
  std::condition_variable space_, data_;
  std::int64_t taken_ = 0, total_ = -1, error_at_ = 0;
  std::exception_ptr error_;
  std::chrono::steady_clock::duration waited_{};  // by the consumer, for data
  bool cancelled_ = false, epoch_end_ = false;
};

std::size_t places_for(const Pipeline& pipeline) {
  std::size_t bytes = 1;
  for (const ColumnSpec& s : pipeline.specs()) bytes += s.bytes();
  const std::size_t wanted =
      std::min(static_cast<std::size_t>(std::max(config().prefetch_size, 1)), kPrefetchBytes / bytes);
  return std::max(wanted, static_cast<std::size_t>(pipeline.workers()) + 2);
}

}  // namespace

struct RowIterator::Impl {
  Impl(const Dataset& dataset, std::int64_t num_epochs)
      : num_epochs(num_epochs),
        pipeline(dataset, resume(dataset, {.num_epochs = num_epochs})),
        sink(places_for(pipeline)) {
    pipeline.start(sink);
  }
  ~Impl() { pipeline.stop(); }
  /// Threads and worker processes end with the last row, not with the handle, which may live on in a traceback.
  std::optional<Row> next(const std::function<void()>& poll) {
    std::optional<Row> row;
    try {
      row = sink.next(poll);
    } catch (...) {
      if (sink.failed()) pipeline.stop();
      throw;
    }
    if (row) {
      const Position at = pipeline.position();
      if (sink.at_epoch_end()) pipeline.reached(at.epoch + 1, 0, sink.wait_seconds());
      else pipeline.reached(at.epoch, at.batch + 1, sink.wait_seconds());
    }
    if (row || num_epochs < 0 || stopped || ++epochs_given < num_epochs) return row;
    sink.end_here();
    pipeline.stop();
    return row;
  }
  void stop() {
    stopped = true;
    sink.cancel();
  }
  std::int64_t num_epochs, epochs_given = 0;
  std::atomic<bool> stopped{false};
  Pipeline pipeline;
  HeapSink sink;
};

RowIterator::RowIterator(const Dataset& dataset, std::int64_t num_epochs)
    : impl_(std::make_unique<Impl>(dataset, num_epochs)) {}
RowIterator::~RowIterator() = default;
RowIterator::RowIterator(RowIterator&&) noexcept = default;
RowIterator& RowIterator::operator=(RowIterator&&) noexcept = default;
std::optional<Row> RowIterator::next(const std::function<void()>& poll) { return impl_->next(poll); }
Position RowIterator::state() const { return impl_->pipeline.position(); }
Profile RowIterator::profile() const { return impl_->pipeline.profile(); }
void RowIterator::stop() { impl_->stop(); }
Dataset::iterator RowIterator::begin() { return Dataset::iterator(this); }

DictIterator::DictIterator(const Dataset& dataset, std::int64_t num_epochs)
    : names_(dataset.get_col_names()), rows_(dataset, num_epochs) {}
std::optional<std::map<std::string, Tensor>> DictIterator::next() {
  auto row = rows_.next();
  if (!row) return std::nullopt;
  std::map<std::string, Tensor> out;
  for (std::size_t c = 0; c < names_.size(); ++c) out.emplace(names_[c], std::move((*row)[c]));
  return out;
}

RowIterator Dataset::create_tuple_iterator(std::int64_t num_epochs) const { return RowIterator(*this, num_epochs); }
DictIterator Dataset::create_dict_iterator(std::int64_t num_epochs) const { return DictIterator(*this, num_epochs); }
Dataset::iterator Dataset::begin() const { return iterator(std::make_shared<RowIterator>(*this, 1)); }

}  // namespace undertow::data
