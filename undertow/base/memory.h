// SPDX-License-Identifier: Apache-2.0
// base/memory.h: aligned blocks, and pools that recycle small and large ones.
//
// Tensors of a few elements come and go in data sources and map operations; the pool keeps their blocks, so that a
// program in a steady state takes nothing from the system allocator. Large blocks come and go in eager steps: given
// back to the system, each costs a page fault per 4 KiB when it is written again.
#pragma once

#include <cstddef>

namespace undertow {

inline constexpr std::size_t kAlignment = 64;
inline constexpr std::size_t kHugePage = std::size_t{2} << 20;

/// A block aligned to 64 bytes; 2 MiB-aligned and advised for huge pages from 4 MiB up. Blocks of up to 4 KiB come from
/// the pool; of those from 256 KiB up, the last freed ones, 256 MiB in all, wait for the next of their size class.
/// Throws std::bad_alloc. `bytes` may be 0.
void* allocate(std::size_t bytes);
/// `bytes` must be what was asked for.
void deallocate(void* block, std::size_t bytes) noexcept;
/// Bytes of large blocks that wait for their next use.
std::size_t kept_bytes();

/// Mix-in: objects of a class are allocated from the pool.
struct Pooled {
  static void* operator new(std::size_t bytes) { return allocate(bytes); }
  static void operator delete(void* p, std::size_t bytes) noexcept { deallocate(p, bytes); }
};

}  // namespace undertow
