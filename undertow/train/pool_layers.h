// SPDX-License-Identifier: Apache-2.0
// train/pool_layers.h: pooling over 1, 2 or 3 dimensions. Inputs are (N, C, spatial...), or (C, spatial...).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "undertow/train/extents.h"
#include "undertow/train/function_cell.h"

namespace undertow::nn {

namespace fn {

constexpr const char* numbered(const char* one, const char* two, const char* three, std::size_t n) {
  return n == 1 ? one : n == 2 ? two : three;
}

/// Largest of each window; NaN wins. return_indices: also its position in the flattened spatial dimensions (int64).
template <std::size_t N>
struct MaxPool {
  static constexpr const char* kName = numbered("MaxPool1d", "MaxPool2d", "MaxPool3d", N);
  Extents<N> kernel_size = 1, stride = 1;
  std::string pad_mode = "valid";  ///< "same", "valid" or "pad"
  Paddings<N> padding = 0;         ///< only with "pad"; at most half the kernel
  Extents<N> dilation = 1;
  bool return_indices = false;
  bool ceil_mode = false;
  std::string data_format = "NCHW";
  void check() const;
  Value operator()(const Tensor& x) const;
};

/// Mean of each window.
template <std::size_t N>
struct AvgPool {
  static constexpr const char* kName = numbered("AvgPool1d", "AvgPool2d", "AvgPool3d", N);
  Extents<N> kernel_size = 1, stride = 1;
  std::string pad_mode = "valid";
  Paddings<N> padding = 0;
  bool ceil_mode = false;
  bool count_include_pad = true;  ///< with "pad"; "same" never counts its padding
  std::optional<std::int64_t> divisor_override;
  std::string data_format = "NCHW";
  void check() const;
  Tensor operator()(const Tensor& x) const;
};

template <std::size_t N>
struct LPPool {
  static constexpr const char* kName = N == 1 ? "LPPool1d" : "LPPool2d";
  double norm_type = 2;
  Extents<N> kernel_size = 1;
  std::optional<Extents<N>> stride;  ///< default: the kernel
  bool ceil_mode = false;
  void check() const;
  Tensor operator()(const Tensor& x) const;
};

/// output_size: one number, or one a dimension; 0 keeps the input's.
template <std::size_t N>
struct AdaptiveAvgPool {
  static constexpr const char* kName = numbered("AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", N);
  Extents<N> output_size = 1;
  Tensor operator()(const Tensor& x) const;
};
template <std::size_t N>
struct AdaptiveMaxPool {
  static constexpr const char* kName = numbered("AdaptiveMaxPool1d", "AdaptiveMaxPool2d", "AdaptiveMaxPool3d", N);
  Extents<N> output_size = 1;
  bool return_indices = false;
  Value operator()(const Tensor& x) const;
};

/// Puts values back to where MaxPool found them, among zeros. output_size (of the spatial dimensions, or of all) where
/// several sizes are possible.
template <std::size_t N>
struct MaxUnpool {
  static constexpr const char* kName = numbered("MaxUnpool1d", "MaxUnpool2d", "MaxUnpool3d", N);
  static constexpr const char* kInputs[] = {"x", "indices", "output_size"};
  Extents<N> kernel_size = 1;
  std::optional<Extents<N>> stride;  ///< default: the kernel
  Extents<N> padding = 0;
  Tensor operator()(const Tensor& x, const Tensor& indices, const std::optional<Value>& output_size) const;
};

}  // namespace fn

using MaxPool1d = FunctionHandle<fn::MaxPool<1>>;
using MaxPool2d = FunctionHandle<fn::MaxPool<2>>;
using MaxPool3d = FunctionHandle<fn::MaxPool<3>>;
using AvgPool1d = FunctionHandle<fn::AvgPool<1>>;
using AvgPool2d = FunctionHandle<fn::AvgPool<2>>;
using AvgPool3d = FunctionHandle<fn::AvgPool<3>>;
using LPPool1d = FunctionHandle<fn::LPPool<1>>;
using LPPool2d = FunctionHandle<fn::LPPool<2>>;
using AdaptiveAvgPool1d = FunctionHandle<fn::AdaptiveAvgPool<1>>;
using AdaptiveAvgPool2d = FunctionHandle<fn::AdaptiveAvgPool<2>>;
using AdaptiveAvgPool3d = FunctionHandle<fn::AdaptiveAvgPool<3>>;
using AdaptiveMaxPool1d = FunctionHandle<fn::AdaptiveMaxPool<1>>;
using AdaptiveMaxPool2d = FunctionHandle<fn::AdaptiveMaxPool<2>>;
using AdaptiveMaxPool3d = FunctionHandle<fn::AdaptiveMaxPool<3>>;
using MaxUnpool1d = FunctionHandle<fn::MaxUnpool<1>>;
using MaxUnpool2d = FunctionHandle<fn::MaxUnpool<2>>;
using MaxUnpool3d = FunctionHandle<fn::MaxUnpool<3>>;

}  // namespace undertow::nn
