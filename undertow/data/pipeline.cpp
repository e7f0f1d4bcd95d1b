// SPDX-License-Identifier: Apache-2.0
#include "undertow/data/pipeline.h"

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <mutex>
#include <thread>

#include "undertow/base/check.h"
#include "undertow/data/evaluate.h"
#include "undertow/data/node.h"
#include "undertow/data/stream.h"

namespace undertow::data {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kLongestRun = 64;
constexpr std::size_t kRunBytes = 256 << 10;
// A run is worth its lock from some microseconds on; longer ones only keep the consumer and other workers waiting.
constexpr std::chrono::microseconds kShortRun{20}, kLongRun{80};

/// A run of batches that one worker makes.
struct Run {
  std::int64_t sequence = 0;
  std::size_t size = 0;
  bool last_of_epoch = false;
  std::vector<Item> items = std::vector<Item>(kLongestRun);
  std::vector<BatchTarget> targets = std::vector<BatchTarget>(kLongestRun);
  std::vector<void*> tokens = std::vector<void*>(kLongestRun);
  std::span<const ColumnSpec> specs;
  std::vector<ColumnSpec> short_specs;  // where `specs` is not that of a full batch
  Clock::duration busy{};               // time taken, without waiting for places
  Scratch scratch;
};

class SinkResizer : public Resizer {
 public:
  SinkResizer(BatchSink& sink, std::int64_t sequence, void*& token) : sink_(sink), sequence_(sequence), token_(token) {}
  BatchTarget resize(std::span<const ColumnSpec> specs) override {
    const BatchTarget t = sink_.resize(sequence_, token_, specs);
    token_ = t.token;
    return t;
  }

 private:
  BatchSink& sink_;
  std::int64_t sequence_;
  void*& token_;
};

}  // namespace

struct Pipeline::Impl {
  NodePtr node;
  PipelineOptions options;
  std::unique_ptr<Plan> plan;
  std::vector<ColumnSpec> specs;  // of a full batch
  std::size_t full_rows = 0;
  std::size_t longest_run = 1;

  std::shared_ptr<Progress> progress;
  std::atomic<std::int64_t> published{0}, depths{0}, depths_seen{0};
  std::atomic<double> wait_seconds{0};
  Clock::time_point began{}, ended{};

  BatchSink* sink = nullptr;
  std::vector<std::shared_ptr<void>> prepared;  // by stages, until the threads have ended
  std::vector<std::thread> threads;
  std::atomic<bool> stopping{false};
  std::atomic<bool> finished{false};  // ended, failed or stopped: no more runs

  // Guarded by `order`.
  std::mutex order;
  std::vector<Item> queue = std::vector<Item>(kLongestRun);
  std::size_t queue_begin = 0, queue_end = 0, run_length = 1, runs = 0;
  std::exception_ptr pending;  // to be raised once the queue is empty
  bool epoch_open = false, epoch_over = false;
  std::int64_t epoch = 0, epochs_done = 0, in_epoch = 0, sequence = 0;

  Impl(const Dataset& dataset, const PipelineOptions& o) : node(dataset.node()), options(o) {
    UNDERTOW_CHECK(o.num_epochs == -1 || o.num_epochs >= 1, ValueError, "num_epochs must be -1 or at least 1, got {}",
                   o.num_epochs);
    specs = describe(*node);  // first: it tells whether functions must run in order
    const std::uint64_t seed = o.seed.value_or(config().seed);
    progress = std::make_shared<Progress>(seed, Position{seed, o.first_epoch, o.first_batch});
    plan = make_plan(*node, seed);
    plan->stop = &stopping;
    epoch = o.first_epoch;
    std::size_t bytes = 0;
    for (const ColumnSpec& s : specs) bytes += s.bytes();
    longest_run = std::clamp<std::size_t>(kRunBytes / std::max<std::size_t>(bytes, 1), 1, kLongestRun);
    if (plan->reads_ahead)
      longest_run = std::min(longest_run, static_cast<std::size_t>(std::max(config().prefetch_size, 1)));
    if (plan->one_by_one) longest_run = 1;
    full_rows = specs[0].shape.rank() > 0 ? static_cast<std::size_t>(specs[0].shape[0]) : 0;
    find_bulk_leaves();
  }

