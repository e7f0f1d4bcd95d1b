// SPDX-License-Identifier: Apache-2.0
// data/stream_watch.cpp: streams that others watch or hold up: callbacks of a map operation, sync_wait.
#include <utility>

#include "undertow/base/check.h"
#include "undertow/data/callback.h"
#include "undertow/data/evaluate.h"
#include "undertow/data/pipeline.h"
#include "undertow/data/stream.h"

namespace undertow::data {
namespace {

/// Makes rows while pulling, and tells the callbacks of `map` before and after each.
class ObservedStream : public Stream {
 public:
  ObservedStream(std::unique_ptr<Stream> in, const Plan& plan, std::int32_t leaf, const Node& map)
      : in_(std::move(in)), plan_(plan), leaf_(leaf), map_(map) {}
  void reset(std::int64_t epoch) override {
    in_->reset(epoch);
    at_.stop = plan_.stop;
    if (at_.cur_epoch_num == 0) tell(&DSCallback::ds_begin);
    ++at_.cur_epoch_num;
    at_.cur_step_num_in_epoch = 0;
    tell(&DSCallback::ds_epoch_begin);
  }
  std::size_t next(Item* out, std::size_t n) override {
    for (std::size_t i = 0; i < n; ++i) {
      if (in_->next(&raw_, 1) == 0) return i;
      ++at_.cur_step_num;
      ++at_.cur_step_num_in_epoch;
      tell_step(&DSCallback::ds_step_begin);
      out[i].own().row = evaluate(plan_, raw_, scratch_);
      out[i].leaf = leaf_;
      out[i].row = raw_.row;
      out[i].epoch = raw_.epoch;
      tell_step(&DSCallback::ds_step_end);
      if (in_->done()) tell(&DSCallback::ds_epoch_end);
    }
    return n;
  }
  bool done() override { return in_->done(); }
  std::int64_t remaining() override { return in_->remaining(); }

 private:
  using Hook = void (DSCallback::*)(const DSRunContext&);
  void tell(Hook hook) {
    for (const auto& c : map_.callbacks) (c.get()->*hook)(at_);
  }
  void tell_step(Hook hook) {
    for (const auto& c : map_.callbacks)
      if ((at_.cur_step_num - 1) % c->step_size() == 0) (c.get()->*hook)(at_);
  }
  std::unique_ptr<Stream> in_;
  const Plan& plan_;
  std::int32_t leaf_;
  const Node& map_;
  Scratch scratch_;
  Item raw_;
  DSRunContext at_;
};

/// Gives only as many items as have been released.
class HeldStream : public Stream {
 public:
  HeldStream(std::unique_ptr<Stream> in, const Plan& plan, SyncPoint& point)
      : in_(std::move(in)), plan_(plan), point_(point) {}
  void reset(std::int64_t epoch) override {
    in_->reset(epoch);
    point_.reset();
  }
  std::size_t next(Item* out, std::size_t n) override {
    for (std::size_t i = 0; i < n; ++i) {
      if (in_->done()) return i;
      point_.wait(plan_.stop);
      if (in_->next(&out[i], 1) == 0) return i;
    }
    return n;
  }
  bool done() override { return in_->done(); }
  std::int64_t remaining() override { return in_->remaining(); }

 private:
  std::unique_ptr<Stream> in_;
  const Plan& plan_;
  SyncPoint& point_;
};

}  // namespace

void SyncPoint::reset() {
  const std::lock_guard lock(mutex_);
  released_ = batches_;
}

void SyncPoint::wait(const std::atomic<bool>* stop) {
  constexpr std::chrono::milliseconds kTick{50};
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(config().callback_timeout);
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, kTick, [this] { return released_ > 0; })) {
    if (stop && stop->load(std::memory_order_relaxed)) throw Stopped();
    UNDERTOW_CHECK(std::chrono::steady_clock::now() < until, RuntimeError,
                   "sync_wait('{}'): no sync_update within {} s (config.set_callback_timeout)", name_,
                   config().callback_timeout);
  }
  --released_;
}

void SyncPoint::release(std::int64_t batches, const void* data) {
  if (callback_) callback_(data);
  {
    const std::lock_guard lock(mutex_);
    released_ += batches > 0 ? batches : batches_;
  }
  changed_.notify_all();
}

std::unique_ptr<Stream> observed_stream(std::unique_ptr<Stream> in, const Plan& plan, std::int32_t leaf,
                                        const Node& map) {
  return std::make_unique<ObservedStream>(std::move(in), plan, leaf, map);
}
std::unique_ptr<Stream> held_stream(std::unique_ptr<Stream> in, const Plan& plan, SyncPoint& point) {
  return std::make_unique<HeldStream>(std::move(in), plan, point);
}

}  // namespace undertow::data
