// SPDX-License-Identifier: Apache-2.0
#include "undertow/codegen/math.h"

#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>

#include <limits>

#include "undertow/base/check.h"
#include "undertow/codegen/runtime.h"

namespace undertow::codegen {
namespace {

using ir::Opcode;
using llvm::Value;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// Arithmetic on values of one shape: scalars or vectors of float32 or float64, with integers of the same width.
struct Math {
  llvm::IRBuilder<>& b;
  llvm::Type* type;     // float or double, or a vector
  llvm::Type* integer;  // as wide

  Math(llvm::IRBuilder<>& builder, llvm::Type* t) : b(builder), type(t) {
    integer = t->getWithNewType(b.getIntNTy(t->getScalarSizeInBits()));
  }
  Value* c(double v) const { return llvm::ConstantFP::get(type, v); }
  Value* i(std::int64_t v) const { return llvm::ConstantInt::get(integer, static_cast<std::uint64_t>(v), true); }
  Value* bits(Value* v) const { return b.CreateBitCast(v, integer); }
  Value* real(Value* v) const { return b.CreateBitCast(v, type); }
  Value* add(Value* x, Value* y) const { return b.CreateFAdd(x, y); }
  Value* sub(Value* x, Value* y) const { return b.CreateFSub(x, y); }
  Value* mul(Value* x, Value* y) const { return b.CreateFMul(x, y); }
  Value* fma(Value* x, Value* y, Value* z) const { return b.CreateIntrinsic(llvm::Intrinsic::fma, {type}, {x, y, z}); }
  Value* abs(Value* x) const { return b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x); }
  Value* copysign(Value* x, Value* sign) const { return b.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, x, sign); }
  Value* select(Value* m, Value* x, Value* y) const { return b.CreateSelect(m, x, y); }
  /// min and max with a bound; a NaN stays.
  Value* at_most(Value* x, double bound) const { return select(b.CreateFCmpOLT(c(bound), x), c(bound), x); }
  Value* at_least(Value* x, double bound) const { return select(b.CreateFCmpOGT(c(bound), x), c(bound), x); }
  /// coefficients from the constant up.
  template <std::size_t N>
  Value* poly(Value* x, const double (&k)[N]) const {
    Value* p = c(k[N - 1]);
    for (std::size_t n = N - 1; n-- > 0;) p = fma(p, x, c(k[n]));
    return p;
  }
};

constexpr double kLog2e = 0x1.715476p+0, kLn2Hi = 0x1.62e43p-1, kLn2Lo = -0x1.05c61p-29;
constexpr double kMagic = 0x1.8p23;  // x + kMagic holds rint(x) in its low bits
constexpr std::int64_t kMagicBits = 0x4b400000;

// (e^r - 1 - r) / r^2 on [-ln2/2, ln2/2]
constexpr double kExpPoly[] = {0x1.fffffcp-2, 0x1.55549p-3, 0x1.5558f4p-5, 0x1.123a6cp-7, 0x1.6a2352p-10};
// (log(1+f) - f + f^2/2) / f^3 on [sqrt(1/2)-1, sqrt(2)-1]
constexpr double kLogPoly[] = {0x1.555548p-2,  -0x1.000006p-2, 0x1.99a4b6p-3,  -0x1.555c4ep-3, 0x1.233768p-3,
                               -0x1.fc2206p-4, 0x1.e6f062p-4,  -0x1.de3c1cp-4, 0x1.1457cp-4};
// (sin(r)/r - 1) / z and (cos(r) - 1 + z/2) / z^2 in z = r^2, |r| <= pi/4
constexpr double kSinPoly[] = {-0x1.555546p-3, 0x1.110756p-7, -0x1.994b4p-13};
constexpr double kCosPoly[] = {0x1.55554ap-5, -0x1.6c0c82p-10, 0x1.99ff4p-16};
// erf(a)/a - 1 in a^2, a <= 0.9275; log(erfc(a)) in a, 0.92 <= a <= 4
constexpr double kErfSmall[] = {0x1.06eba8p-3, -0x1.812744p-2,  0x1.ce2e22p-4, -0x1.b81084p-6,
                                0x1.54d9d2p-8, -0x1.aad648p-11, 0x1.5eb406p-14};
