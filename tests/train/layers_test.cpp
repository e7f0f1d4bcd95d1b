// SPDX-License-Identifier: Apache-2.0
// Layers against loops written out in double.
#include "helpers.h"

namespace undertow {
namespace {

using testing::expect_error;
using testing::expect_near;
using testing::OnDevice;
using testing::random_tensor;
using testing::values;

class Layers : public OnDevice {};
UNDERTOW_ON_DEVICES(Layers);

struct Window {
  std::int64_t kh, kw, sh, sw, dh, dw, top, left, oh, ow;
};

/// y[n, o, i, j] = sum over the window of x * w, groups and dilation included.
std::vector<double> conv_loops(const Tensor& x, const Tensor& w, const Window& g, std::int64_t groups) {
  const std::vector<double> xv = values(x), wv = values(w);
  const std::int64_t n = x.shape(0), c = x.shape(1), h = x.shape(2), wd = x.shape(3), o = w.shape(0), cg = w.shape(1);
  std::vector<double> y;
  for (std::int64_t b = 0; b < n; ++b)
    for (std::int64_t f = 0; f < o; ++f)
      for (std::int64_t i = 0; i < g.oh; ++i)
        for (std::int64_t j = 0; j < g.ow; ++j) {
          double sum = 0;
          for (std::int64_t k = 0; k < cg; ++k)
            for (std::int64_t p = 0; p < g.kh; ++p)
              for (std::int64_t q = 0; q < g.kw; ++q) {
                const std::int64_t r = i * g.sh + p * g.dh - g.top, s = j * g.sw + q * g.dw - g.left;
                if (r < 0 || r >= h || s < 0 || s >= wd) continue;
                const std::int64_t channel = f / (o / groups) * cg + k;
                sum += xv[static_cast<std::size_t>(((b * c + channel) * h + r) * wd + s)] *
                       wv[static_cast<std::size_t>(((f * cg + k) * g.kh + p) * g.kw + q)];
              }
          y.push_back(sum);
        }
  return y;
}

TEST_P(Layers, DenseOverAnyRank) {
  const nn::Dense fc(3, 4);
  const std::vector<double> w = values(fc.weight()), b = values(fc.bias());
  for (const Shape& shape : {Shape{3}, Shape{5, 3}, Shape{2, 5, 3}, Shape{0, 3}}) {
    const Tensor x = random_tensor(shape, 1), y = fc(x);
    std::vector<std::int64_t> want_shape = shape.to_vector();
    want_shape.back() = 4;
    EXPECT_EQ(y.shape().to_vector(), want_shape);
    const std::vector<double> xv = values(x);
    std::vector<double> want;
    for (std::size_t r = 0; r < xv.size() / 3; ++r)
      for (std::size_t o = 0; o < 4; ++o) {
        double sum = b[o];
        for (std::size_t k = 0; k < 3; ++k) sum += xv[r * 3 + k] * w[o * 3 + k];
        want.push_back(sum);
      }
    expect_near(y, want, 1e-6);
  }
}

TEST_P(Layers, DenseOptions) {
  const Tensor w({1.f, -2.f});
  const nn::Dense fc(2, 1, {.weight_init = w.view(Shape{1, 2}), .has_bias = false, .activation = "relu"});
  EXPECT_FALSE(fc.bias().defined());
  expect_near(fc(Tensor(std::vector<float>{3, 1, 1, 3}, Shape{2, 2})), {1, 0}, 0);
  expect_error<ShapeError>([&] { fc(random_tensor(Shape{2, 3}, 1)); }, {"Dense", "(2, 3)", "(1, 2)"});
  expect_error<ValueError>([] { nn::Dense(0, 1); }, {"in_channels", "0"});
  expect_error<ValueError>([] { nn::Dense(1, 1, {.activation = "swish9"}); }, {"swish9", "relu"});
}

TEST_P(Layers, DefaultBoundsFollowFanIn) {
  for (const double v : values(nn::Dense(25, 40).bias())) EXPECT_LE(std::abs(v), 0.2);
  for (const double v : values(nn::Dense(25, 40).weight())) EXPECT_LE(std::abs(v), 0.2);
  const nn::Conv2d conv(4, 8, 5, {.group = 2, .has_bias = true});
  EXPECT_EQ(conv.weight().shape(), (Shape{8, 2, 5, 5}));
  for (const double v : values(conv.weight())) EXPECT_LE(std::abs(v), 1 / std::sqrt(50));
}

TEST_P(Layers, Conv2dPadModes) {
  const Tensor x = random_tensor(Shape{2, 4, 7, 8}, 2);
  {
    const nn::Conv2d conv(4, 6, {3, 2}, {.stride = {2, 3}});  // same: ceil(7/2) x ceil(8/3), extra at bottom and right
    const Tensor y = conv(x);
    EXPECT_EQ(y.shape(), (Shape{2, 6, 4, 3}));
    expect_near(y, conv_loops(x, conv.weight(), {3, 2, 2, 3, 1, 1, 1, 0, 4, 3}, 1), 1e-5, "same");
  }
  {
    const nn::Conv2d conv(4, 6, 3, {.pad_mode = "valid", .dilation = 2, .group = 2});
    const Tensor y = conv(x);
    EXPECT_EQ(y.shape(), (Shape{2, 6, 3, 4}));
    expect_near(y, conv_loops(x, conv.weight(), {3, 3, 1, 1, 2, 2, 0, 0, 3, 4}, 2), 1e-5, "valid");
  }
  {
    const nn::Conv2d conv(4, 6, 3, {.pad_mode = "pad", .padding = {2, 0, 1, 1}, .has_bias = true, .bias_init = 0.5});
    const Tensor y = conv(x);
    EXPECT_EQ(y.shape(), (Shape{2, 6, 7, 8}));
    std::vector<double> want = conv_loops(x, conv.weight(), {3, 3, 1, 1, 1, 1, 2, 1, 7, 8}, 1);
    for (double& v : want) v += 0.5;
    expect_near(y, want, 1e-5, "pad");
  }
  expect_error<ValueError>([] { nn::Conv2d(1, 1, 3, {.padding = 1}); }, {"Conv2d", "padding", "pad_mode", "same"});
  expect_error<ValueError>([] { nn::Conv2d(1, 1, 3, {.pad_mode = "full"}); }, {"full"});
  expect_error<ValueError>([] { nn::Conv2d(3, 4, 3, {.group = 2}); }, {"group", "3"});
  expect_error<ShapeError>([&] { nn::Conv2d(3, 4, 3)(x); }, {"Conv2d", "(2, 4, 7, 8)", "(4, 3, 3, 3)"});
  expect_error<ShapeError>([&] { nn::Conv2d(4, 4, 9, {.pad_mode = "valid"})(x); }, {"9 x 9", "(2, 4, 7, 8)"});
}

TEST_P(Layers, Pools) {
  const Tensor x = random_tensor(Shape{1, 2, 5, 6}, 3);
  EXPECT_EQ(nn::MaxPool2d()(x).shape(), x.shape());  // kernel and stride are 1 by default
  const std::vector<double> v = values(x);
  const Tensor largest = nn::MaxPool2d({.kernel_size = {2, 3}, .stride = 2})(x);
  const Tensor mean = nn::AvgPool2d({.kernel_size = {2, 3}, .stride = 2})(x);
  EXPECT_EQ(largest.shape(), (Shape{1, 2, 2, 2}));
  std::vector<double> want_max, want_mean;
  for (std::size_t c = 0; c < 2; ++c)
    for (std::size_t i = 0; i < 2; ++i)
      for (std::size_t j = 0; j < 2; ++j) {
        double top = -1e9, sum = 0;
        for (std::size_t p = 0; p < 2; ++p)
          for (std::size_t q = 0; q < 3; ++q) {
            const double e = v[(c * 5 + i * 2 + p) * 6 + j * 2 + q];
            top = std::max(top, e);
            sum += e;
          }
        want_max.push_back(top);
        want_mean.push_back(sum / 6);
      }
  expect_near(largest, want_max, 0);
  expect_near(mean, want_mean, 1e-6);

  // "same" never counts padding; "pad" does unless told not to.
  const Tensor ones = Tensor::full(Shape{1, 1, 3, 3}, 1);
  expect_near(nn::AvgPool2d({.kernel_size = 2, .stride = 2, .pad_mode = "same"})(ones), {1, 1, 1, 1}, 1e-6);
  expect_near(nn::AvgPool2d({.kernel_size = 2, .stride = 2, .pad_mode = "pad", .padding = {1, 0, 1, 0}})(ones),
              {0.25, 0.5, 0.5, 1}, 1e-6);
  const Tensor negative = Tensor::full(Shape{1, 1, 3, 3}, -2);
  expect_near(nn::MaxPool2d({.kernel_size = 2, .stride = 2, .pad_mode = "same"})(negative), {-2, -2, -2, -2}, 0);
  expect_error<ValueError>([] { nn::MaxPool2d({.kernel_size = 2, .pad_mode = "pad", .padding = 2}); }, {"half"});
  expect_error<ShapeError>([] { nn::MaxPool2d({.kernel_size = 2})(Tensor({1.f})); }, {"MaxPool2d", "(1,)"});
}

TEST_P(Layers, BatchNormStatistics) {
  const nn::BatchNorm2d bn(1);
  bn.set_train();
  const Tensor x = Tensor(std::vector<float>{1, 2, 3, 4}, Shape{4, 1, 1, 1});
  const double s = std::sqrt(1.25 + 1e-5);
  expect_near(bn(x), {-1.5 / s, -.5 / s, .5 / s, 1.5 / s}, 1e-6);
  expect_near(bn.moving_mean(), {0.25}, 1e-6);
  expect_near(bn.moving_variance(), {0.9 + 0.1 * 5.0 / 3}, 1e-6);

  bn.set_train(false);
  const double e = std::sqrt(0.9 + 0.1 * 5.0 / 3 + 1e-5);
  expect_near(bn(Tensor::full(Shape{1, 1, 1, 1}, 3)), {(3 - 0.25) / e}, 1e-6);
  expect_near(bn.moving_mean(), {0.25}, 1e-6);  // evaluation changes nothing
}

TEST_P(Layers, BatchNormChannels) {
  const nn::BatchNorm1d bn(3, {.eps = 1e-3, .momentum = 0.7, .gamma_init = 2, .beta_init = 0.5});
  bn.set_train();
  const Tensor x = random_tensor(Shape{6, 3}, 4, 90, 110);  // a mean far from 0
  const Tensor y = bn(x);
  const std::vector<double> v = values(x);
  std::vector<double> want(18), mean(3), var(3);
  for (std::size_t c = 0; c < 3; ++c) {
    for (std::size_t i = 0; i < 6; ++i) mean[c] += v[i * 3 + c] / 6;
    for (std::size_t i = 0; i < 6; ++i) var[c] += (v[i * 3 + c] - mean[c]) * (v[i * 3 + c] - mean[c]) / 6;
    for (std::size_t i = 0; i < 6; ++i) want[i * 3 + c] = 0.5 + 2 * (v[i * 3 + c] - mean[c]) / std::sqrt(var[c] + 1e-3);
  }
  expect_near(y, want, 2e-5);
  for (std::size_t c = 0; c < 3; ++c) {
    EXPECT_NEAR(values(bn.moving_mean())[c], 0.3 * mean[c], 1e-4);
    EXPECT_NEAR(values(bn.moving_variance())[c], 0.7 + 0.3 * var[c] * 6 / 5, 1e-3);
  }
}

TEST_P(Layers, BatchNormRefusesOneValuePerChannel) {
  const nn::BatchNorm1d bn(3);
  bn.set_train();
  expect_error<ValueError>([&] { bn(random_tensor(Shape{1, 3}, 5)); },
                           {"BatchNorm1d", "(1, 3)", "more than one value"});
  expect_near(bn.moving_variance(), {1, 1, 1}, 0);
  bn.set_train(false);
  EXPECT_EQ(bn(random_tensor(Shape{1, 3}, 5)).shape(), (Shape{1, 3}));
  expect_error<ShapeError>([&] { bn(random_tensor(Shape{2, 4}, 5)); }, {"BatchNorm1d", "(2, 4)", "(3,)"});
  expect_error<ShapeError>([&] { nn::BatchNorm2d(3)(random_tensor(Shape{2, 3}, 5)); }, {"BatchNorm2d", "(2, 3)"});
}

TEST_P(Layers, BatchStatisticsByChoice) {
  const nn::BatchNorm1d always(1, {.use_batch_statistics = true}), never(1, {.use_batch_statistics = false});
  never.set_train();
  const Tensor x(std::vector<float>{1, 3}, Shape{2, 1});
  expect_near(always(x), {-1, 1}, 1e-4);
  expect_near(never(x), {1, 3}, 1e-4);
}

TEST_P(Layers, DropoutOnlyInTraining) {
  const nn::Dropout drop({.p = 0.25});
  const Tensor x = Tensor::full(Shape{100, 100}, 3);
  expect_near(drop(x), values(x), 0);
  drop.set_train();
  const std::vector<double> v = values(drop(x));
  std::size_t zeros = 0;
  for (const double e : v) {
    if (e == 0) ++zeros;
    else EXPECT_NEAR(e, 4, 1e-5);
  }
  EXPECT_NEAR(static_cast<double>(zeros) / 1e4, 0.25, 0.02);
  EXPECT_NEAR(nn::Dropout({.keep_prob = 0.9})->p(), 0.1, 1e-9);
  expect_error<ValueError>([] { nn::Dropout({.p = 1.0}); }, {"'p'", "1"});
  expect_error<ValueError>([] { nn::Dropout({.keep_prob = 0}); }, {"keep_prob", "0"});
}

TEST_P(Layers, FlattenAndSequence) {
  const auto seq = nn::SequentialCell(nn::Flatten(), nn::ReLU());
  const Tensor y = seq(Tensor(std::vector<float>{-1, 2, -3, 4}, Shape{1, 2, 2}));
  EXPECT_EQ(y.shape(), (Shape{1, 4}));
  expect_near(y, {0, 2, 0, 4}, 0);
}

TEST_P(Layers, ErrorsNameTheCellPath) {
  struct Net : nn::Cell {
    nn::SequentialCell body = child("body", nn::SequentialCell(nn::ReLU(), nn::Dense(8, 1)));
    Tensor construct(const Tensor& x) override { return body(x); }
    std::string cls_name() const override { return "Net"; }
  };
  const auto net = nn::make<Net>();
  expect_error<ShapeError>([&] { net(random_tensor(Shape{2, 3}, 6)); }, {"body.1", "(2, 3)", "(1, 8)"});
}

}  // namespace
}  // namespace undertow
