// SPDX-License-Identifier: Apache-2.0
#include "undertow/data/vision/codec.h"

#include <algorithm>

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

Tensor decode(const char* op, Bytes file, ImageReadMode mode, std::optional<Rect> window) {
  switch (format_of(file)) {
    case Format::kJpeg: return decode_jpeg(op, file, mode, window);
    case Format::kPng: {
      const Tensor whole = decode_png(op, file, mode);
      return window ? crop(whole, extent_of(op, whole), *window) : whole;
    }
    case Format::kOther: break;
  }
  refuse(op, file);
}

}  // namespace undertow::data::vision
