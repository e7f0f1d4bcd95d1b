// SPDX-License-Identifier: Apache-2.0
#include "undertow/data/processes.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <set>
#include <thread>

#include "tests/data/common.h"
#include "undertow/data/column_op.h"

namespace undertow::data {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Dataset in_workers(const Dataset& d, ColumnFn f, int workers = 2) {
  return d.map(in_processes(column_op("f", std::move(f))), {.num_parallel_workers = workers});
}

bool has_children() { return waitpid(-1, nullptr, WNOHANG) == 0; }

TEST(Processes, GiveTheRowsThatThreadsGive) {
  const auto f = random_op("draws", [](const Tensor& t, PhiloxStream& random) {
    return Tensor::scalar(static_cast<std::int32_t>(t.item_as_int() * 1000 + static_cast<int>(random.below(1000))));
  });
  const auto run = [&](const Dataset& d) {
    std::vector<Ints> out = epochs(d, 2);
    return out;
  };
  const auto expected = run(numbers(30, {}).map(MapFunction(f), {.num_parallel_workers = 1}).batch(4));
  EXPECT_NE(expected[0], expected[1]);
  for (int workers = 1; workers <= 4; ++workers) {
    EXPECT_EQ(run(numbers(30, {}).map(MapFunction(f), {.num_parallel_workers = workers}).batch(4)), expected);
    EXPECT_EQ(run(numbers(30, {}).map(in_processes(f), {.num_parallel_workers = workers}).batch(4)), expected);
  }
  EXPECT_FALSE(has_children());
}

TEST(Processes, RunElsewhereAndStayOverEpochs) {
  const auto pids = in_workers(numbers(40), [](const Tensor&) { return Tensor::scalar(std::int32_t{getpid()}); });
  std::set<std::int64_t> seen;
  for (const Ints& e : epochs(pids, 3)) seen.insert(e.begin(), e.end());
  EXPECT_LE(seen.size(), 2u);
  EXPECT_FALSE(seen.contains(getpid()));
}

TEST(Processes, SourcesAndBatchFunctions) {
  struct Squares : Source {
    std::int64_t size() const override { return 10; }
    void fetch(std::int64_t index, Row& out) override {
      out = Row{Tensor::scalar(static_cast<std::int32_t>(index * index)),
                Tensor::full({2000}, static_cast<double>(index))};
    }
  };
  const Dataset source(in_processes(std::make_shared<Squares>()), {"x", "y"},
                       {.shuffle = false, .num_parallel_workers = 2});
  EXPECT_THAT(all(source.batch(4)), ElementsAre(0, 1, 4, 9, 16, 25, 36, 49, 64, 81));
  std::int64_t at = 0;
  for (const Row& row : source) EXPECT_EQ(values(row[1]), Ints(2000, at++));

  struct Sum : CollateOp {
    Row operator()(std::span<const Row> rows, const RowContext&) override {
      std::int64_t sum = 0;
      for (const Row& r : rows) sum += r[0].item_as_int();
      return Row{Tensor::scalar(static_cast<std::int32_t>(sum))};
    }
  };
  EXPECT_THAT(all(numbers(10).batch(4, {.collate = in_processes(std::make_shared<Sum>()), .num_parallel_workers = 2})),
              ElementsAre(6, 22, 17));
}

TEST(Processes, RowsOfAnySizeAndShape) {
  const auto d = in_workers(numbers(6), [](const Tensor& t) { return Tensor::full({t.item_as_int() * 100'000}, 7); });
  std::int64_t at = 0;
  for (const Row& row : d) EXPECT_EQ(row[0].size(), at++ * 100'000);
  EXPECT_EQ(at, 6);
}

struct Special : std::exception {
  const char* what() const noexcept override { return "special p q"; }
};

TEST(Processes, ExceptionsComeBack) {  // B10
  const auto at_3 = [](auto error) {
    return [error](const Tensor& t) {
      if (t.item_as_int() == 3) throw error;
      return t;
    };
  };
  for (const int workers : {1, 2, 4}) {
    const auto ours = in_workers(numbers(8), at_3(FormatError("torn record")), workers);
    EXPECT_THAT(message<FormatError>([&] { all(ours.batch(2)); }),
                AllOf(HasSubstr("torn record"), HasSubstr("row 3 of epoch 1")));
    const auto foreign = in_workers(numbers(8), at_3(Special()), workers);
    auto it = foreign.create_tuple_iterator(1);
    for (int i = 0; i < 3; ++i) EXPECT_EQ((*it.next())[0].item_as_int(), i);
    EXPECT_THAT(message<DataError>([&] { it.next(); }), AllOf(HasSubstr("Special"), HasSubstr("special p q")));
    EXPECT_THAT(all(foreign.take(3)), ElementsAre(0, 1, 2));  // usable afterwards
  }
  EXPECT_FALSE(has_children());
}

TEST(Processes, AKilledWorkerIsNoticed) {  // B10
  const auto parent = getpid();
  const auto d = in_workers(numbers(8), [parent](const Tensor& t) {
    if (t.item_as_int() == 3 && getpid() != parent) raise(SIGKILL);
    return t;
  });
  for (int again = 0; again < 2; ++again) {
    const auto start = std::chrono::steady_clock::now();
    EXPECT_THAT(message<DataError>([&] { all(d.batch(2)); }),
                AllOf(HasSubstr("worker process"), HasSubstr("of f was killed by signal 9"), HasSubstr("row 3")));
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
  }
  EXPECT_THAT(all(d.take(3)), ElementsAre(0, 1, 2));
  EXPECT_FALSE(has_children());
}

TEST(Processes, EndWithTheIterator) {
  const auto slow = in_workers(numbers(100), [](const Tensor& t) {
    if (t.item_as_int() > 2) std::this_thread::sleep_for(std::chrono::seconds(20));
    return t;
  });
  const auto start = std::chrono::steady_clock::now();
  {
    auto it = slow.create_tuple_iterator(1);
    EXPECT_TRUE(it.next());
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    EXPECT_TRUE(has_children());
  }
  EXPECT_FALSE(has_children());
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(3));
}

TEST(Processes, TwoIteratorsAtOnce) {
  const auto d = in_workers(numbers(20), [](const Tensor& t) { return t; });
  auto a = d.create_tuple_iterator(1);
  for (int i = 0; i < 5; ++i) EXPECT_EQ((*a.next())[0].item_as_int(), i);
  {
    auto b = d.create_tuple_iterator(1);
    for (int i = 0; i < 3; ++i) EXPECT_EQ((*b.next())[0].item_as_int(), i);
  }
  for (int i = 5; i < 20; ++i) EXPECT_EQ((*a.next())[0].item_as_int(), i);
}

TEST(Processes, NeedRandomAccess) {
  struct Stream : Source {
    std::int64_t size() const override { return -1; }
  };
  EXPECT_THAT(message<ValueError>([] { in_processes(std::make_shared<Stream>()); }), HasSubstr("random access"));
}

}  // namespace
}  // namespace undertow::data
