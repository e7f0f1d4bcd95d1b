// SPDX-License-Identifier: Apache-2.0
// Positions, profiles, tuning, callbacks, sync_wait.
#include <thread>

#include "tests/data/common.h"
#include "undertow/data/callback.h"
#include "undertow/data/column_op.h"
#include "undertow/data/processes.h"

namespace undertow::data {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

MapFunction drawing() {
  return random_op("draws", [](const Tensor& t, PhiloxStream& random) {
    return Tensor::scalar(static_cast<std::int32_t>(t.item_as_int() * 1000 + static_cast<int>(random.below(1000))));
  });
}

struct Figures {  // gives back the settings
  ~Figures() { config() = before; }
  Config before = config();
};

TEST(State, ResumesWithTheSameRows) {
  const Figures restore;
  for (const bool fuse : {true, false})
    for (int workers = 1; workers <= 4; ++workers)
      for (const bool processes : {false, true}) {
        config().fuse = fuse;
        const MapFunction f = processes ? MapFunction(in_processes(drawing().op())) : drawing();
        const auto make = [&](const Dataset& source) {
          return source.map(f, {.num_parallel_workers = workers}).shuffle(5).batch(3);
        };
        for (const bool random_access : {true, false}) {
          const auto d = make(random_access ? numbers(20, {}) : sequence(20));
          const auto whole = epochs(d, 3);
          for (const int stop : {0, 2, 7, 8, 13}) {  // batches; an epoch has 7
            auto it = d.create_tuple_iterator(3);
            Ints before;
            for (int b = 0; b < stop;) {
              const auto row = it.next();
              if (!row) continue;
              ++b;
            }
            const Position at = it.state();
            EXPECT_EQ(at, d.state());
            EXPECT_EQ(at, (Position{config().seed, stop / 7, stop % 7}));
            const auto other = make(random_access ? numbers(20, {}) : sequence(20));
            config().seed += 1;  // the position's counts
            other.load_state(at);
            EXPECT_EQ(other.state(), at);
            auto rest = other.create_tuple_iterator(2);
            const auto first = static_cast<std::size_t>(stop / 7);
            EXPECT_EQ(epoch(rest), Ints(whole[first].begin() + stop % 7 * 3, whole[first].end()));
            if (first < 2) {
              EXPECT_EQ(epoch(rest), whole[first + 1]);
            }
            config().seed -= 1;
            EXPECT_EQ(epochs(d, 1)[0], whole[0]);  // a position is taken once
          }
        }
      }
}

TEST(State, WrongPositions) {
  const auto d = numbers(10).batch(4);
  EXPECT_THAT(message<ValueError>([&] { d.load_state({1, 0, 3}); }), HasSubstr("an epoch has 3 batches"));
  EXPECT_THAT(message<ValueError>([&] { d.load_state({1, -1, 0}); }), HasSubstr("must not be negative"));
}

Tensor slow(const Tensor& t) {
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  return t;
}

TEST(Profile, NamesTheSlowestStage) {
  const auto d = numbers(200)
                     .map(column_op("fast", [](const Tensor& t) { return t; }))
                     .map(column_op("slow", slow), {.num_parallel_workers = 1})
                     .batch(4);
  EXPECT_FALSE(d.last_profile());
  const Profile p = d.profile(20);
  ASSERT_EQ(p.stages.size(), 4u);
  EXPECT_EQ(p.stages[0].name, "GeneratorDataset");
  EXPECT_THAT(p.stages[1].name, HasSubstr("map(fast) of x"));
  EXPECT_THAT(p.stages[2].name, HasSubstr("map(slow) of x"));
  EXPECT_EQ(p.stages[3].name, "batch");
  EXPECT_GT(p.stages[2].share, .8);
  EXPECT_GE(p.stages[2].seconds_per_sample, 2e-3);
  EXPECT_LE(p.stages[2].samples_per_second, 500);
  EXPECT_EQ(p.stages[2].workers, 1);
  EXPECT_GE(p.stages[2].samples, 80);
  EXPECT_GE(p.batches, 20);
  EXPECT_GT(p.wait_seconds, .1);
  EXPECT_LE(p.wait_seconds, p.seconds);
  EXPECT_THAT(p.bottleneck, AllOf(HasSubstr("The consumer waited for data"), HasSubstr("map(slow) of x takes")));
  EXPECT_THAT(p.str(), AllOf(HasSubstr("map(fast)"), HasSubstr("batches ready on average"), HasSubstr(p.bottleneck)));
  double shares = 0;
  for (const StageProfile& s : p.stages) shares += s.share;
  EXPECT_NEAR(shares, 1, 1e-9);
  EXPECT_EQ(d.state(), (Position{config().seed, 0, 0}));  // as if nothing had run
  ASSERT_TRUE(d.last_profile());
  EXPECT_THAT(message<ValueError>([&] { d.profile(0); }), HasSubstr("at least 1"));
}

TEST(Profile, AFastPipelineKeepsUp) {
  // Long enough for the start of the threads to be a small part of it on a busy machine.
  const auto d = numbers(400).batch(4);
  {
    auto it = d.create_tuple_iterator(1);
    while (it.next()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  const Profile p = *d.last_profile();
  EXPECT_THAT(p.bottleneck, HasSubstr("The pipeline keeps up"));
  EXPECT_GT(p.queue_depth, 1);
  EXPECT_LE(p.queue_depth, static_cast<double>(p.queue_size));
}

TEST(Autotune, MovesWorkersToTheSlowestStage) {
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  if (cores < 2) GTEST_SKIP() << "one core";
  const Figures restore;
  const auto d = numbers(400)
                     .map(column_op("fast", [](const Tensor& t) { return t; }), {.num_parallel_workers = 1})
                     .map(column_op("slow", slow), {.num_parallel_workers = 1})
                     .batch(2);
  const auto expected = all(d);
  EXPECT_EQ(d.last_profile()->stages[2].workers, 1);
  config().autotune = true;
  EXPECT_EQ(all(d), expected);
  const Profile p = *d.last_profile();
  EXPECT_EQ(p.stages[2].workers, cores);
  EXPECT_EQ(p.stages[1].workers, 1);
  EXPECT_EQ(Pipeline(numbers(4).map(column_op("f", slow), {.num_parallel_workers = 60}).batch(2)).workers(), cores);
}

struct Log : DSCallback {
  using DSCallback::DSCallback;
  std::string text;
  void add(const char* what, const DSRunContext& c) { text += fmt_one(what, c); }
  static std::string fmt_one(const char* what, const DSRunContext& c) {
    return std::string(what) + std::to_string(c.cur_epoch_num) + "/" + std::to_string(c.cur_step_num_in_epoch) + "/" +
           std::to_string(c.cur_step_num) + " ";
  }
  void ds_begin(const DSRunContext& c) override { add("begin", c); }
  void ds_epoch_begin(const DSRunContext& c) override { add("<", c); }
  void ds_epoch_end(const DSRunContext& c) override { add(">", c); }
  void ds_step_begin(const DSRunContext& c) override { add("(", c); }
  void ds_step_end(const DSRunContext& c) override { add(")", c); }
};

TEST(Callbacks, FollowTheRows) {
  const auto one = std::make_shared<Log>(), two = std::make_shared<Log>(2);
  const auto d =
      numbers(3).map([](const Tensor& t) { return t; }, {.num_parallel_workers = 2, .callbacks = {one, two}});
  EXPECT_EQ(epochs(d.batch(2), 2), (std::vector<Ints>{{0, 1, 2}, {0, 1, 2}}));
  EXPECT_EQ(one->text,
            "begin0/0/0 <1/0/0 (1/1/1 )1/1/1 (1/2/2 )1/2/2 (1/3/3 )1/3/3 >1/3/3 "
            "<2/0/3 (2/1/4 )2/1/4 (2/2/5 )2/2/5 (2/3/6 )2/3/6 >2/3/6 ");
  EXPECT_EQ(two->text, "begin0/0/0 <1/0/0 (1/1/1 )1/1/1 (1/3/3 )1/3/3 >1/3/3 <2/0/3 (2/2/5 )2/2/5 >2/3/6 ");
}

TEST(Callbacks, AnErrorEndsThePipeline) {
  struct Bad : DSCallback {
    void ds_step_begin(const DSRunContext& c) override {
      if (c.cur_step_num == 3) throw ValueError("no more");
    }
  };
  const auto d = numbers(5).map([](const Tensor& t) { return t; }, {.callbacks = {std::make_shared<Bad>()}});
  auto it = d.create_tuple_iterator(1);
  EXPECT_TRUE(it.next());
  EXPECT_TRUE(it.next());
  EXPECT_THAT(message<ValueError>([&] { it.next(); }), HasSubstr("no more"));
}

TEST(Sync, BatchesWaitUntilTheyAreLetThrough) {
  std::atomic<int> factor{1};
  std::atomic<int> calls{0};
  const auto d = numbers(6)
                     .sync_wait("policy", 1, [&](const void* data) { factor = *static_cast<const int*>(data); })
                     .map([&](const Tensor& t) {
                       ++calls;
                       return Tensor::scalar(static_cast<std::int32_t>(t.item_as_int() * factor));
                     });
  for (int e = 0; e < 2; ++e) {
    factor = 1;
    auto it = d.create_tuple_iterator(1);
    for (int i = 0; i < 6; ++i) {
      EXPECT_EQ((*it.next())[0].item_as_int(), i * factor);
      const int next = i + 2;
      d.sync_update("policy", 0, &next);
    }
    EXPECT_FALSE(it.next());
  }
  EXPECT_THAT(message<ValueError>([&] { d.sync_update("other"); }), HasSubstr("no sync_wait('other')"));
  EXPECT_THAT(message<ValueError>([&] { numbers(3).sync_wait("x", 0); }), HasSubstr("num_batch"));
}

TEST(Sync, EndsWhileItWaits) {
  const Figures restore;
  const auto d = numbers(6).sync_wait("never");
  {
    auto it = d.create_tuple_iterator(1);
    EXPECT_TRUE(it.next());
  }
  config().callback_timeout = 1;
  auto it = d.create_tuple_iterator(1);
  EXPECT_TRUE(it.next());
  EXPECT_THAT(message<RuntimeError>([&] { it.next(); }), HasSubstr("no sync_update within 1 s"));
}

TEST(ReadAhead, IsBounded) {
  const Figures restore;
  config().prefetch_size = 4;
  std::atomic<int> made{0};
  const auto read = [&](std::int64_t i) {
    ++made;
    return Row{Tensor::scalar(static_cast<std::int32_t>(i))};
  };
  const auto random_access = GeneratorDataset(read, 1000, {"x"}, {.shuffle = false});
  const auto sequential = GeneratorDataset(
      [&]() -> RowGenerator {
        return [&, i = std::int64_t{0}]() mutable -> std::optional<Row> {
          if (i == 1000) return std::nullopt;
          return read(i++);
        };
      },
      {"x"});
  for (const Dataset& d : {random_access, sequential})
    for (const int workers : {1, 2}) {
      const auto mapped = d.map([](const Tensor& t) { return t; }, {.num_parallel_workers = workers});
      mapped.describe();
      made = 0;
      auto it = mapped.create_tuple_iterator(1);
      for (int taken = 1; taken <= 200; ++taken) {
        it.next();
        if (taken % 50) continue;
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        // Places that are filled, and a run that has been pulled for the next ones, which is no longer than they are.
        EXPECT_LE(made - taken, 2 * config().prefetch_size);
      }
    }
}

}  // namespace
}  // namespace undertow::data
