// SPDX-License-Identifier: Apache-2.0
#include "undertow/ops/diagonal.h"

#include <algorithm>

#include "undertow/base/check.h"
#include "undertow/ops/arrange.h"
#include "undertow/ops/dispatch.h"

namespace undertow::ops {

using Ints = std::vector<std::int64_t>;

namespace {

/// column - row over the last two dimensions of a matrix.
Tensor offsets(std::int64_t rows, std::int64_t columns) {
  const Shape s{rows, columns};
  return sub(iota(s, 1, DType::kInt64), iota(s, 0, DType::kInt64));
}

Tensor masked(const Tensor& x, const Tensor& keep) {
  return select(keep, x, x.dtype() == DType::kBool ? Operand(false) : Operand(std::int64_t{0}));
}

void need_matrix(const Tensor& x, const char* op) {
  UNDERTOW_CHECK(x.ndim() >= 2, ShapeError, "{}: needs at least 2 dimensions, got shape {}", op, x.shape().str());
}

/// Where a diagonal begins in a matrix's memory, and its length.
struct Diagonal {
  std::int64_t begin, count;
  Diagonal(std::int64_t rows, std::int64_t columns, std::int64_t offset)
      : begin(offset >= 0 ? offset : -offset * columns),
        count(std::max<std::int64_t>(
            0, offset >= 0 ? std::min(rows, columns - offset) : std::min(rows + offset, columns))) {}
};

}  // namespace

Tensor eye(std::int64_t rows, std::int64_t columns, DType dtype) {
  UNDERTOW_CHECK(rows >= 0 && columns >= 0, ValueError, "eye: sizes cannot be negative, got {} and {}", rows, columns);
  return cast(equal(offsets(rows, columns), 0), dtype);
}

Tensor tril(const Tensor& x, std::int64_t offset) {
  need_matrix(x, "tril");
  return masked(x, less_equal(offsets(x.shape(-2), x.shape(-1)), offset));
}
Tensor triu(const Tensor& x, std::int64_t offset) {
  need_matrix(x, "triu");
  return masked(x, greater_equal(offsets(x.shape(-2), x.shape(-1)), offset));
}

Tensor band_part(const Tensor& x, std::int64_t lower, std::int64_t upper) {
  Tensor y = x;
  if (lower >= 0) y = triu(y, -lower);
  if (upper >= 0) y = tril(y, upper);
  return y;
}

Tensor diagonal(const Tensor& x, std::int64_t offset, std::int64_t dim1, std::int64_t dim2) {
  need_matrix(x, "diagonal");
  const Tensor m = moveaxis(x, {dim1, dim2}, {-2, -1});
  const std::int64_t rows = m.shape(-2), columns = m.shape(-1);
  const Diagonal d(rows, columns, offset);
  Ints flat = m.shape().to_vector();
  flat.pop_back();
  flat.back() = rows * columns;
  Ints begin(flat.size(), 0), steps(flat.size(), 1);
  begin.back() = d.count ? d.begin : 0;
  steps.back() = columns + 1;
  Shape s(flat);
  s[s.rank() - 1] = d.count;
  return slice(reshape(m, flat), begin, steps, s);
}

Tensor diag_embed(const Tensor& x, std::int64_t offset, std::int64_t dim1, std::int64_t dim2) {
  UNDERTOW_CHECK(x.ndim() >= 1, ShapeError, "diag_embed: needs at least one dimension");
  const std::int64_t n = x.shape(-1), m = n + std::abs(offset);
  const Diagonal d(m, m, offset);
  const auto rank = static_cast<std::size_t>(x.ndim());
  Ints low(rank, 0), high(rank, 0), interior(rank, 0);
  low.back() = d.begin;
  interior.back() = n > 1 ? m : 0;
  high.back() = m * m - d.begin - (n > 0 ? (n - 1) * (m + 1) + 1 : 0);
  Ints s = x.shape().to_vector();
  s.back() = m;
  s.push_back(m);
  if (n == 0) return full(Shape(s), 0, x.dtype());
  const Tensor y = call("pad", {x}, {{"low", low}, {"high", high}, {"interior", interior}, {"value", 0.0}});
  return moveaxis(reshape(y, s), {-2, -1}, {dim1, dim2});
}

Tensor trace(const Tensor& x, std::int64_t offset, std::int64_t dim1, std::int64_t dim2) {
  return reduce_sum(diagonal(x, offset, dim1, dim2), {-1});
}

Tensor fill_diagonal(const Tensor& x, const Operand& value, bool wrap) {
  need_matrix(x, "fill_diagonal");
  const Operand v(value.as(x.dtype()));
  if (x.ndim() == 2) {
    Tensor off = offsets(x.shape(0), x.shape(1));
    // Below a tall matrix's square the diagonal starts anew after one empty row.
    if (wrap) off = floor_mod(off, x.shape(1) + 1);
    const Tensor hit = wrap ? equal(off, 0) : equal(offsets(x.shape(0), x.shape(1)), 0);
    return select(hit, v, x);
  }
  Tensor hit;
  for (int d = 1; d < x.ndim(); ++d) {
    UNDERTOW_CHECK(x.shape(d) == x.shape(0), ShapeError,
                   "fill_diagonal: more than 2 dimensions must all have one extent, got {}", x.shape().str());
    const Tensor same = equal(iota(x.shape(), d, DType::kInt64), iota(x.shape(), 0, DType::kInt64));
    hit = hit.defined() ? logical_and(hit, same) : same;
  }
  return select(hit, v, x);
}

Tensor triangle_indices(std::int64_t rows, std::int64_t columns, std::int64_t offset, bool upper, DType dtype) {
  UNDERTOW_CHECK(rows >= 0 && columns >= 0, ValueError, "triangle indices: sizes cannot be negative, got {} and {}",
                 rows, columns);
  Ints r, c;
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j)
      if (upper ? j - i >= offset : j - i <= offset) r.push_back(i), c.push_back(j);
  const auto n = static_cast<std::int64_t>(r.size());
  r.insert(r.end(), c.begin(), c.end());
  return cast(Tensor(r, Shape{2, n}), dtype);
}

Tensor block_diag(const std::vector<Tensor>& xs) {
  UNDERTOW_CHECK(!xs.empty(), ValueError, "block_diag: no tensors given");
  std::int64_t columns = 0, before = 0;
  std::vector<Tensor> blocks;
  for (const auto& x : xs) {
    UNDERTOW_CHECK(x.ndim() <= 2, ShapeError, "block_diag: a block has at most 2 dimensions, got {}", x.shape().str());
    blocks.push_back(at_least(x, 2));
    columns += blocks.back().shape(1);
  }
  for (auto& b : blocks) {
    const std::int64_t n = b.shape(1);
    b = pad(b, {0, before}, {0, columns - before - n});
    before += n;
  }
  return concat(blocks, 0);
}

}  // namespace undertow::ops
