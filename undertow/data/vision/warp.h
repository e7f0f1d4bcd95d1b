// SPDX-License-Identifier: Apache-2.0
// data/vision/warp.h: images through affine and projective maps, with OpenCV's arithmetic.
#pragma once

#include <array>
#include <optional>
#include <utility>

#include "undertow/data/vision/image.h"

namespace undertow::data::vision {

/// Rows of a 2 x 3 or 3 x 3 matrix on (x, y, 1).
using Affine23 = std::array<double, 6>;
using Projective = std::array<double, 9>;

/// `forward` maps the input's coordinates to the output's. kNearest, kLinear (kArea likewise) or kCubic; sources are
/// rounded to 1/32 of a pixel. `fill` lies beyond the image.
Tensor warp(const char* op, const Tensor& x, const Extent& to, const Affine23& forward, Inter inter,
            const std::vector<double>& fill);
/// `backward` maps the output's coordinates to the input's.
Tensor warp(const char* op, const Tensor& x, const Extent& to, const Projective& backward, Inter inter,
            const std::vector<double>& fill);

/// About the middle: a turn, a shear (both in degrees), a scale, then a shift in pixels.
Affine23 affine_matrix(const Extent& e, double degrees, double shift_x, double shift_y, double scale, double shear_x,
                       double shear_y);
Tensor rotate(const char* op, const Tensor& x, double degrees, Inter inter, bool expand,
              const std::optional<std::pair<double, double>>& center, const std::vector<double>& fill);

}  // namespace undertow::data::vision
