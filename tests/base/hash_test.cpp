// SPDX-License-Identifier: Apache-2.0
#include "undertow/base/hash.h"

#include <gtest/gtest.h>

#include <unordered_set>
#include <vector>

namespace undertow {
namespace {

TEST(Hash, OrderAndLengthCount) {
  const auto of = [](auto... v) {
    Hasher h;
    (h.add(v), ...);
    return h.digest();
  };
  EXPECT_EQ(of(1, 2), of(1, 2));
  EXPECT_FALSE(of(1, 2) == of(2, 1));
  EXPECT_FALSE(of(0) == of(0, 0));
  EXPECT_FALSE(of(0.0) == of(-0.0));
  EXPECT_FALSE(of(std::string_view("ab"), std::string_view("c")) == of(std::string_view("a"), std::string_view("bc")));
  EXPECT_FALSE(of(std::string_view("a")) == of(std::string_view(std::string_view("a\0", 2))));
  EXPECT_FALSE(Hasher().add_range(std::vector<int>{}).digest() == Hasher().digest());
}

TEST(Hash, SmallNumbersSpread) {
  std::unordered_set<std::uint64_t> a, b;
  for (int i = 0; i < 100000; ++i) {
    const Digest d = Hasher().add(i).digest();
    a.insert(d.a);
    b.insert(d.b);
  }
  EXPECT_EQ(a.size(), 100000u);
  EXPECT_EQ(b.size(), 100000u);
}

TEST(Hash, HexIsFixedWidth) { EXPECT_EQ((Digest{0x1, 0xabc}).hex(), "00000000000000010000000000000abc"); }

}  // namespace
}  // namespace undertow
