// SPDX-License-Identifier: Apache-2.0
// Any bytes as an image file: pixels or DataError; a window has the pixels of the whole.
#include <cstdlib>
#include <cstring>

#include "undertow/data/vision/codec.h"

namespace vision = undertow::data::vision;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // Larger pictures are only slow.
  constexpr std::int64_t kMostPixels = 1 << 18;
  if (size < 4) return 0;
  const vision::Bytes file(data + 3, size - 3);
  const auto mode = static_cast<vision::ImageReadMode>(data[0] % 3);
  try {
    const auto [h, w] = vision::image_size("fuzz", file);
    if (h * w > kMostPixels) return 0;
    const undertow::Tensor whole = vision::decode("fuzz", file, mode);
    const vision::Extent e{whole.shape(0), whole.shape(1), whole.shape(2)};
    const std::int64_t top = data[1] % e.h, left = data[2] % e.w;
    const vision::Rect r{top, left, 1 + (e.h - top - 1) / 2, 1 + (e.w - left - 1) / 2};
    const auto window = vision::decode_view("fuzz", file, mode, r);
    for (std::int64_t y = 0; y < r.height; ++y)
      if (std::memcmp(window.row(y), static_cast<const std::uint8_t*>(whole.data()) + (top + y) * e.row() + left * e.c,
                      static_cast<std::size_t>(r.width * e.c)) != 0)
        std::abort();
  } catch (const undertow::DataError&) {
  }
  return 0;
}
