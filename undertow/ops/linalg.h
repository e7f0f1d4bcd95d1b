// SPDX-License-Identifier: Apache-2.0
// ops/linalg.h: products of tensors. All are matrix products seen through reshapes and transposes.
#pragma once

#include "undertow/ops/ops.h"

namespace undertow::ops {

/// Einstein summation: "bij,bjk->bik", "ii->i", "...ij->...ji"; without "->" the labels that appear once, in order.
Tensor einsum(const std::string& equation, const std::vector<Tensor>& operands);
/// Sums over pairs of axes.
Tensor tensordot(const Tensor& a, const Tensor& b, Axes a_axes, Axes b_axes);
/// NumPy's dot: the last axis of a with the second to last of b.
Tensor dot(const Tensor& a, const Tensor& b);
Tensor inner(const Tensor& a, const Tensor& b);  ///< sum over both last axes
Tensor outer(const Tensor& a, const Tensor& b);  ///< of the flattened tensors
Tensor vecdot(const Tensor& a, const Tensor& b, std::int64_t axis = -1);
Tensor kron(const Tensor& a, const Tensor& b);
/// Cross product along an axis of 3 (without one: the first such).
Tensor cross(const Tensor& a, const Tensor& b, std::optional<std::int64_t> axis = {});
/// beta x + alpha a b
Tensor addmm(const Tensor& x, const Tensor& a, const Tensor& b, const Operand& beta = 1, const Operand& alpha = 1);
/// beta x + alpha (sum of the products of a batch)
Tensor addbmm(const Tensor& x, const Tensor& a, const Tensor& b, const Operand& beta = 1, const Operand& alpha = 1);
/// beta x + alpha a (x) b
Tensor addr(const Tensor& x, const Tensor& a, const Tensor& b, const Operand& beta = 1, const Operand& alpha = 1);
/// [..., m, n] p-norm distances between rows of a [..., m, d] and b [..., n, d].
Tensor cdist(const Tensor& a, const Tensor& b, double p = 2);
Tensor matrix_power(const Tensor& x, std::int64_t n);  ///< n >= 0

}  // namespace undertow::ops
