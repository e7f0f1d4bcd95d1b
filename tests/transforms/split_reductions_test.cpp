// SPDX-License-Identifier: Apache-2.0
#include "undertow/transforms/split_reductions.h"

#include <gtest/gtest.h>

#include "undertow/ops/ops.h"
#include "undertow/ops/register.h"
#include "undertow/runtime/context.h"
#include "undertow/runtime/session.h"

namespace undertow::transforms {
namespace {

std::vector<std::string> names(const ir::Graph& g) {
  std::vector<std::string> n;
  for (const auto& node : g.nodes) n.push_back(node.op->name);
  return n;
}

std::vector<std::string> after(const std::string& shape, const std::string& out, const std::string& attrs,
                               const std::string& op = "reduce_sum") {
  ops::register_all();
  ir::Graph g = ir::parse("%0: Float32[" + shape + "] = input batch \"x\"\n%1: Float32[" + out + "] = " + op +
                          "(%0) {" + attrs + "}\nreturn %1");
  ir::verify(g);
  split_reductions(g);
  ir::verify(g);
  return names(g);
}

using Names = std::vector<std::string>;

TEST(SplitReductions, OnlyLargeTensorsAndFewResults) {
  const Names one{"reduce_sum"}, two{"reduce_sum", "reduce_sum"};
  const Names rows{"reshape", "reduce_sum", "reduce_sum", "reshape"};
  EXPECT_EQ(after("32, 64, 56, 56", "64", "axes = [0, 2, 3], keep_dims = false"), one);  // channels are shared out
  EXPECT_EQ(after("32, 56, 56, 64", "64", "axes = [0, 1, 2], keep_dims = false"), two);  // channels are lanes here
  EXPECT_EQ(after("32, 56, 56, 64", "1, 1, 1, 64", "axes = [0, 1, 2], keep_dims = true"), two);
  EXPECT_EQ(after("64, 4096", "", "axes = [0, 1], keep_dims = false"), two);
  EXPECT_EQ(after("64, 4096", "1, 1", "axes = [0, 1], keep_dims = true"), two);
  EXPECT_EQ(after("64, 4096", "64", "axes = [1], keep_dims = false"), one);
  EXPECT_EQ(after("4194304", "", "axes = [0], keep_dims = false"), rows);
  EXPECT_EQ(after("1, 4194304", "1, 1", "axes = [0, 1], keep_dims = true"), rows);
  EXPECT_EQ(after("131101", "", "axes = [0], keep_dims = false"), one);  // a prime: no rows
  EXPECT_EQ(after("100, 100", "", "axes = [0, 1], keep_dims = false"), one);
  EXPECT_EQ(after("64, 4096", "", "axes = [0, 1], keep_dims = false", "reduce_max"),
            (Names{"reduce_max", "reduce_max"}));
}

TEST(SplitReductions, ResultsAreThoseOfTheReference) {
  std::vector<float> values(std::size_t{1} << 18);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(static_cast<int>(i * 7919 % 2001) - 1000) * 0.01f;
  values[777] = 11;
  std::vector<std::vector<Tensor>> results;
  for (const char* device : {"reference", "CPU"}) {
    set_context({.mode = GRAPH_MODE, .device_target = device});
    runtime::StepFunction step(
        "reduce",
        [](runtime::Trace&, const std::vector<Tensor>& in) {
          const Tensor table = ops::reshape(in[0], {16, 32, 512});
          return std::vector<Tensor>{ops::reduce_sum(in[0]),
                                     ops::reduce_max(in[0]),
                                     ops::reduce_mean(ops::square(table)),
                                     ops::reduce_sum(table, {0, 1}),
                                     ops::reduce_sum(table, {0, 1}, true),
                                     ops::reduce_var(table, {0, 1}),
                                     ops::reduce_min(table, {0, 2})};
        },
        runtime::StepOutputs::kPlain);
    results.push_back(runtime::run_once(step, {Tensor(values)}));
  }
  for (std::size_t k = 0; k < results[0].size(); ++k) {
    const Tensor &a = results[0][k], &b = results[1][k];
    ASSERT_EQ(a.shape(), b.shape()) << k;
    for (std::int64_t i = 0; i < a.size(); ++i)
      ASSERT_NEAR(a.data_as<float>()[i], b.data_as<float>()[i], 1e-4 * std::max(1.f, std::abs(a.data_as<float>()[i])))
          << "result " << k << ", element " << i;
  }
}

}  // namespace
}  // namespace undertow::transforms
