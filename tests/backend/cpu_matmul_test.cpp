// SPDX-License-Identifier: Apache-2.0
#include "tests/backend/cpu_util.h"

namespace undertow::test {
namespace {

using namespace backend::cpu;

/// Shapes as they are without transposes; the last two dims are swapped where one is asked for.
std::unique_ptr<Node> product(Ints a, Ints b, bool ta, bool tb, DType dtype = DType::kFloat32) {
  if (ta) std::swap(a[a.size() - 1], a[a.size() - 2]);
  if (tb) std::swap(b[b.size() - 1], b[b.size() - 2]);
  auto node = std::make_unique<Node>("matmul", ir::Attrs{{"transpose_a", ta}, {"transpose_b", tb}},
                                     std::vector<ir::TensorType>{{dtype, Shape(a)}, {dtype, Shape(b)}});
  node->random();
  return node;
}

const std::vector<std::pair<Ints, Ints>> kShapes = {
    {{1, 1}, {1, 1}},
    {{3, 5}, {5, 7}},
    {{32, 256}, {256, 120}},
    {{120, 32}, {32, 256}},
    {{32, 84}, {84, 10}},
    {{64, 1}, {1, 33}},
    {{1, 100}, {100, 50}},
    {{200, 40}, {40, 1}},  // one column
    {{1, 300}, {300, 1}},  // a dot product
    {{130, 70}, {70, 150}},
    {{4, 6, 5}, {4, 5, 9}},         // batch
    {{2, 3, 6, 5}, {5, 9}},         // folded or broadcast
    {{4, 5}, {3, 5, 9}},            //
    {{2, 1, 6, 5}, {1, 3, 5, 17}},  // both broadcast
    {{16, 64, 32}, {16, 32, 64}},
};

TEST(CpuMatmul, EveryCandidateAgreesWithTheReference) {
  int library = 0;
  for (const auto& [a, b] : kShapes)
    for (const bool ta : {false, true})
      for (const bool tb : {false, true}) {
        auto node = product(a, b, ta, tb);
        const std::string what = node->view.in[0].shape.str() + " x " + node->view.in[1].shape.str();
        EXPECT_TRUE(check_kernel(*node, own_matmul, 2e-5, what));
        EXPECT_TRUE(check_kernel(*node, small_matmul, 2e-5, what));
        library += check_kernel(*node, dnnl_matmul, 2e-5, what);
        EXPECT_TRUE(check_kernel(*node, chosen, 2e-5, what));
      }
  EXPECT_GE(library, 40);
}

TEST(CpuMatmul, LargeProductsGoToTheLibrary) {
  auto node = product({300, 200}, {200, 250}, false, true);
  EXPECT_FALSE(small_matmul(node->view).kernel);
  EXPECT_TRUE(choose_kernel(node->view)->description().starts_with("onednn:matmul"));
  EXPECT_TRUE(check_kernel(*node, chosen, 5e-5, "large"));
  EXPECT_TRUE(check_kernel(*node, own_matmul, 5e-5, "large"));
}

TEST(CpuMatmul, NothingToSumIsZero) {
  for (const auto& [a, b] : std::vector<std::pair<Ints, Ints>>{
           {{3, 0}, {0, 4}}, {{0, 3}, {3, 4}}, {{3, 3}, {3, 0}}, {{2, 0, 3}, {2, 3, 4}}, {{0, 2, 3}, {3, 4}}}) {
    auto node = product(a, b, false, false);
    EXPECT_TRUE(check_kernel(*node, chosen, 0, "empty"));
  }
}

TEST(CpuMatmul, OtherTypes) {
  for (const DType dtype : {DType::kBFloat16, DType::kFloat16, DType::kFloat64, DType::kInt32}) {
    auto node = product({33, 20}, {20, 41}, true, true, dtype);
    EXPECT_TRUE(check_kernel(*node, chosen, dtype == DType::kBFloat16 ? 1.6e-2 : 2e-3, std::string(name_of(dtype))));
  }
}

TEST(CpuMatmul, NanAndInfinityPass) {
  auto node = product({4, 8}, {8, 20}, false, false);
  node->input<float>(0)[3] = std::nanf("");
  node->input<float>(1)[20 * 5 + 19] = INFINITY;
  EXPECT_TRUE(check_kernel(*node, own_matmul, 1e-5, "special"));
}

}  // namespace
}  // namespace undertow::test
