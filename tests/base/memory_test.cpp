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
