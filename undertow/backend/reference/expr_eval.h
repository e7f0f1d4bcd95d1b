// SPDX-License-Identifier: Apache-2.0
// backend/reference/expr_eval.h: interprets a scalar expression over blocks of elements, with libm's functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "undertow/ir/expr.h"

namespace undertow::backend::reference {

class ExprEval {
 public:
  static constexpr int kBlock = 256;

  /// Throws Error for an operation on a type that has none (the exponential of an integer).
  explicit ExprEval(ir::Expr expr);

  /// Evaluates `n` <= kBlock consecutive elements. inputs[i] holds `n` of expr.inputs[i]; `index` is the first one's.
  void run(std::span<const void* const> inputs, std::int64_t index, int n);
  /// The i-th result of the last run, in its compute type.
  const void* result(int i) const { return reg(expr_.results[static_cast<std::size_t>(i)]); }
  DType result_dtype(int i) const { return expr_.insts[static_cast<std::size_t>(expr_.results[i])].dtype; }
  /// Writes the first `n` values of the i-th result, rounded to `dtype`.
  void store(int i, DType dtype, void* out, int n) const;

 private:
  const void* reg(std::int32_t id) const { return registers_.data() + static_cast<std::size_t>(id) * kBlock; }
  void* reg(std::int32_t id) { return registers_.data() + static_cast<std::size_t>(id) * kBlock; }
  void step(const ir::ExprInst& inst, void* out, std::span<const void* const> inputs, std::int64_t index, int n);

  ir::Expr expr_;
  std::vector<std::uint64_t> registers_;  // kBlock words of 8 bytes for each instruction
};

}  // namespace undertow::backend::reference
