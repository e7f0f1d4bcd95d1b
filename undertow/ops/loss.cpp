// SPDX-License-Identifier: Apache-2.0
// Losses that compare elements, rows or pairs. Those over classes stand in ops/class_loss.cpp.
#include "undertow/ops/loss.h"

#include <cmath>
#include <numbers>

#include "undertow/ops/activations.h"
#include "undertow/ops/loss_common.h"

namespace undertow::ops {

Tensor reduce_loss(const Tensor& x, const std::string& reduction) {
  if (reduction == "mean") return reduce_mean(x);
  if (reduction == "sum") return reduce_sum(x);
  UNDERTOW_CHECK(reduction == "none", ValueError, "reduction must be 'mean', 'sum' or 'none' but is '{}'", reduction);
  return x;
}

Tensor l1_loss(const Tensor& x, const Tensor& target, const std::string& reduction) {
  same_shape("l1_loss", x, target);
  return reduce_loss(abs(sub(wide(x), wide(target))), reduction);
}

Tensor mse_loss(const Tensor& x, const Tensor& target, const std::string& reduction) {
  same_shape("mse_loss", x, target);
  return reduce_loss(square(sub(wide(x), wide(target))), reduction);
}

Tensor smooth_l1_loss(const Tensor& x, const Tensor& target, double beta, const std::string& reduction) {
  same_shape("smooth_l1_loss", x, target);
  UNDERTOW_CHECK(beta >= 0, ValueError, "smooth_l1_loss: beta must not be negative, got {}", beta);
  const Tensor d = abs(sub(wide(x), wide(target)));
  if (beta == 0) return reduce_loss(d, reduction);
  return reduce_loss(select(less(d, beta), mul(square(d), 0.5 / beta), sub(d, 0.5 * beta)), reduction);
}

Tensor huber_loss(const Tensor& x, const Tensor& target, const std::string& reduction, double delta) {
  same_shape("huber_loss", x, target);
  UNDERTOW_CHECK(delta > 0, ValueError, "huber_loss: delta must be positive, got {}", delta);
  const Tensor d = abs(sub(wide(x), wide(target)));
  return reduce_loss(select(less(d, delta), mul(square(d), 0.5), mul(sub(d, 0.5 * delta), delta)), reduction);
}

Tensor soft_margin_loss(const Tensor& x, const Tensor& target, const std::string& reduction) {
  same_shape("soft_margin_loss", x, target);
  return reduce_loss(neg(logsigmoid(mul(wide(x), wide(target)))), reduction);
}

Tensor binary_cross_entropy(const Tensor& x, const Tensor& target, const Tensor& weight, const std::string& reduction) {
  same_shape("binary_cross_entropy", x, target);
  const Tensor p = wide(x), t = wide(target);
  const auto limited = [](const Tensor& v) { return log(add(v, 1e-12)); };
  Tensor loss = neg(add(mul(t, limited(p)), mul(sub(1.0, t), limited(sub(1.0, p)))));
  if (weight.defined()) loss = mul(loss, wide(weight));
  return reduce_loss(loss, reduction);
}

Tensor binary_cross_entropy_with_logits(const Tensor& x, const Tensor& target, const Tensor& weight,
                                        const Tensor& pos_weight, const std::string& reduction) {
  same_shape("binary_cross_entropy_with_logits", x, target);
  const Tensor v = wide(x), t = wide(target);
  const Tensor log_p = logsigmoid(v), log_q = sub(log_p, v);  // log(1 - sigmoid(x)) = log(sigmoid(x)) - x
  Tensor first = mul(t, log_p);
  if (pos_weight.defined()) first = mul(first, wide(pos_weight));
  Tensor loss = neg(add(first, mul(sub(1.0, t), log_q)));
  if (weight.defined()) loss = mul(loss, wide(weight));
  return reduce_loss(loss, reduction);
}

Tensor kl_div(const Tensor& x, const Tensor& target, const std::string& reduction) {
  same_shape("kl_div", x, target);
  const Tensor t = wide(target), zero = equal(t, 0.0);
  const Tensor loss = select(zero, 0.0, mul(t, sub(log(select(zero, 1.0, t)), wide(x))));
  if (reduction != "batchmean") return reduce_loss(loss, reduction);
  UNDERTOW_CHECK(x.ndim() >= 1, ShapeError, "kl_div: reduction 'batchmean' needs at least one dimension");
  return div(reduce_sum(loss), static_cast<double>(x.shape(0)));
}

Tensor cosine_embedding_loss(const Tensor& x1, const Tensor& x2, const Tensor& target, double margin,
                             const std::string& reduction) {
  same_shape("cosine_embedding_loss", x1, x2);
  UNDERTOW_CHECK(margin >= -1 && margin <= 1, ValueError,
                 "cosine_embedding_loss: margin must be from -1 to 1, but is {}", margin);
  UNDERTOW_CHECK(x1.ndim() >= 1 && target.ndim() == x1.ndim() - 1, ShapeError,
                 "cosine_embedding_loss: the target must have the inputs' shape {} without the second dimension, but "
                 "has {}",
                 x1.shape().str(), target.shape().str());
  const Axes axis{x1.ndim() == 1 ? 0 : 1};
  const Tensor a = wide(x1), b = wide(x2);
  const Tensor norms = mul(sqrt(reduce_sum(square(a), axis)), sqrt(reduce_sum(square(b), axis)));
  const Tensor cosine = div(reduce_sum(mul(a, b), axis), norms);
  const Tensor loss = add(select(equal(target, 1), sub(1.0, cosine), 0.0),
                          select(equal(target, -1), maximum(sub(cosine, margin), 0.0), 0.0));
  return reduce_loss(loss, reduction);
}

Tensor margin_ranking_loss(const Tensor& x1, const Tensor& x2, const Tensor& target, double margin,
                           const std::string& reduction) {
  same_shape("margin_ranking_loss", x1, x2);
  const Tensor d = mul(neg(wide(target)), sub(wide(x1), wide(x2)));
  return reduce_loss(relu(add(d, margin)), reduction);
}

Tensor pairwise_distance(const Tensor& x1, const Tensor& x2, double p, double eps, bool keep_dims) {
  UNDERTOW_CHECK(p > 0, ValueError, "pairwise_distance: p must be positive, got {}", p);
  const Tensor d = add(sub(wide(x1), wide(x2)), eps);
  if (p == 1) return reduce_sum(abs(d), {-1}, keep_dims);
  if (p == 2) return sqrt(reduce_sum(square(d), {-1}, keep_dims));
  return pow(reduce_sum(pow(abs(d), p), {-1}, keep_dims), 1 / p);
}

Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative, double margin,
                           std::int64_t p, double eps, bool swap, const std::string& reduction) {
  same_shape("triplet_margin_loss", anchor, positive);
  same_shape("triplet_margin_loss", anchor, negative);
  const auto distance = [&](const Tensor& a, const Tensor& b) {
    return pairwise_distance(a, b, static_cast<double>(p), eps);
  };
  Tensor far = distance(anchor, negative);
  if (swap) far = minimum(far, distance(positive, negative));
  return reduce_loss(relu(add(sub(distance(anchor, positive), far), margin)), reduction);
}

