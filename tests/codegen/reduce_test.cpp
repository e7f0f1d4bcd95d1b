// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "interpreter.h"

namespace undertow::codegen_test {
namespace {

using ir::ReduceOp;
using ir::Scalar;
using std::int64_t;

constexpr DType kF32 = DType::kFloat32;
constexpr double kInf = std::numeric_limits<double>::infinity();

/// out[o] = reduce over i of x[o, i], where x has its strides given.
ir::LoopNest reduction(ReduceOp op, DType dtype, const std::vector<int64_t>& extents, int num_outer,
                       const std::vector<int64_t>& strides) {
  ir::Stage inner, outer;
  inner.inner = true;
  inner.loads = {{0, 0, strides}};
  inner.expr = expression({dtype}, [](auto&, const auto& in) { return std::vector<Scalar>{in[0]}; });
  inner.results = {ir::ReduceResult{op, 0}};
  outer.locals = {0};
  outer.expr = expression({compute_type(dtype)}, [](auto&, const auto& in) { return std::vector<Scalar>{in[0]}; });
  std::vector<int64_t> out(extents.begin(), extents.begin() + num_outer);
  auto access = dense(0, out);
  access.strides.resize(extents.size(), 0);
  outer.results = {ir::StoreResult{access, dtype}};
  return {.extents = extents,
          .num_outer = num_outer,
          .num_locals = 1,
          .num_inputs = 1,
          .num_outputs = 1,
          .stages = {inner, outer}};
}

int64_t product(const std::vector<int64_t>& v) {
  int64_t n = 1;
  for (const auto e : v) n *= e;
  return n;
}

TEST(Reduce, RowsColumnsAndAll) {
  struct Case {
    std::vector<int64_t> extents;
    int num_outer;
    std::vector<int64_t> strides;
  };
  const Case cases[] = {
      {{5, 1}, 1, {1, 1}},
      {{1, 5}, 1, {5, 1}},
      {{7, 10}, 1, {10, 1}},
      {{3, 33}, 1, {33, 1}},
      {{4, 64}, 1, {64, 1}},
      {{10, 7}, 1, {1, 10}},
      {{33, 50}, 1, {1, 33}},
      {{300, 40}, 1, {1, 300}},
      {{100}, 0, {1}},
      {{5000}, 0, {1}},
      {{9001}, 0, {1}},
      {{3, 5, 70}, 1, {70, 210, 1}},
      {{6, 9, 5}, 2, {5, 30, 1}},
      {{20, 3, 4, 5}, 1, {1, 400, 100, 20}},
      {{2, 600, 9}, 1, {9, 18, 1}},
      {{16, 1200}, 1, {1, 16}},
      {{65, 3}, 1, {3, 1}},
      {{2, 3, 1, 4}, 2, {12, 4, 4, 1}},
      {{1}, 0, {1}},
      {{}, 0, {}},
      {{70, 9}, 1, {-1, 70}},
      {{4, 40}, 1, {40, -1}},
  };
  for (const auto& c : cases)
    for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMax, ReduceOp::kMin, ReduceOp::kProd}) {
      auto nest = reduction(op, kF32, c.extents, c.num_outer, c.strides);
      for (std::size_t d = 0; d < c.strides.size(); ++d)
        if (c.strides[d] < 0) nest.stages[0].loads[0].offset -= c.strides[d] * (c.extents[d] - 1);
      std::vector<Buffer> buffers{{kF32, product(c.extents)}, {kF32, nest.outer_points()}};
      if (op == ReduceOp::kProd) fill_uniform(buffers[0], 0.99, 1.01, 5);
      else fill_uniform(buffers[0], -1, 1, 5);
      const double n = static_cast<double>(nest.inner_points());
      check(nest, buffers, op == ReduceOp::kProd ? 16 + std::sqrt(n) : 0,
            op == ReduceOp::kSum ? 2e-6 + 4e-7 * std::sqrt(n) : 0,
            "op " + std::to_string(static_cast<int>(op)) + " rank " + std::to_string(c.extents.size()) + " outer " +
                std::to_string(nest.outer_points()) + " inner " + std::to_string(nest.inner_points()));
    }
}

TEST(Reduce, EveryTail) {
  for (int64_t n = 1; n <= 70; ++n)
    for (const bool columns : {false, true}) {
      const auto nest = columns ? reduction(ReduceOp::kSum, kF32, {n, 13}, 1, {1, n})
                                : reduction(ReduceOp::kSum, kF32, {3, n}, 1, {n, 1});
      std::vector<Buffer> buffers{{kF32, product(nest.extents)}, {kF32, nest.outer_points()}};
      fill(buffers[0], static_cast<std::uint64_t>(n));  // sums are exact
      check(nest, buffers, 0, 0, std::to_string(n) + (columns ? " columns" : " in a row"));
    }
}

