// SPDX-License-Identifier: Apache-2.0
// codegen/runtime.h: functions that generated code calls, lane by lane: what has no vector form here.
#pragma once

#include <span>
#include <utility>

#include "undertow/ir/expr.h"

namespace undertow::codegen {

/// Symbol of a function (const x*, const y*, result*, int lanes) for kExp ... kAtan2, kPow and kRem; null if none.
const char* runtime_symbol(ir::Opcode op, DType dtype);

/// Every symbol with its address, for the linker of generated code.
std::span<const std::pair<const char*, void*>> runtime_symbols();

}  // namespace undertow::codegen
