// SPDX-License-Identifier: Apache-2.0
#include <llvm/IR/Intrinsics.h>

#include <limits>

#include "undertow/base/check.h"
#include "undertow/codegen/emit_scalar.h"
#include "undertow/codegen/math.h"

namespace undertow::codegen {
namespace {

using ir::Opcode;
using ir::ReduceOp;
using llvm::Constant;
using llvm::Value;

Constant* splat_int(llvm::Type* t, std::int64_t v) {
  return llvm::ConstantInt::get(t, static_cast<std::uint64_t>(v), true);
}

int lanes_of(Value* v) {
  const auto* t = llvm::dyn_cast<llvm::FixedVectorType>(v->getType());
  return t ? static_cast<int>(t->getNumElements()) : 1;
}

bool is_not_nan(Value* v) {
  auto* c = llvm::dyn_cast<Constant>(v);
  if (c && c->getType()->isVectorTy()) c = c->getSplatValue();
  const auto* fp = llvm::dyn_cast_or_null<llvm::ConstantFP>(c);
  return fp && !fp->isNaN();
}

/// A NaN in either operand is the result. Written so that it becomes one maxps where an operand is known not to be NaN,
/// and maxps, cmpps, blendvps otherwise: maxps returns its second operand when either is NaN.
Value* float_min_max(Builder& b, bool max, Value* x, Value* y) {
  if (is_not_nan(x)) std::swap(x, y);
  const auto pick = [&](Value* first, Value* second) {
    return b.CreateSelect(max ? b.CreateFCmpOGT(first, second) : b.CreateFCmpOLT(first, second), first, second);
  };
  if (is_not_nan(y)) return pick(y, x);
  return b.CreateSelect(b.CreateFCmpUNO(x, x), x, pick(x, y));
}

Value* min_max(Builder& b, bool max, DType dtype, Value* x, Value* y) {
  if (is_floating(dtype)) return float_min_max(b, max, x, y);
  if (dtype == DType::kBool) return max ? b.CreateOr(x, y) : b.CreateAnd(x, y);
  const auto id = is_signed(dtype) ? (max ? llvm::Intrinsic::smax : llvm::Intrinsic::smin)
                                   : (max ? llvm::Intrinsic::umax : llvm::Intrinsic::umin);
  return b.CreateBinaryIntrinsic(id, x, y);
}

/// By zero gives 0; the lowest value by -1 wraps.
Value* int_div(Builder& b, DType dtype, bool rem, Value* x, Value* y) {
  llvm::Type* t = x->getType();
  Value* zero = b.CreateICmpEQ(y, splat_int(t, 0));
  if (!is_signed(dtype)) {
    Value* by = b.CreateSelect(zero, splat_int(t, 1), y);
    return b.CreateSelect(zero, splat_int(t, 0), rem ? b.CreateURem(x, by) : b.CreateUDiv(x, by));
  }
  Value* minus = b.CreateICmpEQ(y, splat_int(t, -1));
  Value* by = b.CreateSelect(b.CreateOr(zero, minus), splat_int(t, 1), y);
  if (rem) return b.CreateSRem(x, by);  // by 1: 0, as wanted for 0 and -1
  Value* q = b.CreateSelect(minus, b.CreateNeg(x), b.CreateSDiv(x, by));
  return b.CreateSelect(zero, splat_int(t, 0), q);
}

/// Shifts by the width or more give 0, or the sign.
Value* int_shift(Builder& b, DType dtype, bool left, Value* x, Value* y) {
  llvm::Type* t = x->getType();
  const auto width = static_cast<std::int64_t>(t->getScalarSizeInBits());
  if (!left && is_signed(dtype))
    return b.CreateAShr(x, b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, y, splat_int(t, width - 1)));
  Value* fits = b.CreateICmpULT(y, splat_int(t, width));
  Value* by = b.CreateSelect(fits, y, splat_int(t, 0));
  return b.CreateSelect(fits, left ? b.CreateShl(x, by) : b.CreateLShr(x, by), splat_int(t, 0));
}

Value* arithmetic(Builder& b, Opcode op, DType dtype, Value* x, Value* y) {
  const bool f = is_floating(dtype), boolean = dtype == DType::kBool;
  switch (op) {
    case Opcode::kAdd: return f ? b.CreateFAdd(x, y) : boolean ? b.CreateOr(x, y) : b.CreateAdd(x, y);
    case Opcode::kSub: return f ? b.CreateFSub(x, y) : boolean ? b.CreateXor(x, y) : b.CreateSub(x, y);
    case Opcode::kMul: return f ? b.CreateFMul(x, y) : boolean ? b.CreateAnd(x, y) : b.CreateMul(x, y);
    case Opcode::kDiv: return f ? b.CreateFDiv(x, y) : boolean ? b.CreateAnd(x, y) : int_div(b, dtype, false, x, y);
    case Opcode::kRem:
      if (f) return emit_math(b, op, compute_type(dtype), x, y);
      return boolean ? Constant::getNullValue(x->getType()) : int_div(b, dtype, true, x, y);
    default: return nullptr;
  }
}

Value* compare(Builder& b, Opcode op, DType dtype, Value* x, Value* y) {
  using P = llvm::CmpInst::Predicate;
  const bool f = is_floating(dtype), s = is_signed(dtype);
  const auto predicate = [&](P real, P sign, P plain) { return f ? real : s ? sign : plain; };
  P p = P::FCMP_FALSE;
  switch (op) {
    case Opcode::kEq: p = predicate(P::FCMP_OEQ, P::ICMP_EQ, P::ICMP_EQ); break;
    case Opcode::kNe: p = predicate(P::FCMP_UNE, P::ICMP_NE, P::ICMP_NE); break;
    case Opcode::kLt: p = predicate(P::FCMP_OLT, P::ICMP_SLT, P::ICMP_ULT); break;
    case Opcode::kLe: p = predicate(P::FCMP_OLE, P::ICMP_SLE, P::ICMP_ULE); break;
    case Opcode::kGt: p = predicate(P::FCMP_OGT, P::ICMP_SGT, P::ICMP_UGT); break;
    default: p = predicate(P::FCMP_OGE, P::ICMP_SGE, P::ICMP_UGE); break;
  }
  return b.CreateCmp(p, x, y);
}

Value* unary(Builder& b, Opcode op, DType dtype, Value* x) {
  namespace I = llvm::Intrinsic;
  const bool f = is_floating(dtype);
  const auto rounding = [&](I::ID id) -> Value* { return f ? b.CreateUnaryIntrinsic(id, x) : x; };
  switch (op) {
    case Opcode::kNeg: return f ? b.CreateFNeg(x) : dtype == DType::kBool ? x : b.CreateNeg(x);
    case Opcode::kAbs:
      if (f) return b.CreateUnaryIntrinsic(I::fabs, x);
      return is_signed(dtype) ? b.CreateBinaryIntrinsic(I::abs, x, b.getFalse()) : x;
    case Opcode::kSqrt: return rounding(I::sqrt);
    case Opcode::kFloor: return rounding(I::floor);
    case Opcode::kCeil: return rounding(I::ceil);
    case Opcode::kRound: return rounding(I::roundeven);
    case Opcode::kTrunc: return rounding(I::trunc);
    case Opcode::kNot: return b.CreateNot(x);
    default: return emit_math(b, op, compute_type(dtype), x, nullptr);
  }
}

/// Philox4x32-10 as in base/philox.h, the first of the four words. The counter is (index, step), the key the seed with
/// the stream mixed into its high half. Words live in 64-bit lanes whose high halves may hold anything: a product takes
/// only the low ones, and nothing has to be moved between lanes of different widths.
Value* random(Builder& b, std::int64_t stream, Value* seed, Value* step, Value* index) {
  auto& context = b.getContext();
  const int lanes = lanes_of(index);
  llvm::Type* u64 = index->getType();
  const auto k = [&](std::uint64_t v) { return llvm::ConstantInt::get(u64, v); };
  const auto high = [&](Value* v) { return b.CreateLShr(v, k(32)); };
  const auto product = [&](std::uint64_t m, Value* v) { return b.CreateMul(b.CreateAnd(v, k(0xffffffffu)), k(m)); };
  Value *c0 = index, *c1 = high(index), *c2 = step, *c3 = high(step);
  Value *k0 = seed, *k1 = b.CreateXor(high(seed), k(static_cast<std::uint64_t>(stream)));
  for (int round = 0; round < 10; ++round) {
    Value *p0 = product(0xD2511F53u, c0), *p1 = product(0xCD9E8D57u, c2);
    c0 = b.CreateXor(b.CreateXor(high(p1), c1), k0);
    c2 = b.CreateXor(b.CreateXor(high(p0), c3), k1);
    c1 = p1;
    c3 = p0;
    k0 = b.CreateAdd(k0, k(0x9E3779B9u));
    k1 = b.CreateAdd(k1, k(0xBB67AE85u));
  }
  llvm::Type* f32 = register_type(context, DType::kFloat32, lanes);
  Value* word = b.CreateTrunc(c0, register_type(context, DType::kUInt32, lanes));
  return b.CreateFMul(b.CreateSIToFP(b.CreateLShr(word, 8), f32), llvm::ConstantFP::get(f32, 0x1p-24));
}

}  // namespace

