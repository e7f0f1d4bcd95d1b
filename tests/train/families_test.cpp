// SPDX-License-Identifier: Apache-2.0
// The families of layers as C++ programs use them: options by name, results by hand.
#include "helpers.h"

namespace undertow {
namespace {

using nn::Value;
using testing::expect_error;
using testing::expect_near;
using testing::random_tensor;
using testing::values;

TEST(Families, Activations) {
  const Tensor x({-2.f, -0.5f, 0.f, 3.f});
  expect_near(nn::LeakyReLU({.alpha = 0.1})(x), {-0.2, -0.05, 0, 3}, 1e-6);
  expect_near(nn::HShrink()(x), {-2, 0, 0, 3}, 0);
  expect_near(nn::Hardtanh({.min_val = -1, .max_val = 2})(x), {-1, -0.5, 0, 2}, 0);
  expect_near(nn::GELU({.approximate = false})(x), {-0.04550026, -0.15426877, 0, 2.99595031}, 1e-6);
  expect_near(nn::PReLU(1, 0.5)(x), {-1, -0.25, 0, 3}, 0);
  EXPECT_EQ(nn::get_activation("hswish")->cls_name(), "HSwish");
  expect_error<KeyError>([] { nn::get_activation("none such"); }, {"none such", "relu"});
  expect_error<ValueError>([] { nn::Softplus({.beta = 0}); }, {"Softplus", "beta"});
  expect_error<TypeError>([&] { nn::ReLU().ref()->call({x, x}); }, {"ReLU", "1 input", "2"});
}

TEST(Families, WindowsOfOneAndThreeDimensions) {
  const nn::Conv1d line(2, 3, 3, {.stride = 2, .pad_mode = "pad", .padding = 1, .has_bias = true});
  EXPECT_EQ(line.weight().shape(), (Shape{3, 2, 1, 3}));
  EXPECT_EQ(line(random_tensor(Shape{2, 2, 7}, 1)).shape(), (Shape{2, 3, 4}));
  const nn::Conv3d deep(2, 4, {1, 2, 3}, {.pad_mode = "valid", .group = 2});
  EXPECT_EQ(deep(random_tensor(Shape{1, 2, 3, 4, 5}, 1)).shape(), (Shape{1, 4, 3, 3, 3}));
  const nn::Conv2dTranspose up(2, 3, 3, {.stride = 2});
  EXPECT_EQ(up(random_tensor(Shape{1, 2, 4, 5}, 1)).shape(), (Shape{1, 3, 8, 10}));
  const Tensor ones = Tensor::full(Shape{1, 1, 5}, 1);
  expect_near(nn::AvgPool1d({.kernel_size = 2, .stride = 2, .pad_mode = "pad", .padding = 1})(ones), {0.5, 1, 1}, 1e-6);
  expect_near(nn::AdaptiveAvgPool1d({.output_size = 2})(ones), {1, 1}, 1e-6);
  const Value both = nn::MaxPool1d({.kernel_size = 2, .pad_mode = "pad", .return_indices = true})
                         .ref()
                         ->call({Tensor(std::vector<float>{1, 3, 2, 2}, Shape{1, 1, 4})});
  expect_near(both.list()[0].tensor(), {3, 3, 2}, 0);
  EXPECT_EQ(both.list()[1].tensor().data_as<std::int64_t>()[2], 2);
}

TEST(Families, Normalisations) {
  const Tensor x = random_tensor(Shape{2, 4, 3}, 5);
  const std::vector<double> v = values(x), y = values(nn::GroupNorm(2, 4)(x));
  for (std::size_t g = 0; g < 4; ++g) {  // groups of two channels of three values
    double mean = 0, var = 0;
    for (std::size_t i = 0; i < 6; ++i) mean += v[g * 6 + i] / 6;
    for (std::size_t i = 0; i < 6; ++i) var += (v[g * 6 + i] - mean) * (v[g * 6 + i] - mean) / 6;
    for (std::size_t i = 0; i < 6; ++i) EXPECT_NEAR(y[g * 6 + i], (v[g * 6 + i] - mean) / std::sqrt(var + 1e-5), 1e-5);
  }
  EXPECT_EQ(nn::LayerNorm({4, 3}, {.begin_norm_axis = 1, .begin_params_axis = 1})(x).shape(), x.shape());
  expect_error<ShapeError>([&] { nn::LayerNorm({4})(x); }, {"LayerNorm", "(4,)", "(2, 4, 3)"});
}

TEST(Families, RecurrentLayers) {
  const nn::LSTM lstm(3, 5, {.num_layers = 2, .bidirectional = true});
  const Tensor x = random_tensor(Shape{4, 2, 3}, 2);
  EXPECT_EQ(lstm(x).shape(), (Shape{4, 2, 10}));
  EXPECT_EQ(lstm.get_parameters().size(), 16u);
  const Value all = lstm.ref()->call({x, Value(), Tensor(std::vector<std::int32_t>{4, 1})});
  const std::vector<double> y = values(all.list()[0].tensor());
  for (std::size_t t = 1; t < 4; ++t)  // sample 1 has one step
    for (std::size_t i = 0; i < 10; ++i) EXPECT_EQ(y[(t * 2 + 1) * 10 + i], 0);
  expect_error<ShapeError>([&] { lstm(random_tensor(Shape{4, 2, 2}, 2)); }, {"LSTM", "input_size = 3", "(4, 2, 2)"});
}

TEST(Families, Attention) {
  const nn::MultiheadAttention attention(4, 2, {.batch_first = true});
  const Tensor x = random_tensor(Shape{2, 3, 4}, 3);
  const Value r = attention.ref()->call({x, x, x});
  EXPECT_EQ(r.list()[0].tensor().shape(), x.shape());
  const std::vector<double> w = values(r.list()[1].tensor());
  for (std::size_t row = 0; row < 6; ++row) EXPECT_NEAR(w[row * 3] + w[row * 3 + 1] + w[row * 3 + 2], 1, 1e-5);
}

TEST(Families, Losses) {
  const Tensor x = Tensor(std::vector<float>{1, 2, 0.5f, 0}, Shape{2, 2}), y = Tensor::zeros(Shape{2, 2});
  expect_near(nn::HuberLoss({.reduction = "none"})(x, y), {0.5, 1.5, 0.125, 0}, 1e-6);
  expect_near(nn::KLDivLoss({.reduction = "batchmean"})(y, x), {(2 * std::log(2.0) + 0.5 * std::log(0.5)) / 2}, 1e-6);
  const Tensor ids(std::vector<std::int64_t>{1, 0});
  const double want = (std::log(1 + std::exp(-1.0)) + std::log(1 + std::exp(-0.5))) / 2;
  expect_near(nn::CrossEntropyLoss()(x, ids), {want}, 1e-6);
  expect_error<ValueError>([] { nn::MSELoss({.reduction = "avg"}); }, {"reduction", "avg"});
}

}  // namespace
}  // namespace undertow
