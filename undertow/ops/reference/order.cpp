// SPDX-License-Identifier: Apache-2.0
// Running reductions and sorting.
#include <numeric>

#include "undertow/ops/reference/detail.h"
#include "undertow/ops/reference/reference.h"

namespace undertow::ops::reference {
namespace {

/// Calls f(offset of the first element, distance between elements) for every row along an axis.
template <typename F>
void for_each_line(const Shape& s, int axis, F&& f) {
  std::int64_t outer = 1, inner = 1;
  for (int d = 0; d < axis; ++d) outer *= s[d];
  for (int d = axis + 1; d < s.rank(); ++d) inner *= s[d];
  for (std::int64_t o = 0; o < outer; ++o)
    for (std::int64_t i = 0; i < inner; ++i) f(o * s[axis] * inner + i, inner);
}

template <bool kProd>
void running(Arrays in, Arrays out, const ir::Attrs& attrs) {
  const auto axis = static_cast<int>(attrs.integer("axis"));
  const bool exclusive = attrs.flag("exclusive"), reverse = attrs.flag("reverse");
  const std::int64_t n = in[0].shape[axis];
  dispatch(in[0].dtype, [&](auto tag) {
    using T = decltype(tag);
    for_each_line(in[0].shape, axis, [&](std::int64_t at, std::int64_t step) {
      Acc<T> acc = kProd ? 1 : 0;
      for (std::int64_t i = 0; i < n; ++i) {
        const std::int64_t k = at + (reverse ? n - 1 - i : i) * step;
        const Acc<T> v = widen(in[0].as<T>()[k]);
        if (exclusive) out[0].as<T>()[k] = narrow<T>(acc);
        acc = kProd ? static_cast<Acc<T>>(acc * v) : static_cast<Acc<T>>(acc + v);
        if (!exclusive) out[0].as<T>()[k] = narrow<T>(acc);
      }
    });
  });
}

template <bool kMax>
void running_extremum(Arrays in, Arrays out, const ir::Attrs& attrs) {
  const auto axis = static_cast<int>(attrs.integer("axis"));
  const std::int64_t n = in[0].shape[axis];
  dispatch(in[0].dtype, [&](auto tag) {
    using T = decltype(tag);
    for_each_line(in[0].shape, axis, [&](std::int64_t at, std::int64_t step) {
      std::int64_t best = 0;
      for (std::int64_t i = 0; i < n; ++i) {
        const auto v = ordered(in[0].as<T>()[at + i * step]), b = ordered(in[0].as<T>()[at + best * step]);
        if (beats<kMax>(v, b) || v == b) best = i;
        out[0].as<T>()[at + i * step] = in[0].as<T>()[at + best * step];
        out[1].as<std::int64_t>()[at + i * step] = best;
      }
    });
  });
}

}  // namespace

void cumsum(Arrays in, Arrays out, const ir::Attrs& attrs, ir::StepError*) { running<false>(in, out, attrs); }
void cumprod(Arrays in, Arrays out, const ir::Attrs& attrs, ir::StepError*) { running<true>(in, out, attrs); }
void cummax(Arrays in, Arrays out, const ir::Attrs& attrs, ir::StepError*) { running_extremum<true>(in, out, attrs); }
void cummin(Arrays in, Arrays out, const ir::Attrs& attrs, ir::StepError*) { running_extremum<false>(in, out, attrs); }

void sort(Arrays in, Arrays out, const ir::Attrs& attrs, ir::StepError*) {
  const auto axis = static_cast<int>(attrs.integer("axis"));
  const bool descending = attrs.flag("descending");
  const std::int64_t n = in[0].shape[axis], count = out[0].shape[axis];
  std::vector<std::int64_t> order(static_cast<std::size_t>(n));
  std::vector<std::int64_t> bases;
  for_each_line(out[0].shape, axis, [&](std::int64_t at, std::int64_t) { bases.push_back(at); });
  dispatch(in[0].dtype, [&](auto tag) {
    using T = decltype(tag);
    std::size_t line = 0;
    for_each_line(in[0].shape, axis, [&](std::int64_t at, std::int64_t step) {
      const T* x = in[0].as<T>() + at;
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(), [&](std::int64_t i, std::int64_t j) {
        const auto a = ordered(x[i * step]), b = ordered(x[j * step]);
        if (a != a || b != b) return descending ? a != a && b == b : a == a && b != b;
        return descending ? a > b : a < b;
      });
      if (count == 0) return;
      const std::int64_t to = bases[line++];
      for (std::int64_t i = 0; i < count; ++i) {
        out[0].as<T>()[to + i * step] = x[order[static_cast<std::size_t>(i)] * step];
        out[1].as<std::int64_t>()[to + i * step] = order[static_cast<std::size_t>(i)];
      }
    });
  });
}

}  // namespace undertow::ops::reference
