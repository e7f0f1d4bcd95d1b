// SPDX-License-Identifier: Apache-2.0
#include "undertow/ops/cumulative.h"

#include "undertow/base/check.h"
#include "undertow/ops/dispatch.h"
#include "undertow/ops/reference/reference.h"
#include "undertow/ops/register.h"
#include "undertow/ops/scatter.h"

namespace undertow::ops {

using ir::Attrs;
using ir::GradContext;
using Grads = std::vector<Tensor>;
using Types = std::span<const ir::TensorType>;

namespace {

/// What the later elements add up to: the gradient of a cumulative sum is one in the other direction.
Tensor running_sum(const Tensor& g, const Attrs& a) {
  return cumsum(g, a.integer("axis"), a.flag("exclusive"), !a.flag("reverse"));
}

/// Gradient of y_j = product of x_k (k <= j): dx_i is the sum of g_j y_j / x_i over j >= i. Where x_i is the first 0 of
/// its row it is the product without it, and beyond a 0 nothing remains.
Grads cumprod_grad(const GradContext& c) {
  const Tensor &x = c.inputs[0], &g = c.grads[0];
  const std::int64_t axis = c.attrs.integer("axis");
  const bool reverse = c.attrs.flag("reverse"), exclusive = c.attrs.flag("exclusive");
  const Tensor zero = equal(x, 0.0);
  const Tensor zeros = cumsum(cast(zero, DType::kInt32), axis, false, reverse);
  const Tensor first = logical_and(zero, equal(zeros, 1));
  const Tensor safe = select(zero, 1.0, x);
  const Tensor before = div(running_sum(mul(g, c.outputs[0]), c.attrs), safe);
  const Tensor without = cumprod(select(first, 1.0, x), axis, exclusive, reverse);
  const Tensor at_first = running_sum(mul(g, without), c.attrs);
  return {select(first, at_first, select(equal(zeros, 0), before, 0.0))};
}

ir::OpDef cumulative(std::string name, std::string doc, decltype(ir::OpDef::reference) reference,
                     decltype(ir::OpDef::grad) grad) {
  ir::OpDef def;
  def.name = std::move(name);
  def.inputs = {"x"};
  def.doc = std::move(doc);
  def.defaults = {{"axis", std::int64_t{0}}, {"exclusive", false}, {"reverse", false}};
  def.infer = [](Types in, const Attrs&) {
    UNDERTOW_CHECK(in[0].dtype != DType::kBool, TypeError, "needs numbers, got {}", name_of(in[0].dtype));
    return std::vector{in[0]};
  };
  def.grad = std::move(grad);
  def.reference = std::move(reference);
  def.amp = ir::AmpClass::kHigh;
  return def;
}

ir::OpDef extremum(std::string name, std::string doc, decltype(ir::OpDef::reference) reference) {
  ir::OpDef def;
  def.name = std::move(name);
  def.inputs = {"x"};
  def.doc = std::move(doc);
  def.defaults = {{"axis", std::int64_t{0}}};
  def.infer = [](Types in, const Attrs&) { return std::vector{in[0], ir::TensorType{DType::kInt64, in[0].shape}}; };
  def.grad = [](const GradContext& c) {
    if (!c.grads[0].defined()) return Grads{Tensor()};
    return Grads{scatter_elements(zeros_like(c.inputs[0]), c.outputs[1], c.grads[0], c.attrs.integer("axis"), "add")};
  };
  def.reference = std::move(reference);
  return def;
}

Tensor call_cumulative(const char* op, const Tensor& x, std::int64_t axis, bool exclusive, bool reverse) {
  if (x.ndim() == 0) return reshape(call_cumulative(op, reshape(x, {1}), axis, exclusive, reverse), {});
  return call(
      op, {x},
      {{"axis", std::int64_t{normalize_axis(axis, x.ndim(), op)}}, {"exclusive", exclusive}, {"reverse", reverse}});
}

std::pair<Tensor, Tensor> call_extremum(const char* op, const Tensor& x, std::int64_t axis) {
  if (x.ndim() == 0) {
    const auto [y, i] = call_extremum(op, reshape(x, {1}), axis);
    return {reshape(y, {}), reshape(i, {})};
  }
  const auto out = apply(op, {x}, {{"axis", std::int64_t{normalize_axis(axis, x.ndim(), op)}}});
  return {out[0], out[1]};
}

}  // namespace

void register_cumulative(ir::OpSet& set) {
  set.add(cumulative("cumsum", "running sum along an axis", reference::cumsum,
                     [](const GradContext& c) { return Grads{running_sum(c.grads[0], c.attrs)}; }));
  set.add(cumulative("cumprod", "running product along an axis", reference::cumprod, cumprod_grad));
  set.add(extremum("cummax", "running maximum along an axis and its position; NaN wins", reference::cummax));
  set.add(extremum("cummin", "running minimum along an axis and its position; NaN wins", reference::cummin));
}

Tensor cumsum(const Tensor& x, std::int64_t axis, bool exclusive, bool reverse) {
  const Tensor t = x.dtype() == DType::kBool ? cast(x, DType::kInt64) : x;
  return call_cumulative("cumsum", t, axis, exclusive, reverse);
}
Tensor cumprod(const Tensor& x, std::int64_t axis, bool exclusive, bool reverse) {
  const Tensor t = x.dtype() == DType::kBool ? cast(x, DType::kInt64) : x;
  return call_cumulative("cumprod", t, axis, exclusive, reverse);
}
std::pair<Tensor, Tensor> cummax(const Tensor& x, std::int64_t axis) { return call_extremum("cummax", x, axis); }
std::pair<Tensor, Tensor> cummin(const Tensor& x, std::int64_t axis) { return call_extremum("cummin", x, axis); }

Tensor logcumsumexp(const Tensor& x, std::int64_t axis) {
  const Tensor t = is_floating(x.dtype()) ? x : cast(x, DType::kFloat32);
  if (t.ndim() == 0) return t;
  if (t.size() == 0) return t;
  const std::int64_t a = normalize_axis(axis, t.ndim(), "logcumsumexp");
  const Tensor most = stop_gradient(reduce_max(t, {a}, true));
  const Tensor top = select(isfinite(most), most, select(isnan(most), most, 0.0));
  return add(log(cumsum(exp(sub(t, top)), a)), top);
}

}  // namespace undertow::ops