constexpr double kErfLarge[] = {0x1.70d552p-13, -0x1.212846p+0, -0x1.44447p-1,  -0x1.bb926cp-4,
                                0x1.9bb50ep-6,  -0x1.1196d4p-8, 0x1.c85bf8p-12, -0x1.630966p-16};
// (atan(a)/a - 1) / z in z = a^2, a <= 1
constexpr double kAtanPoly[] = {-0x1.555540p-2, 0x1.999276p-3,  -0x1.2426f8p-3, 0x1.c0d284p-4, -0x1.58dc7p-4,
                                0x1.dd0ebep-5,  -0x1.01af6cp-5, 0x1.6a8f54p-7,  -0x1.defe5p-10};
// 2^r on [-1/2, 1/2]; log2(m) = s * P(s^2), s = (m-1)/(m+1), the series of atanh. In float64, for pow.
constexpr double kExp2Poly[] = {9.99999999961621144e-01, 6.93147180728709733e-01, 2.40226511987567171e-01,
                                5.55041035284833742e-02, 9.61802717252851873e-03, 1.33339228425300533e-03,
                                1.54693173761574293e-04, 1.52019042001991206e-05};
constexpr double kTwoOverLn2 = 2.88539008177792681;
constexpr double kLog2Poly[] = {kTwoOverLn2,     kTwoOverLn2 / 3, kTwoOverLn2 / 5,
                                kTwoOverLn2 / 7, kTwoOverLn2 / 9, kTwoOverLn2 / 11};

/// x = n ln2 + r: returns r, and t whose bits hold n above kMagicBits.
struct Reduced {
  Value *r, *t;
};
Reduced reduce_exp(const Math& m, Value* x) {
  Value* t = m.fma(x, m.c(kLog2e), m.c(kMagic));
  Value* n = m.sub(t, m.c(kMagic));
  Value* r = m.fma(n, m.c(-kLn2Hi), x);
  return {m.fma(n, m.c(-kLn2Lo), r), t};
}

Value* expm1_reduced(const Math& m, Value* r) { return m.fma(m.mul(r, r), m.poly(r, kExpPoly), r); }

/// 2^n for an integer in [-126, 127].
Value* power_of_two(const Math& m, Value* n) { return m.real(m.b.CreateShl(m.b.CreateAdd(n, m.i(127)), m.i(23))); }

Value* emit_exp(const Math& m, Value* x) {
  // Beyond these the result is 0 or inf whatever x is.
  const auto [r, t] = reduce_exp(m, m.at_least(m.at_most(x, 89), -104));
  Value* p = m.add(expm1_reduced(m, r), m.c(1));
  // Two factors, so that denormal results round once and 2^128 does not overflow.
  Value* n = m.b.CreateSub(m.bits(t), m.i(kMagicBits));
  Value* half = m.b.CreateAShr(n, m.i(1));
  return m.mul(m.mul(p, power_of_two(m, half)), power_of_two(m, m.b.CreateSub(n, half)));
}

/// Without the sign of zero.
Value* expm1_value(const Math& m, Value* x) {
  const auto [r, t] = reduce_exp(m, m.at_least(m.at_most(x, 89), -25));
  // 2^(n-1) * (2p + 2 - 2^(1-n)), the factor two kept out: 2^128 would overflow.
  Value* s = power_of_two(m, m.b.CreateSub(m.bits(t), m.i(kMagicBits + 1)));
  Value* y = m.fma(s, expm1_reduced(m, r), m.sub(s, m.c(0.5)));
  return m.add(y, y);
}

/// e ln2 + log(1 + f) + c
Value* log_reduced(const Math& m, Value* f, Value* e, Value* c) {
  Value* z = m.mul(f, f);
  Value* y = m.mul(m.mul(f, z), m.poly(f, kLogPoly));
  y = m.fma(e, m.c(kLn2Lo), y);
  if (c) y = m.add(y, c);
  y = m.fma(z, m.c(-0.5), y);
  return m.fma(e, m.c(kLn2Hi), m.add(f, y));
}

