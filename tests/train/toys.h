// SPDX-License-Identifier: Apache-2.0
// Small problems that the tests of Model share.
#pragma once

#include "helpers.h"

namespace undertow::testing {

/// A line with noise: 328 rows of 3, so that batches of 16 end with one of 8 rows.
struct Line {
  static constexpr int kRows = 328, kBatch = 16, kEpochs = 4, kPerEpoch = 21;
  std::vector<float> x = random_floats(kRows * 3, 11, -10, 10), y, w0 = random_floats(3, 12);
  Line() {
    const std::vector<float> noise = random_floats(kRows, 13);
    for (int i = 0; i < kRows; ++i)
      y.push_back(2 * x[3 * i] - x[3 * i + 1] + 0.5f * x[3 * i + 2] + 3 + noise[static_cast<std::size_t>(i)]);
  }
  data::Dataset dataset(int workers = 0) const {
    return data::NumpySlicesDataset({Tensor(x, Shape{kRows, 3}), Tensor(y, Shape{kRows, 1})}, {"x", "y"},
                                    {.shuffle = false, .num_parallel_workers = workers})
        .batch(kBatch, {.num_parallel_workers = workers});
  }
  nn::Dense net() const { return nn::Dense(3, 1, {.weight_init = Tensor(w0, Shape{1, 3}), .bias_init = "zeros"}); }
};

/// Remembers what every step hook saw.
struct Recorder : Callback {
  struct Step {
    std::int64_t epoch, step, batches;
    double loss;
  };
  std::vector<Step> steps;
  std::vector<double> losses;  // of every step, sunk or not
  std::string hooks;
  void note(const char* what) { hooks += std::string(what) + " "; }
  void enter() override { note("enter"); }
  void exit() override { note("exit"); }
  void begin(RunContext&) override { note("begin"); }
  void epoch_begin(RunContext&) override { note("epoch("); }
  void step_begin(RunContext&) override { note("("); }
  void step_end(RunContext& c) override {
    note(")");
    const CallbackParams& p = c.original_args();
    steps.push_back({p.cur_epoch_num, p.cur_step_num, p.batch_num, values(p.net_outputs.tensors().at(0)).at(0)});
    losses.insert(losses.end(), p.step_losses.begin(), p.step_losses.end());
  }
  void epoch_end(RunContext&) override { note(")epoch"); }
  void end(RunContext&) override { note("end"); }
};

/// A network with everything that changes state in a step: BatchNorm, Dropout, convolution.
struct SmallNet : nn::Cell {
  nn::SequentialCell body =
      child("body", nn::SequentialCell(nn::Conv2d(1, 4, 3), nn::BatchNorm2d(4), nn::ReLU(),
                                       nn::MaxPool2d({.kernel_size = 2, .stride = 2}), nn::Flatten(),
                                       nn::Dropout({.p = 0.2}), nn::Dense(4 * 4 * 4, 10)));
  Tensor construct(const Tensor& x) override { return body(x); }
  std::string cls_name() const override { return "SmallNet"; }
};
inline data::Dataset images(int rows, int batch, int workers = 0, bool shuffle = true) {
  std::vector<std::int32_t> labels;
  for (int i = 0; i < rows; ++i) labels.push_back(i * 7 % 10);
  return data::NumpySlicesDataset({random_tensor(Shape{rows, 1, 8, 8}, 21), Tensor(labels)}, {"image", "label"},
                                  {.shuffle = shuffle, .num_parallel_workers = workers})
      .batch(batch, {.num_parallel_workers = workers});
}

/// All parameters' bytes, one after the other.
inline std::vector<double> state_of(const std::vector<Parameter>& params) {
  std::vector<double> out;
  for (const Parameter& p : params) {
    const std::vector<double> v = values(p);
    out.insert(out.end(), v.begin(), v.end());
  }
  return out;
}

}  // namespace undertow::testing
