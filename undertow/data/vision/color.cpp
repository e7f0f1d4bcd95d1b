// SPDX-License-Identifier: Apache-2.0
#include "undertow/data/vision/color.h"

#include <algorithm>
#include <numeric>

namespace undertow::data::vision {
namespace {

const std::uint8_t* bytes(const Tensor& x) { return static_cast<const std::uint8_t*>(x.data()); }
std::uint8_t* out_bytes(const Tensor& x) { return static_cast<std::uint8_t*>(x.data()); }

template <typename F>
Table table_of(F f) {
  Table t;
  for (int v = 0; v < 256; ++v) t[static_cast<std::size_t>(v)] = f(v);
  return t;
}

using Histogram = std::array<std::int64_t, 256>;

/// A table for each channel, from its histogram.
template <typename F>
Tensor by_channel(const Tensor& x, const Extent& e, F table_from) {
  Tensor y(x.dtype(), x.shape());
  const std::int64_t n = e.h * e.w;
  for (std::int64_t k = 0; k < e.c; ++k) {
    Histogram h{};
    for (std::int64_t i = 0; i < n; ++i) ++h[bytes(x)[i * e.c + k]];
    const Table t = table_from(h);
    for (std::int64_t i = 0; i < n; ++i) out_bytes(y)[i * e.c + k] = t[bytes(x)[i * e.c + k]];
  }
  return y;
}

Table same() {
  return table_of([](int v) { return static_cast<std::uint8_t>(v); });
}

/// Grey in all channels of x; x itself where it has only one.
Tensor grey_like(const Tensor& x, const Extent& e) {
  if (e.c == 1) return x;
  const Tensor g = luma(x, e);
  Tensor y(DType::kUInt8, x.shape());
  for (std::int64_t i = 0; i < e.h * e.w; ++i)
    for (int k = 0; k < 3; ++k) out_bytes(y)[3 * i + k] = bytes(g)[i];
  return y;
}

}  // namespace

Tensor mapped(const Tensor& x, const Table& table) {
  Tensor y(x.dtype(), x.shape());
  for (std::int64_t i = 0; i < x.size(); ++i) out_bytes(y)[i] = table[bytes(x)[i]];
  return y;
}

Tensor weighted(const Tensor& x, double a, const Tensor& y, double b) {
  Tensor out(x.dtype(), x.shape());
  const auto fa = static_cast<float>(a), fb = static_cast<float>(b);
  for (std::int64_t i = 0; i < x.size(); ++i)
    out_bytes(out)[i] = round8(static_cast<float>(bytes(x)[i]) * fa + static_cast<float>(bytes(y)[i]) * fb);
  return out;
}

Tensor brightness(const char* op, const Tensor& x, double factor) {
  byte_image(op, x);
  return mapped(x, table_of([factor](int v) { return saturate<std::uint8_t>(v * factor); }));
}

Tensor contrast(const char* op, const Tensor& x, double factor) {
  const Extent e = byte_image(op, x);
  if (x.size() == 0) return x;
  const Tensor g = e.c == 3 ? luma(x, e) : x;
  const double sum = std::accumulate(bytes(g), bytes(g) + g.size(), 0.);
  const double mean = std::nearbyint(sum / static_cast<double>(g.size()));
  return mapped(x, table_of([&](int v) { return saturate<std::uint8_t>(v * factor + mean * (1 - factor)); }));
}

Tensor saturation(const char* op, const Tensor& x, double factor) {
  const Extent e = byte_image(op, x);
  return weighted(x, factor, grey_like(x, e), 1 - factor);
}

Tensor hue(const char* op, const Tensor& x, double turn) {
  const Extent e = byte_image(op, x);
  if (e.c == 1) return x;
  // Hue, saturation and value of 8 bits each, as OpenCV's *_FULL conversions: a turn is 256.
  static const auto divisors = [] {
    std::pair<std::array<int, 256>, std::array<int, 256>> d{};
    for (int i = 1; i < 256; ++i) {
      d.first[static_cast<std::size_t>(i)] = static_cast<int>(std::nearbyint((255 << 12) / (1. * i)));
      d.second[static_cast<std::size_t>(i)] = static_cast<int>(std::nearbyint((256 << 12) / (6. * i)));
    }
    return d;
  }();
  const int add = static_cast<int>(turn * 255);
  Tensor y(x.dtype(), x.shape());
  for (std::int64_t i = 0; i < e.h * e.w; ++i) {
    const int r = bytes(x)[3 * i], g = bytes(x)[3 * i + 1], b = bytes(x)[3 * i + 2];
    const int v = std::max({r, g, b}), d = v - std::min({r, g, b});
    const int s = (d * divisors.first[static_cast<std::size_t>(v)] + (1 << 11)) >> 12;
    int h = v == r ? g - b : v == g ? b - r + 2 * d : r - g + 4 * d;
    h = (h * divisors.second[static_cast<std::size_t>(d)] + (1 << 11)) >> 12;
    h = (h + add) & 255;
    const float value = static_cast<float>(v) / 255, sat = static_cast<float>(s) / 255;
    float place = static_cast<float>(h) * (6.f / 256);
    const int sector = std::min(static_cast<int>(place), 5);
    place -= static_cast<float>(sector);
    const float part[4] = {value, value * (1 - sat), value * (1 - sat * place), value * (1 - sat * (1 - place))};
    static constexpr int kParts[6][3] = {{0, 3, 1}, {2, 0, 1}, {1, 0, 3}, {1, 2, 0}, {3, 1, 0}, {0, 1, 2}};
    for (int k = 0; k < 3; ++k) out_bytes(y)[3 * i + k] = round8(part[kParts[sector][k]] * 255);
  }
  return y;
}

Tensor sharpness(const char* op, const Tensor& x, double factor) {
  const Extent e = byte_image(op, x);
  // Smoothed by {1 1 1, 1 5 1, 1 1 1} / 13; the outermost pixels stay as they are.
  Tensor smooth = x.clone();
  const std::int64_t row = e.row();
  for (std::int64_t i = 1; i + 1 < e.h; ++i)
    for (std::int64_t j = e.c; j + e.c < row; ++j) {
      const std::uint8_t* s = bytes(x) + i * row + j;
      int sum = 4 * s[0];
      for (std::int64_t v = -1; v <= 1; ++v) sum += s[v * row - e.c] + s[v * row] + s[v * row + e.c];
      out_bytes(smooth)[i * row + j] = static_cast<std::uint8_t>((2 * sum + 13) / 26);
    }
  return weighted(x, factor, smooth, 1 - factor);
}

Tensor invert(const char* op, const Tensor& x) {
  byte_image(op, x);
  return mapped(x, table_of([](int v) { return static_cast<std::uint8_t>(255 - v); }));
}

Tensor solarize(const char* op, const Tensor& x, double low, double high) {
  byte_image(op, x);
  return mapped(x, table_of([&](int v) { return static_cast<std::uint8_t>(v >= low && v <= high ? 255 - v : v); }));
}

Tensor posterize(const char* op, const Tensor& x, std::int64_t bits) {
  byte_image(op, x);
  const int mask = (0xff << (8 - bits)) & 0xff;
  return mapped(x, table_of([mask](int v) { return static_cast<std::uint8_t>(v & mask); }));
}

Tensor equalize(const char* op, const Tensor& x) {
  const Extent e = byte_image(op, x);
  return by_channel(x, e, [](const Histogram& h) {
    // As OpenCV does: the darkest value that occurs becomes 0, the others their share of the pixels above it.
    const auto first = std::ranges::find_if(h, [](auto n) { return n > 0; });
    const std::int64_t above = std::accumulate(h.begin(), h.end(), std::int64_t{0}) - (first == h.end() ? 0 : *first);
    if (above == 0) return same();
    Table t{};
    std::int64_t n = 0;
    const float scale = 255.f / static_cast<float>(above);
    for (auto v = static_cast<std::size_t>(first - h.begin()) + 1; v < 256; ++v) {
      n += h[v];
      t[v] = round8(static_cast<float>(n) * scale);
    }
    return t;
  });
}

Tensor auto_contrast(const char* op, const Tensor& x, double cutoff, const std::vector<std::int64_t>& ignore) {
  const Extent e = byte_image(op, x);
  return by_channel(x, e, [&](Histogram h) {
    for (const auto v : ignore) h[static_cast<std::size_t>(v)] = 0;
    const auto cut = static_cast<std::int64_t>(
        std::floor(static_cast<double>(std::accumulate(h.begin(), h.end(), std::int64_t{0})) * cutoff / 100));
    const auto drop = [cut](auto from, auto end) {
      for (std::int64_t left = cut; from != end && left > 0; ++from) {
        const std::int64_t n = std::min(left, *from);
        *from -= n;
        left -= n;
      }
    };
    drop(h.begin(), h.end());
    drop(h.rbegin(), h.rend());
    int low = 0, high = 255;
    while (low < 255 && h[static_cast<std::size_t>(low)] == 0) ++low;
    while (high > 0 && h[static_cast<std::size_t>(high)] == 0) --high;
    if (high <= low) return same();
    const double scale = 255. / (high - low), offset = -low * scale;
    return table_of([&](int v) { return clamp8(static_cast<int>(v * scale + offset)); });
  });
}

Tensor grey(const char* op, const Tensor& x, std::int64_t channels) {
  const Extent e = byte_image(op, x);
  const Tensor g = e.c == 3 ? luma(x, e, Rules::kPillow) : x;
  if (channels == 1) return g.view({e.h, e.w});
  Tensor y(DType::kUInt8, {e.h, e.w, channels});
  for (std::int64_t i = 0; i < e.h * e.w; ++i)
    for (std::int64_t k = 0; k < channels; ++k) out_bytes(y)[i * channels + k] = bytes(g)[i];
  return y;
}

}  // namespace undertow::data::vision
