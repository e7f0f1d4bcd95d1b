// SPDX-License-Identifier: Apache-2.0
// Operations on an image and the boxes in it. A box is a row of float32: x, y, width, height in pixels, and anything
// else behind these, which stays.
#include <algorithm>
#include <cstring>

#include "undertow/data/vision/arguments.h"
#include "undertow/data/vision/work.h"

namespace undertow::data::vision {
namespace {

/// Throws DataError unless these are boxes within an image of h x w.
void check_boxes(const std::string& op, const Tensor& boxes, std::int64_t h, std::int64_t w) {
  UNDERTOW_CHECK(
      boxes.ndim() == 2 && boxes.shape(1) >= 4 && boxes.dtype() == DType::kFloat32, DataError,
      "{} takes boxes (x, y, width, height, ...) of float32 and shape (N, 4 or more) as its second column, got "
      "{} of shape {}",
      op, numpy_name_of(boxes.dtype()), boxes.shape().str());
  const auto* b = static_cast<const float*>(boxes.data());
  const auto height = static_cast<float>(h), width = static_cast<float>(w);
  for (std::int64_t i = 0; i < boxes.shape(0); ++i, b += boxes.shape(1))
    UNDERTOW_CHECK(b[0] >= 0 && b[1] >= 0 && b[2] >= 0 && b[3] >= 0 && b[0] + b[2] <= width && b[1] + b[3] <= height,
                   DataError, "{}: box {} (x {}, y {}, {} wide, {} high) is not within the image of {} x {}", op, i,
                   b[0], b[1], b[2], b[3], h, w);
}

/// The boxes at their new places, cut to the image; those that no longer touch it are left out.
Tensor moved(const Tensor& boxes, const Track& t, std::int64_t h, std::int64_t w) {
  const std::int64_t columns = boxes.shape(1);
  std::vector<float> kept;
  std::int64_t rows = 0;
  const auto* b = static_cast<const float*>(boxes.data());
  for (std::int64_t i = 0; i < boxes.shape(0); ++i, b += columns) {
    const auto span = [](double at, double length, double scale, double shift, std::int64_t most) {
      const double p = at * scale + shift, q = (at + length) * scale + shift;
      return std::pair{std::max(std::min(p, q), 0.), std::min(std::max(p, q), static_cast<double>(most))};
    };
    const auto [left, right] = span(b[0], b[2], t.scale_x, t.shift_x, w);
    const auto [top, bottom] = span(b[1], b[3], t.scale_y, t.shift_y, h);
    if (left > right || top > bottom) continue;
    for (const double v : {left, top, right - left, bottom - top}) kept.push_back(static_cast<float>(v));
    kept.insert(kept.end(), b + 4, b + columns);
    ++rows;
  }
  return Tensor(kept, {rows, columns});
}

/// `op`, made of Work's operations, on the image, and its boxes with it.
Op with_boxes(std::string name, Op op) {
  return lazy_op(std::move(name), 2, [op](LazyRow& row, const RowContext& context) {
    const std::string what = op->name() + "WithBBox";
    UNDERTOW_CHECK(row.size() == 2, DataError, "{} takes two columns, an image and its boxes; got {}", what,
                   row.size());
    const Tensor boxes = row.column(1);
    LazyRow image(Row(1), row.fuse());
    image.move(0, row, 0);
    const int rank = image.shape(0).rank();
    UNDERTOW_CHECK(rank == 2 || rank == 3, DataError, "{} takes an image of 2 or 3 dimensions, got shape {}", what,
                   image.shape(0).str());
    Work& w = Work::on(op->name().c_str(), image, 0);
    const Extent before = w.extent();
    check_boxes(what, boxes, before.h, before.w);
    w.follow();
    op->extend(image, context);
    const Extent after = w.extent();
    row.set(1, moved(boxes, w.track(), after.h, after.w));
    row.move(0, image, 0);
  });
}

}  // namespace

Op ResizeWithBBox(Size size, Inter interpolation) {
  return with_boxes("ResizeWithBBox", Resize(std::move(size), interpolation));
}
Op RandomResizeWithBBox(Size size) { return with_boxes("RandomResizeWithBBox", RandomResize(std::move(size))); }
Op RandomCropWithBBox(Size size, Size padding, bool pad_if_needed, Fill fill_value, Border padding_mode) {
  return with_boxes("RandomCropWithBBox", RandomCrop(std::move(size), std::move(padding), pad_if_needed,
                                                     std::move(fill_value), padding_mode));
}
Op RandomResizedCropWithBBox(Size size, Range scale, Range ratio, Inter interpolation, std::int64_t max_attempts) {
  return with_boxes("RandomResizedCropWithBBox",
                    RandomResizedCrop(std::move(size), scale, ratio, interpolation, max_attempts));
}
Op RandomHorizontalFlipWithBBox(double prob) {
  return with_boxes("RandomHorizontalFlipWithBBox", RandomHorizontalFlip(prob));
}
Op RandomVerticalFlipWithBBox(double prob) {
  return with_boxes("RandomVerticalFlipWithBBox", RandomVerticalFlip(prob));
}

Op BoundingBoxAugment(Op transform, double ratio) {
  static constexpr auto kName = "BoundingBoxAugment";
  UNDERTOW_CHECK(ratio > 0 && ratio <= 1, ValueError, "{}: ratio must be in (0, 1], got {}", kName, ratio);
  return row_op(kName, 2,
                [transform, ratio](const Row& in, const RowContext& context) {
                  UNDERTOW_CHECK(in.size() == 2, DataError, "{} takes two columns, an image and its boxes; got {}",
                                 kName, in.size());
                  const Extent e = extent_of(kName, in[0]);
                  const Tensor &boxes = in[1], image = in[0].clone();
                  check_boxes(kName, boxes, e.h, e.w);
                  std::vector<std::int64_t> order(static_cast<std::size_t>(boxes.shape(0)));
                  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int64_t>(i);
                  PhiloxStream random = context.random();
                  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
                  // As many as MindSpore takes: at least one.
                  const auto chosen = static_cast<std::size_t>(std::ceil(ratio * static_cast<double>(order.size())));
                  for (std::size_t i = 0; i < chosen; ++i) {
                    const float* b = static_cast<const float*>(boxes.data()) + order[i] * boxes.shape(1);
                    const Rect r{static_cast<std::int64_t>(b[1]), static_cast<std::int64_t>(b[0]),
                                 static_cast<std::int64_t>(b[3]), static_cast<std::int64_t>(b[2])};
                    if (r.height < 1 || r.width < 1) continue;
                    const Row made = (*transform)(Row{crop(image, e, r)}, inner(context, i + 1));
                    UNDERTOW_CHECK(made.size() == 1 && made[0].dtype() == image.dtype(), DataError,
                                   "{}: the transform must give one image of {}", kName, numpy_name_of(image.dtype()));
                    const Tensor part = work_on(kName, made[0], [&](Work& w) { w.resize(kName, {r.height, r.width}); });
                    const Extent got = extent_of(kName, part);
                    UNDERTOW_CHECK(got.c == e.c, DataError, "{}: the transform changes the channels from {} to {}",
                                   kName, e.c, got.c);
                    const std::size_t pixel = size_of(image.dtype()) * static_cast<std::size_t>(e.c);
                    const std::size_t bytes = pixel * static_cast<std::size_t>(r.width);
                    for (std::int64_t y = 0; y < r.height; ++y)
                      std::memcpy(static_cast<std::byte*>(image.data()) +
                                      static_cast<std::size_t>((r.top + y) * e.w + r.left) * pixel,
                                  static_cast<const std::byte*>(part.data()) + static_cast<std::size_t>(y) * bytes,
                                  bytes);
                  }
                  return Row{image, boxes};
                },
                {transform});
}

}  // namespace undertow::data::vision
