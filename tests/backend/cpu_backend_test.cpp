// SPDX-License-Identifier: Apache-2.0
#include "tests/backend/cpu_util.h"
#include "undertow/backend/cpu/backend.h"
#include "undertow/backend/cpu/nests.h"

namespace undertow::test {
namespace {

/// Runs a one-node graph on the CPU device and compares with `want`, the same graph on the reference device.
void compare_devices(const char* op, ir::Attrs attrs, std::vector<ir::TensorType> in, double tolerance,
                     const char* kernel_prefix) {
  Node node(op, attrs, in);
  node.random();
  ir::Graph graph;
  std::vector<ir::ValueId> values;
  for (const auto& t : in) values.push_back(graph.add_input({}, t));
  graph.add_node(*node.view.op, values, attrs);
  std::vector<std::vector<Buffer>> results;
  for (const char* device : {"CPU", "reference"}) {
    auto kernels = backend::get_backend(device).make_kernels(graph);
    ASSERT_EQ(kernels.size(), 1u);
    ASSERT_TRUE(kernels[0]);
    if (device[0] == 'C') {
      EXPECT_TRUE(kernels[0]->description().starts_with(kernel_prefix)) << kernels[0]->description();
    }
    results.push_back(node.run(*kernels[0]));
  }
  expect_near(node, results[0], results[1], tolerance, op);
}

TEST(CpuBackend, SingleElementwiseOpsAreGenerated) {
  const ir::TensorType a{DType::kFloat32, {40, 30, 50}}, row{DType::kFloat32, {50}}, column{DType::kFloat32, {30, 1}};
  compare_devices("add", {}, {a, row}, 0, "llvm:add");
  compare_devices("mul", {}, {column, a}, 0, "llvm:mul");
  compare_devices("exp", {}, {a}, 1e-6, "llvm:exp");
  compare_devices("less", {}, {a, row}, 0, "llvm:less");
  compare_devices("add", {}, {{DType::kFloat32, {}}, {DType::kFloat32, {}}}, 0, "llvm:add");
  compare_devices("add", {}, {{DType::kBFloat16, {7, 9}}, {DType::kBFloat16, {7, 1}}}, 0, "llvm:add");
  compare_devices("add", {}, {{DType::kFloat32, {0, 3}}, {DType::kFloat32, {1, 3}}}, 0, "zero:add");
}

TEST(CpuBackend, SingleReductionsAreGenerated) {
  for (const Ints& axes : std::vector<Ints>{{0}, {1}, {2}, {0, 2}, {0, 1, 2}, {}})
    for (const char* op : {"reduce_sum", "reduce_max"}) {
      const ir::Attrs attrs{{"axes", axes}, {"keep_dims", false}};
      compare_devices(op, attrs, {{DType::kFloat32, {8, 7, 33}}}, 1e-5, "llvm:reduce");
      compare_devices(op, attrs, {{DType::kInt32, {8, 7, 33}}}, 0, "llvm:reduce");
      compare_devices(op, attrs, {{DType::kBFloat16, {8, 7, 33}}}, 1e-2, "llvm:reduce");
    }
  compare_devices("reduce_sum", {{"axes", Ints{0}}, {"keep_dims", true}}, {{DType::kFloat32, {0, 3}}}, 0, "reference:");
}

TEST(CpuBackend, ElementwiseKernelsRunInPlaceWhereTheAccessIsOne) {
  ops::register_all();
  ir::Graph graph;
  const ir::ValueId a = graph.add_input({}, {DType::kFloat32, {4, 5}}),
                    row = graph.add_input({}, {DType::kFloat32, {5}});
  graph.add_node(ir::op_set().get("add"), {a, row}, {});
  graph.add_node(ir::op_set().get("less"), {a, a}, {});
  const auto kernels = backend::get_backend("CPU").make_kernels(graph);
  EXPECT_TRUE(kernels[0]->in_place(0, 0));
  EXPECT_FALSE(kernels[0]->in_place(0, 1));  // broadcast
  EXPECT_FALSE(kernels[1]->in_place(0, 0));  // other element size
}

TEST(CpuBackend, ViewsHaveNoKernelAndUnknownOpsAreRefusedByName) {
  ops::register_all();
  ir::Graph graph;
  const ir::ValueId a = graph.add_input({}, {DType::kFloat32, {4, 5}});
  graph.add_node(ir::op_set().get("reshape"), {a}, {{"shape", Ints{20}}});
  EXPECT_EQ(backend::get_backend("CPU").make_kernels(graph)[0], nullptr);
  const ir::OpDef strange{.name = "strange",
                          .infer = [](auto in, const auto&) { return std::vector<ir::TensorType>{in[0]}; }};
  graph.add_node(strange, {a}, {});
  try {
    backend::get_backend("CPU").make_kernels(graph);
    FAIL();
  } catch (const DeviceError& e) {
    EXPECT_NE(std::string(e.what()).find("strange"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace undertow::test
