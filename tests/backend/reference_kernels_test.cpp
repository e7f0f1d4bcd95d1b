// SPDX-License-Identifier: Apache-2.0
// The oracle itself, against values worked out by hand.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "undertow/ops/reference/reference.h"

namespace undertow::ops::reference {
namespace {

using Ints = std::vector<std::int64_t>;
using Function = decltype(ir::OpDef::reference);
using F = std::vector<float>;

const float kNaN = std::nanf("");
constexpr float kInf = std::numeric_limits<float>::infinity();

template <typename T>
struct Array {
  Shape shape;
  std::vector<T> values;
  ir::HostArray host() const { return {const_cast<T*>(values.data()), dtype_of<T>::v, shape}; }
};
template <typename T = float>
Array<T> counted(const Shape& shape, int from = 0) {
  Array<T> a{shape, std::vector<T>(static_cast<std::size_t>(shape.numel()))};
  for (auto& v : a.values) v = static_cast<T>(static_cast<float>(from++));
  return a;
}

/// The first output of type T and the given shape.
template <typename T = float>
std::vector<T> run(const Function& f, std::vector<ir::HostArray> in, const Shape& shape, const ir::Attrs& attrs,
                   ir::StepError* error = nullptr) {
  Array<T> out{shape, std::vector<T>(static_cast<std::size_t>(shape.numel()))};
  std::vector<std::int32_t> second(out.values.size());
  const ir::HostArray outputs[] = {out.host(), {second.data(), DType::kInt32, shape}};
  f(in, outputs, attrs, error);
  return out.values;
}

ir::Attrs conv_attrs(const char* layout, std::int64_t groups = 1, std::int64_t pad = 0, std::int64_t stride = 1,
                     std::int64_t dilation = 1) {
  return {{"strides", Ints{stride, stride}},
          {"pads", Ints{pad, pad, pad, pad}},
          {"dilations", Ints{dilation, dilation}},
          {"groups", groups},
          {"layout", std::string(layout)}};
}
ir::Attrs pool_attrs(std::int64_t kernel, std::int64_t stride, std::int64_t pad, bool include_pad = false) {
  return {{"kernel", Ints{kernel, kernel}},
          {"strides", Ints{stride, stride}},
          {"pads", Ints{pad, pad, pad, pad}},
          {"layout", std::string("NCHW")},
          {"count_include_pad", include_pad}};
}

TEST(ReferenceKernels, MatmulTransposes) {
  const auto a = counted({2, 3}), b = counted({3, 2});
  const Array<float> at{{3, 2}, {0, 3, 1, 4, 2, 5}}, bt{{2, 3}, {0, 2, 4, 1, 3, 5}};
  const F expected{10, 13, 28, 40};
  for (const bool ta : {false, true})
    for (const bool tb : {false, true})
      EXPECT_EQ(
          run(matmul, {(ta ? at : a).host(), (tb ? bt : b).host()}, {2, 2}, {{"transpose_a", ta}, {"transpose_b", tb}}),
          expected);
}

TEST(ReferenceKernels, MatmulBatchesBroadcast) {
  const ir::Attrs plain{{"transpose_a", false}, {"transpose_b", false}};
  const auto a = counted({2, 1, 1, 2}), b = counted({3, 2, 1});
  EXPECT_EQ(run(matmul, {a.host(), b.host()}, {2, 3, 1, 1}, plain), (F{1, 3, 5, 3, 13, 23}));
  EXPECT_EQ(run(matmul, {counted({2, 0}).host(), counted({0, 2}).host()}, {2, 2}, plain), (F{0, 0, 0, 0}));
  EXPECT_TRUE(run(matmul, {counted({0, 2}).host(), counted({2, 2}).host()}, {0, 2}, plain).empty());
}

TEST(ReferenceKernels, SumsAreBetterThanFloat) {
  Array<float> x{{3}, {1e8f, 1, -1e8f}}, one{{3, 1}, {1, 1, 1}};
  EXPECT_EQ(run(reduce_sum, {x.host()}, {}, {{"axes", Ints{0}}}), (F{1}));
  x.shape = {1, 3};
  EXPECT_EQ(run(matmul, {x.host(), one.host()}, {1, 1}, {{"transpose_a", false}, {"transpose_b", false}}), (F{1}));
  const Array<bfloat16> h{{300}, std::vector<bfloat16>(300, bfloat16(1.f))};
  EXPECT_EQ(static_cast<float>(run<bfloat16>(reduce_sum, {h.host()}, {}, {{"axes", Ints{0}}})[0]), 300.f);
}

TEST(ReferenceKernels, Convolution) {
  const auto x = counted({1, 1, 3, 3}), w = counted({1, 1, 2, 2}, 1);
  EXPECT_EQ(run(conv, {x.host(), w.host()}, {1, 1, 2, 2}, conv_attrs("NCHW")), (F{27, 37, 57, 67}));
  EXPECT_EQ(run(conv, {x.host(), w.host()}, {1, 1, 2, 2}, conv_attrs("NCHW", 1, 1, 2)), (F{0, 11, 30, 67}));
  EXPECT_EQ(run(conv, {x.host(), w.host()}, {1, 1, 1, 1}, conv_attrs("NCHW", 1, 0, 1, 2)), (F{0 + 4 + 18 + 32}));
}

TEST(ReferenceKernels, GroupedConvolutionInBothLayouts) {
  const auto x = counted({1, 2, 1, 2}), w = counted({4, 1, 1, 1}, 1);
  EXPECT_EQ(run(conv, {x.host(), w.host()}, {1, 4, 1, 2}, conv_attrs("NCHW", 2)), (F{0, 1, 0, 2, 6, 9, 8, 12}));
  const Array<float> last{{1, 1, 2, 2}, {0, 2, 1, 3}};
  EXPECT_EQ(run(conv, {last.host(), w.host()}, {1, 1, 2, 4}, conv_attrs("NHWC", 2)), (F{0, 0, 6, 8, 1, 2, 9, 12}));
}

// <dy, conv(x, w)> is linear in each: its value is <dx, x> and <dw, w>.
TEST(ReferenceKernels, ConvolutionGradientsAreAdjoint) {
  for (const char* layout : {"NCHW", "NHWC"}) {
    const bool first = std::string(layout) == "NCHW";
    const Shape xs = first ? Shape{2, 4, 5, 6} : Shape{2, 5, 6, 4}, ys = first ? Shape{2, 6, 2, 3} : Shape{2, 2, 3, 6};
    const Shape ws{6, 2, 3, 2};
    const auto attrs = conv_attrs(layout, 2, 1, 2, 2);
    const auto x = counted(xs, -100), w = counted(ws, -30), dy = counted(ys, -20);
    const auto dot = [](const F& a, const F& b) { return std::inner_product(a.begin(), a.end(), b.begin(), 0.0); };
    const double expected = dot(run(conv, {x.host(), w.host()}, ys, attrs), dy.values);
    EXPECT_EQ(dot(run(conv_grad_input, {dy.host(), w.host()}, xs, attrs), x.values), expected);
    EXPECT_EQ(dot(run(conv_grad_weight, {x.host(), dy.host()}, ws, attrs), w.values), expected);
    EXPECT_NE(expected, 0);
  }
}

TEST(ReferenceKernels, MaxPooling) {
  const Array<float> x{{1, 1, 3, 3}, {1, 5, 5, 2, kNaN, 0, -1, -2, -3}};
  F y(4), dx(9);
  std::vector<std::int32_t> index(4);
  const Shape out{1, 1, 2, 2};
  const ir::HostArray outputs[] = {{y.data(), DType::kFloat32, out}, {index.data(), DType::kInt32, out}};
  const ir::HostArray inputs[] = {x.host()};
  max_pool2d(inputs, outputs, pool_attrs(2, 2, 1), nullptr);
  EXPECT_EQ(y[0], 1);
  EXPECT_EQ(y[1], 5);
  EXPECT_EQ(y[2], 2);
  EXPECT_TRUE(std::isnan(y[3]));
  EXPECT_EQ(index, (std::vector<std::int32_t>{3, 2, 1, 0}));
  const auto dy = counted({1, 1, 2, 2}, 1);
  EXPECT_EQ(run(max_pool2d_grad, {dy.host(), outputs[1]}, {1, 1, 3, 3}, pool_attrs(2, 2, 1)),
            (F{1, 2, 0, 3, 4, 0, 0, 0, 0}));
}

TEST(ReferenceKernels, MaxPoolingOfPaddingOnly) {
  const auto x = counted({1, 1, 1, 1}, 7);
  EXPECT_EQ(run(max_pool2d, {x.host()}, {1, 1, 3, 3}, pool_attrs(1, 1, 1))[0], -kInf);
}

TEST(ReferenceKernels, AveragePooling) {
  const auto x = counted({1, 1, 2, 2}, 1), dy = counted({1, 1, 2, 2}, 4);
  EXPECT_EQ(run(avg_pool2d, {x.host()}, {1, 1, 2, 2}, pool_attrs(2, 2, 1, true)), (F{0.25f, 0.5f, 0.75f, 1}));
  EXPECT_EQ(run(avg_pool2d, {x.host()}, {1, 1, 2, 2}, pool_attrs(2, 2, 1, false)), (F{1, 2, 3, 4}));
  EXPECT_EQ(run(avg_pool2d_grad, {dy.host()}, {1, 1, 2, 2}, pool_attrs(2, 2, 1, true)), (F{1, 1.25f, 1.5f, 1.75f}));
  EXPECT_EQ(run(avg_pool2d_grad, {counted({1, 1, 1, 1}, 8).host()}, {1, 1, 2, 2}, pool_attrs(2, 1, 0)),
            (F{2, 2, 2, 2}));
}

TEST(ReferenceKernels, Reductions) {
  const auto x = counted({2, 3}, 1);
  EXPECT_EQ(run(reduce_sum, {x.host()}, {2}, {{"axes", Ints{1}}}), (F{6, 15}));
  EXPECT_EQ(run(reduce_sum, {x.host()}, {1, 3}, {{"axes", Ints{0}}}), (F{5, 7, 9}));
  EXPECT_EQ(run(reduce_prod, {x.host()}, {}, {{"axes", Ints{0, 1}}}), (F{720}));
  EXPECT_EQ(run(reduce_max, {x.host()}, {3}, {{"axes", Ints{0}}}), (F{4, 5, 6}));
  EXPECT_EQ(run(reduce_min, {x.host()}, {2}, {{"axes", Ints{1}}}), (F{1, 4}));
  EXPECT_EQ(run(reduce_sum, {x.host()}, {2, 3}, {{"axes", Ints{}}}), x.values);
  EXPECT_EQ(run(reduce_sum, {counted({2, 0}).host()}, {2}, {{"axes", Ints{1}}}), (F{0, 0}));
  EXPECT_EQ(run(reduce_prod, {counted({0}).host()}, {}, {{"axes", Ints{0}}}), (F{1}));
}

TEST(ReferenceKernels, NaNPassesThroughReductions) {
  const Array<float> x{{3}, {1, kNaN, 3}};
  for (const Function f : {reduce_sum, reduce_prod, reduce_max, reduce_min})
    EXPECT_TRUE(std::isnan(run(f, {x.host()}, {}, {{"axes", Ints{0}}})[0]));
  for (const Function f : {argmax, argmin})
    EXPECT_EQ(run<std::int64_t>(f, {x.host()}, {}, {{"axis", std::int64_t{0}}})[0], 1);
}

TEST(ReferenceKernels, IntegerReductions) {
  const Array<std::int8_t> x{{3}, {100, 100, -1}};
  using I8 = std::vector<std::int8_t>;
  EXPECT_EQ(run<std::int8_t>(reduce_sum, {x.host()}, {}, {{"axes", Ints{0}}}), (I8{static_cast<std::int8_t>(199)}));
  EXPECT_EQ(run<std::int8_t>(reduce_max, {x.host()}, {}, {{"axes", Ints{0}}}), (I8{100}));
  EXPECT_EQ(run<std::int8_t>(reduce_min, {x.host()}, {}, {{"axes", Ints{0}}}), (I8{-1}));
}

TEST(ReferenceKernels, ArgumentsOfExtremes) {
  const Array<float> x{{2, 3}, {1, 3, 3, 0, -1, -1}};
  using I64 = std::vector<std::int64_t>;
  EXPECT_EQ(run<std::int64_t>(argmax, {x.host()}, {2}, {{"axis", std::int64_t{1}}}), (I64{1, 0}));
  EXPECT_EQ(run<std::int64_t>(argmin, {x.host()}, {2}, {{"axis", std::int64_t{1}}}), (I64{0, 1}));
  EXPECT_EQ(run<std::int64_t>(argmax, {x.host()}, {3}, {{"axis", std::int64_t{0}}}), (I64{0, 0, 0}));
}

TEST(ReferenceKernels, Shapes) {
  const auto x = counted({2, 3});
  EXPECT_EQ(run(reshape, {x.host()}, {6}, {}), x.values);
  EXPECT_EQ(run(transpose, {x.host()}, {3, 2}, {{"perm", Ints{1, 0}}}), (F{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(run(transpose, {counted({1, 2, 3}).host()}, {3, 1, 2}, {{"perm", Ints{2, 0, 1}}}), (F{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(run(broadcast_to, {counted({2, 1}).host()}, {2, 2, 2}, {}), (F{0, 0, 1, 1, 0, 0, 1, 1}));
  EXPECT_EQ(run(slice, {x.host()}, {2, 2}, {{"begin", Ints{1, 2}}, {"steps", Ints{-1, -2}}}), (F{5, 3, 2, 0}));
  EXPECT_TRUE(run(slice, {x.host()}, {0, 3}, {{"begin", Ints{0, 0}}, {"steps", Ints{1, 1}}}).empty());
  EXPECT_EQ(run(concat, {counted({2, 1}).host(), counted({2, 0}).host(), counted({2, 2}, 5).host()}, {2, 3},
                {{"axis", std::int64_t{1}}}),
            (F{0, 5, 6, 1, 7, 8}));
}

TEST(ReferenceKernels, Padding) {
  EXPECT_EQ(run(pad, {counted({2}, 1).host()}, {6},
                {{"low", Ints{1}}, {"high", Ints{2}}, {"interior", Ints{1}}, {"value", -1.0}}),
            (F{-1, 1, -1, 2, -1, -1}));
  EXPECT_EQ(run(pad, {counted({0}).host()}, {2},
                {{"low", Ints{1}}, {"high", Ints{1}}, {"interior", Ints{0}}, {"value", std::int64_t{3}}}),
            (F{3, 3}));
}

TEST(ReferenceKernels, Creation) {
  EXPECT_EQ(run(iota, {}, {2, 2}, {{"axis", std::int64_t{0}}}), (F{0, 0, 1, 1}));
  EXPECT_EQ(run(iota, {}, {2, 2}, {{"axis", std::int64_t{1}}}), (F{0, 1, 0, 1}));
  EXPECT_EQ(run(constant, {}, {}, {{"value", 2.5}}), (F{2.5f}));
  EXPECT_EQ(run<std::int64_t>(constant, {}, {}, {{"value", INT64_MAX}})[0], INT64_MAX);
}

TEST(ReferenceKernels, GatherAndItsGradient) {
  const auto x = counted({2, 3});
  const Array<std::int32_t> i{{2, 2}, {2, -3, 0, -1}};
  const ir::Attrs axis1{{"axis", std::int64_t{1}}};
  EXPECT_EQ(run(gather, {x.host(), i.host()}, {2, 2, 2}, axis1), (F{2, 0, 0, 2, 5, 3, 3, 5}));
  EXPECT_EQ(run(scatter_add, {counted({2, 2, 2}, 1).host(), i.host()}, {2, 3}, axis1), (F{5, 0, 5, 13, 0, 13}));
  const Array<std::int64_t> none{{0}, {}};
  EXPECT_EQ(run(scatter_add, {counted({0, 3}).host(), none.host()}, {2, 3}, {{"axis", std::int64_t{0}}}), F(6));
}

TEST(ReferenceKernels, BadIndicesAreReported) {
  const auto x = counted({3, 2});
  const Array<std::int64_t> i{{3}, {1, 3, -4}};
  ir::StepError error;
  EXPECT_EQ(run(gather, {x.host(), i.host()}, {3, 2}, {{"axis", std::int64_t{0}}}, &error), (F{2, 3, 0, 0, 0, 0}));
  EXPECT_EQ(error.code, ir::StepError::kIndexOutOfRange);
  EXPECT_EQ(error.row, 1);
  EXPECT_EQ(error.value, 3);
  EXPECT_EQ(error.low, -3);
  EXPECT_EQ(error.high, 3);

  const Array<std::uint8_t> labels{{3}, {0, 200, 255}};
  run(check_index, {labels.host()}, {}, {{"low", std::int64_t{0}}, {"high", std::int64_t{10}}}, &error);
  EXPECT_EQ(error.value, 3) << "the first error of a step stands";
  error = {};
  run(check_index, {labels.host()}, {}, {{"low", std::int64_t{0}}, {"high", std::int64_t{10}}}, &error);
  EXPECT_EQ(error.row, 1);
  EXPECT_EQ(error.value, 200);
  error = {};
  run(check_index, {labels.host()}, {}, {{"low", std::int64_t{0}}, {"high", std::int64_t{256}}}, &error);
  EXPECT_EQ(error.code, ir::StepError::kNone);
}

TEST(ReferenceKernels, HugeUnsignedIndexIsNotNegative) {
  const auto x = counted({3});
  const Array<std::uint64_t> i{{1}, {UINT64_MAX}};
  ir::StepError error;
  run(gather, {x.host(), i.host()}, {1}, {{"axis", std::int64_t{0}}}, &error);
  EXPECT_EQ(error.code, ir::StepError::kIndexOutOfRange);
}

}  // namespace
}  // namespace undertow::ops::reference
