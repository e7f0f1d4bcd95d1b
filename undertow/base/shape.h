// SPDX-License-Identifier: Apache-2.0
// base/shape.h: the extents of a tensor, held inline (no heap), at most 8 dimensions as in MindSpore.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

namespace undertow {

class Shape {
 public:
  static constexpr int kMaxRank = 8;

  Shape() = default;
  Shape(std::initializer_list<std::int64_t> dims) : Shape(std::span(dims.begin(), dims.size())) {}
  /// Throws ShapeError for more than 8 dimensions or a negative extent.
  explicit Shape(std::span<const std::int64_t> dims);
  explicit Shape(const std::vector<std::int64_t>& dims) : Shape(std::span(dims)) {}

  int rank() const { return rank_; }
  bool empty() const { return rank_ == 0; }
  std::size_t size() const { return static_cast<std::size_t>(rank_); }
  std::int64_t operator[](int i) const { return dims_[i]; }
  std::int64_t& operator[](int i) { return dims_[i]; }
  const std::int64_t* begin() const { return dims_.data(); }
  const std::int64_t* end() const { return dims_.data() + rank_; }
  std::int64_t back() const { return dims_[rank_ - 1]; }
  void push_back(std::int64_t extent);
  std::vector<std::int64_t> to_vector() const { return {begin(), end()}; }

  /// Number of elements; 1 for rank 0.
  std::int64_t numel() const;
  /// "(2, 3)", "(4,)", "()" as Python prints them.
  std::string str() const;

  friend bool operator==(const Shape& a, const Shape& b) {
    if (a.rank_ != b.rank_) return false;
    for (int i = 0; i < a.rank_; ++i)
      if (a.dims_[i] != b.dims_[i]) return false;
    return true;
  }

 private:
  std::array<std::int64_t, kMaxRank> dims_{};
  int rank_ = 0;
};

/// Row-major strides in elements.
std::vector<std::int64_t> contiguous_strides(const Shape& shape);
/// NumPy's broadcasting rule. Throws ShapeError naming both shapes.
Shape broadcast(const Shape& a, const Shape& b);
/// Maps a possibly negative axis into [0, rank). Throws ValueError naming `what`.
int normalize_axis(std::int64_t axis, int rank, const char* what);

}  // namespace undertow
