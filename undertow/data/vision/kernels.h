// SPDX-License-Identifier: Apache-2.0
// data/vision/kernels.h: the inner loops that take most of the time of a photo, in vector instructions. Each gives what
// its one-line formula says, bit for bit; builds without AVX2 run that formula.
#pragma once

#include <cstdint>

namespace undertow::data::vision {

/// Two pixels of three bytes each with weights of 11 bits, along a row of `width` >= 2 pixels:
/// out[3 x + k] = (in[3 at[x] + k] * low16(w[x]) + in[3 at[x] + 3 + k] * high16(w[x])) >> 4, for at[x] in [0, width -
/// 2]. Writes up to kSlack more values than 3 n.
void linear_rgb(const std::uint8_t* in, std::int64_t width, const int* at, const std::uint32_t* w, std::int64_t n,
                std::int16_t* out);
inline constexpr std::int64_t kSlack = 8;

/// out[i] = ((a[i] * wa >> 16) + (b[i] * wb >> 16) + 2) >> 2, for results in [0, 255].
void blend_rows(const std::int16_t* a, const std::int16_t* b, int wa, int wb, std::int64_t n, std::uint8_t* out);

/// Pixels of three bytes to a row for each channel.
void split_rgb(const std::uint8_t* in, std::int64_t n, std::uint8_t* r, std::uint8_t* g, std::uint8_t* b);

}  // namespace undertow::data::vision
