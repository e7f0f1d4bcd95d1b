// SPDX-License-Identifier: Apache-2.0
// ops/reference/detail.h: what the reference kernels share: accumulator types and a walk over strided indices.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "undertow/base/check.h"
#include "undertow/ir/op_def.h"

namespace undertow::ops::reference {

using Arrays = std::span<const ir::HostArray>;

template <typename T>
inline constexpr bool kIsHalf = std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>;
template <typename T>
inline constexpr bool kIsFloating = std::is_floating_point_v<T> || kIsHalf<T>;

/// Sums and products of T. Unsigned arithmetic wraps without undefined behaviour, and its low bits are those of T.
template <typename T>
using Acc = std::conditional_t<kIsFloating<T>, double, std::uint64_t>;

template <typename T>
Acc<T> widen(T v) {
  if constexpr (kIsHalf<T>) return static_cast<float>(v);
  else return static_cast<Acc<T>>(v);
}

/// Rounds or wraps to T; to bool: non-zero.
template <typename T, typename A>
T narrow(A v) {
  if constexpr (std::is_same_v<T, bool>) return v != A{};
  else if constexpr (kIsHalf<T>) return T(static_cast<float>(v));
  else return static_cast<T>(v);
}

/// T for comparisons.
template <typename T>
using Ordered = std::conditional_t<kIsHalf<T>, float, std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>>;

template <typename T>
Ordered<T> ordered(T v) {
  return static_cast<Ordered<T>>(v);
}

/// Whether v takes the place of best: greater (or less, for minima) or the first NaN.
template <bool kMax, typename O>
bool beats(O v, O best) {
  return (kMax ? v > best : v < best) || (v != v && best == best);
}

/// f(i, offset) for every index of `shape` in row-major order: i counts, offset = base + sum of strides[d] * index[d].
template <typename F>
void walk(const Shape& shape, std::span<const std::int64_t> strides, std::int64_t base, F&& f) {
  std::array<std::int64_t, Shape::kMaxRank> index{};
  std::int64_t offset = base;
  for (std::int64_t i = 0, n = shape.numel(); i < n; ++i) {
    f(i, offset);
    for (int d = shape.rank() - 1; d >= 0; --d) {
      offset += strides[d];
      if (++index[d] < shape[d]) break;
      offset -= strides[d] * shape[d];
      index[d] = 0;
    }
  }
}

/// f(T{}) with an unsigned integer of the element's size, for ops that only move bits.
template <typename F>
auto dispatch_bits(DType dtype, F&& f) {
  switch (size_of(dtype)) {
    case 1: return f(std::uint8_t{});
    case 2: return f(std::uint16_t{});
    case 4: return f(std::uint32_t{});
    default: return f(std::uint64_t{});
  }
}

template <typename T>
void store_narrowed(const std::vector<Acc<T>>& acc, T* out) {
  for (std::size_t i = 0; i < acc.size(); ++i) out[i] = narrow<T>(acc[i]);
}

/// Sizes and element strides of an image tensor in either layout.
struct Image {
  std::int64_t n, c, h, w;
  std::int64_t sn, sc, sh, sw;
  std::int64_t at(std::int64_t in, std::int64_t ic, std::int64_t ih, std::int64_t iw) const {
    return in * sn + ic * sc + ih * sh + iw * sw;
  }
};
inline Image image_of(const Shape& s, const ir::Attrs& attrs) {
  if (attrs.text("layout") == "NHWC") return {s[0], s[3], s[1], s[2], s[1] * s[2] * s[3], 1, s[2] * s[3], s[3]};
  return {s[0], s[1], s[2], s[3], s[1] * s[2] * s[3], s[2] * s[3], s[3], 1};
}

}  // namespace undertow::ops::reference
