// SPDX-License-Identifier: Apache-2.0
// Operators that move or re-read elements.
#include <algorithm>
#include <numeric>

#include "undertow/base/check.h"
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

ir::OpDef movement(std::string name, std::string doc, Attrs defaults, decltype(ir::OpDef::infer) infer,
                   decltype(ir::OpDef::grad) grad, decltype(ir::OpDef::reference) reference) {
  ir::OpDef def;
  def.name = std::move(name);
  def.inputs = {"x"};
  def.doc = std::move(doc);
  def.defaults = std::move(defaults);
  def.infer = std::move(infer);
  def.grad = std::move(grad);
  def.reference = std::move(reference);
  return def;
}

std::vector<ir::TensorType> infer_pad(Types in, const Attrs& a) {
  const auto &low = a.ints("low"), &high = a.ints("high"), &interior = a.ints("interior");
  ir::TensorType out{in[0].dtype, {}};
  for (int d = 0; d < in[0].shape.rank(); ++d) {
    const auto i = static_cast<std::size_t>(d);
    const std::int64_t n = in[0].shape[d];
    out.shape.push_back(low[i] + high[i] + n + (n > 0 ? (n - 1) * interior[i] : 0));
  }
  return {out};
}

/// Gradient of slice: the gradient put back among zeros. Negative steps are flipped first.
Grads slice_grad(const GradContext& c) {
  Ints begin = c.attrs.ints("begin"), steps = c.attrs.ints("steps");
  const Shape in = c.inputs[0].shape();
  Tensor g = c.grads[0];
  const Shape out = g.shape();
  Ints flip_begin(begin.size(), 0), flip_steps(begin.size(), 1), low, high, interior;
  bool flips = false;
  for (std::size_t d = 0; d < begin.size(); ++d) {
    const std::int64_t n = out[static_cast<int>(d)];
    if (steps[d] < 0) {
      flips = true;
      flip_begin[d] = n - 1;
      flip_steps[d] = -1;
      begin[d] += (n - 1) * steps[d];
      steps[d] = -steps[d];
    }
    low.push_back(begin[d]);
    interior.push_back(steps[d] - 1);
    high.push_back(in[static_cast<int>(d)] - begin[d] - (n > 0 ? (n - 1) * steps[d] + 1 : 0));
  }
  if (out.numel() == 0) return {zeros_like(c.inputs[0])};
  if (flips) g = slice(g, flip_begin, flip_steps, out);
  return {call("pad", {g}, {{"low", low}, {"high", high}, {"interior", interior}, {"value", 0.0}})};
}

Grads pad_grad(const GradContext& c) {
  Ints steps;
  for (const auto i : c.attrs.ints("interior")) steps.push_back(i + 1);
  return {slice(c.grads[0], c.attrs.ints("low"), steps, c.inputs[0].shape())};
}

/// Same elements in the same order: affine when only axes of extent 1 come or go.
std::optional<ir::Access> reshape_access(const Attrs&, const Shape& in, const Shape& out) {
  const auto in_strides = contiguous_strides(in);
  ir::Access a;
  int d = 0;
  for (const auto n : out) {
    if (n == 1) {
      a.strides.push_back(0);
      continue;
    }
    while (d < in.rank() && in[d] == 1) ++d;
    if (d == in.rank() || in[d] != n) return std::nullopt;
    a.strides.push_back(in_strides[static_cast<std::size_t>(d++)]);
  }
  return a;
}

std::optional<ir::Access> transpose_access(const Attrs& attrs, const Shape& in, const Shape&) {
  const auto strides = contiguous_strides(in);
  ir::Access a;
  for (const auto p : attrs.ints("perm")) a.strides.push_back(strides[static_cast<std::size_t>(p)]);
  return a;
}

std::optional<ir::Access> broadcast_access(const Attrs&, const Shape& in, const Shape& out) {
  const auto strides = contiguous_strides(in);
  ir::Access a;
  for (int d = 0; d < out.rank(); ++d) {
    const int i = d - (out.rank() - in.rank());
    a.strides.push_back(i < 0 || in[i] == 1 ? 0 : strides[static_cast<std::size_t>(i)]);
  }
  return a;
}

