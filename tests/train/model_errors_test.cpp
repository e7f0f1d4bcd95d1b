// SPDX-License-Identifier: Apache-2.0
// What goes wrong is said once, clearly, and leaves the state as it was.
#include "toys.h"

namespace undertow {
namespace {

using testing::expect_error;
using testing::Line;
using testing::OnDevice;
using testing::state_of;
using testing::values;

class ModelErrors : public OnDevice {};
UNDERTOW_ON_DEVICES(ModelErrors);

std::vector<double> everything(const nn::Dense& net, const nn::Adam& opt) {
  std::vector<double> s = state_of(net.get_parameters());
  for (const double v : state_of(opt.get_parameters())) s.push_back(v);
  return s;
}

TEST_P(ModelErrors, ArgumentsAreCheckedFirst) {
  const Line line;
  const nn::Dense net = line.net();
  const nn::Adam opt(net.trainable_params());
  Model model(net, nn::MSELoss(), opt);
  const auto before = everything(net, opt);
  const auto data = line.dataset();
  expect_error<ValueError>([&] { model.train(0, data); }, {"epoch", "0"});
  expect_error<ValueError>([&] { model.train(2, data, {.initial_epoch = 2}); }, {"initial_epoch", "2"});
  expect_error<ValueError>([&] { model.train(1, data, {.dataset_sink_mode = true, .sink_size = 0}); },
                           {"sink_size", "0"});
  expect_error<ValueError>([&] { model.train(1, data, {.dataset_sink_mode = true, .sink_size = -2}); },
                           {"sink_size", "-2"});
  const Tensor x = Tensor::zeros(Shape{3, 3}), y = Tensor::zeros(Shape{3, 1});
  for (const bool sink : {false, true}) {
    expect_error<ValueError>(
        [&] {
          model.train(1, data::NumpySlicesDataset({x, y}).batch(4, {.drop_remainder = true}),
                      {.dataset_sink_mode = sink});
        },
        {"train_dataset", "0 batches", "4", "3"});
    expect_error<ValueError>(
        [&] { model.train(1, data::NumpySlicesDataset({x}).batch(3), {.dataset_sink_mode = sink}); },
        {"train_dataset", "two columns", "1"});
    expect_error<ValueError>(
        [&] {
          model.train(1, data::NumpySlicesDataset({Tensor::zeros(Shape{0, 3}), Tensor::zeros(Shape{0, 1})}).batch(1),
                      {.dataset_sink_mode = sink});
        },
        {"0 batches"});
    expect_error<ValueError>(
        [&] {
          model.train(1, data::NumpySlicesDataset({x, y}).filter([](const data::Row&) { return false; }).batch(1),
                      {.dataset_sink_mode = sink});
        },
        {"0 batches"});
  }
  EXPECT_EQ(everything(net, opt), before);
  EXPECT_FALSE(net->training());
}

TEST_P(ModelErrors, ShapesNameTheCell) {
  const nn::SequentialCell net(nn::Dense(4, 2), nn::Dense(2, 1));
  Model model(net, nn::MSELoss(), nn::Adam(net.trainable_params()));
  const Tensor y = Tensor::zeros(Shape{6, 1});
  for (const Mode mode : {GRAPH_MODE, PYNATIVE_MODE}) {
    set_context({.mode = mode});
    expect_error<ShapeError>(
        [&] { model.train(1, data::NumpySlicesDataset({Tensor::zeros(Shape{6, 3}), y}).batch(2)); },
        {"SequentialCell.0", "(2, 3)", "(2, 4)"});
    expect_error<ShapeError>(
        [&] {
          model.train(1, data::NumpySlicesDataset({Tensor::zeros(Shape{6, 4}), Tensor::zeros(Shape{6})}).batch(2));
        },
        {"MSELoss", "(2, 1)", "(2,)"});
  }
}

/// Ten batches of two rows; batch 5 has a label out of range.
data::Dataset with_bad_label() {
  std::vector<std::int32_t> labels;
  for (int i = 0; i < 20; ++i) labels.push_back(i == 9 ? 7 : i % 3);
  return data::NumpySlicesDataset({testing::random_tensor(Shape{20, 4}, 1), Tensor(labels)}, {}, {.shuffle = false})
      .batch(2);
}

TEST_P(ModelErrors, LabelOutOfRangeLeavesTheStepBefore) {
  const auto make = [] {
    set_seed(4);
    return nn::SequentialCell(nn::Dense(4, 8), nn::BatchNorm1d(8), nn::Dropout({.p = 0.1}), nn::Dense(8, 3));
  };
  const nn::SoftmaxCrossEntropyWithLogits loss({.sparse = true, .reduction = "mean"});
  const auto good = make();
  const nn::Adam good_opt(good.trainable_params());
  Model(good, loss, good_opt).train(1, with_bad_label(), {.dataset_sink_mode = true, .sink_size = 4});
  for (const bool sink : {true, false}) {
    const auto bad = make();
    const nn::Adam opt(bad.trainable_params());
    Model model(bad, loss, opt);
    expect_error<IndexError>([&] { model.train(1, with_bad_label(), {.dataset_sink_mode = sink}); },
                             {"7", "row 1", "0 to 2"});
    EXPECT_EQ(opt.global_step(), 4);
    EXPECT_EQ(state_of(bad.get_parameters()), state_of(good.get_parameters()));
    EXPECT_EQ(state_of(opt.get_parameters()), state_of(good_opt.get_parameters()));
  }
}

TEST_P(ModelErrors, NonFiniteLossUnderLossMonitor) {
  std::vector<float> y(12, 1);
  y[9] = NAN;  // batch 5 of 6
  const auto data = data::NumpySlicesDataset({testing::random_tensor(Shape{12, 3}, 1), Tensor(y, Shape{12, 1})}, {},
                                             {.shuffle = false})
                        .batch(2);
  const Line line;
  for (const bool sink : {false, true})
    for (const Mode mode : {GRAPH_MODE, PYNATIVE_MODE}) {
      set_context({.mode = mode});
      const nn::Dense net = line.net();
      const nn::Adam opt(net.trainable_params());
      Model model(net, nn::MSELoss(), opt);
      const std::string m = testing::message_of<ValueError>(
          [&] { model.train(2, data, {.callbacks = {LossMonitor(0)}, .dataset_sink_mode = sink}); });
      EXPECT_EQ(m, "In epoch: 1 step: 5, loss is NAN or INF, training process cannot continue, terminating training.");
      EXPECT_EQ(opt.global_step(), 4);
      EXPECT_TRUE(std::isfinite(values(net.weight())[0]));
      const std::string later = testing::message_of<ValueError>(
          [&] { model.train(4, data, {.callbacks = {LossMonitor(0)}, .dataset_sink_mode = true, .sink_size = 2}); });
      EXPECT_NE(later.find("In epoch: 3 step: 1,"), std::string::npos) << later;
      Model free(net, nn::MSELoss(), opt);
      free.train(1, data, {.dataset_sink_mode = sink});  // nobody asked to stop
      EXPECT_FALSE(std::isfinite(values(net.weight())[0]));
    }
}

TEST_P(ModelErrors, LastBatchTooShortForBatchNorm) {
  const nn::SequentialCell net(nn::Dense(3, 4), nn::BatchNorm1d(4), nn::Dense(4, 1));
  const nn::Adam opt(net.trainable_params());
  Model model(net, nn::MSELoss(), opt, {.metrics = {"loss"}});
  const auto data =
      data::NumpySlicesDataset({testing::random_tensor(Shape{5, 3}, 1), testing::random_tensor(Shape{5, 1}, 2)});
  expect_error<ValueError>([&] { model.train(1, data.batch(4), {.dataset_sink_mode = true}); },
                           {"BatchNorm1d", "(1, 4)", "more than one value"});
  for (const double v : state_of(net.get_parameters())) EXPECT_TRUE(std::isfinite(v));
  const auto before = state_of(net.get_parameters());
  EXPECT_TRUE(std::isfinite(model.eval(data.batch(1), {.dataset_sink_mode = true})["loss"]));
  EXPECT_EQ(state_of(net.get_parameters()), before);
}

TEST_P(ModelErrors, WorkersExceptionComesThrough) {
  struct Mine : std::runtime_error {
    using std::runtime_error::runtime_error;
  };
  const auto row = [](std::int64_t i) {
    if (i == 5) throw Mine("special 5");
    return data::Row{Tensor({1.f, 2.f, 3.f}), Tensor({1.f})};
  };
  const Line line;
  for (const bool sink : {false, true}) {
    const nn::Dense net = line.net();
    const nn::Adam opt(net.trainable_params());
    Model model(net, nn::MSELoss(), opt);
    const auto data = data::GeneratorDataset(row, 8, {"x", "y"}, {.shuffle = false}).batch(2);
    try {
      model.train(1, data, {.dataset_sink_mode = sink});
      ADD_FAILURE();
    } catch (const Mine& e) {
      EXPECT_STREQ(e.what(), "special 5");
    } catch (const std::exception& e) {
      EXPECT_NE(std::string(e.what()).find("special 5"), std::string::npos) << e.what();
    }
    EXPECT_EQ(opt.global_step(), 2);
  }
}

TEST_P(ModelErrors, WithoutOptimizerNothingChanges) {
  const Line line;
  const nn::Dense net = line.net();
  const auto before = state_of(net.get_parameters());
  const auto rec = make_ref<testing::Recorder>();
  Model(net, nn::MSELoss()).train(1, line.dataset(), {.callbacks = {rec}, .dataset_sink_mode = true});
  EXPECT_EQ(rec->losses.size(), 21u);
  EXPECT_EQ(state_of(net.get_parameters()), before);
}

/// Returns its own loss from three columns.
struct OwnLoss : nn::Cell {
  nn::Dense fc = child("fc", nn::Dense(3, 1));
  nn::Value construct_values(const std::vector<nn::Value>& in) override {
    return ops::reduce_mean(ops::square(fc(in[0].tensor()) - in[1].tensor()) * in[2].tensor());
  }
};

TEST_P(ModelErrors, NetworkWithItsOwnLoss) {
  const auto net = nn::make<OwnLoss>();
  const auto rec = make_ref<testing::Recorder>();
  const Line line;
  Model(net, {}, nn::Adam(net.trainable_params(), {.learning_rate = 0.05}))
      .train(20,
             data::NumpySlicesDataset(
                 {Tensor(line.x, Shape{328, 3}), Tensor(line.y, Shape{328, 1}), Tensor::full(Shape{328, 1}, 1)})
                 .batch(41),
             {.callbacks = {rec}, .dataset_sink_mode = true});
  EXPECT_LT(rec->losses.back(), rec->losses.front() / 5);
}

}  // namespace
}  // namespace undertow