TEST(Reduce, EveryType) {
  for (int t = 0; t < kNumDTypes; ++t)
    for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMax, ReduceOp::kMin, ReduceOp::kProd})
      for (const bool columns : {false, true}) {
        const auto dtype = static_cast<DType>(t);
        if (op == ReduceOp::kProd && is_floating(dtype)) continue;
        const auto nest =
            columns ? reduction(op, dtype, {21, 35}, 1, {1, 21}) : reduction(op, dtype, {4, 53}, 1, {53, 1});
        std::vector<Buffer> buffers{{dtype, product(nest.extents)}, {dtype, nest.outer_points()}};
        fill(buffers[0], 9);
        check(nest, buffers, 0, 0,
              std::string(name_of(dtype)) + (columns ? " columns" : " rows") + std::to_string(static_cast<int>(op)));
      }
}

TEST(Reduce, LongSumsAreAccurate) {
  // 1e6 elements near 1: float32 summed one by one would lose the last three digits.
  for (const auto& [extents, num_outer, strides] :
       {std::tuple{std::vector<int64_t>{1000003}, 0, std::vector<int64_t>{1}},
        std::tuple{std::vector<int64_t>{3, 400000}, 1, std::vector<int64_t>{1, 3}},
        std::tuple{std::vector<int64_t>{16, 90000}, 1, std::vector<int64_t>{1, 16}},
        std::tuple{std::vector<int64_t>{2, 70000, 5}, 1, std::vector<int64_t>{5, 10, 1}},
        std::tuple{std::vector<int64_t>{64, 30011}, 1, std::vector<int64_t>{1, 64}}}) {
    const auto nest = reduction(ReduceOp::kSum, kF32, extents, num_outer, strides);
    std::vector<Buffer> buffers{{kF32, product(extents)}, {kF32, nest.outer_points()}};
    fill_uniform(buffers[0], 0.5, 1.5, 77);
    check(nest, buffers, 3);
  }
}

TEST(Reduce, InfinityInAChunkedSum) {
  const auto nest = reduction(ReduceOp::kSum, kF32, {2, 20000}, 1, {20000, 1});
  std::vector<Buffer> buffers{{kF32, 40000}, {kF32, 2}};
  fill(buffers[0], 1);
  buffers[0].set(12345, kInf);
  buffers[0].set(20000, kInf);
  buffers[0].set(39999, -kInf);
  check(nest, buffers);
  EXPECT_EQ(buffers[1].get(0), kInf);
  EXPECT_TRUE(std::isnan(buffers[1].get(1)));
}

TEST(Reduce, NanSurvivesWhereverItStands) {
  for (const ReduceOp op : {ReduceOp::kMax, ReduceOp::kMin})
    for (const bool columns : {false, true})
      for (int64_t at = 0; at < 75; ++at) {
        const int64_t n = 75;
        const auto nest = columns ? reduction(op, kF32, {9, n}, 1, {1, 9}) : reduction(op, kF32, {2, n}, 1, {n, 1});
        std::vector<Buffer> buffers{{kF32, product(nest.extents)}, {kF32, nest.outer_points()}};
        fill(buffers[0], 3);
        buffers[0].set(columns ? at * 9 : at, std::nan(""));
        run(compile_one(nest), buffers, 0, compile_one(nest).units);
        EXPECT_TRUE(std::isnan(buffers[1].get(0))) << at;
        EXPECT_FALSE(std::isnan(buffers[1].get(1))) << at;
      }
}

/// softmax(x) * scale along the last dim, the way a fused kernel does it: max, sum of exp, store.
ir::LoopNest softmax(int64_t rows, int64_t n, bool columns, DType dtype) {
  const std::vector<int64_t> strides = columns ? std::vector<int64_t>{1, rows} : std::vector<int64_t>{n, 1};
  ir::Stage max, sum, scale, out;
  max.inner = sum.inner = out.inner = true;
  max.loads = sum.loads = {{0, 0, strides}};
  max.expr = expression({dtype}, [](auto&, const auto& in) { return std::vector<Scalar>{in[0]}; });
  max.results = {ir::ReduceResult{ReduceOp::kMax, 0}};
  sum.locals = {0};
  sum.expr = expression({dtype, kF32}, [](auto&, const auto& in) {
    return std::vector<Scalar>{ir::fn(ir::Opcode::kExp, in[0] - in[1])};
  });
  sum.results = {ir::ReduceResult{ReduceOp::kSum, 1}};
  scale.loads = {{1, 0, {0, 0}}};
  scale.locals = {1};
  scale.expr = expression({kF32, kF32}, [](auto&, const auto& in) { return std::vector<Scalar>{in[0] / in[1]}; });
  scale.results = {ir::LocalResult{2}};
  out.loads = {{0, 0, strides}};
  out.locals = {0, 2};
  out.expr = expression({dtype, kF32, kF32}, [](auto&, const auto& in) {
    return std::vector<Scalar>{ir::fn(ir::Opcode::kExp, in[0] - in[1]) * in[2]};
  });
  out.results = {ir::StoreResult{{0, 0, strides}, dtype}};
  return {.extents = {rows, n},
          .num_outer = 1,
          .num_locals = 3,
          .num_inputs = 2,
          .num_outputs = 1,
          .stages = {max, sum, scale, out}};
}

