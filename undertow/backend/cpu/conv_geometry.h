// SPDX-License-Identifier: Apache-2.0
// backend/cpu/conv_geometry.h: the numbers of a convolution or pooling node, whatever the layout of its tensors.
#pragma once

#include <cstdint>

#include "undertow/backend/cpu/kernel.h"

namespace undertow::backend::cpu {

struct ConvGeometry {
  std::int64_t n, c, h, w;      // input
  std::int64_t o, oh, ow;       // output
  std::int64_t kh, kw;          // window
  std::int64_t sh, sw, dh, dw;  // strides, dilations
  std::int64_t top, bottom, left, right;
  std::int64_t groups;
  bool nhwc;
  std::int64_t block;  // channels of a block (ops/channel_blocks.h); 0: plain

  std::int64_t group_c() const { return c / groups; }
  std::int64_t group_o() const { return o / groups; }
  double flops() const { return 2.0 * static_cast<double>(n * o * oh * ow) * static_cast<double>(group_c() * kh * kw); }
  bool padded() const { return top > 0 || bottom > 0 || left > 0 || right > 0; }
};

/// Of conv2d and its two gradients, from the shapes of x, w and y.
ConvGeometry conv_geometry(const NodeView& node, const Shape& x, const Shape& w, const Shape& y);
/// Of the pooling ops: o = c, groups = c.
ConvGeometry pool_geometry(const NodeView& node, const Shape& x, const Shape& y);

}  // namespace undertow::backend::cpu
