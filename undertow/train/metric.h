// SPDX-License-Identifier: Apache-2.0
// train/metric.h: what `Model.eval` measures.
//
// A traced metric accumulates with ops and parameter writes inside the evaluation step, so that a whole pass is one
// host command. A metric that is not traced gets the concrete tensors of each batch; the evaluation then runs batch by
// batch.
#pragma once

#include <cstdint>
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
  virtual std::string cls_name() const { return "Metric"; }
};

/// Share of rows whose largest output is at the label: class ids [N] or one-hot [N, C]. Every row counts once.
class AccuracyImpl : public Metric {
 public:
  /// eval_type: "classification".
  explicit AccuracyImpl(const std::string& eval_type = "classification");
  bool traced() const override { return true; }
  void clear() override;
  void update(const EvalBatch& batch) override;
  double eval() override;
  std::string cls_name() const override { return "Accuracy"; }

 private:
  Parameter correct_, total_;  // int64
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

/// "accuracy", "acc", "loss". Throws ValueError naming the known names.
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
