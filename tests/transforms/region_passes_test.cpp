// SPDX-License-Identifier: Apache-2.0
// What the passes do with control flow: go into regions, drop what nobody reads, merge equal nodes, keep prints in
// order.
#include <gtest/gtest.h>

#include <algorithm>

#include "undertow/ops/register.h"
#include "undertow/transforms/fuse.h"
#include "undertow/transforms/simplify.h"
#include "undertow/transforms/small_matmul.h"

namespace undertow::transforms {
namespace {

using ir::Graph;
using Names = std::vector<std::string>;

class RegionPasses : public ::testing::Test {
 protected:
  void SetUp() override { ops::register_all(); }

  template <typename Pass>
  Graph after(std::string_view text, Pass pass) {
    Graph g = ir::parse(text);
    ir::verify(g);
    pass(g);
    ir::verify(g);
    return g;
  }
  static Names names(const Graph& g) {
    Names n;
    for (const auto& node : g.nodes) n.push_back(node.op->name);
    return n;
  }
};

constexpr const char* kBranches = R"( regions {
  region {
    %0: Float32[4] = input argument "x"
    %1: Float32[4] = exp(%0)
    %2: Float32[4] = exp(%0)
    %3: Float32[4] = add(%1, %2)
    return %3
  }
  region {
    %0: Float32[4] = input argument "x"
    %1: Float32[4] = log(%0)
    %2: Float32[4] = sin(%0)
    return %2
  }
}
)";

TEST_F(RegionPasses, EqualRegionsAreMergedAndSimplifiedWithin) {
  const Graph g = after(std::string(R"(%0: Float32[4] = input batch "x"
%1: Bool[] = input batch "p"
%2: Float32[4] = cond(%1, %0))") +
                            kBranches + "%3: Float32[4] = cond(%1, %0)" + kBranches + R"(%4: Float32[4] = add(%2, %3)
return %4)",
                        simplify);
  EXPECT_EQ(names(g), (Names{"cond", "add"}));
  EXPECT_EQ(names(*g.nodes[0].regions[0]), (Names{"exp", "add"}));
  EXPECT_EQ(names(*g.nodes[0].regions[1]), (Names{"sin"}));
}

TEST_F(RegionPasses, ResultsAndCarriesThatNobodyReadsAreDropped) {
  // Carry %1 counts and is read by nobody; carry %2 feeds %3, whose result is read; the second y is not.
  const Graph g = after(R"(%0: Float32[4] = input batch "c"
%1: Int64[] = input batch "n"
%2: Float32[] = input batch "a"
%3: Float32[] = input batch "b"
%4: Float32[5, 4] = input batch "xs"
%5: Int64[], %6: Float32[], %7: Float32[], %8: Float32[5], %9: Float32[5, 4] = scan(%0, %1, %2, %3, %4) {consts = 1, carries = 3, length = 5, reverse = false} regions {
  region {
    %0: Float32[4] = input argument "c"
    %1: Int64[] = input argument "n"
    %2: Float32[] = input argument "a"
    %3: Float32[] = input argument "b"
    %4: Float32[4] = input argument "x"
    %5: Int64[] = add(%1, %1)
    %6: Float32[] = exp(%2)
    %7: Float32[] = add(%3, %2)
    %8: Float32[4] = mul(%4, %0)
    return %5, %6, %7, %3, %8
  }
}
return %7)",
                        simplify);
  ASSERT_EQ(names(g), (Names{"scan"}));
  const ir::Node& n = g.nodes[0];
  EXPECT_EQ(n.inputs, (std::vector<ir::ValueId>{2, 3}));
  EXPECT_EQ(n.outputs, (std::vector<ir::ValueId>{6, 7}));
  EXPECT_EQ(n.attrs.integer("consts"), 0);
  EXPECT_EQ(n.attrs.integer("carries"), 2);
  EXPECT_EQ(names(*n.regions[0]), (Names{"exp", "add"}));
}

TEST_F(RegionPasses, AWhileKeepsWhatItsConditionReads) {
  const Graph g = after(R"(%0: Int64[] = input batch "n"
%1: Float32[] = input batch "a"
%2: Float32[] = input batch "b"
%3: Int64[], %4: Float32[], %5: Float32[] = while(%0, %1, %2) {consts = 0} regions {
  region {
    %0: Int64[] = input argument "n"
    %1: Float32[] = input argument "a"
    %2: Float32[] = input argument "b"
    %3: Bool[] = less(%1, %1)
    return %3
  }
  region {
    %0: Int64[] = input argument "n"
    %1: Float32[] = input argument "a"
    %2: Float32[] = input argument "b"
    %3: Int64[] = add(%0, %0)
    %4: Float32[] = exp(%1)
    %5: Float32[] = exp(%2)
    return %3, %4, %5
  }
}
return %5)",
                        simplify);
  ASSERT_EQ(names(g), (Names{"while"}));
  EXPECT_EQ(g.nodes[0].inputs, (std::vector<ir::ValueId>{1, 2}));
  EXPECT_EQ(g.nodes[0].outputs, (std::vector<ir::ValueId>{4, 5}));
}

TEST_F(RegionPasses, ABranchWithAnEffectStays) {
  const Graph g = after(R"(%0: Int64[3] = input batch "i"
%1: Bool[] = input batch "p"
cond(%1, %0) regions {
  region {
    %0: Int64[3] = input argument "i"
    check_index(%0) {low = 0, high = 10}
    return
  }
  region {
    %0: Int64[3] = input argument "i"
    return
  }
}
return %0)",
                        simplify);
  ASSERT_EQ(names(g), (Names{"cond"}));
  EXPECT_EQ(names(*g.nodes[0].regions[0]), (Names{"check_index"}));
}

TEST_F(RegionPasses, RegionsAreFused) {
  const Graph g = after(std::string(R"(%0: Float32[4] = input batch "x"
%1: Bool[] = input batch "p"
%2: Float32[4] = cond(%1, %0))") +
                            kBranches + "return %2",
                        [](Graph& graph) {
                          simplify(graph);
                          small_matmul(graph);
                          fuse(graph);
                        });
  EXPECT_EQ(names(*g.nodes[0].regions[0]), (Names{"fused"}));
}

TEST_F(RegionPasses, PrintsKeepTheirOrderThroughFusion) {
  // What the first print shows joins a group that ends late; the second one could go before it.
  const Graph g = after(R"(%0: Float32[4] = input batch "x"
%1: Float32[4] = exp(%0)
print(%1) {format = "first {}\n", flush = false}
print(%0) {format = "second {}\n", flush = false}
%2: Float32[4] = sin(%1)
%3: Float32[4] = add(%2, %1)
print(%3) {format = "third {}\n", flush = false}
return %3)",
                        [](Graph& graph) {
                          simplify(graph);
                          fuse(graph);
                        });
  std::string order;
  for (const auto& n : g.nodes)
    if (n.op->name == "print") order += n.attrs.text("format");
  EXPECT_EQ(order, "first {}\nsecond {}\nthird {}\n");
}

}  // namespace
}  // namespace undertow::transforms