std::optional<ir::Access> slice_access(const Attrs& attrs, const Shape& in, const Shape&) {
  const auto strides = contiguous_strides(in);
  const auto &begin = attrs.ints("begin"), &steps = attrs.ints("steps");
  ir::Access a;
  for (std::size_t d = 0; d < begin.size(); ++d) {
    a.offset += begin[d] * strides[d];
    a.strides.push_back(steps[d] * strides[d]);
  }
  return a;
}

}  // namespace

void register_shape(ir::OpSet& set) {
  auto reshape_def = movement(
      "reshape", "the same elements in another shape", {},
      [](Types in, const Attrs& a) {
        const Shape s(a.ints("shape"));
        UNDERTOW_CHECK(s.numel() == in[0].shape.numel(), ShapeError, "{} elements of shape {} do not fill shape {}",
                       in[0].shape.numel(), in[0].shape.str(), s.str());
        return std::vector{ir::TensorType{in[0].dtype, s}};
      },
      [](const GradContext& c) { return Grads{reshape(c.grads[0], c.inputs[0].shape().to_vector())}; },
      reference::reshape);
  reshape_def.view = true;
  reshape_def.access = reshape_access;
  set.add(std::move(reshape_def));

  auto transpose_def = movement(
      "transpose", "axes in another order", {},
      [](Types in, const Attrs& a) {
        ir::TensorType out{in[0].dtype, {}};
        for (const auto p : a.ints("perm")) out.shape.push_back(in[0].shape[static_cast<int>(p)]);
        return std::vector{out};
      },
      [](const GradContext& c) {
        const Ints& perm = c.attrs.ints("perm");
        Ints inverse(perm.size());
        for (std::size_t i = 0; i < perm.size(); ++i)
          inverse[static_cast<std::size_t>(perm[i])] = static_cast<std::int64_t>(i);
        return Grads{transpose(c.grads[0], inverse)};
      },
      reference::transpose);
  transpose_def.access = transpose_access;
  set.add(std::move(transpose_def));

  auto broadcast_def = movement(
      "broadcast_to", "repeated along new axes and axes of extent 1", {},
      [](Types in, const Attrs& a) {
        const Shape s(a.ints("shape"));
        UNDERTOW_CHECK(broadcast(in[0].shape, s) == s, ShapeError, "shape {} cannot be broadcast to {}",
                       in[0].shape.str(), s.str());
        return std::vector{ir::TensorType{in[0].dtype, s}};
      },
      [](const GradContext& c) { return Grads{c.grads[0]}; },  // summed to the input's shape by the transform
      reference::broadcast_to);
  broadcast_def.access = broadcast_access;
  set.add(std::move(broadcast_def));

  auto slice_def = movement(
      "slice", "y[i] = x[begin + i * steps]", {},
      [](Types in, const Attrs& a) { return std::vector{ir::TensorType{in[0].dtype, Shape(a.ints("shape"))}}; },
      slice_grad, reference::slice);
  slice_def.access = slice_access;
  set.add(std::move(slice_def));

  set.add(movement("pad", "XLA's Pad: low, high and interior padding with one value", {{"value", 0.0}}, infer_pad,
                   pad_grad, reference::pad));

  auto concat_def = movement(
      "concat", "joined along an axis", {{"axis", std::int64_t{0}}},
      [](Types in, const Attrs& a) {
        const auto axis = static_cast<int>(a.integer("axis"));
        ir::TensorType out = in[0];
        for (std::size_t i = 1; i < in.size(); ++i) {
          bool fits = in[i].shape.rank() == out.shape.rank();
          for (int d = 0; fits && d < out.shape.rank(); ++d) fits = d == axis || in[i].shape[d] == out.shape[d];
          UNDERTOW_CHECK(fits, ShapeError, "shapes {} and {} differ outside axis {}", in[0].shape.str(),
                         in[i].shape.str(), axis);
          UNDERTOW_CHECK(in[i].dtype == out.dtype, TypeError, "dtypes {} and {} differ", name_of(out.dtype),
                         name_of(in[i].dtype));
          out.shape[axis] += in[i].shape[axis];
        }
        return std::vector{out};
      },
      [](const GradContext& c) {
        const auto axis = static_cast<int>(c.attrs.integer("axis"));
        Grads out;
        Ints begin(static_cast<std::size_t>(c.grads[0].ndim()), 0);
        const Ints steps(begin.size(), 1);
        for (const auto& x : c.inputs) {
          out.push_back(slice(c.grads[0], begin, steps, x.shape()));
          begin[static_cast<std::size_t>(axis)] += x.shape(axis);
        }
        return out;
      },
      reference::concat);
  concat_def.num_inputs = -1;
  set.add(std::move(concat_def));
}

