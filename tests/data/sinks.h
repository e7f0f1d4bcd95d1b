// SPDX-License-Identifier: Apache-2.0
// tests/data/sinks.h: consumers for tests and measurements.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <vector>

#include "undertow/data/pipeline.h"

namespace undertow::data {

/// A ring of places of fixed memory, handed over by counters: one producer at a time acquires, anyone publishes, and
/// the consumer takes in order. Waits only when full or empty. Columns must not grow.
class RingSink : public BatchSink {
 public:
  RingSink(std::size_t places, std::span<const ColumnSpec> specs) : places_(places) {
    for (Place& p : places_)
      for (const ColumnSpec& s : specs) {
        p.memory.emplace_back(s.bytes());
        p.columns.push_back(p.memory.back().data());
      }
  }
  std::size_t acquire(std::int64_t sequence, std::span<const ColumnSpec>, std::span<BatchTarget> out) override {
    std::int64_t free = taken_.load(std::memory_order_acquire) + size() - sequence;
    if (free <= 0) {
      std::unique_lock lock(mutex_);
      producer_waits_ = true;
      changed_.wait(lock, [&] {
        free = taken_.load() + size() - sequence;
        // Half of the ring at once, so that a full ring is not filled place by place.
        return cancelled_.load() || free >= std::max<std::int64_t>(size() / 2, 1);
      });
      producer_waits_ = false;
    }
    if (cancelled_) throw Stopped();
    const std::size_t n = std::min(out.size(), static_cast<std::size_t>(free));
    for (std::size_t i = 0; i < n; ++i) {
      Place& p = place(sequence + static_cast<std::int64_t>(i));
      out[i] = {p.columns, &p};
    }
    return n;
  }
  BatchTarget resize(std::int64_t sequence, void*, std::span<const ColumnSpec> specs) override {
    ++resized;
    Place& p = place(sequence);
    p.memory.clear();
    p.columns.clear();
    for (const ColumnSpec& s : specs) {
      p.memory.emplace_back(s.bytes());
      p.columns.push_back(p.memory.back().data());
    }
    return {p.columns, &p};
  }
  void publish(std::int64_t sequence, std::span<void* const> tokens, bool last_of_epoch) override {
    ++runs;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      auto& p = *static_cast<Place*>(tokens[i]);
      p.last = last_of_epoch && i + 1 == tokens.size();
      p.ready.store(sequence + static_cast<std::int64_t>(i) + 1, std::memory_order_release);
    }
    wake();
  }
  void fail(std::int64_t sequence, std::exception_ptr error) override {
    {
      const std::lock_guard lock(mutex_);
      if (!error_ || sequence < error_at_) {
        error_ = error;
        error_at_ = sequence;
      }
    }
    wake(true);
  }
  void end(std::int64_t total) override {
    total_ = total;
    wake(true);
  }
  void cancel() override {
    cancelled_ = true;
    wake(true);
  }

  struct Place {
    std::vector<std::vector<std::byte>> memory;
    std::vector<std::byte*> columns;
    bool last = false;
    std::atomic<std::int64_t> ready{0};  // sequence + 1 of what it holds
  };
  /// The next batch, until release(); null at the end. Throws what the pipeline failed with.
  Place* take() {
    const std::int64_t at = taken_.load(std::memory_order_relaxed);
    Place& p = place(at);
    if (p.ready.load(std::memory_order_acquire) == at + 1) return &p;
    std::unique_lock lock(mutex_);
    consumer_waits_ = true;
    changed_.wait(lock, [&] {
      return p.ready.load() == at + 1 || cancelled_ || total_.load() == at || (error_ && error_at_ == at);
    });
    consumer_waits_ = false;
    if (p.ready.load() == at + 1) return &p;
    if (error_ && error_at_ == at) std::rethrow_exception(error_);
    return nullptr;
  }
  void release() {
    taken_.fetch_add(1);
    wake();
  }
  std::atomic<int> runs{0}, resized{0};

 private:
  std::int64_t size() const { return static_cast<std::int64_t>(places_.size()); }
  Place& place(std::int64_t sequence) { return places_[static_cast<std::size_t>(sequence % size())]; }
  void wake(bool always = false) {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (!always && !producer_waits_ && !consumer_waits_) return;
    {
      const std::lock_guard lock(mutex_);
    }
    changed_.notify_all();
  }
  std::vector<Place> places_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<std::int64_t> taken_{0}, total_{-1};
  std::atomic<bool> cancelled_{false}, producer_waits_{false}, consumer_waits_{false};
  std::exception_ptr error_;
  std::int64_t error_at_ = 0;
};

}  // namespace undertow::data
