// SPDX-License-Identifier: Apache-2.0
#include <regex>

#include "toys.h"

namespace undertow {
namespace {

using testing::Line;
using testing::OnDevice;
using testing::Recorder;

std::vector<std::string> printed;

class Callbacks : public OnDevice {
 protected:
  void SetUp() override {
    OnDevice::SetUp();
    printed.clear();
    set_line_printer([](std::string_view line) { printed.emplace_back(line); });
  }
  void TearDown() override { set_line_printer(nullptr); }

  Line line_;
  nn::Dense net_ = line_.net();
  Model model_{net_, nn::MSELoss(), nn::SGD(net_.trainable_params(), {.learning_rate = 1e-3}), {.metrics = {"loss"}}};
};
UNDERTOW_ON_DEVICES(Callbacks);

/// LIN of three batches: few enough to write the hooks down.
data::Dataset three_batches() {
  return data::NumpySlicesDataset({Tensor::full(Shape{5, 3}, 1), Tensor::full(Shape{5, 1}, 2)}, {}, {.shuffle = false})
      .batch(2);
}

TEST_P(Callbacks, OrderOfHooks) {
  const auto a = make_ref<Recorder>();
  model_.train(2, three_batches(), {.callbacks = {a}});
  EXPECT_EQ(a->hooks, "enter begin epoch( ( ) ( ) ( ) )epoch epoch( ( ) ( ) ( ) )epoch end exit ");
  const auto b = make_ref<Recorder>();
  model_.train(2, three_batches(), {.callbacks = {b}, .dataset_sink_mode = true, .sink_size = 2});
  EXPECT_EQ(b->hooks, "enter begin epoch( ( ) )epoch epoch( ( ) )epoch end exit ");
  EXPECT_EQ(b->losses.size(), 4u);
  const auto c = make_ref<Recorder>();
  model_.eval(three_batches(), {.callbacks = {c}});
  EXPECT_EQ(c->hooks, "enter begin epoch( ( ) ( ) ( ) )epoch end exit ");
}

TEST_P(Callbacks, InitialEpochIsCounted) {
  const auto a = make_ref<Recorder>();
  model_.train(5, three_batches(), {.callbacks = {a}, .initial_epoch = 3});
  ASSERT_EQ(a->steps.size(), 6u);
  EXPECT_EQ(a->steps[0].epoch, 4);
  EXPECT_EQ(a->steps[0].step, 1);
  EXPECT_EQ(a->steps[5].epoch, 5);
}

TEST_P(Callbacks, LossMonitorLines) {
  model_.train(2, three_batches(), {.callbacks = {LossMonitor(2)}});
  ASSERT_EQ(printed.size(), 3u);  // steps 2, 4, 6
  EXPECT_EQ(printed[0].rfind("epoch: 1 step: 2, loss is ", 0), 0u);
  EXPECT_EQ(printed[1].rfind("epoch: 2 step: 1, loss is ", 0), 0u);
  printed.clear();
  const auto rec = make_ref<Recorder>();
  model_.train(3, three_batches(), {.callbacks = {rec, LossMonitor()}, .dataset_sink_mode = true, .sink_size = 4});
  ASSERT_EQ(printed.size(), 3u);
  for (int e = 0; e < 3; ++e)
    EXPECT_EQ(printed[static_cast<std::size_t>(e)], "epoch: " + std::to_string(e + 1) + " step: 4, loss is " +
                                                        python_repr(rec->steps[static_cast<std::size_t>(e)].loss));
  printed.clear();
  model_.train(1, three_batches(), {.callbacks = {LossMonitor(0)}});
  EXPECT_TRUE(printed.empty());
}

TEST_P(Callbacks, TimeMonitorLines) {
  model_.train(2, three_batches(), {.callbacks = {TimeMonitor()}});
  model_.train(1, three_batches(), {.callbacks = {TimeMonitor({}, true)}, .dataset_sink_mode = true});
  model_.eval(three_batches(), {.callbacks = {TimeMonitor()}});
  ASSERT_EQ(printed.size(), 4u);
  const std::string number = R"( *\d+\.\d{3} ms)";
  for (int i = 0; i < 2; ++i)
    EXPECT_TRUE(std::regex_match(printed[static_cast<std::size_t>(i)],
                                 std::regex("Train epoch time:" + number + ", per step time:" + number)));
  EXPECT_TRUE(std::regex_match(printed[2], std::regex("Train epoch time:" + number + ", per step time:" + number +
                                                      R"( \(data time:)" + number + R"(\))")));
  EXPECT_TRUE(std::regex_match(printed[3], std::regex("Eval epoch time:" + number + ", per step time:" + number)));
}

TEST_P(Callbacks, ReprIsPythons) {
  EXPECT_EQ(python_repr(1.9112746715545654), "1.9112746715545654");
  EXPECT_EQ(python_repr(0.1), "0.1");
  EXPECT_EQ(python_repr(3), "3.0");
  EXPECT_EQ(python_repr(-0.0), "-0.0");
  EXPECT_EQ(python_repr(1e-5), "1e-05");
  EXPECT_EQ(python_repr(0.0001), "0.0001");
  EXPECT_EQ(python_repr(123456789012345680.0), "1.2345678901234568e+17");
  EXPECT_EQ(python_repr(1e15), "1000000000000000.0");
  EXPECT_EQ(python_repr(1e16), "1e+16");
  EXPECT_EQ(python_repr(NAN), "nan");
  EXPECT_EQ(python_repr(-INFINITY), "-inf");
}

TEST_P(Callbacks, StopRequest) {
  std::string hooks;
  std::int64_t last = 0;
  const auto stop_at_4 = [&](RunContext& c) {
    last = c.original_args().cur_step_num;
    if (last >= 4) c.request_stop();
  };
  const auto run = [&](bool sink) {
    hooks.clear();
    model_.train(10, three_batches(),
                 {.callbacks = {LambdaCallback({.on_train_epoch_begin = [&](RunContext&) { hooks += "e"; },
                                                .on_train_epoch_end = [&](RunContext&) { hooks += "E"; },
                                                .on_train_step_end = stop_at_4,
                                                .on_train_end = [&](RunContext&) { hooks += "T"; }})},
                  .dataset_sink_mode = sink,
                  .sink_size = sink ? 3 : -1});
  };
  run(false);
  EXPECT_EQ(last, 4);
  EXPECT_EQ(hooks, "eEeET");
  run(true);
  EXPECT_EQ(last, 6);
  EXPECT_EQ(hooks, "eEeET");
}

TEST_P(Callbacks, StopFromOutside) {
  Model* model = &model_;
  std::int64_t polls = 0;
  const nn::Adam opt(net_.trainable_params());
  Model endless(net_, nn::MSELoss(), opt);
  const auto rec = make_ref<Recorder>();
  endless.train(1, line_.dataset(),
                {.callbacks = {rec}, .dataset_sink_mode = true, .sink_size = 1'000'000'000, .poll = [&] {
                   if (++polls == 2) endless.request_stop();
                 }});
  EXPECT_EQ(polls, 2);
  EXPECT_EQ(opt.global_step(), rec->steps.at(0).step);
  EXPECT_GT(opt.global_step(), 0);
  EXPECT_LT(opt.global_step(), 1'000'000'000);
  model->train(1, line_.dataset());  // still usable
}

TEST_P(Callbacks, PollMayThrow) {
  for (const bool sink : {true, false}) {
    const auto rec = make_ref<Recorder>();
    EXPECT_THROW(model_.train(sink ? 1 : 1'000'000, line_.dataset(),
                              {.callbacks = {rec},
                               .dataset_sink_mode = sink,
                               .sink_size = sink ? 1'000'000'000 : -1,
                               .poll = [] { throw Interrupted(); }}),
                 Interrupted);
    EXPECT_NE(rec->hooks.find("exit"), std::string::npos);
    model_.train(1, line_.dataset(), {.dataset_sink_mode = sink});
  }
}

TEST_P(Callbacks, ChangesToTheNetworkTakeEffect) {
  const auto net = nn::make<testing::SmallNet>();
  Model model(net, nn::SoftmaxCrossEntropyWithLogits({.sparse = true}), nn::SGD(net.trainable_params()));
  const Parameter mean = net->body[1]->get_param("moving_mean");
  std::vector<std::vector<double>> seen;
  model.train(3, testing::images(16, 8),
              {.callbacks = {LambdaCallback({.on_train_epoch_end =
                                                 [&](RunContext& c) {
                                                   seen.push_back(testing::values(mean));
                                                   if (c.original_args().cur_epoch_num == 1)
                                                     net->body[1]->set_train(false);
                                                 }})},
               .dataset_sink_mode = true});
  ASSERT_EQ(seen.size(), 3u);
  EXPECT_EQ(seen[1], seen[0]);  // frozen
  EXPECT_EQ(seen[2], seen[0]);
  EXPECT_FALSE(net->training());
}

TEST_P(Callbacks, EvalInsideTraining) {
  std::vector<double> losses;
  model_.train(
      3, line_.dataset(),
      {.callbacks = {LambdaCallback({.on_train_epoch_end =
                                         [&](RunContext&) {
                                           losses.push_back(
                                               model_.eval(line_.dataset(), {.dataset_sink_mode = true}).at("loss"));
                                         }})},
       .dataset_sink_mode = true});
  ASSERT_EQ(losses.size(), 3u);
  EXPECT_LT(losses[2], losses[0]);
}

}  // namespace
}  // namespace undertow