/// u = 2^e (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)).
struct LogParts {
  Value *f, *e;
};
LogParts split_log(const Math& m, Value* u) {
  constexpr std::int64_t kSqrtHalf = 0x3f3504f3;
  Value* k = m.b.CreateSub(m.bits(u), m.i(kSqrtHalf));
  Value* mantissa = m.real(m.b.CreateAdd(m.b.CreateAnd(k, m.i(0x7fffff)), m.i(kSqrtHalf)));
  return {m.sub(mantissa, m.c(1)), m.b.CreateSIToFP(m.b.CreateAShr(k, m.i(23)), m.type)};
}

/// inf at inf, -inf where u is 0, NaN below and for NaN.
Value* log_specials(const Math& m, Value* y, Value* u) {
  y = m.select(m.b.CreateFCmpOEQ(u, m.c(kInf)), u, y);
  y = m.select(m.b.CreateFCmpOEQ(u, m.c(0)), m.c(-kInf), y);
  return m.select(m.b.CreateFCmpULT(u, m.c(0)), m.c(kNaN), y);
}

Value* emit_log(const Math& m, Value* x) {
  Value* small = m.b.CreateFCmpOLT(x, m.c(0x1p-126));
  const auto [f, e] = split_log(m, m.select(small, m.mul(x, m.c(0x1p23)), x));
  return log_specials(m, log_reduced(m, f, m.add(e, m.select(small, m.c(-23), m.c(0))), nullptr), x);
}

Value* emit_log1p(const Math& m, Value* x) {
  Value* u = m.add(x, m.c(1));
  const auto [f, e] = split_log(m, u);
  // What the rounding of 1 + x lost; where e is 0, f is replaced by x and nothing is lost.
  Value* lost = m.select(m.b.CreateFCmpOGT(u, m.c(2)), m.sub(m.c(1), m.sub(u, x)), m.sub(x, m.sub(u, m.c(1))));
  Value* near = m.b.CreateFCmpOEQ(e, m.c(0));
  Value* c = m.select(near, m.c(0), m.b.CreateFDiv(lost, u));
  Value* y = log_specials(m, log_reduced(m, m.select(near, x, f), e, c), u);
  return m.select(m.b.CreateFCmpOEQ(x, m.c(0)), x, y);
}

Value* as_slot(llvm::IRBuilder<>& b, llvm::Type* type) {
  auto& entry = b.GetInsertBlock()->getParent()->getEntryBlock();
  llvm::IRBuilder<> at_entry(&entry, entry.begin());
  return at_entry.CreateAlloca(type);
}

/// symbol(const x*, const y*, result*, lanes): through memory, since libm is scalar.
Value* call_lanes(llvm::IRBuilder<>& b, const char* symbol, Value* x, Value* y, Value* initial = nullptr) {
  llvm::Type* type = x->getType();
  auto* ptr = b.getPtrTy();
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type);
  auto* fn_type = llvm::FunctionType::get(b.getVoidTy(), {ptr, ptr, ptr, b.getInt32Ty()}, false);
  auto fn = b.GetInsertBlock()->getModule()->getOrInsertFunction(symbol, fn_type);
  Value *sx = as_slot(b, type), *sy = y ? as_slot(b, type) : sx, *sr = as_slot(b, type);
  b.CreateStore(x, sx);
  if (y) b.CreateStore(y, sy);
  if (initial) b.CreateStore(initial, sr);
  b.CreateCall(fn, {sx, sy, sr, b.getInt32(vector ? vector->getNumElements() : 1)});
  return b.CreateLoad(type, sr);
}

