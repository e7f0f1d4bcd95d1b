// SPDX-License-Identifier: Apache-2.0
// ops/statistics.h: reductions that are composed of others. Empty axes mean all axes.
#pragma once

#include <utility>

#include "undertow/ops/ops.h"

namespace undertow::ops {

Tensor std_dev(const Tensor& x, Axes axes = {}, bool keep_dims = false, int ddof = 0);
/// log(sum(exp(x))), without overflow.
Tensor logsumexp(const Tensor& x, Axes axes = {}, bool keep_dims = false);
/// (sum |x|^p)^(1/p) over axes; p may be inf, -inf or 0 (the number of elements that are not 0).
Tensor vector_norm(const Tensor& x, double p = 2, Axes axes = {}, bool keep_dims = false);
/// Of matrices: "fro", or p = 1, -1, inf, -inf (column and row sums).
Tensor matrix_norm(const Tensor& x, double p, const Axes& axes, bool keep_dims);
Tensor count_nonzero(const Tensor& x, Axes axes = {}, bool keep_dims = false, DType dtype = DType::kInt32);
Tensor nansum(const Tensor& x, Axes axes = {}, bool keep_dims = false);
Tensor nanmean(const Tensor& x, Axes axes = {}, bool keep_dims = false);
Tensor l2_loss(const Tensor& x);  ///< sum(x^2) / 2
/// x . y / max(|x| |y|, eps) over a dimension.
Tensor cosine_similarity(const Tensor& x, const Tensor& y, std::int64_t dim = 1, double eps = 1e-8);
/// Sub-tensors along an axis scaled down where their p-norm is above `max_norm`.
Tensor renorm(const Tensor& x, double p, std::int64_t axis, double max_norm);
/// How many elements fall into each of `bins` equal parts of [low, high] (low == high: of the values' own range).
Tensor histc(const Tensor& x, std::int64_t bins, double low, double high);
/// Tensors scaled by clip_norm / max(norm of all, clip_norm); `use_norm` stands in for the norm. NaN where the norm is
/// not finite.
std::vector<Tensor> clip_by_global_norm(const std::vector<Tensor>& xs, double clip_norm, const Tensor& use_norm = {});
/// Tensors scaled together to a p-norm of at most `max_norm`.
std::vector<Tensor> clip_by_norm(const std::vector<Tensor>& xs, double max_norm, double p);
/// Whether elements of x are among those of `test`.
Tensor isin(const Tensor& x, const Tensor& test, bool invert = false);
/// Whether the target class is among the k largest of each row.
Tensor in_top_k(const Tensor& x, const Tensor& targets, std::int64_t k);

}  // namespace undertow::ops
