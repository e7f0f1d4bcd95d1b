// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "interpreter.h"
#include "undertow/base/philox.h"

namespace undertow::codegen_test {
namespace {

using ir::Opcode;
using std::int64_t;

constexpr DType kF32 = DType::kFloat32;
constexpr double kInf = std::numeric_limits<double>::infinity();

/// Every pair of these, for each type: zeros, ones, ties, limits, infinities and NaN for floats.
std::vector<double> special_values(DType t) {
  if (t == DType::kBool) return {0, 1};
  if (is_floating(t))
    return {0.0, -0.0, 1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, 3, 1e-40, 100.25, -7.75, 1e10, kInf, -kInf, std::nan("")};
  std::vector<double> v{0, 1, 2, 3, 7, 100};
  dispatch(t, [&]<typename T>(T) {
    if constexpr (std::is_integral_v<T>) {
      if (sizeof(T) < 8) v.push_back(static_cast<double>(std::numeric_limits<T>::max()));
      v.push_back(static_cast<double>(std::numeric_limits<T>::min()));
    }
  });
  if (is_signed(t)) v.insert(v.end(), {-1, -2, -7, -100});
  return v;
}

void check_pairs(DType t, Opcode op, DType result, double ulps) {
  const auto values = special_values(t);
  const auto n = static_cast<int64_t>(values.size() * values.size());
  const auto nest =
      elementwise({n}, {t, t}, result, [&](auto& b, const auto& in) { return b.binary(op, in[0], in[1]); });
  std::vector<Buffer> buffers{{t, n}, {t, n}, {result, n}};
  for (int64_t i = 0; i < n; ++i) {
    buffers[0].set(i, values[static_cast<std::size_t>(i) / values.size()]);
    buffers[1].set(i, values[static_cast<std::size_t>(i) % values.size()]);
  }
  check(nest, buffers, ulps, 0, std::string(name_of(t)) + " opcode " + std::to_string(static_cast<int>(op)));
}

TEST(Opcodes, Binary) {
  for (int i = 0; i < kNumDTypes; ++i) {
    const auto t = static_cast<DType>(i);
    for (const Opcode op : {Opcode::kEq, Opcode::kNe, Opcode::kLt, Opcode::kLe, Opcode::kGt, Opcode::kGe})
      check_pairs(t, op, DType::kBool, 0);
    for (const Opcode op : {Opcode::kMin, Opcode::kMax}) check_pairs(t, op, t, 0);
    if (t == DType::kBool) continue;
    for (const Opcode op : {Opcode::kAdd, Opcode::kSub, Opcode::kMul, Opcode::kDiv, Opcode::kRem})
      check_pairs(t, op, t, 0);
    check_pairs(t, Opcode::kPow, t, t == kF32 ? 4 : is_half(t) ? 1 : 0);
    if (is_floating(t)) check_pairs(t, Opcode::kAtan2, t, t == kF32 ? 2 : is_half(t) ? 1 : 0);
  }
  for (const DType t : {DType::kBool, DType::kInt8, DType::kUInt16, DType::kInt32, DType::kUInt64}) {
    for (const Opcode op : {Opcode::kAnd, Opcode::kOr, Opcode::kXor}) check_pairs(t, op, t, 0);
    if (t != DType::kBool)
      for (const Opcode op : {Opcode::kShl, Opcode::kShr}) check_pairs(t, op, t, 0);
  }
}

TEST(Opcodes, Unary) {
  for (int i = 0; i < kNumDTypes; ++i) {
    const auto t = static_cast<DType>(i);
    std::vector<Opcode> ops;
    if (t == DType::kBool || is_integral(t)) ops.push_back(Opcode::kNot);
    if (t != DType::kBool)
      ops.insert(ops.end(),
                 {Opcode::kNeg, Opcode::kAbs, Opcode::kFloor, Opcode::kCeil, Opcode::kRound, Opcode::kTrunc});
    if (is_floating(t))
      ops.insert(ops.end(), {Opcode::kSqrt, Opcode::kExp, Opcode::kExpm1, Opcode::kLog, Opcode::kLog1p, Opcode::kSin,
                             Opcode::kCos, Opcode::kTanh, Opcode::kErf});
    const auto values = special_values(t);
    const auto n = static_cast<int64_t>(values.size());
    for (const Opcode op : ops) {
      const auto nest = elementwise({n}, {t}, t, [&](auto& b, const auto& in) { return b.unary(op, in[0]); });
      std::vector<Buffer> buffers{{t, n}, {t, n}};
      for (int64_t k = 0; k < n; ++k) buffers[0].set(k, values[static_cast<std::size_t>(k)]);
      const double ulps = op < Opcode::kExp || op > Opcode::kAtan2 ? 0 : t == kF32 ? 3 : is_half(t) ? 1 : 0;
      check(nest, buffers, ulps, 0, std::string(name_of(t)) + " opcode " + std::to_string(static_cast<int>(op)));
      // The sign of zero too.
      if (t == kF32 && op != Opcode::kNeg && op != Opcode::kAbs && op != Opcode::kCos && op != Opcode::kExp &&
          op != Opcode::kLog) {
        EXPECT_EQ(buffers[1].get(1), 0) << static_cast<int>(op);
        EXPECT_TRUE(std::signbit(buffers[1].get(1))) << static_cast<int>(op);
      }
    }
  }
}

TEST(Opcodes, CastsBetweenAllTypes) {
  for (int i = 0; i < kNumDTypes; ++i)
    for (int j = 0; j < kNumDTypes; ++j) {
      const auto from = static_cast<DType>(i), to = static_cast<DType>(j);
      auto values = special_values(from);
      if (is_floating(from))
        values.insert(values.end(), {127.6, 128, -128.9, -129, 255.5, 256, 32767.9, 65536, 1e5, -1e5, 3e9, -3e9, 1e19,
                                     2e19, -1e19, 0.3333333});
      const auto n = static_cast<int64_t>(values.size());
      const auto nest = elementwise({n}, {from}, to, [&](auto& b, const auto& in) { return b.cast(in[0], to); });
      std::vector<Buffer> buffers{{from, n}, {to, n}};
      for (int64_t k = 0; k < n; ++k) buffers[0].set(k, values[static_cast<std::size_t>(k)]);
      check(nest, buffers, 0, 0, std::string(name_of(from)) + " to " + std::string(name_of(to)));
    }
}

TEST(Opcodes, HalfStoresRoundToNearestEven) {
  for (const DType to : {DType::kFloat16, DType::kBFloat16}) {
    const int64_t n = 20000;
    const auto nest = elementwise({n}, {kF32}, to, [](auto&, const auto& in) { return in[0]; });
    std::vector<Buffer> buffers{{kF32, n}, {to, n}};
    PhiloxStream rng(1, 2);
    for (int64_t i = 0; i < n; ++i) {
      std::uint32_t bits = rng.next();
      if (i % 2) bits = (bits & 0xffff0000u) | (i % 4 == 1 ? 0x8000u : 0x7fffu);  // ties of bfloat16 and just below
      if (i % 5 == 0) bits = (bits & 0x8fffe000u) | 0x38001000u;                  // ties of float16
      std::memcpy(buffers[0].as<std::uint32_t>() + i, &bits, 4);
    }
    check(nest, buffers);
    for (int64_t i = 0; i < n; ++i) {
      const float f = buffers[0].as<float>()[i];
      const auto got = buffers[1].as<std::uint16_t>()[i];
      if (to == DType::kBFloat16) {
        EXPECT_EQ(got, bfloat16(f).bits);
      } else if (!std::isnan(f)) {
        const float16 h(f);
        EXPECT_EQ(std::memcmp(&h, &got, 2), 0);
      }
    }
  }
}

TEST(Opcodes, HalfCastsRoundWithinAnExpression) {
  for (const DType half : {DType::kFloat16, DType::kBFloat16}) {
    const int64_t n = 500;
    const auto nest = elementwise({n}, {kF32, kF32}, kF32,
                                  [&](auto& b, const auto& in) { return b.cast(in[0] * in[1], half) + in[0]; });
    std::vector<Buffer> buffers{{kF32, n}, {kF32, n}, {kF32, n}};
    fill_uniform(buffers[0], -3, 3, 1);
    fill_uniform(buffers[1], -3, 3, 2);
    check(nest, buffers);
  }
}

TEST(Opcodes, SelectAndLogic) {
  const int64_t n = 77;
  const auto nest = elementwise({n}, {kF32, kF32, DType::kBool}, kF32, [](auto& b, const auto& in) {
    const auto c = b.binary(Opcode::kOr, b.binary(Opcode::kAnd, in[0] < in[1], in[2]), b.unary(Opcode::kNot, in[2]));
    return ir::select(c, in[0], in[1] * 2.0);
  });
  std::vector<Buffer> buffers{{kF32, n}, {kF32, n}, {DType::kBool, n}, {kF32, n}};
  for (std::size_t i = 0; i < 3; ++i) fill(buffers[i], i);
  check(nest, buffers);
}

TEST(Opcodes, MaxWithAConstantKeepsNan) {
  const int64_t n = 20;
  const auto nest = elementwise({n}, {kF32}, kF32, [](auto& b, const auto& in) {
    return b.binary(Opcode::kMin, b.binary(Opcode::kMax, in[0], b.constant(0, kF32)), b.constant(6, kF32));
  });
  std::vector<Buffer> buffers{{kF32, n}, {kF32, n}};
  for (int64_t i = 0; i < n; ++i) buffers[0].set(i, i % 4 == 0 ? std::nan("") : static_cast<double>(i) - 10);
  check(nest, buffers);
}

TEST(Opcodes, RandomIsPhilox) {
  const int64_t n = 1000;
  const std::uint64_t seed = 0x123456789abcdef0u;
  const int64_t step = (int64_t{7} << 32) + 42, stream = 0x98765;
  auto nest = elementwise({10, 100}, {DType::kUInt64, DType::kInt64}, kF32, [&](auto& b, const auto& in) {
    return b.random(in[0], in[1], b.index() + b.constant_int((int64_t{3} << 32) - 5, DType::kInt64), stream);
  });
  nest.stages[0].loads[0].strides = nest.stages[0].loads[1].strides = {0, 0};
  std::vector<Buffer> buffers{{DType::kUInt64, 1}, {DType::kInt64, 1}, {kF32, n}};
  *buffers[0].as<std::uint64_t>() = seed;
  *buffers[1].as<int64_t>() = step;
  check(nest, buffers);
  for (int64_t i = 0; i < n; ++i) {
    const auto index = static_cast<std::uint64_t>(i + (int64_t{3} << 32) - 5);
    const auto block = philox({static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32), 42, 7},
                              static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32) ^ 0x98765u);
    EXPECT_EQ(buffers[2].as<float>()[i], uniform_from_bits(block[0]));
  }
}

}  // namespace
}  // namespace undertow::codegen_test
