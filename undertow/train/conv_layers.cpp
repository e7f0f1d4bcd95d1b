// SPDX-License-Identifier: Apache-2.0
#include "undertow/train/conv_layers.h"

#include <algorithm>
#include <cmath>

#include "undertow/base/check.h"
#include "undertow/ops/image.h"
#include "undertow/ops/ops.h"
#include "undertow/ops/window.h"

namespace undertow::nn {
namespace {

using Ints = std::vector<std::int64_t>;

void require_positive(const char* cls, const char* argument, const Ints& values) {
  UNDERTOW_CHECK(*std::min_element(values.begin(), values.end()) > 0, ValueError,
                 "{}: '{}' must be positive but is ({})", cls, argument, fmt::join(values, ", "));
}

Ints spatial(const Tensor& x) { return {x.shape().begin() + 2, x.shape().end()}; }

}  // namespace

ConvCellBase::ConvCellBase(const char* cls, Spec spec, bool has_bias, const Init& weight, const Init& bias,
                           const std::string& format, DType dtype)
    : spec_(std::move(spec)) {
  const Spec& s = spec_;
  require_positive(cls, "in_channels", {s.in});
  require_positive(cls, "out_channels", {s.out});
  require_positive(cls, "kernel_size", s.kernel);
  require_positive(cls, "stride", s.stride);
  require_positive(cls, "dilation", s.dilation);
  require_positive(cls, "group", {s.group});
  UNDERTOW_CHECK(format == "NCHW" || (format == "NCDHW" && s.kernel.size() == 3), ValueError,
                 "{}: data_format '{}' is not supported; use {}", cls, format, s.kernel.size() == 3 ? "NCDHW" : "NCHW");
  UNDERTOW_CHECK(*std::min_element(s.padding.begin(), s.padding.end()) >= 0, ValueError,
                 "{}: padding must not be negative but is ({})", cls, fmt::join(s.padding, ", "));
  UNDERTOW_CHECK(s.in % s.group == 0 && s.out % s.group == 0, ValueError,
                 "{}: in_channels = {} and out_channels = {} must be multiples of group = {}", cls, s.in, s.out,
                 s.group);
  const Ints some(s.kernel.size(), 1);
  if (s.transposed)
    ops::transposed_window(s.pad_mode, s.padding, s.output_padding, some, some, s.stride, s.dilation, cls);
  else ops::window_pads(s.pad_mode, s.padding, some, some, some, some, cls);

  Ints shape = s.transposed ? Ints{s.in, s.out / s.group} : Ints{s.out, s.in / s.group};
  if (s.kernel.size() == 1) shape.push_back(1);
  shape.insert(shape.end(), s.kernel.begin(), s.kernel.end());
  double fan_in = static_cast<double>(shape[1]);
  for (const auto k : s.kernel) fan_in *= static_cast<double>(k);
  Init weight_init = weight.or_else(common::HeUniform(std::sqrt(5.0)));
  if (s.kernel.size() == 1 && weight_init.kind() == Init::Kind::kTensor && weight_init.tensor().ndim() == 3)
    weight_init = Init(ops::expand_dims(weight_init.tensor(), 2));
  insert_param("weight", Parameter(common::initializer(weight_init, Shape(shape), dtype), "weight"));
  if (has_bias)
    insert_param("bias", Parameter(common::initializer(bias.or_else(common::Uniform(1.0 / std::sqrt(fan_in))),
                                                       Shape{s.out}, dtype),
                                   "bias"));
}

Tensor ConvCellBase::construct(const Tensor& x) {
  const Spec& s = spec_;
  const auto rank = s.kernel.size();
  Tensor weight = get_param("weight");
  UNDERTOW_CHECK(x.ndim() == static_cast<int>(rank) + 2, ShapeError,
                 "{}: expected an input of {} dimensions (batch, channels{}) but its shape is {}", where(), rank + 2,
                 rank == 1   ? ", length"
                 : rank == 2 ? ", height, width"
                             : ", depth, height, width",
                 x.shape().str());
  UNDERTOW_CHECK(x.shape(1) == s.in, ShapeError,
                 "{}: the input must have in_channels = {} channels, but the input has shape {} and the weight {}",
                 where(), s.in, x.shape().str(), weight.shape().str());
  if (rank == 1) weight = ops::squeeze(weight, {2});
  Tensor y;
  if (s.transposed) {
    y = transposed(x, weight);
  } else {
    const Ints pads = ops::window_pads(s.pad_mode, s.padding, spatial(x), s.kernel, s.stride, s.dilation, where());
    for (std::size_t i = 0; i < rank; ++i)
      UNDERTOW_CHECK(
          x.shape(2 + static_cast<int>(i)) + pads[2 * i] + pads[2 * i + 1] >= (s.kernel[i] - 1) * s.dilation[i] + 1,
          ShapeError,
          "{}: a window of {} (dilation {}) does not fit into an input of shape {} with padding "
          "({})",
          where(), fmt::join(s.kernel, " x "), fmt::join(s.dilation, " x "), x.shape().str(), fmt::join(pads, ", "));
    y = ops::conv(x, weight, {.strides = s.stride, .pads = pads, .dilations = s.dilation, .groups = s.group});
  }
  if (const Parameter bias = get_param("bias"); bias.defined()) {
    Ints shape(rank + 1, 1);
    shape[0] = s.out;
    y = ops::add(y, ops::reshape(bias, shape));
  }
  if (!s.transposed || rank != 2) return y;
  // In two dimensions MindSpore's output_padding is zeros around the result.
  return ops::pad_last(y, {0, s.output_padding[1], 0, s.output_padding[0]}, "constant");
}

Tensor ConvCellBase::transposed(const Tensor& x, const Tensor& weight) const {
  const Spec& s = spec_;
  const bool two = s.kernel.size() == 2;
  const auto w = ops::transposed_window(s.pad_mode, s.padding, two ? Ints{} : s.output_padding, spatial(x), s.kernel,
                                        s.stride, s.dilation, where());
  return ops::conv_transpose(
      x, weight, {.strides = s.stride, .pads = w.pads, .dilations = s.dilation, .groups = s.group}, w.output);
}

}  // namespace undertow::nn
