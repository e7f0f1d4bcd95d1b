// SPDX-License-Identifier: Apache-2.0
#include "undertow/train/sequence_loss.h"

#include "undertow/base/check.h"
#include "undertow/ops/loss.h"
#include "undertow/ops/ops.h"

namespace undertow::nn {
namespace fn {
namespace {

Tensor lengths_of(const Value& v, const char* name) {
  if (v.is_tensor()) return v.tensor().ndim() == 0 ? ops::reshape(v.tensor(), {1}) : v.tensor();
  std::vector<std::int64_t> numbers;
  if (const auto* i = std::get_if<std::int64_t>(&v.variant())) numbers = {*i};
  else if (v.is_list()) {
    for (const Value& item : v.list()) {
      const auto* i = std::get_if<std::int64_t>(&item.variant());
      UNDERTOW_CHECK(i != nullptr, TypeError, "CTCLoss: '{}' must be a Tensor or integers", name);
      numbers.push_back(*i);
    }
  } else {
    throw TypeError(fmt::format("CTCLoss: '{}' must be a Tensor or integers", name));
  }
  return Tensor(numbers);
}

}  // namespace

Tensor CTCLoss::operator()(const Tensor& log_probs, const Tensor& targets, const Value& input_lengths,
                           const Value& target_lengths) const {
  const bool single = log_probs.ndim() == 2;
  const Tensor x = single ? ops::expand_dims(log_probs, 1) : log_probs;
  const Tensor y = single && targets.ndim() == 1 ? ops::expand_dims(targets, 0) : targets;
  const Tensor loss = ops::ctc_loss(x, y, lengths_of(input_lengths, "input_lengths"),
                                    lengths_of(target_lengths, "target_lengths"), blank, reduction, zero_infinity)
                          .loss;
  return single && reduction == "none" ? ops::squeeze(loss, {0}) : loss;
}

void SampledSoftmaxLoss::check() const {
  UNDERTOW_CHECK(sampled_values.empty() || sampled_values.size() == 3, ValueError,
                 "SampledSoftmaxLoss: 'sampled_values' must hold 3 tensors (class ids, expected counts of the labels "
                 "and of the classes) but holds {}",
                 sampled_values.size());
  UNDERTOW_CHECK(seed >= 0, ValueError, "SampledSoftmaxLoss: 'seed' must not be negative but is {}", seed);
  for (const auto& [name, v] : {std::pair{"num_sampled", num_sampled}, std::pair{"num_true", num_true}})
    UNDERTOW_CHECK(v >= 1 && v <= num_classes, ValueError,
                   "SampledSoftmaxLoss: '{}' must be from 1 to 'num_classes' ({}) but is {}", name, num_classes, v);
}

Tensor SampledSoftmaxLoss::operator()(const Tensor& weights, const Tensor& biases, const Tensor& labels,
                                      const Tensor& logits) const {
  ops::SampledClasses drawn;
  if (!sampled_values.empty()) drawn = {sampled_values[0], sampled_values[1], sampled_values[2]};
  const ops::SampledSoftmax options{num_sampled, num_classes, num_true, remove_accidental_hits,
                                    static_cast<std::uint64_t>(seed)};
  return ops::reduce_loss(ops::sampled_softmax_loss(weights, biases, labels, logits, options, drawn), reduction);
}

}  // namespace fn

MultiClassDiceLossCell::MultiClassDiceLossCell(Options options) : o_(std::move(options)) {
  UNDERTOW_CHECK(!o_.weights.defined() || o_.weights.ndim() == 2, ShapeError,
                 "MultiClassDiceLoss: 'weights' must have 2 dimensions (classes, dim) but has shape {}",
                 o_.weights.shape().str());
  if (o_.activation.cell) insert_child("activation", o_.activation.cell);
}

Tensor MultiClassDiceLossCell::construct(const Tensor& logits, const Tensor& labels) {
  UNDERTOW_CHECK(logits.ndim() >= 2 && logits.shape() == labels.shape(), ShapeError,
                 "MultiClassDiceLoss: logits and labels must have one shape (N, C, ...), but the shapes are {} and {}",
                 logits.shape().str(), labels.shape().str());
  const std::int64_t classes = labels.shape(1);
  UNDERTOW_CHECK(!o_.weights.defined() || o_.weights.shape(0) == classes, ShapeError,
                 "MultiClassDiceLoss: 'weights' must have a row for each of the {} classes but has shape {}", classes,
                 o_.weights.shape().str());
  Tensor x = logits;
  if (const Ref<Cell> activation = get_child("activation")) x = (*activation)(x);
  const auto of_class = [&](const Tensor& t, std::int64_t c) {
    return ops::split(t, classes, 1)[static_cast<std::size_t>(c)];
  };
  Tensor sum = ops::constant(0, compute_type(x.dtype()));
  for (std::int64_t c = 0; c < classes; ++c) {
    if (o_.ignore_index == c) continue;
    Tensor loss = ops::dice_loss(of_class(x, c), of_class(labels, c));
    if (o_.weights.defined()) loss = ops::mul(loss, ops::gather(o_.weights, ops::constant_int(c, DType::kInt64), 0));
    sum = ops::add(sum, loss);
  }
  return ops::div(sum, static_cast<double>(classes));
}

}  // namespace undertow::nn
