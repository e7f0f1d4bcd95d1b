// SPDX-License-Identifier: Apache-2.0
#include "tests/backend/cpu_util.h"

namespace undertow::test {
namespace {

using namespace backend::cpu;

struct Pool {
  std::int64_t n, c, h, w;
  Ints kernel, strides, pads{0, 0, 0, 0};
};

const std::vector<Pool> kPools = {
    {2, 6, 24, 24, {2, 2}, {2, 2}},
    {2, 16, 8, 8, {2, 2}, {2, 2}},
    {3, 5, 7, 11, {2, 2}, {2, 2}},                 // a row and a column over
    {40, 8, 26, 26, {2, 2}, {2, 2}},               // more than one thread's work
    {2, 9, 15, 17, {3, 3}, {2, 2}, {1, 1, 1, 1}},  // ResNet
    {2, 9, 15, 17, {3, 2}, {1, 3}, {1, 0, 0, 1}},
    {1, 1, 1, 1, {1, 1}, {1, 1}},
    {2, 17, 20, 20, {5, 5}, {1, 1}, {2, 2, 2, 2}},  // overlapping
    {2, 3, 7, 7, {7, 7}, {7, 7}},                   // the whole plane
    {2, 3, 9, 30, {2, 3}, {4, 4}, {0, 0, 0, 0}},    // gaps
    {1, 3, 4, 4, {2, 2}, {2, 2}, {2, 2, 2, 2}},     // windows of padding only
};

ir::Attrs attrs_of(const Pool& p, const char* layout, bool average, bool include_pad) {
  ir::Attrs a{{"kernel", p.kernel}, {"strides", p.strides}, {"pads", p.pads}, {"layout", std::string(layout)}};
  if (average) a.set("count_include_pad", include_pad);
  return a;
}
Shape image(const Pool& p, const char* layout) {
  return std::string_view(layout) == "NHWC" ? Shape{p.n, p.h, p.w, p.c} : Shape{p.n, p.c, p.h, p.w};
}

class CpuPool : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Layouts, CpuPool, testing::Values("NCHW", "NHWC"));

/// Rounded to few values, so that maxima tie, with NaN and infinities among them.
void make_hard(float* x, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    x[i] = std::round(x[i] * 3);
    if (i % 37 == 5) x[i] = std::nanf("");
    if (i % 41 == 7) x[i] = -INFINITY;
  }
}

TEST_P(CpuPool, MaximumIsTheFirstAndNanWins) {
  for (std::size_t i = 0; i < kPools.size(); ++i) {
    const Pool& p = kPools[i];
    Node node("max_pool2d", attrs_of(p, GetParam(), false, false), {{DType::kFloat32, image(p, GetParam())}});
    node.random();
    make_hard(node.input<float>(0), node.view.in[0].shape.numel());
    EXPECT_TRUE(check_kernel(node, max_pool2d, 0, "max pool " + std::to_string(i)));
  }
}

TEST_P(CpuPool, MaximumGradient) {
  for (std::size_t i = 0; i < kPools.size(); ++i) {
    const Pool& p = kPools[i];
    Node forward("max_pool2d", attrs_of(p, GetParam(), false, false), {{DType::kFloat32, image(p, GetParam())}});
    forward.random();
    auto y = forward.reference();
    ir::Attrs a = attrs_of(p, GetParam(), false, false);
    a.set("input_shape", image(p, GetParam()).to_vector());
    Node grad("max_pool2d_grad", a, {forward.view.out[0], forward.view.out[1]});
    grad.random();
    std::memcpy(grad.inputs[1].data(), y[1].data(), y[1].size());
    EXPECT_TRUE(check_kernel(grad, max_pool2d_grad, 1e-6, "max pool grad " + std::to_string(i)));
  }
}

TEST_P(CpuPool, AverageAndItsGradient) {
  for (std::size_t i = 0; i < kPools.size(); ++i)
    for (const bool include_pad : {true, false}) {
      const Pool& p = kPools[i];
      Node node("avg_pool2d", attrs_of(p, GetParam(), true, include_pad), {{DType::kFloat32, image(p, GetParam())}});
      node.random();
      EXPECT_TRUE(check_kernel(node, avg_pool2d, 1e-6, "average pool " + std::to_string(i)));
      ir::Attrs a = attrs_of(p, GetParam(), true, include_pad);
      a.set("input_shape", image(p, GetParam()).to_vector());
      Node grad("avg_pool2d_grad", a, {node.view.out[0]});
      grad.random();
      EXPECT_TRUE(check_kernel(grad, avg_pool2d_grad, 1e-6, "average pool grad " + std::to_string(i)));
    }
}

TEST_P(CpuPool, HalfAndOtherTypes) {
  const Pool& p = kPools[4];
  for (const DType dtype : {DType::kBFloat16, DType::kFloat16, DType::kFloat64, DType::kInt32}) {
    Node node("max_pool2d", attrs_of(p, GetParam(), false, false), {{dtype, image(p, GetParam())}});
    node.random();
    EXPECT_TRUE(check_kernel(node, chosen, 0, std::string(name_of(dtype))));
    if (!is_floating(dtype)) continue;
    Node average("avg_pool2d", attrs_of(p, GetParam(), true, false), {{dtype, image(p, GetParam())}});
    average.random();
    EXPECT_TRUE(check_kernel(average, chosen, is_half(dtype) ? 1e-2 : 1e-6, std::string(name_of(dtype))));
  }
}

TEST_P(CpuPool, NoImages) {
  const Pool p{0, 3, 8, 8, {2, 2}, {2, 2}};
  Node node("max_pool2d", attrs_of(p, GetParam(), false, false), {{DType::kFloat32, image(p, GetParam())}});
  EXPECT_TRUE(check_kernel(node, chosen, 0, "empty"));
}

}  // namespace
}  // namespace undertow::test
