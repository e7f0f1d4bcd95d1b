// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "undertow/backend/reference/expr_eval.h"
#include "undertow/base/error.h"
#include "undertow/base/philox.h"

namespace undertow::backend::reference {
namespace {

using ir::ExprBuilder;
using ir::Opcode;
using ir::Scalar;

constexpr float kInf = std::numeric_limits<float>::infinity();
const float kNaN = std::nanf("");

template <typename T>  // bool in a byte, since vector<bool> has no memory to point at
using Cell = std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>;
template <typename T>
using Cells = std::vector<Cell<T>>;

/// Applies `f` to inputs of type T and reads the result as R.
template <typename R, typename T>
Cells<R> apply(std::vector<Cells<T>> in, const std::function<Scalar(ExprBuilder&, std::vector<Scalar>)>& f) {
  ExprBuilder b;
  std::vector<Scalar> args;
  for (std::size_t i = 0; i < in.size(); ++i) args.push_back(b.input(static_cast<int>(i), dtype_of<T>::v));
  b.result(f(b, args));
  ExprEval eval(b.take());
  std::vector<const void*> pointers;
  for (const auto& v : in) pointers.push_back(v.data());
  const int n = static_cast<int>(in[0].size());
  eval.run(pointers, 0, n);
  Cells<R> out(static_cast<std::size_t>(n));
  eval.store(0, dtype_of<R>::v, out.data(), n);
  return out;
}
template <typename T, typename R = T>
Cells<R> binary(Opcode op, Cells<T> x, Cells<T> y) {
  return apply<R, T>({x, y}, [&](ExprBuilder& b, auto a) { return b.binary(op, a[0], a[1]); });
}
template <typename T>
Cells<T> unary(Opcode op, Cells<T> x) {
  return apply<T, T>({x}, [&](ExprBuilder& b, auto a) { return b.unary(op, a[0]); });
}
template <typename To, typename From>
Cells<To> cast(Cells<From> x) {
  return apply<To, From>({x}, [&](ExprBuilder& b, auto a) { return b.cast(a[0], dtype_of<To>::v); });
}

using F = Cells<float>;
using I = Cells<std::int32_t>;
using I8 = Cells<std::int8_t>;
using U8 = Cells<std::uint8_t>;
using B = Cells<bool>;

TEST(ReferenceExpr, NaNPassesThroughMinAndMax) {
  for (const auto op : {Opcode::kMin, Opcode::kMax}) {
    const F y = binary<float>(op, {kNaN, 1, kNaN, 2}, {1, kNaN, kNaN, 3});
    EXPECT_TRUE(std::isnan(y[0]) && std::isnan(y[1]) && std::isnan(y[2]));
    EXPECT_EQ(y[3], op == Opcode::kMin ? 2 : 3);
  }
}

TEST(ReferenceExpr, Casts) {
  EXPECT_EQ((cast<std::int32_t, float>({1.9f, -1.9f, 3e9f, -3e9f, kNaN, kInf})),
            (I{1, -1, INT32_MAX, INT32_MIN, 0, INT32_MAX}));
  EXPECT_EQ((cast<std::uint8_t, float>({-0.5f, -5, 255.9f, 256, kNaN})), (U8{0, 0, 255, 255, 0}));
  EXPECT_EQ((cast<std::int64_t, double>({9.3e18, -9.3e18})), (Cells<std::int64_t>{INT64_MAX, INT64_MIN}));
  EXPECT_EQ((cast<std::uint64_t, double>({1.9e19, -1})), (Cells<std::uint64_t>{UINT64_MAX, 0}));
  EXPECT_EQ((cast<std::uint8_t, std::int32_t>({257, -1})), (U8{1, 255}));
  EXPECT_EQ((cast<bool, float>({0, -0.f, 0.1f, kNaN})), (B{0, 0, 1, 1}));
  EXPECT_EQ((cast<float, std::uint64_t>({UINT64_MAX})), (F{18446744073709551616.f}));
  EXPECT_EQ((cast<float, bool>({1, 0})), (F{1, 0}));
}

TEST(ReferenceExpr, HalfTypesComputeInFloat) {
  // 1 + 2^-9 is no bfloat16, but the sum with itself rounds only once, at the store.
  const auto y =
      apply<bfloat16, bfloat16>({{bfloat16(1.f)}}, [](ExprBuilder&, auto a) { return a[0] + 0x1p-9 + 0x1p-8; });
  EXPECT_EQ(static_cast<float>(y[0]), 1.0078125f);
  const auto rounded =
      apply<float, float>({{1.f + 0x1p-9f}}, [](ExprBuilder& b, auto a) { return b.cast(a[0], DType::kBFloat16); });
  EXPECT_EQ(rounded[0], 1.f);
}

TEST(ReferenceExpr, IntegersWrapAndDivideSafely) {
  EXPECT_EQ(binary<std::int32_t>(Opcode::kAdd, {INT32_MAX}, {1}), (I{INT32_MIN}));
  EXPECT_EQ(binary<std::int32_t>(Opcode::kMul, {INT32_MIN, 65536}, {-1, 65536}), (I{INT32_MIN, 0}));
  EXPECT_EQ(binary<std::int8_t>(Opcode::kSub, {-128}, {1}), (I8{127}));
  EXPECT_EQ(binary<std::int32_t>(Opcode::kDiv, {7, -7, 5, INT32_MIN}, {2, 2, 0, -1}), (I{3, -3, 0, INT32_MIN}));
  EXPECT_EQ(binary<std::int32_t>(Opcode::kRem, {7, -7, 5, INT32_MIN}, {2, 2, 0, -1}), (I{1, -1, 0, 0}));
  EXPECT_EQ(binary<std::int32_t>(Opcode::kPow, {2, -3, 0, 5, -1, 2, 1}, {10, 3, 0, -1, -3, 32, -7}),
            (I{1024, -27, 1, 0, -1, 0, 1}));
  EXPECT_EQ(unary<std::int8_t>(Opcode::kNeg, {-128, 5}), (I8{-128, -5}));
  EXPECT_EQ(unary<std::int8_t>(Opcode::kAbs, {-128, -5, 5}), (I8{-128, 5, 5}));
  EXPECT_EQ(unary<std::uint8_t>(Opcode::kAbs, {200}), (U8{200}));
  EXPECT_EQ(unary<std::int32_t>(Opcode::kFloor, {-3}), (I{-3}));
}

TEST(ReferenceExpr, BitsAndShifts) {
  EXPECT_EQ(binary<std::int32_t>(Opcode::kAnd, {12}, {10}), (I{8}));
  EXPECT_EQ(binary<std::int32_t>(Opcode::kOr, {12}, {10}), (I{14}));
  EXPECT_EQ(binary<std::int32_t>(Opcode::kXor, {12}, {10}), (I{6}));
  EXPECT_EQ(unary<std::int32_t>(Opcode::kNot, {0}), (I{-1}));
  EXPECT_EQ(unary<bool>(Opcode::kNot, {0, 1}), (B{1, 0}));
  EXPECT_EQ(binary<bool>(Opcode::kXor, {0, 1, 1}, {1, 1, 0}), (B{1, 0, 1}));
  EXPECT_EQ(binary<std::int32_t>(Opcode::kShl, {1, 1}, {31, 32}), (I{INT32_MIN, 0}));
  EXPECT_EQ(binary<std::int32_t>(Opcode::kShr, {-8, -8, 8}, {1, 40, 40}), (I{-4, -1, 0}));
  EXPECT_EQ(binary<std::uint8_t>(Opcode::kShr, {0x80}, {7}), (U8{1}));
}

TEST(ReferenceExpr, Floats) {
  EXPECT_EQ(unary<float>(Opcode::kRound, {0.5f, 1.5f, -2.5f}), (F{0, 2, -2}));
  EXPECT_EQ(unary<float>(Opcode::kTrunc, {-1.9f}), (F{-1}));
  EXPECT_EQ(binary<float>(Opcode::kRem, {-5, 5}, {3, -3}), (F{-2, 2}));
  EXPECT_EQ(binary<float>(Opcode::kDiv, {1, -1}, {0, 0}), (F{kInf, -kInf}));
  const std::pair<Opcode, double (*)(double)> functions[] = {
      {Opcode::kExp, std::exp},     {Opcode::kExpm1, std::expm1}, {Opcode::kLog, std::log},
      {Opcode::kLog1p, std::log1p}, {Opcode::kSin, std::sin},     {Opcode::kCos, std::cos},
      {Opcode::kTanh, std::tanh},   {Opcode::kErf, std::erf},     {Opcode::kSqrt, std::sqrt},
      {Opcode::kFloor, std::floor}, {Opcode::kCeil, std::ceil},   {Opcode::kAbs, std::fabs},
  };
  for (const auto& [op, f] : functions) {
    EXPECT_EQ(unary<double>(op, {0.7})[0], f(0.7));
    EXPECT_FLOAT_EQ(unary<float>(op, {0.7f})[0], static_cast<float>(f(0.7f)));
  }
  EXPECT_EQ(binary<double>(Opcode::kPow, {2}, {0.5})[0], std::pow(2, 0.5));
  EXPECT_EQ(binary<double>(Opcode::kAtan2, {1}, {-2})[0], std::atan2(1, -2));
}

TEST(ReferenceExpr, Comparisons) {
  const F x{1, 2, kNaN}, y{1, 1, kNaN};
  EXPECT_EQ((binary<float, bool>(Opcode::kEq, x, y)), (B{1, 0, 0}));
  EXPECT_EQ((binary<float, bool>(Opcode::kNe, x, y)), (B{0, 1, 1}));
  EXPECT_EQ((binary<float, bool>(Opcode::kLt, x, y)), (B{0, 0, 0}));
  EXPECT_EQ((binary<float, bool>(Opcode::kLe, x, y)), (B{1, 0, 0}));
  EXPECT_EQ((binary<float, bool>(Opcode::kGt, x, y)), (B{0, 1, 0}));
  EXPECT_EQ((binary<float, bool>(Opcode::kGe, x, y)), (B{1, 1, 0}));
  const auto chosen = apply<float, float>(
      {x, y}, [](ExprBuilder& b, auto a) { return b.select(a[0] > a[1], a[0], b.constant(-1, DType::kFloat32)); });
  EXPECT_EQ(chosen, (F{-1, 2, -1}));
}

TEST(ReferenceExpr, IndexAndRandom) {
  ExprBuilder b;
  const Scalar index = b.index(), seed = b.constant_int(-5, DType::kUInt64), step = b.constant_int(7, DType::kInt64);
  b.result(index);
  b.result(b.random(seed, step, index, 3));
  ExprEval eval(b.take());
  eval.run({}, 1000, 2);
  EXPECT_EQ(static_cast<const std::int64_t*>(eval.result(0))[1], 1001);
  EXPECT_EQ(static_cast<const float*>(eval.result(1))[1], random_uniform(std::uint64_t(-5), 7, 1001, 3));
}

TEST(ReferenceExpr, MeaninglessOperationsAreRefused) {
  for (const auto op : {Opcode::kExp, Opcode::kSqrt}) EXPECT_THROW(unary<std::int32_t>(op, {1}), Error);
  EXPECT_THROW(binary<float>(Opcode::kAnd, {1}, {1}), Error);
}

}  // namespace
}  // namespace undertow::backend::reference
