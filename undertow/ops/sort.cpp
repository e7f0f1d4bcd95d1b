// SPDX-License-Identifier: Apache-2.0
#include "undertow/ops/sort.h"

#include <cmath>

#include "undertow/base/check.h"
#include "undertow/ops/dispatch.h"
#include "undertow/ops/reference/reference.h"
#include "undertow/ops/register.h"
#include "undertow/ops/scatter.h"

namespace undertow::ops {

using ir::Attrs;
using ir::GradContext;
using Grads = std::vector<Tensor>;

void register_sort(ir::OpSet& set) {
  ir::OpDef def;
  def.name = "sort";
  def.inputs = {"x"};
  def.doc = "the first elements in order along an axis, and their positions; stable, NaN is the largest";
  def.defaults = {{"axis", std::int64_t{0}}, {"descending", false}, {"count", std::int64_t{-1}}};
  def.infer = [](std::span<const ir::TensorType> in, const Attrs& a) {
    ir::TensorType out = in[0];
    auto& extent = out.shape[static_cast<int>(a.integer("axis"))];
    const std::int64_t count = a.integer("count");
    UNDERTOW_CHECK(count <= extent, ValueError, "{} elements are asked for of axis {} of shape {}", count,
                   a.integer("axis"), in[0].shape.str());
    if (count >= 0) extent = count;
    return std::vector{out, ir::TensorType{DType::kInt64, out.shape}};
  };
  def.grad = [](const GradContext& c) {
    if (!c.grads[0].defined()) return Grads{Tensor()};
    return Grads{scatter_elements(zeros_like(c.inputs[0]), c.outputs[1], c.grads[0], c.attrs.integer("axis"), "add")};
  };
  def.reference = reference::sort;
  set.add(std::move(def));
}

std::pair<Tensor, Tensor> sort(const Tensor& x, std::int64_t axis, bool descending, std::int64_t count) {
  if (x.ndim() == 0) {
    const auto [y, i] = sort(reshape(x, {1}), axis, descending, count);
    return {reshape(y, {}), reshape(i, {})};
  }
  const auto out = apply(
      "sort", {x},
      {{"axis", std::int64_t{normalize_axis(axis, x.ndim(), "sort")}}, {"descending", descending}, {"count", count}});
  return {out[0], out[1]};
}

std::pair<Tensor, Tensor> topk(const Tensor& x, std::int64_t k, std::int64_t axis, bool largest) {
  UNDERTOW_CHECK(x.ndim() > 0, ShapeError, "topk: a scalar has no axis to choose along");
  const int a = normalize_axis(axis, x.ndim(), "topk");
  UNDERTOW_CHECK(k >= 0 && k <= x.shape(a), ValueError, "topk: k must be from 0 to {} (axis {} of shape {}), got {}",
                 x.shape(a), a, x.shape().str(), k);
  return sort(x, a, largest, k);
}

namespace {

/// Element `at` along an axis of both.
std::pair<Tensor, Tensor> pick(const std::pair<Tensor, Tensor>& sorted, std::int64_t at, int axis, bool keep_dims) {
  const auto take = [&](const Tensor& t) {
    std::vector<std::int64_t> begin(static_cast<std::size_t>(t.ndim()), 0), steps(begin.size(), 1);
    begin[static_cast<std::size_t>(axis)] = at;
    Shape s = t.shape();
    s[axis] = 1;
    const Tensor y = slice(t, begin, steps, s);
    return keep_dims ? y : squeeze(y, {axis});
  };
  return {take(sorted.first), take(sorted.second)};
}

}  // namespace

std::pair<Tensor, Tensor> kthvalue(const Tensor& x, std::int64_t k, std::int64_t axis, bool keep_dims) {
  if (x.ndim() == 0) return {x, full(Shape{}, 0, DType::kInt64)};
  const int a = normalize_axis(axis, x.ndim(), "kthvalue");
  UNDERTOW_CHECK(k >= 1 && k <= x.shape(a), ValueError,
                 "kthvalue: k must be from 1 to {} (axis {} of shape {}), got {}", x.shape(a), a, x.shape().str(), k);
  return pick(sort(x, a, false, k), k - 1, a, keep_dims);
}

std::pair<Tensor, Tensor> median(const Tensor& x, std::int64_t axis, bool keep_dims) {
  if (x.ndim() == 0) return {x, full(Shape{}, 0, DType::kInt64)};
  const int a = normalize_axis(axis, x.ndim(), "median");
  const std::int64_t n = x.shape(a);
  UNDERTOW_CHECK(n > 0, ValueError, "median: axis {} of shape {} is empty", a, x.shape().str());
  if (!is_floating(x.dtype())) return kthvalue(x, (n + 1) / 2, a, keep_dims);
  const auto sorted = sort(x, a);
  const auto [middle, at] = pick(sorted, (n - 1) / 2, a, keep_dims);
  const auto [last, last_at] = pick(sorted, n - 1, a, keep_dims);
  const Tensor spoiled = isnan(last);
  return {select(spoiled, last, middle), select(spoiled, last_at, at)};
}

Tensor quantile(const Tensor& x, double q, std::optional<std::int64_t> axis, bool keep_dims, bool ignore_nan) {
  UNDERTOW_CHECK(q >= 0 && q <= 1, ValueError, "quantile: q must be from 0 to 1, got {}", q);
  Tensor t = is_floating(x.dtype()) ? x : cast(x, DType::kFloat32);
  if (!axis) {
    const Tensor y = quantile(reshape(t, {-1}), q, 0, false, ignore_nan);
    return keep_dims ? reshape(y, std::vector<std::int64_t>(t.shape().size(), 1)) : y;
  }
  const int a = normalize_axis(*axis, t.ndim(), "quantile");
  const std::int64_t n = t.shape(a);
  UNDERTOW_CHECK(n > 0, ValueError, "quantile: axis {} of shape {} is empty", a, x.shape().str());
  const Tensor sorted = sort(t, a).first;
  const Tensor missing = reduce_sum(cast(isnan(t), DType::kInt64), {a}, true);
  const Tensor count = ignore_nan ? sub(n, missing) : full(missing.shape(), static_cast<double>(n), DType::kInt64);
  const Tensor place = mul(cast(maximum(sub(count, 1), 0), t.dtype()), q), low = floor(place);
  const Tensor low_at = cast(low, DType::kInt64), high_at = minimum(add(low_at, 1), maximum(sub(count, 1), 0));
  const Tensor below = gather_elements(sorted, low_at, a), above = gather_elements(sorted, high_at, a);
  const Tensor weight = sub(place, low);
  Tensor y = select(equal(weight, 0.0), below, add(below, mul(sub(above, below), weight)));
  if (!ignore_nan) y = select(greater(missing, 0), std::nan(""), y);
  return keep_dims ? y : squeeze(y, {a});
}

Tensor searchsorted(const Tensor& sorted, const Tensor& values, bool right) {
  UNDERTOW_CHECK(sorted.ndim() >= 1, ShapeError, "searchsorted: the sorted sequence needs at least one dimension");
  UNDERTOW_CHECK(sorted.ndim() == 1 || sorted.ndim() == values.ndim(), ShapeError,
                 "searchsorted: the sorted sequence {} must be 1-d, or have as many dimensions as the values {}",
                 sorted.shape().str(), values.shape().str());
  // values [..., m, 1] against sorted [..., 1, n]: the number of elements that stand before the value.
  const Tensor v = expand_dims(values, -1), s = sorted.ndim() == 1 ? sorted : expand_dims(sorted, -2);
  const Tensor before = right ? less_equal(s, v) : less(s, v);
  return reduce_sum(cast(before, DType::kInt64), {-1});
}

}  // namespace undertow::ops