Value* emit_sin_cos(const Math& m, Value* x, bool cosine) {
  auto& b = m.b;
  Value* t = m.fma(x, m.c(0x1.45f306p-1), m.c(kMagic));
  Value* n = m.sub(t, m.c(kMagic));
  Value* r = m.fma(n, m.c(-0x1.921fb6p+0), x);
  r = m.fma(n, m.c(0x1.777a5cp-25), r);
  r = m.fma(n, m.c(0x1.ee59dap-50), r);
  Value* quadrant = m.bits(t);
  if (cosine) quadrant = b.CreateAdd(quadrant, m.i(1));
  Value* z = m.mul(r, r);
  Value* s = m.fma(m.mul(r, z), m.poly(z, kSinPoly), r);
  Value* c = m.fma(m.mul(z, z), m.poly(z, kCosPoly), m.fma(z, m.c(-0.5), m.c(1)));
  Value* odd = b.CreateICmpNE(b.CreateAnd(quadrant, m.i(1)), m.i(0));
  Value* y = m.select(odd, c, s);
  y = m.real(b.CreateXor(m.bits(y), b.CreateShl(b.CreateAnd(quadrant, m.i(2)), m.i(30))));
  if (!cosine) y = m.select(b.CreateFCmpOEQ(x, m.c(0)), x, y);

  // Larger arguments need more of pi than three floats.
  Value* large = b.CreateFCmpOGT(m.abs(x), m.c(1e5));
  if (x->getType()->isVectorTy()) large = b.CreateOrReduce(large);
  auto* fast_end = b.GetInsertBlock();
  auto* fn = fast_end->getParent();
  auto* slow = llvm::BasicBlock::Create(b.getContext(), "large", fn);
  auto* done = llvm::BasicBlock::Create(b.getContext(), "done", fn);
  b.CreateCondBr(large, slow, done, llvm::MDBuilder(b.getContext()).createBranchWeights(1, 1 << 20));
  b.SetInsertPoint(slow);
  Value* exact = call_lanes(b, cosine ? "undertow_cos_large_f32" : "undertow_sin_large_f32", x, nullptr, y);
  b.CreateBr(done);
  b.SetInsertPoint(done);
  auto* phi = b.CreatePHI(m.type, 2);
  phi->addIncoming(y, fast_end);
  phi->addIncoming(exact, slow);
  return phi;
}

Value* emit_tanh(const Math& m, Value* x) {
  Value* t = expm1_value(m, m.mul(m.abs(x), m.c(-2)));
  return m.copysign(m.b.CreateFDiv(t, m.add(t, m.c(2))), x);
}

Value* emit_erf(const Math& m, Value* x) {
  Value* a = m.abs(x);
  Value* small = m.fma(m.poly(m.mul(a, a), kErfSmall), a, a);
  Value* large = m.sub(m.c(1), emit_exp(m, m.poly(m.at_most(a, 4), kErfLarge)));
  return m.copysign(m.select(m.b.CreateFCmpOGT(a, m.c(0.925)), large, small), x);
}

Value* emit_atan2(const Math& m, Value* y, Value* x) {
  auto& b = m.b;
  Value *ax = m.abs(x), *ay = m.abs(y);
  Value* steep = b.CreateFCmpOGT(ay, ax);
  Value *large = m.select(steep, ay, ax), *small = m.select(steep, ax, ay);
  Value* a = b.CreateFDiv(small, large);
  a = m.select(b.CreateFCmpOEQ(large, m.c(0)), m.c(0), a);
  a = m.select(b.CreateFCmpOEQ(small, m.c(kInf)), m.c(1), a);
  Value* z = m.mul(a, a);
  Value* r = m.fma(m.mul(a, z), m.poly(z, kAtanPoly), a);
  r = m.select(steep, m.sub(m.c(0x1.921fb6p+0), r), r);
  r = m.select(b.CreateICmpSLT(m.bits(x), m.i(0)), m.sub(m.c(0x1.921fb6p+1), r), r);
  return m.select(b.CreateFCmpUNO(x, y), m.add(x, y), m.copysign(r, y));
}

/// |x|^y through float64: log2 and exp2 with 30 good bits.
Value* power_magnitude(const Math& m, Value* x, Value* y) {
  auto& b = m.b;
  const Math d(b, m.type->getWithNewType(b.getDoubleTy()));
  Value* a = b.CreateFPExt(m.abs(x), d.type);
  constexpr std::int64_t kSqrtHalf = 0x3fe6a09e667f3bcd;
  Value* k = b.CreateSub(d.bits(a), d.i(kSqrtHalf));
  Value* mantissa = d.real(b.CreateAdd(b.CreateAnd(k, d.i(0xfffffffffffff)), d.i(kSqrtHalf)));
  Value* e = b.CreateSIToFP(b.CreateTrunc(b.CreateAShr(k, d.i(52)), m.integer), d.type);
  Value* s = b.CreateFDiv(d.sub(mantissa, d.c(1)), d.add(mantissa, d.c(1)));
  Value* log2 = d.fma(s, d.poly(d.mul(s, s), kLog2Poly), e);
  log2 = d.select(b.CreateFCmpOEQ(a, d.c(0)), d.c(-kInf), log2);
  log2 = d.select(b.CreateFCmpOEQ(a, d.c(kInf)), d.c(kInf), log2);
  Value* w = d.mul(b.CreateFPExt(y, d.type), log2);
  w = d.select(b.CreateFCmpOEQ(log2, d.c(0)), d.c(0), w);  // 1^inf
  w = d.at_least(d.at_most(w, 200), -200);
  constexpr double kMagic64 = 0x1.8p52;
  Value* t = d.add(w, d.c(kMagic64));
  Value* p = d.poly(d.sub(w, d.sub(t, d.c(kMagic64))), kExp2Poly);
  // The low bits of t hold the exponent; shifting them up drops the rest.
  Value* scale = d.real(b.CreateShl(b.CreateAdd(d.bits(t), d.i(1023)), d.i(52)));
  return b.CreateFPTrunc(d.mul(p, scale), m.type);
}

