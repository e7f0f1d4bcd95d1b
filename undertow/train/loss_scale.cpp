// SPDX-License-Identifier: Apache-2.0
#include "undertow/train/loss_scale.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "undertow/base/check.h"
#include "undertow/ops/ops.h"
#include "undertow/runtime/trace.h"

namespace undertow {
namespace {

constexpr double kLargest = 0x1p126;  // 1 / scale stays a normal float32

Tensor f32_scalar(double value) { return Tensor::scalar(static_cast<float>(value)); }

void check_scale(const char* cls, const char* argument, double scale) {
  UNDERTOW_CHECK(scale >= 1 && scale <= kLargest, ValueError, "{}: '{}' must be from 1 to 2^126 but is {}", cls,
                 argument, scale);
}

void check_rule(const char* cls, const char* scale_name, double scale, double factor, std::int64_t window) {
  check_scale(cls, scale_name, scale);
  UNDERTOW_CHECK(factor > 1 && std::isfinite(factor), ValueError, "{}: 'scale_factor' must be above 1 but is {}", cls,
                 factor);
  UNDERTOW_CHECK(window >= 1 && window <= std::numeric_limits<std::int32_t>::max(), ValueError,
                 "{}: 'scale_window' must be a positive 32-bit integer but is {}", cls, window);
}

/// The larger scale, unless it would be too large; the smaller one, but not below 1.
Tensor grown(const Tensor& scale, double factor) {
  const Tensor next = ops::mul(scale, factor);
  return ops::select(ops::less_equal(next, kLargest), next, scale);
}
Tensor shrunk(const Tensor& scale, double factor) { return ops::maximum(ops::div(scale, factor), 1.0); }

/// What an update cell is called with.
struct UpdateArguments {
  Parameter scale;
  Tensor overflow;
  UpdateArguments(const std::string& cls, const std::vector<nn::Value>& args) {
    UNDERTOW_CHECK(args.size() == 2 && args[0].is_tensor() && args[1].is_tensor(), TypeError,
                   "{} takes (loss_scale: Parameter, overflow: bool Tensor)", cls);
    UNDERTOW_CHECK(args[0].tensor().is_parameter(), TypeError,
                   "{}: 'loss_scale' must be a Parameter, whose next value is assigned, got a Tensor", cls);
    scale = Parameter::of(args[0].tensor());
    overflow = args[1].tensor();
    UNDERTOW_CHECK(scale.size() == 1 && overflow.size() == 1, ShapeError,
                   "{}: 'loss_scale' and 'overflow' must have one element each, got shapes {} and {}", cls,
                   scale.shape().str(), overflow.shape().str());
    overflow = ops::reshape(ops::cast(overflow, DType::kBool), {});
  }
};

}  // namespace

// ---- managers

FixedLossScaleManagerImpl::FixedLossScaleManagerImpl(double loss_scale, bool drop_overflow_update)
    : scale_(loss_scale), drop_(drop_overflow_update) {
  check_scale("FixedLossScaleManager", "loss_scale", loss_scale);
}

Ref<nn::Cell> FixedLossScaleManagerImpl::get_update_cell() const {
  return drop_ ? Ref<nn::Cell>(nn::FixedLossScaleUpdateCell(scale_)) : Ref<nn::Cell>();
}

DynamicLossScaleManagerImpl::DynamicLossScaleManagerImpl(double init_loss_scale, double scale_factor,
                                                         std::int64_t scale_window)
    : init_(init_loss_scale), scale_(init_loss_scale), factor_(scale_factor), window_(scale_window) {
  check_rule("DynamicLossScaleManager", "init_loss_scale", init_loss_scale, scale_factor, scale_window);
}

void DynamicLossScaleManagerImpl::update_loss_scale(bool overflow) {
  if (overflow) {
    scale_ = std::max(scale_ / factor_, 1.0);
    last_overflow_ = step_;
    ++overflows_;
    UNDERTOW_CHECK(overflows_ <= 1000, RuntimeError,
                   "DynamicLossScaleManager: {} steps in a row had gradients that are not finite", overflows_);
  } else {
    if ((step_ - last_overflow_) % window_ == 0 && scale_ * factor_ <= kLargest) scale_ *= factor_;
    overflows_ = 0;
  }
  ++step_;
}

Ref<nn::Cell> DynamicLossScaleManagerImpl::get_update_cell() const {
  return nn::DynamicLossScaleUpdateCell(init_, factor_, window_);
}

Ref<LossScaleManagerImpl> default_loss_scale_manager(std::string_view amp_level) {
  return amp_level == "O2" ? Ref<LossScaleManagerImpl>(DynamicLossScaleManager()) : Ref<LossScaleManagerImpl>();
}

// ---- update cells

namespace nn {

FixedLossScaleUpdateCellImpl::FixedLossScaleUpdateCellImpl(double loss_scale_value) : scale_(loss_scale_value) {
  check_scale("FixedLossScaleUpdateCell", "loss_scale_value", loss_scale_value);
}

Value FixedLossScaleUpdateCellImpl::construct_values(const std::vector<Value>& args) {
  return UpdateArguments(cls_name(), args).overflow;
}

DynamicLossScaleUpdateCellImpl::DynamicLossScaleUpdateCellImpl(double loss_scale_value, double scale_factor,
                                                               std::int64_t scale_window)
    : scale_(loss_scale_value), factor_(scale_factor), window_(scale_window) {
  check_rule("DynamicLossScaleUpdateCell", "loss_scale_value", loss_scale_value, scale_factor, scale_window);
  step_ = param("cur_iter", Parameter(Tensor::scalar<std::int32_t>(1), "current_iterator_step", false));
  last_overflow_ =
      param("last_overflow_iter", Parameter(Tensor::scalar<std::int32_t>(0), "last_overflow_iterator_step", false));
}

Value DynamicLossScaleUpdateCellImpl::construct_values(const std::vector<Value>& args) {
  const auto [scale, overflow] = UpdateArguments(cls_name(), args);
  const Tensor due = ops::greater_equal(ops::sub(step_, last_overflow_), window_);
  const Tensor next = ops::select(overflow, shrunk(scale, factor_), ops::select(due, grown(scale, factor_), scale));
  ops::assign(scale, next);
  ops::assign(last_overflow_, ops::select(ops::logical_or(overflow, due), step_, last_overflow_));
  ops::assign(step_, ops::add(step_, 1));
  return overflow;
}

}  // namespace nn

// ---- scalers

namespace amp {

Tensor all_finite(const std::vector<Tensor>& tensors) {
  Tensor all;
  for (const Tensor& t : tensors) {
    if (!is_floating(t.dtype()) || t.size() == 0) continue;
    // NaN passes through the maximum, and is not less than anything.
    const Tensor finite = ops::less(ops::reduce_max(ops::abs(t)), std::numeric_limits<double>::infinity());
    all = all.defined() ? ops::logical_and(all, finite) : finite;
  }
  if (!all.defined()) return Tensor::scalar(true);
  runtime::Trace* trace = runtime::current_trace();
  if (trace && trace->mode() == runtime::Trace::Mode::kCompile) trace->mark_flag(all);
  return all;
}

std::vector<Tensor> unscaled(const std::vector<Tensor>& grads, const Tensor& scale, double factor) {
  const Tensor inverse = ops::div(factor, ops::reshape(scale, {}));
  std::vector<Tensor> out;
  for (const Tensor& g : grads)
    out.push_back(ops::mul(g.dtype() == DType::kFloat64 ? g : ops::cast(g, DType::kFloat32), inverse));
  return out;
}

LossScaler::LossScaler(const char* cls, double scale_value) {
  check_scale(cls, "scale_value", scale_value);
  scale_ = Parameter(f32_scalar(scale_value), "scale_value", false);
}

std::vector<Tensor> LossScaler::scale(const std::vector<Tensor>& inputs) const {
  std::vector<Tensor> out;
  for (const Tensor& t : inputs)
    out.push_back(ops::cast(ops::mul(ops::cast(t, compute_type(t.dtype())), scale_), t.dtype()));
  return out;
}

std::vector<Tensor> LossScaler::unscale(const std::vector<Tensor>& inputs) const {
  std::vector<Tensor> out = unscaled(inputs, scale_);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = ops::cast(out[i], inputs[i].dtype());
  return out;
}

DynamicLossScalerImpl::DynamicLossScalerImpl(double scale_value, double scale_factor, std::int64_t scale_window)
    : LossScaler("DynamicLossScaler", scale_value), factor_(scale_factor), window_(scale_window) {
  check_rule("DynamicLossScaler", "scale_value", scale_value, scale_factor, scale_window);
  counter_ = Parameter(Tensor::scalar<std::int32_t>(0), "counter", false);
}

bool DynamicLossScalerImpl::adjust(const Tensor& grads_finite) {
  UNDERTOW_CHECK(grads_finite.size() == 1, ShapeError,
                 "DynamicLossScaler.adjust: 'grads_finite' must have one element, got shape {}",
                 grads_finite.shape().str());
  const Tensor finite = ops::reshape(ops::cast(grads_finite, DType::kBool), {});
  const Tensor due = ops::equal(counter_, window_ - 1);
  const Parameter& scale = scale_value();
  const Tensor next = ops::select(finite, ops::select(due, grown(scale, factor_), scale), shrunk(scale, factor_));
  ops::assign(scale, next);
  ops::assign(counter_, ops::select(ops::logical_and(finite, ops::logical_not(due)), ops::add(counter_, 1), 0));
  return true;
}

}  // namespace amp
}  // namespace undertow
