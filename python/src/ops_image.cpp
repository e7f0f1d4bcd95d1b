// SPDX-License-Identifier: Apache-2.0
// undertow.ops: padding, resizing, rearranging of images; embeddings.
#include "python/src/ops_nn.h"
#include "undertow/base/check.h"
#include "undertow/ops/image.h"
#include "undertow/ops/nn_misc.h"

namespace undertow::python {
namespace {

/// A number or a sequence of them; None: none.
std::vector<double> factors(nb::handle v) {
  std::vector<double> out;
  if (v.is_none()) return out;
  if (PyFloat_Check(v.ptr()) || PyLong_Check(v.ptr())) return {nb::cast<double>(nb::float_(v))};
  for (nb::handle item : nb::borrow<nb::object>(v)) out.push_back(nb::cast<double>(nb::float_(item)));
  return out;
}

Tensor interpolate(const Tensor& x, const std::optional<Ints>& size, nb::handle scale, const std::string& mode,
                   std::optional<bool> align_corners, std::optional<bool> recompute) {
  return ops::interpolate(x, {.size = size ? size->values : std::vector<std::int64_t>{},
                              .scale_factor = factors(scale),
                              .mode = mode,
                              .align_corners = align_corners.value_or(false),
                              .recompute_scale_factor = recompute.value_or(false)});
}

/// The functional form gives pairs from the last dimension on; ops.Pad and ops.MirrorPad a pair a dimension.
Tensor pad(const Tensor& x, nb::handle padding, const std::string& mode, std::optional<double> value) {
  UNDERTOW_CHECK(mode == "constant" || !value, ValueError, "pad: value is for mode 'constant', not '{}'", mode);
  std::vector<std::int64_t> pairs, low, high;
  const nb::object list = unwrap(padding) ? padding.attr("tolist")() : nb::borrow(padding);
  bool nested = false;
  for (nb::handle item : list) {
    if (PyLong_Check(item.ptr())) {
      pairs.push_back(nb::cast<std::int64_t>(item));
      continue;
    }
    const auto both = nb::cast<std::vector<std::int64_t>>(item);
    UNDERTOW_CHECK(both.size() == 2, ValueError, "pad: each dimension takes a pair (low, high), got {}", repr_of(item));
    low.push_back(both[0]), high.push_back(both[1]);
    nested = true;
  }
  if (nested) return ops::pad_mode(x, low, high, mode, value.value_or(0));
  return ops::pad_last(x, pairs, mode, value.value_or(0));
}

}  // namespace

void bind_ops_image(nb::module_& m) {
  for (const char* name : {"interpolate", "upsample"})
    m.def(name, &interpolate, "input"_a, "size"_a.none() = nb::none(), "scale_factor"_a.none() = nb::none(),
          "mode"_a = "nearest", "align_corners"_a.none() = nb::none(), "recompute_scale_factor"_a.none() = nb::none(),
          "Resizes (N, C, spatial...) to `size` or by `scale_factor`: nearest, nearest-exact, linear, bilinear, "
          "trilinear, bicubic or area.");
  m.def(
      "_resize",
      [](const Tensor& x, const Ints& size, const std::string& mode, bool align_corners, bool half_pixel) {
        UNDERTOW_CHECK(!(align_corners && half_pixel), ValueError,
                       "resizing: align_corners and half_pixel_centers exclude each other");
        const bool exact = mode == "nearest" && half_pixel;
        return ops::interpolate(x, {.size = size.values,
                                    .scale_factor = {},
                                    .mode = exact ? "nearest-exact" : mode,
                                    .align_corners = align_corners,
                                    .half_pixel = half_pixel});
      },
      "x"_a, "size"_a, "mode"_a, "align_corners"_a, "half_pixel"_a);
  m.def("pad", &pad, "input_x"_a, "padding"_a, "mode"_a = "constant", "value"_a.none() = nb::none(),
        "Pads by pairs from the last dimension on (left, right, top, bottom, ...): constant, reflect, symmetric, "
        "replicate or circular. Negative numbers crop.");
  m.def("pixel_shuffle", &ops::pixel_shuffle, "input"_a, "upscale_factor"_a,
        "(..., C r^2, H, W) to (..., C, H r, W r).");
  m.def("pixel_unshuffle", &ops::pixel_unshuffle, "input"_a, "downscale_factor"_a,
        "(..., C, H r, W r) to (..., C r^2, H, W).");
  m.def("channel_shuffle", &ops::channel_shuffle, "x"_a, "groups"_a, "Channels of `groups` groups dealt in turn.");
  m.def(
      "unfold",
      [](const Tensor& x, const Ints& k, const Ints& d, const Ints& p, const Ints& s) {
        return ops::unfold(x, k.values, d.values, p.values, s.values);
      },
      "input"_a, "kernel_size"_a, "dilation"_a = 1, "padding"_a = 0, "stride"_a = 1,
      "Sliding windows of (N, C, H, W): (N, C kh kw, windows).");
  m.def(
      "fold",
      [](const Tensor& x, const Ints& size, const Ints& k, const Ints& d, const Ints& p, const Ints& s) {
        return ops::fold(x, size.values, k.values, d.values, p.values, s.values);
      },
      "input"_a, "output_size"_a, "kernel_size"_a, "dilation"_a = 1, "padding"_a = 0, "stride"_a = 1,
      "Adds windows (N, C kh kw, L) up into an image.");
  m.def(
      "grid_sample",
      [](const Tensor& x, const Tensor& grid, const std::string& mode, const std::string& padding,
         std::optional<bool> align) { return ops::grid_sample(x, grid, mode, padding, align.value_or(false)); },
      "input"_a, "grid"_a, "mode"_a = "bilinear", "padding_mode"_a = "zeros", "align_corners"_a.none() = nb::none(),
      "Samples (N, C, H, W) at coordinates x, y in [-1, 1].");
  m.def(
      "embedding",
      [](const Tensor& ids, const Tensor& weight, std::optional<std::int64_t> padding_idx,
         std::optional<double> max_norm, double norm_type, bool by_frequency) {
        UNDERTOW_CHECK(!by_frequency, ValueError, "embedding: scale_grad_by_freq=True is not supported");
        return ops::embedding(ids, weight, padding_idx, max_norm, norm_type);
      },
      "input"_a, "weight"_a, "padding_idx"_a.none() = nb::none(), "max_norm"_a.none() = nb::none(), "norm_type"_a = 2.0,
      "scale_grad_by_freq"_a = false, "Rows of `weight` by ids.");
  m.def(
      "bidense",
      [](const Tensor& a, const Tensor& b, const Tensor& w, const MaybeTensor& bias) {
        return ops::bidense(a, b, w, or_none(bias));
      },
      "input1"_a, "input2"_a, "weight"_a, "bias"_a.none() = nb::none(), "x1 W x2 + b");
}

}  // namespace undertow::python
