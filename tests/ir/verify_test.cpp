// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <functional>

#include "tests/ir/example.h"

namespace undertow::ir {
namespace {

using Edit = std::function<void(Example&)>;
struct Broken {
  const char* message;
  Edit edit;
};

void expect_broken(const std::vector<Broken>& cases) {
  for (const auto& c : cases) {
    Example e = example();
    c.edit(e);
    try {
      verify(e.g);
      ADD_FAILURE() << "not found: " << c.message;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(c.message), std::string::npos)
          << "expected: " << c.message << "\nfound: " << error.what();
    }
  }
}

TEST(Verify, GoodGraph) {
  EXPECT_NO_THROW(verify(example().g));
  EXPECT_NO_THROW(verify(Graph()));
}

TEST(Verify, Leaves) {
  expect_broken({
      {"input 'step' counts steps and must be an Int64 scalar, not Int32()",
       [](Example& e) { e.g.values[e.step].type.dtype = DType::kInt32; }},
      {"state 'fc.bias': value %0 is defined twice", [](Example& e) { e.g.states[0].value = e.x; }},
      {"input 'step' is value %99, the graph has", [](Example& e) { e.g.inputs[1].value = 99; }},
      {"names another producer", [](Example& e) { e.g.values[e.x].producer = 0; }},
      {"its parameter Float32(4,)", [](Example& e) { e.g.states[0].parameter = Parameter(Tensor::zeros({4})); }},
      {"are one parameter",
       [](Example& e) {
         const Parameter p(Tensor::zeros({3}));
         e.g.states[0].parameter = p;
         e.g.add_state({.name = "again", .parameter = p}, {DType::kFloat32, {3}});
       }},
      {"the result of state 'fc.bias' is BFloat16(4,), the state Float32(3,)",
       [](Example& e) { e.g.states[0].result = e.rows; }},
      {"the result of state 'fc.bias' is value %1000", [](Example& e) { e.g.states[0].result = 1000; }},
      {"the graph's output is value %1000", [](Example& e) { e.g.outputs[0] = 1000; }},
      {"the graph's output: value %8 is used before it is defined",
       [](Example& e) { e.g.outputs[0] = e.g.new_value({}, kNoId); }},
  });
}

TEST(Verify, Nodes) {
  expect_broken({
      {"node 0 (?)", [](Example& e) { e.g.nodes[0].op = nullptr, e.g.nodes[0].scope = 0; }},
      {"node 0 (test.add): scope 9 of", [](Example& e) { e.g.nodes[0].scope = 9; }},
      {"node 0 (test.add), cell net.fc, at lenet.py:31: it takes 2 inputs, got 1",
       [](Example& e) { e.g.nodes[0].inputs.pop_back(); }},
      {"value %4 is used before it is defined", [](Example& e) { e.g.nodes[0].inputs[0] = e.part; }},
      {"value %3 is used before it is defined", [](Example& e) { e.g.nodes[0].inputs[0] = e.sum; }},
      {"an input is value %99", [](Example& e) { e.g.nodes[0].inputs[0] = 99; }},
      {"an output: value %3 is defined twice", [](Example& e) { e.g.nodes[1].outputs[0] = e.sum; }},
      {"an output is value %99", [](Example& e) { e.g.nodes[1].outputs[0] = 99; }},
      {"an output: value %3 names another producer", [](Example& e) { e.g.values[e.sum].producer = 1; }},
      {"output %3 is Float32(4, 4), the operator gives Float32(4, 3)",
       [](Example& e) { e.g.values[e.sum].type.shape = {4, 4}; }},
      {"output %3 is Float16(4, 3), the operator gives Float32(4, 3)",
       [](Example& e) { e.g.values[e.sum].type.dtype = DType::kFloat16; }},
      {"it has 2 outputs, the operator gives 3",
       [](Example& e) { e.g.nodes[1].attrs.set("sections", std::int64_t{3}); }},
      {"node 0 (test.add), cell net.fc, at lenet.py:31: dtypes differ",
       [](Example& e) { e.g.values[e.bias].type.dtype = DType::kInt8; }},
      {"a compute node stands after a commit node", [](Example& e) { e.g.nodes[0].phase = Phase::kCommit; }},
      {"a compute node stands after an always node", [](Example& e) { e.g.nodes[0].phase = Phase::kAlways; }},
      {"a commit node stands after an always node", [](Example& e) { e.g.nodes[3].phase = Phase::kAlways; }},
      {"must run before the guard", [](Example& e) { e.g.nodes[2].phase = Phase::kCommit; }},
      {"a fused node has no rule", [](Example& e) { e.g.nodes[3].nest = nullptr; }},
  });
}

TEST(Verify, LoopNests) {
  const auto with = [](std::function<void(LoopNest&)> edit) -> Edit {
    return [edit = std::move(edit)](Example& e) {
      LoopNest nest = *e.g.nodes[3].nest;
      edit(nest);
      e.g.nodes[3].nest = std::make_shared<const LoopNest>(std::move(nest));
    };
  };
  const auto inst = [&](int stage, int i, std::function<void(ExprInst&)> edit) {
    return with([=](LoopNest& n) { edit(n.stages[stage].expr.insts[i]); });
  };
  expect_broken({
      {"node 3 (test.fused): 3 outer dims of 2", with([](LoopNest& n) { n.num_outer = 3; })},
      {"a loop extent is 0", with([](LoopNest& n) { n.extents[1] = 0; })},
      {"the nest has 1 inputs and 1 outputs, the node 2 and 1", with([](LoopNest& n) { n.num_inputs = 1; })},
      {"stage 0: load of buffer 2, there are 2", with([](LoopNest& n) { n.stages[0].loads[0].buffer = 2; })},
      {"stage 0: load of buffer 0 reaches elements 1 to 12 of 12",
       with([](LoopNest& n) { n.stages[0].loads[0].offset = 1; })},
      {"stage 0: load of buffer 1 reaches elements -1 to 1 of 3",
       with([](LoopNest& n) { n.stages[0].loads[1].offset = 1; })},
      {"has 1 strides for 2 loops", with([](LoopNest& n) { n.stages[0].loads[0].strides.pop_back(); })},
      {"load of buffer 0 as Float16, it holds Float32",
       with([](LoopNest& n) { n.stages[0].expr.inputs[0] = DType::kFloat16; })},
      {"stage 0: the expression has 2 inputs, the stage 1 loads and 0 locals",
       with([](LoopNest& n) { n.stages[0].loads.pop_back(); })},
      {"stage 0: local 5 of 1", with([](LoopNest& n) { n.stages[0].results[0] = ReduceResult{ReduceOp::kSum, 5}; })},
      {"stage 1: local 0 is read before it is set", with([](LoopNest& n) {
         n.num_locals = 2;
         n.stages[0].results[0] = ReduceResult{ReduceOp::kSum, 1};
       })},
      {"stage 1: local 0 is Float32, read as Float64",
       with([](LoopNest& n) { n.stages[1].expr.inputs[0] = DType::kFloat64; })},
      {"stage 0: only an inner stage reduces", with([](LoopNest& n) { n.stages[0].inner = false; })},
      {"stage 0: only an outer stage sets a local", with([](LoopNest& n) { n.stages[0].results[0] = LocalResult{0}; })},
      {"stage 1: local 0 is set twice", with([](LoopNest& n) { n.stages.insert(n.stages.begin(), n.stages[0]); })},
      {"output 0 is never stored", with([](LoopNest& n) { n.stages.pop_back(); })},
      {"stage 1: store of buffer 0 as Float16, it holds BFloat16",
       with([](LoopNest& n) { std::get<StoreResult>(n.stages[1].results[0]).dtype = DType::kFloat16; })},
      {"stage 0: 1 results for 0 results", with([](LoopNest& n) { n.stages[0].expr.results.clear(); })},
      {"stage 0: result v9 of 5", with([](LoopNest& n) { n.stages[0].expr.results[0] = 9; })},
      {"v4 uses v4 before it is defined", inst(0, 4, [](ExprInst& i) { i.a = 4; })},
      {"v4: add takes 2 operands, got 1", inst(0, 4, [](ExprInst& i) { i.b = -1; })},
      {"v4: add takes 2 operands", inst(0, 4, [](ExprInst& i) { i.c = 1; })},
      {"v1 is input 7 of 2", inst(0, 1, [](ExprInst& i) { i.imm = 7; })},
      {"v1: the types of input do not fit", inst(0, 1, [](ExprInst& i) { i.dtype = DType::kInt8; })},
      {"v4: the types of add do not fit", inst(0, 4, [](ExprInst& i) { i.dtype = DType::kInt8; })},
      {"v4: the types of eq do not fit", inst(0, 4, [](ExprInst& i) { i.op = Opcode::kEq; })},
      {"v1: the types of index do not fit", inst(1, 1, [](ExprInst& i) { i.dtype = DType::kInt32; })},
      {"v3: the types of mul do not fit", inst(1, 3, [](ExprInst& i) { i.b = 1; })},
  });
}

}  // namespace
}  // namespace undertow::ir
