// SPDX-License-Identifier: Apache-2.0
#include "undertow/data/vision/taps.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace undertow::data::vision {
namespace {

void cubic_weights(float x, float* w) {
  constexpr float a = -0.75f;
  w[0] = ((a * (x + 1) - 5 * a) * (x + 1) + 8 * a) * (x + 1) - 4 * a;
  w[1] = ((a + 2) * x - (a + 3)) * x * x + 1;
  w[2] = ((a + 2) * (1 - x) - (a + 3)) * (1 - x) * (1 - x) + 1;
  w[3] = 1.f - w[0] - w[1] - w[2];
}

double sinc(double x) {
  if (x == 0) return 1;
  x *= std::numbers::pi;
  return std::sin(x) / x;
}

double pillow_filter(Inter inter, double x) {
  x = std::abs(x);
  if (inter == Inter::kLinear) return x < 1 ? 1 - x : 0;
  if (inter == Inter::kAntialias) return x < 3 ? sinc(x) * sinc(x / 3) : 0;
  constexpr double a = -0.5;
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}

}  // namespace

FixedTaps array_taps(std::int64_t in, std::int64_t out, Inter inter, const Wanted& wanted) {
  FixedTaps t;
  t.n = inter == Inter::kCubic ? 4 : 2;
  const double inverse = static_cast<double>(out) / static_cast<double>(in), scale = 1. / inverse;
  t.index.reserve(static_cast<std::size_t>(wanted.count * t.n));
  t.weight.reserve(t.index.capacity());
  for (std::int64_t at = 0; at < wanted.count; ++at) {
    const std::int64_t i = wanted.at(at);
    float f;
    int s;
    float w[4];
    if (inter == Inter::kArea) {  // when enlarging: linear between the edges of pixels
      s = static_cast<int>(std::floor(static_cast<double>(i) * scale));
      f = static_cast<float>(static_cast<double>(i + 1) - static_cast<double>(s + 1) * inverse);
      f = f <= 0 ? 0.f : f - std::floor(f);
    } else {
      f = static_cast<float>((static_cast<double>(i) + 0.5) * scale - 0.5);
      s = static_cast<int>(std::floor(f));
      f -= static_cast<float>(s);
    }
    if (t.n == 2) {
      w[0] = 1.f - f;
      w[1] = f;
    } else {
      cubic_weights(f, w);
    }
    for (int k = 0; k < t.n; ++k) {
      const std::int64_t place = s - (t.n / 2 - 1) + k;
      t.index.push_back(static_cast<int>(std::clamp<std::int64_t>(place, 0, in - 1)));
      t.weight.push_back(w[k]);
    }
  }
  return t;
}

Taps area_taps(std::int64_t in, std::int64_t out, const Wanted& wanted) {
  const double scale = 1. / (static_cast<double>(out) / static_cast<double>(in));
  Taps t;
  t.most = static_cast<int>(std::ceil(scale)) + 2;
  t.weight.resize(static_cast<std::size_t>(wanted.count * t.most));
  for (std::int64_t at = 0; at < wanted.count; ++at) {
    const std::int64_t i = wanted.at(at);
    const double low = static_cast<double>(i) * scale, high = low + scale;
    const double cell = std::min(scale, static_cast<double>(in) - low);
    auto from = static_cast<std::int64_t>(std::ceil(low)), end = static_cast<std::int64_t>(std::floor(high));
    end = std::min(end, in - 1);
    from = std::min(from, end);
    double* w = t.weight.data() + at * t.most;
    std::int64_t first = from;
    int n = 0;
    if (static_cast<double>(from) - low > 1e-3) {
      first = from - 1;
      w[n++] = static_cast<float>((static_cast<double>(from) - low) / cell);
    }
    for (std::int64_t s = from; s < end; ++s) w[n++] = static_cast<float>(1. / cell);
    if (high - static_cast<double>(end) > 1e-3)
      w[n++] = static_cast<float>(std::min(std::min(high - static_cast<double>(end), 1.), cell) / cell);
    t.first.push_back(static_cast<int>(first));
    t.count.push_back(n);
  }
  return t;
}

Taps pillow_taps(std::int64_t in, std::int64_t out, Inter inter, const Wanted& wanted) {
  const double scale = static_cast<double>(in) / static_cast<double>(out), wide = std::max(scale, 1.);
  const double support = (inter == Inter::kLinear ? 1 : inter == Inter::kAntialias ? 3 : 2) * wide;
  Taps t;
  t.most = static_cast<int>(std::ceil(support)) * 2 + 1;
  t.weight.resize(static_cast<std::size_t>(wanted.count * t.most));
  for (std::int64_t at = 0; at < wanted.count; ++at) {
    const std::int64_t i = wanted.at(at);
    const double centre = (static_cast<double>(i) + 0.5) * scale;
    const auto low = std::max<std::int64_t>(static_cast<std::int64_t>(centre - support + 0.5), 0);
    const auto high = std::min<std::int64_t>(static_cast<std::int64_t>(centre + support + 0.5), in);
    double* w = t.weight.data() + at * t.most;
    double sum = 0;
    for (std::int64_t s = low; s < high; ++s) {
      w[s - low] = pillow_filter(inter, (static_cast<double>(s) - centre + 0.5) / wide);
      sum += w[s - low];
    }
    for (std::int64_t s = low; s < high; ++s)
      if (sum != 0) w[s - low] /= sum;
    t.first.push_back(static_cast<int>(low));
    t.count.push_back(static_cast<int>(high - low));
  }
  return t;
}

std::vector<std::int64_t> nearest_taps(std::int64_t in, std::int64_t out, Rules rules, const Wanted& wanted) {
  const bool pillow = rules == Rules::kPillow;
  const double scale = pillow ? static_cast<double>(in) / static_cast<double>(out)
                              : 1. / (static_cast<double>(out) / static_cast<double>(in));
  std::vector<std::int64_t> places;
  for (std::int64_t i = 0; i < wanted.count; ++i) {
    const double at = (static_cast<double>(wanted.at(i)) + (pillow ? 0.5 : 0)) * scale;
    places.push_back(std::min(static_cast<std::int64_t>(std::floor(at)), in - 1));
  }
  return places;
}

}  // namespace undertow::data::vision
