// SPDX-License-Identifier: Apache-2.0
#include "undertow/base/shape.h"

#include <algorithm>

#include "undertow/base/check.h"

namespace undertow {

Shape::Shape(std::span<const std::int64_t> dims) {
  UNDERTOW_CHECK(dims.size() <= kMaxRank, ShapeError, "a tensor has at most {} dimensions, got {}", kMaxRank,
                 dims.size());
  for (const auto d : dims) push_back(d);
}

void Shape::push_back(std::int64_t extent) {
  UNDERTOW_CHECK(rank_ < kMaxRank, ShapeError, "a tensor has at most {} dimensions", kMaxRank);
  UNDERTOW_CHECK(extent >= 0, ShapeError, "a dimension cannot be negative, got {}", extent);
  dims_[rank_++] = extent;
}

std::int64_t Shape::numel() const {
  std::int64_t n = 1;
  for (const auto d : *this) n *= d;
  return n;
}

std::string Shape::str() const {
  std::string s = "(";
  for (int i = 0; i < rank_; ++i) {
    if (i) s += ", ";
    s += std::to_string(dims_[i]);
  }
  if (rank_ == 1) s += ",";
  return s + ")";
}

std::vector<std::int64_t> contiguous_strides(const Shape& shape) {
  std::vector<std::int64_t> strides(shape.size());
  std::int64_t n = 1;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    strides[i] = n;
    n *= shape[i];
  }
  return strides;
}

Shape broadcast(const Shape& a, const Shape& b) {
  const int rank = std::max(a.rank(), b.rank());
  Shape out;
  for (int i = 0; i < rank; ++i) {
    const int ia = i - (rank - a.rank()), ib = i - (rank - b.rank());
    const std::int64_t x = ia < 0 ? 1 : a[ia], y = ib < 0 ? 1 : b[ib];
    UNDERTOW_CHECK(x == y || x == 1 || y == 1, ShapeError,
                   "shapes {} and {} cannot be broadcast together: dimension {} is {} against {}", a.str(), b.str(), i,
                   x, y);
    out.push_back(x == 1 ? y : x);
  }
  return out;
}

int normalize_axis(std::int64_t axis, int rank, const char* what) {
  UNDERTOW_CHECK(axis >= -rank && axis < rank, ValueError,
                 "{}: axis {} is out of range for {} dimensions (allowed: {} to {})", what, axis, rank, -rank,
                 rank - 1);
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

}  // namespace undertow
