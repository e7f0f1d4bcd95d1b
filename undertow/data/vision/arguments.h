// SPDX-License-Identifier: Apache-2.0
// data/vision/arguments.h: checks of what the constructors of image operations take.
#pragma once

#include "undertow/data/column_op.h"
#include "undertow/data/vision/image.h"
#include "undertow/data/vision/vision.h"

namespace undertow::data::vision {

/// Throws ValueError unless there are one or two positive numbers.
inline void check_size(const char* op, const Size& size, const char* what = "size") {
  UNDERTOW_CHECK(size.size() == 1 || size.size() == 2, ValueError, "{}: {} must be one number or two, got {}", op, what,
                 size);
  for (const auto s : size)
    UNDERTOW_CHECK(s > 0 && s <= (1 << 24), ValueError, "{}: {} must be in [1, 2^24], got {}", op, what, size);
}
inline std::pair<std::int64_t, std::int64_t> square(const Size& s) { return {s.front(), s.back()}; }

inline void check_prob(const char* op, double prob) {
  UNDERTOW_CHECK(prob >= 0 && prob <= 1, ValueError, "{}: prob must be in [0, 1], got {}", op, prob);
}

/// Throws ValueError unless low <= range.first <= range.second <= high.
inline void check_range(const char* op, const char* what, const Range& r, double low, double high) {
  UNDERTOW_CHECK(r.first <= r.second && r.first >= low && r.second <= high, ValueError,
                 "{}: {} must be (min, max) with {} <= min <= max <= {}, got ({}, {})", op, what, low, high, r.first,
                 r.second);
}

inline void check_fill(const char* op, const Fill& fill) {
  UNDERTOW_CHECK(fill.size() == 1 || fill.size() == 3, ValueError, "{}: fill_value must be one number or three, got {}",
                 op, fill);
  for (const double f : fill)
    UNDERTOW_CHECK(f >= 0 && f <= 255, ValueError, "{}: fill_value must be in [0, 255], got {}", op, fill);
}

inline double uniform(PhiloxStream& random, const Range& r) {
  return r.first + (r.second - r.first) * random.uniform64();
}

}  // namespace undertow::data::vision
