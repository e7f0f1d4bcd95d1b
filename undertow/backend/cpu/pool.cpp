// SPDX-License-Identifier: Apache-2.0
// 2D pooling in float32 (half types come here widened). A plane or image is one thread's, and every element is computed
// in the order of its window: the bits do not depend on the number of threads.
#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>

#include "undertow/backend/cpu/conv_geometry.h"
#include "undertow/backend/cpu/kernel_list.h"
#include "undertow/backend/cpu/parallel.h"
#include "undertow/backend/cpu/vector.h"

namespace undertow::backend::cpu {
namespace {

constexpr double kNsPerTap = 0.5;

/// The part of a window that lies in the image along one axis, as offsets into the window.
struct Span {
  std::int64_t first, begin, end, dilation;  // input position of offset 0; valid offsets [begin, end)
  Span(std::int64_t out, std::int64_t stride, std::int64_t pad, std::int64_t window, std::int64_t extent,
       std::int64_t step)
      : first(out * stride - pad),
        begin(first < 0 ? (-first + step - 1) / step : 0),
        end(std::max(begin, std::min(window, extent > first ? (extent - first + step - 1) / step : 0))),
        dilation(step) {}
  std::int64_t at(std::int64_t offset) const { return first + offset * dilation; }
};
Span rows_of(const ConvGeometry& g, std::int64_t oh) { return {oh, g.sh, g.top, g.kh, g.h, g.dh}; }
Span columns_of(const ConvGeometry& g, std::int64_t ow) { return {ow, g.sw, g.left, g.kw, g.w, g.dw}; }

struct Average {
  std::int64_t area = 0;  // 0: the elements that are not padding
  float scale(std::int64_t count) const {
    return 1.f / static_cast<float>(area > 0 ? area : std::max<std::int64_t>(count, 1));
  }
};

/// One row of outputs of a plane: eight or four at a time where all their windows lie in the row, else one by one.
/// Blocks may overlap; they compute the same values again.
template <typename Vec8, typename Vec4, typename One>
void for_row(const ConvGeometry& g, Vec8&& vec8, Vec4&& vec4, One&& one) {
  const auto inside = [&](std::int64_t o, int n) {
    return o >= 0 && o * g.sw >= g.left && (o + n - 1) * g.sw - g.left + (g.kw - 1) * g.dw < g.w;
  };
  for (std::int64_t o = 0; o < g.ow;) {
    const std::int64_t left = g.ow - o, o8 = std::min(o, g.ow - 8), o4 = std::min(o, g.ow - 4);
    if (left > 4 && inside(o8, 8)) vec8(o8), o = o8 + 8;
    else if (inside(o4, 4)) vec4(o4), o = o4 + 4;
    else one(o), ++o;
  }
}

/// Whether v takes the place of best: greater, or the first NaN.
bool beats(float v, float best) { return !(v <= best) && best == best; }

/// Calls f with the column stride as a constant: 1, 2, or 0 for any other.
template <typename F>
void with_stride(const ConvGeometry& g, F&& f) {
  if (g.sw == 1) f(std::integral_constant<int, 1>{});
  else if (g.sw == 2) f(std::integral_constant<int, 2>{});
  else f(std::integral_constant<int, 0>{});
}

template <typename V, int Stride>
void max_block(const ConvGeometry& g, const float* x, const Span& rows, std::int64_t o, float* y, std::int32_t* index) {
  const std::int64_t column = o * g.sw - g.left;
  typename V::F best{};
  typename V::I where{};
  bool first = true;
  for (std::int64_t r = rows.begin; r < rows.end; ++r)
    for (std::int64_t s = 0; s < g.kw; ++s) {
      const auto v = V::template load<Stride>(x + rows.at(r) * g.w + column + s * g.dw, g.sw);
      const auto offset = V::set(static_cast<std::int32_t>(r * g.kw + s));
      if (first) best = v, where = offset, first = false;
      else V::take_max(v, offset, best, where);
    }
  V::store(y + o, best);
  V::store(index + o, where);
}

/// 2x2 windows side by side.
bool is_squares(const ConvGeometry& g) {
  return g.kh == 2 && g.kw == 2 && g.dh == 1 && g.dw == 1 && g.sh == 2 && g.sw == 2 && !g.padded() && g.h >= 2 * g.oh &&
         g.w >= 2 * g.ow;
}

void max_plane_squares(const ConvGeometry& g, const float* x, float* y, std::int32_t* index) {
  for (std::int64_t oh = 0; oh < g.oh; ++oh, y += g.ow, index += g.ow) {
    const float *top = x + 2 * oh * g.w, *bottom = top + g.w;
    for_row(
        g, [&](std::int64_t o) { V8::max_squares(top + 2 * o, bottom + 2 * o, y + o, index + o); },
        [&](std::int64_t o) { V4::max_squares(top + 2 * o, bottom + 2 * o, y + o, index + o); },
        [&](std::int64_t o) {
          float best = top[2 * o];
          std::int32_t where = 0;
          for (std::int32_t i = 1; i < 4; ++i)
            if (const float v = (i < 2 ? top : bottom)[2 * o + i % 2]; beats(v, best)) best = v, where = i;
          y[o] = best;
          index[o] = where;
        });
  }
}

void max_plane(const ConvGeometry& g, const float* x, float* y, std::int32_t* index) {
  for (std::int64_t oh = 0; oh < g.oh; ++oh, y += g.ow, index += g.ow) {
    const Span rows = rows_of(g, oh);
    const auto one = [&](std::int64_t o) {
      const Span columns = columns_of(g, o);
      float best = -std::numeric_limits<float>::infinity();
      std::int32_t where = -1;
      for (std::int64_t r = rows.begin; r < rows.end; ++r)
        for (std::int64_t s = columns.begin; s < columns.end; ++s) {
          const float v = x[rows.at(r) * g.w + columns.at(s)];
          if (where < 0 || beats(v, best)) best = v, where = static_cast<std::int32_t>(r * g.kw + s);
        }
      y[o] = best;
      index[o] = where;
    };
    if (rows.begin >= rows.end) {
      for (std::int64_t o = 0; o < g.ow; ++o) one(o);
      continue;
    }
    with_stride(g, [&](auto stride) {
      for_row(
          g, [&](std::int64_t o) { max_block<V8, stride.value>(g, x, rows, o, y, index); },
          [&](std::int64_t o) { max_block<V4, stride.value>(g, x, rows, o, y, index); }, one);
    });
  }
}

/// One output row of an NHWC image; the channels are the vectors.
void max_row_nhwc(const ConvGeometry& g, const float* x, std::int64_t oh, float* y, std::int32_t* index) {
  const Span rows = rows_of(g, oh);
  for (std::int64_t o = 0; o < g.ow; ++o, y += g.c, index += g.c) {
    const Span columns = columns_of(g, o);
    const bool empty = rows.begin >= rows.end || columns.begin >= columns.end;
    // f(pointer to the pixel, window offset) for every tap; the first one starts the maximum.
    const auto taps = [&](auto&& f) {
      for (std::int64_t r = rows.begin; r < rows.end; ++r)
        for (std::int64_t s = columns.begin; s < columns.end; ++s)
          f(x + (rows.at(r) * g.w + columns.at(s)) * g.c, static_cast<std::int32_t>(r * g.kw + s));
    };
    std::int64_t c = 0;
    for (; !empty && c + 8 <= g.c; c += 8) {
      V8::F best = V8::load<1>(x + (rows.at(rows.begin) * g.w + columns.at(columns.begin)) * g.c + c, 1);
      V8::I where = V8::set(static_cast<std::int32_t>(rows.begin * g.kw + columns.begin));
      taps([&](const float* p, std::int32_t offset) {
        V8::take_max(V8::load<1>(p + c, 1), V8::set(offset), best, where);
      });
      V8::store(y + c, best);
      V8::store(index + c, where);
    }
    for (; c < g.c; ++c) {
      float best = -std::numeric_limits<float>::infinity();
      std::int32_t where = -1;
      taps([&](const float* p, std::int32_t offset) {
        if (where < 0 || beats(p[c], best)) best = p[c], where = offset;
      });
      y[c] = best;
      index[c] = where;
    }
  }
}

/// Each output's four inputs are written once.
void max_grad_plane_squares(const ConvGeometry& g, const float* dy, const std::int32_t* index, float* dx) {
  if (g.h != 2 * g.oh || g.w != 2 * g.ow) std::memset(dx, 0, static_cast<std::size_t>(g.h * g.w) * sizeof(float));
  for (std::int64_t oh = 0; oh < g.oh; ++oh, dy += g.ow, index += g.ow) {
    float *top = dx + 2 * oh * g.w, *bottom = top + g.w;
    for_row(
        g, [&](std::int64_t o) { V8::spread(dy + o, index + o, top + 2 * o, bottom + 2 * o); },
        [&](std::int64_t o) { V4::spread(dy + o, index + o, top + 2 * o, bottom + 2 * o); },
        [&](std::int64_t o) {
          for (int i = 0; i < 4; ++i) (i < 2 ? top : bottom)[2 * o + i % 2] = index[o] == i ? dy[o] : 0.f;
        });
  }
}

void max_grad_plane(const ConvGeometry& g, const float* dy, const std::int32_t* index, float* dx) {
  const std::int64_t area = g.h * g.w;
  std::memset(dx, 0, static_cast<std::size_t>(area) * sizeof(float));
  const auto kw = static_cast<std::uint32_t>(g.kw), taps = static_cast<std::uint32_t>(g.kh * g.kw);
  for (std::int64_t oh = 0; oh < g.oh; ++oh)
    for (std::int64_t o = 0; o < g.ow; ++o, ++dy, ++index) {
      const auto offset = static_cast<std::uint32_t>(*index);
      if (offset >= taps) continue;  // the window was all padding
      const std::int64_t at = (oh * g.sh - g.top + offset / kw * g.dh) * g.w + o * g.sw - g.left + offset % kw * g.dw;
      if (static_cast<std::uint64_t>(at) < static_cast<std::uint64_t>(area)) dx[at] += *dy;
    }
}

/// Calls f(window offset, input position, output position) for every element of every window of an image.
template <typename F>
void for_each_tap(const ConvGeometry& g, F&& f) {
  for (std::int64_t oh = 0; oh < g.oh; ++oh) {
    const Span rows = rows_of(g, oh);
    for (std::int64_t o = 0; o < g.ow; ++o) {
      const Span columns = columns_of(g, o);
      const std::int64_t count = (rows.end - rows.begin) * (columns.end - columns.begin);
      for (std::int64_t r = rows.begin; r < rows.end; ++r)
        for (std::int64_t s = columns.begin; s < columns.end; ++s)
          f(static_cast<std::int32_t>(r * g.kw + s), rows.at(r) * g.w + columns.at(s), oh * g.ow + o, count);
    }
  }
}

/// The gradient of a plane: each row of dy is spread over one row of the input, which is then added to all rows that
/// its windows cover. `row` holds g.w floats.
void average_grad_plane(const ConvGeometry& g, Average average, const float* dy, float* dx, float* row) {
  std::memset(dx, 0, static_cast<std::size_t>(g.h * g.w) * sizeof(float));
  for (std::int64_t oh = 0; oh < g.oh; ++oh, dy += g.ow) {
    const Span rows = rows_of(g, oh);
    std::fill_n(row, g.w, 0.f);
    const float whole = average.scale((rows.end - rows.begin) * g.kw);
    for (std::int64_t o = 0; o < g.ow; ++o) {
      const Span columns = columns_of(g, o);
      const bool clipped = columns.end - columns.begin < g.kw;
      const float v =
          dy[o] * (clipped ? average.scale((rows.end - rows.begin) * (columns.end - columns.begin)) : whole);
      for (std::int64_t s = columns.begin; s < columns.end; ++s) row[columns.at(s)] += v;
    }
    for (std::int64_t r = rows.begin; r < rows.end; ++r) {
      float* to = dx + rows.at(r) * g.w;
      for (std::int64_t i = 0; i < g.w; ++i) to[i] += row[i];
    }
  }
}

template <typename V, int Stride>
void average_block(const ConvGeometry& g, const float* x, const Span& rows, std::int64_t o, float* y, float scale) {
  auto sum = V::zero();
  for (std::int64_t r = rows.begin; r < rows.end; ++r)
    for (std::int64_t s = 0; s < g.kw; ++s)
      sum = V::add(sum, V::template load<Stride>(x + rows.at(r) * g.w + o * g.sw - g.left + s, g.sw));
  V::store(y + o, V::times(sum, scale));
}

void average_plane(const ConvGeometry& g, Average average, const float* x, float* y) {
  for (std::int64_t oh = 0; oh < g.oh; ++oh, y += g.ow) {
    const Span rows = rows_of(g, oh);
    const float scale = average.scale((rows.end - rows.begin) * g.kw);
    const auto one = [&](std::int64_t o) {
      const Span columns = columns_of(g, o);
      float sum = 0;
      for (std::int64_t r = rows.begin; r < rows.end; ++r)
        for (std::int64_t s = columns.begin; s < columns.end; ++s) sum += x[rows.at(r) * g.w + columns.at(s)];
      y[o] = sum * average.scale((rows.end - rows.begin) * (columns.end - columns.begin));
    };
    with_stride(g, [&](auto stride) {
      for_row(
          g, [&](std::int64_t o) { average_block<V8, stride.value>(g, x, rows, o, y, scale); },
          [&](std::int64_t o) { average_block<V4, stride.value>(g, x, rows, o, y, scale); }, one);
    });
  }
}

Average average_of(const NodeView& node, const ConvGeometry& g) {
  return {node.flag("count_include_pad") ? g.kh * g.kw : 0};
}

double taps_cost(const ConvGeometry& g) {
  return static_cast<double>(g.n * g.c * g.oh * g.ow) * static_cast<double>(g.kh * g.kw) * kNsPerTap / 4 +
         static_cast<double>(g.n * g.c * g.h * g.w) * 0.1;
}

Choice float32_only() { return Choice::decline("float32 only"); }

}  // namespace

Choice max_pool2d(const NodeView& node) {
  if (node.in[0].dtype != DType::kFloat32) return float32_only();
  const ConvGeometry g = pool_geometry(node, node.in[0].shape, node.out[0].shape);
  return Choice::run(g.nhwc ? "direct:max_pool2d nhwc" : "direct:max_pool2d", [g](void* const* args, ir::StepError*) {
    const auto* x = static_cast<const float*>(args[0]);
    auto* y = static_cast<float*>(args[1]);
    auto* index = static_cast<std::int32_t*>(args[2]);
    const std::int64_t in = g.h * g.w, out = g.oh * g.ow, row = g.ow * g.c;
    parallel_for(g.nhwc ? g.n * g.oh : g.n * g.c, taps_cost(g), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i)
        if (g.nhwc) max_row_nhwc(g, x + i / g.oh * in * g.c, i % g.oh, y + i * row, index + i * row);
        else (is_squares(g) ? max_plane_squares : max_plane)(g, x + i * in, y + i * out, index + i * out);
    });
  });
}

