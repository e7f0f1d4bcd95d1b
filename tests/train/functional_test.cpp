// SPDX-License-Identifier: Apache-2.0
// Training loops of one's own in C++: value_and_grad, update_if and DataSink against what Model does.
#include <limits>

#include "toys.h"

namespace undertow {
namespace {

using testing::expect_error;
using testing::Line;
using testing::OnDevice;
using testing::state_of;

class Functional : public OnDevice {};
UNDERTOW_ON_DEVICES(Functional);

/// The line, with an overflow in the batches 4 and 5.
data::Dataset with_overflows() {
  Line line;
  for (int i = 4 * Line::kBatch; i < 6 * Line::kBatch; ++i)
    line.y[static_cast<std::size_t>(i)] = std::numeric_limits<float>::infinity();
  return line.dataset();
}

/// A step of the line with a scaler, over its own network.
struct Step {
  nn::Dense net = Line().net();
  nn::MSELoss loss;
  nn::Momentum opt{net.trainable_params(), 0.002, 0.5};
  amp::DynamicLossScaler scaler{1024, 2, 3};
  std::vector<Tensor> operator()(const std::vector<Tensor>& batch) {
    const auto [values, grads] = value_and_grad(
        [&] {
          const Tensor l = loss(net(batch[0]), batch[1]);
          return std::vector<Tensor>{scaler->scale({l})[0], l};
        },
        opt.parameters());
    const Tensor finite = amp::all_finite(grads);
    update_if(finite, [&, &g = grads] { opt->update(scaler->unscale(g)); });
    scaler->adjust(finite);
    return {values[1], finite};
  }
};

TEST_P(Functional, DataSinkTrainsAsModelDoes) {
  Step of_model;
  Model model(of_model.net, of_model.loss, of_model.opt, {.loss_scale_manager = DynamicLossScaleManager(1024, 2, 3)});
  model.train(1, with_overflows(), {.dataset_sink_mode = true});
  const std::vector<double> want = state_of(of_model.net.get_parameters());
  EXPECT_EQ(of_model.opt.global_step(), Line::kPerEpoch - 2);

  for (const std::int64_t sink_size : {1, 7, 21}) {
    Step step;
    DataSink sink([&](const std::vector<Tensor>& batch) { return step(batch); }, with_overflows(), sink_size);
    runtime::reset_stats();
    for (std::int64_t done = 0; done < Line::kPerEpoch; done += sink_size) {
      const std::vector<Tensor> last = sink();
      const std::int64_t i = done + sink_size - 1;
      EXPECT_EQ(last.at(1).item<bool>(), i != 4 && i != 5) << i;
    }
    EXPECT_EQ(runtime::stats().commands, Line::kPerEpoch / sink_size);
    EXPECT_EQ(state_of(step.net.get_parameters()), want) << sink_size;
    EXPECT_EQ(step.scaler->scale_value().item<float>(), model.train_network()->get_param("scale_sense").item<float>());
  }
}

TEST_P(Functional, TheSameStepRunsAtOnce) {
  Step sunk, eager;
  DataSink sink([&](const std::vector<Tensor>& batch) { return sunk(batch); }, with_overflows(), Line::kPerEpoch);
  sink();
  for (const data::Row& row : with_overflows()) eager({row.begin(), row.end()});
  const std::vector<double> a = state_of(sunk.net.get_parameters()), b = state_of(eager.net.get_parameters());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-5) << i;
}

TEST_P(Functional, DataSinkRefuses) {
  const auto give = [](const std::vector<Tensor>& batch) { return batch; };
  expect_error<ValueError>([&] { DataSink(give, Line().dataset(), 0); }, {"sink_size", "at least 1"});
  DataSink sink([](const std::vector<Tensor>& batch) { return std::vector<Tensor>{ops::matmul(batch[0], batch[0])}; },
                Line().dataset(), 2);
  EXPECT_THROW(sink(), ShapeError);
}

}  // namespace
}  // namespace undertow
