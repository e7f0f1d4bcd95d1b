// SPDX-License-Identifier: Apache-2.0
// The colour operations of vision.h.
#include <algorithm>

#include "undertow/data/vision/arguments.h"
#include "undertow/data/vision/color.h"
#include "undertow/data/vision/noise.h"

namespace undertow::data::vision {
namespace {

template <typename F>
Op color_op(const char* name, F f) {
  return column_op(name, [name, f](const Tensor& x) { return each_image(name, x, f); });
}

/// `f` with the chance `prob`, for all images of a column or none.
template <typename F>
Op perhaps(const char* name, double prob, F f) {
  check_prob(name, prob);
  return random_op(name, [=](const Tensor& x, PhiloxStream& random) {
    return random.uniform64() < prob ? each_image(name, x, f) : x;
  });
}

/// `f(image, factor)` with a factor from the range.
template <typename F>
Op drawn(const char* name, const Range& range, F f) {
  check_range(name, "degrees", range, 0, 1e6);
  return random_op(name, [=](const Tensor& x, PhiloxStream& random) {
    const double factor = uniform(random, range);
    return each_image(name, x, [&](const Tensor& image) { return f(name, image, factor); });
  });
}

void check_factor(const char* op, const char* what, double factor) {
  UNDERTOW_CHECK(factor >= 0, ValueError, "{}: {} must not be negative, got {}", op, what, factor);
}

void check_contrast(const char* op, double cutoff, const std::vector<std::int64_t>& ignore) {
  UNDERTOW_CHECK(cutoff >= 0 && cutoff < 50, ValueError, "{}: cutoff must be in [0, 50), got {}", op, cutoff);
  for (const auto v : ignore)
    UNDERTOW_CHECK(v >= 0 && v <= 255, ValueError, "{}: ignore must be in [0, 255], got {}", op, v);
}

struct Conversion {
  int from;      // channels
  int order[4];  // output channel k is input channel order[k]; -1: 255
  int to;
};

}  // namespace

Op AdjustBrightness(double factor) {
  check_factor("AdjustBrightness", "brightness_factor", factor);
  return color_op("AdjustBrightness", [=](const Tensor& x) { return brightness("AdjustBrightness", x, factor); });
}

Op AdjustContrast(double factor) {
  check_factor("AdjustContrast", "contrast_factor", factor);
  return color_op("AdjustContrast", [=](const Tensor& x) { return contrast("AdjustContrast", x, factor); });
}

Op AdjustSaturation(double factor) {
  check_factor("AdjustSaturation", "saturation_factor", factor);
  return color_op("AdjustSaturation", [=](const Tensor& x) { return saturation("AdjustSaturation", x, factor); });
}

Op AdjustHue(double factor) {
  UNDERTOW_CHECK(factor >= -0.5 && factor <= 0.5, ValueError, "AdjustHue: hue_factor must be in [-0.5, 0.5], got {}",
                 factor);
  return color_op("AdjustHue", [=](const Tensor& x) { return hue("AdjustHue", x, factor); });
}

Op AdjustGamma(double gamma, double gain) {
  check_factor("AdjustGamma", "gamma", gamma);
  Table table;
  for (int v = 0; v < 256; ++v)
    table[static_cast<std::size_t>(v)] =
        saturate<std::uint8_t>(std::floor(std::clamp((255 + 1 - 1e-3) * gain * std::pow(v / 255., gamma), 0., 255.)));
  return column_op("AdjustGamma", [=](const Tensor& x) {
    if (x.dtype() == DType::kUInt8) return mapped(x, table);
    UNDERTOW_CHECK(x.dtype() == DType::kFloat32, DataError, "AdjustGamma takes uint8, or float32 in [0, 1]; got {}",
                   numpy_name_of(x.dtype()));
    Tensor y(x.dtype(), x.shape());
    for (std::int64_t i = 0; i < x.size(); ++i)
      static_cast<float*>(y.data())[i] =
          std::clamp(static_cast<float>(std::pow(static_cast<const float*>(x.data())[i], gamma) * gain), 0.f, 1.f);
    return y;
  });
}

Op AdjustSharpness(double factor) {
  check_factor("AdjustSharpness", "sharpness_factor", factor);
  return color_op("AdjustSharpness", [=](const Tensor& x) { return sharpness("AdjustSharpness", x, factor); });
}

Op RandomColorAdjust(Range b, Range c, Range s, Range h) {
  static constexpr auto kName = "RandomColorAdjust";
  check_range(kName, "brightness", b, 0, 1e6);
  check_range(kName, "contrast", c, 0, 1e6);
  check_range(kName, "saturation", s, 0, 1e6);
  check_range(kName, "hue", h, -0.5, 0.5);
  return random_op(kName, [=](const Tensor& x, PhiloxStream& random) {
    const double factor[4] = {uniform(random, b), uniform(random, c), uniform(random, s), uniform(random, h)};
    int order[4] = {0, 1, 2, 3};
    for (std::uint64_t i = 3; i > 0; --i) std::swap(order[i], order[random.below(i + 1)]);
    const bool still[4] = {b == Range{1, 1}, c == Range{1, 1}, s == Range{1, 1}, h == Range{0, 0}};
    return each_image(kName, x, [&](const Tensor& image) {
      byte_image(kName, image);
      Tensor y = image;
      for (const int i : order) {
        if (still[i]) continue;
        if (i == 0) y = brightness(kName, y, factor[0]);
        else if (i == 1) y = contrast(kName, y, factor[1]);
        else if (i == 2) y = saturation(kName, y, factor[2]);
        else y = hue(kName, y, factor[3]);
      }
      return y;
    });
  });
}

Op RandomColor(Range degrees) { return drawn("RandomColor", degrees, saturation); }

Op RandomSharpness(Range degrees) { return drawn("RandomSharpness", degrees, sharpness); }

Op RandomAdjustSharpness(double degree, double prob) {
  check_factor("RandomAdjustSharpness", "degree", degree);
  return perhaps("RandomAdjustSharpness", prob,
                 [=](const Tensor& x) { return sharpness("RandomAdjustSharpness", x, degree); });
}

Op Grayscale(std::int64_t channels) {
  UNDERTOW_CHECK(channels == 1 || channels == 3, ValueError, "Grayscale: num_output_channels must be 1 or 3, got {}",
                 channels);
  return color_op("Grayscale", [=](const Tensor& x) { return grey("Grayscale", x, channels); });
}

Op RandomGrayscale(double prob) {
  return perhaps("RandomGrayscale", prob, [](const Tensor& x) {
    const Extent e = byte_image("RandomGrayscale", x);
    return e.c == 1 ? x : grey("RandomGrayscale", x, 3);
  });
}

Op Invert() {
  return color_op("Invert", [](const Tensor& x) { return invert("Invert", x); });
}

Op RandomInvert(double prob) {
  return perhaps("RandomInvert", prob, [](const Tensor& x) { return invert("RandomInvert", x); });
}

Op Equalize() {
  return color_op("Equalize", [](const Tensor& x) { return equalize("Equalize", x); });
}

Op RandomEqualize(double prob) {
  return perhaps("RandomEqualize", prob, [](const Tensor& x) { return equalize("RandomEqualize", x); });
}

Op AutoContrast(double cutoff, std::vector<std::int64_t> ignore) {
  check_contrast("AutoContrast", cutoff, ignore);
  return color_op("AutoContrast", [=](const Tensor& x) { return auto_contrast("AutoContrast", x, cutoff, ignore); });
}

Op RandomAutoContrast(double cutoff, std::vector<std::int64_t> ignore, double prob) {
  check_contrast("RandomAutoContrast", cutoff, ignore);
  return perhaps("RandomAutoContrast", prob,
                 [=](const Tensor& x) { return auto_contrast("RandomAutoContrast", x, cutoff, ignore); });
}

Op Posterize(std::int64_t bits) {
  UNDERTOW_CHECK(bits >= 0 && bits <= 8, ValueError, "Posterize: bits must be in [0, 8], got {}", bits);
  return color_op("Posterize", [=](const Tensor& x) { return posterize("Posterize", x, bits); });
}

Op RandomPosterize(std::pair<std::int64_t, std::int64_t> bits) {
  UNDERTOW_CHECK(bits.first >= 1 && bits.first <= bits.second && bits.second <= 8, ValueError,
                 "RandomPosterize: bits must be (min, max) with 1 <= min <= max <= 8, got ({}, {})", bits.first,
                 bits.second);
  return random_op("RandomPosterize", [=](const Tensor& x, PhiloxStream& random) {
    const auto n = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(bits.second - bits.first + 1)));
    return each_image("RandomPosterize", x,
                      [&](const Tensor& image) { return posterize("RandomPosterize", image, bits.first + n); });
  });
}

