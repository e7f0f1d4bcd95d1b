// SPDX-License-Identifier: Apache-2.0
#include "undertow/runtime/channel.h"

#include <algorithm>
#include <chrono>

#include "undertow/base/check.h"

namespace undertow::runtime {
namespace {

constexpr std::size_t kTargetBytes = std::size_t{8} << 20;
constexpr int kMinSlots = 3, kMaxSlots = 128;
constexpr auto kSpin = std::chrono::microseconds(20);      // a hand-over between two running threads is shorter
constexpr auto kStopPoll = std::chrono::milliseconds(10);  // how late a sleeping reader sees the stop flag
// Tiny batches come in rings of many slots. Their sleeping reader is woken for a quarter of the ring at a time, since a
// wake costs more than a tiny step; what is ready earlier it finds by itself after this long.
constexpr int kManySlots = 32;
constexpr auto kTinyPoll = std::chrono::microseconds(200);

std::size_t bytes_of(const ColumnType& c) { return static_cast<std::size_t>(c.shape.numel()) * size_of(c.dtype); }
std::size_t aligned(std::size_t n) { return (std::max<std::size_t>(n, 1) + kAlignment - 1) / kAlignment * kAlignment; }

bool same_types(std::span<const ColumnType> a, std::span<const ColumnType> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const auto& x, const auto& y) { return x.dtype == y.dtype && x.shape == y.shape; });
}

}  // namespace

Channel::Channel(std::vector<ColumnType> columns) {
  std::size_t bytes = 0;
  for (const auto& c : columns) bytes += aligned(bytes_of(c));
  const auto fit = static_cast<int>(std::min<std::size_t>(kTargetBytes / std::max<std::size_t>(bytes, 1), kMaxSlots));
  const int n = std::max(kMinSlots, fit);
  memory_.resize(static_cast<std::size_t>(n));
  capacity_.resize(static_cast<std::size_t>(n));
  for (int i = 0; i < n; ++i) {
    ChannelSlot& s = slots_.emplace_back();
    s.index = i;
    s.free_for.store(i, std::memory_order_relaxed);
    allocate(s, columns);
  }
  shape_sets_.push_back(std::move(columns));
  num_shape_sets_.store(1, std::memory_order_release);
}

std::uint64_t Channel::snapshot(std::vector<std::byte*>& columns) const {
  const std::lock_guard lock(mutex_);
  columns.clear();
  for (const auto& s : slots_) columns.insert(columns.end(), s.columns.begin(), s.columns.end());
  return memory_generation();
}

void Channel::allocate(ChannelSlot& s, std::span<const ColumnType> types) {
  const std::lock_guard lock(mutex_);
  const auto i = static_cast<std::size_t>(s.index);
  std::size_t total = 0;
  for (const auto& c : types) total += aligned(bytes_of(c));
  memory_[i] = make_ref<Storage>(total);
  auto* p = static_cast<std::byte*>(memory_[i]->data());
  std::fill_n(p, total, std::byte{0});  // touched once, here
  s.columns.clear();
  capacity_[i].clear();
  for (const auto& c : types) {
    s.columns.push_back(p);
    capacity_[i].push_back(aligned(bytes_of(c)));
    p += aligned(bytes_of(c));
  }
  static std::atomic<std::uint64_t> generations{0};
  s.memory_generation = generations.fetch_add(1) + 1;
  generation_.store(s.memory_generation, std::memory_order_release);
}

int Channel::find_shapes(std::span<const ColumnType> types) {
  const int known = num_shape_sets_.load(std::memory_order_acquire);
  for (int i = 0; i < known; ++i)
    if (same_types(shape_sets_[static_cast<std::size_t>(i)], types)) return i;
  const std::lock_guard lock(mutex_);
  for (std::size_t i = static_cast<std::size_t>(known); i < shape_sets_.size(); ++i)
    if (same_types(shape_sets_[i], types)) return static_cast<int>(i);
  shape_sets_.emplace_back(types.begin(), types.end());
  num_shape_sets_.store(static_cast<int>(shape_sets_.size()), std::memory_order_release);
  return static_cast<int>(shape_sets_.size()) - 1;
}

const std::vector<ColumnType>& Channel::shape_set(int i) const { return shape_sets_[static_cast<std::size_t>(i)]; }