  /// Sources that gather whole batches and whose rows are as announced.
  void find_bulk_leaves() {
    for (Leaf& leaf : plan->leaves) {
      if (leaf.kind != Leaf::Kind::kSource || !leaf.steps.empty() || leaf.node->source->size() == 0) continue;
      const auto rows = describe(*leaf.node);
      const std::size_t columns = leaf.select.empty() ? rows.size() : leaf.select.size();
      bool same = columns == specs.size() && leaf.node->source->gather({}, {});
      for (std::size_t c = 0; same && c < columns; ++c) {
        const ColumnSpec& row = rows[leaf.select.empty() ? c : static_cast<std::size_t>(leaf.select[c])];
        Shape shape{specs[c].shape.rank() > 0 ? specs[c].shape[0] : 0};
        for (int d = 0; d < std::min(row.shape.rank(), Shape::kMaxRank - 1); ++d) shape.push_back(row.shape[d]);
        same = row.dtype == specs[c].dtype && shape == specs[c].shape;
      }
      leaf.bulk = same;
    }
  }

  /// Fills the queue; false once all epochs are over.
  bool refill() {
    if (pending) std::rethrow_exception(std::exchange(pending, nullptr));
    if (!epoch_open) {
      if (options.num_epochs >= 0 && epochs_done == options.num_epochs) return false;
      plan->stream->reset(epoch);
      epoch_open = true;
      epoch_over = false;
      in_epoch = 0;
      if (epochs_done == 0)
        for (std::int64_t i = 0; i < options.first_batch && plan->stream->next(&queue[0], 1) == 1; ++i) ++in_epoch;
    }
    queue_begin = queue_end = 0;
    while (queue_end < run_length) {
      try {
        if (plan->stream->next(&queue[queue_end], 1) == 0) {
          epoch_over = true;
          break;
        }
        ++queue_end;
        if (plan->stream->done()) {
          epoch_over = true;
          break;
        }
      } catch (...) {
        if (queue_end == 0) throw;
        pending = std::current_exception();  // what was pulled before it is delivered first
        break;
      }
    }
    UNDERTOW_CHECK(queue_end > 0 || in_epoch > 0, DataError, "{} (epoch {})", why_empty(*node), epoch + 1);
    in_epoch += static_cast<std::int64_t>(queue_end);
    return true;
  }

  /// Takes the next run under the lock; false when there is none any more.
  bool take(Run& run) {
    const std::lock_guard lock(order);
    if (finished) return false;
    constexpr std::size_t kTuneEvery = 16;
    if (plan->autotune && ++runs % kTuneEvery == 0) tune(*plan);
    if (run.size > 0) {
      if (run.busy < kShortRun && run.size == run_length) run_length = std::min(run_length * 2, longest_run);
      else if (run.busy > kLongRun) run_length = std::max<std::size_t>(run_length / 2, 1);
    }
    try {
      const auto start = Clock::now();
      while (queue_begin == queue_end) {
        if (!refill()) {
          finished = true;
          sink->end(sequence);
          return false;
        }
        if (queue_end == 0) close_epoch();  // only after batches were left out of a resumed epoch
      }
      const std::size_t rows = batch_rows(*plan, queue[queue_begin]);
      std::size_t n = 1;
      while (queue_begin + n < queue_end && batch_rows(*plan, queue[queue_begin + n]) == rows) ++n;
      run.specs = specs_for(rows, run.short_specs);
      run.busy = Clock::now() - start;
      run.size = sink->acquire(sequence, run.specs, std::span(run.targets.data(), n));
      UNDERTOW_ASSERT(run.size >= 1 && run.size <= n);
      run.sequence = sequence;
      sequence += static_cast<std::int64_t>(run.size);
      for (std::size_t i = 0; i < run.size; ++i) std::swap(run.items[i], queue[queue_begin++]);
      run.last_of_epoch = epoch_over && queue_begin == queue_end && !pending;
      if (run.last_of_epoch) close_epoch();
    } catch (const Stopped&) {
      finished = true;
      return false;
    } catch (...) {
      finished = true;
      sink->fail(sequence, std::current_exception());
      return false;
    }
    return true;
  }

  void close_epoch() {
    epoch_open = false;
    ++epoch;
    ++epochs_done;
  }

  /// The specs of a batch of `rows` rows; `room` holds them where they are not the usual ones.
  std::span<const ColumnSpec> specs_for(std::size_t rows, std::vector<ColumnSpec>& room) const {
    if (rows == 0 || rows == full_rows) return specs;
    room = specs;
    for (ColumnSpec& s : room)
      if (s.shape.rank() > 0 && s.shape[0] == static_cast<std::int64_t>(full_rows))
        s.shape[0] = static_cast<std::int64_t>(rows);
    return room;
  }

