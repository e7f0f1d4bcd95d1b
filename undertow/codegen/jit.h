// SPDX-License-Identifier: Apache-2.0
// codegen/jit.h: LLVM modules to object code, object code to addresses. Nothing of LLVM is touched before the first
// call.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "undertow/codegen/isa.h"
#include "undertow/codegen/schedule.h"
#include "undertow/ir/loop_nest.h"

namespace undertow::codegen {

struct NestFunction {
  const ir::LoopNest* nest;
  const Schedule* schedule;
  std::string name;
};

/// The object file of one module with these functions. Not thread-safe. Throws Error when LLVM refuses, which is a
/// fault of ours. UNDERTOW_DUMP_LLVM=1 prints the optimised IR to stderr, =asm the assembly too.
std::string compile_object(std::span<const NestFunction> functions, const Isa& isa);

/// Assembly text, for people and tests.
std::string compile_assembly(std::span<const NestFunction> functions, const Isa& isa);

/// Code in memory; unmapped with the last reference.
class LoadedObject {
 public:
  virtual ~LoadedObject() = default;
  /// Throws Error if there is no such function or something that the object needs.
  virtual void* address(const std::string& name) = 0;
};
std::shared_ptr<LoadedObject> load_object(const std::string& object);

std::string llvm_version();

}  // namespace undertow::codegen
