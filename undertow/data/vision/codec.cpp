// SPDX-License-Identifier: Apache-2.0
#include "undertow/data/vision/codec.h"

#include <algorithm>
#include <cstring>
#include <optional>

namespace undertow::data::vision {
namespace {

[[noreturn]] void refuse(const char* op, Bytes file) {
  if (file.empty()) throw DataError(fmt::format("{}: the image is empty (0 bytes)", op));
  std::string start;
  for (const std::uint8_t b : file.first(std::min<std::size_t>(file.size(), 8))) start += fmt::format(" {:02x}", b);
  throw DataError(
      fmt::format("{}: neither a JPEG nor a PNG image: {} bytes that start with{}", op, file.size(), start));
}

}  // namespace

Format format_of(Bytes f) {
  static constexpr std::uint8_t kPng[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
  if (f.size() >= 3 && f[0] == 0xff && f[1] == 0xd8 && f[2] == 0xff) return Format::kJpeg;
  if (f.size() >= 8 && std::ranges::equal(f.first(8), kPng)) return Format::kPng;
  return Format::kOther;
}

std::pair<std::int64_t, std::int64_t> image_size(const char* op, Bytes file) {
  switch (format_of(file)) {
    case Format::kJpeg: return jpeg_size(op, file);
    case Format::kPng: return png_size(op, file);
    case Format::kOther: break;
  }
  refuse(op, file);
}

namespace {

/// PNG files are decoded whole.
View<std::uint8_t> png_view(const char* op, Bytes file, ImageReadMode mode, std::optional<Rect> window) {
  thread_local Tensor whole;
  whole = decode_png(op, file, mode);
  const Extent e = extent_of(op, whole);
  const Rect r = window.value_or(Rect{0, 0, e.h, e.w});
  UNDERTOW_CHECK(r.top + r.height <= e.h && r.left + r.width <= e.w, DataError,
                 "{}: the window of {} x {} is not within the image of {} x {}", op, r.height, r.width, e.h, e.w);
  return {static_cast<const std::uint8_t*>(whole.data()) + r.top * e.row() + r.left * e.c, r.height, r.width, e.c,
          e.row()};
}

View<std::uint8_t> view(const char* op, Bytes file, ImageReadMode mode, std::optional<Rect> window) {
  switch (format_of(file)) {
    case Format::kJpeg: return decode_jpeg(op, file, mode, window);
    case Format::kPng: return png_view(op, file, mode, window);
    case Format::kOther: break;
  }
  refuse(op, file);
}

}  // namespace

View<std::uint8_t> decode_view(const char* op, Bytes file, ImageReadMode mode, const Rect& window, int shrink) {
  if (shrink > 1 && format_of(file) == Format::kJpeg) return decode_jpeg(op, file, mode, window, shrink);
  return view(op, file, mode, window);
}

Tensor decode(const char* op, Bytes file, ImageReadMode mode) {
  const View<std::uint8_t> v = view(op, file, mode, std::nullopt);
  Tensor out(DType::kUInt8, {v.h, v.w, v.c});
  for (std::int64_t y = 0; y < v.h; ++y)
    std::memcpy(static_cast<std::uint8_t*>(out.data()) + y * v.w * v.c, v.row(y), static_cast<std::size_t>(v.w * v.c));
  return out;
}

}  // namespace undertow::data::vision
