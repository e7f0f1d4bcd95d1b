// SPDX-License-Identifier: Apache-2.0
// data/vision/work.h: an image that is still to be made, and what is to be done for it: decode, cut a window out,
// resize, flip, arithmetic, layout and dtype, in this order, in one pass over its rows. What comes in another order
// begins a new pass. Every operation gives the same bits alone and within a pass.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "undertow/data/column_op.h"
#include "undertow/data/vision/codec.h"
#include "undertow/data/vision/resize.h"

namespace undertow::data::vision {

/// Where a point of the image has gone: (x * scale_x + shift_x, y * scale_y + shift_y).
struct Track {
  double scale_x = 1, shift_x = 0, scale_y = 1, shift_y = 0;
};

class Work final : public Pending {
 public:
  /// An image of 2 or 3 dimensions; DataError otherwise.
  Work(const char* op, Tensor image);
  /// The bytes of a file. DataError as decode()'s where its header cannot be read; `op` names later errors as well.
  static std::unique_ptr<Work> of_file(const char* op, const Tensor& file);
  /// The work in progress on a column, or new work on the image in it.
  static Work& on(const char* op, LazyRow& row, std::size_t c);
  /// The work in progress on a column, or null.
  static Work* of(LazyRow& row, std::size_t c) { return dynamic_cast<Work*>(row.pending(c)); }

  DType dtype() const override { return finish_.dtype; }
  Shape shape() const override;
  void write(std::byte* to) override;
  Tensor take() override;

  /// Of (H, W) or (H, W, C) as it is now; what has become (C, H, W) is made, and taken for (H, W, C).
  Extent extent();
  /// All that is to be done so far is done.
  void make();
  /// Makes the image, and goes on with `f` of it.
  void then(const std::function<Tensor(const Tensor&)>& f);
  /// From now on; other operations than those below are not followed.
  void follow() { track_ = Track(); }
  const Track& track() const { return track_; }

  void crop(const Rect& r);  ///< must lie within the image
  void pad(const char* op, std::int64_t left, std::int64_t top, std::int64_t right, std::int64_t bottom,
           const std::vector<double>& fill, Border border);
  void resize(const char* op, Resizing r);
  void flip(bool horizontal);
  void scale(float factor, float shift);  ///< float32
  /// (x - mean) / std, float32: a value a channel, or one. DataError, starting with `op`, where they do not fit.
  void normalize(const char* op, const std::vector<float>& mean, const std::vector<float>& std, bool is_hwc);
  void to_planes(bool always = false);  ///< (H, W, C) to (C, H, W), and always: (H, W) to (1, H, W)
  void cast(DType dtype);

 private:
  Work() = default;
  void reset(Tensor image);
  bool untouched() const;
  void to_float();
  template <typename T>
  void write_rows(const View<T>& in, std::byte* to);
  Extent now() const;

  Tensor source_;                 // an image, or the bytes of a file
  const char* decode_ = nullptr;  // the operation that decodes
  Extent whole_;
  Rect window_;                       // of the whole
  std::optional<Resizing> resizing_;  // of the window
  Rect part_;                         // of the resized image
  bool flip_x_ = false;
  bool plane_ = false;  // 2 dimensions that are to become (1, H, W)
  Finish finish_;
  Track track_;
};

/// `f` of every column as work on an image; with `any`, on each of the images of a column with more than 3 dimensions.
using WorkFn = std::function<void(Work&, PhiloxStream&)>;
std::shared_ptr<MapOp> work_op(const char* name, WorkFn f, bool any = true);
/// The same at once.
Tensor work_on(const char* op, const Tensor& image, const std::function<void(Work&)>& f);

}  // namespace undertow::data::vision
