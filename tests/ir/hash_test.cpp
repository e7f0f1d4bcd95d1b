// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <functional>
#include <unordered_set>

#include "tests/ir/example.h"

namespace undertow::ir {
namespace {

TEST(GraphHash, SameStructureSameHash) {
  const Graph a = example().g, b = example().g;
  EXPECT_NE(a.id(), 0u);
  EXPECT_EQ(a.hash(), b.hash());
}

TEST(GraphHash, NamesDoNotCount) {
  Graph g = example().g;
  const Digest before = g.hash();
  g.inputs[0].name = "other";
  g.states[0].name = "other";
  g.scopes[1] = {"other", "other"};
  g.states[0].parameter = Parameter(Tensor::zeros({3}));
  EXPECT_EQ(g.hash(), before);
}

// Each change must give a hash of its own.
TEST(GraphHash, EverythingElseCounts) {
  const auto nest = [](Graph& g) {
    auto copy = std::make_shared<LoopNest>(*g.nodes[3].nest);
    g.nodes[3].nest = copy;
    return copy;
  };
  using Edit = std::function<void(Graph&)>;
  const std::vector<Edit> edits = {
      [](Graph&) {},
      [](Graph& g) { g.inputs[0].kind = Input::kCapture; },
      [](Graph& g) { g.values[0].type.shape = {4, 4}; },
      [](Graph& g) { g.values[0].type.dtype = DType::kInt32; },
      [](Graph& g) { g.values[2].type.shape = {1, 3}; },
      [](Graph& g) { g.values[3].type.shape = {3, 4}; },
      [](Graph& g) { g.states[0].result = kNoId; },
      [](Graph& g) { g.states[0].always = true; },
      [](Graph& g) { g.nodes[0].phase = Phase::kAlways; },
      [](Graph& g) { g.nodes[0].op = &test_op("test.split"); },
      [](Graph& g) { std::swap(g.nodes[0].inputs[0], g.nodes[0].inputs[1]); },
      [](Graph& g) { g.nodes[0].phase = Phase::kCommit; },
      [](Graph& g) { g.nodes[1].attrs.set("scale", 0.2); },
      [](Graph& g) { g.nodes[1].attrs.set("flag", false); },
      [](Graph& g) { g.nodes[1].attrs.set("flag", std::int64_t{1}); },
      [](Graph& g) { g.nodes[1].attrs.set("axes", std::vector<std::int64_t>{0, -1, 0}); },
      [](Graph& g) { g.nodes[1].attrs.set("more", true); },
      [](Graph& g) { g.nodes[1].attrs.set("text", std::string("a")); },
      [](Graph& g) { g.nodes[1].attrs.set("dtype", DType::kFloat16); },
      [](Graph& g) { g.outputs.pop_back(); },
      [](Graph& g) { std::swap(g.outputs[0], g.outputs[1]); },
      [](Graph& g) { g.nodes.erase(g.nodes.begin() + 2); },
      [](Graph& g) { g.nodes[3].nest = nullptr; },
      [&](Graph& g) { nest(g)->extents[0] = 5; },
      [&](Graph& g) { nest(g)->num_outer = 2; },
      [&](Graph& g) { nest(g)->num_locals = 2; },
      [&](Graph& g) { nest(g)->stages[0].loads[0].offset = 1; },
      [&](Graph& g) { nest(g)->stages[0].loads[0].strides[1] = 0; },
      [&](Graph& g) { nest(g)->stages[0].loads[1].buffer = 0; },
      [&](Graph& g) { nest(g)->stages[0].inner = false; },
      [&](Graph& g) { nest(g)->stages[0].expr.insts[2].fimm = 0.5; },
      [&](Graph& g) { nest(g)->stages[0].expr.insts[4].op = Opcode::kSub; },
      [&](Graph& g) { nest(g)->stages[0].expr.insts[4].a = 1; },
      [&](Graph& g) { nest(g)->stages[0].expr.insts[0].imm = 1; },
      [&](Graph& g) { nest(g)->stages[0].results[0] = ReduceResult{ReduceOp::kMax, 0}; },
      [&](Graph& g) { std::get<StoreResult>(nest(g)->stages[1].results[0]).dtype = DType::kFloat16; },
      [&](Graph& g) { nest(g)->stages[1].locals[0] = 1; },
      [&](Graph& g) { nest(g)->stages.pop_back(); },
  };
  std::unordered_set<Digest, DigestHash> seen;
  for (std::size_t i = 0; i < edits.size(); ++i) {
    Graph g = example().g;
    edits[i](g);
    EXPECT_TRUE(seen.insert(g.hash()).second) << "edit " << i << " changes nothing";
  }
}

}  // namespace
}  // namespace undertow::ir
