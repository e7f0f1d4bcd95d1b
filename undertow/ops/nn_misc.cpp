// SPDX-License-Identifier: Apache-2.0
#include "undertow/ops/nn_misc.h"

#include "undertow/ops/dispatch.h"
#include "undertow/ops/nn_common.h"

namespace undertow::ops {

Tensor bias_add(const Tensor& x, const Tensor& bias, bool channels_last) {
  const int axis = channels_last ? x.ndim() - 1 : 1;
  UNDERTOW_CHECK(x.ndim() >= 2 && bias.ndim() == 1 && bias.shape(0) == x.shape(axis), ShapeError,
                 "bias_add: the bias must have one value for each channel, but the input has shape {} and the bias {}",
                 x.shape().str(), bias.shape().str());
  return add(x, channels_last ? bias : per_channel(bias, x));
}

Tensor dropout_slices(const Tensor& x, double p, int axes) {
  UNDERTOW_CHECK(p >= 0 && p <= 1, ValueError, "dropout: p must be in [0, 1], got {}", p);
  UNDERTOW_CHECK(x.ndim() >= axes, ShapeError, "dropout: the input must have at least {} dimensions, its shape is {}",
                 axes, x.shape().str());
  if (p == 0) return x;
  if (p == 1) return mul(x, 0.0);
  Shape s = x.shape();
  for (int d = axes; d < s.rank(); ++d) s[d] = 1;
  return select(greater_equal(random_uniform(s), p), mul(x, 1 / (1 - p)), 0.0);
}

Tensor embedding(const Tensor& ids, const Tensor& weight, std::optional<std::int64_t> padding_idx,
                 std::optional<double> max_norm, double norm_type) {
  UNDERTOW_CHECK(is_integral(ids.dtype()), TypeError, "embedding: ids must be integers but are {}",
                 name_of(ids.dtype()));
  UNDERTOW_CHECK(weight.ndim() == 2, ShapeError, "embedding: the weight must be (vocabulary, features), got shape {}",
                 weight.shape().str());
  const bool index = ids.dtype() == DType::kInt32 || ids.dtype() == DType::kInt64;
  Tensor rows = gather(weight, index ? ids : cast(ids, DType::kInt64), 0);
  if (max_norm) {
    const Tensor sums = reduce_sum(pow(abs(rows), norm_type), {-1}, true);
    const Tensor norm = pow(sums, 1 / norm_type);
    rows = mul(rows, select(greater(norm, *max_norm), div(*max_norm, add(norm, 1e-7)), 1.0));
  }
  if (!padding_idx) return rows;
  const std::int64_t vocabulary = weight.shape(0), row = *padding_idx < 0 ? *padding_idx + vocabulary : *padding_idx;
  UNDERTOW_CHECK(row >= 0 && row < vocabulary, ValueError, "embedding: padding_idx {} is out of range for {} rows",
                 *padding_idx, vocabulary);
  return select(expand_dims(equal(ids, row), -1), stop_gradient(rows), rows);
}

Tensor bidense(const Tensor& x1, const Tensor& x2, const Tensor& weight, const Tensor& bias) {
  UNDERTOW_CHECK(weight.ndim() == 3 && x1.ndim() >= 1 && x1.ndim() == x2.ndim() && x1.shape(-1) == weight.shape(1) &&
                     x2.shape(-1) == weight.shape(2),
                 ShapeError,
                 "bidense: inputs (..., in1) and (..., in2) and a weight (out, in1, in2) are needed, got shapes {}, {} "
                 "and {}",
                 x1.shape().str(), x2.shape().str(), weight.shape().str());
  const std::int64_t in1 = weight.shape(1), in2 = weight.shape(2), out = weight.shape(0);
  Ints shape = x1.shape().to_vector();
  shape.back() = out;
  const std::int64_t rows = in1 == 0 ? 0 : x1.size() / in1;
  const Tensor a = reshape(x1, {rows, in1}), b = reshape(x2, {rows, in2});
  // (rows, in1) (in1, out in2) -> (rows, out, in2), times b, summed over in2.
  const Tensor left = matmul(a, reshape(transpose(weight, {1, 0, 2}), {in1, out * in2}));
  Tensor y = reduce_sum(mul(reshape(left, {rows, out, in2}), expand_dims(b, 1)), {2});
  if (bias.defined()) y = add(y, bias);
  return reshape(y, shape);
}

Tensor clip_to_norm(const Tensor& x, const Tensor& max_norm, const Axes& axes) {
  return in_compute_type(x, [&](const Tensor& t) {
    const Tensor limit = cast(max_norm, t.dtype());
    const Tensor squares = reduce_sum(square(t), axes, true);
    const Tensor zero = equal(squares, 0.0);  // whose square root has no gradient
    const Tensor norm = select(zero, 0.0, sqrt(select(zero, 1.0, squares)));
    return div(mul(t, limit), maximum(norm, limit));
  });
}

Tensor triangle(const Tensor& x, std::int64_t k, bool lower) {
  UNDERTOW_CHECK(x.ndim() >= 2, ShapeError, "{}: the input must have at least 2 dimensions, its shape is {}",
                 lower ? "tril" : "triu", x.shape().str());
  const Shape s{x.shape(-2), x.shape(-1)};
  const Tensor diagonal = sub(iota(s, 1, DType::kInt64), iota(s, 0, DType::kInt64));
  return select(lower ? less_equal(diagonal, k) : greater_equal(diagonal, k), x, std::int64_t{0});
}

Tensor log_sum_exp(const Tensor& x, const Axes& axes, bool keep_dims) {
  return in_compute_type(x, [&](const Tensor& t) {
    const Tensor top = stop_gradient(reduce_max(t, axes, true));
    const Tensor shift = select(isfinite(top), top, select(isnan(top), top, 0.0));
    const Tensor y = add(log(reduce_sum(exp(sub(t, shift)), axes, true)), shift);
    if (keep_dims) return y;
    Axes all = axes;
    if (all.empty())
      for (int d = 0; d < x.ndim(); ++d) all.push_back(d);
    return squeeze(y, all);
  });
}

}  // namespace undertow::ops