Tensor reshape(const Tensor& x, Ints shape) {
  std::int64_t known = 1;
  int free = -1;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    UNDERTOW_CHECK(shape[i] >= -1, ShapeError, "reshape: a dimension cannot be {}", shape[i]);
    if (shape[i] == -1) {
      UNDERTOW_CHECK(free < 0, ShapeError, "reshape: only one dimension can be -1, got [{}]", fmt::join(shape, ", "));
      free = static_cast<int>(i);
    } else {
      known *= shape[i];
    }
  }
  if (free >= 0) {
    UNDERTOW_CHECK(known != 0 && x.size() % known == 0, ShapeError,
                   "reshape: {} elements of shape {} cannot be divided into shape [{}]", x.size(), x.shape().str(),
                   fmt::join(shape, ", "));
    shape[static_cast<std::size_t>(free)] = x.size() / known;
  }
  if (Shape(shape) == x.shape()) return x;
  return call("reshape", {x}, {{"shape", std::move(shape)}});
}

Tensor flatten(const Tensor& x, std::int64_t start_dim, std::int64_t end_dim) {
  if (x.ndim() == 0) return reshape(x, {1});
  const int first = normalize_axis(start_dim, x.ndim(), "flatten: start_dim");
  const int last = normalize_axis(end_dim, x.ndim(), "flatten: end_dim");
  UNDERTOW_CHECK(first <= last, ValueError, "flatten: start_dim {} is after end_dim {}", start_dim, end_dim);
  Ints s;
  std::int64_t n = 1;
  for (int d = 0; d < x.ndim(); ++d) {
    if (d < first || d > last) s.push_back(x.shape(d));
    else n *= x.shape(d);
    if (d == last) s.push_back(n);
  }
  return reshape(x, s);
}

Tensor transpose(const Tensor& x, Ints perm) {
  if (perm.empty()) {
    perm.resize(static_cast<std::size_t>(x.ndim()));
    std::iota(perm.rbegin(), perm.rend(), 0);
  }
  UNDERTOW_CHECK(static_cast<int>(perm.size()) == x.ndim(), ValueError,
                 "transpose: {} axes given for a tensor of shape {}", perm.size(), x.shape().str());
  for (auto& p : perm) p = normalize_axis(p, x.ndim(), "transpose");
  Ints sorted = perm;
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t i = 0; i < sorted.size(); ++i)
    UNDERTOW_CHECK(sorted[i] == static_cast<std::int64_t>(i), ValueError, "transpose: [{}] is not an order of the axes",
                   fmt::join(perm, ", "));
  if (std::is_sorted(perm.begin(), perm.end())) return x;
  return call("transpose", {x}, {{"perm", std::move(perm)}});
}

Tensor swapaxes(const Tensor& x, std::int64_t a, std::int64_t b) {
  Ints perm(static_cast<std::size_t>(x.ndim()));
  std::iota(perm.begin(), perm.end(), 0);
  std::swap(perm[static_cast<std::size_t>(normalize_axis(a, x.ndim(), "swapaxes"))],
            perm[static_cast<std::size_t>(normalize_axis(b, x.ndim(), "swapaxes"))]);
  return transpose(x, perm);
}

Tensor expand_dims(const Tensor& x, std::int64_t axis) {
  Ints s = x.shape().to_vector();
  s.insert(s.begin() + normalize_axis(axis, x.ndim() + 1, "expand_dims"), 1);
  return reshape(x, s);
}

