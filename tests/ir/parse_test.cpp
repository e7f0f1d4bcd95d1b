// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tests/ir/example.h"

namespace undertow::ir {
namespace {

TEST(Parse, RoundTrip) {
  const Graph g = example().g;
  const Graph back = parse(print(g));
  EXPECT_EQ(print(back), print(g));
  EXPECT_EQ(back.hash(), g.hash());
  EXPECT_NO_THROW(verify(back));
  EXPECT_EQ(back.inputs[0].name, g.inputs[0].name);
  EXPECT_EQ(back.states[0].name, "fc.bias");
  EXPECT_EQ(back.nodes[1].attrs, g.nodes[1].attrs);
  EXPECT_EQ(back.scopes[back.nodes[1].scope].line, "a file.py:3");
}

TEST(Parse, GapsInNumbering) {
  test_op("test.add");
  const Graph g = parse("%7: Float32[2] = input capture \"x\"\n%3: Float32[2] = test.add(%7, %7)\nreturn %3");
  EXPECT_EQ(g.values.size(), 8u);
  EXPECT_EQ(g.inputs[0].kind, Input::kCapture);
  EXPECT_EQ(parse(print(g)).hash(), g.hash());
  EXPECT_NO_THROW(verify(g));
}

TEST(Parse, NumbersKeepTheirBits) {
  const OpDef& op = test_op("test.check");
  for (const double v : {0.1, -0.0, 1e300, 5e-324, 1.0, 123456789012345680.0, double(INFINITY), -double(INFINITY),
                         std::nan(""), -std::nan("")}) {
    Graph g;
    const auto x = g.add_input({.name = "x"}, {DType::kFloat32, {}});
    g.add_node(op, {x}, {{"v", v}, {"i", INT64_MIN}, {"j", INT64_MAX}});
    ExprBuilder b;
    b.result(b.constant(v, DType::kFloat64));
    LoopNest nest{.extents = {1}, .num_outer = 1, .num_inputs = 1};
    nest.stages.push_back({.expr = b.take(), .results = {LocalResult{0}}});
    g.nodes[0].nest = std::make_shared<const LoopNest>(nest);
    EXPECT_EQ(parse(print(g)).hash(), g.hash()) << v;
  }
}

TEST(Parse, EveryOpcodeReducesAndKinds) {
  LoopNest nest{.extents = {2, 2}, .num_outer = 1, .num_locals = 4, .num_inputs = 1, .num_outputs = 1};
  Stage all{.inner = true};
  for (int op = 0; op <= static_cast<int>(Opcode::kRandom); ++op) {
    const std::int32_t n = op % 4;  // operands; the parser does not judge them
    all.expr.insts.push_back({.op = static_cast<Opcode>(op),
                              .dtype = static_cast<DType>(op % kNumDTypes),
                              .a = n > 0 ? 0 : -1,
                              .b = n > 1 ? 1 : -1,
                              .c = n > 2 ? 2 : -1,
                              .imm = op * 1000 - 7000,
                              .fimm = op * 0.3});
  }
  for (int r = 0; r < 4; ++r) {
    all.expr.results.push_back(r);
    all.results.push_back(ReduceResult{static_cast<ReduceOp>(r), r});
  }
  nest.stages.push_back(all);
  Stage outer{.locals = {0, 3}};
  outer.expr.inputs = {DType::kFloat64, DType::kBool};
  outer.expr.insts.push_back({.op = Opcode::kSelect, .dtype = DType::kInt8, .b = 0});
  outer.expr.results = {0};
  outer.results = {LocalResult{2}};
  nest.stages.push_back(outer);
  Graph g;
  g.add_node_typed({.op = &test_op("test.fused"), .nest = std::make_shared<const LoopNest>(nest)}, {});
  EXPECT_EQ(parse(print(g)).hash(), g.hash());
}

TEST(Parse, HandWritten) {
  test_op("test.add");
  const Graph g = parse(R"(
    # comments and blank lines are free

    %0:Float32[2,3]=input batch "x"   # so are comments behind a line
    %1 : float32 [ ] = input batch "y"
    %2: Float32[2, 3] = test.add(%0,%1)
    return)");
  EXPECT_NO_THROW(verify(g));
  EXPECT_TRUE(g.outputs.empty());
}

struct BadCase {
  const char* text;
  const char* message;
};
TEST(Parse, FaultsNameLineAndColumn) {
  test_op("test.add");
  const std::string leaf = "%0: Float32[2] = input batch \"x\"\n";
  const BadCase cases[] = {
      {"", "line 2, column 1: the graph has no return line"},
      {"%1: Float32[2] = nothing(%0)\nreturn", "line 2, column 18: no operator is named 'nothing'"},
      {"%1: Float32[2] = test.add(%0, %4)", "line 2, column 31: %4 is used before it is defined"},
      {"%1: Float32[2] = test.add(%1, %0)", "line 2, column 27: %1 is used before it is defined"},
      {"%0: Float32[2] = test.add(%0, %0)", "line 2, column 1: %0 is defined twice"},
      {"%1: Float32[2], %1: Float32[2] = test.add(%0, %0)", "line 2, column 1: %1 is defined twice"},
      {"%1: Float12[2] = test.add(%0, %0)", "line 2, column 5: unknown dtype 'Float12'"},
      {"%1: Float32[-2] = test.add(%0, %0)", "line 2, column 12: a dimension cannot be negative"},
      {"%1: Float32[2, x] = test.add(%0, %0)", "line 2, column 16: expected an integer, found 'x'"},
      {"%1: Float32[1,1,1,1,1,1,1,1,1] = test.add(%0, %0)", "line 2, column 12: a tensor has at most 8"},
      {"%1: Float32[2] = test.add(%0, %0) {a = }", "line 2, column 40: expected a dtype, found '}'"},
      {"%1: Float32[2] = test.add(%0, %0) {a = 1, a = 2}", "line 2, column 43: attribute 'a' is given twice"},
      {"%1: Float32[2] = test.add(%0, %0) {a = \"x}", "line 2, column 40: this text has no closing quote"},
      {"%1: Float32[2] = test.add(%0, %0) {a = 12345678901234567890}", "line 2, column 40: '12345678901234567890' is"},
      {"%1: Float32[2] = test.add(%0, %0) {a = 1.5.2}", "line 2, column 40: '1.5.2' is not a number"},
      {"%1: Float32[2] = test.add(%0, %0", "line 2, column 33: expected ')', found the end of the text"},
      {"%1: Float32[2] = test.add(%0, %0) x", "line 2, column 35: expected the end of the line, found 'x'"},
      {"%99999999: Float32[2] = test.add(%0, %0)", "line 2, column 2: value numbers go from 0"},
      {"%1: Float32[2] = input video \"v\"",
       "line 2, column 24: expected batch, capture, step or argument, found 'video'"},
      {"%1: Float32[2] = state \"w\" -> %7\nreturn", "line 2, column 31: %7 is never defined"},
      {"%1: Float32[2] = state w", "line 2, column 24: expected the state's name in quotes, found 'w'"},
      {"return %0\nreturn %0", "line 3, column 1: nothing may follow the return line"},
      {"%1: Float32[2] = test.add(%0, %0)\n%2: Float32[2] = input batch \"y\"",
       "line 3, column 18: inputs and states define one value each"},
      {"test.fused() nest {\n  loops [2] outer 1 locals 0 inputs 0 outputs 0\n  stage middle {",
       "line 4, column 9: expected 'outer', found 'middle'"},
      {"test.fused() nest {\n  loops [2] outer 1 locals 0 inputs 0 outputs 0\n  stage outer {\n  v1: Int8 = index()",
       "line 5, column 3: expected load, local, v0,"},
      {"test.fused() nest {\n  loops [2] outer 1 locals 0 inputs 0 outputs 0\n  stage outer {\n  v0: Int8 = sqr()",
       "line 5, column 14: no scalar operation is named 'sqr'"},
      {"test.fused() nest {\n  loops [2] outer 1 locals 0 inputs 0 outputs 0\n",
       "line 4, column 1: expected 'stage', found the end"},
      {"\x01", "line 2, column 1: expected an operator, found"},
  };
  for (const auto& c : cases) {
    try {
      parse(leaf + c.text);
      ADD_FAILURE() << "no fault found in: " << c.text;
    } catch (const FormatError& e) {
      EXPECT_EQ(std::string(e.what()).substr(0, std::string(c.message).size()), c.message) << c.text;
    }
  }
}

// Whatever the text is, the parser ends with a graph or a FormatError.
TEST(Parse, DamagedText) {
  const std::string text = print(example().g);
  std::mt19937 random(1);
  int parsed = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string damaged = text;
    for (int k = 0; k < 1 + i % 3 && !damaged.empty(); ++k) {
      const std::size_t at = random() % damaged.size();
      switch (random() % 4) {
        case 0: damaged.erase(at, 1 + random() % 5); break;
        case 1: damaged[at] = static_cast<char>(random() % 128); break;
        case 2: damaged.insert(at, text.substr(random() % text.size(), random() % 12)); break;
        default: damaged.resize(at + 1);
      }
    }
    try {
      const Graph g = parse(damaged);
      ++parsed;
      try {
        verify(g);
      } catch (const Error&) {
      }
      print(g);
    } catch (const FormatError&) {
    }
  }
  EXPECT_GT(parsed, 100);
}

}  // namespace
}  // namespace undertow::ir
