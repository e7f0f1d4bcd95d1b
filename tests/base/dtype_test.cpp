// SPDX-License-Identifier: Apache-2.0
#include "undertow/base/dtype.h"

#include <gtest/gtest.h>

#include <sstream>
#include <vector>

#include "undertow/base/error.h"

namespace undertow {
namespace {

const std::vector<std::string> kCodes{"b1", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "bf", "f4", "f8"};

// Integers and bool: NumPy's lattice. An integer with a float is that float; float16 with bfloat16 is float32.
constexpr const char* kPromotion = R"(
b1 i1 u1 i2 u2 i4 u4 i8 u8 f2 bf f4 f8
i1 i1 i2 i2 i4 i4 i8 i8 f8 f2 bf f4 f8
u1 i2 u1 i2 u2 i4 u4 i8 u8 f2 bf f4 f8
i2 i2 i2 i2 i4 i4 i8 i8 f8 f2 bf f4 f8
u2 i4 u2 i4 u2 i4 u4 i8 u8 f2 bf f4 f8
i4 i4 i4 i4 i4 i4 i8 i8 f8 f2 bf f4 f8
u4 i8 u4 i8 u4 i8 u4 i8 u8 f2 bf f4 f8
i8 i8 i8 i8 i8 i8 i8 i8 f8 f2 bf f4 f8
u8 f8 u8 f8 u8 f8 u8 f8 u8 f2 bf f4 f8
f2 f2 f2 f2 f2 f2 f2 f2 f2 f2 f4 f4 f8
bf bf bf bf bf bf bf bf bf f4 bf f4 f8
f4 f4 f4 f4 f4 f4 f4 f4 f4 f4 f4 f4 f8
f8 f8 f8 f8 f8 f8 f8 f8 f8 f8 f8 f8 f8
)";

TEST(DType, PromotionTable) {
  std::istringstream table(kPromotion);
  std::string code;
  for (int a = 0; a < kNumDTypes; ++a)
    for (int b = 0; b < kNumDTypes; ++b) {
      table >> code;
      const DType got = promote(static_cast<DType>(a), static_cast<DType>(b));
      EXPECT_EQ(kCodes[static_cast<std::size_t>(got)], code) << kCodes[a] << " with " << kCodes[b];
    }
}

TEST(DType, NamesReadBack) {
  for (int i = 0; i < kNumDTypes; ++i) {
    const auto d = static_cast<DType>(i);
    EXPECT_EQ(dtype_from_name(name_of(d)), d);
    EXPECT_EQ(dtype_from_name(numpy_name_of(d)), d);
  }
  EXPECT_EQ(name_of(DType::kBFloat16), "BFloat16");
  EXPECT_EQ(numpy_name_of(DType::kUInt8), "uint8");
  EXPECT_THROW(dtype_from_name("float"), TypeError);
  EXPECT_THROW(dtype_from_name(""), TypeError);
}

TEST(DType, Kinds) {
  for (int i = 0; i < kNumDTypes; ++i) {
    const auto d = static_cast<DType>(i);
    EXPECT_EQ(is_floating(d) + is_integral(d) + (d == DType::kBool), 1) << name_of(d);
    EXPECT_EQ(compute_type(d), is_half(d) ? DType::kFloat32 : d);
    dispatch(d, [&](auto tag) {
      EXPECT_EQ(dtype_of<decltype(tag)>::v, d);
      EXPECT_EQ(sizeof tag, size_of(d));
    });
  }
  EXPECT_FALSE(is_signed(DType::kBool));
  EXPECT_FALSE(is_signed(DType::kUInt64));
  EXPECT_TRUE(is_signed(DType::kInt8));
  EXPECT_TRUE(is_signed(DType::kFloat16));
}

}  // namespace
}  // namespace undertow
