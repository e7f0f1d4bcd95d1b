// SPDX-License-Identifier: Apache-2.0
#include "undertow/train/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "undertow/base/check.h"
#include "undertow/ops/ops.h"

namespace undertow::nn {
namespace {

template <typename T>
void require_positive(const char* function, const char* argument, T value) {
  UNDERTOW_CHECK(value > 0 && std::isfinite(static_cast<double>(value)), ValueError,
                 "{}: '{}' must be greater than 0 but is {}", function, argument, value);
}
void require_non_negative(const char* function, const char* argument, double value) {
  UNDERTOW_CHECK(value >= 0 && std::isfinite(value), ValueError, "{}: '{}' must be at least 0 but is {}", function,
                 argument, value);
}
void require_order(const char* function, double min_lr, double max_lr) {
  UNDERTOW_CHECK(min_lr < max_lr, ValueError, "{}: 'max_lr' must be greater than 'min_lr', but they are {} and {}",
                 function, max_lr, min_lr);
}

DecayOptions checked(const char* cls, const DecayOptions& o) {
  require_positive(cls, "learning_rate", o.learning_rate);
  require_positive(cls, "decay_rate", o.decay_rate);
  require_positive(cls, "decay_steps", o.decay_steps);
  return o;
}

Tensor as_float(const Tensor& step) { return ops::cast(step, DType::kFloat32); }

/// step / decay_steps, whole where the rate changes in stairs.
Tensor progress(const Tensor& step, const DecayOptions& o) {
  const Tensor p = ops::div(as_float(step), static_cast<double>(o.decay_steps));
  return o.is_stair ? ops::floor(p) : p;
}

/// min(step, most) / most
Tensor share(const Tensor& step, std::int64_t most) {
  const double n = static_cast<double>(most);
  return ops::div(ops::minimum(as_float(step), n), n);
}

}  // namespace

IteratorLRCell::IteratorLRCell(const std::vector<float>& values, const std::string& name) {
  UNDERTOW_CHECK(!values.empty(), ValueError, "learning_rate: the list of rates is empty");
  for (std::size_t i = 0; i < values.size(); ++i)
    UNDERTOW_CHECK(values[i] >= 0 && std::isfinite(values[i]), ValueError,
                   "learning_rate: the rate of step {} must be at least 0 but is {}", i, values[i]);
  values_ = param("learning_rate", Parameter(Tensor(values), name, false));
}

std::string IteratorLRCell::cls_name() const { return fmt::format("learning_rate (a list of {} steps)", steps()); }

Tensor IteratorLRCell::construct(const Tensor& global_step) { return ops::gather(values_, global_step, 0); }

ConstantLRCell::ConstantLRCell(const Parameter& rate) : rate_(param("learning_rate", rate)) {}
Tensor ConstantLRCell::construct(const Tensor& global_step) { return ops::broadcast_to(rate_, global_step.shape()); }

ExponentialDecayLRCell::ExponentialDecayLRCell(const DecayOptions& o) : o_(checked("ExponentialDecayLR", o)) {}
Tensor ExponentialDecayLRCell::construct(const Tensor& step) {
  return ops::mul(ops::pow(o_.decay_rate, progress(step, o_)), o_.learning_rate);
}

NaturalExpDecayLRCell::NaturalExpDecayLRCell(const DecayOptions& o) : o_(checked("NaturalExpDecayLR", o)) {}
Tensor NaturalExpDecayLRCell::construct(const Tensor& step) {
  Tensor p = as_float(step);
  const double n = static_cast<double>(o_.decay_steps);
  if (o_.is_stair) p = ops::mul(ops::floor(ops::div(p, n)), n);
  return ops::mul(ops::exp(ops::mul(p, -o_.decay_rate)), o_.learning_rate);
}

InverseDecayLRCell::InverseDecayLRCell(const DecayOptions& o) : o_(checked("InverseDecayLR", o)) {}
Tensor InverseDecayLRCell::construct(const Tensor& step) {
  return ops::div(o_.learning_rate, ops::add(ops::mul(progress(step, o_), o_.decay_rate), 1.0));
}

CosineDecayLRCell::CosineDecayLRCell(double min_lr, double max_lr, std::int64_t decay_steps)
    : min_lr_(min_lr), max_lr_(max_lr), decay_steps_(decay_steps) {
  require_non_negative("CosineDecayLR", "min_lr", min_lr);
  require_positive("CosineDecayLR", "max_lr", max_lr);
  require_positive("CosineDecayLR", "decay_steps", decay_steps);
  require_order("CosineDecayLR", min_lr, max_lr);
}
Tensor CosineDecayLRCell::construct(const Tensor& step) {
  const Tensor cosine = ops::cos(ops::mul(share(step, decay_steps_), std::numbers::pi));
  return ops::add(ops::mul(ops::add(cosine, 1.0), 0.5 * (max_lr_ - min_lr_)), min_lr_);
}

PolynomialDecayLRCell::PolynomialDecayLRCell(double learning_rate, double end_learning_rate, std::int64_t decay_steps,
                                             double power, bool update_decay_steps)
    : learning_rate_(learning_rate),
      end_(end_learning_rate),
      power_(power),
      decay_steps_(decay_steps),
      update_(update_decay_steps) {
  require_positive("PolynomialDecayLR", "learning_rate", learning_rate);
  require_non_negative("PolynomialDecayLR", "end_learning_rate", end_learning_rate);
  require_positive("PolynomialDecayLR", "decay_steps", decay_steps);
  require_positive("PolynomialDecayLR", "power", power);
}
Tensor PolynomialDecayLRCell::construct(const Tensor& step) {
  Tensor p;
  if (update_) {
    const double n = static_cast<double>(decay_steps_);
    const Tensor s = as_float(step), rounds = ops::maximum(ops::ceil(ops::div(s, n)), 1.0);
    p = ops::div(s, ops::mul(rounds, n));
  } else {
    p = share(step, decay_steps_);
  }
  return ops::add(ops::mul(ops::pow(ops::sub(1.0, p), power_), learning_rate_ - end_), end_);
}

WarmUpLRCell::WarmUpLRCell(double learning_rate, std::int64_t warmup_steps)
    : learning_rate_(learning_rate), warmup_steps_(warmup_steps) {
  require_non_negative("WarmUpLR", "learning_rate", learning_rate);
  require_positive("WarmUpLR", "warmup_steps", warmup_steps);
}
Tensor WarmUpLRCell::construct(const Tensor& step) { return ops::mul(share(step, warmup_steps_), learning_rate_); }

// ---- Lists

namespace {

/// total_step values of `rate(epoch)`.
template <typename F>
std::vector<double> by_epoch(const char* function, std::int64_t total_step, std::int64_t step_per_epoch, F rate) {
  require_positive(function, "total_step", total_step);
  require_positive(function, "step_per_epoch", step_per_epoch);
  std::vector<double> lr;
  lr.reserve(static_cast<std::size_t>(total_step));
  for (std::int64_t i = 0; i < total_step; ++i) lr.push_back(rate(static_cast<double>(i / step_per_epoch)));
  return lr;
}

double checked_epochs(const char* function, const EpochDecay& d) {
  require_positive(function, "learning_rate", d.learning_rate);
  require_positive(function, "decay_rate", d.decay_rate);
  require_positive(function, "decay_epoch", d.decay_epoch);
  return static_cast<double>(d.decay_epoch);
}

}  // namespace

std::vector<double> piecewise_constant_lr(const std::vector<std::int64_t>& milestone,
                                          const std::vector<double>& learning_rates) {
  UNDERTOW_CHECK(milestone.size() == learning_rates.size(), ValueError,
                 "piecewise_constant_lr: 'milestone' has {} values and 'learning_rates' {}; they must have as many",
                 milestone.size(), learning_rates.size());
  std::vector<double> lr;
  for (std::size_t i = 0; i < milestone.size(); ++i) {
    require_positive("piecewise_constant_lr", "milestone", milestone[i]);
    UNDERTOW_CHECK(milestone[i] >= static_cast<std::int64_t>(lr.size()), ValueError,
                   "piecewise_constant_lr: 'milestone' must grow, but milestone[{}] is {} after {}", i, milestone[i],
                   lr.size());
    lr.resize(static_cast<std::size_t>(milestone[i]), learning_rates[i]);
  }
  return lr;
}

std::vector<double> exponential_decay_lr(const EpochDecay& d) {
  const double n = checked_epochs("exponential_decay_lr", d);
  return by_epoch("exponential_decay_lr", d.total_step, d.step_per_epoch, [&](double epoch) {
    return d.learning_rate * std::pow(d.decay_rate, d.is_stair ? std::floor(epoch / n) : epoch / n);
  });
}

std::vector<double> natural_exp_decay_lr(const EpochDecay& d) {
  const double n = checked_epochs("natural_exp_decay_lr", d);
  return by_epoch("natural_exp_decay_lr", d.total_step, d.step_per_epoch, [&](double epoch) {
    return d.learning_rate * std::exp(-d.decay_rate * (d.is_stair ? std::floor(epoch / n) * n : epoch));
  });
}

std::vector<double> inverse_decay_lr(const EpochDecay& d) {
  const double n = checked_epochs("inverse_decay_lr", d);
  return by_epoch("inverse_decay_lr", d.total_step, d.step_per_epoch, [&](double epoch) {
    return d.learning_rate / (1 + d.decay_rate * (d.is_stair ? std::floor(epoch / n) : epoch / n));
  });
}

std::vector<double> cosine_decay_lr(double min_lr, double max_lr, std::int64_t total_step, std::int64_t step_per_epoch,
                                    std::int64_t decay_epoch) {
  require_non_negative("cosine_decay_lr", "min_lr", min_lr);
  require_positive("cosine_decay_lr", "max_lr", max_lr);
  require_positive("cosine_decay_lr", "decay_epoch", decay_epoch);
  require_order("cosine_decay_lr", min_lr, max_lr);
  const double n = static_cast<double>(decay_epoch);
  return by_epoch("cosine_decay_lr", total_step, step_per_epoch, [&](double epoch) {
    return min_lr + 0.5 * (max_lr - min_lr) * (1 + std::cos(std::numbers::pi * std::min(epoch, n) / n));
  });
}

std::vector<double> polynomial_decay_lr(double learning_rate, double end_learning_rate, std::int64_t total_step,
                                        std::int64_t step_per_epoch, std::int64_t decay_epoch, double power,
                                        bool update_decay_epoch) {
  require_positive("polynomial_decay_lr", "learning_rate", learning_rate);
  require_non_negative("polynomial_decay_lr", "end_learning_rate", end_learning_rate);
  require_positive("polynomial_decay_lr", "decay_epoch", decay_epoch);
  require_positive("polynomial_decay_lr", "power", power);
  const double n = static_cast<double>(decay_epoch);
  return by_epoch("polynomial_decay_lr", total_step, step_per_epoch, [&](double epoch) {
    const double p = update_decay_epoch ? epoch / (n * std::max(std::ceil(epoch / n), 1.0)) : std::min(epoch, n) / n;
    return (learning_rate - end_learning_rate) * std::pow(1 - p, power) + end_learning_rate;
  });
}

std::vector<double> warmup_lr(double learning_rate, std::int64_t total_step, std::int64_t step_per_epoch,
                              std::int64_t warmup_epoch) {
  require_non_negative("warmup_lr", "learning_rate", learning_rate);
  require_positive("warmup_lr", "warmup_epoch", warmup_epoch);
  const double n = static_cast<double>(warmup_epoch);
  return by_epoch("warmup_lr", total_step, step_per_epoch,
                  [&](double epoch) { return learning_rate * std::min(epoch, n) / n; });
}

}  // namespace undertow::nn
