// SPDX-License-Identifier: Apache-2.0
#include "undertow/base/philox.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace undertow {
namespace {

// Known answers of philox4x32-10 from the Random123 library's kat_vectors.
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox({0, 0, 0, 0}, 0, 0), (PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  const std::uint32_t ones = 0xffffffff;
  EXPECT_EQ(philox({ones, ones, ones, ones}, ones, ones),
            (PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, 0xa4093822, 0x299f31d0),
            (PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, UniformStaysBelowOne) {
  EXPECT_EQ(uniform_from_bits(0), 0.f);
  EXPECT_LT(uniform_from_bits(0xffffffff), 1.f);
  EXPECT_EQ(uniform_from_bits(0x80000000), 0.5f);
}

TEST(Philox, EveryArgumentOfTheDrawCounts) {
  std::set<float> seen;
  const std::uint64_t big = std::uint64_t{1} << 32;
  for (const float v : {random_uniform(0, 0, 0, 0), random_uniform(1, 0, 0, 0), random_uniform(big, 0, 0, 0),
                        random_uniform(0, 1, 0, 0), random_uniform(0, big, 0, 0), random_uniform(0, 0, 1, 0),
                        random_uniform(0, 0, big, 0), random_uniform(0, 0, 0, 1)})
    seen.insert(v);
  EXPECT_EQ(seen.size(), 7u);  // a seed's high word and the stream share a key word
}

TEST(Philox, StreamRepeatsAndFollowsBlocks) {
  PhiloxStream a(5, 9), b(5, 9), other(5, 10);
  int equal = 0;
  for (int i = 0; i < 100; ++i) {
    const auto v = a.next();
    EXPECT_EQ(v, b.next());
    equal += v == other.next();
  }
  EXPECT_LT(equal, 3);
  PhiloxStream c(5, 9);
  EXPECT_EQ(c.next(), philox({0, 0, 9, 0}, 5, 0)[0]);
}

TEST(Philox, BelowIsInRangeAndEven) {
  PhiloxStream s(1, 2);
  std::vector<int> counts(7);
  for (int i = 0; i < 70000; ++i) ++counts[s.below(7)];
  for (const int c : counts) EXPECT_NEAR(c, 10000, 500);
  EXPECT_EQ(s.below(1), 0u);
  const std::uint64_t large = (std::uint64_t{1} << 40) + 1;
  for (int i = 0; i < 1000; ++i) EXPECT_LT(s.below(large), large);
}

TEST(Philox, MeansAreRight) {
  PhiloxStream s(3, 0);
  double sum = 0, sum64 = 0;
  for (int i = 0; i < 100000; ++i) sum += s.uniform(), sum64 += s.uniform64();
  EXPECT_NEAR(sum / 100000, 0.5, 0.005);
  EXPECT_NEAR(sum64 / 100000, 0.5, 0.005);
}

}  // namespace
}  // namespace undertow
