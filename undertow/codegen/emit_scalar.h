// SPDX-License-Identifier: Apache-2.0
// codegen/emit_scalar.h: LLVM IR for single steps of a nest: one expression instruction, one load, one store. Values
// are scalars or vectors of `lanes`; half types are float32 in registers, bool is i1.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include <vector>

#include "undertow/codegen/isa.h"
#include "undertow/ir/loop_nest.h"

namespace undertow::codegen {

using Builder = llvm::IRBuilder<>;

/// The type of a value of `dtype` in registers, and in memory.
llvm::Type* register_type(llvm::LLVMContext& context, DType dtype, int lanes);
llvm::Type* memory_type(llvm::LLVMContext& context, DType dtype);

llvm::Value* emit_constant(llvm::LLVMContext& context, const ir::ExprInst& inst);

/// Any instruction but kInput, kConst and kIndex. `from` is the dtype of operand a. Operands have the same lane count.
llvm::Value* emit_inst(Builder& b, const ir::ExprInst& inst, DType from, llvm::Value* x, llvm::Value* y,
                       llvm::Value* z);

/// Conversion between register values; half targets round and stay in float32.
llvm::Value* emit_cast(Builder& b, DType from, DType to, llvm::Value* x);

llvm::Value* emit_reduce(Builder& b, ir::ReduceOp op, DType dtype, llvm::Value* x, llvm::Value* accumulator);
/// What leaves the other operand as it is.
llvm::Value* reduce_identity(llvm::LLVMContext& context, ir::ReduceOp op, DType dtype, int lanes);
/// All lanes into a scalar: halves onto halves, in this order always.
llvm::Value* emit_horizontal(Builder& b, ir::ReduceOp op, DType dtype, llvm::Value* x);

/// `lanes` elements of `dtype` from `address`, `stride` elements apart, into registers. Lanes from `valid` on are not
/// touched in memory and hold anything.
llvm::Value* emit_load(Builder& b, const Isa& isa, llvm::Value* address, DType dtype, std::int64_t stride, int lanes,
                       int valid);
/// The inverse; `value` is a register value of `dtype`. `rounded`: a half value that needs no more rounding.
void emit_store(Builder& b, llvm::Value* value, llvm::Value* address, DType dtype, std::int64_t stride, int lanes,
                int valid, bool rounded);

/// The vectors as the rows of a square matrix, transposed.
std::vector<llvm::Value*> emit_transpose(Builder& b, std::vector<llvm::Value*> rows);

/// float32 rounded to a half type, held in float32.
llvm::Value* round_to_half(Builder& b, DType dtype, llvm::Value* x);

/// The first `valid` lanes, as a constant.
llvm::Value* prefix_mask(llvm::LLVMContext& context, int lanes, int valid);

}  // namespace undertow::codegen
