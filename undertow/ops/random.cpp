// SPDX-License-Identifier: Apache-2.0
#include "undertow/ops/random.h"

#include <cmath>
#include <numbers>

#include "undertow/base/check.h"
#include "undertow/ops/cumulative.h"
#include "undertow/ops/dispatch.h"
#include "undertow/ops/math.h"
#include "undertow/ops/sort.h"

namespace undertow::ops {
namespace {

/// In (0, 1]: a logarithm of it is finite.
Tensor above_zero(const Shape& shape, std::uint64_t seed) { return sub(1.0, random_uniform(shape, seed)); }

/// Uniform float64 in [0, 1) with 48 bits.
Tensor fine_uniform(const Shape& shape, std::uint64_t seed) {
  const Tensor high = cast(random_uniform(shape, seed), DType::kFloat64);
  return add(high, mul(cast(random_uniform(shape, seed), DType::kFloat64), 0x1p-24));
}

}  // namespace

Tensor random_uniform(const Shape& shape, std::uint64_t seed) {
  if (seed == 0) return random_uniform(shape);
  const auto key = dispatcher().random_key();
  // As a constant of the graph; its bits are those of an int64.
  const Tensor own = cast(constant_int(static_cast<std::int64_t>(seed), DType::kInt64), DType::kUInt64);
  return call("random_uniform", {own, key.step}, {{"shape", shape.to_vector()}, {"stream", key.stream}});
}

Tensor standard_normal(const Shape& shape, std::uint64_t seed) {
  const Tensor radius = sqrt(mul(log(above_zero(shape, seed)), -2.0));
  return mul(radius, cos(mul(random_uniform(shape, seed), 2 * std::numbers::pi)));
}

Tensor standard_laplace(const Shape& shape, std::uint64_t seed) {
  const Tensor size = neg(log(above_zero(shape, seed)));
  return select(less(random_uniform(shape, seed), 0.5), size, neg(size));
}

Tensor truncated_normal(const Shape& shape, double limit, std::uint64_t seed) {
  // The inverse of the normal distribution's function, of a number between its values at the limits.
  const double edge = std::erf(limit / std::numbers::sqrt2);
  const Tensor u = mul(sub(mul(random_uniform(shape, seed), 2.0), 1.0), edge);
  return clip(mul(erfinv(u), std::numbers::sqrt2), -limit, limit);
}

Tensor random_int(const Shape& shape, const Operand& low, const Operand& high, DType dtype, std::uint64_t seed) {
  UNDERTOW_CHECK(is_integral(dtype), TypeError, "random integers have an integer dtype, got {}", name_of(dtype));
  const Tensor a = low.as(DType::kInt64), span = sub(high.as(DType::kInt64), a);
  const Tensor drawn = cast(floor(mul(fine_uniform(shape, seed), cast(span, DType::kFloat64))), DType::kInt64);
  return cast(add(drawn, a), dtype);
}

Tensor random_permutation(std::int64_t n, DType dtype, std::uint64_t seed) {
  UNDERTOW_CHECK(n >= 0, ValueError, "randperm: n cannot be negative, got {}", n);
  return cast(sort(fine_uniform(Shape{n}, seed), 0).second, dtype);
}

Tensor shuffle(const Tensor& x, std::uint64_t seed) {
  if (x.ndim() == 0) return x;
  return gather(x, random_permutation(x.shape(0), DType::kInt64, seed), 0);
}

Tensor bernoulli(const Shape& shape, const Operand& p, DType dtype, std::uint64_t seed) {
  return cast(less(random_uniform(shape, seed), p.is_tensor() ? Operand(cast(p.tensor(), DType::kFloat32)) : p), dtype);
}

Tensor multinomial(const Tensor& weights, std::int64_t count, bool replacement, std::uint64_t seed) {
  UNDERTOW_CHECK(weights.ndim() == 1 || weights.ndim() == 2, ShapeError,
                 "multinomial: weights must have 1 or 2 dimensions, got shape {}", weights.shape().str());
  UNDERTOW_CHECK(count > 0, ValueError, "multinomial: the number of samples must be positive, got {}", count);
  const Tensor w = cast(weights, DType::kFloat32);
  const std::int64_t n = w.shape(-1);
  Shape s = w.shape();
  if (!replacement) {
    // The largest of log(w) + gumbel noise: the order in which exponential clocks of rates w ring.
    UNDERTOW_CHECK(count <= n, ValueError, "multinomial: {} samples of {} without replacement", count, n);
    return topk(add(log(w), gumbel(s, seed)), count, -1).second;
  }
  s[s.rank() - 1] = count;
  const Tensor sums = cumsum(w, -1);
  const Tensor total = reduce_sum(w, {-1}, true);
  const Tensor place = mul(random_uniform(s, seed), total);
  const Tensor at = reduce_sum(cast(less_equal(expand_dims(sums, -2), expand_dims(place, -1)), DType::kInt64), {-1});
  return minimum(at, n - 1);
}

Tensor gumbel(const Shape& shape, std::uint64_t seed) {
  // Both logarithms away from 0: 2^-25 is half of the finest draw.
  const Tensor u = add(mul(random_uniform(shape, seed), 1 - 0x1p-23), 0x1p-25);
  return neg(log(neg(log(u))));
}

}  // namespace undertow::ops
