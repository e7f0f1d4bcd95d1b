// SPDX-License-Identifier: Apache-2.0
// nn: convolutions.
#include "undertow/train/conv_layers.h"

#include "python/src/bind_layer.h"

namespace undertow::python {
namespace {

const char* flag(bool b) { return b ? "True" : "False"; }

template <typename C>
void represent(C& c) {
  c.def("extend_repr", [](const typename C::Type& cell) {
    const auto& s = cell.spec();
    return fmt::format(
        "input_channels={}, output_channels={}, kernel_size=({}{}), stride=({}{}), pad_mode={}, padding={}, "
        "dilation=({}{}), group={}, has_bias={}",
        s.in, s.out, fmt::join(s.kernel, ", "), s.kernel.size() == 1 ? "," : "", fmt::join(s.stride, ", "),
        s.stride.size() == 1 ? "," : "", s.pad_mode, s.padding[0], fmt::join(s.dilation, ", "),
        s.dilation.size() == 1 ? "," : "", s.group, flag(cell.get_param("bias").defined()));
  });
}

constexpr const char* kDoc =
    "Convolution of (N, C, spatial...). Parameters: weight (out, in / group, kernel...), bias (out,). pad_mode 'same' "
    "gives ceil(in / stride) outputs, 'valid' pads nothing, 'pad' takes `padding`.";
constexpr const char* kTransposedDoc =
    "Transposed convolution of (N, C, spatial...). Parameters: weight (in, out / group, kernel...), bias (out,). "
    "pad_mode 'same' gives in * stride outputs, 'pad' takes `padding`.";

template <std::size_t N>
void bind_conv(nb::module_& m, const char* name) {
  using O = nn::ConvOptions<N>;
  const At<std::int64_t, std::int64_t, nn::Extents<N>> at{{"in_channels", "out_channels", "kernel_size"}};
  if constexpr (N == 1) {
    auto c = bind_layer<nn::ConvCell<N>, O>(
        m, name, kDoc, at, field("stride", &O::stride), field("pad_mode", &O::pad_mode), field("padding", &O::padding),
        field("dilation", &O::dilation), field("group", &O::group), field("has_bias", &O::has_bias),
        field("weight_init", &O::weight_init), field("bias_init", &O::bias_init), field("dtype", &O::dtype));
    represent(c);
  } else {
    auto c = bind_layer<nn::ConvCell<N>, O>(
        m, name, kDoc, at, field("stride", &O::stride), field("pad_mode", &O::pad_mode), field("padding", &O::padding),
        field("dilation", &O::dilation), field("group", &O::group), field("has_bias", &O::has_bias),
        field("weight_init", &O::weight_init), field("bias_init", &O::bias_init), field("data_format", &O::data_format),
        field("dtype", &O::dtype));
    represent(c);
  }
}

}  // namespace

void bind_conv_layers(nb::module_& m) {
  bind_conv<1>(m, "Conv1d");
  bind_conv<2>(m, "Conv2d");
  bind_conv<3>(m, "Conv3d");
  {
    using O = nn::ConvTransposeOptions<1>;
    auto c = bind_layer<nn::ConvTransposeCell<1>, O>(
        m, "Conv1dTranspose", kTransposedDoc,
        At<std::int64_t, std::int64_t, nn::Extents<1>>{{"in_channels", "out_channels", "kernel_size"}},
        field("stride", &O::stride), field("pad_mode", &O::pad_mode), field("padding", &O::padding),
        field("dilation", &O::dilation), field("group", &O::group), field("has_bias", &O::has_bias),
        field("weight_init", &O::weight_init), field("bias_init", &O::bias_init), field("dtype", &O::dtype));
    represent(c);
  }
  {
    using O = nn::ConvTransposeOptions<2>;
    auto c = bind_layer<nn::ConvTransposeCell<2>, O>(
        m, "Conv2dTranspose", kTransposedDoc,
        At<std::int64_t, std::int64_t, nn::Extents<2>>{{"in_channels", "out_channels", "kernel_size"}},
        field("stride", &O::stride), field("pad_mode", &O::pad_mode), field("padding", &O::padding),
        field("output_padding", &O::output_padding), field("dilation", &O::dilation), field("group", &O::group),
        field("has_bias", &O::has_bias), field("weight_init", &O::weight_init), field("bias_init", &O::bias_init),
        field("dtype", &O::dtype));
    represent(c);
  }
  {
    using O = nn::ConvTransposeOptions<3>;
    auto c = bind_layer<nn::ConvTransposeCell<3>, O>(
        m, "Conv3dTranspose", kTransposedDoc,
        At<std::int64_t, std::int64_t, nn::Extents<3>>{{"in_channels", "out_channels", "kernel_size"}},
        field("stride", &O::stride), field("pad_mode", &O::pad_mode), field("padding", &O::padding),
        field("dilation", &O::dilation), field("group", &O::group), field("output_padding", &O::output_padding),
        field("has_bias", &O::has_bias), field("weight_init", &O::weight_init), field("bias_init", &O::bias_init),
        field("data_format", &O::data_format), field("dtype", &O::dtype));
    represent(c);
  }
}

}  // namespace undertow::python
