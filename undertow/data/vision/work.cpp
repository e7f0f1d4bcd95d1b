// SPDX-License-Identifier: Apache-2.0
#include "undertow/data/vision/work.h"

#include <algorithm>
#include <cstring>

#include "undertow/data/config.h"

namespace undertow::data::vision {

Work::Work(const char* op, Tensor image) {
  extent_of(op, image);
  reset(std::move(image));
}

std::unique_ptr<Work> Work::of_file(const char* op, const Tensor& file) {
  UNDERTOW_CHECK(file.ndim() == 1 && file.dtype() == DType::kUInt8, DataError,
                 "{} takes the bytes of a file as a 1-D array of uint8, got {} of shape {}", op,
                 numpy_name_of(file.dtype()), file.shape().str());
  std::unique_ptr<Work> work(new Work());
  const auto [h, w] = image_size(op, bytes_of(file));
  work->source_ = file;
  work->decode_ = op;
  work->whole_ = {h, w, 3, false};
  work->window_ = {0, 0, h, w};
  return work;
}

void Work::reset(Tensor image) {
  const Extent e = extent_of("image", image);
  const DType dtype = image.dtype();
  const Track track = track_;
  *this = Work();
  track_ = track;
  source_ = std::move(image);
  whole_ = e;
  window_ = {0, 0, e.h, e.w};
  finish_.dtype = dtype;
}

Extent Work::now() const {
  const Rect& r = resizing_ ? part_ : window_;
  return whole_.sized(r.height, r.width);
}

Shape Work::shape() const {
  const Extent e = now();
  if (plane_) return {1, e.h, e.w};
  return finish_.planes ? Shape{e.c, e.h, e.w} : e.shape();
}

bool Work::untouched() const {
  return !decode_ && !resizing_ && !flip_x_ && !plane_ && !finish_.flip_y && finish_.plain(source_.dtype()) &&
         window_.height == whole_.h && window_.width == whole_.w;
}

Tensor Work::take() {
  if (untouched()) return source_;
  return Pending::take();
}

void Work::make() {
  if (!untouched()) reset(take());
}

void Work::then(const std::function<Tensor(const Tensor&)>& f) {
  make();
  reset(f(source_));
}

Extent Work::extent() {
  if (finish_.planes || plane_) make();
  return now();
}

void Work::crop(const Rect& r) {
  const Extent e = extent();
  Rect& to = resizing_ ? part_ : window_;
  to.left += flip_x_ ? e.w - r.left - r.width : r.left;
  to.top += finish_.flip_y ? e.h - r.top - r.height : r.top;
  to.width = r.width;
  to.height = r.height;
  track_.shift_x -= static_cast<double>(r.left);
  track_.shift_y -= static_cast<double>(r.top);
}

void Work::pad(const char* op, std::int64_t left, std::int64_t top, std::int64_t right, std::int64_t bottom,
               const std::vector<double>& fill, Border border) {
  if (left == 0 && top == 0 && right == 0 && bottom == 0) return;
  then([&](const Tensor& x) { return vision::pad(op, x, extent_of(op, x), left, top, right, bottom, fill, border); });
  track_.shift_x += static_cast<double>(left);
  track_.shift_y += static_cast<double>(top);
}

void Work::resize(const char* op, Resizing r) {
  const Extent e = extent();
  check_resize(op, e, dtype(), r);
  if (r.h == e.h && r.w == e.w) return;
  const DType source = decode_ ? DType::kUInt8 : source_.dtype();
  if (resizing_ || flip_x_ || finish_.flip_y || !finish_.plain(source)) make();
  const bool half = dtype() == DType::kFloat16 && r.inter != Inter::kNearest;
  if (half) {
    make();
    reset(source_.to(DType::kFloat32));
  }
  resizing_ = r;
  part_ = {0, 0, r.h, r.w};
  if (half) cast(DType::kFloat16);
  const double x = static_cast<double>(r.w) / static_cast<double>(e.w);
  const double y = static_cast<double>(r.h) / static_cast<double>(e.h);
  track_ = {track_.scale_x * x, track_.shift_x * x, track_.scale_y * y, track_.shift_y * y};
}

void Work::flip(bool horizontal) {
  const Extent e = extent();
  bool& done = horizontal ? flip_x_ : finish_.flip_y;
  done = !done;
  double& scale = horizontal ? track_.scale_x : track_.scale_y;
  double& shift = horizontal ? track_.shift_x : track_.shift_y;
  scale = -scale;
  shift = static_cast<double>(horizontal ? e.w : e.h) - shift;
}

void Work::to_float() {
  const DType source = decode_ ? DType::kUInt8 : source_.dtype();
  if (dtype() != source && dtype() != DType::kFloat32) make();
  finish_.as_float = true;
  finish_.dtype = DType::kFloat32;
}

void Work::scale(float factor, float shift) {
  to_float();
  finish_.arithmetic.push_back({Arithmetic::Kind::kScale, {factor}, {shift}});
}

void Work::normalize(const char* op, const std::vector<float>& mean, const std::vector<float>& std, bool is_hwc) {
  if ((finish_.planes || plane_) && is_hwc) make();
  const Shape s = shape();
  const std::int64_t c = s.rank() == 2 ? 1 : s[is_hwc ? 2 : 0];
  const auto given = static_cast<std::int64_t>(mean.size());
  UNDERTOW_CHECK(given == 1 || given == c, DataError, "{} has {} means for an image of {} channels (shape {}, {})", op,
                 given, c, s.str(), is_hwc ? "HWC" : "CHW");
  if (!is_hwc && !finish_.planes && s.rank() == 3 && given > 1) {  // planes that lie so
    then([&](const Tensor& x) {
      Tensor y(DType::kFloat32, x.shape());
      const std::size_t plane = y.nbytes() / static_cast<std::size_t>(c);
      for (std::int64_t k = 0; k < c; ++k) {
        Work w(op, part(x, k));
        const auto i = static_cast<std::size_t>(k);
        w.normalize(op, {mean[i]}, {std[i]}, true);
        w.write(static_cast<std::byte*>(y.data()) + i * plane);
      }
      return y;
    });
    return;
  }
  to_float();
  finish_.arithmetic.push_back({Arithmetic::Kind::kNormalize, mean, std});
}

void Work::to_planes(bool always) {
  const Extent e = extent();
  if (!e.flat) finish_.planes = true;
  else plane_ = always;
}

void Work::cast(DType target) {
  const DType source = decode_ ? DType::kUInt8 : source_.dtype();
  if (target == dtype()) return;
  if (target == DType::kFloat32 && dtype() == source) return to_float();
  if (dtype() != source && dtype() != DType::kFloat32) make();
  finish_.dtype = target;
}

template <typename T>
void Work::write_rows(const View<T>& in, std::byte* to) {
  const Extent e = now();
  Rows<T> rows(finish_, e, to);
  if (resizing_) return vision::resize(in, *resizing_, part_, flip_x_, rows);
  for (std::int64_t y = 0; y < e.h; ++y) {
    if (!flip_x_) {
      rows.take(y, in.row(y));
      continue;
    }
    const T* src = in.row(y);
    T* out = rows.row(y);
    const auto reverse = [&]<int kC>() {
      const std::int64_t c = kC ? kC : e.c;
      for (std::int64_t x = 0; x < e.w; ++x)
        for (std::int64_t k = 0; k < c; ++k) out[x * c + k] = src[(e.w - 1 - x) * c + k];
    };
    if (e.c == 3) reverse.template operator()<3>();
    else reverse.template operator()<0>();
    rows.done(y);
  }
}

void Work::write(std::byte* to) {
  if (shape().numel() == 0) return;
  if (decode_) {
    // The largest step that still leaves as many pixels as are wanted.
    int shrink = 1;
    if (resizing_ && config().scaled_decode)
      while (shrink < 8 && window_.height / (2 * shrink) >= resizing_->h &&
             window_.width / (2 * shrink) >= resizing_->w)
        shrink *= 2;
    write_rows(decode_view(decode_, bytes_of(source_), ImageReadMode::kColor, window_, shrink), to);
    return;
  }
  dispatch(source_.dtype(), [&](auto tag) {
    using T = decltype(tag);
    const std::int64_t row = whole_.row();
    write_rows(View<T>{static_cast<const T*>(source_.data()) + window_.top * row + window_.left * whole_.c,
                       window_.height, window_.width, whole_.c, row},
               to);
  });
}

Tensor work_on(const char* op, const Tensor& image, const std::function<void(Work&)>& f) {
  Work w(op, image);
  f(w);
  return w.take();
}

Work& Work::on(const char* op, LazyRow& row, std::size_t c) {
  if (Work* w = of(row, c)) return *w;
  check_numbers(op, row.column(c));
  auto made = std::make_unique<Work>(op, row.column(c));
  Work& w = *made;
  row.set(c, std::move(made));
  return w;
}

std::shared_ptr<MapOp> work_op(const char* name, WorkFn f, bool any) {
  return lazy_op(name, 1, [name, any, f = std::move(f)](LazyRow& row, const RowContext& context) {
    for (std::size_t c = 0; c < row.size(); ++c) {
      PhiloxStream random = context.random();
      if (!any || row.shape(c).rank() <= 3) {
        f(Work::on(name, row, c), random);
        continue;
      }
      row.set(c, each_image(name, row.column(c), [&](const Tensor& image) {
                return work_on(name, image, [&](Work& w) {
                  random = context.random();  // all images of a column see the same draws
                  f(w, random);
                });
              }));
    }
  });
}

Tensor flip(const Tensor& x, bool horizontal) {
  return work_on("flip", x, [&](Work& w) { w.flip(horizontal); });
}

}  // namespace undertow::data::vision
