// SPDX-License-Identifier: Apache-2.0
#include <set>
#include <thread>

#include "tests/data/common.h"
#include "tests/data/sinks.h"

namespace undertow::data {
namespace {

using ::testing::HasSubstr;

/// All values of column 0 (int32), batch by batch, to the end; epoch ends as -1.
Ints drain(RingSink& sink, std::int64_t rows, std::int64_t batch) {
  Ints out;
  std::int64_t in_epoch = 0;
  while (auto* p = sink.take()) {
    const auto n = std::min(batch, rows - in_epoch);
    for (std::int64_t i = 0; i < n; ++i) out.push_back(reinterpret_cast<const std::int32_t*>(p->columns[0])[i]);
    in_epoch += n;
    if (p->last) {
      out.push_back(-1);
      in_epoch = 0;
    }
    sink.release();
  }
  return out;
}

TEST(Pipeline, EpochsFollowWithoutASeam) {
  for (const int workers : {1, 2, 4})
    for (const Dataset& d :
         {numbers(42, {.shuffle = false, .num_parallel_workers = workers}), slices(42), sequence(42)}) {
      const auto b = d.map([](const Tensor& t) { return t; }, {.num_parallel_workers = workers}).batch(16);
      Pipeline p(b, {.num_epochs = 3});
      EXPECT_EQ(p.workers(), workers);
      RingSink sink(6, p.specs());
      p.start(sink);
      Ints one = range(42), expected;
      one.push_back(-1);
      for (int e = 0; e < 3; ++e) expected.insert(expected.end(), one.begin(), one.end());
      EXPECT_EQ(drain(sink, 42, 16), expected);
      p.stop();
    }
}

TEST(Pipeline, SmallBatchesComeInRuns) {
  Pipeline p(slices(16000).batch(16), {.num_epochs = 10});
  RingSink sink(256, p.specs());
  p.start(sink);
  const Ints v = drain(sink, 16000, 16);
  EXPECT_EQ(v.size(), 160010u);
  p.stop();
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // which make batches slow, and runs short
  EXPECT_LT(sink.runs, 10000 / 2);
#endif
}

TEST(Pipeline, ResumesWhereItWasLeft) {
  const auto d = numbers(20, {}).batch(4);
  std::vector<Ints> whole;
  const auto run = [&](PipelineOptions o) {
    Pipeline p(d, o);
    RingSink sink(4, p.specs());
    p.start(sink);
    Ints v = drain(sink, 20, 4);
    p.stop();
    return v;
  };
  const Ints full = run({.num_epochs = 3});
  EXPECT_EQ(run({.num_epochs = 2, .first_epoch = 1}), Ints(full.begin() + 21, full.end()));
  EXPECT_EQ(run({.num_epochs = 2, .first_epoch = 1, .first_batch = 3}), Ints(full.begin() + 33, full.end()));
  EXPECT_EQ(run({.num_epochs = 2, .first_epoch = 1, .first_batch = 5}), Ints(full.begin() + 42, full.end()));
  EXPECT_NE(run({.seed = 3, .num_epochs = 3}), full);
}

TEST(Pipeline, StopsWhileBlocked) {
  for (const int workers : {1, 2, 4}) {
    Pipeline p(slices(1000, {}).map([](const Tensor& t) { return t; }, {.num_parallel_workers = workers}).batch(4),
               {.num_epochs = -1});
    RingSink sink(4, p.specs());
    p.start(sink);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));  // the ring is full by now
    p.stop();
    p.stop();
  }
  Pipeline unstarted(slices(10));
}

TEST(Pipeline, StopsWithinABatch) {
  std::atomic<int> calls{0};
  const auto d = GeneratorDataset(
      [&](std::int64_t) {
        if (++calls > 1) std::this_thread::sleep_for(std::chrono::milliseconds(2));
        return Row{Tensor::scalar(1)};
      },
      100000, {"x"});
  Pipeline p(d.batch(100000));
  RingSink sink(2, p.specs());
  p.start(sink);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  p.stop();
  EXPECT_LT(calls, 1000);
}

TEST(Pipeline, FailureComesAfterTheBatchesBeforeIt) {
  for (const int workers : {1, 2, 4})
    for (int repeat = 0; repeat < 20; ++repeat) {
      const auto d = numbers(400)
                         .map(
                             [](const Tensor& t) {
                               if (t.item_as_int() == 203) throw ValueError("bad row");
                               return t;
                             },
                             {.num_parallel_workers = workers})
                         .batch(4);
      Pipeline p(d, {.num_epochs = 2});
      RingSink sink(16, p.specs());
      p.start(sink);
      for (int b = 0; b < 50; ++b) {
        auto* place = sink.take();
        ASSERT_TRUE(place);
        EXPECT_EQ(*reinterpret_cast<const std::int32_t*>(place->columns[0]), b * 4);
        sink.release();
      }
      EXPECT_THAT(message<ValueError>([&] { sink.take(); }), HasSubstr("row 203 of epoch 1"));
      p.stop();
    }
}

TEST(Pipeline, AsksForOtherMemoryWhereShapesChange) {
  const auto d = numbers(40).map([](const Tensor& t) { return Tensor::full({t.item_as_int() / 4 + 1}, 1); });
  Pipeline p(d.batch(4));
  RingSink sink(3, p.specs());
  p.start(sink);
  int n = 0;
  while (sink.take()) {
    sink.release();
    ++n;
  }
  EXPECT_EQ(n, 10);
  EXPECT_EQ(sink.resized, 9);
  p.stop();
}

TEST(Pipeline, RunsOnNiceThreads) {
  static std::atomic<int> nice{0};
  const auto d = numbers(4).map([](const Tensor& t) {
    nice = ::nice(0);
    return t;
  });
  all(d);
  EXPECT_EQ(nice, 19);
}

TEST(Pipeline, PreparesBeforeThreadsStart) {
  struct Op : MapOp {
    std::thread::id caller;
    int threads = 0;
    std::atomic<int> held{0};  // what prepare() gave, and nobody has dropped
    bool held_in_a_row = false;
    Row operator()(const Row& in, const RowContext& context) override {
      if (context.stop) held_in_a_row = held == 1;  // not from describe()
      return in;
    }
    std::shared_ptr<void> prepare(int workers) override {
      caller = std::this_thread::get_id();
      threads = workers;
      ++held;
      return std::shared_ptr<std::atomic<int>>(&held, [](std::atomic<int>* n) { --*n; });
    }
  };
  const auto op = std::make_shared<Op>();
  all(numbers(4).map(MapFunction(op), {.num_parallel_workers = 3}));
  EXPECT_EQ(op->caller, std::this_thread::get_id());
  EXPECT_EQ(op->threads, 3);
  EXPECT_TRUE(op->held_in_a_row);
  EXPECT_EQ(op->held, 0);
}

}  // namespace
}  // namespace undertow::data
