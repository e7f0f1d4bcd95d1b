// SPDX-License-Identifier: Apache-2.0
// Operations on whole batches: images with one-hot labels.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "undertow/data/vision/arguments.h"
#include "undertow/data/vision/noise.h"

namespace undertow::data::vision {
namespace {

/// Checks a row of (N, ...) images and (N, classes) or (N, parts, classes) labels.
void check_batch(const char* op, const Row& in) {
  UNDERTOW_CHECK(in.size() == 2, DataError, "{} takes two columns, image and label, got {}", op, in.size());
  UNDERTOW_CHECK(in[0].ndim() == 4, DataError, "{} works on batches: images of 4 dimensions, got shape {}", op,
                 in[0].shape().str());
  UNDERTOW_CHECK(in[1].ndim() == 2 || in[1].ndim() == 3, DataError,
                 "{} takes one-hot labels of shape (N, classes) or (N, rows, classes), got {}", op,
                 in[1].shape().str());
  UNDERTOW_CHECK(in[0].shape(0) == in[1].shape(0), DataError, "{}: {} images with {} labels", op, in[0].shape(0),
                 in[1].shape(0));
}

std::vector<std::int64_t> permutation(std::int64_t n, PhiloxStream& random) {
  std::vector<std::int64_t> p(static_cast<std::size_t>(n));
  std::iota(p.begin(), p.end(), std::int64_t{0});
  for (std::size_t i = p.size(); i > 1; --i) std::swap(p[i - 1], p[random.below(i)]);
  return p;
}

/// Row i becomes a * row i + (1 - a) * row other[i], rounded where the dtype is an integer's.
Tensor mixed(const Tensor& x, const std::vector<std::int64_t>& other, double a, DType to) {
  Tensor y(to, x.shape());
  const std::int64_t n = x.shape(0) ? x.size() / x.shape(0) : 0;
  dispatch(x.dtype(), [&](auto tag) {
    using T = decltype(tag);
    const T* in = static_cast<const T*>(x.data());
    dispatch(to, [&](auto out_tag) {
      using U = decltype(out_tag);
      U* out = static_cast<U*>(y.data());
      const auto fa = static_cast<float>(a), fb = static_cast<float>(1 - a);
      for (std::size_t i = 0; i < other.size(); ++i) {
        const T *p = in + static_cast<std::int64_t>(i) * n, *q = in + other[i] * n;
        for (std::int64_t j = 0; j < n; ++j) {
          const float v = static_cast<float>(p[j]) * fa + static_cast<float>(q[j]) * fb;
          if constexpr (std::is_same_v<U, bool>) *out++ = v >= 0.5f;
          else *out++ = saturate<U>(v);
        }
      }
    });
  });
  return y;
}

void check_alpha(const char* op, double alpha) {
  UNDERTOW_CHECK(alpha > 0, ValueError, "{}: alpha must be positive, got {}", op, alpha);
}

}  // namespace

Op MixUpBatch(double alpha) {
  check_alpha("MixUpBatch", alpha);
  return row_op("MixUpBatch", 2, [alpha](const Row& in, const RowContext& context) {
    check_batch("MixUpBatch", in);
    PhiloxStream random = context.random();
    const double a = beta(random, alpha);
    const std::vector<std::int64_t> other = permutation(in[0].shape(0), random);
    return Row{mixed(in[0], other, a, in[0].dtype()), mixed(in[1], other, a, DType::kFloat32)};
  });
}

Op CutMixBatch(ImageBatchFormat format, double alpha, double prob) {
  check_alpha("CutMixBatch", alpha);
  check_prob("CutMixBatch", prob);
  return row_op("CutMixBatch", 2, [=](const Row& in, const RowContext& context) {
    check_batch("CutMixBatch", in);
    const bool last = format == ImageBatchFormat::kNHWC;
    const Tensor& x = in[0];
    const std::int64_t n = x.shape(0), h = x.shape(last ? 1 : 2), w = x.shape(last ? 2 : 3), c = x.shape(last ? 3 : 1);
    UNDERTOW_CHECK(c == 1 || c == 3, DataError, "CutMixBatch: images of 1 or 3 channels in {}, got shape {}",
                   last ? "NHWC" : "NCHW", x.shape().str());
    PhiloxStream random = context.random();
    const std::vector<std::int64_t> other = permutation(n, random);
    const Tensor images = x.clone();
    Tensor labels = in[1].to(DType::kFloat32);
    if (labels.data() == in[1].data()) labels = labels.clone();
    const Tensor from = in[1].to(DType::kFloat32);
    const std::int64_t classes = n ? labels.size() / n : 0;
    for (std::int64_t i = 0; i < n; ++i) {
      if (random.uniform64() >= prob) continue;
      // A box of the area 1 - lambda about a random point, cut off at the edges (Yun et al., arXiv:1905.04899).
      const double cut = std::sqrt(1 - beta(random, alpha));
      const auto bh = static_cast<std::int64_t>(static_cast<double>(h) * cut);
      const auto bw = static_cast<std::int64_t>(static_cast<double>(w) * cut);
      const auto cy = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(std::max<std::int64_t>(h, 1))));
      const auto cx = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(std::max<std::int64_t>(w, 1))));
      const std::int64_t top = std::max<std::int64_t>(cy - bh / 2, 0), bottom = std::min(cy + bh / 2, h);
      const std::int64_t left = std::max<std::int64_t>(cx - bw / 2, 0), right = std::min(cx + bw / 2, w);
      const std::int64_t j = other[static_cast<std::size_t>(i)];
      const std::size_t pixel = size_of(x.dtype()) * static_cast<std::size_t>(last ? c : 1);
      const std::size_t bytes = static_cast<std::size_t>(std::max<std::int64_t>(right - left, 0)) * pixel;
      for (std::int64_t k = 0; k < (last ? 1 : c) && bytes; ++k)
        for (std::int64_t r = top; r < bottom; ++r) {
          const auto at = [&](std::int64_t image) {
            return static_cast<std::size_t>(((image * (last ? 1 : c) + k) * h + r) * w + left) * pixel;
          };
          std::memcpy(static_cast<std::byte*>(images.data()) + at(i), static_cast<const std::byte*>(x.data()) + at(j),
                      bytes);
        }
      const double gone =
          static_cast<double>(std::max<std::int64_t>(bottom - top, 0) * std::max<std::int64_t>(right - left, 0));
      const auto keep = static_cast<float>(1 - gone / static_cast<double>(h * w));
      const auto* a = static_cast<const float*>(from.data());
      auto* out = static_cast<float*>(labels.data());
      for (std::int64_t k = 0; k < classes; ++k)
        out[i * classes + k] = a[i * classes + k] * keep + a[j * classes + k] * (1 - keep);
    }
    return Row{images, labels};
  });
}

}  // namespace undertow::data::vision
