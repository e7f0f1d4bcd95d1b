// SPDX-License-Identifier: Apache-2.0
// Direct convolutions with few channels, stride 1, NCHW, float32: the library's kernels work on blocks of eight or more
// channels and leave most lanes empty there.
//
// The lanes are eight neighbours of one output row. A convolution is then a matrix product whose right side is read
// from the image through a table of offsets, one for each (channel, row, column) of the window: no im2col. The gradient
// of the input is the same product over the padded dy with mirrored weights. An image is one thread's, and the weight
// gradient is summed over a fixed number of chunks of the batch: the bits do not depend on the number of threads.
#include <immintrin.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "undertow/backend/cpu/conv_geometry.h"
#include "undertow/backend/cpu/kernel_list.h"
#include "undertow/backend/cpu/parallel.h"
#include "undertow/base/check.h"

// GCC keeps an array of accumulators in registers only if the loops over it are unrolled early.
#define UNROLL _Pragma("GCC unroll 8")

namespace undertow::backend::cpu {
namespace {

constexpr double kNsPerFlop = 1.0 / 40;
constexpr std::int64_t kLanes = 8;
constexpr int kRows = 6;                        // channels of a tile of the product
constexpr int kGradRows = 3, kGradColumns = 4;  // channels and window elements of a tile of the weight gradient
constexpr std::int64_t kChunks = 8;             // of the batch, in the weight gradient
constexpr std::int64_t kBlockFloats = 8 << 10;  // of x and dy that a first-level cache holds

__m256i lanes(std::int64_t count) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

/// Eight neighbouring outputs of one row (fewer at its end).
struct Pixels {
  std::int32_t in, out;  // offsets of the first in a (padded) input plane and in an output plane
  std::int32_t count;
};

/// With `overlap`, the last eight of a row may repeat some of those before: whole vectors are faster than masked ones.
std::vector<Pixels> pixels_of(std::int64_t rows, std::int64_t columns, std::int64_t in_width, bool overlap) {
  std::vector<Pixels> p;
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < columns; c += kLanes) {
      const std::int64_t first = overlap && columns >= kLanes ? std::min(c, columns - kLanes) : c;
      p.push_back({static_cast<std::int32_t>(r * in_width + first), static_cast<std::int32_t>(r * columns + first),
                   static_cast<std::int32_t>(std::min(kLanes, columns - first))});
    }
  return p;
}

/// One step of the product's inner dimension.
struct Tap {
  std::int32_t in, weight;  // offsets into a padded image and into the weights
};

/// A plane with zeros around it.
struct Padding {
  std::int64_t h, w, top, left, padded_h, padded_w;
  bool any() const { return h != padded_h || w != padded_w; }
  std::int64_t plane() const { return padded_h * padded_w; }