  void make(Run& run) {
    const auto start = Clock::now();
    std::size_t made = 0;
    std::exception_ptr error;
    for (std::size_t i = 0; i < run.size; ++i) run.tokens[i] = run.targets[i].token;
    try {
      for (; made < run.size; ++made) {
        SinkResizer resizer(*sink, run.sequence + static_cast<std::int64_t>(made), run.tokens[made]);
        write(*plan, run.items[made], run.targets[made], run.specs, resizer, run.scratch);
      }
    } catch (const Stopped&) {
      finished = true;
    } catch (...) {
      error = std::current_exception();
      finished = true;
    }
    if (made > 0) {
      note_depth(static_cast<std::int64_t>(made));
      sink->publish(run.sequence, std::span(run.tokens.data(), made), run.last_of_epoch && made == run.size);
    }
    if (error) sink->fail(run.sequence + static_cast<std::int64_t>(made), error);
    run.busy += Clock::now() - start;
  }

  /// Every now and then: to ask takes a look at every place.
  void note_depth(std::int64_t made) {
    constexpr std::int64_t kEvery = 8;
    const std::int64_t before = published.fetch_add(made, std::memory_order_relaxed);
    if (before / kEvery == (before + made) / kEvery && before > 0) return;
    const std::int64_t taken = sink->taken();
    if (taken < 0) return;
    depths.fetch_add(std::max<std::int64_t>(before + made - taken, 0), std::memory_order_relaxed);
    depths_seen.fetch_add(1, std::memory_order_relaxed);
  }

  Profile profile() const {
    Profile p;
    p.batches = published;
    p.wait_seconds = wait_seconds;
    if (began != Clock::time_point())
      p.seconds = std::chrono::duration<double>((ended == Clock::time_point() ? Clock::now() : ended) - began).count();
    if (depths_seen > 0) p.queue_depth = static_cast<double>(depths) / static_cast<double>(depths_seen);
    if (sink) p.queue_size = sink->places();
    fill_stages(*plan, p);
    return p;
  }

  void work() {
    setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), plan->nice);
    pthread_setname_np(pthread_self(), "undertow-data");
    Run run;
    while (take(run)) make(run);
  }
};

Pipeline::Pipeline(const Dataset& dataset, const PipelineOptions& options)
    : impl_(std::make_unique<Impl>(dataset, options)) {}
Pipeline::~Pipeline() { stop(); }
const std::vector<ColumnSpec>& Pipeline::specs() const { return impl_->specs; }
int Pipeline::workers() const { return impl_->plan->workers; }

void Pipeline::start(BatchSink& sink) {
  UNDERTOW_CHECK(!impl_->sink, RuntimeError, "a pipeline can be started only once");
  impl_->sink = &sink;
  {
    const std::lock_guard lock(impl_->node->memory->mutex);
    impl_->node->memory->progress = impl_->progress;
  }
  for (const auto& [stage, workers] : impl_->plan->stages)
    if (auto kept = stage->prepare(workers)) impl_->prepared.push_back(std::move(kept));
  impl_->began = Clock::now();
  // Signals are for the caller's threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  for (int i = 0; i < workers(); ++i) impl_->threads.emplace_back([impl = impl_.get()] { impl->work(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Pipeline::stop() {
  impl_->stopping = true;
  impl_->finished = true;
  if (impl_->sink) impl_->sink->cancel();
  for (std::thread& t : impl_->threads) t.join();
  impl_->threads.clear();
  impl_->prepared.clear();
  if (!impl_->sink || impl_->ended != Clock::time_point()) return;
  impl_->ended = Clock::now();
  Profile last = impl_->profile();
  const std::lock_guard lock(impl_->node->memory->mutex);
  impl_->node->memory->profile = std::move(last);
}

void Pipeline::reached(std::int64_t epoch, std::int64_t batch, double wait_seconds) {
  impl_->progress->at.store(Progress::pack(epoch, batch), std::memory_order_relaxed);
  impl_->wait_seconds.store(wait_seconds, std::memory_order_relaxed);
}
Position Pipeline::position() const { return impl_->progress->position(); }
Profile Pipeline::profile() const { return impl_->profile(); }

PipelineOptions resume(const Dataset& dataset, PipelineOptions options) {
  NodeMemory& memory = *dataset.node()->memory;
  const std::lock_guard lock(memory.mutex);
  if (const auto from = std::exchange(memory.resume, std::nullopt)) {
    options.seed = from->seed;
    options.first_epoch = from->epoch;
    options.first_batch = from->batch;
  }
  return options;
}

}  // namespace undertow::data
