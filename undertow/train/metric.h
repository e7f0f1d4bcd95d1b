// SPDX-License-Identifier: Apache-2.0
// train/metric.h: what `Model.eval` measures.
//
// A traced metric accumulates with ops and parameter writes inside the evaluation step, so that a whole pass is one
// host command. A metric that is not traced gets the concrete tensors of each batch; the evaluation then runs batch by
// batch.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "undertow/train/cell.h"

namespace undertow::nn {

/// What an evaluation step gives to metrics.
struct EvalBatch {
  Tensor loss;    ///< scalar, or one value a row; may be undefined (no loss function)
  Tensor output;  ///< the network's (first) output
  Tensor label;   ///< the last column of the dataset
  std::int64_t rows = 0;
  std::vector<Tensor> all;  ///< everything the evaluation network returned
};

class Metric : public RefCounted {
 public:
  /// Recorded into the step (true) or called with concrete tensors after it (false).
  virtual bool traced() const { return false; }
  virtual void clear() = 0;
  virtual void update(const EvalBatch& batch) = 0;
  /// Throws RuntimeError before the first update.
  virtual double eval() = 0;
  /// One result a class, where the metric has them; else empty.
  virtual std::vector<double> eval_classes() { return {}; }
  virtual std::string cls_name() const { return "Metric"; }
};

/// Counts that grow inside the step: named scalars (or one a class), zero again after clear().
class CountingMetric : public Metric {
 public:
  bool traced() const override { return true; }
  void clear() override;

 protected:
  /// Adds within the step. The count takes the first value's shape; another shape later is a ShapeError.
  void count(std::size_t which, const Tensor& value);
  double total(std::size_t which) const;
  std::vector<double> totals(std::size_t which) const;
  /// Throws RuntimeError where nothing was counted.
  void need_counts(std::size_t which) const;

 private:
  std::vector<Parameter> counts_;  // float64: exact for counts, and what sums need
  bool cleared_ = true;
};

/// Share of rows whose largest output is at the label: outputs (N, C, ...) with class ids (N, ...) or one-hot of the
/// outputs' shape. With "multilabel": share of rows whose 0/1 outputs all equal the labels. Every row counts once.
class AccuracyImpl : public CountingMetric {
 public:
  /// eval_type: "classification" or "multilabel".
  explicit AccuracyImpl(const std::string& eval_type = "classification");
  void update(const EvalBatch& batch) override;
  double eval() override;
  std::string cls_name() const override { return "Accuracy"; }

 private:
  bool multilabel_;
};

/// Mean of |output - label| (MAE) or of its square (MSE), summed over all but the first dimension, over rows.
class ErrorImpl : public CountingMetric {
 public:
  explicit ErrorImpl(bool squared) : squared_(squared) {}
  void update(const EvalBatch& batch) override;
  double eval() override;
  std::string cls_name() const override { return squared_ ? "MSE" : "MAE"; }

 private:
  bool squared_;
};

/// Share of rows whose label is among the k largest outputs; of equal outputs the first counts as larger.
class TopKCategoricalAccuracyImpl : public CountingMetric {
 public:
  /// Throws ValueError for k < 1.
  explicit TopKCategoricalAccuracyImpl(std::int64_t k);
  void update(const EvalBatch& batch) override;
  double eval() override;
  std::string cls_name() const override { return "TopKCategoricalAccuracy"; }

 private:
  std::int64_t k_;
};

/// e^(mean of -log p(label)) of probabilities (..., C) and class ids (...). Rows of class ignore_label do not count.
class PerplexityImpl : public CountingMetric {
 public:
  explicit PerplexityImpl(std::optional<std::int64_t> ignore_label = {}) : ignore_(ignore_label) {}
  void update(const EvalBatch& batch) override;
  double eval() override;
  std::string cls_name() const override { return "Perplexity"; }

 private:
  std::optional<std::int64_t> ignore_;
};

/// Precision, recall or F-beta of each class, from the class with the largest output. eval() is the classes' mean.
class ClassRateImpl : public CountingMetric {
 public:
  enum Kind { kPrecision, kRecall, kFbeta };
  /// Throws ValueError for beta <= 0.
  explicit ClassRateImpl(Kind kind, double beta = 1);
  void update(const EvalBatch& batch) override;
  double eval() override;
  std::vector<double> eval_classes() override;
  std::string cls_name() const override;

 private:
  Kind kind_;
  double beta_;
};

/// Mean loss over rows: a batch's mean counts with its rows, so that the result does not depend on the batch size.
class LossImpl : public Metric {
 public:
  LossImpl();
  bool traced() const override { return true; }
  void clear() override;
  void update(const EvalBatch& batch) override;
  double eval() override;
  std::string cls_name() const override { return "Loss"; }

 private:
  Parameter sum_;   // float64
  Parameter rows_;  // int64
};

class Accuracy : public Handle<AccuracyImpl> {
 public:
  explicit Accuracy(const std::string& eval_type = "classification") : Handle(make_ref<AccuracyImpl>(eval_type)) {}
};
class Loss : public Handle<LossImpl> {
 public:
  Loss() : Handle(make_ref<LossImpl>()) {}
};

class MAE : public Handle<ErrorImpl> {
 public:
  MAE() : Handle(make_ref<ErrorImpl>(false)) {}
};
class MSE : public Handle<ErrorImpl> {
 public:
  MSE() : Handle(make_ref<ErrorImpl>(true)) {}
};
class TopKCategoricalAccuracy : public Handle<TopKCategoricalAccuracyImpl> {
 public:
  explicit TopKCategoricalAccuracy(std::int64_t k) : Handle(make_ref<TopKCategoricalAccuracyImpl>(k)) {}
};
class Perplexity : public Handle<PerplexityImpl> {
 public:
  explicit Perplexity(std::optional<std::int64_t> ignore_label = {}) : Handle(make_ref<PerplexityImpl>(ignore_label)) {}
};
class Precision : public Handle<ClassRateImpl> {
 public:
  Precision() : Handle(make_ref<ClassRateImpl>(ClassRateImpl::kPrecision)) {}
};
class Recall : public Handle<ClassRateImpl> {
 public:
  Recall() : Handle(make_ref<ClassRateImpl>(ClassRateImpl::kRecall)) {}
};
class Fbeta : public Handle<ClassRateImpl> {
 public:
  explicit Fbeta(double beta) : Handle(make_ref<ClassRateImpl>(ClassRateImpl::kFbeta, beta)) {}
};

/// "accuracy", "acc", "loss", "mae", "mse", "precision", "recall", "F1", "top_1_accuracy", "top_5_accuracy",
/// "perplexity". Throws ValueError naming the known names.
Ref<Metric> get_metric(const std::string& name);

/// A metric under the name its result gets.
struct NamedMetric {
  std::string name;
  Ref<Metric> metric;
  NamedMetric(const char* name) : NamedMetric(std::string(name)) {}
  NamedMetric(const std::string& name) : name(name), metric(get_metric(name)) {}
  NamedMetric(std::string name, Ref<Metric> metric) : name(std::move(name)), metric(std::move(metric)) {}
};

}  // namespace undertow::nn
