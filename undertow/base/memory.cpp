// SPDX-License-Identifier: Apache-2.0
#include "undertow/base/memory.h"

#include <sys/mman.h>

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
  const std::size_t align = bytes >= kHugeFrom ? kHugePage : kAlignment;
  if (bytes <= kLargestSmall) bytes = std::size_t{64} << class_of(bytes);  // may enter the pool when freed
  void* p = std::aligned_alloc(align, (bytes + align - 1) / align * align);
  if (!p) throw std::bad_alloc();
  if (align == kHugePage) madvise(p, (bytes + align - 1) / align * align, MADV_HUGEPAGE);
  return p;
}

void deallocate(void* block, std::size_t bytes) noexcept {
  if (!block) return;
  if (bytes > kLargestSmall) {
    std::free(block);
    return;
  }
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

}  // namespace undertow
