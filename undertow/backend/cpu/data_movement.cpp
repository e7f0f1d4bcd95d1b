// SPDX-License-Identifier: Apache-2.0
// Ops that only move elements: one strided copy, cut into rows, or into tiles where it transposes.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <variant>

#include "undertow/backend/cpu/kernel_list.h"
#include "undertow/backend/cpu/parallel.h"
#include "undertow/base/check.h"

namespace undertow::backend::cpu {
namespace {

constexpr double kNsPerByte = 0.1;
constexpr std::int64_t kTile = 32;

struct Dim {
  std::int64_t extent, from, to;  // strides in elements
};

/// to[sum of i * to] = from[sum of i * from] over all dims, last dim fastest.
struct Copy {
  std::vector<Dim> dims;
  std::size_t element = 4;

  std::int64_t count() const {
    return std::accumulate(dims.begin(), dims.end(), std::int64_t{1},
                           [](auto n, const Dim& d) { return n * d.extent; });
  }
  /// Drops extents of 1 and merges neighbours that are one run in both tensors.
  void simplify() {
    std::vector<Dim> kept;
    for (const Dim& d : dims) {
      if (d.extent == 1) continue;
      if (!kept.empty() && kept.back().from == d.extent * d.from && kept.back().to == d.extent * d.to)
        kept.back() = {kept.back().extent * d.extent, d.from, d.to};
      else kept.push_back(d);
    }
    if (kept.empty()) kept.push_back({1, 1, 1});
    dims = std::move(kept);
  }
};

/// Offsets of the point `index` (row-major) of some dims.
std::pair<std::int64_t, std::int64_t> locate(std::span<const Dim> dims, std::int64_t index) {
  std::int64_t from = 0, to = 0;
  for (std::size_t d = dims.size(); d-- > 0;) {
    const std::int64_t i = index % dims[d].extent;
    index /= dims[d].extent;
    from += i * dims[d].from, to += i * dims[d].to;
  }
  return {from, to};
}

template <typename T>
void copy_row(const T* from, T* to, const Dim& d) {
  if (d.to == 1 && d.from == 1 && d.extent >= 16) {
    std::memcpy(to, from, static_cast<std::size_t>(d.extent) * sizeof(T));
  } else if (d.to == 1 && d.from == 0) {
    std::fill_n(to, d.extent, *from);
  } else {
    for (std::int64_t i = 0; i < d.extent; ++i) to[i * d.to] = from[i * d.from];
  }
}

template <typename T>
void copy_rows(const Copy& c, const T* from, T* to) {
  const auto outer = std::span(c.dims).first(c.dims.size() - 1);
  const Dim row = c.dims.back();
  const double cost = static_cast<double>(c.count()) * kNsPerByte * sizeof(T);
  if (outer.empty()) {  // one long row: cut it
    parallel_for(row.extent, cost, [&](std::int64_t begin, std::int64_t end) {
      copy_row(from + begin * row.from, to + begin * row.to, {end - begin, row.from, row.to});
    });
    return;
  }
  parallel_for(c.count() / row.extent, cost, [&](std::int64_t begin, std::int64_t end) {
    const Dim last = outer.back();
    for (std::int64_t i = begin; i < end;) {
      auto [f, t] = locate(outer, i);
      const std::int64_t run = std::min(end - i, last.extent - i % last.extent);
      for (std::int64_t j = 0; j < run; ++j, f += last.from, t += last.to) copy_row(from + f, to + t, row);
      i += run;
    }
  });
}

/// The source runs along dim `along`, the result along the last one: square tiles of both.
template <typename T>
void copy_tiles(const Copy& c, std::size_t along, const T* from, T* to) {
  std::vector<Dim> outer(c.dims.begin(), c.dims.end() - 1);
  const Dim a = outer[along], b = c.dims.back();
  outer.erase(outer.begin() + static_cast<std::ptrdiff_t>(along));
  const std::int64_t a_tiles = (a.extent + kTile - 1) / kTile;
  const std::int64_t units = c.count() / (a.extent * b.extent) * a_tiles;
  parallel_for(units, static_cast<double>(c.count()) * kNsPerByte * sizeof(T) * 2,
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t u = begin; u < end; ++u) {
                   const auto [f, t] = locate(outer, u / a_tiles);
                   const std::int64_t a0 = u % a_tiles * kTile, a1 = std::min(a.extent, a0 + kTile);
                   for (std::int64_t b0 = 0; b0 < b.extent; b0 += kTile) {
                     const std::int64_t b1 = std::min(b.extent, b0 + kTile);
                     for (std::int64_t i = a0; i < a1; ++i)
                       for (std::int64_t j = b0; j < b1; ++j)
                         to[t + i * a.to + j * b.to] = from[f + i * a.from + j * b.from];
                   }
                 }
               });
}

