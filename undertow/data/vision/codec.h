// SPDX-License-Identifier: Apache-2.0
// data/vision/codec.h: JPEG and PNG files in memory to pixels and back.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "undertow/data/vision/rows.h"
#include "undertow/data/vision/vision.h"

namespace undertow::data::vision {

using Bytes = std::span<const std::uint8_t>;
enum class Format { kJpeg, kPng, kOther };

/// From the first bytes.
Format format_of(Bytes file);
/// Height and width from the header. Throws DataError, starting with `op`, as decode() does.
std::pair<std::int64_t, std::int64_t> image_size(const char* op, Bytes file);
/// uint8: (H, W, 3) for kColor, (H, W, 1) for kGrayscale, (H, W, C) with the file's own 1, 3 or 4 channels for
/// kUnchanged. 16-bit samples keep their high byte; alpha is dropped by kColor; an EXIF orientation is left alone:
/// pixels come as they are stored. Throws DataError for what is neither JPEG nor PNG, and for files that are damaged or
/// cut.
Tensor decode(const char* op, Bytes file, ImageReadMode mode);
/// Part of it, with the pixels that the whole would have, in memory of this thread that the next call overwrites.
/// `shrink` 2, 4 or 8, of JPEG only: the window of the image of a half, a quarter or an eighth of the size, as far as
/// it touches; faster than decoding all pixels.
View<std::uint8_t> decode_view(const char* op, Bytes file, ImageReadMode mode, const Rect& window, int shrink = 1);
/// The elements of a 1-D tensor of uint8.
inline Bytes bytes_of(const Tensor& file) { return {static_cast<const std::uint8_t*>(file.data()), file.nbytes()}; }

// One file a library.
std::pair<std::int64_t, std::int64_t> jpeg_size(const char* op, Bytes file);
/// Without a window the whole.
View<std::uint8_t> decode_jpeg(const char* op, Bytes file, ImageReadMode mode, std::optional<Rect> window,
                               int shrink = 1);
std::pair<std::int64_t, std::int64_t> png_size(const char* op, Bytes file);
Tensor decode_png(const char* op, Bytes file, ImageReadMode mode);

}  // namespace undertow::data::vision
