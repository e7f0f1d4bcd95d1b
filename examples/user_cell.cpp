// SPDX-License-Identifier: Apache-2.0
// Lesson 3: what one writes oneself: a cell, a callback, a data source and a map operation.
#include <undertow/undertow.h>

#include <cmath>
#include <cstdio>

namespace ut = undertow;
namespace nn = undertow::nn;

/// y = x + W2 tanh(W1 x), with a scale that is learned too.
struct Residual : nn::Cell {
  nn::Dense in = child("in", nn::Dense(2, 16));
  nn::Dense out = child("out", nn::Dense(16, 2));
  ut::Parameter scale = param("scale", ut::Parameter(ut::Tensor({1.f})));

  ut::Tensor construct(const ut::Tensor& x) override { return x + scale * out(ut::ops::tanh(in(x))); }
  std::string cls_name() const override { return "Residual"; }
};

/// Stops once the loss is small.
struct StopBelow : ut::Callback {
  explicit StopBelow(double limit) : limit(limit) {}
  void on_train_step_end(ut::RunContext& context) override {
    const ut::CallbackParams& p = context.original_args();
    last = p.step_losses.back();
    steps = p.cur_step_num;
    if (last < limit) context.request_stop();
  }
  double limit, last = 0;
  std::int64_t steps = 0;
};

int main() {
  ut::set_context({.mode = ut::GRAPH_MODE});
  ut::set_seed(3);

  // Points of the plane, and the same points turned by 30 degrees. The source is a function of the row number.
  const auto point = [](std::int64_t i) {
    const float a = 0.37f * static_cast<float>(i), r = 0.5f + 0.001f * static_cast<float>(i % 500);
    return ut::data::Row{ut::Tensor({r * std::cos(a), r * std::sin(a)}), ut::Tensor({a, r})};
  };
  const auto turned = [](const ut::Tensor& polar) {
    const float a = polar.data_as<float>()[0] + 0.5236f, r = polar.data_as<float>()[1];
    return ut::Tensor({r * std::cos(a), r * std::sin(a)});
  };
  const auto train =
      ut::data::GeneratorDataset(point, 1024, {"x", "y"}).map(turned, {.input_columns = {"y"}}).batch(32);

  auto net = nn::make<Residual>();
  for (const auto& [path, p] : net->parameters_and_names())
    std::printf("%s %s\n", path.c_str(), p.shape().str().c_str());
  auto model = ut::Model(net, nn::MSELoss(), nn::Adam(net.trainable_params(), {.learning_rate = 0.01}));
  const auto stop = ut::make_ref<StopBelow>(1e-4);
  model.train(200, train, {.callbacks = {stop}, .dataset_sink_mode = true});
  std::printf("loss %.2g after %lld steps\n", stop->last, static_cast<long long>(stop->steps));
  return stop->last < 1e-3 ? 0 : 1;
}
