// SPDX-License-Identifier: Apache-2.0
// Reductions. Statistics are composed of sums; variance takes two passes, never E[x^2] - E[x]^2.
#include <algorithm>

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

std::vector<std::int64_t> kept_shape(const Shape& in, const std::vector<std::int64_t>& axes) {
  auto s = in.to_vector();
  for (const auto a : axes) s[static_cast<std::size_t>(a)] = 1;
  return s;
}

/// A reduced tensor seen with its axes kept as 1, so that it broadcasts against the input again.
Tensor with_axes(const Tensor& reduced, const GradContext& c) {
  return reshape(reduced, kept_shape(c.inputs[0].shape(), c.attrs.ints("axes")));
}

std::vector<ir::TensorType> infer_reduce(Types in, const Attrs& a) {
  const auto& axes = a.ints("axes");
  const bool keep = a.flag("keep_dims");
  ir::TensorType out{in[0].dtype, {}};
  for (int d = 0; d < in[0].shape.rank(); ++d) {
    if (std::find(axes.begin(), axes.end(), d) == axes.end()) out.shape.push_back(in[0].shape[d]);
    else if (keep) out.shape.push_back(1);
  }
  return {out};
}

std::vector<ir::TensorType> infer_non_empty(Types in, const Attrs& a) {
  for (const auto axis : a.ints("axes"))
    UNDERTOW_CHECK(in[0].shape[static_cast<int>(axis)] != 0, ValueError,
                   "a maximum or minimum over no elements does not exist (axis {} of shape {} is empty)", axis,
                   in[0].shape.str());
  return infer_reduce(in, a);
}

ir::OpDef reduction(std::string name, std::string doc, ir::ReduceOp op, decltype(ir::OpDef::reference) reference,
                    decltype(ir::OpDef::grad) grad, bool allow_empty = true) {
  ir::OpDef def;
  def.name = std::move(name);
  def.inputs = {"x"};
  def.doc = std::move(doc);
  def.defaults = {{"axes", std::vector<std::int64_t>{}}, {"keep_dims", false}};
  def.infer = allow_empty ? infer_reduce : infer_non_empty;
  def.grad = std::move(grad);
  def.reference = std::move(reference);
  def.reduce = op;
  return def;
}

/// Gradient of max/min: shared equally among the elements that attain it.
Grads extremum_grad(const GradContext& c) {
  const Tensor hit = cast(equal(c.inputs[0], with_axes(c.outputs[0], c)), c.inputs[0].dtype());
  const Tensor share = div(with_axes(c.grads[0], c), reduce_sum(hit, c.attrs.ints("axes"), true));
  return {mul(hit, share)};
}

Grads prod_grad(const GradContext& c) {
  // Product of the others: y / x where x is not 0; where exactly one element is 0, the product of the rest.
  const auto& axes = c.attrs.ints("axes");
  const Tensor& x = c.inputs[0];
  const Tensor is_zero = equal(x, 0.0), safe = select(is_zero, 1.0, x);
  const Tensor zeros = reduce_sum(cast(is_zero, x.dtype()), axes, true);
  const Tensor rest = reduce_prod(safe, axes, true);
  const Tensor none = logical_and(equal(zeros, 0.0), logical_not(is_zero)),
               one = logical_and(equal(zeros, 1.0), is_zero);
  const Tensor others = select(none, div(rest, safe), select(one, rest, 0.0));
  return {mul(others, with_axes(c.grads[0], c))};
}

Axes resolve(const Tensor& x, Axes axes, const char* op) {
  if (axes.empty()) {
    for (int d = 0; d < x.ndim(); ++d) axes.push_back(d);
    return axes;
  }
  for (auto& a : axes) a = normalize_axis(a, x.ndim(), op);
  std::sort(axes.begin(), axes.end());
  UNDERTOW_CHECK(std::adjacent_find(axes.begin(), axes.end()) == axes.end(), ValueError, "{}: an axis is given twice",
                 op);
  return axes;
}