Choice max_pool2d_grad(const NodeView& node) {
  if (node.in[0].dtype != DType::kFloat32) return float32_only();
  const ConvGeometry g = pool_geometry(node, node.out[0].shape, node.in[0].shape);
  return Choice::run("direct:max_pool2d_grad", [g](void* const* args, ir::StepError*) {
    const auto* dy = static_cast<const float*>(args[0]);
    const auto* index = static_cast<const std::int32_t*>(args[1]);
    auto* dx = static_cast<float*>(args[2]);
    const std::int64_t in = g.h * g.w, out = g.oh * g.ow, c = g.c;
    parallel_for(g.nhwc ? g.n : g.n * c, taps_cost(g), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        if (!g.nhwc) {
          (is_squares(g) ? max_grad_plane_squares : max_grad_plane)(g, dy + i * out, index + i * out, dx + i * in);
          continue;
        }
        float* to = dx + i * in * c;
        std::memset(to, 0, static_cast<std::size_t>(in * c) * sizeof(float));
        for_each_tap(g, [&](std::int32_t offset, std::int64_t ix, std::int64_t iy, std::int64_t) {
          const float* d = dy + (i * out + iy) * c;
          const std::int32_t* where = index + (i * out + iy) * c;
          for (std::int64_t k = 0; k < c; ++k) to[ix * c + k] += where[k] == offset ? d[k] : 0.f;
        });
      }
    });
  });
}

