// SPDX-License-Identifier: Apache-2.0
// tests/ir/example.h: a small graph with one of everything, over operators that only these tests define.
#pragma once

#include <limits>
#include <vector>

#include "undertow/base/check.h"
#include "undertow/ir/graph.h"
#include "undertow/ir/op_set.h"

namespace undertow::ir {

inline const OpDef& test_op(const char* name) {
  static const bool added = [] {
    OpSet& set = op_set();
    set.add({.name = "test.add",
             .num_inputs = 2,
             .infer = [](std::span<const TensorType> in, const Attrs&) -> std::vector<TensorType> {
               if (in[0].dtype != in[1].dtype) throw TypeError("dtypes differ");
               return {{in[0].dtype, broadcast(in[0].shape, in[1].shape)}};
             }});
    set.add({.name = "test.split",
             .infer = [](std::span<const TensorType> in, const Attrs& attrs) -> std::vector<TensorType> {
               const auto* sections = attrs.find("sections");
               if (!sections || sections->index() != 1 || std::get<1>(*sections) < 1 || std::get<1>(*sections) > 9)
                 throw ValueError("sections must be 1 to 9");
               return std::vector<TensorType>(static_cast<std::size_t>(attrs.integer("sections")), in[0]);
             }});
    set.add({.name = "test.check",
             .infer = [](std::span<const TensorType>, const Attrs&) { return std::vector<TensorType>{}; },
             .effect = true});
    set.add({.name = "test.fused",
             .num_inputs = -1,
             .infer = [](std::span<const TensorType>, const Attrs&) -> std::vector<TensorType> {
               throw TypeError("a fused node has no rule");
             }});
    return true;
  }();
  (void)added;
  return op_set().get(name);
}

/// Row sums of x + bias: reduce inside, store outside, kept in a half type.
inline LoopNest example_nest() {
  LoopNest nest{.extents = {4, 3}, .num_outer = 1, .num_locals = 1, .num_inputs = 2, .num_outputs = 1};
  ExprBuilder b;
  const Scalar x = b.input(0, DType::kFloat32), bias = b.input(1, DType::kFloat32);
  b.result(x + bias * -0.5);
  nest.stages.push_back({.inner = true,
                         .loads = {{0, 0, {3, 1}}, {1, 2, {0, -1}}},
                         .expr = b.take(),
                         .results = {ReduceResult{ReduceOp::kSum, 0}}});
  ExprBuilder c;
  const Scalar total = c.input(0, DType::kFloat32), index = c.cast(c.index(), DType::kFloat32);
  c.result(total * index);
  nest.stages.push_back({.locals = {0}, .expr = c.take(), .results = {StoreResult{{0, 0, {1, 0}}, DType::kBFloat16}}});
  return nest;
}

struct Example {
  Graph g;
  ValueId x, step, bias, sum, part, other, rows, updated;
};

inline Example example() {
  Example e;
  Graph& g = e.g;
  e.x = g.add_input({.name = "image \"raw\"\\\n", .kind = Input::kBatch}, {DType::kFloat32, {4, 3}});
  e.step = g.add_input({.name = "step", .kind = Input::kStep}, {DType::kInt64, {}});
  e.bias = g.add_state({.name = "fc.bias"}, {DType::kFloat32, {3}});
  const auto scope = g.intern_scope({"net.fc", "lenet.py:31"});
  const auto output = [&](NodeId n, std::size_t i = 0) { return g.nodes[n].outputs[i]; };
  e.sum = output(g.add_node(test_op("test.add"), {e.x, e.bias}, {}, scope));
  const NodeId split = g.add_node(test_op("test.split"), {e.sum},
                                  {{"sections", std::int64_t{2}},
                                   {"flag", true},
                                   {"scale", 0.1},
                                   {"whole", 3.0},
                                   {"low", -std::numeric_limits<double>::infinity()},
                                   {"text", std::string("a \"b\" # c\n")},
                                   {"axes", std::vector<std::int64_t>{0, -1}},
                                   {"none", std::vector<std::int64_t>{}},
                                   {"dtype", DType::kBFloat16}},
                                  g.intern_scope({"", "a file.py:3"}));
  e.part = output(split);
  e.other = output(split, 1);
  g.add_node(test_op("test.check"), {e.step}, {{"low", std::int64_t{-5}}});
  const TensorType rows{DType::kBFloat16, {4}};
  e.rows = output(g.add_node_typed({.op = &test_op("test.fused"),
                                    .inputs = {e.part, e.bias},
                                    .nest = std::make_shared<const LoopNest>(example_nest())},
                                   std::span(&rows, 1)));
  const NodeId update = g.add_node(test_op("test.add"), {e.bias, e.bias}, {});
  g.nodes[update].phase = Phase::kCommit;
  e.updated = output(update);
  g.states[0].result = e.updated;
  g.outputs = {e.rows, e.other};
  return e;
}

}  // namespace undertow::ir
