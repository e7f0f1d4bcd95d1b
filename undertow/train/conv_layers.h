// SPDX-License-Identifier: Apache-2.0
// train/conv_layers.h: convolutions over 1, 2 or 3 dimensions, and their transposes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "undertow/train/cell.h"
#include "undertow/train/extents.h"
#include "undertow/train/initializer.h"

namespace undertow::nn {

using common::Init;

template <std::size_t N>
struct ConvOptions {
  Extents<N> stride = 1;
  std::string pad_mode = "same";  ///< "same", "valid" or "pad"
  Paddings<N> padding = 0;        ///< only with "pad"
  Extents<N> dilation = 1;
  std::int64_t group = 1;
  bool has_bias = false;
  Init weight_init;  ///< default: HeUniform(sqrt(5))
  Init bias_init;    ///< default: U(-1/sqrt(fan_in), 1/sqrt(fan_in))
  std::string data_format = N == 3 ? "NCDHW" : "NCHW";
  DType dtype = DType::kFloat32;
};
template <std::size_t N>
struct ConvTransposeOptions {
  Extents<N> stride = 1;
  std::string pad_mode = "same";
  Paddings<N> padding = 0;
  Extents<N> output_padding = 0;  ///< further positions at the end; only with "pad"
  Extents<N> dilation = 1;
  std::int64_t group = 1;
  bool has_bias = false;
  Init weight_init, bias_init;  ///< as ConvOptions
  std::string data_format = N == 3 ? "NCDHW" : "NCHW";
  DType dtype = DType::kFloat32;
};

/// What all of them are. x (N, C, spatial...). Parameters: weight [out, in/group, k...], transposed [in, out/group,
/// k...] (with one dimension k is (1, k), as MindSpore keeps it); bias [out].
class ConvCellBase : public Cell {
 public:
  struct Spec {
    std::int64_t in, out, group;
    std::vector<std::int64_t> kernel, stride, padding, dilation, output_padding;
    std::string pad_mode;
    bool transposed;
  };
  Tensor construct(const Tensor& x) override;
  const Spec& spec() const { return spec_; }

 protected:
  ConvCellBase(const char* cls, Spec spec, bool has_bias, const Init& weight, const Init& bias,
               const std::string& format, DType dtype);

 private:
  Tensor transposed(const Tensor& x, const Tensor& weight) const;
  Spec spec_;
};

template <std::size_t N>
class ConvCell : public ConvCellBase {
 public:
  using Options = ConvOptions<N>;
  ConvCell(std::int64_t in_channels, std::int64_t out_channels, Extents<N> kernel_size, const Options& o = {})
      : ConvCellBase(kName,
                     {in_channels,
                      out_channels,
                      o.group,
                      kernel_size.list(),
                      o.stride.list(),
                      o.padding.list(),
                      o.dilation.list(),
                      {},
                      o.pad_mode,
                      false},
                     o.has_bias, o.weight_init, o.bias_init, o.data_format, o.dtype) {}
  std::string cls_name() const override { return kName; }

 private:
  static constexpr const char* kName = N == 1 ? "Conv1d" : N == 2 ? "Conv2d" : "Conv3d";
};

template <std::size_t N>
class ConvTransposeCell : public ConvCellBase {
 public:
  using Options = ConvTransposeOptions<N>;
  ConvTransposeCell(std::int64_t in_channels, std::int64_t out_channels, Extents<N> kernel_size, const Options& o = {})
      : ConvCellBase(kName,
                     {in_channels, out_channels, o.group, kernel_size.list(), o.stride.list(), o.padding.list(),
                      o.dilation.list(), o.output_padding.list(), o.pad_mode, true},
                     o.has_bias, o.weight_init, o.bias_init, o.data_format, o.dtype) {}
  std::string cls_name() const override { return kName; }

 private:
  static constexpr const char* kName = N == 1 ? "Conv1dTranspose" : N == 2 ? "Conv2dTranspose" : "Conv3dTranspose";
};

/// Conv2d(3, 8, 3, {.stride = 2, .pad_mode = "pad", .padding = 1})
template <typename T, std::size_t N>
class ConvHandle : public Handle<T> {
 public:
  ConvHandle(std::int64_t in_channels, std::int64_t out_channels, Extents<N> kernel_size,
             const typename T::Options& options = {})
      : Handle<T>(make_ref<T>(in_channels, out_channels, kernel_size, options)) {}
  Parameter weight() const { return this->ref()->get_param("weight"); }
  Parameter bias() const { return this->ref()->get_param("bias"); }
};
using Conv1d = ConvHandle<ConvCell<1>, 1>;
using Conv2d = ConvHandle<ConvCell<2>, 2>;
using Conv3d = ConvHandle<ConvCell<3>, 3>;
using Conv1dTranspose = ConvHandle<ConvTransposeCell<1>, 1>;
using Conv2dTranspose = ConvHandle<ConvTransposeCell<2>, 2>;
using Conv3dTranspose = ConvHandle<ConvTransposeCell<3>, 3>;

}  // namespace undertow::nn
