// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/ir/example.h"

namespace undertow::ir {
namespace {

TEST(Print, Golden) {
  EXPECT_EQ(print(example().g),
            R"(%0: Float32[4, 3] = input batch "image \"raw\"\\\n"
%1: Int64[] = input step "step"
%2: Float32[3] = state "fc.bias" -> %7
%3: Float32[4, 3] = test.add(%0, %2)  # net.fc lenet.py:31
%4: Float32[4, 3], %5: Float32[4, 3] = test.split(%3) {sections = 2, flag = true, scale = 0.1, whole = 3.0, )"
            R"(low = -inf, text = "a \"b\" # c\n", axes = [0, -1], none = [], dtype = BFloat16}  # - a file.py:3
test.check(%1) {low = -5}
%6: BFloat16[4] = test.fused(%4, %2) nest {
  loops [4, 3] outer 1 locals 1 inputs 2 outputs 1
  stage inner {
    load 0 at 0 [3, 1]: Float32
    load 1 at 2 [0, -1]: Float32
    v0: Float32 = input()
    v1: Float32 = input() 1
    v2: Float32 = const() -0.5
    v3: Float32 = mul(v1, v2)
    v4: Float32 = add(v0, v3)
    reduce v4 sum 0
  }
  stage outer {
    local 0: Float32
    v0: Float32 = input()
    v1: Int64 = index()
    v2: Float32 = cast(v1)
    v3: Float32 = mul(v0, v2)
    store v3 0 at 0 [1, 0]: BFloat16
  }
}
commit %7: Float32[3] = test.add(%2, %2)
return %6, %5
)");
}

TEST(Print, BrokenGraphs) {
  Graph g;
  g.nodes.push_back({.op = nullptr, .inputs = {99}, .outputs = {77}, .scope = 55});
  g.outputs = {3};
  EXPECT_EQ(print(g), "%77: ? = ?(%99)\nreturn %3\n");
  EXPECT_EQ(print(Graph()), "return \n");
}

}  // namespace
}  // namespace undertow::ir
