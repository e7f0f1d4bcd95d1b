// SPDX-License-Identifier: Apache-2.0
// Losses over classes.
#include "undertow/ops/dispatch.h"
#include "undertow/ops/loss_common.h"

namespace undertow::ops {
namespace {

/// Axis of the classes of logits (N, C, d...) or (C,).
int class_axis(const Tensor& x) { return x.ndim() == 1 ? 0 : 1; }

void need_ids(const char* what, const Tensor& x, const Tensor& target) {
  Shape want;
  for (int d = 0; d < x.ndim(); ++d)
    if (d != class_axis(x)) want.push_back(x.shape(d));
  UNDERTOW_CHECK(x.ndim() >= 1 && target.shape() == want, ShapeError,
                 "{}: with an input of shape {} class ids must have shape {}, but they have {}", what, x.shape().str(),
                 want.str(), target.shape().str());
  UNDERTOW_CHECK(is_integral(target.dtype()), TypeError, "{}: class ids must be integers but are {}", what,
                 name_of(target.dtype()));
}

void need_weight(const char* what, const Tensor& weight, std::int64_t classes) {
  UNDERTOW_CHECK(!weight.defined() || (weight.ndim() == 1 && weight.shape(0) == classes), ShapeError,
                 "{}: the weight must have one value for each of the {} classes, but has shape {}", what, classes,
                 weight.shape().str());
}

/// Whether element c along `axis` is the target's class; the error for ids out of range comes with it.
Tensor one_hot_mask(const Tensor& like, const Tensor& ids, int axis) {
  apply("check_index", {ids}, {{"low", std::int64_t{0}}, {"high", like.shape(axis)}});
  return equal(cast(expand_dims(ids, axis), DType::kInt32), iota(like.shape(), axis, DType::kInt32));
}

Tensor class_weights(const Tensor& weight, const Tensor& x, int axis) {
  Ints shape(static_cast<std::size_t>(x.ndim()), 1);
  shape[static_cast<std::size_t>(axis)] = -1;
  return cast(reshape(weight, shape), x.dtype());
}

void check_smoothing(const char* what, double smoothing) {
  UNDERTOW_CHECK(smoothing >= 0 && smoothing <= 1, ValueError, "{}: label_smoothing must be from 0 to 1, got {}", what,
                 smoothing);
}

/// Losses of class ids by rows, reduced. `rows` are not yet masked.
Tensor finish_ids(const Tensor& rows, const Tensor& row_weight, const std::string& reduction) {
  const Tensor masked = select(equal(row_weight, 0.0), 0.0, rows);
  if (reduction != "mean") return reduce_loss(masked, reduction);
  return div(reduce_sum(masked), reduce_sum(row_weight));
}

}  // namespace

Tensor nll_loss(const Tensor& log_probs, const Tensor& target, const Tensor& weight, std::int64_t ignore_index,
                const std::string& reduction, double label_smoothing) {
  need_ids("nll_loss", log_probs, target);
  check_smoothing("nll_loss", label_smoothing);
  const int axis = class_axis(log_probs);
  const std::int64_t classes = log_probs.shape(axis);
  need_weight("nll_loss", weight, classes);
  const Tensor x = wide(log_probs), kept = not_equal(target, ignore_index);
  const Tensor hit = one_hot_mask(x, select(kept, target, std::int64_t{0}), axis);
  const Tensor zero = constant(0, x.dtype());
  Tensor row_weight = cast(kept, x.dtype());
  Tensor weighted = x;
  if (weight.defined()) {
    const Tensor w = class_weights(weight, x, axis);
    weighted = mul(x, w);
    row_weight = mul(row_weight, reduce_sum(select(hit, w, zero), {axis}));
  }
  Tensor rows = neg(reduce_sum(select(hit, weighted, zero), {axis}));
  if (label_smoothing > 0) {
    const Tensor even = mul(reduce_sum(weighted, {axis}), -label_smoothing / static_cast<double>(classes));
    rows = add(mul(rows, 1 - label_smoothing), even);
    // A class of weight 0 still has its share of the even part: mask by the ignored rows alone.
    rows = select(kept, rows, 0.0);
    if (reduction != "mean") return reduce_loss(rows, reduction);
    return div(reduce_sum(rows), reduce_sum(row_weight));
  }
  return finish_ids(rows, row_weight, reduction);
}

Tensor cross_entropy(const Tensor& logits, const Tensor& target, const Tensor& weight, std::int64_t ignore_index,
                     const std::string& reduction, double label_smoothing) {
  check_smoothing("cross_entropy", label_smoothing);
  UNDERTOW_CHECK(logits.ndim() >= 1, ShapeError, "cross_entropy: the input must be (N, C, ...) or (C,), got a scalar");
  const int axis = class_axis(logits);
  const std::int64_t classes = logits.shape(axis);
  if (!is_floating(target.dtype())) {
    need_ids("cross_entropy", logits, target);
    if (logits.ndim() == 2 && !weight.defined() && label_smoothing == 0) {
      const Tensor kept = not_equal(target, ignore_index);
      const Tensor rows = cross_entropy_sparse(logits, select(kept, target, std::int64_t{0}));
      return finish_ids(rows, cast(kept, rows.dtype()), reduction);
    }
    return nll_loss(log_softmax(wide(logits), axis), target, weight, ignore_index, reduction, label_smoothing);
  }
  UNDERTOW_CHECK(target.shape() == logits.shape(), ShapeError,
                 "cross_entropy: probabilities must have the input's shape {}, but have {}; class ids must be integers",
                 logits.shape().str(), target.shape().str());
  need_weight("cross_entropy", weight, classes);
  Tensor p = wide(target);
  if (label_smoothing > 0) p = add(mul(p, 1 - label_smoothing), label_smoothing / static_cast<double>(classes));
  Tensor terms = mul(log_softmax(cast(logits, p.dtype()), axis), p);
  if (weight.defined()) terms = mul(terms, class_weights(weight, terms, axis));
  return reduce_loss(neg(reduce_sum(terms, {axis})), reduction);
}

Tensor multi_margin_loss(const Tensor& x, const Tensor& target, std::int64_t p, double margin, const Tensor& weight,
                         const std::string& reduction) {
  UNDERTOW_CHECK(p == 1 || p == 2, ValueError, "multi_margin_loss: p must be 1 or 2, got {}", p);
  UNDERTOW_CHECK(x.ndim() == 2, ShapeError, "multi_margin_loss: the input must be (N, C), but its shape is {}",
                 x.shape().str());
  need_ids("multi_margin_loss", x, target);
  need_weight("multi_margin_loss", weight, x.shape(1));
  const Tensor v = wide(x), hit = one_hot_mask(v, target, 1), zero = constant(0, v.dtype());
  const Tensor own = reduce_sum(select(hit, v, zero), {1}, true);
  Tensor terms = relu(add(sub(v, own), margin));
  if (p == 2) terms = square(terms);
  Tensor rows = div(reduce_sum(select(hit, zero, terms), {1}), static_cast<double>(x.shape(1)));
  if (weight.defined()) rows = mul(rows, reduce_sum(select(hit, class_weights(weight, v, 1), zero), {1}));
  return reduce_loss(rows, reduction);
}

Tensor multilabel_margin_loss(const Tensor& x, const Tensor& target, const std::string& reduction) {
  same_shape("multilabel_margin_loss", x, target);
  UNDERTOW_CHECK(x.ndim() == 1 || x.ndim() == 2, ShapeError,
                 "multilabel_margin_loss: the input must be (N, C) or (C,), but its shape is {}", x.shape().str());
  UNDERTOW_CHECK(is_integral(target.dtype()), TypeError, "multilabel_margin_loss: targets must be integers but are {}",
                 name_of(target.dtype()));
  const Tensor v = x.ndim() == 1 ? expand_dims(wide(x), 0) : wide(x);
  const Tensor ids = x.ndim() == 1 ? expand_dims(target, 0) : target;
  const std::int64_t n = v.shape(0), c = v.shape(1);
  apply("check_index", {ids}, {{"low", std::int64_t{-1}}, {"high", c}});
  // valid[n, t]: no -1 at or before place t. ends[n, t, s]: place s <= t holds -1.
  const Shape pairs{n, c, c};
  const Tensor before = less_equal(iota(pairs, 2, DType::kInt32), iota(pairs, 1, DType::kInt32));
  const Tensor ends = logical_and(before, less(expand_dims(ids, 1), 0));
  const Tensor valid = logical_not(reduce_any(ends, {2}));
  // is[n, t, j]: class j is the t-th target.
  const Tensor is = logical_and(expand_dims(valid, 2),
                                equal(cast(expand_dims(ids, 2), DType::kInt32), iota(pairs, 2, DType::kInt32)));
  const Tensor wanted = reduce_any(is, {1});
  const Tensor zero = constant(0, v.dtype());
  const Tensor own = reduce_sum(select(is, expand_dims(v, 1), zero), {2});  // x of the t-th target
  const Tensor terms = relu(sub(1.0, sub(expand_dims(own, 2), expand_dims(v, 1))));
  const Tensor counts = logical_and(expand_dims(valid, 2), expand_dims(logical_not(wanted), 1));
  const Tensor rows = div(reduce_sum(select(counts, terms, zero), {1, 2}), static_cast<double>(c));
  return reduce_loss(x.ndim() == 1 ? reshape(rows, {}) : rows, reduction);
}

Tensor multilabel_soft_margin_loss(const Tensor& x, const Tensor& target, const Tensor& weight,
                                   const std::string& reduction) {
  same_shape("multilabel_soft_margin_loss", x, target);
  UNDERTOW_CHECK(x.ndim() >= 1, ShapeError, "multilabel_soft_margin_loss: the input has no classes (it is a scalar)");
  const Tensor all = binary_cross_entropy_with_logits(x, target, weight, {}, "none");
  return reduce_loss(reduce_mean(all, {-1}), reduction);
}

}  // namespace undertow::ops
