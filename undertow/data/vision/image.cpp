// SPDX-License-Identifier: Apache-2.0
#include "undertow/data/vision/image.h"

#include <cstring>

#include "undertow/data/column_op.h"

namespace undertow::data::vision {

Extent extent_of(const char* op, const Tensor& x) {
  if (x.ndim() == 2) return {x.shape(0), x.shape(1), 1, true};
  UNDERTOW_CHECK(x.ndim() == 3, DataError, "{} takes images of shape (H, W) or (H, W, C), got shape {} ({})", op,
                 x.shape().str(), name_of(x.dtype()));
  return {x.shape(0), x.shape(1), x.shape(2), false};
}

Extent byte_image(const char* op, const Tensor& x, int channels) {
  const Extent e = extent_of(op, x);
  UNDERTOW_CHECK(x.dtype() == DType::kUInt8, DataError, "{} takes images of uint8, got {} of shape {}", op,
                 numpy_name_of(x.dtype()), x.shape().str());
  UNDERTOW_CHECK(channels > 0 ? e.c == channels && !e.flat : e.c == 1 || e.c == 3, DataError,
                 "{} takes images of {} channels, got shape {}", op, channels > 0 ? std::to_string(channels) : "1 or 3",
                 x.shape().str());
  return e;
}

Tensor each_image(const char* op, const Tensor& x, const std::function<Tensor(const Tensor&)>& f) {
  if (x.ndim() <= 3) return f(x);
  UNDERTOW_CHECK(x.shape(0) > 0, DataError, "{} got no images: shape {}", op, x.shape().str());
  std::vector<Tensor> parts;
  for (std::int64_t i = 0; i < x.shape(0); ++i) parts.push_back(each_image(op, part(x, i), f));
  return stack(parts);
}

std::int64_t border_index(std::int64_t i, std::int64_t n, Border border) {
  if (i >= 0 && i < n) return i;
  if (border == Border::kConstant) return -1;
  if (border == Border::kEdge || n == 1) return i < 0 ? 0 : n - 1;
  const std::int64_t once = border == Border::kReflect ? 1 : 0;
  const std::int64_t period = 2 * (n - once);
  i = (i % period + period) % period;
  return i < n ? i : period - i - 1 + once;
}

std::vector<std::byte> pixel_bytes(const char* op, const std::vector<double>& value, const Tensor& x, std::int64_t c) {
  const auto given = static_cast<std::int64_t>(value.size());
  UNDERTOW_CHECK(given == 1 || given == c || c == 1, DataError, "{}: {} fill values for an image of {} channels", op,
                 given, c);
  const std::size_t item = size_of(x.dtype());
  std::vector<std::byte> out(static_cast<std::size_t>(c) * item);
  dispatch(x.dtype(), [&](auto tag) {
    using T = decltype(tag);
    for (std::int64_t k = 0; k < c; ++k) {
      T v;
      if constexpr (std::is_same_v<T, bool>) v = value[given == 1 ? 0 : k] != 0;
      else v = saturate<T>(value[static_cast<std::size_t>(given == 1 ? 0 : k)]);
      std::memcpy(out.data() + static_cast<std::size_t>(k) * item, &v, item);
    }
  });
  return out;
}

Tensor crop(const Tensor& x, const Extent& e, const Rect& r) {
  const Extent to = e.sized(r.height, r.width);
  Tensor y(x.dtype(), to.shape());
  const std::size_t pixel = size_of(x.dtype()) * static_cast<std::size_t>(e.c);
  const auto* from = static_cast<const std::byte*>(x.data());
  auto* out = static_cast<std::byte*>(y.data());
  const std::size_t bytes = static_cast<std::size_t>(r.width) * pixel;
  if (bytes == 0) return y;
  for (std::int64_t i = 0; i < r.height; ++i, out += bytes)
    std::memcpy(out, from + static_cast<std::size_t>((r.top + i) * e.w + r.left) * pixel, bytes);
  return y;
}

Tensor pad(const char* op, const Tensor& x, const Extent& e, std::int64_t left, std::int64_t top, std::int64_t right,
           std::int64_t bottom, const std::vector<double>& fill, Border border) {
  const Extent to = e.sized(e.h + top + bottom, e.w + left + right);
  Tensor y(x.dtype(), to.shape());
  UNDERTOW_CHECK(border == Border::kConstant || (e.h > 0 && e.w > 0), DataError,
                 "{}: an empty image (shape {}) has no pixels to pad with", op, x.shape().str());
  const std::size_t pixel = size_of(x.dtype()) * static_cast<std::size_t>(e.c);
  const std::vector<std::byte> constant = pixel_bytes(op, fill, x, e.c);
  const auto* from = static_cast<const std::byte*>(x.data());
  auto* out = static_cast<std::byte*>(y.data());
  const auto put = [&](std::int64_t n, const std::byte* row, std::int64_t first) {
    for (std::int64_t j = 0; j < n; ++j, out += pixel) {
      const std::int64_t at = row ? border_index(first + j, e.w, border) : -1;
      std::memcpy(out, at < 0 ? constant.data() : row + static_cast<std::size_t>(at) * pixel, pixel);
    }
  };
  if (pixel == 0) return y;
  for (std::int64_t i = 0; i < to.h; ++i) {
    const std::int64_t at = border_index(i - top, e.h, border);
    const std::byte* row = at < 0 ? nullptr : from + static_cast<std::size_t>(at * e.w) * pixel;
    put(left, row, -left);
    if (row && e.w) {
      const std::size_t bytes = static_cast<std::size_t>(e.w) * pixel;
      std::memcpy(out, row, bytes);
      out += bytes;
    } else {
      put(e.w, row, 0);
    }
    put(right, row, e.w);
  }
  return y;
}

Tensor luma(const Tensor& rgb, const Extent& e, Rules rules) {
  Tensor y(DType::kUInt8, {e.h, e.w});
  const auto* in = static_cast<const std::uint8_t*>(rgb.data());
  auto* out = static_cast<std::uint8_t*>(y.data());
  const std::int64_t n = e.h * e.w;
  // Rec. 601: OpenCV keeps the weights in 15 bits, Pillow in 16.
  if (rules == Rules::kArray)
    for (std::int64_t i = 0; i < n; ++i)
      out[i] =
          static_cast<std::uint8_t>((in[3 * i] * 9798 + in[3 * i + 1] * 19235 + in[3 * i + 2] * 3735 + 16384) >> 15);
  else
    for (std::int64_t i = 0; i < n; ++i)
      out[i] =
          static_cast<std::uint8_t>((in[3 * i] * 19595 + in[3 * i + 1] * 38470 + in[3 * i + 2] * 7471 + 32768) >> 16);
  return y;
}

}  // namespace undertow::data::vision
