// SPDX-License-Identifier: Apache-2.0
// Convolution and its two gradients. `layout` says where the channels are; users see NCHW, the layout pass chooses.
#include "undertow/base/check.h"
#include "undertow/ops/channel_blocks.h"
#include "undertow/ops/dispatch.h"
#include "undertow/ops/ops.h"
#include "undertow/ops/precision.h"
#include "undertow/ops/reference/reference.h"
#include "undertow/ops/register.h"

namespace undertow::ops {

using ir::Attrs;
using ir::GradContext;
using Grads = std::vector<Tensor>;
using Ints = std::vector<std::int64_t>;
using Types = std::span<const ir::TensorType>;

namespace {

/// 2 or 3 spatial dimensions; only two know layouts other than NCHW.
std::vector<ir::TensorType> infer_conv(Types in, const Attrs& a, int spatial) {
  const std::int64_t block = channel_block(a.text("layout"));
  const Shape x = block ? without_blocks(in[0].shape) : in[0].shape, &w = in[1].shape;
  UNDERTOW_CHECK(x.rank() == spatial + 2 && w.rank() == spatial + 2, ShapeError,
                 "input and weight need {} dimensions, got {} and {}", spatial + 2, x.str(), w.str());
  UNDERTOW_CHECK(in[0].dtype == in[1].dtype, TypeError, "dtypes {} and {} differ", name_of(in[0].dtype),
                 name_of(in[1].dtype));
  const bool nhwc = a.text("layout") == "NHWC";
  const int channel = nhwc ? spatial + 1 : 1, first = nhwc ? 1 : 2;
  const std::int64_t groups = a.integer("groups");
  UNDERTOW_CHECK(x[channel] == w[1] * groups, ShapeError, "input has {} channels, weight {} with {} groups expects {}",
                 x[channel], w.str(), groups, w[1] * groups);
  UNDERTOW_CHECK(w[0] % groups == 0, ShapeError, "{} output channels cannot be divided into {} groups", w[0], groups);
  const auto &strides = a.ints("strides"), &pads = a.ints("pads"), &dilations = a.ints("dilations");
  Shape y = x;
  y[channel] = w[0];
  for (int axis = 0; axis < spatial; ++axis) {
    const auto i = static_cast<std::size_t>(axis);
    const std::int64_t window = dilations[i] * (w[2 + axis] - 1) + 1;
    const std::int64_t padded = x[first + axis] + pads[2 * i] + pads[2 * i + 1];
    UNDERTOW_CHECK(padded >= window, ShapeError, "the kernel covers {} positions, the padded input has {} (input {})",
                   window, padded, x.str());
    y[first + axis] = (padded - window) / strides[i] + 1;
  }
  return {{in[0].dtype, block ? with_blocks(y, block) : y}};
}

Attrs with(const Attrs& attrs, const char* name, const Shape& shape) {
  Attrs a = attrs;
  a.set(name, shape.to_vector());
  return a;
}

Attrs without(const Attrs& attrs, std::string_view name) {
  Attrs a;
  for (const auto& [key, value] : attrs)
    if (key != name) a.set(key, value);
  return a;
}

/// Each of the three is the gradient of the other two.
void register_for(ir::OpSet& set, int spatial) {
  const std::string name = fmt::format("conv{}d", spatial), grad_input = name + "_grad_input",
                    grad_weight = name + "_grad_weight";
  const auto n = static_cast<std::size_t>(spatial);
  const auto base = [&](std::string op, std::vector<std::string> inputs, std::string doc) {
    ir::OpDef def;
    def.name = std::move(op);
    def.num_inputs = 2;
    def.inputs = std::move(inputs);
    def.doc = std::move(doc);
    def.defaults = {{"strides", Ints(n, 1)},
                    {"pads", Ints(2 * n, 0)},
                    {"dilations", Ints(n, 1)},
                    {"groups", std::int64_t{1}},
                    {"layout", std::string("NCHW")}};
    def.amp = ir::AmpClass::kLow;
    return def;
  };
  ir::OpDef forward = base(name, {"x", "weight"}, fmt::format("{}-D cross-correlation", spatial));
  forward.infer = [spatial](Types in, const Attrs& a) { return infer_conv(in, a, spatial); };
  forward.grad = [=](const GradContext& c) {
    Grads out(2);
    const Tensor &x = c.inputs[0], &w = c.inputs[1], &g = c.grads[0];
    if (c.needs[0]) out[0] = call(grad_input, {g, w}, with(c.attrs, "input_shape", x.shape()));
    if (c.needs[1]) out[1] = call(grad_weight, {x, g}, with(c.attrs, "weight_shape", w.shape()));
    return out;
  };
  forward.reference = reference::conv;
  set.add(std::move(forward));

  ir::OpDef input = base(grad_input, {"dy", "weight"}, "gradient with respect to the input (a transposed convolution)");
  input.infer = [](Types in, const Attrs& a) {
    return std::vector{ir::TensorType{in[0].dtype, Shape(a.ints("input_shape"))}};
  };
  input.grad = [=](const GradContext& c) {
    Grads out(2);
    const Tensor &dy = c.inputs[0], &w = c.inputs[1], &g = c.grads[0];
    const Attrs rest = without(c.attrs, "input_shape");
    if (c.needs[0]) out[0] = call(name, {g, w}, rest);
    if (c.needs[1]) out[1] = call(grad_weight, {g, dy}, with(rest, "weight_shape", w.shape()));
    return out;
  };
  input.reference = reference::conv_grad_input;
  set.add(std::move(input));

  ir::OpDef weight = base(grad_weight, {"x", "dy"}, "gradient with respect to the weight");
  weight.infer = [](Types in, const Attrs& a) {
    return std::vector{ir::TensorType{in[0].dtype, Shape(a.ints("weight_shape"))}};
  };
  weight.grad = [=](const GradContext& c) {
    Grads out(2);
    const Tensor &x = c.inputs[0], &dy = c.inputs[1], &g = c.grads[0];
    const Attrs rest = without(c.attrs, "weight_shape");
    if (c.needs[0]) out[0] = call(grad_input, {dy, g}, with(rest, "input_shape", x.shape()));
    if (c.needs[1]) out[1] = call(name, {x, g}, rest);
    return out;
  };
  weight.reference = reference::conv_grad_weight;
  set.add(std::move(weight));
}

}  // namespace

void register_conv(ir::OpSet& set) {
  for (const int spatial : {2, 3}) register_for(set, spatial);
}

Tensor conv2d(const Tensor& x, const Tensor& weight, const ConvOptions& o) {
  const DType t = promote(x, weight);
  return call("conv2d", {cast(x, t), cast(weight, t)},
              {{"strides", o.strides}, {"pads", o.pads}, {"dilations", o.dilations}, {"groups", o.groups}});
}

}  // namespace undertow::ops