/// Always reduced with axes kept, so that what follows fuses; the axes are dropped by a view at the end.
Tensor drop_axes(const Tensor& kept, const Axes& axes, bool keep_dims) {
  if (keep_dims || axes.empty()) return kept;
  std::vector<std::int64_t> s;
  for (int d = 0; d < kept.ndim(); ++d)
    if (std::find(axes.begin(), axes.end(), d) == axes.end()) s.push_back(kept.shape(d));
  return reshape(kept, s);
}

Tensor reduce(const char* op, const Tensor& x, const Axes& axes, bool keep_dims) {
  if (axes.empty()) return x;  // rank 0
  return drop_axes(call(op, {x}, {{"axes", axes}, {"keep_dims", true}}), axes, keep_dims);
}

constexpr std::int64_t kPart = std::int64_t{1} << 24;  // elements

/// The sum of values(x) over `axes`, which are kept. `values` is elementwise and widens. Eagerly, where no loop nest
/// computes both, a large tensor is taken in parts, so that the wide values of all of it never are in memory.
template <typename F>
Tensor sum_of(const Tensor& x, const Axes& axes, F&& values) {
  if (axes.empty() || x.size() <= kPart || !x.is_concrete()) return reduce("reduce_sum", values(x), axes, true);
  int d = 0;
  while (x.shape(d) == 1) ++d;
  const std::int64_t parts = std::min(x.shape(d), (x.size() + kPart - 1) / kPart);
  std::vector<Tensor> sums;
  for (std::int64_t p = 0; p < parts; ++p) {
    std::vector<std::int64_t> begin(x.shape().size(), 0), shape = x.shape().to_vector();
    const auto axis = static_cast<std::size_t>(d);
    begin[axis] = x.shape(d) * p / parts;
    shape[axis] = x.shape(d) * (p + 1) / parts - begin[axis];
    const std::vector<std::int64_t> steps(begin.size(), 1);
    sums.push_back(sum_of(call("slice", {x}, {{"begin", begin}, {"steps", steps}, {"shape", shape}}), axes, values));
  }
  if (std::find(axes.begin(), axes.end(), d) == axes.end()) return concat(sums, d);
  Tensor sum = sums[0];
  for (std::size_t p = 1; p < sums.size(); ++p) sum = add(sum, sums[p]);
  return sum;
}

/// Counts must not wrap.
DType count_type(const Tensor& x) { return x.size() > INT32_MAX ? DType::kInt64 : DType::kInt32; }

std::vector<ir::TensorType> infer_arg(Types in, const Attrs& a) {
  const auto axis = static_cast<int>(a.integer("axis"));
  UNDERTOW_CHECK(in[0].shape[axis] != 0, ValueError, "no position exists along axis {} of shape {}, which is empty",
                 axis, in[0].shape.str());
  const Attrs reduce_attrs{{"axes", std::vector<std::int64_t>{axis}}, {"keep_dims", a.flag("keep_dims")}};
  auto out = infer_reduce(in, reduce_attrs);
  out[0].dtype = DType::kInt64;
  return out;
}

Tensor arg(const char* op, const Tensor& x, std::int64_t axis, bool keep_dims) {
  return call(op, {x}, {{"axis", std::int64_t{normalize_axis(axis, x.ndim(), op)}}, {"keep_dims", keep_dims}});
}

}  // namespace

void register_reduce(ir::OpSet& set) {
  set.add(reduction("reduce_sum", "sum over axes", ir::ReduceOp::kSum, reference::reduce_sum, [](const GradContext& c) {
    return Grads{broadcast_to(with_axes(c.grads[0], c), c.inputs[0].shape())};
  }));
  set.add(detail::in_float32(
      reduction("reduce_prod", "product over axes", ir::ReduceOp::kProd, reference::reduce_prod, prod_grad)));
  set.add(reduction("reduce_max", "maximum over axes; NaN wins", ir::ReduceOp::kMax, reference::reduce_max,
                    extremum_grad, false));
  set.add(reduction("reduce_min", "minimum over axes; NaN wins", ir::ReduceOp::kMin, reference::reduce_min,
                    extremum_grad, false));
  for (const bool max : {true, false}) {
    ir::OpDef def;
    def.name = max ? "argmax" : "argmin";
    def.inputs = {"x"};
    def.doc = "position of the first extremum along an axis; NaN wins";
    def.defaults = {{"axis", std::int64_t{-1}}, {"keep_dims", false}};
    def.infer = infer_arg;
    def.reference = max ? reference::argmax : reference::argmin;
    set.add(std::move(def));
  }
}

