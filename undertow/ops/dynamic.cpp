// SPDX-License-Identifier: Apache-2.0
#include "undertow/ops/dynamic.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "undertow/base/check.h"
#include "undertow/ops/dispatch.h"
#include "undertow/ops/scatter.h"

namespace undertow::ops {
namespace {

void need_values(const Tensor& x, const char* op, const char* instead) {
  UNDERTOW_CHECK(x.is_concrete() && !(x.is_parameter() && dispatcher().compiling()), TraceError,
                 "{}: the shape of the result depends on the values of a tensor of shape {}, which a compiled function "
                 "does not have. {}, or run without compiling (PYNATIVE_MODE and dataset_sink_mode=False)",
                 op, x.shape().str(), instead);
}

template <typename T>
constexpr bool kHalf = std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>;

template <typename T>
bool is_set(T v) {
  if constexpr (kHalf<T>) return static_cast<float>(v) != 0;
  else return v != T{};
}

template <typename T>
bool same(T a, T b) {
  if constexpr (kHalf<T>) return static_cast<float>(a) == static_cast<float>(b);
  else return a == b;
}

/// Row-major positions of elements that are not zero.
std::vector<std::int64_t> set_positions(const Tensor& x) {
  std::vector<std::int64_t> at;
  dispatch(x.dtype(), [&](auto tag) {
    using T = decltype(tag);
    const T* p = x.data_as<T>();
    for (std::int64_t i = 0, n = x.size(); i < n; ++i)
      if (is_set(p[i])) at.push_back(i);
  });
  return at;
}

}  // namespace

Tensor nonzero(const Tensor& x, const char* what) {
  need_values(x, what, "Choose between values with ops.where");
  const auto at = set_positions(x);
  const auto strides = contiguous_strides(x.shape());
  const auto rank = static_cast<std::int64_t>(strides.size());
  std::vector<std::int64_t> rows;
  for (auto p : at)
    for (const auto s : strides) {
      rows.push_back(p / s);
      p %= s;
    }
  return Tensor(rows, Shape{static_cast<std::int64_t>(at.size()), rank});
}

Tensor masked_select(const Tensor& x, const Tensor& mask) {
  UNDERTOW_CHECK(mask.dtype() == DType::kBool, TypeError, "masked_select: mask must be Bool, got {}",
                 name_of(mask.dtype()));
  need_values(mask, "masked_select", "Use ops.where or ops.masked_fill, which keep the shape");
  const Shape s = broadcast(x.shape(), mask.shape());
  const auto at = set_positions(mask.shape() == s ? mask : broadcast_to(mask, s));
  return gather(reshape(broadcast_to(x, s), {-1}), Tensor(at), 0);
}

namespace {

/// Elements of x in groups: first positions of each, the group of each element, and sizes.
Unique grouped(const Tensor& x, const std::vector<std::int64_t>& first, const std::vector<std::int64_t>& group) {
  std::vector<std::int64_t> counts(first.size(), 0);
  for (const auto g : group) ++counts[static_cast<std::size_t>(g)];
  return {gather(reshape(x, {-1}), Tensor(first), 0), Tensor(group, x.shape()), Tensor(counts)};
}

}  // namespace

Unique unique(const Tensor& x, bool sorted) {
  need_values(x, "unique", "Use ops.sort, which keeps the shape");
  return dispatch(x.dtype(), [&](auto tag) {
    using T = decltype(tag);
    const T* p = x.data_as<T>();
    const std::int64_t n = x.size();
    std::vector<std::int64_t> order(static_cast<std::size_t>(n)), first, group(order.size());
    std::iota(order.begin(), order.end(), 0);
    using O = std::conditional_t<kHalf<T>, float, T>;
    const auto value = [p](std::int64_t i) { return static_cast<O>(p[i]); };
    std::stable_sort(order.begin(), order.end(), [&](auto i, auto j) {
      const O a = value(i), b = value(j);
      return a < b || (a == a && b != b);
    });
    for (std::size_t k = 0; k < order.size(); ++k) {
      if (k == 0 || value(order[k]) != value(order[k - 1])) first.push_back(order[k]);
      group[static_cast<std::size_t>(order[k])] = static_cast<std::int64_t>(first.size()) - 1;
    }
    if (!sorted) {  // groups are numbered by their first element
      std::vector<std::int64_t> by_place(first.size()), number(first.size());
      std::iota(by_place.begin(), by_place.end(), 0);
      std::sort(by_place.begin(), by_place.end(), [&](auto a, auto b) {
        return first[static_cast<std::size_t>(a)] < first[static_cast<std::size_t>(b)];
      });
      for (std::size_t k = 0; k < by_place.size(); ++k)
        number[static_cast<std::size_t>(by_place[k])] = static_cast<std::int64_t>(k);
      for (auto& g : group) g = number[static_cast<std::size_t>(g)];
      std::sort(first.begin(), first.end());
    }
    return grouped(x, first, group);
  });
}

Unique unique_consecutive(const Tensor& x) {
  need_values(x, "unique_consecutive", "Use ops.sort, which keeps the shape");
  return dispatch(x.dtype(), [&](auto tag) {
    using T = decltype(tag);
    const T* p = x.data_as<T>();
    std::vector<std::int64_t> first, group;
    for (std::int64_t i = 0; i < x.size(); ++i) {
      if (i == 0 || !same(p[i], p[i - 1])) first.push_back(i);
      group.push_back(static_cast<std::int64_t>(first.size()) - 1);
    }
    return grouped(x, first, group);
  });
}

std::int64_t largest(const Tensor& x, const char* op, const char* instead) {
  need_values(x, op, instead);
  if (x.size() == 0) return -1;
  const Tensor wide = x.to(DType::kInt64);
  const auto* p = static_cast<const std::int64_t*>(wide.data());
  return *std::max_element(p, p + wide.size());
}

Tensor bincount(const Tensor& x, const Tensor& weights, std::int64_t minlength) {
  UNDERTOW_CHECK(x.ndim() == 1, ShapeError, "bincount: the input must be a vector, got shape {}", x.shape().str());
  UNDERTOW_CHECK(is_integral(x.dtype()), TypeError, "bincount: the input must be integers, got {}", name_of(x.dtype()));
  UNDERTOW_CHECK(minlength >= 0, ValueError, "bincount: minlength cannot be negative, got {}", minlength);
  UNDERTOW_CHECK(!weights.defined() || weights.shape() == x.shape(), ShapeError,
                 "bincount: weights must have the input's shape {}, got {}", x.shape().str(), weights.shape().str());
  const std::int64_t n =
      std::max(largest(x, "bincount", "Use ops.unsorted_segment_sum, which is told the length") + 1, minlength);
  const Tensor wide = x.to(DType::kInt64);
  const auto* p = static_cast<const std::int64_t*>(wide.data());
  UNDERTOW_CHECK(std::all_of(p, p + wide.size(), [](auto v) { return v >= 0; }), ValueError,
                 "bincount: the input has negative values");
  const Tensor ones = full(x.shape(), 1, DType::kFloat32);
  const Tensor updates = weights.defined() ? weights : ones;
  const Tensor bins = full(Shape{n}, 0, updates.dtype());
  if (x.size() == 0) return bins;
  return scatter(bins, x, updates, 0, "add");
}

}  // namespace undertow::ops
