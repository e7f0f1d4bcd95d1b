// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "undertow/ops/reference/detail.h"
#include "undertow/ops/reference/reference.h"

namespace undertow::ops::reference {
namespace {

/// Calls begin(y offset), then element(x offset, window offset) for each element that is not padding, then
/// end(y offset, how many).
template <typename Begin, typename Element, typename End>
void for_each_window(const Shape& x_shape, const Shape& y_shape, const ir::Attrs& attrs, Begin&& begin,
                     Element&& element, End&& end) {
  const Image x = image_of(x_shape, attrs), y = image_of(y_shape, attrs);
  const auto &kernel = attrs.ints("kernel"), &strides = attrs.ints("strides"), &pads = attrs.ints("pads");
  const ir::AttrValue* found = attrs.find("dilations");
  const auto dilations = found ? std::get<std::vector<std::int64_t>>(*found) : std::vector<std::int64_t>{1, 1};
  for (std::int64_t n = 0; n < y.n; ++n)
    for (std::int64_t c = 0; c < y.c; ++c)
      for (std::int64_t oh = 0; oh < y.h; ++oh)
        for (std::int64_t ow = 0; ow < y.w; ++ow) {
          const std::int64_t out = y.at(n, c, oh, ow);
          std::int64_t count = 0;
          begin(out);
          for (std::int64_t r = 0; r < kernel[0]; ++r)
            for (std::int64_t s = 0; s < kernel[1]; ++s) {
              const std::int64_t ih = oh * strides[0] - pads[0] + r * dilations[0];
              const std::int64_t iw = ow * strides[1] - pads[2] + s * dilations[1];
              if (ih < 0 || ih >= x.h || iw < 0 || iw >= x.w) continue;
              element(x.at(n, c, ih, iw), static_cast<std::int32_t>(r * kernel[1] + s));
              ++count;
            }
          end(out, count);
        }
}

double divisor(const ir::Attrs& attrs, std::int64_t count) {
  const auto& kernel = attrs.ints("kernel");
  return static_cast<double>(attrs.flag("count_include_pad") ? kernel[0] * kernel[1]
                                                             : std::max<std::int64_t>(count, 1));
}

}  // namespace

void max_pool2d(Arrays in, Arrays out, const ir::Attrs& attrs, ir::StepError*) {
  dispatch(out[0].dtype, [&](auto tag) {
    using T = decltype(tag);
    using O = Ordered<T>;
    const T* x = in[0].as<T>();
    O best{};
    std::int32_t where = -1;
    for_each_window(
        in[0].shape, out[0].shape, attrs, [&](auto) { where = -1; },
        [&](auto ix, std::int32_t offset) {
          const O v = ordered(x[ix]);
          if (where < 0 || beats<true>(v, best)) best = v, where = offset;
        },
        [&](auto iy, auto) {
          if (where < 0)
            best = std::numeric_limits<O>::has_infinity ? -std::numeric_limits<O>::infinity()
                                                        : std::numeric_limits<O>::lowest();
          out[0].as<T>()[iy] = narrow<T>(best);
          out[1].as<std::int32_t>()[iy] = where;
        });
  });
}

void max_pool2d_grad(Arrays in, Arrays out, const ir::Attrs& attrs, ir::StepError*) {
  dispatch(out[0].dtype, [&](auto tag) {
    using T = decltype(tag);
    const T* dy = in[0].as<T>();
    const auto* index = in[1].as<std::int32_t>();
    std::vector<Acc<T>> dx(static_cast<std::size_t>(out[0].shape.numel()));
    std::int64_t current = 0;
    for_each_window(
        out[0].shape, in[0].shape, attrs, [&](auto iy) { current = iy; },
        [&](auto ix, std::int32_t offset) {
          if (index[current] == offset) dx[ix] += widen(dy[current]);
        },
        [](auto, auto) {});
    store_narrowed<T>(dx, out[0].as<T>());
  });
}

void avg_pool2d(Arrays in, Arrays out, const ir::Attrs& attrs, ir::StepError*) {
  dispatch(out[0].dtype, [&](auto tag) {
    using T = decltype(tag);
    const T* x = in[0].as<T>();
    double sum = 0;
    for_each_window(
        in[0].shape, out[0].shape, attrs, [&](auto) { sum = 0; },
        [&](auto ix, std::int32_t) { sum += static_cast<double>(ordered(x[ix])); },
        [&](auto iy, auto count) { out[0].as<T>()[iy] = narrow<T>(sum / divisor(attrs, count)); });
  });
}

void avg_pool2d_grad(Arrays in, Arrays out, const ir::Attrs& attrs, ir::StepError*) {
  dispatch(out[0].dtype, [&](auto tag) {
    using T = decltype(tag);
    const T* dy = in[0].as<T>();
    std::vector<double> dx(static_cast<std::size_t>(out[0].shape.numel()));
    std::vector<std::int64_t> window;  // elements of the current one
    for_each_window(
        out[0].shape, in[0].shape, attrs, [&](auto) { window.clear(); },
        [&](auto ix, std::int32_t) { window.push_back(ix); },
        [&](auto iy, auto count) {
          for (const auto ix : window) dx[ix] += static_cast<double>(ordered(dy[iy])) / divisor(attrs, count);
        });
    for (std::size_t i = 0; i < dx.size(); ++i) out[0].as<T>()[i] = narrow<T>(dx[i]);
  });
}

}  // namespace undertow::ops::reference