Tensor squeeze(const Tensor& x, Axes axes) {
  for (auto& a : axes) {
    a = normalize_axis(a, x.ndim(), "squeeze");
    UNDERTOW_CHECK(x.shape(static_cast<int>(a)) == 1, ValueError, "squeeze: axis {} of shape {} is not 1", a,
                   x.shape().str());
  }
  Ints s;
  for (int d = 0; d < x.ndim(); ++d) {
    const bool drop = axes.empty() ? x.shape(d) == 1 : std::find(axes.begin(), axes.end(), d) != axes.end();
    if (!drop) s.push_back(x.shape(d));
  }
  return reshape(x, s);
}

Tensor broadcast_to(const Tensor& x, const Shape& shape) {
  if (x.shape() == shape) return x;
  return call("broadcast_to", {x}, {{"shape", shape.to_vector()}});
}

Tensor slice(const Tensor& x, Ints begin, Ints steps, const Shape& shape) {
  bool whole = x.shape() == shape;
  for (std::size_t d = 0; d < begin.size(); ++d) whole = whole && begin[d] == 0 && steps[d] == 1;
  if (whole) return x;
  return call("slice", {x}, {{"begin", std::move(begin)}, {"steps", std::move(steps)}, {"shape", shape.to_vector()}});
}

Tensor pad(const Tensor& x, Ints low, Ints high, double value) {
  UNDERTOW_CHECK(static_cast<int>(low.size()) == x.ndim() && low.size() == high.size(), ValueError,
                 "pad: {} low and {} high paddings for shape {}", low.size(), high.size(), x.shape().str());
  for (std::size_t i = 0; i < low.size(); ++i)
    UNDERTOW_CHECK(low[i] >= 0 && high[i] >= 0, ValueError, "pad: paddings cannot be negative");
  return call("pad", {x}, {{"low", low}, {"high", high}, {"interior", Ints(low.size(), 0)}, {"value", value}});
}

Tensor concat(const std::vector<Tensor>& xs, std::int64_t axis) {
  UNDERTOW_CHECK(!xs.empty(), ValueError, "concat: no tensors given");
  DType t = read_type(xs[0]);
  for (const auto& x : xs) t = undertow::promote(t, read_type(x));
  std::vector<Tensor> in;
  for (const auto& x : xs) in.push_back(cast(x, t));
  UNDERTOW_CHECK(xs[0].ndim() > 0, ValueError, "concat: a scalar has no axis to join along; use stack");
  if (in.size() == 1) return in[0];
  return call("concat", std::move(in), {{"axis", std::int64_t{normalize_axis(axis, xs[0].ndim(), "concat")}}});
}

Tensor stack(const std::vector<Tensor>& xs, std::int64_t axis) {
  UNDERTOW_CHECK(!xs.empty(), ValueError, "stack: no tensors given");
  axis = normalize_axis(axis, xs[0].ndim() + 1, "stack");
  std::vector<Tensor> in;
  for (const auto& x : xs) {
    UNDERTOW_CHECK(x.shape() == xs[0].shape(), ShapeError, "stack: shapes {} and {} differ", xs[0].shape().str(),
                   x.shape().str());
    in.push_back(expand_dims(x, axis));
  }
  return concat(in, axis);
}

std::vector<Tensor> split(const Tensor& x, std::int64_t sections, std::int64_t axis) {
  const int a = normalize_axis(axis, x.ndim(), "split");
  UNDERTOW_CHECK(sections > 0 && x.shape(a) % sections == 0, ValueError,
                 "split: axis {} of shape {} cannot be divided into {} equal parts", a, x.shape().str(), sections);
  Ints begin(static_cast<std::size_t>(x.ndim()), 0);
  Shape s = x.shape();
  s[a] /= sections;
  std::vector<Tensor> out;
  for (std::int64_t i = 0; i < sections; ++i) {
    begin[static_cast<std::size_t>(a)] = i * s[a];
    out.push_back(slice(x, begin, Ints(begin.size(), 1), s));
  }
  return out;
}

}  // namespace undertow::ops
