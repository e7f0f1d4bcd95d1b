// SPDX-License-Identifier: Apache-2.0
#include "undertow/base/memory.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

namespace undertow {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

struct Piece {
  unsigned char* data;
  std::size_t bytes;
  unsigned char mark;
};

Piece make(std::size_t bytes, unsigned char mark) {
  Piece p{static_cast<unsigned char*>(allocate(bytes)), bytes, mark};
  if (bytes) std::memset(p.data, mark, bytes);
  return p;
}
/// False if somebody else wrote into the block.
bool release(const Piece& p) {
  bool intact = true;
  for (std::size_t i = 0; i < p.bytes; ++i) intact &= p.data[i] == p.mark;
  deallocate(p.data, p.bytes);
  return intact;
}

TEST(Memory, Alignment) {
  for (const std::size_t bytes : {0u, 1u, 63u, 64u, 65u, 4096u, 4097u, 100000u}) {
    void* p = allocate(bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(p) % kAlignment, 0u) << bytes;
    deallocate(p, bytes);
  }
  void* p = allocate(std::size_t{5} << 20);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(p) % kHugePage, 0u);
  deallocate(p, std::size_t{5} << 20);
  deallocate(nullptr, 8);
}

TEST(Memory, SmallBlocksAreRecycled) {
  for (int i = 0; i < 8; ++i) deallocate(allocate(200), 200);  // surplus of a fresh chunk goes to the shared list
  void* first = allocate(200);
  deallocate(first, 200);
  EXPECT_EQ(allocate(130), first);  // one size class
  deallocate(first, 130);
}

TEST(Memory, BlocksDoNotOverlap) {
  std::vector<Piece> pieces;
  for (int i = 0; i < 3000; ++i)
    pieces.push_back(make(static_cast<std::size_t>(i * 7 % 5000), static_cast<unsigned char>(i)));
  for (const auto& p : pieces) EXPECT_TRUE(release(p));
}

#ifndef __SANITIZE_ADDRESS__
TEST(Memory, ALargeBlockIsUsedAgainByTheNextOfItsSize) {
  void* first = allocate(kMiB);
  void* other = allocate(2 * kMiB);
  deallocate(first, kMiB);
  deallocate(other, 2 * kMiB);
  const std::size_t before = kept_bytes();
  void* again = allocate(kMiB - 100);  // the same size class
  EXPECT_EQ(again, first);
  EXPECT_EQ(kept_bytes(), before - kMiB);
  deallocate(again, kMiB - 100);
}

TEST(Memory, WhatIsKeptIsBounded) {
  std::vector<void*> blocks;
  for (int i = 0; i < 40; ++i) blocks.push_back(allocate((8 + static_cast<std::size_t>(i)) * kMiB));
  for (int i = 0; i < 40; ++i) deallocate(blocks[i], (8 + static_cast<std::size_t>(i)) * kMiB);
  EXPECT_LE(kept_bytes(), 256 * kMiB);
  EXPECT_GE(kept_bytes(), 128 * kMiB);
  const std::size_t before = kept_bytes();
  deallocate(allocate(300 * kMiB), 300 * kMiB);  // larger than all that is kept: straight back to the system
  EXPECT_EQ(kept_bytes(), before);
}
#endif

TEST(Memory, ThreadsShareLargeBlocks) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([t] {
      for (int i = 0; i < 200; ++i) {
        const std::size_t bytes = kMiB / 4 + static_cast<std::size_t>((i * 37 + t) % 9) * 65536;
        EXPECT_TRUE(release(make(bytes, static_cast<unsigned char>(t + 1))));
      }
    });
  for (std::thread& t : threads) t.join();
}

// Blocks are made on one thread and freed on another, as the data pipeline does; threads come and go.
TEST(Memory, AcrossThreads) {
  std::mutex mutex;
  std::vector<Piece> shared;
  std::atomic<int> broken{0};
  for (int round = 0; round < 4; ++round) {
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&, t] {
        for (int i = 0; i < 4000; ++i) {
          const Piece mine =
              make(static_cast<std::size_t>((i * 13 + t * 101) % 1500), static_cast<unsigned char>(i + t));
          Piece other{nullptr, 0, 0};
          {
            const std::lock_guard lock(mutex);
            shared.push_back(mine);
            if (shared.size() > 64) std::swap(other, shared[static_cast<std::size_t>(i) % 64]);
            if (other.data) {
              shared[static_cast<std::size_t>(i) % 64] = shared.back();
              shared.pop_back();
            }
          }
          if (other.data && !release(other)) ++broken;
        }
      });
    for (auto& t : threads) t.join();
  }
  for (const auto& p : shared)
    if (!release(p)) ++broken;
  EXPECT_EQ(broken.load(), 0);
}

// A thread-local object may free its block after the pool's own thread-local state is gone.
TEST(Memory, FreedWhileThreadExits) {
  struct Holder {
    Piece piece{nullptr, 0, 0};
    ~Holder() {
      if (piece.data) release(piece);
      release(make(100, 3));
    }
  };
  for (int i = 0; i < 50; ++i)
    std::thread([] {
      static thread_local Holder holder;  // constructed before the pool's state, so destroyed after it
      holder.piece = make(100, 7);
    }).join();
}

}  // namespace
}  // namespace undertow
