// SPDX-License-Identifier: Apache-2.0
// train/wrap.h: a network with its loss, and with its optimizer: for training loops of one's own.
//
//   auto step = nn::TrainOneStepCell(nn::WithLossCell(net, nn::MSELoss()), nn::SGD(net.trainable_params()));
//   step.set_train();
//   Tensor loss = step(x, y);  // one update, eager or as a part of a compiled function
//
// Parameters keep the names that the network gives them.
#pragma once

#include <string>
#include <vector>

#include "undertow/train/optimizer.h"

namespace undertow::nn {

/// loss_fn(backbone(data), label)
class WithLossCellImpl : public Cell {
 public:
  WithLossCellImpl(Ref<Cell> backbone, Ref<Cell> loss_fn);
  Value construct_values(const std::vector<Value>& args) override;
  const Ref<Cell>& backbone_network() const { return backbone_; }
  std::string cls_name() const override { return "WithLossCell"; }

 private:
  Ref<Cell> backbone_, loss_fn_;
};

/// (loss_fn(network(data), label), network(data), label); with add_cast_fp32 the outputs are cast to float32 first.
class WithEvalCellImpl : public Cell {
 public:
  WithEvalCellImpl(Ref<Cell> network, Ref<Cell> loss_fn, bool add_cast_fp32 = false);
  Value construct_values(const std::vector<Value>& args) override;
  std::string cls_name() const override { return "WithEvalCell"; }

 private:
  Ref<Cell> network_, loss_fn_;
  bool cast_;
};

struct TrainOneStepOptions {
  double sens = 1;           ///< the gradients are times this (a loss scale)
  bool return_grad = false;  ///< gives (loss, {parameter name: gradient})
};
/// Runs the network, which returns a loss (or a tuple whose first item it is), and updates the optimizer's parameters.
/// Gives what the network gave. Throws ValueError for sens 0.
class TrainOneStepCellImpl : public Cell {
 public:
  TrainOneStepCellImpl(Ref<Cell> network, Ref<OptimizerCell> optimizer, const TrainOneStepOptions& options = {});
  Value construct_values(const std::vector<Value>& args) override;
  const Ref<Cell>& network() const { return network_; }
  const Ref<OptimizerCell>& optimizer() const { return optimizer_; }
  double sens() const { return options_.sens; }
  bool returns_grad() const { return options_.return_grad; }
  std::string cls_name() const override { return "TrainOneStepCell"; }

 private:
  Ref<Cell> network_;
  Ref<OptimizerCell> optimizer_;
  TrainOneStepOptions options_;
};

/// The state of a loss scale: float32 scalar Parameter "scale_sense". Throws ValueError unless the value is positive
/// and finite; `what` starts the message.
Parameter scale_sense(double value, const std::string& what);

/// Trains as TrainOneStepCell on the loss times a scale. The gradients are divided by it, and the update is left out
/// where one of them is not finite. Gives (loss, overflow: bool scalar, scale of this step: float32 scalar).
/// State: scale_sense, and that of the update cell.
class TrainOneStepWithLossScaleCellImpl : public Cell {
 public:
  /// A fixed scale: `scale` has one element. Throws ValueError for other shapes and scales that are not positive.
  TrainOneStepWithLossScaleCellImpl(Ref<Cell> network, Ref<OptimizerCell> optimizer, const Tensor& scale);
  /// `update` is called with (scale_sense, overflow) after the update, may assign the scale, and gives whether the
  /// update is left out. The state lies in `scale`, or starts with what `update` says.
  TrainOneStepWithLossScaleCellImpl(Ref<Cell> network, Ref<OptimizerCell> optimizer, Ref<Cell> update,
                                    const Parameter& scale);
  Value construct_values(const std::vector<Value>& args) override;
  const Ref<Cell>& network() const { return network_; }
  const Ref<OptimizerCell>& optimizer() const { return optimizer_; }
  const Ref<Cell>& update_cell() const { return update_; }
  const Parameter& scale() const { return scale_; }
  /// Throws as the constructor with a fixed scale.
  void set_sense_scale(const Tensor& scale);
  std::string cls_name() const override { return "TrainOneStepWithLossScaleCell"; }

 private:
  Ref<Cell> network_;
  Ref<OptimizerCell> optimizer_;
  Ref<Cell> update_;  // null: a fixed scale
  Parameter scale_;
};

class WithLossCell : public Handle<WithLossCellImpl> {
 public:
  WithLossCell(const Ref<Cell>& backbone, const Ref<Cell>& loss_fn)
      : Handle(make_ref<WithLossCellImpl>(backbone, loss_fn)) {}
};
class WithEvalCell : public Handle<WithEvalCellImpl> {
 public:
  WithEvalCell(const Ref<Cell>& network, const Ref<Cell>& loss_fn, bool add_cast_fp32 = false)
      : Handle(make_ref<WithEvalCellImpl>(network, loss_fn, add_cast_fp32)) {}
};
class TrainOneStepCell : public Handle<TrainOneStepCellImpl> {
 public:
  TrainOneStepCell(const Ref<Cell>& network, const Ref<OptimizerCell>& optimizer,
                   const TrainOneStepOptions& options = {})
      : Handle(make_ref<TrainOneStepCellImpl>(network, optimizer, options)) {}
};

/// The training cell of a network that returns its loss, scaled by `scale` (undefined: not at all), which `update`
/// follows (null: no update is left out, and the scale is the optimizer's own loss_scale, which it takes off itself).
Ref<Cell> train_cell(const Ref<Cell>& network, const Ref<OptimizerCell>& optimizer, const Parameter& scale,
                     const Ref<Cell>& update);

class TrainOneStepWithLossScaleCell : public Handle<TrainOneStepWithLossScaleCellImpl> {
 public:
  TrainOneStepWithLossScaleCell(const Ref<Cell>& network, const Ref<OptimizerCell>& optimizer, const Tensor& scale)
      : Handle(make_ref<TrainOneStepWithLossScaleCellImpl>(network, optimizer, scale)) {}
  TrainOneStepWithLossScaleCell(const Ref<Cell>& network, const Ref<OptimizerCell>& optimizer, const Ref<Cell>& update,
                                const Parameter& scale = {})
      : Handle(make_ref<TrainOneStepWithLossScaleCellImpl>(network, optimizer, update, scale)) {}
};

}  // namespace undertow::nn
