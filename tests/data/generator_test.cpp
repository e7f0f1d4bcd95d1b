// SPDX-License-Identifier: Apache-2.0
// Sources that only give one row after the other.
#include <atomic>
#include <memory>

#include "tests/data/common.h"

namespace undertow::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// 0 .. n-1, where passes after the first `good` ones are empty; counts what is asked of it.
class Counting : public Source {
 public:
  Counting(std::int64_t n, int good, bool single = false) : n_(n), good_(good), single_(single) {}
  std::string name() const override { return "Counting(rows.txt)"; }
  std::int64_t size() const override { return -1; }
  bool single_pass() const override { return single_; }
  std::unique_ptr<Cursor> open(std::int64_t) override {
    struct Pass : Cursor {
      Counting& s;
      std::int64_t i = 0, n;
      Pass(Counting& source, std::int64_t rows) : s(source), n(rows) {}
      bool next(Row& out) override {
        EXPECT_FALSE(s.busy.exchange(true)) << "two threads pull at once";
        ++s.pulls;
        out = Row{Tensor::scalar(static_cast<std::int32_t>(i))};
        s.busy = false;
        return i++ < n;
      }
    };
    return std::make_unique<Pass>(*this, opens++ < good_ ? n_ : 0);
  }
  std::atomic<int> opens{0}, pulls{0};
  std::atomic<bool> busy{false};

 private:
  std::int64_t n_;
  int good_;
  bool single_;
};

TEST(Generator, FunctionStartsAgainEachEpoch) {  // B01 (a)
  for (const Ints& e : epochs(sequence(5), 3)) EXPECT_EQ(e, range(5));
  for (const Ints& e : epochs(sequence(5).batch(2).repeat(2), 2))
    EXPECT_THAT(e, ElementsAre(0, 1, 2, 3, 4, 0, 1, 2, 3, 4));
}

TEST(Generator, UsedUpObjectIsAnErrorInEpoch2) {  // B01 (b)
  const Dataset d(std::make_shared<Counting>(5, 9, true), {"x"});
  EXPECT_EQ(d.batch(2).output_shapes()[0], (Shape{2}));
  auto it = d.batch(2).create_tuple_iterator(2);
  EXPECT_EQ(epoch(it), range(5));
  EXPECT_THAT(message<DataError>([&] { epoch(it); }), AllOf(HasSubstr("Counting(rows.txt)"), HasSubstr("only once")));
  EXPECT_THROW(all(d), DataError);
  EXPECT_EQ(d.get_dataset_size(), -1);
}

TEST(Generator, IteratorThatNeverStartsAgainIsAnErrorInEpoch2) {  // B01 (c)
  const Dataset d(std::make_shared<Counting>(5, 1), {"x"});
  auto it = d.batch(2).create_tuple_iterator(2);
  EXPECT_EQ(epoch(it), range(5));
  EXPECT_THAT(message<DataError>([&] { epoch(it); }),
              AllOf(HasSubstr("Counting(rows.txt)"), HasSubstr("no rows in epoch 2")));
}

TEST(Generator, ShuffleReallyShuffles) {  // B02
  const auto two = epochs(sequence(40, {.shuffle = true}), 2);
  EXPECT_NE(two[0], range(40));
  EXPECT_NE(two[0], two[1]);
  EXPECT_EQ(sorted(two[0]), range(40));
  EXPECT_EQ(sorted(epochs(sequence(3000, {.shuffle = true}), 1)[0]), range(3000));
}

TEST(Generator, RowsAreNotRepeatedPerWorker) {  // B07
  EXPECT_EQ(all(sequence(10, {.num_parallel_workers = 4})), range(10));
  const auto same = [](const Tensor& t) { return t; };
  EXPECT_EQ(all(Dataset(std::make_shared<Counting>(500, 9), {"x"}).map(same, {.num_parallel_workers = 4}).batch(3)),
            range(500));
}

TEST(Generator, DescribePullsOneRowAndKeepsIt) {
  const auto source = std::make_shared<Counting>(5, 9);
  const Dataset d(source, {"x"});
  const auto b = d.batch(2);
  EXPECT_EQ(b.output_shapes()[0], (Shape{2}));
  EXPECT_EQ(d.output_types()[0], DType::kInt32);
  EXPECT_EQ(source->pulls, 1);
  EXPECT_EQ(source->opens, 1);
  EXPECT_EQ(all(b), range(5));
  EXPECT_EQ(source->opens, 1);
  EXPECT_EQ(all(b), range(5));
  EXPECT_EQ(source->opens, 2);
}

TEST(Generator, EndsWithoutPullingPastItsEnd) {
  const auto source = std::make_shared<Counting>(4, 9);
  EXPECT_EQ(all(Dataset(source, {"x"}).batch(2)), range(4));
  EXPECT_EQ(source->pulls, 5);
}

}  // namespace
}  // namespace undertow::data
