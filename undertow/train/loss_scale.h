// SPDX-License-Identifier: Apache-2.0
// train/loss_scale.h: loss scaling: small gradients of half types are kept from vanishing by a factor on the loss, and
// a step whose gradients are not finite is skipped. All of it is part of the compiled step.
//
//   Model model(net, loss, opt, {.loss_scale_manager = DynamicLossScaleManager()});
//
// Training loops of one's own use amp::DynamicLossScaler (see train/functional.h) or the cells.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "undertow/train/cell.h"

namespace undertow {

/// How Model scales the loss. Its numbers are host values: a Model starts from them and keeps a state of its own, which
/// its train_network holds (scale_sense).
class LossScaleManagerImpl : public RefCounted {
 public:
  /// The scale to start with; after update_loss_scale the next one.
  virtual double get_loss_scale() const = 0;
  /// The rule on the host, for loops that look at every step.
  virtual void update_loss_scale(bool overflow) = 0;
  /// A new cell that is called in every step with (scale_sense, overflow), may assign the scale, and gives whether the
  /// step is skipped; null: no step is skipped.
  virtual Ref<nn::Cell> get_update_cell() const = 0;
};

/// One scale for the whole run. With `drop_overflow_update` a step whose gradients are not finite is skipped.
class FixedLossScaleManagerImpl : public LossScaleManagerImpl {
 public:
  /// Throws ValueError unless the scale is finite and at least 1.
  explicit FixedLossScaleManagerImpl(double loss_scale = 128, bool drop_overflow_update = true);
  double get_loss_scale() const override { return scale_; }
  void update_loss_scale(bool) override {}
  Ref<nn::Cell> get_update_cell() const override;
  bool get_drop_overflow_update() const { return drop_; }

 private:
  double scale_;
  bool drop_;
};

/// An overflow divides the scale by `scale_factor`, down to 1; `scale_window` steps without one multiply it.
class DynamicLossScaleManagerImpl : public LossScaleManagerImpl {
 public:
  /// Throws ValueError unless the scale is finite and at least 1, the factor finite and above 1, the window at least 1.
  explicit DynamicLossScaleManagerImpl(double init_loss_scale = 16777216, double scale_factor = 2,
                                       std::int64_t scale_window = 2000);
  double get_loss_scale() const override { return scale_; }
  /// Throws RuntimeError after more than 1000 overflows in a row.
  void update_loss_scale(bool overflow) override;
  Ref<nn::Cell> get_update_cell() const override;

 private:
  double init_, scale_, factor_;
  std::int64_t window_, step_ = 1, last_overflow_ = 0, overflows_ = 0;
};

/// What a level of mixed precision trains with where nothing else is said: a DynamicLossScaleManager at O2, else none.
Ref<LossScaleManagerImpl> default_loss_scale_manager(std::string_view amp_level);

class FixedLossScaleManager : public nn::Handle<FixedLossScaleManagerImpl> {
 public:
  explicit FixedLossScaleManager(double loss_scale = 128, bool drop_overflow_update = true)
      : Handle(make_ref<FixedLossScaleManagerImpl>(loss_scale, drop_overflow_update)) {}
};
class DynamicLossScaleManager : public nn::Handle<DynamicLossScaleManagerImpl> {
 public:
  explicit DynamicLossScaleManager(double init_loss_scale = 16777216, double scale_factor = 2,
                                   std::int64_t scale_window = 2000)
      : Handle(make_ref<DynamicLossScaleManagerImpl>(init_loss_scale, scale_factor, scale_window)) {}
};

namespace nn {

/// Called with (loss_scale: float32 Parameter, overflow: bool scalar); gives overflow.
class FixedLossScaleUpdateCellImpl : public Cell {
 public:
  /// Throws ValueError unless the scale is finite and at least 1.
  explicit FixedLossScaleUpdateCellImpl(double loss_scale_value);
  double get_loss_scale() const { return scale_; }
  Value construct_values(const std::vector<Value>& args) override;
  std::string cls_name() const override { return "FixedLossScaleUpdateCell"; }

