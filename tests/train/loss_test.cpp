// SPDX-License-Identifier: Apache-2.0
#include "helpers.h"

namespace undertow {
namespace {

using testing::expect_error;
using testing::expect_near;
using testing::OnDevice;
using testing::random_tensor;
using testing::values;

class Losses : public OnDevice {};
UNDERTOW_ON_DEVICES(Losses);

TEST_P(Losses, SquaresAndDistances) {
  const Tensor a(std::vector<float>{1, 2, 3, 4}, Shape{2, 2}), b(std::vector<float>{0, 4, 3, 1}, Shape{2, 2});
  expect_near(nn::MSELoss()(a, b), {14.0 / 4}, 1e-6);
  expect_near(nn::MSELoss({.reduction = "sum"})(a, b), {14}, 1e-6);
  expect_near(nn::MSELoss({.reduction = "none"})(a, b), {1, 4, 0, 9}, 1e-6);
  expect_near(nn::L1Loss()(a, b), {6.0 / 4}, 1e-6);
  expect_error<ShapeError>([&] { nn::MSELoss()(a, Tensor({1.f, 2.f})); }, {"MSELoss", "(2, 2)", "(2,)"});
  expect_error<ValueError>([] { nn::MSELoss({.reduction = "average"}); }, {"average"});
}

TEST_P(Losses, CrossEntropy) {
  const Tensor logits = random_tensor(Shape{5, 4}, 1, -30, 30);
  const Tensor labels = Tensor(std::vector<std::int32_t>{3, 0, 2, 1, 1});
  const std::vector<double> x = values(logits);
  std::vector<double> rows;
  Tensor one_hot = Tensor::zeros(Shape{5, 4});
  for (std::size_t r = 0; r < 5; ++r) {
    double top = -1e9, sum = 0;
    for (std::size_t c = 0; c < 4; ++c) top = std::max(top, x[r * 4 + c]);
    for (std::size_t c = 0; c < 4; ++c) sum += std::exp(x[r * 4 + c] - top);
    const auto y = static_cast<std::size_t>(labels.data_as<std::int32_t>()[r]);
    rows.push_back(std::log(sum) + top - x[r * 4 + y]);
    one_hot.data_as<float>()[r * 4 + y] = 1;
  }
  double mean = 0;
  for (const double v : rows) mean += v / 5;
  expect_near(nn::SoftmaxCrossEntropyWithLogits({.sparse = true})(logits, labels), rows, 1e-6);
  expect_near(nn::SoftmaxCrossEntropyWithLogits({.sparse = true, .reduction = "mean"})(logits, labels), {mean}, 1e-6);
  expect_near(nn::SoftmaxCrossEntropyWithLogits({.sparse = true})(logits, labels.to(DType::kInt64)), rows, 1e-6);
  expect_near(nn::SoftmaxCrossEntropyWithLogits()(logits, one_hot), rows, 1e-6);
}

TEST_P(Losses, LabelOutOfRange) {
  const nn::SoftmaxCrossEntropyWithLogits loss({.sparse = true, .reduction = "mean"});
  const Tensor logits = Tensor::zeros(Shape{2, 3});
  expect_near(loss(logits, Tensor(std::vector<std::int32_t>{0, 2})), {std::log(3.0)}, 1e-6);
  expect_error<IndexError>([&] { loss(logits, Tensor(std::vector<std::int32_t>{0, 3})); }, {"3", "row 1", "0 to 2"});
  expect_error<IndexError>([&] { loss(logits, Tensor(std::vector<std::int32_t>{0, -1})); }, {"-1", "row 1", "0 to 2"});
  expect_error<IndexError>([&] { loss(logits, Tensor(std::vector<std::int64_t>{0, std::int64_t{1} << 31})); },
                           {"2147483648", "row 1", "0 to 2"});
  expect_error<ShapeError>([&] { loss(logits, Tensor(std::vector<std::int32_t>{0, 1, 2})); }, {"(2, 3)", "(3,)"});
  expect_error<TypeError>([&] { loss(logits, Tensor({0.f, 1.f})); }, {"Float32"});
}

}  // namespace
}  // namespace undertow
