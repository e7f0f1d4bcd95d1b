// SPDX-License-Identifier: Apache-2.0
// data/vision/color.h: colours of one image of uint8, (H, W), (H, W, 1) or (H, W, 3) as RGB. Where the checks fail they
// throw DataError that starts with `op`. The classes of vision.h and the augmentation policies are made of these.
#pragma once

#include <array>

#include "undertow/data/vision/image.h"

namespace undertow::data::vision {

using Table = std::array<std::uint8_t, 256>;

/// Every value through one table.
Tensor mapped(const Tensor& x, const Table& table);
/// round(a * x + b * y), clamped; equal shapes.
Tensor weighted(const Tensor& x, double a, const Tensor& y, double b);

Tensor brightness(const char* op, const Tensor& x, double factor);
Tensor contrast(const char* op, const Tensor& x, double factor);
Tensor saturation(const char* op, const Tensor& x, double factor);
Tensor hue(const char* op, const Tensor& x, double turn);
Tensor sharpness(const char* op, const Tensor& x, double factor);
Tensor invert(const char* op, const Tensor& x);
Tensor solarize(const char* op, const Tensor& x, double low, double high);
Tensor posterize(const char* op, const Tensor& x, std::int64_t bits);
Tensor equalize(const char* op, const Tensor& x);
Tensor auto_contrast(const char* op, const Tensor& x, double cutoff, const std::vector<std::int64_t>& ignore);
Tensor grey(const char* op, const Tensor& x, std::int64_t channels);

}  // namespace undertow::data::vision
