// SPDX-License-Identifier: Apache-2.0
#include "undertow/ops/fill.h"

#include <cmath>

#include "undertow/base/check.h"

namespace undertow::ops {

Tensor linspace(const Operand& start, const Operand& end, std::int64_t steps, DType dtype) {
  UNDERTOW_CHECK(steps >= 0, ValueError, "linspace: the number of steps cannot be negative, got {}", steps);
  const DType t = is_floating(dtype) ? compute_type(dtype) : DType::kFloat64;
  const Tensor a = start.as(t), b = end.as(t);
  if (steps == 1) return cast(reshape(a, {1}), dtype);
  // From the nearer end, so that both ends are exact.
  const Tensor i = arange(steps, t), last = full(Shape{}, static_cast<double>(steps - 1), t);
  const Tensor step = div(sub(b, a), last);
  const Tensor y =
      select(less(i, static_cast<double>(steps) / 2), add(a, mul(i, step)), sub(b, mul(sub(last, i), step)));
  return cast(y, dtype);
}

Tensor logspace(const Operand& start, const Operand& end, std::int64_t steps, double base, DType dtype) {
  const DType t = is_floating(dtype) ? compute_type(dtype) : DType::kFloat64;
  return cast(pow(constant(base, t), linspace(start, end, steps, t)), dtype);
}

Tensor range(std::int64_t start, std::int64_t end, std::int64_t step, DType dtype) {
  UNDERTOW_CHECK(step != 0, ValueError, "range: the step cannot be 0");
  const std::int64_t n = std::max<std::int64_t>(0, (end - start + step - (step > 0 ? 1 : -1)) / step);
  // Rounded once, at the end.
  const DType t = is_floating(dtype) ? DType::kFloat64 : DType::kInt64;
  Tensor y = arange(n, t);
  if (step != 1) y = mul(y, step);
  if (start != 0) y = add(y, start);
  return cast(y, dtype);
}

Tensor range(double start, double end, double step, DType dtype) {
  UNDERTOW_CHECK(step != 0, ValueError, "range: the step cannot be 0");
  const double n = std::ceil((end - start) / step);
  UNDERTOW_CHECK(n < 0x1p62, ValueError, "range: from {} to {} by {} has no end", start, end, step);
  const Tensor i = arange(std::max<std::int64_t>(0, static_cast<std::int64_t>(n)), DType::kFloat64);
  return cast(add(mul(i, step), start), dtype);
}

Tensor one_hot(const Tensor& indices, std::int64_t depth, const Operand& on, const Operand& off, DType dtype,
               std::int64_t axis) {
  UNDERTOW_CHECK(is_integral(indices.dtype()), TypeError, "one_hot: indices must be integers, got {}",
                 name_of(indices.dtype()));
  UNDERTOW_CHECK(depth >= 0, ValueError, "one_hot: depth cannot be negative, got {}", depth);
  const int a = normalize_axis(axis, indices.ndim() + 1, "one_hot");
  Shape s;
  for (int d = 0; d <= indices.ndim(); ++d) {
    if (d == a) s.push_back(depth);
    if (d < indices.ndim()) s.push_back(indices.shape(d));
  }
  const Tensor hit = equal(cast(expand_dims(indices, a), DType::kInt64), iota(s, a, DType::kInt64));
  return select(hit, on.as(dtype), off.as(dtype));
}

Tensor sequence_mask(const Tensor& lengths, std::int64_t maxlen) {
  Shape s = lengths.shape();
  s.push_back(maxlen);
  return less(iota(s, s.rank() - 1, DType::kInt64), cast(expand_dims(lengths, -1), DType::kInt64));
}

Tensor full(const Shape& shape, const Operand& value, DType dtype) { return broadcast_to(value.as(dtype), shape); }

}  // namespace undertow::ops