template <typename T>
void run_copy(const Copy& c, const T* from, T* to) {
  if (const Dim last = c.dims.back(); last.from != 1 && last.from != 0)
    for (std::size_t d = 0; d + 1 < c.dims.size(); ++d)
      if (c.dims[d].from == 1) return copy_tiles(c, d, from, to);
  copy_rows(c, from, to);
}

void run_copy(const Copy& c, const std::byte* from, std::byte* to) {
  const auto as = [&](auto tag) {
    using T = decltype(tag);
    run_copy(c, reinterpret_cast<const T*>(from), reinterpret_cast<T*>(to));
  };
  switch (c.element) {
    case 1: return as(std::uint8_t{});
    case 2: return as(std::uint16_t{});
    case 4: return as(std::uint32_t{});
    default: return as(std::uint64_t{});
  }
}

Choice copy_kernel(const NodeView& node, Copy copy, std::int64_t from_base) {
  copy.element = size_of(node.out[0].dtype);
  if (copy.count() == 0) return zero_fill(node);
  copy.simplify();
  return Choice::run("copy:" + node.op->name, [copy, skip = from_base * static_cast<std::int64_t>(copy.element)](
                                                  void* const* args, ir::StepError*) {
    run_copy(copy, static_cast<const std::byte*>(args[0]) + skip, static_cast<std::byte*>(args[1]));
  });
}

Copy over(const Shape& shape, const std::vector<std::int64_t>& from, const std::vector<std::int64_t>& to) {
  Copy c;
  for (std::size_t d = 0; d < shape.size(); ++d) c.dims.push_back({shape[static_cast<int>(d)], from[d], to[d]});
  return c;
}

/// The bytes of the attribute `value` as one element of `dtype`.
std::uint64_t element_bits(DType dtype, double value) {
  return dispatch(dtype, [&](auto tag) {
    using T = decltype(tag);
    T v{};
    if constexpr (std::is_same_v<T, bool>) v = value != 0;
    else if constexpr (std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>) v = T(static_cast<float>(value));
    else v = static_cast<T>(value);
    std::uint64_t bits = 0;
    std::memcpy(&bits, &v, sizeof v);
    return bits;
  });
}

void fill(std::byte* to, std::int64_t count, std::size_t element, std::uint64_t bits) {
  const auto as = [&](auto tag) {
    using T = decltype(tag);
    parallel_for(count, static_cast<double>(count) * kNsPerByte * sizeof(T) / 2,
                 [&](std::int64_t begin, std::int64_t end) {
                   std::fill(reinterpret_cast<T*>(to) + begin, reinterpret_cast<T*>(to) + end, static_cast<T>(bits));
                 });
  };
  switch (element) {
    case 1: return as(std::uint8_t{});
    case 2: return as(std::uint16_t{});
    case 4: return as(std::uint32_t{});
    default: return as(std::uint64_t{});
  }
}

}  // namespace

Choice transpose(const NodeView& node) {
  const auto dense = contiguous_strides(node.in[0].shape);
  std::vector<std::int64_t> from;
  for (const auto d : node.ints("perm")) from.push_back(dense[static_cast<std::size_t>(d)]);
  return copy_kernel(node, over(node.out[0].shape, from, contiguous_strides(node.out[0].shape)), 0);
}

Choice broadcast_to(const NodeView& node) {
  const Shape &x = node.in[0].shape, &y = node.out[0].shape;
  const auto dense = contiguous_strides(x);
  std::vector<std::int64_t> from(y.size(), 0);
  for (int d = x.rank() - 1, o = y.rank() - 1; d >= 0; --d, --o)
    if (x[d] != 1) from[static_cast<std::size_t>(o)] = dense[static_cast<std::size_t>(d)];
  return copy_kernel(node, over(y, from, contiguous_strides(y)), 0);
}

