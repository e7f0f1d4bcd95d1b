// SPDX-License-Identifier: Apache-2.0
// Order and chance: what depends on the seed, the epoch and nothing else.
#include <map>
#include <set>

#include "tests/data/common.h"

namespace undertow::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Shuffle, EpochsDifferAndSeedsRepeat) {
  for (const Dataset& d : {numbers(50, {}), slices(50, {}), slices(50, {}).batch(7), sequence(50).shuffle(10),
                           sequence(50, {.shuffle = true}), numbers(50).shuffle(50), slices(50).batch(5).shuffle(4)}) {
    const auto a = epochs(d, 3), b = epochs(d, 3);
    EXPECT_EQ(a, b);
    for (const Ints& e : a) EXPECT_EQ(sorted(e), range(50));
    EXPECT_NE(a[0], a[1]);
    EXPECT_NE(a[1], a[2]);
    EXPECT_NE(a[0], range(50));
  }
  const auto one = all(numbers(50, {}));
  config().seed = 7;
  EXPECT_NE(all(numbers(50, {})), one);
  config().seed = 5489;
  EXPECT_EQ(all(numbers(50, {})), one);
}

TEST(Shuffle, IsUniform) {
  // Where row 0 of 4 lands, over many epochs: 4000 draws, about 1000 a place (sigma 27).
  for (const Dataset& d : {numbers(4, {}), sequence(4).shuffle(4)}) {
    std::vector<int> places(4);
    for (const Ints& e : epochs(d, 4000))
      ++places[static_cast<std::size_t>(std::find(e.begin(), e.end(), 0) - e.begin())];
    for (const int n : places) EXPECT_NEAR(n, 1000, 140);
  }
}

TEST(Shuffle, PermutesAnyNumberOfRows) {
  for (const std::int64_t n : {1, 2, 3, 6, 7, 8, 511, 513, 2049, 20000, 600000}) {
    std::vector<std::int64_t> order;
    RandomSampler()->order(n, 1, 0, order);
    EXPECT_EQ(sorted(order), range(n));
    if (n > 6) {
      EXPECT_NE(order, range(n));
    }
  }
  // Of 3 rows every order is as likely: 6000 draws, about 1000 each (sigma 29).
  std::map<std::vector<std::int64_t>, int> counts;
  for (int e = 0; e < 6000; ++e) {
    std::vector<std::int64_t> order;
    RandomSampler()->order(3, 1, e, order);
    ++counts[order];
  }
  EXPECT_EQ(counts.size(), 6u);
  for (const auto& [order, count] : counts) EXPECT_NEAR(count, 1000, 150);
}

TEST(Shuffle, PassesOfRepeatDiffer) {
  const auto v = all(numbers(20, {}).repeat(2));
  const Ints first(v.begin(), v.begin() + 20), second(v.begin() + 20, v.end());
  EXPECT_EQ(sorted(first), range(20));
  EXPECT_EQ(sorted(second), range(20));
  EXPECT_NE(first, second);
}

TEST(Shuffle, OneShuffledDatasetTwiceHasOneOrder) {
  const auto d = numbers(30, {});
  const auto twice = d.zip({d.map([](const Tensor& t) { return t; }).rename({"x"}, {"y"})});
  for (const Row& r : twice) EXPECT_EQ(r[0].item_as_int(), r[1].item_as_int());
  EXPECT_EQ(all(d), all(d.batch(4)));  // what comes on top changes nothing below
}

TEST(Determinism, WorkersDoNotMatter) {
  const auto random = [](const Row& r, const RowContext& c) {
    auto g = c.random();
    return Row{Tensor::scalar(static_cast<std::int64_t>(g.next() % 1000) * 1000 + r[0].item_as_int())};
  };
  std::vector<std::vector<Ints>> seen;
  for (const int workers : {1, 2, 4}) {
    const auto d = numbers(101, {.num_parallel_workers = workers})
                       .map(random, {.num_parallel_workers = workers})
                       .shuffle(20)
                       .batch(8)
                       .map([](const Row& r, const RowContext& c) {
                         Tensor t = r[0].clone();
                         t.data_as<std::int64_t>()[0] += static_cast<std::int64_t>(c.random().next() % 1000) * 1000000;
                         return Row{t};
                       })
                       .repeat(2);
    seen.push_back(epochs(d, 2));
  }
  EXPECT_EQ(seen[0], seen[1]);
  EXPECT_EQ(seen[0], seen[2]);
  EXPECT_NE(seen[0][0], seen[0][1]);
}

TEST(Determinism, RandomOperationsDifferByRowEpochAndOperation) {  // B04
  const auto draw = [](const Row&, const RowContext& c) {
    return Row{Tensor::scalar(static_cast<std::int64_t>(c.random().next()))};
  };
  const auto two = epochs(numbers(8).map(draw), 2);
  std::set<std::int64_t> distinct(two[0].begin(), two[0].end());
  distinct.insert(two[1].begin(), two[1].end());
  EXPECT_EQ(distinct.size(), 16u);
  EXPECT_EQ(two, epochs(numbers(8).map(draw, {.num_parallel_workers = 3}), 2));
  EXPECT_NE(two[0], all(numbers(8).map([](const Tensor& t) { return t; }).map(draw)));
}

