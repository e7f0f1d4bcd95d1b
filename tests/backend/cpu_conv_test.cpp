// SPDX-License-Identifier: Apache-2.0
#include "tests/backend/cpu_util.h"
#include "undertow/ops/channel_blocks.h"

namespace undertow::test {
namespace {

using namespace backend::cpu;

struct Conv {
  std::int64_t n, c, h, w, o, kh, kw;
  Ints strides{1, 1}, pads{0, 0, 0, 0}, dilations{1, 1};
  std::int64_t groups = 1;
};

const std::vector<Conv> kConvs = {
    {2, 1, 28, 28, 6, 5, 5},                                  // LeNet
    {3, 6, 12, 12, 16, 5, 5},                                 //
    {1, 1, 1, 1, 1, 1, 1},                                    //
    {2, 3, 7, 9, 5, 3, 2},                                    // odd everything
    {2, 3, 7, 9, 5, 3, 2, {1, 1}, {1, 0, 2, 1}},              // asymmetric pads
    {2, 4, 9, 11, 6, 3, 3, {2, 1}, {1, 1, 1, 1}},             // strides
    {2, 4, 13, 11, 6, 3, 3, {1, 1}, {2, 2, 2, 2}, {2, 2}},    // dilations
    {2, 4, 13, 12, 6, 3, 2, {2, 3}, {0, 1, 2, 0}, {2, 3}},    // all of them
    {2, 6, 8, 8, 9, 3, 3, {1, 1}, {1, 1, 1, 1}, {1, 1}, 3},   // groups
    {9, 8, 6, 17, 8, 3, 3, {1, 1}, {1, 1, 1, 1}, {1, 1}, 8},  // depthwise
    {2, 16, 14, 14, 32, 3, 3, {1, 1}, {1, 1, 1, 1}},          // blocked channels
    {2, 16, 14, 14, 32, 1, 1, {2, 2}},                        //
    {2, 3, 32, 32, 16, 7, 7, {2, 2}, {3, 3, 3, 3}},           // a stem
    {17, 2, 5, 5, 3, 5, 5, {1, 1}, {4, 4, 4, 4}},             // pads as wide as the window
    {2, 2, 3, 3, 3, 2, 2, {1, 1}, {3, 2, 3, 2}},              // and wider
    {70, 3, 10, 10, 7, 3, 3, {1, 1}, {1, 1, 1, 1}},           // more images than chunks
};

ir::Attrs attrs_of(const Conv& c, const char* layout) {
  return {{"strides", c.strides},
          {"pads", c.pads},
          {"dilations", c.dilations},
          {"groups", c.groups},
          {"layout", std::string(layout)}};
}
Shape image(const char* layout, std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w) {
  if (const std::int64_t block = ops::channel_block(layout)) return ops::with_blocks({n, c, h, w}, block);
  return std::string_view(layout) == "NHWC" ? Shape{n, h, w, c} : Shape{n, c, h, w};
}

struct Nodes {
  std::unique_ptr<Node> forward, grad_input, grad_weight;
};
Nodes nodes_of(const Conv& c, const char* layout, DType dtype) {
  const ir::TensorType x{dtype, image(layout, c.n, c.c, c.h, c.w)}, w{dtype, Shape{c.o, c.c / c.groups, c.kh, c.kw}};
  Nodes nodes;
  nodes.forward = std::make_unique<Node>("conv2d", attrs_of(c, layout), std::vector{x, w});
  const ir::TensorType y = nodes.forward->view.out[0];
  ir::Attrs a = attrs_of(c, layout);
  a.set("input_shape", x.shape.to_vector());
  nodes.grad_input = std::make_unique<Node>("conv2d_grad_input", a, std::vector{y, w});
  a = attrs_of(c, layout);
  a.set("weight_shape", w.shape.to_vector());
  nodes.grad_weight = std::make_unique<Node>("conv2d_grad_weight", a, std::vector{x, y});
  for (auto* n : {&nodes.forward, &nodes.grad_input, &nodes.grad_weight}) (*n)->random();
  return nodes;
}
std::string text(std::size_t i, const char* layout) { return "convolution " + std::to_string(i) + " " + layout; }

class CpuConv : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Layouts, CpuConv, testing::Values("NCHW", "NHWC", "NCHW8c"));

TEST_P(CpuConv, EveryCandidateAgreesWithTheReference) {
  int small = 0, library = 0;
  for (std::size_t i = 0; i < kConvs.size(); ++i) {
    Nodes n = nodes_of(kConvs[i], GetParam(), DType::kFloat32);
    const std::string what = text(i, GetParam());
    small += check_kernel(*n.forward, small_conv2d, 2e-5, what);
    library += check_kernel(*n.forward, dnnl_conv, 2e-5, what);
    EXPECT_TRUE(check_kernel(*n.forward, chosen, 2e-5, what));
    small += check_kernel(*n.grad_input, small_conv2d_grad_input, 2e-5, what + " grad input");
    library += check_kernel(*n.grad_input, dnnl_conv_grad_input, 2e-5, what + " grad input");
    EXPECT_TRUE(check_kernel(*n.grad_input, chosen, 2e-5, what + " grad input"));
    small += check_kernel(*n.grad_weight, small_conv2d_grad_weight, 1e-4, what + " grad weight");
    library += check_kernel(*n.grad_weight, dnnl_conv_grad_weight, 1e-4, what + " grad weight");
    EXPECT_TRUE(check_kernel(*n.grad_weight, chosen, 1e-4, what + " grad weight"));
  }
  EXPECT_GE(library, 40);  // the library takes nearly all
  if (std::string_view(GetParam()) == "NCHW") {
    EXPECT_GE(small, 25);
  }
}

TEST_P(CpuConv, HalfTypes) {
  for (const DType dtype : {DType::kBFloat16, DType::kFloat16})
    for (const std::size_t i : {0, 4, 7, 8, 10}) {
      Nodes n = nodes_of(kConvs[i], GetParam(), dtype);
      const double tolerance = dtype == DType::kFloat16 ? 2e-3 : 1.6e-2;
      for (Node* node : {n.forward.get(), n.grad_input.get(), n.grad_weight.get()})
        EXPECT_TRUE(check_kernel(*node, chosen, tolerance, text(i, GetParam())));
    }
}

TEST_P(CpuConv, EmptyBatchGivesNothingAndZeroGradient) {
  Nodes n = nodes_of({0, 3, 8, 8, 4, 3, 3}, GetParam(), DType::kFloat32);
  EXPECT_TRUE(check_kernel(*n.forward, chosen, 0, "empty"));
  EXPECT_TRUE(check_kernel(*n.grad_input, chosen, 0, "empty"));
  EXPECT_TRUE(check_kernel(*n.grad_weight, chosen, 0, "empty"));
}

/// d sum(y * r) / d x and / d w by central differences, in NCHW and NHWC, through the chosen kernels.
TEST_P(CpuConv, GradientsAreTheNumericOnes) {
  const Conv c{2, 2, 5, 6, 3, 3, 2, {1, 1}, {1, 0, 1, 1}};
  Nodes n = nodes_of(c, GetParam(), DType::kFloat32);
  const auto make = [](Node& node) { return choose_kernel(node.view); };
  auto forward = make(*n.forward), grad_input = make(*n.grad_input), grad_weight = make(*n.grad_weight);
  const std::int64_t count = n.forward->view.out[0].shape.numel();
  float* r = n.grad_input->input<float>(0);
  std::memcpy(n.grad_weight->input<float>(1), r, static_cast<std::size_t>(count) * 4);
  std::memcpy(n.grad_weight->input<float>(0), n.forward->input<float>(0), n.forward->inputs[0].size());
  std::memcpy(n.grad_input->input<float>(1), n.forward->input<float>(1), n.forward->inputs[1].size());
  const auto loss = [&] {
    auto y = n.forward->run(*forward);
    double sum = 0;
    for (std::int64_t i = 0; i < count; ++i) sum += double(reinterpret_cast<float*>(y[0].data())[i]) * r[i];
    return sum;
  };
  auto dx = n.grad_input->run(*grad_input), dw = n.grad_weight->run(*grad_weight);
  for (const std::size_t which : {0, 1}) {
    const auto* analytic = reinterpret_cast<const float*>((which ? dw : dx)[0].data());
    float* p = n.forward->input<float>(which);
    for (std::int64_t i = 0; i < n.forward->view.in[which].shape.numel(); i += 3) {
      const float old = p[i];
      p[i] = old + 0.125f;  // linear in each input: the step may be large
      const double up = loss();
      p[i] = old - 0.125f;
      const double down = loss();
      p[i] = old;
      EXPECT_NEAR(analytic[i], (up - down) / 0.25, 1e-4);
    }
  }
}

}  // namespace
}  // namespace undertow::test