Tensor hinge_embedding_loss(const Tensor& x, const Tensor& target, double margin, const std::string& reduction) {
  same_shape("hinge_embedding_loss", x, target);
  const Tensor v = wide(x);
  const Tensor loss = add(select(greater(target, 0), v, 0.0), select(less(target, 0), relu(sub(margin, v)), 0.0));
  return reduce_loss(loss, reduction);
}

Tensor poisson_nll_loss(const Tensor& x, const Tensor& target, bool log_input, bool full, double eps,
                        const std::string& reduction) {
  same_shape("poisson_nll_loss", x, target);
  UNDERTOW_CHECK(eps > 0, ValueError, "poisson_nll_loss: eps must be positive, got {}", eps);
  const Tensor v = wide(x), t = wide(target);
  Tensor loss = log_input ? sub(exp(v), mul(t, v)) : sub(v, mul(t, log(add(v, eps))));
  if (full) {
    const Tensor large = greater(t, 1.0), safe = select(large, t, 1.0);
    const Tensor stirling = add(sub(mul(safe, log(safe)), safe), mul(log(mul(safe, 2 * std::numbers::pi)), 0.5));
    loss = add(loss, select(large, stirling, 0.0));
  }
  return reduce_loss(loss, reduction);
}

Tensor gaussian_nll_loss(const Tensor& x, const Tensor& target, const Tensor& var, bool full, double eps,
                         const std::string& reduction) {
  UNDERTOW_CHECK(eps > 0, ValueError, "gaussian_nll_loss: eps must be positive, got {}", eps);
  Tensor v = wide(var);
  if (var.shape() != x.shape() && var.ndim() == x.ndim() - 1) v = expand_dims(v, -1);
  v = maximum(v, eps);
  const Tensor loss = mul(add(log(v), div(square(sub(wide(x), wide(target))), v)), 0.5);
  return reduce_loss(full ? add(loss, 0.5 * std::log(2 * std::numbers::pi)) : loss, reduction);
}

Tensor dice_loss(const Tensor& x, const Tensor& target, double smooth) {
  same_shape("dice_loss", x, target);
  UNDERTOW_CHECK(smooth > 0, ValueError, "dice_loss: smooth must be positive, got {}", smooth);
  const Tensor v = wide(x), t = wide(target);
  const Tensor both = add(reduce_sum(square(v)), reduce_sum(square(t)));
  return sub(1.0, div(mul(reduce_sum(mul(v, t)), 2.0), add(both, smooth)));
}

}  // namespace undertow::ops
