// SPDX-License-Identifier: Apache-2.0
// Layers with a window over height and width.
#include <algorithm>
#include <cctype>
#include <cmath>

#include "undertow/base/check.h"
#include "undertow/ops/ops.h"
#include "undertow/train/layers.h"

namespace undertow::nn {
namespace {

enum class PadMode { kSame, kValid, kPad };

PadMode pad_mode_of(const char* cls, std::string name, const Padding& padding) {
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  UNDERTOW_CHECK(name == "same" || name == "valid" || name == "pad", ValueError,
                 "{}: pad_mode must be 'same', 'valid' or 'pad' but is '{}'", cls, name);
  UNDERTOW_CHECK(name == "pad" || padding.none(), ValueError,
                 "{}: padding must be 0 unless pad_mode is 'pad', but padding is ({}, {}, {}, {}) with pad_mode '{}'",
                 cls, padding.top, padding.bottom, padding.left, padding.right, name);
  UNDERTOW_CHECK(std::min({padding.top, padding.bottom, padding.left, padding.right}) >= 0, ValueError,
                 "{}: padding must not be negative but is ({}, {}, {}, {})", cls, padding.top, padding.bottom,
                 padding.left, padding.right);
  return name == "same" ? PadMode::kSame : name == "valid" ? PadMode::kValid : PadMode::kPad;
}

void require_positive(const char* cls, const char* argument, IntPair v) {
  UNDERTOW_CHECK(v.h > 0 && v.w > 0, ValueError, "{}: '{}' must be positive but is ({}, {})", cls, argument, v.h, v.w);
}

void require_nchw(const char* cls, const std::string& format) {
  UNDERTOW_CHECK(format == "NCHW", ValueError, "{}: data_format '{}' is not supported; use NCHW", cls, format);
}

struct Window {
  PadMode mode;
  IntPair kernel, stride, dilation;
  Padding padding;
};

/// Top, bottom, left, right. "same": the output has ceil(extent / stride) places, extra padding at bottom and right.
std::vector<std::int64_t> pads_for(const Cell& cell, const Window& w, const Tensor& x) {
  const auto pads_of = [&](std::int64_t extent, std::int64_t k, std::int64_t s, std::int64_t d, std::int64_t low,
                           std::int64_t high) -> std::pair<std::int64_t, std::int64_t> {
    const std::int64_t reach = (k - 1) * d + 1;
    if (w.mode == PadMode::kSame) {
      const std::int64_t out = (extent + s - 1) / s, total = std::max<std::int64_t>((out - 1) * s + reach - extent, 0);
      return {total / 2, total - total / 2};
    }
    UNDERTOW_CHECK(
        extent + low + high >= reach, ShapeError,
        "{}: a window of {} x {} (dilation {} x {}) does not fit into an input of shape {} with padding ({}, {}, "
        "{}, {})",
        cell.where(), w.kernel.h, w.kernel.w, w.dilation.h, w.dilation.w, x.shape().str(), w.padding.top,
        w.padding.bottom, w.padding.left, w.padding.right);
    return {low, high};
  };
  const auto [top, bottom] = pads_of(x.shape(2), w.kernel.h, w.stride.h, w.dilation.h, w.padding.top, w.padding.bottom);
  const auto [left, right] = pads_of(x.shape(3), w.kernel.w, w.stride.w, w.dilation.w, w.padding.left, w.padding.right);
  return {top, bottom, left, right};
}

void require_image(const Cell& cell, const Tensor& x) {
  UNDERTOW_CHECK(x.ndim() == 4, ShapeError,
                 "{}: expected an input of 4 dimensions (batch, channels, height, width) but its shape is {}",
                 cell.where(), x.shape().str());
}

ops::PoolOptions pool_options(const Cell& cell, const char* cls, IntPair kernel, IntPair stride,
                              const std::string& mode, const Padding& padding, const Tensor& x) {
  require_image(cell, x);
  const Window w{pad_mode_of(cls, mode, padding), kernel, stride, 1, padding};
  return {.kernel = {kernel.h, kernel.w}, .strides = {stride.h, stride.w}, .pads = pads_for(cell, w, x)};
}

template <typename Options>
void check_pool(const char* cls, const Options& o) {
  require_positive(cls, "kernel_size", o.kernel_size);
  require_positive(cls, "stride", o.stride);
  require_nchw(cls, o.data_format);
  pad_mode_of(cls, o.pad_mode, o.padding);
  UNDERTOW_CHECK(std::max(o.padding.top, o.padding.bottom) <= o.kernel_size.h / 2 &&
                     std::max(o.padding.left, o.padding.right) <= o.kernel_size.w / 2,
                 ValueError, "{}: padding must be at most half the kernel of {} x {} but is ({}, {}, {}, {})", cls,
                 o.kernel_size.h, o.kernel_size.w, o.padding.top, o.padding.bottom, o.padding.left, o.padding.right);
}

}  // namespace

// ---- Conv2d
Conv2dCell::Conv2dCell(std::int64_t in_channels, std::int64_t out_channels, IntPair kernel_size, const Conv2dOptions& o)
    : in_(in_channels), out_(out_channels), kernel_(kernel_size), options_(o) {
  require_positive("Conv2d", "in_channels", in_);
  require_positive("Conv2d", "out_channels", out_);
  require_positive("Conv2d", "kernel_size", kernel_);
  require_positive("Conv2d", "stride", o.stride);
  require_positive("Conv2d", "dilation", o.dilation);
  require_positive("Conv2d", "group", o.group);
  require_nchw("Conv2d", o.data_format);
  pad_mode_of("Conv2d", o.pad_mode, o.padding);
  UNDERTOW_CHECK(in_ % o.group == 0 && out_ % o.group == 0, ValueError,
                 "Conv2d: in_channels = {} and out_channels = {} must be multiples of group = {}", in_, out_, o.group);
  const Shape shape{out_, in_ / o.group, kernel_.h, kernel_.w};
  const double fan_in = static_cast<double>(shape[1] * kernel_.h * kernel_.w);
  const Init weight = o.weight_init.or_else(common::HeUniform(std::sqrt(5.0)));
  insert_param("weight", Parameter(common::initializer(weight, shape, o.dtype), "weight"));
  if (o.has_bias) {
    const Init bias = o.bias_init.or_else(common::Uniform(1.0 / std::sqrt(fan_in)));
    insert_param("bias", Parameter(common::initializer(bias, Shape{out_}, o.dtype), "bias"));
  }
}

Tensor Conv2dCell::construct(const Tensor& x) {
  require_image(*this, x);
  const Parameter weight = get_param("weight");
  UNDERTOW_CHECK(x.shape(1) == in_, ShapeError,
                 "{}: the input must have in_channels = {} channels, but the input has shape {} and the weight {}",
                 where(), in_, x.shape().str(), weight.shape().str());
  const Window w{pad_mode_of("Conv2d", options_.pad_mode, options_.padding), kernel_, options_.stride,
                 options_.dilation, options_.padding};
  Tensor y = ops::conv2d(x, weight,
                         {.strides = {w.stride.h, w.stride.w},
                          .pads = pads_for(*this, w, x),
                          .dilations = {w.dilation.h, w.dilation.w},
                          .groups = options_.group});
  if (const Parameter bias = get_param("bias"); bias.defined()) y = ops::add(y, ops::reshape(bias, {out_, 1, 1}));
  return y;
}

// ---- pooling
MaxPool2dCell::MaxPool2dCell(const MaxPool2dOptions& options) : options_(options) { check_pool("MaxPool2d", options_); }

Tensor MaxPool2dCell::construct(const Tensor& x) {
  const auto& o = options_;
  return ops::max_pool2d(x, pool_options(*this, "MaxPool2d", o.kernel_size, o.stride, o.pad_mode, o.padding, x));
}

AvgPool2dCell::AvgPool2dCell(const AvgPool2dOptions& options) : options_(options) { check_pool("AvgPool2d", options_); }

Tensor AvgPool2dCell::construct(const Tensor& x) {
  const auto& o = options_;
  ops::PoolOptions pool = pool_options(*this, "AvgPool2d", o.kernel_size, o.stride, o.pad_mode, o.padding, x);
  pool.count_include_pad = o.count_include_pad && pad_mode_of("AvgPool2d", o.pad_mode, o.padding) == PadMode::kPad;
  return ops::avg_pool2d(x, pool);
}

}  // namespace undertow::nn
