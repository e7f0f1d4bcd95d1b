// SPDX-License-Identifier: Apache-2.0
// undertow.ops: losses and distances.
#include "python/src/ops_nn.h"
#include "undertow/ops/ctc.h"
#include "undertow/ops/loss.h"

namespace undertow::python {

void bind_ops_losses(nb::module_& m) {
  const nb::arg_v mean = "reduction"_a = "mean";
  m.def("l1_loss", &ops::l1_loss, "input"_a, "target"_a, mean, "|input - target|, reduced.");
  m.def("mse_loss", &ops::mse_loss, "input"_a, "target"_a, mean, "(input - target)^2, reduced.");
  m.def("smooth_l1_loss", &ops::smooth_l1_loss, "input"_a, "target"_a, "beta"_a = 1.0, "reduction"_a = "none",
        "d^2 / (2 beta) where d = |input - target| < beta, else d - beta / 2.");
  m.def("huber_loss", &ops::huber_loss, "input"_a, "target"_a, mean, "delta"_a = 1.0,
        "d^2 / 2 where d = |input - target| < delta, else delta (d - delta / 2).");
  m.def("soft_margin_loss", &ops::soft_margin_loss, "input"_a, "target"_a, mean, "log(1 + exp(-target input))");
  m.def(
      "nll_loss",
      [](const Tensor& x, const Tensor& t, const MaybeTensor& w, std::int64_t ignore, const std::string& r, double s) {
        return ops::nll_loss(x, t, or_none(w), ignore, r, s);
      },
      "inputs"_a, "target"_a, "weight"_a.none() = nb::none(), "ignore_index"_a = -100, mean, "label_smoothing"_a = 0.0,
      "Negative log likelihood of log probabilities (N, C, ...) with class ids (N, ...).");
  m.def(
      "cross_entropy",
      [](const Tensor& x, const Tensor& t, const MaybeTensor& w, std::int64_t ignore, const std::string& r, double s) {
        return ops::cross_entropy(x, t, or_none(w), ignore, r, s);
      },
      "input"_a, "target"_a, "weight"_a.none() = nb::none(), "ignore_index"_a = -100, mean, "label_smoothing"_a = 0.0,
      "Cross entropy of logits (N, C, ...) with class ids (N, ...) of any integer type, or probabilities of the "
      "logits' shape. A class out of range raises IndexError in every mode; rows with ignore_index do not count.");
  m.def(
      "binary_cross_entropy",
      [](const Tensor& x, const Tensor& t, const MaybeTensor& w, const std::string& r) {
        return ops::binary_cross_entropy(x, t, or_none(w), r);
      },
      "logits"_a, "labels"_a, "weight"_a.none() = nb::none(), mean, "Binary cross entropy of probabilities.");
  m.def(
      "binary_cross_entropy_with_logits",
      [](const Tensor& x, const Tensor& t, const MaybeTensor& w, const MaybeTensor& pos, const std::string& r) {
        return ops::binary_cross_entropy_with_logits(x, t, or_none(w), or_none(pos), r);
      },
      "input"_a, "target"_a, "weight"_a.none() = nb::none(), "pos_weight"_a.none() = nb::none(), mean,
      "Binary cross entropy of sigmoid(input), without overflow.");
  m.def("kl_div", &ops::kl_div, "logits"_a, "labels"_a, mean, "labels (log labels - logits); also 'batchmean'.");
  m.def("cosine_embedding_loss", &ops::cosine_embedding_loss, "input1"_a, "input2"_a, "target"_a, "margin"_a = 0.0,
        mean, "1 - cos where target is 1, max(cos - margin, 0) where -1.");
  m.def("margin_ranking_loss", &ops::margin_ranking_loss, "input1"_a, "input2"_a, "target"_a, "margin"_a = 0.0, mean,
        "max(-target (input1 - input2) + margin, 0)");
  m.def("triplet_margin_loss", &ops::triplet_margin_loss, "anchor"_a, "positive"_a, "negative"_a, "margin"_a = 1.0,
        "p"_a = 2, "eps"_a = 1e-6, "swap"_a = false, mean,
        "max(d(anchor, positive) - d(anchor, negative) + margin, 0)");
  m.def(
      "multi_margin_loss",
      [](const Tensor& x, const Tensor& t, std::int64_t p, double margin, const MaybeTensor& w, const std::string& r) {
        return ops::multi_margin_loss(x, t, p, margin, or_none(w), r);
      },
      "input"_a, "target"_a, "p"_a = 1, "margin"_a = 1.0, "weight"_a.none() = nb::none(), mean,
      "Mean over the other classes of max(margin - x[target] + x[j], 0)^p.");
  m.def("multilabel_margin_loss", &ops::multilabel_margin_loss, "input"_a, "target"_a, mean,
        "Margins of all target classes over all others.");
  m.def(
      "multilabel_soft_margin_loss",
      [](const Tensor& x, const Tensor& t, const MaybeTensor& w, const std::string& r) {
        return ops::multilabel_soft_margin_loss(x, t, or_none(w), r);
      },
      "input"_a, "target"_a, "weight"_a.none() = nb::none(), mean,
      "Binary cross entropy with logits, averaged over the classes.");
  m.def("hinge_embedding_loss", &ops::hinge_embedding_loss, "inputs"_a, "targets"_a, "margin"_a = 1.0, mean,
        "inputs where targets are 1, max(margin - inputs, 0) where -1.");
  m.def("gaussian_nll_loss", &ops::gaussian_nll_loss, "x"_a, "target"_a, "var"_a, "full"_a = false, "eps"_a = 1e-6,
        mean, "(log var + (x - target)^2 / var) / 2, var at least eps.");
  m.def(
      "ctc_loss",
      [](const Tensor& x, const Tensor& y, const Tensor& inputs, const Tensor& targets, std::int64_t blank,
         const std::string& r, bool zero) {
        ops::CtcLoss loss = ops::ctc_loss(x, y, inputs, targets, blank, r, zero);
        return std::pair(loss.loss, loss.log_alpha);
      },
      "log_probs"_a, "targets"_a, "input_lengths"_a, "target_lengths"_a, "blank"_a = 0, mean, "zero_infinity"_a = false,
      "(-log of the probability of targets (N, S) under log_probs (T, N, C), log_alpha (N, T, 2 S + 1)). A target that "
      "its input is too short for costs inf.");
  m.def("pairwise_distance", &ops::pairwise_distance, "x1"_a, "x2"_a, "p"_a = 2.0, "eps"_a = 1e-6, "keepdim"_a = false,
        "p-norm of the difference over the last axis.");
}

}  // namespace undertow::python
