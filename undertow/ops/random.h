// SPDX-License-Identifier: Apache-2.0
// ops/random.h: random draws. Each is keyed by (seed, step of the model, number of the draw, element): the same sunk,
// step by step and eagerly. A `seed` of its own (not 0) stands in for the global one.
#pragma once

#include "undertow/ops/ops.h"

namespace undertow::ops {

/// Uniform float32 in [0, 1).
Tensor random_uniform(const Shape& shape, std::uint64_t seed);
Tensor standard_normal(const Shape& shape, std::uint64_t seed = 0);  ///< float32, Box-Muller
Tensor standard_laplace(const Shape& shape, std::uint64_t seed = 0);
/// Normal, limited to `limit` standard deviations.
Tensor truncated_normal(const Shape& shape, double limit = 2, std::uint64_t seed = 0);
/// Integers in [low, high), which may be tensors that broadcast.
Tensor random_int(const Shape& shape, const Operand& low, const Operand& high, DType dtype = DType::kInt64,
                  std::uint64_t seed = 0);
Tensor random_permutation(std::int64_t n, DType dtype = DType::kInt64, std::uint64_t seed = 0);
Tensor shuffle(const Tensor& x, std::uint64_t seed = 0);  ///< rows in random order
/// 1 with probability p, in x's dtype.
Tensor bernoulli(const Shape& shape, const Operand& p, DType dtype, std::uint64_t seed = 0);
/// Row-wise positions drawn in proportion to `weights` [..., n]; int64 [..., count].
Tensor multinomial(const Tensor& weights, std::int64_t count, bool replacement, std::uint64_t seed = 0);
Tensor gumbel(const Shape& shape, std::uint64_t seed = 0);

}  // namespace undertow::ops
