// SPDX-License-Identifier: Apache-2.0
// Ops that read or produce indices. An index out of range is reported once, before anything is written.
#include <cstring>
#include <utility>

#include "undertow/backend/cpu/kernel_list.h"
#include "undertow/backend/cpu/parallel.h"
#include "undertow/base/check.h"
#include "undertow/ops/reference/detail.h"

namespace undertow::backend::cpu {
namespace {

/// x.shape split at `axis`.
struct Split {
  std::int64_t outer = 1, extent = 1, inner = 1;
  Split(const Shape& x, std::int64_t axis) : extent(x[static_cast<int>(axis)]) {
    for (int d = 0; d < axis; ++d) outer *= x[d];
    for (int d = static_cast<int>(axis) + 1; d < x.rank(); ++d) inner *= x[d];
  }
};

struct Indices {
  const void* data;
  bool wide;
  std::int64_t extent;

  std::int64_t raw(std::int64_t i) const {
    return wide ? static_cast<const std::int64_t*>(data)[i] : static_cast<const std::int32_t*>(data)[i];
  }
  /// In [0, extent), or -1.
  std::int64_t at(std::int64_t i) const {
    const std::int64_t v = raw(i);
    return v >= -extent && v < extent ? (v < 0 ? v + extent : v) : -1;
  }
  void check(std::int64_t count, std::int32_t node, ir::StepError* error) const {
    for (std::int64_t i = 0; i < count; ++i)
      if (at(i) < 0)
        return report(error, {.code = ir::StepError::kIndexOutOfRange,
                              .node = node,
                              .row = i,
                              .value = raw(i),
                              .low = -extent,
                              .high = extent});
  }
};

bool is_index(DType dtype) { return dtype == DType::kInt32 || dtype == DType::kInt64; }

template <bool kMax, typename T>
Choice arg_extreme(const NodeView& node) {
  const Split s(node.in[0].shape,
                node.integer("axis") < 0 ? node.integer("axis") + node.in[0].shape.rank() : node.integer("axis"));
  return Choice::run("direct:" + node.op->name, [s](void* const* args, ir::StepError*) {
    const auto* x = static_cast<const T*>(args[0]);
    auto* y = static_cast<std::int64_t*>(args[1]);
    const auto cost = static_cast<double>(s.outer * s.inner) * static_cast<double>(s.extent);
    parallel_for(s.outer * s.inner, cost, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t u = begin; u < end; ++u) {
        const T* p = x + u / s.inner * s.extent * s.inner + u % s.inner;
        // Values are compared in their own type; the half types as float32.
        using O = std::conditional_t<std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>, float, T>;
        O best = static_cast<O>(*p);
        std::int64_t where = 0;
        for (std::int64_t i = 1; i < s.extent && best == best; ++i)
          if (const O v = static_cast<O>(p[i * s.inner]); (kMax ? v > best : v < best) || v != v) best = v, where = i;
        y[u] = where;
      }
    });
  });
}

template <bool kMax>
Choice arg_extreme(const NodeView& node) {
  if (node.in[0].shape.numel() == 0) return Choice::decline("empty");
  return dispatch(node.in[0].dtype, [&](auto tag) { return arg_extreme<kMax, decltype(tag)>(node); });
}

}  // namespace

Choice argmax(const NodeView& node) { return arg_extreme<true>(node); }
Choice argmin(const NodeView& node) { return arg_extreme<false>(node); }

Choice gather(const NodeView& node) {
  if (!is_index(node.in[1].dtype)) return Choice::decline("int32 or int64 indices only");
  const Split s(node.in[0].shape, node.integer("axis"));
  const std::int64_t count = node.in[1].shape.numel();
  const auto bytes = static_cast<std::size_t>(s.inner) * size_of(node.in[0].dtype);
  if (s.outer * count == 0 || bytes == 0) return Choice::decline("empty");
  return Choice::run("direct:gather", [s, count, bytes, wide = node.in[1].dtype == DType::kInt64, id = node.id](
                                          void* const* args, ir::StepError* error) {
    const Indices indices{args[1], wide, s.extent};
    indices.check(count, id, error);
    const auto* x = static_cast<const std::byte*>(args[0]);
    auto* y = static_cast<std::byte*>(args[2]);
    const auto copy = [&]<typename Size>(Size size) {  // a constant size is one load and one store
      const double cost = static_cast<double>(s.outer * count) * (2 + 0.1 * static_cast<double>(bytes));
      parallel_for(s.outer * count, cost, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t u = begin; u < end; ++u) {
          const std::int64_t from = indices.at(u % count);
          std::byte* to = y + static_cast<std::size_t>(u) * bytes;
          if (from < 0) std::memset(to, 0, size);
          else std::memcpy(to, x + static_cast<std::size_t>(u / count * s.extent + from) * bytes, size);
        }
      });
    };
    if (bytes == 4) copy(std::integral_constant<std::size_t, 4>{});
    else copy(bytes);
  });
}

