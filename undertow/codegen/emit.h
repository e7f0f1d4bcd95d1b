// SPDX-License-Identifier: Apache-2.0
// codegen/emit.h: a scheduled nest as an LLVM function.
#pragma once

#include <string>

#include "undertow/codegen/isa.h"
#include "undertow/codegen/schedule.h"
#include "undertow/ir/loop_nest.h"

namespace llvm {
class Module;
}

namespace undertow::codegen {

/// Adds void name(ptr args, i64 begin, i64 end) to `module`; the arguments are those of CompiledNest::Fn. The vectors
/// in it are explicit; accumulators are in stack slots, which mem2reg turns into registers.
void emit_nest(llvm::Module& module, const ir::LoopNest& nest, const Schedule& schedule, const Isa& isa,
               const std::string& name);

}  // namespace undertow::codegen
