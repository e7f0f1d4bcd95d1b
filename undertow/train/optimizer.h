// SPDX-License-Identifier: Apache-2.0
// train/optimizer.h: optimizers. Their update is written with ops and parameter writes, so it is part of the compiled
// step; every number that may change between steps (learning rate, decay, loss scale, powers) is state or an input.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "undertow/train/cell.h"

namespace undertow::nn {

/// Common to all optimizers.
struct OptimizerOptions {
  double learning_rate = 0;
  double weight_decay = 0;  ///< L2, added to the gradient; skips parameters named *beta* or *gamma*
  double loss_scale = 1;    ///< gradients are divided by it
};

/// Base. State: global_step (int32 [1]), learning_rate (float32 scalar).
///
/// Called with the gradients, in the order of parameters(), it applies one update: within a trace as part of the step,
/// otherwise at once.
class OptimizerCell : public Cell {
 public:
  /// Throws ValueError for an empty list, equal names, or an option out of range; RuntimeError for a parameter given
  /// twice.
  OptimizerCell(const std::string& cls, std::vector<Parameter> parameters, const OptimizerOptions& options);

  /// The update rule: reads lr(), writes parameters and state with ops::assign. `grads` are decayed and unscaled.
  virtual void construct_update(const std::vector<Tensor>& grads) = 0;
  /// One whole step: decay, unscale, construct_update, global_step + 1.
  void update(const std::vector<Tensor>& grads);
  Value construct_values(const std::vector<Value>& args) override;

  const std::vector<Parameter>& parameters() const { return parameters_; }
  Parameter learning_rate() const { return get_param("learning_rate"); }
  Parameter global_step_param() const { return get_param("global_step"); }
  std::int64_t global_step() const { return global_step_param().item_as_int(); }
  double get_lr() const { return learning_rate().item_as_double(); }
  /// Throws ValueError below 0.
  void set_lr(double value);
  std::string cls_name() const override { return cls_; }

 protected:
  /// The learning rate of this step, a scalar.
  Tensor lr() const { return learning_rate(); }
  /// State of every parameter's shape, named "<prefix>.<parameter>", with every element `value`.
  std::vector<Parameter> slots(const std::string& prefix, double value = 0);
  /// A float32 scalar state.
  Parameter scalar_state(const std::string& name, double value);
  /// Decay by the optimizer's own rule (SGD decays every parameter).
  bool decay_all_ = false;

 private:
  std::string cls_;
  std::vector<Parameter> parameters_;
  std::vector<bool> decayed_;
  Tensor weight_decay_, loss_scale_, decay_times_scale_;  // scalars; undefined where they change nothing
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

// ---- SGD: v = momentum v + (1 - dampening) g (first step: g); w -= lr v, or lr (g + momentum v) with nesterov.
struct SGDOptions {
  double learning_rate = 0.1;
  double momentum = 0, dampening = 0, weight_decay = 0;
  bool nesterov = false;
  double loss_scale = 1;
};
/// State: momentum, accum.<p>, stat.<p>. Weight decay is applied to every parameter.
class SGDCell : public OptimizerCell {
 public:
  explicit SGDCell(std::vector<Parameter> params, const SGDOptions& options = {});
  void construct_update(const std::vector<Tensor>& grads) override;

 private:
  SGDOptions options_;
  std::vector<Parameter> accum_, stat_;
};
class SGD : public OptimizerHandle<SGDCell> {
 public:
  explicit SGD(std::vector<Parameter> params, const SGDOptions& options = {})
      : OptimizerHandle(make_ref<SGDCell>(std::move(params), options)) {}
};

// ---- Momentum: v = momentum v + g; w -= lr v, or lr (g + momentum v) with use_nesterov.
struct MomentumOptions {
  double weight_decay = 0, loss_scale = 1;
  bool use_nesterov = false;
};
/// State: momentum, moments.<p>.
class MomentumCell : public OptimizerCell {
 public:
  MomentumCell(std::vector<Parameter> params, double learning_rate, double momentum,
               const MomentumOptions& options = {});
  void construct_update(const std::vector<Tensor>& grads) override;

 private:
  bool nesterov_;
  std::vector<Parameter> moments_;
};
class Momentum : public OptimizerHandle<MomentumCell> {
 public:
  Momentum(std::vector<Parameter> params, double learning_rate, double momentum, const MomentumOptions& options = {})
      : OptimizerHandle(make_ref<MomentumCell>(std::move(params), learning_rate, momentum, options)) {}
};

// ---- Adam (Kingma, Ba, 2015), eps outside of the bias correction:
//      m = b1 m + (1 - b1) g; v = b2 v + (1 - b2) g^2; w -= lr sqrt(1 - b2^t) / (1 - b1^t) * m / (sqrt(v) + eps).
struct AdamOptions {
  double learning_rate = 1e-3;
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  bool use_locking = false;   ///< accepted, of no effect: updates never race
  bool use_nesterov = false;  ///< b1 m + (1 - b1) g in place of m
  double weight_decay = 0, loss_scale = 1;
  bool use_amsgrad = false;  ///< the largest v so far in place of v
};
/// State: beta1_power, beta2_power, moment1.<p>, moment2.<p>, and vhat.<p> with use_amsgrad.
class AdamCell : public OptimizerCell {
 public:
  explicit AdamCell(std::vector<Parameter> params, const AdamOptions& options = {});
  void construct_update(const std::vector<Tensor>& grads) override;

 private:
  AdamOptions options_;
  Parameter beta1_power_, beta2_power_;
  std::vector<Parameter> moment1_, moment2_, vhat_;
};
class Adam : public OptimizerHandle<AdamCell> {
 public:
  explicit Adam(std::vector<Parameter> params, const AdamOptions& options = {})
      : OptimizerHandle(make_ref<AdamCell>(std::move(params), options)) {}
};

}  // namespace undertow::nn
