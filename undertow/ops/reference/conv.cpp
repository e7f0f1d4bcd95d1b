// SPDX-License-Identifier: Apache-2.0
#include "undertow/ops/reference/detail.h"
#include "undertow/ops/reference/reference.h"

namespace undertow::ops::reference {
namespace {

/// f(x offset, w offset, y offset) for every product of the convolution, y outermost.
template <typename F>
void for_each_product(const Shape& x_shape, const Shape& w_shape, const Shape& y_shape, const ir::Attrs& attrs, F&& f) {
  const Image x = image_of(x_shape, attrs), y = image_of(y_shape, attrs);
  const auto &strides = attrs.ints("strides"), &pads = attrs.ints("pads"), &dilations = attrs.ints("dilations");
  const std::int64_t per_group_out = std::max<std::int64_t>(1, w_shape[0] / attrs.integer("groups"));
  const std::int64_t per_group_in = w_shape[1], kh = w_shape[2], kw = w_shape[3];
  for (std::int64_t n = 0; n < y.n; ++n)
    for (std::int64_t o = 0; o < y.c; ++o)
      for (std::int64_t oh = 0; oh < y.h; ++oh)
        for (std::int64_t ow = 0; ow < y.w; ++ow)
          for (std::int64_t i = 0; i < per_group_in; ++i)
            for (std::int64_t r = 0; r < kh; ++r) {
              const std::int64_t ih = oh * strides[0] - pads[0] + r * dilations[0];
              if (ih < 0 || ih >= x.h) continue;
              for (std::int64_t s = 0; s < kw; ++s) {
                const std::int64_t iw = ow * strides[1] - pads[2] + s * dilations[1];
                if (iw < 0 || iw >= x.w) continue;
                f(x.at(n, o / per_group_out * per_group_in + i, ih, iw), ((o * per_group_in + i) * kh + r) * kw + s,
                  y.at(n, o, oh, ow));
              }
            }
}

}  // namespace

void conv2d(Arrays in, Arrays out, const ir::Attrs& attrs, ir::StepError*) {
  dispatch(out[0].dtype, [&](auto tag) {
    using T = decltype(tag);
    const T *x = in[0].as<T>(), *w = in[1].as<T>();
    std::vector<Acc<T>> y(static_cast<std::size_t>(out[0].shape.numel()));
    for_each_product(in[0].shape, in[1].shape, out[0].shape, attrs,
                     [&](auto ix, auto iw, auto iy) { y[iy] += widen(x[ix]) * widen(w[iw]); });
    store_narrowed<T>(y, out[0].as<T>());
  });
}

void conv2d_grad_input(Arrays in, Arrays out, const ir::Attrs& attrs, ir::StepError*) {
  dispatch(out[0].dtype, [&](auto tag) {
    using T = decltype(tag);
    const T *dy = in[0].as<T>(), *w = in[1].as<T>();
    std::vector<Acc<T>> dx(static_cast<std::size_t>(out[0].shape.numel()));
    for_each_product(out[0].shape, in[1].shape, in[0].shape, attrs,
                     [&](auto ix, auto iw, auto iy) { dx[ix] += widen(dy[iy]) * widen(w[iw]); });
    store_narrowed<T>(dx, out[0].as<T>());
  });
}

void conv2d_grad_weight(Arrays in, Arrays out, const ir::Attrs& attrs, ir::StepError*) {
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
