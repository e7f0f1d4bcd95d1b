// SPDX-License-Identifier: Apache-2.0
// Operations that blank parts of an image.
#include <algorithm>
#include <cstring>

#include "undertow/data/vision/arguments.h"
#include "undertow/data/vision/noise.h"

namespace undertow::data::vision {
namespace {

/// Overwrites a rectangle of one image.
void blank(const Tensor& x, const Extent& e, const Rect& r, const std::vector<std::byte>& pixel) {
  auto* data = static_cast<std::byte*>(x.data());
  for (std::int64_t i = r.top; i < r.top + r.height; ++i)
    for (std::int64_t j = r.left; j < r.left + r.width; ++j)
      std::memcpy(data + static_cast<std::size_t>(i * e.w + j) * pixel.size(), pixel.data(), pixel.size());
}

void check_value(const char* op, const Fill& value, bool noise) {
  UNDERTOW_CHECK(value.size() == 1 || value.size() == 3 || (noise && value.empty()), ValueError,
                 "{}: value must be one number or three{}, got {}", op, noise ? " or \"random\"" : "", value);
  for (const double v : value)
    UNDERTOW_CHECK(v >= 0 && v <= 255, ValueError, "{}: value must be in [0, 255], got {}", op, value);
}

}  // namespace

Op Erase(std::int64_t top, std::int64_t left, std::int64_t height, std::int64_t width, Fill value) {
  UNDERTOW_CHECK(top >= 0 && left >= 0 && height >= 1 && width >= 1, ValueError,
                 "Erase: top and left must not be negative, height and width must be positive; got {}, {}, {}, {}", top,
                 left, height, width);
  check_value("Erase", value, false);
  const Rect r{top, left, height, width};
  return column_op("Erase", [=](const Tensor& x) {
    return each_image("Erase", x, [&](const Tensor& image) {
      const Extent e = extent_of("Erase", image);
      UNDERTOW_CHECK(r.top + r.height <= e.h && r.left + r.width <= e.w, DataError,
                     "Erase: the window from ({}, {}) of {} x {} is not within the image of shape {}", r.top, r.left,
                     r.height, r.width, image.shape().str());
      const Tensor y = image.clone();
      blank(y, e, r, pixel_bytes("Erase", value, y, e.c));
      return y;
    });
  });
}

Op RandomErasing(double prob, Range scale, Range ratio, Fill value, std::int64_t max_attempts) {
  static constexpr auto kName = "RandomErasing";
  check_prob(kName, prob);
  check_range(kName, "scale", scale, 0, 1e6);
  check_range(kName, "ratio", ratio, 1e-9, 1e9);
  check_value(kName, value, true);
  UNDERTOW_CHECK(max_attempts >= 1, ValueError, "{}: max_attempts must be positive, got {}", kName, max_attempts);
  return random_op(kName, [=](const Tensor& x, PhiloxStream& random) {
    UNDERTOW_CHECK(x.ndim() == 3, DataError, "{} takes images of shape (C, H, W), got {}", kName, x.shape().str());
    const std::int64_t c = x.shape(0), h = x.shape(1), w = x.shape(2);
    UNDERTOW_CHECK(value.size() <= 1 || static_cast<std::int64_t>(value.size()) == c, DataError,
                   "{}: {} values for an image of {} channels (shape {}, CHW)", kName, value.size(), c,
                   x.shape().str());
    if (random.uniform64() >= prob) return x;
    for (std::int64_t i = 0; i < max_attempts; ++i) {
      const double area = uniform(random, scale) * static_cast<double>(h) * static_cast<double>(w);
      const double aspect = uniform(random, ratio);
      const auto ew = static_cast<std::int64_t>(std::nearbyint(std::sqrt(area * aspect)));
      const auto eh = static_cast<std::int64_t>(std::nearbyint(static_cast<double>(ew) / aspect));
      if (eh >= h || ew >= w) continue;
      const auto top = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(h - eh + 1)));
      const auto left = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(w - ew + 1)));
      const Tensor y = x.clone();
      dispatch(y.dtype(), [&](auto tag) {
        using T = decltype(tag);
        T* data = static_cast<T*>(y.data());
        for (std::int64_t k = 0; k < c; ++k)
          for (std::int64_t r = top; r < top + eh; ++r)
            for (std::int64_t j = left; j < left + ew; ++j) {
              const double v =
                  value.empty() ? normal(random) : value[static_cast<std::size_t>(value.size() == 1 ? 0 : k)];
              if constexpr (std::is_same_v<T, bool>) data[(k * h + r) * w + j] = v != 0;
              else data[(k * h + r) * w + j] = saturate<T>(v);
            }
      });
      return y;
    }
    return x;
  });
}

Op CutOut(std::int64_t length, std::int64_t num_patches, bool is_hwc) {
  UNDERTOW_CHECK(length >= 1 && num_patches >= 1, ValueError,
                 "CutOut: length and num_patches must be positive, got {} and {}", length, num_patches);
  return random_op("CutOut", [=](const Tensor& x, PhiloxStream& random) {
    UNDERTOW_CHECK(x.ndim() == 3, DataError, "CutOut takes images of shape {}, got {}",
                   is_hwc ? "(H, W, C)" : "(C, H, W)", x.shape().str());
    const std::int64_t h = x.shape(is_hwc ? 0 : 1), w = x.shape(is_hwc ? 1 : 2), c = x.shape(is_hwc ? 2 : 0);
    UNDERTOW_CHECK(length <= h && length <= w, DataError, "CutOut: patches of {} pixels in an image of {} x {} pixels",
                   length, h, w);
    const Tensor y = x.clone();
    for (std::int64_t i = 0; i < num_patches; ++i) {
      // The middle may lie anywhere, so that patches at the edge are cut off.
      const auto cy = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(h)));
      const auto cx = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(w)));
      const std::int64_t top = std::max<std::int64_t>(cy - length / 2, 0),
                         left = std::max<std::int64_t>(cx - length / 2, 0);
      const Rect r{top, left, std::min(cy - length / 2 + length, h) - top,
                   std::min(cx - length / 2 + length, w) - left};
      const std::size_t item = size_of(x.dtype());
      if (is_hwc) {
        blank(y, {h, w, c}, r, std::vector<std::byte>(item * static_cast<std::size_t>(c)));
      } else {
        for (std::int64_t k = 0; k < c; ++k) blank(part(y, k), {h, w, 1, true}, r, std::vector<std::byte>(item));
      }
    }
    return y;
  });
}

}  // namespace undertow::data::vision