TEST(Reduce, Softmax) {
  for (const DType dtype : {kF32, DType::kBFloat16, DType::kFloat16})
    for (const bool columns : {false, true})
      for (const auto& [rows, n] : {std::pair<int64_t, int64_t>{1, 1}, {32, 10}, {5, 37}, {19, 129}, {3, 5000}}) {
        const auto nest = softmax(rows, n, columns, dtype);
        std::vector<Buffer> buffers{{dtype, rows * n}, {kF32, 1}, {dtype, rows * n}};
        fill_uniform(buffers[0], -8, 8, 6);
        buffers[1].set(0, 2);
        check(nest, buffers, dtype == kF32 ? 10 : 1, 0,
              std::string(name_of(dtype)) + (columns ? " columns " : " rows ") + std::to_string(n));
      }
}

/// Statistics of a channel and the normalised channel, NCHW and NHWC: several inner dims, loads per channel.
TEST(Reduce, BatchNorm) {
  for (const bool channels_last : {false, true})
    for (const int64_t c : {3, 16, 70}) {
      const int64_t n = 4, hw = 19, count = n * hw;
      const std::vector<int64_t> x =
          channels_last ? std::vector<int64_t>{1, hw * c, c} : std::vector<int64_t>{hw, c * hw, 1};
      ir::Stage sum, mean, square, rsqrt, out;
      sum.inner = square.inner = out.inner = true;
      sum.loads = {{0, 0, x}};
      sum.expr = expression({kF32}, [](auto&, const auto& in) { return std::vector<Scalar>{in[0]}; });
      sum.results = {ir::ReduceResult{ReduceOp::kSum, 0}};
      mean.locals = {0};
      mean.expr = expression({kF32}, [&](auto&, const auto& in) {
        const auto m = in[0] / static_cast<double>(count);
        return std::vector<Scalar>{m, m};
      });
      mean.results = {ir::LocalResult{1}, ir::StoreResult{{1, 0, {1, 0, 0}}, kF32}};
      square.loads = {{0, 0, x}};
      square.locals = {1};
      square.expr = expression(
          {kF32, kF32}, [](auto&, const auto& in) { return std::vector<Scalar>{(in[0] - in[1]) * (in[0] - in[1])}; });
      square.results = {ir::ReduceResult{ReduceOp::kSum, 2}};
      rsqrt.locals = {2};
      rsqrt.expr = expression({kF32}, [&](auto& b, const auto& in) {
        return std::vector<Scalar>{b.constant(1, kF32) /
                                   ir::fn(ir::Opcode::kSqrt, in[0] / static_cast<double>(count) + 1e-5)};
      });
      rsqrt.results = {ir::LocalResult{3}};
      out.loads = {{0, 0, x}, {1, 0, {1, 0, 0}}};
      out.locals = {1, 3};
      out.expr = expression({kF32, kF32, kF32, kF32},
                            [](auto&, const auto& in) { return std::vector<Scalar>{(in[0] - in[2]) * in[3] * in[1]}; });
      out.results = {ir::StoreResult{{0, 0, x}, kF32}};
      const ir::LoopNest nest{.extents = {c, n, hw},
                              .num_outer = 1,
                              .num_locals = 4,
                              .num_inputs = 2,
                              .num_outputs = 2,
                              .stages = {sum, mean, square, rsqrt, out}};
      std::vector<Buffer> buffers{{kF32, c * count}, {kF32, c}, {kF32, c * count}, {kF32, c}};
      fill_uniform(buffers[0], -1, 3, 8);
      fill_uniform(buffers[1], 0.5, 2, 9);
      check(nest, buffers, 8, 1e-6, (channels_last ? "NHWC " : "NCHW ") + std::to_string(c));
    }
}

/// Windows that overlap: max pooling 3x3, stride 2, without padding.
TEST(Reduce, Windows) {
  const int64_t h = 17, w = 23, oh = 8, ow = 11;
  auto nest = reduction(ReduceOp::kMax, kF32, {2, oh, ow, 3, 3}, 3, {h * w, 2 * w, 2, w, 1});
  std::vector<Buffer> buffers{{kF32, 2 * h * w}, {kF32, 2 * oh * ow}};
  fill(buffers[0], 3);
  check(nest, buffers);
}

}  // namespace
}  // namespace undertow::codegen_test
