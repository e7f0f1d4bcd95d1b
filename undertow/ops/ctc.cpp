// SPDX-License-Identifier: Apache-2.0
#include "undertow/ops/ctc.h"

#include <cmath>
#include <limits>

#include "undertow/ops/control.h"
#include "undertow/ops/loss_common.h"
#include "undertow/ops/random.h"
#include "undertow/ops/scatter.h"

namespace undertow::ops {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

/// log(sum of exp(x)) over the last axis. A row of -inf gives -inf, and gradients of 0.
Tensor log_of_sum(const Tensor& x) {
  const Tensor top = stop_gradient(reduce_max(x, {-1}, true));
  const Tensor base = select(equal(top, kNever), 0.0, top);
  const Tensor sum = reduce_sum(exp(sub(x, base)), {-1}, true);
  const Tensor nothing = equal(sum, 0.0);
  return squeeze(select(nothing, kNever, add(log(select(nothing, 1.0, sum)), base)), {-1});
}

/// Places of (N, L) moved `by` to the right; -inf comes in.
Tensor moved(const Tensor& x, std::int64_t by) {
  const std::int64_t n = x.shape(0), l = x.shape(1), kept = std::max<std::int64_t>(l - by, 0);
  if (kept == 0) return broadcast_to(constant(kNever, x.dtype()), Shape{n, l});
  return concat({broadcast_to(constant(kNever, x.dtype()), Shape{n, by}), slice(x, {0, 0}, {1, 1}, Shape{n, kept})}, 1);
}

void check(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths, const Tensor& target_lengths,
           std::int64_t blank) {
  UNDERTOW_CHECK(log_probs.ndim() == 3 && log_probs.shape(0) > 0, ShapeError,
                 "ctc_loss: log_probs must be (T, N, C) with at least one step, but has shape {}",
                 log_probs.shape().str());
  UNDERTOW_CHECK(is_floating(log_probs.dtype()), TypeError, "ctc_loss: log_probs must be floats but are {}",
                 name_of(log_probs.dtype()));
  const std::int64_t n = log_probs.shape(1), c = log_probs.shape(2);
  UNDERTOW_CHECK(targets.ndim() == 2 && targets.shape(0) == n, ShapeError,
                 "ctc_loss: targets must be (N, S) with N = {} as log_probs has, but has shape {}", n,
                 targets.shape().str());
  UNDERTOW_CHECK(blank >= 0 && blank < c, ValueError, "ctc_loss: blank must be from 0 to {} but is {}", c - 1, blank);
  for (const auto& [name, t] : {std::pair{"input_lengths", &input_lengths}, {"target_lengths", &target_lengths}})
    UNDERTOW_CHECK(t->ndim() == 1 && t->shape(0) == n, ShapeError,
                   "ctc_loss: {} must hold one number a row, shape ({},), but has shape {}", name, n, t->shape().str());
  for (const auto& [name, t] :
       {std::pair{"targets", &targets}, {"input_lengths", &input_lengths}, {"target_lengths", &target_lengths}})
    UNDERTOW_CHECK(is_integral(t->dtype()), TypeError, "ctc_loss: {} must be integers but are {}", name,
                   name_of(t->dtype()));
}

}  // namespace

CtcLoss ctc_loss(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                 const Tensor& target_lengths, std::int64_t blank, const std::string& reduction, bool zero_infinity) {
  check(log_probs, targets, input_lengths, target_lengths, blank);
  const std::int64_t steps = log_probs.shape(0), n = log_probs.shape(1), s = targets.shape(1), places = 2 * s + 1;
  const Tensor probs = wide(log_probs);
  const Tensor frames = cast(input_lengths, DType::kInt64), letters = cast(target_lengths, DType::kInt64);

  // The target with a blank before, between and after its letters; blanks also where it has ended.
  const Tensor used = less(iota(Shape{n, s}, 1, DType::kInt64), expand_dims(letters, 1));
  // gather counts negative ids from the end: moved out of its range, they are errors.
  const Tensor given = cast(targets, DType::kInt64);
  const Tensor strict = select(less(given, 0), sub(given, log_probs.shape(2)), given);
  const Tensor ids = select(used, strict, constant_int(blank, DType::kInt64));
  const Tensor blanks = broadcast_to(constant_int(blank, DType::kInt64), Shape{n, s});
  const Tensor pairs = reshape(stack({blanks, ids}, 2), {n, 2 * s});
  const Tensor last = broadcast_to(constant_int(blank, DType::kInt64), Shape{n, 1});
  const Tensor labels = s == 0 ? last : concat({pairs, last}, 1);
  const Tensor at = gather_elements(probs, broadcast_to(expand_dims(labels, 0), Shape{steps, n, places}), 2);

  // A letter may follow the letter before it without a blank between them, unless they are the same.
  const Tensor place = iota(Shape{n, places}, 1, DType::kInt64);
  Tensor skips = broadcast_to(constant_int(0, DType::kBool), Shape{n, places});
  if (s > 0) {
    const Tensor two_before = concat({broadcast_to(constant_int(blank, DType::kInt64), Shape{n, 2}),
                                      slice(labels, {0, 0}, {1, 1}, Shape{n, places - 2})},
                                     1);
    skips = logical_and(greater_equal(place, 2), logical_and(not_equal(labels, blank), not_equal(labels, two_before)));
  }
  // Before the first step the only prefix is the empty one, at a place before the first blank: from there the first
  // blank and the first letter can be reached.
  const Tensor starts = logical_or(equal(place, 0), logical_and(equal(place, 1), expand_dims(greater(letters, 0), 1)));
  const Tensor first =
      select(starts, reshape(slice(at, {0, 0, 0}, {1, 1, 1}, Shape{1, n, places}), {n, places}), kNever);

  Tensor alpha = first, all = expand_dims(first, 0);
  if (steps > 1) {
    const Tensor rest = slice(at, {1, 0, 0}, {1, 1, 1}, Shape{steps - 1, n, places});
    const Tensor times = add(iota(Shape{steps - 1}, 0, DType::kInt64), 1);
    const ScanResult r = scan(
        [&](const Tensors& carry, const Tensors& x) -> ScanResult {
          const Tensor& a = carry[0];
          const Tensor before = stack({a, moved(a, 1), select(skips, moved(a, 2), kNever)}, 2);
          const Tensor next = add(log_of_sum(before), x[0]);
          const Tensor now = select(expand_dims(less(x[1], frames), 1), next, a);
          return {{now}, {now}};
        },
        {first}, {rest, times});
    alpha = r.carry[0];
    all = concat({all, r.ys[0]}, 0);
  }
  const Tensor end = expand_dims(mul(letters, 2), 1);
  const Tensor final_blank = equal(place, end);
  const Tensor final_letter = logical_and(equal(place, sub(end, 1)), expand_dims(greater(letters, 0), 1));
  Tensor loss = neg(log_of_sum(select(logical_or(final_blank, final_letter), alpha, kNever)));
  if (zero_infinity) loss = select(isinf(loss), 0.0, loss);
  if (reduction == "mean") loss = div(loss, cast(maximum(letters, 1), loss.dtype()));
  return {reduce_loss(loss, reduction), transpose(all, {1, 0, 2})};
}

