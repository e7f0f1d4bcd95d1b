// SPDX-License-Identifier: Apache-2.0
// Operations that move or pick pixels; the pixels themselves: image.cpp and resize.cpp.
#include <algorithm>
#include <array>

#include "undertow/data/vision/arguments.h"
#include "undertow/data/vision/work.h"

namespace undertow::data::vision {
namespace {

using Padding = std::array<std::int64_t, 4>;  // left, top, right, bottom

Padding padding_of(const char* op, const Size& p) {
  UNDERTOW_CHECK(p.empty() || p.size() == 1 || p.size() == 2 || p.size() == 4, ValueError,
                 "{}: padding must be one, two or four numbers, got {}", op, p);
  for (const auto n : p)
    UNDERTOW_CHECK(n >= 0 && n <= (1 << 24), ValueError, "{}: padding must be in [0, 2^24], got {}", op, p);
  if (p.empty()) return {0, 0, 0, 0};
  if (p.size() == 1) return {p[0], p[0], p[0], p[0]};
  if (p.size() == 2) return {p[0], p[1], p[0], p[1]};
  return {p[0], p[1], p[2], p[3]};
}

std::pair<std::int64_t, std::int64_t> resized(const Extent& e, const Size& size) {
  if (size.size() == 2) return {size[0], size[1]};
  // The shorter side; the other one is cut to an integer.
  if (e.h < e.w) return {size[0], size[0] * e.w / std::max<std::int64_t>(e.h, 1)};
  return {size[0] * e.h / std::max<std::int64_t>(e.w, 1), size[0]};
}

void pad(const char* op, Work& w, const Padding& p, const Fill& fill, Border border) {
  w.pad(op, p[0], p[1], p[2], p[3], fill, border);
}

/// With the check that the window lies within the image.
void crop(const char* op, Work& w, const Rect& r) {
  const Extent e = w.extent();
  UNDERTOW_CHECK(r.top + r.height <= e.h && r.left + r.width <= e.w, DataError,
                 "{}: the window from ({}, {}) of {} x {} is not within the image of shape {}", op, r.top, r.left,
                 r.height, r.width, e.shape().str());
  w.crop(r);
}

void centre_crop(const char* op, Work& work, std::int64_t h, std::int64_t w) {
  Extent e = work.extent();
  const std::int64_t dh = std::max<std::int64_t>(h - e.h, 0), dw = std::max<std::int64_t>(w - e.w, 0);
  pad(op, work, {dw - dw / 2, dh - dh / 2, dw / 2, dh / 2}, {0}, Border::kConstant);
  e = work.extent();
  work.crop({(e.h - h) / 2, (e.w - w) / 2, h, w});
}

struct ResizedCropArguments {
  Size size;
  Range scale, ratio;
  Inter interpolation;
  std::int64_t max_attempts;
  Rules rules;

