// SPDX-License-Identifier: Apache-2.0
// train/extents.h: options of layers that hold one number, or one for each spatial dimension.
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <vector>

namespace undertow::nn {

/// N numbers; one stands for all.
template <std::size_t N>
struct Extents {
  std::array<std::int64_t, N> v;
  Extents(std::int64_t all) { v.fill(all); }
  template <std::convertible_to<std::int64_t>... T>
    requires(sizeof...(T) == N && N > 1)
  Extents(T... each) : v{static_cast<std::int64_t>(each)...} {}
  std::vector<std::int64_t> list() const { return {v.begin(), v.end()}; }
  static constexpr std::size_t kCount = N;
};

/// Padding at the two ends of N dimensions (top, bottom, left, right); one number stands for all.
template <std::size_t N>
struct Paddings : Extents<2 * N> {
  using Extents<2 * N>::Extents;
};

using IntPair = Extents<2>;
using Padding = Paddings<2>;

}  // namespace undertow::nn
