// SPDX-License-Identifier: Apache-2.0
// stranger <epochs>: fits a line with the loop sunk, 100 steps a command, and checks line and step count.
#include <undertow/undertow.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace ut = undertow;

int main(int argc, char** argv) {
  const int epochs = argc > 1 ? std::atoi(argv[1]) : 20;
  constexpr float kSlope = -1.5f, kOffset = 0.75f;
  constexpr std::int64_t kRows = 480;

  ut::set_context({.mode = ut::GRAPH_MODE, .device_target = "CPU"});
  ut::set_seed(7);
  auto row = [=](std::int64_t i) {
    const float x = 4.0f * static_cast<float>(i) / kRows - 2.0f;
    return ut::data::Row{ut::Tensor({x}), ut::Tensor({kSlope * x + kOffset})};
  };
  auto rows = ut::data::GeneratorDataset(row, kRows, {"data", "label"}).batch(16);
  auto net = ut::nn::Dense(1, 1);
  auto optimizer = ut::nn::Adam(net.trainable_params(), {.learning_rate = 0.01});
  auto model = ut::Model(net, ut::nn::MSELoss(), optimizer);
  model.train(epochs, rows, {.dataset_sink_mode = true, .sink_size = 100});

  const float slope = net.weight().item<float>(), offset = net.bias().item<float>();
  const auto steps = static_cast<long long>(optimizer.global_step());
  std::printf("slope %g offset %g steps %lld\n", slope, offset, steps);
  const bool fits = std::fabs(slope - kSlope) < 0.05f && std::fabs(offset - kOffset) < 0.05f;
  return fits && steps == 100LL * epochs ? EXIT_SUCCESS : EXIT_FAILURE;
}
