// SPDX-License-Identifier: Apache-2.0
// Mistakes that data pipelines are known for, each as a test.
#include <condition_variable>
#include <mutex>
#include <thread>

#include "tests/data/common.h"

namespace undertow::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(LastBatch, IsShortAndTheEpochEnds) {  // B08
  for (const Dataset& d : {numbers(42), slices(42), sequence(42)}) {
    const auto b = d.batch(16);
    EXPECT_THAT(batch_sizes(b), ElementsAre(16, 16, 10));
    for (const Ints& e : epochs(b, 2)) EXPECT_EQ(e, range(42));
    EXPECT_EQ(b.get_dataset_size(), 3);
    EXPECT_EQ(d.batch(16, {.drop_remainder = true}).get_dataset_size(), 2);
  }
}

TEST(NoBatches, IsAnErrorWithNumbers) {  // B09
  for (const Dataset& d : {numbers(3), slices(3), sequence(3)}) {
    const auto none = d.batch(4, {.drop_remainder = true});
    const auto text = message<DataError>([&] { all(none); });
    EXPECT_THAT(text, AllOf(HasSubstr("0 batches: batch size 4 with drop_remainder"), HasSubstr("3 rows")));
  }
  EXPECT_THAT(message<DataError>([&] { Pipeline(numbers(3).batch(4, {.drop_remainder = true})); }),
              HasSubstr("more than the 3 rows"));
  for (const Dataset& d : {numbers(0), slices(0), sequence(0)})
    EXPECT_THAT(message<DataError>([&] { all(d.batch(2)); }), HasSubstr("has 0 rows"));
  EXPECT_THAT(message<DataError>([&] { all(numbers(3).skip(5).batch(2)); }),
              HasSubstr("skip(5) leaves nothing of the 3 rows"));
  EXPECT_THAT(message<DataError>([&] { all(numbers(3).filter([](const Row&) { return false; }).batch(2)); }),
              HasSubstr("filter dropped all of the 3 rows"));
  EXPECT_THAT(message<DataError>([&] { all(sequence(0).repeat().batch(2)); }), HasSubstr("has 0 rows"));
}

struct Special : std::exception {
  Special(int a, int b) : a(a), b(b) {}
  const char* what() const noexcept override { return "special p q"; }
  int a, b;
};

TEST(Exception, ForeignOnesPassUnchanged) {  // B10
  for (const int workers : {1, 2, 4}) {
    const auto d = numbers(8).map(
        [](const Tensor& t) {
          if (t.item_as_int() == 3) throw Special(1, 2);
          return t;
        },
        {.num_parallel_workers = workers});
    auto it = d.create_tuple_iterator(1);
    for (int i = 0; i < 3; ++i) EXPECT_EQ((*it.next())[0].item_as_int(), i);
    for (int again = 0; again < 2; ++again) {
      try {
        it.next();
        ADD_FAILURE();
      } catch (const Special& e) {
        EXPECT_EQ(e.b, 2);
      }
    }
    EXPECT_THROW(all(d.batch(2)), Special);
    EXPECT_THAT(all(d.take(3)), ElementsAre(0, 1, 2));  // usable afterwards
  }
}

TEST(Exception, OursSayWhichRow) {
  const auto d = slices(8).map([](const Tensor& t) {
    if (t.item_as_int() == 3) throw ValueError("bad label");
    return t;
  });
  EXPECT_THAT(message<ValueError>([&] { all(d.batch(4)); }),
              AllOf(HasSubstr("bad label"), HasSubstr("row 3 of epoch 1"), HasSubstr("NumpySlicesDataset")));
  const auto s = GeneratorDataset(
      []() -> RowGenerator {
        return [i = 0]() mutable -> std::optional<Row> {
          if (i == 5) throw FormatError("torn record");
          return Row{Tensor::scalar(i++)};
        };
      },
      {"x"});
  auto it = s.batch(2).create_tuple_iterator(1);
  EXPECT_TRUE(it.next());
  EXPECT_TRUE(it.next());
  EXPECT_THAT(message<FormatError>([&] { it.next(); }), AllOf(HasSubstr("torn record"), HasSubstr("row 5 of epoch 1")));
}