Value* emit_constant(llvm::LLVMContext& c, const ir::ExprInst& inst) {
  llvm::Type* t = register_type(c, inst.dtype, 1);
  if (is_floating(inst.dtype)) return llvm::ConstantFP::get(t, inst.fimm);
  if (inst.dtype == DType::kBool) return llvm::ConstantInt::getBool(c, inst.imm != 0);
  return splat_int(t, inst.imm);
}

Value* emit_cast(Builder& b, DType from, DType to, Value* x) {
  if (from == to) return x;
  if (is_half(to)) return round_to_half(b, to, emit_cast(b, from, DType::kFloat32, x));
  if (is_half(from)) from = DType::kFloat32;
  if (from == to) return x;
  llvm::Type* t = register_type(b.getContext(), to, lanes_of(x));
  if (to == DType::kBool) {
    Value* zero = Constant::getNullValue(x->getType());
    return is_floating(from) ? b.CreateFCmpUNE(x, zero) : b.CreateICmpNE(x, zero);
  }
  if (is_floating(from) && is_floating(to)) return b.CreateFPCast(x, t);
  if (is_floating(from))
    return b.CreateIntrinsic(is_signed(to) ? llvm::Intrinsic::fptosi_sat : llvm::Intrinsic::fptoui_sat,
                             {t, x->getType()}, {x});
  const bool s = is_signed(from);
  if (is_floating(to)) return s ? b.CreateSIToFP(x, t) : b.CreateUIToFP(x, t);
  return b.CreateIntCast(x, t, s);
}

