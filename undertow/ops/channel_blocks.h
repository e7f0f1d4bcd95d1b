// SPDX-License-Identifier: Apache-2.0
// ops/channel_blocks.h: the convolutions' layout "NCHW8c" (or any other number): a tensor [N, C, H, W] whose channels
// come in whole blocks of 8 is dense [N, C/8, H, W, 8]; one with another number of channels stays [N, C, H, W].
#pragma once

#include <charconv>
#include <cstdint>
#include <string_view>

#include "undertow/base/shape.h"

namespace undertow::ops {

/// The channels of a block; 0 for a layout without blocks.
inline std::int64_t channel_block(std::string_view layout) {
  if (layout.size() < 6 || !layout.starts_with("NCHW") || !layout.ends_with("c")) return 0;
  std::int64_t block = 0;
  const auto digits = layout.substr(4, layout.size() - 5);
  std::from_chars(digits.data(), digits.data() + digits.size(), block);
  return block;
}

/// [N, C, H, W] of a shape in blocks; a plain shape as it is.
inline Shape without_blocks(const Shape& s) { return s.rank() == 5 ? Shape{s[0], s[1] * s[4], s[2], s[3]} : s; }

/// The shape that [N, C, H, W] has in blocks.
inline Shape with_blocks(const Shape& s, std::int64_t block) {
  return s[1] % block == 0 ? Shape{s[0], s[1] / block, s[2], s[3], block} : s;
}

}  // namespace undertow::ops