ChannelSlot* Channel::acquire(std::int64_t sequence, std::span<const ColumnType> types) {
  ChannelSlot& s = slots_[static_cast<std::size_t>(sequence % num_slots())];
  if (s.free_for.load(std::memory_order_acquire) != sequence) {
    std::unique_lock lock(mutex_);
    writers_waiting_.fetch_add(1, std::memory_order_seq_cst);
    writer_cv_.wait(lock, [&] {
      return closed_.load(std::memory_order_relaxed) || s.free_for.load(std::memory_order_seq_cst) == sequence;
    });
    writers_waiting_.fetch_sub(1, std::memory_order_relaxed);
  }
  if (closed_.load(std::memory_order_acquire)) throw Stopped{};
  const auto i = static_cast<std::size_t>(s.index);
  bool fits = types.size() == capacity_[i].size();
  for (std::size_t c = 0; fits && c < types.size(); ++c) fits = bytes_of(types[c]) <= capacity_[i][c];
  if (!fits) allocate(s, types);
  s.shapes = find_shapes(types);
  s.sequence = sequence;
  s.last_of_epoch = false;
  return &s;
}

void Channel::wake(std::atomic<int>& waiting, std::condition_variable& cv) {
  // Pairs with the sleeper's rise of `waiting` before it looks again: one of the two sees the other.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (waiting.load(std::memory_order_relaxed) == 0) return;
  {
    const std::lock_guard lock(mutex_);
  }
  cv.notify_all();
}

void Channel::publish(ChannelSlot* s) {
  s->ready_for.store(s->sequence, std::memory_order_release);
  const int ahead = num_slots() >= kManySlots ? num_slots() / 4 : 1;
  if (s->sequence + 1 - next_read_.load(std::memory_order_relaxed) >= ahead) wake(reader_waiting_, reader_cv_);
}

void Channel::fail(std::int64_t sequence, std::exception_ptr error) {
  {
    const std::lock_guard lock(mutex_);
    if (sequence < error_at_) {
      error_at_ = sequence;
      error_ = std::move(error);
    }
    stop_at_.store(std::min(stop_at_.load(), sequence), std::memory_order_release);
  }
  reader_cv_.notify_all();
}

void Channel::end(std::int64_t sequence) {
  {
    const std::lock_guard lock(mutex_);
    stop_at_.store(std::min(stop_at_.load(), sequence), std::memory_order_release);
  }
  reader_cv_.notify_all();
}

ChannelSlot* Channel::peek(const std::atomic<bool>* stop, std::chrono::milliseconds timeout) {
  const std::int64_t sequence = next_read_.load(std::memory_order_relaxed);
  ChannelSlot& s = slots_[static_cast<std::size_t>(sequence % num_slots())];
  if (ready(s, sequence)) return &s;
  const auto over = [&] {
    return closed_.load(std::memory_order_acquire) || stop_at_.load(std::memory_order_acquire) <= sequence ||
           (stop && stop->load(std::memory_order_relaxed));
  };
  const auto start = std::chrono::steady_clock::now();
  do {
    for (int i = 0; i < 32; ++i) {
      if (ready(s, sequence)) return &s;
      __builtin_ia32_pause();
    }
  } while (!over() && std::chrono::steady_clock::now() - start < kSpin);
  std::unique_lock lock(mutex_);
  reader_waiting_.store(1, std::memory_order_seq_cst);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  while (!ready(s, sequence) && !over() && std::chrono::steady_clock::now() - start < timeout)
    reader_cv_.wait_for(lock, num_slots() >= kManySlots ? std::chrono::microseconds(kTinyPoll)
                                                        : std::chrono::microseconds(std::min(kStopPoll, timeout)));
  reader_waiting_.store(0, std::memory_order_relaxed);
  return ready(s, sequence) ? &s : nullptr;
}

void Channel::release(ChannelSlot* s) {
  const std::int64_t next = s->sequence + 1;
  next_read_.store(next, std::memory_order_relaxed);
  s->free_for.store(s->sequence + num_slots(), std::memory_order_release);
  // Writers that sleep do so because the ring is full. They are woken when half of it is free again, not for each slot:
  // a wake costs microseconds, a tiny step less than one.
  const int half = std::max(1, num_slots() / 2);
  if (next % half == 0) wake(writers_waiting_, writer_cv_);
}

bool Channel::finished() const {
  return stop_at_.load(std::memory_order_acquire) <= next_read_.load(std::memory_order_relaxed);
}

std::exception_ptr Channel::error() const {
  const std::lock_guard lock(mutex_);
  return error_at_ <= next_read_.load(std::memory_order_relaxed) ? error_ : nullptr;
}

void Channel::close() {
  {
    const std::lock_guard lock(mutex_);
    closed_.store(true, std::memory_order_release);
  }
  writer_cv_.notify_all();
  reader_cv_.notify_all();
}

}  // namespace undertow::runtime
