// SPDX-License-Identifier: Apache-2.0
// Trains a LeNet with BatchNorm and Dropout and prints the bits of every loss and parameter. tests/python/
// test_languages.py trains the same network from Python and expects the same text.  language_bits <sink_size, 0: off>
#include <undertow/undertow.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace ut = undertow;
namespace nn = undertow::nn;

struct Net : nn::Cell {
  nn::Conv2d conv1 = child("conv1", nn::Conv2d(1, 6, 5, {.pad_mode = "valid"}));
  nn::BatchNorm2d bn = child("bn", nn::BatchNorm2d(6));
  nn::Conv2d conv2 = child("conv2", nn::Conv2d(6, 16, 5, {.pad_mode = "valid"}));
  nn::MaxPool2d pool = child("pool", nn::MaxPool2d({.kernel_size = 2, .stride = 2}));
  nn::ReLU relu = child("relu", nn::ReLU());
  nn::Flatten flatten = child("flatten", nn::Flatten());
  nn::Dropout drop = child("drop", nn::Dropout({.p = 0.25}));
  nn::Dense fc1 = child("fc1", nn::Dense(256, 84));
  nn::Dense fc2 = child("fc2", nn::Dense(84, 10));
  ut::Tensor construct(const ut::Tensor& x) override {
    const ut::Tensor a = pool(relu(bn(conv1(x))));
    return fc2(relu(fc1(drop(flatten(pool(relu(conv2(a))))))));
  }
};

/// Prints the loss bits of every step.
struct Losses : ut::Callback {
  void on_train_step_end(ut::RunContext& run) override {
    for (const double loss : run.original_args().step_losses) print(static_cast<float>(loss));
  }
  static void print(float v) {
    unsigned bits;
    std::memcpy(&bits, &v, sizeof bits);
    std::printf("%08x\n", bits);
  }
};

int main(int argc, char** argv) {
  const long sink_size = argc > 1 ? std::atol(argv[1]) : 0;
  constexpr std::int64_t kRows = 328, kPixels = 28 * 28;  // 21 batches of 16, the last of 8
  ut::set_context({.mode = ut::GRAPH_MODE, .device_target = "CPU"});
  ut::set_seed(5);
  ut::Tensor x(ut::DType::kFloat32, {kRows, 1, 28, 28}), y(ut::DType::kInt32, {kRows});
  for (std::int64_t i = 0; i < kRows * kPixels; ++i)
    x.data_as<float>()[i] = static_cast<float>((i * 7919) % 1009) / 1009.f;
  for (std::int64_t i = 0; i < kRows; ++i) y.data_as<std::int32_t>()[i] = static_cast<std::int32_t>((i * i) % 10);

  auto net = nn::make<Net>();
  auto opt = nn::Momentum(net.trainable_params(), 0.05, 0.9);
  auto model = ut::Model(net, nn::SoftmaxCrossEntropyWithLogits({.sparse = true, .reduction = "mean"}), opt);
  const auto data = ut::data::NumpySlicesDataset({x, y}, {"x", "y"}, {.shuffle = true}).batch(16);
  const bool sink = sink_size != 0;
  const std::int64_t epochs = sink_size > 0 ? 42 / sink_size : 2;
  model.train(static_cast<int>(epochs), data,
              {.callbacks = {ut::make_ref<Losses>()}, .dataset_sink_mode = sink, .sink_size = sink ? sink_size : -1});
  for (const auto& p : net.get_parameters())
    for (std::int64_t i = 0; i < p.size(); ++i) Losses::print(p.data_as<float>()[i]);
}
