// SPDX-License-Identifier: Apache-2.0
#include "undertow/base/memory.h"

#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <mutex>
#include <new>

namespace undertow {
namespace {

constexpr std::size_t kClasses = 7;  // 64, 128, ..., 4096 bytes
constexpr std::size_t kLargestSmall = std::size_t{64} << (kClasses - 1);
constexpr std::size_t kHugeFrom = std::size_t{4} << 20;
constexpr std::size_t kLargeFrom = std::size_t{256} << 10;
constexpr std::size_t kKeepBytes = std::size_t{256} << 20;
constexpr int kLocalMax = 64;  // blocks a thread keeps per class before half of them go to the shared list

struct Block {
  Block* next;
};

struct Shared {
  std::mutex mutex;
  std::array<Block*, kClasses> lists{};
};
// Leaked on purpose: threads may still free blocks while the process exits.
Shared& shared() {
  static auto* s = new Shared;
  return *s;
}

struct Local {
  std::array<Block*, kClasses> lists{};
  std::array<int, kClasses> counts{};
  ~Local() {
    for (std::size_t c = 0; c < kClasses; ++c) give_back(c, counts[c]);
    closed = true;
  }
  void give_back(std::size_t c, int n) {
    const std::lock_guard lock(shared().mutex);
    for (; n > 0 && lists[c]; --n, --counts[c]) {
      Block* b = lists[c];
      lists[c] = b->next;
      b->next = shared().lists[c];
      shared().lists[c] = b;
    }
  }
  void refill(std::size_t c) {
    {
      const std::lock_guard lock(shared().mutex);
      for (int n = 0; n < kLocalMax / 2 && shared().lists[c]; ++n) {
        Block* b = shared().lists[c];
        shared().lists[c] = b->next;
        push(c, b);
      }
    }
    if (lists[c]) return;
    // One chunk of many blocks; chunks are never returned, they serve the whole life of the process.
    const std::size_t size = std::size_t{64} << c;
    const std::size_t chunk = std::size_t{64} << 10;
    auto* p = static_cast<char*>(std::aligned_alloc(kAlignment, chunk));
    if (!p) throw std::bad_alloc();
    for (std::size_t at = 0; at + size <= chunk; at += size) push(c, reinterpret_cast<Block*>(p + at));
  }
  void push(std::size_t c, Block* b) {
    b->next = lists[c];
    lists[c] = b;
    ++counts[c];
  }
  static thread_local bool closed;  // set once this thread's lists are gone
};
thread_local bool Local::closed = false;
thread_local Local local;

std::size_t class_of(std::size_t bytes) {
  return bytes <= 64 ? 0 : static_cast<std::size_t>(std::bit_width(bytes - 1)) - 6;
}

/// What is allocated for a large block: an eighth of a power of two apart, so that sizes that vary a little share
/// blocks.
std::size_t large_size(std::size_t bytes) {
  const std::size_t step = std::bit_floor(bytes) / 8;
  const std::size_t rounded = (bytes + step - 1) / step * step;
  const std::size_t align = bytes >= kHugeFrom ? kHugePage : kAlignment;
  return (rounded + align - 1) / align * align;
}

/// Large blocks that were freed, oldest first. A search looks at 16 bytes a block where a fault costs 1 us a page.
class Kept {
 public:
  /// A block of exactly `size` bytes or null; the last one freed, whose lines may still be in the cache.
  void* take(std::size_t size) {
    const std::lock_guard lock(mutex);
    for (std::size_t i = count_; i-- > 0;) {
      if (blocks_[i].size != size) continue;
      void* p = blocks_[i].block;
      drop(i);
      return p;
    }
    return nullptr;
  }
  void put(void* block, std::size_t size) {
    if (size > kKeepBytes) return std::free(block);
    const std::lock_guard lock(mutex);
    std::size_t gone = 0;
    for (; count_ - gone == blocks_.size() || bytes_ + size > kKeepBytes; ++gone) {
      std::free(blocks_[gone].block);
      bytes_ -= blocks_[gone].size;
    }
    std::move(blocks_.begin() + gone, blocks_.begin() + count_, blocks_.begin());
    count_ -= gone;
    blocks_[count_++] = {block, size};
    bytes_ += size;
  }
  std::size_t bytes() {
    const std::lock_guard lock(mutex);
    return bytes_;
  }

  std::mutex mutex;

 private:
  struct Entry {
    void* block;
    std::size_t size;
  };
  void drop(std::size_t i) {
    bytes_ -= blocks_[i].size;
    std::move(blocks_.begin() + i + 1, blocks_.begin() + count_, blocks_.begin() + i);
    --count_;
  }
  std::array<Entry, kKeepBytes / kLargeFrom> blocks_{};
  std::size_t count_ = 0, bytes_ = 0;
};
// Leaked on purpose, as above. AddressSanitizer watches freed blocks better than a pool reuses them.
#ifdef __SANITIZE_ADDRESS__
constexpr bool kKeep = false;
#else
constexpr bool kKeep = true;
#endif
Kept& kept() {
  static auto* k = new Kept;
  return *k;
}

// A child that is forked while another thread holds a mutex would wait for it forever.
void lock_all() {
  shared().mutex.lock();
  kept().mutex.lock();
}
void unlock_all() {
  kept().mutex.unlock();
  shared().mutex.unlock();
}
[[maybe_unused]] const int fork_handler = pthread_atfork(lock_all, unlock_all, unlock_all);

}  // namespace

void* allocate(std::size_t bytes) {
  if (bytes <= kLargestSmall && !Local::closed) {
    Local& here = local;  // one look-up of the thread's storage
    const std::size_t c = class_of(bytes);
    if (!here.lists[c]) here.refill(c);
    Block* b = here.lists[c];
    here.lists[c] = b->next;
    --here.counts[c];
    return b;
  }
  std::size_t size = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  if (bytes <= kLargestSmall) size = std::size_t{64} << class_of(bytes);  // may enter the pool when freed
  if (bytes >= kLargeFrom) {
    size = large_size(bytes);
    if (void* p = kept().take(size)) return p;
  }
  const bool huge = bytes >= kHugeFrom;
  void* p = std::aligned_alloc(huge ? kHugePage : kAlignment, size);
  if (!p) throw std::bad_alloc();
  if (huge) madvise(p, size, MADV_HUGEPAGE);
  return p;
}

void deallocate(void* block, std::size_t bytes) noexcept {
  if (!block) return;
  if (bytes >= kLargeFrom && kKeep) return kept().put(block, large_size(bytes));
  if (bytes > kLargestSmall) return std::free(block);
  const std::size_t c = class_of(bytes);
  if (Local::closed) {  // a thread's last frees go straight to the shared list
    const std::lock_guard lock(shared().mutex);
    auto* b = static_cast<Block*>(block);
    b->next = shared().lists[c];
    shared().lists[c] = b;
    return;
  }
  Local& here = local;
  here.push(c, static_cast<Block*>(block));
  if (here.counts[c] > kLocalMax * (c == 0 ? 4 : 1)) here.give_back(c, here.counts[c] / 2);
}

std::size_t kept_bytes() { return kept().bytes(); }

}  // namespace undertow
