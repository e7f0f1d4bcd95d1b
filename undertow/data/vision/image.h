// SPDX-License-Identifier: Apache-2.0
// data/vision/image.h: what the image operations share. An image is (H, W) or (H, W, C); geometric operations take any
// number of dimensions before these.
#pragma once

#include <cmath>
#include <functional>
#include <limits>
#include <type_traits>

#include "undertow/base/check.h"
#include "undertow/data/vision/enums.h"
#include "undertow/tensor/tensor.h"

namespace undertow::data::vision {

struct Extent {
  std::int64_t h = 0, w = 0, c = 1;
  bool flat = false;  ///< (H, W)

  std::int64_t row() const { return w * c; }
  Shape shape() const { return flat ? Shape{h, w} : Shape{h, w, c}; }
  Extent sized(std::int64_t height, std::int64_t width) const { return {height, width, c, flat}; }
};

/// Throws DataError unless `x` is (H, W) or (H, W, C).
Extent extent_of(const char* op, const Tensor& x);
/// Throws DataError unless uint8, with 1 or 3 channels (or `channels`, where positive).
Extent byte_image(const char* op, const Tensor& x, int channels = 0);
/// `f` of a tensor of 2 or 3 dimensions, or of every image of one with more.
Tensor each_image(const char* op, const Tensor& x, const std::function<Tensor(const Tensor&)>& f);

/// The nearest value of T, halves to even; NaN gives 0 for integers.
template <typename T, typename F>
T saturate(F v) {
  if constexpr (std::is_integral_v<T>) {
    const double low = static_cast<double>(std::numeric_limits<T>::min());
    const double high = static_cast<double>(std::numeric_limits<T>::max());
    const double r = std::rint(static_cast<double>(v));
    if (!(r > low)) return v != v ? T{0} : std::numeric_limits<T>::min();
    if (r >= high) return std::numeric_limits<T>::max();
    return static_cast<T>(r);
  } else {
    return static_cast<T>(v);
  }
}
inline std::uint8_t clamp8(int v) { return static_cast<std::uint8_t>(v < 0 ? 0 : v > 255 ? 255 : v); }
/// The nearest integer in 0..255, halves to even. Not for NaN.
inline std::uint8_t round8(float v) { return static_cast<std::uint8_t>(std::rint(v < 0 ? 0.f : v > 255 ? 255.f : v)); }

/// Where a coordinate outside of [0, n) reads; -1: the constant.
std::int64_t border_index(std::int64_t i, std::int64_t n, Border border);

/// A value per channel as the bytes of one pixel of `x`, saturated. One value stands for all channels; for an image of
/// one channel the first counts. Throws DataError where the numbers do not fit.
std::vector<std::byte> pixel_bytes(const char* op, const std::vector<double>& value, const Tensor& x, std::int64_t c);

struct Rect {
  std::int64_t top = 0, left = 0, height = 0, width = 0;
};
/// A copy of part of an image that lies within it.
Tensor crop(const Tensor& x, const Extent& e, const Rect& r);
/// With more pixels on each side.
Tensor pad(const char* op, const Tensor& x, const Extent& e, std::int64_t left, std::int64_t top, std::int64_t right,
           std::int64_t bottom, const std::vector<double>& fill, Border border);
Tensor flip(const Tensor& x, bool horizontal);  ///< defined in work.cpp
/// Rows of 3 bytes to luma. kArray: OpenCV's weights, kPillow: Pillow's; they differ by at most 1.
Tensor luma(const Tensor& rgb, const Extent& e, Rules rules = Rules::kArray);

}  // namespace undertow::data::vision