Tensor reduce_sum(const Tensor& x, Axes axes, bool keep_dims) {
  axes = resolve(x, std::move(axes), "reduce_sum");
  if (x.dtype() != DType::kBool) return reduce("reduce_sum", x, axes, keep_dims);
  return drop_axes(sum_of(x, axes, [](const Tensor& t) { return cast(t, DType::kInt64); }), axes, keep_dims);
}

Tensor reduce_prod(const Tensor& x, Axes axes, bool keep_dims) {
  return reduce("reduce_prod", x, resolve(x, std::move(axes), "reduce_prod"), keep_dims);
}
Tensor reduce_max(const Tensor& x, Axes axes, bool keep_dims) {
  return reduce("reduce_max", x, resolve(x, std::move(axes), "reduce_max"), keep_dims);
}
Tensor reduce_min(const Tensor& x, Axes axes, bool keep_dims) {
  return reduce("reduce_min", x, resolve(x, std::move(axes), "reduce_min"), keep_dims);
}

Tensor reduce_mean(const Tensor& x, Axes axes, bool keep_dims) {
  axes = resolve(x, std::move(axes), "reduce_mean");
  const DType out = is_floating(x.dtype()) ? x.dtype() : DType::kFloat32;
  double n = 1;
  for (const auto a : axes) n *= static_cast<double>(x.shape(static_cast<int>(a)));
  // A half mean is summed and divided in float32.
  const Tensor sum = sum_of(x, axes, [&](const Tensor& t) { return cast(t, compute_type(out)); });
  const Tensor mean = div(sum, n);  // no elements: 0 / 0 = NaN, as NumPy
  return drop_axes(cast(mean, out), axes, keep_dims);
}

Tensor reduce_var(const Tensor& x, Axes axes, bool keep_dims, int ddof) {
  axes = resolve(x, std::move(axes), "reduce_var");
  const DType out = is_floating(x.dtype()) ? x.dtype() : DType::kFloat32;
  const Tensor t = cast(x, compute_type(out));
  double n = -ddof;
  std::int64_t count = 1;
  for (const auto a : axes) count *= x.shape(static_cast<int>(a));
  n += static_cast<double>(count);
  const Tensor centred = sub(t, reduce_mean(t, axes, true));
  const Tensor var = div(reduce("reduce_sum", square(centred), axes, true), n);
  return drop_axes(cast(var, out), axes, keep_dims);
}

Tensor reduce_all(const Tensor& x, Axes axes, bool keep_dims) {
  axes = resolve(x, std::move(axes), "reduce_all");
  const Tensor fails = sum_of(x, axes, [&](const Tensor& t) { return cast(equal(t, 0), count_type(x)); });
  return drop_axes(equal(fails, 0), axes, keep_dims);
}

Tensor reduce_any(const Tensor& x, Axes axes, bool keep_dims) {
  axes = resolve(x, std::move(axes), "reduce_any");
  const Tensor holds = sum_of(x, axes, [&](const Tensor& t) { return cast(not_equal(t, 0), count_type(x)); });
  return drop_axes(not_equal(holds, 0), axes, keep_dims);
}

Tensor argmax(const Tensor& x, std::int64_t axis, bool keep_dims) { return arg("argmax", x, axis, keep_dims); }
Tensor argmin(const Tensor& x, std::int64_t axis, bool keep_dims) { return arg("argmin", x, axis, keep_dims); }

}  // namespace undertow::ops
