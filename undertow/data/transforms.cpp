// SPDX-License-Identifier: Apache-2.0
#include "undertow/data/transforms.h"

#include "undertow/base/check.h"

namespace undertow::data {
namespace {

/// An operation on one column, as a function.
template <typename F>
class ColumnOp final : public MapOp {
 public:
  ColumnOp(const char* name, F f) : name_(name), f_(std::move(f)) {}
  std::string name() const override { return name_; }
  int arity() const override { return 1; }
  bool waits() const override { return false; }
  Row operator()(const Row& in, const RowContext&) override {
    UNDERTOW_CHECK(in.size() == 1, DataError, "{} takes one column, got {}", name_, in.size());
    return {f_(in[0])};
  }

 private:
  const char* name_;
  F f_;
};

template <typename F>
std::shared_ptr<MapOp> column_op(const char* name, F f) {
  return std::make_shared<ColumnOp<F>>(name, std::move(f));
}

/// `f(float, index)` of every element.
template <typename F>
Tensor map_floats(const Tensor& x, F f) {
  Tensor y(DType::kFloat32, x.shape());
  float* out = static_cast<float*>(y.data());
  const std::int64_t n = x.size();
  dispatch(x.dtype(), [&](auto tag) {
    using T = decltype(tag);
    const T* in = static_cast<const T*>(x.data());
    for (std::int64_t i = 0; i < n; ++i) out[i] = f(static_cast<float>(in[i]), i);
  });
  return y;
}

}  // namespace

std::shared_ptr<MapOp> transforms::TypeCast(DType dtype) {
  return column_op("TypeCast", [dtype](const Tensor& x) { return x.dtype() == dtype ? x : x.to(dtype); });
}

std::shared_ptr<MapOp> vision::Rescale(double rescale, double shift) {
  return column_op("Rescale", [a = static_cast<float>(rescale), b = static_cast<float>(shift)](const Tensor& x) {
    return map_floats(x, [a, b](float v, std::int64_t) { return v * a + b; });
  });
}

std::shared_ptr<MapOp> vision::Normalize(std::vector<double> mean, std::vector<double> std, bool is_hwc) {
  UNDERTOW_CHECK(!mean.empty() && mean.size() == std.size(), ValueError,
                 "Normalize: mean and std must have the same length, at least 1; got {} and {}", mean.size(),
                 std.size());
  for (const double s : std) UNDERTOW_CHECK(s > 0, ValueError, "Normalize: std must be positive, got {}", s);
  std::vector<float> m(mean.begin(), mean.end()), s(std.begin(), std.end());
  return column_op("Normalize", [m, s, is_hwc](const Tensor& x) {
    UNDERTOW_CHECK(x.ndim() == 2 || x.ndim() == 3, DataError,
                   "Normalize takes images of 2 or 3 dimensions, got shape {}", x.shape().str());
    const std::int64_t channels = x.ndim() == 2 ? 1 : x.shape(is_hwc ? 2 : 0);
    const auto given = static_cast<std::int64_t>(m.size());
    UNDERTOW_CHECK(given == 1 || given == channels, DataError,
                   "Normalize has {} means for an image of {} channels (shape {}, {})", given, channels,
                   x.shape().str(), is_hwc ? "HWC" : "CHW");
    if (given == 1) return map_floats(x, [&](float v, std::int64_t) { return (v - m[0]) / s[0]; });
    if (is_hwc)
      return map_floats(x, [&](float v, std::int64_t i) {
        const auto c = static_cast<std::size_t>(i % channels);
        return (v - m[c]) / s[c];
      });
    const std::int64_t plane = x.shape(1) * x.shape(2);
    return map_floats(x, [&](float v, std::int64_t i) {
      const auto c = static_cast<std::size_t>(i / plane);
      return (v - m[c]) / s[c];
    });
  });
}

std::shared_ptr<MapOp> vision::HWC2CHW() {
  return column_op("HWC2CHW", [](const Tensor& x) {
    if (x.ndim() == 2) return x;
    UNDERTOW_CHECK(x.ndim() == 3, DataError, "HWC2CHW takes images of 2 or 3 dimensions, got shape {}",
                   x.shape().str());
    const std::int64_t plane = x.shape(0) * x.shape(1), c = x.shape(2);
    const Shape shape{c, x.shape(0), x.shape(1)};
    if (c == 1) return x.view(shape);
    Tensor y(x.dtype(), shape);
    dispatch(x.dtype(), [&](auto tag) {
      using T = decltype(tag);
      const T* in = static_cast<const T*>(x.data());
      T* out = static_cast<T*>(y.data());
      for (std::int64_t k = 0; k < c; ++k)
        for (std::int64_t i = 0; i < plane; ++i) *out++ = in[i * c + k];
    });
    return y;
  });
}

}  // namespace undertow::data
