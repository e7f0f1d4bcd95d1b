// SPDX-License-Identifier: Apache-2.0
#include "undertow/train/metric.h"

#include <cmath>

#include "undertow/base/check.h"
#include "undertow/ops/ops.h"

namespace undertow::nn {
namespace {

Parameter accumulator(DType dtype, const char* name) { return Parameter(Tensor::zeros(Shape{}, dtype), name, false); }

}  // namespace

void CountingMetric::clear() {
  for (const Parameter& c : counts_) c.assign(Tensor::zeros(c.shape(), DType::kFloat64));
  cleared_ = true;
}

void CountingMetric::count(std::size_t which, const Tensor& value) {
  if (counts_.size() <= which) counts_.resize(which + 1);
  Parameter& c = counts_[which];
  if (!c.defined() || (cleared_ && c.shape() != value.shape()))
    c = Parameter(Tensor::zeros(value.shape(), DType::kFloat64), fmt::format("{}.{}", cls_name(), which), false);
  UNDERTOW_CHECK(c.shape() == value.shape(), ShapeError, "{}: batches had {} classes before, this one has {}",
                 cls_name(), c.size(), value.size());
  if (which + 1 == counts_.size()) cleared_ = false;
  ops::assign(c, ops::add(c, ops::cast(value, DType::kFloat64)));
}

double CountingMetric::total(std::size_t which) const {
  return which < counts_.size() ? counts_[which].item_as_double() : 0;
}

std::vector<double> CountingMetric::totals(std::size_t which) const {
  if (which >= counts_.size()) return {};
  const auto* v = counts_[which].data_as<double>();
  return {v, v + counts_[which].size()};
}

void CountingMetric::need_counts(std::size_t which) const {
  double all = 0;
  for (const double v : totals(which)) all += v;
  UNDERTOW_CHECK(all > 0, RuntimeError, "{}: no rows were counted yet", cls_name());
}

namespace {

/// Outputs and labels of a classification with rows and positions in one dimension.
struct Classes {
  Tensor scores;  // (M, C)
  Tensor labels;  // (M,) int64
  std::int64_t rows, classes;
};

Classes classes_of(const EvalBatch& batch, const std::string& cls) {
  const Tensor &y = batch.output, &label = batch.label;
  Shape without;
  for (int d = 0; d < y.ndim(); ++d)
    if (d != 1) without.push_back(y.shape(d));
  UNDERTOW_CHECK(y.ndim() >= 2 && (label.shape() == y.shape() || label.shape() == without), ShapeError,
                 "{}: expected outputs (rows, classes, ...) with labels (rows, ...) or of the outputs' shape, but "
                 "outputs have shape {} and labels {}",
                 cls, y.shape().str(), label.shape().str());
  const Tensor ids = label.ndim() == y.ndim() ? ops::argmax(label, 1) : ops::cast(label, DType::kInt64);
  const std::int64_t classes = y.shape(1);
  std::vector<std::int64_t> last{0};
  for (int d = 2; d < y.ndim(); ++d) last.push_back(d);
  last.push_back(1);
  const Tensor scores = y.ndim() == 2 ? y : ops::reshape(ops::transpose(y, last), {ids.size(), classes});
  return {scores, ops::reshape(ids, {ids.size()}), ids.size(), classes};
}

Tensor rows_count(std::int64_t rows) { return ops::constant(static_cast<double>(rows), DType::kFloat64); }
Tensor sum_of(const Tensor& flags, ops::Axes axes = {}) {
  return ops::reduce_sum(ops::cast(flags, DType::kFloat64), std::move(axes));
}

}  // namespace

AccuracyImpl::AccuracyImpl(const std::string& eval_type) : multilabel_(eval_type == "multilabel") {
  UNDERTOW_CHECK(multilabel_ || eval_type == "classification", ValueError,
                 "Accuracy: eval_type '{}' is not known; use classification or multilabel", eval_type);
}

void AccuracyImpl::update(const EvalBatch& batch) {
  if (!multilabel_) {
    const Classes c = classes_of(batch, cls_name());
    count(0, sum_of(ops::equal(ops::argmax(c.scores, 1), c.labels)));
    count(1, rows_count(c.rows));
    return;
  }
  const Tensor &y = batch.output, &label = batch.label;
  UNDERTOW_CHECK(
      y.ndim() >= 2 && y.shape() == label.shape(), ShapeError,
      "Accuracy: multilabel needs outputs and labels of one shape (rows, classes, ...), but they have {} and "
      "{}",
      y.shape().str(), label.shape().str());
  const Tensor right = ops::reduce_all(ops::equal(y, ops::cast(label, y.dtype())), {1});
  count(0, sum_of(right));
  count(1, rows_count(right.size()));
}

double AccuracyImpl::eval() {
  need_counts(1);
  return total(0) / total(1);
}

void ErrorImpl::update(const EvalBatch& batch) {
  const Tensor &y = batch.output, &label = batch.label;
  UNDERTOW_CHECK(y.size() == label.size(), ShapeError, "{}: outputs have shape {} and labels {}", cls_name(),
                 y.shape().str(), label.shape().str());
  const Tensor d = ops::sub(ops::cast(ops::reshape(y, {-1}), DType::kFloat64),
                            ops::cast(ops::reshape(label, {-1}), DType::kFloat64));
  count(0, ops::reduce_sum(squared_ ? ops::square(d) : ops::abs(d)));
  count(1, rows_count(batch.rows));
}

double ErrorImpl::eval() {
  need_counts(1);
  return total(0) / total(1);
}

TopKCategoricalAccuracyImpl::TopKCategoricalAccuracyImpl(std::int64_t k) : k_(k) {
  UNDERTOW_CHECK(k >= 1, ValueError, "TopKCategoricalAccuracy: 'k' must be at least 1 but is {}", k);
}

void TopKCategoricalAccuracyImpl::update(const EvalBatch& batch) {
  const Classes c = classes_of(batch, cls_name());
  // The label's rank is the number of larger outputs, and of equal ones before it: no sorting.
  const Tensor ids = ops::iota({c.rows, c.classes}, 1, DType::kInt64), labels = ops::reshape(c.labels, {c.rows, 1});
  const Tensor at = ops::equal(ids, labels);
  const Tensor zero = ops::zeros_like(c.scores);
  const Tensor score = ops::reduce_sum(ops::select(at, c.scores, zero), {1}, true);
  const Tensor ahead = ops::logical_or(ops::greater(c.scores, score),
                                       ops::logical_and(ops::equal(c.scores, score), ops::less(ids, labels)));
  const Tensor known = ops::logical_not(ops::isnan(ops::reshape(score, {c.rows})));
  count(0, sum_of(ops::logical_and(ops::less(sum_of(ahead, {1}), static_cast<double>(k_)), known)));
  count(1, rows_count(c.rows));
}

double TopKCategoricalAccuracyImpl::eval() {
  need_counts(1);
  return total(0) / total(1);
}

void PerplexityImpl::update(const EvalBatch& batch) {
  const Tensor& y = batch.output;
  UNDERTOW_CHECK(y.ndim() >= 2 && batch.label.size() * y.shape(-1) == y.size(), ShapeError,
                 "Perplexity: expected probabilities (..., classes) with one class id a row, but outputs have shape {} "
                 "and labels {}",
                 y.shape().str(), batch.label.shape().str());
  const std::int64_t rows = batch.label.size(), classes = y.shape(-1);
  const Tensor p = ops::cast(ops::reshape(y, {rows, classes}), DType::kFloat64);
  const Tensor labels = ops::reshape(ops::cast(batch.label, DType::kInt64), {rows});
  const Tensor at = ops::equal(ops::iota({rows, classes}, 1, DType::kInt64), ops::reshape(labels, {rows, 1}));
  const Tensor loss =
      ops::neg(ops::log(ops::maximum(ops::reduce_sum(ops::select(at, p, ops::zeros_like(p)), {1}), 1e-10)));
  if (!ignore_) {
    count(0, ops::reduce_sum(loss));
    count(1, rows_count(rows));
    return;
  }
  const Tensor counts = ops::not_equal(labels, *ignore_);
  count(0, ops::reduce_sum(ops::select(counts, loss, ops::zeros_like(loss))));
  count(1, sum_of(counts));
}

double PerplexityImpl::eval() {
  need_counts(1);
  return std::exp(total(0) / total(1));
}

ClassRateImpl::ClassRateImpl(Kind kind, double beta) : kind_(kind), beta_(beta) {
  UNDERTOW_CHECK(beta > 0, ValueError, "Fbeta: 'beta' must be greater than 0 but is {}", beta);
}

std::string ClassRateImpl::cls_name() const {
  return kind_ == kPrecision ? "Precision" : kind_ == kRecall ? "Recall" : "Fbeta";
}

void ClassRateImpl::update(const EvalBatch& batch) {
  const Classes c = classes_of(batch, cls_name());
  const Tensor ids = ops::iota({c.rows, c.classes}, 1, DType::kInt64);
  const Tensor predicted = ops::equal(ids, ops::reshape(ops::argmax(c.scores, 1), {c.rows, 1}));
  const Tensor actual = ops::equal(ids, ops::reshape(c.labels, {c.rows, 1}));
  count(0, sum_of(ops::logical_and(predicted, actual), {0}));
  count(1, sum_of(predicted, {0}));
  count(2, sum_of(actual, {0}));
}

std::vector<double> ClassRateImpl::eval_classes() {
  need_counts(1);
  const std::vector<double> right = totals(0), predicted = totals(1), actual = totals(2);
  std::vector<double> out;
  for (std::size_t i = 0; i < right.size(); ++i) {
    const double b = beta_ * beta_;
    const double of = kind_ == kPrecision ? predicted[i] : kind_ == kRecall ? actual[i] : b * actual[i] + predicted[i];
    const double hits = kind_ == kFbeta ? (1 + b) * right[i] : right[i];
    out.push_back(of > 0 ? hits / of : 0);
  }
  return out;
}

double ClassRateImpl::eval() {
  const std::vector<double> all = eval_classes();
  double sum = 0;
  for (const double v : all) sum += v;
  return sum / static_cast<double>(all.size());
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
  using Make = Ref<Metric> (*)();
  static constexpr std::pair<const char*, Make> kMetrics[] = {
      {"accuracy", [] { return Ref<Metric>(make_ref<AccuracyImpl>()); }},
      {"acc", [] { return Ref<Metric>(make_ref<AccuracyImpl>()); }},
      {"loss", [] { return Ref<Metric>(make_ref<LossImpl>()); }},
      {"mae", [] { return Ref<Metric>(make_ref<ErrorImpl>(false)); }},
      {"mse", [] { return Ref<Metric>(make_ref<ErrorImpl>(true)); }},
      {"precision", [] { return Ref<Metric>(make_ref<ClassRateImpl>(ClassRateImpl::kPrecision)); }},
      {"recall", [] { return Ref<Metric>(make_ref<ClassRateImpl>(ClassRateImpl::kRecall)); }},
      {"F1", [] { return Ref<Metric>(make_ref<ClassRateImpl>(ClassRateImpl::kFbeta)); }},
      {"top_1_accuracy", [] { return Ref<Metric>(make_ref<TopKCategoricalAccuracyImpl>(1)); }},
      {"top_5_accuracy", [] { return Ref<Metric>(make_ref<TopKCategoricalAccuracyImpl>(5)); }},
      {"perplexity", [] { return Ref<Metric>(make_ref<PerplexityImpl>()); }},
  };
  std::vector<std::string> known;
  for (const auto& [key, make] : kMetrics) {
    if (name == key) return make();
    known.emplace_back(key);
  }
  throw ValueError(
      fmt::format("metric '{}' is not known; use {} or a Metric of your own", name, fmt::join(known, ", ")));
}

}  // namespace undertow::nn
