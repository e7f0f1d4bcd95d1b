// SPDX-License-Identifier: Apache-2.0
// ops/loss.h: loss functions. `reduction` is "mean", "sum" or "none". Half types are computed in float32, and the loss
// is float32 then. Arguments of the same role must have the same shape: nothing is broadcast unless said so.
#pragma once

#include <cstdint>
#include <string>

#include "undertow/tensor/tensor.h"

namespace undertow::ops {

/// The mean, the sum, or x itself. Throws ValueError for other words.
Tensor reduce_loss(const Tensor& x, const std::string& reduction);

Tensor l1_loss(const Tensor& x, const Tensor& target, const std::string& reduction = "mean");
Tensor mse_loss(const Tensor& x, const Tensor& target, const std::string& reduction = "mean");
/// d^2 / (2 beta) where d = |x - target| < beta, else d - beta / 2; beta 0: d.
Tensor smooth_l1_loss(const Tensor& x, const Tensor& target, double beta = 1, const std::string& reduction = "none");
/// d^2 / 2 where d = |x - target| < delta, else delta (d - delta / 2) (Huber, 1964).
Tensor huber_loss(const Tensor& x, const Tensor& target, const std::string& reduction = "mean", double delta = 1);
/// log(1 + exp(-target x)), targets 1 and -1.
Tensor soft_margin_loss(const Tensor& x, const Tensor& target, const std::string& reduction = "mean");

/// Of log probabilities (N, C, d...) and class ids (N, d...) of any integer type; or (C,) and a scalar. `weight` (C,)
/// may be undefined; "mean" divides by the weights of the targets. Rows with ignore_index do not count. A class out of
/// range is an error naming value, row and range, in every mode. Smoothing as in PyTorch.
Tensor nll_loss(const Tensor& log_probs, const Tensor& target, const Tensor& weight = {},
                std::int64_t ignore_index = -100, const std::string& reduction = "mean", double label_smoothing = 0);
/// nll_loss of log_softmax; or, with floating targets of the logits' shape, -sum(target * log_softmax), whose "mean"
/// is over the rows.
Tensor cross_entropy(const Tensor& logits, const Tensor& target, const Tensor& weight = {},
                     std::int64_t ignore_index = -100, const std::string& reduction = "mean",
                     double label_smoothing = 0);

/// -(target log(x + e) + (1 - target) log(1 - x + e)), e = 1e-12. `weight` may be undefined; it broadcasts.
Tensor binary_cross_entropy(const Tensor& x, const Tensor& target, const Tensor& weight = {},
                            const std::string& reduction = "mean");
/// The same of sigmoid(x), without overflow; pos_weight multiplies the first term. Both weights broadcast.
Tensor binary_cross_entropy_with_logits(const Tensor& x, const Tensor& target, const Tensor& weight = {},
                                        const Tensor& pos_weight = {}, const std::string& reduction = "mean");
/// target (log target - x), 0 where target is 0; also reduction "batchmean" (the sum over the number of rows).
Tensor kl_div(const Tensor& x, const Tensor& target, const std::string& reduction = "mean");
/// x1, x2 (N, D) (or (D,)), target (N,) of 1 and -1: 1 - cos, or max(cos - margin, 0).
Tensor cosine_embedding_loss(const Tensor& x1, const Tensor& x2, const Tensor& target, double margin = 0,
                             const std::string& reduction = "mean");
/// max(-target (x1 - x2) + margin, 0)
Tensor margin_ranking_loss(const Tensor& x1, const Tensor& x2, const Tensor& target, double margin = 0,
                           const std::string& reduction = "mean");
/// max(d(anchor, positive) - d(anchor, negative) + margin, 0) with d the p-norm of the difference + eps over the last
/// axis; swap: the nearer of d(anchor, negative) and d(positive, negative).
Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative, double margin = 1,
                           std::int64_t p = 2, double eps = 1e-6, bool swap = false,
                           const std::string& reduction = "mean");
/// Mean over the classes j other than the target's of max(margin - x[target] + x[j], 0)^p, times weight[target].
Tensor multi_margin_loss(const Tensor& x, const Tensor& target, std::int64_t p = 1, double margin = 1,
                         const Tensor& weight = {}, const std::string& reduction = "mean");
/// Targets are class ids (N, C), up to the first -1 of a row: mean over the classes j that are none of them, and those
/// that are, of max(1 - (x[target] - x[j]), 0).
Tensor multilabel_margin_loss(const Tensor& x, const Tensor& target, const std::string& reduction = "mean");
/// Binary cross entropy with logits, averaged over the classes (the last axis).
Tensor multilabel_soft_margin_loss(const Tensor& x, const Tensor& target, const Tensor& weight = {},
                                   const std::string& reduction = "mean");
/// x where target is 1, max(margin - x, 0) where it is -1.
Tensor hinge_embedding_loss(const Tensor& x, const Tensor& target, double margin = 1,
                            const std::string& reduction = "mean");
/// exp(x) - target x with log_input, else x - target log(x + eps); `full` adds Stirling's approximation of log target!.
Tensor poisson_nll_loss(const Tensor& x, const Tensor& target, bool log_input = true, bool full = false,
                        double eps = 1e-8, const std::string& reduction = "mean");
/// (log max(var, eps) + (x - target)^2 / max(var, eps)) / 2; `full` adds log(2 pi) / 2. var broadcasts.
Tensor gaussian_nll_loss(const Tensor& x, const Tensor& target, const Tensor& var, bool full = false, double eps = 1e-6,
                         const std::string& reduction = "mean");
/// 1 - 2 sum(x t) / (sum(x^2) + sum(t^2) + smooth)
Tensor dice_loss(const Tensor& x, const Tensor& target, double smooth = 1e-5);

/// The p-norm of x1 - x2 + eps over the last axis.
Tensor pairwise_distance(const Tensor& x1, const Tensor& x2, double p = 2, double eps = 1e-6, bool keep_dims = false);

}  // namespace undertow::ops