Tensor sampled_softmax_loss(const Tensor& weights, const Tensor& biases, const Tensor& labels, const Tensor& inputs,
                            const SampledSoftmax& o, const SampledClasses& given) {
  const char* what = "sampled_softmax_loss";
  UNDERTOW_CHECK(o.num_true >= 1 && o.num_true <= o.num_classes, ValueError,
                 "{}: num_true must be from 1 to num_classes ({}) but is {}", what, o.num_classes, o.num_true);
  UNDERTOW_CHECK(o.num_sampled >= 1 && o.num_sampled <= o.num_classes, ValueError,
                 "{}: num_sampled must be from 1 to num_classes ({}) but is {}", what, o.num_classes, o.num_sampled);
  UNDERTOW_CHECK(weights.ndim() == 2 && weights.shape(0) == o.num_classes && biases.shape() == Shape{o.num_classes},
                 ShapeError, "{}: weights must be ({}, dim) and biases ({},), but they have shapes {} and {}", what,
                 o.num_classes, o.num_classes, weights.shape().str(), biases.shape().str());
  UNDERTOW_CHECK(inputs.ndim() == 2 && inputs.shape(1) == weights.shape(1), ShapeError,
                 "{}: logits must be (N, {}) as the weights have it, but have shape {}", what, weights.shape(1),
                 inputs.shape().str());
  UNDERTOW_CHECK(is_integral(labels.dtype()), TypeError, "{}: labels must be integers but are {}", what,
                 name_of(labels.dtype()));
  const std::int64_t n = inputs.shape(0), dim = inputs.shape(1);
  UNDERTOW_CHECK(labels.size() == n * o.num_true, ShapeError, "{}: labels must be ({}, {}) but have shape {}", what, n,
                 o.num_true, labels.shape().str());
  const Tensor truth = reshape(labels, {n, o.num_true}), x = wide(inputs);
  SampledClasses drawn = given;
  if (!drawn.ids.defined()) {
    drawn.ids = slice(random_permutation(o.num_classes, DType::kInt64, o.seed), {0}, {1}, Shape{o.num_sampled});
    const double expected = static_cast<double>(o.num_sampled) / static_cast<double>(o.num_classes);
    drawn.true_expected = drawn.sampled_expected = constant(expected, x.dtype());
  }
  const Tensor own = reshape(gather(weights, reshape(truth, {n * o.num_true}), 0), {n, o.num_true, dim});
  Tensor own_logits = add(reduce_sum(mul(expand_dims(x, 1), wide(own)), {2}), wide(gather(biases, truth, 0)));
  Tensor others = add(matmul(x, wide(gather(weights, drawn.ids, 0)), false, true), wide(gather(biases, drawn.ids, 0)));
  own_logits = sub(own_logits, log(wide(drawn.true_expected)));
  others = sub(others, log(wide(drawn.sampled_expected)));
  if (o.remove_accidental_hits) {
    const Tensor ids = reshape(cast(drawn.ids, DType::kInt64), {1, 1, -1});
    others = select(reduce_any(equal(expand_dims(cast(truth, DType::kInt64), 2), ids), {1}), kNever, others);
  }
  const Tensor log_p = log_softmax(concat({own_logits, others}, 1), 1);
  const Tensor hits = slice(log_p, {0, 0}, {1, 1}, Shape{n, o.num_true});
  return neg(reduce_mean(hits, {1}));
}

}  // namespace undertow::ops
