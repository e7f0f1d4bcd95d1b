// SPDX-License-Identifier: Apache-2.0
// Loss scaling: what a skipped step changes and what it does not, the rule of the scale, and bad values.
#include <limits>

#include "toys.h"

namespace undertow {
namespace {

using testing::expect_error;
using testing::expect_near;
using testing::OnDevice;
using testing::state_of;
using testing::values;

constexpr float kInf = std::numeric_limits<float>::infinity();

class LossScale : public OnDevice {};
UNDERTOW_ON_DEVICES(LossScale);

/// loss = mean(weight * factor), where a row of the data is a factor: inf plants an overflow. BatchNorm and a counter
/// of the network's own change state in the forward pass.
struct Counting : nn::Cell {
  Parameter weight = param("weight", Parameter(Tensor({1.f, -2.f}), "weight"));
  Parameter calls = param("calls", Parameter(Tensor({0.f}), "calls", false));
  nn::BatchNorm2d bn = child("bn", nn::BatchNorm2d(2));
  nn::Dropout dropout = child("dropout", nn::Dropout({.p = 0.5}));
  Tensor construct(const Tensor& x) override {
    ops::assign(calls, ops::add(calls, 1.0));
    const Tensor centred = ops::reduce_mean(bn(ops::reshape(ops::mul(ops::minimum(x, 100.0), weight), {-1, 2, 1, 1})));
    return ops::add(ops::reduce_mean(dropout(ops::mul(x, weight))), centred);
  }
  std::string cls_name() const override { return "Counting"; }
};

/// One row a step: `steps` rows of finite factors, with inf where `bad` says.
data::Dataset factors(int steps, const std::function<bool(int)>& bad) {
  std::vector<float> rows;
  for (int i = 0; i < steps; ++i)
    for (int k = 0; k < 8; ++k) rows.push_back(bad(i) ? kInf : 0.25f * static_cast<float>(i % 5 + k + 1));
  return data::NumpySlicesDataset({Tensor(rows, Shape{4 * steps, 2})}, {"x"}, {.shuffle = false}).batch(4);
}

/// Everything that a run leaves, and its records.
struct Trained {
  std::vector<double> state, losses, scales, rates;
  std::vector<bool> skipped;
};
struct Records : Callback {
  Trained& out;
  Ref<nn::Cell> net;
  std::vector<std::vector<double>> states;
  explicit Records(Trained& t, Ref<nn::Cell> n = {}) : out(t), net(std::move(n)) {}
  void step_end(RunContext& c) override {
    const CallbackParams& p = c.original_args();
    out.losses.insert(out.losses.end(), p.step_losses.begin(), p.step_losses.end());
    out.scales.insert(out.scales.end(), p.step_loss_scales.begin(), p.step_loss_scales.end());
    out.rates.insert(out.rates.end(), p.step_learning_rates.begin(), p.step_learning_rates.end());
    out.skipped.insert(out.skipped.end(), p.step_skipped.begin(), p.step_skipped.end());
    if (net) states.push_back(state_of(net->get_parameters()));
  }
};

nn::Momentum momentum(const Ref<nn::Cell>& net) {
  return {net->trainable_params(), std::vector<double>(64, 0.125), 0.5};
}

Trained train(int steps, const std::function<bool(int)>& bad, const Ref<LossScaleManagerImpl>& manager,
              const TrainOptions& options, std::int64_t epochs = 1) {
  set_seed(3);
  const auto net = nn::make<Counting>();
  const nn::Momentum opt = momentum(net);
  Model model(net, {}, opt, {.loss_scale_manager = manager});
  Trained t;
  TrainOptions o = options;
  o.callbacks.push_back(make_ref<Records>(t));
  model.train(epochs, factors(steps, bad), o);
  t.state = state_of(model.train_network()->get_parameters());
  return t;
}

TEST_P(LossScale, SkippedStepChangesTheScaleAlone) {
  const auto net = nn::make<Counting>();
  const nn::Momentum opt = momentum(net);
  Model model(net, {}, opt, {.loss_scale_manager = DynamicLossScaleManager(1024, 2, 3)});
  Trained t;
  const auto records = make_ref<Records>(t, Ref<nn::Cell>(opt));
  const auto forward = make_ref<Records>(t, Ref<nn::Cell>(net));
  model.train(1, factors(7, [](int i) { return i == 3 || i == 4; }), {.callbacks = {records, forward}});
  for (const auto& r : {records, forward}) {
    ASSERT_EQ(r->states.size(), 7u);
    EXPECT_EQ(r->states[2], r->states[3]);
    EXPECT_EQ(r->states[3], r->states[4]);
    for (const std::size_t i : {1u, 2u, 5u, 6u}) EXPECT_NE(r->states[i - 1], r->states[i]) << i;
  }
  EXPECT_EQ(opt.global_step(), 5);
  expect_near(net->calls, {5}, 0);
}

TEST_P(LossScale, RuleOfTheScale) {
  const std::vector<int> overflow{0, 0, 0, 0, 1, 0, 0, 0, 1, 1, 0};
  const std::vector<double> had{1024, 1024, 1024, 2048, 2048, 1024, 1024, 1024, 2048, 1024, 512};
  const auto bad = [&](int i) { return overflow[static_cast<std::size_t>(i)] != 0; };
  for (const bool sink : {false, true}) {
    const Trained t = train(11, bad, DynamicLossScaleManager(1024, 2, 3), {.dataset_sink_mode = sink});
    EXPECT_EQ(t.scales, had);
    for (int i = 0; i < 11; ++i) EXPECT_EQ(t.skipped[static_cast<std::size_t>(i)], bad(i)) << i;
  }
  const DynamicLossScaleManager host(1024, 2, 3);
  const amp::DynamicLossScaler scaler(1024, 2, 3);
  std::vector<double> by_manager, by_scaler;
  for (const int o : overflow) {
    by_manager.push_back(host->get_loss_scale());
    by_scaler.push_back(scaler->scale_value().item<float>());
    host->update_loss_scale(o != 0);
    scaler->adjust(Tensor::scalar(o == 0));
  }
  EXPECT_EQ(by_manager, had);
  EXPECT_EQ(by_scaler, had);
}

TEST_P(LossScale, ScaleStopsAtOneAndComesBack) {
  const Trained t =
      train(44, [](int i) { return i < 40; }, DynamicLossScaleManager(16777216, 2, 2), {.dataset_sink_mode = true});
  EXPECT_EQ(t.scales[23], 2);
  EXPECT_EQ(t.scales[24], 1);
  EXPECT_EQ(t.scales[40], 1);
  EXPECT_EQ(t.scales[43], 2);
  EXPECT_EQ(t.rates[0], 0.125f);
}

TEST_P(LossScale, EveryWayToRunEndsInTheSameBits) {
  const auto bad = [](int i) { return i == 2 || i == 9 || i == 10; };
  const DynamicLossScaleManager manager(256, 2, 4);
  const Trained off = train(14, bad, manager, {});
  const Trained one = train(14, bad, manager, {.dataset_sink_mode = true, .sink_size = 1}, 14);
  const Trained seven = train(14, bad, manager, {.dataset_sink_mode = true, .sink_size = 7}, 2);
  const Trained all = train(14, bad, manager, {.dataset_sink_mode = true});
  for (const Trained* t : {&one, &seven, &all}) {
    EXPECT_EQ(t->state, off.state);
    EXPECT_EQ(t->scales, off.scales);
    EXPECT_EQ(t->skipped, off.skipped);
    for (std::size_t i = 0; i < 14; ++i) EXPECT_TRUE(bad(static_cast<int>(i)) || t->losses[i] == off.losses[i]) << i;
  }
  set_context({.mode = PYNATIVE_MODE});
  const Trained eager = train(14, bad, manager, {});
  set_context({.mode = GRAPH_MODE});
  EXPECT_EQ(eager.scales, off.scales);
  EXPECT_EQ(eager.skipped, off.skipped);
  for (std::size_t i = 0; i < off.state.size(); ++i) EXPECT_NEAR(eager.state[i], off.state[i], 1e-5) << i;
}

TEST_P(LossScale, ScaleIsTakenOffWhateverTheOptimizerSays) {
  const auto run = [](const Ref<LossScaleManagerImpl>& manager, double of_optimizer) {
    const Parameter w(Tensor({1.f, -2.f}), "weight");
    struct Dot : nn::Cell {
      Parameter weight;
      explicit Dot(const Parameter& p) : weight(param("weight", p)) {}
      Tensor construct(const Tensor& x) override { return ops::reduce_sum(ops::mul(x, weight)); }
    };
    const auto net = nn::make<Dot>(w);
    const nn::SGD opt({w}, {.learning_rate = 0.5, .weight_decay = 0.25, .loss_scale = of_optimizer});
    Model model(net, {}, opt, {.loss_scale_manager = manager});
    model.train(1, factors(3, [](int) { return false; }));
    return values(w);
  };
  const std::vector<double> plain = run({}, 1);
  EXPECT_EQ(run(FixedLossScaleManager(1024, false), 1), plain);
  EXPECT_EQ(run(FixedLossScaleManager(1024, false), 1024), plain);
  EXPECT_EQ(run(FixedLossScaleManager(1024, true), 1), plain);
  EXPECT_EQ(run(DynamicLossScaleManager(), 1), plain);
  EXPECT_EQ(run(DynamicLossScaleManager(), 1024), plain);
}

TEST_P(LossScale, FixedManagerSkipsToo) {
  const Trained t = train(4, [](int i) { return i == 1; }, FixedLossScaleManager(512), {.dataset_sink_mode = true});
  EXPECT_EQ(t.scales, (std::vector<double>{512, 512, 512, 512}));
  EXPECT_EQ(t.skipped, (std::vector<bool>{false, true, false, false}));
  for (const double v : t.state) EXPECT_TRUE(std::isfinite(v));
}

TEST_P(LossScale, OneCommandForTheWholeRun) {
  runtime::reset_stats();
  train(12, [](int i) { return i == 5; }, DynamicLossScaleManager(), {.dataset_sink_mode = true, .sink_size = 6}, 2);
  EXPECT_EQ(runtime::stats().commands, 2);
  EXPECT_EQ(runtime::stats().steps, 12);
}

TEST_P(LossScale, MonitorShowsTheUnscaledLossAndASkippedStepEndsNoRun) {
  const Trained t = train(4, [](int i) { return i == 2; }, DynamicLossScaleManager(),
                          {.callbacks = {LossMonitor(0)}, .dataset_sink_mode = true});
  EXPECT_LT(std::abs(t.losses[0]), 10);
  EXPECT_FALSE(std::isfinite(t.losses[2]));
  EXPECT_TRUE(std::isfinite(t.losses[3]));
  // Without loss scaling the same run ends there.
  EXPECT_THROW(train(4, [](int i) { return i == 2; }, {}, {.callbacks = {LossMonitor(0)}, .dataset_sink_mode = true}),
               ValueError);
}

TEST_P(LossScale, CellsOfTrainingLoops) {
  const auto make = [](const Parameter& w) {
    struct Dot : nn::Cell {
      Parameter weight;
      explicit Dot(const Parameter& p) : weight(param("weight", p)) {}
      Tensor construct(const Tensor& x) override { return ops::reduce_sum(ops::mul(x, weight)); }
    };
    return nn::make<Dot>(w);
  };
  const Parameter w(Tensor({1.f, -2.f}), "weight");
  const auto net = make(w);
  const nn::TrainOneStepWithLossScaleCell step(net, nn::SGD({w}, {.learning_rate = 0.5}),
                                               nn::DynamicLossScaleUpdateCell(1024, 2, 2));
  const auto run = [&](float a, float b) {
    const std::vector<Tensor> out = step->call({nn::Value(Tensor({a, b}))}).tensors();
    EXPECT_EQ(out.size(), 3u);
    return std::pair(out.at(1).item<bool>(), out.at(2).item<float>());
  };
  EXPECT_EQ(run(1, 2), std::pair(false, 1024.f));
  expect_near(w, {0.5, -3}, 0);
  EXPECT_EQ(run(kInf, 2), std::pair(true, 1024.f));
  expect_near(w, {0.5, -3}, 0);
  EXPECT_EQ(run(2, 0), std::pair(false, 512.f));
  expect_near(w, {-0.5, -3}, 0);
  EXPECT_EQ(step->scale().item<float>(), 512);

  const nn::TrainOneStepWithLossScaleCell fixed(net, nn::SGD({w}, {.learning_rate = 0.5}), Tensor({64.f}));
  EXPECT_EQ(fixed->call({nn::Value(Tensor({1.f, 0.f}))}).tensors().at(2).item<float>(), 64);
  expect_near(w, {-1, -3}, 0);
  expect_error<ValueError>([&] { fixed->set_sense_scale(Tensor({1.f, 2.f})); }, {"shape () or (1,)"});
}

TEST_P(LossScale, BadValues) {
  for (const double scale : {0.0, -1.0, 0.5, static_cast<double>(kInf), std::numeric_limits<double>::quiet_NaN()}) {
    expect_error<ValueError>([&] { FixedLossScaleManager m(scale); }, {"FixedLossScaleManager", "loss_scale"});
    expect_error<ValueError>([&] { DynamicLossScaleManager m(scale); }, {"init_loss_scale"});
    expect_error<ValueError>([&] { amp::StaticLossScaler s(scale); }, {"StaticLossScaler", "scale_value"});
    expect_error<ValueError>([&] { amp::DynamicLossScaler s(scale, 2, 10); }, {"scale_value"});
    expect_error<ValueError>([&] { nn::DynamicLossScaleUpdateCell c(scale, 2, 10); }, {"loss_scale_value"});
  }
  expect_error<ValueError>([] { DynamicLossScaleManager m(1024, 1); }, {"scale_factor"});
  expect_error<ValueError>([] { DynamicLossScaleManager m(1024, 2, 0); }, {"scale_window"});
  const DynamicLossScaleManager host(4, 2, 2);
  for (int i = 0; i < 1000; ++i) host->update_loss_scale(true);
  EXPECT_EQ(host->get_loss_scale(), 1);
  expect_error<RuntimeError>([&] { host->update_loss_scale(true); }, {"in a row"});
}

TEST_P(LossScale, AllFinite) {
  const auto finite = [](const std::vector<Tensor>& t) { return amp::all_finite(t).item<bool>(); };
  EXPECT_TRUE(finite({}));
  EXPECT_TRUE(finite({Tensor({1.f, -3e38f}), Tensor::zeros({0, 3}), Tensor({1, 2})}));
  for (const float v : {kInf, -kInf, std::numeric_limits<float>::quiet_NaN()}) {
    EXPECT_FALSE(finite({Tensor({1.f}), Tensor({0.f, v, 1.f})}));
    for (const DType d : {DType::kFloat16, DType::kBFloat16, DType::kFloat64})
      EXPECT_FALSE(finite({Tensor(std::vector<float>(100, v)).to(d)})) << name_of(d);
  }
}

}  // namespace
}  // namespace undertow
