// SPDX-License-Identifier: Apache-2.0
#include "undertow/ops/scatter.h"

#include <algorithm>
#include <limits>

#include "undertow/base/check.h"
#include "undertow/ops/dispatch.h"
#include "undertow/ops/reference/reference.h"
#include "undertow/ops/register.h"

namespace undertow::ops {

using ir::Attrs;
using ir::GradContext;
using Grads = std::vector<Tensor>;
using Ints = std::vector<std::int64_t>;
using Types = std::span<const ir::TensorType>;

namespace {

constexpr std::string_view kModes[] = {"update", "add", "sub", "mul", "div", "max", "min"};

/// Whether each update is the one that stays where several are written to one place.
Tensor stays(const GradContext& c) {
  const std::int64_t n = c.inputs[1].size();
  const Tensor order = arange(n);
  const Tensor winner = scatter(full(Shape{c.inputs[0].shape(0)}, -1, DType::kInt64), c.inputs[1], order);
  return equal(gather(winner, c.inputs[1]), order);
}

Tensor per_row(const Tensor& flags, const Tensor& like) {  // [n] seen as [n, 1, ...]
  Ints s(static_cast<std::size_t>(like.ndim()), 1);
  s[0] = flags.size();
  return reshape(flags, s);
}

Grads scatter_grad(const GradContext& c) {
  const std::string& mode = c.attrs.text("mode");
  const Tensor &x = c.inputs[0], &index = c.inputs[1], &updates = c.inputs[2], &g = c.grads[0];
  if (mode == "update") {
    const Tensor kept = scatter(g, index, zeros_like(updates));
    return {kept, Tensor(), c.needs[2] ? select(per_row(stays(c), updates), gather(g, index), 0.0) : Tensor()};
  }
  if (mode == "add") return {g, Tensor(), gather(g, index)};
  if (mode == "sub") return {g, Tensor(), neg(gather(g, index))};
  if (mode == "max" || mode == "min") {
    // Shared equally among the original and the updates that attain the result.
    const Tensor hit = cast(equal(updates, gather(c.outputs[0], index)), x.dtype());
    const Tensor own = cast(equal(x, c.outputs[0]), x.dtype());
    const Tensor share = div(g, scatter(own, index, hit, 0, "add"));
    return {mul(own, share), Tensor(), mul(hit, gather(share, index))};
  }
  throw ValueError(fmt::format("scatter with mode '{}' has no gradient", mode));
}

std::vector<ir::TensorType> infer_scatter(Types in, const Attrs& a) {
  UNDERTOW_CHECK(is_integral(in[1].dtype), TypeError, "indices must be integers, got {}", name_of(in[1].dtype));
  UNDERTOW_CHECK(in[0].dtype == in[2].dtype, TypeError, "updates are {}, but the tensor is {}", name_of(in[2].dtype),
                 name_of(in[0].dtype));
  bool fits = in[1].shape.rank() == 1 && in[0].shape.rank() >= 1 && in[2].shape.rank() == in[0].shape.rank() &&
              in[2].shape[0] == in[1].shape[0];
  for (int d = 1; fits && d < in[0].shape.rank(); ++d) fits = in[2].shape[d] == in[0].shape[d];
  UNDERTOW_CHECK(fits, ShapeError, "updates of shape {} do not fit {} indices into shape {}", in[2].shape.str(),
                 in[1].shape.str(), in[0].shape.str());
  UNDERTOW_CHECK(std::find(std::begin(kModes), std::end(kModes), a.text("mode")) != std::end(kModes), ValueError,
                 "mode must be one of {}, got '{}'", fmt::join(kModes, ", "), a.text("mode"));
  return {in[0]};
}

/// Positions within [-n, n) as positions within [0, n); an error on the device for others.
Tensor wrapped(const Tensor& index, std::int64_t n) {
  UNDERTOW_CHECK(is_integral(index.dtype()), TypeError, "indices must be integers, got {}", name_of(index.dtype()));
  apply("check_index", {index}, {{"low", -n}, {"high", n}});
  const Tensor wide = cast(index, DType::kInt64);
  return select(less(wide, 0), add(wide, n), wide);
}

/// The positions in x's memory that index[...] along `axis` names.
Tensor flat_elements(const Tensor& x, const Tensor& index, int axis, const char* op) {
  UNDERTOW_CHECK(index.ndim() == x.ndim(), ShapeError, "{}: the index {} must have as many dimensions as {}", op,
                 index.shape().str(), x.shape().str());
  const auto strides = contiguous_strides(x.shape());
  Tensor at = mul(wrapped(index, x.shape(axis)), strides[static_cast<std::size_t>(axis)]);
  for (int d = 0; d < x.ndim(); ++d) {
    if (d == axis) continue;
    UNDERTOW_CHECK(index.shape(d) <= x.shape(d), ShapeError,
                   "{}: dimension {} of the index {} is larger than that of {}", op, d, index.shape().str(),
                   x.shape().str());
    if (index.shape(d) > 1)
      at = add(at, mul(iota(index.shape(), d, DType::kInt64), strides[static_cast<std::size_t>(d)]));
  }
  return reshape(at, {-1});
}

Tensor updates_as(const Tensor& updates, const Tensor& x) { return cast(updates, x.dtype()); }

/// Rows of x that the last dimension of `indices` names, as positions into x with its first `k` dimensions joined.
Tensor flat_rows(const Tensor& x, const Tensor& indices, const char* op, std::int64_t& k) {
  UNDERTOW_CHECK(indices.ndim() >= 1, ShapeError, "{}: indices need at least one dimension", op);
  k = indices.shape(-1);
  UNDERTOW_CHECK(k >= 1 && k <= x.ndim(), ShapeError,
                 "{}: the last dimension of indices {} must be from 1 to {}, the dimensions of {}", op,
                 indices.shape().str(), x.ndim(), x.shape().str());
  std::int64_t stride = 1;
  Tensor at;
  for (auto d = static_cast<int>(k) - 1; d >= 0; --d) {
    Ints begin(static_cast<std::size_t>(indices.ndim()), 0), steps(begin.size(), 1);
    begin.back() = d;
    Shape s = indices.shape();
    s[s.rank() - 1] = 1;
    const Tensor column = mul(wrapped(reshape(slice(indices, begin, steps, s), {-1}), x.shape(d)), stride);
    at = at.defined() ? add(at, column) : column;
    stride *= x.shape(d);
  }
  return at;
}

Shape join_rows(const Tensor& x, std::int64_t k) {
  Shape s{1};
  for (int d = 0; d < x.ndim(); ++d)
    if (d < k) s[0] *= x.shape(d);
    else s.push_back(x.shape(d));
  return s;
}

Shape rows_shape(const Tensor& x, const Tensor& indices, std::int64_t k) {
  Shape s;
  for (int d = 0; d + 1 < indices.ndim(); ++d) s.push_back(indices.shape(d));
  for (auto d = static_cast<int>(k); d < x.ndim(); ++d) s.push_back(x.shape(d));
  return s;
}

}  // namespace

void register_scatter(ir::OpSet& set) {
  ir::OpDef def;
  def.name = "scatter";
  def.num_inputs = 3;
  def.inputs = {"x", "indices", "updates"};
  def.doc = "x with rows (of its first dimension) met by updates, in order";
  def.defaults = {{"mode", std::string("update")}};
  def.effect = true;
  def.infer = infer_scatter;
  def.grad = scatter_grad;
  def.reference = reference::scatter;
  set.add(std::move(def));

  ir::OpDef box;
  box.name = "slice_update";
  box.num_inputs = 2;
  box.inputs = {"x", "update"};
  box.doc = "x with x[begin + i * steps] replaced";
  box.infer = [](Types in, const Attrs&) {
    UNDERTOW_CHECK(in[0].dtype == in[1].dtype, TypeError, "the update is {}, but the tensor is {}",
                   name_of(in[1].dtype), name_of(in[0].dtype));
    return std::vector{in[0]};
  };
  box.grad = [](const GradContext& c) {
    const Ints &begin = c.attrs.ints("begin"), &steps = c.attrs.ints("steps");
    return Grads{slice_update(c.grads[0], zeros_like(c.inputs[1]), begin, steps),
                 slice(c.grads[0], begin, steps, c.inputs[1].shape())};
  };
  box.reference = reference::slice_update;
  set.add(std::move(box));
}

Tensor scatter(const Tensor& x, const Tensor& indices, const Tensor& updates, std::int64_t axis, ScatterMode mode) {
  const int a = normalize_axis(axis, x.ndim(), "scatter");
  if (a != 0) return swapaxes(scatter(swapaxes(x, 0, a), indices, swapaxes(updates, 0, a), 0, mode), 0, a);
  Ints flat{indices.size()};
  for (int d = 1; d < x.ndim(); ++d) flat.push_back(x.shape(d));
  Shape expected = indices.shape();
  for (int d = 1; d < x.ndim(); ++d) expected.push_back(x.shape(d));
  UNDERTOW_CHECK(updates.shape() == expected, ShapeError, "scatter: updates must have shape {}, got {}", expected.str(),
                 updates.shape().str());
  const bool narrow = is_integral(indices.dtype()) && size_of(indices.dtype()) < 4;
  return call(
      "scatter",
      {x, reshape(narrow ? cast(indices, DType::kInt32) : indices, {-1}), reshape(updates_as(updates, x), flat)},
      {{"mode", std::string(mode)}});
}

Tensor slice_update(const Tensor& x, const Tensor& update, Ints begin, Ints steps) {
  if (update.size() == 0) return x;
  if (update.shape() == x.shape() && std::all_of(steps.begin(), steps.end(), [](auto s) { return s == 1; }))
    return copy(updates_as(update, x));  // a tensor of its own
  return call("slice_update", {x, updates_as(update, x)}, {{"begin", std::move(begin)}, {"steps", std::move(steps)}});
}

Tensor gather_elements(const Tensor& x, const Tensor& index, std::int64_t axis) {
  if (x.ndim() == 0) return reshape(gather_elements(reshape(x, {1}), reshape(index, {-1}), axis), {});
  const int a = normalize_axis(axis, x.ndim(), "gather_elements");
  return reshape(gather(reshape(x, {-1}), flat_elements(x, index, a, "gather_elements")), index.shape().to_vector());
}

Tensor scatter_elements(const Tensor& x, const Tensor& index, const Tensor& updates, std::int64_t axis,
                        ScatterMode mode) {
  const int a = normalize_axis(axis, x.ndim(), "scatter_elements");
  UNDERTOW_CHECK(updates.ndim() == 0 || updates.shape() == index.shape(), ShapeError,
                 "scatter_elements: updates must have the index's shape {}, got {}", index.shape().str(),
                 updates.shape().str());
  const Tensor u = broadcast_to(updates_as(updates, x), index.shape());
  const Tensor y = scatter(reshape(x, {-1}), flat_elements(x, index, a, "scatter_elements"), reshape(u, {-1}), 0, mode);
  return reshape(y, x.shape().to_vector());
}

Tensor gather_nd(const Tensor& x, const Tensor& indices) {
  std::int64_t k = 0;
  const Tensor rows = flat_rows(x, indices, "gather_nd", k);
  return reshape(gather(reshape(x, join_rows(x, k).to_vector()), rows), rows_shape(x, indices, k).to_vector());
}

Tensor scatter_nd(const Tensor& x, const Tensor& indices, const Tensor& updates, ScatterMode mode) {
  std::int64_t k = 0;
  const Tensor rows = flat_rows(x, indices, "scatter_nd", k);
  const Shape expected = rows_shape(x, indices, k);
  UNDERTOW_CHECK(updates.shape() == expected, ShapeError, "scatter_nd: updates must have shape {}, got {}",
                 expected.str(), updates.shape().str());
  const Shape joined = join_rows(x, k);
  Ints flat{rows.size()};
  for (int d = 1; d < joined.rank(); ++d) flat.push_back(joined[d]);
  const Tensor y = scatter(reshape(x, joined.to_vector()), rows, reshape(updates, flat), 0, mode);
  return reshape(y, x.shape().to_vector());
}

Tensor segment_reduce(const Tensor& x, const Tensor& segment_ids, std::int64_t num_segments, ScatterMode mode) {
  UNDERTOW_CHECK(num_segments > 0, ValueError, "the number of segments must be positive, got {}", num_segments);
  const int lead = segment_ids.ndim();
  bool fits = lead >= 1 && lead <= x.ndim();
  for (int d = 0; fits && d < lead; ++d) fits = segment_ids.shape(d) == x.shape(d);
  UNDERTOW_CHECK(fits, ShapeError, "the shape of segment_ids {} must begin the shape of the tensor {}",
                 segment_ids.shape().str(), x.shape().str());
  const Tensor ids = reshape(segment_ids, {-1});
  apply("check_index", {ids}, {{"low", std::numeric_limits<std::int64_t>::min()}, {"high", num_segments}});
  // One row more takes what is dropped.
  const Tensor wide = cast(ids, DType::kInt64), kept = select(less(wide, 0), num_segments, wide);
  const Tensor rows = reshape(x, join_rows(x, lead).to_vector());
  Shape s = rows.shape();
  s[0] = num_segments + 1;
  double start = mode == "mul" ? 1 : 0;
  if (mode == "max" || mode == "min") {
    UNDERTOW_CHECK(is_floating(x.dtype()) || x.dtype() == DType::kInt32 || x.dtype() == DType::kInt64, TypeError,
                   "segment maxima and minima take floats, int32 and int64, got {}", name_of(x.dtype()));
    const double top = is_floating(x.dtype())       ? std::numeric_limits<double>::infinity()
                       : x.dtype() == DType::kInt32 ? std::numeric_limits<std::int32_t>::max()
                                                    : 0x1p62;
    start = mode == "max" ? -top : top;
  }
  const Tensor y = scatter(full(s, start, x.dtype()), kept, rows, 0, mode);
  Ints begin(static_cast<std::size_t>(s.rank()), 0), steps(begin.size(), 1);
  s[0] = num_segments;
  return slice(y, begin, steps, s);
}

}  // namespace undertow::ops
