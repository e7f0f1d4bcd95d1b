// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <limits>
#include <utility>

#include "undertow/ops/reference/detail.h"
#include "undertow/ops/reference/reference.h"

namespace undertow::ops::reference {
namespace {

void report(ir::StepError* error, std::int64_t row, std::int64_t value, std::int64_t low, std::int64_t high) {
  if (!error || error->code != ir::StepError::kNone) return;
  *error = {.code = ir::StepError::kIndexOutOfRange, .row = row, .value = value, .low = low, .high = high};
}

/// As int64; what does not fit becomes the largest, which is out of every range as well.
template <typename T>
std::int64_t to_int64(T v) {
  constexpr auto kMax = std::numeric_limits<std::int64_t>::max();
  return std::cmp_greater(+v, kMax) ? kMax : static_cast<std::int64_t>(v);
}

std::vector<std::int64_t> read_integers(const ir::HostArray& a) {
  std::vector<std::int64_t> values(static_cast<std::size_t>(a.shape.numel()));
  dispatch(a.dtype, [&](auto tag) {
    using T = decltype(tag);
    if constexpr (std::is_integral_v<T>)
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = to_int64(a.as<T>()[i]);
  });
  return values;
}

/// Calls f(row of the indices' side, row of x or -1) for x.shape[:axis] times the indices.
template <typename F>
void for_each_row(const Shape& x, const ir::HostArray& indices, std::int64_t axis, ir::StepError* error, F&& f) {
  std::int64_t outer = 1;
  for (int d = 0; d < axis; ++d) outer *= x[d];
  const std::int64_t n = x[static_cast<int>(axis)], count = indices.shape.numel();
  const auto values = read_integers(indices);
  for (std::int64_t o = 0; o < outer; ++o)
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t v = values[static_cast<std::size_t>(i)];
      const bool good = v >= -n && v < n;
      if (!good) report(error, i, v, -n, n);
      f(o * count + i, good ? o * n + (v < 0 ? v + n : v) : -1);
    }
}

std::int64_t inner_size(const Shape& x, std::int64_t axis) {
  std::int64_t inner = 1;
  for (auto d = static_cast<int>(axis) + 1; d < x.rank(); ++d) inner *= x[d];
  return inner;
}

}  // namespace

void gather(Arrays in, Arrays out, const ir::Attrs& attrs, ir::StepError* error) {
  const std::int64_t axis = attrs.integer("axis"), inner = inner_size(in[0].shape, axis);
  const std::size_t bytes = static_cast<std::size_t>(inner) * size_of(out[0].dtype);
  for_each_row(in[0].shape, in[1], axis, error, [&](std::int64_t to, std::int64_t from) {
    std::byte* y = out[0].as<std::byte>() + static_cast<std::size_t>(to) * bytes;
    if (!bytes) return;
    if (from < 0) std::memset(y, 0, bytes);
    else std::memcpy(y, in[0].as<std::byte>() + static_cast<std::size_t>(from) * bytes, bytes);
  });
}

void scatter_add(Arrays in, Arrays out, const ir::Attrs& attrs, ir::StepError* error) {
  const std::int64_t axis = attrs.integer("axis"), inner = inner_size(out[0].shape, axis);
  dispatch(out[0].dtype, [&](auto tag) {
    using T = decltype(tag);
    std::vector<Acc<T>> acc(static_cast<std::size_t>(out[0].shape.numel()));
    for_each_row(out[0].shape, in[1], axis, error, [&](std::int64_t from, std::int64_t to) {
      if (to < 0) return;
      for (std::int64_t i = 0; i < inner; ++i) acc[to * inner + i] += widen(in[0].as<T>()[from * inner + i]);
    });
    store_narrowed<T>(acc, out[0].as<T>());
  });
}

void scatter(Arrays in, Arrays out, const ir::Attrs& attrs, ir::StepError* error) {
  const std::string& mode = attrs.text("mode");
  const std::int64_t inner = inner_size(out[0].shape, 0);
  if (const std::size_t bytes = static_cast<std::size_t>(out[0].shape.numel()) * size_of(out[0].dtype); bytes)
    std::memcpy(out[0].data, in[0].data, bytes);
  dispatch(out[0].dtype, [&](auto tag) {
    using T = decltype(tag);
    using A = Acc<T>;
    // Half types are rounded after each update, as if each were an op of its own.
    for_each_row(out[0].shape, in[1], 0, error, [&](std::int64_t from, std::int64_t to) {
      if (to < 0) return;
      for (std::int64_t i = 0; i < inner; ++i) {
        T& y = out[0].as<T>()[to * inner + i];
        const T u = in[2].as<T>()[from * inner + i];
        if (mode == "update") y = u;
        else if (mode == "add") y = narrow<T>(static_cast<A>(widen(y) + widen(u)));
        else if (mode == "sub") y = narrow<T>(static_cast<A>(widen(y) - widen(u)));
        else if (mode == "mul") y = narrow<T>(static_cast<A>(widen(y) * widen(u)));
        else if (mode == "max") y = beats<true>(ordered(u), ordered(y)) ? u : y;
        else if (mode == "min") y = beats<false>(ordered(u), ordered(y)) ? u : y;
        else if constexpr (kIsFloating<T>) y = narrow<T>(widen(y) / widen(u));
        else if (std::is_signed_v<T> && u == static_cast<T>(-1)) y = narrow<T>(static_cast<A>(A{} - widen(y)));
        else y = u == T{} ? T{} : static_cast<T>(ordered(y) / ordered(u));
      }
    });
  });
}

void check_index(Arrays in, Arrays, const ir::Attrs& attrs, ir::StepError* error) {
  const std::int64_t low = attrs.integer("low"), high = attrs.integer("high");
  dispatch(in[0].dtype, [&](auto tag) {
    using T = decltype(tag);
    if constexpr (std::is_integral_v<T>) {
      const T* v = in[0].as<T>();
      for (std::int64_t i = 0, n = in[0].shape.numel(); i < n; ++i)
        if (std::cmp_less(+v[i], low) || std::cmp_greater_equal(+v[i], high))
          return report(error, i, to_int64(v[i]), low, high);
    }
  });
}

}  // namespace undertow::ops::reference
