// SPDX-License-Identifier: Apache-2.0
// Lesson 1: a line through noisy points. One host command runs a whole epoch.
#include <undertow/undertow.h>

#include <cstdio>
#include <random>

namespace ut = undertow;

int main() {
  ut::set_context({.mode = ut::GRAPH_MODE, .device_target = "CPU"});
  ut::set_seed(1);

  std::mt19937 engine(0);
  std::uniform_real_distribution<float> position(-10, 10);
  std::normal_distribution<float> noise(0, 1);
  std::vector<float> x(1600), y(1600);
  for (int i = 0; i < 1600; ++i) {
    x[i] = position(engine);
    y[i] = 2 * x[i] + 3 + noise(engine);
  }
  auto train =
      ut::data::NumpySlicesDataset({ut::Tensor(x, {1600, 1}), ut::Tensor(y, {1600, 1})}, {"data", "label"}).batch(16);

  auto net = ut::nn::Dense(1, 1);
  auto opt = ut::nn::Adam(net.trainable_params(), {.learning_rate = 0.01});
  auto model = ut::Model(net, ut::nn::MSELoss(), opt);
  model.train(10, train, {.callbacks = {ut::LossMonitor(), ut::TimeMonitor()}, .dataset_sink_mode = true});

  const double w = net.weight().item<double>(), b = net.bias().item<double>();
  const ut::runtime::Stats stats = ut::runtime::stats();
  std::printf("y = %.3f x + %.3f after %lld steps in %lld host commands\n", w, b, static_cast<long long>(stats.steps),
              static_cast<long long>(stats.commands));
  return w > 1.8 && w < 2.2 && b > 2 && b < 4 ? 0 : 1;
}
