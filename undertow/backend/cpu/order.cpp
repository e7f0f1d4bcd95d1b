// SPDX-License-Identifier: Apache-2.0
// Running reductions, a line of the axis at a time, and sorting by integer keys.
#include <algorithm>
#include <bit>
#include <limits>

#include "undertow/backend/cpu/kernel_list.h"
#include "undertow/backend/cpu/parallel.h"
#include "undertow/base/check.h"
#include "undertow/ops/reference/detail.h"

namespace undertow::backend::cpu {
namespace {

namespace r = ops::reference;

/// x.shape around the op's axis.
struct Lines {
  std::int64_t outer = 1, extent = 1, inner = 1;
  explicit Lines(const NodeView& node) {
    const Shape& s = node.in[0].shape;
    const auto axis = static_cast<int>(node.integer("axis"));
    extent = s[axis];
    for (int d = 0; d < axis; ++d) outer *= s[d];
    for (int d = axis + 1; d < s.rank(); ++d) inner *= s[d];
  }
  std::int64_t count() const { return outer * inner; }
};

constexpr std::int64_t kBlock = 16;  // neighbouring lines are walked together, so that memory is read in order

/// f(offset of the first line, number of lines) for blocks of neighbouring lines, on the team.
template <typename F>
void for_blocks(const Lines& l, double ns_per_element, F&& f) {
  const std::int64_t blocks = (l.inner + kBlock - 1) / kBlock;
  parallel_for(l.outer * blocks, static_cast<double>(l.count() * l.extent) * ns_per_element,
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t u = begin; u < end; ++u) {
                   const std::int64_t first = u % blocks * kBlock;
                   f(u / blocks * l.extent * l.inner + first, std::min(kBlock, l.inner - first));
                 }
               });
}

template <bool kProd>
Choice running(const NodeView& node) {
  if (node.out[0].shape.numel() == 0) return zero_fill(node);
  const Lines l(node);
  const bool exclusive = node.flag("exclusive"), reverse = node.flag("reverse");
  return dispatch(node.in[0].dtype, [&](auto tag) {
    using T = decltype(tag);
    using A = r::Acc<T>;
    return Choice::run("lines:" + node.op->name, [=](void* const* args, ir::StepError*) {
      const auto* x = static_cast<const T*>(args[0]);
      auto* y = static_cast<T*>(args[1]);
      for_blocks(l, 1, [&](std::int64_t base, std::int64_t lines) {
        A acc[kBlock];
        std::fill_n(acc, kBlock, A{kProd ? 1 : 0});
        for (std::int64_t i = 0; i < l.extent; ++i) {
          const std::int64_t at = base + (reverse ? l.extent - 1 - i : i) * l.inner;
          for (std::int64_t b = 0; b < lines; ++b) {
            const A before = acc[b], v = r::widen(x[at + b]);
            acc[b] = kProd ? static_cast<A>(before * v) : static_cast<A>(before + v);
            y[at + b] = r::narrow<T>(exclusive ? before : acc[b]);
          }
        }
      });
    });
  });
}

template <bool kMax>
Choice running_extremum(const NodeView& node) {
  if (node.out[0].shape.numel() == 0) return zero_fill(node);
  const Lines l(node);
  return dispatch(node.in[0].dtype, [&](auto tag) {
    using T = decltype(tag);
    return Choice::run("lines:" + node.op->name, [=](void* const* args, ir::StepError*) {
      const auto* x = static_cast<const T*>(args[0]);
      auto* y = static_cast<T*>(args[1]);
      auto* where = static_cast<std::int64_t*>(args[2]);
      for_blocks(l, 1, [&](std::int64_t base, std::int64_t lines) {
        std::int64_t best[kBlock] = {};
        for (std::int64_t i = 0; i < l.extent; ++i)
          for (std::int64_t b = 0; b < lines; ++b) {
            const auto v = r::ordered(x[base + i * l.inner + b]), top = r::ordered(x[base + best[b] * l.inner + b]);
            if (r::beats<kMax>(v, top) || v == top) best[b] = i;
            y[base + i * l.inner + b] = x[base + best[b] * l.inner + b];
            where[base + i * l.inner + b] = best[b];
          }
      });
    });
  });
}