  /// `count` planes from dense memory to `to`, or just where they are when there is nothing to add.
  const float* apply(const float* from, std::int64_t count, float* to) const {
    if (!any()) return from;
    std::memset(to, 0, static_cast<std::size_t>(count * plane()) * sizeof(float));
    for (std::int64_t p = 0; p < count; ++p)
      for (std::int64_t r = 0; r < h; ++r)
        std::memcpy(to + p * plane() + (r + top) * padded_w + left, from + (p * h + r) * w,
                    static_cast<std::size_t>(w) * sizeof(float));
    return to;
  }
};

template <int MR, bool Masked>
void conv_tile(std::span<const Tap> taps, const float* x, const float* w, std::int64_t w_row, float* y,
               std::int64_t y_plane, const Pixels& p, const Pixels& q) {
  __m256 acc[MR][2];
  for (auto& a : acc) a[0] = a[1] = _mm256_setzero_ps();
  const float *x0 = x + p.in, *x1 = x + q.in;
  const __m256i m0 = Masked ? lanes(p.count) : __m256i{}, m1 = Masked ? lanes(q.count) : __m256i{};
  for (const Tap t : taps) {
    const __m256 v0 = Masked ? _mm256_maskload_ps(x0 + t.in, m0) : _mm256_loadu_ps(x0 + t.in);
    const __m256 v1 = Masked ? _mm256_maskload_ps(x1 + t.in, m1) : _mm256_loadu_ps(x1 + t.in);
    const float* wt = w + t.weight;
    UNROLL for (int i = 0; i < MR; ++i) {
      const __m256 c = _mm256_broadcast_ss(wt + i * w_row);
      acc[i][0] = _mm256_fmadd_ps(c, v0, acc[i][0]);
      acc[i][1] = _mm256_fmadd_ps(c, v1, acc[i][1]);
    }
  }
  UNROLL for (int i = 0; i < MR; ++i) {
    float *y0 = y + i * y_plane + p.out, *y1 = y + i * y_plane + q.out;
    if (Masked) {
      _mm256_maskstore_ps(y0, m0, acc[i][0]);
      _mm256_maskstore_ps(y1, m1, acc[i][1]);
    } else {
      _mm256_storeu_ps(y0, acc[i][0]);
      _mm256_storeu_ps(y1, acc[i][1]);
    }
  }
}

using ConvTile = void (*)(std::span<const Tap>, const float*, const float*, std::int64_t, float*, std::int64_t,
                          const Pixels&, const Pixels&);
template <bool Masked>
constexpr std::array<ConvTile, kRows> kConvTiles = {conv_tile<1, Masked>, conv_tile<2, Masked>, conv_tile<3, Masked>,
                                                    conv_tile<4, Masked>, conv_tile<5, Masked>, conv_tile<6, Masked>};

/// A stride-1 product of padded images with weights: the forward pass, and the input's gradient.
struct Product {
  std::int64_t images, groups, in_channels, out_channels;  // channels per group
  Padding padding;
  std::int64_t out_plane;
  std::vector<Tap> taps;
  std::vector<Pixels> pixels;  // an even number: the last may stand twice
  std::int64_t w_row, w_group;
  double cost;

  std::size_t scratch() const {
    if (!padding.any()) return 0;
    return static_cast<std::size_t>(compute_threads() * in_channels * padding.plane()) * sizeof(float);
  }