Choice avg_pool2d(const NodeView& node) {
  if (node.in[0].dtype != DType::kFloat32) return float32_only();
  const ConvGeometry g = pool_geometry(node, node.in[0].shape, node.out[0].shape);
  return Choice::run("direct:avg_pool2d", [g, average = average_of(node, g)](void* const* args, ir::StepError*) {
    const auto* x = static_cast<const float*>(args[0]);
    auto* y = static_cast<float*>(args[1]);
    const std::int64_t in = g.h * g.w, out = g.oh * g.ow, c = g.c;
    parallel_for(g.nhwc ? g.n : g.n * c, taps_cost(g), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        if (!g.nhwc) {
          average_plane(g, average, x + i * in, y + i * out);
          continue;
        }
        float* to = y + i * out * c;
        std::memset(to, 0, static_cast<std::size_t>(out * c) * sizeof(float));
        for_each_tap(g, [&](std::int32_t, std::int64_t ix, std::int64_t iy, std::int64_t) {
          const float* from = x + (i * in + ix) * c;
          for (std::int64_t k = 0; k < c; ++k) to[iy * c + k] += from[k];
        });
        for (std::int64_t iy = 0; iy < out; ++iy) {
          const Span rows = rows_of(g, iy / g.ow), columns = columns_of(g, iy % g.ow);
          const float scale = average.scale((rows.end - rows.begin) * (columns.end - columns.begin));
          for (std::int64_t k = 0; k < c; ++k) to[iy * c + k] *= scale;
        }
      }
    });
  });
}

