// SPDX-License-Identifier: Apache-2.0
// train/loss.h: loss functions. Called as loss(output, label).
#pragma once

#include <string>

#include "undertow/train/cell.h"

namespace undertow::nn {

struct LossOptions {
  std::string reduction = "mean";  ///< "mean", "sum" or "none"
};
/// Base of losses: get_loss() applies the reduction.
class LossBase : public Cell {
 public:
  /// Throws ValueError for an unknown reduction.
  explicit LossBase(const std::string& reduction = "mean");
  Tensor get_loss(const Tensor& x) const;
  const std::string& reduction() const { return reduction_; }
  std::string cls_name() const override { return "LossBase"; }

 private:
  std::string reduction_;
};

class MSELossCell : public LossBase {
 public:
  explicit MSELossCell(const LossOptions& options = {}) : LossBase(options.reduction) {}
  Tensor construct(const Tensor& logits, const Tensor& labels) override;
  std::string cls_name() const override { return "MSELoss"; }
};
class L1LossCell : public LossBase {
 public:
  explicit L1LossCell(const LossOptions& options = {}) : LossBase(options.reduction) {}
  Tensor construct(const Tensor& logits, const Tensor& labels) override;
  std::string cls_name() const override { return "L1Loss"; }
};

struct SoftmaxCrossEntropyOptions {
  bool sparse = false;             ///< labels are class ids [N]; otherwise probabilities of the logits' shape
  std::string reduction = "none";  ///< training with "none" follows the gradient of the sum
};
class SoftmaxCrossEntropyWithLogitsCell : public LossBase {
 public:
  explicit SoftmaxCrossEntropyWithLogitsCell(const SoftmaxCrossEntropyOptions& options = {})
      : LossBase(options.reduction), sparse_(options.sparse) {}
  Tensor construct(const Tensor& logits, const Tensor& labels) override;
  std::string cls_name() const override { return "SoftmaxCrossEntropyWithLogits"; }

 private:
  bool sparse_;
};

class MSELoss : public Handle<MSELossCell> {
 public:
  explicit MSELoss(const LossOptions& options = {}) : Handle(make_ref<MSELossCell>(options)) {}
};
class L1Loss : public Handle<L1LossCell> {
 public:
  explicit L1Loss(const LossOptions& options = {}) : Handle(make_ref<L1LossCell>(options)) {}
};
class SoftmaxCrossEntropyWithLogits : public Handle<SoftmaxCrossEntropyWithLogitsCell> {
 public:
  explicit SoftmaxCrossEntropyWithLogits(const SoftmaxCrossEntropyOptions& options = {})
      : Handle(make_ref<SoftmaxCrossEntropyWithLogitsCell>(options)) {}
};

}  // namespace undertow::nn
