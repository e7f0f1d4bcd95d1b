// SPDX-License-Identifier: Apache-2.0
// data/vision/noise.h: draws from other distributions than the uniform one.
#pragma once

#include <cmath>
#include <numbers>

#include "undertow/base/philox.h"

namespace undertow::data {

/// Standard normal (Box and Muller 1958).
inline double normal(PhiloxStream& random) {
  const double u = 1 - random.uniform64(), v = random.uniform64();
  return std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
}

/// Gamma with shape `a` and scale 1 (Marsaglia and Tsang 2000). a must be positive.
inline double gamma(PhiloxStream& random, double a) {
  if (a < 1) return gamma(random, a + 1) * std::pow(1 - random.uniform64(), 1 / a);
  const double d = a - 1. / 3, c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double x = normal(random), t = 1 + c * x;
    if (t <= 0) continue;
    const double v = t * t * t;
    if (std::log(1 - random.uniform64()) < 0.5 * x * x + d - d * v + d * std::log(v)) return d * v;
  }
}

/// Beta(a, a): a mixing weight.
inline double beta(PhiloxStream& random, double a) {
  const double x = gamma(random, a), y = gamma(random, a);
  return x + y > 0 ? x / (x + y) : (random.uniform64() < 0.5 ? 0 : 1);
}

}  // namespace undertow::data
