// SPDX-License-Identifier: Apache-2.0
#include "undertow/train/pool_layers.h"

#include <algorithm>
#include <cctype>

#include "undertow/base/check.h"
#include "undertow/ops/window.h"

namespace undertow::nn::fn {
namespace {

using Ints = std::vector<std::int64_t>;

void require_positive(const char* cls, const char* argument, const Ints& values) {
  UNDERTOW_CHECK(*std::min_element(values.begin(), values.end()) > 0, ValueError,
                 "{}: '{}' must be positive but is ({})", cls, argument, fmt::join(values, ", "));
}

bool is_pad(const std::string& mode) {
  return mode.size() == 3 && std::tolower(static_cast<unsigned char>(mode[0])) == 'p';
}

/// What both kinds of pooling check when they are made.
template <typename F>
void check_window(const F& f, const Ints& dilation) {
  const Ints kernel = f.kernel_size.list(), padding = f.padding.list();
  require_positive(F::kName, "kernel_size", kernel);
  require_positive(F::kName, "stride", f.stride.list());
  require_positive(F::kName, "dilation", dilation);
  const Ints ones(kernel.size(), 1);
  ops::window_pads(f.pad_mode, padding, kernel, kernel, ones, ones, F::kName);
  for (std::size_t i = 0; i < padding.size(); ++i)
    UNDERTOW_CHECK(padding[i] >= 0 && padding[i] <= ((kernel[i / 2] - 1) * dilation[i / 2] + 1) / 2, ValueError,
                   "{}: padding must be at least 0 and at most half the kernel of ({}) but is ({})", F::kName,
                   fmt::join(kernel, ", "), fmt::join(padding, ", "));
  UNDERTOW_CHECK(!f.ceil_mode || is_pad(f.pad_mode), ValueError,
                 "{}: ceil_mode=True needs pad_mode 'pad', but pad_mode is '{}'", F::kName, f.pad_mode);
  UNDERTOW_CHECK(f.data_format == "NCHW", ValueError, "{}: data_format '{}' is not supported; use NCHW", F::kName,
                 f.data_format);
}

template <typename F, std::size_t N>
ops::PoolNdOptions window(const F& f, const Tensor& x, const Ints& dilation) {
  const int first = x.ndim() - static_cast<int>(N);
  UNDERTOW_CHECK(first == 1 || first == 2, ShapeError,
                 "{}: the input must have {} or {} dimensions but its shape is {}", F::kName, N + 1, N + 2,
                 x.shape().str());
  const Ints extents(x.shape().begin() + first, x.shape().end()), kernel = f.kernel_size.list();
  return {.kernel = kernel,
          .strides = f.stride.list(),
          .pads = ops::window_pads(f.pad_mode, f.padding.list(), extents, kernel, f.stride.list(), dilation, F::kName),
          .dilations = dilation,
          .ceil_mode = f.ceil_mode};
}

/// A single result, or the pair with positions.
Value result(bool positions, const std::pair<Tensor, Tensor>& both) {
  return positions ? detail::to_result(both) : Value(both.first);
}

}  // namespace

template <std::size_t N>
void MaxPool<N>::check() const {
  check_window(*this, dilation.list());
}
template <std::size_t N>
Value MaxPool<N>::operator()(const Tensor& x) const {
  const auto o = window<MaxPool, N>(*this, x, dilation.list());
  if (!return_indices) return Value(ops::max_pool(x, o));
  return result(true, ops::max_pool_positions(x, o));
}

template <std::size_t N>
void AvgPool<N>::check() const {
  check_window(*this, Ints(N, 1));
  UNDERTOW_CHECK(!divisor_override || *divisor_override > 0, ValueError,
                 "{}: 'divisor_override' must be positive but is {}", kName, *divisor_override);
}
template <std::size_t N>
Tensor AvgPool<N>::operator()(const Tensor& x) const {
  auto o = window<AvgPool, N>(*this, x, Ints(N, 1));
  o.count_include_pad = count_include_pad && is_pad(pad_mode);
  o.divisor = divisor_override;
  o.dilations.clear();
  return ops::avg_pool(x, o);
}

template <std::size_t N>
void LPPool<N>::check() const {
  UNDERTOW_CHECK(norm_type != 0, ValueError, "{}: 'norm_type' must not be 0", kName);
  require_positive(kName, "kernel_size", kernel_size.list());
}
template <std::size_t N>
Tensor LPPool<N>::operator()(const Tensor& x) const {
  ops::PoolNdOptions o{.kernel = kernel_size.list()};
  if (stride) o.strides = stride->list();
  o.ceil_mode = ceil_mode;
  return ops::lp_pool(x, norm_type, o);
}

template <std::size_t N>
Tensor AdaptiveAvgPool<N>::operator()(const Tensor& x) const {
  return ops::adaptive_avg_pool(x, output_size.list());
}
template <std::size_t N>
Value AdaptiveMaxPool<N>::operator()(const Tensor& x) const {
  if (!return_indices) return Value(ops::adaptive_max_pool(x, output_size.list()));
  return result(true, ops::adaptive_max_pool_positions(x, output_size.list()));
}

template <std::size_t N>
Tensor MaxUnpool<N>::operator()(const Tensor& x, const Tensor& indices, const std::optional<Value>& output_size) const {
  const Ints k = kernel_size.list(), s = stride ? stride->list() : k, p = padding.list();
  Ints size;
  if (output_size) {
    for (const Value& v : output_size->list()) size.push_back(detail::scalar<std::int64_t>(v));
    UNDERTOW_CHECK(size.size() >= N, ValueError, "{}: 'output_size' must have {} numbers or more, got {}", kName, N,
                   size.size());
    size.erase(size.begin(), size.end() - static_cast<std::ptrdiff_t>(N));
  } else {
    UNDERTOW_CHECK(x.ndim() > static_cast<int>(N), ShapeError, "{}: the input must have {} or {} dimensions, got {}",
                   kName, N + 1, N + 2, x.shape().str());
    for (std::size_t i = 0; i < N; ++i)
      size.push_back((x.shape(x.ndim() - static_cast<int>(N - i)) - 1) * s[i] - 2 * p[i] + k[i]);
  }
  return ops::max_unpool(x, indices, size);
}

#define UNDERTOW_INSTANTIATE(N)       \
  template struct MaxPool<N>;         \
  template struct AvgPool<N>;         \
  template struct AdaptiveAvgPool<N>; \
  template struct AdaptiveMaxPool<N>; \
  template struct MaxUnpool<N>;
UNDERTOW_INSTANTIATE(1)
UNDERTOW_INSTANTIATE(2)
UNDERTOW_INSTANTIATE(3)
#undef UNDERTOW_INSTANTIATE
template struct LPPool<1>;
template struct LPPool<2>;

}  // namespace undertow::nn::fn