  void check(const char* op) const {
    check_size(op, size);
    check_range(op, "scale", scale, 0, 1e6);
    UNDERTOW_CHECK(scale.second > 0, ValueError, "{}: the larger scale must be positive, got {}", op, scale.second);
    check_range(op, "ratio", ratio, 1e-9, 1e9);
    UNDERTOW_CHECK(max_attempts >= 1, ValueError, "{}: max_attempts must be positive, got {}", op, max_attempts);
  }
  Rect draw(std::int64_t h, std::int64_t w, PhiloxStream& random) const {
    const double area = static_cast<double>(h) * static_cast<double>(w);
    for (std::int64_t i = 0; i < max_attempts; ++i) {
      const double part = area * uniform(random, scale);
      const double aspect = std::exp(uniform(random, {std::log(ratio.first), std::log(ratio.second)}));
      const auto cw = static_cast<std::int64_t>(std::round(std::sqrt(part * aspect)));
      const auto ch = static_cast<std::int64_t>(std::round(std::sqrt(part / aspect)));
      if (cw < 1 || ch < 1 || cw > w || ch > h) continue;
      const auto top = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(h - ch + 1)));
      const auto left = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(w - cw + 1)));
      return {top, left, ch, cw};
    }
    // None fits: the largest window in the middle whose shape is allowed.
    const double whole = static_cast<double>(w) / static_cast<double>(h);
    std::int64_t ch = h, cw = w;
    if (whole < ratio.first) ch = std::clamp<std::int64_t>(std::llround(static_cast<double>(w) / ratio.first), 1, h);
    else if (whole > ratio.second)
      cw = std::clamp<std::int64_t>(std::llround(static_cast<double>(h) * ratio.second), 1, w);
    return {(h - ch) / 2, (w - cw) / 2, ch, cw};
  }
  /// Draws the window of an image and resizes it.
  void run(const char* op, Work& w, PhiloxStream& random) const {
    const Extent e = w.extent();
    UNDERTOW_CHECK(e.h > 0 && e.w > 0, DataError, "{}: an image without pixels, shape {}", op, e.shape().str());
    w.crop(draw(e.h, e.w, random));
    w.resize(op, {square(size).first, square(size).second, interpolation, rules});
  }
};

Row corners(const char* op, const Tensor& x, std::int64_t h, std::int64_t w) {
  const Extent e = extent_of(op, x);
  UNDERTOW_CHECK(h <= e.h && w <= e.w, DataError, "{}: a crop of {} x {} is larger than the image of shape {}", op, h,
                 w, x.shape().str());
  Row out;
  for (const auto& [top, left] :
       {std::pair{std::int64_t{0}, std::int64_t{0}}, {0, e.w - w}, {e.h - h, 0}, {e.h - h, e.w - w}})
    out.push_back(crop(x, e, {top, left, h, w}));
  // Halves to even, as Python's round().
  const auto middle = [](std::int64_t d) {
    return static_cast<std::int64_t>(std::nearbyint(static_cast<double>(d) / 2));
  };
  out.push_back(crop(x, e, {middle(e.h - h), middle(e.w - w), h, w}));
  return out;
}

}  // namespace

Op Decode() {
  return lazy_op("Decode", 1, [](LazyRow& row, const RowContext&) {
    for (std::size_t c = 0; c < row.size(); ++c) row.set(c, Work::of_file("Decode", row.column(c)));
  });
}

Op RandomCropDecodeResize(Size size, Range scale, Range ratio, Inter interpolation, std::int64_t max_attempts,
                          Rules rules) {
  static constexpr auto kName = "RandomCropDecodeResize";
  const ResizedCropArguments a{std::move(size), scale, ratio, interpolation, max_attempts, rules};
  a.check(kName);
  const Op images = work_op(kName, [a](Work& w, PhiloxStream& random) { a.run(kName, w, random); });
  return lazy_op(kName, 1, [images](LazyRow& row, const RowContext& context) {
    // What is decoded already is taken too, as MindSpore does.
    for (std::size_t c = 0; c < row.size(); ++c)
      if (row.shape(c).rank() == 1) row.set(c, Work::of_file(kName, row.column(c)));
    images->extend(row, context);
  });
}

Op Resize(Size size, Inter interpolation, Rules rules) {
  check_size("Resize", size);
  return work_op("Resize", [=](Work& work, PhiloxStream&) {
    const auto [h, w] = resized(work.extent(), size);
    work.resize("Resize", {h, w, interpolation, rules});
  });
}

Op RandomResize(Size size, Rules rules) {
  check_size("RandomResize", size);
  return work_op("RandomResize", [=](Work& work, PhiloxStream& random) {
    static constexpr Inter kAll[] = {Inter::kLinear, Inter::kNearest, Inter::kCubic, Inter::kArea};
    const auto [h, w] = resized(work.extent(), size);
    work.resize("RandomResize", {h, w, kAll[random.below(rules == Rules::kArray ? 4 : 3)], rules});
  });
}

