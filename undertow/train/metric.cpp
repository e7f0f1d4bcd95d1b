// SPDX-License-Identifier: Apache-2.0
#include "undertow/train/metric.h"

#include "undertow/base/check.h"
#include "undertow/ops/ops.h"

namespace undertow::nn {
namespace {

Parameter accumulator(DType dtype, const char* name) { return Parameter(Tensor::zeros(Shape{}, dtype), name, false); }

}  // namespace

AccuracyImpl::AccuracyImpl(const std::string& eval_type)
    : correct_(accumulator(DType::kInt64, "accuracy.correct")), total_(accumulator(DType::kInt64, "accuracy.total")) {
  UNDERTOW_CHECK(eval_type == "classification", ValueError,
                 "Accuracy: eval_type '{}' is not supported; use classification", eval_type);
}

void AccuracyImpl::clear() {
  correct_.assign(Tensor::zeros(Shape{}, DType::kInt64));
  total_.assign(Tensor::zeros(Shape{}, DType::kInt64));
}

void AccuracyImpl::update(const EvalBatch& batch) {
  const Tensor& y = batch.output;
  UNDERTOW_CHECK(
      y.ndim() == 2 &&
          (batch.label.shape() == y.shape() || (batch.label.ndim() == 1 && batch.label.shape(0) == y.shape(0))),
      ShapeError,
      "Accuracy: expected outputs (rows, classes) with labels (rows,) or (rows, classes), but outputs have shape "
      "{} and labels {}",
      y.shape().str(), batch.label.shape().str());
  const Tensor label = batch.label.ndim() == 2 ? ops::argmax(batch.label, 1) : ops::cast(batch.label, DType::kInt64);
  const Tensor hits = ops::reduce_sum(ops::cast(ops::equal(ops::argmax(y, 1), label), DType::kInt64));
  ops::assign(correct_, ops::add(correct_, hits));
  ops::assign(total_, ops::add(total_, y.shape(0)));
}

double AccuracyImpl::eval() {
  const std::int64_t total = total_.item_as_int();
  UNDERTOW_CHECK(total > 0, RuntimeError, "Accuracy: no rows were counted yet");
  return static_cast<double>(correct_.item_as_int()) / static_cast<double>(total);
}

LossImpl::LossImpl() : sum_(accumulator(DType::kFloat64, "loss.sum")), rows_(accumulator(DType::kInt64, "loss.rows")) {}

void LossImpl::clear() {
  sum_.assign(Tensor::zeros(Shape{}, DType::kFloat64));
  rows_.assign(Tensor::zeros(Shape{}, DType::kInt64));
}

void LossImpl::update(const EvalBatch& batch) {
  UNDERTOW_CHECK(batch.loss.defined(), ValueError, "Loss: the evaluation gives no loss");
  const Tensor loss = ops::cast(batch.loss, DType::kFloat64);
  const Tensor mean = loss.ndim() == 0 ? loss : ops::reduce_mean(loss);
  ops::assign(sum_, ops::add(sum_, ops::mul(mean, static_cast<double>(batch.rows))));
  ops::assign(rows_, ops::add(rows_, batch.rows));
}

double LossImpl::eval() {
  const std::int64_t rows = rows_.item_as_int();
  UNDERTOW_CHECK(rows > 0, RuntimeError, "Loss: no rows were counted yet");
  return sum_.item_as_double() / static_cast<double>(rows);
}

Ref<Metric> get_metric(const std::string& name) {
  if (name == "accuracy" || name == "acc") return make_ref<AccuracyImpl>();
  if (name == "loss") return make_ref<LossImpl>();
  throw ValueError(fmt::format("metric '{}' is not known; use accuracy, acc, loss or a Metric of your own", name));
}

}  // namespace undertow::nn