TEST(Shards, EqualPartsThatWrapRound) {  // B06
  const std::vector<Ints> expected = {{0, 4, 8}, {1, 5, 9}, {2, 6, 0}, {3, 7, 1}};
  for (int s = 0; s < 4; ++s) {
    const SourceOptions o{.shuffle = false, .num_shards = 4, .shard_id = s};
    for (const Dataset& d : {numbers(10, o), slices(10, o), sequence(10, o)}) {
      EXPECT_EQ(all(d), expected[static_cast<std::size_t>(s)]);
      EXPECT_EQ(d.get_dataset_size(), 3);
      EXPECT_THAT(batch_sizes(d.batch(2)), ElementsAre(2, 1));
    }
    for (const Dataset& d : {numbers(3, o), sequence(3, o)}) EXPECT_THAT(all(d), ElementsAre(s % 3));
    for (const Dataset& d : {numbers(8, o), sequence(8, o)}) EXPECT_THAT(all(d), ElementsAre(s, s + 4));
  }
}

TEST(Shards, ShuffledShardsAreAPartition) {
  std::vector<Ints> first;
  for (int e = 0; e < 2; ++e) {
    Ints together;
    for (int s = 0; s < 4; ++s) {
      const Ints part = epochs(numbers(10, {.num_shards = 4, .shard_id = s}), 2)[static_cast<std::size_t>(e)];
      EXPECT_EQ(part.size(), 3u);
      together.insert(together.end(), part.begin(), part.end());
    }
    const std::set<std::int64_t> distinct(together.begin(), together.end());
    EXPECT_EQ(distinct.size(), 10u);
    first.push_back(together);
  }
  EXPECT_NE(first[0], first[1]);
}

TEST(Samplers, RowsThatAreNotThere) {
  const auto error = [](std::shared_ptr<const Sampler> s) {
    return message<IndexError>([&] { all(numbers(10, {.sampler = std::move(s)})); });
  };
  EXPECT_THAT(error(SubsetSampler({3, 10})), HasSubstr("gave row 10, but there are 10 rows"));
  EXPECT_THAT(error(SubsetSampler({-1})), HasSubstr("gave row -1"));
  EXPECT_THAT(error(SequentialSampler(10)), HasSubstr("start_index is 10, but there are 10 rows"));
  EXPECT_THAT(error(WeightedRandomSampler(std::vector<double>(11, 1.), 1)), HasSubstr("11 weights, but 10 rows"));
}

TEST(Samplers, Orders) {
  const auto with = [](std::shared_ptr<const Sampler> s) { return all(numbers(10, {.sampler = std::move(s)})); };
  EXPECT_THAT(with(SequentialSampler(3, 4)), ElementsAre(3, 4, 5, 6));
  EXPECT_THAT(with(SubsetSampler({7, 0, 7})), ElementsAre(7, 0, 7));
  EXPECT_EQ(sorted(with(SubsetRandomSampler({7, 0, 5}))), (Ints{0, 5, 7}));
  EXPECT_THAT(with(DistributedSampler(4, 0, false, 0, 1)), ElementsAre(3, 7));
  EXPECT_THAT(with(DistributedSampler(4, 1, false, 0, 1)), ElementsAre(0, 4, 8));
  EXPECT_THAT(with(DistributedSampler(4, 3, false, 0, 1)), ElementsAre(2, 6, 0));
  EXPECT_EQ(with(RandomSampler(true, 30)).size(), 30u);
  const auto few = with(RandomSampler(false, 4));
  EXPECT_EQ(std::set<std::int64_t>(few.begin(), few.end()).size(), 4u);
  for (const std::int64_t i : with(WeightedRandomSampler({0, 1, 0, 3, 0, 0, 0, 0, 0, 0}, 40)))
    EXPECT_TRUE(i == 1 || i == 3);
  EXPECT_EQ(sorted(with(WeightedRandomSampler({0, 1, 0, 3, 2}, 3, false))), (Ints{1, 3, 4}));
  EXPECT_THROW(WeightedRandomSampler({0, 0}), ValueError);
  EXPECT_THROW(with(SubsetSampler({10})), IndexError);
  EXPECT_THAT(all(numbers(10, {.shuffle = false, .num_samples = 3})), ElementsAre(0, 1, 2));
  EXPECT_THAT(all(sequence(10, {.num_samples = 3})), ElementsAre(0, 1, 2));
  const auto some = all(numbers(10, {.num_samples = 8}));  // without repetition
  EXPECT_EQ(std::set<std::int64_t>(some.begin(), some.end()).size(), 8u);
}

TEST(Split, PartsNeverShareARow) {  // B14
  for (const bool randomize : {false, true}) {
    const auto parts = numbers(10).shuffle(10).split({8, 2}, randomize);
    std::set<std::int64_t> train, test;
    for (const Ints& e : epochs(parts[0], 3)) train.insert(e.begin(), e.end());
    for (const Ints& e : epochs(parts[1], 3)) test.insert(e.begin(), e.end());
    EXPECT_EQ(train.size(), 8u);
    EXPECT_EQ(test.size(), 2u);
    for (const std::int64_t i : test) EXPECT_EQ(train.count(i), 0u);
  }
}

}  // namespace
}  // namespace undertow::data
