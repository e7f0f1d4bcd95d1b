// SPDX-License-Identifier: Apache-2.0
// nn: pooling.
#include "undertow/train/pool_layers.h"

#include "python/src/bind_layer.h"

namespace undertow::python {
namespace {

namespace fn = nn::fn;

constexpr const char* kMax = "Largest of each window; NaN wins. The stride is 1 unless told.";
constexpr const char* kAvg = "Mean of each window. The stride is 1 unless told.";

template <std::size_t N, typename... More>
void bind_max(nb::module_& m, More... more) {
  using F = fn::MaxPool<N>;
  bind_function<F>(m, kMax, field("kernel_size", &F::kernel_size), field("stride", &F::stride),
                   field("pad_mode", &F::pad_mode), field("padding", &F::padding), field("dilation", &F::dilation),
                   field("return_indices", &F::return_indices), field("ceil_mode", &F::ceil_mode), more...);
}

template <std::size_t N, typename... More>
void bind_avg(nb::module_& m, More... more) {
  using F = fn::AvgPool<N>;
  bind_function<F>(m, kAvg, field("kernel_size", &F::kernel_size), field("stride", &F::stride),
                   field("pad_mode", &F::pad_mode), field("padding", &F::padding), field("ceil_mode", &F::ceil_mode),
                   field("count_include_pad", &F::count_include_pad), more...);
}

template <std::size_t N>
void bind_unpool(nb::module_& m) {
  using F = fn::MaxUnpool<N>;
  bind_function<F>(m, "Puts values back to where the maximum pooling found them, among zeros.",
                   required("kernel_size", &F::kernel_size), field("stride", &F::stride),
                   field("padding", &F::padding));
}

template <std::size_t N>
void bind_lp(nb::module_& m) {
  using F = fn::LPPool<N>;
  bind_function<F>(m, "(sum of x^p)^(1/p) of each window.", required("norm_type", &F::norm_type),
                   required("kernel_size", &F::kernel_size), field("stride", &F::stride),
                   field("ceil_mode", &F::ceil_mode));
}

/// output_size: None, alone or in a tuple, keeps the input's.
template <typename T, typename F>
F adaptive(const char* cls, nb::handle size) {
  constexpr std::size_t count = decltype(F::output_size)::kCount;
  const auto one = [&](nb::handle v) -> std::int64_t {
    if (v.is_none()) return 0;
    if (!PyLong_Check(v.ptr()))
      throw TypeError(fmt::format("{}: output_size must be integers or None, got {}", cls, repr_of(v)));
    const auto n = nb::cast<std::int64_t>(v);
    UNDERTOW_CHECK(n > 0 || n == -1, ValueError, "{}: output_size must be positive but is {}", cls, n);
    return n == -1 ? 0 : n;
  };
  F f{};
  if (!PyTuple_Check(size.ptr()) && !PyList_Check(size.ptr())) {
    f.output_size = decltype(F::output_size)(one(size));
    return f;
  }
  std::vector<std::int64_t> all;
  for (nb::handle v : nb::borrow<nb::object>(size)) all.push_back(one(v));
  UNDERTOW_CHECK(all.size() == count, ValueError, "{}: output_size must be one number or {}, got {}", cls, count,
                 repr_of(size));
  std::copy(all.begin(), all.end(), f.output_size.v.begin());
  return f;
}

template <std::size_t N>
void bind_adaptive(nb::module_& m) {
  using A = fn::AdaptiveAvgPool<N>;
  using AvgCell = nn::FunctionCell<A>;
  cell_class<AvgCell, nn::Cell>(m, A::kName, "Means of windows that make up output_size.")
      .def(
          "__init__",
          [](nb::pointer_and_handle<AvgCell> self, nb::handle size) {
            construct_cell(self, adaptive<AvgCell, A>(A::kName, size));
            nb::setattr(self.h, "output_size", size);
          },
          "output_size"_a.none());
  using M = fn::AdaptiveMaxPool<N>;
  using MaxCell = nn::FunctionCell<M>;
  cell_class<MaxCell, nn::Cell>(m, M::kName, "Maxima of windows that make up output_size.")
      .def(
          "__init__",
          [](nb::pointer_and_handle<MaxCell> self, nb::handle size, bool positions) {
            M f = adaptive<MaxCell, M>(M::kName, size);
            f.return_indices = positions;
            construct_cell(self, f);
            nb::setattr(self.h, "output_size", size);
          },
          "output_size"_a.none(), "return_indices"_a = false);
}

}  // namespace

void bind_pool_layers(nb::module_& m) {
  bind_max<1>(m);
  bind_max<2>(m, field("data_format", &fn::MaxPool<2>::data_format));
  bind_max<3>(m);
  bind_avg<1>(m);
  bind_avg<2>(m, field("divisor_override", &fn::AvgPool<2>::divisor_override),
              field("data_format", &fn::AvgPool<2>::data_format));
  bind_avg<3>(m, field("divisor_override", &fn::AvgPool<3>::divisor_override));
  bind_lp<1>(m);
  bind_lp<2>(m);
  bind_adaptive<1>(m);
  bind_adaptive<2>(m);
  bind_adaptive<3>(m);
  bind_unpool<1>(m);
  bind_unpool<2>(m);
  bind_unpool<3>(m);
}

}  // namespace undertow::python
