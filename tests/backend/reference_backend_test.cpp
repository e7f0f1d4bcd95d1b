// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "undertow/backend/reference/backend.h"
#include "undertow/base/error.h"

namespace undertow::backend {
namespace {

using F = std::vector<float>;
using Types = std::span<const ir::TensorType>;

ir::OpDef scaled_sum() {
  ir::OpDef def{.name = "scaled_sum", .num_inputs = 2};
  def.infer = [](Types in, const ir::Attrs&) -> std::vector<ir::TensorType> {
    return {{in[0].dtype, broadcast(in[0].shape, in[1].shape)}};
  };
  def.expr = [](ir::ExprBuilder& b, std::span<const ir::Scalar> in, const ir::Attrs& attrs) {
    const ir::Scalar scaled = in[1] * attrs.number("scale");
    return in[0] + scaled + b.cast(b.index(), in[0].dtype);
  };
  def.elementwise = true;
  return def;
}

struct Bench {
  ir::Graph g;
  std::unique_ptr<Backend> backend = make_reference_backend();
};

TEST(ReferenceBackend, ElementwiseBroadcastsOverBlocks) {
  const ir::OpDef op = scaled_sum();
  Bench s;
  const auto x = s.g.add_input({.name = "x"}, {DType::kFloat32, {100, 1, 7}});
  const auto y = s.g.add_input({.name = "y"}, {DType::kFloat32, {3, 1}});
  s.g.add_node(op, {x, y}, {{"scale", 1000.0}});
  auto kernels = s.backend->make_kernels(s.g);
  ASSERT_EQ(kernels.size(), 1u);
  EXPECT_EQ(kernels[0]->description(), "reference:scaled_sum");
  F a(700), b{1, 2, 3}, out(2100);
  std::iota(a.begin(), a.end(), 0.f);
  void* args[] = {a.data(), b.data(), out.data(), nullptr};
  const Instr instr = kernels[0]->bind(args);
  ir::StepError error;
  instr.run(instr.context, &error);
  for (int i = 0; i < 2100; ++i) {
    const int row = i / 21, middle = i / 7 % 3, column = i % 7;
    EXPECT_EQ(out[i], static_cast<float>(row * 7 + column + (middle + 1) * 1000 + i)) << i;
  }
  EXPECT_FALSE(kernels[0]->in_place(0, 0));
  kernels[0]->unbind();
}

TEST(ReferenceBackend, InPlaceAndHalf) {
  const ir::OpDef op = scaled_sum();
  Bench s;
  const auto x = s.g.add_input({.name = "x"}, {DType::kBFloat16, {300}});
  const auto y = s.g.add_input({.name = "y"}, {DType::kBFloat16, {}});
  s.g.add_node(op, {x, y}, {{"scale", 0.0}});
  auto kernels = s.backend->make_kernels(s.g);
  EXPECT_TRUE(kernels[0]->in_place(0, 0));
  EXPECT_FALSE(kernels[0]->in_place(0, 1));
  std::vector<bfloat16> a(300, bfloat16(1.f));
  bfloat16 zero(0.f);
  void* args[] = {a.data(), &zero, a.data()};
  const Instr instr = kernels[0]->bind(args);
  instr.run(instr.context, nullptr);
  for (int i = 0; i < 300; ++i) EXPECT_EQ(a[i].bits, bfloat16(static_cast<float>(1 + i)).bits);
}

TEST(ReferenceBackend, FunctionsViewsAndEmptyTensors) {
  ir::OpDef check{.name = "fails"};
  check.infer = [](Types, const ir::Attrs&) { return std::vector<ir::TensorType>{}; };
  check.reference = [](std::span<const ir::HostArray> in, std::span<const ir::HostArray>, const ir::Attrs&,
                       ir::StepError* error) {
    error->code = ir::StepError::kIndexOutOfRange;
    error->value = in[0].as<std::int64_t>()[0];
  };
  ir::OpDef view{.name = "view", .view = true};
  view.infer = [](Types in, const ir::Attrs&) { return std::vector<ir::TensorType>{in[0]}; };
  const ir::OpDef sum = scaled_sum();
  Bench s;
  const auto x = s.g.add_input({.name = "x"}, {DType::kInt64, {1}});
  const auto empty = s.g.add_input({.name = "empty"}, {DType::kFloat32, {0, 2}});
  s.g.add_node(view, {x}, {});
  s.g.add_node(check, {x}, {});
  s.g.add_node(sum, {empty, empty}, {{"scale", 1.0}});
  auto kernels = s.backend->make_kernels(s.g);
  EXPECT_EQ(kernels[0], nullptr);
  std::int64_t value = 41;
  void* args[] = {&value};
  const Instr instr = kernels[1]->bind(args);
  ir::StepError error;
  instr.run(instr.context, &error);
  EXPECT_EQ(error.node, 1);
  EXPECT_EQ(error.value, 41);
  void* nothing[] = {nullptr, nullptr, nullptr};
  const Instr none = kernels[2]->bind(nothing);
  none.run(none.context, &error);
}

TEST(ReferenceBackend, RefusesWhatItCannotRun) {
  ir::OpDef bare{.name = "bare"};
  bare.infer = [](Types in, const ir::Attrs&) { return std::vector<ir::TensorType>{in[0]}; };
  Bench s;
  const auto x = s.g.add_input({.name = "x"}, {DType::kFloat32, {1}});
  s.g.add_node(bare, {x}, {});
  EXPECT_THROW(s.backend->make_kernels(s.g), DeviceError);
  s.g.nodes[0].nest = std::make_shared<const ir::LoopNest>();
  EXPECT_THROW(s.backend->make_kernels(s.g), DeviceError);
  EXPECT_FALSE(s.backend->caps().fuse);
  EXPECT_EQ(s.backend->name(), "reference");
}

/// Gives the same slot `count` times.
struct Repeat : Feed {
  explicit Repeat(int count) : left(count) {}
  const Slot* pop() override { return left-- > 0 ? &slot : nullptr; }
  void release(const Slot*) override { ++released; }
  Slot slot;
  int left, released = 0;
};

TEST(ReferenceBackend, LaunchRunsSteps) {
  const ir::OpDef op = scaled_sum();
  Bench s;
  const auto x = s.g.add_input({.name = "x"}, {DType::kFloat32, {}});
  s.g.add_node(op, {x, x}, {{"scale", 1.0}});
  Program program;
  program.kernels = s.backend->make_kernels(s.g);
  float value = 1;
  std::int64_t counter = 0;
  void* args[] = {&value, &value, &value};
  program.variants.push_back({.compute = {program.kernels[0]->bind(args)}});
  program.step_counter = &counter;
  program.loss = &value;
  Repeat feed(3);
  std::vector<StepRecord> records(10);
  const LaunchResult r = s.backend->launch(program, {.steps = 10, .first_step = 5, .feed = &feed, .records = records});
  EXPECT_EQ(r.steps, 3);
  EXPECT_EQ(value, 8);
  EXPECT_EQ(records[2].loss, 8);
  EXPECT_EQ(records[2].step, 8);
  EXPECT_EQ(feed.released, 3);
}

}  // namespace
}  // namespace undertow::backend