Value* emit_inst(Builder& b, const ir::ExprInst& inst, DType from, Value* x, Value* y, Value* z) {
  switch (inst.op) {
    case Opcode::kCast: return emit_cast(b, from, inst.dtype, x);
    case Opcode::kAdd:
    case Opcode::kSub:
    case Opcode::kMul:
    case Opcode::kDiv:
    case Opcode::kRem: return arithmetic(b, inst.op, inst.dtype, x, y);
    case Opcode::kMin:
    case Opcode::kMax: return min_max(b, inst.op == Opcode::kMax, inst.dtype, x, y);
    case Opcode::kPow:
    case Opcode::kAtan2: return emit_math(b, inst.op, compute_type(inst.dtype), x, y);
    case Opcode::kEq:
    case Opcode::kNe:
    case Opcode::kLt:
    case Opcode::kLe:
    case Opcode::kGt:
    case Opcode::kGe: return compare(b, inst.op, from, x, y);
    case Opcode::kAnd: return b.CreateAnd(x, y);
    case Opcode::kOr: return b.CreateOr(x, y);
    case Opcode::kXor: return b.CreateXor(x, y);
    case Opcode::kShl:
    case Opcode::kShr: return int_shift(b, inst.dtype, inst.op == Opcode::kShl, x, y);
    case Opcode::kSelect: return b.CreateSelect(x, y, z);
    case Opcode::kRandom: return random(b, inst.imm, x, y, z);
    default: return unary(b, inst.op, inst.dtype, x);
  }
}

Value* emit_reduce(Builder& b, ReduceOp op, DType dtype, Value* x, Value* accumulator) {
  switch (op) {
    case ReduceOp::kSum: return arithmetic(b, Opcode::kAdd, dtype, accumulator, x);
    case ReduceOp::kProd: return arithmetic(b, Opcode::kMul, dtype, accumulator, x);
    default: return min_max(b, op == ReduceOp::kMax, dtype, x, accumulator);
  }
}

Value* reduce_identity(llvm::LLVMContext& c, ReduceOp op, DType dtype, int lanes) {
  llvm::Type* t = register_type(c, dtype, lanes);
  const auto bits = t->getScalarSizeInBits();
  const bool f = is_floating(dtype);
  switch (op) {
    case ReduceOp::kSum: return Constant::getNullValue(t);
    case ReduceOp::kProd: return f ? llvm::ConstantFP::get(t, 1) : llvm::ConstantInt::get(t, 1);
    case ReduceOp::kMax:
      if (f) return llvm::ConstantFP::getInfinity(t, true);
      return llvm::ConstantInt::get(t, is_signed(dtype) ? llvm::APInt::getSignedMinValue(bits) : llvm::APInt(bits, 0));
    case ReduceOp::kMin: break;
  }
  if (f) return llvm::ConstantFP::getInfinity(t, false);
  return llvm::ConstantInt::get(
      t, is_signed(dtype) ? llvm::APInt::getSignedMaxValue(bits) : llvm::APInt::getMaxValue(bits));
}

Value* emit_horizontal(Builder& b, ReduceOp op, DType dtype, Value* x) {
  for (int n = lanes_of(x) / 2; n >= 1; n /= 2) {
    std::vector<int> low, high;
    for (int i = 0; i < n; ++i) low.push_back(i), high.push_back(n + i);
    x = emit_reduce(b, op, dtype, b.CreateShuffleVector(x, high), b.CreateShuffleVector(x, low));
  }
  return x->getType()->isVectorTy() ? b.CreateExtractElement(x, std::uint64_t{0}) : x;
}

}  // namespace undertow::codegen