Choice avg_pool2d_grad(const NodeView& node) {
  if (node.in[0].dtype != DType::kFloat32) return float32_only();
  const ConvGeometry g = pool_geometry(node, node.out[0].shape, node.in[0].shape);
  const std::int64_t row_floats = (g.w + 15) / 16 * 16;
  const auto scratch = g.nhwc ? 0 : static_cast<std::size_t>(compute_threads() * row_floats) * sizeof(float);
  const auto run = [g, average = average_of(node, g), row_floats](void* const* args, ir::StepError*) {
    const auto* dy = static_cast<const float*>(args[0]);
    auto* dx = static_cast<float*>(args[1]);
    const std::int64_t in = g.h * g.w, out = g.oh * g.ow, c = g.c;
    parallel_for(g.nhwc ? g.n : g.n * c, taps_cost(g), [&](std::int64_t begin, std::int64_t end, int thread) {
      for (std::int64_t i = begin; i < end; ++i) {
        if (!g.nhwc) {
          average_grad_plane(g, average, dy + i * out, dx + i * in, static_cast<float*>(args[2]) + thread * row_floats);
          continue;
        }
        float* to = dx + i * in * c;
        std::memset(to, 0, static_cast<std::size_t>(in * c) * sizeof(float));
        for_each_tap(g, [&](std::int32_t, std::int64_t ix, std::int64_t iy, std::int64_t count) {
          const float* d = dy + (i * out + iy) * c;
          const float scale = average.scale(count);
          for (std::int64_t k = 0; k < c; ++k) to[ix * c + k] += d[k] * scale;
        });
      }
    });
  };
  return Choice::run("direct:avg_pool2d_grad", run, scratch);
}

}  // namespace undertow::backend::cpu