 private:
  double scale_;
};

/// The same; assigns the next scale. State: current_iterator_step (int32 scalar, from 1), last_overflow_iterator_step.
/// The scale goes from 1 to 2^126, so that its reciprocal is a normal number.
class DynamicLossScaleUpdateCellImpl : public Cell {
 public:
  /// Throws ValueError as DynamicLossScaleManager does.
  DynamicLossScaleUpdateCellImpl(double loss_scale_value, double scale_factor, std::int64_t scale_window);
  double get_loss_scale() const { return scale_; }
  Value construct_values(const std::vector<Value>& args) override;
  std::string cls_name() const override { return "DynamicLossScaleUpdateCell"; }

 private:
  double scale_, factor_;
  std::int64_t window_;
  Parameter step_, last_overflow_;
};

class FixedLossScaleUpdateCell : public Handle<FixedLossScaleUpdateCellImpl> {
 public:
  explicit FixedLossScaleUpdateCell(double loss_scale_value)
      : Handle(make_ref<FixedLossScaleUpdateCellImpl>(loss_scale_value)) {}
};
class DynamicLossScaleUpdateCell : public Handle<DynamicLossScaleUpdateCellImpl> {
 public:
  DynamicLossScaleUpdateCell(double loss_scale_value, double scale_factor, std::int64_t scale_window)
      : Handle(make_ref<DynamicLossScaleUpdateCellImpl>(loss_scale_value, scale_factor, scale_window)) {}
};

}  // namespace nn

namespace amp {

/// Whether every element of every tensor is finite: a bool scalar. Code that is traced may branch on it.
Tensor all_finite(const std::vector<Tensor>& tensors);

/// grads[i] * factor / scale, computed in float32 (float64 for such) and so returned.
std::vector<Tensor> unscaled(const std::vector<Tensor>& grads, const Tensor& scale, double factor = 1);

/// Scales a loss and unscales gradients. Dtypes are kept.
class LossScaler : public RefCounted {
 public:
  virtual std::vector<Tensor> scale(const std::vector<Tensor>& inputs) const;
  virtual std::vector<Tensor> unscale(const std::vector<Tensor>& inputs) const;
  /// After a step, with whether its gradients were finite. False where the scale never changes.
  virtual bool adjust(const Tensor& grads_finite) = 0;
  /// float32 scalar.
  const Parameter& scale_value() const { return scale_; }

 protected:
  /// Throws ValueError unless the scale is finite and at least 1.
  LossScaler(const char* cls, double scale_value);

 private:
  Parameter scale_;
};

class StaticLossScalerImpl : public LossScaler {
 public:
  explicit StaticLossScalerImpl(double scale_value) : LossScaler("StaticLossScaler", scale_value) {}
  bool adjust(const Tensor&) override { return false; }
};

/// State: the scale, and `counter` (int32 scalar): finite steps since the last change.
class DynamicLossScalerImpl : public LossScaler {
 public:
  /// Throws ValueError as DynamicLossScaleManager does.
  DynamicLossScalerImpl(double scale_value, double scale_factor, std::int64_t scale_window);
  bool adjust(const Tensor& grads_finite) override;
  const Parameter& counter() const { return counter_; }
  double scale_factor() const { return factor_; }
  std::int64_t scale_window() const { return window_; }

 private:
  double factor_;
  std::int64_t window_;
  Parameter counter_;
};

class StaticLossScaler : public nn::Handle<StaticLossScalerImpl> {
 public:
  explicit StaticLossScaler(double scale_value) : Handle(make_ref<StaticLossScalerImpl>(scale_value)) {}
};
class DynamicLossScaler : public nn::Handle<DynamicLossScalerImpl> {
 public:
  DynamicLossScaler(double scale_value, double scale_factor, std::int64_t scale_window)
      : Handle(make_ref<DynamicLossScalerImpl>(scale_value, scale_factor, scale_window)) {}
};

}  // namespace amp
}  // namespace undertow
