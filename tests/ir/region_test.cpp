// SPDX-License-Identifier: Apache-2.0
// Regions: text and back, hashes, rules.
#include <gtest/gtest.h>

#include "tests/ir/example.h"
#include "undertow/base/philox.h"

namespace undertow::ir {
namespace {

const OpDef& branch() {
  static const OpDef& op = op_set().add(
      {.name = "test.branch",
       .num_inputs = -1,
       .infer = [](std::span<const TensorType>, const Attrs&) -> std::vector<TensorType> { throw TypeError("no"); },
       .num_regions = 2,
       .infer_regions =
           [](std::span<const TensorType> in, const Attrs&, std::span<const RegionPtr> r) {
             for (const auto& region : r)
               if (input_types(*region) != std::vector<TensorType>(in.begin(), in.end()))
                 throw TypeError("the inputs differ");
             if (output_types(*r[0]) != output_types(*r[1])) throw TypeError("the outputs differ");
             return output_types(*r[0]);
           }});
  return op;
}

const TensorType kRow{DType::kFloat32, {3}};

/// x, y -> x + y (`twice`: and once more).
RegionPtr sum_region(bool twice) {
  auto g = std::make_shared<Graph>();
  const ValueId x = g->add_input({.name = "x", .kind = Input::kArgument}, kRow);
  const ValueId y = g->add_input({.name = "y", .kind = Input::kArgument}, kRow);
  NodeId n = g->add_node(test_op("test.add"), {x, y}, {}, g->intern_scope({"net.fc", "a.py:3"}));
  if (twice) n = g->add_node(test_op("test.add"), {g->nodes[n].outputs[0], y}, {});
  g->outputs = {g->nodes[n].outputs[0]};
  return g;
}

Graph branching() {
  Graph g;
  const ValueId x = g.add_input({.name = "x"}, kRow), y = g.add_state({.name = "y"}, kRow);
  const NodeId n = g.add_node(branch(), {x, y}, {}, g.intern_scope({"net", ""}), {sum_region(false), sum_region(true)});
  g.outputs = {g.nodes[n].outputs[0]};
  return g;
}

TEST(Regions, Golden) {
  EXPECT_EQ(print(branching()), R"(%0: Float32[3] = input batch "x"
%1: Float32[3] = state "y"
%2: Float32[3] = test.branch(%0, %1) regions {  # net
  region {
    %0: Float32[3] = input argument "x"
    %1: Float32[3] = input argument "y"
    %2: Float32[3] = test.add(%0, %1)  # net.fc a.py:3
    return %2
  }
  region {
    %0: Float32[3] = input argument "x"
    %1: Float32[3] = input argument "y"
    %2: Float32[3] = test.add(%0, %1)  # net.fc a.py:3
    %3: Float32[3] = test.add(%2, %1)
    return %3
  }
}
return %2
)");
}

/// A random tree of branches.
RegionPtr random_region(PhiloxStream& r, int depth) {
  auto g = std::make_shared<Graph>();
  std::vector<ValueId> values;
  for (const char* name : {"x", "a \"b\"\n"})
    values.push_back(g->add_input({.name = name, .kind = Input::kArgument}, kRow));
  for (std::uint64_t i = 0, n = 1 + r.below(4); i < n; ++i) {
    const std::vector<ValueId> in{values[r.below(values.size())], values[r.below(values.size())]};
    const bool nested = depth > 0 && r.below(2) == 0;
    const NodeId node =
        nested ? g->add_node(branch(), in, {}, 0, {random_region(r, depth - 1), random_region(r, depth - 1)})
               : g->add_node(test_op("test.add"), in, {});
    values.push_back(g->nodes[node].outputs[0]);
  }
  g->outputs = {values[r.below(values.size())]};
  return g;
}

TEST(Regions, RandomTreesSurviveTheirText) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    PhiloxStream r(seed, 3);
    Graph g;
    const ValueId x = g.add_input({.name = "x"}, kRow);
    const NodeId n = g.add_node(branch(), {x, x}, {}, 0, {random_region(r, 4), random_region(r, 4)});
    g.outputs = g.nodes[n].outputs;
    ASSERT_NO_THROW(verify(g));
    const std::string text = print(g);
    const Graph back = parse(text);
    ASSERT_EQ(back.hash(), g.hash()) << text;
    ASSERT_EQ(print(back), text);
    ASSERT_NO_THROW(verify(back));
  }
}

