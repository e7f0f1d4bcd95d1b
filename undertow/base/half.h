// SPDX-License-Identifier: Apache-2.0
// base/half.h: float16 and bfloat16 as storage types. Arithmetic is done in float32.
#pragma once

#include <bit>
#include <cstdint>

namespace undertow {

namespace detail {
/// Round to nearest even; a NaN keeps its sign and becomes quiet.
inline std::uint16_t bf16_bits(float f) {
  const auto u = std::bit_cast<std::uint32_t>(f);
  if ((u & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((u >> 16) | 0x40u);
  return static_cast<std::uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}
inline float bf16_value(std::uint16_t b) { return std::bit_cast<float>(static_cast<std::uint32_t>(b) << 16); }
}  // namespace detail

struct bfloat16 {
  std::uint16_t bits = 0;
  bfloat16() = default;
  explicit bfloat16(float f) : bits(detail::bf16_bits(f)) {}
  explicit operator float() const { return detail::bf16_value(bits); }
};

struct float16 {
  _Float16 v = 0;
  float16() = default;
  explicit float16(float f) : v(static_cast<_Float16>(f)) {}
  explicit operator float() const { return static_cast<float>(v); }
};

static_assert(sizeof(bfloat16) == 2 && sizeof(float16) == 2);

}  // namespace undertow