Op Crop(std::pair<std::int64_t, std::int64_t> coordinates, Size size) {
  check_size("Crop", size);
  const Rect r{coordinates.first, coordinates.second, square(size).first, square(size).second};
  UNDERTOW_CHECK(r.top >= 0 && r.left >= 0, ValueError, "Crop: coordinates must not be negative, got ({}, {})", r.top,
                 r.left);
  return work_op("Crop", [r](Work& w, PhiloxStream&) { crop("Crop", w, r); });
}

Op CenterCrop(Size size) {
  check_size("CenterCrop", size);
  const auto [h, w] = square(size);
  return work_op("CenterCrop", [h, w](Work& work, PhiloxStream&) { centre_crop("CenterCrop", work, h, w); });
}

Op ResizedCrop(std::int64_t top, std::int64_t left, std::int64_t height, std::int64_t width, Size size,
               Inter interpolation, Rules rules) {
  check_size("ResizedCrop", size);
  UNDERTOW_CHECK(
      top >= 0 && left >= 0 && height >= 1 && width >= 1, ValueError,
      "ResizedCrop: top and left must not be negative, height and width must be positive; got {}, {}, {}, {}", top,
      left, height, width);
  const Rect r{top, left, height, width};
  return work_op("ResizedCrop", [=](Work& w, PhiloxStream&) {
    crop("ResizedCrop", w, r);
    w.resize("ResizedCrop", {square(size).first, square(size).second, interpolation, rules});
  });
}

Op RandomCrop(Size size, Size padding, bool pad_if_needed, Fill fill_value, Border padding_mode) {
  check_size("RandomCrop", size);
  check_fill("RandomCrop", fill_value);
  const Padding p = padding_of("RandomCrop", padding);
  const auto [h, w] = square(size);
  return work_op("RandomCrop", [=](Work& work, PhiloxStream& random) {
    work.extent();
    pad("RandomCrop", work, p, fill_value, padding_mode);
    Extent e = work.extent();
    if (pad_if_needed) {
      const std::int64_t dh = std::max<std::int64_t>(h - e.h, 0), dw = std::max<std::int64_t>(w - e.w, 0);
      pad("RandomCrop", work, {dw, dh, dw, dh}, fill_value, padding_mode);
      e = work.extent();
    }
    UNDERTOW_CHECK(
        h <= e.h && w <= e.w, DataError,
        "RandomCrop: the crop of {} x {} is larger than the image, {} x {} with its padding; give padding or "
        "pad_if_needed",
        h, w, e.h, e.w);
    const auto top = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(e.h - h + 1)));
    const auto left = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(e.w - w + 1)));
    work.crop({top, left, h, w});
  });
}

Op RandomResizedCrop(Size size, Range scale, Range ratio, Inter interpolation, std::int64_t max_attempts, Rules rules) {
  static constexpr auto kName = "RandomResizedCrop";
  const ResizedCropArguments a{std::move(size), scale, ratio, interpolation, max_attempts, rules};
  a.check(kName);
  return work_op(kName, [a](Work& w, PhiloxStream& random) { a.run(kName, w, random); });
}

Op Pad(Size padding, Fill fill_value, Border padding_mode) {
  UNDERTOW_CHECK(!padding.empty(), ValueError, "Pad: padding must be one, two or four numbers, got none");
  const Padding p = padding_of("Pad", padding);
  check_fill("Pad", fill_value);
  return work_op("Pad", [=](Work& w, PhiloxStream&) { pad("Pad", w, p, fill_value, padding_mode); });
}

