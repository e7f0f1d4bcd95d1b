// SPDX-License-Identifier: Apache-2.0
#include <numeric>

#include "tests/backend/cpu_util.h"

namespace undertow::test {
namespace {

using namespace backend::cpu;

void check(const char* op, ir::Attrs attrs, std::vector<ir::TensorType> in) {
  Node node(op, std::move(attrs), std::move(in));
  node.random();
  EXPECT_TRUE(check_kernel(node, chosen, 0, op));
}
ir::TensorType f32(Shape s) { return {DType::kFloat32, s}; }

TEST(CpuMovement, TransposesOfAllSizes) {
  for (const DType dtype : {DType::kFloat32, DType::kBool, DType::kBFloat16, DType::kFloat64}) {
    check("transpose", {{"perm", Ints{1, 0}}}, {{dtype, {300, 170}}});
    check("transpose", {{"perm", Ints{0, 2, 3, 1}}}, {{dtype, {3, 5, 33, 40}}});
    check("transpose", {{"perm", Ints{0, 3, 1, 2}}}, {{dtype, {3, 33, 40, 5}}});
    check("transpose", {{"perm", Ints{2, 0, 1}}}, {{dtype, {7, 1, 9}}});
    check("transpose", {{"perm", Ints{0, 1}}}, {{dtype, {1, 1}}});
    check("transpose", {{"perm", Ints{1, 0}}}, {{dtype, {0, 4}}});
  }
  Ints perm{0, 1, 2, 3};
  do check("transpose", {{"perm", perm}}, {f32({2, 3, 4, 5})});
  while (std::next_permutation(perm.begin(), perm.end()));
}

TEST(CpuMovement, SlicesForwardsBackwardsAndStrided) {
  check("slice", {{"begin", Ints{2, 1}}, {"steps", Ints{1, 1}}, {"shape", Ints{5, 7}}}, {f32({9, 11})});
  check("slice", {{"begin", Ints{8, 10}}, {"steps", Ints{-2, -3}}, {"shape", Ints{4, 4}}}, {f32({9, 11})});
  check("slice", {{"begin", Ints{0, 0, 1}}, {"steps", Ints{1, 2, 1}}, {"shape", Ints{400, 3, 20}}},
        {f32({400, 5, 30})});
  check("slice", {{"begin", Ints{3}}, {"steps", Ints{1}}, {"shape", Ints{0}}}, {f32({9})});
  check("slice", {{"begin", Ints{}}, {"steps", Ints{}}, {"shape", Ints{}}}, {f32({})});
}

TEST(CpuMovement, Pads) {
  const auto pad = [](Shape s, Ints low, Ints high, Ints interior, DType dtype = DType::kFloat32) {
    check("pad", {{"low", low}, {"high", high}, {"interior", interior}, {"value", 2.5}}, {{dtype, s}});
  };
  pad({3, 4}, {1, 2}, {0, 3}, {0, 0});
  pad({3, 4}, {0, 0}, {0, 0}, {1, 2});
  pad({200, 30, 4}, {1, 2, 0}, {3, 1, 2}, {0, 1, 0}, DType::kBFloat16);
  pad({0, 4}, {1, 2}, {0, 3}, {0, 0});
  pad({5}, {1}, {1}, {0}, DType::kInt64);
}

TEST(CpuMovement, Concatenations) {
  check("concat", {{"axis", std::int64_t{0}}}, {f32({2, 3}), f32({4, 3})});
  check("concat", {{"axis", std::int64_t{1}}}, {f32({300, 30}), f32({300, 0}), f32({300, 71})});
  check("concat", {{"axis", std::int64_t{1}}}, {{DType::kBool, {5, 2, 3}}, {DType::kBool, {5, 1, 3}}});
  check("concat", {{"axis", std::int64_t{0}}}, {f32({0, 3}), f32({0, 3})});
}

TEST(CpuMovement, Broadcasts) {
  check("broadcast_to", {{"shape", Ints{50, 60, 7}}}, {f32({60, 1})});
  check("broadcast_to", {{"shape", Ints{50, 60, 7}}}, {f32({50, 1, 7})});
  check("broadcast_to", {{"shape", Ints{3}}}, {f32({})});
  check("broadcast_to", {{"shape", Ints{0, 3}}}, {f32({1, 3})});
}

template <typename T>
void set_indices(Node& node, std::vector<T> values) {
  for (std::int64_t i = 0; i < node.view.in[1].shape.numel(); ++i)
    node.input<T>(1)[i] = values[static_cast<std::size_t>(i) % values.size()];
}

TEST(CpuIndex, GatherAndScatterAdd) {
  for (const std::int64_t axis : {0, 1, 2})
    for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
      Node gather("gather", {{"axis", axis}}, {{dtype, {10, 9, 8}}, {DType::kInt32, {30, 4}}});
      gather.random();
      set_indices<std::int32_t>(gather, {0, 7, -1, 3, 3, -8, 5});
      EXPECT_TRUE(check_kernel(gather, chosen, 0, "gather"));
      Node scatter("scatter_add", {{"axis", axis}, {"input_shape", Ints{10, 9, 8}}},
                   {gather.view.out[0], {DType::kInt32, {30, 4}}});
      scatter.random();
      set_indices<std::int32_t>(scatter, {0, 7, -1, 3, 3, -8, 5});
      EXPECT_TRUE(check_kernel(scatter, chosen, dtype == DType::kFloat32 ? 1e-5 : 1e-2, "scatter_add"));
    }
  Node large("gather", {{"axis", std::int64_t{0}}}, {{DType::kFloat32, {1000, 64}}, {DType::kInt64, {700}}});
  large.random();
  set_indices<std::int64_t>(large, {0, 999, 17, -5});
  EXPECT_TRUE(check_kernel(large, gather, 0, "gather"));
}

TEST(CpuIndex, OutOfRangeIsReportedOnce) {
  Node node("gather", {{"axis", std::int64_t{0}}}, {{DType::kFloat32, {4, 3}}, {DType::kInt64, {5}}});
  node.random();
  set_indices<std::int64_t>(node, {1, 4, -5, 0, 2});
  ir::StepError error;
  auto kernel = choose_kernel(node.view);
  auto got = node.run(*kernel, &error), want = node.reference();
  EXPECT_EQ(error.code, ir::StepError::kIndexOutOfRange);
  EXPECT_EQ(error.node, 7);
  EXPECT_EQ(error.row, 1);
  EXPECT_EQ(error.value, 4);
  EXPECT_EQ(error.low, -4);
  EXPECT_EQ(error.high, 4);
  EXPECT_TRUE(same_bits(got, want));
}

TEST(CpuIndex, ArgExtremesAreTheFirstAndNanWins) {
  for (const char* op : {"argmax", "argmin"})
    for (const std::int64_t axis : {0, 1, 2})
      for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kInt32}) {
        Node node(op, {{"axis", axis}, {"keep_dims", false}}, {{dtype, {40, 30, 50}}});
        node.random();
        if (dtype == DType::kFloat32)
          for (int i = 0; i < 60000; i += 97) node.input<float>(0)[i] = std::nanf("");
        EXPECT_TRUE(check_kernel(node, chosen, 0, op));
      }
}

TEST(CpuIndex, CheckIndex) {
  Node node("check_index", {{"low", std::int64_t{0}}, {"high", std::int64_t{10}}}, {{DType::kInt32, {6}}});
  for (int i = 0; i < 6; ++i) node.input<std::int32_t>(0)[i] = i;
  auto kernel = choose_kernel(node.view);
  ir::StepError error;
  node.run(*kernel, &error);
  EXPECT_EQ(error.code, ir::StepError::kNone);
  node.input<std::int32_t>(0)[4] = 10;
  node.input<std::int32_t>(0)[5] = -1;
  node.run(*kernel, &error);
  EXPECT_EQ(error.code, ir::StepError::kIndexOutOfRange);
  EXPECT_EQ(error.row, 4);
  EXPECT_EQ(error.value, 10);
  EXPECT_EQ(error.high, 10);
}

}  // namespace
}  // namespace undertow::test