Choice slice(const NodeView& node) {
  auto from = contiguous_strides(node.in[0].shape);
  const auto &begin = node.ints("begin"), &steps = node.ints("steps");
  std::int64_t base = 0;
  for (std::size_t d = 0; d < from.size(); ++d) {
    base += begin[d] * from[d];
    from[d] *= steps[d];
  }
  return copy_kernel(node, over(node.out[0].shape, from, contiguous_strides(node.out[0].shape)), base);
}

Choice slice_update(const NodeView& node) {
  if (node.out[0].shape.numel() == 0 || node.in[1].shape.numel() == 0) return Choice::decline("empty");
  auto to = contiguous_strides(node.out[0].shape);
  const auto &begin = node.ints("begin"), &steps = node.ints("steps");
  std::int64_t base = 0;
  for (std::size_t d = 0; d < to.size(); ++d) {
    base += begin[d] * to[d];
    to[d] *= steps[d];
  }
  Copy box = over(node.in[1].shape, contiguous_strides(node.in[1].shape), to);
  box.element = size_of(node.out[0].dtype);
  box.simplify();
  Copy whole{{{static_cast<std::int64_t>(bytes_of(node.out[0])), 1, 1}}, 1};
  return Choice::run("copy:slice_update", [box, whole, skip = base * static_cast<std::int64_t>(box.element)](
                                              void* const* args, ir::StepError*) {
    auto* y = static_cast<std::byte*>(args[2]);
    run_copy(whole, static_cast<const std::byte*>(args[0]), y);
    run_copy(box, static_cast<const std::byte*>(args[1]), y + skip);
  });
}

Choice pad(const NodeView& node) {
  if (node.out[0].shape.numel() == 0) return zero_fill(node);
  auto to = contiguous_strides(node.out[0].shape);
  const auto &low = node.ints("low"), &interior = node.ints("interior");
  std::int64_t base = 0;
  for (std::size_t d = 0; d < to.size(); ++d) {
    base += low[d] * to[d];
    to[d] *= interior[d] + 1;
  }
  const DType dtype = node.out[0].dtype;
  Copy c = over(node.in[0].shape, contiguous_strides(node.in[0].shape), to);
  c.element = size_of(dtype);
  const bool empty = c.count() == 0;
  if (!empty) c.simplify();
  const auto skip = base * static_cast<std::int64_t>(c.element);
  return Choice::run("copy:pad", [c, empty, skip, count = node.out[0].shape.numel(),
                                  bits = element_bits(dtype, node.number("value"))](void* const* args, ir::StepError*) {
    auto* to = static_cast<std::byte*>(args[1]);
    fill(to, count, c.element, bits);
    if (!empty) run_copy(c, static_cast<const std::byte*>(args[0]), to + skip);
  });
}

Choice concat(const NodeView& node) {
  if (node.out[0].shape.numel() == 0) return zero_fill(node);
  const Shape& y = node.out[0].shape;
  const auto axis = static_cast<int>(node.integer("axis"));
  std::int64_t outer = 1, inner = 1;
  for (int d = 0; d < axis; ++d) outer *= y[d];
  for (int d = axis + 1; d < y.rank(); ++d) inner *= y[d];
  const auto element = static_cast<std::int64_t>(size_of(node.out[0].dtype));
  std::vector<std::int64_t> widths;  // bytes of each input's part of a row
  for (const auto& t : node.in) widths.push_back(t.shape[axis] * inner * element);
  const std::int64_t width = y[axis] * inner * element;
  return Choice::run("copy:concat", [=](void* const* args, ir::StepError*) {
    std::int64_t base = 0;
    for (std::size_t i = 0; i < widths.size(); base += widths[i++]) {
      if (widths[i] == 0) continue;
      Copy c{{{outer, widths[i], width}, {widths[i], 1, 1}}, 1};
      c.simplify();
      run_copy(c, static_cast<const std::byte*>(args[i]), static_cast<std::byte*>(args[widths.size()]) + base);
    }
  });
}

}  // namespace undertow::backend::cpu
