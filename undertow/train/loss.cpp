// SPDX-License-Identifier: Apache-2.0
#include "undertow/train/loss.h"

#include "undertow/base/check.h"
#include "undertow/ops/loss.h"
#include "undertow/ops/ops.h"

namespace undertow::nn {

void LossBase::set_reduction(const std::string& reduction) {
  UNDERTOW_CHECK(reduction == "mean" || reduction == "sum" || reduction == "none", ValueError,
                 "reduction must be 'mean', 'sum' or 'none' but is '{}'", reduction);
  reduction_ = reduction;
}

Tensor LossBase::get_loss(const Tensor& x, const Tensor& weights) const {
  Tensor wide = ops::cast(x, is_floating(x.dtype()) ? compute_type(x.dtype()) : DType::kFloat32);
  if (weights.defined()) wide = ops::mul(wide, ops::cast(weights, wide.dtype()));
  return ops::reduce_loss(wide, reduction_);
}

namespace fn {

Tensor MSELoss::operator()(const Tensor& x, const Tensor& y) const { return ops::mse_loss(x, y, reduction); }
Tensor L1Loss::operator()(const Tensor& x, const Tensor& y) const { return ops::l1_loss(x, y, reduction); }
Tensor MAELoss::operator()(const Tensor& x, const Tensor& y) const { return ops::l1_loss(x, y, reduction); }
Tensor RMSELoss::operator()(const Tensor& x, const Tensor& y) const { return ops::sqrt(ops::mse_loss(x, y)); }
Tensor SmoothL1Loss::operator()(const Tensor& x, const Tensor& y) const {
  return ops::smooth_l1_loss(x, y, beta, reduction);
}
Tensor HuberLoss::operator()(const Tensor& x, const Tensor& y) const { return ops::huber_loss(x, y, reduction, delta); }
Tensor SoftMarginLoss::operator()(const Tensor& x, const Tensor& y) const {
  return ops::soft_margin_loss(x, y, reduction);
}

Tensor SoftmaxCrossEntropyWithLogits::operator()(const Tensor& logits, const Tensor& labels) const {
  UNDERTOW_CHECK(logits.ndim() == 2, ShapeError, "{}: logits must have 2 dimensions (rows, classes) but have shape {}",
                 kName, logits.shape().str());
  if (!sparse) {
    UNDERTOW_CHECK(logits.shape() == labels.shape(), ShapeError,
                   "{}: logits and labels must have the same shape, but logits have shape {} and labels {}", kName,
                   logits.shape().str(), labels.shape().str());
    return ops::reduce_loss(ops::cross_entropy_dense(logits, labels), reduction);
  }
  UNDERTOW_CHECK(
      labels.ndim() == 1 && labels.shape(0) == logits.shape(0), ShapeError,
      "{}: with sparse=True labels are one class id per row of the logits, but logits have shape {} and labels {}",
      kName, logits.shape().str(), labels.shape().str());
  UNDERTOW_CHECK(is_integral(labels.dtype()), TypeError, "{}: with sparse=True labels must be integers but are {}",
                 kName, name_of(labels.dtype()));
  return ops::reduce_loss(ops::cross_entropy_sparse(logits, labels), reduction);
}

Tensor CrossEntropyLoss::operator()(const Tensor& x, const Tensor& y) const {
  return ops::cross_entropy(x, y, weight, ignore_index, reduction, label_smoothing);
}
Tensor NLLLoss::operator()(const Tensor& x, const Tensor& y) const {
  return ops::nll_loss(x, y, weight, ignore_index, reduction);
}
Tensor BCELoss::operator()(const Tensor& x, const Tensor& y) const {
  return ops::binary_cross_entropy(x, y, weight, reduction);
}
Tensor BCEWithLogitsLoss::operator()(const Tensor& x, const Tensor& y) const {
  return ops::binary_cross_entropy_with_logits(x, y, weight, pos_weight, reduction);
}
Tensor KLDivLoss::operator()(const Tensor& x, const Tensor& y) const { return ops::kl_div(x, y, reduction); }
Tensor MultilabelMarginLoss::operator()(const Tensor& x, const Tensor& y) const {
  return ops::multilabel_margin_loss(x, y, reduction);
}
Tensor MultiLabelSoftMarginLoss::operator()(const Tensor& x, const Tensor& y) const {
  return ops::multilabel_soft_margin_loss(x, y, weight, reduction);
}
Tensor HingeEmbeddingLoss::operator()(const Tensor& x, const Tensor& y) const {
  return ops::hinge_embedding_loss(x, y, margin, reduction);
}
Tensor PoissonNLLLoss::operator()(const Tensor& x, const Tensor& y) const {
  return ops::poisson_nll_loss(x, y, log_input, full, eps, reduction);
}
Tensor DiceLoss::operator()(const Tensor& x, const Tensor& y) const { return ops::dice_loss(x, y, smooth); }

Tensor FocalLoss::operator()(const Tensor& logits, const Tensor& labels) const {
  UNDERTOW_CHECK(logits.ndim() >= 2 && labels.ndim() == logits.ndim() &&
                     (labels.shape(1) == 1 || labels.shape() == logits.shape()),
                 ShapeError,
                 "FocalLoss: logits (N, C, ...) need labels (N, 1, ...) of class ids or one-hot labels of their own "
                 "shape, but the shapes are {} and {}",
                 logits.shape().str(), labels.shape().str());
  const std::int64_t n = logits.shape(0), c = logits.shape(1);
  const std::int64_t rest = n * c == 0 ? 0 : logits.size() / (n * c);
  const Tensor log_p = ops::log_softmax(ops::reshape(logits, {n, c, rest}), 1);
  Tensor w = log_p;
  if (weight.defined()) w = ops::mul(log_p, ops::reshape(weight, {1, c, 1}));
  const Tensor terms = ops::neg(ops::mul(ops::pow(ops::sub(1.0, ops::exp(log_p)), gamma), w));
  Tensor loss;
  if (labels.shape(1) == 1) {
    const Tensor ids = ops::reshape(labels, {n, rest});
    const Tensor own = ops::nll_loss(ops::neg(terms), ids, {}, -100, "none");
    loss = ops::reduce_mean(own, {1});
  } else {
    loss = ops::reduce_mean(ops::mul(terms, ops::reshape(labels, {n, c, rest})), {-1});
  }
  return ops::reduce_loss(loss, reduction);
}

Tensor MarginRankingLoss::operator()(const Tensor& a, const Tensor& b, const Tensor& target) const {
  return ops::margin_ranking_loss(a, b, target, margin, reduction);
}
Tensor CosineEmbeddingLoss::operator()(const Tensor& a, const Tensor& b, const Tensor& labels) const {
  return ops::cosine_embedding_loss(a, b, labels, margin, reduction);
}
Tensor TripletMarginLoss::operator()(const Tensor& x, const Tensor& positive, const Tensor& negative,
                                     const std::optional<double>& margin_given) const {
  const double m = margin == 1.0 ? margin_given.value_or(1.0) : margin;
  return ops::triplet_margin_loss(x, positive, negative, m, p, eps, swap, reduction);
}
Tensor MultiMarginLoss::operator()(const Tensor& x, const Tensor& target,
                                   const std::optional<Tensor>& weight_given) const {
  return ops::multi_margin_loss(x, target, p, margin, weight.defined() ? weight : weight_given.value_or(Tensor()),
                                reduction);
}
Tensor GaussianNLLLoss::operator()(const Tensor& x, const Tensor& y, const Tensor& var) const {
  return ops::gaussian_nll_loss(x, y, var, full, eps, reduction);
}

void KLDivLoss::check() const {
  UNDERTOW_CHECK(reduction == "mean" || reduction == "sum" || reduction == "none" || reduction == "batchmean",
                 ValueError, "KLDivLoss: 'reduction' must be 'mean', 'batchmean', 'sum' or 'none' but is '{}'",
                 reduction);
}
void SmoothL1Loss::check() const {
  UNDERTOW_CHECK(beta >= 0, ValueError, "SmoothL1Loss: 'beta' must not be negative but is {}", beta);
}
void HuberLoss::check() const {
  UNDERTOW_CHECK(delta > 0, ValueError, "HuberLoss: 'delta' must be positive but is {}", delta);
}
void CrossEntropyLoss::check() const {
  UNDERTOW_CHECK(label_smoothing >= 0 && label_smoothing <= 1, ValueError,
                 "CrossEntropyLoss: 'label_smoothing' must be from 0 to 1 but is {}", label_smoothing);
}
void DiceLoss::check() const {
  UNDERTOW_CHECK(smooth > 0, ValueError, "DiceLoss: 'smooth' must be positive but is {}", smooth);
}
void CosineEmbeddingLoss::check() const {
  UNDERTOW_CHECK(margin >= -1 && margin <= 1, ValueError,
                 "CosineEmbeddingLoss: 'margin' must be from -1 to 1 but is {}", margin);
}
void MultiMarginLoss::check() const {
  UNDERTOW_CHECK(p == 1 || p == 2, ValueError, "MultiMarginLoss: 'p' must be 1 or 2 but is {}", p);
}
void GaussianNLLLoss::check() const {
  UNDERTOW_CHECK(eps > 0, ValueError, "GaussianNLLLoss: 'eps' must be positive but is {}", eps);
}

}  // namespace fn

}  // namespace undertow::nn