Op PadToSize(Size size, Size offset, Fill fill_value, Border padding_mode) {
  check_size("PadToSize", size);
  check_fill("PadToSize", fill_value);
  UNDERTOW_CHECK(offset.size() <= 2, ValueError, "PadToSize: offset must be one number or two, got {}", offset);
  for (const auto o : offset)
    UNDERTOW_CHECK(o >= 0, ValueError, "PadToSize: offset must not be negative, got {}", offset);
  const auto [h, w] = square(size);
  return work_op("PadToSize", [=](Work& work, PhiloxStream&) {
    const Extent e = work.extent();
    UNDERTOW_CHECK(e.h <= h && e.w <= w, DataError, "PadToSize: the image of shape {} is larger than {} x {}",
                   e.shape().str(), h, w);
    const std::int64_t top = offset.empty() ? (h - e.h) / 2 : offset.front();
    const std::int64_t left = offset.empty() ? (w - e.w) / 2 : offset.back();
    UNDERTOW_CHECK(top + e.h <= h && left + e.w <= w, DataError,
                   "PadToSize: the image of shape {} at ({}, {}) is not within {} x {}", e.shape().str(), top, left, h,
                   w);
    pad("PadToSize", work, {left, top, w - e.w - left, h - e.h - top}, fill_value, padding_mode);
  });
}

namespace {

Op flip_op(const char* name, bool horizontal) {
  return work_op(name, [horizontal](Work& w, PhiloxStream&) { w.flip(horizontal); });
}

Op random_flip_op(const char* name, bool horizontal, double prob) {
  check_prob(name, prob);
  return work_op(name, [=](Work& w, PhiloxStream& random) {
    if (random.uniform64() < prob) w.flip(horizontal);
  });
}

}  // namespace

Op HorizontalFlip() { return flip_op("HorizontalFlip", true); }
Op VerticalFlip() { return flip_op("VerticalFlip", false); }
Op RandomHorizontalFlip(double prob) { return random_flip_op("RandomHorizontalFlip", true, prob); }
Op RandomVerticalFlip(double prob) { return random_flip_op("RandomVerticalFlip", false, prob); }

Op FiveCrop(Size size) {
  check_size("FiveCrop", size);
  const auto [h, w] = square(size);
  return row_op("FiveCrop", 1, [h, w](const Row& in, const RowContext&) { return corners("FiveCrop", in[0], h, w); });
}

Op TenCrop(Size size, bool use_vertical_flip) {
  check_size("TenCrop", size);
  const auto [h, w] = square(size);
  return row_op("TenCrop", 1, [=](const Row& in, const RowContext&) {
    Row out = corners("TenCrop", in[0], h, w);
    for (const Tensor& t : corners("TenCrop", flip(in[0], !use_vertical_flip), h, w)) out.push_back(t);
    return out;
  });
}

Op SlicePatches(std::int64_t num_height, std::int64_t num_width, SliceMode slice_mode, double fill_value) {
  UNDERTOW_CHECK(num_height >= 1 && num_width >= 1, ValueError,
                 "SlicePatches: num_height and num_width must be positive, got {} and {}", num_height, num_width);
  check_fill("SlicePatches", {fill_value});
  return row_op("SlicePatches", 1, [=](const Row& in, const RowContext&) {
    Tensor x = in[0];
    Extent e = extent_of("SlicePatches", x);
    UNDERTOW_CHECK(num_height <= e.h && num_width <= e.w, DataError,
                   "SlicePatches: {} x {} patches of an image of shape {}", num_height, num_width, x.shape().str());
    std::int64_t h = e.h / num_height, w = e.w / num_width;
    if (slice_mode == SliceMode::kPad) {
      h = (e.h + num_height - 1) / num_height;
      w = (e.w + num_width - 1) / num_width;
      x = pad("SlicePatches", x, e, 0, 0, w * num_width - e.w, h * num_height - e.h, {fill_value}, Border::kConstant);
      e = e.sized(h * num_height, w * num_width);
    }
    Row out;
    for (std::int64_t i = 0; i < num_height; ++i)
      for (std::int64_t j = 0; j < num_width; ++j) out.push_back(crop(x, e, {i * h, j * w, h, w}));
    return out;
  });
}

}  // namespace undertow::data::vision
