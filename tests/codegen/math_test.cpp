// SPDX-License-Identifier: Apache-2.0
// Accuracy of the float32 functions over their whole range, against libm in double.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "interpreter.h"
#include "undertow/base/philox.h"

namespace undertow::codegen_test {
namespace {

using ir::Opcode;
using std::int64_t;

constexpr DType kF32 = DType::kFloat32;

struct Function {
  const char* name;
  Opcode op;
  double (*exact)(double);
  double low, high;
  double ulps;
};

double ulp_error(float got, double want) {
  if (std::isnan(want) || std::isnan(got)) return std::isnan(want) && std::isnan(got) ? 0 : 1e30;
  if (std::isinf(got) || std::isinf(static_cast<float>(want))) return got == static_cast<float>(want) ? 0 : 1e30;
  const int e = want == 0 ? -149 : std::max(std::ilogb(want) - 23, -149);
  return std::fabs(static_cast<double>(got) - want) / std::ldexp(1.0, e);
}

TEST(Math, AccuracyOverRange) {
  const Function functions[] = {
      {"exp", Opcode::kExp, std::exp, -110, 92, 1.5},    {"exp small", Opcode::kExp, std::exp, -1, 1, 1.5},
      {"expm1", Opcode::kExpm1, std::expm1, -30, 90, 2}, {"expm1 small", Opcode::kExpm1, std::expm1, -1.2, 1.2, 2},
      {"log", Opcode::kLog, std::log, 0, 10, 1.5},       {"log large", Opcode::kLog, std::log, 0, 3e38, 1.5},
      {"log1p", Opcode::kLog1p, std::log1p, -1, 5, 2},   {"log1p large", Opcode::kLog1p, std::log1p, 0, 3e38, 2},
      {"sin", Opcode::kSin, std::sin, -10, 10, 2},       {"sin large", Opcode::kSin, std::sin, -2e5, 2e5, 2},
      {"cos", Opcode::kCos, std::cos, -10, 10, 2},       {"cos large", Opcode::kCos, std::cos, -2e5, 2e5, 2},
      {"tanh", Opcode::kTanh, std::tanh, -11, 11, 4},    {"tanh small", Opcode::kTanh, std::tanh, -0.5, 0.5, 4},
      {"erf", Opcode::kErf, std::erf, -4.5, 4.5, 4},     {"erf small", Opcode::kErf, std::erf, -0.5, 0.5, 4},
  };
  const int64_t n = 200000;
  std::vector<Buffer> buffers{{kF32, n}, {kF32, n}};
  for (const auto& f : functions) {
    const auto kernel =
        compile_one(elementwise({n}, {kF32}, kF32, [&](auto& b, const auto& in) { return b.unary(f.op, in[0]); }));
    PhiloxStream rng(11, 0);
    for (int64_t i = 0; i < n; ++i) {
      // Half of them uniform, half uniform in the exponent.
      double x = f.low + (f.high - f.low) * rng.uniform64();
      if (i % 2) x = (x < 0 ? f.low : f.high) * std::exp2(-40 * rng.uniform64());
      buffers[0].as<float>()[i] = static_cast<float>(x);
    }
    run(kernel, buffers, 0, kernel.units);
    double worst = 0;
    float where = 0;
    for (int64_t i = 0; i < n; ++i) {
      const float x = buffers[0].as<float>()[i];
      const double e = ulp_error(buffers[1].as<float>()[i], f.exact(x));
      if (e > worst) worst = e, where = x;
    }
    EXPECT_LE(worst, f.ulps) << f.name << " at " << where;
    RecordProperty(f.name, std::to_string(worst));
    if (std::getenv("UNDERTOW_TEST_VERBOSE"))
      printf("%-12s worst %.3f ulp at %.9g\n", f.name, worst, static_cast<double>(where));
  }
}

TEST(Math, EveryExponentAndSpecials) {
  // All sign and exponent bits with a few mantissas: denormals, the borders of the ranges, infinities, NaN.
  const int64_t n = 512 * 8;
  std::vector<Buffer> buffers{{kF32, n}, {kF32, n}};
  for (int64_t i = 0; i < n; ++i) {
    static constexpr std::uint32_t kMantissas[] = {0, 1, 0x400000, 0x7fffff, 0x123456, 0x3504f3, 0x3504f4, 0x2aaaaa};
    buffers[0].as<std::uint32_t>()[i] = static_cast<std::uint32_t>(i / 8) << 23 | kMantissas[i % 8];
  }
  for (const Opcode op : {Opcode::kExp, Opcode::kExpm1, Opcode::kLog, Opcode::kLog1p, Opcode::kSin, Opcode::kCos,
                          Opcode::kTanh, Opcode::kErf})
    check(elementwise({n}, {kF32}, kF32, [&](auto& b, const auto& in) { return b.unary(op, in[0]); }), buffers, 3, 0,
          "opcode " + std::to_string(static_cast<int>(op)));
}

TEST(Math, ExpOfZeroIsOne) {
  std::vector<Buffer> buffers{{kF32, 2}, {kF32, 2}};
  buffers[0].set(1, -0.0);
  const auto kernel =
      compile_one(elementwise({2}, {kF32}, kF32, [](auto& b, const auto& in) { return b.unary(Opcode::kExp, in[0]); }));
  run(kernel, buffers, 0, kernel.units);
  EXPECT_EQ(buffers[1].get(0), 1);
  EXPECT_EQ(buffers[1].get(1), 1);
}

TEST(Math, TwoArguments) {
  const int64_t n = 200000;
  std::vector<Buffer> buffers{{kF32, n}, {kF32, n}, {kF32, n}};
  PhiloxStream rng(3, 0);
  for (int64_t i = 0; i < n; ++i) {
    buffers[0].as<float>()[i] = std::bit_cast<float>(rng.next());
    buffers[1].as<float>()[i] = std::bit_cast<float>(rng.next());
    if (i % 4) {
      buffers[0].as<float>()[i] = static_cast<float>(std::exp2(20 * rng.uniform64() - 10));
      buffers[1].as<float>()[i] = static_cast<float>(20 * rng.uniform64() - 10);
    }
  }
  for (const auto& [op, ulps] : {std::pair{Opcode::kPow, 2.0}, std::pair{Opcode::kAtan2, 3.0}})
    check(
        elementwise({n}, {kF32, kF32}, kF32, [op = op](auto& b, const auto& in) { return b.binary(op, in[0], in[1]); }),
        buffers, ulps);
  for (const double exponent : {0.0, 1.0, 2.0, 3.0, -1.0, 0.5, -0.5, 1.7}) {
    const auto nest = elementwise({n}, {kF32}, kF32, [&](auto& b, const auto& in) {
      return b.binary(Opcode::kPow, in[0], b.constant(exponent, kF32));
    });
    std::vector<Buffer> powers{buffers[0], buffers[2]};
    check(nest, powers, 2, 0, std::to_string(exponent));
  }
}

}  // namespace
}  // namespace undertow::codegen_test
