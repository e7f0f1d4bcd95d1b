// SPDX-License-Identifier: Apache-2.0
// What C++ programs write around optimizers: groups, schedules, lists of rates, training cells, fit with its callbacks.
#include "toys.h"

namespace undertow {
namespace {

using testing::expect_error;
using testing::expect_near;
using testing::Line;
using testing::OnDevice;

class Rates : public OnDevice {};
UNDERTOW_ON_DEVICES(Rates);

/// A user's schedule: 1, 1/2, 1/3, ...
struct Harmonic : nn::LearningRateScheduleCell {
  Tensor construct(const Tensor& step) override {
    return ops::div(1.0, ops::add(ops::cast(step, DType::kFloat32), 1.0));
  }
};

TEST_P(Rates, SchedulesAndLists) {
  const std::vector<std::pair<nn::Rate, std::vector<double>>> cases{
      {0.5, {0.5, 0.5, 0.5}},
      {std::vector<double>{0.3, 0.2, 0.1}, {0.3, 0.2, 0.1}},
      {nn::warmup_lr(0.4, 3, 1, 2), {0, 0.2, 0.4}},
      {nn::ExponentialDecayLR(nn::DecayOptions{.learning_rate = 0.1, .decay_rate = 0.5, .decay_steps = 1}),
       {0.1, 0.05, 0.025}},
      {nn::CosineDecayLR(0.0, 0.2, 2), {0.2, 0.1, 0}},
      {nn::WarmUpLR(0.4, 2), {0, 0.2, 0.4}},
      {nn::make<Harmonic>(), {1, 0.5, 1.0 / 3}},
  };
  for (const auto& [rate, values] : cases) {
    const Parameter w(Tensor({0.f}), "w");
    const nn::SGD opt({w}, {.learning_rate = rate});
    double want = 0;
    for (const double v : values) {
      EXPECT_NEAR(opt.get_lr(), v, 1e-6);
      opt->update({Tensor({1.f})});
      want -= v;
      expect_near(w, {want}, 1e-6);
    }
  }
}

TEST_P(Rates, Groups) {
  const Parameter a(Tensor({1.f}), "a"), b(Tensor({1.f}), "gamma");
  const nn::Momentum opt({{.params = {a}, .lr = 0.5}, {.params = {b}, .weight_decay = 0.25}, {.order_params = {b, a}}},
                         0.1, 0.0);
  EXPECT_EQ(opt.parameters()[0].name(), "gamma");
  opt->update({Tensor({1.f}), Tensor({1.f})});
  expect_near(a, {0.5}, 1e-6);
  expect_near(b, {1 - 0.1 * 1.25}, 1e-6);
  expect_error<ValueError>([&] { opt.set_lr(1); }, {"one number"});
  expect_error<ValueError>([&] { nn::SGD({{.params = {a}}, {.order_params = {b}}}); }, {"gamma"});
  expect_error<RuntimeError>([&] { nn::SGD({{.params = {a}}, {.params = {a}}}); }, {"twice"});
}

TEST_P(Rates, ListTooShortForTheRun) {
  const Line line;
  const nn::Dense net = line.net();
  Model model(net, nn::MSELoss(), nn::SGD(net.trainable_params(), {.learning_rate = std::vector<double>{0.1, 0.1}}));
  expect_error<ValueError>([&] { model.train(1, line.dataset()); }, {"2 values", "21 steps"});
}

TEST_P(Rates, OptimizersOfAllKinds) {
  const auto train = [](const auto& make) {
    const Parameter w(Tensor({1.f, -2.f}), "w");
    const auto opt = make(std::vector<Parameter>{w});
    for (int i = 0; i < 3; ++i) opt->update({Tensor({0.5f, 0.25f})});
    EXPECT_EQ(opt.global_step(), 3);
    EXPECT_LT(w.data_as<float>()[0], 1) << opt->cls_name();
  };
  train([](const auto& p) { return nn::AdamWeightDecay(p, {.learning_rate = 0.1, .weight_decay = 0.1}); });
  train([](const auto& p) { return nn::Lamb(p, {.learning_rate = 0.1}); });
  train([](const auto& p) { return nn::AdaMax(p, {.learning_rate = 0.1}); });
  train([](const auto& p) { return nn::Adagrad(p, {.learning_rate = 0.1}); });
  train([](const auto& p) { return nn::Adadelta(p); });
  train([](const auto& p) { return nn::RMSProp(p, {.learning_rate = 0.1, .centered = true}); });
  train([](const auto& p) { return nn::AdaFactor(p); });
  train([](const auto& p) { return nn::ASGD(p); });
  train([](const auto& p) { return nn::Rprop(p); });
  train([](const auto& p) { return nn::FTRL(p, {.learning_rate = 0.1}); });
  train([](const auto& p) { return nn::ProximalAdagrad(p, {.learning_rate = 0.1, .l1 = 0.01}); });
  train([](const auto& p) { return nn::LARS(nn::Momentum(p, 1.0, 0.9), {.coefficient = 0.1}); });
}

TEST_P(Rates, TrainOneStepCell) {
  const nn::Dense net(2, 1, {.weight_init = "ones", .bias_init = "zeros"});
  const nn::TrainOneStepCell step(nn::WithLossCell(net, nn::MSELoss()),
                                  nn::SGD(net.trainable_params(), {.learning_rate = 0.1}));
  step.set_train();
  const Tensor x(std::vector<float>{1, 2}, Shape{1, 2}), y(std::vector<float>{1}, Shape{1, 1});
  EXPECT_NEAR(step(x, y).item<float>(), 4, 1e-6);
  expect_near(net->get_param("weight"), {1 - 0.4, 1 - 0.8}, 1e-6);
  EXPECT_EQ(net->get_param("weight").name(), "weight");
}

TEST_P(Rates, FitStopsEarlyAndReducesTheRate) {
  const Line line;
  const nn::Dense net = line.net();
  const nn::SGD opt(net.trainable_params(), {.learning_rate = 0.0});
  Model model(net, nn::MSELoss(), opt, {.metrics = {"mae"}});
  const History history;
  model.fit(9, line.dataset(), line.dataset(),
            {.callbacks = {history, EarlyStopping({.patience = 3}), ReduceLROnPlateau({.patience = 1})}});
  EXPECT_EQ(history->epoch().size(), 4u);
  EXPECT_EQ(history->history().at("mae").size(), 4u);
  expect_error<ValueError>([] { EarlyStopping({.mode = "up"}); }, {"mode", "up"});
  expect_error<ValueError>([] { ReduceLROnPlateau({.factor = 2}); }, {"factor", "2"});
}

TEST_P(Rates, Metrics) {
  nn::EvalBatch batch;
  batch.output = Tensor(std::vector<float>{0.9f, 0.1f, 0.2f, 0.8f, 0.6f, 0.4f}, Shape{3, 2});
  batch.label = Tensor({0, 1, 1});
  batch.rows = 3;
  const auto result = [&](const auto& metric) {
    metric->update(batch);
    return metric->eval();
  };
  EXPECT_NEAR(result(nn::Accuracy()), 2.0 / 3, 1e-9);
  EXPECT_NEAR(result(nn::TopKCategoricalAccuracy(2)), 1, 1e-9);
  EXPECT_NEAR(result(nn::Precision()), (0.5 + 1) / 2, 1e-9);
  EXPECT_NEAR(result(nn::Recall()), (1 + 0.5) / 2, 1e-9);
  EXPECT_NEAR(result(nn::Fbeta(1)), 2.0 / 3, 1e-9);
  EXPECT_NEAR(result(nn::Perplexity()), std::exp(-(std::log(0.9) + std::log(0.8) + std::log(0.4)) / 3), 1e-6);
}

TEST_P(Rates, HooksOfCells) {
  const nn::Dense net(1, 1, {.weight_init = "ones", .bias_init = "zeros"});
  const int before = net->register_forward_pre_hook(
      [](nn::Cell&, const std::vector<nn::Value>& args) { return nn::Value(ops::mul(args[0].tensor(), 2.0)); });
  const int after = net->register_forward_hook([](nn::Cell&, const std::vector<nn::Value>&, const nn::Value& out) {
    return nn::Value(ops::add(out.tensor(), 1.0));
  });
  const Tensor x = Tensor::full(Shape{1, 1}, 3);
  EXPECT_NEAR(net(x).item<float>(), 7, 1e-6);
  net->remove_hook(before);
  net->remove_hook(after);
  EXPECT_NEAR(net(x).item<float>(), 3, 1e-6);
}

}  // namespace
}  // namespace undertow
