// SPDX-License-Identifier: Apache-2.0
// ops/diagonal.h: diagonals and triangles of matrices. `offset` counts diagonals upwards from the main one; leading
// dimensions are batches.
#pragma once

#include "undertow/ops/ops.h"

namespace undertow::ops {

Tensor eye(std::int64_t rows, std::int64_t columns, DType dtype = DType::kFloat32);
Tensor tril(const Tensor& x, std::int64_t offset = 0);  ///< zero above the diagonal
Tensor triu(const Tensor& x, std::int64_t offset = 0);  ///< zero below it
/// At most `lower` diagonals below and `upper` above the main one are kept; negative: all.
Tensor band_part(const Tensor& x, std::int64_t lower, std::int64_t upper);
/// Elements [i, i + offset] of two dimensions, as a new last one.
Tensor diagonal(const Tensor& x, std::int64_t offset = 0, std::int64_t dim1 = 0, std::int64_t dim2 = 1);
/// Matrices (as the two new dimensions) with x's last dimension on a diagonal, zeros elsewhere.
Tensor diag_embed(const Tensor& x, std::int64_t offset = 0, std::int64_t dim1 = -2, std::int64_t dim2 = -1);
Tensor trace(const Tensor& x, std::int64_t offset = 0, std::int64_t dim1 = 0, std::int64_t dim2 = 1);
/// The value on the main diagonal (equal indices of all dimensions); `wrap` starts anew below, as NumPy.
Tensor fill_diagonal(const Tensor& x, const Operand& value, bool wrap = false);
/// [2, n]: rows and columns of the lower (upper) triangle, in row-major order.
Tensor triangle_indices(std::int64_t rows, std::int64_t columns, std::int64_t offset, bool upper,
                        DType dtype = DType::kInt64);
/// Matrices one after another along the diagonal.
Tensor block_diag(const std::vector<Tensor>& xs);

}  // namespace undertow::ops
