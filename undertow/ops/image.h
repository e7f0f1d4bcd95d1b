// SPDX-License-Identifier: Apache-2.0
// ops/image.h: padding modes, resizing, and rearranging of images (N, C, spatial...).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "undertow/tensor/tensor.h"

namespace undertow::ops {

/// Pads (or, where negative, crops) dimension d by low[d] and high[d].
/// mode: "constant" (with `value`), "reflect" (without the edge), "symmetric" (with it), "replicate" or "edge",
/// "circular". Throws ValueError where a mode needs more elements than there are.
Tensor pad_mode(const Tensor& x, const std::vector<std::int64_t>& low, const std::vector<std::int64_t>& high,
                const std::string& mode, double value = 0);
/// The same with paddings as pairs from the last dimension on: (left, right, top, bottom, ...).
Tensor pad_last(const Tensor& x, const std::vector<std::int64_t>& padding, const std::string& mode, double value = 0);

struct InterpolateOptions {
  std::vector<std::int64_t> size;       // spatial extents of the result, or ...
  std::vector<double> scale_factor;     // ... factors of the input's
  std::string mode = "nearest";         // nearest, nearest-exact, linear, bilinear, trilinear, bicubic, area
  bool align_corners = false;           // the corners' centres coincide; otherwise pixels are areas ("half pixel")
  bool recompute_scale_factor = false;  // coordinates follow the size that came out, not the factor given
  bool half_pixel = true;  // false, without align_corners: coordinates are index * scale (legacy Resize ops)
};
/// bicubic (Keys, 1981): with half pixels the parameter is -0.5 and weights outside of the image go to those inside;
/// otherwise it is -0.75 and the edge is repeated.
Tensor interpolate(const Tensor& x, const InterpolateOptions& options);

/// (N, C r^2, H, W) to (N, C, H r, W r), and back.
Tensor pixel_shuffle(const Tensor& x, std::int64_t r);
Tensor pixel_unshuffle(const Tensor& x, std::int64_t r);
/// Channel g * C/groups + i becomes i * groups + g.
Tensor channel_shuffle(const Tensor& x, std::int64_t groups);
/// Sliding windows of (N, C, H, W): (N, C kh kw, windows). Two numbers each; `pads` four.
Tensor unfold(const Tensor& x, const std::vector<std::int64_t>& kernel, const std::vector<std::int64_t>& dilations,
              const std::vector<std::int64_t>& pads, const std::vector<std::int64_t>& strides);
/// Adds windows (N, C kh kw, windows) up into an image of output_size (the gradient of unfold).
Tensor fold(const Tensor& x, const std::vector<std::int64_t>& output_size, const std::vector<std::int64_t>& kernel,
            const std::vector<std::int64_t>& dilations, const std::vector<std::int64_t>& pads,
            const std::vector<std::int64_t>& strides);
/// Windows as (N, kh kw C, oh, ow): the channels of one position lie together.
Tensor extract_patches(const Tensor& x, const std::vector<std::int64_t>& kernel,
                       const std::vector<std::int64_t>& dilations, const std::vector<std::int64_t>& pads,
                       const std::vector<std::int64_t>& strides);
/// Samples (N, C, H, W) at grid (N, oh, ow, 2) of coordinates x, y in [-1, 1]. mode "bilinear" or "nearest";
/// padding_mode "zeros", "border" or "reflection".
Tensor grid_sample(const Tensor& x, const Tensor& grid, const std::string& mode = "bilinear",
                   const std::string& padding_mode = "zeros", bool align_corners = false);

}  // namespace undertow::ops
