// SPDX-License-Identifier: Apache-2.0
// Pooling of 1 to 3 dimensions on the 2-D primitives. Maxima and means of a box are maxima and means over one axis of
// those over the others, and in the same order of elements: three dimensions are two passes, with the same positions of
// maxima.
#include <algorithm>
#include <cmath>

#include "undertow/ops/dispatch.h"
#include "undertow/ops/nn_common.h"
#include "undertow/ops/window.h"

namespace undertow::ops {
namespace {

struct Window {
  std::int64_t kernel, stride, low, high, dilation;
  std::int64_t over = 0;  // how far the last window reaches past the padding

  std::int64_t reach() const { return (kernel - 1) * dilation + 1; }
};

/// The input as (N, C, spatial...) and its windows, one a spatial dimension.
struct Pooling {
  Tensor x;
  std::vector<Window> windows;
  bool batched;

  Tensor result(const Tensor& y) const { return batched ? y : squeeze(y, {0}); }
};

Pooling prepare(const Tensor& x, const PoolNdOptions& o, const char* what) {
  const int rank = static_cast<int>(o.kernel.size());
  UNDERTOW_CHECK(rank >= 1 && rank <= 3, ValueError, "{}: kernel_size must be 1 to 3 integers, got ({})", what,
                 fmt::join(o.kernel, ", "));
  UNDERTOW_CHECK(x.ndim() == rank + 2 || x.ndim() == rank + 1, ShapeError,
                 "{}: the input must have {} or {} dimensions, but its shape is {}", what, rank + 1, rank + 2,
                 x.shape().str());
  Pooling p{x, {}, x.ndim() == rank + 2};
  if (!p.batched) p.x = expand_dims(x, 0);
  const Ints strides = o.strides.empty() ? o.kernel : spread(o.strides, rank, 1, "stride");
  const Ints pads = spread_pads(o.pads, rank, "padding"), dilations = spread(o.dilations, rank, 1, "dilation");
  for (int d = 0; d < rank; ++d) {
    const auto i = static_cast<std::size_t>(d);
    Window w{o.kernel[i], strides[i], pads[2 * i], pads[2 * i + 1], dilations[i]};
    UNDERTOW_CHECK(w.kernel > 0 && w.stride > 0 && w.dilation > 0, ValueError,
                   "{}: kernel_size, stride and dilation must be positive, got ({}), ({}) and ({})", what,
                   fmt::join(o.kernel, ", "), fmt::join(strides, ", "), fmt::join(dilations, ", "));
    UNDERTOW_CHECK(std::max(w.low, w.high) <= w.reach() / 2, ValueError,
                   "{}: padding must be at most half the window of {}, got ({})", what, w.reach(),
                   fmt::join(pads, ", "));
    const std::int64_t n = p.x.shape(2 + d), room = n + w.low + w.high - w.reach();
    UNDERTOW_CHECK(room >= 0 || (o.ceil_mode && room > -w.stride && n > 0), ShapeError,
                   "{}: a window of {} does not fit into the {} positions of the input {} with padding ({})", what,
                   w.reach(), n, x.shape().str(), fmt::join(pads, ", "));
    if (o.ceil_mode) {
      std::int64_t out = (std::max<std::int64_t>(room, 0) + w.stride - 1) / w.stride + 1;
      if ((out - 1) * w.stride >= n + w.low) --out;  // no window begins behind the input
      w.over = std::max<std::int64_t>((out - 1) * w.stride - room, 0);
    }
    p.windows.push_back(w);
  }
  return p;
}

ir::Attrs attrs_of(const Window& h, const Window& w) {
  return {{"kernel", Ints{h.kernel, w.kernel}},
          {"strides", Ints{h.stride, w.stride}},
          {"pads", Ints{h.low, h.high + h.over, w.low, w.high + w.over}}};
}

constexpr Window kNone{1, 1, 0, 0, 1};

struct Maxima {
  Tensor values, rows, columns;  // positions in the input
};

/// x (N, C, H, W).
Maxima max2d(const Tensor& x, const Window& h, const Window& w, bool positions) {
  ir::Attrs attrs = attrs_of(h, w);
  attrs.set("dilations", Ints{h.dilation, w.dilation});
  const auto out = apply("max_pool2d", {x}, attrs);
  if (!positions) return {out[0], {}, {}};
  const Tensor offset = cast(out[1], DType::kInt64);
  const auto at = [&](int axis, const Window& window, const Tensor& inside) {
    const Tensor first = sub(mul(iota(offset.shape(), axis, DType::kInt64), window.stride), window.low);
    return add(first, mul(inside, window.dilation));
  };
  return {out[0], at(2, h, floor_div(offset, w.kernel)), at(3, w, floor_mod(offset, w.kernel))};
}

Tensor flat_position(const Maxima& m, std::int64_t width) { return add(mul(m.rows, width), m.columns); }

std::pair<Tensor, Tensor> pool_max(const Tensor& input, const PoolNdOptions& o, bool positions) {
  const Pooling p = prepare(input, o, "max_pool");
  const Tensor& x = p.x;
  const auto finish = [&](const Tensor& y, const Tensor& at) {
    return std::pair(p.result(y), positions ? p.result(at) : Tensor());
  };
  if (p.windows.size() == 1) {
    const Maxima m = max2d(expand_dims(x, 2), kNone, p.windows[0], positions);
    return finish(squeeze(m.values, {2}), positions ? squeeze(m.columns, {2}) : Tensor());
  }
  if (p.windows.size() == 2) {
    const Maxima m = max2d(x, p.windows[0], p.windows[1], positions);
    return finish(m.values, positions ? flat_position(m, x.shape(3)) : Tensor());
  }
  const std::int64_t n = x.shape(0), c = x.shape(1), depth = x.shape(2), height = x.shape(3), width = x.shape(4);
  const Maxima plane = max2d(reshape(x, {n, c * depth, height, width}), p.windows[1], p.windows[2], positions);
  const std::int64_t oh = plane.values.shape(2), ow = plane.values.shape(3);
  const Maxima deep = max2d(reshape(plane.values, {n, c, depth, oh * ow}), p.windows[0], kNone, positions);
  const Ints shape{n, c, deep.values.shape(2), oh, ow};
  if (!positions) return finish(reshape(deep.values, shape), {});
  const Shape s = deep.values.shape();
  const Tensor image = add(mul(iota(s, 0, DType::kInt64), c), iota(s, 1, DType::kInt64));
  const Tensor line = add(mul(image, depth), deep.rows);
  const Tensor inside = gather(reshape(flat_position(plane, width), {n * c * depth * oh * ow}),
                               add(mul(line, oh * ow), iota(s, 3, DType::kInt64)));
  return finish(reshape(deep.values, shape), reshape(add(mul(deep.rows, height * width), inside), shape));
}

/// x (N, C, H, W); a window counts the padding but not what lies beyond it.
Tensor avg2d(Tensor x, const Window& h, const Window& w, bool count_pad, bool whole_window) {
  ir::Attrs attrs = attrs_of(h, w);
  attrs.set("count_include_pad", count_pad || whole_window);
  Tensor y = call("avg_pool2d", {x}, attrs);
  if (!count_pad || whole_window) return y;
  for (int axis = 2; axis < 4; ++axis) {
    const Window& v = axis == 2 ? h : w;
    if (v.over == 0) continue;
    Shape s{1, 1, 1, 1};
    s[axis] = y.shape(axis);
    const Tensor begin = sub(mul(iota(s, axis, DType::kInt64), v.stride), v.low);
    const Tensor count = sub(minimum(add(begin, v.kernel), x.shape(axis) + v.high), begin);
    y = mul(y, div(static_cast<double>(v.kernel), cast(count, y.dtype())));
  }
  return y;
}

/// Where the adaptive windows of one axis begin and end.
struct Adaptive {
  Ints begin, end;
  std::int64_t widest = 0;
  Adaptive(std::int64_t in, std::int64_t out) {
    for (std::int64_t i = 0; i < out; ++i) {
      begin.push_back(i * in / out);
      end.push_back(((i + 1) * in + out - 1) / out);
      widest = std::max(widest, end.back() - begin.back());
    }
  }
  std::int64_t count() const { return static_cast<std::int64_t>(begin.size()); }
};

/// x with `axis` replaced by (window, element); short windows repeat their last element.
Tensor window_elements(const Tensor& x, int axis, const Adaptive& a) {
  Ints at;
  for (std::size_t i = 0; i < a.begin.size(); ++i)
    for (std::int64_t k = 0; k < a.widest; ++k) at.push_back(std::min(a.begin[i] + k, a.end[i] - 1));
  return gather(x, Tensor(at, Shape{a.count(), a.widest}), axis);
}

struct AdaptiveInput {
  Tensor x;
  Ints out;
  bool batched;
};
AdaptiveInput adaptive_input(const Tensor& x, const Ints& sizes, const char* what) {
  const int rank = static_cast<int>(sizes.size());
  UNDERTOW_CHECK(rank >= 1 && rank <= 3 && (x.ndim() == rank + 2 || x.ndim() == rank + 1), ShapeError,
                 "{}: an output_size of {} numbers needs an input of {} or {} dimensions, but its shape is {}", what,
                 rank, rank + 1, rank + 2, x.shape().str());
  AdaptiveInput a{x.ndim() == rank + 2 ? x : expand_dims(x, 0), sizes, x.ndim() == rank + 2};
  for (int d = 0; d < rank; ++d) {
    auto& out = a.out[static_cast<std::size_t>(d)];
    if (out == 0) out = a.x.shape(2 + d);
    UNDERTOW_CHECK(out > 0 && a.x.shape(2 + d) > 0, ValueError,
                   "{}: output_size must be positive (or None, the input's own), got ({}) for an input of shape {}",
                   what, fmt::join(sizes, ", "), x.shape().str());
  }
  return a;
}

/// Equal windows side by side, if the adaptive ones are that.
std::optional<PoolNdOptions> regular(const AdaptiveInput& a) {
  PoolNdOptions o;
  for (std::size_t i = 0; i < a.out.size(); ++i) {
    const std::int64_t in = a.x.shape(2 + static_cast<int>(i));
    if (in % a.out[i] != 0) return std::nullopt;
    o.kernel.push_back(in / a.out[i]);
  }
  return o;
}

}  // namespace

Tensor max_pool(const Tensor& x, const PoolNdOptions& options) { return pool_max(x, options, false).first; }

std::pair<Tensor, Tensor> max_pool_positions(const Tensor& x, const PoolNdOptions& options) {
  return pool_max(x, options, true);
}

Tensor avg_pool(const Tensor& input, const PoolNdOptions& o) {
  UNDERTOW_CHECK(!o.divisor || *o.divisor != 0, ValueError, "avg_pool: divisor_override must not be 0");
  const Pooling p = prepare(cast(input, float_type(input.dtype())), o, "avg_pool");
  const Tensor& x = p.x;
  const int rank = static_cast<int>(p.windows.size());
  std::int64_t area = 1;
  bool global = true;
  Axes axes;
  for (int d = 0; d < rank; ++d) {
    const Window& w = p.windows[static_cast<std::size_t>(d)];
    area *= w.kernel;
    axes.push_back(2 + d);
    global = global && w.kernel == x.shape(2 + d) && w.low == 0 && w.high == 0 && w.over == 0;
  }
  const double scale = o.divisor ? static_cast<double>(area) / static_cast<double>(*o.divisor) : 1;
  const auto finish = [&](const Tensor& y) { return p.result(scale == 1 ? y : mul(y, scale)); };
  if (global) return finish(reduce_mean(x, axes, true));
  const auto mean = [&](const Tensor& t, const Window& h, const Window& w) {
    return avg2d(t, h, w, o.count_include_pad, o.divisor.has_value());
  };
  if (rank == 1) return finish(squeeze(mean(expand_dims(x, 2), kNone, p.windows[0]), {2}));
  if (rank == 2) return finish(mean(x, p.windows[0], p.windows[1]));
  const std::int64_t n = x.shape(0), c = x.shape(1), depth = x.shape(2);
  const Tensor plane = mean(reshape(x, {n, c * depth, x.shape(3), x.shape(4)}), p.windows[1], p.windows[2]);
  const std::int64_t oh = plane.shape(2), ow = plane.shape(3);
  const Tensor deep = mean(reshape(plane, {n, c, depth, oh * ow}), p.windows[0], kNone);
  return finish(reshape(deep, {n, c, deep.shape(2), oh, ow}));
}

Tensor lp_pool(const Tensor& x, double norm_type, const PoolNdOptions& options) {
  UNDERTOW_CHECK(norm_type != 0, ValueError, "lp_pool: norm_type must not be 0");
  double area = 1;
  for (const auto k : options.kernel) area *= static_cast<double>(k);
  const Tensor sum = mul(avg_pool(pow(x, norm_type), options), area);
  return pow(mul(sign(sum), relu(abs(sum))), 1 / norm_type);
}

Tensor adaptive_avg_pool(const Tensor& x, const Ints& output_size) {
  const AdaptiveInput a = adaptive_input(cast(x, float_type(x.dtype())), output_size, "adaptive_avg_pool");
  Tensor y = a.x;
  if (const auto o = regular(a)) {
    y = avg_pool(y, *o);
  } else {
    y = in_compute_type(y, [&](Tensor t) {
      for (int axis = 2; axis < a.x.ndim(); ++axis) {
        const Adaptive w(t.shape(axis), a.out[static_cast<std::size_t>(axis - 2)]);
        const Shape spread_shape{w.count(), w.widest};
        std::vector<double> share;  // of each element; what is repeated counts nothing
        for (std::size_t i = 0; i < w.begin.size(); ++i)
          for (std::int64_t k = 0; k < w.widest; ++k) {
            const std::int64_t n = w.end[i] - w.begin[i];
            share.push_back(k < n ? 1.0 / static_cast<double>(n) : 0);
          }
        Ints shape{w.count(), w.widest};
        shape.resize(shape.size() + static_cast<std::size_t>(t.ndim() - axis - 1), 1);
        const Tensor weight = reshape(cast(Tensor(share, spread_shape), t.dtype()), shape);
        const Tensor elements = window_elements(t, axis, w);
        t = reduce_sum(select(equal(weight, 0.0), 0.0, mul(elements, weight)), {axis + 1});
      }
      return t;
    });
  }
  return a.batched ? y : squeeze(y, {0});
}

Tensor adaptive_max_pool(const Tensor& x, const Ints& output_size) {
  const AdaptiveInput a = adaptive_input(x, output_size, "adaptive_max_pool");
  Tensor y = a.x;
  if (const auto o = regular(a)) {
    y = max_pool(y, *o);
  } else {
    for (int axis = 2; axis < a.x.ndim(); ++axis) {
      const Adaptive w(y.shape(axis), a.out[static_cast<std::size_t>(axis - 2)]);
      y = reduce_max(window_elements(y, axis, w), {axis + 1});
    }
  }
  return a.batched ? y : squeeze(y, {0});
}

std::pair<Tensor, Tensor> adaptive_max_pool_positions(const Tensor& x, const Ints& output_size) {
  const AdaptiveInput a = adaptive_input(x, output_size, "adaptive_max_pool");
  const int rank = a.x.ndim() - 2;
  Tensor y = a.x;
  std::vector<Adaptive> windows;
  for (int d = 0; d < rank; ++d) {
    windows.emplace_back(a.x.shape(2 + d), a.out[static_cast<std::size_t>(d)]);
    y = window_elements(y, 2 + 2 * d, windows.back());
  }
  // (N, C, out, window, out, window, ...) -> (N, C, out..., elements)
  Ints perm{0, 1}, shape{a.x.shape(0), a.x.shape(1)};
  for (int d = 0; d < rank; ++d) perm.push_back(2 + 2 * d);
  for (int d = 0; d < rank; ++d) perm.push_back(3 + 2 * d);
  shape.insert(shape.end(), a.out.begin(), a.out.end());
  std::int64_t elements = 1;
  for (const Adaptive& w : windows) elements *= w.widest;
  shape.push_back(elements);
  y = reshape(transpose(y, perm), shape);
  Tensor rest = argmax(y, -1), position;
  for (int d = rank - 1; d >= 0; --d) {
    const Adaptive& w = windows[static_cast<std::size_t>(d)];
    std::int64_t inner = 1;
    for (int e = d + 1; e < rank; ++e) inner *= a.x.shape(2 + e);
    Ints along(static_cast<std::size_t>(rank), 1);
    along[static_cast<std::size_t>(d)] = w.count();
    const Tensor begin = reshape(Tensor(w.begin), along);
    // A repeated element stands behind the one it repeats, so the first maximum is a real one.
    const Tensor at = mul(add(begin, floor_mod(rest, w.widest)), inner);
    position = position.defined() ? add(position, at) : at;
    rest = floor_div(rest, w.widest);
  }
  const Tensor values = reduce_max(y, {-1});
  return {a.batched ? values : squeeze(values, {0}), a.batched ? position : squeeze(position, {0})};
}

Tensor max_unpool(const Tensor& x, const Tensor& positions, const Ints& output_size) {
  const int rank = static_cast<int>(output_size.size()), outer_rank = x.ndim() - rank;
  UNDERTOW_CHECK(x.shape() == positions.shape() && (outer_rank == 1 || outer_rank == 2), ShapeError,
                 "max_unpool: the input and its indices must have the same shape of {} or {} dimensions, but they are "
                 "{} and {}",
                 rank + 1, rank + 2, x.shape().str(), positions.shape().str());
  UNDERTOW_CHECK(is_integral(positions.dtype()), TypeError, "max_unpool: indices must be integers, got {}",
                 name_of(positions.dtype()));
  std::int64_t plane = 1, outer = 1;
  Ints shape;
  for (int d = 0; d < outer_rank; ++d) outer *= x.shape(d), shape.push_back(x.shape(d));
  for (const auto n : output_size) plane *= n, shape.push_back(n);
  const std::int64_t inner = outer == 0 ? 0 : x.size() / outer;
  apply("check_index", {positions}, {{"low", std::int64_t{0}}, {"high", plane}});
  const Tensor flat = reshape(cast(positions, DType::kInt64), {outer, inner});
  const Tensor at = reshape(add(mul(iota(flat.shape(), 0, DType::kInt64), plane), flat), {outer * inner});
  const Ints all{outer * plane};
  const auto scatter = [&](const Tensor& t) {
    return call("scatter_add", {t, at}, {{"axis", std::int64_t{0}}, {"input_shape", all}});
  };
  // Windows that overlap put the same maximum at the same position; it counts once.
  const Tensor values = reshape(x, {outer * inner});
  const Tensor times = scatter(ones_like(stop_gradient(values)));
  return reshape(div(scatter(values), maximum(times, 1.0)), shape);
}

}  // namespace undertow::ops
