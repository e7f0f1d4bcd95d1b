// SPDX-License-Identifier: Apache-2.0
#include "undertow/base/check.h"
#include "undertow/ops/dispatch.h"
#include "undertow/ops/ops.h"
#include "undertow/ops/reference/reference.h"
#include "undertow/ops/register.h"

namespace undertow::ops {

using ir::Attrs;
using ir::GradContext;
using Grads = std::vector<Tensor>;
using Types = std::span<const ir::TensorType>;

namespace {

Shape pooled_shape(const Shape& x, const Attrs& a) {
  UNDERTOW_CHECK(x.rank() == 4, ShapeError, "input needs 4 dimensions, got {}", x.str());
  const int first = a.text("layout") == "NHWC" ? 1 : 2;
  const auto &kernel = a.ints("kernel"), &strides = a.ints("strides"), &pads = a.ints("pads");
  const ir::AttrValue* dilations = a.find("dilations");
  Shape out = x;
  for (int i = 0; i < 2; ++i) {
    const auto k = static_cast<std::size_t>(i);
    const std::int64_t padded = x[first + i] + pads[2 * k] + pads[2 * k + 1];
    const std::int64_t dilation = dilations ? std::get<std::vector<std::int64_t>>(*dilations)[k] : 1;
    const std::int64_t reach = (kernel[k] - 1) * dilation + 1;
    UNDERTOW_CHECK(padded >= reach, ShapeError, "the window is {} wide, the padded input {} (input {})", reach, padded,
                   x.str());
    out[first + i] = (padded - reach) / strides[k] + 1;
  }
  return out;
}

Attrs with_input(const Attrs& attrs, const Shape& shape) {
  Attrs a = attrs;
  a.set("input_shape", shape.to_vector());
  return a;
}

ir::OpDef pool(std::string name, std::vector<std::string> inputs, std::string doc) {
  ir::OpDef def;
  def.name = std::move(name);
  def.num_inputs = static_cast<int>(inputs.size());
  def.inputs = std::move(inputs);
  def.doc = std::move(doc);
  def.defaults = {{"layout", std::string("NCHW")}};
  return def;
}

std::vector<ir::TensorType> infer_input_shape(Types in, const Attrs& a) {
  return {{in[0].dtype, Shape(a.ints("input_shape"))}};
}

Attrs attrs_of(const PoolOptions& o) { return {{"kernel", o.kernel}, {"strides", o.strides}, {"pads", o.pads}}; }

}  // namespace

void register_pool(ir::OpSet& set) {
  auto max = pool("max_pool2d", {"x"}, "largest element of each window (the first; NaN wins), and where it stands");
  max.defaults.set("dilations", std::vector<std::int64_t>{1, 1});
  max.infer = [](Types in, const Attrs& a) {
    const Shape s = pooled_shape(in[0].shape, a);
    return std::vector{ir::TensorType{in[0].dtype, s}, ir::TensorType{DType::kInt32, s}};
  };
  max.grad = [](const GradContext& c) {
    return Grads{call("max_pool2d_grad", {c.grads[0], c.outputs[1]}, with_input(c.attrs, c.inputs[0].shape()))};
  };
  max.reference = reference::max_pool2d;
  set.add(std::move(max));

  auto max_grad = pool("max_pool2d_grad", {"dy", "index"}, "each window's gradient, put where its maximum stood");
  max_grad.defaults.set("dilations", std::vector<std::int64_t>{1, 1});
  max_grad.infer = infer_input_shape;
  max_grad.reference = reference::max_pool2d_grad;
  set.add(std::move(max_grad));

  auto avg = pool("avg_pool2d", {"x"}, "mean of each window");
  avg.defaults.set("count_include_pad", true);
  avg.infer = [](Types in, const Attrs& a) {
    return std::vector{ir::TensorType{in[0].dtype, pooled_shape(in[0].shape, a)}};
  };
  avg.grad = [](const GradContext& c) {
    return Grads{call("avg_pool2d_grad", {c.grads[0]}, with_input(c.attrs, c.inputs[0].shape()))};
  };
  avg.reference = reference::avg_pool2d;
  set.add(std::move(avg));

  auto avg_grad = pool("avg_pool2d_grad", {"dy"}, "each window's gradient, spread evenly over it");
  avg_grad.defaults.set("count_include_pad", true);
  avg_grad.infer = infer_input_shape;
  avg_grad.grad = [](const GradContext& c) {
    Attrs a;
    for (const auto& [key, value] : c.attrs)
      if (key != "input_shape") a.set(key, value);
    return Grads{call("avg_pool2d", {c.grads[0]}, a)};
  };
  avg_grad.reference = reference::avg_pool2d_grad;
  set.add(std::move(avg_grad));
}

Tensor max_pool2d(const Tensor& x, const PoolOptions& o) { return call("max_pool2d", {x}, attrs_of(o)); }

Tensor avg_pool2d(const Tensor& x, const PoolOptions& o) {
  Attrs a = attrs_of(o);
  a.set("count_include_pad", o.count_include_pad);
  return call("avg_pool2d", {x}, a);
}

}  // namespace undertow::ops
