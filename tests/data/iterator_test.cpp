// SPDX-License-Identifier: Apache-2.0
#include <thread>

#include "tests/data/common.h"

namespace undertow::data {
namespace {

using ::testing::HasSubstr;

TEST(Iterator, EpochAfterEpoch) {
  auto it = numbers(5, {}).create_tuple_iterator(2);
  for (int e = 0; e < 2; ++e) {
    Ints v;
    for (const Row& r : it) v.push_back(r[0].item_as_int());
    EXPECT_EQ(sorted(v), range(5));
  }
  EXPECT_THAT(message<RuntimeError>([&] { it.next(); }), HasSubstr("epochs of this iterator are over"));
}

TEST(Iterator, EndlessOneStopsCleanly) {
  auto it = slices(5).batch(2).create_tuple_iterator();
  for (int e = 0; e < 10; ++e) EXPECT_EQ(epoch(it), range(5));
}

TEST(Iterator, BreakingOutJoins) {
  for (int i = 0; i < 20; ++i)
    for (const Row& r : numbers(100000).batch(2).repeat()) {
      EXPECT_EQ(r[0].shape(0), 2);
      break;
    }
  const auto unused = numbers(100).create_tuple_iterator(1);
}

TEST(Iterator, NamesColumns) {
  auto it = NumpySlicesDataset({Tensor({1.f}), Tensor({2})}, {"a", "b"}).create_dict_iterator(1);
  auto row = it.next();
  ASSERT_TRUE(row);
  EXPECT_EQ(row->at("a").item<float>(), 1.f);
  EXPECT_EQ(row->at("b").item_as_int(), 2);
  EXPECT_FALSE(it.next());
}

TEST(Iterator, RowsAreTheCallersOwn) {
  // Kept rows are not overwritten, and large ones come back to be used again once they are dropped.
  const auto d = NumpySlicesDataset({Tensor::full({64, 4096}, 3)}, {"x"}).batch(8);
  Tensor kept;
  {
    auto it = d.create_tuple_iterator(20);
    kept = (*it.next())[0];
    kept.data_as<float>()[0] = 9;
    for (int i = 0; i < 100; ++i)
      if (auto r = it.next()) {
        EXPECT_EQ((*r)[0].data_as<float>()[0], 3.f);
      }
  }
  EXPECT_EQ(kept.data_as<float>()[0], 9.f);
  EXPECT_EQ(kept.data_as<float>()[1], 3.f);
}

TEST(Iterator, StopFromAnotherThread) {
  const auto d = GeneratorDataset(
      [](std::int64_t i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(i == 0 ? 1 : 50));
        return Row{Tensor::scalar(1)};
      },
      1000, {"x"}, {.shuffle = false});
  auto it = d.batch(1000).create_tuple_iterator(1);
  std::thread t([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    it.stop();
  });
  EXPECT_FALSE(it.next());
  t.join();
}

}  // namespace
}  // namespace undertow::data
