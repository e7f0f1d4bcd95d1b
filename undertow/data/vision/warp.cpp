// SPDX-License-Identifier: Apache-2.0
#include "undertow/data/vision/warp.h"

#include <algorithm>
#include <cstring>
#include <numbers>

#include "undertow/data/vision/arguments.h"

namespace undertow::data::vision {
namespace {

constexpr int kBits = 5, kSteps = 1 << kBits;  // sources are known to 1/32 of a pixel

int rounded(double v) { return static_cast<int>(std::nearbyint(std::clamp(v, -2147483648., 2147483647.))); }

/// Weights of 4 taps at each of the 32 places, OpenCV's cubic with a = -0.75.
const std::array<std::array<float, 4>, kSteps>& cubic_table() {
  static const auto table = [] {
    std::array<std::array<float, 4>, kSteps> t{};
    for (int i = 0; i < kSteps; ++i) {
      constexpr float a = -0.75f;
      const float x = static_cast<float>(i) / kSteps;
      t[i][0] = ((a * (x + 1) - 5 * a) * (x + 1) + 8 * a) * (x + 1) - 4 * a;
      t[i][1] = ((a + 2) * x - (a + 3)) * x * x + 1;
      t[i][2] = ((a + 2) * (1 - x) - (a + 3)) * (1 - x) * (1 - x) + 1;
      t[i][3] = 1.f - t[i][0] - t[i][1] - t[i][2];
    }
    return t;
  }();
  return table;
}

/// `place(y, xs, ys)` writes where the pixels of output row y come from: whole pixels for kNearest, else in 1/32.
template <typename Place>
Tensor sample(const char* op, const Tensor& x, const Extent& to, Inter inter, const std::vector<double>& fill,
              Place place) {
  const Extent e = extent_of(op, x);
  Tensor y(x.dtype(), to.shape());
  const auto c = static_cast<std::size_t>(e.c);
  const std::size_t pixel = size_of(x.dtype()) * c;
  const std::vector<std::byte> constant = pixel_bytes(op, fill, x, e.c);
  std::vector<int> xs(static_cast<std::size_t>(to.w)), ys(static_cast<std::size_t>(to.w));
  if (inter == Inter::kNearest) {
    const auto* in = static_cast<const std::byte*>(x.data());
    auto* out = static_cast<std::byte*>(y.data());
    for (std::int64_t i = 0; i < to.h; ++i) {
      place(i, xs.data(), ys.data());
      for (std::size_t j = 0; j < xs.size(); ++j, out += pixel) {
        const bool within = xs[j] >= 0 && xs[j] < e.w && ys[j] >= 0 && ys[j] < e.h;
        std::memcpy(out, within ? in + static_cast<std::size_t>(ys[j] * e.w + xs[j]) * pixel : constant.data(), pixel);
      }
    }
    return y;
  }
  UNDERTOW_CHECK(x.dtype() != DType::kBool, DataError, "{}: bool images take Inter.NEAREST only", op);
  dispatch(x.dtype(), [&](auto tag) {
    using T = decltype(tag);
    using Work = std::conditional_t<(sizeof(T) > 2 && !std::is_same_v<T, float>), double, float>;
    const T* in = static_cast<const T*>(x.data());
    const T* beyond = reinterpret_cast<const T*>(constant.data());
    T* out = static_cast<T*>(y.data());
    const int taps = inter == Inter::kCubic ? 4 : 2, before = taps / 2 - 1;
    for (std::int64_t i = 0; i < to.h; ++i) {
      place(i, xs.data(), ys.data());
      for (std::size_t j = 0; j < xs.size(); ++j, out += c) {
        const int sx = (xs[j] >> kBits) - before, sy = (ys[j] >> kBits) - before;
        const int fx = xs[j] & (kSteps - 1), fy = ys[j] & (kSteps - 1);
        if (sx + taps <= 0 || sy + taps <= 0 || sx >= e.w || sy >= e.h) {
          std::memcpy(out, beyond, pixel);
          continue;
        }
        const T* at[16];
        for (int v = 0; v < taps; ++v)
          for (int u = 0; u < taps; ++u) {
            const bool within = sx + u >= 0 && sx + u < e.w && sy + v >= 0 && sy + v < e.h;
            at[v * taps + u] = within ? in + static_cast<std::size_t>((sy + v) * e.w + sx + u) * c : beyond;
          }
        if constexpr (std::is_same_v<T, std::uint8_t>)
          if (taps == 2) {
            const int w[4] = {(kSteps - fx) * (kSteps - fy), fx * (kSteps - fy), (kSteps - fx) * fy, fx * fy};
            for (std::size_t k = 0; k < c; ++k)
              out[k] = static_cast<T>((static_cast<int>(at[0][k]) * w[0] + static_cast<int>(at[1][k]) * w[1] +
                                       static_cast<int>(at[2][k]) * w[2] + static_cast<int>(at[3][k]) * w[3] +
                                       kSteps * kSteps / 2) >>
                                      (2 * kBits));
            continue;
          }
        const auto weight = [&](int f, int n) {
          if (taps == 4) return cubic_table()[static_cast<std::size_t>(f)][static_cast<std::size_t>(n)];
          return static_cast<float>(n ? f : kSteps - f) / kSteps;
        };
        for (std::size_t k = 0; k < c; ++k) {
          Work sum = 0;
          for (int v = 0; v < taps; ++v)
            for (int u = 0; u < taps; ++u)
              sum += static_cast<Work>(at[v * taps + u][k]) * static_cast<Work>(weight(fx, u) * weight(fy, v));
          out[k] = saturate<T>(sum);
        }
      }
    }
  });
  return y;
}

void check_inter(const char* op, Inter inter) {
  UNDERTOW_CHECK(inter == Inter::kNearest || inter == Inter::kLinear || inter == Inter::kCubic || inter == Inter::kArea,
                 ValueError, "{}: the interpolation must be Inter.NEAREST, LINEAR, CUBIC or AREA, got number {}", op,
                 static_cast<int>(inter));
}

double radians(double degrees) { return degrees * std::numbers::pi / 180; }

/// The map with from[i] -> to[i].
Projective through(const Points& from, const Points& to) {
  double a[8][9] = {};
  for (std::size_t i = 0; i < 4; ++i) {
    const auto [x, y] = from[i];
    const auto [u, v] = to[i];
    const double rows[2][9] = {{x, y, 1, 0, 0, 0, -x * u, -y * u, u}, {0, 0, 0, x, y, 1, -x * v, -y * v, v}};
    std::memcpy(a[2 * i], rows, sizeof(rows));
  }
  for (int i = 0; i < 8; ++i) {
    int best = i;
    for (int r = i + 1; r < 8; ++r)
      if (std::abs(a[r][i]) > std::abs(a[best][i])) best = r;
    UNDERTOW_CHECK(std::abs(a[best][i]) > 1e-12, ValueError,
                   "Perspective: three of the four points lie on a line; got ({}, {}), ({}, {}), ({}, {}), ({}, {})",
                   from[0].first, from[0].second, from[1].first, from[1].second, from[2].first, from[2].second,
                   from[3].first, from[3].second);
    std::swap_ranges(a[i], a[i] + 9, a[best]);
    for (int r = 0; r < 8; ++r) {
      if (r == i) continue;
      const double f = a[r][i] / a[i][i];
      for (int k = i; k < 9; ++k) a[r][k] -= f * a[i][k];
    }
  }
  Projective m{};
  for (int i = 0; i < 8; ++i) m[static_cast<std::size_t>(i)] = a[i][8] / a[i][i];
  m[8] = 1;
  return m;
}

}  // namespace

Tensor warp(const char* op, const Tensor& x, const Extent& to, const Affine23& f, Inter inter,
            const std::vector<double>& fill) {
  const double d = f[0] * f[4] - f[1] * f[3], i = d != 0 ? 1. / d : 0;
  const Affine23 m{f[4] * i, -f[1] * i, 0, -f[3] * i, f[0] * i, 0};
  const double bx = -m[0] * f[2] - m[1] * f[5], by = -m[3] * f[2] - m[4] * f[5];
  // OpenCV adds whole numbers of 1/1024: one table along the row, one offset a row.
  constexpr int kFine = 10;
  std::vector<int> dx, dy;
  for (std::int64_t j = 0; j < to.w; ++j) {
    dx.push_back(rounded(m[0] * static_cast<double>(j) * (1 << kFine)));
    dy.push_back(rounded(m[3] * static_cast<double>(j) * (1 << kFine)));
  }
  const bool nearest = inter == Inter::kNearest;
  const std::int64_t half = nearest ? (1 << kFine) / 2 : (1 << kFine) / kSteps / 2;
  const int shift = nearest ? kFine : kFine - kBits;
  return sample(op, x, to, inter, fill, [&](std::int64_t y, int* xs, int* ys) {
    const std::int64_t x0 = rounded((m[1] * static_cast<double>(y) + bx) * (1 << kFine)) + half;
    const std::int64_t y0 = rounded((m[4] * static_cast<double>(y) + by) * (1 << kFine)) + half;
    for (std::size_t j = 0; j < dx.size(); ++j) {
      xs[j] = static_cast<int>((x0 + dx[j]) >> shift);
      ys[j] = static_cast<int>((y0 + dy[j]) >> shift);
    }
  });
}

Tensor warp(const char* op, const Tensor& x, const Extent& to, const Projective& m, Inter inter,
            const std::vector<double>& fill) {
  const double unit = inter == Inter::kNearest ? 1 : kSteps;
  return sample(op, x, to, inter, fill, [&](std::int64_t row, int* xs, int* ys) {
    const auto y = static_cast<double>(row);
    for (std::int64_t j = 0; j < to.w; ++j) {
      const auto u = static_cast<double>(j);
      const double w = m[6] * u + m[7] * y + m[8], s = w != 0 ? unit / w : 0;
      // Far outside either way; keeps the taps' coordinates from overflowing.
      xs[j] = rounded(std::clamp((m[0] * u + m[1] * y + m[2]) * s, -1e9, 1e9));
      ys[j] = rounded(std::clamp((m[3] * u + m[4] * y + m[5]) * s, -1e9, 1e9));
    }
  });
}

Affine23 affine_matrix(const Extent& e, double degrees, double shift_x, double shift_y, double scale, double shear_x,
                       double shear_y) {
  // MindSpore's shear along y turns the other way than its shear along x.
  const double r = radians(degrees), sx = radians(shear_x), sy = -radians(shear_y);
  const double cx = static_cast<double>(e.w - 1) / 2, cy = static_cast<double>(e.h - 1) / 2;
  const double a = scale * std::cos(r + sy) / std::cos(sy);
  const double b = scale * (-std::cos(r + sy) * std::tan(sx) / std::cos(sy) - std::sin(r));
  const double c = scale * std::sin(r + sy) / std::cos(sy);
  const double d = scale * (-std::sin(r + sy) * std::tan(sx) / std::cos(sy) + std::cos(r));
  return {a, b, (1 - a) * cx - b * cy + shift_x, c, d, (1 - d) * cy - c * cx + shift_y};
}

Tensor rotate(const char* op, const Tensor& x, double degrees, Inter inter, bool expand,
              const std::optional<std::pair<double, double>>& center, const std::vector<double>& fill) {
  const Extent e = extent_of(op, x);
  UNDERTOW_CHECK(e.h > 0 && e.w > 0, DataError, "{}: an image without pixels, shape {}", op, x.shape().str());
  const double cx = center ? center->first : static_cast<double>(e.w - 1) / 2;
  const double cy = center ? center->second : static_cast<double>(e.h - 1) / 2;
  const double c = std::cos(radians(degrees)), s = std::sin(radians(degrees));
  Affine23 m{c, s, (1 - c) * cx - s * cy, -s, c, s * cx + (1 - c) * cy};
  Extent to = e;
  if (expand) {
    // The upright box of the turned rectangle, its sides rounded.
    const double w = static_cast<double>(e.w), h = static_cast<double>(e.h);
    const double bw = std::abs(w * c) + std::abs(h * s), bh = std::abs(w * s) + std::abs(h * c);
    to = e.sized(static_cast<std::int64_t>(std::nearbyint(bh)), static_cast<std::int64_t>(std::nearbyint(bw)));
    m[2] += bw / 2 - w / 2;
    m[5] += bh / 2 - h / 2;
  }
  return warp(op, x, to, m, inter, fill);
}

// ---- operations

Op Rotate(double degrees, RotateOptions o) {
  check_inter("Rotate", o.resample);
  check_fill("Rotate", o.fill_value);
  return column_op("Rotate", [=](const Tensor& x) {
    return each_image("Rotate", x, [&](const Tensor& image) {
      return rotate("Rotate", image, degrees, o.resample, o.expand, o.center, o.fill_value);
    });
  });
}

Op RandomRotation(Range degrees, RotateOptions o) {
  static constexpr auto kName = "RandomRotation";
  check_inter(kName, o.resample);
  check_fill(kName, o.fill_value);
  check_range(kName, "degrees", degrees, -1e6, 1e6);
  return random_op(kName, [=](const Tensor& x, PhiloxStream& random) {
    const double angle = uniform(random, degrees);
    return each_image(kName, x, [&](const Tensor& image) {
      return rotate(kName, image, angle, o.resample, o.expand, o.center, o.fill_value);
    });
  });
}

Op Affine(AffineOptions o) {
  check_inter("Affine", o.resample);
  check_fill("Affine", o.fill_value);
  UNDERTOW_CHECK(o.scale > 0, ValueError, "Affine: scale must be positive, got {}", o.scale);
  for (const double t : {o.translate.first, o.translate.second})
    UNDERTOW_CHECK(t >= -1 && t <= 1, ValueError, "Affine: translate must be in [-1, 1], got {}", t);
  return column_op("Affine", [o](const Tensor& x) {
    return each_image("Affine", x, [&](const Tensor& image) {
      const Extent e = extent_of("Affine", image);
      const Affine23 m =
          affine_matrix(e, o.degrees, o.translate.first * static_cast<double>(e.w),
                        o.translate.second * static_cast<double>(e.h), o.scale, o.shear.first, o.shear.second);
      return warp("Affine", image, e, m, o.resample, o.fill_value);
    });
  });
}

Op RandomAffine(RandomAffineOptions o) {
  static constexpr auto kName = "RandomAffine";
  check_inter(kName, o.resample);
  check_fill(kName, o.fill_value);
  check_range(kName, "degrees", o.degrees, -1e6, 1e6);
  const auto ranges = [](const char* what, const std::vector<double>& v, double low, double high) {
    UNDERTOW_CHECK(v.empty() || v.size() == 2 || v.size() == 4, ValueError,
                   "RandomAffine: {} must be 2 or 4 numbers, got {}", what, v);
    for (std::size_t i = 0; i + 1 < v.size(); i += 2) check_range(kName, what, {v[i], v[i + 1]}, low, high);
    Range x{0, 0}, y{0, 0};
    if (v.size() >= 2) x = {v[0], v[1]};
    if (v.size() == 4) y = {v[2], v[3]};
    return std::pair{x, y};
  };
  const auto translate = ranges("translate", o.translate, -1, 1), shear = ranges("shear", o.shear, -1e6, 1e6);
  UNDERTOW_CHECK(o.scale.empty() || o.scale.size() == 2, ValueError, "RandomAffine: scale must be 2 numbers, got {}",
                 o.scale);
  const Range scale = o.scale.empty() ? Range{1, 1} : Range{o.scale[0], o.scale[1]};
  check_range(kName, "scale", scale, 0, 1e6);
  UNDERTOW_CHECK(scale.first > 0, ValueError, "RandomAffine: scale must be positive, got {}", o.scale);
  return random_op(kName, [=](const Tensor& x, PhiloxStream& random) {
    const double degrees = uniform(random, o.degrees), tx = uniform(random, translate.first),
                 ty = uniform(random, translate.second), s = uniform(random, scale), hx = uniform(random, shear.first),
                 hy = uniform(random, shear.second);
    return each_image(kName, x, [&](const Tensor& image) {
      const Extent e = extent_of(kName, image);
      const auto shift_x = std::nearbyint(tx * static_cast<double>(e.w));  // whole pixels
      const auto shift_y = std::nearbyint(ty * static_cast<double>(e.h));
      return warp(kName, image, e, affine_matrix(e, degrees, shift_x, shift_y, s, hx, hy), o.resample, o.fill_value);
    });
  });
}

Op Perspective(Points start_points, Points end_points, Inter interpolation) {
  check_inter("Perspective", interpolation);
  UNDERTOW_CHECK(start_points.size() == 4 && end_points.size() == 4, ValueError,
                 "Perspective: start_points and end_points must be four points each, got {} and {}",
                 start_points.size(), end_points.size());
  const Projective backward = through(end_points, start_points);
  return column_op("Perspective", [=](const Tensor& x) {
    return each_image("Perspective", x, [&](const Tensor& image) {
      return warp("Perspective", image, extent_of("Perspective", image), backward, interpolation, {0});
    });
  });
}

Op RandomPerspective(double distortion_scale, double prob, Inter interpolation) {
  static constexpr auto kName = "RandomPerspective";
  check_inter(kName, interpolation);
  check_prob(kName, prob);
  UNDERTOW_CHECK(distortion_scale >= 0 && distortion_scale <= 1, ValueError,
                 "{}: distortion_scale must be in [0, 1], got {}", kName, distortion_scale);
  return random_op(kName, [=](const Tensor& x, PhiloxStream& random) {
    if (random.uniform64() >= prob) return x;
    double draws[8];  // how far each corner moves inwards, in x and y
    for (double& d : draws) d = random.uniform64() * distortion_scale / 2;
    return each_image(kName, x, [&](const Tensor& image) {
      const Extent e = extent_of(kName, image);
      if (e.h < 2 || e.w < 2) return image;
      const double w = static_cast<double>(e.w) - 1, h = static_cast<double>(e.h) - 1;
      const Points from{{0, 0}, {w, 0}, {w, h}, {0, h}};
      Points to = from;
      for (std::size_t i = 0; i < 4; ++i) {
        to[i].first += (from[i].first > 0 ? -1 : 1) * std::floor(draws[2 * i] * (w + 1));
        to[i].second += (from[i].second > 0 ? -1 : 1) * std::floor(draws[2 * i + 1] * (h + 1));
      }
      return warp(kName, image, e, through(to, from), interpolation, {0});
    });
  });
}

}  // namespace undertow::data::vision
