// SPDX-License-Identifier: Apache-2.0
#include "undertow/train/wrap.h"

#include <cmath>

#include "undertow/base/check.h"
#include "undertow/ops/ops.h"
#include "undertow/runtime/session.h"
#include "undertow/train/loss_scale.h"

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

namespace {

/// What the network gave, and the gradients of its first tensor times `scale` (undefined: 1).
struct Forward {
  Value result;
  std::vector<Tensor> grads;
};
Forward forward_and_back(Cell& network, const OptimizerCell& optimizer, const std::vector<Value>& args,
                         const char* wrapper, const Tensor& scale) {
  Forward f;
  Tensor seed;
  const auto forward = [&] {
    f.result = network.call(args);
    const std::vector<Tensor> tensors = f.result.tensors();
    UNDERTOW_CHECK(!tensors.empty(), TypeError, "{}: {} must return the loss as a Tensor", wrapper, network.cls_name());
    return std::vector<Tensor>{tensors[0]};
  };
  const auto scaled = [&] {
    std::vector<Tensor> out = forward();
    // A factor on the loss is one on the gradients.
    if (scale.defined()) out[0] = ops::mul(ops::cast(out[0], DType::kFloat32), ops::reshape(scale, {}));
    return out;
  };
  const std::vector<Tensor> weights(optimizer.parameters().begin(), optimizer.parameters().end());
  runtime::Trace* trace = runtime::current_trace();
  f.grads = trace ? trace->gradients(scaled()[0], weights) : runtime::eager_value_and_grad(scaled, weights).grads;
  return f;
}

void check_scale(const Tensor& scale, const std::string& what) {
  UNDERTOW_CHECK(scale.defined() && scale.size() == 1 && scale.ndim() <= 1, ValueError,
                 "{} must have shape () or (1,), got {}", what, scale.defined() ? scale.shape().str() : "nothing");
}

}  // namespace

Value TrainOneStepCellImpl::construct_values(const std::vector<Value>& args) {
  const Tensor sens = options_.sens == 1 ? Tensor() : Tensor::scalar(static_cast<float>(options_.sens));
  Forward f = forward_and_back(*network_, *optimizer_, args, "TrainOneStepCell", sens);
  optimizer_->update(f.grads);
  if (!options_.return_grad) return f.result;
  Value::Dict named;
  for (std::size_t i = 0; i < f.grads.size(); ++i) named.emplace_back(optimizer_->parameters()[i].name(), f.grads[i]);
  return Value(Value::List{f.result, Value(std::move(named))});
}

Parameter scale_sense(double value, const std::string& what) {
  UNDERTOW_CHECK(value > 0 && std::isfinite(static_cast<float>(value)), ValueError,
                 "{} must be positive and finite but is {}", what, value);
  return Parameter(Tensor::scalar(static_cast<float>(value)), "scale_sense", false);
}

TrainOneStepWithLossScaleCellImpl::TrainOneStepWithLossScaleCellImpl(Ref<Cell> network, Ref<OptimizerCell> optimizer,
                                                                     const Tensor& scale)
    : TrainOneStepWithLossScaleCellImpl(
          std::move(network), std::move(optimizer), Ref<Cell>(),
          (check_scale(scale, "TrainOneStepWithLossScaleCell: 'scale_sense'"),
           nn::scale_sense(scale.item_as_double(), "TrainOneStepWithLossScaleCell: 'scale_sense'"))) {}

TrainOneStepWithLossScaleCellImpl::TrainOneStepWithLossScaleCellImpl(Ref<Cell> network, Ref<OptimizerCell> optimizer,
                                                                     Ref<Cell> update, const Parameter& scale)
    : network_(std::move(network)), optimizer_(std::move(optimizer)), update_(std::move(update)), scale_(scale) {
  require_cell(network_, "TrainOneStepWithLossScaleCell", "network");
  require_cell(optimizer_, "TrainOneStepWithLossScaleCell", "optimizer");
  set_auto_prefix(false);
  if (!scale_.defined()) {
    double start = 1;
    if (const auto* fixed = dynamic_cast<const FixedLossScaleUpdateCellImpl*>(update_.get()))
      start = fixed->get_loss_scale();
    else if (const auto* dynamic = dynamic_cast<const DynamicLossScaleUpdateCellImpl*>(update_.get()))
      start = dynamic->get_loss_scale();
    scale_ = nn::scale_sense(start, cls_name());
  }
  insert_child("network", network_);
  insert_child("optimizer", optimizer_);
  if (update_) insert_child("loss_scaling_manager", update_);
  insert_param("scale_sense", scale_);
}

void TrainOneStepWithLossScaleCellImpl::set_sense_scale(const Tensor& scale) {
  check_scale(scale, cls_name() + ".set_sense_scale: 'sens'");
  scale_.assign(nn::scale_sense(scale.item_as_double(), cls_name() + ".set_sense_scale: 'sens'"));
}

Value TrainOneStepWithLossScaleCellImpl::construct_values(const std::vector<Value>& args) {
  const Tensor scale = ops::copy(scale_);  // of this step
  const Forward f = forward_and_back(*network_, *optimizer_, args, "TrainOneStepWithLossScaleCell", scale);
  Tensor overflow = ops::logical_not(amp::all_finite(f.grads));
  if (update_) overflow = update_->call({Tensor(scale_), overflow}).tensor();
  runtime::write_if(ops::logical_not(overflow), [&] { optimizer_->update(amp::unscaled(f.grads, scale)); });
  return Value(Value::List{f.result.tensors().front(), overflow, scale});
}

Ref<Cell> train_cell(const Ref<Cell>& network, const Ref<OptimizerCell>& optimizer, const Parameter& scale,
                     const Ref<Cell>& update) {
  if (update) return TrainOneStepWithLossScaleCell(network, optimizer, update, scale);
  return TrainOneStepCell(network, optimizer, {.sens = scale.defined() && optimizer ? optimizer->loss_scale() : 1});
}

}  // namespace undertow::nn
