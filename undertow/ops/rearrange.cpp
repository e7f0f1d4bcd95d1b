// SPDX-License-Identifier: Apache-2.0
// Images taken apart and put together: shuffles of channels and pixels, sliding windows.
#include "undertow/ops/dispatch.h"
#include "undertow/ops/image.h"
#include "undertow/ops/nn_common.h"

namespace undertow::ops {
namespace {

/// Dimensions before the last three.
Ints outer_dims(const Tensor& x, const char* what) {
  UNDERTOW_CHECK(x.ndim() >= 3, ShapeError, "{}: the input must be (..., C, H, W), but its shape is {}", what,
                 x.shape().str());
  Ints s = x.shape().to_vector();
  s.resize(s.size() - 3);
  return s;
}

Ints joined(Ints a, std::initializer_list<std::int64_t> b) {
  a.insert(a.end(), b);
  return a;
}

Tensor permute_last(const Tensor& x, int count, const std::vector<int>& order) {
  Ints perm;
  for (int d = 0; d < x.ndim() - count; ++d) perm.push_back(d);
  for (const int o : order) perm.push_back(x.ndim() - count + o);
  return transpose(x, perm);
}

struct Sliding {
  std::int64_t kh, kw, dh, dw, sh, sw, oh, ow;
  Ints pads;
};

Sliding sliding(std::int64_t h, std::int64_t w, const Ints& kernel, const Ints& dilations, const Ints& pads,
                const Ints& strides, const char* what) {
  const auto name = [&](const char* part) { return std::string(what) + ": " + part; };
  const Ints k = spread(kernel, 2, 1, name("kernel_size").c_str());
  const Ints d = spread(dilations, 2, 1, name("dilation").c_str());
  const Ints s = spread(strides, 2, 1, name("stride").c_str());
  Sliding g{k[0], k[1], d[0], d[1], s[0], s[1], 0, 0, spread_pads(pads, 2, name("padding").c_str())};
  UNDERTOW_CHECK(std::min({k[0], k[1], d[0], d[1], s[0], s[1]}) > 0, ValueError,
                 "{}: kernel_size, dilation and stride must be positive, got ({}), ({}) and ({})", what,
                 fmt::join(k, ", "), fmt::join(d, ", "), fmt::join(s, ", "));
  const std::int64_t room_h = h + g.pads[0] + g.pads[1] - (g.kh - 1) * g.dh - 1;
  const std::int64_t room_w = w + g.pads[2] + g.pads[3] - (g.kw - 1) * g.dw - 1;
  UNDERTOW_CHECK(room_h >= 0 && room_w >= 0, ShapeError,
                 "{}: a window of {} x {} (dilation {} x {}) does not fit into {} x {} pixels with padding ({})", what,
                 g.kh, g.kw, g.dh, g.dw, h, w, fmt::join(g.pads, ", "));
  g.oh = room_h / g.sh + 1, g.ow = room_w / g.sw + 1;
  return g;
}

/// For each place in the window the pixels that windows have there: kh * kw images (N, C, oh, ow).
std::vector<Tensor> window_parts(const Tensor& x, const Sliding& g) {
  const Tensor padded = pad_mode(x, {0, 0, g.pads[0], g.pads[2]}, {0, 0, g.pads[1], g.pads[3]}, "constant");
  std::vector<Tensor> parts;
  for (std::int64_t r = 0; r < g.kh; ++r)
    for (std::int64_t s = 0; s < g.kw; ++s)
      parts.push_back(
          slice(padded, {0, 0, r * g.dh, s * g.dw}, {1, 1, g.sh, g.sw}, Shape{x.shape(0), x.shape(1), g.oh, g.ow}));
  return parts;
}

void need_image(const Tensor& x, const char* what) {
  UNDERTOW_CHECK(x.ndim() == 4, ShapeError, "{}: the input must be (N, C, H, W), but its shape is {}", what,
                 x.shape().str());
}

}  // namespace

Tensor pixel_shuffle(const Tensor& x, std::int64_t r) {
  const Ints outer = outer_dims(x, "pixel_shuffle");
  const std::int64_t c = x.shape(-3), h = x.shape(-2), w = x.shape(-1);
  UNDERTOW_CHECK(r > 0 && c % (r * r) == 0, ValueError,
                 "pixel_shuffle: the channels of {} must be a multiple of upscale_factor^2, which is {}^2",
                 x.shape().str(), r);
  const Tensor apart = reshape(x, joined(outer, {c / (r * r), r, r, h, w}));
  return reshape(permute_last(apart, 5, {0, 3, 1, 4, 2}), joined(outer, {c / (r * r), h * r, w * r}));
}

Tensor pixel_unshuffle(const Tensor& x, std::int64_t r) {
  const Ints outer = outer_dims(x, "pixel_unshuffle");
  const std::int64_t c = x.shape(-3), h = x.shape(-2), w = x.shape(-1);
  UNDERTOW_CHECK(r > 0 && h % r == 0 && w % r == 0, ValueError,
                 "pixel_unshuffle: height and width of {} must be multiples of downscale_factor = {}", x.shape().str(),
                 r);
  const Tensor apart = reshape(x, joined(outer, {c, h / r, r, w / r, r}));
  return reshape(permute_last(apart, 5, {0, 2, 4, 1, 3}), joined(outer, {c * r * r, h / r, w / r}));
}

Tensor channel_shuffle(const Tensor& x, std::int64_t groups) {
  UNDERTOW_CHECK(x.ndim() >= 3, ShapeError, "channel_shuffle: the input must be (N, C, ...), but its shape is {}",
                 x.shape().str());
  UNDERTOW_CHECK(groups > 0 && x.shape(1) % groups == 0, ValueError,
                 "channel_shuffle: groups must divide the {} channels of {}, but is {}", x.shape(1), x.shape().str(),
                 groups);
  const std::int64_t n = x.shape(0), c = x.shape(1);
  const Tensor apart = reshape(x, {n, groups, c / groups, c == 0 || n == 0 ? 0 : x.size() / (n * c)});
  return reshape(transpose(apart, {0, 2, 1, 3}), x.shape().to_vector());
}

Tensor unfold(const Tensor& x, const Ints& kernel, const Ints& dilations, const Ints& pads, const Ints& strides) {
  need_image(x, "unfold");
  const Sliding g = sliding(x.shape(2), x.shape(3), kernel, dilations, pads, strides, "unfold");
  const Tensor all = stack(window_parts(x, g), 2);  // (N, C, kh kw, oh, ow)
  return reshape(all, {x.shape(0), x.shape(1) * g.kh * g.kw, g.oh * g.ow});
}

Tensor extract_patches(const Tensor& x, const Ints& kernel, const Ints& dilations, const Ints& pads,
                       const Ints& strides) {
  need_image(x, "unfold");
  return concat(window_parts(x, sliding(x.shape(2), x.shape(3), kernel, dilations, pads, strides, "unfold")), 1);
}

Tensor fold(const Tensor& x, const Ints& output_size, const Ints& kernel, const Ints& dilations, const Ints& pads,
            const Ints& strides) {
  const Ints size = spread(output_size, 2, 0, "fold: output_size");
  const Sliding g = sliding(size[0], size[1], kernel, dilations, pads, strides, "fold");
  UNDERTOW_CHECK(x.ndim() == 3 && x.shape(1) % (g.kh * g.kw) == 0 && x.shape(2) == g.oh * g.ow, ShapeError,
                 "fold: the input must be (N, C * {}, {}) for windows of {} x {} in an image of {} x {}, but its shape "
                 "is {}",
                 g.kh * g.kw, g.oh * g.ow, g.kh, g.kw, size[0], size[1], x.shape().str());
  const std::int64_t n = x.shape(0), c = x.shape(1) / (g.kh * g.kw);
  const Tensor windows = reshape(x, {n, c, g.kh * g.kw, g.oh, g.ow});
  const std::int64_t height = size[0] + g.pads[0] + g.pads[1], width = size[1] + g.pads[2] + g.pads[3];
  Tensor sum;
  for (std::int64_t k = 0; k < g.kh * g.kw; ++k) {
    const Tensor part =
        reshape(slice(windows, {0, 0, k, 0, 0}, {1, 1, 1, 1, 1}, Shape{n, c, 1, g.oh, g.ow}), {n, c, g.oh, g.ow});
    const std::int64_t top = k / g.kw * g.dh, left = k % g.kw * g.dw;
    const std::int64_t bottom = height - top - (g.oh - 1) * g.sh - 1, right = width - left - (g.ow - 1) * g.sw - 1;
    const Tensor placed = call("pad", {part},
                               {{"low", Ints{0, 0, top, left}},
                                {"high", Ints{0, 0, bottom, right}},
                                {"interior", Ints{0, 0, g.sh - 1, g.sw - 1}},
                                {"value", 0.0}});
    sum = sum.defined() ? add(sum, placed) : placed;
  }
  return slice(sum, {0, 0, g.pads[0], g.pads[2]}, {1, 1, 1, 1}, Shape{n, c, size[0], size[1]});
}

}  // namespace undertow::ops
