// SPDX-License-Identifier: Apache-2.0
// train/optimizer.h: what all optimizers share, and SGD, Momentum and Adam. An update is written with ops and parameter
// writes, so it is part of the compiled step; every number that may change between steps (learning rate, decay, loss
// scale, powers) is state or an input. The other optimizers: optim_adaptive.h, optim_more.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "undertow/train/schedule.h"

namespace undertow::nn {

/// A learning rate or a weight decay: a number, a list with one value a step, or a cell that computes it from
/// global_step (int32 [1], counted from 0) inside the step.
class Rate {
 public:
  Rate(double value) : value_(value) {}
  Rate(float value) : value_(value) {}
  Rate(int value) : value_(value) {}
  Rate(std::vector<float> values) : values_(std::move(values)), is_list_(true) {}
  Rate(const std::vector<double>& values) : values_(values.begin(), values.end()), is_list_(true) {}
  Rate(Ref<Cell> schedule) : schedule_(std::move(schedule)) {}
  template <typename C>
  Rate(const Handle<C>& schedule) : schedule_(schedule.ref()) {}

  bool is_number() const { return !is_list_ && !schedule_; }
  bool is_list() const { return is_list_; }
  double value() const { return value_; }
  const std::vector<float>& values() const { return values_; }
  const Ref<Cell>& schedule() const { return schedule_; }

 private:
  double value_ = 0;
  std::vector<float> values_;
  Ref<Cell> schedule_;
  bool is_list_ = false;
};

/// Parameters that share options. What is not set is as for the whole optimizer.
struct ParamGroup {
  std::vector<Parameter> params;
  std::optional<Rate> lr, weight_decay;
  /// Takes the mean over all dimensions but the first off a gradient, where it has two or more and the second divides
  /// by 16 (MindSpore's rule).
  bool grad_centralization = false;
  /// In a group of its own, in place of all else: the order of the parameters of the other groups.
  std::vector<Parameter> order_params;
};

/// What an optimizer updates: a list of parameters, or groups.
class Params {
 public:
  Params() : groups_(1) {}  ///< nothing: an optimizer refuses it
  Params(std::vector<Parameter> params) : groups_(1) { groups_[0].params = std::move(params); }
  Params(std::initializer_list<Parameter> params) : Params(std::vector<Parameter>(params)) {}
  Params(std::vector<ParamGroup> groups) : groups_(std::move(groups)), grouped_(true) {}
  Params(std::initializer_list<ParamGroup> groups) : Params(std::vector<ParamGroup>(groups)) {}
  const std::vector<ParamGroup>& groups() const { return groups_; }
  bool grouped() const { return grouped_; }

 private:
  std::vector<ParamGroup> groups_;
  bool grouped_ = false;
};

/// Base. State: global_step (int32 [1]), the learning rates (float32 scalar or list: learning_rate, and
/// learning_rate_group_<i> where group i has its own), and the parameters themselves.
///
/// Called with the gradients, in the order of parameters(), it applies one update: within a trace as part of the step,
/// otherwise at once. A step does: decay (g += weight_decay * loss_scale * w), centralize, unscale (g /= loss_scale),
/// construct_update, global_step + 1.
class OptimizerCell : public Cell {
 public:
  /// Without groups, weight decay skips parameters whose names hold "beta" or "gamma".
  /// Throws ValueError for an empty list, equal names, an option out of range, lists of rates of different lengths, or
  /// order_params that are not the groups' parameters; RuntimeError for a parameter given twice.
  OptimizerCell(std::string cls, const Params& params, const Rate& learning_rate, const Rate& weight_decay = 0.0,
                double loss_scale = 1);

  /// The update rule: reads lr(i), writes parameters and state with ops::assign. `grads` are what prepare() gave.
  virtual void construct_update(const std::vector<Tensor>& grads);
  /// One whole step, through the cell's call (so that one written in Python runs its own `construct`).
  void update(const std::vector<Tensor>& grads);
  Value construct_values(const std::vector<Value>& args) override;

