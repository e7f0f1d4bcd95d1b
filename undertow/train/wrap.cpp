// SPDX-License-Identifier: Apache-2.0
#include "undertow/train/wrap.h"

#include <cmath>

#include "undertow/base/check.h"
#include "undertow/ops/ops.h"
#include "undertow/runtime/session.h"

namespace undertow::nn {
namespace {

void require_cell(const Ref<Cell>& cell, const char* wrapper, const char* argument) {
  UNDERTOW_CHECK(cell, TypeError, "{}: '{}' must be a Cell", wrapper, argument);
}

void require_pair(const std::vector<Value>& args, const std::string& cls) {
  UNDERTOW_CHECK(args.size() == 2, TypeError, "{} takes (data, label), but got {} inputs", cls, args.size());
}

}  // namespace

WithLossCellImpl::WithLossCellImpl(Ref<Cell> backbone, Ref<Cell> loss_fn)
    : backbone_(std::move(backbone)), loss_fn_(std::move(loss_fn)) {
  require_cell(backbone_, "WithLossCell", "backbone");
  require_cell(loss_fn_, "WithLossCell", "loss_fn");
  set_auto_prefix(false);
  insert_child("_backbone", backbone_);
  insert_child("_loss_fn", loss_fn_);
}

Value WithLossCellImpl::construct_values(const std::vector<Value>& args) {
  require_pair(args, cls_name());
  return loss_fn_->call({backbone_->call({args[0]}), args[1]});
}

WithEvalCellImpl::WithEvalCellImpl(Ref<Cell> network, Ref<Cell> loss_fn, bool add_cast_fp32)
    : network_(std::move(network)), loss_fn_(std::move(loss_fn)), cast_(add_cast_fp32) {
  require_cell(network_, "WithEvalCell", "network");
  require_cell(loss_fn_, "WithEvalCell", "loss_fn");
  set_auto_prefix(false);
  insert_child("_network", network_);
  insert_child("_loss_fn", loss_fn_);
}

Value WithEvalCellImpl::construct_values(const std::vector<Value>& args) {
  require_pair(args, cls_name());
  Value output = network_->call({args[0]}), label = args[1];
  if (cast_) {
    output = ops::cast(output.tensor(), DType::kFloat32);
    if (label.is_tensor() && is_floating(label.tensor().dtype())) label = ops::cast(label.tensor(), DType::kFloat32);
  }
  const Value loss = loss_fn_->call({output, label});
  return Value(Value::List{loss, output, label});
}

TrainOneStepCellImpl::TrainOneStepCellImpl(Ref<Cell> network, Ref<OptimizerCell> optimizer,
                                           const TrainOneStepOptions& options)
    : network_(std::move(network)), optimizer_(std::move(optimizer)), options_(options) {
  require_cell(network_, "TrainOneStepCell", "network");
  require_cell(optimizer_, "TrainOneStepCell", "optimizer");
  UNDERTOW_CHECK(options_.sens != 0 && std::isfinite(options_.sens), ValueError,
                 "TrainOneStepCell: 'sens' must not be 0, but is {}", options_.sens);
  set_auto_prefix(false);
  insert_child("network", network_);
  insert_child("optimizer", optimizer_);
}

Value TrainOneStepCellImpl::construct_values(const std::vector<Value>& args) {
  Value result;
  // A factor on the loss is one on the gradients.
  const auto forward = [&] {
    result = network_->call(args);
    const std::vector<Tensor> tensors = result.tensors();
    UNDERTOW_CHECK(!tensors.empty(), TypeError, "TrainOneStepCell: {} must return the loss as a Tensor",
                   network_->cls_name());
    return std::vector<Tensor>{options_.sens == 1 ? tensors[0] : ops::mul(tensors[0], options_.sens)};
  };
  const std::vector<Tensor> weights(optimizer_->parameters().begin(), optimizer_->parameters().end());
  runtime::Trace* trace = runtime::current_trace();
  const std::vector<Tensor> grads =
      trace ? trace->gradients(forward()[0], weights) : runtime::eager_value_and_grad(forward, weights).grads;
  optimizer_->update(grads);
  if (!options_.return_grad) return result;
  Value::Dict named;
  for (std::size_t i = 0; i < grads.size(); ++i) named.emplace_back(optimizer_->parameters()[i].name(), grads[i]);
  return Value(Value::List{result, Value(std::move(named))});
}

}  // namespace undertow::nn
