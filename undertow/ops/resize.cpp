// SPDX-License-Identifier: Apache-2.0
// Resizing, one axis after the other: each result is a weighted sum of one, two or four elements, gathered by positions
// that are known when the graph is made. Coordinates are computed in float32, as PyTorch and MindSpore do, and in
// float64 for such inputs.
#include <algorithm>
#include <array>
#include <cmath>

#include "undertow/ops/image.h"
#include "undertow/ops/nn_common.h"
#include "undertow/ops/window.h"

namespace undertow::ops {
namespace {

enum class Kind { kNearest, kNearestExact, kLinear, kCubic };

struct Tap {
  Ints index;
  std::vector<double> weight;
};

struct AxisSize {
  std::int64_t in, out;
  std::optional<double> factor;  // of the coordinates, if they do not follow the sizes
};

template <class Real>
Real scale_of(const AxisSize& a, bool align_corners) {
  if (align_corners) return a.out > 1 ? static_cast<Real>(a.in - 1) / static_cast<Real>(a.out - 1) : 0;
  if (a.factor) return static_cast<Real>(1.0 / *a.factor);
  return static_cast<Real>(a.in) / static_cast<Real>(a.out);
}

template <class Real>
std::vector<Tap> taps_of(const AxisSize& a, Kind kind, const InterpolateOptions& o) {
  const Real scale = scale_of<Real>(a, o.align_corners);
  const auto inside = [&](std::int64_t i) { return std::clamp<std::int64_t>(i, 0, a.in - 1); };
  std::vector<Tap> taps(kind == Kind::kCubic ? 4 : kind == Kind::kLinear ? 2 : 1);
  const auto put = [&](std::size_t tap, std::int64_t index, Real weight) {
    taps[tap].index.push_back(inside(index));
    taps[tap].weight.push_back(weight);
  };
  const bool inner = o.half_pixel && !o.align_corners;  // weights outside of the image count nothing
  const Real A = inner ? Real(-0.5) : Real(-0.75);
  const auto cubic_near = [&](Real t) {  // |t| <= 1
    return ((A + 2) * t - (A + 3)) * t * t + 1;
  };
  const auto cubic_far = [&](Real t) {  // 1 < |t| < 2
    return ((A * t - 5 * A) * t + 8 * A) * t - 4 * A;
  };
  for (std::int64_t i = 0; i < a.out; ++i) {
    const auto at = static_cast<Real>(i);
    if (kind == Kind::kNearest) {
      put(0, static_cast<std::int64_t>(o.align_corners ? std::round(at * scale) : std::floor(at * scale)), 1);
      continue;
    }
    if (kind == Kind::kNearestExact) {
      put(0, static_cast<std::int64_t>(std::floor((at + Real(0.5)) * scale)), 1);
      continue;
    }
    Real from = o.align_corners || !o.half_pixel ? at * scale : (at + Real(0.5)) * scale - Real(0.5);
    if (kind == Kind::kLinear) from = std::max(from, Real(0));
    const Real low = std::floor(from), rest = from - low;
    const auto first = static_cast<std::int64_t>(low);
    if (kind == Kind::kLinear) {
      put(0, first, 1 - rest);
      put(1, first + 1, rest);
    } else {
      std::array<Real, 4> w{cubic_far(rest + 1), cubic_near(rest), cubic_near(1 - rest), cubic_far(2 - rest)};
      Real total = 0;
      for (std::int64_t k = 0; k < 4; ++k) {
        auto& v = w[static_cast<std::size_t>(k)];
        if (inner && inside(first - 1 + k) != first - 1 + k) v = 0;
        total += v;
      }
      for (std::int64_t k = 0; k < 4; ++k)
        put(static_cast<std::size_t>(k), first - 1 + k, w[static_cast<std::size_t>(k)] / (inner ? total : 1));
    }
  }
  std::erase_if(taps, [](const Tap& t) {
    return std::all_of(t.weight.begin(), t.weight.end(), [](double w) { return w == 0; });
  });
  return taps;
}

bool is_identity(const std::vector<Tap>& taps, const AxisSize& a) {
  if (taps.size() != 1 || a.in != a.out) return false;
  for (std::int64_t i = 0; i < a.out; ++i) {
    const auto k = static_cast<std::size_t>(i);
    if (taps[0].index[k] != i || taps[0].weight[k] != 1) return false;
  }
  return true;
}

/// Every element `out / in` times over: no positions to look up.
bool is_repeat(const std::vector<Tap>& taps, const AxisSize& a) {
  if (taps.size() != 1 || a.out % a.in != 0) return false;
  for (std::int64_t i = 0; i < a.out; ++i)
    if (taps[0].index[static_cast<std::size_t>(i)] != i / (a.out / a.in)) return false;
  return true;
}

Tensor resample(const Tensor& x, int axis, const std::vector<Tap>& taps) {
  Tensor sum;
  for (const Tap& t : taps) {
    Tensor part = gather(x, Tensor(t.index), axis);
    if (std::any_of(t.weight.begin(), t.weight.end(), [](double w) { return w != 1; })) {
      Ints shape(static_cast<std::size_t>(x.ndim()), 1);
      shape[static_cast<std::size_t>(axis)] = -1;
      part = mul(part, reshape(cast(Tensor(t.weight), x.dtype()), shape));
    }
    sum = sum.defined() ? add(sum, part) : part;
  }
  return sum;
}

Tensor repeat(const Tensor& x, const std::vector<AxisSize>& sizes) {
  Ints apart{x.shape(0), x.shape(1)}, wide = apart, joined = apart;
  for (const AxisSize& a : sizes) {
    apart.insert(apart.end(), {a.in, 1});
    wide.insert(wide.end(), {a.in, a.out / a.in});
    joined.push_back(a.out);
  }
  return reshape(broadcast_to(reshape(x, apart), Shape(wide)), joined);
}

struct Mode {
  Kind kind;
  int rank;  // spatial dimensions; 0: any
};
std::optional<Mode> mode_of(const std::string& name) {
  if (name == "nearest") return Mode{Kind::kNearest, 0};
  if (name == "nearest-exact") return Mode{Kind::kNearestExact, 0};
  if (name == "linear") return Mode{Kind::kLinear, 1};
  if (name == "bilinear") return Mode{Kind::kLinear, 2};
  if (name == "trilinear") return Mode{Kind::kLinear, 3};
  if (name == "bicubic") return Mode{Kind::kCubic, 2};
  return std::nullopt;
}

}  // namespace

Tensor interpolate(const Tensor& x, const InterpolateOptions& o) {
  const int rank = x.ndim() - 2;
  UNDERTOW_CHECK(
      rank >= 1 && rank <= 3, ShapeError,
      "interpolate: the input must be (N, C, spatial...) with 1 to 3 spatial dimensions, but its shape is {}",
      x.shape().str());
  UNDERTOW_CHECK(o.size.empty() != o.scale_factor.empty(), ValueError,
                 "interpolate: give either size or scale_factor, got size ({}) and scale_factor ({})",
                 fmt::join(o.size, ", "), fmt::join(o.scale_factor, ", "));
  UNDERTOW_CHECK(!o.recompute_scale_factor || o.size.empty(), ValueError,
                 "interpolate: recompute_scale_factor=True needs a scale_factor, but size ({}) is given",
                 fmt::join(o.size, ", "));
  std::vector<AxisSize> sizes;
  const Ints wanted = o.size.empty() ? Ints{} : spread(o.size, rank, 0, "interpolate: size");
  UNDERTOW_CHECK(o.scale_factor.size() <= 1 || static_cast<int>(o.scale_factor.size()) == rank, ValueError,
                 "interpolate: scale_factor must be one number or {}, got ({})", rank, fmt::join(o.scale_factor, ", "));
  for (int d = 0; d < rank; ++d) {
    const auto i = static_cast<std::size_t>(d);
    AxisSize a{x.shape(2 + d), 0, std::nullopt};
    if (o.size.empty()) {
      const double factor = o.scale_factor[o.scale_factor.size() == 1 ? 0 : i];
      a.out = static_cast<std::int64_t>(std::floor(static_cast<double>(a.in) * factor));
      if (!o.recompute_scale_factor) a.factor = factor;
    } else {
      a.out = wanted[i];
    }
    UNDERTOW_CHECK(a.in > 0 && a.out > 0, ValueError,
                   "interpolate: sizes must be positive, but dimension {} goes from {} to {} (input {})", 2 + d, a.in,
                   a.out, x.shape().str());
    sizes.push_back(a);
  }
  if (o.mode == "area") {
    Ints out;
    for (const AxisSize& a : sizes) out.push_back(a.out);
    return adaptive_avg_pool(x, out);
  }
  const auto mode = mode_of(o.mode);
  UNDERTOW_CHECK(
      mode, ValueError,
      "interpolate: mode must be 'nearest', 'nearest-exact', 'linear', 'bilinear', 'trilinear', 'bicubic' or "
      "'area', got '{}'",
      o.mode);
  UNDERTOW_CHECK(mode->rank == 0 || mode->rank == rank, ValueError,
                 "interpolate: mode '{}' is for {} spatial dimensions, but the input has shape {}", o.mode, mode->rank,
                 x.shape().str());
  std::vector<std::vector<Tap>> taps;
  bool repeats = true;
  for (const AxisSize& a : sizes) {
    taps.push_back(x.dtype() == DType::kFloat64 ? taps_of<double>(a, mode->kind, o) : taps_of<float>(a, mode->kind, o));
    repeats = repeats && is_repeat(taps.back(), a);
  }
  const bool moves = mode->kind == Kind::kNearest || mode->kind == Kind::kNearestExact;
  if (moves && repeats) return repeat(x, sizes);
  const auto run = [&](Tensor t) {
    for (int d = 0; d < rank; ++d) {
      const auto i = static_cast<std::size_t>(d);
      if (!is_identity(taps[i], sizes[i])) t = resample(t, 2 + d, taps[i]);
    }
    return t;
  };
  return moves ? run(x) : in_compute_type(x, run);
}

namespace {

/// Brings coordinates into [low, high] by reflection at both ends.
Tensor reflect(const Tensor& x, double low, double high) {
  if (low == high) return zeros_like(x);
  const double span = high - low;
  const Tensor from = abs(sub(x, low));
  const Tensor turns = floor(div(from, span)), rest = sub(from, mul(turns, span));
  return select(equal(floor_mod(turns, 2.0), 0.0), add(rest, low), sub(high, rest));
}

/// Pixel coordinates along an axis of n pixels.
Tensor pixels(const Tensor& grid, std::int64_t n, const std::string& padding_mode, bool align_corners) {
  const double extent = static_cast<double>(n);
  Tensor p = align_corners ? mul(add(grid, 1.0), (extent - 1) / 2) : sub(mul(add(grid, 1.0), extent / 2), 0.5);
  if (padding_mode == "reflection") p = align_corners ? reflect(p, 0, extent - 1) : reflect(p, -0.5, extent - 0.5);
  return padding_mode == "zeros" ? p : clip(p, 0.0, extent - 1);
}

}  // namespace

Tensor grid_sample(const Tensor& x, const Tensor& grid, const std::string& mode, const std::string& padding_mode,
                   bool align_corners) {
  UNDERTOW_CHECK(x.ndim() == 4 && grid.ndim() == 4 && grid.shape(3) == 2 && grid.shape(0) == x.shape(0), ShapeError,
                 "grid_sample: the input must be (N, C, H, W) and the grid (N, oh, ow, 2), got shapes {} and {}",
                 x.shape().str(), grid.shape().str());
  UNDERTOW_CHECK(mode == "bilinear" || mode == "nearest", ValueError,
                 "grid_sample: mode must be 'bilinear' or 'nearest', got '{}'", mode);
  UNDERTOW_CHECK(padding_mode == "zeros" || padding_mode == "border" || padding_mode == "reflection", ValueError,
                 "grid_sample: padding_mode must be 'zeros', 'border' or 'reflection', got '{}'", padding_mode);
  const std::int64_t n = x.shape(0), c = x.shape(1), h = x.shape(2), w = x.shape(3);
  const std::int64_t oh = grid.shape(1), ow = grid.shape(2);
  return in_compute_type(x, [&](const Tensor& t) {
    const Tensor rows = reshape(transpose(t, {0, 2, 3, 1}), {n * h * w, c});
    const auto coordinate = [&](std::int64_t which, std::int64_t extent) {
      const Tensor g = slice(cast(grid, t.dtype()), {0, 0, 0, which}, {1, 1, 1, 1}, Shape{n, oh, ow, 1});
      return pixels(g, extent, padding_mode, align_corners);
    };
    const Tensor px = coordinate(0, w), py = coordinate(1, h);
    const Tensor image = mul(iota(px.shape(), 0, DType::kInt64), h * w);
    const auto at = [&](const Tensor& column, const Tensor& row) {
      const auto within = [](const Tensor& p, std::int64_t extent) {
        return logical_and(greater_equal(p, 0.0), less_equal(p, static_cast<double>(extent - 1)));
      };
      const auto index = [](const Tensor& p, std::int64_t extent) {
        return cast(clip(select(isnan(p), 0.0, p), 0.0, static_cast<double>(extent - 1)), DType::kInt64);
      };
      const Tensor position = add(image, add(mul(index(row, h), w), index(column, w)));
      const Tensor taken = gather(rows, reshape(position, {n, oh, ow}));
      return select(logical_and(within(column, w), within(row, h)), taken, 0.0);
    };
    Tensor y;
    if (mode == "nearest") {
      y = at(round(stop_gradient(px)), round(stop_gradient(py)));
    } else {
      const Tensor left = floor(px), top = floor(py);
      const Tensor right = sub(px, left), bottom = sub(py, top);
      const Tensor l = sub(1.0, right), u = sub(1.0, bottom);
      y = add(add(mul(at(left, top), mul(l, u)), mul(at(add(left, 1.0), top), mul(right, u))),
              add(mul(at(left, add(top, 1.0)), mul(l, bottom)),
                  mul(at(add(left, 1.0), add(top, 1.0)), mul(right, bottom))));
    }
    return transpose(y, {0, 3, 1, 2});
  });
}

}  // namespace undertow::ops
