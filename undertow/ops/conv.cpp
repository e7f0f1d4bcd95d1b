// SPDX-License-Identifier: Apache-2.0
// Convolution and its two gradients. `layout` says where the channels are; users see NCHW, the layout pass may choose.
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

struct Dims {
  std::int64_t n, c, h, w;
};
Dims dims(const Shape& s, bool nhwc) { return nhwc ? Dims{s[0], s[3], s[1], s[2]} : Dims{s[0], s[1], s[2], s[3]}; }

std::vector<ir::TensorType> infer_conv(Types in, const Attrs& a) {
  const Shape &x = in[0].shape, &w = in[1].shape;
  UNDERTOW_CHECK(x.rank() == 4 && w.rank() == 4, ShapeError, "input and weight need 4 dimensions, got {} and {}",
                 x.str(), w.str());
  UNDERTOW_CHECK(in[0].dtype == in[1].dtype, TypeError, "dtypes {} and {} differ", name_of(in[0].dtype),
                 name_of(in[1].dtype));
  const bool nhwc = a.text("layout") == "NHWC";
  const Dims d = dims(x, nhwc);
  const std::int64_t groups = a.integer("groups");
  UNDERTOW_CHECK(d.c == w[1] * groups, ShapeError, "input has {} channels, weight {} with {} groups expects {}", d.c,
                 w.str(), groups, w[1] * groups);
  UNDERTOW_CHECK(w[0] % groups == 0, ShapeError, "{} output channels cannot be divided into {} groups", w[0], groups);
  const auto &strides = a.ints("strides"), &pads = a.ints("pads"), &dilations = a.ints("dilations");
  const auto extent = [&](std::int64_t n, int axis) {
    const std::int64_t window = dilations[static_cast<std::size_t>(axis)] * (w[2 + axis] - 1) + 1;
    const std::int64_t padded =
        n + pads[static_cast<std::size_t>(2 * axis)] + pads[static_cast<std::size_t>(2 * axis + 1)];
    UNDERTOW_CHECK(padded >= window, ShapeError, "the kernel covers {} positions, the padded input has {} (input {})",
                   window, padded, x.str());
    return (padded - window) / strides[static_cast<std::size_t>(axis)] + 1;
  };
  const std::int64_t oh = extent(d.h, 0), ow = extent(d.w, 1);
  return {{in[0].dtype, nhwc ? Shape{d.n, oh, ow, w[0]} : Shape{d.n, w[0], oh, ow}}};
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

}  // namespace

void register_conv(ir::OpSet& set) {
  const Attrs defaults{{"strides", std::vector<std::int64_t>{1, 1}},
                       {"pads", std::vector<std::int64_t>{0, 0, 0, 0}},
                       {"dilations", std::vector<std::int64_t>{1, 1}},
                       {"groups", std::int64_t{1}},
                       {"layout", std::string("NCHW")}};
  ir::OpDef forward;
  forward.name = "conv2d";
  forward.num_inputs = 2;
  forward.inputs = {"x", "weight"};
  forward.doc = "2-D cross-correlation";
  forward.defaults = defaults;
  forward.infer = infer_conv;
  forward.grad = [](const GradContext& c) {
    Grads out(2);
    const Tensor &x = c.inputs[0], &w = c.inputs[1], &g = c.grads[0];
    if (c.needs[0]) out[0] = call("conv2d_grad_input", {g, w}, with(c.attrs, "input_shape", x.shape()));
    if (c.needs[1]) out[1] = call("conv2d_grad_weight", {x, g}, with(c.attrs, "weight_shape", w.shape()));
    return out;
  };
  forward.reference = reference::conv2d;
  forward.amp = ir::AmpClass::kLow;
  set.add(std::move(forward));

  ir::OpDef input;
  input.name = "conv2d_grad_input";
  input.num_inputs = 2;
  input.inputs = {"dy", "weight"};
  input.doc = "gradient of conv2d with respect to its input (a transposed convolution)";
  input.defaults = defaults;
  input.infer = [](Types in, const Attrs& a) {
    return std::vector{ir::TensorType{in[0].dtype, Shape(a.ints("input_shape"))}};
  };
  input.grad = [](const GradContext& c) {
    Grads out(2);
    const Tensor &dy = c.inputs[0], &w = c.inputs[1], &g = c.grads[0];
    const Attrs base = without(c.attrs, "input_shape");
    if (c.needs[0]) out[0] = call("conv2d", {g, w}, base);
    if (c.needs[1]) out[1] = call("conv2d_grad_weight", {g, dy}, with(base, "weight_shape", w.shape()));
    return out;
  };
  input.reference = reference::conv2d_grad_input;
  input.amp = ir::AmpClass::kLow;
  set.add(std::move(input));

  ir::OpDef weight;
  weight.name = "conv2d_grad_weight";
  weight.num_inputs = 2;
  weight.inputs = {"x", "dy"};
  weight.doc = "gradient of conv2d with respect to its weight";
  weight.defaults = defaults;
  weight.infer = [](Types in, const Attrs& a) {
    return std::vector{ir::TensorType{in[0].dtype, Shape(a.ints("weight_shape"))}};
  };
  weight.grad = [](const GradContext& c) {
    Grads out(2);
    const Tensor &x = c.inputs[0], &dy = c.inputs[1], &g = c.grads[0];
    const Attrs base = without(c.attrs, "weight_shape");
    if (c.needs[0]) out[0] = call("conv2d_grad_input", {dy, g}, with(base, "input_shape", x.shape()));
    if (c.needs[1]) out[1] = call("conv2d", {x, g}, base);
    return out;
  };
  weight.reference = reference::conv2d_grad_weight;
  weight.amp = ir::AmpClass::kLow;
  set.add(std::move(weight));
}

Tensor conv2d(const Tensor& x, const Tensor& weight, const ConvOptions& o) {
  const DType t = promote(x.dtype(), weight.dtype());
  return call("conv2d", {cast(x, t), cast(weight, t)},
              {{"strides", o.strides}, {"pads", o.pads}, {"dilations", o.dilations}, {"groups", o.groups}});
}

}  // namespace undertow::ops
