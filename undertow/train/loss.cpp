// SPDX-License-Identifier: Apache-2.0
#include "undertow/train/loss.h"

#include "undertow/base/check.h"
#include "undertow/ops/ops.h"

namespace undertow::nn {
namespace {

/// A label of another shape would broadcast: (16, 1) with (16,) gives 16 x 16 differences and trains on nonsense.
void require_same_shape(const Cell& cell, const Tensor& logits, const Tensor& labels) {
  UNDERTOW_CHECK(logits.shape() == labels.shape(), ShapeError,
                 "{}: logits and labels must have the same shape, but logits have shape {} and labels {}", cell.where(),
                 logits.shape().str(), labels.shape().str());
}

}  // namespace

LossBase::LossBase(const std::string& reduction) : reduction_(reduction) {
  UNDERTOW_CHECK(reduction == "mean" || reduction == "sum" || reduction == "none", ValueError,
                 "reduction must be 'mean', 'sum' or 'none' but is '{}'", reduction);
}

Tensor LossBase::get_loss(const Tensor& x) const {
  const Tensor wide = ops::cast(x, is_floating(x.dtype()) ? compute_type(x.dtype()) : DType::kFloat32);
  if (reduction_ == "mean") return ops::reduce_mean(wide);
  if (reduction_ == "sum") return ops::reduce_sum(wide);
  return wide;
}

Tensor MSELossCell::construct(const Tensor& logits, const Tensor& labels) {
  require_same_shape(*this, logits, labels);
  return get_loss(ops::square(ops::sub(logits, labels)));
}

Tensor L1LossCell::construct(const Tensor& logits, const Tensor& labels) {
  require_same_shape(*this, logits, labels);
  return get_loss(ops::abs(ops::sub(logits, labels)));
}

Tensor SoftmaxCrossEntropyWithLogitsCell::construct(const Tensor& logits, const Tensor& labels) {
  UNDERTOW_CHECK(logits.ndim() == 2, ShapeError, "{}: logits must have 2 dimensions (rows, classes) but have shape {}",
                 where(), logits.shape().str());
  if (!sparse_) {
    require_same_shape(*this, logits, labels);
    return get_loss(ops::cross_entropy_dense(logits, labels));
  }
  UNDERTOW_CHECK(
      labels.ndim() == 1 && labels.shape(0) == logits.shape(0), ShapeError,
      "{}: with sparse=True labels are one class id per row of the logits, but logits have shape {} and labels {}",
      where(), logits.shape().str(), labels.shape().str());
  UNDERTOW_CHECK(is_integral(labels.dtype()), TypeError, "{}: with sparse=True labels must be integers but are {}",
                 where(), name_of(labels.dtype()));
  return get_loss(ops::cross_entropy_sparse(logits, labels));
}

}  // namespace undertow::nn