Choice scatter_add(const NodeView& node) {
  if (!is_index(node.in[1].dtype)) return Choice::decline("int32 or int64 indices only");
  if (node.in[0].dtype != DType::kFloat32) return Choice::decline("float32 only");
  const Split s(node.out[0].shape, node.integer("axis"));
  const std::int64_t count = node.in[1].shape.numel(), rows = s.outer * s.extent;
  if (rows * s.inner == 0) return Choice::decline("empty");
  return Choice::run("direct:scatter_add", [s, count, rows, wide = node.in[1].dtype == DType::kInt64, id = node.id](
                                               void* const* args, ir::StepError* error) {
    const Indices indices{args[1], wide, s.extent};
    indices.check(count, id, error);
    const auto* dy = static_cast<const float*>(args[0]);
    auto* y = static_cast<float*>(args[2]);
    // A thread owns rows of the result and walks all indices: every row is summed in index order by one thread.
    const double cost = static_cast<double>(rows + s.outer * count) * static_cast<double>(s.inner) * 0.25;
    parallel_for(rows, cost, [&](std::int64_t begin, std::int64_t end) {
      std::memset(y + begin * s.inner, 0, static_cast<std::size_t>((end - begin) * s.inner) * sizeof(float));
      for (std::int64_t o = begin / s.extent; o * s.extent < end; ++o)
        for (std::int64_t i = 0; i < count; ++i) {
          const std::int64_t at = indices.at(i), row = o * s.extent + at;
          if (at < 0 || row < begin || row >= end) continue;
          const float* from = dy + (o * count + i) * s.inner;
          float* to = y + row * s.inner;
          for (std::int64_t j = 0; j < s.inner; ++j) to[j] += from[j];
        }
    });
  });
}

namespace {

/// f(y, u) writes the element u into y, by the op's mode.
template <typename T, typename F>
void with_update(std::string_view mode, F&& f) {
  namespace r = ops::reference;
  using A = r::Acc<T>;
  if (mode == "update") return f([](T& y, T u) { y = u; });
  if (mode == "add") return f([](T& y, T u) { y = r::narrow<T>(static_cast<A>(r::widen(y) + r::widen(u))); });
  if (mode == "sub") return f([](T& y, T u) { y = r::narrow<T>(static_cast<A>(r::widen(y) - r::widen(u))); });
  if (mode == "mul") return f([](T& y, T u) { y = r::narrow<T>(static_cast<A>(r::widen(y) * r::widen(u))); });
  if (mode == "max") return f([](T& y, T u) { y = r::beats<true>(r::ordered(u), r::ordered(y)) ? u : y; });
  return f([](T& y, T u) { y = r::beats<false>(r::ordered(u), r::ordered(y)) ? u : y; });
}

template <typename T>
RunFn scatter_runner(const NodeView& node) {
  const std::int64_t rows = node.out[0].shape[0], inner = node.out[0].shape.numel() / rows;
  const std::int64_t count = node.in[1].shape.numel();
  return [rows, inner, count, mode = node.text("mode"), wide = node.in[1].dtype == DType::kInt64, id = node.id](
             void* const* args, ir::StepError* error) {
    const Indices indices{args[1], wide, rows};
    indices.check(count, id, error);
    const auto *x = static_cast<const T*>(args[0]), *u = static_cast<const T*>(args[2]);
    auto* y = static_cast<T*>(args[3]);
    // A thread owns rows of the result and walks all indices, in their order.
    const double cost = static_cast<double>(rows + count) * static_cast<double>(inner) * 0.25 + 2.0 * count;
    with_update<T>(mode, [&](auto update) {
      parallel_for(rows, cost, [&](std::int64_t begin, std::int64_t end) {
        std::memcpy(y + begin * inner, x + begin * inner, static_cast<std::size_t>((end - begin) * inner) * sizeof(T));
        for (std::int64_t i = 0; i < count; ++i) {
          const std::int64_t row = indices.at(i);
          if (row < begin || row >= end) continue;
          for (std::int64_t j = 0; j < inner; ++j) update(y[row * inner + j], u[i * inner + j]);
        }
      });
    });
  };
}

}  // namespace

Choice scatter(const NodeView& node) {
  if (!is_index(node.in[1].dtype)) return Choice::decline("int32 or int64 indices only");
  if (node.out[0].shape.numel() == 0) return Choice::decline("empty");
  const std::string& mode = node.text("mode");
  if (mode == "div") return Choice::decline("division");
  if (mode == "update")
    return ops::reference::dispatch_bits(node.out[0].dtype, [&](auto tag) {
      return Choice::run("direct:scatter", scatter_runner<decltype(tag)>(node));
    });
  return dispatch(node.out[0].dtype,
                  [&](auto tag) { return Choice::run("direct:scatter", scatter_runner<decltype(tag)>(node)); });
}

Choice check_index(const NodeView& node) {
  const std::int64_t low = node.integer("low"), high = node.integer("high"), count = node.in[0].shape.numel();
  return dispatch(node.in[0].dtype, [&](auto tag) -> Choice {
    using T = decltype(tag);
    if constexpr (!std::is_integral_v<T> || std::is_same_v<T, bool>) return Choice::decline("integers only");
    else
      return Choice::run("direct:check_index", [=, id = node.id](void* const* args, ir::StepError* error) {
        const auto* v = static_cast<const T*>(args[0]);
        bool good = true;
        for (std::int64_t i = 0; i < count; ++i) good &= std::cmp_greater_equal(v[i], low) && std::cmp_less(v[i], high);
        if (good) return;
        for (std::int64_t i = 0; i < count; ++i)
          if (std::cmp_less(v[i], low) || std::cmp_greater_equal(v[i], high))
            return report(error, {.code = ir::StepError::kIndexOutOfRange,
                                  .node = id,
                                  .row = i,
                                  .value = static_cast<std::int64_t>(v[i]),
                                  .low = low,
                                  .high = high});
      });
  });
}

}  // namespace undertow::backend::cpu
