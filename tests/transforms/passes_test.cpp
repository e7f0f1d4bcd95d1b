// SPDX-License-Identifier: Apache-2.0
// Passes one at a time: what goes in and what comes out.
#include <gtest/gtest.h>

#include <algorithm>

#include "undertow/ops/register.h"
#include "undertow/transforms/commit.h"
#include "undertow/transforms/fuse.h"
#include "undertow/transforms/plan.h"
#include "undertow/transforms/simplify.h"
#include "undertow/transforms/small_matmul.h"

namespace undertow::transforms {
namespace {

using ir::Graph;

class Passes : public ::testing::Test {
 protected:
  void SetUp() override { ops::register_all(); }

  /// Parses, runs the pass, checks the result.
  template <typename Pass>
  Graph after(std::string_view text, Pass pass) {
    Graph g = ir::parse(text);
    pass(g);
    ir::verify(g);
    return g;
  }
  static std::vector<std::string> names(const Graph& g) {
    std::vector<std::string> n;
    for (const auto& node : g.nodes) n.push_back(node.op->name);
    return n;
  }
  using Names = std::vector<std::string>;
};

TEST_F(Passes, SimplifyMergesEqualNodesAndDropsDeadOnes) {
  const Graph g = after(R"(%0: Float32[4] = input batch "x"
%1: Float32[4] = exp(%0)
%2: Float32[4] = exp(%0)
%3: Float32[4] = add(%1, %2)
%4: Float32[4] = log(%0)
return %3)",
                        simplify);
  EXPECT_EQ(names(g), (Names{"exp", "add"}));
  EXPECT_EQ(g.nodes[1].inputs[0], g.nodes[1].inputs[1]);
}

TEST_F(Passes, SimplifyIsIdempotent) {
  Graph g = ir::parse(R"(%0: Float32[2, 3] = input batch "x"
%1: Float32[3, 2] = transpose(%0) {perm = [1, 0]}
%2: Float32[2, 2] = matmul(%0, %1) {transpose_a = false, transpose_b = false}
return %2)");
  simplify(g);
  EXPECT_EQ(names(g), (Names{"matmul"}));
  EXPECT_TRUE(g.nodes[0].attrs.flag("transpose_b"));
  const auto once = ir::print(g);
  simplify(g);
  EXPECT_EQ(ir::print(g), once);
}

TEST_F(Passes, StateIsWrittenInTheCommitPhaseOnly) {
  // %3 is also returned, so it is computed before the guard, and a copy commits it.
  const Graph g = after(R"(%0: Float32[4] = input batch "g"
%1: Float32[4] = state "w" -> %2
%4: Float32[4] = state "m" -> %3
%2: Float32[4] = sub(%1, %0)
%3: Float32[4] = add(%4, %0)
return %3)",
                        assign_phases);
  for (const auto& s : g.states) EXPECT_EQ(g.nodes[g.values[s.result].producer].phase, ir::Phase::kCommit) << s.name;
  EXPECT_EQ(names(g), (Names{"add", "sub", "copy"}));
}

TEST_F(Passes, WhatSkippedStepsWriteComesAfterTheCommit) {
  // The scale is read by the update, and shares a node with it; the counter takes the scale's old value.
  Graph g = ir::parse(R"(%0: Float32[4] = input batch "g"
%1: Float32[4] = state "w" -> %4
%2: Float32[4] = state "scale" -> %3 always
%5: Float32[4] = state "last" -> %2 always
%3: Float32[4] = mul(%2, %0)
%4: Float32[4] = sub(%1, %3)
return %0)");
  EXPECT_EQ(ir::parse(ir::print(g)).hash(), g.hash());
  assign_phases(g);
  ir::verify(g);
  EXPECT_EQ(ir::parse(ir::print(g)).hash(), g.hash());
  EXPECT_EQ(names(g), (Names{"mul", "copy", "sub", "copy", "copy"}));
  const auto phase = [&](std::size_t state) { return g.nodes[g.values[g.states[state].result].producer].phase; };
  EXPECT_EQ(phase(0), ir::Phase::kCommit);
  EXPECT_EQ(phase(1), ir::Phase::kAlways);
  EXPECT_EQ(phase(2), ir::Phase::kAlways);
  for (const auto& n : g.nodes) {
    if (n.phase != ir::Phase::kAlways) continue;
    const ir::NodeId from = g.values[n.inputs[0]].producer;
    ASSERT_NE(from, ir::kNoId);  // not in a state's memory, which the commit may have changed
    EXPECT_EQ(g.nodes[from].phase, ir::Phase::kCompute);
  }
  const Plan p = plan(g, {.scratch_bytes = {}, .in_place = [](ir::NodeId, int, int) { return true; }});
  EXPECT_TRUE(p.copies.empty());
}

