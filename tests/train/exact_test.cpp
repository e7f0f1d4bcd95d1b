// SPDX-License-Identifier: Apache-2.0
// Training is exactly the optimizer on exactly these batches, however the loop is cut into commands.
#include "toys.h"

namespace undertow {
namespace {

using testing::images;
using testing::Line;
using testing::OnDevice;
using testing::Recorder;
using testing::state_of;
using testing::values;

class Exact : public OnDevice {};
UNDERTOW_ON_DEVICES(Exact);

struct Replay {
  std::vector<double> w, losses;
  double b = 0;
};
/// Adam in double on the line, learning rate 0.01.
Replay replay(const Line& line) {
  Replay r{{line.w0.begin(), line.w0.end()}, {}};
  std::vector<double> m(4), v(4);
  int t = 0;
  for (int e = 0; e < Line::kEpochs; ++e)
    for (int k = 0; k < Line::kRows; k += Line::kBatch) {
      const int n = std::min(Line::kBatch, Line::kRows - k);
      std::vector<double> g(4);
      double loss = 0;
      for (int i = k; i < k + n; ++i) {
        double d = r.b - line.y[static_cast<std::size_t>(i)];
        for (int c = 0; c < 3; ++c) d += r.w[static_cast<std::size_t>(c)] * line.x[static_cast<std::size_t>(3 * i + c)];
        loss += d * d / n;
        for (int c = 0; c < 3; ++c)
          g[static_cast<std::size_t>(c)] += 2 * d * line.x[static_cast<std::size_t>(3 * i + c)] / n;
        g[3] += 2 * d / n;
      }
      r.losses.push_back(loss);
      ++t;
      const double rate = 0.01 * std::sqrt(1 - std::pow(.999, t)) / (1 - std::pow(.9, t));
      for (std::size_t i = 0; i < 4; ++i) {
        m[i] = .9 * m[i] + .1 * g[i];
        v[i] = .999 * v[i] + .001 * g[i] * g[i];
        (i < 3 ? r.w[i] : r.b) -= rate * m[i] / (std::sqrt(v[i]) + 1e-8);
      }
    }
  return r;
}

struct Result {
  std::vector<double> state, losses, evals;
};

TEST_P(Exact, AdamForEverySinkSize) {
  const Line line;
  const Replay want = replay(line);
  const int total = Line::kEpochs * Line::kPerEpoch;
  std::vector<Result> results;
  for (const int size : {0, 1, 7, 12, 21, 28, -1}) {  // 0: sink off
    SCOPED_TRACE(size);
    const bool sink = size != 0;
    const nn::Dense net = line.net();
    const nn::Adam opt(net.trainable_params(), {.learning_rate = 0.01});
    Model model(net, nn::MSELoss(), opt, {.metrics = {"loss"}});
    const auto rec = make_ref<Recorder>();
    const int commands = !sink || size == -1 ? Line::kEpochs : total / size;
    const runtime::Stats before = runtime::stats();
    model.train(commands, line.dataset(),
                {.callbacks = {rec}, .dataset_sink_mode = sink, .sink_size = sink ? size : std::int64_t{-1}});
    EXPECT_EQ(runtime::stats().commands - before.commands, sink ? commands : total);
    EXPECT_EQ(runtime::stats().steps - before.steps, total);

    testing::expect_near(net.weight(), want.w, 2e-4);
    testing::expect_near(net.bias(), {want.b}, 2e-4);
    EXPECT_EQ(opt.global_step(), total);
    ASSERT_EQ(rec->losses.size(), want.losses.size());
    for (std::size_t i = 0; i < want.losses.size(); ++i)
      ASSERT_NEAR(rec->losses[i], want.losses[i], 1e-3 * std::max(1.0, want.losses[i])) << "step " << i + 1;
    ASSERT_EQ(rec->steps.size(), static_cast<std::size_t>(sink ? commands : total));
    for (const Recorder::Step& s : rec->steps) {
      EXPECT_EQ(s.batches, sink && size > 0 ? size : Line::kPerEpoch);
      EXPECT_EQ(s.loss, rec->losses[static_cast<std::size_t>(s.step - 1)]);  // outputs are those of the last step
    }
    EXPECT_EQ(rec->steps.back().step, total);

    Result r{state_of(opt.get_parameters()), rec->losses, {}};
    for (const bool eval_sink : {false, true})
      r.evals.push_back(model.eval(line.dataset(), {.dataset_sink_mode = eval_sink}).at("loss"));
    EXPECT_EQ(r.evals[0], r.evals[1]);
    for (const double v : state_of(net.get_parameters())) r.state.push_back(v);
    results.push_back(r);
    EXPECT_EQ(r.state, results[0].state);
    EXPECT_EQ(r.losses, results[0].losses);
    EXPECT_EQ(r.evals, results[0].evals);
  }
}

TEST_P(Exact, ManySteps) {
  const Line line;
  const nn::Dense net = line.net();
  const nn::Adam opt(net.trainable_params(), {.learning_rate = 0.01});
  Model(net, nn::MSELoss(), opt).train(500, line.dataset(), {.dataset_sink_mode = true});
  EXPECT_EQ(opt.global_step(), 500 * Line::kPerEpoch);
  EXPECT_NEAR(values(net.weight())[0], 2, 0.05);
}

TEST_P(Exact, BitEqualOverSinkAndWorkers) {
  std::vector<std::vector<double>> states, losses;
  for (const int workers : {1, 2, 4})
    for (const int size : {0, 1, 5, -1}) {
      set_seed(9);
      const auto net = nn::make<testing::SmallNet>();
      const nn::Momentum opt(net.trainable_params(), 0.05, 0.9, {.weight_decay = 1e-3});
      Model model(net, nn::SoftmaxCrossEntropyWithLogits({.sparse = true, .reduction = "mean"}), opt);
      const auto rec = make_ref<Recorder>();
      const int per_epoch = 8, epochs = 5;  // 60 rows of 8: the last batch has 4
      model.train(size > 0 ? epochs * per_epoch / size : epochs, images(60, 8, workers),
                  {.callbacks = {rec}, .dataset_sink_mode = size != 0, .sink_size = size == 0 ? -1 : size});
      states.push_back(state_of(net.get_parameters()));
      for (const double v : state_of(opt.get_parameters())) states.back().push_back(v);
      losses.push_back(rec->losses);
      ASSERT_EQ(losses.back().size(), 40u);
      EXPECT_EQ(states.back(), states[0]) << "workers " << workers << ", sink_size " << size;
      EXPECT_EQ(losses.back(), losses[0]) << "workers " << workers << ", sink_size " << size;
    }
  EXPECT_LT(losses[0].back(), losses[0].front());
}

TEST_P(Exact, EagerAgrees) {
  std::vector<std::vector<double>> states, losses;
  for (const Mode mode : {GRAPH_MODE, PYNATIVE_MODE}) {
    set_context({.mode = mode});
    set_seed(9);
    const auto net = nn::make<testing::SmallNet>();
    Model model(net, nn::SoftmaxCrossEntropyWithLogits({.sparse = true, .reduction = "mean"}),
                nn::Momentum(net.trainable_params(), 0.05, 0.9));
    const auto rec = make_ref<Recorder>();
    model.train(6, images(60, 8), {.callbacks = {rec}});
    states.push_back(state_of(net.get_parameters()));
    losses.push_back(rec->losses);
  }
  ASSERT_EQ(states[0].size(), states[1].size());
  for (std::size_t i = 0; i < states[0].size(); ++i) EXPECT_NEAR(states[0][i], states[1][i], 1e-5);
  for (std::size_t i = 0; i < losses[0].size(); ++i) EXPECT_NEAR(losses[0][i], losses[1][i], 1e-5);
}

TEST_P(Exact, ResumedEpochsSeeTheSameData) {
  const auto weights = [](std::vector<std::pair<int, int>> runs) {  // (initial_epoch, epoch)
    set_seed(2);
    const nn::Dense net(3, 1);
    Model model(net, nn::MSELoss(), nn::SGD(net.trainable_params(), {.learning_rate = 1e-3}));
    const Line line;
    const auto data =
        data::NumpySlicesDataset({Tensor(line.x, Shape{328, 3}), Tensor(line.y, Shape{328, 1})}).batch(16);
    for (const auto& [first, last] : runs)
      model.train(last, data, {.dataset_sink_mode = true, .sink_size = 10, .initial_epoch = first});
    return values(net.weight());
  };
  EXPECT_EQ(weights({{0, 6}}), weights({{0, 2}, {2, 5}, {5, 6}}));
}

}  // namespace
}  // namespace undertow
