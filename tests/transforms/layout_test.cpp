// SPDX-License-Identifier: Apache-2.0
// Convolutional programs in blocks of channels: what the pass leaves, and that the results are those of the program
// without it.
#include "undertow/transforms/layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "undertow/base/philox.h"
#include "undertow/ops/ops.h"
#include "undertow/runtime/context.h"
#include "undertow/runtime/session.h"
#include "undertow/transforms/simplify.h"

namespace undertow::transforms {
namespace {

using Tensors = std::vector<Tensor>;

Tensor uniform(PhiloxStream& r, const Shape& shape) {
  Tensor t(DType::kFloat32, shape);
  for (std::int64_t i = 0; i < t.size(); ++i) t.data_as<float>()[i] = 2 * r.uniform() - 1;
  return t;
}

Tensor normalised(const Tensor& x) {
  const Tensor centred = x - ops::reduce_mean(x, {0, 2, 3}, true);
  return centred * ops::rsqrt(ops::reduce_mean(ops::square(centred), {0, 2, 3}, true) + 0.1);
}

/// The graph of a block with a residual and its gradients, before and after the pass.
ir::Graph traced(const std::function<Tensors(runtime::Trace&, const Tensors&)>& build, const std::vector<Shape>& in) {
  runtime::Trace trace(runtime::Trace::Mode::kCompile);
  const runtime::TraceScope scope(&trace);
  Tensors inputs;
  for (const auto& s : in) inputs.push_back(trace.symbolic_input("x", DType::kFloat32, s));
  for (const auto& t : build(trace, inputs)) trace.output(t);
  trace.finish();
  ir::Graph g = trace.graph();
  simplify(g);
  layout(g, 8);
  simplify(g);
  ir::verify(g);
  return g;
}
std::int64_t count(const ir::Graph& g, const std::string& op) {
  return std::count_if(g.nodes.begin(), g.nodes.end(), [&](const auto& n) { return n.op->name == op; });
}

const ops::ConvOptions kSame{.pads = {1, 1, 1, 1}};

TEST(Layout, OneTransposeAtEachBorderAndNoneInside) {
  const ir::Graph g = traced(
      [](runtime::Trace& trace, const Tensors& in) {
        const Tensor &x = in[0], &w = in[1], &v = in[2];
        const Tensor a = ops::relu(normalised(ops::conv2d(x, w, kSame)));
        const Tensor b = ops::relu(a + normalised(ops::conv2d(a, v, kSame)));
        const Tensor loss = ops::reduce_mean(ops::square(ops::reduce_mean(b, {2, 3})));
        const Tensors grads = trace.gradients(loss, {w, v});
        return Tensors{loss, grads[0], grads[1]};
      },
      {{4, 16, 8, 8}, {32, 16, 3, 3}, {32, 32, 3, 3}});
  EXPECT_EQ(count(g, "transpose"), 1) << ir::print(g);  // of x: weights and results are plain, means are views
  for (const auto& n : g.nodes)
    if (n.op->name.starts_with("conv2d")) {
      EXPECT_EQ(n.attrs.text("layout"), "NCHW8c");
    }
}

TEST(Layout, WhatDoesNotFitStaysPlain) {
  const auto one = [](const Shape& x, const Shape& w, std::int64_t groups) {
    return traced(
        [groups](runtime::Trace&, const Tensors& in) {
          return Tensors{ops::relu(ops::conv2d(in[0], in[1], {.pads = {1, 1, 1, 1}, .groups = groups}))};
        },
        {x, w});
  };
  EXPECT_EQ(count(one({2, 6, 8, 8}, {16, 6, 3, 3}, 1), "transpose"), 0);
  EXPECT_EQ(count(one({2, 16, 8, 8}, {12, 16, 3, 3}, 1), "transpose"), 0);
  EXPECT_EQ(count(one({2, 16, 8, 8}, {16, 4, 3, 3}, 4), "transpose"), 0);   // groups of four channels
  EXPECT_EQ(count(one({2, 16, 8, 8}, {16, 1, 3, 3}, 16), "transpose"), 2);  // depthwise
  EXPECT_EQ(count(one({0, 16, 8, 8}, {16, 16, 3, 3}, 1), "transpose"), 0);
}

/// Makes the same program for the same seed, whatever device runs it.
class Program {
 public:
  explicit Program(std::uint64_t seed) : random_(seed, 3) {}

