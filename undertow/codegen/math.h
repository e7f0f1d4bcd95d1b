// SPDX-License-Identifier: Apache-2.0
// codegen/math.h: elementary functions as LLVM IR, one expansion per function for scalars and vectors alike, so that an
// element's bits do not depend on where in a buffer it stands.
//
// float32: polynomials fitted for these ranges (minimax), with explicit fma; within 2 ulp, erf, tanh and pow within 4.
// float64 and integers: a call per vector to a helper that calls libm per lane (runtime.h).
#pragma once

#include <llvm/IR/IRBuilder.h>

#include "undertow/ir/expr.h"

namespace undertow::codegen {

/// kExp ... kAtan2, kPow and kRem, on scalars or vectors of `dtype`; y is null for functions of one argument.
llvm::Value* emit_math(llvm::IRBuilder<>& b, ir::Opcode op, DType dtype, llvm::Value* x, llvm::Value* y);

}  // namespace undertow::codegen