TEST(Exception, OfTheFirstRowSaysWhere) {
  const auto fails = [](std::int64_t) -> Row { throw FormatError("torn record"); };
  EXPECT_THAT(message<FormatError>([&] { all(GeneratorDataset(fails, 4, {"x"})); }),
              AllOf(HasSubstr("torn record"), HasSubstr("row 0 of GeneratorDataset")));
  const auto bad = [](const Tensor&) -> Tensor { throw ValueError("bad label"); };
  for (const Dataset& d : {numbers(4), slices(4), sequence(4), numbers(4).shuffle(4).repeat(2)})
    EXPECT_THAT(message<ValueError>([&] { all(d.map(bad)); }), AllOf(HasSubstr("bad label"), HasSubstr("row 0 of ")));
  EXPECT_THAT(message<ValueError>([&] { all(numbers(4).batch(2).map(bad)); }),
              AllOf(HasSubstr("bad label"), HasSubstr("batch 0")));
}

TEST(Exception, OfTheFirstRowComesFromDescribe) {
  const auto d = GeneratorDataset([](std::int64_t) -> Row { throw Special(0, 0); }, 4, {"x"});
  EXPECT_THROW(d.describe(), Special);
  EXPECT_THROW(d.create_tuple_iterator(1), Special);
}

TEST(Branches, BothWork) {  // B16
  for (const Dataset& d : {numbers(3), slices(3), sequence(3)}) {
    const auto by = [&](int add, int times) {
      return d.map(
          [=](const Tensor& t) { return Tensor::scalar(static_cast<std::int32_t>((t.item_as_int() + add) * times)); });
    };
    const auto a = by(1, 1), b = by(0, 10);
    EXPECT_THAT(all(a), ElementsAre(1, 2, 3));
    EXPECT_THAT(all(b), ElementsAre(0, 10, 20));
    auto x = a.create_tuple_iterator(1), y = b.create_tuple_iterator(1);
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ((*x.next())[0].item_as_int(), i + 1);
      EXPECT_EQ((*y.next())[0].item_as_int(), i * 10);
    }
    EXPECT_THAT(all(d.take(2)), ElementsAre(0, 1));
    EXPECT_THAT(all(d.skip(2)), ElementsAre(2));
  }
}

TEST(Workers, OverlapWhereTheyWait) {
  std::mutex mutex;
  std::condition_variable changed;
  int inside = 0;
  bool met = false;
  const auto d = GeneratorDataset(
      [&](std::int64_t i) {
        std::unique_lock lock(mutex);
        met |= ++inside == 2;
        changed.notify_all();
        // Row 0 is also pulled alone, to be described.
        if (i > 0) changed.wait_for(lock, std::chrono::seconds(20), [&] { return met; });
        --inside;
        return Row{Tensor::scalar(static_cast<std::int32_t>(i))};
      },
      100, {"x"}, {.num_parallel_workers = 2});
  EXPECT_EQ(sorted(all(d.batch(4))), range(100));
  EXPECT_TRUE(met);
}

TEST(Workers, LimitsHoldPerNode) {
  std::atomic<int> inside{0}, most{0};
  const auto d = GeneratorDataset(
                     [&](std::int64_t i) {
                       const int n = ++inside;
                       int seen = most;
                       while (n > seen && !most.compare_exchange_weak(seen, n)) {
                       }
                       std::this_thread::sleep_for(std::chrono::microseconds(200));
                       --inside;
                       return Row{Tensor::scalar(static_cast<std::int32_t>(i))};
                     },
                     200, {"x"}, {.shuffle = false})
                     .map([](const Tensor& t) { return t; }, {.num_parallel_workers = 4});
  EXPECT_EQ(all(d.batch(4)), range(200));
  EXPECT_EQ(most, 1);  // a source that was given no number is called by one thread at a time
}

TEST(Ordered, OperationsRunOneAtATimeInRowOrder) {
  struct Draws : MapOp {
    int calls = 0;
    bool ordered() const override { return true; }
    Row operator()(const Row& in, const RowContext&) override {
      return Row{Tensor::scalar(static_cast<std::int32_t>(in[0].item_as_int() * 100 + calls++ % 100))};
    }
  };
  const auto op = std::make_shared<Draws>();
  const auto same = [](const Tensor& t) { return t; };
  const auto d = numbers(50).map(MapFunction(op)).map(same, {.num_parallel_workers = 4}).batch(4);
  d.describe();
  op->calls = 0;
  Ints expected;
  for (int i = 0; i < 50; ++i) expected.push_back(i * 101);
  EXPECT_EQ(all(d), expected);
}

}  // namespace
}  // namespace undertow::data