  // The parts of a step, for optimizers that are written by users.
  std::vector<Tensor> decay_weight(std::vector<Tensor> grads);
  std::vector<Tensor> centralize(std::vector<Tensor> grads) const;
  std::vector<Tensor> scale_grad(std::vector<Tensor> grads) const;
  /// The learning rate of this step for parameter i, a scalar.
  Tensor lr(std::size_t i);
  /// The weight decay of this step for parameter i, times loss_scale, a scalar; undefined where it does not decay.
  Tensor weight_decay(std::size_t i);

  const std::vector<Parameter>& parameters() const { return parameters_; }
  std::size_t position(const Parameter& parameter) const;  ///< throws ValueError for a parameter of another
  Parameter global_step_param() const { return global_step_; }
  std::int64_t global_step() const { return global_step_.item_as_int(); }
  /// The rate that the next step will use; with groups, the first parameter's.
  double get_lr();
  /// Throws ValueError below 0, and where the rate is a list or a schedule or there are several.
  void set_lr(double value);
  /// The state of a single fixed rate; undefined otherwise.
  Parameter learning_rate() const;
  /// A fixed rate of parameter i (undefined where it is dynamic), or its schedule (null where it is fixed).
  Parameter rate_param(std::size_t i) const { return rates_[rate_of_[i]].fixed; }
  Ref<Cell> rate_schedule(std::size_t i) const { return rates_[rate_of_[i]].schedule; }
  Ref<Cell> decay_schedule(std::size_t i) const { return decays_[decay_of_[i]].schedule; }
  double decay_value(std::size_t i) const { return decays_[decay_of_[i]].value; }
  bool decays(std::size_t i) const { return decayed_[i]; }
  bool centralizes(std::size_t i) const { return centralized_[i]; }
  bool grouped() const { return grouped_; }
  bool grouped_lr() const { return grouped_lr_; }
  bool ordered() const { return ordered_; }
  bool dynamic_lr() const { return dynamic_lr_; }
  double loss_scale() const { return loss_scale_; }

  /// Steps that the lists of rates still have; -1 where there is none.
  std::int64_t steps_left() const;
  /// Length of the lists of rates, or -1.
  std::int64_t listed_steps() const { return listed_steps_; }
  /// For step records: writes the rate of this step where it is dynamic. Part of the step, before the update.
  void record_lr();
  /// Holds the rate of the last step.
  Parameter recorded_lr() const { return recorded_; }
  std::string cls_name() const override { return cls_; }

 protected:
  /// What construct_update gets: decay, centralize, unscale. Others override.
  virtual std::vector<Tensor> prepare(std::vector<Tensor> grads);
  /// State of every parameter's shape, named "<prefix>.<parameter>", with every element `value`.
  std::vector<Parameter> slots(const std::string& prefix, double value = 0);
  /// A float32 state, a scalar unless told.
  Parameter scalar_state(const std::string& name, double value, const Shape& shape = {});
  bool names(const Parameter& parameter) const override;
  /// In front of another optimizer: has its parameters, rates, steps and loss scale, and takes its weight decay and
  /// unscaling over.
  OptimizerCell(std::string cls, OptimizerCell& inner);
  /// Whether global_step grows by a call; not where an inner optimizer counts.
  virtual bool counts_steps() const { return true; }
  /// Weight decay goes for parameters of all names.
  void decay_all();
  void check(bool ok, const char* argument, const char* must, double value) const;

 private:
  class Step;
  struct RateState {
    Parameter fixed;
    Ref<Cell> schedule;
    Tensor of_step;
  };
  struct DecayState {
    double value = 0;
    Tensor scaled;  // times loss_scale; undefined for 0
    Ref<Cell> schedule;
    Tensor of_step;
  };
  void collect(const Params& params, const Rate& learning_rate, const Rate& weight_decay);
  void order(const std::vector<Parameter>& wanted);
  void check_parameters();
  void check_gradients(const std::vector<Tensor>& grads) const;
  std::size_t add_rate(const Rate& rate, const std::string& name);
  std::size_t add_decay(const Rate& rate);
  void register_rates(const std::vector<std::string>& rate_names);
  Tensor evaluate(const Ref<Cell>& schedule);

