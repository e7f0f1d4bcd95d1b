// SPDX-License-Identifier: Apache-2.0
// Steps from trace to launch: numbers against loops in double, on both devices.
#include <gtest/gtest.h>

#include <cmath>

#include "undertow/ops/ops.h"
#include "undertow/runtime/context.h"
#include "undertow/runtime/session.h"
#include "undertow/runtime/stats.h"

namespace undertow::runtime {
namespace {

class Step : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { set_context({.mode = GRAPH_MODE, .device_target = GetParam()}); }
};
INSTANTIATE_TEST_SUITE_P(Devices, Step, ::testing::Values("reference", "CPU"));

/// Least squares with plain gradient descent.
struct Line {
  Parameter w{Tensor::zeros({1, 1}), "w"}, b{Tensor::zeros({1}), "b"};
  StepFunction step{"line",
                    [this](Trace& trace, const std::vector<Tensor>& in) {
                      const Tensor d = ops::matmul(in[0], w, false, true) + b - in[1];
                      const Tensor loss = ops::reduce_mean(ops::square(d));
                      const auto g = trace.gradients(loss, {w, b});
                      ops::assign(w, w - g[0] * 0.01);
                      ops::assign(b, b - g[1] * 0.01);
                      return std::vector<Tensor>{loss};
                    },
                    StepOutputs::kLoss};
};

TEST_P(Step, RunOnceUpdatesTheParametersAsALoopWould) {
  Line line;
  const Tensor x(std::vector<float>{1, 2, 3, 4}, {4, 1}), y(std::vector<float>{5, 7, 9, 11}, {4, 1});
  double w = 0, b = 0;
  for (int step = 0; step < 20; ++step) {
    double gw = 0, gb = 0, loss = 0;
    for (int i = 0; i < 4; ++i) {
      const double d = w * (i + 1) + b - (5 + 2 * i);
      gw += 2 * d * (i + 1) / 4;
      gb += 2 * d / 4;
      loss += d * d / 4;
    }
    const auto out = run_once(line.step, {x, y});
    EXPECT_NEAR(out.at(0).item<float>(), loss, 1e-4 * std::max(1.0, loss));
    w -= 0.01 * gw;
    b -= 0.01 * gb;
    EXPECT_NEAR(line.w.item<float>(), w, 1e-5);
    EXPECT_NEAR(line.b.item<float>(), b, 1e-5);
  }
}

TEST_P(Step, EagerTrainingEqualsCompiled) {
  Line compiled, eager;
  const Tensor x(std::vector<float>{1, 2, 3, 4}, {4, 1}), y(std::vector<float>{5, 7, 9, 11}, {4, 1});
  for (int i = 0; i < 10; ++i) {
    run_once(compiled.step, {x, y});
    Trace trace(Trace::Mode::kEager);
    {
      const TraceScope scope(&trace);
      eager.step.build()(trace, {trace.input("x", x), trace.input("y", y)});
    }
    trace.commit();
  }
  EXPECT_NEAR(compiled.w.item<float>(), eager.w.item<float>(), 1e-5);
  EXPECT_NEAR(compiled.b.item<float>(), eager.b.item<float>(), 1e-5);
}

TEST_P(Step, SoftmaxCrossEntropyIsOneNumberPerRow) {
  StepFunction f(
      "loss",
      [](Trace&, const std::vector<Tensor>& in) {
        return std::vector<Tensor>{ops::reduce_mean(ops::cross_entropy_sparse(in[0], in[1]))};
      },
      StepOutputs::kLoss);
  const auto out = run_once(f, {Tensor::zeros({2, 3}), Tensor({std::int32_t{0}, std::int32_t{2}})});
  EXPECT_NEAR(out.at(0).item<float>(), 1.0986123, 1e-6);
  try {
    run_once(f, {Tensor::zeros({2, 3}), Tensor({std::int32_t{0}, std::int32_t{3}})});
    FAIL() << "label 3 of 3 classes was accepted";
  } catch (const IndexError& e) {
    EXPECT_NE(std::string(e.what()).find("index 3 at row 1"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("0 to 2"), std::string::npos) << e.what();
  }
}

TEST_P(Step, AnEqualGraphIsCompiledOnce) {
  reset_stats();
  const Tensor x = Tensor::full({5, 7}, 2);
  for (int i = 0; i < 3; ++i) {
    StepFunction f(
        "twice", [](Trace&, const std::vector<Tensor>& in) { return std::vector<Tensor>{in[0] * 2.0}; },
        StepOutputs::kPlain);
    EXPECT_EQ(run_once(f, {x}).at(0).data_as<float>()[34], 4);
  }
  EXPECT_LE(stats().compiles, 1);
  EXPECT_GE(stats().program_hits, 2);
}

/// Short commands run on the calling thread once their steps are known to be tiny: nothing but the time may change.
TEST_P(Step, ShortCommandsGiveTheSameBitsAndLookAfterSignals) {
  const auto batch = [](int s, std::byte* x, std::byte* y) {
    for (int i = 0; i < 4; ++i) {
      reinterpret_cast<float*>(x)[i] = static_cast<float>((s * 7 + i * 3) % 5) - 2;
      reinterpret_cast<float*>(y)[i] = static_cast<float>((s + i) % 3);
    }
  };
  const std::vector<ColumnType> types{{"x", DType::kFloat32, {4, 1}}, {"y", DType::kFloat32, {4, 1}}};
  std::vector<float> results;
  for (const std::int64_t size : {1, 3, 63}) {
    Line line;
    Channel channel(types);
    for (int s = 0; s < 64; ++s) {
      ChannelSlot* slot = channel.acquire(s, types);
      batch(s, slot->columns[0], slot->columns[1]);
      channel.publish(slot);
    }
    CommandResult result;
    for (std::int64_t done = 0; done < 63; done += size) run_command(line.step, channel, {.steps = size}, result);
    // One batch is left, then the channel is empty: whoever waits is asked now and then, and may stop.
    int asked = 0;
    CommandOptions wait{.steps = 2};
    wait.poll = [&](auto) {
      if (++asked == 2) throw ValueError("enough");
    };
    EXPECT_THROW(run_command(line.step, channel, wait, result), ValueError);
    EXPECT_EQ(line.step.steps_run, 64);
    results.push_back(line.w.item<float>());
  }
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
}

TEST_P(Step, ACommandRunsFullAndShortBatches) {
  Line line;
  Channel channel({{"x", DType::kFloat32, {4, 1}}, {"y", DType::kFloat32, {4, 1}}});
  for (int s = 0; s < 3; ++s) {
    const std::int64_t n = s == 2 ? 2 : 4;
    ChannelSlot* slot =
        channel.acquire(s, std::vector<ColumnType>{{"x", DType::kFloat32, {n, 1}}, {"y", DType::kFloat32, {n, 1}}});
    for (int i = 0; i < n; ++i) {
      reinterpret_cast<float*>(slot->columns[0])[i] = static_cast<float>(i + s);
      reinterpret_cast<float*>(slot->columns[1])[i] = static_cast<float>(3 * i);
    }
    channel.publish(slot);
    if (s == 2) channel.end(3);
  }
  reset_stats();
  CommandResult r;
  run_command(line.step, channel, {.steps = 3}, r);
  EXPECT_EQ(r.steps, 3);
  EXPECT_EQ(stats().commands, 1);
  EXPECT_EQ(stats().steps, 3);
  double w = 0, b = 0;
  for (int s = 0; s < 3; ++s) {
    const int n = s == 2 ? 2 : 4;
    double gw = 0, gb = 0, loss = 0;
    for (int i = 0; i < n; ++i) {
      const double d = w * (i + s) + b - 3 * i;
      gw += 2 * d * (i + s) / n;
      gb += 2 * d / n;
      loss += d * d / n;
    }
    EXPECT_NEAR(r.records[s].loss, loss, 1e-4 * std::max(1.0, loss));
    w -= 0.01 * gw;
    b -= 0.01 * gb;
  }
  EXPECT_NEAR(line.w.item<float>(), w, 1e-5);
}

}  // namespace
}  // namespace undertow::runtime
