// SPDX-License-Identifier: Apache-2.0
// ops/ctc.h: the loss of sequences whose alignment with their inputs is not known.
#pragma once

#include <cstdint>
#include <string>

#include "undertow/tensor/tensor.h"

namespace undertow::ops {

struct CtcLoss {
  Tensor loss;       ///< (N,), or a scalar when reduced
  Tensor log_alpha;  ///< (N, T, 2 S + 1): log probability of the prefixes that end at each place; -inf: impossible
};

/// Connectionist temporal classification (Graves et al., 2006): -log of the probability, summed over all alignments, of
/// `targets` (N, S) under `log_probs` (T, N, C), one log distribution a step. `input_lengths` and `target_lengths` (N,)
/// say how much of each row counts; what lies behind is not looked at. "mean" divides each loss by its target's length
/// (at least 1) first. A target longer than its input allows costs inf, and 0 without a gradient with `zero_infinity`.
/// A class out of range is an error naming it, in every mode. Throws ShapeError, TypeError, ValueError.
CtcLoss ctc_loss(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                 const Tensor& target_lengths, std::int64_t blank = 0, const std::string& reduction = "mean",
                 bool zero_infinity = false);

/// Softmax cross entropy of the true classes against `num_sampled` others drawn evenly, for many classes
/// (Jean et al., 2015). weights (C, dim), biases (C,), labels (N, num_true) or (N,), inputs (N, dim); the result is
/// (N,). `sampled` holds class ids (num_sampled,), and the counts at which labels (N, num_true) and sampled classes are
/// expected to be drawn; undefined: they are drawn here, each at most once, keyed by the seed and the step. A drawn
/// class that is a row's label does not count in that row with `remove_accidental_hits`.
struct SampledClasses {
  Tensor ids, true_expected, sampled_expected;
};
struct SampledSoftmax {
  std::int64_t num_sampled = 1, num_classes = 1, num_true = 1;
  bool remove_accidental_hits = true;
  std::uint64_t seed = 0;
};
Tensor sampled_softmax_loss(const Tensor& weights, const Tensor& biases, const Tensor& labels, const Tensor& inputs,
                            const SampledSoftmax& options, const SampledClasses& sampled = {});

}  // namespace undertow::ops
