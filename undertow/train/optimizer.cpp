// SPDX-License-Identifier: Apache-2.0
#include "undertow/train/optimizer.h"

#include <atomic>
#include <cmath>
#include <set>

#include "undertow/base/check.h"
#include "undertow/ops/ops.h"

namespace undertow::nn {
namespace {

Tensor f32_scalar(double value) { return Tensor::scalar(static_cast<float>(value)); }

void require_non_negative(const std::string& cls, const char* argument, double value) {
  UNDERTOW_CHECK(value >= 0 && std::isfinite(value), ValueError, "{}: '{}' must be at least 0 but is {}", cls, argument,
                 value);
}

bool skips_decay(const std::string& name) {
  return name.find("beta") != std::string::npos || name.find("gamma") != std::string::npos;
}

}  // namespace

OptimizerCell::OptimizerCell(const std::string& cls, std::vector<Parameter> parameters, const OptimizerOptions& o)
    : cls_(cls), parameters_(std::move(parameters)) {
  UNDERTOW_CHECK(!parameters_.empty(), ValueError,
                 "{}: the list of parameters is empty; give it e.g. net.trainable_params()", cls_);
  std::set<const TensorImpl*> known;
  std::set<std::string> names;
  for (const Parameter& p : parameters_) {
    UNDERTOW_CHECK(p.defined() && p.is_parameter(), TypeError, "{}: the list holds something that is not a Parameter",
                   cls_);
    UNDERTOW_CHECK(known.insert(p.impl().get()).second, RuntimeError, "{}: parameter '{}' is in the list twice", cls_,
                   p.name());
    if (p.name().empty()) {
      static std::atomic<int> counter{0};
      p.set_name(fmt::format("Parameter#{}", counter++));
    }
    UNDERTOW_CHECK(names.insert(p.name()).second, ValueError,
                   "{}: two parameters have the name '{}'; rename one of them", cls_, p.name());
    UNDERTOW_CHECK(is_floating(p.dtype()), TypeError, "{}: parameter '{}' is {} and cannot be trained", cls_, p.name(),
                   name_of(p.dtype()));
    decayed_.push_back(!skips_decay(p.name()));
  }
  require_non_negative(cls_, "learning_rate", o.learning_rate);
  require_non_negative(cls_, "weight_decay", o.weight_decay);
  UNDERTOW_CHECK(o.loss_scale > 0 && std::isfinite(o.loss_scale), ValueError,
                 "{}: 'loss_scale' must be greater than 0 but is {}", cls_, o.loss_scale);

  insert_param("global_step", Parameter(Tensor::zeros(Shape{1}, DType::kInt32), "global_step", false));
  scalar_state("learning_rate", o.learning_rate);
  if (o.weight_decay != 0) {
    weight_decay_ = f32_scalar(o.weight_decay);
    decay_times_scale_ = f32_scalar(o.weight_decay * o.loss_scale);
  }
  if (o.loss_scale != 1) loss_scale_ = f32_scalar(o.loss_scale);
}

void OptimizerCell::update(const std::vector<Tensor>& grads) {
  UNDERTOW_CHECK(grads.size() == parameters_.size(), ValueError, "{}: got {} gradients for {} parameters", cls_,
                 grads.size(), parameters_.size());
  std::vector<Tensor> effective;
  effective.reserve(grads.size());
  for (std::size_t i = 0; i < grads.size(); ++i) {
    const Parameter& p = parameters_[i];
    UNDERTOW_CHECK(grads[i].shape() == p.shape(), ShapeError,
                   "{}: the gradient of '{}' has shape {} but the parameter {}", cls_, p.name(), grads[i].shape().str(),
                   p.shape().str());
    Tensor g = grads[i];
    if (weight_decay_.defined() && !decay_all_ && decayed_[i]) g = ops::add(g, ops::mul(decay_times_scale_, p));
    if (loss_scale_.defined()) g = ops::div(g, loss_scale_);
    if (weight_decay_.defined() && decay_all_) g = ops::add(g, ops::mul(weight_decay_, p));
    effective.push_back(std::move(g));
  }
  construct_update(effective);
  const Parameter step = global_step_param();
  ops::assign(step, ops::add(step, 1));
}

Value OptimizerCell::construct_values(const std::vector<Value>& args) {
  std::vector<Tensor> grads;
  for (const Value& a : args)
    for (Tensor& t : a.tensors()) grads.push_back(std::move(t));
  update(grads);
  return true;
}

void OptimizerCell::set_lr(double value) {
  require_non_negative(cls_, "learning_rate", value);
  learning_rate().assign(f32_scalar(value));
}

std::vector<Parameter> OptimizerCell::slots(const std::string& prefix, double value) {
  std::vector<Parameter> out;
  out.reserve(parameters_.size());
  for (const Parameter& p : parameters_) {
    const std::string name = prefix + "." + p.name();
    out.emplace_back(Tensor::full(p.shape(), value, compute_type(p.dtype())), name, false);
    insert_param(name, out.back());
  }
  return out;
}

Parameter OptimizerCell::scalar_state(const std::string& name, double value) {
  const Parameter p(f32_scalar(value), name, false);
  insert_param(name, p);
  return p;
}

}  // namespace undertow::nn
