// SPDX-License-Identifier: Apache-2.0
// A network that computes in float16, in which gradients below 3e-8 are 0. Loss scaling keeps them.
#include <undertow/undertow.h>

#include <cstdio>
#include <random>

namespace ut = undertow;
namespace nn = undertow::nn;
namespace ops = undertow::ops;

/// Two layers over float32 parameters, computed in float16. The loss is small: so are the gradients of the activations.
struct HalfNet : nn::Cell {
  nn::Dense first = child("first", nn::Dense(8, 16)), last = child("last", nn::Dense(16, 1));
  ut::Tensor construct(const ut::Tensor& x, const ut::Tensor& y) override {
    const ut::Tensor hidden = ops::relu(layer(x, first)), out = layer(hidden, last);
    const ut::Tensor error = ops::sub(ops::cast(out, ut::DType::kFloat32), y);
    return ops::mul(ops::reduce_mean(ops::square(error)), 1e-9);
  }
  static ut::Tensor layer(const ut::Tensor& x, const nn::Dense& dense) {
    const auto half = [](const ut::Tensor& t) { return ops::cast(t, ut::DType::kFloat16); };
    return ops::add(ops::matmul(half(x), half(dense.weight()), false, true), half(dense.bias()));
  }
  std::string cls_name() const override { return "HalfNet"; }
};

/// Counts the steps that were skipped, and remembers the last scale.
struct Watch : ut::Callback {
  int skipped = 0;
  double scale = 0;
  void step_end(ut::RunContext& context) override {
    const ut::CallbackParams& p = context.original_args();
    for (const bool s : p.step_skipped) skipped += s;
    scale = p.step_loss_scales.back();
  }
};

/// The loss of the last step over that of the first.
double train(const ut::data::Dataset& data, const ut::Ref<ut::LossScaleManagerImpl>& manager, const char* name) {
  ut::set_seed(1);
  const auto net = nn::make<HalfNet>();
  const nn::Momentum opt(net.trainable_params(), 2e7, 0.9);
  ut::Model model(net, {}, opt, {.loss_scale_manager = manager});
  const auto watch = ut::make_ref<Watch>();
  std::vector<double> losses;
  const ut::LambdaCallback keep({.on_train_step_end = [&](ut::RunContext& context) {
    const std::vector<double>& l = context.original_args().step_losses;
    losses.insert(losses.end(), l.begin(), l.end());
  }});
  model.train(20, data, {.callbacks = {watch, keep}, .dataset_sink_mode = true});
  const double ratio = losses.back() / losses.front();
  std::printf("%s: loss %.2e -> %.2e, %d of %zu steps skipped, scale %g at the end\n", name, losses.front(),
              losses.back(), watch->skipped, losses.size(), watch->scale);
  return ratio;
}

int main() {
  ut::set_context({.mode = ut::GRAPH_MODE});
  std::mt19937 engine(0);
  std::normal_distribution<float> normal(0, 1);
  std::vector<float> x(512 * 8), y(512);
  for (float& v : x) v = normal(engine);
  for (int i = 0; i < 512; ++i) y[i] = x[8 * i] - 2 * x[8 * i + 1] + 0.5f * x[8 * i + 2];
  const auto data =
      ut::data::NumpySlicesDataset({ut::Tensor(x, {512, 8}), ut::Tensor(y, {512, 1})}, {"x", "y"}).batch(32);

  // A scale that is too large costs a few steps, and is found out.
  const double plain = train(data, {}, "without loss scaling");
  const double scaled = train(data, ut::DynamicLossScaleManager(0x1p50), "with DynamicLossScaleManager");
  return plain > 0.5 && scaled < 0.1 ? 0 : 1;
}