TEST_F(Passes, AnUpdateIsOneKernelThatWritesInPlace) {
  Graph g = ir::parse(R"(%0: Float32[40] = input batch "g"
%1: Float32[40] = state "w" -> %6
%2: Float32[40] = state "m" -> %4
%3: Float32[40] = mul(%2, %0)
%4: Float32[40] = add(%3, %0)
%5: Float32[40] = mul(%4, %0)
%6: Float32[40] = sub(%1, %5)
return %0)");
  assign_phases(g);
  fuse(g);
  ir::verify(g);
  ASSERT_EQ(g.nodes.size(), 1u);
  EXPECT_EQ(g.nodes[0].outputs.size(), 2u);
  const Plan p = plan(g, {.scratch_bytes = {0}, .in_place = [](ir::NodeId, int, int) { return true; }});
  EXPECT_TRUE(p.copies.empty());
  for (const auto& s : g.states) EXPECT_EQ(p.places[s.result].kind, Place::kState);
}

TEST_F(Passes, AnOldValueThatIsStillReadIsNotOverwritten) {
  Graph g = ir::parse(R"(%0: Float32[40] = input batch "g"
%1: Float32[40] = state "w" -> %3
%2: Float32[40] = state "m" -> %4
%3: Float32[40] = sub(%1, %0)
%5: Float32[40] = mul(%1, %0)
%4: Float32[40] = add(%5, %2)
return %0)");
  assign_phases(g);
  const Plan p = plan(g, {.scratch_bytes = {}, .in_place = [](ir::NodeId, int, int) { return true; }});
  ASSERT_EQ(p.copies.size(), 1u);  // w: its old value is read by the node after
  EXPECT_EQ(p.copies[0].second, 0u);
}

TEST_F(Passes, SoftmaxIsOneNestOverRows) {
  Graph g = ir::parse(R"(%0: Float32[8, 10] = input batch "x"
%1: Float32[8, 1] = reduce_max(%0) {axes = [1], keep_dims = true}
%2: Float32[8, 10] = sub(%0, %1)
%3: Float32[8, 10] = exp(%2)
%4: Float32[8, 1] = reduce_sum(%3) {axes = [1], keep_dims = true}
%5: Float32[8, 10] = div(%3, %4)
return %5)");
  assign_phases(g);
  fuse(g);
  ir::verify(g);
  ASSERT_EQ(g.nodes.size(), 1u);
  const auto& nest = *g.nodes[0].nest;
  EXPECT_EQ(nest.extents, (std::vector<std::int64_t>{8, 10}));
  EXPECT_EQ(nest.num_outer, 1);
  EXPECT_EQ(nest.num_outputs, 1);
}

TEST_F(Passes, FusionNeverMakesACycle) {
  // add reads exp directly and through matmul: the two elementwise nodes cannot be one kernel.
  Graph g = ir::parse(R"(%0: Float32[64, 64] = input batch "x"
%1: Float32[64, 64] = exp(%0)
%2: Float32[64, 64] = matmul(%1, %1) {transpose_a = false, transpose_b = false}
%3: Float32[64, 64] = add(%1, %2)
return %3)");
  assign_phases(g);
  fuse(g);
  ir::verify(g);
  EXPECT_EQ(names(g), (Names{"fused", "matmul", "fused"}));
}

TEST_F(Passes, SmallProductsBecomeLoops) {
  Graph g = ir::parse(R"(%0: Float32[4, 3] = input batch "a"
%1: Float32[5, 3] = input batch "b"
%2: Float32[4, 5] = matmul(%0, %1) {transpose_a = false, transpose_b = true}
return %2)");
  small_matmul(g);
  ir::verify(g);
  const auto n = names(g);
  EXPECT_EQ(std::count(n.begin(), n.end(), "matmul"), 0);
  EXPECT_EQ(g.type(g.outputs[0]).shape, (Shape{4, 5}));
}

TEST_F(Passes, MemoryIsUsedAgain) {
  std::string text = "%0: Float32[1000, 100] = input batch \"x\"\n";
  for (int i = 1; i <= 8; ++i)
    text += "%" + std::to_string(i) + ": Float32[1000, 100] = exp(%" + std::to_string(i - 1) + ")\n";
  Graph g = ir::parse(text + "return %8");
  const Plan p = plan(g, {.scratch_bytes = {}, .in_place = [](ir::NodeId, int, int) { return false; }});
  EXPECT_LE(p.arena_bytes, 2 * 400'000u + 8192u);
}

}  // namespace
}  // namespace undertow::transforms