Op Solarize(Range threshold) {
  check_range("Solarize", "threshold", threshold, 0, 255);
  return color_op("Solarize",
                  [=](const Tensor& x) { return solarize("Solarize", x, threshold.first, threshold.second); });
}

Op RandomSolarize(Range threshold) {
  check_range("RandomSolarize", "threshold", threshold, 0, 255);
  return random_op("RandomSolarize", [=](const Tensor& x, PhiloxStream& random) {
    // Two whole thresholds within the range, the smaller one first; a range of one value inverts from there on.
    const auto span = static_cast<std::uint64_t>(threshold.second - threshold.first + 1);
    double low = threshold.first + static_cast<double>(random.below(span));
    double high = threshold.first + static_cast<double>(random.below(span));
    if (low > high) std::swap(low, high);
    if (threshold.first == threshold.second) high = 255;
    return each_image("RandomSolarize", x,
                      [&](const Tensor& image) { return solarize("RandomSolarize", image, low, high); });
  });
}

Op RandomLighting(double alpha) {
  check_factor("RandomLighting", "alpha", alpha);
  return random_op("RandomLighting", [=](const Tensor& x, PhiloxStream& random) {
    // Eigenvectors and roots of the eigenvalues of ImageNet's RGB covariance (Krizhevsky et al., 2012).
    static constexpr double kVectors[3][3] = {
        {-0.5675, 0.7192, 0.4009}, {-0.5808, -0.0045, -0.8140}, {-0.5836, -0.6948, 0.4203}};
    static constexpr double kRoots[3] = {55.46, 4.794, 1.148};
    double draw[3], shift[3] = {};
    for (double& d : draw) d = normal(random) * alpha;
    for (int k = 0; k < 3; ++k)
      for (int i = 0; i < 3; ++i) shift[k] += kVectors[k][i] * kRoots[i] * draw[i];
    return each_image("RandomLighting", x, [&](const Tensor& image) {
      byte_image("RandomLighting", image, 3);
      Tensor y(image.dtype(), image.shape());
      const auto* in = static_cast<const std::uint8_t*>(image.data());
      for (std::int64_t i = 0; i < image.size(); ++i)
        static_cast<std::uint8_t*>(y.data())[i] = static_cast<std::uint8_t>(std::clamp(in[i] + shift[i % 3], 0., 255.));
      return y;
    });
  });
}

