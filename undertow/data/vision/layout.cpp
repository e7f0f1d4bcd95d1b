// SPDX-License-Identifier: Apache-2.0
// Images to the numbers and the layout that a network takes.
#include <algorithm>
#include <cstring>

#include "undertow/data/vision/arguments.h"
#include "undertow/data/vision/work.h"

namespace undertow::data::vision {
namespace {

void check_moments(const char* op, const std::vector<double>& mean, const std::vector<double>& std) {
  UNDERTOW_CHECK(!mean.empty() && mean.size() == std.size(), ValueError,
                 "{}: mean and std must have the same length, at least 1; got {} and {}", op, mean.size(), std.size());
  for (const double s : std) UNDERTOW_CHECK(s > 0, ValueError, "{}: std must be positive, got {}", op, s);
}

struct Moments {
  std::vector<float> mean, std;
  bool is_hwc;

  Moments(const std::vector<double>& m, const std::vector<double>& s, bool hwc)
      : mean(m.begin(), m.end()), std(s.begin(), s.end()), is_hwc(hwc) {}
  void apply(const char* op, Work& w) const { w.normalize(op, mean, std, is_hwc); }
};

}  // namespace

Op Rescale(double rescale, double shift) {
  return lazy_op(
      "Rescale", 1, [a = static_cast<float>(rescale), b = static_cast<float>(shift)](LazyRow& row, const RowContext&) {
        for (std::size_t c = 0; c < row.size(); ++c) {
          if (const int n = row.shape(c).rank(); n == 2 || n == 3) {
            Work::on("Rescale", row, c).scale(a, b);
            continue;
          }
          const Tensor x = row.column(c);  // numbers of any shape: as one row
          row.set(c, work_on("Rescale", x.view({1, x.size()}), [&](Work& w) { w.scale(a, b); }).view(x.shape()));
        }
      });
}

Op Normalize(std::vector<double> mean, std::vector<double> std, bool is_hwc) {
  check_moments("Normalize", mean, std);
  return work_op("Normalize", [m = Moments(mean, std, is_hwc)](Work& w, PhiloxStream&) { m.apply("Normalize", w); });
}

Op NormalizePad(std::vector<double> mean, std::vector<double> std, DType dtype, bool is_hwc) {
  check_moments("NormalizePad", mean, std);
  UNDERTOW_CHECK(dtype == DType::kFloat32 || dtype == DType::kFloat16, ValueError,
                 "NormalizePad: dtype must be float32 or float16, got {}", numpy_name_of(dtype));
  return column_op("NormalizePad", [m = Moments(mean, std, is_hwc), dtype, is_hwc](const Tensor& x) {
    UNDERTOW_CHECK(x.ndim() == 3, DataError, "NormalizePad takes images of 3 dimensions, got shape {}",
                   x.shape().str());
    const Tensor y = work_on("NormalizePad", x, [&](Work& w) { m.apply("NormalizePad", w); });
    const std::int64_t c = x.shape(is_hwc ? 2 : 0);
    const Shape shape = is_hwc ? Shape{x.shape(0), x.shape(1), c + 1} : Shape{c + 1, x.shape(1), x.shape(2)};
    const Tensor z = Tensor::zeros(shape);
    const float* in = static_cast<const float*>(y.data());
    float* out = static_cast<float*>(z.data());
    if (is_hwc) {
      for (std::int64_t i = 0; i < x.shape(0) * x.shape(1); ++i)
        for (std::int64_t k = 0; k < c; ++k) out[i * (c + 1) + k] = in[i * c + k];
    } else if (y.nbytes()) {
      std::memcpy(out, in, y.nbytes());
    }
    return z.dtype() == dtype ? z : z.to(dtype);
  });
}

Op HWC2CHW() {
  return work_op("HWC2CHW", [](Work& w, PhiloxStream&) { w.to_planes(); }, false);
}

Op ToTensor(DType output_type) {
  return work_op(
      "ToTensor",
      [output_type](Work& w, PhiloxStream&) {
        // 16-bit samples span 0..65535; everything else is taken to span 0..255, as MindSpore does.
        const float span = w.dtype() == DType::kUInt16 ? 65535.f : 255.f;
        w.extent();
        w.normalize("ToTensor", {0}, {span}, true);
        w.to_planes(true);
        w.cast(output_type);
      },
      false);
}

Op LinearTransformation(const Tensor& matrix, const Tensor& mean) {
  UNDERTOW_CHECK(matrix.ndim() == 2 && matrix.shape(0) == matrix.shape(1), ValueError,
                 "LinearTransformation: transformation_matrix must be square, got shape {}", matrix.shape().str());
  UNDERTOW_CHECK(mean.ndim() == 1 && mean.size() == matrix.shape(0), ValueError,
                 "LinearTransformation: mean_vector must have the {} elements of a row of transformation_matrix, got "
                 "shape {}",
                 matrix.shape(0), mean.shape().str());
  return column_op(
      "LinearTransformation", [m = matrix.to(DType::kFloat64), v = mean.to(DType::kFloat64)](const Tensor& x) {
        const std::int64_t n = m.shape(0);
        UNDERTOW_CHECK(x.size() == n, DataError, "LinearTransformation: {} numbers of shape {} for a matrix of {} rows",
                       x.size(), x.shape().str(), n);
        const Tensor in = x.to(DType::kFloat64), y = Tensor::zeros(x.shape(), DType::kFloat64);
        const auto *a = static_cast<const double*>(in.data()), *w = static_cast<const double*>(m.data()),
                   *shift = static_cast<const double*>(v.data());
        auto* out = static_cast<double*>(y.data());
        for (std::int64_t i = 0; i < n; ++i)
          for (std::int64_t j = 0; j < n; ++j) out[j] += (a[i] - shift[i]) * w[i * n + j];
        return y;
      });
}

namespace {

/// `f(pixel[3])` in float64, with channels last or first.
template <typename F>
Op pixel_op(const char* name, bool is_hwc, F f) {
  return column_op(name, [=](const Tensor& x) {
    return each_image(name, x, [&](const Tensor& image) {
      UNDERTOW_CHECK(image.ndim() == 3 && image.shape(is_hwc ? 2 : 0) == 3, DataError,
                     "{} takes images of shape {}, got {}", name, is_hwc ? "(H, W, 3)" : "(3, H, W)",
                     image.shape().str());
      const Tensor y = image.dtype() == DType::kFloat64 ? image.clone() : image.to(DType::kFloat64);
      const std::int64_t n = y.size() / 3, next = is_hwc ? 1 : n, step = is_hwc ? 3 : 1;
      auto* data = static_cast<double*>(y.data());
      for (std::int64_t i = 0; i < n; ++i) {
        double* p = data + i * step;
        double v[3] = {p[0], p[next], p[2 * next]};
        f(v);
        for (int k = 0; k < 3; ++k) p[k * next] = v[k];
      }
      return y;
    });
  });
}

}  // namespace

Op RgbToHsv(bool is_hwc) {
  // Smith, "Color gamut transform pairs", SIGGRAPH 1978.
  return pixel_op("RgbToHsv", is_hwc, [](double* p) {
    const double high = std::max({p[0], p[1], p[2]}), low = std::min({p[0], p[1], p[2]}), d = high - low;
    double h = 0, s = 0;
    if (d != 0) {
      s = d / high;
      const double r = (high - p[0]) / d, g = (high - p[1]) / d, b = (high - p[2]) / d;
      h = p[0] == high ? b - g : p[1] == high ? 2 + r - b : 4 + g - r;
      h = h / 6 - std::floor(h / 6);
    }
    p[0] = h;
    p[1] = s;
    p[2] = high;
  });
}

Op HsvToRgb(bool is_hwc) {
  return pixel_op("HsvToRgb", is_hwc, [](double* p) {
    const double h = p[0], s = p[1], v = p[2];
    const double whole = std::trunc(h * 6), f = h * 6 - whole;
    const double a = v * (1 - s), b = v * (1 - s * f), c = v * (1 - s * (1 - f));
    const double sectors[6][3] = {{v, c, a}, {b, v, a}, {a, v, c}, {a, b, v}, {c, a, v}, {v, a, b}};
    const auto sector = static_cast<std::int64_t>(std::isfinite(whole) ? whole : 0) % 6;
    for (int k = 0; k < 3; ++k) p[k] = s == 0 ? v : sectors[sector < 0 ? sector + 6 : sector][k];
  });
}

Op GaussianBlur(Size kernel_size, std::vector<double> sigma) {
  check_size("GaussianBlur", kernel_size, "kernel_size");
  UNDERTOW_CHECK(sigma.size() <= 2, ValueError, "GaussianBlur: sigma must be one number or two, got {}", sigma);
  for (const double s : sigma)
    UNDERTOW_CHECK(s >= 0, ValueError, "GaussianBlur: sigma must not be negative, got {}", sigma);
  std::vector<float> taps[2];  // along x, along y
  for (std::size_t d = 0; d < 2; ++d) {
    const std::int64_t k = d == 0 ? kernel_size.front() : kernel_size.back();
    UNDERTOW_CHECK(k % 2 == 1, ValueError, "GaussianBlur: kernel_size must be odd, got {}", kernel_size);
    double s = sigma.empty() ? 0 : d == 0 ? sigma.front() : sigma.back();
    if (s == 0) s = 0.3 * ((static_cast<double>(k) - 1) * 0.5 - 1) + 0.8;
    double sum = 0;
    std::vector<double> w;
    for (std::int64_t i = 0; i < k; ++i) {
      const double at = static_cast<double>(i) - static_cast<double>(k - 1) / 2;
      w.push_back(std::exp(-at * at / (2 * s * s)));
      sum += w.back();
    }
    for (const double v : w) taps[d].push_back(static_cast<float>(v / sum));
  }
  return column_op("GaussianBlur", [x_taps = taps[0], y_taps = taps[1]](const Tensor& x) {
    return each_image("GaussianBlur", x, [&](const Tensor& image) {
      const Extent e = extent_of("GaussianBlur", image);
      const Tensor y(image.dtype(), image.shape());
      if (image.size() == 0) return y;
      const Tensor in = image.to(DType::kFloat32);
      std::vector<float> between(static_cast<std::size_t>(in.size())), sum(static_cast<std::size_t>(e.row()));
      const auto half = [](const std::vector<float>& t) { return static_cast<std::int64_t>(t.size() / 2); };
      for (std::int64_t i = 0; i < e.h; ++i) {
        const float* row = static_cast<const float*>(in.data()) + i * e.row();
        float* out = between.data() + i * e.row();
        for (std::int64_t j = 0; j < e.w; ++j)
          for (std::size_t t = 0; t < x_taps.size(); ++t) {
            const std::int64_t at =
                border_index(j + static_cast<std::int64_t>(t) - half(x_taps), e.w, Border::kReflect) * e.c;
            for (std::int64_t k = 0; k < e.c; ++k)
              out[j * e.c + k] = (t ? out[j * e.c + k] : 0.f) + row[at + k] * x_taps[t];
          }
      }
      dispatch(image.dtype(), [&](auto tag) {
        using T = decltype(tag);
        T* out = static_cast<T*>(y.data());
        for (std::int64_t i = 0; i < e.h; ++i, out += e.row()) {
          std::fill(sum.begin(), sum.end(), 0.f);
          for (std::size_t t = 0; t < y_taps.size(); ++t) {
            const float* row =
                between.data() +
                border_index(i + static_cast<std::int64_t>(t) - half(y_taps), e.h, Border::kReflect) * e.row();
            for (std::size_t j = 0; j < sum.size(); ++j) sum[j] += row[j] * y_taps[t];
          }
          for (std::size_t j = 0; j < sum.size(); ++j)
            if constexpr (std::is_same_v<T, bool>) out[j] = sum[j] >= 0.5f;
            else out[j] = saturate<T>(sum[j]);
        }
      });
      return y;
    });
  });
}

}  // namespace undertow::data::vision
