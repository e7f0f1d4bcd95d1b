// SPDX-License-Identifier: Apache-2.0
// codegen/codegen.h: loop nests to native code. LLVM stays behind this header.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "undertow/ir/loop_nest.h"

namespace undertow::codegen {

struct CompiledNest {
  /// args: the buffers of the nest's inputs, then of its outputs. Runs the units [begin, end), a part of [0, units):
  /// units are independent, and however they are split over calls and threads, the result has the same bits.
  using Fn = void (*)(void* const* args, std::int64_t begin, std::int64_t end);
  Fn fn = nullptr;
  std::int64_t units = 0;
  double cost = 0;  // of all units on one core, in ns; a rough model of bytes and operations
  /// An output may share its memory with an input of the same element size if all loads of that input have exactly the
  /// output's access: every element is read before it is written.
  bool in_place_ok = false;
  std::shared_ptr<void> module;  // keeps the code alive
};

/// Compiles all nests into one module, equal ones once; the results are in the order of `nests`. Code is kept in memory
/// for the process and on disk (object_cache.h), and which of these has it makes no difference to any bit of a result.
/// Safe to call from several threads; one compiles at a time.
///
/// UNDERTOW_ISA chooses the instruction set (isa.h); UNDERTOW_DUMP_LLVM=1 prints IR to stderr, =asm the assembly too.
std::vector<CompiledNest> compile(std::span<const ir::LoopNest* const> nests);

/// Counts since the start of the process, for tests and the profiler.
struct CompileStats {
  std::int64_t nests_compiled = 0, nests_in_memory = 0, modules_from_disk = 0, modules_compiled = 0;
};
CompileStats compile_stats();
/// Drops the memory cache; code in use stays.
void clear_memory_cache();

}  // namespace undertow::codegen
