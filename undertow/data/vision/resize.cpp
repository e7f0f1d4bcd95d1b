// SPDX-License-Identifier: Apache-2.0
// Resampling by rows and columns. Two families, see Rules:
//
//  * kArray computes what OpenCV's resize does: 2 or 4 taps a pixel (linear, cubic with a = -0.75) whose weights have
//  11
//    bits for uint8, or area averages;
//  * kPillow computes what Pillow's resize does: a filter that widens as the image shrinks, weights of 22 bits for
//  uint8,
//    rounded to uint8 after the horizontal pass.
#include <algorithm>
#include <cstring>
#include <numbers>
#include <vector>

#include "undertow/data/vision/image.h"

namespace undertow::data::vision {
namespace {

/// Output i is the sum over k < count[i] of weight[i * most + k] * in[first[i] + k], or with `index` in[index[...]].
struct Taps {
  int most = 0;
  std::vector<int> first, count;
  std::vector<double> weight;
};

// ---- OpenCV's taps: always `most` of them, coordinates beyond the edge read the edge.

struct FixedTaps {
  int n = 0;
  std::vector<int> index;
  std::vector<float> weight;
};

void cubic_weights(float x, float* w) {
  constexpr float a = -0.75f;
  w[0] = ((a * (x + 1) - 5 * a) * (x + 1) + 8 * a) * (x + 1) - 4 * a;
  w[1] = ((a + 2) * x - (a + 3)) * x * x + 1;
  w[2] = ((a + 2) * (1 - x) - (a + 3)) * (1 - x) * (1 - x) + 1;
  w[3] = 1.f - w[0] - w[1] - w[2];
}

FixedTaps array_taps(std::int64_t in, std::int64_t out, Inter inter) {
  FixedTaps t;
  t.n = inter == Inter::kCubic ? 4 : 2;
  const double inverse = static_cast<double>(out) / static_cast<double>(in), scale = 1. / inverse;
  for (std::int64_t i = 0; i < out; ++i) {
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
      const std::int64_t at = s - (t.n / 2 - 1) + k;
      t.index.push_back(static_cast<int>(std::clamp<std::int64_t>(at, 0, in - 1)));
      t.weight.push_back(w[k]);
    }
  }
  return t;
}

/// Both passes, with a ring of rows that are done horizontally. `Work` is the type between the passes.
template <int N, typename T, typename Work, typename Weight, typename Vertical>
void fixed_passes(const T* in, const Extent& e, T* out, const Extent& to, const FixedTaps& tx, const FixedTaps& ty,
                  const std::vector<Weight>& wx, const std::vector<Weight>& wy, Vertical vertical) {
  const std::int64_t row = to.row();
  std::vector<Work> ring(static_cast<std::size_t>(N * row));
  int held[N];
  std::fill(held, held + N, -1);
  const auto horizontal = [&](int y, Work* line) {
    const T* src = in + y * e.row();
    const auto pass = [&]<int kC>() {
      const std::int64_t c = kC ? kC : e.c;
      for (std::int64_t x = 0; x < to.w; ++x) {
        const int* at = tx.index.data() + x * N;
        const Weight* w = wx.data() + x * N;
        for (std::int64_t k = 0; k < c; ++k) {
          Work sum = static_cast<Work>(src[at[0] * c + k]) * static_cast<Work>(w[0]);
          for (int n = 1; n < N; ++n) sum += static_cast<Work>(src[at[n] * c + k]) * static_cast<Work>(w[n]);
          line[x * c + k] = sum;
        }
      }
    };
    if (e.c == 3) pass.template operator()<3>();
    else if (e.c == 1) pass.template operator()<1>();
    else pass.template operator()<0>();
  };
  for (std::int64_t y = 0; y < to.h; ++y) {
    const Work* lines[N];
    for (int n = 0; n < N; ++n) {
      const int want = ty.index[static_cast<std::size_t>(y * N + n)];
      Work* line = ring.data() + (want % N) * row;  // N successive rows fall on N places
      if (held[want % N] != want) {
        horizontal(want, line);
        held[want % N] = want;
      }
      lines[n] = line;
    }
    vertical(lines, wy.data() + y * N, out + y * row, row);
  }
}

std::vector<int> bits11(const std::vector<float>& w) {
  std::vector<int> out;
  for (const float v : w) out.push_back(static_cast<int>(std::nearbyint(v * 2048.f)));
  return out;
}

template <typename T, typename Work>
void array_passes(const T* in, const Extent& e, T* out, const Extent& to, const FixedTaps& tx, const FixedTaps& ty) {
  if constexpr (std::is_same_v<T, std::uint8_t>) {
    const std::vector<int> wx = bits11(tx.weight), wy = bits11(ty.weight);
    if (tx.n == 2)
      fixed_passes<2, T, int>(
          in, e, out, to, tx, ty, wx, wy, [](const int* const* s, const int* w, std::uint8_t* o, std::int64_t n) {
            const int *a = s[0], *b = s[1], wa = w[0], wb = w[1];
            for (std::int64_t i = 0; i < n; ++i)
              o[i] = static_cast<std::uint8_t>((((wa * (a[i] >> 4)) >> 16) + ((wb * (b[i] >> 4)) >> 16) + 2) >> 2);
          });
    else
      fixed_passes<4, T, int>(
          in, e, out, to, tx, ty, wx, wy, [](const int* const* s, const int* w, std::uint8_t* o, std::int64_t n) {
            for (std::int64_t i = 0; i < n; ++i)
              o[i] = clamp8((s[0][i] * w[0] + s[1][i] * w[1] + s[2][i] * w[2] + s[3][i] * w[3] + (1 << 21)) >> 22);
          });
  } else {
    const auto vertical = [n = tx.n](const Work* const* s, const float* w, T* o, std::int64_t count) {
      for (std::int64_t i = 0; i < count; ++i) {
        Work sum = s[0][i] * static_cast<Work>(w[0]);
        for (int k = 1; k < n; ++k) sum += s[k][i] * static_cast<Work>(w[k]);
        o[i] = saturate<T>(sum);
      }
    };
    if (tx.n == 2) fixed_passes<2, T, Work>(in, e, out, to, tx, ty, tx.weight, ty.weight, vertical);
    else fixed_passes<4, T, Work>(in, e, out, to, tx, ty, tx.weight, ty.weight, vertical);
  }
}

// ---- Taps of any number.

/// The share of each pixel in the interval that an output covers.
Taps area_taps(std::int64_t in, std::int64_t out) {
  const double scale = 1. / (static_cast<double>(out) / static_cast<double>(in));
  Taps t;
  t.most = static_cast<int>(std::ceil(scale)) + 2;
  for (std::int64_t i = 0; i < out; ++i) {
    const double low = static_cast<double>(i) * scale, high = low + scale;
    const double cell = std::min(scale, static_cast<double>(in) - low);
    auto from = static_cast<std::int64_t>(std::ceil(low)), end = static_cast<std::int64_t>(std::floor(high));
    end = std::min(end, in - 1);
    from = std::min(from, end);
    t.weight.resize(static_cast<std::size_t>((i + 1) * t.most));
    double* w = t.weight.data() + i * t.most;
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

Taps pillow_taps(std::int64_t in, std::int64_t out, Inter inter) {
  const double scale = static_cast<double>(in) / static_cast<double>(out), wide = std::max(scale, 1.);
  const double support = (inter == Inter::kLinear ? 1 : inter == Inter::kAntialias ? 3 : 2) * wide;
  Taps t;
  t.most = static_cast<int>(std::ceil(support)) * 2 + 1;
  t.weight.resize(static_cast<std::size_t>(out * t.most));
  for (std::int64_t i = 0; i < out; ++i) {
    const double centre = (static_cast<double>(i) + 0.5) * scale;
    const auto low = std::max<std::int64_t>(static_cast<std::int64_t>(centre - support + 0.5), 0);
    const auto high = std::min<std::int64_t>(static_cast<std::int64_t>(centre + support + 0.5), in);
    double* w = t.weight.data() + i * t.most;
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

template <typename Weight>
std::vector<Weight> weights(const Taps& t) {
  std::vector<Weight> out;
  for (const double w : t.weight)
    if constexpr (std::is_integral_v<Weight>) out.push_back(static_cast<Weight>(std::round(w * (1 << 22))));
    else out.push_back(static_cast<Weight>(w));
  return out;
}

/// One pass along a row: `in` and `out` are (rows, in or out pixels, c). `Sum`: int with 22 bits for uint8, or a float.
template <typename T, typename U, typename Sum>
void along_rows(const T* in, std::int64_t rows, std::int64_t in_w, std::int64_t c, U* out, const Taps& t) {
  const std::vector<Sum> w = weights<Sum>(t);
  const auto n = static_cast<std::int64_t>(t.first.size());
  for (std::int64_t y = 0; y < rows; ++y, in += in_w * c, out += n * c) {
    const auto pass = [&]<int kC>() {
      const std::int64_t channels = kC ? kC : c;
      for (std::int64_t x = 0; x < n; ++x) {
        const T* s = in + t.first[static_cast<std::size_t>(x)] * channels;
        const Sum* weight = w.data() + x * t.most;
        for (std::int64_t k = 0; k < channels; ++k) {
          Sum sum = std::is_integral_v<Sum> ? Sum(1 << 21) : Sum(0);
          for (int j = 0; j < t.count[static_cast<std::size_t>(x)]; ++j)
            sum += static_cast<Sum>(s[j * channels + k]) * weight[j];
          if constexpr (std::is_integral_v<Sum>) out[x * channels + k] = clamp8(sum >> 22);
          else out[x * channels + k] = static_cast<U>(sum);
        }
      }
    };
    if (c == 3) pass.template operator()<3>();
    else if (c == 1) pass.template operator()<1>();
    else pass.template operator()<0>();
  }
}

/// One pass down the columns: rows of `row` values.
template <typename T, typename U, typename Sum>
void down_columns(const T* in, std::int64_t row, U* out, const Taps& t) {
  const std::vector<Sum> w = weights<Sum>(t);
  std::vector<Sum> sum(static_cast<std::size_t>(row));
  for (std::size_t y = 0; y < t.first.size(); ++y, out += row) {
    std::fill(sum.begin(), sum.end(), std::is_integral_v<Sum> ? Sum(1 << 21) : Sum(0));
    for (int j = 0; j < t.count[y]; ++j) {
      const T* s = in + (t.first[y] + j) * row;
      const Sum weight = w[y * static_cast<std::size_t>(t.most) + static_cast<std::size_t>(j)];
      for (std::int64_t i = 0; i < row; ++i) sum[static_cast<std::size_t>(i)] += static_cast<Sum>(s[i]) * weight;
    }
    for (std::int64_t i = 0; i < row; ++i) {
      if constexpr (std::is_integral_v<Sum>) out[i] = clamp8(sum[static_cast<std::size_t>(i)] >> 22);
      else out[i] = saturate<U>(sum[static_cast<std::size_t>(i)]);
    }
  }
}

template <typename T, typename Work>
void area_passes(const T* in, const Extent& e, T* out, const Extent& to) {
  if (std::is_same_v<T, std::uint8_t> && e.w == 2 * to.w && e.h == 2 * to.h) {
    if constexpr (std::is_same_v<T, std::uint8_t>)
      for (std::int64_t y = 0; y < to.h; ++y)
        for (std::int64_t x = 0; x < to.w; ++x)
          for (std::int64_t k = 0; k < e.c; ++k) {
            const T* s = in + (2 * y * e.w + 2 * x) * e.c + k;
            *out++ = static_cast<T>((s[0] + s[e.c] + s[e.row()] + s[e.row() + e.c] + 2) >> 2);
          }
    return;
  }
  std::vector<Work> between(static_cast<std::size_t>(e.h * to.row()));
  along_rows<T, Work, Work>(in, e.h, e.w, e.c, between.data(), area_taps(e.w, to.w));
  down_columns<Work, T, Work>(between.data(), to.row(), out, area_taps(e.h, to.h));
}

template <typename T, typename Work>
void pillow_passes(const T* in, const Extent& e, T* out, const Extent& to, Inter inter) {
  using Sum = std::conditional_t<std::is_same_v<T, std::uint8_t>, int, Work>;
  using Between = std::conditional_t<std::is_same_v<T, std::uint8_t>, T, Work>;
  const Taps down = pillow_taps(e.h, to.h, inter);
  if (e.w == to.w) return down_columns<T, T, Sum>(in, to.row(), out, down);
  const Taps along = pillow_taps(e.w, to.w, inter);
  if (e.h == to.h && std::is_same_v<T, Between>) return along_rows<T, T, Sum>(in, e.h, e.w, e.c, out, along);
  std::vector<Between> between(static_cast<std::size_t>(e.h * to.row()));
  along_rows<T, Between, Sum>(in, e.h, e.w, e.c, between.data(), along);
  down_columns<Between, T, Sum>(between.data(), to.row(), out, down);
}

Tensor nearest(const Tensor& x, const Extent& e, const Extent& to, Rules rules) {
  Tensor y(x.dtype(), to.shape());
  const std::size_t pixel = size_of(x.dtype()) * static_cast<std::size_t>(e.c);
  const auto source = [rules](std::int64_t i, std::int64_t in, std::int64_t out) {
    const double scale = rules == Rules::kPillow ? static_cast<double>(in) / static_cast<double>(out)
                                                 : 1. / (static_cast<double>(out) / static_cast<double>(in));
    const double at = rules == Rules::kPillow ? (static_cast<double>(i) + 0.5) * scale : static_cast<double>(i) * scale;
    return std::min(static_cast<std::int64_t>(std::floor(at)), in - 1);
  };
  std::vector<std::size_t> columns;
  for (std::int64_t j = 0; j < to.w; ++j) columns.push_back(static_cast<std::size_t>(source(j, e.w, to.w)) * pixel);
  const auto* in = static_cast<const std::byte*>(x.data());
  auto* out = static_cast<std::byte*>(y.data());
  for (std::int64_t i = 0; i < to.h; ++i) {
    const std::byte* row = in + static_cast<std::size_t>(source(i, e.h, to.h) * e.w) * pixel;
    for (const std::size_t at : columns) {
      std::memcpy(out, row + at, pixel);
      out += pixel;
    }
  }
  return y;
}

template <typename T>
Tensor resample(const Tensor& x, const Extent& e, const Extent& to, Inter inter, Rules rules) {
  // float32 holds integers of up to 16 bits; wider ones are computed in float64.
  using Work = std::conditional_t<(sizeof(T) > 2 && !std::is_same_v<T, float>), double, float>;
  Tensor y(x.dtype(), to.shape());
  const T* in = static_cast<const T*>(x.data());
  T* out = static_cast<T*>(y.data());
  if (rules == Rules::kPillow || inter == Inter::kPilCubic) {
    pillow_passes<T, Work>(in, e, out, to, inter);
    return y;
  }
  const bool shrinks = to.w <= e.w && to.h <= e.h;
  // OpenCV takes the average of 2 x 2 pixels for linear too when it halves uint8 images.
  const bool halves = e.w == 2 * to.w && e.h == 2 * to.h;
  if ((inter == Inter::kArea && shrinks) || (inter == Inter::kLinear && halves)) {
    area_passes<T, Work>(in, e, out, to);
    return y;
  }
  array_passes<T, Work>(in, e, out, to, array_taps(e.w, to.w, inter), array_taps(e.h, to.h, inter));
  return y;
}

}  // namespace

Tensor resize(const char* op, const Tensor& x, std::int64_t h, std::int64_t w, Inter inter, Rules rules) {
  const Extent e = extent_of(op, x), to = e.sized(h, w);
  UNDERTOW_CHECK(e.h > 0 && e.w > 0 && h > 0 && w > 0, DataError, "{}: cannot resize shape {} to {} x {}", op,
                 x.shape().str(), h, w);
  UNDERTOW_CHECK(inter != Inter::kAntialias || rules == Rules::kPillow, DataError,
                 "{}: Inter.ANTIALIAS is for PIL images; arrays take NEAREST, LINEAR, CUBIC, AREA and PILCUBIC", op);
  UNDERTOW_CHECK(inter != Inter::kArea || rules == Rules::kArray, DataError,
                 "{}: Inter.AREA is for arrays; PIL images take NEAREST, LINEAR, CUBIC and ANTIALIAS", op);
  if (h == e.h && w == e.w) return x;
  if (inter == Inter::kNearest) return nearest(x, e, to, rules);
  switch (x.dtype()) {
    case DType::kUInt8: return resample<std::uint8_t>(x, e, to, inter, rules);
    case DType::kInt8: return resample<std::int8_t>(x, e, to, inter, rules);
    case DType::kUInt16: return resample<std::uint16_t>(x, e, to, inter, rules);
    case DType::kInt16: return resample<std::int16_t>(x, e, to, inter, rules);
    case DType::kInt32: return resample<std::int32_t>(x, e, to, inter, rules);
    case DType::kFloat32: return resample<float>(x, e, to, inter, rules);
    case DType::kFloat64: return resample<double>(x, e, to, inter, rules);
    case DType::kFloat16: return resize(op, x.to(DType::kFloat32), h, w, inter, rules).to(DType::kFloat16);
    default:
      throw DataError(
          fmt::format("{} interpolates uint8, int8, uint16, int16, int32, float16, float32 and float64; got {}", op,
                      numpy_name_of(x.dtype())));
  }
}

}  // namespace undertow::data::vision