TEST(Regions, BrokenTextIsRefusedAtItsPlace) {
  const std::string text = print(branching());
  for (std::size_t cut = 0; cut < text.size(); cut += 7) {
    try {
      parse(text.substr(0, cut));
      FAIL() << "a text cut at " << cut << " was read";
    } catch (const FormatError& e) {
      EXPECT_NE(std::string(e.what()).find("line "), std::string::npos) << e.what();
    }
  }
  EXPECT_THROW(parse("%0: Float32[3] = input batch \"x\"\n%1: Float32[3] = test.branch(%0) regions {\n  region {\n"
                     "    return %0\n  }\n}\nreturn %1\n"),
               FormatError);  // a region does not see the values around it
  std::string deep = "return \n";
  for (int i = 0; i < 500; ++i) deep = "test.branch() regions {\nregion {\n" + deep + "}\n}\nreturn \n";
  EXPECT_THROW(parse(deep), FormatError);
}

TEST(Regions, TheHashSeesThem) {
  Graph a = branching(), b = branching(), c = branching();
  EXPECT_EQ(a.hash(), b.hash());
  b.nodes[0].regions[1] = b.nodes[0].regions[0];
  EXPECT_FALSE(a.hash() == b.hash());
  c.nodes[0].regions.pop_back();
  EXPECT_FALSE(a.hash() == c.hash());
}

TEST(Regions, RulesAreChecked) {
  EXPECT_NO_THROW(verify(branching()));
  const auto broken = [](auto change, const char* what) {
    Graph g = branching();
    auto region = std::make_shared<Graph>(*g.nodes[0].regions[1]);
    change(g, *region);
    if (g.nodes[0].regions.size() == 2 && g.nodes[0].regions[1]) g.nodes[0].regions[1] = region;
    try {
      verify(g);
      FAIL() << what;
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find(what), std::string::npos) << e.what();
    }
  };
  broken([](Graph& g, Graph&) { g.nodes[0].regions.pop_back(); }, "it has 1 regions, not 2");
  broken([](Graph& g, Graph&) { g.nodes[0].regions[1] = nullptr; }, "region 1 is missing");
  broken([](Graph&, Graph& r) { r.inputs[0].kind = Input::kBatch; }, "in region 1: input 'x': a region's inputs");
  broken([](Graph& g, Graph&) { g.inputs[0].kind = Input::kArgument; }, "only a region has arguments");
  broken([](Graph&, Graph& r) { r.add_state({.name = "s"}, kRow); }, "no states of its own");
  broken([](Graph&, Graph& r) { r.nodes[1].phase = Phase::kCommit; }, "a commit node stands in a region");
  broken([](Graph&, Graph& r) { r.nodes[1].inputs[0] = 3; }, "in region 1: the graph breaks a rule at node 1");
  broken([](Graph&, Graph& r) { r.outputs.push_back(0); }, "the outputs differ");
  broken([](Graph&, Graph& r) { r.inputs.pop_back(); }, "value %1 is used before it is defined");
}

TEST(Regions, EffectsAreSeenFromOutside) {
  Graph g = branching();
  EXPECT_FALSE(has_effect(g.nodes[0]));
  auto region = std::make_shared<Graph>(*g.nodes[0].regions[0]);
  region->add_node(test_op("test.check"), {region->inputs[0].value}, {});
  g.nodes[0].regions[0] = region;
  EXPECT_TRUE(has_effect(g.nodes[0]));
  EXPECT_FALSE(is_ordered(g.nodes[0]));
}

}  // namespace
}  // namespace undertow::ir
