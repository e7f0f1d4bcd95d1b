// SPDX-License-Identifier: Apache-2.0
// data/vision/taps.h: which pixels an output pixel of a resized row or column is made of.
#pragma once

#include <cstdint>
#include <vector>

#include "undertow/data/vision/enums.h"

namespace undertow::data::vision {

/// The outputs that are wanted: `count` from `first` on, the last one first where reversed.
struct Wanted {
  std::int64_t first = 0, count = 0;
  bool reversed = false;

  std::int64_t at(std::int64_t i) const { return reversed ? first + count - 1 - i : first + i; }
};

/// OpenCV's: always `n` of them, a weight and a place each; places beyond the edge are the edge.
struct FixedTaps {
  int n = 0;
  std::vector<int> index;
  std::vector<float> weight;
};
/// kLinear, kCubic, or kArea when enlarging.
FixedTaps array_taps(std::int64_t in, std::int64_t out, Inter inter, const Wanted& wanted);

/// Output i is the sum over k < count[i] of weight[i * most + k] * in[first[i] + k].
struct Taps {
  int most = 0;
  std::vector<int> first, count;
  std::vector<double> weight;
};
/// The share of each pixel in the interval that an output covers.
Taps area_taps(std::int64_t in, std::int64_t out, const Wanted& wanted);
/// A filter that widens as the image shrinks.
Taps pillow_taps(std::int64_t in, std::int64_t out, Inter inter, const Wanted& wanted);
/// Output i is in[...].
std::vector<std::int64_t> nearest_taps(std::int64_t in, std::int64_t out, Rules rules, const Wanted& wanted);

}  // namespace undertow::data::vision
