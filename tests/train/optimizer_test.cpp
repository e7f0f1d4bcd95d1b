// SPDX-License-Identifier: Apache-2.0
// Optimizers against their formulas in double. Gradients are given, so that nothing else is tested.
#include "helpers.h"

namespace undertow {
namespace {

using testing::expect_error;
using testing::expect_near;
using testing::OnDevice;
using testing::random_floats;
using testing::values;

class Optimizers : public OnDevice {};
UNDERTOW_ON_DEVICES(Optimizers);

constexpr std::size_t kSize = 6;
constexpr int kSteps = 25;

/// One parameter's replay: w and g in double, step t from 1.
using Rule = std::function<void(std::vector<double>& w, const std::vector<double>& g, int t)>;

/// Applies `make(params)` to two parameters named fc.weight and bn.gamma, and `rule(decayed)` to each by itself.
template <typename Make>
void replay(const Make& make, const std::function<Rule(bool is_gamma)>& rule) {
  const Parameter w(Tensor(random_floats(kSize, 1)), "fc.weight"), gamma(Tensor(random_floats(kSize, 2)), "bn.gamma");
  std::vector<double> want_w = values(w), want_gamma = values(gamma);
  const auto opt = make(std::vector<Parameter>{w, gamma});
  const Rule rule_w = rule(false), rule_gamma = rule(true);
  for (int t = 1; t <= kSteps; ++t) {
    const Tensor a(random_floats(kSize, 100 + t)), b(random_floats(kSize, 200 + t));
    opt->update({a, b});
    rule_w(want_w, values(a), t);
    rule_gamma(want_gamma, values(b), t);
    expect_near(w, want_w, 2e-5, "weight after step " + std::to_string(t));
    expect_near(gamma, want_gamma, 2e-5, "gamma after step " + std::to_string(t));
  }
  EXPECT_EQ(opt.global_step(), kSteps);
}

TEST_P(Optimizers, Momentum) {
  for (const bool nesterov : {false, true})
    for (const double decay : {0.0, 0.1})
      for (const double scale : {1.0, 8.0})
        replay(
            [&](const std::vector<Parameter>& p) {
              return nn::Momentum(p, 0.05, 0.9, {.weight_decay = decay, .loss_scale = scale, .use_nesterov = nesterov});
            },
            [&](bool is_gamma) -> Rule {
              return [=, v = std::vector<double>(kSize)](auto& w, const auto& g, int) mutable {
                for (std::size_t i = 0; i < kSize; ++i) {
                  const double e = (g[i] + (is_gamma ? 0 : decay * scale * w[i])) / scale;
                  v[i] = 0.9 * v[i] + e;
                  w[i] -= 0.05 * (nesterov ? e + 0.9 * v[i] : v[i]);
                }
              };
            });
}

TEST_P(Optimizers, SGD) {
  struct Case {
    double momentum, dampening, decay;
    bool nesterov;
  };
  for (const Case c : {Case{0, 0, 0, false}, {0.9, 0, 0.1, false}, {0.9, 0, 0.1, true}, {0.9, 0.5, 0, false}})
    replay(
        [&](const std::vector<Parameter>& p) {
          return nn::SGD(
              p, {.momentum = c.momentum, .dampening = c.dampening, .weight_decay = c.decay, .nesterov = c.nesterov});
        },
        [&](bool is_gamma) -> Rule {
          return [=, v = std::vector<double>(kSize)](auto& w, const auto& g, int t) mutable {
            for (std::size_t i = 0; i < kSize; ++i) {
              const double e = g[i] + (is_gamma ? 0 : c.decay * w[i]);
              v[i] = t == 1 ? e : c.momentum * v[i] + (1 - c.dampening) * e;
              const double step = c.momentum == 0 ? e : c.nesterov ? e + c.momentum * v[i] : v[i];
              w[i] -= 0.1 * step;
            }
          };
        });
}

TEST_P(Optimizers, Adam) {
  for (const bool nesterov : {false, true})
    for (const bool amsgrad : {false, true})
      for (const double decay : {0.0, 0.1})
        replay(
            [&](const std::vector<Parameter>& p) {
              return nn::Adam(p, {.learning_rate = 0.01,
                                  .beta1 = 0.8,
                                  .beta2 = 0.99,
                                  .use_nesterov = nesterov,
                                  .weight_decay = decay,
                                  .use_amsgrad = amsgrad});
            },
            [&](bool is_gamma) -> Rule {
              const std::vector<double> zero(kSize);
              return [=, m = zero, v = zero, top = zero](auto& w, const auto& g, int t) mutable {
                for (std::size_t i = 0; i < kSize; ++i) {
                  const double e = g[i] + (is_gamma ? 0 : decay * w[i]);
                  m[i] = 0.8 * m[i] + 0.2 * e;
                  v[i] = 0.99 * v[i] + 0.01 * e * e;
                  top[i] = std::max(top[i], v[i]);
                  const double rate = 0.01 * std::sqrt(1 - std::pow(0.99, t)) / (1 - std::pow(0.8, t));
                  w[i] -= rate * (nesterov ? 0.8 * m[i] + 0.2 * e : m[i]) / (std::sqrt(amsgrad ? top[i] : v[i]) + 1e-8);
                }
              };
            });
}

TEST_P(Optimizers, StateNames) {
  const nn::SequentialCell net(nn::Dense(2, 1));
  const auto names = [](const auto& opt) {
    std::string out;
    for (const Parameter& p : opt.get_parameters()) out += p.name() + " ";
    return out;
  };
  EXPECT_EQ(names(nn::Adam(net.trainable_params())),
            "global_step learning_rate 0.weight 0.bias beta1_power beta2_power moment1.0.weight moment1.0.bias "
            "moment2.0.weight "
            "moment2.0.bias ");
  EXPECT_EQ(names(nn::Momentum(net.trainable_params(), 0.1, 0.9)),
            "global_step learning_rate 0.weight 0.bias momentum moments.0.weight moments.0.bias ");
  EXPECT_EQ(
      names(nn::SGD(net.trainable_params())),
      "global_step learning_rate 0.weight 0.bias momentum accum.0.weight accum.0.bias stat.0.weight stat.0.bias ");
  const nn::Adam adam(net.trainable_params());
  EXPECT_EQ(adam->global_step_param().shape(), Shape{1});
  EXPECT_EQ(adam->global_step_param().dtype(), DType::kInt32);
  EXPECT_EQ(adam.learning_rate().shape(), Shape{});
}

TEST_P(Optimizers, LearningRateIsState) {
  const Parameter w(Tensor({1.f}), "w");
  const nn::SGD opt({w}, {.learning_rate = 0.5});
  opt->update({Tensor({1.f})});
  EXPECT_FLOAT_EQ(w.item<float>(), 0.5f);
  opt.set_lr(0.25);
  EXPECT_DOUBLE_EQ(opt.get_lr(), 0.25);
  opt->update({Tensor({1.f})});
  EXPECT_FLOAT_EQ(w.item<float>(), 0.25f);
  expect_error<ValueError>([&] { opt.set_lr(-1); }, {"learning_rate", "-1"});
}

TEST_P(Optimizers, Errors) {
  const Parameter w(Tensor({1.f}), "w"), other(Tensor({1.f}), "w"), count(Tensor({1}), "count");
  expect_error<ValueError>([] { nn::Adam({}); }, {"Adam", "empty"});
  expect_error<RuntimeError>([&] { nn::Adam({w, w}); }, {"'w'", "twice"});
  expect_error<ValueError>([&] { nn::Adam({w, other}); }, {"'w'", "name"});
  expect_error<TypeError>([&] { nn::Adam({count})->update({Tensor({1.f})}); }, {"'count'", "Int32"});
  expect_error<ValueError>([&] { nn::Adam({w}, {.learning_rate = -0.1}); }, {"Adam", "learning_rate", "-0.1"});
  expect_error<ValueError>([&] { nn::Adam({w}, {.beta1 = 1}); }, {"beta1", "1"});
  expect_error<ValueError>([&] { nn::Adam({w}, {.eps = 0}); }, {"eps"});
  expect_error<ValueError>([&] { nn::Adam({w}, {.weight_decay = -1}); }, {"weight_decay", "-1"});
  expect_error<ValueError>([&] { nn::Adam({w}, {.loss_scale = 0}); }, {"loss_scale", "0"});
  expect_error<ValueError>([&] { nn::Momentum({w}, 0.1, -0.9); }, {"Momentum", "momentum", "-0.9"});
  expect_error<ValueError>([&] { nn::SGD({w}, {.nesterov = true}); }, {"nesterov", "momentum"});
  const nn::Adam opt({w});
  expect_error<RuntimeError>([&] { opt->update({}); }, {"0 gradients for 1"});
  expect_error<ShapeError>([&] { opt->update({Tensor({1.f, 2.f})}); }, {"'w'", "(2,)", "(1,)"});
  EXPECT_EQ(opt.global_step(), 0);
}

}  // namespace
}  // namespace undertow