/// An unsigned number that orders as v does: NaN above all, -0 as 0.
template <typename T>
auto key_of(T v) {
  if constexpr (r::kIsHalf<T>) {
    return key_of(static_cast<float>(v));
  } else if constexpr (std::is_floating_point_v<T>) {
    using U = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
    constexpr U kSign = U{1} << (sizeof(U) * 8 - 1);
    if (v != v) return std::numeric_limits<U>::max();
    const U bits = std::bit_cast<U>(v + T{0});  // -0 + 0 is 0
    return bits & kSign ? static_cast<U>(~bits) : static_cast<U>(bits | kSign);
  } else if constexpr (sizeof(T) == 8) {
    constexpr std::uint64_t kSign = std::is_signed_v<T> ? std::uint64_t{1} << 63 : 0;
    return static_cast<std::uint64_t>(v) ^ kSign;
  } else {
    constexpr std::uint32_t kSign = std::is_signed_v<T> ? 0x80000000u : 0;
    return static_cast<std::uint32_t>(v) ^ kSign;
  }
}

/// A key and the position it came from; equal keys keep their order. Narrow keys share one word with the position.
struct WideEntry {
  std::uint64_t key, index;
  friend bool operator<(const WideEntry& a, const WideEntry& b) {
    return a.key != b.key ? a.key < b.key : a.index < b.index;
  }
  static WideEntry of(std::uint64_t key, std::int64_t i) { return {key, static_cast<std::uint64_t>(i)}; }
  std::int64_t position() const { return static_cast<std::int64_t>(index); }
};
struct NarrowEntry {
  std::uint64_t both;
  friend bool operator<(NarrowEntry a, NarrowEntry b) { return a.both < b.both; }
  static NarrowEntry of(std::uint32_t key, std::int64_t i) {
    return {(std::uint64_t{key} << 32) | static_cast<std::uint64_t>(i)};
  }
  std::int64_t position() const { return static_cast<std::int64_t>(both & 0xffffffffu); }
};

}  // namespace

Choice cumsum(const NodeView& node) { return running<false>(node); }
Choice cumprod(const NodeView& node) { return running<true>(node); }
Choice cummax(const NodeView& node) { return running_extremum<true>(node); }
Choice cummin(const NodeView& node) { return running_extremum<false>(node); }

Choice sort(const NodeView& node) {
  if (node.out[0].shape.numel() == 0) return zero_fill(node);
  const Lines l(node);
  if (l.extent > std::int64_t{0xffffffff}) return Choice::decline("more than 2^32 elements in a row");
  const bool descending = node.flag("descending");
  const std::int64_t count = node.out[0].shape[static_cast<int>(node.integer("axis"))];
  return dispatch(node.in[0].dtype, [&](auto tag) {
    using T = decltype(tag);
    using Key = decltype(key_of(T{}));
    using Entry = std::conditional_t<sizeof(Key) == 4, NarrowEntry, WideEntry>;
    const std::size_t line_bytes = aligned(static_cast<std::size_t>(l.extent) * sizeof(Entry));
    const auto run = [=](void* const* args, ir::StepError*) {
      const auto* x = static_cast<const T*>(args[0]);
      auto* y = static_cast<T*>(args[1]);
      auto* where = static_cast<std::int64_t*>(args[2]);
      auto* scratch = static_cast<std::byte*>(args[3]);
      const double cost = static_cast<double>(l.count() * l.extent) * 2 *
                          static_cast<double>(std::bit_width(static_cast<std::uint64_t>(count)));
      parallel_for(l.count(), cost, [&](std::int64_t begin, std::int64_t end, int thread) {
        auto* e = reinterpret_cast<Entry*>(scratch + static_cast<std::size_t>(thread) * line_bytes);
        for (std::int64_t u = begin; u < end; ++u) {
          const std::int64_t o = u / l.inner, in = u % l.inner;
          const T* from = x + o * l.extent * l.inner + in;
          for (std::int64_t i = 0; i < l.extent; ++i) {
            const Key key = key_of(from[i * l.inner]);
            e[i] = Entry::of(descending ? static_cast<Key>(~key) : key, i);
          }
          if (count < l.extent) std::nth_element(e, e + count, e + l.extent);
          std::sort(e, e + count);
          for (std::int64_t i = 0; i < count; ++i) {
            const std::int64_t at = (o * count + i) * l.inner + in, p = e[i].position();
            y[at] = from[p * l.inner];
            where[at] = p;
          }
        }
      });
    };
    return Choice::run("keys:sort", run, line_bytes * static_cast<std::size_t>(compute_threads()));
  });
}

}  // namespace undertow::backend::cpu
