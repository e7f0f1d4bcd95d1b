// SPDX-License-Identifier: Apache-2.0
// Control flow from C++: programs on both devices, in commands of many steps, and what they print.
#include "undertow/ops/control.h"

#include <gtest/gtest.h>

#include <iostream>
#include <sstream>
#include <thread>

#include "undertow/ops/ops.h"
#include "undertow/ops/print.h"
#include "undertow/runtime/context.h"
#include "undertow/runtime/session.h"
#include "undertow/runtime/stats.h"

namespace undertow::runtime {
namespace {

using ops::Tensors;

class Control : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { set_context({.mode = GRAPH_MODE, .device_target = GetParam()}); }
};
INSTANTIATE_TEST_SUITE_P(Devices, Control, ::testing::Values("reference", "CPU"));

/// `rows` batches of one column.
struct Rows {
  explicit Rows(const std::vector<std::vector<float>>& rows)
      : channel({{"x", DType::kFloat32, {static_cast<std::int64_t>(rows[0].size())}}}) {
    writer = std::thread([this, rows] {
      const std::vector<ColumnType> type{{"x", DType::kFloat32, {static_cast<std::int64_t>(rows[0].size())}}};
      for (std::size_t s = 0; s < rows.size(); ++s) {
        ChannelSlot* slot = channel.acquire(static_cast<std::int64_t>(s), type);
        std::copy(rows[s].begin(), rows[s].end(), reinterpret_cast<float*>(slot->columns[0]));
        channel.publish(slot);
      }
      channel.end(static_cast<std::int64_t>(rows.size()));
    });
  }
  ~Rows() { writer.join(); }
  Channel channel;
  std::thread writer;
};

/// A step with a scan, a branch that writes a parameter, and a loop whose trips depend on the data.
struct Machine {
  Parameter total{Tensor::zeros({}), "total"}, high{Tensor::zeros({}), "high"};
  StepFunction step{"machine",
                    [this](Trace&, const std::vector<Tensor>& in) {
                      const auto s = ops::scan(
                          [&](const Tensors& c, const Tensors& x) {
                            ops::assign(total, total + x[0]);
                            return ops::ScanResult{{c[0] * 0.5 + x[0]}, {}};
                          },
                          {ops::constant(0, DType::kFloat32)}, {in[0]});
                      ops::cond(
                          ops::greater(s.carry[0], high),
                          [&](const Tensors&) {
                            ops::assign(high, s.carry[0]);
                            return Tensors{};
                          },
                          [](const Tensors&) { return Tensors{}; });
                      const Tensor doubled =
                          ops::while_loop([](const Tensors& c) { return ops::less(c[0], 100.0); },
                                          [](const Tensors& c) { return Tensors{c[0] * 2.0 + 1.0}; }, {high})[0];
                      return std::vector<Tensor>{doubled};
                    },
                    StepOutputs::kLoss};
};

TEST_P(Control, ACommandOfManySteps) {
  Machine m;
  std::vector<std::vector<float>> rows;
  for (int s = 0; s < 300; ++s) rows.push_back({static_cast<float>(s % 7), 1, static_cast<float>(-s % 3), 2});
  Rows data(rows);
  CommandResult first, r;
  run_command(m.step, data.channel, {.steps = 10}, first);
  reset_stats();
  run_command(m.step, data.channel, {.steps = 290}, r);
  EXPECT_EQ(r.steps, 290);
  EXPECT_EQ(stats().commands, 1);
  EXPECT_EQ(stats().allocations, 0);
  r.records.insert(r.records.begin(), first.records.begin(), first.records.end());
  double total = 0, high = 0;
  for (int s = 0; s < 300; ++s) {
    double c = 0;
    for (const float x : rows[static_cast<std::size_t>(s)]) {
      total += x;
      c = c * 0.5 + x;
    }
    high = std::max(high, c);
    double d = high;
    while (d < 100) d = d * 2 + 1;
    ASSERT_NEAR(r.records[static_cast<std::size_t>(s)].loss, d, 1e-3) << "step " << s;
  }
  EXPECT_NEAR(m.total.item<float>(), total, 1e-3);
  EXPECT_NEAR(m.high.item<float>(), high, 1e-5);
}

TEST_P(Control, AStopEndsALoopThatWouldNot) {
  StepFunction step{"forever",
                    [](Trace&, const std::vector<Tensor>& in) {
                      return ops::while_loop([](const Tensors& c) { return ops::greater_equal(c[0], 0.0); },
                                             [](const Tensors& c) { return Tensors{ops::abs(c[0]) * 0.5 + 1.0}; },
                                             {ops::reduce_sum(in[0])});
                    },
                    StepOutputs::kLoss};
  Rows data({{1, 2}, {3, 4}});
  std::atomic<bool> stop{false};
  CommandOptions options{.steps = 2};
  options.stop = &stop;
  options.poll = [&](std::span<const backend::StepRecord>) { stop = true; };
  CommandResult r;
  run_command(step, data.channel, options, r);
  EXPECT_EQ(r.steps, 0);
}

TEST_P(Control, AnErrorInALoopNamesItsOpAndChangesNothing) {
  Parameter count(Tensor::zeros({}), "count");
  StepFunction step{"gathers",
                    [&](Trace&, const std::vector<Tensor>& in) {
                      const Tensor at = ops::cast(in[0], DType::kInt32);
                      const auto s = ops::scan(
                          [&](const Tensors& c, const Tensors& i) {
                            ops::assign(count, count + 1.0);
                            return ops::ScanResult{{c[0] + ops::gather(ops::arange(4, DType::kFloat32), i[0])}, {}};
                          },
                          {ops::constant(0, DType::kFloat32)}, {at});
                      return std::vector<Tensor>{s.carry[0]};
                    },
                    StepOutputs::kLoss};
  Rows data({{0, 1, 2}, {1, 7, 1}, {0, 0, 0}});
  CommandResult r;
  try {
    run_command(step, data.channel, {.steps = 3}, r);
    FAIL() << "index 7 of 4 was accepted";
  } catch (const IndexError& e) {
    EXPECT_NE(std::string(e.what()).find("index 7"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("in gather"), std::string::npos) << e.what();
  }
  EXPECT_EQ(r.steps, 1);
  EXPECT_EQ(count.item<float>(), 3);
}

TEST_P(Control, PrintsGoToCoutInOrder) {
  StepFunction step{"prints",
                    [](Trace&, const std::vector<Tensor>& in) {
                      ops::print_({"first {", in[0], "}"}, "", "\n");
                      // Fusion would like to compute what the last print needs early.
                      const Tensor late = ops::reduce_sum(ops::tanh(in[0] * 0.0) + 1.0);
                      ops::scan(
                          [](const Tensors&, const Tensors& x) {
                            ops::print_({x[0]});
                            return ops::ScanResult{};
                          },
                          {}, {in[0]});
                      ops::print_({"last", late});
                      return std::vector<Tensor>{late};
                    },
                    StepOutputs::kLoss};
  std::vector<std::vector<float>> rows;
  std::string expected;
  for (int s = 0; s < 50; ++s) {
    rows.push_back({static_cast<float>(s), 0.5});
    const std::string n = std::to_string(s);
    // Columns are as wide as the widest number before the point.
    expected += "first {[" + n + ".  " + std::string(n.size() - 1, ' ') + "0.5]}\n" + n + ".0\n0.5\nlast\n2.0\n";
  }
  Rows data(rows);
  std::ostringstream out;
  std::streambuf* before = std::cout.rdbuf(out.rdbuf());
  CommandResult r;
  run_command(step, data.channel, {.steps = 50}, r);
  std::cout.rdbuf(before);
  EXPECT_EQ(r.steps, 50);
  EXPECT_EQ(out.str(), expected);
}

}  // namespace
}  // namespace undertow::runtime
