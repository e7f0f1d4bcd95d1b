// SPDX-License-Identifier: Apache-2.0
// ir/expr.h: scalar expressions: what one element of an elementwise op is, written once.
//
// Code generation, fusion and the reference backend all read this form. The types are compute types: half inputs are
// widened to float32 by their load, and rounded again by a Cast where an op's result is half.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "undertow/base/dtype.h"
#include "undertow/base/hash.h"

namespace undertow::ir {

enum class Opcode : std::uint8_t {
  kInput,  // imm: which input
  kConst,  // imm (integers, bool) or fimm (floats)
  kIndex,  // int64: row-major index of the element in the iteration space
  kCast,   // a; to dtype. Float to integer truncates and saturates, NaN gives 0; to bool: non-zero
  kAdd,
  kSub,
  kMul,
  kDiv,
  kRem,  // sign of the dividend (fmod; integer division by zero gives 0)
  kMin,
  kMax,  // NaN passes through
  kPow,
  kNeg,
  kAbs,
  kSqrt,
  kFloor,
  kCeil,
  kRound /* half to even */,
  kTrunc,
  kExp,
  kExpm1,
  kLog,
  kLog1p,
  kSin,
  kCos,
  kTanh,
  kErf,
  kAtan2,
  kEq,
  kNe,
  kLt,
  kLe,
  kGt,
  kGe,  // bool; kNe is true for NaN
  kAnd,
  kOr,
  kXor,
  kNot,  // bool or integers
  kShl,
  kShr,
  kSelect,  // a ? b : c
  kRandom,  // float32 in [0, 1): Philox. a: uint64 seed, b: int64 step counter, c: int64 index; imm: the op's stream
};

struct ExprInst {
  Opcode op;
  DType dtype;  // of the result
  std::int32_t a = -1, b = -1, c = -1;
  std::int64_t imm = 0;
  double fimm = 0;
};

/// Straight-line code in SSA form; instruction i defines value i.
struct Expr {
  std::vector<ExprInst> insts;
  std::vector<std::int32_t> results;
  std::vector<DType> inputs;  // types as loaded, before widening

  void hash(Hasher& h) const;
};

class ExprBuilder;

/// A value of an expression under construction; copies freely. Operators on it append instructions.
struct Scalar {
  ExprBuilder* builder = nullptr;
  std::int32_t id = -1;
  DType dtype = DType::kFloat32;
};

class ExprBuilder {
 public:
  /// The i-th input, widened to its compute type.
  Scalar input(int i, DType dtype);
  Scalar constant(double value, DType dtype);
  Scalar constant_int(std::int64_t value, DType dtype);
  Scalar index();
  Scalar cast(Scalar x, DType dtype);
  Scalar unary(Opcode op, Scalar x);
  Scalar binary(Opcode op, Scalar x, Scalar y);  // same dtypes; comparisons give bool
  Scalar select(Scalar condition, Scalar x, Scalar y);
  Scalar random(Scalar seed, Scalar step, Scalar index, std::int64_t stream);
  void result(Scalar x) { expr_.results.push_back(x.id); }
  /// Appends `other` with its inputs replaced; returns its results. This is fusion.
  std::vector<Scalar> inline_expr(const Expr& other, std::span<const Scalar> inputs);
  Expr take() { return std::move(expr_); }

 private:
  Scalar push(ExprInst inst);
  Expr expr_;
};

// Arithmetic as it is written; a C++ number takes the type of the other side.
Scalar operator+(Scalar, Scalar);
Scalar operator-(Scalar, Scalar);
Scalar operator*(Scalar, Scalar);
Scalar operator/(Scalar, Scalar);
Scalar operator-(Scalar);
Scalar operator+(Scalar, double);
Scalar operator-(Scalar, double);
Scalar operator*(Scalar, double);
Scalar operator/(Scalar, double);
Scalar operator+(double, Scalar);
Scalar operator-(double, Scalar);
Scalar operator*(double, Scalar);
Scalar operator/(double, Scalar);
Scalar operator<(Scalar, Scalar);
Scalar operator<=(Scalar, Scalar);
Scalar operator>(Scalar, Scalar);
Scalar operator>=(Scalar, Scalar);
Scalar operator<(Scalar, double);
Scalar operator>(Scalar, double);
Scalar operator<=(Scalar, double);
Scalar operator>=(Scalar, double);
Scalar equal(Scalar, Scalar);
Scalar not_equal(Scalar, Scalar);
Scalar select(Scalar condition, Scalar x, Scalar y);
Scalar fn(Opcode op, Scalar x);  ///< fn(Opcode::kExp, x)

}  // namespace undertow::ir
