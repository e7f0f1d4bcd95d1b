// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "interpreter.h"

namespace undertow::codegen_test {
namespace {

using ir::Access;
using ir::Scalar;
using std::int64_t;

constexpr DType kF32 = DType::kFloat32;

TEST(Elementwise, EveryTail) {
  for (int64_t n = 1; n <= 40; ++n) {
    const auto nest = elementwise({n}, {kF32, kF32}, kF32, [](auto&, const auto& in) { return in[0] * in[1] + in[0]; });
    std::vector<Buffer> buffers{{kF32, n}, {kF32, n}, {kF32, n}};
    fill(buffers[0], 1);
    fill(buffers[1], 2);
    check(nest, buffers, 0, 0, "n = " + std::to_string(n));
  }
}

TEST(Elementwise, EveryTypeWithTails) {
  for (int t = 0; t < kNumDTypes; ++t)
    for (const int64_t n : {1, 7, 16, 29, 100}) {
      const auto dtype = static_cast<DType>(t);
      const auto nest = elementwise({n}, {dtype, dtype}, dtype, [&](auto&, const auto& in) {
        return dtype == DType::kBool ? ir::fn(ir::Opcode::kNot, in[0].builder->binary(ir::Opcode::kAnd, in[0], in[1]))
                                     : in[0] + in[1];
      });
      std::vector<Buffer> buffers{{dtype, n}, {dtype, n}, {dtype, n}};
      fill(buffers[0], 1);
      fill(buffers[1], 2);
      check(nest, buffers, 0, 0, std::string(name_of(dtype)) + " " + std::to_string(n));
    }
}

TEST(Elementwise, ManyUnits) {
  for (const int64_t n : {2048, 2049, 4096 * 3 + 5, 300001}) {
    const auto nest = elementwise({n}, {kF32}, kF32, [](auto&, const auto& in) { return in[0] * 3.0 - 1.0; });
    std::vector<Buffer> buffers{{kF32, n}, {kF32, n}};
    fill(buffers[0], 3);
    check(nest, buffers);
    EXPECT_GE(compile_one(nest).units, n > 2048 ? 2 : 1);
  }
}

TEST(Elementwise, RankZero) {
  const auto nest = elementwise({}, {kF32}, DType::kBFloat16, [](auto&, const auto& in) { return in[0] + 0.001; });
  std::vector<Buffer> buffers{{kF32, 1}, {DType::kBFloat16, 1}};
  buffers[0].set(0, 1.2345);
  check(nest, buffers);
  EXPECT_EQ(compile_one(nest).units, 1);
}

TEST(Elementwise, SizeOneEverywhere) {
  const auto nest = elementwise({1, 1, 1}, {kF32}, kF32, [](auto&, const auto& in) { return -in[0]; });
  std::vector<Buffer> buffers{{kF32, 1}, {kF32, 1}};
  buffers[0].set(0, 4);
  check(nest, buffers);
}

/// out[a, b, c] = x[a, b, c] * row[c] + column[b] with scalar and half operands.
TEST(Elementwise, Broadcasts) {
  for (const int64_t c : {1, 3, 8, 21, 130}) {
    const std::vector<int64_t> extents{3, 5, c};
    auto nest = elementwise(extents, {kF32, kF32, DType::kBFloat16, DType::kInt32}, kF32,
                            [](auto& b, const auto& in) { return in[0] * in[1] + in[2] - b.cast(in[3], kF32); });
    nest.stages[0].loads[1] = {1, 0, {0, 0, 1}};
    nest.stages[0].loads[2] = {2, 0, {0, 1, 0}};
    nest.stages[0].loads[3] = {3, 0, {0, 0, 0}};
    std::vector<Buffer> buffers{{kF32, 15 * c}, {kF32, c}, {DType::kBFloat16, 5}, {DType::kInt32, 1}, {kF32, 15 * c}};
    for (int i = 0; i < 4; ++i) fill(buffers[static_cast<std::size_t>(i)], static_cast<std::uint64_t>(i));
    check(nest, buffers, 0, 0, std::to_string(c));
  }
}

TEST(Elementwise, StridedReversedAndTransposed) {
  for (const DType dtype : {kF32, DType::kInt8, DType::kFloat16, DType::kFloat64, DType::kBool})
    for (const int64_t n : {5, 16, 37}) {
      const int64_t m = 11;
      const std::vector<int64_t> extents{m, n};
      auto nest = elementwise(extents, {dtype, dtype, dtype}, dtype, [&](auto& b, const auto& in) {
        const auto op = dtype == DType::kBool ? ir::Opcode::kXor : ir::Opcode::kAdd;
        return b.binary(op, b.binary(op, in[0], in[1]), in[2]);
      });
      nest.stages[0].loads[0] = {0, 1, {2 * n, 2}};        // every other element
      nest.stages[0].loads[1] = {1, m * n - 1, {-n, -1}};  // from the end
      nest.stages[0].loads[2] = {2, 0, {1, m}};            // transposed
      std::vector<Buffer> buffers{{dtype, 2 * m * n}, {dtype, m * n}, {dtype, m * n}, {dtype, m * n}};
      for (std::size_t i = 0; i < 3; ++i) fill(buffers[i], i);
      check(nest, buffers, 0, 0, std::string(name_of(dtype)) + " " + std::to_string(n));
    }
}

TEST(Elementwise, StridedAndReversedStores) {
  for (const DType dtype : {kF32, DType::kBFloat16, DType::kInt64, DType::kUInt8}) {
    const int64_t n = 29, m = 6;
    ir::Stage stage;
    stage.loads = {dense(0, {m, n})};
    stage.expr = expression(
        {dtype}, [](auto&, const auto& in) { return std::vector<Scalar>{in[0], in[0] + in[0], in[0] * in[0]}; });
    stage.results = {ir::StoreResult{{0, m * n - 1, {-n, -1}}, dtype}, ir::StoreResult{{1, 1, {3 * n, 3}}, dtype},
                     ir::StoreResult{{2, 0, {1, m}}, dtype}};
    const ir::LoopNest nest{.extents = {m, n}, .num_outer = 2, .num_inputs = 1, .num_outputs = 3, .stages = {stage}};
    std::vector<Buffer> buffers{{dtype, m * n}, {dtype, m * n}, {dtype, 3 * m * n}, {dtype, m * n}};
    fill(buffers[0], 4);
    check(nest, buffers, 0, 0, std::string(name_of(dtype)));
  }
}

TEST(Elementwise, IndexIsRowMajorOverAllDims) {
  auto nest = elementwise({3, 4, 9}, {kF32}, DType::kInt64,
                          [](auto& b, const auto& in) { return b.index() + b.cast(in[0], DType::kInt64); });
  nest.stages[0].loads[0] = {0, 0, {0, 0, 0}};
  std::vector<Buffer> buffers{{kF32, 1}, {DType::kInt64, 108}};
  check(nest, buffers);
  // A transposed output keeps the dims apart.
  nest.stages[0].results[0] = ir::StoreResult{{0, 0, {1, 27, 3}}, DType::kInt64};
  std::vector<Buffer> transposed{{kF32, 1}, {DType::kInt64, 108}};
  check(nest, transposed);
}

TEST(Elementwise, InPlace) {
  const int64_t n = 5003;
  const auto nest = elementwise({n}, {kF32, kF32}, kF32, [](auto&, const auto& in) { return in[0] * 2.0 + in[1]; });
  const auto kernel = compile_one(nest);
  ASSERT_TRUE(kernel.in_place_ok);
  std::vector<Buffer> buffers{{kF32, n}, {kF32, n}, {kF32, n}};
  fill(buffers[0], 1);
  fill(buffers[1], 2);
  run(kernel, buffers, 0, kernel.units);
  void* args[] = {buffers[0].data(), buffers[1].data(), buffers[0].data()};
  kernel.fn(args, 0, kernel.units);
  EXPECT_EQ(std::memcmp(buffers[0].data(), buffers[2].data(), static_cast<std::size_t>(n) * 4), 0);
}

TEST(Elementwise, ResultDoesNotDependOnPosition) {
  const int64_t n = 67;
  const auto nest = elementwise({n}, {kF32}, kF32, [](auto&, const auto& in) {
    return ir::fn(ir::Opcode::kErf, in[0]) + ir::fn(ir::Opcode::kLog, ir::fn(ir::Opcode::kExp, in[0]) + 1.0);
  });
  std::vector<Buffer> buffers{{kF32, n}, {kF32, n}};
  for (const double x : {0.3, -2.7, 11.0}) {
    for (int64_t i = 0; i < n; ++i) buffers[0].set(i, x);
    run(compile_one(nest), buffers, 0, compile_one(nest).units);
    for (int64_t i = 1; i < n; ++i) EXPECT_EQ(buffers[1].get(i), buffers[1].get(0));
  }
}

/// Two stages that share a local, several outputs of different types.
TEST(Elementwise, StagesAndLocals) {
  const int64_t n = 45;
  ir::Stage first, second;
  first.loads = {dense(0, {n})};
  first.expr =
      expression({kF32}, [](auto&, const auto& in) { return std::vector<Scalar>{in[0] * in[0], in[0] + 1.0}; });
  first.results = {ir::LocalResult{1}, ir::StoreResult{dense(0, {n}), DType::kFloat16}};
  second.loads = {dense(1, {n})};
  second.locals = {1};
  second.expr = expression({DType::kInt16, kF32}, [](auto& b, const auto& in) {
    return std::vector<Scalar>{b.cast(in[0], kF32) - in[1], in[1] > 4.0};
  });
  second.results = {ir::StoreResult{dense(1, {n}), kF32}, ir::StoreResult{dense(2, {n}), DType::kBool}};
  const ir::LoopNest nest{
      .extents = {n}, .num_outer = 1, .num_locals = 2, .num_inputs = 2, .num_outputs = 3, .stages = {first, second}};
  std::vector<Buffer> buffers{{kF32, n}, {DType::kInt16, n}, {DType::kFloat16, n}, {kF32, n}, {DType::kBool, n}};
  fill(buffers[0], 1);
  fill(buffers[1], 2);
  check(nest, buffers);
  EXPECT_FALSE(compile_one(nest).in_place_ok);
}

}  // namespace
}  // namespace undertow::codegen_test