  Tensors build(runtime::Trace& trace, const Tensors& in) {
    weights_ = {in.begin() + 1, in.end()};
    values_ = {in[0]};
    const int n = 3 + static_cast<int>(random_.below(8));
    for (int i = 0; i < n; ++i) values_.push_back(step());
    Tensor loss = ops::reduce_mean(ops::square(values_.back()));
    for (std::size_t i = 1; i + 1 < values_.size(); i += 2) loss = loss + ops::reduce_mean(ops::tanh(values_[i]));
    Tensors out = trace.gradients(loss, in);
    out.insert(out.begin(), loss);
    out.push_back(values_.back());
    return out;
  }

  static std::vector<Shape> shapes(std::uint64_t seed) {
    const auto hw = static_cast<std::int64_t>(5 + seed % 7);
    return {{2, 16, hw, hw + 1}, {16, 16, 3, 3}, {24, 16, 1, 1}, {16, 24, 3, 3},
            {16, 1, 3, 3},       {16, 16, 1, 1}, {1, 16, 1, 1},  {16, 8, 3, 3}};
  }

 private:
  /// Every value has 16 or 24 channels (weights know the first), at least three rows and columns, or one.
  Tensor step() {
    const Tensor x = values_[random_.below(4) == 0 ? random_.below(values_.size()) : values_.size() - 1];
    const bool wide = x.shape(1) == 24, pixel = x.shape(2) == 1;
    const std::uint64_t kind = random_.below(16);
    if (wide && kind > 8) return ops::conv2d(x, weights_[2], kSame);
    switch (kind) {
      case 0: return normalised(x);
      case 1: return ops::relu(x) + 0.1 * x;
      case 2: return pixel ? ops::sigmoid(x) : ops::max_pool2d(x, {.kernel = {3, 3}, .pads = {1, 1, 1, 1}});
      case 3: return pixel ? ops::exp(-x) : ops::avg_pool2d(x, {.kernel = {3, 2}, .pads = {1, 1, 1, 0}});
      case 4: return x * ops::sigmoid(ops::reduce_mean(x, {2, 3}, true));
      case 5: return x - ops::reduce_max(x, {1}, true);
      case 6: {
        const Shape s = x.shape();
        return ops::reshape(ops::reshape(x, {s[0], -1}) * 0.5, s.to_vector());
      }
      case 7: return x + ops::reduce_mean(x, {0}, true);
      case 8: return ops::index(x, {{ops::Index::kSlice, 0, std::nullopt, std::nullopt, -1}});
      case 9: return ops::conv2d(x, weights_[0], kSame);
      case 10: return ops::conv2d(x, weights_[1]);
      case 11: return ops::conv2d(x, weights_[3], {.pads = {1, 1, 1, 1}, .groups = 16});
      case 12: return ops::conv2d(x, weights_[4], {.strides = {x.shape(2) > 6 ? 2 : 1, 1}});
      case 13: return x * weights_[5] + ops::tanh(weights_[5]);
      case 14: {  // joined and cut along the channels
        const Tensor y = ops::concat({x, ops::neg(x)}, 1);
        return ops::index(y, {ops::Index{ops::Index::kSlice, 0, std::nullopt, std::nullopt, 1},
                              ops::Index{ops::Index::kSlice, 0, 8, 24, 1}});
      }
      default: return ops::conv2d(x, weights_[6], {.pads = {1, 1, 1, 1}, .groups = 2});
    }
  }

  PhiloxStream random_;
  Tensors weights_, values_;
};

TEST(Layout, RandomNetworksEqualTheReference) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    PhiloxStream r(seed, 2);
    Tensors in;
    for (const auto& s : Program::shapes(seed)) in.push_back(uniform(r, s));
    std::vector<Tensors> results;
    for (const char* device : {"reference", "CPU"}) {
      set_context({.mode = GRAPH_MODE, .device_target = device});
      runtime::StepFunction step(
          "random", [&](runtime::Trace& trace, const Tensors& columns) { return Program(seed).build(trace, columns); },
          runtime::StepOutputs::kLoss);
      results.push_back(runtime::run_once(step, in));
    }
    ASSERT_EQ(results[0].size(), results[1].size());
    for (std::size_t k = 0; k < results[0].size(); ++k) {
      const Tensor &a = results[0][k], &b = results[1][k];
      ASSERT_EQ(a.shape(), b.shape()) << "seed " << seed << ", output " << k;
      double scale = 1e-3;
      for (std::int64_t i = 0; i < a.size(); ++i) scale = std::max(scale, std::abs(double(a.data_as<float>()[i])));
      for (std::int64_t i = 0; i < a.size(); ++i)
        ASSERT_NEAR(a.data_as<float>()[i], b.data_as<float>()[i], 5e-4 * scale)
            << "seed " << seed << ", output " << k << ", element " << i;
    }
  }
}

}  // namespace
}  // namespace undertow::transforms
