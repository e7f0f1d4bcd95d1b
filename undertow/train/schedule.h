// SPDX-License-Identifier: Apache-2.0
// train/schedule.h: learning rates that change from step to step, as cells (evaluated inside the step from
// global_step) and as lists (one value a step).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "undertow/train/cell.h"

namespace undertow::nn {

/// Base of schedules: `construct(global_step)` gives the rate of that step, with the shape of global_step (an optimizer
/// passes int32 [1], counted from 0). Derive from it and override construct for a schedule of one's own.
class LearningRateScheduleCell : public Cell {
 public:
  std::string cls_name() const override { return "LearningRateSchedule"; }
};

/// A list of rates, one a step, as a schedule. State: learning_rate (float32 [steps]). A step past the end is an
/// IndexError; Model.train refuses a run that would get there before it starts.
class IteratorLRCell : public LearningRateScheduleCell {
 public:
  /// `name` is the state's. Throws ValueError for no values or one below 0.
  explicit IteratorLRCell(const std::vector<float>& values, const std::string& name = "learning_rate");
  Tensor construct(const Tensor& global_step) override;
  std::int64_t steps() const { return values_.size(); }
  std::string cls_name() const override;

 private:
  Parameter values_;
};

/// A fixed rate as a schedule: what other groups are where one group's rate is dynamic. State: learning_rate (scalar).
class ConstantLRCell : public LearningRateScheduleCell {
 public:
  explicit ConstantLRCell(const Parameter& rate);
  Tensor construct(const Tensor& global_step) override;
  std::string cls_name() const override { return "ConstantLR"; }

 private:
  Parameter rate_;
};

/// What the three classic decays have in common; decay_steps and the rates are greater than 0.
struct DecayOptions {
  double learning_rate = 0, decay_rate = 0;
  std::int64_t decay_steps = 1;
  bool is_stair = false;  ///< the exponent changes every decay_steps steps only
};
/// learning_rate * decay_rate^(step / decay_steps)
class ExponentialDecayLRCell : public LearningRateScheduleCell {
 public:
  explicit ExponentialDecayLRCell(const DecayOptions& o);
  Tensor construct(const Tensor& global_step) override;
  std::string cls_name() const override { return "ExponentialDecayLR"; }

 private:
  DecayOptions o_;
};
/// learning_rate * e^(-decay_rate * step); decay_steps counts with is_stair only.
class NaturalExpDecayLRCell : public LearningRateScheduleCell {
 public:
  explicit NaturalExpDecayLRCell(const DecayOptions& o);
  Tensor construct(const Tensor& global_step) override;
  std::string cls_name() const override { return "NaturalExpDecayLR"; }

 private:
  DecayOptions o_;
};
/// learning_rate / (1 + decay_rate * step / decay_steps)
class InverseDecayLRCell : public LearningRateScheduleCell {
 public:
  explicit InverseDecayLRCell(const DecayOptions& o);
  Tensor construct(const Tensor& global_step) override;
  std::string cls_name() const override { return "InverseDecayLR"; }

 private:
  DecayOptions o_;
};
/// min_lr + (max_lr - min_lr) / 2 * (1 + cos(pi * min(step, decay_steps) / decay_steps))
class CosineDecayLRCell : public LearningRateScheduleCell {
 public:
  CosineDecayLRCell(double min_lr, double max_lr, std::int64_t decay_steps);
  Tensor construct(const Tensor& global_step) override;
  std::string cls_name() const override { return "CosineDecayLR"; }

 private:
  double min_lr_, max_lr_;
  std::int64_t decay_steps_;
};
/// (learning_rate - end) * (1 - min(step, d) / d)^power + end, where d is decay_steps; with update_decay_steps, d is
/// decay_steps * max(ceil(step / decay_steps), 1), and the rate starts anew.
class PolynomialDecayLRCell : public LearningRateScheduleCell {
 public:
  PolynomialDecayLRCell(double learning_rate, double end_learning_rate, std::int64_t decay_steps, double power,
                        bool update_decay_steps = false);
  Tensor construct(const Tensor& global_step) override;
  std::string cls_name() const override { return "PolynomialDecayLR"; }

 private:
  double learning_rate_, end_, power_;
  std::int64_t decay_steps_;
  bool update_;
};
/// learning_rate * min(step, warmup_steps) / warmup_steps
class WarmUpLRCell : public LearningRateScheduleCell {
 public:
  WarmUpLRCell(double learning_rate, std::int64_t warmup_steps);
  Tensor construct(const Tensor& global_step) override;
  std::string cls_name() const override { return "WarmUpLR"; }

 private:
  double learning_rate_;
  std::int64_t warmup_steps_;
};

/// Handle: nn::CosineDecayLR(0.01, 0.1, 1000), to be given as a learning rate.
template <typename C>
class ScheduleHandle : public Handle<C> {
 public:
  template <typename... A>
  explicit ScheduleHandle(A&&... args) : Handle<C>(make_ref<C>(std::forward<A>(args)...)) {}
};
using ExponentialDecayLR = ScheduleHandle<ExponentialDecayLRCell>;
using NaturalExpDecayLR = ScheduleHandle<NaturalExpDecayLRCell>;
using InverseDecayLR = ScheduleHandle<InverseDecayLRCell>;
using CosineDecayLR = ScheduleHandle<CosineDecayLRCell>;
using PolynomialDecayLR = ScheduleHandle<PolynomialDecayLRCell>;
using WarmUpLR = ScheduleHandle<WarmUpLRCell>;

// ---- Lists of total_step rates, which change once an epoch of step_per_epoch steps. Arguments that must be positive
// are checked (ValueError).
struct EpochDecay {
  double learning_rate = 0, decay_rate = 0;
  std::int64_t total_step = 0, step_per_epoch = 0, decay_epoch = 0;
  bool is_stair = false;
};
/// Rate learning_rates[i] up to step milestone[i]; as many values as the last milestone says.
std::vector<double> piecewise_constant_lr(const std::vector<std::int64_t>& milestone,
                                          const std::vector<double>& learning_rates);
std::vector<double> exponential_decay_lr(const EpochDecay& d);
std::vector<double> natural_exp_decay_lr(const EpochDecay& d);
std::vector<double> inverse_decay_lr(const EpochDecay& d);
std::vector<double> cosine_decay_lr(double min_lr, double max_lr, std::int64_t total_step, std::int64_t step_per_epoch,
                                    std::int64_t decay_epoch);
std::vector<double> polynomial_decay_lr(double learning_rate, double end_learning_rate, std::int64_t total_step,
                                        std::int64_t step_per_epoch, std::int64_t decay_epoch, double power,
                                        bool update_decay_epoch = false);
std::vector<double> warmup_lr(double learning_rate, std::int64_t total_step, std::int64_t step_per_epoch,
                              std::int64_t warmup_epoch);

}  // namespace undertow::nn
