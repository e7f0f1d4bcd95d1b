// SPDX-License-Identifier: Apache-2.0
#include "undertow/base/half.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

namespace undertow {
namespace {

template <typename H>
H from_bits(std::uint16_t bits) {
  return std::bit_cast<H>(bits);
}
template <typename H>
std::uint16_t bits_of(H h) {
  return std::bit_cast<std::uint16_t>(h);
}

template <typename H>
class Half : public ::testing::Test {};
using HalfTypes = ::testing::Types<float16, bfloat16>;
TYPED_TEST_SUITE(Half, HalfTypes);

TYPED_TEST(Half, EveryPatternReadsBack) {
  for (int b = 0; b < 65536; ++b) {
    const auto bits = static_cast<std::uint16_t>(b);
    const float f = static_cast<float>(from_bits<TypeParam>(bits));
    const TypeParam back(f);
    if (std::isnan(f)) {
      EXPECT_TRUE(std::isnan(static_cast<float>(back))) << b;
      EXPECT_EQ(bits_of(back) >> 15, b >> 15);
    } else {
      EXPECT_EQ(bits_of(back), bits);
    }
  }
}

// Between each pair of neighbours: just below the middle, the middle (to even), just above.
TYPED_TEST(Half, RoundsToNearestEven) {
  for (int b = 0; b + 1 < 65536 / 2; ++b) {
    const auto low = static_cast<std::uint16_t>(b), high = static_cast<std::uint16_t>(b + 1);
    const float x = static_cast<float>(from_bits<TypeParam>(low)), y = static_cast<float>(from_bits<TypeParam>(high));
    if (!std::isfinite(x) || !std::isfinite(y)) continue;
    const auto middle = static_cast<float>((static_cast<double>(x) + static_cast<double>(y)) / 2);
    const float above = std::nextafter(middle, y), below = std::nextafter(middle, x);
    for (const int sign : {0, 0x8000}) {
      const auto rounded = [&](float v) { return bits_of(TypeParam(sign ? -v : v)); };
      EXPECT_EQ(rounded(middle), (b % 2 == 0 ? low : high) | sign) << b;
      EXPECT_EQ(rounded(below), low | sign) << b;
      EXPECT_EQ(rounded(above), high | sign) << b;
    }
  }
}

TYPED_TEST(Half, OverflowAndSpecials) {
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(static_cast<float>(TypeParam(inf)), inf);
  EXPECT_EQ(static_cast<float>(TypeParam(-inf)), -inf);
  EXPECT_EQ(static_cast<float>(TypeParam(std::numeric_limits<float>::max())), inf);
  EXPECT_TRUE(std::signbit(static_cast<float>(TypeParam(-0.f))));
  const auto payload = std::bit_cast<float>(0x7f800001u);  // all its bits are below the half's
  EXPECT_TRUE(std::isnan(static_cast<float>(TypeParam(payload))));
}

TEST(Float16, LargestFinite) {
  EXPECT_EQ(static_cast<float>(float16(65519.f)), 65504.f);
  EXPECT_TRUE(std::isinf(static_cast<float>(float16(65520.f))));
}

}  // namespace
}  // namespace undertow