Op ConvertColor(ConvertMode mode) {
  static constexpr Conversion kOrders[] = {{3, {0, 1, 2, -1}, 4}, {4, {0, 1, 2}, 3}, {3, {2, 1, 0, -1}, 4},
                                           {4, {2, 1, 0}, 3},     {3, {2, 1, 0}, 3}, {4, {2, 1, 0, 3}, 4},
                                           {3, {2, 1, 0}, 1},     {3, {0, 1, 2}, 1}, {1, {0, 0, 0}, 3},
                                           {1, {0, 0, 0, -1}, 4}, {4, {2, 1, 0}, 1}, {4, {0, 1, 2}, 1}};
  const auto number = static_cast<std::size_t>(mode);
  UNDERTOW_CHECK(number < std::size(kOrders), ValueError, "ConvertColor: convert_mode must be a ConvertMode, got {}",
                 number);
  return color_op("ConvertColor", [c = kOrders[number], number](const Tensor& x) {
    const Extent e = extent_of("ConvertColor", x);
    UNDERTOW_CHECK(x.dtype() == DType::kUInt8 && e.c == c.from, DataError,
                   "ConvertColor: mode {} takes images of uint8 with {} channels, got {} of shape {}", number, c.from,
                   numpy_name_of(x.dtype()), x.shape().str());
    const std::int64_t n = e.h * e.w;
    const int to = c.to == 1 ? 3 : c.to;
    Tensor y(DType::kUInt8, {e.h, e.w, to});
    const auto* in = static_cast<const std::uint8_t*>(x.data());
    auto* out = static_cast<std::uint8_t*>(y.data());
    for (std::int64_t i = 0; i < n; ++i)
      for (int k = 0; k < to; ++k) out[i * to + k] = c.order[k] < 0 ? std::uint8_t{255} : in[i * c.from + c.order[k]];
    return c.to == 1 ? luma(y, {e.h, e.w, 3}) : y;
  });
}

}  // namespace undertow::data::vision