Value* emit_pow(const Math& m, Value* x, Value* y) {
  auto& b = m.b;
  if (auto* constant = llvm::dyn_cast<llvm::Constant>(y)) {
    if (constant->getType()->isVectorTy()) constant = constant->getSplatValue();
    if (const auto* fp = llvm::dyn_cast_or_null<llvm::ConstantFP>(constant)) {
      const float v = fp->getValueAPF().convertToFloat();
      if (v == 1) return x;
      if (v == 2) return m.mul(x, x);
      if (v == 3) return m.mul(m.mul(x, x), x);
      if (v == -1) return b.CreateFDiv(m.c(1), x);
      if (v == 0.5f)  // sqrt, but +0 at -0 and inf at -inf
        return m.select(b.CreateFCmpOEQ(x, m.c(-kInf)), m.c(kInf),
                        m.add(b.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, x), m.c(0)));
    }
  }
  const auto floor = [&](Value* v) { return b.CreateUnaryIntrinsic(llvm::Intrinsic::floor, v); };
  Value* r = power_magnitude(m, x, y);
  Value* half = m.mul(y, m.c(0.5));
  Value* integral = b.CreateFCmpOEQ(floor(y), y);
  Value* odd = b.CreateAnd(integral, b.CreateFCmpONE(floor(half), half));
  Value* negative = b.CreateICmpSLT(m.bits(x), m.i(0));
  r = m.select(b.CreateAnd(negative, odd), b.CreateFNeg(r), r);
  // A negative number has no fractional power; -0 and -inf have.
  Value* undefined = b.CreateAnd(b.CreateFCmpOLT(x, m.c(0)), b.CreateFCmpONE(x, m.c(-kInf)));
  r = m.select(b.CreateAnd(undefined, b.CreateNot(integral)), m.c(kNaN), r);
  r = m.select(b.CreateFCmpUNO(x, y), m.c(kNaN), r);
  return m.select(b.CreateOr(b.CreateFCmpOEQ(x, m.c(1)), b.CreateFCmpOEQ(y, m.c(0))), m.c(1), r);
}

Value* emit_f32(const Math& m, Opcode op, Value* x, Value* y) {
  switch (op) {
    case Opcode::kExp: return emit_exp(m, x);
    case Opcode::kExpm1: return m.copysign(expm1_value(m, x), x);
    case Opcode::kLog: return emit_log(m, x);
    case Opcode::kLog1p: return emit_log1p(m, x);
    case Opcode::kSin: return emit_sin_cos(m, x, false);
    case Opcode::kCos: return emit_sin_cos(m, x, true);
    case Opcode::kTanh: return emit_tanh(m, x);
    case Opcode::kErf: return emit_erf(m, x);
    case Opcode::kAtan2: return emit_atan2(m, x, y);
    case Opcode::kPow: return emit_pow(m, x, y);
    default: return nullptr;
  }
}

}  // namespace

Value* emit_math(llvm::IRBuilder<>& b, Opcode op, DType dtype, Value* x, Value* y) {
  if (compute_type(dtype) == DType::kFloat32)
    if (Value* v = emit_f32(Math(b, x->getType()), op, x, y)) return v;
  const char* symbol = runtime_symbol(op, dtype);
  UNDERTOW_ASSERT(symbol);
  return call_lanes(b, symbol, x, y);
}

}  // namespace undertow::codegen
