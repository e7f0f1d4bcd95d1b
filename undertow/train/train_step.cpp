// SPDX-License-Identifier: Apache-2.0
#include "undertow/train/train_step.h"

#include <algorithm>

#include "undertow/base/check.h"
#include "undertow/ops/ops.h"
#include "undertow/train/loss_scale.h"
#include "undertow/train/padding_advice.h"

namespace undertow::train {
namespace {

using nn::Value;

std::vector<Value> as_values(const std::vector<Tensor>& columns) { return {columns.begin(), columns.end()}; }

Tensor first_tensor(const Value& value, const nn::Cell& cell, const char* what) {
  const std::vector<Tensor> tensors = value.tensors();
  UNDERTOW_CHECK(!tensors.empty(), TypeError, "{} must return {} as a Tensor, but returned none", cell.cls_name(),
                 what);
  return tensors.front();
}

/// Rows of a batch: the first dimension of a column, 1 for a single sample.
std::int64_t rows_of(const Tensor& t) { return t.defined() && t.ndim() > 0 ? t.shape(0) : 1; }

std::vector<Tensor> evaluate(const EvalStep& s, const std::vector<Tensor>& columns) {
  if (s.eval_network) return s.eval_network->call(as_values(columns)).tensors();
  if (!s.loss_fn) return s.network->call(as_values(columns)).tensors();
  const Value output = s.network->call({columns[0]});
  const Tensor loss = first_tensor(s.loss_fn->call({output, columns[1]}), *s.loss_fn, "the loss");
  return {loss, first_tensor(output, *s.network, "its output"), columns[1]};
}

/// Gradients of the loss times the scale, and from them the update. Outputs as make_train_step's.
std::vector<Tensor> update(runtime::Trace& trace, const Tensor& loss, nn::OptimizerCell& optimizer,
                           const LossScaling& scaling) {
  const std::vector<Tensor> params(optimizer.parameters().begin(), optimizer.parameters().end());
  if (!scaling) {
    optimizer.record_lr();
    optimizer.update(trace.gradients(loss, params));
    return {loss};
  }
  {
    const runtime::AlwaysWritten records(trace);  // a skipped step has a rate to show as well
    optimizer.record_lr();
  }
  const Tensor scale = ops::copy(scaling.scale);  // as it is in this step, for the caller
  const Tensor seed = ops::cast(ops::mul(ops::ones_like(ops::cast(loss, DType::kFloat32)), scale), loss.dtype());
  const std::vector<Tensor> grads = trace.gradients(loss, params, seed);
  const Tensor overflow = ops::logical_not(amp::all_finite(grads));
  optimizer.update(amp::unscaled(grads, scale, optimizer.loss_scale()));
  if (!scaling.update) return {loss};
  const runtime::AlwaysWritten scales(trace);
  const Value skipped = scaling.update->call({Tensor(scaling.scale), overflow});
  UNDERTOW_CHECK(skipped.is_tensor() && skipped.tensor().size() == 1, TypeError,
                 "{} must return whether the step is skipped, a Tensor of one element", scaling.update->cls_name());
  return {loss, ops::reshape(ops::cast(skipped.tensor(), DType::kBool), {}), scale};
}

}  // namespace

std::unique_ptr<runtime::StepFunction> make_train_step(const Ref<nn::Cell>& network, const Ref<nn::Cell>& loss_fn,
                                                       const Ref<nn::OptimizerCell>& optimizer,
                                                       const LossScaling& scaling) {
  auto build = [network, loss_fn, optimizer, scaling](runtime::Trace& trace, const std::vector<Tensor>& columns) {
    const std::vector<Tensor> inputs = loss_fn ? std::vector<Tensor>{columns[0]} : columns;
    Value output;
    {
      const TracedCall traced(network, inputs);
      output = network->call(as_values(inputs));
    }
    const Tensor loss = loss_fn ? first_tensor(loss_fn->call({output, columns[1]}), *loss_fn, "the loss")
                                : first_tensor(output, *network, "the loss");
    if (optimizer) return update(trace, loss, *optimizer, scaling);
    return loss_fn ? std::vector<Tensor>{loss} : output.tensors();  // a training cell: (loss, overflow, scale)
  };
  const bool guarded = optimizer && scaling.update;
  auto step = std::make_unique<runtime::StepFunction>(
      "train:" + network->cls_name(), std::move(build),
      guarded ? runtime::StepOutputs::kGuardedLoss : runtime::StepOutputs::kLoss);
  if (optimizer) step->learning_rate = optimizer->recorded_lr();
  if (optimizer && scaling) step->loss_scale = scaling.scale;
  return step;
}

nn::EvalBatch eval_batch(const std::vector<Tensor>& all, const std::array<int, 3>& indexes, bool has_loss) {
  nn::EvalBatch b;
  const auto pick = [&](int place, const char* what) {
    UNDERTOW_CHECK(place >= 0 && static_cast<std::size_t>(place) < all.size(), ValueError,
                   "the evaluation network returned {} tensors, but eval_indexes puts the {} at place {}", all.size(),
                   what, place);
    return all[static_cast<std::size_t>(place)];
  };
  b.all = all;
  if (has_loss) b.loss = pick(indexes[0], "loss");
  b.output = pick(indexes[1], "output");
  b.label = pick(indexes[2], "label");
  b.rows = rows_of(b.label);
  return b;
}

std::unique_ptr<runtime::StepFunction> make_eval_step(const EvalStep& s) {
  auto build = [s](runtime::Trace&, const std::vector<Tensor>& columns) {
    std::vector<Tensor> all = evaluate(s, columns);
    if (!s.traced.empty()) {
      const nn::EvalBatch batch = eval_batch(all, s.indexes, true);
      for (const Ref<nn::Metric>& m : s.traced) m->update(batch);
    }
    if (s.outputs) return all;
    return std::vector<Tensor>{all.at(static_cast<std::size_t>(s.indexes[0]))};
  };
  const Ref<nn::Cell>& named = s.eval_network ? s.eval_network : s.network;
  const bool has_loss = !s.outputs || s.indexes[0] == 0;
  return std::make_unique<runtime::StepFunction>("eval:" + named->cls_name(), std::move(build),
                                                 has_loss ? runtime::StepOutputs::kLoss : runtime::StepOutputs::kPlain);
}

std::unique_ptr<runtime::StepFunction> make_predict_step(const Ref<nn::Cell>& network) {
  auto build = [network](runtime::Trace&, const std::vector<Tensor>& inputs) {
    return network->call(as_values(inputs)).tensors();
  };
  return std::make_unique<runtime::StepFunction>("predict:" + network->cls_name(), std::move(build),
                                                 runtime::StepOutputs::kPlain);
}

TrainFlags::TrainFlags(const std::vector<Ref<nn::Cell>>& roots, bool training) {
  for (const Ref<nn::Cell>& root : roots) {
    if (!root) continue;
    for (auto& [_, cell] : root->cells_and_names()) before_.emplace_back(cell, cell->training());
    root->set_train(training);
  }
}

TrainFlags::~TrainFlags() {
  // set_train reaches all below, so parents come first and children correct what they changed.
  const bool same = std::all_of(before_.begin(), before_.end(),
                                [&](const auto& entry) { return entry.second == before_.front().second; });
  for (std::size_t i = 0; i < before_.size(); ++i) {
    auto& [cell, flag] = before_[i];
    if (!same || cell->training() != flag) cell->set_train(flag);
  }
}

}  // namespace undertow::train
