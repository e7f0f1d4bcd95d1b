// SPDX-License-Identifier: Apache-2.0
// train/sequence_loss.h: losses with more inputs than an output and a label. The formulas are those of ops/ctc.h and
// ops/loss.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "undertow/ops/ctc.h"
#include "undertow/train/layers.h"
#include "undertow/train/loss.h"

namespace undertow::nn {
namespace fn {

/// log_probs (T, N, C), or (T, C) with targets (S,) or (1, S); the lengths are tensors or lists of integers.
struct CTCLoss {
  static constexpr const char* kName = "CTCLoss";
  static constexpr const char* kInputs[] = {"log_probs", "targets", "input_lengths", "target_lengths"};
  std::int64_t blank = 0;
  std::string reduction = "mean";
  bool zero_infinity = false;
  Tensor operator()(const Tensor& log_probs, const Tensor& targets, const Value& input_lengths,
                    const Value& target_lengths) const;
};

/// Cross entropy against a few drawn classes: see ops::sampled_softmax_loss.
struct SampledSoftmaxLoss {
  static constexpr const char* kName = "SampledSoftmaxLoss";
  static constexpr const char* kInputs[] = {"weights", "biases", "labels", "logits"};
  std::int64_t num_sampled = 1, num_classes = 1, num_true = 1;
  std::vector<Tensor> sampled_values;  ///< class ids, expected counts of the labels, and of the classes; or none
  bool remove_accidental_hits = true;
  std::int64_t seed = 0;
  std::string reduction = "none";
  void check() const;
  Tensor operator()(const Tensor& weights, const Tensor& biases, const Tensor& labels, const Tensor& logits) const;
};

}  // namespace fn

using CTCLoss = LossHandle<fn::CTCLoss>;
using SampledSoftmaxLoss = LossHandle<fn::SampledSoftmaxLoss>;

struct MultiClassDiceLossOptions {
  Tensor weights;  ///< (classes, dim) or undefined
  std::optional<std::int64_t> ignore_index;
  Activation activation = "softmax";
};
/// Mean over the classes (axis 1) of DiceLoss, with weights (classes, dim); ignored classes count as 0.
class MultiClassDiceLossCell : public LossBase {
 public:
  using Options = MultiClassDiceLossOptions;
  explicit MultiClassDiceLossCell(Options options = {});
  Tensor construct(const Tensor& logits, const Tensor& labels) override;
  std::string cls_name() const override { return "MultiClassDiceLoss"; }

 private:
  Options o_;
};
using MultiClassDiceLoss = Handle<MultiClassDiceLossCell>;

}  // namespace undertow::nn
