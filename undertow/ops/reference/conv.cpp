// SPDX-License-Identifier: Apache-2.0
#include "undertow/ops/channel_blocks.h"
#include "undertow/ops/reference/detail.h"
#include "undertow/ops/reference/reference.h"

namespace undertow::ops::reference {
namespace {

/// Sizes and strides of a tensor of 2 or 3 spatial dimensions, the former with a depth of 1. Channel c is channel
/// c % block of block c / block.
struct Volume {
  std::int64_t n, c, size[3], sn, sc, stride[3], block = 1, s_block = 1;
  Volume(const Shape& s, const ir::Attrs& attrs) {
    if (channel_block(attrs.text("layout")) && s.rank() == 5) {
      const auto strides = contiguous_strides(s);
      block = s[4], n = s[0], c = s[1] * block;
      sn = strides[0], s_block = strides[4], sc = strides[1];
      size[0] = 1, size[1] = s[2], size[2] = s[3];
      stride[0] = 0, stride[1] = strides[2], stride[2] = strides[3];
      return;
    }
    const int spatial = s.rank() - 2;
    const bool last = attrs.text("layout") == "NHWC";
    const auto strides = contiguous_strides(s);
    n = s[0], sn = strides[0];
    c = s[last ? s.rank() - 1 : 1], sc = strides[last ? s.size() - 1 : 1];
    size[0] = 1, stride[0] = 0;
    for (int d = 0; d < spatial; ++d) {
      const int from = (last ? 1 : 2) + d, to = d + 3 - spatial;
      size[to] = s[from], stride[to] = strides[static_cast<std::size_t>(from)];
    }
  }
  std::int64_t at(std::int64_t in, std::int64_t ic, const std::int64_t* p) const {
    return in * sn + ic / block * sc + ic % block * s_block + p[0] * stride[0] + p[1] * stride[1] + p[2] * stride[2];
  }
};

/// f(x offset, w offset, y offset) for every product of the convolution, y outermost.
template <typename F>
void for_each_product(const Shape& x_shape, const Shape& w_shape, const Shape& y_shape, const ir::Attrs& attrs, F&& f) {
  const Volume x(x_shape, attrs), y(y_shape, attrs);
  const int spatial = w_shape.rank() - 2;
  std::int64_t k[3] = {1, 1, 1}, stride[3] = {1, 1, 1}, pad[3] = {0, 0, 0}, dilation[3] = {1, 1, 1};
  for (int d = 0; d < spatial; ++d) {
    const auto i = static_cast<std::size_t>(d);
    const int to = d + 3 - spatial;
    k[to] = w_shape[2 + d], stride[to] = attrs.ints("strides")[i], pad[to] = attrs.ints("pads")[2 * i];
    dilation[to] = attrs.ints("dilations")[i];
  }
  const std::int64_t per_group_out = std::max<std::int64_t>(1, w_shape[0] / attrs.integer("groups"));
  const std::int64_t per_group_in = w_shape[1];
  std::int64_t p[3], r[3], q[3];  // positions in y, the window and x
  const auto inside = [&](int d) {
    q[d] = p[d] * stride[d] - pad[d] + r[d] * dilation[d];
    return q[d] >= 0 && q[d] < x.size[d];
  };
  for (std::int64_t n = 0; n < y.n; ++n)
    for (std::int64_t o = 0; o < y.c; ++o)
      for (p[0] = 0; p[0] < y.size[0]; ++p[0])
        for (p[1] = 0; p[1] < y.size[1]; ++p[1])
          for (p[2] = 0; p[2] < y.size[2]; ++p[2])
            for (std::int64_t i = 0; i < per_group_in; ++i)
              for (r[0] = 0; r[0] < k[0]; ++r[0]) {
                if (!inside(0)) continue;
                for (r[1] = 0; r[1] < k[1]; ++r[1]) {
                  if (!inside(1)) continue;
                  for (r[2] = 0; r[2] < k[2]; ++r[2])
                    if (inside(2))
                      f(x.at(n, o / per_group_out * per_group_in + i, q),
                        (((o * per_group_in + i) * k[0] + r[0]) * k[1] + r[1]) * k[2] + r[2], y.at(n, o, p));
                }
              }
}

}  // namespace

void conv(Arrays in, Arrays out, const ir::Attrs& attrs, ir::StepError*) {
  dispatch(out[0].dtype, [&](auto tag) {
    using T = decltype(tag);
    const T *x = in[0].as<T>(), *w = in[1].as<T>();
    std::vector<Acc<T>> y(static_cast<std::size_t>(out[0].shape.numel()));
    for_each_product(in[0].shape, in[1].shape, out[0].shape, attrs,
                     [&](auto ix, auto iw, auto iy) { y[iy] += widen(x[ix]) * widen(w[iw]); });
    store_narrowed<T>(y, out[0].as<T>());
  });
}

void conv_grad_input(Arrays in, Arrays out, const ir::Attrs& attrs, ir::StepError*) {
  dispatch(out[0].dtype, [&](auto tag) {
    using T = decltype(tag);
    const T *dy = in[0].as<T>(), *w = in[1].as<T>();
    std::vector<Acc<T>> dx(static_cast<std::size_t>(out[0].shape.numel()));
    for_each_product(out[0].shape, in[1].shape, in[0].shape, attrs,
                     [&](auto ix, auto iw, auto iy) { dx[ix] += widen(dy[iy]) * widen(w[iw]); });
    store_narrowed<T>(dx, out[0].as<T>());
  });
}

void conv_grad_weight(Arrays in, Arrays out, const ir::Attrs& attrs, ir::StepError*) {
  dispatch(out[0].dtype, [&](auto tag) {
    using T = decltype(tag);
    const T *x = in[0].as<T>(), *dy = in[1].as<T>();
    std::vector<Acc<T>> dw(static_cast<std::size_t>(out[0].shape.numel()));
    for_each_product(in[0].shape, out[0].shape, in[1].shape, attrs,
                     [&](auto ix, auto iw, auto iy) { dw[iw] += widen(x[ix]) * widen(dy[iy]); });
    store_narrowed<T>(dw, out[0].as<T>());
  });
}

}  // namespace undertow::ops::reference
