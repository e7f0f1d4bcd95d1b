// SPDX-License-Identifier: Apache-2.0
// train/loss.h: loss functions as cells, called as loss(output, label). The formulas are those of ops/loss.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "undertow/train/function_cell.h"

namespace undertow::nn {

/// Base of losses: get_loss() applies the reduction.
class LossBase : public Cell {
 public:
  /// Throws ValueError for an unknown reduction.
  explicit LossBase(const std::string& reduction = "mean") { set_reduction(reduction); }
  /// x times the weights (1 when left out), in float32 and reduced.
  Tensor get_loss(const Tensor& x, const Tensor& weights = {}) const;
  const std::string& reduction() const { return reduction_; }
  std::string cls_name() const override { return "LossBase"; }

 protected:
  void set_reduction(const std::string& reduction);

 private:
  std::string reduction_;
};

namespace fn {

// A loss of two inputs, its options after the reduction, which is "mean" unless said otherwise.
#define UNDERTOW_LOSS(name, ...)                                         \
  struct name {                                                          \
    static constexpr const char* kName = #name;                          \
    static constexpr const char* kInputs[] = {"logits", "labels"};       \
    __VA_ARGS__                                                          \
    Tensor operator()(const Tensor& logits, const Tensor& labels) const; \
  };
#define UNDERTOW_REDUCTION std::string reduction = "mean";
UNDERTOW_LOSS(MSELoss, UNDERTOW_REDUCTION)
UNDERTOW_LOSS(L1Loss, UNDERTOW_REDUCTION)
UNDERTOW_LOSS(MAELoss, UNDERTOW_REDUCTION)
UNDERTOW_LOSS(RMSELoss)
UNDERTOW_LOSS(SmoothL1Loss, double beta = 1.0; std::string reduction = "none"; void check() const;)
UNDERTOW_LOSS(HuberLoss, UNDERTOW_REDUCTION double delta = 1.0; void check() const;)
UNDERTOW_LOSS(SoftMarginLoss, UNDERTOW_REDUCTION)
/// sparse: labels are class ids [N]; otherwise probabilities of the logits' shape. Training with reduction "none"
/// follows the gradient of the sum.
UNDERTOW_LOSS(SoftmaxCrossEntropyWithLogits, bool sparse = false; std::string reduction = "none";)
/// Class ids of any integer type, or probabilities; see ops::cross_entropy.
UNDERTOW_LOSS(CrossEntropyLoss, Tensor weight; std::int64_t ignore_index = -100;
              UNDERTOW_REDUCTION double label_smoothing = 0.0; void check() const;)
UNDERTOW_LOSS(NLLLoss, Tensor weight; std::int64_t ignore_index = -100; UNDERTOW_REDUCTION)
UNDERTOW_LOSS(BCELoss, Tensor weight; UNDERTOW_REDUCTION)
UNDERTOW_LOSS(BCEWithLogitsLoss, UNDERTOW_REDUCTION Tensor weight; Tensor pos_weight;)
/// Also "batchmean".
UNDERTOW_LOSS(KLDivLoss, UNDERTOW_REDUCTION static constexpr bool kOwnReduction = true; void check() const;)
UNDERTOW_LOSS(MultilabelMarginLoss, UNDERTOW_REDUCTION)
UNDERTOW_LOSS(MultiLabelSoftMarginLoss, Tensor weight; UNDERTOW_REDUCTION)
UNDERTOW_LOSS(HingeEmbeddingLoss, double margin = 1.0; UNDERTOW_REDUCTION)
UNDERTOW_LOSS(PoissonNLLLoss, bool log_input = true; bool full = false; double eps = 1e-8; UNDERTOW_REDUCTION)
UNDERTOW_LOSS(DiceLoss, double smooth = 1e-5; void check() const;)
/// Of logits (N, C, ...) with class ids (N, 1, ...) or one-hot labels: -(1 - p)^gamma log p (Lin et al., 2017).
UNDERTOW_LOSS(FocalLoss, Tensor weight; double gamma = 2.0; UNDERTOW_REDUCTION)
#undef UNDERTOW_LOSS

struct MarginRankingLoss {
  static constexpr const char* kName = "MarginRankingLoss";
  static constexpr const char* kInputs[] = {"input1", "input2", "target"};
  double margin = 0.0;
  UNDERTOW_REDUCTION
  Tensor operator()(const Tensor& input1, const Tensor& input2, const Tensor& target) const;
};
struct CosineEmbeddingLoss {
  static constexpr const char* kName = "CosineEmbeddingLoss";
  static constexpr const char* kInputs[] = {"logits_x1", "logits_x2", "labels"};
  double margin = 0.0;
  UNDERTOW_REDUCTION
  void check() const;
  Tensor operator()(const Tensor& x1, const Tensor& x2, const Tensor& labels) const;
};
struct TripletMarginLoss {
  static constexpr const char* kName = "TripletMarginLoss";
  static constexpr const char* kInputs[] = {"x", "positive", "negative", "margin"};
  std::int64_t p = 2;
  bool swap = false;
  double eps = 1e-6;
  UNDERTOW_REDUCTION
  double margin = 1.0;
  /// `margin_given` counts where the option was left at 1.
  Tensor operator()(const Tensor& x, const Tensor& positive, const Tensor& negative,
                    const std::optional<double>& margin_given) const;
};
struct MultiMarginLoss {
  static constexpr const char* kName = "MultiMarginLoss";
  static constexpr const char* kInputs[] = {"x", "target", "weight"};
  std::int64_t p = 1;
  double margin = 1.0;
  UNDERTOW_REDUCTION
  Tensor weight;
  void check() const;
  Tensor operator()(const Tensor& x, const Tensor& target, const std::optional<Tensor>& weight_given) const;
};
struct GaussianNLLLoss {
  static constexpr const char* kName = "GaussianNLLLoss";
  static constexpr const char* kInputs[] = {"logits", "labels", "var"};
  bool full = false;
  double eps = 1e-6;
  UNDERTOW_REDUCTION
  void check() const;
  Tensor operator()(const Tensor& logits, const Tensor& labels, const Tensor& var) const;
};
#undef UNDERTOW_REDUCTION

}  // namespace fn

template <typename F>
using LossHandle = FunctionHandle<F, LossBase>;
using MSELoss = LossHandle<fn::MSELoss>;
using L1Loss = LossHandle<fn::L1Loss>;
using MAELoss = LossHandle<fn::MAELoss>;
using RMSELoss = LossHandle<fn::RMSELoss>;
using SmoothL1Loss = LossHandle<fn::SmoothL1Loss>;
using HuberLoss = LossHandle<fn::HuberLoss>;
using SoftMarginLoss = LossHandle<fn::SoftMarginLoss>;
using SoftmaxCrossEntropyWithLogits = LossHandle<fn::SoftmaxCrossEntropyWithLogits>;
using CrossEntropyLoss = LossHandle<fn::CrossEntropyLoss>;
using NLLLoss = LossHandle<fn::NLLLoss>;
using BCELoss = LossHandle<fn::BCELoss>;
using BCEWithLogitsLoss = LossHandle<fn::BCEWithLogitsLoss>;
using KLDivLoss = LossHandle<fn::KLDivLoss>;
using MultilabelMarginLoss = LossHandle<fn::MultilabelMarginLoss>;
using MultiLabelSoftMarginLoss = LossHandle<fn::MultiLabelSoftMarginLoss>;
using HingeEmbeddingLoss = LossHandle<fn::HingeEmbeddingLoss>;
using PoissonNLLLoss = LossHandle<fn::PoissonNLLLoss>;
using DiceLoss = LossHandle<fn::DiceLoss>;
using FocalLoss = LossHandle<fn::FocalLoss>;
using MarginRankingLoss = LossHandle<fn::MarginRankingLoss>;
using CosineEmbeddingLoss = LossHandle<fn::CosineEmbeddingLoss>;
using TripletMarginLoss = LossHandle<fn::TripletMarginLoss>;
using MultiMarginLoss = LossHandle<fn::MultiMarginLoss>;
using GaussianNLLLoss = LossHandle<fn::GaussianNLLLoss>;

}  // namespace undertow::nn
