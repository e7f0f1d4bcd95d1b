// SPDX-License-Identifier: Apache-2.0
// train/train_step.h: what one training, evaluation or prediction step computes, as recipes for the runtime.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "undertow/runtime/session.h"
#include "undertow/train/cell.h"
#include "undertow/train/metric.h"
#include "undertow/train/optimizer.h"

namespace undertow::train {

/// The loss scale of a run.
struct LossScaling {
  Parameter scale;       // float32 scalar; undefined: the loss is not scaled
  Ref<nn::Cell> update;  // see LossScaleManagerImpl::get_update_cell
  explicit operator bool() const { return scale.defined(); }
};

/// Outputs: the loss; where steps may be skipped (loss, overflow, scale). Without `loss_fn` the network gets all
/// columns and returns the loss, first of a tuple perhaps; without `optimizer` it is what trains, if anything is, and
/// its outputs are the step's. With `scaling`, gradients reach the optimizer times its own loss_scale argument,
/// whatever that is, and a skipped step changes only the scale and its counters.
std::unique_ptr<runtime::StepFunction> make_train_step(const Ref<nn::Cell>& network, const Ref<nn::Cell>& loss_fn,
                                                       const Ref<nn::OptimizerCell>& optimizer,
                                                       const LossScaling& scaling = {});

/// How an evaluation step is put together.
struct EvalStep {
  Ref<nn::Cell> network, loss_fn;
  Ref<nn::Cell> eval_network;  // in place of both: returns what `indexes` picks from
  std::array<int, 3> indexes{0, 1, 2};
  std::vector<Ref<nn::Metric>> traced;
  bool outputs = false;  // give everything back to the host, for callbacks and metrics that are not traced
};
/// Outputs: everything that was evaluated (loss, output, label) where `outputs` is on; else the loss alone, if any.
std::unique_ptr<runtime::StepFunction> make_eval_step(const EvalStep& step);
/// Those outputs as metrics see them.
nn::EvalBatch eval_batch(const std::vector<Tensor>& all, const std::array<int, 3>& indexes, bool has_loss);

std::unique_ptr<runtime::StepFunction> make_predict_step(const Ref<nn::Cell>& network);

/// Sets training or evaluation for cells and all below; afterwards every cell is as it was.
class TrainFlags {
 public:
  TrainFlags(const std::vector<Ref<nn::Cell>>& roots, bool training);
  ~TrainFlags();
  TrainFlags(const TrainFlags&) = delete;

 private:
  std::vector<std::pair<Ref<nn::Cell>, bool>> before_;  // parents before children
};

}  // namespace undertow::train
