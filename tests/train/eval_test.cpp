// SPDX-License-Identifier: Apache-2.0
#include "toys.h"

namespace undertow {
namespace {

using testing::expect_error;
using testing::OnDevice;
using testing::values;

class Eval : public OnDevice {};
UNDERTOW_ON_DEVICES(Eval);

/// Gives its input.
struct Same : nn::Cell {
  Tensor construct(const Tensor& x) override { return x; }
  std::string cls_name() const override { return "Same"; }
};
/// The first output of a row is its loss.
struct GivenLoss : nn::LossBase {
  Tensor construct(const Tensor& logits, const Tensor&) override {
    return get_loss(ops::slice(logits, {0, 0}, {1, 1}, Shape{logits.shape(0), 1}));
  }
};

TEST_P(Eval, EveryRowCountsOnce) {
  // Losses 10, 10, 9; the first two rows are right, the third is not.
  const Tensor x(std::vector<float>{10, 0, 10, 0, 9, 0}, Shape{3, 2});
  const Tensor y(std::vector<std::int32_t>{0, 0, 1});
  for (const int batch : {1, 2, 3})
    for (const bool sink : {false, true})
      for (const Mode mode : {GRAPH_MODE, PYNATIVE_MODE}) {
        set_context({.mode = mode});
        Model model(nn::make<Same>(), nn::make<GivenLoss>(), {}, {.metrics = {"accuracy", "loss"}});
        const auto data = data::NumpySlicesDataset({x, y}, {"x", "y"}, {.shuffle = false}).batch(batch);
        const runtime::Stats before = runtime::stats();
        auto r = model.eval(data, {.dataset_sink_mode = sink});
        EXPECT_EQ(runtime::stats().commands - before.commands, sink ? 1 : (3 + batch - 1) / batch);
        EXPECT_NEAR(r["accuracy"], 2.0 / 3, 1e-12);
        EXPECT_NEAR(r["loss"], 29.0 / 3, 1e-6);                       // a batch's mean is float32
        EXPECT_EQ(model.eval(data, {.dataset_sink_mode = sink}), r);  // starts anew
      }
}

TEST_P(Eval, OneHotAndUnreducedLoss) {
  const Tensor x = testing::random_tensor(Shape{7, 3}, 1);
  Tensor y = Tensor::zeros(Shape{7, 3});
  double hits = 0;
  for (int i = 0; i < 7; ++i) {
    y.data_as<float>()[i * 3 + i % 3] = 1;
    const float* row = x.data_as<float>() + i * 3;
    hits += std::max_element(row, row + 3) - row == i % 3;
  }
  const auto data = data::NumpySlicesDataset({x, y}, {"x", "y"}).batch(4);
  Model none(nn::make<Same>(), nn::SoftmaxCrossEntropyWithLogits(), {}, {.metrics = {"acc", "loss"}});
  Model mean(nn::make<Same>(), nn::SoftmaxCrossEntropyWithLogits({.reduction = "mean"}), {},
             {.metrics = {"acc", "loss"}});
  auto a = none.eval(data), b = mean.eval(data, {.dataset_sink_mode = true});
  EXPECT_NEAR(a["acc"], hits / 7, 1e-12);
  EXPECT_NEAR(a["loss"], b["loss"], 1e-6);
}

/// A metric of one's own, which sees concrete batches.
struct LargestOutput : nn::Metric {
  double top = -1e9;
  int batches = 0;
  void clear() override { *this = {}; }
  void update(const nn::EvalBatch& b) override {
    for (const double v : values(b.output)) top = std::max(top, v);
    EXPECT_TRUE(b.label.is_concrete());
    EXPECT_EQ(b.rows, batches++ == 0 ? 2 : 1);
  }
  double eval() override { return top; }
};

TEST_P(Eval, MetricOfOnesOwn) {
  const Tensor x(std::vector<float>{1, 5, 2}, Shape{3, 1}), y = Tensor::zeros(Shape{3, 1});
  for (const bool sink : {false, true}) {
    Model model(nn::make<Same>(), nn::MSELoss(), {}, {.metrics = {"loss", {"largest", make_ref<LargestOutput>()}}});
    auto r = model.eval(data::NumpySlicesDataset({x, y}, {}, {.shuffle = false}).batch(2), {.dataset_sink_mode = sink});
    EXPECT_EQ(r["largest"], 5);
    EXPECT_NEAR(r["loss"], 10, 1e-6);
  }
}

TEST_P(Eval, LeavesTheNetworkAlone) {
  const auto net = nn::make<testing::SmallNet>();
  net->body[1]->set_train(true);
  const std::vector<double> before = testing::state_of(net.get_parameters());
  Model model(net, nn::SoftmaxCrossEntropyWithLogits({.sparse = true}), {}, {.metrics = {"loss"}});
  const double all = model.eval(testing::images(9, 4, 0, false))["loss"];
  EXPECT_NEAR(model.eval(testing::images(9, 1, 0, false), {.dataset_sink_mode = true})["loss"], all, 1e-6);
  EXPECT_EQ(testing::state_of(net.get_parameters()), before);
  EXPECT_TRUE(net->body[1]->training());
  EXPECT_FALSE(net->training());
}

TEST_P(Eval, Predict) {
  const auto net = nn::make<testing::SmallNet>();
  net.set_train();
  Model model(net);
  const Tensor x = testing::random_tensor(Shape{2, 1, 8, 8}, 3);
  const Tensor y = model.predict({x}).at(0);
  EXPECT_EQ(y.shape(), (Shape{2, 10}));
  EXPECT_EQ(values(model.predict({x}).at(0)), values(y));  // no dropout
  EXPECT_TRUE(net->training());
  set_context({.mode = PYNATIVE_MODE});
  testing::expect_near(model.predict({x}).at(0), values(y), 1e-5);
}

TEST_P(Eval, Errors) {
  const Tensor x = Tensor::zeros(Shape{3, 1});
  const auto data = data::NumpySlicesDataset({x, x}).batch(2);
  expect_error<ValueError>([&] { Model(nn::make<Same>(), nn::MSELoss()).eval(data); }, {"metrics"});
  expect_error<ValueError>([] { Model(nn::make<Same>(), {}, {}, {.metrics = {"loss"}}); }, {"metrics", "loss_fn"});
  expect_error<ValueError>([] { Model(nn::make<Same>(), nn::MSELoss(), {}, {.metrics = {"f9"}}); }, {"f9", "accuracy"});
  expect_error<ValueError>([] { Model(nn::make<Same>(), {}, {}, {.amp_level = "O4"}); }, {"O4", "O2"});
  expect_error<TypeError>([] { Model(Ref<nn::Cell>()); }, {"network"});
  Model model(nn::make<Same>(), nn::MSELoss(), {}, {.metrics = {"loss"}});
  for (const bool sink : {false, true}) {
    expect_error<ValueError>(
        [&] {
          model.eval(data::NumpySlicesDataset({x, x}).batch(4, {.drop_remainder = true}), {.dataset_sink_mode = sink});
        },
        {"valid_dataset", "0 batches", "4", "3"});
    expect_error<ValueError>(
        [&] { model.eval(data::NumpySlicesDataset({x, x, x}).batch(1), {.dataset_sink_mode = sink}); },
        {"valid_dataset", "two columns", "3"});
  }
}

}  // namespace
}  // namespace undertow
