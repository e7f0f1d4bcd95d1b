// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "undertow/ops/reference/detail.h"
#include "undertow/ops/reference/reference.h"

namespace undertow::ops::reference {
namespace {

/// Strides over the input's dims that lead to the element of the result; 0 along reduced axes.
std::vector<std::int64_t> result_strides(const Shape& x, const std::vector<std::int64_t>& axes) {
  std::vector<std::int64_t> strides(x.size());
  std::int64_t n = 1;
  for (int d = x.rank() - 1; d >= 0; --d) {
    if (std::find(axes.begin(), axes.end(), d) != axes.end()) continue;
    strides[d] = n;
    n *= x[d];
  }
  return strides;
}

template <bool kProd>
void sum_or_prod(Arrays in, Arrays out, const ir::Attrs& attrs) {
  dispatch(in[0].dtype, [&](auto tag) {
    using T = decltype(tag);
    const T* x = in[0].as<T>();
    std::vector<Acc<T>> acc(static_cast<std::size_t>(out[0].shape.numel()), kProd ? 1 : 0);
    walk(in[0].shape, result_strides(in[0].shape, attrs.ints("axes")), 0, [&](std::int64_t i, std::int64_t at) {
      if constexpr (kProd) acc[at] *= widen(x[i]);
      else acc[at] += widen(x[i]);
    });
    dispatch(out[0].dtype, [&](auto to) {  // bool inputs may be counted in an integer
      using U = decltype(to);
      for (std::size_t i = 0; i < acc.size(); ++i) out[0].as<U>()[i] = narrow<U>(acc[i]);
    });
  });
}

template <bool kMax>
void max_or_min(Arrays in, Arrays out, const ir::Attrs& attrs) {
  dispatch(in[0].dtype, [&](auto tag) {
    using T = decltype(tag);
    using O = Ordered<T>;
    using L = std::numeric_limits<O>;
    constexpr O kTop = L::has_infinity ? L::infinity() : std::is_same_v<T, bool> ? O(1) : L::max();
    constexpr O kBottom = L::has_infinity ? -L::infinity() : L::lowest();
    const T* x = in[0].as<T>();
    std::vector<O> acc(static_cast<std::size_t>(out[0].shape.numel()), kMax ? kBottom : kTop);
    walk(in[0].shape, result_strides(in[0].shape, attrs.ints("axes")), 0, [&](std::int64_t i, std::int64_t at) {
      if (beats<kMax>(ordered(x[i]), acc[at])) acc[at] = ordered(x[i]);
    });
    for (std::size_t i = 0; i < acc.size(); ++i) out[0].as<T>()[i] = narrow<T>(acc[i]);
  });
}

template <bool kMax>
void arg_best(Arrays in, Arrays out, const ir::Attrs& attrs) {
  const Shape& s = in[0].shape;
  const auto axis = static_cast<int>(attrs.integer("axis"));
  std::int64_t outer = 1, inner = 1;
  for (int d = 0; d < axis; ++d) outer *= s[d];
  for (int d = axis + 1; d < s.rank(); ++d) inner *= s[d];
  dispatch(in[0].dtype, [&](auto tag) {
    using T = decltype(tag);
    for (std::int64_t o = 0; o < outer; ++o)
      for (std::int64_t i = 0; i < inner; ++i) {
        const T* x = in[0].as<T>() + o * s[axis] * inner + i;
        std::int64_t best = 0;
        for (std::int64_t k = 1; k < s[axis]; ++k)
          if (beats<kMax>(ordered(x[k * inner]), ordered(x[best * inner]))) best = k;
        out[0].as<std::int64_t>()[o * inner + i] = best;
      }
  });
}

}  // namespace

void reduce_sum(Arrays in, Arrays out, const ir::Attrs& attrs, ir::StepError*) { sum_or_prod<false>(in, out, attrs); }
void reduce_prod(Arrays in, Arrays out, const ir::Attrs& attrs, ir::StepError*) { sum_or_prod<true>(in, out, attrs); }
void reduce_max(Arrays in, Arrays out, const ir::Attrs& attrs, ir::StepError*) { max_or_min<true>(in, out, attrs); }
void reduce_min(Arrays in, Arrays out, const ir::Attrs& attrs, ir::StepError*) { max_or_min<false>(in, out, attrs); }
void argmax(Arrays in, Arrays out, const ir::Attrs& attrs, ir::StepError*) { arg_best<true>(in, out, attrs); }
void argmin(Arrays in, Arrays out, const ir::Attrs& attrs, ir::StepError*) { arg_best<false>(in, out, attrs); }

}  // namespace undertow::ops::reference
