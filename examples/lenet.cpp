// SPDX-License-Identifier: Apache-2.0
// Lesson 2: LeNet-5 on Fashion-MNIST.  example_lenet [folder with the IDX files] [epochs]
#include <undertow/undertow.h>

#include <cstdio>
#include <cstdlib>

namespace ut = undertow;
namespace nn = undertow::nn;

struct LeNet : nn::Cell {
  nn::SequentialCell features = child(
      "features", nn::SequentialCell(nn::Conv2d(1, 6, 5), nn::ReLU(), nn::MaxPool2d({.kernel_size = 2, .stride = 2}),
                                     nn::Conv2d(6, 16, 5, {.pad_mode = "valid"}), nn::ReLU(),
                                     nn::MaxPool2d({.kernel_size = 2, .stride = 2}), nn::Flatten()));
  nn::SequentialCell classes =
      child("classes", nn::SequentialCell(nn::Dense(16 * 5 * 5, 120, {.activation = "relu"}),
                                          nn::Dense(120, 84, {.activation = "relu"}), nn::Dense(84, 10)));
  ut::Tensor construct(const ut::Tensor& x) override { return classes(features(x)); }
  std::string cls_name() const override { return "LeNet"; }
};

/// uint8 [28, 28, 1] to float32 [1, 28, 28] of mean 0 and variance 1.
ut::Tensor prepare(const ut::Tensor& image) {
  constexpr float kMean = 0.2860f * 255, kStd = 0.3530f * 255;
  ut::Tensor out(ut::DType::kFloat32, {1, 28, 28});
  const auto* from = image.data_as<std::uint8_t>();
  auto* to = out.data_as<float>();
  for (std::int64_t i = 0; i < out.size(); ++i) to[i] = (static_cast<float>(from[i]) - kMean) / kStd;
  return out;
}

ut::data::Dataset load(const std::string& folder, const std::string& usage, bool shuffle) {
  return ut::data::FashionMnistDataset(folder, usage, {.shuffle = shuffle})
      .map(prepare, {.input_columns = {"image"}})
      .map([](const ut::Tensor& label) { return label.to(ut::DType::kInt32); }, {.input_columns = {"label"}})
      .batch(32);
}

int main(int argc, char** argv) {
  const std::string folder = argc > 1 ? argv[1] : "/usr/share/datasets/fashion-mnist";
  const int epochs = argc > 2 ? std::atoi(argv[2]) : 5;
  ut::set_context({.mode = ut::GRAPH_MODE});
  ut::set_seed(1);

  const auto train = load(folder, "train", true), test = load(folder, "test", false);
  auto net = nn::make<LeNet>();
  auto opt = nn::Momentum(net.trainable_params(), 0.01, 0.9);
  auto model = ut::Model(net, nn::SoftmaxCrossEntropyWithLogits({.sparse = true, .reduction = "mean"}), opt,
                         {.metrics = {"accuracy", "loss"}});
  model.train(epochs, train, {.callbacks = {ut::LossMonitor(), ut::TimeMonitor()}, .dataset_sink_mode = true});

  auto result = model.eval(test, {.dataset_sink_mode = true});
  std::printf("test accuracy %.4f, loss %.4f\n", result["accuracy"], result["loss"]);
  return result["accuracy"] > 0.75 ? 0 : 1;
}