  std::string cls_;
  std::vector<Parameter> parameters_;
  std::vector<RateState> rates_;
  std::vector<DecayState> decays_;
  std::vector<std::size_t> rate_of_, decay_of_;  // by parameter
  std::vector<bool> decayed_, centralized_;
  bool grouped_ = false, grouped_lr_ = false, ordered_ = false, dynamic_lr_ = false;
  bool in_step_ = false;
  double loss_scale_;
  Tensor loss_scale_tensor_;  // undefined for 1
  std::int64_t listed_steps_ = -1;
  Parameter global_step_, recorded_;
};

/// Handle with what every optimizer offers.
template <typename C>
class OptimizerHandle : public Handle<C> {
 public:
  using Handle<C>::Handle;
  std::int64_t global_step() const { return this->ref()->global_step(); }
  Parameter learning_rate() const { return this->ref()->learning_rate(); }
  double get_lr() const { return this->ref()->get_lr(); }
  void set_lr(double value) const { this->ref()->set_lr(value); }
  const std::vector<Parameter>& parameters() const { return this->ref()->parameters(); }
};

/// The handle of an optimizer whose cell is made from parameters and options.
template <typename C, typename Options>
class OptimizerOf : public OptimizerHandle<C> {
 public:
  explicit OptimizerOf(const Params& params, const Options& options = {})
      : OptimizerHandle<C>(make_ref<C>(params, options)) {}
};

// ---- SGD: v = momentum v + (1 - dampening) g (first step: g); w -= lr v, or lr (g + momentum v) with nesterov.
struct SGDOptions {
  Rate learning_rate = 0.1;
  double momentum = 0, dampening = 0;
  Rate weight_decay = 0.0;
  bool nesterov = false;
  double loss_scale = 1;
};
/// State: momentum, accum.<p>, stat.<p>.
class SGDCell : public OptimizerCell {
 public:
  explicit SGDCell(const Params& params, const SGDOptions& options = {});
  void construct_update(const std::vector<Tensor>& grads) override;

 private:
  SGDOptions options_;
  std::vector<Parameter> accum_, stat_;
};
using SGD = OptimizerOf<SGDCell, SGDOptions>;

// ---- Momentum: v = momentum v + g; w -= lr v, or lr (g + momentum v) with use_nesterov.
struct MomentumOptions {
  Rate weight_decay = 0.0;
  double loss_scale = 1;
  bool use_nesterov = false;
};
/// State: momentum, moments.<p>.
class MomentumCell : public OptimizerCell {
 public:
  MomentumCell(const Params& params, const Rate& learning_rate, double momentum, const MomentumOptions& options = {});
  void construct_update(const std::vector<Tensor>& grads) override;

 private:
  bool nesterov_;
  std::vector<Parameter> moments_;
};
class Momentum : public OptimizerHandle<MomentumCell> {
 public:
  Momentum(const Params& params, const Rate& learning_rate, double momentum, const MomentumOptions& options = {})
      : OptimizerHandle(make_ref<MomentumCell>(params, learning_rate, momentum, options)) {}
};

// ---- Adam (Kingma, Ba, 2015), eps outside of the bias correction:
//      m = b1 m + (1 - b1) g; v = b2 v + (1 - b2) g^2; w -= lr sqrt(1 - b2^t) / (1 - b1^t) * m / (sqrt(v) + eps).
struct AdamOptions {
  Rate learning_rate = 1e-3;
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  bool use_locking = false;   ///< accepted, of no effect: updates never race
  bool use_nesterov = false;  ///< b1 m + (1 - b1) g in place of m
  Rate weight_decay = 0.0;
  double loss_scale = 1;
  bool use_amsgrad = false;  ///< the largest v so far in place of v
};
/// State: beta1_power, beta2_power, moment1.<p>, moment2.<p>, and vhat.<p> with use_amsgrad. `cls` is also LazyAdam or
/// AdamOffload, which are the same for dense gradients but keep their powers as [1].
class AdamCell : public OptimizerCell {
 public:
  explicit AdamCell(const Params& params, const AdamOptions& options = {}, const std::string& cls = "Adam");
  void construct_update(const std::vector<Tensor>& grads) override;

 private:
  AdamOptions options_;
  Parameter beta1_power_, beta2_power_;
  std::vector<Parameter> moment1_, moment2_, vhat_;
};
using Adam = OptimizerOf<AdamCell, AdamOptions>;

}  // namespace undertow::nn
