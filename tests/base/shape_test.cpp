// SPDX-License-Identifier: Apache-2.0
#include "undertow/base/shape.h"

#include <gtest/gtest.h>

#include "undertow/base/error.h"

namespace undertow {
namespace {

TEST(Shape, TextAsPython) {
  EXPECT_EQ(Shape({}).str(), "()");
  EXPECT_EQ(Shape({4}).str(), "(4,)");
  EXPECT_EQ(Shape({2, 3}).str(), "(2, 3)");
}

TEST(Shape, Numel) {
  EXPECT_EQ(Shape({}).numel(), 1);
  EXPECT_EQ(Shape({2, 0, 5}).numel(), 0);
  EXPECT_EQ(Shape({2, 3, 4}).numel(), 24);
  EXPECT_EQ(contiguous_strides(Shape{2, 3, 4}), (std::vector<std::int64_t>{12, 4, 1}));
}

TEST(Shape, Limits) {
  EXPECT_NO_THROW((Shape{1, 1, 1, 1, 1, 1, 1, 1}));
  EXPECT_THROW((Shape{1, 1, 1, 1, 1, 1, 1, 1, 1}), ShapeError);
  EXPECT_THROW((Shape{2, -1}), ShapeError);
}

TEST(Shape, EqualIgnoresUnusedDims) {
  Shape a{2, 3}, b{2};
  EXPECT_FALSE(a == b);
  b.push_back(3);
  EXPECT_EQ(a, b);
}

TEST(Shape, Broadcast) {
  EXPECT_EQ(broadcast(Shape{3, 1}, Shape{2}), (Shape{3, 2}));
  EXPECT_EQ(broadcast(Shape{}, Shape{2, 3}), (Shape{2, 3}));
  EXPECT_EQ(broadcast(Shape{1, 4}, Shape{0, 1}), (Shape{0, 4}));
  EXPECT_EQ(broadcast(Shape{0}, Shape{1}), (Shape{0}));
  EXPECT_THROW(broadcast(Shape{0}, Shape{2}), ShapeError);
  try {
    broadcast(Shape{2, 3}, Shape{4, 3});
    FAIL();
  } catch (const ShapeError& e) {
    EXPECT_NE(std::string(e.what()).find("(2, 3)"), std::string::npos);
    EXPECT_NE(std::string(e.what()).find("(4, 3)"), std::string::npos);
  }
}

TEST(Shape, NormalizeAxis) {
  EXPECT_EQ(normalize_axis(-1, 3, "x"), 2);
  EXPECT_EQ(normalize_axis(0, 3, "x"), 0);
  EXPECT_THROW(normalize_axis(3, 3, "x"), ValueError);
  EXPECT_THROW(normalize_axis(-4, 3, "x"), ValueError);
  EXPECT_THROW(normalize_axis(0, 0, "x"), ValueError);
}

}  // namespace
}  // namespace undertow
