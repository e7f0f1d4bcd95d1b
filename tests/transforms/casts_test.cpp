// SPDX-License-Identifier: Apache-2.0
// Casts of mixed precision: which are left as tensors of their own after the passes.
#include "undertow/transforms/casts.h"

#include <gtest/gtest.h>

#include "undertow/ops/register.h"
#include "undertow/transforms/pipeline.h"
#include "undertow/transforms/simplify.h"

namespace undertow::transforms {
namespace {

class Casts : public ::testing::Test {
 protected:
  void SetUp() override { ops::register_all(); }
  static std::vector<Cast> after(std::string_view text) {
    ir::Graph g = ir::parse(text);
    optimize(g, {.fuse = true});
    ir::verify(g);
    return find_casts(g);
  }
};

// A half value from a library kernel, read in float32 by a reduction and again by what needs its result.
TEST_F(Casts, LoadsWiden) {
  const auto casts = after(R"(%0: BFloat16[64, 4096] = input batch "x"
%1: BFloat16[4096, 4096] = input batch "w"
%2: BFloat16[64, 4096] = matmul(%0, %1) {transpose_a = false, transpose_b = false}
%3: Float32[64, 4096] = cast(%2) {dtype = Float32}
%4: Float32[64] = reduce_sum(%3) {axes = [1], keep_dims = false}
%5: Float32[4096] = reduce_sum(%3) {axes = [0], keep_dims = false}
%6: Float32[64, 4096] = mul(%3, %5)
return %4, %6)");
  EXPECT_TRUE(casts.empty());
}

TEST_F(Casts, AreFoundAtTheEdges) {
  const auto casts = after(R"(%0: Float32[8, 16] = input batch "x"
%1: Float32[16, 16] = state "w"
%2: BFloat16[8, 16] = cast(%0) {dtype = BFloat16}
%3: BFloat16[16, 16] = cast(%1) {dtype = BFloat16}
%4: BFloat16[8, 16] = matmul(%2, %3) {transpose_a = false, transpose_b = false}
%5: Float32[8, 16] = cast(%4) {dtype = Float32}
return %5)");
  ASSERT_EQ(casts.size(), 3u);
  EXPECT_EQ(casts[0].edge, Cast::kInput);
  EXPECT_EQ(casts[0].bytes, 8 * 16 * 2);
  EXPECT_EQ(casts[0].to, DType::kBFloat16);
  EXPECT_EQ(casts[1].edge, Cast::kWeight);
  EXPECT_EQ(casts[2].edge, Cast::kOutput);
  EXPECT_EQ(casts[2].bytes, 8 * 16 * 4);
}

TEST_F(Casts, BetweenTwoLibraryKernelsAreCounted) {
  const auto casts = after(R"(%0: BFloat16[8, 16] = input batch "x"
%1: BFloat16[8, 8] = matmul(%0, %0) {transpose_a = false, transpose_b = true}
%2: Float32[8, 8] = cast(%1) {dtype = Float32}
%3: Float32[8, 8] = matmul(%2, %2) {transpose_a = false, transpose_b = false}
return %3)");
  ASSERT_EQ(casts.size(), 1u);
  EXPECT_EQ(casts[0].edge, Cast::kInside);
}

TEST_F(Casts, WideningAndNarrowingIsNothing) {
  ir::Graph g = ir::parse(R"(%0: Float16[8] = input batch "x"
%1: Float32[8] = cast(%0) {dtype = Float32}
%2: Float16[8] = cast(%1) {dtype = Float16}
%3: BFloat16[8] = cast(%1) {dtype = BFloat16}
%4: Float16[8] = neg(%2)
return %4, %3)");
  simplify(g);
  ASSERT_EQ(g.nodes.size(), 3u) << ir::print(g);
  EXPECT_EQ(g.nodes[2].inputs[0], g.inputs[0].value) << ir::print(g);
}

}  // namespace
}  // namespace undertow::transforms