  void run(const float* x, const float* w, float* y, float* scratch) const {
    const std::int64_t in_group = in_channels * padding.h * padding.w, out_group = out_channels * out_plane;
    const std::int64_t tiles = (out_channels + kRows - 1) / kRows;
    parallel_for(images * groups, cost, [&](std::int64_t begin, std::int64_t end, int thread) {
      for (std::int64_t u = begin; u < end; ++u) {
        const float* image =
            padding.apply(x + u * in_group, in_channels, scratch + thread * in_channels * padding.plane());
        for (std::int64_t t = 0; t < tiles; ++t) {
          const std::int64_t o0 = out_channels * t / tiles, o1 = out_channels * (t + 1) / tiles;
          const float* wt = w + u % groups * w_group + o0 * w_row;
          for (std::size_t i = 0; i < pixels.size(); i += 2) {
            const Pixels &p = pixels[i], &q = pixels[i + 1];
            const bool full = p.count == kLanes && q.count == kLanes;
            const auto& table = full ? kConvTiles<false> : kConvTiles<true>;
            table[static_cast<std::size_t>(o1 - o0 - 1)](taps, image, wt, w_row, y + u * out_group + o0 * out_plane,
                                                         out_plane, p, q);
          }
        }
      }
    });
  }
};

Choice product_kernel(const NodeView& node, Product p, const ConvGeometry& g) {
  if (p.pixels.size() % 2) p.pixels.push_back(p.pixels.back());
  p.images = g.n, p.groups = g.groups, p.cost = g.flops() * kNsPerFlop;
  const std::size_t scratch = p.scratch();
  return Choice::run(
      "direct:" + node.op->name,
      [p = std::move(p)](void* const* args, ir::StepError*) {
        p.run(static_cast<const float*>(args[0]), static_cast<const float*>(args[1]), static_cast<float*>(args[2]),
              static_cast<float*>(args[3]));
      },
      scratch);
}

/// Consecutive images of a batch.
struct Images {
  const float *x, *dy;  // of the first
  std::int64_t x_stride, dy_stride, count;
};

template <int MR, int NR, bool Masked>
void grad_tile(std::span<const Pixels> pixels, Images images, const std::int32_t* offsets, std::int64_t y_plane,
               float* acc_memory, std::int64_t acc_row) {
  __m256 acc[MR][NR];
  UNROLL for (int i = 0; i < MR; ++i) UNROLL for (int j = 0; j < NR; ++j) acc[i][j] =
      _mm256_loadu_ps(acc_memory + i * acc_row + j * kLanes);
  for (std::int64_t n = 0; n < images.count; ++n, images.x += images.x_stride, images.dy += images.dy_stride)
    for (const Pixels& p : pixels) {
      const __m256i m = Masked ? lanes(p.count) : __m256i{};
      __m256 d[MR];
      UNROLL for (int i = 0; i < MR; ++i) {
        const float* from = images.dy + i * y_plane + p.out;
        d[i] = Masked ? _mm256_maskload_ps(from, m) : _mm256_loadu_ps(from);
      }
      UNROLL for (int j = 0; j < NR; ++j) {
        const float* from = images.x + p.in + offsets[j];
        const __m256 v = Masked ? _mm256_maskload_ps(from, m) : _mm256_loadu_ps(from);
        UNROLL for (int i = 0; i < MR; ++i) acc[i][j] = _mm256_fmadd_ps(d[i], v, acc[i][j]);
      }
    }
  UNROLL for (int i = 0; i < MR; ++i) UNROLL for (int j = 0; j < NR; ++j)
      _mm256_storeu_ps(acc_memory + i * acc_row + j * kLanes, acc[i][j]);
}

using GradTile = void (*)(std::span<const Pixels>, Images, const std::int32_t*, std::int64_t, float*, std::int64_t);
template <int MR, bool Masked>
constexpr std::array<GradTile, kGradColumns> kGradTileRow = {grad_tile<MR, 1, Masked>, grad_tile<MR, 2, Masked>,
                                                             grad_tile<MR, 3, Masked>, grad_tile<MR, 4, Masked>};
template <bool Masked>
constexpr std::array<std::array<GradTile, kGradColumns>, kGradRows> kGradTiles = {
    kGradTileRow<1, Masked>, kGradTileRow<2, Masked>, kGradTileRow<3, Masked>};

float sum_lanes(const float* p) {
  const __m128 four = _mm_add_ps(_mm_loadu_ps(p), _mm_loadu_ps(p + 4));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

struct WeightGrad {
  std::int64_t images, groups, in_channels, out_channels;  // channels per group
  Padding padding;
  std::int64_t out_plane;
  std::vector<std::int32_t> offsets;  // of the window's elements in a padded image
  std::vector<Pixels> full, partial;
  double cost;
  std::int64_t threads;  // that scratch is for

  std::int64_t chunks() const { return std::min(images, kChunks); }
  std::int64_t columns() const { return static_cast<std::int64_t>(offsets.size()); }
  std::int64_t group_weights() const { return out_channels * columns(); }
  std::int64_t padded_floats() const { return padding.any() ? block() * in_channels * padding.plane() : 0; }
  std::int64_t thread_floats() const { return (padded_floats() + group_weights() * kLanes + 15) / 16 * 16; }
  std::size_t scratch() const {
    return static_cast<std::size_t>(threads * thread_floats() + chunks() * groups * group_weights()) * sizeof(float);
  }

  /// Images per pass over the weights: as many as the first-level cache holds.
  std::int64_t block() const {
    const std::int64_t floats = in_channels * padding.plane() + out_channels * out_plane;
    return std::clamp<std::int64_t>(kBlockFloats / floats, 1, (images + chunks() - 1) / chunks());
  }

  void accumulate(Images some, float* acc) const {
    const std::int64_t k = columns();
    const std::int64_t rows = (out_channels + kGradRows - 1) / kGradRows, cols = (k + kGradColumns - 1) / kGradColumns;
    for (std::int64_t i = 0; i < rows; ++i) {
      const std::int64_t o0 = out_channels * i / rows, o1 = out_channels * (i + 1) / rows;
      for (std::int64_t j = 0; j < cols; ++j) {
        const std::int64_t k0 = k * j / cols, k1 = k * (j + 1) / cols;
        const auto mr = static_cast<std::size_t>(o1 - o0 - 1), nr = static_cast<std::size_t>(k1 - k0 - 1);
        float* a = acc + (o0 * k + k0) * kLanes;
        const std::int32_t* window = &offsets[static_cast<std::size_t>(k0)];
        if (!full.empty()) kGradTiles<false>[mr][nr](full, some, window, out_plane, a, k * kLanes);
        if (!partial.empty()) kGradTiles<true>[mr][nr](partial, some, window, out_plane, a, k * kLanes);
      }
      some.dy += (o1 - o0) * out_plane;
    }
  }

  void run(const float* x, const float* dy, float* dw, float* scratch) const {
    float* sums = scratch + threads * thread_floats();  // [chunk][group][weights]
    const std::int64_t in_group = in_channels * padding.h * padding.w, out_group = out_channels * out_plane;
    parallel_for(chunks() * groups, cost, [&](std::int64_t begin, std::int64_t end, int thread) {
      float *padded = scratch + thread * thread_floats(), *acc = padded + padded_floats();
      for (std::int64_t u = begin; u < end; ++u) {
        const std::int64_t chunk = u / groups, group = u % groups;
        std::memset(acc, 0, static_cast<std::size_t>(group_weights() * kLanes) * sizeof(float));
        const std::int64_t last = images * (chunk + 1) / chunks();
        for (std::int64_t n = images * chunk / chunks(); n < last; n += block()) {
          const std::int64_t at = n * groups + group, count = std::min(block(), last - n);
          Images some{x + at * in_group, dy + at * out_group, groups * in_group, groups * out_group, count};
          if (padding.any()) {
            for (std::int64_t i = 0; i < count; ++i)
              padding.apply(some.x + i * groups * in_group, in_channels, padded + i * in_channels * padding.plane());
            some.x = padded, some.x_stride = in_channels * padding.plane();
          }
          accumulate(some, acc);
        }
        for (std::int64_t i = 0; i < group_weights(); ++i) sums[u * group_weights() + i] = sum_lanes(acc + i * kLanes);
      }
    });
    const std::int64_t all = groups * group_weights();
    std::memcpy(dw, sums, static_cast<std::size_t>(all) * sizeof(float));
    for (std::int64_t c = 1; c < chunks(); ++c)
      for (std::int64_t i = 0; i < all; ++i) dw[i] += sums[c * all + i];
  }
};

/// Why a convolution is not for these kernels, or empty.
std::string refuses(const NodeView& node, const ConvGeometry& g) {
  for (const auto& t : node.in)
    if (t.dtype != DType::kFloat32) return "float32 only";
  if (g.nhwc || g.block) return "NCHW only";
  if (g.sh != 1 || g.sw != 1) return "stride 1 only";
  if (g.top < 0 || g.left < 0 || g.bottom < 0 || g.right < 0) return "negative padding";
  // Beyond these the library's blocked kernels are faster (measured); the offsets are also kept in 32 bits.
  if (g.group_c() > 8 && g.group_o() > 8) return "enough channels for the library";
  if (g.group_c() * (g.h + g.top + g.bottom) * (g.w + g.left + g.right) > (1 << 20) ||
      g.group_o() * (g.oh + g.kh * g.dh) * (g.ow + g.kw * g.dw) > (1 << 20))
    return "image too large";
  if (g.group_c() * g.group_o() * g.kh * g.kw > (1 << 14)) return "too many weights";
  return {};
}

}  // namespace

Choice small_conv2d(const NodeView& node) {
  const ConvGeometry g = conv_geometry(node, node.in[0].shape, node.in[1].shape, node.out[0].shape);
  if (const auto why = refuses(node, g); !why.empty()) return Choice::decline(why);
  Product p{};
  p.in_channels = g.group_c(), p.out_channels = g.group_o();
  p.padding = {g.h, g.w, g.top, g.left, g.h + g.top + g.bottom, g.w + g.left + g.right};
  p.out_plane = g.oh * g.ow;
  p.pixels = pixels_of(g.oh, g.ow, p.padding.padded_w, true);
  for (std::int64_t c = 0; c < g.group_c(); ++c)
    for (std::int64_t r = 0; r < g.kh; ++r)
      for (std::int64_t s = 0; s < g.kw; ++s)
        p.taps.push_back({static_cast<std::int32_t>(c * p.padding.plane() + r * g.dh * p.padding.padded_w + s * g.dw),
                          static_cast<std::int32_t>(p.taps.size())});
  p.w_row = static_cast<std::int64_t>(p.taps.size());
  p.w_group = p.w_row * g.group_o();
  return product_kernel(node, std::move(p), g);
}

Choice small_conv2d_grad_input(const NodeView& node) {
  const ConvGeometry g = conv_geometry(node, node.out[0].shape, node.in[1].shape, node.in[0].shape);
  if (const auto why = refuses(node, g); !why.empty()) return Choice::decline(why);
  const std::int64_t reach_h = (g.kh - 1) * g.dh, reach_w = (g.kw - 1) * g.dw;
  if (g.top > reach_h || g.bottom > reach_h || g.left > reach_w || g.right > reach_w)
    return Choice::decline("padding wider than the window");
  Product p{};
  p.in_channels = g.group_o(), p.out_channels = g.group_c();
  p.padding = {g.oh, g.ow, reach_h - g.top, reach_w - g.left, g.h + reach_h, g.w + reach_w};
  p.out_plane = g.h * g.w;
  p.pixels = pixels_of(g.h, g.w, p.padding.padded_w, true);
  const std::int64_t window = g.kh * g.kw;
  for (std::int64_t o = 0; o < g.group_o(); ++o)
    for (std::int64_t r = 0; r < g.kh; ++r)
      for (std::int64_t s = 0; s < g.kw; ++s)
        p.taps.push_back({static_cast<std::int32_t>(o * p.padding.plane() + r * g.dh * p.padding.padded_w + s * g.dw),
                          static_cast<std::int32_t>(o * g.group_c() * window + window - 1 - (r * g.kw + s))});
  p.w_row = window;
  p.w_group = g.group_o() * g.group_c() * window;
  return product_kernel(node, std::move(p), g);
}

Choice small_conv2d_grad_weight(const NodeView& node) {
  const ConvGeometry g = conv_geometry(node, node.in[0].shape, node.out[0].shape, node.in[1].shape);
  if (const auto why = refuses(node, g); !why.empty()) return Choice::decline(why);
  if (g.ow % kLanes != 0 && g.group_c() >= 4 && g.group_o() >= 8)
    return Choice::decline("rows that leave lanes empty, and enough channels for the library");
  WeightGrad p{};
  p.images = g.n, p.groups = g.groups, p.in_channels = g.group_c(), p.out_channels = g.group_o();
  p.padding = {g.h, g.w, g.top, g.left, g.h + g.top + g.bottom, g.w + g.left + g.right};
  p.out_plane = g.oh * g.ow;
  for (std::int64_t c = 0; c < g.group_c(); ++c)
    for (std::int64_t r = 0; r < g.kh; ++r)
      for (std::int64_t s = 0; s < g.kw; ++s)
        p.offsets.push_back(
            static_cast<std::int32_t>(c * p.padding.plane() + r * g.dh * p.padding.padded_w + s * g.dw));
  for (const Pixels& x : pixels_of(g.oh, g.ow, p.padding.padded_w, false))
    (x.count == kLanes ? p.full : p.partial).push_back(x);
  p.cost = g.flops() * kNsPerFlop;
  p.threads = compute_threads();
  const std::size_t scratch = p.scratch();
  return Choice::run(
      "direct:conv2d_grad_weight",
      [p = std::move(p)](void* const* args, ir::StepError*) {
        p.run(static_cast<const float*>(args[0]), static_cast<const float*>(args[1]), static_cast<float*>(args[2]),
              static_cast<float*>(args[3]));
      },
      scratch);
}

}  // namespace undertow::backend::cpu
